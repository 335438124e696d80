//! Simplify and select on the interference graph (Chaitin 1982; Briggs, Cooper & Torczon 1994): nodes that always find
//! a place (the p/q test, [`crate::classes`]) are taken out one after the other; where none is left, the one that is best
//! spilled is taken out all the same, in the hope that its neighbours leave it something. Places are given in reverse.
//!
//! Among nodes that may go the one born last goes first, so that places are given in program order as far as that is
//! possible: then round robin means the same as in a walk over the program, and neighbouring definitions get different
//! registers.
//!
//! Select follows wishes ([`crate::wishes`]): the place an operand asks for, the place of what the value is copied to or from,
//! a window in which a vector can stand; and it keeps clear of units in which others are expected. Where that leaves
//! a node without a place, a second round packs: always the first free unit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::classes::{ClassId, Classes, bases};
use crate::code::Code;
use crate::demand::Limits;
use crate::graph::NONE;
use crate::interference::Interference;
use crate::masks::UnitMask;
use crate::prefer::Prefer;
use crate::problem::*;
use crate::wishes::{NO_UNIT, Wishes};

/// Benefits are sums that shrink step by step; rounding must not make one of them nothing.
const LEAST_BENEFIT: f32 = 1e-3;

/// Nodes in the order in which they were taken out.
pub(crate) struct Order {
    pub stack: Vec<u32>,
    /// By value, for nodes: simplification could not take it out by itself.
    pub left: Vec<bool>,
}

/// What is to be spilled first: least cost for what it brings. Finite numbers in their order.
#[derive(Clone, Copy, PartialEq)]
struct Merit(f32);

impl Eq for Merit {}

impl PartialOrd for Merit {
    fn partial_cmp(&self, other: &Merit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Merit {
    fn cmp(&self, other: &Merit) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Take out all nodes of a compact graph. `cost` is what spilling a node costs, infinite where it cannot be spilled.
pub(crate) fn simplify(graph: &Interference, classes: &mut Classes, cost: &[f32]) -> Order {
    let count = graph.alive.len();
    let mut class: Vec<ClassId> = vec![0; count];
    let nodes = || (0..count as u32).filter(|&node| graph.alive[node as usize]);
    for node in nodes() {
        class[node as usize] = classes.of(&graph.mask[node as usize], graph.size[node as usize]);
    }
    let mut blocked = vec![0u32; count];
    let mut ready: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let mut queued = vec![false; count];
    for node in nodes() {
        let mine = class[node as usize];
        let others = graph.adjacent[node as usize].iter();
        blocked[node as usize] = others.map(|&other| classes.q(mine, class[other as usize])).sum();
        if blocked[node as usize] < classes.p(mine) {
            queued[node as usize] = true;
            ready.push((graph.birth[node as usize], node));
        }
    }
    let mut order = Order { stack: Vec::new(), left: vec![false; count] };
    let mut out = vec![false; count];
    let mut benefit = vec![0f32; count];
    let mut candidates: Option<BinaryHeap<Reverse<(Merit, u32)>>> = None;
    loop {
        let node = match ready.pop() {
            Some((_, node)) => node,
            None => {
                let heap = candidates.get_or_insert_with(|| {
                    let mut heap = BinaryHeap::new();
                    for node in nodes().filter(|&node| !out[node as usize]) {
                        order.left[node as usize] = true;
                        let mine = class[node as usize];
                        let others = graph.adjacent[node as usize].iter().filter(|&&o| !out[o as usize]);
                        benefit[node as usize] =
                            others.map(|&other| share(classes, class[other as usize], mine)).sum();
                        heap.push(Reverse((merit(graph, cost, &benefit, node), node)));
                    }
                    heap
                });
                // What a candidate brings has shrunk with every neighbour that went since it was looked at.
                let next = loop {
                    let Some(Reverse((known, node))) = heap.pop() else { break None };
                    if out[node as usize] {
                        continue;
                    }
                    let now = merit(graph, cost, &benefit, node);
                    if now > known {
                        heap.push(Reverse((now, node)));
                        continue;
                    }
                    break Some(node);
                };
                let Some(node) = next else { break };
                node
            }
        };
        out[node as usize] = true;
        order.stack.push(node);
        let mine = class[node as usize];
        for &other in &graph.adjacent[node as usize] {
            if out[other as usize] {
                continue;
            }
            let theirs = class[other as usize];
            blocked[other as usize] -= classes.q(theirs, mine);
            if candidates.is_some() {
                benefit[other as usize] -= share(classes, mine, theirs);
            }
            if !queued[other as usize] && blocked[other as usize] < classes.p(theirs) {
                queued[other as usize] = true;
                ready.push((graph.birth[other as usize], other));
            }
        }
    }
    order
}

/// Which part of the places of a node of class `of` one of class `by` blocks.
fn share(classes: &mut Classes, of: ClassId, by: ClassId) -> f32 {
    classes.q(of, by) as f32 / classes.p(of).max(1) as f32
}

/// Cost for what is gained: interference removed, and how long the value lives, by its root. (On random problems at low
/// limits the edits cost 6 % less on 32 rows and on 256 halves, 8 % less with wide values, than without the length; the
/// length itself instead of its root is 2 to 4 % worse than the root.)
fn merit(graph: &Interference, cost: &[f32], benefit: &[f32], node: u32) -> Merit {
    let cost = cost[node as usize];
    if !cost.is_finite() {
        return Merit(f32::MAX);
    }
    let length = (graph.length[node as usize].max(1) as f32).sqrt();
    Merit(cost / (benefit[node as usize].max(LEAST_BENEFIT) * length))
}

/// Places by node; and the nodes that found none.
pub(crate) struct Selected {
    pub unit: Vec<u16>,
    pub failed: Vec<u32>,
}

/// Where members of vector operands stand towards each other.
#[derive(Default)]
pub(crate) struct Vectors {
    /// By value: `(vector, position)`.
    seats: Vec<Vec<(u32, u8)>>,
    /// By vector: alignment and members `(value, position)`.
    vectors: Vec<(u8, Vec<(u32, u8)>)>,
}

impl Vectors {
    pub fn new(code: &Code) -> Vectors {
        let mut out = Vectors::default();
        if code.ops.iter().all(|op| op.vector.is_none()) {
            return out;
        }
        out.seats = vec![Vec::new(); code.vregs.len()];
        for step in &code.steps {
            let mut here: Vec<(Group, u32)> = Vec::new();
            for op in &code.ops[step.ops()] {
                let Some(part) = op.vector.filter(|_| !code.is_undefined(op.vreg.0)) else { continue };
                let vector = match here.iter().find(|entry| entry.0 == part.group) {
                    Some(entry) => entry.1,
                    None => {
                        here.push((part.group, out.vectors.len() as u32));
                        out.vectors.push((part.align, Vec::new()));
                        out.vectors.len() as u32 - 1
                    }
                };
                out.vectors[vector as usize].1.push((op.vreg.0, part.index));
                out.seats[op.vreg.0 as usize].push((vector, part.index));
            }
        }
        out
    }

    fn seats(&self, vreg: u32) -> &[(u32, u8)] {
        self.seats.get(vreg as usize).map_or(&[], |list| list)
    }
}

struct Select<'a> {
    graph: &'a Interference,
    limits: &'a Limits,
    code: &'a Code,
    wishes: &'a Wishes,
    vectors: &'a Vectors,
    unit: Vec<u16>,
    /// By web: the place of its first member.
    web_unit: Vec<u16>,
    prefer: Prefer,
    pack: bool,
}

/// Give places in reverse of `order`. `pack`: without wishes, always the first free unit.
#[expect(clippy::too_many_arguments, reason = "two calls; each is a table that select reads")]
pub(crate) fn select(
    graph: &Interference,
    limits: &Limits,
    code: &Code,
    order: &Order,
    wishes: &Wishes,
    vectors: &Vectors,
    options: &Options,
    pack: bool,
) -> Selected {
    let count = graph.alive.len();
    let mut select = Select {
        graph,
        limits,
        code,
        wishes,
        vectors,
        unit: vec![NO_UNIT; count],
        web_unit: vec![NO_UNIT; count],
        prefer: Prefer::new(code, limits, options),
        pack,
    };
    let mut failed = Vec::new();
    for &node in order.stack.iter().rev() {
        let free = select.free(node);
        if free.is_empty() {
            failed.push(node);
            continue;
        }
        select.prefer.tick();
        let unit = select.choose(node, &free);
        select.prefer.gave(unit);
        select.unit[node as usize] = unit.0;
        for member in graph.members(node) {
            if let Some(web) = wishes.web(member) {
                let entry = &mut select.web_unit[web as usize];
                if *entry == NO_UNIT {
                    *entry = unit.0;
                }
            }
        }
    }
    Selected { unit: select.unit, failed }
}

impl Select<'_> {
    fn free(&self, node: u32) -> UnitMask {
        let mut free = self.graph.mask[node as usize];
        for &other in &self.graph.adjacent[node as usize] {
            let unit = self.unit[other as usize];
            if unit != NO_UNIT {
                match self.graph.size[other as usize] {
                    1 => free.remove(Unit(unit)),
                    size => free = free.minus(&UnitMask::run(Unit(unit), size as u32)),
                }
            }
        }
        bases(&free, self.graph.size[node as usize])
    }

    fn choose(&mut self, node: u32, free: &UnitMask) -> Unit {
        if self.pack {
            return free.first().unwrap_or(Unit(0));
        }
        let mut avoid = UnitMask::EMPTY;
        for member in self.graph.members(node) {
            avoid = avoid.or(&self.wishes.avoid(member));
        }
        let good = free.minus(&avoid);
        let wanted = |unit: u16| unit != NO_UNIT && good.contains(Unit(unit));
        if !good.is_empty() {
            for member in self.graph.members(node) {
                if let Some(unit) = self.wishes.asked(member).filter(|unit| wanted(unit.0)) {
                    return unit;
                }
            }
            let mut best: Option<(f32, u16)> = None;
            for member in self.graph.members(node) {
                for &(other, weight) in self.wishes.affinities(member) {
                    let unit = self.unit[self.graph.root(other) as usize];
                    if wanted(unit) && best.is_none_or(|(most, _)| weight > most) {
                        best = Some((weight, unit));
                    }
                }
            }
            if let Some((_, unit)) = best {
                return Unit(unit);
            }
            for member in self.graph.members(node) {
                if let Some(web) = self.wishes.web(member)
                    && wanted(self.web_unit[web as usize])
                {
                    return Unit(self.web_unit[web as usize]);
                }
            }
            if let Some(unit) = self.seat(node, &good) {
                return unit;
            }
        }
        let from = if good.is_empty() { *free } else { good };
        // What was joined lives as long as all of it.
        for member in self.graph.members(node).filter(|&member| member != node) {
            self.prefer.join(node, member);
        }
        self.prefer.pick(self.limits, node, self.code.vregs[node as usize].home, &from)
    }

    /// A place beside the members of the vector that have one, or one in a window that has room for all of them.
    fn seat(&self, node: u32, good: &UnitMask) -> Option<Unit> {
        for member in self.graph.members(node) {
            for &(vector, position) in self.vectors.seats(member) {
                let (align, members) = &self.vectors.vectors[vector as usize];
                let place = |value: u32| self.unit[self.graph.root(value) as usize];
                for &(value, at) in members {
                    let unit = (place(value).wrapping_sub(at as u16)).wrapping_add(position as u16);
                    if place(value) != NO_UNIT && good.contains(Unit(unit)) {
                        return Some(Unit(unit));
                    }
                }
                let others: Vec<(UnitMask, u8)> =
                    members.iter().map(|&(value, at)| (self.free(self.graph.root(value)), at)).collect();
                let fits = |unit: &Unit| {
                    let base = unit.0.wrapping_sub(position as u16);
                    base <= unit.0
                        && base.is_multiple_of((*align).max(1) as u16)
                        && others.iter().all(|(free, at)| free.contains(Unit(base + *at as u16)))
                };
                if let Some(unit) = good.iter().find(fits) {
                    return Some(unit);
                }
            }
        }
        None
    }
}

/// By value: the place of its node.
pub(crate) fn spread(graph: &Interference, selected: &Selected) -> Vec<u16> {
    let place = |vreg: u32| match graph.root(vreg) {
        NONE => NO_UNIT,
        node => selected.unit[node as usize],
    };
    (0..graph.alive.len() as u32).map(place).collect()
}
