//! Counters that cannot run out.
//!
//! Some front ends make every loop provably finite with a 64-bit counter in two words: it starts at 2^64 - 1, goes down by
//! one every time round, and the loop is left when both words are zero. That takes a few instructions and two registers
//! in every loop, hides trip counts, and never happens: a program would have to go round 2^48 times or more.
//!
//! A condition `hi == 0 & lo == 0` is replaced by `false` when every pair of values that may arrive there is either a
//! pair of constants of at least 2^48, or another such pair minus one (`lo - 1` and `hi - (lo == 0 ? 1 : 0)`), or a pair
//! of parameters of one block that only carry such pairs. Each step is an executed instruction, so the pair cannot be
//! zero before 2^48 instructions were executed.

use crate::graph::{Graph, edge_target};
use kempe_ir::*;
use rustc_hash::FxHashSet;

/// Least high word of a start value: 2^16 * 2^32 steps.
const LEAST_HIGH: u64 = 1 << 16;
/// Pairs that are looked at for one condition.
const MAX_PAIRS: usize = 4096;

pub fn run(m: &mut Module) -> bool {
    let f = &mut m.func;
    let mut found: Vec<(Inst, Value, Value)> = Vec::new();
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            if d.op == Op::And
                && d.ty == Type::Bool
                && let (Some(x), Some(y)) = (is_zero_test(f, d.args[0]), is_zero_test(f, d.args[1]))
            {
                found.push((i, x, y));
            }
        }
    }
    if found.is_empty() {
        return false;
    }
    let g = Graph::new(f);
    let mut changed = false;
    // Pairs that are known to be such counters.
    let mut good: FxHashSet<(Value, Value)> = FxHashSet::default();
    for (i, x, y) in found {
        if is_counter(f, &g, x, y, &mut good) || is_counter(f, &g, y, x, &mut good) {
            crate::fold::make_const(f, i, 0);
            changed = true;
        }
    }
    changed
}

/// `v` is `x == 0` for an i32.
fn is_zero_test(f: &Function, v: Value) -> Option<Value> {
    let d = &f.insts[f.def_inst(v)?];
    if d.op != Op::Ieq || d.ty != Type::I32 {
        return None;
    }
    match (f.as_const(d.args[0]), f.as_const(d.args[1])) {
        (Some(0), _) => Some(d.args[1]),
        (_, Some(0)) => Some(d.args[0]),
        _ => None,
    }
}

fn is_counter(f: &Function, g: &Graph, hi: Value, lo: Value, good: &mut FxHashSet<(Value, Value)>) -> bool {
    let mut seen: FxHashSet<(Value, Value)> = FxHashSet::default();
    let mut work = vec![(hi, lo)];
    let mut starts = false;
    while let Some(pair) = work.pop() {
        if good.contains(&pair) {
            starts = true;
            continue;
        }
        if !seen.insert(pair) {
            continue;
        }
        if seen.len() > MAX_PAIRS {
            return false;
        }
        let (hi, lo) = pair;
        if let (Some(h), Some(_)) = (f.as_const(hi), f.as_const(lo)) {
            if h < LEAST_HIGH {
                return false;
            }
            starts = true;
            continue;
        }
        if let (ValueDef::Param(b, k), ValueDef::Param(c, j)) = (f.values[hi].def, f.values[lo].def)
            && b == c
        {
            for &e in g.preds(b) {
                let t = edge_target(f, e);
                work.push((t.args[k as usize], t.args[j as usize]));
            }
            continue;
        }
        match (high_step(f, hi), low_step(f, lo)) {
            (Some((h, l)), Some(l2)) if l == l2 => work.push((h, l)),
            _ => return false,
        }
    }
    if starts {
        good.extend(seen);
    }
    starts
}

/// `v` is `h - (l == 0 ? 1 : 0)`.
fn high_step(f: &Function, v: Value) -> Option<(Value, Value)> {
    let d = &f.insts[f.def_inst(v)?];
    if d.op != Op::Isub || d.ty != Type::I32 {
        return None;
    }
    let s = &f.insts[f.def_inst(d.args[1])?];
    let l = match s.op {
        Op::Select if f.as_const(s.args[1]) == Some(1) && f.as_const(s.args[2]) == Some(0) => s.args[0],
        Op::Zext if f.ty(s.args[0]) == Type::Bool => s.args[0],
        _ => return None,
    };
    Some((d.args[0], is_zero_test(f, l)?))
}

/// `v` is `l - 1`.
fn low_step(f: &Function, v: Value) -> Option<Value> {
    let d = &f.insts[f.def_inst(v)?];
    match (d.op, d.ty, f.as_const(*d.args.get(1)?)?) {
        (Op::Isub, Type::I32, 1) | (Op::Iadd, Type::I32, 0xffff_ffff) => Some(d.args[0]),
        _ => None,
    }
}
