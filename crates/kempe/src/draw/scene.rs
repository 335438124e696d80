//! Scenes: passes of draws, from a description in JSON (`docs/formats/scene.md`), and the pictures that they give.

use super::bind::{Bindings, Value};
use super::executor::{Executor, Interpreted, OnTarget};
use super::mesh::{Attribute, Mesh};
use super::picture::{Picture, Surface};
use super::raster::Cull;
use super::texture::{self, Texture};
use super::{Counts, Draw, Space, matrix};
use crate::compile::{CodeOptions, CompileResult, Compiled, Keep, Options, Source};
use crate::link::{self, Linked};
use crate::run::{RunError, RunOptions};
use crate::target::{Target, Variant};
use kempe_ir::image::{Component, Format};
use kempe_opt::pipeline;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Name and version of the format.
pub const SCHEMA: &str = "kempe-scene/1";

const MAX_PASSES: usize = 16;
const MAX_DRAWS: usize = 64;
const MAX_INSTANCES: u32 = 1 << 16;
const MAX_NUMBERS: usize = 1 << 16;

/// A description as it is written.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    pub schema: String,
    /// Of the passes that say nothing else.
    #[serde(default = "usual_size")]
    pub size: [u32; 2],
    /// Texts for `$name` in values.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// The last one gives the picture.
    pub passes: Vec<Pass>,
}

fn usual_size() -> [u32; 2] {
    [256, 256]
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub size: Option<[u32; 2]>,
    #[serde(default)]
    pub clear: [f32; 4],
    /// Formats by target; one of `rgba8` if nothing is said.
    #[serde(default)]
    pub targets: Option<Vec<String>>,
    pub draws: Vec<DrawForm>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawForm {
    /// File of the vertex shader, or of both stages.
    pub vertex: String,
    #[serde(default)]
    pub fragment: Option<String>,
    #[serde(default)]
    pub vertex_entry: Option<String>,
    #[serde(default)]
    pub fragment_entry: Option<String>,
    #[serde(default = "usual_mesh")]
    pub mesh: String,
    #[serde(default = "one")]
    pub instances: u32,
    #[serde(default)]
    pub cull: CullForm,
    #[serde(default = "yes")]
    pub depth_test: bool,
    #[serde(default = "yes")]
    pub depth_write: bool,
    /// Attributes by location, where the names of the shader do not tell.
    #[serde(default)]
    pub attributes: BTreeMap<u8, String>,
    /// Uniforms by name.
    #[serde(default)]
    pub set: BTreeMap<String, serde_json::Value>,
    /// Textures and samplers by name.
    #[serde(default)]
    pub textures: BTreeMap<String, String>,
    #[serde(default)]
    pub samplers: BTreeMap<String, String>,
    /// Bytes that are given beside the description, by set and binding.
    #[serde(skip)]
    pub buffers: BTreeMap<String, Vec<u8>>,
    #[serde(skip)]
    pub push: Option<Vec<u8>>,
}

fn usual_mesh() -> String {
    "screen".to_owned()
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CullForm {
    #[default]
    None,
    Back,
    Front,
}

impl DrawForm {
    /// A draw of these files, everything else as usual.
    pub fn new(vertex: &str, fragment: Option<&str>) -> DrawForm {
        DrawForm {
            vertex: vertex.to_owned(),
            fragment: fragment.map(str::to_owned),
            vertex_entry: None,
            fragment_entry: None,
            mesh: usual_mesh(),
            instances: 1,
            cull: CullForm::None,
            depth_test: true,
            depth_write: true,
            attributes: BTreeMap::new(),
            set: BTreeMap::new(),
            textures: BTreeMap::new(),
            samplers: BTreeMap::new(),
            buffers: BTreeMap::new(),
            push: None,
        }
    }
}

/// Why there is no picture.
#[derive(Debug)]
pub enum SceneError {
    /// A shader does not compile.
    Shader(Box<CompileResult>),
    /// The description is wrong, or a file of it.
    Wrong(String),
    Run(RunError),
}

impl std::fmt::Display for SceneError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SceneError::Shader(result) => f.write_str(result.report.trim_end()),
            SceneError::Wrong(message) => f.write_str(message),
            SceneError::Run(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SceneError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, SceneError> {
    Err(SceneError::Wrong(message.into()))
}

/// What is done with what runs the vertex and the fragment stage.
pub type Then<'a> = dyn FnMut(&dyn Executor, &dyn Executor) -> Result<Counts, RunError> + 'a;

/// Who makes the executors of a draw.
pub trait Maker {
    /// Calls `then` with what runs the two stages.
    ///
    /// # Errors
    /// Those of `then`, or when there is no code for a stage.
    fn with(&self, stages: &[Linked; 2], then: &mut Then) -> Result<Counts, RunError>;
}

/// The interpreter on the source form.
pub struct SourceForm {
    pub options: RunOptions,
}

impl Maker for SourceForm {
    fn with(&self, [vertex, fragment]: &[Linked; 2], then: &mut Then) -> Result<Counts, RunError> {
        then(
            &Interpreted::new(&vertex.module, self.options),
            &Interpreted::new(&fragment.module, self.options),
        )
    }
}

/// Code of a target, on its simulator.
pub struct Coded {
    pub target: &'static dyn Target,
    pub code: CodeOptions,
    /// The interpreter on the programs that code was made from, instead of the code: both must give the same picture.
    pub lowered: bool,
    pub options: RunOptions,
}

impl Coded {
    /// The program of a stage.
    ///
    /// # Errors
    /// When there is no code for it.
    pub fn compile(&self, linked: &Linked, variant: Variant) -> Result<Compiled, RunError> {
        let mut module = linked.module.clone();
        if variant == Variant::Binning {
            crate::link::positions_only(&mut module);
        }
        let level = pipeline::Options { level: self.code.level, ..self.target.opt_options() };
        pipeline::optimise_with(&mut module, &level, &mut ());
        let keep = Keep { lowered: self.lowered, ..Keep::default() };
        self.target
            .compile(module, variant, &self.code, keep)
            .map_err(|e| RunError::Setup(format!("`{}`: {}", linked.entry, e.message)))
    }
}

impl Maker for Coded {
    fn with(&self, [vertex, fragment]: &[Linked; 2], then: &mut Then) -> Result<Counts, RunError> {
        let (render, positions) =
            (self.compile(vertex, Variant::Render)?, self.compile(vertex, Variant::Binning)?);
        let colours = self.compile(fragment, Variant::Render)?;
        let mut first = OnTarget::new(self.target, &render.artifact, self.options);
        first.binning = Some(&positions.artifact);
        first.lowered = render.lowered.as_ref();
        let mut second = OnTarget::new(self.target, &colours.artifact, self.options);
        second.lowered = colours.lowered.as_ref();
        then(&first, &second)
    }
}

/// What a pass gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    pub name: String,
    pub surface: Surface,
    pub counts: Counts,
}

impl Scene {
    /// # Errors
    /// When the text is no description of this version.
    pub fn parse(text: &str) -> Result<Scene, String> {
        let scene: Scene = serde_json::from_str(text).map_err(|e| format!("bad scene: {e}"))?;
        if scene.schema != SCHEMA {
            return Err(format!("the version of the scene is not known, only `{SCHEMA}`"));
        }
        Ok(scene)
    }

    /// One pass of one draw.
    pub fn simple(size: [u32; 2], draw: DrawForm) -> Scene {
        let pass =
            Pass { name: String::new(), size: None, clear: [0.0; 4], targets: None, draws: vec![draw] };
        Scene { schema: SCHEMA.to_owned(), size, values: BTreeMap::new(), passes: vec![pass] }
    }

    /// Links all shaders of all draws, in order. `read` finds files.
    ///
    /// # Errors
    /// The first file that cannot be read or does not compile.
    pub fn link(
        &self,
        options: &Options,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<Vec<[Linked; 2]>>, SceneError> {
        if self.passes.is_empty() || self.passes.len() > MAX_PASSES {
            return wrong(format!("{} passes: there are 1 to {MAX_PASSES}", self.passes.len()));
        }
        let mut out = Vec::new();
        for pass in &self.passes {
            if pass.draws.len() > MAX_DRAWS {
                return wrong(format!("{} draws in a pass: there are at most {MAX_DRAWS}", pass.draws.len()));
            }
            let mut of_pass: Vec<[Linked; 2]> = Vec::new();
            for (n, d) in pass.draws.iter().enumerate() {
                let key = |d: &DrawForm| {
                    (d.vertex.clone(), d.fragment.clone(), d.vertex_entry.clone(), d.fragment_entry.clone())
                };
                // The same shaders again need not be made again.
                if let Some(before) = pass.draws[..n].iter().position(|other| key(other) == key(d)) {
                    of_pass.push(of_pass[before].clone());
                    continue;
                }
                let source = |name: &str| Source { name: name.to_owned(), contents: read(name), stage: None };
                let vertex = source(&d.vertex);
                let fragment = source(d.fragment.as_ref().unwrap_or(&d.vertex));
                let entries = [d.vertex_entry.as_deref(), d.fragment_entry.as_deref()];
                of_pass.push(link::link([&vertex, &fragment], entries, options).map_err(SceneError::Shader)?);
            }
            out.push(of_pass);
        }
        Ok(out)
    }

    /// Draws all passes. `linked` is of [`Scene::link`].
    ///
    /// # Errors
    /// When something in the description does not fit, or a stage cannot be run.
    pub fn draw(
        &self,
        linked: &[Vec<[Linked; 2]>],
        maker: &dyn Maker,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<Drawn>, SceneError> {
        let mut done: Vec<Drawn> = Vec::new();
        for (pass, stages) in self.passes.iter().zip(linked) {
            let formats = match &pass.targets {
                None => vec![Format::Rgba8],
                Some(names) => names
                    .iter()
                    .map(|n| {
                        Format::from_name(n).ok_or_else(|| SceneError::Wrong(format!("`{n}` is no format")))
                    })
                    .collect::<Result<_, _>>()?,
            };
            let mut surface = Surface::new(pass.size.unwrap_or(self.size), &formats, pass.clear)
                .map_err(SceneError::Wrong)?;
            let mut counts = Counts::default();
            for (n, (form, pair)) in pass.draws.iter().zip(stages).enumerate() {
                let place = |message: String| match pass.name.as_str() {
                    "" => format!("draw {n}: {message}"),
                    name => format!("pass `{name}`, draw {n}: {message}"),
                };
                let c = self.one(form, pair, maker, read, &done, &mut surface).map_err(|e| match e {
                    SceneError::Wrong(message) => SceneError::Wrong(place(message)),
                    SceneError::Run(RunError::Setup(m)) => SceneError::Run(RunError::Setup(place(m))),
                    SceneError::Run(RunError::Program(m)) => SceneError::Run(RunError::Program(place(m))),
                    other => other,
                })?;
                counts.vertices += c.vertices;
                counts.triangles += c.triangles;
                counts.fragments += c.fragments;
                counts.instructions += c.instructions;
            }
            done.push(Drawn { name: pass.name.clone(), surface, counts });
        }
        Ok(done)
    }

    fn one(
        &self,
        form: &DrawForm,
        pair: &[Linked; 2],
        maker: &dyn Maker,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
        done: &[Drawn],
        surface: &mut Surface,
    ) -> Result<Counts, SceneError> {
        let mesh = mesh(form, read)?;
        if form.instances == 0 || form.instances > MAX_INSTANCES {
            return wrong(format!("{} instances: there are 1 to {MAX_INSTANCES}", form.instances));
        }
        let bindings = self.bindings(form, read, done)?;
        let mut used = BTreeSet::new();
        let [vertex, fragment] = pair;
        let vertex_inputs = bindings.of_stage(vertex, &mut used).map_err(SceneError::Wrong)?;
        let fragment_inputs = bindings.of_stage(fragment, &mut used).map_err(SceneError::Wrong)?;
        if let Some(key) = bindings.unused(&used) {
            return wrong(format!("the shaders have nothing that is called `{key}`"));
        }
        let attributes: Vec<_> = attributes(form, vertex)?
            .into_iter()
            .map(|(location, a)| {
                (location, mesh.vertices.iter().map(|v| v.attribute(a).map(f32::to_bits)).collect())
            })
            .collect();
        let cull = match form.cull {
            CullForm::None => Cull::None,
            CullForm::Back => Cull::Back,
            CullForm::Front => Cull::Front,
        };
        maker
            .with(pair, &mut |v, f| {
                let draw = Draw {
                    vertex: v,
                    fragment: f,
                    vertex_inputs: vertex_inputs.clone(),
                    fragment_inputs: fragment_inputs.clone(),
                    vertices: mesh.vertices.len() as u32,
                    triangles: &mesh.triangles,
                    attributes: attributes.clone(),
                    instances: form.instances,
                    space: Space::Vulkan,
                    region: None,
                    cull,
                    depth_test: form.depth_test,
                    depth_write: form.depth_write,
                };
                super::draw(&draw, surface)
            })
            .map_err(SceneError::Run)
    }

    /// Everything that a draw is given, made.
    ///
    /// # Errors
    /// The first thing that cannot be made.
    pub fn bindings(
        &self,
        form: &DrawForm,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
        done: &[Drawn],
    ) -> Result<Bindings, SceneError> {
        let mut out =
            Bindings { buffers: form.buffers.clone(), push: form.push.clone(), ..Bindings::default() };
        for (key, value) in &form.set {
            let value = self.value(value).map_err(|e| SceneError::Wrong(format!("`{key}`: {e}")))?;
            out.values.insert(key.clone(), value);
        }
        for (key, text) in &form.textures {
            let made = texture_of(text, read, done);
            let texture = made.map_err(|e| SceneError::Wrong(format!("texture `{key}`: {e}")))?;
            out.textures.insert(key.clone(), Arc::new(texture));
        }
        for (key, text) in &form.samplers {
            let sampler =
                texture::sampler(text).map_err(|e| SceneError::Wrong(format!("sampler `{key}`: {e}")))?;
            out.samplers.insert(key.clone(), sampler);
        }
        Ok(out)
    }

    fn value(&self, value: &serde_json::Value) -> Result<Value, String> {
        if let serde_json::Value::String(text) = value {
            return matrix::parse(&self.substitute(text)?).map(Value::Matrix);
        }
        let mut numbers = Vec::new();
        flatten(value, &mut numbers)?;
        Ok(Value::Numbers(numbers))
    }

    /// Puts the texts of the scene in for `$name`.
    fn substitute(&self, text: &str) -> Result<String, String> {
        let mut out = text.to_owned();
        for _ in 0..8 {
            let Some(start) = out.find('$') else { return Ok(out) };
            let rest = &out[start + 1..];
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = &rest[..len];
            let Some(value) = self.values.get(name) else {
                return Err(format!("there is no value `{name}`"));
            };
            out.replace_range(start..start + 1 + len, value);
            if out.len() > 4096 {
                break;
            }
        }
        if out.contains('$') { Err("names of values go in circles".to_owned()) } else { Ok(out) }
    }
}

fn flatten(value: &serde_json::Value, out: &mut Vec<f64>) -> Result<(), String> {
    match value {
        serde_json::Value::Number(n) => out.push(n.as_f64().unwrap_or(0.0)),
        serde_json::Value::Bool(b) => out.push(u8::from(*b).into()),
        serde_json::Value::Array(list) => {
            for v in list {
                flatten(v, out)?;
            }
        }
        _ => return Err("is no number, no list of numbers and no text of a matrix".to_owned()),
    }
    if out.len() > MAX_NUMBERS { Err(format!("more than {MAX_NUMBERS} numbers")) } else { Ok(()) }
}

/// `pass NAME` with the number of a target or `depth`, a file `.png`, or a name.
fn texture_of(
    text: &str,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    done: &[Drawn],
) -> Result<Texture, String> {
    if text.ends_with(".png") {
        let picture = Picture::from_png(&read(text)?).map_err(|e| format!("{text}: {e}"))?;
        return Ok(Texture::of_picture(&picture));
    }
    let Some(rest) = text.strip_prefix("pass ") else { return Texture::named(text) };
    let (name, what) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "0"));
    let pass =
        done.iter().find(|d| d.name == name).ok_or_else(|| format!("there is no pass `{name}` before"))?;
    let s = &pass.surface;
    let (width, height) = (s.width, s.height);
    if what == "depth" {
        let texels = s.depth.iter().map(|&d| [d, 0.0, 0.0, 1.0]).collect();
        return Ok(Texture { width, height, format: Format::R32f, texels, levels: false });
    }
    let target = what.parse::<usize>().ok().filter(|t| *t < s.formats.len());
    let target = target.ok_or_else(|| format!("pass `{name}` has no target `{what}`"))?;
    let format = s.formats[target];
    if format.component() != Component::F32 {
        return Err(format!("a target of format {} cannot be a texture", format.name()));
    }
    let texels = s.colors[target].iter().map(|c| c.map(f32::from_bits)).collect();
    Ok(Texture { width, height, format, texels, levels: false })
}

/// The mesh of a draw.
///
/// # Errors
/// When there is none.
pub fn mesh(form: &DrawForm, read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<Mesh, SceneError> {
    Ok(if form.mesh.ends_with(".obj") {
        let bytes = read(&form.mesh).map_err(SceneError::Wrong)?;
        Mesh::obj(&String::from_utf8_lossy(&bytes))
            .map_err(|e| SceneError::Wrong(format!("{}: {e}", form.mesh)))?
    } else {
        Mesh::named(&form.mesh).map_err(SceneError::Wrong)?
    })
}

/// What is at the locations of the vertex shader.
///
/// # Errors
/// When the description names an attribute that does not exist.
pub fn attributes(form: &DrawForm, vertex: &Linked) -> Result<Vec<(u8, Attribute)>, SceneError> {
    let mut out = BTreeMap::new();
    for io in super::executor::inputs(&vertex.module) {
        let kempe_ir::io::Slot::Location(location) = io.slot else { continue };
        let named = vertex.names.inputs.iter().find(|i| i.location == u32::from(location));
        let by_name = named.and_then(|i| Attribute::from_name(&i.name));
        let by_number = Attribute::ALL.get(usize::from(location)).map(|a| a.1);
        if let Some(attribute) = by_name.or(by_number) {
            out.insert(location, attribute);
        }
    }
    for (&location, name) in &form.attributes {
        match Attribute::ALL.iter().find(|a| a.0 == name) {
            Some(a) => drop(out.insert(location, a.1)),
            None => return wrong(format!("`{name}` is no attribute")),
        }
    }
    Ok(out.into_iter().collect())
}
