//! Corpus modules on the simulator: `cargo xtask simulate [--want N] [--only TEXT] [--seeds N] [--target T]
//! [--level 0|1|2] [--threads N] [--no-order] [--force-spill] [--images] [-v]`.
//!
//! Each module is specialised with its suggested values and run on up to 16 seeds of random, bounded inputs; an input
//! that leads outside of a buffer is replaced. On every input the simulator must equal the interpreter of the lowered
//! form. With `--stage vertex|fragment|all` it runs graphics stages instead, see [`crate::stages`]. A module *counts* when at least 90 % of its words were executed over its seeds and outputs differ between them.

use crate::corpus::{self, Entry};
use crate::judge::{self, Trouble};
use kempe_ir::exec::Inputs;
use kempe_ir::inputs::{Usage, Verdict, search};
use kempe_ir::interp::Stop;
use kempe_v3d::instr::Version;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// What became of a module.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    Counts {
        seeds: u32,
        coverage: f64,
    },
    /// Equal on every input, but too few words executed or outputs that never differ.
    Thin {
        seeds: u32,
        coverage: f64,
        differ: bool,
    },
    /// No input was found.
    NoInput(String),
    NotCompiled(String),
    Wrong(String),
}

/// Runs one module for one target.
pub fn judge_entry(e: &Entry, version: Version, seeds: u32, options: &judge::Options) -> Fate {
    let run = || one(e, version, seeds, options);
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| {
        let text = p.downcast_ref::<String>().cloned();
        let text = text.or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Fate::Wrong(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn one(e: &Entry, version: Version, seeds: u32, how: &judge::Options) -> Fate {
    let bytes = match std::fs::read(&e.path) {
        Ok(b) => b,
        Err(err) => return Fate::NotCompiled(err.to_string()),
    };
    let options = kempe_front::Options { spec: e.suggested.clone(), ..kempe_front::Options::default() };
    let modules = match kempe_front::compile(&e.file, &bytes, kempe_front::Language::Spirv, &options) {
        Ok(m) => m,
        Err(err) => return Fate::NotCompiled(format!("{err}")),
    };
    let Some(m) = modules.first() else { return Fate::NotCompiled("no entry point".into()) };
    let made = match judge::make(m, version, how) {
        Ok(made) => made,
        Err(err) => return Fate::NotCompiled(err.to_string()),
    };
    let usage = Usage::scan(m);
    let mut executed = vec![0u64; made.artifact.code.len()];
    let mut outputs: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut ran = 0;
    let mut last = String::new();
    for seed in 0..seeds as u64 {
        let mut agreed = None;
        let mut wrong = None;
        let both =
            |inputs: &Inputs| judge::screen(m, inputs).and_then(|()| judge::compare(&made, inputs, seed % 5));
        let found = search(m, &usage, seed, |inputs| match both(inputs) {
            Ok(a) if a.undefined => Verdict::Useless("it reads what was never written".into()),
            Ok(a) => {
                agreed = Some(a);
                Verdict::Fine
            }
            Err(Trouble::Input(Stop::Fault { fault, .. })) => Verdict::Outside(fault),
            Err(Trouble::Input(stop)) => Verdict::Useless(stop.to_string()),
            Err(Trouble::Setup(s)) => Verdict::Useless(s),
            Err(Trouble::Wrong(s)) => {
                wrong = Some(format!("seed {seed}: {s}"));
                Verdict::Fine
            }
        });
        if let Some(w) = wrong {
            return Fate::Wrong(w);
        }
        match (found, agreed) {
            (Ok(_), Some(a)) => {
                ran += 1;
                for (n, c) in executed.iter_mut().zip(&a.counts) {
                    *n += c;
                }
                outputs.push(a.output);
            }
            (Err(why), _) => last = why,
            (Ok(_), None) => {}
        }
        // Enough is enough: covered, and two runs differ.
        let covered = executed.iter().filter(|&&n| n > 0).count() as f64 / executed.len().max(1) as f64;
        if ran >= 3 && covered >= 0.97 && outputs.windows(2).any(|w| w[0] != w[1]) {
            break;
        }
    }
    if ran == 0 {
        return Fate::NoInput(last);
    }
    let coverage = executed.iter().filter(|&&n| n > 0).count() as f64 / executed.len().max(1) as f64;
    let differ = outputs.windows(2).any(|w| w[0] != w[1]);
    if coverage >= 0.9 && differ {
        Fate::Counts { seeds: ran, coverage }
    } else {
        Fate::Thin { seeds: ran, coverage, differ }
    }
}

pub fn run(args: &[String]) -> ExitCode {
    if let Some(stage) = args.iter().position(|a| a == "--stage").map(|n| args.get(n + 1)) {
        return match stage.map(String::as_str) {
            Some(stage @ ("vertex" | "fragment" | "all")) => crate::stages::run(stage, args),
            _ => {
                eprintln!("usage: cargo xtask simulate --stage vertex|fragment|all ...");
                ExitCode::from(2)
            }
        };
    }
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str, default: usize| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let verbose = args.iter().any(|a| a == "-v");
    let (want, seeds, step) = (number("--want", usize::MAX), number("--seeds", 16), number("--step", 1));
    let only = value("--only");
    let images = args.iter().any(|a| a == "--images");
    let mut how = judge::Options::default();
    match value("--level").as_deref() {
        Some("0") => how.level = kempe_opt::Level::O0,
        Some("1") => how.level = kempe_opt::Level::O1,
        _ => {}
    }
    how.back.threads = value("--threads").and_then(|t| t.parse().ok());
    how.back.no_order = args.iter().any(|a| a == "--no-order");
    how.back.force_spill = args.iter().any(|a| a == "--force-spill");
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            println!("simulate: skipped: {e}");
            return ExitCode::SUCCESS;
        }
    };
    let chosen: Vec<Entry> = entries
        .into_iter()
        .filter(|e| e.is_plain_compute())
        .filter(|e| !images || e.has_images())
        .filter(|e| only.as_ref().is_none_or(|o| e.file.contains(o.as_str())))
        .step_by(step.max(1))
        .take(want)
        .collect();
    let mut failed = false;
    std::panic::set_hook(Box::new(|_| {}));
    for version in Version::ALL {
        if value("--target").is_some_and(|t| t != version.name()) {
            continue;
        }
        let start = std::time::Instant::now();
        let fates: Vec<Fate> =
            chosen.par_iter().map(|e| judge_entry(e, version, seeds as u32, &how)).collect();
        failed |= table(version.name(), &chosen, &fates, verbose, start.elapsed());
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints what became of the modules, by collection. True if one is wrong.
pub fn table(name: &str, chosen: &[Entry], fates: &[Fate], verbose: bool, time: std::time::Duration) -> bool {
    let mut failed = false;
    let mut rows: BTreeMap<&str, [u32; 5]> = BTreeMap::new();
    for (e, f) in chosen.iter().zip(fates) {
        let row = rows.entry(&e.collection).or_default();
        let (at, text) = match f {
            Fate::Counts { seeds, coverage } => {
                (0, format!("counts: {seeds} seeds, {:.1} % of words", 100.0 * coverage))
            }
            Fate::Thin { seeds, coverage, differ } => (
                1,
                format!("thin: {seeds} seeds, {:.1} % of words, outputs differ: {differ}", 100.0 * coverage),
            ),
            Fate::NoInput(why) => (2, format!("no input: {why}")),
            Fate::NotCompiled(why) => (3, format!("not compiled: {why}")),
            Fate::Wrong(why) => (4, format!("WRONG: {why}")),
        };
        row[at] += 1;
        failed |= at == 4;
        if verbose || at == 4 {
            println!("{} {}: {}", name, e.file, text.lines().next().unwrap_or(""));
        }
    }
    println!("== {}: counts / thin / no input / not compiled / wrong", name);
    let mut total = [0; 5];
    for (collection, r) in &rows {
        println!("  {collection:14} {:4} {:4} {:4} {:4} {:4}", r[0], r[1], r[2], r[3], r[4]);
        for (t, n) in total.iter_mut().zip(r) {
            *t += n;
        }
    }
    println!(
        "  {:14} {:4} {:4} {:4} {:4} {:4}   {:.1} s",
        "all",
        total[0],
        total[1],
        total[2],
        total[3],
        total[4],
        time.as_secs_f64()
    );
    failed
}
