//! The register file as the allocator sees it.
//!
//! A unit is a 32-bit register. `r0` is not given out: its low half is the execution mask counter. Everything else is;
//! `r1`, the link register, too, since nothing is called (reference sections 1.1 and 12).
//!
//! A lane's registers change only while the lane is active, so for every lane the program is the walk along its own path:
//! the allocator sees the control-flow graph as it is, and neither a merge nor an edit needs to know of masks.
//!
//! Left out: the 256 halves as units. A 16-bit value takes a whole register, because members of vector operands have one
//! unit in the allocator.

use crate::stats;
use kempe_ra::{Backing, ClobberId, Costs, RegisterFile, SetId, Unit, UnitSet};

/// All registers that are given out.
pub const ANY: SetId = SetId(0);

/// Destroys nothing.
pub const NONE: ClobberId = ClobberId(0);

/// Registers of the file.
pub const REGISTERS: u32 = 128;

/// The first that is given out.
const FIRST: u16 = 1;

/// Registers that a program may use in work-groups of so many threads: all of one must fit on a core together.
pub fn limit(threads: u32) -> u32 {
    stats::halves_for(threads) / 2
}

/// Threads that fit on a core with so many registers.
pub fn threads(registers: u32) -> u32 {
    stats::threads_for(2 * registers)
}

/// Number of the register that a unit is.
pub fn register(unit: Unit) -> u16 {
    unit.0
}

/// The register file of a program that may use so many registers.
pub fn register_file(registers: u32) -> RegisterFile {
    let given = (FIRST..registers as u16).map(Unit).collect();
    RegisterFile {
        units: (0..registers).map(|r| format!("r{r}")).collect(),
        sets: vec![UnitSet {
            name: "registers".to_owned(),
            units: given,
            rotate: false,
            backing: Backing::Memory,
        }],
        clobbers: vec![Vec::new()],
        ..RegisterFile::default()
    }
}

/// What edits cost: a swap is three operations, an access to stack memory is counted like one to a buffer (reference
/// section 3 of the public driver's skipping costs: ten operations).
pub fn costs() -> Costs {
    Costs { copy: 1.0, swap: 3.0, spill: 10.0, fill: 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_reference() {
        assert_eq!([1, 384, 385, 448, 512, 1000, 1024].map(limit), [128, 128, 116, 116, 104, 52, 52]);
        assert_eq!([1, 52, 53, 116, 117, 128].map(threads), [1024, 1024, 896, 448, 384, 384]);
    }

    #[test]
    fn vectors_may_start_anywhere_but_at_the_mask() {
        let file = register_file(52);
        assert_eq!((file.units.len(), file.sets[0].units.len()), (52, 51));
        assert!(!file.sets[0].units.contains(&Unit(0)));
    }
}
