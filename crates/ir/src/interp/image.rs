//! Accesses to images, lane by lane.

use super::access::Place;
use super::decode::ZERO;
use super::error::Shadow;
use super::lanes::lanes;
use super::races::Touch;
use super::run::{Batch, Runner};
use super::{Stop, UndefinedUse};
use crate::eval;
use crate::exec::PlacedImage;
use crate::image::{Encoding, Format, ImageInfo, Texel, level_extent, put_texel, texel_words};
use crate::module::*;
use crate::ops::Op;
use crate::types::Type;
use smallvec::SmallVec;

/// An access with its operands as slots.
#[derive(Clone, Debug)]
pub(super) struct ImageAccess {
    pub op: Op,
    pub ty: Type,
    pub imm: ImageImm,
    pub info: ImageInfo,
    /// [`ZERO`]: the first element.
    pub element: u32,
    pub coordinates: SmallVec<[u32; 4]>,
    /// [`ZERO`]: the first level.
    pub lod: u32,
    pub data: SmallVec<[u32; 4]>,
    pub results: SmallVec<[u32; 4]>,
}

impl ImageAccess {
    pub fn new(
        inst: &InstData,
        imm: ImageImm,
        info: ImageInfo,
        args: &[u32],
        results: &[u32],
    ) -> ImageAccess {
        let mut rest = args.iter().copied();
        let access = !matches!(inst.op, Op::ImageSize | Op::ImageLevels);
        let element = if imm.element { rest.next().unwrap_or(ZERO) } else { ZERO };
        let count = if access { info.coordinates() } else { 0 };
        let coordinates = rest.by_ref().take(count).collect();
        let lod = if imm.lod { rest.next().unwrap_or(ZERO) } else { ZERO };
        ImageAccess {
            op: inst.op,
            ty: inst.ty,
            imm,
            info,
            element,
            coordinates,
            lod,
            data: rest.collect(),
            results: SmallVec::from_slice(results),
        }
    }

    fn format(&self) -> Format {
        self.info.storage_format()
    }
}

impl Runner<'_> {
    pub(super) fn image(&mut self, b: &mut Batch, n: u32, inst: Inst) -> Result<(), Stop> {
        let program = self.program;
        let a = &program.images[n as usize];
        let address: SmallVec<[u32; 6]> =
            a.coordinates.iter().chain([&a.element, &a.lod]).copied().filter(|&s| s != ZERO).collect();
        let unknown = address.iter().fold(0, |p, &s| p | b.regs.poison(s)) & b.active;
        if unknown != 0 {
            self.undefined.insert(UndefinedUse::Address(inst));
        }
        if self.bounds.is_some()
            && address.iter().any(|&s| lanes(b.active).any(|i| !b.known[s as usize][i].is_exact()))
        {
            return Err(Stop::Undecided(UndefinedUse::Address(inst)));
        }
        for i in lanes(b.active) {
            let poison = unknown >> i & 1 != 0;
            match a.op {
                Op::ImageSize | Op::ImageLevels => self.image_size(b, a, i, poison),
                Op::ImageLoad => self.image_load(b, a, inst, i, poison)?,
                Op::ImageStore => self.image_store(b, a, inst, i, poison)?,
                _ => self.image_atomic(b, a, inst, i, poison)?,
            }
        }
        if !self.uniform.is_empty() {
            for &slot in &a.results {
                self.broadcast(b, slot, b.active)?;
            }
        }
        Ok(())
    }

    fn set_result(&self, b: &mut Batch, slot: u32, lane: usize, v: u32, poison: bool, known: Shadow) {
        b.regs.set(slot, lane, v as u64, poison);
        if self.bounds.is_some() {
            b.known[slot as usize][lane] = if poison { Shadow::Undecided } else { known };
        }
    }

    fn image_size(&self, b: &mut Batch, a: &ImageAccess, lane: usize, poison: bool) {
        let image = self.env.image(a.imm.res, b.regs.row(a.element)[lane] as u32);
        let level = b.regs.row(a.lod)[lane] as u32;
        let levels = [crate::image::Axis::Levels];
        let axes = if a.op == Op::ImageLevels { &levels[..] } else { a.info.axes() };
        for (&axis, &slot) in axes.iter().zip(&a.results) {
            let size = image.map_or(0, |i| i.desc.size(axis));
            let v = if a.imm.lod && axis.shrinks() { level_extent(size, level) } else { size };
            self.set_result(b, slot, lane, v, poison, Shadow::Exact);
        }
    }

    /// The image and the place of the texel in it, if it is inside.
    fn texel(
        &self,
        b: &Batch,
        a: &ImageAccess,
        inst: Inst,
        lane: usize,
    ) -> Result<(&PlacedImage, Option<Place>), Stop> {
        let word = |s: u32| b.regs.row(s)[lane] as u32;
        let element = word(a.element);
        let Some(image) = self.env.image(a.imm.res, element) else {
            let name = self.program.module.resources.get(a.imm.res).map_or("", |r| r.name.as_str());
            let message = format!("no image is bound to element {element} of `{name}`");
            return Err(Stop::Texel { message, inst, lane: b.context[lane] });
        };
        let c: SmallVec<[u32; 4]> = a.coordinates.iter().map(|&s| word(s)).collect();
        let region = self.state.memory.region_at(image.base);
        let offset = image.desc.offset(&c, word(a.lod));
        Ok((image, region.zip(offset).map(|(r, o)| Place::Flat(r, o))))
    }

    fn outside(&self, b: &Batch, a: &ImageAccess, inst: Inst, lane: usize) -> Stop {
        let c: Vec<String> =
            a.coordinates.iter().map(|&s| (b.regs.row(s)[lane] as u32 as i32).to_string()).collect();
        let name = self.program.module.resources.get(a.imm.res).map_or("", |r| r.name.as_str());
        let message = format!("texel {} lies outside of the image `{name}`", c.join(", "));
        Stop::Texel { message, inst, lane: b.context[lane] }
    }

    /// Bytes of a texel as words, and whether some are undefined. A texel is read byte by byte: one of a component may be
    /// narrower than any access to memory.
    fn read_texel(&self, b: &Batch, place: Place, bytes: u32) -> (Texel, bool) {
        let mut list = [0u8; 16];
        let mut poison = false;
        for (k, to) in list.iter_mut().enumerate().take(bytes as usize) {
            let (v, p) = self.state.read(place.add(k as u32), 1, &b.private);
            *to = v as u8;
            poison |= p;
        }
        (texel_words(&list[..bytes as usize]), poison)
    }

    fn write_texel(&mut self, b: &mut Batch, place: Place, bytes: u32, texel: &Texel, poison: bool) -> bool {
        let mut list = [0u8; 16];
        put_texel(&mut list, texel);
        (0..bytes).all(|k| {
            let v = list[k as usize] as u64;
            self.state.write(place.add(k), 1, v, poison, &mut b.private)
        })
    }

    /// Accesses of a texel in the pieces in which races and bounds are followed.
    fn pieces(format: Format) -> (u32, u32) {
        let bytes = format.bytes();
        let piece = if format.bits()[0] == 32 { 4 } else { bytes.min(8) };
        (piece, bytes / piece)
    }

    fn image_load(
        &mut self,
        b: &mut Batch,
        a: &ImageAccess,
        inst: Inst,
        lane: usize,
        unknown: bool,
    ) -> Result<(), Stop> {
        let (image, place) = self.texel(b, a, inst, lane)?;
        let format = image.desc.format;
        let Some(place) = place else { return Err(self.outside(b, a, inst, lane)) };
        let (texel, poison) = self.read_texel(b, place, format.bytes());
        let (piece, pieces) = Self::pieces(format);
        let mut known: SmallVec<[Shadow; 4]> = SmallVec::new();
        for k in 0..pieces {
            let at = place.add(k * piece);
            if let Some(races) = &mut self.races {
                races.touch(&self.state.memory, at, piece, &b.context[lane], Touch::Read);
            }
            known.push(self.known_at(b, at, piece));
        }
        let all = if known.iter().all(|&k| k == Shadow::Exact) { Shadow::Exact } else { Shadow::Undecided };
        let color = format.decode(texel);
        let halves = format.halves(color);
        // A quotient of a normalised format may be rounded elsewhere.
        let norm = matches!(format.encoding(), Encoding::Unorm | Encoding::Snorm);
        let components = (0..4).filter(|k| a.imm.mask >> k & 1 != 0);
        for (k, &slot) in components.zip(&a.results) {
            let v = match a.imm.form {
                TexelForm::Halves => halves[k],
                _ => color[k],
            };
            let known = match known.get(k) {
                Some(&s) if format.bits()[0] == 32 => s,
                None if format.bits()[0] == 32 => Shadow::Exact,
                _ if norm && v != 0 && v != 1f32.to_bits() => Shadow::Undecided,
                _ => all,
            };
            self.set_result(b, slot, lane, v, poison || unknown, known);
        }
        Ok(())
    }

    fn image_store(
        &mut self,
        b: &mut Batch,
        a: &ImageAccess,
        inst: Inst,
        lane: usize,
        unknown: bool,
    ) -> Result<(), Stop> {
        let (_, place) = self.texel(b, a, inst, lane)?;
        let Some(place) = place else { return Ok(()) };
        let format = a.format();
        let mut data: Texel = [0; 4];
        for (to, &s) in data.iter_mut().zip(&a.data) {
            *to = b.regs.row(s)[lane] as u32;
        }
        let texel = match a.imm.form {
            TexelForm::Words => data,
            _ => format.encode(data),
        };
        // Components that the format does not have are dropped.
        let used = if a.imm.form == TexelForm::Words { format.words() as usize } else { format.bits().len() };
        let used = &a.data[..used.min(a.data.len())];
        let poison = unknown || used.iter().any(|&s| b.regs.poison(s) >> lane & 1 != 0);
        if poison {
            self.undefined.insert(UndefinedUse::Data(inst));
        }
        let (piece, pieces) = Self::pieces(format);
        if self.races.is_some() {
            let old = self.read_texel(b, place, format.bytes()).0;
            for k in 0..pieces {
                let words = |t: &Texel| {
                    let first = (k * piece / 4) as usize;
                    t[first] as u64 | if piece == 8 { (t[first + 1] as u64) << 32 } else { 0 }
                };
                let how = Touch::Write(words(&old) ^ words(&texel));
                if let Some(races) = &mut self.races {
                    races.touch(&self.state.memory, place.add(k * piece), piece, &b.context[lane], how);
                }
            }
        }
        if !self.write_texel(b, place, format.bytes(), &texel, poison) {
            return Err(self.outside(b, a, inst, lane));
        }
        if self.bounds.is_some() {
            let same = |s: u32| b.known[s as usize][lane] == Shadow::Exact;
            let exact = used.iter().all(|&s| same(s)) && is_exact(format, &data, a.imm.form);
            for k in 0..pieces {
                let one = a.data.get(k as usize).map_or(Shadow::Exact, |&s| b.known[s as usize][lane]);
                let known = match format.bits()[0] {
                    _ if poison => Shadow::Undecided,
                    32 => one,
                    _ if exact => Shadow::Exact,
                    _ => Shadow::Undecided,
                };
                self.set_known(b, place.add(k * piece), piece, known);
            }
        }
        Ok(())
    }

    fn image_atomic(
        &mut self,
        b: &mut Batch,
        a: &ImageAccess,
        inst: Inst,
        lane: usize,
        unknown: bool,
    ) -> Result<(), Stop> {
        let (_, place) = self.texel(b, a, inst, lane)?;
        let (Some(place), Some(op)) = (place, a.imm.atomic) else {
            return Err(self.outside(b, a, inst, lane));
        };
        let (old, old_poison) = self.state.read(place, 4, &b.private);
        if let Some(races) = &mut self.races {
            races.touch(&self.state.memory, place, 4, &b.context[lane], Touch::Atomic);
        }
        let word = |k: usize| a.data.get(k).map_or(0, |&s| b.regs.row(s)[lane]);
        // Compare and exchange: expected, new.
        let (data, expected) = if a.data.len() == 2 { (word(1), word(0)) } else { (word(0), 0) };
        let data_poison = unknown || a.data.iter().any(|&s| b.regs.poison(s) >> lane & 1 != 0);
        if data_poison {
            self.undefined.insert(UndefinedUse::Data(inst));
        }
        if op != AtomicOp::Load {
            let new = eval::atomic(op, a.ty, old, data, expected);
            let replaces = matches!(op, AtomicOp::Store | AtomicOp::Exchange);
            let poison = data_poison || old_poison && !replaces;
            if !self.state.write(place, 4, new & 0xffff_ffff, poison, &mut b.private) {
                return Err(self.outside(b, a, inst, lane));
            }
            if self.bounds.is_some() {
                let ordered = matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange | AtomicOp::Fadd);
                let operand = a.data.first().map_or(Shadow::Exact, |&s| b.known[s as usize][lane]);
                let known = match op {
                    AtomicOp::Store => operand,
                    _ if ordered || poison || !operand.is_exact() => Shadow::Undecided,
                    _ => self.known_at(b, place, 4),
                };
                self.set_known(b, place, 4, known);
            }
        }
        if let Some(&slot) = a.results.first() {
            // The old value depends on the order of invocations.
            self.set_result(b, slot, lane, old as u32, old_poison, Shadow::Undecided);
        }
        Ok(())
    }
}

/// The colour has one texel in every implementation.
fn is_exact(format: Format, color: &Texel, form: TexelForm) -> bool {
    if form != TexelForm::Color {
        return true;
    }
    let texel = format.encode(*color);
    let back = format.decode(texel);
    match format.encoding() {
        // Out of range integers are open, and so is the rounding of floats.
        Encoding::Unorm | Encoding::Snorm => {
            color.iter().take(format.bits().len()).all(|&c| c == 0 || c == 1f32.to_bits())
        }
        _ => color.iter().zip(&back).take(format.bits().len()).all(|(a, b)| a == b),
    }
}
