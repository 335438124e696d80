//! Instructions as text, both ways.
//!
//! The text is that of the public disassembler: the mnemonic in 16 columns, a space, operands and numbers in the order of
//! the table with commas between them, what is empty left out. Our own text differs where that one does not say everything
//! (*quirks*): operations that it never gets to have names, an immediate shows that it is signed, `.long` and `.short` ask for
//! the form that is not the usual one.
//!
//! [`assemble`] also knows labels (`name:`, then `jmp_exec_any name`) and comments (`;` to the end of the line).
//!
//! Facts: reference sections 2 and 16.

use crate::decode::{DecodeError, decode, decode_public, width};
use crate::encode::encode;
use crate::instr::{Form, Hint, Instr, MOV_TABLE, NOT_TABLE, Number, Operand, Place, Role, Size};
use crate::ops::{ALL, Op};
use crate::tables::{Item, Kind, NumberField, Style, special_name};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bit operations with a name, by truth table.
const BIT_OPERATIONS: [(u32, &str); 6] =
    [(8, "and"), (14, "or"), (6, "xor"), (7, "nand"), (1, "nor"), (9, "xnor")];

/// Names of the two tables that give the first source although they look as if they did not.
const MOV_A: (&str, [u32; 2]) = ("bitop_mov_a", [12, 3]);

/// Text of the instruction at the start of `bytes`, and how long it is. With `quirks` exactly that of the public disassembler.
pub fn disassemble(bytes: &[u8], quirks: bool) -> Result<(String, usize), DecodeError> {
    let decoded = if quirks { decode_public(bytes)? } else { decode(bytes)? };
    Ok((text(&decoded.instr, quirks), decoded.length))
}

/// Text of an instruction.
pub fn text(instr: &Instr, quirks: bool) -> String {
    let info = instr.op.info();
    let mut parts: Vec<String> = Vec::new();
    let mut name = if quirks { info.public } else { info.name }.to_owned();
    let table = instr.get(Number::Table);
    let zero = |role| instr.operand(role) == Operand::float(0);
    let copies = instr.operand(Role::B) == Operand::imm(0);
    let mut left_out: &[Role] = &[];
    let mut no_number: &[Number] = &[];
    if instr.op == Op::Bitop {
        let named = BIT_OPERATIONS.iter().find(|b| b.0 == table);
        if let Some(&(_, named)) = named {
            name = named.to_owned();
            no_number = &[Number::Table];
        } else if copies && (table == MOV_TABLE || table == NOT_TABLE) {
            name = if table == MOV_TABLE { "mov" } else { "not" }.to_owned();
            (left_out, no_number) = (&[Role::B], &[Number::Table]);
        } else if MOV_A.1.contains(&table) {
            name = MOV_A.0.to_owned();
        }
    } else if instr.op == Op::IfFcmp && instr.get(Number::Condition) == 0 && zero(Role::A) && zero(Role::B) {
        let update = instr.get(Number::Nest) == 0;
        name = if update { "update_exec" } else { "push_exec" }.to_owned();
        left_out = &[Role::A, Role::B];
        no_number = if update { &[Number::Condition, Number::Nest] } else { &[Number::Condition] };
    }
    for item in info.items {
        let part = match item {
            Item::Operand(field) if left_out.contains(&field.role) => continue,
            Item::Number(field) if no_number.contains(&field.number) => continue,
            Item::Operand(field) => operand_text(field.kind, &instr.operand(field.role), quirks),
            Item::Number(field) => number_text(field, instr.get(field.number)),
        };
        if !part.is_empty() {
            parts.push(part);
        }
    }
    if instr.get(Number::Saturate) != 0 {
        name.push_str(".sat");
    }
    match instr.form {
        Form::Long if !quirks => name.push_str(".long"),
        Form::Short if !quirks => name.push_str(".short"),
        _ => {}
    }
    let line = format!("{name:16} {}", parts.join(", "));
    if quirks { line } else { line.trim_end().to_owned() }
}

/// The double that an 8-bit float stands for.
pub fn float_value(bits: u8) -> f64 {
    let mantissa = f64::from(bits & 15);
    let value = match bits >> 4 & 7 {
        0 => mantissa / 64.0,
        exponent => (16.0 + mantissa) * f64::from(i32::from(exponent) - 7).exp2(),
    };
    if bits & 0x80 != 0 { -value } else { value }
}

/// The 8-bit float with exactly this value.
pub fn float_bits(value: f64) -> Option<u8> {
    (0..=255).find(|&bits| float_value(bits).to_bits() == value.to_bits())
}

fn half_name(out: &mut String, file: char, half: u16) {
    let _ = write!(out, "{file}{}{}", half / 2, if half & 1 == 0 { 'l' } else { 'h' });
}

fn tuple(file: char, half: u16, size: Size, count: u8) -> String {
    let mut out = String::new();
    let (size, count) = if size == Size::B64 { (Size::B32, 2 * count) } else { (size, count) };
    for i in 0..u16::from(count) {
        if i != 0 {
            out.push('_');
        }
        match size {
            Size::B16 => half_name(&mut out, file, half + i),
            _ => {
                let _ = write!(out, "{file}{}", half / 2 + i);
            }
        }
    }
    out
}

fn operand_text(kind: Kind, operand: &Operand, quirks: bool) -> String {
    let mut out = match operand.place {
        Place::None if matches!(kind, Kind::AtomicResult | Kind::LocalResult | Kind::Heap) => {
            "None".to_owned()
        }
        Place::None => return String::new(),
        // The offsets behind a comparison value are a half.
        Place::Reg { half, count: 2, .. } if kind == Kind::CompareOffset => {
            format!("r{}_r{}l", half / 2, half / 2 + 1)
        }
        Place::Reg { half, size, count } => tuple('r', half, size, count),
        Place::Uniform { half, size, count } => tuple('u', half, size, count),
        Place::Imm(value) => value.to_string(),
        Place::Float(bits) => format!("{:?}", float_value(bits)),
        Place::Texture(n) => format!("ts{n}"),
        Place::Sampler(n) => format!("ss{n}"),
        Place::Coefficient(n) => format!("cf{n}"),
    };
    match operand.hint {
        Hint::None => {}
        Hint::Cache => out.push_str(".cache"),
        Hint::Discard => out.push_str(".discard"),
    }
    let is_imm = matches!(operand.place, Place::Imm(_));
    let modifiers =
        [(operand.abs, ".abs"), (operand.neg, ".neg"), (operand.signed && !(quirks && is_imm), ".sx")];
    for (_, name) in modifiers.into_iter().filter(|m| m.0) {
        out.push_str(name);
    }
    out
}

fn number_text(field: &NumberField, value: u32) -> String {
    match field.style {
        Style::Hidden => String::new(),
        Style::Dec => value.to_string(),
        Style::Bin => format!("0b{value:0width$b}", width = width(field.bits) as usize),
        Style::Name(names) => {
            names.iter().find(|n| n.0 == value).map_or_else(|| value.to_string(), |n| n.1.to_owned())
        }
        Style::Lsl if value == 0 => String::new(),
        Style::Lsl => format!("lsl {value}"),
        Style::MaskWidth if value == 0 => String::new(),
        Style::MaskWidth => format!("mask {:#X}", (1u64 << value) - 1).replace("0X", "0x"),
        Style::Signed => (value as i32).to_string(),
        Style::Target => format!("pc{:+}", value as i32),
        Style::TruthTable => (0..4).map(|i| if value >> i & 1 != 0 { '1' } else { '0' }).collect(),
        Style::Special => match special_name(value) {
            Some(name) => format!("sr{value} ({name})"),
            None => format!("sr{value}"),
        },
    }
}

/// The bytes of a text, one instruction a line. The error names the line.
pub fn assemble(text: &str) -> Result<Vec<u8>, String> {
    let mut instrs = Vec::new();
    let mut labels = BTreeMap::new();
    let mut at = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if let Some(label) = line.strip_suffix(':') {
            if labels.insert(label.trim(), at).is_some() {
                return Err(format!("line {}: label `{label}` is there twice", number + 1));
            }
        } else if !line.is_empty() {
            let (instr, label) = line_instr(line).map_err(|e| format!("line {}: {e}", number + 1))?;
            let length = encode(&instr).map_err(|e| format!("line {}: {e}", number + 1))?.len();
            instrs.push((number, at, instr, label));
            at += length;
        }
    }
    let mut code = Vec::with_capacity(at);
    for (number, at, mut instr, label) in instrs {
        if let Some(label) = label {
            let Some(target) = labels.get(label) else {
                return Err(format!("line {}: no label `{label}`", number + 1));
            };
            instr.put_number(Number::Target, (*target as i64 - at as i64) as u32);
        }
        code.extend_from_slice(&encode(&instr).map_err(|e| format!("line {}: {e}", number + 1))?);
    }
    Ok(code)
}

/// The instruction of a line.
pub fn parse(line: &str) -> Result<Instr, String> {
    match line_instr(line.trim())? {
        (instr, None) => Ok(instr),
        (_, Some(label)) => Err(format!("no label `{label}`")),
    }
}

/// The instruction of a line, and the label that it jumps to if it names one.
fn line_instr(line: &str) -> Result<(Instr, Option<&str>), String> {
    let (mnemonic, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (name, form) = match (mnemonic.strip_suffix(".long"), mnemonic.strip_suffix(".short")) {
        (Some(name), _) => (name, Form::Long),
        (_, Some(name)) => (name, Form::Short),
        _ => (mnemonic, Form::Usual),
    };
    let mut tokens: Vec<&str> = rest.split(',').map(str::trim).filter(|t| !t.is_empty()).collect();
    let mut fixed: Option<(Op, &str)> = None;
    if let Some(&(table, _)) = BIT_OPERATIONS.iter().find(|b| b.1 == name) {
        tokens.insert(0, TABLE_TEXT[table as usize]);
        fixed = Some((Op::Bitop, ""));
    } else if name == "mov" || name == "not" {
        tokens.insert(0, TABLE_TEXT[if name == "mov" { MOV_TABLE } else { NOT_TABLE } as usize]);
        tokens.push("0");
        fixed = Some((Op::Bitop, ""));
    } else if name == MOV_A.0 {
        fixed = Some((Op::Bitop, ""));
    } else if name == "push_exec" || name == "update_exec" {
        let at = tokens.len().min(1);
        tokens.splice(at..at, ["eq", "0.0", "0.0"]);
        if name == "update_exec" {
            tokens.push("0");
        }
        fixed = Some((Op::IfFcmp, ""));
    }
    let candidates: Vec<(Op, &str)> = match fixed {
        Some(op) => vec![op],
        None => ALL.iter().filter_map(|&op| Some((op, matching(op, name)?))).collect(),
    };
    let mut error = format!("no instruction `{mnemonic}`");
    for (op, suffix) in candidates {
        match operands(op, suffix == ".sat", &tokens) {
            Ok((mut instr, label)) => {
                instr.form = form;
                match encode(&instr) {
                    Ok(_) => return Ok((instr, label)),
                    Err(e) => error = e.to_string(),
                }
            }
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// Truth tables as they are written.
const TABLE_TEXT: [&str; 16] = [
    "0000", "1000", "0100", "1100", "0010", "1010", "0110", "1110", "0001", "1001", "0101", "1101", "0011",
    "1011", "0111", "1111",
];

/// What stands behind the name of an operation, if the mnemonic is one of its own.
fn matching(op: Op, mnemonic: &str) -> Option<&str> {
    let info = op.info();
    let suffix = mnemonic.strip_prefix(info.name).or_else(|| mnemonic.strip_prefix(info.public));
    suffix.filter(|&s| {
        s.is_empty() || s == ".sat" && info.numbers().any(|field| field.number == Number::Saturate)
    })
}

fn operands<'a>(op: Op, saturate: bool, tokens: &[&'a str]) -> Result<(Instr, Option<&'a str>), String> {
    let mut instr = Instr::new(op);
    if saturate {
        instr.put_number(Number::Saturate, 1);
    }
    let mut label = None;
    let mut tokens = tokens.iter().copied().peekable();
    for item in op.info().items {
        let token = tokens.peek().copied();
        match item {
            Item::Number(field) if matches!(field.style, Style::Hidden) => {}
            Item::Number(field) => match token.and_then(|t| number(field, t)) {
                Some(value) => {
                    instr.put_number(field.number, value);
                    tokens.next();
                }
                None if matches!(field.style, Style::Target) && token.is_some_and(is_label) => {
                    label = tokens.next();
                }
                None if number_text(field, 0).is_empty() => instr.put_number(field.number, 0),
                None => return Err(wrong(op, token, &format!("{:?}", field.number))),
            },
            Item::Operand(field) => match token.and_then(|t| operand(field.kind, t)) {
                Some(operand) => {
                    instr.put(field.role, operand);
                    tokens.next();
                }
                None if matches!(field.kind, Kind::IterSample | Kind::CompareOffset) => {}
                None => return Err(wrong(op, token, &format!("{:?}", field.role))),
            },
        }
    }
    if let Some(token) = tokens.next() {
        return Err(format!("`{}`: `{token}` is too much", op.info().name));
    }
    // Two ways to interpolate at a sample have one name; where the number stands tells them apart.
    if instr.has(Number::Interpolation)
        && instr.get(Number::Interpolation) == 1
        && instr.operand(Role::Sample).as_reg().is_some()
    {
        instr.put_number(Number::Interpolation, 3);
    }
    // The same with levels of detail in a uniform (1, 2) and in a register (5, 6).
    let mode = instr.get(Number::LodMode);
    if matches!(mode, 1 | 2) && instr.operand(Role::Lod).as_reg().is_some() {
        instr.put_number(Number::LodMode, mode | 4);
    }
    Ok((instr, label))
}

fn wrong(op: Op, token: Option<&str>, what: &str) -> String {
    match token {
        Some(token) => format!("`{}`: `{token}` is no {what}", op.info().name),
        None => format!("`{}`: no {what}", op.info().name),
    }
}

fn is_label(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn number(field: &NumberField, token: &str) -> Option<u32> {
    match field.style {
        Style::Hidden => None,
        Style::Dec => token.parse().ok(),
        Style::Bin => u32::from_str_radix(token.strip_prefix("0b")?, 2).ok(),
        Style::Name(names) => match names.iter().find(|n| n.1 == token) {
            Some(&(value, _)) => Some(value),
            // A value that has a name is not written in digits.
            None => token.parse().ok().filter(|value| names.iter().all(|n| n.0 != *value)),
        },
        Style::Lsl => token.strip_prefix("lsl ")?.parse().ok(),
        Style::MaskWidth => {
            let mask = u32::from_str_radix(token.strip_prefix("mask 0x")?, 16).ok()?;
            (mask & mask.wrapping_add(1) == 0).then_some(mask.count_ones())
        }
        Style::Signed => token.parse::<i32>().ok().map(|v| v as u32),
        Style::Target => token.strip_prefix("pc")?.parse::<i32>().ok().map(|v| v as u32),
        Style::TruthTable => TABLE_TEXT.iter().position(|t| *t == token).map(|t| t as u32),
        Style::Special => token.strip_prefix("sr")?.split(' ').next()?.parse().ok(),
    }
}

/// One name of a register or uniform: its half and width.
fn name(token: &str, file: char) -> Option<(u16, Size)> {
    let digits = token.strip_prefix(file)?;
    let number = |digits: &str| {
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|&n| plain && n < 0x4000)
    };
    match (digits.strip_suffix('l'), digits.strip_suffix('h')) {
        (Some(digits), _) => Some((2 * number(digits)?, Size::B16)),
        (_, Some(digits)) => Some((2 * number(digits)? + 1, Size::B16)),
        _ => Some((2 * number(digits)?, Size::B32)),
    }
}

fn operand(kind: Kind, token: &str) -> Option<Operand> {
    let mut rest = token;
    let (mut abs, mut neg, mut signed, mut hint) = (false, false, false, Hint::None);
    // Suffixes from the last one on, each at most once and in this order.
    for (suffix, place) in [(".sx", &mut signed), (".neg", &mut neg), (".abs", &mut abs)] {
        if let Some(stripped) = rest.strip_suffix(suffix) {
            (rest, *place) = (stripped, true);
        }
    }
    for (suffix, value) in [(".discard", Hint::Discard), (".cache", Hint::Cache)] {
        if let (Hint::None, Some(stripped)) = (hint, rest.strip_suffix(suffix)) {
            (rest, hint) = (stripped, value);
        }
    }
    Some(Operand { place: place(kind, rest)?, hint, abs, neg, signed })
}

fn place(kind: Kind, token: &str) -> Option<Place> {
    let byte = |prefix: &str| token.strip_prefix(prefix).and_then(|n| n.parse::<u8>().ok());
    if token == "None" {
        return Some(Place::None);
    }
    if let Some(n) = byte("ts") {
        return Some(Place::Texture(n));
    }
    if let Some(n) = byte("ss") {
        return Some(Place::Sampler(n));
    }
    if let Some(n) = byte("cf") {
        return Some(Place::Coefficient(n));
    }
    let file = if token.starts_with('u') { 'u' } else { 'r' };
    if token.starts_with(file) {
        let mut names = token.split('_');
        let (half, mut size) = name(names.next()?, file)?;
        let mut count = 1u8;
        for next in names {
            let expected = half + size.halves() * u16::from(count);
            let (half, found) = name(next, file)?;
            let offsets = kind == Kind::CompareOffset && size == Size::B32 && found == Size::B16;
            if half != expected || found != size && !offsets || count == 12 {
                return None;
            }
            count += 1;
        }
        let wide = matches!(
            kind,
            Kind::Dst64
                | Kind::Src64
                | Kind::UniformPair
                | Kind::MemBase
                | Kind::AsyncPair
                | Kind::Heap
                | Kind::AtomicSource
        );
        if wide && size == Size::B32 && count == 2 {
            (size, count) = (Size::B64, 1);
        }
        return Some(match file {
            'u' => Place::Uniform { half, size, count },
            _ => Place::Reg { half, size, count },
        });
    }
    match kind {
        Kind::Float | Kind::Float16 | Kind::FloatPair => {
            let value = token.contains('.').then(|| token.parse::<f64>().ok())??;
            float_bits(value).map(Place::Float)
        }
        _ => token.parse().ok().map(Place::Imm),
    }
}

#[cfg(test)]
#[path = "asm_tests.rs"]
mod tests;
