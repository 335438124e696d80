//! Integer division on 32-bit words.
//!
//! The quotient is found with float reciprocals and corrected in integers. Let r be the reciprocal of the divisor,
//! made too small by a little ([`SHRINK`]), so that every estimate is a lower bound:
//!
//! 1. q0 = trunc(float(a) * r); the rest a - q0 * b is not negative and below (2^13 + b) or so;
//! 2. q1 = trunc(float(rest) * r); the rest of that is below 2 b;
//! 3. one conditional step.
//!
//! The relative error of an estimate is at most that of two integer conversions and one product (each 2^-24), of
//! the reciprocal (the model rounds correctly; up to 2^-22 would still do) and of the shrinking (2^-20): together
//! below 2^-19. So q0 is too small by at most 2^32 * 2^-19 / b + 1, and the second estimate by less than
//! 1 + (2^13 / b + 1) * 2^-19: the quotient after step 2 is the right one or one less.
//!
//! Where the dividend is below 2^20, trunc((a + 1/2) * r) with the plain reciprocal is already exact: the exact
//! value is at least 1 / 2b away from an integer, and a / b * 2^-21 is less. Powers of two are shifts and masks.
//!
//! Division by zero: any quotient; the remainder is the dividend, by the same arithmetic.

use super::Words;
use kempe_ir::{Op, Type, Value};

/// Bits of a dividend for which one estimate is exact.
const ONE_STEP_BITS: u32 = 20;

/// What the reciprocal is multiplied with: 1 - 2^-20.
const SHRINK: f32 = 1.0 - 1.0 / 1048576.0;

impl<K> Words<'_, K> {
    /// float(v), v unsigned.
    fn unsigned_float(&mut self, v: Value) -> Value {
        if let Some(c) = self.e.value_of(v) {
            return self.e.f(c as f32);
        }
        self.e.convert(Op::Uitof, Type::F32, v)
    }

    /// About 1 / b, `shrink`: certainly not more.
    fn reciprocal(&mut self, b: Value, shrink: bool) -> Value {
        if let Some(c) = self.e.value_of(b) {
            let r = 1.0 / c as f32;
            return self.e.f(if shrink { r * SHRINK } else { r });
        }
        let float = self.unsigned_float(b);
        let r = self.e.float(Op::RcpApprox, &[float]);
        if !shrink {
            return r;
        }
        let less = self.e.f(SHRINK);
        self.e.fmul(r, less)
    }

    /// Quotient, and remainder if wanted.
    fn udivmod(&mut self, a: Value, b: Value, want_rest: bool) -> (Value, Value) {
        let wa = self.e.known(a).width();
        if wa <= ONE_STEP_BITS {
            let float = self.unsigned_float(a);
            let half = self.e.f(0.5);
            let float = self.e.fadd(float, half);
            let r = self.reciprocal(b, false);
            let quotient = self.e.fmul(float, r);
            let quotient = self.e.convert(Op::Ftoui, Type::I32, quotient);
            if !want_rest {
                return (quotient, quotient);
            }
            // The quotient is below 2^24 (or the divisor zero and the product with it, too).
            let whole = if self.e.known(b).width() <= 24 {
                self.e.umul24(quotient, b)
            } else {
                self.e.mul(quotient, b)
            };
            let rest = self.e.sub(a, whole);
            return (quotient, rest);
        }
        let r = self.reciprocal(b, true);
        let estimate = |l: &mut Self, of: Value| {
            let float = l.unsigned_float(of);
            let q = l.e.fmul(float, r);
            let q = l.e.convert(Op::Ftoui, Type::I32, q);
            let whole = l.e.mul(q, b);
            (q, l.e.sub(of, whole))
        };
        let (mut q, mut rest) = estimate(self, a);
        // A large divisor leaves less than 2 b at once: a / b * 2^-19 is below 1.
        let large = self.e.value_of(b).is_some_and(|b| b as u64 >= 1u64 << wa.saturating_sub(18));
        if !large {
            let (more, left) = estimate(self, rest);
            q = self.e.add(q, more);
            rest = left;
        }
        let fits = self.e.compare(Op::Ule, Type::I32, b, rest);
        let next = self.e.add_c(q, 1);
        let quotient = self.e.select(fits, next, q);
        if !want_rest {
            return (quotient, quotient);
        }
        let less = self.e.sub(rest, b);
        let rest = self.e.select(fits, less, rest);
        (quotient, rest)
    }

    pub fn udiv(&mut self, a: Value, b: Value) -> Value {
        match self.e.value_of(b) {
            Some(c) if c.is_power_of_two() => self.e.lshr_c(a, c.trailing_zeros()),
            _ => self.udivmod(a, b, false).0,
        }
    }

    pub fn umod(&mut self, a: Value, b: Value) -> Value {
        match self.e.value_of(b) {
            Some(0) => a,
            Some(c) if c.is_power_of_two() => self.e.and_c(a, c - 1),
            _ => self.udivmod(a, b, true).1,
        }
    }

    /// Absolute value as unsigned, and the sign as 0 or -1.
    fn magnitude(&mut self, v: Value) -> (Value, Option<Value>) {
        let known = self.e.known(v);
        if known.zeros >> 31 == 1 {
            return (v, None);
        }
        let zero = self.e.i(0);
        let negated = self.e.sub(zero, v);
        if let Some(c) = self.e.value_of(v) {
            return if (c as i32) < 0 { (negated, Some(self.e.i(u32::MAX))) } else { (v, None) };
        }
        let magnitude = self.e.flagged(Op::Smax, Type::I32, kempe_ir::Flags::NONE, &[v, negated]);
        // |v| of a value with s sign bits is at most 2^(32 - s).
        if known.signs > 1 {
            self.e.set_known(magnitude, super::emit::Known::below(33 - known.signs as u32));
        }
        let sign = self.e.ashr_c(v, 31);
        (magnitude, Some(sign))
    }

    /// (v ^ sign) - sign: negated where the sign is -1.
    fn with_sign(&mut self, v: Value, sign: Option<Value>) -> Value {
        let Some(sign) = sign else { return v };
        let flipped = self.e.xor(v, sign);
        self.e.sub(flipped, sign)
    }

    /// The dividend with its rounding correction for a division by 2^k: negative ones get 2^k - 1 added.
    fn toward_zero(&mut self, a: Value, k: u32) -> Value {
        let sign = self.e.ashr_c(a, 31);
        let add = self.e.lshr_c(sign, 32 - k);
        self.e.add(a, add)
    }

    fn signed_power(&self, b: Value) -> Option<u32> {
        let c = self.e.value_of(b)?;
        (c.is_power_of_two() && (c as i32) > 0).then(|| c.trailing_zeros())
    }

    pub fn sdiv(&mut self, a: Value, b: Value) -> Value {
        match self.signed_power(b) {
            Some(0) => return a,
            Some(k) => {
                let a = self.toward_zero(a, k);
                return self.e.ashr_c(a, k);
            }
            None => {}
        }
        let ((ma, sa), (mb, sb)) = (self.magnitude(a), self.magnitude(b));
        let quotient = self.udiv(ma, mb);
        let sign = match (sa, sb) {
            (Some(a), Some(b)) => Some(self.e.xor(a, b)),
            (sign, None) | (None, sign) => sign,
        };
        self.with_sign(quotient, sign)
    }

    pub fn srem(&mut self, a: Value, b: Value) -> Value {
        if let Some(k) = self.signed_power(b) {
            if k == 0 {
                return self.e.i(0);
            }
            let biased = self.toward_zero(a, k);
            let whole = self.e.and_c(biased, u32::MAX << k);
            return self.e.sub(a, whole);
        }
        let ((ma, sa), (mb, _)) = (self.magnitude(a), self.magnitude(b));
        let rest = self.umod(ma, mb);
        self.with_sign(rest, sa)
    }

    pub fn smod(&mut self, a: Value, b: Value) -> Value {
        if let Some(k) = self.signed_power(b) {
            return self.e.and_c(a, (1u32 << k) - 1);
        }
        let rest = self.srem(a, b);
        // A remainder with the other sign gets the divisor added, unless it is zero.
        let differ = self.e.xor(rest, b);
        let zero = self.e.i(0);
        let other = self.e.compare(Op::Slt, Type::I32, differ, zero);
        let some = self.e.compare(Op::Ine, Type::I32, rest, zero);
        let adjust = self.e.bool_op(Op::And, &[other, some]);
        let moved = self.e.add(rest, b);
        self.e.select(adjust, moved, rest)
    }
}
