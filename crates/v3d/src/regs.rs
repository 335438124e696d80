//! The register files of V3D as data for the allocator.
//!
//! Units are numbered rows first (`rf0` is unit 0), then on 4.2 the accumulators r0 to r5. Facts: reference 3.1, 3.2,
//! 13.1, 13.5 and rule 13; `docs/isa/v3d.md`. What is left out: pairing rf rows with ports (4.2 reads at most two
//! rows in one instruction, which `finish` sees to when it merges).

use crate::instr::{Loc, Version};
use kempe_ra::{Backing, ClobberId, Costs, Favour, Preferences, RegisterFile, SetId, Unit, UnitSet};

/// Rows of the register file: every lane has its own value, and a thread switch keeps it.
pub const RF: SetId = SetId(0);
/// Whatever holds a value per lane: rows, and on 4.2 the accumulators r0 to r4.
pub const ANY: SetId = SetId(1);
/// Whatever holds a word that is the same in all lanes: as [`ANY`], and on 4.2 r5 too.
pub const UNI: SetId = SetId(2);

/// Where a varying may arrive: as [`ANY`], but not in rf0 of 7.1 (rule 22).
pub const VARYING: SetId = SetId(3);

/// Destroys nothing.
pub const NONE: ClobberId = ClobberId(0);
/// A thread switch: the accumulators are shared by the threads of a QPU (rule 58).
pub const SWITCH: ClobberId = ClobberId(1);

/// Operations between lanes: on 4.2 a rotation turns an accumulator, and a value for all lanes goes through r5
/// (reference 8.5, 3.1).
pub const LANES: ClobberId = ClobberId(2);

/// What arrives by itself: the second part of a varying in r5 or rf0 (reference 12.1).
pub const BROADCAST: ClobberId = ClobberId(3);

/// Rows of a thread (reference section 1).
pub fn rows(threads: u32) -> u16 {
    if threads >= 4 { 32 } else { 64 }
}

/// The register behind a unit.
pub fn unit_loc(threads: u32, unit: Unit) -> Loc {
    let rows = rows(threads);
    if unit.0 < rows { Loc::Row(unit.0 as u8) } else { Loc::Acc((unit.0 - rows) as u8) }
}

/// The unit of a row.
pub fn row(n: u16) -> Unit {
    Unit(n)
}

/// The unit of an accumulator (4.2).
pub fn accumulator(threads: u32, n: u16) -> Unit {
    Unit(rows(threads) + n)
}

/// The row in which a payload word of a compute program arrives (reference 13.5).
pub fn payload_row(version: Version, number: u64) -> Option<Unit> {
    match (version, number) {
        (Version::V42, 0) => Some(row(0)),
        (Version::V71, 0) => Some(row(3)),
        (_, 1) => Some(row(2)),
        _ => None,
    }
}

/// The row in which a start word of a fragment program arrives: W, W of the centroid, depth (reference 13.5).
pub fn fragment_row(version: Version, number: u64) -> Unit {
    match (version, number) {
        (Version::V42, 0) => row(0),
        (Version::V71, 0) => row(3),
        (_, 1) => row(1),
        _ => row(2),
    }
}

/// The row that holds the spill base once memory edits are needed.
pub fn spill_base(threads: u32) -> Unit {
    row(rows(threads) - 1)
}

/// The register in which memory edits bring the offset of a slot.
pub fn spill_scratch(version: Version, threads: u32) -> Unit {
    match version {
        Version::V42 => accumulator(threads, 5),
        Version::V71 => row(0),
    }
}

/// The register file of a program for this many threads per QPU.
pub fn register_file(version: Version, threads: u32) -> RegisterFile {
    let rows = rows(threads);
    let mut units: Vec<String> = (0..rows).map(|r| format!("rf{r}")).collect();
    // Payload rows last: what stays in them would be in the way of nothing, but early values do not meet the payload.
    let mut rf: Vec<Unit> = match version {
        Version::V42 => (3..rows).chain([1, 0, 2]).map(row).collect(),
        // rf0 is where the uniform stream arrives; anything else takes it only when nothing is left.
        Version::V71 => (4..rows).chain([1, 2, 3]).map(row).collect(),
    };
    let (any, uni, lost, between, arrives) = match version {
        Version::V42 => {
            units.extend((0..6).map(|r| format!("r{r}")));
            let acc: Vec<Unit> = (0..5).map(|r| accumulator(threads, r)).collect();
            let any: Vec<Unit> = acc.iter().chain(&rf).copied().collect();
            let r5 = accumulator(threads, 5);
            let uni = std::iter::once(r5).chain(any.iter().copied()).collect();
            let between = vec![accumulator(threads, 0), accumulator(threads, 1), r5];
            (any, uni, acc.into_iter().chain([r5]).collect(), between, vec![r5])
        }
        Version::V71 => {
            let uni = std::iter::once(row(0)).chain(rf.iter().copied()).collect();
            rf.push(row(0));
            (rf.clone(), uni, Vec::new(), Vec::new(), vec![row(0)])
        }
    };
    let varying = match version {
        Version::V42 => any.clone(),
        Version::V71 => any.iter().copied().filter(|&u| u != row(0)).collect(),
    };
    let set = |name: &str, units: Vec<Unit>, rotate| UnitSet {
        name: name.to_owned(),
        units,
        rotate,
        backing: Backing::Memory,
    };
    RegisterFile {
        units,
        sets: vec![
            set("rf", rf, true),
            set("any", any, true),
            set("uni", uni, true),
            set("varying", varying, true),
        ],
        clobbers: vec![Vec::new(), lost, between, arrives],
        edit_reserved: vec![spill_base(threads), spill_scratch(version, threads)],
        memory_edit_clobbers: SWITCH,
        // r5 holds one value per quad (reference 3.1).
        narrow: match version {
            Version::V42 => vec![accumulator(threads, 5)],
            Version::V71 => Vec::new(),
        },
        preferences: preferences(version, threads),
    }
}

/// What leads to shorter code. (Instructions of the corpus without each: `docs/allocator.md`.)
fn preferences(version: Version, threads: u32) -> Preferences {
    let uniform = |unit, rest| Favour { set: UNI, unit, rest };
    match version {
        Version::V42 => Preferences {
            // A word of the stream in r5 takes no port.
            favoured: vec![uniform(accumulator(threads, 5), UNIFORM_REST_42)],
            // Accumulators take no port of the register file, of which an instruction has two (section 3.2): but what stays in one
            // for long keeps others out.
            brief: (0..5).map(|n| accumulator(threads, n)).collect(),
            brief_life: BRIEF_LIFE,
            // Rows of the next thread's payload (rules 47, 50).
            late: [0, 1, 2].map(row).to_vec(),
            late_steps: LATE_STEPS,
        },
        Version::V71 => Preferences {
            // The implicit destination leaves the field for conditions free (section 5); but whatever arrives there waits for the
            // word before it.
            favoured: vec![uniform(row(0), UNIFORM_REST_71)],
            late: [2, 3].map(row).to_vec(),
            late_steps: LATE_STEPS,
            ..Preferences::default()
        },
    }
}

/// Instructions between two words of the stream in r5 (2 to 5 differ by 0.1 % of the instructions of the corpus, 0 costs 0.4 %), and
/// in rf0 (5 to 14 differ by less than 0.1 %, 0 costs 0.8 %).
const UNIFORM_REST_42: u32 = 3;
const UNIFORM_REST_71: u32 = 7;
/// Longest life in an accumulator: 14 costs 0.1 %, 28 costs 0.2 % of the instructions.
const BRIEF_LIFE: u32 = 20;
/// Machine instructions at the end that keep off rows of the next thread (7.1: none of this costs 0.05 % of the instructions).
const LATE_STEPS: u32 = 6;

/// Cycles, estimated: a memory access costs a switch and a latency that other threads hide in part
/// (`docs/isa/v3d.md`; the reference weight is 10 per access against 1 for an operation).
pub fn costs() -> Costs {
    Costs { copy: 1.0, swap: 3.0, spill: 10.0, fill: 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_the_reference_says() {
        for threads in [2, 4] {
            let f = register_file(Version::V71, threads);
            assert_eq!(f.units.len(), rows(threads) as usize);
            for set in &f.sets[..3] {
                assert_eq!(set.units.len(), rows(threads) as usize);
            }
            assert!(!f.sets[VARYING.0 as usize].units.contains(&row(0)));
            assert_eq!(f.sets[UNI.0 as usize].units[0], row(0));
            let f = register_file(Version::V42, threads);
            assert_eq!(f.units.len(), rows(threads) as usize + 6);
            assert_eq!(f.sets[RF.0 as usize].units.len(), rows(threads) as usize);
            assert_eq!(f.sets[ANY.0 as usize].units.len(), rows(threads) as usize + 5);
            assert_eq!(f.sets[UNI.0 as usize].units.len(), rows(threads) as usize + 6);
            assert_eq!(f.clobbers[SWITCH.0 as usize].len(), 6);
            assert_eq!(unit_loc(threads, accumulator(threads, 5)), Loc::Acc(5));
            assert_eq!(unit_loc(threads, spill_base(threads)), Loc::Row(rows(threads) as u8 - 1));
        }
    }
}
