//! Definitions to where they are used: into the nearest block that dominates all uses, but never into a loop.
//!
//! What only one side of a branch needs is then computed only there, and values do not stay alive across code that
//! has nothing to do with them. Loads of memory that never changes are moved as well. Blocks are visited from the last
//! to the first, so whole expression trees move with their roots.
//!
//! Order inside a block is left to the scheduler of the target.

use crate::alias::{Addresses, Class};
use crate::graph::{Dom, Graph, Loops};
use kempe_ir::*;

pub fn run(m: &mut Module) -> bool {
    if m.func.layout.len() < 2 {
        return false;
    }
    let g = Graph::new(&m.func);
    let dom = Dom::new(&m.func, &g);
    let loops = Loops::new(&m.func, &g);
    let mut addr = Addresses::new(m);
    let f = &mut m.func;
    // The block that dominates all uses seen so far.
    let mut needed: Vec<Option<Block>> = vec![None; f.values.len()];
    let need = |needed: &mut Vec<Option<Block>>, v: Value, b: Block| {
        let n = &mut needed[v.index()];
        *n = Some(n.map_or(b, |a| dom.common(a, b)));
    };
    // What goes to the head of a block, last first.
    let mut incoming: Vec<Vec<Inst>> = vec![Vec::new(); f.blocks.len()];
    let mut changed = false;
    for at in (0..f.layout.len()).rev() {
        let b = f.layout[at];
        if let Term::Branch { cond, .. } = f.blocks[b].term {
            need(&mut needed, cond, b);
        }
        for t in f.blocks[b].term.targets() {
            for &a in &t.args {
                need(&mut needed, a, b);
            }
        }
        let mut stay: Vec<Inst> = Vec::with_capacity(f.blocks[b].insts.len());
        for n in (0..f.blocks[b].insts.len()).rev() {
            let i = f.blocks[b].insts[n];
            let to = destination(f, &mut addr, &g, &dom, &loops, b, i, &needed);
            for &a in &f.insts[i].args {
                need(&mut needed, a, to);
            }
            if to == b {
                stay.push(i);
            } else {
                incoming[to.index()].push(i);
                changed = true;
            }
        }
        stay.reverse();
        f.blocks[b].insts = stay;
    }
    if changed {
        for at in 0..f.layout.len() {
            let b = f.layout[at];
            let new = std::mem::take(&mut incoming[b.index()]);
            f.blocks[b].insts.splice(0..0, new.into_iter().rev());
        }
    }
    changed
}

#[allow(clippy::too_many_arguments)]
fn destination(
    f: &Function,
    addr: &mut Addresses,
    g: &Graph,
    dom: &Dom,
    loops: &Loops,
    b: Block,
    i: Inst,
    needed: &[Option<Block>],
) -> Block {
    let d = &f.insts[i];
    let movable = match d.op.effect() {
        Effect::Pure | Effect::Constant => true,
        Effect::Read => {
            !matches!(d.imm, Imm::Mem(mem) if mem.volatile)
                && matches!(addr.access(f, d), Some((Class::Constant, ..)))
        }
        _ => false,
    };
    if !movable {
        return b;
    }
    let mut to: Option<Block> = None;
    for r in &d.results {
        if let Some(n) = needed[r.index()] {
            to = Some(to.map_or(n, |t| dom.common(t, n)));
        }
    }
    let Some(mut to) = to else { return b };
    // Out of the loops that the definition is not in.
    while let Some(l) = loops.innermost(g.pos[to]) {
        if loops.contains(l, g.pos[b]) {
            break;
        }
        to = dom.idom(loops.list[l as usize].header);
    }
    debug_assert!(dom.dominates(b, to));
    to
}
