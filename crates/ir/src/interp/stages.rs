//! Vertices and fragments: what invocations are given and give, helpers, derivatives.
//!
//! Sixteen invocations in a row are a batch. A helper runs along, but its stores, atomics and outputs have no effect, and what
//! an atomic would have given it is undefined. A derivative reads the neighbour in the quad, which must be active; if it
//! is not, the result is undefined.
//!
//! A quad that is dead from the start does not run: its lanes are as if they were not there. One that `demote` kills runs on, and
//! its loads and lookups give what they give in others; nobody sees what comes of it.

use super::Stop;
use super::decode::{Code, Program};
use super::error::Shadow;
use super::lanes::{Mask, Row, lanes};
use super::run::{Batch, Runner};
use crate::eval::Kernel;
use crate::exec::{Batches, Environment, LANES};
use crate::io::{IoImm, StageOutputs};
use crate::module::{Builtin, Stage};
use crate::ops::Op;
use crate::types::Type;

/// Hardware threads that batches of a graphics stage are dealt to: every machine has as many.
const THREADS: u32 = 8;

impl Program<'_> {
    pub(super) fn stage_outputs(&self, env: &Environment) -> Result<Option<StageOutputs>, Stop> {
        if self.module.stage == Stage::Compute {
            return Ok(None);
        }
        let Some(stage) = &env.stage else {
            return Err(Stop::Unsupported("a graphics stage without invocations".to_owned()));
        };
        if self.module.stage == Stage::Fragment && !stage.invocations.is_multiple_of(4) {
            return Err(Stop::Unsupported("fragments come in quads".to_owned()));
        }
        let mut helpers = stage.helpers.clone();
        helpers.resize(stage.invocations as usize, false);
        Ok(Some(StageOutputs { helpers, ..StageOutputs::default() }))
    }
}

impl Runner<'_> {
    /// Graphics stages are batches of 16 invocations.
    pub(super) fn stage_geometry(&self) -> Option<Batches> {
        let stage = self.stage.as_ref()?;
        let unit = self.stage_unit();
        let units = stage.helpers.len().div_ceil(unit) as u32;
        Some(Batches { groups: [units, 1, 1], workgroup_items: unit as u32, wgs_per_supergroup: 1 })
    }

    pub(super) fn start_stage(&self, b: &mut Batch, first: u32, live: &mut Mask) {
        let Some(stage) = &self.env.stage else { return };
        b.first = first;
        b.helpers = 0;
        b.cut = 0;
        b.pending.clear();
        *live &= self.unit_lanes(first as usize);
        for lane in 0..LANES {
            let n = first as usize + lane;
            if self.program.module.stage == Stage::Fragment && stage.is_dead(n) {
                *live &= !(1 << lane);
            }
            b.helpers |= (stage.helpers.get(n).copied().unwrap_or(false) as Mask) << lane;
        }
    }

    /// A row of given words; what is not there is undefined.
    fn given(&self, b: &mut Batch, slot: u32, list: Option<&Vec<u32>>, mask: u64) {
        for lane in 0..LANES {
            let v = list.and_then(|l| l.get(b.first as usize + lane));
            b.regs.set(slot, lane, v.map_or(0, |v| *v as u64 & mask), v.is_none());
        }
    }

    pub(super) fn stage_input(&self, b: &mut Batch, slot: u32, io: IoImm, ty: Type) {
        let list = self.env.stage.as_ref().and_then(|s| s.values.get(&(io.slot, io.component)));
        self.given(b, slot, list, ty.mask());
    }

    pub(super) fn stage_payload(&self, b: &mut Batch, slot: u32, number: u32) {
        let list = self.env.stage.as_ref().and_then(|s| s.payload.get(&number));
        self.given(b, slot, list, u32::MAX.into());
    }

    pub(super) fn stage_builtin(&self, b: &mut Batch, slot: u32, builtin: Builtin) {
        let list = self.env.stage.as_ref().and_then(|s| s.builtins.get(&builtin));
        match builtin {
            Builtin::LaneId | Builtin::SubgroupLocalId => {
                for lane in 0..LANES {
                    b.regs.set(slot, lane, lane as u64, false);
                }
            }
            // Only one is modelled.
            Builtin::SampleCount => {
                for lane in 0..LANES {
                    b.regs.set(slot, lane, 1, false);
                }
            }
            Builtin::ThreadId => {
                // Batches run one after the other; a few threads keep their memories apart.
                let id = self.options.start.thread_id(b.first / LANES as u32 % THREADS);
                for lane in 0..LANES {
                    b.regs.set(slot, lane, id as u64, false);
                }
            }
            _ => self.given(b, slot, list, builtin.ty().mask()),
        }
    }

    /// Writes an output in the active lanes, which are no helpers.
    pub(super) fn output(&mut self, b: &Batch, io: IoImm, x: u32) {
        let Some(stage) = &mut self.stage else { return };
        let n = stage.helpers.len();
        let list = stage.values.entry((io.slot, io.component, io.index)).or_insert_with(|| vec![None; n]);
        let (row, poison) = (b.regs.row(x), b.regs.poison(x));
        for lane in lanes(b.active) {
            if let Some(v) = list.get_mut(b.first as usize + lane) {
                *v = (poison >> lane & 1 == 0).then_some(row[lane] as u32);
            }
        }
        if let Some(bounds) = &mut self.bounds {
            let list = bounds.outputs.entry((io.slot, io.component, io.index));
            let list = list.or_insert_with(|| vec![Shadow::Exact; n]);
            for lane in lanes(b.active) {
                if let Some(v) = list.get_mut(b.first as usize + lane) {
                    *v = b.known[x as usize][lane];
                }
            }
        }
    }

    /// What helpers do not do.
    pub(super) fn has_effect(&self, code: Code) -> bool {
        match code {
            Code::Store(a) => !a.own,
            Code::Atomic { .. } | Code::Output(..) | Code::OutputAt(..) => true,
            Code::Image(n) => matches!(self.program.images[n as usize].op, Op::ImageStore | Op::ImageAtomic),
            _ => false,
        }
    }

    /// Runs such an instruction for the other lanes.
    pub(super) fn without_helpers(&mut self, b: &mut Batch, n: u32) -> Result<(), Stop> {
        let active = b.active;
        let helpers = active & b.helpers;
        b.active &= !helpers;
        let done = if b.active == 0 { Ok(()) } else { self.inst(b, n) };
        b.active = active;
        let d = self.program.insts[n as usize];
        if d.dst != super::decode::ZERO {
            b.regs.write(d.dst, helpers, &[0; LANES], helpers);
        }
        done
    }

    /// Which fragments had no effect.
    pub(super) fn end_stage(&mut self, b: &Batch) {
        let Some(stage) = &mut self.stage else { return };
        for lane in lanes(b.live) {
            if let Some(h) = stage.helpers.get_mut(b.first as usize + lane) {
                *h = b.helpers >> lane & 1 != 0;
            }
        }
    }
}

/// The difference of neighbours in the quad whose lane numbers differ in a bit: the one with the bit minus the other.
pub(super) fn derivative(b: &mut Batch, dst: u32, x: u32, bit: usize, sub: Kernel) {
    let (row, poison) = (*b.regs.row(x), b.regs.poison(x));
    let mut out: Row = [0; LANES];
    let mut undefined: Mask = 0;
    for i in lanes(b.active) {
        let (low, high) = (i & !bit, i | bit);
        let pair: Mask = 1 << low | 1 << high;
        out[i] = sub(row[high], row[low], 0, 0);
        undefined |= ((b.active & pair != pair || poison & pair != 0) as Mask) << i;
    }
    b.regs.write(dst, b.active, &out, undefined);
}
