//! Single instructions of the IR as machine instructions.

use super::SelectError;
use super::emit::{Emit, Uses, alu};
use super::rules::Rule;
use super::values::{self, Base, Remade};
use crate::instr::{Op as MOp, Pack, Unpack, small_code};
use crate::mops::{Cmp, CmpOp, MAX_CMPS, MInst, MemClass, Src, Test, TmuType};
use crate::regs;
use kempe_ir::{AtomicOp, BarrierImm, Imm, Inst, InstData, MemImm, Op, Space, Type, Value};
use kempe_ra::{SetId, VReg};
use smallvec::{SmallVec, smallvec};

/// Small immediate codes of 0 and of all ones.
const ZERO: Src = Src::Imm(0);
const ONES: Src = Src::Imm(31);

/// Conditions, each inverted or not.
pub(super) type Literals = SmallVec<[(Value, bool); MAX_CMPS]>;

/// Words that one side-band access may bring for several loads, by thread count: each takes a register until used.
const SIDE_BAND_WORDS: [u32; 2] = [16, 8];
/// Unwanted words read to reach the next wanted one: cheaper than a new address (three slots and a write).
const SIDE_BAND_GAP: u32 = 2;
/// Instructions over which loads are brought together.
const SIDE_BAND_WINDOW: usize = 48;

/// Most data words of one store that fit the share of a thread in the input FIFO, its address with them (rule 55).
fn store_words(threads: u32) -> usize {
    (16 / threads as usize) - 1
}

impl Emit<'_> {
    pub(super) fn data(&self, i: Inst) -> &InstData {
        &self.p.func.insts[i]
    }

    /// Where the result of an operation may live: SFU results go to rows on 4.2 (rule 13).
    fn result_home(&self, op: MOp) -> SetId {
        if op.is_sfu() { regs::RF } else { regs::ANY }
    }

    /// Makes an instruction now, or leaves it for its uses.
    pub fn inst(&mut self, i: Inst) {
        let d = self.data(i);
        if let Some(&r) = d.results.first() {
            if self.p.root(r) != r || values::is_remade(self.p, r) || d.op == Op::Payload {
                return;
            }
            if self.p.is_lazy(r) && !self.vars.is_far(r) && self.vars.of(r).is_none() {
                return;
            }
            if self.has_reg(r) {
                return;
            }
        }
        match d.op {
            Op::Load => self.load(i),
            Op::Store => self.store(i),
            Op::Atomic => self.atomic(i),
            Op::ImageLoad | Op::ImageStore | Op::ImageAtomic => self.image(i),
            Op::Barrier | Op::Fence => self.barrier(i),
            Op::Ballot | Op::Shuffle | Op::Reduce => self.lanes(i),
            _ => match self.data(i).results.first() {
                Some(&r) => self.make(r),
                None => self.unsupported(i),
            },
        }
    }

    pub(super) fn unsupported(&mut self, i: Inst) {
        let d = self.data(i);
        let e = SelectError::unsupported(&format!("the operation {}.{}", d.op.name(), d.ty)).at(d.loc);
        self.fail(e);
    }

    /// Gives a pure operation of this block its register.
    pub fn make(&mut self, root: Value) {
        let Some(i) = self.p.func.def_inst(root) else { return };
        let d = self.data(i);
        let (op, ty) = (d.op, d.ty);
        let args: SmallVec<[Value; 3]> = d.args.clone();
        let arg = |n: usize| args.get(n).copied();
        let (Some(a), b) = (arg(0), arg(1)) else {
            self.unsupported(i);
            return;
        };
        self.rules.made(op, ty);
        match (op, b) {
            (Op::Select, Some(t)) => {
                if let Some(f) = arg(2) {
                    self.select(root, a, t, f);
                }
            }
            (Op::And | Op::Or, Some(b)) if ty == Type::Bool => self.logic(root, op, a, b),
            (Op::Ieq | Op::Ine | Op::Slt | Op::Sle | Op::Ult | Op::Ule, Some(_))
            | (Op::Feq | Op::Fne | Op::Flt | Op::Fle, Some(_)) => {
                self.rules.hit(Rule::CompareValue);
                let mut uses = Uses::new();
                let cmp = self.compare(i, false, &mut uses);
                let dst = self.fresh_for(regs::ANY, root);
                let test = Test::of(cmp);
                let data = MInst::Select { test, src: [ONES, ZERO], unpack: [Unpack::None; 2] };
                self.push(data, &[dst], &uses, None, regs::NONE);
                self.set(root, dst);
            }
            (Op::Imul, Some(b)) => {
                let mut uses = Uses::new();
                let src = self.src2(a, b, &mut uses);
                let dst = self.fresh_for(regs::ANY, root);
                self.push(MInst::Mul32 { src }, &[dst], &uses, None, regs::NONE);
                self.set(root, dst);
            }
            (Op::Fneg, _) => self.plain_bits(root, MOp::Xor, a, 0x8000_0000),
            (Op::Fabs, _) => self.plain_bits(root, MOp::And, a, 0x7fff_ffff),
            (Op::UnpackHalfLo | Op::UnpackHalfHi, _) => {
                let mut uses = Uses::new();
                let src = self.src(a, false, &mut uses);
                let half = if op == Op::UnpackHalfLo { Unpack::L } else { Unpack::H };
                self.put(root, MOp::Fmov, [src, Src::None], [half, Unpack::None], &uses);
            }
            (Op::Fadd | Op::Fsub | Op::Fmul | Op::Fmin | Op::Fmax, Some(b)) => {
                self.float_binary(root, op, a, b);
            }
            (Op::PackHalf, Some(b)) => {
                let mut uses = Uses::new();
                let (src, unpack) = self.float_sources(a, b, false, &mut uses);
                self.put(root, MOp::Vfpack, src, unpack, &uses);
            }
            _ => {
                if let Some(m) = float_unary(op, ty) {
                    let mut uses = Uses::new();
                    let (src, unpack) =
                        self.float_source(a, false, m != MOp::Itof && m != MOp::Utof, true, &mut uses);
                    self.put(root, m, [src, Src::None], [unpack, Unpack::None], &uses);
                } else if let Some(m) = integer(op, ty) {
                    let mut uses = Uses::new();
                    let src = match b {
                        Some(b) if m.sources() == 2 => self.src2(a, b, &mut uses),
                        _ => [self.src(a, true, &mut uses), Src::None],
                    };
                    self.put(root, m, src, [Unpack::None; 2], &uses);
                } else {
                    self.unsupported(i);
                    return;
                }
            }
        }
        self.defined(root);
    }

    /// Gives a root the result of an ALU operation: under the mask at once, where the value is only the next version of
    /// a variable.
    fn put(&mut self, root: Value, op: MOp, src: [Src; 2], unpack: [Unpack; 2], uses: &[VReg]) {
        if !op.is_sfu()
            && op != MOp::Umul24
            && let Some(old) = self.replaces(root)
            && let Some((test, mut all)) = self.active()
        {
            self.rules.hit(Rule::InPlace);
            all.extend_from_slice(uses);
            let dst = self.fresh_for(regs::ANY, root);
            let data = MInst::Alu { op, pack: Pack::None, src, unpack, test: Some(test) };
            self.push(data, &[dst], &all, Some(old), regs::NONE);
            self.set(root, dst);
            self.replaced(root);
            return;
        }
        let dst = self.fresh_for(self.result_home(op), root);
        self.push(
            MInst::Alu { op, pack: Pack::None, src, unpack, test: None },
            &[dst],
            uses,
            None,
            regs::NONE,
        );
        self.set(root, dst);
    }

    /// Sign operations on the bits: they must keep the payload of a NaN.
    fn plain_bits(&mut self, root: Value, op: MOp, a: Value, bits: u32) {
        let x = self.reg(a);
        let c = self.remake(Remade::Const(bits));
        let dst = self.fresh_for(regs::ANY, root);
        self.push(alu(op, [Src::Use; 2], None), &[dst], &[x, c], None, regs::NONE);
        self.set(root, dst);
    }

    /// The operation behind a value, if it was left for its uses and this block is where it is.
    pub fn folded(&self, v: Value) -> Option<(Op, Value)> {
        let root = self.p.root(v);
        if !self.is_here(self.p.def_pos(root)) || !self.p.is_lazy(root) {
            return None;
        }
        let d = self.p.inst_of(root)?;
        Some((d.op, *d.args.first()?))
    }

    fn float_binary(&mut self, root: Value, op: Op, a: Value, b: Value) {
        let neg = |c: &Self, v: Value| match c.folded(v) {
            Some((Op::Fneg, inner)) => Some(inner),
            _ => None,
        };
        let both = neg(self, a).is_some() && neg(self, b).is_some();
        let (m, a, b) = match (op, neg(self, a), neg(self, b)) {
            (Op::Fadd, None, Some(b)) => (MOp::Fsub, a, b),
            (Op::Fadd, Some(a), None) => (MOp::Fsub, b, a),
            (Op::Fsub, _, Some(b)) => (MOp::Fadd, a, b),
            (Op::Fmul, Some(a), Some(b)) => (MOp::Fmul, a, b),
            (Op::Fadd, ..) => (MOp::Fadd, a, b),
            (Op::Fsub, ..) => (MOp::Fsub, a, b),
            (Op::Fmul, ..) => (MOp::Fmul, a, b),
            (Op::Fmin, ..) => (MOp::Fmin, a, b),
            _ => (MOp::Fmax, a, b),
        };
        match (op, m) {
            (Op::Fadd, MOp::Fsub) => self.rules.hit(Rule::AddOfNegated),
            (Op::Fsub, MOp::Fadd) => self.rules.hit(Rule::SubOfNegated),
            (Op::Fmul, _) if both => self.rules.hit(Rule::MulOfNegated),
            _ => {}
        }
        let mut uses = Uses::new();
        let (src, unpack) = self.float_sources(a, b, true, &mut uses);
        // The larger of a value and itself has no encoding (reference 6.1); the smaller is the same.
        let same = src == [Src::Use; 2] && uses[0] == uses[1] && unpack[0] == unpack[1];
        let m = if m == MOp::Fmax && same {
            self.rules.hit(Rule::MaxOfSame);
            MOp::Fmin
        } else {
            m
        };
        self.put(root, m, src, unpack, &uses);
    }

    /// Two float sources with their modifiers; at most one is an immediate.
    fn float_sources(&mut self, a: Value, b: Value, abs: bool, uses: &mut Uses) -> ([Src; 2], [Unpack; 2]) {
        let small = |c: &Self, v: Value| c.p.constant(c.p.root(v)).and_then(small_code).is_some();
        let second = small(self, b);
        let first = !second && small(self, a);
        let (sa, ua) = self.float_source(a, abs, true, first, uses);
        let (sb, ub) = self.float_source(b, abs, true, second, uses);
        ([sa, sb], [ua, ub])
    }

    /// A float source: an absolute value or an unpacked half is a modifier where it was made in this block.
    fn float_source(&mut self, v: Value, abs: bool, half: bool, imm: bool, uses: &mut Uses) -> (Src, Unpack) {
        let modifier = match self.folded(v) {
            Some((Op::Fabs, inner)) if abs => Some((inner, Unpack::Abs)),
            Some((Op::UnpackHalfLo, inner)) if half => Some((inner, Unpack::L)),
            Some((Op::UnpackHalfHi, inner)) if half => Some((inner, Unpack::H)),
            _ => None,
        };
        match modifier {
            Some((inner, unpack)) => {
                self.rules.hit(match unpack {
                    Unpack::Abs => Rule::AbsSource,
                    Unpack::L => Rule::LowSource,
                    _ => Rule::HighSource,
                });
                uses.push(self.reg(inner));
                (Src::Use, unpack)
            }
            None => (self.src(v, imm, uses), Unpack::None),
        }
    }

    // ---- Conditions ----

    /// A condition as a comparison.
    pub fn condition(&mut self, cond: Value, mut invert: bool, uses: &mut Uses) -> Cmp {
        let mut root = self.p.root(cond);
        while let Some((op, inner)) = self.folded(root) {
            if op == Op::Not {
                invert = !invert;
                root = self.p.root(inner);
            } else if let Some(i) = self.p.func.def_inst(root).filter(|_| op.is_compare()) {
                self.rules.hit(Rule::TestComparison);
                return self.compare(i, invert, uses);
            } else {
                break;
            }
        }
        self.rules.hit(Rule::TestRegister);
        uses.push(self.reg(root));
        Cmp { op: CmpOp::NonZero, src: [Src::Use, Src::None], unpack: [Unpack::None; 2], invert }
    }

    fn compare(&mut self, i: Inst, invert: bool, uses: &mut Uses) -> Cmp {
        let d = self.data(i);
        let (op, float) = (d.op, d.ty.is_float());
        let (Some(&a), Some(&b)) = (d.args.first(), d.args.get(1)) else {
            self.unsupported(i);
            return Cmp { op: CmpOp::NonZero, src: [ZERO, Src::None], unpack: [Unpack::None; 2], invert };
        };
        let (cmp, swap, not) = match op {
            Op::Ieq => (CmpOp::Ieq, false, false),
            Op::Ine => (CmpOp::Ieq, false, true),
            Op::Slt => (CmpOp::Slt, false, false),
            Op::Sle => (CmpOp::Slt, true, true),
            Op::Ult => (CmpOp::Ult, false, false),
            Op::Ule => (CmpOp::Ult, true, true),
            Op::Feq => (CmpOp::Feq, false, false),
            Op::Fne => (CmpOp::Feq, false, true),
            Op::Flt => (CmpOp::Flt, false, false),
            _ => (CmpOp::Fle, false, false),
        };
        self.rules.made(op, self.data(i).ty);
        if swap {
            self.rules.hit(Rule::CompareSwapped);
        }
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let invert = invert != not;
        if cmp == CmpOp::Ieq {
            let zero = |v: Value| self.p.constant(self.p.root(v)) == Some(0);
            let other = if zero(b) {
                Some(a)
            } else if zero(a) {
                Some(b)
            } else {
                None
            };
            if let Some(x) = other {
                self.rules.hit(Rule::CompareZero);
                uses.push(self.reg(x));
                let src = [Src::Use, Src::None];
                return Cmp { op: CmpOp::NonZero, src, unpack: [Unpack::None; 2], invert: !invert };
            }
        }
        let (src, unpack) = if float {
            let small = |c: &Self, v: Value| c.p.constant(c.p.root(v)).and_then(small_code).is_some();
            let second = small(self, b);
            let first = !second && small(self, a);
            let (sa, ua) = self.float_source(a, true, false, first, uses);
            let (sb, ub) = self.float_source(b, true, false, second, uses);
            ([sa, sb], [ua, ub])
        } else {
            (self.src2(a, b, uses), [Unpack::None; 2])
        };
        Cmp { op: cmp, src, unpack, invert }
    }

    fn select(&mut self, root: Value, cond: Value, t: Value, f: Value) {
        let mut values: [Uses; 2] = Default::default();
        let src = [self.src(t, true, &mut values[0]), self.src(f, true, &mut values[1])];
        let dst =
            self.choose(cond, src, [values[0].first().copied(), values[1].first().copied()], Some(root));
        self.set(root, dst);
    }

    /// Two conditions that are left for their use, joined by `and` or `or`.
    pub fn compound(&self, cond: Value) -> Option<(Op, Value, Value)> {
        let root = self.p.root(cond);
        let (op, a) = self.folded(root)?;
        let b = *self.p.inst_of(root)?.args.get(1)?;
        (matches!(op, Op::And | Op::Or) && !self.has_reg(root)).then_some((op, a, b))
    }

    /// A condition as comparisons that must all hold, and whether that is inverted: `a or b` is `not (not a and not b)`.
    pub fn literals(&self, cond: Value, invert: bool) -> (Literals, bool) {
        let split = |invert: bool| {
            let mut list: Literals = smallvec![(self.p.root(cond), invert)];
            let mut n = 0;
            while n < list.len() {
                let (v, invert) = list[n];
                match self.folded(v) {
                    Some((Op::Not, inner)) if !self.has_reg(v) => list[n] = (self.p.root(inner), !invert),
                    _ => match self.compound(v) {
                        Some((op, a, b)) if invert == (op == Op::Or) && list.len() < MAX_CMPS => {
                            list[n] = (self.p.root(a), invert);
                            list.insert(n + 1, (self.p.root(b), invert));
                        }
                        _ => n += 1,
                    },
                }
            }
            list
        };
        let (plain, inverted) = (split(invert), split(!invert));
        if inverted.len() > plain.len() { (inverted, true) } else { (plain, false) }
    }

    /// The condition is more than one test can hold.
    pub fn is_nested(&self, cond: Value) -> bool {
        self.literals(cond, false).0.iter().any(|l| self.compound(l.0).is_some())
    }

    /// `cond ? src[0] : src[1]`. Of conditions that one test cannot hold the second one corrects what the first one chose.
    pub fn choose(
        &mut self,
        cond: Value,
        src: [Src; 2],
        value: [Option<VReg>; 2],
        name: Option<Value>,
    ) -> VReg {
        if self.is_nested(cond)
            && let Some((op, a, b)) = self.compound(cond)
        {
            self.rules.hit(if op == Op::And { Rule::ChooseAnd } else { Rule::ChooseOr });
            let first = self.choose(a, src, value, None);
            let side = (op == Op::And) as usize;
            let test = self.test(b, op == Op::And, None);
            return self.move_under(src[side], value[side].as_slice(), test, first);
        }
        self.rules.hit(Rule::ChooseOne);
        let (test, mut uses) = self.test(cond, false, None);
        uses.extend(value.into_iter().flatten());
        let dst = match name {
            Some(root) => self.fresh_for(regs::ANY, root),
            None => self.fresh(regs::ANY),
        };
        self.push(MInst::Select { test, src, unpack: [Unpack::None; 2] }, &[dst], &uses, None, regs::NONE);
        dst
    }

    /// `and`, `or` of booleans (0 and all ones): a comparison that is left for its use overwrites the other operand.
    fn logic(&mut self, root: Value, op: Op, a: Value, b: Value) {
        let (literals, _) = self.literals(root, false);
        let fresh = |v: Value| !self.has_reg(v) && self.folded(v).is_some_and(|(op, _)| op.is_compare());
        if literals.len() > 1 && literals.iter().all(|l| fresh(l.0)) {
            self.rules.hit(Rule::LogicTests);
            let dst = self.choose(root, [ONES, ZERO], [None; 2], Some(root));
            self.set(root, dst);
            return;
        }
        let free = |c: &Self, v: Value| {
            let r = c.p.root(v);
            !c.has_reg(r) && c.folded(r).is_some_and(|(op, _)| op.is_compare() || op == Op::Not)
        };
        let (kept, tested) = if free(self, b) {
            (a, b)
        } else if free(self, a) {
            (b, a)
        } else {
            self.rules.hit(Rule::LogicPlain);
            let mut uses = Uses::new();
            let src = self.src2(a, b, &mut uses);
            let dst = self.fresh_for(regs::ANY, root);
            let m = if op == Op::And { MOp::And } else { MOp::Or };
            self.push(alu(m, src, None), &[dst], &uses, None, regs::NONE);
            self.set(root, dst);
            return;
        };
        self.rules.hit(Rule::LogicTest);
        let old = self.reg(kept);
        let test = self.test(tested, op == Op::And, None);
        let dst = self.move_under(if op == Op::And { ZERO } else { ONES }, &[], test, old);
        self.set(root, dst);
    }

    // ---- Memory ----

    /// Only lanes that run take part in an access.
    pub(super) fn guard(&mut self) -> (Option<Test>, Uses) {
        match self.active() {
            Some((test, uses)) => (Some(test), uses),
            None => (None, Uses::new()),
        }
    }

    fn memory(&mut self, i: Inst) -> Option<MemImm> {
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

    fn load(&mut self, i: Inst) {
        let Some(mem) = self.memory(i) else { return };
        let d = self.data(i);
        let address = self.p.root(d.args[0]);
        if let Some((base, offset)) = values::side_band(self.p, d, mem)
            && self.flow.is_uniform(self.p, address, self.at)
            && (values::is_fixed_address(self.p, address) || self.plan.occupied[self.at as usize])
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
        let (test, mut uses) = self.guard();
        if test.is_some() {
            self.rules.hit(Rule::LoadGuarded);
        }
        uses.push(self.reg(address));
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
    fn side_band(&mut self, i: Inst, base: Base, offset: u32) {
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
        let limit = SIDE_BAND_WORDS[(self.threads >= 4) as usize] as i32;
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
            Base::Word(w) => self.remake(Remade::Word(w, start)),
            Base::Value(v) if start == 0 => self.reg(v),
            Base::Value(v) => {
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
            }
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
        self.push(MInst::Sideband { count: count as u8 }, &defs, &[address], None, regs::NONE);
        for (_, j) in members {
            for r in self.data(j).results.clone() {
                self.defined(r);
            }
        }
    }

    fn add_constant(&mut self, v: Value, c: u32) -> VReg {
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

    fn store(&mut self, i: Inst) {
        let Some(mem) = self.memory(i) else { return };
        let d = self.data(i);
        let ty = d.ty;
        let args = d.args.clone();
        let Some((&address, data)) = args.split_first() else { return };
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

    fn store_words(&mut self, ty: Type, mem: MemImm, address: VReg, data: &[Value]) {
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

    fn atomic(&mut self, i: Inst) {
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
            AtomicOp::Fadd => {
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

    fn barrier(&mut self, i: Inst) {
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

/// Operations with one operand whose source may be an unpacked half (`Itof` and `Utof` excepted).
fn float_unary(op: Op, ty: Type) -> Option<MOp> {
    Some(match (op, ty) {
        (Op::Ffloor, Type::F32) => MOp::Ffloor,
        (Op::Fceil, Type::F32) => MOp::Fceil,
        (Op::Ftrunc, Type::F32) => MOp::Ftrunc,
        (Op::Fround, Type::F32) => MOp::Fround,
        (Op::Ftosi, Type::I32) => MOp::Ftoiz,
        (Op::Ftoui, Type::I32) => MOp::Ftouz,
        (Op::Sitof, Type::F32) => MOp::Itof,
        (Op::Uitof, Type::F32) => MOp::Utof,
        _ => return None,
    })
}

fn integer(op: Op, ty: Type) -> Option<MOp> {
    Some(match (op, ty) {
        (Op::Iadd, Type::I32) => MOp::Add,
        (Op::Isub, Type::I32) => MOp::Sub,
        (Op::Ineg, Type::I32) => MOp::Neg,
        (Op::Umul24, Type::I32) => MOp::Umul24,
        (Op::Not, Type::I32 | Type::Bool) => MOp::Not,
        (Op::And, Type::I32 | Type::Bool) => MOp::And,
        (Op::Or, Type::I32 | Type::Bool) => MOp::Or,
        (Op::Xor, Type::I32 | Type::Bool) => MOp::Xor,
        (Op::Shl, Type::I32) => MOp::Shl,
        (Op::Lshr, Type::I32) => MOp::Shr,
        (Op::Ashr, Type::I32) => MOp::Asr,
        (Op::Smin, Type::I32) => MOp::Min,
        (Op::Smax, Type::I32) => MOp::Max,
        (Op::Umin, Type::I32) => MOp::Umin,
        (Op::Umax, Type::I32) => MOp::Umax,
        (Op::Clz, Type::I32) => MOp::Clz,
        (Op::RcpApprox, Type::F32) => MOp::Recip,
        (Op::RsqrtApprox, Type::F32) => MOp::Rsqrt,
        (Op::Exp2Approx, Type::F32) => MOp::Exp,
        (Op::Log2Approx, Type::F32) => MOp::Log,
        (Op::SinpiApprox, Type::F32) => MOp::Sin,
        _ => return None,
    })
}

/// The operations that [`Emit::make`] knows, by type.
pub(super) fn has_rule(op: Op, ty: Type) -> bool {
    use Op::*;
    let special = match op {
        Select => true,
        And | Or => ty == Type::Bool,
        Ieq | Ine | Slt | Sle | Ult | Ule | Imul | PackHalf => ty == Type::I32,
        Feq | Fne | Flt | Fle | Fneg | Fabs | UnpackHalfLo | UnpackHalfHi => ty == Type::F32,
        Fadd | Fsub | Fmul | Fmin | Fmax => ty == Type::F32,
        _ => false,
    };
    special || float_unary(op, ty).is_some() || integer(op, ty).is_some()
}
