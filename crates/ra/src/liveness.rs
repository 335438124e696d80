//! Exact liveness by data flow over dense bit sets.
//!
//! Only values that cross a block boundary get a bit. Blocks are visited in postorder and again only while something
//! they depend on changed: one visit per block without loops, loop depth + 1 with them (bug shape A49 is a chain of
//! blocks visited in the wrong order). The definition of a value may occur several times ([`crate::code`]: a fill
//! defines it again), so this is plain data flow, not the SSA shortcut.

use crate::code::*;
use crate::graph::{Graph, NONE};
use crate::problem::OperandKind;

pub(crate) struct Liveness {
    /// Bit of a value, or [`NONE`] when it never leaves its block.
    bit: Vec<u32>,
    /// The value of a bit.
    values: Vec<u32>,
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// For parameters: is it read at all? The argument of one that is not is not read either.
    pub param_live: Vec<bool>,
}

impl Liveness {
    /// Liveness of `code`; fills in `code.kills`. Visits blocks at most `loop depth + 1` times each.
    pub fn new(code: &mut Code, graph: &Graph) -> Liveness {
        let mut live = Liveness::number(code);
        let words = live.words;
        let count = code.blocks.len();
        // Per block: what it reads before writing, and what it writes.
        let mut reads = vec![0u64; count * words];
        let mut writes = vec![0u64; count * words];
        for (index, block) in code.blocks.iter().enumerate() {
            let reads = &mut reads[index * words..(index + 1) * words];
            let writes = &mut writes[index * words..(index + 1) * words];
            for step in block.steps.clone() {
                let ops = &code.ops[code.steps[step as usize].ops()];
                for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                    let bit = live.bit[op.vreg.0 as usize];
                    if bit != NONE && !has(writes, bit) {
                        set(reads, bit);
                    }
                }
                for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                    set(writes, live.bit[op.vreg.0 as usize]);
                }
            }
        }
        let mut dirty = vec![true; count];
        let mut out = vec![0u64; words];
        loop {
            let mut again = false;
            for &block in graph.rpo.iter().rev() {
                if !std::mem::take(&mut dirty[block as usize]) {
                    continue;
                }
                let at = block as usize * words;
                out.fill(0);
                for edge in &code.blocks[block as usize].succs {
                    let from = edge.to as usize * words;
                    for (out, live_in) in out.iter_mut().zip(&live.live_in[from..from + words]) {
                        *out |= live_in;
                    }
                }
                live.live_out[at..at + words].copy_from_slice(&out);
                for edge in &code.blocks[block as usize].succs {
                    for (&arg, &param) in edge.args.iter().zip(&code.blocks[edge.to as usize].params) {
                        if live.param_live[param as usize] {
                            set(&mut out, live.bit[arg as usize]);
                        }
                    }
                }
                for k in 0..words {
                    out[k] = reads[at + k] | (out[k] & !writes[at + k]);
                }
                let mut changed = false;
                for &param in &code.blocks[block as usize].params {
                    let bit = live.bit[param as usize];
                    if has(&out, bit) {
                        out[bit as usize / 64] &= !(1 << (bit % 64));
                        changed |= !std::mem::replace(&mut live.param_live[param as usize], true);
                    }
                }
                changed |= live.live_in[at..at + words] != out[..];
                live.live_in[at..at + words].copy_from_slice(&out);
                if changed {
                    for &pred in &code.blocks[block as usize].preds {
                        dirty[pred as usize] = true;
                        again |= graph.rpo_index[pred as usize] >= graph.rpo_index[block as usize];
                    }
                }
            }
            if !again {
                break;
            }
        }
        live.find_kills(code);
        live
    }

    fn number(code: &Code) -> Liveness {
        let mut home_block = vec![NONE; code.vregs.len()];
        let mut bit = vec![NONE; code.vregs.len()];
        let mut values = Vec::new();
        let mut note = |vreg: u32, block: u32, home_block: &[u32]| {
            if home_block[vreg as usize] != block && bit[vreg as usize] == NONE && !code.is_undefined(vreg) {
                bit[vreg as usize] = values.len() as u32;
                values.push(vreg);
            }
        };
        for (index, block) in code.blocks.iter().enumerate() {
            let index = index as u32;
            for step in block.steps.clone() {
                let ops = &code.ops[code.steps[step as usize].ops()];
                for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                    note(op.vreg.0, index, &home_block);
                }
                for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                    home_block[op.vreg.0 as usize] = index;
                }
            }
            for &arg in block.succs.iter().flat_map(|edge| &edge.args) {
                note(arg, index, &home_block);
            }
        }
        // Parameters always have a bit: whether their arguments are read depends on it.
        for &param in code.blocks.iter().flat_map(|block| &block.params) {
            note(param, NONE - 1, &home_block);
        }
        let words = values.len().div_ceil(64);
        let count = code.blocks.len();
        Liveness {
            bit,
            values,
            words,
            live_in: vec![0; count * words],
            live_out: vec![0; count * words],
            param_live: vec![false; code.vregs.len()],
        }
    }

    fn find_kills(&mut self, code: &mut Code) {
        code.kills = vec![LIVES; code.ops.len()];
        // `live[v] == mark` says that v is live at the point of the walk.
        let mut live = vec![0u32; code.vregs.len()];
        let mut mark = 0;
        for index in 0..code.blocks.len() {
            mark += 1;
            for vreg in self.outs(index as u32) {
                live[vreg as usize] = mark;
            }
            for edge in 0..code.blocks[index].succs.len() {
                let edge = &code.blocks[index].succs[edge];
                for (&arg, &param) in edge.args.iter().zip(&code.blocks[edge.to as usize].params) {
                    if !code.is_undefined(arg) && self.param_live[param as usize] {
                        live[arg as usize] = mark;
                    }
                }
            }
            for step in code.blocks[index].steps.clone().rev() {
                let range = code.steps[step as usize].ops();
                for op in range.clone().filter(|&op| code.ops[op].kind != OperandKind::Use) {
                    let vreg = code.ops[op].vreg.0 as usize;
                    code.kills[op] = if live[vreg] == mark { LIVES } else { DIES };
                    live[vreg] = 0;
                }
                for op in range.clone().filter(|&op| code.ops[op].kind == OperandKind::Use) {
                    let vreg = code.ops[op].vreg.0;
                    if live[vreg as usize] != mark && !code.is_undefined(vreg) {
                        let again = range
                            .clone()
                            .take_while(|&o| o < op)
                            .any(|o| code.ops[o].kind == OperandKind::Use && code.ops[o].vreg.0 == vreg);
                        code.kills[op] = if again { DIES_AGAIN } else { DIES };
                    }
                }
                for op in range.filter(|&op| code.ops[op].kind == OperandKind::Use) {
                    live[code.ops[op].vreg.0 as usize] = mark;
                }
            }
        }
    }

    pub fn ins(&self, block: u32) -> Bits<'_> {
        self.row(&self.live_in, block)
    }

    pub fn outs(&self, block: u32) -> Bits<'_> {
        self.row(&self.live_out, block)
    }

    pub fn is_in(&self, block: u32, vreg: u32) -> bool {
        let bit = self.bit[vreg as usize];
        bit != NONE && has(&self.live_in[block as usize * self.words..], bit)
    }

    pub fn is_out(&self, block: u32, vreg: u32) -> bool {
        let bit = self.bit[vreg as usize];
        bit != NONE && has(&self.live_out[block as usize * self.words..], bit)
    }

    fn row<'a>(&'a self, rows: &'a [u64], block: u32) -> Bits<'a> {
        let at = block as usize * self.words;
        Bits { words: &rows[at..at + self.words], values: &self.values, word: 0, bits: None }
    }
}

fn set(words: &mut [u64], bit: u32) {
    if bit != NONE {
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
}

fn has(words: &[u64], bit: u32) -> bool {
    words[bit as usize / 64] >> (bit % 64) & 1 != 0
}

/// The values of one row, always in the same order.
pub(crate) struct Bits<'a> {
    words: &'a [u64],
    values: &'a [u32],
    word: usize,
    bits: Option<u64>,
}

impl Iterator for Bits<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.word < self.words.len() {
            let bits = self.bits.unwrap_or(self.words[self.word]);
            if bits != 0 {
                self.bits = Some(bits & (bits - 1));
                return Some(self.values[self.word * 64 + bits.trailing_zeros() as usize]);
            }
            self.bits = None;
            self.word += 1;
        }
        None
    }
}
