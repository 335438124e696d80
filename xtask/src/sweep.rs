//! Every program of the corpus at many register limits: `cargo xtask sweep [--engine best|scan|graph|both] [--target T]
//! [--only TEXT] [--from N] [--count N] [--chosen N] [--quick] [--no-verify] [--no-run]`.
//!
//! * Every module, vertex shaders as both of their programs, for both targets: without a limit, at 64, 48, 32, 24 and 16 registers, at
//!   the smallest limit that works (found by bisection), one and two above it, and one below.
//! * 300 modules (`--chosen`) at every limit from what they want at once down, and on the simulator at three of these (none, the
//!   middle, the smallest) against the interpreter. The choice ([`choose`]) looks at names only.
//!
//! Every answer is code that checker A, the validator and checker B agree to, or a refusal that says what does not fit. Anything else
//! is a failure: printed, the smallest program of each sort with the command that shows it. What lies under the smallest limit is
//! refused in no more time than a compile takes, and nothing is refused above it. `--from` and `--count` take a slice of the modules
//! in the order of their names (what is chosen does not depend on it), so that a long run can be made in pieces.

mod failure;
mod program;
mod run;
mod table;

use crate::corpus::{self, Entry};
use crate::judge;
use crate::simulate::Fate;
use crate::stages::Variant;
use failure::{Failure, Kind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kempe_ra::Engine;
use kempe_v3d::instr::Version;
use program::{Program, Swept, Wanted};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Modules at every limit and on the simulator.
const CHOSEN: usize = 300;
/// The same for `--quick`, which takes no others.
const QUICK: usize = 12;

/// What is swept.
struct Plan {
    engines: Vec<Engine>,
    targets: Vec<Version>,
    /// With checker B.
    verify: bool,
    /// On the simulator too.
    run: bool,
}

/// What became of one module.
#[derive(Default)]
struct Outcome {
    programs: Vec<(Engine, Version, Swept)>,
    fates: Vec<(Engine, Version, Fate)>,
    failures: Vec<Failure>,
    /// Why there is no program: once for each that there could be.
    unsupported: Vec<String>,
}

/// FNV-1a (Fowler, Noll & Vo): an order of names that has nothing to do with what they name.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// Files in the order in which they are chosen: collections and stages take turns, alphabetically, each giving its modules in the
/// order of their names' hashes until it has none left.
fn ranked(entries: &[Entry]) -> Vec<&Entry> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for e in entries {
        groups.entry((&e.collection, &e.stage)).or_default().push(e);
    }
    let mut ranks: Vec<(usize, &Entry)> = Vec::new();
    for list in groups.values_mut() {
        list.sort_by_key(|e| (hash(&e.file), &e.file));
        ranks.extend(list.iter().copied().enumerate());
    }
    // Stable: within a turn the groups keep their order.
    ranks.sort_by_key(|(turn, _)| *turn);
    ranks.into_iter().map(|(_, e)| e).collect()
}

/// The first `count` files of that order which compile for all targets without a limit (of what does not, nothing can be swept).
fn choose(entries: &[Entry], plan: &Plan, count: usize) -> BTreeSet<String> {
    let quick =
        Plan { engines: vec![Engine::Scan], targets: plan.targets.clone(), verify: false, run: false };
    let compiles = |e: &Entry| {
        let Ok(modules) = judge::caught(|| e.modules()).and_then(|m| m) else { return false };
        let mut all = modules.into_iter().flat_map(|m| quick.programs(e, &Arc::new(m)));
        all.all(|(_, p)| p.is_ok_and(|p| p.compiles()))
    };
    let mut chosen = BTreeSet::new();
    for group in ranked(entries).chunks(count.clamp(8, 64)) {
        let good: Vec<bool> = group.par_iter().map(|e| compiles(e)).collect();
        let good = group.iter().zip(good).filter(|(_, good)| *good).map(|(e, _)| e.file.clone());
        chosen.extend(good.take(count - chosen.len()));
        if chosen.len() == count {
            break;
        }
    }
    chosen
}

impl Plan {
    /// All programs of a module, by engine and target.
    fn programs(
        &self,
        e: &Entry,
        m: &Arc<kempe_ir::Module>,
    ) -> Vec<((Engine, Version), Result<Program, Failure>)> {
        let mut list = Vec::new();
        for &engine in &self.engines {
            for &version in &self.targets {
                for &variant in Variant::of(m.stage) {
                    let program = Program::new(e, m, version, variant, engine, self.verify);
                    list.push(((engine, version), program));
                }
            }
        }
        list
    }

    fn module(&self, e: &Entry, m: kempe_ir::Module, chosen: bool, out: &mut Outcome) {
        let m = Arc::new(m);
        let wanted = Wanted { every: chosen, code: chosen && self.run };
        let mut groups: BTreeMap<(&str, Version), Vec<(Program, Swept)>> = BTreeMap::new();
        for ((engine, version), program) in self.programs(e, &m) {
            match program.and_then(|p| p.sweep(wanted).map(|s| (p, s))) {
                Ok(pair) => groups.entry((program::engine_name(engine), version)).or_default().push(pair),
                Err(f) if matches!(f.kind, Kind::Unsupported | Kind::Refused) => {
                    out.unsupported.push(f.message);
                }
                Err(f) => out.failures.push(f),
            }
        }
        for ((_, version), mut pairs) in groups {
            let Some(engine) = pairs.first().map(|(p, _)| p.engine) else { continue };
            if wanted.code {
                match run::run(e, &m, &pairs) {
                    Ok(fate) => out.fates.push((engine, version, fate)),
                    Err(f) => out.failures.push(f),
                }
            }
            for (_, swept) in &mut pairs {
                out.failures.append(&mut swept.failures);
                swept.code.clear();
            }
            out.programs.extend(pairs.into_iter().map(|(_, swept)| (engine, version, swept)));
        }
    }

    fn entry(&self, e: &Entry, chosen: bool) -> Outcome {
        let mut out = Outcome::default();
        match judge::caught(|| e.modules()) {
            Ok(Ok(modules)) => {
                for m in modules {
                    self.module(e, m, chosen, &mut out);
                }
            }
            Ok(Err(why)) => out.unsupported.push(why),
            Err(message) => out.failures.push(Failure {
                kind: Kind::Panic,
                message,
                name: e.file.clone(),
                command: format!("kempe compile {} --target v3d42", e.path.display()),
                size: usize::MAX,
            }),
        }
        out
    }
}

/// Progress on stderr, if that is a terminal.
fn bar(modules: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(modules as u64), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len}  {elapsed} gone, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// Engines by the name that the option gives; `None` if there are none of that name.
fn engines(name: &str) -> Option<Vec<Engine>> {
    Some(match name {
        "best" => vec![Engine::Best],
        "scan" => vec![Engine::Scan],
        "graph" => vec![Engine::Graph],
        "both" => vec![Engine::Scan, Engine::Graph],
        _ => return None,
    })
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str| value(name).and_then(|v| v.parse::<usize>().ok());
    let flag = |name: &str| args.iter().any(|a| a == name);
    let Some(engines) = engines(value("--engine").as_deref().unwrap_or("both")) else {
        eprintln!("sweep: --engine scan|graph|both");
        return ExitCode::from(2);
    };
    let wanted = |v: &Version| value("--target").is_none_or(|t| t == v.name());
    let targets = Version::ALL.into_iter().filter(wanted).collect();
    let plan = Plan { engines, targets, verify: !flag("--no-verify"), run: !flag("--no-run") };
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            println!("sweep: skipped: {e}");
            return ExitCode::SUCCESS;
        }
    };
    let start = Instant::now();
    let only = value("--only");
    let entries: Vec<Entry> =
        entries.into_iter().filter(|e| only.as_ref().is_none_or(|o| e.file.contains(o.as_str()))).collect();
    let quick = flag("--quick");
    let chosen = choose(&entries, &plan, number("--chosen").unwrap_or(if quick { QUICK } else { CHOSEN }));
    let entries: Vec<Entry> = entries
        .into_iter()
        .filter(|e| !quick || chosen.contains(&e.file))
        .skip(number("--from").unwrap_or(0))
        .take(number("--count").unwrap_or(usize::MAX))
        .collect();
    let failures = sweep(&plan, &entries, &chosen, &bar(entries.len()));
    println!("sweep: {} failures, {:.1} s", failures.len(), start.elapsed().as_secs_f64());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sweeps modules and prints what came of it; gives the failures.
fn sweep(plan: &Plan, entries: &[Entry], chosen: &BTreeSet<String>, bar: &ProgressBar) -> Vec<Failure> {
    let one = |e: &Entry| {
        let outcome = plan.entry(e, chosen.contains(&e.file));
        bar.inc(1);
        outcome
    };
    let outcomes: Vec<Outcome> = entries.par_iter().map(one).collect();
    bar.finish_and_clear();
    let here = entries.iter().filter(|e| chosen.contains(&e.file)).count();
    println!("{} modules, {here} of them at every limit", entries.len());
    table::print(plan, &outcomes);
    let failures: Vec<Failure> = outcomes.into_iter().flat_map(|o| o.failures).collect();
    failure::tell(&failures);
    failures
}

#[cfg(test)]
#[path = "sweep/tests.rs"]
mod tests;
