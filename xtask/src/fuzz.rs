//! Random programs down the whole road:
//! `cargo xtask fuzz [--count N] [--seed S] [--one SEED] [--target T] [--verify] [--threads N] [--no-reduce]
//! [--stage vertex|fragment]`.
//!
//! Every program is made for both targets at the natural register limit and at a random low one, at random levels of
//! optimisation and thread counts; the simulator must equal the interpreter, and nothing on the way may object
//! (`--verify`: checker B reads every result too). What fails is made small ([`kempe_ir::reduce`]) and written to
//! `target/fuzz` in the text form, with what was done to it in the first lines.
//!
//! Graphics stages (`--stage`) are judged in their source form against the optimised forms too, and vertex programs as both of
//! their variants ([`crate::stages`]).

use crate::judge;
use crate::stages;
use crate::targets;
use kempe::Target;
use kempe_ir::exec::Inputs;
use kempe_ir::generate::{self, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_ir::{Module, Stage, reduce, text};
use kempe_opt::Level;
use kempe_v3d::instr::Version;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most failures that are made small.
const MOST_REDUCED: usize = 8;
/// Most failures that are listed.
const MOST_LISTED: usize = 40;
/// Seeds between two looks at the clock.
const CHUNK: u64 = 64;
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// One way to make and run a program.
#[derive(Clone)]
struct Case {
    seed: u64,
    target: &'static dyn Target,
    options: judge::Options,
    schedule: u64,
    /// Fewer registers than one instruction needs is an answer, not a defect.
    low_limit: bool,
    stage: Stage,
}

struct Failure {
    case: Case,
    message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { seed, target, options, schedule, .. } = &self.case;
        write!(f, "seed {seed} {} {options:?} schedule {schedule}: {}", target.name(), self.message)
    }
}

/// The program of a seed, its inputs, and what is done with it.
fn cases(
    seed: u64,
    targets: &[&'static dyn Target],
    verify: bool,
    stage: Stage,
) -> (Module, Inputs, Vec<Case>) {
    let mut r = Random(seed ^ 0x9999);
    let (m, inputs) = match stage {
        Stage::Compute => {
            let shape = Shape::from_seed(seed);
            let inputs = generate::inputs(seed, 1 + r.below(3) as u32, &shape);
            (generate(seed, &shape), inputs)
        }
        _ => {
            let shape = Shape::for_stage(seed, stage);
            let m = generate(seed, &shape);
            let inputs = generate::stage_inputs(seed, &m, &shape);
            (m, inputs)
        }
    };
    let mut list = Vec::new();
    for &target in targets {
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
            list.push(Case { seed, target, options, schedule: r.below(4), low_limit: round == 1, stage });
        }
    }
    (m, inputs, list)
}

impl Case {
    fn run_stage(&self, m: &Module, inputs: &Inputs) -> Result<(), String> {
        let against = |other: &stages::Other| {
            stages::compare(m, other, inputs, self.schedule).map(|_| ()).map_err(|t| t.to_string())
        };
        against(&stages::forms(m, &[self.options.level])?)?;
        let mut made = Vec::new();
        let version = Version::ALL.into_iter().find(|v| v.name() == self.target.name());
        let version = version.ok_or("setup: the target has no such stage")?;
        for &variant in stages::Variant::of(m.stage) {
            let one = stages::make(m, version, variant, &self.options);
            made.push((variant, one.map_err(|e| format!("not compiled: {e}"))?));
        }
        against(&stages::Other::Code(made))
    }

    /// What goes wrong, as text that begins with the kind.
    fn run(&self, m: &Module, inputs: &Inputs) -> Result<(), String> {
        let run = || -> Result<(), String> {
            if self.stage != Stage::Compute {
                return self.run_stage(m, inputs);
            }
            let made = judge::make_on(m, self.target, &self.options)
                .map_err(|e| if e.internal { format!("bug: {e}") } else { format!("not compiled: {e}") })?;
            judge::compare(&made, inputs, self.schedule).map(|_| ()).map_err(|t| t.to_string())
        };
        let result = judge::caught(run).unwrap_or_else(Err);
        match result {
            Err(e) if self.low_limit && e.starts_with("not compiled: out of registers") => Ok(()),
            // Rule 55: asked for 4 threads, where only 2 will do.
            Err(e)
                if self.options.back.threads == Some(4)
                    && e.starts_with("not compiled: ")
                    && e.contains("needs 2 threads") =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

/// What two messages about the same defect have in common: the first words, without numbers.
fn kind(message: &str) -> String {
    let words = message.split_whitespace().filter(|w| !w.contains(|c: char| c.is_ascii_digit()));
    words.take(if message.starts_with("wrong") { 1 } else { 7 }).collect::<Vec<_>>().join(" ")
}

/// Makes a failing program small. The smaller ones must still be good programs: inside their buffers, without races,
/// with nothing undefined.
fn shrink(
    m: &Module,
    inputs: &Inputs,
    message: &str,
    run: &mut dyn FnMut(&Module) -> Result<(), String>,
) -> reduce::Reduced {
    let wanted = kind(message);
    // The original may break the rules of good programs itself: then the generator is what failed.
    let steps = judge::screen_within(m, inputs, judge::STEPS).ok();
    reduce::reduce(m, &reduce::Limits::default(), &mut |m| {
        // A loop that lost its end is no smaller program.
        let good = |steps: u64| judge::screen_within(m, inputs, 2 * steps + 1000).is_ok();
        steps.is_none_or(good) && run(m).is_err_and(|e| kind(&e) == wanted)
    })
}

/// Writes a failure in its small form.
fn write(
    failure: &Failure,
    targets: &[&'static dyn Target],
    verify: bool,
    folder: &Path,
) -> std::io::Result<PathBuf> {
    let case = &failure.case;
    let (m, inputs, _) = cases(case.seed, targets, verify, case.stage);
    let reduced = shrink(&m, &inputs, &failure.message, &mut |m| case.run(m, &inputs));
    let message = case.run(&reduced.module, &inputs).err().unwrap_or_default();
    std::fs::create_dir_all(folder)?;
    let kind = match case.stage {
        Stage::Compute => case.target.name(),
        Stage::Fragment => "fragment",
        // Programs of other stages are not generated.
        _ => "vertex",
    };
    let path = folder.join(format!("seed-{}-{kind}.kir", case.seed));
    let first = |s: &str| s.lines().next().unwrap_or_default().to_owned();
    let text = format!(
        "; {}\n; reduced in {} steps{}: {}\n; groups {:?}\n{}",
        first(&failure.to_string()),
        reduced.steps,
        if reduced.complete { "" } else { ", not to the end" },
        first(&message),
        inputs.groups,
        text::print(&reduced.module)
    );
    std::fs::write(&path, text)?;
    Ok(path)
}

struct Args {
    count: u64,
    first: u64,
    threads: usize,
    targets: Vec<&'static dyn Target>,
    verify: bool,
    reduce: bool,
    stage: Stage,
}

fn arguments(args: &[String]) -> Option<Args> {
    let mut a = Args {
        count: 1000,
        first: 1,
        threads: 0,
        targets: targets::usual(),
        verify: false,
        reduce: true,
        stage: Stage::Compute,
    };
    let mut it = args.iter();
    while let Some(name) = it.next() {
        match name.as_str() {
            "--verify" => a.verify = true,
            "--no-reduce" => a.reduce = false,
            "--count" => a.count = it.next()?.parse().ok()?,
            "--seed" => a.first = it.next()?.parse().ok()?,
            "--threads" => a.threads = it.next()?.parse().ok()?,
            "--stage" => {
                a.stage = match it.next()?.as_str() {
                    "vertex" => Stage::Vertex,
                    "fragment" => Stage::Fragment,
                    "compute" => Stage::Compute,
                    _ => return None,
                }
            }
            "--target" => {
                let name = it.next()?;
                a.targets = targets::asked(Some(name));
            }
            "--one" => {
                a.first = it.next()?.parse().ok()?;
                a.count = 1;
            }
            _ => return None,
        }
    }
    (!a.targets.is_empty()).then_some(a)
}

pub fn run(args: &[String]) -> ExitCode {
    let Some(a) = arguments(args) else {
        eprintln!(
            "usage: cargo xtask fuzz [--count N] [--seed S] [--one SEED] [--target T] [--verify] [--threads N] [--no-reduce] [--stage vertex|fragment]"
        );
        return ExitCode::from(2);
    };
    if let Err(e) = rayon::ThreadPoolBuilder::new().num_threads(a.threads).build_global() {
        eprintln!("threads cannot be started: {e}");
    }
    let start = Instant::now();
    // Panics are counted, not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let end = a.first.saturating_add(a.count);
    let (runs, mut done) = (AtomicU64::new(0), a.first);
    let mut failures: Vec<Failure> = Vec::new();
    let mut reported = Instant::now();
    while done < end {
        let next = end.min(done.saturating_add(CHUNK));
        let new: Vec<Failure> = (done..next)
            .into_par_iter()
            .flat_map_iter(|seed| {
                let (m, inputs, list) = cases(seed, &a.targets, a.verify, a.stage);
                runs.fetch_add(list.len() as u64, Ordering::Relaxed);
                list.into_iter()
                    .filter_map(|case| {
                        let message = case.run(&m, &inputs).err()?;
                        Some(Failure { case, message })
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        for f in &new {
            if failures.len() < MOST_LISTED {
                println!("{f}");
            }
            if a.reduce && failures.len() < MOST_REDUCED {
                match write(f, &a.targets, a.verify, Path::new("target/fuzz")) {
                    Ok(path) => println!("  reduced: {}", path.display()),
                    Err(e) => println!("  not written: {e}"),
                }
            }
        }
        failures.extend(new);
        done = next;
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let rate = (done - a.first) as f64 / start.elapsed().as_secs_f64();
            eprintln!("fuzz: up to seed {done}, {} failures, {rate:.1} seeds/s", failures.len());
        }
    }
    let time = start.elapsed().as_secs_f64();
    println!(
        "fuzz: seeds {}..{end}, {} runs, {} failures, {time:.1} s, {:.1} seeds/s",
        a.first,
        runs.into_inner(),
        failures.len(),
        a.count as f64 / time.max(1e-9)
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ir::Op;

    fn has(m: &Module, op: Op) -> bool {
        m.func.layout.iter().flat_map(|&b| &m.func.blocks[b].insts).any(|&i| m.func.insts[i].op == op)
    }

    #[test]
    fn random_programs_pass() {
        for seed in 0..40 {
            let (m, inputs, list) = cases(seed, &Version::ALL, false, Stage::Compute);
            for case in list {
                if let Err(message) = case.run(&m, &inputs) {
                    panic!("{}\n{}", Failure { case, message }, text::print(&m));
                }
            }
        }
    }

    #[test]
    fn random_stages_pass() {
        for (seed, stage) in (0..40).flat_map(|s| [(s, Stage::Vertex), (s, Stage::Fragment)]) {
            let (m, inputs, list) = cases(seed, &Version::ALL, false, stage);
            for case in list {
                if let Err(message) = case.run(&m, &inputs) {
                    panic!("{stage:?} {}\n{}", Failure { case, message }, text::print(&m));
                }
            }
        }
    }

    /// A made-up defect: code with a signed maximum and a barrier computes something wrong.
    #[test]
    fn a_failure_becomes_small() {
        let mut reduced = 0;
        for seed in 0..200 {
            let (m, inputs, list) = cases(seed, &targets::usual()[1..], false, Stage::Compute);
            let case = &list[0];
            let mut broken = |m: &Module| -> Result<(), String> {
                let made = judge::make_on(m, case.target, &case.options).map_err(|e| format!("bug: {e}"))?;
                let defect = has(&made.lowered, Op::Smax) && has(&made.lowered, Op::Barrier);
                if defect { Err(format!("wrong: byte {}", made.artifact.code.len())) } else { Ok(()) }
            };
            let Err(message) = broken(&m) else { continue };
            let small = shrink(&m, &inputs, &message, &mut broken);
            let printed = text::print(&small.module);
            let again = text::parse(&printed).unwrap();
            assert!(broken(&again).is_err(), "seed {seed}\n{printed}");
            assert!(judge::screen(&again, &inputs).is_ok(), "seed {seed}\n{printed}");
            let insts = again.func.layout.iter().map(|&b| again.func.blocks[b].insts.len()).sum::<usize>();
            assert!(insts <= 20, "seed {seed}: {insts} instructions\n{printed}");
            reduced += 1;
            if reduced == 5 {
                break;
            }
        }
        assert_eq!(reduced, 5);
    }

    /// What long runs found and the reducer made small, in every configuration.
    #[test]
    fn found_programs_pass() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 3);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let m = text::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let shape = Shape { workgroup: m.workgroup_items(), ..Shape::from_seed(0) };
            for seed in 0..12 {
                let inputs = match m.stage {
                    Stage::Compute => generate::inputs(seed, 1 + seed as u32 % 3, &shape),
                    stage => generate::stage_inputs(seed, &m, &Shape::for_stage(seed, stage)),
                };
                for target in targets::usual() {
                    for level in [Level::O0, Level::O2] {
                        let mut options = judge::Options { level, ..judge::Options::default() };
                        options.back.threads = [None, Some(2), Some(4)][seed as usize % 3];
                        options.back.force_spill = seed % 4 == 3;
                        let case = Case {
                            seed,
                            target,
                            options,
                            schedule: seed % 4,
                            low_limit: false,
                            stage: m.stage,
                        };
                        if let Err(message) = case.run(&m, &inputs) {
                            panic!("{}: {}", file.display(), Failure { case, message });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn kinds_of_messages() {
        assert_eq!(kind("wrong: buffer 0:1 differs at byte 4"), kind("wrong: word 7"));
        assert_eq!(kind("bug: word 3 breaks rule 4"), kind("bug: word 9 breaks rule 11"));
        assert_ne!(kind("bug: the code breaks"), kind("bug: the code does not decode"));
    }
}
