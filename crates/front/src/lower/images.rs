//! Images: handles, texel loads and stores, atomics, questions about sizes.
//!
//! A value of an image type is a [`Handle`]: the resource, and the element of an array of resources once an index has
//! chosen one. Loading the variable, combining it with a sampler and taking the image out again all keep the handle.
//!
//! Lookups through samplers are in `samples.rs`.
//!
//! Left out: minimum level of detail, sparse residency.

use super::variables::Array;
use super::*;
use crate::arith::resize;
use crate::parse::ImageTy;
use kempe_ir::image::{Component, Dim};
use kempe_ir::{AtomicOp, ImageImm, ImageInfo, ResKind, Resource};

/// Image operands (SPIR-V 3.14), lowest bit first, with the number of ids that each takes.
const OPERANDS: [(u32, usize, &str); 15] = [
    (BIAS, 1, "a bias"),
    (LOD, 1, "a level of detail"),
    (GRADIENTS, 2, "gradients"),
    (CONST_OFFSET, 1, "an offset"),
    (OFFSET, 1, "an offset"),
    (CONST_OFFSETS, 1, "offsets"),
    (SAMPLE, 1, "a sample"),
    (0x80, 1, "a least level of detail"),
    (AVAILABLE, 1, ""),
    (VISIBLE, 1, ""),
    (0x400, 0, ""),
    (VOLATILE, 0, ""),
    (0x1000, 0, ""),
    (0x2000, 0, ""),
    (0x4000, 0, ""),
];
const BIAS: u32 = 1;
const LOD: u32 = 2;
const GRADIENTS: u32 = 4;
const CONST_OFFSET: u32 = 8;
const OFFSET: u32 = 0x10;
const CONST_OFFSETS: u32 = 0x20;
const SAMPLE: u32 = 0x40;
const AVAILABLE: u32 = 0x100;
const VISIBLE: u32 = 0x200;
const VOLATILE: u32 = 0x800;

/// Samples in a pixel of a multisampled image: there are no others than these four.
const SAMPLES: u32 = 4;

/// What a value of an image type stands for.
#[derive(Clone, Debug)]
pub struct Handle {
    what: What,
    /// Of an array of resources, once an index has chosen it.
    element: Option<Value>,
    /// Lengths of the arrays around it that have no index yet, outermost first (0: none).
    arrays: SmallVec<[u32; 2]>,
    /// A pointer to a texel: its coordinates.
    texel: Option<SmallVec<[Value; 4]>>,
    /// The sampler that an image was combined with, and its element.
    pub(super) sampler: Option<(ir::Res, Option<Value>)>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Image { res: ir::Res, ty: ImageTy, volatile: bool },
    Sampler { res: ir::Res },
}

/// Optional operands of an access.
#[derive(Default)]
pub(super) struct Operands {
    pub bias: Option<u32>,
    pub lod: Option<u32>,
    pub gradients: Option<[u32; 2]>,
    pub offset: Option<u32>,
    /// One offset for each result of a gather.
    pub offsets: Option<u32>,
    sample: Option<u32>,
    volatile: bool,
}

impl Lower<'_, '_> {
    /// A variable of an image type (perhaps of an array of them), if it is one.
    pub(super) fn image_global(&mut self, g: u32) -> Res<Option<u32>> {
        let global = self.p.globals[g as usize];
        if global.class != spirv::StorageClass::UniformConstant as u32 {
            return Ok(None);
        }
        let p = self.p;
        let Array { inner: ty, types, elements } = self.array_of_resources(global.ty)?;
        let image = match p.ty(ty) {
            Ty::Image { image } | Ty::SampledImage { image } => Some(p.images[image as usize]),
            Ty::Sampler => None,
            _ => return Ok(None),
        };
        let facts = p.facts[global.id as usize];
        let (kind, info) = match &image {
            None => (ResKind::Sampler, None),
            Some(ty) => (if ty.storage { ResKind::Image } else { ResKind::Texture }, Some(self.usable(ty)?)),
        };
        let res = self.m.resources.push(Resource {
            kind,
            set: number(p, global.id, Numbered::Set).unwrap_or(0),
            binding: number(p, global.id, Numbered::Binding).unwrap_or(0),
            elements: elements.unwrap_or(1),
            size: 0,
            tail_stride: 0,
            name: p.name(global.id).unwrap_or_default(),
            read_only: kind != ResKind::Image || facts & fact::NON_WRITABLE != 0,
            image: info,
        });
        let what = match image {
            None => What::Sampler { res },
            Some(ty) => What::Image { res, ty, volatile: facts & fact::VOLATILE != 0 },
        };
        let arrays = types.iter().map(|t| t.1).collect();
        self.push_handle(Handle { what, element: None, arrays, texel: None, sampler: None }).map(Some)
    }

    fn usable(&self, ty: &ImageTy) -> Res<ImageInfo> {
        match ty.info {
            Ok(info) if info.multisampled && ty.storage => self.refuse(
                "multisampled storage images are not supported: the hardware writes single texels",
                "use a buffer, or an image for each sample",
            ),
            Ok(info) if info.multisampled && info.dim != Dim::D2 => {
                self.err("a multisampled image that is not flat")
            }
            Ok(info) => Ok(info),
            Err(what) => self.err(format!("{what} are not supported yet")),
        }
    }

    fn push_handle(&mut self, h: Handle) -> Res<u32> {
        if self.handles.len() >= MAX_POOL {
            return self.err("the values of this shader are too many");
        }
        self.handles.push(h);
        Ok(self.handles.len() as u32 - 1)
    }

    fn set_handle(&mut self, id: u32, ty: TyId, start: u32) {
        self.vals[id as usize] = Val { epoch: self.epoch, ty, start, len: IS_IMAGE };
    }

    /// The handle that an id is, if it is one.
    fn handle(&mut self, id: u32) -> Res<Option<u32>> {
        let v = self.val(id)?;
        Ok((v.len == IS_IMAGE).then_some(v.start))
    }

    /// The sampler that an image was combined with.
    pub(super) fn sampler_of(&mut self, id: u32) -> Res<Option<(ir::Res, Option<Value>)>> {
        Ok(self.handle(id)?.and_then(|h| self.handles[h as usize].sampler))
    }

    /// The image that an id is, chosen from its array.
    pub(super) fn image_of(&mut self, id: u32) -> Res<(ir::Res, ImageInfo, ImageTy, bool, Option<Value>)> {
        let Some(h) = self.handle(id)? else {
            return self.err(format!("{} must be an image", self.p.label(id)));
        };
        let h = &self.handles[h as usize];
        let (What::Image { res, ty, volatile }, None, true) = (h.what, &h.texel, h.arrays.is_empty()) else {
            return self.err(format!("{} must be an image", self.p.label(id)));
        };
        Ok((res, self.usable(&ty)?, ty, volatile, h.element))
    }

    /// A pointer to a texel, if an id is one.
    pub(super) fn texel_pointer(&mut self, id: u32) -> Res<Option<u32>> {
        Ok(self.handle(id)?.filter(|&h| self.handles[h as usize].texel.is_some()))
    }

    pub(super) fn image_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        match op {
            S::Load | S::CopyObject => {
                // Types and labels are no values: whoever comes next says so.
                let Some(h) = self.known_handle(i.w(3)?)? else { return Ok(false) };
                let (ty, id) = self.result(i)?;
                if self.handles[h as usize].texel.is_some() {
                    return self.err("a plain load of a texel");
                }
                self.set_handle(id, ty, h);
            }
            S::AccessChain | S::InBoundsAccessChain => {
                let Some(h) = self.known_handle(i.w(3)?)? else { return Ok(false) };
                let (ty, id) = self.result(i)?;
                let mut h = self.handles[h as usize].clone();
                let indexes = i.rest(4);
                if indexes.len() > h.arrays.len() {
                    return self.err("an access chain into something that has no parts");
                }
                for (&k, n) in indexes.iter().zip(h.arrays.clone()) {
                    let v = self.word_index(k)?;
                    h.element = Some(match h.element {
                        Some(outer) => self.element_of(outer, n, v)?,
                        None => v,
                    });
                }
                h.arrays.drain(..indexes.len());
                let h = self.push_handle(h)?;
                self.set_handle(id, ty, h);
            }
            S::SampledImage | S::Image => {
                let (ty, id) = self.result(i)?;
                let Some(mut h) = self.handle(i.w(3)?)? else {
                    return self.err(format!("{} must be an image", self.p.label(i.w(3)?)));
                };
                if op == S::SampledImage {
                    let sampler = self.handle(i.w(4)?)?.map(|s| self.handles[s as usize].clone());
                    let sampler = sampler.filter(|s| s.arrays.is_empty());
                    let Some(Handle { what: What::Sampler { res }, element, .. }) = sampler else {
                        return self.err(format!("{} must be a sampler", self.p.label(i.w(4)?)));
                    };
                    let combined =
                        Handle { sampler: Some((res, element)), ..self.handles[h as usize].clone() };
                    h = self.push_handle(combined)?;
                }
                self.set_handle(id, ty, h);
            }
            S::ImageTexelPointer => {
                let (ty, id) = self.result(i)?;
                let (_, info, _, _, _) = self.image_of(i.w(3)?)?;
                let coordinates = self.coordinates(i.w(4)?, &info)?;
                let Some(h) = self.handle(i.w(3)?)? else { return self.err("a texel of no image") };
                let h = Handle { texel: Some(coordinates), ..self.handles[h as usize].clone() };
                let h = self.push_handle(h)?;
                self.set_handle(id, ty, h);
            }
            S::ImageRead | S::ImageFetch => self.image_load(i, op)?,
            S::ImageWrite => self.image_store(i)?,
            S::ImageQuerySize | S::ImageQuerySizeLod => {
                let (ty, id) = self.result(i)?;
                let (res, info, _, _, element) = self.image_of(i.w(3)?)?;
                let lod = if op == S::ImageQuerySizeLod { Some(self.level(i.w(4)?)?) } else { None };
                let lod = lod.filter(|v| self.m.func.as_const(*v) != Some(0));
                let args: SmallVec<[Value; 2]> = element.into_iter().chain(lod).collect();
                let imm = ImageImm { element: element.is_some(), lod: lod.is_some(), ..ImageImm::new(res) };
                let types = [Type::I32; 3];
                let n = info.axes().len();
                let q = self.emit(Op::ImageSize, Type::I32, Imm::Image(imm), &args, &types[..n])?;
                let mut sizes: SmallVec<[Value; 3]> = SmallVec::from_slice(&self.m.func.insts[q].results);
                if info.multisampled {
                    let one = self.i32(1);
                    for v in sizes.iter_mut().take(2) {
                        *v = self.op(Op::Lshr, Type::I32, &[*v, one])?;
                    }
                }
                self.set_integers(id, ty, &sizes)?;
            }
            S::ImageQueryLevels => {
                let (ty, id) = self.result(i)?;
                let (res, _, _, _, element) = self.image_of(i.w(3)?)?;
                let imm = ImageImm { element: element.is_some(), ..ImageImm::new(res) };
                let q =
                    self.emit(Op::ImageLevels, Type::I32, Imm::Image(imm), element.as_slice(), &[Type::I32])?;
                let levels: SmallVec<[Value; 1]> = self.m.func.insts[q].results.clone();
                self.set_integers(id, ty, &levels)?;
            }
            S::ImageQuerySamples => {
                let (ty, id) = self.result(i)?;
                let (_, info, ..) = self.image_of(i.w(3)?)?;
                let samples = self.i32(if info.multisampled { SAMPLES } else { 1 });
                self.set_integers(id, ty, &[samples])?;
            }
            _ => return self.sample_inst(i, op),
        }
        Ok(true)
    }

    /// As [`Lower::handle`], for ids that may be anything.
    fn known_handle(&mut self, id: u32) -> Res<Option<u32>> {
        match self.p.def(id) {
            Def::Global(_) | Def::Local(_) => self.handle(id),
            _ => Ok(None),
        }
    }

    /// Results of a query as values of the type that the program wants.
    fn set_integers(&mut self, id: u32, ty: TyId, values: &[Value]) -> Res<()> {
        let Some(want) = self.p.component(ty).filter(|t| t.is_int()) else {
            return self.err("the size of an image must be integers");
        };
        let mut out: SmallVec<[Value; 3]> = SmallVec::new();
        for &v in values {
            out.push(resize(self, (Type::I32, v), want, true)?);
        }
        self.set_all(id, ty, &out)
    }

    /// A level of detail as an i32.
    fn level(&mut self, id: u32) -> Res<Value> {
        let v = self.leaf(id)?;
        match self.ty_of(v) {
            t if t.is_int() => resize(self, (t, v), Type::I32, true),
            _ => self.err("the level of detail of a texel must be an integer"),
        }
    }

    fn coordinates(&mut self, id: u32, info: &ImageInfo) -> Res<SmallVec<[Value; 4]>> {
        let r = self.leaves(id)?;
        let ty = self.type_of(id)?;
        let scalar = match self.p.ty(ty) {
            Ty::Vector { elem, .. } => self.p.ty(elem),
            t => t,
        };
        let Ty::Int { signed, .. } = scalar else {
            return self.err("the coordinates of a texel must be integers");
        };
        let need = info.coordinates();
        if (r.len as usize) < need {
            return self.err(format!("{} coordinates instead of {need}", r.len));
        }
        let mut out = SmallVec::new();
        for v in self.slice(r).into_iter().take(need) {
            let from = self.ty_of(v);
            out.push(resize(self, (from, v), Type::I32, signed)?);
        }
        Ok(out)
    }

    pub(super) fn operands(&mut self, words: &[u32]) -> Res<Operands> {
        let mut out = Operands::default();
        let Some((&mask, mut rest)) = words.split_first() else { return Ok(out) };
        let mut left = mask;
        for (bit, count, what) in OPERANDS {
            if mask & bit == 0 {
                continue;
            }
            left &= !bit;
            let Some((ids, more)) = rest.split_at_checked(count) else {
                return self.err("an operand of an image access is missing");
            };
            rest = more;
            match bit {
                BIAS => out.bias = Some(ids[0]),
                GRADIENTS => out.gradients = Some([ids[0], ids[1]]),
                LOD => out.lod = Some(ids[0]),
                CONST_OFFSET | OFFSET => out.offset = Some(ids[0]),
                CONST_OFFSETS => out.offsets = Some(ids[0]),
                SAMPLE => out.sample = Some(ids[0]),
                VOLATILE => out.volatile = true,
                _ if what.is_empty() => {}
                _ => {
                    return self.refuse(
                        format!("{what} at an image access is not supported: the texture unit takes none"),
                        "set the least level of the sampler",
                    );
                }
            }
        }
        if left != 0 {
            return self.err("an unknown operand of an image access");
        }
        Ok(out)
    }

    fn image_load(&mut self, i: &Inst, op: S) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let (res, info, image, volatile, element) = self.image_of(i.w(3)?)?;
        let operands = self.operands(i.rest(5))?;
        if (image.storage || image.subpass) != (op == S::ImageRead) {
            return self.err("an image of the other kind: storage images are read, others fetched");
        }
        let mut coordinates = self.coordinates(i.w(4)?, &info)?;
        if image.subpass {
            // As seen from the fragment.
            if self.m.stage != ir::Stage::Fragment {
                return self.err("only fragment shaders read attachments");
            }
            for (axis, v) in coordinates.iter_mut().enumerate().take(2) {
                let at = self.builtin(ir::Builtin::FragCoord(axis as u8));
                let at = self.op(Op::Ftosi, Type::I32, &[at])?;
                *v = self.op(Op::Iadd, Type::I32, &[at, *v])?;
            }
        }
        if let Some(offset) = operands.offset {
            let r = self.leaves(offset)?;
            for (k, v) in self.slice(r).into_iter().enumerate().take(coordinates.len()) {
                if self.ty_of(v) != Type::I32 {
                    return self.err("the offset of a texel must be 32-bit integers");
                }
                coordinates[k] = self.op(Op::Iadd, Type::I32, &[coordinates[k], v])?;
            }
        }
        let lod = match operands.lod {
            Some(l) => Some(self.level(l)?).filter(|v| self.m.func.as_const(*v) != Some(0)),
            None => None,
        };
        if info.multisampled {
            let Some(sample) = operands.sample else {
                return self.err("a texel of a multisampled image without a sample");
            };
            // The samples of a pixel are a square of texels.
            let sample = self.level(sample)?;
            let one = self.i32(1);
            for (k, v) in coordinates.iter_mut().enumerate().take(2) {
                let place = if k == 0 { sample } else { self.op(Op::Lshr, Type::I32, &[sample, one])? };
                let place = self.op(Op::And, Type::I32, &[place, one])?;
                let first = self.op(Op::Shl, Type::I32, &[*v, one])?;
                *v = self.op(Op::Iadd, Type::I32, &[first, place])?;
            }
        } else if operands.sample.is_some() {
            return self.err("a sample of an image that is not multisampled");
        }
        let component = info.component.ty();
        let n = self.p.leaf_count(ty) as usize;
        if self.p.component(ty) != Some(component) || n > 4 {
            return self.err("the type of a texel does not fit its image");
        }
        let args: SmallVec<[Value; 6]> = element.into_iter().chain(coordinates).chain(lod).collect();
        let imm = ImageImm {
            mask: (1 << n) - 1,
            element: element.is_some(),
            lod: lod.is_some(),
            volatile: volatile || operands.volatile,
            ..ImageImm::new(res)
        };
        let types = [component; 4];
        let load = self.emit(Op::ImageLoad, component, Imm::Image(imm), &args, &types[..n])?;
        let out: SmallVec<[Value; 4]> = self.m.func.insts[load].results.iter().copied().collect();
        self.set_all(id, ty, &out)
    }

    fn image_store(&mut self, i: &Inst) -> Res<()> {
        let (res, info, _, volatile, element) = self.image_of(i.w(1)?)?;
        if self.m.resources[res].read_only {
            return self.err("a store to an image that can only be read");
        }
        let operands = self.operands(i.rest(4))?;
        if operands.lod.is_some() || operands.offset.is_some() {
            return self.refuse(
                "a store to a level of detail or with an offset is not supported: the hardware writes the first level",
                "bind the level as an image of its own",
            );
        }
        let coordinates = self.coordinates(i.w(2)?, &info)?;
        let r = self.leaves(i.w(3)?)?;
        let mut data: SmallVec<[Value; 4]> = self.slice(r).into_iter().take(4).collect();
        let component = info.component.ty();
        if data.is_empty() || data.iter().any(|&v| self.ty_of(v) != component) {
            return self.err("the type of a texel does not fit its image");
        }
        let have = info.storage_format().bits().len();
        if data.len() < have && info.format.is_some() {
            return self.err(format!("a texel of {} components where the image has {have}", data.len()));
        }
        while data.len() < 4 {
            let zero = self.konst(component, 0);
            data.push(zero);
        }
        let args: SmallVec<[Value; 8]> = element.into_iter().chain(coordinates).chain(data).collect();
        let imm = ImageImm {
            element: element.is_some(),
            volatile: volatile || operands.volatile,
            ..ImageImm::new(res)
        };
        self.emit(Op::ImageStore, component, Imm::Image(imm), &args, &[])?;
        Ok(())
    }

    /// An atomic operation on a texel; returns the old value, of the type `ty`.
    pub(super) fn image_atomic(&mut self, h: u32, what: AtomicOp, ty: Type, data: &[Value]) -> Res<Value> {
        let h = self.handles[h as usize].clone();
        let (What::Image { res, ty: image, volatile }, Some(texel), true) =
            (h.what, h.texel, h.arrays.is_empty())
        else {
            return self.err("an atomic operation on something that is no texel");
        };
        let info = self.usable(&image)?;
        let r = &self.m.resources[res];
        if r.kind != ResKind::Image || r.read_only {
            return self.err("an atomic operation on an image that can only be read");
        }
        let fits = info.format.is_some_and(|f| f.bits() == [32]);
        if !fits {
            return self.err("atomic operations need an image of the format r32i, r32ui or r32f");
        }
        let args: SmallVec<[Value; 6]> =
            h.element.into_iter().chain(texel).chain(data.iter().copied()).collect();
        let imm =
            ImageImm { atomic: Some(what), element: h.element.is_some(), volatile, ..ImageImm::new(res) };
        self.emit1(Op::ImageAtomic, ty, Imm::Image(imm), &args)
    }

    /// The type of the texels behind a pointer to one.
    pub(super) fn texel_type(&self, h: u32) -> Option<Type> {
        match self.handles[h as usize].what {
            What::Image { ty: ImageTy { info: Ok(info), .. }, .. } => match info.component {
                Component::F32 => Some(Type::F32),
                _ => Some(Type::I32),
            },
            _ => None,
        }
    }
}
