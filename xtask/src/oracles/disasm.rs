//! Disassembly oracles of V3D: word and reference text.
//!
//! Two lines per file: the text with the reference's quirks switched on must equal the file; and for every valid word
//! our own text must assemble to the canonical word of that instruction, which must decode to the same instruction.

use kempe_v3d::asm;
use kempe_v3d::decode::decode;
use kempe_v3d::encode::encode_any;
use kempe_v3d::instr::Version;

use super::{Oracle, Tally};

/// The lines of this kind.
pub fn oracles() -> Vec<Oracle> {
    let mut oracles = Vec::new();
    for version in Version::ALL {
        let file = format!("isa/v3d/oracle-disasm-{}.tsv", version.name());
        oracles.push(Oracle {
            name: format!("oracle-disasm-{}", version.name()),
            file: file.clone(),
            run: Box::new(move |text| each(text, |word, expected| reference_text(version, word, expected))),
        });
        oracles.push(Oracle {
            name: format!("roundtrip-{}", version.name()),
            file,
            run: Box::new(move |text| {
                each(text, |word, expected| (expected != "invalid").then(|| round_trip(version, word))?)
            }),
        });
    }
    oracles
}

/// Runs `check` on every case; `None` leaves the case out, an error is a failure.
fn each(text: &str, check: impl Fn(u64, &str) -> Option<Result<(), String>>) -> Tally {
    let mut tally = Tally::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let case =
            line.split_once('\t').and_then(|(word, text)| Some((u64::from_str_radix(word, 16).ok()?, text)));
        let result = match case {
            Some((word, expected)) => check(word, expected),
            None => Some(Err("malformed line".to_owned())),
        };
        if let Some(result) = result {
            let passed = result.is_ok();
            tally.count(passed, || format!("{line}: {}", result.err().unwrap_or_default()));
        }
    }
    tally
}

fn reference_text(version: Version, word: u64, expected: &str) -> Option<Result<(), String>> {
    let text = asm::disassemble(version, word, true);
    Some(if text == expected { Ok(()) } else { Err(format!("we print `{text}`")) })
}

fn round_trip(version: Version, word: u64) -> Option<Result<(), String>> {
    let check = || {
        let instr = decode(version, word).map_err(|e| e.to_string())?;
        let canonical = encode_any(version, &instr).map_err(|e| e.to_string())?;
        let again = decode(version, canonical).map_err(|e| e.to_string())?;
        if again != instr {
            return Err(format!("canonical word {canonical:016x} means something else"));
        }
        let text = asm::disassemble(version, word, false);
        let parsed = asm::assemble(version, &text).map_err(|e| format!("`{text}`: {e}"))?;
        if parsed != [canonical] {
            return Err(format!("`{text}` assembles to {parsed:x?}, not to {canonical:016x}"));
        }
        Ok(())
    };
    Some(check())
}
