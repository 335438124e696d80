//! A vertex and a fragment shader that belong together.
//!
//! Their interface meets by location, and by name where the sources leave locations open. What the fragment shader does not read, the
//! vertex shader need not write: [`remove_unread`].

use crate::compile::{self, CompileResult, Draft, Options, Source, Status};
use crate::limits::guarded;
use crate::target::{Target, Variant};
pub use kempe_front::LEGACY_PREFIX;
use kempe_front::names::{Names, names};
use kempe_front::{Diagnostic, Diagnostics, Language};
use kempe_ir::io::{IoImm, Slot};
use kempe_ir::module::Imm;
use kempe_ir::{Module, Op, Stage};
use kempe_opt::pipeline;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Places of an interface, by component.
pub type Places = BTreeSet<(Slot, u8)>;

/// One stage of a pair.
#[derive(Clone, Debug)]
pub struct Linked {
    pub words: Arc<Vec<u32>>,
    pub entry: String,
    pub names: Names,
    /// As the front end leaves it.
    pub module: Module,
}

const STAGES: [Stage; 2] = [Stage::Vertex, Stage::Fragment];

/// Both stages, linked: vertex, then fragment. The two sources may be the same one with two entry points; `entries` names them,
/// otherwise there must be one of each stage.
///
/// # Errors
/// A result without artifact that says why; its target is meaningless.
pub fn link(
    sources: [&Source; 2],
    entries: [Option<&str>; 2],
    options: &Options,
) -> Result<[Linked; 2], Box<CompileResult>> {
    let fail = |k: usize, errors: Diagnostics, text: Option<&str>| {
        let target = options.targets.first().copied().unwrap_or(crate::targets()[0]);
        let stage = crate::artifact::stage_name(STAGES[k]);
        let draft = Draft { text, ..Draft::new(sources[k], entries[k].unwrap_or_default(), stage) };
        Box::new(draft.failed(target, Status::Error, &errors))
    };
    let mut parts = Vec::new();
    for k in 0..2 {
        let source = Source { stage: Some(STAGES[k]), ..sources[k].clone() };
        let bytes = source.contents.clone().map_err(|m| fail(k, compile::one(&source.name, m), None))?;
        // The stage decides for GLSL and HLSL alone; everything else says what it holds.
        let kind = compile::kind(&source, &bytes).map_err(|e| fail(k, Diagnostics::one(e), None))?;
        let stage = crate::artifact::stage_name(STAGES[k]);
        if let Some(named) = compile::named_stage(&source.name)
            && matches!(kind.language, Language::Glsl | Language::Hlsl)
            && sources[k].stage.is_none()
            && named != stage
        {
            let error = Diagnostic::error(
                &source.name,
                format!("a {stage} shader is wanted here, not a {named} shader"),
            );
            let error = error.with_help("a pair is a vertex shader, then a fragment shader");
            return Err(fail(k, Diagnostics::one(error), None));
        }
        parts.push((source.name, bytes, kind.language));
    }
    let languages = [parts[0].2, parts[1].2];
    let front = options.front.clone();
    let named = entries.map(|entry| entry.map(str::to_owned));
    let copies = parts.clone();
    let stopped = |k: usize, stopped| {
        let target = options.targets.first().copied().unwrap_or(crate::targets()[0]);
        Box::new(Draft::new(sources[k], "", "").stopped(target, &stopped))
    };
    let words = guarded(options.limits, move || {
        let [(vertex, v, _), (fragment, f, _)] = [&copies[0], &copies[1]];
        if languages == [Language::Glsl; 2] {
            return kempe_front::to_spirv_linked([(vertex, v), (fragment, f)], &front);
        }
        [0, 1].map(|k| {
            let entry = named[k].clone().or_else(|| front.entry.clone());
            let front = kempe_front::Options { stage: Some(STAGES[k]), entry, ..front.clone() };
            kempe_front::to_spirv(&copies[k].0, &copies[k].1, languages[k], &front)
        })
    });
    let words = words.map_err(|s| stopped(0, s))?;
    let mut out = Vec::with_capacity(2);
    for (k, words) in words.into_iter().enumerate() {
        let text = std::str::from_utf8(&parts[k].1).ok().filter(|_| languages[k] != Language::Spirv);
        let words = Arc::new(words.map_err(|errors| fail(k, errors, text))?);
        let front = kempe_front::Options {
            entry: entries[k].map(str::to_owned),
            stage: Some(STAGES[k]),
            ..options.front.clone()
        };
        let (name, copy) = (parts[k].0.clone(), Arc::clone(&words));
        let modules = guarded(options.limits, move || kempe_front::from_spirv(&name, &copy, &front));
        let mut modules = modules.map_err(|s| stopped(k, s))?.map_err(|errors| fail(k, errors, text))?;
        let module = match modules.len() {
            1 => modules.remove(0),
            n => {
                let what = crate::artifact::stage_name(STAGES[k]);
                let error = Diagnostic::error(&parts[k].0, format!("{n} entry points of the {what} stage"));
                let list: Vec<String> = modules.iter().map(|m| format!("`{}`", m.name)).collect();
                let error = error.with_help(format!("choose one of {}", list.join(", ")));
                return Err(fail(k, Diagnostics::one(error), None));
            }
        };
        let names = names(&words, &module.name, crate::artifact::stage_name(STAGES[k]));
        out.push(Linked { words, entry: module.name.clone(), names, module });
    }
    let mut out = out.into_iter();
    match (out.next(), out.next()) {
        (Some(vertex), Some(fragment)) => Ok([vertex, fragment]),
        _ => Err(fail(0, compile::one(&parts[0].0, "there are no two stages"), None)),
    }
}

/// The one entry point of a source, with its names.
///
/// # Errors
/// A result without artifact that says why; its target is meaningless.
pub fn alone(source: &Source, options: &Options) -> Result<Linked, Box<CompileResult>> {
    let module = compile::source_module(source, options)?;
    let stage = crate::artifact::stage_name(module.stage);
    let target = options.targets.first().copied().unwrap_or(crate::targets()[0]);
    let draft = Draft::new(source, "", stage);
    let fail = |errors: &Diagnostics| Box::new(draft.failed(target, Status::Error, errors));
    let bytes = source.contents.clone().map_err(|m| fail(&compile::one(&source.name, m)))?;
    let kind = compile::kind(source, &bytes).map_err(|e| fail(&Diagnostics::one(e)))?;
    let front = kempe_front::Options { stage: Some(module.stage), ..options.front.clone() };
    let name = source.name.clone();
    let words = guarded(options.limits, move || kempe_front::to_spirv(&name, &bytes, kind.language, &front));
    let words = words.map_err(|s| Box::new(draft.stopped(target, &s)))?.map_err(|e| fail(&e))?;
    let names = names(&words, &module.name, stage);
    Ok(Linked { words: Arc::new(words), entry: module.name.clone(), names, module })
}

/// The places that a module reads once what is not needed is gone.
pub fn reads(module: &Module, target: &'static dyn Target, options: &Options) -> Places {
    let mut module = module.clone();
    let level = pipeline::Options { level: options.code.level, ..target.opt_options() };
    pipeline::optimise_with(&mut module, &level, &mut compile::Stopwatch::default());
    places(&module, Op::Input).map(|io| (io.slot, io.component)).collect()
}

/// The immediates of all `input` or `output` instructions.
pub fn places(module: &Module, op: Op) -> impl Iterator<Item = IoImm> {
    let f = &module.func;
    let all = f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| &f.insts[i]);
    all.filter_map(move |data| match data.imm {
        Imm::Io(io) if data.op == op => Some(io),
        _ => None,
    })
}

/// Takes the outputs with a location out of a vertex shader that the next stage does not read. What only they needed goes with the
/// next pass that removes dead code. Whether something changed.
pub fn remove_unread(vertex: &mut Module, read: &Places) -> bool {
    let f = &mut vertex.func;
    let mut changed = false;
    for &b in &f.layout {
        let insts = &f.insts;
        f.blocks[b].insts.retain(|&i| {
            let keep = match (insts[i].op, insts[i].imm) {
                (Op::Output, Imm::Io(io)) => {
                    !matches!(io.slot, Slot::Location(_)) || read.contains(&(io.slot, io.component))
                }
                _ => true,
            };
            changed |= !keep;
            keep
        });
    }
    changed
}

/// Leaves the outputs of a vertex shader that say where something is drawn: what the program for binning is for.
pub fn positions_only(vertex: &mut Module) {
    let f = &mut vertex.func;
    for &b in &f.layout {
        let insts = &f.insts;
        f.blocks[b].insts.retain(|&i| match (insts[i].op, insts[i].imm) {
            (Op::Output, Imm::Io(io)) => matches!(io.slot, Slot::Position | Slot::PointSize),
            _ => true,
        });
    }
}

/// Compiles a vertex and a fragment shader as one: as [`crate::compile::compile`] does with each, and the vertex shader writes only
/// what is read. When they cannot be linked, the results say why.
pub fn compile_linked(sources: [&Source; 2], options: &Options) -> Vec<CompileResult> {
    let linked = match link(sources, [None; 2], options) {
        Ok(linked) => linked,
        Err(failed) => {
            return options
                .targets
                .iter()
                .map(|t| CompileResult { target: t.name(), ..(*failed).clone() })
                .collect();
        }
    };
    let mut out = Vec::new();
    for (k, stage) in STAGES.into_iter().enumerate() {
        let mut draft = Draft::new(sources[k], &linked[k].entry, crate::artifact::stage_name(stage));
        let front = kempe_front::Options {
            entry: Some(linked[k].entry.clone()),
            stage: Some(stage),
            ..options.front.clone()
        };
        for &target in &options.targets {
            let read = (stage == Stage::Vertex).then(|| {
                let (module, options) = (linked[1].module.clone(), options.clone());
                guarded(options.limits, move || reads(&module, target, &options)).ok().map(Arc::new)
            });
            for &variant in target.variants(stage) {
                draft.variant = variant;
                let words = &linked[k].words;
                out.push(compile::one_result(&draft, target, words, &front, options, read.clone().flatten()));
            }
        }
    }
    // The time of the front end cannot be told apart.
    debug_assert!(out.iter().all(|r| r.variant == Variant::Render || r.stage == "vertex"));
    out
}

#[cfg(all(test, feature = "glsl", feature = "wgsl"))]
#[path = "link_tests.rs"]
mod tests;
