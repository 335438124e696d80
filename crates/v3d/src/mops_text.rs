//! Machine instructions before allocation as text: what stands behind the operands in a listing. `_` is the next use
//! operand.

use crate::instr::{Op, Pack, Unpack, Version, small_value};
use crate::magic;
use crate::mops::{Cmp, CmpOp, MInst, Src, Test, When};
use kempe_mir::UniformSource;
use std::fmt::{self, Display, Formatter};

struct Operand(Src, Unpack);

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Src::None => f.write_str("-")?,
            Src::Use => f.write_str("_")?,
            Src::Imm(code) => match small_value(code) {
                Some(v) if code < 32 => write!(f, "{}", v as i32)?,
                Some(v) => write!(f, "{:?}", f32::from_bits(v))?,
                None => write!(f, "imm({code})")?,
            },
        }
        match self.1 {
            Unpack::None => Ok(()),
            u => write!(f, ".{}", u.name()),
        }
    }
}

fn sources(f: &mut Formatter<'_>, src: &[Src; 2], unpack: &[Unpack; 2]) -> fmt::Result {
    let mut first = true;
    for (&s, &u) in src.iter().zip(unpack) {
        if s != Src::None {
            write!(f, "{}{}", if first { " " } else { ", " }, Operand(s, u))?;
            first = false;
        }
    }
    Ok(())
}

impl Display for Cmp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.op {
            CmpOp::NonZero => "nonzero",
            CmpOp::Ieq => "ieq",
            CmpOp::Slt => "slt",
            CmpOp::Ult => "ult",
            CmpOp::Feq => "feq",
            CmpOp::Flt => "flt",
            CmpOp::Fle => "fle",
        };
        write!(f, "{}{name}", if self.invert { "not " } else { "" })?;
        sources(f, &self.src, &self.unpack)
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.mask {
            f.write_str("running _")?;
        }
        if self.mask && self.cmp.is_some() {
            f.write_str(" and ")?;
        }
        if self.not {
            f.write_str("not all of (")?;
        }
        for (n, c) in self.cmps().enumerate() {
            write!(f, "{}{c}", if n > 0 { " and " } else { "" })?;
        }
        if self.not { f.write_str(")") } else { Ok(()) }
    }
}

fn guard(f: &mut Formatter<'_>, test: &Option<Test>) -> fmt::Result {
    match test {
        Some(t) => write!(f, " if {t}"),
        None => Ok(()),
    }
}

impl Display for MInst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MInst::Entry => f.write_str("entry"),
            MInst::Alu { op, pack, src, unpack, test } => {
                f.write_str(op.name())?;
                match pack {
                    Pack::None => {}
                    Pack::L => f.write_str(".l")?,
                    Pack::H => f.write_str(".h")?,
                }
                sources(f, src, unpack)?;
                guard(f, test)
            }
            MInst::Select { test, src, unpack } => {
                f.write_str("select")?;
                sources(f, src, unpack)?;
                write!(f, " if {test}")
            }
            MInst::Mul32 { src } => {
                f.write_str("mul32")?;
                sources(f, src, &[Unpack::None; 2])
            }
            MInst::Uniform(word) => write!(f, "uniform {word:?}"),
            MInst::Read { address, count } => write!(f, "read {address:?} x{count}"),
            MInst::Sideband { count } => write!(f, "sideband x{count}"),
            MInst::TmuLoad { ty, count, class, test } => {
                write!(f, "load {ty:?} x{count} class {}", class.0)?;
                guard(f, test)
            }
            MInst::TmuStore { ty, count, class, test } => {
                write!(f, "store {ty:?} x{count} class {}", class.0)?;
                guard(f, test)
            }
            MInst::TmuAtomic { op, data, class, test } => {
                write!(f, "atomic {op} x{data} class {}", class.0)?;
                guard(f, test)
            }
            MInst::Texture { op, test } => {
                write!(f, "texture {:?}", op.p0)?;
                match op.p1 {
                    Some(UniformSource::Const(p)) => write!(f, " {p:#x}")?,
                    Some(p) => write!(f, " {p:?}")?,
                    None => {}
                }
                if let Some(p) = op.p2 {
                    write!(f, " {p:#x}")?;
                }
                for n in [op.start.register()].into_iter().chain(op.coordinates.registers()) {
                    // 33 to 46 mean the same on both versions.
                    write!(f, " {}", magic::name(Version::V71, n).unwrap_or("?"))?;
                }
                write!(f, " data x{} class {}", op.data, op.class.0)?;
                guard(f, test)
            }
            MInst::Ballot { test, live } => {
                write!(f, "ballot{}", if *live { " live" } else { "" })?;
                guard(f, test)
            }
            MInst::Rotate { by } => write!(f, "rotate {by}"),
            MInst::Broadcast { lane } => {
                f.write_str("broadcast")?;
                sources(f, &[Src::Use, *lane], &[Unpack::None; 2])
            }
            MInst::Varying { how } => write!(f, "varying {how:?}"),
            MInst::VertexOutput { op, src, test, .. } => {
                f.write_str(match op {
                    Op::Stvpmp => "patch output",
                    Op::Stvpmd => "vertex output of each lane",
                    _ => "vertex output",
                })?;
                sources(f, src, &[Unpack::None; 2])?;
                guard(f, test)
            }
            MInst::RowRead { op, src } => {
                write!(f, "read back {}", op.name())?;
                sources(f, src, &[Unpack::None; 2])
            }
            MInst::VertexWait => f.write_str("vertex wait"),
            MInst::SetSamples { src, test } => {
                f.write_str("set samples")?;
                sources(f, &[*src, Src::None], &[Unpack::None; 2])?;
                guard(f, test)
            }
            MInst::MaskSamples => f.write_str("mask samples"),
            MInst::Tlb { config, op, src, unpack, first } => {
                write!(f, "tlb{}", if *first { " first" } else { "" })?;
                if let Some(c) = config {
                    write!(f, " config {c:#04x}")?;
                }
                write!(f, " {}", op.name())?;
                sources(f, src, unpack)
            }
            MInst::TmuWait => f.write_str("wait"),
            MInst::Barrier => f.write_str("barrier"),
            MInst::Branch { test, when } => {
                let when = match when {
                    When::Lane0 => "lane 0",
                    When::NotLane0 => "not lane 0",
                    When::Any => "any",
                    When::NoLane => "none",
                };
                write!(f, "branch {when}: {test}")
            }
            MInst::Jump => f.write_str("jump"),
            MInst::End => f.write_str("end"),
        }
    }
}
