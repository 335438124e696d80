//! Scheduling before allocation, inside blocks: long operations early, pressure within bounds.
//!
//! A list scheduler in the manner of Goodman & Hsu (1988): while few registers are live it follows the longest
//! latency path, so that memory accesses start early and stand together; when pressure reaches the limit of the
//! configuration it prefers what frees registers. Instructions without register uses (constants, uniform words) are
//! placed right before their first user. A block keeps its old order when the new one needs more registers than the
//! limit and more than the old one (the schedule with the least pressure wins, not the last one).
//!
//! Left out: motion between blocks.

use crate::function::Mir;
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
    /// Ordered with every access.
    Fence,
}

/// Ready instructions looked at for one choice: bounds the time in huge blocks.
const WINDOW: usize = 48;

/// Reorders the instructions of every block for at most about `limit` live registers.
pub fn order<I: Schedule + Copy>(mir: &mut Mir<I>, limit: u32) {
    let mut uses_left = vec![0u32; mir.program.vregs.len()];
    let mut lives_out = vec![false; mir.program.vregs.len()];
    let mut home = vec![u32::MAX; mir.program.vregs.len()];
    for (b, block) in mir.program.blocks.iter().enumerate() {
        for v in &block.params {
            home[v.0 as usize] = b as u32;
        }
        for i in block.insts.clone() {
            for o in mir.operands(Inst(i)) {
                if o.kind != OperandKind::Use {
                    home[o.vreg.0 as usize] = b as u32;
                }
            }
        }
    }
    for (b, block) in mir.program.blocks.iter().enumerate() {
        for i in block.insts.clone() {
            for o in mir.operands(Inst(i)) {
                if o.kind == OperandKind::Use && home[o.vreg.0 as usize] != b as u32 {
                    lives_out[o.vreg.0 as usize] = true;
                }
            }
        }
        for e in &block.succs {
            for v in &e.args {
                lives_out[v.0 as usize] = true;
            }
        }
    }
    for b in 0..mir.program.blocks.len() {
        let range = mir.program.blocks[b].insts.clone();
        if range.len() < 3 {
            continue;
        }
        let mut block = BlockOrder::new(mir, range.start, range.end, &mut uses_left, &lives_out);
        let new = block.schedule(limit);
        let old: Vec<u32> = (0..new.len() as u32).collect();
        if new == old {
            continue;
        }
        let (now, before) = (block.pressure(&new), block.pressure(&old));
        if now > limit && now > before {
            continue;
        }
        apply(mir, range.start as usize, &new);
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
    done: bool,
}

struct BlockOrder<'a> {
    nodes: Vec<Node>,
    uses_left: &'a mut Vec<u32>,
    lives_out: &'a [bool],
}

impl<'a> BlockOrder<'a> {
    fn new<I: Schedule>(
        mir: &Mir<I>,
        start: u32,
        end: u32,
        uses_left: &'a mut Vec<u32>,
        lives_out: &'a [bool],
    ) -> Self {
        let n = (end - start) as usize;
        let mut nodes: Vec<Node> = vec![Node::default(); n];
        let mut def_at: rustc_hash::FxHashMap<VReg, u32> = rustc_hash::FxHashMap::default();
        let mut users: rustc_hash::FxHashMap<VReg, Vec<u32>> = rustc_hash::FxHashMap::default();
        let mut last_fence: Option<u32> = None;
        let mut since_fence: Vec<u32> = Vec::new();
        // Per class bit: the last write and the reads since.
        let mut last_write = [None::<u32>; 8];
        let mut reads: [Vec<u32>; 8] = Default::default();
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
                    for (bit, (write, reads)) in last_write.iter().zip(&mut reads).enumerate() {
                        if c & (1 << bit) != 0 {
                            preds.extend(*write);
                            reads.push(k as u32);
                        }
                    }
                    since_fence.push(k as u32);
                }
                Memory::Write(c) => {
                    preds.extend(last_fence);
                    for (bit, (write, reads)) in last_write.iter_mut().zip(&mut reads).enumerate() {
                        if c & (1 << bit) != 0 {
                            preds.extend(*write);
                            preds.append(reads);
                            *write = Some(k as u32);
                        }
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
        }
        for k in (0..n).rev() {
            let h = nodes[k].succs.iter().map(|&s| nodes[s as usize].height).max().unwrap_or(0);
            nodes[k].height = h + nodes[k].latency;
        }
        BlockOrder { nodes, uses_left, lives_out }
    }

    fn count_uses(&mut self) {
        for n in &self.nodes {
            for v in n.uses.iter().chain(&n.defs) {
                self.uses_left[v.0 as usize] = 0;
            }
        }
        for n in &self.nodes {
            for v in &n.uses {
                self.uses_left[v.0 as usize] += 1;
            }
        }
    }

    /// Change of the number of live registers when a node is placed now.
    fn delta(&self, k: u32) -> i32 {
        let n = &self.nodes[k as usize];
        let dies = n
            .uses
            .iter()
            .filter(|v| self.uses_left[v.0 as usize] == 1 && !self.lives_out[v.0 as usize])
            .count() as i32;
        let born = n
            .defs
            .iter()
            .filter(|v| self.uses_left[v.0 as usize] > 0 || self.lives_out[v.0 as usize])
            .count() as i32;
        // Cheap definitions that it pulls in.
        let pulled =
            n.preds.iter().filter(|&&p| self.nodes[p as usize].cheap && !self.nodes[p as usize].done);
        born - dies + pulled.count() as i32
    }

    fn place(&mut self, k: u32, live: &mut i32, out: &mut Vec<u32>) {
        *live += self.delta_alone(k);
        for i in 0..self.nodes[k as usize].uses.len() {
            let v = self.nodes[k as usize].uses[i];
            self.uses_left[v.0 as usize] -= 1;
        }
        self.nodes[k as usize].done = true;
        out.push(k);
    }

    fn delta_alone(&self, k: u32) -> i32 {
        let n = &self.nodes[k as usize];
        let dies = n
            .uses
            .iter()
            .filter(|v| self.uses_left[v.0 as usize] == 1 && !self.lives_out[v.0 as usize])
            .count();
        let born = n
            .defs
            .iter()
            .filter(|v| self.uses_left[v.0 as usize] > 0 || self.lives_out[v.0 as usize])
            .count();
        born as i32 - dies as i32
    }

    /// Registers live into the block that are used in it or pass through are not known exactly; only what the block
    /// itself uses counts, which is the same for every order.
    fn live_in(&self) -> i32 {
        let mut defined: rustc_hash::FxHashSet<VReg> = rustc_hash::FxHashSet::default();
        let mut used: rustc_hash::FxHashSet<VReg> = rustc_hash::FxHashSet::default();
        for n in &self.nodes {
            used.extend(n.uses.iter().filter(|v| !defined.contains(v)));
            defined.extend(&n.defs);
        }
        used.len() as i32
    }

    /// Highest number of live registers in this order.
    fn pressure(&mut self, order: &[u32]) -> u32 {
        self.count_uses();
        let mut live = self.live_in();
        let mut max = live;
        let mut out = Vec::new();
        for &k in order {
            self.place(k, &mut live, &mut out);
            max = max.max(live);
        }
        max.max(0) as u32
    }

    fn schedule(&mut self, limit: u32) -> Vec<u32> {
        self.count_uses();
        let n = self.nodes.len();
        let mut live = self.live_in();
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
        // Cheap nodes wait for the entry only.
        while !ready.is_empty() {
            let tight = live >= limit as i32;
            let key = |s: &Self, k: u32| {
                let d = s.delta(k);
                let h = s.nodes[k as usize].height as i32;
                // Best first: what frees registers when they are short, the longest path otherwise.
                if tight { (d, -h, k) } else { (-h, d, k) }
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
