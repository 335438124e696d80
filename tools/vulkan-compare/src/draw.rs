//! One draw on the Vulkan device, into targets that come from the CPU and go back to it.
//!
//! Both stages have their own bindings here, so the sets of the fragment shader stand behind those of the vertex shader:
//! [`move_sets`] changes its words.

use crate::vulkan::{Device, Made, Result, TIMEOUT_NS, doing};
use ash::vk;
use kempe_ir::exec::Inputs;
use kempe_ir::image::{Dim, Format, ImageDesc, level_extent};
use kempe_ir::sample::{Compare, Filter, Sampler, Wrap};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

/// Sets of the fragment shader start here.
pub const FRAGMENT_SETS: u32 = 4;

/// How something is bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Uniform,
    Image,
    Combined,
    Sampler,
}

pub struct Stage<'a> {
    pub words: Vec<u32>,
    pub entry: &'a str,
    pub inputs: &'a Inputs,
    /// Number of its first set.
    pub first_set: u32,
    /// Images that are compared with.
    pub depth: BTreeSet<(u32, u32)>,
}

/// A target: contents before and after.
pub struct Target {
    pub format: vk::Format,
    pub bytes: Vec<u8>,
}

pub struct Job<'a> {
    pub stages: [Stage<'a>; 2],
    pub size: [u32; 2],
    /// Locations, four floats each, one after the other in each vertex.
    pub locations: Vec<u32>,
    pub vertices: Vec<f32>,
    pub indices: Vec<u32>,
    pub instances: u32,
    /// Where pixels are written, and which indices belong to it; empty: all of them, everywhere.
    pub parts: Vec<Part>,
    pub cull: vk::CullModeFlags,
    /// Nothing: no test.
    pub depth_test: Option<vk::CompareOp>,
    pub depth_write: bool,
}

/// A draw of its own: corner and size in pixels, range of the indices.
pub struct Part {
    pub corner: [u32; 2],
    pub size: [u32; 2],
    pub indices: std::ops::Range<u32>,
}

pub fn format(format: Format) -> Result<vk::Format> {
    Ok(match format {
        Format::Rgba8 => vk::Format::R8G8B8A8_UNORM,
        Format::Rgba16f => vk::Format::R16G16B16A16_SFLOAT,
        Format::Rgba32f => vk::Format::R32G32B32A32_SFLOAT,
        Format::R32f => vk::Format::R32_SFLOAT,
        Format::Rgba32i => vk::Format::R32G32B32A32_SINT,
        Format::Rgba8i => vk::Format::R8G8B8A8_SINT,
        Format::R32i => vk::Format::R32_SINT,
        Format::R8i => vk::Format::R8_SINT,
        Format::Rgba32ui => vk::Format::R32G32B32A32_UINT,
        Format::Rgba8ui => vk::Format::R8G8B8A8_UINT,
        Format::R32ui => vk::Format::R32_UINT,
        Format::R8ui => vk::Format::R8_UINT,
        other => return Err(format!("format {}", other.name())),
    })
}

/// What a module binds, by set and binding.
pub fn bound(words: &[u32]) -> BTreeMap<(u32, u32), Kind> {
    declared(words).into_iter().collect()
}

/// Two declarations of different kinds have the same place.
pub fn has_conflicts(words: &[u32]) -> bool {
    let all = declared(words);
    let chosen: BTreeMap<(u32, u32), Kind> = all.iter().copied().collect();
    all.iter().any(|(place, kind)| chosen.get(place) != Some(kind))
}

/// Every declaration; an array is of the kind of its elements.
fn declared(words: &[u32]) -> Vec<((u32, u32), Kind)> {
    let (mut pointers, mut sampled, mut images, mut samplers) =
        (BTreeMap::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut arrays = BTreeMap::new();
    let (mut sets, mut bindings, mut variables) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for i in instructions(words) {
        match (i[0] & 0xffff, i.len()) {
            (25, _) => drop(images.insert(i[1])),
            (26, _) => drop(samplers.insert(i[1])),
            (27, _) => drop(sampled.insert(i[1])),
            (28, 4..) => drop(arrays.insert(i[1], i[2])),
            (32, 4..) => drop(pointers.insert(i[1], i[3])),
            (59, 4..) => variables.push((i[2], i[1])),
            (71, 4..) if i[2] == 34 => drop(sets.insert(i[1], i[3])),
            (71, 4..) if i[2] == 33 => drop(bindings.insert(i[1], i[3])),
            _ => {}
        }
    }
    let mut out = Vec::new();
    for (id, pointer) in variables {
        let (Some(&set), Some(&binding)) = (sets.get(&id), bindings.get(&id)) else { continue };
        let ty = pointers.get(&pointer).copied().unwrap_or(0);
        let ty = arrays.get(&ty).copied().unwrap_or(ty);
        let kind = match ty {
            _ if sampled.contains(&ty) => Kind::Combined,
            _ if images.contains(&ty) => Kind::Image,
            _ if samplers.contains(&ty) => Kind::Sampler,
            _ => Kind::Uniform,
        };
        out.push(((set, binding), kind));
    }
    out
}

/// Adds to the number of every set.
pub fn move_sets(words: &mut [u32], by: u32) {
    let mut at = 5;
    while at < words.len() {
        let len = (words[at] >> 16).max(1) as usize;
        if words[at] & 0xffff == 71 && len >= 4 && words.get(at + 2) == Some(&34) {
            words[at + 3] += by;
        }
        at += len;
    }
}

fn instructions(words: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut at = 5;
    std::iter::from_fn(move || {
        let len = (*words.get(at)? >> 16).max(1) as usize;
        let i = words.get(at..at + len)?;
        at += len;
        Some(i)
    })
}

struct Work<'d> {
    device: &'d Device,
    made: Made,
    commands: vk::CommandBuffer,
}

/// Draws; the targets and the depth (the last one of `targets`) hold the result.
pub fn draw(device: &Device, job: &Job, targets: &mut [Target]) -> Result<()> {
    let mut work = Work { device, made: Made::default(), commands: vk::CommandBuffer::null() };
    // SAFETY: the calls follow the valid usage rules of the Vulkan specification; `run` waits for the queue, so nothing is in use when
    // everything that it made is taken down.
    unsafe {
        let result = work.run(job, targets);
        work.made.destroy(&device.device);
        result
    }
}

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
const DEPTH: vk::ImageAspectFlags = vk::ImageAspectFlags::DEPTH;

fn aspect(format: vk::Format) -> vk::ImageAspectFlags {
    if format == vk::Format::D32_SFLOAT { DEPTH } else { COLOR }
}

impl Work<'_> {
    /// A buffer with these bytes, and where the CPU sees it.
    unsafe fn buffer(&mut self, bytes: &[u8], usage: vk::BufferUsageFlags) -> Result<(vk::Buffer, *mut u8)> {
        // SAFETY: see `draw`.
        unsafe {
            let d = &self.device.device;
            let info = vk::BufferCreateInfo::default().size(bytes.len().max(16) as u64).usage(usage);
            let buffer = doing("creating a buffer", d.create_buffer(&info, None))?;
            self.made.buffers.push(buffer);
            let memory = self.device.allocate(&d.get_buffer_memory_requirements(buffer))?;
            self.made.memories.push(memory);
            doing("binding memory", d.bind_buffer_memory(buffer, memory, 0))?;
            let at = doing("mapping memory", d.map_memory(memory, 0, vk::WHOLE_SIZE, Default::default()))?;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>(), bytes.len());
            Ok((buffer, at.cast::<u8>()))
        }
    }

    /// An image of several levels with these contents, ready to be in `layout`.
    unsafe fn image(
        &mut self,
        format: vk::Format,
        desc: &ImageDesc,
        texel: u32,
        bytes: &[u8],
        layout: vk::ImageLayout,
    ) -> Result<(vk::Image, vk::ImageView)> {
        // SAFETY: see `draw`.
        unsafe {
            let (staging, _) = self.buffer(bytes, vk::BufferUsageFlags::TRANSFER_SRC)?;
            let d = &self.device.device;
            let attachment = if format == vk::Format::D32_SFLOAT {
                vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT
            } else {
                vk::ImageUsageFlags::COLOR_ATTACHMENT
            };
            let (levels, layers) = (desc.levels, desc.layers);
            let (ty, view_ty) = shape(desc)?;
            let plain = ty == vk::ImageType::TYPE_2D;
            let usage = vk::ImageUsageFlags::TRANSFER_SRC
                | vk::ImageUsageFlags::TRANSFER_DST
                | vk::ImageUsageFlags::SAMPLED
                | if plain { attachment } else { vk::ImageUsageFlags::empty() };
            let cube = if desc.dim == Dim::Cube {
                vk::ImageCreateFlags::CUBE_COMPATIBLE
            } else {
                vk::ImageCreateFlags::empty()
            };
            let info = vk::ImageCreateInfo::default()
                .flags(cube)
                .image_type(ty)
                .format(format)
                .extent(extent(desc, 0))
                .mip_levels(levels)
                .array_layers(layers)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(usage);
            let image = doing("creating an image", d.create_image(&info, None))?;
            self.made.images.push(image);
            let memory = self.device.allocate(&d.get_image_memory_requirements(image))?;
            self.made.memories.push(memory);
            doing("binding memory", d.bind_image_memory(image, memory, 0))?;
            let range = vk::ImageSubresourceRange {
                aspect_mask: aspect(format),
                base_mip_level: 0,
                level_count: levels,
                base_array_layer: 0,
                layer_count: layers,
            };
            let info = vk::ImageViewCreateInfo::default()
                .image(image)
                .view_type(view_ty)
                .format(format)
                .subresource_range(range);
            let view = doing("creating a view", d.create_image_view(&info, None))?;
            self.made.views.push(view);
            self.barrier(image, range, vk::ImageLayout::UNDEFINED, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
            let mut offset = 0;
            for level in 0..levels {
                let extent = extent(desc, level);
                let copy = copy(format, level, extent, layers, offset);
                let to = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
                self.device.device.cmd_copy_buffer_to_image(self.commands, staging, image, to, &[copy]);
                offset += u64::from(extent.width * extent.height * extent.depth * layers * texel);
            }
            self.barrier(image, range, vk::ImageLayout::TRANSFER_DST_OPTIMAL, layout);
            Ok((image, view))
        }
    }

    unsafe fn barrier(
        &self,
        image: vk::Image,
        range: vk::ImageSubresourceRange,
        from: vk::ImageLayout,
        to: vk::ImageLayout,
    ) {
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let barrier = vk::ImageMemoryBarrier::default()
            .src_access_mask(all)
            .dst_access_mask(all)
            .old_layout(from)
            .new_layout(to)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .image(image)
            .subresource_range(range);
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        // SAFETY: see `draw`.
        unsafe {
            let none = Default::default();
            self.device.device.cmd_pipeline_barrier(
                self.commands,
                stages,
                stages,
                none,
                &[],
                &[],
                &[barrier],
            );
        }
    }

    unsafe fn sampler(&mut self, s: &Sampler, compare: bool) -> Result<vk::Sampler> {
        let filter = |f| if f == Filter::Linear { vk::Filter::LINEAR } else { vk::Filter::NEAREST };
        let wrap = |w| match w {
            Wrap::Repeat => vk::SamplerAddressMode::REPEAT,
            Wrap::Mirror => vk::SamplerAddressMode::MIRRORED_REPEAT,
            Wrap::Clamp => vk::SamplerAddressMode::CLAMP_TO_EDGE,
            Wrap::Border => vk::SamplerAddressMode::CLAMP_TO_BORDER,
            Wrap::MirrorOnce => vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE,
        };
        let mip = match s.mip {
            Filter::Linear => vk::SamplerMipmapMode::LINEAR,
            Filter::Nearest => vk::SamplerMipmapMode::NEAREST,
        };
        let info = vk::SamplerCreateInfo::default()
            .mag_filter(filter(s.magnify))
            .min_filter(filter(s.minify))
            .mipmap_mode(mip)
            .address_mode_u(wrap(s.wrap[0]))
            .address_mode_v(wrap(s.wrap[1]))
            .address_mode_w(wrap(s.wrap[2]))
            .min_lod(s.min_level)
            .max_lod(s.max_level)
            .mip_lod_bias(s.bias)
            .compare_enable(compare)
            .compare_op(comparison(s.compare))
            .border_color(border(s.border))
            .unnormalized_coordinates(s.unnormalised);
        // SAFETY: see `draw`.
        let sampler = unsafe { doing("creating a sampler", self.device.device.create_sampler(&info, None))? };
        self.made.samplers.push(sampler);
        Ok(sampler)
    }

    unsafe fn run(&mut self, job: &Job, targets: &mut [Target]) -> Result<()> {
        // SAFETY: see `draw`.
        unsafe {
            let d = &self.device.device;
            let info = vk::CommandPoolCreateInfo::default().queue_family_index(self.device.family);
            let pool = doing("creating a command pool", d.create_command_pool(&info, None))?;
            self.made.command_pools.push(pool);
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            self.commands = doing("allocating commands", d.allocate_command_buffers(&info))?[0];
            doing("recording", d.begin_command_buffer(self.commands, &Default::default()))?;

            let mut attachments = Vec::new();
            for t in targets.iter() {
                let depth = t.format == vk::Format::D32_SFLOAT;
                let layout = if depth {
                    vk::ImageLayout::DEPTH_STENCIL_ATTACHMENT_OPTIMAL
                } else {
                    vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL
                };
                let texel = t.bytes.len() as u32 / (job.size[0] * job.size[1]);
                let (image, view) = self.image(t.format, &flat(job.size), texel, &t.bytes, layout)?;
                attachments.push((image, view, layout, depth));
            }
            let (layout, sets) = self.bind(job)?;
            let formats: Vec<vk::Format> =
                targets.iter().map(|t| t.format).filter(|f| *f != vk::Format::D32_SFLOAT).collect();
            let pipeline = self.pipeline(job, layout, &formats)?;
            let bytes: Vec<u8> = job.vertices.iter().flat_map(|v| v.to_le_bytes()).collect();
            let (vertices, _) = self.buffer(&bytes, vk::BufferUsageFlags::VERTEX_BUFFER)?;
            let bytes: Vec<u8> = job.indices.iter().flat_map(|v| v.to_le_bytes()).collect();
            let (indices, _) = self.buffer(&bytes, vk::BufferUsageFlags::INDEX_BUFFER)?;

            let d = &self.device.device;
            let attachment = |a: &(vk::Image, vk::ImageView, vk::ImageLayout, bool)| {
                vk::RenderingAttachmentInfo::default()
                    .image_view(a.1)
                    .image_layout(a.2)
                    .load_op(vk::AttachmentLoadOp::LOAD)
                    .store_op(vk::AttachmentStoreOp::STORE)
            };
            let colors: Vec<_> = attachments.iter().filter(|a| !a.3).map(attachment).collect();
            let depth = attachments.iter().find(|a| a.3).map(attachment).unwrap_or_default();
            let area = vk::Rect2D {
                offset: vk::Offset2D::default(),
                extent: vk::Extent2D { width: job.size[0], height: job.size[1] },
            };
            let info = vk::RenderingInfo::default()
                .render_area(area)
                .layer_count(1)
                .color_attachments(&colors)
                .depth_attachment(&depth);
            d.cmd_begin_rendering(self.commands, &info);
            let point = vk::PipelineBindPoint::GRAPHICS;
            d.cmd_bind_pipeline(self.commands, point, pipeline);
            if !sets.is_empty() {
                d.cmd_bind_descriptor_sets(self.commands, point, layout, 0, &sets, &[]);
            }
            let push = push(job)?;
            if !push.is_empty() {
                d.cmd_push_constants(self.commands, layout, BOTH, 0, &push);
            }
            d.cmd_bind_vertex_buffers(self.commands, 0, &[vertices], &[0]);
            d.cmd_bind_index_buffer(self.commands, indices, 0, vk::IndexType::UINT32);
            let all = [Part { corner: [0; 2], size: job.size, indices: 0..job.indices.len() as u32 }];
            let parts = if job.parts.is_empty() { &all[..] } else { &job.parts };
            for p in parts {
                let [width, height] = p.size;
                let [x, y] = p.corner.map(|v| v as i32);
                let extent = vk::Extent2D { width, height };
                let scissor = vk::Rect2D { offset: vk::Offset2D { x, y }, extent };
                d.cmd_set_scissor(self.commands, 0, &[scissor]);
                let count = p.indices.len() as u32;
                d.cmd_draw_indexed(self.commands, count, job.instances, p.indices.start, 0, 0);
            }
            d.cmd_end_rendering(self.commands);

            let mut results = Vec::new();
            for (t, a) in targets.iter().zip(&attachments) {
                let range = vk::ImageSubresourceRange {
                    aspect_mask: aspect(t.format),
                    base_mip_level: 0,
                    level_count: 1,
                    base_array_layer: 0,
                    layer_count: 1,
                };
                let from = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
                self.barrier(a.0, range, a.2, from);
                let (buffer, at) = self.buffer(&t.bytes, vk::BufferUsageFlags::TRANSFER_DST)?;
                let region = copy(t.format, 0, extent(&flat(job.size), 0), 1, 0);
                self.device.device.cmd_copy_image_to_buffer(self.commands, a.0, from, buffer, &[region]);
                results.push(at);
            }
            let d = &self.device.device;
            doing("recording", d.end_command_buffer(self.commands))?;
            let fence = doing("creating a fence", d.create_fence(&Default::default(), None))?;
            self.made.fences.push(fence);
            let list = [self.commands];
            let submit = vk::SubmitInfo::default().command_buffers(&list);
            doing("submitting", d.queue_submit(self.device.queue, &[submit], fence))?;
            if let Err(e) = d.wait_for_fences(&[fence], true, TIMEOUT_NS) {
                // Nothing may be destroyed while it runs on.
                eprintln!("the driver did not finish: {e}");
                std::process::exit(1);
            }
            for (t, at) in targets.iter_mut().zip(results) {
                t.bytes = std::slice::from_raw_parts(at, t.bytes.len()).to_vec();
            }
            Ok(())
        }
    }

    /// Makes everything that the stages are bound to.
    unsafe fn bind(&mut self, job: &Job) -> Result<(vk::PipelineLayout, Vec<vk::DescriptorSet>)> {
        enum Info {
            Buffer([vk::DescriptorBufferInfo; 1]),
            Image([vk::DescriptorImageInfo; 1]),
        }
        // SAFETY: see `draw`.
        unsafe {
            let mut infos: BTreeMap<(u32, u32), (vk::DescriptorType, Info)> = BTreeMap::new();
            for stage in &job.stages {
                for ((set, binding), kind) in bound(&stage.words) {
                    let place = (set - stage.first_set, binding);
                    let mut image = vk::DescriptorImageInfo::default();
                    if matches!(kind, Kind::Image | Kind::Combined) {
                        let given = stage.inputs.images.iter().find(|i| (i.set, i.binding) == place);
                        // What this entry point does not use.
                        let Some(given) = given else { continue };
                        let desc = given.desc;
                        let depth = stage.depth.contains(&place) && desc.format == Format::R32f;
                        // The driver filters 8-bit texels in 8 bits; as floats with the same values it does not.
                        let wide = desc.format == Format::Rgba8;
                        let format = match () {
                            () if depth => vk::Format::D32_SFLOAT,
                            () if wide => vk::Format::R32G32B32A32_SFLOAT,
                            () => format(desc.format)?,
                        };
                        let bytes = if wide { widened(&given.bytes) } else { given.bytes.clone() };
                        image.image_layout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
                        let (texel, layout) =
                            (if wide { 16 } else { desc.format.bytes() }, image.image_layout);
                        let (_, view) = self.image(format, &desc, texel, &bytes, layout)?;
                        image.image_view = view;
                    }
                    if matches!(kind, Kind::Sampler | Kind::Combined) {
                        let given = stage.inputs.samplers.iter().find(|s| (s.set, s.binding) == place);
                        let sampler = given.map_or(Sampler::default(), |s| s.sampler);
                        image.sampler = self.sampler(&sampler, stage.depth.contains(&place))?;
                    }
                    let one = match kind {
                        Kind::Uniform => {
                            let given = stage.inputs.buffers.iter().find(|b| (b.set, b.binding) == place);
                            let Some(given) = given else { continue };
                            let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
                            let (buffer, _) = self.buffer(&given.bytes, usage)?;
                            let info = vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE };
                            (vk::DescriptorType::UNIFORM_BUFFER, Info::Buffer([info]))
                        }
                        Kind::Image => (vk::DescriptorType::SAMPLED_IMAGE, Info::Image([image])),
                        Kind::Combined => (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, Info::Image([image])),
                        Kind::Sampler => (vk::DescriptorType::SAMPLER, Info::Image([image])),
                    };
                    infos.insert((set, binding), one);
                }
            }
            let d = &self.device.device;
            let count = infos.keys().map(|k| k.0 + 1).max().unwrap_or(0);
            let mut sizes = Vec::new();
            for set in 0..count {
                let own = infos.iter().filter(|(k, _)| k.0 == set);
                let bindings: Vec<_> = own
                    .map(|(k, (ty, _))| {
                        sizes.push(vk::DescriptorPoolSize { ty: *ty, descriptor_count: 1 });
                        vk::DescriptorSetLayoutBinding::default()
                            .binding(k.1)
                            .descriptor_type(*ty)
                            .descriptor_count(1)
                            .stage_flags(BOTH)
                    })
                    .collect();
                let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
                let layout = d.create_descriptor_set_layout(&info, None);
                self.made.set_layouts.push(doing("creating a descriptor set layout", layout)?);
            }
            let push = push(job)?;
            let ranges = [vk::PushConstantRange { stage_flags: BOTH, offset: 0, size: push.len() as u32 }];
            let info = vk::PipelineLayoutCreateInfo::default()
                .set_layouts(&self.made.set_layouts)
                .push_constant_ranges(if push.is_empty() { &[] } else { &ranges });
            let layout = doing("creating a pipeline layout", d.create_pipeline_layout(&info, None))?;
            self.made.layouts.push(layout);
            if sizes.is_empty() {
                return Ok((layout, Vec::new()));
            }
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(count).pool_sizes(&sizes);
            let pool = doing("creating a descriptor pool", d.create_descriptor_pool(&info, None))?;
            self.made.pools.push(pool);
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(pool)
                .set_layouts(&self.made.set_layouts);
            let sets = doing("allocating descriptor sets", d.allocate_descriptor_sets(&info))?;
            for ((set, binding), (ty, info)) in &infos {
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(sets[*set as usize])
                    .dst_binding(*binding)
                    .descriptor_type(*ty);
                let write = match info {
                    Info::Buffer(info) => write.buffer_info(info),
                    Info::Image(info) => write.image_info(info),
                };
                d.update_descriptor_sets(&[write], &[]);
            }
            Ok((layout, sets))
        }
    }

    unsafe fn pipeline(
        &mut self,
        job: &Job,
        layout: vk::PipelineLayout,
        formats: &[vk::Format],
    ) -> Result<vk::Pipeline> {
        // SAFETY: see `draw`.
        unsafe {
            let d = &self.device.device;
            let mut names = Vec::new();
            for stage in &job.stages {
                let info = vk::ShaderModuleCreateInfo::default().code(&stage.words);
                let module = doing("creating a shader module", d.create_shader_module(&info, None))?;
                self.made.modules.push(module);
                names.push(CString::new(stage.entry).map_err(|_| "entry point with a null character")?);
            }
            let flags = [vk::ShaderStageFlags::VERTEX, vk::ShaderStageFlags::FRAGMENT];
            let stages = [0, 1].map(|k| {
                vk::PipelineShaderStageCreateInfo::default()
                    .stage(flags[k])
                    .module(self.made.modules[k])
                    .name(&names[k])
            });
            let stride = 16 * job.locations.len().max(1) as u32;
            let bindings = [vk::VertexInputBindingDescription {
                binding: 0,
                stride,
                input_rate: vk::VertexInputRate::VERTEX,
            }];
            let attributes: Vec<_> = (0..)
                .zip(&job.locations)
                .map(|(n, &location)| vk::VertexInputAttributeDescription {
                    location,
                    binding: 0,
                    format: vk::Format::R32G32B32A32_SFLOAT,
                    offset: 16 * n,
                })
                .collect();
            let input = vk::PipelineVertexInputStateCreateInfo::default()
                .vertex_binding_descriptions(&bindings)
                .vertex_attribute_descriptions(&attributes);
            let assembly = vk::PipelineInputAssemblyStateCreateInfo::default()
                .topology(vk::PrimitiveTopology::TRIANGLE_LIST);
            let viewports = [vk::Viewport {
                x: 0.0,
                y: 0.0,
                width: job.size[0] as f32,
                height: job.size[1] as f32,
                min_depth: 0.0,
                max_depth: 1.0,
            }];
            let scissors = [vk::Rect2D {
                offset: vk::Offset2D::default(),
                extent: vk::Extent2D { width: job.size[0], height: job.size[1] },
            }];
            let viewport =
                vk::PipelineViewportStateCreateInfo::default().viewports(&viewports).scissors(&scissors);
            let raster = vk::PipelineRasterizationStateCreateInfo::default()
                .cull_mode(job.cull)
                .front_face(vk::FrontFace::COUNTER_CLOCKWISE)
                .line_width(1.0);
            let samples = vk::PipelineMultisampleStateCreateInfo::default()
                .rasterization_samples(vk::SampleCountFlags::TYPE_1);
            let depth = vk::PipelineDepthStencilStateCreateInfo::default()
                .depth_test_enable(job.depth_test.is_some())
                .depth_write_enable(job.depth_write)
                .depth_compare_op(job.depth_test.unwrap_or(vk::CompareOp::ALWAYS));
            let dynamic =
                vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&[vk::DynamicState::SCISSOR]);
            let masks = vec![
                vk::PipelineColorBlendAttachmentState::default()
                    .color_write_mask(vk::ColorComponentFlags::RGBA);
                formats.len()
            ];
            let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&masks);
            let mut rendering = vk::PipelineRenderingCreateInfo::default()
                .color_attachment_formats(formats)
                .depth_attachment_format(vk::Format::D32_SFLOAT);
            let info = vk::GraphicsPipelineCreateInfo::default()
                .stages(&stages)
                .vertex_input_state(&input)
                .input_assembly_state(&assembly)
                .viewport_state(&viewport)
                .rasterization_state(&raster)
                .multisample_state(&samples)
                .depth_stencil_state(&depth)
                .color_blend_state(&blend)
                .dynamic_state(&dynamic)
                .layout(layout)
                .push_next(&mut rendering);
            let pipeline = d
                .create_graphics_pipelines(vk::PipelineCache::null(), &[info], None)
                .map_err(|(_, e)| format!("creating a pipeline: {e}"))?[0];
            self.made.pipelines.push(pipeline);
            Ok(pipeline)
        }
    }
}

const BOTH: vk::ShaderStageFlags = vk::ShaderStageFlags::from_raw(
    vk::ShaderStageFlags::VERTEX.as_raw() | vk::ShaderStageFlags::FRAGMENT.as_raw(),
);

fn comparison(c: Compare) -> vk::CompareOp {
    match c {
        Compare::Never => vk::CompareOp::NEVER,
        Compare::Less => vk::CompareOp::LESS,
        Compare::Equal => vk::CompareOp::EQUAL,
        Compare::LessEqual => vk::CompareOp::LESS_OR_EQUAL,
        Compare::Greater => vk::CompareOp::GREATER,
        Compare::NotEqual => vk::CompareOp::NOT_EQUAL,
        Compare::GreaterEqual => vk::CompareOp::GREATER_OR_EQUAL,
        Compare::Always => vk::CompareOp::ALWAYS,
    }
}

/// The colours that every API has, of floats and of integers.
fn border(color: [u32; 4]) -> vk::BorderColor {
    match color {
        [0, 0, 0, 0] => vk::BorderColor::FLOAT_TRANSPARENT_BLACK,
        [0, 0, 0, 1] => vk::BorderColor::INT_OPAQUE_BLACK,
        [1, 1, 1, 1] => vk::BorderColor::INT_OPAQUE_WHITE,
        [0, 0, 0, _] => vk::BorderColor::FLOAT_OPAQUE_BLACK,
        _ => vk::BorderColor::FLOAT_OPAQUE_WHITE,
    }
}

/// Push constants that serve both stages.
fn push(job: &Job) -> Result<Vec<u8>> {
    let [a, b] = [&job.stages[0].inputs.push, &job.stages[1].inputs.push];
    match (a.is_empty(), b.is_empty()) {
        (false, false) if a != b => Err("the stages have different push constants".to_owned()),
        (true, _) => Ok(b.clone()),
        _ => Ok(a.clone()),
    }
    .map(|mut bytes| {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    })
}

/// Texels of RGBA8 as four floats each.
fn widened(bytes: &[u8]) -> Vec<u8> {
    let texel = |b: &[u8; 4]| Format::Rgba8.decode([u32::from_le_bytes(*b), 0, 0, 0]);
    bytes.as_chunks::<4>().0.iter().flat_map(texel).flat_map(u32::to_le_bytes).collect()
}

/// An image of one level and layer.
fn flat(size: [u32; 2]) -> ImageDesc {
    let [width, height] = size;
    ImageDesc {
        dim: Dim::D2,
        arrayed: false,
        extent: [width, height, 1],
        layers: 1,
        levels: 1,
        format: Format::Rgba32f,
    }
}

fn shape(desc: &ImageDesc) -> Result<(vk::ImageType, vk::ImageViewType)> {
    use vk::{ImageType as T, ImageViewType as V};
    Ok(match (desc.dim, desc.arrayed) {
        (Dim::D1, false) => (T::TYPE_1D, V::TYPE_1D),
        (Dim::D1, true) => (T::TYPE_1D, V::TYPE_1D_ARRAY),
        (Dim::D2, false) => (T::TYPE_2D, V::TYPE_2D),
        (Dim::D2, true) => (T::TYPE_2D, V::TYPE_2D_ARRAY),
        (Dim::D3, _) => (T::TYPE_3D, V::TYPE_3D),
        (Dim::Cube, false) => (T::TYPE_2D, V::CUBE),
        (Dim::Cube, true) => (T::TYPE_2D, V::CUBE_ARRAY),
        (Dim::Buffer, _) => return Err("a texel buffer".to_owned()),
    })
}

fn extent(desc: &ImageDesc, level: u32) -> vk::Extent3D {
    let [width, height, depth] = desc.extent.map(|e| level_extent(e, level));
    vk::Extent3D { width, height, depth }
}

fn copy(
    format: vk::Format,
    level: u32,
    extent: vk::Extent3D,
    layers: u32,
    offset: u64,
) -> vk::BufferImageCopy {
    vk::BufferImageCopy::default()
        .buffer_offset(offset)
        .image_subresource(vk::ImageSubresourceLayers {
            aspect_mask: aspect(format),
            mip_level: level,
            base_array_layer: 0,
            layer_count: layers,
        })
        .image_extent(extent)
}
