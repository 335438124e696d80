//! Rules about what may happen before what, along every path.
//!
//! One forward analysis over instructions: a state is what some path can have left behind (pending loads, discarded
//! registers: union) and what every path has done (registers written, `r0l` set: intersection). It grows only in one
//! direction, so it ends.
//!
//! Facts: reference sections 1.5, 1.6, 3, 5.3, 5.6, 15.

use super::{Placed, ProgramFacts, Report};
use crate::instr::{Instr, Number, Place, Role};
use crate::ops::Op;
use crate::regs::{self, HALVES, MASK_COUNTER, is_mask};
use crate::stats::FRAME_OVERHEAD;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most requests that the reference driver leaves pending in a slot.
const MAX_PENDING: u8 = 8;

/// Traps behind the end.
const TRAPS: usize = 8;

/// A set of half registers.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Halves([u64; HALVES as usize / 64]);

impl Halves {
    fn add(&mut self, range: Range<u16>) {
        for half in range.filter(|&h| h < HALVES) {
            self.0[usize::from(half / 64)] |= 1 << (half % 64);
        }
    }

    fn remove(&mut self, range: Range<u16>) {
        for half in range.filter(|&h| h < HALVES) {
            self.0[usize::from(half / 64)] &= !(1 << (half % 64));
        }
    }

    fn first_of(&self, mut range: Range<u16>) -> Option<u16> {
        range.find(|&h| h < HALVES && self.0[usize::from(h / 64)] >> (h % 64) & 1 != 0)
    }

    fn zip(self, other: Halves, with: impl Fn(u64, u64) -> u64) -> Halves {
        let mut both = self;
        for (a, b) in both.0.iter_mut().zip(other.0) {
            *a = with(*a, b);
        }
        both
    }
}

/// What is known before an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Some path has loaded them and not waited.
    pending: [Halves; 2],
    /// Most requests of any path, up to one more than is allowed.
    requests: [u8; 2],
    /// Some path has discarded them.
    discarded: Halves,
    /// Every path has written them.
    written: Halves,
    /// The first path that came here had this nesting.
    depth: i32,
}

impl State {
    /// What holds for both; the nesting stays that of the first.
    fn join(self, other: State) -> State {
        let or = |a, b| a | b;
        State {
            pending: [self.pending[0].zip(other.pending[0], or), self.pending[1].zip(other.pending[1], or)],
            requests: [self.requests[0].max(other.requests[0]), self.requests[1].max(other.requests[1])],
            discarded: self.discarded.zip(other.discarded, or),
            written: self.written.zip(other.written, |a, b| a & b),
            depth: self.depth,
        }
    }
}

pub(super) fn check(facts: &ProgramFacts, program: &[Placed], report: &mut Report) {
    end(program, report);
    if program.is_empty() {
        return;
    }
    stack(program, report);
    let mut start = State {
        pending: [Halves::default(); 2],
        requests: [0; 2],
        discarded: Halves::default(),
        written: Halves::default(),
        depth: 0,
    };
    start.written.add(facts.preloaded.0..facts.preloaded.1);
    let masks = program.iter().any(|p| is_mask(p.instr.op));
    let mut before: Vec<Option<State>> = vec![None; program.len()];
    before[0] = Some(start);
    let mut work = BTreeSet::from([0]);
    while let Some(number) = work.pop_first() {
        let Some(state) = before[number] else { continue };
        let after = transfer(&state, &program[number].instr);
        for next in successors(program, number).into_iter().flatten() {
            let joined = before[next].map_or(after, |old| old.join(after));
            if before[next] != Some(joined) {
                before[next] = Some(joined);
                work.insert(next);
            }
        }
    }
    for (number, placed) in program.iter().enumerate() {
        // What no path reaches breaks no rule of this kind.
        let Some(state) = &before[number] else { continue };
        at_instr(state, placed, masks, report);
        let after = transfer(state, &placed.instr);
        let nexts = successors(program, number);
        jumps(program, placed, &nexts, report);
        for next in nexts.into_iter().flatten() {
            if before[next].is_some_and(|other| other.depth != after.depth) {
                report.hw("4c", program[next].at, "reached with different nesting");
            }
        }
    }
}

/// 10b.
fn end(program: &[Placed], report: &mut Report) {
    let traps = program.iter().rev().take_while(|p| p.instr.op == Op::Trap).count();
    let last = program.len().checked_sub(traps + 1).map(|n| &program[n]);
    let at = last.map_or(0, |p| p.at);
    if last.is_none_or(|p| p.instr.op != Op::Stop) {
        report.hw("10b", at, "the last instruction is no stop");
    } else if traps != TRAPS {
        report.hw("10b", at, format!("{traps} traps behind the end instead of {TRAPS}"));
    }
}

/// Where a jump goes, if an instruction starts there.
fn target(program: &[Placed], placed: &Placed) -> Option<usize> {
    let address = placed.at as i64 + i64::from(placed.instr.get(Number::Target) as i32);
    program.binary_search_by_key(&address, |p| p.at as i64).ok()
}

/// Numbers of the instructions that can follow.
fn successors(program: &[Placed], number: usize) -> [Option<usize>; 2] {
    let placed = &program[number];
    let next = (number + 1 < program.len()).then_some(number + 1);
    match placed.instr.op {
        Op::Stop | Op::Trap | Op::Ret => [None, None],
        // What is called returns to the next instruction; the walk does not follow it back.
        Op::JmpExecAny | Op::JmpExecNone | Op::CallImm | Op::JmpIfSkippingDoorbell => {
            [next, target(program, placed)]
        }
        _ => [next, None],
    }
}

/// 4d, 10a.
fn jumps(program: &[Placed], placed: &Placed, nexts: &[Option<usize>; 2], report: &mut Report) {
    let ends = matches!(placed.instr.op, Op::Stop | Op::Trap | Op::Ret);
    if !ends && nexts[0].is_none() {
        report.hw("10a", placed.at, "a path runs past the end");
    }
    if nexts.iter().flatten().any(|&n| program[n].instr.op == Op::Trap) {
        report.hw("10a", placed.at, "a path runs into a trap");
    }
    if placed.instr.has(Number::Target) && target(program, placed).is_none() {
        let distance = placed.instr.get(Number::Target) as i32;
        let address = placed.at as i64 + i64::from(distance);
        report.hw("4d", placed.at, format!("no instruction starts at byte {address}"));
    }
}

/// The state behind an instruction.
fn transfer(state: &State, instr: &Instr) -> State {
    let mut after = *state;
    for (_, _, operand) in instr.operands() {
        if operand.hint == crate::instr::Hint::Discard {
            after.discarded.add(operand.halves());
        }
    }
    for range in regs::writes(instr) {
        after.discarded.remove(range.clone());
        after.written.add(range);
    }
    if let Some(slot) = regs::slot(instr) {
        after.requests[slot] = (after.requests[slot] + 1).min(MAX_PENDING + 1);
        if regs::is_load(instr.op) {
            for range in regs::writes(instr) {
                after.pending[slot].add(range);
            }
        }
    }
    if instr.op == Op::Wait {
        let slot = instr.get(Number::Slot) as usize & 1;
        after.pending[slot] = Halves::default();
        after.requests[slot] = 0;
    }
    after.depth += nesting(instr);
    after
}

/// How an instruction changes the nesting.
fn nesting(instr: &Instr) -> i32 {
    let n = instr.get(Number::Nest) as i32;
    match instr.op {
        Op::IfIcmp | Op::IfFcmp => n,
        Op::PopExec => -n,
        _ => 0,
    }
}

fn half_name(half: u16) -> String {
    format!("r{}{}", half / 2, if half & 1 == 0 { 'l' } else { 'h' })
}

/// 2c, 2d, 3a, 3b, 3c, 4a, 4b, 4c.
fn at_instr(state: &State, placed: &Placed, masks: bool, report: &mut Report) {
    let (at, instr) = (placed.at, &placed.instr);
    let both = state.pending[0].zip(state.pending[1], |a, b| a | b);
    for range in regs::reads(instr) {
        if let Some(half) = both.first_of(range.clone()) {
            report.hw("3a", at, format!("{} is read before the wait", half_name(half)));
        }
        if let Some(half) = state.discarded.first_of(range.clone()) {
            report.hw("2c", at, format!("{} was discarded", half_name(half)));
        }
        let unwritten = state.written.zip(Halves::default(), |a, _| !a);
        if let Some(half) = unwritten.first_of(range) {
            // What only some lanes or paths need may be undefined on the others.
            if is_mask(instr.op) && half == MASK_COUNTER {
                report.hw("4a", at, "r0l is not set on every path");
            } else {
                report.drv("2d", at, format!("{} is not written on every path", half_name(half)));
            }
        }
    }
    for range in regs::writes(instr) {
        if let Some(half) = both.first_of(range) {
            report.hw("3a", at, format!("{} is written before the wait", half_name(half)));
        }
    }
    if let Some(slot) = regs::slot(instr)
        && state.requests[slot] >= MAX_PENDING
    {
        report.drv("3b", at, format!("more than {MAX_PENDING} requests pending in slot {slot}"));
    }
    if instr.op == Op::ThreadgroupBarrier && state.requests != [0, 0] {
        report.hw("3c", at, "requests are pending at a barrier");
    }
    let sets_counter = regs::writes(instr).any(|range| range.contains(&MASK_COUNTER));
    let may_set = is_mask(instr.op)
        || matches!(instr.op, Op::MovImm16 | Op::Icmpsel | Op::Fcmpsel | Op::Bitop)
            && instr.operand(Role::Dest).halves() == (MASK_COUNTER..MASK_COUNTER + 1);
    if masks && sets_counter && !may_set {
        report.hw("4b", at, format!("`{}` writes r0l", instr.op.info().name));
    }
    let depth = state.depth + nesting(instr);
    if depth < 0 {
        report.hw("4c", at, "more is popped than was pushed");
    }
    if instr.op == Op::Stop && state.depth != 0 {
        report.hw("4c", at, format!("ends at nesting {}", state.depth));
    }
}

/// 9a and 9b. A frame is made once, first of all; that it may be given back is only for programs that run in a loop.
fn stack(program: &[Placed], report: &mut Report) {
    let first = &program[0].instr;
    let frame = match first.op {
        Op::StackAdjust => first.get(Number::Value) as i32,
        _ => 0,
    };
    if first.op == Op::StackAdjust && frame <= 0 {
        report.hw("9a", 0, format!("a frame of {frame} dwords"));
    }
    let made = usize::from(first.op == Op::StackAdjust);
    for placed in &program[made..] {
        let instr = &placed.instr;
        if instr.op == Op::StackAdjust && instr.get(Number::Value) as i32 != -frame {
            report.hw("9a", placed.at, "moves the stack by something other than the frame");
        }
        if !matches!(instr.op, Op::StackLoad | Op::StackStore) {
            continue;
        }
        if frame <= 0 {
            report.hw("9a", placed.at, "uses the stack, and the first instruction makes no frame");
            continue;
        }
        let format = instr.get(Number::Format);
        if format > 2 {
            report.hw("9b", placed.at, "a stack access that is not of integers");
            continue;
        }
        let element = 1 << format;
        let elements = 32 - instr.get(Number::Mask).leading_zeros() as i32;
        if let Place::Imm(offset) = instr.operand(Role::Index).place {
            let end = offset + elements * element;
            let own = 4 * (frame - FRAME_OVERHEAD as i32);
            if offset < 0 || end > own {
                let message = format!("bytes {offset} to {end} of a frame that has {own} for the program");
                report.hw("9b", placed.at, message);
            } else if offset % element != 0 {
                report.hw("9b", placed.at, format!("byte {offset} is not a multiple of {element}"));
            }
        }
    }
}
