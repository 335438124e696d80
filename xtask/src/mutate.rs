//! Can the judges be fooled? `cargo xtask mutate [--count N] [--seed S] [--each N] [--corpus N] [--target T]
//! [--stage vertex|fragment] [-v]`.
//!
//! Generated programs (and some modules of the corpus) are compiled; in each correct result one thing is changed: the
//! place of an operand or an edit of the allocation (then the rest of the road runs again), an encoded field of a word,
//! the order of the words, a word of the uniform stream. The simulator tells which mutants compute something else or are
//! stopped, on several inputs and in several orders of the threads; of these, checker A, the validator or checker B must
//! object, without the simulator. Those that do not are printed. `docs/mutation.md` has the figures.
//!
//! Graphics programs are compared in what they give and leave in memory ([`crate::stages`]); vertex programs are made for
//! rendering or for binning.
//!
//! Left out: changes of two things at once, and of what surrounds the code (thread count, scratch size).

mod change;

use crate::corpus;
use crate::judge::{self, Made};
use crate::stages::{self, Ran};
use change::Label;
use kempe::run::{RunOptions, run_artifact};
use kempe_ir::exec::Inputs;
use kempe_ir::generate::{self, Shape};
use kempe_ir::inputs::{Random, Usage, Verdict, search};
use kempe_ir::{Module, Stage};
use kempe_mir::Mir;
use kempe_opt::Level;
use kempe_ra::{Allocation, Unit};
use kempe_v3d::checkb::{self, View};
use kempe_v3d::compile::{self, Observer};
use kempe_v3d::finish::{self, Finished, Frame};
use kempe_v3d::instr::Version;
use kempe_v3d::mops::MInst;
use kempe_v3d::regs;
use kempe_v3d::validate::{self, Class, ProgramFacts};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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

/// Counts of one kind.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub made: u32,
    /// The changed allocation cannot be made into code at all.
    pub no_code: u32,
    /// The simulator computes something else, or stops.
    pub changed: u32,
    /// Of the changed ones: checker A, validator, checker B object, each asked by itself.
    pub caught: [u32; 3],
    /// Nobody objects.
    pub escaped: u32,
    /// Not changed as far as the runs show, and somebody objects all the same: what no input of these reaches.
    pub suspected: u32,
}

impl Counts {
    fn add(&mut self, o: &Counts) {
        self.made += o.made;
        self.no_code += o.no_code;
        self.changed += o.changed;
        self.escaped += o.escaped;
        self.suspected += o.suspected;
        for (x, y) in self.caught.iter_mut().zip(o.caught) {
            *x += y;
        }
    }
}

#[derive(Default)]
pub struct Tally {
    pub counts: BTreeMap<(Kind, Label), Counts>,
    pub subjects: u32,
    pub notes: Vec<String>,
    /// Judges that object to what is right, changes that make the road panic.
    pub faults: Vec<String>,
}

impl Tally {
    fn add(mut self, other: Tally) -> Tally {
        for (key, counts) in &other.counts {
            self.counts.entry(*key).or_default().add(counts);
        }
        self.subjects += other.subjects;
        self.notes.extend(other.notes);
        self.faults.extend(other.faults);
        self
    }

    /// All of one kind.
    pub fn of(&self, kind: Kind) -> Counts {
        let mut sum = Counts::default();
        self.counts.iter().filter(|(k, _)| k.0 == kind).for_each(|(_, c)| sum.add(c));
        sum
    }
}

/// Everything known of one attempt of the compiler.
struct Attempt {
    mir: Mir<MInst>,
    allocation: Allocation,
    frame: Frame,
    code: Finished,
}

#[derive(Default)]
struct Catch {
    lowered: Option<Module>,
    attempts: Vec<Attempt>,
}

impl Observer for Catch {
    fn lowered(&mut self, m: &Module) {
        self.lowered = Some(m.clone());
    }

    fn finished(&mut self, mir: &Mir<MInst>, allocation: &Allocation, frame: &Frame, code: &Finished) {
        self.attempts.push(Attempt {
            mir: mir.clone(),
            allocation: allocation.clone(),
            frame: *frame,
            code: code.clone(),
        });
    }
}

/// Orders of the threads that every input is run in. A program whose result depends on the order is of no use here.
const SCHEDULES: [u64; 2] = [RunOptions::SEQUENTIAL, 1];

/// A correct result with what it computes.
struct Subject {
    name: String,
    attempt: Attempt,
    made: Made,
    runs: Vec<(Inputs, Want)>,
    steps: u64,
}

/// What a run must give.
enum Want {
    Buffers(Vec<Vec<u8>>),
    /// What the interpreter defines, and its steps.
    Stage(Box<Ran>, u64),
}

/// Compiles; `None` when that does not work.
fn compiled(m: &Module, version: Version, options: &judge::Options) -> Option<(Attempt, Made)> {
    let mut m = m.clone();
    let mut choices = kempe_opt::Options::new(options.level);
    choices.vector_within_16 = version == Version::V42;
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    let mut catch = Catch::default();
    let artifact = compile::compile(m, version, &options.back, &mut catch).ok()?;
    let attempt =
        catch.attempts.into_iter().find(|a| kempe_mir::code_of_words(&a.code.words) == artifact.code)?;
    Some((attempt, Made { lowered: catch.lowered?, artifact }))
}

impl Subject {
    /// `inputs`: those that the interpreter agrees on, and whose results depend on no order and nothing undefined, are
    /// kept.
    fn new(name: String, (attempt, made): (Attempt, Made), inputs: Vec<Inputs>) -> Option<Subject> {
        let mut s = Subject { name, attempt, made, runs: Vec::new(), steps: 0 };
        'inputs: for i in inputs {
            if s.attempt.frame.stage != Stage::Compute {
                let Ok((want, steps)) = stages::run_lowered(&s.made, &i) else { continue };
                let agrees = |schedule| {
                    let got = stages::run_code(&s.made, &i, schedule, steps);
                    got.is_ok_and(|(got, _)| stages::same(&want, &got).is_ok())
                };
                if SCHEDULES.into_iter().all(agrees) {
                    s.steps = s.steps.max(steps);
                    s.runs.push((i, Want::Stage(Box::new(want), steps)));
                }
                continue;
            }
            let Ok(agreed) = judge::compare(&s.made, &i, SCHEDULES[0]) else { continue };
            if agreed.undefined {
                continue;
            }
            for schedule in SCHEDULES {
                let how = RunOptions { step_limit: 2_000_000, schedule };
                let Ok(report) = run_artifact(&s.made.artifact, &i, &how) else { continue 'inputs };
                if report.buffers.iter().map(|b| &b.bytes).ne(agreed.output.iter()) {
                    continue 'inputs;
                }
                s.steps = s.steps.max(report.instructions);
            }
            s.runs.push((i, Want::Buffers(agreed.output)));
        }
        (!s.runs.is_empty()).then_some(s)
    }

    /// What the simulator notices.
    fn differs(&self, code: &Finished) -> Option<String> {
        let mut made =
            Made { lowered: Module::new("", self.attempt.frame.stage), artifact: self.made.artifact.clone() };
        let artifact = &mut made.artifact;
        artifact.code = kempe_mir::code_of_words(&code.words);
        artifact.uniforms = code.uniforms.clone();
        artifact.single_section = code.single_section;
        for (inputs, want) in &self.runs {
            for schedule in SCHEDULES {
                let want = match want {
                    Want::Buffers(b) => b,
                    Want::Stage(want, steps) => {
                        let got = stages::run_code(&made, inputs, schedule, *steps);
                        let same =
                            got.map_err(|t| t.to_string()).and_then(|(got, _)| stages::same(want, &got));
                        if let Err(how) = same {
                            return Some(how);
                        }
                        continue;
                    }
                };
                let how = RunOptions { step_limit: 2 * self.steps + 10_000, schedule };
                match run_artifact(&made.artifact, inputs, &how) {
                    Ok(report) => {
                        if report.buffers.iter().map(|b| &b.bytes).ne(want.iter()) {
                            return Some("another result".to_owned());
                        }
                    }
                    Err(e) => return Some(e.to_string()),
                }
            }
        }
        None
    }

    /// The objections of validator and checker B.
    fn objections(&self, code: &Finished, allocation: &Allocation) -> [Option<String>; 2] {
        let Attempt { mir, frame, .. } = &self.attempt;
        let version = self.attempt.frame.version;
        let facts = ProgramFacts {
            stage: frame.stage,
            single_segment: code.single_section,
            ..ProgramFacts::compute(frame.threads)
        };
        let broken = validate::validate(version, &code.words, &facts);
        let view = View::new(code, allocation.slots);
        let b = checkb::check(mir, &view, version, frame.stage, frame.threads, frame.private_bytes);
        [
            broken.into_iter().find(|v| v.class == Class::Hw).map(|v| v.to_string()),
            b.err().map(|e| e.to_string()),
        ]
    }

    /// The objection of checker A.
    fn objection_of_a(&self, allocation: &Allocation) -> Option<String> {
        let file = regs::register_file(self.attempt.frame.version, self.attempt.frame.threads);
        kempe_ra::check(&file, &self.attempt.mir.program, allocation).err().map(|e| e.to_string())
    }

    fn mutant(&self, kind: Kind, r: &mut Random, tally: &mut Tally, verbose: bool) {
        let Attempt { mir, allocation, frame, code } = &self.attempt;
        let version = self.attempt.frame.version;
        let mut changed = code.clone();
        let mut other = None;
        let (label, what) = match kind {
            Kind::Place | Kind::Edit => {
                let file = regs::register_file(version, frame.threads);
                let change = if kind == Kind::Place { change::place } else { change::edit };
                let Some((to, label, what)) = change(mir, &file, allocation, r) else { return };
                let loc = |u: Unit| regs::unit_loc(frame.threads, u);
                match finish::finish(frame, mir, &to, &loc) {
                    Ok(made) => changed = made,
                    Err(_) => {
                        let counts = tally.counts.entry((kind, label)).or_default();
                        counts.made += 1;
                        counts.no_code += 1;
                        return;
                    }
                }
                if changed.words == code.words && changed.uniforms == code.uniforms {
                    return;
                }
                other = Some(to);
                (label, what)
            }
            Kind::Field => {
                let n = r.below(code.words.len() as u64) as usize;
                let Some((word, label)) = change::field(version, code.words[n], r) else { return };
                changed.words[n] = word;
                let text = |w| kempe_v3d::asm::disassemble(version, w, false);
                (label, format!("word {n}: {} to {}", text(code.words[n]), text(word)))
            }
            Kind::Slot => {
                let Some(done) = change::slot(&mut changed.words, r) else { return };
                done
            }
            Kind::Uniform => {
                let Some(done) = change::uniform(&mut changed.uniforms, r) else { return };
                done
            }
        };
        let differs = self.differs(&changed);
        let a = other.as_ref().and_then(|o| self.objection_of_a(o));
        let [validator, b] = self.objections(&changed, other.as_ref().unwrap_or(allocation));
        let said = [a, validator, b];
        let caught = said.iter().any(Option::is_some);
        let counts = tally.counts.entry((kind, label)).or_default();
        counts.made += 1;
        match &differs {
            None => counts.suspected += u32::from(caught),
            Some(_) => {
                counts.changed += 1;
                counts.escaped += u32::from(!caught);
                for (n, s) in counts.caught.iter_mut().zip(&said) {
                    *n += u32::from(s.is_some());
                }
            }
        }
        if let Some(how) = differs
            && (!caught || verbose)
        {
            let how = how.split_whitespace().collect::<Vec<_>>().join(" ");
            let judges: Vec<&str> = said.iter().flatten().map(String::as_str).collect();
            let judges = if judges.is_empty() { "ESCAPED".to_owned() } else { judges.join(" / ") };
            tally.notes.push(format!("{} {kind:?} {label}: {what}: {how}: {judges}", self.name));
        }
    }

    /// `each` mutants of every kind.
    fn mutants(&self, each: u32, r: &mut Random, verbose: bool) -> Tally {
        let mut tally = Tally { subjects: 1, ..Tally::default() };
        let fault = |tally: &mut Tally, what: String| tally.faults.push(format!("{}: {what}", self.name));
        let [validator, b] = self.objections(&self.attempt.code, &self.attempt.allocation);
        if let Some(why) = self.objection_of_a(&self.attempt.allocation).or(validator).or(b) {
            fault(&mut tally, format!("a judge objects to what is right: {why}"));
            return tally;
        }
        for kind in Kind::ALL {
            for _ in 0..each {
                let one = || self.mutant(kind, r, &mut tally, verbose);
                if std::panic::catch_unwind(AssertUnwindSafe(one)).is_err() {
                    fault(&mut tally, format!("panic after a change of kind {kind:?}"));
                }
            }
        }
        tally
    }
}

fn options(r: &mut Random) -> judge::Options {
    let level = [Level::O0, Level::O1, Level::O2, Level::O2][r.below(4) as usize];
    let mut options = judge::Options { level, ..judge::Options::default() };
    options.back.threads = [None, Some(2), Some(4)][r.below(3) as usize];
    // Tight every second time: there are more edits then.
    options.back.max_registers = [None, Some(10 + r.below(14) as u32)][r.below(2) as usize];
    options
}

/// All mutants of one seed.
pub fn generated(seed: u64, stage: Stage, targets: &[Version], each: u32, verbose: bool) -> Tally {
    let shape = Shape::for_stage(seed, stage);
    let m = generate::generate(seed, &shape);
    let mut r = Random(seed ^ 0x7777);
    let mut tally = Tally::default();
    for &version in targets {
        let mut how = options(&mut r);
        how.back.shape.binning = stage == Stage::Vertex && seed.is_multiple_of(3);
        let inputs = (0..3)
            .map(|k| match stage {
                Stage::Compute => generate::inputs(seed ^ k << 40, 1 + k as u32, &shape),
                _ => generate::stage_inputs(seed ^ k << 40, &m, &shape),
            })
            .collect();
        let name = format!("seed {seed} {}", version.name());
        let subject = compiled(&m, version, &how).and_then(|c| Subject::new(name, c, inputs));
        if let Some(s) = subject {
            tally = tally.add(s.mutants(each, &mut r, verbose));
        }
    }
    tally
}

/// Longest code of a corpus module, and most instructions of a run, that mutants are made of.
const MAX_WORDS: usize = 600;
const MAX_STEPS: u64 = 100_000;

/// All mutants of one module of the corpus.
fn of_corpus(e: &corpus::Entry, n: u64, targets: &[Version], each: u32, verbose: bool) -> Option<Tally> {
    let m = &e.module().ok()?;
    let usage = Usage::scan(m);
    let mut inputs = Vec::new();
    for seed in 0..3 {
        let found = search(m, &usage, seed, |i| match judge::screen(m, i) {
            Ok(()) => Verdict::Fine,
            Err(t) => t.verdict(),
        });
        inputs.extend(found.ok());
    }
    let mut r = Random(n ^ 0x3333);
    let mut tally = Tally::default();
    for &version in targets {
        let mut how = options(&mut r);
        how.back.shape.binning = m.stage == Stage::Vertex && n.is_multiple_of(3);
        let Some(c) = compiled(m, version, &how).filter(|c| c.0.code.words.len() <= MAX_WORDS) else {
            continue;
        };
        let name = format!("{} {}", e.file, version.name());
        if let Some(s) = Subject::new(name, c, inputs.clone()).filter(|s| s.steps <= MAX_STEPS) {
            tally = tally.add(s.mutants(each, &mut r, verbose));
        }
    }
    Some(tally)
}

fn table(tally: &Tally, long: bool) {
    println!(
        "| kind | mutants | compute something else | checker A | validator | checker B | nobody | caught |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let row = |name: String, c: &Counts| {
        let share = 100.0 * f64::from(c.changed - c.escaped) / f64::from(c.changed.max(1));
        let [a, v, b] = c.caught;
        println!("| {name} | {} | {} | {a} | {v} | {b} | {} | {share:.2} % |", c.made, c.changed, c.escaped);
    };
    for kind in Kind::ALL {
        row(format!("{kind:?}").to_lowercase(), &tally.of(kind));
        if long {
            tally
                .counts
                .iter()
                .filter(|(k, _)| k.0 == kind)
                .for_each(|((_, label), c)| row(format!("- {label}"), c));
        }
    }
    for kind in Kind::ALL {
        let c = tally.of(kind);
        println!(
            "{kind:?}: {} cannot be made into code, {} of those that compute the same are objected to",
            c.no_code, c.suspected
        );
    }
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str, default: u64| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let (first, count) = (number("--seed", 1), number("--count", 100));
    let stage = match value("--stage").as_deref() {
        None | Some("compute") => Stage::Compute,
        Some("vertex") => Stage::Vertex,
        Some("fragment") => Stage::Fragment,
        Some(other) => {
            eprintln!("there is no stage {other}");
            return ExitCode::from(2);
        }
    };
    let each = number("--each", 25).min(u32::MAX.into()) as u32;
    let verbose = args.iter().any(|a| a == "-v");
    let targets: Vec<Version> =
        Version::ALL.into_iter().filter(|v| value("--target").is_none_or(|t| t == v.name())).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let start = std::time::Instant::now();
    let mut tally = (first..first.saturating_add(count))
        .into_par_iter()
        .map(|seed| generated(seed, stage, &targets, each, verbose))
        .reduce(Tally::default, Tally::add);
    let modules = number("--corpus", 40) as usize;
    match corpus::entries() {
        Ok(entries) if modules > 0 => {
            let plain: Vec<_> = entries
                .into_iter()
                .filter(|e| match stage {
                    Stage::Compute => e.is_plain_compute(),
                    Stage::Vertex => stages::of_stage(e, "vertex"),
                    Stage::Fragment => stages::of_stage(e, "fragment"),
                    // Not among those that can be asked for.
                    Stage::Geometry | Stage::TessControl | Stage::TessEval => false,
                })
                .collect();
            let step = plain.len().div_ceil(modules).max(1);
            let from_corpus = plain
                .par_iter()
                .step_by(step)
                .enumerate()
                .filter_map(|(n, e)| of_corpus(e, first ^ n as u64, &targets, each, verbose))
                .reduce(Tally::default, Tally::add);
            println!("of the corpus: {} programs", from_corpus.subjects);
            tally = tally.add(from_corpus);
        }
        Ok(_) => {}
        Err(e) => println!("without modules of the corpus: {e}"),
    }
    for note in &tally.notes {
        println!("{note}");
    }
    for fault in &tally.faults {
        println!("FAULT: {fault}");
    }
    table(&tally, true);
    println!(
        "mutate: seeds {first}..{}, {each} of each kind, {} programs, {:.1} s",
        first.saturating_add(count),
        tally.subjects,
        start.elapsed().as_secs_f64()
    );
    let enough = Kind::ALL.iter().all(|&k| {
        let c = tally.of(k);
        100 * c.escaped <= c.changed
    });
    if enough && tally.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_mutants_is_caught() {
        let mut tally = Tally::default();
        for seed in 1..9 {
            tally = tally.add(generated(seed, Stage::Compute, &Version::ALL, 8, false));
        }
        assert_eq!(tally.faults, Vec::<String>::new());
        for kind in Kind::ALL {
            let c = tally.of(kind);
            assert!(c.changed > 10, "{kind:?}: {c:?}");
            assert_eq!(c.escaped, 0, "{kind:?}: {:#?}", tally.notes);
        }
    }

    #[test]
    fn a_sample_of_graphics_mutants_is_caught() {
        for stage in [Stage::Vertex, Stage::Fragment] {
            let mut tally = Tally::default();
            for seed in 1..7 {
                tally = tally.add(generated(seed, stage, &Version::ALL, 6, false));
            }
            assert_eq!(tally.faults, Vec::<String>::new());
            for kind in Kind::ALL {
                let c = tally.of(kind);
                assert!(c.changed > 5, "{stage:?} {kind:?}: {c:?}");
                assert_eq!(c.escaped, 0, "{stage:?} {kind:?}: {:#?}", tally.notes);
            }
        }
    }

    /// Every bit of a small program: a change that the simulator notices must be one that a judge notices.
    #[test]
    fn every_bit_of_a_small_program_matters() {
        for version in Version::ALL {
            let shape = Shape { operations: 12, depth: 1, ..Shape::from_seed(3) };
            let m = generate::generate(3, &shape);
            let inputs = (0..2).map(|k| generate::inputs(k, 1, &shape)).collect();
            let c = compiled(&m, version, &judge::Options::default()).expect("it compiles");
            let s = Subject::new("small".into(), c, inputs).expect("it runs");
            let words = &s.attempt.code.words;
            let mut caught = 0;
            for n in 0..words.len() {
                for bit in 0..64 {
                    let mut code = s.attempt.code.clone();
                    code.words[n] ^= 1 << bit;
                    if s.objections(&code, &s.attempt.allocation).iter().any(Option::is_some) {
                        caught += 1;
                    } else if let Some(how) = s.differs(&code) {
                        panic!("{} bit {bit} of word {n} of {}: {how}", version.name(), words.len());
                    }
                }
            }
            assert!(caught > 8 * words.len(), "{caught} of {} bits", 64 * words.len());
        }
    }
}
