//! Running an artifact on the simulator of its target, without the compiler.

use crate::{data, target};
use kempe_ir::exec::{Environment, Inputs, Memory, Sizes};
use kempe_ir::inputs::{Ranges, Usage};
use kempe_ir::io::StageOutputs;
use kempe_ir::schedule::Order;
use kempe_ir::{Module, Space, Variable, interp};
use kempe_mir::{Artifact, UniformSource, VertexRow};
use std::collections::BTreeMap;
use std::fmt;

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Most instructions of all threads together.
    pub step_limit: u64,
    /// 0: threads take turns. [`RunOptions::SEQUENTIAL`]: a thread runs until it has to wait. Otherwise the thread that
    /// runs after a switch is drawn with this seed.
    pub schedule: u64,
}

impl RunOptions {
    /// The schedule in which one thread after the other runs, as far as barriers allow.
    pub const SEQUENTIAL: u64 = u64::MAX;

    /// The schedule as simulators know it.
    pub(crate) fn order(&self) -> Order {
        match self.schedule {
            0 => Order::RoundRobin,
            RunOptions::SEQUENTIAL => Order::Sequential,
            seed => Order::Shuffled(seed),
        }
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { step_limit: 1 << 34, schedule: 0 }
    }
}

/// A buffer or an image after the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferOutput {
    pub set: u32,
    pub binding: u32,
    /// Element of an array of buffers.
    pub element: u32,
    pub bytes: Vec<u8>,
}

/// What one hardware thread did: it runs one batch of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadCounts {
    /// Threads of a supergroup run at the same time.
    pub supergroup: u64,
    pub batch: u32,
    pub instructions: u64,
    /// Of these, how many waited a cycle for a special function.
    pub stalls: u64,
    pub switches: u64,
}

/// What a run gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Buffers, then images, each in the order of the inputs.
    pub buffers: Vec<BufferOutput>,
    /// How often each instruction word was executed, over all threads.
    pub counts: Vec<u64>,
    pub instructions: u64,
    /// Of these, how many waited a cycle for a special function.
    pub stalls: u64,
    /// Thread switches.
    pub switches: u64,
    /// What each hardware thread did, in the order of their start; of very many, the first.
    pub threads: Vec<ThreadCounts>,
    /// Rules that the program should keep and did not, but that do not stop it.
    pub warnings: Vec<String>,
}

/// What the program of a graphics stage gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageRun {
    /// By place in the interface.
    pub outputs: StageOutputs,
    /// Of a vertex program that was made for a machine: its rows, by vertex. They hold what the interface has no place
    /// for: the position on the screen.
    pub rows: BTreeMap<VertexRow, Vec<Option<u32>>>,
    pub report: RunReport,
}

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The program cannot be run like this: what it is bound to, the number of work-groups.
    Setup(String),
    /// The program did something that is not allowed.
    Program(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Setup(message) | RunError::Program(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunError {}

/// Most work-groups of a dispatch along each axis.
pub const MAX_GROUPS: u32 = 65535;

/// Runs an artifact.
///
/// # Errors
/// When the inputs do not fit the artifact, or the program breaks a rule.
pub fn run_artifact(
    artifact: &Artifact,
    inputs: &Inputs,
    options: &RunOptions,
) -> Result<RunReport, RunError> {
    let target = target::target(&artifact.target)
        .ok_or_else(|| RunError::Setup(format!("target `{}` is not known", artifact.target)))?;
    check_inputs(&artifact.resources, inputs)?;
    target.run(artifact, inputs, options)
}

/// Runs a module in source form with the interpreter: what the source means, without any compiler pass.
///
/// # Errors
/// When the inputs do not fit the module, or it does something that is not allowed.
pub fn interpret(module: &Module, inputs: &Inputs, options: &RunOptions) -> Result<RunReport, RunError> {
    let how = interp::Options { step_limit: options.step_limit, ..interp::Options::source() };
    interpreted(module, inputs, Sizes::source(), &how).map(|(report, _)| report)
}

/// As [`interpret`], for a graphics stage and the invocations of `inputs.stage`.
///
/// # Errors
/// As there, or when it is no graphics stage.
pub fn interpret_stage(module: &Module, inputs: &Inputs, options: &RunOptions) -> Result<StageRun, RunError> {
    let how = interp::Options { step_limit: options.step_limit, ..interp::Options::source() };
    let (report, outputs) = interpreted(module, inputs, Sizes::source(), &how)?;
    match outputs {
        Some(outputs) => Ok(StageRun { outputs, report, ..StageRun::default() }),
        None => Err(RunError::Setup("is no shader of a graphics stage".to_owned())),
    }
}

/// Runs the interpreter.
pub(crate) fn interpreted(
    module: &Module,
    inputs: &Inputs,
    sizes: Sizes,
    how: &interp::Options,
) -> Result<(RunReport, Option<StageOutputs>), RunError> {
    let resources: Vec<_> = module.resources.values().cloned().collect();
    check_inputs(&resources, inputs)?;
    let environment = Environment::new(module, inputs, sizes).map_err(RunError::Setup)?;
    let outcome = interp::run(module, &environment, how).map_err(|stop| {
        let place = stop_place(module, &stop).map_or(String::new(), |place| format!("{place}: "));
        RunError::Program(format!("{place}{stop}"))
    })?;
    let mut warnings = Vec::new();
    if !outcome.undefined.is_empty() {
        warnings.push(format!("undefined data has an effect in {} places", outcome.undefined.len()));
    }
    let report = RunReport {
        buffers: outputs(&environment, &outcome.memory),
        instructions: outcome.steps,
        warnings,
        ..RunReport::default()
    };
    Ok((report, outcome.stage))
}

/// Contents of all buffers, then of all images, in the order of the inputs.
pub(crate) fn outputs(environment: &Environment, memory: &Memory) -> Vec<BufferOutput> {
    let buffers = environment.buffers.iter().map(|b| (b.set, b.binding, b.element));
    let images = environment.images.iter().map(|i| (i.set, i.binding, i.element));
    let contents = environment.buffer_contents(memory).into_iter().chain(environment.image_contents(memory));
    let output = |((set, binding, element), bytes): (_, &[u8])| BufferOutput {
        set,
        binding,
        element,
        bytes: bytes.to_vec(),
    };
    buffers.chain(images).zip(contents).map(output).collect()
}

/// The source line of what stopped the interpreter.
fn stop_place(module: &Module, stop: &interp::Stop) -> Option<String> {
    let inst = match stop {
        interp::Stop::Fault { inst, .. }
        | interp::Stop::Texel { inst, .. }
        | interp::Stop::Misaligned { inst, .. }
        | interp::Stop::DivergentBarrier { inst, .. } => *inst,
        _ => return None,
    };
    let line = module.line(module.func.insts[inst].loc)?;
    let file = module.files.get(line.file as usize).filter(|file| !file.is_empty());
    Some(match file {
        Some(file) => format!("{file}:{}:{}", line.line, line.column),
        None => format!("line {}", line.line),
    })
}

/// Runs the lowered program of an artifact with the interpreter and compares with what the simulator gave: the first
/// difference, if there is one. Undefined data is what it happens to be, on both sides, so a program that lets it
/// reach a buffer may differ.
///
/// # Errors
/// When the interpreter cannot run it.
pub fn compare(
    lowered: &Module,
    artifact: &Artifact,
    inputs: &Inputs,
    options: &RunOptions,
    simulated: &RunReport,
) -> Result<Option<String>, RunError> {
    let target = target::target(&artifact.target)
        .ok_or_else(|| RunError::Setup(format!("target `{}` is not known", artifact.target)))?;
    let wanted = target.interpret(lowered, artifact, inputs, options)?;
    let mut pairs = simulated.buffers.iter().zip(&wanted.buffers);
    Ok(pairs.find_map(|(is, wanted)| {
        let (i, is_value, value) = data::first_difference(&is.bytes, &wanted.bytes, data::Element::Hex)?;
        Some(format!("{}:{}: word {i} is {is_value}, the interpreter gives {value}", is.set, is.binding))
    }))
}

/// Random contents for everything that a module is bound to: floats where it reads floats, small integers elsewhere, so
/// that what it computes from them has a chance to stay inside its buffers. The same seed gives the same contents.
pub fn random_inputs(module: &Module, groups: [u32; 3], seed: u64) -> Inputs {
    let ranges = Ranges { int_max: 7, dim_min: 1, dim_max: 8, groups };
    Usage::scan(module).draw(module, seed, &ranges, |_, _| RANDOM_BYTES)
}

/// Size of a buffer with a run-time array that [`random_inputs`] makes.
const RANDOM_BYTES: u32 = 1 << 16;

/// Checks what a user may get wrong about the bindings.
///
/// # Errors
/// A binding that the shader does not have, or a number of work-groups that no dispatch can have.
pub fn check_inputs(resources: &[kempe_ir::Resource], inputs: &Inputs) -> Result<(), RunError> {
    if let Some(n) = inputs.groups.iter().find(|n| **n > MAX_GROUPS) {
        return Err(RunError::Setup(format!("{n} work-groups along one axis: at most {MAX_GROUPS}")));
    }
    for buffer in &inputs.buffers {
        let (set, binding) = (buffer.set, buffer.binding);
        if !resources.iter().any(|r| is_buffer(r) && (r.set, r.binding) == (set, binding)) {
            let known: Vec<String> = resources
                .iter()
                .filter(|r| is_buffer(r))
                .map(|r| format!("{}:{}", r.set, r.binding))
                .collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(RunError::Setup(format!(
                "there is no buffer at {set}:{binding}; the shader uses {known}"
            )));
        }
    }
    for image in &inputs.images {
        let (set, binding) = (image.set, image.binding);
        if !resources.iter().any(|r| r.kind.is_image() && (r.set, r.binding) == (set, binding)) {
            return Err(RunError::Setup(format!("there is no image at {set}:{binding}")));
        }
    }
    Ok(())
}

fn is_buffer(r: &kempe_ir::Resource) -> bool {
    matches!(r.kind, kempe_ir::ResKind::StorageBuffer | kempe_ir::ResKind::UniformBuffer)
}

/// Places everything that an artifact is bound to in memory. The same inputs and sizes give the same addresses as for
/// the module that the artifact was made from.
pub(crate) fn environment(
    artifact: &Artifact,
    inputs: &Inputs,
    sizes: Sizes,
) -> Result<Environment, RunError> {
    // Only what the environment looks at: there is no function in it.
    let mut shell = Module::new(&artifact.entry, artifact.stage);
    shell.workgroup_size = artifact.workgroup_size;
    shell.constant_data = artifact.constant_data.clone();
    for resource in &artifact.resources {
        shell.resources.push(resource.clone());
    }
    if artifact.shared_bytes != 0 {
        shell.vars.push(Variable {
            space: Space::Shared,
            size: artifact.shared_bytes,
            align: 16,
            name: "shared".to_owned(),
        });
    }
    Environment::new(&shell, inputs, sizes).map_err(RunError::Setup)
}

/// The words of the uniform stream as a driver would write them.
pub(crate) fn uniform_words(artifact: &Artifact, environment: &Environment) -> Vec<u32> {
    artifact
        .uniforms
        .iter()
        .map(|source| match *source {
            UniformSource::Const(value) => value,
            UniformSource::Word(word, plus) => environment.word(word).wrapping_add(plus),
            // Everything that is bound lies below 2^32.
            UniformSource::High(_) => 0,
        })
        .collect()
}
