//! Building the lowered function: instructions of the lowered form only, folded a little on the way.
//!
//! Lowering multiplies instructions, so the two cheapest kinds of clean-up are done while it emits: constants are
//! folded and neutral operands dropped. Alongside, every new value gets the facts that the choice of instructions
//! needs ([`Known`]): which bits are certainly 0 or 1, and how many upper bits repeat the sign. They are computed
//! forward from the operands, in the order of emission, so they cost one small computation per instruction; block
//! parameters join what the forward edges bring, those of loop headers know nothing.
//!
//! What a program computes once, before everything else ([`Emit::once`]), goes into a block of its own that becomes the start
//! of the first one. The target says what such values are called.
//!
//! Left out: anything that looks further than the operands of one instruction (value numbering, algebra); the
//! clean-up passes of `kempe-opt` run afterwards.

use super::Has;
use kempe_ir::{
    Block, Builtin, Entity, Flags, Function, Imm, Inst, InstData, Loc, Op, Table, Target, Term, Type,
    UniformWord, Value,
};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::hash::Hash;

/// What is certain about an I32 value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// Bits that are 0.
    pub zeros: u32,
    /// Bits that are 1.
    pub ones: u32,
    /// How many of the upper bits are equal to the topmost one, at least 1.
    pub signs: u8,
}

impl Known {
    pub const NOTHING: Known = Known { zeros: 0, ones: 0, signs: 1 };

    fn constant(v: u32) -> Known {
        Known { zeros: !v, ones: v, signs: v.leading_zeros().max(v.leading_ones()) as u8 }
    }

    /// Nothing but "below 2^bits".
    pub fn below(bits: u32) -> Known {
        let zeros = if bits >= 32 { 0 } else { u32::MAX << bits };
        Known { zeros, ones: 0, signs: 1 }.settle()
    }

    /// Derives the number of sign bits that the known bits imply.
    fn settle(mut self) -> Known {
        let implied = self.zeros.leading_ones().max(self.ones.leading_ones()) as u8;
        self.signs = self.signs.max(implied).max(1);
        self
    }

    /// What holds for either.
    pub fn join(self, o: Known) -> Known {
        Known { zeros: self.zeros & o.zeros, ones: self.ones & o.ones, signs: self.signs.min(o.signs) }
            .settle()
    }

    /// The value is less than 2^this.
    pub fn width(self) -> u32 {
        32 - self.zeros.leading_ones()
    }

    /// Number of lower bits that are certainly zero.
    fn trailing(self) -> u32 {
        self.zeros.trailing_ones()
    }
}

/// The function under construction, and where it stands. `K` names what is computed once.
pub struct Emit<K = ()> {
    pub func: Function,
    /// Instructions are appended here.
    pub block: Block,
    pub loc: Loc,
    known: Table<Value, Known>,
    /// Constants, uniforms and built-ins that the current block already holds.
    held: FxHashMap<(Type, Imm), Value>,
    /// Its instructions come before all others; see [`Emit::once`].
    prologue: Block,
    prologue_held: FxHashMap<(Type, Imm), Value>,
    /// Values of the prologue by what they are.
    once: FxHashMap<K, Value>,
    /// A product of 24 bits is cheaper than one of 32.
    umul24: bool,
    /// What is certain about a word of the driver or a built-in.
    given: fn(Imm) -> Known,
}

impl<K: Eq + Hash> Emit<K> {
    /// A value that is computed once, before everything else.
    pub fn once(&mut self, what: K, make: impl FnOnce(&mut Emit<K>) -> Value) -> Value {
        if let Some(&v) = self.once.get(&what) {
            return v;
        }
        let (block, loc) = (self.block, self.loc);
        let outer = self.block != self.prologue;
        if outer {
            std::mem::swap(&mut self.held, &mut self.prologue_held);
            self.block = self.prologue;
            self.loc = Loc(0);
        }
        let v = make(self);
        if outer {
            std::mem::swap(&mut self.held, &mut self.prologue_held);
            self.block = block;
            self.loc = loc;
        }
        self.once.insert(what, v);
        v
    }
}

impl<K> Emit<K> {
    pub fn new(has: &Has) -> Emit<K> {
        let mut func = Function::default();
        let prologue = func.add_block_detached();
        Emit {
            func,
            block: prologue,
            loc: Loc(0),
            known: Table::new(0, Known::NOTHING),
            held: FxHashMap::default(),
            prologue,
            prologue_held: FxHashMap::default(),
            once: FxHashMap::default(),
            umul24: has.umul24,
            given: has.given,
        }
    }

    /// Continues in another block.
    pub fn switch_to(&mut self, block: Block) {
        self.block = block;
        self.held.clear();
    }

    /// Appends a new block to the layout, without entering it.
    pub fn new_block(&mut self) -> Block {
        self.func.add_block_detached()
    }

    /// Moves the prologue to the start of the entry block.
    pub fn finish_prologue(&mut self, entry: Block) {
        let mut first = std::mem::take(&mut self.func.blocks[self.prologue].insts);
        first.append(&mut self.func.blocks[entry].insts);
        self.func.blocks[entry].insts = first;
    }

    /// Ends the current block.
    pub fn end(&mut self, term: Term) {
        self.func.blocks[self.block].term = term;
        self.func.blocks[self.block].term_loc = self.loc;
    }

    pub fn jump(&mut self, to: Block, args: &[Value]) {
        self.end(Term::Jump(Target { block: to, args: SmallVec::from_slice(args) }));
    }

    pub fn param(&mut self, block: Block, ty: Type) -> Value {
        self.func.add_param(block, ty)
    }

    pub fn known(&self, v: Value) -> Known {
        if v.index() < self.known.len() { self.known[v] } else { Known::NOTHING }
    }

    pub fn set_known(&mut self, v: Value, k: Known) {
        self.known.grow(v.index() + 1, Known::NOTHING);
        self.known[v] = k;
    }

    /// The constant behind an I32, F32 or bool value.
    pub fn value_of(&self, v: Value) -> Option<u32> {
        self.func.as_const(v).map(|c| c as u32)
    }

    /// Appends an instruction as it is.
    pub fn inst(
        &mut self,
        op: Op,
        ty: Type,
        flags: Flags,
        imm: Imm,
        args: &[Value],
        results: &[Type],
    ) -> Inst {
        let data = InstData {
            op,
            ty,
            flags,
            imm,
            args: SmallVec::from_slice(args),
            results: smallvec![],
            loc: self.loc,
        };
        let i = self.func.make_inst(data, results);
        self.func.blocks[self.block].insts.push(i);
        i
    }

    /// An instruction with one result.
    pub fn one(&mut self, op: Op, ty: Type, flags: Flags, imm: Imm, args: &[Value]) -> Value {
        let result = if op.is_compare() { Type::Bool } else { ty };
        let i = self.inst(op, ty, flags, imm, args, &[result]);
        self.func.insts[i].results[0]
    }

    /// An instruction without operands, once a block.
    pub fn leaf(&mut self, op: Op, ty: Type, imm: Imm) -> Value {
        if let Some(&v) = self.held.get(&(ty, imm)) {
            return v;
        }
        let v = self.one(op, ty, Flags::NONE, imm, &[]);
        self.held.insert((ty, imm), v);
        v
    }

    pub fn constant(&mut self, ty: Type, bits: u32) -> Value {
        let v = self.leaf(Op::Const, ty, Imm::Int(bits as u64));
        self.set_known(v, Known::constant(bits));
        v
    }

    pub fn i(&mut self, bits: u32) -> Value {
        self.constant(Type::I32, bits)
    }

    pub fn f(&mut self, value: f32) -> Value {
        self.constant(Type::F32, value.to_bits())
    }

    pub fn b(&mut self, value: bool) -> Value {
        self.constant(Type::Bool, value as u32)
    }

    pub fn undef(&mut self, ty: Type) -> Value {
        self.one(Op::Undef, ty, Flags::NONE, Imm::None, &[])
    }

    /// A word of the driver.
    pub fn uniform(&mut self, word: UniformWord) -> Value {
        self.given(Op::Uniform, Imm::Uniform(word))
    }

    /// A built-in of type i32.
    pub fn builtin(&mut self, b: Builtin) -> Value {
        self.given(Op::Builtin, Imm::Builtin(b))
    }

    fn given(&mut self, op: Op, imm: Imm) -> Value {
        let v = self.leaf(op, Type::I32, imm);
        let k = (self.given)(imm);
        if k != Known::NOTHING {
            self.set_known(v, k);
        }
        v
    }

    /// A pure operation with the flags of the source.
    pub fn flagged(&mut self, op: Op, ty: Type, flags: Flags, args: &[Value]) -> Value {
        let v = self.one(op, ty, flags, Imm::None, args);
        if ty == Type::I32 && !op.is_compare() {
            let k = self.result_known(op, args);
            if k != Known::NOTHING {
                self.set_known(v, k);
            }
        }
        v
    }

    fn pure(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        self.flagged(op, ty, Flags::NONE, args)
    }

    fn result_known(&self, op: Op, args: &[Value]) -> Known {
        let k = |n: usize| self.known(args[n]);
        let count = |n: usize| self.value_of(args[n]).map(|c| c & 31);
        match op {
            Op::And => {
                let (a, b) = (k(0), k(1));
                Known { zeros: a.zeros | b.zeros, ones: a.ones & b.ones, signs: a.signs.min(b.signs) }
                    .settle()
            }
            Op::Or => {
                let (a, b) = (k(0), k(1));
                Known { zeros: a.zeros & b.zeros, ones: a.ones | b.ones, signs: a.signs.min(b.signs) }
                    .settle()
            }
            Op::Xor => {
                let (a, b) = (k(0), k(1));
                let zeros = (a.zeros & b.zeros) | (a.ones & b.ones);
                let ones = (a.zeros & b.ones) | (a.ones & b.zeros);
                Known { zeros, ones, signs: a.signs.min(b.signs) }.settle()
            }
            Op::Not => {
                let a = k(0);
                Known { zeros: a.ones, ones: a.zeros, signs: a.signs }.settle()
            }
            Op::Shl => {
                let a = k(0);
                match count(1) {
                    Some(c) => {
                        let zeros = (a.zeros << c) | !(u32::MAX << c);
                        let signs = a.signs.saturating_sub(c as u8).max(1);
                        Known { zeros, ones: a.ones << c, signs }.settle()
                    }
                    None => Known { zeros: low_mask(a.trailing()), ones: 0, signs: 1 }.settle(),
                }
            }
            Op::Lshr => {
                let a = k(0);
                match count(1) {
                    Some(c) => {
                        let zeros = (a.zeros >> c) | !(u32::MAX >> c);
                        Known { zeros, ones: a.ones >> c, signs: 1 }.settle()
                    }
                    None => Known::below(a.width()),
                }
            }
            Op::Ashr => {
                let a = k(0);
                let c = count(1).unwrap_or(0);
                Known {
                    zeros: ((a.zeros as i32) >> c) as u32
                        & if count(1).is_some() { u32::MAX } else { 1 << 31 },
                    ones: ((a.ones as i32) >> c) as u32 & if count(1).is_some() { u32::MAX } else { 1 << 31 },
                    signs: (a.signs as u32 + c).min(32) as u8,
                }
                .settle()
            }
            Op::Iadd => {
                let (a, b) = (k(0), k(1));
                let zeros = low_mask(a.trailing().min(b.trailing()));
                let mut out = Known { zeros, ones: 0, signs: (a.signs.min(b.signs)).max(2) - 1 };
                let width = a.width().max(b.width()) + 1;
                if width < 32 {
                    out.zeros |= u32::MAX << width;
                }
                out.settle()
            }
            Op::Isub => {
                let (a, b) = (k(0), k(1));
                let zeros = low_mask(a.trailing().min(b.trailing()));
                Known { zeros, ones: 0, signs: (a.signs.min(b.signs)).max(2) - 1 }.settle()
            }
            Op::Imul | Op::Umul24 => {
                let (a, b) = (k(0), k(1));
                let mut zeros = low_mask((a.trailing() + b.trailing()).min(32));
                let width = if op == Op::Umul24 {
                    a.width().min(24) + b.width().min(24)
                } else {
                    a.width() + b.width()
                };
                if width < 32 {
                    zeros |= u32::MAX << width;
                }
                Known { zeros, ones: 0, signs: 1 }.settle()
            }
            Op::Umin => Known::below(k(0).width().min(k(1).width())),
            Op::Umax => Known::below(k(0).width().max(k(1).width())),
            Op::Smin | Op::Smax => {
                let (a, b) = (k(0), k(1));
                let zeros = if op == Op::Smax { (a.zeros | b.zeros) & (1 << 31) } else { 0 };
                a.join(b).also(zeros)
            }
            Op::Select => k(1).join(k(2)),
            Op::Clz => Known::below(6),
            _ => Known::NOTHING,
        }
    }

    // Integer operations. All are I32.

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i(x.wrapping_add(y)),
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.pure(Op::Iadd, Type::I32, &[a, b]),
        }
    }

    pub fn add_c(&mut self, a: Value, c: u32) -> Value {
        let c = self.i(c);
        self.add(a, c)
    }

    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i(x.wrapping_sub(y)),
            (Some(0), _) => self.pure(Op::Ineg, Type::I32, &[b]),
            (_, Some(0)) => a,
            _ => self.pure(Op::Isub, Type::I32, &[a, b]),
        }
    }

    pub fn neg(&mut self, a: Value) -> Value {
        let zero = self.i(0);
        self.sub(zero, a)
    }

    /// The low 32 bits of a product by the cheapest operation that gives them: a shift for powers of two, one
    /// 24-bit multiply where both operands certainly fit, else the 32-bit multiply.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.mul_flagged(a, b, Flags::NONE)
    }

    pub fn mul_flagged(&mut self, a: Value, b: Value, flags: Flags) -> Value {
        let (a, b) = if self.value_of(a).is_some() { (b, a) } else { (a, b) };
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => return self.i(x.wrapping_mul(y)),
            (_, Some(0)) => return b,
            (_, Some(1)) => return a,
            (_, Some(u32::MAX)) => return self.neg(a),
            (_, Some(c)) if c.is_power_of_two() => return self.shl_c(a, c.trailing_zeros()),
            _ => {}
        }
        if self.umul24 && self.known(a).width() <= 24 && self.known(b).width() <= 24 {
            self.pure(Op::Umul24, Type::I32, &[a, b])
        } else {
            self.flagged(Op::Imul, Type::I32, flags, &[a, b])
        }
    }

    pub fn mul_c(&mut self, a: Value, c: u32) -> Value {
        let c = self.i(c);
        self.mul(a, c)
    }

    pub fn umul24(&mut self, a: Value, b: Value) -> Value {
        if !self.umul24 {
            let (a, b) = (self.and_c(a, 0xff_ffff), self.and_c(b, 0xff_ffff));
            return self.mul(a, b);
        }
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i((x & 0xff_ffff).wrapping_mul(y & 0xff_ffff)),
            _ => self.pure(Op::Umul24, Type::I32, &[a, b]),
        }
    }

    pub fn and(&mut self, a: Value, b: Value) -> Value {
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i(x & y),
            (Some(0), _) | (_, Some(u32::MAX)) => a,
            (_, Some(0)) | (Some(u32::MAX), _) => b,
            // A mask that takes away only bits that are zero anyway.
            (_, Some(m)) if self.known(a).zeros | m == u32::MAX => a,
            (Some(m), _) if self.known(b).zeros | m == u32::MAX => b,
            _ if a == b => a,
            _ => self.pure(Op::And, Type::I32, &[a, b]),
        }
    }

    pub fn and_c(&mut self, a: Value, mask: u32) -> Value {
        let c = self.i(mask);
        self.and(a, c)
    }

    pub fn or(&mut self, a: Value, b: Value) -> Value {
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i(x | y),
            (Some(0), _) | (_, Some(u32::MAX)) => b,
            (_, Some(0)) | (Some(u32::MAX), _) => a,
            _ if a == b => a,
            _ => self.pure(Op::Or, Type::I32, &[a, b]),
        }
    }

    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        match (self.value_of(a), self.value_of(b)) {
            (Some(x), Some(y)) => self.i(x ^ y),
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(u32::MAX), _) => self.not(b),
            (_, Some(u32::MAX)) => self.not(a),
            _ => self.pure(Op::Xor, Type::I32, &[a, b]),
        }
    }

    pub fn xor_c(&mut self, a: Value, c: u32) -> Value {
        let c = self.i(c);
        self.xor(a, c)
    }

    pub fn not(&mut self, a: Value) -> Value {
        match self.value_of(a) {
            Some(x) => self.i(!x),
            None => self.pure(Op::Not, Type::I32, &[a]),
        }
    }

    fn shift(&mut self, op: Op, a: Value, n: Value) -> Value {
        let count = self.value_of(n).map(|c| c & 31);
        match (self.value_of(a), count) {
            (_, Some(0)) => a,
            (Some(0), _) => a,
            (Some(x), Some(c)) => self.i(match op {
                Op::Shl => x << c,
                Op::Lshr => x >> c,
                _ => ((x as i32) >> c) as u32,
            }),
            // All bits that the count leaves are known to be zero.
            (None, Some(c)) if op == Op::Lshr && self.known(a).width() <= c => self.i(0),
            // Repeating shifts in one direction add up.
            (None, Some(c)) => {
                if let Some((inner, x, d)) = self.inner_shift(a)
                    && inner == op
                    && c + d < 32
                {
                    let n = self.i(c + d);
                    return self.pure(op, Type::I32, &[x, n]);
                }
                let n = self.i(c);
                self.pure(op, Type::I32, &[a, n])
            }
            _ => self.pure(op, Type::I32, &[a, n]),
        }
    }

    /// The value is a shift by a constant: operation, shifted value, count.
    pub fn inner_shift(&self, v: Value) -> Option<(Op, Value, u32)> {
        let inst = &self.func.insts[self.func.def_inst(v)?];
        match inst.op {
            Op::Shl | Op::Lshr | Op::Ashr => Some((inst.op, inst.args[0], self.value_of(inst.args[1])? & 31)),
            _ => None,
        }
    }

    pub fn shl(&mut self, a: Value, n: Value) -> Value {
        self.shift(Op::Shl, a, n)
    }

    pub fn lshr(&mut self, a: Value, n: Value) -> Value {
        self.shift(Op::Lshr, a, n)
    }

    pub fn ashr(&mut self, a: Value, n: Value) -> Value {
        self.shift(Op::Ashr, a, n)
    }

    /// Shift by a constant below 32.
    pub fn shl_c(&mut self, a: Value, n: u32) -> Value {
        let n = self.i(n);
        self.shl(a, n)
    }

    pub fn lshr_c(&mut self, a: Value, n: u32) -> Value {
        let n = self.i(n);
        self.lshr(a, n)
    }

    pub fn ashr_c(&mut self, a: Value, n: u32) -> Value {
        let n = self.i(n);
        self.ashr(a, n)
    }

    /// The lowest `bits` bits, the others zero.
    pub fn zext(&mut self, a: Value, bits: u32) -> Value {
        if bits >= 32 { a } else { self.and_c(a, low_mask(bits)) }
    }

    /// The lowest `bits` bits, the others like the topmost of them.
    pub fn sext(&mut self, a: Value, bits: u32) -> Value {
        if bits >= 32 || self.known(a).signs as u32 > 32 - bits {
            return a;
        }
        if self.known(a).zeros & (1 << (bits - 1)) != 0 {
            return self.zext(a, bits);
        }
        let up = self.shl_c(a, 32 - bits);
        self.ashr_c(up, 32 - bits)
    }

    pub fn clz(&mut self, a: Value) -> Value {
        match self.value_of(a) {
            Some(x) => self.i(x.leading_zeros()),
            None => self.pure(Op::Clz, Type::I32, &[a]),
        }
    }

    pub fn compare(&mut self, op: Op, ty: Type, a: Value, b: Value) -> Value {
        if let (Type::I32, Some(x), Some(y)) = (ty, self.value_of(a), self.value_of(b)) {
            return self.b(match op {
                Op::Ieq => x == y,
                Op::Ine => x != y,
                Op::Slt => (x as i32) < y as i32,
                Op::Sle => x as i32 <= y as i32,
                Op::Ult => x < y,
                _ => x <= y,
            });
        }
        self.pure(op, ty, &[a, b])
    }

    pub fn ieq(&mut self, a: Value, b: Value) -> Value {
        self.compare(Op::Ieq, Type::I32, a, b)
    }

    pub fn ult(&mut self, a: Value, b: Value) -> Value {
        self.compare(Op::Ult, Type::I32, a, b)
    }

    pub fn is_zero(&mut self, a: Value) -> Value {
        let zero = self.i(0);
        self.ieq(a, zero)
    }

    /// Picks between two values of one lowered type.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        match self.value_of(cond) {
            Some(0) => b,
            Some(_) => a,
            None => {
                let ty = self.func.ty(a);
                self.pure(Op::Select, ty, &[cond, a, b])
            }
        }
    }

    /// 1 or 0 for a bool.
    pub fn bit(&mut self, cond: Value) -> Value {
        let (one, zero) = (self.i(1), self.i(0));
        self.select(cond, one, zero)
    }

    pub fn bool_op(&mut self, op: Op, args: &[Value]) -> Value {
        match (op, args.first().map(|&a| self.value_of(a)), args.get(1).map(|&b| self.value_of(b))) {
            (Op::Not, Some(Some(c)), _) => self.b(c == 0),
            (Op::And, Some(Some(1)), _) | (Op::Or | Op::Xor, Some(Some(0)), _) => args[1],
            (Op::And, _, Some(Some(1))) | (Op::Or | Op::Xor, _, Some(Some(0))) => args[0],
            (Op::And, Some(Some(0)), _) | (Op::Or, Some(Some(1)), _) => args[0],
            (Op::And, _, Some(Some(0))) | (Op::Or, _, Some(Some(1))) => args[1],
            (Op::Xor, Some(Some(1)), _) => self.bool_op(Op::Not, &[args[1]]),
            (Op::Xor, _, Some(Some(1))) => self.bool_op(Op::Not, &[args[0]]),
            _ => self.pure(op, Type::Bool, args),
        }
    }

    // Float operations. All are F32; nothing is folded (that is left to the folder, which has the exact model).

    pub fn float(&mut self, op: Op, args: &[Value]) -> Value {
        self.pure(op, Type::F32, args)
    }

    /// An operation with an i32 result.
    pub fn int(&mut self, op: Op, args: &[Value]) -> Value {
        self.pure(op, Type::I32, args)
    }

    pub fn fadd(&mut self, a: Value, b: Value) -> Value {
        self.float(Op::Fadd, &[a, b])
    }

    pub fn fsub(&mut self, a: Value, b: Value) -> Value {
        self.float(Op::Fsub, &[a, b])
    }

    pub fn fmul(&mut self, a: Value, b: Value) -> Value {
        self.float(Op::Fmul, &[a, b])
    }

    /// Conversions that stay as they are: `ty` is the result type.
    pub fn convert(&mut self, op: Op, ty: Type, a: Value) -> Value {
        self.pure(op, ty, &[a])
    }

    pub fn bitcast(&mut self, ty: Type, a: Value) -> Value {
        if self.func.ty(a) == ty {
            return a;
        }
        if let Some(bits) = self.value_of(a) {
            return self.constant(ty, bits);
        }
        if let Some(i) = self.func.def_inst(a) {
            let inst = &self.func.insts[i];
            if inst.op == Op::Bitcast && self.func.ty(inst.args[0]) == ty {
                return inst.args[0];
            }
        }
        self.pure(Op::Bitcast, ty, &[a])
    }

    /// Two f32 to two halves in a word.
    pub fn pack_half(&mut self, lo: Value, hi: Value) -> Value {
        self.pure(Op::PackHalf, Type::I32, &[lo, hi])
    }
}

impl Known {
    fn also(mut self, zeros: u32) -> Known {
        self.zeros |= zeros;
        self.settle()
    }
}

/// The lowest `bits` bits set.
pub fn low_mask(bits: u32) -> u32 {
    if bits >= 32 { u32::MAX } else { (1 << bits) - 1 }
}
