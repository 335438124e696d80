//! Operations, and the values they take.

use super::Gen;
use crate::module::*;
use crate::ops::Op;
use crate::types::Type;

const INT_OPS: [Op; 14] = [
    Op::Iadd,
    Op::Isub,
    Op::Imul,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Smin,
    Op::Smax,
    Op::Umin,
    Op::Umax,
    Op::Iadd,
    Op::Isub,
    Op::Umulhi,
    Op::Smulhi,
];
const DIV_OPS: [Op; 5] = [Op::Sdiv, Op::Udiv, Op::Srem, Op::Smod, Op::Umod];
const UNARY_INT: [Op; 8] =
    [Op::Not, Op::Ineg, Op::Popcount, Op::Bitreverse, Op::Clz, Op::FindLsb, Op::FindUmsb, Op::FindSmsb];
const FLOAT_OPS: [Op; 6] = [Op::Fadd, Op::Fsub, Op::Fmul, Op::Fmin, Op::Fmax, Op::Fadd];
const UNARY_FLOAT: [Op; 6] = [Op::Fneg, Op::Fabs, Op::Ffloor, Op::Fceil, Op::Ftrunc, Op::Fround];
const APPROX: [Op; 6] = [Op::Fsqrt, Op::Frsqrt, Op::Fexp2, Op::Flog2, Op::Fsin, Op::Fcos];

impl Gen<'_> {
    /// Any value as 32 bits.
    pub(super) fn word_of(&mut self, v: Value) -> Value {
        let ty = self.func.ty(v);
        let mut b = self.b();
        match ty {
            Type::I32 => v,
            Type::F32 => b.op(Op::Bitcast, Type::I32, &[v]),
            Type::Bool => {
                let (one, two) = (b.i32(1), b.i32(2));
                b.select(v, one, two)
            }
            Type::I8 | Type::I16 => b.op(Op::Sext, Type::I32, &[v]),
            Type::I64 => {
                let n = b.i32(32);
                let high = b.op(Op::Lshr, Type::I64, &[v, n]);
                let both = b.op(Op::Xor, Type::I64, &[v, high]);
                b.op(Op::Trunc, Type::I32, &[both])
            }
            Type::F16 => {
                let bits = b.op(Op::Bitcast, Type::I16, &[v]);
                b.op(Op::Zext, Type::I32, &[bits])
            }
            _ => b.i32(0),
        }
    }

    /// A value of this type: an old one, or made from one.
    pub(super) fn value(&mut self, ty: Type) -> Value {
        let list: Vec<Value> = self.values.iter().copied().filter(|&v| self.func.ty(v) == ty).collect();
        if !list.is_empty() && !self.chance(8) {
            return self.pick(&list);
        }
        match ty {
            Type::Bool => self.condition(),
            Type::I32 | Type::F32 if self.chance(50) => self.constant(ty),
            Type::I32 => self.any_int(),
            Type::F32 => {
                let w = self.any_int();
                self.b().op(Op::Sitof, Type::F32, &[w])
            }
            Type::I8 | Type::I16 => {
                let w = self.any_int();
                self.b().op(Op::Trunc, ty, &[w])
            }
            Type::I64 => {
                let w = self.any_int();
                let op = self.pick(&[Op::Sext, Op::Zext]);
                self.b().op(op, ty, &[w])
            }
            Type::F16 => {
                let w = self.any_int();
                let mut b = self.b();
                let m = b.i32(63);
                let w = b.op(Op::And, Type::I32, &[w, m]);
                let f = b.op(Op::Sitof, Type::F32, &[w]);
                b.op(Op::Fconv, Type::F16, &[f])
            }
            _ => self.constant(Type::I32),
        }
    }

    /// Two values of a type, sometimes the same one.
    fn two(&mut self, ty: Type) -> (Value, Value) {
        let x = self.value(ty);
        let y = if self.chance(3) { x } else { self.value(ty) };
        (x, y)
    }

    fn any_int(&mut self) -> Value {
        let list: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.func.ty(v) == Type::I32).collect();
        if list.is_empty() { self.constant(Type::I32) } else { self.pick(&list) }
    }

    pub(super) fn constant(&mut self, ty: Type) -> Value {
        let small = self.r.below(40) as i64 - 20;
        let odd = self.r.bits();
        let bits = match (ty, self.r.below(3)) {
            (Type::F32, 0) => (small as f32 / 4.0).to_bits() as u64,
            (Type::F32, _) => self.r.float().to_bits() as u64,
            (_, 0) => odd,
            _ => small as u64,
        };
        self.b().constant(ty, bits)
    }

    /// An i32 that is the same in all invocations of the work-group.
    pub(super) fn uniform_int(&mut self) -> Value {
        let list = self.uniforms.clone();
        if list.is_empty() || self.chance(15) {
            return self.constant(Type::I32);
        }
        self.pick(&list)
    }

    pub(super) fn condition(&mut self) -> Value {
        let ty = match self.r.below(100) {
            0..35 => Type::F32,
            35..40 if self.shape.narrow_and_wide => Type::F16,
            40..44 => Type::Bool,
            _ => self.int_type(),
        };
        let x = self.value(ty);
        let y = match (ty, self.r.below(8)) {
            (Type::I32, 0) => self.b().i32(0),
            (Type::I32 | Type::F32, 1) => self.constant(ty),
            (_, 2) if ty.is_float() => {
                let v = self.value(ty);
                self.b().op(Op::Fabs, ty, &[v])
            }
            _ => self.value(ty),
        };
        let op = match ty {
            Type::Bool => self.pick(&[Op::Ieq, Op::Ine]),
            t if t.is_float() => self.pick(&[Op::Feq, Op::Fne, Op::Flt, Op::Fle]),
            _ => self.pick(&[Op::Ieq, Op::Ine, Op::Slt, Op::Sle, Op::Ult, Op::Ule]),
        };
        self.b().op(op, ty, &[x, y])
    }

    /// A condition that is the same in all lanes, or not.
    pub(super) fn decide(&mut self, uniform: bool) -> Value {
        if !uniform {
            let mut c = self.condition();
            // Conditions joined, as short-circuit operators give.
            let joined = self.pick(&[0, 0, 0, 1, 1, 2, 3]);
            for _ in 0..joined {
                let d = self.condition();
                let op = self.pick(&[Op::And, Op::Or]);
                c = self.b().op(op, Type::Bool, &[c, d]);
            }
            return if self.chance(15) { self.b().op(Op::Not, Type::Bool, &[c]) } else { c };
        }
        let v = self.uniform_int();
        let limit = self.r.below(4) as u32;
        let mut b = self.b();
        let three = b.i32(3);
        let low = b.op(Op::And, Type::I32, &[v, three]);
        let limit = b.i32(limit);
        let op = self.pick(&[Op::Ult, Op::Ieq, Op::Ine, Op::Sle]);
        self.b().op(op, Type::I32, &[low, limit])
    }

    pub(super) fn int_type(&mut self) -> Type {
        if self.shape.narrow_and_wide && self.chance(40) {
            self.pick(&[Type::I8, Type::I16, Type::I64])
        } else {
            Type::I32
        }
    }

    fn float_type(&mut self) -> Type {
        if self.shape.narrow_and_wide && self.chance(20) { Type::F16 } else { Type::F32 }
    }

    /// A type for a value that goes from block to block.
    pub(super) fn carried_type(&mut self) -> Type {
        if self.shape.narrow_and_wide && self.chance(25) {
            return self.pick(&[Type::I8, Type::I16, Type::I64, Type::F16]);
        }
        self.pick(&[Type::I32, Type::F32, Type::I32, Type::F32, Type::Bool])
    }

    /// An index in `0..n`, a power of two, made from any integer or from one that is the same in all lanes.
    pub(super) fn index(&mut self, n: u32) -> Value {
        let v = if self.chance(30) { self.uniform_int() } else { self.value(Type::I32) };
        let mut b = self.b();
        let mask = b.i32(n - 1);
        b.op(Op::And, Type::I32, &[v, mask])
    }

    pub(super) fn keep(&mut self, v: Value) {
        self.values.push(v);
        while self.values.len() > self.shape.live.max(4) as usize {
            let at = self.r.below(self.values.len() as u64 - 1) as usize;
            self.values.remove(at);
        }
    }

    pub(super) fn operation(&mut self) {
        let v = match self.r.below(100) {
            0..=31 => self.int_binary(),
            32..=38 => {
                let ty = self.int_type();
                let x = self.value(ty);
                let n = self.value(Type::I32);
                let op = self.pick(&[Op::Shl, Op::Lshr, Op::Ashr]);
                let mut b = self.b();
                let mask = b.i32(ty.bits() - 1);
                let n = b.op(Op::And, Type::I32, &[n, mask]);
                b.op(op, ty, &[x, n])
            }
            39..=44 => {
                let ty = self.int_type();
                let x = self.value(ty);
                let op = self.pick(&UNARY_INT);
                self.b().op(op, ty, &[x])
            }
            45..=47 => self.bit_field(),
            48..=64 => {
                let ty = self.float_type();
                let (mut x, mut y) = self.two(ty);
                let op = self.pick(&FLOAT_OPS);
                // Signs that an operation may take into itself.
                let signs = self.chance(25);
                if signs && self.chance(75) {
                    let sign = self.pick(&[Op::Fneg, Op::Fneg, Op::Fneg, Op::Fabs]);
                    x = self.b().op(sign, ty, &[x]);
                }
                if signs && self.chance(75) {
                    let sign = self.pick(&[Op::Fneg, Op::Fneg, Op::Fneg, Op::Fabs]);
                    y = self.b().op(sign, ty, &[y]);
                }
                self.b().op(op, ty, &[x, y])
            }
            65..=66 => {
                let ty = self.float_type();
                let (x, y) = self.two(ty);
                let z = self.value(ty);
                self.b().op(Op::Fma, ty, &[x, y, z])
            }
            67..=73 => {
                let ty = self.float_type();
                let x = self.value(ty);
                let op = self.pick(&UNARY_FLOAT);
                self.b().op(op, ty, &[x])
            }
            74..=78 if self.shape.approximate => {
                let ty = self.float_type();
                let (x, y) = self.two(ty);
                if self.chance(35) {
                    let op = self.pick(&[Op::Fdiv, Op::Fdiv, Op::Frem, Op::Fmod]);
                    self.b().op(op, ty, &[x, y])
                } else {
                    let op = self.pick(&APPROX);
                    self.b().op(op, ty, &[x])
                }
            }
            79..=80 => self.halves(),
            81..=87 => {
                let c = if self.chance(30) { self.decide(false) } else { self.value(Type::Bool) };
                let ty = self.carried_type();
                let (x, y) = self.two(ty);
                self.b().select(c, x, y)
            }
            88..=91 => {
                let (x, y) = (self.value(Type::Bool), self.value(Type::Bool));
                let op = self.pick(&[Op::And, Op::Or, Op::Xor, Op::Not]);
                let args = if op == Op::Not { vec![x] } else { vec![x, y] };
                self.b().op(op, Type::Bool, &args)
            }
            92..=95 => self.conversion(),
            96 => {
                // Kept small, so that the conversion has one right result.
                let x = self.value(Type::F32);
                let signed = self.chance(50);
                let mut b = self.b();
                let (low, high) = (b.f32(if signed { -1000.0 } else { 0.0 }), b.f32(1000.0));
                let x = b.op(Op::Fmax, Type::F32, &[x, low]);
                let x = b.op(Op::Fmin, Type::F32, &[x, high]);
                b.op(if signed { Op::Ftosi } else { Op::Ftoui }, Type::I32, &[x])
            }
            _ => self.condition(),
        };
        self.keep(v);
    }

    fn int_binary(&mut self) -> Value {
        let ty = self.int_type();
        let (x, y) = self.two(ty);
        if self.chance(6) {
            // A zero divisor has any result; ask for one that is not zero.
            let op = self.pick(&DIV_OPS);
            let constant = self.chance(40);
            let y = if constant { self.constant(ty) } else { y };
            let mut b = self.b();
            let one = b.constant(ty, 1);
            let y = b.op(Op::Or, ty, &[y, one]);
            return b.op(op, ty, &[x, y]);
        }
        if ty == Type::I32 && self.chance(4) {
            return self.b().op(Op::Umul24, ty, &[x, y]);
        }
        let op = self.pick(&INT_OPS);
        self.b().op(op, ty, &[x, y])
    }

    /// A field that lies inside the word.
    fn bit_field(&mut self) -> Value {
        let ty = self.int_type();
        let (x, y) = self.two(ty);
        let (offset, count) = (self.value(Type::I32), self.value(Type::I32));
        let op = self.pick(&[Op::BitInsert, Op::BitExtractS, Op::BitExtractU]);
        let mut b = self.b();
        let mask = b.i32(ty.bits() / 2 - 1);
        let offset = b.op(Op::And, Type::I32, &[offset, mask]);
        let count = b.op(Op::And, Type::I32, &[count, mask]);
        if op == Op::BitInsert {
            b.op(op, ty, &[x, y, offset, count])
        } else {
            b.op(op, ty, &[x, offset, count])
        }
    }

    /// Two halves in a word.
    fn halves(&mut self) -> Value {
        if self.chance(40) {
            let (x, y) = self.two(Type::F32);
            return self.b().op(Op::PackHalf, Type::I32, &[x, y]);
        }
        let x = self.value(Type::I32);
        let y = self.value(Type::F32);
        let op = self.pick(&[Op::UnpackHalfLo, Op::UnpackHalfHi]);
        let used = self.chance(50);
        let mut b = self.b();
        let half = b.op(op, Type::F32, &[x]);
        if used { b.op(Op::Fmul, Type::F32, &[half, y]) } else { half }
    }

    fn conversion(&mut self) -> Value {
        if !self.shape.narrow_and_wide || self.chance(50) {
            let x = self.value(Type::I32);
            let op = self.pick(&[Op::Sitof, Op::Uitof]);
            return self.b().op(op, Type::F32, &[x]);
        }
        let (op, from, to) = match self.r.below(8) {
            0 => (Op::Fconv, Type::F16, Type::F32),
            1 => (Op::Fconv, Type::F32, Type::F16),
            2 => (Op::Bitcast, Type::F16, Type::I16),
            3 => (Op::Bitcast, Type::I16, Type::F16),
            4 => {
                let from = self.pick(&[Type::I8, Type::I16, Type::I64]);
                (self.pick(&[Op::Sitof, Op::Uitof]), from, Type::F32)
            }
            5 => {
                let (from, to) = self.pick(&[
                    (Type::I64, Type::I32),
                    (Type::I64, Type::I8),
                    (Type::I32, Type::I16),
                    (Type::I16, Type::I8),
                ]);
                (Op::Trunc, from, to)
            }
            _ => {
                let (from, to) = self.pick(&[
                    (Type::I8, Type::I16),
                    (Type::I8, Type::I32),
                    (Type::I16, Type::I64),
                    (Type::I32, Type::I64),
                    (Type::Bool, Type::I32),
                ]);
                (self.pick(&[Op::Sext, Op::Zext]), from, to)
            }
        };
        let x = self.value(from);
        self.b().op(op, to, &[x])
    }
}
