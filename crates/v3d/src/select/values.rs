//! What is true of single values, whatever block they are used in.

use super::prepare::Prepared;
use crate::instr::Op as MOp;
use crate::lower::stages::start;
use kempe_ir::{Builtin, Imm, InstData, MemImm, Op, Stage, Type, UniformWord, Value};

/// A value that is made again wherever it is needed, from nothing but constants and the uniform stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Remade {
    Const(u32),
    /// A word of the driver plus a constant.
    Word(UniformWord, u32),
    /// The word of memory that never changes at that address.
    Read(UniformWord, u32),
    LaneId,
    ThreadId,
    /// A start word of a fragment program that is asked for by an operation of its own.
    Start(u8),
}

/// How to make a root again, if it is that simple.
pub(super) fn remade(p: &Prepared, root: Value) -> Option<Remade> {
    if let Some(c) = p.constant(root) {
        return Some(Remade::Const(c));
    }
    let d = p.inst_of(root)?;
    match (d.op, d.imm) {
        (Op::Undef, _) => Some(Remade::Const(0)),
        (Op::Payload, Imm::Int(n)) if p.stage == Stage::Fragment && start_op(n).is_some() => {
            Some(Remade::Start(n as u8))
        }
        (Op::Uniform, Imm::Uniform(w)) => Some(Remade::Word(w, 0)),
        (Op::Builtin, Imm::Builtin(Builtin::LaneId)) => Some(Remade::LaneId),
        (Op::Builtin, Imm::Builtin(Builtin::ThreadId)) => Some(Remade::ThreadId),
        // One level is enough: chains are folded before.
        (Op::Iadd, _) => {
            let [a, b] = d.args.as_slice() else { return None };
            let (a, b) = (p.root(*a), p.root(*b));
            let (word, c) = match (p.constant(a), p.constant(b)) {
                (None, Some(c)) => (a, c),
                (Some(c), None) => (b, c),
                _ => return None,
            };
            match p.inst_of(word).map(|d| (d.op, d.imm)) {
                Some((Op::Uniform, Imm::Uniform(w))) => Some(Remade::Word(w, c)),
                _ => None,
            }
        }
        _ => None,
    }
}

pub(super) fn is_remade(p: &Prepared, root: Value) -> bool {
    remade(p, root).is_some()
}

/// The operation that gives a start word of a fragment program, if it does not stand in a row and never changes.
pub(super) fn start_op(n: u64) -> Option<MOp> {
    Some(match n {
        start::X => MOp::Fxcd,
        n if n == start::X + 1 => MOp::Fycd,
        start::FACING => MOp::Revf,
        start::SAMPLE => MOp::Sampid,
        _ => return None,
    })
}

/// An address that the driver gives: it may be read from whether or not any lane wants it.
pub(super) fn is_fixed_address(p: &Prepared, root: Value) -> bool {
    matches!(remade(p, root), Some(Remade::Word(..)))
}

/// An address as base and constant offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Word(UniformWord),
    Value(Value),
}

pub(super) fn address(p: &Prepared, root: Value) -> (Base, u32) {
    if let Some(Remade::Word(w, c)) = remade(p, root) {
        return (Base::Word(w), c);
    }
    if let Some(d) = p.inst_of(root)
        && let (Op::Iadd, [a, b]) = (d.op, d.args.as_slice())
    {
        let (a, b) = (p.root(*a), p.root(*b));
        if let Some(c) = p.constant(b) {
            return (Base::Value(a), c);
        }
        if let Some(c) = p.constant(a) {
            return (Base::Value(b), c);
        }
    }
    (Base::Value(root), 0)
}

/// Whether the side band may read this load when its address is the same in all lanes: words that nothing in the
/// program writes (its cache does not see writes of the same program, reference section 11). Gives the base.
pub(super) fn side_band(p: &Prepared, d: &InstData, mem: MemImm) -> Option<(Base, u32)> {
    let words = matches!(d.ty, Type::I32 | Type::F32) && mem.align >= 4;
    let constant = mem.read_only || mem.space.is_read_only();
    if !(words && constant) || mem.volatile {
        return None;
    }
    Some(address(p, p.root(*d.args.first()?)))
}

/// Operations that are made at their use, because they often disappear into it.
pub(super) fn may_be_lazy(d: &InstData, used_once: bool) -> bool {
    d.op.is_compare()
        || matches!(d.op, Op::Fneg | Op::Fabs | Op::UnpackHalfLo | Op::UnpackHalfHi)
        || (d.op == Op::Not && d.ty == Type::Bool)
        || (matches!(d.op, Op::And | Op::Or) && d.ty == Type::Bool && used_once)
}

/// The number of a payload word, which stands in a register from the start of the program on.
pub(super) fn payload(p: &Prepared, root: Value) -> Option<u64> {
    match p.inst_of(root)? {
        InstData { op: Op::Payload, imm: Imm::Int(n), .. } => {
            (p.stage != Stage::Fragment || start_op(*n).is_none()).then_some(*n)
        }
        _ => None,
    }
}
