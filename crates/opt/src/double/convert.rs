//! From and to other types.

use super::emit::{BIAS, Emit, FRACTION, INFINITY, NAN};
use kempe_ir::{Op, Type, Value};

/// Of f32: its exponent of 1, the bits of its fraction, infinity, the canonical NaN.
const SINGLE_BIAS: u32 = 127;
const SINGLE_FRACTION: u32 = 23;
const SINGLE_INFINITY: u32 = 0x7f80_0000;
const SINGLE_NAN: u32 = 0x7fc0_0000;

/// The same of f16.
const HALF_BIAS: u32 = 15;
const HALF_FRACTION: u32 = 10;
const HALF_INFINITY: u32 = 0x7c00;
const HALF_NAN: u32 = 0x7e00;

impl Emit {
    /// To an integer of `to`, toward zero; what is out of range becomes the nearest that is in it, NaN 0.
    pub fn integer_of(&mut self, signed: bool, to: Type, x: Value) -> Option<Value> {
        let wide = to == Type::I64;
        let bits = if wide { 64 } else { 32 };
        let (zero, high) = (self.c(0), self.hi(x));
        let negative = self.int(Op::Slt, high, zero);
        // The number is m * 2^(e - 63), its integer part what is left of m behind a shift.
        let (m, e) = self.normal(x);
        let e = self.int_c(Op::Isub, e, BIAS);
        let right = self.of_c(bits - 1, e);
        let right = self.int_c(Op::Umin, right, bits - 1);
        let (magnitude, ty) = match wide {
            true => (self.shift(Op::Lshr, m, right), Type::I64),
            false => {
                let m = self.hi(m);
                (self.int(Op::Lshr, m, right), Type::I32)
            }
        };
        let constant = |e: &mut Emit, v: u64| if wide { e.c64(v) } else { e.c(v as u32) };
        let none = constant(self, 0);
        let mask = ty.mask();
        let below_one = self.int(Op::Slt, e, zero);
        let magnitude = self.select(below_one, none, magnitude);
        let top = self.c(if signed { bits - 1 } else { bits });
        let large = self.int(Op::Sle, top, e);
        let nan = self.is_nan(x);
        let out = if signed {
            let most = constant(self, mask >> 1);
            let least = constant(self, !(mask >> 1) & mask);
            let minus = self.op(Op::Isub, ty, &[none, magnitude]);
            let (minus, plus) = (self.select(large, least, minus), self.select(large, most, magnitude));
            self.select(negative, minus, plus)
        } else {
            let most = constant(self, mask);
            let out = self.select(large, most, magnitude);
            self.select(negative, none, out)
        };
        let out = self.select(nan, none, out);
        Some(match to {
            Type::I32 | Type::I64 => out,
            Type::I8 | Type::I16 if signed => {
                let most = to.mask() as u32 >> 1;
                let out = self.int_c(Op::Smin, out, most);
                let out = self.int_c(Op::Smax, out, !most);
                self.op(Op::Trunc, to, &[out])
            }
            Type::I8 | Type::I16 => {
                let out = self.int_c(Op::Umin, out, to.mask() as u32);
                self.op(Op::Trunc, to, &[out])
            }
            _ => return None,
        })
    }

    pub fn of_integer(&mut self, signed: bool, from: Type, v: Value) -> Option<Value> {
        let zero = self.c(0);
        let (magnitude, sign) = match from {
            Type::I64 if signed => {
                let mask = self.shift_c(Op::Ashr, v, 63);
                let flipped = self.wide(Op::Xor, v, mask);
                (self.wide(Op::Isub, flipped, mask), self.sign(v))
            }
            Type::I64 => (v, zero),
            Type::Bool | Type::I8 | Type::I16 | Type::I32 => {
                let extend = if signed { Op::Sext } else { Op::Zext };
                let word = if from == Type::I32 { v } else { self.op(extend, Type::I32, &[v]) };
                if signed {
                    let minus = self.of_c(0, word);
                    let magnitude = self.int(Op::Smax, word, minus);
                    (self.zext(magnitude), self.int_c(Op::And, word, 1 << 31))
                } else {
                    (self.zext(word), zero)
                }
            }
            _ => return None,
        };
        let zeros = self.clz64(magnitude);
        let m = self.shift(Op::Shl, magnitude, zeros);
        let e = self.of_c(BIAS - 1 + 63, zeros);
        let nothing = self.c64(0);
        let is_zero = self.op(Op::Ieq, Type::I64, &[magnitude, nothing]);
        let e = self.select(is_zero, zero, e);
        let (lo, hi) = self.pack(e, m);
        let hi = self.int(Op::Or, hi, sign);
        Some(self.pair(lo, hi))
    }

    /// Rounds to f32 or f16.
    pub fn narrow(&mut self, to: Type, x: Value) -> Option<Value> {
        let (bias, fraction, infinity, nan) = match to {
            Type::F32 => (SINGLE_BIAS, SINGLE_FRACTION, SINGLE_INFINITY, SINGLE_NAN),
            Type::F16 => (HALF_BIAS, HALF_FRACTION, HALF_INFINITY, HALF_NAN),
            _ => return None,
        };
        // Highest one in bit 31; the lowest bit says what is lost. A double that is no normal number is far below both types.
        let (m, e) = self.mantissa(x);
        let m = self.shift_c(Op::Shl, m, 11);
        let (low, high) = (self.lo(m), self.hi(m));
        let low = self.int_c(Op::Umin, low, 1);
        let m = self.int(Op::Or, high, low);
        let e = self.int_c(Op::Isub, e, BIAS - bias + 1);
        let below = self.of_c(0, e);
        let below = self.int_c(Op::Smax, below, 0);
        let below = self.int_c(Op::Smin, below, 31);
        let kept = self.int(Op::Lshr, m, below);
        let back = self.int(Op::Shl, kept, below);
        let lost = self.int(Op::Ine, back, m);
        let lost = self.bit(lost);
        let m = self.int(Op::Or, kept, lost);
        let e = self.int_c(Op::Smax, e, 0);
        let e = self.int_c(Op::Umin, e, 2 * bias + 1);
        // As for doubles: round to even, a carry goes to the exponent.
        let drop = 31 - fraction;
        let kept = self.int_c(Op::Lshr, m, drop);
        let odd = self.int_c(Op::And, kept, 1);
        let rest = self.int_c(Op::And, m, (1 << drop) - 1);
        let rest = self.int(Op::Iadd, rest, odd);
        let half = self.c(1 << (drop - 1));
        let up = self.int(Op::Ult, half, rest);
        let up = self.bit(up);
        let e = self.int_c(Op::Shl, e, fraction);
        let bits = self.int(Op::Iadd, kept, e);
        let bits = self.int(Op::Iadd, bits, up);
        let bits = self.int_c(Op::Umin, bits, infinity);
        let sign = self.sign(x);
        let sign = self.int_c(Op::Lshr, sign, 32 - to.bits());
        let bits = self.int(Op::Or, bits, sign);
        let kind = self.kind(x);
        let is_nan = self.is_nan_kind(kind);
        let quiet = self.c(nan);
        let bits = self.select(is_nan, quiet, bits);
        Some(self.bits_as(to, bits))
    }

    /// Exactly the same number, from f32 or f16.
    pub fn widen(&mut self, from: Type, x: Value) -> Option<Value> {
        let x = match from {
            Type::F32 => x,
            Type::F16 => self.op(Op::Fconv, Type::F32, &[x]),
            _ => return None,
        };
        let bits = self.op(Op::Bitcast, Type::I32, &[x]);
        let magnitude = self.int_c(Op::And, bits, u32::MAX >> 1);
        // A denormal is a normal double: its highest one goes to where that of a normal number is, and counts as one more in the
        // exponent.
        let zero = self.c(0);
        let smallest = self.c(1 << SINGLE_FRACTION);
        let denormal = self.int(Op::Ult, magnitude, smallest);
        let zeros = self.op(Op::Clz, Type::I32, &[magnitude]);
        let up = self.int_c(Op::Isub, zeros, 31 - SINGLE_FRACTION);
        let up = self.select(denormal, up, zero);
        let shifted = self.int(Op::Shl, magnitude, up);
        let exponent = self.of_c(BIAS - SINGLE_BIAS, up);
        let exponent = self.int_c(Op::Shl, exponent, FRACTION);
        let hi = self.int_c(Op::Lshr, shifted, SINGLE_FRACTION - FRACTION);
        let hi = self.int(Op::Iadd, hi, exponent);
        let lo = self.int_c(Op::Shl, shifted, 32 - (SINGLE_FRACTION - FRACTION));
        let none = self.int(Op::Ieq, magnitude, zero);
        let hi = self.select(none, zero, hi);
        let infinity = self.c(SINGLE_INFINITY);
        let finite = self.int(Op::Ult, magnitude, infinity);
        let nan = self.int(Op::Ult, infinity, magnitude);
        let (infinity, quiet) = (self.c(INFINITY), self.c(NAN));
        let special = self.select(nan, quiet, infinity);
        let (lo, hi) = (self.select(finite, lo, zero), self.select(finite, hi, special));
        let sign = self.int_c(Op::And, bits, 1 << 31);
        let sign = self.select(nan, zero, sign);
        let hi = self.int(Op::Or, hi, sign);
        Some(self.pair(lo, hi))
    }

    fn bits_as(&mut self, ty: Type, bits: Value) -> Value {
        if ty == Type::F16 {
            let bits = self.op(Op::Trunc, Type::I16, &[bits]);
            return self.op(Op::Bitcast, Type::F16, &[bits]);
        }
        self.op(Op::Bitcast, ty, &[bits])
    }
}
