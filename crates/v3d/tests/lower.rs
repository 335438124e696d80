//! Text tests of lowering: `lower/*.kir`. The first line is `; lower TARGET`; then a module in source form, then
//! `=== expected` and the lowered module, or `error: ` and the message. `KEMPE_BLESS=1` writes what lowering gives.

use kempe_ir::{text, verify};
use kempe_v3d::instr::Version;
use kempe_v3d::lower::{Shape, check, lower};
use std::path::PathBuf;

const SEPARATOR: &str = "=== expected\n";

#[test]
fn golden() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
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
        let target = first.strip_prefix("; lower ").map(str::trim);
        let version = Version::ALL.into_iter().find(|v| Some(v.name()) == target);
        let version = version.unwrap_or_else(|| panic!("{name}: no target in the first line"));
        let mut m = text::parse(input).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        if let Err(e) = verify::verify(&m) {
            panic!("{name}: the input is not well formed: {e:#?}");
        }
        let got = match lower(&mut m, version, &Shape::default()) {
            Ok(l) => {
                verify::verify(&m).unwrap_or_else(|e| panic!("{name}: {e:#?}\n{}", text::print(&m)));
                check(&m).unwrap_or_else(|e| panic!("{name}: {e}"));
                let sizes = format!("; private {} shared {}\n", l.private_bytes, l.shared_bytes);
                sizes + &text::print(&m)
            }
            Err(e) => format!("error: {e}\n"),
        };
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
