//! Conversions between types, most of which are no operation once all values are words.

use super::{Addr, Half, Rep, Result, Words};
use kempe_ir::{InstData, Op, Type, Value};

impl<K> Words<'_, K> {
    pub fn conversion(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let arg = self.arg(inst, 0)?;
        let (from, to) = (self.src.ty(arg), inst.ty);
        let rep = self.rep(arg)?;
        let new = match inst.op {
            Op::Trunc | Op::Zext | Op::Sext => self.resize(inst, rep, from, to)?,
            Op::Sitof | Op::Uitof => {
                let signed = inst.op == Op::Sitof;
                let value = match rep {
                    Rep::Pair(lo, hi) if signed => self.float_of_i64((lo, hi)),
                    Rep::Pair(lo, hi) => self.float_of_u64((lo, hi)),
                    Rep::Narrow(v, _) if signed => {
                        let v = self.e.sext(v, from.bits());
                        self.e.convert(Op::Sitof, Type::F32, v)
                    }
                    Rep::Narrow(v, _) => {
                        let v = self.e.zext(v, from.bits());
                        self.e.convert(Op::Uitof, Type::F32, v)
                    }
                    Rep::One(v) if from == Type::I32 => self.e.convert(inst.op, Type::F32, v),
                    Rep::One(v) if from == Type::Bool => {
                        let (one, zero) = (self.e.f(if signed { -1.0 } else { 1.0 }), self.e.f(0.0));
                        self.e.select(v, one, zero)
                    }
                    _ => return self.bad(inst, from, to),
                };
                match to {
                    Type::F32 => Rep::One(value),
                    // Integers beyond 2^24, which an f32 has to round, are beyond the largest half, so the second
                    // rounding never decides.
                    Type::F16 => Rep::Half(self.half_of_float(value)),
                    _ => return self.bad(inst, from, to),
                }
            }
            Op::Ftosi | Op::Ftoui => {
                let value = self.as_float(inst, rep)?;
                match to {
                    Type::I32 => Rep::One(self.e.convert(inst.op, Type::I32, value)),
                    // Out of range the source leaves the bits open.
                    Type::I8 | Type::I16 => Rep::Narrow(self.e.convert(inst.op, Type::I32, value), None),
                    Type::I64 => {
                        let (lo, hi) = if inst.op == Op::Ftosi {
                            self.i64_of_float(value)
                        } else {
                            self.u64_of_float(value)
                        };
                        Rep::Pair(lo, hi)
                    }
                    _ => return self.bad(inst, from, to),
                }
            }
            Op::Fconv => match (rep, to) {
                (Rep::Half(h), Type::F32) => Rep::One(h.exact),
                (Rep::One(v), Type::F16) if from == Type::F32 => Rep::Half(self.half_of_float(v)),
                _ => return self.bad(inst, from, to),
            },
            _ => self.bitcast(inst, rep, from, to)?,
        };
        self.set(r, new);
        Ok(())
    }

    fn bad<T>(&self, inst: &InstData, from: Type, to: Type) -> Result<T> {
        self.error(format!("`{}` from {from} to {to} does not exist", inst.op.name()))
    }

    /// A float operand as f32.
    fn as_float(&self, inst: &InstData, rep: Rep) -> Result<Value> {
        match rep {
            Rep::Half(h) => Ok(h.exact),
            Rep::One(v) => Ok(v),
            _ => self.error(format!("`{}` needs a float", inst.op.name())),
        }
    }

    /// Integers (and bools) to other widths.
    fn resize(&mut self, inst: &InstData, rep: Rep, from: Type, to: Type) -> Result<Rep> {
        let signed = inst.op == Op::Sext;
        // The operand as a word that is right in as many bits as the wanted type has, or all.
        let (word, high) = match rep {
            Rep::Pair(lo, hi) => (lo, Some(hi)),
            // What is above a narrow value does not matter for something even narrower.
            Rep::Narrow(v, origin) if inst.op == Op::Trunc => {
                return match to {
                    Type::I8 | Type::I16 => Ok(Rep::Narrow(v, origin)),
                    _ => self.bad(inst, from, to),
                };
            }
            Rep::Narrow(v, _) if signed => (self.e.sext(v, from.bits()), None),
            Rep::Narrow(v, _) => (self.e.zext(v, from.bits()), None),
            Rep::One(v) if from == Type::Bool => {
                let (one, zero) = (self.e.i(if signed { u32::MAX } else { 1 }), self.e.i(0));
                (self.e.select(v, one, zero), None)
            }
            Rep::One(v) => (v, None),
            Rep::Addr(a) => (self.pointer_value(a), None),
            Rep::Half(_) | Rep::None => return self.bad(inst, from, to),
        };
        Ok(match to {
            Type::I8 | Type::I16 => Rep::Narrow(word, Some((word, 0))),
            Type::I32 => Rep::One(word),
            Type::I64 => {
                let (lo, hi) = match high {
                    Some(high) => (word, high),
                    None => self.pair_of_word(word, signed),
                };
                Rep::Pair(lo, hi)
            }
            _ => return self.bad(inst, from, to),
        })
    }

    fn bitcast(&mut self, inst: &InstData, rep: Rep, from: Type, to: Type) -> Result<Rep> {
        Ok(match (rep, to) {
            (Rep::One(v), Type::I32 | Type::F32) if from != Type::Bool => Rep::One(self.e.bitcast(to, v)),
            // Addresses of physical pointers, and words that become such.
            (Rep::Addr(a), Type::I32) => Rep::One(self.pointer_value(a)),
            (Rep::One(v), Type::Ptr(space)) if from == Type::I32 => self.pointer(space, v),
            (Rep::Addr(a), Type::Ptr(space)) => {
                let v = self.pointer_value(a);
                Rep::Addr(Addr::dynamic(space, v))
            }
            (Rep::Narrow(v, origin), Type::F16) => {
                let half = self.half_of_bits(v);
                Rep::Half(Half { origin, ..half })
            }
            (Rep::Half(h), Type::I16) => Rep::Narrow(h.bits, h.origin),
            (rep @ (Rep::Narrow(..) | Rep::Half(_) | Rep::Pair(..) | Rep::One(_)), _) if from == to => rep,
            _ => return self.bad(inst, from, to),
        })
    }
}
