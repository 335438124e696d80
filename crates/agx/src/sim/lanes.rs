//! Operations across lanes: ballots, shuffles, reductions, scans.
//!
//! Lanes without an invocation count as inactive and give 0 to the index bits that a quad shares.
//!
//! Facts: reference section 7.

use super::alu::{check_condition, compare_floats, compare_integers, width};
use super::code::Step;
use super::execute::Machine;
use super::float::{fma, from_f16, from_f32, to_f16, to_f32};
use super::group::{Group, Value, lanes_of};
use super::{Cause, LANES, Trouble};
use crate::instr::{Operand, Place};
use crate::ops::Op;

/// The result of an operation across lanes; `None` if it is none.
pub(super) fn across(m: &Machine, group: &Group, step: &Step) -> Result<Option<Value>, Trouble> {
    let read = |operand: &Operand| group.read(operand, &m.uniforms);
    match step.op {
        Op::IcmpBallot | Op::FcmpBallot | Op::IcmpQuadBallot | Op::FcmpQuadBallot => {
            ballot(group, step, &read(&step.sources[0])?, &read(&step.sources[1])?).map(Some)
        }
        Op::SimdShuffle
        | Op::SimdShuffleUp
        | Op::SimdShuffleDown
        | Op::SimdShuffleRotateUp
        | Op::SimdShuffleXor
        | Op::QuadShuffle
        | Op::QuadShuffleUp
        | Op::QuadShuffleDown
        | Op::QuadShuffleRotateUp
        | Op::QuadShuffleXor => {
            if step.sources[..2].iter().any(|o| width(o) == 64) {
                return Err(Trouble::new("unsettled", "a shuffle of 64 bits"));
            }
            Ok(Some(shuffle(group, step, &read(&step.sources[0])?, &read(&step.sources[1])?)))
        }
        op => match Scan::of(op) {
            Some(scan) if width(&step.sources[0]) <= 32 => {
                Ok(Some(scan.run(group, step, &read(&step.sources[0])?)))
            }
            Some(_) => Err(Trouble::new("unsettled", "a reduction of 64 bits")),
            None => Ok(None),
        },
    }
}

fn ballot(group: &Group, step: &Step, a: &Value, b: &Value) -> Result<Value, Trouble> {
    let floats = matches!(step.op, Op::FcmpBallot | Op::FcmpQuadBallot);
    let quads = matches!(step.op, Op::IcmpQuadBallot | Op::FcmpQuadBallot);
    check_condition(step, floats)?;
    a.need(group.active, "the comparison of a ballot")?;
    b.need(group.active, "the comparison of a ballot")?;
    let compare = if floats { compare_floats } else { compare_integers };
    let mask = group
        .active_lanes()
        .filter(|&lane| compare(step, a.lanes[lane], b.lanes[lane]))
        .fold(0u32, |mask, lane| mask | 1 << lane);
    let mut result = Value::splat(mask.into());
    if quads {
        for lane in 0..LANES {
            result.lanes[lane] = u64::from(mask >> (lane & !3) & 0xf);
        }
    }
    Ok(result)
}

fn shuffle(group: &Group, step: &Step, a: &Value, b: &Value) -> Value {
    let quads = matches!(
        step.op,
        Op::QuadShuffle
            | Op::QuadShuffleUp
            | Op::QuadShuffleDown
            | Op::QuadShuffleRotateUp
            | Op::QuadShuffleXor
    );
    let mut result = Value::splat(0);
    let poison = |result: &mut Value, lane: usize, cause: Cause| {
        if result.poison == 0 {
            result.cause = cause;
        }
        result.poison |= 1 << lane;
    };
    for lane in group.active_lanes() {
        let first = lane & !3;
        let quad = (0xf << first) & group.exists;
        // An index that is undefined on an inactive lane of the quad spoils that of all.
        if b.poison & quad != 0 && matches!(step.sources[1].place, Place::Reg { .. }) {
            poison(&mut result, lane, b.cause);
        }
        // The lane's own index chooses the quad, what the four have together the lane in it.
        let shared = lanes_of(quad).fold(0, |shared, lane| shared | b.lanes[lane] & 3) as usize;
        let (here, size) = if quads { (lane & 3, 4) } else { (lane, LANES) };
        let target = |index: usize| match step.op {
            Op::SimdShuffle | Op::QuadShuffle => Some(index),
            Op::SimdShuffleDown | Op::QuadShuffleDown => Some(here + index),
            Op::SimdShuffleUp | Op::QuadShuffleUp => here.checked_sub(index),
            Op::SimdShuffleRotateUp | Op::QuadShuffleRotateUp => Some(here.wrapping_sub(index) % size),
            _ => Some(here ^ index),
        };
        let low = match step.op {
            Op::SimdShuffleUp | Op::QuadShuffleUp => here.wrapping_sub(shared) & 3,
            _ => target(shared).unwrap_or(here) & 3,
        };
        let own = target((b.lanes[lane] & 0xffff) as usize).filter(|&t| t < size);
        let from = own.map_or(here, |own| own & !3 | low);
        let from = if quads { first + from } else { from };
        result.lanes[lane] = a.lanes[from];
        if a.poison >> from & 1 != 0 {
            poison(&mut result, lane, if from == lane { a.cause } else { Cause::OtherLane });
        }
    }
    result
}

/// How the values of lanes are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    And,
    Or,
    Xor,
    Add,
    MinU,
    MaxU,
    MinS,
    MaxS,
    Fadd,
    Fmul,
    MinF,
    MaxF,
}

/// A reduction (every lane gets the whole) or an exclusive scan.
struct Scan {
    combine: Combine,
    quads: bool,
    prefix: bool,
}

impl Scan {
    fn of(op: Op) -> Option<Scan> {
        use Combine::*;
        let (combine, quads, prefix) = match op {
            Op::QuadAnd => (And, true, false),
            Op::QuadOr => (Or, true, false),
            Op::QuadXor => (Xor, true, false),
            Op::QuadIadd => (Add, true, false),
            Op::QuadFadd => (Fadd, true, false),
            Op::QuadFmul => (Fmul, true, false),
            Op::QuadMinU => (MinU, true, false),
            Op::QuadMaxU => (MaxU, true, false),
            Op::QuadMinS => (MinS, true, false),
            Op::QuadMaxS => (MaxS, true, false),
            Op::QuadMinF => (MinF, true, false),
            Op::QuadMaxF => (MaxF, true, false),
            Op::QuadPrefixIadd => (Add, true, true),
            Op::QuadPrefixFadd => (Fadd, true, true),
            Op::QuadPrefixFmul => (Fmul, true, true),
            Op::SimdAnd => (And, false, false),
            Op::SimdOr => (Or, false, false),
            Op::SimdXor => (Xor, false, false),
            Op::SimdIadd => (Add, false, false),
            Op::SimdFadd => (Fadd, false, false),
            Op::SimdFmul => (Fmul, false, false),
            Op::SimdMinU => (MinU, false, false),
            Op::SimdMaxU => (MaxU, false, false),
            Op::SimdMinS => (MinS, false, false),
            Op::SimdMaxS => (MaxS, false, false),
            Op::SimdMinF => (MinF, false, false),
            Op::SimdMaxF => (MaxF, false, false),
            Op::SimdPrefixIadd => (Add, false, true),
            Op::SimdPrefixFadd => (Fadd, false, true),
            Op::SimdPrefixFmul => (Fmul, false, true),
            Op::SimdPrefixAnd => (And, false, true),
            Op::SimdPrefixOr => (Or, false, true),
            Op::SimdPrefixXor => (Xor, false, true),
            Op::SimdPrefixMinU => (MinU, false, true),
            Op::SimdPrefixMaxU => (MaxU, false, true),
            Op::SimdPrefixMinS => (MinS, false, true),
            Op::SimdPrefixMaxS => (MaxS, false, true),
            _ => return None,
        };
        Some(Scan { combine, quads, prefix })
    }

    fn run(&self, group: &Group, step: &Step, a: &Value) -> Value {
        // Both have the width of the result: a 16-bit scan is one of 16-bit values.
        let bits = width(&step.dest);
        let mut result = Value::splat(0);
        let mut sums = [self.neutral(bits); LANES];
        let mut bad = [false; LANES];
        for lane in group.active_lanes() {
            let of = if self.quads { lane / 4 } else { 0 };
            let below = (sums[of], bad[of]);
            sums[of] = self.both(bits, sums[of], a.lanes[lane]);
            bad[of] |= a.poison >> lane & 1 != 0;
            if self.prefix {
                result.lanes[lane] = below.0;
                result.poison |= u32::from(below.1) << lane;
            }
        }
        if !self.prefix {
            for lane in group.active_lanes() {
                let of = if self.quads { lane / 4 } else { 0 };
                result.lanes[lane] = sums[of];
                result.poison |= u32::from(bad[of]) << lane;
            }
        }
        result.cause = a.cause;
        result
    }

    /// What changes nothing.
    fn neutral(&self, bits: u32) -> u64 {
        let all = (1u64 << bits) - 1;
        let float = |x: f64| if bits == 16 { to_f16(x).into() } else { to_f32(x).into() };
        match self.combine {
            Combine::And | Combine::MinU => all,
            Combine::Or | Combine::Xor | Combine::Add | Combine::MaxU => 0,
            Combine::MinS => all >> 1,
            Combine::MaxS => (all >> 1) + 1,
            // -0 is the neutral element of the sum.
            Combine::Fadd => float(-0.0),
            Combine::Fmul => float(1.0),
            Combine::MinF => float(f64::INFINITY),
            Combine::MaxF => float(f64::NEG_INFINITY),
        }
    }

    fn both(&self, bits: u32, a: u64, b: u64) -> u64 {
        let mask = (1u64 << bits) - 1;
        let (a, b) = (a & mask, b & mask);
        let signed = |v: u64| super::alu::sign_extend(v, bits);
        let number = |v: u64| if bits == 16 { from_f16(v as u16) } else { from_f32(v as u32) };
        let float = |x: f64| if bits == 16 { to_f16(x).into() } else { to_f32(x).into() };
        match self.combine {
            Combine::And => a & b,
            Combine::Or => a | b,
            Combine::Xor => a ^ b,
            Combine::Add => a.wrapping_add(b) & mask,
            Combine::MinU => a.min(b),
            Combine::MaxU => a.max(b),
            Combine::MinS if signed(b) < signed(a) => b,
            Combine::MaxS if signed(b) > signed(a) => b,
            Combine::MinS | Combine::MaxS => a,
            Combine::Fadd => float(fma(number(a), 1.0, number(b))),
            Combine::Fmul => float(number(a) * number(b)),
            Combine::MinF => float(number(a).min(number(b))),
            Combine::MaxF => float(number(a).max(number(b))),
        }
    }
}
