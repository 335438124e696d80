//! `kempe corpus`: whole collections of shaders.

use crate::Exit;
use crate::args::{CodeArgs, LimitArgs, define, spec, target_parser};
use crate::{compile, io};
use clap::{Subcommand, ValueEnum};
use kempe::compile::{Keep, Options, Source, Status};
use kempe::ir::io::TargetFormat;
use kempe::{Level, Target};
use kempe_corpus::file::{self, Job};
use kempe_corpus::{compare, find, load, pool, report, run, worker};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

#[derive(clap::Args)]
pub struct Corpus {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand)]
enum What {
    /// Compile every shader below a folder, one line of JSON for each result; an interrupted run is taken up again
    Run(Run),
    /// Get the public corpus from the package registries: archives, programs, SPIR-V and a manifest
    Fetch(Fetch),
    /// Compare two runs, or a run with a table of reference figures
    Compare(Compare),
}

#[derive(clap::Args)]
struct Run {
    /// Where the shaders are: .spv, .wgsl, .comp, .vert, .frag, …
    folder: PathBuf,
    /// The GPUs, separated by commas
    #[arg(short, long, required = true, value_delimiter = ',', value_parser = target_parser())]
    target: Vec<&'static dyn Target>,
    /// The file of the run
    #[arg(short, long)]
    output: PathBuf,
    /// Only these stages, separated by commas: compute, vertex, …
    #[arg(long, value_delimiter = ',', value_parser = stage)]
    stage: Vec<&'static str>,
    /// Number of shaders at a time [default: one for each core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Start anew, whatever is in the file
    #[arg(long)]
    restart: bool,
    /// Define a preprocessor macro (GLSL, HLSL)
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = define)]
    define: Vec<(String, Option<String>)>,
    /// Look for included files here (GLSL, HLSL)
    #[arg(short = 'I', value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Value of a specialisation constant of every shader that has it
    #[arg(long, value_name = "ID=VALUE", value_parser = spec)]
    spec: Vec<(u32, u64)>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Take jobs from standard input
    #[arg(long, hide = true)]
    worker: bool,
}

#[derive(clap::Args)]
struct Fetch {
    /// Where everything goes: archives, src, spv, MANIFEST.tsv
    folder: PathBuf,
    /// Only these collections, separated by commas
    #[arg(long, value_delimiter = ',')]
    collection: Vec<String>,
    /// Only what this manifest names; its checksums are compared
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Archives that are there already
    #[arg(long, value_name = "FOLDER")]
    archives: Option<PathBuf>,
    /// Download nothing
    #[arg(long)]
    offline: bool,
    /// Say what failed, and why
    #[arg(short, long)]
    verbose: bool,
}

#[derive(clap::Args)]
struct Compare {
    /// A run, or a table with the columns file, stage, inst, …, status
    before: PathBuf,
    /// The same
    after: PathBuf,
    /// Only this target
    #[arg(short, long, value_parser = target_parser())]
    target: Option<&'static dyn Target>,
    /// Only these stages, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = stage)]
    stage: Vec<&'static str>,
    /// Only these collections, separated by commas
    #[arg(long, value_delimiter = ',')]
    collection: Vec<String>,
    /// Figures only of pairs with the same number of loops
    #[arg(long)]
    equal_loops: bool,
    /// How much worse statistics may get, in percent: all but the time, or the one named [default: not at all]
    #[arg(long, value_name = "[STATISTIC=]PERCENT", value_parser = budget)]
    budget: Vec<(Option<String>, f64)>,
    /// Number of extremes shown for each statistic and direction
    #[arg(long, value_name = "N", default_value = "1")]
    extremes: usize,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Json,
}

fn stage(text: &str) -> Result<&'static str, String> {
    find::stage(text)
        .ok_or_else(|| "compute, vertex, fragment, geometry, tess-control, tess-eval or kernel".to_owned())
}

fn budget(text: &str) -> Result<(Option<String>, f64), String> {
    let (name, value) = match text.rsplit_once('=') {
        Some((name, value)) => (Some(name.to_owned()), value),
        None => (None, text),
    };
    let known = |name: &String| compare::statistics_with_budget().any(|known| known == name);
    if name.as_ref().is_some_and(|name| !known(name)) {
        return Err(format!(
            "the statistics are {}",
            compare::statistics_with_budget().collect::<Vec<_>>().join(", ")
        ));
    }
    match value.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok((name, percent / 100.0)),
        _ => Err("written PERCENT or STATISTIC=PERCENT".to_owned()),
    }
}

pub fn corpus(args: &Corpus) -> Exit {
    match &args.command {
        What::Run(args) if args.worker => serve(args),
        What::Run(args) => collection(args),
        What::Fetch(args) => fetch(args),
        What::Compare(args) => comparison(args),
    }
}

/// Fetches collections and says for each how many modules there are.
fn fetch(args: &Fetch) -> Exit {
    let wanted = args.manifest.as_ref().map(|path| {
        let bytes = io::read(path)?;
        kempe_fetch::manifest::read(&String::from_utf8_lossy(&bytes))
    });
    let wanted = match wanted.transpose() {
        Ok(wanted) => wanted,
        Err(message) => {
            let path = args.manifest.as_ref().map(|p| p.display().to_string()).unwrap_or_default();
            return fail(&format!("{path}: {message}"));
        }
    };
    let plan = kempe_fetch::Plan {
        folder: args.folder.clone(),
        collections: args.collection.clone(),
        archives: args.archives.clone(),
        wanted,
        offline: args.offline,
    };
    let outcomes = match kempe_fetch::fetch(&plan) {
        Ok(outcomes) => outcomes,
        Err(message) => return fail(&message),
    };
    let mut out =
        format!("{:14} {:>7} {:>7} {:>14} {:>7}\n", "", "modules", "wanted", "same checksum", "failed");
    let mut missing = false;
    for o in &outcomes {
        let (wanted, same) = match o.wanted {
            Some(n) => (n.to_string(), o.same.to_string()),
            None => (String::new(), String::new()),
        };
        let note = if o.kept { "  (from before)" } else { "" };
        out.push_str(&format!(
            "{:14} {:>7} {wanted:>7} {same:>14} {:>7}{note}\n",
            o.collection,
            o.made,
            o.failed.len()
        ));
        if let Some(why) = &o.missing {
            missing = true;
            eprintln!("warning: {}: {why}", o.collection);
        }
        for (name, why) in o.failed.iter().filter(|_| args.verbose) {
            eprintln!("note: {}/{name}: {why}", o.collection);
        }
    }
    match io::out(out.as_bytes()) {
        Ok(()) if missing => Exit::Wrong,
        Ok(()) => Exit::Fine,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> Exit {
    eprintln!("error: {message}");
    Exit::Wrong
}

/// The worker's end of a run.
fn serve(args: &Run) -> Exit {
    let served = worker::serve(|job, contents| {
        let options = Options {
            targets: args.target.iter().copied().filter(|target| target.name() == job.target).collect(),
            front: kempe::FrontOptions {
                entry: None,
                spec: args.spec.clone(),
                defines: args.define.clone(),
                include_dirs: args.include.clone(),
                stage: None,
            },
            code: compile::code_options(&args.code),
            keep: Keep::default(),
            limits: compile::limits(&args.limits),
        };
        let results =
            compile::results_of(&Source { name: job.file.clone(), contents, stage: None }, &options);
        // What reached a limit or panicked may still run or hold memory.
        let spent = results.iter().any(|r| matches!(r.status, Status::Limit | Status::Bug));
        let wanted = |stage: &str| args.stage.is_empty() || stage.is_empty() || args.stage.contains(&stage);
        let rows = results.iter().filter(|r| wanted(r.stage)).map(kempe::json::line).collect();
        worker::Done { rows, spent }
    });
    served.map_or_else(|message| fail(&message), |()| Exit::Fine)
}

fn collection(args: &Run) -> Exit {
    if !args.folder.is_dir() {
        return fail(&format!("{}: is no folder", args.folder.display()));
    }
    let found = find::shaders(&args.folder, &args.stage);
    for message in &found.unreadable {
        eprintln!("warning: {message}");
    }
    if found.without_stage > 0 {
        let count = found.without_stage;
        eprintln!("note: {count} files .glsl and .hlsl are left out, their names do not say the stage");
    }
    let targets: Vec<&str> = args.target.iter().map(|target| target.name()).collect();
    let mut jobs = Vec::new();
    for path in &found.shaders {
        let file = path.to_string_lossy();
        jobs.extend(targets.iter().map(|t| Job { file: file.clone().into_owned(), target: (*t).to_owned() }));
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return fail(&format!("the program does not find itself: {error}")),
    };
    // The worker gets the same command line: `kempe corpus run …`.
    let rest: Vec<_> = std::env::args_os().skip(3).collect();
    let command = || {
        let mut command = Command::new(&program);
        command.args(["corpus", "run", "--worker"]).args(&rest);
        command
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let limits = compile::limits(&args.limits);
    let plan = run::Plan {
        header: file::header(kempe::json::SCHEMA, kempe::VERSION, &args.folder, &targets, options(args)),
        jobs,
        output: &args.output,
        restart: args.restart,
        workers: args.jobs.map_or(cores, usize::from),
        limits: pool::Limits { time: limits.time, memory: limits.memory },
        program: &command,
    };
    let summary = match run::run(&plan) {
        Ok(summary) => summary,
        Err(message) => return fail(&message),
    };
    let kept =
        if summary.kept > 0 { format!(" ({} were there already)", summary.kept) } else { String::new() };
    let counts: Vec<String> = summary.by_status.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "no results".to_owned() } else { counts.join(", ") };
    eprintln!("{} compiles{kept}: {counts}", plan.jobs.len());
    if summary.by_status.contains_key("bug") { Exit::Bug } else { Exit::Fine }
}

/// The options that results depend on, for the header.
fn options(args: &Run) -> serde_json::Value {
    let level = match args.code.optimise {
        Level::O0 => 0,
        Level::O1 => 1,
        Level::O2 => 2,
    };
    let state = compile::code_options(&args.code).state;
    let name = |format| TargetFormat::NAMES.iter().find(|(_, f)| *f == format).map_or("", |(name, _)| *name);
    json!({
        "stages": args.stage,
        "optimise": level,
        "threads": args.code.threads,
        "max_registers": args.code.max_registers,
        "force_spill": args.code.force_spill,
        "colour": if args.code.colour == crate::args::Colour::Graph { "graph" } else { "scan" },
        "without": args.code.without,
        "state": {
            "targets": state.targets.map(name),
            "depth": state.depth,
            "points": state.points,
            "samples": state.samples,
        },
        "define": args.define,
        "include": args.include.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "spec": args.spec,
        "time_limit": args.limits.time_limit.as_secs_f64(),
        "memory_limit": args.limits.memory_limit,
    })
}

fn comparison(args: &Compare) -> Exit {
    let read = |path: &PathBuf| {
        let name = path.display();
        let bytes = io::read(path).map_err(|message| format!("{name}: {message}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name}: is not text"))?;
        let results =
            load::parse(&name.to_string(), &text).map_err(|message| format!("{name}: {message}"))?;
        if results.torn {
            eprintln!("warning: {name}: the run was interrupted; its last line is left out");
        }
        Ok::<load::Results, String>(results)
    };
    let options = compare::Options {
        target: args.target.map(|target| target.name().to_owned()),
        stages: args.stage.iter().map(|stage| (*stage).to_owned()).collect(),
        collections: args.collection.clone(),
        equal_loops: args.equal_loops,
        extremes: args.extremes,
    };
    let compared =
        read(&args.before).and_then(|a| read(&args.after).and_then(|b| compare::compare(&a, &b, &options)));
    let compared = match compared {
        Ok(compared) => compared,
        Err(message) => return fail(&message),
    };
    let mut limits = compare::Budget::default();
    for (name, limit) in &args.budget {
        match name {
            Some(name) => drop(limits.named.insert(name.clone(), *limit)),
            None => limits.all = Some(*limit),
        }
    }
    let beyond = compare::beyond(&compared, &limits);
    let text = match args.format {
        Format::Text => report::text(&compared, false),
        Format::Markdown => report::text(&compared, true),
        Format::Json => report::json(&compared, &beyond),
    };
    if let Err(message) = io::out(text.as_bytes()) {
        return fail(&message);
    }
    for line in &beyond {
        eprintln!("budget: {line}");
    }
    if beyond.is_empty() { Exit::Fine } else { Exit::Budget }
}
