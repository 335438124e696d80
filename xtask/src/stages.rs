//! The judge of graphics stages: `cargo xtask simulate --stage vertex|fragment|all [--source] [--want N] [--step N]
//! [--only TEXT] [--seeds N] [--target T] [--level 0|1|2] [--threads N] [--max-registers N] [--no-order] [--force-spill] [-v]`.
//!
//! * Without `--source`: what code gives for vertices or fragments, and what it leaves in buffers and images, must be what the
//!   interpreter gives for the lowered form, bit for bit. Vertex shaders are judged as both of their programs ([`Variant`]).
//! * With `--source`: the same for the optimised form at each level against the source form, both by the interpreter; and for each
//!   form against a run in which what the divergence analysis calls uniform is computed once. No target takes part, so this
//!   judges front end, optimiser, analysis and the inputs.
//!
//! What the interpreter calls undefined may be anything on the other side; helpers give nothing on either. A module *counts*
//! by the rules of `simulate`: at least 90 % of its words (of its instructions in the source form) were executed
//! over at most 16 seeds, outputs differ between seeds, and everything was equal.

use crate::corpus::{self, Entry};
use crate::judge::{self, Trouble};
use crate::simulate::{self, Agreed, Fate, over_seeds, table};
use kempe::run::{RunOptions, StageRun};
use kempe_ir::analysis::Cfg;
use kempe_ir::divergence::{self, Divergence};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::interp;
use kempe_ir::io::{Slot, StageOutputs};
use kempe_ir::{Module, Stage};
use kempe_opt::Level;
use kempe_v3d::instr::Version;
use rayon::prelude::*;
use std::process::ExitCode;

/// Which of the programs that are made of a shader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// The one that gives everything.
    Render,
    /// Of a shader before the rasteriser: positions only.
    Binning,
}

impl Variant {
    /// Programs that a stage has.
    pub fn of(stage: Stage) -> &'static [Variant] {
        match stage {
            Stage::Vertex | Stage::TessEval | Stage::Geometry => &[Variant::Render, Variant::Binning],
            _ => &[Variant::Render],
        }
    }
}

/// What a run of a stage gave.
pub struct Ran {
    pub stage: StageOutputs,
    /// Buffers, then images.
    pub memory: Vec<Vec<u8>>,
    /// Word by word (instruction by instruction): executed.
    pub executed: Vec<bool>,
}

/// Compiles a program of a stage.
pub fn make(
    m: &Module,
    version: Version,
    variant: Variant,
    options: &judge::Options,
) -> Result<judge::Made, String> {
    let mut options = *options;
    options.back.shape.binning = variant == Variant::Binning;
    judge::make(m, version, &options).map_err(|e| e.to_string())
}

fn ran(run: StageRun, executed: Vec<bool>) -> Ran {
    let memory = run.report.buffers.into_iter().map(|b| b.bytes).collect();
    let mut stage = run.outputs;
    // Rows that have no place in the interface.
    for (n, list) in run.rows.into_values().enumerate() {
        stage.values.insert((Slot::Row(n as u16), 0, 0), list);
    }
    Ran { stage, memory, executed }
}

/// Runs code on the simulator. Also gives how often each word was executed.
pub fn run_code(
    made: &judge::Made,
    inputs: &Inputs,
    schedule: u64,
    steps: u64,
) -> Result<(Ran, Vec<u64>), Trouble> {
    let target = target_of(made)?;
    let mut result = Err(Trouble::Wrong(String::new()));
    for schedule in [schedule, RunOptions::SEQUENTIAL] {
        // Far more than the interpreter needed.
        let options = RunOptions { step_limit: 100_000 + 200 * steps, schedule };
        match target.run_stage(&made.artifact, inputs, &options) {
            Ok(run) => {
                let counts = run.report.counts.clone();
                let executed = counts.iter().map(|&n| n > 0).collect();
                return Ok((ran(run, executed), counts));
            }
            Err(e) => result = Err(Trouble::Wrong(e.to_string())),
        }
    }
    result
}

/// Runs its lowered form by the interpreter.
pub fn run_lowered(made: &judge::Made, inputs: &Inputs) -> Result<(Ran, u64), Trouble> {
    let options = RunOptions { step_limit: judge::STEPS, schedule: RunOptions::SEQUENTIAL };
    let run = target_of(made)?
        .interpret_stage(&made.lowered, &made.artifact, inputs, &options)
        .map_err(|e| Trouble::Setup(e.to_string()))?;
    // Undefined data that comes to scratch memory is no matter: the source form has been looked at.
    let steps = run.report.instructions;
    Ok((ran(run, Vec::new()), steps))
}

fn target_of(made: &judge::Made) -> Result<&'static dyn kempe::Target, Trouble> {
    kempe::target(&made.artifact.target).ok_or_else(|| Trouble::Setup("no target".to_owned()))
}

/// Runs a module by the interpreter.
pub fn interpret(
    m: &Module,
    inputs: &Inputs,
    sizes: Sizes,
    options: &interp::Options,
) -> Result<Ran, Trouble> {
    let env = Environment::new(m, inputs, sizes).map_err(Trouble::Setup)?;
    let outcome = interp::run(m, &env, options).map_err(Trouble::Input)?;
    if !outcome.undefined.is_empty() {
        return Err(Trouble::Setup("it depends on what is undefined".to_owned()));
    }
    let mut memory: Vec<Vec<u8>> =
        env.buffer_contents(&outcome.memory).into_iter().map(<[u8]>::to_vec).collect();
    memory.extend(env.image_contents(&outcome.memory).into_iter().map(<[u8]>::to_vec));
    let blocks = m.func.layout.iter().zip(&outcome.visits);
    let executed =
        blocks.flat_map(|(&b, &n)| std::iter::repeat_n(n > 0, m.func.blocks[b].insts.len() + 1)).collect();
    let stage = outcome.stage.ok_or_else(|| Trouble::Setup("no graphics stage".to_owned()))?;
    Ok(Ran { stage, memory, executed })
}

/// What the one side defines, the other side must give.
pub fn same(want: &Ran, got: &Ran) -> Result<(), String> {
    for (n, (a, b)) in want.memory.iter().zip(&got.memory).enumerate() {
        if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
            return Err(format!(
                "buffer or image {n} differs at byte {at}: {:#04x} for {:#04x}",
                b[at], a[at]
            ));
        }
    }
    for (n, (a, b)) in want.stage.helpers.iter().zip(&got.stage.helpers).enumerate() {
        if a != b {
            return Err(format!("invocation {n} has {} effect at the end", if *b { "no" } else { "an" }));
        }
    }
    for (place, list) in &want.stage.values {
        let (slot, component, index) = place;
        let other = got.stage.values.get(place);
        for (n, v) in list.iter().enumerate() {
            let Some(v) = v else { continue };
            // What a helper gave before it became one has no effect.
            if want.stage.helpers.get(n) == Some(&true) {
                continue;
            }
            let g = other.and_then(|l| l.get(n)).copied().flatten();
            if g != Some(*v) {
                let g = g.map_or("nothing".to_owned(), |g| format!("{g:#010x}"));
                return Err(format!(
                    "{slot:?} component {component} index {index} of invocation {n}: {g} for {v:#010x}"
                ));
            }
        }
    }
    for (n, (a, b)) in want.stage.emitted.iter().zip(&got.stage.emitted).enumerate() {
        if a != b {
            return Err(format!("invocation {n} gives the vertices {b:?} for {a:?}"));
        }
    }
    for (place, list) in &want.stage.patch_values {
        let other = got.stage.patch_values.get(place);
        for (n, v) in list.iter().enumerate() {
            let g = other.and_then(|l| l.get(n)).copied().flatten();
            if v.is_some() && g != *v {
                return Err(format!("{place:?} of patch {n}: {g:08x?} for {v:08x?}"));
            }
        }
    }
    // What nobody gave.
    for (place, list) in &got.stage.values {
        if !want.stage.values.contains_key(place) && list.iter().any(Option::is_some) {
            return Err(format!("{place:?} is given, and the other side gives none"));
        }
    }
    Ok(())
}

/// A comparison with what is undefined would be none: where the source form gives something, the lowered form gives something to
/// some invocation, if there are a few. (Not to each: a branch on a value that is rounded otherwise may leave a neighbour without a partner.)
fn defined(source: &Ran, lowered: &Ran) -> Result<(), String> {
    for (place, list) in &source.stage.values {
        let Some(other) = lowered.stage.values.get(place) else { continue };
        let effect = |n: &usize| {
            source.stage.helpers.get(*n) != Some(&true) && lowered.stage.helpers.get(*n) != Some(&true)
        };
        let given: Vec<usize> = (0..list.len()).filter(effect).filter(|&n| list[n].is_some()).collect();
        if given.len() >= 16 && given.iter().all(|&n| other.get(n) == Some(&None)) {
            return Err(format!("{place:?} is undefined in the lowered form"));
        }
    }
    for (place, list) in &source.stage.patch_values {
        let Some(other) = lowered.stage.patch_values.get(place) else { continue };
        if list.len() >= 16 && list.iter().all(Option::is_some) && other.iter().all(Option::is_none) {
            return Err(format!("{place:?} of patches is undefined in the lowered form"));
        }
    }
    let (many, few) =
        (source.stage.emitted.iter().flatten().count(), lowered.stage.emitted.iter().flatten().count());
    if many > 0 && few == 0 {
        return Err("no vertex is given in the lowered form".to_owned());
    }
    Ok(())
}

/// What a module is compared with.
pub enum Other {
    /// Its optimised forms.
    Forms(Vec<(Level, Module)>),
    Code(Vec<(Variant, judge::Made)>),
}

/// The optimised forms of a module.
pub fn forms(m: &Module, levels: &[Level]) -> Result<Other, String> {
    let mut list = Vec::new();
    for &level in levels {
        let mut optimised = m.clone();
        kempe_opt::optimise(&mut optimised, level);
        if let Err(e) = kempe_ir::verify::verify(&optimised) {
            return Err(format!("not well-formed after {level:?}: {e:?}"));
        }
        list.push((level, optimised));
    }
    Ok(Other::Forms(list))
}

/// What is wrong with a form of a program, from trouble that the source form did not have.
fn accuse(what: &str, trouble: Trouble) -> Trouble {
    let why = match trouble {
        Trouble::Input(stop) => stop.to_string(),
        Trouble::Setup(s) | Trouble::Wrong(s) => s,
    };
    Trouble::Wrong(format!("{what}: {why}"))
}

/// The same run with uniform values computed once. What it defines must be the same; not the other way round: an
/// undefined lane gets what the others have.
fn check_uniform(m: &Module, inputs: &Inputs, options: &interp::Options, want: &Ran) -> Result<(), Trouble> {
    let cfg = Cfg::new(&m.func);
    let which = divergence::Options { one_workgroup_per_batch: true, ..Default::default() };
    let d = Divergence::new(&m.func, &cfg, &which);
    let shared = interp::Options { broadcast: Some(&d), ..*options };
    let got = interpret(m, inputs, Sizes::source(), &shared)?;
    same(want, &got).map_err(Trouble::Wrong)
}

/// Compares a module with its other forms on one input. Gives what the source form computed, and what was executed.
pub fn compare(m: &Module, other: &Other, inputs: &Inputs, schedule: u64) -> Result<Ran, Trouble> {
    judge::screen(m, inputs)?;
    let options = interp::Options { step_limit: judge::STEPS, ..interp::Options::source() };
    let mut source = interpret(m, inputs, Sizes::source(), &options)?;
    match other {
        Other::Forms(list) => {
            check_uniform(m, inputs, &options, &source).map_err(|e| accuse("uniform values", e))?;
            for (level, optimised) in list {
                let check = || -> Result<(), Trouble> {
                    let got = interpret(optimised, inputs, Sizes::source(), &options)?;
                    same(&source, &got).map_err(Trouble::Wrong)?;
                    check_uniform(optimised, inputs, &options, &got)
                };
                check().map_err(|e| accuse(&format!("{level:?}"), e))?;
            }
        }
        Other::Code(list) => {
            let mut executed = Vec::new();
            for (variant, made) in list {
                let (want, steps) = run_lowered(made, inputs)?;
                let (got, _) = run_code(made, inputs, schedule, steps)?;
                same(&want, &got).map_err(|e| Trouble::Wrong(format!("{variant:?}: {e}")))?;
                defined(&source, &want).map_err(|e| Trouble::Wrong(format!("{variant:?}: {e}")))?;
                executed.extend(got.executed);
            }
            source.executed = executed;
        }
    }
    Ok(source)
}

/// Words that a program executes on one input, when it gives what its lowered form gives.
pub fn executed(made: &judge::Made, inputs: &Inputs, schedule: u64) -> Result<u64, Trouble> {
    let (want, steps) = run_lowered(made, inputs)?;
    let (got, counts) = run_code(made, inputs, schedule, steps)?;
    same(&want, &got).map_err(Trouble::Wrong)?;
    Ok(counts.iter().sum())
}

/// A check on what `differ` means for stages: anything that somebody sees.
pub fn seen(ran: &Ran) -> (Vec<Vec<u8>>, Vec<Option<u32>>) {
    let values = ran.stage.values.values().chain(ran.stage.patch_values.values()).flatten().copied();
    (ran.memory.clone(), values.collect())
}

/// Runs a module on its seeds.
pub fn judge_module(m: &Module, other: &Other, seeds: u32) -> Fate {
    over_seeds(m, seeds, |inputs, schedule| {
        let ran = compare(m, other, inputs, schedule)?;
        let output = seen(&ran);
        Ok(Agreed { executed: ran.executed, output })
    })
}

/// How to judge.
#[derive(Clone)]
pub struct How {
    /// `None`: the source form.
    pub target: Option<Version>,
    pub options: judge::Options,
    pub levels: Vec<Level>,
    pub seeds: u32,
}

/// Runs one module of the corpus.
pub fn judge_entry(e: &Entry, how: &How) -> Fate {
    let run = || match e.module() {
        Ok(m) => judge_one(&m, how),
        Err(why) => Fate::NotCompiled(why),
    };
    judge::caught(run).unwrap_or_else(Fate::Wrong)
}

fn judge_one(m: &Module, how: &How) -> Fate {
    let other = match how.target {
        None => match forms(m, &how.levels) {
            Ok(o) => o,
            Err(why) => return Fate::Wrong(why),
        },
        Some(version) => {
            let made: Result<Vec<_>, String> = Variant::of(m.stage)
                .iter()
                .map(|&v| make(m, version, v, &how.options).map(|made| (v, made)))
                .collect();
            match made {
                Ok(list) => Other::Code(list),
                Err(why) => return Fate::NotCompiled(why),
            }
        }
    };
    judge_module(m, &other, how.seeds)
}

/// Modules of the corpus that are of these stages.
pub fn of_stage(e: &Entry, stage: &str) -> bool {
    match stage {
        "vertex" => e.stage == "vert",
        "fragment" => e.stage == "frag",
        "geometry" => e.stage == "geom",
        "tess-control" => e.stage == "tesc",
        "tess-eval" => e.stage == "tese",
        _ => matches!(e.stage.as_str(), "vert" | "frag" | "geom" | "tesc" | "tese"),
    }
}

pub fn run(stage: &str, args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let number = |name: &str, default: usize| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let source = args.iter().any(|a| a == "--source");
    let verbose = args.iter().any(|a| a == "-v");
    let mut levels = vec![Level::O0, Level::O1, Level::O2];
    if let Some(n) = value("--level").and_then(|v| v.parse().ok()) {
        levels = levels.into_iter().skip(n).take(1).collect();
    }
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            println!("simulate: skipped: {e}");
            return ExitCode::SUCCESS;
        }
    };
    let only = value("--only");
    let chosen: Vec<Entry> = entries
        .into_iter()
        .filter(|e| of_stage(e, stage))
        .filter(|e| only.as_ref().is_none_or(|o| e.file.contains(o.as_str())))
        .step_by(number("--step", 1).max(1))
        .take(number("--want", usize::MAX))
        .collect();
    let options = simulate::options(args);
    let targets: Vec<Option<Version>> = if source {
        vec![None]
    } else {
        let wanted = |v: &Version| value("--target").is_none_or(|t| t == v.name());
        Version::ALL.into_iter().filter(wanted).map(Some).collect()
    };
    let mut failed = false;
    std::panic::set_hook(Box::new(|_| {}));
    for target in targets {
        let how = How { target, options, levels: levels.clone(), seeds: number("--seeds", 16) as u32 };
        let start = std::time::Instant::now();
        let fates: Vec<Fate> = chosen.par_iter().map(|e| judge_entry(e, &how)).collect();
        let name = target.map_or("source", |t| t.name());
        failed |= table(name, &chosen, &fates, verbose, start.elapsed());
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ir::Op;
    use kempe_ir::generate::{Shape, generate, stage_inputs};

    /// An operation that is another one is seen.
    #[test]
    fn the_judge_objects() {
        let (mut seen, mut changed) = (0, 0);
        for seed in 0..40 {
            for stage in [Stage::Fragment, Stage::Vertex] {
                let shape = Shape::for_stage(seed, stage);
                let m = generate(seed, &shape);
                let inputs = stage_inputs(seed, &m, &shape);
                let Other::Forms(mut list) = forms(&m, &[Level::O1]).unwrap() else { unreachable!() };
                let f = &mut list[0].1.func;
                let mut all = f.layout.iter().flat_map(|&b| f.blocks[b].insts.clone());
                let Some(i) = all.find(|&i| matches!(f.insts[i].op, Op::Umulhi | Op::Ddx | Op::Xor)) else {
                    continue;
                };
                f.insts[i].op = match f.insts[i].op {
                    Op::Umulhi => Op::Smulhi,
                    Op::Ddx => Op::Ddy,
                    _ => Op::Or,
                };
                changed += 1;
                seen += matches!(compare(&m, &Other::Forms(list), &inputs, 0), Err(Trouble::Wrong(_))) as u32;
            }
        }
        assert!(changed > 40 && 4 * seen > changed, "{seen} of {changed}");
    }

    /// A few modules of each stage; the whole corpus is for the command.
    #[test]
    fn corpus_sample_keeps_its_meaning() {
        let entries = match corpus::entries() {
            Ok(e) => e,
            Err(e) => {
                eprintln!("skipped: {e}");
                return;
            }
        };
        let how = How {
            target: None,
            options: judge::Options::default(),
            levels: vec![Level::O0, Level::O2],
            seeds: 2,
        };
        let mut ran = 0;
        for (stage, step) in
            [("vertex", 41), ("fragment", 67), ("geometry", 1), ("tess-control", 2), ("tess-eval", 3)]
        {
            let list: Vec<&Entry> = entries.iter().filter(|e| of_stage(e, stage)).step_by(step).collect();
            for e in list {
                match judge_entry(e, &how) {
                    Fate::Wrong(why) => panic!("{}: {why}", e.file),
                    Fate::Counts { .. } | Fate::Thin { .. } => ran += 1,
                    Fate::NoInput(_) | Fate::NotCompiled(_) => {}
                }
            }
        }
        assert!(ran >= 28, "{ran}");
    }
}
