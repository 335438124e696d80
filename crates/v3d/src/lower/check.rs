//! The lowered form, stated so that it can be asked for.

use kempe_ir::{AtomicOp, Builtin, Imm, Module, Op, Stage, TexelForm, Type};

/// `Ok` when the module is in lowered form: see the head of [`super`].
pub fn check(m: &Module) -> Result<(), String> {
    let f = &m.func;
    let word = |ty: Type| matches!(ty, Type::Bool | Type::I32 | Type::F32);
    for &b in &f.layout {
        for &p in &f.blocks[b].params {
            if !word(f.ty(p)) {
                return Err(format!("parameter {p} of {b} is {}", f.ty(p)));
            }
        }
        for &i in &f.blocks[b].insts {
            let inst = &f.insts[i];
            let args: Vec<Type> = inst.args.iter().map(|&a| f.ty(a)).collect();
            let results: Vec<Type> = inst.results.iter().map(|&r| f.ty(r)).collect();
            let bad = |what: &str| Err(format!("{i} in {b}: `{}` {what}", inst.op.name()));
            if !args.iter().chain(&results).all(|&t| word(t)) {
                return bad("has a value that is no word");
            }
            let ty = inst.ty;
            let ok = match inst.op {
                Op::Const | Op::Undef | Op::Select => word(ty),
                Op::Iadd
                | Op::Isub
                | Op::Ineg
                | Op::Imul
                | Op::Umul24
                | Op::Shl
                | Op::Lshr
                | Op::Ashr
                | Op::Smin
                | Op::Smax
                | Op::Umin
                | Op::Umax
                | Op::Clz
                | Op::PackHalf
                | Op::Ieq
                | Op::Ine
                | Op::Slt
                | Op::Sle
                | Op::Ult
                | Op::Ule
                | Op::Ftosi
                | Op::Ftoui => ty == Type::I32,
                Op::And | Op::Or | Op::Xor | Op::Not => matches!(ty, Type::I32 | Type::Bool),
                Op::Fadd
                | Op::Fsub
                | Op::Fmul
                | Op::Fneg
                | Op::Fabs
                | Op::Fmin
                | Op::Fmax
                | Op::Ffloor
                | Op::Fceil
                | Op::Ftrunc
                | Op::Fround
                | Op::RcpApprox
                | Op::RsqrtApprox
                | Op::Exp2Approx
                | Op::Log2Approx
                | Op::SinpiApprox
                | Op::Feq
                | Op::Fne
                | Op::Flt
                | Op::Fle
                | Op::UnpackHalfLo
                | Op::UnpackHalfHi => ty == Type::F32,
                Op::Sitof | Op::Uitof => ty == Type::F32 && args[..] == [Type::I32],
                Op::Bitcast => {
                    matches!((ty, &args[..]), (Type::I32, [Type::F32]) | (Type::F32, [Type::I32]))
                }
                Op::Load | Op::Store => {
                    let Imm::Mem(mem) = inst.imm else { return bad("has no memory immediate") };
                    let moved = if inst.op == Op::Load { &results[..] } else { args.get(1..).unwrap_or(&[]) };
                    let value = if ty == Type::F32 { Type::F32 } else { Type::I32 };
                    let most = match ty {
                        Type::I32 | Type::F32 => 4,
                        Type::I8 | Type::I16 => 1,
                        _ => 0,
                    };
                    args.first() == Some(&Type::I32)
                        && (1..=most).contains(&mem.count)
                        && moved.len() == mem.count as usize
                        && moved.iter().all(|&t| t == value)
                }
                Op::Atomic => ty == Type::I32 && args.iter().all(|&t| t == Type::I32),
                Op::ImageLoad | Op::ImageStore | Op::ImageAtomic => {
                    let Imm::Image(imm) = inst.imm else { return bad("has no image immediate") };
                    let element = !imm.element || inst.args.first().is_some_and(|&a| f.as_const(a).is_some());
                    let form = match (inst.op, imm.form) {
                        (Op::ImageStore, form) => form == TexelForm::Words,
                        (_, form) => form != TexelForm::Words,
                    };
                    let atomic = imm.atomic.is_none_or(|op| {
                        op.float().is_none() && !matches!(op, AtomicOp::Load | AtomicOp::Store)
                    });
                    let words = inst.op == Op::ImageLoad || ty == Type::I32;
                    element && form && atomic && words
                }
                Op::Sample | Op::SampleImplicit => {
                    let Imm::Sample(imm) = inst.imm else { return bad("has no immediate of a lookup") };
                    let elements = imm.element as usize + imm.sampler_element as usize;
                    imm.machine
                        && inst.args.iter().take(elements).all(|&a| f.as_const(a).is_some())
                        && (inst.op == Op::Sample || m.stage == Stage::Fragment)
                }
                Op::Ballot => ty == Type::I32 && args[..] == [Type::Bool],
                Op::Shuffle => matches!(ty, Type::I32 | Type::F32) && args.get(1) == Some(&Type::I32),
                // Steps over all lanes need every lane to exist.
                Op::Reduce => matches!(ty, Type::I32 | Type::F32) && m.workgroup_items().is_multiple_of(16),
                Op::Barrier | Op::Fence | Op::Uniform | Op::Payload => true,
                Op::Builtin => matches!(
                    inst.imm,
                    Imm::Builtin(
                        Builtin::LaneId | Builtin::ThreadId | Builtin::PointCoord(_) | Builtin::PrimitiveId
                    )
                ),
                Op::Input | Op::Output | Op::ReadOutput => matches!(ty, Type::I32 | Type::F32),
                Op::Demote | Op::IsHelper => true,
                Op::Ddx | Op::Ddy => ty == Type::F32,
                _ => false,
            };
            if !ok {
                return bad(&format!("of type {ty} is not in lowered form"));
            }
        }
    }
    Ok(())
}
