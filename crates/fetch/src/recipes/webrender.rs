//! WebRender: `#include a,b` once each, macros for platform, stage and features in front.

use super::{Candidate, Package, Program, Recipe, plain, stem};
use std::collections::BTreeSet;

struct WebRender;

pub fn make(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(WebRender))
}

fn expand(
    package: &Package,
    path: &str,
    seen: &mut BTreeSet<String>,
    out: &mut String,
) -> Result<(), String> {
    for line in package.text(path)?.lines() {
        match line.strip_prefix("#include ") {
            Some(names) => {
                for name in names.trim().split(',') {
                    if seen.insert(name.trim().to_owned()) {
                        expand(package, &format!("res/{}.glsl", name.trim()), seen, out)?;
                    }
                }
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(())
}

impl Recipe for WebRender {
    fn all(&self, package: &Package) -> Vec<Candidate> {
        // Programs start with this; the other files are parts of them.
        const STARTS: [&str; 6] = ["brush_", "cs_", "ps_", "debug_", "composite", "gpu_cache"];
        let programs =
            package.paths("res/", ".glsl").filter(|p| STARTS.iter().any(|s| stem(p).starts_with(s)));
        let both = |path: &str| ["vert", "frag"].map(|stage| Candidate::new(plain(stem(path)), path, stage));
        programs.flat_map(both).collect()
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        let (path, features) =
            candidate.original.split_once(" features=").unwrap_or((&candidate.original, ""));
        let stage = if candidate.stage == "vert" { "VERTEX" } else { "FRAGMENT" };
        let mut text = format!(
            "#version 330\n#define WR_MAX_VERTEX_TEXTURE_WIDTH 1024U\n#define PLATFORM_LINUX\n#define WR_{stage}_SHADER\n"
        );
        for feature in features.split(',').filter(|f| !f.is_empty()) {
            text.push_str(&format!("#define WR_FEATURE_{feature}\n"));
        }
        expand(package, path, &mut BTreeSet::new(), &mut text)?;
        Ok(Program::glsl(text, "GLSL 1.50"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Files;

    #[test]
    fn parts_are_included_once() {
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let files = Files::from([
            file("res/brush_x.glsl", "#include a,b\nmain\n"),
            file("res/a.glsl", "#include b\nA\n"),
            file("res/b.glsl", "B\n"),
        ]);
        let package = Package { files: vec![files] };
        let recipe = make(&package).unwrap();
        assert_eq!(recipe.all(&package).len(), 2);
        let c = Candidate::new("x", "res/brush_x.glsl features=ONE,TWO", "vert");
        let text = recipe.assemble(&package, &c).unwrap().text;
        assert!(
            text.ends_with(
                "#define WR_VERTEX_SHADER\n#define WR_FEATURE_ONE\n#define WR_FEATURE_TWO\nB\nA\nmain\n"
            ),
            "{text}"
        );
    }
}
