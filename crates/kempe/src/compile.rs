//! From a source file to artifacts: one result for each entry point, target and variant, whatever happens.
//!
//! Everything that reads the input runs guarded ([`crate::limits`]): a panic becomes the status `bug`, a limit the
//! status `limit`, and the other results are not touched by it. Each result is made from the SPIR-V anew, so its time
//! is its own and does not depend on what else was asked for.

use crate::clock::{micros, thread_time};
use crate::explain::Explanation;
use crate::limits::{Limits, Stopped, guarded};
use crate::link::Places;
use crate::target::{Target, Variant};
use kempe_front::{Diagnostic, Diagnostics, Language};
use kempe_ir::io::PipelineState;
use kempe_ir::{Module, Stage};
use kempe_mir::Artifact;
use kempe_mir::error::CompileError;
use kempe_opt::pipeline;
use kempe_ra::{Engine, Without};
use std::sync::Arc;
use std::time::Duration;

/// A source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// As the user wrote it; messages and results repeat it.
    pub name: String,
    /// What is in it, or why it could not be read.
    pub contents: Result<Vec<u8>, String>,
    /// What the user says it is, if its name does not tell.
    pub stage: Option<Stage>,
}

/// What to do with the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeOptions {
    pub level: pipeline::Level,
    /// Only this number of hardware threads per core.
    pub threads: Option<u32>,
    /// Give out at most this many registers.
    pub max_registers: Option<u32>,
    /// Spill everything that can be spilled.
    pub force_spill: bool,
    /// What gives out the registers.
    pub engine: Engine,
    /// Parts of the allocator that are left out.
    pub without: Without,
    /// Orders of instructions that are not tried.
    pub without_orders: kempe_mir::order::Without,
    /// Have the final words compared with the machine instructions before allocation.
    pub verify: bool,
    /// What code of a graphics stage depends on besides its shader.
    pub state: PipelineState,
}

impl CodeOptions {
    /// Names of what [`CodeOptions::leave_out`] knows.
    pub fn parts() -> Vec<&'static str> {
        let (mut ra, mut orders) = (Without::default(), kempe_mir::order::Without::default());
        ra.parts()
            .into_iter()
            .map(|part| part.0)
            .chain(orders.parts().into_iter().map(|part| part.0))
            .collect()
    }

    /// Leave out the part of the allocator, or the order of instructions, of this name; `false` if there is none.
    pub fn leave_out(&mut self, name: &str) -> bool {
        let parts = self.without.parts().into_iter().chain(self.without_orders.parts());
        let part = parts.into_iter().find(|part| part.0 == name);
        part.map(|(_, out)| *out = true).is_some()
    }
}

impl Default for CodeOptions {
    fn default() -> CodeOptions {
        CodeOptions {
            level: pipeline::Level::O2,
            threads: None,
            max_registers: None,
            force_spill: false,
            engine: Engine::default(),
            without: Without::default(),
            without_orders: kempe_mir::order::Without::default(),
            verify: false,
            state: PipelineState::default(),
        }
    }
}

/// What the caller wants to see of the way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Keep {
    /// The IR after optimisation.
    pub ir: bool,
    /// The machine IR of the configuration that was taken.
    pub mir: bool,
    /// The program as code is selected from it, for [`Target::interpret`].
    pub lowered: bool,
    /// Where the registers go ([`crate::explain`]), also when there are too few.
    pub explanation: bool,
    /// What is legal in the source and hardly meant ([`kempe_opt::lint`]), as warnings in the report.
    pub findings: bool,
}

/// Everything that is asked of a compile besides the source.
#[derive(Clone)]
pub struct Options {
    pub targets: Vec<&'static dyn Target>,
    /// Entry point, specialisation, preprocessor. Its stage is that of the source.
    pub front: kempe_front::Options,
    pub code: CodeOptions,
    pub keep: Keep,
    pub limits: Limits,
}

/// How a compile ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    Ok,
    /// The source is wrong or needs something that is not there (yet).
    Error,
    /// Time or memory limit.
    Limit,
    /// A defect of Kempe.
    Bug,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::Limit => "limit",
            Status::Bug => "bug",
        }
    }
}

/// Time of one pass.
#[derive(Clone, PartialEq, Debug)]
pub struct PassTime {
    pub name: &'static str,
    pub time: Duration,
    /// How often it ran.
    pub runs: u32,
}

/// What became of one entry point on one target.
#[derive(Clone, PartialEq, Debug)]
pub struct CompileResult {
    /// The name of the source.
    pub file: String,
    /// Empty if there is no entry point to name.
    pub entry: String,
    /// As in the JSON output; empty if it is not known.
    pub stage: &'static str,
    /// Which program of the shader.
    pub variant: Variant,
    pub target: &'static str,
    pub status: Status,
    /// One line that says what is wrong; empty if nothing is.
    pub message: String,
    /// The same for people: place, source line, caret, help; of a compile that gave code its warnings. Ends in a line feed if there
    /// is anything.
    pub report: String,
    pub artifact: Option<Artifact>,
    /// CPU time from source text to SPIR-V; 0 for SPIR-V.
    pub front_us: u64,
    /// CPU time from SPIR-V in memory to the artifact, checks included.
    pub compile_us: u64,
    /// Configurations that were really tried.
    pub attempts: u32,
    pub passes: Vec<PassTime>,
    /// What [`Keep`] asked for.
    pub ir: Option<String>,
    pub mir: Option<String>,
    pub lowered: Option<Module>,
    pub explanation: Option<Explanation>,
}

/// What a target makes of a module.
#[derive(Clone, PartialEq, Debug)]
pub struct Compiled {
    pub artifact: Artifact,
    /// What [`Keep`] asked for.
    pub mir: Option<String>,
    pub lowered: Option<Module>,
    pub explanation: Option<Explanation>,
    pub passes: Vec<PassTime>,
    /// What is right as code but will not work as it stands.
    pub warnings: Vec<String>,
}

/// Why a target makes nothing of a module.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetError {
    /// A defect of Kempe: not the fault of the module.
    pub bug: bool,
    pub message: String,
    /// Place in the source: index of [`Module::locs`] and so on, see [`Module::line`].
    pub loc: kempe_ir::Loc,
    pub attempts: u32,
    /// What [`Keep`] asked for.
    pub explanation: Option<Explanation>,
    pub passes: Vec<PassTime>,
}

impl TargetError {
    pub(crate) fn of(
        error: CompileError,
        explanation: Option<Explanation>,
        passes: Stopwatch,
    ) -> TargetError {
        TargetError {
            bug: error.internal,
            message: error.message,
            loc: error.loc,
            attempts: passes.runs("select"),
            explanation,
            passes: passes.passes,
        }
    }
}

/// What a source is written in, and its stage as far as the name tells.
pub(crate) struct Kind {
    pub language: Language,
    stage: Option<Stage>,
    /// Name of the stage for results.
    stage_name: &'static str,
}

/// File extensions of stages, with what they are called in results.
const STAGES: [(&str, Stage, &str); 6] = [
    ("comp", Stage::Compute, "compute"),
    ("vert", Stage::Vertex, "vertex"),
    ("frag", Stage::Fragment, "fragment"),
    ("geom", Stage::Geometry, "geometry"),
    ("tesc", Stage::TessControl, "tess-control"),
    ("tese", Stage::TessEval, "tess-eval"),
];

/// What HLSL calls its stages in names of files.
const HLSL_STAGES: [(&str, &str); 6] =
    [("cs", "comp"), ("vs", "vert"), ("ps", "frag"), ("gs", "geom"), ("hs", "tesc"), ("ds", "tese")];

/// The extension of a name, and the one that tells the stage: name.comp, name.comp.spv, name.comp.glsl, name.ps.hlsl.
fn extensions(name: &str) -> (&str, &str) {
    // Only the last part of a path can have extensions.
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut parts = file.rsplit('.');
    let extension = parts.next().unwrap_or_default();
    let mut inner = match extension {
        "spv" | "glsl" | "hlsl" => parts.next().unwrap_or_default(),
        _ => extension,
    };
    if extension == "hlsl"
        && let Some(row) = HLSL_STAGES.iter().find(|row| row.0 == inner)
    {
        inner = row.1;
    }
    (extension, inner)
}

/// The stage that the name of a source tells, in results' words.
pub(crate) fn named_stage(name: &str) -> Option<&'static str> {
    STAGES.iter().find(|row| row.0 == extensions(name).1).map(|row| row.2)
}

pub(crate) fn kind(source: &Source, bytes: &[u8]) -> Result<Kind, Diagnostic> {
    let (extension, inner) = extensions(&source.name);
    let words = matches!(bytes, [0x03, 0x02, 0x23, 0x07, ..] | [0x07, 0x23, 0x02, 0x03, ..]);
    let language = match extension {
        _ if words => Some(Language::Spirv),
        "spv" => Some(Language::Spirv),
        "wgsl" => Some(Language::Wgsl),
        _ => None,
    };
    let row = match source.stage {
        Some(stage) => STAGES.iter().find(|row| row.1 == stage),
        None => STAGES.iter().find(|row| row.0 == inner),
    };
    let stage_name = row.map_or("", |row| row.2);
    match (language, row) {
        (Some(language), _) => Ok(Kind { language, stage: source.stage, stage_name }),
        (None, Some(&(_, stage, _))) => {
            let language = if extension == "hlsl" { Language::Hlsl } else { Language::Glsl };
            Ok(Kind { language, stage: Some(stage), stage_name })
        }
        (None, None) if bytes.is_empty() => Err(Diagnostic::error(&source.name, "the file is empty")),
        (None, None) if extension == "cl" => {
            Err(Diagnostic::error(&source.name, "OpenCL C sources are not read yet"))
        }
        (None, None) => Err(Diagnostic::error(&source.name, "the name does not say what this is")
            .with_help("GLSL is told by .comp, .vert, .tesc, .tese, .geom or .frag or by --stage, HLSL by .hlsl with a stage (.vs.hlsl, .vert.hlsl) or with --stage, WGSL by .wgsl, SPIR-V by .spv")),
    }
}

/// The start of a result: who it is about.
pub(crate) struct Draft<'a> {
    pub source: &'a Source,
    pub text: Option<&'a str>,
    pub entry: &'a str,
    pub stage: &'static str,
    pub variant: Variant,
    pub front_us: u64,
}

impl<'a> Draft<'a> {
    pub fn new(source: &'a Source, entry: &'a str, stage: &'static str) -> Draft<'a> {
        Draft { source, text: None, entry, stage, variant: Variant::default(), front_us: 0 }
    }

    fn result(&self, target: &'static dyn Target) -> CompileResult {
        CompileResult {
            variant: self.variant,
            file: self.source.name.clone(),
            entry: self.entry.to_owned(),
            stage: self.stage,
            target: target.name(),
            status: Status::Ok,
            message: String::new(),
            report: String::new(),
            artifact: None,
            front_us: self.front_us,
            compile_us: 0,
            attempts: 0,
            passes: Vec::new(),
            ir: None,
            mir: None,
            lowered: None,
            explanation: None,
        }
    }

    pub fn failed(&self, target: &'static dyn Target, status: Status, errors: &Diagnostics) -> CompileResult {
        let first = errors.0.first();
        CompileResult {
            status,
            message: first.map_or(String::new(), |d| {
                let message = d.message.lines().collect::<Vec<_>>().join(" ");
                match (d.line, d.column) {
                    (0, _) => message,
                    (line, 0) => format!("{line}: {message}"),
                    (line, column) => format!("{line}:{column}: {message}"),
                }
            }),
            report: errors.render(&self.source.name, self.text),
            ..self.result(target)
        }
    }

    pub fn stopped(&self, target: &'static dyn Target, stopped: &Stopped) -> CompileResult {
        let status = match stopped {
            Stopped::Panic(_) => Status::Bug,
            Stopped::Time(_) | Stopped::Memory(_) => Status::Limit,
        };
        let text = stopped.to_string();
        // The call stack, if there is one, is for the report alone.
        let (message, stack) = text.split_once('\n').unwrap_or((&text, ""));
        let mut result = self.failed(target, status, &one(&self.source.name, message));
        if !stack.is_empty() {
            result.report.push_str(stack.trim_end());
            result.report.push('\n');
        }
        result
    }
}

pub(crate) fn one(name: &str, message: impl Into<String>) -> Diagnostics {
    Diagnostics::one(Diagnostic::error(name, message))
}

/// Compiles every entry point that the options ask for, for every target, in this order. There is at least one result
/// for each target.
pub fn compile(source: &Source, options: &Options) -> Vec<CompileResult> {
    let asked = options.front.entry.as_deref().filter(|e| *e != "all").unwrap_or_default();
    let stage = source.stage.and_then(|s| STAGES.iter().find(|row| row.1 == s)).map_or("", |row| row.2);
    let mut draft = Draft::new(source, asked, stage);
    let each = |f: &dyn Fn(&'static dyn Target) -> CompileResult| -> Vec<CompileResult> {
        options.targets.iter().map(|&target| f(target)).collect()
    };
    let bytes = match &source.contents {
        Ok(bytes) => bytes,
        Err(message) => {
            let errors = one(&source.name, message.clone());
            return each(&|target| draft.failed(target, Status::Error, &errors));
        }
    };
    let kind = match kind(source, bytes) {
        Ok(kind) => kind,
        Err(error) => {
            let errors = Diagnostics::one(error);
            return each(&|target| draft.failed(target, Status::Error, &errors));
        }
    };
    draft.stage = kind.stage_name;
    if kind.language != Language::Spirv {
        draft.text = std::str::from_utf8(bytes).ok();
        if matches!(kind.language, Language::Glsl | Language::Hlsl) && draft.entry.is_empty() {
            draft.entry = "main";
        }
    }
    let front = kempe_front::Options { stage: kind.stage, ..options.front.clone() };
    let words = {
        let (name, bytes, front) = (source.name.clone(), bytes.clone(), front.clone());
        let language = kind.language;
        guarded(options.limits, move || {
            let start = thread_time();
            let words = kempe_front::to_spirv(&name, &bytes, language, &front)?;
            let time = thread_time() - start;
            // Not part of the time: only finds out what there is to compile.
            let entries = kempe_front::entry_points(&name, &words)?;
            Ok((Arc::new(words), entries, time))
        })
    };
    let (words, entries, time) = match words {
        Ok(Ok(parts)) => parts,
        Ok(Err(errors)) => return each(&|target| draft.failed(target, Status::Error, &errors)),
        Err(stopped) => return each(&|target| draft.stopped(target, &stopped)),
    };
    if kind.language != Language::Spirv {
        draft.front_us = micros(time);
    }
    let wanted = |e: &&kempe_front::EntryPoint| match options.front.entry.as_deref() {
        None => true,
        Some("all") if entries.iter().all(|e| e.name != "all") => true,
        Some(name) => e.name == name,
    };
    let mut chosen: Vec<_> = entries.iter().filter(wanted).collect();
    if let Some(stage) = source.stage {
        let name = crate::artifact::stage_name(stage);
        chosen.retain(|e| e.stage == name);
    }
    if chosen.is_empty() {
        // The front end says what is there instead.
        let errors = match kempe_front::from_spirv(&source.name, &words, &front) {
            Err(errors) => errors,
            Ok(_) => one(&source.name, "there is no entry point to compile"),
        };
        return each(&|target| draft.failed(target, Status::Error, &errors));
    }
    let mut results = Vec::with_capacity(chosen.len() * options.targets.len());
    for entry in chosen {
        draft.entry = &entry.name;
        draft.stage = entry.stage;
        // Two entry points may share a name when their stages differ.
        let stage = STAGES.iter().find(|row| row.2 == entry.stage).map(|row| row.1);
        let front = kempe_front::Options { entry: Some(entry.name.clone()), stage, ..options.front.clone() };
        for &target in &options.targets {
            for &variant in stage.map_or(&[Variant::Render][..], |stage| target.variants(stage)) {
                draft.variant = variant;
                results.push(one_result(&draft, target, &words, &front, options, None));
            }
        }
    }
    results
}

/// The module of one entry point as the front end leaves it: for the interpreter.
///
/// # Errors
/// A result without artifact that says why; its target is meaningless.
pub fn source_module(source: &Source, options: &Options) -> Result<Module, Box<CompileResult>> {
    let target = options.targets.first().copied().unwrap_or(crate::targets()[0]);
    let draft = Draft { source, text: None, entry: "", stage: "", variant: Variant::default(), front_us: 0 };
    let fail = |errors: Diagnostics, text: Option<&str>| {
        Err(Box::new(Draft { text, ..draft }.failed(target, Status::Error, &errors)))
    };
    let bytes = match &source.contents {
        Ok(bytes) => bytes,
        Err(message) => return fail(one(&source.name, message.clone()), None),
    };
    let kind = match kind(source, bytes) {
        Ok(kind) => kind,
        Err(error) => return fail(Diagnostics::one(error), None),
    };
    let text = std::str::from_utf8(bytes).ok().filter(|_| kind.language != Language::Spirv);
    let front = kempe_front::Options { stage: kind.stage, ..options.front.clone() };
    let (name, copy) = (source.name.clone(), bytes.clone());
    match guarded(options.limits, move || kempe_front::compile(&name, &copy, kind.language, &front)) {
        Err(stopped) => Err(Box::new(draft.stopped(target, &stopped))),
        Ok(Err(errors)) => fail(errors, text),
        Ok(Ok(mut modules)) if modules.len() == 1 => Ok(modules.remove(0)),
        Ok(Ok(modules)) => {
            let names: Vec<String> = modules.iter().map(|m| format!("`{}`", m.name)).collect();
            let error = Diagnostic::error(&source.name, format!("{} entry points", modules.len()))
                .with_help(format!("choose one with -e: {}", names.join(", ")));
            fail(Diagnostics::one(error), None)
        }
    }
}

/// What the guarded thread sends back.
struct Made {
    compile_us: u64,
    passes: Vec<PassTime>,
    ir: Option<String>,
    findings: Vec<Diagnostic>,
    outcome: Result<Compiled, Failed>,
}

enum Failed {
    Front(Diagnostics),
    Target(Diagnostic, Box<TargetError>),
}

pub(crate) fn one_result(
    draft: &Draft,
    target: &'static dyn Target,
    words: &Arc<Vec<u32>>,
    front: &kempe_front::Options,
    options: &Options,
    read: Option<Arc<Places>>,
) -> CompileResult {
    let (words, front) = (Arc::clone(words), front.clone());
    let name = draft.source.name.clone();
    let (code, keep, variant) = (options.code, options.keep, draft.variant);
    let made = guarded(options.limits, move || {
        make(&name, &words, &front, (target, variant), &code, keep, read.as_deref())
    });
    let made = match made {
        Ok(made) => made,
        Err(stopped) => return draft.stopped(target, &stopped),
    };
    let (compile_us, ir) = (made.compile_us, made.ir);
    let mut passes = made.passes;
    let with_lines = |explanation: Option<Explanation>| {
        explanation.map(|mut explanation| {
            explanation.add_lines(&draft.source.name, draft.text.unwrap_or_default());
            explanation
        })
    };
    match made.outcome {
        Ok(compiled) => {
            passes.extend(compiled.passes);
            let mut warnings = Diagnostics(made.findings);
            let of_target = compiled.warnings.into_iter();
            warnings.0.extend(of_target.map(|message| Diagnostic::warning(&draft.source.name, message)));
            CompileResult {
                report: warnings.render(&draft.source.name, draft.text),
                attempts: compiled.artifact.attempts,
                artifact: Some(compiled.artifact),
                mir: compiled.mir,
                lowered: compiled.lowered,
                explanation: with_lines(compiled.explanation),
                compile_us,
                passes,
                ir,
                ..draft.result(target)
            }
        }
        Err(Failed::Front(errors)) => {
            CompileResult { compile_us, passes, ir, ..draft.failed(target, Status::Error, &errors) }
        }
        Err(Failed::Target(diagnostic, error)) => {
            let error = *error;
            let status = if error.bug { Status::Bug } else { Status::Error };
            let errors = Diagnostics::one(diagnostic);
            let attempts = error.attempts;
            passes.extend(error.passes);
            let explanation = with_lines(error.explanation);
            let failed = draft.failed(target, status, &errors);
            CompileResult { compile_us, passes, ir, attempts, explanation, ..failed }
        }
    }
}

/// Notes how long each pass took.
#[derive(Default)]
pub(crate) struct Stopwatch {
    pub passes: Vec<PassTime>,
    /// Loops have been unrolled.
    pub unrolled: bool,
}

impl Stopwatch {
    /// How often a pass ran.
    pub fn runs(&self, name: &str) -> u32 {
        self.passes.iter().find(|p| p.name == name).map_or(0, |p| p.runs)
    }

    pub fn add(&mut self, name: &'static str, time: Duration, runs: u32) {
        match self.passes.iter_mut().find(|p| p.name == name) {
            Some(p) => {
                p.time += time;
                p.runs += runs;
            }
            None => self.passes.push(PassTime { name, time, runs }),
        }
    }
}

impl pipeline::Observer for Stopwatch {
    fn pass(&mut self, name: &'static str, time: Duration, changed: bool, _module: &Module) {
        self.unrolled |= changed && name == "unroll";
        self.add(name, time, 1);
    }
}

fn make(
    name: &str,
    words: &[u32],
    front: &kempe_front::Options,
    (target, variant): (&'static dyn Target, Variant),
    code: &CodeOptions,
    keep: Keep,
    read: Option<&Places>,
) -> Made {
    let start = thread_time();
    let mut watch = Stopwatch::default();
    let mut ir = None;
    let mut kept = Duration::ZERO;
    let mut findings = Vec::new();
    let module = module(name, words, front);
    watch.add("front", thread_time() - start, 1);
    let outcome = module.and_then(|mut module| {
        if keep.findings {
            let before = thread_time();
            findings = kempe_opt::lint::lint(&module)
                .into_iter()
                .map(|found| {
                    placed(Diagnostic::warning(name, found.message), found.loc, &module.files, &module.locs)
                })
                .collect();
            kept += thread_time() - before;
        }
        if let Some(read) = read {
            crate::link::remove_unread(&mut module, read);
        }
        if variant == Variant::Binning {
            crate::link::positions_only(&mut module);
        }
        // The places of errors, since the target takes the module.
        let (files, locs) = (module.files.clone(), module.locs.clone());
        let mut build = |mut module: Module, keep_loops: bool| {
            let level = pipeline::Options { level: code.level, keep_loops, ..target.opt_options() };
            watch.unrolled = false;
            pipeline::optimise_with(&mut module, &level, &mut watch);
            let before = thread_time();
            let text = keep.ir.then(|| kempe_ir::text::print(&module));
            kept += thread_time() - before;
            (target.compile(module, variant, code, keep), text, watch.unrolled)
        };
        let source = has_loops(&module).then(|| module.clone());
        let (mut compiled, mut text, unrolled) = build(module, false);
        if let Some(source) = source.filter(|_| unrolled)
            && compiled.as_ref().is_ok_and(|made| lacks_registers(&made.artifact, target))
        {
            let (other, its_text, _) = build(source, true);
            if let (Ok(made), Ok(other)) = (&mut compiled, other)
                && is_better(&other.artifact, &made.artifact)
            {
                *made = other;
                text = its_text;
            }
        }
        ir = text;
        compiled.map_err(|error| {
            let diagnostic = placed(Diagnostic::error(name, error.message.clone()), error.loc, &files, &locs);
            Failed::Target(diagnostic, Box::new(error))
        })
    });
    Made { compile_us: micros(thread_time() - start - kept), passes: watch.passes, ir, findings, outcome }
}

/// Whether there are edges that go back.
fn has_loops(module: &Module) -> bool {
    let f = &module.func;
    let mut seen = vec![false; f.blocks.len()];
    f.layout.iter().any(|&block| {
        seen[block.0 as usize] = true;
        f.blocks[block].term.targets().any(|to| seen[to.block.0 as usize])
    })
}

/// A program that went to memory, or runs in fewer threads than others.
fn lacks_registers(artifact: &Artifact, target: &'static dyn Target) -> bool {
    let most = target.occupancy().first().map_or(0, |step| step.threads);
    artifact.stats.spills + artifact.stats.fills > 0 || artifact.threads < most
}

/// Cycles of one thread that a program may take more, in quarters, to run in twice the threads.
const MORE_THREADS: u64 = 5;

/// Whether a program with its loops kept is better than the one in which they were unrolled: it needs less memory traffic, or no more and
/// runs in more threads. (Fewer estimated cycles alone say nothing: the estimate weighs a loop that is kept and its copies differently.)
fn is_better(rolled: &Artifact, unrolled: &Artifact) -> bool {
    let memory = |a: &Artifact| a.stats.spills + a.stats.fills + a.stats.scratch;
    let cycles = |a: &Artifact| a.stats.cycles;
    if rolled.threads > unrolled.threads {
        memory(rolled) <= memory(unrolled) && 4 * cycles(rolled) <= MORE_THREADS * cycles(unrolled)
    } else {
        rolled.threads == unrolled.threads
            && memory(rolled) < memory(unrolled)
            && cycles(rolled) < cycles(unrolled)
    }
}

/// A message at its place in the source, where that is known.
fn placed(
    mut diagnostic: Diagnostic,
    loc: kempe_ir::Loc,
    files: &[String],
    locs: &[kempe_ir::SourceLine],
) -> Diagnostic {
    let Some(line) = (loc.0 as usize).checked_sub(1).and_then(|i| locs.get(i)) else { return diagnostic };
    if let Some(file) = files.get(line.file as usize).filter(|file| !file.is_empty()) {
        diagnostic.file.clone_from(file);
    }
    diagnostic.with_line(line.line, line.column)
}

fn module(name: &str, words: &[u32], front: &kempe_front::Options) -> Result<Module, Failed> {
    let mut modules = kempe_front::from_spirv(name, words, front).map_err(Failed::Front)?;
    match modules.len() {
        1 => Ok(modules.remove(0)),
        n => Err(Failed::Front(one(name, format!("{n} entry points have the same name and stage")))),
    }
}
