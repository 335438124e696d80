//! How far the allocator is from the optimum on real programs: `cargo xtask optimum [--target T] [--only TEXT] [--step N]
//! [--limit N] [--generated N]`.
//!
//! Machine programs of the corpus with up to [`MOST`] instructions, as the allocator gets them, at register limits below
//! what they need. Compared are the weighted cost of stores, fills and recomputations with the least possible, and the
//! registers without memory edits with the fewest possible (`crates/ra/testing/optimum`). `--generated`: so many random programs of the
//! three stages instead, from the generator that `cargo xtask fuzz` has.

#[allow(dead_code)]
#[path = "../../crates/ra/testing/optimum/mod.rs"]
mod solver;

use crate::corpus;
use kempe_ir::generate::{Shape, generate};
use kempe_ir::{Module, Stage};
use kempe_mir::Mir;
use kempe_opt::Level;
use kempe_ra::Program;
use kempe_v3d::compile::{self, Observer};
use kempe_v3d::instr::Version;
use kempe_v3d::mops::MInst;
use kempe_v3d::regs;
use rayon::prelude::*;
use solver::compare::{Plan, Report};
use solver::spill::{Between, Effort};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// Larger programs are left out (instructions).
const MOST: usize = 60;

/// Larger modules give larger programs (bytes).
const LARGEST: u64 = 12_000;

/// Threads for which the programs are made.
const THREADS: u32 = 4;

/// Where a program comes from.
enum Origin {
    Corpus(corpus::Entry),
    Seed(u64),
}

#[derive(Default)]
struct Catch(Option<Program>);

impl Observer for Catch {
    fn selected(&mut self, threads: u32, mir: &Mir<MInst>) {
        if threads == THREADS && self.0.is_none() {
            self.0 = Some(mir.program.clone());
        }
    }
}

/// A small module with straight code, selections and, one in four, a loop.
fn generated(seed: u64) -> Module {
    let stage = [Stage::Compute, Stage::Vertex, Stage::Fragment][(seed % 3) as usize];
    let shape = Shape {
        operations: 10 + (seed % 24) as u32,
        depth: 1,
        live: 4 + (seed % 20) as u32,
        narrow_and_wide: false,
        approximate: seed.is_multiple_of(2),
        shared: false,
        arrays: false,
        atomics: false,
        early_return: false,
        divergent_loop: seed.is_multiple_of(4),
        ..Shape::for_stage(seed, stage)
    };
    generate(seed, &shape)
}

/// The machine program of a module, if it is small.
fn program(mut m: Module, version: Version) -> Option<Program> {
    let mut choices = kempe_opt::Options::new(Level::O2);
    choices.vector_within_16 = version == Version::V42;
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    let mut catch = Catch::default();
    // (What becomes of it later does not matter here.)
    let _ = compile::compile(m, version, &compile::Options::default(), &mut catch);
    catch.0.filter(|program| program.insts.len() <= MOST)
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str| value(name).and_then(|text| text.parse::<usize>().ok());
    let (only, step) = (value("--only"), number("--step").unwrap_or(1).max(1));
    let entries = match corpus::entries() {
        Ok(entries) => entries,
        Err(e) if number("--generated").is_none() => {
            println!("optimum: skipped: {e}");
            return ExitCode::SUCCESS;
        }
        Err(_) => Vec::new(),
    };
    let small = |entry: &&corpus::Entry| std::fs::metadata(&entry.path).is_ok_and(|m| m.len() <= LARGEST);
    let mut chosen: Vec<(String, Origin)> = entries
        .iter()
        .filter(|entry| only.as_ref().is_none_or(|text| entry.file.contains(text.as_str())))
        .filter(small)
        .step_by(step)
        .map(|entry| (entry.file.clone(), Origin::Corpus(entry.clone())))
        .collect();
    if let Some(count) = number("--generated") {
        chosen = (0..count as u64).map(|seed| (format!("seed {seed}"), Origin::Seed(seed))).collect();
    }
    let effort = Effort { nodes: 20_000, time: Duration::from_secs(20), size: 8000 };
    let limit = number("--limit").map(|limit| limit as u32);
    let mut failed = false;
    for version in [Version::V42, Version::V71] {
        let name = if version == Version::V42 { "v3d42" } else { "v3d71" };
        if value("--target").is_some_and(|target| target != name) {
            continue;
        }
        let (file, costs) = (regs::register_file(version, THREADS), regs::costs());
        let plan = Plan { file: &file, costs: &costs, between: Between::Exact, effort, most: 64 };
        // Equal programs count once.
        let seen: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let study = |(name, origin): &(String, Origin)| {
            let mut report = Report::default();
            let module = match origin {
                Origin::Corpus(entry) => entry.module().ok(),
                Origin::Seed(seed) => Some(generated(*seed)),
            };
            if let Some(program) = module.and_then(|m| program(m, version))
                && seen.lock().is_ok_and(|mut seen| seen.insert(format!("{program:?}")))
            {
                report.add(&plan, name, &program, limit);
            }
            report
        };
        let report = chosen.par_iter().map(study).reduce(Report::default, Report::join);
        print!("{}", report.text(name));
        failed |= !report.wrong.is_empty();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
