//! Programs of graphics stages: what a batch is given, what it gives, and how batches run.
//!
//! A batch is one thread. As many as the draw says are resident together and take turns as the threads of a supergroup
//! do. Contract of lanes: `docs/graphics.md`, "Lanes of a fragment program".

use super::code::Code;
use super::dispatch::{Start, Totals};
use super::patch::Primitives;
use super::thread::{Machine, Thread, whole_quads};
use super::tile::Tile;
use super::varying::Fragment;
use super::vpm::Vpm;
use super::{Fault, LANES, Lanes, Mask, Options, Outcome, Program, Scratch, UniformStream};
use crate::instr::Version;
use kempe_ir::exec::{Environment, Memory, PlacedImage};
use kempe_ir::io::{Slot, StageInputs};
use kempe_ir::sample::Sampler;
use std::sync::Arc;

/// A sampler and the address that stands for its description.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlacedSampler {
    pub state: u32,
    pub sampler: Sampler,
}

impl PlacedSampler {
    /// All samplers of an environment, the default one included.
    pub fn all(env: &Environment) -> Vec<PlacedSampler> {
        let place = |n: usize| {
            let state = env.sampler_states + 16 * n as u32;
            env.sampler_at(state).map(|sampler| PlacedSampler { state, sampler })
        };
        (0..=env.samplers.len()).filter_map(place).collect()
    }
}

/// One scalar varying of a batch: the interpolated part and the constant that is added (section 12.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Varying {
    pub part: Lanes,
    pub constant: Lanes,
}

/// Contents of a render target where the fragments of a batch are, for programs that read the tile buffer: the words in the order in
/// which they are read, with several samples one sample after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TileContents {
    pub target: u8,
    pub words: Vec<Lanes>,
}

/// Four quads of fragments: upper left, upper right, lower left, lower right of each.
///
/// What stands here for the lanes of a quad without any sample flag is not looked at: the program gets undefined values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FragmentBatch {
    /// What xcd and ycd give.
    pub x: Lanes,
    pub y: Lanes,
    /// What fxcd and fycd give, f32.
    pub fx: Lanes,
    pub fy: Lanes,
    /// Four sample flags for each lane; 0: a helper.
    pub samples: [u8; LANES],
    /// Lanes of primitives that are seen from behind.
    pub back: Mask,
    /// Payload (section 13.5): clip-space w of the fragment, of its centroid, and depth; f32.
    pub w: Lanes,
    pub w_centroid: Lanes,
    pub z: Lanes,
    /// Number of the sample, under sample-rate shading.
    pub sample: Lanes,
    /// In the order of the varying list.
    pub varyings: Vec<Varying>,
    pub tile: Vec<TileContents>,
}

impl FragmentBatch {
    /// The fragments of a draw in batches, with the varyings in the order of the list. Start words have the numbers of
    /// `docs/graphics.md`; without sample flags among them every fragment that is no helper has all samples.
    pub fn all(inputs: &StageInputs, varyings: &[(Slot, u8)]) -> Vec<FragmentBatch> {
        let count = inputs.invocations as usize;
        (0..count.div_ceil(LANES)).map(|n| FragmentBatch::one(inputs, varyings, n * LANES)).collect()
    }

    fn one(inputs: &StageInputs, varyings: &[(Slot, u8)], first: usize) -> FragmentBatch {
        let lanes = |list: Option<&Vec<u32>>, missing: u32| -> Lanes {
            std::array::from_fn(|i| list.and_then(|l| l.get(first + i)).copied().unwrap_or(missing))
        };
        let start = |number: u32, missing: u32| lanes(inputs.payload.get(&number), missing);
        let (fx, fy) = (start(3, 0), start(4, 0));
        let pixel = |v: Lanes| v.map(|bits| f32::from_bits(bits).floor() as i32 as u32);
        let (facing, flags) = (start(5, 0), start(6, 15));
        let helps = |i: usize| {
            first + i >= inputs.invocations as usize || inputs.helpers.get(first + i) == Some(&true)
        };
        let varying = |place: &(Slot, u8)| {
            let plane = inputs.planes.get(place);
            Varying { part: lanes(plane.map(|p| &p.part), 0), constant: lanes(plane.map(|p| &p.constant), 0) }
        };
        FragmentBatch {
            x: pixel(fx),
            y: pixel(fy),
            fx,
            fy,
            samples: std::array::from_fn(|i| if helps(i) { 0 } else { flags[i] as u8 & 15 }),
            back: super::alu::mask(|i| facing[i] != 0),
            w: start(0, 0),
            w_centroid: start(1, 0),
            z: start(2, 0),
            sample: start(7, 0),
            varyings: varyings.iter().map(varying).collect(),
            tile: Vec::new(),
        }
    }

    /// Lanes that belong to a quad with a sample flag.
    pub fn live(&self) -> Mask {
        whole_quads(self.covered())
    }

    /// Lanes with a sample flag.
    pub fn covered(&self) -> Mask {
        (0..LANES).fold(0, |m, i| m | Mask::from(self.samples[i] & 15 != 0) << i)
    }
}

/// Up to sixteen vertices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VertexBatch {
    /// Lanes that have a vertex.
    pub lanes: Mask,
    /// Input rows of the VPM from row 0 on.
    pub rows: Vec<Lanes>,
    /// Of geometry and tessellation: the primitive or patch of each lane, and the number of its invocation.
    pub primitive: Lanes,
    pub invocation: Lanes,
}

impl VertexBatch {
    /// So many vertices in batches; each row of the VPM has a word for every vertex (missing ones are 0).
    pub fn all(vertices: u32, rows: &[Vec<u32>]) -> Vec<VertexBatch> {
        let count = vertices as usize;
        let one = |first: usize| VertexBatch {
            lanes: super::alu::mask(|i| first + i < count),
            rows: rows
                .iter()
                .map(|row| std::array::from_fn(|i| row.get(first + i).copied().unwrap_or(0)))
                .collect(),
            ..VertexBatch::default()
        };
        (0..count.div_ceil(LANES)).map(|n| one(n * LANES)).collect()
    }
}

/// What to run the batches with.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Draw {
    pub scratch: Option<Scratch>,
    /// What the texture unit finds at the addresses of texture states, and of sampler states.
    pub images: Vec<PlacedImage>,
    pub samplers: Vec<PlacedSampler>,
    /// Batches that are resident together; 0: as many as the chip has threads.
    pub together: u32,
    /// Fragments: the scoreboard lock is taken at the first thread switch, not at the last (section 13.4).
    pub scoreboard_on_first: bool,
    /// Vertices: rows of the segment that inputs and outputs share; 0: 128.
    pub segment_rows: u32,
    /// Of geometry and tessellation.
    pub primitives: Option<Arc<Primitives>>,
}

impl Draw {
    /// Images and samplers of an environment.
    pub fn new(env: &Environment) -> Draw {
        Draw { images: env.images.clone(), samplers: PlacedSampler::all(env), ..Draw::default() }
    }
}

/// What a write to the tile buffer was configured as (section 12.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileKind {
    /// Pairs of f16; `swapped`: the first component of a pair is the low half (what the default configuration says).
    Half {
        target: u8,
        components: u8,
        swapped: bool,
    },
    /// A word for each component.
    Word {
        target: u8,
        components: u8,
    },
    /// Depth; not `own`: what the front end has, whatever the word is.
    Depth {
        own: bool,
    },
    Stencil {
        own: bool,
    },
}

impl TileKind {
    /// Words of one sample.
    pub fn words(self) -> usize {
        match self {
            TileKind::Half { components, .. } => usize::from(components.div_ceil(2)),
            TileKind::Word { components, .. } => usize::from(components),
            TileKind::Depth { .. } | TileKind::Stencil { .. } => 1,
        }
    }

    pub fn target(self) -> Option<u8> {
        match self {
            TileKind::Half { target, .. } | TileKind::Word { target, .. } => Some(target),
            _ => None,
        }
    }
}

/// One word that went to the tile buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileWord {
    pub words: Lanes,
    /// Lanes that wrote: selected by the condition, and with sample flags then.
    pub lanes: Mask,
    /// Of these, lanes whose word is undefined.
    pub poison: Mask,
    /// The sample flags at that moment.
    pub samples: [u8; LANES],
}

/// All words of one configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileWrite {
    pub kind: TileKind,
    /// The words are those of sample 0, then of samples 1 to 3; else they are for all samples.
    pub per_sample: bool,
    pub words: Vec<TileWord>,
}

impl TileWrite {
    /// A component of a lane, f32 for pairs of halves. `None`: not written, or undefined.
    pub fn component(&self, sample: usize, component: usize, lane: usize) -> Option<u32> {
        let first = if self.per_sample { sample * self.kind.words() } else { 0 };
        let at = match self.kind {
            TileKind::Half { components, .. } if component < usize::from(components) => component / 2,
            TileKind::Word { components, .. } if component < usize::from(components) => component,
            TileKind::Depth { own: true } | TileKind::Stencil { own: true } if component == 0 => 0,
            _ => return None,
        };
        let word = self.words.get(first + at)?;
        if (word.lanes & !word.poison) >> (lane % LANES) & 1 == 0 {
            return None;
        }
        let bits = word.words[lane % LANES];
        Some(match self.kind {
            TileKind::Half { swapped, .. } => {
                let high = (component % 2 == 1) == swapped;
                kempe_ir::eval::f16_to_f32((bits >> if high { 16 } else { 0 }) as u16)
            }
            _ => bits,
        })
    }
}

/// What a batch of fragments gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FragmentOutput {
    /// Writes to the tile buffer in their order.
    pub tile: Vec<TileWrite>,
    /// The sample flags at the end.
    pub samples: [u8; LANES],
    /// The program came to its end.
    pub ended: bool,
}

/// The depth of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Nothing was written: that of the front end.
    Early,
    /// The program wrote it unmodified.
    Unmodified,
    /// Its own, or undefined bits.
    Own(Option<u32>),
}

impl FragmentOutput {
    /// The last write to a render target.
    pub fn color(&self, target: u8) -> Option<&TileWrite> {
        self.tile.iter().rev().find(|w| w.kind.target() == Some(target))
    }

    /// The depth of a lane.
    pub fn depth(&self, lane: usize) -> Depth {
        let written = |w: &&TileWrite| {
            matches!(w.kind, TileKind::Depth { .. })
                && w.words.iter().any(|word| word.lanes >> (lane % LANES) & 1 != 0)
        };
        match self.tile.iter().rev().find(written) {
            None => Depth::Early,
            Some(w) if w.kind == (TileKind::Depth { own: false }) => Depth::Unmodified,
            Some(w) => Depth::Own(w.component(0, 0, lane)),
        }
    }
}

/// An output row of the VPM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VpmRow {
    pub words: Lanes,
    /// Lanes that wrote it.
    pub written: Mask,
    /// Of these, lanes whose word is undefined.
    pub poison: Mask,
}

impl VpmRow {
    /// `None`: not written, or undefined.
    pub fn get(&self, lane: usize) -> Option<u32> {
        let lane = lane % LANES;
        ((self.written & !self.poison) >> lane & 1 != 0).then_some(self.words[lane])
    }
}

/// What a batch of vertices gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VertexOutput {
    /// Rows from row 0 on, up to the last one that was written.
    pub rows: Vec<VpmRow>,
    /// Of a control program: the same of patches, in all lanes of each.
    pub patch: Vec<VpmRow>,
    /// The program came to its end.
    pub ended: bool,
}

/// A run of fragment batches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FragmentRun {
    pub outcome: Outcome,
    /// As far as each batch came.
    pub batches: Vec<FragmentOutput>,
}

/// A run of vertex batches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VertexRun {
    pub outcome: Outcome,
    /// As far as each batch came.
    pub batches: Vec<VertexOutput>,
}

/// What a thread of a graphics stage has besides registers.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Fragment(Box<Fragment>),
    Vertex(Box<Vpm>),
}

impl Program {
    /// A vertex or fragment program of one piece at address 0.
    pub fn graphics(version: Version, words: Vec<u64>, uniforms: Vec<u32>, threads: u32) -> Program {
        let mut program = Program::new(version, words, Vec::new(), threads, [LANES as u32, 1, 1]);
        program.uniforms = UniformStream::Words(uniforms);
        program
    }
}

impl Code {
    /// Runs batches of fragments. Memory is changed as far as the run came.
    pub fn run_fragments(
        &self,
        batches: &[FragmentBatch],
        draw: &Draw,
        memory: &mut Memory,
        options: &Options,
    ) -> FragmentRun {
        let mut outputs = vec![FragmentOutput::default(); batches.len()];
        let start = |n: usize, thread: &mut Thread| {
            let batch = &batches[n];
            thread.set_samples(batch.samples);
            let [w, centroid, z] = match self.version {
                Version::V42 => [0, 1, 2],
                Version::V71 => [3, 1, 2],
            };
            for (row, words) in [(w, batch.w), (centroid, batch.w_centroid), (z, batch.z)] {
                thread.set_start(row, words, !batch.live());
            }
            let tile = Tile::new(self.version, draw.scoreboard_on_first);
            thread.stage = Some(Stage::Fragment(Box::new(Fragment::new(batch, tile))));
        };
        let outcome = self.run_stage(batches.len(), draw, memory, options, start, |n, thread| {
            outputs[n].samples = thread.sample_flags;
            outputs[n].ended = thread.done;
            if let Some(Stage::Fragment(f)) = thread.stage.take() {
                outputs[n].tile = f.tile.written;
            }
        });
        FragmentRun { outcome, batches: outputs }
    }

    /// Runs batches of vertices, or of invocations of a geometry or tessellation program. Memory is changed as far as the run came.
    pub fn run_vertices(
        &self,
        batches: &[VertexBatch],
        draw: &Draw,
        memory: &mut Memory,
        options: &Options,
    ) -> VertexRun {
        let mut outputs = vec![VertexOutput::default(); batches.len()];
        let start = |n: usize, thread: &mut Thread| {
            thread.set_covered(batches[n].lanes);
            thread.stage = Some(Stage::Vertex(Box::new(Vpm::new(&batches[n], draw))));
        };
        let outcome = self.run_stage(batches.len(), draw, memory, options, start, |n, thread| {
            outputs[n].ended = thread.done;
            if let Some(Stage::Vertex(vpm)) = thread.stage.take() {
                [outputs[n].rows, outputs[n].patch] = vpm.outputs();
            }
        });
        VertexRun { outcome, batches: outputs }
    }

    /// Runs the batches in groups that are resident together.
    fn run_stage(
        &self,
        batches: usize,
        draw: &Draw,
        memory: &mut Memory,
        options: &Options,
        prepare: impl Fn(usize, &mut Thread),
        mut collect: impl FnMut(usize, &mut Thread),
    ) -> Outcome {
        let mut machine = Machine::new(self, memory, options, draw.scratch);
        machine.images = &draw.images;
        machine.samplers = &draw.samplers;
        let mut totals = Totals::default();
        let start = Start { version: self.version, threads: self.threads };
        let mut run = || -> Result<(), Fault> {
            let entry = self.entry_word()?;
            let most = start.resident();
            let together = match draw.together {
                0 => most,
                n if n <= most => n,
                n => {
                    let message = format!("{n} batches together, but only {most} threads");
                    return Err(Fault::dispatch(message));
                }
            };
            for first in (0..batches).step_by(together as usize) {
                let count = (batches - first).min(together as usize);
                // Nobody may rely on what another thread left.
                machine.scratch_poison.fill(true);
                let mut threads: Vec<Thread> = (0..count)
                    .map(|k| {
                        let mut thread = Thread::new(self);
                        thread.pc = entry;
                        thread.tidx = start.thread_id_of(k as u32);
                        thread.supergroup = (first / together as usize) as u64;
                        thread.batch = (first + k) as u32;
                        prepare(first + k, &mut thread);
                        thread
                    })
                    .collect();
                let result = self.run_threads(&mut threads, &mut machine);
                totals.add(&threads);
                for (k, thread) in threads.iter_mut().enumerate() {
                    collect(first + k, thread);
                }
                result?;
            }
            Ok(())
        };
        let result = run();
        machine.outcome(result, totals)
    }
}
