//! What an instruction needs at least: units that have to be there while it reads and while it writes, as things to
//! place with a set of units each. By Hall's theorem they can be placed only if no union of those sets is asked for more
//! than it has. Single units that may move at every point can be placed exactly then, phase by phase; for wide values,
//! vectors and both phases at once it is a lower bound.

use std::collections::BTreeMap;

use kempe_ra::*;

use super::bits::Bits;
use super::linear::{Sum, Term};
use super::view::View;

/// More different sets than this at one point are combined in pairs only.
const MOST_SETS: usize = 8;

/// One thing to place: there when `weight` is one.
#[derive(Clone, Debug)]
pub struct Item {
    pub mask: Bits,
    pub size: u32,
    pub weight: Sum,
}

impl Item {
    pub fn new(mask: Bits, size: u32, term: Term) -> Item {
        Item { mask, size, weight: vec![(1.0, term)] }
    }
}

/// What is asked of a set of units, in units of `capacity`.
pub struct Ask {
    pub units: Bits,
    pub sum: Sum,
    pub capacity: u32,
    pub members: Vec<usize>,
}

/// Everything that Hall's theorem asks of `items`.
pub fn asks(items: &[Item]) -> Vec<Ask> {
    let mut masks: Vec<Bits> = items.iter().map(|item| item.mask).collect();
    masks.sort_unstable();
    masks.dedup();
    let mut unions: Vec<Bits> = Vec::new();
    if masks.len() <= MOST_SETS {
        for chosen in 1..1u32 << masks.len() {
            let picked = masks.iter().enumerate().filter(|(k, _)| chosen >> k & 1 != 0);
            unions.push(picked.fold(Bits::default(), |all, (_, mask)| all.or(mask)));
        }
    } else {
        let all = masks.iter().fold(Bits::default(), |all, mask| all.or(mask));
        unions.push(all);
        for a in &masks {
            unions.extend(masks.iter().map(|b| a.or(b)));
        }
    }
    unions.sort_unstable();
    unions.dedup();
    let mut sizes: Vec<u32> = items.iter().map(|item| item.size).collect();
    sizes.push(1);
    sizes.sort_unstable();
    sizes.dedup();
    let mut out = Vec::new();
    for units in unions {
        for &size in &sizes {
            // What is at least as wide takes whole windows of this size.
            let counts = |item: &Item| match size {
                1 => item.size,
                _ if item.size >= size => item.size.next_power_of_two() / size.next_power_of_two(),
                _ => 0,
            };
            let members: Vec<usize> =
                (0..items.len()).filter(|&k| items[k].mask.within(&units) && counts(&items[k]) > 0).collect();
            let sum: Sum = members
                .iter()
                .flat_map(|&k| items[k].weight.iter().map(move |&(w, term)| (w, term, k)))
                .map(|(w, term, k)| (w * f64::from(counts(&items[k])), term))
                .collect();
            let capacity = if size == 1 { units.count() } else { units.windows(size) };
            out.push(Ask { units, sum, capacity, members });
        }
    }
    out
}

/// Registers that a value is in before the edits, before or after an instruction.
pub type Residents = BTreeMap<u32, (Term, Term)>;

/// What has to be placed while `inst` reads and while it writes, given what is in registers before and after it.
pub fn phases(view: &View, inst: u32, entering: &Residents, leaving: &Residents) -> [Vec<Item>; 2] {
    let ops = view.ops(inst);
    let lost = view.clobbers[view.program.insts[inst as usize].clobbers.0 as usize];
    let (mut reading, mut writing) = (Vec::new(), Vec::new());
    let stays = |value: u32| view.values[value as usize].mask.minus(&lost);
    let size = |value: u32| view.values[value as usize].size;
    for (&value, &(term, _)) in leaving {
        if !view.touches(inst, value) {
            debug_assert_eq!(entering.get(&value).map(|state| state.0), Some(term));
            reading.push(Item::new(stays(value), size(value), term));
            writing.push(Item::new(stays(value), size(value), term));
        }
    }
    let tied = |index: usize| ops.iter().find(|op| op.tied == Some(index as u8));
    let place = |op: &Operand| match op.fixed {
        Some(unit) => {
            let size = view.program.vregs[op.vreg.0 as usize].size as u16;
            Bits::of(&(unit.0..unit.0 + size).map(Unit).collect::<Vec<_>>())
        }
        None => view.sets[op.set.0 as usize],
    };
    let mut used: Vec<u32> = Vec::new();
    for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
        used.extend(view.value(op));
    }
    used.sort_unstable();
    used.dedup();
    for value in used {
        // Places that one value needs side by side: tied ones, members of vectors, sets without a common unit.
        let mut places: Vec<(Bits, bool)> = Vec::new();
        // A place that is written before the others are read serves none of them.
        let mut early: Vec<Bits> = Vec::new();
        let mine = |op: &Operand| op.kind == OperandKind::Use && view.value(op) == Some(value);
        let mut plain: Vec<Bits> = Vec::new();
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| mine(op)) {
            match tied(index) {
                Some(def) if def.kind == OperandKind::EarlyDef => early.push(place(op).and(&place(def))),
                Some(def) => places.push((place(op).and(&place(def)), true)),
                None if op.vector.is_some() => places.push((place(op), false)),
                None => plain.push(place(op)),
            }
        }
        plain.sort_by_key(Bits::count);
        for mask in plain {
            if places.iter().all(|(other, _)| other.and(&mask).is_empty()) {
                places.push((mask, false));
            }
        }
        let all = places.iter().map(|(mask, _)| mask).chain(&early);
        reading.extend(all.map(|mask| Item::new(*mask, size(value), Term::One)));
        if let Some(&(term, _)) = leaving.get(&value).filter(|_| !view.writes(inst, value)) {
            writing.push(Item::new(stays(value), size(value), term));
            let shared = |(mask, tied): &(Bits, bool)| !tied && !mask.and(&stays(value)).is_empty();
            if !places.iter().any(shared) {
                reading.push(Item::new(stays(value), size(value), term));
            }
        }
    }
    for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
        let size = u32::from(view.program.vregs[op.vreg.0 as usize].size);
        let mask = match op.tied {
            Some(index) => place(op).and(&place(&ops[index as usize])),
            None => place(op),
        };
        if op.kind == OperandKind::EarlyDef && op.tied.is_none() {
            reading.push(Item::new(mask, size, Term::One));
        }
        writing.push(Item::new(mask, size, Term::One));
    }
    [reading, writing]
}
