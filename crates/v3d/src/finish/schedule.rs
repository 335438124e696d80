//! List scheduling and pairing of one block.
//!
//! A dependence graph over registers, flags, the multiply register, the side band and the TMU queues; then
//! instruction after instruction is filled from the ready list, highest first (Gibbons & Muchnick 1986). A thread
//! switch is a point between two instructions; where its signal rides is decided afterwards (`switches.rs`).
//!
//! Rules kept here: 20 to 26 (latencies, section 9), 46 (multop and umul24 with no switch between), 54 to 56 (TMU
//! sequences and queues), 58 (flags, accumulators and rtop do not cross a switch).

use super::FinishError;
use super::merge::merge;
use super::uop::{Kind, Origin, Provenance, UOp};
use crate::instr::{Alu, Branch, Loc, Op, Version};
use kempe_mir::UniformSource;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One instruction of a scheduled block.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub alu: Alu,
    pub uniform: Option<UniformSource>,
    /// Where it comes from.
    pub origin: Provenance,
    /// It starts a side band: no switch may come too close (rule 35).
    pub writes_unifa: bool,
    /// It writes depth to the tile buffer.
    pub writes_depth: bool,
}

impl Slot {
    pub const NOP: Slot = Slot {
        alu: Alu::NOP,
        uniform: None,
        origin: Provenance { starts: None, recomputes: false, inst: u32::MAX },
        writes_unifa: false,
        writes_depth: false,
    };
}

impl Slot {
    /// What comes next may read the second part of the varying before, and must not come later.
    pub fn takes_varying(&self) -> bool {
        self.alu.signals.has(crate::instr::Signals::LDVARY)
    }

    pub fn is_nop(&self) -> bool {
        self.alu == Alu::NOP && self.uniform.is_none()
    }
}

/// A block in order, with the points where a thread switch takes effect (before the slot of that index).
#[derive(Debug, Default)]
pub struct Scheduled {
    pub slots: Vec<Slot>,
    pub switches: Vec<usize>,
}

const FLAGS: usize = 70;
const RTOP: usize = 71;
const UNIFA: usize = 72;
/// The queue of varyings, with the second part that is under way.
const VARYING: usize = 73;
const TLB: usize = 74;
/// Sample flags (rule 61).
const SAMPLES: usize = 75;
/// Rows of a vertex program (rule 62).
const VPM: usize = 76;
const RESOURCES: usize = 77;

/// More instructions than any operation has to wait for another one.
const LONGEST_WAIT: u32 = 64;

/// Candidates looked at for one instruction: bounds the time in huge blocks. Beyond 24 no block of the corpus
/// changes.
const WINDOW: usize = 24;
/// Weight of the way from a TMU start to its result in the priorities (cost-and-spill section 9).
const TMU_WEIGHT: u32 = 30;

#[derive(Clone, Copy)]
struct EdgeTo {
    to: u32,
    /// Instructions between producer and consumer that must not be undercut.
    hard: u8,
    /// The same without a stall.
    soft: u8,
}

struct Node {
    succs: SmallVec<[EdgeTo; 4]>,
    preds: u32,
    height: u32,
    earliest: u32,
    earliest_soft: u32,
}

struct Graph {
    nodes: Vec<Node>,
    /// By operation that takes a varying: the one that ends the varying before, and must not come later than one instruction behind.
    ends_before: FxHashMap<u32, u32>,
}

impl Graph {
    fn edge(&mut self, from: usize, to: usize, hard: u8, soft: u8) {
        if from == to {
            return;
        }
        debug_assert!(from < to);
        self.nodes[from].succs.push(EdgeTo { to: to as u32, hard, soft });
        self.nodes[to].preds += 1;
    }
}

fn reg(l: Loc) -> usize {
    match l {
        Loc::Row(r) => r as usize,
        Loc::Acc(r) => 64 + r as usize,
    }
}

/// Schedules the operations of a block. `words[seq]` are the result words of a TMU sequence; `branch`: the block ends in a
/// branch on flag A.
///
/// # Errors
/// When an operation cannot stand in any instruction: expansion broke its contract.
pub fn schedule(
    version: Version,
    threads: u32,
    ops: &[UOp],
    words: &[u32],
    branch: bool,
) -> Result<Scheduled, FinishError> {
    let ops: Vec<UOp> = ops
        .iter()
        .filter(|o| o.kind != Kind::Plain || !o.part.is_nop() || !o.signals.is_empty())
        .copied()
        .collect();
    let graph = build(version, threads, &ops, words, branch);
    List {
        version,
        ops: &ops,
        graph,
        ready: Vec::new(),
        time: 0,
        open: None,
        due: None,
        issued: vec![false; ops.len()],
        out: Scheduled::default(),
    }
    .run()
}

fn build(version: Version, threads: u32, ops: &[UOp], words: &[u32], branch: bool) -> Graph {
    let mut g = Graph {
        nodes: ops
            .iter()
            .map(|_| Node { succs: SmallVec::new(), preds: 0, height: 0, earliest: 0, earliest_soft: 0 })
            .collect(),
        ends_before: FxHashMap::default(),
    };
    let mut last_write: [Option<usize>; RESOURCES] = [None; RESOURCES];
    let mut readers: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); RESOURCES];
    let mut last_tmu: Option<usize> = None;
    let mut last_ldtmu: Option<usize> = None;
    let mut last_config: Option<usize> = None;
    let mut config_of: Option<u32> = None;
    let mut last_switch: Option<usize> = None;
    let mut last_ldvary: Option<usize> = None;
    let mut sequence_start: Vec<Option<usize>> = vec![None; words.len()];
    let mut sequence_end: Vec<Option<usize>> = vec![None; words.len()];
    let mut collected: Vec<Option<usize>> = vec![None; words.len()];
    // Sequences whose results are outstanding in program order, for the queue limit.
    let limit = 16 / threads;
    let mut queue: std::collections::VecDeque<u32> = std::collections::VecDeque::new();
    let mut in_queue = 0;
    // Sequences that left the queue to make room: the next start waits for their last word.
    let mut evicted: Option<u32> = None;
    let mut wait_collected: Vec<(usize, u32)> = Vec::new();

    for (i, op) in ops.iter().enumerate() {
        let mut reads: SmallVec<[usize; 8]> = op.reads().map(reg).collect();
        let mut writes: SmallVec<[usize; 8]> = op.writes(version).map(reg).collect();
        if op.part.cond.is_some() || op.part.pack != crate::instr::Pack::None {
            // A partial write keeps the rest of its destination.
            reads.extend(op.part.result().and_then(|d| d.loc(version)).map(reg));
        }
        if op.part.cond.is_some() || op.part.update.is_some() || op.part.op.reads_flag_a() {
            reads.push(FLAGS);
        }
        if op.part.writes_flags() {
            writes.push(FLAGS);
        }
        match op.part.op {
            Op::Multop => writes.push(RTOP),
            Op::Umul24 => {
                reads.push(RTOP);
                writes.push(RTOP);
            }
            _ => {}
        }
        match op.kind {
            Kind::UnifaWrite => writes.push(UNIFA),
            Kind::LdUnifa => {
                reads.push(UNIFA);
                writes.push(UNIFA);
            }
            Kind::Switch => {
                writes.push(FLAGS);
                writes.push(RTOP);
                if version == Version::V42 {
                    writes.extend(64..70);
                }
            }
            _ => {}
        }
        match op.kind {
            Kind::LdVary | Kind::VaryingEnd => writes.push(VARYING),
            // Rule 44: nobody asks for sample flags behind it.
            Kind::Tlb => writes.extend([TLB, SAMPLES]),
            Kind::TmuWrite { last: true, .. } => reads.push(SAMPLES),
            Kind::Switch => writes.extend([VARYING, TLB]),
            _ => {}
        }
        match op.part.op {
            Op::Msf => reads.push(SAMPLES),
            Op::Setmsf => writes.push(SAMPLES),
            o if o.is_vpm_read() => reads.push(VPM),
            o if o.is_vpm_write() || o == Op::Vpmwt => writes.push(VPM),
            _ => {}
        }
        let second = reg(Loc::uniform(version));
        let switch = op.is_switch();
        for &r in &reads {
            if let Some(w) = last_write[r] {
                let (hard, soft) = match ops[w].kind {
                    _ if ops[w].is_switch() => (0, 0),
                    Kind::UnifaWrite if r == UNIFA => (4, 4),
                    // Rule 20.
                    Kind::LdVary if r == second => (2, 2),
                    _ if ops[w].part.op.is_sfu() && r < FLAGS => (1, 2),
                    // Rule 27: what is turned, and the count in r5, are there one instruction before.
                    _ if op.rotate.is_some() && r < FLAGS => (2, 2),
                    _ => (1, 1),
                };
                g.edge(w, i, hard, soft);
            }
        }
        let takes = op.kind == Kind::LdVary;
        if takes && let Some(last) = last_ldvary.replace(i) {
            g.edge(last, i, 1, 1);
        }
        for &r in &writes {
            if let Some(w) = last_write[r].filter(|&w| !(takes && ops[w].kind == Kind::VaryingEnd)) {
                // A late SFU result must not overtake a later write.
                let lat = if ops[w].is_switch() || (r == VARYING && ops[w].kind == Kind::VaryingEnd) {
                    0
                } else if ops[w].kind == Kind::LdVary && r == second && op.kind != Kind::LdVary {
                    // Rules 18 and 21.
                    2
                } else if ops[w].part.op.is_sfu() && r < FLAGS {
                    2
                } else {
                    1
                };
                g.edge(w, i, lat, lat);
            }
            for &q in &readers[r] {
                if takes && r == second && q > 0 && ops[q as usize].kind == Kind::VaryingEnd {
                    // The second part comes one instruction late, so the one before may still be there (reference 12.1).
                    g.edge(q as usize - 1, i, 0, 0);
                    g.ends_before.insert(i as u32, q);
                    continue;
                }
                // An instruction reads before it writes, so both may share one; a switch comes after whole ones.
                let apart = (switch && !ops[q as usize].is_switch()) || r == SAMPLES || r == VPM;
                let lat = if apart { 1 } else { 0 };
                g.edge(q as usize, i, lat, lat);
            }
        }
        for &r in &reads {
            if !writes.contains(&r) {
                readers[r].push(i as u32);
            }
        }
        for &r in &writes {
            last_write[r] = Some(i);
            readers[r].clear();
        }

        match op.kind {
            Kind::TmuWrite { seq, .. } | Kind::TmuConfig { seq, .. } => {
                let (first, last, config) = match op.kind {
                    Kind::TmuWrite { first, last, .. } => (first, last, false),
                    Kind::TmuConfig { first, .. } => (first, false, true),
                    _ => (false, false, false),
                };
                let s = seq as usize;
                if config && !first {
                    // Behind the other words only: registers may be written meanwhile.
                    if let Some(c) = last_config {
                        g.edge(c, i, 1, 1);
                    }
                } else {
                    if let Some(t) = last_tmu {
                        // A register may be written along with the word that opens the sequence.
                        let opens = matches!(ops[t].kind, Kind::TmuConfig { .. });
                        let lat = if ops[t].is_switch() || opens { 0 } else { 1 };
                        g.edge(t, i, lat, lat);
                    }
                    last_tmu = Some(i);
                }
                if config {
                    last_config = Some(i);
                    config_of = Some(seq);
                }
                // The operation starts behind all of its words.
                if last
                    && config_of == Some(seq)
                    && let Some(c) = last_config
                {
                    g.edge(c, i, 1, 1);
                }
                if first {
                    sequence_start[s] = Some(i);
                    let need = words[s];
                    if need > 0 {
                        while in_queue + need > limit {
                            let Some(old) = queue.pop_front() else { break };
                            in_queue -= words[old as usize];
                            evicted = Some(old);
                        }
                        queue.push_back(seq);
                        in_queue += need;
                        if let Some(e) = evicted {
                            wait_collected.push((i, e));
                        }
                    }
                }
                if last {
                    sequence_end[s] = Some(i);
                }
            }
            Kind::LdTmu { seq } => {
                if let Some(l) = last_ldtmu {
                    g.edge(l, i, 1, 1);
                }
                if let Some(s) = last_switch {
                    g.edge(s, i, 0, 0);
                }
                if let Some(e) = sequence_end[seq as usize] {
                    g.edge(e, i, 1, 1);
                }
                last_ldtmu = Some(i);
                collected[seq as usize] = Some(i);
            }
            Kind::Switch => {
                // What was started before it in program order is started before it.
                if let Some(t) = last_tmu {
                    g.edge(t, i, 1, 1);
                }
                if let Some(s) = last_switch {
                    g.edge(s, i, 0, 0);
                }
                last_switch = Some(i);
                // After a barrier everything waits.
                if last_tmu.is_some_and(|t| ops[t].kind == Kind::Barrier) {
                    last_tmu = Some(i);
                }
            }
            Kind::TmuWait | Kind::Barrier => {
                if let Some(t) = last_tmu {
                    let lat = if ops[t].is_switch() { 0 } else { 1 };
                    g.edge(t, i, lat, lat);
                }
                if let Some(l) = last_ldtmu {
                    g.edge(l, i, 1, 1);
                }
                last_tmu = Some(i);
            }
            _ => {}
        }
    }
    for (start, seq) in wait_collected {
        if let Some(c) = collected[seq as usize]
            && c < start
        {
            g.edge(c, start, 1, 1);
        }
    }
    // A sequence opens only when everything it needs is there: no switch may have to come in between (rule 54).
    for i in 0..ops.len() {
        let mut extra: SmallVec<[(usize, u8, u8); 4]> = SmallVec::new();
        let from_seq = match ops[i].kind {
            Kind::TmuWrite { seq, .. } | Kind::TmuConfig { seq, .. } => Some(seq),
            _ => None,
        };
        for e in &g.nodes[i].succs {
            if let Kind::TmuWrite { seq, first: false, .. } | Kind::TmuConfig { seq, first: false } =
                ops[e.to as usize].kind
                && from_seq != Some(seq)
                && let Some(start) = sequence_start[seq as usize]
                && i < start
            {
                extra.push((start, e.hard, e.soft));
            }
        }
        for (to, hard, soft) in extra {
            g.edge(i, to, hard, soft);
        }
    }
    let asked = if branch { last_write[FLAGS] } else { None };
    for i in (0..ops.len()).rev() {
        // The branch comes behind its flag, and its slots want to be filled.
        let mut h = if Some(i) == asked { 2 + Branch::DELAY_SLOTS as u32 } else { 1 };
        for k in 0..g.nodes[i].succs.len() {
            let e = g.nodes[i].succs[k];
            let weight = match (ops[i].kind, ops[e.to as usize].kind) {
                (Kind::TmuWrite { last: true, .. }, Kind::LdTmu { .. } | Kind::Switch) => TMU_WEIGHT,
                (Kind::Switch, _) => 3,
                _ => e.soft as u32,
            };
            h = h.max(g.nodes[e.to as usize].height.saturating_add(weight));
        }
        g.nodes[i].height = h;
    }
    g
}

/// The configuration of a depth write (reference 12.4: bits 7:6 are 2).
fn is_depth(word: UniformSource) -> bool {
    matches!(word, UniformSource::Const(c) if c >> 6 & 3 == 2)
}

struct List<'a> {
    version: Version,
    ops: &'a [UOp],
    graph: Graph,
    /// Ready operations, best first.
    ready: Vec<u32>,
    time: u32,
    /// The TMU sequence that has begun and not started its operation yet.
    open: Option<u32>,
    /// Must be in the next instruction.
    due: Option<u32>,
    issued: Vec<bool>,
    out: Scheduled,
}

impl List<'_> {
    fn run(mut self) -> Result<Scheduled, FinishError> {
        for i in 0..self.ops.len() {
            if self.graph.nodes[i].preds == 0 {
                self.enter(i as u32);
            }
        }
        let mut waited = 0;
        while !self.ready.is_empty() {
            if self.fill(false) || self.switch() || self.fill(true) {
                waited = 0;
                continue;
            }
            waited += 1;
            if waited > LONGEST_WAIT {
                let stuck = self.ready.first().map(|&i| self.ops[i as usize]);
                return Err(FinishError { message: format!("an operation that fits nowhere: {stuck:?}") });
            }
            self.push(Slot::NOP);
        }
        Ok(self.out)
    }

    fn enter(&mut self, i: u32) {
        let key = |k: u32| (std::cmp::Reverse(self.graph.nodes[k as usize].height), k);
        let at = self.ready.partition_point(|&r| key(r) < key(i));
        self.ready.insert(at, i);
    }

    fn push(&mut self, s: Slot) {
        self.out.slots.push(s);
        self.time += 1;
    }

    /// Fills one instruction; with `stall` also from operations that would wait a cycle for an SFU result.
    fn fill(&mut self, stall: bool) -> bool {
        let mut slot = Slot::NOP;
        let mut taken = 0;
        let mut k = 0;
        let mut seen = 0;
        if let Some(n) = self.due.take().and_then(|d| self.ready.iter().position(|&i| i == d)) {
            let first = self.ready.remove(n);
            self.ready.insert(0, first);
        }
        while k < self.ready.len() && seen < WINDOW && taken < 3 {
            let i = self.ready[k];
            let node = &self.graph.nodes[i as usize];
            let at = if stall { node.earliest } else { node.earliest_soft };
            let op = &self.ops[i as usize];
            if at > self.time || op.is_switch() || !self.sequence_allows(op) || !self.varying_allows(i) {
                k += 1;
                continue;
            }
            seen += 1;
            let Some(alu) = merge(self.version, &slot.alu, op) else {
                k += 1;
                continue;
            };
            slot.alu = alu;
            slot.uniform = slot.uniform.or(op.uniform);
            if matches!(op.kind, Kind::TmuWrite { last: true, .. }) {
                slot.origin.starts = Some(op.origin);
            }
            slot.origin.recomputes |= op.origin == Origin::Recompute;
            if taken == 0 {
                slot.origin.inst = op.inst;
            }
            slot.writes_unifa |= op.kind == Kind::UnifaWrite;
            slot.writes_depth |= op.kind == Kind::Tlb && op.uniform.is_some_and(is_depth);
            taken += 1;
            match op.kind {
                Kind::TmuWrite { seq, last, .. } => self.open = (!last).then_some(seq),
                Kind::TmuConfig { seq, .. } => self.open = Some(seq),
                _ => {}
            }
            if let Some(&end) = self.graph.ends_before.get(&i)
                && !self.issued[end as usize]
            {
                self.due = Some(end);
            }
            self.issued[i as usize] = true;
            self.ready.remove(k);
            self.release(i);
            // Operations that may share the instruction with this one have become ready; start over.
            k = 0;
        }
        if taken == 0 {
            return false;
        }
        self.push(slot);
        true
    }

    /// The varying before has been ended, or can be in the next instruction.
    fn varying_allows(&self, i: u32) -> bool {
        let Some(&end) = self.graph.ends_before.get(&i) else { return true };
        let node = &self.graph.nodes[end as usize];
        self.issued[end as usize] || (self.due.is_none() && node.preds == 0 && node.earliest <= self.time + 1)
    }

    fn sequence_allows(&self, op: &UOp) -> bool {
        match (op.kind, self.open) {
            (Kind::TmuWrite { seq, first, .. } | Kind::TmuConfig { seq, first }, open) => match open {
                Some(o) => o == seq,
                None => first,
            },
            (Kind::TmuWait | Kind::Barrier, open) => open.is_none(),
            _ => true,
        }
    }

    /// Places a thread switch at this moment, if one is due.
    fn switch(&mut self) -> bool {
        if self.open.is_some() {
            return false;
        }
        let Some(k) = self.ready.iter().position(|&i| {
            self.ops[i as usize].is_switch() && self.graph.nodes[i as usize].earliest <= self.time
        }) else {
            return false;
        };
        let i = self.ready.remove(k);
        if self.out.switches.last() != Some(&self.out.slots.len()) {
            self.out.switches.push(self.out.slots.len());
        }
        self.release(i);
        true
    }

    fn release(&mut self, i: u32) {
        let succs = std::mem::take(&mut self.graph.nodes[i as usize].succs);
        for e in succs {
            let node = &mut self.graph.nodes[e.to as usize];
            node.earliest = node.earliest.max(self.time + e.hard as u32);
            node.earliest_soft = node.earliest_soft.max(self.time + e.soft as u32);
            node.preds -= 1;
            if node.preds == 0 {
                self.enter(e.to);
            }
        }
    }
}
