//! Rules for floats. Bit for bit, with zeros' signs, infinities and NaNs, unless the instruction is `FAST`.
//!
//! Arithmetic makes every NaN canonical, so `x * 1` is `x` only where `x` cannot be another NaN: see [`canonical`].

use super::{Act, Rules, View, to};
use kempe_ir::eval;
use kempe_ir::*;

pub fn rule(r: &mut Rules, v: &View) -> Act {
    use Op::*;
    match v.op {
        Fadd => add(r, v),
        Fsub => sub(r, v),
        Fmul => mul(r, v),
        Fdiv => div(r, v),
        Fma => fma(r, v),
        Fneg => match r.arg(v.args[0], Fneg) {
            Some(x) => Act::Value(x),
            None => Act::Keep,
        },
        Fabs => {
            if r.arg(v.args[0], Fabs).is_some() {
                return Act::Value(v.args[0]);
            }
            match r.arg(v.args[0], Fneg) {
                Some(x) => to(Fabs, v.ty, &[x]),
                None => Act::Keep,
            }
        }
        Fmin | Fmax => min_max(r, v),
        Ffloor | Fceil | Ftrunc | Fround => {
            // Whole numbers already.
            let whole = r
                .def(v.args[0])
                .is_some_and(|d| matches!(d.op, Ffloor | Fceil | Ftrunc | Fround | Sitof | Uitof));
            if whole { Act::Value(v.args[0]) } else { Act::Keep }
        }
        _ => Act::Keep,
    }
}

fn one(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    }
}

fn sign(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

/// The value is not a NaN, or the canonical one: float arithmetic computed it.
pub fn canonical(r: &Rules, v: Value) -> bool {
    canonical_within(r, v, 3)
}

fn canonical_within(r: &Rules, v: Value, depth: u32) -> bool {
    use Op::*;
    let Some(d) = r.def(v) else { return false };
    match d.op {
        Fadd | Fsub | Fmul | Fdiv | Frem | Fmod | Fma | Fmin | Fmax | Ffloor | Fceil | Ftrunc | Fround
        | Fsqrt | Frsqrt | Fexp2 | Flog2 | Fsin | Fcos | RcpApprox | RsqrtApprox | Exp2Approx
        | Log2Approx | SinpiApprox | Sitof | Uitof | Fconv | UnpackHalfLo | UnpackHalfHi => true,
        Const => {
            let exponent = match d.ty {
                Type::F16 => 0x7c00,
                Type::F32 => 0x7f80_0000,
                Type::F64 => 0x7ff0_0000_0000_0000,
                _ => return false,
            };
            r.as_const(v)
                .is_some_and(|bits| bits & !sign(d.ty) <= exponent || bits == eval::canonical_nan(d.ty))
        }
        Select if depth > 0 => {
            canonical_within(r, d.args[1], depth - 1) && canonical_within(r, d.args[2], depth - 1)
        }
        _ => false,
    }
}

/// The value may stand for an arithmetic result that equals it but for NaN's bits.
fn same(r: &Rules, v: &View, x: Value) -> bool {
    v.flags.has(Flags::FAST) || canonical(r, x)
}

fn fast(v: &View) -> bool {
    v.flags.has(Flags::FAST)
}

fn add(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if let Some(c) = r.as_const(b) {
        // x + -0 is x; x + 0 is not for x = -0.
        if (c == sign(ty) || c == 0 && (fast(v) || never_minus_zero(r, a))) && same(r, v, a) {
            return Act::Value(a);
        }
        return Act::Keep;
    }
    for [a, b] in [[a, b], [b, a]] {
        if let Some(x) = r.arg(b, Op::Fneg) {
            return to(Op::Fsub, ty, &[a, x]);
        }
    }
    Act::Keep
}

/// Values that are never -0, by their operation.
fn never_minus_zero(r: &Rules, v: Value) -> bool {
    r.def(v).is_some_and(|d| matches!(d.op, Op::Sitof | Op::Uitof | Op::Fabs | Op::Fexp2 | Op::Exp2Approx))
}

fn sub(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if let Some(c) = r.as_const(b) {
        if c == 0 && same(r, v, a) {
            return Act::Value(a);
        }
        let c = r.konst(ty, c ^ sign(ty));
        return to(Op::Fadd, ty, &[a, c]);
    }
    if let Some(x) = r.arg(b, Op::Fneg) {
        return to(Op::Fadd, ty, &[a, x]);
    }
    if a == b && fast(v) {
        return Act::Const(0);
    }
    Act::Keep
}

fn mul(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if let Some(c) = r.as_const(b) {
        if c == one(ty) && same(r, v, a) {
            return Act::Value(a);
        }
        if c == one(ty) | sign(ty) && fast(v) {
            return to(Op::Fneg, ty, &[a]);
        }
        if c & !sign(ty) == 0 && fast(v) {
            return Act::Const(0);
        }
        // (-x) * c
        if let Some(x) = r.arg(a, Op::Fneg) {
            let c = r.konst(ty, c ^ sign(ty));
            return to(Op::Fmul, ty, &[x, c]);
        }
        return Act::Keep;
    }
    if let (Some(x), Some(y)) = (r.arg(a, Op::Fneg), r.arg(b, Op::Fneg)) {
        return to(Op::Fmul, ty, &[x, y]);
    }
    Act::Keep
}

fn div(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let Some(c) = r.as_const(v.args[1]) else {
        if let (Some(x), Some(y)) = (r.arg(a, Op::Fneg), r.arg(v.args[1], Op::Fneg)) {
            return to(Op::Fdiv, ty, &[x, y]);
        }
        return Act::Keep;
    };
    if c == one(ty) && same(r, v, a) {
        return Act::Value(a);
    }
    // By a power of two: its reciprocal is exact, if it is a normal number too.
    if let Some(inverse) = exact_reciprocal(ty, c) {
        let k = r.konst(ty, inverse);
        return to(Op::Fmul, ty, &[a, k]);
    }
    Act::Keep
}

/// The reciprocal of a power of two where both are normal numbers.
fn exact_reciprocal(ty: Type, c: u64) -> Option<u64> {
    let (mantissa, bias) = match ty {
        Type::F16 => (10, 15),
        Type::F32 => (23, 127),
        Type::F64 => (52, 1023),
        _ => return None,
    };
    let exponent = (c & !sign(ty)) >> mantissa;
    let fraction = c & ((1 << mantissa) - 1);
    if fraction != 0 || exponent == 0 || exponent >= 2 * bias {
        return None;
    }
    Some(c & sign(ty) | (2 * bias - exponent) << mantissa)
}

fn fma(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b, c]) = (v.ty, [v.args[0], v.args[1], v.args[2]]);
    // A product with 1 is exact, and it makes NaN canonical as the addition does anyway.
    if r.as_const(b) == Some(one(ty)) {
        return to(Op::Fadd, ty, &[a, c]);
    }
    if r.as_const(a) == Some(one(ty)) {
        return to(Op::Fadd, ty, &[b, c]);
    }
    if r.as_const(c) == Some(sign(ty)) || fast(v) && r.as_const(c) == Some(0) {
        return to(Op::Fmul, ty, &[a, b]);
    }
    if let (Some(x), Some(y)) = (r.arg(a, Op::Fneg), r.arg(b, Op::Fneg)) {
        return to(Op::Fma, ty, &[x, y, c]);
    }
    Act::Keep
}

fn min_max(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b && same(r, v, a) {
        return Act::Value(a);
    }
    if let Some(c) = r.as_const(b)
        && let Some((x, c1)) = r.with_const(a, v.op)
        && let Some(k) = eval::eval(v.op, ty, ty, Imm::None, &[c, c1])
    {
        let k = r.konst(ty, k);
        return to(v.op, ty, &[x, k]);
    }
    Act::Keep
}
