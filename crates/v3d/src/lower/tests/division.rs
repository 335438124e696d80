//! Integer division: all magnitudes, constants, small dividends, a reciprocal that is not exact.

use super::*;

/// Operands of a division of all magnitudes; multiples and their neighbours are where a quotient is wrong first.
fn division_pair(r: &mut Random) -> (u32, u32) {
    let (x, s) = (r.next(), r.next());
    let a = (x as u32) >> (s & 31);
    let b = ((x >> 32) as u32) >> (s >> 5 & 31);
    let a = match s >> 10 & 7 {
        0 => a.wrapping_mul(b),
        1 => a.wrapping_mul(b).wrapping_sub(1),
        2 => a.wrapping_mul(b).wrapping_add(b.wrapping_sub(1)),
        _ => a,
    };
    let b = if s >> 20 & 3 == 0 { b.wrapping_neg() } else { b };
    (a, b.max(1))
}

fn divide_random_pairs(op: Op, mask: u32, pairs: u32, reciprocal_error: i64) {
    let mut m = module();
    let entry = m.func.layout[0];
    let mut b = Builder::new(&mut m.func, entry);
    let push = b.resource_addr(PUSH, Space::Push, None);
    let x = b.load(Type::I32, mem(Space::Push, 1, 4), push)[0];
    let at = b.lea(push, None, 1, 8);
    let y = b.load(Type::I32, mem(Space::Push, 1, 4), at)[0];
    let c = b.i32(mask);
    let x = b.op(Op::And, Type::I32, &[x, c]);
    let v = b.op(op, Type::I32, &[x, y]);
    let out = b.resource_addr(OUT, Space::Storage, None);
    b.store(Type::I32, mem(Space::Storage, 1, 4), out, &[v]);
    b.ret();
    let m = lowered(m, Version::V71);
    let mut machine = Machine::new(&m);
    machine.reciprocal_error = reciprocal_error;
    let mut r = Random(op as u64);
    for _ in 0..pairs {
        let (a, b) = division_pair(&mut r);
        machine.push[0..4].copy_from_slice(&a.to_le_bytes());
        machine.push[8..12].copy_from_slice(&b.to_le_bytes());
        machine.run();
        let got = read_le(&machine.buffer, 0, 4);
        let want = eval::eval(op, Type::I32, Type::I32, Imm::None, &[(a & mask) as u64, b as u64]);
        assert_eq!(Some(got), want, "{} {:#x} {b:#x}", op.name(), a & mask);
    }
}

#[test]
fn division_of_random_pairs() {
    // Ten million pairs in release; a tenth of it without optimisation.
    let pairs = if cfg!(debug_assertions) { 250_000 } else { 2_500_000 };
    for op in [Op::Udiv, Op::Umod, Op::Sdiv, Op::Srem] {
        divide_random_pairs(op, u32::MAX, pairs, 0);
    }
}

#[test]
fn division_with_a_less_exact_reciprocal() {
    // Nobody has published how exact the unit of the chip is; two units in the last place must not matter.
    for error in [-2, 2] {
        for op in [Op::Udiv, Op::Srem] {
            divide_random_pairs(op, u32::MAX, 100_000, error);
            divide_random_pairs(op, 0xf_ffff, 100_000, error);
        }
    }
}

#[test]
fn division_by_constants() {
    let never = |_: &[u64]| false;
    for ty in INTS {
        let mut divisors: Vec<u64> =
            vec![1, 2, 3, 5, 6, 7, 8, 10, 64, 100, 127, 128, 255, 256, 641, 1000, 4095, 65535, 65536, 65537];
        divisors.extend([0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 1 << 40, 0x1_0000_0001, 1 << 63]);
        let negative: Vec<u64> = divisors.iter().map(|d| d.wrapping_neg()).collect();
        divisors.extend(negative);
        if ty == Type::I64 {
            divisors.truncate(12);
        }
        for d in divisors {
            let d = d & ty.mask();
            if d == 0 {
                continue;
            }
            for op in [Op::Udiv, Op::Sdiv, Op::Umod, Op::Srem, Op::Smod, Op::Imul] {
                compare(op, ty, &[ty, ty], ty, &[None, Some(d)], Bound::Exact, &never);
            }
        }
    }
}

#[test]
fn small_dividends() {
    // Dividends that are known to be small take the short way: all of them below 2^12, and the largest.
    for (mask, op) in [(0xfff, Op::Udiv), (0xfffff, Op::Udiv), (0xfffff, Op::Umod), (0xffff, Op::Umod)] {
        let mut m = module();
        let entry = m.func.layout[0];
        let mut b = Builder::new(&mut m.func, entry);
        let push = b.resource_addr(PUSH, Space::Push, None);
        let x = b.load(Type::I32, mem(Space::Push, 1, 4), push)[0];
        let at = b.lea(push, None, 1, 8);
        let y = b.load(Type::I32, mem(Space::Push, 1, 4), at)[0];
        let c = b.i32(mask);
        let x = b.op(Op::And, Type::I32, &[x, c]);
        let v = b.op(op, Type::I32, &[x, y]);
        let out = b.resource_addr(OUT, Space::Storage, None);
        b.store(Type::I32, mem(Space::Storage, 1, 4), out, &[v]);
        b.ret();
        let m = lowered(m, Version::V42);
        let mut machine = Machine::new(&m);
        let mut r = Random(mask as u64);
        let mut check = |a: u32, b: u32| {
            machine.push[0..4].copy_from_slice(&a.to_le_bytes());
            machine.push[8..12].copy_from_slice(&b.to_le_bytes());
            machine.run();
            let got = read_le(&machine.buffer, 0, 4) as u32;
            let a = a & mask;
            assert_eq!(got, if op == Op::Udiv { a / b } else { a % b }, "{a} {b}");
        };
        for a in mask - 200..=mask {
            for b in 1..400 {
                check(a, b);
                check(a / b * b, b);
                check((a / b * b).wrapping_sub(1), b);
            }
        }
        for _ in 0..200_000 {
            let x = r.next();
            check(x as u32, ((x >> 32) as u32 >> (x >> 58 & 31)).max(1));
        }
    }
}
