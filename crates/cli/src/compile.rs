//! `kempe compile`.

use crate::Exit;
use crate::args::{Colour, Compile, Emit, FrontArgs, LimitArgs, ReportFormat};
use crate::{code, io, table};
use kempe::Variant;
use kempe::compile::{CompileResult, Keep, Options, Source, Status};
use kempe::ir::io::PipelineState;
use kempe::limits::Limits;
use kempe_shader_test::ShaderTest;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A source as the command line names it.
pub fn source(path: &Path, front: &FrontArgs) -> Source {
    Source {
        name: path.to_string_lossy().into_owned(),
        contents: io::read(path),
        stage: front.stage.map(Into::into),
    }
}

pub fn front_options(args: &FrontArgs) -> kempe::FrontOptions {
    kempe::FrontOptions {
        entry: args.entry.clone(),
        spec: args.spec.clone(),
        defines: args.define.clone(),
        include_dirs: args.include.clone(),
        stage: None,
    }
}

/// The results of a source: of all shaders in it.
pub fn results_of(source: &Source, options: &Options) -> Vec<CompileResult> {
    let test = source.name.ends_with(".shader_test").then_some(source.contents.as_ref().ok()).flatten();
    match test.and_then(|bytes| ShaderTest::parse(bytes).ok()).filter(|test| !test.shaders.is_empty()) {
        Some(test) => kempe_shader_test::program::compile_all(&source.name, &test, options),
        None => kempe::compile::compile(source, options),
    }
}

pub fn limits(args: &LimitArgs) -> Limits {
    Limits { time: args.time_limit, memory: args.memory_limit }
}

pub fn compile(args: &Compile) -> Exit {
    if args.emit.is_some() && args.output.is_none() && args.format == ReportFormat::Json {
        eprintln!(
            "error: --format json and --emit both write to standard output: say where --emit goes with -o"
        );
        return Exit::Usage;
    }
    let options = Options {
        targets: args.target.clone(),
        front: front_options(&args.front),
        code: kempe::compile::CodeOptions { verify: args.verify, ..code_options(&args.code) },
        keep: Keep {
            ir: args.emit == Some(Emit::Ir),
            mir: args.emit == Some(Emit::Mir),
            findings: args.warn,
            ..Keep::default()
        },
        limits: limits(&args.limits),
    };
    let mut results = Vec::new();
    if args.link {
        let sources: Vec<Source> = args.files.iter().map(|file| source(file, &args.front)).collect();
        let pair = match &sources[..] {
            [both] => [both, both],
            // In any order, as far as the names tell.
            [a, b] if a.name.ends_with(".frag") || b.name.ends_with(".vert") => [b, a],
            [a, b] => [a, b],
            _ => {
                eprintln!("error: --link takes a vertex and a fragment shader");
                return Exit::Usage;
            }
        };
        results = kempe::link::compile_linked(pair, &options);
        complain(&results);
    }
    for file in args.files.iter().filter(|_| !args.link) {
        let of_file = results_of(&source(file, &args.front), &options);
        complain(&of_file);
        results.extend(of_file);
    }
    let shown = match (args.emit, args.format) {
        (Some(emit), format) => emit_all(args, emit, &results).and_then(|()| match format {
            ReportFormat::Json => io::out(kempe::json::report(&results, args.time_passes).as_bytes()),
            ReportFormat::Table => Ok(()),
        }),
        (None, ReportFormat::Json) => io::out(kempe::json::report(&results, args.time_passes).as_bytes()),
        (None, ReportFormat::Table) => io::out(table::results(&results).as_bytes()),
    };
    if args.time_passes && args.format == ReportFormat::Table {
        eprint!("{}", table::passes(&results));
    }
    let exit = results.iter().map(|r| exit_of(r.status)).max().unwrap_or(Exit::Fine);
    match shown {
        Ok(()) => exit,
        Err(message) => {
            eprintln!("error: {message}");
            exit.max(Exit::Wrong)
        }
    }
}

pub fn code_options(args: &crate::args::CodeArgs) -> kempe::compile::CodeOptions {
    let mut options = kempe::compile::CodeOptions {
        level: args.optimise,
        threads: args.threads,
        max_registers: args.max_registers,
        force_spill: args.force_spill,
        engine: match args.colour {
            Colour::Best => kempe::Engine::Best,
            Colour::Scan => kempe::Engine::Scan,
            Colour::Graph => kempe::Engine::Graph,
        },
        verify: false,
        state: state(&args.state),
        ..kempe::compile::CodeOptions::default()
    };
    for part in &args.without {
        options.leave_out(part);
    }
    options
}

fn state(args: &crate::args::StateArgs) -> PipelineState {
    let mut state = PipelineState {
        depth: !args.no_depth,
        points: args.points,
        samples: args.samples,
        ..PipelineState::default()
    };
    for &(target, format) in &args.target_format {
        if let Some(slot) = state.targets.get_mut(target) {
            *slot = format;
        }
    }
    state
}

pub fn exit_of(status: Status) -> Exit {
    match status {
        Status::Ok => Exit::Fine,
        Status::Error | Status::Limit => Exit::Wrong,
        Status::Bug => Exit::Bug,
    }
}

/// Says what is wrong with the results of one file. What is the same for several targets is said once.
pub fn complain(results: &[CompileResult]) {
    let mut said = BTreeSet::new();
    for result in results {
        if result.status == Status::Bug {
            bug(result);
        } else if said.insert(&result.report) {
            eprint!("{}", result.report);
        }
    }
}

/// Everything that is needed to report a defect.
fn bug(result: &CompileResult) {
    eprint!("{}", result.report);
    eprintln!(
        "  This is a bug in Kempe, not in the shader. Please report it with the shader and these lines:"
    );
    let entry = if result.entry.is_empty() { "-" } else { &result.entry };
    eprintln!("    kempe {} on {} {}", kempe::VERSION, std::env::consts::OS, std::env::consts::ARCH);
    let (file, target, variant) = (&result.file, result.target, result.variant.name());
    eprintln!("    file {file}, entry point {entry}, target {target}, variant {variant}");
    let line: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    eprintln!("    command line: kempe {}", line.join(" "));
}

/// The text or bytes that `--emit` asks for.
fn emitted(emit: Emit, result: &CompileResult) -> Option<Vec<u8>> {
    let artifact = result.artifact.as_ref();
    match emit {
        Emit::Asm => artifact.map(|a| {
            let target = kempe::target(&a.target);
            target.map_or(Vec::new(), |t| code::listing(t, &a.code, false, false).into_bytes())
        }),
        Emit::Bin => artifact.map(|a| a.code.clone()),
        Emit::Artifact => artifact.map(|a| kempe::artifact::write(a).into_bytes()),
        Emit::Ir => result.ir.clone().map(String::into_bytes),
        Emit::Mir => result.mir.clone().map(String::into_bytes),
    }
}

/// Where one result goes in a folder.
fn name_in(folder: &Path, emit: Emit, result: &CompileResult) -> PathBuf {
    let extension = match emit {
        Emit::Asm => "s",
        Emit::Bin => "bin",
        Emit::Ir => "ir",
        Emit::Mir => "mir",
        Emit::Artifact => "json",
    };
    let file = if result.file == "-" { "stdin" } else { &result.file };
    let file =
        Path::new(file).file_name().map_or_else(|| "shader".to_owned(), |n| n.to_string_lossy().into_owned());
    // An entry point may be called anything.
    let entry: String =
        result.entry.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let variant = match result.variant {
        Variant::Render => String::new(),
        other => format!(".{}", other.name()),
    };
    folder.join(format!("{file}.{entry}.{}{variant}.{extension}", result.target))
}

fn emit_all(args: &Compile, emit: Emit, results: &[CompileResult]) -> Result<(), String> {
    let parts: Vec<(&CompileResult, Vec<u8>)> =
        results.iter().filter_map(|r| emitted(emit, r).map(|bytes| (r, bytes))).collect();
    let Some(output) = &args.output else {
        for (i, (result, bytes)) in parts.iter().enumerate() {
            if emit != Emit::Bin && parts.len() > 1 {
                let gap = if i == 0 { "" } else { "\n" };
                let comment = if matches!(emit, Emit::Asm) { "#" } else { ";" };
                let variant = if result.variant == Variant::Render { "" } else { " binning" };
                let (file, entry, target) = (&result.file, &result.entry, result.target);
                let head = format!("{gap}{comment} {file} {entry} {target}{variant}\n");
                // JSON has no comments; its objects say what they are.
                if emit != Emit::Artifact {
                    io::out(head.as_bytes())?;
                }
            }
            io::out(bytes)?;
        }
        return Ok(());
    };
    let write = |path: &Path, bytes: &[u8]| {
        io::write(path, bytes).map_err(|message| format!("{}: {message}", path.display()))
    };
    if output.is_dir() {
        for (result, bytes) in &parts {
            write(&name_in(output, emit, result), bytes)?;
        }
        return Ok(());
    }
    match parts.as_slice() {
        [] => Ok(()),
        [(_, bytes)] => write(output, bytes),
        _ => Err(format!("{}: {} results go into one file: name a folder", output.display(), parts.len())),
    }
}
