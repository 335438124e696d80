//! Butterchurn: a preset gives the bodies of two fragment shaders, the engine two templates that they are put into.

use super::{Candidate, Package, Program, Recipe, plain, stem};

const ENGINE: &str = "lib/butterchurn.js";
const PRESETS: &str = "presets/converted/";

/// A piece of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    Header,
    Body,
}

struct Butterchurn {
    comp: Vec<Piece>,
    warp: Vec<Piece>,
}

/// A string literal from its opening quote on, and what follows it.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 2..])),
            '\\' => out.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            c => out.push(c),
        }
    }
    None
}

/// Literals and values that are strung together: `"a".concat(b, "c").concat(d)`.
fn template(text: &str) -> Option<Vec<Piece>> {
    let (first, mut rest) = literal(text)?;
    let mut out = vec![Piece::Text(first)];
    while let Some(behind) = rest.strip_prefix(".concat(") {
        rest = behind;
        loop {
            rest = rest.trim_start();
            if rest.starts_with('"') {
                let (text, behind) = literal(rest)?;
                out.push(Piece::Text(text));
                rest = behind;
            } else {
                let end = rest.find([',', ')'])?;
                let value = rest[..end].trim();
                out.push(match value {
                    _ if value.ends_with("floatPrecision") => Piece::Text("highp".to_owned()),
                    "Math.PI" => Piece::Text(std::f64::consts::PI.to_string()),
                    _ if value.ends_with("HeaderText") => Piece::Header,
                    _ => Piece::Body,
                });
                rest = &rest[end..];
            }
            rest = rest.trim_start();
            match rest.strip_prefix(',') {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        rest = rest.strip_prefix(')')?;
    }
    Some(out)
}

pub fn make(package: &Package) -> Result<Box<dyn Recipe>, String> {
    let engine = package.text(ENGINE)?;
    let find = |mark: &str| {
        engine.match_indices("\"#version 300 es").find_map(|(at, _)| {
            let pieces = template(&engine[at..])?;
            let has = |word: &str| pieces.iter().any(|p| matches!(p, Piece::Text(t) if t.contains(word)));
            (pieces.contains(&Piece::Body) && has("sampler_fw_main") && has(mark)).then_some(pieces)
        })
    };
    match (find("in vec2 vUv;"), find("in vec2 uv_orig;")) {
        (Some(comp), Some(warp)) => Ok(Box::new(Butterchurn { comp, warp })),
        _ => Err(format!("{ENGINE} has not the two templates")),
    }
}

impl Recipe for Butterchurn {
    fn all(&self, package: &Package) -> Vec<Candidate> {
        let fields = |path: &str| {
            ["comp", "warp"].map(|field| {
                Candidate::new(plain(&format!("{}-{field}", stem(path))), format!("{path}#{field}"), "frag")
            })
        };
        package.paths(PRESETS, ".json").flat_map(fields).collect()
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        let (path, field) = candidate.original.rsplit_once('#').ok_or("the original names no field")?;
        let preset: serde_json::Value =
            serde_json::from_slice(package.bytes(path)?).map_err(|e| format!("{path}: {e}"))?;
        let text = preset.get(field).and_then(|v| v.as_str()).unwrap_or_default();
        let (header, rest) = text.split_once("shader_body").ok_or("there is no shader_body")?;
        let (open, close) = rest.find('{').zip(rest.rfind('}')).ok_or("the body has no braces")?;
        let body = rest.get(open + 1..close).ok_or("the body has no braces")?;
        let pieces = if field == "warp" { &self.warp } else { &self.comp };
        let text = pieces.iter().map(|p| match p {
            Piece::Text(text) => text.as_str(),
            Piece::Header => header,
            Piece::Body => body,
        });
        Ok(Program::glsl(text.collect(), "GLSL ES 3.00"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read() {
        let text = "\"a \\\"x\\\"\\n\".concat(this.floatPrecision, \" b \").concat( Math.PI , \"c\").concat(headHeaderText, \"d\", bodyText));";
        let text_of = |s: &str| Piece::Text(s.to_owned());
        let want = [
            text_of("a \"x\"\n"),
            text_of("highp"),
            text_of(" b "),
            text_of("3.141592653589793"),
            text_of("c"),
            Piece::Header,
            text_of("d"),
            Piece::Body,
        ];
        assert_eq!(template(text).unwrap(), want);
        for bad in ["", "x", "\"a", "\"a\".concat(", "\"a\".concat(b", "\"a\".concat(\"b"] {
            assert_eq!(template(bad), None, "{bad}");
        }
    }
}
