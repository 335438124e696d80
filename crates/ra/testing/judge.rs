//! Judging one allocation of a problem by hand: checker A, once inside `allocate` and once on its own, and the program and
//! its allocation side by side; and looking at what the edits are, to show that a shape was really there.

use kempe_ra::*;

use super::dump::dump;
use super::execute::Machine;

/// Every engine that exists; the tests of shapes run over all of them.
pub const ENGINES: [Engine; 2] = [Engine::Scan, Engine::Graph];

/// Paths through a program that are walked, and blocks on each at most.
const PATHS: u32 = 24;
const BLOCKS: u32 = 400;

/// Allocate, which must succeed, and judge.
pub fn judged(file: &RegisterFile, program: &Program, options: &Options) -> Allocation {
    let allocation = match allocate(file, program, &Costs::default(), options) {
        Ok(allocation) => allocation,
        Err(error) => panic!("{options:?}: {error}\n{}", dump(file, program, None)),
    };
    let text = || dump(file, program, Some(&allocation));
    if let Err(error) = check(file, program, &allocation) {
        panic!("{options:?}: {error}\n{}", text());
    }
    if let Err(error) = Machine::new(file, program, &allocation).run(1, PATHS, BLOCKS) {
        panic!("{options:?}: {error}\n{}", text());
    }
    allocation
}

/// Attempts that no shape takes more of: without memory edits and with them. The graph engine comes beside the first one of the other.
pub fn most_attempts(allocation: &Allocation) -> u32 {
    if allocation.engine == Engine::Graph { 3 } else { 2 }
}

/// As [`judged`], once with every engine; `look` sees each allocation.
pub fn by_every_engine(
    file: &RegisterFile,
    program: &Program,
    options: &Options,
    mut look: impl FnMut(&Allocation),
) {
    for engine in ENGINES {
        look(&judged(file, program, &Options { engine, ..*options }));
    }
}

/// The edits before one instruction.
pub fn edits_before(allocation: &Allocation, inst: u32) -> Vec<Edit> {
    let edits = allocation.edits.iter();
    edits.filter(|(point, _)| *point == Point::Before(Inst(inst))).map(|&(_, edit)| edit).collect()
}

pub fn spills(edits: &[Edit]) -> usize {
    edits.iter().filter(|edit| matches!(edit, Edit::Spill { .. })).count()
}

pub fn fills(edits: &[Edit]) -> usize {
    edits.iter().filter(|edit| matches!(edit, Edit::Fill { .. })).count()
}

pub fn copies(edits: &[Edit]) -> usize {
    edits.iter().filter(|edit| matches!(edit, Edit::Copy { .. })).count()
}

pub fn swaps(edits: &[Edit]) -> usize {
    edits.iter().filter(|edit| matches!(edit, Edit::Swap { .. })).count()
}

pub fn remakes(edits: &[Edit]) -> usize {
    edits.iter().filter(|edit| matches!(edit, Edit::Recompute { .. })).count()
}

pub fn all_edits(allocation: &Allocation) -> Vec<Edit> {
    allocation.edits.iter().map(|&(_, edit)| edit).collect()
}

/// Places of the operands of one instruction.
pub fn places_of(program: &Program, allocation: &Allocation, inst: u32) -> Vec<u16> {
    let range = &program.insts[inst as usize].operands;
    allocation.places[range.start as usize..range.end as usize].iter().map(|unit| unit.0).collect()
}
