//! What operations are made of: operands and numbers with the places of their bits, and the names of values.
//!
//! A constant is an operand or a number at a certain place; its name ends with the first bit of its last piece (of numbers:
//! of its first piece). Letters behind `A`, `B`, `C`, `DEST`: `I` integer, `L` up to 64 bits, `H` 16 bits, `F` float, `E` float of
//! 16 bits, `P` pair of registers, `S` with a bit that asks for sign extension.
//!
//! Facts: reference section 2, appendix A.

use crate::instr::{Number, Role};

/// Pieces of a field, the lowest first: first bit and width.
pub type Bits = &'static [(u8, u8)];

/// No such field.
pub const NONE: Bits = &[];

/// Something that an operation has.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Operand(Field),
    Number(NumberField),
}

/// How an operand is encoded. What each kind admits is in `encode` and `decode`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Result of 16 or 32 bits; of up to 64; of 16; a pair of registers.
    Dst,
    Dst64,
    Dst16,
    DstPair,
    /// `r0l`, without bits of its own.
    MaskCounter,
    /// Integer source of 16 or 32 bits or an immediate; also of 64; of 16.
    Src,
    Src64,
    Src16,
    /// Float source; with a type of 3 bits; a pair.
    Float,
    Float16,
    FloatPair,
    /// Value of a select; its size is that of the result.
    Select,
    /// 32-bit register by its number; by its half.
    Word,
    WordByHalf,
    /// Uniform pair by its 32-bit number.
    UniformPair,
    /// Index of a device or stack access: 32-bit register or 16-bit immediate.
    MemIndex,
    /// Index of a threadgroup access: 16-bit register or 16-bit immediate.
    LocalIndex,
    /// As many registers as the mask has bits.
    Data,
    /// 64-bit register or uniform.
    MemBase,
    AsyncPair,
    /// Descriptor of a block copy.
    AsyncBlock,
    /// Samples: an 8-bit immediate or a half register (the other way round from [`Kind::HalfOrImm`]).
    SampleSet,
    HalfOrImm,
    Half,
    /// Depth in two halves, stencil in one.
    DepthStencil,
    /// Optional result of a threadgroup atomic.
    LocalResult,
    /// Base of a threadgroup access.
    LocalBase,
    /// Coefficient register, also by number in a half register.
    Coefficient,
    CoefficientOnly,
    /// Sample number of an interpolation.
    IterSample,
    /// 1 to 4 results.
    Varying,
    /// 3 results for each coefficient.
    Triples,
    TextureState,
    SamplerState,
    Heap,
    Texture,
    Sampler,
    Coords,
    Lod,
    CompareOffset,
    AtomicSource,
    AtomicResult,
    /// Four registers with a texel.
    Texel,
}

/// An operand and its bits.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub role: Role,
    pub kind: Kind,
    /// Number of the register, uniform or immediate.
    pub value: Bits,
    /// What kind of place it is.
    pub select: Bits,
    /// Asks for sign extension.
    pub sign: Bits,
    /// abs, neg.
    pub modifier: Bits,
}

/// How a number is written.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    Dec,
    /// `0b` and all digits of the field.
    Bin,
    /// By name; a value without a name in decimal, one with an empty name not at all.
    Name(&'static [(u32, &'static str)]),
    /// `lsl n`, nothing for 0.
    Lsl,
    /// `mask 0x..` with so many ones, nothing for 0.
    MaskWidth,
    /// A signed number.
    Signed,
    /// `pc+n`.
    Target,
    /// Lowest bit first.
    TruthTable,
    /// Special register with its name.
    Special,
    /// Part of the mnemonic.
    Hidden,
}

/// A number and its bits.
#[derive(Clone, Copy, Debug)]
pub struct NumberField {
    pub number: Number,
    pub bits: Bits,
    /// The value that is known to work.
    pub usual: u32,
    pub style: Style,
}

const fn reg(role: Role, kind: Kind, value: Bits, select: Bits, sign: Bits, modifier: Bits) -> Item {
    Item::Operand(Field { role, kind, value, select, sign, modifier })
}

const fn num(number: Number, bits: Bits, usual: u32, style: Style) -> Item {
    Item::Number(NumberField { number, bits, usual, style })
}

/// Lengths of an operation, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    pub short: u8,
    pub long: u8,
    /// Bit that is set in the long form.
    pub bit: u8,
    /// The long form is the usual one.
    pub always_long: bool,
}

impl Lengths {
    pub(crate) const fn only(bytes: u8) -> Lengths {
        Lengths { short: bytes, long: bytes, bit: 0, always_long: false }
    }

    pub(crate) const fn short(short: u8, long: u8, bit: u8) -> Lengths {
        Lengths { short, long, bit, always_long: false }
    }

    pub(crate) const fn memory(short: u8, long: u8, bit: u8) -> Lengths {
        Lengths { short, long, bit, always_long: true }
    }

    /// Are there two forms?
    pub fn differ(self) -> bool {
        self.short != self.long
    }
}

/// Unit that executes an operation, in the cycle model of the reference driver (section 13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Float multiply and add.
    F,
    /// Simple integer and bit operations.
    Scib,
    /// Everything that takes longer.
    Ic,
    /// Costs nothing in the model.
    Free,
}

/// Cost in the cycle model of the reference driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    pub unit: Unit,
    pub latency: u8,
    /// Cycles until the unit takes the next one.
    pub throughput: u8,
}

const fn cost(unit: Unit, latency: u8, throughput: u8) -> Cost {
    Cost { unit, latency, throughput }
}

pub(crate) const FREE: Cost = cost(Unit::Free, 0, 0);
pub(crate) const F2_1: Cost = cost(Unit::F, 2, 1);
pub(crate) const S1_1: Cost = cost(Unit::Scib, 1, 1);
pub(crate) const S2_1: Cost = cost(Unit::Scib, 2, 1);
pub(crate) const S2_2: Cost = cost(Unit::Scib, 2, 2);
pub(crate) const S4_2: Cost = cost(Unit::Scib, 4, 2);
pub(crate) const S5_2: Cost = cost(Unit::Scib, 5, 2);
pub(crate) const S18_18: Cost = cost(Unit::Scib, 18, 18);
pub(crate) const S24_24: Cost = cost(Unit::Scib, 24, 24);
pub(crate) const I3_2: Cost = cost(Unit::Ic, 3, 2);
pub(crate) const I5_2: Cost = cost(Unit::Ic, 5, 2);
pub(crate) const I5_3: Cost = cost(Unit::Ic, 5, 3);
pub(crate) const I6_4: Cost = cost(Unit::Ic, 6, 4);

pub(crate) const DEST_40: Item = reg(Role::Dest, Kind::WordByHalf, &[(10, 6), (40, 2)], NONE, NONE, NONE);
pub(crate) const A_32: Item = reg(Role::A, Kind::WordByHalf, &[(20, 4), (32, 4)], NONE, NONE, NONE);
pub(crate) const DEST_44: Item = reg(Role::Dest, Kind::Dst, &[(9, 6), (44, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const DEST_60: Item = reg(Role::Dest, Kind::Dst, &[(9, 6), (60, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const DEST_28: Item = reg(Role::Dest, Kind::Dst, &[(9, 6), (28, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const DESTL_44: Item = reg(Role::Dest, Kind::Dst64, &[(9, 6), (44, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const ALS_42: Item = reg(Role::A, Kind::Src64, &[(16, 6), (42, 2)], &[(22, 4)], &[(26, 1)], NONE);
pub(crate) const BLS_40: Item = reg(Role::B, Kind::Src64, &[(28, 6), (40, 2)], &[(34, 4)], &[(38, 1)], NONE);
pub(crate) const DESTL_60: Item = reg(Role::Dest, Kind::Dst64, &[(9, 6), (60, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const AIS_58: Item = reg(Role::A, Kind::Src, &[(16, 6), (58, 2)], &[(22, 4)], &[(26, 1)], NONE);
pub(crate) const BIS_56: Item = reg(Role::B, Kind::Src, &[(28, 6), (56, 2)], &[(34, 4)], &[(38, 1)], NONE);
pub(crate) const CLS_54: Item = reg(Role::C, Kind::Src64, &[(40, 6), (54, 2)], &[(46, 4)], &[(50, 1)], NONE);
pub(crate) const AI_40: Item = reg(Role::A, Kind::Src, &[(28, 6), (40, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const AI_58: Item = reg(Role::A, Kind::Src, &[(16, 6), (58, 2)], &[(22, 4)], NONE, NONE);
pub(crate) const BI_56: Item = reg(Role::B, Kind::Src, &[(28, 6), (56, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const CI_54: Item = reg(Role::C, Kind::Src, &[(40, 6), (54, 2)], &[(46, 4)], NONE, NONE);
pub(crate) const AI_42: Item = reg(Role::A, Kind::Src, &[(16, 6), (42, 2)], &[(22, 4)], NONE, NONE);
pub(crate) const BI_40: Item = reg(Role::B, Kind::Src, &[(28, 6), (40, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const AF_58: Item = reg(Role::A, Kind::Float, &[(16, 6), (58, 2)], &[(22, 4)], NONE, &[(26, 2)]);
pub(crate) const BF_56: Item = reg(Role::B, Kind::Float, &[(28, 6), (56, 2)], &[(34, 4)], NONE, &[(38, 2)]);
pub(crate) const CF_54: Item = reg(Role::C, Kind::Float, &[(40, 6), (54, 2)], &[(46, 4)], NONE, &[(50, 2)]);
pub(crate) const DESTH_60: Item = reg(Role::Dest, Kind::Dst16, &[(9, 6), (60, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const AE_58: Item = reg(Role::A, Kind::Float16, &[(16, 6), (58, 2)], &[(22, 3)], NONE, &[(25, 2)]);
pub(crate) const BE_56: Item = reg(Role::B, Kind::Float16, &[(28, 6), (56, 2)], &[(34, 3)], NONE, &[(37, 2)]);
pub(crate) const CE_54: Item = reg(Role::C, Kind::Float16, &[(40, 6), (54, 2)], &[(46, 3)], NONE, &[(49, 2)]);
pub(crate) const AF_42: Item = reg(Role::A, Kind::Float, &[(16, 6), (42, 2)], &[(22, 4)], NONE, &[(26, 2)]);
pub(crate) const BF_40: Item = reg(Role::B, Kind::Float, &[(28, 6), (40, 2)], &[(34, 4)], NONE, &[(38, 2)]);
pub(crate) const DESTH_44: Item = reg(Role::Dest, Kind::Dst16, &[(9, 6), (44, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const AE_42: Item = reg(Role::A, Kind::Float16, &[(16, 6), (42, 2)], &[(22, 3)], NONE, &[(25, 2)]);
pub(crate) const BE_40: Item = reg(Role::B, Kind::Float16, &[(28, 6), (40, 2)], &[(34, 3)], NONE, &[(37, 2)]);
pub(crate) const A_9: Item = reg(Role::A, Kind::Word, &[(9, 7)], NONE, NONE, NONE);
pub(crate) const R0L: Item = reg(Role::Dest, Kind::MaskCounter, NONE, &[(7, 1)], NONE, NONE);
pub(crate) const DEST_76: Item = reg(Role::Dest, Kind::Dst, &[(9, 6), (76, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const AI_74: Item = reg(Role::A, Kind::Src, &[(16, 6), (74, 2)], &[(22, 4)], NONE, NONE);
pub(crate) const BI_72: Item = reg(Role::B, Kind::Src, &[(28, 6), (72, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const X_70: Item = reg(Role::X, Kind::Select, &[(40, 6), (70, 2)], &[(46, 3)], NONE, NONE);
pub(crate) const Y_68: Item = reg(Role::Y, Kind::Select, &[(52, 6), (68, 2)], &[(58, 3)], NONE, NONE);
pub(crate) const AF_74: Item = reg(Role::A, Kind::Float, &[(16, 6), (74, 2)], &[(22, 4)], NONE, &[(26, 2)]);
pub(crate) const BF_72: Item = reg(Role::B, Kind::Float, &[(28, 6), (72, 2)], &[(34, 4)], NONE, &[(38, 2)]);
pub(crate) const BH_40: Item = reg(Role::B, Kind::Src16, &[(28, 6), (40, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const DESTP_60: Item = reg(Role::Dest, Kind::DstPair, &[(9, 6), (60, 2)], &[(7, 2)], NONE, NONE);
pub(crate) const AP_58: Item =
    reg(Role::A, Kind::FloatPair, &[(16, 6), (58, 2)], &[(22, 4)], NONE, &[(52, 2)]);
pub(crate) const BP_56: Item =
    reg(Role::B, Kind::FloatPair, &[(28, 6), (56, 2)], &[(34, 4)], NONE, &[(38, 2)]);
pub(crate) const CP_54: Item =
    reg(Role::C, Kind::FloatPair, &[(40, 6), (54, 2)], &[(46, 4)], NONE, &[(50, 2)]);
pub(crate) const AL_42: Item = reg(Role::A, Kind::Src64, &[(16, 6), (42, 2)], &[(22, 4)], NONE, NONE);
pub(crate) const BL_40: Item = reg(Role::B, Kind::Src64, &[(28, 6), (40, 2)], &[(34, 4)], NONE, NONE);
pub(crate) const LOCAL_DATA_60: Item = reg(Role::Data, Kind::Data, &[(9, 6), (60, 2)], &[(8, 1)], NONE, NONE);
pub(crate) const TILE_SAMPLES_56: Item =
    reg(Role::Sample, Kind::SampleSet, &[(42, 6), (56, 2)], &[(22, 2)], NONE, NONE);
pub(crate) const VARYING_56: Item =
    reg(Role::Dest, Kind::Varying, &[(9, 6), (56, 2)], &[(8, 1), (30, 2)], NONE, NONE);
pub(crate) const COEFFICIENT_58: Item =
    reg(Role::Coefficient, Kind::Coefficient, &[(16, 6), (58, 2)], &[(23, 1)], NONE, NONE);
pub(crate) const SAMPLE_32: Item = reg(Role::Sample, Kind::IterSample, &[(32, 8)], NONE, NONE, NONE);
pub(crate) const INVERSE_60: Item =
    reg(Role::Inverse, Kind::CoefficientOnly, &[(24, 6), (60, 2)], NONE, NONE, NONE);
pub(crate) const TRIPLES_56: Item =
    reg(Role::Dest, Kind::Triples, &[(9, 6), (56, 2)], &[(8, 1), (30, 2)], NONE, NONE);
pub(crate) const DATA_40: Item = reg(Role::Data, Kind::Data, &[(10, 6), (40, 2)], &[(49, 1)], NONE, NONE);
pub(crate) const INDEX_56: Item =
    reg(Role::Index, Kind::MemIndex, &[(20, 4), (32, 4), (56, 8)], &[(24, 1)], NONE, NONE);
pub(crate) const TEXTURE_8: Item = reg(Role::Texture, Kind::TextureState, &[(8, 7)], NONE, NONE, NONE);
pub(crate) const UNIFORM_58: Item = reg(Role::Base, Kind::UniformPair, &[(58, 6)], NONE, NONE, NONE);
pub(crate) const INDEX_27: Item = reg(Role::Index, Kind::Word, &[(27, 7)], NONE, NONE, NONE);
pub(crate) const SAMPLER_8: Item = reg(Role::Sampler, Kind::SamplerState, &[(8, 5)], NONE, NONE, NONE);
pub(crate) const OUTPUT_24: Item = reg(Role::Data, Kind::Word, &[(10, 5), (24, 2)], NONE, NONE, NONE);
pub(crate) const SLOT_INDEX_26: Item =
    reg(Role::Index, Kind::HalfOrImm, &[(16, 6), (26, 2)], &[(23, 1)], NONE, NONE);
pub(crate) const ASYNC_9: Item = reg(Role::Data, Kind::AsyncPair, &[(9, 6)], &[(8, 1)], NONE, NONE);
pub(crate) const ASYNC_36: Item =
    reg(Role::Base, Kind::AsyncBlock, &[(16, 4), (36, 4)], &[(25, 1)], NONE, NONE);
pub(crate) const BASE_36: Item = reg(Role::Base, Kind::MemBase, &[(16, 4), (36, 4)], &[(27, 1)], NONE, NONE);
pub(crate) const LOCAL_BASE_58: Item =
    reg(Role::Base, Kind::LocalBase, &[(16, 6), (58, 2)], &[(22, 2)], NONE, NONE);
pub(crate) const LOCAL_INDEX_48: Item =
    reg(Role::Index, Kind::LocalIndex, &[(28, 6), (48, 10)], &[(34, 1)], NONE, NONE);
pub(crate) const TEXTURE_DATA_72: Item =
    reg(Role::Data, Kind::Data, &[(9, 6), (72, 2)], &[(8, 1)], NONE, NONE);
pub(crate) const HEAP_64: Item = reg(Role::Heap, Kind::Heap, &[(64, 5)], &[(38, 2)], NONE, NONE);
pub(crate) const TEXTURE_78: Item =
    reg(Role::Texture, Kind::Texture, &[(32, 6), (78, 2)], &[(38, 2)], NONE, NONE);
pub(crate) const SAMPLER_92: Item =
    reg(Role::Sampler, Kind::Sampler, &[(56, 6), (92, 2)], &[(62, 1)], NONE, NONE);
pub(crate) const COORDS_74: Item =
    reg(Role::Coords, Kind::Coords, &[(16, 6), (74, 2)], &[(22, 1), (47, 1)], NONE, NONE);
pub(crate) const LOD_76: Item = reg(Role::Lod, Kind::Lod, &[(24, 6), (76, 2)], NONE, NONE, NONE);
pub(crate) const COMPARE_94: Item =
    reg(Role::Compare, Kind::CompareOffset, &[(80, 6), (94, 2)], &[(91, 1)], NONE, NONE);
pub(crate) const ATOMIC_DATA_40: Item =
    reg(Role::Data, Kind::AtomicResult, &[(10, 6), (40, 2)], &[(47, 1)], NONE, NONE);
pub(crate) const SOURCE_48: Item = reg(Role::Source, Kind::AtomicSource, &[(48, 8)], NONE, NONE, NONE);
pub(crate) const ATOMIC_DATA_60: Item =
    reg(Role::Data, Kind::LocalResult, &[(9, 6), (60, 2)], &[(8, 1), (38, 1)], NONE, NONE);
pub(crate) const SOURCE_64: Item = reg(Role::Source, Kind::AtomicSource, &[(64, 8)], NONE, NONE, NONE);
pub(crate) const BLOCK_56: Item = reg(Role::Data, Kind::Half, &[(9, 6), (56, 2)], NONE, NONE, NONE);
pub(crate) const COORDS_58: Item =
    reg(Role::Coords, Kind::Coords, &[(16, 6), (58, 2)], &[(22, 1), (47, 1)], NONE, NONE);
pub(crate) const LOD_60: Item = reg(Role::Lod, Kind::HalfOrImm, &[(24, 6), (60, 2)], &[(31, 1)], NONE, NONE);
pub(crate) const TEXTURE_62: Item =
    reg(Role::Texture, Kind::Texture, &[(32, 6), (62, 2)], &[(38, 2)], NONE, NONE);
pub(crate) const TEXEL_56: Item = reg(Role::Data, Kind::Texel, &[(9, 6), (56, 2)], &[(8, 1)], NONE, NONE);
pub(crate) const HEAP_48: Item = reg(Role::Heap, Kind::Heap, &[(48, 5)], &[(38, 2)], NONE, NONE);
pub(crate) const A_40: Item = reg(Role::A, Kind::Word, &[(11, 5), (40, 2)], NONE, NONE, NONE);
pub(crate) const SAMPLES_24: Item =
    reg(Role::Sample, Kind::HalfOrImm, &[(9, 6), (24, 2)], &[(8, 1)], NONE, NONE);
pub(crate) const TEST_26: Item =
    reg(Role::Test, Kind::HalfOrImm, &[(16, 6), (26, 2)], &[(23, 1)], NONE, NONE);
pub(crate) const DEPTH_26: Item =
    reg(Role::Data, Kind::DepthStencil, &[(16, 6), (26, 2)], &[(29, 1), (30, 1)], NONE, NONE);

pub(crate) const ATOMIC_24: Item = num(Number::Atomic, &[(24, 4)], 0, Style::Name(ATOMICS));
pub(crate) const ATOMIC_6: Item = num(Number::Atomic, &[(6, 4)], 0, Style::Name(ATOMICS));
pub(crate) const CODE1_28: Item = num(Number::Code1, &[(28, 6)], 0, Style::Bin);
pub(crate) const CODE1_38: Item = num(Number::Code1, &[(38, 2)], 0, Style::Bin);
pub(crate) const CODE1_47: Item = num(Number::Code1, &[(47, 1)], 0, Style::Bin);
pub(crate) const CODE2_26_WIDE: Item = num(Number::Code2, &[(26, 16)], 0, Style::Bin);
pub(crate) const CODE2_26: Item = num(Number::Code2, &[(26, 2)], 0, Style::Bin);
pub(crate) const CODE2_38: Item = num(Number::Code2, &[(38, 2)], 0, Style::Bin);
pub(crate) const CODE3_26: Item = num(Number::Code3, &[(26, 2)], 0, Style::Bin);
pub(crate) const COMPARE_23: Item = num(Number::Compare, &[(23, 1)], 0, Style::Dec);
pub(crate) const FCOND_13: Item =
    num(Number::Condition, &[(13, 3), (8, 1)], 0, Style::Name(FLOAT_CONDITIONS));
pub(crate) const ICOND_13: Item =
    num(Number::Condition, &[(13, 3), (8, 1)], 0, Style::Name(INTEGER_CONDITIONS));
pub(crate) const FCOND_61_NOT: Item =
    num(Number::Condition, &[(61, 3), (47, 1)], 0, Style::Name(FLOAT_CONDITIONS));
pub(crate) const ICOND_61_NOT: Item =
    num(Number::Condition, &[(61, 3), (47, 1)], 0, Style::Name(INTEGER_CONDITIONS));
pub(crate) const FCOND_61: Item = num(Number::Condition, &[(61, 3)], 0, Style::Name(FLOAT_CONDITIONS));
pub(crate) const ICOND_61: Item = num(Number::Condition, &[(61, 3)], 0, Style::Name(INTEGER_CONDITIONS));
pub(crate) const DIM_40_55: Item = num(Number::Dim, &[(40, 3), (55, 1)], 0, Style::Name(DIMS));
pub(crate) const DIM_40_71: Item = num(Number::Dim, &[(40, 3), (71, 1)], 0, Style::Name(DIMS));
pub(crate) const ELIDE_46: Item = num(Number::Elide, &[(46, 1)], 0, Style::Name(ELIDE));
pub(crate) const FORMAT_24: Item = num(Number::Format, &[(24, 4)], 0, Style::Name(FORMATS));
pub(crate) const FORMAT_7_SHORT: Item = num(Number::Format, &[(7, 2)], 1, Style::Name(FORMATS));
pub(crate) const FORMAT_7: Item = num(Number::Format, &[(7, 3), (48, 1)], 0, Style::Name(FORMATS));
pub(crate) const FORMAT_8_64: Item = num(Number::Format, &[(8, 1), (64, 3)], 0, Style::Name(FORMATS));
pub(crate) const FORMAT_8_50: Item = num(Number::Format, &[(8, 2), (50, 2)], 0, Style::Name(FORMATS));
pub(crate) const FORWARD_22: Item = num(Number::Forward, &[(22, 1)], 0, Style::Name(FORWARDING));
pub(crate) const GATHER_86: Item = num(Number::Gather, &[(86, 5)], 0, Style::Name(GATHERS));
pub(crate) const INTERPOLATION_48: Item =
    num(Number::Interpolation, &[(48, 2)], 0, Style::Name(INTERPOLATIONS));
pub(crate) const KILL_52: Item = num(Number::Kill, &[(52, 1)], 0, Style::Bin);
pub(crate) const KILL_62: Item = num(Number::Kill, &[(62, 1)], 0, Style::Bin);
pub(crate) const KILL_69: Item = num(Number::Kill, &[(69, 2)], 0, Style::Bin);
pub(crate) const LOD_MODE_52: Item = num(Number::LodMode, &[(52, 4)], 0, Style::Name(LOD_MODES));
pub(crate) const MASK_36: Item = num(Number::Mask, &[(36, 4)], 0, Style::Name(CHANNELS));
pub(crate) const TEXEL_MASK_48: Item = num(Number::Mask, &[(48, 4)], 0, Style::Name(TEXEL_CHANNELS));
pub(crate) const MASK_52: Item = num(Number::Mask, &[(52, 4)], 0, Style::Name(CHANNELS));
pub(crate) const MAP_MODE_16: Item = num(Number::Mode, &[(16, 4)], 0, Style::Name(MAP_OPS));
pub(crate) const CONVERT_16: Item = num(Number::Mode, &[(16, 6)], 0, Style::Name(CONVERSIONS));
pub(crate) const COPY_47: Item = num(Number::Mode, &[(47, 1)], 0, Style::Name(COPIES));
pub(crate) const NEST_11: Item = num(Number::Nest, &[(11, 2)], 0, Style::Dec);
pub(crate) const OFFSET_28: Item = num(Number::Offset, &[(28, 7), (40, 2)], 0, Style::Dec);
pub(crate) const QUERY_30: Item = num(Number::Query, &[(30, 2)], 0, Style::Name(QUERIES));
pub(crate) const CONVERT_ROUND_26: Item = num(Number::Round, &[(26, 2)], 0, Style::Name(CONVERT_ROUNDINGS));
pub(crate) const ROUND_53: Item = num(Number::Round, &[(53, 1)], 0, Style::Name(ROUNDINGS));
pub(crate) const SAT: Item = num(Number::Saturate, &[(6, 1)], 0, Style::Hidden);
pub(crate) const SHIFT_39: Item = num(Number::Shift, &[(39, 1), (52, 2)], 0, Style::Lsl);
pub(crate) const SHIFT_42: Item = num(Number::Shift, &[(42, 2)], 0, Style::Lsl);
pub(crate) const SLOT_30: Item = num(Number::Slot, &[(30, 1)], 0, Style::Dec);
pub(crate) const TEXTURE_SLOT_63: Item = num(Number::Slot, &[(63, 1)], 0, Style::Bin);
pub(crate) const SLOT_8: Item = num(Number::Slot, &[(8, 1)], 0, Style::Dec);
pub(crate) const SPACE_36: Item = num(Number::Space, &[(36, 1)], 0, Style::Name(MAP_SPACES));
pub(crate) const SPECIAL_16: Item = num(Number::Special, &[(16, 6), (26, 2)], 0, Style::Special);
pub(crate) const TABLE_26: Item = num(Number::Table, &[(26, 2), (38, 2)], 0, Style::TruthTable);
pub(crate) const TARGET_16: Item = num(Number::Target, &[(16, 32)], 0, Style::Target);
pub(crate) const TARGET_16_SHORT: Item = num(Number::Target, &[(16, 8)], 0, Style::Target);
pub(crate) const U0_22: Item = num(Number::U0, &[(22, 2)], 0, Style::Dec);
pub(crate) const U0_23: Item = num(Number::U0, &[(23, 1)], 0, Style::Dec);
pub(crate) const U0_35: Item = num(Number::U0, &[(35, 1)], 0, Style::Dec);
pub(crate) const U0_8: Item = num(Number::U0, &[(8, 2)], 0, Style::Dec);
pub(crate) const U1_10: Item = num(Number::U1, &[(10, 2)], 0, Style::Dec);
pub(crate) const U1_22: Item = num(Number::U1, &[(22, 2)], 0, Style::Dec);
pub(crate) const U1_23: Item = num(Number::U1, &[(23, 1)], 1, Style::Dec);
pub(crate) const U1_25: Item = num(Number::U1, &[(25, 2)], 2, Style::Dec);
pub(crate) const U1_26: Item = num(Number::U1, &[(26, 1)], 0, Style::Dec);
pub(crate) const STACK_U1_26: Item = num(Number::U1, &[(26, 1)], 1, Style::Dec);
pub(crate) const U1_31: Item = num(Number::U1, &[(31, 1)], 1, Style::Dec);
pub(crate) const U1_40: Item = num(Number::U1, &[(40, 6)], 0, Style::Dec);
pub(crate) const U1_43: Item = num(Number::U1, &[(43, 4)], 9, Style::Dec);
pub(crate) const U1_6: Item = num(Number::U1, &[(6, 2)], 0, Style::Dec);
pub(crate) const MAP_U1_8: Item = num(Number::U1, &[(8, 2)], 0, Style::Bin);
pub(crate) const U2_28: Item = num(Number::U2, &[(28, 2)], 0, Style::Dec);
pub(crate) const MAP_U2_30: Item = num(Number::U2, &[(30, 1)], 0, Style::Bin);
pub(crate) const U2_30: Item = num(Number::U2, &[(30, 1)], 0, Style::Dec);
pub(crate) const U2_36: Item = num(Number::U2, &[(36, 3)], 0, Style::Dec);
pub(crate) const STACK_U2_36: Item = num(Number::U2, &[(36, 3)], 2, Style::Dec);
pub(crate) const U2_44: Item = num(Number::U2, &[(44, 3)], 0, Style::Dec);
pub(crate) const U2_47: Item = num(Number::U2, &[(47, 1)], 0, Style::Dec);
pub(crate) const U2_67: Item = num(Number::U2, &[(67, 1)], 1, Style::Dec);
pub(crate) const U2_8: Item = num(Number::U2, &[(8, 2)], 0, Style::Dec);
pub(crate) const U3_12: Item = num(Number::U3, &[(12, 4)], 0, Style::Dec);
pub(crate) const U3_28: Item = num(Number::U3, &[(28, 2)], 0, Style::Dec);
pub(crate) const U3_31: Item = num(Number::U3, &[(31, 1)], 1, Style::Dec);
pub(crate) const U3_35: Item = num(Number::U3, &[(35, 3)], 2, Style::Dec);
pub(crate) const MAP_U3_37: Item = num(Number::U3, &[(37, 3)], 0, Style::Bin);
pub(crate) const TEXTURE_U3_43: Item = num(Number::U3, &[(43, 4)], 12, Style::Bin);
pub(crate) const IMAGE_U3_43: Item = num(Number::U3, &[(43, 4)], 9, Style::Dec);
pub(crate) const U3_44: Item = num(Number::U3, &[(44, 3)], 0, Style::Dec);
pub(crate) const U3_50: Item = num(Number::U3, &[(50, 2)], 0, Style::Dec);
pub(crate) const U4_40: Item = num(Number::U4, &[(40, 8)], 128, Style::Dec);
pub(crate) const U4_42: Item = num(Number::U4, &[(42, 3)], 4, Style::Dec);
pub(crate) const MAP_U4_42: Item = num(Number::U4, &[(42, 5)], 16, Style::Bin);
pub(crate) const COHERENT_U4_44: Item = num(Number::U4, &[(44, 3)], 7, Style::Dec);
pub(crate) const COHERENT_U4_45: Item = num(Number::U4, &[(45, 2)], 3, Style::Dec);
pub(crate) const U4_50: Item = num(Number::U4, &[(50, 6)], 0, Style::Dec);
pub(crate) const U4_53: Item = num(Number::U4, &[(53, 3)], 0, Style::Dec);
pub(crate) const U5_44: Item = num(Number::U5, &[(44, 3)], 4, Style::Dec);
pub(crate) const U5_45: Item = num(Number::U5, &[(45, 2)], 2, Style::Dec);
pub(crate) const MAP_U5_48: Item = num(Number::U5, &[(48, 8)], 16, Style::Bin);
pub(crate) const U5_50: Item = num(Number::U5, &[(50, 2)], 0, Style::Dec);
pub(crate) const U5_54: Item = num(Number::U5, &[(54, 1)], 0, Style::Dec);
pub(crate) const U5_62: Item = num(Number::U5, &[(62, 2)], 0, Style::Dec);
pub(crate) const U5_72: Item = num(Number::U5, &[(72, 8)], 0, Style::Dec);
pub(crate) const U6_16: Item = num(Number::U6, &[(16, 4)], 0, Style::Dec);
pub(crate) const U6_44: Item = num(Number::U6, &[(44, 1)], 0, Style::Dec);
pub(crate) const COHERENT_U6_44: Item = num(Number::U6, &[(44, 1)], 1, Style::Dec);
pub(crate) const U7_24: Item = num(Number::U7, &[(24, 2)], 0, Style::Dec);
pub(crate) const U8_27: Item = num(Number::U8, &[(27, 3)], 0, Style::Dec);
pub(crate) const U9_31: Item = num(Number::U9, &[(31, 1)], 0, Style::Dec);
pub(crate) const UNSIGNED_25: Item = num(Number::Unsigned, &[(25, 1)], 0, Style::Name(EXTENSIONS));
pub(crate) const VALUE_16_HALF: Item = num(Number::Value, &[(16, 16)], 0, Style::Dec);
pub(crate) const VALUE_16_WORD: Item = num(Number::Value, &[(16, 32)], 0, Style::Dec);
pub(crate) const TILE_VALUE_16: Item = num(Number::Value, &[(16, 6), (58, 2)], 0, Style::Dec);
pub(crate) const SIGNED_20: Item = num(Number::Value, &[(20, 4), (32, 4), (56, 8)], 0, Style::Signed);
pub(crate) const VALUE_8: Item = num(Number::Value, &[(8, 10)], 0, Style::Dec);
pub(crate) const VALUE_8_BYTE: Item = num(Number::Value, &[(8, 8)], 0, Style::Dec);
pub(crate) const WIDTH_38: Item = num(Number::Width, &[(38, 2), (50, 2), (63, 1)], 0, Style::MaskWidth);

type Names = &'static [(u32, &'static str)];

/// Conversions.
pub const CONVERSIONS: Names = &[
    (0, "u8_to_f"),
    (1, "s8_to_f"),
    (4, "f_to_u16"),
    (5, "f_to_s16"),
    (6, "u16_to_f"),
    (7, "s16_to_f"),
    (8, "f_to_u32"),
    (9, "f_to_s32"),
    (10, "u32_to_f"),
    (11, "s32_to_f"),
];
pub(crate) const CONVERT_ROUNDINGS: Names = &[(0, "rtz"), (1, "rte")];
/// Comparisons of integers; bit 2 is signed, bit 3 inverts.
pub const INTEGER_CONDITIONS: Names = &[
    (0, "ueq"),
    (1, "ult"),
    (2, "ugt"),
    (4, "seq"),
    (5, "slt"),
    (6, "sgt"),
    (8, "nueq"),
    (9, "ugte"),
    (10, "ulte"),
    (12, "nseq"),
    (13, "sgte"),
    (14, "slte"),
];
/// Comparisons of floats; bit 3 inverts. In ltn and gtn a NaN loses.
pub const FLOAT_CONDITIONS: Names = &[
    (0, "eq"),
    (1, "lt"),
    (2, "gt"),
    (3, "ltn"),
    (5, "gte"),
    (6, "lte"),
    (7, "gtn"),
    (8, "neq"),
    (9, "nlt"),
    (10, "ngt"),
    (11, "nltn"),
    (13, "ngte"),
    (14, "nlte"),
    (15, "ngtn"),
];
/// Formats of memory (section 5.1).
pub const FORMATS: Names = &[
    (0, "i8"),
    (1, "i16"),
    (2, "i32"),
    (3, "f16"),
    (4, "u8norm"),
    (5, "s8norm"),
    (6, "u16norm"),
    (7, "s16norm"),
    (8, "rgb10a2"),
    (10, "srgba8"),
    (12, "rg11b10f"),
    (13, "rgb9e5"),
    (14, "rg11b10f.rtz"),
    (15, "rgb9e5.rtz"),
];
/// Masks of elements.
pub const CHANNELS: Names = &[
    (0, ""),
    (1, "x"),
    (2, "y"),
    (3, "xy"),
    (4, "z"),
    (5, "xz"),
    (6, "yz"),
    (7, "xyz"),
    (8, "w"),
    (9, "xw"),
    (10, "yw"),
    (11, "xyw"),
    (12, "zw"),
    (13, "xzw"),
    (14, "yzw"),
    (15, "xyzw"),
];
pub(crate) const FORWARDING: Names = &[(0, ""), (1, "forward")];
pub(crate) const ELIDE: Names = &[(0, ""), (1, "elide")];
pub(crate) const INTERPOLATIONS: Names = &[(0, "center"), (1, "sample"), (2, "centroid"), (3, "sample")];
pub(crate) const COPIES: Names = &[(0, "copy_1d"), (1, "copy_2d")];
pub(crate) const EXTENSIONS: Names = &[(0, "signed"), (1, "unsigned")];
pub(crate) const QUERIES: Names = &[(0, ""), (2, "query_lod")];
pub(crate) const GATHERS: Names = &[
    (0, "none"),
    (1, "compare"),
    (2, "gather_r"),
    (3, "gather_depth"),
    (6, "gather_g"),
    (10, "gather_b"),
    (14, "gather_a"),
];
/// The same for texels, where there must be one.
pub const TEXEL_CHANNELS: Names = CHANNELS.split_at(1).1;
/// Dimensions of textures.
pub const DIMS: Names = &[
    (0, "tex_1d"),
    (1, "tex_1d_array"),
    (2, "tex_2d"),
    (3, "tex_2d_array"),
    (4, "tex_2d_ms"),
    (5, "tex_3d"),
    (6, "tex_cube"),
    (7, "tex_cube_array"),
    (8, "tex_2d_ms_array"),
];
pub(crate) const LOD_MODES: Names = &[
    (0, "auto_lod"),
    (1, "auto_lod_bias"),
    (2, "lod_min"),
    (4, "lod_grad"),
    (5, "auto_lod_bias"),
    (6, "lod_min"),
    (12, "lod_grad_min"),
];
/// Operations of atomics.
pub const ATOMICS: Names = &[
    (0, "add"),
    (1, "sub"),
    (2, "xchg"),
    (3, "cmpxchg"),
    (4, "umin"),
    (5, "imin"),
    (6, "umax"),
    (7, "imax"),
    (8, "and"),
    (9, "or"),
    (10, "xor"),
];
pub(crate) const ROUNDINGS: Names = &[(0, "rte"), (1, "rtz")];
pub(crate) const MAP_OPS: Names = &[(0, "unmap"), (1, "map")];
pub(crate) const MAP_SPACES: Names = &[(0, "target0"), (1, "target1")];

/// Name of a special register (section 11) in the public disassembler.
pub fn special_name(number: u32) -> Option<&'static str> {
    SPECIALS.iter().find(|s| s.0 == number).map(|s| s.1)
}

const SPECIALS: Names = &[
    (0, "threadgroup_position_in_grid.x"),
    (1, "threadgroup_position_in_grid.y"),
    (2, "threadgroup_position_in_grid.z"),
    (4, "threads_per_threadgroup.x"),
    (5, "threads_per_threadgroup.y"),
    (6, "threads_per_threadgroup.z"),
    (8, "dispatch_threads_per_threadgroup.x"),
    (9, "dispatch_threads_per_threadgroup.y"),
    (10, "dispatch_threads_per_threadgroup.z"),
    (20, "core_index"),
    (21, "vm_slot"),
    (48, "thread_position_in_threadgroup.x"),
    (49, "thread_position_in_threadgroup.y"),
    (50, "thread_position_in_threadgroup.z"),
    (51, "thread_index_in_threadgroup"),
    (52, "thread_index_in_simdgroup"),
    (53, "simdgroup_index_in_threadgroup"),
    (56, "active_thread_index_in_quadgroup"),
    (58, "active_thread_index_in_simdgroup"),
    (60, "internal_coverage_mask"),
    (62, "backfacing"),
    (63, "is_active_thread"),
    (80, "thread_position_in_grid.x"),
    (81, "thread_position_in_grid.y"),
    (82, "thread_position_in_grid.z"),
    (124, "input_sample_mask"),
    (144, "opfifo_cmd"),
    (146, "opfifo_data_l"),
    (147, "opfifo_data_h"),
];
