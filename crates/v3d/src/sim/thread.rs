//! One hardware thread: its registers with their poison, and what one instruction does to them.
//!
//! An instruction reads all its sources and the flags as they were before it (section 2), then signals deliver, then
//! results are written. Delayed results (r4 of a magic special function, section 9), delay slots of branches and of
//! thread switches are counted in instructions.

mod effect;
mod part;

use super::code::{ACC, ALL, Code, From, R4, REGISTERS, Step, To};
use super::dispatch::Totals;
use super::graphics::{PlacedSampler, Stage};
use super::rules::{Slots, check_slots};
use super::tmu::Tmu;
use super::{Fault, LANES, Lanes, Mask, Options, Outcome, Scratch, UniformStream};
use crate::instr::{Cond, Signals, Unpack, Version};
use kempe_ir::exec::{Memory, PlacedImage};
use rustc_hash::FxHashMap;

/// Why a register is poison. The cause of the first poisoned source travels with the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// Nothing wrote the register on this lane.
    Never,
    /// Lost at a thread switch.
    Switch,
    /// rf0 of 7.1 after a switch (rule 36).
    Rf0,
    /// The reference does not say what the hardware gives.
    Unsettled,
    /// The lane took no part in the load.
    OffLane,
    /// Two results of one instruction.
    Clash,
    /// No lane of the quad has a sample flag, or no vertex is there.
    Dead,
    /// Scratch that this lane never stored.
    Scratch,
    /// Memory in which an undefined value had been stored.
    Memory,
}

impl Cause {
    pub fn rule(self) -> &'static str {
        match self {
            Cause::Switch => "58",
            Cause::Rf0 => "36",
            _ => "undefined",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Cause::Never => "was never written",
            Cause::Switch => "was lost at a thread switch",
            Cause::Rf0 => "depends on rf0 after a switch whose last slot wrote a register by a signal",
            Cause::Unsettled => "is a value that the reference does not settle",
            Cause::OffLane => "comes from a load that the lane took no part in",
            Cause::Clash => "was written twice by one instruction",
            Cause::Dead => "is given to lanes that nobody asks for anything",
            Cause::Scratch => "was loaded from scratch that was never stored",
            Cause::Memory => "was loaded from where an undefined value had been stored",
        }
    }
}

/// A reason to stop, before the place is known.
#[derive(Debug)]
pub(super) struct Trouble {
    pub rule: &'static str,
    pub lane: Option<u8>,
    pub message: String,
}

impl Trouble {
    #[cold]
    pub fn new(rule: &'static str, message: impl Into<String>) -> Trouble {
        Trouble { rule, lane: None, message: message.into() }
    }

    #[cold]
    pub fn lane(rule: &'static str, lane: u32, message: impl Into<String>) -> Trouble {
        Trouble { rule, lane: Some(lane as u8), message: message.into() }
    }

    /// Poison would have an effect.
    #[cold]
    pub fn poison(cause: Cause, lanes: Mask, what: &str) -> Trouble {
        Trouble::lane(cause.rule(), lanes.trailing_zeros(), format!("{what} {}", cause.text()))
    }
}

/// A value with its poison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub v: Lanes,
    pub poison: Mask,
    pub cause: Cause,
}

impl Value {
    pub fn splat(word: u32) -> Value {
        Value { v: [word; LANES], poison: 0, cause: Cause::Never }
    }
}

/// A result on its way to its destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub value: Value,
    /// Lanes that take part.
    pub lanes: Mask,
    /// Lanes of which it is not known whether they do, because the flag is poison.
    pub maybe: Mask,
    pub flag_cause: Cause,
    /// The entry of [`Thread::result_origin`] that names the unknowns of the poisoned lanes; `None`: new ones.
    pub origin: Option<u8>,
}

/// Address of the first word of the stream when it is given as words: outside of the 32-bit space.
const STREAM: u64 = 1 << 32;

/// A uniform pointer moved by some bytes: inside the stream (a place before its start stays one, so that reading it is
/// noticed) or modulo 2^32 in memory.
fn moved(pointer: u64, offset: i32) -> u64 {
    let to = pointer.wrapping_add_signed(i64::from(offset));
    if pointer < STREAM {
        to & 0xffff_ffff
    } else if to < STREAM {
        u64::MAX
    } else {
        to
    }
}

/// What all threads of a run share.
pub(super) struct Machine<'a> {
    pub memory: &'a mut Memory,
    /// The memory at dispatch, for uniforms; `None` when the program cannot read it.
    pub snapshot: Option<Memory>,
    pub options: Options,
    pub scratch: Option<Scratch>,
    pub images: &'a [PlacedImage],
    pub samplers: &'a [PlacedSampler],
    /// One flag per scratch word.
    pub scratch_poison: Vec<bool>,
    /// Bytes of memory that hold an undefined value: one bit per byte, by word address / 4 (see
    /// [`Options::undefined_in_memory`]).
    pub undefined: FxHashMap<u32, u8>,
    pub executed: Vec<u64>,
    pub instructions: u64,
    pub warnings: Vec<Fault>,
}

impl<'a> Machine<'a> {
    /// A machine without images and samplers.
    pub fn new(
        code: &Code,
        memory: &'a mut Memory,
        options: &Options,
        scratch: Option<Scratch>,
    ) -> Machine<'a> {
        let scratch_words = scratch.map_or(0, |s| {
            let bytes = memory.region_at(s.base).map_or(0, |r| memory.bytes(r).len());
            bytes / 4
        });
        let snapshot = code.reads_snapshot.then(|| memory.clone());
        Machine {
            memory,
            snapshot,
            options: *options,
            scratch,
            images: &[],
            samplers: &[],
            scratch_poison: vec![true; scratch_words],
            undefined: FxHashMap::default(),
            executed: vec![0; code.steps.len()],
            instructions: 0,
            warnings: Vec::new(),
        }
    }

    /// What the run did.
    pub fn outcome(self, result: Result<(), Fault>, totals: Totals) -> Outcome {
        let bytes =
            |(&word, &m): (&u32, &u8)| (0..4).filter(move |k| m >> k & 1 != 0).map(move |k| word * 4 + k);
        let mut undefined: Vec<u32> = self.undefined.iter().flat_map(bytes).collect();
        undefined.sort_unstable();
        Outcome {
            result,
            executed: self.executed,
            instructions: self.instructions,
            stalls: totals.stalls,
            switches: totals.switches,
            threads: totals.threads,
            warnings: self.warnings,
            undefined,
        }
    }

    /// Whether an access to `bytes` bytes at an aligned address meets an undefined one.
    #[inline]
    pub fn is_undefined(&self, address: u32, bytes: u32) -> bool {
        !self.undefined.is_empty()
            && self.undefined.get(&(address / 4)).is_some_and(|m| m & byte_mask(address, bytes) != 0)
    }

    /// Remembers whether a store of that width left an undefined value.
    #[inline]
    pub fn set_undefined(&mut self, address: u32, bytes: u32, undefined: bool) {
        if undefined {
            *self.undefined.entry(address / 4).or_default() |= byte_mask(address, bytes);
        } else if !self.undefined.is_empty()
            && let Some(m) = self.undefined.get_mut(&(address / 4))
        {
            *m &= !byte_mask(address, bytes);
            if *m == 0 {
                self.undefined.remove(&(address / 4));
            }
        }
    }

    /// Notes a broken rule of the driver class once.
    #[cold]
    pub fn warn(&mut self, thread: &Thread, rule: &'static str, message: String) {
        if self.warnings.iter().all(|w| w.rule != rule) {
            self.warnings.push(Fault {
                rule,
                pc: thread.pc,
                lane: None,
                supergroup: thread.supergroup,
                batch: thread.batch,
                message,
            });
        }
    }

    fn uniform_word(&self, code: &Code, address: u64) -> Result<u32, Trouble> {
        if address >= STREAM {
            let UniformStream::Words(words) = &code.uniforms else {
                return Err(Trouble::new("uniforms", "the uniform pointer left the address space"));
            };
            let offset = address - STREAM;
            return match words.get((offset / 4) as usize) {
                Some(&word) if offset.is_multiple_of(4) => Ok(word),
                _ => Err(Trouble::new(
                    "uniforms",
                    format!("uniform at byte {offset} of a stream of {} words", words.len()),
                )),
            };
        }
        let memory = self.snapshot.as_ref().unwrap_or(self.memory);
        memory.read_u32(address as u32).map_err(|f| Trouble::new("uniforms", f.to_string()))
    }
}

/// What an instruction did to the thread as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    None,
    /// A thread switch has taken place.
    Switch,
    /// A thread switch has taken place and the thread waits at a barrier.
    Barrier,
    /// The program has ended.
    End,
}

/// State of one thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub regs: [Lanes; REGISTERS],
    /// Poison of the low halves in the low 16 bits, of the high halves above: packed writes define one half.
    poison: [u32; REGISTERS],
    cause: [Cause; REGISTERS],
    /// For poisoned lanes: a name of the unknown value, such that the name of an exclusive or is that of the names.
    origin: [Lanes; REGISTERS],
    /// The same for the results of the two parts, while an instruction is executed.
    result_origin: [Lanes; 2],
    /// Unknowns named so far.
    unknowns: u32,
    pub a: Mask,
    pub b: Mask,
    pub a_poison: Mask,
    pub b_poison: Mask,
    flag_cause: Cause,
    /// The multiply top register.
    rtop: Lanes,
    rtop_poison: Mask,
    /// A multop has not been followed by a umul24; after a switch in between the register is lost (rule 46).
    rtop_pending: bool,
    rtop_lost: bool,
    /// Sample flags by lane, and the lanes with any.
    pub(super) sample_flags: [u8; LANES],
    pub covered: Mask,
    link: Option<u32>,
    pub pc: usize,
    uniform: u64,
    /// Side-band address, and the instruction count at which it was written.
    side: Option<u32>,
    side_since: u64,
    /// Instructions of this thread.
    pub(super) clock: u64,
    /// Waits for the special function unit, and thread switches.
    pub(super) stalls: u64,
    pub(super) switches: u64,
    /// The instruction before this one on the way of the thread; `usize::MAX` at the start.
    pub(super) before: usize,
    /// A taken branch: instructions left and target.
    jump: Option<(u8, usize)>,
    /// Delay slots left of the last branch, taken or not, and whether it moves the uniform pointer.
    branch_slots: u8,
    moves_pointer: bool,
    /// Instructions until a requested switch takes place; 0: none requested.
    pub(super) switch_in: u8,
    pub(super) ending: bool,
    last_section: bool,
    /// A barrier starts at the next switch.
    barrier: bool,
    /// r4 of the special function that the previous instruction started.
    late: Option<Value>,
    late_next: Option<Value>,
    /// Row that the previous instruction sent a special function to; 255: none.
    sfu_row: u8,
    /// 7.1: the last write of rf0 was an implicit one next to another signal's write (rule 36).
    rf0_conflict: bool,
    pub tmu: Tmu,
    pub tidx: u32,
    pub supergroup: u64,
    pub batch: u32,
    pub done: bool,
    /// What a vertex or fragment has besides; `None`: compute.
    pub stage: Option<Stage>,
}

/// Numbers to names: spread so that the exclusive or of a few names is not another name.
fn name(number: u32) -> u32 {
    let mut x = number.wrapping_add(1);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// The bytes of an aligned access as bits of its word.
fn byte_mask(address: u32, bytes: u32) -> u8 {
    ((1u8 << bytes) - 1) << (address % 4)
}

/// The same lanes for both halves of a register.
#[inline(always)]
fn halves(lanes: Mask) -> u32 {
    u32::from(lanes) * 0x1_0001
}

/// Lanes of quads in which any lane of `m` is set.
pub(super) fn whole_quads(m: Mask) -> Mask {
    let any = m | m >> 1;
    let any = (any | any >> 2) & 0x1111;
    any * 0xf
}

impl Thread {
    pub fn new(code: &Code) -> Thread {
        let uniform = match code.uniforms {
            UniformStream::Words(_) => STREAM,
            UniformStream::Address(address) => u64::from(address),
        };
        Thread {
            regs: [[0xdead_beef; LANES]; REGISTERS],
            poison: [u32::MAX; REGISTERS],
            cause: [Cause::Never; REGISTERS],
            origin: std::array::from_fn(|r| std::array::from_fn(|i| name((r * LANES + i) as u32))),
            result_origin: [[0; LANES]; 2],
            unknowns: (REGISTERS * LANES) as u32,
            a: 0,
            b: 0,
            a_poison: ALL,
            b_poison: ALL,
            flag_cause: Cause::Never,
            rtop: [0; LANES],
            rtop_poison: 0,
            rtop_pending: false,
            rtop_lost: false,
            sample_flags: [0xf; LANES],
            covered: ALL,
            link: None,
            pc: 0,
            uniform,
            side: None,
            side_since: 0,
            clock: 0,
            stalls: 0,
            switches: 0,
            before: usize::MAX,
            jump: None,
            branch_slots: 0,
            moves_pointer: false,
            switch_in: 0,
            ending: false,
            last_section: code.single_segment,
            barrier: false,
            late: None,
            late_next: None,
            sfu_row: 255,
            rf0_conflict: false,
            tmu: Tmu::new(code.version, code.threads),
            tidx: 0,
            supergroup: 0,
            batch: 0,
            done: false,
            stage: None,
        }
    }

    pub fn set(&mut self, register: u8, value: Lanes) {
        self.regs[register as usize] = value;
        self.poison[register as usize] = 0;
    }

    /// A register with its poison.
    pub fn get(&self, register: u8) -> (&Lanes, Mask) {
        let poison = self.poison[register as usize];
        (&self.regs[register as usize], (poison | poison >> 16) as Mask)
    }

    pub(super) fn set_poison(&mut self, register: u8, lanes: Mask, cause: Cause) {
        self.poison[register as usize] = halves(lanes);
        if lanes != 0 {
            self.cause[register as usize] = cause;
            self.origin[register as usize] = self.new_unknowns();
        }
    }

    /// Names for what nothing is known of.
    #[cold]
    fn new_unknowns(&mut self) -> Lanes {
        let first = self.unknowns;
        self.unknowns = first.wrapping_add(LANES as u32);
        std::array::from_fn(|i| name(first.wrapping_add(i as u32)))
    }

    pub fn set_flags(&mut self, a: Mask, b: Mask) {
        (self.a, self.b) = (a, b);
        (self.a_poison, self.b_poison) = (0, 0);
    }

    pub fn set_covered(&mut self, covered: Mask) {
        self.covered = covered;
        self.sample_flags = std::array::from_fn(|i| if covered >> i & 1 != 0 { 0xf } else { 0 });
    }

    pub fn set_samples(&mut self, samples: [u8; LANES]) {
        self.sample_flags = samples.map(|s| s & 15);
        self.covered = super::alu::mask(|i| self.sample_flags[i] != 0);
    }

    /// A start word, undefined in some lanes.
    pub fn set_start(&mut self, register: u8, value: Lanes, undefined: Mask) {
        self.set(register, value);
        self.set_poison(register, undefined, Cause::Dead);
    }

    /// Executes the instruction at `pc`.
    #[inline]
    pub fn step(&mut self, code: &Code, m: &mut Machine) -> Result<Event, Trouble> {
        let at = self.pc;
        let Some(step) = code.steps.get(at) else {
            return Err(Trouble::new("29", "ran past the end of the program"));
        };
        if m.instructions >= m.options.step_limit {
            return Err(Trouble::new("limit", format!("more than {} instructions", m.options.step_limit)));
        }
        m.instructions += 1;
        m.executed[at] += 1;
        self.clock += 1;
        let mut fresh_switch = false;
        let sfu_row = std::mem::replace(&mut self.sfu_row, 255);
        let branch_slot = self.branch_slots != 0;
        self.branch_slots = self.branch_slots.saturating_sub(1);
        match step {
            Step::Alu(op) => {
                let slot = 3 - self.switch_in;
                if op.signals.has(Signals::THRSW) && !self.ending {
                    if branch_slot {
                        return Err(Trouble::new("30", "thread switch in a delay slot of a branch"));
                    }
                    if self.last_section {
                        self.ending = true;
                        fresh_switch = true;
                    } else if self.switch_in == 2 {
                        self.last_section = true;
                    } else {
                        fresh_switch = true;
                    }
                } else if op.signals.has(Signals::THRSW) {
                    return Err(Trouble::new(
                        "29",
                        "thread switch after the end of the program was requested",
                    ));
                }
                let asks = op.signals.has(Signals::THRSW);
                if branch_slot || asks || self.switch_in != 0 {
                    let slots = Slots {
                        moved_pointer: branch_slot && self.moves_pointer,
                        switch: slot % 3,
                        end: self.ending.then_some(if fresh_switch { 0 } else { slot % 3 }),
                        asks,
                    };
                    check_slots(code.version, op.traits, &slots)?;
                }
                if op.rotate.is_some()
                    && let Some(alu) = code.instrs[at].alu()
                {
                    self.check_rotation(code, alu)?;
                }
                if m.options.before_42_14 && self.neighbours(code, op.traits) {
                    return Err(Trouble::new("19", "ldunif and ldunifa in neighbouring instructions"));
                }
                if self.stage.is_some() {
                    self.before_fragment(step, code, m)?;
                }
                self.alu(op, code, m, sfu_row)?;
            }
            Step::Branch(branch) => {
                if branch_slot {
                    return Err(Trouble::new("37", "branch in a delay slot of a branch"));
                }
                if self.stage.is_some() {
                    self.before_fragment(step, code, m)?;
                }
                self.branch(branch, code, m)?;
            }
            Step::Invalid(rule, what) => return Err(Trouble::new(rule, *what)),
        }
        self.before = at;
        if let Some(value) = self.late.take() {
            self.regs[R4 as usize] = value.v;
            self.set_poison(R4, value.poison, value.cause);
        }
        self.late = self.late_next.take();
        if self.stage.is_some() {
            self.after_fragment(step, code);
        }

        self.pc = at + 1;
        if code.pieces.len() > 1 && !code.continues_at(self.pc) {
            self.pc = code.steps.len();
        }
        if let Some((left, target)) = &mut self.jump {
            if *left == 0 {
                self.pc = *target;
                self.jump = None;
            } else {
                *left -= 1;
            }
        }
        let mut event = Event::None;
        if self.switch_in != 0 {
            self.switch_in -= 1;
            if self.switch_in == 0 {
                event = self.switch(code, m, step, self.ending && !fresh_switch)?;
            }
        }
        if fresh_switch {
            self.switch_in = 2;
        }
        Ok(event)
    }

    /// The switch takes place: what the threads of a QPU share is lost.
    fn switch(&mut self, code: &Code, m: &mut Machine, last: &Step, end: bool) -> Result<Event, Trouble> {
        self.tmu.at_switch()?;
        if end {
            if self.barrier {
                return Err(Trouble::new("60", "the program ends between a barrier and a thread switch"));
            }
            self.tmu.at_end()?;
            self.at_stage_end(code.version, m)?;
            if !self.tmu.is_reset() {
                m.warn(self, "68", "bytes are left in the TMU configuration register".to_owned());
            }
            self.done = true;
            return Ok(Event::End);
        }
        self.switches += 1;
        let last_switch = self.last_section;
        if let Some(fragment) = self.fragment() {
            fragment.tile.at_switch(last_switch);
        }
        self.rtop_lost |= self.rtop_pending;
        self.rtop_pending = false;
        if code.version == Version::V71 {
            // Rule 36: the last slot wrote a row by an addressed signal, and rf0's last write was an implicit one in
            // an instruction with another signal's write, or falls in this slot.
            if let Step::Alu(op) = last
                && matches!(op.sig_to, To::Register(_))
                && (self.rf0_conflict || op.signals.has(Signals::LDUNIF | Signals::LDUNIFA))
            {
                self.set_poison(0, ALL, Cause::Rf0);
            }
            self.rf0_conflict = false;
        }
        if m.options.strict {
            self.a_poison = ALL;
            self.b_poison = ALL;
            self.flag_cause = Cause::Switch;
            for r in ACC..REGISTERS as u8 {
                self.set_poison(r, ALL, Cause::Switch);
            }
            if let Some(late) = &mut self.late {
                late.poison = ALL;
                late.cause = Cause::Switch;
            }
            self.link = None;
        }
        Ok(if std::mem::take(&mut self.barrier) { Event::Barrier } else { Event::Switch })
    }

    #[inline]
    fn read(&self, from: From, how: Unpack) -> Value {
        match from {
            From::Register(r) => {
                let r = r as usize;
                let poison = match how {
                    Unpack::L | Unpack::Ll | Unpack::Ul | Unpack::Il => self.poison[r],
                    Unpack::H | Unpack::Hh | Unpack::Uh | Unpack::Ih => self.poison[r] >> 16,
                    _ => self.poison[r] | self.poison[r] >> 16,
                };
                Value { v: self.regs[r], poison: poison as Mask, cause: self.cause[r] }
            }
            From::Constant(word) => Value::splat(word),
            From::Nothing => Value::splat(0),
        }
    }

    /// The lanes in which a condition holds, and those in which that is not known.
    #[inline]
    fn lanes(&self, cond: Option<Cond>) -> (Mask, Mask) {
        match cond {
            None => (ALL, 0),
            Some(Cond::IfA) => (self.a & !self.a_poison, self.a_poison),
            Some(Cond::IfNa) => (!self.a & !self.a_poison, self.a_poison),
            Some(Cond::IfB) => (self.b & !self.b_poison, self.b_poison),
            Some(Cond::IfNb) => (!self.b & !self.b_poison, self.b_poison),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_fill_up() {
        assert_eq!(whole_quads(0x0012), 0x00ff);
        assert_eq!(whole_quads(0x8000), 0xf000);
        assert_eq!(whole_quads(0), 0);
    }
}
