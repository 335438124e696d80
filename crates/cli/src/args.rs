//! The command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use kempe::Target;
use std::path::PathBuf;

/// An offline compiler for GPU shaders: machine code, what it costs, and a simulator that runs it.
#[derive(Parser)]
#[command(name = "kempe", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Show machine code as text
    Disasm(Disasm),
    /// Make machine code from text
    Asm(Asm),
    /// List the GPUs that code can be made for
    Targets,
}

/// A target, by its name.
fn target_parser() -> impl TypedValueParser<Value = &'static dyn Target> {
    PossibleValuesParser::new(kempe::targets().iter().map(|target| target.name()))
        .try_map(|name| kempe::target(&name).ok_or("not a target"))
}

#[derive(clap::Args)]
pub struct Disasm {
    /// Words as bytes (little-endian) or as hexadecimal text, or an artifact; `-` is standard input
    pub file: PathBuf,
    /// The GPU; an artifact says it itself
    #[arg(short, long, value_parser = target_parser())]
    pub target: Option<&'static dyn Target>,
    /// Only the text, without number and word of each instruction
    #[arg(long)]
    pub plain: bool,
    /// As the public reference disassembler prints it, with its deviations
    #[arg(long)]
    pub quirks: bool,
}

#[derive(clap::Args)]
pub struct Asm {
    /// Text, one instruction a line; `-` is standard input
    pub file: PathBuf,
    /// The GPU
    #[arg(short, long, value_parser = target_parser())]
    pub target: &'static dyn Target,
    /// Where the words go; standard output if not given
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Bytes (little-endian) or hexadecimal text; a file gets bytes, standard output text
    #[arg(long, value_enum)]
    pub format: Option<WordFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordFormat {
    Bin,
    Hex,
}
