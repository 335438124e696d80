//! `kempe compile`: results, exit codes and messages for good and for broken inputs.

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::spirv::{double_and_increment, sample, without_entry_point};
use common::{Folder, Ran};
use serde_json::Value;

const BOTH: &str = "v3d42,v3d71";

/// Compiles to JSON and checks it against the published schema.
fn results(ran: &Ran) -> Vec<Value> {
    let json: Value = serde_json::from_str(&ran.text()).expect("standard output is one JSON object");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/compile.schema.json");
    let published = std::fs::read_to_string(path).expect("the published schema");
    let published: Value = serde_json::from_str(&published).expect("the schema is JSON");
    schema::check(&published, &json, "$").unwrap();
    json["results"].as_array().expect("results").clone()
}

fn json(folder: &Folder, code: i32, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["compile", "--format", "json"];
    all.extend(args);
    results(&folder.run(&all).says(code, &[]))
}

#[test]
fn a_module_compiles_for_both_targets() {
    let folder = Folder::new("compile-both");
    folder.file("a.comp.spv", sample());
    let r = json(&folder, 0, &["a.comp.spv", "-t", BOTH]);
    assert_eq!(r.len(), 2);
    for (r, target) in r.iter().zip(["v3d42", "v3d71"]) {
        assert_eq!(r["file"], "a.comp.spv");
        assert_eq!(
            (&r["entry"], &r["stage"], &r["target"]),
            (&"main".into(), &"compute".into(), &target.into())
        );
        assert_eq!((&r["status"], &r["variant"]), (&"ok".into(), &"render".into()));
        let stats = &r["stats"];
        assert_eq!(stats["code_bytes"], stats["instructions"].as_u64().unwrap() * 8);
        assert!(stats["instructions"].as_u64().unwrap() > 5);
        assert!(r.get("message").is_none());
        assert_eq!(r["front_us"], 0);
        assert!(r["compile_us"].as_u64().unwrap() > 0);
    }
    let table = folder.run(&["compile", "a.comp.spv", "-t", BOTH]).quiet().text();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(
        lines[0].starts_with("file") && lines[1].contains("v3d42") && lines[2].contains("v3d71"),
        "{table}"
    );
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = Folder::new("compile-same");
    folder.file("a.comp.spv", sample());
    let artifact =
        || folder.run(&["compile", "a.comp.spv", "-t", "v3d71", "--emit", "artifact"]).quiet().stdout;
    assert_eq!(artifact(), artifact());
}

#[test]
fn everything_can_be_emitted() {
    let folder = Folder::new("compile-emit");
    folder.file("a.comp.spv", sample());
    let emit = |what: &str| folder.run(&["compile", "a.comp.spv", "-t", "v3d71", "--emit", what]).quiet();
    let asm = emit("asm").text();
    let bin = emit("bin").stdout;
    assert_eq!(bin.len(), asm.lines().count() * 8);
    // The listing assembles to the same words; the validator and the disassembler take words and artifact.
    folder.file("a.s", &asm);
    folder.run(&["asm", "a.s", "-t", "v3d71", "-o", "b.bin"]).quiet();
    assert_eq!(std::fs::read(folder.path("b.bin")).unwrap(), bin);
    folder.file("a.json", emit("artifact").text());
    assert_eq!(folder.run(&["disasm", "a.json"]).quiet().text(), asm);
    folder.run(&["validate", "a.json"]).says(0, &[]);
    folder.run(&["disasm", "a.json", "-t", "v3d42"]).says(1, &["is an artifact for v3d71"]);
    assert!(emit("ir").text().starts_with("module \"main\" compute"));
    assert!(emit("mir").text().starts_with("block0"));
    // Several results go into a folder.
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.run(&["compile", "a.comp.spv", "-t", BOTH, "--emit", "bin", "-o", "out"]).quiet();
    assert_eq!(std::fs::read(folder.path("out/a.comp.spv.main.v3d71.bin")).unwrap(), bin);
    assert!(folder.path("out/a.comp.spv.main.v3d42.bin").exists());
    folder
        .run(&["compile", "a.comp.spv", "-t", BOTH, "--emit", "bin", "-o", "x.bin"])
        .says(1, &["name a folder"]);
}

#[test]
fn time_passes_says_where_the_time_goes() {
    let folder = Folder::new("compile-passes");
    folder.file("a.comp.spv", sample());
    let ran = folder.run(&["compile", "a.comp.spv", "-t", "v3d71", "--time-passes"]);
    let ran = ran.says(0, &["allocate", "finish", "validate", "all"]);
    assert!(ran.text().contains("a.comp.spv"));
    let r = json(&folder, 0, &["a.comp.spv", "-t", "v3d71", "--time-passes"]);
    assert!(r[0]["passes_us"].get("allocate").is_some());
}

#[test]
fn entry_points_are_chosen_by_name() {
    let folder = Folder::new("compile-entries");
    folder.file("two.spv", double_and_increment(&[(5, "first"), (5, "second")]));
    let r = json(&folder, 0, &["two.spv", "-t", BOTH]);
    let names: Vec<_> =
        r.iter().map(|r| (r["entry"].as_str().unwrap(), r["target"].as_str().unwrap())).collect();
    assert_eq!(names, [("first", "v3d42"), ("first", "v3d71"), ("second", "v3d42"), ("second", "v3d71")]);
    let r = json(&folder, 0, &["two.spv", "-t", "v3d71", "-e", "second"]);
    assert_eq!((r.len(), &r[0]["entry"]), (1, &"second".into()));
    let r = json(&folder, 1, &["two.spv", "-t", BOTH, "-e", "third"]);
    assert_eq!((r.len(), &r[0]["entry"]), (2, &"third".into()));
    folder.run(&["compile", "two.spv", "-t", BOTH, "-e", "third"]).says(1, &["third", "first", "second"]);
}

#[test]
fn every_entry_point_has_its_own_result() {
    let folder = Folder::new("compile-graphics");
    folder.file("mixed.spv", double_and_increment(&[(0, "vs"), (5, "cs")]));
    let r = json(&folder, 1, &["mixed.spv", "-t", "v3d71"]);
    assert_eq!((&r[0]["stage"], &r[0]["status"]), (&"vertex".into(), &"error".into()));
    let last = r.last().unwrap();
    assert_eq!((&last["stage"], &last["status"]), (&"compute".into(), &"ok".into()));
    let point = "gl_Position = gl_in[0].gl_Position;";
    let geometry = format!(
        "layout(points) in;\nlayout(points, max_vertices = 1) out;\nvoid main() {{ {point} EmitVertex(); }}"
    );
    let control = "layout(vertices = 3) out;\n\
                   void main() { gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position; }";
    let evaluation = format!("layout(triangles) in;\nvoid main() {{ {point} }}");
    for (name, stage, text) in [
        ("a.geom", "geometry", geometry.as_str()),
        ("a.tesc", "tess-control", control),
        ("a.tese", "tess-eval", &evaluation),
    ] {
        folder.file(name, format!("#version 450\n{text}\n"));
        let r = json(&folder, 0, &[name, "-t", "v3d71"]);
        assert!(r.iter().all(|one| one["stage"] == stage && one["status"] == "ok"), "{r:?}");
    }
}

#[test]
fn broken_inputs_get_a_result_and_a_message() {
    let folder = Folder::new("compile-broken");
    folder.file("empty.spv", "");
    folder.file("empty.comp", "");
    folder.file("empty.wgsl", "");
    folder.file("random.spv", [0x5au8; 333]);
    folder.file("none.spv", without_entry_point());
    folder.file("what.txt", "hello");
    std::fs::create_dir(folder.path("folder.comp")).unwrap();
    for (name, says) in [
        ("empty.spv", "empty"),
        ("empty.comp", "empty.comp"),
        ("empty.wgsl", "empty.wgsl"),
        ("random.spv", "SPIR-V"),
        ("none.spv", "no entry point"),
        ("what.txt", "--stage"),
        ("folder.comp", "is a directory"),
        ("missing.comp", "no such file"),
    ] {
        folder.run(&["compile", name, "-t", BOTH]).says(1, &[name, "error: ", says]);
        let r = json(&folder, 1, &[name, "-t", BOTH]);
        assert_eq!(r.len(), 2, "{name}");
        for r in r {
            assert_eq!((&r["file"], &r["status"]), (&name.into(), &"error".into()));
            assert!(!r["message"].as_str().unwrap().is_empty());
        }
    }
    // A broken file does not keep the next from being compiled.
    folder.file("good.spv", sample());
    let r = json(&folder, 1, &["random.spv", "good.spv", "missing.spv", "-t", "v3d71"]);
    let statuses: Vec<_> = r.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["error", "ok", "error"]);
}

#[cfg(unix)]
#[test]
fn unreadable_files_say_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("compile-unreadable");
    let path = folder.file("secret.spv", sample());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::read(&path).is_ok() {
        common::say("SKIPPED: this user may read every file");
        return;
    }
    let r = json(&folder, 1, &["secret.spv", "-t", "v3d71"]);
    assert_eq!(r[0]["message"], "permission denied");
}

#[test]
fn a_module_cut_at_any_word_is_diagnosed() {
    let folder = Folder::new("compile-cut");
    let whole = sample();
    let mut names = Vec::new();
    for words in 0..whole.len() / 4 {
        let name = format!("{words}.spv");
        folder.file(&name, &whole[..words * 4]);
        names.push(name);
    }
    let mut args = vec!["compile", "-t", "v3d71", "--format", "json"];
    args.extend(names.iter().map(String::as_str));
    let ran = folder.run(&args).says(1, &[]);
    let r = results(&ran);
    assert_eq!(r.len(), names.len());
    for r in &r {
        assert_eq!(r["status"], "error", "{r}");
    }
    assert_eq!(ran.stderr.lines().filter(|line| line.contains(": error: ")).count(), names.len());
    // Cut inside a word.
    folder.file("bytes.spv", &whole[..whole.len() - 2]);
    folder.run(&["compile", "bytes.spv", "-t", "v3d71"]).says(1, &["bytes.spv"]);
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let folder = Folder::new("compile-stdin");
    let ran = folder.run_with(&["compile", "-", "-t", "v3d71", "--format", "json"], &sample());
    assert_eq!((ran.code, &results(&ran)[0]["file"]), (Some(0), &"-".into()));
    folder.run_with(&["compile", "-", "-t", "v3d71"], b"hello").says(1, &["--stage"]);
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let folder = Folder::new("compile-usage");
    folder.file("a.spv", sample());
    folder.run(&["compile", "a.spv", "-t", "gtx1080"]).says(2, &["gtx1080", "v3d71"]);
    folder.run(&["compile", "a.spv"]).says(2, &["--target"]);
    folder.run(&["compile", "-t", "v3d71"]).says(2, &["FILES"]);
    for bad in ["--threads=0", "--time-limit=0", "--memory-limit=0", "--spec=x", "-O9", "--emit=x", "-D1=2"] {
        folder.run(&["compile", "a.spv", "-t", "v3d71", bad]).says(2, &["error: "]);
    }
    folder.run(&["compile", "a.spv", "-t", "v3d71", "--format", "json", "--emit", "asm"]).says(2, &["-o"]);
    folder.run(&["compile", "a.spv", "-t", "v3d71", "-o", "x"]).says(2, &["--emit"]);
}

#[test]
fn forcing_modes_are_obeyed() {
    let folder = Folder::new("compile-force");
    folder.file("a.spv", sample());
    for threads in [2, 4] {
        let r = json(&folder, 0, &["a.spv", "-t", BOTH, "--threads", &threads.to_string()]);
        assert!(r.iter().all(|r| r["stats"]["threads"] == threads && r["attempts"] == 1));
    }
    folder.run(&["compile", "a.spv", "-t", "v3d71", "--threads", "3"]).says(1, &["threads"]);
    for level in ["-O0", "-O1", "-O2"] {
        json(&folder, 0, &["a.spv", "-t", BOTH, level]);
    }
    json(&folder, 0, &["a.spv", "-t", BOTH, "--colour", "scan"]);
}

#[test]
fn limits_are_reported_as_such() {
    let folder = Folder::new("compile-limit");
    folder.file("a.spv", sample());
    let r = json(&folder, 1, &["a.spv", "-t", "v3d71", "--memory-limit", "1K"]);
    assert_eq!(r[0]["status"], "limit");
    assert!(r[0]["message"].as_str().unwrap().contains("memory limit"));
}
