//! GLSL and WGSL on the command line: messages of the front ends, macros, include folders, stages.

#![cfg(all(feature = "glsl", feature = "wgsl"))]

mod common;

use common::Folder;

const GLSL: &str = "#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Data { uint words[]; };
void main() { words[gl_GlobalInvocationID.x] += N; }
";

const WGSL: &str = "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(32) fn add(@builtin(global_invocation_id) id: vec3u) { words[id.x] += 5u; }
@compute @workgroup_size(32) fn half(@builtin(global_invocation_id) id: vec3u) { words[id.x] /= 2u; }
";

#[test]
fn glsl_compiles_and_runs() {
    let folder = Folder::new("languages-glsl");
    folder.file("a.comp", GLSL);
    folder.run(&["compile", "a.comp", "-t", "v3d42,v3d71", "-D", "N=7"]).quiet();
    let args = ["run", "a.comp", "-t", "v3d71", "-DN=7", "-b", "0:0=u32:0..32", "--expect", "0:0=u32:7..39"];
    folder.run(&args).quiet();
    let args = ["compile", "-", "--stage", "compute", "-D", "N=1", "-t", "v3d71"];
    let text = folder.run_with(&args, GLSL.as_bytes()).quiet().text();
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("-  ")), "{text}");
}

#[test]
fn a_type_error_points_at_its_line() {
    let folder = Folder::new("languages-error");
    folder.file("a.comp", GLSL.replace("+= N", "+= vec3(1)"));
    let ran = folder
        .run(&["compile", "a.comp", "-t", "v3d42,v3d71"])
        .says(1, &["a.comp:4", "error: ", "vec3(1)", "^"]);
    // Once, not for each target.
    assert_eq!(ran.stderr.matches("void main()").count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
    folder.file("a.wgsl", WGSL.replace("5u", "5.5"));
    folder.run(&["compile", "a.wgsl", "-t", "v3d71"]).says(1, &["a.wgsl:2", "error: ", "^"]);
    folder.file("b.wgsl", "fn main( {");
    folder.run(&["compile", "b.wgsl", "-t", "v3d71"]).says(1, &["b.wgsl:1", "^"]);
}

/// `-W`: the code is made all the same.
#[test]
fn what_is_hardly_meant_is_warned_of() {
    let folder = Folder::new("languages-warnings");
    let body = "uint never; words[gl_GlobalInvocationID.x] = (words[0] << 40) + never;
        if (words[1] == 7) { for (;;) { atomicAdd(words[2], 1u); } }";
    folder.file("a.comp", GLSL.replace("words[gl_GlobalInvocationID.x] += N;", body));
    folder.run(&["compile", "a.comp", "-t", "v3d71"]).quiet();
    let said =
        ["warning: a shift of 32 bits by 40", "warning: an undefined value", "warning: a loop that nothing"];
    let ran = folder.run(&["compile", "a.comp", "-t", "v3d42,v3d71", "-W"]).says(0, &said);
    assert_eq!(ran.stderr.matches("a shift of").count(), 1, "{}", ran.stderr);
    folder.file("b.comp", GLSL.replace("+= N", "+= 3"));
    folder.run(&["compile", "b.comp", "-t", "v3d71", "-W"]).quiet();
}

#[test]
fn includes_are_found_or_named() {
    let folder = Folder::new("languages-include");
    let text = GLSL.replace(
        "#version 450\n",
        "#version 450\n#extension GL_GOOGLE_include_directive : enable\n#include \"n.h\"\n",
    );
    folder.file("a.comp", text);
    folder.run(&["compile", "a.comp", "-t", "v3d71"]).says(1, &["a.comp:3", "n.h"]);
    folder.file("inc/n.h", "#define N 3\n");
    folder.run(&["compile", "a.comp", "-t", "v3d71", "-I", "inc"]).quiet();
}

#[test]
fn every_entry_point_of_a_file_is_compiled() {
    let folder = Folder::new("languages-wgsl");
    folder.file("a.wgsl", WGSL);
    let text = folder.run(&["compile", "a.wgsl", "-t", "v3d71"]).quiet().text();
    assert_eq!(text.lines().count(), 3, "{text}");
    let args = ["run", "a.wgsl", "-t", "v3d71", "-b", "0:0=u32:0..32", "--expect", "0:0=u32:5..37"];
    folder.run(&args).says(1, &["-e", "`add`", "`half`"]);
    let mut args = args.to_vec();
    args.extend(["-e", "add", "--compare"]);
    folder.run(&args).quiet();
}

#[test]
fn specialisation_reaches_the_code() {
    let folder = Folder::new("languages-spec");
    folder.file("a.comp", GLSL.replace("void", "layout(constant_id = 3) const uint N = 1;\nvoid"));
    let run = |spec: &str, expect: &str| {
        let args =
            ["run", "a.comp", "-t", "v3d42", "--spec", spec, "-b", "0:0=u32:0..32", "--expect", expect];
        folder.run(&args)
    };
    run("3=9", "0:0=u32:9..41").quiet();
    run("3=0x10", "0:0=u32:16..48").quiet();
    run("4=9", "0:0=u32:9..41").says(5, &["0:0: element 0 is 1, expected 9"]);
}

#[test]
fn files_without_a_program_are_refused() {
    let folder = Folder::new("languages-stage");
    folder.file("lib.wgsl", "fn helper() -> u32 { return 1u; }\n");
    folder.run(&["compile", "lib.wgsl", "-t", "v3d71"]).says(1, &["no entry point"]);
    for name in ["empty.comp", "empty.wgsl"] {
        folder.file(name, "");
        folder.run(&["compile", name, "-t", "v3d71"]).says(1, &[name, "error: "]);
    }
    folder.file("random.comp", [0xc3u8, 0x28, 0xff, 0x00, 0x7b].repeat(100));
    folder.run(&["compile", "random.comp", "-t", "v3d71"]).says(1, &["random.comp"]);
}
