//! Scheduling before allocation, inside blocks: long operations early, pressure within bounds.
//!
//! A list scheduler in the manner of Goodman & Hsu (1988): while few registers are live it follows the longest
//! latency path, so that memory accesses start early and stand together; when pressure reaches the limit of the
//! configuration it prefers what frees registers, then what the next instructions of the old order need (operand trees
//! right before their roots, depth first). Instructions without register uses (constants, uniform words) are placed
//! right before their first user.
//!
//! Where that needs more registers than the limit, orders for lower limits, the old order and the one by demand are
//! tried as well, and the one is taken that moves least to memory and back when the register goes whose next use is
//! farthest. (128 values in a sorting network: 482 stores and loads instead of 3,890 in the old order.)
//!
//! Left out: motion between blocks.

use crate::function::Mir;
use crate::live::Live;
use kempe_ra::{Inst, OperandKind, VReg};

/// What the scheduler must know of a machine instruction.
pub trait Schedule {
    /// Cycles until its results can be used, for the priorities.
    fn latency(&self) -> u32;
    /// What it does to memory.
    fn memory(&self) -> Memory;
    /// Stays first (the entry) or last (terminators).
    fn pinned(&self) -> bool;
    /// May be placed right before its first user: it reads no register and touches no memory.
    fn is_cheap(&self) -> bool;
}

/// Effect on memory. Classes are bit sets; accesses of disjoint classes are independent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    None,
    Read(u8),
    Write(u8),
    /// A write to a place that no other instruction of the function writes: it keeps its order with reads of the
    /// class and with other writes, but not with other outputs.
    Output(u8),
    /// Ordered with every access.
    Fence,
}

/// Ready instructions looked at for one choice: bounds the time in huge blocks.
const WINDOW: usize = 48;

/// Reorders the instructions of every block for at most about `limit` live registers.
pub fn order<I: Schedule + Copy>(mir: &mut Mir<I>, limit: u32) {
    let live = Live::new(mir);
    let mut scratch = Scratch::new(mir.program.vregs.len());
    for b in 0..mir.program.blocks.len() {
        let range = mir.program.blocks[b].insts.clone();
        if range.len() < 3 {
            continue;
        }
        live.mark_out(mir, b, &mut scratch.lives_out);
        let mut block = BlockOrder::new(mir, range.start, range.end, live.at_start(mir, b), &mut scratch);
        let new = block.best(limit);
        live.unmark_out(mir, b, &mut scratch.lives_out);
        if let Some(new) = new {
            apply(mir, range.start as usize, &new);
        }
    }
}

fn apply<I: Copy>(mir: &mut Mir<I>, start: usize, order: &[u32]) {
    let pick = |k: &u32| start + *k as usize;
    let insts: Vec<_> = order.iter().map(|k| mir.program.insts[pick(k)].clone()).collect();
    let data: Vec<_> = order.iter().map(|k| mir.data[pick(k)]).collect();
    let locs: Vec<_> = order.iter().map(|k| mir.locs[pick(k)]).collect();
    for (n, inst) in insts.into_iter().enumerate() {
        mir.program.insts[start + n] = inst;
    }
    mir.data[start..start + order.len()].copy_from_slice(&data);
    mir.locs[start..start + order.len()].copy_from_slice(&locs);
}

#[derive(Default, Clone)]
struct Node {
    succs: Vec<u32>,
    preds: Vec<u32>,
    waiting: u32,
    height: u32,
    /// Registers used (without repetition) and defined.
    uses: Vec<VReg>,
    defs: Vec<VReg>,
    latency: u32,
    cheap: bool,
    /// It only makes values: it may stand anywhere before its first user.
    waits: bool,
    done: bool,
}

/// Tables by register that all blocks use in turn.
struct Scratch {
    uses_left: Vec<u32>,
    lives_out: Vec<bool>,
    /// When a register was last read or written in the order being made.
    touched: Vec<u32>,
    /// Position of the next use, in [`BlockOrder::traffic`].
    upcoming: Vec<u32>,
}

impl Scratch {
    fn new(count: usize) -> Scratch {
        Scratch {
            uses_left: vec![0; count],
            lives_out: vec![false; count],
            touched: vec![0; count],
            upcoming: vec![0; count],
        }
    }
}

struct BlockOrder<'a> {
    nodes: Vec<Node>,
    /// Registers live where the block begins.
    live_in: i32,
    /// Places in the order of [`BlockOrder::on_demand`].
    rank: Vec<u32>,
    scratch: &'a mut Scratch,
}

impl<'a> BlockOrder<'a> {
    fn new<I: Schedule>(mir: &Mir<I>, start: u32, end: u32, live_in: u32, scratch: &'a mut Scratch) -> Self {
        let n = (end - start) as usize;
        let mut nodes: Vec<Node> = vec![Node::default(); n];
        let mut def_at: rustc_hash::FxHashMap<VReg, u32> = rustc_hash::FxHashMap::default();
        let mut users: rustc_hash::FxHashMap<VReg, Vec<u32>> = rustc_hash::FxHashMap::default();
        let mut last_fence: Option<u32> = None;
        let mut since_fence: Vec<u32> = Vec::new();
        // Per class bit: the last write and the reads since.
        let mut last_write = [None::<u32>; 8];
        let mut reads: [Vec<u32>; 8] = Default::default();
        let mut outputs: [Vec<u32>; 8] = Default::default();
        for k in 0..n {
            let inst = Inst(start + k as u32);
            let data = &mir.data[inst.0 as usize];
            let mut preds: Vec<u32> = Vec::new();
            let operands = mir.operands(inst);
            let mut uses: Vec<VReg> = Vec::new();
            let mut defs: Vec<VReg> = Vec::new();
            for o in operands {
                let v = o.vreg;
                if o.kind == OperandKind::Use {
                    if !mir.program.vregs[v.0 as usize].undefined && !uses.contains(&v) {
                        uses.push(v);
                    }
                    preds.extend(def_at.get(&v));
                } else {
                    defs.push(v);
                    if let Some(t) = o.tied
                        && let Some(old) = operands.get(t as usize)
                    {
                        // Everything that reads the old version comes first, or it would have to be copied.
                        preds.extend(users.get(&old.vreg).into_iter().flatten());
                    }
                }
            }
            match data.memory() {
                Memory::None => {}
                Memory::Read(c) => {
                    preds.extend(last_fence);
                    for bit in (0..8).filter(|bit| c & (1 << bit) != 0) {
                        preds.extend(last_write[bit]);
                        preds.extend(&outputs[bit]);
                        reads[bit].push(k as u32);
                    }
                    since_fence.push(k as u32);
                }
                Memory::Write(c) => {
                    preds.extend(last_fence);
                    for bit in (0..8).filter(|bit| c & (1 << bit) != 0) {
                        preds.extend(last_write[bit]);
                        preds.append(&mut reads[bit]);
                        preds.append(&mut outputs[bit]);
                        last_write[bit] = Some(k as u32);
                    }
                    since_fence.push(k as u32);
                }
                Memory::Output(c) => {
                    preds.extend(last_fence);
                    for bit in (0..8).filter(|bit| c & (1 << bit) != 0) {
                        preds.extend(last_write[bit]);
                        preds.extend(&reads[bit]);
                        outputs[bit].push(k as u32);
                    }
                    since_fence.push(k as u32);
                }
                Memory::Fence => {
                    preds.extend(last_fence);
                    preds.append(&mut since_fence);
                    last_fence = Some(k as u32);
                }
            }
            if data.pinned() {
                if k > 0 {
                    // The terminator: after everything.
                    preds = (0..k as u32).collect();
                }
            } else if k > 0 && mir.data[start as usize].pinned() {
                preds.push(0);
            }
            preds.retain(|&p| p != k as u32);
            preds.sort_unstable();
            preds.dedup();
            for &p in &preds {
                nodes[p as usize].succs.push(k as u32);
            }
            for o in operands {
                if o.kind == OperandKind::Use {
                    users.entry(o.vreg).or_default().push(k as u32);
                } else {
                    def_at.insert(o.vreg, k as u32);
                }
            }
            let node = &mut nodes[k];
            node.preds = preds;
            node.uses = uses;
            node.defs = defs;
            node.latency = data.latency();
            node.cheap = data.is_cheap() && !data.pinned();
            node.waits = !data.pinned() && matches!(data.memory(), Memory::None | Memory::Read(_));
        }
        for k in (0..n).rev() {
            let h = nodes[k].succs.iter().map(|&s| nodes[s as usize].height).max().unwrap_or(0);
            nodes[k].height = h + nodes[k].latency;
        }
        BlockOrder { nodes, live_in: live_in as i32, rank: Vec::new(), scratch }
    }

    fn count_uses(&mut self) {
        for n in &self.nodes {
            for v in n.uses.iter().chain(&n.defs) {
                self.scratch.uses_left[v.0 as usize] = 0;
                self.scratch.touched[v.0 as usize] = 0;
            }
        }
        for n in &self.nodes {
            for v in &n.uses {
                self.scratch.uses_left[v.0 as usize] += 1;
            }
        }
    }

    /// Registers that are no longer live once `n` is placed, and those that begin to be.
    fn change(&self, n: &Node) -> i32 {
        let (left, out) = (&self.scratch.uses_left, &self.scratch.lives_out);
        let dies = n.uses.iter().filter(|v| left[v.0 as usize] == 1 && !out[v.0 as usize]).count();
        let born = n.defs.iter().filter(|v| left[v.0 as usize] > 0 || out[v.0 as usize]).count();
        born as i32 - dies as i32
    }

    /// Change of the number of live registers when a node is placed now, with the cheap definitions that it pulls in.
    fn delta(&self, k: u32) -> i32 {
        let n = &self.nodes[k as usize];
        let pulled =
            n.preds.iter().filter(|&&p| self.nodes[p as usize].cheap && !self.nodes[p as usize].done);
        self.change(n) + pulled.count() as i32
    }

    /// How long ago the operand was touched that was touched longest ago.
    fn age(&self, k: u32, now: u32) -> u32 {
        let oldest = self.nodes[k as usize].uses.iter().map(|v| self.scratch.touched[v.0 as usize]).min();
        now - oldest.unwrap_or(now)
    }

    fn place(&mut self, k: u32, live: &mut i32, out: &mut Vec<u32>) {
        *live += self.change(&self.nodes[k as usize]);
        out.push(k);
        let node = &mut self.nodes[k as usize];
        node.done = true;
        for v in &node.uses {
            self.scratch.uses_left[v.0 as usize] -= 1;
        }
        for v in node.uses.iter().chain(&node.defs) {
            self.scratch.touched[v.0 as usize] = out.len() as u32;
        }
    }

    /// Highest number of live registers in this order.
    fn pressure(&mut self, order: &[u32]) -> u32 {
        self.count_uses();
        let mut live = self.live_in;
        let mut max = live;
        let mut out = Vec::new();
        for &k in order {
            self.place(k, &mut live, &mut out);
            max = max.max(live);
        }
        max.max(0) as u32
    }

    /// The new order, if it is another one.
    fn best(&mut self, limit: u32) -> Option<Vec<u32>> {
        let old: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let on_demand = self.on_demand();
        self.rank = vec![0; old.len()];
        for (at, &k) in on_demand.iter().enumerate() {
            self.rank[k as usize] = at as u32;
        }
        let first = self.schedule(limit);
        let now = self.pressure(&first);
        if now <= limit {
            return (first != old).then_some(first);
        }
        // Something will go to memory: whichever order moves least there and back.
        let mut best = old;
        let mut least = self.traffic(&best, limit);
        for order in [first, self.schedule(limit / 2), self.schedule(0), on_demand] {
            let traffic = self.traffic(&order, limit);
            if traffic < least {
                (best, least) = (order, traffic);
            }
        }
        (!best.iter().copied().eq(0..best.len() as u32)).then_some(best)
    }

    /// Loads and stores of registers that this order takes when `limit` of them fit, in fifths of one: the
    /// register goes whose next use is farthest (Belady). Cheap definitions are made again.
    fn traffic(&mut self, order: &[u32], limit: u32) -> u32 {
        const FAR: u32 = u32::MAX - 1;
        let end = order.len() as u32;
        // Next uses after each operand, from the end.
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        for n in &self.nodes {
            for v in n.uses.iter().chain(&n.defs) {
                let v = v.0 as usize;
                self.scratch.upcoming[v] = if self.scratch.lives_out[v] { end } else { u32::MAX };
            }
        }
        for (at, &k) in order.iter().enumerate().rev() {
            let node = &self.nodes[k as usize];
            let list = node.uses.iter().chain(&node.defs);
            next[at] = list.map(|v| self.scratch.upcoming[v.0 as usize]).collect();
            for v in &node.uses {
                self.scratch.upcoming[v.0 as usize] = at as u32;
            }
        }
        // `(next use, register, was stored, is cheap)`; `upcoming` says now whether a register is in the list.
        let mut inside: Vec<(u32, VReg, bool, bool)> = Vec::new();
        let mut seen: rustc_hash::FxHashMap<VReg, bool> = rustc_hash::FxHashMap::default();
        let mut first_uses: Vec<(u32, VReg)> = Vec::new();
        let mut defined: rustc_hash::FxHashSet<VReg> = rustc_hash::FxHashSet::default();
        let mut cost = 0;
        for (at, &k) in order.iter().enumerate() {
            let node = &self.nodes[k as usize];
            for &v in &node.uses {
                if !defined.contains(&v) && seen.insert(v, false).is_none() {
                    first_uses.push((at as u32, v));
                }
            }
            defined.extend(&node.defs);
        }
        seen.clear();
        // What passes through without being used would go first; what is used comes by distance.
        let passing = (self.live_in as u32).saturating_sub(first_uses.len() as u32);
        inside.extend((0..passing).map(|_| (FAR, VReg(u32::MAX), false, false)));
        inside.extend(first_uses.iter().map(|&(at, v)| (at, v, false, false)));
        self.shrink(&mut inside, limit as usize, &mut seen, &mut cost);
        for (at, &k) in order.iter().enumerate() {
            let node = &self.nodes[k as usize];
            for (n, &v) in node.uses.iter().enumerate() {
                match inside.iter_mut().find(|entry| entry.1 == v) {
                    Some(entry) => entry.0 = next[at][n],
                    None => {
                        let cheap = seen.get(&v).copied().unwrap_or(false);
                        cost += if cheap { 1 } else { 5 };
                        inside.push((next[at][n], v, !cheap, cheap));
                    }
                }
            }
            inside.retain(|entry| entry.0 != u32::MAX);
            for (n, &v) in node.defs.iter().enumerate() {
                let after = next[at][node.uses.len() + n];
                if after != u32::MAX {
                    inside.push((after, v, false, node.cheap));
                }
            }
            self.shrink(&mut inside, limit as usize, &mut seen, &mut cost);
        }
        cost
    }

    fn shrink(
        &self,
        inside: &mut Vec<(u32, VReg, bool, bool)>,
        limit: usize,
        gone: &mut rustc_hash::FxHashMap<VReg, bool>,
        cost: &mut u32,
    ) {
        while inside.len() > limit {
            let Some(at) = (0..inside.len()).max_by_key(|&at| inside[at].0) else { return };
            let (_, v, stored, cheap) = inside.swap_remove(at);
            if !stored && !cheap {
                *cost += 5;
            }
            gone.insert(v, cheap);
        }
    }

    /// The old order, but everything that only makes a value stands right before its first user, operand by operand, the
    /// one first that takes more instructions.
    fn on_demand(&mut self) -> Vec<u32> {
        let n = self.nodes.len();
        let mut out: Vec<u32> = Vec::with_capacity(n);
        // Instructions that a value takes, its own operands' included, as a measure of what it needs meanwhile.
        let mut work = vec![1u32; n];
        for k in 0..n {
            let sum: u32 = self.nodes[k].preds.iter().fold(1, |sum, &p| work[p as usize].saturating_add(sum));
            work[k] = sum.min(1 << 16);
        }
        for node in &mut self.nodes {
            node.done = false;
        }
        let mut stack: Vec<u32> = Vec::new();
        for root in 0..n as u32 {
            let node = &self.nodes[root as usize];
            let waits = node.waits && node.defs.iter().all(|v| !self.scratch.lives_out[v.0 as usize]);
            if waits && root + 1 != n as u32 {
                continue;
            }
            stack.push(root);
            while let Some(&k) = stack.last() {
                if self.nodes[k as usize].done {
                    stack.pop();
                    continue;
                }
                let open = stack.len();
                stack.extend(self.nodes[k as usize].preds.iter().filter(|&&p| !self.nodes[p as usize].done));
                if stack.len() == open {
                    stack.pop();
                    self.nodes[k as usize].done = true;
                    out.push(k);
                } else {
                    // The last one is taken first.
                    stack[open..].sort_by_key(|&p| (work[p as usize], std::cmp::Reverse(p)));
                }
            }
        }
        out
    }

    fn schedule(&mut self, limit: u32) -> Vec<u32> {
        self.count_uses();
        let n = self.nodes.len();
        let mut live = self.live_in;
        let mut out: Vec<u32> = Vec::with_capacity(n);
        let mut ready: Vec<u32> = Vec::new();
        for k in 0..n {
            let waiting =
                self.nodes[k].preds.iter().filter(|&&p| !self.nodes[p as usize].cheap).count() as u32;
            self.nodes[k].waiting = waiting;
            self.nodes[k].done = false;
            if waiting == 0 && !self.nodes[k].cheap {
                ready.push(k as u32);
            }
        }
        // The window is at the end of the list: what comes first in the block stands there.
        ready.reverse();
        // Cheap nodes wait for the entry only.
        while !ready.is_empty() {
            let tight = live >= limit as i32;
            let now = out.len() as u32;
            let key = |s: &Self, k: u32| {
                let d = s.delta(k);
                let h = s.nodes[k as usize].height as i32;
                // Best first: what frees registers when they are short, then what is needed next; the longest path
                // otherwise.
                match tight {
                    true if d < 0 => (d, s.age(k, now) as i32, 0, k),
                    true => (0, s.rank[k as usize] as i32, d, k),
                    false => (-h, d, 0, k),
                }
            };
            let from = ready.len().saturating_sub(WINDOW);
            let mut best = from;
            let mut best_key = key(self, ready[from]);
            for (at, &k) in ready.iter().enumerate().skip(from + 1) {
                let candidate = key(self, k);
                if candidate < best_key {
                    best = at;
                    best_key = candidate;
                }
            }
            let k = ready.remove(best);
            for i in 0..self.nodes[k as usize].preds.len() {
                let p = self.nodes[k as usize].preds[i];
                if self.nodes[p as usize].cheap && !self.nodes[p as usize].done {
                    self.place(p, &mut live, &mut out);
                }
            }
            self.place(k, &mut live, &mut out);
            for i in 0..self.nodes[k as usize].succs.len() {
                let s = self.nodes[k as usize].succs[i] as usize;
                if self.nodes[s].cheap {
                    continue;
                }
                self.nodes[s].waiting -= 1;
                if self.nodes[s].waiting == 0 {
                    ready.push(s as u32);
                }
            }
        }
        out
    }
}
