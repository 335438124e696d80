//! `kempe run`: values in, values out, and what is said when something is wrong.

mod common;

use common::Folder;
use common::spirv::{image_writer, sample};

const ARGS: [&str; 6] = ["run", "a.spv", "--groups", "2", "--buffer", "0:0=u32:0..128"];

fn with<'a>(folder: &Folder, extra: &[&'a str]) -> common::Ran {
    let mut args: Vec<&'a str> = ARGS.to_vec();
    args.extend(extra);
    folder.run(&args)
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("a.spv", sample());
    let expected: Vec<u8> = (0..128u32).flat_map(|x| (2 * x + 1).to_le_bytes()).collect();
    folder.file("expected.bin", expected);
    folder
}

#[test]
fn both_targets_and_the_interpreter_compute_the_same() {
    let folder = folder("run-same");
    for how in [
        &["-t", "v3d42"][..],
        &["-t", "v3d71"],
        &["-t", "v3d71", "--threads", "2"],
        &["-t", "v3d71", "-O0", "--schedule", "7"],
        &["--interpret"],
    ] {
        let mut args = vec!["--expect", "0:0=expected.bin", "--write", "0:0=out.bin"];
        args.extend(how);
        with(&folder, &args).quiet();
        assert_eq!(
            std::fs::read(folder.path("out.bin")).unwrap(),
            std::fs::read(folder.path("expected.bin")).unwrap()
        );
    }
}

#[test]
fn buffers_are_shown_by_type() {
    let folder = folder("run-print");
    let text = with(&folder, &["-t", "v3d71", "--print", "0:0", "--print", "0:0:hex"]).quiet().text();
    assert!(text.starts_with("0:0: 512 bytes\n     0:   1   3   5"), "{text}");
    assert!(text.contains("0x000000ff"), "{text}");
}

#[test]
fn a_difference_is_told_and_exits_with_5() {
    let folder = folder("run-differs");
    let mut bytes = std::fs::read(folder.path("expected.bin")).unwrap();
    bytes[4 * 77] ^= 1;
    folder.file("wrong.bin", &bytes);
    let says = ["0:0: element 77 is 155, expected 154"];
    with(&folder, &["-t", "v3d71", "--expect", "0:0=wrong.bin"]).says(5, &says);
    with(&folder, &["--interpret", "--expect", "0:0=wrong.bin"]).says(5, &says);
    with(&folder, &["-t", "v3d71", "--expect", "0:0=u32:1,3"]).says(5, &["has 512 bytes, expected 8"]);
}

#[test]
fn artifacts_run_without_the_shader() {
    let folder = folder("run-artifact");
    folder.run(&["compile", "a.spv", "-t", "v3d71", "--emit", "artifact", "-o", "a.json"]).quiet();
    std::fs::remove_file(folder.path("a.spv")).unwrap();
    let args =
        ["run", "a.json", "-g", "2", "-b", "0:0=u32:0..128", "--expect", "0:0=expected.bin", "--counts"];
    let text = folder.run(&args).quiet().text();
    assert!(text.contains("ldtmu") && text.contains("thread switches"), "{text}");
    folder.run(&["run", "a.json", "-t", "v3d42"]).says(1, &["for v3d71, not for v3d42"]);
}

#[test]
fn random_inputs_are_the_same_everywhere() {
    let folder = folder("run-random");
    let run = |how: &[&str], seed: &str| {
        let mut args = vec!["run", "a.spv", "--random", seed, "--print", "0:0"];
        args.extend(how);
        folder.run(&args).quiet().text()
    };
    let interpreted = run(&["--interpret"], "5");
    assert_eq!(run(&["-t", "v3d71"], "5"), interpreted);
    assert_eq!(run(&["-t", "v3d42"], "5"), interpreted);
    assert_ne!(run(&["--interpret"], "6"), interpreted);
}

#[test]
fn wrong_bindings_are_explained() {
    let folder = folder("run-wrong");
    let v3d = ["-t", "v3d71"];
    let run = |extra: &[&str]| {
        let mut args = vec!["run", "a.spv"];
        args.extend(v3d);
        args.extend(extra);
        folder.run(&args)
    };
    run(&["-b", "1:5=zero:64"]).says(1, &["no buffer at 1:5", "0:0"]);
    run(&["-b", "0:0=zero:64", "-b", "0:0=zero:64"]).says(1, &["given twice"]);
    run(&["-b", "0:0=zero:256", "--print", "0:1"]).says(1, &["0:1", "--buffer"]);
    run(&["-b", "0:0=missing.bin"]).says(1, &["missing.bin: no such file"]);
    run(&["-b", "0:0=u8:256"]).says(1, &["`256` is not of type u8"]);
    // Too small: the access is an error with its place, not a wrong number.
    run(&["-b", "0:0=zero:64"]).says(1, &["outside of every buffer"]);
    run(&[]).says(1, &["outside of every buffer"]);
    folder.run(&["run", "a.spv", "--interpret", "-b", "0:0=zero:64"]).says(1, &["outside"]);
    folder.run(&["run", "a.spv"]).says(2, &["-t"]);
    folder.run(&["run", "a.spv", "-t", "v3d71", "-b", "0=zero:4"]).says(2, &["SET:BINDING"]);
    folder.run(&["run", "a.spv", "-t", "v3d71", "-g", "99999"]).says(1, &["at most 65535"]);
    folder.run(&["run", "nothing.spv", "-t", "v3d71"]).says(1, &["no such file"]);
    folder.file("bad.json", "{\"schema\": \"kempe-artifact/4\"}");
    folder.run(&["run", "bad.json"]).says(1, &["kempe-artifact/4", "not known"]);
}

/// A raw program: each lane adds 5 to its word. Written by hand, so not by the compiler.
#[test]
fn raw_programs_run_and_are_compared() {
    let folder = Folder::new("run-raw");
    // Address in the uniform stream; lane * 4 behind it.
    let text = "\
        nop; nop; ldunifrf.rf10
        eidx rf11; nop
        shl rf11, rf11, 2; nop
        add rf10, rf10, rf11; nop
        nop; mov tmua, rf10
        nop; nop; thrsw
        nop; nop; thrsw
        nop; nop
        nop; nop; ldtmu.rf12
        add tmud, rf12, 5; nop
        nop; mov tmua, rf10
        tmuwt -; nop
        nop; nop; thrsw
        nop; nop
        nop; nop
        ";
    folder.file("a.s", text);
    folder.run(&["asm", "a.s", "-t", "v3d71", "-o", "code.bin"]).quiet();
    let code = std::fs::read(folder.path("code.bin")).unwrap();
    let (base, data) = (0x40000u32, 0x50000u32);
    let uniforms = 0x48000u32;
    let mut bytes = code.clone();
    let at_uniforms = bytes.len();
    bytes.extend(data.to_le_bytes());
    let at_data = bytes.len();
    bytes.extend((0..16u32).flat_map(u32::to_le_bytes));
    let at_expected = bytes.len();
    bytes.extend((0..16u32).flat_map(|x| (x + 5).to_le_bytes()));
    folder.file("raw.bin", &bytes);
    let json = |expected: usize| {
        serde_json::json!({
            "target": "v3d71",
            "code": {"address": base, "offset": 0, "length": code.len()},
            "code_address": base,
            "uniforms_address": uniforms,
            "memory": [
                {"name": "uniforms", "address": uniforms, "offset": at_uniforms, "length": 4},
                {"name": "data", "address": data, "offset": at_data, "length": 64, "dtype": "uint32", "shape": [16]}
            ],
            "dispatch": {
                "batches": 1, "workgroup_size": [16, 1, 1], "workgroup_count": [1, 1, 1],
                "wgs_per_supergroup": 1, "batches_per_supergroup": 1, "four_threads": false
            },
            "somebody's own key": 1,
            "expected": [{
                "name": "data", "address": data, "offset": expected, "length": 64, "dtype": "uint32", "shape": [16],
                "compare": "exact", "changed": true
            }]
        })
        .to_string()
    };
    folder.file("raw.json", json(at_expected));
    folder.run(&["run", "--raw", "raw.json"]).quiet();
    folder.file("raw.json", json(at_data));
    folder.run(&["run", "--raw", "raw.json"]).says(5, &["data: element 0 is 5, expected 0"]);
    folder.file("raw.json", json(at_data + 4));
    folder.run(&["run", "--raw", "raw.json"]).says(5, &["data: element 0 is 5, expected 1"]);
    folder.file("raw.json", "{}");
    folder.run(&["run", "--raw", "raw.json"]).says(1, &["raw.json: error: missing field"]);
    std::fs::remove_file(folder.path("raw.bin")).unwrap();
    folder.run(&["run", "--raw", "raw.json"]).says(1, &["raw.bin: no such file"]);
}

#[test]
fn images_are_bound_shown_and_compared() {
    let folder = Folder::new("run-image");
    folder.file("a.spv", image_writer());
    let row = |x: f32| format!("{x},{x},1,1");
    let want = format!("f32:{},{},{},{}", row(0.0), row(0.25), row(0.0), row(0.25));
    let expect = format!("0:1={want}");
    for how in [&["-t", "v3d42"][..], &["-t", "v3d71", "--threads", "2", "--compare"], &["--interpret"]] {
        let mut args = vec!["run", "a.spv", "--groups", "2,2", "--image", "0:1=2x2", "--expect", &expect];
        args.extend(how);
        folder.run(&args).quiet();
    }
    folder.run(&["compile", "a.spv", "-t", "v3d71", "--emit", "artifact", "-o", "a.json"]).quiet();
    let text = folder.run(&["run", "a.json", "--groups", "2", "--image", "0:1=3x1", "--print", "0:1:f32"]);
    let text = text.quiet().text();
    assert!(text.contains("0.25"), "{text}");
    let run = |image: &str| folder.run(&["run", "a.json", "--groups", "1", "--image", image]);
    run("0:1=4").says(1, &["size like 64x64"]);
    run("0:2=4x4").says(1, &["no image at 0:2"]);
    run("0:1=4x4:rgba9").says(1, &["rgba9", "format"]);
    run("0:1=4x4:rgba8").says(1, &["rgba8", "stores rgba32f"]);
    run("0:1=4x4::u32:0..100").says(1, &["256 bytes, 400"]);
    folder.run(&["run", "a.json", "--groups", "1"]).says(1, &["no texture state"]);
}
