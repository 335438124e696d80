//! Compares the interpreter with a Vulkan driver that runs on the CPU, an independent implementation of SPIR-V.
//!
//! ```text
//! vulkan-compare                     every second module of modules.txt, and every sixth of graphics.txt
//! vulkan-compare --compute           all of modules.txt
//! vulkan-compare --choose N          prints up to N modules of each collection that can be compared (uses the
//!                                    interpreter only: what the driver says has no influence)
//! vulkan-compare FILE...             these modules of the corpus
//! vulkan-compare --print FILE        the module in source form
//! vulkan-compare --graphics [FILE...]      fragment modules: those of graphics.txt; see `stages.rs`
//! vulkan-compare --graphics --quick        every sixth of them
//! vulkan-compare --graphics --choose N
//! vulkan-compare --pictures FILE...  scenes, drawn by both; see `pictures.rs`
//! vulkan-compare --keep FOLDER --pictures FILE...   and the driver's pictures written
//! ```
//!
//! `docs/bounds.md` says what is compared and what counts. Exit code: 0 when every module agrees, 1 when one does not,
//! 77 when there is no such driver or no corpus. Every module runs in a process of its own, so that a crash of the
//! driver is the result of one module.

mod compare;
mod corpus;
mod draw;
mod passthrough;
mod pictures;
mod stages;
mod vulkan;

use compare::Expected;
use corpus::Corpus;
use kempe_ir::bounds::{COUNTED_RUNS, SEEDS};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::inputs::{Usage, Verdict, search};
use kempe_ir::interp::{Form, Options, Program, Stop};
use kempe_ir::{Module, ResKind};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nothing to compare with.
const SKIPPED: u8 = 77;

/// Most instructions of a run.
const STEPS: u64 = 5_000_000;

/// Larger modules are not chosen: the driver's compiler takes minutes for them.
const LARGEST: usize = 32 << 10;

/// Modules of the default comparison.
const LIST: &str = include_str!("../modules.txt");

/// Fragment modules of the comparison of graphics stages.
const GRAPHICS_LIST: &str = include_str!("../graphics.txt");

/// Of them, one in so many belongs to the default comparison.
const QUICK: usize = 6;
/// The same of the compute modules.
const QUICK_COMPUTE: usize = 2;

fn lines(list: &str) -> Vec<String> {
    list.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [what, files @ ..] if what == "--pictures" => return pictures::compare(files, None),
        [what, folder, then, files @ ..] if what == "--keep" && then == "--pictures" => {
            return pictures::compare(files, Some(folder));
        }
        _ => {}
    }
    let corpus = match Corpus::open() {
        Ok(c) => c,
        Err(e) => {
            eprintln!("skipped: no corpus: {e}");
            return ExitCode::from(SKIPPED);
        }
    };
    match args.first().map(String::as_str) {
        Some("--one") => one(&corpus, args.get(1).map_or("", |s| s)),
        Some("--print") => match load(&corpus, args.get(1).map_or("", |s| s)) {
            Ok(s) => {
                print!("{}", kempe_ir::text::print(&s.module));
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("{e}");
                ExitCode::from(1)
            }
        },
        Some("--graphics") => match args.get(1).map(String::as_str) {
            Some("--one") => one_of_stages(&corpus, args.get(2).map_or("", |s| s)),
            Some("--choose") => {
                let want = args.get(2).and_then(|n| n.parse().ok()).unwrap_or(10);
                choose(&corpus.fragments, want, |file| stages::usable(&corpus, file, LARGEST))
            }
            Some("--quick") => {
                let list: Vec<String> = lines(GRAPHICS_LIST).into_iter().step_by(QUICK).collect();
                all(&list, &["--graphics", "--one"])
            }
            Some(_) => all(&args[1..], &["--graphics", "--one"]),
            None => all(&lines(GRAPHICS_LIST), &["--graphics", "--one"]),
        },
        Some("--choose") => choose_compute(&corpus, args.get(1).and_then(|n| n.parse().ok()).unwrap_or(10)),
        Some("--compute") => all(&lines(LIST), &["--one"]),
        Some(_) => all(&args, &["--one"]),
        // A part of the compute modules and of the fragment modules.
        None => {
            let quick: Vec<String> = lines(LIST).into_iter().step_by(QUICK_COMPUTE).collect();
            let compute = all(&quick, &["--one"]);
            let quick: Vec<String> = lines(GRAPHICS_LIST).into_iter().step_by(QUICK).collect();
            match all(&quick, &["--graphics", "--one"]) {
                code if code == ExitCode::SUCCESS => compute,
                code => code,
            }
        }
    }
}

/// A module of the corpus, ready to run.
struct Subject {
    words: Vec<u32>,
    module: Module,
    usage: Usage,
}

fn load(corpus: &Corpus, file: &str) -> Result<Subject, String> {
    let words = corpus.words(file)?;
    if corpus::uses_loose_functions(&words) {
        return Err("uses functions that are allowed large errors".to_owned());
    }
    if corpus::uses_compute_derivatives(&words) {
        return Err("uses derivatives, which the driver has not in compute shaders".to_owned());
    }
    let options = kempe_front::Options {
        spec: corpus.spec(file).iter().map(|&(id, v)| (id, v as u64)).collect(),
        ..Default::default()
    };
    let modules = kempe_front::from_spirv(file, &words, &options).map_err(|e| e.to_string())?;
    let module = modules.into_iter().next().ok_or("no entry point")?;
    if let Err(e) = kempe_ir::verify::verify(&module) {
        return Err(format!("not well formed: {}", e[0]));
    }
    if module
        .resources
        .values()
        .any(|r| r.kind.is_image() || matches!(r.kind, ResKind::Sampler | ResKind::Other))
    {
        return Err("uses resources that are not buffers".to_owned());
    }
    let usage = Usage::scan(&module);
    Ok(Subject { words, module, usage })
}

/// Finds an input for a seed on which the run counts.
fn find(
    subject: &Subject,
    program: &Program,
    seed: u64,
    subgroup: u32,
) -> Result<(Inputs, Expected), String> {
    let mut found = None;
    let inputs = search(&subject.module, &subject.usage, seed, |inputs| {
        let env = match Environment::new(&subject.module, inputs, Sizes::source()) {
            Ok(env) => env,
            Err(e) => return Verdict::Useless(e),
        };
        let options = Options {
            form: Form::Source { subgroup_size: subgroup },
            step_limit: STEPS,
            bounds: true,
            races: true,
            ..Options::source()
        };
        match program.run(&env, &options) {
            Err(Stop::Fault { fault, .. }) => Verdict::Outside(fault),
            Err(stop) => Verdict::Useless(stop.to_string()),
            Ok(outcome) => {
                if let Some(race) = &outcome.race {
                    return Verdict::Useless(race.to_string());
                }
                let expected = Expected::new(&env, &outcome);
                match expected.useless() {
                    Some(why) => Verdict::Useless(why),
                    None => {
                        found = Some(expected);
                        Verdict::Fine
                    }
                }
            }
        }
    })?;
    found.map(|e| (inputs, e)).ok_or_else(|| "no run".to_owned())
}

/// Compares one module and prints one line.
fn one(corpus: &Corpus, file: &str) -> ExitCode {
    let line = |what: &str, detail: &str| println!("{what}\t{file}\t{}", detail.replace(['\n', '\t'], " "));
    let subject = match load(corpus, file) {
        Ok(s) => s,
        Err(e) => {
            line("unusable", &e);
            return ExitCode::from(1);
        }
    };
    let device = match vulkan::Device::open() {
        Ok(d) => d,
        Err(e) => {
            line("skipped", &e);
            return ExitCode::from(SKIPPED);
        }
    };
    let program = match Program::new(&subject.module) {
        Ok(p) => p,
        Err(e) => {
            line("unusable", &e.to_string());
            return ExitCode::from(1);
        }
    };
    // First what is expected, then what the driver says.
    let mut last = String::new();
    let mut runs = Vec::new();
    for seed in 0..SEEDS {
        match find(&subject, &program, seed, device.subgroup_size) {
            Ok((inputs, expected)) => runs.push((seed, inputs, expected)),
            Err(e) => last = e,
        }
    }
    if runs.len() < COUNTED_RUNS as usize {
        line("too few", &format!("{} runs count; the last that did not: {last}", runs.len()));
        return ExitCode::from(1);
    }
    let buffers = |inputs: &Inputs| -> Vec<vulkan::Buffer> {
        let uniform = |set, binding| {
            let kind = ResKind::UniformBuffer;
            subject.module.resources.values().any(|r| (r.set, r.binding, r.kind) == (set, binding, kind))
        };
        let buffer = |b: &kempe_ir::exec::BufferInput| vulkan::Buffer {
            set: b.set,
            binding: b.binding,
            element: b.element,
            uniform: uniform(b.set, b.binding),
            bytes: b.bytes.clone(),
        };
        inputs.buffers.iter().map(buffer).collect()
    };
    let push_bytes = runs.iter().map(|(_, i, _)| i.push.len()).max().unwrap_or(0);
    if push_bytes > device.max_push as usize {
        line("unusable", "more push constants than the driver takes");
        return ExitCode::from(1);
    }
    let shader = vulkan::Shader {
        spirv: &subject.words,
        entry: &subject.module.name,
        spec: corpus.spec(file),
        push_bytes,
    };
    let pipeline = match device.prepare(&shader, &buffers(&runs[0].1)) {
        Ok(p) => p,
        Err(e) => {
            line("unusable", &format!("the driver: {e}"));
            return ExitCode::from(1);
        }
    };
    let (mut distinct, mut worst, mut words, mut within) = (Vec::new(), 0.0f64, 0, 0);
    for (seed, inputs, expected) in &runs {
        let job = vulkan::Job { buffers: &buffers(inputs), push: &inputs.push, groups: inputs.groups };
        let result = match pipeline.run(&job) {
            Ok(r) => r,
            Err(e) => {
                line("unusable", &format!("the driver: {e}"));
                return ExitCode::from(1);
            }
        };
        match expected.compare(&result) {
            Ok(w) => worst = worst.max(w),
            Err(e) => {
                let push: Vec<u32> = inputs
                    .push
                    .chunks_exact(4)
                    .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect();
                let sizes: Vec<usize> = inputs.buffers.iter().map(|b| b.bytes.len()).collect();
                let input = format!("work-groups {:?}, buffers of {sizes:?}, push {push:?}", inputs.groups);
                line("MISMATCH", &format!("seed {seed}: {e}; {input}"));
                return ExitCode::from(1);
            }
        }
        words += expected.decided;
        within += expected.within;
        if !distinct.contains(&result) {
            distinct.push(result);
        }
    }
    let counted = runs.len();
    if distinct.len() < 2 {
        line("too few", &format!("{counted} runs count, all with the same output"));
        return ExitCode::from(1);
    }
    let detail = format!(
        "{counted} runs, {words} words, {within} of them within a bound, at most {:.1} % of it used",
        worst * 100.0
    );
    line("agrees", &detail);
    ExitCode::SUCCESS
}

/// Compares modules, each in a process of its own.
fn all(files: &[String], how: &[&str]) -> ExitCode {
    match vulkan::Device::open() {
        Ok(d) => println!("{}, subgroups of {}", d.name, d.subgroup_size),
        Err(e) => {
            eprintln!("skipped: {e}");
            return ExitCode::from(SKIPPED);
        }
    }
    let Ok(me) = std::env::current_exe() else { return ExitCode::from(1) };
    let next = AtomicUsize::new(0);
    let good = AtomicUsize::new(0);
    let worker = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = match Command::new(&me).args(how).arg(file).output() {
                Ok(o) => {
                    good.fetch_add(o.status.success() as usize, Ordering::Relaxed);
                    let text = String::from_utf8_lossy(&o.stdout).into_owned();
                    if text.is_empty() { format!("CRASH\t{file}\t{}\n", o.status) } else { text }
                }
                Err(e) => format!("CRASH\t{file}\t{e}\n"),
            };
            // One call a line, so that lines do not mix.
            print!("{text}");
        }
    };
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            s.spawn(worker);
        }
    });
    let good = good.into_inner();
    println!("vulkan {good}/{}", files.len());
    ExitCode::from((good != files.len() || files.is_empty()) as u8)
}

/// Compares one fragment module and prints one line.
fn one_of_stages(corpus: &Corpus, file: &str) -> ExitCode {
    let line = |what: &str, detail: &str| println!("{what}\t{file}\t{}", detail.replace(['\n', '\t'], " "));
    let device = match vulkan::Device::open() {
        Ok(d) => d,
        Err(e) => {
            line("skipped", &e);
            return ExitCode::from(SKIPPED);
        }
    };
    match stages::compare(&device, corpus, file) {
        Ok(detail) => {
            line("agrees", &detail);
            ExitCode::SUCCESS
        }
        Err((what, detail)) => {
            line(what, &detail);
            ExitCode::from(1)
        }
    }
}

/// Prints modules that can be compared: for each collection, candidates at even distances in the order of the
/// manifest, then the others, until enough are found.
fn choose(
    modules: &[(String, String)],
    want: usize,
    usable: impl Fn(&str) -> Result<(), String>,
) -> ExitCode {
    let mut collections: Vec<&str> = modules.iter().map(|(_, c)| c.as_str()).collect();
    collections.dedup();
    for collection in collections {
        let files: Vec<&str> =
            modules.iter().filter(|(_, c)| c == collection).map(|(f, _)| f.as_str()).collect();
        let stride = (files.len() / (want * 2).max(1)).max(1);
        let order = (0..stride).flat_map(|s| files.iter().skip(s).step_by(stride));
        let mut found = 0;
        for file in order {
            if found == want {
                break;
            }
            match usable(file) {
                Ok(()) => {
                    println!("{file}");
                    found += 1;
                }
                Err(e) => eprintln!("{file}: {}", e.lines().next().unwrap_or_default()),
            }
        }
    }
    ExitCode::SUCCESS
}

fn choose_compute(corpus: &Corpus, want: usize) -> ExitCode {
    let subgroup = vulkan::Device::open().map_or(8, |d| d.subgroup_size);
    choose(&corpus.modules, want, |file| {
        let subject = load(corpus, file)?;
        if subject.words.len() * 4 > LARGEST {
            return Err("larger than what the driver compiles in short time".to_owned());
        }
        let program = Program::new(&subject.module).map_err(|e| e.to_string())?;
        let mut outputs: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut last = "the outputs do not differ".to_owned();
        for seed in 0..SEEDS {
            match find(&subject, &program, seed, subgroup) {
                Ok((_, e)) if !outputs.contains(&e.buffers) => outputs.push(e.buffers),
                Ok(_) => {}
                Err(e) => last = e,
            }
            if outputs.len() >= COUNTED_RUNS as usize {
                return Ok(());
            }
        }
        Err(last)
    })
}
