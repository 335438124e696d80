//! What a target offers to everybody above it, and the list of targets.
//!
//! A target is added by writing its adapter (a folder below the workspace and a file beside this one) and one line in
//! [`targets`]. Nothing above this file knows a target by name.

use crate::compile::{CodeOptions, Compiled, Keep, TargetError};
use crate::explain::Step;
use crate::raw::{RawProgram, RawRun};
use crate::run::{self, RunError, RunOptions, RunReport, StageRun};
use crate::{agx, v3d};
use kempe_ir::exec::{Inputs, Memory, Sizes};
use kempe_ir::{Module, Stage, interp};
use kempe_mir::{Artifact, rules};
use kempe_opt::pipeline;

/// Which program of a shader: some machines run two for one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Variant {
    /// The one that gives what the source says.
    #[default]
    Render,
    /// Of a shader before the rasteriser: positions only, for sorting primitives into tiles.
    Binning,
}

impl Variant {
    /// The name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Render => "render",
            Variant::Binning => "binning",
        }
    }
}

/// A GPU that code can be made for.
pub trait Target: Sync {
    /// The name on the command line and in every output.
    fn name(&self) -> &'static str;

    /// Chip and products, for people.
    fn description(&self) -> &'static str;

    /// Facts for people: name and value, in the order to show them.
    fn facts(&self) -> Vec<(&'static str, String)>;

    /// Hardware threads per core with the registers that each then has, most threads first.
    fn occupancy(&self) -> &'static [Step];

    /// Bytes of what code is counted in: lengths of instructions are multiples of it. A number of a place in code counts
    /// such parcels.
    fn parcel(&self) -> usize;

    /// Text of the first instruction of code that is not empty, and its length in bytes; `invalid` and one parcel if it is
    /// none. With `quirks`, as the public reference disassembler prints it, deviations included.
    fn disassemble(&self, code: &[u8], quirks: bool) -> (String, usize);

    /// Code of a program in text form. It is canonical; whether it obeys the rules is [`Target::validate`]'s question.
    ///
    /// # Errors
    /// The first thing in the text that is no instruction.
    fn assemble(&self, text: &str) -> Result<Vec<u8>, TextError>;

    /// What the optimiser may do for this target; the level is filled in.
    fn opt_options(&self) -> pipeline::Options;

    /// Whether there is code for this stage.
    fn supports(&self, _stage: Stage) -> bool {
        true
    }

    /// The programs that a shader of this stage becomes, at least one, in the order of the results.
    fn variants(&self, _stage: Stage) -> &'static [Variant] {
        &[Variant::Render]
    }

    /// Makes code of a module in source form: one of the [`Target::variants`] of its stage.
    ///
    /// # Errors
    /// When the module needs something that the target does not have, or Kempe is wrong.
    fn compile(
        &self,
        module: Module,
        variant: Variant,
        options: &CodeOptions,
        keep: Keep,
    ) -> Result<Compiled, TargetError>;

    /// All rules of the hardware that code breaks, in the order of the code.
    fn validate(&self, code: &CodeFacts) -> Vec<Violation>;

    /// Runs an artifact on the simulator. The inputs have been checked against its resources.
    ///
    /// # Errors
    /// When it cannot be run like this or breaks a rule.
    fn run(&self, artifact: &Artifact, inputs: &Inputs, options: &RunOptions) -> Result<RunReport, RunError>;

    /// Says how the interpreter runs the lowered program of an artifact: as the machine lays lanes out and computes.
    fn interpreter(&self, artifact: &Artifact, run: &mut dyn FnMut(&interp::Options));

    /// Runs the lowered program of an artifact with the interpreter, laid out as the simulator lays it out: the two must
    /// agree bit for bit.
    ///
    /// # Errors
    /// When it cannot be run like this or does something that is not allowed.
    fn interpret(
        &self,
        lowered: &Module,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<RunReport, RunError> {
        let sizes = self.sizes(artifact)?;
        let mut result = Err(RunError::Setup("it cannot be interpreted".to_owned()));
        self.interpreter(artifact, &mut |how| {
            let how = interp::Options { step_limit: options.step_limit, ..*how };
            result = run::interpreted(lowered, inputs, sizes, &how).map(|(report, _)| report);
        });
        result
    }

    /// Runs the program of a graphics stage on the simulator, for the invocations of `inputs.stage`.
    ///
    /// # Errors
    /// When it cannot be run like this or breaks a rule.
    fn run_stage(
        &self,
        artifact: &Artifact,
        _inputs: &Inputs,
        _options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        Err(no_stage(artifact))
    }

    /// As [`Target::interpret`], for the program of a graphics stage.
    ///
    /// # Errors
    /// When it cannot be run like this or does something that is not allowed.
    fn interpret_stage(
        &self,
        _lowered: &Module,
        artifact: &Artifact,
        _inputs: &Inputs,
        _options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        Err(no_stage(artifact))
    }

    /// How the lanes and the memory of a run of this artifact are laid out.
    ///
    /// # Errors
    /// When no dispatch can run it.
    fn sizes(&self, artifact: &Artifact) -> Result<Sizes, RunError>;

    /// Runs machine code from elsewhere on a memory image.
    ///
    /// # Errors
    /// When it cannot be run like this or breaks a rule.
    fn run_raw(
        &self,
        raw: &RawProgram,
        memory: &mut Memory,
        options: &RunOptions,
    ) -> Result<RawRun, RunError>;
}

fn no_stage(artifact: &Artifact) -> RunError {
    let stage = crate::artifact::stage_name(artifact.stage);
    RunError::Setup(format!("{stage} programs for {} cannot be run yet", artifact.target))
}

/// Text of what is no instruction.
pub const INVALID: &str = "invalid";

/// Code and what it does not say itself.
#[derive(Clone, Copy, Debug)]
pub struct CodeFacts<'a> {
    pub code: &'a [u8],
    /// Hardware threads per core.
    pub threads: u32,
    pub stage: Stage,
    /// Dispatched in its final section.
    pub single_section: bool,
    /// The parcel to start at ([`Target::parcel`]).
    pub entry: usize,
    /// Byte address of the first byte, if the code knows where it lies.
    pub address: Option<u32>,
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Number of the rule in the target's reference.
    pub rule: &'static str,
    /// The hardware cannot do it; otherwise it is only unusual.
    pub error: bool,
    /// Number of the parcel ([`Target::parcel`]).
    pub at: usize,
    pub message: String,
}

impl Violation {
    /// Of a target's validator; its places are divided by `parcel`.
    pub(crate) fn of(v: rules::Violation, parcel: usize) -> Violation {
        Violation { rule: v.rule, error: v.class == rules::Class::Hw, at: v.at / parcel, message: v.message }
    }
}

/// An error in assembly text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// Line and column, from 1.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl std::fmt::Display for TextError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TextError {}

/// All targets, in the order in which they are shown.
pub fn targets() -> &'static [&'static dyn Target] {
    static TARGETS: [&dyn Target; 3] = [&v3d::V42, &v3d::V71, &agx::G13];
    &TARGETS
}

/// The target of that name.
pub fn target(name: &str) -> Option<&'static dyn Target> {
    targets().iter().copied().find(|target| target.name() == name)
}
