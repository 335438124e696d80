//! Tasks of the developer that are no part of the product: `cargo xtask TASK`.
//!
//! ```text
//!     cargo xtask oracles [NAME]...    runs the reference's oracle files, all or those whose name contains NAME
//!     cargo xtask fuzz [--count N]     random programs down the whole road, simulator against interpreter
//!     cargo xtask coverage TARGET      coverage-guided fuzzing of the readers (fuzz/)
//!     cargo xtask mutate [--count N]   changes correct results in one thing: do the judges object?
//!     cargo xtask ablation [PART...]   what each part of the allocator brings, on the whole corpus (docs/allocator.md)
//!     cargo xtask optimum              the allocator beside the least spill cost, on small programs of the corpus
//!     cargo xtask growth [NAME]...     code and compile time of shaders of growing size
//!     cargo xtask quality              docs/quality.md: our code beside the reference figures
//!     cargo xtask piglit FOLDER       the .shader_test files below a folder on the simulator: pass, fail, refused, skip
//!     cargo xtask sources [-v]         the source texts of the corpus through our front ends: how many compile, why not
//!     cargo xtask survey [--all]       compiles the compute modules of the corpus: how many, how fast, why not
//!     cargo xtask sweep [--quick]      compiles the corpus at many register limits, and runs a part of it
//!     cargo xtask simulate [-v]        runs corpus modules on the simulator against the interpreter
//!     cargo xtask vulkan [FILE]...     the interpreter against a Vulkan driver on the CPU (tools/vulkan-compare)
//! ```

mod ablation;
mod addresses;
mod corpus;
mod coverage;
mod fuzz;
mod growth;
mod judge;
mod mutate;
mod optimum;
mod oracles;
mod piglit;
mod quality;
mod simulate;
mod sources;
mod stages;
mod survey;
mod sweep;
mod targets;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    match task.as_str() {
        "oracles" => oracles::run(&args),
        "coverage" => coverage::run(&args),
        "addresses" => addresses::run(&args),
        "ablation" => ablation::run(&args),
        "optimum" => optimum::run(&args),
        "growth" => growth::run(&args),
        "quality" => quality::run(&args),
        "fuzz" => fuzz::run(&args),
        "mutate" => mutate::run(&args),
        "piglit" => piglit::run(&args),
        "sources" => sources::run(&args),
        "survey" => survey::run(&args),
        "simulate" => simulate::run(&args),
        "sweep" => sweep::run(&args),
        "vulkan" => vulkan(&args),
        _ => {
            eprintln!(
                "usage: cargo xtask addresses|oracles|fuzz|coverage|mutate|growth|piglit|quality|sources|survey|sweep|simulate|vulkan ..."
            );
            ExitCode::from(2)
        }
    }
}

/// Runs the comparison with a Vulkan driver, which is a program of its own because nothing else needs Vulkan. Exit code
/// 77: there is no driver or no corpus.
fn vulkan(args: &[String]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = ["run", "--release", "--quiet", "--package", "vulkan-compare", "--"];
    match std::process::Command::new(cargo).args(run).args(args).status() {
        Ok(s) => ExitCode::from(s.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)),
        Err(e) => {
            eprintln!("cargo cannot be started: {e}");
            ExitCode::FAILURE
        }
    }
}
