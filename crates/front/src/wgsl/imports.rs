//! Modules, macros and conditions that the engine Bevy adds to WGSL, through its own crate `naga_oil`.
//!
//! The library takes modules one by one, each after those it imports. What is here finds them: beside the source and below the
//! folders of the options, by their `#define_import_path`, or by the path of a file in quotes. Errors of the library become
//! messages with file, line and column.

use crate::{Diagnostic, Diagnostics, Options};
use naga_oil::compose::{
    ComposableModuleDescriptor, Composer, ComposerError, ComposerErrorInner, NagaModuleDescriptor,
    ShaderDefValue, get_preprocessor_data,
};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Most modules that take part, and most files that are looked at.
const MAX_MODULES: usize = 1000;
const MAX_FILES: usize = 4096;
const MAX_FOLDERS: u32 = 16;
/// Longest chain of imports.
const MAX_CHAIN: usize = 64;
/// Bytes of one text. The library keeps the number of the module above these bits of a place.
const MAX_PART: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 21;

/// Whether a text uses any of this.
pub fn is_used(text: &str) -> bool {
    text.lines().any(|l| l.split("//").next().is_some_and(|code| code.contains('#')))
}

/// A source and everything that it imports as one module. What was imported is called `path::item`; places in the source are lost.
///
/// # Errors
/// A module that is not there, a value that the library does not know, whatever the library objects to.
pub fn combine(name: &str, text: &str, options: &Options) -> Result<naga::Module, Diagnostics> {
    let mut shader_defs = HashMap::new();
    for (key, value) in &options.defines {
        let known = value.as_deref().map_or(Some(ShaderDefValue::Bool(true)), definition);
        let wrong = || {
            let message = format!("`{key}` cannot be `{}`", value.as_deref().unwrap_or_default());
            let help =
                "definitions of WGSL with imports are `true`, `false`, or integers of 32 bits: 3, -3, 3u";
            Diagnostics::one(Diagnostic::error(name, message).with_help(help))
        };
        shader_defs.insert(key.clone(), known.ok_or_else(wrong)?);
    }
    let mut modules = Modules {
        name,
        options,
        known: None,
        chain: Vec::new(),
        composer: Composer::default().with_capabilities(naga::valid::Capabilities::all()),
        added: Vec::new(),
    };
    modules.add_imports(name, text)?;
    let Modules { mut composer, added, .. } = modules;
    let descriptor = NagaModuleDescriptor {
        source: text,
        file_path: name,
        shader_defs,
        ..NagaModuleDescriptor::default()
    };
    let mut module = composer.make_naga_module(descriptor).map_err(|e| message(&e, &composer, &added))?;
    let plain = |name: &mut Option<String>| {
        if let Some(name) = name {
            *name = undecorated(name, &added);
        }
    };
    module.global_variables.iter_mut().for_each(|(_, v)| plain(&mut v.name));
    module.functions.iter_mut().for_each(|(_, f)| plain(&mut f.name));
    module.constants.iter_mut().for_each(|(_, c)| plain(&mut c.name));
    module.overrides.iter_mut().for_each(|(_, o)| plain(&mut o.name));
    Ok(module)
}

/// The value of `-D NAME=VALUE`.
fn definition(value: &str) -> Option<ShaderDefValue> {
    if let Ok(value) = value.parse() {
        return Some(ShaderDefValue::Bool(value));
    }
    match value.strip_suffix('u') {
        Some(value) => value.parse().ok().map(ShaderDefValue::UInt),
        None => value.strip_suffix('i').unwrap_or(value).parse().ok().map(ShaderDefValue::Int),
    }
}

/// What is put together.
struct Modules<'a> {
    name: &'a str,
    options: &'a Options,
    /// Files by their `#define_import_path`; made when it is needed.
    known: Option<BTreeMap<String, PathBuf>>,
    /// The modules whose imports are being added.
    chain: Vec<String>,
    composer: Composer,
    /// Names of the modules that the composer has.
    added: Vec<String>,
}

impl Modules<'_> {
    /// Adds everything that a text may import, whatever its conditions. What is not found is left to the library, which
    /// knows where the text asks for it.
    fn add_imports(&mut self, file: &str, text: &str) -> Result<(), Diagnostics> {
        let fail = |message: String| Err(Diagnostics::one(Diagnostic::error(file, message)));
        if text.len() >= MAX_PART {
            return fail(format!("a module of WGSL has at most {MAX_PART} bytes"));
        }
        if self.chain.len() >= MAX_CHAIN {
            return fail(format!("imports are nested more than {MAX_CHAIN} deep"));
        }
        for import in get_preprocessor_data(text).1 {
            let name = import.import;
            if self.chain.contains(&name) {
                return fail(format!("`{name}` imports itself: {}", self.chain.join(", ")));
            }
            if self.composer.contains_module(&name) {
                continue;
            }
            let Some(path) = self.find(file, &name) else { continue };
            if self.added.len() >= MAX_MODULES {
                return fail(format!("more than {MAX_MODULES} modules are imported"));
            }
            let shown = path.to_string_lossy().into_owned();
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(e) => return fail(format!("{shown}: {e}")),
            };
            self.chain.push(name.clone());
            self.add_imports(&shown, &text)?;
            self.chain.pop();
            let descriptor = ComposableModuleDescriptor {
                source: &text,
                file_path: &shown,
                as_name: Some(name.clone()),
                ..ComposableModuleDescriptor::default()
            };
            self.added.push(name);
            if let Err(e) = self.composer.add_composable_module(descriptor) {
                return Err(message(&e, &self.composer, &self.added));
            }
        }
        Ok(())
    }

    /// The file of a module: `a::b`, or a path in quotes.
    fn find(&mut self, from: &str, module: &str) -> Option<PathBuf> {
        let folder = |file: &str| Path::new(file).parent().map(Path::to_path_buf);
        if let Some(file) = module.strip_prefix('"') {
            let file = file.strip_suffix('"')?;
            let folders = folder(from).into_iter().chain(self.options.include_dirs.iter().cloned());
            return folders.map(|d| d.join(file)).find(|p| p.is_file());
        }
        if self.known.is_none() {
            let mut found = BTreeMap::new();
            let mut left = MAX_FILES;
            // What is beside the source counts more than what comes later, so it is entered last.
            for folder in self.options.include_dirs.iter().rev().chain(&folder(self.name)) {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                gather(folder, 0, &mut left, &mut found);
            }
            self.known = Some(found);
        }
        self.known.as_ref()?.get(module).cloned()
    }
}

/// All files below a folder that say what their module is called.
fn gather(folder: &Path, depth: u32, left: &mut usize, found: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return;
        }
        if path.is_dir() && !path.is_symlink() && depth < MAX_FOLDERS {
            gather(&path, depth + 1, left, found);
        } else if path.extension().is_some_and(|e| e == "wgsl") {
            *left -= 1;
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let named = text.lines().find_map(|l| l.trim().strip_prefix("#define_import_path "));
            if let Some(name) = named.and_then(|n| n.split_whitespace().next()) {
                found.insert(name.to_owned(), path);
            }
        }
    }
}

/// The library puts a code for the module behind every name.
fn undecorated(text: &str, modules: &[String]) -> String {
    for module in modules {
        let code = Composer::decorated_name(Some(module), "");
        if let Some(item) = text.strip_suffix(code.as_str()) {
            return format!("{module}::{item}");
        }
    }
    text.to_owned()
}

/// The same for every name in a message.
fn readable(text: &str, modules: &[String]) -> String {
    let mut out = text.to_owned();
    for module in modules {
        let code = Composer::decorated_name(Some(module), "");
        while let Some(at) = out.find(&code) {
            let word = |c: char| !(c.is_alphanumeric() || c == '_');
            let start = out[..at].rfind(word).map_or(0, |n| n + 1);
            let item = out[start..at].to_owned();
            out.replace_range(start..at + code.len(), &format!("{module}::{item}"));
        }
    }
    out
}

/// An error of the library as a message.
fn message(error: &ComposerError, composer: &Composer, modules: &[String]) -> Diagnostics {
    use ComposerErrorInner as E;
    let inner = &error.inner;
    let place = |span: Option<naga::Span>| {
        let start = span.and_then(|s| s.to_range())?.start & (MAX_PART - 1);
        Some(start.saturating_sub(error.source.offset()))
    };
    let (text, at) = match inner {
        E::WgslParseError(e) => (e.message().to_owned(), place(e.labels().next().map(|l| l.0))),
        E::ShaderValidationError(e) | E::HeaderValidationError(e) => {
            (super::chain(e.as_inner()), place(e.spans().next().map(|s| s.0)))
        }
        E::ImportNotFound(module, at) => (format!("there is no module `{module}`"), Some(*at)),
        E::InvalidIdentifier { at, .. } => (inner.to_string(), place(Some(*at))),
        E::DecorationInSource(range) => (inner.to_string(), Some(range.start)),
        E::ImportParseError(_, at)
        | E::NotEnoughEndIfs(at)
        | E::TooManyEndIfs(at)
        | E::ElseWithoutCondition(at)
        | E::DefineInModule(at)
        | E::UnknownShaderDef { pos: at, .. }
        | E::UnknownShaderDefOperator { pos: at, .. }
        | E::InvalidShaderDefComparisonValue { pos: at, .. }
        | E::OverrideNotVirtual { pos: at, .. }
        | E::InvalidShaderDefDefinitionValue { pos: at, .. } => (inner.to_string(), Some(*at)),
        _ => (inner.to_string(), None),
    };
    let text = match inner.source() {
        // The chain of causes is in the text already where the library gives one.
        Some(cause) if !text.contains(&cause.to_string()) => format!("{text}: {cause}"),
        _ => text,
    };
    let source = error.source.source(composer);
    let mut d = Diagnostic::error(error.source.path(composer), readable(&text, modules));
    if let Some(before) = at.and_then(|at| source.get(..at.min(source.len()))) {
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() as u32 + 1;
        d = d.with_line(line, column);
    }
    if matches!(inner, E::ImportNotFound(..)) {
        d = d.with_help(
            "modules are looked for beside the source and in the folders given with -I, by their #define_import_path",
        );
    }
    Diagnostics::one(d)
}
