//! Can the judges be fooled? `cargo xtask mutate [--count N] [--seed S] [--each N] [--target T] [-v]`.
//!
//! Random programs are compiled; in each correct result one thing is changed: a place or an edit of the allocation (the
//! rest of the road then runs again), an encoded field, the order of two neighbouring words, a word of the uniform
//! stream. Of the mutants that change what the simulator computes (or stop it), checker A, the validator or checker B
//! must object without the simulator. Those that do not are printed.

use crate::{fuzz, judge};
use kempe::run::{RunOptions, run_artifact};
use kempe_ir::Module;
use kempe_ir::exec::Inputs;
use kempe_ir::generate::{Shape, generate};
use kempe_ir::inputs::Random;
use kempe_mir::{Artifact, Mir, UniformSource};
use kempe_opt::Level;
use kempe_ra::{Allocation, Edit, Point, Slot, Unit};
use kempe_v3d::checkb::{self, View};
use kempe_v3d::compile::{self, Observer};
use kempe_v3d::decode::decode;
use kempe_v3d::finish::{self, Finished, Frame};
use kempe_v3d::instr::Version;
use kempe_v3d::mops::MInst;
use kempe_v3d::regs;
use kempe_v3d::validate::{self, Class, ProgramFacts};
use rayon::prelude::*;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Place,
    Edit,
    Field,
    Slot,
    Uniform,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Place, Kind::Edit, Kind::Field, Kind::Slot, Kind::Uniform];
}

/// Who objected first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judge {
    CheckerA,
    /// The changed allocation gives no code.
    Finish,
    Validator,
    CheckerB,
    Nobody,
}

/// Counts of one kind.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub made: u32,
    /// Of those, the simulator computes something else or stops.
    pub changed: u32,
    /// Of the changed ones, by judge: checker A, expansion, validator, checker B.
    pub caught: [u32; 4],
    pub escaped: u32,
    /// Unchanged as far as the runs show, and checker B objects all the same: harmless or not seen by the inputs.
    pub suspected: u32,
}

#[derive(Default)]
pub struct Tally {
    pub counts: [Counts; 5],
    pub notes: Vec<String>,
}

impl Tally {
    fn add(mut self, other: Tally) -> Tally {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            a.made += b.made;
            a.changed += b.changed;
            a.escaped += b.escaped;
            a.suspected += b.suspected;
            for (x, y) in a.caught.iter_mut().zip(b.caught) {
                *x += y;
            }
        }
        self.notes.extend(other.notes);
        self
    }
}

/// Everything known of one attempt.
struct Attempt {
    mir: Mir<MInst>,
    allocation: Allocation,
    frame: Frame,
    code: Finished,
}

#[derive(Default)]
struct Catch(Vec<Attempt>);

impl Observer for Catch {
    fn finished(&mut self, mir: &Mir<MInst>, allocation: &Allocation, frame: &Frame, code: &Finished) {
        self.0.push(Attempt {
            mir: mir.clone(),
            allocation: allocation.clone(),
            frame: *frame,
            code: code.clone(),
        });
    }
}

/// A correct result with what it computes.
struct Subject {
    version: Version,
    attempt: Attempt,
    artifact: Artifact,
    runs: Vec<(Inputs, Vec<Vec<u8>>)>,
    steps: u64,
}

fn subject(m: &Module, version: Version, options: &judge::Options, inputs: &[Inputs]) -> Option<Subject> {
    let mut m = m.clone();
    let mut choices = kempe_opt::Options::new(options.level);
    choices.vector_within_16 = version == Version::V42;
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    let mut catch = Catch::default();
    let artifact = compile::compile(m, version, &options.back, &mut catch).ok()?;
    let attempt = catch.0.into_iter().find(|a| a.frame.threads == artifact.threads)?;
    let mut steps = 0;
    let mut runs = Vec::new();
    for i in inputs {
        let how = RunOptions { step_limit: 5_000_000, schedule: RunOptions::SEQUENTIAL };
        let report = run_artifact(&artifact, i, &how).ok()?;
        steps = steps.max(report.instructions);
        runs.push((i.clone(), report.buffers.into_iter().map(|b| b.bytes).collect()));
    }
    Some(Subject { version, attempt, artifact, runs, steps })
}

/// Another value below `n`.
fn other(r: &mut Random, n: u64, not: u64) -> Option<u64> {
    let k = if n > 1 { r.below(n - 1) } else { return None };
    Some(if k >= not { k + 1 } else { k })
}

impl Subject {
    /// The allocation with one thing changed.
    fn change_allocation(&self, kind: Kind, r: &mut Random) -> Option<(Allocation, String)> {
        let mut a = self.attempt.allocation.clone();
        let file = regs::register_file(self.version, self.attempt.frame.threads);
        let unit = |r: &mut Random, not: Unit| {
            other(r, file.units.len() as u64, not.0.into()).map(|u| Unit(u as u16))
        };
        if kind == Kind::Place {
            let n = r.below(a.places.len().max(1) as u64) as usize;
            let old = *a.places.get(n)?;
            a.places[n] = unit(r, old)?;
            let what = format!(
                "operand {n} ({:?}): {old:?} to {:?}",
                self.attempt.mir.program.operands[n].vreg, a.places[n]
            );
            return Some((a, what));
        }
        let n = r.below(a.edits.len() as u64 + u64::from(a.edits.is_empty())) as usize;
        let (point, edit) = *a.edits.get(n)?;
        let changed = match (r.below(3), edit) {
            (0, _) => None,
            (1, Edit::Copy { from, to }) => Some(Edit::Copy { from: unit(r, from)?, to }),
            (_, Edit::Copy { from, to }) => Some(Edit::Copy { from, to: unit(r, to)? }),
            (1, Edit::Swap { a, b }) => Some(Edit::Copy { from: a, to: b }),
            (_, Edit::Swap { a, b }) => Some(Edit::Swap { a: unit(r, a)?, b }),
            (1, Edit::Spill { from, slot }) => {
                Some(Edit::Spill { from, slot: Slot(other(r, a.slots.into(), slot.0.into())? as u32) })
            }
            (_, Edit::Spill { from, slot }) => Some(Edit::Spill { from: unit(r, from)?, slot }),
            (1, Edit::Fill { slot, to }) => {
                Some(Edit::Fill { slot: Slot(other(r, a.slots.into(), slot.0.into())? as u32), to })
            }
            (_, Edit::Fill { slot, to }) => Some(Edit::Fill { slot, to: unit(r, to)? }),
            (1, Edit::Recompute { recipe, to }) => {
                let count = self.attempt.mir.recipes.len() as u64;
                Some(Edit::Recompute {
                    recipe: kempe_ra::Recipe(other(r, count, recipe.0.into())? as u32),
                    to,
                })
            }
            (_, Edit::Recompute { recipe, to }) => Some(Edit::Recompute { recipe, to: unit(r, to)? }),
        };
        let at = match point {
            Point::Before(i) | Point::After(i) => i.0,
        };
        match changed {
            Some(e) => a.edits[n].1 = e,
            None => {
                a.edits.remove(n);
            }
        }
        Some((a, format!("edit {edit:?} at {at} to {changed:?}")))
    }

    /// The words or the stream with one thing changed.
    fn change_code(&self, kind: Kind, r: &mut Random) -> Option<(Finished, String)> {
        let mut c = self.attempt.code.clone();
        match kind {
            Kind::Field => {
                let n = r.below(c.words.len() as u64) as usize;
                let old = c.words[n];
                let bit = r.below(64);
                c.words[n] ^= 1 << bit;
                // A bit that carries nothing makes no other instruction.
                if decode(self.version, old) == decode(self.version, c.words[n]) {
                    return None;
                }
                Some((c, format!("bit {bit} of word {n}")))
            }
            Kind::Slot => {
                let n = r.below((c.words.len() as u64).checked_sub(1)?) as usize;
                if c.words[n] == c.words[n + 1] {
                    return None;
                }
                c.words.swap(n, n + 1);
                Some((c, format!("words {n} and {}", n + 1)))
            }
            _ => {
                let n = r.below(c.uniforms.len() as u64 + u64::from(c.uniforms.is_empty())) as usize;
                let old = *c.uniforms.get(n)?;
                c.uniforms[n] = match (r.below(3), old) {
                    (0, _) => *c.uniforms.get(n + 1)?,
                    (1, UniformSource::Const(w)) => UniformSource::Const(w.wrapping_add(4)),
                    (_, UniformSource::Const(w)) => UniformSource::Const(w ^ 1 << r.below(32)),
                    (_, UniformSource::Word(w, k)) => UniformSource::Word(w, k.wrapping_add(4)),
                };
                if c.uniforms[n] == old {
                    return None;
                }
                let what = format!("uniform {n}: {old:?} to {:?}", c.uniforms[n]);
                Some((c, what))
            }
        }
    }

    /// Whether the simulator notices.
    fn differs(&self, code: &Finished) -> bool {
        let mut artifact = self.artifact.clone();
        artifact.code = code.words.clone();
        artifact.uniforms = code.uniforms.clone();
        artifact.single_section = code.single_section;
        let how = RunOptions { step_limit: 2 * self.steps + 10_000, schedule: RunOptions::SEQUENTIAL };
        self.runs.iter().any(|(inputs, want)| match run_artifact(&artifact, inputs, &how) {
            Ok(report) => report.buffers.iter().map(|b| &b.bytes).ne(want.iter()),
            Err(_) => true,
        })
    }

    fn objection(&self, code: &Finished, allocation: &Allocation) -> (Judge, String) {
        let threads = self.attempt.frame.threads;
        let facts = ProgramFacts { single_segment: code.single_section, ..ProgramFacts::compute(threads) };
        if let Some(v) =
            validate::validate(self.version, &code.words, &facts).into_iter().find(|v| v.class == Class::Hw)
        {
            return (Judge::Validator, v.to_string());
        }
        let view = View::new(code, allocation.slots);
        match checkb::check(&self.attempt.mir, &view, self.version, threads, self.attempt.frame.private_bytes)
        {
            Err(e) => (Judge::CheckerB, e.to_string()),
            Ok(()) => (Judge::Nobody, String::new()),
        }
    }

    fn mutant(&self, kind: Kind, r: &mut Random) -> Option<(Judge, bool, String)> {
        if !matches!(kind, Kind::Place | Kind::Edit) {
            let (code, what) = self.change_code(kind, r)?;
            let (judge, why) = self.objection(&code, &self.attempt.allocation);
            return Some((judge, self.differs(&code), format!("{what}: {why}")));
        }
        let (allocation, what) = self.change_allocation(kind, r)?;
        let threads = self.attempt.frame.threads;
        let loc = |u: Unit| regs::unit_loc(threads, u);
        let made = finish::finish(&self.attempt.frame, &self.attempt.mir, &allocation, &loc);
        let file = regs::register_file(self.version, threads);
        let a = kempe_ra::check(&file, &self.attempt.mir.program, &allocation);
        let Ok(code) = made else { return Some((Judge::Finish, true, what)) };
        if code.words == self.attempt.code.words && code.uniforms == self.attempt.code.uniforms {
            return None;
        }
        let changed = self.differs(&code);
        let (b, why) = self.objection(&code, &allocation);
        // Checker B is tried in any case, on its own: what A finds first it should find too.
        let judge = if a.is_err() { Judge::CheckerA } else { b };
        let alone = if b == Judge::Nobody && a.is_err() && changed { " (checker B alone: no)" } else { "" };
        Some((judge, changed, format!("{what}: {why}{alone}")))
    }
}

/// All mutants of one seed.
pub fn one(seed: u64, targets: &[Version], each: u32, verbose: bool) -> Tally {
    let shape = Shape::from_seed(seed);
    let m = generate(seed, &shape);
    let inputs = [fuzz::inputs(seed, &shape), fuzz::inputs(seed ^ 0x5555, &shape)];
    let mut r = Random(seed ^ 0x7777);
    let mut tally = Tally::default();
    for &version in targets {
        let mut options = judge::Options::default();
        options.level = [Level::O0, Level::O2, Level::O2][r.below(3) as usize];
        options.back.threads = [None, Some(2), Some(4)][r.below(3) as usize];
        options.back.max_registers = [None, Some(12 + r.below(12) as u32)][r.below(2) as usize];
        let Some(s) = subject(&m, version, &options, &inputs) else { continue };
        for kind in Kind::ALL {
            for _ in 0..each {
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| s.mutant(kind, &mut r)));
                let Ok(Some((judge, changed, what))) = result else {
                    if result.is_err() {
                        tally.notes.push(format!("PANIC: seed {seed} {} {kind:?}", version.name()));
                    }
                    continue;
                };
                let c = &mut tally.counts[kind as usize];
                c.made += 1;
                if !changed {
                    c.suspected += u32::from(judge != Judge::Nobody);
                    continue;
                }
                c.changed += 1;
                match judge {
                    Judge::CheckerA => c.caught[0] += 1,
                    Judge::Finish => c.caught[1] += 1,
                    Judge::Validator => c.caught[2] += 1,
                    Judge::CheckerB => c.caught[3] += 1,
                    Judge::Nobody => c.escaped += 1,
                }
                if judge == Judge::Nobody || verbose || what.ends_with("no)") {
                    tally.notes.push(format!("{judge:?}: seed {seed} {} {kind:?} {what}", version.name()));
                }
            }
        }
    }
    tally
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str, default: u64| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let (first, count) = (number("--seed", 1), number("--count", 100));
    let each = number("--each", 20).min(u32::MAX.into()) as u32;
    let verbose = args.iter().any(|a| a == "-v");
    let targets: Vec<Version> =
        Version::ALL.into_iter().filter(|v| value("--target").is_none_or(|t| t == v.name())).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let start = std::time::Instant::now();
    let tally = (first..first.saturating_add(count))
        .into_par_iter()
        .map(|seed| one(seed, &targets, each, verbose))
        .reduce(Tally::default, Tally::add);
    for note in tally.notes.iter().take(if verbose { usize::MAX } else { 60 }) {
        println!("{note}");
    }
    println!(
        "kind      made  changed  checker A  no code  validator  checker B  escaped  caught  unchanged, objected"
    );
    let mut escaped = 0;
    for kind in Kind::ALL {
        let c = tally.counts[kind as usize];
        let share = 100.0 * f64::from(c.changed - c.escaped) / f64::from(c.changed.max(1));
        println!(
            "{:8} {:5}  {:7}  {:9}  {:7}  {:9}  {:9}  {:7}  {share:5.2} %  {}",
            format!("{kind:?}"),
            c.made,
            c.changed,
            c.caught[0],
            c.caught[1],
            c.caught[2],
            c.caught[3],
            c.escaped,
            c.suspected
        );
        escaped += c.escaped;
    }
    println!(
        "mutate: seeds {first}..{}, {:.1} s",
        first.saturating_add(count),
        start.elapsed().as_secs_f64()
    );
    if escaped == 0 && !tally.notes.iter().any(|n| n.starts_with("PANIC")) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_mutants_is_caught() {
        let mut tally = Tally::default();
        for seed in 1..9 {
            tally = tally.add(one(seed, &Version::ALL, 8, false));
        }
        for kind in Kind::ALL {
            let c = tally.counts[kind as usize];
            assert!(c.changed > 10, "{kind:?}: {c:?}");
            assert_eq!(c.escaped, 0, "{kind:?}: {:#?}", tally.notes);
        }
    }
}
