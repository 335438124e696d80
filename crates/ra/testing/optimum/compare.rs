//! An allocation beside the least cost and the fewest registers.

use kempe_ra::*;

use super::registers::fewest;
use super::spill::{Between, Effort, Least, least};
use super::view::View;

/// What an allocation costs, without and with copies.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    /// Stores, fills and recomputations, weighted.
    pub memory: f64,
    /// Copies and swaps, weighted.
    pub copies: f64,
}

pub fn spent(program: &Program, costs: &Costs, allocation: &Allocation) -> Spent {
    let part = |wanted: fn(&Edit) -> bool| {
        let edits = allocation.edits.iter().copied().filter(|(_, edit)| wanted(edit)).collect();
        Allocation { edits, ..Allocation::default() }.cost(program, costs)
    };
    let is_copy = |edit: &Edit| matches!(edit, Edit::Copy { .. } | Edit::Swap { .. });
    Spent { memory: part(|edit| !matches!(edit, Edit::Copy { .. } | Edit::Swap { .. })), copies: part(is_copy) }
}

/// The least cost at a register limit: without memory edits where that fits, else with them.
pub fn least_at(
    file: &RegisterFile,
    program: &Program,
    costs: &Costs,
    limit: Option<u32>,
    between: Between,
    effort: Effort,
) -> Least {
    // Without memory edits the units that they reserve are there, so both problems have to be looked at.
    let with = least(&View::new(file, program, limit, true), costs, between, effort);
    let free = super::registers::fits(&View::new(file, program, limit, false));
    match with {
        Least::Cost { cost, .. } if free && cost > 0.0 => Least::Cost { cost: 0.0, shared: false },
        Least::Infeasible | Least::Unsolved { .. } if free => Least::Cost { cost: 0.0, shared: false },
        other => other,
    }
}

/// The fewest registers the allocator does with, without memory edits.
pub fn fewest_of_allocator(file: &RegisterFile, program: &Program, from: u32, most: u32) -> Option<u32> {
    (from..=most).find(|&limit| {
        let options = Options { max_registers: Some(limit), ..Options::default() };
        let done = allocate(file, program, &Costs::default(), &options);
        done.is_ok_and(|allocation| !allocation.memory_edits)
    })
}

/// Registers: the lower bound and the allocator's.
pub fn registers(file: &RegisterFile, program: &Program, most: u32) -> Option<(u32, Option<u32>)> {
    let bound = fewest(file, program, most)?;
    Some((bound, fewest_of_allocator(file, program, bound, most)))
}
