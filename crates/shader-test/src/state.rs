//! What lines of a test leave behind for the next ones, and what a stage is bound to because of it.

use crate::command::{Class, Number};
use kempe::draw::picture::Surface;
use kempe::exec::{BufferInput, ImageInput, Inputs, SamplerInput};
use kempe::ir::image::{Component, Format, ImageDesc, ImageInfo};
use kempe::ir::sample::{Filter, Sampler, Wrap};
use kempe::ir::{ResKind, Resource, Type};
use kempe::link::{LEGACY_PREFIX, Linked};
use std::collections::BTreeMap;

/// A uniform as it was set: the values of some elements from one on.
#[derive(Clone, Debug)]
struct Set {
    class: Class,
    values: Vec<Number>,
}

/// Bindings and uniforms.
#[derive(Clone, Default, Debug)]
pub struct State {
    /// By name and index of the first scalar.
    uniforms: BTreeMap<String, BTreeMap<usize, Set>>,
    /// By texture unit.
    pub textures: BTreeMap<u32, Surface>,
    pub linear: bool,
    pub buffers: BTreeMap<u32, Vec<u8>>,
    pub counters: Vec<u32>,
    /// Left, right, bottom, top of the projection.
    pub ortho: Option<[f64; 4]>,
}

/// Name of the block that glslang makes of atomic counters.
const COUNTERS: &str = "gl_AtomicCounterBlock";

/// Largest buffer that is made for a binding.
const MAX_BUFFER: u32 = 1 << 24;

/// `a[k]` as the name without its last index, and k.
fn last_index(name: &str) -> Option<(String, usize)> {
    let (base, k) = name.strip_suffix(']')?.rsplit_once('[')?;
    Some((base.to_owned(), k.parse().ok()?))
}

/// `a[k].b` as the name without its only index, and k: what a sampler in an array of structures becomes.
fn only_index(name: &str) -> Option<(String, usize)> {
    let (before, rest) = name.split_once('[')?;
    let (k, behind) = rest.split_once(']')?;
    (!behind.is_empty() && !behind.contains('[')).then_some((format!("{before}{behind}"), k.parse().ok()?))
}

/// Column-major.
type Matrix = [[f64; 4]; 4];

const IDENTITY: Matrix =
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];

fn transposed(m: &Matrix) -> Matrix {
    [0, 1, 2, 3].map(|c| [0, 1, 2, 3].map(|r| m[r][c]))
}

/// The name of the buffer that can be written, or of the image, at a place.
fn at(stage: &Linked, place: (u32, u32), image: bool) -> Option<&str> {
    let mut of = stage.module.resources.values().filter(|r| (r.set, r.binding) == place);
    of.find(|r| if image { r.kind.is_image() } else { r.kind == ResKind::StorageBuffer })
        .map(|r| r.name.as_str())
}

impl State {
    pub fn set_uniform(&mut self, name: &str, class: Class, scalars: usize, values: &[Number]) {
        // The whole name may be that of a field that is part of an array; it is looked for with and without its index.
        let set = Set { class, values: values.to_vec() };
        for (base, k) in [last_index(name), only_index(name)].into_iter().flatten() {
            self.uniforms.entry(base).or_default().insert(k.saturating_mul(scalars), set.clone());
        }
        self.uniforms.entry(name.to_owned()).or_default().insert(0, set);
    }

    /// The unit that a sampler or image is told to use.
    fn unit(&self, name: &str, element: u32) -> Option<u32> {
        let sets = self.uniforms.get(name)?;
        let (first, set) = sets.range(..=element as usize).next_back()?;
        let value = set.values.get(element as usize - first)?;
        u32::try_from(value.i64()).ok()
    }

    /// The matrices of the fixed functions.
    fn matrix(&self, name: &str) -> Option<Matrix> {
        let name = name.strip_prefix(LEGACY_PREFIX)?;
        let (mut projection, mut inverse) = (IDENTITY, IDENTITY);
        if let Some([left, right, bottom, top]) = self.ortho {
            let (w, h) = (right - left, top - bottom);
            projection[0][0] = 2.0 / w;
            projection[1][1] = 2.0 / h;
            projection[2][2] = -1.0;
            projection[3] = [-(right + left) / w, -(top + bottom) / h, 0.0, 1.0];
            inverse[0][0] = w / 2.0;
            inverse[1][1] = h / 2.0;
            inverse[2][2] = -1.0;
            inverse[3] = [(right + left) / 2.0, (top + bottom) / 2.0, 0.0, 1.0];
        }
        Some(match name {
            "ProjectionMatrix" | "ModelViewProjectionMatrix" => projection,
            "ProjectionMatrixTranspose" | "ModelViewProjectionMatrixTranspose" => transposed(&projection),
            "ProjectionMatrixInverse" | "ModelViewProjectionMatrixInverse" => inverse,
            _ if name.starts_with("ModelViewMatrix") || name == "NormalMatrix" || name == "TextureMatrix" => {
                IDENTITY
            }
            _ => return None,
        })
    }

    /// Writes the uniforms of one block.
    fn fill(&self, place: (u32, u32), stage: &Linked, bytes: &mut [u8]) {
        let mut put = |offset: u32, word: &[u8]| {
            let at = offset as usize;
            if let Some(slot) = bytes.get_mut(at..at + word.len()) {
                slot.copy_from_slice(word);
            }
        };
        for f in stage.names.fields.iter().filter(|f| f.place == Some(place)) {
            if let Some(m) = self.matrix(&f.name) {
                let rows = if f.offsets.len() == 9 { 3 } else { 4 };
                for (k, &offset) in f.offsets.iter().enumerate() {
                    let k = k % (rows * rows);
                    put(offset, &(m[k / rows][k % rows] as f32).to_le_bytes());
                }
            }
            let [long, of_block] = [&f.variable, &f.block].map(|b| format!("{b}.{}", f.name));
            for sets in [&of_block, &long, &f.name].into_iter().filter_map(|name| self.uniforms.get(name)) {
                for (first, set) in sets {
                    for (&offset, v) in f.offsets.iter().skip(*first).zip(&set.values) {
                        match (f.ty, set.class) {
                            (Type::F32, _) => put(offset, &v.f32().to_le_bytes()),
                            (Type::F64, _) => put(offset, &v.f64().to_le_bytes()),
                            (Type::I64, _) => put(offset, &v.i64().to_le_bytes()),
                            (Type::I32, Class::Float) => {
                                // Only a boolean is set by floats.
                                put(offset, &u32::from(v.f32() != 0.0).to_le_bytes());
                            }
                            (Type::I32, _) => put(offset, &(v.i64() as i32).to_le_bytes()),
                            _ => {}
                        }
                    }
                }
            }
        }
    }

    /// The binding that the test means: a block that says none has got a number here, and is at 0 in OpenGL.
    fn buffer_at(&self, binding: u32) -> u32 {
        if self.buffers.contains_key(&binding) { binding } else { 0 }
    }

    fn buffer(&self, r: &Resource, name: &str, stage: &Linked) -> Vec<u8> {
        let mut bytes = if name.starts_with(COUNTERS) {
            self.counters.iter().flat_map(|c| c.to_le_bytes()).collect()
        } else if r.kind == ResKind::StorageBuffer {
            self.buffers.get(&self.buffer_at(r.binding)).cloned().unwrap_or_default()
        } else {
            Vec::new()
        };
        let least = r.size.saturating_add(r.tail_stride).min(MAX_BUFFER) as usize;
        bytes.resize(bytes.len().max(least), 0);
        self.fill((r.set, r.binding), stage, &mut bytes);
        bytes
    }

    /// A texture in the shape and format that a program declares.
    fn image(&self, unit: u32, info: &ImageInfo, storage: bool) -> Result<(ImageDesc, Vec<u8>), String> {
        let Some(surface) = self.textures.get(&unit) else {
            return Err(format!("texture unit {unit} has no texture"));
        };
        let mut desc = ImageDesc::new(info, Format::Rgba8, &[surface.width, surface.height]);
        desc.format = match (storage, surface.formats.first()) {
            (false, Some(&format)) => format,
            _ => info.storage_format(),
        };
        if desc.extent != [surface.width, surface.height, 1] || desc.layers != 1 || info.multisampled {
            return Err("a texture of another shape than 2D".to_owned());
        }
        if desc.format.component() != Component::F32 || info.component != Component::F32 {
            return Err("a texture of integers".to_owned());
        }
        if info.depth {
            return Err("a texture that is compared with".to_owned());
        }
        let size = desc.format.bytes() as usize;
        let texel = |c: &[u32; 4]| {
            let words = desc.format.encode(*c);
            words.iter().flat_map(|w| w.to_le_bytes()).take(size).collect::<Vec<u8>>()
        };
        Ok((desc, surface.colors.first().into_iter().flatten().flat_map(texel).collect()))
    }

    /// What a stage is bound to.
    ///
    /// # Errors
    /// What it needs and nobody gave.
    pub fn inputs(&self, stage: &Linked, groups: [u32; 3]) -> Result<Inputs, String> {
        let mut inputs = Inputs::new(groups);
        for r in stage.module.resources.values() {
            let (set, binding) = (r.set, r.binding);
            let name = r.name.as_str();
            match r.kind {
                ResKind::UniformBuffer | ResKind::StorageBuffer => {
                    if inputs.buffers.iter().any(|b| (b.set, b.binding) == (set, binding)) {
                        continue;
                    }
                    for element in 0..r.elements.clamp(1, 16) {
                        let bytes = self.buffer(r, name, stage);
                        inputs.buffers.push(BufferInput { set, binding, element, bytes });
                    }
                }
                ResKind::Texture | ResKind::Image => {
                    let Some(info) = r.image else { continue };
                    if inputs.images.iter().any(|i| (i.set, i.binding) == (set, binding)) {
                        continue;
                    }
                    for element in 0..r.elements.clamp(1, 16) {
                        let unit = self.unit(name, element).unwrap_or(element);
                        let (desc, bytes) = self.image(unit, &info, r.kind == ResKind::Image)?;
                        inputs.images.push(ImageInput { set, binding, element, desc, bytes });
                        let filter = if self.linear { Filter::Linear } else { Filter::Nearest };
                        let sampler = Sampler {
                            magnify: filter,
                            minify: filter,
                            mip: Filter::Nearest,
                            wrap: [Wrap::Clamp; 3],
                            ..Sampler::default()
                        };
                        inputs.samplers.push(SamplerInput { set, binding, element, sampler });
                    }
                }
                ResKind::PushConstants | ResKind::Sampler | ResKind::Other => {}
            }
        }
        Ok(inputs)
    }

    /// Takes back what a dispatch left in its buffers and images: `out` is in the order of the inputs, buffers first.
    pub fn keep(&mut self, stage: &Linked, inputs: &Inputs, out: &[kempe::run::BufferOutput]) {
        for (b, o) in inputs.buffers.iter().zip(out) {
            let Some(name) = at(stage, (b.set, b.binding), false) else { continue };
            if name.starts_with(COUNTERS) {
                self.counters =
                    o.bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
            } else if let Some(buffer) = self.buffers.get_mut(&self.buffer_at(b.binding)) {
                buffer.clone_from(&o.bytes);
            }
        }
        for (i, o) in inputs.images.iter().zip(out.iter().skip(inputs.buffers.len())) {
            let Some(name) = at(stage, (i.set, i.binding), true) else { continue };
            let unit = self.unit(name, i.element).unwrap_or(i.element);
            let Some(surface) = self.textures.get_mut(&unit) else { continue };
            let size = i.desc.format.bytes() as usize;
            let format = surface.formats.first().copied();
            for (pixel, bytes) in o.bytes.chunks_exact(size).enumerate() {
                let color = i.desc.format.decode(kempe::ir::image::texel_words(bytes));
                let kept = format.map_or(color, |f| f.decode(f.encode(color)));
                if let Some(slot) = surface.colors.first_mut().and_then(|l| l.get_mut(pixel)) {
                    *slot = kept;
                }
            }
        }
    }
}
