//! The rooms of the workspace: who may know whom, and who may know the name of a GPU.

use std::path::{Path, PathBuf};

/// Rooms that work for every target.
const NEUTRAL: [&str; 7] = ["ir", "opt", "words", "ra", "mir", "corpus", "report"];

/// Rooms, each with the rooms that it may use.
const MAY_USE: [(&str, &[&str]); 10] = [
    ("ir", &[]),
    ("ra", &[]),
    ("front", &["ir"]),
    ("opt", &["ir"]),
    ("mir", &["ir", "ra"]),
    ("v3d", &["ir", "opt", "ra", "mir", "words"]),
    ("words", &["ir", "opt"]),
    ("agx", &["ir", "opt", "ra", "mir", "words"]),
    ("fetch", &["ir", "front"]),
    ("shader-test", &["kempe"]),
];

fn room(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// All Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Names of targets without their version, and what else would give one away.
fn names() -> Vec<String> {
    let mut names: Vec<String> = kempe::targets()
        .iter()
        .map(|t| t.name().trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
        .collect();
    names.extend(["broadcom", "videocore", "agx", "gen8", "tgsi"].map(str::to_owned));
    names.dedup();
    names
}

#[test]
fn no_neutral_room_knows_a_target() {
    let names = names();
    assert!(names.contains(&"v3d".to_owned()));
    let mut read = 0;
    for name in NEUTRAL {
        let mut files = Vec::new();
        sources(&room(name), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source file");
            read += 1;
            for (number, line) in text.lines().enumerate() {
                let lower = line.to_lowercase();
                // A word of its own, or the start of one: not the middle of another word.
                let named = names.iter().find(|name| {
                    lower
                        .match_indices(name.as_str())
                        .any(|(at, _)| !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
                });
                assert!(named.is_none(), "{}:{}: names a target: {line}", file.display(), number + 1);
            }
        }
    }
    assert!(read > 20, "only {read} files were read");
}

#[test]
fn rooms_depend_downwards() {
    for (name, allowed) in MAY_USE {
        let manifest = std::fs::read_to_string(room(name).join("Cargo.toml")).expect("a manifest");
        // Tests and tools may use more.
        let shipped = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for line in shipped.lines() {
            let Some(rest) = line.strip_prefix("kempe") else { continue };
            let used = rest
                .strip_prefix('-')
                .map_or("kempe", |rest| rest.split(['.', ' ', '=']).next().unwrap_or(rest));
            assert!(allowed.contains(&used), "{name} depends on {used}");
        }
    }
}
