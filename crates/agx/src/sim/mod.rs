//! Functional simulator of compute programs, on the final bytes.
//!
//! Written from the reference (sections given in each file), not from a code generator, so that the two can disagree. It is
//! strict. A register that was never written, that was discarded, that a lane took no part in loading is *poison*, lane by
//! lane; poison spreads through arithmetic and stops the run when it would have an effect (memory, an address, the execution
//! mask). What the hardware forbids, or what nobody knows the meaning of, stops the run at once: a register whose load has
//! not been waited for, a uniform that nobody filled, an access outside of memory, a barrier that some lanes miss, the end
//! of the code.
//!
//! * [`Program`], [`Dispatch`], [`run`]: a grid of threadgroups on a [`Memory`].
//! * [`step_bytes`]: single instructions on a given state, for the execution oracle.
//!
//! Device addresses have 64 bits, those of [`Memory`] 32: an [`AddressMap`] says where the buffers lie.
//!
//! Files: `code` (decoded form), `group` (one SIMD group: registers, mask, poison), `execute` (one instruction), `float`, `alu`
//! (arithmetic), `lanes` (across lanes), `memory`, `format` (access to memory), `dispatch` (threadgroups, barriers), `step`.
//!
//! Not there: textures, images, the tile buffer, inputs and outputs of graphics stages, derivatives, matrices, block copies,
//! the scratch service. Such an instruction stops the run with the rule `unsupported`.

mod alu;
mod code;
mod dispatch;
mod execute;
mod float;
mod format;
mod group;
mod lanes;
mod memory;
mod step;
#[cfg(test)]
mod tests;

use kempe_ir::exec::Memory;
use std::fmt;

pub use code::Code;
pub use kempe_ir::schedule::Order;
pub use memory::AddressMap;
pub use step::{StepState, step_bytes};

/// Lanes of a SIMD group.
pub const LANES: usize = 32;

/// One bit per lane, lane 0 lowest.
pub type Mask = u32;

/// A program as the hardware is given it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub code: Vec<u8>,
    /// Runs once before the threads, on one lane, and fills uniforms.
    pub preamble: Option<Vec<u8>>,
    /// Half registers that are declared, a multiple of 8.
    pub halves: u32,
    /// Words of the first uniform registers; the others hold nothing until a preamble fills them.
    pub uniforms: Vec<u32>,
    /// Bytes of threadgroup memory.
    pub threadgroup_bytes: u32,
    /// Threads of a threadgroup by axis.
    pub threadgroup_size: [u32; 3],
    /// Dwords of stack memory that each lane has.
    pub stack_dwords: u32,
}

impl Program {
    /// Without preamble, threadgroup memory and stack, with all registers.
    pub fn new(code: Vec<u8>, uniforms: Vec<u32>, threadgroup_size: [u32; 3]) -> Program {
        Program {
            code,
            preamble: None,
            halves: 256,
            uniforms,
            threadgroup_bytes: 0,
            threadgroup_size,
            stack_dwords: 0,
        }
    }
}

/// What to run the program on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// Threadgroups by axis.
    pub groups: [u32; 3],
    /// Where the regions of memory lie in the address space of the device.
    pub map: AddressMap,
}

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What a careful program does not do, although the hardware would take it, stops the run: a base that is not aligned, more
    /// than 8 requests pending in a slot. Off for single instructions of unknown origin.
    pub strict: bool,
    pub order: Order,
    /// Most instructions of all SIMD groups together.
    pub step_limit: u64,
    /// A store of an undefined value is no fault; memory remembers it, and [`Outcome::undefined`] tells where it is left.
    pub undefined_in_memory: bool,
    /// Threadgroup memory starts as zeros. It is undefined otherwise.
    pub zeroed_threadgroup: bool,
    /// Units in the last place by which approximate functions miss, where their result is not exact (section 4.3 allows the
    /// reciprocal 1 up or down).
    pub approximation: i8,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            strict: true,
            order: Order::RoundRobin,
            step_limit: 1 << 28,
            undefined_in_memory: false,
            zeroed_threadgroup: false,
            approximation: 0,
        }
    }
}

/// Why a run stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// `undefined`, `wait`, `memory`, `mask`, `uniform`, `registers`, `stack`, `encoding`, `branch`, `end`, `barrier`, `deadlock`,
    /// `limit`, `unsupported`, `unsettled` (the reference does not say what happens), `dispatch`.
    pub rule: &'static str,
    /// Byte address of the instruction; 0 when none is to blame.
    pub pc: usize,
    /// Text of the instruction, if there is one.
    pub instr: String,
    pub lane: Option<u8>,
    /// Number of the threadgroup, x fastest.
    pub threadgroup: u64,
    /// SIMD group in it.
    pub group: u32,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: pc {}", self.rule, self.pc)?;
        if !self.instr.is_empty() {
            write!(f, " `{}`", self.instr.split_whitespace().collect::<Vec<_>>().join(" "))?;
        }
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", threadgroup {}, SIMD group {}: {}", self.threadgroup, self.group, self.message)
    }
}

impl std::error::Error for Fault {}

/// What one SIMD group did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupCounts {
    pub threadgroup: u64,
    pub group: u32,
    pub instructions: u64,
    /// Requests to memory.
    pub requests: u64,
}

/// What a run did, also when it stopped early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub result: Result<(), Fault>,
    /// How often each instruction of the code was executed, by its number, over all SIMD groups.
    pub executed: Vec<u64>,
    /// Instructions executed, the preamble included.
    pub instructions: u64,
    /// Every SIMD group in the order of its start, up to [`Outcome::MAX_GROUPS`] of them.
    pub groups: Vec<GroupCounts>,
    /// Addresses in [`Memory`] of bytes that an undefined value was stored to, ascending (see [`Options::undefined_in_memory`]).
    pub undefined: Vec<u32>,
}

impl Outcome {
    /// So many SIMD groups are counted one by one.
    pub const MAX_GROUPS: usize = 1 << 16;
}

/// Decodes and runs a program once.
pub fn run(program: &Program, dispatch: &Dispatch, memory: &mut Memory, options: &Options) -> Outcome {
    Code::new(program).run(dispatch, memory, options)
}

/// Why a register is poison. The cause of the first poisoned source travels with the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Cause {
    /// Nothing wrote the register on this lane.
    #[default]
    Never,
    /// The instruction at this address discarded it.
    Discarded(u32),
    /// Stack memory that this lane never stored.
    Stack,
    /// Threadgroup memory that nobody stored.
    Threadgroup,
    /// Memory in which an undefined value had been stored.
    Memory,
    /// The source lane of a shuffle does not exist or has nothing there.
    OtherLane,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Never => f.write_str("was never written"),
            Cause::Discarded(pc) => write!(f, "was discarded at pc {pc}"),
            Cause::Stack => f.write_str("was loaded from stack memory that was never stored"),
            Cause::Threadgroup => f.write_str("was loaded from threadgroup memory that was never stored"),
            Cause::Memory => f.write_str("was loaded from where an undefined value had been stored"),
            Cause::OtherLane => f.write_str("comes from a lane that has no such value"),
        }
    }
}

/// A reason to stop, before the place is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    pub rule: &'static str,
    pub lane: Option<u8>,
    pub message: String,
}

impl Trouble {
    #[cold]
    pub fn new(rule: &'static str, message: impl Into<String>) -> Trouble {
        Trouble { rule, lane: None, message: message.into() }
    }

    #[cold]
    pub fn at(rule: &'static str, lane: usize, message: impl Into<String>) -> Trouble {
        Trouble { rule, lane: Some(lane as u8), message: message.into() }
    }

    #[cold]
    pub fn unsupported(what: &str) -> Trouble {
        Trouble::new("unsupported", format!("{what} is not simulated"))
    }
}
