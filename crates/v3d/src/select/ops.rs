//! Single instructions of the IR as machine instructions: which function makes which, and arithmetic.

use super::SelectError;
use super::emit::{Emit, Uses, alu};
use super::rules::Rule;
use super::values::{self, Remade};
use crate::instr::{Op as MOp, Pack, Unpack, small_code};
use crate::mops::{MInst, Src, Test};
use crate::regs;
use kempe_ir::{Inst, InstData, Op, Stage, Type, Value};
use kempe_ra::{SetId, VReg};
use smallvec::SmallVec;

/// Small immediate codes of 0 and of all ones.
pub(super) const ZERO: Src = Src::Imm(0);
pub(super) const ONES: Src = Src::Imm(31);

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
                return; // made with another one, or an input that is there from the start
            }
        }
        match d.op {
            Op::Load => self.load(i),
            Op::Store => self.store(i),
            Op::Atomic => self.atomic(i),
            Op::ImageLoad | Op::ImageStore | Op::ImageAtomic => self.image(i),
            Op::Sample | Op::SampleImplicit => self.lookup(i),
            Op::Barrier | Op::Fence => self.barrier(i),
            Op::Ballot | Op::Shuffle | Op::Reduce => self.lanes(i),
            Op::Input | Op::ReadOutput if self.p.stage.takes_primitives() => self.input_row(i),
            Op::Output if self.p.stage.takes_primitives() && self.p.stage != Stage::TessEval => {
                self.output_row(i);
            }
            Op::Input => self.input(i),
            Op::Output => self.output(i),
            Op::Demote => self.demote(),
            Op::IsHelper => match self.data(i).results.first() {
                Some(&r) => self.is_helper(r),
                None => self.unsupported(i),
            },
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
            (Op::Ftosi, _) if self.rounded(a).is_some() => {
                let inner = self.rounded(a).unwrap_or(a);
                let mut uses = Uses::new();
                let (src, unpack) = self.float_source(inner, false, true, true, &mut uses);
                self.put(root, MOp::Ftoin, [src, Src::None], [unpack, Unpack::None], &uses);
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

    /// What a value of this block was rounded from to the nearest even number.
    fn rounded(&self, v: Value) -> Option<Value> {
        let root = self.p.root(v);
        let d = self.p.inst_of(root)?;
        (d.op == Op::Fround && self.p.def_pos(root) == self.at).then(|| d.args.first().copied())?
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
    pub(super) fn float_sources(
        &mut self,
        a: Value,
        b: Value,
        abs: bool,
        uses: &mut Uses,
    ) -> ([Src; 2], [Unpack; 2]) {
        let small = |c: &Self, v: Value| c.p.constant(c.p.root(v)).and_then(small_code).is_some();
        let second = small(self, b);
        let first = !second && small(self, a);
        let (sa, ua) = self.float_source(a, abs, true, first, uses);
        let (sb, ub) = self.float_source(b, abs, true, second, uses);
        ([sa, sb], [ua, ub])
    }

    /// A float source: an absolute value or an unpacked half is a modifier where it was made in this block.
    pub(super) fn float_source(
        &mut self,
        v: Value,
        abs: bool,
        half: bool,
        imm: bool,
        uses: &mut Uses,
    ) -> (Src, Unpack) {
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
        (Op::Ddx, Type::F32) => MOp::Fdx,
        (Op::Ddy, Type::F32) => MOp::Fdy,
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
