//! To whole numbers; comparisons, the smaller and the larger of two.

use super::emit::{BIAS, Emit, FRACTION, NAN, SIGN};
use kempe_ir::{Op, Type, Value};

/// Bits of the fraction.
const FRACTION_BITS: u32 = FRACTION + 32;

impl Emit {
    /// `ftrunc`, `ffloor`, `fceil`, `fround`.
    pub fn whole(&mut self, op: Op, x: Value) -> Value {
        let zero = self.c(0);
        let e = self.exponent(x);
        let e = self.int_c(Op::Isub, e, BIAS);
        // Below 1 all bits are fraction; that is done for 1 and mended at the end.
        let places = self.int_c(Op::Smax, e, 0);
        let places = self.int_c(Op::Umin, places, FRACTION_BITS);
        let ones = self.c64(!0 << FRACTION_BITS);
        let mask = self.shift(Op::Ashr, ones, places);
        let magnitude = self.magnitude(x);
        let kept = self.wide(Op::And, magnitude, mask);
        let below_one = self.int(Op::Slt, e, zero);
        let one = self.c64(1f64.to_bits());
        let nothing = self.c64(0);
        let high = self.hi(x);
        let out = if op == Op::Ftrunc {
            self.select(below_one, nothing, kept)
        } else {
            // The next whole number is the bits with a one added in the last place that counts: a carry out of the fraction
            // goes to the exponent, where it belongs.
            let unit = self.c64(1 << FRACTION_BITS);
            let unit = self.shift(Op::Lshr, unit, places);
            let (up, up_below_one) = if op == Op::Fround {
                let rest = self.wide(Op::Isub, magnitude, kept);
                let twice = self.shift_c(Op::Shl, rest, 1);
                let odd = self.wide(Op::And, magnitude, unit);
                let odd = self.op(Op::Ine, Type::I64, &[odd, nothing]);
                let more = self.op(Op::Ult, Type::I64, &[unit, twice]);
                let tie = self.op(Op::Ieq, Type::I64, &[unit, twice]);
                let tie = self.both(tie, odd);
                let half = self.c64(0.5f64.to_bits());
                let up_below_one = self.op(Op::Ult, Type::I64, &[half, magnitude]);
                (self.either(more, tie), up_below_one)
            } else {
                let away = match op {
                    Op::Fceil => self.int(Op::Sle, zero, high),
                    _ => self.int(Op::Slt, high, zero),
                };
                let part = self.op(Op::Ine, Type::I64, &[kept, magnitude]);
                let some = self.op(Op::Ine, Type::I64, &[magnitude, nothing]);
                (self.both(away, part), self.both(away, some))
            };
            let next = self.wide(Op::Iadd, kept, unit);
            let out = self.select(up, next, kept);
            let small = self.select(up_below_one, one, nothing);
            self.select(below_one, small, out)
        };
        let (lo, hi) = (self.lo(out), self.hi(out));
        let sign = self.int_c(Op::And, high, 1 << 31);
        let hi = self.int(Op::Or, hi, sign);
        self.quiet(x, lo, hi)
    }

    /// The words, or the canonical NaN if `x` is NaN.
    fn quiet(&mut self, x: Value, lo: Value, hi: Value) -> Value {
        let kind = self.kind(x);
        let nan = self.is_nan_kind(kind);
        let (zero, quiet) = (self.c(0), self.c(NAN));
        let (lo, hi) = (self.select(nan, zero, lo), self.select(nan, quiet, hi));
        self.pair(lo, hi)
    }

    pub fn is_nan(&mut self, x: Value) -> Value {
        let kind = self.kind(x);
        self.is_nan_kind(kind)
    }

    /// All ones in 64 bits if negative.
    fn sign_mask(&mut self, x: Value) -> Value {
        self.shift_c(Op::Ashr, x, 63)
    }

    /// Numbers in the order of signed integers, both zeros 0.
    fn rank(&mut self, x: Value) -> Value {
        let (magnitude, mask) = (self.magnitude(x), self.sign_mask(x));
        let flipped = self.wide(Op::Xor, magnitude, mask);
        self.wide(Op::Isub, flipped, mask)
    }

    fn unordered(&mut self, a: Value, b: Value) -> Value {
        let (ka, kb) = (self.kind(a), self.kind(b));
        let large = self.int(Op::Umax, ka, kb);
        self.is_nan_kind(large)
    }

    /// `feq`, `fne`, `flt`, `fle`.
    pub fn compare(&mut self, op: Op, a: Value, b: Value) -> Value {
        let unordered = self.unordered(a, b);
        let (ra, rb) = (self.rank(a), self.rank(b));
        let by = match op {
            Op::Feq => Op::Ieq,
            Op::Fne => Op::Ine,
            Op::Flt => Op::Slt,
            _ => Op::Sle,
        };
        let holds = self.op(by, Type::I64, &[ra, rb]);
        if op == Op::Fne {
            return self.either(holds, unordered);
        }
        let ordered = self.op(Op::Not, Type::Bool, &[unordered]);
        self.both(holds, ordered)
    }

    /// `fmin`, `fmax`: of a number and NaN the number; -0 is below +0.
    pub fn extreme(&mut self, smaller: bool, a: Value, b: Value) -> Value {
        // Signed order of the bits, with those of negative numbers turned round.
        let key = |e: &mut Emit, x: Value| {
            let mask = e.sign_mask(x);
            let magnitude = e.c64(!SIGN);
            let flip = e.wide(Op::And, mask, magnitude);
            e.wide(Op::Xor, x, flip)
        };
        let (ka, kb) = (key(self, a), key(self, b));
        let other = match smaller {
            true => self.op(Op::Slt, Type::I64, &[kb, ka]),
            false => self.op(Op::Slt, Type::I64, &[ka, kb]),
        };
        let (na, nb) = (self.is_nan(a), self.is_nan(b));
        let number = self.op(Op::Not, Type::Bool, &[nb]);
        let other = self.both(other, number);
        let other = self.either(other, na);
        let out = self.select(other, b, a);
        let (lo, hi) = (self.lo(out), self.hi(out));
        self.quiet(out, lo, hi)
    }

    /// All lanes hold equal numbers.
    pub fn vote_equal(&mut self, a: Value) -> Value {
        let (rank, nan) = (self.rank(a), self.is_nan(a));
        let number = self.op(Op::Not, Type::Bool, &[nan]);
        let same = self.op(Op::VoteEq, Type::I64, &[rank]);
        let numbers = self.op(Op::VoteAll, Type::Bool, &[number]);
        self.both(same, numbers)
    }
}
