//! Subgroup operations. A subgroup is a batch of 16 lanes.
//!
//! Three operations are left for selection: `ballot` of the lanes that run, `shuffle` of a word, and `reduce` of a word
//! in modules whose batches are all full. Everything else is made of them:
//!
//! * the first lane that runs: the lowest bit of a ballot, lane 0 where control is the same for all lanes (lane 0 of a
//!   batch always exists);
//! * elect, votes, broadcasts: ballots and shuffles from that lane; reductions of booleans: bits of ballots;
//! * narrow values are reduced as i32, halves as f32 that is rounded once (as the interpreter does);
//! * reductions of 64-bit integers, and all in modules with partial batches, where a lane that does not exist keeps
//!   nothing, bring the word of every lane by a shuffle and combine them in the same order as the steps over all lanes
//!   would ([`kempe_ir::eval::reduce`]).
//!
//! 64-bit floats come as integers, their reductions spelled out ([`kempe_opt::double`]).

use super::emit::{Known, low_mask};
use super::{Lower, Rep, Result};
use kempe_ir::divergence::{Divergence, Options};
use kempe_ir::{Builtin, Flags, Imm, InstData, Op, ReduceImm, ReduceKind, Type, Value, analysis, eval};
use smallvec::SmallVec;

/// Lanes of a batch.
pub(super) const LANES: u32 = 16;

impl Lower<'_> {
    /// Where all lanes are known to run together; only asked for when there is an operation between lanes.
    pub fn control(&self) -> Option<Divergence> {
        let f = self.src;
        let between = |i: &kempe_ir::Inst| f.insts[*i].op.effect() == kempe_ir::Effect::Lanes;
        if !f.layout.iter().any(|&b| f.blocks[b].insts.iter().any(between)) {
            return None;
        }
        // A module with such operations has its batches for itself (`may_share_batches`).
        let options = Options { one_workgroup_per_batch: true, uniform_payload: Vec::new() };
        Some(Divergence::new(f, &analysis::Cfg::new(f), &options))
    }

    /// Every lane of every batch exists.
    fn full_batches(&self) -> bool {
        self.items.is_multiple_of(LANES)
    }

    /// Every lane that exists runs here.
    fn together(&self) -> bool {
        self.control.as_ref().is_some_and(|d| !d.is_non_uniform(self.from))
    }

    /// Bit of each lane that runs and for which a condition holds.
    fn ballot(&mut self, cond: Value) -> Value {
        match self.e.value_of(cond) {
            Some(0) => return self.e.i(0),
            Some(_) if self.full_batches() && self.together() => return self.e.i(low_mask(LANES)),
            _ => {}
        }
        let i = self.e.inst(Op::Ballot, Type::I32, Flags::NONE, Imm::None, &[cond], &[Type::I32]);
        let v = self.e.func.insts[i].results[0];
        self.e.set_known(v, Known::below(LANES));
        v
    }

    /// Bits of the lanes that run.
    fn running(&mut self) -> Value {
        let all = self.e.b(true);
        self.ballot(all)
    }

    /// Number of the first lane that runs.
    fn first_lane(&mut self) -> Value {
        if self.together() {
            return self.e.i(0);
        }
        let bits = self.running();
        let negative = self.e.neg(bits);
        let lowest = self.e.and(bits, negative);
        let zeros = self.e.clz(lowest);
        let top = self.e.i(31);
        self.e.sub(top, zeros)
    }

    fn lane(&mut self) -> Value {
        self.e.builtin(Builtin::LaneId)
    }

    /// The word of another lane.
    fn shuffle_word(&mut self, v: Value, lane: Value) -> Value {
        if self.e.value_of(v).is_some() {
            return v;
        }
        let ty = self.e.func.ty(v);
        if ty == Type::Bool {
            let word = self.e.bit(v);
            let word = self.shuffle_word(word, lane);
            let zero = self.e.i(0);
            return self.e.compare(Op::Ine, Type::I32, word, zero);
        }
        let i = self.e.inst(Op::Shuffle, ty, Flags::NONE, Imm::None, &[v, lane], &[ty]);
        let new = self.e.func.insts[i].results[0];
        if ty == Type::I32 {
            let known = self.e.known(v);
            self.e.set_known(new, known);
        }
        new
    }

    fn shuffle(&mut self, rep: Rep, lane: Value) -> Rep {
        match rep {
            Rep::One(v) => Rep::One(self.shuffle_word(v, lane)),
            Rep::Narrow(v, _) => Rep::Narrow(self.shuffle_word(v, lane), None),
            Rep::Half(h) => {
                let bits = self.shuffle_word(h.bits, lane);
                Rep::Half(self.half_of_bits(bits))
            }
            Rep::Pair(lo, hi) => Rep::Pair(self.shuffle_word(lo, lane), self.shuffle_word(hi, lane)),
            Rep::Addr(a) => {
                let v = self.pointer_value(a);
                let v = self.shuffle_word(v, lane);
                Rep::Addr(super::Addr::dynamic(a.space, v))
            }
            Rep::None => Rep::None,
        }
    }

    pub fn lanes(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let rep = match inst.op {
            Op::Elect => {
                let (first, own) = (self.first_lane(), self.lane());
                Rep::One(self.e.ieq(own, first))
            }
            Op::Ballot => {
                let v = self.arg_one(inst, 0)?;
                Rep::One(self.ballot(v))
            }
            Op::VoteAny => {
                let v = self.arg_one(inst, 0)?;
                Rep::One(self.any(v))
            }
            Op::VoteAll => {
                let v = self.arg_one(inst, 0)?;
                Rep::One(self.all(v))
            }
            Op::VoteEq => Rep::One(self.vote_eq(inst)?),
            Op::BroadcastFirst => {
                let v = self.rep(self.arg(inst, 0)?)?;
                let first = self.first_lane();
                self.shuffle(v, first)
            }
            Op::Shuffle => {
                let v = self.rep(self.arg(inst, 0)?)?;
                let lane = self.arg_one(inst, 1)?;
                self.shuffle(v, lane)
            }
            Op::Reduce => self.reduce(inst)?,
            op => return self.error(format!("`{}` is not an operation between lanes", op.name())),
        };
        self.set(r, rep);
        Ok(())
    }

    fn any(&mut self, cond: Value) -> Value {
        let bits = self.ballot(cond);
        let none = self.e.is_zero(bits);
        self.e.bool_op(Op::Not, &[none])
    }

    fn all(&mut self, cond: Value) -> Value {
        let not = self.e.bool_op(Op::Not, &[cond]);
        let bits = self.ballot(not);
        self.e.is_zero(bits)
    }

    /// Whether a value is the same in all lanes that run: floats as numbers.
    fn vote_eq(&mut self, inst: &InstData) -> Result<Value> {
        let rep = self.rep(self.arg(inst, 0)?)?;
        if let Rep::One(v) = rep
            && self.e.func.ty(v) == Type::Bool
        {
            let (all, any) = (self.all(v), self.any(v));
            let none = self.e.bool_op(Op::Not, &[any]);
            return Ok(self.e.bool_op(Op::Or, &[all, none]));
        }
        let lane = self.first_lane();
        let differs = match (rep, self.shuffle(rep, lane)) {
            (Rep::One(a), Rep::One(b)) if self.e.func.ty(a) == Type::F32 => {
                self.e.compare(Op::Fne, Type::F32, a, b)
            }
            (Rep::Half(a), Rep::Half(b)) => self.e.compare(Op::Fne, Type::F32, a.exact, b.exact),
            (Rep::One(a), Rep::One(b)) => self.e.compare(Op::Ine, Type::I32, a, b),
            (Rep::Narrow(a, _), Rep::Narrow(b, _)) => {
                let bits = self.e.xor(a, b);
                let bits = self.e.zext(bits, inst.ty.bits());
                let same = self.e.is_zero(bits);
                self.e.bool_op(Op::Not, &[same])
            }
            (Rep::Pair(al, ah), Rep::Pair(bl, bh)) => {
                let (lo, hi) = (self.e.xor(al, bl), self.e.xor(ah, bh));
                let bits = self.e.or(lo, hi);
                let same = self.e.is_zero(bits);
                self.e.bool_op(Op::Not, &[same])
            }
            _ => return self.error("a vote about a value without bits"),
        };
        let bits = self.ballot(differs);
        Ok(self.e.is_zero(bits))
    }

    // ---- Reductions and scans ----

    fn reduce(&mut self, inst: &InstData) -> Result<Rep> {
        let Imm::Reduce(imm) = inst.imm else { return self.error("`reduce` without its immediate") };
        let rep = self.rep(self.arg(inst, 0)?)?;
        let bits = inst.ty.bits();
        Ok(match rep {
            Rep::One(v) if inst.ty == Type::Bool => Rep::One(self.reduce_bool(&imm, v)?),
            Rep::One(v) if matches!(inst.ty, Type::I32 | Type::F32) => {
                Rep::One(self.reduce_word(&imm, inst.ty, v)?)
            }
            Rep::Narrow(v, _) => {
                let v = match imm.op {
                    Op::Smin | Op::Smax => self.e.sext(v, bits),
                    Op::Umin | Op::Umax => self.e.zext(v, bits),
                    _ => v,
                };
                let v = self.reduce_word(&imm, Type::I32, v)?;
                // The identity of the first lane of an exclusive scan is that of the narrow type.
                let limit = |l: &mut Self, c: u32| {
                    let c = l.e.i(c);
                    l.int32(imm.op, Flags::NONE, &[v, c])
                };
                let v = match imm.op {
                    _ if imm.kind != ReduceKind::ExclusiveScan => v,
                    Op::Smin => limit(self, low_mask(bits - 1))?,
                    Op::Smax => limit(self, !low_mask(bits - 1))?,
                    Op::Umin => limit(self, low_mask(bits))?,
                    _ => v,
                };
                Rep::Narrow(v, None)
            }
            Rep::Half(h) => {
                let v = self.reduce_word(&imm, Type::F32, h.exact)?;
                Rep::Half(self.half_of_float(v))
            }
            Rep::Pair(lo, hi) if matches!(imm.op, Op::And | Op::Or | Op::Xor) => {
                Rep::Pair(self.reduce_word(&imm, Type::I32, lo)?, self.reduce_word(&imm, Type::I32, hi)?)
            }
            Rep::Pair(..) => self.gathered(&imm, inst.ty, rep)?,
            _ => return self.error(format!("a reduction of the type {}", inst.ty)),
        })
    }

    fn reduce_word(&mut self, imm: &ReduceImm, ty: Type, v: Value) -> Result<Value> {
        if !self.full_batches() {
            return match self.gathered(imm, ty, Rep::One(v))? {
                Rep::One(v) => Ok(v),
                _ => self.error("a reduction of a word gives no word"),
            };
        }
        let i = self.e.inst(Op::Reduce, ty, Flags::NONE, Imm::Reduce(*imm), &[v], &[ty]);
        Ok(self.e.func.insts[i].results[0])
    }

    /// Lanes of a cluster.
    fn cluster(imm: &ReduceImm) -> u32 {
        match imm.cluster as u32 {
            0 => LANES,
            n => n.min(LANES),
        }
    }

    /// Bits of the lanes that bring something to the result of a lane.
    fn contributors(&mut self, imm: &ReduceImm) -> Option<Value> {
        let n = Self::cluster(imm);
        let own = self.lane();
        let mut mask: Option<Value> = None;
        if n < LANES {
            // The cluster of the lane.
            let start = self.e.and_c(own, !(n - 1));
            let ones = self.e.i(low_mask(n));
            mask = Some(self.e.shl(ones, start));
        }
        let below = match imm.kind {
            ReduceKind::Reduce => return mask,
            ReduceKind::InclusiveScan => 2,
            ReduceKind::ExclusiveScan => 1,
        };
        let bit = self.e.i(below);
        let above = self.e.shl(bit, own);
        let below = self.e.add_c(above, u32::MAX);
        Some(match mask {
            Some(m) => self.e.and(m, below),
            None => below,
        })
    }

    fn reduce_bool(&mut self, imm: &ReduceImm, v: Value) -> Result<Value> {
        // All lanes: none in which it is false.
        let asked = if imm.op == Op::And { self.e.bool_op(Op::Not, &[v]) } else { v };
        let mut bits = self.ballot(asked);
        if let Some(mask) = self.contributors(imm) {
            bits = self.e.and(bits, mask);
        }
        match imm.op {
            Op::And => Ok(self.e.is_zero(bits)),
            Op::Or => {
                let none = self.e.is_zero(bits);
                Ok(self.e.bool_op(Op::Not, &[none]))
            }
            Op::Xor => {
                let count = self.popcount(bits);
                let odd = self.e.and_c(count, 1);
                let even = self.e.is_zero(odd);
                Ok(self.e.bool_op(Op::Not, &[even]))
            }
            op => self.error(format!("`{}` does not reduce booleans", op.name())),
        }
    }

    /// A reduction or scan from the values of single lanes, brought by shuffles.
    fn gathered(&mut self, imm: &ReduceImm, ty: Type, v: Rep) -> Result<Rep> {
        let n = Self::cluster(imm);
        let Some(bits) = eval::reduce_identity(imm.op, ty) else {
            return self.error(format!("`{}` does not reduce {ty}", imm.op.name()));
        };
        let (low, high) = (bits as u32, (bits >> 32) as u32);
        let identity = match v {
            Rep::Pair(..) => Rep::Pair(self.e.i(low), self.e.i(high)),
            _ => Rep::One(self.e.constant(ty, low)),
        };
        let running = self.running();
        let own = self.lane();
        let inside = self.e.and_c(own, n - 1);
        // The value that stands `d` lanes on (in the order of the steps) from this one, if that lane runs.
        let mut row: SmallVec<[Rep; 16]> = SmallVec::new();
        for d in 0..n {
            let d = if imm.kind == ReduceKind::ExclusiveScan { d + 1 } else { d };
            let from = match imm.kind {
                // All clusters of 16 lanes begin at lane 0.
                ReduceKind::Reduce if n == LANES => self.e.i(d),
                ReduceKind::Reduce => self.e.xor_c(own, d),
                _ => self.e.add_c(own, d.wrapping_neg()),
            };
            let bit = self.e.lshr(running, from);
            let bit = self.e.and_c(bit, 1);
            let off = self.e.is_zero(bit);
            let mut missing = off;
            if imm.kind != ReduceKind::Reduce && d > 0 {
                let d = self.e.i(d);
                let outside = self.e.ult(inside, d);
                missing = self.e.bool_op(Op::Or, &[off, outside]);
            }
            let value = self.shuffle(v, from);
            row.push(self.pick(missing, identity, value)?);
        }
        let mut step = if imm.kind == ReduceKind::Reduce { n / 2 } else { 1 };
        while step > 0 && step < n {
            if imm.kind == ReduceKind::Reduce {
                for d in 0..step as usize {
                    row[d] = self.combine(imm.op, row[d], row[d + step as usize])?;
                }
                step /= 2;
            } else {
                // A lane that has none so far below keeps what it has.
                let list: SmallVec<[u32; 16]> =
                    (0..n).step_by(2 * step as usize).filter(|d| d + step < n).collect();
                for d in list {
                    let sum = self.combine(imm.op, row[d as usize], row[(d + step) as usize])?;
                    let limit = self.e.i(d + step);
                    let none = self.e.ult(inside, limit);
                    row[d as usize] = self.pick(none, row[d as usize], sum)?;
                }
                step *= 2;
            }
        }
        Ok(row[0])
    }

    fn pick(&mut self, cond: Value, a: Rep, b: Rep) -> Result<Rep> {
        match (a, b) {
            (Rep::One(a), Rep::One(b)) => Ok(Rep::One(self.e.select(cond, a, b))),
            (Rep::Pair(al, ah), Rep::Pair(bl, bh)) => {
                let (lo, hi) = self.select64(cond, (al, ah), (bl, bh));
                Ok(Rep::Pair(lo, hi))
            }
            _ => self.error("a reduction of unlike values"),
        }
    }

    fn combine(&mut self, op: Op, a: Rep, b: Rep) -> Result<Rep> {
        match (a, b) {
            (Rep::One(a), Rep::One(b)) if self.e.func.ty(a) == Type::F32 => {
                Ok(Rep::One(self.float32(op, Flags::NONE, &[a, b])?))
            }
            (Rep::One(a), Rep::One(b)) => Ok(Rep::One(self.int32(op, Flags::NONE, &[a, b])?)),
            (Rep::Pair(al, ah), Rep::Pair(bl, bh)) => {
                let (lo, hi) = self.reduce64(op, (al, ah), (bl, bh))?;
                Ok(Rep::Pair(lo, hi))
            }
            _ => self.error("a reduction of unlike values"),
        }
    }

    fn reduce64(&mut self, op: Op, a: (Value, Value), b: (Value, Value)) -> Result<(Value, Value)> {
        let take_a = match op {
            Op::Iadd => return Ok(self.add64(a, b)),
            Op::Imul => return Ok(self.mul64(a, b)),
            Op::Smin => self.compare64(Op::Slt, a, b),
            Op::Smax => self.compare64(Op::Slt, b, a),
            Op::Umin => self.compare64(Op::Ult, a, b),
            Op::Umax => self.compare64(Op::Ult, b, a),
            op => return self.error(format!("`{}` does not reduce 64-bit integers", op.name())),
        };
        Ok(self.select64(take_a, a, b))
    }
}
