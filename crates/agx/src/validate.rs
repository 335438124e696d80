//! The rules of the reference (checklist of section 15) on final bytes.
//!
//! A rule has the number of its item there and a letter of ours. What one instruction can break is in `validate/word.rs`, what a
//! path can break in `validate/paths.rs`. What the bytes do not say stands in [`ProgramFacts`].
//!
//! | rule | what |
//! |---|---|
//! | 1a | every byte belongs to an instruction |
//! | 1b | no bit that means nothing, no reserved type of an operand |
//! | 1c | numbers whose meaning is not known have the value that is known to work |
//! | 1d | conditions, formats, atomics, conversions, dimensions exist |
//! | 1e | operations that nobody understands are not used |
//! | 2a | registers are among those that are declared |
//! | 2b | registers of 64 bits start at an even register (warning: a habit) |
//! | 2c | what was discarded is not read |
//! | 2d | nothing is read that no path has written (off where registers are preloaded) |
//! | 3a | what is loaded is not read or written before the wait |
//! | 3b | at most 8 requests are pending in a slot (warning: a habit) |
//! | 3c | no request is pending at a barrier |
//! | 4a | `r0l` is set before the first instruction of the execution mask |
//! | 4b | `r0l` is written only by moves, selects and instructions of the execution mask |
//! | 4c | nesting is the same on every path, never negative, and none at the end |
//! | 4d | jumps go to the start of an instruction |
//! | 5a | uniforms stand only where they may |
//! | 5b | uniforms hold something |
//! | 5c | only a preamble writes uniforms |
//! | 6a | an index is shifted by at most 2 |
//! | 6b | an access is to at least one element, of a packed format to all |
//! | 6c | i32 goes with 32-bit registers |
//! | 6d | an unsigned immediate is not above 32767 (warning: read in two ways) |
//! | 7, 8 | instructions of another stage |
//! | 9a | the stack frame is made by the first instruction, once, and given back whole |
//! | 9b | accesses are inside the frame |
//! | 10a | no path runs past the end or into a trap |
//! | 10b | eight traps follow the last instruction |
//!
//! Left out: the order of sample masks and tile accesses of fragments (7), that every path of a vertex ends its outputs (8).

mod paths;
#[cfg(test)]
mod tests;
mod word;

use crate::decode::{Decoded, decode};
use crate::encode::is_canonical;
use crate::instr::Instr;
use kempe_mir::rules::Report;
pub use kempe_mir::rules::{Class, Violation};

/// What kind of program it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Compute,
    Vertex,
    Fragment,
    /// Runs before the threads and fills uniforms.
    Preamble,
}

/// What the bytes do not say.
#[derive(Clone, Copy, Debug)]
pub struct ProgramFacts {
    pub stage: Stage,
    /// Half registers that are declared.
    pub halves: u16,
    /// Halves of uniforms that are filled before the program starts, from the first one on.
    pub uniforms: u16,
    /// Halves that hold something at the start (of vertices: `r5`, `r6`), from and to.
    pub preloaded: (u16, u16),
}

impl ProgramFacts {
    /// A compute program.
    pub fn compute(halves: u16, uniforms: u16) -> ProgramFacts {
        ProgramFacts { stage: Stage::Compute, halves, uniforms, preloaded: (0, 0) }
    }
}

/// An instruction and its byte address.
struct Placed {
    at: usize,
    instr: Instr,
}

/// All broken rules, by address, errors first. Behind bytes that are no instruction nothing is looked at.
pub fn validate(code: &[u8], facts: &ProgramFacts) -> Vec<Violation> {
    let mut report = Report::new("byte");
    let mut program = Vec::new();
    let mut at = 0;
    while at < code.len() {
        match decode(&code[at..]) {
            Ok(Decoded { instr, length }) => {
                if !is_canonical(&code[at..at + length], &instr) {
                    report.hw("1b", at, "bits that mean nothing, or a reserved type");
                }
                word::check(facts, at, &instr, &mut report);
                program.push(Placed { at, instr });
                at += length;
            }
            Err(error) => {
                report.hw("1a", at, error.to_string());
                break;
            }
        }
    }
    paths::check(facts, &program, &mut report);
    report.sorted()
}
