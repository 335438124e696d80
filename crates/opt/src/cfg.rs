//! Dead control flow: constant branches, unreachable blocks, empty blocks, threaded jumps, chains, parameters that
//! always carry the same value.
//!
//! The layout stays valid without being recomputed:
//! * an edge P→E→S becomes P→S only when E is no loop header (S would be entered past the header) and E→S is no back
//!   edge (a loop keeps its latch, so that it stays contiguous and has few back edges);
//! * a block merged with its only successor moves to the successor's place: its predecessors all come before it
//!   anyway, and if it is a loop header the two are neighbours;
//! * when a back edge goes away, `repair_loops` looks whether the loop now ends inside another.
//!
//! Left out: merging equal tails, threading through blocks that compute something.

use crate::dce::retain_params;
use crate::graph::{Edge, Graph, edge_target, edge_target_mut, prune_unreachable, repair_loops};
use crate::subst::Subst;
use kempe_ir::*;
use smallvec::SmallVec;

pub fn run(m: &mut Module) -> bool {
    let f = &mut m.func;
    let mut changed = fold_branches(f);
    let mut pruned = changed && prune_unreachable(f);
    changed |= redundant_params(f);
    if thread(f) {
        changed = true;
        fold_branches(f);
        pruned |= prune_unreachable(f);
        redundant_params(f);
    }
    changed |= merge_chains(f);
    if pruned || changed {
        repair_loops(f);
    }
    changed
}

fn jump_of(f: &Function, b: Block) -> Option<&Target> {
    match &f.blocks[b].term {
        Term::Jump(t) => Some(t),
        _ => None,
    }
}

/// The block does nothing and ends as `Return` or `Unreachable`.
fn empty_end(f: &Function, b: Block) -> Option<&Term> {
    let d = &f.blocks[b];
    (d.insts.is_empty() && matches!(d.term, Term::Return | Term::Unreachable)).then_some(&d.term)
}

/// Branches with a known condition, with one destination, or where one side is never taken.
fn fold_branches(f: &mut Function) -> bool {
    let mut changed = false;
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        let Term::Branch { cond, ref then, ref els } = f.blocks[b].term else {
            if let Some(t) = jump_of(f, b)
                && matches!(empty_end(f, t.block), Some(Term::Unreachable))
                && f.blocks[b].insts.is_empty()
            {
                f.blocks[b].term = Term::Unreachable;
                changed = true;
            }
            continue;
        };
        let known = match f.as_const(cond) {
            Some(bits) => Some(bits & 1 != 0),
            None if matches!(f.def_inst(cond).map(|i| f.insts[i].op), Some(Op::Undef)) => Some(false),
            None if matches!(empty_end(f, then.block), Some(Term::Unreachable)) => Some(false),
            None if matches!(empty_end(f, els.block), Some(Term::Unreachable)) => Some(true),
            None => None,
        };
        let new = if let Some(k) = known {
            Term::Jump(if k { then.clone() } else { els.clone() })
        } else if then == els {
            Term::Jump(then.clone())
        } else if then.block == els.block {
            let (then, els) = (then.clone(), els.clone());
            Term::Jump(select_args(f, b, cond, &then, &els))
        } else if let (Some(Term::Return), Some(Term::Return)) =
            (empty_end(f, then.block), empty_end(f, els.block))
        {
            Term::Return
        } else {
            continue;
        };
        f.blocks[b].term = new;
        f.blocks[b].branch_hint = BranchHint::None;
        changed = true;
    }
    changed
}

/// One target instead of two with different arguments: the arguments are selected at the end of `b`.
pub fn select_args(f: &mut Function, b: Block, cond: Value, then: &Target, els: &Target) -> Target {
    let loc = f.blocks[b].term_loc;
    let mut args = SmallVec::new();
    for (&x, &y) in then.args.iter().zip(&els.args) {
        args.push(if x == y {
            x
        } else {
            let mut bld = Builder::new(f, b);
            bld.loc = loc;
            bld.select(cond, x, y)
        });
    }
    Target { block: then.block, args }
}

/// Parameters that carry one value whatever way control comes, and parameters that always equal another one.
pub fn redundant_params(f: &mut Function) -> bool {
    if f.layout.iter().all(|&b| f.blocks[b].params.is_empty()) {
        return false;
    }
    let g = Graph::new(f);
    // For every parameter the parameters that it is an argument of.
    let n = f.values.len();
    let mut start = vec![0u32; n + 1];
    let is_param = |f: &Function, v: Value| matches!(f.values[v].def, ValueDef::Param(..));
    let edges = |f: &Function, visit: &mut dyn FnMut(Value, Value)| {
        for &b in &f.layout {
            for t in f.blocks[b].term.targets() {
                for (&a, &p) in t.args.iter().zip(&f.blocks[t.block].params) {
                    if is_param(f, a) && a != p {
                        visit(a, p);
                    }
                }
            }
        }
    };
    edges(f, &mut |a, _| start[a.index() + 1] += 1);
    for i in 0..n {
        start[i + 1] += start[i];
    }
    let mut fill = start.clone();
    let mut users = vec![Value(0); start[n] as usize];
    edges(f, &mut |a, p| {
        users[fill[a.index()] as usize] = p;
        fill[a.index()] += 1;
    });

    let mut subst = Subst::new(f);
    let mut gone = vec![false; n];
    let mut work: Vec<Value> =
        f.layout.iter().rev().flat_map(|&b| f.blocks[b].params.iter().rev()).copied().collect();
    let mut new_consts: Vec<(Block, Inst)> = Vec::new();
    while let Some(p) = work.pop() {
        if gone[p.index()] {
            continue;
        }
        let ValueDef::Param(b, k) = f.values[p].def else { continue };
        let Some(same) = common_arg(f, &g, &mut subst, p, b, k as usize) else { continue };
        let to = match same {
            Same::Value(v) => v,
            Same::Const(bits) => {
                let ty = f.ty(p);
                let data = InstData {
                    op: Op::Const,
                    ty,
                    flags: Flags::NONE,
                    imm: Imm::Int(bits),
                    args: SmallVec::new(),
                    results: SmallVec::new(),
                    loc: Loc(0),
                };
                let i = f.make_inst(data, &[ty]);
                new_consts.push((b, i));
                f.insts[i].results[0]
            }
        };
        subst.set(p, to);
        gone[p.index()] = true;
        work.extend(
            users[start[p.index()] as usize..start[p.index() + 1] as usize]
                .iter()
                .filter(|u| !gone[u.index()]),
        );
    }
    for &(b, i) in new_consts.iter().rev() {
        f.blocks[b].insts.insert(0, i);
    }
    equal_params(f, &g, &mut subst, &mut gone);
    if subst.is_empty() {
        return false;
    }
    drop_params(f, &gone);
    subst.apply(f);
    true
}

enum Same {
    Value(Value),
    Const(u64),
}

fn common_arg(f: &Function, g: &Graph, subst: &mut Subst, p: Value, b: Block, k: usize) -> Option<Same> {
    let mut same: Option<Value> = None;
    let mut exact = true;
    for &e in g.preds(b) {
        let a = subst.get(edge_target(f, e).args[k]);
        if a == p {
            continue;
        }
        match same {
            None => same = Some(a),
            Some(s) if s == a => {}
            Some(s) => match (f.as_const(s), f.as_const(a)) {
                (Some(x), Some(y)) if x == y => exact = false,
                _ => return None,
            },
        }
    }
    let s = same?;
    if exact {
        return Some(Same::Value(s));
    }
    f.as_const(s).map(Same::Const)
}

/// Parameters of one block that get the same arguments on every edge.
fn equal_params(f: &Function, g: &Graph, subst: &mut Subst, gone: &mut [bool]) {
    let mut columns: Vec<(SmallVec<[Value; 4]>, Value)> = Vec::new();
    for &b in &f.layout {
        if f.blocks[b].params.len() < 2 {
            continue;
        }
        columns.clear();
        for (k, &p) in f.blocks[b].params.iter().enumerate() {
            if gone[p.index()] {
                continue;
            }
            // A parameter that comes back unchanged is written as the block's first parameter slot of its own:
            // two such columns are equal when their other entries are.
            let column = g
                .preds(b)
                .iter()
                .map(|&e| {
                    let a = subst.get(edge_target(f, e).args[k]);
                    if a == p { Value(u32::MAX) } else { a }
                })
                .collect();
            columns.push((column, p));
        }
        columns.sort();
        for i in 1..columns.len() {
            if columns[i].0 == columns[i - 1].0 {
                let (keep, drop) = (columns[i - 1].1, columns[i].1);
                if f.ty(keep) == f.ty(drop) {
                    subst.set(drop, keep);
                    gone[drop.index()] = true;
                    // The next equal column compares with, and is replaced by, the one that stays.
                    columns[i].1 = keep;
                }
            }
        }
    }
}

/// Removes marked parameters and their arguments.
fn drop_params(f: &mut Function, gone: &[bool]) {
    let mut keep: Vec<Option<Vec<bool>>> = vec![None; f.blocks.len()];
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        let is_gone = |p: &Value| gone.get(p.index()).is_some_and(|&g| g);
        if f.blocks[b].params.iter().any(is_gone) {
            let flags: Vec<bool> = f.blocks[b].params.iter().map(|p| !is_gone(p)).collect();
            retain_params(f, b, &flags);
            keep[b.index()] = Some(flags);
        }
    }
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        for t in f.blocks[b].term.targets_mut() {
            if let Some(flags) = &keep[t.block.index()] {
                let mut n = 0;
                t.args.retain(|_| {
                    n += 1;
                    flags[n - 1]
                });
            }
        }
    }
}

/// Sends edges past blocks that do nothing, and past blocks that only branch on a parameter where the edge knows it.
fn thread(f: &mut Function) -> bool {
    let g = Graph::new(f);
    let outside = used_outside(f);
    let entry = f.layout.first().copied();
    let mut changed = false;
    // Later blocks first: a chain of empty blocks then collapses in one sweep.
    for at in (0..f.layout.len()).rev() {
        let e = f.layout[at];
        if Some(e) == entry || !f.blocks[e].insts.is_empty() || g.is_loop_header(e) {
            continue;
        }
        if f.blocks[e].params.iter().any(|p| outside[p.index()]) {
            continue;
        }
        match f.blocks[e].term.clone() {
            Term::Jump(to) => {
                if g.is_back(e, to.block) || to.block == e {
                    continue;
                }
                for &p in g.preds(e) {
                    changed |= redirect(f, p, e, &to);
                }
            }
            Term::Branch { cond, then, els } => {
                let ValueDef::Param(b, k) = f.values[cond].def else { continue };
                if b != e || g.is_back(e, then.block) || g.is_back(e, els.block) {
                    continue;
                }
                for &p in g.preds(e) {
                    let t = edge_target(f, p);
                    if t.block != e {
                        continue;
                    }
                    let Some(bits) = f.as_const(t.args[k as usize]) else { continue };
                    changed |= redirect(f, p, e, if bits & 1 != 0 { &then } else { &els });
                }
            }
            Term::Return | Term::Unreachable => {}
        }
    }
    changed
}

/// The edge `p` leads to `via` (unless it was changed since) and shall lead to `to`, written in terms of `via`.
fn redirect(f: &mut Function, p: Edge, via: Block, to: &Target) -> bool {
    let old = edge_target(f, p);
    if old.block != via {
        return false;
    }
    let args = to
        .args
        .iter()
        .map(|&a| match f.values[a].def {
            ValueDef::Param(b, n) if b == via => old.args[n as usize],
            _ => a,
        })
        .collect();
    *edge_target_mut(f, p) = Target { block: to.block, args };
    true
}

/// Parameters with a use beyond the end of their own block.
fn used_outside(f: &Function) -> Vec<bool> {
    let mut outside = vec![false; f.values.len()];
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            for &a in &f.insts[i].args {
                outside[a.index()] = true;
            }
        }
        let term = &f.blocks[b].term;
        let mut visit = |a: Value| {
            if !matches!(f.values[a].def, ValueDef::Param(d, _) if d == b) {
                outside[a.index()] = true;
            }
        };
        if let Term::Branch { cond, .. } = term {
            visit(*cond);
        }
        for t in term.targets() {
            t.args.iter().for_each(|&a| visit(a));
        }
    }
    outside
}

/// Merges a block with its only successor when that has no other predecessor.
fn merge_chains(f: &mut Function) -> bool {
    let g = Graph::new(f);
    let n = f.layout.len();
    let mut slots: Vec<Option<Block>> = f.layout.iter().map(|&b| Some(b)).collect();
    let mut subst = Subst::new(f);
    let mut changed = false;
    for at in 0..n {
        let Some(b) = slots[at] else { continue };
        let Some(t) = jump_of(f, b) else { continue };
        let next = t.block;
        if next == b || g.preds(next).len() != 1 || g.is_back(b, next) {
            continue;
        }
        let args = t.args.clone();
        for (k, a) in args.into_iter().enumerate() {
            let p = f.blocks[next].params[k];
            subst.set(p, a);
        }
        let tail = std::mem::take(&mut f.blocks[next].insts);
        let term = std::mem::replace(&mut f.blocks[next].term, Term::Unreachable);
        let (hint, loc) = (f.blocks[next].branch_hint, f.blocks[next].term_loc);
        f.blocks[next].params.clear();
        let d = &mut f.blocks[b];
        if d.insts.is_empty() {
            d.insts = tail;
        } else {
            d.insts.extend(tail);
        }
        d.term = term;
        d.branch_hint = hint;
        d.term_loc = loc;
        slots[at] = None;
        slots[g.pos[next] as usize] = Some(b);
        changed = true;
    }
    if changed {
        f.layout = slots.into_iter().flatten().collect();
        subst.apply(f);
    }
    changed
}
