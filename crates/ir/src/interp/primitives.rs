//! Geometry and tessellation: what belongs to vertices and patches, and vertices that are given one by one.
//!
//! An invocation of a control shader is a vertex of the patch that it gives; those of a patch are in one batch, or in batches that meet
//! at barriers. What several invocations give one vertex or the patch at once is undefined unless it is the same.

use super::Stop;
use super::lanes::{Mask, lanes};
use super::run::{Batch, Runner};
use crate::exec::LANES;
use crate::io::{IoImm, Owner, Slot};
use crate::module::Stage;
use crate::primitive::MAX_OUTPUT_VERTICES;
use crate::types::Type;
use std::collections::BTreeMap;

/// Slots of the numbers that an access has, in the order of its operands; [`super::decode::ZERO`] where it has none.
pub(super) type Numbers = [u32; 3];

/// Most scalars that a geometry stage gives together.
const MAX_SCALARS: usize = 1 << 26;

/// What a geometry shader has said about its next vertex, by invocation of the batch.
pub(super) type Pending = BTreeMap<(Slot, u8), [Option<u32>; LANES]>;

impl Runner<'_> {
    /// Invocations that start together, and lanes of each batch of them.
    pub(super) fn stage_unit(&self) -> usize {
        let modes = &self.program.module.primitive;
        let width = self.env.stage.as_ref().map_or(0, |s| s.width) as usize;
        let width = if (1..=LANES).contains(&width) { width } else { LANES };
        match self.program.module.stage {
            Stage::TessControl => {
                let vertices = modes.vertices.max(1) as usize;
                if vertices > width { vertices } else { width / vertices * vertices }
            }
            _ => width,
        }
    }

    /// The primitive of a lane.
    fn primitive(&self, b: &Batch, lane: usize) -> Option<usize> {
        let list = &self.env.stage.as_ref()?.primitives;
        list.get(b.first as usize + lane).map(|&p| p as usize)
    }

    /// Numbers of the vertex, the location and the component in a lane; `None` where one is undefined.
    fn numbers(&self, b: &Batch, io: &IoImm, slots: &Numbers, lane: usize) -> Option<[u32; 3]> {
        let there = [io.owner == Owner::Vertex, io.locations != 0, io.components != 0];
        let mut out = [0; 3];
        for k in (0..3).filter(|&k| there[k]) {
            if b.regs.poison(slots[k]) >> lane & 1 != 0 {
                return None;
            }
            out[k] = b.regs.row(slots[k])[lane] as u32;
        }
        Some(out)
    }

    /// `input` with operands.
    pub(super) fn input_at(&self, b: &mut Batch, dst: u32, io: IoImm, slots: &Numbers, ty: Type) {
        let stage = self.env.stage.as_ref();
        for lane in lanes(b.active) {
            let word = self.numbers(b, &io, slots, lane).and_then(|[vertex, location, component]| {
                let (stage, place) = (stage?, io.place(location, component));
                let of = self.primitive(b, lane)?;
                match io.owner {
                    Owner::Invocation => stage.values.get(&place)?.get(b.first as usize + lane),
                    Owner::Patch => stage.patch_values.get(&place)?.get(of),
                    Owner::Vertex if vertex < stage.vertices => {
                        let at = of.checked_mul(stage.vertices as usize)?.checked_add(vertex as usize)?;
                        stage.values.get(&place)?.get(at)
                    }
                    Owner::Vertex => None,
                }
            });
            b.regs.set(dst, lane, word.map_or(0, |w| u64::from(*w) & ty.mask()), word.is_none());
        }
    }

    /// The place of what a lane of a control shader gives or reads: by invocation, or by patch.
    fn given_place(&self, b: &Batch, io: &IoImm, n: [u32; 3], lane: usize) -> Option<((Slot, u8), usize)> {
        let vertices = self.program.module.primitive.vertices.max(1);
        let of = self.primitive(b, lane)?;
        let at = match io.owner {
            Owner::Invocation => b.first as usize + lane,
            Owner::Vertex => {
                of.checked_mul(vertices as usize)?.checked_add(n[0].min(vertices - 1) as usize)?
            }
            Owner::Patch => of,
        };
        Some((io.place(n[1], n[2]), at))
    }

    pub(super) fn read_output(&self, b: &mut Batch, dst: u32, io: IoImm, slots: &Numbers, ty: Type) {
        for lane in lanes(b.active) {
            let word = self.numbers(b, &io, slots, lane).and_then(|n| {
                let (stage, (place, at)) = (self.stage.as_ref()?, self.given_place(b, &io, n, lane)?);
                match io.owner {
                    Owner::Patch => *stage.patch_values.get(&place)?.get(at)?,
                    _ => *stage.values.get(&(place.0, place.1, 0))?.get(at)?,
                }
            });
            b.regs.set(dst, lane, word.map_or(0, |w| u64::from(w) & ty.mask()), word.is_none());
        }
    }

    /// An output with operands, or of the patch.
    pub(super) fn output_at(&mut self, b: &Batch, io: IoImm, x: u32, slots: &Numbers) {
        let mut places: BTreeMap<(Owner, Slot, u8, usize), Option<u32>> = BTreeMap::new();
        for lane in lanes(b.active) {
            let Some(n) = self.numbers(b, &io, slots, lane) else { continue };
            let Some(((slot, component), at)) = self.given_place(b, &io, n, lane) else { continue };
            let word = (b.regs.poison(x) >> lane & 1 == 0).then_some(b.regs.row(x)[lane] as u32);
            let owner = if io.owner == Owner::Patch { Owner::Patch } else { Owner::Vertex };
            let entry = places.entry((owner, slot, component, at)).or_insert(word);
            if *entry != word {
                *entry = None;
            }
        }
        let patches = self.env.stage.as_ref().and_then(|s| s.primitives.iter().max()).map_or(0, |&p| p + 1);
        let Some(stage) = &mut self.stage else { return };
        let n = stage.helpers.len();
        for ((owner, slot, component, at), word) in places {
            let list = match owner {
                Owner::Patch => {
                    let list = stage.patch_values.entry((slot, component));
                    list.or_insert_with(|| vec![None; patches as usize])
                }
                _ => stage.values.entry((slot, component, 0)).or_insert_with(|| vec![None; n]),
            };
            if let Some(v) = list.get_mut(at) {
                *v = word;
            }
        }
    }

    /// A geometry shader says something about its next vertex.
    pub(super) fn pend(&self, b: &mut Batch, io: IoImm, x: u32) {
        let list = b.pending.entry((io.slot, io.component)).or_insert([None; LANES]);
        let (row, poison) = (b.regs.row(x), b.regs.poison(x));
        for lane in lanes(b.active) {
            list[lane] = (poison >> lane & 1 == 0).then_some(row[lane] as u32);
        }
    }

    pub(super) fn emit_vertex(&mut self, b: &mut Batch) -> Result<(), Stop> {
        let most = self.program.module.primitive.vertices.min(MAX_OUTPUT_VERTICES) as usize;
        let Some(stage) = &mut self.stage else { return Ok(()) };
        let n = stage.helpers.len();
        if n.saturating_mul(most).saturating_mul(1 + b.pending.len()) > MAX_SCALARS {
            return Err(Stop::Unsupported(format!("{n} invocations that give {most} vertices each")));
        }
        stage.emitted.resize(n, Vec::new());
        for lane in lanes(b.active) {
            let at = b.first as usize + lane;
            let Some(vertices) = stage.emitted.get_mut(at) else { continue };
            let number = vertices.len();
            if number >= most {
                continue;
            }
            let points = self.program.module.primitive.output == crate::primitive::OutputPrimitive::Points;
            vertices.push(points || number == 0 || b.cut >> lane & 1 != 0);
            for (&(slot, component), list) in &b.pending {
                let out = stage.values.entry((slot, component, 0)).or_insert_with(|| vec![None; n * most]);
                if let Some(v) = out.get_mut(at * most + number) {
                    *v = list[lane];
                }
            }
        }
        b.cut &= !b.active;
        for list in b.pending.values_mut() {
            for lane in lanes(b.active) {
                list[lane] = None;
            }
        }
        Ok(())
    }

    /// Lanes of a control shader that are there, of those that exist in its batch.
    pub(super) fn unit_lanes(&self, first: usize) -> Mask {
        let n = self.stage.as_ref().map_or(0, |s| s.helpers.len());
        (0..LANES).filter(|lane| first + lane < n).fold(0, |m, lane| m | 1 << lane)
    }
}
