//! Full unrolling of loops whose trip count is known.
//!
//! The trip count is found by running the loop: the conditions of exits that every iteration passes are evaluated from
//! the constants that come into the header, iteration by iteration, so any step (`i += 2`, `i <<= 1`, a float) and any
//! comparison works. Only the slice of the body that these conditions need is evaluated; where it reaches a load or
//! anything else that is not constant, the exit is not used. The blocks are then copied in a row; other exits stay.
//! The last copy ends at the exit that is known to be taken, and later passes remove what is behind it.
//!
//! One run treats innermost loops (and outer ones whose inner loops stay rolled): the copies are simplified before the
//! next loop out is looked at.
//!
//! Left out: partial unrolling, peeling, loops whose trip count is only bounded.

use crate::demote::{demote_outside_uses, hoist_nullary};
use crate::graph::{Dom, Graph, Loops};
use crate::pipeline::Options;
use kempe_ir::eval::eval;
use kempe_ir::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Instructions that the copies of a loop may come to when it indexes a private array with a value of its own. Private
/// arrays live in scratch memory; every access that goes is worth many instructions.
const ARRAY_BUDGET: u32 = 4096;
/// The same when the source asks for unrolling, or the loop reads a table of constants or gives vertices. A wish: beyond this the
/// instructions that unrolling saves are few among those that stay.
const HINT_BUDGET: u32 = 1024;
/// The same for a loop around loops that stay: what they are is copied as well, and little of it simplifies.
const NESTED_BUDGET: u32 = 128;
/// Instructions in the function beyond which nothing is unrolled any more: bounds growth over nested loops.
const FUNCTION_LIMIT: usize = 30_000;
/// The same for loops that nothing forces: long code misses the instruction cache.
const PLAIN_LIMIT: usize = 2_000;
/// Iterations that are tried.
const MAX_TRIPS: u32 = 1024;
/// Instructions of the slice that the conditions depend on.
const MAX_SLICE: usize = 64;

pub fn run(m: &mut Module, options: &Options) -> bool {
    let mut changed = false;
    // Headers that were looked at.
    let mut done = vec![false; m.func.blocks.len()];
    loop {
        let g = Graph::new(&m.func);
        let loops = Loops::new(&m.func, &g);
        if loops.list.is_empty() {
            return changed;
        }
        let dom = Dom::new(&m.func, &g);
        let size: usize = m.func.layout.iter().map(|&b| m.func.blocks[b].insts.len()).sum();
        done.resize(m.func.blocks.len(), true);
        let mut unrolled = false;
        // Inner loops come after outer ones in the list.
        for l in (0..loops.list.len()).rev() {
            let header = loops.list[l].header;
            if std::mem::replace(&mut done[header.index()], true) {
                continue;
            }
            let Some(plan) = plan(m, options, &g, &dom, &loops, l as u32) else { continue };
            let limit = if plan.forced { FUNCTION_LIMIT } else { PLAIN_LIMIT };
            if size + plan.growth as usize > limit && plan.back_edges > 0 {
                continue;
            }
            if unroll(m, &g, &plan) {
                // Outer loops wait until the copies are simplified.
                let mut p = loops.list[l].parent;
                while let Some(q) = p {
                    done[loops.list[q as usize].header.index()] = true;
                    p = loops.list[q as usize].parent;
                }
                unrolled = true;
                changed = true;
                break;
            }
        }
        if !unrolled {
            return changed;
        }
    }
}

struct Plan {
    header: Block,
    /// Positions of the loop.
    first: u32,
    last: u32,
    /// How often the back edge is taken.
    back_edges: u32,
    growth: u32,
    /// The source asks for it, or memory goes away.
    forced: bool,
}

/// Instructions that become code.
fn cost(f: &Function, b: Block) -> u32 {
    let free = |i: &&Inst| {
        matches!(
            f.insts[**i].op,
            Op::Const | Op::Undef | Op::VarAddr | Op::ResourceAddr | Op::Uniform | Op::Builtin | Op::Bitcast
        )
    };
    (f.blocks[b].insts.len() - f.blocks[b].insts.iter().filter(free).count()) as u32 + 1
}

fn plan(m: &Module, options: &Options, g: &Graph, dom: &Dom, loops: &Loops, l: u32) -> Option<Plan> {
    let f = &m.func;
    let lp = loops.list[l as usize];
    let range = &f.layout[lp.first as usize..=lp.last as usize];
    let body: u32 = range.iter().map(|&b| cost(f, b)).sum();
    let hint = f.blocks[lp.header].loop_hint;
    let nested = loops.list.get(l as usize + 1).is_some_and(|inner| inner.first <= lp.last);
    let indexed = indexes(f, g, range, lp.header);
    let forced = indexed.is_some() || hint == LoopHint::Unroll;
    let budget = match (hint, indexed) {
        (LoopHint::DontUnroll, _) => body,
        (_, Some(Space::Private)) => ARRAY_BUDGET.max(options.unroll_budget),
        _ if options.keep_loops => body,
        _ if nested => NESTED_BUDGET.min(options.unroll_budget),
        (LoopHint::Unroll, _) | (_, Some(_)) => HINT_BUDGET.max(options.unroll_budget),
        _ => options.unroll_budget,
    };
    let most = (budget / body.max(1)).clamp(1, MAX_TRIPS);
    let back_edges = trips(f, g, dom, lp.header, range, most)?;
    let growth = back_edges * body;
    if back_edges > 0 && growth > budget {
        return None;
    }
    Some(Plan { header: lp.header, first: lp.first, last: lp.last, back_edges, growth, forced })
}

/// The space of memory (private before tables of constants) that the loop accesses at addresses which unrolling makes
/// constant: they follow from constants and from parameters of the header that do.
fn indexes(f: &Function, g: &Graph, range: &[Block], header: Block) -> Option<Space> {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Known {
        Always,
        Unrolled,
    }
    let latches: SmallVec<[crate::graph::Edge; 4]> =
        g.preds(header).iter().copied().filter(|e| g.is_back(e.from, header)).collect();
    let mut params: Vec<u16> = (0..f.blocks[header].params.len() as u16)
        .filter(|&n| initial(f, g, header, n).is_some() && latch_arg(f, &latches, n).is_some())
        .collect();
    // A parameter stays known when what comes back is: drop those for which it is not, and look again.
    loop {
        let mut known: FxHashMap<Value, Known> =
            params.iter().map(|&n| (f.blocks[header].params[n as usize], Known::Unrolled)).collect();
        let of = |known: &FxHashMap<Value, Known>, v: Value| {
            let outside = || {
                f.def_inst(v).is_some_and(|i| matches!(f.insts[i].op, Op::Const | Op::VarAddr | Op::Uniform))
            };
            known.get(&v).copied().or_else(|| outside().then_some(Known::Always))
        };
        let mut found = None;
        for &b in range {
            for &i in &f.blocks[b].insts {
                let d = &f.insts[i];
                if d.op.effect() == Effect::Pure && d.results.len() == 1 && d.op != Op::Undef {
                    let all = d.args.iter().map(|&a| of(&known, a)).collect::<Option<SmallVec<[Known; 4]>>>();
                    if let Some(all) = all {
                        known.insert(d.results[0], all.into_iter().max().unwrap_or(Known::Always));
                    }
                } else if let (Op::Load | Op::Store, Imm::Mem(mem)) = (d.op, d.imm)
                    && matches!(mem.space, Space::Private | Space::Constant)
                    && of(&known, d.args[0]) == Some(Known::Unrolled)
                    && found != Some(Space::Private)
                {
                    found = Some(mem.space);
                } else if found.is_none() && d.op == Op::EmitVertex {
                    // Where the vertex lies is known then.
                    found = Some(Space::Constant);
                }
            }
        }
        let before = params.len();
        params.retain(|&n| latch_arg(f, &latches, n).is_some_and(|v| of(&known, v).is_some()));
        if params.len() == before {
            return found;
        }
    }
}

/// The instructions that the conditions of the exits depend on, in order, and the parameters of the header.
struct Slice {
    insts: Vec<Inst>,
    params: Vec<u16>,
}

/// How often the back edge is taken, when at most `most` times.
fn trips(f: &Function, g: &Graph, dom: &Dom, header: Block, range: &[Block], most: u32) -> Option<u32> {
    let latches: SmallVec<[crate::graph::Edge; 4]> =
        g.preds(header).iter().copied().filter(|e| g.is_back(e.from, header)).collect();
    // Blocks from which a back edge can be reached without leaving the loop.
    let first = g.pos[header];
    let mut natural = vec![false; range.len()];
    let mut work: Vec<Block> = latches.iter().map(|e| e.from).collect();
    natural[0] = true;
    while let Some(b) = work.pop() {
        let n = (g.pos[b] - first) as usize;
        if std::mem::replace(&mut natural[n], true) {
            continue;
        }
        work.extend(g.preds(b).iter().map(|e| e.from));
    }
    let stays = |b: Block| {
        let p = g.pos[b];
        p >= first && natural.get((p - first) as usize).is_some_and(|&n| n)
    };
    // Exits that every iteration passes: the condition and when it leaves.
    let mut exits: Vec<(Value, bool)> = Vec::new();
    for &b in range {
        let Term::Branch { cond, then, els } = &f.blocks[b].term else { continue };
        // A back edge stays too, to its own header.
        let (t, e) = (stays(then.block), stays(els.block));
        if t != e && stays(b) && latches.iter().all(|l| dom.dominates(b, l.from)) {
            exits.push((*cond, !t));
        }
    }
    exits.retain(|&(cond, _)| slice_of(f, g, header, &latches, cond, &mut None).is_some());
    if exits.is_empty() {
        return None;
    }
    let mut slice = Some(Slice { insts: Vec::new(), params: Vec::new() });
    for &(cond, _) in &exits {
        slice_of(f, g, header, &latches, cond, &mut slice)?;
    }
    let slice = slice?;
    let mut known: FxHashMap<Value, u64> = FxHashMap::default();
    for &n in &slice.params {
        known.insert(f.blocks[header].params[n as usize], initial(f, g, header, n)?);
    }
    for trip in 0..=most {
        for &i in &slice.insts {
            let d = &f.insts[i];
            let args: SmallVec<[u64; 4]> = d
                .args
                .iter()
                .map(|a| f.as_const(*a).or_else(|| known.get(a).copied()))
                .collect::<Option<_>>()?;
            let from = d.args.first().map_or(d.ty, |&a| f.ty(a));
            known.insert(d.results[0], eval(d.op, d.ty, from, d.imm, &args)?);
        }
        let value =
            |v: Value, known: &FxHashMap<Value, u64>| f.as_const(v).or_else(|| known.get(&v).copied());
        for &(cond, leaves) in &exits {
            if (value(cond, &known)? & 1 != 0) == leaves {
                return Some(trip);
            }
        }
        let next: Option<SmallVec<[u64; 8]>> =
            slice.params.iter().map(|&n| value(latch_arg(f, &latches, n)?, &known)).collect();
        for (&n, v) in slice.params.iter().zip(next?) {
            known.insert(f.blocks[header].params[n as usize], v);
        }
    }
    None
}

/// The constant that every way into the loop passes to a parameter.
fn initial(f: &Function, g: &Graph, header: Block, n: u16) -> Option<u64> {
    let mut value = None;
    for &e in g.preds(header) {
        if g.is_back(e.from, header) {
            continue;
        }
        let bits = f.as_const(crate::graph::edge_target(f, e).args[n as usize])?;
        if value.is_some_and(|v| v != bits) {
            return None;
        }
        value = Some(bits);
    }
    value
}

/// What all back edges pass to a parameter.
fn latch_arg(f: &Function, latches: &[crate::graph::Edge], n: u16) -> Option<Value> {
    let mut args = latches.iter().map(|&e| crate::graph::edge_target(f, e).args[n as usize]);
    let first = args.next()?;
    args.all(|a| a == first).then_some(first)
}

/// Adds what a value depends on to the slice; `None` when that is not only constants and parameters of the header.
fn slice_of(
    f: &Function,
    g: &Graph,
    header: Block,
    latches: &[crate::graph::Edge],
    v: Value,
    slice: &mut Option<Slice>,
) -> Option<()> {
    let mut local = slice.take().unwrap_or(Slice { insts: Vec::new(), params: Vec::new() });
    enum Step {
        Visit(Value),
        Emit(Inst),
    }
    let mut work = vec![Step::Visit(v)];
    while let Some(step) = work.pop() {
        match step {
            Step::Emit(i) => {
                if !local.insts.contains(&i) {
                    local.insts.push(i);
                }
            }
            Step::Visit(v) => {
                if f.as_const(v).is_some() {
                    continue;
                }
                match f.values[v].def {
                    ValueDef::Param(b, n) => {
                        if b != header {
                            return None;
                        }
                        if !local.params.contains(&n) {
                            initial(f, g, header, n)?;
                            local.params.push(n);
                            work.push(Step::Visit(latch_arg(f, latches, n)?));
                        }
                    }
                    ValueDef::Inst(i, _) => {
                        let d = &f.insts[i];
                        if d.op.effect() != Effect::Pure || d.op == Op::Undef || d.results.len() != 1 {
                            return None;
                        }
                        if local.insts.contains(&i) {
                            continue;
                        }
                        if local.insts.len() + work.len() > 4 * MAX_SLICE || local.insts.len() > MAX_SLICE {
                            return None;
                        }
                        work.push(Step::Emit(i));
                        work.extend(d.args.iter().map(|&a| Step::Visit(a)));
                    }
                }
            }
        }
    }
    *slice = Some(local);
    Some(())
}

fn unroll(m: &mut Module, g: &Graph, plan: &Plan) -> bool {
    let range: Vec<Block> = m.func.layout[plan.first as usize..=plan.last as usize].to_vec();
    hoist_nullary(&mut m.func, &range);
    let (first, last) = (plan.first, plan.last);
    let inside = |b: Block| {
        let p = g.pos[b];
        first <= p && p <= last
    };
    if !demote_outside_uses(m, &inside) {
        return false;
    }
    let f = &mut m.func;
    f.blocks[plan.header].loop_hint = LoopHint::None;
    let dead = f.add_block_detached();
    let mut layout = f.layout[..=last as usize].to_vec();
    // Copies of the original, each entered by the back edges of the one before.
    let mut copies: Vec<Vec<Block>> = vec![range.clone()];
    for _ in 0..plan.back_edges {
        let copy = clone_blocks(f, &range, g);
        layout.extend(&copy);
        copies.push(copy);
    }
    for (n, copy) in copies.iter().enumerate() {
        let next = copies.get(n + 1).map(|c| c[0]);
        for &b in copy {
            for t in f.blocks[b].term.targets_mut() {
                if t.block == copy[0] {
                    match next {
                        Some(h) => t.block = h,
                        None => {
                            t.block = dead;
                            t.args.clear();
                        }
                    }
                }
            }
        }
    }
    layout.push(dead);
    layout.extend(&f.layout[last as usize + 1..]);
    f.layout = layout;
    crate::graph::prune_unreachable(f);
    crate::graph::repair_loops(f);
    true
}

/// Copies the blocks; edges between them lead to the copies, others to where they led.
fn clone_blocks(f: &mut Function, range: &[Block], g: &Graph) -> Vec<Block> {
    let first = g.pos[range[0]];
    let copy: Vec<Block> = range.iter().map(|_| f.add_block_detached()).collect();
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    for (&b, &c) in range.iter().zip(&copy) {
        for p in f.blocks[b].params.clone() {
            let ty = f.ty(p);
            map.insert(p, f.add_param(c, ty));
        }
        for n in 0..f.blocks[b].insts.len() {
            let i = f.blocks[b].insts[n];
            let mut d = f.insts[i].clone();
            let results = std::mem::take(&mut d.results);
            let types: SmallVec<[Type; 4]> = results.iter().map(|&r| f.ty(r)).collect();
            let j = f.make_inst(d, &types);
            for (k, r) in results.into_iter().enumerate() {
                let to = f.insts[j].results[k];
                map.insert(r, to);
            }
            f.blocks[c].insts.push(j);
        }
    }
    let get = |v: Value| map.get(&v).copied().unwrap_or(v);
    for (&b, &c) in range.iter().zip(&copy) {
        for n in 0..f.blocks[c].insts.len() {
            let i = f.blocks[c].insts[n];
            for a in f.insts[i].args.iter_mut() {
                *a = get(*a);
            }
        }
        let mut term = f.blocks[b].term.clone();
        if let Term::Branch { cond, .. } = &mut term {
            *cond = get(*cond);
        }
        for t in term.targets_mut() {
            for a in t.args.iter_mut() {
                *a = get(*a);
            }
            let p = g.pos[t.block];
            if p >= first && ((p - first) as usize) < range.len() {
                t.block = copy[(p - first) as usize];
            }
        }
        let (hint, loc, lh) = (f.blocks[b].branch_hint, f.blocks[b].term_loc, f.blocks[b].loop_hint);
        let d = &mut f.blocks[c];
        (d.term, d.branch_hint, d.term_loc, d.loop_hint) = (term, hint, loc, lh);
    }
    copy
}
