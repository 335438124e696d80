//! What a fragment is given: varyings with their delayed coefficients (section 12.1), coordinates, facing, sample numbers.
//!
//! Rules checked here: 18, 20, 21 and the warning 42; 22, 33, 34 and 51 are those of words and slots (`rules`). A coefficient
//! is read too early (20) if the register can hold nothing else that is meant: nothing, or a coefficient that has been read.

use super::code::{ALL, Code, From, Micro, Step, To, uniform_register};
use super::graphics::{FragmentBatch, Stage};
use super::thread::{Cause, Machine, Thread, Trouble, Value};
use super::tile::Tile;
use super::{Lanes, Mask};
use crate::instr::{Op, Signals, Version};
use crate::magic;

/// What the register of coefficients holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    Other,
    /// A coefficient that nothing has read yet.
    Fresh,
    /// A coefficient that has been read.
    Used,
}

#[derive(Clone, Debug)]
pub(super) struct Fragment {
    pub batch: FragmentBatch,
    /// Lanes of quads without any sample flag at the start: what they are given is undefined.
    pub dead: Mask,
    pub tile: Tile,
    facing: Mask,
    facing_poison: Mask,
    /// The next varying.
    next: usize,
    /// The varying whose coefficient arrives at the end of this instruction.
    arriving: Option<usize>,
    held: Held,
}

impl Fragment {
    pub fn new(batch: &FragmentBatch, tile: Tile) -> Fragment {
        let dead = !batch.live();
        Fragment {
            batch: batch.clone(),
            dead,
            tile,
            facing: batch.back,
            facing_poison: dead,
            next: 0,
            arriving: None,
            held: Held::Other,
        }
    }

    fn given(&self, v: Lanes) -> (Lanes, Mask, Option<Cause>) {
        (v, self.dead, Some(Cause::Dead))
    }

    /// Operations that ask for what the fragment is given.
    pub fn query(&self, op: Op) -> Option<(Lanes, Mask, Option<Cause>)> {
        let b = &self.batch;
        Some(match op {
            Op::Fxcd => self.given(b.fx),
            Op::Fycd => self.given(b.fy),
            Op::Xcd => self.given(b.x),
            Op::Ycd => self.given(b.y),
            Op::Sampid => self.given(b.sample),
            Op::Revf => {
                let v = std::array::from_fn(|i| u32::from(self.facing >> i & 1));
                (v, self.facing_poison, Some(Cause::Dead))
            }
            _ => return None,
        })
    }

    /// setrevf.
    pub fn set_facing(&mut self, v: &Lanes, poison: Mask, lanes: Mask, maybe: Mask) {
        let back = super::alu::mask(|i| v[i] & 1 != 0);
        self.facing = self.facing & !lanes | back & lanes;
        self.facing_poison = self.facing_poison & !lanes | poison & lanes | maybe;
    }
}

/// Whether an instruction reads a register as a source.
fn reads(op: &Micro, r: u8) -> bool {
    let from = From::Register(r);
    op.add.from[0] == from || op.add.from[1] == from || op.mul.from[0] == from || op.mul.from[1] == from
}

/// Whether it writes the register of coefficients so that the next instruction sees it.
fn writes(op: &Micro, r: u8) -> bool {
    let hits = |to: To| to == To::Register(r) || matches!(to, To::Magic(magic::QUAD | magic::REP));
    hits(op.add.to)
        || hits(op.mul.to)
        || hits(op.sig_to)
        || op.signals.has(Signals::LDUNIF | Signals::LDUNIFA)
}

impl Thread {
    pub(super) fn fragment(&mut self) -> Option<&mut Fragment> {
        match self.stage.as_mut() {
            Some(Stage::Fragment(fragment)) => Some(fragment),
            _ => None,
        }
    }

    /// ldvary: the part now, the constant one instruction later.
    pub(super) fn next_varying(&mut self) -> Result<Value, Trouble> {
        let Some(fragment) = self.fragment() else {
            return Err(Trouble::new(
                "unsupported",
                "varyings outside of fragment programs are not modelled",
            ));
        };
        let n = fragment.next;
        let Some(varying) = fragment.batch.varyings.get(n) else {
            return Err(Trouble::new("12.1", format!("ldvary after all {n} varyings")));
        };
        fragment.next += 1;
        Ok(Value { v: varying.part, poison: fragment.dead, cause: Cause::Dead })
    }

    /// Before an instruction of a fragment program: rules about the instruction behind an ldvary.
    #[cold]
    pub(super) fn before_fragment(
        &mut self,
        step: &Step,
        code: &Code,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let r = uniform_register(code.version);
        let empty = self.get(r).1 == ALL;
        let Some(fragment) = self.fragment() else { return Ok(()) };
        let behind = fragment.arriving.is_some();
        let Step::Alu(op) = step else {
            if behind && matches!(step, Step::Branch(_)) {
                m.warn(self, "42", "branch right after ldvary".to_owned());
            }
            return Ok(());
        };
        let reading = reads(op, r) || op.rotate == Some(0);
        if behind {
            if op.signals.has(Signals::LDUNIF | Signals::LDUNIFA) {
                return Err(Trouble::new("18", "ldunif or ldunifa right after ldvary"));
            }
            if code.version == Version::V71 && writes(op, r) {
                return Err(Trouble::new("21", "rf0 written right after ldvary"));
            }
            if reading && (empty && fragment.held == Held::Other || fragment.held == Held::Used) {
                return Err(Trouble::new("20", "coefficient read one instruction after ldvary"));
            }
        }
        if reading && fragment.held == Held::Fresh {
            fragment.held = Held::Used;
        }
        if writes(op, r) {
            fragment.held = Held::Other;
        }
        Ok(())
    }

    /// After an instruction of a fragment program: the coefficient of the ldvary before it arrives.
    #[cold]
    pub(super) fn after_fragment(&mut self, step: &Step, code: &Code) {
        let Some(fragment) = self.fragment() else { return };
        let vary = matches!(step, Step::Alu(op) if op.signals.has(Signals::LDVARY));
        let next = vary.then(|| fragment.next.wrapping_sub(1));
        let Some(n) = std::mem::replace(&mut fragment.arriving, next) else { return };
        let Some(varying) = fragment.batch.varyings.get(n) else { return };
        let (v, dead) = (varying.constant, fragment.dead);
        fragment.held = Held::Fresh;
        let r = uniform_register(code.version);
        // 4.2: both write the register at once, and the reference does not say who wins.
        let clash = matches!(step, Step::Alu(op) if writes(op, r));
        self.set(r, v);
        match clash {
            true => self.set_poison(r, ALL, Cause::Clash),
            false => self.set_poison(r, dead, Cause::Dead),
        }
        self.note_implicit_rf0(step);
    }

    /// The end of a fragment program.
    pub(super) fn end_fragment(&mut self, m: &mut Machine) -> Result<(), Trouble> {
        let Some(fragment) = self.fragment() else { return Ok(()) };
        fragment.tile.at_end()?;
        let (read, all) = (fragment.next, fragment.batch.varyings.len());
        if read != all {
            m.warn(self, "12.1", format!("{read} of {all} varyings are read"));
        }
        Ok(())
    }
}
