//! Small private arrays with computed indices: selections instead of memory.
//!
//! Arrays whose indices are all constant are cells for `ssa` already, also after unrolling. What is left is indexed by
//! values. A load from such an array becomes loads of every element and a tree of selections on the bits of the
//! index, a store becomes a selection of old or new value for every element; all at constant offsets, so that `ssa`
//! makes values of the elements. That is done where the selections cost less than the accesses to memory that they
//! replace (all accesses of the variable, also those at constant offsets, which would be memory too).
//!
//! An index that would leave the variable is undefined in the sources, so only elements inside are considered.

use crate::cells::{Accesses, VarUse};
use kempe_ir::*;
use smallvec::{SmallVec, smallvec};

/// About what an access to private memory costs, in operations: address, thread switch, latency.
const ACCESS_COST: u32 = 12;
/// Words of an array that selections may stand for: they all become registers.
const MAX_WORDS: u32 = 16;

/// An access to an array: constant part of its offset and one scaled index at most.
struct Access {
    block: Block,
    inst: Inst,
    offset: i64,
    index: Option<Index>,
}

#[derive(Clone, Copy)]
struct Index {
    value: Value,
    scale: u32,
    /// A second, coarser index: `value + outer * factor` is the index in units of `scale`.
    outer: Option<(Value, u32)>,
}

pub fn run(m: &mut Module) -> bool {
    let acc = Accesses::new(m);
    let mut changed = false;
    let mut lists: Vec<Option<Vec<Access>>> = acc
        .uses
        .iter()
        .zip(m.vars.values())
        .map(|(u, v)| (*u == VarUse::Indexed && v.size <= MAX_WORDS * 4).then(Vec::new))
        .collect();
    if lists.iter().all(|l| l.is_none()) {
        return false;
    }
    for &b in &m.func.layout {
        for &i in &m.func.blocks[b].insts {
            let d = &m.func.insts[i];
            if !matches!(d.op, Op::Load | Op::Store) {
                continue;
            }
            let Some(p) = acc.place[d.args[0].index()] else { continue };
            let Some(list) = &mut lists[p.var as usize] else { continue };
            match decode(&m.func, d.args[0]) {
                Some((offset, index)) => list.push(Access { block: b, inst: i, offset, index }),
                None => lists[p.var as usize] = None,
            }
        }
    }
    // By instruction: the variable whose accesses are rewritten.
    let mut rewrite: Vec<Option<(u32, u32)>> = vec![None; m.func.insts.len()];
    for (var, list) in lists.iter().enumerate() {
        let Some(list) = list else { continue };
        if worthwhile(m, Var(var as u32), list) {
            for (n, a) in list.iter().enumerate() {
                if a.index.is_some() {
                    rewrite[a.inst.index()] = Some((var as u32, n as u32));
                    changed = true;
                }
            }
        }
    }
    if !changed {
        return false;
    }
    let mut subst = crate::subst::Subst::new(&m.func);
    for at in 0..m.func.layout.len() {
        let b = m.func.layout[at];
        let hit = |i: &Inst| rewrite.get(i.index()).copied().flatten();
        if !m.func.blocks[b].insts.iter().any(|i| hit(i).is_some()) {
            continue;
        }
        for i in std::mem::take(&mut m.func.blocks[b].insts) {
            match hit(&i) {
                None => m.func.blocks[b].insts.push(i),
                Some((var, n)) => {
                    if let Some(a) = lists[var as usize].as_ref().and_then(|l| l.get(n as usize)) {
                        debug_assert_eq!((a.block, a.inst), (b, i));
                        expand(m, Var(var), a, &mut subst);
                    }
                }
            }
        }
    }
    subst.apply(&mut m.func);
    true
}

/// The offset and index of an address that comes from a variable.
fn decode(f: &Function, addr: Value) -> Option<(i64, Option<Index>)> {
    let mut offset = 0i64;
    let mut terms: SmallVec<[(Value, u32); 2]> = smallvec![];
    let mut at = addr;
    loop {
        let d = &f.insts[f.def_inst(at)?];
        match (d.op, d.imm) {
            (Op::VarAddr, _) => break,
            (Op::Lea, Imm::Lea(l)) => {
                offset += l.offset as i64;
                if let Some(&i) = d.args.get(1) {
                    match f.as_const(i) {
                        Some(k) => offset += (k as u32).wrapping_mul(l.scale) as i32 as i64,
                        None => terms.push((i, l.scale)),
                    }
                }
                at = d.args[0];
            }
            _ => return None,
        }
    }
    terms.sort_by_key(|t| t.1);
    match terms[..] {
        [] => Some((offset, None)),
        [(value, scale)] if scale != 0 => Some((offset, Some(Index { value, scale, outer: None }))),
        [(value, scale), (outer, coarse)] if scale != 0 && coarse.is_multiple_of(scale) => {
            Some((offset, Some(Index { value, scale, outer: Some((outer, coarse / scale)) })))
        }
        _ => None,
    }
}

/// Offsets that an indexed access can have: the first, and how many.
fn candidates(m: &Module, var: Var, a: &Access) -> (i64, u32) {
    let d = &m.func.insts[a.inst];
    let Imm::Mem(mem) = d.imm else { return (0, 0) };
    let len = (d.ty.bytes() * mem.count as u32) as i64;
    let Some(ix) = a.index else { return (a.offset, 1) };
    let first = a.offset.rem_euclid(ix.scale as i64);
    let room = m.vars[var].size as i64 - len - first;
    (first, if room < 0 { 0 } else { (room / ix.scale as i64) as u32 + 1 })
}

fn worthwhile(m: &Module, var: Var, list: &[Access]) -> bool {
    let mut selections = 0u32;
    for a in list.iter().filter(|a| a.index.is_some()) {
        let (_, n) = candidates(m, var, a);
        if n == 0 {
            return false;
        }
        let d = &m.func.insts[a.inst];
        let Imm::Mem(mem) = d.imm else { return false };
        let count = mem.count as u32;
        selections += if d.op == Op::Load { count * (n - 1) + 2 * n.ilog2() + 2 } else { (count + 1) * n };
    }
    selections <= ACCESS_COST * list.len() as u32
}

fn expand(m: &mut Module, var: Var, a: &Access, subst: &mut crate::subst::Subst) {
    let (first, n) = candidates(m, var, a);
    let Some(ix) = a.index else { return };
    let d = m.func.insts[a.inst].clone();
    let Imm::Mem(mem) = d.imm else { return };
    let start = m.vars[var].align;
    // What is known of each place, which may be less than the access says of the one that it means.
    let mem = |k: u32| {
        let offset = first as u32 + k * ix.scale;
        let align = if offset == 0 { start } else { start.min(1 << offset.trailing_zeros()) };
        MemImm { align, ..mem }
    };
    let mut b = Builder::new(&mut m.func, a.block);
    b.loc = d.loc;
    let mut index = ix.value;
    if let Some((outer, factor)) = ix.outer {
        let k = b.i32(factor);
        let o = b.op(Op::Imul, Type::I32, &[outer, k]);
        index = b.op(Op::Iadd, Type::I32, &[o, index]);
    }
    // Number of the candidate.
    let shift = (a.offset - first) / ix.scale as i64;
    if shift != 0 {
        let k = b.i32(shift as u32);
        index = b.op(Op::Iadd, Type::I32, &[index, k]);
    }
    let base = b.var_addr(var, Space::Private);
    let place = |b: &mut Builder, k: u32| b.lea(base, None, 0, (first + k as i64 * ix.scale as i64) as i32);
    if d.op == Op::Store {
        for k in 0..n {
            let at = place(&mut b, k);
            let number = b.i32(k);
            let here = b.op(Op::Ieq, Type::I32, &[index, number]);
            let old = b.load(d.ty, mem(k), at);
            let new: SmallVec<[Value; 4]> =
                d.args[1..].iter().zip(old).map(|(&v, o)| b.select(here, v, o)).collect();
            b.store(d.ty, mem(k), at, &new);
        }
        return;
    }
    let mut level: Vec<SmallVec<[Value; 1]>> = (0..n)
        .map(|k| {
            let at = place(&mut b, k);
            b.load(d.ty, mem(k), at)
        })
        .collect();
    let mut bit = 1u32;
    while level.len() > 1 {
        let k = b.i32(bit);
        let masked = b.op(Op::And, Type::I32, &[index, k]);
        let zero = b.i32(0);
        let odd = b.op(Op::Ine, Type::I32, &[masked, zero]);
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [even, other] => even.iter().zip(other).map(|(&e, &o)| b.select(odd, o, e)).collect(),
                _ => pair[0].clone(),
            })
            .collect();
        bit <<= 1;
    }
    for (&r, &v) in d.results.iter().zip(&level[0]) {
        subst.set(r, v);
    }
}
