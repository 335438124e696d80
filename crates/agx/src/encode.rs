//! Instructions to bytes.
//!
//! The short form is taken where no bit is lost, but for memory accesses, which the reference driver always writes long
//! ([`Form`] asks for something else). What cannot be said in bits is an error, never something similar.
//!
//! Facts: reference section 2, and the tables of operand kinds.

use crate::decode::{Level, coordinates, copy_words, extract, lod, width};
use crate::instr::{Form, Hint, Instr, Number, Operand, Place, Role, Size};
use crate::ops::Op;
use crate::tables::{Bits, Field, Kind, Style};
use std::fmt;

/// Why an instruction has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// Something was set that the operation does not have.
    Stray { op: Op },
    /// The operand cannot stand there.
    Operand { op: Op, role: Role, operand: Operand },
    /// A hint or modifier that the operand cannot have there.
    Modifier { op: Op, role: Role, operand: Operand },
    /// The number does not fit its bits.
    Number { op: Op, number: Number, value: u32 },
    /// An operand asks for another value of a bit that the operation fixes: `mov_imm` of the other width.
    Fixed { op: Op },
    /// The short form loses bits, or there is only one form.
    Form { op: Op },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::Stray { op } => write!(f, "`{}` has no such operand or number", op.info().name),
            EncodeError::Operand { op, role, operand } => {
                write!(f, "`{}` cannot have {:?} as {role:?}", op.info().name, operand.place)
            }
            EncodeError::Modifier { op, role, operand } => {
                write!(f, "`{}` cannot have {operand:?} as {role:?}: a modifier", op.info().name)
            }
            EncodeError::Number { op, number, value } => {
                write!(f, "`{}`: {value} is no value of {number:?}", op.info().name)
            }
            EncodeError::Fixed { op } => write!(f, "`{}` has its result in another width", op.info().name),
            EncodeError::Form { op } => write!(f, "`{}` has no such form", op.info().name),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Bytes of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoded {
    bytes: [u8; 16],
    length: u8,
}

impl std::ops::Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The bytes of an instruction.
pub fn encode(instr: &Instr) -> Result<Encoded, EncodeError> {
    let op = instr.op;
    let info = op.info();
    if instr.is_stray() {
        return Err(EncodeError::Stray { op });
    }
    let mut word = info.value;
    for field in info.numbers() {
        let value = instr.get(field.number);
        if !fits(value, width(field.bits), matches!(field.style, Style::Signed | Style::Target)) {
            return Err(EncodeError::Number { op, number: field.number, value });
        }
        insert(&mut word, field.bits, value);
    }
    for field in info.operands() {
        let operand = instr.operand(field.role);
        let role = field.role;
        let (value, select) =
            place(field, &operand, instr).ok_or(EncodeError::Operand { op, role, operand })?;
        let modifiers = modifiers(field, &operand).ok_or(EncodeError::Modifier { op, role, operand })?;
        if !fits(value, width(field.value), false) {
            return Err(EncodeError::Operand { op, role, operand });
        }
        insert(&mut word, field.value, value);
        // The width of a result may be one of the fixed bits.
        let mut type_bits = 0;
        insert(&mut type_bits, field.select, u32::MAX);
        insert(&mut word, field.select, select | modifiers);
        if (word ^ info.value) & type_bits & info.mask != 0
            || extract(word, field.select) != select | modifiers
        {
            return Err(EncodeError::Fixed { op });
        }
        insert(&mut word, field.modifier, u32::from(operand.abs) | u32::from(operand.neg) << 1);
        insert(&mut word, field.sign, operand.signed.into());
    }
    let lengths = info.lengths;
    let needed = word >> (8 * lengths.short) != 0;
    let long = match instr.form {
        Form::Usual => lengths.differ() && (lengths.always_long || needed),
        Form::Long if lengths.differ() => true,
        Form::Short if lengths.differ() && !needed => false,
        Form::Long | Form::Short => return Err(EncodeError::Form { op }),
    };
    if long {
        word |= 1 << lengths.bit;
    }
    let length = if long { lengths.long } else { lengths.short };
    Ok(Encoded { bytes: word.to_le_bytes(), length })
}

/// The bytes of several instructions, one behind the other.
pub fn encode_all(instrs: &[Instr]) -> Result<Vec<u8>, EncodeError> {
    let mut code = Vec::new();
    for instr in instrs {
        code.extend_from_slice(&encode(instr)?);
    }
    Ok(code)
}

/// Are these the bytes that encoding gives? If not, they hold bits that mean nothing or must not be used.
pub fn is_canonical(bytes: &[u8], instr: &Instr) -> bool {
    encode(instr).is_ok_and(|encoded| *encoded == *bytes)
}

fn fits(value: u32, bits: u32, signed: bool) -> bool {
    if bits >= 32 {
        true
    } else if signed {
        let limit = 1i32 << (bits.max(1) - 1);
        (-limit..limit).contains(&(value as i32))
    } else {
        value >> bits == 0
    }
}

/// Puts a value into its pieces. Fields may share bits (a heap and its texture); they have to agree on them.
fn insert(word: &mut u128, bits: Bits, value: u32) {
    let mut rest = value;
    for &(start, width) in bits {
        *word |= (u128::from(rest) & ((1 << width) - 1)) << start;
        rest = if width < 32 { rest >> width } else { 0 };
    }
}

/// Bits of the type that come from a hint, if all modifiers can be there.
fn modifiers(field: &Field, operand: &Operand) -> Option<u32> {
    let is_reg = operand.as_reg().is_some();
    let float = !field.modifier.is_empty();
    if (operand.abs || operand.neg) && !float || operand.signed && field.sign.is_empty() {
        return None;
    }
    match (field.kind, operand.hint) {
        (Kind::Dst | Kind::Dst64 | Kind::Dst16 | Kind::DstPair | Kind::MaskCounter, Hint::Cache) => Some(1),
        (Kind::Coords, Hint::Discard) => Some(1),
        (kind, hint) if is_source(kind) && is_reg => Some(match hint {
            Hint::None => 1,
            Hint::Cache => 2,
            Hint::Discard => 3,
        }),
        (_, Hint::None) => Some(0),
        _ => None,
    }
}

fn is_source(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, Src | Src64 | Src16 | Float | Float16 | FloatPair | Select)
}

/// Number and type of an operand, without what hints add to the type.
fn place(field: &Field, operand: &Operand, instr: &Instr) -> Option<(u32, u32)> {
    let kind = field.kind;
    if is_source(kind) {
        return source(kind, operand, instr);
    }
    let mask_count = instr.get(Number::Mask).count_ones() as u8;
    // A register of these sizes and so many of them: its number, and its size as a flag.
    let reg = |wanted: u8| match operand.place {
        Place::Reg { half, size: Size::B16, count } if count == wanted => Some((u32::from(half), 0)),
        Place::Reg { half, size: Size::B32, count } if count == wanted && half & 1 == 0 => {
            Some((u32::from(half), 1))
        }
        _ => None,
    };
    let half = || reg(1).filter(|r| r.1 == 0).map(|r| r.0);
    let full = || reg(1).filter(|r| r.1 == 1).map(|r| r.0);
    let pair = || match operand.place {
        Place::Reg { half, size: Size::B64, count: 1 } if half & 1 == 0 => Some(u32::from(half)),
        _ => None,
    };
    let uniform = |wanted: Size| match operand.place {
        Place::Uniform { half, size, count: 1 } if size == wanted => Some(u32::from(half)),
        _ => None,
    };
    let imm = |low: i32, high: i32| match operand.place {
        Place::Imm(value) if (low..=high).contains(&value) => Some(value as u32),
        _ => None,
    };
    let absent = || operand.is_none().then_some((0, 0));
    match kind {
        Kind::Dst => reg(1).map(|(v, wide)| (v, 2 * wide)),
        Kind::Dst64 => pair().map(|v| (v | 1, 2)).or_else(|| reg(1).map(|(v, wide)| (v, 2 * wide))),
        Kind::Dst16 => half().map(|v| (v, 0)),
        Kind::DstPair => reg(2).map(|(v, wide)| (v, 2 * wide)),
        Kind::MaskCounter => (half()? == 0).then_some((0, 0)),
        Kind::Word => full().map(|v| (v / 2, 0)),
        Kind::WordByHalf => full().map(|v| (v, 0)),
        Kind::UniformPair => uniform(Size::B64).filter(|v| v % 2 == 0).map(|v| (v / 2, 0)),
        Kind::MemIndex => imm(-0x8000, 0x7fff)
            .map(|v| (v & 0xffff, 1))
            .or_else(|| full().filter(|&v| v < 256).map(|v| (v, 0))),
        Kind::LocalIndex => imm(-0x8000, 0x7fff)
            .map(|v| (v & 0xffff, 1))
            .or_else(|| half().filter(|&v| v < 256).map(|v| (v, 0))),
        Kind::Data => reg(mask_count),
        Kind::MemBase | Kind::AsyncPair => pair().map(|v| (v, 0)).or_else(|| {
            let even = uniform(Size::B64).filter(|v| v % 2 == 0);
            even.map(|v| (v, 1))
        }),
        Kind::AsyncBlock => match operand.place {
            Place::Reg { half, size: Size::B32, count } if count == copy_words(instr) && half % 2 == 0 => {
                Some((u32::from(half) / 2, 0))
            }
            Place::Uniform { half, size: Size::B32, count }
                if count == copy_words(instr) && half % 2 == 0 =>
            {
                Some((u32::from(half) / 2, 1))
            }
            _ => None,
        },
        Kind::SampleSet => imm(0, 0xff).map(|v| (v, 0)).or_else(|| half().map(|v| (v, 1))),
        Kind::HalfOrImm => imm(0, 0xff).map(|v| (v, 1)).or_else(|| half().map(|v| (v, 0))),
        Kind::Half => half().map(|v| (v, 0)),
        Kind::DepthStencil => match operand.place {
            Place::Reg { half, size: Size::B16, count: count @ 1..=3 } => {
                Some((half.into(), u32::from(count >> 1) | u32::from(count & 1) << 1))
            }
            _ => None,
        },
        Kind::LocalResult => absent().or_else(|| reg(1).map(|(v, wide)| (v, wide | 2))),
        Kind::LocalBase => half()
            .map(|v| (v, 0))
            .or_else(|| imm(0, 0).map(|_| (0, 2)))
            .or_else(|| uniform(Size::B16).map(|v| (v & 0xff, 1 | (v >> 8) << 1)).filter(|v| v.1 <= 3)),
        Kind::Coefficient => match operand.place {
            Place::Coefficient(n) => Some((n.into(), 0)),
            _ => half().map(|v| (v, 1)),
        },
        Kind::CoefficientOnly => match operand.place {
            Place::Coefficient(n) => Some((n.into(), 0)),
            _ => None,
        },
        Kind::IterSample => match instr.get(Number::Interpolation) {
            3 => half().map(|v| (v, 0)),
            1 => imm(0, 0xff).map(|v| (v, 0)),
            _ => absent(),
        },
        Kind::Varying => (1..=4).find_map(|n| reg(n).map(|(v, wide)| (v, wide | u32::from(n % 4) << 1))),
        Kind::Triples => (1..=4).find_map(|n| reg(3 * n).map(|(v, wide)| (v, wide | u32::from(n % 4) << 1))),
        Kind::TextureState => match operand.place {
            Place::Texture(n) => Some((n.into(), 0)),
            _ => None,
        },
        Kind::SamplerState => match operand.place {
            Place::Sampler(n) => Some((n.into(), 0)),
            _ => None,
        },
        // Whether there is a heap is said by the type of the texture, which has to agree.
        Kind::Heap => match (operand.is_none(), texture_type(instr)?) {
            (true, 0 | 1) => Some((0, 0)),
            (false, select @ (2 | 3)) => uniform(Size::B64).filter(|v| v % 4 == 0).map(|v| (v / 4, select)),
            _ => None,
        },
        Kind::Texture => {
            let select = texture_type(instr)?;
            let value = match operand.place {
                Place::Texture(n) => n.into(),
                Place::Imm(_) => 0,
                Place::Reg { half, .. } => half.into(),
                _ => return None,
            };
            // Number 0 of the type that is not known reads as the constant.
            (select != 2 || (value == 0) == (operand.place == Place::Imm(0))).then_some((value, select))
        }
        Kind::Sampler => match operand.place {
            Place::Sampler(n) => Some((n.into(), 0)),
            _ => half().map(|v| (v, 1)),
        },
        Kind::Coords => [true, false].into_iter().find_map(|narrow| {
            let (size, count) = coordinates(instr.get(Number::Dim), narrow)?;
            let (value, wide) = reg(count)?;
            ((wide == 1) == (size == Size::B32)).then_some((value, u32::from(narrow) << 1))
        }),
        Kind::Lod => match lod(instr.get(Number::LodMode), instr.get(Number::Dim))? {
            Level::None => imm(0, 0).map(|v| (v, 0)),
            Level::Gradient(count) => reg(count).filter(|r| r.1 == 1).map(|r| (r.0, 0)),
            Level::Uniform => uniform(Size::B16).map(|v| (v, 0)),
            Level::Half(count) => reg(count).filter(|r| r.1 == 0).map(|r| (r.0, 0)),
        },
        Kind::CompareOffset => match instr.get(Number::Compare) {
            0 => absent().or_else(|| half().map(|v| (v, 1))),
            _ => [1, 2].into_iter().find_map(|n| {
                let (value, wide) = reg(n)?;
                (wide == 1).then_some((value, u32::from(n) - 1))
            }),
        },
        Kind::AtomicSource if instr.get(Number::Atomic) == 3 => pair().map(|v| (v, 0)),
        Kind::AtomicSource => full().map(|v| (v, 0)),
        Kind::AtomicResult => absent().or_else(|| full().map(|v| (v, 1))),
        Kind::Texel => reg(4),
        Kind::Src
        | Kind::Src64
        | Kind::Src16
        | Kind::Float
        | Kind::Float16
        | Kind::FloatPair
        | Kind::Select => None,
    }
}

/// Type of a texture operand: 0 a state, 1 its number in a half register, 3 an offset in the heap; 2 is not known.
fn texture_type(instr: &Instr) -> Option<u32> {
    let heap = !instr.operand(Role::Heap).is_none();
    // A block of the tile buffer is written without saying where the heap is.
    let needs_heap = instr.op.info().operands().any(|field| field.role == Role::Heap);
    match instr.operand(Role::Texture).place {
        Place::Texture(_) if !heap => Some(0),
        Place::Reg { size: Size::B16, count: 1, .. } => Some(if heap { 2 } else { 1 }),
        Place::Reg { half, size: Size::B32, count: 1 } if heap == needs_heap && half & 1 == 0 => Some(3),
        Place::Imm(0) if heap == needs_heap => Some(2),
        _ => None,
    }
}

fn source(kind: Kind, operand: &Operand, instr: &Instr) -> Option<(u32, u32)> {
    let is_float = matches!(kind, Kind::Float | Kind::Float16 | Kind::FloatPair);
    let regs = if kind == Kind::FloatPair { 2 } else { 1 };
    let wide = || instr.operand(Role::Dest).as_reg().is_some_and(|(_, size, _)| size != Size::B16);
    // A value of a select is as wide as the result.
    let width_ok = |size: Size| match kind {
        Kind::Select => (size == Size::B32) == wide() && size != Size::B64,
        // Wider uniforms can be said, but must not be.
        Kind::Src16 | Kind::Float16 => {
            size == Size::B16 || size == Size::B32 && operand.as_uniform().is_some()
        }
        Kind::Src64 => true,
        _ => size != Size::B64,
    };
    match operand.place {
        Place::Imm(value) if !is_float && (0..256).contains(&value) => {
            Some((value as u32, if kind == Kind::Select { 4 } else { 0 }))
        }
        Place::Float(bits) if is_float => Some((bits.into(), 0)),
        Place::Reg { half, size, count } if count == regs && width_ok(size) => match size {
            Size::B16 => Some((half.into(), 0)),
            _ if half & 1 != 0 => None,
            // A select has no bit for the width.
            Size::B32 => Some((half.into(), if kind == Kind::Select { 0 } else { 8 })),
            Size::B64 => Some((half.into(), 12)),
        },
        Place::Uniform { half, size, count: 1 } if half < 512 && width_ok(size) => {
            let select = match (kind, size) {
                (_, Size::B64) => return None,
                (_, Size::B32) if half & 1 != 0 => return None,
                (Kind::Select, _) | (_, Size::B32) => 6,
                _ => 4,
            };
            Some((u32::from(half) & 0xff, select | u32::from(half) >> 8))
        }
        _ => None,
    }
}
