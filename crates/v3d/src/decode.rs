//! Instruction words to [`Instr`].
//!
//! Every word that the tables give a meaning decodes; rules about the use of instructions are left to the validator.
//! Fields that carry nothing are dropped (see [`crate::instr`]).
//!
//! Facts: reference sections 4.1, 4.2, 6.1, 7.1, 10.

use crate::instr::{
    Alu, Branch, BranchCond, BranchTarget, Cond, Dest, Instr, MsfIgnore, Op, Part, Push, Source, UniformMove,
    Unpack, Update, Version,
};
use crate::tables::{self, Extra, Field, Form, Unit};

/// Why a word is not an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// No MUL opcode and not a branch either.
    NotAnInstruction,
    /// The signal code is reserved (rules 1, 12).
    Signal(u8),
    /// The condition field holds 0x10 (rule 3).
    Condition,
    /// The ADD opcode with its selectors is not assigned (rule 12).
    AddOp(u8),
    /// The MUL opcode with its selectors is not assigned (rule 12).
    MulOp(u8),
    /// A source reads a small immediate code above 47 (rule 8).
    SmallImmediate(u8),
    /// A branch with msfign 3.
    Msfign,
}

impl DecodeError {
    /// The rule of the reference that the word breaks.
    pub fn rule(self) -> Option<&'static str> {
        match self {
            DecodeError::NotAnInstruction | DecodeError::Msfign => None,
            DecodeError::Signal(_) => Some("1"),
            DecodeError::Condition => Some("3"),
            DecodeError::AddOp(_) | DecodeError::MulOp(_) => Some("12"),
            DecodeError::SmallImmediate(_) => Some("8"),
        }
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::NotAnInstruction => f.write_str("neither an ALU nor a branch word"),
            DecodeError::Signal(code) => write!(f, "reserved signal code {code}"),
            DecodeError::Condition => f.write_str("invalid condition field 0x10"),
            DecodeError::AddOp(code) => write!(f, "unassigned ADD operation (opcode {code})"),
            DecodeError::MulOp(code) => write!(f, "unassigned MUL operation (opcode {code})"),
            DecodeError::SmallImmediate(code) => write!(f, "invalid small immediate code {code}"),
            DecodeError::Msfign => f.write_str("invalid msfign 3 in a branch"),
        }?;
        match self.rule() {
            Some(rule) => write!(f, " (rule {rule})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Decodes one word.
#[inline]
pub fn decode(version: Version, word: u64) -> Result<Instr, DecodeError> {
    if word >> 58 != 0 {
        alu(version, word).map(Instr::Alu)
    } else if word >> 56 & 3 == 2 {
        branch(word).map(Instr::Branch)
    } else {
        Err(DecodeError::NotAnInstruction)
    }
}

/// Bits `lsb` to `lsb + width - 1`.
#[inline(always)]
fn bits(word: u64, lsb: u32, width: u32) -> u8 {
    (word >> lsb) as u8 & ((1u16 << width) - 1) as u8
}

fn branch(word: u64) -> Result<Branch, DecodeError> {
    let address = (word >> 35) as u32 & 0x1f_ffff;
    let address = u32::from(bits(word, 24, 8)) << 24 | address << 3;
    let row = bits(word, 6, 6);
    let target = match bits(word, 12, 2) {
        0 => BranchTarget::Absolute(address),
        1 => BranchTarget::Relative(address as i32),
        2 => BranchTarget::Link,
        _ => BranchTarget::Row(row),
    };
    // With ub = 0 the chips ignore bdu (section 4.3).
    let uniforms = (bits(word, 14, 1) != 0).then(|| match bits(word, 15, 3) {
        0 => UniformMove::Absolute,
        1 => UniformMove::Relative,
        2 => UniformMove::Link,
        3 => UniformMove::Row(row),
        code => UniformMove::Reserved(code),
    });
    let msfign = match bits(word, 21, 2) {
        0 => MsfIgnore::None,
        1 => MsfIgnore::Lanes,
        2 => MsfIgnore::Quads,
        _ => return Err(DecodeError::Msfign),
    };
    let cond = BranchCond::ALL[usize::from(bits(word, 32, 3))];
    Ok(Branch { cond, msfign, target, uniforms, link: bits(word, 23, 1) != 0 })
}

/// The source fields of one part: address or selector of a and b.
#[derive(Clone, Copy)]
struct Fields {
    /// Selector of the key.
    selector: u8,
    a: Source,
    b: Source,
    /// Lower part of the order keys (section 6.1), unpack code excluded.
    rank_a: u16,
    rank_b: u16,
}

fn alu(version: Version, word: u64) -> Result<Alu, DecodeError> {
    let code = bits(word, 53, 5);
    let signal = tables::signal_code(version, code);
    if signal.field == Field::Reserved {
        return Err(DecodeError::Signal(code));
    }
    let (add, mul) = match version {
        Version::V42 => fields42(word, signal.field),
        Version::V71 => fields71(word, signal.field),
    };
    let ma = bits(word, 44, 1) != 0;
    let opcode = bits(word, 24, 8);
    let add_part =
        part(version, Unit::Add, opcode, add, ma, bits(word, 32, 6))?.ok_or(DecodeError::AddOp(opcode))?;
    let opcode = bits(word, 58, 6);
    let mm = bits(word, 45, 1) != 0;
    let mul_part =
        part(version, Unit::Mul, opcode, mul, mm, bits(word, 38, 6))?.ok_or(DecodeError::MulOp(opcode))?;
    let mut alu = Alu { add: add_part, mul: mul_part, signals: signal.set, sig_dest: None, rotate: None };
    if signal.field == Field::Rotate {
        alu.rotate = Some(bits(word, 0, 6));
    }
    if signal.set.has(crate::instr::Signals::ADDRESSED) {
        alu.sig_dest = Some(dest(bits(word, 52, 1) != 0, bits(word, 46, 6)));
    } else {
        conditions(&mut alu, bits(word, 46, 7))?;
    }
    Ok(alu)
}

#[inline]
fn dest(magic: bool, address: u8) -> Dest {
    if magic { Dest::Magic(address) } else { Dest::Row(address) }
}

#[inline]
fn fields42(word: u64, field: Field) -> (Fields, Fields) {
    let row_a = bits(word, 6, 6);
    let raw_b = bits(word, 0, 6);
    let port_b = if let Field::Small(_) = field { Source::Small(raw_b) } else { Source::Row(raw_b) };
    let source = |selector: u8| match selector {
        6 => Source::Row(row_a),
        7 => port_b,
        _ => Source::Acc(selector),
    };
    let fields = |selector: u8| {
        let (a, b) = (selector & 7, selector >> 3);
        Fields { selector, a: source(a), b: source(b), rank_a: a.into(), rank_b: b.into() }
    };
    (fields(bits(word, 12, 6)), fields(bits(word, 18, 6)))
}

#[inline]
fn fields71(word: u64, field: Field) -> (Fields, Fields) {
    let small = if let Field::Small(n) = field { n } else { 4 };
    let source = |raw: u8, n: u8| {
        if n == small {
            (Source::Small(raw), 256 + u16::from(raw))
        } else {
            (Source::Row(raw), u16::from(raw))
        }
    };
    let fields = |raw_a: u8, raw_b: u8, n: u8| {
        let (a, rank_a) = source(raw_a, n);
        let (b, rank_b) = source(raw_b, n + 1);
        Fields { selector: raw_b, a, b, rank_a, rank_b }
    };
    (fields(bits(word, 6, 6), bits(word, 0, 6), 0), fields(bits(word, 18, 6), bits(word, 12, 6), 2))
}

/// The order key of a source (section 6.1).
#[inline]
pub(crate) fn order_key(version: Version, unpack: Unpack, rank: u16) -> u16 {
    let code = tables::f32_code(unpack).unwrap_or(0);
    rank + match version {
        Version::V42 => code * 8,
        Version::V71 => code * 64,
    }
}

/// One part; `Ok(None)` when the opcode with its selectors has no meaning.
#[inline]
fn part(
    version: Version,
    unit: Unit,
    opcode: u8,
    fields: Fields,
    magic: bool,
    address: u8,
) -> Result<Option<Part>, DecodeError> {
    let key = u16::from(opcode) << 6 | u16::from(fields.selector);
    let holds = |form: &Form| match form.extra {
        Extra::Always => true,
        Extra::Ma(wanted) => magic == wanted,
        Extra::Waddr(wanted) => address == wanted,
        Extra::Ordered | Extra::Swapped => {
            let (_, a, b) = form.modifiers(key);
            let ordered = order_key(version, a, fields.rank_a) <= order_key(version, b, fields.rank_b);
            ordered == (form.extra == Extra::Ordered)
        }
    };
    let Some(form) = tables::unit(version, unit).lookup(key).iter().find(|form| holds(form)) else {
        return Ok(None);
    };
    let (pack, unpack_a, unpack_b) = form.modifiers(key);
    let op: Op = form.op;
    let mut part = Part { op, pack, unpack: [unpack_a, unpack_b], ..Part::NOP };
    if op.has_dest() {
        // The in/out bit of ldvpm sits where the magic bit is; those results always go to a row.
        part.dest = dest(magic && !matches!(form.extra, Extra::Ma(_)), address);
    }
    let sources = op.sources();
    if sources > 0 {
        part.src[0] = checked(fields.a)?;
    }
    if sources > 1 {
        part.src[1] = checked(fields.b)?;
    }
    Ok(Some(part))
}

#[inline]
fn checked(source: Source) -> Result<Source, DecodeError> {
    match source {
        Source::Small(code) if code > 47 => Err(DecodeError::SmallImmediate(code)),
        _ => Ok(source),
    }
}

/// Splits the condition field (section 7.1).
#[inline]
fn conditions(alu: &mut Alu, field: u8) -> Result<(), DecodeError> {
    let cond = |code: u8| Some(Cond::ALL[usize::from(code & 3)]);
    let push = |code: u8| match code & 3 {
        0 => None,
        code => Some(Push::ALL[usize::from(code) - 1]),
    };
    let update = |code: u8| Update::ALL.get(usize::from(code & 15).wrapping_sub(4)).copied();
    let low = field & 15;
    match field >> 4 {
        0 if low < 4 => alu.add.push = push(low),
        0 => alu.add.update = update(low),
        1 if low == 0 => return Err(DecodeError::Condition),
        1 if low < 4 => alu.mul.push = push(low),
        1 => alu.mul.update = update(low),
        2 => {
            alu.add.cond = cond(low >> 2);
            alu.mul.push = push(low);
        }
        3 => {
            alu.mul.cond = cond(low >> 2);
            alu.add.push = push(low);
        }
        high => {
            alu.mul.cond = cond(high);
            if low < 4 {
                alu.add.cond = cond(low);
            } else {
                alu.add.update = update(low);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
pub(crate) mod tests;
