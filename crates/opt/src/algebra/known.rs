//! Bits that are known to be zero, from the operation and its operands. Light: no fixpoint over loops.

use kempe_ir::*;

/// What is known of the dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub workgroup: [u32; 3],
    /// Most work-groups along an axis.
    pub groups: u32,
}

/// Mask of the bits of a value that are known to be zero (bits above the width of the type count as zero).
///
/// `of` gives what is known of the operands.
pub fn known_zero(f: &Function, d: &InstData, limits: &Limits, of: &dyn Fn(Value) -> u64) -> u64 {
    let Some(&result) = d.results.first() else { return 0 };
    let ty = f.ty(result);
    let mask = ty.mask();
    let arg = |n: usize| of(d.args[n]);
    let konst = |n: usize| f.as_const(d.args[n]);
    let zeros = match d.op {
        Op::Const => match d.imm {
            Imm::Int(bits) => !bits,
            _ => 0,
        },
        Op::And => arg(0) | arg(1),
        Op::Or | Op::Xor => arg(0) & arg(1),
        Op::Select => arg(1) & arg(2),
        Op::Shl => match konst(1) {
            Some(n) => {
                let n = n as u32 % ty.bits();
                arg(0) << n | ((1u64 << n) - 1)
            }
            // Trailing zeros stay.
            None => low_ones(arg(0).trailing_ones()),
        },
        Op::Lshr => match konst(1) {
            Some(n) => {
                let n = n as u32 % ty.bits();
                (arg(0) & mask) >> n | !(mask >> n)
            }
            None => high_zeros(arg(0), mask),
        },
        Op::Ashr => match konst(1) {
            Some(n) if arg(0) & sign(ty) != 0 => {
                let n = n as u32 % ty.bits();
                (arg(0) & mask) >> n | !(mask >> n)
            }
            _ => 0,
        },
        Op::Iadd => {
            // No carry beyond one bit above the higher operand; trailing zeros of both stay.
            let max = max_of(arg(0), mask).saturating_add(max_of(arg(1), mask));
            let low = low_ones((arg(0) & arg(1)).trailing_ones());
            if max <= mask { above(max) | low } else { low }
        }
        Op::Isub => low_ones((arg(0) & arg(1)).trailing_ones()),
        Op::Imul | Op::Umul24 => {
            let limit = if d.op == Op::Umul24 { 0xff_ffff } else { u64::MAX };
            let (a, b) = (max_of(arg(0), mask) & limit, max_of(arg(1), mask) & limit);
            let low = arg(0).trailing_ones().min(ty.bits()) + arg(1).trailing_ones().min(ty.bits());
            let low = low_ones(low.min(ty.bits()));
            match a.checked_mul(b) {
                Some(max) if max <= mask => above(max) | low,
                _ => low,
            }
        }
        Op::Udiv => match konst(1) {
            Some(c) if c != 0 => above(max_of(arg(0), mask) / c),
            _ => 0,
        },
        Op::Umod => match konst(1) {
            Some(c) if c != 0 => above((c - 1).min(max_of(arg(0), mask))),
            _ => 0,
        },
        Op::Umin => above(max_of(arg(0), mask).min(max_of(arg(1), mask))),
        Op::Umax => above(max_of(arg(0), mask).max(max_of(arg(1), mask))),
        Op::Smin | Op::Smax if arg(0) & arg(1) & sign(ty) != 0 => {
            above(max_of(arg(0), mask).max(max_of(arg(1), mask)))
        }
        Op::Popcount | Op::Clz => above(ty.bits() as u64),
        Op::Trunc => arg(0),
        Op::Zext => {
            let from = f.ty(d.args[0]).mask();
            arg(0) & from | !from
        }
        Op::Bitcast => arg(0),
        Op::BitExtractU => match konst(2) {
            Some(n) if n < 64 => !((1u64 << n) - 1),
            _ => 0,
        },
        Op::Builtin => match d.imm {
            Imm::Builtin(Builtin::LocalInvocationId(k)) => {
                above(limits.workgroup.get(k as usize).map_or(u32::MAX, |&n| n.saturating_sub(1)) as u64)
            }
            Imm::Builtin(Builtin::LocalInvocationIndex) => above(
                limits.workgroup.iter().fold(1u64, |a, &n| a.saturating_mul(n as u64)).saturating_sub(1),
            ),
            Imm::Builtin(Builtin::WorkgroupId(_)) => above(limits.groups.saturating_sub(1) as u64),
            Imm::Builtin(Builtin::NumWorkgroups(_)) => above(limits.groups as u64),
            _ => 0,
        },
        _ => 0,
    };
    zeros | !mask
}

/// The largest value that the known bits allow.
pub fn max_of(zeros: u64, mask: u64) -> u64 {
    !zeros & mask
}

pub fn sign(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

/// All bits above the highest set bit of `max`.
fn above(max: u64) -> u64 {
    match max.leading_zeros() {
        0 => 0,
        64 => u64::MAX,
        n => !(u64::MAX >> n),
    }
}

fn low_ones(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// The known zeros at the top, as a mask.
fn high_zeros(zeros: u64, mask: u64) -> u64 {
    above(max_of(zeros, mask))
}
