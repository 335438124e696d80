//! Rules of what a stage is given and gives.

use super::match_types;
use crate::io::{IoImm, Owner, Slot};
use crate::module::*;
use crate::ops::Op;
use crate::primitive::{MAX_OUTPUT_VERTICES, MAX_PATCH_VERTICES};
use crate::types::Type;

pub(super) fn check(m: &Module, inst: &InstData, args: &[Type], results: &[Type]) -> Result<(), String> {
    if matches!(inst.op, Op::EmitVertex | Op::EndPrimitive) {
        return match inst.imm {
            Imm::Stream(_) if m.stage == Stage::Geometry => {
                match_types("operand", &[], args)?;
                match_types("result", &[], results)
            }
            Imm::Stream(_) => Err("only geometry shaders give vertices".to_owned()),
            _ => Err("has the wrong kind of immediate".to_owned()),
        };
    }
    let Imm::Io(io) = inst.imm else { return Err("has the wrong kind of immediate".to_owned()) };
    if inst.ty.is_ptr() || inst.ty == Type::Bool {
        return Err(format!("an interface has no {}", inst.ty));
    }
    place(&io)?;
    owner(m.stage, inst.op, &io)?;
    let mut want = vec![Type::I32; io.numbers()];
    if inst.op == Op::Output {
        want.insert(0, inst.ty);
        match_types("operand", &want, args)?;
        return match_types("result", &[], results);
    }
    match_types("operand", &want, args)?;
    match_types("result", &[inst.ty], results)
}

/// All places that the numbers lead to exist.
fn place(io: &IoImm) -> Result<(), String> {
    let last = u32::from(io.component) + u32::from(io.components.saturating_sub(1));
    if last >= u32::from(io.slot.components()) {
        return Err(format!("component {last} of {}", io.slot.components()));
    }
    let last = match io.slot {
        _ if io.locations == 0 => return Ok(()),
        Slot::Location(l) => u32::from(l) + u32::from(io.locations) - 1 <= u32::from(u8::MAX),
        Slot::Row(r) => u32::from(r) + u32::from(io.locations) - 1 <= u32::from(u16::MAX),
        _ => false,
    };
    if last { Ok(()) } else { Err(format!("{} locations from its place on", io.locations)) }
}

/// A stage has such inputs or outputs.
fn owner(stage: Stage, op: Op, io: &IoImm) -> Result<(), String> {
    let row = matches!(io.slot, Slot::Row(_));
    let right = match (stage, op, io.owner) {
        (_, Op::ReadOutput, _) if stage != Stage::TessControl => false,
        (Stage::Geometry, Op::Input, _) => io.owner == Owner::Vertex,
        (Stage::TessControl, Op::Input, _) => io.owner == Owner::Vertex,
        (Stage::TessEval, Op::Input, _) => io.owner != Owner::Invocation,
        (Stage::TessControl, _, Owner::Invocation) => row,
        (Stage::TessControl, _, _) => true,
        (_, _, Owner::Invocation) => io.numbers() == 0 || row,
        _ => false,
    };
    if right { Ok(()) } else { Err(format!("{:?} shaders have no such {}", stage, op.name())) }
}

/// Modes of the module.
pub(super) fn modes(m: &Module) -> Result<(), String> {
    let p = &m.primitive;
    let most = match m.stage {
        Stage::Geometry => MAX_OUTPUT_VERTICES,
        Stage::TessControl => MAX_PATCH_VERTICES,
        _ => return Ok(()),
    };
    if p.vertices > most || (m.stage == Stage::TessControl && p.vertices == 0) {
        return Err(format!("{} vertices, of {most} at most", p.vertices));
    }
    if !(1..=MAX_PATCH_VERTICES).contains(&p.invocations) {
        return Err(format!("{} invocations for each primitive", p.invocations));
    }
    Ok(())
}

/// What a geometry shader says of a vertex stands in the block in which it gives it: passes and targets collect it from there.
pub(super) fn vertices_are_whole(m: &Module, b: Block) -> Result<(), (Inst, String)> {
    let mut open = None;
    for &i in &m.func.blocks[b].insts {
        let Some(d) = m.func.insts.get(i) else { continue };
        match (d.op, d.imm) {
            (Op::Output, Imm::Io(io)) if !matches!(io.slot, Slot::Row(_)) => open = Some(i),
            (Op::EmitVertex, _) => open = None,
            _ => {}
        }
    }
    match open {
        Some(i) => Err((i, "no vertex is given with it in its block".to_owned())),
        None => Ok(()),
    }
}
