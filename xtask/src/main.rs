//! Tasks of the developer that are no part of the product: `cargo xtask TASK`.
//!
//!     cargo xtask oracles [NAME]...    runs the reference's oracle files, all or those whose name contains NAME
//!     cargo xtask fuzz [--count N]     random programs down the whole road, simulator against interpreter

mod fuzz;
mod judge;
mod oracles;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    match task.as_str() {
        "oracles" => oracles::run(&args),
        "fuzz" => fuzz::run(&args),
        _ => {
            eprintln!("usage: cargo xtask oracles [NAME]...");
            ExitCode::from(2)
        }
    }
}
