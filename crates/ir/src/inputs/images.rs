//! Images and samplers: sizes, levels, contents.
//!
//! What is read texel by texel holds a texel for every invocation and some more for small coordinates that are computed, since
//! a texel outside stops a run. What is only looked up through samplers has any small size, since coordinates there have no outside.

use super::{Floats, Random, Ranges};
use crate::entity::Entity;
use crate::exec::{ImageInput, Inputs, SamplerInput};
use crate::image::{Axis, Component, Dim, Encoding, Format, ImageDesc, put_texel};
use crate::module::*;
use crate::sample::{Compare, Filter, Sampler, Wrap};

/// How a module uses an image or a sampler.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ImageUsage {
    /// Texels are named by their coordinates.
    texels: bool,
    /// Lookups go through samplers.
    sampled: bool,
    /// They use the sampler that is bound here.
    sampler: bool,
    /// The texels are compared with a reference.
    compared: bool,
    /// An image of integers is looked up through it.
    integers: bool,
}

/// By resource.
pub(super) fn scan(module: &Module) -> Vec<ImageUsage> {
    let mut out = vec![ImageUsage::default(); module.resources.len()];
    let f = &module.func;
    for i in f.layout.iter().flat_map(|&b| &f.blocks[b].insts) {
        match f.insts[*i].imm {
            Imm::Image(imm) => {
                if let Some(u) = out.get_mut(imm.res.index()) {
                    u.texels = true;
                }
            }
            Imm::Sample(imm) => {
                let info = module.resources.get(imm.res).and_then(|r| r.image);
                let integers = info.is_some_and(|i| i.component != Component::F32);
                let sampler = imm.sampler.unwrap_or(imm.res);
                for res in [imm.res, sampler] {
                    if let Some(u) = out.get_mut(res.index()) {
                        u.sampled |= res == imm.res;
                        u.sampler |= res == sampler;
                        u.compared |= imm.dref;
                        u.integers |= integers;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// Extents of images whose texels are named. Fragments lie in 2..16 and ask for neighbours, too.
const LEAST_EXTENT: u32 = 16;
const LEAST_OF_SCREEN: u32 = 24;
const LARGEST_EXTENT: u32 = 256;
const LEAST_LAYERS: u32 = 4;
/// Largest extent of those that are only looked up, and most layers.
const LARGEST_SAMPLED: u64 = 17;
const MOST_LAYERS: u64 = 4;

/// Images of a resource, and the samplers that are bound with them.
pub(super) fn draw(
    module: &Module,
    r: &Resource,
    usage: ImageUsage,
    ranges: &Ranges,
    floats: Floats,
    rng: &mut Random,
    inputs: &mut Inputs,
) {
    let Some(info) = r.image else { return };
    let extent = |axis: usize, least: u32| {
        let invocations = module.workgroup_size[axis].saturating_mul(ranges.groups[axis]);
        invocations.clamp(least, LARGEST_EXTENT)
    };
    let least = if module.stage == Stage::Compute { LEAST_EXTENT } else { LEAST_OF_SCREEN };
    let any_size = usage.sampled && !usage.texels;
    let mut size = Vec::new();
    for &axis in info.axes() {
        let flat = matches!(info.dim, Dim::D1 | Dim::Buffer);
        size.push(match axis {
            Axis::Layers if any_size => 1 + rng.below(MOST_LAYERS) as u32,
            // A cube is as high as it is wide.
            Axis::Height if any_size && info.dim == Dim::Cube => size[0],
            _ if any_size => 1 + rng.below(LARGEST_SAMPLED) as u32,
            _ if info.dim == Dim::Cube && axis.shrinks() => extent(0, least).max(extent(1, least)),
            Axis::Width if flat => {
                let all = (0..3).fold(1, |n: u32, k| n.saturating_mul(extent(k, 1)));
                all.clamp(least, LARGEST_EXTENT)
            }
            Axis::Width => extent(0, least),
            Axis::Height => extent(1, least),
            _ => extent(2, LEAST_LAYERS),
        });
    }
    let formats: &[Format] = match (r.kind, info.component) {
        (ResKind::Texture, Component::F32) if usage.compared || info.depth && usage.sampled => {
            &[Format::R32f]
        }
        (ResKind::Texture, Component::F32) => &[Format::Rgba32f, Format::Rgba8, Format::Rgba16f],
        (ResKind::Texture, Component::I32) if usage.sampled => {
            &[Format::Rgba32i, Format::Rgba8i, Format::R32i, Format::R8i]
        }
        (ResKind::Texture, Component::U32) if usage.sampled => {
            &[Format::Rgba32ui, Format::Rgba8ui, Format::R32ui, Format::R8ui]
        }
        _ => &[info.storage_format()],
    };
    let format = formats[rng.below(formats.len() as u64) as usize];
    let mut desc = ImageDesc::new(&info, format, &size);
    if usage.sampled {
        let largest = desc.extent.iter().copied().max().unwrap_or(1);
        let most = 32 - largest.leading_zeros();
        // All of them, or any number.
        desc.levels = if rng.below(2) == 0 { most } else { 1 + rng.below(most as u64) as u32 };
    }
    if desc.check().is_err() {
        return;
    }
    for element in 0..r.elements.clamp(1, 8) {
        let (set, binding) = (r.set, r.binding);
        if inputs.images.iter().any(|i| (i.set, i.binding, i.element) == (set, binding, element)) {
            continue;
        }
        let mut bytes = vec![0; desc.bytes() as usize];
        for texel in bytes.chunks_exact_mut(format.bytes() as usize) {
            let words = match format.encoding() {
                Encoding::Unorm | Encoding::Snorm => [(); 4].map(|()| rng.bits() as u32),
                // Depths, a few of them exactly at the ends.
                Encoding::Float if format == Format::R32f && usage.compared => {
                    [(rng.below(65) as f32 / 64.0).to_bits(), 0, 0, 0]
                }
                Encoding::Float => format.encode([(); 4].map(|()| floats.draw(ranges, rng).to_bits())),
                _ => format.encode([(); 4].map(|()| rng.below(ranges.int_max as u64 + 1) as u32)),
            };
            put_texel(texel, &words);
        }
        inputs.images.push(ImageInput { set, binding, element, desc, bytes });
    }
    draw_samplers(r, usage, rng, inputs);
}

/// A sampler for every element of a resource that lookups go through.
pub(super) fn draw_samplers(r: &Resource, usage: ImageUsage, rng: &mut Random, inputs: &mut Inputs) {
    if !usage.sampler {
        return;
    }
    for element in 0..r.elements.clamp(1, 8) {
        let (set, binding) = (r.set, r.binding);
        let known = |s: &SamplerInput| (s.set, s.binding, s.element) == (set, binding, element);
        if !inputs.samplers.iter().any(known) {
            let sampler = sampler(usage, rng);
            inputs.samplers.push(SamplerInput { set, binding, element, sampler });
        }
    }
}

fn sampler(usage: ImageUsage, rng: &mut Random) -> Sampler {
    const COMPARISONS: [Compare; 8] = [
        Compare::Never,
        Compare::Less,
        Compare::Equal,
        Compare::LessEqual,
        Compare::Greater,
        Compare::NotEqual,
        Compare::GreaterEqual,
        Compare::Always,
    ];
    const WRAPS: [Wrap; 5] = [Wrap::Repeat, Wrap::Mirror, Wrap::Clamp, Wrap::Border, Wrap::MirrorOnce];
    let filter = |rng: &mut Random| {
        // Integers have no mean.
        if usage.integers || rng.below(2) == 0 { Filter::Nearest } else { Filter::Linear }
    };
    let (magnify, minify, mip) = (filter(rng), filter(rng), filter(rng));
    let one = if usage.integers { 1 } else { 1f32.to_bits() };
    let min_level = if rng.below(4) == 0 { rng.below(24) as f32 / 16.0 } else { 0.0 };
    Sampler {
        magnify,
        minify,
        mip,
        wrap: [(); 3].map(|()| WRAPS[rng.below(5) as usize]),
        // Mostly one that tells texels apart.
        compare: if rng.below(4) == 0 { COMPARISONS[rng.below(8) as usize] } else { Compare::LessEqual },
        min_level,
        max_level: if rng.below(4) == 0 { min_level + rng.below(32) as f32 / 16.0 } else { 1000.0 },
        bias: if rng.below(3) == 0 { rng.below(65) as f32 / 16.0 - 2.0 } else { 0.0 },
        // Those that every API has.
        border: [[0; 4], [0, 0, 0, one], [one; 4]][rng.below(3) as usize],
        unnormalised: false,
    }
}
