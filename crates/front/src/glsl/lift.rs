//! The pre-pass: OpenGL's GLSL (ES 1.00 to 3.00, desktop 1.10 to 3.20, and what engines make of them) as text that a
//! Vulkan compiler takes.
//!
//! Text to text, one pass over the tokens, in this order:
//!
//! 1. `#version` goes; `#extension` goes too, except for what Vulkan GLSL knows, which moves to the front.
//! 2. Default `precision` statements go. The macro `GL_ES` gets another name, so that its branches are not taken.
//! 3. Words that became keywords later get another name, `texture` too where no `(` follows.
//! 4. Old functions and qualifiers become macros: only those that the text uses and does not define itself.
//! 5. Built-in variables that Vulkan lacks become inputs, outputs and uniforms of our own ([`super::legacy`]).
//! 6. Uniforms lose their initial values, which only an OpenGL driver would set.
//! 7. `#version 450` comes first, then the extensions, then what was declared, then the text with its own line numbers.
//!
//! Locations, bindings and the block for loose uniforms are left to glslang, which has rules for them.
//!
//! The pre-pass does not expand macros: a name that a macro pastes together is not seen.

use super::legacy::{BUILT_INS, KEPT_EXTENSIONS, LATER_KEYWORDS, MACROS, PREFIX, RENAMED};
use kempe_ir::Stage;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The version that a text is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// 110 if there is no line that says so, as the language has it.
    pub number: u32,
    pub es: bool,
}

impl Version {
    /// The text may be Vulkan GLSL: then its errors are those of Vulkan GLSL.
    pub fn may_be_vulkan(self) -> bool {
        if self.es { self.number >= 310 } else { self.number >= 420 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Word,
    /// Numbers and everything else of one character.
    Other,
    /// White space and comments.
    Blank,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    /// On a line that starts with `#`; its name is the second word then.
    directive: bool,
}

/// What the `#version` line says.
pub fn version(text: &str) -> Version {
    let tokens = tokens(text);
    for (n, t) in tokens.iter().enumerate() {
        if t.directive && t.text == "version" {
            let mut words =
                tokens[n + 1..].iter().take_while(|t| t.directive).filter(|t| t.kind != Kind::Blank);
            let number = words.next().and_then(|t| t.text.parse().ok()).unwrap_or(110);
            let es = number == 100 || words.next().is_some_and(|t| t.text == "es");
            return Version { number, es };
        }
    }
    Version { number: 110, es: false }
}

/// Cuts a text into tokens; put together they are the text.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let b = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    let mut directive = false;
    let mut line_start = true;
    while at < b.len() {
        let start = at;
        let kind = match b[at] {
            b'\n' => {
                at += 1;
                // A line that goes on.
                let before = &b[..start];
                if !before.ends_with(b"\\") && !before.ends_with(b"\\\r") {
                    directive = false;
                    line_start = true;
                }
                out.push(Token { kind: Kind::Blank, text: &text[start..at], directive });
                continue;
            }
            c if c.is_ascii_whitespace() => {
                while at < b.len() && b[at].is_ascii_whitespace() && b[at] != b'\n' {
                    at += 1;
                }
                Kind::Blank
            }
            b'\\' => {
                at += 1;
                Kind::Blank
            }
            b'/' if b.get(at + 1) == Some(&b'/') => {
                while at < b.len() && b[at] != b'\n' {
                    at += 1;
                }
                Kind::Blank
            }
            b'/' if b.get(at + 1) == Some(&b'*') => {
                at += 2;
                while at < b.len() && !b[..at].ends_with(b"*/") || at < start + 4 && at < b.len() {
                    at += 1;
                }
                Kind::Blank
            }
            c if c.is_ascii_alphabetic() || c == b'_' => {
                while at < b.len() && (b[at].is_ascii_alphanumeric() || b[at] == b'_') {
                    at += 1;
                }
                Kind::Word
            }
            c if c.is_ascii_digit() => {
                while at < b.len() && (b[at].is_ascii_alphanumeric() || b[at] == b'.') {
                    at += 1;
                }
                Kind::Other
            }
            c => {
                at += 1;
                // Not into the middle of a character.
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                directive |= c == b'#' && line_start;
                Kind::Other
            }
        };
        line_start &= kind == Kind::Blank;
        out.push(Token { kind, text: &text[start..at], directive });
    }
    out
}

/// The text as Vulkan GLSL 4.50, as far as names go.
pub fn lift(source: &str, stage: Stage) -> String {
    let source = source.trim_start_matches('\u{feff}').replace('\r', "");
    let version = version(&source);
    let legacy = !version.may_be_vulkan();
    let list = tokens(&source);
    let defined = defined(&list);
    let mut used: BTreeSet<&str> = list.iter().filter(|t| t.kind == Kind::Word).map(|t| t.text).collect();
    if used.contains("ftransform") {
        used.extend(["gl_ModelViewProjectionMatrix", "gl_Vertex"]);
    }
    let targets = largest_index(&list, "gl_FragData");
    let mut pass = Pass { names: BTreeSet::new(), body: String::with_capacity(source.len()), list, stage };
    pass.names = pass.names_like_keywords(legacy);
    let extensions = pass.run(legacy || !version.es);
    let mut out = String::from("#version 450\n");
    out.push_str(&extensions);
    declare(&mut out, &used, &defined, stage, targets);
    out.push_str("#line 1\n");
    out.push_str(&pass.body);
    out
}

/// Names that the text itself defines as macros.
fn defined<'a>(list: &[Token<'a>]) -> BTreeSet<&'a str> {
    let mut out = BTreeSet::new();
    let mut words = list.iter().filter(|t| t.kind != Kind::Blank);
    while let Some(t) = words.next() {
        if t.directive
            && t.text == "define"
            && let Some(name) = words.next()
        {
            out.insert(name.text);
        }
    }
    out
}

/// The pass over the tokens.
struct Pass<'a> {
    list: Vec<Token<'a>>,
    stage: Stage,
    /// Words that became keywords and are names here.
    names: BTreeSet<&'a str>,
    body: String,
}

impl<'a> Pass<'a> {
    /// What stands before and behind a token, blanks left out.
    fn before(&self, n: usize) -> Option<&Token<'a>> {
        self.list[..n].iter().rev().find(|t| t.kind != Kind::Blank)
    }

    fn next(&self, n: usize) -> &'a str {
        self.list[n + 1..].iter().find(|t| t.kind != Kind::Blank).map_or("", |t| t.text)
    }

    /// Old texts may use all of them as names; in others it takes a place where only a name can stand.
    fn names_like_keywords(&self, legacy: bool) -> BTreeSet<&'a str> {
        let is_name = |(n, t): &(usize, &Token<'a>)| {
            t.kind == Kind::Word
                && LATER_KEYWORDS.contains(&t.text)
                && (legacy
                    || self.before(*n).is_some_and(|b| b.kind == Kind::Word)
                        && matches!(self.next(*n), ";" | "=" | "," | ")" | "["))
        };
        self.list.iter().enumerate().filter(is_name).map(|(_, t)| t.text).collect()
    }

    /// Writes the body; returns the extensions to keep.
    fn run(&mut self, strip_uniforms: bool) -> String {
        let mut extensions = String::new();
        let mut n = 0;
        while let Some(&t) = self.list.get(n) {
            // Lines of the preprocessor that go.
            if t.directive && t.text == "#" && matches!(self.next(n), "version" | "extension") {
                let line: Vec<&Token> = self.list[n..].iter().take_while(|t| t.directive).collect();
                let text: String = line.iter().map(|t| t.text).collect();
                let name = line.iter().filter(|t| t.kind == Kind::Word).nth(1).map_or("", |t| t.text);
                if self.next(n) == "extension" && KEPT_EXTENSIONS.iter().any(|e| name.starts_with(e)) {
                    extensions.push_str(text.trim());
                    extensions.push('\n');
                }
                n += line.len();
                self.body.extend(text.chars().filter(|c| *c == '\n'));
                continue;
            }
            if t.kind == Kind::Word && !t.directive {
                if t.text == "precision" && matches!(self.next(n), "lowp" | "mediump" | "highp") {
                    n = self.skip(n, &[";"]) + 1;
                    continue;
                }
                if t.text == "uniform" && strip_uniforms {
                    n = self.uniform(n);
                    continue;
                }
            }
            self.copy(n);
            n += 1;
        }
        extensions
    }

    /// Copies a token under its new name.
    fn copy(&mut self, n: usize) {
        let t = self.list[n];
        let is_word = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let renamed = t.kind == Kind::Word
            && match t.text {
                "texture" => {
                    !t.directive && self.next(n) != "(" && self.before(n).is_none_or(|b| b.text != "define")
                }
                // A qualifier stands before another word, a name never does.
                name => self.names.contains(name) && !is_word(self.next(n)),
            };
        let built_in = || BUILT_INS.iter().find(|b| b.name == t.text && b.stages.contains(&self.stage));
        match t.text {
            "GL_ES" => self.body.extend([PREFIX, "ES"]),
            name if renamed => self.body.extend([PREFIX, name]),
            name if name.starts_with("gl_") => match built_in() {
                Some(b) => self.body.push_str(&b.stands.replace('$', PREFIX)),
                None => self.body.push_str(name),
            },
            other => self.body.push_str(other),
        }
    }

    /// Leaves tokens out up to one of those that end them, lines stay; returns where that is.
    fn skip(&mut self, mut n: usize, ends: &[&str]) -> usize {
        let mut depth = 0i32;
        while let Some(t) = self.list.get(n) {
            match t.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                text if depth <= 0 && ends.contains(&text) => return n,
                _ => {}
            }
            self.body.extend(t.text.chars().filter(|c| *c == '\n'));
            n += 1;
        }
        n
    }

    /// Copies a uniform declaration without its initial values, up to its end or to the `{` of a block.
    fn uniform(&mut self, mut n: usize) -> usize {
        let mut depth = 0;
        while let Some(&t) = self.list.get(n) {
            match t.text {
                "{" => return n,
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "=" if depth == 0 && !t.directive => {
                    n = self.skip(n, &[",", ";"]);
                    continue;
                }
                _ => {}
            }
            self.copy(n);
            n += 1;
            if t.text == ";" {
                break;
            }
        }
        n
    }
}

/// The largest constant index of an array, or the most there may be.
fn largest_index(list: &[Token], name: &str) -> u32 {
    const MOST: u32 = 8;
    let words: Vec<&Token> = list.iter().filter(|t| t.kind != Kind::Blank).collect();
    let mut largest = 0;
    for (n, t) in words.iter().enumerate() {
        if t.text == name {
            let index = match (words.get(n + 1), words.get(n + 2), words.get(n + 3)) {
                (Some(a), Some(i), Some(z)) if a.text == "[" && z.text == "]" => i.text.parse::<u32>().ok(),
                _ => None,
            };
            match index {
                Some(i) if i < MOST => largest = largest.max(i),
                _ => return MOST,
            }
        }
    }
    largest + 1
}

fn declare(out: &mut String, used: &BTreeSet<&str>, defined: &BTreeSet<&str>, stage: Stage, targets: u32) {
    let mut define = |name: &str, stands: &str| {
        let word = name.split('(').next().unwrap_or(name);
        if used.contains(word) && !defined.contains(word) {
            let _ = writeln!(out, "#define {name} {stands}");
        }
    };
    define("attribute", "in");
    define("varying", if stage == Stage::Vertex { "out" } else { "in" });
    for &(now, names) in RENAMED {
        for name in names {
            define(name, now);
        }
    }
    for &(name, stands) in MACROS {
        define(name, stands);
    }
    for b in BUILT_INS {
        if used.contains(b.name)
            && !defined.contains(b.name)
            && b.stages.contains(&stage)
            && !b.declared.is_empty()
        {
            let text = b.declared.replace('$', PREFIX).replace('#', &targets.to_string());
            let _ = writeln!(out, "{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str) -> String {
        lift(text, Stage::Fragment)
    }

    #[test]
    fn versions() {
        for (text, number, es) in [
            ("void main() {}", 110, false),
            ("#version 100\n", 100, true),
            ("// c\n /* d */ # version 300 es\n", 300, true),
            ("#version 330 core\n", 330, false),
            ("#version 450", 450, false),
        ] {
            assert_eq!(version(text), Version { number, es }, "{text}");
        }
        assert!(version("#version 310 es").may_be_vulkan() && !version("#version 330").may_be_vulkan());
    }

    #[test]
    fn tokens_are_the_text() {
        for text in ["", "a/*b", "/*/ x */ y", "#define A \\\n b\nc", "1.5e3+é//é\n\"", "a\\", "/**/x"] {
            let all: String = tokens(text).iter().map(|t| t.text).collect();
            assert_eq!(all, text);
        }
        let list = tokens("/*/ x */ y");
        assert_eq!(list.iter().filter(|t| t.kind == Kind::Word).count(), 1);
        let words: Vec<bool> = tokens("#define A \\\n b\nc")
            .iter()
            .filter(|t| t.kind == Kind::Word)
            .map(|t| t.directive)
            .collect();
        assert_eq!(words, [true, true, true, false]);
    }

    #[test]
    fn es_one() {
        let text = "#version 100\n#extension GL_OES_standard_derivatives : enable\nprecision highp float;\nvarying vec2 uv;\n\
                    uniform sampler2D t;\nvoid main() { gl_FragColor = texture2D(t, uv); }\n";
        let out = fragment(text);
        assert_eq!(
            out,
            "#version 450\n#define varying in\n#define texture2D texture\nlayout(location = 0) out vec4 kempe_FragColor;\n\
             #line 1\n\n\n\nvarying vec2 uv;\nuniform sampler2D t;\nvoid main() { kempe_FragColor = texture2D(t, uv); }\n"
        );
    }

    /// A text that brings its own macros keeps them.
    #[test]
    fn own_macros() {
        let out = fragment(
            "#define varying in\n#define gl_FragColor pc\nout vec4 pc;\nvarying float a;\nvoid main() { gl_FragColor = vec4(a); }",
        );
        assert!(!out.contains("layout(location"), "{out}");
        assert!(
            out.contains("#define kempe_FragColor pc") && out.contains("kempe_FragColor = vec4(a)"),
            "{out}"
        );
        assert_eq!(out.matches("#define varying").count(), 1);
    }

    #[test]
    fn names_that_became_keywords() {
        let out = fragment(
            "float sample(float buffer) { return buffer; } uniform sampler2D texture; vec4 f() { return texture2D(texture, vec2(0.)); }",
        );
        assert!(out.contains("kempe_sample(float kempe_buffer)"), "{out}");
        assert!(out.contains("texture2D(kempe_texture, "), "{out}");
        let out =
            fragment("#version 400\nsample in float x; vec4 f(sampler2D s) { return texture(s, vec2(x)); }");
        assert!(out.contains("sample in float x") && out.contains("texture(s, vec2(x))"), "{out}");
        let out =
            fragment("#version 330\nwriteonly uniform image2D i;\nfloat f(float filter) { return filter; }");
        assert!(out.contains("writeonly uniform") && out.contains("f(float kempe_filter)"), "{out}");
    }

    #[test]
    fn initial_values_of_uniforms() {
        let out =
            fragment("uniform vec2 a = vec2(1.0,\n 2.0), b;\nuniform B { float c; } d;\nfloat e = 1.0;\n");
        assert!(out.contains("uniform vec2 a \n, b;"), "{out}");
        assert!(out.contains("uniform B { float c; } d;") && out.contains("float e = 1.0;"), "{out}");
    }

    #[test]
    fn targets_and_precision() {
        let out =
            fragment("precision mediump float; lowp float x; void main() { gl_FragData[2] = vec4(x); }");
        assert!(out.contains("kempe_FragData[3];") && !out.contains("precision"), "{out}");
        assert!(out.contains("lowp float x;"));
        let out = fragment("void main() { for (int i = 0; i < 4; i++) gl_FragData[i] = vec4(0); }");
        assert!(out.contains("kempe_FragData[8];"), "{out}");
    }

    #[test]
    fn fixed_functions() {
        let out =
            lift("void main() { gl_Position = ftransform(); gl_FrontColor = gl_Color; }", Stage::Vertex);
        assert!(out.contains("uniform mat4 kempe_ModelViewProjectionMatrix;"), "{out}");
        assert!(out.contains("in vec4 kempe_Vertex;") && out.contains("in vec4 kempe_Color;"), "{out}");
        assert!(out.contains("out vec4 kempe_FrontColor;"), "{out}");
    }

    #[test]
    fn kept_extensions() {
        let out = fragment(
            "#extension GL_EXT_shader_texture_lod : enable\n#extension GL_EXT_frag_depth : enable\n#ifdef GL_ES\n#endif\n",
        );
        assert!(
            out.starts_with("#version 450\n#extension GL_EXT_shader_texture_lod : enable\n#line 1\n"),
            "{out}"
        );
        assert!(out.contains("#ifdef kempe_ES"));
    }

    /// Time grows with the text, whatever it repeats.
    #[test]
    fn long_texts_end() {
        for part in ["buffer ", "float sample; ", "uniform float a = 1.0; ", "# # ", "gl_FragData[1] "] {
            let text = format!("#version 450\n{}", part.repeat(200_000));
            assert!(fragment(&text).len() >= text.len() / 2, "{part}");
        }
    }
}
