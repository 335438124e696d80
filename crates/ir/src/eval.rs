//! What every pure operation computes, on bits.
//!
//! A value is a `u64` whose bits above the width of its type are zero. [`kernel`] gives the function of an
//! operation at a type; [`eval`] applies it to the operands of an instruction. The constant folder, the interpreter
//! and the simulators use these same functions, so they cannot disagree.
//!
//! Conventions (beside the comments of [`crate::ops`]):
//! * every arithmetic float result that is NaN is the canonical quiet NaN ([`canonical_nan`]); `fneg`, `fabs`,
//!   `select` and `bitcast` move bits and keep what they get;
//! * denormals are kept, rounding is to nearest even;
//! * f16 is computed in f64 and rounded once: sums and products of two halves are exact in f64, and 53 bits are
//!   more than the 2 * 11 + 2 after which a second rounding of a quotient or a square root is harmless
//!   (Figueroa, "When is double rounding innocuous?", 1995);
//! * exponentials, logarithms, trigonometric functions and reciprocal square roots are evaluated in f64 (crate
//!   `libm`, which gives the same bits on every computer) and rounded to the type: for f32 and f16 that is the
//!   correctly rounded value of the exact function but for cases closer to a tie than the last bits of an f64;
//! * `frem` and `fmod` are the formulas of the operation table with a rounding after each step, as SPIR-V's
//!   precision rules describe them, not the exact remainder.

use crate::module::{AtomicOp, Imm, ReduceKind};
use crate::ops::Op;
use crate::types::Type;

/// The function of an operation at a type: up to four operands, those that it does not have are ignored.
pub type Kernel = fn(u64, u64, u64, u64) -> u64;

/// The quiet NaN that arithmetic gives at a float type (0 for others).
pub fn canonical_nan(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7e00,
        Type::F32 => 0x7fc0_0000,
        Type::F64 => 0x7ff8_0000_0000_0000,
        _ => 0,
    }
}

/// The low `W` bits.
#[inline(always)]
fn cut<const W: u32>(x: u64) -> u64 {
    if W == 64 { x } else { x & ((1 << W) - 1) }
}

/// The value of the low `W` bits as a signed number.
#[inline(always)]
fn signed<const W: u32>(x: u64) -> i64 {
    ((x << (64 - W)) as i64) >> (64 - W)
}

/// Sign-extends the low bits of a value of type `ty` to 64 bits.
pub fn sign_extend(ty: Type, bits: u64) -> i64 {
    let shift = 64 - ty.bits();
    ((bits << shift) as i64) >> shift
}

fn int_kernel<const W: u32>(op: Op) -> Option<Kernel> {
    Some(match op {
        Op::Iadd => |a, b, _, _| cut::<W>(a.wrapping_add(b)),
        Op::Isub => |a, b, _, _| cut::<W>(a.wrapping_sub(b)),
        Op::Imul => |a, b, _, _| cut::<W>(a.wrapping_mul(b)),
        Op::Ineg => |a, _, _, _| cut::<W>(a.wrapping_neg()),
        Op::Smulhi => |a, b, _, _| cut::<W>(((signed::<W>(a) as i128 * signed::<W>(b) as i128) >> W) as u64),
        Op::Umulhi => |a, b, _, _| cut::<W>(((a as u128 * b as u128) >> W) as u64),
        Op::Sdiv => |a, b, _, _| match signed::<W>(b) {
            0 => cut::<W>(u64::MAX),
            b => cut::<W>(signed::<W>(a).wrapping_div(b) as u64),
        },
        Op::Udiv => |a, b, _, _| a.checked_div(b).unwrap_or(cut::<W>(u64::MAX)),
        Op::Srem => |a, b, _, _| match signed::<W>(b) {
            0 => a,
            b => cut::<W>(signed::<W>(a).wrapping_rem(b) as u64),
        },
        Op::Smod => |a, b, _, _| match signed::<W>(b) {
            0 => a,
            b => {
                let r = signed::<W>(a).wrapping_rem(b);
                cut::<W>((if r != 0 && (r < 0) != (b < 0) { r + b } else { r }) as u64)
            }
        },
        Op::Umod => |a, b, _, _| a.checked_rem(b).unwrap_or(a),
        Op::Smin => |a, b, _, _| if signed::<W>(b) < signed::<W>(a) { b } else { a },
        Op::Smax => |a, b, _, _| if signed::<W>(b) > signed::<W>(a) { b } else { a },
        Op::Umin => |a, b, _, _| a.min(b),
        Op::Umax => |a, b, _, _| a.max(b),
        Op::And => |a, b, _, _| a & b,
        Op::Or => |a, b, _, _| a | b,
        Op::Xor => |a, b, _, _| a ^ b,
        Op::Not => |a, _, _, _| cut::<W>(!a),
        Op::Shl => |a, b, _, _| cut::<W>(a << (b & (W as u64 - 1))),
        Op::Lshr => |a, b, _, _| a >> (b & (W as u64 - 1)),
        Op::Ashr => |a, b, _, _| cut::<W>((signed::<W>(a) >> (b & (W as u64 - 1))) as u64),
        Op::Popcount => |a, _, _, _| a.count_ones() as u64,
        Op::Bitreverse => |a, _, _, _| a.reverse_bits() >> (64 - W),
        Op::Clz => |a, _, _, _| (a.leading_zeros() - (64 - W)) as u64,
        Op::FindLsb => |a, _, _, _| match a {
            0 => cut::<W>(u64::MAX),
            a => a.trailing_zeros() as u64,
        },
        Op::FindSmsb => |a, _, _, _| {
            let s = signed::<W>(a);
            find_umsb::<W>((if s < 0 { !s } else { s }) as u64)
        },
        Op::FindUmsb => |a, _, _, _| find_umsb::<W>(a),
        Op::BitInsert => |base, insert, offset, count| {
            let m = field::<W>(offset, count);
            base & !m | shl_or_0(insert, offset) & m
        },
        Op::BitExtractU => |base, offset, count, _| {
            let m = field::<W>(offset, count);
            (base & m).checked_shr(offset.min(64) as u32).unwrap_or(0)
        },
        Op::BitExtractS => |base, offset, count, _| {
            let m = field::<W>(offset, count);
            let low = (base & m).checked_shr(offset.min(64) as u32).unwrap_or(0);
            match count.min(W as u64) {
                0 => 0,
                c => cut::<W>((((low << (64 - c)) as i64) >> (64 - c)) as u64),
            }
        },
        Op::Ieq => |a, b, _, _| (a == b) as u64,
        Op::Ine => |a, b, _, _| (a != b) as u64,
        Op::Slt => |a, b, _, _| (signed::<W>(a) < signed::<W>(b)) as u64,
        Op::Sle => |a, b, _, _| (signed::<W>(a) <= signed::<W>(b)) as u64,
        Op::Ult => |a, b, _, _| (a < b) as u64,
        Op::Ule => |a, b, _, _| (a <= b) as u64,
        _ => return None,
    })
}

fn find_umsb<const W: u32>(a: u64) -> u64 {
    match a {
        0 => cut::<W>(u64::MAX),
        a => 63 - a.leading_zeros() as u64,
    }
}

fn shl_or_0(x: u64, by: u64) -> u64 {
    if by < 64 { x << by } else { 0 }
}

/// The bits of a field, cut to the width.
fn field<const W: u32>(offset: u64, count: u64) -> u64 {
    let ones = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    cut::<W>(shl_or_0(ones, offset))
}

fn bool_kernel(op: Op) -> Option<Kernel> {
    Some(match op {
        Op::And => |a, b, _, _| a & b,
        Op::Or => |a, b, _, _| a | b,
        Op::Xor | Op::Ine => |a, b, _, _| a ^ b,
        Op::Ieq => |a, b, _, _| (a == b) as u64,
        Op::Not => |a, _, _, _| a ^ 1,
        _ => return None,
    })
}

/// A float format as bits. Its arithmetic is done in f64 and rounded, unless it says otherwise.
trait Float {
    /// Value as f64 (exact).
    fn wide(bits: u64) -> f64;
    /// Rounds an f64 to the format.
    fn narrow(x: f64) -> u64;
    const SIGN: u64;
    const NAN: u64;
    fn is_nan(bits: u64) -> bool {
        bits & !Self::SIGN > Self::INF
    }
    const INF: u64;
    fn add(a: u64, b: u64) -> u64 {
        Self::narrow(Self::wide(a) + Self::wide(b))
    }
    fn mul(a: u64, b: u64) -> u64 {
        Self::narrow(Self::wide(a) * Self::wide(b))
    }
    fn div(a: u64, b: u64) -> u64 {
        Self::narrow(Self::wide(a) / Self::wide(b))
    }
    fn sqrt(a: u64) -> u64 {
        Self::narrow(Self::wide(a).sqrt())
    }
    /// `x >= y` on numbers (not NaN), with -0 below +0: compares the bits as sign and magnitude.
    fn below(a: u64, b: u64) -> bool {
        let key = |x: u64| if x & Self::SIGN != 0 { -((x & !Self::SIGN) as i64) - 1 } else { x as i64 };
        key(a) < key(b)
    }
}

struct Half;
struct Single;
/// f32 without denormals.
struct Flushed;
struct Double;

impl Float for Half {
    const SIGN: u64 = 0x8000;
    const NAN: u64 = 0x7e00;
    const INF: u64 = 0x7c00;
    fn wide(bits: u64) -> f64 {
        f16_to_f64(bits as u16)
    }
    fn narrow(x: f64) -> u64 {
        f64_to_f16(x) as u64
    }
}

#[inline(always)]
fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Bits of an f32 result, NaN made canonical.
#[inline(always)]
pub fn f32_result(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

/// Bits of an f64 result, NaN made canonical.
#[inline(always)]
pub fn f64_result(x: f64) -> u64 {
    if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() }
}

impl Float for Single {
    const SIGN: u64 = 0x8000_0000;
    const NAN: u64 = 0x7fc0_0000;
    const INF: u64 = 0x7f80_0000;
    fn wide(bits: u64) -> f64 {
        f(bits) as f64
    }
    fn narrow(x: f64) -> u64 {
        f32_result(x as f32) as u64
    }
    fn add(a: u64, b: u64) -> u64 {
        f32_result(f(a) + f(b)) as u64
    }
    fn mul(a: u64, b: u64) -> u64 {
        f32_result(f(a) * f(b)) as u64
    }
    fn div(a: u64, b: u64) -> u64 {
        f32_result(f(a) / f(b)) as u64
    }
    fn sqrt(a: u64) -> u64 {
        f32_result(f(a).sqrt()) as u64
    }
}

/// Zero of the same sign for what is below the normal numbers, before any rounding.
fn flushed(x: f64) -> f64 {
    if x.abs() < f64::from(f32::MIN_POSITIVE) { 0f64.copysign(x) } else { x }
}

/// Sums, products, quotients and roots of f32 are rounded from f64, which is harmless (53 bits are 2 * 24 + 2 and more).
impl Float for Flushed {
    const SIGN: u64 = Single::SIGN;
    const NAN: u64 = Single::NAN;
    const INF: u64 = Single::INF;
    fn wide(bits: u64) -> f64 {
        flushed(Single::wide(bits))
    }
    fn narrow(x: f64) -> u64 {
        Single::narrow(flushed(x))
    }
}

impl Float for Double {
    const SIGN: u64 = 1 << 63;
    const NAN: u64 = 0x7ff8_0000_0000_0000;
    const INF: u64 = 0x7ff0_0000_0000_0000;
    fn wide(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    fn narrow(x: f64) -> u64 {
        f64_result(x)
    }
}

fn sub<F: Float>(a: u64, b: u64) -> u64 {
    F::add(a, if F::is_nan(b) { b } else { b ^ F::SIGN })
}

fn min<F: Float>(a: u64, b: u64) -> u64 {
    match (F::is_nan(a), F::is_nan(b)) {
        (true, true) => F::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if F::below(b, a) {
                b
            } else {
                a
            }
        }
    }
}

fn max<F: Float>(a: u64, b: u64) -> u64 {
    match (F::is_nan(a), F::is_nan(b)) {
        (true, true) => F::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if F::below(a, b) {
                b
            } else {
                a
            }
        }
    }
}

/// A function of one operand evaluated in f64 and rounded to the format.
fn via_wide<F: Float>(a: u64, f: fn(f64) -> f64) -> u64 {
    F::narrow(f(F::wide(a)))
}

fn float_kernel<F: Float>(op: Op) -> Option<Kernel> {
    Some(match op {
        Op::Fadd => |a, b, _, _| F::add(a, b),
        Op::Fsub => |a, b, _, _| sub::<F>(a, b),
        Op::Fmul => |a, b, _, _| F::mul(a, b),
        Op::Fdiv => |a, b, _, _| F::div(a, b),
        Op::Frem => |a, b, _, _| {
            let q = via_wide::<F>(F::div(a, b), f64::trunc);
            sub::<F>(a, F::mul(b, q))
        },
        Op::Fmod => |a, b, _, _| {
            let q = via_wide::<F>(F::div(a, b), f64::floor);
            sub::<F>(a, F::mul(b, q))
        },
        Op::Fma => |a, b, c, _| F::add(F::mul(a, b), c),
        Op::Fneg => |a, _, _, _| a ^ F::SIGN,
        Op::Fabs => |a, _, _, _| a & !F::SIGN,
        Op::Fmin => |a, b, _, _| min::<F>(a, b),
        Op::Fmax => |a, b, _, _| max::<F>(a, b),
        // All values with a fraction are small enough to be exact in f64, and so are the results.
        Op::Ffloor => |a, _, _, _| via_wide::<F>(a, f64::floor),
        Op::Fceil => |a, _, _, _| via_wide::<F>(a, f64::ceil),
        Op::Ftrunc => |a, _, _, _| via_wide::<F>(a, f64::trunc),
        Op::Fround => |a, _, _, _| via_wide::<F>(a, f64::round_ties_even),
        Op::Fsqrt => |a, _, _, _| F::sqrt(a),
        Op::Frsqrt => |a, _, _, _| via_wide::<F>(a, |x| 1.0 / x.sqrt()),
        Op::Fexp2 => |a, _, _, _| via_wide::<F>(a, libm::exp2),
        Op::Flog2 => |a, _, _, _| via_wide::<F>(a, libm::log2),
        Op::Fsin => |a, _, _, _| via_wide::<F>(a, libm::sin),
        Op::Fcos => |a, _, _, _| via_wide::<F>(a, libm::cos),
        Op::Feq => |a, b, _, _| (F::wide(a) == F::wide(b)) as u64,
        Op::Fne => |a, b, _, _| (F::wide(a) != F::wide(b)) as u64,
        Op::Flt => |a, b, _, _| (F::wide(a) < F::wide(b)) as u64,
        Op::Fle => |a, b, _, _| (F::wide(a) <= F::wide(b)) as u64,
        _ => return None,
    })
}

/// Operations that exist at f32 only: the model of the special function units.
fn single_kernel(op: Op) -> Option<Kernel> {
    Some(match op {
        Op::RcpApprox => |a, _, _, _| f32_result(1.0 / f(a)) as u64,
        Op::RsqrtApprox => |a, _, _, _| via_wide::<Single>(a, |x| 1.0 / x.sqrt()),
        Op::Exp2Approx => |a, _, _, _| via_wide::<Single>(a, libm::exp2),
        Op::Log2Approx => |a, _, _, _| via_wide::<Single>(a, libm::log2),
        Op::SinpiApprox => {
            |a, _, _, _| via_wide::<Single>(a, |x| libm::sin(std::f64::consts::PI * x.clamp(-0.5, 0.5)))
        }
        Op::UnpackHalfLo => |a, _, _, _| f16_to_f32(a as u16) as u64,
        Op::UnpackHalfHi => |a, _, _, _| f16_to_f32((a >> 16) as u16) as u64,
        _ => return float_kernel::<Single>(op),
    })
}

fn float_to_signed<F: Float, const W: u32>(a: u64, _: u64, _: u64, _: u64) -> u64 {
    // `as` saturates and turns NaN into 0.
    let max = cut::<W>(u64::MAX) as i64 as u64 >> 1;
    cut::<W>((F::wide(a) as i64).clamp(-(max as i64) - 1, max as i64) as u64)
}

fn float_to_unsigned<F: Float, const W: u32>(a: u64, _: u64, _: u64, _: u64) -> u64 {
    (F::wide(a) as u64).min(cut::<W>(u64::MAX))
}

fn to_signed<F: Float>(to: Type) -> Option<Kernel> {
    Some(match to {
        Type::I8 => float_to_signed::<F, 8>,
        Type::I16 => float_to_signed::<F, 16>,
        Type::I32 => float_to_signed::<F, 32>,
        Type::I64 => float_to_signed::<F, 64>,
        _ => return None,
    })
}

fn to_unsigned<F: Float>(to: Type) -> Option<Kernel> {
    Some(match to {
        Type::I8 => float_to_unsigned::<F, 8>,
        Type::I16 => float_to_unsigned::<F, 16>,
        Type::I32 => float_to_unsigned::<F, 32>,
        Type::I64 => float_to_unsigned::<F, 64>,
        _ => return None,
    })
}

fn from_signed<const W: u32>(to: Type) -> Option<Kernel> {
    Some(match to {
        // A 64-bit number that f64 cannot hold is far beyond the largest half.
        Type::F16 => |a, _, _, _| f64_to_f16(signed::<W>(a) as f64) as u64,
        Type::F32 => |a, _, _, _| (signed::<W>(a) as f32).to_bits() as u64,
        Type::F64 => |a, _, _, _| (signed::<W>(a) as f64).to_bits(),
        _ => return None,
    })
}

fn from_unsigned(to: Type) -> Option<Kernel> {
    Some(match to {
        Type::F16 => |a, _, _, _| f64_to_f16(a as f64) as u64,
        Type::F32 => |a, _, _, _| (a as f32).to_bits() as u64,
        Type::F64 => |a, _, _, _| (a as f64).to_bits(),
        _ => return None,
    })
}

fn mask_kernel(to: Type) -> Kernel {
    match to.bits() {
        1 => |a, _, _, _| cut::<1>(a),
        8 => |a, _, _, _| cut::<8>(a),
        16 => |a, _, _, _| cut::<16>(a),
        32 => |a, _, _, _| cut::<32>(a),
        _ => |a, _, _, _| a,
    }
}

fn convert_kernel(op: Op, to: Type, from: Type) -> Option<Kernel> {
    Some(match op {
        Op::Trunc | Op::Zext | Op::Bitcast => mask_kernel(to),
        Op::Sext => match (from.bits(), to.bits()) {
            (1, 8) => |a, _, _, _| cut::<8>(signed::<1>(a) as u64),
            (1, 16) => |a, _, _, _| cut::<16>(signed::<1>(a) as u64),
            (1, 32) => |a, _, _, _| cut::<32>(signed::<1>(a) as u64),
            (1, 64) => |a, _, _, _| signed::<1>(a) as u64,
            (8, 16) => |a, _, _, _| cut::<16>(signed::<8>(a) as u64),
            (8, 32) => |a, _, _, _| cut::<32>(signed::<8>(a) as u64),
            (8, 64) => |a, _, _, _| signed::<8>(a) as u64,
            (16, 32) => |a, _, _, _| cut::<32>(signed::<16>(a) as u64),
            (16, 64) => |a, _, _, _| signed::<16>(a) as u64,
            (32, 64) => |a, _, _, _| signed::<32>(a) as u64,
            _ => return None,
        },
        Op::Ftosi => match from {
            Type::F16 => to_signed::<Half>(to)?,
            Type::F32 => to_signed::<Single>(to)?,
            Type::F64 => to_signed::<Double>(to)?,
            _ => return None,
        },
        Op::Ftoui => match from {
            Type::F16 => to_unsigned::<Half>(to)?,
            Type::F32 => to_unsigned::<Single>(to)?,
            Type::F64 => to_unsigned::<Double>(to)?,
            _ => return None,
        },
        Op::Sitof => match from {
            Type::I8 => from_signed::<8>(to)?,
            Type::I16 => from_signed::<16>(to)?,
            Type::I32 => from_signed::<32>(to)?,
            Type::I64 => from_signed::<64>(to)?,
            _ => return None,
        },
        Op::Uitof if from.is_int() => from_unsigned(to)?,
        Op::Fconv => match (from, to) {
            (Type::F16, Type::F32) => |a, _, _, _| f16_to_f32(a as u16) as u64,
            (Type::F16, Type::F64) => |a, _, _, _| f64_result(f16_to_f64(a as u16)),
            (Type::F32, Type::F16) => |a, _, _, _| f32_to_f16(a as u32) as u64,
            (Type::F32, Type::F64) => |a, _, _, _| f64_result(f(a) as f64),
            (Type::F64, Type::F16) => |a, _, _, _| f64_to_f16(f64::from_bits(a)) as u64,
            (Type::F64, Type::F32) => |a, _, _, _| f32_result(f64::from_bits(a) as f32) as u64,
            _ => return None,
        },
        _ => return None,
    })
}

/// The function of a pure operation with immediate-free operands. `ty` is the type of the instruction, `from` the
/// type of its first operand (which matters for conversions only). `None` when the operation is not of that kind or
/// does not exist at the type.
pub fn kernel(op: Op, ty: Type, from: Type) -> Option<Kernel> {
    match op {
        Op::Select => return Some(|c, a, b, _| if c & 1 != 0 { a } else { b }),
        Op::PackHalf => return Some(|a, b, _, _| pack_half(a as u32, b as u32) as u64),
        Op::Umul24 => return Some(|a, b, _, _| cut::<32>((a & 0xff_ffff) * (b & 0xff_ffff))),
        _ => {}
    }
    if let Some(k) = convert_kernel(op, ty, from) {
        return Some(k);
    }
    match ty {
        Type::Bool => bool_kernel(op),
        Type::I8 => int_kernel::<8>(op),
        Type::I16 => int_kernel::<16>(op),
        Type::I32 | Type::Ptr(_) => int_kernel::<32>(op),
        Type::I64 => int_kernel::<64>(op),
        Type::F16 => float_kernel::<Half>(op),
        Type::F32 => single_kernel(op),
        Type::F64 => float_kernel::<Double>(op),
    }
}

/// As [`kernel`], of a machine whose f32 arithmetic has no denormals: operands below the normal numbers count as zeros of
/// their sign, and so do results, before they are rounded. Moves of bits are as ever.
pub fn flushing_kernel(op: Op, ty: Type, from: Type) -> Option<Kernel> {
    match (op, ty) {
        (Op::Fmin, Type::F32) => Some(|a, b, _, _| min::<Flushed>(no_denormal(a), no_denormal(b))),
        (Op::Fmax, Type::F32) => Some(|a, b, _, _| max::<Flushed>(no_denormal(a), no_denormal(b))),
        (Op::RcpApprox, Type::F32) => Some(|a, _, _, _| via_wide::<Flushed>(a, |x| 1.0 / x)),
        (Op::RsqrtApprox, Type::F32) => Some(|a, _, _, _| via_wide::<Flushed>(a, |x| 1.0 / x.sqrt())),
        (Op::Exp2Approx, Type::F32) => Some(|a, _, _, _| via_wide::<Flushed>(a, libm::exp2)),
        (Op::Log2Approx, Type::F32) => Some(|a, _, _, _| via_wide::<Flushed>(a, libm::log2)),
        (_, Type::F32) => match convert_kernel(op, ty, from) {
            Some(k) => Some(k),
            None => float_kernel::<Flushed>(op).or_else(|| kernel(op, ty, from)),
        },
        _ => kernel(op, ty, from),
    }
}

/// A number as flushing arithmetic sees it.
fn no_denormal(a: u64) -> u64 {
    if Single::is_nan(a) { a } else { Flushed::narrow(Flushed::wide(a)) }
}

/// Evaluates a pure instruction: `None` when it is not pure or is `undef`.
pub fn eval(op: Op, ty: Type, from: Type, imm: Imm, args: &[u64]) -> Option<u64> {
    match (op, imm) {
        (Op::Const, Imm::Int(bits)) => return Some(bits & ty.mask()),
        (Op::Lea, Imm::Lea(l)) => {
            let index = args.get(1).copied().unwrap_or(0) as u32;
            return Some(lea(*args.first()? as u32, index, l.scale, l.offset) as u64);
        }
        _ => {}
    }
    let arg = |n: usize| args.get(n).copied().unwrap_or(0);
    Some(kernel(op, ty, from)?(arg(0), arg(1), arg(2), arg(3)))
}

/// `base + index * scale + offset`, modulo 2^32.
#[inline]
pub fn lea(base: u32, index: u32, scale: u32, offset: i32) -> u32 {
    base.wrapping_add(index.wrapping_mul(scale)).wrapping_add(offset as u32)
}

/// New contents of a memory location after an atomic operation. `data` is the last operand (the new value of a
/// compare-exchange), `expected` the other operand of a compare-exchange.
pub fn atomic(op: AtomicOp, ty: Type, old: u64, data: u64, expected: u64) -> u64 {
    let by = |op: Op| kernel(op, ty, ty).map_or(old, |k| k(old, data, 0, 0));
    match op {
        AtomicOp::Add => by(Op::Iadd),
        AtomicOp::Sub => by(Op::Isub),
        AtomicOp::Exchange | AtomicOp::Store => data,
        AtomicOp::CompareExchange if old == expected => data,
        AtomicOp::CompareExchange | AtomicOp::Load => old,
        AtomicOp::Umin => by(Op::Umin),
        AtomicOp::Umax => by(Op::Umax),
        AtomicOp::Smin => by(Op::Smin),
        AtomicOp::Smax => by(Op::Smax),
        AtomicOp::And => by(Op::And),
        AtomicOp::Or => by(Op::Or),
        AtomicOp::Xor => by(Op::Xor),
        AtomicOp::Fadd => by(Op::Fadd),
        AtomicOp::Fmin => by(Op::Fmin),
        AtomicOp::Fmax => by(Op::Fmax),
    }
}

/// The value that leaves the other operand of a reduction alone, `None` for an operation that cannot reduce.
pub fn reduce_identity(op: Op, ty: Type) -> Option<u64> {
    Some(match op {
        Op::Iadd | Op::Or | Op::Xor | Op::Umax => 0,
        Op::And | Op::Umin => ty.mask(),
        Op::Imul => 1,
        Op::Smin => ty.mask() >> 1,
        Op::Smax => ty.mask() ^ (ty.mask() >> 1),
        // -0 is the number that changes no sum; SPIR-V names 0, which differs for a sum of -0 alone.
        Op::Fadd => 0,
        Op::Fmul => match ty {
            Type::F16 => 0x3c00,
            Type::F32 => 1f32.to_bits() as u64,
            _ => 1f64.to_bits(),
        },
        Op::Fmin => infinity(ty),
        Op::Fmax => infinity(ty) | ty.mask() ^ (ty.mask() >> 1),
        _ => return None,
    })
}

fn infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => Half::INF,
        Type::F32 => Single::INF,
        _ => Double::INF,
    }
}

/// Reduces or scans one cluster, whose size is a power of two, in the order that log-step machines have: lanes that are
/// not active bring the identity, a reduction exchanges over half the cluster, then a quarter and so on, and a scan
/// takes the value of 1, then 2, 4, ... lanes below. Halves are summed as f32 and rounded once.
pub fn reduce(op: Op, ty: Type, kind: ReduceKind, lanes: &mut [(bool, u64)]) {
    let inner = if ty == Type::F16 { Type::F32 } else { ty };
    let (Some(k), Some(identity)) = (kernel(op, inner, inner), reduce_identity(op, inner)) else { return };
    let widen = |v: u64| if ty == Type::F16 { f16_to_f32(v as u16) as u64 } else { v };
    let narrow = |v: u64| if ty == Type::F16 { f32_to_f16(v as u32) as u64 } else { v };
    let mut row: Vec<u64> = lanes.iter().map(|&(on, v)| if on { widen(v) } else { identity }).collect();
    let n = row.len();
    match kind {
        ReduceKind::Reduce => {
            let mut step = n / 2;
            while step > 0 {
                let old = row.clone();
                for (i, v) in row.iter_mut().enumerate() {
                    if let Some(&other) = old.get(i ^ step) {
                        *v = k(old[i], other, 0, 0);
                    }
                }
                step /= 2;
            }
        }
        ReduceKind::InclusiveScan | ReduceKind::ExclusiveScan => {
            if kind == ReduceKind::ExclusiveScan {
                row.rotate_right(1.min(n));
                if let Some(first) = row.first_mut() {
                    *first = identity;
                }
            }
            let mut step = 1;
            while step < n {
                for i in (step..n).rev() {
                    row[i] = k(row[i], row[i - step], 0, 0);
                }
                step *= 2;
            }
        }
    }
    for ((on, v), sum) in lanes.iter_mut().zip(row) {
        if *on {
            *v = narrow(sum);
        }
    }
}

/// Two f32 as halves, the first in the low half.
pub fn pack_half(lo: u32, hi: u32) -> u32 {
    f32_to_f16(lo) as u32 | (f32_to_f16(hi) as u32) << 16
}

/// f32 bits of a half; NaN becomes canonical.
pub fn f16_to_f32(h: u16) -> u32 {
    f32_result(f16_to_f64(h) as f32)
}

/// Half of f32 bits, to nearest even; NaN becomes canonical.
pub fn f32_to_f16(x: u32) -> u16 {
    f64_to_f16(f32::from_bits(x) as f64)
}

/// Exact.
pub fn f16_to_f64(h: u16) -> f64 {
    let magnitude = h & 0x7fff;
    let value = match magnitude >> 10 {
        0 => magnitude as f64 / (1 << 24) as f64,
        31 if magnitude > 0x7c00 => f64::NAN,
        31 => f64::INFINITY,
        // Move exponent (bias 15 to 1023) and fraction (10 to 52 bits) to their places in an f64.
        _ => f64::from_bits(((magnitude as u64) << 42) + ((1023 - 15) << 52)),
    };
    if h & 0x8000 != 0 { -value } else { value }
}

/// To nearest even; beyond the largest half plus half a step: infinity.
pub fn f64_to_f16(x: f64) -> u16 {
    if x.is_nan() {
        return 0x7e00;
    }
    let sign = ((x.to_bits() >> 48) & 0x8000) as u16;
    let a = x.abs();
    let magnitude = if a >= 65520.0 {
        0x7c00
    } else if a < 1.0 / (1 << 14) as f64 {
        // Denormal (or the smallest normal after rounding): multiples of 2^-24.
        (a * (1 << 24) as f64).round_ties_even() as u16
    } else {
        // Keep 10 of 52 bits; a carry out of the fraction steps the exponent, which is what is wanted.
        let bits = a.to_bits() - ((1023 - 15) << 52);
        let (kept, rest) = (bits >> 42, bits & ((1 << 42) - 1));
        let half = 1 << 41;
        let up = rest > half || rest == half && kept & 1 == 1;
        kept as u16 + up as u16
    };
    sign | magnitude
}

#[cfg(test)]
mod tests;
