//! Operations between lanes as operations on registers.
//!
//! 7.1 has them (reference 6.5, 12.5); they run in the special function unit. 4.2 can turn an accumulator that the MUL
//! part reads (8.5) and write lane 0 to all lanes of r5 (3.1): a ballot is then one bit per lane, gathered in four steps
//! that each take in twice as many lanes.
//!
//! The operations of 7.1 are used without a condition, as they were seen on chips; which lanes count is in the operand.

use super::Expander;
use crate::finish::uop::{UOp, dest, mov, push, source, under, update};
use crate::instr::{Cond, Dest, Loc, Op, Part, Push, Source, Update, Version};
use crate::magic;

/// The accumulators that a rotation may use (`regs::LANES`).
const TURN: Loc = Loc::Acc(0);
const OTHER: Loc = Loc::Acc(1);
const R5: Loc = Loc::Acc(5);

/// Code of a rotation by which lane k gets lane k + n: the count goes the other way (8.5).
fn turn_code(n: u8) -> u8 {
    (16 - n % 16) % 16
}

impl Expander<'_> {
    fn turn(&mut self, to: Dest, from: Loc, code: u8) {
        let mut op = UOp::alu(mov(to, source(from)));
        op.rotate = Some(code);
        self.emit(op);
    }

    /// Brings the condition that lanes exist into flag A beside a test; gives the condition that then holds.
    fn existing(&mut self, cond: Option<Cond>) -> Cond {
        let flags = Part::new(Op::Msf, Dest::NOP, Source::None, Source::None);
        match cond {
            Some(Cond::IfNa) => {
                self.emit_part(update(flags, Update::NorZ));
                Cond::IfA
            }
            Some(_) => {
                self.emit_part(update(flags, Update::AndNz));
                Cond::IfA
            }
            None => {
                self.emit_part(push(flags, Push::Z));
                Cond::IfNa
            }
        }
    }

    pub(super) fn ballot(&mut self, cond: Option<Cond>, live: bool, to: Loc) {
        let cond = if live { Some(self.existing(cond)) } else { cond };
        match self.version() {
            Version::V71 => {
                let set = match cond {
                    Some(Cond::IfNa) => Part::new(Op::Vflna, dest(to), Source::None, Source::None),
                    Some(_) => Part::new(Op::Vfla, dest(to), Source::None, Source::None),
                    None => mov(dest(to), Source::Small(1)),
                };
                self.emit_part(set);
                self.emit_part(Part::new(Op::Ballot, dest(to), source(to), Source::None));
            }
            Version::V42 => {
                let (bits, more) = (dest(TURN), dest(OTHER));
                self.emit_part(Part::new(Op::Eidx, bits, Source::None, Source::None));
                self.emit_part(Part::new(Op::Shl, bits, Source::Small(1), source(TURN)));
                if let Some(c) = cond {
                    self.emit_part(under(mov(bits, Source::Small(0)), Some(c.inverse())));
                }
                for n in [8, 4, 2, 1] {
                    self.turn(more, TURN, turn_code(n));
                    let to = if n == 1 { dest(to) } else { bits };
                    self.emit_part(Part::new(Op::Or, to, source(TURN), source(OTHER)));
                }
            }
        }
    }

    pub(super) fn rotate(&mut self, from: Source, by: u8, to: Loc) {
        let by = by % 16;
        if by == 0 {
            self.emit_part(mov(dest(to), from));
            return;
        }
        match self.version() {
            Version::V71 => self.emit_part(Part::new(Op::Rot, dest(to), from, Source::Small(by))),
            Version::V42 => {
                self.bring(from);
                self.turn(dest(to), TURN, turn_code(by));
            }
        }
    }

    pub(super) fn broadcast(&mut self, from: Source, lane: Source, to: Loc) {
        // r5 holds one word for all lanes.
        if from == source(R5) {
            self.emit_part(mov(dest(to), from));
            return;
        }
        let all = Dest::Magic(magic::REP);
        match lane {
            Source::Small(0) => self.emit_part(mov(all, from)),
            Source::Small(n) => {
                self.bring(from);
                self.turn(all, TURN, turn_code(n));
            }
            lane => {
                // Written first: the lane may stand in r0, the value does not stand in r5.
                self.emit_part(Part::new(Op::Neg, dest(R5), lane, Source::None));
                self.bring(from);
                self.turn(all, TURN, 0);
            }
        }
        self.emit_part(mov(dest(to), source(R5)));
    }

    /// A copy in the accumulator that is turned.
    fn bring(&mut self, from: Source) {
        if self.holds_copy(TURN, from) {
            return;
        }
        self.emit_part(mov(dest(TURN), from));
        self.copied(TURN, from);
    }
}
