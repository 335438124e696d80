//! What everything that runs a program shares: memory, bindings, and who computes what.
//!
//! The interpreter of the IR and the simulators of the machines are given the same [`Environment`], so a program
//! that is lowered to flat addresses sees the same words and the same addresses in both, and their results can be
//! compared bit for bit.
//!
//! * [`Memory`]: one flat 32-bit address space of named regions with wide gaps between them; every access is
//!   checked and an access outside gives a [`Fault`].
//! * [`Inputs`]: what the user of a program binds: buffers, push constants, the number of work-groups.
//! * [`Environment`]: the two put together for one module; it answers [`UniformWord`]s.
//! * [`Batches`]: which invocation runs on which lane of which hardware batch.
//!
//! Nothing here knows a machine: what differs between machines is a [`StartState`] that the caller supplies.

use crate::entity::{Entity, Table};
use crate::image::ImageDesc;
use crate::io::{StageInputs, Viewport};
use crate::module::{Module, ResKind, UniformWord, Var};
use crate::sample::Sampler;
use crate::types::Space;
use std::fmt;

/// Lanes of a hardware batch.
pub const LANES: usize = 16;

/// Least distance between two regions, so that an index that is a little off does not reach the next one.
pub const GUARD: u32 = 1 << 16;

/// Distance that is kept while there is room: a computed index that is wrong is often wrong by a lot.
const WIDE_GUARD: u32 = 1 << 24;

/// First address that is handed out; below it nothing is ever mapped, so a null pointer faults.
const FIRST_ADDRESS: u32 = 1 << 20;

/// Regions start at a multiple of this (more than any buffer alignment that the source languages ask for).
const REGION_ALIGN: u32 = 256;

/// A piece of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pub name: String,
    pub base: u32,
    pub bytes: Vec<u8>,
    pub writable: bool,
}

/// An access that memory refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub address: u32,
    pub bytes: u32,
    pub write: bool,
    /// True when the place exists but may not be written.
    pub read_only: bool,
    /// Name of the closest region and the offset of the address from its base.
    pub nearest: Option<(String, i64, u32)>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.write { "write" } else { "read" };
        if self.read_only {
            write!(f, "{what} of {} bytes at {:#010x} in read-only memory", self.bytes, self.address)?;
        } else {
            write!(f, "{what} of {} bytes at {:#010x} outside of every buffer", self.bytes, self.address)?;
        }
        if let Some((name, offset, size)) = &self.nearest {
            write!(f, " (offset {offset} of `{name}`, which has {size} bytes)")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A flat 32-bit address space of regions. `Clone` is a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// By ascending base, not overlapping.
    regions: Vec<Region>,
}

impl Memory {
    pub fn new() -> Memory {
        Memory::default()
    }

    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Number of the region that was put at this base.
    pub fn region_at(&self, base: u32) -> Option<usize> {
        self.regions.binary_search_by_key(&base, |r| r.base).ok()
    }

    pub fn bytes(&self, region: usize) -> &[u8] {
        &self.regions[region].bytes
    }

    pub fn bytes_mut(&mut self, region: usize) -> &mut [u8] {
        &mut self.regions[region].bytes
    }

    /// Puts a region at a given address. Fails when it overlaps another or leaves the address space.
    pub fn put(&mut self, name: &str, base: u32, bytes: Vec<u8>, writable: bool) -> Result<(), String> {
        let end = base as u64 + bytes.len() as u64;
        if end > 1 << 32 {
            return Err(format!("`{name}` does not fit below 4 GiB"));
        }
        let at = self.regions.partition_point(|r| r.base < base);
        let before = at.checked_sub(1).map(|i| &self.regions[i]);
        if before.is_some_and(|r| r.base as u64 + r.bytes.len() as u64 > base as u64)
            || self.regions.get(at).is_some_and(|r| (r.base as u64) < end || r.base == base)
        {
            return Err(format!("`{name}` overlaps another region"));
        }
        self.regions.insert(at, Region { name: name.to_owned(), base, bytes, writable });
        Ok(())
    }

    /// Puts a region behind all others, with a gap of at least [`GUARD`] bytes. Returns its base.
    pub fn place(&mut self, name: &str, bytes: Vec<u8>, writable: bool) -> Result<u32, String> {
        let end = self.regions.last().map_or(0, |r| r.base as u64 + r.bytes.len() as u64);
        let len = bytes.len() as u64;
        let align = |a: u64| a.next_multiple_of(REGION_ALIGN as u64);
        let mut base = align((end + WIDE_GUARD as u64).max(FIRST_ADDRESS as u64));
        if base + len + WIDE_GUARD as u64 > 1 << 31 {
            base = align((end + GUARD as u64).max(FIRST_ADDRESS as u64));
        }
        if base + len + GUARD as u64 > 1 << 32 {
            return Err(format!("no room for the {len} bytes of `{name}`"));
        }
        self.put(name, base as u32, bytes, writable)?;
        Ok(base as u32)
    }

    /// The region that holds all of `len` bytes at `address`, and the offset in it.
    #[inline]
    pub fn find(&self, address: u32, len: u32) -> Option<(usize, usize)> {
        let i = self.regions.partition_point(|r| r.base <= address).checked_sub(1)?;
        let r = &self.regions[i];
        let offset = (address - r.base) as usize;
        (offset + len as usize <= r.bytes.len()).then_some((i, offset))
    }

    /// The error for an access that [`Memory::find`] refused or that would write read-only memory.
    #[cold]
    pub fn fault(&self, address: u32, bytes: u32, write: bool) -> Fault {
        let mut nearest: Option<(u64, &Region)> = None;
        for r in &self.regions {
            let end = r.base as u64 + r.bytes.len() as u64;
            let distance = if address < r.base {
                (r.base - address) as u64
            } else {
                (address as u64).saturating_sub(end)
            };
            if nearest.is_none_or(|(d, _)| distance < d) {
                nearest = Some((distance, r));
            }
        }
        Fault {
            address,
            bytes,
            write,
            read_only: self.find(address, bytes).is_some(),
            nearest: nearest
                .map(|(_, r)| (r.name.clone(), address as i64 - r.base as i64, r.bytes.len() as u32)),
        }
    }

    /// Reads `len` bytes (1, 2, 4 or 8), little-endian, zero-extended.
    #[inline]
    pub fn read(&self, address: u32, len: u32) -> Result<u64, Fault> {
        match self.find(address, len) {
            Some((i, offset)) => Ok(read_le(&self.regions[i].bytes, offset, len)),
            None => Err(self.fault(address, len, false)),
        }
    }

    /// Writes the low `len` bytes (1, 2, 4 or 8) of `value`.
    #[inline]
    pub fn write(&mut self, address: u32, len: u32, value: u64) -> Result<(), Fault> {
        match self.find(address, len) {
            Some((i, offset)) if self.regions[i].writable => {
                write_le(&mut self.regions[i].bytes, offset, len, value);
                Ok(())
            }
            _ => Err(self.fault(address, len, true)),
        }
    }

    pub fn read_u32(&self, address: u32) -> Result<u32, Fault> {
        self.read(address, 4).map(|v| v as u32)
    }

    pub fn write_u32(&mut self, address: u32, value: u32) -> Result<(), Fault> {
        self.write(address, 4, value as u64)
    }
}

/// Reads 1, 2, 4 or 8 bytes inside `bytes`.
#[inline]
pub fn read_le(bytes: &[u8], offset: usize, len: u32) -> u64 {
    let b = &bytes[offset..];
    match len {
        1 => b[0] as u64,
        2 => u16::from_le_bytes([b[0], b[1]]) as u64,
        4 => u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as u64,
        _ => u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
    }
}

/// Writes 1, 2, 4 or 8 bytes inside `bytes`.
#[inline]
pub fn write_le(bytes: &mut [u8], offset: usize, len: u32, value: u64) {
    bytes[offset..offset + len as usize].copy_from_slice(&value.to_le_bytes()[..len as usize]);
}

/// Where the variables of one address space lie, relative to its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VarLayout {
    /// Byte offset by variable (`u32::MAX` for variables of other spaces).
    pub offsets: Table<Var, u32>,
    /// Bytes in all, a multiple of 16.
    pub bytes: u32,
}

/// Lays the variables of a space out in the order of their ids. Lowering and interpreter use the same layout.
pub fn variable_layout(module: &Module, space: Space) -> Result<VarLayout, String> {
    let mut offsets = Table::new(module.vars.len(), u32::MAX);
    let mut end = 0u64;
    for (v, data) in module.vars.iter() {
        if data.space == space {
            // Rounding the start up to 4 keeps word access to narrow data possible.
            let align = data.align.max(4).checked_next_power_of_two().unwrap_or(1 << 31);
            end = end.next_multiple_of(align as u64);
            if end + data.size as u64 > u32::MAX as u64 / 2 {
                return Err(format!("the {} variables take too much memory", space.name()));
            }
            offsets[v] = end as u32;
            end += data.size as u64;
        }
    }
    Ok(VarLayout { offsets, bytes: end.next_multiple_of(16) as u32 })
}

/// Contents of one buffer binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferInput {
    pub set: u32,
    pub binding: u32,
    /// Element of an array of resources, 0 otherwise.
    pub element: u32,
    pub bytes: Vec<u8>,
}

/// Contents of one image binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageInput {
    pub set: u32,
    pub binding: u32,
    /// Element of an array of resources, 0 otherwise.
    pub element: u32,
    pub desc: ImageDesc,
    /// As [`crate::image`] lays them out; missing bytes at the end are zeros.
    pub bytes: Vec<u8>,
}

/// A sampler, alone or together with the image of the same binding.
#[derive(Clone, PartialEq, Debug)]
pub struct SamplerInput {
    pub set: u32,
    pub binding: u32,
    /// Element of an array of resources, 0 otherwise.
    pub element: u32,
    pub sampler: Sampler,
}

/// What the user of a program gives it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs {
    /// Work-groups by axis.
    pub groups: [u32; 3],
    pub buffers: Vec<BufferInput>,
    pub images: Vec<ImageInput>,
    /// What is looked up through no sampler of this list goes through the default one.
    pub samplers: Vec<SamplerInput>,
    pub push: Vec<u8>,
    pub viewport: Viewport,
    /// Of a graphics stage; work-groups have no meaning then.
    pub stage: Option<StageInputs>,
}

impl Inputs {
    pub fn new(groups: [u32; 3]) -> Inputs {
        Inputs { groups, ..Inputs::default() }
    }

    /// Adds a buffer for an ordinary binding.
    pub fn buffer(mut self, set: u32, binding: u32, bytes: Vec<u8>) -> Inputs {
        self.buffers.push(BufferInput { set, binding, element: 0, bytes });
        self
    }

    /// Adds an image for an ordinary binding.
    pub fn image(mut self, set: u32, binding: u32, desc: ImageDesc, bytes: Vec<u8>) -> Inputs {
        self.images.push(ImageInput { set, binding, element: 0, desc, bytes });
        self
    }

    pub fn push(mut self, bytes: Vec<u8>) -> Inputs {
        self.push = bytes;
        self
    }
}

/// What the run takes besides the bindings: given by the machine, or [`Sizes::source`] for the source form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Work-groups that run together and number their shared memory from 0.
    pub wgs_per_supergroup: u32,
    /// Scratch bytes of each hardware thread, and how many threads there are (both 0: no scratch).
    pub scratch_bytes_per_thread: u32,
    pub threads: u32,
}

impl Sizes {
    /// For a program whose private memory is still a space of its own.
    pub fn source() -> Sizes {
        Sizes { wgs_per_supergroup: 1, scratch_bytes_per_thread: 0, threads: 0 }
    }
}

/// A binding that has been given an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedBuffer {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub base: u32,
    pub size: u32,
}

/// An image that has been given a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedImage {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub name: String,
    pub desc: ImageDesc,
    /// First byte of its texels.
    pub base: u32,
    /// Address that stands for its description: a multiple of 16 where nothing is mapped.
    pub state: u32,
}

/// Most images of a run: their descriptions have addresses within a gap between regions.
const MAX_IMAGES: usize = GUARD as usize / 16;

/// Most bytes that a run may place, so that a module that asks for absurd amounts is an error.
pub const MAX_BYTES: u64 = 1 << 31;

/// A module with its bindings placed in memory: everything that a run starts from.
#[derive(Clone, PartialEq, Debug)]
pub struct Environment {
    pub memory: Memory,
    pub groups: [u32; 3],
    pub sizes: Sizes,
    /// In the order of the inputs.
    pub buffers: Vec<PlacedBuffer>,
    /// In the order of the inputs.
    pub images: Vec<PlacedImage>,
    pub samplers: Vec<SamplerInput>,
    /// Address that stands for the first sampler's description; the others follow in steps of 16, and behind them the default one.
    /// Nothing is mapped there.
    pub sampler_states: u32,
    pub viewport: Viewport,
    /// Of a graphics stage.
    pub stage: Option<StageInputs>,
    /// Shared variables of one work-group.
    pub shared: VarLayout,
    pub shared_base: u32,
    pub scratch_base: u32,
    pub push_base: u32,
    pub constant_base: u32,
    /// Address by resource, then element.
    resources: Vec<Vec<(u32, u32)>>,
    /// By resource: is it an image, set, binding.
    bound_images: Vec<(bool, u32, u32)>,
    /// Set and binding by resource.
    bindings: Vec<(u32, u32)>,
    push: Vec<u8>,
    /// Where resources lie for which no buffer was given: nothing is mapped there.
    unbound: u32,
}

impl Environment {
    /// Places all bindings of a module. A resource without a buffer is allowed as long as it is not accessed.
    pub fn new(module: &Module, inputs: &Inputs, sizes: Sizes) -> Result<Environment, String> {
        let shared = variable_layout(module, Space::Shared)?;
        let total: u64 = inputs.buffers.iter().map(|b| b.bytes.len() as u64).sum::<u64>()
            + inputs.images.iter().map(|i| i.desc.bytes()).sum::<u64>()
            + inputs.push.len() as u64
            + module.constant_data.len() as u64
            + shared.bytes as u64 * sizes.wgs_per_supergroup as u64
            + sizes.scratch_bytes_per_thread as u64 * sizes.threads as u64;
        if total > MAX_BYTES {
            return Err(format!("the bindings take {total} bytes, more than {MAX_BYTES}"));
        }
        let mut memory = Memory::new();
        let unbound = memory.place("nothing bound", Vec::new(), false)?;
        let mut push = inputs.push.clone();
        push.resize(push.len().next_multiple_of(4), 0);
        let push_base = memory.place("push constants", push.clone(), false)?;
        let constant_base = memory.place("constant data", module.constant_data.clone(), false)?;
        let mut buffers = Vec::new();
        for b in &inputs.buffers {
            let res = module.resources.iter().find(|(_, r)| {
                is_buffer(r.kind)
                    && (r.set, r.binding) == (b.set, b.binding)
                    && (r.elements == 0 || b.element < r.elements)
            });
            // Several resources may share a binding (the same buffer seen as different types); it is writable when
            // any of them may write it.
            let writable = module.resources.values().any(|r| {
                r.kind == ResKind::StorageBuffer && (r.set, r.binding) == (b.set, b.binding) && !r.read_only
            });
            let name = match res {
                Some((_, r)) if !r.name.is_empty() => r.name.clone(),
                _ => format!("binding {}:{}", b.set, b.binding),
            };
            if buffers
                .iter()
                .any(|p: &PlacedBuffer| (p.set, p.binding, p.element) == (b.set, b.binding, b.element))
            {
                return Err(format!("binding {}:{} is given twice", b.set, b.binding));
            }
            let base = memory.place(&name, b.bytes.clone(), writable)?;
            let size = b.bytes.len() as u32;
            buffers.push(PlacedBuffer { set: b.set, binding: b.binding, element: b.element, base, size });
        }
        let images = place_images(module, inputs, &mut memory)?;
        if inputs.samplers.len() >= MAX_IMAGES {
            return Err(format!("more than {} samplers", MAX_IMAGES - 1));
        }
        let sampler_states = memory.place("descriptions of samplers", Vec::new(), false)?;
        let resources = module
            .resources
            .values()
            .map(|r| {
                let mut places = Vec::new();
                for b in buffers.iter().filter(|b| (b.set, b.binding) == (r.set, r.binding)) {
                    // Numbers of elements come from a file: the table grows only to what is bound.
                    if is_buffer(r.kind) && (b.element as usize) < 4096 {
                        if places.len() <= b.element as usize {
                            places.resize(b.element as usize + 1, (unbound, 0));
                        }
                        places[b.element as usize] = (b.base, b.size);
                    }
                }
                places
            })
            .collect();
        let scratch = sizes.scratch_bytes_per_thread as usize * sizes.threads as usize;
        let scratch_base = memory.place("scratch", vec![0; scratch], true)?;
        let shared_bytes = shared.bytes as usize * sizes.wgs_per_supergroup as usize;
        let shared_base = memory.place("shared memory", vec![0; shared_bytes], true)?;
        Ok(Environment {
            memory,
            groups: inputs.groups,
            sizes,
            buffers,
            images,
            samplers: inputs.samplers.clone(),
            sampler_states,
            viewport: inputs.viewport,
            stage: inputs.stage.clone(),
            bindings: module.resources.values().map(|r| (r.set, r.binding)).collect(),
            bound_images: module.resources.values().map(|r| (r.kind.is_image(), r.set, r.binding)).collect(),
            shared,
            shared_base,
            scratch_base,
            push_base,
            constant_base,
            resources,
            push,
            unbound,
        })
    }

    /// Address and size of an element of a resource; an address where nothing is mapped when it is not bound.
    pub fn resource(&self, res: crate::module::Res, element: u32) -> (u32, u32) {
        let places = self.resources.get(res.index());
        places.and_then(|p| p.get(element as usize)).copied().unwrap_or((self.unbound, 0))
    }

    /// The image that is bound to an element of a resource.
    pub fn image(&self, res: crate::module::Res, element: u32) -> Option<&PlacedImage> {
        let &(is_image, set, binding) = self.bound_images.get(res.index())?;
        let here = |i: &&PlacedImage| (i.set, i.binding, i.element) == (set, binding, element);
        self.images.iter().find(here).filter(|_| is_image)
    }

    /// The sampler of an element of a resource (a sampler, or an image with one).
    pub fn sampler(&self, res: crate::module::Res, element: u32) -> Sampler {
        let binding = self.bindings.get(res.index());
        let here = |s: &&SamplerInput| Some(&(s.set, s.binding)) == binding && s.element == element;
        self.samplers.iter().find(here).map_or(Sampler::default(), |s| s.sampler)
    }

    /// Where the description of [`Environment::sampler`] stands.
    fn sampler_state(&self, res: crate::module::Res, element: u32) -> u32 {
        let binding = self.bindings.get(res.index());
        let here = |s: &SamplerInput| Some(&(s.set, s.binding)) == binding && s.element == element;
        let n = self.samplers.iter().position(here).unwrap_or(self.samplers.len());
        self.sampler_states + 16 * n as u32
    }

    /// The sampler whose description stands at an address.
    pub fn sampler_at(&self, state: u32) -> Option<Sampler> {
        let n = state.checked_sub(self.sampler_states)? as usize;
        match (n % 16, n / 16) {
            (0, n) if n == self.samplers.len() => Some(Sampler::default()),
            (0, n) => self.samplers.get(n).map(|s| s.sampler),
            _ => None,
        }
    }

    /// The word that the driver would put into the uniform stream.
    pub fn word(&self, word: UniformWord) -> u32 {
        match word {
            UniformWord::BufferAddr { res, element } => self.resource(res, element).0,
            UniformWord::BufferSize { res, element } => self.resource(res, element).1,
            UniformWord::TextureState { res, element } => {
                self.image(res, element).map_or(self.unbound, |i| i.state)
            }
            UniformWord::SamplerState { res, element } => self.sampler_state(res, element),
            UniformWord::ImageSize { res, element, axis } => {
                self.image(res, element).map_or(0, |i| i.desc.size(axis))
            }
            // Push constants that were not given read as zero, as driver memory does.
            UniformWord::PushWord(offset) => match (offset as usize).checked_add(4) {
                Some(end) if end <= self.push.len() => read_le(&self.push, offset as usize, 4) as u32,
                _ => 0,
            },
            UniformWord::PushAddr => self.push_base,
            UniformWord::ConstantAddr => self.constant_base,
            UniformWord::NumWorkgroups(axis) => self.groups.get(axis as usize).copied().unwrap_or(1),
            UniformWord::ScratchAddr => self.scratch_base,
            UniformWord::ScratchBytesPerThread => self.sizes.scratch_bytes_per_thread,
            UniformWord::SharedAddr => self.shared_base,
            UniformWord::ViewportScale { axis, steps } => self.viewport.scale(axis, steps).to_bits(),
            UniformWord::ViewportNear => self.viewport.depth[0].to_bits(),
            UniformWord::PatchVertices => self.stage.as_ref().map_or(0, |s| s.vertices),
        }
    }

    /// Contents of the images of `memory`, in the order of the inputs.
    pub fn image_contents<'a>(&self, memory: &'a Memory) -> Vec<&'a [u8]> {
        self.images.iter().map(|i| memory.region_at(i.base).map_or(&[][..], |r| memory.bytes(r))).collect()
    }

    /// Contents of the buffers of `memory` (this environment's own memory or a later state of it), in the order
    /// of the inputs.
    pub fn buffer_contents<'a>(&self, memory: &'a Memory) -> Vec<&'a [u8]> {
        self.buffers.iter().map(|b| memory.region_at(b.base).map_or(&[][..], |r| memory.bytes(r))).collect()
    }
}

/// Gives every image its texels and the address of its description.
fn place_images(module: &Module, inputs: &Inputs, memory: &mut Memory) -> Result<Vec<PlacedImage>, String> {
    let mut images: Vec<PlacedImage> = Vec::new();
    if inputs.images.is_empty() {
        return Ok(images);
    }
    if inputs.images.len() > MAX_IMAGES {
        return Err(format!("more than {MAX_IMAGES} images"));
    }
    let states = memory.place("descriptions of images", Vec::new(), false)?;
    for (n, i) in inputs.images.iter().enumerate() {
        let place = format!("binding {}:{}", i.set, i.binding);
        let mut declared = module
            .resources
            .values()
            .filter(|r| r.kind.is_image() && (r.set, r.binding) == (i.set, i.binding))
            .filter_map(|r| r.image.map(|info| (r, info)))
            .peekable();
        let name = match declared.peek() {
            Some((r, _)) if !r.name.is_empty() => r.name.clone(),
            _ => place.clone(),
        };
        let mut writable = false;
        for (r, info) in declared {
            i.desc.fits(&info).map_err(|e| format!("the image at {place} {e}"))?;
            let format = info.storage_format();
            if r.kind == ResKind::Image && i.desc.format != format {
                return Err(format!(
                    "the image at {place} has the format {}, but the program stores {}",
                    i.desc.format.name(),
                    format.name()
                ));
            }
            writable |= r.kind == ResKind::Image && !r.read_only;
        }
        i.desc.check().map_err(|e| format!("the image at {place} {e}"))?;
        if images.iter().any(|p| (p.set, p.binding, p.element) == (i.set, i.binding, i.element)) {
            return Err(format!("{place} is given twice"));
        }
        let size = i.desc.bytes() as usize;
        if i.bytes.len() > size {
            return Err(format!("the image at {place} has {size} bytes, {} are given", i.bytes.len()));
        }
        let mut bytes = i.bytes.clone();
        bytes.resize(size, 0);
        let base = memory.place(&name, bytes, writable)?;
        let state = states + 16 * n as u32;
        let (set, binding, element) = (i.set, i.binding, i.element);
        images.push(PlacedImage { set, binding, element, name, desc: i.desc, base, state });
    }
    Ok(images)
}

fn is_buffer(kind: ResKind) -> bool {
    matches!(kind, ResKind::StorageBuffer | ResKind::UniformBuffer)
}

/// Which invocation a lane runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneContext {
    /// Work-group id.
    pub group: [u32; 3],
    /// Index in the work-group, x fastest.
    pub local_index: u32,
    /// Number of the work-group in the memory of its supergroup.
    pub wg_in_memory: u32,
    /// Invocations per work-group.
    pub workgroup_items: u32,
}

/// What a machine puts into registers before the first instruction.
pub trait StartState {
    /// Payload word of a lane.
    fn payload(&self, number: u32, lane: &LaneContext) -> u32;
    /// Number of the hardware thread that runs a batch of a supergroup.
    fn thread_id(&self, batch: u32) -> u32;
}

/// A machine without payload: for the source form.
pub struct NoPayload;

impl StartState for NoPayload {
    fn payload(&self, _number: u32, _lane: &LaneContext) -> u32 {
        0
    }

    fn thread_id(&self, batch: u32) -> u32 {
        batch
    }
}

/// How a dispatch is cut into supergroups and batches of [`LANES`] items: items of a supergroup are numbered
/// through, work-groups x fastest, then y, then z; a batch is 16 neighbouring items and may therefore hold items of
/// several work-groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batches {
    pub groups: [u32; 3],
    pub workgroup_items: u32,
    pub wgs_per_supergroup: u32,
}

impl Batches {
    pub fn new(module: &Module, env: &Environment) -> Batches {
        Batches {
            groups: env.groups,
            workgroup_items: module.workgroup_items(),
            wgs_per_supergroup: env.sizes.wgs_per_supergroup.max(1),
        }
    }

    /// Work-groups of the dispatch.
    pub fn workgroups(&self) -> u64 {
        self.groups.iter().fold(1, |n: u64, &g| n.saturating_mul(g as u64))
    }

    pub fn supergroups(&self) -> u64 {
        self.workgroups().div_ceil(self.wgs_per_supergroup as u64)
    }

    /// Work-groups in one supergroup (the last one may hold fewer).
    pub fn workgroups_in(&self, supergroup: u64) -> u32 {
        let first = supergroup * self.wgs_per_supergroup as u64;
        self.workgroups().saturating_sub(first).min(self.wgs_per_supergroup as u64) as u32
    }

    /// Batches of one supergroup.
    pub fn batches_in(&self, supergroup: u64) -> u32 {
        (self.workgroups_in(supergroup) as u64 * self.workgroup_items as u64).div_ceil(LANES as u64) as u32
    }

    /// What a lane of a batch runs, and whether it exists: lanes beyond the last item of the supergroup run along
    /// with the numbers of the item that would follow, but must not have any effect.
    pub fn lane(&self, supergroup: u64, batch: u32, lane: u32) -> (LaneContext, bool) {
        let item = batch as u64 * LANES as u64 + lane as u64;
        let items = self.workgroup_items.max(1) as u64;
        let w = item / items;
        let number = supergroup * self.wgs_per_supergroup as u64 + w;
        let [x, y, _] = self.groups.map(|g| g.max(1) as u64);
        let group = [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32];
        let context = LaneContext {
            group,
            local_index: (item % items) as u32,
            wg_in_memory: w as u32,
            workgroup_items: self.workgroup_items,
        };
        (context, w < self.workgroups_in(supergroup) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{Resource, Stage, Variable};

    #[test]
    fn memory_checks_every_access() {
        let mut m = Memory::new();
        let a = m.place("a", vec![1, 2, 3, 4, 5, 6, 7, 8], true).unwrap();
        let b = m.place("b", vec![9; 4], false).unwrap();
        assert!(b - (a + 8) >= GUARD);
        assert_eq!(m.read(a, 8), Ok(0x0807060504030201));
        assert_eq!(m.read(a + 7, 1), Ok(8));
        m.write(a + 2, 2, 0xffff_abcd).unwrap();
        assert_eq!(m.read_u32(a), Ok(0xabcd_0201));
        let f = m.read(a + 5, 4).unwrap_err();
        assert_eq!(f.nearest, Some(("a".to_owned(), 5, 8)));
        assert!(!f.read_only);
        let f = m.write_u32(b, 1).unwrap_err();
        assert!(f.read_only && f.write);
        assert_eq!(m.read(0, 4).unwrap_err().address, 0);
        assert!(m.read(u32::MAX, 8).is_err());
        assert!(m.put("c", a + 4, vec![0; 4], true).is_err());
        assert!(m.put("c", a - 2, vec![0; 4], true).is_err());
        assert!(m.put("c", u32::MAX, vec![0; 2], true).is_err());
    }

    #[test]
    fn environment_answers_words() {
        let mut module = Module::new("main", Stage::Compute);
        module.workgroup_size = [10, 1, 1];
        module.constant_data = vec![1, 2, 3, 4];
        let res = module.resources.push(Resource {
            kind: ResKind::StorageBuffer,
            set: 0,
            binding: 3,
            elements: 1,
            size: 0,
            tail_stride: 4,
            name: "data".to_owned(),
            read_only: false,
            image: None,
        });
        module.vars.push(Variable { space: Space::Shared, size: 6, align: 4, name: "s".to_owned() });
        let inputs = Inputs::new([3, 2, 1]).buffer(0, 3, vec![7; 12]).push(vec![1, 0, 0, 0, 2, 0, 0, 0]);
        let sizes = Sizes { wgs_per_supergroup: 4, scratch_bytes_per_thread: 64, threads: 8 };
        let env = Environment::new(&module, &inputs, sizes).unwrap();
        let base = env.word(UniformWord::BufferAddr { res, element: 0 });
        assert_eq!(env.memory.read_u32(base + 8), Ok(0x07070707));
        assert_eq!(env.word(UniformWord::BufferSize { res, element: 0 }), 12);
        assert_eq!(env.word(UniformWord::BufferSize { res, element: 1 }), 0);
        assert!(env.memory.read(env.word(UniformWord::BufferAddr { res, element: 1 }), 1).is_err());
        assert_eq!(env.word(UniformWord::PushWord(4)), 2);
        assert_eq!(env.word(UniformWord::PushWord(8)), 0);
        assert_eq!(env.word(UniformWord::PushWord(u32::MAX)), 0);
        assert_eq!(env.memory.read_u32(env.word(UniformWord::ConstantAddr)), Ok(0x04030201));
        assert_eq!(env.shared.bytes, 16);
        assert!(env.memory.read(env.shared_base + 60, 4).is_ok());
        assert!(env.memory.read(env.scratch_base + 508, 4).is_ok());
        assert_eq!(env.word(UniformWord::NumWorkgroups(1)), 2);
        assert_eq!(env.buffer_contents(&env.memory), vec![&[7u8; 12][..]]);
    }

    #[test]
    fn batches_share_lanes_between_workgroups() {
        let b = Batches { groups: [3, 2, 1], workgroup_items: 10, wgs_per_supergroup: 4 };
        assert_eq!((b.workgroups(), b.supergroups()), (6, 2));
        assert_eq!((b.batches_in(0), b.batches_in(1)), (3, 2));
        let (l, live) = b.lane(0, 1, 5);
        assert_eq!((l.group, l.local_index, l.wg_in_memory, live), ([2, 0, 0], 1, 2, true));
        let (l, live) = b.lane(1, 1, 3);
        assert_eq!((l.group, l.local_index, live), ([2, 1, 0], 9, true));
        assert!(!b.lane(1, 1, 4).1);
        assert!(!b.lane(0, 2, 8).1);
    }
}
