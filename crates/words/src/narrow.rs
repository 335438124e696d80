//! 8 and 16-bit integers and halves, in words.
//!
//! A narrow integer stands in the low bits of an i32; what is above is whatever the last operation left. An
//! operation whose low result bits depend on low operand bits only (sums, products, bit logic, left shifts) takes
//! the words as they are; the others first extend their operands with zeros or with the sign, which the emitter
//! drops where the known bits show that nothing would change.
//!
//! A half is computed as f32 and rounded back by `pack_half`. For sums, products, quotients and square roots that
//! is the correctly rounded half: 24 bits are at least 2 * 11 + 2 (Figueroa 1995). Selection can fold the
//! unpacking into operand modifiers and the packing into a result modifier.
//!
//! Left out: pairs of halves in one register.

use super::{Half, Rep, Result, Words};
use kempe_ir::{Flags, InstData, Op, Type, Value};
use smallvec::SmallVec;

impl<K> Words<'_, K> {
    /// The half in the low bits of a word.
    pub fn half_of_bits(&mut self, bits: Value) -> Half {
        let exact = self.e.convert(Op::UnpackHalfLo, Type::F32, bits);
        Half { bits, exact, unrounded: None, origin: None }
    }

    /// An f32 rounded to half.
    pub fn half_of_float(&mut self, v: Value) -> Half {
        // The upper half is not used: the same operand twice costs no constant.
        let bits = self.e.pack_half(v, v);
        let exact = self.e.convert(Op::UnpackHalfLo, Type::F32, bits);
        Half { bits, exact, unrounded: Some(v), origin: None }
    }

    pub fn half_constant(&mut self, bits: u16) -> Half {
        let value = kempe_ir::eval::f16_to_f32(bits);
        let exact = self.e.constant(Type::F32, value);
        // Rounding gives the same bits back, but for a NaN with another payload.
        let unrounded = (kempe_ir::eval::f32_to_f16(value) == bits).then_some(exact);
        Half { bits: self.e.i(bits as u32), exact, unrounded, origin: None }
    }

    pub fn arg_half(&self, inst: &InstData, n: usize) -> Result<Half> {
        match self.rep(self.arg(inst, n)?)? {
            Rep::Half(h) => Ok(h),
            _ => self.error(format!("`{}` needs a half here", inst.op.name())),
        }
    }

    pub fn half_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        match inst.op {
            // The sign is a bit, also of a NaN.
            Op::Fneg | Op::Fabs => {
                let a = self.arg_half(inst, 0)?;
                let bits = match inst.op {
                    Op::Fneg => self.e.xor_c(a.bits, 0x8000),
                    _ => self.e.and_c(a.bits, 0x7fff),
                };
                let half = self.half_of_bits(bits);
                self.set(r, Rep::Half(half));
            }
            Op::Feq | Op::Fne | Op::Flt | Op::Fle => {
                let (a, b) = (self.arg_half(inst, 0)?, self.arg_half(inst, 1)?);
                let v = self.e.compare(inst.op, Type::F32, a.exact, b.exact);
                self.set_one(r, v);
            }
            // Two roundings, one after each step.
            Op::Fma => {
                let (a, b) = (self.arg_half(inst, 0)?, self.arg_half(inst, 1)?);
                let c = self.arg_half(inst, 2)?;
                let product = self.e.fmul(a.exact, b.exact);
                let product = self.half_of_float(product);
                let sum = self.e.fadd(product.exact, c.exact);
                let half = self.half_of_float(sum);
                self.set(r, Rep::Half(half));
            }
            // The quotient is rounded to half before its integer is taken, as in the source form.
            Op::Frem | Op::Fmod => {
                let (a, b) = (self.arg_half(inst, 0)?, self.arg_half(inst, 1)?);
                let quotient = self.fdiv(a.exact, b.exact);
                let quotient = self.half_of_float(quotient);
                let round = if inst.op == Op::Frem { Op::Ftrunc } else { Op::Ffloor };
                let whole = self.e.float(round, &[quotient.exact]);
                let product = self.e.fmul(b.exact, whole);
                let product = self.half_of_float(product);
                let rest = self.e.fsub(a.exact, product.exact);
                let half = self.half_of_float(rest);
                self.set(r, Rep::Half(half));
            }
            op => {
                let mut args: SmallVec<[Value; 3]> = SmallVec::new();
                for n in 0..inst.args.len() {
                    args.push(self.arg_half(inst, n)?.exact);
                }
                let v = self.float32(op, inst.flags, &args)?;
                let mut half = self.half_of_float(v);
                // These give halves from halves.
                if matches!(op, Op::Fmin | Op::Fmax | Op::Ffloor | Op::Fceil | Op::Ftrunc | Op::Fround) {
                    half.exact = v;
                }
                self.set(r, Rep::Half(half));
            }
        }
        Ok(())
    }

    pub fn narrow_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let w = inst.ty.bits();
        let mut raw: SmallVec<[Value; 4]> = SmallVec::new();
        for (n, &a) in inst.args.iter().enumerate() {
            // Shift counts and field positions are i32.
            raw.push(match self.rep(a)? {
                Rep::Narrow(v, _) => v,
                Rep::One(v) if n > 0 => v,
                _ => return self.error(format!("`{}` needs a narrow integer here", inst.op.name())),
            });
        }
        let arity = raw.len();
        let a = |n: usize| raw.get(n).copied().unwrap_or(raw[0]);
        if arity == 0 {
            return self.error(format!("`{}` without operands", inst.op.name()));
        }
        let v = match inst.op {
            // Low bits from low bits.
            Op::Iadd => self.e.add(a(0), a(1)),
            Op::Isub => self.e.sub(a(0), a(1)),
            Op::Ineg => self.e.neg(a(0)),
            Op::And => self.e.and(a(0), a(1)),
            Op::Or => self.e.or(a(0), a(1)),
            Op::Xor => self.e.xor(a(0), a(1)),
            Op::Not => self.e.not(a(0)),
            Op::Imul => {
                // The low bits of the product depend on the low bits of the operands only, so 24 bits always do.
                let power = |v| self.e.value_of(v).is_some_and(u32::is_power_of_two);
                if power(a(0)) || power(a(1)) { self.e.mul(a(0), a(1)) } else { self.e.umul24(a(0), a(1)) }
            }
            Op::Shl => {
                let n = self.e.and_c(a(1), w - 1);
                self.e.shl(a(0), n)
            }
            Op::BitInsert => self.bit_insert(&raw, w)?,
            Op::BitExtractU => self.bit_extract(&raw, false)?,
            Op::BitExtractS => self.bit_extract(&raw, true)?,
            // Extended operands, then the 32-bit operation.
            Op::Lshr => {
                let x = self.e.zext(a(0), w);
                let n = self.e.and_c(a(1), w - 1);
                self.e.lshr(x, n)
            }
            Op::Ashr => {
                let x = self.e.sext(a(0), w);
                let n = self.e.and_c(a(1), w - 1);
                self.e.ashr(x, n)
            }
            Op::Umulhi | Op::Smulhi => {
                let (x, y) = if inst.op == Op::Umulhi {
                    (self.e.zext(a(0), w), self.e.zext(a(1), w))
                } else {
                    (self.e.sext(a(0), w), self.e.sext(a(1), w))
                };
                let product = self.e.mul(x, y);
                self.e.lshr_c(product, w)
            }
            Op::Udiv | Op::Umod | Op::Umin | Op::Umax => {
                let (x, y) = (self.e.zext(a(0), w), self.e.zext(a(1), w));
                self.int32(inst.op, Flags::NONE, &[x, y])?
            }
            Op::Sdiv | Op::Srem | Op::Smod | Op::Smin | Op::Smax => {
                let (x, y) = (self.e.sext(a(0), w), self.e.sext(a(1), w));
                self.int32(inst.op, Flags::NONE, &[x, y])?
            }
            Op::Ieq | Op::Ine | Op::Ult | Op::Ule => {
                let (x, y) = (self.e.zext(a(0), w), self.e.zext(a(1), w));
                let v = self.e.compare(inst.op, Type::I32, x, y);
                self.set_one(r, v);
                return Ok(());
            }
            Op::Slt | Op::Sle => {
                let (x, y) = (self.e.sext(a(0), w), self.e.sext(a(1), w));
                let v = self.e.compare(inst.op, Type::I32, x, y);
                self.set_one(r, v);
                return Ok(());
            }
            Op::Popcount | Op::FindLsb | Op::FindUmsb => {
                let x = self.e.zext(a(0), w);
                self.int32(inst.op, Flags::NONE, &[x])?
            }
            Op::FindSmsb => {
                let x = self.e.sext(a(0), w);
                self.int32(inst.op, Flags::NONE, &[x])?
            }
            Op::Clz => {
                let x = self.e.zext(a(0), w);
                let n = self.e.clz(x);
                self.e.add_c(n, (w as i32 - 32) as u32)
            }
            Op::Bitreverse => {
                let x = self.bitreverse(a(0));
                self.e.lshr_c(x, 32 - w)
            }
            op => return self.error(format!("`{}` does not exist for {}", op.name(), inst.ty)),
        };
        self.set(r, Rep::Narrow(v, None));
        Ok(())
    }
}
