//! Exact liveness by data flow over sparse bit sets.
//!
//! Only values that cross a block boundary get a bit, numbered in order of appearance, so that what lives together stands
//! in few words; of a block's set only the words that are not empty are kept. (With a word for every value in every block
//! a chain of selections took time and memory by the square of its length.)
//!
//! Blocks are visited in postorder and again only while something they depend on changed: one visit per block without
//! loops, loop depth + 1 with them (bug shape A49 is a chain of blocks visited in the wrong order). The definition of a
//! value may occur several times ([`crate::code`]: a fill defines it again), so this is plain data flow, not the SSA
//! shortcut.

use crate::code::*;
use crate::graph::{Graph, NONE};
use crate::problem::OperandKind;

pub(crate) struct Liveness {
    /// Bit of a value, or [`NONE`] when it never leaves its block.
    bit: Vec<u32>,
    /// The value of a bit.
    values: Vec<u32>,
    live_in: Rows,
    live_out: Rows,
    /// For parameters: is it read at all? The argument of one that is not is not read either.
    pub param_live: Vec<bool>,
    /// Blocks visited by the data flow.
    pub visits: u64,
}

/// A word of a sparse set: its number and its bits.
type Word = (u32, u64);

/// A sparse set for each block, words ascending.
#[derive(Default)]
struct Rows {
    words: Vec<Word>,
    spans: Vec<(u32, u32)>,
}

impl Rows {
    fn new(blocks: usize) -> Rows {
        Rows { words: Vec::new(), spans: vec![(0, 0); blocks] }
    }

    fn row(&self, block: u32) -> &[Word] {
        let (start, end) = self.spans[block as usize];
        &self.words[start as usize..end as usize]
    }

    /// The set of `block` becomes what has been gathered; whether it was something else before.
    fn set(&mut self, block: u32, gathered: &mut Gathered) -> bool {
        gathered.sort();
        let (start, end) = self.spans[block as usize];
        let new = gathered.touched.iter().map(|&word| (word, gathered.bits[word as usize]));
        let new = new.filter(|word| word.1 != 0);
        if self.row(block).iter().copied().eq(new.clone()) {
            return false;
        }
        if new.clone().count() <= (end - start) as usize {
            let mut at = start;
            for word in new {
                self.words[at as usize] = word;
                at += 1;
            }
            self.spans[block as usize] = (start, at);
        } else {
            let start = self.words.len() as u32;
            self.words.extend(new);
            self.spans[block as usize] = (start, self.words.len() as u32);
        }
        true
    }
}

/// One set at full length while it is put together, with the words that may not be empty.
struct Gathered {
    bits: Vec<u64>,
    touched: Vec<u32>,
}

impl Gathered {
    fn clear(&mut self) {
        for word in self.touched.drain(..) {
            self.bits[word as usize] = 0;
        }
    }

    fn sort(&mut self) {
        self.touched.sort_unstable();
        self.touched.dedup();
    }

    fn add(&mut self, row: &[Word]) {
        for &(word, bits) in row {
            if self.bits[word as usize] == 0 {
                self.touched.push(word);
            }
            self.bits[word as usize] |= bits;
        }
    }

    fn sub(&mut self, row: &[Word]) {
        for &(word, bits) in row {
            self.bits[word as usize] &= !bits;
        }
    }

    fn insert(&mut self, bit: u32) {
        if bit != NONE {
            self.add(&[(bit / 64, 1 << (bit % 64))]);
        }
    }

    /// Take a bit out; whether it was there.
    fn remove(&mut self, bit: u32) -> bool {
        let there = self.has(bit);
        if there {
            self.sub(&[(bit / 64, 1 << (bit % 64))]);
        }
        there
    }

    fn has(&self, bit: u32) -> bool {
        bit != NONE && self.bits[bit as usize / 64] >> (bit % 64) & 1 != 0
    }
}

impl Liveness {
    /// Liveness of `code`; fills in `code.kills`. Visits blocks at most `loop depth + 1` times each.
    pub fn new(code: &mut Code, graph: &Graph) -> Liveness {
        let mut live = Liveness::number(code);
        let words = live.values.len().div_ceil(64);
        let count = code.blocks.len();
        let empty = || Gathered { bits: vec![0; words], touched: Vec::new() };
        // Per block: what it reads before writing, and what it writes.
        let (mut reads, mut writes) = (Rows::new(count), Rows::new(count));
        let (mut read, mut written) = (empty(), empty());
        for (index, block) in code.blocks.iter().enumerate() {
            read.clear();
            written.clear();
            for step in block.steps.clone() {
                let ops = &code.ops[code.steps[step as usize].ops()];
                for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                    let bit = live.bit[op.vreg.0 as usize];
                    if !written.has(bit) {
                        read.insert(bit);
                    }
                }
                for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                    written.insert(live.bit[op.vreg.0 as usize]);
                }
            }
            reads.set(index as u32, &mut read);
            writes.set(index as u32, &mut written);
        }
        let mut dirty = vec![true; count];
        let mut set = empty();
        loop {
            let mut again = false;
            for &block in graph.rpo.iter().rev() {
                if !std::mem::take(&mut dirty[block as usize]) {
                    continue;
                }
                live.visits += 1;
                set.clear();
                for edge in &code.blocks[block as usize].succs {
                    set.add(live.live_in.row(edge.to));
                }
                live.live_out.set(block, &mut set);
                for edge in &code.blocks[block as usize].succs {
                    for (&arg, &param) in edge.args.iter().zip(&code.blocks[edge.to as usize].params) {
                        if live.param_live[param as usize] {
                            set.insert(live.bit[arg as usize]);
                        }
                    }
                }
                set.sub(writes.row(block));
                set.add(reads.row(block));
                let mut changed = false;
                for &param in &code.blocks[block as usize].params {
                    if set.remove(live.bit[param as usize]) {
                        changed |= !std::mem::replace(&mut live.param_live[param as usize], true);
                    }
                }
                changed |= live.live_in.set(block, &mut set);
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
        let count = code.blocks.len();
        Liveness {
            bit,
            values,
            live_in: Rows::new(count),
            live_out: Rows::new(count),
            param_live: vec![false; code.vregs.len()],
            visits: 0,
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
        Bits { row: self.live_in.row(block), values: &self.values, at: 0, bits: None }
    }

    pub fn outs(&self, block: u32) -> Bits<'_> {
        Bits { row: self.live_out.row(block), values: &self.values, at: 0, bits: None }
    }

    pub fn is_in(&self, block: u32, vreg: u32) -> bool {
        has(self.live_in.row(block), self.bit[vreg as usize])
    }

    pub fn is_out(&self, block: u32, vreg: u32) -> bool {
        has(self.live_out.row(block), self.bit[vreg as usize])
    }
}

fn has(row: &[Word], bit: u32) -> bool {
    // (NONE lies beyond every word.)
    let found = row.binary_search_by_key(&(bit / 64), |word| word.0);
    found.is_ok_and(|at| row[at].1 >> (bit % 64) & 1 != 0)
}

/// The values of one row, always in the same order.
pub(crate) struct Bits<'a> {
    row: &'a [Word],
    values: &'a [u32],
    at: usize,
    bits: Option<u64>,
}

impl Iterator for Bits<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while let Some(&(word, all)) = self.row.get(self.at) {
            let bits = self.bits.unwrap_or(all);
            if bits != 0 {
                self.bits = Some(bits & (bits - 1));
                return Some(self.values[word as usize * 64 + bits.trailing_zeros() as usize]);
            }
            self.bits = None;
            self.at += 1;
        }
        None
    }
}
