//! The interpreter: what a module means, run lane by lane with everything checked.
//!
//! It executes a [`Module`] for a dispatch, in two forms:
//! * the *source form*, with pointers: a work-group is a row of subgroups, private memory is a space of its own on every
//!   lane, and an access must stay inside of the resource or variable that its address came from;
//! * the *machine form*, which lowering leaves: addresses are 32-bit words of one flat memory, and lanes are arranged as
//!   the machine arranges them ([`Batches`]: batches may hold items of several work-groups, and lanes beyond the last
//!   item never become active).
//!
//! Both are one mechanism: an address of type `ptr.private` is of the lane's own space, every other address is flat.
//!
//! All lanes of a batch walk together; the block that stands first in the layout among those that lanes are in runs
//! next, with the lanes that are in it (the head of [`crate::divergence`] says what follows from that). The batches of
//! a work-group run in turn, each up to its next barrier.
//!
//! Undefined data (`undef`, private and shared memory that was never written) is followed through values and memory;
//! where it reaches memory that others see, a branch or an address, the place is recorded in [`Outcome::undefined`]; it
//! does not stop the run. What stops a run is a [`Stop`]: an access outside of memory, a broken alignment claim, a
//! barrier that not all lanes reach, `unreachable`, or too many steps.
//!
//! What is left out: memory reached by 64-bit host addresses (`global` is treated as flat memory); subgroups larger than
//! 16 lanes; work-groups that wait for others that come later in the dispatch (they run one after another, so such a
//! program runs into the step limit).

mod access;
mod decode;
mod error;
mod follow;
mod image;
#[cfg(test)]
mod image_tests;
mod lanes;
#[cfg(test)]
mod primitive_tests;
mod primitives;
mod races;
mod run;
mod sample;
mod sample_bounds;
#[cfg(test)]
mod stage_tests;
mod stages;
#[cfg(test)]
mod tests;

use crate::divergence::Divergence;
use crate::exec::{Environment, Fault, LANES, LaneContext, Memory, StartState};
use crate::io::{Slot, StageOutputs};
use crate::module::{Block, Inst, Module};
use std::collections::BTreeMap;
use std::fmt;

pub use decode::Program;
pub use error::{Pieces, Shadow};
pub use races::Race;

/// How the lanes of a dispatch are arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Each work-group by itself, in subgroups of this many lanes (1 to 16).
    Source { subgroup_size: u32 },
    /// Supergroups and batches of 16 lanes as [`Environment::sizes`] says.
    Machine,
}

/// How to run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    pub form: Form,
    /// Instructions executed, counted once per batch, before the run is stopped.
    pub step_limit: u64,
    pub start: &'a dyn StartState,
    /// Tests of the divergence analysis: results that it calls uniform are computed once and given to all lanes,
    /// waiting ones too, and the active lanes are checked to agree. Lanes of quads that are dead from the start are not there:
    /// on a machine that leaves them out of loads they hold something else, so uniform means the same in live quads.
    pub broadcast: Option<&'a Divergence>,
    /// Follow how far other right implementations may be from our values (`docs/bounds.md`); [`Outcome::pieces`] says
    /// what is known of memory. A branch or an address that is not decided stops the run.
    pub bounds: bool,
    /// Look for data races; [`Outcome::race`] is the first one.
    pub races: bool,
    /// f32 operations take denormals for zeros and give none ([`Program::flushing`]).
    pub flush: bool,
}

impl Options<'_> {
    /// The source form in subgroups of 16.
    pub fn source() -> Options<'static> {
        Options {
            form: Form::Source { subgroup_size: LANES as u32 },
            step_limit: 100_000_000,
            start: &crate::exec::NoPayload,
            broadcast: None,
            bounds: false,
            races: false,
            flush: false,
        }
    }

    /// The machine form.
    pub fn machine(start: &dyn StartState) -> Options<'_> {
        Options {
            form: Form::Machine,
            step_limit: 100_000_000,
            start,
            broadcast: None,
            bounds: false,
            races: false,
            flush: false,
        }
    }
}

/// Why a run stopped early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// An access outside of memory, or outside of what its address was derived from.
    Fault {
        fault: Fault,
        inst: Inst,
        lane: LaneContext,
    },
    /// A texel outside of an image, or an image that is not bound.
    Texel {
        message: String,
        inst: Inst,
        lane: LaneContext,
    },
    /// The address is not a multiple of the alignment that the instruction claims.
    Misaligned {
        address: u32,
        align: u32,
        inst: Inst,
        lane: LaneContext,
    },
    /// Control reached `unreachable`.
    Unreachable {
        block: Block,
        lane: LaneContext,
    },
    /// A barrier with lanes of the same batch waiting elsewhere.
    DivergentBarrier {
        inst: Inst,
        lane: LaneContext,
    },
    /// Some batches wait at a barrier and the others have ended.
    Deadlock {
        waiting: u32,
        ended: u32,
    },
    StepLimit(u64),
    /// In a broadcast run: lanes disagree about a value that is said to be uniform.
    NotUniform {
        block: Block,
        value: crate::module::Value,
    },
    /// In a broadcast run: some lanes wait or have ended where control is said to be uniform.
    LanesMissing {
        block: Block,
    },
    /// In a run with bounds: a branch, an address or a condition that other implementations may see differently.
    Undecided(UndefinedUse),
    /// The program needs something that the interpreter does not do.
    Unsupported(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = |l: &LaneContext| {
            let [x, y, z] = l.group;
            format!("invocation {} of work-group {x},{y},{z}", l.local_index)
        };
        match self {
            Stop::Fault { fault, inst, lane: l } => write!(f, "{inst}, {}: {fault}", lane(l)),
            Stop::Texel { message, inst, lane: l } => write!(f, "{inst}, {}: {message}", lane(l)),
            Stop::Misaligned { address, align, inst, lane: l } => {
                write!(f, "{inst}, {}: address {address:#010x} is not a multiple of {align}", lane(l))
            }
            Stop::Unreachable { block, lane: l } => {
                write!(f, "{}: reached the end of {block}, which is unreachable", lane(l))
            }
            Stop::DivergentBarrier { inst, lane: l } => {
                write!(
                    f,
                    "{inst}, {}: a barrier that other invocations of its subgroup do not reach",
                    lane(l)
                )
            }
            Stop::Deadlock { waiting, ended } => {
                write!(
                    f,
                    "{waiting} subgroups wait at a barrier that the {ended} others have passed by and ended"
                )
            }
            Stop::StepLimit(n) => write!(f, "not finished after {n} instructions"),
            Stop::NotUniform { block, value } => {
                write!(f, "{block}: {value} is said to be uniform, but lanes disagree")
            }
            Stop::LanesMissing { block } => {
                write!(f, "{block}: control is said to be uniform, but not all lanes are there")
            }
            Stop::Undecided(at) => write!(f, "{at:?} depends on a value that is not decided"),
            Stop::Unsupported(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Stop {}

/// Where undefined data had an effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UndefinedUse {
    /// Data of a store or an atomic to memory that others see.
    Data(Inst),
    /// Address of an access.
    Address(Inst),
    /// Condition of the branch at the end of a block.
    Branch(Block),
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Memory at the end: see [`Environment::buffer_contents`].
    pub memory: Memory,
    /// Instructions executed, counted once per batch.
    pub steps: u64,
    /// The same, counted once per active lane.
    pub lane_steps: u64,
    /// How often each block was entered, by position in the layout.
    pub visits: Vec<u64>,
    /// Each place once, in order.
    pub undefined: Vec<UndefinedUse>,
    /// In a run with bounds, by region of `memory`: what is not the same everywhere.
    pub pieces: Vec<Pieces>,
    /// In a run with bounds: what is known of the outputs of a graphics stage, as [`StageOutputs::values`] has them.
    pub output_bounds: BTreeMap<(Slot, u8, u8), Vec<Shadow>>,
    /// In a run that looks for races: the first one.
    pub race: Option<Race>,
    /// Of a graphics stage.
    pub stage: Option<StageOutputs>,
}

impl Outcome {
    /// Number of instructions that were executed at least once, and of all.
    pub fn coverage(&self, module: &Module) -> (usize, usize) {
        let mut counts = (0, 0);
        for (&b, &visits) in module.func.layout.iter().zip(&self.visits) {
            let n = module.func.blocks[b].insts.len();
            counts.1 += n;
            counts.0 += if visits > 0 { n } else { 0 };
        }
        counts
    }
}

/// Runs a verified module once.
pub fn run(module: &Module, env: &Environment, options: &Options) -> Result<Outcome, Stop> {
    let program = if options.flush { Program::flushing(module)? } else { Program::new(module)? };
    program.run(env, options)
}
