//! Filling shared memory by one invocation becomes filling by all.
//!
//! Some front ends clear shared variables like this: the first invocation of the work-group stores a constant to every
//! word, one after the other, and all wait at a barrier. The other invocations have nothing to do meanwhile, and the
//! code is as long as the variable. Here every invocation stores its share instead.
//!
//! Recognised: the entry block touches no shared memory and branches on "invocation 0" around one block of stores of
//! one constant to shared variables, and the block behind begins with a barrier that orders shared memory (before it
//! touches any). Between the start and that barrier nothing can tell who stored.

use crate::alias::{Addresses, Base};
use crate::pipeline::Options;
use kempe_ir::*;

/// Fewest words worth spreading.
const MIN_WORDS: usize = 16;
/// Most stores an invocation makes for one run of words; longer runs stay as they are.
const MAX_STORES: u32 = 64;

/// Consecutive words of a variable.
struct Run {
    var: Var,
    offset: u32,
    words: u32,
}

pub fn run(m: &mut Module, options: &Options) -> bool {
    let Some(&entry) = m.func.layout.first() else { return false };
    let Term::Branch { cond, ref then, ref els } = m.func.blocks[entry].term else { return false };
    let (arm, join) = (then.block, els.block);
    let shape = then.args.is_empty()
        && els.args.is_empty()
        && arm != join
        && matches!(&m.func.blocks[arm].term, Term::Jump(t) if t.block == join && t.args.is_empty());
    let items = m.workgroup_size.iter().try_fold(1u32, |a, &n| a.checked_mul(n)).unwrap_or(0);
    if !shape || items < 2 || !is_first(m, cond) || !waits(&m.func, entry, join) {
        return false;
    }
    let g = crate::graph::Graph::new(&m.func);
    if g.preds(arm).len() != 1 || g.preds(join).len() != 2 {
        return false;
    }
    let Some((value, runs)) = fill(m, arm) else { return false };
    if runs.iter().map(|r| r.words as usize).sum::<usize>() < MIN_WORDS {
        return false;
    }
    if runs.iter().any(|r| r.words / items > MAX_STORES) {
        return false;
    }
    crate::vectorise::align_shared(m);
    let f = &mut m.func;
    f.blocks[arm].insts.clear();
    let mut b = Builder::new(f, entry);
    b.loc = b.func.blocks[entry].term_loc;
    let index = b.builtin(Builtin::LocalInvocationIndex);
    let c = b.constant(value.0, value.1);
    let mut chain: Vec<(Value, Block)> = Vec::new();
    for r in &runs {
        let align = m.vars[r.var].align.max(4);
        let align = if r.offset == 0 { align } else { align.min(1 << r.offset.trailing_zeros()) };
        let whole = !options.vector_within_16 || align >= 16;
        let width = if whole { options.vector_components.clamp(1, 4) as u32 } else { 1 };
        let store = |b: &mut Builder, addr: Value, n: u32, align: u32| {
            let mem =
                MemImm { space: Space::Shared, count: n as u8, align, volatile: false, read_only: false };
            b.store(value.0, mem, addr, &vec![c; n as usize]);
        };
        let base = b.var_addr(r.var, Space::Shared);
        let step = items * width;
        let place =
            |b: &mut Builder, word: u32| b.lea(base, Some(index), width * 4, (r.offset + word * 4) as i32);
        let share = align.min(if width.is_power_of_two() { width * 4 } else { 4 });
        for k in 0..r.words / step {
            let at = place(&mut b, k * step);
            store(&mut b, at, width, share);
        }
        // What is left: whole vectors by the first invocations, and single words by one.
        let done = r.words / step * step;
        let vectors = (r.words - done) / width;
        let tail = r.words - done - vectors * width;
        for (n, vector) in [(vectors, true), (tail, false)] {
            if n == 0 {
                continue;
            }
            let limit = b.i32(n);
            let mine = b.op(Op::Ult, Type::I32, &[index, limit]);
            let own = b.func.add_block_detached();
            let mut inner = Builder::new(b.func, own);
            inner.loc = b.loc;
            if vector {
                let at = place(&mut inner, done);
                store(&mut inner, at, width, share);
            } else {
                let from = r.offset + (done + vectors * width) * 4;
                let at = inner.lea(base, Some(index), 4, from as i32);
                store(&mut inner, at, 1, 4);
            }
            chain.push((mine, own));
        }
    }
    // Entry, then one guarded block after the other, then the join.
    f.layout.retain(|&x| x != arm);
    let mut at = entry;
    let mut order: Vec<Block> = Vec::new();
    let count = chain.len();
    for (n, (mine, own)) in chain.into_iter().enumerate() {
        let next = if n + 1 == count { join } else { f.add_block_detached() };
        Builder::new(f, own).jump(next, &[]);
        Builder::new(f, at).branch(mine, own, next);
        order.push(own);
        if next != join {
            order.push(next);
        }
        at = next;
    }
    if count == 0 {
        Builder::new(f, entry).jump(join, &[]);
    }
    f.layout.splice(1..1, order);
    true
}

/// The condition holds in exactly the first invocation of a work-group.
fn is_first(m: &Module, cond: Value) -> bool {
    let f = &m.func;
    let mut axes = m.workgroup_size.map(|n| n == 1);
    let mut work = vec![cond];
    let mut budget = 16;
    while let Some(v) = work.pop() {
        budget -= 1;
        let Some(i) = f.def_inst(v) else { return false };
        let d = &f.insts[i];
        match d.op {
            Op::And if budget > 0 => work.extend([d.args[0], d.args[1]]),
            Op::Ieq if f.as_const(d.args[1]) == Some(0) => {
                let Some(j) = f.def_inst(d.args[0]) else { return false };
                match f.insts[j].imm {
                    Imm::Builtin(Builtin::LocalInvocationIndex) => axes = [true; 3],
                    Imm::Builtin(Builtin::LocalInvocationId(k)) if k < 3 => axes[k as usize] = true,
                    _ => return false,
                }
            }
            _ => return false,
        }
    }
    axes == [true; 3]
}

/// Nothing of shared memory is touched in the entry, nor in `join` before its barrier.
fn waits(f: &Function, entry: Block, join: Block) -> bool {
    let touches = |d: &InstData| match (d.op.effect(), d.imm) {
        (Effect::Read | Effect::Write, Imm::Mem(mem)) => mem.space == Space::Shared,
        (Effect::Write, _) => true,
        _ => false,
    };
    if f.blocks[entry].insts.iter().any(|&i| touches(&f.insts[i])) {
        return false;
    }
    for &i in &f.blocks[join].insts {
        let d = &f.insts[i];
        if let (Op::Barrier, Imm::Barrier(b)) = (d.op, d.imm) {
            return b.shared;
        }
        if touches(d) {
            return false;
        }
    }
    false
}

/// The constant that a block stores to shared variables, and where; `None` when it does anything else.
fn fill(m: &Module, arm: Block) -> Option<((Type, u64), Vec<Run>)> {
    let f = &m.func;
    let mut addr = Addresses::new(m);
    let mut value: Option<(Type, u64)> = None;
    let mut words: Vec<(Var, u32)> = Vec::new();
    for &i in &f.blocks[arm].insts {
        let d = &f.insts[i];
        match (d.op, d.imm) {
            (Op::Store, Imm::Mem(mem)) => {
                if mem.space != Space::Shared || mem.volatile || d.ty.bytes() != 4 || d.ty.is_ptr() {
                    return None;
                }
                let (root, offset) = addr.of(f, d.args[0]);
                let Base::Var(var) = addr.bases[root as usize] else { return None };
                if addr.strides[root as usize] != 0 {
                    return None;
                }
                for (k, &v) in d.args[1..].iter().enumerate() {
                    let c = f.as_const(v)?;
                    let ty = if d.ty == Type::Bool { Type::I32 } else { d.ty };
                    if value.is_some_and(|(_, bits)| bits != c) {
                        return None;
                    }
                    value.get_or_insert((ty, c));
                    words.push((var, offset.checked_add(4 * k as u32)?));
                }
            }
            _ if matches!(d.op.effect(), Effect::Pure | Effect::Constant) => {}
            _ => return None,
        }
    }
    // Values of the block are used nowhere else: it dominates nothing.
    words.sort();
    words.dedup();
    let mut runs: Vec<Run> = Vec::new();
    for (var, offset) in words {
        if offset % 4 != 0 {
            return None;
        }
        match runs.last_mut() {
            Some(r) if r.var == var && r.offset + r.words * 4 == offset => r.words += 1,
            _ => runs.push(Run { var, offset, words: 1 }),
        }
    }
    Some((value?, runs))
}
