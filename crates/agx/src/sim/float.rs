//! Float arithmetic of the machine: f32 without denormals, f16 with them, one rounding to nearest even.
//!
//! Everything is computed in f64 such that one rounding to the target is exact: products of two f32 or f16 are exact in f64,
//! and the sum is rounded *to odd*, which a second rounding to fewer bits cannot see (Boldo and Melquiond, "Emulation of a
//! FMA and correctly-rounded sums: proved algorithms using rounding to odd", 2008).
//!
//! Facts: reference section 4.3.

/// The NaN that every operation gives.
pub const NAN32: u32 = 0x7fc0_0000;
pub const NAN16: u16 = 0x7e00;

/// An f32 as a source: denormals are zero.
pub fn from_f32(bits: u32) -> f64 {
    let flushed = if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits };
    f64::from(f32::from_bits(flushed))
}

/// An f16 as a source; exact.
pub fn from_f16(bits: u16) -> f64 {
    let mantissa = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 31 {
        0 => mantissa * (-24f64).exp2(),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + mantissa) * f64::from(i32::from(exponent) - 25).exp2(),
    };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

/// To f32: below the normal range zero, and that before rounding.
pub fn to_f32(x: f64) -> u32 {
    if x.is_nan() {
        NAN32
    } else if x.abs() < f64::from(f32::MIN_POSITIVE) {
        u32::from(x.is_sign_negative()) << 31
    } else {
        (x as f32).to_bits()
    }
}

/// To f16, denormals kept.
pub fn to_f16(x: f64) -> u16 {
    if x.is_nan() {
        return NAN16;
    }
    let sign = u16::from(x.is_sign_negative()) << 15;
    let magnitude = x.abs();
    // Halfway between the largest number and the power of two above it.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let smallest = (-14f64).exp2();
    if magnitude < smallest {
        return sign | (magnitude * 24f64.exp2()).round_ties_even() as u16;
    }
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    let mantissa = (magnitude * f64::from(10 - exponent).exp2()).round_ties_even() as u16;
    // A mantissa that rounds up to the next power of two carries into the exponent.
    sign | ((((exponent + 15) as u16) << 10) + (mantissa - 1024))
}

/// a * b + c, the product exact, the sum rounded to odd.
pub fn fma(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's two-sum: what the addition lost.
    let back = sum - product;
    let lost = (product - (sum - back)) + (c - back);
    if lost == 0.0 || sum.to_bits() & 1 != 0 {
        return sum;
    }
    let away = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

/// Clamped to [0, 1]; NaN and everything that is negative, -0 too, is +0.
pub fn saturate32(bits: u32) -> u32 {
    let x = f32::from_bits(bits);
    if x.is_nan() || x.is_sign_negative() {
        0
    } else if x > 1.0 {
        1f32.to_bits()
    } else {
        bits
    }
}

/// The same for f16.
pub fn saturate16(bits: u16) -> u16 {
    let x = from_f16(bits);
    if x.is_nan() || bits & 0x8000 != 0 {
        0
    } else if x > 1.0 {
        0x3c00
    } else {
        bits
    }
}

/// An approximate result: so many units in the last place beside the right one, if that is not exact.
pub fn miss(x: f64, units: i8) -> f64 {
    let right = f32::from_bits(to_f32(x));
    if units == 0 || f64::from(right) == x || !right.is_normal() {
        return x;
    }
    let beside = f32::from_bits((right.to_bits() as i32 + i32::from(units)) as u32);
    if beside.is_normal() { f64::from(beside) } else { x }
}
