//! Memory: loads through the TMU or the side band, stores, atomics, barriers.

use super::SelectError;
use super::emit::{Emit, Uses, alu};
use super::rules::Rule;
use super::values::{self, Base, Remade};
use crate::instr::{Op as MOp, Unpack, small_code};
use crate::mops::{MInst, MemClass, Src, Test, TmuType};
use crate::regs;
use kempe_ir::{AtomicOp, BarrierImm, Imm, Inst, MemImm, Op, Space, Type, Value};
use kempe_mir::UniformSource;
use kempe_ra::VReg;
use smallvec::SmallVec;

/// Words that one instruction may bring for several loads: each takes a register until used, and all at once. What follows right
/// behind needs no new address (`finish`), so short runs cost little: with 8 words instead, the corpus has 15 % more fills and
/// 0.1 % fewer instructions.
const SIDE_BAND_WORDS: u32 = 4;
/// Unwanted words read to reach the next wanted one: cheaper than a new address (three slots and a write).
const SIDE_BAND_GAP: u32 = 2;
/// Instructions over which loads are brought together.
const SIDE_BAND_WINDOW: usize = 48;

/// Most data words of one store that fit the share of a thread in the input FIFO, its address with them (rule 55).
fn store_words(threads: u32) -> usize {
    (16 / threads as usize) - 1
}

impl Emit<'_> {
    /// Only lanes that run take part in an access.
    pub(super) fn guard(&mut self) -> (Option<Test>, Uses) {
        match self.active() {
            Some((test, uses)) => (Some(test), uses),
            None => (None, Uses::new()),
        }
    }

    /// The same for a load, with its address. In a fragment program helpers load too, so all lanes of a quad must: the others
    /// from some place that may be read.
    fn load_guard(&mut self, address: Value) -> (Option<Test>, Uses) {
        let outside =
            self.p.stage == kempe_ir::Stage::Fragment && (self.exec.is_some() || self.arm.is_some());
        if outside && let Some(address) = self.safe_address(address) {
            return (None, Uses::from_slice(&[address]));
        }
        let (test, mut uses) = self.guard();
        uses.push(self.reg(address));
        (test, uses)
    }

    pub(super) fn memory(&mut self, i: Inst) -> Option<MemImm> {
        let d = self.data(i);
        let Imm::Mem(mem) = d.imm else {
            self.unsupported(i);
            return None;
        };
        if !matches!(d.ty, Type::I8 | Type::I16 | Type::I32 | Type::F32) || !(1..=4).contains(&mem.count) {
            self.unsupported(i);
            return None;
        }
        Some(mem)
    }

    pub(super) fn load(&mut self, i: Inst) {
        let Some(mem) = self.memory(i) else { return };
        let d = self.data(i);
        let address = self.p.root(d.args[0]);
        if let Some((base, offset)) = values::side_band(self.p, d, mem)
            && self.flow.is_uniform(self.p, address, self.at)
            && (values::is_fixed_address(self.p, address)
                || self.side_values
                    && self.plan.occupied[self.at as usize]
                    && !self.plan.is_unsure(self.p, self.flow, address, self.at))
        {
            self.side_band(i, base, offset);
            return;
        }
        let ty = match (d.ty, mem.count) {
            (Type::I8, _) => TmuType::U8,
            (Type::I16, _) => TmuType::U16,
            (_, n) => vector(n as usize),
        };
        let results = d.results.clone();
        self.rules.hit(match (ty, mem.count) {
            (TmuType::U8, _) => Rule::Load8,
            (TmuType::U16, _) => Rule::Load16,
            (_, 2) => Rule::Load2,
            (_, 3) => Rule::Load3,
            (_, 4) => Rule::Load4,
            _ => Rule::Load1,
        });
        let (test, uses) = self.load_guard(address);
        if test.is_some() {
            self.rules.hit(Rule::LoadGuarded);
        }
        let defs: SmallVec<[VReg; 4]> = results.iter().map(|&r| self.fresh_for(regs::ANY, r)).collect();
        let data = MInst::TmuLoad { ty, count: defs.len() as u8, class: class(mem), test };
        self.push(data, &defs, &uses, None, regs::SWITCH);
        self.results(&results, &defs);
    }

    pub(super) fn results(&mut self, results: &[Value], regs: &[VReg]) {
        for (&v, &r) in results.iter().zip(regs) {
            self.set(v, r);
        }
        for &v in results {
            self.defined(v);
        }
    }

    /// Loads words from an address that is the same in all lanes, and with them what later loads of this block want
    /// from close by.
    pub(super) fn side_band(&mut self, i: Inst, base: Base, offset: u32) {
        let block = self.p.block(self.at);
        let from = self.index;
        let mut group: Vec<(u32, Inst)> = Vec::new();
        for &j in block.insts.iter().skip(from).take(SIDE_BAND_WINDOW) {
            let d = self.data(j);
            let (Op::Load, Imm::Mem(mem)) = (d.op, d.imm) else { continue };
            if self.done[j] || !self.p.is_needed(j) || !(1..=4).contains(&mem.count) {
                continue;
            }
            if let Some((b, o)) = values::side_band(self.p, d, mem)
                && b == base
                && (o.wrapping_sub(offset) as i32).unsigned_abs() < 64
                && o.wrapping_sub(offset) % 4 == 0
            {
                group.push((o.wrapping_sub(offset), j));
            }
        }
        // Signed distance from the first load.
        group.sort_by_key(|g| (g.0 as i32, g.1.0));
        let words = |c: &Self, j: Inst| c.data(j).results.len() as i32;
        let limit = SIDE_BAND_WORDS as i32;
        let own = words(self, i);
        let Some(mine) = group.iter().position(|g| g.1 == i) else {
            self.unsupported(i);
            return;
        };
        // Grow the run of words around the first load as long as gaps are small.
        let (mut lo, mut hi) = (0i32, own);
        let (mut first, mut last) = (mine, mine);
        loop {
            let next = group.get(last + 1).map(|g| (last + 1, g));
            let before = first.checked_sub(1).map(|n| (n, &group[n]));
            let mut grown = false;
            for (n, &(at, j)) in [next, before].into_iter().flatten() {
                let at = at as i32 / 4;
                let end = at + words(self, j);
                let near = at <= hi + SIDE_BAND_GAP as i32 && end + SIDE_BAND_GAP as i32 >= lo;
                if near && end.max(hi) - at.min(lo) <= limit {
                    (lo, hi) = (lo.min(at), hi.max(end));
                    (first, last) = (first.min(n), last.max(n));
                    grown = true;
                    break;
                }
            }
            if !grown {
                break;
            }
        }
        self.rules.hit(match base {
            Base::Word(_) => Rule::SideBandWord,
            Base::Value(_) => Rule::SideBandValue,
        });
        if last > first {
            self.rules.hit(Rule::SideBandGroup);
        }
        let start = offset.wrapping_add((lo * 4) as u32);
        let address = match base {
            Base::Word(_) => None,
            Base::Value(v) if start == 0 => Some(self.reg(v)),
            Base::Value(v) => Some({
                // Where it is the address of a load of the group, that value is there already.
                let same = group[first..=last].iter().find(|g| g.0 as i32 == lo * 4).map(|g| g.1);
                match same {
                    Some(j) => {
                        let a = self.data(j).args[0];
                        if self.p.def_pos(self.p.root(a)) != self.at || self.has_reg(self.p.root(a)) {
                            self.rules.hit(Rule::SideBandMember);
                            self.reg(a)
                        } else {
                            self.add_constant(v, start)
                        }
                    }
                    None => self.add_constant(v, start),
                }
            }),
        };
        let count = (hi - lo) as usize;
        let mut defs: SmallVec<[Option<VReg>; 16]> = SmallVec::from_elem(None, count);
        let members: SmallVec<[(u32, Inst); 8]> = SmallVec::from_slice(&group[first..=last]);
        let mut second: Vec<(Value, usize)> = Vec::new();
        for &(o, j) in &members {
            self.done[j] = true;
            let at = (o as i32 / 4 - lo) as usize;
            let results = self.data(j).results.clone();
            for (n, &r) in results.iter().enumerate() {
                if !self.p.is_live(r) {
                    continue;
                }
                match defs[at + n] {
                    None => {
                        let v = self.fresh_for(regs::UNI, r);
                        if let Base::Word(w) = base {
                            let c = start.wrapping_add((at + n) as u32 * 4);
                            let recipe = self.recipe(Remade::Read(w, c)).2;
                            self.b.mir.program.vregs[v.0 as usize].recipe = Some(recipe);
                        }
                        defs[at + n] = Some(v);
                        self.set(r, v);
                    }
                    // The same word once more.
                    Some(_) => {
                        self.rules.hit(Rule::SideBandAgain);
                        second.push((r, at + n));
                    }
                }
            }
        }
        let defs: SmallVec<[VReg; 16]> =
            defs.into_iter().map(|d| d.unwrap_or_else(|| self.fresh(regs::UNI))).collect();
        for (r, at) in second {
            self.set(r, defs[at]);
        }
        let count = count as u8;
        let data = match base {
            Base::Word(w) => MInst::Read { address: UniformSource::Word(w, start), count },
            Base::Value(_) => MInst::Sideband { count },
        };
        self.push(data, &defs, address.as_slice(), None, regs::NONE);
        for (_, j) in members {
            for r in self.data(j).results.clone() {
                self.defined(r);
            }
        }
    }

    pub(super) fn add_constant(&mut self, v: Value, c: u32) -> VReg {
        let x = self.reg(v);
        let dst = self.fresh(regs::ANY);
        match small_code(c) {
            Some(code) => {
                self.rules.hit(Rule::SideBandSmall);
                self.push(alu(MOp::Add, [Src::Use, Src::Imm(code)], None), &[dst], &[x], None, regs::NONE)
            }
            None => {
                self.rules.hit(Rule::SideBandLarge);
                let c = self.remake(Remade::Const(c));
                self.push(alu(MOp::Add, [Src::Use; 2], None), &[dst], &[x, c], None, regs::NONE);
            }
        }
        dst
    }

    pub(super) fn store(&mut self, i: Inst) {
        let Some(mem) = self.memory(i) else { return };
        let d = self.data(i);
        let ty = d.ty;
        let args = d.args.clone();
        let Some((&address, data)) = args.split_first() else { return };
        if mem.space == Space::Private && self.p.stage == kempe_ir::Stage::Fragment && data.len() == 1 {
            self.private_store(mem, address, data[0]);
            return;
        }
        let limit = store_words(self.threads);
        if data.len() <= limit {
            let a = self.reg(address);
            self.store_words(ty, mem, a, data);
            return;
        }
        // Two halves: the second address is one addition.
        let half = data.len().div_ceil(2);
        let a = self.reg(address);
        self.store_words(ty, mem, a, &data[..half]);
        let second = match values::remade(self.p, self.p.root(address)) {
            Some(Remade::Word(w, c)) => {
                self.rules.hit(Rule::StoreSplitWord);
                self.remake(Remade::Word(w, c.wrapping_add(half as u32 * 4)))
            }
            _ => {
                self.rules.hit(Rule::StoreSplitValue);
                self.add_constant(address, half as u32 * 4)
            }
        };
        self.store_words(ty, mem, second, &data[half..]);
    }

    /// Helpers have private memory as well: a store for some lanes keeps what the others have, in whole quads.
    fn private_store(&mut self, mem: MemImm, address: Value, value: Value) {
        let outside = self.exec.is_some() || self.arm.is_some();
        let (mut at, mut word) = (self.reg(address), self.reg(value));
        if outside {
            let (Some(place), Some((test, mut uses))) = (self.safe_address(address), self.active()) else {
                self.fail(SelectError::unsupported("a store to a private array at such an address"));
                return;
            };
            at = place;
            let old = self.fresh(regs::ANY);
            let load = MInst::TmuLoad { ty: TmuType::Word, count: 1, class: class(mem), test: None };
            self.push(load, &[old], &[at], None, regs::SWITCH);
            uses.extend([word, old]);
            word = self.fresh(regs::ANY);
            let data = MInst::Select { test, src: [Src::Use; 2], unpack: [Unpack::None; 2] };
            self.push(data, &[word], &uses, None, regs::NONE);
        }
        self.rules.hit(Rule::Store1);
        let store = MInst::TmuStore { ty: TmuType::Word, count: 1, class: class(mem), test: None };
        self.push(store, &[], &[at, word], None, regs::SWITCH);
    }

    pub(super) fn store_words(&mut self, ty: Type, mem: MemImm, address: VReg, data: &[Value]) {
        let tmu = match ty {
            Type::I8 => TmuType::U8,
            Type::I16 => TmuType::U16,
            _ => vector(data.len()),
        };
        let words: SmallVec<[VReg; 4]> = data.iter().map(|&v| self.reg(v)).collect();
        self.rules.hit(match (tmu, words.len()) {
            (TmuType::U8, _) => Rule::Store8,
            (TmuType::U16, _) => Rule::Store16,
            (_, 2) => Rule::Store2,
            (_, 3) => Rule::Store3,
            (_, 4) => Rule::Store4,
            _ => Rule::Store1,
        });
        let (test, mut uses) = self.guard();
        if test.is_some() {
            self.rules.hit(Rule::StoreGuarded);
        }
        uses.push(address);
        uses.extend_from_slice(&words);
        let inst = MInst::TmuStore { ty: tmu, count: words.len() as u8, class: class(mem), test };
        self.push(inst, &[], &uses, None, regs::SWITCH);
    }

    pub(super) fn atomic(&mut self, i: Inst) {
        let d = self.data(i);
        let Imm::Atomic(imm) = d.imm else {
            self.unsupported(i);
            return;
        };
        if d.ty != Type::I32 {
            self.unsupported(i);
            return;
        }
        let args = d.args.clone();
        let results = d.results.clone();
        let mem = MemImm { space: imm.space, count: 1, align: 4, volatile: true, read_only: false };
        let constant = |n: usize| args.get(n).and_then(|&a| self.p.constant(self.p.root(a)));
        // Operation codes of reference 12.2; 8 and 9 without data count up and down.
        let (op, data) = match imm.op {
            AtomicOp::Add if constant(1) == Some(1) => (8, 0),
            AtomicOp::Add if constant(1) == Some(u32::MAX) => (9, 0),
            AtomicOp::Sub if constant(1) == Some(1) => (9, 0),
            AtomicOp::Sub if constant(1) == Some(u32::MAX) => (8, 0),
            AtomicOp::Add => (0, 1),
            AtomicOp::Sub => (1, 1),
            AtomicOp::Exchange => (2, 1),
            AtomicOp::CompareExchange => (3, 2),
            AtomicOp::Umin => (4, 1),
            AtomicOp::Umax => (5, 1),
            AtomicOp::Smin => (6, 1),
            AtomicOp::Smax => (7, 1),
            AtomicOp::And => (8, 1),
            AtomicOp::Or => (9, 1),
            AtomicOp::Xor => (10, 1),
            AtomicOp::Load => {
                self.rules.hit(Rule::AtomicLoad);
                let (test, mut uses) = self.guard();
                uses.push(self.reg(args[0]));
                let dst = self.fresh(regs::ANY);
                let data = MInst::TmuLoad { ty: TmuType::Word, count: 1, class: class(mem), test };
                self.push(data, &[dst], &uses, None, regs::SWITCH);
                self.results(&results, &[dst]);
                return;
            }
            AtomicOp::Store => {
                self.rules.hit(Rule::AtomicStore);
                let address = self.reg(args[0]);
                self.store_words(Type::I32, mem, address, &args[1..]);
                return;
            }
            AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax => {
                self.unsupported(i);
                return;
            }
        };
        if args.len() < 1 + data {
            self.unsupported(i);
            return;
        }
        self.rules.hit(match (op, data) {
            (8, 0) => Rule::AtomicIncrement,
            (9, 0) => Rule::AtomicDecrement,
            (0, _) => Rule::AtomicAdd,
            (1, _) => Rule::AtomicSub,
            (2, _) => Rule::AtomicExchange,
            (3, _) => Rule::AtomicCompare,
            (4, _) => Rule::AtomicUmin,
            (5, _) => Rule::AtomicUmax,
            (6, _) => Rule::AtomicSmin,
            (7, _) => Rule::AtomicSmax,
            (8, _) => Rule::AtomicAnd,
            (9, _) => Rule::AtomicOr,
            _ => Rule::AtomicXor,
        });
        let words: SmallVec<[VReg; 4]> = args[..=data].iter().map(|&v| self.reg(v)).collect();
        let (test, mut uses) = self.guard();
        if test.is_some() {
            self.rules.hit(Rule::AtomicGuarded);
        }
        uses.extend_from_slice(&words);
        let dst = match results.first() {
            Some(&r) => self.fresh_for(regs::ANY, r),
            None => self.fresh(regs::ANY),
        };
        let inst = MInst::TmuAtomic { op, data: data as u8, class: class(mem), test };
        self.push(inst, &[dst], &uses, None, regs::SWITCH);
        self.results(&results, &[dst]);
    }

    pub(super) fn barrier(&mut self, i: Inst) {
        let execution = self.data(i).op == Op::Barrier;
        self.rules.hit(if execution { Rule::Barrier } else { Rule::Fence });
        let d = self.data(i);
        let orders = !matches!(d.imm, Imm::Barrier(BarrierImm { shared: false, storage: false }));
        if orders || execution {
            self.push(MInst::TmuWait, &[], &[], None, regs::SWITCH);
        }
        if execution {
            self.push(MInst::Barrier, &[], &[], None, regs::SWITCH);
        }
    }
}

fn vector(n: usize) -> TmuType {
    match n {
        2 => TmuType::Vec2,
        3 => TmuType::Vec3,
        4 => TmuType::Vec4,
        _ => TmuType::Word,
    }
}

fn class(mem: MemImm) -> MemClass {
    if mem.read_only || mem.space.is_read_only() {
        return MemClass::READ_ONLY;
    }
    match mem.space {
        Space::Shared => MemClass::SHARED,
        Space::Private => MemClass::PRIVATE,
        _ => MemClass::STORAGE,
    }
}
