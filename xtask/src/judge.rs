//! The judge of the whole road: one module, one input, run by the interpreter on the lowered form and by the simulator
//! on the final words. They must agree bit for bit.

use kempe::run::{RunOptions, run_artifact};
use kempe_ir::Module;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::inputs::Verdict;
use kempe_ir::interp::{self, Stop};
use kempe_mir::Artifact;
use kempe_opt::Level;
use kempe_v3d::compile::{self, CompileError};
use kempe_v3d::instr::Version;
use std::panic::AssertUnwindSafe;

/// A module made for one target (the artifact says which): what runs, and what it must equal.
pub struct Made {
    pub lowered: Module,
    pub artifact: Artifact,
}

/// How to make it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub level: Level,
    pub back: compile::Options,
}

impl Default for Options {
    fn default() -> Options {
        Options { level: Level::O2, back: compile::Options::default() }
    }
}

struct Catch(Option<Module>);

impl compile::Observer for Catch {
    fn lowered(&mut self, m: &Module) {
        self.0 = Some(m.clone());
    }
}

/// Optimises and compiles a module in source form.
pub fn make(m: &Module, version: Version, options: &Options) -> Result<Made, CompileError> {
    let mut m = m.clone();
    let mut choices = kempe_opt::Options::new(options.level);
    // Reference 12.2: a vector access of 4.2 wraps inside its 16-byte block.
    choices.vector_within_16 = version == Version::V42;
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    let mut catch = Catch(None);
    let artifact = compile::compile(m, version, &options.back, &mut catch)?;
    let lowered = catch.0.ok_or_else(|| CompileError {
        message: "no lowered form was seen".to_owned(),
        loc: kempe_ir::Loc(0),
        internal: true,
        needed: None,
    })?;
    Ok(Made { lowered, artifact })
}

/// The same for any target, by the way that the command takes.
pub fn make_on(
    m: &Module,
    target: &'static dyn kempe::Target,
    options: &Options,
) -> Result<Made, CompileError> {
    let back = &options.back;
    let code = kempe::compile::CodeOptions {
        level: options.level,
        threads: back.threads,
        max_registers: back.max_registers,
        force_spill: back.force_spill,
        engine: back.engine,
        without: back.without,
        without_orders: back.without_orders,
        verify: back.verify,
        ..Default::default()
    };
    let mut m = m.clone();
    let choices = kempe_opt::Options { level: options.level, ..target.opt_options() };
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    let keep = kempe::compile::Keep { lowered: true, ..Default::default() };
    let failed = |message: String, internal: bool| CompileError {
        message,
        loc: kempe_ir::Loc(0),
        internal,
        needed: None,
    };
    let made =
        target.compile(m, kempe::Variant::Render, &code, keep).map_err(|e| failed(e.message, e.bug))?;
    let lowered = made.lowered.ok_or_else(|| failed("no lowered form was seen".to_owned(), true))?;
    Ok(Made { lowered, artifact: made.artifact })
}

/// What a comparison saw.
pub struct Agreement {
    /// How often each word was executed.
    pub counts: Vec<u64>,
    /// Contents of all buffers afterwards, for telling runs apart.
    pub output: Vec<Vec<u8>>,
    /// Undefined data reached memory, a branch or an address in the interpreter.
    pub undefined: bool,
}

/// Why two runs do not agree, or there are none.
#[derive(Debug)]
pub enum Trouble {
    /// The input is of no use (it leads outside of a buffer, it runs too long).
    Input(interp::Stop),
    Setup(String),
    /// The judge objects.
    Wrong(String),
}

impl Trouble {
    /// What the search for inputs is to do about it; an objection is nothing that other inputs are needed for.
    pub fn verdict(self) -> Verdict {
        match self {
            Trouble::Input(Stop::Fault { fault, .. }) => Verdict::Outside(fault),
            Trouble::Input(stop) => Verdict::Useless(stop.to_string()),
            Trouble::Setup(s) | Trouble::Wrong(s) => Verdict::Useless(s),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Input(stop) => write!(f, "interpreter: {stop}"),
            Trouble::Setup(s) => write!(f, "setup: {s}"),
            Trouble::Wrong(s) => write!(f, "wrong: {s}"),
        }
    }
}

/// Runs something that should not panic; if it does, gives what it said.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|p| {
        let text = p.downcast_ref::<String>().cloned();
        let text = text.or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    })
}

/// Most steps of one run of the interpreter.
pub const STEPS: u64 = 20_000_000;

/// Runs the source form: an input is of use only if every access stays inside of what it belongs to (private and shared
/// arrays too, which no machine checks), nothing undefined has an effect, and nothing races.
pub fn screen(m: &Module, inputs: &Inputs) -> Result<(), Trouble> {
    screen_within(m, inputs, STEPS).map(|_| ())
}

/// The same with a limit of its own. Gives the number of steps.
pub fn screen_within(m: &Module, inputs: &Inputs, limit: u64) -> Result<u64, Trouble> {
    let env = Environment::new(m, inputs, Sizes::source()).map_err(Trouble::Setup)?;
    let mut how = interp::Options::source();
    how.step_limit = limit;
    how.races = true;
    let outcome = interp::run(m, &env, &how).map_err(Trouble::Input)?;
    if let Some(race) = outcome.race {
        return Err(Trouble::Setup(race.to_string()));
    }
    if !outcome.undefined.is_empty() {
        return Err(Trouble::Setup("it reads what was never written".to_owned()));
    }
    Ok(outcome.steps)
}

/// Runs both and compares every buffer.
pub fn compare(made: &Made, inputs: &Inputs, schedule: u64) -> Result<Agreement, Trouble> {
    let target = kempe::target(&made.artifact.target).ok_or_else(|| Trouble::Setup("no target".into()))?;
    let sizes = target.sizes(&made.artifact).map_err(|e| Trouble::Setup(e.to_string()))?;
    let env = Environment::new(&made.lowered, inputs, sizes).map_err(Trouble::Setup)?;
    let interpret = |races: bool| {
        let mut outcome = None;
        target.interpreter(&made.artifact, &mut |how| {
            let how = interp::Options { step_limit: STEPS, races, ..*how };
            outcome = Some(interp::run(&made.lowered, &env, &how).map_err(Trouble::Input));
        });
        outcome.unwrap_or_else(|| Err(Trouble::Setup("it cannot be interpreted".to_owned())))
    };
    let expected = interpret(false)?;
    let undefined = !expected.undefined.is_empty();
    let mut want = env.buffer_contents(&expected.memory);
    want.extend(env.image_contents(&expected.memory));
    // The interpreter runs one batch after the other. A program whose result depends on the order (atomics whose old
    // value is used, races) can only be compared in that order.
    let mut result = Err(Trouble::Wrong(String::new()));
    for schedule in [schedule, RunOptions::SEQUENTIAL] {
        let run = RunOptions { step_limit: 40 * STEPS, schedule };
        result = run_artifact(&made.artifact, inputs, &run)
            .map_err(|e| Trouble::Wrong(e.to_string()))
            .and_then(|report| same_buffers(&report, &want).map(|()| report));
        if result.is_ok() {
            break;
        }
    }
    if matches!(result, Err(Trouble::Wrong(_))) {
        // Before anybody is accused: what a race computes is nobody's fault.
        if let Some(race) = interpret(true)?.race {
            return Err(Trouble::Setup(race.to_string()));
        }
    }
    let report = result?;
    Ok(Agreement {
        counts: report.counts,
        output: report.buffers.into_iter().map(|b| b.bytes).collect(),
        undefined,
    })
}

fn same_buffers(report: &kempe::run::RunReport, want: &[&[u8]]) -> Result<(), Trouble> {
    for (got, want) in report.buffers.iter().zip(want) {
        if got.bytes == *want {
            continue;
        }
        let at = got.bytes.iter().zip(want.iter()).position(|(a, b)| a != b).unwrap_or(0) & !3;
        let word = |b: &[u8]| b.get(at..at + 4).map_or(0, |w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        return Err(Trouble::Wrong(format!(
            "buffer {}:{} differs at byte {at}: simulator {:#010x}, interpreter {:#010x}",
            got.set,
            got.binding,
            word(&got.bytes),
            word(want)
        )));
    }
    Ok(())
}
