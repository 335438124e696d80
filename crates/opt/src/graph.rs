//! Facts about the flow graph, all of them one pass over the layout.
//!
//! The layout is a topological order of the forward edges and loops are contiguous and single-entry (head of
//! `kempe_ir::module`), so the graph is reducible and back edges never change a dominator: visiting the blocks in
//! order and intersecting the forward predecessors gives exact dominators at once (Cooper, Harvey & Kennedy, "A
//! Simple, Fast Dominance Algorithm", without the fixpoint). The intersection walks skip pointers (Myers, "An
//! applicative random-access stack"), so that long chains stay n log n. Nothing here recurses.

use kempe_ir::*;

const NONE: u32 = u32::MAX;

/// One edge of the flow graph, named by its source: the block and which of its targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: Block,
    /// 0 for `then` or the target of a jump, 1 for `els`.
    pub slot: u8,
}

/// Positions and predecessors.
pub struct Graph {
    /// Position in the layout, `u32::MAX` for blocks not in it.
    pub pos: Table<Block, u32>,
    start: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    pub fn new(f: &Function) -> Graph {
        let pos = f.order();
        let n = f.blocks.len();
        let mut start = vec![0u32; n + 1];
        for &b in &f.layout {
            for t in f.blocks[b].term.targets() {
                start[t.block.index() + 1] += 1;
            }
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut fill = start.clone();
        let mut edges = vec![Edge { from: Block(0), slot: 0 }; start[n] as usize];
        for &b in &f.layout {
            for (slot, t) in f.blocks[b].term.targets().enumerate() {
                let at = &mut fill[t.block.index()];
                edges[*at as usize] = Edge { from: b, slot: slot as u8 };
                *at += 1;
            }
        }
        Graph { pos, start, edges }
    }

    /// Incoming edges in layout order of their sources.
    pub fn preds(&self, b: Block) -> &[Edge] {
        &self.edges[self.start[b.index()] as usize..self.start[b.index() + 1] as usize]
    }

    /// The only incoming edge, if there is just one.
    pub fn single_pred(&self, b: Block) -> Option<Edge> {
        match self.preds(b) {
            [e] => Some(*e),
            _ => None,
        }
    }

    /// An edge that goes backwards in the layout (or to its own block).
    pub fn is_back(&self, from: Block, to: Block) -> bool {
        self.pos[to] <= self.pos[from]
    }

    pub fn is_loop_header(&self, b: Block) -> bool {
        self.preds(b).iter().any(|e| self.is_back(e.from, b))
    }
}

/// The argument that an edge passes to a parameter.
pub fn edge_target(f: &Function, e: Edge) -> &Target {
    match (&f.blocks[e.from].term, e.slot) {
        (Term::Jump(t), _) => t,
        (Term::Branch { then, .. }, 0) => then,
        (Term::Branch { els, .. }, _) => els,
        _ => unreachable!("an edge starts at a jump or a branch"),
    }
}

/// As [`edge_target`], to change it.
pub fn edge_target_mut(f: &mut Function, e: Edge) -> &mut Target {
    match (&mut f.blocks[e.from].term, e.slot) {
        (Term::Jump(t), _) => t,
        (Term::Branch { then, .. }, 0) => then,
        (Term::Branch { els, .. }, _) => els,
        _ => unreachable!("an edge starts at a jump or a branch"),
    }
}

/// The dominator tree.
pub struct Dom {
    /// Immediate dominator; of the entry, the entry.
    idom: Vec<Block>,
    skip: Vec<Block>,
    depth: Vec<u32>,
    /// Interval of the tree walk: a block dominates those whose number lies in its interval.
    first: Vec<u32>,
    last: Vec<u32>,
    /// Children in layout order, as a flat list.
    child_start: Vec<u32>,
    children: Vec<Block>,
}

impl Dom {
    pub fn new(f: &Function, g: &Graph) -> Dom {
        let n = f.blocks.len();
        let entry = f.layout.first().copied().unwrap_or(Block(0));
        let mut d = Dom {
            idom: vec![entry; n],
            skip: vec![entry; n],
            depth: vec![0; n],
            first: vec![0; n],
            last: vec![0; n],
            child_start: vec![0; n + 1],
            children: Vec::new(),
        };
        for &b in f.layout.iter().skip(1) {
            let mut common: Option<Block> = None;
            for e in g.preds(b) {
                if g.is_back(e.from, b) {
                    continue;
                }
                common = Some(match common {
                    None => e.from,
                    Some(c) => d.common(c, e.from),
                });
            }
            let p = common.unwrap_or(entry);
            d.idom[b.index()] = p;
            d.depth[b.index()] = d.depth[p.index()] + 1;
            let q = d.skip[p.index()];
            let s = d.skip[q.index()];
            let (dp, dq, ds) = (d.depth[p.index()], d.depth[q.index()], d.depth[s.index()]);
            d.skip[b.index()] = if dp - dq == dq - ds { s } else { p };
        }
        for &b in f.layout.iter().skip(1) {
            d.child_start[d.idom[b.index()].index() + 1] += 1;
        }
        for i in 0..n {
            d.child_start[i + 1] += d.child_start[i];
        }
        let mut fill = d.child_start.clone();
        d.children = vec![entry; f.layout.len().saturating_sub(1)];
        for &b in f.layout.iter().skip(1) {
            let at = &mut fill[d.idom[b.index()].index()];
            d.children[*at as usize] = b;
            *at += 1;
        }
        // Sizes of the subtrees, then intervals: children come after their parent in the layout.
        let mut size = vec![1u32; n];
        for &b in f.layout.iter().skip(1).rev() {
            let p = d.idom[b.index()].index();
            size[p] += size[b.index()];
        }
        let mut next = vec![0u32; n];
        for (i, &b) in f.layout.iter().enumerate() {
            let at = if i == 0 { 0 } else { next[d.idom[b.index()].index()] };
            if i > 0 {
                next[d.idom[b.index()].index()] += size[b.index()];
            }
            d.first[b.index()] = at;
            d.last[b.index()] = at + size[b.index()] - 1;
            next[b.index()] = at + 1;
        }
        d
    }

    /// Immediate dominator; the entry's is itself.
    pub fn idom(&self, b: Block) -> Block {
        self.idom[b.index()]
    }

    pub fn depth(&self, b: Block) -> u32 {
        self.depth[b.index()]
    }

    /// `a` dominates `b` (every block dominates itself).
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let n = self.first[b.index()];
        self.first[a.index()] <= n && n <= self.last[a.index()]
    }

    pub fn children(&self, b: Block) -> &[Block] {
        &self.children[self.child_start[b.index()] as usize..self.child_start[b.index() + 1] as usize]
    }

    /// The nearest block that dominates both.
    pub fn common(&self, mut a: Block, mut b: Block) -> Block {
        let (depth, skip) = (|x: Block| self.depth[x.index()], |x: Block| self.skip[x.index()]);
        if depth(a) < depth(b) {
            std::mem::swap(&mut a, &mut b);
        }
        while depth(a) > depth(b) {
            a = if depth(skip(a)) >= depth(b) { skip(a) } else { self.idom(a) };
        }
        while a != b {
            (a, b) = if skip(a) != skip(b) { (skip(a), skip(b)) } else { (self.idom(a), self.idom(b)) };
        }
        a
    }
}

/// Dominance frontiers, as a flat list by block.
pub struct Frontiers {
    start: Vec<u32>,
    items: Vec<Block>,
}

impl Frontiers {
    pub fn new(f: &Function, g: &Graph, dom: &Dom) -> Frontiers {
        let n = f.blocks.len();
        // Last merge recorded for a block: merges are visited one after the other, so equal means present, and
        // then everything above on the walk is present too.
        let mut seen = vec![NONE; n];
        let mut pairs: Vec<(Block, Block)> = Vec::new();
        for &b in &f.layout {
            if g.preds(b).len() < 2 {
                continue;
            }
            for e in g.preds(b) {
                let mut r = e.from;
                while r != dom.idom(b) && seen[r.index()] != b.0 {
                    seen[r.index()] = b.0;
                    pairs.push((r, b));
                    r = dom.idom(r);
                }
            }
        }
        let mut start = vec![0u32; n + 1];
        for (r, _) in &pairs {
            start[r.index() + 1] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut fill = start.clone();
        let mut items = vec![Block(0); pairs.len()];
        for (r, b) in pairs {
            items[fill[r.index()] as usize] = b;
            fill[r.index()] += 1;
        }
        Frontiers { start, items }
    }

    pub fn of(&self, b: Block) -> &[Block] {
        &self.items[self.start[b.index()] as usize..self.start[b.index() + 1] as usize]
    }
}

/// A loop: positions in the layout from its header to its last back edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    pub header: Block,
    /// Position of the header.
    pub first: u32,
    /// Position of the last block with a back edge to the header.
    pub last: u32,
    /// Index of the enclosing loop.
    pub parent: Option<u32>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// The loops of a function, outer before inner, and the innermost loop of every position.
pub struct Loops {
    pub list: Vec<Loop>,
    inner: Vec<u32>,
}

impl Loops {
    pub fn new(f: &Function, g: &Graph) -> Loops {
        let n = f.layout.len();
        let mut list: Vec<Loop> = Vec::new();
        let mut inner = vec![NONE; n];
        let mut open: Vec<u32> = Vec::new();
        for (p, &b) in f.layout.iter().enumerate() {
            let p = p as u32;
            while open.last().is_some_and(|&l| list[l as usize].last < p) {
                open.pop();
            }
            let last = g.preds(b).iter().map(|e| g.pos[e.from]).filter(|&q| q >= p && q != NONE).max();
            if let Some(last) = last {
                let parent = open.last().copied();
                list.push(Loop { header: b, first: p, last, parent, depth: open.len() as u32 + 1 });
                open.push(list.len() as u32 - 1);
            }
            inner[p as usize] = open.last().copied().unwrap_or(NONE);
        }
        Loops { list, inner }
    }

    /// The innermost loop around a position of the layout.
    pub fn innermost(&self, pos: u32) -> Option<u32> {
        let l = self.inner[pos as usize];
        (l != NONE).then_some(l)
    }

    /// Number of loops around a position.
    pub fn depth(&self, pos: u32) -> u32 {
        self.innermost(pos).map_or(0, |l| self.list[l as usize].depth)
    }

    /// Position `pos` lies in loop `l` (or in one inside it).
    pub fn contains(&self, l: u32, pos: u32) -> bool {
        let l = &self.list[l as usize];
        l.first <= pos && pos <= l.last
    }
}

/// Drops blocks that cannot be reached from the layout. True if there were any.
pub fn prune_unreachable(f: &mut Function) -> bool {
    let Some(&entry) = f.layout.first() else { return false };
    let mut seen = vec![false; f.blocks.len()];
    let mut work = vec![entry];
    seen[entry.index()] = true;
    while let Some(b) = work.pop() {
        for t in f.blocks[b].term.targets() {
            if !std::mem::replace(&mut seen[t.block.index()], true) {
                work.push(t.block);
            }
        }
    }
    let before = f.layout.len();
    let Function { layout, blocks, .. } = f;
    layout.retain(|b| {
        let keep = seen[b.index()];
        if !keep {
            blocks[*b].insts = Vec::new();
            blocks[*b].params.clear();
            blocks[*b].term = Term::Unreachable;
        }
        keep
    });
    f.layout.len() != before
}

/// Makes the loops contiguous again after edges or blocks went away.
///
/// A loop ends at its last back edge. When that edge goes, the loop may end in the middle of a loop inside it
/// (whose blocks `continue` the outer one). A new latch behind the inner loop takes over the back edges then.
pub fn repair_loops(f: &mut Function) -> bool {
    let mut changed = false;
    'again: loop {
        let g = Graph::new(f);
        let mut open: Vec<(Block, u32)> = Vec::new();
        for (p, &b) in f.layout.iter().enumerate() {
            let p = p as u32;
            while open.last().is_some_and(|&(_, last)| last < p) {
                open.pop();
            }
            let last = g.preds(b).iter().map(|e| g.pos[e.from]).filter(|&q| q >= p && q != NONE).max();
            let Some(last) = last else { continue };
            if let Some(&(outer, outer_last)) = open.last()
                && outer_last < last
            {
                insert_latch(f, &g, outer, last);
                changed = true;
                continue 'again;
            }
            open.push((b, last));
        }
        return changed;
    }
}

/// Sends every back edge of `header` through a new block behind position `after`.
fn insert_latch(f: &mut Function, g: &Graph, header: Block, after: u32) {
    let latch = f.add_block_detached();
    let types: Vec<Type> = f.blocks[header].params.iter().map(|&v| f.ty(v)).collect();
    let args = types.into_iter().map(|ty| f.add_param(latch, ty)).collect();
    f.blocks[latch].term = Term::Jump(Target { block: header, args });
    f.blocks[latch].term_loc = f.blocks[header].term_loc;
    for &e in g.preds(header) {
        if g.is_back(e.from, header) {
            edge_target_mut(f, e).block = latch;
        }
    }
    f.layout.insert(after as usize + 1, latch);
}
