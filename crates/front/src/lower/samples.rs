//! Lookups through samplers: sampling, gathering, asking for the level of detail.
//!
//! Coordinates of projective lookups are divided here. A lookup with a reference gives one component.
//!
//! Left out: minimum levels of detail, sparse residency.

use super::*;
use kempe_ir::sample::{Level, Lookup, SampleImm, coordinates};
use kempe_ir::{ImageInfo, Stage};

impl Lower<'_, '_> {
    pub(super) fn sample_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        use S::*;
        let explicit = matches!(
            op,
            ImageSampleExplicitLod
                | ImageSampleDrefExplicitLod
                | ImageSampleProjExplicitLod
                | ImageSampleProjDrefExplicitLod
        );
        let projective = matches!(
            op,
            ImageSampleProjImplicitLod
                | ImageSampleProjExplicitLod
                | ImageSampleProjDrefImplicitLod
                | ImageSampleProjDrefExplicitLod
        );
        let compared = matches!(
            op,
            ImageSampleDrefImplicitLod
                | ImageSampleDrefExplicitLod
                | ImageSampleProjDrefImplicitLod
                | ImageSampleProjDrefExplicitLod
                | ImageDrefGather
        );
        let gather = matches!(op, ImageGather | ImageDrefGather);
        let known = explicit || projective || compared || gather;
        if !known && !matches!(op, ImageSampleImplicitLod | ImageQueryLod) {
            return Ok(false);
        }
        let (ty, id) = self.result(i)?;
        let image = i.w(3)?;
        let (res, info, ty_of_image, _, element) = self.image_of(image)?;
        if ty_of_image.storage {
            return self.err("a lookup in a storage image");
        }
        let sampler = self.sampler_of(image)?;
        let pixels = ty_of_image.pixels;
        let mut imm = SampleImm { sampler: sampler.map(|s| s.0), pixels, ..SampleImm::new(res) };
        let mut args: SmallVec<[Value; 12]> = SmallVec::new();
        imm.element = element.is_some();
        args.extend(element);
        if let Some((_, Some(e))) = sampler {
            imm.sampler_element = true;
            args.push(e);
        }
        let mut place = self.place(i.w(4)?, &info, projective, op == ImageQueryLod)?;
        // What stands behind the coordinates: reference or component, then operands.
        let mut next = 5;
        let mut reference = None;
        if compared {
            reference = Some(self.f32_leaf(i.w(next)?)?);
            next += 1;
        } else if op == ImageGather {
            let component = self.p.int_const(i.w(next)?).filter(|c| (0..4).contains(c));
            let Some(c) = component else {
                return self.err("the component of a gather must be a constant 0 to 3");
            };
            imm.lookup = Lookup::Gather(c as u8);
            next += 1;
        }
        if op == ImageDrefGather {
            imm.lookup = Lookup::Gather(0);
        }
        if op == ImageQueryLod {
            imm.lookup = Lookup::Level;
        }
        if let Some(q) = place.divisor {
            for v in &mut place.at {
                *v = self.op(Op::Fdiv, Type::F32, &[*v, q])?;
            }
            if let Some(r) = &mut reference {
                *r = self.op(Op::Fdiv, Type::F32, &[*r, q])?;
            }
        }
        args.extend(place.at);
        args.extend(place.layer);
        imm.dref = compared;
        args.extend(reference);
        let operands = self.operands(i.rest(next))?;
        let own = coordinates(info.dim);
        // Outside of fragment shaders there are no neighbours: the first level.
        let quads = self.m.stage == Stage::Fragment;
        let zero = |l: &mut Self| l.konst(Type::F32, 0);
        match (operands.bias, operands.lod, operands.gradients) {
            (None, Some(lod), None) => {
                imm.level = Level::Explicit;
                let v = self.leaf(lod)?;
                let v = match self.ty_of(v) {
                    Type::F32 => v,
                    t if t.is_int() => self.op(Op::Sitof, Type::F32, &[v])?,
                    _ => return self.err("a level of detail must be a number of 32 bits"),
                };
                args.push(v);
            }
            (None, None, Some(gradients)) => {
                imm.level = Level::Gradient;
                for g in gradients {
                    let r = self.leaves(g)?;
                    let all = self.slice(r);
                    if all.len() < own || all.iter().any(|&v| self.ty_of(v) != Type::F32) {
                        return self.err("gradients do not fit the image");
                    }
                    args.extend(all.into_iter().take(own));
                }
            }
            (bias, None, None) if !explicit => {
                if gather || !quads {
                    imm.level = Level::Explicit;
                    let v = match bias {
                        Some(b) if !gather => self.f32_leaf(b)?,
                        _ => zero(self),
                    };
                    args.push(v);
                } else if let Some(b) = bias {
                    imm.level = Level::Bias;
                    let v = self.f32_leaf(b)?;
                    args.push(v);
                }
            }
            _ => return self.err("operands of a lookup that do not belong together"),
        }
        let mut offsets: SmallVec<[Value; 8]> = SmallVec::new();
        if let Some(offset) = operands.offset.or(operands.offsets) {
            imm.offset = true;
            let r = self.leaves(offset)?;
            offsets = self.slice(r);
            let need = if operands.offsets.is_some() { 4 * own } else { own };
            if offsets.len() < need || offsets.iter().any(|&v| self.ty_of(v) != Type::I32) {
                return self.err("the offset of a lookup must be 32-bit integers");
            }
            if operands.offsets.is_some() && (!gather || operands.offset.is_some()) {
                return self.err("only a gather has several offsets");
            }
        }
        let component = if imm.lookup == Lookup::Level { Type::F32 } else { info.component.ty() };
        let n = self.p.leaf_count(ty) as usize;
        imm.mask = if compared && !gather { 1 } else { 15 };
        if imm.lookup == Lookup::Color && !compared {
            imm.mask = (1u8 << n.min(4)) - 1;
        }
        if self.p.component(ty) != Some(component) || n != imm.results() {
            return self.err("the result of a lookup does not fit its image");
        }
        let implicit = matches!(imm.level, Level::Implicit | Level::Bias);
        let what = if implicit { Op::SampleImplicit } else { Op::Sample };
        let types = [component; 4];
        let mut out: SmallVec<[Value; 4]> = SmallVec::new();
        let before = args.len();
        if operands.offsets.is_some() {
            // Of each gather the texel that is not moved by one, which is the last result.
            for offset in offsets.chunks_exact(own).take(4) {
                args.truncate(before);
                args.extend_from_slice(offset);
                let inst = self.emit(what, component, Imm::Sample(imm), &args, &types[..n])?;
                out.extend(self.m.func.insts[inst].results.last().copied());
            }
        } else {
            args.extend(offsets.into_iter().take(own));
            let inst = self.emit(what, component, Imm::Sample(imm), &args, &types[..n])?;
            out.extend_from_slice(&self.m.func.insts[inst].results);
        }
        self.set_all(id, ty, &out)?;
        Ok(true)
    }

    fn f32_leaf(&mut self, id: u32) -> Res<Value> {
        let v = self.leaf(id)?;
        if self.ty_of(v) != Type::F32 {
            return self.err(format!("{} must be a 32-bit float", self.p.label(id)));
        }
        Ok(v)
    }

    fn place(&mut self, id: u32, info: &ImageInfo, projective: bool, without_layer: bool) -> Res<Place> {
        let r = self.leaves(id)?;
        let all = self.slice(r);
        let own = coordinates(info.dim);
        let need = own + (info.arrayed && !without_layer) as usize + projective as usize;
        if all.len() < need {
            return self.err(format!("{} coordinates instead of {need}", all.len()));
        }
        if all.iter().any(|&v| self.ty_of(v) != Type::F32) {
            return self.err("the coordinates of a lookup must be 32-bit floats");
        }
        let layer = match info.arrayed {
            true if without_layer => Some(self.konst(Type::F32, 0)),
            true => Some(all[own]),
            false => None,
        };
        Ok(Place {
            at: all.iter().copied().take(own).collect(),
            layer,
            divisor: projective.then(|| all[need - 1]),
        })
    }
}

/// Coordinates of a lookup.
struct Place {
    at: SmallVec<[Value; 3]>,
    layer: Option<Value>,
    divisor: Option<Value>,
}
