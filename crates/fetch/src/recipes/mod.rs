//! From the files of a package to complete programs, as the engines they were written for put them together.
//!
//! A recipe knows which programs there are ([`Recipe::all`]) and how to assemble one ([`Recipe::assemble`]). Engines that choose
//! among very many variants while they run (ggml, WebRender) are not run here: of them a manifest says which variants are wanted,
//! and without one there are only the plain ones.

pub mod butterchurn;
pub mod kernels;
pub mod ncnn;
pub mod shader_test;
pub mod texts;
pub mod vello;
pub mod webrender;

use crate::archive::Files;
use crate::opencl::Passes;

/// The files of the packages of a collection, in the order of its sources.
pub struct Package {
    pub files: Vec<Files>,
}

impl Package {
    pub fn bytes(&self, path: &str) -> Result<&[u8], String> {
        let found = self.files.iter().find_map(|files| files.get(path));
        found.map(Vec::as_slice).ok_or_else(|| format!("{path} is not in the package"))
    }

    pub fn text(&self, path: &str) -> Result<String, String> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Paths with this start and end, in order.
    pub fn paths<'a>(&'a self, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
        let keys = self.files.iter().flat_map(|files| files.keys());
        keys.map(String::as_str).filter(move |p| p.starts_with(start) && p.ends_with(end))
    }
}

/// A program that may be assembled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Of the module, without stage.
    pub name: String,
    /// The file in the package, with defines or features.
    pub original: String,
    /// As the extension of a file: `frag`, `comp`; `multi` for several, `kernel`.
    pub stage: String,
}

impl Candidate {
    pub fn new(name: impl Into<String>, original: impl Into<String>, stage: &str) -> Candidate {
        Candidate { name: name.into(), original: original.into(), stage: stage.to_owned() }
    }
}

/// What a text is written in, with what goes with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Language {
    Glsl { defines: Vec<(String, Option<String>)> },
    Wgsl,
    OpenCl { options: Vec<String>, passes: Passes },
}

/// A complete program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub text: String,
    pub language: Language,
    /// The language for the manifest.
    pub label: &'static str,
}

impl Program {
    pub fn glsl(text: String, label: &'static str) -> Program {
        Program { text, language: Language::Glsl { defines: Vec::new() }, label }
    }
}

pub trait Recipe: Sync {
    /// Everything that can be assembled without being told.
    fn all(&self, package: &Package) -> Vec<Candidate>;

    /// # Errors
    /// When the package has not what the candidate asks for.
    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String>;

    /// Files that programs include: path in the folder of includes, contents.
    fn includes<'a>(&self, _package: &'a Package) -> Vec<(String, &'a [u8])> {
        Vec::new()
    }
}

/// Makes the recipe of a collection from its package.
pub type MakeRecipe = fn(&Package) -> Result<Box<dyn Recipe>, String>;

/// A path as the name of a module: its last part without extension.
pub fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

/// Anything as the name of a file.
pub fn plain(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let good = c.is_ascii_alphanumeric() || "+-.".contains(c);
        match good {
            true => out.push(c),
            false if out.ends_with('_') => {}
            false => out.push('_'),
        }
    }
    out
}

/// The text after all words of a name are replaced.
pub fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + name.len()..].starts_with(part))
}
