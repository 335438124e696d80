//! Parallel copies: several registers change places at once. Chains become copies from their end; a cycle becomes
//! swaps, or copies through a register that is free anyway when that is cheaper.

use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub from: Unit,
    pub to: Unit,
    /// The set that the value belongs to.
    pub home: SetId,
}

/// Put `moves` (all at once; every destination once) into a sequence. `spare` holds units that are free here and fit
/// for any of the values. `sets_of` counts the sets that a unit belongs to; `keeps` says whether a value of a set survives in
/// a unit.
///
/// In a cycle of swaps the value of the first unit passes through all others. The first is therefore one whose value
/// survives there. A unit that only some values may lie in is such a one, if it is alone: it gets its own value at once and
/// sees no other.
pub(crate) fn parallel(
    moves: &[Move],
    spare: &UnitMask,
    costs: &Costs,
    sets_of: impl Fn(Unit) -> u32,
    keeps: impl Fn(SetId, Unit) -> bool,
    mut emit: impl FnMut(Edit),
) {
    const NOTHING: u16 = u16::MAX;
    if let [only] = moves {
        if only.from != only.to {
            emit(Edit::Copy { from: only.from, to: only.to });
        }
        return;
    }
    let mut source = [NOTHING; MAX_UNITS];
    let mut home = [SetId(0); MAX_UNITS];
    let mut readers = [0u16; MAX_UNITS];
    for step in moves.iter().filter(|step| step.from != step.to) {
        source[step.to.0 as usize] = step.from.0;
        home[step.from.0 as usize] = step.home;
        readers[step.from.0 as usize] += 1;
    }
    let mut ready: Vec<u16> = Vec::new();
    for step in moves {
        let to = step.to.0;
        if source[to as usize] != NOTHING && readers[to as usize] == 0 {
            ready.push(to);
        }
        while let Some(to) = ready.pop() {
            let from = std::mem::replace(&mut source[to as usize], NOTHING);
            emit(Edit::Copy { from: Unit(from), to: Unit(to) });
            readers[from as usize] -= 1;
            if readers[from as usize] == 0 && source[from as usize] != NOTHING {
                ready.push(from);
            }
        }
    }
    // What is left are cycles, every unit with one reader.
    for step in moves {
        if source[step.to.0 as usize] == NOTHING {
            continue;
        }
        let mut cycle = vec![step.to.0];
        loop {
            let last = cycle[cycle.len() - 1];
            let from = std::mem::replace(&mut source[last as usize], NOTHING);
            if from == step.to.0 || from == NOTHING {
                break;
            }
            cycle.push(from);
        }
        let losses = |first: u16| {
            let others = cycle.iter().filter(|&&unit| unit != first);
            others.filter(|&&unit| !keeps(home[first as usize], Unit(unit))).count()
        };
        if let Some(first) = (0..cycle.len()).min_by_key(|&k| (losses(cycle[k]), sets_of(Unit(cycle[k])))) {
            cycle.rotate_left(first);
        }
        let swaps = (cycle.len() - 1) as f32 * costs.swap;
        let copies = (cycle.len() + 1) as f32 * costs.copy;
        match spare.first() {
            Some(temp) if copies <= swaps => {
                emit(Edit::Copy { from: Unit(cycle[0]), to: temp });
                for pair in cycle.windows(2) {
                    emit(Edit::Copy { from: Unit(pair[1]), to: Unit(pair[0]) });
                }
                emit(Edit::Copy { from: temp, to: Unit(cycle[cycle.len() - 1]) });
            }
            _ => {
                for pair in cycle.windows(2) {
                    emit(Edit::Swap { a: Unit(pair[0]), b: Unit(pair[1]) });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by unit after the edits.
    fn run(edits: &[Edit], units: usize) -> Vec<usize> {
        let mut at: Vec<usize> = (0..units).collect();
        for &e in edits {
            match e {
                Edit::Copy { from, to } => at[to.0 as usize] = at[from.0 as usize],
                Edit::Swap { a, b } => at.swap(a.0 as usize, b.0 as usize),
                _ => panic!("{e:?}"),
            }
        }
        at
    }

    /// A unit that only some values may lie in must not see a value on its way to another unit.
    #[test]
    fn no_value_passes_through_a_unit_of_fewer_sets() {
        let moved = |k| Move { from: Unit((k + 1) % 4), to: Unit(k), home: SetId(0) };
        let moves: Vec<Move> = (0..4).map(moved).collect();
        for special in 0..4 {
            for first in 0..4 {
                let mut order = moves.clone();
                order.rotate_left(first);
                let costs = Costs { copy: 1.0, swap: 0.5, spill: 10.0, fill: 10.0 };
                let mut edits = Vec::new();
                let sets_of = |u: Unit| if u.0 == special { 1 } else { 2 };
                parallel(&order, &UnitMask::EMPTY, &costs, sets_of, |_, _| true, |e| edits.push(e));
                assert_eq!(run(&edits, 4), [1, 2, 3, 0]);
                for n in 1..=edits.len() {
                    let there = run(&edits[..n], 4)[special as usize];
                    let own = [special as usize, (special as usize + 1) % 4];
                    assert!(own.contains(&there), "{special}: {edits:?}");
                }
            }
        }
    }

    /// Units 1 and 3 keep values of set 1 only, and belong to more sets than the others: no value of set 0 passes through them.
    #[test]
    fn what_goes_around_survives_in_every_unit() {
        let keeps = |set: SetId, unit: Unit| set == SetId(1) || unit.0.is_multiple_of(2);
        // 0 <- 4 <- 2 <- 1 <- 3 <- 0: only what leaves 1 and 3 or enters them is of set 1.
        let ring = [(4, 0, 0), (2, 4, 0), (1, 2, 1), (3, 1, 1), (0, 3, 1)];
        let mut moves: Vec<Move> = ring
            .iter()
            .map(|&(from, to, set)| Move { from: Unit(from), to: Unit(to), home: SetId(set) })
            .collect();
        for _ in 0..moves.len() {
            moves.rotate_left(1);
            let mut edits = Vec::new();
            let costs = Costs { copy: 1.0, swap: 0.5, spill: 10.0, fill: 10.0 };
            let sets_of = |unit: Unit| 1 + u32::from(unit.0 % 2);
            parallel(&moves, &UnitMask::EMPTY, &costs, sets_of, keeps, |e| edits.push(e));
            for n in 1..=edits.len() {
                let at = run(&edits[..n], 5);
                for unit in [1, 3] {
                    assert!([0, 1, 3].contains(&at[unit]), "{edits:?}");
                }
            }
        }
    }
}
