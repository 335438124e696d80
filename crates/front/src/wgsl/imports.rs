//! Modules, macros and conditions that the engine Bevy adds to WGSL (its crate `naga_oil` is the reference for what they mean).
//!
//! ```text
//! #define_import_path a::b                what the module of this file is called
//! #import a::b                            b::item, and a::b::item
//! #import a::b::{item, c::{self, d as e}} item, c::x, e
//! #import "other.wgsl" as o               a file beside this one
//! #ifdef X  #ifndef X  #if X == 3  #else ifdef Y  #else  #endif  #define X 3  #{X}
//! ```
//!
//! Everything becomes one text. The source comes first, so its lines keep their numbers; modules follow, each once, their global
//! names with the path of the module in front (`a_b_item`). Renaming goes by words: a local variable that has the name of a global
//! one is renamed with it, everywhere in the module; members of structures are not. Modules are looked for beside the source and in the
//! folders of the options, by their own `#define_import_path`. Overriding of functions (`virtual`, `override fn`) is left out.

use crate::{Diagnostic, Diagnostics, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Most modules that take part, and most files that are looked at.
const MAX_MODULES: usize = 1000;
const MAX_FILES: usize = 4096;
const MAX_FOLDERS: u32 = 16;
/// Deepest nesting of conditions and of braces in an import.
const MAX_NESTING: usize = 64;

/// A text with all modules in it.
#[derive(Debug)]
pub struct Combined {
    pub text: String,
    /// Files in order: their name, and the number of the first line of each in the text, from 1.
    files: Vec<(String, usize)>,
}

impl Combined {
    /// The file that a line of the text comes from, and its number there.
    pub fn place(&self, line: u32) -> (&str, u32) {
        let line = line as usize;
        match self.files.iter().rev().find(|f| f.1 <= line) {
            Some((name, first)) => (name, (line - first + 1) as u32),
            None => ("", line as u32),
        }
    }
}

/// Whether a text uses any of this.
pub fn is_used(text: &str) -> bool {
    text.lines().any(|l| l.trim_start().starts_with('#')) || text.contains("#{")
}

/// A module after its conditions.
struct Module {
    file: String,
    /// `a::b`, or the path in quotes.
    path: String,
    /// Lines that are left out are empty.
    lines: Vec<String>,
    /// What a name in front of `::`, or a name alone, stands for; with the line of the import.
    imports: Vec<(String, String, u32)>,
}

type Macros = BTreeMap<String, String>;

struct Context<'a> {
    name: &'a str,
    options: &'a Options,
    /// By `#define_import_path`; made when it is needed.
    known: Option<BTreeMap<String, PathBuf>>,
    macros: Macros,
}

fn error(file: &str, line: u32, message: impl Into<String>) -> Diagnostics {
    Diagnostics::one(Diagnostic::error(file, message.into()).with_line(line, 1))
}

/// Puts a source and everything that it imports together.
///
/// # Errors
/// A module that is not there, or a line that cannot be read.
pub fn combine(name: &str, text: &str, options: &Options) -> Result<Combined, Diagnostics> {
    let macros =
        options.defines.iter().map(|(k, v)| (k.clone(), v.clone().unwrap_or_else(|| "true".to_owned())));
    let mut context = Context { name, options, known: None, macros: macros.collect() };
    let root = context.module(name, String::new(), text)?;
    let mut modules: Vec<Module> = vec![root];
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut at = 0;
    while at < modules.len() {
        let imports = modules[at].imports.clone();
        let from = modules[at].file.clone();
        for (n, (_, target, line)) in imports.into_iter().enumerate() {
            let module = context.find(&from, &target).ok_or_else(|| {
                let d = Diagnostic::error(&from, format!("there is no module for `{target}`"));
                let help = "modules are looked for beside the source and in the folders given with -I, by their #define_import_path";
                Diagnostics::one(d.with_line(line, 1).with_help(help))
            })?;
            let (path, file) = module;
            // From now on the import names module and item apart: `a::b` and `item`.
            let item =
                target.strip_prefix(path.as_str()).unwrap_or_default().trim_start_matches("::").to_owned();
            modules[at].imports[n].1 = format!("{path}\n{item}");
            if names.insert(path.clone()) {
                if modules.len() >= MAX_MODULES {
                    return Err(error(&from, line, format!("more than {MAX_MODULES} modules")));
                }
                let shown = file.to_string_lossy().into_owned();
                let bytes = std::fs::read(&file).map_err(|e| error(&from, line, format!("{shown}: {e}")))?;
                if bytes.len() > crate::MAX_TEXT {
                    return Err(error(&from, line, format!("{shown} is too large")));
                }
                let module = context.module(&shown, path, &String::from_utf8_lossy(&bytes))?;
                modules.push(module);
            }
        }
        at += 1;
    }
    let globals: BTreeMap<String, BTreeSet<String>> =
        modules.iter().map(|m| (m.path.clone(), globals(&m.lines))).collect();
    let mut out = Combined { text: String::new(), files: Vec::new() };
    let mut line = 1;
    for m in &modules {
        out.files.push((m.file.clone(), line));
        line += m.lines.len();
        for text in renamed(m, &globals) {
            out.text.push_str(&text);
            out.text.push('\n');
        }
        if out.text.len() > crate::MAX_TEXT {
            return Err(error(
                name,
                0,
                format!("with its imports the source has more than {} bytes", crate::MAX_TEXT),
            ));
        }
    }
    Ok(out)
}

impl Context<'_> {
    /// The module that an import means (`a::b` for `a::b` or `a::b::item`), and its file.
    fn find(&mut self, from: &str, target: &str) -> Option<(String, PathBuf)> {
        if let Some(file) = target.strip_prefix('"') {
            let (file, _) = file.split_once('"')?;
            let beside = Path::new(from).parent().map(Path::to_path_buf);
            let path = beside
                .iter()
                .chain(&self.options.include_dirs)
                .map(|d| d.join(file))
                .find(|p| p.is_file())?;
            return Some((format!("\"{file}\""), path));
        }
        if self.known.is_none() {
            let mut found = BTreeMap::new();
            let mut left = MAX_FILES;
            let beside = Path::new(self.name).parent().map(Path::to_path_buf);
            for folder in self.options.include_dirs.iter().rev().chain(&beside) {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                gather(folder, 0, &mut left, &mut found);
            }
            self.known = Some(found);
        }
        let known = self.known.as_ref()?;
        let whole = target.to_owned();
        let outer = target.rsplit_once("::").map(|p| p.0.to_owned());
        [Some(whole), outer]
            .into_iter()
            .flatten()
            .find_map(|p| known.get(&p).map(|file| (p.clone(), file.clone())))
    }

    /// Conditions and macros of a text, and what it imports.
    fn module(&mut self, file: &str, path: String, text: &str) -> Result<Module, Diagnostics> {
        let mut out = Module { file: file.to_owned(), path, lines: Vec::new(), imports: Vec::new() };
        // Of each open condition: whether this branch counts, and whether an earlier one did.
        let mut open: Vec<(bool, bool)> = Vec::new();
        let mut import = String::new();
        for (n, line) in text.lines().enumerate() {
            let number = n as u32 + 1;
            let trimmed = line.split("//").next().unwrap_or_default().trim();
            let bad = |what: &str| error(file, number, what);
            let on = open.iter().all(|o| o.0);
            let mut kept = String::new();
            if !import.is_empty() {
                // An import goes on until its braces are closed.
                import.push(' ');
                import.push_str(trimmed);
            } else if let Some(rest) = directive(trimmed, "#import").filter(|_| on) {
                import = rest.to_owned();
            } else if let Some(rest) = directive(trimmed, "#else") {
                let outer = open.iter().rev().skip(1).all(|o| o.0);
                let Some(last) = open.last_mut() else { return Err(bad("#else without #if")) };
                let rest = rest.trim();
                let holds = rest.is_empty()
                    || !last.1 && outer && self.condition(rest).ok_or_else(|| bad("a condition"))?;
                *last = (holds && !last.1, last.1 || holds);
            } else if directive(trimmed, "#endif").is_some() {
                if open.pop().is_none() {
                    return Err(bad("#endif without #if"));
                }
            } else if trimmed.starts_with("#if") {
                let holds = on
                    && self.condition(&trimmed[1..]).ok_or_else(|| bad("this condition cannot be read"))?;
                open.push((holds, holds));
                if open.len() > MAX_NESTING {
                    return Err(bad("conditions are nested too deeply"));
                }
            } else if !on || directive(trimmed, "#define_import_path").is_some() {
            } else if let Some(rest) = directive(trimmed, "#define") {
                let mut words = rest.split_whitespace();
                let name = words.next().ok_or_else(|| bad("#define without a name"))?;
                let value = words.next().unwrap_or("true");
                self.macros.insert(name.to_owned(), value.to_owned());
            } else {
                kept = self.replaced(line);
            }
            if !import.is_empty() && import.matches('{').count() <= import.matches('}').count() {
                let whole = std::mem::take(&mut import);
                parse_import(&whole, &mut |name, target| out.imports.push((name, target, number)))
                    .ok_or_else(|| bad("this import cannot be read"))?;
            }
            out.lines.push(kept);
        }
        if !open.is_empty() || !import.is_empty() {
            return Err(error(file, out.lines.len() as u32, "a condition or an import is not closed"));
        }
        Ok(out)
    }

    /// `ifdef X`, `ifndef X`, `if X == 3`, `if X`.
    fn condition(&self, text: &str) -> Option<bool> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = |w: &str| self.macros.get(w).map_or_else(|| w.to_owned(), Clone::clone);
        let number = |w: &str| value(w).trim_end_matches(['u', 'i']).parse::<i64>().ok();
        match words.as_slice() {
            ["ifdef", name] => Some(self.macros.contains_key(*name)),
            ["ifndef", name] => Some(!self.macros.contains_key(*name)),
            ["if", name] => Some(value(name) == "true" || number(name).is_some_and(|n| n != 0)),
            ["if", a, how, b] => {
                let order = match (number(a), number(b)) {
                    (Some(a), Some(b)) => a.cmp(&b),
                    _ => value(a).cmp(&value(b)),
                };
                match *how {
                    "==" => Some(order.is_eq()),
                    "!=" => Some(order.is_ne()),
                    "<" => Some(order.is_lt()),
                    "<=" => Some(order.is_le()),
                    ">" => Some(order.is_gt()),
                    ">=" => Some(order.is_ge()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A line with the values of `#{NAME}` and `#NAME`.
    fn replaced(&self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once('#') {
            out.push_str(before);
            let braces = behind.strip_prefix('{').and_then(|b| b.split_once('}'));
            let end = behind.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(behind.len());
            let (name, after) = braces.unwrap_or_else(|| behind.split_at(end));
            match self.macros.get(name.trim()) {
                Some(value) => out.push_str(value),
                None => out.push_str(&rest[before.len()..rest.len() - after.len()]),
            }
            rest = after;
        }
        out + rest
    }
}

/// What follows a directive.
fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '"')).then_some(rest)
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
            let named = text.lines().find_map(|l| directive(l.trim(), "#define_import_path"));
            if let Some(name) = named {
                found.insert(name.trim().to_owned(), path);
            }
        }
    }
}

/// Calls `give` with each name that an import makes and what it stands for.
fn parse_import(text: &str, give: &mut dyn FnMut(String, String)) -> Option<()> {
    fn items(prefix: &str, text: &str, depth: usize, give: &mut dyn FnMut(String, String)) -> Option<()> {
        if depth > MAX_NESTING {
            return None;
        }
        let (mut level, mut start) = (0usize, 0);
        let mut parts = Vec::new();
        for (at, c) in text.char_indices() {
            match c {
                '{' => level += 1,
                '}' => level = level.checked_sub(1)?,
                ',' if level == 0 => {
                    parts.push(&text[start..at]);
                    start = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&text[start..]);
        for part in parts.into_iter().map(|p| p.trim().trim_end_matches(';').trim()).filter(|p| !p.is_empty())
        {
            if let Some((head, inner)) = part.split_once('{') {
                let inner = inner.trim_end().strip_suffix('}')?;
                let head = head.trim().strip_suffix("::")?;
                items(&join(prefix, head), inner, depth + 1, give)?;
                continue;
            }
            let (path, alias) = match part.split_once(" as ") {
                Some((path, alias)) => (path.trim(), Some(alias.trim())),
                None => (part, None),
            };
            if path.contains(char::is_whitespace) && !path.starts_with('"') {
                return None;
            }
            let whole = if path == "self" { prefix.to_owned() } else { join(prefix, path) };
            let last = whole.rsplit("::").next().unwrap_or_default();
            let stem = last.trim_matches('"').trim_end_matches(".wgsl");
            let stem = stem.rsplit('/').next().unwrap_or(stem);
            give(alias.unwrap_or(stem).to_owned(), whole);
        }
        Some(())
    }
    items("", text, 0, give)
}

fn join(prefix: &str, path: &str) -> String {
    if prefix.is_empty() { path.to_owned() } else { format!("{prefix}::{path}") }
}

/// A part of a line: a word, or anything else.
fn tokens(line: &str) -> Vec<&str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = if rest.starts_with("//") {
            rest.len()
        } else if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(end);
        out.push(token);
        rest = behind;
    }
    out
}

/// Names that a module declares outside of everything.
fn globals(lines: &[String]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let (mut depth, mut declares, mut angle) = (0i64, false, 0i64);
    for token in lines.iter().flat_map(|l| tokens(l)) {
        match token {
            "{" | "(" => depth += 1,
            "}" | ")" => depth -= 1,
            "fn" | "struct" | "alias" | "const" | "override" | "var" if depth == 0 => declares = true,
            // The address space of a variable.
            "<" if declares => angle += 1,
            ">" if declares => angle -= 1,
            _ if declares && angle == 0 && token.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                out.insert(token.to_owned());
                declares = false;
            }
            _ => {}
        }
    }
    out
}

/// `a::b` as the start of names.
fn mangled(path: &str, item: &str) -> String {
    if path.is_empty() {
        return item.to_owned();
    }
    let plain: String = path.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    format!("{}_{item}", plain.replace("__", "_").trim_matches('_'))
}

/// The lines of a module with the names that they have in the whole text.
fn renamed(m: &Module, globals: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let own = globals.get(&m.path);
    // `path\nitem`: see `combine`.
    let imports: BTreeMap<&str, (&str, &str)> =
        m.imports.iter().filter_map(|(name, t, _)| Some((name.as_str(), t.split_once('\n')?))).collect();
    let alone = |word: &str| -> Option<String> {
        match imports.get(word) {
            Some((path, item)) if !item.is_empty() => Some(mangled(path, item)),
            _ => own.filter(|o| o.contains(word) && !m.path.is_empty()).map(|_| mangled(&m.path, word)),
        }
    };
    let within = |parts: &[&str]| -> Option<String> {
        let (item, head) = parts.split_last()?;
        let (first, more) = head.split_first()?;
        let start = imports.get(first).filter(|i| i.1.is_empty()).map_or(*first, |i| i.0);
        let path = more.iter().fold(start.to_owned(), |path, part| join(&path, part));
        globals.get(&path).filter(|names| names.contains(*item)).map(|_| mangled(&path, item))
    };
    // Members are declared in the braces of a structure.
    let (mut structure, mut inside) = (false, false);
    let mut out = Vec::with_capacity(m.lines.len());
    for line in &m.lines {
        let tokens = tokens(line);
        let mut text = String::new();
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at];
            match token {
                "struct" => structure = true,
                "{" if structure => (structure, inside) = (false, true),
                "}" => inside = false,
                _ => {}
            }
            let is_word = token.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let before =
                tokens[..at].iter().rev().find(|t| !t.trim().is_empty()).copied().unwrap_or_default();
            if !is_word || matches!(before, "." | "@") {
                text.push_str(token);
                at += 1;
                continue;
            }
            let mut parts = vec![token];
            let mut next = at + 1;
            while tokens.get(next) == Some(&"::") && tokens.get(next + 1).is_some() {
                parts.push(tokens[next + 1]);
                next += 2;
            }
            let behind = tokens[next..].iter().find(|t| !t.trim().is_empty()).copied().unwrap_or_default();
            let attribute = tokens[..at].iter().rev().filter(|t| !t.trim().is_empty()).nth(1).copied();
            let special = matches!(attribute, Some("builtin" | "interpolate")) && before == "(";
            let new = match parts.as_slice() {
                _ if special || inside && behind == ":" && parts.len() == 1 => None,
                [word] => alone(word),
                parts => within(parts),
            };
            match new {
                Some(name) => text.push_str(&name),
                None => text.push_str(&parts.join("::")),
            }
            at = next;
        }
        out.push(text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Option<Vec<(String, String)>> {
        let mut out = Vec::new();
        parse_import(text, &mut |name, target| out.push((name, target)))?;
        Some(out)
    }

    #[test]
    fn imports_are_read() {
        let want = |list: &[(&str, &str)]| {
            Some(list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(imports("a::b"), want(&[("b", "a::b")]));
        assert_eq!(imports("a::b as c"), want(&[("c", "a::b")]));
        assert_eq!(
            imports("a::{b, c::{self, d as e, f}, }"),
            want(&[("b", "a::b"), ("c", "a::c"), ("e", "a::c::d"), ("f", "a::c::f")])
        );
        assert_eq!(imports("\"x/y.wgsl\" as z"), want(&[("z", "\"x/y.wgsl\"")]));
        assert_eq!(imports("\"x/y.wgsl\""), want(&[("y", "\"x/y.wgsl\"")]));
        for bad in ["a::{b", "a b", "a{b}", "a::}b{"] {
            assert_eq!(imports(bad), None, "{bad}");
        }
    }

    #[test]
    fn global_names_are_found() {
        let text = "@group(0) @binding(1) var<storage, read_write> a: array<u32>;\nconst b = 1; fn c(x: u32) -> u32 { let d = x; return d; }\nstruct E { f: u32 }\nalias G = vec4<f32>;\nvar<private> h: u32;";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(globals(&lines).into_iter().collect::<Vec<_>>(), ["E", "G", "a", "b", "c", "h"]);
    }
}
