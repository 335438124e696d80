//! A sample of the source texts of the public corpus, unmodified, through the front ends. `cargo xtask sources` takes all.
//!
//! The corpus is read from `corpus/src` in the folder that `KEMPE_SHARED` names, or in `../shared` beside the workspace.
#![cfg(all(feature = "glsl", feature = "wgsl"))]

use kempe_front::{Language, Options, entry_points, from_spirv, to_spirv};
use kempe_ir::Stage;
use std::io::Write;
use std::path::PathBuf;

/// Every so many files.
const STEP: usize = 7;

#[test]
fn sources_of_the_corpus_compile() {
    let shared = std::env::var_os("KEMPE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let root = shared.join("corpus/src");
    let Ok(folders) = std::fs::read_dir(&root) else {
        // Past the capturing of the test runner: a test that is skipped can be seen to be one.
        let _ =
            writeln!(std::io::stderr(), "skipped: there is no corpus in {} (KEMPE_SHARED)", root.display());
        return;
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders.flatten() {
        let Ok(inner) = std::fs::read_dir(folder.path()) else { continue };
        let kinds = ["vert", "frag", "comp", "wgsl"];
        files.extend(inner.flatten().map(|f| f.path()).filter(|p| {
            p.is_file() && p.extension().and_then(|e| e.to_str()).is_some_and(|e| kinds.contains(&e))
        }));
    }
    files.sort();
    let (mut taken, mut failed) = (0, Vec::new());
    for path in files.iter().step_by(STEP) {
        let name = path.to_string_lossy().into_owned();
        let (language, stage) = match path.extension().and_then(|e| e.to_str()) {
            Some("wgsl") => (Language::Wgsl, None),
            Some("vert") => (Language::Glsl, Some(Stage::Vertex)),
            Some("frag") => (Language::Glsl, Some(Stage::Fragment)),
            _ => (Language::Glsl, Some(Stage::Compute)),
        };
        let text = std::fs::read(path).expect("a file of the corpus");
        let options = Options { stage, ..Options::default() };
        taken += 1;
        let words = match to_spirv(&name, &text, language, &options) {
            Ok(words) => words,
            Err(e) => {
                failed.push(format!("{name}: {e}"));
                continue;
            }
        };
        // Parts of programs are read, but there is nothing to compile in them.
        if entry_points(&name, &words).is_ok_and(|e| e.is_empty()) {
            continue;
        }
        if let Err(e) = from_spirv(&name, &words, &options) {
            failed.push(format!("{name}: {e}"));
        }
    }
    assert!(taken > 30, "only {taken} files were taken");
    assert!(failed.len() * 100 <= 3 * taken, "{} of {taken}:\n{}", failed.len(), failed.join("\n"));
}
