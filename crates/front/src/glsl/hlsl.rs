//! HLSL: one entry point of one stage, semantics to locations and built-in variables, registers to bindings.
//!
//! glslang does all of it. What it needs besides, and does not get here, is its legaliser (a part of an optimiser): resources
//! that a source puts into variables or structures stay there, and are refused later by name.
//!
//! HLSL numbers its registers by kind, Vulkan numbers all bindings of a set together: the kinds get ranges of their own
//! ([`FIRST_BINDINGS`]). glslang could shift kinds of resources, but to it a structured buffer that is written is the same kind as
//! one that is only read, so the numbers are changed in the text.

use super::{Dialect, Includes, Job, Text, prepare};
use crate::{Diagnostic, Diagnostics, Options};
use std::ffi::CString;
use std::path::Path;

/// Bindings of the registers b0, t0, s0 and u0.
const FIRST_BINDINGS: [(u8, u32); 4] = [(b'b', 0), (b't', 32), (b's', 64), (b'u', 96)];

/// The text with the numbers of its registers as bindings. Numbers that macros make stay as they are.
fn registers(text: &[u8]) -> Vec<u8> {
    const WORD: &[u8] = b"register";
    let space = |at: usize| text[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut at = 0;
    while at < text.len() {
        let part_of_name = at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
        if part_of_name || !text[at..].starts_with(WORD) {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let mut next = at + WORD.len();
        next += space(next);
        if text.get(next) == Some(&b'(') {
            next += 1;
            next += space(next);
        }
        let first = text.get(next).and_then(|kind| {
            FIRST_BINDINGS.iter().find(|row| row.0 == kind.to_ascii_lowercase()).map(|row| row.1)
        });
        let digits = text.iter().skip(next + 1).take_while(|b| b.is_ascii_digit()).count();
        let number = text.get(next + 1..next + 1 + digits).and_then(|d| std::str::from_utf8(d).ok());
        match (first, number.and_then(|n| n.parse::<u32>().ok())) {
            (Some(first), Some(n)) => {
                out.extend_from_slice(&text[at..=next]);
                out.extend_from_slice(n.saturating_add(first).to_string().as_bytes());
                at = next + 1 + digits;
            }
            _ => {
                out.extend_from_slice(WORD);
                at += WORD.len();
            }
        }
    }
    out
}

/// Compiles the entry point that the options name, or `main`.
pub fn to_spirv(name: &str, text: &[u8], options: &Options) -> Result<Vec<u32>, Diagnostics> {
    let Text { source, preamble, file, stage } = prepare(name, &registers(text), "", options)?;
    // `all` is every entry point of a file; which functions are entry points, a text in HLSL does not say.
    let entry = options.entry.as_deref().filter(|entry| *entry != "all").unwrap_or("main");
    let Ok(c_entry) = CString::new(entry) else {
        return Err(Diagnostics::one(Diagnostic::error(name, "the entry point has a zero byte in its name")));
    };
    let job = Job {
        name,
        source: &source,
        preamble: &preamble,
        file: &file,
        stage,
        language: Dialect::Hlsl { entry: &c_entry },
        includes: Includes { dirs: &options.include_dirs, root: Path::new(name), opened: 0, missing: None },
    };
    let mut result = crate::on_large_stack(name, move || job.run());
    if let Err(Diagnostics(list)) = &mut result
        && list.iter().any(|d| d.message.contains("Entry point not found"))
    {
        let message = format!("there is no entry point `{entry}`");
        *list = vec![Diagnostic::error(name, message).with_help("an entry point is named with -e")];
    }
    result
}

#[cfg(test)]
mod tests {
    use super::registers;

    #[test]
    fn registers_become_bindings() {
        for (text, want) in [
            ("a : register(t3);", "a : register(t35);"),
            ("register ( u0, space1)", "register ( u96, space1)"),
            ("register(b2) register(S1)", "register(b2) register(S65)"),
            (
                "my_register(t1) registers(t1) register(c4) register(N) register(t",
                "my_register(t1) registers(t1) register(c4) register(N) register(t",
            ),
            ("register", "register"),
            ("register(t99999999999)", "register(t99999999999)"),
        ] {
            assert_eq!(String::from_utf8(registers(text.as_bytes())).unwrap(), want);
        }
    }
}
