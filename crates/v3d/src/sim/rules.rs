//! Limits of the hardware that the simulator stops at as it meets them.
//!
//! A word that breaks a rule by itself (check W of section 15) becomes a stop when it is reached; rules about distances
//! and slots (check P) are counted along the way that the thread really takes. The validator follows every way through
//! the text instead; the two share the decoder and nothing else, so that each can be held against the other. Rules
//! about what a fragment or a vertex has besides registers are in `varying`, `tile` and `vpm`.

use super::code::{Code, Step};
use super::thread::{Thread, Trouble};
use crate::instr::{Alu, Branch, Dest, Loc, Pack, Part, Signals, Source, Unpack, Version};
use crate::magic::{self, Class};
use crate::ops::Op;

/// Takes a word of the uniform stream.
pub(super) const UNIFORM: u16 = 1;
/// Writes the side-band address.
pub(super) const UNIFA: u16 = 1 << 1;
/// 4.2: starts a special function by a magic address.
pub(super) const SFU_MAGIC: u16 = 1 << 2;
/// A row is written by ADD or MUL.
pub(super) const ROW_BY_ALU: u16 = 1 << 3;
pub(super) const ROW_BY_SIGNAL: u16 = 1 << 4;
/// rf2 or rf3 is read or written.
pub(super) const RF23: u16 = 1 << 5;
/// rf0, rf1 or rf2 is read.
pub(super) const RF012_READ: u16 = 1 << 6;
pub(super) const TMUWT: u16 = 1 << 7;
pub(super) const VPMWT: u16 = 1 << 8;
pub(super) const SETMSF: u16 = 1 << 9;
/// ldunif or ldunifrf.
pub(super) const LDUNIF: u16 = 1 << 10;
/// ldunifa or ldunifarf.
pub(super) const LDUNIFA: u16 = 1 << 11;
pub(super) const LDVARY: u16 = 1 << 12;

/// What the rules ask of an instruction.
pub(super) fn traits(version: Version, alu: &Alu) -> u16 {
    let mut t = 0;
    let mut set = |bit: u16, on: bool| t |= if on { bit } else { 0 };
    let dests = || [alu.add.result(), alu.mul.result(), alu.sig_dest].into_iter().flatten();
    let magic = |n: u8| dests().any(|d| d == Dest::Magic(n));
    set(UNIFORM, alu.uniforms() != 0);
    set(UNIFA, magic(magic::UNIFA));
    set(SFU_MAGIC, dests().any(|d| is_class(version, d, Class::Sfu)));
    // On 7.1 the two broadcasts are writes of rf0.
    let row =
        |d: Dest| d.row().is_some() || version == Version::V71 && is_class(version, d, Class::Broadcast);
    set(ROW_BY_ALU, [alu.add.result(), alu.mul.result()].into_iter().flatten().any(row));
    set(ROW_BY_SIGNAL, alu.sig_dest.is_some_and(row));
    let reads = |r: u8| alu.sources().any(|(s, _)| s == Source::Row(r));
    let uses = |r: u8| reads(r) || dests().any(|d| d == Dest::Row(r));
    set(RF23, uses(2) || uses(3));
    set(RF012_READ, reads(0) || reads(1) || reads(2));
    set(TMUWT, alu.add.op == Op::Tmuwt);
    set(VPMWT, alu.add.op == Op::Vpmwt);
    set(SETMSF, alu.add.op == Op::Setmsf);
    set(LDUNIF, alu.signals.has(Signals::LDUNIF | Signals::LDUNIFRF));
    set(LDVARY, alu.signals.has(Signals::LDVARY));
    set(LDUNIFA, alu.signals.has(Signals::LDUNIFA | Signals::LDUNIFARF));
    t
}

fn is_class(version: Version, dest: Dest, class: Class) -> bool {
    matches!(dest, Dest::Magic(n) if magic::class(version, n) == class)
}

/// A rule that the word breaks wherever it stands, with what is wrong.
pub(super) fn broken_alu(version: Version, threads: u32, alu: &Alu) -> Option<(&'static str, &'static str)> {
    for part in alu.parts() {
        if let Some(what) = modifiers(part) {
            return Some(("10", what));
        }
        if let Some(dest) = part.result()
            && dest != Dest::NOP
            && dest.row().is_none()
            && (part.op.is_sfu() || part.op.is_vpm_read())
        {
            return Some(match feeds_tmu(dest) && crosses_lanes(part.op) {
                true => ("70", "the result of an operation across lanes goes to the TMU"),
                false => ("13", "the result of a special function does not go to a row"),
            });
        }
    }
    if threads == 4 {
        let high = |r: u8| r > 31;
        let source = |(s, _)| matches!(s, Source::Row(r) if high(r));
        if alu.sources().any(source) || alu.dests().any(|d| d.row().is_some_and(high)) {
            return Some(("11", "a row above rf31 in a program with 4 threads"));
        }
    }
    if alu.dests().any(|d| is_class(version, d, Class::Reserved)) {
        return Some(("12", "write to a reserved address"));
    }
    let bus = [Class::Tmu, Class::Sfu, Class::Vpm, Class::Tlb, Class::Tsy];
    let writes = alu.dests().filter(|&d| bus.iter().any(|&c| is_class(version, d, c))).count();
    let reads = [Signals::LDTLB, Signals::LDTLBU].into_iter().filter(|&s| alu.signals.has(s)).count();
    if writes + reads > 1 {
        return Some(("14", "more than one peripheral access in one instruction"));
    }
    match (alu.uniforms(), alu.signals.has(Signals::LDUNIFA | Signals::LDUNIFARF)) {
        (0, _) | (1, false) => {}
        (1, true) => return Some(("17", "a uniform together with a side-band word")),
        _ => return Some(("17", "more than one word of the uniform stream in one instruction")),
    }
    let rf0 = |d: Dest| d == Dest::Row(0) || is_class(version, d, Class::Broadcast);
    if version == Version::V71 && alu.signals.has(Signals::LDVARY) && alu.sig_dest.is_some_and(rf0) {
        return Some(("22", "ldvary to rf0"));
    }
    if version == Version::V71 && crosses_lanes(alu.add.op) && alu.mul.result().is_some_and(feeds_tmu) {
        return Some(("70", "an operation across lanes beside a write to the TMU"));
    }
    None
}

/// tmud, tmua, tmuc.
fn feeds_tmu(dest: Dest) -> bool {
    matches!(dest, Dest::Magic(magic::TMUD | magic::TMUA | magic::TMUC))
}

fn crosses_lanes(op: Op) -> bool {
    matches!(op, Op::Rot | Op::Rotq | Op::Shuffle)
}

/// Rule 10.
fn modifiers(part: &Part) -> Option<&'static str> {
    use Op::*;
    let has = |u: Unpack| part.sources().any(|(_, how)| how == u);
    if has(Unpack::Unknown7) {
        return Some("unpack code 7, whose meaning is not known");
    }
    let no_abs = matches!(
        part.op,
        Vfpack | Fround | Ftrunc | Ffloor | Fceil | Fdx | Fdy | Ftoin | Ftoiz | Ftouz | Ftoc
    );
    if no_abs && has(Unpack::Abs) {
        return Some("an absolute value where the operation has none");
    }
    if matches!(part.op, Fxcd | Fycd | Itof | Utof) && part.pack != Pack::None {
        return Some("an output pack where the operation has none");
    }
    None
}

/// The same for a branch.
pub(super) fn broken_branch(threads: u32, branch: &Branch) -> Option<(&'static str, &'static str)> {
    let high = threads == 4 && branch.row().is_some_and(|r| r > 31);
    high.then_some(("11", "a row above rf31 in a program with 4 threads"))
}

/// Where an instruction stands.
pub(super) struct Slots {
    /// In a delay slot of a branch that moves the uniform pointer.
    pub moved_pointer: bool,
    /// Delay slot 1 or 2 of a thread switch, or 0.
    pub switch: u8,
    /// 0 in the instruction that asks for the end, 1 and 2 behind it.
    pub end: Option<u8>,
    /// Asks for a thread switch.
    pub asks: bool,
}

/// Rules about the slots of branches and thread switches.
#[cold]
pub(super) fn check_slots(version: Version, traits: u16, slots: &Slots) -> Result<(), Trouble> {
    let has = |bits: u16| traits & bits != 0;
    if slots.moved_pointer && has(UNIFORM) {
        return Err(Trouble::new("40", "uniform taken in a slot of a branch that moves the pointer"));
    }
    if let Some(slot) = slots.end
        && let Some((rule, what)) = broken_end(version, traits, slot)
    {
        return Err(Trouble::new(rule, format!("{what} in slot {slot} of the end")));
    }
    if (slots.asks || slots.switch != 0) && has(UNIFA) {
        return Err(Trouble::new("35", "unifa written in a thread switch or its slots"));
    }
    if has(LDVARY) {
        match version {
            Version::V42 if slots.switch != 0 => {
                return Err(Trouble::new("33", "ldvary in a slot of a thread switch"));
            }
            Version::V71 if slots.switch == 2 => {
                return Err(Trouble::new("34", "ldvary in the second slot of a thread switch"));
            }
            _ => {}
        }
    }
    if slots.switch != 0 && has(SFU_MAGIC) {
        return Err(Trouble::new("31", "special function started in a slot of a thread switch"));
    }
    Ok(())
}

/// Rules 47 to 52.
fn broken_end(version: Version, traits: u16, slot: u8) -> Option<(&'static str, &'static str)> {
    let has = |bits: u16| traits & bits != 0;
    match version {
        Version::V42 if has(ROW_BY_ALU | ROW_BY_SIGNAL) => return Some(("47", "row written")),
        Version::V42 if has(RF012_READ) => return Some(("50", "rf0, rf1 or rf2 read")),
        Version::V42 if has(VPMWT) || has(TMUWT) && slot == 2 => return Some(("52", "memory waited for")),
        Version::V71 if has(RF23) => return Some(("49", "rf2 or rf3 used")),
        Version::V71 if has(ROW_BY_ALU) && slot == 0 => return Some(("48", "row written by ADD or MUL")),
        _ => {}
    }
    if has(UNIFORM) && slot != 0 {
        return Some(("51", "uniform taken"));
    }
    if has(LDVARY) {
        return Some(("51", "varying taken"));
    }
    has(UNIFA).then_some(("51", "unifa written"))
}

impl Thread {
    /// Rule 27: what a rotation turns, and r5 if it holds the count, must not come from the instruction before.
    #[cold]
    pub(super) fn check_rotation(&self, code: &Code, rotating: &Alu) -> Result<(), Trouble> {
        let Some(before) = self.previous(code) else { return Ok(()) };
        for written in before.writes(Version::V42).chain(before.writes_late(Version::V42)) {
            let source = match written {
                Loc::Row(r) => Source::Row(r),
                Loc::Acc(r) => Source::Acc(r),
            };
            let turned = rotating.mul.sources().any(|(s, _)| s == source);
            if turned || rotating.rotate == Some(0) && written == Loc::Acc(5) {
                return Err(Trouble::new("27", "rotation of a register that the instruction before wrote"));
            }
        }
        Ok(())
    }

    /// The instruction that this thread executed before, if it was no branch.
    fn previous<'a>(&self, code: &'a Code) -> Option<&'a Alu> {
        code.instrs.get(self.before)?.alu()
    }

    /// Rule 19: a word of one stream right after a word of the other.
    pub(super) fn neighbours(&self, code: &Code, traits: u16) -> bool {
        let before = self.traits_before(code);
        code.version == Version::V42
            && (before & LDUNIF != 0 && traits & LDUNIFA != 0
                || before & LDUNIFA != 0 && traits & LDUNIF != 0)
    }

    /// What the rules ask of the instruction that this thread executed before.
    pub(super) fn traits_before(&self, code: &Code) -> u16 {
        match code.steps.get(self.before) {
            Some(Step::Alu(op)) => op.traits,
            _ => 0,
        }
    }
}
