//! One change of a correct result, drawn at random.

use kempe_ir::inputs::Random;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::{Allocation, Edit, Point, Recipe, RegisterFile, Slot, Unit};
use kempe_v3d::decode::decode;
use kempe_v3d::encode::encode_any;
use kempe_v3d::instr::{
    Alu, Branch, BranchCond, BranchTarget, Cond, Dest, Instr, MsfIgnore, Op, Pack, Part, Push, Signals,
    Source, UniformMove, Unpack, Update, Version,
};
use kempe_v3d::mops::MInst;
use kempe_v3d::ops;

/// What kind of change within its kind, for the long table.
pub type Label = &'static str;

/// Another number below `n`.
fn other(r: &mut Random, n: usize, not: usize) -> Option<usize> {
    let k = if n > 1 { r.below(n as u64 - 1) as usize } else { return None };
    Some(if k >= not { k + 1 } else { k })
}

fn pick<T: Copy>(r: &mut Random, list: &[T]) -> Option<T> {
    list.get(r.below(list.len() as u64) as usize).copied()
}

/// The unit of one operand becomes another one: every second time one of the set that the operand asks for.
pub fn place(
    mir: &Mir<MInst>,
    file: &RegisterFile,
    from: &Allocation,
    r: &mut Random,
) -> Option<(Allocation, Label, String)> {
    let n = r.below(from.places.len().max(1) as u64) as usize;
    let old = *from.places.get(n)?;
    let operand = mir.program.operands[n];
    let new = match r.below(2) {
        0 => pick(r, &file.sets[operand.set.0 as usize].units)?,
        _ => Unit(r.below(file.units.len() as u64) as u16),
    };
    if new == old {
        return None;
    }
    let mut to = from.clone();
    to.places[n] = new;
    let kind = if operand.kind == kempe_ra::OperandKind::Use { "use" } else { "def" };
    Some((to, kind, format!("operand {n} ({:?}): {old:?} to {new:?}", operand.vreg)))
}

/// One edit is dropped, doubled, exchanged with the next one, or goes elsewhere.
pub fn edit(
    mir: &Mir<MInst>,
    file: &RegisterFile,
    from: &Allocation,
    r: &mut Random,
) -> Option<(Allocation, Label, String)> {
    let n = r.below(from.edits.len().max(1) as u64) as usize;
    let (point, old) = *from.edits.get(n)?;
    let mut to = from.clone();
    let units = file.units.len();
    let unit = |r: &mut Random, not: Unit| other(r, units, not.0 as usize).map(|u| Unit(u as u16));
    let slot =
        |r: &mut Random, not: Slot| other(r, from.slots as usize, not.0 as usize).map(|s| Slot(s as u32));
    let label = match r.below(8) {
        0 | 1 => {
            to.edits.remove(n);
            "dropped"
        }
        2 => {
            to.edits.insert(n, (point, old));
            "doubled"
        }
        3 => {
            let next = *from.edits.get(n + 1)?;
            if next.0 != point || next.1 == old {
                return None;
            }
            to.edits.swap(n, n + 1);
            "order"
        }
        _ => {
            let first = r.below(2) == 0;
            to.edits[n].1 = match old {
                Edit::Copy { from, to } if first => Edit::Copy { from: unit(r, from)?, to },
                Edit::Copy { from, to } => Edit::Copy { from, to: unit(r, to)? },
                Edit::Swap { a, b } if first => Edit::Copy { from: a, to: b },
                Edit::Swap { a, b } => Edit::Swap { a: unit(r, a)?, b },
                Edit::Spill { from, slot: s } if first => Edit::Spill { from, slot: slot(r, s)? },
                Edit::Spill { from, slot } => Edit::Spill { from: unit(r, from)?, slot },
                Edit::Fill { slot: s, to } if first => Edit::Fill { slot: slot(r, s)?, to },
                Edit::Fill { slot, to } => Edit::Fill { slot, to: unit(r, to)? },
                Edit::Recompute { recipe, to } if first => {
                    let recipe = other(r, mir.recipes.len(), recipe.0 as usize)?;
                    Edit::Recompute { recipe: Recipe(recipe as u32), to }
                }
                Edit::Recompute { recipe, to } => Edit::Recompute { recipe, to: unit(r, to)? },
                Edit::Repeat { inst, from, to } if first => {
                    Edit::Repeat { inst, from: [unit(r, from[0])?, from[1]], to }
                }
                Edit::Repeat { inst, from, to } => Edit::Repeat { inst, from, to: unit(r, to)? },
            };
            "redirected"
        }
    };
    let at = match point {
        Point::Before(i) | Point::After(i) => i.0,
    };
    Some((to, label, format!("edit {n} {old:?} at {at}")))
}

/// Attempts to draw something that can be encoded and is no nonsense to begin with.
const ATTEMPTS: u32 = 20;

/// One field of one word becomes something else.
pub fn field(version: Version, old: u64, r: &mut Random) -> Option<(u64, Label)> {
    for _ in 0..ATTEMPTS {
        let (new, label) = match r.below(4) {
            0 => (old ^ 1 << r.below(64), "any bit"),
            _ => {
                let mut instr = decode(version, old).ok()?;
                let label = match &mut instr {
                    Instr::Alu(alu) => alu_field(version, alu, r),
                    Instr::Branch(branch) => branch_field(branch, r),
                };
                let (Some(label), Ok(new)) = (label, encode_any(version, &instr)) else { continue };
                (new, label)
            }
        };
        // A bit that carries nothing makes no other instruction.
        if decode(version, old) != decode(version, new) {
            return Some((new, label));
        }
    }
    None
}

fn register(version: Version, r: &mut Random) -> Source {
    match (version, r.below(8)) {
        (Version::V42, 0..2) => Source::Acc(r.below(6) as u8),
        (_, 2) => Source::Small(r.below(48) as u8),
        (_, 3) => Source::Row(r.below(64) as u8),
        _ => Source::Row(r.below(32) as u8),
    }
}

fn destination(version: Version, r: &mut Random) -> Dest {
    match r.below(8) {
        0 => Dest::Magic(r.below(64) as u8),
        1 => Dest::Magic(if version == Version::V42 { r.below(6) as u8 } else { 6 }),
        2 => Dest::Row(r.below(64) as u8),
        _ => Dest::Row(r.below(32) as u8),
    }
}

fn alu_field(version: Version, alu: &mut Alu, r: &mut Random) -> Option<Label> {
    if r.below(6) == 0 {
        return signal(version, alu, r);
    }
    let is_nop = [alu.add.is_nop(), alu.mul.is_nop()];
    let part = match (is_nop, r.below(2)) {
        ([true, true], _) => return None,
        ([false, true], _) | ([false, false], 0) => &mut alu.add,
        _ => &mut alu.mul,
    };
    part_field(version, part, r)
}

fn part_field(version: Version, part: &mut Part, r: &mut Random) -> Option<Label> {
    Some(match r.below(8) {
        0 | 1 => {
            let k = r.below(part.op.sources() as u64) as usize;
            if part.src[k] == Source::None {
                return None;
            }
            if let Source::Small(code) = part.src[k] {
                part.src[k] = Source::Small(other(r, 48, code as usize)? as u8);
                "small immediate"
            } else {
                part.src[k] = register(version, r);
                "source"
            }
        }
        2 => {
            part.dest = destination(version, r);
            "destination"
        }
        3 => {
            let like: Vec<Op> = ops::ALL
                .iter()
                .copied()
                .filter(|o| o.sources() == part.op.sources() && o.has_dest() == part.op.has_dest())
                .collect();
            part.op = pick(r, &like)?;
            "operation"
        }
        4 => {
            part.cond = match r.below(5) {
                4 => None,
                k => Some(Cond::ALL[k as usize]),
            };
            "condition"
        }
        5 => {
            (part.push, part.update) = match r.below(3) {
                0 => (None, None),
                1 => (pick(r, &Push::ALL), None),
                _ => (None, pick(r, &Update::ALL)),
            };
            "flag"
        }
        6 => {
            let k = r.below(2) as usize;
            part.unpack[k] = pick(
                r,
                &[
                    Unpack::None,
                    Unpack::Abs,
                    Unpack::L,
                    Unpack::H,
                    Unpack::Ll,
                    Unpack::Hh,
                    Unpack::Swp,
                    Unpack::Ul,
                    Unpack::Il,
                    Unpack::Uh,
                    Unpack::Ih,
                ],
            )?;
            "unpack"
        }
        _ => {
            part.pack = pick(r, &[Pack::None, Pack::L, Pack::H])?;
            "pack"
        }
    })
}

fn signal(version: Version, alu: &mut Alu, r: &mut Random) -> Option<Label> {
    if alu.sig_dest.is_some() && r.below(2) == 0 {
        alu.sig_dest = Some(destination(version, r));
        return Some("signal address");
    }
    let one = pick(r, &Signals::NAMES)?.0;
    alu.signals = if alu.signals.has(one) { alu.signals.without(one) } else { alu.signals.with(one) };
    let addressed = alu.signals.has(Signals::ADDRESSED);
    alu.sig_dest = match (addressed, alu.sig_dest) {
        (true, None) => Some(destination(version, r)),
        (false, _) => None,
        (true, dest) => dest,
    };
    Some("signal")
}

fn branch_field(b: &mut Branch, r: &mut Random) -> Option<Label> {
    Some(match r.below(6) {
        0 | 1 => {
            b.cond = pick(r, &BranchCond::ALL)?;
            "branch condition"
        }
        2 => {
            b.msfign = pick(r, &[MsfIgnore::None, MsfIgnore::Lanes])?;
            "branch lanes"
        }
        3 => {
            b.uniforms = match r.below(3) {
                0 => None,
                1 => Some(UniformMove::Absolute),
                _ => Some(UniformMove::Relative),
            };
            "branch uniforms"
        }
        _ => {
            let BranchTarget::Relative(offset) = b.target else { return None };
            let by = 8 * (1 + r.below(8) as i32);
            b.target = BranchTarget::Relative(if r.below(2) == 0 { offset - by } else { offset + by });
            "branch target"
        }
    })
}

/// Two neighbouring words change places, or one word moves a little.
pub fn slot(words: &mut [u64], r: &mut Random) -> Option<(Label, String)> {
    let n = r.below(words.len() as u64) as usize;
    let far = if r.below(2) == 0 { 1 } else { 2 + r.below(6) as usize };
    let to = if r.below(2) == 0 { n.checked_sub(far)? } else { n + far };
    if to >= words.len() {
        return None;
    }
    let (low, high) = (n.min(to), n.max(to));
    let old = words[low..=high].to_vec();
    if to > n {
        words[low..=high].rotate_left(1);
    } else {
        words[low..=high].rotate_right(1);
    }
    if words[low..=high] == old {
        return None;
    }
    Some((if far == 1 { "neighbours" } else { "moved" }, format!("word {n} to {to}")))
}

/// One word of the uniform stream.
pub fn uniform(stream: &mut Vec<UniformSource>, r: &mut Random) -> Option<(Label, String)> {
    let n = r.below(stream.len().max(1) as u64) as usize;
    let old = *stream.get(n)?;
    let next = stream.get(n + 1).copied();
    let label = match r.below(7) {
        0 => {
            stream[n] = pick(r, stream)?;
            "another word"
        }
        1 => {
            next?;
            stream.swap(n, n + 1);
            "exchanged"
        }
        2 => {
            stream.remove(n);
            "dropped"
        }
        3 => {
            stream.insert(n, old);
            "doubled"
        }
        k => {
            stream[n] = match (k, old) {
                (4, UniformSource::Const(w)) => UniformSource::Const(w.wrapping_add(4)),
                (5, UniformSource::Const(w)) => UniformSource::Const(w.wrapping_sub(1)),
                (_, UniformSource::Const(w)) => UniformSource::Const(w ^ 1 << r.below(32)),
                (4, UniformSource::Word(w, by)) => UniformSource::Word(w, by.wrapping_sub(4)),
                (5, UniformSource::Word(_, by)) => UniformSource::Const(by),
                (_, UniformSource::Word(w, by)) => UniformSource::Word(w, by.wrapping_add(4)),
                (_, UniformSource::High(w)) => UniformSource::Word(w, 0),
            };
            "value"
        }
    };
    if matches!(label, "another word" | "value") && stream[n] == old
        || label == "exchanged" && next == Some(old)
    {
        return None;
    }
    Some((label, format!("word {n} of the stream ({old:?})")))
}
