//! One random case: allocate without a limit and at a low one, judge by checker A (inside `allocate`), by running both
//! programs, and, when it is refused, by [`super::least`].

use kempe_ra::*;

use super::execute::Machine;
use super::generate::{Kind, generate};
use super::least::{Verdict, verdict};
use super::rng::Rng;

pub const KINDS: [Kind; 5] =
    [Kind::Rows(32, 6), Kind::Rows(64, 6), Kind::Rows(32, 0), Kind::Halves, Kind::Wide];

#[derive(Default, Debug, Clone)]
pub struct Tally {
    pub allocated: u32,
    pub with_memory: u32,
    pub refused: u32,
    pub edits: u64,
    /// What the edits cost.
    pub cost: f64,
    /// Allocations of the graph engine that it left to the other one.
    pub handed_on: u32,
    /// What must not happen: differences, checker failures, refusals without reason.
    pub bad: Vec<String>,
}

/// The program of a case; the same seed gives the same program.
pub fn program_of(kind: Kind, seed: u64, size: u32) -> Program {
    let mut rng = Rng::new(seed ^ 0x51ce);
    let (least, most) = match kind {
        // Small ones say as much, and there are a million of them.
        Kind::Random(_) => (4, 44),
        _ => (5, 150),
    };
    let length = if size != 0 { size } else { rng.range(least, most) };
    generate(kind, seed, length)
}

/// The same on a register file made from the seed.
pub fn run_random(seed: u64, size: u32, engines: &[Engine], tallies: &mut [Tally]) {
    let kind = Kind::Random(seed);
    run_case(kind, &kind.file(), seed, size, engines, tallies);
}

/// With each of `engines`; the later ones must allocate whatever the first one does.
pub fn run_case(
    kind: Kind,
    file: &RegisterFile,
    seed: u64,
    size: u32,
    engines: &[Engine],
    tallies: &mut [Tally],
) {
    let program = program_of(kind, seed, size);
    let mut rng = Rng::new(seed ^ 0x11a1);
    // What is fixed or wide on a random file leaves little below five registers or so.
    let least = if matches!(kind, Kind::Random(_)) { 4 } else { 1 };
    for limit in [None, Some(rng.range(least, 40)), Some(rng.range(least, 12))] {
        let force_spill = limit.is_some() && rng.chance(10);
        let mut reached = false;
        for (&engine, tally) in engines.iter().zip(&mut *tallies) {
            let options = Options { max_registers: limit, force_spill, engine, ..Options::default() };
            let name = format!("{kind:?} seed {seed} limit {limit:?} force {force_spill} {engine:?}");
            match allocate(file, &program, &Costs::default(), &options) {
                Ok(allocation) => {
                    reached = true;
                    tally.allocated += 1;
                    tally.with_memory += allocation.memory_edits as u32;
                    tally.edits += allocation.edits.len() as u64;
                    tally.cost += allocation.cost(&program, &Costs::default());
                    tally.handed_on += (allocation.engine != engine) as u32;
                    let used = allocation.edits.iter().filter_map(|(_, edit)| match edit {
                        Edit::Spill { slot, .. } | Edit::Fill { slot, .. } => Some(slot.0),
                        _ => None,
                    });
                    if used.collect::<std::collections::BTreeSet<_>>().len() != allocation.slots as usize {
                        tally.bad.push(format!("{name}: slots that no edit names"));
                    }
                    if let Err(text) = Machine::new(file, &program, &allocation).run(seed, 4, 60) {
                        tally.bad.push(format!("{name}: {text}"));
                    }
                }
                Err(Failure::OutOfRegisters { at, .. }) => {
                    tally.refused += 1;
                    if reached {
                        tally.bad.push(format!("{name}: refused at {}, but another engine did it", at.0));
                        continue;
                    }
                    match verdict(file, &program, limit) {
                        Verdict::Exceeds(_) => {}
                        other => tally.bad.push(format!("{name}: refused at {} although: {other:?}", at.0)),
                    }
                }
                Err(error) => tally.bad.push(format!("{name}: {error}")),
            }
        }
    }
}
