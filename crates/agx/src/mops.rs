//! Machine instructions before allocation: what `select` makes and `finish` expands.
//!
//! Nearly every one is an instruction of the machine with places for registers ([`place`]): a register operand names the
//! position of its value in the allocator's operand list. The others are the ends of blocks, whose form depends on where
//! blocks stand.
//!
//! In the operand list defs come first, then uses.

use crate::instr::{Instr, Number, Operand, Place, Role, Size};
use crate::ops::Op;
use std::fmt;

/// Which memory an access touches, for the order of loads after stores. A bit set.
pub mod class {
    /// Never written by the program.
    pub const READ_ONLY: u8 = 0;
    pub const DEVICE: u8 = 1;
    pub const SHARED: u8 = 2;
    pub const PRIVATE: u8 = 4;
}

/// One machine instruction before allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MInst {
    /// An instruction as it is, and the class of memory that it touches.
    Plain(Instr, u8),
    /// Two instructions that write a half of the result each: between them its other half holds nothing, so nothing may come
    /// between. The result is written before the second one reads.
    Halves([Instr; 2]),
    /// Terminator: lanes where the comparison holds go to successor 0, the others to successor 1. The instruction is an
    /// `if`.
    Branch(Instr),
    /// Terminator: to the only successor.
    Jump,
    /// Terminator: end of the program.
    End,
}

/// A place for the register of operand number `index`, or half `high` of it.
pub fn place(index: usize, size: Size, high: bool) -> Operand {
    Operand::reg(2 * index as u16 + u16::from(high), size)
}

/// Places for the registers of the vector that begins with operand number `index`.
pub fn vector(index: usize, size: Size, count: usize) -> Operand {
    Operand::vector(2 * index as u16, size, count as u8)
}

/// A number in a register of 32 bits (the shorter form writes halves only).
pub fn mov_imm(dest: Operand, value: u32) -> Instr {
    Instr::new(Op::MovImm32).with(Role::Dest, dest).set(Number::Value, value)
}

/// The instruction with registers in the places: `register` says which one an operand has.
pub fn fill(instr: &Instr, register: impl Fn(usize) -> u16) -> Instr {
    let mut out = *instr;
    for (role, _, operand) in instr.operands() {
        if is_mask_counter(instr, role) {
            continue;
        }
        if let Place::Reg { half, size, count } = operand.place {
            let half = 2 * register(usize::from(half / 2)) + half % 2;
            out.put(role, Operand { place: Place::Reg { half, size, count }, ..operand });
        }
    }
    out
}

fn is_mask_counter(instr: &Instr, role: Role) -> bool {
    instr.operands().any(|(r, kind, _)| r == role && kind == crate::tables::Kind::MaskCounter)
}

/// Does it ask memory and go on?
pub fn is_asynchronous(op: Op) -> bool {
    matches!(
        op,
        Op::DeviceLoad
            | Op::DeviceStore
            | Op::DeviceLoadControl
            | Op::DeviceStoreControl
            | Op::StackLoad
            | Op::StackStore
            | Op::Atomic
    )
}

/// Cycles of an access to a buffer or the stack in the order before allocation (reference section 13 has none; the public
/// driver counts 10 operations where it decides on skipping).
const LOAD_LATENCY: u32 = 20;

impl kempe_mir::order::Schedule for MInst {
    fn latency(&self) -> u32 {
        match self {
            MInst::Plain(i, _)
                if matches!(i.op, Op::DeviceLoad | Op::DeviceLoadControl | Op::StackLoad | Op::Atomic) =>
            {
                LOAD_LATENCY
            }
            MInst::Plain(i, _) | MInst::Halves([_, i]) => u32::from(i.op.info().cost.latency).max(1),
            _ => 1,
        }
    }

    fn memory(&self) -> kempe_mir::order::Memory {
        use kempe_mir::order::Memory;
        let MInst::Plain(i, class) = *self else { return Memory::None };
        match i.op {
            Op::ThreadgroupBarrier | Op::MemoryBarrier => Memory::Fence,
            Op::DeviceStore
            | Op::DeviceStoreControl
            | Op::StackStore
            | Op::ThreadgroupStore
            | Op::Atomic
            | Op::ThreadgroupAtomic => Memory::Write(class),
            _ if class == class::READ_ONLY => Memory::None,
            _ => Memory::Read(class),
        }
    }

    fn pinned(&self) -> bool {
        !matches!(self, MInst::Plain(..) | MInst::Halves(_))
    }

    fn is_cheap(&self) -> bool {
        match self {
            MInst::Plain(i, _) => {
                matches!(i.op, Op::MovImm16 | Op::MovImm32)
                    || i.op == Op::Bitop
                        && i.operands().all(|(role, _, o)| role == Role::Dest || o.as_reg().is_none())
            }
            _ => false,
        }
    }
}

impl fmt::Display for MInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, instr) = match self {
            MInst::Plain(i, _) => (i.op.info().name, i),
            MInst::Halves([low, _]) => ("halves", low),
            MInst::Branch(i) => ("branch", i),
            MInst::Jump => return f.write_str("jump"),
            MInst::End => return f.write_str("end"),
        };
        f.write_str(name)?;
        for (role, _, operand) in instr.operands() {
            if is_mask_counter(instr, role) {
                continue;
            }
            match operand.place {
                Place::None => {}
                Place::Reg { half, count, .. } => {
                    let part = if half % 2 == 1 { ".h" } else { "" };
                    let many = if count > 1 { format!("x{count}") } else { String::new() };
                    let neg = if operand.neg { "-" } else { "" };
                    write!(f, " {neg}#{}{part}{many}", half / 2)?;
                }
                Place::Uniform { half, size, .. } => {
                    let wide = if size == Size::B64 { "x2" } else { "" };
                    write!(f, " u{}{wide}", half / 2)?;
                }
                Place::Imm(v) => write!(f, " {v}")?,
                Place::Float(v) => write!(f, " f{v:#x}")?,
                other => write!(f, " {other:?}")?,
            }
        }
        for number in [Number::Condition, Number::Shift, Number::Table, Number::Value, Number::Mask] {
            if instr.has(number) {
                write!(f, " {number:?}={}", instr.get(number))?;
            }
        }
        Ok(())
    }
}
