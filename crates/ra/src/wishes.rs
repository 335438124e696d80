//! Where each value would like to stand: near what it is copied to and from, away from what destroys it.
//!
//! A value has affinities to the parameters it is an argument of (and back), weighted by how often the edge runs, and a
//! web: everything connected by parameters, ties and moves. The web remembers the unit that its first member took, so
//! that the arms of a selection agree before their merge has been seen. Nothing here is binding.

use crate::code::*;
use crate::demand::Limits;
use crate::graph::{Graph, NONE};
use crate::listed::Listed;
use crate::liveness::Liveness;
use crate::masks::UnitMask;
use crate::problem::*;

/// Kinds of events (clobber masks, fixed units) that are told apart; more are thrown together.
const MAX_EVENTS: usize = 64;

pub(crate) const NO_UNIT: u16 = u16::MAX;

pub(crate) struct Wishes {
    first: Vec<u32>,
    /// `(other value, weight)` by value, strongest first.
    affinities: Vec<(u32, f32)>,
    web: Vec<u32>,
    web_unit: Vec<u16>,
    /// A unit that some operand of the value asks for.
    asked: Vec<u16>,
    events: Vec<UnitMask>,
    /// By value: bits of the events that it lives through.
    crosses: Vec<u64>,
}

impl Wishes {
    pub fn new(code: &Code, live: &Liveness, limits: &Limits, graph: &Graph) -> Wishes {
        let count = code.vregs.len();
        let mut wishes = Wishes {
            first: vec![0; count + 1],
            affinities: Vec::new(),
            web: (0..count as u32).collect(),
            web_unit: vec![NO_UNIT; count],
            asked: vec![NO_UNIT; count],
            events: Vec::new(),
            crosses: vec![0; count],
        };
        wishes.connect(code);
        wishes.watch(code, live, limits, graph);
        wishes
    }

    fn connect(&mut self, code: &Code) {
        let mut pairs: Vec<(u32, u32, f32)> = Vec::new();
        for block in &code.blocks {
            for edge in &block.succs {
                let params = &code.blocks[edge.to as usize].params;
                for (&arg, &param) in edge.args.iter().zip(params) {
                    if !code.is_undefined(arg) && arg != param {
                        pairs.push((arg, param, block.frequency));
                        pairs.push((param, arg, block.frequency));
                    }
                }
            }
            for step in block.steps.clone() {
                let step = &code.steps[step as usize];
                let ops = &code.ops[step.ops()];
                for op in ops {
                    let vreg = op.vreg.0;
                    if let Some(unit) = op.fixed {
                        self.asked[vreg as usize] = unit.0;
                    } else if let (Some(unit), NO_UNIT) = (op.hint, self.asked[vreg as usize]) {
                        self.asked[vreg as usize] = unit.0;
                    }
                    if let Some(tied) = op.tied {
                        let used = ops[tied as usize].vreg.0;
                        if !code.is_undefined(used) {
                            self.join(vreg, used);
                        }
                    }
                }
                if let (true, [a, b]) = (step.is_move, ops)
                    && a.kind != b.kind
                    && !code.is_undefined(a.vreg.0)
                    && !code.is_undefined(b.vreg.0)
                {
                    pairs.push((a.vreg.0, b.vreg.0, block.frequency));
                    pairs.push((b.vreg.0, a.vreg.0, block.frequency));
                }
            }
        }
        for &(a, b, _) in &pairs {
            self.join(a, b);
        }
        pairs.sort_by(|x, y| x.0.cmp(&y.0).then(y.2.total_cmp(&x.2)).then(x.1.cmp(&y.1)));
        for &(a, _, _) in &pairs {
            self.first[a as usize + 1] += 1;
        }
        for k in 1..self.first.len() {
            self.first[k] += self.first[k - 1];
        }
        self.affinities = pairs.into_iter().map(|(_, b, weight)| (b, weight)).collect();
        for vreg in 0..self.web.len() as u32 {
            let root = self.root(vreg);
            self.web[vreg as usize] = root;
            if self.asked[vreg as usize] != NO_UNIT && self.web_unit[root as usize] == NO_UNIT {
                self.web_unit[root as usize] = self.asked[vreg as usize];
            }
        }
    }

    fn root(&mut self, mut vreg: u32) -> u32 {
        while self.web[vreg as usize] != vreg {
            let up = self.web[vreg as usize];
            self.web[vreg as usize] = self.web[up as usize];
            vreg = up;
        }
        vreg
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.web[a.max(b) as usize] = a.min(b);
    }

    /// What every value lives through: clobbers, and operands of others with fixed units.
    fn watch(&mut self, code: &Code, live: &Liveness, limits: &Limits, graph: &Graph) {
        let special = |step: &Step| {
            step.clobbers != ClobberId(0) || code.ops[step.ops()].iter().any(|op| op.fixed.is_some())
        };
        if !code.steps.iter().any(special) {
            return;
        }
        let mut clobber_event = vec![NONE; limits.clobbers.len().max(1)];
        let mut unit_event: Vec<(Unit, u32)> = Vec::new();
        let mut resident = Listed::new(code.vregs.len());
        for &block in &graph.rpo {
            resident.take();
            let params = code.blocks[block as usize].params.iter().copied();
            for vreg in live.ins(block).chain(params.filter(|&p| live.param_live[p as usize])) {
                resident.insert(vreg);
            }
            for step in code.blocks[block as usize].steps.clone() {
                let step = &code.steps[step as usize];
                let ops = &code.ops[step.ops()];
                for (op, &kill) in ops.iter().zip(&code.kills[step.ops()]) {
                    if op.kind == OperandKind::Use && kill == DIES {
                        resident.remove(op.vreg.0);
                    }
                }
                if step.clobbers != ClobberId(0) {
                    let event = &mut clobber_event[step.clobbers.0 as usize];
                    if *event == NONE {
                        *event = add_event(&mut self.events, limits.clobber_mask(step.clobbers));
                    }
                    for &vreg in resident.as_slice() {
                        self.crosses[vreg as usize] |= 1 << *event;
                    }
                }
                for op in ops {
                    let Some(unit) = op.fixed else { continue };
                    let event = match unit_event.iter().find(|entry| entry.0 == unit) {
                        Some(entry) => entry.1,
                        None => {
                            let event = add_event(&mut self.events, UnitMask::single(unit));
                            unit_event.push((unit, event));
                            event
                        }
                    };
                    for &vreg in resident.as_slice().iter().filter(|&&vreg| vreg != op.vreg.0) {
                        self.crosses[vreg as usize] |= 1 << event;
                    }
                }
                for (op, &kill) in ops.iter().zip(&code.kills[step.ops()]) {
                    if op.kind != OperandKind::Use && kill == LIVES {
                        resident.insert(op.vreg.0);
                    }
                }
            }
        }
    }

    /// Values that came up after the wishes were collected have none.
    fn knows(&self, vreg: u32) -> bool {
        (vreg as usize) < self.web.len()
    }

    /// The web of a value, by a member that stands for it.
    pub fn web(&self, vreg: u32) -> Option<u32> {
        self.web.get(vreg as usize).copied()
    }

    /// Affinities of a value, strongest first.
    pub fn affinities(&self, vreg: u32) -> &[(u32, f32)] {
        if !self.knows(vreg) {
            return &[];
        }
        &self.affinities[self.first[vreg as usize] as usize..self.first[vreg as usize + 1] as usize]
    }

    pub fn asked(&self, vreg: u32) -> Option<Unit> {
        let unit = self.asked.get(vreg as usize).copied().unwrap_or(NO_UNIT);
        (unit != NO_UNIT).then_some(Unit(unit))
    }

    pub fn web_unit(&self, vreg: u32) -> Option<Unit> {
        let unit = self.web_unit[self.web[vreg as usize] as usize];
        (unit != NO_UNIT).then_some(Unit(unit))
    }

    /// A member of the web has found its place.
    pub fn settle_web(&mut self, vreg: u32, unit: Unit, force: bool) {
        let entry = &mut self.web_unit[self.web[vreg as usize] as usize];
        if force || *entry == NO_UNIT {
            *entry = unit.0;
        }
    }

    /// Units in which the value would be in the way or be destroyed.
    pub fn avoid(&self, vreg: u32) -> UnitMask {
        let mut bits = self.crosses.get(vreg as usize).copied().unwrap_or(0);
        let mut mask = UnitMask::EMPTY;
        while bits != 0 {
            mask = mask.or(&self.events[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        mask
    }
}

fn add_event(events: &mut Vec<UnitMask>, mask: UnitMask) -> u32 {
    if events.len() < MAX_EVENTS {
        events.push(mask);
    } else {
        let last = &mut events[MAX_EVENTS - 1];
        *last = last.or(&mask);
    }
    (events.len() - 1) as u32
}
