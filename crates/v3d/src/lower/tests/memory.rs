//! Memory: vectors, private arrays, atomics.

use super::*;

#[test]
fn float_atomics_add() {
    let mut m = module();
    let entry = m.func.layout[0];
    let mut b = Builder::new(&mut m.func, entry);
    let out = b.resource_addr(OUT, Space::Storage, None);
    let x = b.f32(1.25);
    let imm = Imm::Atomic(AtomicImm { op: AtomicOp::Fadd, space: Space::Storage });
    let i = b.inst(Op::Atomic, Type::F32, imm, &[out, x], &[Type::F32]);
    let old = b.func.insts[i].results[0];
    let at = b.lea(out, None, 1, 4);
    b.store(Type::F32, mem(Space::Storage, 1, 4), at, &[old]);
    b.ret();
    let m = lowered(m, Version::V71);
    let mut machine = Machine::new(&m);
    machine.buffer[0..4].copy_from_slice(&2.5f32.to_le_bytes());
    machine.run();
    let f = |at: usize| f32::from_bits(read_le(&machine.buffer, at, 4) as u32);
    assert_eq!((f(0), f(4)), (3.75, 2.5));
}

#[test]
fn private_memory_by_bytes() {
    // A private array of bytes and halves, written and read back at indices that are not known, next to a guard.
    for (ty, align) in [(Type::I8, 1), (Type::I16, 2), (Type::F16, 2), (Type::I32, 4), (Type::I64, 8)] {
        let size = ty.bytes();
        for index in 0..5u32 {
            let mut m = module();
            let var = |m: &mut Module, bytes: u32| {
                let name = "array".to_owned();
                m.vars.push(kempe_ir::Variable { space: Space::Private, size: bytes, align, name })
            };
            let (array, guard) = (var(&mut m, 6 * size), var(&mut m, 4));
            let entry = m.func.layout[0];
            let mut b = Builder::new(&mut m.func, entry);
            let push = b.resource_addr(PUSH, Space::Push, None);
            let i = b.load(Type::I32, mem(Space::Push, 1, 4), push)[0];
            let base = b.var_addr(array, Space::Private);
            let last = b.var_addr(guard, Space::Private);
            let mark = b.i32(0x77777777);
            b.store(Type::I32, mem(Space::Private, 1, 4), last, &[mark]);
            let value = |n: u32| 0x1122_3344_5566_7788u64.wrapping_mul(n as u64 + 3) & ty.mask();
            for n in 0..6 {
                let at = b.lea(base, None, 1, (n * size) as i32);
                let v = b.constant(ty, value(n));
                b.store(ty, mem(Space::Private, 1, align), at, &[v]);
            }
            // Swap the indexed element and the next one.
            let p = b.lea(base, Some(i), size, 0);
            let q = b.lea(p, None, 1, size as i32);
            let x = b.load(ty, mem(Space::Private, 1, align), p)[0];
            let y = b.load(ty, mem(Space::Private, 1, align), q)[0];
            b.store(ty, mem(Space::Private, 1, align), q, &[x]);
            b.store(ty, mem(Space::Private, 1, align), p, &[y]);
            let out = b.resource_addr(OUT, Space::Storage, None);
            for n in 0..6 {
                let at = b.lea(base, None, 1, (n * size) as i32);
                let v = b.load(ty, mem(Space::Private, 1, align), at)[0];
                let to = b.lea(out, None, 1, (n * size) as i32);
                b.store(ty, mem(Space::Storage, 1, align), to, &[v]);
            }
            let g = b.load(Type::I32, mem(Space::Private, 1, 4), last)[0];
            let to = b.lea(out, None, 1, 128);
            b.store(Type::I32, mem(Space::Storage, 1, 4), to, &[g]);
            b.ret();
            let m = lowered(m, Version::V71);
            let mut machine = Machine::new(&m);
            machine.push[0..4].copy_from_slice(&index.to_le_bytes());
            machine.run();
            for n in 0..6 {
                let from = if n == index {
                    n + 1
                } else if n == index + 1 {
                    n - 1
                } else {
                    n
                };
                let got = read_le(&machine.buffer, (n * size) as usize, size);
                assert_eq!(got, value(from), "{ty} element {n} index {index}");
            }
            assert_eq!(read_le(&machine.buffer, 128, 4), 0x77777777);
            // Dword k of lane 3 of thread 5 lies 64 * k behind the start of the lane, and nothing else is written.
            let lane = 5 * (1 << 12) + 4 * 3;
            let touched = machine.scratch.iter().enumerate().filter(|(_, b)| **b != 0).map(|(n, _)| n);
            for at in touched {
                assert_eq!((at - lane) % 64 / 4, 0, "byte {at}");
            }
        }
    }
}

#[test]
fn vectors_move_whole() {
    // Vectors of every type and length, copied between unaligned places: the bytes arrive, none else change, and on
    // 4.2 no access leaves its block.
    for version in Version::ALL {
        for ty in [Type::I8, Type::I16, Type::F16, Type::I32, Type::F32, Type::I64] {
            for count in [1u8, 2, 3, 4, 8, 16] {
                for align in [1u32, 2, 4, 8, 16] {
                    let (size, all) = (ty.bytes(), ty.bytes() * count as u32);
                    if align < size.min(4) || all > 64 {
                        continue;
                    }
                    let (from, to) = (16 + align % 16, 128 + align % 16);
                    let mut m = module();
                    let entry = m.func.layout[0];
                    let mut b = Builder::new(&mut m.func, entry);
                    let out = b.resource_addr(OUT, Space::Storage, None);
                    let p = b.lea(out, None, 1, from as i32);
                    let q = b.lea(out, None, 1, to as i32);
                    let v = b.load(ty, mem(Space::Storage, count, align), p);
                    b.store(ty, mem(Space::Storage, count, align), q, &v);
                    b.ret();
                    let m = lowered(m, version);
                    let mut machine = Machine::new(&m);
                    for (n, byte) in machine.buffer.iter_mut().enumerate() {
                        *byte = n as u8;
                    }
                    machine.run();
                    for n in 0..256u32 {
                        let inside = (to..to + all).contains(&n);
                        let want = if inside { n - to + from } else { n };
                        assert_eq!(
                            machine.buffer[n as usize] as u32, want,
                            "{ty} x{count} align {align} {n}"
                        );
                    }
                    for inst in m.func.insts.values() {
                        let Imm::Mem(imm) = inst.imm else { continue };
                        let at = machine.values[inst.args[0].index()] as u32;
                        assert!(at.is_multiple_of(imm.align), "{at} {imm:?}");
                        if version == Version::V42 && imm.count > 1 {
                            assert!(
                                at % 16 + 4 * imm.count as u32 <= 16,
                                "{ty} x{count} align {align}: {at}"
                            );
                        }
                    }
                }
            }
        }
    }
}
