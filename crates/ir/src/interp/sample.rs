//! Lookups through samplers. A lookup whose level comes from the quad is undefined where a neighbour is missing; outside of
//! fragment shaders such a lookup reads the first level.
//!
//! Directions of a cube have any length. Differences are those of directions whose largest component has magnitude 1, as the
//! face is; gradients are divided by the magnitude of the largest component.

use super::Stop;
use super::error::Shadow;
use super::lanes::{Mask, lanes};
use super::run::{Batch, Runner};
use super::sample_bounds::{Asked, Operand};
use crate::exec::{LANES, PlacedImage};
use crate::image::{Dim, ImageInfo, Texel, texel_words};
use crate::module::{Inst, Stage};
use crate::sample::{
    Image, Level, Lookup, Request, SampleImm, Sampler, coordinates, level_of, unpack_offset,
};

/// A decoded lookup.
pub(super) struct SampleAccess {
    pub imm: SampleImm,
    pub info: ImageInfo,
    /// Slots of the operands, as [`SampleImm::operands`] orders them.
    pub args: Vec<u32>,
    pub results: Vec<u32>,
}

/// The operands of all lanes, one group after the other.
struct Operands<'a> {
    args: &'a [u32],
    at: usize,
}

impl Operands<'_> {
    fn next(&mut self, b: &Batch) -> [u32; LANES] {
        let slot = self.args.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        b.regs.row(slot).map(|v| v as u32)
    }

    fn some(&mut self, b: &Batch, there: bool) -> Option<[u32; LANES]> {
        there.then(|| self.next(b))
    }

    /// Up to three rows, the rest zeros.
    fn rows(&mut self, b: &Batch, n: usize) -> [[u32; LANES]; 3] {
        std::array::from_fn(|k| if k < n { self.next(b) } else { [0; LANES] })
    }
}

impl Runner<'_> {
    pub(super) fn sample(&mut self, b: &mut Batch, n: u32, inst: Inst) -> Result<(), Stop> {
        let program = self.program;
        let a = &program.samples[n as usize];
        let own = coordinates(a.info.dim);
        let mut operands = Operands { args: &a.args, at: 0 };
        let element = operands.some(b, a.imm.element).unwrap_or_default();
        let sampler_element = operands.some(b, a.imm.sampler_element).unwrap_or_default();
        let at = operands.rows(b, own);
        let layer = operands.some(b, a.info.arrayed).unwrap_or_default();
        let reference = operands.some(b, a.imm.dref);
        let extra =
            operands.some(b, matches!(a.imm.level, Level::Bias | Level::Explicit)).unwrap_or_default();
        let gradient = match a.imm.level {
            Level::Gradient => Some([operands.rows(b, own), operands.rows(b, own)]),
            _ => None,
        };
        let machine = a.imm.machine;
        let offset = match (a.imm.offset, machine) {
            (true, true) => operands.next(b).map(unpack_offset),
            (true, false) => {
                let rows = operands.rows(b, own);
                std::array::from_fn(|i| rows.map(|r| r[i] as i32))
            }
            _ => [a.imm.texels.map(i32::from); LANES],
        };
        let implicit = matches!(a.imm.level, Level::Implicit | Level::Bias);
        let quads = implicit && program.module.stage == Stage::Fragment;
        let poison = a.args.iter().fold(0, |p, &s| p | b.regs.poison(s));
        let f = |rows: &[[u32; LANES]; 3], i: usize| rows.map(|r| f32::from_bits(r[i]));
        let cube = a.info.dim == Dim::Cube && !machine;
        // By what differences of a cube are divided.
        let length = |i: usize| if cube { f(&at, i).iter().fold(0f32, |m, c| m.max(c.abs())) } else { 1.0 };
        // Errors of the operands in a run with bounds, in the order of the coordinates.
        let head = a.imm.element as usize + a.imm.sampler_element as usize;
        let mut out = [[0u32; 4]; LANES];
        let mut known = [[Shadow::Undecided; 4]; LANES];
        let mut undefined: Mask = poison & b.active;
        for i in lanes(b.active) {
            let image = self.env.image(a.imm.res, element[i]);
            let Some(image) = image else {
                let name = program.module.resources.get(a.imm.res).map_or("", |r| r.name.as_str());
                let message = format!("no image is bound to element {} of `{name}`", element[i]);
                return Err(Stop::Texel { message, inst, lane: b.context[i] });
            };
            let sampler = match a.imm.sampler {
                Some(s) => self.env.sampler(s, sampler_element[i]),
                None => self.env.sampler(a.imm.res, element[i]),
            };
            let sampler = Sampler { unnormalised: sampler.unnormalised || a.imm.pixels, ..sampler };
            let differences = if quads {
                let scaled = |i: usize| f(&at, i).map(|c| c / length(i));
                let pair = |bit: usize| {
                    let (low, high) = (scaled(i & !bit), scaled(i | bit));
                    std::array::from_fn(|k| high[k] - low[k])
                };
                let quad: Mask = 0b1111 << (i & !3);
                if b.active & quad != quad || poison & quad != 0 {
                    undefined |= 1 << i;
                }
                Some([pair(1), pair(2)])
            } else {
                gradient.as_ref().map(|g| [0, 1].map(|n: usize| f(&g[n], i).map(|d| d / length(i))))
            };
            let level = match differences {
                Some([dx, dy]) => level_of(&image.desc, &sampler, dx, dy),
                None => 0.0,
            };
            let request = Request {
                lookup: a.imm.lookup,
                at: f(&at, i),
                layer: if machine { layer[i] as i32 as f32 } else { f32::from_bits(layer[i]) },
                reference: reference.map(|r| f32::from_bits(r[i])),
                level: match a.imm.level {
                    Level::Explicit => f32::from_bits(extra[i]),
                    Level::Bias => level + f32::from_bits(extra[i]),
                    _ => level,
                },
                offset: offset[i],
            };
            out[i] = self.look_up(a, image, &sampler, &request);
            if self.bounds.is_some() {
                let e = Operand { slots: &a.args, head, own, quads, cube };
                known[i] = self.lookup_bound(&Asked {
                    b,
                    a,
                    image,
                    sampler: &sampler,
                    q: &request,
                    o: &e,
                    lane: i,
                    at: &at,
                });
            }
        }
        let all = [0usize, 1, 2, 3];
        let wanted = all.iter().filter(|&&k| a.imm.lookup != Lookup::Color || a.imm.mask >> k & 1 != 0);
        for (&k, &slot) in wanted.zip(&a.results) {
            for i in lanes(b.active) {
                b.regs.set(slot, i, out[i][k] as u64, undefined >> i & 1 != 0);
                if self.bounds.is_some() {
                    let lost = undefined >> i & 1 != 0;
                    b.known[slot as usize][i] = if lost { Shadow::Undecided } else { known[i][k] };
                }
            }
            self.broadcast(b, slot, b.active)?;
        }
        Ok(())
    }

    pub(super) fn look_up(
        &self,
        a: &SampleAccess,
        image: &PlacedImage,
        sampler: &Sampler,
        request: &Request,
    ) -> Texel {
        let memory = &self.state.memory;
        let bytes = memory.region_at(image.base).map_or(&[][..], |r| memory.bytes(r));
        let format = image.desc.format;
        let texel = |offset: usize| {
            let end = (offset + format.bytes() as usize).min(bytes.len());
            format.decode(texel_words(bytes.get(offset..end).unwrap_or_default()))
        };
        Image { desc: image.desc, component: a.info.component, texel: &texel }.sample(sampler, request)
    }
}
