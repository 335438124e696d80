//! The decoded words of one block, executed with symbols, against the effects that its machine code has.
//!
//! Facts: reference sections 2 (both parts read before anything is written), 5 (signals), 7 (conditions, flags), 10
//! (delay slots), 12.2 (TMU), 12.6 (scratch), 13.1 to 13.3 (thread switches, program end). Timing rules are the validator's.

use super::graphics::{Graphics, is_made};
use super::program::{Behaviour, FLAG_SET, operation, question};
use super::value::{Value, Values, has_integer_flags};
use crate::decode::decode;
use crate::instr::{
    Alu, Branch, BranchCond, BranchTarget, Cond, Dest, Instr, Loc, MsfIgnore, Op, Pack, Part, Push, Signals,
    Source, UniformMove, Unpack, Update, Version, small_value,
};
use crate::magic;
use crate::mops::MemClass;
use kempe_ir::Stage;
use kempe_mir::UniformSource;
use kempe_mir::symbolic::{Facts, Term};
use kempe_ra::Block;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// How much of an expression a message shows.
pub(super) const DEPTH: u32 = 5;

/// Rows, accumulators, flags: the last ones do not survive a switch.
pub(super) const REGISTERS: usize = 72;
pub(super) const FLAG_A: usize = 70;
const FLAG_B: usize = 71;

/// Places behind the spill slots that no word reads: the sides of exchanges under way at the end of a block, two each. What
/// is known to be equal to a side may be known from that register alone, which holds an exclusive or just then.
pub(super) const SIDES: usize = 4;

/// A place that holds a predicate.
pub(super) fn is_flag(place: usize) -> bool {
    place == FLAG_A || place == FLAG_B
}

/// What is known between blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// What the machine code has in every register and flag, in every spill slot, and as the sides of exchanges.
    pub places: Vec<Facts>,
    /// Position in the uniform stream.
    pub uniform: usize,
    /// Classes of stores that have not been waited for.
    pub stores: u8,
    pub given: Given,
    /// The next switch is the end of the program.
    pub last_section: bool,
}

impl State {
    /// Forgets what places are not known to hold in the other state.
    pub fn narrow(&mut self, other: &State) {
        for (facts, other) in self.places.iter_mut().zip(&other.places) {
            facts.retain(|t| other.binary_search(t).is_ok());
        }
    }

    /// Whether no place is known to hold more than it is in the other state.
    pub fn is_within(&self, other: &State) -> bool {
        self.places.iter().zip(&other.places).all(|(x, y)| x.iter().all(|t| y.binary_search(t).is_ok()))
    }
}

/// What a vertex program has given so far, on some path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Given {
    /// The rows, by bit.
    pub rows: u128,
    /// Writes have not been waited for.
    pub open: bool,
}

impl Given {
    pub fn or(self, other: Given) -> Given {
        Given { rows: self.rows | other.rows, open: self.open || other.open }
    }
}

/// What does not fit.
#[derive(Debug)]
pub(super) struct Stop {
    pub word: usize,
    pub inst: Option<u32>,
    pub message: String,
}

/// How the words leave a block.
#[derive(Debug)]
pub(super) enum WordsLeave {
    Next,
    Jump {
        to: i64,
        uniform: i64,
    },
    /// To `to` when the answer to one of these questions is the one beside it.
    Branch {
        lane0: bool,
        predicates: SmallVec<[(Term, bool); 2]>,
        to: i64,
        uniform: i64,
    },
    End,
}

pub(super) struct Program<'a> {
    pub version: Version,
    pub stage: Stage,
    pub rows: usize,
    pub threads: u32,
    pub words: &'a [u64],
    pub uniforms: &'a [UniformSource],
    pub spill_base: Term,
    /// Spill slots that the program may use.
    pub slots: u32,
}

/// The multiply register: what a umul24 would add.
pub(super) enum Rtop {
    Zero,
    Half(Term, Term),
    Lost,
}

pub(super) struct Machine<'a> {
    pub(super) p: &'a Program<'a>,
    pub(super) v: &'a mut Values,
    pub(super) block: Block,
    pub(super) behaviour: &'a Behaviour,
    pub(super) s: &'a mut State,
    /// Contents of registers, flags and spill slots.
    pub(super) places: Vec<Term>,
    pub(super) word: usize,
    pub(super) rtop: Rtop,
    pub(super) config: u32,
    pub(super) data: SmallVec<[(Term, Option<Term>); 4]>,
    /// Configuration words and coordinates of an access of the texture unit.
    pub(super) texture: SmallVec<[UniformSource; 3]>,
    pub(super) coordinates: SmallVec<[(u8, Write); 4]>,
    pub(super) results: VecDeque<Term>,
    pub(super) side: Option<(Term, u8)>,
    pub(super) matched: Vec<bool>,
    pub(super) first_unmatched: usize,
    pub(super) fence: u32,
    pub(super) unknowns: u32,
    pub(super) switch_in: u8,
    pub(super) ending: bool,
    pub(super) barrier: bool,
    pub(super) graphics: Graphics,
}

pub(super) type Done<T> = Result<T, Stop>;

/// A result on its way.
pub(super) struct Write {
    pub value: Term,
    pub cond: Option<Term>,
}

pub(super) fn index(l: Loc) -> usize {
    match l {
        Loc::Row(r) => (r & 63) as usize,
        Loc::Acc(r) => 64 + r.min(5) as usize,
    }
}

/// Executes the words of a block. `made`: expressions that the machine code makes in their reach.
pub(super) fn run(
    p: &Program,
    v: &mut Values,
    block: Block,
    behaviour: &Behaviour,
    s: &mut State,
    made: &[Term],
    range: std::ops::Range<usize>,
) -> Done<WordsLeave> {
    let facts: Vec<&Facts> = s.places.iter().collect();
    let places = v.enter(block, &facts, made);
    let mut m = Machine {
        p,
        v,
        block,
        behaviour,
        s,
        unknowns: places.len() as u32,
        places,
        word: range.start,
        rtop: Rtop::Zero,
        config: u32::MAX,
        data: SmallVec::new(),
        texture: SmallVec::new(),
        coordinates: SmallVec::new(),
        results: VecDeque::new(),
        side: None,
        matched: vec![false; behaviour.effects.len()],
        first_unmatched: 0,
        fence: 0,
        switch_in: 0,
        ending: false,
        barrier: false,
        graphics: Graphics::new(behaviour.samples),
    };
    let leave = m.all(range)?;
    m.finish(&leave)?;
    m.keep_sides();
    let Machine { v, s, places, .. } = m;
    places.iter().for_each(|&t| v.complete(t));
    s.places = places.into_iter().map(|t| v.leave(t)).collect();
    Ok(leave)
}

impl Machine<'_> {
    pub(super) fn stop<T>(&self, message: impl Into<String>) -> Done<T> {
        Err(Stop { word: self.word, inst: None, message: message.into() })
    }

    pub(super) fn stop_at<T>(&self, inst: u32, message: impl Into<String>) -> Done<T> {
        Err(Stop { word: self.word, inst: Some(inst), message: message.into() })
    }

    fn all(&mut self, range: std::ops::Range<usize>) -> Done<WordsLeave> {
        let mut jump: Option<(usize, WordsLeave)> = None;
        for n in range.clone() {
            self.word = n;
            let instr = match decode(self.p.version, self.p.words[n]) {
                Ok(i) => i,
                Err(e) => return self.stop(format!("not an instruction: {e}")),
            };
            let mut fresh = false;
            match &instr {
                Instr::Alu(alu) => {
                    if jump.is_some() && (alu.consumes_uniform() || alu.signals.has(Signals::THRSW)) {
                        return self.stop("a delay slot takes a uniform or switches threads");
                    }
                    if alu.signals.has(Signals::THRSW) {
                        fresh = self.request_switch()?;
                    }
                    self.alu(alu)?;
                }
                Instr::Branch(b) => {
                    self.coefficient(&[], None);
                    if jump.is_some() || self.switch_in != 0 {
                        return self.stop("a branch in a delay slot");
                    }
                    jump = Some((n + Branch::DELAY_SLOTS, self.branch(b)?));
                }
            }
            if self.switch_in != 0 {
                self.switch_in -= 1;
                if self.switch_in == 0 && self.switch(fresh)? {
                    if n + 1 != range.end {
                        return self.stop("the program ends before the end of its last block");
                    }
                    return Ok(WordsLeave::End);
                }
            }
            if fresh {
                self.switch_in = 2;
            }
            if jump.as_ref().is_some_and(|(last, _)| *last == n) {
                if n + 1 != range.end {
                    return self.stop("words of a block behind its branch");
                }
                return Ok(jump.map_or(WordsLeave::Next, |j| j.1));
            }
        }
        if jump.is_some() {
            return self.stop("the block ends in the delay slots of its branch");
        }
        Ok(WordsLeave::Next)
    }

    /// Everything that must not cross the end of a block.
    fn finish(&mut self, leave: &WordsLeave) -> Done<()> {
        if let Some(n) = self.matched.iter().position(|m| !m) {
            let inst = self.behaviour.effects[n].inst;
            return self.stop_at(inst, "no word does what this instruction does");
        }
        if self.fence < self.behaviour.fences && self.s.stores & !MemClass::SPILL.0 != 0 {
            return self.stop("a store is not waited for");
        }
        if !self.results.is_empty() || self.is_open() || self.config != u32::MAX {
            return self.stop("a memory access is not finished at the end of its block");
        }
        if (self.switch_in != 0 && !matches!(leave, WordsLeave::End)) || self.barrier {
            return self.stop("a thread switch is not finished at the end of its block");
        }
        if !matches!(self.rtop, Rtop::Zero) {
            return self.stop("a multiplication is not finished at the end of its block");
        }
        self.finish_graphics(matches!(leave, WordsLeave::End))?;
        if matches!(leave, WordsLeave::End) && self.s.stores != 0 {
            return self.stop("a store is not waited for at the end of the program");
        }
        Ok(())
    }

    /// What exchanges under way are made from, so that it is remembered behind the block.
    fn keep_sides(&mut self) {
        let ends = self.places.len() - SIDES;
        let sides: SmallVec<[Term; SIDES]> =
            self.places[..ends].iter().filter_map(|&t| self.v.sides(t)).flatten().take(SIDES).collect();
        for n in 0..SIDES {
            self.places[ends + n] = sides.get(n).copied().unwrap_or_else(|| self.unknown());
        }
    }

    /// A TMU operation has begun and not been started.
    fn is_open(&self) -> bool {
        !self.data.is_empty() || !self.texture.is_empty() || !self.coordinates.is_empty()
    }

    // ---- Threads and control ----

    fn request_switch(&mut self) -> Done<bool> {
        if self.ending {
            return self.stop("a thread switch after the end of the program");
        }
        if self.s.last_section {
            self.ending = true;
            return Ok(true);
        }
        if self.switch_in == 2 {
            self.s.last_section = true;
            return Ok(false);
        }
        if self.switch_in != 0 {
            return self.stop("a thread switch in the slots of another");
        }
        Ok(true)
    }

    /// A switch takes place; whether it was the end.
    fn switch(&mut self, fresh: bool) -> Done<bool> {
        if self.is_open() {
            return self.stop("a thread switch inside of a TMU operation");
        }
        if self.ending && !fresh {
            return Ok(true);
        }
        for r in 64..REGISTERS {
            self.places[r] = self.unknown();
        }
        if matches!(self.rtop, Rtop::Half(..)) {
            self.rtop = Rtop::Lost;
        }
        self.barrier = false;
        self.coefficient_is_lost();
        Ok(false)
    }

    fn branch(&mut self, b: &Branch) -> Done<WordsLeave> {
        let BranchTarget::Relative(offset) = b.target else {
            return self.stop("a branch that is not relative");
        };
        if b.uniforms != Some(UniformMove::Relative) || b.link || offset % 8 != 0 {
            return self.stop("a branch of a kind that is not made");
        }
        let to = self.word as i64 + 4 + i64::from(offset / 8);
        let UniformSource::Const(step) = self.next_uniform()? else {
            return self.stop("the uniform offset of a branch is not a constant");
        };
        let step = step as i32;
        if step % 4 != 0 {
            return self.stop("the uniform offset of a branch is not a multiple of 4");
        }
        let uniform = self.s.uniform as i64 + i64::from(step / 4);
        let (lane0, negate, taken) = match b.cond {
            BranchCond::Always => return Ok(WordsLeave::Jump { to, uniform }),
            BranchCond::Reserved => return self.stop("a reserved branch condition"),
            BranchCond::A0 => (true, false, true),
            BranchCond::Na0 => (true, false, false),
            BranchCond::AnyA => (false, false, true),
            BranchCond::AllNa => (false, false, false),
            BranchCond::AnyNa => (false, true, true),
            BranchCond::AllA => (false, true, false),
        };
        // Helpers of a live quad count (docs/graphics.md).
        let ignored = match self.p.stage {
            Stage::Fragment => MsfIgnore::Quads,
            _ => MsfIgnore::Lanes,
        };
        if !lane0 && b.msfign != ignored {
            return self.stop("a branch that asks other lanes");
        }
        let mut predicates = SmallVec::new();
        let held = self.places[FLAG_A];
        let asked = if negate { self.negated(held) } else { held };
        let asked: Vec<Term> = self.v.facts(asked).collect();
        for t in asked {
            let (t, flipped) = question(self.v, lane0, t);
            predicates.push((self.v.name(t), taken != flipped));
        }
        Ok(WordsLeave::Branch { lane0, predicates, to, uniform })
    }

    pub(super) fn next_uniform(&mut self) -> Done<UniformSource> {
        match self.p.uniforms.get(self.s.uniform) {
            Some(&u) => {
                self.s.uniform += 1;
                Ok(u)
            }
            None => self.stop("the uniform stream is read behind its end"),
        }
    }

    // ---- Instructions ----

    /// Contents of which nothing is known.
    pub(super) fn unknown(&mut self) -> Term {
        self.unknowns += 1;
        self.v.make(Value::Unknown(self.unknowns - 1, self.block))
    }

    fn read(&mut self, s: Source) -> Done<Term> {
        Ok(match s {
            Source::Row(r) if r as usize >= self.p.rows => return self.stop("a row of another thread"),
            Source::Row(r) => self.places[index(Loc::Row(r))],
            Source::Acc(r) => self.places[index(Loc::Acc(r))],
            Source::Small(code) => match small_value(code) {
                Some(c) => {
                    let t = self.v.constant(c);
                    self.v.name(t)
                }
                None => return self.stop("an invalid immediate"),
            },
            Source::None => self.unknown(),
        })
    }

    fn alu(&mut self, alu: &Alu) -> Done<()> {
        // Everything is read before anything is written.
        let add = self.part(&alu.add, None)?;
        let mul = self.part(&alu.mul, alu.rotate)?;
        let old = self.places[FLAG_A];
        for (part, done) in [(&alu.add, &add), (&alu.mul, &mul)] {
            let Some((_, flag)) = *done else { continue };
            if part.push.is_some() {
                self.places[FLAG_B] = old;
                self.places[FLAG_A] = flag;
            } else if let Some(u) = part.update {
                self.places[FLAG_A] = self.update(u, old, flag);
            }
        }
        let mut written: SmallVec<[usize; 4]> = SmallVec::new();
        let signal = self.signals(alu.signals, &mut written)?;
        for (part, done) in [(&alu.add, add), (&alu.mul, mul)] {
            if let Some((write, _)) = done
                && let Some(dest) = part.result()
            {
                self.deliver(dest, write, &mut written)?;
            }
        }
        match (alu.sig_dest, signal) {
            (Some(dest), Some(value)) => self.deliver(dest, Write { value, cond: None }, &mut written)?,
            (None, None) => {}
            _ => return self.stop("a signal without its value"),
        }
        let varying = alu.signals.has(Signals::LDVARY);
        self.coefficient(&written, varying.then(|| self.graphics.varyings.saturating_sub(1)));
        // Two results in one register: which one stays is not defined (section 16).
        written.sort_unstable();
        for pair in written.windows(2) {
            if pair[0] == pair[1] {
                self.places[pair[0]] = self.unknown();
            }
        }
        Ok(())
    }

    fn signals(&mut self, signals: Signals, written: &mut SmallVec<[usize; 4]>) -> Done<Option<Term>> {
        let made = Signals::THRSW
            | Signals::LDVARY
            | Signals::LDTMU
            | Signals::LDUNIF
            | Signals::LDUNIFRF
            | Signals::LDUNIFA
            | Signals::LDUNIFARF
            | Signals::WRTMUC;
        if signals.has(Signals(!made.0)) {
            return self.stop("a signal that is not made");
        }
        let mut addressed = None;
        if signals.has(Signals::LDTMU) {
            addressed = match self.results.pop_front() {
                Some(f) => Some(f),
                None => return self.stop("a result is collected that nobody asked for"),
            };
        }
        if signals.has(Signals::LDVARY) {
            addressed = Some(self.next_varying()?);
        }
        if signals.has(Signals::LDUNIF | Signals::LDUNIFA) {
            let value = if signals.has(Signals::LDUNIF) { self.uniform_word()? } else { self.next_side()? };
            let r = index(Loc::uniform(self.p.version));
            self.places[r] = value;
            written.push(r);
        }
        if signals.has(Signals::LDUNIFRF) {
            addressed = Some(self.uniform_word()?);
        }
        if signals.has(Signals::LDUNIFARF) {
            addressed = Some(self.next_side()?);
        }
        if signals.has(Signals::WRTMUC) {
            let word = self.next_uniform()?;
            self.texture.push(word);
        }
        Ok(addressed)
    }

    fn uniform_word(&mut self) -> Done<Term> {
        let u = self.next_uniform()?;
        let t = self.v.uniform(u);
        Ok(self.v.name(t))
    }

    fn next_side(&mut self) -> Done<Term> {
        let Some((address, n)) = self.side.take() else {
            return self.stop("a side-band word without an address");
        };
        let here = self.behaviour.sides.iter().any(|&(a, count)| n < count && self.v.is(address, a));
        if !here && !self.v.may_read_again(address, n) {
            return self.stop("a side-band word that the program does not read");
        }
        let value = self.v.combine(&[address], &|t| Value::Side(t[0], n));
        self.side = Some((address, n.saturating_add(1)));
        Ok(value)
    }

    /// The result of a part and the flag that it delivers.
    fn part(&mut self, p: &Part, rotation: Option<u8>) -> Done<Option<(Write, Term)>> {
        if p.is_nop() {
            return Ok(None);
        }
        let cond = match p.cond {
            None => None,
            Some(Cond::IfA) => Some(self.places[FLAG_A]),
            Some(Cond::IfB) => Some(self.places[FLAG_B]),
            Some(Cond::IfNa) => Some(self.negated(self.places[FLAG_A])),
            Some(Cond::IfNb) => Some(self.negated(self.places[FLAG_B])),
        };
        let mut s: SmallVec<[Term; 2]> = SmallVec::new();
        for k in 0..p.op.sources() {
            s.push(self.read(p.src[k])?);
        }
        // Only moves of accumulators are made with a rotation; what it does to rows is another matter (8.5).
        let turns = rotation.filter(|_| p.op == Op::Mov && matches!(p.src[0], Source::Acc(0..=3)));
        if let (Some(code), Some(first)) = (turns, s.first_mut()) {
            *first = self.turned(code, *first)?;
        }
        let rotated = rotation.is_some() && turns.is_none();
        let mut value = match p.op {
            Op::Tmuwt => {
                self.s.stores = 0;
                self.unknown()
            }
            Op::Multop => {
                self.rtop = match (&cond, s.as_slice()) {
                    (None, &[a, b]) if !rotated => Rtop::Half(a, b),
                    _ => Rtop::Lost,
                };
                self.unknown()
            }
            Op::Umul24 => {
                let rtop = std::mem::replace(&mut self.rtop, Rtop::Zero);
                match rtop {
                    Rtop::Zero => self.v.combine(&s, &|t| Value::Two(Op::Umul24, p.unpack, [t[0], t[1]])),
                    Rtop::Half(a, b) => {
                        if cond.is_some() {
                            self.rtop = Rtop::Lost;
                        }
                        if s[..] == [a, b] || s[..] == [b, a] {
                            self.v.combine(&s, &|t| Value::Product([t[0], t[1]]))
                        } else {
                            self.unknown()
                        }
                    }
                    Rtop::Lost => self.unknown(),
                }
            }
            Op::Msf | Op::Setmsf | Op::Vpmwt => self.of_stage(p, cond, &s)?,
            op if op.is_vpm_read() || op.is_vpm_write() => self.of_stage(p, cond, &s)?,
            op if op.has_effect() || !is_made(self.p.stage, op) || op == Op::Nop => {
                return self.stop(format!("{} is not made", op.name()));
            }
            Op::Vfla | Op::Vflna => {
                let (zero, set) = (self.v.constant(0), self.v.constant(FLAG_SET));
                let sides = if p.op == Op::Vfla { [set, zero] } else { [zero, set] };
                self.v.combine(&[self.places[FLAG_A]], &|t| Value::Choice(t[0], sides))
            }
            // Over the lanes that the condition selects.
            Op::Ballot | Op::Bcastf | Op::Alleq | Op::Allfeq if cond.is_some() => self.unknown(),
            op => match operation(op, p.unpack, &[self.v.undefined; 2]) {
                Some(_) => self.v.combine(&s, &|t| operation(op, p.unpack, t).unwrap_or(Value::Undefined)),
                None => self.unknown(),
            },
        };
        if rotated {
            value = self.unknown();
        }
        let flag = match p.push.or(p.update.map(Update::flag)) {
            Some(which) if p.pack == Pack::None && rotation.is_none() => self.flag(p, which, &s, value),
            _ => self.unknown(),
        };
        // A write under a condition or into a half keeps the rest.
        let target = p.result().and_then(|d| d.loc(self.p.version)).map(index);
        if let Some(r) = target
            && (p.pack != Pack::None || cond.is_some())
        {
            let old = self.places[r];
            if p.pack != Pack::None {
                value = self.v.combine(&[value, old], &|t| Value::Packed(p.pack, t[0], t[1]));
            }
            if let Some(c) = cond {
                value = self.v.combine(&[c, value, old], &|t| Value::Choice(t[0], [t[1], t[2]]));
            }
        } else if p.pack != Pack::None {
            value = self.unknown();
        }
        Ok(Some((Write { value, cond }, flag)))
    }

    /// Lane k gets lane k - count (8.5); 7.1 counts the other way.
    fn turned(&mut self, code: u8, value: Term) -> Done<Term> {
        if code == 0 {
            let count = self.places[index(Loc::Acc(5))];
            return Ok(self.v.combine(&[count, value], &|t| Value::Turned([t[0], t[1]])));
        }
        if code > 31 {
            return self.stop("an invalid rotation count");
        }
        let count = self.v.constant(u32::from((32 - code) % 16));
        Ok(self.v.combine(&[value], &|t| Value::Two(Op::Rot, [Unpack::None; 2], [t[0], count])))
    }

    fn negated(&mut self, flag: Term) -> Term {
        self.v.combine(&[flag], &|t| Value::Not(t[0]))
    }

    /// Section 7.3.
    fn flag(&mut self, p: &Part, which: Push, s: &[Term], value: Term) -> Term {
        match (p.op, which) {
            (Op::Fcmp, _) => self.v.combine(s, &|t| Value::Float(which, p.unpack, [t[0], t[1]])),
            (_, Push::C) if p.unpack != [Unpack::None; 2] => self.unknown(),
            (Op::Sub, Push::C) => self.v.combine(s, &|t| Value::Below([t[0], t[1]])),
            (Op::Min, Push::C) => self.v.combine(s, &|t| Value::Less([t[1], t[0]])),
            (Op::Add, Push::C) => self.v.combine(s, &|t| Value::Carry([t[0], t[1]])),
            (_, Push::C) => self.unknown(),
            (op, Push::Z) if has_integer_flags(op) => self.v.combine(&[value], &|t| Value::IsZero(t[0])),
            (op, Push::N) if has_integer_flags(op) => self.v.combine(&[value], &|t| Value::IsNegative(t[0])),
            _ => self.unknown(),
        }
    }

    /// Section 7.1: and, and not, nor not, nor.
    fn update(&mut self, u: Update, a: Term, flag: Term) -> Term {
        let (nor, not) = match u as u8 & 3 {
            0 => (false, false),
            1 => (false, true),
            2 => (true, true),
            _ => (true, false),
        };
        let a = if nor { self.negated(a) } else { a };
        // not (A or F) = not A and not F.
        let flag = if not != nor { self.negated(flag) } else { flag };
        self.v.combine(&[a, flag], &|t| Value::Both([t[0], t[1]]))
    }

    fn deliver(&mut self, to: Dest, w: Write, written: &mut SmallVec<[usize; 4]>) -> Done<()> {
        if let Dest::Row(r) = to
            && r as usize >= self.p.rows
        {
            return self.stop("a row of another thread");
        }
        match to {
            Dest::Magic(magic::NOP) => {}
            Dest::Magic(magic::TMUD) => self.data.push((w.value, w.cond)),
            Dest::Magic(n @ magic::TMUT..=magic::TMUOFF) => self.coordinates.push((n, w)),
            Dest::Magic(n @ (magic::TMUS | magic::TMUSCM | magic::TMUSF | magic::TMUSLOD)) => {
                self.texture_access(n, w)?;
            }
            Dest::Magic(n @ (magic::TLB | magic::TLBU)) => self.tile(n == magic::TLBU, &w)?,
            Dest::Magic(magic::TMUA) => self.access(w)?,
            Dest::Magic(magic::TMUAU) => {
                let UniformSource::Const(word) = self.next_uniform()? else {
                    return self.stop("a TMU configuration that is not a constant");
                };
                self.config = word;
                self.access(w)?;
            }
            Dest::Magic(magic::UNIFA) => {
                if w.cond.is_some() {
                    return self.stop("a side-band address under a condition");
                }
                let here = self.behaviour.sides.iter().any(|&(a, _)| self.v.is(w.value, a));
                if !here && !self.v.may_read_again(w.value, 0) {
                    return self.stop("a side-band address that the program does not have");
                }
                self.side = Some((w.value, 0));
            }
            Dest::Magic(magic::SYNCB) => {
                let number = self.v.make(Value::Zero(Op::Barrierid));
                if w.cond.is_some() || !self.v.is(w.value, number) {
                    return self.stop("a barrier without its number");
                }
                self.reach_barrier()?;
            }
            // A broadcast of the first lane (of a quad, of all) leaves what is the same in all lanes as it is.
            Dest::Magic(n @ (magic::QUAD | magic::REP)) => {
                let r = index(Loc::uniform(self.p.version));
                self.places[r] = if w.cond.is_some() {
                    self.unknown()
                } else if self.v.facts(w.value).any(|t| self.v.is_uniform(t)) {
                    w.value
                } else {
                    self.v.combine(&[w.value], &|t| Value::Spread(n == magic::REP, t[0]))
                };
                written.push(r);
            }
            _ => match to.loc(self.p.version) {
                Some(l) => {
                    let r = index(l);
                    self.places[r] = w.value;
                    written.push(r);
                }
                None => return self.stop("a write to a place that is not used"),
            },
        }
        Ok(())
    }
}
