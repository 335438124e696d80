//! A sample of the disassembly oracle in the ordinary tests; `cargo xtask oracles` runs it whole.
//!
//! The file is read where it lies: below `$KEMPE_SHARED`, else in `../shared` beside the workspace. Without it the test says
//! that it was skipped.

use kempe_agx::asm;
use kempe_agx::decode::decode;
use kempe_agx::encode::encode;
use kempe_agx::instr::Number;
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

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

#[test]
fn sample_of_the_disassembly_oracle() {
    let path = shared().join("isa/agx/oracle-disasm-agx.tsv");
    let Ok(text) = std::fs::read_to_string(&path) else {
        say(format!("SKIPPED: no {} (set KEMPE_SHARED to the folder that holds isa/agx)", path.display()));
        return;
    };
    let mut cases = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')).step_by(13) {
        let (hex, expected) = line.split_once('\t').expect("two columns");
        let word = bytes(hex);
        assert_eq!(asm::disassemble(&word, true), Ok((expected.to_owned(), word.len())));
        let decoded = decode(&word).expect("an instruction");
        let canonical = encode(&decoded.instr).expect("an encoding");
        assert_eq!(decode(&canonical).map(|d| d.instr), Ok(decoded.instr), "{line}");
        // An access to no element has no registers that could be written down.
        if !decoded.instr.has(Number::Mask) || decoded.instr.get(Number::Mask) != 0 {
            assert_eq!(
                asm::assemble(&asm::text(&decoded.instr, false)).as_deref(),
                Ok(&*canonical),
                "{line}"
            );
        }
        cases += 1;
    }
    say(format!("{}: {cases} cases", path.display()));
    assert!(cases > 1000);
}
