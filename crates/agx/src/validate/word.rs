//! Rules that a single instruction can break.
//!
//! Facts: reference sections 2.5 (uniforms), 5, 6, 15.

use super::{ProgramFacts, Report, Stage};
use crate::instr::{Instr, Number, Operand, Place, Role, Size};
use crate::ops::Op;
use crate::regs::{self, packed_elements};
use crate::tables::{ATOMICS, CONVERSIONS, DIMS, FLOAT_CONDITIONS, FORMATS, INTEGER_CONDITIONS, Kind, Style};

pub(super) fn check(facts: &ProgramFacts, at: usize, instr: &Instr, report: &mut Report) {
    meaning(at, instr, report);
    registers(facts, at, instr, report);
    uniforms(facts, at, instr, report);
    memory(at, instr, report);
    stage(facts, at, instr, report);
}

/// 1b (types that the encoder can say), 1c, 1d, 1e.
fn meaning(at: usize, instr: &Instr, report: &mut Report) {
    let name = instr.op.info().name;
    if is_unknown(instr.op) {
        report.hw("1e", at, format!("nobody knows what `{name}` does"));
        return;
    }
    for (role, kind, operand) in instr.operands() {
        let narrow = matches!(kind, Kind::Src16 | Kind::Float16);
        if narrow && operand.as_uniform().is_some_and(|(_, size, _)| size != Size::B16) {
            report.hw("1b", at, format!("{role:?} of `{name}` is a wide uniform"));
        }
        if kind == Kind::Texture && texture_is_unknown(instr, &operand) {
            report.hw("1b", at, "a texture of a type that is not known");
        }
    }
    for field in instr.op.info().numbers() {
        let value = instr.get(field.number);
        if is_opaque(field.number) && !opaque_values(instr.op, field.number, field.usual).contains(&value) {
            report.hw("1c", at, format!("{:?} of `{name}` is {value}", field.number));
        }
        if let Style::Name(names) = field.style
            && must_be_named(names)
            && names.iter().all(|n| n.0 != value)
        {
            report.hw("1d", at, format!("{value} is no {:?}", field.number));
        }
    }
    if instr.op == Op::Iadd || instr.op == Op::Isub || instr.op == Op::Imadd || instr.op == Op::Imsub {
        let shift = instr.get(Number::Shift);
        if shift > 4 {
            report.hw("1d", at, format!("a shift by {shift} makes the shifted term 0"));
        }
    }
    // These two tables give the first source although they should give the second one.
    if instr.op == Op::Bitop && matches!(instr.get(Number::Table), 3 | 12) {
        report.hw("1d", at, "a truth table that the hardware does not follow");
    }
}

/// Operations of the public disassembler that have only bits.
fn is_unknown(op: Op) -> bool {
    matches!(
        op,
        Op::Unk51
            | Op::Iunop
            | Op::Funop
            | Op::JmpIncomplete
            | Op::SimdShufOp
            | Op::SimdOp
            | Op::SimdMatrixFmadd16
            | Op::SimdMatrixFmadd32
            | Op::AsyncLoad
            | Op::AsyncStore
            | Op::AfterSampling1
            | Op::AfterSampling2
            | Op::Unk30C0
            | Op::Unk40C0
            | Op::UnkC0000000
            | Op::UnkE800
            | Op::Unk0C00
            | Op::StackAdjustReg
            | Op::GetSrAlt
            | Op::PopExecAlt
            | Op::MapOp
            | Op::MapAlt
    )
}

fn texture_is_unknown(instr: &Instr, operand: &Operand) -> bool {
    let heap = !instr.operand(Role::Heap).is_none();
    match operand.place {
        Place::Imm(_) => true,
        Place::Reg { size: Size::B16, .. } => heap,
        _ => false,
    }
}

fn is_opaque(number: Number) -> bool {
    (Number::U0..=Number::U9).contains(&number)
}

/// Values of a field whose meaning is not known that are known to work.
fn opaque_values(op: Op, number: Number, usual: u32) -> Vec<u32> {
    match (op, number) {
        (Op::MemoryBarrier, _) => (0..16).collect(),
        // Image loads, coherent ones.
        (Op::TextureSample | Op::TextureLoad, Number::U3) => vec![12, 13, 14, 15],
        (Op::ImageWrite, Number::U3) => vec![9, 15],
        // Explicit coordinates.
        (Op::ImageWriteBlock, Number::U0) | (Op::LdTile | Op::StTile, Number::U0) => vec![0, 1],
        (Op::WaitPix | Op::SignalPix, Number::U1) => vec![0],
        // The ordinary form said with the operation that states its cache control.
        (Op::DeviceLoadControl, Number::U4) => vec![4, 7],
        _ => vec![usual],
    }
}

/// Tables whose other values mean nothing.
fn must_be_named(names: &'static [(u32, &'static str)]) -> bool {
    [INTEGER_CONDITIONS, FLOAT_CONDITIONS, FORMATS, ATOMICS, CONVERSIONS, DIMS].contains(&names)
}

/// 2a, 2b.
fn registers(facts: &ProgramFacts, at: usize, instr: &Instr, report: &mut Report) {
    let end = regs::end(instr);
    if end > facts.halves {
        report.hw("2a", at, format!("half {} where {} are declared", end - 1, facts.halves));
    }
    for (role, _, operand) in instr.operands() {
        if let Some((half, Size::B64, _)) = operand.as_reg()
            && !regs::is_aligned(half, Size::B64)
        {
            report.drv("2b", at, format!("{role:?} is a pair at an odd register"));
        }
    }
}

/// 5a, 5b, 5c.
fn uniforms(facts: &ProgramFacts, at: usize, instr: &Instr, report: &mut Report) {
    let name = instr.op.info().name;
    for (role, kind, operand) in instr.operands() {
        let Some((half, ..)) = operand.as_uniform() else { continue };
        let allowed = match kind {
            Kind::Src | Kind::Src64 | Kind::Src16 | Kind::Float | Kind::Float16 | Kind::Select => {
                is_alu(instr.op)
            }
            Kind::MemBase => half < 256,
            Kind::LocalBase => instr.op != Op::ThreadgroupAtomic,
            Kind::Lod => half < 256,
            Kind::Heap => half < 128,
            Kind::UniformPair => true,
            _ => false,
        };
        if !allowed {
            report.hw("5a", at, format!("{role:?} of `{name}` is a uniform"));
        }
        let end = operand.uniform_halves().end;
        if end > facts.uniforms && facts.stage != Stage::Preamble {
            report.hw("5b", at, format!("uniform half {} where {} are filled", end - 1, facts.uniforms));
        }
    }
    let writes = matches!(instr.op, Op::UniformStore | Op::TexStateStore | Op::SamplerStateStore);
    if writes && facts.stage != Stage::Preamble {
        report.hw("5c", at, format!("`{name}` outside of a preamble"));
    }
}

/// Operations whose sources may be uniforms: everything that works on one lane.
fn is_alu(op: Op) -> bool {
    let info = op.info();
    let across = (Op::IcmpBallot..=Op::SimdOp).contains(&op);
    !across && info.operands().any(|field| field.role == Role::Dest)
}

/// 6a to 6d.
fn memory(at: usize, instr: &Instr, report: &mut Report) {
    let has_data = instr.has(Number::Format) && instr.has(Number::Mask);
    if !has_data {
        return;
    }
    let format = instr.get(Number::Format);
    let mask = instr.get(Number::Mask);
    if instr.has(Number::Shift) && instr.get(Number::Shift) > 2 {
        report.hw("6a", at, "an index shifted by 3");
    }
    match packed_elements(format) {
        _ if mask == 0 => report.hw("6b", at, "an access to no element"),
        Some(count) if mask != (1 << count) - 1 => {
            report.hw("6b", at, format!("a packed format moves {count} elements whatever the mask says"));
        }
        _ => {}
    }
    let narrow = instr.operand(Role::Data).as_reg().is_some_and(|(_, size, _)| size == Size::B16);
    if format == 2 && narrow {
        report.hw("6c", at, "i32 with half registers");
    }
    if instr.get(Number::Unsigned) == 1
        && matches!(instr.operand(Role::Index).place, Place::Imm(value) if value < 0)
    {
        report.drv("6d", at, "an unsigned immediate above 32767");
    }
}

/// 7 and 8: what belongs to another stage.
fn stage(facts: &ProgramFacts, at: usize, instr: &Instr, report: &mut Report) {
    use Op::*;
    let fragment = matches!(
        instr.op,
        WaitPix
            | SignalPix
            | LdTile
            | StTile
            | Iter
            | Iterproj
            | Ldcf
            | SampleMask
            | ZsEmit
            | ImageWriteBlock
            | Dfdx
            | Dfdy
    );
    let vertex = matches!(instr.op, NoVar | StVar | StVarFinal);
    let name = instr.op.info().name;
    // Compute programs may have derivatives between neighbouring threads and write blocks of the tile memory.
    let fragment_only = fragment && !matches!(instr.op, Dfdx | Dfdy | ImageWriteBlock);
    if fragment_only && facts.stage != Stage::Fragment || fragment && facts.stage == Stage::Vertex {
        report.hw("7", at, format!("`{name}` outside of a fragment program"));
    }
    if vertex && facts.stage != Stage::Vertex {
        report.hw("8", at, format!("`{name}` outside of a vertex program"));
    }
}
