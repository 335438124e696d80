//! The numbered rules of the reference (section 15) on final instruction words.
//!
//! Every rule whose check is W (visible in one word) or P (visible in the program text) is checked, hardware limits as
//! errors and habits of the driver as warnings; of those that a run shows, rule 36, whether or not rf0 is read afterwards. P rules follow every path: slots of branches and of thread switches are
//! those of the path that is walked, also across a branch (file `paths`). What a rule needs to know beyond the words
//! stands in [`ProgramFacts`].
//!
//! Rules 2, 4, 5, 6 and 9 cannot be broken by a word, the encoding has no room for it: a word *means* something that
//! obeys them. [`check_instr`] checks those of them that a decoded instruction can break.

mod paths;
mod word;

#[cfg(test)]
mod tests;

use crate::decode::decode;
use crate::instr::{Instr, Version};
pub use kempe_ir::module::Stage;
use kempe_mir::rules::Report;
pub use kempe_mir::rules::{Class, Violation};

/// What the words do not say.
#[derive(Clone, Copy, Debug)]
pub struct ProgramFacts<'a> {
    /// 2 or 4.
    pub threads: u32,
    pub stage: Stage,
    /// Dispatched in the final section (section 13.2): the first thread switch is the end.
    pub single_segment: bool,
    /// The word to start at.
    pub entry: usize,
    /// Byte address of the first word; needed to follow absolute branches.
    pub code_address: Option<u32>,
    /// Words that write Z to the tile buffer (only the configuration uniform tells), in ascending order.
    pub z_writes: &'a [usize],
    /// The scoreboard lock is taken at the first thread switch instead of the last (section 13.4).
    pub scoreboard_on_first: bool,
    /// A chip before 4.2.14 (rule 19).
    pub before_42_14: bool,
}

impl ProgramFacts<'_> {
    /// A compute program that starts at its first word.
    pub fn compute(threads: u32) -> ProgramFacts<'static> {
        ProgramFacts {
            threads,
            stage: Stage::Compute,
            single_segment: false,
            entry: 0,
            code_address: None,
            z_writes: &[],
            scoreboard_on_first: false,
            before_42_14: false,
        }
    }
}

/// All broken rules, by word, errors first.
pub fn validate(version: Version, words: &[u64], facts: &ProgramFacts) -> Vec<Violation> {
    let mut report = Report::new("word");
    let mut instrs = Vec::with_capacity(words.len());
    for (at, &word) in words.iter().enumerate() {
        match decode(version, word) {
            Ok(instr) => {
                word::check(version, facts, at, &instr, &mut report);
                word::check_bits(version, at, word, &instr, &mut report);
                instrs.push(instr);
            }
            Err(error) => {
                report.hw(error.rule().unwrap_or("12"), at, error.to_string());
                instrs.push(Instr::NOP);
            }
        }
    }
    paths::check(version, &instrs, facts, &mut report);
    report.sorted()
}

/// The rules about a single instruction, also those that no word can break because it could not be encoded.
pub fn check_instr(version: Version, instr: &Instr, facts: &ProgramFacts) -> Vec<Violation> {
    let mut report = Report::new("word");
    word::check(version, facts, 0, instr, &mut report);
    word::check_encodable(version, instr, &mut report);
    report.found()
}
