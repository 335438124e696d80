//! Assembly text, both ways.
//!
//! The text form is that of the public reference disassembler (reference section 14), made true and complete: every
//! modifier, the rotation of 4.2, the link bit and reserved codes have a text, so that text and canonical word determine
//! each other. Where the reference tool deviates from the truth the *quirk* mode of the printer deviates in the same way
//! (section 14.3); it serves the comparison with that tool and nothing else.
//!
//! Our additions: `rotate.N` and `rotate.r5` in the signal list, `ucb`, `bl` and `bul` for a branch that links, `magicN`
//! for magic addresses without a name, `.unpack7`, `.reserved`, `unif4` to `unif7` for unassigned codes. The assembler
//! also takes labels (`name:`), `#` comments, and a missing MUL part.

use std::fmt::Write;

use crate::decode::decode;
use crate::encode::encode_any;
use crate::instr::{
    Alu, Branch, BranchCond, BranchTarget, Cond, Dest, Instr, MsfIgnore, Op, Pack, Part, Push, Signals,
    Source, UniformMove, Unpack, Update, Version, small_code, small_value,
};
use crate::magic;
use crate::tables::{Unit, available};

/// The text of a word; `invalid` if it is no instruction. With `quirks`, what the reference tool prints.
pub fn disassemble(version: Version, word: u64, quirks: bool) -> String {
    match decode(version, word) {
        Ok(instr) if quirks && unknown_to_reference(version, &instr) => "invalid".to_owned(),
        Ok(instr) => text(version, &instr, quirks),
        Err(_) => "invalid".to_owned(),
    }
}

/// Operations that the reference tool does not know yet, and one that it refuses (quirk Q10).
fn unknown_to_reference(version: Version, instr: &Instr) -> bool {
    use Op::*;
    instr.alu().is_some_and(|alu| {
        alu.parts().iter().any(|part| {
            matches!(
                part.op,
                SetnnmodeUu
                    | SetnnmodeSu
                    | SetnnmodeUs
                    | SetnnmodeSs
                    | V8dot
                    | Funpackunormlo
                    | Funpackunormhi
                    | Funpacksnormlo
                    | Funpacksnormhi
            ) || (part.op == Vfmax && version == Version::V71)
        })
    })
}

/// The text of an instruction. With `quirks`, what the reference tool prints.
pub fn text(version: Version, instr: &Instr, quirks: bool) -> String {
    // Writing into a String cannot fail.
    let mut out = String::with_capacity(80);
    let printer = Printer { version, quirks };
    match instr {
        Instr::Alu(alu) => printer.alu(&mut out, alu),
        Instr::Branch(branch) => printer.branch(&mut out, branch),
    }
    out
}

struct Printer {
    version: Version,
    quirks: bool,
}

impl Printer {
    fn alu(&self, out: &mut String, alu: &Alu) {
        self.part(out, &alu.add, Unit::Add);
        pad(out, 30);
        out.push_str("; ");
        self.part(out, &alu.mul, Unit::Mul);
        let separator = |out: &mut String, first: &mut bool| {
            if *first {
                pad(out, 60);
                *first = false;
            }
            out.push_str("; ");
        };
        let mut first = true;
        for (signal, name) in Signals::NAMES {
            if !alu.signals.has(signal) || (self.quirks && signal == Signals::UCB) {
                continue;
            }
            separator(out, &mut first);
            out.push_str(name);
            if let Some(dest) = alu.sig_dest.filter(|_| signal.has(Signals::ADDRESSED)) {
                out.push('.');
                match dest {
                    Dest::Row(row) => write!(out, "rf{row}").unwrap_or_default(),
                    Dest::Magic(n) => match self.magic(n) {
                        Some(name) => out.push_str(name),
                        None if self.quirks => write!(out, "UNKNOWN{n}").unwrap_or_default(),
                        None => write!(out, "magic{n}").unwrap_or_default(),
                    },
                }
            }
        }
        if let Some(code) = alu.rotate.filter(|_| !self.quirks) {
            separator(out, &mut first);
            match code {
                0 => out.push_str("rotate.r5"),
                16..=31 => write!(out, "rotate.{}", i32::from(code) - 32).unwrap_or_default(),
                _ => write!(out, "rotate.{code}").unwrap_or_default(),
            }
        }
    }

    fn magic(&self, n: u8) -> Option<&'static str> {
        match n {
            // Quirks Q0 and Q11.
            magic::TMUHSCM if self.quirks => Some("tmuscm"),
            0..=4 | 19..=24 if self.quirks => magic::name(Version::V42, n),
            _ => magic::name(self.version, n),
        }
    }

    fn part(&self, out: &mut String, part: &Part, unit: Unit) {
        out.push_str(match part.op {
            Op::Iid if self.quirks && self.version == Version::V42 => "vdwwt", // Q3
            op => op.name(),
        });
        let suffixes = [part.cond.map(Cond::name), part.push.map(Push::name), part.update.map(Update::name)];
        for suffix in suffixes.into_iter().flatten() {
            out.push('.');
            out.push_str(suffix);
        }
        if part.op == Op::Nop {
            if unit == Unit::Add {
                out.push(' ');
            }
            return;
        }
        let mut separator = " ";
        if let Some(dest) = part.result() {
            out.push_str(separator);
            separator = ", ";
            match dest {
                Dest::Row(row) => write!(out, "rf{row}").unwrap_or_default(),
                Dest::Magic(n) => match self.magic(n) {
                    Some(name) => out.push_str(name),
                    None if self.quirks => write!(out, "waddr UNKNOWN {n}").unwrap_or_default(),
                    None => write!(out, "magic{n}").unwrap_or_default(),
                },
            }
            let hidden = self.quirks && matches!(part.op, Op::Fxcd | Op::Fycd | Op::Itof | Op::Utof); // Q8
            match part.pack {
                Pack::L if !hidden => out.push_str(".l"),
                Pack::H if !hidden => out.push_str(".h"),
                _ => {}
            }
        }
        for (source, unpack) in part.sources() {
            out.push_str(separator);
            separator = ", ";
            match source {
                Source::Row(row) => write!(out, "rf{row}").unwrap_or_default(),
                Source::Acc(n) => write!(out, "r{n}").unwrap_or_default(),
                Source::Small(code) => match small_value(code) {
                    Some(value) if code < 32 => write!(out, "{}", value as i32).unwrap_or_default(),
                    Some(value) => write!(out, "0x{value:08x}").unwrap_or_default(),
                    None => out.push('?'),
                },
                Source::None => out.push('?'),
            }
            let unpack = if self.quirks { self.reference_unpack(part, unit, unpack) } else { unpack };
            if unpack != Unpack::None {
                out.push('.');
                out.push_str(unpack.name());
            }
        }
    }

    /// Quirks Q1 and Q2 of 7.1.
    fn reference_unpack(&self, part: &Part, unit: Unit, unpack: Unpack) -> Unpack {
        if self.version != Version::V71 {
            return unpack;
        }
        match part.op {
            Op::Fround | Op::Ftrunc | Op::Ffloor | Op::Fceil | Op::Fdx | Op::Fdy => Unpack::None,
            Op::Fmov if unit == Unit::Mul => match unpack {
                Unpack::Sat => Unpack::Abs,
                Unpack::Nsat => Unpack::None,
                Unpack::Max0 => Unpack::L,
                Unpack::Unknown7 => Unpack::H,
                other => other,
            },
            _ => unpack,
        }
    }

    fn branch(&self, out: &mut String, branch: &Branch) {
        out.push('b');
        if branch.uniforms.is_some() {
            out.push('u');
        }
        if branch.link && !self.quirks {
            out.push('l'); // not printed by the reference: Q7
        }
        let reserved = branch.cond == BranchCond::Reserved && self.quirks; // Q5
        if branch.cond != BranchCond::Always && !reserved {
            out.push('.');
            out.push_str(branch.cond.name());
        }
        // The letter stands without a dot: it follows a condition or the mnemonic directly.
        match branch.msfign {
            MsfIgnore::None => {}
            MsfIgnore::Lanes => out.push('p'),
            MsfIgnore::Quads => out.push('q'),
        }
        out.push_str("  ");
        match branch.target {
            BranchTarget::Absolute(address) => write!(out, "zero_addr+0x{address:08x}").unwrap_or_default(),
            BranchTarget::Relative(offset) => write!(out, "{offset}").unwrap_or_default(),
            BranchTarget::Link => out.push_str("lri"),
            BranchTarget::Row(row) => write!(out, "rf{row}").unwrap_or_default(),
        }
        match branch.uniforms {
            None => {}
            Some(UniformMove::Absolute) => out.push_str(", a:unif"),
            Some(UniformMove::Relative) => out.push_str(", r:unif"),
            Some(UniformMove::Link) => out.push_str(", lri"),
            Some(UniformMove::Row(row)) => write!(out, ", rf{row}").unwrap_or_default(),
            Some(UniformMove::Reserved(_)) if self.quirks => {} // Q6
            Some(UniformMove::Reserved(code)) => write!(out, ", unif{code}").unwrap_or_default(),
        }
    }
}

/// Spaces up to a column; text that is already longer stays.
fn pad(out: &mut String, column: usize) {
    while out.len() < column {
        out.push(' ');
    }
}

/// An error in assembly text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsmError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for AsmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for AsmError {}

/// Assembles a program: one instruction per line, labels, `#` comments. The words are canonical; whether they obey the
/// rules of use is the validator's question.
pub fn assemble(version: Version, source: &str) -> Result<Vec<u64>, AsmError> {
    // Name, index of the instruction that it stands for, line.
    let mut labels: Vec<(&str, usize, usize, &str)> = Vec::new();
    let mut lines = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let mut rest = line.split('#').next().unwrap_or("");
        while let Some((head, tail)) = rest.split_once(':') {
            let name = head.trim();
            if !is_label(name) {
                break;
            }
            labels.push((name, lines.len(), number, line));
            rest = tail;
        }
        if !rest.trim().is_empty() {
            lines.push((number, line, rest));
        }
    }
    labels.sort_unstable();
    if let Some(twice) = labels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (name, _, number, line) = twice[1];
        return Err(error(line, number, name, format!("label `{name}` stands twice")));
    }
    let find = |name: &str| labels.binary_search_by(|known| known.0.cmp(name)).ok().map(|i| labels[i].1);
    let mut words = Vec::with_capacity(lines.len());
    for (index, (number, line, rest)) in lines.into_iter().enumerate() {
        let parser = Parser { version, line, number, labels: &|name| find(name).map(|to| (index, to)) };
        let instr = parser.instruction(rest)?;
        words.push(encode_any(version, &instr).map_err(|e| error(line, number, rest.trim(), e.to_string()))?);
    }
    Ok(words)
}

/// Parses one instruction without labels.
pub fn parse(version: Version, line: &str) -> Result<Instr, AsmError> {
    Parser { version, line, number: 0, labels: &|_| None }.instruction(line)
}

/// A name that can be a label: letters, digits, `_` and `.`, not beginning with a digit.
fn is_label(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// An error at `part`, which is a slice of `line`.
fn error(line: &str, number: usize, part: &str, message: impl Into<String>) -> AsmError {
    let offset = (part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
    let column = line.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    AsmError { line: number + 1, column, message: message.into() }
}

struct Parser<'a> {
    version: Version,
    line: &'a str,
    number: usize,
    /// Label to (index of this instruction, index of the target).
    labels: &'a dyn Fn(&str) -> Option<(usize, usize)>,
}

type Parsed<T> = Result<T, AsmError>;

impl Parser<'_> {
    fn fail<T>(&self, part: &str, message: impl Into<String>) -> Parsed<T> {
        Err(error(self.line, self.number, part, message))
    }

    fn instruction(&self, text: &str) -> Parsed<Instr> {
        let text = text.trim();
        let (mnemonic, rest) = split_word(text);
        if is_branch(mnemonic) {
            return self.branch(mnemonic, rest).map(Instr::Branch);
        }
        let mut alu = Alu::NOP;
        let mut parts = text.split(';');
        alu.add = self.part(parts.next().unwrap_or(""), Unit::Add)?;
        if let Some(mul) = parts.next() {
            alu.mul = self.part(mul, Unit::Mul)?;
        }
        for signal in parts {
            self.signal(signal.trim(), &mut alu)?;
        }
        Ok(Instr::Alu(alu))
    }

    fn signal(&self, text: &str, alu: &mut Alu) -> Parsed<()> {
        let (name, address) = match text.split_once('.') {
            Some((name, address)) => (name, Some(address)),
            None => (text, None),
        };
        if name == "rotate" {
            let Some(count) = address else {
                return self.fail(text, "`rotate` needs a count: rotate.1, rotate.r5");
            };
            let code = match count.parse::<i32>() {
                _ if count == "r5" => 0,
                Ok(n @ -16..=-1) => n + 32,
                Ok(n @ 0..=63) => n,
                _ => return self.fail(count, format!("`{count}` is no rotation count")),
            };
            if alu.rotate.replace(code as u8).is_some() {
                return self.fail(text, "second rotate");
            }
            return Ok(());
        }
        let Some(&(signal, _)) = Signals::NAMES.iter().find(|(_, known)| *known == name) else {
            return self.fail(text, format!("unknown signal `{name}`"));
        };
        if alu.signals.has(signal) {
            return self.fail(text, format!("`{name}` stands twice"));
        }
        alu.signals = alu.signals | signal;
        match (signal.has(Signals::ADDRESSED), address) {
            (false, None) => {}
            (false, Some(address)) => return self.fail(address, format!("`{name}` writes no address")),
            (true, None) => return self.fail(text, format!("`{name}` needs an address: {name}.rf0")),
            (true, Some(address)) => {
                if alu.sig_dest.replace(self.dest(address, address)?).is_some() {
                    return self.fail(text, "two signals that write an address");
                }
            }
        }
        Ok(())
    }

    /// A destination name without modifier.
    fn dest(&self, name: &str, whole: &str) -> Parsed<Dest> {
        if let Some(row) = row(name) {
            return Ok(Dest::Row(row));
        }
        if let Some(n) = magic::from_name(self.version, name) {
            return Ok(Dest::Magic(n));
        }
        match number_after(name, "magic").filter(|&n| n < 64) {
            Some(n) => Ok(Dest::Magic(n)),
            None => self.fail(whole, format!("`{name}` is no destination of {}", self.version.name())),
        }
    }

    fn part(&self, text: &str, unit: Unit) -> Parsed<Part> {
        let text = text.trim();
        let (mnemonic, rest) = split_word(text);
        let mut names = mnemonic.split('.');
        let name = names.next().unwrap_or("");
        let which = if unit == Unit::Add { "ADD" } else { "MUL" };
        let Some(op) = Op::from_name(name) else {
            return self.fail(text, format!("unknown operation `{name}`"));
        };
        if !available(self.version, unit, op) {
            return self.fail(text, format!("{} has no `{name}` in the {which} part", self.version.name()));
        }
        let mut part = Part { op, ..Part::NOP };
        for suffix in names {
            if let Some(&cond) = Cond::ALL.iter().find(|c| c.name() == suffix) {
                if part.cond.replace(cond).is_some() {
                    return self.fail(suffix, "second condition");
                }
            } else if let Some(&push) = Push::ALL.iter().find(|p| p.name() == suffix) {
                if part.push.replace(push).is_some() {
                    return self.fail(suffix, "second push");
                }
            } else if let Some(&update) = Update::ALL.iter().find(|u| u.name() == suffix) {
                if part.update.replace(update).is_some() {
                    return self.fail(suffix, "second update");
                }
            } else {
                return self.fail(suffix, format!("unknown condition or flag operation `.{suffix}`"));
            }
        }
        let wanted = usize::from(op.has_dest()) + op.sources();
        let mut operands = rest.split(',').map(str::trim);
        if rest.is_empty() {
            operands.next();
        }
        let mut count = 0;
        for operand in operands {
            if count == wanted {
                return self.fail(operand, format!("`{name}` takes {wanted} operands"));
            }
            if count == 0 && op.has_dest() {
                self.result(operand, &mut part)?;
            } else {
                let i = count - usize::from(op.has_dest());
                (part.src[i], part.unpack[i]) = self.source(operand)?;
            }
            count += 1;
        }
        if count < wanted {
            return self.fail(text, format!("`{name}` takes {wanted} operands, not {count}"));
        }
        Ok(part)
    }

    fn result(&self, text: &str, part: &mut Part) -> Parsed<()> {
        let (name, modifier) = split_modifier(text);
        part.dest = self.dest(name, text)?;
        part.pack = match modifier {
            None => Pack::None,
            Some("l") => Pack::L,
            Some("h") => Pack::H,
            Some(other) => return self.fail(other, format!("unknown pack `.{other}`")),
        };
        Ok(())
    }

    fn source(&self, text: &str) -> Parsed<(Source, Unpack)> {
        let (name, modifier) = split_modifier(text);
        let source = if let Some(row) = row(name) {
            Source::Row(row)
        } else if let Some(n) = number_after(name, "r").filter(|&n| n < 6 && self.version == Version::V42) {
            Source::Acc(n)
        } else if let Some(value) = integer(name) {
            match small_code(value) {
                Some(code) => Source::Small(code),
                None => return self.fail(text, format!("`{name}` is not among the small immediates")),
            }
        } else {
            return self.fail(text, format!("`{name}` is no source of {}", self.version.name()));
        };
        let unpack = match modifier {
            None => Unpack::None,
            Some(modifier) => match UNPACKS.iter().find(|u| u.name() == modifier) {
                Some(&unpack) => unpack,
                None => return self.fail(modifier, format!("unknown unpack `.{modifier}`")),
            },
        };
        Ok((source, unpack))
    }

    fn branch(&self, mnemonic: &str, rest: &str) -> Parsed<Branch> {
        let (letters, cond) = match mnemonic.split_once('.') {
            Some((letters, cond)) => (letters, Some(cond)),
            None => (mnemonic, None),
        };
        let mut letters = letters.strip_prefix('b').unwrap_or(letters);
        let moves = letters.strip_prefix('u').inspect(|r| letters = r).is_some();
        let link = letters.strip_prefix('l').inspect(|r| letters = r).is_some();
        // p and q are glued to the condition, or to the mnemonic without one. No condition ends in p or q.
        let mut tail = cond.unwrap_or(letters);
        let mut msfign = MsfIgnore::None;
        if let Some(rest) = tail.strip_suffix('p') {
            (tail, msfign) = (rest, MsfIgnore::Lanes);
        } else if let Some(rest) = tail.strip_suffix('q') {
            (tail, msfign) = (rest, MsfIgnore::Quads);
        }
        let cond = match cond {
            None => BranchCond::Always,
            Some(_) => match BranchCond::ALL.iter().find(|c| c.name() == tail && !tail.is_empty()) {
                Some(&cond) => cond,
                None => return self.fail(mnemonic, format!("unknown branch condition `.{tail}`")),
            },
        };
        let mut operands = rest.split(',').map(str::trim);
        let target = operands.next().unwrap_or("");
        let target = self.target(mnemonic, target)?;
        let uniforms = match operands.next() {
            None if moves => return self.fail(mnemonic, "`bu` needs to say how: `, r:unif`"),
            None => None,
            Some(how) if !moves => return self.fail(how, "only `bu` moves the uniform pointer"),
            Some("a:unif") => Some(UniformMove::Absolute),
            Some("r:unif") => Some(UniformMove::Relative),
            Some("lri") => Some(UniformMove::Link),
            Some(how) => match (row(how), number_after(how, "unif")) {
                (Some(row), _) => Some(UniformMove::Row(row)),
                (_, Some(code @ 4..=7)) => Some(UniformMove::Reserved(code)),
                _ => return self.fail(how, format!("`{how}` is no way to move the uniform pointer")),
            },
        };
        if let Some(more) = operands.next() {
            return self.fail(more, "too many operands of a branch");
        }
        Ok(Branch { cond, msfign, target, uniforms, link })
    }

    fn target(&self, mnemonic: &str, text: &str) -> Parsed<BranchTarget> {
        if text.is_empty() {
            return self.fail(mnemonic, "a branch needs a target");
        }
        if let Some(address) = text.strip_prefix("zero_addr+") {
            return match integer(address) {
                Some(address) if address % 8 == 0 => Ok(BranchTarget::Absolute(address)),
                _ => self.fail(address, format!("`{address}` is no instruction address")),
            };
        }
        if text == "lri" {
            return Ok(BranchTarget::Link);
        }
        if let Some(row) = row(text) {
            return Ok(BranchTarget::Row(row));
        }
        if let Some(offset) = integer(text) {
            return match offset % 8 {
                0 => Ok(BranchTarget::Relative(offset as i32)),
                _ => self.fail(text, "branch offsets are multiples of 8"),
            };
        }
        let Some((from, to)) = (self.labels)(text) else {
            return self.fail(text, format!("unknown label or branch target `{text}`"));
        };
        // Relative to the instruction behind the three delay slots.
        let offset = (to as i64 - (from + 1 + Branch::DELAY_SLOTS) as i64) * 8;
        match i32::try_from(offset) {
            Ok(offset) => Ok(BranchTarget::Relative(offset)),
            Err(_) => self.fail(text, format!("`{text}` is too far away")),
        }
    }
}

const UNPACKS: [Unpack; 15] = [
    Unpack::Abs,
    Unpack::L,
    Unpack::H,
    Unpack::Sat,
    Unpack::Nsat,
    Unpack::Max0,
    Unpack::Unknown7,
    Unpack::Ff,
    Unpack::Ll,
    Unpack::Hh,
    Unpack::Swp,
    Unpack::Ul,
    Unpack::Uh,
    Unpack::Il,
    Unpack::Ih,
];

/// `b`, `bu`, `bl`, `bul`, with p or q, or with a condition behind a dot. (No operation begins like that and goes on
/// with a dot: `bcastf` has more letters.)
fn is_branch(mnemonic: &str) -> bool {
    let letters = mnemonic.split('.').next().unwrap_or("");
    letters.strip_prefix('b').is_some_and(|rest| {
        let rest = rest.strip_prefix('u').unwrap_or(rest);
        let rest = rest.strip_prefix('l').unwrap_or(rest);
        matches!(rest, "" | "p" | "q")
    })
}

fn split_word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

fn split_modifier(text: &str) -> (&str, Option<&str>) {
    match text.split_once('.') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (text, None),
    }
}

/// A small decimal number behind a prefix, without sign or leading zeros.
fn number_after(text: &str, prefix: &str) -> Option<u8> {
    let digits = text.strip_prefix(prefix)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok())?
}

fn row(text: &str) -> Option<u8> {
    number_after(text, "rf").filter(|&n| n < 64)
}

/// A decimal number with sign or a hexadecimal pattern, as 32 bits.
fn integer(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse::<i32>().ok().map(|n| n as u32),
    }
}

#[cfg(test)]
#[path = "asm_tests.rs"]
mod tests;
