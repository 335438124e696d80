//! A Vulkan device that is a CPU, and one thing to do with it: run a compute module on given buffers.

use ash::vk;
use std::ffi::CString;

/// A buffer of a descriptor set.
pub struct Buffer {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub uniform: bool,
    pub bytes: Vec<u8>,
}

/// What is compiled once.
pub struct Shader<'a> {
    pub spirv: &'a [u32],
    pub entry: &'a str,
    /// Specialisation constants: id and 32-bit value.
    pub spec: &'a [(u32, u32)],
    pub push_bytes: usize,
}

/// One dispatch.
pub struct Job<'a> {
    /// The same bindings as those that the pipeline was made for.
    pub buffers: &'a [Buffer],
    pub push: &'a [u8],
    pub groups: [u32; 3],
}

pub struct Device {
    // The loader stays loaded as long as this lives.
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    pub(crate) family: u32,
    pub name: String,
    pub subgroup_size: u32,
    pub max_push: u32,
}

/// How long a dispatch may take, compiling it included.
pub(crate) const TIMEOUT_NS: u64 = 900_000_000_000;

pub(crate) type Result<T> = std::result::Result<T, String>;

/// Adds what was being done to an error of the driver.
pub(crate) fn doing<T>(what: &str, r: ash::prelude::VkResult<T>) -> Result<T> {
    r.map_err(|e| format!("{what}: {e}"))
}

impl Device {
    /// Opens the first device of type CPU, with every feature of Vulkan 1.0 to 1.3 that it has (robust access stays off).
    pub fn open() -> Result<Device> {
        // SAFETY: the calls below follow the valid usage rules of the Vulkan specification: structures live on this
        // stack frame for the duration of each call, handles come from the calls before.
        unsafe {
            let entry = ash::Entry::load().map_err(|e| format!("no Vulkan loader: {e}"))?;
            let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let info = vk::InstanceCreateInfo::default().application_info(&app);
            let instance = doing("creating an instance", entry.create_instance(&info, None))?;
            let all = doing("listing devices", instance.enumerate_physical_devices())?;
            let cpu = all.into_iter().find(|&p| {
                instance.get_physical_device_properties(p).device_type == vk::PhysicalDeviceType::CPU
            });
            let Some(physical) = cpu else {
                instance.destroy_instance(None);
                return Err("no Vulkan device of type CPU".to_owned());
            };
            let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
            let mut driver = vk::PhysicalDeviceDriverProperties::default();
            let mut properties =
                vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup).push_next(&mut driver);
            instance.get_physical_device_properties2(physical, &mut properties);
            let properties = properties.properties;
            let text = |c: &[std::ffi::c_char]| {
                let bytes: Vec<u8> = c.iter().take_while(|&&b| b != 0).map(|&b| b as u8).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let name = format!("{}, {}", text(&properties.device_name), text(&driver.driver_info));
            let families = instance.get_physical_device_queue_family_properties(physical);
            let family = families
                .iter()
                .position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS))
                .ok_or("no queue for compute and graphics")? as u32;
            let (mut f11, mut f12, mut f13) = (
                vk::PhysicalDeviceVulkan11Features::default(),
                vk::PhysicalDeviceVulkan12Features::default(),
                vk::PhysicalDeviceVulkan13Features::default(),
            );
            let mut features = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut f11)
                .push_next(&mut f12)
                .push_next(&mut f13);
            instance.get_physical_device_features2(physical, &mut features);
            features.features.robust_buffer_access = vk::FALSE;
            let priority = [1.0];
            let queues =
                [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priority)];
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
            let device = doing("creating a device", instance.create_device(physical, &info, None))?;
            let queue = device.get_device_queue(family, 0);
            Ok(Device {
                _entry: entry,
                instance,
                physical,
                device,
                queue,
                family,
                name,
                subgroup_size: subgroup.subgroup_size,
                max_push: properties.limits.max_push_constants_size,
            })
        }
    }

    /// Compiles a shader for buffers like these.
    pub fn prepare<'d>(&'d self, shader: &Shader, buffers: &[Buffer]) -> Result<Pipeline<'d>> {
        // From here on, dropping `p` takes down what was made.
        let mut p = Pipeline {
            device: self,
            made: Made::default(),
            pipeline: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            sets: Vec::new(),
            push: shader.push_bytes.next_multiple_of(4),
        };
        let d = &self.device;
        // SAFETY: as in `open`; the module was accepted by our front end.
        unsafe {
            let info = vk::ShaderModuleCreateInfo::default().code(shader.spirv);
            let module = doing("creating a shader module", d.create_shader_module(&info, None))?;
            p.made.modules.push(module);

            // One layout for every set up to the highest.
            let sets = buffers.iter().map(|b| b.set + 1).max().unwrap_or(0);
            let mut pool_sizes = Vec::new();
            for set in 0..sets {
                let mut bindings: Vec<vk::DescriptorSetLayoutBinding> = Vec::new();
                for b in buffers.iter().filter(|b| b.set == set) {
                    match bindings.iter_mut().find(|l| l.binding == b.binding) {
                        Some(l) => l.descriptor_count = l.descriptor_count.max(b.element + 1),
                        None => bindings.push(
                            vk::DescriptorSetLayoutBinding::default()
                                .binding(b.binding)
                                .descriptor_type(kind(b))
                                .descriptor_count(b.element + 1)
                                .stage_flags(vk::ShaderStageFlags::COMPUTE),
                        ),
                    }
                }
                for l in &bindings {
                    pool_sizes.push(vk::DescriptorPoolSize {
                        ty: l.descriptor_type,
                        descriptor_count: l.descriptor_count,
                    });
                }
                let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
                let layout = d.create_descriptor_set_layout(&info, None);
                p.made.set_layouts.push(doing("creating a descriptor set layout", layout)?);
            }
            let ranges = [vk::PushConstantRange {
                stage_flags: vk::ShaderStageFlags::COMPUTE,
                offset: 0,
                size: p.push as u32,
            }];
            let info = vk::PipelineLayoutCreateInfo::default()
                .set_layouts(&p.made.set_layouts)
                .push_constant_ranges(if p.push > 0 { &ranges } else { &[] });
            p.layout = doing("creating a pipeline layout", d.create_pipeline_layout(&info, None))?;
            p.made.layouts.push(p.layout);

            let entries: Vec<vk::SpecializationMapEntry> = shader
                .spec
                .iter()
                .enumerate()
                .map(|(n, &(id, _))| vk::SpecializationMapEntry {
                    constant_id: id,
                    offset: n as u32 * 4,
                    size: 4,
                })
                .collect();
            let data: Vec<u8> = shader.spec.iter().flat_map(|(_, v)| v.to_ne_bytes()).collect();
            let spec = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
            let entry = CString::new(shader.entry).map_err(|_| "entry point with a null character")?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&entry)
                .specialization_info(&spec);
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(p.layout);
            p.pipeline = d
                .create_compute_pipelines(vk::PipelineCache::null(), &[info], None)
                .map_err(|(_, e)| format!("creating a pipeline: {e}"))?[0];
            p.made.pipelines.push(p.pipeline);

            if !pool_sizes.is_empty() {
                let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&pool_sizes);
                let pool = doing("creating a descriptor pool", d.create_descriptor_pool(&info, None))?;
                p.made.pools.push(pool);
                let info = vk::DescriptorSetAllocateInfo::default()
                    .descriptor_pool(pool)
                    .set_layouts(&p.made.set_layouts);
                p.sets = doing("allocating descriptor sets", d.allocate_descriptor_sets(&info))?;
            }
        }
        Ok(p)
    }

    /// Memory that the CPU sees.
    pub(crate) unsafe fn allocate(&self, needs: &vk::MemoryRequirements) -> Result<vk::DeviceMemory> {
        // SAFETY: the handles are those of `open`.
        unsafe {
            let types = self.instance.get_physical_device_memory_properties(self.physical);
            let want = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let index = (0..types.memory_type_count)
                .find(|&i| {
                    needs.memory_type_bits >> i & 1 != 0
                        && types.memory_types[i as usize].property_flags.contains(want)
                })
                .ok_or("no memory that the CPU sees")?;
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
            doing("allocating memory", self.device.allocate_memory(&info, None))
        }
    }
}

fn kind(b: &Buffer) -> vk::DescriptorType {
    if b.uniform { vk::DescriptorType::UNIFORM_BUFFER } else { vk::DescriptorType::STORAGE_BUFFER }
}

/// A compiled shader with its descriptor sets.
pub struct Pipeline<'d> {
    device: &'d Device,
    made: Made,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    sets: Vec<vk::DescriptorSet>,
    push: usize,
}

impl Pipeline<'_> {
    /// Runs a dispatch; the contents of the buffers afterwards.
    pub fn run(&self, job: &Job) -> Result<Vec<Vec<u8>>> {
        let mut made = Made::default();
        let result = self.try_run(job, &mut made);
        // SAFETY: `try_run` waits for the queue (a dispatch that did not end in time ends the process instead).
        unsafe { made.destroy(&self.device.device) };
        result
    }

    fn try_run(&self, job: &Job, made: &mut Made) -> Result<Vec<Vec<u8>>> {
        let d = &self.device.device;
        // SAFETY: as in `open`; the buffers are bound with their full sizes and the interpreter has shown that the
        // program stays inside of them.
        unsafe {
            let mut mapped = Vec::new();
            for b in job.buffers {
                // A buffer cannot have no bytes; nothing may look at the spare ones.
                let size = b.bytes.len().max(4) as u64;
                let usage = if b.uniform {
                    vk::BufferUsageFlags::UNIFORM_BUFFER
                } else {
                    vk::BufferUsageFlags::STORAGE_BUFFER
                };
                let info = vk::BufferCreateInfo::default().size(size).usage(usage);
                let buffer = doing("creating a buffer", d.create_buffer(&info, None))?;
                made.buffers.push(buffer);
                let memory = self.device.allocate(&d.get_buffer_memory_requirements(buffer))?;
                made.memories.push(memory);
                doing("binding memory", d.bind_buffer_memory(buffer, memory, 0))?;
                let at =
                    doing("mapping memory", d.map_memory(memory, 0, vk::WHOLE_SIZE, Default::default()))?;
                std::ptr::copy_nonoverlapping(b.bytes.as_ptr(), at.cast::<u8>(), b.bytes.len());
                mapped.push(at.cast::<u8>());
                let info = [vk::DescriptorBufferInfo { buffer, offset: 0, range: size }];
                let set = self.sets.get(b.set as usize).ok_or("a binding that the pipeline has not")?;
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(*set)
                    .dst_binding(b.binding)
                    .dst_array_element(b.element)
                    .descriptor_type(kind(b))
                    .buffer_info(&info);
                d.update_descriptor_sets(&[write], &[]);
            }
            let info = vk::CommandPoolCreateInfo::default().queue_family_index(self.device.family);
            let pool = doing("creating a command pool", d.create_command_pool(&info, None))?;
            made.command_pools.push(pool);
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            let commands = doing("allocating commands", d.allocate_command_buffers(&info))?[0];
            doing("recording", d.begin_command_buffer(commands, &Default::default()))?;
            let point = vk::PipelineBindPoint::COMPUTE;
            d.cmd_bind_pipeline(commands, point, self.pipeline);
            if !self.sets.is_empty() {
                d.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &self.sets, &[]);
            }
            if self.push > 0 {
                let mut bytes = job.push.to_vec();
                bytes.resize(self.push, 0);
                d.cmd_push_constants(commands, self.layout, vk::ShaderStageFlags::COMPUTE, 0, &bytes);
            }
            let [x, y, z] = job.groups;
            d.cmd_dispatch(commands, x, y, z);
            doing("recording", d.end_command_buffer(commands))?;
            let fence = doing("creating a fence", d.create_fence(&Default::default(), None))?;
            made.fences.push(fence);
            let list = [commands];
            let submit = vk::SubmitInfo::default().command_buffers(&list);
            doing("submitting", d.queue_submit(self.device.queue, &[submit], fence))?;
            if let Err(e) = d.wait_for_fences(&[fence], true, TIMEOUT_NS) {
                // Nothing may be destroyed while it runs on.
                eprintln!("the driver did not finish: {e}");
                std::process::exit(1);
            }
            let sizes = job.buffers.iter().map(|b| b.bytes.len());
            Ok(mapped.iter().zip(sizes).map(|(&p, n)| std::slice::from_raw_parts(p, n).to_vec()).collect())
        }
    }
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        // SAFETY: no run is under way, as each waits for its end.
        unsafe { std::mem::take(&mut self.made).destroy(&self.device.device) };
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: nothing made from the device is left.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

/// What a run made, for taking it down whatever happened.
#[derive(Default)]
pub(crate) struct Made {
    pub images: Vec<vk::Image>,
    pub views: Vec<vk::ImageView>,
    pub samplers: Vec<vk::Sampler>,
    pub modules: Vec<vk::ShaderModule>,
    pub buffers: Vec<vk::Buffer>,
    pub memories: Vec<vk::DeviceMemory>,
    pub set_layouts: Vec<vk::DescriptorSetLayout>,
    pub layouts: Vec<vk::PipelineLayout>,
    pub pipelines: Vec<vk::Pipeline>,
    pub pools: Vec<vk::DescriptorPool>,
    pub command_pools: Vec<vk::CommandPool>,
    pub fences: Vec<vk::Fence>,
}

impl Made {
    /// Takes everything down.
    ///
    /// # Safety
    /// It came from this device and is not in use.
    pub unsafe fn destroy(self, d: &ash::Device) {
        // SAFETY: as the caller promises.
        unsafe {
            for p in self.pipelines {
                d.destroy_pipeline(p, None);
            }
            for l in self.layouts {
                d.destroy_pipeline_layout(l, None);
            }
            for p in self.pools {
                d.destroy_descriptor_pool(p, None);
            }
            for l in self.set_layouts {
                d.destroy_descriptor_set_layout(l, None);
            }
            for m in self.modules {
                d.destroy_shader_module(m, None);
            }
            for s in self.samplers {
                d.destroy_sampler(s, None);
            }
            for v in self.views {
                d.destroy_image_view(v, None);
            }
            for i in self.images {
                d.destroy_image(i, None);
            }
            for b in self.buffers {
                d.destroy_buffer(b, None);
            }
            for m in self.memories {
                d.free_memory(m, None);
            }
            for p in self.command_pools {
                d.destroy_command_pool(p, None);
            }
            for f in self.fences {
                d.destroy_fence(f, None);
            }
        }
    }
}
