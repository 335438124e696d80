//! What the operations compute, on vectors of sixteen lanes.
//!
//! Facts: reference sections 6.5 (operations), 7.3 (flags of a result), 8.1 to 8.4 (modifiers). Arithmetic that needs a
//! model (halves, special functions, the NaN that results have) is that of [`kempe_ir::eval`], which the interpreter
//! uses too. What no source settles is poison here, never a guess: the flags of packed results, C of operations other
//! than add, sub, min and fcmp, Z and N of float results that are -0 or NaN.

use super::model;
use super::{LANES, Lanes, Mask};
use crate::instr::{Op, Pack, Push, Unpack};

/// Bit of each lane in a [`Mask`].
const BIT: [Mask; LANES] = {
    let mut bits = [0; LANES];
    let mut i = 0;
    while i < LANES {
        bits[i] = 1 << i;
        i += 1;
    }
    bits
};

/// The lanes for which `f` holds.
#[inline(always)]
pub(super) fn mask(f: impl Fn(usize) -> bool) -> Mask {
    let mut m = 0;
    for (i, bit) in BIT.iter().enumerate() {
        m |= if f(i) { *bit } else { 0 };
    }
    m
}

/// Writes the lanes of `lanes`.
#[inline(always)]
pub(super) fn blend(to: &mut Lanes, from: &Lanes, lanes: Mask) {
    if lanes == Mask::MAX {
        *to = *from;
        return;
    }
    for i in 0..LANES {
        to[i] = if lanes & BIT[i] != 0 { from[i] } else { to[i] };
    }
}

/// Writes the lanes of `lanes` into one half of the destination.
#[inline(always)]
pub(super) fn blend_packed(to: &mut Lanes, from: &Lanes, lanes: Mask, pack: Pack) {
    let shift = if pack == Pack::H { 16 } else { 0 };
    for i in 0..LANES {
        let half = u32::from(model::to_half(from[i])) << shift;
        let merged = to[i] & !(0xffff << shift) | half;
        to[i] = if lanes & BIT[i] != 0 { merged } else { to[i] };
    }
}

#[inline(always)]
fn each(mut f: impl FnMut(usize) -> u32) -> Lanes {
    let mut r = [0; LANES];
    for (i, lane) in r.iter_mut().enumerate() {
        *lane = f(i);
    }
    r
}

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Result of a float operation: any NaN becomes the canonical one.
#[inline(always)]
fn r(value: f32) -> u32 {
    if value.is_nan() { model::NAN } else { value.to_bits() }
}

/// Applies a source modifier. `None` when its meaning is not known.
#[inline]
pub(super) fn unpack(how: Unpack, v: &Lanes) -> Option<Lanes> {
    Some(match how {
        Unpack::None => *v,
        Unpack::Abs => each(|i| v[i] & 0x7fff_ffff),
        Unpack::L => each(|i| model::from_half(v[i] as u16)),
        Unpack::H => each(|i| model::from_half((v[i] >> 16) as u16)),
        Unpack::Sat => each(|i| clamp(v[i], 0.0, 1.0)),
        Unpack::Nsat => each(|i| clamp(v[i], -1.0, 1.0)),
        Unpack::Max0 => each(|i| clamp(v[i], 0.0, f32::INFINITY)),
        Unpack::Unknown7 => return None,
        Unpack::Ff => each(|i| u32::from(model::to_half(v[i])) * 0x1_0001),
        Unpack::Ll => each(|i| (v[i] & 0xffff) * 0x1_0001),
        Unpack::Hh => each(|i| (v[i] >> 16) * 0x1_0001),
        Unpack::Swp => each(|i| v[i].rotate_left(16)),
        Unpack::Ul => each(|i| v[i] & 0xffff),
        Unpack::Uh => each(|i| v[i] >> 16),
        Unpack::Il => each(|i| v[i] as i16 as u32),
        Unpack::Ih => each(|i| (v[i] as i32 >> 16) as u32),
    })
}

/// What the sine of 4.2 makes of its argument (in half turns).
pub(super) fn quarter_turn(v: &Lanes) -> Lanes {
    each(|i| clamp(v[i], -0.5, 0.5))
}

#[inline(always)]
fn clamp(bits: u32, low: f32, high: f32) -> u32 {
    let v = f(bits);
    if v.is_nan() {
        model::NAN
    } else if v < low {
        low.to_bits()
    } else if v > high {
        high.to_bits()
    } else {
        bits
    }
}

/// An operation on pairs of halves; each half is widened, so `op` sees f32 bits.
#[inline(always)]
fn halves(a: u32, b: u32, op: impl Fn(u32, u32) -> u32) -> u32 {
    let one = |shift: u32| {
        model::to_half(op(model::from_half((a >> shift) as u16), model::from_half((b >> shift) as u16)))
    };
    u32::from(one(0)) | u32::from(one(16)) << 16
}

/// f16 to an unsigned or signed normalised integer of `max` steps, as a 16-bit value.
fn norm(bits: u32, low: f32, max: f32) -> u32 {
    let v = f(bits);
    let v = if v.is_nan() { 0.0 } else { v.clamp(low, 1.0) };
    (v * max).round_ties_even() as i32 as u32
}

/// The lane that lane `k` reads in a rotation inside quads by `n`, upwards.
#[inline(always)]
fn in_quad(k: usize, n: usize) -> usize {
    k & !3 | (k + n) & 3
}

/// Poison of a pairwise difference: both lanes of a pair suffer.
fn pair_poison(p: Mask, distance: u32, first: Mask) -> Mask {
    let either = (p | p >> distance) & first;
    either | either << distance
}

/// The value of an operation that depends on nothing but its sources, with its poison. `None` when the operation needs
/// the thread's state or is not modelled.
#[inline]
pub(super) fn pure(op: Op, a: &Lanes, b: &Lanes, pa: Mask, pb: Mask) -> Option<(Lanes, Mask)> {
    let poison = pa | pb;
    let value = match op {
        Op::Fadd | Op::Faddnf => each(|i| r(f(a[i]) + f(b[i]))),
        Op::Fsub | Op::Fcmp => each(|i| r(f(a[i]) - f(b[i]))),
        Op::Fmul => each(|i| r(f(a[i]) * f(b[i]))),
        Op::Fmin => each(|i| model::fmin(a[i], b[i])),
        Op::Fmax => each(|i| model::fmax(a[i], b[i])),
        Op::Vfpack => each(|i| u32::from(model::to_half(a[i])) | u32::from(model::to_half(b[i])) << 16),
        Op::Vfmin => each(|i| halves(a[i], b[i], model::fmin)),
        Op::Vfmax => each(|i| halves(a[i], b[i], model::fmax)),
        // The product of two halves is exact in f32, so one rounding remains.
        Op::Vfmul => each(|i| halves(a[i], b[i], |x, y| r(f(x) * f(y)))),
        Op::Add => each(|i| a[i].wrapping_add(b[i])),
        Op::Sub => each(|i| a[i].wrapping_sub(b[i])),
        Op::Min => each(|i| (a[i] as i32).min(b[i] as i32) as u32),
        Op::Max => each(|i| (a[i] as i32).max(b[i] as i32) as u32),
        Op::Umin => each(|i| a[i].min(b[i])),
        Op::Umax => each(|i| a[i].max(b[i])),
        Op::Shl => each(|i| a[i] << (b[i] & 31)),
        Op::Shr => each(|i| a[i] >> (b[i] & 31)),
        Op::Asr => each(|i| (a[i] as i32 >> (b[i] & 31)) as u32),
        Op::Ror => each(|i| a[i].rotate_right(b[i] & 31)),
        Op::And => each(|i| a[i] & b[i]),
        Op::Or => each(|i| a[i] | b[i]),
        Op::Xor => each(|i| a[i] ^ b[i]),
        Op::Vadd => each(|i| {
            u32::from((a[i] as u16).wrapping_add(b[i] as u16)) | (a[i] >> 16).wrapping_add(b[i] >> 16) << 16
        }),
        Op::Vsub => each(|i| {
            u32::from((a[i] as u16).wrapping_sub(b[i] as u16)) | (a[i] >> 16).wrapping_sub(b[i] >> 16) << 16
        }),
        Op::Not => each(|i| !a[i]),
        Op::Neg => each(|i| a[i].wrapping_neg()),
        Op::Flpop => each(|i| a[i] >> 2),
        Op::Clz => each(|i| a[i].leading_zeros()),
        Op::Fround => each(|i| r(f(a[i]).round_ties_even())),
        Op::Ftrunc => each(|i| r(f(a[i]).trunc())),
        Op::Ffloor => each(|i| r(f(a[i]).floor())),
        Op::Fceil => each(|i| r(f(a[i]).ceil())),
        Op::Ftoin => each(|i| model::to_signed(r(f(a[i]).round_ties_even()))),
        Op::Ftoiz => each(|i| model::to_signed(a[i])),
        Op::Ftouz => each(|i| model::to_unsigned(a[i])),
        Op::Itof => each(|i| (a[i] as i32 as f32).to_bits()),
        Op::Utof => each(|i| (a[i] as f32).to_bits()),
        Op::Fdx => {
            let v = each(|i| r(f(a[i | 1]) - f(a[i & !1])));
            return Some((v, pair_poison(pa, 1, 0x5555)));
        }
        Op::Fdy => {
            let v = each(|i| r(f(a[i | 2]) - f(a[i & !2])));
            return Some((v, pair_poison(pa, 2, 0x3333)));
        }
        Op::Mov | Op::Fmov => *a,
        Op::Smul24 => each(|i| {
            let extend = |x: u32| (x << 8) as i32 >> 8;
            extend(a[i]).wrapping_mul(extend(b[i])) as u32
        }),
        Op::Recip | Op::Rsqrt | Op::Rsqrt2 | Op::Exp | Op::Log | Op::Sin => model::special(op, a),
        Op::Rotq => return Some(gather(a, pa, |k| (in_quad(k, b[k & !3] as usize), pb & BIT[k & !3] != 0))),
        Op::Rot => return Some(gather(a, pa, |k| ((k + b[0] as usize) % LANES, pb & 1 != 0))),
        Op::Shuffle => return Some(gather(a, pa, |k| (b[k] as usize % LANES, pb & BIT[k] != 0))),
        Op::Vpack => each(|i| a[i] & 0xffff | b[i] << 16),
        Op::V8pack => {
            each(|i| a[i] & 0xff | (a[i] >> 16 & 0xff) << 8 | (b[i] & 0xff) << 16 | (b[i] >> 16 & 0xff) << 24)
        }
        Op::V10pack => each(|i| {
            a[i] & 0x3ff | (a[i] >> 16 & 0x3ff) << 10 | (b[i] & 0x3ff) << 20 | (b[i] >> 16 & 3) << 30
        }),
        Op::Ftounorm16 => each(|i| norm(a[i], 0.0, 65535.0)),
        Op::Ftosnorm16 => each(|i| norm(a[i], -1.0, 32767.0) & 0xffff),
        Op::Vftounorm8 => each(|i| norms(a[i], 0.0, [255.0; 2])),
        Op::Vftosnorm8 => each(|i| norms(a[i], -1.0, [127.0; 2])),
        Op::Vftounorm10lo => each(|i| norms(a[i], 0.0, [1023.0; 2])),
        Op::Vftounorm10hi => each(|i| norms(a[i], 0.0, [1023.0, 3.0])),
        _ => return None,
    };
    Some((value, poison))
}

/// Both halves of a pair to normalised values with these numbers of steps.
fn norms(pair: u32, low: f32, steps: [f32; 2]) -> u32 {
    let half = |shift: u32, steps| norm(model::from_half((pair >> shift) as u16), low, steps) & 0xffff;
    half(0, steps[0]) | half(16, steps[1]) << 16
}

/// Lane `k` gets the lane that `from` names, poisoned if that lane or the choice is.
#[inline(always)]
pub(super) fn gather(a: &Lanes, pa: Mask, from: impl Fn(usize) -> (usize, bool)) -> (Lanes, Mask) {
    let value = each(|k| a[from(k).0]);
    let poison = mask(|k| {
        let (lane, unknown) = from(k);
        unknown || pa & BIT[lane] != 0
    });
    (value, poison)
}

/// The rotation of 4.2 by `n` (any sign): all lanes for an accumulator, inside quads for a row (section 8.5).
pub(super) fn rotate(v: &Lanes, p: Mask, n: i32, whole: bool) -> (Lanes, Mask) {
    gather(v, p, |k| {
        let from = (k as i32 - n) as usize;
        (if whole { from % LANES } else { k & !3 | from & 3 }, false)
    })
}

/// A flag that an operation delivers for each lane, with the lanes for which no source says what it is.
#[inline]
pub(super) fn flag(op: Op, pack: Pack, which: Push, a: &Lanes, b: &Lanes, result: &Lanes) -> (Mask, Mask) {
    const UNKNOWN: (Mask, Mask) = (0, Mask::MAX);
    if pack != Pack::None {
        return UNKNOWN;
    }
    match (op, which) {
        (Op::Fcmp, Push::Z) => (mask(|i| f(a[i]) == f(b[i])), 0),
        (Op::Fcmp, Push::N) => (mask(|i| f(a[i]) < f(b[i])), 0),
        (Op::Fcmp, Push::C) => (mask(|i| f(a[i]) <= f(b[i])), 0),
        (Op::Add, Push::C) => (mask(|i| a[i].checked_add(b[i]).is_none()), 0),
        (Op::Sub, Push::C) => (mask(|i| a[i] < b[i]), 0),
        (Op::Min, Push::C) => (mask(|i| a[i] as i32 > b[i] as i32), 0),
        (_, Push::C) => UNKNOWN,
        _ if is_integer(op) => match which {
            Push::Z => (mask(|i| result[i] == 0), 0),
            _ => (mask(|i| result[i] >> 31 != 0), 0),
        },
        _ if is_float(op) => {
            let unclear = mask(|i| result[i] == 0x8000_0000 || f(result[i]).is_nan());
            match which {
                Push::Z => (mask(|i| result[i] == 0), unclear),
                _ => (mask(|i| result[i] >> 31 != 0), unclear),
            }
        }
        _ => UNKNOWN,
    }
}

/// Operations whose Z and N are those of a 32-bit integer.
fn is_integer(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Add | Sub
            | Min
            | Max
            | Umin
            | Umax
            | Shl
            | Shr
            | Asr
            | Ror
            | And
            | Or
            | Xor
            | Not
            | Neg
            | Flapush
            | Flbpush
            | Clz
            | Tidx
            | Eidx
            | Lr
            | Vfla
            | Vflna
            | Vflb
            | Vflnb
            | Msf
            | Xcd
            | Ycd
            | Revf
            | Sampid
            | Ftoin
            | Ftoiz
            | Ftouz
            | Mov
            | Umul24
            | Smul24
            | Flafirst
            | Flnafirst
    )
}

/// Operations whose result is one f32.
fn is_float(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Fadd | Faddnf
            | Fsub
            | Fmin
            | Fmax
            | Fmul
            | Fmov
            | Fround
            | Ftrunc
            | Ffloor
            | Fceil
            | Itof
            | Utof
            | Fdx
            | Fdy
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_spreads_along_what_is_read() {
        let a = each(|i| i as u32);
        let b = [1; LANES];
        assert_eq!(pure(Op::Add, &a, &b, 0x10, 0x3).unwrap().1, 0x13);
        assert_eq!(pure(Op::Fdx, &a, &b, 0x0002, 0).unwrap().1, 0x0003);
        assert_eq!(pure(Op::Fdy, &a, &b, 0x0002, 0).unwrap().1, 0x000a);
        // Lane k reads lane k + 1.
        let (v, p) = pure(Op::Rot, &a, &b, 0x0001, 0).unwrap();
        assert_eq!((v[0], v[15], p), (1, 0, 0x8000));
        assert_eq!(pure(Op::Rot, &a, &b, 0, 0x0001).unwrap().1, 0xffff);
        assert_eq!(pure(Op::Rotq, &a, &b, 0, 0x0010).unwrap().1, 0x00f0);
        assert_eq!(pure(Op::Shuffle, &a, &b, 0x0002, 0x8000).unwrap().1, 0xffff);
    }

    #[test]
    fn rotation_of_42_goes_the_other_way() {
        let a = each(|i| i as u32);
        assert_eq!(rotate(&a, 0, 1, true).0[0], 15);
        assert_eq!(rotate(&a, 0, -1, true).0[0], 1);
        assert_eq!(rotate(&a, 0, 1, false).0[4], 7);
        assert_eq!(rotate(&a, 0x8000, 1, true).1, 1);
    }

    #[test]
    fn unsettled_flags_are_poison() {
        let minus_zero = [0x8000_0000; LANES];
        assert_eq!(flag(Op::Fadd, Pack::None, Push::Z, &minus_zero, &minus_zero, &minus_zero).1, 0xffff);
        assert_eq!(flag(Op::Xor, Pack::None, Push::C, &minus_zero, &minus_zero, &[0; LANES]).1, 0xffff);
        assert_eq!(flag(Op::Fadd, Pack::L, Push::Z, &minus_zero, &minus_zero, &[0; LANES]).1, 0xffff);
        assert_eq!(flag(Op::Fcmp, Pack::None, Push::Z, &minus_zero, &[0; LANES], &[0; LANES]), (0xffff, 0));
    }
}
