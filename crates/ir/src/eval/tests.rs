//! Hand-worked cases and exhaustive small widths.

use super::*;
use crate::module::LeaImm;

fn i(op: Op, ty: Type, args: &[u64]) -> u64 {
    eval(op, ty, ty, Imm::None, args).unwrap()
}

fn c(op: Op, ty: Type, from: Type, a: u64) -> u64 {
    eval(op, ty, from, Imm::None, &[a]).unwrap()
}

fn f1(op: Op, a: f32) -> f32 {
    f32::from_bits(i(op, Type::F32, &[a.to_bits() as u64]) as u32)
}

fn f2(op: Op, a: f32, b: f32) -> f32 {
    f32::from_bits(i(op, Type::F32, &[a.to_bits() as u64, b.to_bits() as u64]) as u32)
}

const INTS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];

#[test]
fn division_corners_at_every_width() {
    for ty in INTS {
        let m = ty.mask();
        let min = m ^ (m >> 1);
        assert_eq!(i(Op::Sdiv, ty, &[min, m]), min, "{ty}");
        assert_eq!(i(Op::Srem, ty, &[min, m]), 0);
        assert_eq!(i(Op::Smod, ty, &[min, m]), 0);
        assert_eq!(i(Op::Sdiv, ty, &[5, 0]), m);
        assert_eq!(i(Op::Udiv, ty, &[5, 0]), m);
        assert_eq!(i(Op::Umod, ty, &[5, 0]), 5);
        assert_eq!(i(Op::Srem, ty, &[5, 0]), 5);
        // -7 / 2 = -3, rest -1; floored remainder 1.
        let n7 = m - 6;
        assert_eq!(i(Op::Sdiv, ty, &[n7, 2]), m - 2);
        assert_eq!(i(Op::Srem, ty, &[n7, 2]), m);
        assert_eq!(i(Op::Smod, ty, &[n7, 2]), 1);
        assert_eq!(i(Op::Smod, ty, &[7, m - 1]), m);
        assert_eq!(i(Op::Smod, ty, &[8, m - 1]), 0);
    }
}

/// Every operation of two 8-bit operands against plain arithmetic on wide integers.
#[test]
fn eight_bits_exhaustively() {
    for a in 0..=255u64 {
        for b in 0..=255u64 {
            let (sa, sb) = (a as u8 as i8 as i64, b as u8 as i8 as i64);
            let w = |x: i64| (x & 0xff) as u64;
            let expect: &[(Op, u64)] = &[
                (Op::Iadd, w(sa + sb)),
                (Op::Isub, w(sa - sb)),
                (Op::Imul, w(sa * sb)),
                (Op::Smulhi, w((sa * sb) >> 8)),
                (Op::Umulhi, (a * b) >> 8),
                (Op::Smin, w(sa.min(sb))),
                (Op::Smax, w(sa.max(sb))),
                (Op::Umin, a.min(b)),
                (Op::Umax, a.max(b)),
                (Op::Shl, (a << (b % 8)) & 0xff),
                (Op::Lshr, a >> (b % 8)),
                (Op::Ashr, w(sa >> (b % 8))),
                (Op::Slt, (sa < sb) as u64),
                (Op::Sle, (sa <= sb) as u64),
                (Op::Ult, (a < b) as u64),
                (Op::Ule, (a <= b) as u64),
                (Op::Ieq, (a == b) as u64),
                (Op::Ine, (a != b) as u64),
                (Op::And, a & b),
                (Op::Or, a | b),
                (Op::Xor, a ^ b),
            ];
            for &(op, e) in expect {
                assert_eq!(i(op, Type::I8, &[a, b]), e, "{} {a} {b}", op.name());
            }
            if b != 0 {
                assert_eq!(i(Op::Udiv, Type::I8, &[a, b]), a / b);
                assert_eq!(i(Op::Umod, Type::I8, &[a, b]), a % b);
                assert_eq!(i(Op::Sdiv, Type::I8, &[a, b]), w(sa / sb));
                assert_eq!(i(Op::Srem, Type::I8, &[a, b]), w(sa % sb));
                assert_eq!(
                    i(Op::Smod, Type::I8, &[a, b]),
                    w(sa - sb * (sa as f64 / sb as f64).floor() as i64)
                );
            }
        }
        let sa = a as u8 as i8;
        assert_eq!(i(Op::Ineg, Type::I8, &[a]), sa.wrapping_neg() as u8 as u64);
        assert_eq!(i(Op::Not, Type::I8, &[a]), !a & 0xff);
        assert_eq!(i(Op::Popcount, Type::I8, &[a]), (a as u8).count_ones() as u64);
        assert_eq!(i(Op::Bitreverse, Type::I8, &[a]), (a as u8).reverse_bits() as u64);
        assert_eq!(i(Op::Clz, Type::I8, &[a]), (a as u8).leading_zeros() as u64);
        for (n, to) in INTS.into_iter().enumerate().skip(1) {
            assert_eq!(c(Op::Zext, to, Type::I8, a), a);
            assert_eq!(c(Op::Sext, to, Type::I8, a), sa as i64 as u64 & to.mask(), "{n}");
            assert_eq!(c(Op::Trunc, Type::I8, to, 0x1200 | a), a);
        }
    }
}

#[test]
fn wide_products() {
    assert_eq!(i(Op::Umulhi, Type::I64, &[u64::MAX, u64::MAX]), u64::MAX - 1);
    assert_eq!(i(Op::Smulhi, Type::I64, &[u64::MAX, u64::MAX]), 0);
    assert_eq!(i(Op::Smulhi, Type::I64, &[1 << 63, 2]), u64::MAX);
    assert_eq!(i(Op::Smulhi, Type::I32, &[0x8000_0000, 0x8000_0000]), 0x4000_0000);
    assert_eq!(i(Op::Umul24, Type::I32, &[0xff00_0003, 0x0100_0005]), 15);
    assert_eq!(i(Op::Umul24, Type::I32, &[0xff_ffff, 0xff_ffff]), 0xfe00_0001);
}

#[test]
fn bit_fields_and_searches() {
    assert_eq!(i(Op::FindLsb, Type::I32, &[0]), 0xffff_ffff);
    assert_eq!(i(Op::FindLsb, Type::I32, &[0x50]), 4);
    assert_eq!(i(Op::FindUmsb, Type::I32, &[0x50]), 6);
    assert_eq!(i(Op::FindUmsb, Type::I16, &[0]), 0xffff);
    assert_eq!(i(Op::FindSmsb, Type::I32, &[0xffff_ffff]), 0xffff_ffff);
    assert_eq!(i(Op::FindSmsb, Type::I32, &[0]), 0xffff_ffff);
    assert_eq!(i(Op::FindSmsb, Type::I32, &[0xffff_fffe]), 0);
    assert_eq!(i(Op::FindSmsb, Type::I32, &[0x8000_0000]), 30);
    assert_eq!(i(Op::BitInsert, Type::I32, &[0xffff_ffff, 0x5, 4, 4]), 0xffff_ff5f);
    assert_eq!(i(Op::BitInsert, Type::I32, &[7, 0xff, 3, 0]), 7);
    assert_eq!(i(Op::BitInsert, Type::I32, &[7, 0xabcd_ef01, 0, 32]), 0xabcd_ef01);
    assert_eq!(i(Op::BitExtractU, Type::I32, &[0xabcd_ef01, 8, 8]), 0xef);
    assert_eq!(i(Op::BitExtractS, Type::I32, &[0xabcd_ef01, 8, 8]), 0xffff_ffef);
    assert_eq!(i(Op::BitExtractS, Type::I32, &[0xabcd_ef01, 0, 32]), 0xabcd_ef01);
    assert_eq!(i(Op::BitExtractS, Type::I32, &[0xabcd_ef01, 3, 0]), 0);
    // Out of range: any bits, but no panic and inside the width.
    for (o, n) in [(32, 1), (31, 2), (0, 33), (u32::MAX as u64, u32::MAX as u64)] {
        for op in [Op::BitExtractU, Op::BitExtractS] {
            assert!(i(op, Type::I32, &[0xabcd_ef01, o, n]) <= u32::MAX as u64);
        }
        assert!(i(Op::BitInsert, Type::I32, &[0xabcd_ef01, 3, o, n]) <= u32::MAX as u64);
    }
}

#[test]
fn halves_round_trip_and_round_to_even() {
    for h in 0..=u16::MAX {
        let x = f16_to_f32(h);
        let back = f32_to_f16(x);
        if h & 0x7fff > 0x7c00 {
            assert_eq!((x, back), (0x7fc0_0000, 0x7e00));
        } else {
            assert_eq!(back, h, "{h:#x}");
        }
    }
    // Hand-worked: 1, the step above 1, ties, the largest, overflow, denormals.
    for (x, h) in [
        (1.0, 0x3c00),
        (1.0 + 1.0 / 1024.0, 0x3c01),
        (1.0 + 1.0 / 2048.0, 0x3c00),
        (1.0 + 3.0 / 2048.0, 0x3c02),
        (-2.0, 0xc000),
        (65504.0, 0x7bff),
        (65519.996, 0x7bff),
        (65520.0, 0x7c00),
        (f32::INFINITY, 0x7c00),
        (6.103_515_6e-5, 0x0400),
        (5.960_464_5e-8, 0x0001),
        (2.980_232_2e-8, 0x0000),
        (2.980_232_6e-8, 0x0001),
        (8.940_697e-8, 0x0002),
        (6.1e-5, 0x03ff),
        (-0.0, 0x8000),
    ] {
        assert_eq!(f32_to_f16(x.to_bits()), h, "{x}");
    }
    // Neighbours in value have monotone halves, and the nearest of two candidates is taken.
    for h in 0..0x7bffu16 {
        let (a, b) = (f16_to_f64(h), f16_to_f64(h + 1));
        let mid = (a + b) / 2.0;
        assert_eq!(f64_to_f16(mid), h + (h & 1));
        assert_eq!(f64_to_f16(f64::from_bits(mid.to_bits() - 1)), h);
        assert_eq!(f64_to_f16(f64::from_bits(mid.to_bits() + 1)), h + 1);
    }
    assert_eq!(i(Op::PackHalf, Type::I32, &[1f32.to_bits() as u64, (-2f32).to_bits() as u64]), 0xc000_3c00);
    assert_eq!(c(Op::UnpackHalfHi, Type::F32, Type::I32, 0xc000_3c00), (-2f32).to_bits() as u64);
    assert_eq!(c(Op::UnpackHalfLo, Type::F32, Type::I32, 0xc000_3c00), 1f32.to_bits() as u64);
}

#[test]
fn half_arithmetic() {
    let h = |x: f32| f32_to_f16(x.to_bits()) as u64;
    assert_eq!(i(Op::Fadd, Type::F16, &[h(2048.0), h(1.0)]), h(2048.0));
    assert_eq!(i(Op::Fadd, Type::F16, &[h(2048.0), h(3.0)]), h(2052.0));
    assert_eq!(i(Op::Fmul, Type::F16, &[h(300.0), h(300.0)]), 0x7c00);
    assert_eq!(i(Op::Fdiv, Type::F16, &[h(1.0), h(3.0)]), 0x3555);
    assert_eq!(i(Op::Fsqrt, Type::F16, &[h(2.0)]), 0x3da8);
    assert_eq!(i(Op::Fsub, Type::F16, &[0x7c00, 0x7c00]), 0x7e00);
}

#[test]
fn nan_is_canonical_where_arithmetic_makes_it() {
    let odd = 0xffa1_2345u64;
    for op in [Op::Fadd, Op::Fsub, Op::Fmul, Op::Fdiv, Op::Frem, Op::Fmod] {
        assert_eq!(i(op, Type::F32, &[odd, 0x3f80_0000]), 0x7fc0_0000, "{}", op.name());
        assert_eq!(i(op, Type::F32, &[0x3f80_0000, odd]), 0x7fc0_0000, "{}", op.name());
    }
    for op in [
        Op::Ffloor,
        Op::Fceil,
        Op::Ftrunc,
        Op::Fround,
        Op::Fsqrt,
        Op::Frsqrt,
        Op::Fexp2,
        Op::Flog2,
        Op::Fsin,
        Op::Fcos,
        Op::RcpApprox,
        Op::RsqrtApprox,
        Op::Exp2Approx,
        Op::Log2Approx,
        Op::SinpiApprox,
    ] {
        assert_eq!(i(op, Type::F32, &[odd]), 0x7fc0_0000, "{}", op.name());
    }
    assert_eq!(i(Op::Fneg, Type::F32, &[odd]), odd ^ 0x8000_0000);
    assert_eq!(i(Op::Fabs, Type::F32, &[odd]), odd & 0x7fff_ffff);
    assert_eq!(i(Op::Fmin, Type::F32, &[odd, odd]), 0x7fc0_0000);
    assert_eq!(i(Op::Fmin, Type::F32, &[odd, 5]), 5);
    assert_eq!(i(Op::Fmax, Type::F32, &[5, odd]), 5);
    assert_eq!(c(Op::Fconv, Type::F64, Type::F32, odd), 0x7ff8_0000_0000_0000);
    assert_eq!(i(Op::Feq, Type::F32, &[odd, odd]), 0);
    assert_eq!(i(Op::Fne, Type::F32, &[odd, odd]), 1);
    assert_eq!(i(Op::Fle, Type::F32, &[odd, 0]), 0);
}

#[test]
fn zeros_and_rounding() {
    assert_eq!(f2(Op::Fmin, 0.0, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(f2(Op::Fmin, -0.0, 0.0).to_bits(), 0x8000_0000);
    assert_eq!(f2(Op::Fmax, -0.0, 0.0).to_bits(), 0);
    assert_eq!(f2(Op::Fmax, -3.0, -2.0), -2.0);
    assert_eq!(f2(Op::Fmin, -3.0, 2.0), -3.0);
    assert_eq!(f2(Op::Fsub, 0.0, 0.0).to_bits(), 0);
    assert_eq!(f1(Op::Fround, 2.5), 2.0);
    assert_eq!(f1(Op::Fround, -3.5), -4.0);
    assert_eq!(f1(Op::Ftrunc, -0.5).to_bits(), 0x8000_0000);
    assert_eq!(f1(Op::Ffloor, -0.5), -1.0);
    assert_eq!(f1(Op::Fceil, -0.5).to_bits(), 0x8000_0000);
    assert_eq!(f2(Op::Frem, -7.0, 2.0), -1.0);
    assert_eq!(f2(Op::Fmod, -7.0, 2.0), 1.0);
    // Two roundings: (1 + e)^2 - 1 loses the e^2.
    let e = f32::EPSILON;
    let args = [1.0 + e, 1.0 + e, -1.0].map(|x: f32| x.to_bits() as u64);
    assert_eq!(f32::from_bits(i(Op::Fma, Type::F32, &args) as u32), 2.0 * e);
    // Denormals are kept.
    assert_eq!(i(Op::Fadd, Type::F32, &[1, 2]), 3);
}

#[test]
fn special_functions() {
    assert_eq!(f1(Op::Fexp2, 10.0), 1024.0);
    assert_eq!(f1(Op::Exp2Approx, -1.0), 0.5);
    assert_eq!(f1(Op::Exp2Approx, 128.0), f32::INFINITY);
    assert_eq!(f1(Op::Exp2Approx, -200.0), 0.0);
    assert_eq!(f1(Op::Flog2, 8.0), 3.0);
    assert_eq!(f1(Op::Log2Approx, 0.0), f32::NEG_INFINITY);
    assert!(f1(Op::Log2Approx, -1.0).is_nan());
    assert_eq!(f1(Op::RcpApprox, -0.0), f32::NEG_INFINITY);
    assert_eq!(f1(Op::RcpApprox, 3.0), 1.0 / 3.0);
    assert_eq!(f1(Op::RsqrtApprox, 4.0), 0.5);
    assert_eq!(f1(Op::RsqrtApprox, 0.0), f32::INFINITY);
    assert_eq!(f1(Op::SinpiApprox, 0.5), 1.0);
    assert_eq!(f1(Op::SinpiApprox, -7.0), -1.0);
    assert_eq!(f1(Op::SinpiApprox, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(f1(Op::SinpiApprox, 1.0 / 6.0), 0.5);
    assert_eq!(f1(Op::Fsin, 1.0), 0.841_470_96);
    assert_eq!(f1(Op::Fcos, 0.0), 1.0);
}

#[test]
fn conversions_saturate() {
    let f = |x: f32| x.to_bits() as u64;
    for (x, s, u) in [
        (1.9, 1u32, 1u32),
        (-1.9, u32::MAX, 0),
        (3e9, i32::MAX as u32, 3_000_000_000),
        (1e20, i32::MAX as u32, u32::MAX),
        (-1e20, i32::MIN as u32, 0),
        (f32::NAN, 0, 0),
        (f32::INFINITY, i32::MAX as u32, u32::MAX),
    ] {
        assert_eq!(c(Op::Ftosi, Type::I32, Type::F32, f(x)) as u32, s, "{x}");
        assert_eq!(c(Op::Ftoui, Type::I32, Type::F32, f(x)) as u32, u, "{x}");
    }
    assert_eq!(c(Op::Ftosi, Type::I8, Type::F32, f(-300.0)), 0x80);
    assert_eq!(c(Op::Ftoui, Type::I8, Type::F32, f(300.0)), 0xff);
    assert_eq!(c(Op::Ftosi, Type::I64, Type::F64, 1e300f64.to_bits()), i64::MAX as u64);
    assert_eq!(c(Op::Sitof, Type::F32, Type::I32, 0xffff_ffff), f(-1.0));
    assert_eq!(c(Op::Uitof, Type::F32, Type::I32, 0xffff_ffff), f(4294967296.0));
    assert_eq!(c(Op::Uitof, Type::F32, Type::I32, 0x0100_0001), f(16777216.0));
    assert_eq!(c(Op::Uitof, Type::F16, Type::I64, u64::MAX), 0x7c00);
    assert_eq!(c(Op::Sitof, Type::F16, Type::I8, 0xff), 0xbc00);
    assert_eq!(c(Op::Fconv, Type::F16, Type::F64, 1e-30f64.to_bits()), 0);
    assert_eq!(c(Op::Bitcast, Type::F32, Type::I32, 0x1234_5678), 0x1234_5678);
    assert_eq!(c(Op::Sext, Type::I32, Type::Bool, 1), 0xffff_ffff);
}

#[test]
fn atomics_and_reductions() {
    use AtomicOp::*;
    assert_eq!(atomic(Add, Type::I32, u32::MAX as u64, 1, 0), 0);
    assert_eq!(atomic(Smin, Type::I32, 5, 0xffff_ffff, 0), 0xffff_ffff);
    assert_eq!(atomic(Umin, Type::I32, 5, 0xffff_ffff, 0), 5);
    assert_eq!(atomic(CompareExchange, Type::I32, 5, 9, 5), 9);
    assert_eq!(atomic(CompareExchange, Type::I32, 5, 9, 6), 5);
    assert_eq!(atomic(Load, Type::I64, 5, 9, 6), 5);
    let mut l = [(true, 3), (false, 100), (true, 4), (true, 5)];
    reduce(Op::Iadd, Type::I32, ReduceKind::ExclusiveScan, &mut l);
    assert_eq!(l, [(true, 0), (false, 100), (true, 3), (true, 7)]);
    let mut l = [(true, 3), (false, 100), (true, 4), (true, 5)];
    reduce(Op::Smax, Type::I32, ReduceKind::Reduce, &mut l);
    assert_eq!(l, [(true, 5), (false, 100), (true, 5), (true, 5)]);
    assert_eq!(reduce_identity(Op::Smax, Type::I8), Some(0x80));
    assert_eq!(reduce_identity(Op::Fmax, Type::F32), Some(0xff80_0000));
    assert_eq!(reduce_identity(Op::Shl, Type::I32), None);
}

#[test]
fn constants_addresses_and_the_rest() {
    let l = Imm::Lea(LeaImm { scale: 12, offset: -4 });
    assert_eq!(eval(Op::Lea, Type::I32, Type::I32, l, &[100, u32::MAX as u64]), Some(84));
    assert_eq!(eval(Op::Lea, Type::I32, Type::I32, l, &[100]), Some(96));
    assert_eq!(eval(Op::Const, Type::I8, Type::I8, Imm::Int(0x1ff), &[]), Some(0xff));
    assert_eq!(eval(Op::Undef, Type::I8, Type::I8, Imm::None, &[]), None);
    assert_eq!(eval(Op::Load, Type::I32, Type::I32, Imm::None, &[0]), None);
    assert_eq!(i(Op::Select, Type::I32, &[1, 5, 6]), 5);
    assert_eq!(i(Op::Not, Type::Bool, &[1]), 0);
}

/// Every pure operation has a function at every type that its row allows.
#[test]
fn the_table_is_covered() {
    use crate::ops::{Class, Effect, Sig};
    let all = [Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64, Type::F16, Type::F32, Type::F64];
    for &op in Op::ALL {
        let info = op.info();
        if info.effect != Effect::Pure || matches!(op, Op::Const | Op::Undef | Op::Lea) {
            continue;
        }
        for ty in all {
            let fits = match info.class {
                Class::Any => true,
                Class::Int => ty.is_int(),
                Class::IntBool => ty.is_int() || ty == Type::Bool,
                Class::Float => ty.is_float(),
                Class::F32 => ty == Type::F32,
                Class::I32 => ty == Type::I32,
                Class::Bool => ty == Type::Bool,
            };
            if !fits {
                continue;
            }
            let from = match op {
                Op::Ftosi | Op::Ftoui => Type::F32,
                Op::Sitof | Op::Uitof => Type::I16,
                Op::Trunc if ty == Type::I64 => continue,
                Op::Sext if ty == Type::I8 => Type::Bool,
                Op::Sext => Type::I8,
                Op::Fconv if ty == Type::F32 => Type::F64,
                Op::Fconv => Type::F32,
                _ => ty,
            };
            let Some(k) = kernel(op, ty, from) else { panic!("{} at {ty}", op.name()) };
            let result = if info.sig == Sig::Compare { Type::Bool } else { ty };
            for a in [0, 1, ty.mask(), ty.mask() >> 1, ty.mask() / 3] {
                for b in [0, 1, ty.mask(), 7 & ty.mask()] {
                    let a = a & from.mask();
                    let r = k(if op == Op::Select { a & 1 } else { a }, b, b, 3);
                    assert_eq!(r & !result.mask(), 0, "{} at {ty}: {r:#x}", op.name());
                }
            }
        }
    }
}
