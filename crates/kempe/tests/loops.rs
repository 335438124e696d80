//! Loops are unrolled, and kept where their copies would take too many registers.

#![cfg(feature = "glsl")]

use kempe::compile::{CodeOptions, Keep, Options, Source, compile};
use kempe::limits::Limits;
use kempe::{Artifact, FrontOptions, Level};

/// A block of 32 floats as 4-bit numbers. Unrolled, the second loop reads what the first one has loaded, so all of it stays.
const QUANTISE: &str = "#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { uint b[]; };
void main() {
    uint base = gl_GlobalInvocationID.x * 32u;
    float most = 0.0;
    for (int i = 0; i < 32; i++) most = max(most, abs(a[base + i]));
    float scale = 7.0 / most;
    for (int i = 0; i < 16; i++) {
        uint low = uint(a[base + i] * scale + 8.5);
        uint high = uint(a[base + 16 + i] * scale + 8.5);
        b[base / 2 + i] = low | high << 4;
    }
}
";

fn made(target: &str, level: Level) -> Artifact {
    let source =
        Source { name: "quantise.comp".to_owned(), contents: Ok(QUANTISE.as_bytes().to_vec()), stage: None };
    let options = Options {
        targets: vec![kempe::target(target).expect("a target")],
        front: FrontOptions::default(),
        code: CodeOptions { level, verify: true, ..CodeOptions::default() },
        keep: Keep::default(),
        limits: Limits::default(),
    };
    let mut results = compile(&source, &options);
    assert_eq!(results.len(), 1);
    results.remove(0).artifact.expect("code")
}

#[test]
fn loops_are_kept_for_more_threads() {
    let a = made("v3d71", Level::O2);
    assert_eq!((a.threads, a.stats.loops), (4, 2));
    assert_eq!(a.stats.spills + a.stats.fills + a.stats.scratch, 0);
}

#[test]
fn loops_are_unrolled_where_threads_do_not_suffer() {
    // The accumulators of 4.2 hold what 7.1 has no registers for.
    let a = made("v3d42", Level::O2);
    assert_eq!((a.threads, a.stats.loops), (4, 0));
}
