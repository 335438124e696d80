//! One operation on physical registers, before it finds its place in an instruction word.

use crate::instr::{Cond, Dest, Loc, Op, Pack, Part, Push, Signals, Source, Unpack, Update, Version};
use kempe_mir::UniformSource;

/// What an operation is to the scheduler beside its registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    /// A TMU register write of the sequence with this number; `last` starts the operation.
    TmuWrite {
        seq: u32,
        first: bool,
        last: bool,
    },
    /// A configuration word of the sequence with this number (wrtmuc); `first` opens it.
    TmuConfig {
        seq: u32,
        first: bool,
    },
    /// A result word of the sequence with this number.
    LdTmu {
        seq: u32,
    },
    /// The moment of a thread switch: takes no instruction of its own.
    Switch,
    TmuWait,
    UnifaWrite,
    LdUnifa,
    /// The write that announces a barrier; a switch follows.
    Barrier,
    /// The first part of a varying; the second one comes to r5 or rf0 by itself.
    LdVary,
    /// Takes the second part.
    VaryingEnd,
    /// A write to the tile buffer.
    Tlb,
}

/// Why an operation exists, for the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    #[default]
    Program,
    /// Move or swap of the allocator.
    Copy,
    Spill,
    Fill,
    Recompute,
    /// Access to a private array.
    Scratch,
}

/// Where a word comes from, for statistics and for tracing it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provenance {
    /// Why the memory access exists that it starts, if it starts one.
    pub starts: Option<Origin>,
    /// It makes a value again.
    pub recomputes: bool,
    /// A machine instruction that it comes from (`u32::MAX`: none).
    pub inst: u32,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UOp {
    pub part: Part,
    pub signals: Signals,
    pub sig_dest: Option<Dest>,
    pub uniform: Option<UniformSource>,
    /// 4.2: the code of the rotation that turns the sources ([`crate::instr::Alu::rotate`]).
    pub rotate: Option<u8>,
    pub kind: Kind,
    pub origin: Origin,
    /// Index of the machine instruction it comes from.
    pub inst: u32,
}

impl UOp {
    /// An ALU operation.
    pub fn alu(part: Part) -> UOp {
        UOp {
            part,
            signals: Signals::NONE,
            sig_dest: None,
            uniform: None,
            rotate: None,
            kind: Kind::Plain,
            origin: Origin::Program,
            inst: 0,
        }
    }

    /// A signal alone.
    pub fn signal(signals: Signals, sig_dest: Option<Dest>) -> UOp {
        UOp { signals, sig_dest, ..UOp::alu(Part::NOP) }
    }

    pub fn is_switch(&self) -> bool {
        self.kind == Kind::Switch
    }

    /// Every register written, by the part or the signals.
    pub fn writes(&self, version: Version) -> impl Iterator<Item = Loc> {
        let part = self.part.result().and_then(|d| d.loc(version));
        let addressed = self.sig_dest.and_then(|d| d.loc(version));
        let implicit = (self.signals.has(Signals::LDUNIF)
            || self.signals.has(Signals::LDUNIFA)
            || self.signals.has(Signals::LDVARY))
        .then(|| Loc::uniform(version));
        part.into_iter().chain(addressed).chain(implicit)
    }

    /// Every register read as a source.
    pub fn reads(&self) -> impl Iterator<Item = Loc> + '_ {
        let count = (self.rotate == Some(0)).then_some(Loc::Acc(5));
        self.part.sources().filter_map(|(s, _)| source_loc(s)).chain(count)
    }
}

/// The register behind a source.
pub fn source_loc(s: Source) -> Option<Loc> {
    match s {
        Source::Row(r) => Some(Loc::Row(r)),
        Source::Acc(r) => Some(Loc::Acc(r)),
        Source::Small(_) | Source::None => None,
    }
}

/// A register as a source.
pub fn source(l: Loc) -> Source {
    match l {
        Loc::Row(r) => Source::Row(r),
        Loc::Acc(r) => Source::Acc(r),
    }
}

/// A register as a destination.
pub fn dest(l: Loc) -> Dest {
    match l {
        Loc::Row(r) => Dest::Row(r),
        Loc::Acc(r) => Dest::Magic(r),
    }
}

/// `dest = src`.
pub fn mov(dest: Dest, src: Source) -> Part {
    Part::new(Op::Mov, dest, src, Source::None)
}

/// A move that widens or modifies a float.
pub fn fmov(dest: Dest, src: Source, unpack: Unpack) -> Part {
    if unpack == Unpack::None {
        return mov(dest, src);
    }
    Part { unpack: [unpack, Unpack::None], ..Part::new(Op::Fmov, dest, src, Source::None) }
}

/// Where an operation may stand: (ADD, MUL).
pub fn units(version: Version, part: &Part) -> (bool, bool) {
    match part.op {
        Op::Add | Op::Sub => (true, true),
        // 4.2 has moves in the MUL part only; a plain one can be written `or x, x` (section 16).
        Op::Mov => (version == Version::V71 || part.unpack[0] == Unpack::None, true),
        Op::Fmov => (version == Version::V71, true),
        Op::Fmul | Op::Umul24 | Op::Smul24 | Op::Multop | Op::Vfmul => (false, true),
        _ => (true, false),
    }
}

/// The form of an operation for the ADD part.
pub fn for_add(version: Version, part: Part) -> Part {
    if version == Version::V42 && part.op == Op::Mov {
        Part { op: Op::Or, src: [part.src[0]; 2], ..part }
    } else {
        part
    }
}

/// What two operations of one instruction may do with conditions and flags (section 7.1).
pub fn flags_fit(add: &Part, mul: &Part) -> bool {
    match (add.writes_flags(), mul.writes_flags()) {
        (true, true) => false,
        (false, true) => match add.cond {
            // The MUL part may push, not update, beside a condition on the ADD part.
            Some(_) => mul.update.is_none() && mul.cond.is_none(),
            None => mul.cond.is_none(),
        },
        (true, false) => add.cond.is_none(),
        (false, false) => true,
    }
}

/// A push of one flag kind by an operation without result.
pub fn push(mut part: Part, push: Push) -> Part {
    part.push = Some(push);
    part
}

/// An update of flag A.
pub fn update(mut part: Part, update: Update) -> Part {
    part.update = Some(update);
    part
}

/// The same operation under a condition.
pub fn under(part: Part, cond: Option<Cond>) -> Part {
    Part { cond, ..part }
}

/// No output modifier, no condition, no flags: the result is a plain value.
pub fn is_plain(part: &Part) -> bool {
    part.pack == Pack::None && part.cond.is_none() && !part.writes_flags()
}
