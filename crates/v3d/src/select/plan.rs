//! The graph that the machine walks: how each block ends, where skips pay, which blocks the edges need, how often
//! everything runs, and the numbers by which lanes wait.
//!
//! When no lane is left, the walk may jump to the nearest block where lanes wait. It does so where that pays, and
//! where it must: a loop that only uniform branches leave is entered with some lane running or not at all, because
//! nothing says that it ends for a lane that should not be there.

use super::flow::Flow;
use super::prepare::Prepared;
use super::values;
use crate::instr::small_code;
use kempe_ir::analysis::NONE;
use kempe_ir::{Imm, Op, Table, Term, Value};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Estimated cycles of walking over a region with no lane running, from which a branch over it is made. A branch with
/// its push and unfilled slots costs about 4 itself and keeps the code around it apart.
const SKIP_FROM: f32 = 10.0;
/// Estimated cycles of a memory access that no lane takes part in: the switch of a load, nothing much for a store.
const SKIP_LOAD: f32 = 8.0;
const SKIP_STORE: f32 = 3.0;
/// Rounds assumed for a loop.
const ROUNDS: f32 = 8.0;

/// How a block ends on the machine. Targets are positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exit {
    End,
    Jump {
        to: u32,
    },
    /// A branch on a condition that is the same in all lanes: to `taken` when it equals `when`, else to `other`.
    Lane0 {
        taken: u32,
        other: u32,
        when: bool,
    },
    /// To `skip` when no lane runs any more, else to `to`.
    Skip {
        to: u32,
        skip: u32,
    },
    /// To the header as long as some lane runs, else to `exit`.
    Latch {
        header: u32,
        exit: u32,
    },
}

impl Exit {
    /// Successors, the taken one first.
    pub fn succs(self) -> SmallVec<[u32; 2]> {
        match self {
            Exit::End => SmallVec::new(),
            Exit::Jump { to } => SmallVec::from_slice(&[to]),
            Exit::Lane0 { taken, other, .. } => SmallVec::from_slice(&[taken, other]),
            Exit::Skip { to, skip } => SmallVec::from_slice(&[skip, to]),
            Exit::Latch { header, exit } => SmallVec::from_slice(&[header, exit]),
        }
    }
}

pub(super) struct Plan {
    pub exits: Vec<Exit>,
    /// Predecessors on the machine, each once, ascending.
    pub preds: Vec<SmallVec<[u32; 4]>>,
    /// Immediate dominators on the machine.
    idom: Vec<u32>,
    /// Number in the dominator tree in preorder, and the number behind the last block below.
    tree: Vec<(u32, u32)>,
    /// By position: certainly some lane runs there.
    pub occupied: Vec<bool>,
    /// Number by which lanes wait for a block.
    pub number: Vec<i32>,
    pub frequency: Vec<f32>,
    /// Number of the machine block of a position; the blocks of its edges follow it.
    pub block: Vec<u32>,
    /// By position: goes on in the block of the position before, which does nothing but go on here.
    pub continues: Vec<bool>,
    /// By position: block number of an edge that needs one (taken, other).
    pub edge_block: Vec<[Option<u32>; 2]>,
    pub blocks: u32,
    /// By loop: execution values change inside.
    pub masks_change: Vec<bool>,
    /// Roots that lanes which wait elsewhere may hold anything in, although those that run agree.
    unsure: Table<Value, bool>,
}

impl Plan {
    pub fn new(p: &Prepared, flow: &Flow) -> Plan {
        let n = p.cfg.len();
        let mut plan = Plan {
            exits: vec![Exit::End; n],
            preds: vec![SmallVec::new(); n],
            idom: vec![NONE; n],
            tree: vec![(0, 0); n],
            occupied: vec![false; n],
            number: vec![0; n],
            frequency: vec![0.0; n],
            block: vec![0; n],
            continues: vec![false; n],
            edge_block: vec![[None; 2]; n],
            blocks: 0,
            masks_change: vec![false; p.cfg.loops.len()],
            unsure: Table::new(p.func.values.len(), false),
        };
        plan.exits(p, flow);
        plan.number_tree();
        plan.numbers(p, flow);
        plan.edge_blocks(p);
        plan.mask_changes(p, flow);
        plan.find_unsure(p, flow);
        plan
    }

    /// Some lane may hold anything in a root when the walk is at `at`: it took no part where the value was made, as lanes that
    /// wait and dead quads do, or the walk skipped that place because nobody wanted it. What is asked of lane 0 must not depend on such a value.
    pub fn is_unsure(&self, p: &Prepared, flow: &Flow, root: Value, at: u32) -> bool {
        let partial = flow.partial[at as usize];
        if !(partial || p.stage == kempe_ir::Stage::Fragment)
            || values::is_remade(p, root)
            || values::payload(p, root).is_some()
        {
            return false;
        }
        let def = p.def_pos(root);
        self.unsure[root]
            || (partial && def != at && (flow.left_diverging(p, def, at) != NONE || !self.dominates(def, at)))
    }

    fn find_unsure(&mut self, p: &Prepared, flow: &Flow) {
        let fragment = p.stage == kempe_ir::Stage::Fragment;
        if !fragment && !flow.partial.contains(&true) {
            return;
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for at in 0..p.len() {
                let alone = flow.partial[at as usize] || flow.arm(p, at).is_some();
                let block = p.block(at);
                for (n, &param) in block.params.iter().enumerate() {
                    if p.root(param) != param || self.unsure[param] {
                        continue;
                    }
                    let mut unsure = alone && flow.meets[at as usize];
                    for &q in &p.cfg.preds[at as usize] {
                        for t in p.block(q).term.targets().filter(|t| p.cfg.pos[t.block] == at) {
                            let arg = t.args.get(n);
                            unsure |= arg.is_some_and(|&a| self.is_unsure(p, flow, p.root(a), q));
                        }
                    }
                    self.unsure[param] = unsure;
                    changed |= unsure;
                }
                for &i in &block.insts {
                    let d = &p.func.insts[i];
                    let unsure = match (d.op, d.imm) {
                        (Op::Load, Imm::Mem(mem)) => {
                            let fixed =
                                d.args.first().is_some_and(|&a| values::is_fixed_address(p, p.root(a)));
                            (alone || fragment) && !(fixed && values::side_band(p, d, mem).is_some())
                        }
                        (
                            Op::Atomic | Op::ImageLoad | Op::ImageAtomic | Op::Sample | Op::SampleImplicit,
                            _,
                        ) => alone || fragment,
                        _ => d.args.iter().any(|&a| self.is_unsure(p, flow, p.root(a), at)),
                    };
                    for &r in &d.results {
                        if unsure && !std::mem::replace(&mut self.unsure[r], true) {
                            changed = true;
                        }
                    }
                }
            }
        }
    }

    /// Every walk to `b` comes through `a`.
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.tree[a as usize], self.tree[b as usize]);
        a.0 <= b.0 && b.0 < a.1
    }

    /// The same while the tree grows; far away the answer may be a wrong no.
    fn dominates_nearby(&self, a: u32, mut b: u32) -> bool {
        for _ in 0..64 {
            if b <= a || b == NONE {
                break;
            }
            b = self.idom[b as usize];
        }
        a == b
    }

    /// Numbers the dominator tree. A dominator stands before what it dominates.
    fn number_tree(&mut self) {
        let n = self.idom.len();
        let mut size = vec![1u32; n];
        for b in (1..n).rev() {
            if let Some(s) = self.idom.get(b).and_then(|&d| (d != NONE).then_some(d as usize)) {
                size[s] += size[b];
            }
        }
        let mut next = vec![1u32; n];
        for b in 0..n {
            let start = match self.idom[b] {
                NONE => 0,
                d => {
                    let start = next[d as usize];
                    next[d as usize] += size[b];
                    start
                }
            };
            self.tree[b] = (start, start + size[b]);
            next[b] = start + 1;
        }
    }

    fn exits(&mut self, p: &Prepared, flow: &Flow) {
        let cost = region_costs(p);
        // Where the same lanes ran, all of them, when the same soft edges were open. A set of open edges is told by
        // a sum of hashes.
        let mut seen: HashMap<u64, u32> = HashMap::new();
        let mut opens: Vec<(u32, u64, u32)> = Vec::new();
        for at in 0..p.len() {
            for k in 0..2 {
                if flow.soft[at as usize][k] {
                    let to = target(p, at, k);
                    let hash = mix(at as u64 * 4 + k as u64 + 1);
                    // Before and behind its source: the edge may be taken in between.
                    opens.push((Flow::span_start(p, at, to), hash, at + 1));
                    opens.push((at + 1, hash.wrapping_mul(3), to));
                }
            }
        }
        opens.sort_unstable();
        let mut next = opens.into_iter().peekable();
        let mut closing: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
        let mut open = 0u64;
        let mut reaching = vec![0.0f32; p.cfg.len()];
        if let Some(f) = reaching.first_mut() {
            *f = 1.0;
        }
        for at in 0..p.len() {
            let a = at as usize;
            while let Some((_, hash, to)) = next.next_if(|o| o.0 <= at) {
                open = open.wrapping_add(hash);
                closing.push(Reverse((to, hash)));
            }
            while let Some(&Reverse((to, hash))) = closing.peek()
                && to <= at
            {
                closing.pop();
                open = open.wrapping_sub(hash);
            }
            let mut idom = NONE;
            let mut occupied = true;
            for &q in self.preds[a].iter().filter(|&&q| q < at) {
                idom = if idom == NONE { q } else { self.common(idom, q) };
                occupied &= self.leaves_occupied(flow, q, at);
            }
            self.idom[a] = idom;
            let header = p.loop_at(at).is_some();
            // The same lanes as at a dominating place.
            let same = seen.get(&open).copied().filter(|&s| self.dominates_nearby(s, at));
            self.occupied[a] = flow.arm(p, at).is_none() && (!flow.partial[a] || occupied || same.is_some());
            if self.occupied[a] && same.is_none() {
                seen.insert(open, at);
            }
            self.frequency[a] = (reaching[a] * if header { ROUNDS } else { 1.0 }).min(1e9);
            let exit = self.exit(p, flow, at, &cost);
            self.exits[a] = exit;
            let succs = exit.succs();
            for (k, &to) in succs.iter().enumerate() {
                if !self.preds[to as usize].contains(&at) {
                    self.preds[to as usize].push(at);
                }
                if to > at {
                    reaching[to as usize] += self.frequency[a] * share(p, exit, at, k, succs.len());
                }
            }
        }
    }

    fn common(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            if a > b {
                a = self.idom[a as usize];
            } else {
                b = self.idom[b as usize];
            }
            if a == NONE || b == NONE {
                return 0;
            }
        }
        a
    }

    /// Some lane certainly runs when the walk goes from `q` to `to`.
    fn leaves_occupied(&self, flow: &Flow, q: u32, to: u32) -> bool {
        match self.exits[q as usize] {
            Exit::End => false,
            // Behind a soft jump only those run that wait for `to`: perhaps none.
            Exit::Jump { .. } => self.occupied[q as usize] && flow.soft[q as usize] == [false; 2],
            Exit::Lane0 { .. } => self.occupied[q as usize],
            Exit::Skip { to: on, .. } => on == to,
            Exit::Latch { header, .. } => header == to,
        }
    }

    fn exit(&self, p: &Prepared, flow: &Flow, at: u32, cost: &[f64]) -> Exit {
        let a = at as usize;
        if at == p.end {
            return Exit::End;
        }
        // Nearest block where lanes wait behind this one.
        let mut waiting = flow.waiting[a];
        for k in 0..2 {
            if flow.soft[a][k] {
                waiting = waiting.min(target(p, at, k));
            }
        }
        // The walk goes through short arms one after the other.
        if flow.through[a] || flow.arm(p, at).is_some() {
            return Exit::Jump { to: at + 1 };
        }
        match p.block(at).term {
            Term::Jump(_) => {
                let to = target(p, at, 0);
                if to <= at {
                    return match p.loop_at(to) {
                        Some(l) if flow.diverging[l as usize] => Exit::Latch { header: to, exit: waiting },
                        _ => Exit::Jump { to },
                    };
                }
                if flow.soft[a][0] {
                    return Exit::Jump { to: waiting };
                }
                if let Some(l) = p.loop_at(to)
                    && !flow.diverging[l as usize]
                    && !self.occupied[a]
                    && waiting != NONE
                {
                    return Exit::Skip { to, skip: waiting };
                }
                Exit::Jump { to }
            }
            Term::Branch { .. } => {
                let (then, els) = (target(p, at, 0), target(p, at, 1));
                match flow.soft[a] {
                    [false, false] if then == at + 1 => Exit::Lane0 { taken: els, other: then, when: false },
                    [false, false] => Exit::Lane0 { taken: then, other: els, when: true },
                    [true, true] => Exit::Jump { to: waiting },
                    _ => {
                        let region = cost[waiting as usize] - cost[a + 1];
                        let scale = (ROUNDS as f64).powi(p.cfg.depth(at).min(8) as i32);
                        // Straight to the end is always worth it: the whole batch is done.
                        if waiting > at + 1 && (region / scale >= SKIP_FROM as f64 || waiting == p.end) {
                            Exit::Skip { to: at + 1, skip: waiting }
                        } else {
                            Exit::Jump { to: at + 1 }
                        }
                    }
                }
            }
            Term::Return | Term::Unreachable => Exit::End,
        }
    }

    /// Blocks where lanes may wait at the same time get different numbers; small ones first, because they are
    /// immediates. 0 is a lane that runs.
    fn numbers(&mut self, p: &Prepared, flow: &Flow) {
        let mut start = vec![NONE; p.cfg.len()];
        for at in 0..p.len() {
            for k in 0..2 {
                if flow.soft[at as usize][k] {
                    let to = target(p, at, k);
                    let s = &mut start[to as usize];
                    *s = (*s).min(Flow::span_start(p, at, to));
                }
            }
        }
        let mut spans: Vec<(u32, u32)> =
            (0..p.len()).filter(|&t| start[t as usize] != NONE).map(|t| (start[t as usize], t)).collect();
        spans.sort_unstable();
        let mut free: BTreeSet<u32> = BTreeSet::new();
        let mut used = 0;
        let mut taken: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        for (from, to) in spans {
            while let Some(&Reverse((end, n))) = taken.peek()
                && end < from
            {
                taken.pop();
                free.insert(n);
            }
            let n = free.pop_first().unwrap_or_else(|| {
                used += 1;
                used
            });
            taken.push(Reverse((to, n)));
            // 1 to 15, then -1 to -16, then what needs a word of the uniform stream.
            self.number[to as usize] = match n {
                1..=15 => n as i32,
                16..=31 => 15 - n as i32,
                _ => n as i32,
            };
        }
        debug_assert!(self.number.iter().all(|&n| n == 0 || n > 15 || small_code(n as u32).is_some()));
    }

    /// A block on every edge from a block with two successors to one with two predecessors, and where a branch would
    /// not fall through.
    fn edge_blocks(&mut self, p: &Prepared) {
        for at in 0..p.cfg.len() {
            let before = at.wrapping_sub(1);
            self.continues[at] = self.preds[at].as_slice() == [before as u32]
                && self.exits.get(before) == Some(&Exit::Jump { to: at as u32 });
            if self.continues[at] {
                self.block[at] = self.block[before];
            } else {
                self.block[at] = self.blocks;
                self.blocks += 1;
            }
            let succs = self.exits[at].succs();
            if let [taken, other] = succs.as_slice() {
                let critical = |t: u32| self.preds[t as usize].len() > 1;
                if critical(*taken) {
                    self.edge_block[at][0] = Some(self.blocks);
                    self.blocks += 1;
                }
                if critical(*other) || *other != at as u32 + 1 {
                    self.edge_block[at][1] = Some(self.blocks);
                    self.blocks += 1;
                }
            }
        }
    }

    fn mask_changes(&mut self, p: &Prepared, flow: &Flow) {
        for at in 0..p.len() {
            let a = at as usize;
            if flow.soft[a] != [false; 2] || flow.join[a] {
                let mut l = p.cfg.loop_of[a];
                while l != NONE {
                    self.masks_change[l as usize] = true;
                    l = p.cfg.loops[l as usize].parent;
                }
            }
        }
    }
}

/// Position that edge `k` of a block goes to.
pub(super) fn target(p: &Prepared, at: u32, k: usize) -> u32 {
    p.edge(at, k).map_or(p.end, |t| p.cfg.pos[t.block])
}

/// Part of the walks through `at` that take successor `k`.
fn share(p: &Prepared, exit: Exit, at: u32, k: usize, count: usize) -> f32 {
    if count < 2 {
        return 1.0;
    }
    let succs = exit.succs();
    let leaves = |to: u32| {
        let l = p.cfg.loop_of[at as usize];
        l != NONE && !p.in_loop(l, to)
    };
    match (leaves(succs[0]), leaves(succs[1])) {
        (true, false) => [1.0 / ROUNDS, 1.0 - 1.0 / ROUNDS][k],
        (false, true) => [1.0 - 1.0 / ROUNDS, 1.0 / ROUNDS][k],
        _ if matches!(exit, Exit::Skip { .. }) => [0.25, 0.75][k],
        _ => 0.5,
    }
}

fn mix(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

/// Running total of the cost of walking over the blocks with no lane, weighted by loops.
fn region_costs(p: &Prepared) -> Vec<f64> {
    let mut total = Vec::with_capacity(p.cfg.len() + 1);
    let mut sum = 0.0f64;
    for at in 0..p.len() {
        total.push(sum);
        let mut cost = 1.0;
        for &i in &p.block(at).insts {
            let d = &p.func.insts[i];
            if !p.is_needed(i) || d.results.first().is_some_and(|&r| values::is_remade(p, r)) {
                continue;
            }
            cost += match d.op {
                Op::Load | Op::Atomic | Op::Barrier | Op::ImageLoad | Op::ImageAtomic => SKIP_LOAD,
                Op::Sample | Op::SampleImplicit => SKIP_LOAD,
                Op::Store | Op::ImageStore => SKIP_STORE,
                _ => 1.0,
            };
        }
        sum += cost as f64 * (ROUNDS as f64).powi(p.cfg.depth(at).min(8) as i32);
    }
    total.push(sum);
    total
}
