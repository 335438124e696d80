//! The stages of a file, compiled for whoever runs them.

use crate::parse::{Shader, ShaderTest};
use kempe::compile::{self, CodeOptions, CompileResult, Compiled, Keep, Source};
use kempe::draw::executor::{Executor, Interpreted, OnTarget};
use kempe::draw::scene::Coded;
use kempe::exec::Inputs;
use kempe::ir::io::{MAX_TARGETS, PipelineState, TargetFormat};
use kempe::limits::Limits;
use kempe::link::{self, Linked};
use kempe::run::{RunError, RunOptions, RunReport};
use kempe::{FrontOptions, Stage, Target, Variant};

/// Who runs the shaders.
#[derive(Clone, Copy)]
pub enum On {
    /// The interpreter, on the source.
    Interpreter,
    /// The simulator of a target, on its code.
    Target(&'static dyn Target),
}

/// What is run.
pub enum Program {
    Draw { stages: Box<[Linked; 2]>, code: Option<Box<DrawCode>> },
    Compute { stage: Box<Linked>, code: Option<(&'static dyn Target, Box<Compiled>)> },
}

/// Code of both stages of a draw.
pub struct DrawCode {
    target: &'static dyn Target,
    vertex: Compiled,
    positions: Compiled,
    fragment: Compiled,
}

/// Why there is no program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoProgram {
    /// Not a vertex and a fragment shader, nor a compute shader.
    Stages(String),
    /// The first shader that the front end or the target refuses.
    Refused(String),
}

/// What code depends on besides the shaders: colours keep 32 bits, nothing else is special.
fn code_options() -> CodeOptions {
    let state = PipelineState { targets: [TargetFormat::Word; MAX_TARGETS], ..PipelineState::default() };
    CodeOptions { state, ..CodeOptions::default() }
}

fn source(name: &str, shader: &Shader) -> Source {
    Source { name: name.to_owned(), contents: Ok(shader.text.as_bytes().to_vec()), stage: Some(shader.stage) }
}

fn options(targets: Vec<&'static dyn Target>, limits: Limits) -> compile::Options {
    compile::Options {
        targets,
        front: FrontOptions::default(),
        code: code_options(),
        keep: Keep::default(),
        limits,
    }
}

/// Compiles every shader of a file, also those of a file whose test cannot be run.
pub fn compile_all(name: &str, test: &ShaderTest, options: &compile::Options) -> Vec<CompileResult> {
    test.shaders.iter().flat_map(|shader| compile::compile(&source(name, shader), options)).collect()
}

impl Program {
    /// # Errors
    /// When the file has other stages, or one of them cannot be compiled.
    pub fn new(name: &str, test: &ShaderTest, on: On, limits: Limits) -> Result<Program, NoProgram> {
        let targets = match on {
            On::Interpreter => Vec::new(),
            On::Target(target) => vec![target],
        };
        let options = options(targets, limits);
        let refused = |stage: &str, why: String| NoProgram::Refused(format!("{stage}: {why}"));
        let (vertex, fragment, compute) =
            (test.shader(Stage::Vertex), test.shader(Stage::Fragment), test.shader(Stage::Compute));
        let code_of = |target, linked: &Linked, variant| {
            let coded = Coded { target, code: options.code, lowered: false, options: RunOptions::default() };
            coded.compile(linked, variant)
        };
        match (vertex, fragment, compute) {
            (Some(v), Some(f), None) if test.shaders.len() == 2 => {
                let sources = [&source(name, v), &source(name, f)];
                let stages = link::link(sources, [None; 2], &options)
                    .map_err(|r| refused(r.stage, r.message.clone()))?;
                let code = match on {
                    On::Interpreter => None,
                    On::Target(target) => {
                        let vertex = |variant| {
                            code_of(target, &stages[0], variant).map_err(|e| refused("vertex", e.to_string()))
                        };
                        Some(Box::new(DrawCode {
                            target,
                            vertex: vertex(Variant::Render)?,
                            positions: vertex(Variant::Binning)?,
                            fragment: code_of(target, &stages[1], Variant::Render)
                                .map_err(|e| refused("fragment", e.to_string()))?,
                        }))
                    }
                };
                Ok(Program::Draw { stages: Box::new(stages), code })
            }
            (None, None, Some(c)) if test.shaders.len() == 1 => {
                let stage = link::alone(&source(name, c), &options)
                    .map_err(|r| refused("compute", r.message.clone()))?;
                let code = match on {
                    On::Interpreter => None,
                    On::Target(target) => {
                        let code = code_of(target, &stage, Variant::Render);
                        Some((target, Box::new(code.map_err(|e| refused("compute", e.to_string()))?)))
                    }
                };
                Ok(Program::Compute { stage: Box::new(stage), code })
            }
            _ => {
                let has = |s: &Shader| kempe::artifact::stage_name(s.stage);
                let list: Vec<&str> = test.shaders.iter().map(has).collect();
                Err(NoProgram::Stages(format!("the stages are: {}", list.join(", "))))
            }
        }
    }

    /// Calls `then` with what runs vertices and fragments.
    ///
    /// # Errors
    /// Those of `then`; when there is nothing to draw with.
    pub fn with_stages<T>(
        &self,
        then: impl FnOnce(&dyn Executor, &dyn Executor) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let Program::Draw { stages, code } = self else {
            return Err(RunError::Setup("a compute shader cannot draw".to_owned()));
        };
        let options = RunOptions::default();
        match code {
            None => {
                let [vertex, fragment] = &**stages;
                then(&Interpreted::new(&vertex.module, options), &Interpreted::new(&fragment.module, options))
            }
            Some(c) => {
                let mut vertex = OnTarget::new(c.target, &c.vertex.artifact, options);
                vertex.binning = Some(&c.positions.artifact);
                then(&vertex, &OnTarget::new(c.target, &c.fragment.artifact, options))
            }
        }
    }

    /// Runs a dispatch.
    ///
    /// # Errors
    /// When it breaks a rule, or there is nothing to dispatch.
    pub fn dispatch(&self, inputs: &Inputs) -> Result<RunReport, RunError> {
        let Program::Compute { stage, code } = self else {
            return Err(RunError::Setup("there is no compute shader".to_owned()));
        };
        let options = RunOptions::default();
        match code {
            None => kempe::run::interpret(&stage.module, inputs, &options),
            Some((_, code)) => kempe::run::run_artifact(&code.artifact, inputs, &options),
        }
    }
}
