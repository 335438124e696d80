//! [`Instr`] to the canonical instruction word.
//!
//! Canonical (reference section 4.3): what carries no information is the nop opcode, the nop address or zero. Two
//! further choices are made here. *Ports*: on 4.2 the rows go to the read ports in the order of their first use (ADD a,
//! b, MUL a, b). *Order*: fadd/faddnf and fmin/fmax share opcodes and differ in the order of their sources (section
//! 6.1); sources stay as given whenever some port assignment allows it and are swapped, with their modifiers, only when
//! none does. So encoding what was decoded from a canonical word gives that word again.
//!
//! [`encode`] is for code generation: it refuses everything that a single word may not say, with the number of the rule.
//! [`encode_any`] refuses only what no word can say; the assembler uses it, and the validator judges.

use crate::decode::order_key;
use crate::instr::{
    Alu, Branch, BranchCond, BranchTarget, Dest, Instr, Op, Pack, Part, Signals, Source, UniformMove, Unpack,
    Version,
};
use crate::magic;
use crate::tables::{self, Extra, Field, PackField, SignalCode, Unit};

/// Why an instruction has no word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The signals do not exist together, or not with a small immediate or a rotation (rule 1).
    Signals(Signals),
    /// A signal writes an address and there is none, or an address and no such signal, or two such signals (rule 2).
    SignalAddress,
    /// A signal writes an address and a part has a condition, push or update (rule 2).
    SignalWithFlags,
    /// Conditions, pushes and updates do not go together (rule 3).
    Flags,
    /// 4.2: more rows or small immediates than the two read ports can bring (rule 4).
    Ports,
    /// 7.1: more than one small immediate (rule 6).
    SmallImmediates,
    /// Small immediate code above 47 (rule 8).
    SmallImmediate(u8),
    /// No operand order selects this operation (rule 9): faddnf or fmax of equal sources.
    Order(Op),
    /// Pack or unpack that the operation does not have (rule 10).
    Modifier(Op),
    /// The part does not have this operation (rule 12).
    Op(Op, Unit),
    /// Reserved magic address, signal or code (rule 12).
    Reserved,
    /// The result of this operation must go to a row (rule 13).
    RowOnly(Op),
    /// Row above 63, accumulator above r5 or on 7.1, magic address above 63, rotation on 7.1.
    Register,
    /// Missing source, or a source or destination that the operation does not have.
    Operands(Op),
    /// A branch whose target is no multiple of 8, or whose target and uniform move name different rows.
    Branch,
}

impl EncodeError {
    /// The rule of the reference, where there is one.
    pub fn rule(self) -> Option<&'static str> {
        Some(match self {
            EncodeError::Signals(_) => "1",
            EncodeError::SignalAddress | EncodeError::SignalWithFlags => "2",
            EncodeError::Flags => "3",
            EncodeError::Ports => "4",
            EncodeError::SmallImmediates => "6",
            EncodeError::SmallImmediate(_) => "8",
            EncodeError::Order(_) => "9",
            EncodeError::Modifier(_) => "10",
            EncodeError::Op(..) | EncodeError::Reserved => "12",
            EncodeError::RowOnly(_) => "13",
            EncodeError::Register | EncodeError::Operands(_) | EncodeError::Branch => return None,
        })
    }
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EncodeError::Signals(set) => write!(f, "no signal code for {set:?} with these operands"),
            EncodeError::SignalAddress => f.write_str("signals and signal address do not fit together"),
            EncodeError::SignalWithFlags => {
                f.write_str("condition, push or update beside a signal that writes an address")
            }
            EncodeError::Flags => {
                f.write_str("this combination of conditions, pushes and updates does not exist")
            }
            EncodeError::Ports => {
                f.write_str("more than two register-file rows, or one row and one small immediate")
            }
            EncodeError::SmallImmediates => f.write_str("more than one small immediate"),
            EncodeError::SmallImmediate(code) => write!(f, "invalid small immediate code {code}"),
            EncodeError::Order(op) => write!(f, "no operand order encodes {}", op.name()),
            EncodeError::Modifier(op) => write!(f, "{} does not have this pack or unpack", op.name()),
            EncodeError::Op(op, unit) => write!(f, "no {} in the {} part", op.name(), unit_name(*unit)),
            EncodeError::Reserved => f.write_str("reserved address, signal or code"),
            EncodeError::RowOnly(op) => {
                write!(f, "the result of {} must go to a register-file row", op.name())
            }
            EncodeError::Register => f.write_str("no such register"),
            EncodeError::Operands(op) => write!(f, "wrong operands for {}", op.name()),
            EncodeError::Branch => f.write_str("branch target is no multiple of 8 or names two registers"),
        }?;
        match self.rule() {
            Some(rule) => write!(f, " (rule {rule})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EncodeError {}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Add => "ADD",
        Unit::Mul => "MUL",
    }
}

/// The canonical word, for code generation: also refuses what one word can say but may not (rules 10 and 12).
#[inline]
pub fn encode(version: Version, instr: &Instr) -> Result<u64, EncodeError> {
    match instr {
        Instr::Alu(alu) => refuse_alu(version, alu)?,
        Instr::Branch(branch) => {
            if branch.cond == BranchCond::Reserved
                || matches!(branch.uniforms, Some(UniformMove::Reserved(_)))
            {
                return Err(EncodeError::Reserved);
            }
        }
    }
    encode_any(version, instr)
}

/// The canonical word of anything that a word can say.
#[inline]
pub fn encode_any(version: Version, instr: &Instr) -> Result<u64, EncodeError> {
    match instr {
        Instr::Alu(alu) => encode_alu(version, alu),
        Instr::Branch(branch) => encode_branch(branch),
    }
}

fn refuse_alu(version: Version, alu: &Alu) -> Result<(), EncodeError> {
    for dest in alu.dests() {
        if dest.class(version) == Some(magic::Class::Reserved) {
            return Err(EncodeError::Reserved);
        }
    }
    if alu.add.op == Op::Vpmsetup || alu.signals.has(Signals::UCB) || alu.rotate.is_some_and(|code| code > 31)
    {
        return Err(EncodeError::Reserved);
    }
    for (part, unit) in [(&alu.add, Unit::Add), (&alu.mul, Unit::Mul)] {
        if part.pack != Pack::None
            && let Some((form, _)) = tables::unit(version, unit).of(part.op)
            && matches!(form.pack, PackField::Unverified(_))
        {
            return Err(EncodeError::Modifier(part.op));
        }
        let abs = part.unpack.contains(&Unpack::Abs);
        if abs && !takes_abs(part.op) || part.unpack.contains(&Unpack::Unknown7) {
            return Err(EncodeError::Modifier(part.op));
        }
    }
    Ok(())
}

/// The operations that may take the absolute value of a source (section 8.1).
pub fn takes_abs(op: Op) -> bool {
    use Op::*;
    matches!(op, Fadd | Faddnf | Fsub | Fmin | Fmax | Fcmp | Fmul | Fmov)
}

fn encode_branch(branch: &Branch) -> Result<u64, EncodeError> {
    let (bdi, address) = match branch.target {
        BranchTarget::Absolute(address) => (0u64, address),
        BranchTarget::Relative(offset) => (1, offset as u32),
        BranchTarget::Link => (2, 0),
        BranchTarget::Row(_) => (3, 0),
    };
    let (ub, bdu) = match branch.uniforms {
        None => (0u64, 0u64),
        Some(UniformMove::Absolute) => (1, 0),
        Some(UniformMove::Relative) => (1, 1),
        Some(UniformMove::Link) => (1, 2),
        Some(UniformMove::Row(_)) => (1, 3),
        Some(UniformMove::Reserved(code @ 4..=7)) => (1, code.into()),
        Some(UniformMove::Reserved(_)) => return Err(EncodeError::Reserved),
    };
    if address % 8 != 0 {
        return Err(EncodeError::Branch);
    }
    if let (BranchTarget::Row(a), Some(UniformMove::Row(b))) = (branch.target, branch.uniforms)
        && a != b
    {
        return Err(EncodeError::Branch);
    }
    let row = branch.row().unwrap_or(0);
    if row > 63 {
        return Err(EncodeError::Register);
    }
    Ok(2 << 56
        | u64::from(address >> 3 & 0x1f_ffff) << 35
        | (branch.cond as u64) << 32
        | u64::from(address >> 24) << 24
        | u64::from(branch.link) << 23
        | (branch.msfign as u64) << 21
        | bdu << 15
        | ub << 14
        | bdi << 12
        | u64::from(row) << 6)
}

fn encode_alu(version: Version, alu: &Alu) -> Result<u64, EncodeError> {
    for part in [&alu.add, &alu.mul] {
        let sources = part.op.sources();
        for (i, &source) in part.src.iter().enumerate() {
            match source {
                Source::None if i >= sources => {}
                Source::None => return Err(EncodeError::Operands(part.op)),
                _ if i >= sources => return Err(EncodeError::Operands(part.op)),
                Source::Row(0..=63) => {}
                Source::Acc(0..=5) if version == Version::V42 => {}
                Source::Small(0..=47) => {}
                Source::Small(code) => return Err(EncodeError::SmallImmediate(code)),
                _ => return Err(EncodeError::Register),
            }
        }
    }
    let sources = match version {
        Version::V42 => sources42(alu)?,
        Version::V71 => sources71(alu)?,
    };
    let field = match (alu.rotate, sources.small) {
        (None, None) => Field::Plain,
        (None, Some(n)) => Field::Small(n),
        (Some(_), None) if version == Version::V42 => Field::Rotate,
        (Some(_), None) => return Err(EncodeError::Register),
        (Some(_), Some(_)) => return Err(EncodeError::Signals(alu.signals)),
    };
    let sig = tables::find_signal(version, SignalCode { set: alu.signals, field })
        .ok_or(EncodeError::Signals(alu.signals))?;
    let cond = condition_field(alu)?;
    let (ma, waddr_a, key_a) = part(version, Unit::Add, &alu.add, sources.order_a, sources.selector_a)?;
    let (mm, waddr_m, key_m) = part(version, Unit::Mul, &alu.mul, [0, 1], sources.selector_m)?;
    // The selector fields of the keys are bits of the operand fields: on 4.2 the selectors themselves, on 7.1 the
    // address of the second source, which `selector_*` holds if it is read.
    let operands = match version {
        Version::V42 => u64::from(key_m & 63) << 18 | u64::from(key_a & 63) << 12 | u64::from(sources.low),
        Version::V71 => u64::from(key_m & 63) << 12 | u64::from(key_a & 63) | u64::from(sources.low),
    };
    Ok(u64::from(key_m >> 6) << 58
        | u64::from(sig) << 53
        | u64::from(cond) << 46
        | u64::from(mm) << 45
        | u64::from(ma) << 44
        | u64::from(waddr_m) << 38
        | u64::from(waddr_a) << 32
        | u64::from(key_a >> 6) << 24
        | operands)
}

/// How the sources of an instruction are brought.
struct Sources {
    /// Source number that each ADD operand field takes: swapped or not.
    order_a: [usize; 2],
    /// The key bits that operands occupy.
    selector_a: u16,
    selector_m: u16,
    /// The other operand bits, in place.
    low: u32,
    /// The operand field with a small immediate.
    small: Option<u8>,
}

/// The order that the ADD operation asks for, if it shares its keys by order.
#[inline]
fn wanted_order(op: Op) -> Option<bool> {
    match op {
        Op::Fadd | Op::Fmin => Some(true),
        Op::Faddnf | Op::Fmax => Some(false),
        _ => None,
    }
}

fn sources71(alu: &Alu) -> Result<Sources, EncodeError> {
    let mut order = [0, 1];
    if let Some(ordered) = wanted_order(alu.add.op) {
        let rank = |i: usize| match alu.add.src[i] {
            Source::Small(code) => 256 + u16::from(code),
            Source::Row(row) => row.into(),
            Source::Acc(_) | Source::None => 0,
        };
        let key = |i: usize| order_key(Version::V71, alu.add.unpack[i], rank(i));
        if (key(0) <= key(1)) != ordered {
            order = [1, 0];
            if (key(1) <= key(0)) != ordered {
                return Err(EncodeError::Order(alu.add.op));
            }
        }
    }
    let mut small = None;
    let mut field = |n: u8, source: Source| match source {
        Source::Row(row) => Ok(u32::from(row)),
        Source::Small(code) => match small.replace(n) {
            None => Ok(u32::from(code)),
            Some(_) => Err(EncodeError::SmallImmediates),
        },
        Source::Acc(_) | Source::None => Ok(0),
    };
    let a = field(0, alu.add.src[order[0]])?;
    let b = field(1, alu.add.src[order[1]])?;
    let c = field(2, alu.mul.src[0])?;
    let d = field(3, alu.mul.src[1])?;
    Ok(Sources { order_a: order, selector_a: b as u16, selector_m: d as u16, low: c << 18 | a << 6, small })
}

/// Assigns the two read ports of 4.2. Port B also holds the small immediate or the rotation count.
fn sources42(alu: &Alu) -> Result<Sources, EncodeError> {
    let swapped =
        |order: [usize; 2]| [alu.add.src[order[0]], alu.add.src[order[1]], alu.mul.src[0], alu.mul.src[1]];
    let orders: &[[usize; 2]] = match wanted_order(alu.add.op) {
        Some(_) => &[[0, 1], [1, 0]],
        None => &[[0, 1]],
    };
    for &order in orders {
        let list = swapped(order);
        let mut rows = [None; 2];
        let mut fixed = alu.rotate;
        let mut small = false;
        for source in list {
            match source {
                Source::Row(row) => match rows {
                    [None, _] => rows[0] = Some(row),
                    [Some(a), _] if a == row => {}
                    [_, None] => rows[1] = Some(row),
                    [_, Some(b)] if b == row => {}
                    _ => return Err(EncodeError::Ports),
                },
                Source::Small(code) => {
                    small = true;
                    if *fixed.get_or_insert(code) != code {
                        return Err(EncodeError::Ports);
                    }
                }
                Source::Acc(_) | Source::None => {}
            }
        }
        if fixed.is_some_and(|code| code > 63) {
            return Err(EncodeError::Register);
        }
        if small && alu.rotate.is_some() {
            return Err(EncodeError::Signals(alu.signals));
        }
        // What the two ports bring, best first; `true`: source a of the ADD operation takes port B although the row is
        // in both, which is what faddnf and fmax of equal sources need. A row may come through port B although that
        // holds a rotation count, if the numbers happen to be the same.
        type Ports = (u8, u8, bool);
        let ports: [Option<Ports>; 2] = match (fixed, rows) {
            (None, [Some(a), None]) => [Some((a, 0, false)), Some((a, a, true))],
            (None, [Some(a), Some(b)]) => [Some((a, b, false)), Some((b, a, false))],
            (None, [None, _]) => [Some((0, 0, false)), None],
            (Some(code), [None, _]) => [Some((0, code, false)), None],
            (Some(code), [Some(a), None]) => {
                [Some((a, code, false)), (a == code && !small).then_some((a, code, true))]
            }
            (Some(code), [Some(a), Some(b)]) if b == code && !small => [Some((a, code, false)), None],
            (Some(code), [Some(a), Some(b)]) if a == code && !small => [Some((b, code, false)), None],
            (Some(_), _) => return Err(EncodeError::Ports),
        };
        for (a, b, both) in ports.into_iter().flatten() {
            let selector = |i: usize| match list[i] {
                Source::Acc(n) => u16::from(n),
                Source::Row(_) if both && i == 0 => 7,
                Source::Row(row) if row == a => 6,
                Source::Row(_) | Source::Small(_) => 7,
                Source::None => 0,
            };
            let selectors = [selector(0), selector(1), selector(2), selector(3)];
            if let Some(ordered) = wanted_order(alu.add.op) {
                let key = |i: usize| order_key(Version::V42, alu.add.unpack[order[i]], selectors[i]);
                if (key(0) <= key(1)) != ordered {
                    continue;
                }
            }
            return Ok(Sources {
                order_a: order,
                selector_a: selectors[1] << 3 | selectors[0],
                selector_m: selectors[3] << 3 | selectors[2],
                low: u32::from(a) << 6 | u32::from(b),
                small: small.then_some(1),
            });
        }
    }
    Err(EncodeError::Order(alu.add.op))
}

/// Magic bit, write address, and key with its operand bits of one part.
#[inline]
fn part(
    version: Version,
    unit: Unit,
    part: &Part,
    order: [usize; 2],
    operands: u16,
) -> Result<(bool, u8, u16), EncodeError> {
    let table = tables::unit(version, unit);
    let (form, base) = table.of(part.op).ok_or(EncodeError::Op(part.op, unit))?;
    if !part.op.has_dest() && part.dest != Dest::NOP {
        return Err(EncodeError::Operands(part.op));
    }
    let (magic, address) = match (form.extra, part.dest) {
        (Extra::Waddr(selector), _) => (false, selector),
        (Extra::Ma(out), Dest::Row(row @ 0..=63)) => (out, row),
        (Extra::Ma(_), Dest::Magic(_)) => return Err(EncodeError::RowOnly(part.op)),
        (_, Dest::Row(row @ 0..=63)) => (false, row),
        (_, Dest::Magic(n @ 0..=63)) => (true, n),
        _ => return Err(EncodeError::Register),
    };
    let key = form
        .key(base, part.pack, part.unpack[order[0]], part.unpack[order[1]])
        .ok_or(EncodeError::Modifier(part.op))?
        | operands;
    // Catches modifiers outside of the ranges of the form, and the one operation whose source is part of its opcode.
    if !table.owns(key, part.op) {
        let modified = part.pack != Pack::None || part.unpack != [Unpack::None; 2];
        return Err(if modified { EncodeError::Modifier(part.op) } else { EncodeError::Operands(part.op) });
    }
    Ok((magic, address, key))
}

/// The condition field (section 7.1) or the signal address.
#[inline]
fn condition_field(alu: &Alu) -> Result<u8, EncodeError> {
    let (a, m) = (&alu.add, &alu.mul);
    let free = [a, m].iter().all(|p| p.cond.is_none() && p.push.is_none() && p.update.is_none());
    let addressed = Signals(alu.signals.0 & Signals::ADDRESSED.0).count();
    match (addressed, alu.sig_dest) {
        (0, None) => {}
        (1, Some(_)) if !free => return Err(EncodeError::SignalWithFlags),
        (1, Some(Dest::Row(row @ 0..=63))) => return Ok(row),
        (1, Some(Dest::Magic(n @ 0..=63))) => return Ok(64 | n),
        (1, Some(_)) => return Err(EncodeError::Register),
        _ => return Err(EncodeError::SignalAddress),
    }
    if free {
        return Ok(0);
    }
    let push = |p: Option<crate::instr::Push>| p.map_or(0, |p| p as u8);
    Ok(match ((a.cond, a.push, a.update), (m.cond, m.push, m.update)) {
        ((None, Some(p), None), (None, None, None)) => p as u8,
        ((None, None, Some(u)), (None, None, None)) => u as u8,
        ((None, None, None), (None, Some(p), None)) => 0x10 | p as u8,
        ((None, None, None), (None, None, Some(u))) => 0x10 | u as u8,
        ((Some(c), None, None), (None, p, None)) => 0x20 | (c as u8) << 2 | push(p),
        ((None, p, None), (Some(c), None, None)) => 0x30 | (c as u8) << 2 | push(p),
        ((Some(ca), None, None), (Some(cm), None, None)) => 0x40 | (cm as u8) << 4 | ca as u8,
        ((None, None, Some(u)), (Some(c), None, None)) => 0x40 | (c as u8) << 4 | u as u8,
        _ => return Err(EncodeError::Flags),
    })
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
