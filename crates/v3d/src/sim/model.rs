//! The arithmetic models, as functions of bits: those of [`kempe_ir::eval`], so that the simulator and the interpreter
//! cannot differ, in a form that suits whole vectors. The tests hold the copies that are repeated here for speed against
//! the originals.

use kempe_ir::eval;
use kempe_ir::ops::Op;
use kempe_ir::types::Type;

/// The NaN that every float operation gives.
pub(super) const NAN: u32 = 0x7fc0_0000;

#[inline(always)]
pub(super) fn from_half(half: u16) -> u32 {
    eval::f16_to_f32(half)
}

#[inline(always)]
pub(super) fn to_half(single: u32) -> u16 {
    eval::f32_to_f16(single)
}

/// Orders numbers by their bits, -0 below +0.
#[inline(always)]
fn key(bits: u32) -> i32 {
    (bits ^ ((bits as i32 >> 31) as u32 >> 1)) as i32
}

#[inline(always)]
fn is_nan(bits: u32) -> bool {
    bits & 0x7fff_ffff > 0x7f80_0000
}

#[inline(always)]
fn choose(a: u32, b: u32, take_b: bool) -> u32 {
    let number = if take_b { b } else { a };
    let unless_a = if is_nan(a) { b } else { number };
    let picked = if is_nan(b) { a } else { unless_a };
    if is_nan(picked) { NAN } else { picked }
}

/// Smaller value; a NaN gives way to a number.
#[inline(always)]
pub(super) fn fmin(a: u32, b: u32) -> u32 {
    choose(a, b, key(b) < key(a))
}

/// Larger value; a NaN gives way to a number.
#[inline(always)]
pub(super) fn fmax(a: u32, b: u32) -> u32 {
    choose(a, b, key(a) < key(b))
}

/// f32 to signed, toward zero; saturates, NaN gives 0.
#[inline(always)]
pub(super) fn to_signed(bits: u32) -> u32 {
    f32::from_bits(bits) as i32 as u32
}

/// f32 to unsigned, toward zero; saturates, NaN gives 0.
#[inline(always)]
pub(super) fn to_unsigned(bits: u32) -> u32 {
    f32::from_bits(bits) as u32
}

/// A special function of the stated model, applied to every lane.
pub(super) fn special(op: crate::instr::Op, a: &super::Lanes) -> super::Lanes {
    use crate::instr::Op as V;
    let op = match op {
        V::Recip => Op::RcpApprox,
        V::Rsqrt | V::Rsqrt2 => Op::RsqrtApprox,
        V::Exp => Op::Exp2Approx,
        V::Log => Op::Log2Approx,
        _ => Op::SinpiApprox,
    };
    match eval::kernel(op, Type::F32, Type::F32) {
        Some(kernel) => a.map(|x| kernel(u64::from(x), 0, 0, 0) as u32),
        None => [NAN; super::LANES],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORNERS: [u32; 22] = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x3f00_0000,
        0x4020_0000,
        0xc020_0000,
        0x4f00_0000,
        0xcf00_0000,
        0x4f80_0000,
        0x4eff_ffff,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffa1_2345,
        0x7f80_0001,
    ];

    /// What is written out here for speed equals the shared model.
    #[test]
    fn copies_equal_the_shared_model() {
        let two = |op: Op, a: u32, b: u32| {
            eval::kernel(op, Type::F32, Type::F32).unwrap()(a.into(), b.into(), 0, 0) as u32
        };
        let convert =
            |op: Op, a: u32| eval::kernel(op, Type::I32, Type::F32).unwrap()(a.into(), 0, 0, 0) as u32;
        let lanes = |op: crate::instr::Op, a: u32, b: u32| {
            crate::sim::alu::pure(op, &[a; 16], &[b; 16], 0, 0).unwrap().0[3]
        };
        use crate::instr::Op as V;
        for a in CORNERS {
            assert_eq!(to_signed(a), convert(Op::Ftosi, a), "{a:#x}");
            assert_eq!(to_unsigned(a), convert(Op::Ftoui, a), "{a:#x}");
            for (mine, model) in [
                (V::Ffloor, Op::Ffloor),
                (V::Fceil, Op::Fceil),
                (V::Ftrunc, Op::Ftrunc),
                (V::Fround, Op::Fround),
            ] {
                assert_eq!(lanes(mine, a, 0), two(model, a, 0), "{mine:?} {a:#x}");
            }
            for b in CORNERS {
                assert_eq!(fmin(a, b), two(Op::Fmin, a, b), "{a:#x} {b:#x}");
                assert_eq!(fmax(a, b), two(Op::Fmax, a, b), "{a:#x} {b:#x}");
                for (mine, model) in [(V::Fadd, Op::Fadd), (V::Fsub, Op::Fsub), (V::Fmul, Op::Fmul)] {
                    assert_eq!(lanes(mine, a, b), two(model, a, b), "{mine:?} {a:#x} {b:#x}");
                }
            }
        }
    }
}
