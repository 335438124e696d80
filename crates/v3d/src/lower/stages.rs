//! Inputs and outputs of programs of graphics stages (`docs/graphics.md`; reference 12.1, 12.3, 12.4, 13.5).
//!
//! Inputs are taken at the start, each once. Outputs have been brought to the end ([`super::exits`]); they are noted as they
//! come and given together when the program returns.

use super::emit::{MachineOps, Once};
use super::*;
use kempe_ir::io::{Interpolation, IoImm, PipelineState, Sampling, Slot};
use kempe_ir::{Builtin, Flags};
use kempe_mir::{ColorTarget, Graphics, Varying, VaryingSource, VertexRow};
use std::collections::{BTreeMap, BTreeSet};

pub use kempe_ir::io::start;

/// What is made of a graphics module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    pub state: PipelineState,
    /// A program before the rasteriser that gives positions only.
    pub binning: bool,
}

/// Steps of screen coordinates per pixel (reference 12.3).
fn steps(version: Version) -> u32 {
    match version {
        Version::V42 => 256,
        Version::V71 => 64,
    }
}

/// Render targets of the chip (reference section 1).
fn targets(version: Version) -> u8 {
    match version {
        Version::V42 => 4,
        Version::V71 => 8,
    }
}

/// What a stage before the rasteriser hands on to the fragment program.
fn is_handed_on(slot: Slot) -> bool {
    matches!(slot, Slot::Location(_) | Slot::ClipDistance | Slot::CullDistance | Slot::PrimitiveId)
}

/// Scalars of the interface of a stage (reference section 1).
const MAX_SCALARS: usize = 64;

impl Lower<'_> {
    /// A start word, read once.
    fn start(&mut self, n: u64) -> Value {
        self.e.once(Once::Start(n as u32), |e| e.payload(n))
    }

    fn start_f32(&mut self, n: u64) -> Value {
        let v = self.start(n);
        self.e.bitcast(Type::F32, v)
    }

    pub fn input(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Io(io) = inst.imm else { return self.error("an input without its place") };
        let r = self.result(inst)?;
        if io.slot == Slot::ViewportIndex {
            // There is one viewport.
            let first = self.e.i(0);
            self.set_one(r, first);
            return Ok(());
        }
        // A whole word, whatever is wanted of it.
        let word = match inst.ty {
            Type::F32 | Type::F16 => Type::F32,
            _ => Type::I32,
        };
        let read = |e: &mut super::emit::Emit| {
            let i = e.inst(Op::Input, word, Flags::NONE, Imm::Io(io), &[], &[word]);
            e.func.insts[i].results[0]
        };
        // Rows of a vertex shader can be read anywhere before the outputs, and live shorter so; varyings arrive in one order.
        let v = match self.m.stage {
            Stage::Vertex => read(&mut self.e),
            _ => self.e.once(Once::Input(io, word), read),
        };
        let rep = match inst.ty {
            Type::I32 | Type::F32 => Rep::One(v),
            Type::I16 => Rep::Narrow(v, None),
            ty => return self.error(format!("an input of type {ty} is not supported yet")),
        };
        self.set(r, rep);
        Ok(())
    }

    pub fn output(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Io(io) = inst.imm else { return self.error("an output without its place") };
        let arg = self.arg(inst, 0)?;
        // A second colour only means something to blending, which the pipeline state has not.
        if io.index != 0 {
            return Ok(());
        }
        match io.slot {
            Slot::ViewportIndex => {
                return self.error("a viewport cannot be chosen: the hardware has one");
            }
            Slot::Layer if self.m.stage != Stage::Geometry => {
                return self
                    .error("only geometry shaders choose a layer: the hardware takes it from their output");
            }
            _ => {}
        }
        let undefined = self.src.def_inst(arg).is_some_and(|i| self.src.insts[i].op == Op::Undef);
        if undefined {
            return Ok(());
        }
        let v = self.output_value(inst)?;
        self.outputs.insert((io.slot, io.component), v);
        Ok(())
    }

    /// The word of an output.
    pub(super) fn output_value(&mut self, inst: &InstData) -> Result<Value> {
        let arg = self.arg(inst, 0)?;
        match self.rep(arg)? {
            Rep::One(v) => Ok(v),
            Rep::Half(h) => Ok(h.exact),
            _ => self.error(format!("an output of type {} is not supported yet", inst.ty)),
        }
    }

    /// The invocations of a patch run together: what is left of a barrier is the order of memory.
    pub(super) fn patch_barrier(&mut self, inst: &InstData) -> Result<()> {
        if let Imm::Barrier(b) = inst.imm
            && b.storage
        {
            self.e.inst(Op::Fence, inst.ty, Flags::NONE, inst.imm, &[], &[]);
        }
        Ok(())
    }

    fn give(&mut self, io: IoImm, v: Value) {
        let ty = self.e.func.ty(v);
        self.e.inst(Op::Output, ty, Flags::NONE, Imm::Io(io), &[v], &[]);
    }

    /// The program returns: everything is given.
    pub fn give_outputs(&mut self) -> Result<()> {
        let outputs = std::mem::take(&mut self.outputs);
        match self.m.stage {
            Stage::Compute | Stage::TessControl => Ok(()),
            Stage::Fragment => self.fragment_outputs(&outputs),
            Stage::Vertex | Stage::TessEval => {
                self.vertex_outputs(&outputs);
                Ok(())
            }
            Stage::Geometry => {
                // The number of vertices.
                for (&(slot, component), &v) in &outputs {
                    if matches!(slot, Slot::Row(_)) {
                        self.give(IoImm::new(slot, component), v);
                    }
                }
                Ok(())
            }
        }
    }

    fn fragment_outputs(&mut self, outputs: &BTreeMap<(Slot, u8), Value>) -> Result<()> {
        for (&(slot, component), &v) in outputs {
            if let Slot::Location(n) = slot
                && n >= targets(self.version)
            {
                return self.error(format!(
                    "colour output {n}: the hardware has {} render targets",
                    targets(self.version)
                ));
            }
            if matches!(slot, Slot::Location(_) | Slot::FragDepth | Slot::SampleMask) {
                self.give(IoImm::new(slot, component), v);
            }
        }
        Ok(())
    }

    fn vertex_outputs(&mut self, outputs: &BTreeMap<(Slot, u8), Value>) {
        // Nobody looks at what is drawn without a position.
        let placed = outputs.keys().any(|k| k.0 == Slot::Position);
        let rows = self.vertex_rows(outputs);
        for (n, &(row, v)) in rows.iter().enumerate() {
            if placed || matches!(row, VertexRow::Varying(..) | VertexRow::PointSize) {
                self.give(IoImm::new(Slot::Row(n.min(255) as u16), 0), v);
            }
        }
        self.rows = rows.into_iter().map(|r| r.0).collect();
    }

    /// What the rows of a vertex hold (reference 12.3), for outputs that are written.
    pub(super) fn vertex_layout(&self, written: &BTreeSet<(Slot, u8)>) -> Vec<VertexRow> {
        let mut rows: Vec<VertexRow> = Vec::new();
        if self.shape.binning {
            rows.extend((0..4).map(VertexRow::Clip));
        }
        rows.extend((0..2).map(VertexRow::Screen));
        if !self.shape.binning {
            rows.extend([VertexRow::Depth, VertexRow::ReciprocalW]);
        }
        if self.shape.state.points {
            rows.push(VertexRow::PointSize);
        }
        if !self.shape.binning {
            let handed_on = written.iter().filter(|w| is_handed_on(w.0));
            rows.extend(handed_on.map(|&(slot, component)| VertexRow::Varying(slot, component)));
        }
        rows
    }

    /// The same with the values of one vertex.
    pub(super) fn vertex_rows(&mut self, outputs: &BTreeMap<(Slot, u8), Value>) -> Vec<(VertexRow, Value)> {
        let mut rows: Vec<(VertexRow, Value)> = Vec::new();
        let position: Vec<Value> = (0..4)
            .map(|k| match outputs.get(&(Slot::Position, k)) {
                Some(&v) => v,
                None => self.e.undef(Type::F32),
            })
            .collect();
        if self.shape.binning {
            rows.extend((0..4).map(|k| (VertexRow::Clip(k), position[k as usize])));
        }
        let one = 1f32.to_bits();
        let reciprocal = match self.e.value_of(position[3]) {
            Some(w) if w == one => position[3],
            _ => self.e.float(Op::RcpApprox, &[position[3]]),
        };
        for k in 0..2u8 {
            let steps = steps(self.version);
            let scale = self.e.uniform(UniformWord::ViewportScale { axis: k, steps });
            let scale = self.e.bitcast(Type::F32, scale);
            let scaled = self.times(position[k as usize], scale);
            let on_screen = self.times(scaled, reciprocal);
            // 4.2 rounds once more on its way to fewer steps, so it is not to round here (reference 12.3).
            let op = if self.version == Version::V42 { Op::Ffloor } else { Op::Fround };
            let whole = self.e.float(op, &[on_screen]);
            rows.push((VertexRow::Screen(k), self.e.convert(Op::Ftosi, Type::I32, whole)));
        }
        if !self.shape.binning {
            let scale = self.e.uniform(UniformWord::ViewportScale { axis: 2, steps: 1 });
            let scale = self.e.bitcast(Type::F32, scale);
            let near = self.e.uniform(UniformWord::ViewportNear);
            let near = self.e.bitcast(Type::F32, near);
            let scaled = self.times(position[2], scale);
            let z = self.times(scaled, reciprocal);
            let depth = if self.e.value_of(z) == Some(0) { near } else { self.e.fadd(z, near) };
            rows.push((VertexRow::Depth, depth));
            rows.push((VertexRow::ReciprocalW, reciprocal));
        }
        if self.shape.state.points {
            let size = match outputs.get(&(Slot::PointSize, 0)) {
                Some(&v) => v,
                None => self.e.f(1.0),
            };
            rows.push((VertexRow::PointSize, size));
        }
        if !self.shape.binning {
            for (&(slot, component), &v) in outputs {
                if is_handed_on(slot) {
                    rows.push((VertexRow::Varying(slot, component), v));
                }
            }
        }
        rows
    }

    /// A product that does without a factor of 1, and is 0 where one is.
    fn times(&mut self, a: Value, b: Value) -> Value {
        match [self.e.value_of(a), self.e.value_of(b)] {
            [Some(0), _] => a,
            [_, Some(one)] if one == 1f32.to_bits() => a,
            _ => self.e.fmul(a, b),
        }
    }

    /// A built-in of a graphics stage.
    pub fn stage_builtin(&mut self, b: Builtin) -> Result<Value> {
        let (fragment, vertex) = (self.m.stage == Stage::Fragment, self.m.stage == Stage::Vertex);
        let primitives = self.m.stage.takes_primitives();
        Ok(match b {
            Builtin::PrimitiveId if primitives => self.start(start::PRIMITIVE),
            Builtin::InvocationId if self.m.stage == Stage::Geometry && self.m.primitive.invocations == 1 => {
                self.e.i(0)
            }
            Builtin::InvocationId if self.m.stage == Stage::TessControl && self.m.primitive.vertices == 1 => {
                self.e.i(0)
            }
            Builtin::InvocationId if primitives => self.start(start::INVOCATION),
            Builtin::PatchVertices if primitives => self.e.uniform(UniformWord::PatchVertices),
            Builtin::TessCoord(k @ 0..=2) if primitives => self.start_f32(start::TESS_X + u64::from(k)),
            Builtin::VertexIndex if vertex => self.start(start::VERTEX),
            Builtin::BaseInstance if vertex => self.start(start::BASE_INSTANCE),
            Builtin::InstanceIndex if vertex => {
                let (instance, base) = (self.start(start::INSTANCE), self.start(start::BASE_INSTANCE));
                self.e.add(instance, base)
            }
            Builtin::FragCoord(k @ 0..=1) if fragment => self.start_f32(start::X + k as u64),
            Builtin::FragCoord(2) if fragment => self.start_f32(start::DEPTH),
            Builtin::FragCoord(_) if fragment => {
                let w = self.start_f32(start::W);
                self.e.float(Op::RcpApprox, &[w])
            }
            Builtin::SamplePosition(k) if fragment => {
                let x = self.start_f32(start::X + k as u64);
                let pixel = self.e.float(Op::Ffloor, &[x]);
                self.e.fsub(x, pixel)
            }
            Builtin::FrontFacing if fragment => {
                let facing = self.start(start::FACING);
                self.e.is_zero(facing)
            }
            Builtin::SampleId if fragment => self.start(start::SAMPLE),
            Builtin::SampleCount if fragment => {
                let samples = self.shape.state.samples.into();
                self.e.i(samples)
            }
            Builtin::SampleMaskIn if fragment => {
                let samples = self.start(start::SAMPLES);
                if self.shape.state.samples == 1 {
                    // One sample stands for all flags of the lane.
                    let none = self.e.is_zero(samples);
                    let (no, yes) = (self.e.i(0), self.e.i(1));
                    self.e.select(none, no, yes)
                } else {
                    samples
                }
            }
            Builtin::PointCoord(_) | Builtin::PrimitiveId if fragment => {
                let ty = b.ty();
                self.e.once(Once::Builtin(b), |e| {
                    let i = e.inst(Op::Builtin, ty, Flags::NONE, Imm::Builtin(b), &[], &[ty]);
                    e.func.insts[i].results[0]
                })
            }
            Builtin::LaneId | Builtin::SubgroupLocalId => self.e.builtin(Builtin::LaneId),
            Builtin::SubgroupSize => self.e.i(16),
            Builtin::ThreadId => self.e.builtin(b),
            _ => return self.error(format!("the built-in {b:?} is not supported in this stage yet")),
        })
    }
}

/// What a driver must know of a lowered graphics module, of which the rows are `known`.
pub(super) fn facts(m: &Module, shape: &Shape, known: Graphics) -> Result<Graphics, String> {
    let mut out = Graphics { binning: shape.binning, ..known };
    let mut words: BTreeSet<u64> = BTreeSet::new();
    let mut attributes: BTreeMap<u8, u8> = BTreeMap::new();
    let mut colors: BTreeMap<u8, (u8, bool)> = BTreeMap::new();
    let (mut discards, mut effects, mut own_depth, mut mask, mut centroid) =
        (false, false, false, false, false);
    for &b in &m.func.layout {
        for &i in &m.func.blocks[b].insts {
            let d = &m.func.insts[i];
            match (d.op, d.imm) {
                (Op::Payload, Imm::Int(n)) => _ = words.insert(n),
                (Op::Input, Imm::Io(io)) if m.stage == Stage::Vertex => {
                    if let Slot::Location(l) = io.slot {
                        let n = attributes.entry(l).or_default();
                        *n = (*n).max(io.component + 1);
                    }
                }
                (Op::Input, Imm::Io(io)) if m.stage == Stage::Fragment => {
                    centroid |= io.sampling == Sampling::Centroid;
                    out.per_sample |= io.sampling == Sampling::Sample;
                    out.varyings.push(Varying {
                        source: VaryingSource::Output(io.slot, io.component),
                        interpolation: io.interpolation,
                        sampling: io.sampling,
                    });
                }
                (Op::Builtin, Imm::Builtin(b)) => {
                    let (source, interpolation) = match b {
                        Builtin::PointCoord(k) => (VaryingSource::PointCoord(k), Interpolation::Smooth),
                        Builtin::PrimitiveId => (VaryingSource::PrimitiveId, Interpolation::Flat),
                        _ => continue,
                    };
                    out.varyings.push(Varying { source, interpolation, sampling: Sampling::Center });
                }
                (Op::Output, Imm::Io(io)) => match io.slot {
                    Slot::Location(n) => {
                        let c = colors.entry(n).or_default();
                        c.0 = c.0.max(io.component + 1);
                        c.1 |= d.ty == Type::I32;
                    }
                    Slot::FragDepth => own_depth = true,
                    Slot::SampleMask => mask = true,
                    _ => {}
                },
                (Op::Demote, _) => discards = true,
                (Op::Store, Imm::Mem(mem)) => effects |= mem.space != Space::Private,
                (Op::Atomic | Op::ImageStore | Op::ImageAtomic, _) => effects = true,
                _ => {}
            }
        }
    }
    match m.stage {
        Stage::Vertex => {
            let numbers = [
                (start::INSTANCE, VertexRow::InstanceId),
                (start::BASE_INSTANCE, VertexRow::BaseInstance),
                (start::VERTEX, VertexRow::VertexId),
            ];
            out.input_rows.extend(numbers.iter().filter(|n| words.contains(&n.0)).map(|n| n.1));
            // Hardware issue 1602 (reference 12.3): with one of these, attribute 0 is there too.
            if !out.input_rows.is_empty() && attributes.is_empty() {
                attributes.insert(0, 1);
            }
            for (&location, &n) in &attributes {
                out.input_rows.extend((0..n).map(|component| VertexRow::Attribute { location, component }));
            }
        }
        Stage::Geometry | Stage::TessControl | Stage::TessEval => {
            let rows = [
                (start::PRIMITIVE, VertexRow::PrimitiveId),
                (start::TESS_X, VertexRow::TessCoord(0)),
                (start::TESS_X + 1, VertexRow::TessCoord(1)),
                (start::TESS_X + 2, VertexRow::TessCoord(2)),
            ];
            out.input_rows.extend(rows.iter().filter(|n| words.contains(&n.0)).map(|n| n.1));
        }
        _ => {
            // The implicit ones come first: the primitive, then the point (reference 12.1).
            out.varyings.sort_by_key(|v| match v.source {
                VaryingSource::PrimitiveId => 0,
                VaryingSource::PointCoord(k) => 1 + k,
                VaryingSource::Output(..) => 3,
            });
            if out.varyings.iter().any(|v| matches!(v.source, VaryingSource::PointCoord(_))) {
                // They come as a pair.
                for k in 0..2 {
                    let source = VaryingSource::PointCoord(k);
                    if !out.varyings.iter().any(|v| v.source == source) {
                        let at = out
                            .varyings
                            .iter()
                            .position(|v| match v.source {
                                VaryingSource::PrimitiveId => false,
                                VaryingSource::PointCoord(other) => other > k,
                                VaryingSource::Output(..) => true,
                            })
                            .unwrap_or(out.varyings.len());
                        let (interpolation, sampling) = (Interpolation::Smooth, Sampling::Center);
                        out.varyings.insert(at, Varying { source, interpolation, sampling });
                    }
                }
            }
            out.per_sample |= words.contains(&start::SAMPLE);
            out.center_w = centroid
                && (words.contains(&start::W)
                    || out.varyings.iter().any(|v| {
                        v.interpolation == Interpolation::Smooth && v.sampling != Sampling::Centroid
                    }));
            for (&target, &(components, integer)) in &colors {
                let wide = match shape.state.targets.get(target as usize) {
                    Some(kempe_ir::io::TargetFormat::Word) => true,
                    _ => integer,
                };
                out.targets.push(ColorTarget { target, components, wide });
            }
            // Reference 12.4: who changes which samples are covered, or is seen to have run, decides about the depth late.
            let reads = words.contains(&start::DEPTH);
            out.late_tests = (discards || own_depth || mask || effects || reads) && !m.fragment.early_tests;
            out.writes_depth = (out.late_tests && shape.state.depth) || out.targets.is_empty();
        }
    }
    let scalars = out.varyings.len().max(out.input_rows.len());
    if scalars > MAX_SCALARS {
        return Err(format!("{scalars} scalar inputs: the hardware takes {MAX_SCALARS}"));
    }
    Ok(out)
}
