//! Who may be where: which values are the same in all lanes, and at which blocks lanes wait.
//!
//! The machine walks the blocks in order. An edge is *hard* when all lanes that run take it together: it is a real
//! jump (or falls through). It is *soft* when lanes leave the walk and wait until it comes to their block. Lanes wait
//! over the *span* of a soft edge: from behind its source (from the header of the outermost loop that the edge leaves,
//! because the others may go round again) up to its target. A block inside such a span is *partial*: not all lanes
//! run there. Jumping over a block where lanes wait is not possible, so a jump in a partial block may have to be soft
//! too.
//!
//! "The same in all lanes" here means all 16 lanes of the batch, also those that wait: everything except memory
//! access and the parameters of joins is computed in all lanes. What is tracked is which *bits* may differ, so that
//! `local index >> 4` or the low half of a payload word are seen to be uniform.
//!
//! These facts depend on each other; they start optimistic and are swept over the blocks until nothing changes.

use super::prepare::{Arm, Prepared};
use super::values;
use kempe_ir::analysis::NONE;
use kempe_ir::{Builtin, Imm, InstData, Module, Op, ReduceKind, Table, Term, Value};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sweeps before everything is called divergent (nested loops need about one each).
const MAX_SWEEPS: u32 = 64;

pub(super) struct Flow {
    /// Bits of a root that may differ between lanes, where it is defined.
    bits: Table<Value, u32>,
    /// By position: some lanes may wait elsewhere while the walk is here.
    pub partial: Vec<bool>,
    /// By position: the nearest later block where lanes may already wait when this block begins ([`NONE`]: none).
    pub waiting: Vec<u32>,
    /// By position and edge.
    pub soft: Vec<[bool; 2]>,
    /// By position: has a soft edge coming in.
    pub join: Vec<bool>,
    /// By position: ends in a branch whose short arms all lanes walk through.
    pub through: Vec<bool>,
    /// By position: its parameters are variables, because lanes meet there that came different ways.
    pub meets: Vec<bool>,
    /// By loop: lanes may leave it while others go round.
    pub diverging: Vec<bool>,
    /// Quads may be dead.
    fragment: bool,
    frozen: bool,
    changed: bool,
}

impl Flow {
    pub fn new(m: &Module, p: &Prepared) -> Flow {
        let n = p.cfg.len();
        let mut flow = Flow {
            bits: Table::new(p.func.values.len(), 0),
            partial: vec![false; n],
            waiting: vec![NONE; n],
            soft: vec![[false; 2]; n],
            join: vec![false; n],
            through: vec![false; n],
            meets: vec![false; n],
            diverging: vec![false; p.cfg.loops.len()],
            fragment: p.stage == kempe_ir::Stage::Fragment,
            frozen: false,
            changed: true,
        };
        let payload = payload_bits(m);
        let mut sweeps = 0;
        while flow.changed {
            flow.changed = false;
            sweeps += 1;
            if sweeps > MAX_SWEEPS {
                flow.give_up(p);
            }
            flow.sweep(p, payload);
        }
        flow
    }

    /// Outermost loop that contains `a` but not `b`.
    fn left_loop(p: &Prepared, a: u32, b: u32) -> u32 {
        let mut l = p.cfg.loop_of[a as usize];
        let mut outermost = NONE;
        while l != NONE && !p.in_loop(l, b) {
            outermost = l;
            l = p.cfg.loops[l as usize].parent;
        }
        outermost
    }

    /// Outermost diverging loop that contains `a` but not `b`.
    pub fn left_diverging(&self, p: &Prepared, a: u32, b: u32) -> u32 {
        let mut l = p.cfg.loop_of[a as usize];
        let mut outermost = NONE;
        while l != NONE && !p.in_loop(l, b) {
            if self.diverging[l as usize] {
                outermost = l;
            }
            l = p.cfg.loops[l as usize].parent;
        }
        outermost
    }

    /// First position at which lanes may wait because of the edge `from` to `to`.
    pub fn span_start(p: &Prepared, from: u32, to: u32) -> u32 {
        match Self::left_loop(p, from, to) {
            NONE => from + 1,
            l => p.cfg.loops[l as usize].header,
        }
    }

    /// Bits of a root that may differ between lanes when it is used in block `at`.
    pub fn bits_at(&self, p: &Prepared, root: Value, at: u32) -> u32 {
        let def = p.def_pos(root);
        if def != NONE && def != at && self.left_diverging(p, def, at) != NONE {
            // Lanes left the loop in different rounds.
            if values::is_remade(p, root) { self.bits[root] } else { u32::MAX }
        } else {
            self.bits[root]
        }
    }

    pub fn is_uniform(&self, p: &Prepared, root: Value, at: u32) -> bool {
        self.bits_at(p, root, at) == 0
    }

    fn give_up(&mut self, p: &Prepared) {
        for v in p.func.values.keys() {
            self.bits[v] = u32::MAX;
        }
        for at in 0..p.len() {
            for k in 0..2 {
                if let Some(t) = p.edge(at, k) {
                    let to = p.cfg.pos[t.block];
                    self.set_soft(p, at, k, to, to > at + 1 && !self.through[at as usize]);
                }
            }
        }
        self.frozen = true;
    }

    fn set_soft(&mut self, p: &Prepared, at: u32, k: usize, to: u32, soft: bool) {
        if soft && !self.soft[at as usize][k] {
            self.soft[at as usize][k] = true;
            self.join[to as usize] = true;
            self.meets[to as usize] = true;
            let mut l = p.cfg.loop_of[at as usize];
            while l != NONE && !p.in_loop(l, to) {
                self.diverging[l as usize] = true;
                l = p.cfg.loops[l as usize].parent;
            }
            self.changed = true;
        }
    }

    fn raise(&mut self, v: Value, bits: u32) {
        let old = self.bits[v];
        if old | bits != old {
            self.bits[v] = old | bits;
            self.changed = true;
        }
    }

    fn sweep(&mut self, p: &Prepared, payload: [u32; 2]) {
        // Spans known so far, by start.
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for at in 0..p.len() {
            for k in 0..2 {
                if self.soft[at as usize][k]
                    && let Some(t) = p.edge(at, k)
                {
                    let to = p.cfg.pos[t.block];
                    spans.push((Self::span_start(p, at, to), to));
                }
            }
        }
        spans.sort_unstable();
        let mut next = spans.into_iter().peekable();
        let mut open: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        for at in 0..p.len() {
            while let Some((_, to)) = next.next_if(|s| s.0 <= at) {
                open.push(Reverse(to));
            }
            while open.peek().is_some_and(|&Reverse(to)| to <= at) {
                open.pop();
            }
            let waiting = open.peek().map_or(NONE, |&Reverse(to)| to);
            let partial = waiting != NONE;
            if self.partial[at as usize] != partial || self.waiting[at as usize] != waiting {
                self.partial[at as usize] = partial;
                self.waiting[at as usize] = waiting;
                self.changed = true;
            }
            self.params(p, at);
            for &i in &p.block(at).insts {
                let d = &p.func.insts[i];
                let bits = self.transfer(p, d, at, payload);
                for &r in &d.results {
                    self.raise(r, bits);
                }
            }
            let before = self.soft[at as usize];
            if !self.frozen {
                self.classify(p, at, waiting);
            }
            for k in 0..2 {
                if self.soft[at as usize][k]
                    && !before[k]
                    && let Some(t) = p.edge(at, k)
                {
                    open.push(Reverse(p.cfg.pos[t.block]));
                }
            }
        }
    }

    /// Decides which edges of a block are soft.
    fn classify(&mut self, p: &Prepared, at: u32, waiting: u32) {
        // All lanes that run may jump there without passing lanes that wait.
        let reachable = |to: u32| waiting == NONE || to <= waiting;
        let edges = [0, 1].map(|k| p.edge(at, k).map(|t| p.cfg.pos[t.block]));
        match (&p.block(at).term, edges) {
            (Term::Jump(_), [Some(to), _]) => self.set_soft(p, at, 0, to, to > at && !reachable(to)),
            (Term::Branch { cond, .. }, [Some(then), Some(els)]) => {
                let uniform = self.is_uniform(p, p.root(*cond), at);
                if let Some(short) = p.shorts[at as usize]
                    && self.soft[at as usize] == [false; 2]
                    && (short.trivial || !uniform || !reachable(short.merge))
                {
                    if !std::mem::replace(&mut self.through[at as usize], true) {
                        self.meets[short.merge as usize] = true;
                        self.changed = true;
                    }
                } else if !(uniform && reachable(then) && reachable(els)) {
                    self.set_soft(p, at, 0, then, then != at + 1);
                    self.set_soft(p, at, 1, els, els != at + 1);
                }
            }
            _ => {}
        }
    }

    fn params(&mut self, p: &Prepared, at: u32) {
        let block = p.block(at);
        for (n, &param) in block.params.iter().enumerate() {
            if p.root(param) != param {
                continue;
            }
            let mut bits = 0;
            if self.meets[at as usize] {
                // Which edge a lane came over may differ (equal arguments make a name, not a parameter).
                bits = u32::MAX;
            } else {
                for &q in &p.cfg.preds[at as usize] {
                    for t in p.block(q).term.targets() {
                        if p.cfg.pos[t.block] == at
                            && let Some(&arg) = t.args.get(n)
                        {
                            bits |= self.bits_at(p, p.root(arg), q);
                        }
                    }
                }
            }
            self.raise(param, bits);
        }
    }

    fn transfer(&self, p: &Prepared, d: &InstData, at: u32, payload: [u32; 2]) -> u32 {
        let arg = |n: usize| d.args.get(n).map_or(0, |&a| self.bits_at(p, p.root(a), at));
        let constant = |n: usize| d.args.get(n).and_then(|&a| p.constant(p.root(a)));
        let all = d.args.iter().enumerate().fold(0, |m, (n, _)| m | arg(n));
        let any = |m: u32| if m == 0 { 0 } else { u32::MAX };
        match d.op {
            Op::Const | Op::Undef | Op::Uniform => 0,
            Op::Payload => match d.imm {
                Imm::Int(n @ 0..=1) => payload[n as usize],
                _ => u32::MAX,
            },
            Op::Builtin => match d.imm {
                Imm::Builtin(Builtin::ThreadId) => 0,
                Imm::Builtin(Builtin::LaneId) => 0xf,
                _ => u32::MAX,
            },
            Op::And => match (constant(0), constant(1)) {
                (Some(c), _) => arg(1) & c,
                (_, Some(c)) => arg(0) & c,
                _ => all,
            },
            Op::Or => match (constant(0), constant(1)) {
                (Some(c), _) => arg(1) & !c,
                (_, Some(c)) => arg(0) & !c,
                _ => all,
            },
            Op::Xor | Op::Not => all,
            Op::Shl | Op::Lshr | Op::Ashr => match constant(1) {
                Some(c) => match d.op {
                    Op::Shl => arg(0) << (c & 31),
                    Op::Lshr => arg(0) >> (c & 31),
                    _ => (arg(0) as i32 >> (c & 31)) as u32,
                },
                None => any(all),
            },
            // A carry only goes up.
            Op::Iadd | Op::Isub | Op::Ineg | Op::Imul if all != 0 => u32::MAX << all.trailing_zeros(),
            Op::Select if arg(0) == 0 => arg(1) | arg(2),
            Op::Load => {
                let Imm::Mem(mem) = d.imm else { return u32::MAX };
                let address = p.root(d.args[0]);
                if values::side_band(p, d, mem).is_some() && values::is_fixed_address(p, address) {
                    0
                } else if self.fragment || self.partial[at as usize] || self.arm(p, at).is_some() {
                    // Lanes that wait do not take part.
                    u32::MAX
                } else {
                    any(all)
                }
            }
            // Each lane has its own; and dead quads of a fragment program load nothing.
            Op::Input | Op::ReadOutput | Op::IsHelper => u32::MAX,
            Op::ImageLoad | Op::Sample | Op::SampleImplicit if self.fragment => u32::MAX,
            // Lanes that wait do not take part.
            Op::ImageLoad | Op::Sample if self.partial[at as usize] || self.arm(p, at).is_some() => u32::MAX,
            Op::Atomic | Op::ImageAtomic => u32::MAX,
            // Made in all lanes, also in those that wait: the bits of those that run.
            Op::Ballot => 0,
            Op::Reduce if matches!(d.imm, Imm::Reduce(r) if r.kind == ReduceKind::Reduce && r.cluster == 0) => {
                0
            }
            Op::Shuffle if arg(1) == 0 => 0,
            Op::Shuffle => any(arg(0)),
            _ if d.op.effect() == kempe_ir::Effect::Lanes => u32::MAX,
            _ => any(all),
        }
    }

    /// The branch whose arm a block is, if all lanes walk through it.
    pub fn arm(&self, p: &Prepared, at: u32) -> Option<Arm> {
        p.arms[at as usize].filter(|arm| self.through[arm.branch as usize])
    }

    /// The parameters of a header hold the same value in all lanes, also in those that left.
    pub fn value_is_uniform(&self, v: Value) -> bool {
        self.bits[v] == 0
    }
}

/// Bits of the two payload words that differ inside a batch (reference 13.5): with whole batches per work-group only
/// the low four bits of the local index, which is the top of word 1.
fn payload_bits(m: &Module) -> [u32; 2] {
    if m.stage != kempe_ir::Stage::Compute {
        return [u32::MAX; 2];
    }
    let items = m.workgroup_items();
    if items == 0 || !items.is_multiple_of(16) || items > 1 << 16 {
        return [u32::MAX; 2];
    }
    let n = items.next_power_of_two().max(64).trailing_zeros();
    [0, 0xf << (32 - n)]
}
