//! Shapes of programs that other compilers got wrong, each as a real program: compiled for both versions in several
//! configurations, judged by checkers A and B and the validator on the way, run on the simulator and compared with the
//! interpreter. Each test also shows that the shape was there: the spills, the predicated writes, the late payload.
//!
//! The names are those of the collection of bug shapes; `docs/shapes.md` says where each is tested. What only graphics can
//! show (helper lanes, derivatives, varyings, textures) is stated at the test.

mod common;
#[path = "common/shader.rs"]
mod shader;

use kempe_ir::module::{MemImm, Value, Var, Variable};
use kempe_ir::ops::Op;
use kempe_ir::types::{Space, Type};
use kempe_ra::{Edit, OperandKind};
use kempe_v3d::compile::Options;
use kempe_v3d::instr::{Instr, Op as MachineOp, Signals};
use kempe_v3d::mops::MInst;
use shader::*;

/// A value written for all lanes, rewritten in some, both stored to scratch, read by all lanes at the end.
#[test]
fn a01_spills_of_partly_rewritten_values() {
    let mut s = Shader::new(16);
    let many = s.loads(70);
    let x = s.load(100);
    let c = s.load(101);
    let cond = s.lanes(c, 1);
    let x = s.choose(
        cond,
        |s| {
            let y = s.work(x);
            vec![s.add(y, c)]
        },
        |_| vec![x],
    )[0];
    // Another condition in between, so that the rewritten value goes far.
    let cond = s.lanes(c, 2);
    let y = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    s.use_all(&many, 1);
    s.store(0, x);
    s.store(90, y);
    let made = judge(&s.end());
    provoked(&made, 2, "a predicated write is stored", |m| m.predicated_spills() > 0 && m.fills() > 0);
}

/// A value from before nested loops, stored across them, used by all lanes behind them. Helper lanes and derivatives are
/// graphics: what compute shows is that lanes which leave the loops early, and work-groups of ten, keep the value.
#[test]
fn a02_values_across_nested_loops() {
    let mut s = Shader::new(10);
    let many = s.loads(66);
    let x = s.load(100);
    let n = s.load(101);
    let (three, zero) = (s.int(3), s.int(0));
    let n = s.op(Op::And, &[n, three]);
    let total = s.repeat(
        &[zero, zero],
        |s, v| s.op(Op::Slt, &[v[0], n]),
        |s, outer| {
            let inner = s.repeat(
                &[zero, outer[1]],
                |s, v| s.op(Op::Sle, &[v[0], outer[0]]),
                |s, v| {
                    let one = s.int(1);
                    let k = s.add(v[0], one);
                    vec![k, s.add(v[1], k)]
                },
            );
            let one = s.int(1);
            vec![s.add(outer[0], one), inner[1]]
        },
    );
    let y = s.add(x, total[1]);
    s.store(0, y);
    s.use_all(&many, 1);
    let made = judge(&s.end());
    provoked(&made, 3, "a value is stored before the loops and loaded behind", |m| {
        m.slots_over_blocks() > 0 && m.artifact.stats.loops == 2
    });
}

/// The loop writes x for all lanes again; lanes that break have copied it.
#[test]
fn a03_copies_at_a_divergent_break() {
    let mut s = Shader::new(16);
    let limit = s.load(0);
    let seven = s.int(7);
    let limit = s.op(Op::And, &[limit, seven]);
    let (header, inside, at_top, leave, stay, exit) =
        (s.new_block(), s.new_block(), s.new_block(), s.new_block(), s.new_block(), s.new_block());
    let zero = s.int(0);
    s.b().jump(header, &[zero]);
    let i = s.m.func.add_param(header, Type::I32);
    s.start(header);
    let sixteen = s.int(16);
    let more = s.op(Op::Slt, &[i, sixteen]);
    s.b().branch(more, inside, at_top);
    s.start(inside);
    // The same operation in every iteration, for all lanes that are still here.
    let x = s.mul(i, limit);
    let x = s.add(x, i);
    let at_end = s.op(Op::Ieq, &[i, limit]);
    s.b().branch(at_end, leave, stay);
    s.start(stay);
    let one = s.int(1);
    let next = s.add(i, one);
    s.b().jump(header, &[next]);
    s.start(at_top);
    s.b().jump(exit, &[zero]);
    s.start(leave);
    s.b().jump(exit, &[x]);
    let y = s.m.func.add_param(exit, Type::I32);
    s.start(exit);
    let z = s.add(y, limit);
    s.store(0, z);
    let m = s.end();
    // Lanes of one batch leave in different iterations.
    let words = &inputs(&m, 3).buffers[0].bytes;
    let exits: std::collections::BTreeSet<u8> =
        (0..16).map(|lane| words[(lane * IN_WORDS * 4) as usize] & 7).collect();
    assert!(exits.len() >= 4, "{exits:?}");
    let made = judge(&m);
    provoked(&made, 8, "a predicated copy", |m| {
        m.mir.program.operands.iter().any(|o| o.kind != OperandKind::Use && o.tied.is_some())
    });
}

/// A value made by two writes with different predicates, then stored.
#[test]
fn a04_several_predicates_before_a_spill() {
    let mut s = Shader::new(16);
    let many = s.loads(70);
    let c = s.load(100);
    let mut y = s.load(101);
    for (bits, word) in [(1, 102), (2, 103), (4, 104)] {
        let cond = s.lanes(c, bits);
        y = s.choose(
            cond,
            |s| {
                let v = s.load(word);
                vec![s.work(v)]
            },
            |_| vec![y],
        )[0];
    }
    let cond = s.lanes(c, 8);
    let z = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    s.use_all(&many, 1);
    s.store(0, y);
    s.store(90, z);
    let made = judge(&s.end());
    provoked(&made, 2, "predicated writes are stored", |m| m.predicated_spills() > 0);
    provoked(&made, 8, "three of them in a row", |m| {
        m.mir.program.operands.iter().filter(|o| o.kind != OperandKind::Use && o.tied.is_some()).count() >= 3
    });
}

/// A hundred live integers and products whose operands come from scratch.
#[test]
fn a05_spills_around_multiplications() {
    let mut s = Shader::new(16);
    let many = s.loads(100);
    let c = s.load(100);
    let cond = s.lanes(c, 1);
    let seed = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    let mut product = seed;
    for (i, &v) in many.iter().enumerate() {
        product = s.mul(product, v);
        let one = s.int(1);
        product = s.op(Op::Or, &[product, one]);
        if i % 10 == 9 {
            s.store(i as u32 / 10, product);
        }
    }
    s.use_all(&many, 20);
    let made = judge(&s.end());
    let is_mul = |i: &MInst| matches!(i, MInst::Mul32 { .. });
    provoked(&made, 3, "operands of products are loaded from scratch", |m| {
        m.count(is_mul) >= 100 && m.fills_before(is_mul) >= 10
    });
    // No switch takes place inside of a product: it does so behind the second slot of its request.
    for m in &made {
        let mut open = None;
        let mut switches = Vec::new();
        for (at, instr) in m.instrs().iter().enumerate() {
            let Some(alu) = instr.alu() else { continue };
            if alu.mul.op == MachineOp::Umul24
                && let Some(first) = open.take()
            {
                assert!(
                    !switches.iter().any(|&s| (first..at).contains(&(s + 2))),
                    "a switch inside of a product"
                );
            }
            if alu.mul.op == MachineOp::Multop {
                open = Some(at);
            }
            if alu.signals.has(Signals::THRSW) {
                switches.push(at);
            }
        }
    }
}

/// Vectors put together component by component between other accesses, from values in scratch. Texture operands are
/// graphics; a vector store has the same sequence of data writes.
#[test]
fn a06_components_of_vectors_in_scratch() {
    let mut s = Shader::new(16);
    let vectors: Vec<Vec<Value>> = (0..20).map(|k| s.load_at(s.input, IN_WORDS, 4 * k, 4, true)).collect();
    let c = s.load(100);
    let cond = s.lanes(c, 1);
    let c = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    for k in 0..20usize {
        let at = |n: usize| vectors[(k * 7 + n * 5) % 20][n];
        let first = s.add(at(0), c);
        let last = s.op(Op::Xor, &[at(3), c]);
        let data = [first, at(1), at(2), last];
        s.store_at(s.index, 4 * k as u32, &data);
    }
    let made = judge(&s.end());
    let is_vector = |i: &MInst| matches!(i, MInst::TmuStore { count: 4, .. });
    provoked(&made, 3, "components come from scratch", |m| {
        m.count(is_vector) == 20 && m.fills_before(is_vector) >= 5
    });
}

/// All pressure in the last block.
#[test]
fn a07_pressure_at_the_end() {
    let mut s = Shader::new(16);
    let many = s.loads(80);
    let c = s.load(100);
    let cond = s.lanes(c, 1);
    let c = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    for (k, &v) in many.iter().enumerate() {
        let sum = s.add(v, c);
        s.store(k as u32, sum);
    }
    let made = judge(&s.end());
    provoked(&made, 3, "the last block loads from scratch", |m| {
        let last = m.mir.program.blocks.len() - 1;
        m.edits().filter(|e| matches!(e.2, Edit::Fill { .. }) && m.block_of(e.0) == last).count() >= 10
    });
    // Behind the mark there is one switch request, the end, and no load from scratch needs another.
    for m in &made {
        let switches: Vec<usize> = (m.instrs().iter().enumerate())
            .filter(|(_, i)| i.signals().has(Signals::THRSW))
            .map(|(at, _)| at)
            .collect();
        let [.., a, mark, end] = switches[..] else { continue };
        assert!(end > mark && mark > a);
        assert_eq!(end + 3, m.instrs().len());
    }
}

/// Uniforms taken directly in front of a divergent jump and used behind it. Varyings are graphics.
#[test]
fn a08_uniforms_across_a_divergent_jump() {
    let mut s = Shader::new(16);
    let many = s.loads(64);
    let c = s.load(100);
    let (u0, u2) = (s.uniform(0), s.uniform(2));
    let sum = s.add(c, u0);
    let cond = s.lanes(sum, 3);
    let y = s.choose(
        cond,
        |s| {
            let a = s.add(c, u2);
            let a = s.work(a);
            vec![s.mul(a, u0)]
        },
        |s| {
            let u3 = s.uniform(3);
            let a = s.op(Op::Xor, &[c, u3]);
            let a = s.work(a);
            vec![s.add(a, u2)]
        },
    )[0];
    // A jump with nothing in front of it but what it asks.
    let u1 = s.uniform(1);
    let cond = s.op(Op::Slt, &[y, u1]);
    let z = s.choose(
        cond,
        |s| {
            let a = s.add(y, u2);
            vec![s.work(a)]
        },
        |s| {
            let u3 = s.uniform(3);
            let a = s.op(Op::Xor, &[y, u3]);
            vec![s.work(a)]
        },
    )[0];
    s.store(0, z);
    s.use_all(&many, 1);
    let made = judge(&s.end());
    provoked(&made, 6, "a uniform close to a branch on both sides", |m| {
        let instrs = m.instrs();
        let loads = |i: &Instr| i.signals().has(Signals::LDUNIF | Signals::LDUNIFRF);
        (4..instrs.len()).any(|at| {
            instrs[at].branch().is_some()
                && instrs[at - 4..at].iter().any(loads)
                && instrs[at + 1..].iter().take(12).any(loads)
        })
    });
    provoked(&made, 3, "with scratch in use", |m| m.spills() > 0);
}

/// A store, then at once a break or a return inside nested conditions of a loop; what was stored is read behind it.
#[test]
fn a09_stores_before_early_exits() {
    let mut s = Shader::new(16);
    let c = s.load(0);
    let limit = s.load(1);
    let (seven, zero) = (s.int(7), s.int(0));
    let limit = s.op(Op::And, &[limit, seven]);
    s.store(0, c);
    s.store(1, limit);
    let (header, inside, at_top, inner, leave, stay, back, quit, go_on) = (
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
        s.new_block(),
    );
    let exit = s.new_block();
    s.b().jump(header, &[zero]);
    let i = s.m.func.add_param(header, Type::I32);
    s.start(header);
    let ten = s.int(10);
    let more = s.op(Op::Slt, &[i, ten]);
    s.b().branch(more, inside, at_top);
    s.start(inside);
    let near = s.op(Op::Sle, &[limit, i]);
    s.b().branch(near, inner, stay);
    s.start(inner);
    // The store and the break (or the return, for some) stand side by side.
    let v = s.mul(i, c);
    s.store(0, v);
    let some = s.lanes(c, 1);
    s.b().branch(some, quit, leave);
    s.start(stay);
    s.b().jump(back, &[]);
    s.start(back);
    let one = s.int(1);
    let next = s.add(i, one);
    s.b().jump(header, &[next]);
    s.start(at_top);
    s.b().jump(go_on, &[]);
    s.start(quit);
    s.b().ret();
    s.start(leave);
    s.b().jump(go_on, &[]);
    s.start(go_on);
    s.b().jump(exit, &[]);
    s.start(exit);
    let back = s.load_at(s.output, OUT_WORDS, 0, 1, false)[0];
    let sum = s.add(back, limit);
    s.store(2, sum);
    let made = judge(&s.end());
    // The simulator stops a load that meets a store which has not been waited for; the wait is there.
    provoked(&made, 8, "a wait between store and load", |m| {
        let waits =
            m.instrs().iter().filter(|i| i.alu().is_some_and(|a| a.add.op == MachineOp::Tmuwt)).count();
        waits >= 1 && m.count(|i| matches!(i, MInst::TmuStore { .. })) >= 4
    });
}

/// Three values in scratch whose loads are in other blocks than their stores.
#[test]
fn a10_fills_in_other_blocks() {
    let mut s = Shader::new(16);
    let many = s.loads(75);
    let mut x = s.load(100);
    let c = s.load(101);
    for (k, group) in many.chunks(25).enumerate() {
        let cond = s.lanes(c, 1 << k);
        let start = x;
        x = s.choose(
            cond,
            |s| {
                let sum = group.iter().fold(start, |sum, &v| s.add(sum, v));
                vec![sum]
            },
            |s| {
                let sum = group.iter().fold(start, |sum, &v| s.op(Op::Xor, &[sum, v]));
                vec![sum]
            },
        )[0];
    }
    s.store(0, x);
    s.use_all(&many, 1);
    let made = judge(&s.end());
    provoked(&made, 3, "fills in other blocks", |m| m.slots_over_blocks() >= 3);
}

/// Twice as many values as there are registers.
#[test]
fn a11_pressure_of_twice_the_file() {
    let mut s = Shader::new(16);
    let many = s.loads(130);
    let c = s.load(140);
    let cond = s.lanes(c, 1);
    let mut x = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    // All of them twice, in different orders.
    for &v in &many {
        x = s.add(x, v);
    }
    s.store(95, x);
    let cond = s.lanes(c, 2);
    let mut x = s.choose(cond, |s| vec![s.work(x)], |_| vec![c])[0];
    for &v in many.iter().rev() {
        x = s.op(Op::Xor, &[x, v]);
    }
    s.store(94, x);
    s.use_all(&many, 0);
    let made = judge(&s.end());
    provoked(&made, 8, "most values go to scratch", |m| m.allocation.slots >= 60 && m.spills() >= 60);
}

/// An array of the program in scratch beside spilled values; the invocation's numbers are asked for at the end.
fn late_payload() -> Vec<Made> {
    let mut s = Shader::new(16);
    let array: Var =
        s.m.vars.push(Variable { space: Space::Private, size: 64, align: 4, name: "array".to_owned() });
    // The loads use an index of their own, so that the payload itself is needed again at the end.
    let many = s.loads(70);
    let c = s.load(100);
    let mem = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };
    let fifteen = s.int(15);
    for (k, &v) in many[..16].iter().enumerate() {
        let mut b = s.b();
        let base = b.var_addr(array, Space::Private);
        let address = b.lea(base, None, 1, 4 * k as i32);
        b.store(Type::I32, mem, address, &[v]);
    }
    let at = s.op(Op::And, &[c, fifteen]);
    let mut b = s.b();
    let base = b.var_addr(array, Space::Private);
    let address = b.lea(base, Some(at), 4, 0);
    let element = b.load(Type::I32, mem, address)[0];
    let cond = s.lanes(c, 1);
    let element = s.choose(cond, |s| vec![s.work(element)], |_| vec![element])[0];
    s.use_all(&many, 1);
    let late = s.invocation();
    let sum = s.add(element, late);
    s.store_at(late, 0, &[sum]);
    judge(&s.end())
}

#[test]
fn a12_payload_read_late() {
    let made = late_payload();
    provoked(&made, 3, "an array and spilled values in scratch", |m| {
        m.artifact.stats.scratch >= 17 && m.spills() > 0 && m.artifact.scratch_bytes > 64 * 16
    });
}

/// The payload lies in other rows on each version, and the allocator is told.
#[test]
fn a13_payload_rows_by_version() {
    let made = late_payload();
    for m in &made {
        let range = m.mir.program.insts[0].operands.clone();
        assert!(matches!(m.mir.data[0], MInst::Entry));
        let fixed: Vec<u16> = range
            .map(|o| m.mir.program.operands[o as usize])
            .filter(|o| o.kind != OperandKind::Use)
            .filter_map(|o| o.fixed.map(|u| u.0))
            .collect();
        assert!(!fixed.is_empty() && fixed.len() <= 2, "{fixed:?}");
        // Rows 0 and 2 on 4.2, 3 and 2 on 7.1.
        let rows = kempe_v3d::sim::Start { version: m.version, threads: m.artifact.threads }.rows();
        let named = |unit: u16| {
            let loc = kempe_v3d::regs::unit_loc(m.artifact.threads, kempe_ra::Unit(unit));
            rows.iter().any(|&r| loc == kempe_v3d::instr::Loc::Row(r))
        };
        assert!(fixed.iter().all(|&u| named(u)), "{}: {fixed:?}, {:?}", m.version.name(), m.options);
    }
}

/// The first use of a value is a write over it: it is read there.
#[test]
fn a60_first_use_is_a_write_in_place() {
    let mut s = Shader::new(16);
    let x = s.load(0);
    let c = s.load(1);
    let factor = s.load(2);
    let cond = s.lanes(c, 1);
    // Nothing but the product reads x, in some lanes; the others keep it.
    let x = s.choose(
        cond,
        |s| {
            let y = s.work(factor);
            vec![s.mul(x, y)]
        },
        |_| vec![x],
    )[0];
    s.store(0, x);
    let made = judge(&s.end());
    provoked(&made, 8, "a write over a value of an earlier instruction", |m| {
        let p = &m.mir.program;
        p.insts.iter().any(|inst| {
            inst.operands.clone().any(|o| {
                let def = p.operands[o as usize];
                let Some(tied) = def.tied else { return false };
                let old = p.operands[(inst.operands.start + u32::from(tied)) as usize];
                old.kind == OperandKind::Use && !p.vregs[old.vreg.0 as usize].undefined
            })
        })
    });
}

/// Fails to fit four threads without scratch, fits two: the figures are those of the code that is kept.
#[test]
fn a61_statistics_of_the_attempt_that_is_kept() {
    let mut s = Shader::new(16);
    let many = s.loads(36);
    let c = s.load(100);
    let cond = s.lanes(c, 1);
    let c = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    s.use_all(&many, 1);
    s.store(0, c);
    let made = judge(&s.end());
    for m in &made {
        let stats = &m.artifact.stats;
        assert_eq!((stats.spills as usize, stats.fills as usize), (m.spills(), m.fills()), "{:?}", m.options);
        assert_eq!(stats.threads, m.artifact.threads);
        assert_eq!(8 * stats.instructions as usize, m.artifact.code.len());
        let natural = m.options == Options { verify: true, ..Options::default() };
        if natural {
            assert_eq!((m.artifact.threads, m.artifact.attempts, stats.spills), (2, 2, 0));
        } else if m.options.threads == Some(4) && !m.options.no_order {
            assert!(stats.spills > 0);
        }
    }
}
