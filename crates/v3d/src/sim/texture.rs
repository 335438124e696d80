//! Texels of images: what the texture unit does when a write of tmusf starts it (section 12.2, "Texture and image
//! access").
//!
//! The texture state at the address in P0 is an abstract description ([`kempe_ir::exec::PlacedImage`]); formats and places
//! of texels are those of [`kempe_ir::image`], which the interpreter shares. A load gives each wanted channel as a word, or
//! in 16-bit mode pairs of halves. A store takes words that are texels already. Loads and atomics outside of the image stop
//! the run; stores there do nothing (Vulkan says so, and the existing driver leaves it to the unit).
//!
//! Lookups through samplers: `lookup`. Not modelled, and stopping the run as `unsupported`: offsets of stores, sample numbers, the write
//! conversion of 7.1. Rules checked here: 54, 55, 57.

use super::lookup::{OFFSETS, PER_PIXEL, WIDE, bad_offset, constant_offset, offset_of};
use super::thread::{Cause, Machine, Thread, Trouble, Value, Write, whole_quads};
use super::tmu::{Action, Operand, action, lanes_of, unwaited};
use super::{LANES, Lanes, Mask};
use kempe_ir::eval;
use kempe_ir::exec::PlacedImage;
use kempe_ir::image::{Dim, put_texel, texel_words};
use kempe_ir::module::AtomicOp;
use kempe_ir::types::Type;

/// P2 when it is left out: operation 15, everything else 0.
const REGULAR: u32 = 15 << 20;

/// Names of the coordinate registers behind S.
const NAMES: [&str; 4] = ["T", "R", "layer", "level of detail"];

/// An image that has been found at the address of a texture state.
pub(super) struct Place<'a> {
    pub image: &'a PlacedImage,
    /// Of the memory.
    pub region: usize,
}

impl<'a> Place<'a> {
    /// The image of P0.
    pub fn at(p0: u32, m: &Machine<'a>) -> Result<Place<'a>, Trouble> {
        let images = m.images;
        let found = images.iter().find(|i| i.state == p0 & !15);
        let region = found.and_then(|i| m.memory.region_at(i.base));
        match (found, region) {
            (Some(image), Some(region)) => {
                let desc = &image.desc;
                if desc.check().is_err() || (m.memory.bytes(region).len() as u64) < desc.bytes() {
                    return Err(Trouble::new(
                        "memory",
                        format!("the image `{}` has no such texels", image.name),
                    ));
                }
                Ok(Place { image, region })
            }
            _ => Err(Trouble::new("memory", format!("no texture state at {:#010x}", p0 & !15))),
        }
    }

    /// Words of memory that the texel at an offset touches.
    pub fn words(&self, offset: usize) -> std::ops::RangeInclusive<u32> {
        let first = self.image.base.wrapping_add(offset as u32);
        first / 4..=first.wrapping_add(self.image.desc.format.bytes() - 1) / 4
    }
}

/// Exactly the coordinates T, R and layer that an image wants are there.
pub(super) fn coordinate_operands(
    name: &str,
    others: &[Option<Operand>; 4],
    wanted: [bool; 3],
) -> Result<(), Trouble> {
    for (k, want) in wanted.into_iter().enumerate() {
        if others[k].is_some() != want {
            let what = if want { "lacks" } else { "has a superfluous" };
            let message = format!("an access to `{name}` {what} {} coordinate", NAMES[k]);
            return Err(Trouble::new("54", message));
        }
    }
    Ok(())
}

/// What an access needs besides data.
struct Access<'a> {
    place: Place<'a>,
    /// S and the other coordinates in the order of [`kempe_ir::image::ImageInfo::coordinates`].
    coordinates: Vec<Operand>,
    level: Option<Operand>,
    /// Texels that are added to S, T, R: constants, or four bits each for S and T.
    offset: [i32; 3],
    variable: Option<Operand>,
}

impl Access<'_> {
    fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.coordinates.iter().chain(&self.level).chain(&self.variable)
    }

    /// Byte offset of the texel of a lane; `None` outside of the image.
    fn offset(&self, lane: usize) -> Option<usize> {
        let mut c: Vec<u32> = self.coordinates.iter().map(|o| o.value.v[lane]).collect();
        let shift = offset_of(&self.variable, self.offset, lane);
        let own = axes(self.place.image.desc.dim);
        for (c, by) in c.iter_mut().zip(shift).take(own) {
            *c = c.wrapping_add_signed(by);
        }
        let level = self.level.as_ref().map_or(0, |o| o.value.v[lane]);
        self.place.image.desc.offset(&c, level)
    }

    fn outside(&self, lane: usize) -> Trouble {
        let c: Vec<String> = self.coordinates.iter().map(|o| (o.value.v[lane] as i32).to_string()).collect();
        let message = format!("texel {} lies outside of the image `{}`", c.join(", "), self.place.image.name);
        Trouble::lane("memory", lane as u32, message)
    }
}

/// Coordinates that name a place, without layer and face.
fn axes(dim: Dim) -> usize {
    match dim {
        Dim::D1 | Dim::Buffer => 1,
        Dim::D2 | Dim::Cube => 2,
        Dim::D3 => 3,
    }
}

/// Poisoned lanes of an operand among some.
pub(super) fn poisoned(o: &Operand, lanes: Mask) -> Option<(Mask, Cause)> {
    let missing = !o.lanes & lanes;
    let poison = o.value.poison & lanes;
    match (missing, poison) {
        (0, 0) => None,
        (0, p) => Some((p, o.value.cause)),
        (m, _) => Some((m, Cause::Never)),
    }
}

impl Thread {
    /// A write to tmusf: the access starts.
    pub(super) fn texture_start(&mut self, write: &Write, m: &mut Machine) -> Result<(), Trouble> {
        let unknown = write.maybe & self.covered;
        if unknown != 0 {
            return Err(Trouble::poison(write.flag_cause, unknown, "the condition of a texel access"));
        }
        let words = std::mem::take(&mut self.tmu.words);
        let data = std::mem::take(&mut self.tmu.data);
        let others = std::mem::replace(&mut self.tmu.coordinates, [const { None }; 4]);
        let variable = self.tmu.offset.take();
        if self.tmu.reference.take().is_some() {
            return Err(Trouble::new("54", "a reference for a texel access"));
        }
        let (Some(&p0), true) = (words.first(), words.len() <= 3) else {
            return Err(Trouble::new(
                "54",
                format!("a texel access with {} configuration words", words.len()),
            ));
        };
        let p1 = words.get(1).copied().unwrap_or(PER_PIXEL);
        let p2 = words.get(2).copied().unwrap_or(REGULAR);
        if p1 & !(WIDE | PER_PIXEL) != 0 || p2 & !(REGULAR | OFFSETS) != 0 {
            return Err(Trouble::new(
                "unsupported",
                format!("configuration words {p1:#x}, {p2:#x} are not modelled"),
            ));
        }
        let place = Place::at(p0, m)?;
        let enabled = write.lanes & self.covered;
        let lanes = match p1 & PER_PIXEL {
            0 => whole_quads(write.lanes) & whole_quads(self.covered),
            _ => enabled,
        };
        let desc = &place.image.desc;
        let wanted = [
            matches!(desc.dim, Dim::D2 | Dim::D3 | Dim::Cube),
            desc.dim == Dim::D3,
            desc.arrayed || desc.dim == Dim::Cube,
        ];
        coordinate_operands(&place.image.name, &others, wanted)?;
        let [t, r, layer, level] = others;
        // Whether the condition holds or not, the lane has a value for S.
        let s = Operand { value: write.value, lanes: Mask::MAX };
        let coordinates: Vec<Operand> = [Some(s), t, r, layer].into_iter().flatten().collect();
        let access = Access { place, coordinates, level, offset: constant_offset(p2), variable };
        let Some(action) = action(p2 >> 20 & 15, !data.is_empty()) else {
            return Err(Trouble::new("54", format!("configuration word {p2:#x} names no operation")));
        };
        let shifted = access.variable.is_some() || access.offset != [0; 3];
        if shifted && action != Action::Load {
            return Err(Trouble::new("unsupported", "an offset for a store or an atomic is not modelled"));
        }
        if let Some(what) = bad_offset(&access.variable, access.offset, axes(access.place.image.desc.dim)) {
            return Err(Trouble::new("unsupported", what));
        }
        // Lanes that must be right; the other lanes of a quad only run along in a load.
        let needed = if action == Action::Load { enabled } else { lanes };
        for o in access.operands() {
            if let Some((bad, cause)) = poisoned(o, needed) {
                return Err(Trouble::poison(cause, bad, "a coordinate of a texel access"));
            }
        }
        let known = access.operands().fold(lanes, |m, o| m & !o.value.poison & o.lanes);
        match action {
            Action::Load => self.texel_load(&access, known, needed, p0 & 15, p1 & WIDE != 0, m),
            Action::Store => self.texel_store(&access, lanes, &data, p0 & 15, m),
            Action::Atomic(op) => self.texel_atomic(&access, lanes, op, &data, p0 & 15, m),
            Action::Fixed(..) | Action::Cache => {
                Err(Trouble::new("unsupported", "this operation on texels is not modelled"))
            }
        }
    }

    fn texel_load(
        &mut self,
        a: &Access,
        lanes: Mask,
        needed: Mask,
        mask: u32,
        wide: bool,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        if mask == 0 || !wide && mask > 3 {
            return Err(Trouble::new("56", format!("a load of texels with the result mask {mask}")));
        }
        let format = a.place.image.desc.format;
        let mut results: [Lanes; 4] = [[0xdead_beef; LANES]; 4];
        let mut poison = !lanes;
        for i in lanes_of(lanes) {
            let must = needed >> i & 1 != 0;
            let Some(offset) = a.offset(i) else {
                if must {
                    return Err(a.outside(i));
                }
                poison |= 1 << i;
                continue;
            };
            if let Some(word) = a.place.words(offset).find(|w| self.tmu.unwaited.contains(w)) {
                if must {
                    return Err(unwaited(i, word * 4));
                }
                poison |= 1 << i;
            }
            let bytes = &m.memory.bytes(a.place.region)[offset..offset + format.bytes() as usize];
            let color = format.decode(texel_words(bytes));
            let words = if wide { color } else { format.halves(color) };
            for (to, word) in results.iter_mut().zip(words) {
                to[i] = word;
            }
        }
        for (_, v) in results.into_iter().enumerate().filter(|(k, _)| mask >> k & 1 != 0) {
            self.tmu.push(Value { v, poison, cause: Cause::OffLane }, false)?;
        }
        Ok(())
    }

    fn texel_store(
        &mut self,
        a: &Access,
        lanes: Mask,
        data: &[Operand],
        mask: u32,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let format = a.place.image.desc.format;
        if data.len() != format.words() as usize || mask != 0 {
            return Err(Trouble::new(
                "54",
                format!("a store of {} words and result mask {mask} to {}", data.len(), format.name()),
            ));
        }
        if !m.memory.regions()[a.place.region].writable {
            return Err(Trouble::new(
                "memory",
                format!("a store to the image `{}`, which is read-only", a.place.image.name),
            ));
        }
        for o in data {
            if let Some((bad, cause)) = poisoned(o, lanes) {
                return Err(Trouble::poison(cause, bad, "the data of a store"));
            }
        }
        for i in lanes_of(lanes) {
            let Some(offset) = a.offset(i) else { continue };
            let mut words = [0; 4];
            for (to, o) in words.iter_mut().zip(data) {
                *to = o.value.v[i];
            }
            let bytes = &mut m.memory.bytes_mut(a.place.region)[offset..offset + format.bytes() as usize];
            put_texel(bytes, &words);
            if m.options.strict {
                self.tmu.unwaited.extend(a.place.words(offset));
            }
        }
        Ok(())
    }

    fn texel_atomic(
        &mut self,
        a: &Access,
        lanes: Mask,
        op: AtomicOp,
        data: &[Operand],
        mask: u32,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let format = a.place.image.desc.format;
        let (operand, expected) = match (op, data) {
            (AtomicOp::CompareExchange, [expected, new]) => (new, Some(expected)),
            (AtomicOp::CompareExchange, _) => {
                return Err(Trouble::new("54", "wrong number of operands for an atomic operation"));
            }
            (_, [operand]) => (operand, None),
            _ => return Err(Trouble::new("54", "wrong number of operands for an atomic operation")),
        };
        if format.bits() != [32] {
            return Err(Trouble::new("54", format!("an atomic operation on texels of {}", format.name())));
        }
        if mask != 1 {
            return Err(Trouble::new(
                "57",
                format!("an atomic operation on texels with the result mask {mask}"),
            ));
        }
        for o in data {
            if let Some((bad, cause)) = poisoned(o, lanes) {
                return Err(Trouble::poison(cause, bad, "the operand of an atomic operation"));
            }
        }
        let mut v: Lanes = [0xdead_beef; LANES];
        for i in lanes_of(lanes) {
            let Some(offset) = a.offset(i) else { return Err(a.outside(i)) };
            let at = a.place.image.base + offset as u32;
            if self.tmu.unwaited.contains(&(at / 4)) {
                return Err(unwaited(i, at));
            }
            let fault = |f: kempe_ir::exec::Fault| Trouble::lane("memory", i as u32, f.to_string());
            let old = m.memory.read(at, 4).map_err(fault)?;
            v[i] = old as u32;
            let word = |o: &Operand| u64::from(o.value.v[i]);
            let new = eval::atomic(op, Type::I32, old, word(operand), expected.map_or(0, word));
            m.memory.write(at, 4, new).map_err(fault)?;
        }
        self.tmu.push(Value { v, poison: !lanes, cause: Cause::OffLane }, true)
    }
}
