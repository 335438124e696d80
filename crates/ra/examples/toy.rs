//! A small machine from end to end: its register file as data, a program, the allocation, and the program printed with
//! what came of it. `cargo run -p kempe-ra --example toy`
//!
//! The machine has eight bytes of registers, `b0` to `b7`. Two of them at an even place are one pair, so `w1` is another
//! name for `b2` and `b3`: an alias needs no table, a value of two units simply covers both. A function takes its argument
//! in `w0` and gives its result in `b0`; a call destroys `b0` to `b3`. `b7` is kept free once memory is used.

use kempe_ra::*;

const BYTES: SetId = SetId(0);
const CALL: ClobberId = ClobberId(1);

fn machine() -> RegisterFile {
    let units = |range: std::ops::Range<u16>| range.map(Unit).collect::<Vec<_>>();
    RegisterFile {
        units: (0..8).map(|k| format!("b{k}")).collect(),
        sets: vec![UnitSet {
            name: "bytes".into(),
            units: units(0..8),
            rotate: false,
            backing: Backing::Memory,
        }],
        clobbers: vec![vec![], units(0..4)],
        edit_reserved: units(7..8),
        ..RegisterFile::default()
    }
}

/// An operand anywhere in the file, or in one place only.
fn operand(value: u32, kind: OperandKind, fixed: Option<u16>) -> Operand {
    let fixed = fixed.map(Unit);
    Operand { vreg: VReg(value), kind, set: BYTES, tied: None, fixed, hint: None, vector: None }
}

fn read(value: u32) -> Operand {
    operand(value, OperandKind::Use, None)
}

fn write(value: u32) -> Operand {
    operand(value, OperandKind::Def, None)
}

/// Names of the instructions, which the allocator does not need, and the program: one block.
fn program() -> (Vec<&'static str>, Program) {
    let add = |a, b, sum| {
        // The sum is written over the first operand, as on most small machines.
        vec![read(a), read(b), Operand { tied: Some(0), ..write(sum) }]
    };
    let call = vec![operand(1, OperandKind::Use, Some(0)), operand(5, OperandKind::Def, Some(0))];
    let lines = vec![
        ("entry", vec![operand(0, OperandKind::Def, Some(0))], ClobberId(0)),
        ("load pair", vec![write(1)], ClobberId(0)),
        ("load byte", vec![write(2)], ClobberId(0)),
        ("load byte", vec![write(3)], ClobberId(0)),
        ("add", add(2, 3, 4), ClobberId(0)),
        ("call", call, CALL),
        ("add", add(5, 4, 6), ClobberId(0)),
        ("add pairs", add(0, 1, 7), ClobberId(0)),
        ("store", vec![read(2), read(6), read(7)], ClobberId(0)),
        ("return", vec![], ClobberId(0)),
    ];
    // v0, v1 and v7 are pairs, the others bytes.
    let size = |value| if [0, 1, 7].contains(&value) { 2 } else { 1 };
    let vreg = |value| VRegInfo { home: BYTES, size: size(value), recipe: None, undefined: false };
    let mut program = Program { vregs: (0..8).map(vreg).collect(), ..Program::default() };
    let mut names = Vec::new();
    for (name, operands, clobbers) in lines {
        let first = program.operands.len() as u32;
        program.operands.extend(operands);
        let operands = first..program.operands.len() as u32;
        program.insts.push(InstInfo {
            operands,
            clobbers,
            no_memory_edit_before: false,
            is_move: false,
            repeat: None,
        });
        names.push(name);
    }
    let insts = 0..program.insts.len() as u32;
    program.blocks.push(BlockInfo { insts, frequency: 1.0, ..BlockInfo::default() });
    (names, program)
}

fn print(file: &RegisterFile, names: &[&str], program: &Program, allocation: &Allocation) -> String {
    let byte = |unit: Unit| file.units[unit.0 as usize].as_str();
    let place = |value: VReg, unit: Unit| match program.vregs[value.0 as usize].size {
        2 => format!("w{}", unit.0 / 2),
        _ => byte(unit).to_owned(),
    };
    let mut text = String::new();
    for (inst, info) in program.insts.iter().enumerate() {
        let here = allocation.edits.iter().filter(|edit| edit.0 == Point::Before(Inst(inst as u32)));
        for (_, edit) in here {
            let line = match *edit {
                Edit::Copy { from, to } => format!("copy      {} <- {}", byte(to), byte(from)),
                Edit::Swap { a, b } => format!("swap      {} <> {}", byte(a), byte(b)),
                Edit::Spill { from, slot } => format!("spill     slot {} <- {}", slot.0, byte(from)),
                Edit::Fill { slot, to } => format!("fill      {} <- slot {}", byte(to), slot.0),
                Edit::Repeat { inst, from, to } => {
                    format!("repeat {} {} <- {} {}", inst.0, byte(to), byte(from[0]), byte(from[1]))
                }
                Edit::Recompute { recipe, to } => format!("recompute {} <- recipe {}", byte(to), recipe.0),
            };
            text += &format!("        | {line}\n");
        }
        text += &format!("    {:9}", names[inst]);
        for index in info.operands.clone() {
            let op = &program.operands[index as usize];
            let arrow = if op.kind == OperandKind::Use { "" } else { "-> " };
            text += &format!("  {arrow}v{} {}", op.vreg.0, place(op.vreg, allocation.places[index as usize]));
        }
        text = text.trim_end().to_owned() + "\n";
    }
    text
}

fn main() -> Result<(), Failure> {
    let file = machine();
    let (names, program) = program();
    // `allocate` gives nothing that checker A has not agreed to; `check` is the same judge for anybody's allocation.
    let allocation = allocate(&file, &program, &Costs::default(), &Options::default())?;
    check(&file, &program, &allocation)?;
    let moved = allocation.cost(&program, &Costs::default());
    print!("{}", print(&file, &names, &program, &allocation));
    println!("{} slots, {} edits that cost {moved} cycles", allocation.slots, allocation.edits.len());
    Ok(())
}

#[test]
fn the_toy_spills_across_the_call() -> Result<(), Failure> {
    let (file, (names, program)) = (machine(), program());
    let allocation = allocate(&file, &program, &Costs::default(), &Options::default())?;
    let text = print(&file, &names, &program, &allocation);
    // Seven bytes live through a call that leaves four, three of them when memory is used.
    assert!(allocation.slots > 0 && text.contains("spill ") && text.contains("fill "), "{text}");
    assert!(text.contains("call       v1 w0  -> v5 b0"), "{text}");
    main()
}
