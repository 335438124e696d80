//! Rules that need more than one word: distances, slots, sections, the end.
//!
//! The program is walked in states: a word together with what matters of the way to it (which slot of a branch or of a
//! thread switch it is, which section, what has been written). Every state is visited once; a rule about the next few
//! instructions looks ahead from the state that starts it. Work and memory are linear in the words: the number of
//! states per word is bounded by the few bits of [`Context`] that a program really uses.

use super::{ProgramFacts, Report, Stage};
use crate::instr::{Alu, Branch, BranchTarget, Dest, Instr, Loc, Signals, Source, Version};
use crate::magic::{self, Class};
use crate::ops::Op;
use smallvec::{SmallVec, smallvec};

/// What a word does, one bit per thing that a rule asks for.
mod has {
    pub const THRSW: u32 = 1;
    pub const LDVARY: u32 = 1 << 1;
    /// ldunif or ldunifa: the forms that write r5/rf0.
    pub const LDUNIF_IMPLICIT: u32 = 1 << 2;
    /// ldunif or ldunifrf.
    pub const LDUNIF_ANY: u32 = 1 << 3;
    /// ldunifa or ldunifarf.
    pub const LDUNIFA_ANY: u32 = 1 << 4;
    /// Takes a word of the uniform stream.
    pub const UNIFORM: u32 = 1 << 5;
    pub const UNIFA_WRITE: u32 = 1 << 6;
    pub const SFU_MAGIC: u32 = 1 << 7;
    pub const SFU_OP: u32 = 1 << 8;
    pub const R4_READ: u32 = 1 << 9;
    pub const R4_WRITE: u32 = 1 << 10;
    /// r5 (4.2) or rf0 (7.1).
    pub const U_READ: u32 = 1 << 11;
    pub const U_WRITE: u32 = 1 << 12;
    /// A row written by ADD or MUL.
    pub const ROW_BY_ALU: u32 = 1 << 13;
    pub const ROW_BY_SIGNAL: u32 = 1 << 14;
    /// rf2 or rf3 read or written.
    pub const RF23: u32 = 1 << 15;
    /// rf0 to rf2 read.
    pub const RF012_READ: u32 = 1 << 16;
    pub const TLB: u32 = 1 << 17;
    pub const TLB_WRITE: u32 = 1 << 18;
    pub const Z_WRITE: u32 = 1 << 19;
    pub const SETMSF: u32 = 1 << 20;
    pub const MSF: u32 = 1 << 21;
    pub const VPM_WRITE: u32 = 1 << 22;
    pub const VPMWT: u32 = 1 << 23;
    pub const TMUWT: u32 = 1 << 24;
    pub const BRANCH: u32 = 1 << 25;
    /// A branch that reads the sample flags.
    pub const BRANCH_MSF: u32 = 1 << 26;
    pub const SYNC: u32 = 1 << 27;
    pub const ROTATE: u32 = 1 << 28;
}
use has::*;

/// The bits of a word.
fn digest(version: Version, at: usize, instr: &Instr, facts: &ProgramFacts) -> u32 {
    match instr {
        Instr::Branch(branch) => {
            let mut bits = BRANCH;
            if branch.consumes_uniform() {
                bits |= UNIFORM;
            }
            if branch.reads_sample_flags() {
                bits |= BRANCH_MSF;
            }
            if let Some(row) = branch.row() {
                bits |= row_read(version, row);
            }
            bits
        }
        Instr::Alu(alu) => alu_digest(version, at, alu, facts),
    }
}

fn row_read(version: Version, row: u8) -> u32 {
    let mut bits = 0;
    if row < 3 {
        bits |= RF012_READ;
    }
    if row == 2 || row == 3 {
        bits |= RF23;
    }
    if row == 0 && version == Version::V71 {
        bits |= U_READ;
    }
    bits
}

fn alu_digest(version: Version, at: usize, alu: &Alu, facts: &ProgramFacts) -> u32 {
    let mut bits = 0;
    let s = alu.signals;
    if !s.is_empty() {
        for (signal, bit) in [
            (Signals::THRSW, THRSW),
            (Signals::LDVARY, LDVARY),
            (Signals::LDUNIF, LDUNIF_IMPLICIT | LDUNIF_ANY | UNIFORM | U_WRITE),
            (Signals::LDUNIFRF, LDUNIF_ANY | UNIFORM),
            (Signals::LDUNIFA, LDUNIF_IMPLICIT | LDUNIFA_ANY | U_WRITE),
            (Signals::LDUNIFARF, LDUNIFA_ANY),
            (Signals::WRTMUC, UNIFORM),
            (Signals::LDTLB, TLB),
            (Signals::LDTLBU, TLB | UNIFORM),
        ] {
            if s.has(signal) {
                bits |= bit;
            }
        }
    }
    for source in alu.add.src.iter().chain(&alu.mul.src) {
        match *source {
            Source::Row(row) if row > 3 => {}
            Source::Row(row) => bits |= row_read(version, row),
            Source::Acc(4) => bits |= R4_READ,
            Source::Acc(5) => bits |= U_READ,
            _ => {}
        }
    }
    if let Some(code) = alu.rotate {
        bits |= ROTATE;
        if code == 0 {
            bits |= U_READ;
        }
    }
    let dests =
        [(alu.add.result(), ROW_BY_ALU), (alu.mul.result(), ROW_BY_ALU), (alu.sig_dest, ROW_BY_SIGNAL)];
    for (dest, by) in dests {
        match dest {
            None => {}
            Some(Dest::Row(row)) => {
                bits |= by;
                if row == 2 || row == 3 {
                    bits |= RF23;
                }
                if row == 0 && version == Version::V71 {
                    bits |= U_WRITE;
                }
            }
            Some(Dest::Magic(n)) => bits |= magic_bits(version, n, by),
        }
    }
    bits |= match alu.add.op {
        Op::Setmsf => SETMSF,
        Op::Msf => MSF,
        Op::Vpmwt => VPMWT,
        Op::Tmuwt => TMUWT,
        op if op.is_vpm_write() => VPM_WRITE,
        op if op.is_sfu() => SFU_OP,
        _ => 0,
    };
    if !facts.z_writes.is_empty() && facts.z_writes.binary_search(&at).is_ok() {
        bits |= Z_WRITE;
    }
    bits
}

fn magic_bits(version: Version, n: u8, by: u32) -> u32 {
    match magic::class(version, n) {
        Class::Accumulator if n == 4 => R4_WRITE,
        // On 7.1 the broadcasts write a row, rf0.
        Class::Broadcast if version == Version::V71 => U_WRITE | by,
        Class::Broadcast => U_WRITE,
        Class::Tlb => TLB | TLB_WRITE | if n == magic::TLBU { UNIFORM } else { 0 },
        Class::Unifa => UNIFA_WRITE,
        Class::Tmu if n == magic::TMUAU => UNIFORM,
        Class::Vpm => VPM_WRITE | if n == magic::VPMU { UNIFORM } else { 0 },
        Class::Tsy => match n {
            magic::SYNCB => SYNC,
            magic::SYNCU => UNIFORM,
            _ => 0,
        },
        Class::Sfu => SFU_MAGIC,
        _ => 0,
    }
}

/// What is known of the way to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Context(u16);

impl Context {
    /// Slot 1 to 3 of the branch that many words before, or 0.
    const BRANCH_SLOT: (u16, u16) = (0, 3);
    /// Slot 1 or 2 of a thread switch or of the end, or 0.
    const SWITCH_SLOT: (u16, u16) = (2, 3);
    /// After the last-section mark.
    const FINAL: (u16, u16) = (4, 1);
    /// In the slots of the end.
    const ENDING: (u16, u16) = (5, 1);
    /// A barrier has been written and no switch has come yet.
    const SYNC: (u16, u16) = (6, 1);
    const Z_WRITTEN: (u16, u16) = (7, 1);
    const TLB_WRITTEN: (u16, u16) = (8, 1);
    /// The VPM has been written and not been waited for.
    const VPM_OPEN: (u16, u16) = (9, 1);
    /// What r5/rf0 holds (only in programs with ldvary), see `Held`.
    const UNIFORM_REGISTER: (u16, u16) = (10, 3);
    /// Scoreboard: 0 free, 1 lock requested by a switch whose slots are running, 2 in force.
    const LOCK: (u16, u16) = (12, 3);
    /// The previous instruction was an ldvary, whose C arrives after this one.
    const VARY: (u16, u16) = (14, 1);
    /// 7.1: the last write of rf0 was an implicit one, beside another signal's write of a row.
    const RF0_BESIDE: (u16, u16) = (15, 1);

    fn get(self, (shift, mask): (u16, u16)) -> u16 {
        self.0 >> shift & mask
    }

    fn set(&mut self, (shift, mask): (u16, u16), value: u16) {
        self.0 = self.0 & !(mask << shift) | value << shift;
    }
}

/// Contents of r5/rf0.
mod held {
    pub const NOTHING: u16 = 0;
    pub const OTHER: u16 = 1;
    /// A coefficient that nothing has read yet.
    pub const FRESH: u16 = 2;
    /// A coefficient that has been read.
    pub const USED: u16 = 3;
}

/// A word on some way to it.
#[derive(Clone, Copy, Debug)]
struct State {
    at: usize,
    context: Context,
}

/// Where control may go.
type States = SmallVec<[State; 4]>;

struct Walk<'a> {
    version: Version,
    instrs: &'a [Instr],
    bits: Vec<u32>,
    facts: &'a ProgramFacts<'a>,
    /// Anything in the program: any word with this bit.
    any: u32,
    /// An implicit write of rf0 may stand beside another signal's write (rule 36).
    rf0: bool,
    /// Returns of linking branches: where a branch through the link register may lead.
    returns: Vec<usize>,
}

pub(super) fn check(version: Version, instrs: &[Instr], facts: &ProgramFacts, report: &mut Report) {
    let bits: Vec<u32> = instrs.iter().enumerate().map(|(at, i)| digest(version, at, i, facts)).collect();
    let any = bits.iter().fold(0, |all, b| all | b);
    let returns = match any & BRANCH {
        0 => Vec::new(),
        _ => {
            (0..instrs.len()).filter(|&i| instrs[i].branch().is_some_and(|b| b.link)).map(|i| i + 4).collect()
        }
    };
    let beside = |b: u32| b & LDVARY != 0 || b & LDUNIF_IMPLICIT != 0 && b & ROW_BY_SIGNAL != 0;
    let rf0 = version == Version::V71 && bits.iter().any(|&b| beside(b));
    let walk = Walk { version, instrs, bits, facts, any, rf0, returns };
    walk.run(report);
}

/// Bits that matter only in slots, near the end, or next to an ldvary.
const PLAIN: u32 = LDUNIF_IMPLICIT
    | LDUNIF_ANY
    | LDUNIFA_ANY
    | UNIFORM
    | R4_READ
    | R4_WRITE
    | U_READ
    | U_WRITE
    | ROW_BY_ALU
    | ROW_BY_SIGNAL
    | RF23
    | RF012_READ
    | TMUWT;

/// Bits that make [`Walk::look_ahead`] necessary.
const TRIGGERS: u32 = LDVARY | SFU_MAGIC | SFU_OP | UNIFA_WRITE | SETMSF;

impl Walk<'_> {
    fn run(&self, report: &mut Report) {
        let mut start = Context(0);
        start.set(Context::FINAL, self.facts.single_segment.into());
        let mut work = vec![State { at: self.facts.entry, context: start }];
        let mut seen: Vec<SmallVec<[u16; 2]>> = vec![Default::default(); self.instrs.len()];
        let mut ended = false;
        let mut escapes = false;
        let mut next = States::new();
        // Words that no rule is about, in a plain place: the context stays as it is.
        let special = match self.any & (LDVARY | ROTATE) != 0 || self.facts.before_42_14 {
            true => u32::MAX,
            false if self.rf0 => !PLAIN | U_WRITE,
            false => !PLAIN,
        };
        while let Some(mut state) = work.pop() {
            let plain_place = state.context.get(Context::BRANCH_SLOT) == 0
                && state.context.get(Context::SWITCH_SLOT) == 0
                && special != u32::MAX;
            let known = loop {
                let Some(known) = seen.get_mut(state.at) else { break None };
                if known.contains(&state.context.0) {
                    break Some(true);
                }
                known.push(state.context.0);
                if !plain_place || self.bits[state.at] & special != 0 {
                    break Some(false);
                }
                state.at += 1;
            };
            match known {
                None => {
                    let last = self.instrs.len().saturating_sub(1);
                    report.hw("29", last, "the program runs past its last word without an end");
                    continue;
                }
                Some(true) => continue,
                Some(false) => {}
            }
            self.here(state, report);
            let after = self.after(state);
            let bits = self.bits[state.at];
            if bits & TRIGGERS != 0 || self.any & ROTATE != 0 || self.facts.before_42_14 {
                self.look_ahead(state, report);
            }
            next.clear();
            match after {
                None => {
                    ended = true;
                    self.at_end(state, report);
                }
                Some(context) => {
                    escapes |= !self.successors(state, context, &mut next, Some(report));
                    work.extend_from_slice(&next);
                }
            }
        }
        // A branch to an unknown place may lead to an end that is not seen.
        if !ended && !escapes && !self.instrs.is_empty() {
            report.hw("29", self.instrs.len() - 1, "no way through the program reaches an end");
        }
        if self.instrs.is_empty() {
            report.hw("29", 0, "the program is empty");
        }
    }

    /// The context after an instruction; `None` when the program has ended.
    fn after(&self, state: State) -> Option<Context> {
        let before = state.context;
        let bits = self.bits[state.at];
        let mut c = before;
        let slot = before.get(Context::SWITCH_SLOT);
        let mut new_slot = if slot == 1 { 2 } else { 0 };
        if slot == 2 {
            if before.get(Context::ENDING) != 0 {
                return None;
            }
            if self.version == Version::V42 {
                c.set(Context::UNIFORM_REGISTER, held::NOTHING);
            }
            if before.get(Context::LOCK) == 1 {
                c.set(Context::LOCK, 2);
            }
        }
        if bits & THRSW != 0 && before.get(Context::ENDING) == 0 {
            if before.get(Context::FINAL) != 0 {
                c.set(Context::ENDING, 1);
                new_slot = 1;
            } else if slot == 1 {
                c.set(Context::FINAL, 1);
                if c.get(Context::LOCK) == 0 {
                    c.set(Context::LOCK, 1);
                }
            } else {
                new_slot = 1;
                if self.facts.scoreboard_on_first && c.get(Context::LOCK) == 0 {
                    c.set(Context::LOCK, 1);
                }
            }
        }
        c.set(Context::SWITCH_SLOT, new_slot);
        // A switch that is requested now or whose slots are running takes the barrier along.
        let switches =
            new_slot != 0 && c.get(Context::ENDING) == 0 || slot != 0 && before.get(Context::ENDING) == 0;
        if switches {
            c.set(Context::SYNC, 0);
        } else if bits & SYNC != 0 {
            c.set(Context::SYNC, 1);
        }
        if bits & Z_WRITE != 0 {
            c.set(Context::Z_WRITTEN, 1);
        }
        if bits & TLB_WRITE != 0 && self.facts.stage == Stage::Fragment {
            c.set(Context::TLB_WRITTEN, 1);
        }
        if bits & VPMWT != 0 {
            c.set(Context::VPM_OPEN, 0);
        } else if bits & VPM_WRITE != 0 && self.version == Version::V42 {
            c.set(Context::VPM_OPEN, 1);
        }
        if self.any & LDVARY != 0 {
            if slot != 2 || self.version == Version::V71 {
                let mut register = before.get(Context::UNIFORM_REGISTER);
                if bits & U_READ != 0 && register == held::FRESH {
                    register = held::USED;
                }
                if bits & U_WRITE != 0 {
                    register = held::OTHER;
                }
                if before.get(Context::VARY) != 0 {
                    register = held::FRESH;
                }
                c.set(Context::UNIFORM_REGISTER, register);
            }
            c.set(Context::VARY, (bits & LDVARY != 0).into());
        }
        c.set(Context::RF0_BESIDE, self.rf0_beside(state).into());
        let branch_slot = before.get(Context::BRANCH_SLOT);
        let next_branch_slot = if bits & BRANCH != 0 {
            1
        } else if (1..3).contains(&branch_slot) {
            branch_slot + 1
        } else {
            0
        };
        c.set(Context::BRANCH_SLOT, next_branch_slot);
        Some(c)
    }

    /// Whether the last write of rf0, this word's included, was an implicit one beside another signal's write of a row. The
    /// coefficient of a varying is written in the instruction after the ldvary.
    fn rf0_beside(&self, State { at, context }: State) -> bool {
        let bits = self.bits[at];
        if !self.rf0 {
            false
        } else if context.get(Context::VARY) != 0 || bits & LDUNIF_IMPLICIT != 0 {
            bits & ROW_BY_SIGNAL != 0
        } else {
            bits & U_WRITE == 0 && context.get(Context::RF0_BESIDE) != 0
        }
    }

    /// Where control goes after an instruction. False when it may go to a place that the words do not tell.
    fn successors(
        &self,
        state: State,
        context: Context,
        to: &mut States,
        mut report: Option<&mut Report>,
    ) -> bool {
        if state.context.get(Context::BRANCH_SLOT) != 3 || self.bits[state.at] & BRANCH != 0 {
            to.push(State { at: state.at + 1, context });
            return true;
        }
        let from = state.at - 3;
        let Some(branch) = self.instrs[from].branch() else { return true };
        if branch.cond.is_conditional() {
            to.push(State { at: state.at + 1, context });
        }
        let mut go = |target: Option<usize>| match target {
            Some(at) if at < self.instrs.len() => to.push(State { at, context }),
            _ => {
                if let Some(report) = report.as_deref_mut() {
                    report.hw("29", from, "branch to a place outside of the program");
                }
            }
        };
        match branch.target {
            BranchTarget::Relative(offset) => {
                let target = from as i64 + Branch::DELAY_SLOTS as i64 + 1 + i64::from(offset >> 3);
                go(usize::try_from(target).ok());
                true
            }
            BranchTarget::Absolute(address) => match self.facts.code_address {
                Some(base) => {
                    go(address.checked_sub(base).filter(|o| o.is_multiple_of(8)).map(|o| o as usize / 8));
                    true
                }
                None => false,
            },
            BranchTarget::Link => {
                for &place in &self.returns {
                    go(Some(place));
                }
                !self.returns.is_empty()
            }
            BranchTarget::Row(_) => false,
        }
    }

    /// Rules about a word in its context.
    fn here(&self, state: State, report: &mut Report) {
        let State { at, context } = state;
        let bits = self.bits[at];
        if bits & (THRSW | UNIFA_WRITE | SYNC | TLB | SETMSF | MSF | BRANCH) != 0 {
            self.special_words(state, report);
        }
        if context.get(Context::BRANCH_SLOT) != 0 {
            self.branch_slots(state, report);
        }
        let slot = context.get(Context::SWITCH_SLOT);
        if slot != 0 {
            self.switch_slots(state, slot, report);
        }
        let ends_here =
            bits & THRSW != 0 && context.get(Context::FINAL) != 0 && context.get(Context::ENDING) == 0;
        if ends_here {
            self.end_slots(at, 0, report);
        } else if context.get(Context::ENDING) != 0 {
            self.end_slots(at, slot, report);
        }
    }

    fn special_words(&self, state: State, report: &mut Report) {
        let State { at, context } = state;
        let bits = self.bits[at];
        let slot = context.get(Context::SWITCH_SLOT);
        if bits & THRSW != 0 {
            if context.get(Context::ENDING) != 0 {
                report.hw("29", at, "thread switch in the slots of the end");
            } else if slot == 2 {
                report.drv("28", at, "thread switch in the second slot of a thread switch");
            }
            if bits & UNIFA_WRITE != 0 {
                report.hw("35", at, "unifa written in the instruction of a thread switch");
            }
        }
        if bits & SYNC != 0 && context.get(Context::SYNC) != 0 {
            report.hw("60", at, "second barrier without a thread switch in between");
        }
        if bits & TLB != 0 && context.get(Context::LOCK) != 2 {
            report.hw("45", at, "tile-buffer access before the scoreboard lock is in force");
        }
        if context.get(Context::Z_WRITTEN) != 0 && bits & (SETMSF | MSF | BRANCH_MSF) != 0 {
            report.hw("44", at, "sample flags used after the Z write");
        }
    }

    /// Rules about the delay slots of a branch.
    fn branch_slots(&self, state: State, report: &mut Report) {
        let at = state.at;
        let bits = self.bits[at];
        let from = at - usize::from(state.context.get(Context::BRANCH_SLOT));
        if bits & THRSW != 0 {
            report.hw("30", at, "thread switch in a delay slot of a branch");
        }
        if bits & BRANCH != 0 {
            report.hw("37", at, "branch in a delay slot of a branch");
        }
        if bits & UNIFA_WRITE != 0 {
            report.drv("39", at, "unifa written in a delay slot of a branch");
        }
        if bits & UNIFORM != 0 {
            match self.instrs[from].branch().and_then(|b| b.uniforms) {
                Some(_) => report.hw("40", at, "uniform taken in a slot of a branch that moves the pointer"),
                None => report.drv("40b", at, "uniform taken in a delay slot of a branch"),
            }
        }
    }

    /// Rules about the delay slots of a thread switch.
    fn switch_slots(&self, state: State, slot: u16, report: &mut Report) {
        let at = state.at;
        let bits = self.bits[at];
        match self.version {
            Version::V42 => {
                if bits & SFU_MAGIC != 0 {
                    report.hw("31", at, "special function started in a slot of a thread switch");
                }
                if bits & LDVARY != 0 {
                    report.hw("33", at, "ldvary in a slot of a thread switch");
                }
            }
            Version::V71 => {
                if bits & SFU_OP != 0 {
                    report.drv("32", at, "special function in a slot of a thread switch");
                }
                if bits & LDVARY != 0 && slot == 2 {
                    report.hw("34", at, "ldvary in the second slot of a thread switch");
                }
                if slot == 2 && bits & ROW_BY_SIGNAL != 0 && self.rf0_beside(state) {
                    report.hw("36", at, "row written by a signal in slot 2, and rf0 last beside another one");
                }
            }
        }
        if bits & UNIFA_WRITE != 0 {
            report.hw("35", at, "unifa written in a slot of a thread switch");
        }
        if bits & BRANCH != 0 {
            report.hw("38", at, "branch in a slot of a thread switch");
        }
    }

    /// Rules about the end instruction (slot 0) and the two after it.
    fn end_slots(&self, at: usize, slot: u16, report: &mut Report) {
        let bits = self.bits[at];
        match self.version {
            Version::V42 => {
                if bits & (ROW_BY_ALU | ROW_BY_SIGNAL) != 0 {
                    report.hw("47", at, format!("row written in slot {slot} of the end"));
                }
                if bits & RF012_READ != 0 {
                    report.hw("50", at, format!("rf0, rf1 or rf2 read in slot {slot} of the end"));
                }
                if bits & VPMWT != 0 {
                    report.hw("52", at, format!("vpmwt in slot {slot} of the end"));
                }
                if bits & TMUWT != 0 && slot == 2 {
                    report.hw("52", at, "tmuwt in slot 2 of the end");
                }
            }
            Version::V71 => {
                if bits & ROW_BY_ALU != 0 && slot == 0 {
                    report.hw("48", at, "row written by ADD or MUL in the end instruction");
                }
                if bits & RF23 != 0 {
                    report.hw("49", at, format!("rf2 or rf3 used in slot {slot} of the end"));
                }
                if bits & TMUWT != 0 && slot == 2 {
                    report.drv("52b", at, "tmuwt in slot 2 of the end");
                }
            }
        }
        if bits & LDVARY != 0 {
            report.hw("51", at, format!("ldvary in slot {slot} of the end"));
        }
        if bits & UNIFORM != 0 && slot != 0 {
            report.hw("51", at, format!("uniform taken in slot {slot} of the end"));
        }
        if bits & Z_WRITE != 0 && slot == 2 {
            report.hw("51", at, "Z written in slot 2 of the end");
        }
        if bits & UNIFA_WRITE != 0 {
            report.hw("51", at, format!("unifa written in slot {slot} of the end"));
        }
    }

    /// The program ends behind this word.
    fn at_end(&self, state: State, report: &mut Report) {
        let bits = self.bits[state.at];
        let context = state.context;
        if context.get(Context::SYNC) != 0 || bits & SYNC != 0 {
            report.hw("60", state.at, "the program ends between a barrier and a thread switch");
        }
        if self.version == Version::V42
            && bits & VPMWT == 0
            && (context.get(Context::VPM_OPEN) != 0 || bits & VPM_WRITE != 0)
        {
            report.hw("53", state.at, "the program ends without vpmwt after a VPM write");
        }
        let written = context.get(Context::TLB_WRITTEN) != 0 || bits & TLB_WRITE != 0;
        if self.facts.stage == Stage::Fragment && !written {
            report.hw("64", state.at, "a fragment program ends without a tile-buffer write");
        }
    }

    /// Rules about the instructions that follow this one on every path.
    fn look_ahead(&self, from: State, report: &mut Report) {
        let bits = self.bits[from.at];
        let reach = if bits & UNIFA_WRITE != 0 {
            3
        } else if bits & SFU_MAGIC != 0 {
            2
        } else {
            1
        };
        // At most two ways leave an instruction, so this stays small.
        let mut ways: SmallVec<[(u32, State); 8]> = smallvec![(0, from)];
        let mut next = States::new();
        while let Some((distance, state)) = ways.pop() {
            if distance != 0 {
                self.pair(from, state, distance, report);
            }
            if distance == reach {
                continue;
            }
            let Some(context) = self.after(state) else { continue };
            next.clear();
            self.successors(state, context, &mut next, None);
            ways.extend(next.iter().filter(|s| s.at < self.instrs.len()).map(|&s| (distance + 1, s)));
        }
    }

    /// Rules about two instructions, the second `distance` after the first.
    fn pair(&self, first: State, second: State, distance: u32, report: &mut Report) {
        let (a, b) = (self.bits[first.at], self.bits[second.at]);
        let at = second.at;
        let v42 = self.version == Version::V42;
        if distance == 1 {
            if a & LDVARY != 0 {
                self.after_ldvary(second, report);
            }
            if self.facts.before_42_14
                && v42
                && (a & LDUNIF_ANY != 0 && b & LDUNIFA_ANY != 0
                    || a & LDUNIFA_ANY != 0 && b & LDUNIF_ANY != 0)
            {
                report.hw("19", at, "ldunif and ldunifa in neighbouring instructions");
            }
            if a & SFU_MAGIC != 0 && b & (R4_READ | R4_WRITE | SFU_MAGIC) != 0 {
                report.hw("23", at, "r4 or another special function right after a special function");
            }
            if a & SFU_OP != 0 && self.reads_result(first.at, at) {
                report.drv("25", at, "waits a cycle for the special function of the previous instruction");
            }
            if b & ROTATE != 0 {
                self.rotation(first.at, at, report);
            }
            if a & SETMSF != 0 && b & BRANCH_MSF != 0 {
                match v42 {
                    true => report.hw("43", at, "branch on sample flags right after setmsf"),
                    false => report.drv("43b", at, "branch on sample flags right after setmsf"),
                }
            }
        }
        if a & SFU_MAGIC != 0 && distance <= 2 && b & R4_READ != 0 {
            report.drv("24", at, format!("r4 read {distance} after the special function"));
        }
        if a & UNIFA_WRITE != 0 {
            if b & LDUNIFA_ANY != 0 {
                report.hw("26", at, format!("ldunifa {distance} after the write of unifa"));
            }
            if b & BRANCH != 0 {
                report.drv("39", at, format!("branch {distance} after the write of unifa"));
            }
        }
    }

    /// Rules 18, 20, 21 and 42.
    fn after_ldvary(&self, second: State, report: &mut Report) {
        let b = self.bits[second.at];
        let at = second.at;
        if b & LDUNIF_IMPLICIT != 0 {
            report.hw("18", at, "ldunif or ldunifa right after ldvary");
        }
        // Reading the register here gives what it held before. That is meant in a pipelined sequence (the coefficient of
        // the varying before, or another value); it is not when nothing else can be in it.
        let register = second.context.get(Context::UNIFORM_REGISTER);
        if b & U_READ != 0 && (register == held::NOTHING || register == held::USED) {
            report.hw("20", at, "coefficient read one instruction after ldvary");
        }
        if self.version == Version::V71 && b & U_WRITE != 0 && b & LDVARY == 0 {
            report.hw("21", at, "rf0 written right after ldvary");
        }
        if b & BRANCH != 0 {
            report.drv("42", at, "branch right after ldvary");
        }
    }

    /// Whether a word reads the row that the special function of another one writes.
    fn reads_result(&self, producer: usize, reader: usize) -> bool {
        let Some(row) = self.instrs[producer].alu().and_then(|alu| alu.add.result()).and_then(Dest::row)
        else {
            return false;
        };
        let reads = |alu: &Alu| alu.sources().any(|(source, _)| source == Source::Row(row));
        self.instrs[reader].alu().is_some_and(reads)
    }

    /// Rule 27: what a rotation turns, and r5 if it holds the count, must not come from the previous instruction.
    fn rotation(&self, before: usize, at: usize, report: &mut Report) {
        let (Some(first), Some(second)) = (self.instrs[before].alu(), self.instrs[at].alu()) else { return };
        for written in first.writes(self.version) {
            let source = match written {
                Loc::Row(r) => Source::Row(r),
                Loc::Acc(r) => Source::Acc(r),
            };
            let turned = second.mul.sources().any(|(s, _)| s == source);
            let count = second.rotate == Some(0) && written == Loc::Acc(5);
            // An immediate count may follow a write of r5; that r5 may then be rotated itself is not shown.
            if turned || count {
                report.hw("27", at, "rotation of a register that the previous instruction wrote");
            }
        }
    }
}
