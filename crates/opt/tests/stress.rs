//! Large and deep programs: no overflow of the stack, no quadratic time that one would notice.

use kempe_ir::*;
use kempe_opt::{Level, optimise};
use std::time::{Duration, Instant};

/// Far more than any of these takes on a busy machine without optimisation, far less than quadratic time would.
const LIMIT: Duration = Duration::from_secs(60);

fn module() -> (Module, Res, Res) {
    let mut m = Module::new("main", Stage::Compute);
    m.workgroup_size = [16, 1, 1];
    let buffer = |binding, read_only| Resource {
        kind: ResKind::StorageBuffer,
        set: 0,
        binding,
        elements: 1,
        size: 0,
        tail_stride: 4,
        name: String::new(),
        read_only,
        image: None,
    };
    let input = m.resources.push(buffer(0, true));
    let output = m.resources.push(buffer(1, false));
    (m, input, output)
}

fn private(m: &mut Module) -> Var {
    m.vars.push(Variable { space: Space::Private, size: 4, align: 4, name: "x".to_owned() })
}

const WORD: MemImm = MemImm { space: Space::Storage, count: 1, align: 4, volatile: false, read_only: false };
const OWN: MemImm = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };

fn run(mut m: Module, what: &str) -> Module {
    kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let start = Instant::now();
    optimise(&mut m, Level::O2);
    let time = start.elapsed();
    kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    assert!(time < LIMIT, "{what} took {time:?}");
    println!("{what}: {time:?}");
    m
}

/// A chain of ifs that each change one variable (shape A49), with a multiplication too long to convert.
#[test]
fn chain_of_ifs() {
    let (mut m, input, output) = module();
    let x = private(&mut m);
    let f = &mut m.func;
    let mut at = f.add_block();
    let mut b = Builder::new(f, at);
    let base = b.resource_addr(input, Space::Storage, None);
    let out = b.resource_addr(output, Space::Storage, None);
    let own = b.var_addr(x, Space::Private);
    let id = b.builtin(Builtin::LocalInvocationIndex);
    b.store(Type::I32, OWN, own, &[id]);
    let selector = b.load(Type::I32, WORD, base)[0];
    for n in 0..5000 {
        let (then, next) = (f.add_block_detached(), f.add_block_detached());
        let mut b = Builder::new(f, at);
        let k = b.i32(n);
        let c = b.op(Op::Ult, Type::I32, &[selector, k]);
        b.branch(c, then, next);
        let mut b = Builder::new(f, then);
        let addr = b.lea(base, None, 0, n as i32 * 4);
        let v = b.load(Type::I32, WORD, addr)[0];
        let old = b.load(Type::I32, OWN, own)[0];
        let new = b.op(Op::Imul, Type::I32, &[v, old]);
        b.store(Type::I32, OWN, own, &[new]);
        b.jump(next, &[]);
        f.layout.extend([then, next]);
        at = next;
    }
    let mut b = Builder::new(f, at);
    let v = b.load(Type::I32, OWN, own)[0];
    b.store(Type::I32, WORD, out, &[v]);
    b.ret();
    let m = run(m, "5000 ifs in a row");
    assert_eq!(m.func.layout.len(), 9999, "the first condition is false, all other arms stay");
}

/// Loops in loops, 300 deep, all carrying one variable; and ifs in ifs, 3000 deep.
#[test]
fn deep_nests() {
    let (mut m, input, output) = module();
    let x = private(&mut m);
    let f = &mut m.func;
    let entry = f.add_block();
    let mut b = Builder::new(f, entry);
    let base = b.resource_addr(input, Space::Storage, None);
    let out = b.resource_addr(output, Space::Storage, None);
    let own = b.var_addr(x, Space::Private);
    let id = b.builtin(Builtin::LocalInvocationIndex);
    let bound = b.load(Type::I32, WORD, base)[0];
    b.store(Type::I32, OWN, own, &[id]);
    let zero = b.i32(0);
    let one = b.i32(1);
    let mut from = entry;
    let mut latches = Vec::new();
    for _ in 0..300 {
        let (head, body, exit) = (f.add_block(), f.add_block(), f.add_block_detached());
        let i = f.add_param(head, Type::I32);
        Builder::new(f, from).jump(head, &[zero]);
        let mut b = Builder::new(f, head);
        let c = b.op(Op::Ult, Type::I32, &[i, bound]);
        b.branch(c, body, exit);
        latches.push((head, i, exit));
        from = body;
    }
    let mut b = Builder::new(f, from);
    let v = b.load(Type::I32, OWN, own)[0];
    let v = b.op(Op::Imul, Type::I32, &[v, bound]);
    b.store(Type::I32, OWN, own, &[v]);
    for (head, i, exit) in latches.into_iter().rev() {
        let mut b = Builder::new(f, from);
        let next = b.op(Op::Iadd, Type::I32, &[i, one]);
        b.jump(head, &[next]);
        f.layout.push(exit);
        from = exit;
    }
    let mut b = Builder::new(f, from);
    let v = b.load(Type::I32, OWN, own)[0];
    b.store(Type::I32, WORD, out, &[v]);
    b.ret();
    let m = run(m, "300 loops in each other");
    assert_eq!(
        m.func.blocks[m.func.layout[1]].params.len(),
        2,
        "each loop carries its counter and the variable"
    );

    let (mut m, input, output) = module();
    let f = &mut m.func;
    let mut at = f.add_block();
    let mut b = Builder::new(f, at);
    let base = b.resource_addr(input, Space::Storage, None);
    let out = b.resource_addr(output, Space::Storage, None);
    let mut tail = Vec::new();
    for n in 0..3000 {
        let (then, next) = (f.add_block_detached(), f.add_block_detached());
        let mut b = Builder::new(f, at);
        let addr = b.lea(base, None, 0, n * 4);
        let v = b.load(Type::I32, WORD, addr)[0];
        let k = b.i32(n as u32);
        let c = b.op(Op::Ult, Type::I32, &[v, k]);
        let addr = b.lea(out, None, 0, n * 4);
        b.store(Type::I32, WORD, addr, &[v]);
        b.branch(c, then, next);
        f.layout.push(then);
        tail.push((next, v));
        at = then;
    }
    Builder::new(f, at).ret();
    for n in (0..tail.len()).rev() {
        let (next, v) = tail[n];
        let mut b = Builder::new(f, next);
        b.store(Type::I32, WORD, out, &[v]);
        match n.checked_sub(1) {
            Some(up) => b.jump(tail[up].0, &[]),
            None => b.ret(),
        }
        f.layout.push(next);
    }
    run(m, "3000 ifs in each other");
}

/// One block of 50,000 instructions with loads, stores and long chains.
#[test]
fn one_long_block() {
    let (mut m, input, output) = module();
    let f = &mut m.func;
    let entry = f.add_block();
    let mut b = Builder::new(f, entry);
    let base = b.resource_addr(input, Space::Storage, None);
    let out = b.resource_addr(output, Space::Storage, None);
    let id = b.builtin(Builtin::LocalInvocationIndex);
    let mut sum = id;
    for n in 0..10_000 {
        let addr = b.lea(base, Some(id), 16, (n % 5000) * 4);
        let v = b.load(Type::I32, WORD, addr)[0];
        let k = b.i32(n as u32);
        let x = b.op(Op::Xor, Type::I32, &[v, k]);
        sum = b.op(Op::Iadd, Type::I32, &[sum, x]);
        let to = b.lea(out, Some(id), 4, n * 4);
        b.store(Type::I32, WORD, to, &[sum]);
    }
    b.ret();
    run(m, "a block of 60,000 instructions");
}

/// A switch as a chain of compares, with 2,000 cases that meet in one block.
#[test]
fn wide_merge() {
    let (mut m, input, output) = module();
    let x = private(&mut m);
    let f = &mut m.func;
    let mut at = f.add_block();
    let end = f.add_block_detached();
    let mut b = Builder::new(f, at);
    let base = b.resource_addr(input, Space::Storage, None);
    let out = b.resource_addr(output, Space::Storage, None);
    let own = b.var_addr(x, Space::Private);
    let selector = b.load(Type::I32, WORD, base)[0];
    for n in 0..2000 {
        let (case, next) = (f.add_block_detached(), f.add_block_detached());
        let mut b = Builder::new(f, at);
        let k = b.i32(n);
        let c = b.op(Op::Ieq, Type::I32, &[selector, k]);
        b.branch(c, case, next);
        let mut b = Builder::new(f, case);
        let v = b.i32(n * 7);
        b.store(Type::I32, OWN, own, &[v]);
        b.jump(end, &[]);
        f.layout.extend([case, next]);
        at = next;
    }
    let mut b = Builder::new(f, at);
    b.store(Type::I32, OWN, own, &[selector]);
    b.jump(end, &[]);
    f.layout.push(end);
    let mut b = Builder::new(f, end);
    let v = b.load(Type::I32, OWN, own)[0];
    b.store(Type::I32, WORD, out, &[v]);
    b.ret();
    run(m, "2000 cases");
}
