//! Shaders out of `.shader_test` files: sections with texts, the version from what the file requires.

use super::{Candidate, Package, Program, Recipe, plain};
use std::collections::BTreeMap;

/// Section, stage.
const SECTIONS: [(&str, &str); 6] = [
    ("vertex shader", "vert"),
    ("tessellation control shader", "tesc"),
    ("tessellation evaluation shader", "tese"),
    ("geometry shader", "geom"),
    ("fragment shader", "frag"),
    ("compute shader", "comp"),
];

const PIGLIT: &str = "usr/lib/x86_64-linux-gnu/piglit/";

/// What the tests are asked for.
struct ShaderTests {
    folders: &'static [&'static str],
    compute: bool,
}

pub fn graphics(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(ShaderTests { folders: &["tests/"], compute: false }))
}

pub fn compute(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(ShaderTests { folders: &["tests/", "generated_tests/"], compute: true }))
}

/// A section of each stage. Of several, which OpenGL would link, the first that has a `main`, or the first.
fn sections(text: &str) -> BTreeMap<&'static str, String> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            let stage = SECTIONS.iter().find(|s| s.0 == name).map(|s| s.1);
            inside = stage.is_some();
            all.extend(stage.map(|stage| (stage, String::new())));
        } else if let Some((_, text)) = all.last_mut().filter(|_| inside) {
            text.push_str(line);
            text.push('\n');
        }
    }
    let main = |text: &str| text.contains("main");
    let mut out: BTreeMap<&'static str, String> = BTreeMap::new();
    for (stage, text) in all {
        let better = |taken: &String| !main(taken) && main(&text);
        if out.get(stage).is_none_or(better) {
            out.insert(stage, text);
        }
    }
    out
}

/// The version that the file requires of the language.
fn version(text: &str) -> Option<String> {
    text.lines().take_while(|l| !l.contains("shader]")).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |v: &str| v.chars().filter(char::is_ascii_digit).take(3).collect::<String>();
        match words.as_slice() {
            ["GLSL", ">=" | "=", v] => Some(number(v)),
            ["GLSL", "ES", ">=" | "=", v] if number(v) == "100" => Some("100".to_owned()),
            ["GLSL", "ES", ">=" | "=", v] => Some(format!("{} es", number(v))),
            _ => None,
        }
    })
}

impl Recipe for ShaderTests {
    fn all(&self, package: &Package) -> Vec<Candidate> {
        let mut out = Vec::new();
        for folder in self.folders {
            let start = format!("{PIGLIT}{folder}");
            for path in package.paths(&start, ".shader_test") {
                let Ok(text) = package.text(path) else { continue };
                let short = path.strip_prefix(PIGLIT).unwrap_or(path);
                let name = short.strip_suffix(".shader_test").unwrap_or(short);
                let name = if self.compute { name } else { name.strip_prefix("tests/").unwrap_or(name) };
                for stage in sections(&text).keys().filter(|s| !self.compute || **s == "comp") {
                    out.push(Candidate::new(plain(name), short, stage));
                }
            }
        }
        out
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        let file = package.text(&format!("{PIGLIT}{}", candidate.original))?;
        let all = sections(&file);
        let text = all.get(candidate.stage.as_str()).ok_or("there is no such section")?;
        let has_version = text.lines().any(|l| l.trim_start().starts_with("#version"));
        let version = version(&file).filter(|_| !has_version);
        let text = version.map_or_else(|| text.clone(), |v| format!("#version {v}\n{text}"));
        Ok(Program::glsl(text, "GLSL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Files;

    #[test]
    fn every_stage_is_a_program() {
        let text = "[require]\nGLSL >= 1.50\n[vertex shader passthrough]\n[fragment shader]\nf\n[fragment shader spirv]\nx\n[compute shader]\nlayout\n[compute shader]\n#version 430\nvoid main() {}\n[compute shader]\nmain\n[test]\n";
        let path = format!("{PIGLIT}tests/spec/a.shader_test");
        let package = Package { files: vec![Files::from([(path, text.as_bytes().to_vec())])] };
        let recipe = graphics(&package).unwrap();
        let all = recipe.all(&package);
        assert_eq!(
            all.iter().map(|c| (c.name.as_str(), c.stage.as_str())).collect::<Vec<_>>(),
            [("spec_a", "comp"), ("spec_a", "frag")]
        );
        assert_eq!(recipe.assemble(&package, &all[1]).unwrap().text, "#version 150\nf\n");
        assert_eq!(recipe.assemble(&package, &all[0]).unwrap().text, "#version 430\nvoid main() {}\n");
        let names: Vec<String> =
            compute(&package).unwrap().all(&package).into_iter().map(|c| c.name).collect();
        assert_eq!(names, ["tests_spec_a"]);
    }
}
