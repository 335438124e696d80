//! The control-flow graph of a program: reverse postorder, immediate dominators (Cooper, Harvey & Kennedy, "A simple,
//! fast dominance algorithm", 2001) and the forest of natural loops.
//!
//! Irreducible graphs are accepted: a block entered by an edge from a later block counts as a loop header, and its
//! loop is what it dominates.

use crate::problem::Program;

pub(crate) const NONE: u32 = u32::MAX;

/// One natural loop.
pub(crate) struct Loop {
    pub header: u32,
    /// The enclosing loop, or [`NONE`].
    pub parent: u32,
}

pub(crate) struct Graph {
    /// Reachable blocks in reverse postorder.
    pub rpo: Vec<u32>,
    /// Position in `rpo`, or [`NONE`] when the block cannot be reached.
    pub rpo_index: Vec<u32>,
    /// Immediate dominator; the entry is its own.
    pub idom: Vec<u32>,
    /// Depth in the dominator tree.
    pub dom_depth: Vec<u32>,
    /// Innermost loop of a block (index into `loops`), or [`NONE`].
    pub loop_of: Vec<u32>,
    /// Inner loops stand before the loops around them.
    pub loops: Vec<Loop>,
    /// All blocks of a loop, inner loops included.
    pub loop_blocks: Vec<Vec<u32>>,
    /// The block is entered by an edge from itself or from a later block.
    pub is_header: Vec<bool>,
}

impl Graph {
    pub fn new(program: &Program) -> Graph {
        let count = program.blocks.len();
        let mut post = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        let mut stack: Vec<(u32, usize)> = vec![(0, 0)];
        seen[0] = true;
        while let Some((block, next)) = stack.pop() {
            let succs = &program.blocks[block as usize].succs;
            if next < succs.len() {
                stack.push((block, next + 1));
                let to = succs[next].to.0;
                if !seen[to as usize] {
                    seen[to as usize] = true;
                    stack.push((to, 0));
                }
            } else {
                post.push(block);
            }
        }
        post.reverse();
        let rpo = post;
        let mut rpo_index = vec![NONE; count];
        for (index, &block) in rpo.iter().enumerate() {
            rpo_index[block as usize] = index as u32;
        }
        let idom = dominators(program, &rpo, &rpo_index);
        let mut dom_depth = vec![0; count];
        for &block in rpo.iter().skip(1) {
            dom_depth[block as usize] = dom_depth[idom[block as usize] as usize] + 1;
        }
        let mut graph = Graph {
            rpo,
            rpo_index,
            idom,
            dom_depth,
            loop_of: vec![NONE; count],
            loops: Vec::new(),
            loop_blocks: Vec::new(),
            is_header: vec![false; count],
        };
        graph.find_loops(program);
        graph.loop_blocks = vec![Vec::new(); graph.loops.len()];
        for &block in &graph.rpo {
            let mut at = graph.loop_of[block as usize];
            while at != NONE {
                graph.loop_blocks[at as usize].push(block);
                at = graph.loops[at as usize].parent;
            }
        }
        graph
    }

    /// How many loops an edge leaves.
    pub fn loops_left(&self, from: u32, to: u32) -> u32 {
        let mut at = self.loop_of[from as usize];
        let mut left = 0;
        while at != NONE && !self.is_within(to, at) {
            left += 1;
            at = self.loops[at as usize].parent;
        }
        left
    }

    /// Does the loop `id` contain `block`?
    fn is_within(&self, block: u32, id: u32) -> bool {
        let mut at = self.loop_of[block as usize];
        while at != NONE && at != id {
            at = self.loops[at as usize].parent;
        }
        at == id
    }

    pub fn has_loops(&self) -> bool {
        !self.loops.is_empty()
    }

    /// The nearest block that dominates both.
    pub fn common_dominator(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            if self.dom_depth[a as usize] >= self.dom_depth[b as usize] {
                a = self.idom[a as usize];
            } else {
                b = self.idom[b as usize];
            }
        }
        a
    }

    fn dominates(&self, a: u32, mut b: u32) -> bool {
        while self.dom_depth[b as usize] > self.dom_depth[a as usize] {
            b = self.idom[b as usize];
        }
        a == b
    }

    /// Innermost loops first: headers in reverse of the reverse postorder, each walking backwards from its latches
    /// and stepping over loops that are already known.
    fn find_loops(&mut self, program: &Program) {
        let mut work = Vec::new();
        for position in (0..self.rpo.len()).rev() {
            let header = self.rpo[position];
            let latches = program.blocks[header as usize].preds.iter().map(|pred| pred.0);
            let latches = latches.filter(|&pred| {
                let index = self.rpo_index[pred as usize];
                index != NONE && index >= position as u32
            });
            work.extend(latches);
            if work.is_empty() {
                continue;
            }
            self.is_header[header as usize] = true;
            let this = self.loops.len() as u32;
            self.loops.push(Loop { header, parent: NONE });
            while let Some(block) = work.pop() {
                // The outermost loop known so far around the block.
                let mut at = self.loop_of[block as usize];
                let mut entry = block;
                if at != NONE {
                    while at != this && self.loops[at as usize].parent != NONE {
                        at = self.loops[at as usize].parent;
                    }
                    if at == this {
                        continue;
                    }
                    entry = self.loops[at as usize].header;
                }
                if !self.dominates(header, entry) {
                    continue;
                }
                if at == NONE {
                    self.loop_of[block as usize] = this;
                } else {
                    self.loops[at as usize].parent = this;
                }
                if entry != header {
                    let preds = program.blocks[entry as usize].preds.iter().map(|pred| pred.0);
                    work.extend(preds.filter(|&pred| self.rpo_index[pred as usize] != NONE));
                }
            }
            if self.loop_of[header as usize] == NONE {
                self.loop_of[header as usize] = this;
            }
        }
    }
}

fn dominators(program: &Program, rpo: &[u32], rpo_index: &[u32]) -> Vec<u32> {
    let mut idom = vec![NONE; program.blocks.len()];
    idom[rpo[0] as usize] = rpo[0];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in rpo.iter().skip(1) {
            let mut best = NONE;
            for pred in &program.blocks[block as usize].preds {
                let pred = pred.0;
                if rpo_index[pred as usize] == NONE || idom[pred as usize] == NONE {
                    continue;
                }
                best = if best == NONE { pred } else { meet(&idom, rpo_index, best, pred) };
            }
            if idom[block as usize] != best {
                idom[block as usize] = best;
                changed = true;
            }
        }
    }
    idom
}

fn meet(idom: &[u32], rpo_index: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while rpo_index[a as usize] > rpo_index[b as usize] {
            a = idom[a as usize];
        }
        while rpo_index[b as usize] > rpo_index[a as usize] {
            b = idom[b as usize];
        }
    }
    a
}
