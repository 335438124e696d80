//! The instruction that encoder, decoder, assembler, simulator and code generator share.
//!
//! An instruction is an operation, its operands by [`Role`] and its plain numbers by [`Number`]. Which of them an
//! operation has, and where their bits lie, is a matter of the table (`ops`, `tables`); [`Instr::new`] gives every number
//! the value that is known to work, so a code generator only says what matters to it:
//!
//! ```
//! use kempe_agx::instr::{Instr, Number, Operand, Role, Size};
//! use kempe_agx::ops::Op;
//! let load = Instr::new(Op::DeviceLoad)
//!     .with(Role::Data, Operand::vector(8, Size::B32, 4))
//!     .with(Role::Base, Operand::uniform(0, Size::B64))
//!     .with(Role::Index, Operand::reg(20, Size::B32))
//!     .set(Number::Format, 2)
//!     .set(Number::Mask, 0b1111);
//! assert_eq!(load.get(Number::Slot), 0);
//! ```
//!
//! Registers and uniforms are numbered by halves throughout: half 2n is `rNl`, 2n + 1 is `rNh`; a 32-bit register is an
//! even half, a 64-bit pair is the half of its low register.
//!
//! Facts: reference sections 1.1, 1.3, 1.6 and 2.

use crate::ops::Op;
use crate::tables::{Item, Kind};

/// Most operands of an operation.
pub const MAX_OPERANDS: usize = 7;

/// Most numbers of an operation.
pub const MAX_NUMBERS: usize = 10;

/// Width of a register or uniform.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Size {
    B16,
    B32,
    /// Two consecutive 32-bit registers, low word first.
    B64,
}

impl Size {
    /// Halves that it takes.
    pub const fn halves(self) -> u16 {
        match self {
            Size::B16 => 1,
            Size::B32 => 2,
            Size::B64 => 4,
        }
    }

    /// Bits that it holds.
    pub const fn bits(self) -> u32 {
        16 * self.halves() as u32
    }
}

/// What the register cache is told. Performance only, except that a discarded register is undefined afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub enum Hint {
    #[default]
    None,
    /// Needed again soon.
    Cache,
    /// Of sources: not needed again.
    Discard,
}

/// What an operand denotes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    /// The operand is left out.
    #[default]
    None,
    /// `count` consecutive registers of one size from a half on.
    Reg { half: u16, size: Size, count: u8 },
    /// The same in uniforms.
    Uniform { half: u16, size: Size, count: u8 },
    /// An integer.
    Imm(i32),
    /// The 8-bit float of section 2.3.
    Float(u8),
    /// A texture state.
    Texture(u8),
    /// A sampler state.
    Sampler(u8),
    /// A coefficient register.
    Coefficient(u8),
}

/// A place with its modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Operand {
    pub place: Place,
    pub hint: Hint,
    /// Of float sources; before `neg`.
    pub abs: bool,
    pub neg: bool,
    /// Sign-extended from its own width, in `iadd` and `imadd` and their kin. On an immediate it only makes a saturation signed.
    pub signed: bool,
}

impl Operand {
    /// Nothing there.
    pub const NONE: Operand = Operand::at(Place::None);

    /// Without modifiers.
    pub const fn at(place: Place) -> Operand {
        Operand { place, hint: Hint::None, abs: false, neg: false, signed: false }
    }

    /// One register; its first half is given.
    pub const fn reg(half: u16, size: Size) -> Operand {
        Operand::vector(half, size, 1)
    }

    /// Consecutive registers; the first half is given.
    pub const fn vector(half: u16, size: Size, count: u8) -> Operand {
        Operand::at(Place::Reg { half, size, count })
    }

    /// One uniform; its first half is given.
    pub const fn uniform(half: u16, size: Size) -> Operand {
        Operand::at(Place::Uniform { half, size, count: 1 })
    }

    /// An integer.
    pub const fn imm(value: i32) -> Operand {
        Operand::at(Place::Imm(value))
    }

    /// An 8-bit float by its bits.
    pub const fn float(bits: u8) -> Operand {
        Operand::at(Place::Float(bits))
    }

    pub const fn cache(mut self) -> Operand {
        self.hint = Hint::Cache;
        self
    }

    pub const fn discard(mut self) -> Operand {
        self.hint = Hint::Discard;
        self
    }

    pub const fn abs(mut self) -> Operand {
        self.abs = true;
        self
    }

    /// Negated once more.
    pub const fn neg(mut self) -> Operand {
        self.neg = !self.neg;
        self
    }

    pub const fn signed(mut self) -> Operand {
        self.signed = true;
        self
    }

    /// Is there nothing?
    pub fn is_none(&self) -> bool {
        self.place == Place::None
    }

    /// First half, size of an element and elements, of a register.
    pub fn as_reg(&self) -> Option<(u16, Size, u8)> {
        match self.place {
            Place::Reg { half, size, count } => Some((half, size, count)),
            _ => None,
        }
    }

    /// The same of a uniform.
    pub fn as_uniform(&self) -> Option<(u16, Size, u8)> {
        match self.place {
            Place::Uniform { half, size, count } => Some((half, size, count)),
            _ => None,
        }
    }

    /// The halves of the register file that it names; empty if it names none.
    pub fn halves(&self) -> std::ops::Range<u16> {
        match self.place {
            Place::Reg { half, size, count } => half..half + size.halves() * count as u16,
            _ => 0..0,
        }
    }

    /// The halves of the uniforms that it names.
    pub fn uniform_halves(&self) -> std::ops::Range<u16> {
        match self.place {
            Place::Uniform { half, size, count } => half..half + size.halves() * count as u16,
            _ => 0..0,
        }
    }
}

/// What an operand is to its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Result.
    Dest,
    /// Sources in order.
    A,
    B,
    C,
    /// Value of a select where the comparison holds, and where not.
    X,
    Y,
    /// Registers that a memory access loads or stores.
    Data,
    /// Base address.
    Base,
    /// Index, added to the base.
    Index,
    /// Operand of an atomic; for `cmpxchg` two registers, new value and comparand.
    Source,
    /// Uniform pair with the address of the bindless heap.
    Heap,
    Texture,
    Sampler,
    Coords,
    /// Level of detail or gradients.
    Lod,
    /// Comparison value, then packed offsets.
    Compare,
    /// First coefficient register of an input.
    Coefficient,
    /// Coefficient register of 1/W.
    Inverse,
    /// Samples or a sample.
    Sample,
    /// Of the samples those that are tested.
    Test,
}

/// A plain number of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Number {
    /// 1: the result is clamped (integers: to the width; floats: to [0, 1]).
    Saturate,
    /// Left shift: of B in `iadd`, of C in `imadd`, of the index in memory accesses.
    Shift,
    /// Width of a bit field; 0 means 32.
    Width,
    /// Truth table: bit 0 for (a, b) = (0, 0), bit 1 for (1, 0), bit 2 for (0, 1), bit 3 for (1, 1).
    Table,
    /// Comparison ([`crate::tables::INTEGER_CONDITIONS`], [`crate::tables::FLOAT_CONDITIONS`]); bit 3 inverts.
    Condition,
    /// Depth that an execution mask instruction adds or takes away.
    Nest,
    /// A number that the operation takes: `mov_imm` (its bits), `stack_adjust` (i32), codes of doorbells and pixels.
    Value,
    /// Byte distance of a jump from its own first byte, as an i32.
    Target,
    /// Format of memory ([`crate::tables::FORMATS`]).
    Format,
    /// Elements that are accessed.
    Mask,
    /// Scoreboard slot.
    Slot,
    /// 1: the index is zero-extended, 0: sign-extended.
    Unsigned,
    /// Byte offset in a sample of the tile buffer.
    Offset,
    /// Special register ([`crate::tables::special_name`]).
    Special,
    /// Operation of an atomic ([`crate::tables::ATOMICS`]).
    Atomic,
    /// Kind of conversion, block copy or scratch request.
    Mode,
    /// Rounding of a conversion (0 towards zero, 1 to nearest) or of a texel that is written.
    Round,
    /// Which half of a scratch request.
    Space,
    /// 1: helper invocations end here.
    Kill,
    /// Texture lookups.
    Compare,
    Query,
    Gather,
    LodMode,
    Dim,
    /// Inputs of fragments.
    Forward,
    Elide,
    Interpolation,
    /// Codes of operations without a name.
    Code1,
    Code2,
    Code3,
    /// Fields whose meaning is not known, or only of some values.
    U0,
    U1,
    U2,
    U3,
    U4,
    U5,
    U6,
    U7,
    U8,
    U9,
}

/// Which of the two lengths of an operation is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub enum Form {
    /// Short where nothing is lost; memory accesses and their kin always long, as the reference driver does it.
    #[default]
    Usual,
    /// Short although it would usually be long.
    Short,
    /// Long although the short one would do.
    Long,
}

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instr {
    pub op: Op,
    pub form: Form,
    /// In the order of the table.
    operands: [Operand; MAX_OPERANDS],
    /// In the order of the table.
    numbers: [u32; MAX_NUMBERS],
    /// Something was set that the operation does not have; the encoder refuses it.
    stray: bool,
}

impl Instr {
    /// Every operand left out, every number at its usual value.
    pub fn new(op: Op) -> Instr {
        let mut instr = Instr {
            op,
            form: Form::Usual,
            operands: [Operand::NONE; MAX_OPERANDS],
            numbers: [0; MAX_NUMBERS],
            stray: false,
        };
        let (mut o, mut n) = (0, 0);
        for item in op.info().items {
            match item {
                Item::Operand(field) => {
                    if field.kind == Kind::MaskCounter {
                        instr.operands[o] = Operand::reg(0, Size::B16);
                    }
                    o += 1;
                }
                Item::Number(field) => {
                    instr.numbers[n] = field.usual;
                    n += 1;
                }
            }
        }
        instr
    }

    /// With an operand. One that the operation does not have makes the encoder refuse the instruction.
    pub fn with(mut self, role: Role, operand: Operand) -> Instr {
        self.put(role, operand);
        self
    }

    /// With a number. One that the operation does not have makes the encoder refuse the instruction.
    pub fn set(mut self, number: Number, value: u32) -> Instr {
        self.put_number(number, value);
        self
    }

    /// In a form that is not the usual one.
    pub fn in_form(mut self, form: Form) -> Instr {
        self.form = form;
        self
    }

    /// See [`Instr::with`].
    pub fn put(&mut self, role: Role, operand: Operand) {
        match self.op.info().operands().position(|f| f.role == role) {
            Some(i) => self.operands[i] = operand,
            None => self.stray = true,
        }
    }

    /// See [`Instr::set`].
    pub fn put_number(&mut self, number: Number, value: u32) {
        match self.op.info().numbers().position(|f| f.number == number) {
            Some(i) => self.numbers[i] = value,
            None => self.stray = true,
        }
    }

    /// The operand, [`Operand::NONE`] if the operation has none of this role.
    pub fn operand(&self, role: Role) -> Operand {
        let position = self.op.info().operands().position(|f| f.role == role);
        position.map_or(Operand::NONE, |i| self.operands[i])
    }

    /// The number, 0 if the operation has none of this kind.
    pub fn get(&self, number: Number) -> u32 {
        let position = self.op.info().numbers().position(|f| f.number == number);
        position.map_or(0, |i| self.numbers[i])
    }

    /// Has the operation this number?
    pub fn has(&self, number: Number) -> bool {
        self.op.info().numbers().any(|f| f.number == number)
    }

    /// All operands that the operation has, with what they are.
    pub fn operands(&self) -> impl Iterator<Item = (Role, Kind, Operand)> {
        self.op.info().operands().zip(self.operands).map(|(f, o)| (f.role, f.kind, o))
    }

    /// Was something set that the operation does not have?
    pub fn is_stray(&self) -> bool {
        self.stray
    }

    /// `mov_imm` of the width of the register.
    pub fn mov_imm(dest: Operand, value: u32) -> Instr {
        let half = dest.as_reg().is_some_and(|(_, size, _)| size == Size::B16);
        let op = if half { Op::MovImm16 } else { Op::MovImm32 };
        Instr::new(op).with(Role::Dest, dest).set(Number::Value, value)
    }

    /// A copy: the bit operation that gives its first source.
    pub fn mov(dest: Operand, source: Operand) -> Instr {
        Instr::bitop(MOV_TABLE, dest, source, Operand::imm(0))
    }

    /// A bit operation by its truth table ([`Number::Table`]).
    pub fn bitop(table: u32, dest: Operand, a: Operand, b: Operand) -> Instr {
        Instr::binary(Op::Bitop, dest, a, b).set(Number::Table, table)
    }

    /// Destination and one source.
    pub fn unary(op: Op, dest: Operand, a: Operand) -> Instr {
        Instr::new(op).with(Role::Dest, dest).with(Role::A, a)
    }

    /// Destination and two sources.
    pub fn binary(op: Op, dest: Operand, a: Operand, b: Operand) -> Instr {
        Instr::unary(op, dest, a).with(Role::B, b)
    }

    /// Destination and three sources.
    pub fn ternary(op: Op, dest: Operand, a: Operand, b: Operand, c: Operand) -> Instr {
        Instr::binary(op, dest, a, b).with(Role::C, c)
    }

    /// A jump by a distance in bytes from its own start.
    pub fn jump(op: Op, distance: i32) -> Instr {
        Instr::new(op).set(Number::Target, distance as u32)
    }

    /// `wait` for a scoreboard slot.
    pub fn wait(slot: u32) -> Instr {
        Instr::new(Op::Wait).set(Number::Slot, slot)
    }

    /// An execution mask instruction whose comparison always holds: `push_exec`, unconditional else and while.
    pub fn always(op: Op, nest: u32) -> Instr {
        Instr::new(op)
            .with(Role::A, Operand::float(0))
            .with(Role::B, Operand::float(0))
            .set(Number::Nest, nest)
    }
}

/// Truth table of `mov`: the first source.
pub const MOV_TABLE: u32 = 10;

/// Truth table of `xor`.
pub const XOR_TABLE: u32 = 6;

/// Truth table of `not`: the first source inverted.
pub const NOT_TABLE: u32 = 5;
