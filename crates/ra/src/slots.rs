//! Spill slots: which values share one.
//!
//! A parameter that lives in memory takes the slot of its arguments where their live ranges do not overlap, so that no
//! edge has to copy memory to memory (webs as in Braun & Hack; the test is the usual one in SSA form: two values
//! overlap exactly when one is live where the other is defined). Webs whose spans in layout order are disjoint then
//! share slots by a linear scan.
//!
//! Left out: holes in spans.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::code::*;
use crate::graph::NONE;
use crate::liveness::Liveness;
use crate::problem::{Edit, OperandKind, Point, Slot};

/// Most members of a web; each union tests all pairs.
const MAX_WEB: usize = 12;

pub(crate) struct Slots {
    /// First slot of a value, or [`NONE`].
    pub slot: Vec<u32>,
    pub count: u32,
}

/// Values that share a slot.
pub(crate) struct Webs {
    /// By value: the one that stands for its web.
    web: Vec<u32>,
    /// By standing value; empty for a web of one.
    members: Vec<Vec<u32>>,
    /// Where a value is defined: block and step (`NONE` for parameters).
    def: Vec<(u32, u32)>,
}

impl Webs {
    pub fn new(code: &Code) -> Webs {
        let count = code.vregs.len();
        let mut def = vec![(NONE, NONE); count];
        for (index, block) in code.blocks.iter().enumerate() {
            for &param in &block.params {
                def[param as usize] = (index as u32, NONE);
            }
            for step in block.steps.clone() {
                for op in &code.ops[code.steps[step as usize].ops()] {
                    if op.kind != OperandKind::Use {
                        def[op.vreg.0 as usize] = (index as u32, step);
                    }
                }
            }
        }
        Webs { web: (0..count as u32).collect(), members: vec![Vec::new(); count], def }
    }

    pub fn same(&self, a: u32, b: u32) -> bool {
        self.web[a as usize] == self.web[b as usize]
    }

    fn list(&self, root: u32) -> Vec<u32> {
        let known = &self.members[root as usize];
        if known.is_empty() { vec![root] } else { known.clone() }
    }

    /// The webs of two values that are known not to overlap become one.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.web[a as usize], self.web[b as usize]);
        if a == b {
            return;
        }
        let (mut mine, theirs) = (self.list(a), self.list(b));
        for &value in &theirs {
            self.web[value as usize] = a;
        }
        mine.extend(theirs);
        self.members[b as usize] = Vec::new();
        self.members[a as usize] = mine;
    }

    /// The same where they turn out not to overlap.
    pub fn join_apart(&mut self, code: &Code, live: &Liveness, a: u32, b: u32) {
        let (a, b) = (self.web[a as usize], self.web[b as usize]);
        if a == b {
            return;
        }
        let (mine, theirs) = (self.list(a), self.list(b));
        let def = &self.def;
        if mine.len() + theirs.len() > MAX_WEB
            || mine.iter().any(|&x| theirs.iter().any(|&y| overlap(code, live, def, x, y)))
        {
            return;
        }
        self.join(a, b);
    }

    /// Slots for the values in `wanted`.
    pub fn assign(&self, code: &Code, live: &Liveness, wanted: &[bool]) -> Slots {
        spread(code, live, wanted, &self.web)
    }
}

/// Give slots to the values in `wanted`; `memory_params` are `(block, parameter index)` of those born in memory.
pub(crate) fn assign(code: &Code, live: &Liveness, wanted: &[bool], memory_params: &[(u32, u32)]) -> Slots {
    let mut webs = Webs::new(code);
    for &(block, index) in memory_params {
        let info = &code.blocks[block as usize];
        let param = info.params[index as usize];
        for &pred in &info.preds {
            let edge = code.blocks[pred as usize].succs.iter().find(|edge| edge.to == block);
            let Some(&arg) = edge.and_then(|edge| edge.args.get(index as usize)) else { continue };
            if wanted[arg as usize] && !code.is_undefined(arg) {
                webs.join_apart(code, live, param, arg);
            }
        }
    }
    webs.assign(code, live, wanted)
}

fn overlap(code: &Code, live: &Liveness, def: &[(u32, u32)], a: u32, b: u32) -> bool {
    live_at(code, live, a, def[b as usize]) || live_at(code, live, b, def[a as usize])
}

/// Is `vreg` live just after the definition at `at`?
fn live_at(code: &Code, live: &Liveness, vreg: u32, at: (u32, u32)) -> bool {
    let (block, step) = at;
    if block == NONE {
        return false;
    }
    let info = &code.blocks[block as usize];
    let first = if step == NONE { info.steps.start } else { step };
    let reads = |step: u32| {
        let ops = &code.ops[code.steps[step as usize].ops()];
        ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg)
    };
    let from = if step == NONE { first } else { first + 1 };
    // Defined in this block at or before the point, or live into it.
    let defined_before = live.is_in(block, vreg)
        || info.params.contains(&vreg)
        || (info.steps.start..from).any(|step| {
            let ops = &code.ops[code.steps[step as usize].ops()];
            ops.iter().any(|op| op.kind != OperandKind::Use && op.vreg.0 == vreg)
        });
    defined_before
        && (live.is_out(block, vreg)
            || info.succs.iter().any(|edge| edge.args.contains(&vreg))
            || (from..info.steps.end).any(reads))
}

/// Webs with disjoint spans share slots.
fn spread(code: &Code, live: &Liveness, wanted: &[bool], web: &[u32]) -> Slots {
    let count = code.vregs.len();
    let mut span = vec![(u32::MAX, 0u32); count];
    let mut touch = |vreg: u32, at: u32| {
        if wanted[vreg as usize] {
            let span = &mut span[web[vreg as usize] as usize];
            span.0 = span.0.min(at);
            span.1 = span.1.max(at);
        }
    };
    for (index, block) in code.blocks.iter().enumerate() {
        for vreg in live.ins(index as u32) {
            touch(vreg, 2 * block.steps.start);
        }
        for &param in &block.params {
            touch(param, 2 * block.steps.start);
        }
        for vreg in live.outs(index as u32) {
            touch(vreg, 2 * block.steps.end);
        }
        for step in block.steps.clone() {
            for op in &code.ops[code.steps[step as usize].ops()] {
                touch(op.vreg.0, 2 * step + 1);
            }
        }
        for edge in &block.succs {
            for &arg in &edge.args {
                touch(arg, 2 * block.steps.end);
            }
            // Parameters in memory are written here.
            for &param in &code.blocks[edge.to as usize].params {
                touch(param, 2 * block.steps.end - 1);
            }
        }
    }
    let mut webs: Vec<u32> = (0..count as u32).filter(|&v| span[v as usize].0 != u32::MAX).collect();
    webs.sort_by_key(|&v| (span[v as usize], v));
    let mut slots = Slots { slot: vec![NONE; count], count: 0 };
    let mut first = vec![NONE; count];
    // By size: runs in use `(last position, slot)`.
    let mut in_use: Vec<BinaryHeap<Reverse<(u32, u32)>>> = Vec::new();
    for root in webs {
        let size = code.vregs[root as usize].size as usize;
        if in_use.len() <= size {
            in_use.resize_with(size + 1, BinaryHeap::new);
        }
        let (start, end) = span[root as usize];
        let free =
            in_use[size].peek().filter(|Reverse((last, _))| *last < start).map(|Reverse(entry)| entry.1);
        let slot = match free {
            Some(slot) => {
                in_use[size].pop();
                slot
            }
            None => {
                let slot = slots.count;
                slots.count += size as u32;
                slot
            }
        };
        in_use[size].push(Reverse((end, slot)));
        first[root as usize] = slot;
    }
    for vreg in 0..count {
        if wanted[vreg] {
            slots.slot[vreg] = first[web[vreg] as usize];
        }
    }
    slots
}

/// Numbers the slots that edits name without holes, and says how many there are: where a store turns out not to be needed, its
/// slot is nobody's.
pub(crate) fn close_gaps(edits: &mut [(Point, Edit)]) -> u32 {
    fn slot(edit: &mut Edit) -> Option<&mut Slot> {
        match edit {
            Edit::Spill { slot, .. } | Edit::Fill { slot, .. } => Some(slot),
            _ => None,
        }
    }
    let mut used: Vec<Slot> = edits.iter_mut().filter_map(|(_, edit)| slot(edit).copied()).collect();
    used.sort_unstable();
    used.dedup();
    for slot in edits.iter_mut().filter_map(|(_, edit)| slot(edit)) {
        if let Ok(number) = used.binary_search(slot) {
            *slot = Slot(number as u32);
        }
    }
    used.len() as u32
}
