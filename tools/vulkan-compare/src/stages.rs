//! Fragment modules of the corpus: what is given, what is expected, and the draw that the driver makes of it.
//!
//! Every quad of the inputs is a draw of its own: one triangle that covers the screen, cut to the two by two pixels of the quad. What varies is
//! a plane of multiples of powers of two, the triangle has sides of a power of two and w is 1, so that both sides have the same
//! bits in every pixel and the same differences in the quad. All four pixels have an effect.
//!
//! What is left out, and why, is in `docs/bounds.md` ("Graphics stages").

use crate::compare::far_from;
use crate::corpus::{self, Corpus};
use crate::draw::{self, Job, Part, Target};
use crate::{passthrough, vulkan};
use ash::vk;
use kempe_ir::bounds::{COUNTED_RUNS, DECIDED, VACUOUS};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::image::{Component, Format};
use kempe_ir::inputs::{Usage, Verdict, search};
use kempe_ir::interp::{Options, Program, Shadow, Stop};
use kempe_ir::io::{Interpolation, IoImm, Slot, StageInputs};
use kempe_ir::{Builtin, Imm, Module, Op, ResKind, Stage, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Pixels of the screen along each axis, and of the sides of the triangle.
const SCREEN: u32 = 32;
/// Seeds that are tried, and runs after which a module needs no more.
const SEEDS: u64 = 16;
const MOST_RUNS: usize = 4;
/// Quads of a run that must count.
const LEAST_QUADS: usize = 4;
const STEPS: u64 = 2_000_000;
/// What is in the targets before: nothing that a module writes.
const BEFORE: f32 = -12345.0;

pub struct Subject {
    words: Vec<u32>,
    module: Module,
    usage: Usage,
    /// Inputs by location and component.
    inputs: BTreeMap<(u8, u8), (IoImm, Type)>,
    /// Types of outputs by location.
    outputs: BTreeMap<u8, Type>,
    depth: bool,
}

/// A module that can be compared, or why it cannot.
pub fn load(corpus: &Corpus, file: &str) -> Result<Subject, String> {
    let words = corpus.words(file)?;
    if corpus::uses_loose_functions(&words) {
        return Err("uses functions that are allowed large errors".to_owned());
    }
    if draw::has_conflicts(&words) {
        return Err("two declarations of different kinds at one binding".to_owned());
    }
    let modules = kempe_front::from_spirv(file, &words, &Default::default()).map_err(|e| e.to_string())?;
    let module = modules.into_iter().next().ok_or("no entry point")?;
    if let Err(e) = kempe_ir::verify::verify(&module) {
        return Err(format!("not well formed: {}", e[0]));
    }
    if module.stage != Stage::Fragment {
        return Err("no fragment module".to_owned());
    }
    for r in module.resources.values() {
        let fits = match r.kind {
            ResKind::UniformBuffer | ResKind::PushConstants | ResKind::Sampler => true,
            ResKind::Texture => {
                r.image.is_some_and(|i| !i.multisampled && i.dim != kempe_ir::image::Dim::Buffer)
            }
            _ => false,
        };
        if !fits || r.elements != 1 {
            return Err(format!("`{}` is of a kind that is not drawn with here", r.name));
        }
    }
    let (mut inputs, mut outputs, mut depth) = (BTreeMap::new(), BTreeMap::new(), false);
    let f = &module.func;
    for &i in f.layout.iter().flat_map(|&b| &f.blocks[b].insts) {
        let inst = &f.insts[i];
        match (inst.op, inst.imm) {
            (Op::Input, Imm::Io(io)) => {
                let Slot::Location(n) = io.slot else { return Err(format!("reads {:?}", io.slot)) };
                let old = inputs.insert((n, io.component), (io, inst.ty));
                if old.is_some_and(|(o, _)| o.interpolation != io.interpolation) {
                    return Err("one input, interpolated in two ways".to_owned());
                }
                if !matches!(inst.ty, Type::F32 | Type::I32) {
                    return Err("inputs that are not of 32 bits".to_owned());
                }
            }
            (Op::Output, Imm::Io(io)) => {
                let ty = inst.args.first().map_or(Type::F32, |&a| f.ty(a));
                match io.slot {
                    Slot::Location(n) if io.index == 0 && n < 8 && matches!(ty, Type::F32 | Type::I32) => {
                        outputs.insert(n, ty);
                    }
                    Slot::FragDepth => depth = true,
                    _ => return Err(format!("writes {:?}", io.slot)),
                }
            }
            (_, Imm::Sample(imm)) if imm.pixels => {
                return Err("coordinates in texels, which Vulkan has not".to_owned());
            }
            (Op::Builtin, Imm::Builtin(Builtin::PointCoord(_))) => {
                return Err("reads a place in a point".to_owned());
            }
            _ => {}
        }
    }
    if outputs.is_empty() && !depth {
        return Err("writes nothing".to_owned());
    }
    let usage = Usage::scan(&module);
    Ok(Subject { words, module, usage, inputs, outputs, depth })
}

/// A multiple of a power of two near a value.
fn multiple(v: f32, step: f32) -> f32 {
    let n = if v.is_finite() { (v / step).round_ties_even() } else { 0.0 };
    n.clamp(-64.0 / step, 64.0 / step) * step
}

/// Where a quad is drawn and what it is given.
struct Quad {
    /// Its first invocation.
    first: usize,
    corner: [u32; 2],
    front: bool,
    z: f32,
}

/// Makes what was drawn fit for both sides: float images of 32 bits, quads apart from each other, planes that are exact.
fn prepare(subject: &Subject, inputs: &Inputs) -> (Inputs, Vec<Quad>, Planes) {
    let mut inputs = inputs.clone();
    for i in &mut inputs.images {
        let from = i.desc.format;
        if from.component() != Component::F32 || from == Format::R32f {
            continue;
        }
        let texels = i.bytes.chunks_exact(from.bytes() as usize);
        let wide = texels.flat_map(|t| from.decode(kempe_ir::image::texel_words(t)));
        i.bytes = wide.flat_map(u32::to_le_bytes).collect();
        i.desc.format = Format::Rgba32f;
    }
    // The driver takes one of the two filters for eight pixels at a time, whatever their levels are.
    for s in &mut inputs.samplers {
        s.sampler.minify = s.sampler.magnify;
    }
    let mut planes = Planes::new();
    let mut quads: Vec<Quad> = Vec::new();
    let mut stage = inputs.stage.take().unwrap_or_default();
    let read = |s: &StageInputs, b: Builtin, n: usize| {
        s.builtins.get(&b).and_then(|l| l.get(n)).copied().unwrap_or(0)
    };
    for first in (0..stage.invocations as usize).step_by(4) {
        if stage.is_dead(first) {
            continue;
        }
        let place = |k: u8| f32::from_bits(read(&stage, Builtin::FragCoord(k), first));
        let mut corner = [place(0) as u32 & !1, place(1) as u32 & !1];
        // The next place that is free, within 2..16.
        while quads.iter().any(|q| q.corner == corner) {
            corner[0] += 2;
            if corner[0] >= 16 {
                corner = [2, if corner[1] >= 14 { 2 } else { corner[1] + 2 }];
            }
        }
        let z = multiple(place(2), 1.0 / 256.0);
        let front = read(&stage, Builtin::FrontFacing, first) & 1 != 0;
        for lane in 0..4 {
            let n = first + lane;
            stage.helpers[n] = false;
            let at = [corner[0] + lane as u32 % 2, corner[1] + lane as u32 / 2].map(|v| v as f32 + 0.5);
            let given = [
                (Builtin::FragCoord(0), at[0].to_bits()),
                (Builtin::FragCoord(1), at[1].to_bits()),
                (Builtin::FragCoord(2), z.to_bits()),
                (Builtin::FragCoord(3), 1f32.to_bits()),
                (Builtin::FrontFacing, front as u32),
                (Builtin::SampleMaskIn, 1),
                (Builtin::SampleId, 0),
                (Builtin::PrimitiveId, 0),
            ];
            for (b, v) in given {
                if let Some(list) = stage.builtins.get_mut(&b) {
                    list[n] = v;
                }
            }
        }
        for (&(location, component), &(io, _)) in &subject.inputs {
            let place = (Slot::Location(location), component);
            let Some(list) = stage.values.get_mut(&place) else { continue };
            let plane = if io.interpolation == Interpolation::Flat {
                let bits = list[first];
                list[first..first + 4].fill(bits);
                Plane::Flat(bits)
            } else {
                let at = |lane: usize| f32::from_bits(list[first + lane]);
                let base = multiple(at(0), 1.0 / 256.0);
                let step = |lane: usize| multiple(at(lane) - at(0), 1.0 / 1024.0).clamp(-2.0, 2.0);
                let (x, y) = (step(1), step(2));
                for lane in 0..4 {
                    let v = base + x * (lane % 2) as f32 + y * (lane / 2) as f32;
                    list[first + lane] = v.to_bits();
                }
                // At the corner of the screen.
                let at = corner.map(|c| c as f32 + 0.5);
                Plane::Slope([base - x * at[0] - y * at[1], x, y])
            };
            planes.insert((quads.len(), location, component), plane);
        }
        quads.push(Quad { first, corner, front, z });
    }
    inputs.stage = Some(stage);
    (inputs, quads, planes)
}

/// What varies, by quad, location and component.
type Planes = BTreeMap<(usize, u8, u8), Plane>;

#[derive(Clone, Copy)]
enum Plane {
    Flat(u32),
    /// At the corner of the screen, and by pixel.
    Slope([f32; 3]),
}

impl Plane {
    /// At a corner of the triangle.
    fn at(self, corner: [f32; 2]) -> f32 {
        match self {
            Plane::Flat(bits) => f32::from_bits(bits),
            Plane::Slope([v, x, y]) => v + x * corner[0] + y * corner[1],
        }
    }
}

/// A value of each lane with how far it may be off, where there is one.
type Lanes = [Option<(u32, Shadow)>; 4];

/// What the interpreter says of a quad.
struct Expected {
    quad: usize,
    /// By place and component, for each lane.
    values: BTreeMap<(Slot, u8), Lanes>,
    /// Without effect at the end.
    killed: [bool; 4],
}

struct Run {
    inputs: Inputs,
    quads: Vec<Quad>,
    planes: Planes,
    expected: Vec<Expected>,
    decided: usize,
    within: usize,
}

/// The inputs of one quad.
fn only(inputs: &Inputs, first: usize) -> Inputs {
    let mut out = inputs.clone();
    if let Some(s) = &mut out.stage {
        let cut = |l: &mut Vec<u32>| *l = l.get(first..first + 4).map(<[u32]>::to_vec).unwrap_or_default();
        s.values.values_mut().for_each(cut);
        s.builtins.values_mut().for_each(cut);
        s.planes.clear();
        s.payload.clear();
        s.helpers = vec![false; 4];
        s.invocations = 4;
    }
    out
}

enum Failure {
    Outside(Stop),
    Useless(String),
}

/// Runs every quad; those that depend on something undecided or undefined do not count.
fn expect(
    subject: &Subject,
    program: &Program,
    inputs: Inputs,
    quads: Vec<Quad>,
    planes: Planes,
) -> Result<Run, Failure> {
    let mut expected = Vec::new();
    let mut last = String::new();
    for (n, quad) in quads.iter().enumerate() {
        let own = only(&inputs, quad.first);
        let env = Environment::new(&subject.module, &own, Sizes::source()).map_err(Failure::Useless)?;
        let options = Options { step_limit: STEPS, bounds: true, ..Options::source() };
        let outcome = match program.run(&env, &options) {
            Ok(o) => o,
            Err(stop @ Stop::Undecided(_)) => {
                last = stop.to_string();
                continue;
            }
            Err(stop) => return Err(Failure::Outside(stop)),
        };
        if !outcome.undefined.is_empty() {
            last = "it depends on what is undefined".to_owned();
            continue;
        }
        let Some(stage) = outcome.stage else { continue };
        let killed = std::array::from_fn(|l| stage.helpers.get(l).copied().unwrap_or(false));
        let mut values = BTreeMap::new();
        for (&(slot, component, index), list) in &stage.values {
            let known = outcome.output_bounds.get(&(slot, component, index));
            let one = |l: usize| {
                let v = list.get(l).copied().flatten()?;
                Some((v, known.and_then(|k| k.get(l)).copied().unwrap_or(Shadow::Undecided)))
            };
            values.insert((slot, component), std::array::from_fn(one));
        }
        expected.push(Expected { quad: n, values, killed });
    }
    if expected.len() < LEAST_QUADS {
        return Err(Failure::Useless(format!(
            "{} quads count; the last that did not: {last}",
            expected.len()
        )));
    }
    let mut run = Run { inputs, quads, planes, expected, decided: 0, within: 0 };
    run.judge(subject).map_err(Failure::Useless)?;
    Ok(run)
}

impl Run {
    /// Drops bounds that say nothing, and asks whether enough is left.
    fn judge(&mut self, subject: &Subject) -> Result<(), String> {
        let mut largest: BTreeMap<Slot, f64> = BTreeMap::new();
        let is_float = |slot: Slot| match slot {
            Slot::Location(n) => subject.outputs.get(&n) == Some(&Type::F32),
            _ => true,
        };
        for e in &self.expected {
            for (&(slot, _), lanes) in &e.values {
                for (v, s) in lanes.iter().flatten() {
                    if is_float(slot) && matches!(s, Shadow::Exact | Shadow::Float(_)) {
                        let m = largest.entry(slot).or_default();
                        *m = m.max(f32::from_bits(*v).abs() as f64);
                    }
                }
            }
        }
        let (mut all, mut decided, mut within) = (0, 0, 0);
        for e in &mut self.expected {
            for (&(slot, _), lanes) in &mut e.values {
                let most = largest.get(&slot).copied().unwrap_or(0.0) * VACUOUS;
                for (lane, v) in lanes.iter_mut().enumerate() {
                    let Some((bits, shadow)) = v else { continue };
                    if e.killed[lane] {
                        *v = None;
                        continue;
                    }
                    let number = f32::from_bits(*bits);
                    let open = match shadow {
                        Shadow::Float(e) => *e > 0.0 && *e > most,
                        Shadow::Exact => is_float(slot) && !number.is_finite(),
                        _ => true,
                    };
                    // Depths are limited, and this page does not say to what.
                    let outside = slot == Slot::FragDepth && !(0.0..=1.0).contains(&number);
                    all += 1;
                    if open || outside {
                        *v = None;
                        continue;
                    }
                    decided += 1;
                    within += matches!(shadow, Shadow::Float(e) if *e > 0.0) as usize;
                }
            }
            decided += e.killed.iter().filter(|&&k| k).count();
            all += e.killed.iter().filter(|&&k| k).count();
        }
        (self.decided, self.within) = (decided, within);
        match all {
            0 => Err("nothing was written".to_owned()),
            _ if (decided as f64) < all as f64 * DECIDED => {
                Err(format!("{decided} of {all} words are decided"))
            }
            _ => Ok(()),
        }
    }

    /// The textures and samplers, for messages.
    fn given(&self) -> String {
        let images = self.inputs.images.iter();
        let images = images.map(|i| {
            format!("{}:{} {:?} of {:?}", i.set, i.binding, i.desc.format, i.desc.extent)
                + &format!(" x {}", i.desc.levels)
        });
        let samplers =
            self.inputs.samplers.iter().map(|s| format!("{}:{} {:?}", s.set, s.binding, s.sampler));
        images.chain(samplers).collect::<Vec<_>>().join(", ")
    }

    /// What is seen: to tell runs apart.
    fn seen(&self) -> Vec<Option<u32>> {
        let values = self.expected.iter().flat_map(|e| e.values.values());
        values.flatten().map(|v| v.map(|v| v.0)).collect()
    }
}

/// Finds an input for a seed on which the run counts.
fn find(subject: &Subject, program: &Program, seed: u64) -> Result<Run, String> {
    let mut found = None;
    search(&subject.module, &subject.usage, seed, |drawn| {
        let (inputs, quads, planes) = prepare(subject, drawn);
        match expect(subject, program, inputs, quads, planes) {
            Ok(run) => {
                found = Some(run);
                Verdict::Fine
            }
            Err(Failure::Outside(Stop::Fault { fault, .. })) => Verdict::Outside(fault),
            Err(Failure::Outside(stop)) => Verdict::Useless(stop.to_string()),
            Err(Failure::Useless(why)) => Verdict::Useless(why),
        }
    })?;
    found.ok_or_else(|| "no run".to_owned())
}

/// Runs that count and differ.
fn runs(subject: &Subject) -> Result<Vec<(u64, Run)>, String> {
    let program = Program::new(&subject.module).map_err(|e| e.to_string())?;
    let mut last = String::new();
    let mut runs: Vec<(u64, Run)> = Vec::new();
    for seed in 0..SEEDS {
        match find(subject, &program, seed) {
            Ok(run) => runs.push((seed, run)),
            Err(e) => last = e,
        }
        if runs.len() >= MOST_RUNS {
            break;
        }
    }
    if runs.len() < COUNTED_RUNS as usize {
        return Err(format!("{} runs count; the last that did not: {last}", runs.len()));
    }
    if runs.iter().all(|(_, r)| r.seen() == runs[0].1.seen()) {
        return Err("all runs have the same output".to_owned());
    }
    Ok(runs)
}

/// The module can be compared, as far as the interpreter says.
pub fn usable(corpus: &Corpus, file: &str, largest: usize) -> Result<(), String> {
    let subject = load(corpus, file)?;
    if subject.words.len() * 4 > largest {
        return Err("larger than what the driver compiles in short time".to_owned());
    }
    runs(&subject).map(|_| ())
}

/// Compares one module: what the line says, or what is wrong (first word: the kind).
pub fn compare(
    device: &vulkan::Device,
    corpus: &Corpus,
    file: &str,
) -> Result<String, (&'static str, String)> {
    let subject = load(corpus, file).map_err(|e| ("unusable", e))?;
    let runs = runs(&subject).map_err(|e| ("too few", e))?;
    let (mut worst, mut words, mut within, mut quads) = (0f64, 0, 0, 0);
    for (seed, run) in &runs {
        let targets = drawn(device, &subject, run).map_err(|e| ("unusable", format!("the driver: {e}")))?;
        let part = judge(&subject, run, &targets);
        let part = part.map_err(|e| ("MISMATCH", format!("seed {seed}: {e}; {}", run.given())))?;
        worst = worst.max(part);
        words += run.decided;
        within += run.within;
        quads += run.expected.len();
    }
    Ok(format!(
        "{} runs, {quads} quads, {words} words, {within} of them within a bound, at most {:.1} % of it used",
        runs.len(),
        worst * 100.0
    ))
}

/// Draws the quads of a run.
fn drawn(device: &vulkan::Device, subject: &Subject, run: &Run) -> Result<Vec<Target>, String> {
    let locations: BTreeSet<u8> = subject.inputs.keys().map(|k| k.0).collect();
    let locations: Vec<u8> = locations.into_iter().collect();
    let side = SCREEN as f32;
    let (mut vertices, mut indices, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (n, quad) in run.quads.iter().enumerate() {
        // Seen from the front: counter-clockwise.
        let mut corners = [[0.0, 0.0], [0.0, side], [side, 0.0]];
        if !quad.front {
            corners.swap(1, 2);
        }
        let start = indices.len() as u32;
        for corner in corners {
            indices.push(indices.len() as u32);
            let [x, y] = corner.map(|c| c / side * 2.0 - 1.0);
            vertices.extend([x, y, quad.z, 1.0]);
            for &location in &locations {
                for component in 0..4 {
                    let plane = run.planes.get(&(n, location, component));
                    vertices.push(plane.map_or(0.0, |p| p.at(corner)));
                }
            }
        }
        parts.push(Part { corner: quad.corner, size: [2, 2], indices: start..start + 3 });
    }
    let mut depth = BTreeSet::new();
    let m = &subject.module;
    for &i in m.func.layout.iter().flat_map(|&b| &m.func.blocks[b].insts) {
        if let Imm::Sample(imm) = m.func.insts[i].imm
            && imm.dref
        {
            let places = [Some(imm.res), imm.sampler].into_iter().flatten();
            depth.extend(places.filter_map(|r| m.resources.get(r)).map(|r| (r.set, r.binding)));
        }
    }
    let nothing = Inputs::default();
    let before = BEFORE.to_le_bytes().repeat((4 * SCREEN * SCREEN) as usize);
    let last = subject.outputs.keys().max().map_or(0, |&n| n + 1);
    let target = |n: u8| Target {
        format: match subject.outputs.get(&n) {
            Some(Type::I32) => vk::Format::R32G32B32A32_UINT,
            _ => vk::Format::R32G32B32A32_SFLOAT,
        },
        bytes: before.clone(),
    };
    let mut targets: Vec<Target> = (0..last).map(target).collect();
    targets.push(Target { format: vk::Format::D32_SFLOAT, bytes: vec![0; (4 * SCREEN * SCREEN) as usize] });
    let stage = |words: Vec<u32>, entry, inputs| draw::Stage {
        words,
        entry,
        inputs,
        first_set: 0,
        depth: depth.clone(),
    };
    let job = Job {
        stages: [
            stage(passthrough::vertex(&locations), "main", &nothing),
            stage(subject.words.clone(), &m.name, &run.inputs),
        ],
        size: [SCREEN; 2],
        locations: (0..=locations.len() as u32).collect(),
        vertices,
        indices,
        instances: 1,
        parts,
        cull: vk::CullModeFlags::NONE,
        depth_test: Some(vk::CompareOp::ALWAYS),
        depth_write: true,
    };
    draw::draw(device, &job, &mut targets)?;
    Ok(targets)
}

/// Compares the pixels: the first difference, or the largest part of a bound that was used.
fn judge(subject: &Subject, run: &Run, targets: &[Target]) -> Result<f64, String> {
    let mut worst = 0f64;
    let word = |target: usize, at: usize| -> u32 {
        let bytes = targets.get(target).and_then(|t| t.bytes.get(4 * at..4 * at + 4));
        bytes.map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    for e in &run.expected {
        let quad = &run.quads[e.quad];
        for lane in 0..4 {
            let [x, y] = [quad.corner[0] + lane as u32 % 2, quad.corner[1] + lane as u32 / 2];
            let pixel = (y * SCREEN + x) as usize;
            if e.killed[lane] {
                for &n in subject.outputs.keys() {
                    let v = word(n as usize, 4 * pixel);
                    if v != BEFORE.to_bits() {
                        return Err(format!(
                            "pixel {x} {y}: discarded, but target {n} has {:?}",
                            f32::from_bits(v)
                        ));
                    }
                }
                if subject.depth && word(targets.len() - 1, pixel) != 0 {
                    return Err(format!("pixel {x} {y}: discarded, but there is a depth"));
                }
                continue;
            }
            for (&(slot, component), lanes) in &e.values {
                let Some((want, shadow)) = lanes[lane] else { continue };
                let got = match slot {
                    Slot::Location(n) => word(n as usize, 4 * pixel + component as usize),
                    _ => word(targets.len() - 1, pixel),
                };
                let part = far_from(want, got, shadow).map_err(|e| {
                    format!(
                        "pixel {x} {y} (place {lane} of quad {}), {slot:?} component {component}: {e}",
                        quad.first / 4
                    )
                })?;
                worst = worst.max(part);
            }
        }
    }
    Ok(worst)
}
