//! Functional simulator of compute, fragment and vertex programs, on the final instruction words.
//!
//! Written from the reference (sections given in each file), not from the code generator, so that the two can disagree.
//! It is strict: a register that was never written, a value lost at a thread switch, an address of nowhere is *poison*,
//! lane by lane; poison spreads through arithmetic and stops the run with the number of the broken rule when it would
//! have an effect (memory, a branch, a pointer, a configuration). Every hardware rule of section 15 that a program
//! can break stops it too.
//! `docs/simulator.md` lists what is modelled.
//!
//! * [`Code`]: the program, decoded once. [`Code::run`] runs a dispatch on a [`Memory`].
//! * [`Code::run_fragments`], [`Code::run_vertices`]: batches of a draw, and what each of them gave.
//! * [`step_words`]: a few words on a given register state, for the execution oracles.
//!
//! Files: `code` (decoded form), `alu` and `model` (arithmetic), `thread` (one thread, one instruction), `tmu` (general
//! memory access), `rules` (limits of words, slots and distances), `dispatch` (threads of a supergroup, barriers, payload), `step` (single
//! words), `texture` (texels), `lookup` (samplers), `graphics` (batches of vertices and fragments), `varying`, `tile`, `vpm`.

mod alu;
mod code;
mod dispatch;
pub mod graphics;
#[cfg(test)]
mod graphics_tests;
mod lookup;
#[cfg(test)]
mod lookup_tests;
mod model;
mod patch;
#[cfg(test)]
mod patch_tests;
mod rules;
mod step;
mod texture;
#[cfg(test)]
mod texture_tests;
mod thread;
mod tile;
mod tmu;
mod varying;
mod vpm;

#[cfg(test)]
mod rule_pairs;
#[cfg(test)]
mod tests;

use crate::instr::Version;
use kempe_ir::exec::{Memory, PlacedImage};
use std::fmt;

pub use code::Code;
pub use dispatch::Start;
pub use graphics::{
    Depth, Draw, FragmentBatch, FragmentOutput, FragmentRun, PlacedSampler, TileContents, TileKind, TileWord,
    TileWrite, Varying, VertexBatch, VertexOutput, VertexRun, VpmRow,
};
pub use kempe_ir::schedule::Order;
pub use patch::Primitives;
pub use step::{StepState, step_words};

/// Lanes of an instruction.
pub const LANES: usize = 16;

/// One register: a word per lane.
pub type Lanes = [u32; LANES];

/// One bit per lane, lane 0 lowest.
pub type Mask = u16;

/// Where the uniform stream comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UniformStream {
    /// These words; reading beyond them stops the run.
    Words(Vec<u32>),
    /// The memory at this address, as it was at dispatch.
    Address(u32),
}

/// A program as the hardware is given it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub version: Version,
    /// Instruction words with the byte address of the first one of each piece. Execution starts at the first word of
    /// the first piece unless `entry` says otherwise.
    pub pieces: Vec<(u32, Vec<u64>)>,
    /// Byte address to start at.
    pub entry: Option<u32>,
    pub uniforms: UniformStream,
    /// 2 or 4.
    pub threads: u32,
    /// Dispatched in the final section: the first thread switch ends the program (section 13.2).
    pub single_segment: bool,
    /// Of compute programs.
    pub workgroup_size: [u32; 3],
}

impl Program {
    /// A program of one piece at address 0.
    pub fn new(
        version: Version,
        words: Vec<u64>,
        uniforms: Vec<u32>,
        threads: u32,
        size: [u32; 3],
    ) -> Program {
        Program {
            version,
            pieces: vec![(0, words)],
            entry: None,
            uniforms: UniformStream::Words(uniforms),
            threads,
            single_segment: false,
            workgroup_size: size,
        }
    }
}

/// Scratch memory (section 12.6): one block per hardware thread. A store of poison into it is no fault; the word is
/// poison when it is loaded again, as are words that were never stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scratch {
    /// Address of a region of the memory that holds all blocks.
    pub base: u32,
    pub bytes_per_thread: u32,
}

/// What to run the program on.
#[derive(Clone, PartialEq, Debug)]
pub struct Dispatch {
    /// Work-groups by axis.
    pub groups: [u32; 3],
    /// Work-groups that the front end packs together (section 13.5).
    pub wgs_per_supergroup: u32,
    pub scratch: Option<Scratch>,
    /// What the texture unit finds at the addresses of texture states.
    pub images: Vec<PlacedImage>,
    /// The same for samplers.
    pub samplers: Vec<PlacedSampler>,
    /// Batches to run if not what work-groups and their size give, and batches per supergroup.
    pub batches: Option<(u32, u32)>,
}

impl Dispatch {
    /// Work-groups one at a time, without scratch.
    pub fn new(groups: [u32; 3]) -> Dispatch {
        Dispatch {
            groups,
            wgs_per_supergroup: 1,
            scratch: None,
            images: Vec::new(),
            samplers: Vec::new(),
            batches: None,
        }
    }
}

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Values that a thread switch may destroy become poison, a load must not meet a store that has not been waited for,
    /// a store has as many data words as its type. Off for raw programs that own their QPU.
    pub strict: bool,
    pub order: Order,
    /// Most instructions of all threads together.
    pub step_limit: u64,
    /// The lane that a register uniform branch follows; without it unequal lanes stop the run (rule 66).
    pub uniform_branch_lane: Option<u8>,
    /// A store of a value that is undefined by no rule of its own is no fault; memory remembers it, and
    /// [`Outcome::undefined`] tells where it is left.
    pub undefined_in_memory: bool,
    /// The chip is one before 4.2.14 (rule 19).
    pub before_42_14: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            strict: true,
            order: Order::RoundRobin,
            step_limit: 1 << 28,
            uniform_branch_lane: None,
            undefined_in_memory: false,
            before_42_14: false,
        }
    }
}

/// Why a run stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The broken rule of section 15; or `undefined` (poison of no rule), `memory`, `uniforms`, `limit`, `deadlock`,
    /// `unsupported`, `dispatch`, `12.2` (protocol of that section).
    pub rule: &'static str,
    /// Word of the program (all pieces in order); 0 when no instruction is to blame.
    pub pc: usize,
    pub lane: Option<u8>,
    pub supergroup: u64,
    pub batch: u32,
    pub message: String,
}

impl Fault {
    /// The run could not begin.
    fn dispatch(message: String) -> Fault {
        Fault { rule: "dispatch", pc: 0, lane: None, supergroup: 0, batch: 0, message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = self.rule.as_bytes().first().is_some_and(u8::is_ascii_digit);
        write!(f, "{}{}: pc {}", if numbered { "rule " } else { "" }, self.rule, self.pc)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", supergroup {}, batch {}: {}", self.supergroup, self.batch, self.message)
    }
}

impl std::error::Error for Fault {}

/// What one thread did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadCounts {
    pub supergroup: u64,
    pub batch: u32,
    /// The number that `tidx` gives.
    pub tidx: u32,
    pub instructions: u64,
    /// Of these, how many waited a cycle for a result of the special function unit (rule 25).
    pub stalls: u64,
    pub switches: u64,
}

/// What a run did, also when it stopped early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub result: Result<(), Fault>,
    /// How often each word was executed, over all threads.
    pub executed: Vec<u64>,
    /// Instructions executed.
    pub instructions: u64,
    /// Of these, how many waited a cycle for a result of the special function unit (rule 25).
    pub stalls: u64,
    /// Thread switches.
    pub switches: u64,
    /// Every thread in the order of its start, up to [`Outcome::MAX_THREADS`] of them.
    pub threads: Vec<ThreadCounts>,
    /// Rules of the driver class that were broken, each at its first place.
    pub warnings: Vec<Fault>,
    /// Addresses of bytes that an undefined value was stored to, ascending (see [`Options::undefined_in_memory`]).
    pub undefined: Vec<u32>,
}

impl Outcome {
    /// So many threads are counted one by one.
    pub const MAX_THREADS: usize = 1 << 16;

    /// Words that were executed at least once, and all words.
    pub fn coverage(&self) -> (usize, usize) {
        (self.executed.iter().filter(|&&n| n != 0).count(), self.executed.len())
    }
}

/// Decodes and runs a program once.
pub fn run(program: &Program, dispatch: &Dispatch, memory: &mut Memory, options: &Options) -> Outcome {
    Code::new(program).run(dispatch, memory, options)
}
