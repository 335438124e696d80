//! Tasks of the developer that are no part of the product: `cargo xtask TASK`.
//!
//! ```text
//!     cargo xtask oracles [NAME]...    runs the reference's oracle files, all or those whose name contains NAME
//!     cargo xtask fuzz [--count N]     random programs down the whole road, simulator against interpreter
//!     cargo xtask survey [--all]       compiles the compute modules of the corpus: how many, how fast, why not
//!     cargo xtask simulate [-v]        runs corpus modules on the simulator against the interpreter
//! ```

mod corpus;
mod fuzz;
mod judge;
mod oracles;
mod simulate;
mod survey;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    match task.as_str() {
        "oracles" => oracles::run(&args),
        "fuzz" => fuzz::run(&args),
        "survey" => survey::run(&args),
        "simulate" => simulate::run(&args),
        _ => {
            eprintln!("usage: cargo xtask oracles|fuzz|survey|simulate ...");
            ExitCode::from(2)
        }
    }
}
