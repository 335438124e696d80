//! Which registers live where blocks begin and end: data flow over bit sets, for the order before allocation. (The
//! allocator has its own, which knows about edits.)

use crate::function::Mir;
use kempe_ra::{Inst, OperandKind, VReg};

const NONE: u32 = u32::MAX;

pub(crate) struct Live {
    /// Bit of a register, or [`NONE`] when it never leaves its block.
    bit: Vec<u32>,
    /// The register of a bit.
    vregs: Vec<VReg>,
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// For parameters: is it used in its block, or does it live out?
    used: Vec<bool>,
}

impl Live {
    pub fn new<I>(mir: &Mir<I>) -> Live {
        let program = &mir.program;
        let count = program.blocks.len();
        let mut home = vec![NONE; program.vregs.len()];
        let mut bit = vec![NONE; program.vregs.len()];
        let mut used = vec![false; program.vregs.len()];
        let mut vregs: Vec<VReg> = Vec::new();
        let mut note = |v: VReg| {
            if bit[v.0 as usize] == NONE && !program.vregs[v.0 as usize].undefined {
                bit[v.0 as usize] = vregs.len() as u32;
                vregs.push(v);
            }
        };
        for (b, block) in program.blocks.iter().enumerate() {
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
        for (b, block) in program.blocks.iter().enumerate() {
            for i in block.insts.clone() {
                for o in mir.operands(Inst(i)).iter().filter(|o| o.kind == OperandKind::Use) {
                    used[o.vreg.0 as usize] = true;
                    if home[o.vreg.0 as usize] != b as u32 {
                        note(o.vreg);
                    }
                }
            }
            for &v in block.succs.iter().flat_map(|e| &e.args) {
                used[v.0 as usize] = true;
                if home[v.0 as usize] != b as u32 {
                    note(v);
                }
            }
        }
        let words = vregs.len().div_ceil(64);
        let mut live = Live {
            bit,
            vregs,
            words,
            live_in: vec![0; count * words],
            live_out: vec![0; count * words],
            used,
        };
        // In SSA form a use in the block of the definition comes after it: what is used and not defined here is live in.
        let mut reads = vec![0u64; count * words];
        let mut writes = vec![0u64; count * words];
        for (b, block) in program.blocks.iter().enumerate() {
            let (reads, writes) =
                (&mut reads[b * words..(b + 1) * words], &mut writes[b * words..(b + 1) * words]);
            for &v in &block.params {
                live.set(writes, v);
            }
            for i in block.insts.clone() {
                for o in mir.operands(Inst(i)) {
                    let to = if o.kind == OperandKind::Use { &mut *reads } else { &mut *writes };
                    live.set(to, o.vreg);
                }
            }
            for &v in block.succs.iter().flat_map(|e| &e.args) {
                live.set(reads, v);
            }
        }
        let mut dirty = vec![true; count];
        loop {
            let mut again = false;
            for b in (0..count).rev() {
                if !std::mem::take(&mut dirty[b]) {
                    continue;
                }
                let mut changed = false;
                for w in 0..words {
                    let succs = program.blocks[b].succs.iter();
                    let out = succs.fold(0, |bits, e| bits | live.live_in[e.to.0 as usize * words + w]);
                    live.live_out[b * words + w] = out;
                    let at = b * words + w;
                    let new = (reads[at] | out) & !writes[at];
                    changed |= live.live_in[at] != new;
                    live.live_in[at] = new;
                }
                if changed {
                    for pred in &program.blocks[b].preds {
                        dirty[pred.0 as usize] = true;
                        again |= pred.0 as usize >= b;
                    }
                }
            }
            if !again {
                return live;
            }
        }
    }

    fn set(&self, row: &mut [u64], v: VReg) {
        let bit = self.bit[v.0 as usize];
        if bit != NONE {
            row[bit as usize / 64] |= 1 << (bit % 64);
        }
    }

    /// How many registers live where the block begins.
    pub fn at_start<I>(&self, mir: &Mir<I>, b: usize) -> u32 {
        let row = &self.live_in[b * self.words..(b + 1) * self.words];
        let params = mir.program.blocks[b].params.iter().filter(|v| self.used[v.0 as usize]);
        row.iter().map(|w| w.count_ones()).sum::<u32>() + params.count() as u32
    }

    fn each_out<I>(&self, mir: &Mir<I>, b: usize, mut f: impl FnMut(VReg)) {
        for (w, &bits) in self.live_out[b * self.words..(b + 1) * self.words].iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                f(self.vregs[w * 64 + bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
        for &v in mir.program.blocks[b].succs.iter().flat_map(|e| &e.args) {
            f(v);
        }
    }

    /// Marks what lives at the end of the block, arguments of its edges included.
    pub fn mark_out<I>(&self, mir: &Mir<I>, b: usize, marks: &mut [bool]) {
        self.each_out(mir, b, |v| marks[v.0 as usize] = true);
    }

    pub fn unmark_out<I>(&self, mir: &Mir<I>, b: usize, marks: &mut [bool]) {
        self.each_out(mir, b, |v| marks[v.0 as usize] = false);
    }
}
