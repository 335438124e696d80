//! Programs of graphics stages of V3D: what invocations are given in the form of the hardware, and what they give in that of the
//! interface (`docs/graphics.md`).

use super::{V3d, primitives, report, sim_options};
use crate::run::{self, RunError, RunOptions, StageRun};
use crate::target::Target;
use kempe_ir::exec::{Inputs, LANES, Sizes};
use kempe_ir::io::start;
use kempe_ir::io::{IoImm, Slot, StageInputs, StageOutputs};
use kempe_ir::{Builtin, Module, Stage, eval, interp};
use kempe_mir::{Artifact, Graphics, Varying, VaryingSource, VertexRow};
use kempe_v3d::sim::graphics::{
    self as sim, Depth, Draw, FragmentBatch, FragmentOutput, VertexBatch, VertexOutput,
};
use kempe_v3d::sim::{Code, Lanes, Program, Scratch, Start};
use std::collections::BTreeMap;

/// Start words that the inputs do not name follow from the built-ins.
fn with_start_words(stage: Stage, given: &StageInputs) -> StageInputs {
    let mut all = given.clone();
    let n = given.invocations as usize;
    let builtin = |b: Builtin| given.builtins.get(&b).cloned();
    let zeros = vec![0; n];
    let mut set = |word: u64, list: Vec<u32>| {
        all.payload.entry(word as u32).or_insert(list);
    };
    match stage {
        Stage::Compute => {}
        Stage::Geometry | Stage::TessControl | Stage::TessEval => {
            set(start::PRIMITIVE, builtin(Builtin::PrimitiveId).unwrap_or_else(|| zeros.clone()));
            set(start::INVOCATION, builtin(Builtin::InvocationId).unwrap_or_else(|| zeros.clone()));
            for k in 0..3u8 {
                let list = builtin(Builtin::TessCoord(k)).unwrap_or_else(|| zeros.clone());
                set(start::TESS_X + u64::from(k), list);
            }
        }
        Stage::Vertex => {
            let base = builtin(Builtin::BaseInstance).unwrap_or_else(|| zeros.clone());
            let instance = builtin(Builtin::InstanceIndex).unwrap_or_else(|| zeros.clone());
            let own = instance.iter().zip(&base).map(|(i, b)| i.wrapping_sub(*b)).collect();
            set(start::INSTANCE, own);
            set(start::BASE_INSTANCE, base);
            set(start::VERTEX, builtin(Builtin::VertexIndex).unwrap_or(zeros));
        }
        Stage::Fragment => {
            let ones = vec![1f32.to_bits(); n];
            let reciprocal = |list: Vec<u32>| -> Vec<u32> {
                list.into_iter().map(|w| eval::f32_result(1.0 / f32::from_bits(w))).collect()
            };
            let w = builtin(Builtin::FragCoord(3)).map_or(ones, reciprocal);
            set(start::CENTROID_W, w.clone());
            set(start::W, w);
            set(start::DEPTH, builtin(Builtin::FragCoord(2)).unwrap_or_else(|| zeros.clone()));
            for k in 0..2u8 {
                let x = builtin(Builtin::FragCoord(k)).unwrap_or_else(|| zeros.clone());
                set(start::X + u64::from(k), x);
            }
            let front = builtin(Builtin::FrontFacing).unwrap_or_else(|| vec![1; n]);
            set(start::FACING, front.into_iter().map(|f| u32::from(f == 0)).collect());
            let helper = |k: usize| given.helpers.get(k) == Some(&true);
            set(start::SAMPLES, (0..n).map(|k| if helper(k) { 0 } else { start::COVERED }).collect());
            set(start::SAMPLE, builtin(Builtin::SampleId).unwrap_or(zeros));
        }
    }
    all
}

fn facts(artifact: &Artifact) -> Result<&Graphics, RunError> {
    let missing = || RunError::Setup("the artifact is no program of a graphics stage".to_owned());
    artifact.graphics.as_ref().ok_or_else(missing)
}

fn stage_of(inputs: &Inputs) -> Result<&StageInputs, RunError> {
    inputs.stage.as_ref().ok_or_else(|| RunError::Setup("no invocations are given".to_owned()))
}

/// The words of a batch; what is not there is 0.
pub(super) fn lanes(list: Option<&Vec<u32>>, first: usize) -> Lanes {
    std::array::from_fn(|k| list.and_then(|l| l.get(first + k)).copied().unwrap_or(0))
}

fn plane(v: &Varying, stage: &StageInputs, first: usize) -> sim::Varying {
    let constant = |list| sim::Varying { part: [0; LANES], constant: lanes(list, first) };
    match v.source {
        VaryingSource::Output(slot, component) => match stage.planes.get(&(slot, component)) {
            Some(p) => {
                sim::Varying { part: lanes(Some(&p.part), first), constant: lanes(Some(&p.constant), first) }
            }
            None => constant(stage.values.get(&(slot, component))),
        },
        VaryingSource::PrimitiveId => constant(stage.builtins.get(&Builtin::PrimitiveId)),
        VaryingSource::PointCoord(k) => constant(stage.builtins.get(&Builtin::PointCoord(k))),
    }
}

fn fragments(facts: &Graphics, stage: &StageInputs) -> Vec<FragmentBatch> {
    let n = stage.invocations as usize;
    let batch = |first: usize| {
        let word = |w: u64| lanes(stage.payload.get(&(w as u32)), first);
        let pixel = |words: Lanes| words.map(|w| f32::from_bits(w).floor() as i32 as u32);
        let (fx, fy) = (word(start::X), word(start::X + 1));
        let samples = word(start::SAMPLES);
        let lives = |k: usize| first + k < n && stage.helpers.get(first + k) != Some(&true);
        FragmentBatch {
            x: pixel(fx),
            y: pixel(fy),
            fx,
            fy,
            samples: std::array::from_fn(
                |k| if lives(k) { samples[k] as u8 & start::COVERED as u8 } else { 0 },
            ),
            back: word(start::FACING).iter().enumerate().fold(0, |m, (k, f)| m | u16::from(*f != 0) << k),
            w: word(start::W),
            w_centroid: word(start::CENTROID_W),
            z: word(start::DEPTH),
            sample: word(start::SAMPLE),
            varyings: facts.varyings.iter().map(|v| plane(v, stage, first)).collect(),
            tile: Vec::new(),
        }
    };
    (0..n).step_by(LANES).map(batch).collect()
}

fn vertices(facts: &Graphics, stage: &StageInputs) -> Vec<VertexBatch> {
    let n = stage.invocations as usize;
    let batch = |first: usize| {
        let row = |row: &VertexRow| {
            let list = match *row {
                VertexRow::InstanceId => stage.payload.get(&(start::INSTANCE as u32)),
                VertexRow::BaseInstance => stage.payload.get(&(start::BASE_INSTANCE as u32)),
                VertexRow::VertexId => stage.payload.get(&(start::VERTEX as u32)),
                VertexRow::Attribute { location, component } => {
                    stage.values.get(&(Slot::Location(location), component))
                }
                _ => None,
            };
            lanes(list, first)
        };
        VertexBatch {
            lanes: (0..LANES).fold(0, |m, k| m | u16::from(first + k < n) << k),
            rows: facts.input_rows.iter().map(row).collect(),
            ..VertexBatch::default()
        }
    };
    (0..n).step_by(LANES).map(batch).collect()
}

/// A colour as the program hands it on.
fn handed_on(facts: &Graphics, slot: Slot, v: u32) -> u32 {
    match slot {
        Slot::Location(n) if facts.targets.iter().any(|t| t.target == n && !t.wide) => {
            eval::f16_to_f32(eval::f32_to_f16(v))
        }
        _ => v,
    }
}

/// What fragments gave, in the form of the interface.
fn fragment_outputs(facts: &Graphics, n: usize, batches: &[FragmentOutput]) -> StageOutputs {
    let mut out = StageOutputs { helpers: vec![false; n], ..StageOutputs::default() };
    for (b, batch) in batches.iter().enumerate() {
        for lane in 0..LANES.min(n.saturating_sub(b * LANES)) {
            let at = b * LANES + lane;
            out.helpers[at] = batch.samples[lane] & start::COVERED as u8 == 0;
            let mut set = |slot, component, v: Option<u32>| {
                let list = out.values.entry((slot, component, 0)).or_insert_with(|| vec![None; n]);
                list[at] = v;
            };
            for t in &facts.targets {
                for c in 0..t.components {
                    let v = batch.color(t.target).and_then(|w| w.component(0, c.into(), lane));
                    set(Slot::Location(t.target), c, v);
                }
            }
            if let Depth::Own(v) = batch.depth(lane) {
                set(Slot::FragDepth, 0, v);
            }
        }
    }
    out
}

/// The place in the interface that a row has.
pub(super) fn place(row: VertexRow) -> Option<(Slot, u8)> {
    match row {
        VertexRow::Clip(k) => Some((Slot::Position, k)),
        VertexRow::PointSize => Some((Slot::PointSize, 0)),
        VertexRow::Varying(slot, k) => Some((slot, k)),
        _ => None,
    }
}

/// Rows of a vertex program by what they hold, and what of it belongs to the interface.
pub(super) fn vertex_outputs(
    facts: &Graphics,
    n: usize,
    word: impl Fn(usize, usize) -> Option<u32>,
) -> (StageOutputs, BTreeMap<VertexRow, Vec<Option<u32>>>) {
    let mut out = StageOutputs { helpers: vec![false; n], ..StageOutputs::default() };
    let mut rows = BTreeMap::new();
    for (r, &row) in facts.output_rows.iter().enumerate() {
        let list: Vec<Option<u32>> = (0..n).map(|at| word(r, at)).collect();
        if let Some((slot, component)) = place(row) {
            out.values.insert((slot, component, 0), list.clone());
        }
        rows.insert(row, list);
    }
    (out, rows)
}

impl V3d {
    /// Runs a vertex or fragment program on the simulator.
    pub(super) fn simulate_stage(
        &self,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        let facts = facts(artifact)?;
        let stage = with_start_words(artifact.stage, stage_of(inputs)?);
        let n = stage.invocations as usize;
        let start = Start { version: self.0, threads: artifact.threads };
        let scratch_bytes = artifact.scratch_bytes;
        let sizes = Sizes {
            wgs_per_supergroup: 1,
            scratch_bytes_per_thread: scratch_bytes,
            threads: if scratch_bytes == 0 { 0 } else { start.scratch_threads() },
        };
        let mut environment = run::environment(artifact, inputs, sizes)?;
        let words = run::uniform_words(artifact, &environment);
        let mut program =
            Program::graphics(self.0, kempe_mir::words_of_code(&artifact.code), words, artifact.threads);
        program.single_segment = artifact.single_section;
        let mut draw = Draw::new(&environment);
        if scratch_bytes != 0 {
            draw.scratch = Some(Scratch { base: environment.scratch_base, bytes_per_thread: scratch_bytes });
        }
        let mut memory = std::mem::take(&mut environment.memory);
        let code = Code::new(&program);
        let how = sim_options(options);
        let (outcome, outputs, rows) = match artifact.stage {
            Stage::Fragment => {
                let run = code.run_fragments(&fragments(facts, &stage), &draw, &mut memory, &how);
                (run.outcome, fragment_outputs(facts, n, &run.batches), BTreeMap::new())
            }
            Stage::Geometry | Stage::TessControl | Stage::TessEval => {
                let (batches, primitives) = primitives::batches(facts, artifact.stage, &stage);
                draw.segment_rows = primitives::segment_rows(facts, artifact.stage);
                draw.primitives = Some(primitives);
                let run = code.run_vertices(&batches, &draw, &mut memory, &how);
                let word = |at: usize, patch: bool, r: usize| {
                    let batch: &VertexOutput = run.batches.get(at / primitives::width(facts))?;
                    let rows = if patch { &batch.patch } else { &batch.rows };
                    rows.get(r)?.get(at % primitives::width(facts))
                };
                // What went wrong there is said first.
                let outputs = match &run.outcome.result {
                    Ok(()) => primitives::outputs(facts, artifact.stage, &stage, word)?,
                    Err(_) => Default::default(),
                };
                (run.outcome, outputs.0, outputs.1)
            }
            _ => {
                draw.segment_rows = facts.input_rows.len().max(facts.output_rows.len()).max(1) as u32;
                let run = code.run_vertices(&vertices(facts, &stage), &draw, &mut memory, &how);
                let word = |r: usize, at: usize| {
                    let batch: &VertexOutput = run.batches.get(at / LANES)?;
                    batch.rows.get(r)?.get(at % LANES)
                };
                let (outputs, rows) = vertex_outputs(facts, n, word);
                (run.outcome, outputs, rows)
            }
        };
        outcome.result.clone().map_err(|fault| self.program_error(artifact, &fault))?;
        let report = run::RunReport { buffers: run::outputs(&environment, &memory), ..report(&outcome) };
        Ok(StageRun { outputs, rows, report })
    }

    /// Runs the lowered program with the interpreter; what it gives is what the simulator must give.
    pub(super) fn interpret_lowered_stage(
        &self,
        lowered: &Module,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        let facts = facts(artifact)?;
        let stage = with_start_words(artifact.stage, stage_of(inputs)?);
        let n = stage.invocations as usize;
        let mut inputs = inputs.clone();
        let given_stage = stage.clone();
        inputs.stage = Some(primitives::in_rows(facts, artifact.stage, stage));
        let start = Start { version: self.0, threads: artifact.threads };
        let how = interp::Options { step_limit: options.step_limit, ..interp::Options::machine(&start) };
        let (report, given) = run::interpreted(lowered, &inputs, self.sizes(artifact)?, &how)?;
        let given = given.ok_or_else(|| RunError::Setup("is no program of a graphics stage".to_owned()))?;
        if artifact.stage.takes_primitives() {
            let word = |at: usize, patch: bool, r: usize| -> Option<u32> {
                let row = Slot::Row(r as u16);
                match patch {
                    true => {
                        let of = *given_stage.primitives.get(at)? as usize;
                        *given.patch_values.get(&(row, 0))?.get(of)?
                    }
                    false => *given.values.get(&(row, 0, 0))?.get(at)?,
                }
            };
            let (outputs, rows) = primitives::outputs(facts, artifact.stage, &given_stage, word)?;
            return Ok(StageRun { outputs, rows, report });
        }
        if artifact.stage == Stage::Vertex {
            let word = |r: usize, at: usize| {
                let io = IoImm::new(Slot::Row(r as u16), 0);
                *given.values.get(&(io.slot, 0, 0))?.get(at)?
            };
            let (outputs, rows) = vertex_outputs(facts, n, word);
            return Ok(StageRun { outputs, rows, report });
        }
        let mut outputs = StageOutputs { helpers: given.helpers.clone(), ..StageOutputs::default() };
        // What fills up a colour is nobody's value.
        for t in &facts.targets {
            for c in 0..t.components {
                outputs.values.insert((Slot::Location(t.target), c, 0), vec![None; n]);
            }
        }
        for (&(slot, component, index), list) in &given.values {
            // Tests that come early have no use for a depth.
            if slot == Slot::FragDepth && !facts.writes_depth {
                continue;
            }
            if slot == Slot::SampleMask {
                for (at, v) in list.iter().enumerate() {
                    // One sample for all flags.
                    outputs.helpers[at] |= v.is_some_and(|v| v & 1 == 0);
                }
                continue;
            }
            let list = list.iter().map(|v| v.map(|v| handed_on(facts, slot, v))).collect();
            outputs.values.insert((slot, component, index), list);
        }
        Ok(StageRun { outputs, rows: BTreeMap::new(), report })
    }
}
