//! A sample of the disassembly oracles in the ordinary tests; `cargo xtask oracles` runs them whole.
//!
//! The files are read where they lie: below `$KEMPE_SHARED`, else in `../shared` beside the workspace. Without them the
//! test says that it was skipped.

use std::io::Write;
use std::path::{Path, PathBuf};

use kempe_v3d::asm;
use kempe_v3d::decode::decode;
use kempe_v3d::encode::encode_any;
use kempe_v3d::instr::Version;

fn shared() -> PathBuf {
    match std::env::var_os("KEMPE_SHARED") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    }
}

/// Past the capturing of the test runner, so that a skipped test can be seen to be one.
fn say(line: String) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn sample(version: Version) {
    let path = shared().join(format!("isa/v3d/oracle-disasm-{}.tsv", version.name()));
    let Ok(text) = std::fs::read_to_string(&path) else {
        say(format!("SKIPPED: no {} (set KEMPE_SHARED to the folder that holds isa/v3d)", path.display()));
        return;
    };
    let mut cases = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')).step_by(13) {
        let (word, expected) = line.split_once('\t').expect("two columns");
        let word = u64::from_str_radix(word, 16).expect("a word");
        assert_eq!(asm::disassemble(version, word, true), expected);
        if expected != "invalid" {
            let canonical = encode_any(version, &decode(version, word).unwrap()).unwrap();
            assert_eq!(asm::assemble(version, &asm::disassemble(version, word, false)), Ok(vec![canonical]));
        }
        cases += 1;
    }
    say(format!("{}: {cases} cases", path.display()));
    assert!(cases > 0);
}

#[test]
fn sample_of_42() {
    sample(Version::V42);
}

#[test]
fn sample_of_71() {
    sample(Version::V71);
}
