//! Symbolic values for judging code: shared expressions, what a place is known to hold, and dominance.
//!
//! Two programs are executed with symbols for values; equal expressions have the same [`Term`] (hash-consing, as in value
//! graphs: Tristan, Govereau & Morrisett 2011). The leaves of an expression come into being in some block of the SSA
//! program; the deepest of these blocks is the *home* of the expression. It means something only where its home
//! dominates, and means another value each time control enters the home again: that is what [`Terms::survives`] asks.
//!
//! What nodes there are is the target's business ([`Node`]). Left out: congruence of loop-carried values; a place may
//! hold several facts instead.

use kempe_ra::{Block, Program};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term(pub u32);

/// A target's expressions.
pub trait Node: Copy + Eq + Hash {
    /// The expressions it is made of.
    fn children(&self) -> SmallVec<[Term; 3]>;
    /// For a leaf: the block in which it comes into being; `None` if it is the same everywhere.
    fn home(&self) -> Option<Block>;
}

/// Everything a place is known to hold: each of these expressions describes its contents. Few, sorted.
pub type Facts = SmallVec<[Term; 2]>;

/// Most facts kept for one place. In the first round through a loop nest every parameter that begins with the same value is
/// in the same places.
pub const MAX_FACTS: usize = 512;

/// Adds a fact, if there is room.
pub fn add_fact(facts: &mut Facts, t: Term) {
    if let Err(at) = facts.binary_search(&t)
        && facts.len() < MAX_FACTS
    {
        facts.insert(at, t);
    }
}

/// No home: valid everywhere.
const EVERYWHERE: u32 = u32::MAX;

/// All expressions of a comparison.
#[derive(Debug)]
pub struct Terms<N> {
    nodes: Vec<N>,
    homes: Vec<u32>,
    index: FxHashMap<N, Term>,
    dominance: Dominance,
    /// Expressions below this number belong to the first program.
    known: u32,
}

impl<N: Node> Terms<N> {
    pub fn new(program: &Program) -> Terms<N> {
        Terms {
            nodes: Vec::new(),
            homes: Vec::new(),
            index: FxHashMap::default(),
            dominance: Dominance::new(program),
            known: 0,
        }
    }

    /// The expression, new or not.
    pub fn intern(&mut self, node: N) -> Term {
        if let Some(&t) = self.index.get(&node) {
            return t;
        }
        let mut home = node.home().map_or(EVERYWHERE, |b| b.0);
        for c in node.children() {
            let h = self.homes[c.0 as usize];
            if self.dominance.depth(h) > self.dominance.depth(home) {
                home = h;
            }
        }
        let t = Term(self.nodes.len() as u32);
        self.nodes.push(node);
        self.homes.push(home);
        self.index.insert(node, t);
        t
    }

    /// The expression, if it exists.
    pub fn find(&self, node: &N) -> Option<Term> {
        self.index.get(node).copied()
    }

    pub fn node(&self, t: Term) -> N {
        self.nodes[t.0 as usize]
    }

    /// The first program has been executed: its expressions are the ones of interest.
    pub fn seal(&mut self) {
        self.known = self.nodes.len() as u32;
    }

    /// An expression of the first program.
    pub fn is_known(&self, t: Term) -> bool {
        t.0 < self.known
    }

    /// Whether an expression still means the same when control enters a block.
    pub fn survives(&self, t: Term, entered: Block) -> bool {
        let home = self.homes[t.0 as usize];
        home == EVERYWHERE || (home != entered.0 && self.dominance.dominates(home, entered.0))
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// Dominator tree (Cooper, Harvey & Kennedy 2001) over blocks whose order is topological but for back edges.
#[derive(Debug)]
struct Dominance {
    /// Depth in the tree, from 1; 0 for a block that is not reached.
    depth: Vec<u32>,
    /// Numbering of the tree: a block dominates those whose entry number lies in its range.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Dominance {
    fn new(program: &Program) -> Dominance {
        let n = program.blocks.len();
        const NONE: usize = usize::MAX;
        let mut idom = vec![NONE; n];
        if n > 0 {
            idom[0] = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for b in 1..n {
                let mut new = NONE;
                for p in &program.blocks[b].preds {
                    let p = p.0 as usize;
                    if p >= n || idom[p] == NONE {
                        continue;
                    }
                    if new == NONE {
                        new = p;
                        continue;
                    }
                    let mut q = p;
                    while q != new {
                        while q > new {
                            q = idom[q];
                        }
                        while new > q {
                            new = idom[new];
                        }
                    }
                }
                if new != NONE && idom[b] != new {
                    idom[b] = new;
                    changed = true;
                }
            }
        }
        let mut depth = vec![0; n];
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
        for b in 0..n {
            if idom[b] == NONE {
                continue;
            }
            // An immediate dominator has a smaller number.
            depth[b] = if b == 0 { 1 } else { depth[idom[b]] + 1 };
            if b != 0 {
                children[idom[b]].push(b as u32);
            }
        }
        let (mut first, mut last) = (vec![0; n], vec![0; n]);
        let mut clock = 0;
        let mut stack: Vec<(u32, usize)> = if n > 0 { vec![(0, 0)] } else { Vec::new() };
        while let Some((b, at)) = stack.pop() {
            let b = b as usize;
            if at == 0 {
                clock += 1;
                first[b] = clock;
            }
            if let Some(&c) = children[b].get(at) {
                stack.push((b as u32, at + 1));
                stack.push((c, 0));
            } else {
                last[b] = clock;
            }
        }
        Dominance { depth, first, last }
    }

    fn depth(&self, b: u32) -> u32 {
        self.depth.get(b as usize).copied().unwrap_or(0)
    }

    fn dominates(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        self.first[a] <= self.first[b] && self.first[b] <= self.last[a]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ra::{BlockInfo, Edge};

    fn graph(edges: &[(u32, u32)], n: usize) -> Program {
        let mut p = Program { blocks: vec![BlockInfo::default(); n], ..Program::default() };
        for &(a, b) in edges {
            p.blocks[a as usize].succs.push(Edge { to: Block(b), args: Vec::new() });
            p.blocks[b as usize].preds.push(Block(a));
        }
        p
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    enum Toy {
        Leaf(Option<Block>, u32),
        Pair(Term, Term),
    }

    impl Node for Toy {
        fn children(&self) -> SmallVec<[Term; 3]> {
            match *self {
                Toy::Leaf(..) => SmallVec::new(),
                Toy::Pair(a, b) => SmallVec::from_slice(&[a, b]),
            }
        }

        fn home(&self) -> Option<Block> {
            match *self {
                Toy::Leaf(b, _) => b,
                Toy::Pair(..) => None,
            }
        }
    }

    #[test]
    fn a_value_of_a_loop_dies_when_the_loop_is_entered_again() {
        // 0 -> 1 (header) -> 2 -> 1, 1 -> 3
        let p = graph(&[(0, 1), (1, 2), (2, 1), (1, 3)], 4);
        let mut t: Terms<Toy> = Terms::new(&p);
        let outside = t.intern(Toy::Leaf(Some(Block(0)), 0));
        let inside = t.intern(Toy::Leaf(Some(Block(1)), 0));
        let body = t.intern(Toy::Leaf(Some(Block(2)), 0));
        let both = t.intern(Toy::Pair(outside, inside));
        assert!(t.survives(outside, Block(1)));
        assert!(!t.survives(inside, Block(1)));
        assert!(!t.survives(both, Block(1)));
        assert!(t.survives(both, Block(2)));
        assert!(t.survives(both, Block(3)));
        assert!(!t.survives(body, Block(3)));
        assert_eq!(t.intern(Toy::Pair(outside, inside)), both);
    }

    #[test]
    fn joins_are_dominated_by_the_fork() {
        let p = graph(&[(0, 1), (0, 2), (1, 3), (2, 3)], 4);
        let d = Dominance::new(&p);
        assert!(d.dominates(0, 3) && !d.dominates(1, 3) && !d.dominates(2, 3) && d.dominates(3, 3));
        assert_eq!(d.depth(3), 2);
    }
}
