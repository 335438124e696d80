//! Making instructions, and the parts of a double.

use kempe_ir::*;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// The sign of a double.
pub(super) const SIGN: u64 = 1 << 63;
/// The high words of infinity and of the canonical NaN; the low ones are 0.
pub(super) const INFINITY: u32 = 0x7ff0_0000;
pub(super) const NAN: u32 = 0x7ff8_0000;
/// Bits of the fraction in the high word.
pub(super) const FRACTION: u32 = 20;
/// Exponent of 1.
pub(super) const BIAS: u32 = 1023;

/// Appends to the blocks of a function whose layout is being made anew.
pub(super) struct Emit {
    pub func: Function,
    pub loc: Loc,
    block: Block,
    layout: Vec<Block>,
    /// Stand at the start of the entry.
    constants: Vec<Inst>,
    known: FxHashMap<(Type, u64), Value>,
}

impl Emit {
    pub fn new(func: Function) -> Emit {
        Emit {
            func,
            loc: Loc(0),
            block: Block(0),
            layout: Vec::new(),
            constants: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Goes on in the next block of the old layout.
    pub fn enter(&mut self, b: Block) {
        self.layout.push(b);
        self.block = b;
    }

    /// An instruction stays as it is.
    pub fn keep(&mut self, i: Inst) {
        self.func.blocks[self.block].insts.push(i);
    }

    /// The old block ends where its code has come to.
    pub fn leave(&mut self, b: Block, term: Term) {
        let (loc, hint) = (self.func.blocks[b].term_loc, self.func.blocks[b].branch_hint);
        if self.block != b {
            self.func.blocks[b].branch_hint = BranchHint::None;
        }
        let last = &mut self.func.blocks[self.block];
        (last.term, last.term_loc, last.branch_hint) = (term, loc, hint);
    }

    pub fn finish(mut self) -> Function {
        if let Some(&entry) = self.layout.first() {
            let insts = &mut self.func.blocks[entry].insts;
            let rest = std::mem::replace(insts, self.constants);
            insts.extend(rest);
        }
        self.func.layout = self.layout;
        self.func
    }

    fn make(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value]) -> (Inst, Value) {
        let result = if op.is_compare() || op == Op::VoteEq { Type::Bool } else { ty };
        let data = InstData::new(op, ty, imm, args, self.loc);
        let i = self.func.make_inst(data, &[result]);
        (i, self.func.insts[i].results[0])
    }

    pub fn op(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        let (i, v) = self.make(op, ty, Imm::None, args);
        self.keep(i);
        v
    }

    /// Without operands.
    pub fn op_imm(&mut self, op: Op, ty: Type, imm: Imm) -> Value {
        let (i, v) = self.make(op, ty, imm, &[]);
        self.keep(i);
        v
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        if let Some(&v) = self.known.get(&(ty, bits)) {
            return v;
        }
        let loc = std::mem::replace(&mut self.loc, Loc(0));
        let (i, v) = self.make(Op::Const, ty, Imm::Int(bits), &[]);
        self.loc = loc;
        self.constants.push(i);
        self.known.insert((ty, bits), v);
        v
    }

    pub fn c(&mut self, v: u32) -> Value {
        self.constant(Type::I32, v as u64)
    }

    /// The condition that always holds.
    pub fn truth(&mut self) -> Value {
        self.constant(Type::Bool, 1)
    }

    pub fn c64(&mut self, v: u64) -> Value {
        self.constant(Type::I64, v)
    }

    // Words.

    pub fn int(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.op(op, Type::I32, &[a, b])
    }

    pub fn int_c(&mut self, op: Op, a: Value, c: u32) -> Value {
        let c = self.c(c);
        self.int(op, a, c)
    }

    /// `c - a`.
    pub fn of_c(&mut self, c: u32, a: Value) -> Value {
        let c = self.c(c);
        self.int(Op::Isub, c, a)
    }

    pub fn both(&mut self, a: Value, b: Value) -> Value {
        self.op(Op::And, Type::Bool, &[a, b])
    }

    pub fn either(&mut self, a: Value, b: Value) -> Value {
        self.op(Op::Or, Type::Bool, &[a, b])
    }

    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.func.ty(a);
        self.op(Op::Select, ty, &[cond, a, b])
    }

    /// 1 or 0.
    pub fn bit(&mut self, cond: Value) -> Value {
        let (one, zero) = (self.c(1), self.c(0));
        self.select(cond, one, zero)
    }

    // Pairs of words, as i64.

    pub fn wide(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.op(op, Type::I64, &[a, b])
    }

    /// A shift of 64 bits by a word.
    pub fn shift(&mut self, op: Op, a: Value, n: Value) -> Value {
        self.op(op, Type::I64, &[a, n])
    }

    pub fn shift_c(&mut self, op: Op, a: Value, n: u32) -> Value {
        let n = self.c(n);
        self.shift(op, a, n)
    }

    pub fn lo(&mut self, x: Value) -> Value {
        self.op(Op::Trunc, Type::I32, &[x])
    }

    pub fn hi(&mut self, x: Value) -> Value {
        let high = self.shift_c(Op::Lshr, x, 32);
        self.lo(high)
    }

    pub fn pair(&mut self, lo: Value, hi: Value) -> Value {
        let (lo, hi) = (self.zext(lo), self.zext(hi));
        let hi = self.shift_c(Op::Shl, hi, 32);
        self.wide(Op::Or, lo, hi)
    }

    pub fn zext(&mut self, word: Value) -> Value {
        self.op(Op::Zext, Type::I64, &[word])
    }

    /// Leading zeros of 64 bits, as a word.
    pub fn clz64(&mut self, x: Value) -> Value {
        let n = self.op(Op::Clz, Type::I64, &[x]);
        self.lo(n)
    }

    /// To the right by 0 to 63; the lowest bit of the result is set when a one was lost ("jamming": a rounding that comes later
    /// sees that there was more).
    pub fn shift_jam(&mut self, x: Value, n: Value) -> Value {
        let kept = self.shift(Op::Lshr, x, n);
        let back = self.shift(Op::Shl, kept, n);
        let lost = self.op(Op::Ine, Type::I64, &[back, x]);
        self.jam(kept, lost)
    }

    /// `x` with its lowest bit set if `lost`.
    pub fn jam(&mut self, x: Value, lost: Value) -> Value {
        let bit = self.bit(lost);
        let bit = self.zext(bit);
        self.wide(Op::Or, x, bit)
    }

    // Parts of a double.

    pub fn magnitude(&mut self, x: Value) -> Value {
        let mask = self.c64(!SIGN);
        self.wide(Op::And, x, mask)
    }

    /// The sign, in the highest bit of a word.
    pub fn sign(&mut self, x: Value) -> Value {
        let hi = self.hi(x);
        self.int_c(Op::And, hi, 1 << 31)
    }

    /// The exponent as it stands in the bits.
    pub fn exponent(&mut self, x: Value) -> Value {
        let hi = self.hi(x);
        let e = self.int_c(Op::Lshr, hi, FRACTION);
        self.int_c(Op::And, e, 0x7ff)
    }

    /// The magnitude as one word, good for telling zero, numbers, infinity ([`INFINITY`]) and NaN (above) apart.
    pub fn kind(&mut self, x: Value) -> Value {
        let (lo, hi) = (self.lo(x), self.hi(x));
        let high = self.int_c(Op::And, hi, !(1 << 31));
        let low = self.int_c(Op::Umin, lo, 1);
        self.int(Op::Or, high, low)
    }

    pub fn is_nan_kind(&mut self, kind: Value) -> Value {
        let infinity = self.c(INFINITY);
        self.int(Op::Ult, infinity, kind)
    }

    /// Fraction with the leading one (if the exponent is not 0), in the lowest 53 bits; and the exponent, at least 1.
    pub fn mantissa(&mut self, x: Value) -> (Value, Value) {
        let e = self.exponent(x);
        let (lo, hi) = (self.lo(x), self.hi(x));
        let fraction = self.int_c(Op::And, hi, (1 << FRACTION) - 1);
        let leading = self.int_c(Op::Umin, e, 1);
        let leading = self.int_c(Op::Shl, leading, FRACTION);
        let high = self.int(Op::Or, fraction, leading);
        (self.pair(lo, high), self.int_c(Op::Umax, e, 1))
    }

    /// The same with the highest one in bit 63, for denormals too: the number is `m * 2^(e - BIAS - 63)`. Of zero: anything.
    pub fn normal(&mut self, x: Value) -> (Value, Value) {
        let (m, e) = self.mantissa(x);
        let zeros = self.clz64(m);
        let e = self.int(Op::Isub, e, zeros);
        (self.shift(Op::Shl, m, zeros), self.int_c(Op::Iadd, e, 11))
    }

    /// Rounds and packs a magnitude, to infinity if it is too large: `m * 2^(e + 1 - BIAS - 63)` where the highest one of `m` is
    /// in bit 63 or `e` is 0. `e` is at least 0 and below 2^12 - 1. Low word, high word.
    pub fn pack(&mut self, e: Value, m: Value) -> (Value, Value) {
        let kept = self.shift_c(Op::Lshr, m, 11);
        let rest = self.lo(m);
        let rest = self.int_c(Op::And, rest, 0x7ff);
        let (lo, hi) = (self.lo(kept), self.hi(kept));
        let odd = self.int_c(Op::And, lo, 1);
        let rest = self.int(Op::Iadd, rest, odd);
        let half = self.c(0x400);
        let up = self.int(Op::Ult, half, rest);
        let up = self.bit(up);
        // The leading one of `m` makes the exponent one more, and so does a carry out of the fraction.
        let e = self.int_c(Op::Shl, e, FRACTION);
        let hi = self.int(Op::Iadd, hi, e);
        let (bits, up) = (self.pair(lo, hi), self.zext(up));
        let bits = self.wide(Op::Iadd, bits, up);
        let (lo, hi) = (self.lo(bits), self.hi(bits));
        let infinity = self.c(INFINITY);
        let fits = self.int(Op::Ult, hi, infinity);
        let zero = self.c(0);
        (self.select(fits, lo, zero), self.int(Op::Umin, hi, infinity))
    }

    /// [`Emit::pack`] for any exponent and the highest one of `m` in bit 62 or 63: `m * 2^(e + 1 - BIAS - 63)`.
    pub fn pack_any(&mut self, e: Value, m: Value) -> (Value, Value) {
        let hi = self.hi(m);
        let top = self.int_c(Op::Lshr, hi, 31);
        let up = self.of_c(1, top);
        let m = self.shift(Op::Shl, m, up);
        let e = self.int(Op::Isub, e, up);
        // Below the smallest normal number: as many bits as are left.
        let below = self.of_c(0, e);
        let below = self.int_c(Op::Smax, below, 0);
        let below = self.int_c(Op::Smin, below, 63);
        let m = self.shift_jam(m, below);
        let e = self.int_c(Op::Smax, e, 0);
        self.pack(e, m)
    }

    /// A loop that runs `steps` times: parameters from `init` on, each step gives their next values.
    pub fn repeat(
        &mut self,
        steps: u32,
        init: &[Value],
        step: impl FnOnce(&mut Emit, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let header = self.func.add_block_detached();
        let behind = self.func.add_block_detached();
        let first = self.c(steps);
        let mut args: SmallVec<[Value; 4]> = smallvec![first];
        args.extend_from_slice(init);
        let types: Vec<Type> = args.iter().map(|&v| self.func.ty(v)).collect();
        let params: Vec<Value> = types.iter().map(|&ty| self.func.add_param(header, ty)).collect();
        self.end(Term::Jump(Target { block: header, args }));
        self.enter(header);
        self.func.blocks[header].loop_hint = LoopHint::DontUnroll;
        let next = step(self, &params[1..]);
        let left = self.int_c(Op::Iadd, params[0], u32::MAX);
        let zero = self.c(0);
        let more = self.int(Op::Ine, left, zero);
        let mut args: SmallVec<[Value; 4]> = smallvec![left];
        args.extend_from_slice(&next);
        let again = Target { block: header, args };
        self.end(Term::Branch { cond: more, then: again, els: Target { block: behind, args: smallvec![] } });
        self.enter(behind);
        next
    }

    fn end(&mut self, term: Term) {
        let b = &mut self.func.blocks[self.block];
        (b.term, b.term_loc) = (term, self.loc);
    }
}
