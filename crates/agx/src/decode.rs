//! Bytes to instructions.
//!
//! Any bytes are allowed: what no line of the table fits, or an operand of a type that does not exist, is an error. Bits that
//! have no meaning (an odd number of a 32-bit register, a reserved type that reads as another one) are dropped; whether
//! there were any is told by encoding again ([`crate::encode::is_canonical`]).
//!
//! Facts: reference sections 2 and 16, and the tables of operand kinds.

use crate::instr::{Form, Hint, Instr, Number, Operand, Place, Role, Size};
use crate::ops::{ALL, Info, Op};
use crate::tables::{Bits, Field, Kind, NumberField, Style};
use std::fmt;

/// Most bytes of an instruction.
pub const MAX_BYTES: usize = 12;

/// Why bytes are no instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// No operation has these fixed bits.
    Unknown { word: u128 },
    /// The instruction goes on behind the last byte.
    Truncated { op: Op },
    /// An operand has a type that does not exist.
    Operand { op: Op, role: Role },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Unknown { word } => write!(f, "no instruction starts with {:#06x}", word & 0xffff),
            DecodeError::Truncated { op } => write!(f, "`{}` goes on behind the last byte", op.info().name),
            DecodeError::Operand { op, role } => {
                write!(f, "`{}` has no such operand for {role:?}", op.info().name)
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// An instruction and where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    pub instr: Instr,
    /// In bytes.
    pub length: usize,
}

/// The instruction at the start of `bytes`.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    decode_among(bytes, ALL)
}

/// As the public disassembler does it, which never gets to the operations that a wider one hides (section 16).
pub fn decode_public(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    decode_among(bytes, &ALL[HIDDEN..])
}

/// The first operations of the table are those that the public disassembler has behind a wider one.
const HIDDEN: usize = 4;

/// A whole program: its instructions with their byte addresses, or where and why it is none.
pub fn decode_all(code: &[u8]) -> Result<Vec<(usize, Decoded)>, (usize, DecodeError)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let decoded = decode(&code[at..]).map_err(|e| (at, e))?;
        found.push((at, decoded));
        at += decoded.length;
    }
    Ok(found)
}

fn decode_among(bytes: &[u8], ops: &[Op]) -> Result<Decoded, DecodeError> {
    let word = load(bytes);
    for &op in ops {
        let info = op.info();
        let length = length(info, word);
        let word = low_bits(word, 8 * length as u32);
        if word & info.mask == info.value {
            if length > bytes.len() {
                return Err(DecodeError::Truncated { op });
            }
            return Ok(Decoded { instr: fields(op, word, length)?, length });
        }
    }
    Err(DecodeError::Unknown { word })
}

/// Up to 12 bytes as a number, little-endian; missing ones are 0.
pub(crate) fn load(bytes: &[u8]) -> u128 {
    bytes.iter().take(MAX_BYTES).rev().fold(0, |word, &byte| word << 8 | u128::from(byte))
}

fn low_bits(word: u128, bits: u32) -> u128 {
    word & ((1 << bits) - 1)
}

fn length(info: &Info, word: u128) -> usize {
    let lengths = info.lengths;
    let long = lengths.differ() && word >> lengths.bit & 1 != 0;
    usize::from(if long { lengths.long } else { lengths.short })
}

/// The value of a field.
pub(crate) fn extract(word: u128, bits: Bits) -> u32 {
    let mut value = 0;
    let mut at = 0;
    for &(start, width) in bits {
        value |= (word >> start & ((1 << width) - 1)) << at;
        at += width;
    }
    value as u32
}

/// Bits of a field.
pub(crate) fn width(bits: Bits) -> u32 {
    bits.iter().map(|&(_, width)| u32::from(width)).sum()
}

fn sign_extend(value: u32, bits: u32) -> i32 {
    let unused = 32 - bits.clamp(1, 32);
    (value << unused) as i32 >> unused
}

/// The number as an instruction holds it.
pub(crate) fn number(field: &NumberField, word: u128) -> u32 {
    let value = extract(word, field.bits);
    match field.style {
        Style::Signed | Style::Target => sign_extend(value, width(field.bits)) as u32,
        _ => value,
    }
}

fn fields(op: Op, word: u128, length: usize) -> Result<Instr, DecodeError> {
    let info = op.info();
    let mut instr = Instr::new(op);
    for field in info.numbers() {
        instr.put_number(field.number, number(field, word));
    }
    for field in info.operands() {
        let role = field.role;
        let operand = operand(field, word, &instr).ok_or(DecodeError::Operand { op, role })?;
        instr.put(role, operand);
    }
    let lengths = info.lengths;
    if lengths.differ() {
        let long = length == usize::from(lengths.long);
        let needed = word >> (8 * lengths.short) != 0;
        instr.form = match (long, lengths.always_long || needed) {
            (true, false) => Form::Long,
            (false, true) => Form::Short,
            _ => Form::Usual,
        };
    }
    Ok(instr)
}

/// Registers of a coordinate vector: those of the place, and further ones (layer, sample).
pub(crate) fn dimensions(dim: u32) -> Option<(u8, u8)> {
    const TABLE: [(u8, u8); 9] = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 1), (3, 0), (3, 0), (3, 1), (2, 2)];
    TABLE.get(dim as usize).copied()
}

fn operand(field: &Field, word: u128, instr: &Instr) -> Option<Operand> {
    let value = extract(word, field.value) as u16;
    let select = extract(word, field.select);
    let even = value & !1;
    let count = instr.get(Number::Mask).count_ones() as u8;
    let half = Operand::reg(value, Size::B16);
    let full = Operand::reg(even, Size::B32);
    let imm = Operand::imm(value.into());
    let by_size = |wide: bool, count: u8| match wide {
        false => Operand::vector(value, Size::B16, count),
        true => Operand::vector(even, Size::B32, count),
    };
    let is_even = value == even;
    let mut operand = match field.kind {
        Kind::Dst => by_size(select & 2 != 0, 1),
        Kind::Dst64 if select & 2 != 0 && !is_even => Operand::reg(even, Size::B64),
        Kind::Dst64 => by_size(select & 2 != 0, 1),
        Kind::Dst16 => half,
        Kind::DstPair => by_size(select & 2 != 0, 2),
        Kind::MaskCounter => Operand::reg(0, Size::B16),
        Kind::Src
        | Kind::Src64
        | Kind::Src16
        | Kind::Float
        | Kind::Float16
        | Kind::FloatPair
        | Kind::Select => return source(field, word, instr),
        Kind::Word => Operand::reg(2 * value, Size::B32),
        Kind::WordByHalf => full,
        Kind::UniformPair => Operand::uniform(2 * value, Size::B64),
        Kind::MemIndex if select == 1 => Operand::imm(sign_extend(value.into(), 16)),
        Kind::MemIndex => (is_even && value < 256).then_some(full)?,
        Kind::LocalIndex if select == 1 => Operand::imm(sign_extend(value.into(), 16)),
        Kind::LocalIndex => (value < 256).then_some(half)?,
        Kind::Data => by_size(select == 1, count),
        Kind::MemBase if !is_even => return None,
        Kind::MemBase | Kind::AsyncPair if select == 1 => Operand::uniform(even, Size::B64),
        Kind::MemBase | Kind::AsyncPair => Operand::reg(even, Size::B64),
        Kind::AsyncBlock => {
            let (half, size, count) = (2 * value, Size::B32, copy_words(instr));
            match select {
                1 => Operand::at(Place::Uniform { half, size, count }),
                _ => Operand::at(Place::Reg { half, size, count }),
            }
        }
        Kind::SampleSet => match select {
            0 => imm,
            1 => half,
            _ => return None,
        },
        Kind::HalfOrImm if select == 1 => imm,
        Kind::HalfOrImm | Kind::Half => half,
        Kind::DepthStencil => match select {
            0 => return None,
            _ => Operand::vector(value, Size::B16, (2 * (select & 1) + (select >> 1)) as u8),
        },
        Kind::LocalResult if select & 2 == 0 => Operand::NONE,
        Kind::LocalResult => by_size(select & 1 != 0, 1),
        Kind::LocalBase => match select {
            0 => half,
            2 => Operand::imm(0),
            _ => Operand::uniform(value + 256 * (select >> 1) as u16, Size::B16),
        },
        Kind::Coefficient if select == 1 => half,
        Kind::Coefficient | Kind::CoefficientOnly => Operand::at(Place::Coefficient(value as u8)),
        Kind::IterSample => match (instr.get(Number::Interpolation), value) {
            (3, _) => half,
            (1, _) => imm,
            (_, 0) => Operand::NONE,
            _ => return None,
        },
        Kind::Varying => by_size(select & 1 != 0, one_to_four(select >> 1)),
        Kind::Triples => by_size(select & 1 != 0, 3 * one_to_four(select >> 1)),
        Kind::TextureState => Operand::at(Place::Texture(value as u8)),
        Kind::SamplerState => Operand::at(Place::Sampler(value as u8)),
        Kind::Heap if select & 2 == 0 => Operand::NONE,
        Kind::Heap => Operand::uniform(4 * value, Size::B64),
        Kind::Texture => match select {
            0 => Operand::at(Place::Texture(value as u8)),
            2 if value == 0 => Operand::imm(0),
            3 => full,
            _ => half,
        },
        Kind::Sampler if select == 0 => Operand::at(Place::Sampler(value as u8)),
        Kind::Sampler => half,
        Kind::Coords => {
            let (size, count) = coordinates(instr.get(Number::Dim), select & 2 != 0)?;
            match size {
                Size::B16 => Operand::vector(value, size, count),
                _ => Operand::vector(even, size, count),
            }
        }
        Kind::Lod => match lod(instr.get(Number::LodMode), instr.get(Number::Dim))? {
            Level::None => Operand::imm(0),
            Level::Gradient(count) => Operand::vector(even, Size::B32, count),
            Level::Uniform => Operand::uniform(value, Size::B16),
            Level::Half(count) => Operand::vector(value, Size::B16, count),
        },
        Kind::CompareOffset => match (instr.get(Number::Compare), select) {
            (0, 0) => Operand::NONE,
            (0, _) => half,
            (_, offset) => Operand::vector(even, Size::B32, 1 + offset as u8),
        },
        Kind::AtomicSource if !is_even => return None,
        Kind::AtomicSource if instr.get(Number::Atomic) == 3 => Operand::reg(value, Size::B64),
        Kind::AtomicSource => full,
        Kind::AtomicResult if select == 0 => Operand::NONE,
        Kind::AtomicResult => is_even.then_some(full)?,
        Kind::Texel if select == 1 && !is_even => return None,
        Kind::Texel => by_size(select == 1, 4),
    };
    match field.kind {
        Kind::Dst | Kind::Dst64 | Kind::Dst16 | Kind::DstPair | Kind::MaskCounter if select & 1 != 0 => {
            operand.hint = Hint::Cache;
        }
        Kind::Coords if select & 1 != 0 => operand.hint = Hint::Discard,
        _ => {}
    }
    Some(operand)
}

fn one_to_four(count: u32) -> u8 {
    if count == 0 { 4 } else { count as u8 }
}

/// Words of the descriptor of a block copy.
pub(crate) fn copy_words(instr: &Instr) -> u8 {
    if instr.get(Number::Mode) == 0 { 3 } else { 5 }
}

/// Size and number of the registers with coordinates.
pub(crate) fn coordinates(dim: u32, narrow: bool) -> Option<(Size, u8)> {
    let (place, further) = dimensions(dim)?;
    Some(match (narrow, further) {
        (true, _) => (Size::B16, place + further),
        (false, 0) => (Size::B32, place),
        // Whole registers and a half for what is behind them.
        (false, _) => (Size::B16, 2 * place + 1),
    })
}

/// What a lookup takes as its level of detail.
pub(crate) enum Level {
    None,
    /// So many 32-bit registers.
    Gradient(u8),
    Uniform,
    /// So many halves.
    Half(u8),
}

pub(crate) fn lod(mode: u32, dim: u32) -> Option<Level> {
    Some(match mode {
        0 => Level::None,
        4 => Level::Gradient(2 * dimensions(dim)?.0),
        12 => Level::Gradient(2 * dimensions(dim)?.0 + 1),
        1 | 2 | 9 => Level::Uniform,
        5 | 6 => Level::Half(1),
        13 => Level::Half(2),
        _ => return None,
    })
}

/// Sources of the ALU: a type says whether they are immediates, uniforms or registers, and how wide.
fn source(field: &Field, word: u128, instr: &Instr) -> Option<Operand> {
    let value = extract(word, field.value) as u16;
    let select = extract(word, field.select);
    let even = value & !1;
    let high = value + 256 * (select & 1) as u16;
    let kind = field.kind;
    let count = if kind == Kind::FloatPair { 2 } else { 1 };
    let imm = Operand::imm(value.into());
    let mut operand = if kind == Kind::Select {
        let wide = instr.operand(Role::Dest).as_reg().is_some_and(|(_, size, _)| size != Size::B16);
        match select {
            4 => imm,
            1..=3 if !wide => Operand::reg(value, Size::B16),
            1..=3 if value == even => Operand::reg(value, Size::B32),
            6 | 7 if !wide => Operand::uniform(high, Size::B16),
            6 | 7 if value == even => Operand::uniform(high, Size::B32),
            _ => return None,
        }
    } else {
        match (select, kind) {
            (0, Kind::Float | Kind::Float16 | Kind::FloatPair) => Operand::float(value as u8),
            (0, _) => imm,
            (4 | 5, _) => Operand::uniform(high, Size::B16),
            (6 | 7, _) => Operand::uniform(high & !1, Size::B32),
            (1..=3, _) => Operand::vector(value, Size::B16, count),
            (9..=11 | 13..=15, Kind::Src16) => Operand::reg(value, Size::B16),
            (9..=11, _) => Operand::vector(even, Size::B32, count),
            (13..=15, Kind::Src64) => (value == even).then_some(Operand::reg(value, Size::B64))?,
            (13..=15, _) => Operand::vector(even, Size::B32, count),
            _ => return None,
        }
    };
    if operand.as_reg().is_some() {
        operand.hint = match select & 3 {
            2 => Hint::Cache,
            3 => Hint::Discard,
            _ => Hint::None,
        };
    }
    let modifier = extract(word, field.modifier);
    operand.abs = modifier & 1 != 0;
    operand.neg = modifier & 2 != 0;
    operand.signed = extract(word, field.sign) != 0;
    Some(operand)
}
