//! The instructions of a block, what each waits for, and the values that it reads and writes, numbered within the block.

use super::{Memory, Schedule};
use crate::function::Mir;
use kempe_ra::{Inst, OperandKind, VReg};
use smallvec::SmallVec;

/// One instruction.
#[derive(Default, Clone, Debug)]
pub(super) struct Node {
    /// What waits for it, and what it waits for.
    pub succs: SmallVec<[u32; 4]>,
    pub preds: SmallVec<[u32; 4]>,
    /// Values read (without repetition) and written.
    pub uses: SmallVec<[u32; 4]>,
    pub defs: SmallVec<[u32; 2]>,
    pub latency: u32,
    /// Longest way from its start to the end of the block, in cycles of latency.
    pub height: u32,
    /// Reads no register: it stands right before its first user.
    pub cheap: bool,
    /// It only makes values: it may stand anywhere before its first user.
    pub waits: bool,
}

/// A block.
#[derive(Debug)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// By value: is it live behind the block?
    pub lives_out: Vec<bool>,
    /// By value: does it come into the block?
    pub comes_in: Vec<bool>,
    /// By value: cycles to make it again without memory, where that can be done.
    pub remake: Vec<Option<u32>>,
    /// Registers that are live all through the block without being touched.
    pub passing: u32,
}

/// Numbers of registers within the block at hand; the tables are used for all blocks in turn.
pub(super) struct Numbers {
    /// By register: its number, valid where `seen` has the number of the block.
    number: Vec<u32>,
    seen: Vec<u32>,
    block: u32,
    /// By number: the node that writes it, and those that read it.
    writer: Vec<u32>,
    readers: Vec<SmallVec<[u32; 4]>>,
}

const NOBODY: u32 = u32::MAX;

impl Numbers {
    pub fn new(registers: usize) -> Numbers {
        Numbers {
            number: vec![0; registers],
            seen: vec![0; registers],
            block: 0,
            writer: Vec::new(),
            readers: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.block += 1;
        self.writer.clear();
        self.readers.clear();
    }

    fn of(&mut self, v: VReg) -> u32 {
        let at = v.0 as usize;
        if self.seen[at] != self.block {
            self.seen[at] = self.block;
            self.number[at] = self.writer.len() as u32;
            self.writer.push(NOBODY);
            self.readers.push(SmallVec::new());
        }
        self.number[at]
    }
}

/// Who touched which class of memory, for the order among accesses.
#[derive(Default)]
struct Accesses {
    fence: Option<u32>,
    since_fence: Vec<u32>,
    /// Per class bit: the last write, and the reads and outputs since.
    write: [Option<u32>; 8],
    reads: [Vec<u32>; 8],
    outputs: [Vec<u32>; 8],
}

impl Accesses {
    /// What access `k` waits for.
    fn add(&mut self, k: u32, memory: Memory, preds: &mut Vec<u32>) {
        let bits = |c: u8| (0..8).filter(move |bit| c & (1 << bit) != 0);
        match memory {
            Memory::None => return,
            Memory::Fence => {
                preds.extend(self.fence);
                preds.append(&mut self.since_fence);
                self.fence = Some(k);
                return;
            }
            Memory::Read(c) => {
                for bit in bits(c) {
                    preds.extend(self.write[bit]);
                    preds.extend(&self.outputs[bit]);
                    self.reads[bit].push(k);
                }
            }
            Memory::Write(c) => {
                for bit in bits(c) {
                    preds.extend(self.write[bit]);
                    preds.append(&mut self.reads[bit]);
                    preds.append(&mut self.outputs[bit]);
                    self.write[bit] = Some(k);
                }
            }
            Memory::Output(c) => {
                for bit in bits(c) {
                    preds.extend(self.write[bit]);
                    preds.extend(&self.reads[bit]);
                    self.outputs[bit].push(k);
                }
            }
        }
        preds.extend(self.fence);
        self.since_fence.push(k);
    }
}

impl Graph {
    /// The block of instructions `start..end`, at whose start `live_in` registers are live.
    pub fn new<I: Schedule>(
        mir: &Mir<I>,
        (start, end): (u32, u32),
        live_in: u32,
        lives_out: &[bool],
        numbers: &mut Numbers,
    ) -> Graph {
        numbers.start();
        let n = (end - start) as usize;
        let mut nodes: Vec<Node> = vec![Node::default(); n];
        let mut out: Vec<bool> = Vec::new();
        let mut comes_in: Vec<bool> = Vec::new();
        let mut remake: Vec<Option<u32>> = Vec::new();
        let mut accesses = Accesses::default();
        let mut preds: Vec<u32> = Vec::new();
        for k in 0..n {
            let inst = Inst(start + k as u32);
            let data = &mir.data[inst.0 as usize];
            let operands = mir.operands(inst);
            let node = &mut nodes[k];
            let undefined = |v: VReg| mir.program.vregs[v.0 as usize].undefined;
            for o in operands {
                if numbers.of(o.vreg) as usize == out.len() {
                    out.push(lives_out[o.vreg.0 as usize]);
                    comes_in.push(o.kind == OperandKind::Use && !undefined(o.vreg));
                    let recipe = mir.program.vregs[o.vreg.0 as usize].recipe;
                    remake.push(recipe.map(|r| mir.program.recipe_cost[r.0 as usize].ceil() as u32));
                }
            }
            for o in operands {
                let v = numbers.of(o.vreg);
                if o.kind == OperandKind::Use {
                    if !undefined(o.vreg) && !node.uses.contains(&v) {
                        node.uses.push(v);
                    }
                    preds.extend(Some(numbers.writer[v as usize]).filter(|&w| w != NOBODY));
                } else {
                    node.defs.push(v);
                    if let Some(old) = o.tied.and_then(|t| operands.get(t as usize)) {
                        // Everything that reads the old version comes first, or it would have to be copied.
                        let old = numbers.of(old.vreg);
                        preds.extend(&numbers.readers[old as usize]);
                    }
                }
            }
            accesses.add(k as u32, data.memory(), &mut preds);
            if data.pinned() {
                if k > 0 {
                    // The terminator: after everything.
                    preds.clear();
                    preds.extend(0..k as u32);
                }
            } else if k > 0 && mir.data[start as usize].pinned() {
                preds.push(0);
            }
            preds.retain(|&p| p != k as u32);
            preds.sort_unstable();
            preds.dedup();
            for o in operands {
                let v = numbers.of(o.vreg) as usize;
                match o.kind {
                    OperandKind::Use => numbers.readers[v].push(k as u32),
                    _ => numbers.writer[v] = k as u32,
                }
            }
            node.latency = data.latency();
            node.cheap = data.is_cheap() && !data.pinned();
            node.waits = !data.pinned() && matches!(data.memory(), Memory::None | Memory::Read(_));
            node.preds.extend_from_slice(&preds);
            for p in preds.drain(..) {
                nodes[p as usize].succs.push(k as u32);
            }
        }
        for k in (0..n).rev() {
            let below = nodes[k].succs.iter().map(|&s| nodes[s as usize].height).max().unwrap_or(0);
            nodes[k].height = below + nodes[k].latency;
        }
        let touched = comes_in.iter().filter(|&&c| c).count() as u32;
        Graph { nodes, lives_out: out, comes_in, remake, passing: live_in.saturating_sub(touched) }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn values(&self) -> usize {
        self.lives_out.len()
    }

    /// Registers live at the start.
    pub fn live_in(&self) -> i32 {
        self.passing as i32 + self.comes_in.iter().filter(|&&c| c).count() as i32
    }

    /// By value: how often it is read.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.values()];
        for node in &self.nodes {
            for &v in &node.uses {
                counts[v as usize] += 1;
            }
        }
        counts
    }
}
