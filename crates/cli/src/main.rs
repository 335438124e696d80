//! The command `kempe`.
//!
//! Results go to stdout, everything that is said about them to stderr. Exit codes: 0 fine, 1 the input is wrong, 2 the
//! command line is wrong, 3 a budget is exceeded, 4 a bug in Kempe, 5 a run gave something else than expected.

mod args;
mod code;
mod compile;
mod corpus;
mod draw;
mod explain;
mod io;
mod run;
mod table;

use clap::Parser;
use std::process::ExitCode;

/// Counts memory, so that `--memory-limit` is exact.
#[global_allocator]
static ALLOCATOR: kempe::limits::Allocator = kempe::limits::Allocator;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exit {
    Fine = 0,
    Wrong = 1,
    Usage = 2,
    Budget = 3,
    Bug = 4,
    Differs = 5,
}

fn main() -> ExitCode {
    let args = args::Args::parse();
    let exit = match &args.command {
        args::Command::Compile(a) => compile::compile(a),
        args::Command::Explain(a) => explain::explain(a),
        args::Command::Run(a) => run::run(a),
        args::Command::Validate(a) => code::validate(a),
        args::Command::Disasm(a) => code::disasm(a),
        args::Command::Asm(a) => code::asm(a),
        args::Command::Corpus(a) => corpus::corpus(a),
        args::Command::Targets => code::targets(),
    };
    // Abandoned threads end with the process.
    ExitCode::from(exit as u8)
}
