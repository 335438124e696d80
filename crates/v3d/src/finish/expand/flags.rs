//! Tests into flag A (reference section 7), and what the flag holds.

use super::{Expander, FlagKey, Uses};
use crate::finish::uop::{self, mov, update};
use crate::instr::{Cond, Dest, Op, Part, Push, Update};
use crate::mops::{CmpOp, Test};

impl Expander<'_> {
    /// Brings a test into flag A; returns the condition under which it holds.
    pub(super) fn test(&mut self, t: &Test, uses: &mut Uses<'_>) -> Cond {
        let mask = t.mask.then(|| uses.next());
        let cmp = t.cmp.map(|c| {
            let src = [uses.take(c.src[0]), uses.take(c.src[1])];
            (c.op, src, c.unpack)
        });
        let invert = t.cmp.is_some_and(|c| c.invert);
        // With a mask the inversion is part of the update; alone it is part of the condition.
        let key: FlagKey = (mask, cmp, mask.is_some() && invert);
        let cond = match (mask, cmp) {
            (None, Some((op, ..))) => {
                if invert != (op == CmpOp::NonZero) {
                    Cond::IfNa
                } else {
                    Cond::IfA
                }
            }
            _ => Cond::IfA,
        };
        if self.flags == Some(key) {
            return cond;
        }
        if let Some(m) = mask {
            self.emit_part(uop::push(mov(Dest::NOP, m), Push::Z));
        }
        if let Some((op, src, unpack)) = cmp {
            let part = |o: Op, a: usize, b: usize| Part {
                unpack: [unpack[a], unpack[b]],
                ..Part::new(o, Dest::NOP, src[a], src[b])
            };
            // Section 7.3.
            let (part, flag) = match op {
                CmpOp::NonZero => (mov(Dest::NOP, src[0]), Push::Z),
                CmpOp::Ieq => (part(Op::Xor, 0, 1), Push::Z),
                CmpOp::Slt => (part(Op::Min, 1, 0), Push::C),
                CmpOp::Ult => (part(Op::Sub, 0, 1), Push::C),
                CmpOp::Feq => (part(Op::Fcmp, 0, 1), Push::Z),
                CmpOp::Flt => (part(Op::Fcmp, 0, 1), Push::N),
                CmpOp::Fle => (part(Op::Fcmp, 0, 1), Push::C),
            };
            if mask.is_none() {
                self.emit_part(uop::push(part, flag));
            } else {
                let positive = invert == (op == CmpOp::NonZero);
                let how = match (flag, positive) {
                    (Push::Z, true) => Update::AndZ,
                    (Push::Z, false) => Update::AndNz,
                    (Push::N, true) => Update::AndN,
                    (Push::N, false) => Update::AndNn,
                    (Push::C, true) => Update::AndC,
                    (Push::C, false) => Update::AndNc,
                };
                self.emit_part(update(part, how));
            }
        }
        self.flags = Some(key);
        cond
    }
}
