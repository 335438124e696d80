//! What one step needs besides the values that merely live through it: a *node* per place. One place for a value whatever its
//! operands, if it can be one; an extra one wherever the value must stand in two places at once (a tied use that lives on, bug
//! shape A29; two fixed units; two vectors, A20 and A23); and none for a def that takes over the unit of a use that dies.
//!
//! Who shares with whom is decided first come, first served, which is nearly always right. Where it is not, [`Ways`] goes through
//! the other choices.

use smallvec::SmallVec;

use crate::code::*;
use crate::demand::Limits;
use crate::graph::NONE;
use crate::masks::UnitMask;
use crate::problem::*;

/// One unit (or aligned run of units) that a step needs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The value that is read there, or [`NONE`].
    pub value: u32,
    /// Operands (positions within the step) that read or write it.
    pub ops: SmallVec<[u8; 4]>,
    /// The def that is written there (position within the step), or [`NONE`].
    pub def: u32,
    pub set: SetId,
    pub fixed: Option<Unit>,
    /// Part of a vector operand.
    pub vector: Option<VectorPart>,
    pub size: u8,
    /// The value lives on in this place.
    pub main: bool,
    /// The step's clobbers must not reach this place: the value lives on, or a memory edit takes its parts one after the other.
    pub spared: bool,
    /// The def of this node is written before the uses are read.
    pub early: bool,
    /// When the place is taken: [`READING`], [`WRITING`] or both; or how it is named ([`EARLY`], [`IDLE`]).
    pub phases: u8,
    /// Phases in which it counts.
    pub counts: u8,
}

pub(crate) const READING: u8 = 1;
pub(crate) const WRITING: u8 = 2;
pub(crate) const BOTH: u8 = 3;
/// Besides: written before anything is read, so that not even a use that reads nothing may name the place.
pub(crate) const EARLY: u8 = 4;
/// Named by a use that reads nothing: any place but one that is written early.
pub(crate) const IDLE: u8 = 8;

/// Do two fixed operands want some of the same units?
fn overlap(a: Unit, a_size: u8, b: Unit, b_size: u8) -> bool {
    a.0 < b.0 + b_size as u16 && b.0 < a.0 + a_size as u16
}

/// A memory edit of a wide value is one for each part, and each destroys what memory edits destroy: no part may stand there.
pub(crate) fn in_parts(code: &Code, step: &Step) -> bool {
    let wide = || code.vregs[code.ops[step.first_op as usize].vreg.0 as usize].size > 1;
    matches!(step.kind, StepKind::Store(_) | StepKind::Fill(_)) && wide()
}

/// Most ways that are tried for one step. It bounds the time of a refusal; only attempts after the first two get here.
const MAX_WAYS: u32 = 64;

/// The ways in which the operands of a step can share places, one after the other: the usual one; with what lives on kept out
/// of vectors and fixed places; and, where everything is tried ([`Limits::exact`]), all choices that [`nodes`] has.
pub(crate) struct Ways {
    tried: u32,
    exact: bool,
    /// The choices made, each with how many there were.
    picks: SmallVec<[(u8, u8); 8]>,
    at: usize,
}

impl Ways {
    pub fn new(limits: &Limits) -> Ways {
        Ways { exact: limits.exact, ..Ways::every() }
    }

    /// All of them.
    pub fn every() -> Ways {
        Ways { tried: 0, exact: true, picks: SmallVec::new(), at: 0 }
    }

    pub fn nodes(&mut self, code: &Code, limits: &Limits, step: &Step, out: &mut Vec<Node>) {
        self.at = 0;
        match self.tried {
            0 => nodes(code, limits, step, out),
            1 => nodes_with(code, limits, step, true, None, out),
            _ => nodes_with(code, limits, step, false, Some(self), out),
        }
    }

    /// Is there another one?
    pub fn next(&mut self) -> bool {
        self.tried += 1;
        match self.tried {
            1 => true,
            2 => self.exact,
            tried => tried < MAX_WAYS && self.next_picks(),
        }
    }

    fn next_picks(&mut self) -> bool {
        while let Some(last) = self.picks.last_mut() {
            last.0 += 1;
            if last.0 < last.1 {
                return true;
            }
            self.picks.pop();
        }
        false
    }

    fn pick(&mut self, options: usize) -> usize {
        if self.at == self.picks.len() {
            self.picks.push((0, options.min(255) as u8));
        }
        self.at += 1;
        self.picks[self.at - 1].0 as usize
    }
}

/// What a step needs besides the values that live through it without being mentioned.
pub(crate) fn nodes(code: &Code, limits: &Limits, step: &Step, out: &mut Vec<Node>) {
    nodes_with(code, limits, step, false, None, out);
}

/// `tight` keeps what lives on out of vectors and fixed places. With `ways` a use may join any place that has a unit for it, or have
/// one of its own; a def may do without the place of a use.
fn nodes_with(
    code: &Code,
    limits: &Limits,
    step: &Step,
    tight: bool,
    mut ways: Option<&mut Ways>,
    out: &mut Vec<Node>,
) {
    out.clear();
    let range = step.ops();
    let ops = &code.ops[range.clone()];
    let kills = &code.kills[range];
    let early_tie =
        |index: usize| ops.iter().any(|op| op.tied == Some(index as u8) && op.kind == OperandKind::EarlyDef);
    for (index, op) in ops.iter().enumerate() {
        if op.kind != OperandKind::Use {
            continue;
        }
        if code.is_undefined(op.vreg.0) {
            // Takes nothing, but its position in a vector must exist, and an early def must keep off it where it has
            // little choice.
            let named = op.vector.is_some() || op.fixed.is_some() || code.vregs[op.vreg.0 as usize].size > 1;
            if named && !ops.iter().any(|other| other.tied == Some(index as u8)) {
                out.push(Node {
                    value: NONE,
                    ops: SmallVec::from_slice(&[index as u8]),
                    def: NONE,
                    set: op.set,
                    fixed: op.fixed,
                    vector: op.vector,
                    size: code.vregs[op.vreg.0 as usize].size,
                    main: false,
                    spared: false,
                    early: false,
                    phases: IDLE,
                    counts: 0,
                });
            }
            continue;
        }
        let value = op.vreg.0;
        let info = &code.vregs[value as usize];
        let first = !out.iter().any(|node| node.value == value);
        if first && kills[index] == LIVES {
            out.push(Node {
                value,
                ops: SmallVec::new(),
                def: NONE,
                set: info.home,
                fixed: None,
                vector: None,
                size: info.size,
                main: true,
                spared: true,
                early: false,
                phases: BOTH,
                counts: BOTH,
            });
        }
        let tie = ops.iter().position(|other| other.tied == Some(index as u8));
        // A fixed place that a def of this step also takes cannot keep a value that lives on.
        let leaves = op.fixed.is_some_and(|unit| {
            tight
                || ops.iter().enumerate().any(|(at, other)| {
                    let size = code.vregs[other.vreg.0 as usize].size;
                    other.kind != OperandKind::Use
                        && Some(at) != tie
                        && other.fixed.is_some_and(|fixed| overlap(fixed, size, unit, info.size))
                })
        });
        let leaves = leaves || tie.is_some() || tight && op.vector.is_some();
        let free = ways.is_some();
        let mut places = (0..out.len()).filter(|&at| {
            let node = &out[at];
            node.value == value
                && (fits(limits, step, node, op) || free && meets(limits, ops, node, op))
                && !(node.main && leaves)
                && !(tie.is_some() && node.def != NONE)
                && !(tie.is_some() && early_tie(index) && !node.ops.is_empty())
                && !node.early
        });
        let place = match &mut ways {
            None => places.next(),
            Some(ways) => {
                let places: SmallVec<[usize; 8]> = places.collect();
                let pick = ways.pick(places.len() + 1);
                places.get(pick).copied()
            }
        };
        match place.map(|at| &mut out[at]) {
            Some(node) => {
                narrow(limits, node, op);
                node.ops.push(index as u8);
                if let Some(def) = tie {
                    node.def = def as u32;
                    node.early = early_tie(index);
                    node.phases = if node.early { BOTH | EARLY } else { BOTH };
                    node.counts = BOTH;
                }
            }
            None => out.push(Node {
                value,
                ops: SmallVec::from_slice(&[index as u8]),
                def: tie.map_or(NONE, |def| def as u32),
                set: op.set,
                fixed: op.fixed,
                vector: op.vector,
                size: info.size,
                main: false,
                spared: in_parts(code, step),
                early: tie.is_some() && early_tie(index),
                phases: match tie {
                    Some(_) if early_tie(index) => BOTH | EARLY,
                    Some(_) => BOTH,
                    None => READING,
                },
                counts: if tie.is_some() { BOTH } else { READING },
            }),
        }
    }
    place_defs(code, limits, step, ways, out);
}

/// As [`fits`], for sets of which neither holds the other: together they leave a unit.
fn meets(limits: &Limits, ops: &[Operand], node: &Node, op: &Operand) -> bool {
    if node.vector.is_some() && (op.fixed.is_some() || op.vector.is_some())
        || node.fixed.is_some() && (op.fixed.is_some() || op.vector.is_some())
    {
        return false;
    }
    let sets = node.ops.iter().map(|&other| ops[other as usize].set).chain([node.set]);
    let mask = sets.fold(limits.sets[op.set.0 as usize], |mask, set| mask.and(&limits.sets[set.0 as usize]));
    match node.fixed.or(op.fixed) {
        Some(unit) => mask.contains(unit),
        None => !mask.is_empty(),
    }
}

/// May `op` read its value in the place of `node`?
fn fits(limits: &Limits, step: &Step, node: &Node, op: &Operand) -> bool {
    if node.vector.is_some() && (op.fixed.is_some() || op.vector.is_some()) {
        return node.vector == op.vector && node.fixed == op.fixed;
    }
    if node.fixed.is_some() && op.vector.is_some() {
        return false;
    }
    let inner = if limits.nested(op.set, node.set) {
        op.set
    } else if limits.nested(node.set, op.set) {
        node.set
    } else {
        return false;
    };
    let spared = if node.spared { limits.clobber_mask(step.clobbers) } else { UnitMask::EMPTY };
    match (node.fixed, op.fixed) {
        (Some(a), Some(b)) => a == b,
        (Some(unit), None) | (None, Some(unit)) => {
            limits.sets[inner.0 as usize].contains(unit) && !spared.contains(unit)
        }
        (None, None) => !limits.sets[inner.0 as usize].minus(&spared).is_empty(),
    }
}

fn narrow(limits: &Limits, node: &mut Node, op: &Operand) {
    if limits.nested(op.set, node.set) {
        node.set = op.set;
    }
    node.fixed = node.fixed.or(op.fixed);
    node.vector = node.vector.or(op.vector);
}

fn place_defs(code: &Code, limits: &Limits, step: &Step, mut ways: Option<&mut Ways>, out: &mut Vec<Node>) {
    let ops = &code.ops[step.ops()];
    let plain = |index: usize, op: &Operand| Node {
        value: NONE,
        ops: SmallVec::from_slice(&[index as u8]),
        def: index as u32,
        set: op.set,
        fixed: op.fixed,
        vector: op.vector,
        size: code.vregs[op.vreg.0 as usize].size,
        main: false,
        spared: in_parts(code, step),
        early: op.kind == OperandKind::EarlyDef,
        phases: if op.kind == OperandKind::EarlyDef { BOTH | EARLY } else { WRITING },
        counts: if op.kind == OperandKind::EarlyDef { BOTH } else { WRITING },
    };
    // Tied defs: the node of the use, or a new one when the use reads nothing.
    for (index, op) in ops.iter().enumerate() {
        let (Some(tied), true) = (op.tied, op.kind != OperandKind::Use) else { continue };
        match out.iter_mut().find(|node| node.def == index as u32) {
            Some(node) => {
                narrow(limits, node, op);
                node.ops.push(index as u8);
            }
            None => {
                let mut node = plain(index, op);
                let used = &ops[tied as usize];
                node.ops.push(tied);
                narrow(limits, &mut node, used);
                out.push(node);
            }
        }
    }
    // Defs with a fixed unit first, then by the size of their set: what has the least choice comes first. Taking over a
    // use narrows both; in this order no def of a wide set takes the place that one of a narrow set needs.
    let mut order: SmallVec<[u8; 8]> = (0..ops.len() as u8).collect();
    order.retain(|&mut index| {
        let op = &ops[index as usize];
        op.kind != OperandKind::Use && op.tied.is_none() && out.iter().all(|node| node.def != index as u32)
    });
    order.sort_by_key(|&index| {
        let op = &ops[index as usize];
        (op.fixed.is_none(), limits.sets[op.set.0 as usize].count())
    });
    for index in order.into_iter().map(usize::from) {
        let op = &ops[index];
        let size = code.vregs[op.vreg.0 as usize].size;
        let mut best: Option<(u8, usize)> = None;
        let mut rivals = false;
        if op.kind == OperandKind::Def && op.vector.is_none() {
            for (at, node) in out.iter().enumerate() {
                if node.main || node.def != NONE || node.value == NONE || node.vector.is_some() {
                    continue;
                }
                if node.size != size || size > 1 {
                    // Wide places that are fixed apart from each other.
                    rivals |= match (node.fixed, op.fixed) {
                        (Some(a), Some(b)) => !overlap(a, node.size, b, size),
                        _ => false,
                    };
                    continue;
                }
                let fits = match (node.fixed, op.fixed) {
                    (Some(a), Some(b)) => a == b,
                    (Some(unit), None) => limits.sets[op.set.0 as usize].contains(unit),
                    (None, Some(unit)) => limits.sets[node.set.0 as usize].contains(unit),
                    (None, None) => limits.nested(node.set, op.set) || limits.nested(op.set, node.set),
                };
                rivals |= !fits;
                let alike = 2 * (node.fixed == op.fixed) as u8 + (node.set == op.set) as u8;
                if fits && best.is_none_or(|(most, _)| alike > most) {
                    best = Some((alike, at));
                }
            }
        }
        let alone = best.is_some() && ways.as_mut().is_some_and(|ways| ways.pick(2) == 1);
        match best.filter(|_| !alone) {
            Some((_, at)) => {
                out[at].def = index as u32;
                narrow(limits, &mut out[at], op);
                out[at].ops.push(index as u8);
                out[at].phases = BOTH;
                out[at].counts = BOTH;
            }
            None => {
                let mut node = plain(index, op);
                if rivals {
                    node.counts = BOTH;
                }
                out.push(node);
            }
        }
    }
}
