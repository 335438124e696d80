//! What vertices, fragments, primitives and patches are given.
//!
//! Fragments come in batches of four quads that lie somewhere on a small screen. Each quad is of a triangle of its own: what
//! varies is a plane over the screen, so neighbours differ little and derivatives are about the same all over a quad. Most quads have
//! one to four lanes with an effect; some are dead, and what their lanes are given is anything.

use super::{Floats, Random, Ranges};
use crate::eval;
use crate::exec::{Inputs, LANES};
use crate::io::{Interpolation, IoImm, Owner, Plane, Sampling, Slot, StageInputs, Viewport, start};
use crate::module::*;
use crate::ops::Op;
use crate::primitive::{Domain, MAX_PATCH_VERTICES};
use crate::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// The scalars that a stage reads, by place and component.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Interface {
    inputs: BTreeMap<(Slot, u8), (IoImm, Type)>,
    /// What belongs to patches.
    patch: BTreeMap<(Slot, u8), (IoImm, Type)>,
    /// Vertices of a patch that are asked for by number.
    vertices: u32,
    /// One place is asked for at the centre of the pixel and elsewhere. There is one value, so it must be the same there.
    one_place: bool,
}

pub(super) fn scan(module: &Module) -> Interface {
    let mut out = Interface::default();
    let mut sampling: BTreeMap<(Slot, u8), BTreeSet<Sampling>> = BTreeMap::new();
    let f = &module.func;
    for &i in f.layout.iter().flat_map(|&b| &f.blocks[b].insts) {
        let inst = &f.insts[i];
        if let (Op::Input, Imm::Io(io)) = (inst.op, inst.imm) {
            let list = if io.owner == Owner::Patch { &mut out.patch } else { &mut out.inputs };
            for location in 0..u32::from(io.locations.max(1)) {
                for component in 0..u32::from(io.components.max(1)) {
                    list.entry(io.place(location, component)).or_insert((io, inst.ty));
                }
            }
            let place = (io.slot, io.component);
            if let (Owner::Vertex, Some(&v)) = (io.owner, inst.args.first()) {
                let number = f.as_const(v).map_or(0, |n| n.min(u64::from(MAX_PATCH_VERTICES)) as u32);
                out.vertices = out.vertices.max(number + 1).min(MAX_PATCH_VERTICES);
            }
            sampling.entry(place).or_default().insert(io.sampling);
        }
    }
    out.one_place = sampling.values().any(|s| s.contains(&Sampling::Centroid) && s.len() > 1);
    out
}

/// Batches of fragments.
const BATCHES: u32 = 4;
/// Quads of the screen by axis: images whose texels are named have a texel for every pixel, and for those around it.
const SCREEN: u64 = 8;
/// Vertices: at least one batch and a part of another.
const LEAST_VERTICES: u64 = 17;

pub(super) fn draw(
    module: &Module,
    interface: &Interface,
    ranges: &Ranges,
    floats: Floats,
    rng: &mut Random,
    inputs: &mut Inputs,
) {
    let stage = match module.stage {
        Stage::Vertex => vertices(interface, ranges, floats, rng),
        stage if stage.takes_primitives() => primitives(module, interface, ranges, floats, rng),
        _ => fragments(interface, ranges, floats, rng),
    };
    let extents = [[256.0, 256.0], [640.0, 480.0], [16.0, 16.0], [1920.0, 1080.0]];
    let depths = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.25, 0.75]];
    inputs.viewport =
        Viewport { extent: extents[rng.below(4) as usize], depth: depths[rng.below(4) as usize] };
    inputs.stage = Some(stage);
}

/// One scalar of an attribute or a flat varying.
fn scalar(ty: Type, ranges: &Ranges, floats: Floats, rng: &mut Random) -> u32 {
    match ty {
        Type::F32 => floats.draw(ranges, rng).to_bits(),
        Type::F16 => eval::f32_to_f16(floats.draw(ranges, rng).to_bits()) as u32,
        _ => rng.below(ranges.int_max as u64 + 1) as u32 & ty.mask() as u32,
    }
}

fn vertices(interface: &Interface, ranges: &Ranges, floats: Floats, rng: &mut Random) -> StageInputs {
    let count = (LEAST_VERTICES + rng.below(2 * LANES as u64)) as u32;
    let mut out = StageInputs { invocations: count, ..StageInputs::default() };
    for (&place, &(_, ty)) in &interface.inputs {
        let list = (0..count).map(|_| scalar(ty, ranges, floats, rng)).collect();
        out.values.insert(place, list);
    }
    // Instances of a few vertices each; numbers count from their bases, as in Vulkan.
    let vertices = 3 + rng.below(count as u64) as u32;
    let (first, base) = (rng.below(3) as u32, rng.below(3) as u32);
    let all = |of: &dyn Fn(u32) -> u32| (0..count).map(of).collect::<Vec<u32>>();
    out.builtins = [
        (Builtin::VertexIndex, all(&|n| first + n % vertices)),
        (Builtin::InstanceIndex, all(&|n| base + n / vertices)),
        (Builtin::BaseVertex, all(&|_| first)),
        (Builtin::BaseInstance, all(&|_| base)),
        (Builtin::DrawIndex, all(&|_| 0)),
    ]
    .into();
    out
}

/// Primitives or patches: at least as many as make more than one batch where each has one invocation.
const LEAST_PRIMITIVES: u64 = 17;

fn primitives(
    module: &Module,
    interface: &Interface,
    ranges: &Ranges,
    floats: Floats,
    rng: &mut Random,
) -> StageInputs {
    let modes = &module.primitive;
    let count = (LEAST_PRIMITIVES + rng.below(LANES as u64)) as u32;
    // Invocations of each, and the vertices that it is given; the sizes of patches are not the shader's.
    let (each, vertices) = match module.stage {
        Stage::Geometry => (modes.invocations, modes.input.vertices()),
        Stage::TessControl => (modes.vertices, interface.vertices.max(modes.vertices) + rng.below(3) as u32),
        _ => (1 + rng.below(5) as u32, interface.vertices.max(LEAST_PATCH) + rng.below(3) as u32),
    };
    let vertices = vertices.min(MAX_PATCH_VERTICES);
    let n = count * each;
    let mut out = StageInputs { invocations: n, vertices, ..StageInputs::default() };
    out.primitives = (0..n).map(|k| k / each).collect();
    for (&place, &(_, ty)) in &interface.inputs {
        let list = (0..count * vertices).map(|_| scalar(ty, ranges, floats, rng)).collect();
        out.values.insert(place, list);
    }
    for (&place, &(_, ty)) in &interface.patch {
        let list = (0..count).map(|_| scalar(ty, ranges, floats, rng)).collect();
        out.patch_values.insert(place, list);
    }
    let first = rng.below(3) as u32;
    out.builtins.insert(Builtin::PrimitiveId, out.primitives.iter().map(|p| first + p).collect());
    out.builtins.insert(Builtin::InvocationId, (0..n).map(|k| k % each).collect());
    out.builtins.insert(Builtin::PatchVertices, vec![vertices; n as usize]);
    // Coordinates of triangles have the sum 1; others have two.
    let third = module.primitive.domain == Domain::Triangles;
    let mut coordinates = [const { Vec::new() }; 3];
    for _ in 0..n {
        let x = rng.below(65) as f32 / 64.0;
        let y = rng.below(65) as f32 / 64.0 * if third { 1.0 - x } else { 1.0 };
        let z = if third { 1.0 - x - y } else { 0.0 };
        for (list, v) in coordinates.iter_mut().zip([x, y, z]) {
            list.push(v.to_bits());
        }
    }
    for (k, list) in coordinates.into_iter().enumerate() {
        out.builtins.insert(Builtin::TessCoord(k as u8), list);
    }
    out
}

/// Vertices of a patch that an evaluation shader is given, at least.
const LEAST_PATCH: u32 = 4;

/// Start words of a fragment program.
const WORDS: u32 = 8;

/// A plane over the screen: at the upper left pixel of a quad, and steps along x and y.
#[derive(Clone, Copy)]
struct Slope([f32; 3]);

impl Slope {
    fn new(rng: &mut Random, at: f32, steps: f32) -> Slope {
        let step = |rng: &mut Random| (rng.below(129) as f32 - 64.0) / 64.0 * steps;
        Slope([at, step(rng), step(rng)])
    }

    fn at(&self, lane: usize) -> f32 {
        let [a, x, y] = self.0;
        a + x * (lane & 1) as f32 + y * (lane >> 1 & 1) as f32
    }
}

fn fragments(interface: &Interface, ranges: &Ranges, floats: Floats, rng: &mut Random) -> StageInputs {
    let count = BATCHES * LANES as u32;
    let mut out = StageInputs { invocations: count, ..StageInputs::default() };
    let n = count as usize;
    out.helpers = vec![false; n];
    for &place in interface.inputs.keys() {
        out.values.insert(place, vec![0; n]);
        out.planes.insert(place, Plane { part: vec![0; n], constant: vec![0; n] });
    }
    let builtins = (0..4).map(Builtin::FragCoord);
    let builtins = builtins.chain((0..2).flat_map(|k| [Builtin::PointCoord(k), Builtin::SamplePosition(k)]));
    let single = [Builtin::FrontFacing, Builtin::SampleId, Builtin::SampleMaskIn, Builtin::PrimitiveId];
    out.builtins = builtins.chain(single).map(|b| (b, vec![0; n])).collect();
    out.payload = (0..WORDS).map(|w| (w, vec![0; n])).collect();
    for quad in 0..n / 4 {
        if rng.below(8) == 0 {
            dead_quad(&mut out, quad, rng);
        } else {
            live_quad(&mut out, quad, interface, ranges, floats, rng);
        }
    }
    out
}

/// Anything, so that nobody can rely on it.
fn dead_quad(out: &mut StageInputs, quad: usize, rng: &mut Random) {
    for n in 4 * quad..4 * quad + 4 {
        out.helpers[n] = true;
        let planes = out.planes.values_mut().flat_map(|p| [&mut p.part, &mut p.constant]);
        for list in out.values.values_mut().chain(out.payload.values_mut()).chain(planes) {
            list[n] = rng.bits() as u32;
        }
        for (b, list) in &mut out.builtins {
            list[n] = rng.bits() as u32 & b.ty().mask() as u32;
        }
        // That they are dead is told.
        out.payload.entry(start::SAMPLES as u32).or_default()[n] = 0;
    }
}

fn live_quad(
    out: &mut StageInputs,
    quad: usize,
    interface: &Interface,
    ranges: &Ranges,
    floats: Floats,
    rng: &mut Random,
) {
    // Half of them whole; else any lanes but none.
    let covered = if rng.below(2) == 0 { 15 } else { 1 + rng.below(15) };
    let [x, y] = [(); 2].map(|()| 2 + 2 * rng.below(SCREEN - 1) as u32);
    let start = 0.5 + rng.below(128) as f32 / 32.0;
    let w = Slope::new(rng, start, 0.125);
    // A centroid is somewhere in the pixel.
    let shift = if interface.one_place { 0.0 } else { (rng.below(17) as f32 - 8.0) / 128.0 };
    let start = rng.below(65) as f32 / 64.0;
    let depth = Slope::new(rng, start, 1.0 / 32.0);
    let front = rng.below(2) as u32;
    let primitive = rng.below(ranges.int_max as u64 + 1) as u32;
    let bits = f32::to_bits;
    for lane in 0..4 {
        let n = 4 * quad + lane;
        let on = covered >> lane & 1 != 0;
        out.helpers[n] = !on;
        let own = w.at(lane);
        let centre = bits(own);
        let centroid = bits(own + shift);
        let z = bits(depth.at(lane).clamp(0.0, 1.0));
        let at = [x + lane as u32 % 2, y + lane as u32 / 2].map(|v| v as f32 + 0.5);
        let reciprocal = eval::eval(Op::RcpApprox, Type::F32, Type::F32, Imm::None, &[centre as u64]);
        let mut builtin = |b: Builtin, v: u32| {
            if let Some(list) = out.builtins.get_mut(&b) {
                list[n] = v;
            }
        };
        builtin(Builtin::FragCoord(0), bits(at[0]));
        builtin(Builtin::FragCoord(1), bits(at[1]));
        builtin(Builtin::FragCoord(2), z);
        builtin(Builtin::FragCoord(3), reciprocal.unwrap_or(0) as u32);
        builtin(Builtin::FrontFacing, front);
        builtin(Builtin::PointCoord(0), bits(at[0] / (2 * SCREEN) as f32));
        builtin(Builtin::PointCoord(1), bits(at[1] / (2 * SCREEN) as f32));
        builtin(Builtin::SampleMaskIn, on as u32);
        builtin(Builtin::PrimitiveId, primitive);
        builtin(Builtin::SamplePosition(0), bits(0.5));
        builtin(Builtin::SamplePosition(1), bits(0.5));
        let words = [
            (start::W, centre),
            (start::CENTROID_W, centroid),
            (start::DEPTH, z),
            (start::X, bits(at[0])),
            (start::X + 1, bits(at[1])),
            (start::FACING, 1 - front),
            (start::SAMPLES, if on { start::COVERED } else { 0 }),
            (start::SAMPLE, 0),
        ];
        for (word, v) in words {
            if let Some(list) = out.payload.get_mut(&(word as u32)) {
                list[n] = v;
            }
        }
    }
    let read = |list: Option<&Vec<u32>>, n: usize| list.and_then(|l| l.get(n)).copied().unwrap_or(0);
    for (&place, &(io, ty)) in &interface.inputs {
        // Mostly less than a texel of a small image from pixel to pixel.
        let steps = [0.05, 0.25, 1.0][rng.below(if floats == Floats::Signed { 3 } else { 1 }) as usize];
        let at = floats.draw(ranges, rng);
        let wanted = Slope::new(rng, at, steps);
        let constant = match io.interpolation {
            // There is one viewport.
            Interpolation::Flat if io.slot == Slot::ViewportIndex => 0,
            Interpolation::Flat => scalar(ty, ranges, floats, rng),
            _ => bits(rng.float()),
        };
        let plane = out.planes.entry(place).or_default();
        for lane in 0..4 {
            let n = 4 * quad + lane;
            let word = if io.sampling == Sampling::Centroid { start::CENTROID_W } else { start::W };
            let w = read(out.payload.get(&(word as u32)), n);
            let part = match io.interpolation {
                Interpolation::Flat => wanted.at(lane),
                Interpolation::NoPerspective => wanted.at(lane) - f32::from_bits(constant),
                Interpolation::Smooth => (wanted.at(lane) - f32::from_bits(constant)) / f32::from_bits(w),
            };
            plane.part[n] = bits(part);
            plane.constant[n] = constant;
            let v = plane.value(n, io.interpolation, w);
            if let Some(list) = out.values.get_mut(&place) {
                list[n] = v & ty.mask() as u32;
            }
        }
    }
}
