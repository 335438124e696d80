//! Operations between lanes.
//!
//! There is no execution mask, so "the lanes that run" is part of the operand: a ballot tests the execution value, and a
//! reduction gives the other lanes the identity. The result is made in all lanes, also in those that wait; so what is
//! the same in all of them may be used as such (`flow.rs`).
//!
//! * 7.1 (reference 12.5): `ballot`, `shuffle`, `rot`, `rotq`.
//! * 4.2 can only turn all lanes by one count and give lane 0 to all (8.5, 3.1). A shuffle from one lane is both; the
//!   exchange of blocks of lanes is two rotations; any other shuffle tries all fifteen.
//! * A reduction takes the steps of [`kempe_ir::eval::reduce`]; over all 16 lanes a rotation is as good as an exchange,
//!   because both halves hold the same by then.
//!
//! What is left out: `alleq`, `allfeq`, `bcastf` of 7.1, which count lanes that wait.

use super::emit::{Emit, Uses, alu, running};
use super::values::Remade;
use crate::instr::{Op as MOp, Unpack, Version, small_code};
use crate::mops::{Cmp, CmpOp, MInst, Src, Test};
use crate::regs;
use kempe_ir::{Builtin, Imm, Inst, Op, ReduceImm, ReduceKind, Value, eval};
use kempe_ra::VReg;
use smallvec::smallvec;

const LANES: u8 = 16;

/// How the number of the lane to read is made.
enum From {
    /// The same constant for all.
    Lane(u8),
    /// The own number plus a constant.
    Turned(u8),
    /// The own number with some bits changed.
    Changed(u8),
    Any,
}

impl Emit<'_> {
    pub(super) fn lanes(&mut self, i: Inst) {
        let d = self.data(i);
        let (op, ty, imm) = (d.op, d.ty, d.imm);
        let (Some(&root), Some(&a), b) = (d.results.first(), d.args.first(), d.args.get(1).copied()) else {
            self.unsupported(i);
            return;
        };
        let v = match (op, imm, b) {
            (Op::Ballot, ..) => self.ballot(a, root),
            (Op::Shuffle, _, Some(lane)) => {
                let x = self.reg(a);
                self.shuffle(x, lane)
            }
            (Op::Reduce, Imm::Reduce(r), _) => {
                let Some(identity) = eval::reduce_identity(r.op, ty).filter(|_| !self.p.partial_batch) else {
                    self.unsupported(i);
                    return;
                };
                let x = self.reg(a);
                match self.reduce(&r, identity as u32, x) {
                    Some(v) => v,
                    None => {
                        self.unsupported(i);
                        return;
                    }
                }
            }
            _ => {
                self.unsupported(i);
                return;
            }
        };
        self.set(root, v);
        self.defined(root);
    }

    /// A register for a result of the unit that 7.1 has for these operations (rule 13).
    fn fresh_lanes(&mut self) -> VReg {
        self.fresh(if self.version == Version::V71 { regs::RF } else { regs::ANY })
    }

    fn ballot(&mut self, cond: Value, root: Value) -> VReg {
        let live = self.p.partial_batch;
        let (test, uses) = match (self.p.constant(self.p.root(cond)), self.exec) {
            (Some(0), _) => return self.remake_in(Remade::Const(0), Some(regs::ANY)),
            (Some(_), None) if !live => return self.remake_in(Remade::Const(0xffff), None),
            (Some(_), None) => (None, Uses::new()),
            (Some(_), Some(exec)) => {
                let (test, uses) = running(exec);
                (Some(test), uses)
            }
            (None, exec) => {
                let (test, uses) = self.test(cond, false, exec);
                (Some(test), uses)
            }
        };
        let home = if self.version == Version::V71 { regs::RF } else { regs::ANY };
        let dst = self.fresh_for(home, root);
        self.push(MInst::Ballot { test, live }, &[dst], &uses, None, regs::LANES);
        dst
    }

    fn rotate(&mut self, x: VReg, by: u8) -> VReg {
        let dst = self.fresh_lanes();
        self.push(MInst::Rotate { by: by % LANES }, &[dst], &[x], None, regs::LANES);
        dst
    }

    fn own_lane(&mut self) -> VReg {
        self.remake(Remade::LaneId)
    }

    fn plain(&mut self, op: MOp, src: [Src; 2], uses: &[VReg]) -> VReg {
        let dst = if op.is_sfu() { self.fresh_lanes() } else { self.fresh(regs::ANY) };
        self.push(alu(op, src, None), &[dst], uses, None, regs::NONE);
        dst
    }

    /// `cmp ? a : b`.
    fn either(&mut self, cmp: Cmp, of: &[VReg], src: [Src; 2], values: &[VReg]) -> VReg {
        let mut uses = Uses::from_slice(of);
        uses.extend_from_slice(values);
        let dst = self.fresh(regs::ANY);
        let test = Test::of(cmp);
        self.push(MInst::Select { test, src, unpack: [Unpack::None; 2] }, &[dst], &uses, None, regs::NONE);
        dst
    }

    // ---- Shuffles ----

    fn from(&self, lane: Value) -> From {
        let root = self.p.root(lane);
        if let Some(c) = self.p.constant(root) {
            return From::Lane(c as u8 % LANES);
        }
        let own =
            |v: Value| self.p.inst_of(self.p.root(v)).is_some_and(|d| d.imm == Imm::Builtin(Builtin::LaneId));
        let Some(d) = self.p.inst_of(root) else { return From::Any };
        if own(root) {
            return From::Turned(0);
        }
        let [a, b] = d.args.as_slice() else { return From::Any };
        let c = |v: Value| self.p.constant(self.p.root(v));
        let (c, first) = match (own(*a), c(*b), own(*b), c(*a)) {
            (true, Some(c), ..) => (c, true),
            (_, _, true, Some(c)) => (c, false),
            _ => return From::Any,
        };
        match d.op {
            Op::Iadd => From::Turned((c % 16) as u8),
            Op::Isub if first => From::Turned((c.wrapping_neg() % 16) as u8),
            // A bit beyond the lanes leads to none: any lane will do.
            Op::Xor => From::Changed((c % 16) as u8),
            _ => From::Any,
        }
    }

    fn shuffle(&mut self, x: VReg, lane: Value) -> VReg {
        let v71 = self.version == Version::V71;
        match self.from(lane) {
            From::Turned(0) | From::Changed(0) => self.plain(MOp::Mov, [Src::Use, Src::None], &[x]),
            From::Turned(by) => self.rotate(x, by),
            From::Lane(n) if v71 => self.plain(MOp::Shuffle, [Src::Use, Src::Imm(n)], &[x]),
            From::Lane(n) => self.broadcast(x, Src::Imm(n), &[]),
            From::Changed(bits) if !v71 => {
                [8, 4, 2, 1].into_iter().filter(|s| bits & s != 0).fold(x, |v, s| self.exchange(v, s))
            }
            _ if v71 => {
                let from = self.reg(lane);
                self.plain(MOp::Shuffle, [Src::Use; 2], &[x, from])
            }
            _ => {
                let root = self.p.root(lane);
                let uniform = self.flow.is_uniform(self.p, root, self.at)
                    && !self.plan.is_unsure(self.p, self.flow, root, self.at);
                let from = self.reg(lane);
                if uniform { self.broadcast(x, Src::Use, &[from]) } else { self.search(x, from) }
            }
        }
    }

    fn broadcast(&mut self, x: VReg, lane: Src, number: &[VReg]) -> VReg {
        if self.home(x) == regs::UNI {
            return self.plain(MOp::Mov, [Src::Use, Src::None], &[x]);
        }
        let mut uses: Uses = smallvec![x];
        uses.extend_from_slice(number);
        let dst = self.fresh(regs::ANY);
        self.push(MInst::Broadcast { lane }, &[dst], &uses, None, regs::LANES);
        dst
    }

    /// The value of the lane whose number differs in one bit.
    fn exchange(&mut self, x: VReg, step: u8) -> VReg {
        if step == LANES / 2 {
            return self.rotate(x, step);
        }
        let own = self.own_lane();
        if self.version == Version::V71 {
            let from = self.plain(MOp::Xor, [Src::Use, Src::Imm(step)], &[own]);
            return self.plain(MOp::Shuffle, [Src::Use; 2], &[x, from]);
        }
        let (up, down) = (self.rotate(x, step), self.rotate(x, LANES - step));
        let bit = self.plain(MOp::And, [Src::Use, Src::Imm(step)], &[own]);
        let set =
            Cmp { op: CmpOp::NonZero, src: [Src::Use, Src::None], unpack: [Unpack::None; 2], invert: false };
        self.either(set, &[bit], [Src::Use; 2], &[down, up])
    }

    /// 4.2: each lane picks its value out of all rotations.
    fn search(&mut self, x: VReg, from: VReg) -> VReg {
        let own = self.own_lane();
        let distance = self.plain(MOp::Sub, [Src::Use; 2], &[from, own]);
        let distance = self.plain(MOp::And, [Src::Use, Src::Imm(LANES - 1)], &[distance]);
        let mut v = x;
        for n in 1..LANES {
            let turned = self.rotate(x, n);
            let here = Cmp {
                op: CmpOp::Ieq,
                src: [Src::Use, Src::Imm(n)],
                unpack: [Unpack::None; 2],
                invert: false,
            };
            v = self.either(here, &[distance], [Src::Use; 2], &[turned, v]);
        }
        v
    }

    // ---- Reductions and scans ----

    /// A constant as the first source of a choice.
    fn constant(&mut self, c: u32, uses: &mut Uses) -> Src {
        match small_code(c) {
            Some(code) => Src::Imm(code),
            None => {
                uses.push(self.remake(Remade::Const(c)));
                Src::Use
            }
        }
    }

    fn combine(&mut self, op: Op, a: VReg, b: VReg) -> Option<VReg> {
        let m = match op {
            Op::Imul => {
                let dst = self.fresh(regs::ANY);
                self.push(MInst::Mul32 { src: [Src::Use; 2] }, &[dst], &[a, b], None, regs::NONE);
                return Some(dst);
            }
            Op::Iadd => MOp::Add,
            Op::Smin => MOp::Min,
            Op::Smax => MOp::Max,
            Op::Umin => MOp::Umin,
            Op::Umax => MOp::Umax,
            Op::And => MOp::And,
            Op::Or => MOp::Or,
            Op::Xor => MOp::Xor,
            Op::Fadd => MOp::Fadd,
            Op::Fmul => MOp::Fmul,
            Op::Fmin => MOp::Fmin,
            Op::Fmax => MOp::Fmax,
            _ => return None,
        };
        Some(self.plain(m, [Src::Use; 2], &[a, b]))
    }

    fn reduce(&mut self, imm: &ReduceImm, identity: u32, x: VReg) -> Option<VReg> {
        let n = if imm.cluster == 0 { LANES } else { imm.cluster.min(LANES) };
        let mut v = match self.exec {
            Some(exec) => {
                let (test, mut uses) = running(exec);
                uses.push(x);
                let other = self.constant(identity, &mut uses);
                let dst = self.fresh(regs::ANY);
                let data = MInst::Select { test, src: [Src::Use, other], unpack: [Unpack::None; 2] };
                self.push(data, &[dst], &uses, None, regs::NONE);
                dst
            }
            None => self.plain(MOp::Mov, [Src::Use, Src::None], &[x]),
        };
        if imm.kind == ReduceKind::Reduce {
            let mut step = n / 2;
            while step > 0 {
                let other = if n == LANES {
                    self.rotate(v, step)
                } else if self.version == Version::V71 && step < 4 && n >= 4 {
                    // Inside quads, where a half is repeated too.
                    self.plain(MOp::Rotq, [Src::Use, Src::Imm(step)], &[v])
                } else {
                    self.exchange(v, step)
                };
                v = self.combine(imm.op, v, other)?;
                step /= 2;
            }
            return Some(v);
        }
        let own = self.own_lane();
        let inside = match n {
            LANES => own,
            _ => self.plain(MOp::And, [Src::Use, Src::Imm(n - 1)], &[own]),
        };
        if imm.kind == ReduceKind::ExclusiveScan {
            let before = self.rotate(v, LANES - 1);
            let mut values = Uses::new();
            let first = self.constant(identity, &mut values);
            values.push(before);
            let begins = Cmp {
                op: CmpOp::NonZero,
                src: [Src::Use, Src::None],
                unpack: [Unpack::None; 2],
                invert: true,
            };
            v = self.either(begins, &[inside], [first, Src::Use], &values);
        }
        let mut step = 1;
        while step < n {
            let below = self.rotate(v, LANES - step);
            let sum = self.combine(imm.op, v, below)?;
            let none = Cmp {
                op: CmpOp::Ult,
                src: [Src::Use, Src::Imm(step)],
                unpack: [Unpack::None; 2],
                invert: false,
            };
            v = self.either(none, &[inside], [Src::Use; 2], &[v, sum]);
            step *= 2;
        }
        Some(v)
    }
}
