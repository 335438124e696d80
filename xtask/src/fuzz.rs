//! Random programs down the whole road: `cargo xtask fuzz [--count N] [--seed S] [--target T] [--one SEED] [--verify]`.
//!
//! Every program is made for both targets at the natural register limit and at a random low one, at random levels of
//! optimisation and thread counts; the simulator must equal the interpreter, and nothing on the way may object.

use crate::judge::{self, Trouble};
use kempe_ir::generate::{self, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_opt::Level;
use kempe_v3d::instr::Version;
use rayon::prelude::*;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// One seed: everything that went wrong, as text.
pub fn one(seed: u64, targets: &[Version], verify: bool) -> Vec<String> {
    let shape = Shape::from_seed(seed);
    let m = generate(seed, &shape);
    let mut r = Random(seed ^ 0x9999);
    let inputs = generate::inputs(seed, 1 + r.below(3) as u32, &shape);
    let mut out = Vec::new();
    for &version in targets {
        for round in 0..2 {
            let level = [Level::O0, Level::O1, Level::O2, Level::O2][r.below(4) as usize];
            let mut options = judge::Options { level, ..judge::Options::default() };
            options.back.verify = verify;
            if round == 1 {
                options.back.threads = [None, Some(2), Some(4)][r.below(3) as usize];
                match r.below(3) {
                    0 => options.back.force_spill = true,
                    _ => options.back.max_registers = Some(10 + r.below(14) as u32),
                }
            }
            let schedule = r.below(4);
            let run = || -> Result<(), String> {
                let made = judge::make(&m, version, &options).map_err(|e| {
                    if e.internal { format!("bug: {e}") } else { format!("not compiled: {e}") }
                })?;
                match judge::compare(&made, &inputs, schedule) {
                    Ok(_) => Ok(()),
                    Err(Trouble::Input(stop)) => Err(format!("interpreter: {stop}")),
                    Err(Trouble::Setup(s)) => Err(format!("setup: {s}")),
                    Err(Trouble::Wrong(s)) => Err(format!("wrong: {s}")),
                }
            };
            let result = std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| {
                let text = p.downcast_ref::<String>().cloned();
                let text = text.or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                Err(format!("panic: {}", text.unwrap_or_default()))
            });
            if let Err(e) = result {
                // Fewer registers than one instruction needs is an answer, not a defect.
                if e.starts_with("not compiled: out of registers") && round == 1 {
                    continue;
                }
                out.push(format!("seed {seed} {} {options:?} schedule {schedule}: {e}", version.name()));
            }
        }
    }
    out
}

pub fn run(args: &[String]) -> ExitCode {
    let mut count = 1000u64;
    let mut first = 1u64;
    let mut targets = Version::ALL.to_vec();
    // Checker B reads every result too.
    let verify = args.iter().any(|a| a == "--verify");
    let mut it = args.iter().filter(|a| *a != "--verify");
    while let Some(a) = it.next() {
        let value = it.next().cloned().unwrap_or_default();
        match a.as_str() {
            "--count" => count = value.parse().unwrap_or(count),
            "--seed" => first = value.parse().unwrap_or(first),
            "--target" => targets.retain(|v| v.name() == value),
            "--one" => {
                first = value.parse().unwrap_or(first);
                count = 1;
            }
            _ => {
                eprintln!("usage: cargo xtask fuzz [--count N] [--seed S] [--target T] [--one SEED]");
                return ExitCode::from(2);
            }
        }
    }
    let start = std::time::Instant::now();
    std::panic::set_hook(Box::new(|_| {}));
    let failures: Vec<String> =
        (first..first + count).into_par_iter().flat_map_iter(|s| one(s, &targets, verify)).collect();
    for f in failures.iter().take(40) {
        println!("{f}");
    }
    println!(
        "fuzz: seeds {first}..{}, {} failures, {:.1} s",
        first + count,
        failures.len(),
        start.elapsed().as_secs_f64()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
