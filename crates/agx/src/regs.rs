//! Which registers an instruction reads and writes, as ranges of halves.
//!
//! Facts: reference sections 2, 3, 5 and 8.

use crate::instr::{Instr, Number, Operand, Role, Size};
use crate::ops::Op;
use std::ops::Range;

/// Half registers there are.
pub const HALVES: u16 = 256;

/// Half of the execution mask counter, `r0l`.
pub const MASK_COUNTER: u16 = 0;

/// Halves of the link register, `r1`.
pub const LINK: Range<u16> = 2..4;

/// Does the operation load its data, rather than store them?
pub fn is_load(op: Op) -> bool {
    matches!(
        op,
        Op::DeviceLoad
            | Op::DeviceLoadControl
            | Op::StackLoad
            | Op::ThreadgroupLoad
            | Op::TextureSample
            | Op::TextureLoad
            | Op::LdTile
            | Op::Atomic
            | Op::ThreadgroupAtomic
    )
}

/// Does it recompute the execution mask from the counters?
pub fn is_mask(op: Op) -> bool {
    matches!(
        op,
        Op::IfIcmp
            | Op::IfFcmp
            | Op::ElseIcmp
            | Op::ElseFcmp
            | Op::WhileIcmp
            | Op::WhileFcmp
            | Op::PopExec
            | Op::PopExecAlt
    )
}

/// Slot of the scoreboard that the instruction leaves a request in.
pub fn slot(instr: &Instr) -> Option<usize> {
    let asynchronous = matches!(
        instr.op,
        Op::DeviceLoad
            | Op::DeviceStore
            | Op::DeviceLoadControl
            | Op::DeviceStoreControl
            | Op::Atomic
            | Op::StackLoad
            | Op::StackStore
            | Op::TextureSample
            | Op::TextureLoad
    );
    asynchronous.then_some(instr.get(Number::Slot) as usize & 1)
}

/// Elements of a packed format of memory, whatever the mask says.
pub fn packed_elements(format: u32) -> Option<u8> {
    match format {
        8 => Some(4),
        12..=15 => Some(3),
        _ => None,
    }
}

/// The data registers, as many as are really moved.
fn data(instr: &Instr) -> Operand {
    let operand = instr.operand(Role::Data);
    let Some((half, size, _)) = operand.as_reg() else { return operand };
    match instr.op {
        // All four are written, whatever the mask says.
        Op::TextureSample | Op::TextureLoad => Operand::vector(half, size, 4),
        Op::DeviceLoad | Op::DeviceStore | Op::DeviceLoadControl | Op::DeviceStoreControl => {
            match packed_elements(instr.get(Number::Format)) {
                Some(count) => Operand::vector(half, size, count),
                None => operand,
            }
        }
        _ => operand,
    }
}

/// Halves that are read.
pub fn reads(instr: &Instr) -> impl Iterator<Item = Range<u16>> {
    let load = is_load(instr.op);
    let sources = instr.operands().filter(move |&(role, ..)| match role {
        Role::Dest => is_mask(instr.op),
        Role::Data => !load,
        _ => true,
    });
    let ranges = sources.map(|(role, _, operand)| match role {
        Role::Data => data(instr).halves(),
        _ => operand.halves(),
    });
    ranges.filter(|range| !range.is_empty())
}

/// Halves that are written.
pub fn writes(instr: &Instr) -> impl Iterator<Item = Range<u16>> {
    let dest = instr.operand(Role::Dest).halves();
    let loaded = if is_load(instr.op) { data(instr).halves() } else { 0..0 };
    let link = if matches!(instr.op, Op::CallImm | Op::CallReg) { LINK } else { 0..0 };
    [dest, loaded, link].into_iter().filter(|range| !range.is_empty())
}

/// The first half behind those that an instruction names.
pub fn end(instr: &Instr) -> u16 {
    reads(instr).chain(writes(instr)).map(|range| range.end).max().unwrap_or(0)
}

/// Is a register of this size at this half where the reference driver would put it?
pub fn is_aligned(half: u16, size: Size) -> bool {
    half.is_multiple_of(size.halves())
}
