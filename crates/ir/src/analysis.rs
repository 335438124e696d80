//! Facts about the control flow of a function, and who uses what.
//!
//! The layout rules (head of [`crate::module`]) make most of this one pass over the blocks: forward edges only go
//! forward, so the dominator of a block is known when all earlier blocks have theirs; back edges only go to headers
//! that dominate their source, so they change nothing (Cooper, Harvey and Kennedy, "A simple, fast dominance
//! algorithm", 2001, with the order given). Post-dominators are iterated, because loops have no such order backward.
//!
//! Nothing here panics on a function that breaks the rules: the verifier uses these tables to say so. Positions are
//! indices into the layout; `Cfg` numbers blocks by position throughout.

use crate::entity::{Entity, Table};
use crate::module::{Block, Function, Inst, Value};
use smallvec::SmallVec;

/// Position of no block.
pub const NONE: u32 = u32::MAX;

/// Predecessors, successors, dominators and loops by position in the layout.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// Position by block, [`NONE`] for blocks that are not in the layout.
    pub pos: Table<Block, u32>,
    /// Predecessors (each edge once, so a block whose both branches go here occurs twice).
    pub preds: Vec<SmallVec<[u32; 4]>>,
    /// Successors, in the order of the terminator.
    pub succs: Vec<SmallVec<[u32; 2]>>,
    /// Immediate dominator; [`NONE`] for the entry and unreachable blocks.
    pub idom: Vec<u32>,
    /// Loops, outer before inner.
    pub loops: Vec<Loop>,
    /// Innermost loop of a block: index into `loops`, or [`NONE`].
    pub loop_of: Vec<u32>,
}

/// A loop: contiguous positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    pub header: u32,
    /// Position of the last block with an edge back to the header.
    pub last: u32,
    /// Enclosing loop, or [`NONE`].
    pub parent: u32,
    /// 1 for an outermost loop.
    pub depth: u32,
}

impl Cfg {
    pub fn new(func: &Function) -> Cfg {
        let n = func.layout.len();
        let pos = func.order();
        let mut preds = vec![SmallVec::new(); n];
        let mut succs = vec![SmallVec::new(); n];
        for (i, &b) in func.layout.iter().enumerate() {
            for t in func.blocks[b].term.targets() {
                // Edges to blocks outside of the layout are the verifier's business.
                let to = if t.block.index() < pos.len() { pos[t.block] } else { NONE };
                if to != NONE {
                    succs[i].push(to);
                    preds[to as usize].push(i as u32);
                }
            }
        }
        let idom = dominators(&preds);
        let (loops, loop_of) = loops(&preds);
        Cfg { pos, preds, succs, idom, loops, loop_of }
    }

    pub fn len(&self) -> usize {
        self.succs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.succs.is_empty()
    }

    /// Every path from the entry to `b` goes through `a`.
    pub fn dominates(&self, a: u32, mut b: u32) -> bool {
        // The dominator of a block stands before it, so the walk ends.
        while b > a && b != NONE {
            b = self.idom[b as usize];
        }
        a == b
    }

    /// Reachable from the entry (by forward edges, which is enough when headers dominate their loops).
    pub fn reachable(&self, b: u32) -> bool {
        b == 0 || self.idom[b as usize] != NONE
    }

    /// An edge that goes back to a loop header.
    pub fn is_back_edge(&self, from: u32, to: u32) -> bool {
        to <= from
    }

    /// How many loops a block is in.
    pub fn depth(&self, b: u32) -> u32 {
        match self.loop_of[b as usize] {
            NONE => 0,
            l => self.loops[l as usize].depth,
        }
    }

    /// The loop that a block heads.
    pub fn loop_at(&self, header: u32) -> Option<&Loop> {
        self.loops.iter().find(|l| l.header == header)
    }

    /// Immediate post-dominator by position, [`NONE`] where only the end of the program post-dominates.
    ///
    /// A loop that never ends is treated as if its last block could leave the program.
    pub fn post_dominators(&self) -> Vec<u32> {
        let n = self.len();
        // Post-order of the reverse graph from the exits; numbers grow toward the exits.
        let mut number = vec![NONE; n];
        let mut order: Vec<u32> = Vec::with_capacity(n);
        let mut seen = vec![false; n];
        let mut exits = vec![false; n];
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let mut visit = |from: u32, seen: &mut Vec<bool>, order: &mut Vec<u32>| {
            if std::mem::replace(&mut seen[from as usize], true) {
                return;
            }
            stack.push((from, 0));
            while let Some((b, next)) = stack.last_mut() {
                match self.preds[*b as usize].get(*next) {
                    Some(&p) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[p as usize], true) {
                            stack.push((p, 0));
                        }
                    }
                    None => {
                        order.push(*b);
                        stack.pop();
                    }
                }
            }
        };
        for b in (0..n as u32).rev() {
            if self.succs[b as usize].is_empty() {
                exits[b as usize] = true;
                visit(b, &mut seen, &mut order);
            }
        }
        for b in (0..n as u32).rev() {
            if !seen[b as usize] {
                exits[b as usize] = true;
                visit(b, &mut seen, &mut order);
            }
        }
        for (i, &b) in order.iter().enumerate() {
            number[b as usize] = i as u32;
        }
        // The virtual exit has number n.
        let root = n as u32;
        let mut ipdom = vec![NONE; n];
        let num = |b: u32| if b == root { root } else { number[b as usize] };
        let mut changed = true;
        while changed {
            changed = false;
            for &b in order.iter().rev() {
                let mut new = if exits[b as usize] { root } else { NONE };
                for &s in &self.succs[b as usize] {
                    if ipdom[s as usize] == NONE {
                        continue;
                    }
                    if new == NONE {
                        new = s;
                        continue;
                    }
                    let (mut x, mut y) = (new, s);
                    while x != y {
                        while num(x) < num(y) {
                            x = ipdom[x as usize];
                        }
                        while num(y) < num(x) {
                            y = ipdom[y as usize];
                        }
                    }
                    new = x;
                }
                if new != NONE && ipdom[b as usize] != new {
                    ipdom[b as usize] = new;
                    changed = true;
                }
            }
        }
        for p in &mut ipdom {
            if *p == root {
                *p = NONE;
            }
        }
        ipdom
    }
}

fn dominators(preds: &[SmallVec<[u32; 4]>]) -> Vec<u32> {
    let mut idom = vec![NONE; preds.len()];
    for b in 1..preds.len() as u32 {
        let mut new = NONE;
        for &p in preds[b as usize].iter().filter(|&&p| p < b) {
            if p != 0 && idom[p as usize] == NONE {
                continue;
            }
            if new == NONE {
                new = p;
                continue;
            }
            let (mut x, mut y) = (new, p);
            while x != y {
                if x > y {
                    x = idom[x as usize];
                } else {
                    y = idom[y as usize];
                }
            }
            new = x;
        }
        idom[b as usize] = new;
    }
    idom
}

fn loops(preds: &[SmallVec<[u32; 4]>]) -> (Vec<Loop>, Vec<u32>) {
    let n = preds.len();
    let mut loops: Vec<Loop> = Vec::new();
    let mut loop_of = vec![NONE; n];
    let mut open: Vec<u32> = Vec::new();
    for b in 0..n as u32 {
        while open.last().is_some_and(|&l| loops[l as usize].last < b) {
            open.pop();
        }
        if let Some(&last) = preds[b as usize].iter().filter(|&&p| p >= b).max() {
            let parent = open.last().copied().unwrap_or(NONE);
            open.push(loops.len() as u32);
            loops.push(Loop { header: b, last, parent, depth: open.len() as u32 });
        }
        loop_of[b as usize] = open.last().copied().unwrap_or(NONE);
    }
    (loops, loop_of)
}

/// A use of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    /// Operand number `.1` of an instruction.
    Inst(Inst, u16),
    /// Condition of the branch at the end of a block.
    Cond(Block),
    /// Argument number `.2` of edge number `.1` (0 or 1) out of a block.
    Arg(Block, u8, u16),
}

/// The uses of every value by the blocks in the layout, in layout order.
#[derive(Clone, Debug)]
pub struct Uses {
    start: Vec<u32>,
    users: Vec<User>,
}

impl Uses {
    pub fn new(func: &Function) -> Uses {
        let n = func.values.len();
        let mut start = vec![0u32; n + 2];
        for_each_use(func, |v, _| {
            if let Some(c) = start.get_mut(v.index() + 2) {
                *c += 1;
            }
        });
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut users = vec![User::Cond(Block(0)); *start.last().unwrap_or(&0) as usize];
        for_each_use(func, |v, u| {
            if v.index() < n {
                let at = &mut start[v.index() + 1];
                users[*at as usize] = u;
                *at += 1;
            }
        });
        Uses { start, users }
    }

    pub fn of(&self, v: Value) -> &[User] {
        &self.users[self.start[v.index()] as usize..self.start[v.index() + 1] as usize]
    }

    pub fn count(&self, v: Value) -> usize {
        self.of(v).len()
    }
}

/// Calls `f` for every use, in layout order.
pub fn for_each_use(func: &Function, mut f: impl FnMut(Value, User)) {
    for &b in &func.layout {
        let data = &func.blocks[b];
        for &i in &data.insts {
            for (n, &v) in func.insts[i].args.iter().enumerate() {
                f(v, User::Inst(i, n as u16));
            }
        }
        if let crate::module::Term::Branch { cond, .. } = data.term {
            f(cond, User::Cond(b));
        }
        for (e, t) in data.term.targets().enumerate() {
            for (n, &v) in t.args.iter().enumerate() {
                f(v, User::Arg(b, e as u8, n as u16));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;
    use crate::types::Type;

    /// Blocks from a list of successors.
    fn graph(edges: &[&[u32]]) -> Function {
        let mut f = Function::default();
        for _ in edges {
            f.add_block();
        }
        for (i, e) in edges.iter().enumerate() {
            let mut b = Builder::new(&mut f, Block(i as u32));
            match *e {
                [] => b.ret(),
                [t] => b.jump(Block(*t), &[]),
                [t, u, ..] => {
                    let c = b.bool(true);
                    b.branch(c, Block(*t), Block(*u));
                }
            }
        }
        f
    }

    #[test]
    fn diamond_in_a_loop() {
        // 0 -> 1(header) -> 2 | 5; 2 -> 3 | 4; 3 -> 4; 4 -> 1; 5 ends.
        let f = graph(&[&[1], &[2, 5], &[3, 4], &[4], &[1], &[]]);
        let c = Cfg::new(&f);
        assert_eq!(c.idom, [NONE, 0, 1, 2, 2, 1]);
        assert_eq!(c.post_dominators(), [1, 5, 4, 4, 1, NONE]);
        assert_eq!(c.loops, [Loop { header: 1, last: 4, parent: NONE, depth: 1 }]);
        assert_eq!(c.loop_of, [NONE, 0, 0, 0, 0, NONE]);
        assert!(c.dominates(1, 4) && !c.dominates(3, 4) && c.dominates(4, 4));
        assert_eq!(c.depth(3), 1);
    }

    #[test]
    fn nested_loops_and_early_return() {
        // 1 outer header, 2 inner header, 3 inner latch, 4 return, 5 outer latch, 6 after.
        let f = graph(&[&[1], &[2], &[3], &[2, 4], &[5, 6], &[1, 7], &[], &[]]);
        let c = Cfg::new(&f);
        assert_eq!(
            c.loops,
            [
                Loop { header: 1, last: 5, parent: NONE, depth: 1 },
                Loop { header: 2, last: 3, parent: 0, depth: 2 }
            ]
        );
        let p = c.post_dominators();
        assert_eq!(p[3], 4);
        assert_eq!(p[4], NONE);
        assert_eq!(p[1], 2);
    }

    #[test]
    fn a_loop_without_end() {
        let f = graph(&[&[1, 3], &[2], &[1], &[]]);
        let p = Cfg::new(&f).post_dominators();
        assert_eq!(p, [NONE, 2, NONE, NONE]);
    }

    #[test]
    fn malformed_functions_do_not_panic() {
        let f = Function::default();
        assert!(Cfg::new(&f).post_dominators().is_empty());
        // Entry with predecessors, unreachable block, irreducible jump into a loop.
        let f = graph(&[&[2, 3], &[0, 3], &[3, 1], &[2, 0], &[4]]);
        let c = Cfg::new(&f);
        c.post_dominators();
        assert!(!c.reachable(4));
    }

    #[test]
    fn uses_in_order() {
        let mut f = Function::default();
        let b0 = f.add_block();
        let b1 = f.add_block();
        let p = f.add_param(b1, Type::I32);
        let mut b = Builder::new(&mut f, b0);
        let x = b.i32(1);
        let y = b.op(crate::ops::Op::Iadd, Type::I32, &[x, x]);
        b.jump(b1, &[y]);
        let mut b = Builder::new(&mut f, b1);
        b.op(crate::ops::Op::Iadd, Type::I32, &[p, x]);
        b.ret();
        let u = Uses::new(&f);
        assert_eq!(u.of(x), [User::Inst(Inst(1), 0), User::Inst(Inst(1), 1), User::Inst(Inst(2), 1)]);
        assert_eq!(u.of(y), [User::Arg(b0, 0, 0)]);
        assert_eq!(u.count(p), 1);
    }
}
