//! Vello: `#import x` from a folder of parts, conditions, and a list of variants with their macros.

use super::{Candidate, Language, Package, Program, Recipe, stem};
use std::collections::BTreeSet;

struct Vello {
    /// Name of the variant, file, macros.
    variants: Vec<(String, String, Vec<String>)>,
}

/// Deepest nesting of imports.
const MAX_DEPTH: u32 = 16;

pub fn make(package: &Package) -> Result<Box<dyn Recipe>, String> {
    let mut base = String::new();
    let mut variants: Vec<(String, String, Vec<String>)> = Vec::new();
    let mut with_variants = BTreeSet::new();
    for line in package.text("shader/permutations")?.lines() {
        match line.strip_prefix('+') {
            Some(variant) => {
                let (name, macros) = variant.split_once(':').unwrap_or((variant, ""));
                let macros = macros.split_whitespace().map(str::to_owned).collect();
                variants.push((name.trim().to_owned(), base.clone(), macros));
            }
            None if line.trim().is_empty() => {}
            None => {
                base = format!("shader/{}.wgsl", line.trim());
                with_variants.insert(base.clone());
            }
        }
    }
    let plain = package.paths("shader/", ".wgsl").filter(|p| p.matches('/').count() == 1);
    for path in plain.filter(|p| !with_variants.contains(*p)) {
        variants.push((stem(path).to_owned(), path.to_owned(), Vec::new()));
    }
    Ok(Box::new(Vello { variants }))
}

fn expand(
    package: &Package,
    path: &str,
    macros: &[String],
    depth: u32,
    seen: &mut BTreeSet<String>,
    out: &mut String,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("{path}: imports are nested too deeply"));
    }
    // Whether the lines of each open condition count.
    let mut open: Vec<bool> = Vec::new();
    for line in package.text(path)?.lines() {
        let mut words = line.split_whitespace();
        let (key, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let known = macros.iter().any(|m| m == name);
        match key {
            "#ifdef" => open.push(known),
            "#ifndef" => open.push(!known),
            "#else" => open.iter_mut().rev().take(1).for_each(|o| *o = !*o),
            "#endif" => drop(open.pop()),
            _ if open.contains(&false) => {}
            "#import" => {
                if seen.insert(name.to_owned()) {
                    expand(package, &format!("shader/shared/{name}.wgsl"), macros, depth + 1, seen, out)?;
                }
            }
            // Extensions of the language that naga takes without being told.
            "enable" | "#enable" => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(())
}

impl Recipe for Vello {
    fn all(&self, _: &Package) -> Vec<Candidate> {
        let both = |(name, path, macros): &(String, String, Vec<String>)| {
            let list = macros.iter().map(|m| format!("'{m}'")).collect::<Vec<_>>().join(", ");
            let original = format!("{path} [{list}]");
            [name.clone(), format!("{name}-full")].map(|name| Candidate::new(name, original.clone(), "comp"))
        };
        self.variants.iter().flat_map(both).collect()
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        let (path, list) = candidate.original.split_once(" [").unwrap_or((&candidate.original, ""));
        let words = list.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty());
        let mut macros: Vec<String> = words.map(str::to_owned).collect();
        if candidate.name.ends_with("-full") {
            macros.push("full".to_owned());
        }
        let mut text = String::new();
        expand(package, path, &macros, 0, &mut BTreeSet::new(), &mut text)?;
        Ok(Program { text, language: Language::Wgsl, label: "WGSL" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Files;

    #[test]
    fn variants_and_conditions() {
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let package = Package {
            files: vec![Files::from([
                file("shader/permutations", "a\n+ a_small: small\n+ a_plain\n"),
                file(
                    "shader/a.wgsl",
                    "#import p\n#ifdef small\nsmall\n#else\nlarge\n#endif\n#ifndef full\nold\n#endif\n",
                ),
                file("shader/b.wgsl", "enable f16;\nb\n"),
                file("shader/shared/p.wgsl", "#import p\npart\n"),
            ])],
        };
        let recipe = make(&package).unwrap();
        let all = recipe.all(&package);
        let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["a_small", "a_small-full", "a_plain", "a_plain-full", "b", "b-full"]);
        let text = |n: usize| recipe.assemble(&package, &all[n]).unwrap().text;
        assert_eq!(
            (text(0).as_str(), text(3).as_str(), text(4).as_str()),
            ("part\nsmall\nold\n", "part\nlarge\n", "b\n")
        );
    }
}
