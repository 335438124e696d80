//! The decoded instruction: one type for both versions, shared by encoder, decoder, assembler, validator, simulator and
//! scheduler.
//!
//! An [`Instr`] holds what an instruction word means, not its bits: fields that carry no information (unread operand
//! fields, the uniform move of a branch that does not move, the signal of a small immediate that nobody reads) are not
//! kept, so two words with the same meaning give the same `Instr`. Any valid word decodes, also one that breaks a rule
//! of use. On 4.2 the read ports are not kept either: a source says its row, and the encoder assigns ports again.
//!
//! Facts: reference sections 3 to 8 and 10.

use crate::magic;
pub use crate::ops::Op;

/// Which chip generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Version {
    /// V3D 4.2 (VideoCore VI).
    V42,
    /// V3D 7.1 (VideoCore VII).
    V71,
}

impl Version {
    /// Both versions.
    pub const ALL: [Version; 2] = [Version::V42, Version::V71];

    /// Name used in targets and files: `v3d42`, `v3d71`.
    pub fn name(self) -> &'static str {
        match self {
            Version::V42 => "v3d42",
            Version::V71 => "v3d71",
        }
    }
}

/// Where a source comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// The operation has no such source.
    None,
    /// Register-file row 0 to 63.
    Row(u8),
    /// 4.2: accumulator r0 to r5.
    Acc(u8),
    /// Small immediate, by its code 0 to 47 (see [`small_value`]).
    Small(u8),
}

/// What is done to a source before the operation sees it (section 8.1 to 8.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Unpack {
    /// Nothing.
    #[default]
    None,
    /// f32: absolute value.
    Abs,
    /// f32: low half as f16, widened.
    L,
    /// f32: high half as f16, widened.
    H,
    /// f32, 7.1 fmov: clamped to 0..1.
    Sat,
    /// f32, 7.1 fmov: clamped to -1..1.
    Nsat,
    /// f32, 7.1 fmov: clamped to 0..infinity.
    Max0,
    /// f32, 7.1 fmov of the MUL part: code 7, meaning unknown.
    Unknown7,
    /// f16 pair: f32 to f16, in both halves.
    Ff,
    /// f16 pair: low half in both.
    Ll,
    /// f16 pair: high half in both.
    Hh,
    /// f16 pair: halves swapped.
    Swp,
    /// i32, 7.1 mov: low half zero-extended.
    Ul,
    /// i32, 7.1 mov: high half zero-extended.
    Uh,
    /// i32, 7.1 mov: low half sign-extended.
    Il,
    /// i32, 7.1 mov: high half sign-extended.
    Ih,
}

impl Unpack {
    /// Suffix in assembly text, without the dot; empty for [`Unpack::None`].
    pub fn name(self) -> &'static str {
        match self {
            Unpack::None => "",
            Unpack::Abs => "abs",
            Unpack::L => "l",
            Unpack::H => "h",
            Unpack::Sat => "sat",
            Unpack::Nsat => "nsat",
            Unpack::Max0 => "max0",
            Unpack::Unknown7 => "unpack7",
            Unpack::Ff => "ff",
            Unpack::Ll => "ll",
            Unpack::Hh => "hh",
            Unpack::Swp => "swp",
            Unpack::Ul => "ul",
            Unpack::Uh => "uh",
            Unpack::Il => "il",
            Unpack::Ih => "ih",
        }
    }
}

/// What is done to a result before it is written (section 8.4). A packed write keeps the other half of the destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Pack {
    /// Nothing.
    #[default]
    None,
    /// To f16, into the low half.
    L,
    /// To f16, into the high half.
    H,
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dest {
    /// Register-file row 0 to 63.
    Row(u8),
    /// Magic address 0 to 63, see [`crate::magic`]. On 4.2 the accumulators are magic addresses 0 to 5.
    Magic(u8),
}

impl Dest {
    /// The destination that discards.
    pub const NOP: Dest = Dest::Magic(magic::NOP);

    /// The register-file row, if it is one.
    #[inline]
    pub fn row(self) -> Option<u8> {
        match self {
            Dest::Row(r) => Some(r),
            Dest::Magic(_) => None,
        }
    }

    /// The magic address, if it is one.
    #[inline]
    pub fn magic(self) -> Option<u8> {
        match self {
            Dest::Row(_) => None,
            Dest::Magic(n) => Some(n),
        }
    }

    /// The class of a magic destination.
    #[inline]
    pub fn class(self, version: Version) -> Option<magic::Class> {
        self.magic().map(|n| magic::class(version, n))
    }

    /// The register that the write reaches, if any: a row, an accumulator, or r5/rf0 for the broadcasts.
    #[inline]
    pub fn loc(self, version: Version) -> Option<Loc> {
        match self {
            Dest::Row(r) => Some(Loc::Row(r)),
            Dest::Magic(n) => match magic::class(version, n) {
                magic::Class::Accumulator => Some(Loc::Acc(n)),
                magic::Class::Broadcast => Some(Loc::uniform(version)),
                _ => None,
            },
        }
    }

    /// A write that feeds the TMU in the sense of the one-peripheral rule (tmud, tmua, tmuau, 32 to 46).
    #[inline]
    pub fn is_tmu_write(self) -> bool {
        matches!(self, Dest::Magic(11..=13 | 32..=46))
    }

    /// A write that starts a TMU operation.
    #[inline]
    pub fn starts_tmu(self) -> bool {
        self.magic().is_some_and(magic::starts_tmu)
    }

    /// A write that takes a word from the uniform stream.
    #[inline]
    pub fn consumes_uniform(self) -> bool {
        self.magic().is_some_and(magic::consumes_uniform)
    }
}

/// A register that holds a value between instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Loc {
    /// Register-file row.
    Row(u8),
    /// 4.2: accumulator r0 to r5.
    Acc(u8),
}

impl Loc {
    /// Where ldunif, ldunifa and the C coefficient of ldvary arrive: r5 on 4.2, rf0 on 7.1.
    #[inline]
    pub fn uniform(version: Version) -> Loc {
        match version {
            Version::V42 => Loc::Acc(5),
            Version::V71 => Loc::Row(0),
        }
    }
}

/// Per-lane condition of a part (section 7.1). Codes are the declaration order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Cond {
    /// Lanes with A set.
    IfA,
    /// Lanes with B set.
    IfB,
    /// Lanes with A clear.
    IfNa,
    /// Lanes with B clear.
    IfNb,
}

impl Cond {
    /// All conditions in code order.
    pub const ALL: [Cond; 4] = [Cond::IfA, Cond::IfB, Cond::IfNa, Cond::IfNb];

    /// Suffix in assembly text.
    pub fn name(self) -> &'static str {
        ["ifa", "ifb", "ifna", "ifnb"][self as usize]
    }

    /// The condition that holds in the other lanes.
    pub fn inverse(self) -> Cond {
        match self {
            Cond::IfA => Cond::IfNa,
            Cond::IfNa => Cond::IfA,
            Cond::IfB => Cond::IfNb,
            Cond::IfNb => Cond::IfB,
        }
    }
}

/// Flag push: B takes the old A, A takes the new flag (section 7.2). The code is the declaration order plus one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Push {
    /// A = result is zero (fcmp: equal).
    Z = 1,
    /// A = result is negative (fcmp: less).
    N = 2,
    /// A = carry, borrow or comparison (section 7.3).
    C = 3,
}

impl Push {
    /// All pushes in code order.
    pub const ALL: [Push; 3] = [Push::Z, Push::N, Push::C];

    /// Suffix in assembly text.
    pub fn name(self) -> &'static str {
        ["pushz", "pushn", "pushc"][self as usize - 1]
    }
}

/// Flag update: A is combined with a flag of the result, B stays (section 7.1). The discriminant is the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Update {
    /// A and Z.
    AndZ = 4,
    /// A and not Z.
    AndNz = 5,
    /// not (A or not Z).
    NorNz = 6,
    /// not (A or Z).
    NorZ = 7,
    /// A and N.
    AndN = 8,
    /// A and not N.
    AndNn = 9,
    /// not (A or not N).
    NorNn = 10,
    /// not (A or N).
    NorN = 11,
    /// A and C.
    AndC = 12,
    /// A and not C.
    AndNc = 13,
    /// not (A or not C).
    NorNc = 14,
    /// not (A or C).
    NorC = 15,
}

impl Update {
    /// All updates in code order; the first has code 4.
    pub const ALL: [Update; 12] = [
        Update::AndZ,
        Update::AndNz,
        Update::NorNz,
        Update::NorZ,
        Update::AndN,
        Update::AndNn,
        Update::NorNn,
        Update::NorN,
        Update::AndC,
        Update::AndNc,
        Update::NorNc,
        Update::NorC,
    ];

    /// Suffix in assembly text.
    pub fn name(self) -> &'static str {
        ["andz", "andnz", "nornz", "norz", "andn", "andnn", "nornn", "norn", "andc", "andnc", "nornc", "norc"]
            [self as usize - 4]
    }

    /// Which flag of the result takes part.
    pub fn flag(self) -> Push {
        Push::ALL[(self as usize - 4) / 4]
    }
}

/// The set of signals of an instruction (section 5). Small immediates and the rotation of 4.2 occupy the same field of
/// the word but are told by the sources and by [`Alu::rotate`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signals(pub u16);

impl Signals {
    /// No signal.
    pub const NONE: Signals = Signals(0);
    /// Thread switch, last-section mark or program end.
    pub const THRSW: Signals = Signals(1);
    /// Next varying: partial value to the address, C to r5/rf0 one instruction later.
    pub const LDVARY: Signals = Signals(1 << 1);
    /// Next TMU result word to the address.
    pub const LDTMU: Signals = Signals(1 << 2);
    /// Tile-buffer read to the address.
    pub const LDTLB: Signals = Signals(1 << 3);
    /// Tile-buffer read with configuration from the uniform stream.
    pub const LDTLBU: Signals = Signals(1 << 4);
    /// Next uniform to r5/rf0.
    pub const LDUNIF: Signals = Signals(1 << 5);
    /// Next uniform to the address.
    pub const LDUNIFRF: Signals = Signals(1 << 6);
    /// Next word of the side-band stream to r5/rf0.
    pub const LDUNIFA: Signals = Signals(1 << 7);
    /// Next word of the side-band stream to the address.
    pub const LDUNIFARF: Signals = Signals(1 << 8);
    /// Next uniform to the TMU configuration.
    pub const WRTMUC: Signals = Signals(1 << 9);
    /// Named in the tables, meaning unknown.
    pub const UCB: Signals = Signals(1 << 10);

    /// The signals with their names, in the order in which text shows them.
    pub const NAMES: [(Signals, &'static str); 11] = [
        (Signals::THRSW, "thrsw"),
        (Signals::LDVARY, "ldvary"),
        (Signals::LDTMU, "ldtmu"),
        (Signals::LDTLB, "ldtlb"),
        (Signals::LDTLBU, "ldtlbu"),
        (Signals::LDUNIF, "ldunif"),
        (Signals::LDUNIFRF, "ldunifrf"),
        (Signals::LDUNIFA, "ldunifa"),
        (Signals::LDUNIFARF, "ldunifarf"),
        (Signals::WRTMUC, "wrtmuc"),
        (Signals::UCB, "ucb"),
    ];

    /// The signals that write the address in the condition field.
    pub const ADDRESSED: Signals = Signals(
        Signals::LDVARY.0
            | Signals::LDTMU.0
            | Signals::LDTLB.0
            | Signals::LDTLBU.0
            | Signals::LDUNIFRF.0
            | Signals::LDUNIFARF.0,
    );

    /// The signals that take a word from the uniform stream (section 11).
    pub const UNIFORM: Signals =
        Signals(Signals::LDUNIF.0 | Signals::LDUNIFRF.0 | Signals::WRTMUC.0 | Signals::LDTLBU.0);

    /// All signals of both.
    #[inline]
    pub const fn with(self, other: Signals) -> Signals {
        Signals(self.0 | other.0)
    }

    /// The signals that are not in `other`.
    #[inline]
    pub const fn without(self, other: Signals) -> Signals {
        Signals(self.0 & !other.0)
    }

    /// Whether any signal of `other` is set.
    #[inline]
    pub const fn has(self, other: Signals) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no signal is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many signals are set.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl std::ops::BitOr for Signals {
    type Output = Signals;
    fn bitor(self, other: Signals) -> Signals {
        self.with(other)
    }
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Signals::NAMES.iter().filter(|(s, _)| self.has(*s)).map(|(_, name)| *name);
        f.debug_set().entries(names).finish()
    }
}

/// The ADD or the MUL part of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// The operation.
    pub op: Op,
    /// Where the result goes; [`Dest::NOP`] when the operation has none.
    pub dest: Dest,
    /// Output modifier.
    pub pack: Pack,
    /// The sources; [`Source::None`] beyond the number of the operation.
    pub src: [Source; 2],
    /// The modifier of each source.
    pub unpack: [Unpack; 2],
    /// Only lanes whose flag matches write.
    pub cond: Option<Cond>,
    /// Flag push; it happens in every lane, whatever the condition of the other part.
    pub push: Option<Push>,
    /// Flag update.
    pub update: Option<Update>,
}

impl Part {
    /// No operation.
    pub const NOP: Part = Part {
        op: Op::Nop,
        dest: Dest::NOP,
        pack: Pack::None,
        src: [Source::None; 2],
        unpack: [Unpack::None; 2],
        cond: None,
        push: None,
        update: None,
    };

    /// An operation with up to two sources and without modifiers.
    pub fn new(op: Op, dest: Dest, a: Source, b: Source) -> Part {
        Part { op, dest, src: [a, b], ..Part::NOP }
    }

    /// Whether this is a plain nop that does nothing at all.
    #[inline]
    pub fn is_nop(&self) -> bool {
        self.op == Op::Nop && self.push.is_none() && self.update.is_none()
    }

    /// The sources in use with their modifiers.
    #[inline]
    pub fn sources(&self) -> impl Iterator<Item = (Source, Unpack)> + '_ {
        (0..self.op.sources()).map(|i| (self.src[i], self.unpack[i]))
    }

    /// The destination, if the operation has one (it may be the nop address).
    #[inline]
    pub fn result(&self) -> Option<Dest> {
        self.op.has_dest().then_some(self.dest)
    }

    /// The write needs the old contents of the destination: a packed or a conditional write (rule 63).
    #[inline]
    pub fn is_partial_write(&self) -> bool {
        self.pack != Pack::None || self.cond.is_some()
    }

    /// Writes a flag (push or update).
    #[inline]
    pub fn writes_flags(&self) -> bool {
        self.push.is_some() || self.update.is_some()
    }

    /// Reads flag A: by condition, by operation, because an update combines with it, or because a push moves it to B.
    pub fn reads_flag_a(&self) -> bool {
        matches!(self.cond, Some(Cond::IfA | Cond::IfNa)) || self.op.reads_flag_a() || self.writes_flags()
    }

    /// Reads flag B: by condition or by operation.
    pub fn reads_flag_b(&self) -> bool {
        matches!(self.cond, Some(Cond::IfB | Cond::IfNb)) || self.op.reads_flag_b()
    }
}

/// An ALU instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alu {
    /// The ADD part.
    pub add: Part,
    /// The MUL part.
    pub mul: Part,
    /// Signals.
    pub signals: Signals,
    /// The address that one of [`Signals::ADDRESSED`] writes; `None` without such a signal.
    pub sig_dest: Option<Dest>,
    /// 4.2: the rotate signal with its 6-bit count code: 0 count in r5, 1 to 15 that count, 16 to 31 the counts -16 to
    /// -1 (section 8.5).
    pub rotate: Option<u8>,
}

impl Alu {
    /// The instruction that does nothing.
    pub const NOP: Alu =
        Alu { add: Part::NOP, mul: Part::NOP, signals: Signals::NONE, sig_dest: None, rotate: None };

    /// Nothing but signals without an address.
    pub fn signal(signals: Signals) -> Alu {
        Alu { signals, ..Alu::NOP }
    }

    /// Both parts, ADD first.
    #[inline]
    pub fn parts(&self) -> [&Part; 2] {
        [&self.add, &self.mul]
    }

    /// The sources in use of both parts: ADD a, b, MUL a, b.
    #[inline]
    pub fn sources(&self) -> impl Iterator<Item = (Source, Unpack)> + '_ {
        self.add.sources().chain(self.mul.sources())
    }

    /// The registers read as sources, with repetitions; not the old contents under partial writes, see
    /// [`Alu::merged`]. The count of a rotation from r5 is included.
    pub fn reads(&self) -> impl Iterator<Item = Loc> + '_ {
        let count = (self.rotate == Some(0)).then_some(Loc::Acc(5));
        let sources = self.sources().filter_map(|(source, _)| match source {
            Source::Row(r) => Some(Loc::Row(r)),
            Source::Acc(r) => Some(Loc::Acc(r)),
            Source::Small(_) | Source::None => None,
        });
        sources.chain(count)
    }

    /// The registers whose old contents survive in part (rule 63).
    pub fn merged(&self, version: Version) -> impl Iterator<Item = Loc> + '_ {
        let parts = [&self.add, &self.mul];
        parts
            .into_iter()
            .filter(|p| p.is_partial_write())
            .filter_map(move |p| p.result().and_then(|d| d.loc(version)))
    }

    /// The destinations of ADD, MUL and the addressed signal, in that order.
    pub fn dests(&self) -> impl Iterator<Item = Dest> {
        [self.add.result(), self.mul.result(), self.sig_dest].into_iter().flatten()
    }

    /// The registers written so that the next instruction sees them, with repetitions: results, addressed signals, and
    /// r5/rf0 by ldunif and ldunifa. SFU results are included although they arrive later; the C coefficient of ldvary
    /// (see [`Alu::writes_late`]) and r4 of SFU magic writes are not.
    pub fn writes(&self, version: Version) -> impl Iterator<Item = Loc> {
        let implicit = self.signals.has(Signals::LDUNIF | Signals::LDUNIFA).then_some(Loc::uniform(version));
        self.dests().filter_map(move |d| d.loc(version)).chain(implicit)
    }

    /// The registers written one instruction later than usual: r5/rf0 by ldvary (rule 20), r4 by a 4.2 SFU magic write
    /// (rule 23).
    pub fn writes_late(&self, version: Version) -> impl Iterator<Item = Loc> {
        let vary = self.signals.has(Signals::LDVARY).then_some(Loc::uniform(version));
        let sfu = self.writes_sfu_magic(version).then_some(Loc::Acc(4));
        [vary, sfu].into_iter().flatten()
    }

    /// A part writes an SFU magic address (4.2).
    pub fn writes_sfu_magic(&self, version: Version) -> bool {
        self.dests().any(|d| d.class(version) == Some(magic::Class::Sfu))
    }

    /// A destination is this magic address.
    pub fn writes_magic(&self, n: u8) -> bool {
        self.dests().any(|d| d == Dest::Magic(n))
    }

    /// A destination feeds the TMU.
    pub fn has_tmu_write(&self) -> bool {
        self.dests().any(Dest::is_tmu_write)
    }

    /// A destination starts a TMU operation.
    pub fn starts_tmu(&self) -> bool {
        self.dests().any(Dest::starts_tmu)
    }

    /// How many words it takes from the uniform stream; more than one breaks rule 17.
    pub fn uniforms(&self) -> u32 {
        let signals = Signals(self.signals.0 & Signals::UNIFORM.0).count();
        signals + self.dests().filter(|d| d.consumes_uniform()).count() as u32
    }

    /// Whether it takes a word from the uniform stream.
    pub fn consumes_uniform(&self) -> bool {
        self.uniforms() != 0
    }

    /// The rotation count of 4.2, if it is a constant.
    pub fn rotate_count(&self) -> Option<i32> {
        match self.rotate? {
            0 => None,
            code @ 1..=15 => Some(i32::from(code)),
            code @ 16..=31 => Some(i32::from(code) - 32),
            _ => None,
        }
    }

    /// Writes a flag.
    pub fn writes_flags(&self) -> bool {
        self.add.writes_flags() || self.mul.writes_flags()
    }
}

/// When a branch is taken (section 10.1). The discriminant is the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum BranchCond {
    /// Always.
    Always = 0,
    /// Code 1, reserved (rule 12).
    Reserved = 1,
    /// A of lane 0 is set.
    A0 = 2,
    /// A of lane 0 is clear.
    Na0 = 3,
    /// A set in all considered lanes.
    AllA = 4,
    /// A clear in some considered lane.
    AnyNa = 5,
    /// A set in some considered lane.
    AnyA = 6,
    /// A clear in all considered lanes.
    AllNa = 7,
}

impl BranchCond {
    /// All conditions in code order.
    pub const ALL: [BranchCond; 8] = [
        BranchCond::Always,
        BranchCond::Reserved,
        BranchCond::A0,
        BranchCond::Na0,
        BranchCond::AllA,
        BranchCond::AnyNa,
        BranchCond::AnyA,
        BranchCond::AllNa,
    ];

    /// Suffix in assembly text; empty for always.
    pub fn name(self) -> &'static str {
        ["", "reserved", "a0", "na0", "alla", "anyna", "anya", "allna"][self as usize]
    }

    /// Looks at many lanes, so that the sample flags matter when `msfign` asks for them.
    pub fn is_vector(self) -> bool {
        self as u8 >= 4
    }

    /// Whether the branch can fall through.
    pub fn is_conditional(self) -> bool {
        self as u8 >= 2
    }
}

/// Which lanes a branch condition considers (section 10.1). The discriminant is the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum MsfIgnore {
    /// All lanes.
    #[default]
    None = 0,
    /// Lanes with a sample flag (text `p`).
    Lanes = 1,
    /// Lanes of quads with a sample flag (text `q`).
    Quads = 2,
}

/// Where the instruction pointer goes (section 10.2, field bdi).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BranchTarget {
    /// To this byte address (bits 31:3 count).
    Absolute(u32),
    /// To the address of the branch plus 32 plus this offset in bytes (a multiple of 8).
    Relative(i32),
    /// To the link register.
    Link,
    /// To the address in this register-file row.
    Row(u8),
}

/// How the uniform pointer moves with a branch (section 10.2, field bdu with ub = 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UniformMove {
    /// The next uniform is the new pointer.
    Absolute,
    /// The next uniform is added to the pointer behind it.
    Relative,
    /// To the link register.
    Link,
    /// To the address in this register-file row, in all lanes the same (rule 66).
    Row(u8),
    /// Codes 4 to 7, not used.
    Reserved(u8),
}

impl UniformMove {
    /// Takes a word from the uniform stream, whether or not the branch is taken.
    pub fn consumes_uniform(self) -> bool {
        matches!(self, UniformMove::Absolute | UniformMove::Relative)
    }
}

/// A branch. Three delay slots follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Branch {
    /// When it is taken.
    pub cond: BranchCond,
    /// Which lanes the condition considers.
    pub msfign: MsfIgnore,
    /// Where to.
    pub target: BranchTarget,
    /// What happens to the uniform pointer; `None` when it stays (ub = 0).
    pub uniforms: Option<UniformMove>,
    /// The return address goes to the link register.
    pub link: bool,
}

impl Branch {
    /// The number of instructions after a branch that are always executed.
    pub const DELAY_SLOTS: usize = 3;

    /// The row that it reads, if any. Target and uniform move cannot name different rows.
    pub fn row(&self) -> Option<u8> {
        match (self.target, self.uniforms) {
            (BranchTarget::Row(r), _) | (_, Some(UniformMove::Row(r))) => Some(r),
            _ => None,
        }
    }

    /// Whether it takes a word from the uniform stream.
    pub fn consumes_uniform(&self) -> bool {
        self.uniforms.is_some_and(UniformMove::consumes_uniform)
    }

    /// Reads the sample flags (rules 43 and 44).
    pub fn reads_sample_flags(&self) -> bool {
        self.msfign != MsfIgnore::None && self.cond.is_vector()
    }
}

/// One decoded instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Instr {
    /// ADD, MUL and signals.
    Alu(Alu),
    /// A branch.
    Branch(Branch),
}

impl Instr {
    /// The instruction that does nothing.
    pub const NOP: Instr = Instr::Alu(Alu::NOP);

    /// The ALU instruction, if it is one.
    pub fn alu(&self) -> Option<&Alu> {
        match self {
            Instr::Alu(alu) => Some(alu),
            Instr::Branch(_) => None,
        }
    }

    /// The branch, if it is one.
    pub fn branch(&self) -> Option<&Branch> {
        match self {
            Instr::Alu(_) => None,
            Instr::Branch(branch) => Some(branch),
        }
    }

    /// The signals; none for a branch.
    pub fn signals(&self) -> Signals {
        self.alu().map_or(Signals::NONE, |alu| alu.signals)
    }

    /// Whether it takes a word from the uniform stream.
    pub fn consumes_uniform(&self) -> bool {
        match self {
            Instr::Alu(alu) => alu.consumes_uniform(),
            Instr::Branch(branch) => branch.consumes_uniform(),
        }
    }
}

/// The 32-bit pattern of a small immediate code (section 8.5); `None` for codes that are not valid (48 and up).
pub fn small_value(code: u8) -> Option<u32> {
    match code {
        0..=15 => Some(u32::from(code)),
        16..=31 => Some((i32::from(code) - 32) as u32),
        // Powers of two from 2^-8: the exponent field is 119 + (code - 32).
        32..=47 => Some((u32::from(code) - 32 + 119) << 23),
        _ => None,
    }
}

/// The small immediate code of a 32-bit pattern, if it has one.
pub fn small_code(value: u32) -> Option<u8> {
    match value as i32 {
        v @ 0..=15 => Some(v as u8),
        v @ -16..=-1 => Some((v + 32) as u8),
        _ => {
            let exponent = value >> 23;
            (value & 0x7f_ffff == 0 && (119..=134).contains(&exponent)).then(|| (exponent - 119 + 32) as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_immediates_go_both_ways() {
        for code in 0..48 {
            assert_eq!(small_code(small_value(code).unwrap()), Some(code));
        }
        assert!((48..=255).all(|code| small_value(code).is_none()));
        assert_eq!(small_value(40), Some(1.0f32.to_bits()));
        assert_eq!(small_value(32), Some(0x3b80_0000));
        assert_eq!(small_value(16), Some(-16i32 as u32));
        assert_eq!(small_code(16), None);
        assert_eq!(small_code(1.5f32.to_bits()), None);
    }

    #[test]
    fn names_of_magic_addresses_are_unique() {
        for version in Version::ALL {
            for n in 0..64 {
                if let Some(name) = magic::name(version, n) {
                    assert_eq!(magic::from_name(version, name), Some(n));
                }
                assert_eq!(
                    magic::name(version, n).is_none(),
                    magic::class(version, n) == magic::Class::Reserved
                );
            }
        }
    }

    #[test]
    fn names_of_operations_are_unique() {
        for &op in crate::ops::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
    }
}
