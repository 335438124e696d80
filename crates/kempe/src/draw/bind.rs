//! What the stages of a draw are bound to: by name, or by set and binding.

use super::texture::Texture;
use crate::link::Linked;
use kempe_ir::exec::{BufferInput, ImageInput, Inputs, SamplerInput};
use kempe_ir::sample::Sampler;
use kempe_ir::{ResKind, Resource, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Largest buffer that is made for a binding.
const MAX_BUFFER: u32 = 1 << 24;

/// Contents of a field or of a buffer.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Numbers(Vec<f64>),
    /// By columns; a field of nine scalars takes its upper left part.
    Matrix([f64; 16]),
}

/// Everything that is given, by name or `SET:BINDING`.
#[derive(Clone, Default, Debug)]
pub struct Bindings {
    /// Fields of uniform buffers and push constants; whole buffers by set and binding, as 32-bit floats.
    pub values: BTreeMap<String, Value>,
    /// Whole buffers as bytes.
    pub buffers: BTreeMap<String, Vec<u8>>,
    pub textures: BTreeMap<String, Arc<Texture>>,
    pub samplers: BTreeMap<String, Sampler>,
    pub push: Option<Vec<u8>>,
}

/// Whether `key` names a place, by its number or one of its names.
fn is_at(key: &str, place: (u32, u32), names: &[&str]) -> bool {
    let number =
        key.split_once(':').and_then(|(set, binding)| Some((set.parse().ok()?, binding.parse().ok()?)));
    number == Some(place) || (!key.is_empty() && names.contains(&key))
}

fn scalar(ty: Type, v: f64) -> Option<u32> {
    match ty {
        Type::F32 => Some((v as f32).to_bits()),
        Type::I32 if v < 0.0 => Some(v as i32 as u32),
        Type::I32 => Some(v as u32),
        _ => None,
    }
}

impl Bindings {
    /// What one stage is bound to; `used` gets the keys that meant something to it.
    ///
    /// # Errors
    /// When something that is given does not fit.
    pub fn of_stage(&self, stage: &Linked, used: &mut BTreeSet<String>) -> Result<Inputs, String> {
        let mut inputs = Inputs::new([1; 3]);
        let mut push = self.push.clone();
        for r in stage.module.resources.values() {
            let place = (r.set, r.binding);
            let mut names: Vec<&str> = vec![&r.name];
            let bound = stage.names.bound.iter().filter(|b| (b.set, b.binding) == place);
            names.extend(bound.map(|b| b.name.as_str()));
            let of_fields = stage.names.fields.iter().filter(|f| f.place == Some(place));
            names.extend(of_fields.map(|f| f.variable.as_str()));
            match r.kind {
                ResKind::UniformBuffer | ResKind::StorageBuffer => {
                    let bytes = self.buffer(r, stage, &names, used)?;
                    let given = inputs.buffers.iter().any(|b| (b.set, b.binding) == place);
                    if !given {
                        inputs.buffers.push(BufferInput {
                            set: r.set,
                            binding: r.binding,
                            element: 0,
                            bytes,
                        });
                    }
                }
                ResKind::PushConstants => {
                    let mut bytes = push.take().unwrap_or_default();
                    bytes.resize(bytes.len().max(r.size.min(MAX_BUFFER) as usize), 0);
                    self.fields(None, stage, &mut bytes, used)?;
                    push = Some(bytes);
                }
                ResKind::Texture => self.texture(r, &names, &mut inputs, used)?,
                ResKind::Sampler => self.sampler(r, &names, &mut inputs, used),
                ResKind::Image | ResKind::Other => {}
            }
        }
        inputs.push = push.unwrap_or_default();
        Ok(inputs)
    }

    fn buffer(
        &self,
        r: &Resource,
        stage: &Linked,
        names: &[&str],
        used: &mut BTreeSet<String>,
    ) -> Result<Vec<u8>, String> {
        let place = (r.set, r.binding);
        let mut bytes = Vec::new();
        for (key, given) in self.buffers.iter().filter(|(key, _)| is_at(key, place, names)) {
            used.insert(key.clone());
            bytes.clone_from(given);
        }
        // Numbers for the whole of it.
        let whole = self.values.iter().filter(|(key, _)| key.contains(':') && is_at(key, place, &[]));
        for (key, value) in whole {
            used.insert(key.clone());
            let list = match value {
                Value::Numbers(list) => list.as_slice(),
                Value::Matrix(m) => m,
            };
            bytes = list.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
        }
        let least = r.size.saturating_add(r.tail_stride).min(MAX_BUFFER) as usize;
        bytes.resize(bytes.len().max(least), 0);
        self.fields(Some(place), stage, &mut bytes, used)?;
        Ok(bytes)
    }

    /// Writes the named fields of a place.
    fn fields(
        &self,
        place: Option<(u32, u32)>,
        stage: &Linked,
        bytes: &mut [u8],
        used: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        for f in stage.names.fields.iter().filter(|f| f.place == place) {
            let long = format!("{}.{}", f.variable, f.name);
            let Some((key, value)) =
                self.values.get_key_value(&f.name).or_else(|| self.values.get_key_value(&long))
            else {
                continue;
            };
            used.insert(key.clone());
            let list: Vec<f64> = match value {
                Value::Numbers(list) => list.clone(),
                Value::Matrix(m) if f.offsets.len() == 9 => (0..9).map(|k| m[4 * (k / 3) + k % 3]).collect(),
                Value::Matrix(m) => m.to_vec(),
            };
            if list.len() > f.offsets.len() {
                return Err(format!("`{key}` has {} scalars, {} are given", f.offsets.len(), list.len()));
            }
            for (&offset, &v) in f.offsets.iter().zip(&list) {
                let Some(word) = scalar(f.ty, v) else {
                    return Err(format!("`{key}` is of type {}, which cannot be given", f.ty));
                };
                if let Some(slot) = bytes.get_mut(offset as usize..).and_then(|b| b.first_chunk_mut::<4>()) {
                    *slot = word.to_le_bytes();
                }
            }
        }
        Ok(())
    }

    fn texture(
        &self,
        r: &Resource,
        names: &[&str],
        inputs: &mut Inputs,
        used: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let (set, binding) = (r.set, r.binding);
        if inputs.images.iter().any(|i| (i.set, i.binding) == (set, binding)) {
            return Ok(());
        }
        let Some(info) = r.image else { return Ok(()) };
        let found = self.textures.iter().find(|(key, _)| is_at(key, (set, binding), names));
        let texture = match found {
            Some((key, texture)) => {
                used.insert(key.clone());
                Arc::clone(texture)
            }
            None => Arc::new(Texture::named("checker")?),
        };
        let named =
            || names.iter().find(|n| !n.is_empty()).map_or(format!("{set}:{binding}"), |n| (*n).to_owned());
        let (desc, bytes) = texture.image(&info).map_err(|e| format!("texture {}: {e}", named()))?;
        for element in 0..r.elements.clamp(1, 16) {
            inputs.images.push(ImageInput { set, binding, element, desc, bytes: bytes.clone() });
        }
        self.sampler(r, names, inputs, used);
        Ok(())
    }

    fn sampler(&self, r: &Resource, names: &[&str], inputs: &mut Inputs, used: &mut BTreeSet<String>) {
        let (set, binding) = (r.set, r.binding);
        if let Some((key, &sampler)) = self.samplers.iter().find(|(key, _)| is_at(key, (set, binding), names))
        {
            used.insert(key.clone());
            for element in 0..r.elements.clamp(1, 16) {
                inputs.samplers.push(SamplerInput { set, binding, element, sampler });
            }
        }
    }

    /// The first key that meant nothing to any stage.
    pub fn unused(&self, used: &BTreeSet<String>) -> Option<&str> {
        let all = self
            .values
            .keys()
            .chain(self.buffers.keys())
            .chain(self.textures.keys())
            .chain(self.samplers.keys());
        all.map(String::as_str).find(|key| !used.contains(*key))
    }
}
