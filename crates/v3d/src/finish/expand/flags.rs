//! Tests into flag A (reference section 7), and what the flag holds.
//!
//! A chain of comparisons is one push and an update for each further part. An update can only *and* to what A holds or
//! to its inverse, so an *or* arrives inverted, and the condition that is asked in the end says so.

use super::{Expander, Uses};
use crate::finish::uop::{self, mov, update};
use crate::instr::{Cond, Dest, Loc, Op, Part, Push, Source, Unpack, Update};
use crate::mops::{Cmp, CmpOp, MAX_CMPS, Test};
use smallvec::SmallVec;

/// A comparison of registers and immediates.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Compared {
    op: CmpOp,
    src: [Source; 2],
    unpack: [Unpack; 2],
    /// It holds where the flag that the operation delivers is set.
    positive: bool,
}

/// The test that A answers under a condition.
#[derive(Clone, PartialEq, Debug)]
struct Key {
    mask: Option<Source>,
    cmps: SmallVec<[Compared; MAX_CMPS]>,
    not: bool,
}

/// What flag A holds.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Flags {
    test: Option<(Key, Cond)>,
    /// A register that is 0 exactly where A has this condition.
    zero: Option<(Loc, Cond)>,
}

impl Flags {
    /// A register gets another value.
    pub fn written(&mut self, l: Loc) {
        let hit = |s: Source| uop::source_loc(s) == Some(l);
        if let Some((key, _)) = &self.test
            && (key.mask.is_some_and(hit) || key.cmps.iter().any(|c| c.src.into_iter().any(hit)))
        {
            self.test = None;
        }
        if self.zero.is_some_and(|z| z.0 == l) {
            self.zero = None;
        }
    }

    /// A register has just been made 0 where A has this condition, something else elsewhere.
    pub fn decides(&mut self, l: Loc, zero: Cond) {
        self.zero = Some((l, zero));
    }
}

impl Expander<'_> {
    /// Brings a test into flag A; returns the condition under which it holds.
    pub(super) fn test(&mut self, t: &Test, uses: &mut Uses<'_>) -> Cond {
        let mask = t.mask.then(|| uses.next());
        let cmps = t.cmps().map(|c| compared(c, uses)).collect();
        let mut key = Key { mask, cmps, not: t.not };
        // Without a mask, a test and its inverse are the same flag.
        let mut flip = false;
        if mask.is_none() {
            flip = std::mem::take(&mut key.not);
            if let [one] = key.cmps.as_mut_slice() {
                flip ^= !std::mem::replace(&mut one.positive, true);
            }
        }
        let asked = |c: Cond| if flip { c.inverse() } else { c };
        if let Some((held, cond)) = &self.flags.test
            && *held == key
        {
            return asked(*cond);
        }
        if let (Some(m), [], Some((l, cond))) = (mask, key.cmps.as_slice(), self.flags.zero)
            && uop::source_loc(m) == Some(l)
        {
            return cond;
        }
        let zero = self.flags.zero;
        // Whether A is the inverse of what it stands for.
        let mut inverse = false;
        let mut started = false;
        let mut mask_first = None;
        if key.cmps.len() <= 1 && !key.not {
            mask_first = mask;
        }
        if let Some(m) = mask_first {
            match zero.filter(|z| uop::source_loc(m) == Some(z.0)) {
                // It is there already.
                Some((_, cond)) => inverse = cond == Cond::IfNa,
                None => self.emit_part(uop::push(mov(Dest::NOP, m), Push::Z)),
            }
            started = true;
        }
        for c in key.cmps.clone() {
            self.add(operation(&c), c.positive, started, &mut inverse);
            started = true;
        }
        if key.not {
            inverse = !inverse;
        }
        if let Some(m) = mask.filter(|_| mask_first.is_none()) {
            self.add((mov(Dest::NOP, m), Push::Z), true, started, &mut inverse);
        }
        let cond = if inverse { Cond::IfNa } else { Cond::IfA };
        self.flags.test = Some((key, cond));
        asked(cond)
    }

    /// *Ands* what an operation delivers to A.
    fn add(&mut self, (part, flag): (Part, Push), positive: bool, started: bool, inverse: &mut bool) {
        if !started {
            self.emit_part(uop::push(part, flag));
            *inverse = !positive;
            return;
        }
        let how = match (flag, positive, *inverse) {
            (Push::Z, true, false) => Update::AndZ,
            (Push::Z, false, false) => Update::AndNz,
            (Push::Z, true, true) => Update::NorNz,
            (Push::Z, false, true) => Update::NorZ,
            (Push::N, true, false) => Update::AndN,
            (Push::N, false, false) => Update::AndNn,
            (Push::N, true, true) => Update::NorNn,
            (Push::N, false, true) => Update::NorN,
            (Push::C, true, false) => Update::AndC,
            (Push::C, false, false) => Update::AndNc,
            (Push::C, true, true) => Update::NorNc,
            (Push::C, false, true) => Update::NorC,
        };
        self.emit_part(update(part, how));
        *inverse = false;
    }
}

fn compared(c: &Cmp, uses: &mut Uses<'_>) -> Compared {
    let src = [uses.take(c.src[0]), uses.take(c.src[1])];
    Compared { op: c.op, src, unpack: c.unpack, positive: c.invert == (c.op == CmpOp::NonZero) }
}

/// The operation of a comparison and the flag that says it (section 7.3).
fn operation(c: &Compared) -> (Part, Push) {
    let part = |o: Op, a: usize, b: usize| Part {
        unpack: [c.unpack[a], c.unpack[b]],
        ..Part::new(o, Dest::NOP, c.src[a], c.src[b])
    };
    match c.op {
        CmpOp::NonZero => (mov(Dest::NOP, c.src[0]), Push::Z),
        CmpOp::Ieq => (part(Op::Xor, 0, 1), Push::Z),
        CmpOp::Slt => (part(Op::Min, 1, 0), Push::C),
        CmpOp::Ult => (part(Op::Sub, 0, 1), Push::C),
        CmpOp::Feq => (part(Op::Fcmp, 0, 1), Push::Z),
        CmpOp::Flt => (part(Op::Fcmp, 0, 1), Push::N),
        CmpOp::Fle => (part(Op::Fcmp, 0, 1), Push::C),
    }
}
