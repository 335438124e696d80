//! Machine instructions before allocation: what `select` makes and `finish` expands.
//!
//! One [`MInst`] is one thing that must not be torn apart by the allocator: an ALU operation, but also a whole
//! memory access with its thread switch, a 32-bit multiplication with its hidden register, or a comparison together
//! with what it guards. Flags therefore never live between two of these instructions, and no edit can come between a
//! push and its consumer; `finish` leaves a push out when the flags already hold the same comparison.
//!
//! # Operands
//! In the allocator's operand list of an instruction stand, in this order:
//! 1. the defs (`dst`, or all result words);
//! 2. the uses of the test: the mask if [`Test::mask`], then the [`Src::Use`] sources of its comparisons;
//! 3. the uses of the operation: its [`Src::Use`] sources in order, or address and then data words;
//!    ([`MInst::Broadcast`]: the value, then the lane);
//! 4. for a predicated write the previous version, a use to which the def is tied.

use crate::instr::{Op, Pack, Unpack};
use crate::magic;
use kempe_ir::io::Interpolation;
use kempe_mir::UniformSource;

/// A source of a machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Src {
    #[default]
    None,
    /// The next use operand.
    Use,
    /// A small immediate, by its code 0 to 47. At most one different code in an instruction (test and operation
    /// are expanded to instructions of their own, each with its own limit).
    Imm(u8),
}

/// A comparison into flag A.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CmpOp {
    /// `a != 0` (one source).
    NonZero,
    Ieq,
    Slt,
    Ult,
    /// False when unordered.
    Feq,
    Flt,
    Fle,
}

/// One comparison, possibly inverted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cmp {
    pub op: CmpOp,
    pub src: [Src; 2],
    /// Only `None` or `Abs`, on float comparisons.
    pub unpack: [Unpack; 2],
    pub invert: bool,
}

/// Most comparisons in one test.
pub const MAX_CMPS: usize = 3;

/// A per-lane condition: `(mask == 0) && (not ^ (cmp && more[0] && more[1]))`, each part optional (at least one is
/// there). An *or* is the inversion of an *and* of inverted comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Test {
    /// The first use is the execution mask: a lane runs where it is 0.
    pub mask: bool,
    pub cmp: Option<Cmp>,
    /// Only behind `cmp`, from the front.
    pub more: [Option<Cmp>; MAX_CMPS - 1],
    /// The comparisons together are inverted; only when there is more than one.
    pub not: bool,
}

impl Test {
    /// The lanes that run.
    pub const RUNNING: Test = Test { mask: true, cmp: None, more: [None; MAX_CMPS - 1], not: false };

    /// One comparison in all lanes.
    pub fn of(cmp: Cmp) -> Test {
        Test { mask: false, cmp: Some(cmp), more: [None; MAX_CMPS - 1], not: false }
    }

    pub fn cmps(&self) -> impl Iterator<Item = &Cmp> {
        self.cmp.iter().chain(self.more.iter().flatten())
    }
}

/// Which memory an access touches, for the order of loads after stores. A bit set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemClass(pub u8);

impl MemClass {
    /// Never written by the program.
    pub const READ_ONLY: MemClass = MemClass(0);
    pub const STORAGE: MemClass = MemClass(1);
    pub const SHARED: MemClass = MemClass(2);
    /// Private arrays in scratch memory.
    pub const PRIVATE: MemClass = MemClass(4);
    /// Spill slots.
    pub const SPILL: MemClass = MemClass(8);
    /// Texels of images that the program writes.
    pub const IMAGE: MemClass = MemClass(16);
    /// Sample flags of the lanes.
    pub const SAMPLES: MemClass = MemClass(32);
    /// Rows of the VPM, inputs and outputs.
    pub const VERTEX: MemClass = MemClass(64);
    /// The queue of varyings.
    pub const VARYINGS: MemClass = MemClass(128);
    /// What sample flags decide about.
    const EFFECTS: u8 = Self::STORAGE.0 | Self::SHARED.0 | Self::IMAGE.0;
}

/// The type field of a general TMU access (reference 12.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TmuType {
    I8,
    I16,
    Vec2,
    Vec3,
    Vec4,
    U8,
    U16,
    Word,
}

/// Registers that an access of the texture unit writes before the S coordinate, in this order (reference 12.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Coordinates {
    pub t: bool,
    pub r: bool,
    /// Array layer or face.
    pub i: bool,
    /// Level of detail, or what is added to it.
    pub b: bool,
    /// Reference of a comparison.
    pub dref: bool,
    /// Offset in texels.
    pub off: bool,
}

impl Coordinates {
    /// Writes, that of S included.
    pub fn count(self) -> usize {
        1 + self.registers().count()
    }

    /// The registers behind S in the order of their operands.
    pub fn registers(self) -> impl Iterator<Item = u8> {
        [
            (self.t, magic::TMUT),
            (self.r, magic::TMUR),
            (self.i, magic::TMUI),
            (self.b, magic::TMUB),
            (self.dref, magic::TMUDREF),
            (self.off, magic::TMUOFF),
        ]
        .into_iter()
        .filter_map(|(there, register)| there.then_some(register))
    }
}

/// What the S coordinate is written to, which starts the access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Start {
    /// A texel by its integer coordinates.
    #[default]
    Texel,
    /// A lookup with its level from the quad.
    Quad,
    /// A lookup in a cube.
    Cube,
    /// A lookup with its level given.
    Level,
}

impl Start {
    pub fn register(self) -> u8 {
        match self {
            Start::Texel => magic::TMUSF,
            Start::Quad => magic::TMUS,
            Start::Cube => magic::TMUSCM,
            Start::Level => magic::TMUSLOD,
        }
    }
}

/// An access of the texture unit: to a texel, or through a sampler (reference 12.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TextureOp {
    /// P0: the texture state with the mask of result words in its low bits.
    pub p0: UniformSource,
    /// P1 and P2, where they are not the default. P1 has the state of a sampler in it.
    pub p1: Option<UniformSource>,
    pub p2: Option<u32>,
    pub start: Start,
    pub coordinates: Coordinates,
    /// Words written with it.
    pub data: u8,
    /// Result words.
    pub results: u8,
    pub writes: bool,
    pub class: MemClass,
}

impl Default for TextureOp {
    /// A texel access that does nothing.
    fn default() -> TextureOp {
        TextureOp {
            p0: UniformSource::Const(0),
            p1: None,
            p2: None,
            start: Start::default(),
            coordinates: Coordinates::default(),
            data: 0,
            results: 0,
            writes: false,
            class: MemClass::READ_ONLY,
        }
    }
}

/// When a branch is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// The test holds in lane 0: for conditions that are the same in all lanes. Lane 0 of a batch always exists.
    Lane0,
    /// The test fails in lane 0.
    NotLane0,
    /// The test holds in some live lane (lanes without sample flags are ignored).
    Any,
    /// The test holds in no live lane.
    NoLane,
}

/// One machine instruction before allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MInst {
    /// First instruction of the program: its defs are fixed to the payload rows.
    Entry,
    /// `dst = op(src)`; with a test only in the lanes where it holds, the def then being tied to the old version.
    Alu { op: Op, pack: Pack, src: [Src; 2], unpack: [Unpack; 2], test: Option<Test> },
    /// `dst = test ? src[0] : src[1]`.
    Select { test: Test, src: [Src; 2], unpack: [Unpack; 2] },
    /// `dst = a * b` modulo 2^32.
    Mul32 { src: [Src; 2] },
    /// `dst` = the next word of the uniform stream (made again by a recipe of the same number).
    Uniform(UniformSource),
    /// `count` consecutive words of memory that never changes, through the side band, from the address in the next word of
    /// the uniform stream. A recipe for one word has the same form.
    Read { address: UniformSource, count: u8 },
    /// The same from the address in the one use (the same in all lanes).
    Sideband { count: u8 },
    /// Loads `count` result words (`Vec2`..`Vec4`) or one.
    TmuLoad { ty: TmuType, count: u8, class: MemClass, test: Option<Test> },
    /// Stores `count` words.
    TmuStore { ty: TmuType, count: u8, class: MemClass, test: Option<Test> },
    /// Atomic of operation code `op`; `data` data words (0: increment, decrement; 2: compare, new). One result.
    TmuAtomic { op: u8, data: u8, class: MemClass, test: Option<Test> },
    /// An access of the texture unit: its uses are S, the other coordinates in their order, then data words.
    Texture { op: TextureOp, test: Option<Test> },
    /// `dst` in every lane = one bit for each lane where the test holds; with `live` of those only that exist, which are
    /// the lanes with a sample flag. The bit of lane k is bit k.
    Ballot { test: Option<Test>, live: bool },
    /// `dst` in lane k = `src` in lane (k + by) mod 16.
    Rotate { by: u8 },
    /// 4.2: `dst` in every lane = the first use in the lane that the source, the same in all lanes, names.
    Broadcast { lane: Src },
    /// The next varying of a fragment program: `dst`, under use of W where it is in perspective. `dst` is written before W
    /// is read.
    Varying { how: Interpolation },
    /// Writes a row: sources row and value. `op`: `Stvpmv` where the row is the same in all lanes, `Stvpmd`, or `Stvpmp` for a row of
    /// the patch. `once`: no other write of the program is to the same row of a lane.
    VertexOutput { op: Op, src: [Src; 2], test: Option<Test>, once: bool },
    /// Reads back what a control program has written: `LdvpmgOut` with row and vertex, `Ldvpmp` with the row of the patch.
    RowRead { op: Op, src: [Src; 2] },
    /// Waits for these writes.
    VertexWait,
    /// Sample flags of the lanes where the test holds.
    SetSamples { src: Src, test: Option<Test> },
    /// Sample flags of every lane, under the bits of the use. The def is only a place for the flags on the way: they must not go
    /// through memory, which a dead quad does not read.
    MaskSamples,
    /// A write to the tile buffer, `op` being `Mov` or `Vfpack`: with a configuration byte, or what the one before asked for. The first
    /// one of a program comes behind its last thread switch.
    Tlb { config: Option<u8>, op: Op, src: [Src; 2], unpack: [Unpack; 2], first: bool },
    /// All stores so far are done before anything that follows.
    TmuWait,
    /// Work-group barrier, after a [`MInst::TmuWait`].
    Barrier,
    /// Terminator: to successor 0 when taken, else to successor 1, which is the next block.
    Branch { test: Test, when: When },
    /// Terminator: to the only successor (no code when it is the next block).
    Jump,
    /// Terminator: end of the program.
    End,
}

impl MInst {
    /// Cycles of doing it once more where its uses are in registers, if that gives the same: for operations whose result depends on
    /// nothing else.
    pub fn repeat_cost(&self) -> Option<f32> {
        match self {
            MInst::Alu { op, src, test: None, .. } if op.is_pure() && src.contains(&Src::Use) => {
                // (Section 8: the result of a special function comes later, and leaves a register waiting.)
                Some(if op.is_sfu() { 3.0 } else { 1.0 })
            }
            _ => None,
        }
    }
}

impl kempe_mir::order::Schedule for MInst {
    fn latency(&self) -> u32 {
        match self {
            MInst::TmuLoad { .. } | MInst::TmuAtomic { .. } => TMU_LATENCY,
            MInst::Texture { op, .. } if op.results != 0 => TMU_LATENCY,
            MInst::Sideband { .. } | MInst::Read { .. } => 5,
            MInst::Alu { op, .. } if op.is_sfu() => 2,
            MInst::Select { .. } | MInst::Mul32 { .. } | MInst::Rotate { .. } | MInst::Broadcast { .. } => 2,
            MInst::Ballot { .. } => 4,
            MInst::Varying { .. } => 3,
            _ => 1,
        }
    }

    fn memory(&self) -> kempe_mir::order::Memory {
        use kempe_mir::order::Memory;
        match *self {
            MInst::TmuLoad { class, .. } if class == MemClass::READ_ONLY => Memory::None,
            MInst::TmuLoad { class, .. } => Memory::Read(class.0),
            MInst::TmuStore { class, .. } | MInst::TmuAtomic { class, .. } => Memory::Write(class.0),
            MInst::Texture { op, .. } if op.writes => Memory::Write(op.class.0),
            MInst::Texture { op, .. } if op.class == MemClass::READ_ONLY => Memory::None,
            MInst::Texture { op, .. } => Memory::Read(op.class.0),
            MInst::TmuWait | MInst::Barrier => Memory::Fence,
            MInst::Varying { .. } => Memory::Write(MemClass::VARYINGS.0),
            MInst::SetSamples { .. } | MInst::MaskSamples => {
                Memory::Write(MemClass::SAMPLES.0 | MemClass::EFFECTS)
            }
            MInst::Alu { op: Op::Msf, .. } => Memory::Read(MemClass::SAMPLES.0),
            // Rows of other stages' vertices lie elsewhere.
            MInst::Alu { op: Op::LdvpmgIn, .. } => Memory::None,
            MInst::Alu { op, .. } if op.is_vpm_read() => Memory::Read(MemClass::VERTEX.0),
            MInst::RowRead { .. } => Memory::Read(MemClass::VERTEX.0),
            // Every row is written once (`lower::exits`, `lower::vertices`).
            MInst::VertexOutput { once: true, .. } => Memory::Output(MemClass::VERTEX.0),
            MInst::VertexOutput { .. } => Memory::Write(MemClass::VERTEX.0),
            MInst::VertexWait => Memory::Write(MemClass::VERTEX.0),
            _ => Memory::None,
        }
    }

    fn pinned(&self) -> bool {
        matches!(self, MInst::Entry | MInst::Branch { .. } | MInst::Jump | MInst::End | MInst::Tlb { .. })
    }

    fn is_cheap(&self) -> bool {
        match self {
            MInst::Uniform(_) => true,
            MInst::Alu { src, test: None, op, .. } => {
                src.iter().all(|s| *s != Src::Use) && (*op == Op::Mov || op.sources() == 0)
            }
            _ => false,
        }
    }
}

/// Weight of a memory access in the order before allocation: large enough that accesses come first while registers
/// last.
const TMU_LATENCY: u32 = 12;
