//! Arithmetic that the machine has no operation for: special functions and bit operations on 32-bit words.
//!
//! Special functions. The unit gives 1/x, 1/sqrt(x), 2^x, log2(x), and where it has it sin(pi x).
//!
//! * a / b is a * (1/b): two roundings and the error of the unit, within the 2.5 ulp that Vulkan allows for
//!   divisors from 2^-126 to 2^126.
//! * sqrt(x) is 1/(1/sqrt(x)), which is right for 0, -0 and infinity, where x * (1/sqrt(x)) is not.
//! * sin(x): t = x/pi, n = t rounded, sin(pi (t - n)), the sign flipped where n is odd; cos adds a half to t. One
//!   product with the rounded 1/pi leaves an absolute error of about |x| * 2^-24, far within the 2^-11 of Vulkan
//!   over [-pi, pi]. A second term of 1/pi would cost three operations and help only where Vulkan promises nothing.
//!
//! Bit operations: counting, reversing and finding bits by words of masks (Warren, Hacker's Delight, chapters 5
//! and 7), high halves of products from 16-bit pieces.

use super::{Result, Words};
use kempe_ir::{Flags, InstData, Op, Type, Value};
use smallvec::SmallVec;

/// Coefficients of sin(pi x) / x in x^2, the highest power first: the Taylor series up to x^10, whose next term is below
/// 2^-21 for x up to 1/2.
const SINE: [f32; 6] =
    [-0.007_370_43, 0.082_145_89, -0.599_264_5, 2.550_164, -5.167_713, std::f32::consts::PI];

impl<K> Words<'_, K> {
    pub fn float_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let mut args: SmallVec<[Value; 3]> = SmallVec::new();
        for &a in &inst.args {
            args.push(self.one(a)?);
        }
        let v = if inst.op.is_compare() {
            self.e.compare(inst.op, Type::F32, args[0], args[1])
        } else {
            self.float32(inst.op, inst.flags, &args)?
        };
        self.set_one(r, v);
        Ok(())
    }

    /// An f32 operation with an f32 result.
    pub fn float32(&mut self, op: Op, flags: Flags, args: &[Value]) -> Result<Value> {
        let a = |n: usize| args.get(n).copied().unwrap_or(args[0]);
        Ok(match op {
            Op::Fadd
            | Op::Fsub
            | Op::Fmul
            | Op::Fneg
            | Op::Fabs
            | Op::Fmin
            | Op::Fmax
            | Op::Ffloor
            | Op::Fceil
            | Op::Ftrunc
            | Op::Fround
            | Op::RcpApprox
            | Op::RsqrtApprox
            | Op::Exp2Approx
            | Op::Log2Approx
            | Op::SinpiApprox => self.e.flagged(op, Type::F32, flags, args),
            Op::Fdiv => self.fdiv(a(0), a(1)),
            Op::Frem | Op::Fmod => {
                let quotient = self.fdiv(a(0), a(1));
                let round = if op == Op::Frem { Op::Ftrunc } else { Op::Ffloor };
                let whole = self.e.float(round, &[quotient]);
                let product = self.e.fmul(a(1), whole);
                self.e.fsub(a(0), product)
            }
            Op::Fma => {
                let product = self.e.fmul(a(0), a(1));
                self.e.fadd(product, a(2))
            }
            Op::Fsqrt => {
                let inverse = self.e.float(Op::RsqrtApprox, &[a(0)]);
                self.e.float(Op::RcpApprox, &[inverse])
            }
            Op::Frsqrt => self.e.float(Op::RsqrtApprox, &[a(0)]),
            Op::Fexp2 => self.e.float(Op::Exp2Approx, &[a(0)]),
            Op::Flog2 => self.e.float(Op::Log2Approx, &[a(0)]),
            Op::Fsin => self.half_turns(a(0), 0.0),
            Op::Fcos => self.half_turns(a(0), 0.5),
            op => return self.error(format!("`{}` does not exist for f32", op.name())),
        })
    }

    pub fn fdiv(&mut self, a: Value, b: Value) -> Value {
        if let Some(bits) = self.e.value_of(b) {
            let b = f32::from_bits(bits);
            let inverse = 1.0 / b;
            // The reciprocal of a constant is a constant; by a power of two the quotient is exact.
            if b.is_normal() && inverse.is_normal() {
                let inverse = self.e.f(inverse);
                return self.e.fmul(a, inverse);
            }
        }
        let inverse = match self.root_below(b) {
            Some(root) => root,
            None => self.e.float(Op::RcpApprox, &[b]),
        };
        if self.e.value_of(a) == Some(1f32.to_bits()) {
            return inverse;
        }
        self.e.fmul(a, inverse)
    }

    /// 1/sqrt(x) where `v` is sqrt(x), made as 1/(1/sqrt(x)): nearer to the quotient, and the same for 0, -0 and infinity.
    fn root_below(&self, v: Value) -> Option<Value> {
        let f = &self.e.func;
        let outer = f.def_inst(v).map(|i| &f.insts[i]).filter(|d| d.op == Op::RcpApprox)?;
        let inner = f.def_inst(outer.args[0]).map(|i| &f.insts[i])?;
        (inner.op == Op::RsqrtApprox).then_some(outer.args[0])
    }

    /// sin(x + pi * shift).
    fn half_turns(&mut self, x: Value, shift: f32) -> Value {
        let inverse_pi = self.e.f(std::f32::consts::FRAC_1_PI);
        let mut turns = self.e.fmul(x, inverse_pi);
        if shift != 0.0 {
            let shift = self.e.f(shift);
            turns = self.e.fadd(turns, shift);
        }
        let nearest = self.e.float(Op::Fround, &[turns]);
        let rest = self.e.fsub(turns, nearest);
        // Odd half turns change the sign: the lowest bit of the number becomes the sign bit. It is flipped in front of
        // the odd function, so that a NaN comes out as arithmetic gives it.
        let number = self.e.convert(Op::Ftosi, Type::I32, nearest);
        let sign = self.e.shl_c(number, 31);
        let bits = self.e.bitcast(Type::I32, rest);
        let bits = self.e.xor(bits, sign);
        let rest = self.e.bitcast(Type::F32, bits);
        self.sinpi(rest)
    }

    /// sin(pi x) for x in -0.5..=0.5.
    fn sinpi(&mut self, x: Value) -> Value {
        if self.has.sine {
            return self.e.float(Op::SinpiApprox, &[x]);
        }
        let square = self.e.fmul(x, x);
        let mut sum = self.e.f(SINE[0]);
        for &c in &SINE[1..] {
            let product = self.e.fmul(sum, square);
            let c = self.e.f(c);
            sum = self.e.fadd(product, c);
        }
        self.e.fmul(sum, x)
    }

    pub fn int_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for &a in &inst.args {
            args.push(self.one(a)?);
        }
        if args.is_empty() {
            return self.error(format!("`{}` without operands", inst.op.name()));
        }
        let v = self.int32(inst.op, inst.flags, &args)?;
        self.set_one(r, v);
        Ok(())
    }

    /// An i32 operation.
    pub fn int32(&mut self, op: Op, flags: Flags, args: &[Value]) -> Result<Value> {
        let a = |n: usize| args.get(n).copied().unwrap_or(args[0]);
        Ok(match op {
            Op::Iadd => self.e.add(a(0), a(1)),
            Op::Isub => self.e.sub(a(0), a(1)),
            Op::Ineg => self.e.neg(a(0)),
            Op::Imul => self.e.mul_flagged(a(0), a(1), flags),
            Op::Umul24 => self.e.umul24(a(0), a(1)),
            Op::And => self.e.and(a(0), a(1)),
            Op::Or => self.e.or(a(0), a(1)),
            Op::Xor => self.e.xor(a(0), a(1)),
            Op::Not => self.e.not(a(0)),
            Op::Shl => self.e.shl(a(0), a(1)),
            Op::Lshr => self.e.lshr(a(0), a(1)),
            Op::Ashr => self.e.ashr(a(0), a(1)),
            Op::Smin | Op::Smax | Op::Umin | Op::Umax => self.e.flagged(op, Type::I32, Flags::NONE, args),
            Op::Clz => self.e.clz(a(0)),
            Op::Ieq | Op::Ine | Op::Slt | Op::Sle | Op::Ult | Op::Ule => {
                self.e.compare(op, Type::I32, a(0), a(1))
            }
            Op::Popcount | Op::Bitreverse | Op::FindUmsb if self.has.bits => self.e.int(op, &args[..1]),
            Op::Umulhi => self.umulhi(a(0), a(1)),
            Op::Smulhi => self.smulhi(a(0), a(1)),
            Op::Udiv => self.udiv(a(0), a(1)),
            Op::Umod => self.umod(a(0), a(1)),
            Op::Sdiv => self.sdiv(a(0), a(1)),
            Op::Srem => self.srem(a(0), a(1)),
            Op::Smod => self.smod(a(0), a(1)),
            Op::Popcount => self.popcount(a(0)),
            Op::Bitreverse => self.bitreverse(a(0)),
            Op::FindLsb => {
                // 31 - clz gives -1 for 0, as wanted.
                let negative = self.e.neg(a(0));
                let lowest = self.e.and(a(0), negative);
                self.find_msb(lowest)
            }
            Op::FindUmsb => self.find_msb(a(0)),
            Op::FindSmsb => {
                let sign = self.e.ashr_c(a(0), 31);
                let differs = self.e.xor(a(0), sign);
                self.find_msb(differs)
            }
            Op::BitInsert => self.bit_insert(args, 32)?,
            Op::BitExtractU => self.bit_extract(args, false)?,
            Op::BitExtractS => self.bit_extract(args, true)?,
            op => return self.error(format!("`{}` does not exist for i32", op.name())),
        })
    }

    fn find_msb(&mut self, v: Value) -> Value {
        if self.has.bits {
            return self.e.int(Op::FindUmsb, &[v]);
        }
        let zeros = self.e.clz(v);
        let last = self.e.i(31);
        self.e.sub(last, zeros)
    }

    /// High half of the product, from 16-bit pieces: no sum overflows, since
    /// (2^16 - 1)^2 + 2 * (2^16 - 1) < 2^32.
    pub fn umulhi(&mut self, a: Value, b: Value) -> Value {
        let (wa, wb) = (self.e.known(a).width(), self.e.known(b).width());
        if wa + wb <= 32 {
            return self.e.i(0);
        }
        if self.has.high_products {
            return self.e.int(Op::Umulhi, &[a, b]);
        }
        let e = &mut self.e;
        let (al, ah) = (e.and_c(a, 0xffff), e.lshr_c(a, 16));
        let (bl, bh) = (e.and_c(b, 0xffff), e.lshr_c(b, 16));
        let low = e.umul24(al, bl);
        let low = e.lshr_c(low, 16);
        let middle = e.mul(ah, bl);
        let middle = e.add(middle, low);
        let (middle_low, middle_high) = (e.and_c(middle, 0xffff), e.lshr_c(middle, 16));
        let other = e.mul(al, bh);
        let other = e.add(other, middle_low);
        let other = e.lshr_c(other, 16);
        let high = e.mul(ah, bh);
        let high = e.add(high, middle_high);
        e.add(high, other)
    }

    /// The signed high half is the unsigned one minus the other operand for each negative one.
    pub fn smulhi(&mut self, a: Value, b: Value) -> Value {
        if self.has.high_products {
            return self.e.int(Op::Smulhi, &[a, b]);
        }
        let high = self.umulhi(a, b);
        let e = &mut self.e;
        let (sa, sb) = (e.ashr_c(a, 31), e.ashr_c(b, 31));
        let (ca, cb) = (e.and(sa, b), e.and(sb, a));
        let high = e.sub(high, ca);
        e.sub(high, cb)
    }

    pub fn popcount(&mut self, v: Value) -> Value {
        if self.has.bits {
            return self.e.int(Op::Popcount, &[v]);
        }
        let e = &mut self.e;
        // Pairs, nibbles, bytes; the product adds the four bytes into the topmost one.
        let half = e.lshr_c(v, 1);
        let half = e.and_c(half, 0x5555_5555);
        let pairs = e.sub(v, half);
        let low = e.and_c(pairs, 0x3333_3333);
        let high = e.lshr_c(pairs, 2);
        let high = e.and_c(high, 0x3333_3333);
        let nibbles = e.add(low, high);
        let high = e.lshr_c(nibbles, 4);
        let bytes = e.add(nibbles, high);
        let bytes = e.and_c(bytes, 0x0f0f_0f0f);
        let sum = e.mul_c(bytes, 0x0101_0101);
        e.lshr_c(sum, 24)
    }

    pub fn bitreverse(&mut self, mut v: Value) -> Value {
        if self.has.bits {
            return self.e.int(Op::Bitreverse, &[v]);
        }
        let e = &mut self.e;
        for (shift, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f), (8, 0x00ff_00ff)] {
            let high = e.lshr_c(v, shift);
            let high = e.and_c(high, mask);
            let low = e.and_c(v, mask);
            let low = e.shl_c(low, shift);
            v = e.or(low, high);
        }
        let high = e.lshr_c(v, 16);
        let low = e.shl_c(v, 16);
        e.or(low, high)
    }

    /// `count` ones in the low bits; 0 to 32.
    fn field_mask(&mut self, count: Value) -> Value {
        let e = &mut self.e;
        if let Some(count) = e.value_of(count) {
            return e.i(super::emit::low_mask(count));
        }
        let ones = e.i(u32::MAX);
        let above = e.shl(ones, count);
        let mask = e.not(above);
        // A shift by 32 would shift by 0.
        let whole = e.i(32);
        let part = e.ult(count, whole);
        e.select(part, mask, ones)
    }

    /// Base, insert, offset, count; `width` is that of the type.
    pub fn bit_insert(&mut self, args: &[Value], width: u32) -> Result<Value> {
        let &[base, insert, offset, count] = args else {
            return self.error("`bit_insert` needs four operands");
        };
        if self.e.value_of(count) == Some(width) {
            return Ok(insert);
        }
        let mask = self.field_mask(count);
        let e = &mut self.e;
        let mask = e.shl(mask, offset);
        let moved = e.shl(insert, offset);
        // base ^ ((base ^ moved) & mask) takes the masked bits from `moved`.
        let differ = e.xor(base, moved);
        let change = e.and(differ, mask);
        Ok(e.xor(base, change))
    }

    /// Base, offset, count.
    pub fn bit_extract(&mut self, args: &[Value], signed: bool) -> Result<Value> {
        let &[base, offset, count] = args else {
            return self.error("a bit field extract needs three operands");
        };
        let mask = self.field_mask(count);
        let e = &mut self.e;
        if let (true, Some(offset), Some(count @ 1..=32)) = (signed, e.value_of(offset), e.value_of(count)) {
            let left = 32u32.saturating_sub(offset.saturating_add(count));
            let up = e.shl_c(base, left & 31);
            return Ok(e.ashr_c(up, 32 - count));
        }
        let low = e.lshr(base, offset);
        let field = e.and(low, mask);
        if !signed {
            return Ok(field);
        }
        // With s the top bit of the field, (x ^ s) - s extends it. A count of 0 makes s the topmost bit, and 0 stays
        // 0.
        let one = e.i(1);
        let top = e.add_c(count, u32::MAX);
        let sign = e.shl(one, top);
        let flipped = e.xor(field, sign);
        Ok(e.sub(flipped, sign))
    }
}
