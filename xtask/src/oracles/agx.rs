//! Oracles of AGX: texts of instructions, and instructions executed on a given state.
//!
//! The cases themselves are checked by the crate of the target, whose tests run a sample.

use super::{Oracle, Tally};
use kempe_agx::oracle::{disassembly_case, execution_case, round_trip_case};

/// The lines of this kind.
pub fn oracles() -> Vec<Oracle> {
    let disassembly = "isa/agx/oracle-disasm-agx.tsv";
    let oracle = |name: &str, file: &str, check: fn(&str) -> Result<(), String>| Oracle {
        name: name.to_owned(),
        file: file.to_owned(),
        run: Box::new(move |text| each(text, check)),
    };
    vec![
        oracle("oracle-disasm-agx", disassembly, disassembly_case),
        oracle("roundtrip-agx", disassembly, round_trip_case),
        oracle("oracle-exec-agx", "isa/agx/oracle-exec-agx.tsv", execution_case),
    ]
}

fn each(text: &str, check: fn(&str) -> Result<(), String>) -> Tally {
    let mut tally = Tally::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let result = check(line);
        tally.count(result.is_ok(), || format!("{line}: {}", result.err().unwrap_or_default()));
    }
    tally
}
