//! Sum, product, quotient, square root: correctly rounded.
//!
//! The mantissas are computed with more bits than are kept and a lowest one that says whether anything was lost below
//! (`Emit::shift_jam`), so that one rounding at the end is exact.

use super::emit::{BIAS, Emit, INFINITY, NAN, SIGN};
use kempe_ir::{Op, Type, Value};

/// Bits of a quotient: 53, one in case the first is 0, and one for rounding; the rest of the division says what is lost.
const QUOTIENT_BITS: u32 = 55;
/// Bits of a root: 53 and one for rounding.
const ROOT_BITS: u32 = 54;

impl Emit {
    pub fn difference(&mut self, a: Value, b: Value) -> Value {
        let sign = self.c64(SIGN);
        let b = self.wide(Op::Xor, b, sign);
        self.sum(a, b)
    }

    pub fn sum(&mut self, a: Value, b: Value) -> Value {
        // The larger magnitude first: it decides about sign, exponent and special values.
        let (ma, mb) = (self.magnitude(a), self.magnitude(b));
        let swap = self.op(Op::Ult, Type::I64, &[ma, mb]);
        let (x, y) = (self.select(swap, b, a), self.select(swap, a, b));
        let (hx, hy) = (self.hi(x), self.hi(y));
        let differ = self.int(Op::Xor, hx, hy);
        let minus = self.int_c(Op::Ashr, differ, 31);
        let (mx, ex) = self.mantissa(x);
        let (my, ey) = self.mantissa(y);
        // One bit above for a carry, ten below: what the shift of the smaller one loses is far below the bit that rounds,
        // for if it shifts by more than one place, the difference is at least half of the larger one.
        let (mx, my) = (self.shift_c(Op::Shl, mx, 10), self.shift_c(Op::Shl, my, 10));
        let distance = self.int(Op::Isub, ex, ey);
        let distance = self.int_c(Op::Umin, distance, 63);
        let my = self.shift_jam(my, distance);
        let mask = self.pair(minus, minus);
        let my = self.wide(Op::Xor, my, mask);
        let my = self.wide(Op::Isub, my, mask);
        let m = self.wide(Op::Iadd, mx, my);
        let zeros = self.clz64(m);
        let up = self.int(Op::Umin, zeros, ex);
        let m = self.shift(Op::Shl, m, up);
        let e = self.int(Op::Isub, ex, up);
        let nothing = self.c64(0);
        let is_zero = self.op(Op::Ieq, Type::I64, &[m, nothing]);
        let zero = self.c(0);
        let e = self.select(is_zero, zero, e);
        let (lo, hi) = self.pack(e, m);
        // A difference of equal numbers is +0; a sum of zeros of one sign has that sign.
        let unsigned = self.select(is_zero, minus, zero);
        let unsigned = self.op(Op::Not, Type::I32, &[unsigned]);
        let sign = self.int_c(Op::And, hx, 1 << 31);
        let sign = self.int(Op::And, sign, unsigned);
        let hi = self.int(Op::Or, hi, sign);
        // Infinities and NaN: x itself, unless it is NaN or the difference of two infinities.
        let (kx, ky) = (self.kind(x), self.kind(y));
        let infinity = self.c(INFINITY);
        let finite = self.int(Op::Ult, kx, infinity);
        let minus = self.int(Op::Ine, minus, zero);
        let infinite = self.int(Op::Ieq, ky, infinity);
        let no_sum = self.both(minus, infinite);
        let is_nan = self.is_nan_kind(kx);
        let no_sum = self.either(no_sum, is_nan);
        let nan = self.c(NAN);
        let special = self.select(no_sum, nan, hx);
        let (lo, hi) = (self.select(finite, lo, zero), self.select(finite, hi, special));
        self.pair(lo, hi)
    }

    pub fn product(&mut self, a: Value, b: Value) -> Value {
        let (ma, ea) = self.normal(a);
        let (mb, eb) = self.normal(b);
        let high = self.wide(Op::Umulhi, ma, mb);
        let low = self.wide(Op::Imul, ma, mb);
        let nothing = self.c64(0);
        let lost = self.op(Op::Ine, Type::I64, &[low, nothing]);
        let m = self.jam(high, lost);
        let e = self.int(Op::Iadd, ea, eb);
        let e = self.int_c(Op::Isub, e, BIAS);
        let bits = self.pack_any(e, m);
        let (ka, kb) = (self.kind(a), self.kind(b));
        let (small, large) = (self.int(Op::Umin, ka, kb), self.int(Op::Umax, ka, kb));
        let (nothing, infinity) = (self.c(0), self.c(INFINITY));
        let zero = self.int(Op::Ieq, small, nothing);
        let infinite = self.int(Op::Ule, infinity, large);
        let nan = self.is_nan_kind(large);
        let neither = self.both(zero, infinite);
        let nan = self.either(nan, neither);
        self.with_specials(a, b, bits, [zero, infinite, nan])
    }

    pub fn quotient(&mut self, a: Value, b: Value) -> Value {
        let (ma, ea) = self.normal(a);
        let (mb, eb) = self.normal(b);
        // A bit free above: the rest is doubled in each step.
        let (ma, mb) = (self.shift_c(Op::Lshr, ma, 1), self.shift_c(Op::Lshr, mb, 1));
        let nothing = self.c64(0);
        let found = self.repeat(QUOTIENT_BITS, &[ma, nothing], |e, params| {
            let (rest, quotient) = (params[0], params[1]);
            let fits = e.op(Op::Ule, Type::I64, &[mb, rest]);
            let less = e.wide(Op::Isub, rest, mb);
            let rest = e.select(fits, less, rest);
            let rest = e.shift_c(Op::Shl, rest, 1);
            let quotient = e.shift_c(Op::Shl, quotient, 1);
            vec![rest, e.jam(quotient, fits)]
        });
        let m = self.shift_c(Op::Shl, found[1], 64 - QUOTIENT_BITS);
        let lost = self.op(Op::Ine, Type::I64, &[found[0], nothing]);
        let m = self.jam(m, lost);
        let e = self.int(Op::Isub, ea, eb);
        let e = self.int_c(Op::Iadd, e, BIAS - 1);
        let bits = self.pack_any(e, m);
        let (ka, kb) = (self.kind(a), self.kind(b));
        let (none, infinity) = (self.c(0), self.c(INFINITY));
        let zeros = [self.int(Op::Ieq, ka, none), self.int(Op::Ieq, kb, none)];
        let infinite = [self.int(Op::Ule, infinity, ka), self.int(Op::Ule, infinity, kb)];
        let large = self.int(Op::Umax, ka, kb);
        let nan = self.is_nan_kind(large);
        let both_zero = self.both(zeros[0], zeros[1]);
        let both_infinite = self.both(infinite[0], infinite[1]);
        let nan = self.either(nan, both_zero);
        let nan = self.either(nan, both_infinite);
        let zero = self.either(zeros[0], infinite[1]);
        let infinite = self.either(infinite[0], zeros[1]);
        self.with_specials(a, b, bits, [zero, infinite, nan])
    }

    /// The sign of a product of `a` and `b` for a magnitude, unless it is zero, infinite or NaN; the last that holds counts.
    fn with_specials(&mut self, a: Value, b: Value, bits: (Value, Value), is: [Value; 3]) -> Value {
        let (sa, sb) = (self.sign(a), self.sign(b));
        let sign = self.int(Op::Xor, sa, sb);
        let (zero, infinity, nan) = (self.c(0), self.c(INFINITY), self.c(NAN));
        let special = self.either(is[0], is[1]);
        let special = self.either(special, is[2]);
        let lo = self.select(special, zero, bits.0);
        let hi = self.select(is[0], zero, bits.1);
        let hi = self.select(is[1], infinity, hi);
        let hi = self.int(Op::Or, hi, sign);
        let hi = self.select(is[2], nan, hi);
        self.pair(lo, hi)
    }

    /// Bit by bit: with the root q of the bits so far, the next one, b, is set if (2 q + b) b still fits into what is left.
    pub fn root(&mut self, a: Value) -> Value {
        let (m, e) = self.normal(a);
        // The number is v * 4^k with v from 1 to 4; 1 is bit 60, for the rest comes to less than 10.
        let e = self.int_c(Op::Isub, e, BIAS);
        let odd = self.int_c(Op::And, e, 1);
        let half = self.int_c(Op::Ashr, e, 1);
        let v = self.shift_c(Op::Lshr, m, 3);
        let v = self.shift(Op::Shl, v, odd);
        let (nothing, first) = (self.c64(0), self.c64(1 << 60));
        let found = self.repeat(ROOT_BITS, &[v, nothing, first], |e, params| {
            let (rest, root, bit) = (params[0], params[1], params[2]);
            let twice = e.shift_c(Op::Shl, root, 1);
            let take = e.wide(Op::Or, twice, bit);
            let fits = e.op(Op::Ule, Type::I64, &[take, rest]);
            let less = e.wide(Op::Isub, rest, take);
            let more = e.wide(Op::Or, root, bit);
            let rest = e.select(fits, less, rest);
            let root = e.select(fits, more, root);
            vec![e.shift_c(Op::Shl, rest, 1), root, e.shift_c(Op::Lshr, bit, 1)]
        });
        let m = self.shift_c(Op::Shl, found[1], 3);
        let lost = self.op(Op::Ine, Type::I64, &[found[0], nothing]);
        let m = self.jam(m, lost);
        let e = self.int_c(Op::Iadd, half, BIAS - 1);
        let (lo, hi) = self.pack(e, m);
        // Zeros and plus infinity are their own roots; NaN and what is below zero have none.
        let (kind, high) = (self.kind(a), self.hi(a));
        let (zero, infinity, nan) = (self.c(0), self.c(INFINITY), self.c(NAN));
        let is_zero = self.int(Op::Ieq, kind, zero);
        let is_infinite = self.int(Op::Ieq, kind, infinity);
        let itself = self.either(is_zero, is_infinite);
        let lo = self.select(itself, zero, lo);
        let hi = self.select(itself, high, hi);
        let negative = self.int(Op::Slt, high, zero);
        let some = self.int(Op::Ine, kind, zero);
        let below = self.both(negative, some);
        let is_nan = self.is_nan_kind(kind);
        let none = self.either(below, is_nan);
        let (lo, hi) = (self.select(none, zero, lo), self.select(none, nan, hi));
        self.pair(lo, hi)
    }
}
