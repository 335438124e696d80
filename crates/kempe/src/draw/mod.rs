//! Drawing: triangles through a vertex and a fragment program into a surface.
//!
//! What runs the programs is an [`Executor`]: the interpreter on the source form, or a target. Everything between the stages is
//! here and the same for all: clipping, planes, coverage, tests, rounding.
//!
//! * [`mesh`], [`texture`], [`matrix`], [`picture`]: what goes in and comes out
//! * [`raster`]: from corners to quads
//! * [`executor`]: who runs the programs
//! * [`scene`]: several draws and passes from a description; [`bind`]: what they are bound to
//!
//! Depth is tested after the fragment program has run (less or equal), which gives the same picture; what a program stores to
//! memory is not kept. There is no blending: a fragment replaces what is there.

pub mod bind;
pub mod executor;
pub mod matrix;
pub mod mesh;
pub mod picture;
pub mod raster;
pub mod scene;
pub mod texture;

use crate::run::{RunError, StageRun};
use executor::Executor;
use kempe_ir::Builtin;
use kempe_ir::exec::{Inputs, LANES};
use kempe_ir::io::{Interpolation, Plane, Sampling, Slot, StageInputs, StageOutputs, Viewport};
use kempe_mir::VertexRow;
use picture::Surface;
use raster::{Corner, Cull, Quad, Setup};

/// Most vertices of a draw, all instances together.
pub const MAX_VERTICES: u64 = 1 << 21;

/// Most fragments of a draw, helpers counted.
pub const MAX_FRAGMENTS: u64 = 1 << 27;

/// Fragments that are run together.
const CHUNK: usize = 1 << 14;

/// The interface that shaders were written for.
///
/// Both agree on which row of pixels is y = -1. Vulkan counts rows from the top, OpenGL from the bottom, so what turns one way in
/// one turns the other way in the other. What is not interpolated comes from the first vertex in Vulkan, from the last in OpenGL.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Space {
    /// Depth in clip space from 0 to w.
    #[default]
    Vulkan,
    /// Depth in clip space from -w to w.
    OpenGl,
}

/// Pixels of a rectangle: left, top, right, bottom (these two not included).
pub type Region = [u32; 4];

/// One draw.
pub struct Draw<'a> {
    pub vertex: &'a dyn Executor,
    pub fragment: &'a dyn Executor,
    /// What the stages are bound to, without [`Inputs::stage`].
    pub vertex_inputs: Inputs,
    pub fragment_inputs: Inputs,
    /// Of one instance.
    pub vertices: u32,
    pub triangles: &'a [[u32; 3]],
    /// By location of the vertex shader: four words for each vertex of an instance.
    pub attributes: Vec<(u8, Vec<[u32; 4]>)>,
    pub instances: u32,
    pub space: Space,
    /// The pixels that anybody will look at, if not all: nothing else need be drawn.
    pub region: Option<Region>,
    pub cull: Cull,
    pub depth_test: bool,
    pub depth_write: bool,
}

/// What a draw took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub vertices: u64,
    pub triangles: u64,
    /// Invocations of the fragment shader, helpers counted.
    pub fragments: u64,
    /// Instructions of both stages.
    pub instructions: u64,
}

/// A varying between the stages.
struct Varying {
    slot: Slot,
    component: u8,
    interpolation: Interpolation,
    /// By vertex; undefined ones are 0.
    values: Vec<u32>,
}

/// Draws into a surface.
///
/// # Errors
/// When a stage cannot be run, or there is too much to draw.
pub fn draw(d: &Draw, surface: &mut Surface) -> Result<Counts, RunError> {
    let mut counts = Counts::default();
    let size = [surface.width, surface.height];
    let viewport = Viewport { extent: size.map(|s| s as f32), depth: [0.0, 1.0] };
    let per_instance = u64::from(d.vertices);
    let vertices = per_instance * u64::from(d.instances);
    if vertices > MAX_VERTICES {
        return setup(format!("{vertices} vertices are more than {MAX_VERTICES}"));
    }
    let mut inputs = Inputs { viewport, ..d.vertex_inputs.clone() };
    inputs.stage = Some(vertex_stage(d, vertices as usize));
    let run = d.vertex.run(&inputs)?;
    counts.vertices = vertices;
    counts.instructions += run.report.instructions;
    let mut corners = corners(&run, vertices as usize);
    if d.space == Space::OpenGl {
        for c in &mut corners {
            c.clip[2] = (c.clip[2] + c.clip[3]) * 0.5;
        }
    }
    let cull = match (d.space, d.cull) {
        (Space::OpenGl, Cull::Back) => Cull::Front,
        (Space::OpenGl, Cull::Front) => Cull::Back,
        (_, cull) => cull,
    };
    let looked_at = |q: &Quad| {
        d.region.is_none_or(|[left, top, right, bottom]| {
            q.x + 1 >= left && q.x < right && q.y + 1 >= top && q.y < bottom
        })
    };
    let varyings = varyings(d, &run, vertices as usize);
    let mut batch = Batch::new(d, &varyings, viewport);
    for instance in 0..u64::from(d.instances) {
        for (n, triangle) in d.triangles.iter().enumerate() {
            let [a, b, c] = *triangle;
            let first = if d.space == Space::OpenGl { [c, a, b] } else { [a, b, c] };
            let at = first.map(|k| instance * per_instance + u64::from(k));
            let three = at.map(|k| corners.get(k as usize).copied());
            let [Some(a), Some(b), Some(c)] = three else {
                return setup("a triangle has a vertex that is not there".to_owned());
            };
            counts.triangles += 1;
            let Some(mut primitive) = Setup::new(&[a, b, c], size, cull) else { continue };
            primitive.front ^= d.space == Space::OpenGl;
            let mut quads = Vec::new();
            primitive.quads(|q| quads.extend(looked_at(&q).then_some(q)));
            for four in quads.chunks(LANES / 4) {
                batch.push(&primitive, at, n as u32, four);
                if batch.len() >= CHUNK {
                    batch.flush(surface, &mut counts)?;
                }
            }
        }
    }
    batch.flush(surface, &mut counts)?;
    Ok(counts)
}

fn setup<T>(message: String) -> Result<T, RunError> {
    Err(RunError::Setup(message))
}

/// What the vertices are given.
fn vertex_stage(d: &Draw, count: usize) -> StageInputs {
    let mut stage = StageInputs { invocations: count as u32, ..StageInputs::default() };
    let each = d.vertices.max(1) as usize;
    for (location, list) in &d.attributes {
        for k in 0..4 {
            let one = |n: usize| list.get(n % each).map_or(0, |v| v[k]);
            stage.values.insert((Slot::Location(*location), k as u8), (0..count).map(one).collect());
        }
    }
    stage.builtins.insert(Builtin::VertexIndex, (0..count).map(|n| (n % each) as u32).collect());
    stage.builtins.insert(Builtin::InstanceIndex, (0..count).map(|n| (n / each) as u32).collect());
    for builtin in [Builtin::BaseVertex, Builtin::BaseInstance, Builtin::DrawIndex] {
        stage.builtins.insert(builtin, vec![0; count]);
    }
    stage
}

/// Scalars of one place that a vertex stage gave: from the interface, or from the rows of a machine.
fn given(run: &StageRun, slot: Slot, component: u8, row: VertexRow, count: usize) -> Vec<u32> {
    match (run.outputs.values.get(&(slot, component, 0)), run.rows.get(&row)) {
        (Some(list), _) => (0..count).map(|n| list.get(n).copied().flatten().unwrap_or(0)).collect(),
        (None, Some(list)) => (0..count).map(|n| list.get(n).copied().flatten().unwrap_or(0)).collect(),
        (None, None) => vec![0; count],
    }
}

fn corners(run: &StageRun, count: usize) -> Vec<Corner> {
    let clip = [0, 1, 2, 3].map(|k| given(run, Slot::Position, k, VertexRow::Clip(k), count));
    let screen = [0, 1].map(|k| run.rows.get(&VertexRow::Screen(k)));
    let corner = |n: usize| Corner {
        clip: [0, 1, 2, 3].map(|k: usize| f32::from_bits(clip[k][n])),
        screen: match screen {
            [Some(x), Some(y)] => {
                let at = |list: &Vec<Option<u32>>| list.get(n).copied().flatten().map(|v| v as i32);
                at(x).zip(at(y)).map(|(x, y)| [x, y])
            }
            _ => None,
        },
    };
    (0..count).map(corner).collect()
}

fn varyings(d: &Draw, run: &StageRun, count: usize) -> Vec<Varying> {
    let mut out: Vec<Varying> = Vec::new();
    for io in d.fragment.inputs() {
        if out.iter().any(|v| (v.slot, v.component) == (io.slot, io.component)) {
            continue;
        }
        let row = VertexRow::Varying(io.slot, io.component);
        let values = given(run, io.slot, io.component, row, count);
        // With one sample every place in the pixel is its centre.
        debug_assert!(matches!(io.sampling, Sampling::Center | Sampling::Centroid | Sampling::Sample));
        out.push(Varying { slot: io.slot, component: io.component, interpolation: io.interpolation, values });
    }
    out
}

/// A fragment that waits for its colours.
#[derive(Clone, Copy)]
struct Place {
    pixel: usize,
    depth: f32,
}

/// Fragments that are run together: batches of [`LANES`], each of one primitive.
struct Batch<'a> {
    d: &'a Draw<'a>,
    varyings: &'a [Varying],
    viewport: Viewport,
    stage: StageInputs,
    /// By fragment; `None`: helpers.
    places: Vec<Option<Place>>,
    planes: Vec<Plane>,
    values: Vec<Vec<u32>>,
    builtins: Vec<(Builtin, Vec<u32>)>,
    payload: [Vec<u32>; 8],
}

const BUILTINS: [Builtin; 12] = [
    Builtin::FragCoord(0),
    Builtin::FragCoord(1),
    Builtin::FragCoord(2),
    Builtin::FragCoord(3),
    Builtin::FrontFacing,
    Builtin::PointCoord(0),
    Builtin::PointCoord(1),
    Builtin::SampleId,
    Builtin::SampleMaskIn,
    Builtin::PrimitiveId,
    Builtin::SamplePosition(0),
    Builtin::SamplePosition(1),
];

impl<'a> Batch<'a> {
    fn new(d: &'a Draw<'a>, varyings: &'a [Varying], viewport: Viewport) -> Batch<'a> {
        Batch {
            d,
            varyings,
            viewport,
            stage: StageInputs::default(),
            places: Vec::new(),
            planes: vec![Plane::default(); varyings.len()],
            values: vec![Vec::new(); varyings.len()],
            builtins: BUILTINS.iter().map(|b| (*b, Vec::new())).collect(),
            payload: Default::default(),
        }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// Up to four quads of a primitive, filled up with dead ones.
    fn push(&mut self, s: &Setup, corners: [u64; 3], primitive: u32, quads: &[Quad]) {
        for n in 0..LANES {
            // A dead quad repeats the last one: nothing of it matters.
            let Some(quad) = quads.get(n / 4).or(quads.last()) else { return };
            let (k, dead) = (n as u32 % 4, n / 4 >= quads.len());
            let (x, y) = (quad.x + (k & 1), quad.y + (k >> 1));
            let covered = !dead && quad.covered >> k & 1 != 0;
            let depth = s.depth_at(x, y).clamp(0.0, 1.0);
            let width = self.viewport.extent[0] as usize;
            let place = Place { pixel: y as usize * width + x as usize, depth };
            self.places.push(covered.then_some(place));
            self.stage.helpers.push(!covered);
            let w = s.w_at(x, y);
            for (v, varying) in self.varyings.iter().enumerate() {
                let three = corners.map(|c| varying.values.get(c as usize).copied().unwrap_or(0));
                let (part, constant) = s.plane_at(three, varying.interpolation, x, y);
                let plane = &mut self.planes[v];
                plane.part.push(part);
                plane.constant.push(constant);
                let at = plane.part.len() - 1;
                let value = plane.value(at, varying.interpolation, w.to_bits());
                self.values[v].push(value);
            }
            let (fx, fy) = (x as f32 + 0.5, y as f32 + 0.5);
            for (builtin, list) in &mut self.builtins {
                list.push(match builtin {
                    Builtin::FragCoord(0) => fx.to_bits(),
                    Builtin::FragCoord(1) => fy.to_bits(),
                    Builtin::FragCoord(2) => depth.to_bits(),
                    Builtin::FragCoord(_) => (1.0 / w).to_bits(),
                    Builtin::FrontFacing => s.front.into(),
                    Builtin::SampleMaskIn => covered.into(),
                    Builtin::PrimitiveId => primitive,
                    Builtin::SamplePosition(_) => 0.5f32.to_bits(),
                    _ => 0,
                });
            }
            let words = [
                w.to_bits(),
                w.to_bits(),
                depth.to_bits(),
                fx.to_bits(),
                fy.to_bits(),
                u32::from(!s.front),
                covered.into(),
                0,
            ];
            for (list, word) in self.payload.iter_mut().zip(words) {
                list.push(word);
            }
        }
    }

    /// Runs what waits and writes what comes out.
    fn flush(&mut self, surface: &mut Surface, counts: &mut Counts) -> Result<(), RunError> {
        if self.places.is_empty() {
            return Ok(());
        }
        counts.fragments += self.places.len() as u64;
        if counts.fragments > MAX_FRAGMENTS {
            return setup(format!("more than {MAX_FRAGMENTS} fragments"));
        }
        let mut stage = std::mem::take(&mut self.stage);
        stage.invocations = self.places.len() as u32;
        for (v, varying) in self.varyings.iter().enumerate() {
            let at = (varying.slot, varying.component);
            stage.planes.insert(at, std::mem::take(&mut self.planes[v]));
            stage.values.insert(at, std::mem::take(&mut self.values[v]));
        }
        for (builtin, list) in &mut self.builtins {
            // A machine may take the number of the primitive as a varying.
            if *builtin == Builtin::PrimitiveId {
                let plane = Plane { part: vec![0; list.len()], constant: list.clone() };
                stage.planes.entry((Slot::PrimitiveId, 0)).or_insert(plane);
            }
            stage.builtins.insert(*builtin, std::mem::take(list));
        }
        for (n, list) in self.payload.iter_mut().enumerate() {
            stage.payload.insert(n as u32, std::mem::take(list));
        }
        let mut inputs = Inputs { viewport: self.viewport, ..self.d.fragment_inputs.clone() };
        inputs.stage = Some(stage);
        let run = self.d.fragment.run(&inputs)?;
        counts.instructions += run.report.instructions;
        let places = std::mem::take(&mut self.places);
        self.resolve(&places, &run.outputs, surface);
        Ok(())
    }

    /// Tests and writes, fragment by fragment in order.
    fn resolve(&self, places: &[Option<Place>], out: &StageOutputs, surface: &mut Surface) {
        let depths = out.values.get(&(Slot::FragDepth, 0, 0));
        let masks = out.values.get(&(Slot::SampleMask, 0, 0));
        let targets = surface.formats.len().min(256);
        let colors: Vec<[_; 4]> = (0..targets)
            .map(|t| [0, 1, 2, 3].map(|k| out.values.get(&(Slot::Location(t as u8), k, 0))))
            .collect();
        let at = |list: Option<&Vec<Option<u32>>>, n: usize| list.and_then(|l| l.get(n).copied().flatten());
        for (n, place) in places.iter().enumerate() {
            let Some(Place { pixel, mut depth }) = *place else { continue };
            if out.helpers.get(n) == Some(&true) || at(masks, n).is_some_and(|m| m & 1 == 0) {
                continue;
            }
            if let Some(own) = at(depths, n) {
                depth = f32::from_bits(own).clamp(0.0, 1.0);
            }
            let Some(stored) = surface.depth.get_mut(pixel) else { continue };
            if self.d.depth_test && depth > *stored {
                continue;
            }
            if self.d.depth_test && self.d.depth_write {
                *stored = depth;
            }
            surface.written += 1;
            for (t, lists) in colors.iter().enumerate() {
                if lists.iter().any(Option::is_some) {
                    surface.write(t, pixel, lists.map(|list| at(list, n).unwrap_or(0)));
                }
            }
        }
    }
}
