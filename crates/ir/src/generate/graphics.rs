//! Vertex and fragment programs: interfaces, derivatives, helpers, lookups, images.
//!
//! Every invocation has a number of its own: a flat input ([`NUMBER`]), since positions on the screen repeat. What looks at
//! neighbours stands where all invocations come together. Helpers store nothing, so what a fragment program has stored is never read
//! again (a helper would see the old words, or the forwarded value), and what its atomics give is not looked at.

use super::Gen;
use crate::exec::Inputs;
use crate::image::{Component, Dim, Format, ImageInfo};
use crate::inputs::{Ranges, Usage};
use crate::io::{Interpolation, IoImm, Plane, Sampling, Slot};
use crate::module::*;
use crate::ops::Op;
use crate::sample::{Level, Lookup, SampleImm, coordinates};
use crate::types::Type;

/// Where the number of the invocation comes in.
pub const NUMBER: (Slot, u8) = (Slot::Location(15), 3);

/// Texels of the images by axis that are named by coordinates, as far as programs go.
const TEXELS: u32 = 16;
/// Bindings of textures, samplers and images.
const FIRST_BINDING: u32 = 8;

/// A texture that is looked up.
#[derive(Clone, Copy)]
struct Texture {
    res: Res,
    /// `None`: its own.
    sampler: Option<Res>,
    info: ImageInfo,
}

/// Resources and outputs of a graphics program.
pub(super) struct Graphics {
    textures: Vec<Texture>,
    /// Texels of it are read: a texture and an image.
    fetched: [Res; 2],
    /// A texel of each invocation is written.
    written: Res,
    /// Place, components, type.
    outputs: Vec<(Slot, u8, Type)>,
}

/// Adds the images.
pub(super) fn resources(m: &mut Module, r: &mut crate::inputs::Random) -> Graphics {
    let mut binding = FIRST_BINDING;
    let mut add = |m: &mut Module, kind, image: Option<ImageInfo>, name: &str| {
        binding += 1;
        m.resources.push(Resource {
            kind,
            set: 0,
            binding,
            elements: 1,
            size: 0,
            tail_stride: 0,
            name: name.to_owned(),
            read_only: kind != ResKind::Image || name == "texels",
            image,
        })
    };
    let info = |dim, arrayed, depth, component| ImageInfo {
        dim,
        arrayed,
        multisampled: false,
        depth,
        component,
        format: None,
    };
    let plain = info(Dim::D2, false, false, Component::F32);
    let shared = add(m, ResKind::Sampler, None, "sampler");
    let kinds = [
        (plain, true),
        (plain, false),
        (info(Dim::D2, true, false, Component::F32), true),
        (info(Dim::Cube, false, false, Component::F32), true),
        (info(Dim::D3, false, false, Component::F32), false),
        (info(Dim::D2, false, true, Component::F32), false),
        (info(Dim::D2, false, false, Component::I32), false),
        (info(Dim::D1, false, false, Component::F32), true),
    ];
    let mut textures = Vec::new();
    for (n, (info, with_shared)) in kinds.into_iter().enumerate() {
        let res = add(m, ResKind::Texture, Some(info), &format!("texture{n}"));
        textures.push(Texture { res, sampler: with_shared.then_some(shared), info });
    }
    let with = |format| ImageInfo { format: Some(format), ..plain };
    let fetched = [
        add(m, ResKind::Texture, Some(plain), "fetched"),
        add(m, ResKind::Image, Some(with(Format::Rgba8)), "texels"),
    ];
    let format = [Format::Rgba32f, Format::R32f, Format::Rgba8][r.below(3) as usize];
    let written = add(m, ResKind::Image, Some(with(format)), "written");
    let mut outputs = vec![(Slot::Location(0), 4, Type::F32)];
    if m.stage == Stage::Vertex {
        outputs.push((Slot::Position, 4, Type::F32));
        if r.below(3) == 0 {
            outputs.push((Slot::PointSize, 1, Type::F32));
        }
    }
    for (location, ty) in [(1, Type::I32), (2, Type::F32), (3, Type::F32)] {
        if r.below(3) == 0 {
            outputs.push((Slot::Location(location), 1 + r.below(4) as u8, ty));
        }
    }
    if m.stage == Stage::Fragment {
        m.fragment.early_tests = r.below(6) == 0;
    }
    Graphics { textures, fetched, written, outputs }
}

/// Inputs for a generated graphics program: buffers as [`super::inputs`] draws them, images and what the stage is given as
/// [`crate::inputs`] does.
pub fn stage_inputs(seed: u64, m: &Module, shape: &super::Shape) -> Inputs {
    let ranges = Ranges { int_max: 15, dim_min: 0, dim_max: 15, groups: [1; 3] };
    let drawn = Usage::scan(m).draw(m, seed, &ranges, |_, _| 0);
    let mut stage = drawn.stage.unwrap_or_default();
    let numbers: Vec<u32> = (0..stage.invocations).collect();
    let plane = Plane { part: vec![0; numbers.len()], constant: numbers.clone() };
    if m.stage == Stage::Fragment {
        stage.planes.insert(NUMBER, plane);
    }
    let invocations = stage.invocations;
    stage.values.insert(NUMBER, numbers);
    let with_buffers = super::Shape { workgroup: 1, ..*shape };
    Inputs {
        images: drawn.images,
        samplers: drawn.samplers,
        viewport: drawn.viewport,
        stage: Some(stage),
        ..super::inputs(seed, invocations, &with_buffers)
    }
}

impl Gen<'_> {
    fn is_fragment(&self) -> bool {
        self.shape.stage == Stage::Fragment
    }

    /// What an invocation is given.
    pub(super) fn start_graphics(&mut self) {
        let flat =
            |place: (Slot, u8)| IoImm { interpolation: Interpolation::Flat, ..IoImm::new(place.0, place.1) };
        let number = self.b().op_imm(Op::Input, Type::I32, Imm::Io(flat(NUMBER)), &[]);
        self.id = number;
        self.local = number;
        self.values = vec![number];
        for location in 0..1 + self.r.below(4) as u8 {
            let ty = if self.chance(20) { Type::I32 } else { Type::F32 };
            let interpolation = match self.r.below(8) {
                _ if ty == Type::I32 => Interpolation::Flat,
                0 | 1 => Interpolation::Flat,
                2 | 3 => Interpolation::NoPerspective,
                _ => Interpolation::Smooth,
            };
            let sampling = if self.chance(20) { Sampling::Centroid } else { Sampling::Center };
            for component in 0..1 + self.r.below(4) as u8 {
                let io = IoImm { interpolation, sampling, ..IoImm::new(Slot::Location(location), component) };
                let io = if self.is_fragment() { io } else { IoImm::new(io.slot, component) };
                let v = self.b().op_imm(Op::Input, ty, Imm::Io(io), &[]);
                self.values.push(v);
            }
        }
        let list: &[Builtin] = if self.is_fragment() {
            &[
                Builtin::FragCoord(0),
                Builtin::FragCoord(1),
                Builtin::FragCoord(2),
                Builtin::FragCoord(3),
                Builtin::FrontFacing,
                Builtin::SampleMaskIn,
                Builtin::SampleId,
                Builtin::PrimitiveId,
            ]
        } else {
            &[Builtin::VertexIndex, Builtin::InstanceIndex, Builtin::VertexIndex]
        };
        for _ in 0..1 + self.r.below(4) {
            let builtin = self.pick(list);
            let v = self.b().op_imm(Op::Builtin, builtin.ty(), Imm::Builtin(builtin), &[]);
            self.values.push(v);
        }
        self.push_words();
    }

    /// One of the statements that only graphics stages have.
    pub(super) fn graphics_statement(&mut self) {
        match self.r.below(100) {
            0..=39 => self.lookup(),
            40..=54 if self.is_fragment() && self.control_is_uniform() => {
                let x = self.value(Type::F32);
                let op = self.pick(&[Op::Ddx, Op::Ddy]);
                let v = self.b().op(op, Type::F32, &[x]);
                self.keep(v);
            }
            55..=60 if self.is_fragment() => self.demote(),
            61..=66 if self.is_fragment() => {
                let v = self.b().op(Op::IsHelper, Type::Bool, &[]);
                self.keep(v);
            }
            67..=78 => self.texel(),
            79..=84 if self.shape.stores => self.store_texel(),
            _ => self.output(),
        }
    }

    fn demote(&mut self) {
        // Alone where only some are already, or under a condition.
        if !self.control_is_uniform() && self.chance(40) {
            self.b().inst(Op::Demote, Type::Bool, Imm::None, &[], &[]);
            return;
        }
        let uniform = self.chance(25);
        let mut c = self.decide(uniform);
        // Most shall live.
        for _ in 0..2 {
            let d = self.condition();
            c = self.b().op(Op::And, Type::Bool, &[c, d]);
        }
        let [then, merge] = [(); 2].map(|()| self.func.add_block_detached());
        self.b().branch(c, then, merge);
        self.func.layout.push(then);
        self.block = then;
        self.b().inst(Op::Demote, Type::Bool, Imm::None, &[], &[]);
        self.b().jump(merge, &[]);
        self.func.layout.push(merge);
        self.block = merge;
    }

    fn floats(&mut self, n: usize) -> Vec<Value> {
        (0..n).map(|_| self.value(Type::F32)).collect()
    }

    /// A lookup through a sampler.
    fn lookup(&mut self) {
        let Some(g) = &self.graphics else { return };
        let list = g.textures.clone();
        let Texture { res, sampler, info } = self.pick(&list);
        let quads = self.is_fragment() && self.control_is_uniform();
        let own = coordinates(info.dim);
        let flat = matches!(info.dim, Dim::D2);
        let level = match self.r.below(10) {
            0..=3 if quads => Level::Implicit,
            4 | 5 if quads => Level::Bias,
            6 => Level::Gradient,
            _ => Level::Explicit,
        };
        let mut imm = SampleImm { sampler, level, ..SampleImm::new(res) };
        imm.mask = 1 + self.r.below(15) as u8;
        imm.dref = info.depth && self.chance(80);
        if imm.dref {
            imm.mask = 1;
        }
        if (flat || info.dim == Dim::Cube) && self.chance(15) {
            let component = if imm.dref { 0 } else { self.r.below(4) as u8 };
            (imm.lookup, imm.level, imm.mask) = (Lookup::Gather(component), Level::Explicit, 15);
        } else if quads && !imm.dref && self.chance(8) {
            (imm.lookup, imm.level) = (Lookup::Level, Level::Implicit);
        }
        imm.offset = info.dim != Dim::Cube && imm.lookup != Lookup::Level && self.chance(25);
        let mut args = self.floats(own);
        if info.arrayed {
            let layer = self.index(4);
            args.push(self.b().op(Op::Sitof, Type::F32, &[layer]));
        }
        if imm.dref {
            args.extend(self.floats(1));
        }
        match imm.level {
            Level::Implicit | Level::Base => {}
            Level::Gradient => {
                let gradients = self.floats(2 * own);
                args.extend(gradients);
            }
            Level::Explicit if imm.lookup != Lookup::Color => args.push(self.b().f32(0.0)),
            Level::Bias | Level::Explicit => {
                let v = if self.chance(60) {
                    let steps = self.r.below(97) as f32 / 16.0;
                    self.b().f32(if imm.level == Level::Bias { steps - 3.0 } else { steps })
                } else {
                    self.value(Type::F32)
                };
                args.push(v);
            }
        }
        if imm.offset {
            for _ in 0..own {
                let n = self.r.below(16) as u32;
                args.push(self.b().i32(n.wrapping_sub(8)));
            }
        }
        let ty = if imm.lookup == Lookup::Level { Type::F32 } else { info.component.ty() };
        let implicit = matches!(imm.level, Level::Implicit | Level::Bias);
        let op = if implicit { Op::SampleImplicit } else { Op::Sample };
        let results = vec![ty; imm.results()];
        let i = self.b().inst(op, ty, Imm::Sample(imm), &args, &results);
        for v in self.func.insts[i].results.clone() {
            self.keep(v);
        }
    }

    /// A texel by its coordinates.
    fn texel(&mut self) {
        let Some(g) = &self.graphics else { return };
        let [texture, image] = g.fetched;
        let texture_is_read = self.chance(60);
        let mut imm = ImageImm::new(if texture_is_read { texture } else { image });
        imm.mask = 1 + self.r.below(15) as u8;
        imm.lod = texture_is_read;
        let mut args = vec![self.index(TEXELS), self.index(TEXELS)];
        if imm.lod {
            args.push(self.b().i32(0));
        }
        let results = vec![Type::F32; imm.mask.count_ones() as usize];
        let i = self.b().inst(Op::ImageLoad, Type::F32, Imm::Image(imm), &args, &results);
        for v in self.func.insts[i].results.clone() {
            self.keep(v);
        }
    }

    /// The texel of this invocation.
    fn store_texel(&mut self) {
        let Some(g) = &self.graphics else { return };
        let imm = ImageImm::new(g.written);
        let id = self.id;
        let mut b = self.b();
        let mask = b.i32(TEXELS - 1);
        let bits = b.i32(TEXELS.trailing_zeros());
        let mut args = vec![b.op(Op::And, Type::I32, &[id, mask]), b.op(Op::Lshr, Type::I32, &[id, bits])];
        args.extend(self.floats(4));
        self.b().inst(Op::ImageStore, Type::F32, Imm::Image(imm), &args, &[]);
    }

    fn output_to(&mut self, slot: Slot, component: u8, v: Value) {
        let ty = self.func.ty(v);
        self.b().inst(Op::Output, ty, Imm::Io(IoImm::new(slot, component)), &[v], &[]);
    }

    /// An output somewhere on the way.
    pub(super) fn output(&mut self) {
        let Some(g) = &self.graphics else { return };
        let list = g.outputs.clone();
        let (slot, components, ty) = self.pick(&list);
        let component = self.r.below(components as u64) as u8;
        let v = self.value(ty);
        self.output_to(slot, component, v);
    }

    /// A word as a float that is exact in half precision, in 0..`1024 * scale`.
    fn exact(&mut self, word: Value, scale: f32) -> Value {
        let mut b = self.b();
        let mut w = word;
        for n in [16, 8] {
            let n = b.i32(n);
            let high = b.op(Op::Lshr, Type::I32, &[w, n]);
            w = b.op(Op::Xor, Type::I32, &[w, high]);
        }
        let mask = b.i32(1023);
        let low = b.op(Op::And, Type::I32, &[w, mask]);
        let f = b.op(Op::Uitof, Type::F32, &[low]);
        let scale = b.f32(scale);
        b.op(Op::Fmul, Type::F32, &[f, scale])
    }

    /// Everything that is still alive goes out.
    pub(super) fn outputs(&mut self, words: &[Value]) {
        let Some(g) = &self.graphics else { return };
        let mut list = g.outputs.clone();
        if self.is_fragment() {
            if self.chance(15) {
                list.push((Slot::FragDepth, 1, Type::F32));
            }
            if self.chance(10) {
                list.push((Slot::SampleMask, 1, Type::I32));
            }
        }
        let mut at = 0;
        for (slot, components, ty) in list {
            for component in 0..components {
                // Some are left as they were on the way.
                if slot != Slot::Position && self.chance(10) {
                    continue;
                }
                let word = words[at % words.len()];
                at += 1;
                let v = match (slot, ty) {
                    (Slot::FragDepth, _) => self.exact(word, 1.0 / 1024.0),
                    (_, Type::F32) => self.exact(word, 1.0 / 64.0),
                    _ => word,
                };
                self.output_to(slot, component, v);
            }
        }
    }
}
