//! Plausible inputs for a module that nobody has described: what words it reads, as what type, and random values in
//! ranges that keep its addresses inside its buffers.
//!
//! [`Usage::scan`] follows every address back to its resource and notes which words are read as floats and which as
//! integers. [`search`] then draws inputs and lets the caller run them; an access outside a buffer makes that buffer
//! larger or the integers smaller, a bounded number of times. Robust access is off everywhere, so an input that leads
//! outside is disqualified, not the module.
//!
//! * [`images`]: contents and sizes of images, samplers
//! * [`stages`]: what vertices and fragments are given

mod images;
mod stages;
#[cfg(test)]
mod tests;

use crate::entity::Entity;
use crate::exec::{Fault, Inputs};
use crate::module::*;
use crate::ops::Op;
use crate::types::Type;

/// How one kind of access touches a resource: `offset + k * stride` for any k when `stride` is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pattern {
    offset: u32,
    stride: u32,
    ty: Type,
    count: u32,
}

/// What a module reads from one buffer.
#[derive(Clone, Debug, Default)]
struct BufferUsage {
    patterns: Vec<Pattern>,
    written: bool,
    dynamic: bool,
    /// End of what is accessed at constant offsets.
    fixed_end: u32,
}

/// What a module reads from its resources.
#[derive(Clone, Debug)]
pub struct Usage {
    by_res: Vec<BufferUsage>,
    images: Vec<images::ImageUsage>,
    interface: stages::Interface,
}

/// Ranges that the random values are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ranges {
    /// Integers lie in 0..=this.
    pub int_max: u32,
    /// Integers of uniform and push constant blocks (sizes, strides) lie in `dim_min..=dim_max`.
    pub dim_min: u32,
    pub dim_max: u32,
    pub groups: [u32; 3],
}

/// What floats are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Floats {
    /// Of both signs.
    Signed,
    /// 0 to 1: colours, places in an image, progress of a transition.
    Unit,
    /// Small whole numbers that are not negative: indices and places of texels.
    Whole,
}

impl Floats {
    /// Those of a seed. Compute programs index with integers; stages of the graphics pipeline are full of both.
    fn of(module: &Module, seed: u64) -> Floats {
        match (module.stage, seed % 4) {
            (Stage::Compute, _) | (_, 0 | 2) => Floats::Signed,
            (_, 1) => Floats::Unit,
            _ => Floats::Whole,
        }
    }

    fn draw(self, ranges: &Ranges, rng: &mut Random) -> f32 {
        match self {
            Floats::Signed => rng.float(),
            Floats::Unit => rng.below(257) as f32 / 256.0,
            Floats::Whole => rng.below(ranges.int_max as u64 + 1) as f32,
        }
    }
}

/// A small deterministic generator (splitmix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n` (0 for n = 0).
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.bits() % n }
    }

    /// A float of moderate size that is exact in half precision, with a sign.
    pub fn float(&mut self) -> f32 {
        (self.below(2049) as f32 - 1024.0) / 256.0
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Usage {
    /// Reads the accesses of a module in source form.
    pub fn scan(module: &Module) -> Usage {
        let f = &module.func;
        let mut by_res = vec![BufferUsage::default(); module.resources.len()];
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let inst = &f.insts[i];
                let (count, write) = match (inst.op, inst.imm) {
                    (Op::Load, Imm::Mem(m)) => (m.count as u32, false),
                    (Op::Store, Imm::Mem(m)) => (m.count as u32, true),
                    (Op::Atomic, _) => (1, true),
                    _ => continue,
                };
                let Some((res, offset, stride)) = trace(f, inst.args[0]) else { continue };
                let u = &mut by_res[res.0 as usize];
                u.written |= write;
                let p = Pattern { offset, stride, ty: inst.ty, count };
                if stride == 0 {
                    u.fixed_end = u.fixed_end.max(offset.saturating_add(count * inst.ty.bytes()));
                } else {
                    u.dynamic = true;
                }
                // Few different patterns are common, thousands of the same.
                if !u.patterns.contains(&p) && u.patterns.len() < 4096 {
                    u.patterns.push(p);
                }
            }
        }
        for u in &mut by_res {
            // Exact places say more than arrays.
            u.patterns.sort_by_key(|p| (p.stride != 0, p.offset, p.stride));
        }
        Usage { by_res, images: images::scan(module), interface: stages::scan(module) }
    }

    /// Draws inputs: every buffer with `bytes(resource)` bytes at least.
    pub fn draw(
        &self,
        module: &Module,
        seed: u64,
        ranges: &Ranges,
        bytes: impl Fn(Res, &Resource) -> u32,
    ) -> Inputs {
        self.draw_floats(module, seed, ranges, Floats::of(module, seed), bytes)
    }

    fn draw_floats(
        &self,
        module: &Module,
        seed: u64,
        ranges: &Ranges,
        floats: Floats,
        bytes: impl Fn(Res, &Resource) -> u32,
    ) -> Inputs {
        let mut rng = Random(seed ^ 0x6b_656d_7065);
        let mut inputs = Inputs::new(ranges.groups);
        for (res, r) in module.resources.iter() {
            let u = &self.by_res[res.0 as usize];
            let least = r.size.max(u.fixed_end).next_multiple_of(16).max(16);
            let size = if u.dynamic { least.max(bytes(res, r)) } else { least };
            let small = matches!(r.kind, ResKind::UniformBuffer | ResKind::PushConstants);
            match r.kind {
                ResKind::PushConstants => {
                    let data = self.fill(u, least, small, ranges, floats, &mut rng);
                    inputs = inputs.push(data);
                }
                ResKind::StorageBuffer | ResKind::UniformBuffer => {
                    for element in 0..r.elements.clamp(1, 8) {
                        let data = self.fill(u, size, small, ranges, floats, &mut rng);
                        // Several declarations may name the same binding: one buffer, as large as any wants it.
                        let known = inputs
                            .buffers
                            .iter_mut()
                            .find(|b| (b.set, b.binding, b.element) == (r.set, r.binding, element));
                        if let Some(known) = known {
                            if known.bytes.len() < data.len() {
                                known.bytes = data;
                            }
                            continue;
                        }
                        inputs = inputs.buffer(r.set, r.binding, data);
                        if let Some(last) = inputs.buffers.last_mut() {
                            last.element = element;
                        }
                    }
                }
                ResKind::Image | ResKind::Texture => {
                    let usage = self.images[res.index()];
                    images::draw(module, r, usage, ranges, floats, &mut rng, &mut inputs);
                }
                ResKind::Sampler => images::draw_samplers(r, self.images[res.index()], &mut rng, &mut inputs),
                ResKind::Other => {}
            }
        }
        if module.stage != Stage::Compute {
            stages::draw(module, &self.interface, ranges, floats, &mut rng, &mut inputs);
        }
        inputs
    }

    fn fill(
        &self,
        u: &BufferUsage,
        size: u32,
        small: bool,
        ranges: &Ranges,
        floats: Floats,
        rng: &mut Random,
    ) -> Vec<u8> {
        let mut out = vec![0u8; size as usize];
        // The default, where nothing was recognised: words with few bits.
        let mut word = 0;
        while word + 4 <= size {
            let kind = u.patterns.iter().find(|p| covers(p, word));
            let bits: u32 = match kind.map(|p| p.ty) {
                Some(Type::F32) => floats.draw(ranges, rng).to_bits(),
                Some(Type::F16) => {
                    let h =
                        |rng: &mut Random| crate::eval::f32_to_f16(floats.draw(ranges, rng).to_bits()) as u32;
                    h(rng) | h(rng) << 16
                }
                Some(Type::I8) => (rng.bits() as u32) & 0x7f7f_7f7f,
                Some(Type::I16) => {
                    let h = |rng: &mut Random| rng.below(ranges.int_max as u64 + 1) as u32 & 0xffff;
                    h(rng) | h(rng) << 16
                }
                _ if small => {
                    let span = ranges.dim_max.saturating_sub(ranges.dim_min) as u64 + 1;
                    ranges.dim_min + rng.below(span) as u32
                }
                _ => rng.below(ranges.int_max as u64 + 1) as u32,
            };
            out[word as usize..word as usize + 4].copy_from_slice(&bits.to_le_bytes());
            word += 4;
        }
        out
    }
}

fn covers(p: &Pattern, word: u32) -> bool {
    let len = (p.count * p.ty.bytes()).max(1);
    let Some(d) = (word + 3).checked_sub(p.offset) else { return false };
    let d = d.saturating_sub(3);
    if p.stride == 0 { word < p.offset + len && word + 4 > p.offset } else { d % p.stride < len.max(4) }
}

/// Resource, constant offset and stride (0: none) of an address.
fn trace(f: &Function, addr: Value) -> Option<(Res, u32, u32)> {
    let mut v = addr;
    let mut offset: i64 = 0;
    let mut stride = 0;
    for _ in 0..64 {
        let inst = &f.insts[f.def_inst(v)?];
        match (inst.op, inst.imm) {
            (Op::Lea, Imm::Lea(l)) => {
                offset += l.offset as i64;
                if let Some(&index) = inst.args.get(1) {
                    match f.as_const(index) {
                        Some(c) => offset += (c as u32 as i32 as i64) * l.scale as i64,
                        None => stride = gcd(stride, l.scale),
                    }
                }
                v = inst.args[0];
            }
            (Op::ResourceAddr, Imm::Res(res)) => return Some((res, u32::try_from(offset).ok()?, stride)),
            _ => return None,
        }
    }
    None
}

/// How often a search may try again, and how large a buffer may grow.
const ATTEMPTS: u32 = 14;
const LARGEST: u32 = 4 << 20;
const FIRST: u32 = 16 << 10;

/// What running an input gave, for [`search`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Fine,
    /// It left its buffers.
    Outside(Fault),
    /// Anything else that makes it useless (too many steps, a division of the work that nobody can run).
    Useless(String),
}

/// Draws inputs for a seed until one stays inside its buffers. Names of regions are those of
/// [`crate::exec::Environment`]: a fault is attributed by position to the buffer whose name it carries.
///
/// # Errors
/// What stood in the way of the last attempt.
pub fn search(
    module: &Module,
    usage: &Usage,
    seed: u64,
    mut run: impl FnMut(&Inputs) -> Verdict,
) -> Result<Inputs, String> {
    let mut rng = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 77);
    let mut size = FIRST;
    let pick = |rng: &mut Random, list: &[u32]| list[rng.below(list.len() as u64) as usize];
    let mut int_max = pick(&mut rng, &[3, 7, 15, 1]);
    let mut dim_max = pick(&mut rng, &[4, 8, 3, 12, 2, 16]);
    let mut dim_min = pick(&mut rng, &[1, 1, 0, 2]).min(dim_max);
    let groups = [pick(&mut rng, &[1, 2, 3]), pick(&mut rng, &[1, 1, 2]), pick(&mut rng, &[1, 1, 2])];
    let mut groups = groups;
    let mut last = String::from("no attempt");
    for attempt in 0..ATTEMPTS {
        let ranges = Ranges { int_max, dim_min, dim_max, groups };
        // Addresses of a graphics stage are often made of floats.
        let floats = match (module.stage, attempt) {
            (Stage::Vertex | Stage::Fragment, 3..) => Floats::Whole,
            _ => Floats::of(module, seed),
        };
        let draw = seed.wrapping_add((attempt as u64) << 32);
        let inputs = usage.draw_floats(module, draw, &ranges, floats, |_, _| size);
        match run(&inputs) {
            Verdict::Fine => return Ok(inputs),
            Verdict::Outside(fault) => {
                last = fault.to_string();
                let far = fault
                    .nearest
                    .as_ref()
                    .is_none_or(|(_, offset, _)| *offset < 0 || *offset > LARGEST as i64);
                if !far && size < LARGEST {
                    size = (size * 8).min(LARGEST);
                } else {
                    // An address made of bad numbers: smaller integers, other sizes.
                    int_max /= 2;
                    dim_max = (dim_max / 2).max(1);
                    dim_min = if dim_min == 0 { 1.min(dim_max) } else { dim_min.min(dim_max) };
                    if attempt % 3 == 2 {
                        groups = [1, 1, 1];
                    }
                }
            }
            Verdict::Useless(why) => {
                last = why;
                int_max /= 2;
                dim_max = (dim_max / 2).max(1);
                dim_min = dim_min.min(dim_max);
                groups = [1, 1, 1];
            }
        }
    }
    Err(last)
}
