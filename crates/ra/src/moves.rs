//! Parallel copies: several registers change places at once. Chains become copies from their end; a cycle becomes
//! swaps, or copies through a register that is free anyway when that is cheaper.

use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub from: Unit,
    pub to: Unit,
}

/// Put `moves` (all at once; every destination once) into a sequence. `spare` holds units that are free here and fit
/// for any of the values.
pub(crate) fn parallel(moves: &[Move], spare: &UnitMask, costs: &Costs, mut emit: impl FnMut(Edit)) {
    const NOTHING: u16 = u16::MAX;
    if let [only] = moves {
        if only.from != only.to {
            emit(Edit::Copy { from: only.from, to: only.to });
        }
        return;
    }
    let mut source = [NOTHING; MAX_UNITS];
    let mut readers = [0u16; MAX_UNITS];
    for step in moves.iter().filter(|step| step.from != step.to) {
        source[step.to.0 as usize] = step.from.0;
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
