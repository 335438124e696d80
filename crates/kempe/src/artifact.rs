//! The artifact as JSON: what `--emit artifact` writes and `kempe run` reads. `docs/formats/artifact.md` describes it.
//!
//! The reader is strict: an unknown version, an unknown key, a missing key or a value out of range is an error that
//! says where it is. Anything that it accepts can be handed to a simulator.

mod graphics;

use crate::target;
use kempe_ir::image::{Axis, Component, Dim, Format, ImageInfo};
use kempe_ir::{Entity, Res, ResKind, Resource, Stage, UniformWord};
use kempe_mir::{Artifact, Stats, UniformSource};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name and version of the format.
pub const SCHEMA: &str = "kempe-artifact/3";

/// Most invocations in a work-group that an artifact may ask for (no API goes higher).
pub const MAX_WORKGROUP: u64 = 1 << 16;

/// Why a text is not an artifact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError(pub String);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReadError {}

fn fail<T>(message: impl Into<String>) -> Result<T, ReadError> {
    Err(ReadError(message.into()))
}

/// Only the version, whatever else the text holds.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    schema: String,
    /// Who wrote it; not looked at.
    generator: String,
    target: String,
    entry: String,
    stage: StageForm,
    threads: u32,
    single_section: bool,
    workgroup_size: [u32; 3],
    uses_barrier: bool,
    may_share_batches: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    low_addresses: bool,
    shared_bytes: u32,
    scratch_bytes_per_thread: u32,
    code: Vec<String>,
    uniforms: Vec<UniformForm>,
    constant_data: String,
    resources: Vec<ResourceForm>,
    /// Of programs of graphics stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graphics: Option<graphics::GraphicsForm>,
    stats: StatsForm,
    attempts: u32,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StageForm {
    Vertex,
    TessControl,
    TessEval,
    Geometry,
    Fragment,
    Compute,
}

impl StageForm {
    const ALL: [(StageForm, Stage); 6] = [
        (StageForm::Vertex, Stage::Vertex),
        (StageForm::TessControl, Stage::TessControl),
        (StageForm::TessEval, Stage::TessEval),
        (StageForm::Geometry, Stage::Geometry),
        (StageForm::Fragment, Stage::Fragment),
        (StageForm::Compute, Stage::Compute),
    ];

    fn of(stage: Stage) -> StageForm {
        StageForm::ALL.iter().find(|row| row.1 == stage).map_or(StageForm::Compute, |row| row.0)
    }

    fn stage(self) -> Stage {
        StageForm::ALL.iter().find(|row| row.0 == self).map_or(Stage::Compute, |row| row.1)
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ResourceKind {
    StorageBuffer,
    UniformBuffer,
    PushConstants,
    Image,
    Texture,
    Sampler,
    Other,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceForm {
    kind: ResourceKind,
    set: u32,
    binding: u32,
    elements: u32,
    size: u32,
    tail_stride: u32,
    name: String,
    read_only: bool,
    /// Of images and textures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<ImageForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageForm {
    dimension: String,
    arrayed: bool,
    multisampled: bool,
    depth: bool,
    component: String,
    /// Of images: the format in which the code writes texels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UniformForm {
    kind: UniformKind,
    /// Of a constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    element: Option<u32>,
    /// Byte offset of a push constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u32>,
    /// 0 to 2 for x to z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    axis: Option<u8>,
    /// Of a scale of the viewport: fixed-point steps per pixel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    /// Which size of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    /// Added to the word; left out when it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plus: Option<String>,
    /// The upper 32 bits of an address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    high: bool,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UniformKind {
    Constant,
    BufferAddress,
    BufferSize,
    TextureState,
    SamplerState,
    ImageSize,
    ViewportScale,
    ViewportNear,
    PatchVertices,
    PushConstant,
    PushConstantsAddress,
    ConstantDataAddress,
    WorkgroupCount,
    ScratchAddress,
    ScratchBytesPerThread,
    SharedAddress,
}

/// The `stats` object of an artifact and of `--format json`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatsForm {
    pub instructions: u32,
    pub threads: u32,
    pub loops: u32,
    pub uniforms: u32,
    pub max_temps: u32,
    pub spills: u32,
    pub fills: u32,
    pub scratch: u32,
    pub recomputed: u32,
    pub sfu_stalls: u32,
    pub inst_and_stalls: u32,
    pub nops: u32,
    pub code_bytes: u32,
    pub cycles: CyclesForm,
}

/// Estimates of time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CyclesForm {
    /// One thread from start to end, loops weighted.
    pub thread: u64,
    /// What register allocation brought in, weighted in the same way.
    pub edits: u64,
    /// The same as the order of instructions before allocation reckoned with it.
    pub edits_predicted: u64,
}

impl From<&Stats> for StatsForm {
    fn from(s: &Stats) -> StatsForm {
        StatsForm {
            instructions: s.instructions,
            threads: s.threads,
            loops: s.loops,
            uniforms: s.uniforms,
            max_temps: s.max_temps,
            spills: s.spills,
            fills: s.fills,
            scratch: s.scratch,
            recomputed: s.recomputed,
            sfu_stalls: s.sfu_stalls,
            inst_and_stalls: s.inst_and_stalls,
            nops: s.nops,
            code_bytes: s.code_bytes,
            cycles: CyclesForm {
                thread: s.cycles,
                edits: s.edit_cycles,
                edits_predicted: s.predicted_edit_cycles,
            },
        }
    }
}

impl From<&StatsForm> for Stats {
    fn from(s: &StatsForm) -> Stats {
        Stats {
            instructions: s.instructions,
            threads: s.threads,
            loops: s.loops,
            uniforms: s.uniforms,
            max_temps: s.max_temps,
            spills: s.spills,
            fills: s.fills,
            scratch: s.scratch,
            recomputed: s.recomputed,
            sfu_stalls: s.sfu_stalls,
            inst_and_stalls: s.inst_and_stalls,
            nops: s.nops,
            code_bytes: s.code_bytes,
            cycles: s.cycles.thread,
            edit_cycles: s.cycles.edits,
            predicted_edit_cycles: s.cycles.edits_predicted,
        }
    }
}

/// The name of a stage in every output.
pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Vertex => "vertex",
        Stage::TessControl => "tess-control",
        Stage::TessEval => "tess-eval",
        Stage::Geometry => "geometry",
        Stage::Fragment => "fragment",
        Stage::Compute => "compute",
    }
}

fn word32(value: u32) -> String {
    format!("{value:#010x}")
}

/// The artifact as JSON, ending in a line feed. The same artifact gives the same bytes.
pub fn write(artifact: &Artifact) -> String {
    let form = Form {
        schema: SCHEMA.to_owned(),
        generator: concat!("kempe ", env!("CARGO_PKG_VERSION")).to_owned(),
        target: artifact.target.clone(),
        entry: artifact.entry.clone(),
        stage: StageForm::of(artifact.stage),
        threads: artifact.threads,
        single_section: artifact.single_section,
        workgroup_size: artifact.workgroup_size,
        uses_barrier: artifact.uses_barrier,
        may_share_batches: artifact.may_share_batches,
        low_addresses: artifact.low_addresses,
        shared_bytes: artifact.shared_bytes,
        scratch_bytes_per_thread: artifact.scratch_bytes,
        code: write_code(artifact),
        uniforms: artifact.uniforms.iter().map(write_uniform).collect(),
        constant_data: artifact.constant_data.iter().map(|byte| format!("{byte:02x}")).collect(),
        resources: artifact.resources.iter().map(write_resource).collect(),
        graphics: artifact.graphics.as_ref().map(graphics::write),
        stats: StatsForm::from(&artifact.stats),
        attempts: artifact.attempts,
    };
    // Strings and numbers only: nothing here can fail to be written.
    let mut text = serde_json::to_string_pretty(&form).unwrap_or_default();
    text.push('\n');
    text
}

fn write_resource(r: &Resource) -> ResourceForm {
    ResourceForm {
        kind: match r.kind {
            ResKind::StorageBuffer => ResourceKind::StorageBuffer,
            ResKind::UniformBuffer => ResourceKind::UniformBuffer,
            ResKind::PushConstants => ResourceKind::PushConstants,
            ResKind::Image => ResourceKind::Image,
            ResKind::Texture => ResourceKind::Texture,
            ResKind::Sampler => ResourceKind::Sampler,
            ResKind::Other => ResourceKind::Other,
        },
        set: r.set,
        binding: r.binding,
        elements: r.elements,
        size: r.size,
        tail_stride: r.tail_stride,
        name: r.name.clone(),
        read_only: r.read_only,
        image: r.image.map(|i| ImageForm {
            dimension: named(&Dim::ALL, i.dim),
            arrayed: i.arrayed,
            multisampled: i.multisampled,
            depth: i.depth,
            component: named(&Component::ALL, i.component),
            format: i.format.map(|f| f.name().to_owned()),
        }),
    }
}

fn named<T: PartialEq>(table: &[(&str, T)], value: T) -> String {
    table.iter().find(|(_, v)| *v == value).map_or(String::new(), |(name, _)| (*name).to_owned())
}

fn value_of<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}

fn write_uniform(source: &UniformSource) -> UniformForm {
    let form = |kind| UniformForm {
        kind,
        value: None,
        resource: None,
        element: None,
        offset: None,
        steps: None,
        axis: None,
        size: None,
        plus: None,
        high: false,
    };
    let (word, plus) = match *source {
        UniformSource::Const(value) => {
            return UniformForm { value: Some(word32(value)), ..form(UniformKind::Constant) };
        }
        UniformSource::Word(word, plus) => (word, plus),
        UniformSource::High(word) => {
            return UniformForm { high: true, ..write_uniform(&UniformSource::Word(word, 0)) };
        }
    };
    let of = |kind, res: Res, element| UniformForm {
        resource: Some(res.index() as u32),
        element: Some(element),
        ..form(kind)
    };
    let bare = match word {
        UniformWord::BufferAddr { res, element } => of(UniformKind::BufferAddress, res, element),
        UniformWord::BufferSize { res, element } => of(UniformKind::BufferSize, res, element),
        UniformWord::TextureState { res, element } => of(UniformKind::TextureState, res, element),
        UniformWord::SamplerState { res, element } => of(UniformKind::SamplerState, res, element),
        UniformWord::ViewportScale { axis, steps } => {
            UniformForm { axis: Some(axis), steps: Some(steps), ..form(UniformKind::ViewportScale) }
        }
        UniformWord::ViewportNear => form(UniformKind::ViewportNear),
        UniformWord::PatchVertices => form(UniformKind::PatchVertices),
        UniformWord::ImageSize { res, element, axis } => {
            UniformForm { size: Some(named(&Axis::ALL, axis)), ..of(UniformKind::ImageSize, res, element) }
        }
        UniformWord::PushWord(offset) => {
            UniformForm { offset: Some(offset), ..form(UniformKind::PushConstant) }
        }
        UniformWord::PushAddr => form(UniformKind::PushConstantsAddress),
        UniformWord::ConstantAddr => form(UniformKind::ConstantDataAddress),
        UniformWord::NumWorkgroups(axis) => {
            UniformForm { axis: Some(axis), ..form(UniformKind::WorkgroupCount) }
        }
        UniformWord::ScratchAddr => form(UniformKind::ScratchAddress),
        UniformWord::ScratchBytesPerThread => form(UniformKind::ScratchBytesPerThread),
        UniformWord::SharedAddr => form(UniformKind::SharedAddress),
    };
    UniformForm { plus: (plus != 0).then(|| word32(plus)), ..bare }
}

/// Reads an artifact.
///
/// # Errors
/// When the text is not JSON, not an artifact of this version, or says something impossible.
pub fn read(text: &str) -> Result<Artifact, ReadError> {
    let head: Head = serde_json::from_str(text).map_err(|e| ReadError(format!("not an artifact: {e}")))?;
    match head.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(other) if other.starts_with("kempe-artifact/") => {
            return fail(format!("artifact version `{}` is not known, only `{SCHEMA}`", printable(other)));
        }
        Some(other) => return fail(format!("not an artifact: schema is `{}`", printable(other))),
        None => return fail(format!("not an artifact: no `schema`, which should be `{SCHEMA}`")),
    }
    let form: Form = serde_json::from_str(text).map_err(|e| ReadError(format!("bad artifact: {e}")))?;
    let artifact = convert(form)?;
    check(&artifact)?;
    Ok(artifact)
}

/// Text out of a file for a message: short, without control characters.
fn printable(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A hexadecimal number of exactly `digits` digits behind `0x`.
fn hex(text: &str, digits: usize) -> Option<u64> {
    let body = text.strip_prefix("0x")?;
    let good = body.len() == digits && body.bytes().all(|b| b.is_ascii_hexdigit());
    if good { u64::from_str_radix(body, 16).ok() } else { None }
}

/// Bytes of a parcel of the target's code, each of which is a number in the file: the word of 64 bits, or what the target says.
fn parcel(name: &str) -> usize {
    target::target(name).map_or(8, |t| t.parcel())
}

fn write_code(artifact: &Artifact) -> Vec<String> {
    let parcel = parcel(&artifact.target);
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    artifact.code.chunks(parcel).map(number).collect()
}

fn read_code(form: &Form) -> Result<Vec<u8>, ReadError> {
    let parcel = parcel(&form.target);
    let mut code = Vec::with_capacity(parcel * form.code.len());
    for (i, word) in form.code.iter().enumerate() {
        let Some(value) = hex(word, 2 * parcel) else {
            let digits = 2 * parcel;
            return fail(format!(
                "code[{i}]: `{}` is not a word of {digits} hexadecimal digits",
                printable(word)
            ));
        };
        code.extend_from_slice(&value.to_le_bytes()[..parcel]);
    }
    Ok(code)
}

fn convert(form: Form) -> Result<Artifact, ReadError> {
    let code = read_code(&form);
    let digits = form.constant_data.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| {
        let digit = |b: u8| (b as char).to_digit(16);
        digit(high).zip(digit(low)).map(|(h, l)| (h << 4 | l) as u8)
    });
    let constant_data = bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|_| rest.is_empty())
        .ok_or_else(|| ReadError("constant_data: not pairs of hexadecimal digits".to_owned()))?;
    let stage = form.stage;
    let graphics = match (&form.graphics, stage) {
        (None, StageForm::Compute) => None,
        (Some(_), StageForm::Compute) => return fail("graphics: does not belong to a compute program"),
        (Some(form), _) => Some(graphics::read(form, stage.stage())?),
        (None, _) => return fail("graphics: is missing"),
    };
    let count = form.resources.len();
    let resources = form.resources.into_iter().enumerate().map(|(i, r)| read_resource(i, r));
    let uniforms = form.uniforms.iter().enumerate().map(|(i, u)| read_uniform(i, u, count));
    Ok(Artifact {
        entry: form.entry,
        stage: form.stage.stage(),
        code: code?,
        uniforms: uniforms.collect::<Result<_, _>>()?,
        threads: form.threads,
        single_section: form.single_section,
        workgroup_size: form.workgroup_size,
        shared_bytes: form.shared_bytes,
        scratch_bytes: form.scratch_bytes_per_thread,
        constant_data,
        uses_barrier: form.uses_barrier,
        may_share_batches: form.may_share_batches,
        low_addresses: form.low_addresses,
        resources: resources.collect::<Result<_, _>>()?,
        graphics,
        stats: Stats::from(&form.stats),
        attempts: form.attempts,
        target: form.target,
    })
}

fn read_resource(i: usize, r: ResourceForm) -> Result<Resource, ReadError> {
    let wrong = |what: String| ReadError(format!("resources[{i}]: {what}"));
    let of_image = matches!(r.kind, ResourceKind::Image | ResourceKind::Texture);
    if of_image != r.image.is_some() {
        return Err(wrong("`image` belongs to images and textures, and only to them".to_owned()));
    }
    let image = match &r.image {
        None => None,
        Some(form) => {
            let unknown = |text: &str| wrong(format!("`{}` is not known", printable(text)));
            let format = form.format.as_deref();
            let format = format.map(|f| Format::from_name(f).ok_or_else(|| unknown(f))).transpose()?;
            Some(ImageInfo {
                dim: value_of(&Dim::ALL, &form.dimension).ok_or_else(|| unknown(&form.dimension))?,
                arrayed: form.arrayed,
                multisampled: form.multisampled,
                depth: form.depth,
                component: value_of(&Component::ALL, &form.component)
                    .ok_or_else(|| unknown(&form.component))?,
                format,
            })
        }
    };
    Ok(Resource {
        kind: match r.kind {
            ResourceKind::StorageBuffer => ResKind::StorageBuffer,
            ResourceKind::UniformBuffer => ResKind::UniformBuffer,
            ResourceKind::PushConstants => ResKind::PushConstants,
            ResourceKind::Image => ResKind::Image,
            ResourceKind::Texture => ResKind::Texture,
            ResourceKind::Sampler => ResKind::Sampler,
            ResourceKind::Other => ResKind::Other,
        },
        set: r.set,
        binding: r.binding,
        elements: r.elements,
        size: r.size,
        tail_stride: r.tail_stride,
        name: r.name,
        read_only: r.read_only,
        image,
    })
}

fn read_uniform(i: usize, form: &UniformForm, resources: usize) -> Result<UniformSource, ReadError> {
    let wrong = |what: &str| ReadError(format!("uniforms[{i}]: {what}"));
    let word = |text: &str| {
        hex(text, 8)
            .map(|value| value as u32)
            .ok_or_else(|| wrong(&format!("`{}` is not a word of 8 hexadecimal digits", printable(text))))
    };
    let need = |value: Option<u32>, key: &str| value.ok_or_else(|| wrong(&format!("`{key}` is missing")));
    // Keys that the kind does not have are as wrong as unknown ones.
    let of_image =
        matches!(form.kind, UniformKind::TextureState | UniformKind::SamplerState | UniformKind::ImageSize);
    let of_resource = of_image || matches!(form.kind, UniformKind::BufferAddress | UniformKind::BufferSize);
    let strays = [
        ("value", form.value.is_some() && form.kind != UniformKind::Constant),
        ("plus", form.plus.is_some() && form.kind == UniformKind::Constant),
        ("resource", form.resource.is_some() && !of_resource),
        ("element", form.element.is_some() && !of_resource),
        ("offset", form.offset.is_some() && form.kind != UniformKind::PushConstant),
        ("size", form.size.is_some() && form.kind != UniformKind::ImageSize),
        (
            "axis",
            form.axis.is_some()
                && !matches!(form.kind, UniformKind::WorkgroupCount | UniformKind::ViewportScale),
        ),
        ("steps", form.steps.is_some() && form.kind != UniformKind::ViewportScale),
    ];
    if let Some((key, _)) = strays.iter().find(|(_, stray)| *stray) {
        return Err(wrong(&format!("`{key}` does not belong to this kind")));
    }
    let buffer = || -> Result<(Res, u32), ReadError> {
        let number = need(form.resource, "resource")?;
        if number as usize >= resources {
            return Err(wrong(&format!("there is no resource {number}")));
        }
        Ok((Res(number), need(form.element, "element")?))
    };
    let source = match form.kind {
        UniformKind::Constant => {
            let text = form.value.as_deref().ok_or_else(|| wrong("`value` is missing"))?;
            return Ok(UniformSource::Const(word(text)?));
        }
        UniformKind::BufferAddress => {
            let (res, element) = buffer()?;
            UniformWord::BufferAddr { res, element }
        }
        UniformKind::BufferSize => {
            let (res, element) = buffer()?;
            UniformWord::BufferSize { res, element }
        }
        UniformKind::TextureState => {
            let (res, element) = buffer()?;
            UniformWord::TextureState { res, element }
        }
        UniformKind::SamplerState => {
            let (res, element) = buffer()?;
            UniformWord::SamplerState { res, element }
        }
        UniformKind::ViewportNear => UniformWord::ViewportNear,
        UniformKind::PatchVertices => UniformWord::PatchVertices,
        UniformKind::ViewportScale => match (form.axis, form.steps) {
            (Some(axis @ 0..=2), Some(steps)) => UniformWord::ViewportScale { axis, steps },
            (Some(0..=2), None) => return Err(wrong("`steps` is missing")),
            (Some(_), _) => return Err(wrong("`axis` is not 0, 1 or 2")),
            (None, _) => return Err(wrong("`axis` is missing")),
        },
        UniformKind::ImageSize => {
            let (res, element) = buffer()?;
            let size = form.size.as_deref().ok_or_else(|| wrong("`size` is missing"))?;
            let axis = value_of(&Axis::ALL, size)
                .ok_or_else(|| wrong(&format!("`{}` is no size of an image", printable(size))))?;
            UniformWord::ImageSize { res, element, axis }
        }
        UniformKind::PushConstant => UniformWord::PushWord(need(form.offset, "offset")?),
        UniformKind::PushConstantsAddress => UniformWord::PushAddr,
        UniformKind::ConstantDataAddress => UniformWord::ConstantAddr,
        UniformKind::WorkgroupCount => match form.axis {
            Some(axis @ 0..=2) => UniformWord::NumWorkgroups(axis),
            Some(_) => return Err(wrong("`axis` is not 0, 1 or 2")),
            None => return Err(wrong("`axis` is missing")),
        },
        UniformKind::ScratchAddress => UniformWord::ScratchAddr,
        UniformKind::ScratchBytesPerThread => UniformWord::ScratchBytesPerThread,
        UniformKind::SharedAddress => UniformWord::SharedAddr,
    };
    let plus = form.plus.as_deref().map_or(Ok(0), word)?;
    match (form.high, plus) {
        (false, plus) => Ok(UniformSource::Word(source, plus)),
        (true, 0) => Ok(UniformSource::High(source)),
        (true, _) => Err(wrong("nothing is added to a high word")),
    }
}

fn check(artifact: &Artifact) -> Result<(), ReadError> {
    if target::target(&artifact.target).is_none() {
        return fail(format!("target `{}` is not known", printable(&artifact.target)));
    }
    if artifact.code.is_empty() {
        return fail("code: there is none");
    }
    let items = artifact.workgroup_size.iter().fold(1u64, |n, &size| n.saturating_mul(size.into()));
    if items == 0 || items > MAX_WORKGROUP {
        return fail(format!("workgroup_size: {:?} has {items} invocations", artifact.workgroup_size));
    }
    Ok(())
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
