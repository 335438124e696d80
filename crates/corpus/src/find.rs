//! The shaders below a folder.

use std::path::{Path, PathBuf};

/// File extensions of stages, with the name of the stage in results.
const STAGES: [(&str, &str); 7] = [
    ("comp", "compute"),
    ("vert", "vertex"),
    ("frag", "fragment"),
    ("geom", "geometry"),
    ("tesc", "tess-control"),
    ("tese", "tess-eval"),
    ("kernel", "kernel"),
];

/// What HLSL calls its stages in names of files.
const HLSL_STAGES: [(&str, &str); 6] = [
    ("cs", "compute"),
    ("vs", "vertex"),
    ("ps", "fragment"),
    ("gs", "geometry"),
    ("hs", "tess-control"),
    ("ds", "tess-eval"),
];

/// The name of a stage in results, from that name or the extension of files.
pub fn stage(name: &str) -> Option<&'static str> {
    STAGES.iter().find(|row| row.0 == name || row.1 == name).map(|row| row.1)
}

/// The stage that the name of a file tells: `name.comp`, `name.comp.spv`, `name.comp.glsl`.
pub fn stage_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut parts = name.rsplit('.');
    let mut extension = parts.next().unwrap_or_default();
    if matches!(extension, "spv" | "glsl" | "wgsl" | "hlsl") {
        extension = parts.next().unwrap_or_default();
    }
    // A file that is called `comp` has no extension.
    parts.next()?;
    if name.ends_with(".hlsl")
        && let Some(row) = HLSL_STAGES.iter().find(|row| row.0 == extension)
    {
        return Some(row.1);
    }
    STAGES.iter().find(|row| row.0 == extension).map(|row| row.1)
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In the order of the bytes of the names, folders as one with what is in them.
    pub shaders: Vec<PathBuf>,
    /// Files `.glsl` and `.hlsl` whose name does not say the stage: included files, as a rule.
    pub without_stage: usize,
    /// What could not be looked at, and why.
    pub unreadable: Vec<String>,
}

/// Deeper folders than this are a mistake, or a file system that loops.
const MAX_DEPTH: u32 = 64;

/// All shaders below a folder; with `stages`, only those whose name tells one of them or does not tell. Links to
/// folders are not followed.
pub fn shaders(folder: &Path, stages: &[&str]) -> Found {
    let mut found = Found::default();
    walk(folder, 0, stages, &mut found);
    found
}

fn walk(folder: &Path, depth: u32, stages: &[&str], found: &mut Found) {
    let complain = |found: &mut Found, what: &dyn std::fmt::Display| {
        found.unreadable.push(format!("{}: {what}", folder.display()));
    };
    if depth > MAX_DEPTH {
        return complain(found, &"folders are nested too deeply");
    }
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return complain(found, &error),
    };
    let mut all = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => all.push(entry.path()),
            Err(error) => complain(found, &error),
        }
    }
    all.sort();
    for path in all {
        // Not following links: a link to a folder is neither folder nor file here.
        let Ok(kind) = std::fs::symlink_metadata(&path) else { continue };
        if kind.is_dir() {
            walk(&path, depth + 1, stages, found);
            continue;
        }
        if !path.is_file() {
            continue;
        }
        let name = path.to_string_lossy();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let told = stage_of(&name);
        match extension {
            "glsl" | "hlsl" if told.is_none() => found.without_stage += 1,
            // A file with shaders of several stages.
            "shader_test" => found.shaders.push(path),
            "spv" | "wgsl" | "glsl" | "hlsl" | "comp" | "vert" | "frag" | "geom" | "tesc" | "tese"
                if stages.is_empty() || told.is_none_or(|stage| stages.contains(&stage)) =>
            {
                found.shaders.push(path);
            }
            _ => {}
        }
    }
}

/// About how many entry points a source has: only for how long its compile may take.
pub fn entry_points(bytes: &[u8]) -> usize {
    let word = |at: usize| bytes.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    let read: fn([u8; 4]) -> u32 = match word(0) {
        Some([0x03, 0x02, 0x23, 0x07]) => u32::from_le_bytes,
        Some([0x07, 0x23, 0x02, 0x03]) => u32::from_be_bytes,
        _ => {
            // WGSL marks each entry point; GLSL has one.
            let marks = [b"@compute".as_slice(), b"@vertex", b"@fragment"];
            let count = |mark: &[u8]| bytes.windows(mark.len()).filter(|w| *w == mark).count();
            return marks.iter().map(|mark| count(mark)).sum::<usize>().max(1);
        }
    };
    let (mut at, mut entries) = (20, 0usize);
    while let Some(first) = word(at).map(read) {
        // OpEntryPoint
        entries += usize::from(first & 0xffff == 15);
        at += 4 * (first >> 16).max(1) as usize;
    }
    entries.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_stages() {
        for (name, stage) in [
            ("a/b.comp", Some("compute")),
            ("a.comp/b.spv", None),
            ("x.kernel.spv", Some("kernel")),
            ("x.multi.spv", None),
            ("x.frag.glsl", Some("fragment")),
            ("x.ps.hlsl", Some("fragment")),
            ("x.comp.hlsl", Some("compute")),
            ("x.hlsl", None),
            ("x.ps.glsl", None),
            ("x.wgsl", None),
            ("comp", None),
        ] {
            assert_eq!(stage_of(name), stage, "{name}");
        }
        assert_eq!(
            (stage("comp"), stage("tess-eval"), stage("pixel")),
            (Some("compute"), Some("tess-eval"), None)
        );
    }

    #[test]
    fn entry_points_are_counted() {
        let words = |w: &[u32]| w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let entry = [4 << 16 | 15, 5, 1, 0];
        let module: Vec<u32> = [0x0723_0203, 0, 0, 0, 0].into_iter().chain(entry).chain(entry).collect();
        assert_eq!(entry_points(&words(&module)), 2);
        // Lengths of 0 must not stop it.
        assert_eq!(entry_points(&words(&[0x0723_0203, 0, 0, 0, 0, 0, 0])), 1);
        assert_eq!(entry_points(b"@compute fn a() {} @vertex fn b() {}"), 2);
        assert_eq!(entry_points(b""), 1);
    }
}
