//! Three register files: rows with accumulators and flags that thread switches destroy; 256 halves; 128 wide units.

use kempe_ra::*;

pub const ROWS: SetId = SetId(0);
/// Accumulators, then rows.
pub const ANY: SetId = SetId(1);
pub const ACCUMULATORS: SetId = SetId(2);
pub const FLAGS: SetId = SetId(3);
/// Destroys accumulators and flags.
pub const SWITCH: ClobberId = ClobberId(1);
/// Destroys flags.
pub const FLAG_WRITE: ClobberId = ClobberId(2);

fn run(first: u16, count: u16) -> Vec<Unit> {
    (first..first + count).map(Unit).collect()
}

/// `rows` rows, `accumulators` accumulators (may be none), two flags. The last two rows are reserved for memory edits.
pub fn rows_file(rows: u16, accumulators: u16) -> RegisterFile {
    let mut units: Vec<String> = (0..rows).map(|k| format!("row{k}")).collect();
    units.extend((0..accumulators).map(|k| format!("acc{k}")));
    units.extend((0..2).map(|k| format!("flag{k}")));
    let flags = run(rows + accumulators, 2);
    let mut lost = run(rows, accumulators);
    lost.extend(&flags);
    let mut any = run(rows, accumulators);
    any.extend(run(0, rows));
    let mut sets = vec![
        UnitSet { name: "rows".into(), units: run(0, rows), rotate: true, backing: Backing::Memory },
        UnitSet { name: "any".into(), units: any, rotate: false, backing: Backing::Memory },
        UnitSet {
            name: "accumulators".into(),
            units: run(rows, accumulators),
            rotate: false,
            backing: Backing::Memory,
        },
        UnitSet { name: "flags".into(), units: flags.clone(), rotate: false, backing: Backing::Set(ROWS) },
    ];
    if accumulators == 0 {
        sets[ACCUMULATORS.0 as usize].units = run(0, 4);
    }
    RegisterFile {
        units,
        sets,
        clobbers: vec![Vec::new(), lost, flags],
        edit_reserved: run(rows - 2, 2),
        memory_edit_clobbers: SWITCH,
        narrow: Vec::new(),
        preferences: Preferences::default(),
    }
}

pub const HALVES: SetId = SetId(0);
pub const LOW_HALVES: SetId = SetId(1);

/// 256 halves, the lowest first; a low part that some operands are confined to.
pub fn halves_file() -> RegisterFile {
    RegisterFile {
        units: (0..256).map(|k| format!("h{k}")).collect(),
        sets: vec![
            UnitSet { name: "halves".into(), units: run(0, 256), rotate: false, backing: Backing::Memory },
            UnitSet { name: "low".into(), units: run(0, 64), rotate: false, backing: Backing::Memory },
        ],
        clobbers: vec![Vec::new()],
        edit_reserved: run(252, 4),
        memory_edit_clobbers: ClobberId(0),
        narrow: Vec::new(),
        preferences: Preferences::default(),
    }
}

pub const WIDE: SetId = SetId(0);
pub const CALL: ClobberId = ClobberId(1);

/// 128 units, the inputs in the lowest ones; a call destroys the upper half.
pub fn wide_file() -> RegisterFile {
    RegisterFile {
        units: (0..128).map(|k| format!("g{k}")).collect(),
        sets: vec![UnitSet {
            name: "all".into(),
            units: run(0, 128),
            rotate: false,
            backing: Backing::Memory,
        }],
        clobbers: vec![Vec::new(), run(64, 64)],
        edit_reserved: run(126, 2),
        memory_edit_clobbers: ClobberId(0),
        narrow: Vec::new(),
        preferences: Preferences::default(),
    }
}
