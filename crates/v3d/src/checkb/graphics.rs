//! What only vertex and fragment programs do: varyings, sample flags, the tile buffer, rows of the VPM, on both sides.
//!
//! Facts: reference sections 12.1 (a varying's constant arrives one instruction later), 12.3 (VPM), 12.4 (tile buffer: which
//! configuration a write takes), 13.4 (it is written behind the last switch), rules 53, 61 and 62. The rules that are about time
//! alone (18, 20 to 22, 33, 34, 43 to 45, 51) are the validator's; what a register holds because of them is seen here.

use super::program::{Effect, EffectKind, Uses, maybe_test, operation};
use super::value::{Value, Values};
use super::words::{DEPTH, Done, Machine, Write, index};
use crate::instr::{Loc, Op, Part, Unpack, Version};
use crate::mops::MInst;
use kempe_ir::Stage;
use kempe_ir::io::Interpolation;
use kempe_mir::symbolic::Term;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::Block;
use smallvec::SmallVec;

/// Of the configuration byte of a general access (12.2): lanes by their own sample flags, not by those of their quad.
pub(super) const PER_PIXEL: u8 = 1 << 7;

/// Rows of the largest segment of a geometry program.
const MAX_ROWS: u32 = 2048;

const PLAIN: [Unpack; 2] = [Unpack::None; 2];

/// Sample flags between two writes of them: the write of a block, counted from 1, or 0 for those at its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags {
    write: u32,
    block: Block,
}

impl Default for Flags {
    /// Those that the program starts with.
    fn default() -> Flags {
        Flags { write: 0, block: Block(0) }
    }
}

impl Flags {
    /// The flags after so many writes of a block that starts with these.
    pub fn after(self, writes: u32, block: Block) -> Flags {
        if writes == 0 { self } else { Flags { write: writes, block } }
    }

    pub fn value(self) -> Value {
        Value::Samples(self.write, self.block)
    }
}

/// The flags at the start of every block. Where different ones meet they are others.
pub(super) fn flags_at_starts(mir: &Mir<MInst>) -> Vec<Flags> {
    let blocks = &mir.program.blocks;
    let writes: Vec<u32> = blocks
        .iter()
        .map(|b| {
            let range = b.insts.start as usize..b.insts.end as usize;
            let list = mir.data.get(range).unwrap_or_default();
            list.iter().filter(|i| matches!(i, MInst::SetSamples { .. } | MInst::MaskSamples)).count() as u32
        })
        .collect();
    if writes.iter().all(|&n| n == 0) {
        return vec![Flags::default(); blocks.len()];
    }
    let mut starts: Vec<Option<Flags>> = vec![None; blocks.len()];
    if let Some(first) = starts.first_mut() {
        *first = Some(Flags::default());
    }
    // A block that once got flags of its own keeps them, and others change only by what is in front of them.
    let mut again = true;
    while std::mem::take(&mut again) {
        for b in 1..blocks.len() {
            let own = Flags { write: 0, block: Block(b as u32) };
            let mut all: Option<Flags> = None;
            for q in &blocks[b].preds {
                let q = q.0 as usize;
                let Some(end) = starts.get(q).copied().flatten() else { continue };
                let end = end.after(writes[q], Block(q as u32));
                all = Some(if all.is_none_or(|a| a == end) { end } else { own });
            }
            if all.is_some() && starts[b] != all && starts[b] != Some(own) {
                starts[b] = all;
                again = true;
            }
        }
    }
    starts.into_iter().map(Option::unwrap_or_default).collect()
}

/// The value of a varying (12.1), of the two parts that the instruction brings.
pub(super) fn varying(
    v: &mut Values,
    how: Interpolation,
    inst: u32,
    block: Block,
    uses: &mut Uses,
) -> Option<Term> {
    let part = v.make(Value::Loaded(inst, 0, block));
    let constant = v.make(Value::Loaded(inst, 1, block));
    let part = match how {
        Interpolation::Flat => return Some(constant),
        Interpolation::NoPerspective => part,
        Interpolation::Smooth => {
            let w = uses.next()?;
            v.make(Value::Two(Op::Fmul, PLAIN, [part, w]))
        }
    };
    Some(v.make(Value::Two(Op::Fadd, PLAIN, [part, constant])))
}

/// Words that a configuration of the tile buffer takes (12.4).
fn words(byte: u8) -> Option<u8> {
    let n = match byte >> 6 {
        3 => 1 + (byte & 1),
        0 => 1 + (byte & 3),
        2 => 1,
        _ => return None,
    };
    Some(if byte & 4 != 0 { n } else { 4 * n })
}

/// Words that the last configuration lacks after these effects.
fn missing(effects: &[Effect]) -> Option<u8> {
    let mut missing = 0u8;
    for e in effects {
        match e.kind {
            EffectKind::Tile { setup: Some(byte), .. } => missing = words(byte)?.checked_sub(1)?,
            EffectKind::Tile { setup: None, .. } => missing = missing.checked_sub(1)?,
            _ => {}
        }
    }
    Some(missing)
}

/// What an instruction of a graphics program does behind these effects of its block. `flags`: the sample flags before it.
pub(super) fn effect(
    inst: MInst,
    v: &mut Values,
    flags: Value,
    before: &[Effect],
    uses: &mut Uses,
) -> Option<EffectKind> {
    Some(match inst {
        MInst::VertexOutput { op, src, test, .. } => {
            let condition = maybe_test(v, &test, uses)?;
            let row = uses.take(src[0], v)?;
            if op == Op::Stvpmv && !matches!(v.terms.node(row), Value::Const(_)) {
                return None;
            }
            EffectKind::Row { op, row, value: uses.take(src[1], v)?, condition }
        }
        MInst::RowRead { op, src } => {
            let row = uses.take(src[0], v)?;
            let vertex = if op == Op::LdvpmgOut { Some(uses.take(src[1], v)?) } else { None };
            EffectKind::RowRead { op, row, vertex }
        }
        MInst::VertexWait => EffectKind::RowsDone,
        MInst::SetSamples { src, test } => {
            let condition = maybe_test(v, &test, uses)?;
            EffectKind::Samples { value: uses.take(src, v)?, condition }
        }
        MInst::MaskSamples => {
            let mask = uses.next()?;
            let flags = v.make(flags);
            let value = v.make(Value::Two(Op::And, PLAIN, [flags, mask]));
            EffectKind::Samples { value, condition: None }
        }
        MInst::Tlb { config, op, src, unpack, .. } => {
            let mut s: SmallVec<[Term; 2]> = SmallVec::new();
            for &x in src.iter().take(op.sources()) {
                s.push(uses.take(x, v)?);
            }
            let value = v.make(operation(op, unpack, &s)?);
            // Every configuration leaves all ones in the register, which is what it begins with.
            let setup = match (config, missing(before)?) {
                (Some(byte), 0) => Some(byte),
                (None, 0) => Some(u8::MAX),
                (None, _) => None,
                (Some(_), _) => return None,
            };
            EffectKind::Tile { setup, value }
        }
        _ => return None,
    })
}

/// Operations without sources that a program of a stage has a use for: of others nobody says what they do there.
pub(super) fn is_made(stage: Stage, op: Op) -> bool {
    use Op::*;
    match op {
        Fxcd | Fycd | Revf | Sampid => stage == Stage::Fragment,
        Iid => stage.takes_primitives(),
        Xcd | Ycd => false,
        _ => true,
    }
}

/// What the words of one block have done.
pub(super) struct Graphics {
    /// Varyings taken, and the one whose constant arrives at the end of the next instruction.
    pub varyings: usize,
    arriving: Option<usize>,
    flags: Flags,
    writes: u32,
    /// The word of the last write of the sample flags.
    written_at: Option<usize>,
    /// The configuration register of the tile buffer, and words that the last configuration lacks.
    config: u32,
    missing: u8,
}

impl Graphics {
    pub fn new(flags: Flags) -> Graphics {
        Graphics {
            varyings: 0,
            arriving: None,
            flags,
            writes: 0,
            written_at: None,
            config: u32::MAX,
            missing: 0,
        }
    }
}

impl Machine<'_> {
    /// ldvary: the part.
    pub(super) fn next_varying(&mut self) -> Done<Term> {
        let Some(&inst) = self.behaviour.varyings.get(self.graphics.varyings) else {
            return self.stop("a varying is taken that the program does not take here");
        };
        self.graphics.varyings += 1;
        let part = self.v.make(Value::Loaded(inst, 0, self.block));
        Ok(self.v.name(part))
    }

    /// The end of an instruction that wrote these registers: the constant of the varying before it arrives. `next`: the
    /// varying that it takes itself.
    pub(super) fn coefficient(&mut self, written: &[usize], next: Option<usize>) {
        let Some(n) = std::mem::replace(&mut self.graphics.arriving, next) else { return };
        let r = index(Loc::uniform(self.p.version));
        let Some(&inst) = self.behaviour.varyings.get(n) else { return };
        // Two writes of one register: which one stays is not defined (rules 18, 21).
        self.places[r] = if written.contains(&r) {
            self.unknown()
        } else {
            let constant = self.v.make(Value::Loaded(inst, 1, self.block));
            self.v.name(constant)
        };
    }

    /// A switch has taken place: what arrives behind it may arrive in another thread (rules 33, 34).
    pub(super) fn coefficient_is_lost(&mut self) {
        if self.graphics.arriving.take().is_some() {
            self.places[index(Loc::uniform(self.p.version))] = self.unknown();
        }
    }

    /// Operations that ask for, or give, what a stage has.
    pub(super) fn of_stage(&mut self, p: &Part, cond: Option<Term>, s: &[Term]) -> Done<Term> {
        let stage = self.p.stage;
        let of = |k: usize| s.get(k).copied().unwrap_or(self.v.undefined);
        let rows = stage == Stage::Vertex || stage.takes_primitives();
        match p.op {
            Op::Msf => {
                let flags = self.graphics.flags.after(self.graphics.writes, self.block);
                let t = self.v.make(flags.value());
                return Ok(self.v.name(t));
            }
            op if p.unpack != PLAIN && !op.is_vpm_read() => {
                return self.stop(format!("{} with a modifier", p.op.name()));
            }
            Op::Setmsf if stage == Stage::Fragment => self.set_samples(of(0), cond)?,
            Op::LdvpmvIn if rows => {
                if let Some(row) = self.row(of(0))?
                    && self.s.given.rows >> row & 1 != 0
                {
                    return self.stop(format!("input row {row} is read after an output was put over it"));
                }
                return Ok(self.v.combine(&[of(0)], &|t| Value::One(Op::LdvpmvIn, p.unpack[0], t[0])));
            }
            Op::LdvpmgIn if stage.takes_primitives() => {
                let of = [of(0), of(1)];
                return Ok(self.v.combine(&of, &|t| Value::Two(Op::LdvpmgIn, p.unpack, [t[0], t[1]])));
            }
            Op::Ldvpmp if stage == Stage::TessEval => {
                return Ok(self.v.combine(&[of(0)], &|t| Value::One(Op::Ldvpmp, p.unpack[0], t[0])));
            }
            Op::LdvpmgOut | Op::Ldvpmp if stage == Stage::TessControl => {
                return self.read_back(p.op, of(0), of(1));
            }
            Op::Stvpmv if rows => {
                self.row(of(0))?;
                self.give_row(Op::Stvpmv, of(0), of(1), cond)?;
            }
            Op::Stvpmd | Op::Stvpmp if stage.takes_primitives() => self.give_row(p.op, of(0), of(1), cond)?,
            Op::Vpmwt if rows => {
                let wait = |e: &Effect| e.kind == EffectKind::RowsDone;
                let Some(n) = self.next_of(wait) else {
                    return self.stop("a wait for rows that the program does not have");
                };
                self.in_turn(n)?;
                self.take(n);
                self.s.given.open = false;
            }
            op => return self.stop(format!("{} is not made", op.name())),
        }
        Ok(self.unknown())
    }

    /// A row of the VPM that is the same in all lanes, if it is one that the program may read before it is written: a segment has at
    /// most 128 (12.3), that of a geometry program with fewer lanes more.
    fn row(&self, contents: Term) -> Done<Option<u32>> {
        let constant = |t: Term| match self.v.terms.node(t) {
            Value::Const(c) if c < MAX_ROWS => Some(c),
            _ => None,
        };
        match self.v.facts(contents).find_map(constant) {
            Some(row) => Ok(Some(row).filter(|r| *r < u128::BITS)),
            None => self.stop("a row of the VPM that is not known"),
        }
    }

    /// The first effect of a kind that has not been done.
    fn next_of(&self, is: impl Fn(&Effect) -> bool) -> Option<usize> {
        let effects = &self.behaviour.effects;
        (self.first_unmatched..effects.len()).find(|&n| !self.matched[n] && is(&effects[n]))
    }

    fn give_row(&mut self, op: Op, row: Term, value: Term, cond: Option<Term>) -> Done<()> {
        let behaviour = self.behaviour;
        let here = |e: &Effect| matches!(e.kind, EffectKind::Row { op: o, row: r, .. } if o == op && self.v.is(row, r));
        let Some(n) = self.next_of(here) else {
            return self.stop("a row is written that the program does not write here");
        };
        let Effect { inst, kind: EffectKind::Row { value: wanted, condition, .. }, .. } =
            behaviour.effects[n]
        else {
            return self.stop("a row that is none");
        };
        if !self.v.is(value, wanted) {
            return self.stop_at(
                inst,
                format!(
                    "a row is given {} instead of {}",
                    self.v.contents_text(value, DEPTH),
                    self.v.text(wanted, DEPTH)
                ),
            );
        }
        if !self.same_condition(condition, cond) {
            return self.stop_at(inst, "a row of other lanes is written");
        }
        self.in_turn(n)?;
        self.take(n);
        // A row of each lane may be any.
        self.s.given.rows |= match (op, self.row(row)) {
            (Op::Stvpmp, _) => 0,
            (Op::Stvpmv, Ok(row)) => row.map_or(0, |r| 1 << r),
            _ => u128::MAX,
        };
        self.s.given.open = true;
        Ok(())
    }

    fn read_back(&mut self, op: Op, row: Term, vertex: Term) -> Done<Term> {
        let behaviour = self.behaviour;
        let Some(n) = self.next_of(|e| match e.kind {
            EffectKind::RowRead { op: o, row: r, vertex: v } => {
                o == op && self.v.is(row, r) && v.is_none_or(|v| self.v.is(vertex, v))
            }
            _ => false,
        }) else {
            return self.stop("a row is read back that the program does not read here");
        };
        self.in_turn(n)?;
        self.take(n);
        let t = self.v.make(Value::Loaded(behaviour.effects[n].inst, 0, self.block));
        Ok(self.v.name(t))
    }

    fn set_samples(&mut self, value: Term, cond: Option<Term>) -> Done<()> {
        let behaviour = self.behaviour;
        let Some(n) = self.next_of(|e| matches!(e.kind, EffectKind::Samples { .. })) else {
            return self.stop("sample flags are written, which the program does not do here");
        };
        let Effect { inst, kind: EffectKind::Samples { value: wanted, condition }, .. } =
            behaviour.effects[n]
        else {
            return self.stop("sample flags that are none");
        };
        if !self.v.is(value, wanted) {
            return self.stop_at(
                inst,
                format!(
                    "the sample flags become {} instead of {}",
                    self.v.contents_text(value, DEPTH),
                    self.v.text(wanted, DEPTH)
                ),
            );
        }
        if !self.same_condition(condition, cond) {
            return self.stop_at(inst, "the sample flags of other lanes are written");
        }
        self.in_turn(n)?;
        self.take(n);
        self.graphics.writes += 1;
        self.graphics.written_at = Some(self.word);
        Ok(())
    }

    /// In one word with a write of the sample flags: which ones an effect sees is not said.
    pub(super) fn beside_flags(&self, effect: &Effect) -> Done<()> {
        let asks = match &effect.kind {
            EffectKind::Access(a) => a.asks_samples(),
            EffectKind::Tile { .. } => true,
            _ => false,
        };
        match asks && self.graphics.written_at == Some(self.word) {
            true => self.stop_at(effect.inst, "the sample flags are written in the same word"),
            false => Ok(()),
        }
    }

    /// A write of tlb, or of tlbu with its uniform.
    pub(super) fn tile(&mut self, configures: bool, w: &Write) -> Done<()> {
        if self.p.stage != Stage::Fragment {
            return self.stop("the tile buffer is written by another stage");
        }
        // 13.4; the switch of the end takes no lock away.
        if !self.s.last_section || (self.switch_in != 0 && !self.ending) {
            return self.stop("the tile buffer is written before the last thread switch");
        }
        if w.cond.is_some() {
            return self.stop("the tile buffer is written under a condition");
        }
        if configures {
            match self.next_uniform()? {
                UniformSource::Const(word) if word | 0xff == u32::MAX => self.graphics.config = word,
                _ => return self.stop("a configuration of the tile buffer that is not made"),
            }
            if self.graphics.missing != 0 {
                return self.stop("words of a write to the tile buffer are missing");
            }
        }
        let mut setup = None;
        if self.graphics.missing == 0 {
            let byte = (self.graphics.config & 0xff) as u8;
            self.graphics.config = self.graphics.config >> 8 | 0xff00_0000;
            let Some(n) = words(byte) else {
                return self.stop("a configuration of the tile buffer that does not exist");
            };
            self.graphics.missing = n;
            setup = Some(byte);
        }
        self.graphics.missing = self.graphics.missing.saturating_sub(1);
        let behaviour = self.behaviour;
        let Some(n) = self.next_of(|e| matches!(e.kind, EffectKind::Tile { .. })) else {
            return self.stop("a write to the tile buffer that the program does not have");
        };
        let Effect { inst, kind: EffectKind::Tile { setup: wanted_setup, value: wanted }, .. } =
            behaviour.effects[n]
        else {
            return self.stop("a write to the tile buffer that is none");
        };
        if setup != wanted_setup {
            return self.stop_at(inst, "the tile buffer is written with another configuration");
        }
        if !self.v.is(w.value, wanted) {
            return self.stop_at(
                inst,
                format!(
                    "the tile buffer is given {} instead of {}",
                    self.v.contents_text(w.value, DEPTH),
                    self.v.text(wanted, DEPTH)
                ),
            );
        }
        self.in_turn(n)?;
        self.take(n);
        Ok(())
    }

    /// What must not cross the end of a block, and the end of the program.
    pub(super) fn finish_graphics(&mut self, end: bool) -> Done<()> {
        if let Some(&inst) = self.behaviour.varyings.get(self.graphics.varyings) {
            return self.stop_at(inst, "a varying is not taken");
        }
        if self.graphics.arriving.is_some() {
            return self.stop("the constant of a varying arrives behind the end of its block");
        }
        if self.graphics.missing != 0 {
            return self.stop("words of a write to the tile buffer are missing at the end of its block");
        }
        // Rule 53.
        if end && self.p.version == Version::V42 && self.s.given.open {
            return self.stop("rows are not waited for at the end of the program");
        }
        Ok(())
    }
}
