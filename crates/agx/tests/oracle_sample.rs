//! A sample of the oracles in the ordinary tests; `cargo xtask oracles` runs them whole.
//!
//! The files are read where they lie: below `$KEMPE_SHARED`, else in `../shared` beside the workspace. Without them the test
//! says that it was skipped.

use kempe_agx::oracle::{disassembly_case, execution_case, round_trip_case};
use std::io::Write;
use std::path::{Path, PathBuf};

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

/// Runs every thirteenth line of a file.
fn sample(file: &str, least: usize, check: impl Fn(&str) -> Result<(), String>) {
    let path = shared().join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        say(format!("SKIPPED: no {} (set KEMPE_SHARED to the folder that holds isa/agx)", path.display()));
        return;
    };
    let mut cases = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')).step_by(13) {
        assert_eq!(check(line), Ok(()), "{line}");
        cases += 1;
    }
    say(format!("{}: {cases} cases", path.display()));
    assert!(cases >= least);
}

#[test]
fn sample_of_the_disassembly_oracle() {
    sample("isa/agx/oracle-disasm-agx.tsv", 1000, |line| disassembly_case(line).and(round_trip_case(line)));
}

#[test]
fn sample_of_the_execution_oracle() {
    sample("isa/agx/oracle-exec-agx.tsv", 300, execution_case);
}
