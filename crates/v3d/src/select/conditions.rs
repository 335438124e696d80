//! Conditions: comparisons into tests, conditions joined by *and* and *or*, what is chosen by them.

use super::emit::{Emit, Uses, alu};
use super::ops::{ONES, ZERO};
use super::rules::Rule;
use crate::instr::{Op as MOp, Unpack, small_code};
use crate::mops::{Cmp, CmpOp, MAX_CMPS, MInst, Src};
use crate::regs;
use kempe_ir::{Inst, Op, Value};
use kempe_ra::VReg;
use smallvec::{SmallVec, smallvec};

/// Conditions, each inverted or not.
pub(super) type Literals = SmallVec<[(Value, bool); MAX_CMPS]>;

impl Emit<'_> {
    /// A condition as a comparison.
    pub(super) fn condition(&mut self, cond: Value, mut invert: bool, uses: &mut Uses) -> Cmp {
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

    pub(super) fn compare(&mut self, i: Inst, invert: bool, uses: &mut Uses) -> Cmp {
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

    pub(super) fn select(&mut self, root: Value, cond: Value, t: Value, f: Value) {
        let mut values: [Uses; 2] = Default::default();
        let src = [self.src(t, true, &mut values[0]), self.src(f, true, &mut values[1])];
        let dst =
            self.choose(cond, src, [values[0].first().copied(), values[1].first().copied()], Some(root));
        self.set(root, dst);
    }

    /// Two conditions that are left for their use, joined by `and` or `or`.
    pub(super) fn compound(&self, cond: Value) -> Option<(Op, Value, Value)> {
        let root = self.p.root(cond);
        let (op, a) = self.folded(root)?;
        let b = *self.p.inst_of(root)?.args.get(1)?;
        (matches!(op, Op::And | Op::Or) && !self.has_reg(root)).then_some((op, a, b))
    }

    /// A condition as comparisons that must all hold, and whether that is inverted: `a or b` is `not (not a and not b)`.
    pub(super) fn literals(&self, cond: Value, invert: bool) -> (Literals, bool) {
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
    pub(super) fn is_nested(&self, cond: Value) -> bool {
        self.literals(cond, false).0.iter().any(|l| self.compound(l.0).is_some())
    }

    /// `cond ? src[0] : src[1]`. Of conditions that one test cannot hold the second one corrects what the first one chose.
    pub(super) fn choose(
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
    pub(super) fn logic(&mut self, root: Value, op: Op, a: Value, b: Value) {
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
}
