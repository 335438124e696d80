//! `asm`, `disasm` and `targets`, as somebody types them.

mod common;

use common::Folder;

const PROGRAM: &str =
    "start: add rf1, rf2, rf3   # a comment\n  fmul rf4, rf5, rf6\n  b.anya start\n nop\n nop\n nop\n";

#[test]
fn text_goes_to_words_and_back() {
    let folder = Folder::new("code-round");
    folder.file("a.s", PROGRAM.replace("  fmul", "  nop; fmul"));
    folder.run(&["asm", "a.s", "-t", "v3d71", "-o", "a.bin"]).quiet();
    let bytes = std::fs::read(folder.path("a.bin")).unwrap();
    assert_eq!(bytes.len(), 6 * 8);
    let shown = folder.run(&["disasm", "a.bin", "-t", "v3d71"]).quiet().text();
    assert!(shown.starts_with("add rf1, rf2, rf3"), "{shown}");
    assert_eq!(shown.lines().count(), 6);
    // What is shown assembles to the same words, from a file and from standard input.
    folder.file("b.s", &shown);
    folder.run(&["asm", "b.s", "-t", "v3d71", "-o", "b.bin"]).quiet();
    assert_eq!(std::fs::read(folder.path("b.bin")).unwrap(), bytes);
    let hex = folder.run_with(&["asm", "-", "-t", "v3d71"], shown.as_bytes()).quiet().text();
    let plain = folder.run_with(&["disasm", "-", "-t", "v3d71", "--plain"], hex.as_bytes()).quiet().text();
    assert_eq!(plain.lines().count(), 6);
    assert!(!plain.contains('#'), "{plain}");
    let again = folder.run_with(&["asm", "-", "-t", "v3d71", "--format", "bin"], plain.as_bytes()).quiet();
    assert_eq!(again.stdout, bytes);
}

#[test]
fn errors_in_text_point_at_the_place() {
    let folder = Folder::new("code-errors");
    folder.file("a.s", "nop\n\tadd rf1, rf2, 77\n");
    let ran = folder.run(&["asm", "a.s", "-t", "v3d71"]).says(1, &["a.s:2:", "add rf1, rf2, 77"]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[1].find("77"), lines[2].find('^'), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

#[test]
fn broken_inputs_are_refused() {
    let folder = Folder::new("code-broken");
    folder.file("empty.bin", "");
    folder.file("odd.bin", [0xffu8; 9]);
    folder.file("bad.hex", "0x1\n0xnope\n");
    folder.file("bad.json", "{\"schema\": \"kempe-artifact/9\"}");
    folder.run(&["disasm", "empty.bin", "-t", "v3d71"]).says(1, &["empty.bin: error: is empty"]);
    folder.run(&["disasm", "odd.bin", "-t", "v3d71"]).says(1, &["9 bytes"]);
    folder.run(&["disasm", "bad.hex", "-t", "v3d71"]).says(1, &["line 2", "0xnope"]);
    folder.run(&["disasm", "bad.json"]).says(1, &["kempe-artifact/9"]);
    folder.run(&["disasm", "nothing.bin", "-t", "v3d71"]).says(1, &["no such file"]);
    folder.run(&["disasm", ".", "-t", "v3d71"]).says(1, &["is a directory"]);
    folder.file("words.hex", "0xffffffffffffffff 3c003186bb800000");
    folder.run(&["disasm", "words.hex"]).says(1, &["say for which GPU"]);
    let ran = folder.run(&["disasm", "words.hex", "-t", "v3d42"]).says(1, &["one word is no instruction"]);
    assert!(ran.text().starts_with("invalid"), "{}", ran.text());
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let folder = Folder::new("code-usage");
    folder.run(&["disasm", "a", "-t", "v3d99"]).says(2, &["v3d99", "v3d42", "v3d71"]);
    folder.run(&["disasm"]).says(2, &["Usage"]);
    folder.run(&["nonsense"]).says(2, &["nonsense"]);
    folder.run(&[]).says(2, &["Usage"]);
}

#[test]
fn targets_are_listed() {
    let text = Folder::new("code-targets").run(&["targets"]).quiet().text();
    for name in ["v3d42", "v3d71"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
}
