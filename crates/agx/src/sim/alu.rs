//! What integer and float operations compute, lane by lane.
//!
//! Facts: reference section 4 and the effect lines of appendix A.

use super::Trouble;
use super::code::Step;
use super::float::{fma, from_f16, from_f32, miss, saturate16, saturate32, to_f16, to_f32};
use crate::asm::float_value;
use crate::instr::{Number, Operand, Place, Size};
use crate::ops::Op;

/// Bits of a source; an immediate counts as 16.
pub(super) fn width(operand: &Operand) -> u32 {
    match operand.place {
        Place::Reg { size, .. } | Place::Uniform { size, .. } => size.bits(),
        _ => 16,
    }
}

/// The low `bits` of a value with their sign.
pub(super) fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    (value << unused) as i64 >> unused
}

/// A source of an addition or multiplication, extended as it asks for.
fn wide(operand: &Operand, value: u64) -> i128 {
    match operand.place {
        Place::Imm(_) => value.into(),
        _ if operand.signed => sign_extend(value, width(operand)).into(),
        _ => value.into(),
    }
}

/// A float source as a number; `value` is what was read.
pub(super) fn float(operand: &Operand, value: u64) -> f64 {
    let mut x = match operand.place {
        Place::Float(bits) => float_value(bits),
        _ if width(operand) == 16 => from_f16(value as u16),
        _ => from_f32(value as u32),
    };
    if operand.abs {
        x = x.abs();
    }
    if operand.neg { -x } else { x }
}

/// Bits of the result of a step.
fn dest_bits(step: &Step) -> u32 {
    width(&step.dest)
}

/// The result of an operation on one lane.
pub(super) type Scalar = fn(&Step, [u64; 3], i8) -> u64;

/// How an operation of the ALU is computed lane by lane; `None` if it is not one of those.
pub(super) fn scalar(op: Op) -> Option<Scalar> {
    Some(match op {
        Op::MovImm16 | Op::MovImm32 => |s, _, _| s.instr.get(Number::Value).into(),
        Op::Iadd | Op::Isub | Op::Imadd | Op::Imsub => |s, v, _| add(s, v),
        Op::Bitop => |s, v, _| bitop(s.instr.get(Number::Table), v[0], v[1]),
        Op::Bfi | Op::Bfeil | Op::Extr | Op::Shlhi | Op::Shrhi => |s, v, _| field(s, v),
        Op::Asr => |s, v, _| (sign_extend(v[0], width(&s.sources[0])) >> (v[1] & 127).min(63)) as u64,
        Op::Asrh => {
            |s, v, _| ((i128::from(sign_extend(v[0], width(&s.sources[0]))) << 32) >> (v[1] & 127)) as u64
        }
        Op::Bitrev => |_, v, _| (v[0] as u32).reverse_bits().into(),
        Op::Popcount => |_, v, _| (v[0] as u32).count_ones().into(),
        Op::Ffs => |_, v, _| (v[0] as u32).checked_ilog2().unwrap_or(u32::MAX).into(),
        Op::Intl => |_, v, _| interleave(v[0] as u16) | interleave(v[1] as u16) << 1,
        Op::Fadd32 | Op::Fadd16 => |s, v, _| round(s, fma(source(s, v, 0), 1.0, source(s, v, 1))),
        // A product of zero keeps its sign; section 4.3 leaves it open.
        Op::Fmul32 | Op::Fmul16 => |s, v, _| round(s, source(s, v, 0) * source(s, v, 1)),
        Op::Fmadd32 | Op::Fmadd16 => {
            |s, v, _| round(s, fma(source(s, v, 0), source(s, v, 1), source(s, v, 2)))
        }
        Op::Floor => |s, v, _| round(s, source(s, v, 0).floor()),
        Op::Ceil => |s, v, _| round(s, source(s, v, 0).ceil()),
        Op::Trunc => |s, v, _| round(s, source(s, v, 0).trunc()),
        Op::Rint => |s, v, _| round(s, source(s, v, 0).round_ties_even()),
        Op::Rcp => |s, v, miss| approximate(s, 1.0 / source(s, v, 0), miss),
        Op::Rsqrt => |s, v, miss| approximate(s, 1.0 / source(s, v, 0).sqrt(), miss),
        Op::RsqrtSpecial => |s, v, miss| approximate(s, rsqrt_special(source(s, v, 0)), miss),
        Op::Log2 => |s, v, miss| approximate(s, libm::log2(source(s, v, 0)), miss),
        Op::Exp2 => |s, v, miss| approximate(s, libm::exp2(source(s, v, 0)), miss),
        Op::SinPt1 => |s, v, _| round(s, quadrant(source(s, v, 0))),
        Op::SinPt2 => |s, v, miss| approximate(s, sine_over(source(s, v, 0)), miss),
        Op::Convert => |s, v, _| convert(s, v[0]),
        _ => return None,
    })
}

fn source(step: &Step, values: [u64; 3], i: usize) -> f64 {
    float(&step.sources[i], values[i])
}

/// Rounds to the destination. The 32-bit operations with a 16-bit destination round to f32 first.
fn round(step: &Step, x: f64) -> u64 {
    let narrow_operation = matches!(step.op, Op::Fadd16 | Op::Fmul16 | Op::Fmadd16);
    if narrow_operation {
        let bits = to_f16(x);
        return if step.saturate { saturate16(bits) } else { bits }.into();
    }
    let bits = to_f32(x);
    if dest_bits(step) == 16 {
        let bits = to_f16(f64::from(f32::from_bits(bits)));
        return if step.saturate { saturate16(bits) } else { bits }.into();
    }
    if step.saturate { saturate32(bits) } else { bits }.into()
}

fn approximate(step: &Step, x: f64, units: i8) -> u64 {
    round(step, miss(x, units))
}

/// 1/sqrt such that x times it is sqrt(x): 0 and infinity must not give NaN.
fn rsqrt_special(x: f64) -> f64 {
    if x == 0.0 || x == f64::INFINITY { 1.0 } else { 1.0 / x.sqrt() }
}

/// Quadrants in [0, 4) to a signed offset in [-1, 1] with the same sine.
fn quadrant(q: f64) -> f64 {
    if q <= 1.0 {
        q
    } else if q <= 3.0 {
        2.0 - q
    } else {
        q - 4.0
    }
}

/// sin(x * pi/2) / x.
fn sine_over(x: f64) -> f64 {
    if x == 0.0 { std::f64::consts::FRAC_PI_2 } else { libm::sin(x * std::f64::consts::FRAC_PI_2) / x }
}

/// iadd, isub, imadd, imsub: exact, then cut to the width or clamped.
fn add(step: &Step, values: [u64; 3]) -> u64 {
    let [a, b, c] = [0, 1, 2].map(|i| wide(&step.sources[i], values[i]));
    let multiplies = matches!(step.op, Op::Imadd | Op::Imsub);
    let (left, right) = if multiplies { (a.wrapping_mul(b), c) } else { (a, b) };
    let right = if step.shift <= 4 { right << step.shift } else { 0 };
    let exact = match step.op {
        Op::Isub | Op::Imsub => left.wrapping_sub(right),
        _ => left.wrapping_add(right),
    };
    let bits = dest_bits(step);
    let sources = if multiplies { &step.sources[..] } else { &step.sources[..2] };
    // Of a multiplication only the addend counts.
    let wide_source = if multiplies { &step.sources[2..] } else { sources }.iter().any(|o| width(o) == 64);
    if step.saturate && step.shift == 0 && !wide_source && bits != 64 {
        let signed = sources.iter().any(|o| o.signed);
        let (low, high) =
            if signed { (-1i128 << (bits - 1), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
        return exact.clamp(low, high) as u64;
    }
    exact as u64
}

fn bitop(table: u32, a: u64, b: u64) -> u64 {
    // The two tables that should give the second source give the first one.
    if table == 12 || table == 3 {
        return a;
    }
    let term = |bit: u32, value: u64| if table >> bit & 1 != 0 { value } else { 0 };
    term(0, !a & !b) | term(1, a & !b) | term(2, !a & b) | term(3, a & b)
}

/// Shifts and bit fields; the amount has 7 bits, so large ones shift everything out.
fn field(step: &Step, [a, b, c]: [u64; 3]) -> u64 {
    let (a, b) = (u128::from(a as u32), u128::from(b as u32));
    let amount = (c & 127) as u32;
    let mask: u128 = match step.instr.get(Number::Width) {
        0 => 0xffff_ffff,
        width => (1 << width) - 1,
    };
    // Everything that is shifted has at most 64 bits, so 64 places more are as good as 127.
    let place = amount.min(64);
    let word = match step.op {
        Op::Bfi => (a & !(mask << place)) | (b & mask) << place,
        Op::Bfeil => (a & !mask) | (b >> place & mask),
        Op::Extr => (b << 32 | a) >> place & mask,
        Op::Shlhi => {
            let kept = mask << place.saturating_sub(32);
            (b << place >> 32 & kept) | (a & !kept)
        }
        _ => {
            let kept = mask << 32 >> amount.min(32);
            (b << 32 >> place & kept) | (a & !kept)
        }
    };
    word as u32 as u64
}

/// Every bit to an even place.
fn interleave(value: u16) -> u64 {
    (0..16).map(|i| u64::from(value >> i & 1) << (2 * i)).sum()
}

/// Conversions. What does not fit an integer becomes the nearest one that does and NaN becomes 0: section 17 leaves that open.
fn convert(step: &Step, value: u64) -> u64 {
    let operand = &step.sources[0];
    let nearest = step.instr.get(Number::Round) == 1;
    let mode = step.instr.get(Number::Mode);
    let whole = |x: f64| if nearest { x.round_ties_even() } else { x.trunc() };
    let from_integer = |x: f64| match (dest_bits(step), nearest) {
        (16, true) => to_f16(x).into(),
        (_, true) => to_f32(x).into(),
        (16, false) => truncated(x, |x| to_f16(x).into(), |bits| from_f16(bits as u16)),
        (_, false) => truncated(x, |x| to_f32(x).into(), |bits| from_f32(bits as u32)),
    };
    match mode {
        0 => from_integer((value as u8).into()),
        1 => from_integer((value as i8).into()),
        6 => from_integer((value as u16).into()),
        7 => from_integer((value as i16).into()),
        10 => from_integer((value as u32).into()),
        11 => from_integer((value as i32).into()),
        4 => (whole(float(operand, value)) as u16).into(),
        5 => whole(float(operand, value)) as i16 as u16 as u64,
        8 => (whole(float(operand, value)) as u32).into(),
        _ => whole(float(operand, value)) as i32 as u32 as u64,
    }
}

/// Rounds an integer towards zero with a conversion that rounds to nearest.
fn truncated(x: f64, to: impl Fn(f64) -> u64, from: impl Fn(u64) -> f64) -> u64 {
    let bits = to(x);
    if from(bits).abs() > x.abs() { bits - 1 } else { bits }
}

/// Is there anything that the simulator does not know about a step that [`scalar`] computes?
pub(super) fn check(step: &Step) -> Result<(), Trouble> {
    let unsettled = |what: &str| Err(Trouble::new("unsettled", what));
    match step.op {
        Op::Convert if !matches!(step.instr.get(Number::Mode), 0 | 1 | 4..=11) => {
            unsettled("this conversion is not known")
        }
        Op::Convert if step.instr.get(Number::Round) > 1 => unsettled("this rounding is not known"),
        Op::MovImm32 if step.instr.get(Number::Kill) != 0 => Err(Trouble::unsupported("the end of helpers")),
        Op::Fadd16 | Op::Fmul16 | Op::Fmadd16 if step.sources.iter().any(|o| width(o) != 16) => {
            unsettled("a 32-bit source of a 16-bit operation")
        }
        Op::Imadd | Op::Imsub if step.sources[..2].iter().any(|o| width(o) == 64) => {
            unsettled("a factor of 64 bits")
        }
        _ => Ok(()),
    }
}

/// Does an integer comparison hold?
pub(super) fn compare_integers(step: &Step, a: u64, b: u64) -> bool {
    let [x, y] = [(&step.sources[0], a), (&step.sources[1], b)].map(|(operand, value)| {
        match (step.condition & 4 != 0, operand.place) {
            (true, Place::Reg { .. } | Place::Uniform { .. }) => sign_extend(value, width(operand)),
            _ => value as i64,
        }
    });
    let holds = match step.condition & 3 {
        0 => x == y,
        1 => x < y,
        _ => x > y,
    };
    holds != (step.condition & 8 != 0)
}

/// Does a float comparison hold? In ltn and gtn a NaN loses.
pub(super) fn compare_floats(step: &Step, a: u64, b: u64) -> bool {
    let (x, y) = (float(&step.sources[0], a), float(&step.sources[1], b));
    let holds = match step.condition & 7 {
        0 => x == y,
        1 => x < y,
        2 => x > y,
        3 => x < y || y.is_nan(),
        5 => x >= y,
        6 => x <= y,
        _ => x > y || y.is_nan(),
    };
    holds != (step.condition & 8 != 0)
}

/// Is the comparison one whose meaning is known?
pub(super) fn check_condition(step: &Step, floats: bool) -> Result<(), Trouble> {
    let known = if floats { step.condition & 7 != 4 } else { step.condition & 3 != 3 };
    let narrow = step.sources[..2].iter().all(|o| width(o) != Size::B64.bits());
    if known && narrow { Ok(()) } else { Err(Trouble::new("unsettled", "this comparison is not known")) }
}
