//! Inverse and hyperbolic functions: polynomials and reductions of our own.
//!
//! The polynomials are minimax fits of the relative error (Remez exchange), evaluated by Horner's rule; the fit's own
//! error stands beside each. Large and small arguments are taken care of: no square that overflows, no difference of
//! nearly equal numbers where a series does better.

use super::*;
use crate::arith::{infinity, resize};
use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, PI};

/// (atan(x) / x - 1) / x^2 in x^2, for x up to 1; relative error 2^-25.8.
const ATAN: [f64; 8] = [
    -0.33333152532577515,
    0.19993773102760315,
    -0.14211054146289825,
    0.10666001588106155,
    -0.07552208751440048,
    0.04321180284023285,
    -0.016367893666028976,
    0.002920684404671192,
];
/// (asin(x) / x - 1) / x^2 in x^2, for x up to 1/2; relative error 2^-27.5.
const ASIN: [f64; 5] = [
    0.16666753590106964,
    0.07495241612195969,
    0.04547709971666336,
    0.024147605523467064,
    0.04221855849027634,
];
/// (sinh(x) / x - 1) / x^2 in x^2, for x up to 1; relative error 2^-25.2.
const SINH: [f64; 3] = [0.166667178273201, 0.008330211043357849, 0.0002037740487139672];
/// (tanh(x) / x - 1) / x^2 in x^2, for x up to 5/8; relative error 2^-27.8.
const TANH: [f64; 5] = [
    -0.3333328366279602,
    0.13331490755081177,
    -0.053743500262498856,
    0.02065058797597885,
    -0.005717046558856964,
];
impl Lower<'_, '_> {
    /// log(1 + x) that keeps the digits of a small x: the error of `u = 1 + x` is undone by `x / (u - 1)`
    /// (Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4).
    pub(super) fn log1p(&mut self, x: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let flags = std::mem::replace(&mut self.flags, Flags::NO_CONTRACTION);
        let one = self.fconst(t, 1.0);
        let u = self.add(one, x)?;
        let d = self.sub(u, one)?;
        let l = self.log(u)?;
        let q = self.div(x, d)?;
        let v = self.mul(l, q)?;
        let inf = self.konst(t, infinity(t));
        let same = self.op(Op::Feq, t, &[u, one])?;
        let infinite = self.op(Op::Feq, t, &[u, inf])?;
        let v = self.select(same, x, v)?;
        let v = self.select(infinite, u, v)?;
        self.flags = flags;
        Ok(v)
    }

    /// `near`, or log(a) + log(2) for a beyond 2^20, where squares would lose everything.
    pub(super) fn far_log(&mut self, x: Value, a: Value, near: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let limit = self.fconst(t, 1048576.0);
        let far = self.op(Op::Flt, t, &[limit, a])?;
        let l = self.op(Op::Flog2, t, &[a])?;
        let one = self.fconst(t, 1.0);
        let l = self.add(l, one)?;
        let l = self.mul_k(l, LN_2)?;
        self.select(far, l, near)
    }

    pub(super) fn asinh(&mut self, x: Value) -> Res<Value> {
        // log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|.
        let t = self.ty_of(x);
        let (one, a) = (self.fconst(t, 1.0), self.op(Op::Fabs, t, &[x])?);
        let square = self.mul(a, a)?;
        let s = self.add(square, one)?;
        let root = self.op(Op::Fsqrt, t, &[s])?;
        let d = self.add(root, one)?;
        let q = self.div(square, d)?;
        let sum = self.add(a, q)?;
        let near = self.log1p(sum)?;
        let v = self.far_log(x, a, near)?;
        self.copy_sign(v, x)
    }

    /// exp(|x|) / 2 and exp(-|x|) / 2, without overflow before the result overflows.
    pub(super) fn exp_halves(&mut self, x: Value) -> Res<(Value, Value)> {
        let t = self.ty_of(x);
        let a = self.op(Op::Fabs, t, &[x])?;
        let half = self.mul_k(a, 0.5)?;
        let h = self.exp(half)?;
        let h2 = self.mul_k(h, 0.5)?;
        let big = self.mul(h2, h)?;
        let quarter = self.fconst(t, 0.25);
        let small = self.div(quarter, big)?;
        Ok((big, small))
    }

    pub(super) fn sinh(&mut self, x: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let (big, small) = self.exp_halves(x)?;
        let d = self.sub(big, small)?;
        let far = self.copy_sign(d, x)?;
        let s = self.mul(x, x)?;
        let near = self.odd_polynomial(x, s, &SINH)?;
        let (a, one) = (self.op(Op::Fabs, t, &[x])?, self.fconst(t, 1.0));
        let is_near = self.op(Op::Flt, t, &[a, one])?;
        self.select(is_near, near, far)
    }

    pub(super) fn tanh(&mut self, x: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let (a, one, two) = (self.op(Op::Fabs, t, &[x])?, self.fconst(t, 1.0), self.fconst(t, 2.0));
        // 1 - 2 / (exp(2a) + 1)
        let e = self.mul_k(a, 2.0 * LOG2_E)?;
        let e = self.op(Op::Fexp2, t, &[e])?;
        let e = self.add(e, one)?;
        let q = self.div(two, e)?;
        let d = self.sub(one, q)?;
        let far = self.copy_sign(d, x)?;
        let s = self.mul(x, x)?;
        let near = self.odd_polynomial(x, s, &TANH)?;
        let limit = self.fconst(t, 0.625);
        let is_near = self.op(Op::Flt, t, &[a, limit])?;
        self.select(is_near, near, far)
    }

    pub(super) fn atan(&mut self, x: Value) -> Res<Value> {
        // Beyond 1: pi/2 - atan(1 / x).
        let t = self.ty_of(x);
        let (a, one) = (self.op(Op::Fabs, t, &[x])?, self.fconst(t, 1.0));
        let far = self.op(Op::Flt, t, &[one, a])?;
        let inverse = self.div(one, a)?;
        let r = self.select(far, inverse, a)?;
        let s = self.mul(r, r)?;
        let v = self.odd_polynomial(r, s, &ATAN)?;
        let right = self.fconst(t, FRAC_PI_2);
        let rest = self.sub(right, v)?;
        let v = self.select(far, rest, v)?;
        self.copy_sign(v, x)
    }

    pub(super) fn atan2(&mut self, y: Value, x: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let (ax, ay) = (self.op(Op::Fabs, t, &[x])?, self.op(Op::Fabs, t, &[y])?);
        let (most, least) = (self.op(Op::Fmax, t, &[ax, ay])?, self.op(Op::Fmin, t, &[ax, ay])?);
        let q = self.div(least, most)?;
        // 0 / 0 and infinity / infinity.
        let (zero, one) = (self.fconst(t, 0.0), self.fconst(t, 1.0));
        let same = self.op(Op::Feq, t, &[most, least])?;
        let origin = self.op(Op::Feq, t, &[most, zero])?;
        let q = self.select(same, one, q)?;
        let q = self.select(origin, zero, q)?;
        let s = self.mul(q, q)?;
        let v = self.odd_polynomial(q, s, &ATAN)?;
        let steep = self.op(Op::Flt, t, &[ax, ay])?;
        let right = self.fconst(t, FRAC_PI_2);
        let rest = self.sub(right, v)?;
        let v = self.select(steep, rest, v)?;
        let left = self.op(Op::Flt, t, &[x, zero])?;
        let straight = self.fconst(t, PI);
        let rest = self.sub(straight, v)?;
        let v = self.select(left, rest, v)?;
        self.copy_sign(v, y)
    }

    pub(super) fn asin(&mut self, x: Value, cosine: bool) -> Res<Value> {
        // Beyond 1/2: pi/2 - 2 asin(sqrt((1 - a) / 2)).
        let t = self.ty_of(x);
        let a = self.op(Op::Fabs, t, &[x])?;
        let (half, one, right) = (self.fconst(t, 0.5), self.fconst(t, 1.0), self.fconst(t, FRAC_PI_2));
        let far = self.op(Op::Flt, t, &[half, a])?;
        let (square, d) = (self.mul(x, x)?, self.sub(one, a)?);
        let d = self.mul(d, half)?;
        let s = self.select(far, d, square)?;
        let root = self.op(Op::Fsqrt, t, &[s])?;
        let r = self.select(far, root, a)?;
        let v = self.odd_polynomial(r, s, &ASIN)?;
        let twice = self.add(v, v)?;
        if !cosine {
            let rest = self.sub(right, twice)?;
            let v = self.select(far, rest, v)?;
            return self.copy_sign(v, x);
        }
        let (zero, straight) = (self.fconst(t, 0.0), self.fconst(t, PI));
        let negative = self.op(Op::Flt, t, &[x, zero])?;
        let rest = self.sub(straight, twice)?;
        let far_value = self.select(negative, rest, twice)?;
        let signed = self.copy_sign(v, x)?;
        let near = self.sub(right, signed)?;
        self.select(far, far_value, near)
    }

    /// x * 2^e in three steps, so that no factor leaves the range of the type.
    pub(super) fn ldexp(&mut self, x: Value, e: Value) -> Res<Value> {
        let t = self.ty_of(x);
        let (Some((mantissa, bias)), true) = (float_shape(t), self.ty_of(e).is_int()) else {
            return self.err("ldexp has operands of the wrong type");
        };
        let (i, from) = (Type::I32, self.ty_of(e));
        let mut left = resize(self, (from, e), i, true)?;
        let (low, high) = (self.i32(1u32.wrapping_sub(bias)), self.i32(bias));
        let mut v = x;
        for step in 0..3 {
            let part = self.clamp(Op::Smax, Op::Smin, left, low, high)?;
            if step < 2 {
                left = self.op(Op::Isub, i, &[left, part])?;
            }
            let b = self.i32(bias);
            let biased = self.op(Op::Iadd, i, &[part, b])?;
            let int = Type::int(t.bits()).unwrap_or(i);
            let biased = resize(self, (i, biased), int, false)?;
            let shift = self.i32(mantissa);
            let bits = self.op(Op::Shl, int, &[biased, shift])?;
            let factor = self.op(Op::Bitcast, t, &[bits])?;
            v = self.mul(v, factor)?;
        }
        Ok(v)
    }
}

/// Bits of the mantissa, and bias, of a float type.
pub(super) fn float_shape(t: Type) -> Option<(u32, u32)> {
    match t {
        Type::F16 => Some((10, 15)),
        Type::F32 => Some((23, 127)),
        Type::F64 => Some((52, 1023)),
        _ => None,
    }
}
