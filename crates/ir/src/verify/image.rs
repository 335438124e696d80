//! The rules of image accesses.

use super::{match_types, resource};
use crate::image::{Component, Dim, ImageInfo};
use crate::module::*;
use crate::ops::Op;
use crate::sample::{Level, Lookup};
use crate::types::Type;

pub(super) fn image(m: &Module, res: Res) -> Result<(&Resource, ImageInfo), String> {
    let r = resource(m, res)?;
    match r.image {
        Some(info) => Ok((r, info)),
        None => Err(format!("{res} is not an image")),
    }
}

/// Accesses to images and questions about them.
pub(super) fn check(m: &Module, inst: &InstData, args: &[Type], results: &[Type]) -> Result<(), String> {
    const I: Type = Type::I32;
    let Imm::Image(imm) = inst.imm else { return Err("has the wrong kind of immediate".to_owned()) };
    let (r, info) = image(m, imm.res)?;
    if (imm.mask != 0) != (inst.op == Op::ImageLoad) {
        return Err(format!("mask {}", imm.mask));
    }
    if imm.atomic.is_some() != (inst.op == Op::ImageAtomic) {
        return Err("an atomic operation where none belongs".to_owned());
    }
    let plain = matches!(inst.op, Op::ImageLoad | Op::ImageSize) && !imm.lod;
    if info.multisampled && !(plain && r.kind == ResKind::Texture) {
        return Err("an access of this kind to a multisampled image".to_owned());
    }
    let mut want: Vec<Type> = vec![I; imm.element as usize];
    let access = !matches!(inst.op, Op::ImageSize | Op::ImageLevels);
    if access {
        want.extend(vec![I; info.coordinates()]);
    }
    want.extend(vec![I; imm.lod as usize]);
    let split = want.len().min(args.len());
    match_types("operand", &want, &args[..split])?;
    let data = &args[split..];
    let component = info.component.ty();
    let ty = if imm.form == TexelForm::Color { component } else { I };
    if inst.op != Op::ImageAtomic && inst.ty != if access { ty } else { I } {
        return Err(format!("has the type {} instead of {ty}", inst.ty));
    }
    if inst.op == Op::ImageStore || inst.op == Op::ImageAtomic {
        if r.kind != ResKind::Image || r.read_only {
            return Err(format!("{} is not written", imm.res));
        }
        if imm.lod {
            return Err("has a level of detail".to_owned());
        }
    }
    match inst.op {
        Op::ImageLoad => {
            let most = match imm.form {
                TexelForm::Color => 15,
                TexelForm::Halves => 3,
                TexelForm::Words => 0,
            };
            if imm.mask > most {
                return Err(format!("mask {} of a load", imm.mask));
            }
            match_types("operand", &[], data)?;
            match_types("result", &vec![ty; imm.mask.count_ones() as usize], results)
        }
        Op::ImageStore => {
            let count = match imm.form {
                TexelForm::Color => data.len().clamp(1, 4),
                TexelForm::Words => info.storage_format().words() as usize,
                TexelForm::Halves => return Err("a store of halves".to_owned()),
            };
            match_types("component", &vec![ty; count], data)?;
            match_types("result", &[], results)
        }
        Op::ImageAtomic => {
            let ty = inst.ty;
            let format = info.storage_format();
            if format.bits() != [32] || (ty != I && ty != component) || imm.form != TexelForm::Color {
                return Err(format!("atomic on a {ty} of an image of {}", format.name()));
            }
            let (count, allowed) = match imm.atomic {
                Some(AtomicOp::Load) => (0, true),
                Some(AtomicOp::CompareExchange) => (2, ty == I),
                Some(AtomicOp::Exchange | AtomicOp::Store) => (1, true),
                Some(op) if op.float().is_some() => (1, ty == Type::F32),
                _ => (1, ty == I),
            };
            if !allowed {
                return Err(format!("does not exist at type {ty}"));
            }
            match_types("data operand", &[ty, ty][..count], data)?;
            match_types("result", &[ty], results)
        }
        Op::ImageSize => {
            match_types("operand", &[], data)?;
            match_types("result", &vec![I; info.axes().len()], results)
        }
        _ => {
            match_types("operand", &[], data)?;
            if imm.lod {
                return Err("has a level of detail".to_owned());
            }
            match_types("result", &[I], results)
        }
    }
}

/// Lookups through samplers.
pub(super) fn check_sample(
    m: &Module,
    inst: &InstData,
    args: &[Type],
    results: &[Type],
) -> Result<(), String> {
    let Imm::Sample(imm) = inst.imm else { return Err("has the wrong kind of immediate".to_owned()) };
    let (r, info) = image(m, imm.res)?;
    if r.kind != ResKind::Texture || info.multisampled || info.dim == Dim::Buffer {
        return Err(format!("{} is not sampled", imm.res));
    }
    if let Some(s) = imm.sampler
        && resource(m, s)?.kind != ResKind::Sampler
    {
        return Err(format!("{s} is not a sampler"));
    }
    let implicit = matches!(imm.level, Level::Implicit | Level::Bias);
    if implicit != (inst.op == Op::SampleImplicit) {
        return Err("a level of detail of the other kind".to_owned());
    }
    let component = if imm.lookup == Lookup::Level { Type::F32 } else { info.component.ty() };
    if inst.ty != component {
        return Err(format!("has the type {} instead of {component}", inst.ty));
    }
    let count = imm.results();
    let compared =
        imm.dref && (imm.lookup == Lookup::Color && imm.mask != 1 || info.component != Component::F32);
    if imm.mask > 15 || count == 0 || compared {
        return Err(format!("mask {}", imm.mask));
    }
    if imm.machine && imm.level == Level::Gradient || !imm.machine && imm.level == Level::Base {
        return Err("a level of detail of the other form".to_owned());
    }
    let fits = imm.texels.iter().all(|t| (-8..8).contains(t));
    if !fits || imm.texels != [0; 3] && (imm.offset || !imm.machine) {
        return Err("an offset that does not fit the form".to_owned());
    }
    match_types("operand", &imm.operands(&info), args)?;
    match_types("result", &vec![component; count], results)
}
