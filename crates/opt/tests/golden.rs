//! Text tests: `golden/*.kir`. The first line is `; passes: a, b, c`; then a module, then `=== expected` and the module
//! after those passes. `KEMPE_BLESS=1` writes what the passes give into the files.

use kempe_ir::{text, verify};
use std::path::PathBuf;

const SEPARATOR: &str = "=== expected\n";

#[test]
fn golden() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("KEMPE_BLESS").is_some_and(|v| v == "1");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "kir"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let whole = std::fs::read_to_string(path).unwrap();
        let (input, expected) = whole.split_once(SEPARATOR).unwrap_or((&whole, ""));
        let first = input.lines().next().unwrap_or_default();
        let passes = first.strip_prefix("; passes:").unwrap_or_else(|| panic!("{name}: no list of passes"));
        let mut m = text::parse(input).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        if let Err(e) = verify::verify(&m) {
            panic!("{name}: the input is not well formed: {e:#?}");
        }
        for pass in passes.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            if pass == "O1" || pass == "O2" {
                let level = if pass == "O1" { kempe_opt::Level::O1 } else { kempe_opt::Level::O2 };
                kempe_opt::optimise(&mut m, level);
            } else {
                assert!(kempe_opt::run_named(&mut m, pass).is_some(), "{name}: no pass {pass}");
            }
        }
        let got = text::print(&m);
        if got != expected {
            if bless {
                let body = if input.ends_with('\n') { input.to_owned() } else { format!("{input}\n") };
                std::fs::write(path, format!("{body}{SEPARATOR}{got}")).unwrap();
            } else {
                failures.push(format!("{name}: expected\n{expected}\ngot\n{got}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n----\n"));
}
