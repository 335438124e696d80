//! Where blocks stand, and how lanes wait.
//!
//! The hardware keeps one number for each lane, `r0l`: how many pops it takes until the lane is active (reference section 3).
//! The blocks stand in the order of the IR, in which edges go forward and loops are contiguous. So a lane that goes to a block
//! that is not the next one waits, and its number is the count of *pops* between: every block that somebody waits for begins
//! with `pop_exec 1`. That holds for any forward edge out of anything, a `break` of three loops or a `return`.
//!
//! A loop ends with its *latch*: whoever goes round once more is or becomes active there, and `jmp_exec_any` goes back behind
//! the pop of the header. The walk then meets the pops of the loop again, so the loop begins with as many pushes
//! (`if_fcmp eq 0, 0`, which adds to every number but 0): one round changes nothing for those who wait outside, and a loop
//! as a whole counts nothing. A `break` counts the pops up to and with the latch, and what is behind it.
//!
//! An `if` whose pop nobody from further up waits for or passes by counts nothing either: it pushes one itself, for free
//! ([`Plan::branch_push`]). The pops that are left over are pushed at the start of the program, where nobody waits: so on
//! every path as much is pushed as is popped, and the sum at a place is the highest number that a lane can have there.
//!
//! Edges that allocation may have to put moves on get blocks of their own: those from a block with two successors to one with
//! several predecessors. They stand right behind the block that they leave, inside its loop.
//!
//! Left out: `else_fcmp`, which would join the end of an if with the start of its else (one instruction each), and numbers in
//! `while_icmp`; all returns meet in one last block.

use kempe_ir::{Block, Function, Term};
use rustc_hash::FxHashMap;

/// What stands in the order of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// A block by its number.
    Block(u32),
    /// The end of the loop of this header (a block number).
    Latch(u32),
}

/// What a block of the machine code is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Source(Block),
    /// Stands on the edge to successor number `.1` of the source block.
    Edge(Block, usize),
    /// Where all lanes end.
    Exit,
}

#[derive(Clone, Debug)]
pub struct Plan {
    /// By block number, in order.
    pub kinds: Vec<Kind>,
    /// By block number: successors.
    pub succs: Vec<Vec<u32>>,
    pub items: Vec<Item>,
    /// Position among the items by block number.
    pub at: Vec<u32>,
    /// By position: it begins with a pop.
    pub pops: Vec<bool>,
    /// By block number: pushes at its start, if it is the header of a loop.
    pub pushes: Vec<Option<u32>>,
    /// By block number: the branch at its end pushes one.
    pub branch_push: Vec<bool>,
    /// Pushes at the start of the program.
    pub start_pushes: u32,
    /// By block number: lanes may wait while the walk is there, perhaps all.
    pub may_wait: Vec<bool>,
    /// Position of the latch by header.
    pub latches: FxHashMap<u32, u32>,
    /// By block number: loops around it.
    pub depth: Vec<u32>,
    /// Number of the block of a source block.
    pub number: FxHashMap<Block, u32>,
    pub loops: u32,
}

impl Plan {
    pub fn new(f: &Function) -> Plan {
        let order = f.order();
        let mut preds = vec![0u32; f.layout.len()];
        // By position in the layout: the last block that jumps back to it.
        let mut last = vec![None; f.layout.len()];
        for (n, &b) in f.layout.iter().enumerate() {
            for t in f.blocks[b].term.targets() {
                let to = order[t.block] as usize;
                preds[to] += 1;
                if to <= n {
                    last[to] = Some(n);
                }
            }
        }
        let mut plan = Plan {
            kinds: Vec::new(),
            succs: Vec::new(),
            items: Vec::new(),
            at: Vec::new(),
            pops: Vec::new(),
            pushes: Vec::new(),
            branch_push: Vec::new(),
            start_pushes: 0,
            may_wait: Vec::new(),
            latches: FxHashMap::default(),
            depth: Vec::new(),
            number: FxHashMap::default(),
            loops: 0,
        };
        // Numbers first: edges lead forward.
        let mut next = 0;
        let mut edges = Vec::new();
        for &b in &f.layout {
            plan.number.insert(b, next);
            next += 1;
            let two = matches!(f.blocks[b].term, Term::Branch { .. });
            let split: Vec<Option<u32>> = f.blocks[b]
                .term
                .targets()
                .map(|t| {
                    let needed = two && preds[order[t.block] as usize] > 1;
                    needed.then(|| {
                        next += 1;
                        next - 1
                    })
                })
                .collect();
            edges.push(split);
        }
        let exit = next;
        // Headers of the loops around, by layout position, outermost first.
        let mut open: Vec<usize> = Vec::new();
        for (n, &b) in f.layout.iter().enumerate() {
            if last[n].is_some() {
                open.push(n);
                plan.loops += 1;
            }
            let term = &f.blocks[b].term;
            let targets: Vec<u32> = term.targets().map(|t| plan.number[&t.block]).collect();
            let succs = match term {
                Term::Return | Term::Unreachable => vec![exit],
                _ => targets.iter().zip(&edges[n]).map(|(&to, edge)| edge.unwrap_or(to)).collect(),
            };
            plan.push(Kind::Source(b), succs, open.len() as u32);
            for (k, (&to, edge)) in targets.iter().zip(&edges[n]).enumerate() {
                if edge.is_some() {
                    plan.push(Kind::Edge(b, k), vec![to], open.len() as u32);
                }
            }
            while let Some(&header) = open.last()
                && last[header] == Some(n)
            {
                open.pop();
                let header = plan.number[&f.layout[header]];
                plan.latches.insert(header, plan.items.len() as u32);
                plan.items.push(Item::Latch(header));
            }
        }
        plan.push(Kind::Exit, Vec::new(), 0);
        plan.count();
        plan
    }

    fn push(&mut self, kind: Kind, succs: Vec<u32>, depth: u32) {
        self.at.push(self.items.len() as u32);
        self.items.push(Item::Block(self.kinds.len() as u32));
        self.kinds.push(kind);
        self.succs.push(succs);
        self.depth.push(depth);
    }

    /// Where a lane goes on that takes an edge: the position of the block, or of the latch if it goes back.
    pub fn resumes(&self, from: u32, to: u32) -> u32 {
        if self.at[to as usize] <= self.at[from as usize] {
            self.latches.get(&to).copied().unwrap_or(self.at[to as usize])
        } else {
            self.at[to as usize]
        }
    }

    fn count(&mut self) {
        let blocks = self.kinds.len();
        self.pops = vec![false; self.items.len()];
        // By position: the first position from where somebody waits for it.
        let mut first = vec![u32::MAX; self.items.len()];
        for from in 0..blocks as u32 {
            let here = self.at[from as usize];
            for &to in &self.succs[from as usize] {
                let there = self.resumes(from, to);
                if there != here + 1 {
                    self.pops[there as usize] = true;
                    first[there as usize] = first[there as usize].min(here);
                }
            }
        }
        // In a loop, those who have left it; elsewhere, those who wait across.
        self.may_wait = self.depth.iter().map(|&depth| depth != 0).collect();
        for (there, &from) in first.iter().enumerate() {
            for at in from.saturating_add(1)..there as u32 {
                if let Item::Block(b) = self.items[at as usize] {
                    self.may_wait[b as usize] = true;
                }
            }
        }
        self.pushes = vec![None; blocks];
        self.branch_push = vec![false; blocks];
        // What is inside counts first: it stands behind.
        for block in (0..blocks as u32).rev() {
            let here = self.at[block as usize];
            if let Some(there) = self.only_wait(block)
                && first[here as usize + 1..=there as usize].iter().all(|&from| from >= here)
                && self.end_of_loop(here) >= there
                && self.between(here, there) == 1
            {
                self.branch_push[block as usize] = true;
            }
            if let Some(&latch) = self.latches.get(&block) {
                let own = u32::from(self.branch_push[block as usize]);
                self.pushes[block as usize] = Some(self.between(here, latch).saturating_sub(own));
            }
        }
        let pops = self.pops.iter().filter(|p| **p).count() as u32;
        let pushed = self.pushes.iter().flatten().sum::<u32>()
            + self.branch_push.iter().filter(|p| **p).count() as u32;
        self.start_pushes = pops.saturating_sub(pushed);
    }

    /// Where the lanes of the one successor wait, if those of the other go on.
    fn only_wait(&self, block: u32) -> Option<u32> {
        let [a, b] = self.succs[block as usize][..] else { return None };
        let next = self.at[block as usize] + 1;
        match (self.resumes(block, a), self.resumes(block, b)) {
            (a, b) if a == next && b != next => Some(b),
            (a, b) if b == next && a != next => Some(a),
            _ => None,
        }
    }

    /// Position of the latch of the innermost loop around a position; the end of the program if there is none.
    fn end_of_loop(&self, at: u32) -> u32 {
        let around =
            self.latches.iter().filter(|&(&header, &latch)| (self.at[header as usize]..=latch).contains(&at));
        around.map(|(_, &latch)| latch).min().unwrap_or(u32::MAX)
    }

    /// Pops behind position `from` up to position `to`, less what is pushed between.
    fn between(&self, from: u32, to: u32) -> u32 {
        let mut count = 0i64;
        for at in from + 1..=to {
            count += i64::from(self.pops[at as usize]);
            if at != to
                && let Item::Block(b) = self.items[at as usize]
            {
                count -= i64::from(self.pushes[b as usize].unwrap_or(0));
                count -= i64::from(self.branch_push[b as usize]);
            }
        }
        count.max(0) as u32
    }

    /// The number of a lane that waits from the end of block `from` on for `to`; `None` if it just goes on.
    pub fn wait(&self, from: u32, to: u32) -> Option<u32> {
        let there = self.resumes(from, to);
        let here = self.at[from as usize];
        (there != here + 1).then(|| self.between(here, there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ir::text::parse;

    fn plan(text: &str) -> Plan {
        Plan::new(&parse(text).expect("a module").func)
    }

    /// A lane for each way through the loops, counted as the hardware does.
    #[test]
    fn a_break_of_two_loops_counts_the_pops_of_both() {
        let p = plan(BREAKS);
        for from in 0..p.kinds.len() as u32 {
            for &to in &p.succs[from as usize] {
                if let Some(wait) = p.wait(from, to) {
                    assert!(wait >= 1, "block {from} waits for {to}");
                    assert!(p.pops[p.resumes(from, to) as usize]);
                }
            }
        }
        assert_eq!(p.loops, 2);
    }

    const BREAKS: &str = include_str!("breaks.ir");
}
