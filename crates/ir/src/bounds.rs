//! How far two right float results may lie apart: the table of `docs/bounds.md` as code.
//!
//! [`local`] is what one operation adds when both sides start from the same operands; [`ulp`], [`min_normal`] and
//! [`unit`] describe the types. How the differences grow through a program is in `interp::error`.

use crate::ops::Op;
use crate::types::Type;

/// Bits of a significand, the hidden one included.
fn precision(ty: Type) -> i32 {
    match ty {
        Type::F16 => 11,
        Type::F64 => 53,
        _ => 24,
    }
}

/// The smallest normal number.
pub fn min_normal(ty: Type) -> f64 {
    match ty {
        Type::F16 => 1.0 / (1 << 14) as f64,
        Type::F64 => f64::MIN_POSITIVE,
        _ => f32::MIN_POSITIVE as f64,
    }
}

/// The largest finite number.
pub fn max_finite(ty: Type) -> f64 {
    match ty {
        Type::F16 => 65504.0,
        Type::F64 => f64::MAX,
        _ => f32::MAX as f64,
    }
}

/// Distance from 1 to the next number.
pub fn unit(ty: Type) -> f64 {
    2f64.powi(1 - precision(ty))
}

/// Distance of neighbouring numbers at the magnitude of `v`.
pub fn ulp(ty: Type, v: f64) -> f64 {
    let m = v.abs().clamp(min_normal(ty), max_finite(ty));
    // The power of two at or below m: clear the fraction.
    let power = f64::from_bits(m.to_bits() & 0x7ff0_0000_0000_0000);
    power * unit(ty)
}

/// Absolute local bound of an operation with first operand `x`, second operand `y` and result `v`, without what
/// flushed denormals add. `None`: nothing is promised for these operands.
///
/// Multiplications that may be contracted, `fma` and the remainders have rules of their own.
pub fn local(op: Op, ty: Type, x: f64, y: f64, v: f64) -> Option<f64> {
    let half = ty == Type::F16;
    Some(match op {
        Op::Fdiv => {
            let limit = if half { 2f64.powi(14) } else { 2f64.powi(126) };
            if ty != Type::F64 && !(1.0 / limit..=limit).contains(&y.abs()) {
                return None;
            }
            3.0 * ulp(ty, v)
        }
        Op::Fsqrt => 4.5 * unit(ty) * v.abs() + 0.5 * ulp(ty, v),
        Op::Frsqrt => 2.5 * ulp(ty, v),
        Op::Fexp2 => ((if half { 1.5 } else { 3.5 }) + 2.0 * x.abs()) * ulp(ty, v),
        Op::Flog2 => {
            let inside = (0.5..=2.0).contains(&x);
            let allowed = match (inside, half) {
                (false, _) => 3.0 * ulp(ty, v),
                (true, false) => 2f64.powi(-21),
                (true, true) => 2f64.powi(-7),
            };
            allowed + 0.5 * ulp(ty, v)
        }
        Op::Fsin | Op::Fcos => {
            let inside = if half { 2f64.powi(-7) } else { 2f64.powi(-11) };
            inside * (x.abs() / std::f64::consts::PI).max(1.0) + 0.5 * ulp(ty, v)
        }
        _ => 0.0,
    })
}

/// Part of the changed words of a run that must be decided.
pub const DECIDED: f64 = 0.9;

/// A bound larger than this part of the largest magnitude in the buffer decides nothing.
pub const VACUOUS: f64 = 1.0 / 16.0;

/// Inputs tried per module, and how many of them must count.
pub const SEEDS: u64 = 16;
pub const COUNTED_RUNS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ulps() {
        assert_eq!(ulp(Type::F32, 1.0), 2f64.powi(-23));
        assert_eq!(ulp(Type::F32, 1.999), 2f64.powi(-23));
        assert_eq!(ulp(Type::F32, -2.0), 2f64.powi(-22));
        assert_eq!(ulp(Type::F32, 0.0), 2f64.powi(-149));
        assert_eq!(ulp(Type::F16, 1024.0), 1.0);
        assert_eq!(ulp(Type::F16, 0.0), 2f64.powi(-24));
        assert_eq!(ulp(Type::F64, 1.0), f64::EPSILON);
        assert_eq!(ulp(Type::F32, f64::INFINITY), 2f64.powi(104));
    }

    #[test]
    fn the_table() {
        let f = Type::F32;
        assert_eq!(local(Op::Fadd, f, 1.0, 2.0, 3.0), Some(0.0));
        assert_eq!(local(Op::Fdiv, f, 1.0, 3.0, 1.0 / 3.0), Some(3.0 * 2f64.powi(-25)));
        assert_eq!(local(Op::Fdiv, f, 1.0, 2f64.powi(-127), 2f64.powi(127)), None);
        assert_eq!(local(Op::Frsqrt, f, 4.0, 0.0, 0.5), Some(2.5 * 2f64.powi(-24)));
        assert_eq!(local(Op::Fsqrt, f, 4.0, 0.0, 2.0), Some(9.0 * 2f64.powi(-23) + 2f64.powi(-23)));
        assert_eq!(local(Op::Fexp2, f, -3.0, 0.0, 0.125), Some(9.5 * 2f64.powi(-26)));
        assert_eq!(local(Op::Fexp2, Type::F16, 1.0, 0.0, 2.0), Some(3.5 * 2f64.powi(-9)));
        assert_eq!(local(Op::Flog2, f, 1.5, 0.0, 0.5), Some(2f64.powi(-21) + 2f64.powi(-25)));
        assert_eq!(local(Op::Flog2, f, 8.0, 0.0, 3.0), Some(3.5 * 2f64.powi(-22)));
        assert_eq!(local(Op::Fsin, f, 1.0, 0.0, 0.75), Some(2f64.powi(-11) + 2f64.powi(-25)));
    }
}
