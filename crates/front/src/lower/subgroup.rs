//! Built-in variables and operations between the lanes of a subgroup.
//!
//! Subgroups have at most 32 lanes: a ballot is one word, the other three words of SPIR-V's vector are zero.

use super::*;
use kempe_ir::{Builtin, ReduceImm, ReduceKind};
use spirv::BuiltIn;

const SCOPE_SUBGROUP: i64 = 3;

impl Lower<'_, '_> {
    /// One word of a built-in variable; `index` is a dynamic choice of the component.
    pub(super) fn load_builtin(&mut self, number: u32, index: Option<Value>, component: i64) -> Res<Value> {
        if let Some(index) = index {
            let mut all: SmallVec<[Value; 4]> = SmallVec::new();
            for k in 0..3 {
                all.push(self.builtin_word(number, k)?);
            }
            return self.choose(&all, index);
        }
        self.builtin_word(number, component.clamp(0, 3) as u8)
    }

    fn builtin_word(&mut self, number: u32, k: u8) -> Res<Value> {
        let subgroup = |l: &mut Self, b: Builtin| {
            l.m.uses_subgroups = true;
            Ok(l.builtin(b))
        };
        let three = |l: &mut Self, b: fn(u8) -> Builtin| Ok(if k < 3 { l.builtin(b(k)) } else { l.i32(0) });
        match BuiltIn::from_u32(number) {
            Some(BuiltIn::LocalInvocationId) => three(self, Builtin::LocalInvocationId),
            Some(BuiltIn::WorkgroupId) => three(self, Builtin::WorkgroupId),
            Some(BuiltIn::NumWorkgroups) => three(self, Builtin::NumWorkgroups),
            Some(BuiltIn::LocalInvocationIndex) => Ok(self.builtin(Builtin::LocalInvocationIndex)),
            Some(BuiltIn::WorkgroupSize) => {
                let n = self.m.workgroup_size.get(k as usize).copied().unwrap_or(1);
                Ok(self.i32(n))
            }
            Some(BuiltIn::GlobalInvocationId) => {
                let group = three(self, Builtin::WorkgroupId)?;
                let local = three(self, Builtin::LocalInvocationId)?;
                let n = self.m.workgroup_size.get(k as usize).copied().unwrap_or(1);
                let size = self.i32(n);
                let start = self.op(Op::Imul, Type::I32, &[group, size])?;
                self.op(Op::Iadd, Type::I32, &[start, local])
            }
            Some(BuiltIn::SubgroupSize) => subgroup(self, Builtin::SubgroupSize),
            Some(BuiltIn::NumSubgroups) => subgroup(self, Builtin::NumSubgroups),
            Some(BuiltIn::SubgroupId) => subgroup(self, Builtin::SubgroupId),
            Some(BuiltIn::SubgroupLocalInvocationId) => subgroup(self, Builtin::SubgroupLocalId),
            Some(
                b @ (BuiltIn::SubgroupEqMask
                | BuiltIn::SubgroupGeMask
                | BuiltIn::SubgroupGtMask
                | BuiltIn::SubgroupLeMask
                | BuiltIn::SubgroupLtMask),
            ) => {
                if k != 0 {
                    return Ok(self.i32(0));
                }
                self.m.uses_subgroups = true;
                let lane = self.builtin(Builtin::SubgroupLocalId);
                let one = self.i32(1);
                let eq = self.op(Op::Shl, Type::I32, &[one, lane])?;
                let lt = self.op(Op::Isub, Type::I32, &[eq, one])?;
                let le = self.op(Op::Or, Type::I32, &[eq, lt])?;
                match b {
                    BuiltIn::SubgroupEqMask => Ok(eq),
                    BuiltIn::SubgroupLtMask => Ok(lt),
                    BuiltIn::SubgroupLeMask => Ok(le),
                    _ => {
                        // All lanes that exist, without those below.
                        let all = self.lane_mask()?;
                        let below = if b == BuiltIn::SubgroupGeMask { lt } else { le };
                        let above = self.op(Op::Not, Type::I32, &[below])?;
                        self.op(Op::And, Type::I32, &[all, above])
                    }
                }
            }
            Some(b) => self.err(format!("compute shaders do not have the built-in variable {b:?}")),
            None => self.err(format!("the built-in variable {number} is not known")),
        }
    }

    /// One bit for every lane that a subgroup has.
    fn lane_mask(&mut self) -> Res<Value> {
        let size = self.builtin(Builtin::SubgroupSize);
        let width = self.i32(32);
        let shift = self.op(Op::Isub, Type::I32, &[width, size])?;
        let ones = self.i32(u32::MAX);
        self.op(Op::Lshr, Type::I32, &[ones, shift])
    }

    pub(super) fn subgroup_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        use S::*;
        // The instructions of the older extensions have no scope operand.
        let old = matches!(
            op,
            SubgroupBallotKHR
                | SubgroupFirstInvocationKHR
                | SubgroupAllKHR
                | SubgroupAnyKHR
                | SubgroupAllEqualKHR
                | SubgroupReadInvocationKHR
        );
        let name =
            (op as u32 >= GroupNonUniformElect as u32 && op as u32 <= GroupNonUniformQuadSwap as u32) || old;
        if matches!(op, GroupNonUniformQuadAllKHR | GroupNonUniformQuadAnyKHR) {
            self.quad_vote(i, op == GroupNonUniformQuadAllKHR)?;
            return Ok(true);
        }
        if !name && op != GroupNonUniformRotateKHR {
            return Ok(false);
        }
        self.m.uses_subgroups = true;
        let (ty, id) = self.result(i)?;
        let first = if old { 3 } else { 4 };
        if !old && self.p.int_const(i.w(3)?) != Some(SCOPE_SUBGROUP) {
            return self.refuse(
                "operations over a whole work-group are not supported: lanes reach each other within a subgroup",
                "use shared memory and a barrier, or the scope Subgroup",
            );
        }
        let each = |l: &mut Self, f: &mut dyn FnMut(&mut Self, Value) -> Res<Value>| -> Res<()> {
            let r = l.leaves(i.w(first)?)?;
            let mut out: SmallVec<[Value; 8]> = SmallVec::new();
            for k in 0..r.len as usize {
                let v = l.at(r, k);
                out.push(f(l, v)?);
            }
            l.set_all(id, ty, &out)
        };
        match op {
            GroupNonUniformElect => {
                let v = self.emit1(Op::Elect, Type::Bool, Imm::None, &[])?;
                self.set1(id, ty, v)?;
            }
            GroupNonUniformAll | SubgroupAllKHR => each(self, &mut |l, v| l.vote(Op::VoteAll, v))?,
            GroupNonUniformAny | SubgroupAnyKHR => each(self, &mut |l, v| l.vote(Op::VoteAny, v))?,
            GroupNonUniformAllEqual | SubgroupAllEqualKHR => {
                let r = self.leaves(i.w(first)?)?;
                let mut all = None;
                for k in 0..r.len as usize {
                    let v = self.at(r, k);
                    let eq = self.emit(Op::VoteEq, self.ty_of(v), Imm::None, &[v], &[Type::Bool])?;
                    let eq = self.m.func.insts[eq].results[0];
                    all = Some(match all {
                        Some(a) => self.op(Op::And, Type::Bool, &[a, eq])?,
                        None => eq,
                    });
                }
                match all {
                    Some(v) => self.set1(id, ty, v)?,
                    None => return self.err("a vote about nothing"),
                }
            }
            GroupNonUniformBroadcastFirst | SubgroupFirstInvocationKHR => {
                each(self, &mut |l, v| l.emit1(Op::BroadcastFirst, l.ty_of(v), Imm::None, &[v]))?;
            }
            GroupNonUniformBroadcast | GroupNonUniformShuffle | SubgroupReadInvocationKHR => {
                let lane = self.word(i.w(first + 1)?)?;
                each(self, &mut |l, v| l.shuffle(v, lane))?;
            }
            GroupNonUniformShuffleXor
            | GroupNonUniformShuffleUp
            | GroupNonUniformShuffleDown
            | GroupNonUniformRotateKHR => {
                let by = self.word(i.w(first + 1)?)?;
                let own = self.builtin(Builtin::SubgroupLocalId);
                let how = match op {
                    GroupNonUniformShuffleXor => Op::Xor,
                    GroupNonUniformShuffleUp => Op::Isub,
                    _ => Op::Iadd,
                };
                let mut lane = self.op(how, Type::I32, &[own, by])?;
                if op == GroupNonUniformRotateKHR {
                    let size = match i.words.get(first + 2) {
                        Some(&c) => self.word(c)?,
                        None => self.builtin(Builtin::SubgroupSize),
                    };
                    // The cluster is a power of two: keep the upper bits of the lane, add in the lower ones.
                    let one = self.i32(1);
                    let low = self.op(Op::Isub, Type::I32, &[size, one])?;
                    let high = self.op(Op::Not, Type::I32, &[low])?;
                    let a = self.op(Op::And, Type::I32, &[lane, low])?;
                    let b = self.op(Op::And, Type::I32, &[own, high])?;
                    lane = self.op(Op::Or, Type::I32, &[a, b])?;
                }
                each(self, &mut |l, v| l.shuffle(v, lane))?;
            }
            GroupNonUniformQuadBroadcast => {
                let k = self.word(i.w(first + 1)?)?;
                let own = self.builtin(Builtin::SubgroupLocalId);
                let high = self.i32(!3);
                let quad = self.op(Op::And, Type::I32, &[own, high])?;
                let lane = self.op(Op::Or, Type::I32, &[quad, k])?;
                each(self, &mut |l, v| l.shuffle(v, lane))?;
            }
            GroupNonUniformQuadSwap => {
                let Some(direction @ 0..=2) = self.p.int_const(i.w(first + 1)?) else {
                    return self.err("the direction of a quad swap must be a constant from 0 to 2");
                };
                let own = self.builtin(Builtin::SubgroupLocalId);
                let bits = self.i32(direction as u32 + 1);
                let lane = self.op(Op::Xor, Type::I32, &[own, bits])?;
                each(self, &mut |l, v| l.shuffle(v, lane))?;
            }
            GroupNonUniformBallot | SubgroupBallotKHR => {
                let v = self.leaf(i.w(first)?)?;
                if self.ty_of(v) != Type::Bool {
                    return self.err("the operand of a ballot must be a boolean");
                }
                let b = self.emit1(Op::Ballot, Type::I32, Imm::None, &[v])?;
                let zero = self.i32(0);
                self.set_all(id, ty, &[b, zero, zero, zero])?;
            }
            GroupNonUniformInverseBallot | GroupNonUniformBallotBitExtract => {
                let r = self.leaves(i.w(first)?)?;
                if r.len != 4 {
                    return self.err("a ballot must have four words");
                }
                let lane = match op {
                    GroupNonUniformInverseBallot => self.builtin(Builtin::SubgroupLocalId),
                    _ => self.word(i.w(first + 1)?)?,
                };
                let word = match op {
                    GroupNonUniformInverseBallot => self.at(r, 0),
                    _ => {
                        let five = self.i32(5);
                        let k = self.op(Op::Lshr, Type::I32, &[lane, five])?;
                        self.choose(&self.slice(r), k)?
                    }
                };
                let bit = self.op(Op::Lshr, Type::I32, &[word, lane])?;
                let (one, zero) = (self.i32(1), self.i32(0));
                let bit = self.op(Op::And, Type::I32, &[bit, one])?;
                let v = self.op(Op::Ine, Type::I32, &[bit, zero])?;
                self.set1(id, ty, v)?;
            }
            GroupNonUniformBallotBitCount | GroupNonUniformBallotFindLSB | GroupNonUniformBallotFindMSB => {
                let value = if op == GroupNonUniformBallotBitCount { i.w(first + 1)? } else { i.w(first)? };
                let r = self.leaves(value)?;
                if r.len != 4 {
                    return self.err("a ballot must have four words");
                }
                let mut bits = self.at(r, 0);
                let mask = if op == GroupNonUniformBallotBitCount {
                    let lane = self.builtin(Builtin::SubgroupLocalId);
                    let one = self.i32(1);
                    let eq = self.op(Op::Shl, Type::I32, &[one, lane])?;
                    let lt = self.op(Op::Isub, Type::I32, &[eq, one])?;
                    match i.w(first)? {
                        0 => self.lane_mask()?,
                        1 => self.op(Op::Or, Type::I32, &[eq, lt])?,
                        2 => lt,
                        _ => return self.err("this group operation is not supported for ballots"),
                    }
                } else {
                    self.lane_mask()?
                };
                bits = self.op(Op::And, Type::I32, &[bits, mask])?;
                let v = match op {
                    GroupNonUniformBallotBitCount => self.op(Op::Popcount, Type::I32, &[bits])?,
                    GroupNonUniformBallotFindLSB => self.op(Op::FindLsb, Type::I32, &[bits])?,
                    _ => self.op(Op::FindUmsb, Type::I32, &[bits])?,
                };
                self.set1(id, ty, v)?;
            }
            _ => {
                let how = match op {
                    GroupNonUniformIAdd => Op::Iadd,
                    GroupNonUniformFAdd => Op::Fadd,
                    GroupNonUniformIMul => Op::Imul,
                    GroupNonUniformFMul => Op::Fmul,
                    GroupNonUniformSMin => Op::Smin,
                    GroupNonUniformUMin => Op::Umin,
                    GroupNonUniformFMin => Op::Fmin,
                    GroupNonUniformSMax => Op::Smax,
                    GroupNonUniformUMax => Op::Umax,
                    GroupNonUniformFMax => Op::Fmax,
                    GroupNonUniformBitwiseAnd | GroupNonUniformLogicalAnd => Op::And,
                    GroupNonUniformBitwiseOr | GroupNonUniformLogicalOr => Op::Or,
                    GroupNonUniformBitwiseXor | GroupNonUniformLogicalXor => Op::Xor,
                    _ => return Ok(false),
                };
                let (kind, cluster) = match i.w(first)? {
                    0 => (ReduceKind::Reduce, 0),
                    1 => (ReduceKind::InclusiveScan, 0),
                    2 => (ReduceKind::ExclusiveScan, 0),
                    3 => match self.p.int_const(i.w(first + 2)?) {
                        Some(n) if (1..=32).contains(&n) && (n as u32).is_power_of_two() => {
                            (ReduceKind::Reduce, n as u8)
                        }
                        Some(n) if n > 32 => (ReduceKind::Reduce, 0),
                        _ => return self.err("the size of a cluster must be a constant power of two"),
                    },
                    _ => return self.err("this group operation is not supported"),
                };
                let r = self.leaves(i.w(first + 1)?)?;
                let mut out: SmallVec<[Value; 8]> = SmallVec::new();
                for k in 0..r.len as usize {
                    let v = self.at(r, k);
                    let t = self.ty_of(v);
                    if !fits(how, t, &[(t, v), (t, v)]) {
                        return self.err("a group operation on a value of the wrong type");
                    }
                    let imm = Imm::Reduce(ReduceImm { op: how, kind, cluster });
                    out.push(self.emit1(Op::Reduce, t, imm, &[v])?);
                }
                self.set_all(id, ty, &out)?;
            }
        }
        Ok(true)
    }

    /// A vote in the group of four, by a ballot of those who are against it or for it.
    fn quad_vote(&mut self, i: &Inst, all: bool) -> Res<()> {
        self.m.uses_subgroups = true;
        let (ty, id) = self.result(i)?;
        let mut v = self.leaf(i.w(3)?)?;
        if self.ty_of(v) != Type::Bool {
            return self.err("the operand of a vote must be a boolean");
        }
        if all {
            v = self.op(Op::Not, Type::Bool, &[v])?;
        }
        let votes = self.emit1(Op::Ballot, Type::I32, Imm::None, &[v])?;
        let own = self.builtin(Builtin::SubgroupLocalId);
        let (quad, four, none) = (self.i32(!3), self.i32(15), self.i32(0));
        let first = self.op(Op::And, Type::I32, &[own, quad])?;
        let votes = self.op(Op::Lshr, Type::I32, &[votes, first])?;
        let votes = self.op(Op::And, Type::I32, &[votes, four])?;
        let v = self.op(if all { Op::Ieq } else { Op::Ine }, Type::I32, &[votes, none])?;
        self.set1(id, ty, v)
    }

    fn vote(&mut self, op: Op, v: Value) -> Res<Value> {
        if self.ty_of(v) != Type::Bool {
            return self.err("the operand of a vote must be a boolean");
        }
        self.emit1(op, Type::Bool, Imm::None, &[v])
    }

    pub(super) fn shuffle(&mut self, v: Value, lane: Value) -> Res<Value> {
        self.emit1(Op::Shuffle, self.ty_of(v), Imm::None, &[v, lane])
    }

    /// A 32-bit integer operand.
    fn word(&mut self, id: u32) -> Res<Value> {
        let v = self.leaf(id)?;
        if self.ty_of(v) != Type::I32 {
            return self.err("an operand must be a 32-bit integer");
        }
        Ok(v)
    }
}
