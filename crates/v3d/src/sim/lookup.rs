//! Lookups through samplers: what the texture unit does when a write of tmus, tmuscm or tmuslod starts it (section 12.2,
//! "Texture and image access").
//!
//! Filtering is that of [`kempe_ir::sample`], which the interpreter shares; texture and sampler states are abstract descriptions at
//! their addresses. Levels come from the differences of the coordinates in the quad unless they are given. In per-quad mode
//! helpers and lanes that only run along take part as far as their coordinates are defined; a level needs all four lanes.
//!
//! Where the reference is silent: a sampler whose description says that coordinates are texels counts like bit 1 of P1 (the
//! driver puts it there); a level that is asked for and not given is 0; a cube's coordinates have one component of magnitude 1
//! (as the driver divides them), anything far from it stops the run (`12.2`).
//!
//! Not modelled, and stopping the run as `unsupported`: the 8-bit offset format, sample numbers, the coefficient mode, dimension
//! queries, write conversion, variable offsets in three dimensions.

use super::texture::{Place, coordinate_operands, poisoned};
use super::thread::Cause;
use super::thread::{Machine, Thread, Trouble, Value, Write, whole_quads};
use super::tmu::{Operand, lanes_of, unwaited};
use super::{LANES, Lanes, Mask};
use crate::magic;
use kempe_ir::eval;
use kempe_ir::image::{Dim, texel_words};
use kempe_ir::sample::{Image, Lookup, Request, Sampler, coordinates, level_of};
use std::cell::Cell;

/// Bits of P1.
pub(super) const WIDE: u32 = 1;
const TEXELS: u32 = 2;
pub(super) const PER_PIXEL: u32 = 4;

/// Bits of P2.
const NO_AUTOMATIC_LEVEL: u32 = 2;
const GATHER: u32 = 1 << 7;
const QUERY: u32 = 1 << 24;
pub(super) const OFFSETS: u32 = 0xfff << 8;
const OPERATION: u32 = 15 << 20;
const MODELLED: u32 = NO_AUTOMATIC_LEVEL | 3 << 5 | GATHER | QUERY | OFFSETS | OPERATION;

/// A signed field of four bits.
fn nibble(word: u32, at: u32) -> i32 {
    (word << (28 - at)) as i32 >> 28
}

/// The offsets of P2.
pub(super) fn constant_offset(p2: u32) -> [i32; 3] {
    [8, 12, 16].map(|at| nibble(p2, at))
}

/// The offset of a lane: that of tmuoff if it was written.
pub(super) fn offset_of(variable: &Option<Operand>, constant: [i32; 3], lane: usize) -> [i32; 3] {
    match variable {
        Some(o) => [nibble(o.value.v[lane], 0), nibble(o.value.v[lane], 4), 0],
        None => constant,
    }
}

/// Offsets that are not modelled.
pub(super) fn bad_offset(
    variable: &Option<Operand>,
    constant: [i32; 3],
    axes: usize,
) -> Option<&'static str> {
    let bad = variable.is_some() && (constant != [0; 3] || axes > 2);
    bad.then_some("a variable offset beside a constant one or in depth is not modelled")
}

/// What the configuration words and the terminator say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ask {
    lookup: Lookup,
    /// The level is an operand, not computed.
    explicit: bool,
    offset: [i32; 3],
    mask: u32,
    wide: bool,
    per_pixel: bool,
    texels: bool,
}

impl Ask {
    fn new(n: u8, p0: u32, p1: u32, p2: u32) -> Result<Ask, Trouble> {
        if p2 & !MODELLED != 0 {
            return Err(Trouble::new("unsupported", format!("configuration word {p2:#x} is not modelled")));
        }
        if p2 & OPERATION != OPERATION {
            return Err(Trouble::new("54", format!("a lookup with the operation of {p2:#x}")));
        }
        let lookup = match (p2 & GATHER != 0, p2 & QUERY != 0) {
            (false, false) => Lookup::Color,
            (true, false) => Lookup::Gather((p2 >> 5 & 3) as u8),
            (false, true) => Lookup::Level,
            (true, true) => return Err(Trouble::new("54", "a gather that asks for the level of detail")),
        };
        let (mask, wide) = (p0 & 15, p1 & WIDE != 0);
        let words = match lookup {
            Lookup::Level => 2,
            _ => 4,
        };
        let room = if wide { words } else { words / 2 };
        if mask == 0 || mask >> room != 0 {
            return Err(Trouble::new("56", format!("a lookup with the result mask {mask}")));
        }
        Ok(Ask {
            lookup,
            explicit: n == magic::TMUSLOD || p2 & NO_AUTOMATIC_LEVEL != 0,
            offset: constant_offset(p2),
            mask,
            wide,
            per_pixel: p1 & PER_PIXEL != 0,
            texels: p1 & TEXELS != 0,
        })
    }

    /// Whether results depend on the neighbours.
    fn needs_quad(&self) -> bool {
        !self.explicit && !matches!(self.lookup, Lookup::Gather(_))
    }
}

/// The operands of a lookup.
struct Operands {
    /// S, T, R.
    at: Vec<Operand>,
    layer: Option<Operand>,
    level: Option<Operand>,
    reference: Option<Operand>,
    offset: Option<Operand>,
}

impl Operands {
    fn all(&self) -> impl Iterator<Item = &Operand> {
        let one = [&self.layer, &self.level, &self.reference, &self.offset];
        self.at.iter().chain(one.into_iter().flatten())
    }

    fn place(&self, lane: usize) -> [f32; 3] {
        std::array::from_fn(|k| self.at.get(k).map_or(0.0, |o| f32::from_bits(o.value.v[lane])))
    }

    fn differences(&self, lane: usize, bit: usize) -> [f32; 3] {
        let (low, high) = (self.place(lane & !bit), self.place(lane | bit));
        std::array::from_fn(|k| high[k] - low[k])
    }

    fn request(&self, ask: &Ask, place: &Place, sampler: &Sampler, lane: usize) -> Request {
        let float = |o: &Operand| f32::from_bits(o.value.v[lane]);
        let given = self.level.as_ref().map(float);
        let level = match (ask.explicit, ask.needs_quad()) {
            (true, _) => given.unwrap_or(0.0),
            (false, false) => 0.0,
            (false, true) => {
                let (dx, dy) = (self.differences(lane, 1), self.differences(lane, 2));
                level_of(&place.image.desc, sampler, dx, dy) + given.unwrap_or(0.0)
            }
        };
        let offset = offset_of(&self.offset, ask.offset, lane);
        Request {
            lookup: ask.lookup,
            at: self.place(lane),
            layer: self.layer.as_ref().map_or(0.0, |o| o.value.v[lane] as i32 as f32),
            reference: self.reference.as_ref().map(float),
            level,
            offset,
        }
    }
}

impl Thread {
    /// A write to tmus, tmuscm or tmuslod: the lookup starts.
    #[cold]
    pub(super) fn lookup_start(&mut self, n: u8, write: &Write, m: &mut Machine) -> Result<(), Trouble> {
        let unknown = write.maybe & self.covered;
        if unknown != 0 {
            return Err(Trouble::poison(write.flag_cause, unknown, "the condition of a lookup"));
        }
        let words = std::mem::take(&mut self.tmu.words);
        let data = std::mem::take(&mut self.tmu.data);
        let others = std::mem::replace(&mut self.tmu.coordinates, [const { None }; 4]);
        let (reference, offset) = (self.tmu.reference.take(), self.tmu.offset.take());
        let (p0, p1, p2) = match words[..] {
            [p0, p1] => (p0, p1, OPERATION),
            [p0, p1, p2] => (p0, p1, p2),
            _ => {
                let message = format!("a lookup with {} configuration words", words.len());
                return Err(Trouble::new("54", message));
            }
        };
        if !data.is_empty() {
            return Err(Trouble::new("54", "a lookup with data"));
        }
        let ask = Ask::new(n, p0, p1, p2)?;
        let place = Place::at(p0, m)?;
        let desc = &place.image.desc;
        let name = &place.image.name;
        let state = p1 & !7;
        let Some(placed) = m.samplers.iter().find(|s| s.state == state) else {
            return Err(Trouble::new("memory", format!("no sampler state at {state:#010x}")));
        };
        let sampler = Sampler { unnormalised: placed.sampler.unnormalised || ask.texels, ..placed.sampler };
        let cube = desc.dim == Dim::Cube;
        if cube != (n == magic::TMUSCM) || desc.dim == Dim::Buffer {
            return Err(Trouble::new("54", format!("a lookup in `{name}` that does not fit it")));
        }
        let own = coordinates(desc.dim);
        coordinate_operands(name, &others, [own > 1, own > 2, desc.arrayed])?;
        if let Some(what) = bad_offset(&offset, ask.offset, own) {
            return Err(Trouble::new("unsupported", what));
        }
        // Whether the condition holds or not, the lane has a value for S.
        let s = Operand { value: write.value, lanes: Mask::MAX };
        let [t, r, layer, level] = others;
        let at = [Some(s), t, r].into_iter().flatten().collect();
        let operands = Operands { at, layer, level, reference, offset };
        let needed = write.lanes & self.covered;
        let lanes = match ask.per_pixel {
            true => needed,
            false => whole_quads(write.lanes) & whole_quads(self.covered),
        };
        for o in operands.all() {
            if let Some((bad, cause)) = poisoned(o, needed) {
                return Err(Trouble::poison(cause, bad, "an operand of a lookup"));
            }
        }
        let known = operands.all().fold(lanes, |m, o| m & !o.value.poison & o.lanes);
        if cube {
            divided(&operands, known & needed)?;
        }
        self.look_up(&ask, &place, &sampler, &operands, known, needed, m)
    }

    #[allow(clippy::too_many_arguments)]
    fn look_up(
        &mut self,
        ask: &Ask,
        place: &Place,
        sampler: &Sampler,
        operands: &Operands,
        known: Mask,
        needed: Mask,
        m: &Machine,
    ) -> Result<(), Trouble> {
        let image = place.image;
        let format = image.desc.format;
        let bytes = m.memory.bytes(place.region);
        let met = Cell::new(None);
        let stored = &self.tmu.unwaited;
        let texel = |offset: usize| {
            if !stored.is_empty()
                && let Some(word) = place.words(offset).find(|w| stored.contains(w))
            {
                met.set(Some(word * 4));
            }
            let end = (offset + format.bytes() as usize).min(bytes.len());
            format.decode(texel_words(bytes.get(offset..end).unwrap_or_default()))
        };
        let source = Image { desc: image.desc, component: format.component(), texel: &texel };
        let mut results: [Lanes; 4] = [[0xdead_beef; LANES]; 4];
        let mut poison = !known;
        for i in lanes_of(known) {
            let quad: Mask = 0b1111 << (i & !3);
            if ask.needs_quad() && known & quad != quad {
                poison |= 1 << i;
                continue;
            }
            let request = operands.request(ask, place, sampler, i);
            let color = source.sample(sampler, &request);
            if let Some(address) = met.take() {
                if needed >> i & 1 != 0 {
                    return Err(unwaited(i, address));
                }
                poison |= 1 << i;
            }
            let words = match (ask.wide, ask.lookup == Lookup::Level || request.reference.is_some()) {
                (true, _) => color,
                (false, false) => format.halves(color),
                // Levels and comparisons are floats whatever the texels are.
                (false, true) => {
                    [eval::pack_half(color[0], color[1]), eval::pack_half(color[2], color[3]), 0, 0]
                }
            };
            for (to, word) in results.iter_mut().zip(words) {
                to[i] = word;
            }
        }
        for (_, v) in results.into_iter().enumerate().filter(|(k, _)| ask.mask >> k & 1 != 0) {
            self.tmu.push(Value { v, poison, cause: Cause::OffLane }, false)?;
        }
        Ok(())
    }
}

/// The coordinates of a cube come divided by their largest magnitude.
fn divided(operands: &Operands, lanes: Mask) -> Result<(), Trouble> {
    for i in lanes_of(lanes) {
        let at = operands.place(i);
        let largest = at.iter().fold(0f32, |l, c| l.max(c.abs()));
        let number = at.iter().all(|c| c.is_finite()) && largest != 0.0;
        if number && (largest - 1.0).abs() > 1.0 / 64.0 {
            let message = format!("coordinates of a cube whose largest component is {largest}, not 1");
            return Err(Trouble::lane("12.2", i as u32, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_signed() {
        assert_eq!(nibble(0x0000_0f00, 8), -1);
        assert_eq!(nibble(0x0007_0000, 16), 7);
        assert_eq!([nibble(0x8f, 0), nibble(0x8f, 4)], [-1, -8]);
    }
}
