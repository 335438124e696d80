//! Machine code without a compile: `disasm`, `asm`, `validate`, `targets`.

use crate::Exit;
use crate::args::{Asm, Disasm, Validate, WordFormat};
use crate::io;
use kempe::{CodeFacts, Target, Violation};
use std::fmt::Write;
use std::path::Path;

/// Code out of a file, with the target if the file says one.
pub enum Code {
    Bytes(Vec<u8>),
    /// Numbers in hexadecimal text: parcels of the target.
    Numbers(Vec<u64>),
    Artifact(Box<kempe::Artifact>),
}

impl Code {
    /// The code as it lies in memory.
    pub fn bytes(&self, target: &dyn Target) -> Result<Vec<u8>, String> {
        let parcel = target.parcel();
        let code = match self {
            Code::Bytes(bytes) => bytes.clone(),
            Code::Numbers(words) => {
                let mut code = Vec::with_capacity(parcel * words.len());
                for word in words {
                    let (low, high) = word.to_le_bytes().split_at_checked(parcel).map_or_else(
                        || (word.to_le_bytes().to_vec(), Vec::new()),
                        |(low, high)| (low.to_vec(), high.to_vec()),
                    );
                    if high.iter().any(|byte| *byte != 0) {
                        return Err(format!("{word:#x} has more than {} bits", 8 * parcel));
                    }
                    code.extend(low);
                }
                code
            }
            Code::Artifact(artifact) => artifact.code.clone(),
        };
        if !code.len().is_multiple_of(parcel) {
            return Err(format!("has {} bytes, which is no multiple of {parcel}", code.len()));
        }
        Ok(code)
    }

    /// The target that the file names, or else the one asked for.
    pub fn target(&self, asked: Option<&'static dyn Target>) -> Result<&'static dyn Target, String> {
        let own = match self {
            Code::Bytes(_) | Code::Numbers(_) => None,
            Code::Artifact(artifact) => kempe::target(&artifact.target),
        };
        match (own, asked) {
            (Some(own), Some(asked)) if own.name() != asked.name() => {
                Err(format!("is an artifact for {}, not for {}", own.name(), asked.name()))
            }
            (Some(target), _) | (None, Some(target)) => Ok(target),
            (None, None) => Err("holds bare words: say for which GPU with -t".to_owned()),
        }
    }
}

/// Reads an artifact, hexadecimal text or bytes. Text and bytes are told apart by their bytes: a program whose
/// words are all printable characters does not exist.
pub fn read_code(path: &Path) -> Result<Code, String> {
    let bytes = io::read(path)?;
    if bytes.is_empty() {
        return Err("is empty".to_owned());
    }
    let printable = bytes.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    match std::str::from_utf8(&bytes) {
        Ok(text) if text.trim_start().starts_with('{') => {
            let artifact = kempe::artifact::read(text).map_err(|e| e.to_string())?;
            Ok(Code::Artifact(Box::new(artifact)))
        }
        Ok(text) if printable => hex_words(text).map(Code::Numbers),
        _ => Ok(Code::Bytes(bytes)),
    }
}

fn hex_words(text: &str) -> Result<Vec<u64>, String> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        for token in line.split([' ', '\t', ',']).filter(|token| !token.is_empty()) {
            let digits = token.strip_prefix("0x").unwrap_or(token);
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            match u64::from_str_radix(digits, 16) {
                Ok(word) if plain => words.push(word),
                _ => {
                    let token: String = token.chars().take(40).collect();
                    return Err(format!("line {}: `{token}` is not a word of 64 bits", number + 1));
                }
            }
        }
    }
    if words.is_empty() { Err("holds no words".to_owned()) } else { Ok(words) }
}

/// The text of a program, one instruction a line; the assembler takes it back.
pub fn listing(target: &dyn Target, code: &[u8], plain: bool, quirks: bool) -> String {
    let mut out = String::new();
    let parcel = target.parcel();
    for (at, text, bytes) in instructions(target, code, quirks) {
        if plain || quirks {
            out.push_str(text.trim_end());
            out.push('\n');
        } else {
            // Writing into a String cannot fail.
            write!(out, "{text:<78} # {:>4}", at / parcel).unwrap_or_default();
            for number in bytes.chunks(parcel) {
                out.push_str(" 0x");
                for byte in number.iter().rev() {
                    write!(out, "{byte:02x}").unwrap_or_default();
                }
            }
            out.push('\n');
        }
    }
    out
}

/// Instructions of a program: byte offset, text, bytes.
fn instructions<'a>(target: &dyn Target, code: &'a [u8], quirks: bool) -> Vec<(usize, String, &'a [u8])> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let (text, length) = target.disassemble(&code[at..], quirks);
        let end = (at + length.max(1)).min(code.len());
        out.push((at, text, &code[at..end]));
        at = end;
    }
    out
}

/// `kempe disasm`.
pub fn disasm(args: &Disasm) -> Exit {
    let result = read_code(&args.file).and_then(|code| {
        let target = code.target(args.target)?;
        let bytes = code.bytes(target)?;
        io::out(listing(target, &bytes, args.plain, args.quirks).as_bytes())?;
        let bad = instructions(target, &bytes, false).iter().filter(|i| i.1 == kempe::INVALID).count();
        match bad {
            0 => Ok(()),
            1 => Err("one word is no instruction".to_owned()),
            n => Err(format!("{n} words are no instructions")),
        }
    });
    finish(&args.file, result)
}

/// `kempe asm`.
pub fn asm(args: &Asm) -> Exit {
    let text = match io::read(&args.file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(message) => return finish(&args.file, Err(message)),
    };
    let code = match args.target.assemble(&text) {
        Ok(code) => code,
        Err(error) => {
            let shown = io::shown(&args.file);
            eprintln!("{shown}:{error}");
            if let Some(line) = text.lines().nth(error.line.saturating_sub(1)) {
                // As wide as the text before the place is, whatever the tabs in it.
                let before: String =
                    line.chars().take(error.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
                eprintln!("    {line}\n    {before}^");
            }
            return Exit::Wrong;
        }
    };
    let default = if args.output.is_some() { WordFormat::Bin } else { WordFormat::Hex };
    let bytes = match args.format.unwrap_or(default) {
        WordFormat::Bin => code,
        WordFormat::Hex => {
            let number =
                |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            let lines = code.chunks(args.target.parcel()).map(|bytes| format!("0x{}\n", number(bytes)));
            lines.collect::<String>().into_bytes()
        }
    };
    match &args.output {
        Some(path) => finish(path, io::write(path, &bytes)),
        None => finish(&args.file, io::out(&bytes)),
    }
}

/// `kempe validate`: one line for each broken rule, with the instruction.
pub fn validate(args: &Validate) -> Exit {
    let mut errors = 0;
    let result = read_code(&args.file).and_then(|code| {
        let target = code.target(args.target)?;
        let (threads, stage, single_section) = match &code {
            Code::Bytes(_) | Code::Numbers(_) => {
                (args.threads.unwrap_or(4), kempe::Stage::Compute, args.single_section)
            }
            Code::Artifact(a) => (a.threads, a.stage, a.single_section),
        };
        let bytes = code.bytes(target)?;
        let facts = CodeFacts { code: &bytes, threads, stage, single_section, entry: 0, address: None };
        let mut out = String::new();
        for violation in target.validate(&facts) {
            errors += u32::from(violation.error);
            let class = if violation.error { "error" } else { "warning" };
            let place = bytes.get(target.parcel() * violation.at..).filter(|rest| !rest.is_empty());
            let text = place.map_or(String::new(), |rest| target.disassemble(rest, false).0);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let Violation { rule, at, message, .. } = &violation;
            writeln!(out, "{class}: rule {rule}: word {at}: {message}\n    {text}").unwrap_or_default();
        }
        io::out(out.as_bytes())
    });
    match finish(&args.file, result) {
        Exit::Fine if errors != 0 => Exit::Wrong,
        exit => exit,
    }
}

/// `kempe targets`.
pub fn targets() -> Exit {
    let mut out = String::new();
    for target in kempe::targets() {
        writeln!(out, "{:<8}{}", target.name(), target.description()).unwrap_or_default();
        for (name, value) in target.facts() {
            writeln!(out, "        {name:<10}{value}").unwrap_or_default();
        }
    }
    finish(Path::new("-"), io::out(out.as_bytes()))
}

/// Says what went wrong with a file, if something did.
fn finish(path: &Path, result: Result<(), String>) -> Exit {
    match result {
        Ok(()) => Exit::Fine,
        Err(message) => {
            io::complain(path, &message);
            Exit::Wrong
        }
    }
}
