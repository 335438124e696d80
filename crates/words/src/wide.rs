//! 64-bit integers as pairs of words, the low one first.
//!
//! Carries come from unsigned comparisons (selection can take them from the carry flag), products from the three
//! 32-bit ones that matter, shifts by a variable count from both words with a select on bit 5 of the count.
//! Division shifts and subtracts in a loop of 64 steps, unless both operands are known to fit in 32 bits.
//!
//! Left out: a quotient by floats, which would be faster than the loop and several times as long.

use super::{Rep, Result, Words};
use kempe_ir::{Flags, InstData, Op, Target, Term, Type, Value};
use smallvec::{SmallVec, smallvec};

/// Low word, high word.
pub type Pair = (Value, Value);

/// Steps of the division loop: one per bit.
const DIVISION_STEPS: u32 = 64;

impl<K> Words<'_, K> {
    pub fn arg_pair(&self, inst: &InstData, n: usize) -> Result<Pair> {
        match self.rep(self.arg(inst, n)?)? {
            Rep::Pair(lo, hi) => Ok((lo, hi)),
            _ => self.error(format!("`{}` needs a 64-bit integer here", inst.op.name())),
        }
    }

    pub fn wide_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let a = self.arg_pair(inst, 0)?;
        let b = |l: &Self| l.arg_pair(inst, 1);
        let out = match inst.op {
            Op::Iadd => self.add64(a, b(self)?),
            Op::Isub => self.sub64(a, b(self)?),
            Op::Ineg => self.neg64(a),
            Op::Imul => self.mul64(a, b(self)?),
            Op::Umulhi => self.umulhi64(a, b(self)?),
            Op::Smulhi => {
                let b = b(self)?;
                let high = self.umulhi64(a, b);
                let (sa, sb) = (self.sign_pair(a), self.sign_pair(b));
                let (ca, cb) = (self.both(Op::And, sa, b), self.both(Op::And, sb, a));
                let high = self.sub64(high, ca);
                self.sub64(high, cb)
            }
            Op::And | Op::Or | Op::Xor => self.both(inst.op, a, b(self)?),
            Op::Not => self.not64(a),
            Op::Shl | Op::Lshr | Op::Ashr => {
                let n = self.arg_one(inst, 1)?;
                self.shift64(inst.op, a, n)
            }
            Op::Ieq | Op::Ine | Op::Slt | Op::Sle | Op::Ult | Op::Ule => {
                let v = self.compare64(inst.op, a, b(self)?);
                self.set_one(r, v);
                return Ok(());
            }
            Op::Smin | Op::Smax | Op::Umin | Op::Umax => {
                let b = b(self)?;
                let less = if matches!(inst.op, Op::Smin | Op::Smax) { Op::Slt } else { Op::Ult };
                let take_a = if matches!(inst.op, Op::Smin | Op::Umin) {
                    self.compare64(less, a, b)
                } else {
                    self.compare64(less, b, a)
                };
                self.select64(take_a, a, b)
            }
            Op::Popcount => {
                let (lo, hi) = (self.popcount(a.0), self.popcount(a.1));
                let sum = self.e.add(lo, hi);
                (sum, self.e.i(0))
            }
            Op::Bitreverse => (self.bitreverse(a.1), self.bitreverse(a.0)),
            Op::Clz => {
                let n = self.clz64(a);
                (n, self.e.i(0))
            }
            Op::FindLsb => {
                let negative = self.neg64(a);
                let lowest = self.both(Op::And, a, negative);
                self.find_msb64(lowest)
            }
            Op::FindUmsb => self.find_msb64(a),
            Op::FindSmsb => {
                let sign = self.sign_pair(a);
                let differs = self.both(Op::Xor, a, sign);
                self.find_msb64(differs)
            }
            Op::BitInsert => {
                let insert = b(self)?;
                let (offset, count) = (self.arg_one(inst, 2)?, self.arg_one(inst, 3)?);
                let mask = self.field_mask64(count);
                let mask = self.shift64(Op::Shl, mask, offset);
                let moved = self.shift64(Op::Shl, insert, offset);
                let differ = self.both(Op::Xor, a, moved);
                let change = self.both(Op::And, differ, mask);
                self.both(Op::Xor, a, change)
            }
            Op::BitExtractU | Op::BitExtractS => {
                let (offset, count) = (self.arg_one(inst, 1)?, self.arg_one(inst, 2)?);
                let mask = self.field_mask64(count);
                let low = self.shift64(Op::Lshr, a, offset);
                let field = self.both(Op::And, low, mask);
                if inst.op == Op::BitExtractU {
                    field
                } else {
                    // As for 32 bits: (x ^ s) - s, s the top bit of the field.
                    let one = (self.e.i(1), self.e.i(0));
                    let top = self.e.add_c(count, u32::MAX);
                    let sign = self.shift64(Op::Shl, one, top);
                    let flipped = self.both(Op::Xor, field, sign);
                    self.sub64(flipped, sign)
                }
            }
            Op::Udiv => self.udivmod64(a, b(self)?).0,
            Op::Umod => self.udivmod64(a, b(self)?).1,
            Op::Sdiv | Op::Srem | Op::Smod => self.signed_division64(inst.op, a, b(self)?),
            op => return self.error(format!("`{}` does not exist for i64", op.name())),
        };
        self.set(r, Rep::Pair(out.0, out.1));
        Ok(())
    }

    fn both(&mut self, op: Op, a: Pair, b: Pair) -> Pair {
        let e = &mut self.e;
        match op {
            Op::And => (e.and(a.0, b.0), e.and(a.1, b.1)),
            Op::Or => (e.or(a.0, b.0), e.or(a.1, b.1)),
            _ => (e.xor(a.0, b.0), e.xor(a.1, b.1)),
        }
    }

    fn not64(&mut self, a: Pair) -> Pair {
        (self.e.not(a.0), self.e.not(a.1))
    }

    pub fn select64(&mut self, cond: Value, a: Pair, b: Pair) -> Pair {
        (self.e.select(cond, a.0, b.0), self.e.select(cond, a.1, b.1))
    }

    /// All bits like the sign.
    fn sign_pair(&mut self, a: Pair) -> Pair {
        let sign = self.e.ashr_c(a.1, 31);
        (sign, sign)
    }

    pub fn add64(&mut self, a: Pair, b: Pair) -> Pair {
        let e = &mut self.e;
        let lo = e.add(a.0, b.0);
        let hi = e.add(a.1, b.1);
        // Without a carry when both low words are known to leave room.
        if e.known(a.0).width().max(e.known(b.0).width()) < 32 {
            return (lo, hi);
        }
        if e.value_of(a.0) == Some(0) || e.value_of(b.0) == Some(0) {
            return (lo, hi);
        }
        let carry = e.ult(lo, b.0);
        let carry = e.bit(carry);
        (lo, e.add(hi, carry))
    }

    pub fn sub64(&mut self, a: Pair, b: Pair) -> Pair {
        let e = &mut self.e;
        let lo = e.sub(a.0, b.0);
        let hi = e.sub(a.1, b.1);
        if e.value_of(b.0) == Some(0) {
            return (lo, hi);
        }
        let borrow = e.ult(a.0, b.0);
        let borrow = e.bit(borrow);
        (lo, e.sub(hi, borrow))
    }

    pub fn neg64(&mut self, a: Pair) -> Pair {
        let zero = self.e.i(0);
        self.sub64((zero, zero), a)
    }

    pub fn mul64(&mut self, a: Pair, b: Pair) -> Pair {
        let lo = self.e.mul(a.0, b.0);
        let high = self.umulhi(a.0, b.0);
        let (x, y) = (self.e.mul(a.0, b.1), self.e.mul(a.1, b.0));
        let cross = self.e.add(x, y);
        (lo, self.e.add(high, cross))
    }

    /// All 64 bits of a 32-bit product.
    fn full_product(&mut self, a: Value, b: Value) -> Pair {
        (self.e.mul(a, b), self.umulhi(a, b))
    }

    fn umulhi64(&mut self, a: Pair, b: Pair) -> Pair {
        let zero = self.e.i(0);
        let low = self.umulhi(a.0, b.0);
        let middle = self.full_product(a.0, b.1);
        let middle = self.add64(middle, (low, zero));
        let other = self.full_product(a.1, b.0);
        let other = self.add64(other, (middle.0, zero));
        let high = self.full_product(a.1, b.1);
        let high = self.add64(high, (middle.1, zero));
        self.add64(high, (other.1, zero))
    }

    pub fn shift64(&mut self, op: Op, a: Pair, n: Value) -> Pair {
        let e = &mut self.e;
        if let Some(n) = e.value_of(n) {
            let n = n & 63;
            let zero = e.i(0);
            return match (op, n) {
                (_, 0) => a,
                (Op::Shl, 1..32) => {
                    let (high, carried) = (e.shl_c(a.1, n), e.lshr_c(a.0, 32 - n));
                    (e.shl_c(a.0, n), e.or(high, carried))
                }
                (Op::Shl, _) => (zero, e.shl_c(a.0, n - 32)),
                (_, 1..32) => {
                    let (low, carried) = (e.lshr_c(a.0, n), e.shl_c(a.1, 32 - n));
                    let high = if op == Op::Lshr { e.lshr_c(a.1, n) } else { e.ashr_c(a.1, n) };
                    (e.or(low, carried), high)
                }
                (Op::Lshr, _) => (e.lshr_c(a.1, n - 32), zero),
                _ => (e.ashr_c(a.1, n - 32), e.ashr_c(a.1, 31)),
            };
        }
        // Shifts take the count modulo 32. The bits that cross the word are shifted by 1 and by 31 - n, since 32 - n
        // would be 0 for a count of 0; 31 - n and !n agree modulo 32.
        let rest = e.not(n);
        let bit = e.and_c(n, 32);
        let far = e.is_zero(bit);
        let far = e.bool_op(Op::Not, &[far]);
        if op == Op::Shl {
            let low = e.shl(a.0, n);
            let high = e.shl(a.1, n);
            let carried = e.lshr_c(a.0, 1);
            let carried = e.lshr(carried, rest);
            let high = e.or(high, carried);
            let zero = e.i(0);
            return (e.select(far, zero, low), e.select(far, low, high));
        }
        let low = e.lshr(a.0, n);
        let high = if op == Op::Lshr { e.lshr(a.1, n) } else { e.ashr(a.1, n) };
        let carried = e.shl_c(a.1, 1);
        let carried = e.shl(carried, rest);
        let low = e.or(low, carried);
        let fill = if op == Op::Lshr { e.i(0) } else { e.ashr_c(a.1, 31) };
        (e.select(far, high, low), e.select(far, fill, high))
    }

    pub fn compare64(&mut self, op: Op, a: Pair, b: Pair) -> Value {
        let e = &mut self.e;
        match op {
            Op::Ieq | Op::Ine => {
                let (lo, hi) = (e.xor(a.0, b.0), e.xor(a.1, b.1));
                let any = e.or(lo, hi);
                let zero = e.i(0);
                e.compare(op, Type::I32, any, zero)
            }
            Op::Slt | Op::Ult => {
                let high = e.compare(op, Type::I32, a.1, b.1);
                let same = e.ieq(a.1, b.1);
                let low = e.ult(a.0, b.0);
                let low = e.bool_op(Op::And, &[same, low]);
                e.bool_op(Op::Or, &[high, low])
            }
            // a <= b is not b < a.
            _ => {
                let strict = if op == Op::Sle { Op::Slt } else { Op::Ult };
                let greater = self.compare64(strict, b, a);
                self.e.bool_op(Op::Not, &[greater])
            }
        }
    }

    pub fn clz64(&mut self, a: Pair) -> Value {
        let e = &mut self.e;
        let (low, high) = (e.clz(a.0), e.clz(a.1));
        let low = e.add_c(low, 32);
        let none = e.is_zero(a.1);
        e.select(none, low, high)
    }

    fn find_msb64(&mut self, a: Pair) -> Pair {
        let zeros = self.clz64(a);
        let last = self.e.i(63);
        let n = self.e.sub(last, zeros);
        (n, self.e.ashr_c(n, 31))
    }

    /// `count` ones in the low bits; 0 to 64.
    fn field_mask64(&mut self, count: Value) -> Pair {
        let ones = self.e.i(u32::MAX);
        if let Some(c) = self.e.value_of(count) {
            if c >= 64 {
                return (ones, ones);
            }
            let above = self.shift64(Op::Shl, (ones, ones), count);
            return self.not64(above);
        }
        let above = self.shift64(Op::Shl, (ones, ones), count);
        let mask = self.not64(above);
        let whole = self.e.i(64);
        let part = self.e.ult(count, whole);
        self.select64(part, mask, (ones, ones))
    }

    fn signed_division64(&mut self, op: Op, a: Pair, b: Pair) -> Pair {
        let (sa, sb) = (self.sign_pair(a), self.sign_pair(b));
        let ma = self.with_sign64(a, sa);
        let mb = self.with_sign64(b, sb);
        let (quotient, rest) = self.udivmod64(ma, mb);
        if op == Op::Sdiv {
            let sign = self.both(Op::Xor, sa, sb);
            return self.with_sign64(quotient, sign);
        }
        let rest = self.with_sign64(rest, sa);
        if op == Op::Srem {
            return rest;
        }
        let differ = self.e.xor(rest.1, b.1);
        let zero = self.e.i(0);
        let other = self.e.compare(Op::Slt, Type::I32, differ, zero);
        let some = self.compare64(Op::Ine, rest, (zero, zero));
        let adjust = self.e.bool_op(Op::And, &[other, some]);
        let moved = self.add64(rest, b);
        self.select64(adjust, moved, rest)
    }

    /// (v ^ sign) - sign.
    fn with_sign64(&mut self, v: Pair, sign: Pair) -> Pair {
        if self.e.value_of(sign.0) == Some(0) {
            return v;
        }
        let flipped = self.both(Op::Xor, v, sign);
        self.sub64(flipped, sign)
    }

    /// Quotient and remainder.
    fn udivmod64(&mut self, a: Pair, b: Pair) -> (Pair, Pair) {
        let zero = self.e.i(0);
        if let (Some(lo), Some(hi)) = (self.e.value_of(b.0), self.e.value_of(b.1)) {
            let c = (hi as u64) << 32 | lo as u64;
            if c.is_power_of_two() {
                let count = self.e.i(c.trailing_zeros());
                let quotient = self.shift64(Op::Lshr, a, count);
                let mask = c - 1;
                let mask = (self.e.i(mask as u32), self.e.i((mask >> 32) as u32));
                return (quotient, self.both(Op::And, a, mask));
            }
        }
        if self.e.value_of(a.1) == Some(0) && self.e.value_of(b.1) == Some(0) {
            let (quotient, rest) = self.udivmod32(a.0, b.0);
            return ((quotient, zero), (rest, zero));
        }
        // Each step moves the topmost bit of `a` into the rest; when the divisor fits in, it is taken off and a one
        // enters `a` from below. After 64 steps `a` is the quotient. A bit that leaves the rest at the top means that
        // the divisor fits in any case.
        let header = self.append_block();
        let mut param = || self.e.param(header, Type::I32);
        let (count, rest, work) = (param(), (param(), param()), (param(), param()));
        self.e.jump(header, &[zero, zero, zero, a.0, a.1]);
        self.e.switch_to(header);
        let top = self.e.lshr_c(work.1, 31);
        let one = self.e.i(1);
        let out = self.e.ashr_c(rest.1, 31);
        let shifted = self.shift64(Op::Shl, rest, one);
        let shifted = (self.e.or(shifted.0, top), shifted.1);
        let zero = self.e.i(0);
        let overflow = self.e.compare(Op::Ine, Type::I32, out, zero);
        let below = self.compare64(Op::Ult, shifted, b);
        let fits = self.e.bool_op(Op::Not, &[below]);
        let fits = self.e.bool_op(Op::Or, &[fits, overflow]);
        let less = self.sub64(shifted, b);
        let new_rest = self.select64(fits, less, shifted);
        let bit = self.e.bit(fits);
        let moved = self.shift64(Op::Shl, work, one);
        let new_work = (self.e.or(moved.0, bit), moved.1);
        let next = self.e.add_c(count, 1);
        let steps = self.e.i(DIVISION_STEPS);
        let again = self.e.ult(next, steps);
        let after = self.append_block();
        let args: SmallVec<[Value; 4]> = smallvec![next, new_rest.0, new_rest.1, new_work.0, new_work.1];
        self.e.end(Term::Branch {
            cond: again,
            then: Target { block: header, args },
            els: Target { block: after, args: smallvec![] },
        });
        self.e.switch_to(after);
        (new_work, new_rest)
    }

    /// As [`Words::udiv`] and [`Words::umod`] in one.
    fn udivmod32(&mut self, a: Value, b: Value) -> Pair {
        let quotient = self.udiv(a, b);
        let rest = self.umod(a, b);
        (quotient, rest)
    }

    /// The word as a pair, extended with zeros or with the sign.
    pub fn pair_of_word(&mut self, v: Value, signed: bool) -> Pair {
        let high = if signed { self.e.ashr_c(v, 31) } else { self.e.i(0) };
        (v, high)
    }

    /// Unsigned 64-bit integer to f32, to nearest even.
    pub fn float_of_u64(&mut self, a: Pair) -> Value {
        if self.e.value_of(a.1) == Some(0) {
            return self.e.convert(Op::Uitof, Type::F32, a.0);
        }
        // Move the topmost one to bit 63; the high word then holds all 24 significant bits and enough below them to
        // round, with bit 0 standing for everything in the low word. Scaling by a power of two is exact.
        let n = self.clz64(a);
        let top = self.shift64(Op::Shl, a, n);
        let e = &mut self.e;
        let none = e.is_zero(top.0);
        let (zero, one) = (e.i(0), e.i(1));
        let sticky = e.select(none, zero, one);
        let word = e.or(top.1, sticky);
        let value = e.convert(Op::Uitof, Type::F32, word);
        // 2^(32 - n) as bits; n is at most 64.
        let bias = e.i(127 + 32);
        let exponent = e.sub(bias, n);
        let bits = e.shl_c(exponent, 23);
        let scale = e.bitcast(Type::F32, bits);
        e.fmul(value, scale)
    }

    pub fn float_of_i64(&mut self, a: Pair) -> Value {
        let sign = self.sign_pair(a);
        let magnitude = self.with_sign64(a, sign);
        let value = self.float_of_u64(magnitude);
        let e = &mut self.e;
        let sign_bit = e.and_c(a.1, 1 << 31);
        let bits = e.bitcast(Type::I32, value);
        let bits = e.or(bits, sign_bit);
        e.bitcast(Type::F32, bits)
    }

    /// f32 to unsigned 64 bits, toward zero. Out of range: any bits.
    pub fn u64_of_float(&mut self, v: Value) -> Pair {
        let e = &mut self.e;
        // Both products are by powers of two and the difference of two numbers with the same leading bits is exact.
        let down = e.f(1.0 / 4294967296.0);
        let up = e.f(4294967296.0);
        let high = e.fmul(v, down);
        let high = e.float(Op::Ftrunc, &[high]);
        let back = e.fmul(high, up);
        let low = e.fsub(v, back);
        let high = e.convert(Op::Ftoui, Type::I32, high);
        let low = e.convert(Op::Ftoui, Type::I32, low);
        (low, high)
    }

    pub fn i64_of_float(&mut self, v: Value) -> Pair {
        let magnitude = self.e.flagged(Op::Fabs, Type::F32, Flags::NONE, &[v]);
        let magnitude = self.u64_of_float(magnitude);
        let bits = self.e.bitcast(Type::I32, v);
        let sign = self.e.ashr_c(bits, 31);
        self.with_sign64(magnitude, (sign, sign))
    }
}
