//! Corpus modules on the simulator: `cargo xtask simulate [--want N] [--only TEXT] [--seeds N] [--target T]
//! [--level 0|1|2] [--threads N] [--max-registers N] [--no-order] [--force-spill] [--images] [-v]`.
//!
//! Each module is specialised with its suggested values and run on up to 16 seeds of random, bounded inputs; an input
//! that leads outside of a buffer is replaced. On every input the simulator must equal the interpreter of the lowered
//! form. A module *counts* when at least 90 % of its words were executed over its seeds and outputs differ between them. With
//! `--stage vertex|fragment|all` it runs graphics stages instead, see [`crate::stages`].

use crate::corpus::{self, Entry};
use crate::judge::{self, Trouble};
use crate::targets;
use kempe::Target;
use kempe_ir::Module;
use kempe_ir::exec::Inputs;
use kempe_ir::inputs::{Usage, Verdict, search};
use rayon::prelude::*;
use std::collections::BTreeMap;
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

/// What one input showed of a module on which both sides agree.
pub struct Agreed<T> {
    /// Word by word (instruction by instruction): executed.
    pub executed: Vec<bool>,
    /// What tells runs apart.
    pub output: T,
}

/// Runs a module on its seeds: an input that leads outside is replaced, and enough is enough.
pub fn over_seeds<T: PartialEq>(
    m: &Module,
    seeds: u32,
    compare: impl Fn(&Inputs, u64) -> Result<Agreed<T>, Trouble>,
) -> Fate {
    let usage = Usage::scan(m);
    let mut executed: Vec<bool> = Vec::new();
    let (mut first, mut differ) = (None, false);
    let (mut ran, mut last) = (0, String::new());
    let coverage = |list: &[bool]| list.iter().filter(|&&e| e).count() as f64 / list.len().max(1) as f64;
    for seed in 0..u64::from(seeds) {
        let (mut agreed, mut wrong) = (None, None);
        let found = search(m, &usage, seed, |inputs| match compare(inputs, seed % 5) {
            Ok(a) => {
                agreed = Some(a);
                Verdict::Fine
            }
            Err(Trouble::Wrong(s)) => {
                wrong = Some(format!("seed {seed}: {s}"));
                Verdict::Fine
            }
            Err(t) => t.verdict(),
        });
        if let Some(w) = wrong {
            return Fate::Wrong(w);
        }
        match (found, agreed) {
            (Ok(_), Some(a)) => {
                ran += 1;
                executed.resize(a.executed.len(), false);
                for (e, n) in executed.iter_mut().zip(&a.executed) {
                    *e |= n;
                }
                differ |= first.as_ref().is_some_and(|f| *f != a.output);
                first.get_or_insert(a.output);
            }
            (Err(why), _) => last = why,
            (Ok(_), None) => {}
        }
        if ran >= 3 && differ && coverage(&executed) >= 0.97 {
            break;
        }
    }
    let coverage = coverage(&executed);
    match ran {
        0 => Fate::NoInput(last),
        seeds if coverage >= 0.9 && differ => Fate::Counts { seeds, coverage },
        seeds => Fate::Thin { seeds, coverage, differ },
    }
}

/// Runs one module for one target.
pub fn judge_entry(e: &Entry, target: &'static dyn Target, seeds: u32, options: &judge::Options) -> Fate {
    judge::caught(|| one(e, target, seeds, options)).unwrap_or_else(Fate::Wrong)
}

fn one(e: &Entry, target: &'static dyn Target, seeds: u32, how: &judge::Options) -> Fate {
    let m = match e.module() {
        Ok(m) => m,
        Err(err) => return Fate::NotCompiled(err),
    };
    let made = match judge::make_on(&m, target, how) {
        Ok(made) => made,
        Err(err) => return Fate::NotCompiled(err.to_string()),
    };
    over_seeds(&m, seeds, |inputs, schedule| {
        judge::screen(&m, inputs)?;
        let a = judge::compare(&made, inputs, schedule)?;
        if a.undefined {
            return Err(Trouble::Setup("it reads what was never written".into()));
        }
        Ok(Agreed { executed: a.counts.iter().map(|&n| n > 0).collect(), output: a.output })
    })
}

/// How to compile, from the options of the command.
pub fn options(args: &[String]) -> judge::Options {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1));
    let mut how = judge::Options::default();
    match value("--level").map(String::as_str) {
        Some("0") => how.level = kempe_opt::Level::O0,
        Some("1") => how.level = kempe_opt::Level::O1,
        _ => {}
    }
    how.back.threads = value("--threads").and_then(|t| t.parse().ok());
    how.back.max_registers = value("--max-registers").and_then(|n| n.parse().ok());
    if args.iter().any(|a| a == "--no-order") {
        how.back.without_orders.parts().into_iter().for_each(|(_, out)| *out = true);
    }
    how.back.force_spill = args.iter().any(|a| a == "--force-spill");
    how
}

pub fn run(args: &[String]) -> ExitCode {
    if let Some(stage) = args.iter().position(|a| a == "--stage").map(|n| args.get(n + 1)) {
        return match stage.map(String::as_str) {
            Some(stage @ ("vertex" | "fragment" | "geometry" | "tess-control" | "tess-eval" | "all")) => {
                crate::stages::run(stage, args)
            }
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
    let how = options(args);
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
    for target in targets::asked(value("--target").as_deref()) {
        let start = std::time::Instant::now();
        let fates: Vec<Fate> =
            chosen.par_iter().map(|e| judge_entry(e, target, seeds as u32, &how)).collect();
        failed |= table(target.name(), &chosen, &fates, verbose, start.elapsed());
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
