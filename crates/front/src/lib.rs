//! Source languages to the IR: SPIR-V by ourselves, GLSL, HLSL and WGSL through libraries that make SPIR-V.
//!
//! * [`compile`]: text or bytes to IR modules, one per entry point
//! * [`to_spirv`], [`from_spirv`]: the two halves of it
//! * [`names`]: what a module calls its interface
//! * `reader` (words), `parse` (tables), `layout` (memory), `cfg` (order of blocks), `lower` (instructions)
//!
//! Nothing here panics or runs without bound, whatever the input.

mod arith;
mod cfg;
pub mod diag;
mod entry;
#[cfg(feature = "glsl")]
mod glsl;
mod layout;
mod lower;
pub mod names;
mod parse;
mod reader;
#[cfg(feature = "wgsl")]
mod wgsl;

pub use diag::{Diagnostic, Diagnostics, Severity};

use kempe_ir::{Module, Stage};
use spirv::ExecutionModel;
use std::path::PathBuf;

/// Of the names that stand for what only old versions of GLSL have: `gl_Vertex` becomes `kempe_Vertex`.
pub const LEGACY_PREFIX: &str = "kempe_";

/// What a source is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    Glsl,
    Hlsl,
    Wgsl,
    Spirv,
}

/// What the front end is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Name of the entry point; `None` or "all": every one (of HLSL `main`).
    pub entry: Option<String>,
    /// Values of specialisation constants by SpecId, as bits; the last one of an id counts.
    pub spec: Vec<(u32, u64)>,
    /// Preprocessor definitions.
    pub defines: Vec<(String, Option<String>)>,
    /// Where included files are looked for.
    pub include_dirs: Vec<PathBuf>,
    /// The stage of a source in GLSL or HLSL; only entry points of this stage.
    pub stage: Option<Stage>,
}

/// Compiles a source to IR, one module per entry point.
pub fn compile(
    name: &str,
    bytes: &[u8],
    lang: Language,
    options: &Options,
) -> Result<Vec<Module>, Diagnostics> {
    if lang == Language::Spirv {
        return match reader::words(bytes) {
            Ok(words) => from_spirv(name, &words, options),
            Err(e) => Err(Diagnostics::one(diagnostic(name, &[], &e))),
        };
    }
    from_spirv(name, &to_spirv(name, bytes, lang, options)?, options)
}

/// Compiles a source to SPIR-V words (for SPIR-V: brings them into the byte order of this machine).
pub fn to_spirv(
    name: &str,
    bytes: &[u8],
    lang: Language,
    options: &Options,
) -> Result<Vec<u32>, Diagnostics> {
    match lang {
        Language::Spirv => match reader::words(bytes) {
            Ok(words) => Ok(words.into_owned()),
            Err(e) => Err(Diagnostics::one(diagnostic(name, &[], &e))),
        },
        #[cfg(feature = "glsl")]
        Language::Glsl => glsl::to_spirv(name, bytes, options).map(|(words, _)| words),
        #[cfg(not(feature = "glsl"))]
        Language::Glsl => Err(left_out(name, "GLSL", options)),
        #[cfg(feature = "glsl")]
        Language::Hlsl => glsl::hlsl_to_spirv(name, bytes, options),
        #[cfg(not(feature = "glsl"))]
        Language::Hlsl => Err(left_out(name, "HLSL", options)),
        #[cfg(feature = "wgsl")]
        Language::Wgsl => wgsl::to_spirv(name, bytes, options),
        #[cfg(not(feature = "wgsl"))]
        Language::Wgsl => Err(left_out(name, "WGSL", options)),
    }
}

/// Compiles a vertex and a fragment shader in GLSL that belong together to SPIR-V words: where a source leaves locations
/// open, outputs and inputs with the same name meet.
pub fn to_spirv_linked(
    [vertex, fragment]: [(&str, &[u8]); 2],
    options: &Options,
) -> [Result<Vec<u32>, Diagnostics>; 2] {
    #[cfg(feature = "glsl")]
    {
        let of = |(name, bytes), stage| {
            glsl::to_spirv(name, bytes, &Options { stage: Some(stage), ..options.clone() })
        };
        let text = fragment.1;
        match (of(vertex, Stage::Vertex), of(fragment, Stage::Fragment)) {
            (Ok((vertex, given)), Ok((mut fragment, also))) => {
                if !(given && also) {
                    let said = names::said_locations(&String::from_utf8_lossy(text), "in");
                    names::agree(&vertex, &mut fragment, ["main", "main"], &said);
                }
                [Ok(vertex), Ok(fragment)]
            }
            (vertex, fragment) => [vertex, fragment].map(|r| r.map(|(words, _)| words)),
        }
    }
    #[cfg(not(feature = "glsl"))]
    [vertex, fragment].map(|(name, _)| Err(left_out(name, "GLSL", options)))
}

/// An entry point of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPoint {
    pub name: String,
    /// `compute`, `vertex`, `fragment`, `geometry`, `tess-control`, `tess-eval`, `kernel`; `other` for everything else.
    pub stage: &'static str,
}

/// All entry points of a SPIR-V module, in its order, also those that [`from_spirv`] cannot lower.
pub fn entry_points(name: &str, words: &[u32]) -> Result<Vec<EntryPoint>, Diagnostics> {
    let p = parse::parse(words, &[]).map_err(|e| Diagnostics::one(diagnostic(name, words, &e)))?;
    let entry = |e: &parse::Entry| EntryPoint { name: e.name.clone(), stage: entry::stage_name(e.model) };
    Ok(p.entries.iter().map(entry).collect())
}

/// Most entry points, times the bound of ids.
const MAX_ENTRY_TABLES: usize = 1 << 27;

/// Lowers the entry points of a SPIR-V module.
pub fn from_spirv(name: &str, words: &[u32], options: &Options) -> Result<Vec<Module>, Diagnostics> {
    let fail = |e: Box<reader::Error>| Diagnostics::one(diagnostic(name, words, &e));
    let p = parse::parse(words, &options.spec).map_err(fail)?;
    let message =
        |text: String, help: &str| Err(Diagnostics::one(Diagnostic::error(name, text).with_help(help)));
    if p.entries.is_empty() {
        return message("the module has no entry point".to_owned(), "a shader needs a main function");
    }
    // Every entry point takes tables of the size of the bound.
    if p.entries.len().saturating_mul(p.header.bound as usize) > MAX_ENTRY_TABLES {
        return message(format!("the module has too many entry points ({})", p.entries.len()), "");
    }
    let names = || p.entries.iter().map(|e| format!("`{}`", e.name)).collect::<Vec<_>>().join(", ");
    let wanted = options.entry.as_deref();
    let all = wanted.is_none() || (wanted == Some("all") && p.entries.iter().all(|e| e.name != "all"));
    let mut entries: Vec<_> = p.entries.iter().filter(|e| all || Some(e.name.as_str()) == wanted).collect();
    if entries.is_empty() {
        let text = format!("there is no entry point `{}`", wanted.unwrap_or_default());
        return message(text, &format!("the module has {}", names()));
    }
    if let Some(stage) = options.stage {
        let model = match stage {
            Stage::Compute => ExecutionModel::GLCompute,
            Stage::Vertex => ExecutionModel::Vertex,
            Stage::Fragment => ExecutionModel::Fragment,
            Stage::Geometry => ExecutionModel::Geometry,
            Stage::TessControl => ExecutionModel::TessellationControl,
            Stage::TessEval => ExecutionModel::TessellationEvaluation,
        };
        entries.retain(|e| e.model == model as u32);
        if entries.is_empty() {
            let kind = entry::model_name(model as u32);
            return message(format!("the module has no entry point for {kind}"), "");
        }
    }
    let mut modules = Vec::with_capacity(entries.len());
    for e in entries {
        let known = [
            ExecutionModel::GLCompute,
            ExecutionModel::Vertex,
            ExecutionModel::Fragment,
            ExecutionModel::Geometry,
            ExecutionModel::TessellationControl,
            ExecutionModel::TessellationEvaluation,
        ];
        if !known.iter().any(|m| *m as u32 == e.model) {
            let kind = entry::model_name(e.model);
            return message(format!("{kind} are not supported yet (entry point `{}`)", e.name), "");
        }
        let module = lower::lower(&p, e).map_err(fail)?;
        // Whatever was not checked on the way (dominance above all) is checked here: nothing malformed goes on.
        if let Err(errors) = kempe_ir::verify::verify(&module) {
            let first = errors.first().map_or("", |e| e.as_str());
            return message(format!("the module is not valid SPIR-V: {first}"), "a validator can say more");
        }
        modules.push(module);
    }
    Ok(modules)
}

/// An error of the reader as a message: at its source line if the module carries lines, else with its word.
fn diagnostic(name: &str, words: &[u32], e: &reader::Error) -> Diagnostic {
    match source_line(words, e.at) {
        Some((file, line, column)) => {
            let file = if file.is_empty() { name } else { &file };
            Diagnostic::error(file, e.message.clone()).with_line(line, column).with_help(e.help.clone())
        }
        None => {
            Diagnostic::error(name, format!("{} (SPIR-V word {})", e.message, e.at)).with_help(e.help.clone())
        }
    }
}

/// The last OpLine in front of a word, in the same block.
fn source_line(words: &[u32], at: usize) -> Option<(String, u32, u32)> {
    let mut place = None;
    let mut next = 5;
    while next < words.len().min(at) {
        let i = reader::inst(words, next).ok()?;
        next += i.words.len();
        match spirv::Op::from_u32(i.op as u32) {
            Some(spirv::Op::Line) => place = Some((i.w(1).ok()?, i.w(2).ok()?, i.w(3).ok()?)),
            Some(spirv::Op::NoLine | spirv::Op::Label | spirv::Op::FunctionEnd) => place = None,
            _ => {}
        }
    }
    let (file, line, column) = place?;
    let mut next = 5;
    while next < words.len() {
        let i = reader::inst(words, next).ok()?;
        next += i.words.len();
        if i.op == spirv::Op::String as u16 && i.w(1).ok()? == file {
            return Some((i.string(2).ok()?.0, line, column));
        }
    }
    Some((String::new(), line, column))
}

/// Largest text of a source in bytes.
#[cfg(feature = "wgsl")]
const MAX_TEXT: usize = 4 << 20;

/// Stack of the thread that a library's recursive descent runs on.
#[cfg(any(feature = "glsl", feature = "wgsl"))]
const STACK: usize = 256 << 20;

/// Runs a library on a stack of its own; a panic in it becomes a message.
#[cfg(any(feature = "glsl", feature = "wgsl"))]
fn on_large_stack<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, Diagnostics> + Send,
) -> Result<T, Diagnostics> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("front end".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, work).map(|t| t.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Diagnostics::one(
                Diagnostic::error(name, "the source language's compiler stopped with an internal error")
                    .with_help("this is a bug in a library that Kempe uses"),
            )),
            Err(e) => Err(Diagnostics::one(Diagnostic::error(name, format!("cannot start a thread: {e}")))),
        }
    })
}

#[cfg(not(all(feature = "glsl", feature = "wgsl")))]
fn left_out(name: &str, language: &str, _options: &Options) -> Diagnostics {
    Diagnostics::one(Diagnostic::error(name, format!("this build reads no {language}")))
}
