//! Operands: immediates, uniforms, registers, modifiers of floats (reference section 2).

use super::{Select, Uses};
use crate::instr::{Instr, Number, Operand, Role, Size};
use crate::mops::{self, MInst};
use crate::registers as regs;
use kempe_ir::{Builtin, Imm, Op, Type, UniformWord, Value};
use kempe_mir::UniformSource;
use kempe_ra::{VReg, VRegInfo};

/// Largest immediate of an integer source.
const MAX_IMMEDIATE: u32 = 255;

/// Cycles to read a special register (reference section 13).
const READ_COST: f32 = 2.0;

/// Bit pattern of -0.0.
pub(super) const NEGATIVE_ZERO: u8 = 0x80;

/// The 8-bit form of a float, if it has one (reference section 2.3).
pub(super) fn small_float(bits: u32) -> Option<u8> {
    (0..=255u8).find(|&code| small_float_value(code).to_bits() == bits)
}

fn small_float_value(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 4 & 7), f32::from(code & 15));
    let magnitude = if exponent == 0 { fraction / 64.0 } else { (16.0 + fraction) * 2f32.powi(exponent - 7) };
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

impl Select<'_> {
    /// The constant behind a value.
    pub(super) fn constant(&self, v: Value) -> Option<u32> {
        self.f.as_const(self.alias(v)).map(|c| c as u32)
    }

    /// A word of the uniform registers.
    fn uniform(&mut self, source: UniformSource) -> Option<Operand> {
        self.slot(source).map(|at| Operand::uniform(2 * at, Size::B32))
    }

    /// The word of the driver that a value is.
    fn driver_word(&self, v: Value) -> Option<UniformWord> {
        let d = self.def(v)?;
        match (d.op, d.imm) {
            (Op::Uniform, Imm::Uniform(word)) if !d.ty.is_ptr() => Some(word),
            _ => None,
        }
    }

    /// A use of a register, at the position behind the defs.
    pub(super) fn used(&mut self, v: VReg, defs: usize, uses: &mut Uses) -> Operand {
        let at = match uses.iter().position(|&u| u == v) {
            Some(at) => at,
            None => {
                uses.push(v);
                uses.len() - 1
            }
        };
        mops::place(defs + at, Size::B32, false)
    }

    /// An integer source of 32 bits.
    pub(super) fn source(&mut self, v: Value, defs: usize, uses: &mut Uses) -> Operand {
        if let Some(c) = self.constant(v) {
            if c <= MAX_IMMEDIATE {
                return Operand::imm(c as i32);
            }
            if let Some(u) = self.uniform(UniformSource::Const(c)) {
                return u;
            }
        }
        if let Some(word) = self.driver_word(v)
            && let Some(u) = self.uniform(UniformSource::Word(word, 0))
        {
            return u;
        }
        let r = self.reg(v);
        self.used(r, defs, uses)
    }

    /// A constant as an integer source.
    pub(super) fn constant_source(&mut self, c: u32, defs: usize, uses: &mut Uses) -> Operand {
        if c <= MAX_IMMEDIATE {
            return Operand::imm(c as i32);
        }
        if let Some(u) = self.uniform(UniformSource::Const(c)) {
            return u;
        }
        let r = self.constant_reg(c);
        self.used(r, defs, uses)
    }

    /// A float source, with what may be done to it on the way.
    pub(super) fn float(&mut self, v: Value, defs: usize, uses: &mut Uses) -> Operand {
        if let Some(c) = self.constant(v)
            && let Some(code) = small_float(c)
        {
            return Operand::float(code);
        }
        let f = self.f;
        if let Some(i) = f.def_inst(v) {
            let d = &f.insts[i];
            match d.op {
                Op::Fneg if self.constant(d.args[0]).is_none() => {
                    return self.float(d.args[0], defs, uses).neg();
                }
                Op::Fabs if self.constant(d.args[0]).is_none() => {
                    let mut inner = self.float(d.args[0], defs, uses);
                    inner.neg = false;
                    return inner.abs();
                }
                Op::UnpackHalfLo | Op::UnpackHalfHi if self.constant(d.args[0]).is_none() => {
                    let high = d.op == Op::UnpackHalfHi;
                    let r = self.reg(d.args[0]);
                    let whole = self.used(r, defs, uses);
                    let (half, _, _) = whole.as_reg().unwrap_or((0, Size::B32, 1));
                    return Operand::reg(half + u16::from(high), Size::B16);
                }
                _ => {}
            }
        }
        self.source_float_word(v, defs, uses)
    }

    /// A float that stands in a register or uniform as it is.
    fn source_float_word(&mut self, v: Value, defs: usize, uses: &mut Uses) -> Operand {
        if let Some(c) = self.constant(v) {
            // An integer immediate would not be the same number.
            return match self.uniform(UniformSource::Const(c)) {
                Some(u) => u,
                None => {
                    let r = self.constant_reg(c);
                    self.used(r, defs, uses)
                }
            };
        }
        self.source(v, defs, uses)
    }

    /// A constant in a register.
    pub(super) fn constant_reg(&mut self, c: u32) -> VReg {
        let instr = mops::mov_imm(mops::place(0, Size::B32, false), c);
        self.remade(instr, 1.0)
    }

    /// A word of the driver in a register.
    pub(super) fn word_reg(&mut self, word: UniformWord) -> VReg {
        self.source_reg(UniformSource::Word(word, 0))
    }

    pub(super) fn source_reg(&mut self, source: UniformSource) -> VReg {
        match self.uniform(source) {
            Some(u) => self.remade(Instr::mov(mops::place(0, Size::B32, false), u), 1.0),
            None => {
                self.fail("more words of the driver than there are uniform registers");
                self.undefined()
            }
        }
    }

    /// The register of a built-in, which is read once, where the IR does it, and may be read again anywhere.
    pub(super) fn builtin_reg(&mut self, v: Value, imm: Imm) -> VReg {
        if let Some(r) = self.regs[v] {
            return r;
        }
        let data = MInst::Plain(self.builtin(imm), 0);
        let recipe = self.b.recipe(data, READ_COST);
        let name = self.f.names.get(&v).cloned().unwrap_or_default();
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: Some(recipe), undefined: false };
        let r = self.b.vreg(info, name);
        self.regs[v] = Some(r);
        r
    }

    /// A special register (reference section 11).
    pub(super) fn builtin(&mut self, imm: Imm) -> Instr {
        let number = match imm {
            Imm::Builtin(Builtin::WorkgroupId(c)) => u32::from(c),
            Imm::Builtin(Builtin::LocalInvocationId(c)) => 48 + u32::from(c),
            Imm::Builtin(Builtin::LocalInvocationIndex) => 51,
            _ => {
                self.bug("a built-in that lowering should have refused");
                0
            }
        };
        Instr::new(crate::ops::Op::GetSr)
            .with(Role::Dest, mops::place(0, Size::B32, false))
            .set(Number::Special, number)
    }

    /// Is it a bool?
    pub(super) fn is_bool(&self, v: Value) -> bool {
        self.f.ty(v) == Type::Bool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_are_those_of_the_reference() {
        let code = |v: f32| small_float(v.to_bits());
        assert_eq!(code(0.0), Some(0));
        assert_eq!(code(-0.0), Some(NEGATIVE_ZERO));
        assert_eq!(code(1.0), Some(0x30));
        assert_eq!(code(31.0), Some(0x7f));
        assert_eq!((code(32.0), code(1.0 / 128.0)), (None, None));
        assert_eq!(code(1.0 / 64.0), Some(1));
    }
}
