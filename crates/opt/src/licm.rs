//! Loop-invariant code to the block in front of the loop, cautiously.
//!
//! A value that moves out of a loop costs a register all through it. So only as many values move as keep the number
//! of values that live across the loop under [`MAX_ACROSS`]; what only other moved instructions need is free.
//! Operand-free values stay (`localise` puts them where they are used), and so do loads, except those of uniform
//! memory at constant offsets, which cannot fault when the loop is never entered.

use crate::graph::{Dom, Graph, Loops};
use crate::if_convert::speculation_cost;
use crate::localise::is_local;
use kempe_ir::*;

/// Values alive across a loop beyond which nothing more is moved out of it. The smallest register file in sight has
/// 16 registers a thread at the highest occupancy; twice that still leaves room at the next one.
const MAX_ACROSS: usize = 20;

pub fn run(m: &mut Module) -> bool {
    let f = &mut m.func;
    let g = Graph::new(f);
    let loops = Loops::new(f, &g);
    if loops.list.is_empty() {
        return false;
    }
    let dom = Dom::new(f, &g);
    // Position of the block that defines each value.
    let mut def_pos = vec![u32::MAX; f.values.len()];
    for (p, &b) in f.layout.iter().enumerate() {
        for &v in &f.blocks[b].params {
            def_pos[v.index()] = p as u32;
        }
        for &i in &f.blocks[b].insts {
            for &r in &f.insts[i].results {
                def_pos[r.index()] = p as u32;
            }
        }
    }
    let mut changed = false;
    // Inner loops first: what leaves one may leave the next.
    for l in (0..loops.list.len()).rev() {
        changed |= hoist(f, &g, &dom, &loops, l, &mut def_pos);
    }
    changed
}

fn hoist(f: &mut Function, g: &Graph, dom: &Dom, loops: &Loops, l: usize, def_pos: &mut Vec<u32>) -> bool {
    let lp = loops.list[l];
    let to = dom.idom(lp.header);
    let range: Vec<Block> = f.layout[lp.first as usize..=lp.last as usize].to_vec();
    let outside = |def_pos: &[u32], v: Value| def_pos[v.index()] < lp.first;
    // Values from outside that the loop uses already.
    let mut across: Vec<Value> = Vec::new();
    let mut invariant: Vec<Inst> = Vec::new();
    // Their results, with the index of the instruction.
    let mut is_invariant: Vec<(Value, usize)> = vec![];
    for &b in &range {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            for &a in &d.args {
                if outside(def_pos, a) && !local(f, a) {
                    across.push(a);
                }
            }
            let ok = !is_local(d)
                && !d.results.is_empty()
                && speculation_cost(f, d).is_some_and(|c| c > 0)
                && d.args.iter().all(|&a| {
                    outside(def_pos, a) || local(f, a) || is_invariant.iter().any(|&(x, _)| x == a)
                });
            if ok {
                invariant.push(i);
                is_invariant.extend(d.results.iter().copied().map(|r| (r, invariant.len() - 1)));
                if invariant.len() > 4 * MAX_ACROSS {
                    break;
                }
            }
        }
    }
    across.sort();
    across.dedup();
    let carried = f.blocks[lp.header].params.len();
    let mut room = MAX_ACROSS.saturating_sub(across.len() + carried);
    if room == 0 || invariant.is_empty() {
        return false;
    }
    // An invariant value counts when something that stays uses it.
    let mut used_inside = vec![false; invariant.len()];
    for &b in &range {
        let mut visit = |v: Value, by: Option<Inst>| {
            if by.is_none_or(|i| !invariant.contains(&i))
                && let Some(&(_, n)) = is_invariant.iter().find(|(x, _)| *x == v)
            {
                used_inside[n] = true;
            }
        };
        for &i in &f.blocks[b].insts {
            f.insts[i].args.iter().for_each(|&a| visit(a, Some(i)));
        }
        if let Term::Branch { cond, .. } = f.blocks[b].term {
            visit(cond, None);
        }
        for t in f.blocks[b].term.targets() {
            t.args.iter().for_each(|&a| visit(a, None));
        }
    }
    // Roots in order, with what they need.
    let mut moves = vec![false; invariant.len()];
    for n in 0..invariant.len() {
        if !used_inside[n] || moves[n] {
            continue;
        }
        if room == 0 {
            break;
        }
        // Every component of a load counts.
        room = room.saturating_sub(f.insts[invariant[n]].results.len());
        let mut work = vec![n];
        while let Some(n) = work.pop() {
            if std::mem::replace(&mut moves[n], true) {
                continue;
            }
            for &a in &f.insts[invariant[n]].args {
                if let Some(&(_, k)) = is_invariant.iter().find(|(x, _)| *x == a) {
                    work.push(k);
                }
            }
        }
    }
    let moved: Vec<Inst> = invariant.iter().zip(&moves).filter(|(_, m)| **m).map(|(&i, _)| i).collect();
    if moved.is_empty() {
        return false;
    }
    // Constants that they use go along as copies.
    let mut new: Vec<Inst> = Vec::new();
    for &i in &moved {
        for n in 0..f.insts[i].args.len() {
            let a = f.insts[i].args[n];
            if !outside(def_pos, a)
                && let Some(j) = f.def_inst(a)
                && is_local(&f.insts[j])
            {
                let mut d = f.insts[j].clone();
                d.results.clear();
                let ty = f.ty(a);
                let copy = f.make_inst(d, &[ty]);
                def_pos.push(g.pos[to]);
                new.push(copy);
                f.insts[i].args[n] = f.insts[copy].results[0];
            }
        }
        new.push(i);
        for r in &f.insts[i].results {
            def_pos[r.index()] = g.pos[to];
        }
    }
    for &b in &range {
        let Function { blocks, .. } = f;
        blocks[b].insts.retain(|i| !moved.contains(i));
    }
    f.blocks[to].insts.extend(new);
    true
}

fn local(f: &Function, v: Value) -> bool {
    f.def_inst(v).is_some_and(|i| is_local(&f.insts[i]))
}
