//! Cases of the oracle files: what a line says, held against what this crate does.
//!
//! `cargo xtask oracles` runs whole files, the tests of this crate a sample. The formats are those of section 18.

use crate::asm;
use crate::decode::decode;
use crate::encode::encode;
use crate::instr::Number;
use crate::sim::{LANES, StepState, step_bytes};

/// Bytes from hexadecimal digits.
pub fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return Err(format!("`{hex}` is no sequence of bytes"));
    }
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|e| format!("`{hex}`: {e}")))
        .collect()
}

/// A line of the disassembly oracle: our text with quirks is that of the file.
pub fn disassembly_case(line: &str) -> Result<(), String> {
    let (hex, expected) = line.split_once('\t').ok_or("a line without columns")?;
    let bytes = bytes(hex)?;
    let (text, length) = asm::disassemble(&bytes, true).map_err(|e| e.to_string())?;
    if text != expected {
        return Err(format!("we print `{text}`"));
    }
    if length != bytes.len() {
        return Err(format!("we read {length} bytes"));
    }
    Ok(())
}

/// The same line: its instruction has an encoding of the same meaning, and our own text assembles to it.
pub fn round_trip_case(line: &str) -> Result<(), String> {
    let (hex, _) = line.split_once('\t').ok_or("a line without columns")?;
    let instr = decode(&bytes(hex)?).map_err(|e| e.to_string())?.instr;
    let canonical = encode(&instr).map_err(|e| e.to_string())?;
    let again = decode(&canonical).map_err(|e| e.to_string())?.instr;
    if again != instr {
        return Err(format!("{:02x?} means something else", &*canonical));
    }
    // An access to no element has no registers that could be written down.
    if instr.has(Number::Mask) && instr.get(Number::Mask) == 0 {
        return Ok(());
    }
    let text = asm::text(&instr, false);
    match asm::assemble(&text) {
        Ok(parsed) if parsed == *canonical => Ok(()),
        other => Err(format!("`{text}` assembles to {other:02x?}")),
    }
}

/// Name and value of each part of a state column.
fn assignments(column: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    column
        .split(',')
        .filter(|s| !s.is_empty())
        .map(|s| s.split_once('=').ok_or_else(|| format!("`{s}` has no =")))
}

fn word(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|e| format!("`{text}`: {e}"))
}

/// A register: one word for all lanes, or eight digits for each.
fn lanes(text: &str) -> Result<[u32; LANES], String> {
    if text.starts_with("0x") {
        return Ok([word(text)?; LANES]);
    }
    if text.len() != 8 * LANES || !text.is_ascii() {
        return Err(format!("`{text}` is not {} digits", 8 * LANES));
    }
    let mut lanes = [0; LANES];
    for (lane, value) in lanes.iter_mut().enumerate() {
        *value = word(&text[8 * lane..8 * lane + 8])?;
    }
    Ok(lanes)
}

fn number(name: &str, limit: usize) -> Result<usize, String> {
    let number = name.get(1..).and_then(|n| n.parse::<usize>().ok()).filter(|&n| n < limit);
    number.ok_or_else(|| format!("no register `{name}`"))
}

/// A line of the execution oracle: the state afterwards is as the file says, and nothing else has changed.
pub fn execution_case(line: &str) -> Result<(), String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[form, hex, before, after] = columns.as_slice() else {
        return Err(format!("{} columns instead of 4", columns.len()));
    };
    let mut state = StepState::new();
    for part in assignments(before) {
        let (name, value) = part?;
        match name.as_bytes().first() {
            Some(b'r') => state.registers[number(name, 128)?] = lanes(value)?,
            Some(b'u') => state.uniforms[number(name, 256)?] = word(value)?,
            Some(b'x') => state.mask = word(value)?,
            Some(b'm') => {
                let (address, contents) = value.split_once(':').ok_or("memory without contents")?;
                let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
                state.memory = Some((address.map_err(|e| format!("`{value}`: {e}"))?, bytes(contents)?));
            }
            _ => return Err(format!("unknown `{name}`")),
        }
    }
    // One lane is lane 0 of a group in which the others do not run.
    if form != "V" {
        state.mask = 1;
    }
    let mut expected = state.clone();
    step_bytes(&bytes(hex)?, &mut state)?;
    for part in assignments(after) {
        let (name, value) = part?;
        match name.as_bytes().first() {
            Some(b'r') if form == "V" => expected.registers[number(name, 128)?] = lanes(value)?,
            Some(b'r') => expected.registers[number(name, 128)?][0] = word(value)?,
            Some(b'x') => expected.mask = word(value)?,
            _ => return Err(format!("unknown `{name}`")),
        }
    }
    for (n, (got, wanted)) in state.registers.iter().zip(&expected.registers).enumerate() {
        if let Some(lane) = (0..LANES).find(|&lane| got[lane] != wanted[lane]) {
            return Err(format!("r{n} lane {lane}: {:08x} instead of {:08x}", got[lane], wanted[lane]));
        }
    }
    if state.mask != expected.mask {
        return Err(format!("mask {:08x} instead of {:08x}", state.mask, expected.mask));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checkers themselves object to a wrong value and to a change that is not named.
    #[test]
    fn wrong_expectations_are_noticed() {
        assert_eq!(execution_case("S\t62200500\tr8=0x762c5366\tr8=0x762c0005"), Ok(()));
        assert!(execution_case("S\t62200500\tr8=0x762c5366\tr8=0x762c0006").is_err());
        assert!(execution_case("S\t62200500\tr8=0x762c5366\t").is_err());
        assert!(execution_case("S\t62200500\tr8=0x762c5366\tr8=0x762c0005,r9=0x00000001").is_err());
        assert!(execution_case("S\t62200500\tr8=5,q\t").is_err());
        assert_eq!(disassembly_case("8800\tstop             "), Ok(()));
        assert!(disassembly_case("8800\tstop").is_err());
        assert!(disassembly_case("88000000\tstop             ").is_err());
        assert!(round_trip_case("880\tstop").is_err());
    }
}
