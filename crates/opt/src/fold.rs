//! Constant folding: pure operations on constants, and loads of constant data at constant addresses.
//!
//! What an operation computes is said by `kernel` and `eval` of `kempe_ir::eval`, the functions that the interpreter uses.

use kempe_ir::eval::eval;
use kempe_ir::*;
use smallvec::SmallVec;

pub fn run(m: &mut Module) -> bool {
    let mut changed = false;
    for at in 0..m.func.layout.len() {
        let b = m.func.layout[at];
        for n in 0..m.func.blocks[b].insts.len() {
            let i = m.func.blocks[b].insts[n];
            if let Some(bits) = fold_inst(&m.func, &m.func.insts[i]) {
                make_const(&mut m.func, i, bits);
                changed = true;
            }
        }
    }
    changed
}

/// The bits that an instruction with one result computes, when all its operands are constants.
pub fn fold_inst(f: &Function, d: &InstData) -> Option<u64> {
    if d.op == Op::Const || d.op.effect() != Effect::Pure || d.results.len() != 1 || d.args.is_empty() {
        return None;
    }
    let mut args: SmallVec<[u64; 4]> = SmallVec::new();
    for &a in &d.args {
        args.push(f.as_const(a)?);
    }
    eval(d.op, d.ty, f.ty(d.args[0]), d.imm, &args)
}

/// Turns an instruction with one result into a constant.
pub fn make_const(f: &mut Function, i: Inst, bits: u64) {
    let ty = f.ty(f.insts[i].results[0]);
    let d = &mut f.insts[i];
    d.op = Op::Const;
    d.ty = ty;
    d.flags = Flags::NONE;
    d.imm = Imm::Int(bits & ty.mask());
    d.args.clear();
}

/// Offset into the constant data of an address that is known to point there.
pub fn constant_offset(f: &Function, addr: Value) -> Option<u32> {
    let mut offset = 0u32;
    let mut at = addr;
    loop {
        let d = &f.insts[f.def_inst(at)?];
        match (d.op, d.imm) {
            (Op::Uniform, Imm::Uniform(UniformWord::ConstantAddr)) => return Some(offset),
            (Op::Lea, Imm::Lea(l)) => {
                let index = match d.args.get(1) {
                    Some(&i) => f.as_const(i)? as u32,
                    None => 0,
                };
                offset = kempe_ir::eval::lea(offset, index, l.scale, l.offset);
                at = d.args[0];
            }
            _ => return None,
        }
    }
}

/// A component of constant data in little-endian order.
pub fn constant_bits(data: &[u8], offset: u32, ty: Type) -> Option<u64> {
    let at = offset as usize;
    let bytes = data.get(at..at.checked_add(ty.bytes() as usize)?)?;
    let bits = bytes.iter().rev().fold(0u64, |acc, &b| acc << 8 | b as u64);
    Some(if ty == Type::Bool { (bits != 0) as u64 } else { bits })
}
