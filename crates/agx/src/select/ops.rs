//! Arithmetic: what each operation of the lowered form becomes (reference section 4).

use super::sources::NEGATIVE_ZERO;
use super::{Select, Uses};
use crate::instr::{Instr, NOT_TABLE, Number, Operand, Role, Size};
use crate::mops::place;
use crate::ops::Op as MOp;
use kempe_ir::{Imm, Inst, InstData, Op, Type, Value};
use kempe_ra::VReg;
use smallvec::smallvec;

/// Truth tables of bit operations (reference section 4.1).
const AND: u32 = 8;
const OR: u32 = 14;
const XOR: u32 = 6;
/// a & ~b.
const AND_NOT: u32 = 2;

/// Integer conditions.
const UEQ: u32 = 0;
const ULT: u32 = 1;
const UGT: u32 = 2;
const SLT: u32 = 5;
const SGT: u32 = 6;

/// Float conditions; the last two lose to NaN.
const FEQ: u32 = 0;
const FLT: u32 = 1;
const FLE: u32 = 6;
const FLTN: u32 = 3;
const FGTN: u32 = 7;

/// Bit of a condition that inverts it.
pub(crate) const INVERT: u32 = 8;

/// Modes of `convert`, and its roundings.
const FLOAT_TO_UNSIGNED: u32 = 8;
const FLOAT_TO_SIGNED: u32 = 9;
const UNSIGNED_TO_FLOAT: u32 = 10;
const SIGNED_TO_FLOAT: u32 = 11;
const TO_ZERO: u32 = 0;
const TO_NEAREST: u32 = 1;

/// Largest shift of the second operand of `iadd`.
const MAX_SHIFT: u32 = 4;

/// A comparison. Without a second operand it is with 0.
#[derive(Clone, Copy)]
struct Cmp {
    float: bool,
    condition: u32,
    invert: bool,
    a: Value,
    b: Option<Value>,
}

/// The result, at the first place.
fn dest() -> Operand {
    place(0, Size::B32, false)
}

impl Select<'_> {
    /// The comparison that a bool is, or that of the bool with 0.
    fn comparison(&self, mut cond: Value) -> Cmp {
        let mut invert = false;
        loop {
            cond = self.alias(cond);
            let Some(d) = self.def(cond) else { break };
            let cmp = |float, condition, inverted: bool| Cmp {
                float,
                condition,
                invert: inverted != invert,
                a: d.args[0],
                b: d.args.get(1).copied(),
            };
            return match d.op {
                Op::Not if d.ty == Type::Bool => {
                    invert = !invert;
                    cond = d.args[0];
                    continue;
                }
                Op::Ieq => cmp(false, UEQ, false),
                Op::Ine => cmp(false, UEQ, true),
                Op::Slt => cmp(false, SLT, false),
                Op::Sle => cmp(false, SGT, true),
                Op::Ult => cmp(false, ULT, false),
                Op::Ule => cmp(false, UGT, true),
                Op::Feq => cmp(true, FEQ, false),
                Op::Fne => cmp(true, FEQ, true),
                Op::Flt => cmp(true, FLT, false),
                Op::Fle => cmp(true, FLE, false),
                _ => break,
            };
        }
        Cmp { float: false, condition: UEQ, invert: !invert, a: cond, b: None }
    }

    fn cmp_sources(&mut self, cmp: Cmp, defs: usize, uses: &mut Uses) -> (Operand, Operand) {
        if cmp.float {
            let a = self.float(cmp.a, defs, uses);
            let b = cmp.b.map_or(Operand::float(0), |b| self.float(b, defs, uses));
            (a, b)
        } else {
            let a = self.source(cmp.a, defs, uses);
            let b = cmp.b.map_or(Operand::imm(0), |b| self.source(b, defs, uses));
            (a, b)
        }
    }

    /// The test of a branch, as an `if`.
    pub(super) fn test(&mut self, cond: Value, uses: &mut Uses) -> Instr {
        let cmp = self.comparison(cond);
        let (a, b) = self.cmp_sources(cmp, 0, uses);
        let op = if cmp.float { MOp::IfFcmp } else { MOp::IfIcmp };
        let condition = cmp.condition | if cmp.invert { INVERT } else { 0 };
        Instr::new(op).with(Role::A, a).with(Role::B, b).set(Number::Condition, condition)
    }

    /// A select between two operands that are given for a list of uses.
    fn choose(&mut self, dst: VReg, cmp: Cmp, xy: impl Fn(&mut Self, &mut Uses) -> (Operand, Operand)) {
        let mut uses = Uses::new();
        let (a, b) = self.cmp_sources(cmp, 1, &mut uses);
        let (x, y) = xy(self, &mut uses);
        let (x, y) = if cmp.invert { (y, x) } else { (x, y) };
        let op = if cmp.float { MOp::Fcmpsel } else { MOp::Icmpsel };
        let instr = Instr::binary(op, dest(), a, b)
            .with(Role::X, x)
            .with(Role::Y, y)
            .set(Number::Condition, cmp.condition);
        self.push(instr, dst, uses);
    }

    /// One word of a select between two pointers.
    pub(super) fn select_words(&mut self, cond: Value, dst: VReg, (x, y): (Value, Value), high: bool) {
        let cmp = self.comparison(cond);
        self.choose(dst, cmp, |s, uses| {
            let word = |s: &mut Self, v| if high { s.high(v) } else { s.reg(v) };
            let (x, y) = (word(s, x), word(s, y));
            (s.used(x, 1, uses), s.used(y, 1, uses))
        });
    }

    fn bitop(&mut self, table: u32, dst: VReg, a: Value, b: Value) {
        let mut uses = Uses::new();
        let a = self.source(a, 1, &mut uses);
        let b = self.source(b, 1, &mut uses);
        self.push(Instr::bitop(table, dest(), a, b), dst, uses);
    }

    fn bitop_constant(&mut self, table: u32, dst: VReg, a: Value, c: u32) {
        let mut uses = Uses::new();
        let a = self.source(a, 1, &mut uses);
        let b = self.constant_source(c, 1, &mut uses);
        self.push(Instr::bitop(table, dest(), a, b), dst, uses);
    }

    fn unary(&mut self, op: MOp, dst: VReg, a: Value) {
        let mut uses = Uses::new();
        let a = self.source(a, 1, &mut uses);
        self.push(Instr::unary(op, dest(), a), dst, uses);
    }

    fn float_unary(&mut self, op: MOp, dst: VReg, a: Value) {
        let mut uses = Uses::new();
        let a = self.float(a, 1, &mut uses);
        self.push(Instr::unary(op, dest(), a), dst, uses);
    }

    fn convert(&mut self, mode: u32, round: u32, dst: VReg, a: Value) {
        let mut uses = Uses::new();
        let a = self.source(a, 1, &mut uses);
        let instr = Instr::unary(MOp::Convert, dest(), a).set(Number::Mode, mode).set(Number::Round, round);
        self.push(instr, dst, uses);
    }

    /// The value is read here only, and made by this operation.
    fn only(&self, v: Value, op: Op) -> Option<&InstData> {
        let d = self.f.def_inst(v).map(|i| &self.f.insts[i])?;
        (d.op == op && self.uses[v] == 1).then_some(d)
    }

    /// `x << c` with a shift that an addition takes along.
    fn shifted(&self, v: Value) -> Option<(Value, u32)> {
        let d = self.only(v, Op::Shl)?;
        let c = self.constant(d.args[1])? & 31;
        ((1..=MAX_SHIFT).contains(&c) && self.constant(d.args[0]).is_none()).then(|| (d.args[0], c))
    }

    fn sum(&mut self, dst: VReg, a: Value, b: Value) {
        // A product first: it is the dearer operation.
        for (product, other) in [(a, b), (b, a)] {
            if let Some(d) = self.only(product, Op::Imul) {
                let (x, y) = (d.args[0], d.args[1]);
                let (c, shift) = self.shifted(other).unwrap_or((other, 0));
                let mut uses = Uses::new();
                let x = self.source(x, 1, &mut uses);
                let y = self.source(y, 1, &mut uses);
                let c = self.source(c, 1, &mut uses);
                let instr = Instr::ternary(MOp::Imadd, dest(), x, y, c).set(Number::Shift, shift);
                self.push(instr, dst, uses);
                return;
            }
        }
        let (a, b) = if self.shifted(b).is_none() && self.shifted(a).is_some() { (b, a) } else { (a, b) };
        self.add_shifted(MOp::Iadd, dst, a, b);
    }

    fn add_shifted(&mut self, op: MOp, dst: VReg, a: Value, b: Value) {
        let (b, shift) = self.shifted(b).unwrap_or((b, 0));
        let mut uses = Uses::new();
        let a = self.source(a, 1, &mut uses);
        let b = self.source(b, 1, &mut uses);
        self.push(Instr::binary(op, dest(), a, b).set(Number::Shift, shift), dst, uses);
    }

    /// Count of a shift: below 32.
    fn count(&mut self, n: Value, uses: &mut Uses) -> Operand {
        if let Some(c) = self.constant(n) {
            return Operand::imm((c & 31) as i32);
        }
        // Counts that are masked already are masked as they should be.
        let masked = |d: &InstData| d.op == Op::And && d.args.iter().any(|&a| self.constant(a) == Some(31));
        if self.def(n).is_some_and(masked) {
            return self.source(n, 1, uses);
        }
        let low = self.fresh();
        self.bitop_constant(AND, low, n, 31);
        self.used(low, 1, uses)
    }

    fn shift(&mut self, op: Op, dst: VReg, a: Value, n: Value) {
        let mut uses = Uses::new();
        let count = self.count(n, &mut uses);
        if let (Op::Shl, Some(c)) = (op, self.constant(n).map(|c| c & 31))
            && (1..=MAX_SHIFT).contains(&c)
        {
            let a = self.source(a, 1, &mut uses);
            let instr = Instr::binary(MOp::Iadd, dest(), Operand::imm(0), a).set(Number::Shift, c);
            self.push(instr, dst, uses);
            return;
        }
        let a = self.source(a, 1, &mut uses);
        let instr = match op {
            Op::Shl => Instr::ternary(MOp::Bfi, dest(), Operand::imm(0), a, count),
            Op::Lshr => Instr::ternary(MOp::Bfeil, dest(), Operand::imm(0), a, count),
            _ => Instr::binary(MOp::Asr, dest(), a, count),
        };
        self.push(instr, dst, uses);
    }

    /// A bit field: `(x >> c) & ones`.
    fn field(&mut self, dst: VReg, d: &InstData) -> bool {
        let Some(mask) = self.constant(d.args[1]) else { return false };
        let Some(inner) = self.only(d.args[0], Op::Lshr) else { return false };
        let Some(c) = self.constant(inner.args[1]).map(|c| c & 31) else { return false };
        if mask == 0 || !mask.wrapping_add(1).is_power_of_two() {
            return false;
        }
        let x = inner.args[0];
        let mut uses = Uses::new();
        let x = self.source(x, 1, &mut uses);
        let instr = Instr::ternary(MOp::Bfeil, dest(), Operand::imm(0), x, Operand::imm(c as i32))
            .set(Number::Width, mask.trailing_ones() & 31);
        self.push(instr, dst, uses);
        true
    }

    /// High half of a product: the upper word of all 64 bits.
    fn high_product(&mut self, dst: VReg, d: &InstData, signed: bool) {
        let mut uses = Uses::new();
        let mut a = self.source(d.args[0], 2, &mut uses);
        let mut b = self.source(d.args[1], 2, &mut uses);
        if signed {
            (a, b) = (a.signed(), b.signed());
        }
        let low = self.fresh();
        let pair = place(0, Size::B64, false);
        let instr = Instr::ternary(MOp::Imadd, pair, a, b, Operand::imm(0));
        self.push_as(instr, smallvec![low, dst], uses, 0, smallvec![(0, 2, 2)]);
    }

    /// Smaller or larger of two floats: NaN loses, -0 is smaller than +0, denormals are zeros.
    fn extremum(&mut self, dst: VReg, d: &InstData, min: bool) {
        let (a, b) = (d.args[0], d.args[1]);
        let never_zero = |v: Value| self.constant(v).is_some_and(|c| f32::from_bits(c).is_normal());
        let equal = if never_zero(a) || never_zero(b) {
            None
        } else {
            // Of equal ones the signs decide, which only zeros differ in.
            let both = self.fresh();
            self.bitop(if min { OR } else { AND }, both, a, b);
            let last = self.fresh();
            let cmp = Cmp { float: true, condition: FEQ, invert: false, a, b: Some(b) };
            self.choose(last, cmp, |s, uses| (s.used(both, 1, uses), s.source(b, 1, uses)));
            Some(last)
        };
        let raw = self.fresh();
        let condition = if min { FLTN } else { FGTN };
        let cmp = Cmp { float: true, condition, invert: false, a, b: Some(b) };
        self.choose(raw, cmp, |s, uses| {
            let x = s.source(a, 1, uses);
            let y = match equal {
                Some(v) => s.used(v, 1, uses),
                None => s.source(b, 1, uses),
            };
            (x, y)
        });
        // The select copies bits; an addition of -0 makes zeros of denormals and one NaN of all.
        let mut uses = Uses::new();
        let raw = self.used(raw, 1, &mut uses);
        let instr = Instr::binary(MOp::Fadd32, dest(), raw, Operand::float(NEGATIVE_ZERO));
        self.push(instr, dst, uses);
    }

    pub(super) fn inst(&mut self, i: Inst) {
        let f = self.f;
        let d = &f.insts[i];
        match d.op {
            Op::Load => return self.load(i),
            Op::Store => return self.store(i),
            Op::Atomic => return self.atomic(i),
            Op::Barrier | Op::Fence => return self.barrier(d),
            _ => {}
        }
        let Some(&r) = d.results.first() else {
            return self.bug(format!("`{}` without a result", d.op.name()));
        };
        if self.is_pair(r) {
            return self.pointer(i, r);
        }
        let Some(dst) = self.regs[r] else { return };
        let a = |n: usize| d.args.get(n).copied().unwrap_or(r);
        match d.op {
            Op::Iadd => self.sum(dst, a(0), a(1)),
            Op::Isub => self.add_shifted(MOp::Isub, dst, a(0), a(1)),
            Op::Ineg => {
                let mut uses = Uses::new();
                let x = self.source(a(0), 1, &mut uses);
                self.push(Instr::binary(MOp::Isub, dest(), Operand::imm(0), x), dst, uses);
            }
            Op::Imul => {
                let mut uses = Uses::new();
                let x = self.source(a(0), 1, &mut uses);
                let y = self.source(a(1), 1, &mut uses);
                self.push(Instr::ternary(MOp::Imadd, dest(), x, y, Operand::imm(0)), dst, uses);
            }
            Op::Umulhi => self.high_product(dst, d, false),
            Op::Smulhi => self.high_product(dst, d, true),
            Op::Shl | Op::Lshr | Op::Ashr => self.shift(d.op, dst, a(0), a(1)),
            Op::And if d.ty == Type::I32 && self.field(dst, d) => {}
            Op::And => match self.only(a(1), Op::Not).map(|not| not.args[0]) {
                Some(b) if d.ty == Type::I32 => self.bitop(AND_NOT, dst, a(0), b),
                _ => self.bitop(AND, dst, a(0), a(1)),
            },
            Op::Or => self.bitop(OR, dst, a(0), a(1)),
            Op::Xor => self.bitop(XOR, dst, a(0), a(1)),
            Op::Not if self.is_bool(r) => self.bitop_constant(XOR, dst, a(0), 1),
            Op::Not => self.bitop_constant(NOT_TABLE, dst, a(0), 0),
            Op::Smin | Op::Smax | Op::Umin | Op::Umax => {
                let condition = match d.op {
                    Op::Smin => SLT,
                    Op::Smax => SGT,
                    Op::Umin => ULT,
                    _ => UGT,
                };
                let cmp = Cmp { float: false, condition, invert: false, a: a(0), b: Some(a(1)) };
                self.choose(dst, cmp, |s, uses| (s.source(a(0), 1, uses), s.source(a(1), 1, uses)));
            }
            Op::Popcount => self.unary(MOp::Popcount, dst, a(0)),
            Op::Bitreverse => self.unary(MOp::Bitrev, dst, a(0)),
            Op::FindUmsb => self.unary(MOp::Ffs, dst, a(0)),
            Op::Clz => {
                // 31 - (-1) for 0.
                let highest = self.fresh();
                self.unary(MOp::Ffs, highest, a(0));
                let mut uses = Uses::new();
                let highest = self.used(highest, 1, &mut uses);
                self.push(Instr::binary(MOp::Isub, dest(), Operand::imm(31), highest), dst, uses);
            }
            Op::Ieq
            | Op::Ine
            | Op::Slt
            | Op::Sle
            | Op::Ult
            | Op::Ule
            | Op::Feq
            | Op::Fne
            | Op::Flt
            | Op::Fle => {
                let cmp = self.comparison(r);
                self.choose(dst, cmp, |_, _| (Operand::imm(1), Operand::imm(0)));
            }
            Op::Select => {
                let cmp = self.comparison(a(0));
                self.choose(dst, cmp, |s, uses| (s.source(a(1), 1, uses), s.source(a(2), 1, uses)));
            }
            Op::Fadd | Op::Fsub => {
                let mut uses = Uses::new();
                let x = self.float(a(0), 1, &mut uses);
                let y = self.float(a(1), 1, &mut uses);
                let y = if d.op == Op::Fsub { y.neg() } else { y };
                self.push(Instr::binary(MOp::Fadd32, dest(), x, y), dst, uses);
            }
            Op::Fmul => {
                // The sign of a product that is zero is not known of `fmul`; adding -0 keeps it (reference section 4.3).
                let mut uses = Uses::new();
                let x = self.float(a(0), 1, &mut uses);
                let y = self.float(a(1), 1, &mut uses);
                let zero = Operand::float(NEGATIVE_ZERO);
                self.push(Instr::ternary(MOp::Fmadd32, dest(), x, y, zero), dst, uses);
            }
            Op::Fneg => self.bitop_constant(XOR, dst, a(0), 1 << 31),
            Op::Fabs => self.bitop_constant(AND, dst, a(0), u32::MAX >> 1),
            Op::Fmin => self.extremum(dst, d, true),
            Op::Fmax => self.extremum(dst, d, false),
            Op::Ffloor => self.float_unary(MOp::Floor, dst, a(0)),
            Op::Fceil => self.float_unary(MOp::Ceil, dst, a(0)),
            Op::Ftrunc => self.float_unary(MOp::Trunc, dst, a(0)),
            Op::Fround => self.float_unary(MOp::Rint, dst, a(0)),
            Op::RcpApprox => self.float_unary(MOp::Rcp, dst, a(0)),
            Op::RsqrtApprox => self.float_unary(MOp::Rsqrt, dst, a(0)),
            Op::Exp2Approx => self.float_unary(MOp::Exp2, dst, a(0)),
            Op::Log2Approx => self.float_unary(MOp::Log2, dst, a(0)),
            Op::Ftosi => self.convert(FLOAT_TO_SIGNED, TO_ZERO, dst, a(0)),
            Op::Ftoui => self.convert(FLOAT_TO_UNSIGNED, TO_ZERO, dst, a(0)),
            Op::Sitof => self.convert(SIGNED_TO_FLOAT, TO_NEAREST, dst, a(0)),
            Op::Uitof => self.convert(UNSIGNED_TO_FLOAT, TO_NEAREST, dst, a(0)),
            Op::PackHalf => self.pack_half(dst, a(0), a(1)),
            Op::UnpackHalfLo | Op::UnpackHalfHi => {
                let mut uses = Uses::new();
                let x = self.float(r, 1, &mut uses);
                let instr = Instr::binary(MOp::Fadd32, dest(), x, Operand::float(NEGATIVE_ZERO));
                self.push(instr, dst, uses);
            }
            Op::Builtin => {
                let instr = self.builtin(d.imm);
                self.push(instr, dst, Uses::new());
            }
            // Half of a pointer, or a word that becomes one.
            Op::Bitcast => {
                let mut uses = Uses::new();
                let x = self.source(a(0), 1, &mut uses);
                self.push(Instr::mov(dest(), x), dst, uses);
            }
            Op::Lea | Op::VarAddr => self.local_pointer(i, dst),
            // Names, and what is made where it is used.
            Op::Const | Op::Undef | Op::Uniform | Op::Zext | Op::Trunc => {
                self.bug(format!("`{}` of {} got a register", d.op.name(), d.ty));
            }
            op => self.bug(format!("`{}` of {} is not in lowered form", op.name(), d.ty)),
        }
    }

    /// Each half is a sum of its own, rounded once more on the way into a 16-bit register.
    fn pack_half(&mut self, dst: VReg, low: Value, high: Value) {
        let zero = Operand::float(NEGATIVE_ZERO);
        let mut uses = Uses::new();
        let x = self.float(low, 1, &mut uses);
        let y = self.float(high, 1, &mut uses);
        let half = |x, upper| Instr::binary(MOp::Fadd32, place(0, Size::B16, upper), x, zero);
        self.push_halves([half(x, false), half(y, true)], dst, uses);
    }

    pub(super) fn barrier(&mut self, d: &InstData) {
        let Imm::Barrier(imm) = d.imm else { return self.bug("a barrier without its immediate") };
        if imm.storage {
            // Reference section 10: device memory.
            let fence =
                Instr::new(MOp::MemoryBarrier).set(Number::U1, 1).set(Number::U2, 2).set(Number::U3, 9);
            self.push_as(fence, smallvec![], smallvec![], 0, smallvec![]);
        }
        if d.op == Op::Barrier {
            self.uses_barrier = true;
            self.push_as(Instr::new(MOp::ThreadgroupBarrier), smallvec![], smallvec![], 0, smallvec![]);
        }
    }
}
