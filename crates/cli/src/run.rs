//! `kempe run`: a shader, an artifact or a raw program on the simulator, or a shader with the interpreter.

use crate::Exit;
use crate::args::{Binding, BindingIs, Run};
use crate::compile::{self, code_options, front_options, limits};
use crate::{code, io};
use kempe::compile::{Keep, Options, Source};
use kempe::data::{self, Element};
use kempe::exec::{BufferInput, ImageInput, Inputs};
use kempe::ir::ResKind;
use kempe::ir::image::{Format, ImageDesc};
use kempe::limits::{Stopped, guarded};
use kempe::run::{BufferOutput, RunError, RunOptions, RunReport};
use kempe_shader_test::Verdict;
use kempe_shader_test::program::On;
use std::fmt::Write;
use std::path::Path;

/// Why a run does not give a result: what to say and how to end.
pub struct Failure(pub Exit, pub String);

pub type Res<T> = Result<T, Failure>;

pub fn wrong<T>(message: impl Into<String>) -> Res<T> {
    Err(Failure(Exit::Wrong, message.into()))
}

/// What is run.
enum Program {
    Artifact(Box<kempe::Artifact>),
    /// With the program that code was selected from.
    Compiled(Box<kempe::Artifact>, Box<kempe::ir::Module>),
    /// For the interpreter.
    Module(Box<kempe::ir::Module>),
}

impl Program {
    fn resources(&self) -> Vec<kempe::ir::Resource> {
        match self {
            Program::Artifact(artifact) | Program::Compiled(artifact, _) => artifact.resources.clone(),
            Program::Module(module) => module.resources.values().cloned().collect(),
        }
    }
}

pub fn run(args: &Run) -> Exit {
    let result = match () {
        () if args.raw => raw(args),
        () if args.file.extension().is_some_and(|e| e == "shader_test") => shader_test(args),
        () if crate::draw::is_wanted(args) => crate::draw::run(args),
        () => ordinary(args),
    };
    match result {
        Ok(()) => Exit::Fine,
        Err(Failure(exit, message)) => {
            if !message.is_empty() {
                io::complain(&args.file, &message);
            }
            exit
        }
    }
}

fn from_run_error(error: RunError) -> Failure {
    Failure(Exit::Wrong, error.to_string())
}

pub fn from_stopped(stopped: Stopped) -> Failure {
    match stopped {
        Stopped::Panic(report) => {
            Failure(Exit::Bug, format!("{report}\n  This is a bug in Kempe: please report it"))
        }
        Stopped::Time(_) | Stopped::Memory(_) => Failure(Exit::Wrong, stopped.to_string()),
    }
}

/// A file that says itself what is run and what must come out.
fn shader_test(args: &Run) -> Res<()> {
    let on = match (args.interpret, args.target) {
        (true, _) => On::Interpreter,
        (false, Some(target)) => On::Target(target),
        (false, None) => return wrong("is run on a target (-t) or with --interpret"),
    };
    let bytes = io::read(&args.file).or_else(wrong)?;
    let options = kempe_shader_test::Options { on, limits: limits(&args.limits) };
    match kempe_shader_test::run::run(&args.file.to_string_lossy(), &bytes, &options) {
        Verdict::Pass => Ok(()),
        Verdict::Fail(message) => Err(Failure(Exit::Differs, message)),
        Verdict::Refused(why) => wrong(format!("does not compile: {why}")),
        Verdict::Skip(what) => wrong(format!("this test cannot be run: {what}")),
    }
}

pub fn run_options(args: &Run) -> RunOptions {
    RunOptions { schedule: args.schedule, ..RunOptions::default() }
}

fn ordinary(args: &Run) -> Res<()> {
    let (program, drawn) = load(args)?;
    let resources = program.resources();
    let inputs = inputs(args, drawn, &resources)?;
    kempe::run::check_inputs(&resources, &inputs).map_err(from_run_error)?;
    // Before the run, so that a slip of the keyboard does not cost it.
    for binding in args.print.iter().chain(args.write.iter().map(|w| &w.binding)) {
        known(binding, &inputs)?;
    }
    let mut expected = Vec::new();
    for expect in &args.expect {
        known(&expect.binding, &inputs)?;
        expected.push((expect, contents(&expect.value, None)?));
    }
    let options = run_options(args);
    let (artifact, lowered) = match program {
        Program::Artifact(artifact) => (Some(artifact), None),
        Program::Compiled(artifact, lowered) => (Some(artifact), Some(lowered)),
        Program::Module(module) => (None, Some(module)),
    };
    let shown = artifact.clone().filter(|_| args.counts);
    let job = move || match (artifact, lowered) {
        (Some(artifact), lowered) => {
            let report = kempe::run::run_artifact(&artifact, &inputs, &options)?;
            let same =
                lowered.map(|lowered| kempe::run::compare(&lowered, &artifact, &inputs, &options, &report));
            Ok((report, same.transpose()?.flatten()))
        }
        (None, Some(module)) => Ok((kempe::run::interpret(&module, &inputs, &options)?, None)),
        (None, None) => Err(RunError::Setup("there is nothing to run".to_owned())),
    };
    let report = guarded(limits(&args.limits), job).map_err(from_stopped)?;
    let (report, unequal) = report.map_err(from_run_error)?;
    for warning in &report.warnings {
        eprintln!("{}: warning: {warning}", io::shown(&args.file));
    }
    let mut out = String::new();
    for binding in &args.print {
        if let Some(buffer) = find(&report, binding) {
            print(&mut out, binding, &buffer.bytes);
        }
    }
    if let Some(artifact) = shown {
        counts(&mut out, &artifact.target, &artifact.code, &report);
    }
    io::out(out.as_bytes()).map_err(|message| Failure(Exit::Wrong, message))?;
    for write in &args.write {
        if let Some(buffer) = find(&report, &write.binding) {
            let path = Path::new(&write.value);
            io::write(path, &buffer.bytes)
                .map_err(|message| Failure(Exit::Wrong, format!("{}: {message}", path.display())))?;
        }
    }
    let mut differences = 0;
    if let Some(message) = unequal {
        io::complain(&args.file, &format!("simulator and interpreter differ: {message}"));
        differences += 1;
    }
    for (expect, bytes) in &expected {
        if let Some(buffer) = find(&report, &expect.binding)
            && let Some(message) = compare(expect, &buffer.bytes, bytes)
        {
            io::complain(&args.file, &message);
            differences += 1;
        }
    }
    if differences != 0 { Err(Failure(Exit::Differs, String::new())) } else { Ok(()) }
}

/// Makes or reads what is to be run, with random inputs if the source is there and they are asked for.
fn load(args: &Run) -> Res<(Program, Option<Inputs>)> {
    let bytes = match io::read(&args.file) {
        Ok(bytes) => bytes,
        Err(message) => return wrong(message),
    };
    let json = bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    if json {
        if args.interpret {
            return wrong("is an artifact: the interpreter runs shaders");
        }
        if args.compare {
            return wrong("is an artifact: comparing needs the shader");
        }
        let text = String::from_utf8_lossy(&bytes);
        let artifact = kempe::artifact::read(&text).map_err(|e| Failure(Exit::Wrong, e.to_string()))?;
        return match args.target {
            Some(target) if target.name() != artifact.target => {
                wrong(format!("is an artifact for {}, not for {}", artifact.target, target.name()))
            }
            _ => Ok((Program::Artifact(Box::new(artifact)), None)),
        };
    }
    let source = Source {
        name: args.file.to_string_lossy().into_owned(),
        contents: Ok(bytes),
        stage: args.front.stage.map(Into::into),
    };
    let Some(target) = args.target.or(args.interpret.then(|| kempe::targets()[0])) else {
        return Err(Failure(Exit::Usage, "for which GPU? Say it with -t, or use --interpret".to_owned()));
    };
    let options = Options {
        targets: vec![target],
        front: front_options(&args.front),
        code: code_options(&args.code),
        keep: Keep { lowered: args.compare, ..Keep::default() },
        limits: limits(&args.limits),
    };
    let mut drawn = None;
    if args.interpret || args.random.is_some() {
        let module = kempe::compile::source_module(&source, &options).map_err(|result| {
            compile::complain(std::slice::from_ref(&*result));
            Failure(compile::exit_of(result.status), String::new())
        })?;
        drawn = args.random.map(|seed| kempe::run::random_inputs(&module, args.groups, seed));
        if args.interpret {
            return Ok((Program::Module(Box::new(module)), drawn));
        }
    }
    let mut results = kempe::compile::compile(&source, &options);
    compile::complain(&results);
    if let Some(exit) = results.iter().map(|r| compile::exit_of(r.status)).max().filter(|e| *e != Exit::Fine)
    {
        return Err(Failure(exit, String::new()));
    }
    if results.len() > 1 {
        let names: Vec<String> = results.iter().map(|r| format!("`{}`", r.entry)).collect();
        return wrong(format!("there are several entry points, choose one with -e: {}", names.join(", ")));
    }
    match results.pop().map(|r| (r.artifact, r.lowered)) {
        Some((Some(artifact), None)) => Ok((Program::Artifact(Box::new(artifact)), drawn)),
        Some((Some(artifact), Some(lowered))) => {
            Ok((Program::Compiled(Box::new(artifact), Box::new(lowered)), drawn))
        }
        _ => wrong("nothing was compiled"),
    }
}

/// Bytes from a description: a file, or what [`data::inline`] and `random:` take.
pub fn contents(text: &str, random: Option<&mut kempe::inputs::Random>) -> Res<Vec<u8>> {
    if let Some(count) = text.strip_prefix("random:")
        && let Some(random) = random
    {
        return match count.parse::<usize>() {
            Ok(n) if n <= 1 << 30 => {
                let mut bytes = Vec::with_capacity(n + 8);
                while bytes.len() < n {
                    bytes.extend(random.bits().to_le_bytes());
                }
                bytes.truncate(n);
                Ok(bytes)
            }
            _ => wrong(format!("`{text}`: a number of bytes follows `random:`")),
        };
    }
    match data::inline(text) {
        Some(result) => result.or_else(wrong),
        None => io::read(Path::new(text)).or_else(|message| wrong(format!("{text}: {message}"))),
    }
}

/// Push constants: as [`contents`], or hexadecimal digits.
pub fn push(text: &str, random: &mut kempe::inputs::Random) -> Res<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|&[h, l]| Some(((h as char).to_digit(16)? << 4 | (l as char).to_digit(16)?) as u8))
        .collect();
    match bytes {
        Some(bytes) if rest.is_empty() && !Path::new(text).exists() => Ok(bytes),
        _ => contents(text, Some(random)),
    }
}

/// An image from a description `WIDTHxHEIGHT:FORMAT:CONTENTS` of which format and contents may be missing.
fn image(
    given: &BindingIs,
    resources: &[kempe::ir::Resource],
    random: &mut kempe::inputs::Random,
) -> Res<ImageInput> {
    let BindingIs { binding, value } = given;
    let &Binding { set, binding: number, element, .. } = binding;
    let declared = resources.iter().find(|r| r.kind.is_image() && (r.set, r.binding) == (set, number));
    let Some(info) = declared.and_then(|r| r.image) else {
        return wrong(format!("there is no image at {set}:{number}"));
    };
    let mut parts = value.splitn(3, ':');
    let size = parts.next().unwrap_or_default();
    let axes = info.axes().len();
    let numbers: Option<Vec<u32>> = size.split('x').map(|n| n.parse().ok()).collect();
    let Some(numbers) = numbers.filter(|n| n.len() == axes) else {
        let example = ["64", "64x64", "64x64x4"][axes.clamp(1, 3) - 1];
        return wrong(format!("{binding}: `{size}` is not a size like {example}"));
    };
    let format = match parts.next() {
        None | Some("") => info.storage_format(),
        Some(name) => match Format::from_name(name) {
            Some(format) => format,
            None => return wrong(format!("{binding}: `{name}` is not a format like rgba8 or r32ui")),
        },
    };
    let bytes = parts.next().map_or(Ok(Vec::new()), |text| contents(text, Some(random)))?;
    let desc = ImageDesc::new(&info, format, &numbers);
    Ok(ImageInput { set, binding: number, element, desc, bytes })
}

fn inputs(args: &Run, drawn: Option<Inputs>, resources: &[kempe::ir::Resource]) -> Res<Inputs> {
    let mut random = kempe::inputs::Random(args.random.unwrap_or(0));
    let mut inputs = Inputs::new(args.groups);
    for BindingIs { binding, value } in &args.buffer {
        let &Binding { set, binding, element, .. } = binding;
        let bytes = contents(value, Some(&mut random))?;
        inputs.buffers.push(BufferInput { set, binding, element, bytes });
    }
    for image in &args.image {
        inputs.images.push(self::image(image, resources, &mut random)?);
    }
    if let Some(text) = &args.push {
        inputs.push = push(text, &mut random)?;
    }
    if args.random.is_none() {
        return Ok(inputs);
    }
    // What was not given is drawn: from what the source does with it if that is known.
    let drawn = drawn.unwrap_or_else(|| draw(args.groups, resources, &mut random));
    for buffer in drawn.buffers {
        let place = (buffer.set, buffer.binding, buffer.element);
        // Several resources may share a binding.
        if !inputs.buffers.iter().any(|b| (b.set, b.binding, b.element) == place) {
            inputs.buffers.push(buffer);
        }
    }
    for image in drawn.images {
        let place = (image.set, image.binding, image.element);
        if !inputs.images.iter().any(|i| (i.set, i.binding, i.element) == place) {
            inputs.images.push(image);
        }
    }
    if args.push.is_none() {
        inputs.push = drawn.push;
    }
    Ok(inputs)
}

/// Small integers for everything, if nothing but the resources is known.
fn draw(groups: [u32; 3], resources: &[kempe::ir::Resource], random: &mut kempe::inputs::Random) -> Inputs {
    let mut inputs = Inputs::new(groups);
    for r in resources {
        let tail = r.tail_stride.saturating_mul(RANDOM_TAIL);
        let words = r.size.saturating_add(tail).clamp(16, 1 << 24) / 4;
        let mut bytes =
            || (0..words).flat_map(|_| (random.below(8) as u32).to_le_bytes()).collect::<Vec<u8>>();
        match r.kind {
            ResKind::StorageBuffer | ResKind::UniformBuffer => {
                for element in 0..r.elements.clamp(1, 8) {
                    let (set, binding) = (r.set, r.binding);
                    inputs.buffers.push(BufferInput { set, binding, element, bytes: bytes() });
                }
            }
            ResKind::PushConstants => inputs.push = bytes(),
            _ => {}
        }
    }
    inputs
}

/// Elements of a run-time array that [`draw`] makes.
const RANDOM_TAIL: u32 = 1024;

fn known(binding: &Binding, inputs: &Inputs) -> Res<()> {
    let place = (binding.set, binding.binding, binding.element);
    if inputs.buffers.iter().any(|b| (b.set, b.binding, b.element) == place)
        || inputs.images.iter().any(|i| (i.set, i.binding, i.element) == place)
    {
        return Ok(());
    }
    wrong(format!("no buffer is bound at {binding}: give it with --buffer {binding}=…"))
}

fn find<'a>(report: &'a RunReport, binding: &Binding) -> Option<&'a BufferOutput> {
    let place = (binding.set, binding.binding, binding.element);
    report.buffers.iter().find(|b| (b.set, b.binding, b.element) == place)
}

/// A buffer as rows of numbers, each row with the number of its first element.
fn print(out: &mut String, binding: &Binding, bytes: &[u8]) {
    let element = binding.ty.unwrap_or(Element::Unsigned(4));
    let values: Vec<String> = bytes.chunks(element.bytes()).map(|b| element.value(b).to_string()).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0);
    // As many as fit on a line of a terminal, in a round number.
    let per_row = [16, 8, 4, 2].into_iter().find(|n| n * (width + 1) <= 72).unwrap_or(1);
    // Writing into a String cannot fail.
    writeln!(out, "{binding}: {} bytes", bytes.len()).unwrap_or_default();
    for (i, row) in values.chunks(per_row).enumerate() {
        write!(out, "{:>6}:", i * per_row).unwrap_or_default();
        for value in row {
            write!(out, " {value:>width$}").unwrap_or_default();
        }
        out.push('\n');
    }
}

/// The code with how often each instruction ran, and what each hardware thread did.
fn counts(out: &mut String, target: &str, program: &[u8], report: &RunReport) {
    let Some(target) = kempe::target(target) else { return };
    let listing = code::listing(target, program, true, false);
    for (n, (line, count)) in listing.lines().zip(&report.counts).enumerate() {
        writeln!(out, "{count:>10} {n:>5}  {line}").unwrap_or_default();
    }
    writeln!(out, "supergroup batch instructions stalls switches").unwrap_or_default();
    for t in report.threads.iter().take(SHOWN_THREADS) {
        let (supergroup, batch) = (t.supergroup, t.batch);
        let (instructions, stalls, switches) = (t.instructions, t.stalls, t.switches);
        writeln!(out, "{supergroup:>10} {batch:>5} {instructions:>12} {stalls:>6} {switches:>8}")
            .unwrap_or_default();
    }
    if report.threads.len() > SHOWN_THREADS {
        writeln!(out, "and {} more threads", report.threads.len() - SHOWN_THREADS).unwrap_or_default();
    }
    writeln!(
        out,
        "{} instructions, {} thread switches, {} stalls",
        report.instructions, report.switches, report.stalls
    )
    .unwrap_or_default();
}

/// Threads that `--counts` shows one by one.
const SHOWN_THREADS: usize = 256;

fn compare(expect: &BindingIs, actual: &[u8], expected: &[u8]) -> Option<String> {
    let binding = &expect.binding;
    let head = expect.value.split(':').next().unwrap_or_default();
    let element = binding.ty.or_else(|| Element::from_name(head)).unwrap_or(Element::Unsigned(4));
    if let Some((i, a, e)) = data::first_difference(actual, expected, element) {
        return Some(format!("{binding}: element {i} is {a}, expected {e}"));
    }
    (actual.len() != expected.len())
        .then(|| format!("{binding}: has {} bytes, expected {}", actual.len(), expected.len()))
}

fn raw(args: &Run) -> Res<()> {
    let text = match io::read(&args.file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(message) => return wrong(message),
    };
    let bytes_file = args.file.with_extension("bin");
    let bytes = io::read(&bytes_file)
        .or_else(|message| wrong(format!("its bytes, {}: {message}", bytes_file.display())))?;
    let options = run_options(args);
    let raw = match guarded(limits(&args.limits), move || kempe::raw::Raw::new(&text, &bytes)) {
        Ok(Ok(raw)) => raw,
        Ok(Err(message)) => return wrong(message),
        Err(stopped) => return Err(from_stopped(stopped)),
    };
    let (target, words) = (raw.target.name(), raw.code());
    for finding in raw.findings() {
        eprintln!("{}: warning: {finding}", io::shown(&args.file));
    }
    let outcome = guarded(limits(&args.limits), move || raw.run(&options))
        .map_err(from_stopped)?
        .map_err(from_run_error)?;
    for warning in &outcome.report.warnings {
        eprintln!("{}: warning: {warning}", io::shown(&args.file));
    }
    if args.counts {
        let mut out = String::new();
        counts(&mut out, target, &words, &outcome.report);
        io::out(out.as_bytes()).map_err(|message| Failure(Exit::Wrong, message))?;
    }
    match outcome.difference {
        Some(message) => Err(Failure(Exit::Differs, message)),
        None => Ok(()),
    }
}
