//! The extended instructions of GLSL (the set GLSL.std.450) in terms of the IR.
//!
//! Inverse and hyperbolic functions are in `math.rs`. 16-bit operands of such functions are computed in 32 bits.
//!
//! Left out: interpolation functions, which only fragment shaders have.

use super::math::float_shape;
use super::*;
use crate::arith::{infinity, resize};
use spirv::GlslStd450Op as G;
use std::f64::consts::{LN_2, LOG2_E, PI};

impl Lower<'_, '_> {
    pub(super) fn glsl_inst(&mut self, i: &Inst) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let Some(op) = G::from_u32(i.w(4)?) else {
            return self.err(format!("unknown extended instruction {}", i.w(4)?));
        };
        match op {
            G::Determinant | G::MatrixInverse => {
                let (rows, columns) = self.matrix_shape(i.w(5)?)?;
                let r = self.leaves(i.w(5)?)?;
                if rows != columns || rows > 4 {
                    return self.err("the determinant of a matrix that is not square");
                }
                let out = self.invert(r, rows, op == G::MatrixInverse)?;
                self.set_all(id, ty, &out)
            }
            G::Length | G::Distance | G::Normalize | G::Cross | G::FaceForward | G::Reflect | G::Refract => {
                let out = self.geometric(i, op)?;
                self.set_all(id, ty, &out)
            }
            G::Modf | G::ModfStruct | G::Frexp | G::FrexpStruct => self.two_results(i, op, ty, id),
            G::PackSnorm4x8 | G::PackUnorm4x8 | G::PackSnorm2x16 | G::PackUnorm2x16 => {
                let r = self.leaves(i.w(5)?)?;
                let bits = if matches!(op, G::PackSnorm4x8 | G::PackUnorm4x8) { 8 } else { 16 };
                let signed = matches!(op, G::PackSnorm4x8 | G::PackSnorm2x16);
                let v = self.pack_norm(r, bits, signed)?;
                self.set1(id, ty, v)
            }
            G::UnpackSnorm4x8 | G::UnpackUnorm4x8 | G::UnpackSnorm2x16 | G::UnpackUnorm2x16 => {
                let v = self.leaf(i.w(5)?)?;
                let bits = if matches!(op, G::UnpackSnorm4x8 | G::UnpackUnorm4x8) { 8 } else { 16 };
                let signed = matches!(op, G::UnpackSnorm4x8 | G::UnpackSnorm2x16);
                let out = self.unpack_norm(v, bits, signed)?;
                self.set_all(id, ty, &out)
            }
            G::PackHalf2x16 => {
                let r = self.leaves(i.w(5)?)?;
                if r.len != 2 {
                    return self.err("the operand must have two components");
                }
                let v = self.op(Op::PackHalf, Type::I32, &[self.at(r, 0), self.at(r, 1)])?;
                self.set1(id, ty, v)
            }
            G::UnpackHalf2x16 => {
                let v = self.leaf(i.w(5)?)?;
                let lo = self.op(Op::UnpackHalfLo, Type::F32, &[v])?;
                let hi = self.op(Op::UnpackHalfHi, Type::F32, &[v])?;
                self.set_all(id, ty, &[lo, hi])
            }
            G::PackDouble2x32 | G::UnpackDouble2x32 => {
                let r = self.leaves(i.w(5)?)?;
                let to = if op == G::PackDouble2x32 { Type::F64 } else { Type::I32 };
                let values = self.slice(r);
                let out = self.bitcast_values(&values, to)?;
                self.set_all(id, ty, &out)
            }
            G::InterpolateAtCentroid | G::InterpolateAtSample | G::InterpolateAtOffset => {
                self.interpolation(i, op)
            }
            _ => self.by_component(i, op, ty, id),
        }
    }

    fn by_component(&mut self, i: &Inst, op: G, ty: TyId, id: u32) -> Res<()> {
        let Some(result) = self.p.component(ty) else {
            return self.err("the result of this instruction must be a scalar or a vector");
        };
        let n = self.p.leaf_count(ty) as usize;
        let mut operands: SmallVec<[Rng; 3]> = SmallVec::new();
        for &a in i.rest(5) {
            let r = self.leaves(a)?;
            if r.len as usize != n {
                return self.err("operands of several sizes");
            }
            operands.push(r);
        }
        let want = match op {
            G::Atan2
            | G::Pow
            | G::FMin
            | G::UMin
            | G::SMin
            | G::FMax
            | G::UMax
            | G::SMax
            | G::Step
            | G::Ldexp => 2,
            G::NMin | G::NMax => 2,
            G::FClamp | G::UClamp | G::SClamp | G::NClamp | G::FMix | G::SmoothStep | G::Fma => 3,
            _ => 1,
        };
        if operands.len() != want {
            return self.err(format!("{op:?} has {} operands, {want} are needed", operands.len()));
        }
        let mut out: SmallVec<[Value; 8]> = SmallVec::new();
        for k in 0..n {
            let args: SmallVec<[Value; 3]> = operands.iter().map(|r| self.at(*r, k)).collect();
            out.push(self.component(op, result, &args)?);
        }
        self.set_all(id, ty, &out)
    }

    fn component(&mut self, op: G, ty: Type, args: &[Value]) -> Res<Value> {
        let x = args[0];
        let y = args.get(1).copied().unwrap_or(x);
        let z = args.get(2).copied().unwrap_or(x);
        let t = self.ty_of(x);
        // Everything here but searching for bits works on one type.
        let finds = matches!(op, G::FindILsb | G::FindSMsb | G::FindUMsb);
        if (t != ty && !finds) || (op != G::Ldexp && args.iter().any(|v| self.ty_of(*v) != t)) {
            return self.err(format!("{op:?} has operands of the wrong type"));
        }
        match op {
            G::Round | G::RoundEven => self.op(Op::Fround, t, &[x]),
            G::Trunc => self.op(Op::Ftrunc, t, &[x]),
            G::FAbs => self.op(Op::Fabs, t, &[x]),
            G::SAbs => {
                let n = self.op(Op::Ineg, t, &[x])?;
                self.op(Op::Smax, t, &[x, n])
            }
            G::FSign => {
                let (zero, one, minus) = (self.fconst(t, 0.0), self.fconst(t, 1.0), self.fconst(t, -1.0));
                let (pos, neg) = (self.op(Op::Flt, t, &[zero, x])?, self.op(Op::Flt, t, &[x, zero])?);
                let v = self.op(Op::Select, t, &[neg, minus, x])?;
                self.op(Op::Select, t, &[pos, one, v])
            }
            G::SSign => {
                let (one, minus) = (self.konst(t, 1), self.konst(t, u64::MAX));
                let v = self.op(Op::Smax, t, &[x, minus])?;
                self.op(Op::Smin, t, &[v, one])
            }
            G::Floor => self.op(Op::Ffloor, t, &[x]),
            G::Ceil => self.op(Op::Fceil, t, &[x]),
            G::Fract => {
                let f = self.op(Op::Ffloor, t, &[x])?;
                self.sub(x, f)
            }
            G::Radians => self.mul_k(x, PI / 180.0),
            G::Degrees => self.mul_k(x, 180.0 / PI),
            G::Sin => self.op(Op::Fsin, t, &[x]),
            G::Cos => self.op(Op::Fcos, t, &[x]),
            G::Exp2 => self.op(Op::Fexp2, t, &[x]),
            G::Log2 => self.op(Op::Flog2, t, &[x]),
            G::Sqrt => self.op(Op::Fsqrt, t, &[x]),
            G::InverseSqrt => self.op(Op::Frsqrt, t, &[x]),
            G::FMin | G::NMin => self.op(Op::Fmin, t, &[x, y]),
            G::FMax | G::NMax => self.op(Op::Fmax, t, &[x, y]),
            G::UMin => self.op(Op::Umin, t, &[x, y]),
            G::SMin => self.op(Op::Smin, t, &[x, y]),
            G::UMax => self.op(Op::Umax, t, &[x, y]),
            G::SMax => self.op(Op::Smax, t, &[x, y]),
            G::FClamp | G::NClamp => self.clamp(Op::Fmax, Op::Fmin, x, y, z),
            G::UClamp => self.clamp(Op::Umax, Op::Umin, x, y, z),
            G::SClamp => self.clamp(Op::Smax, Op::Smin, x, y, z),
            G::FMix => {
                let one = self.fconst(t, 1.0);
                let rest = self.sub(one, z)?;
                let (p, q) = (self.mul(x, rest)?, self.mul(y, z)?);
                self.add(p, q)
            }
            G::Step => {
                let (zero, one) = (self.fconst(t, 0.0), self.fconst(t, 1.0));
                let below = self.op(Op::Flt, t, &[y, x])?;
                self.op(Op::Select, t, &[below, zero, one])
            }
            G::SmoothStep => {
                let (zero, one) = (self.fconst(t, 0.0), self.fconst(t, 1.0));
                let (d, w) = (self.sub(z, x)?, self.sub(y, x)?);
                let u = self.div(d, w)?;
                let u = self.clamp(Op::Fmax, Op::Fmin, u, zero, one)?;
                let (three, twice) = (self.fconst(t, 3.0), self.mul_k(u, 2.0)?);
                let (square, rest) = (self.mul(u, u)?, self.sub(three, twice)?);
                self.mul(square, rest)
            }
            G::Fma => self.op(Op::Fma, t, &[x, y, z]),
            G::FindILsb | G::FindSMsb | G::FindUMsb => {
                let how = match op {
                    G::FindILsb => Op::FindLsb,
                    G::FindSMsb => Op::FindSmsb,
                    _ => Op::FindUmsb,
                };
                let v = self.op(how, t, &[x])?;
                if !ty.is_int() {
                    return self.err("the number of a bit must be an integer");
                }
                resize(self, (t, v), ty, true)
            }
            G::Ldexp => self.ldexp(x, y),
            _ if t == Type::F16 => {
                let mut wide: SmallVec<[Value; 3]> = SmallVec::new();
                for &a in args {
                    wide.push(self.op(Op::Fconv, Type::F32, &[a])?);
                }
                let v = self.component(op, Type::F32, &wide)?;
                self.op(Op::Fconv, Type::F16, &[v])
            }
            _ if t != Type::F32 => self.err(format!("{op:?} of {t} is not supported")),
            G::Tan => {
                let (s, c) = (self.op(Op::Fsin, t, &[x])?, self.op(Op::Fcos, t, &[x])?);
                self.div(s, c)
            }
            G::Asin => self.asin(x, false),
            G::Acos => self.asin(x, true),
            G::Atan => self.atan(x),
            G::Atan2 => self.atan2(x, y),
            G::Sinh => self.sinh(x),
            G::Cosh => {
                let (big, small) = self.exp_halves(x)?;
                self.add(big, small)
            }
            G::Tanh => self.tanh(x),
            G::Asinh => self.asinh(x),
            G::Acosh => {
                // log1p(d + sqrt(d (x + 1))) with d = x - 1; far out the logarithm of 2x.
                let one = self.fconst(t, 1.0);
                let (d, s) = (self.sub(x, one)?, self.add(x, one)?);
                let product = self.mul(d, s)?;
                let root = self.op(Op::Fsqrt, t, &[product])?;
                let sum = self.add(d, root)?;
                let near = self.log1p(sum)?;
                self.far_log(x, x, near)
            }
            G::Atanh => {
                // log1p(2a / (1 - a)) / 2 with a = |x|.
                let (one, a) = (self.fconst(t, 1.0), self.op(Op::Fabs, t, &[x])?);
                let (twice, rest) = (self.add(a, a)?, self.sub(one, a)?);
                let q = self.div(twice, rest)?;
                let l = self.log1p(q)?;
                let half = self.mul_k(l, 0.5)?;
                self.copy_sign(half, x)
            }
            G::Pow => {
                let l = self.op(Op::Flog2, t, &[x])?;
                let e = self.mul(y, l)?;
                self.op(Op::Fexp2, t, &[e])
            }
            G::Exp => self.exp(x),
            G::Log => self.log(x),
            _ => self.err(format!("the extended instruction {op:?} is not supported")),
        }
    }

    // Small steps.

    pub(super) fn add(&mut self, a: Value, b: Value) -> Res<Value> {
        self.op(Op::Fadd, self.ty_of(a), &[a, b])
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Res<Value> {
        self.op(Op::Fsub, self.ty_of(a), &[a, b])
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Res<Value> {
        self.op(Op::Fmul, self.ty_of(a), &[a, b])
    }

    pub(super) fn div(&mut self, a: Value, b: Value) -> Res<Value> {
        self.op(Op::Fdiv, self.ty_of(a), &[a, b])
    }

    pub(super) fn mul_k(&mut self, a: Value, k: f64) -> Res<Value> {
        let k = self.fconst(self.ty_of(a), k);
        self.mul(a, k)
    }

    pub(super) fn clamp(&mut self, max: Op, min: Op, x: Value, low: Value, high: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let v = self.op(max, t, &[x, low])?;
        self.op(min, t, &[v, high])
    }

    pub(super) fn select(&mut self, c: Value, a: Value, b: Value) -> Res<Value> {
        self.op(Op::Select, self.ty_of(a), &[c, a, b])
    }

    /// `x + x * s * p(s)`.
    pub(super) fn odd_polynomial(&mut self, x: Value, s: Value, p: &[f64]) -> Res<Value> {
        let t = self.ty_of(x);
        let mut sum = self.fconst(t, p[p.len() - 1]);
        for &c in p.iter().rev().skip(1) {
            let c = self.fconst(t, c);
            let m = self.mul(sum, s)?;
            sum = self.add(m, c)?;
        }
        let xs = self.mul(x, s)?;
        let m = self.mul(xs, sum)?;
        self.add(x, m)
    }

    /// The magnitude of `a` (which has no sign) with the sign of `x`.
    pub(super) fn copy_sign(&mut self, a: Value, x: Value) -> Res<Value> {
        let sign = self.i32(0x8000_0000);
        let (ai, xi) = (self.op(Op::Bitcast, Type::I32, &[a])?, self.op(Op::Bitcast, Type::I32, &[x])?);
        let s = self.op(Op::And, Type::I32, &[xi, sign])?;
        let v = self.op(Op::Or, Type::I32, &[ai, s])?;
        self.op(Op::Bitcast, Type::F32, &[v])
    }

    pub(super) fn exp(&mut self, x: Value) -> Res<Value> {
        let e = self.mul_k(x, LOG2_E)?;
        self.op(Op::Fexp2, self.ty_of(x), &[e])
    }

    pub(super) fn log(&mut self, x: Value) -> Res<Value> {
        let l = self.op(Op::Flog2, self.ty_of(x), &[x])?;
        self.mul_k(l, LN_2)
    }

    /// Functions with a second result, through a pointer or in a structure.
    fn two_results(&mut self, i: &Inst, op: G, ty: TyId, id: u32) -> Res<()> {
        let r = self.leaves(i.w(5)?)?;
        let pointer = matches!(op, G::Modf | G::Frexp);
        let ptr = if pointer { Some(self.ptr(i.w(6)?)?) } else { None };
        let second_ty = match (&ptr, self.p.ty(ty)) {
            (Some(p), _) => self.lay.infos[p.lay as usize].ty,
            (None, Ty::Struct { first, n: 2 }) => self.p.members[first as usize + 1],
            _ => return self.err("the result must be a structure of two members"),
        };
        let Some(second) = self.p.component(second_ty) else {
            return self.err("the second result must be a scalar or a vector");
        };
        let (mut a, mut b): (SmallVec<[Value; 8]>, SmallVec<[Value; 8]>) = Default::default();
        for k in 0..r.len as usize {
            let x = self.at(r, k);
            let (p, q) = if matches!(op, G::Modf | G::ModfStruct) {
                self.modf(x)?
            } else {
                if !second.is_int() {
                    return self.err("the exponent must be an integer");
                }
                let (significand, e) = self.frexp(x)?;
                (significand, resize(self, (Type::I32, e), second, true)?)
            };
            a.push(p);
            b.push(q);
        }
        match ptr {
            Some(p) => {
                let mut rest = &b[..];
                self.store(&p, p.lay, 0, &mut rest)?;
                if !rest.is_empty() {
                    return self.err("a store of a value of another type");
                }
            }
            None => a.extend(b),
        }
        self.set_all(id, ty, &a)
    }

    fn modf(&mut self, x: Value) -> Res<(Value, Value)> {
        let t = self.ty_of(x);
        let whole = self.op(Op::Ftrunc, t, &[x])?;
        let fract = self.sub(x, whole)?;
        // Infinity has no fraction.
        let (inf, zero) = (self.konst(t, infinity(t)), self.fconst(t, 0.0));
        let a = self.op(Op::Fabs, t, &[x])?;
        let infinite = self.op(Op::Feq, t, &[a, inf])?;
        Ok((self.select(infinite, zero, fract)?, whole))
    }

    /// Significand from 1/2 up to 1, and exponent (i32); zero, infinity and NaN are themselves with exponent 0.
    fn frexp(&mut self, x: Value) -> Res<(Value, Value)> {
        let t = self.ty_of(x);
        let (Some((mantissa, bias)), Some(int)) = (float_shape(t), Type::int(t.bits())) else {
            return self.err("frexp of something that is no float");
        };
        let i = Type::I32;
        // Denormals are made normal first.
        let zero = self.fconst(t, 0.0);
        let a = self.op(Op::Fabs, t, &[x])?;
        let least = self.konst(t, 1 << mantissa);
        let tiny = self.op(Op::Flt, t, &[a, least])?;
        let scaled = self.mul_k(x, 2f64.powi(mantissa as i32 + 1))?;
        let v = self.select(tiny, scaled, x)?;
        let bits = self.op(Op::Bitcast, int, &[v])?;
        let shift = self.i32(mantissa);
        let field = self.op(Op::Lshr, int, &[bits, shift])?;
        let exponents = (2 * bias + 1) as u64;
        let mask = self.konst(int, exponents);
        let field = self.op(Op::And, int, &[field, mask])?;
        let e = resize(self, (int, field), i, false)?;
        let (normal, small) =
            (self.i32((1 - bias as i32) as u32), self.i32((-(bias as i32) - mantissa as i32) as u32));
        let by = self.op(Op::Select, i, &[tiny, small, normal])?;
        let e = self.op(Op::Iadd, i, &[e, by])?;
        let keep = self.konst(int, !(exponents << mantissa));
        let rest = self.op(Op::And, int, &[bits, keep])?;
        let half = self.konst(int, (bias as u64 - 1) << mantissa);
        let significand = self.op(Op::Or, int, &[rest, half])?;
        let significand = self.op(Op::Bitcast, t, &[significand])?;
        let inf = self.konst(t, infinity(t));
        let (finite, some) = (self.op(Op::Flt, t, &[a, inf])?, self.op(Op::Fne, t, &[a, zero])?);
        let ordinary = self.op(Op::And, Type::Bool, &[finite, some])?;
        let none = self.i32(0);
        Ok((self.select(ordinary, significand, x)?, self.select(ordinary, e, none)?))
    }

    fn pack_norm(&mut self, r: Rng, bits: u32, signed: bool) -> Res<Value> {
        if r.len * bits != 32 {
            return self.err("the operand has the wrong number of components");
        }
        let (t, i) = (Type::F32, Type::I32);
        let most = if signed { (1u32 << (bits - 1)) - 1 } else { (1u32 << bits) - 1 };
        let (low, high) = (self.fconst(t, if signed { -1.0 } else { 0.0 }), self.fconst(t, 1.0));
        let mut word = None;
        for k in 0..r.len {
            let x = self.at(r, k as usize);
            let x = self.clamp(Op::Fmax, Op::Fmin, x, low, high)?;
            let x = self.mul_k(x, most as f64)?;
            let x = self.op(Op::Fround, t, &[x])?;
            let mut x = self.op(if signed { Op::Ftosi } else { Op::Ftoui }, i, &[x])?;
            if signed && k + 1 < r.len {
                let mask = self.i32((1 << bits) - 1);
                x = self.op(Op::And, i, &[x, mask])?;
            }
            let shift = self.i32(k * bits);
            let x = if k == 0 { x } else { self.op(Op::Shl, i, &[x, shift])? };
            word = Some(match word {
                Some(w) => self.op(Op::Or, i, &[w, x])?,
                None => x,
            });
        }
        match word {
            Some(w) => Ok(w),
            None => self.err("the operand has the wrong number of components"),
        }
    }

    fn unpack_norm(&mut self, v: Value, bits: u32, signed: bool) -> Res<SmallVec<[Value; 4]>> {
        let (t, i) = (Type::F32, Type::I32);
        let most = if signed { (1u32 << (bits - 1)) - 1 } else { (1u32 << bits) - 1 };
        let mut out = SmallVec::new();
        for k in 0..32 / bits {
            let (offset, count) = (self.i32(k * bits), self.i32(bits));
            let how = if signed { Op::BitExtractS } else { Op::BitExtractU };
            let field = self.op(how, i, &[v, offset, count])?;
            let x = self.op(if signed { Op::Sitof } else { Op::Uitof }, t, &[field])?;
            let x = self.mul_k(x, 1.0 / most as f64)?;
            out.push(if signed {
                let low = self.fconst(t, -1.0);
                self.op(Op::Fmax, t, &[x, low])?
            } else {
                x
            });
        }
        Ok(out)
    }

    fn geometric(&mut self, i: &Inst, op: G) -> Res<SmallVec<[Value; 8]>> {
        let mut args: SmallVec<[Rng; 3]> = SmallVec::new();
        for &a in i.rest(5) {
            args.push(self.leaves(a)?);
        }
        let want = match op {
            G::Length | G::Normalize => 1,
            G::FaceForward | G::Refract => 3,
            _ => 2,
        };
        let vectors = if op == G::Refract { 2 } else { want };
        if args.len() != want || args[..vectors].iter().any(|r| r.len != args[0].len || r.len == 0) {
            return self.err(format!("{op:?} has operands of the wrong size"));
        }
        let (a, n) = (args[0], args[0].len as usize);
        let t = self.ty_of(self.at(a, 0));
        let mut out: SmallVec<[Value; 8]> = SmallVec::new();
        match op {
            G::Length | G::Distance => {
                let mut d: SmallVec<[Value; 4]> = SmallVec::new();
                for k in 0..n {
                    let x = self.at(a, k);
                    d.push(if op == G::Length { x } else { self.sub(x, self.at(args[1], k))? });
                }
                if let [x] = d[..] {
                    out.push(self.op(Op::Fabs, t, &[x])?);
                } else {
                    let r = self.push_values(&d)?;
                    let s = self.dot(r, r)?;
                    out.push(self.op(Op::Fsqrt, t, &[s])?);
                }
            }
            G::Normalize if n == 1 => out.push(self.component(G::FSign, t, &[self.at(a, 0)])?),
            G::Normalize => {
                let s = self.dot(a, a)?;
                let f = self.op(Op::Frsqrt, t, &[s])?;
                for k in 0..n {
                    out.push(self.mul(self.at(a, k), f)?);
                }
            }
            G::Cross => {
                if n != 3 {
                    return self.err("a cross product of vectors that do not have three components");
                }
                let b = args[1];
                for k in 0..3 {
                    let (j, l) = ((k + 1) % 3, (k + 2) % 3);
                    let p = self.mul(self.at(a, j), self.at(b, l))?;
                    let q = self.mul(self.at(a, l), self.at(b, j))?;
                    out.push(self.sub(p, q)?);
                }
            }
            G::FaceForward => {
                let d = self.dot(args[2], args[1])?;
                let zero = self.fconst(t, 0.0);
                let facing = self.op(Op::Flt, t, &[d, zero])?;
                for k in 0..n {
                    let x = self.at(a, k);
                    let minus = self.op(Op::Fneg, t, &[x])?;
                    out.push(self.select(facing, x, minus)?);
                }
            }
            G::Reflect => {
                let d = self.dot(args[1], a)?;
                let d = self.add(d, d)?;
                for k in 0..n {
                    let m = self.mul(d, self.at(args[1], k))?;
                    out.push(self.sub(self.at(a, k), m)?);
                }
            }
            _ => {
                // k = 1 - eta^2 (1 - d^2); below zero there is no refraction.
                if args[2].len != 1 {
                    return self.err("the ratio of refraction must be a scalar");
                }
                let mut eta = self.at(args[2], 0);
                if self.ty_of(eta) != t {
                    eta = self.op(Op::Fconv, t, &[eta])?;
                }
                let (one, zero) = (self.fconst(t, 1.0), self.fconst(t, 0.0));
                let d = self.dot(args[1], a)?;
                let d2 = self.mul(d, d)?;
                let rest = self.sub(one, d2)?;
                let eta2 = self.mul(eta, eta)?;
                let m = self.mul(eta2, rest)?;
                let k = self.sub(one, m)?;
                let none = self.op(Op::Flt, t, &[k, zero])?;
                let root = self.op(Op::Fsqrt, t, &[k])?;
                let along = self.mul(eta, d)?;
                let f = self.add(along, root)?;
                for c in 0..n {
                    let p = self.mul(eta, self.at(a, c))?;
                    let q = self.mul(f, self.at(args[1], c))?;
                    let v = self.sub(p, q)?;
                    out.push(self.select(none, zero, v)?);
                }
            }
        }
        Ok(out)
    }

    /// Determinant, or inverse, of a square matrix by minors, each computed once.
    fn invert(&mut self, r: Rng, n: usize, inverse: bool) -> Res<SmallVec<[Value; 16]>> {
        let m = self.slice(r);
        let mut minors: FxHashMap<(u8, u8), Value> = FxHashMap::default();
        let all = (1u8 << n) - 1;
        let det = self.minor(&m, n, all, all, &mut minors)?;
        let mut out: SmallVec<[Value; 16]> = SmallVec::new();
        if !inverse {
            out.push(det);
            return Ok(out);
        }
        let t = self.ty_of(det);
        let one = self.fconst(t, 1.0);
        let scale = self.div(one, det)?;
        let minus = self.op(Op::Fneg, t, &[scale])?;
        for c in 0..n {
            for r in 0..n {
                // The transposed cofactor: row c and column r are left out.
                let minor = self.minor(&m, n, all & !(1 << c), all & !(1 << r), &mut minors)?;
                out.push(self.mul(minor, if (r + c) % 2 == 0 { scale } else { minus })?);
            }
        }
        Ok(out)
    }

    fn minor(
        &mut self,
        m: &[Value],
        n: usize,
        rows: u8,
        columns: u8,
        known: &mut FxHashMap<(u8, u8), Value>,
    ) -> Res<Value> {
        if let Some(&v) = known.get(&(rows, columns)) {
            return Ok(v);
        }
        let row = rows.trailing_zeros() as usize;
        let below = rows & (rows - 1);
        let mut sum: Option<Value> = None;
        let mut negative = false;
        for c in (0..n).filter(|c| columns >> c & 1 != 0) {
            let x = m[c * n + row];
            let term = if below == 0 {
                x
            } else {
                let rest = self.minor(m, n, below, columns & !(1 << c), known)?;
                self.mul(x, rest)?
            };
            sum = Some(match sum {
                None => term,
                Some(s) if negative => self.sub(s, term)?,
                Some(s) => self.add(s, term)?,
            });
            negative = !negative;
        }
        let Some(v) = sum else { return self.err("the determinant of nothing") };
        known.insert((rows, columns), v);
        Ok(v)
    }
}
