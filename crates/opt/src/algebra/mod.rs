//! Algebraic simplification: one sweep in layout order that rewrites each instruction until no rule applies.
//!
//! The rules stand by subject in [`int`], [`float`], [`logic`] (comparisons, selections, conversions) and
//! [`address`] (`lea`); [`known`] says which bits are zero. Operands were simplified before their users (layout
//! order), so a rule looks one or two operations deep and never further: the sweep is linear. Every instruction is
//! rewritten at most [`FUEL`] times and a rule may build on new instructions at most [`DEPTH`] deep, so a rule that
//! undoes another one costs time, not termination.
//!
//! The rules for floats hold bit for bit, zeros' signs and NaNs included, unless the instruction carries
//! `Flags::FAST`; those that reassociate respect `NO_CONTRACTION`.

pub mod address;
pub mod float;
pub mod int;
pub mod known;
pub mod logic;

use crate::fold;
use crate::pipeline::Options;
use crate::subst::Subst;
use kempe_ir::*;
use known::Limits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Rewrites per instruction. Chains of rules seen on real modules end after 4.
const FUEL: u32 = 12;
/// Nesting of instructions made by rules.
const DEPTH: u32 = 4;

/// What a rule wants.
pub enum Act {
    /// Nothing.
    Keep,
    /// The result is this value.
    Value(Value),
    /// The result is this constant.
    Const(u64),
    /// The instruction becomes this operation (of type, on operands, no immediate).
    Op(Op, Type, SmallVec<[Value; 3]>),
    /// The instruction becomes this `lea`.
    Lea(SmallVec<[Value; 3]>, LeaImm),
}

pub fn run(m: &mut Module, options: &Options) -> bool {
    Rules::sweep(m, options)
}

/// An instruction while rules look at it.
#[derive(Clone)]
pub struct View {
    pub op: Op,
    pub ty: Type,
    pub flags: Flags,
    pub imm: Imm,
    pub args: SmallVec<[Value; 3]>,
    pub result: Value,
}

pub struct Rules<'a> {
    pub f: &'a mut Function,
    limits: Limits,
    data: &'a [u8],
    out: Vec<Inst>,
    subst: Subst,
    /// Known zero bits by value.
    zeros: Vec<u64>,
    /// Number of uses by value, as it was before the sweep.
    uses: Vec<u32>,
    consts: FxHashMap<(Type, u64), Value>,
    loc: Loc,
    depth: u32,
    changed: bool,
}

impl<'a> Rules<'a> {
    fn sweep(m: &'a mut Module, options: &Options) -> bool {
        let Module { func: f, constant_data, workgroup_size, .. } = m;
        let uses = count_uses(f);
        let subst = Subst::new(f);
        let n = f.values.len();
        let mut r = Rules {
            f,
            limits: Limits { workgroup: *workgroup_size, groups: options.max_workgroups },
            data: constant_data,
            out: Vec::new(),
            subst,
            zeros: vec![0; n],
            uses,
            consts: FxHashMap::default(),
            loc: Loc(0),
            depth: 0,
            changed: false,
        };
        for at in 0..r.f.layout.len() {
            let b = r.f.layout[at];
            r.consts.clear();
            let old = std::mem::take(&mut r.f.blocks[b].insts);
            r.out = Vec::with_capacity(old.len() + old.len() / 4);
            for i in old {
                r.loc = r.f.insts[i].loc;
                r.inst(i);
            }
            r.f.blocks[b].insts = std::mem::take(&mut r.out);
        }
        let (mut subst, changed) = (r.subst, r.changed);
        subst.apply(&mut m.func);
        changed || !subst.is_empty()
    }

    /// Simplifies an instruction and appends what is left of it.
    fn inst(&mut self, i: Inst) {
        for _ in 0..FUEL {
            let d = &mut self.f.insts[i];
            for a in d.args.iter_mut() {
                *a = self.subst.get(*a);
            }
            match d.op.effect() {
                Effect::Pure | Effect::Constant => {}
                Effect::Read => {
                    self.load(i);
                    return;
                }
                _ => break,
            }
            if d.op == Op::Const {
                if let Imm::Int(bits) = d.imm {
                    let v = d.results[0];
                    self.consts.entry((d.ty, bits)).or_insert(v);
                }
                break;
            }
            if let Some(bits) = fold::fold_inst(self.f, &self.f.insts[i]) {
                fold::make_const(self.f, i, bits);
                self.changed = true;
                continue;
            }
            let d = &self.f.insts[i];
            let v = View {
                op: d.op,
                ty: d.ty,
                flags: d.flags,
                imm: d.imm,
                args: d.args.clone(),
                result: d.results[0],
            };
            match self.rule(&v) {
                Act::Keep => break,
                Act::Value(to) => {
                    self.subst.set(v.result, to);
                    return;
                }
                Act::Const(bits) => {
                    fold::make_const(self.f, i, bits);
                    self.changed = true;
                }
                Act::Op(op, ty, args) => {
                    let d = &mut self.f.insts[i];
                    // The no-wrap facts were about the old operation.
                    let keep = Flags::NO_CONTRACTION.0 | Flags::RELAXED.0 | Flags::FAST.0;
                    d.flags = Flags(d.flags.0 & keep);
                    (d.op, d.ty, d.args, d.imm) = (op, ty, args, Imm::None);
                    self.changed = true;
                }
                Act::Lea(args, imm) => {
                    let d = &mut self.f.insts[i];
                    (d.op, d.args, d.imm) = (Op::Lea, args, Imm::Lea(imm));
                    self.changed = true;
                }
            }
        }
        self.finish(i);
    }

    fn finish(&mut self, i: Inst) {
        let d = &self.f.insts[i];
        if let Some(&v) = d.results.first() {
            let zeros = &self.zeros;
            let z =
                known::known_zero(self.f, d, &self.limits, &|v| zeros.get(v.index()).copied().unwrap_or(0));
            if self.zeros.len() <= v.index() {
                self.zeros.resize(v.index() + 1, 0);
            }
            self.zeros[v.index()] = z;
        }
        self.out.push(i);
    }

    /// Loads of constant data whose address is known are constants.
    fn load(&mut self, i: Inst) {
        let d = &self.f.insts[i];
        if let Imm::Mem(mem) = d.imm
            && mem.space == Space::Constant
            && let Some(offset) = fold::constant_offset(self.f, d.args[0])
        {
            let (ty, results) = (d.ty, d.results.clone());
            let bits: Option<SmallVec<[u64; 4]>> = (0..results.len() as u32)
                .map(|k| fold::constant_bits(self.data, offset.wrapping_add(k * ty.bytes()), ty))
                .collect();
            if let Some(bits) = bits {
                for (v, bits) in results.into_iter().zip(bits) {
                    let c = self.konst(ty, bits);
                    self.subst.set(v, c);
                }
                return;
            }
        }
        self.out.push(i);
    }

    fn rule(&mut self, v: &View) -> Act {
        if v.op.is_commutative()
            && v.args.len() == 2
            && self.f.as_const(v.args[0]).is_some()
            && self.f.as_const(v.args[1]).is_none()
        {
            return Act::Op(v.op, v.ty, SmallVec::from_slice(&[v.args[1], v.args[0]]));
        }
        use Op::*;
        let act = match v.op {
            Iadd | Isub | Imul | Ineg | Smulhi | Umulhi | Sdiv | Udiv | Srem | Smod | Umod | Smin | Smax
            | Umin | Umax | And | Or | Xor | Not | Shl | Lshr | Ashr | Umul24 | BitInsert | BitExtractS
            | BitExtractU => int::rule(self, v),
            Fadd | Fsub | Fmul | Fdiv | Fma | Fneg | Fabs | Fmin | Fmax | Ffloor | Fceil | Ftrunc
            | Fround => float::rule(self, v),
            Ieq | Ine | Slt | Sle | Ult | Ule | Feq | Fne | Flt | Fle | Select | Trunc | Zext | Sext
            | Bitcast | Ftosi | Ftoui | Fconv => logic::rule(self, v),
            Lea => address::rule(self, v),
            _ => Act::Keep,
        };
        // A value all of whose bits are known.
        if let Act::Keep = act {
            let ty = self.f.ty(v.result);
            if (ty.is_int() || ty == Type::Bool) && !v.args.is_empty() {
                let d = InstData {
                    op: v.op,
                    ty: v.ty,
                    flags: v.flags,
                    imm: v.imm,
                    args: v.args.clone(),
                    results: SmallVec::from_elem(v.result, 1),
                    loc: self.loc,
                };
                if known::known_zero(self.f, &d, &self.limits, &|v| self.zero(v)) & ty.mask() == ty.mask() {
                    return Act::Const(0);
                }
            } else if let (Op::Builtin, Imm::Builtin(kempe_ir::Builtin::LocalInvocationId(k))) = (v.op, v.imm)
                && self.limits.workgroup.get(k as usize) == Some(&1)
            {
                return Act::Const(0);
            }
        }
        act
    }

    // What the rules use.

    /// Known zero bits.
    pub fn zero(&self, v: Value) -> u64 {
        self.zeros.get(v.index()).copied().unwrap_or(0)
    }

    /// The largest unsigned value that the known bits of an integer allow.
    pub fn max(&self, v: Value) -> u64 {
        known::max_of(self.zero(v), self.f.ty(v).mask())
    }

    /// An integer that is known not to be negative.
    pub fn non_negative(&self, v: Value) -> bool {
        self.zero(v) & known::sign(self.f.ty(v)) != 0
    }

    /// The instruction behind a value.
    pub fn def(&self, v: Value) -> Option<&InstData> {
        Some(&self.f.insts[self.f.def_inst(v)?])
    }

    /// The operands of a value that operation `op` computes.
    pub fn args(&self, v: Value, op: Op) -> Option<[Value; 2]> {
        let d = self.def(v)?;
        (d.op == op && d.args.len() == 2).then(|| [d.args[0], d.args[1]])
    }

    /// The operand of a value that operation `op` computes.
    pub fn arg(&self, v: Value, op: Op) -> Option<Value> {
        let d = self.def(v)?;
        (d.op == op && d.args.len() == 1).then(|| d.args[0])
    }

    /// `x op c`: the operand and the constant.
    pub fn with_const(&self, v: Value, op: Op) -> Option<(Value, u64)> {
        let [x, c] = self.args(v, op)?;
        Some((x, self.f.as_const(c)?))
    }

    pub fn as_const(&self, v: Value) -> Option<u64> {
        self.f.as_const(v)
    }

    pub fn ty(&self, v: Value) -> Type {
        self.f.ty(v)
    }

    /// The value had at most one use before the sweep.
    pub fn used_once(&self, v: Value) -> bool {
        self.uses.get(v.index()).is_none_or(|&n| n <= 1)
    }

    /// A constant.
    pub fn konst(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & ty.mask();
        if let Some(&v) = self.consts.get(&(ty, bits)) {
            return v;
        }
        let i = self.make(Op::Const, ty, Imm::Int(bits), &[], ty);
        self.finish(i);
        let v = self.f.insts[i].results[0];
        self.consts.insert((ty, bits), v);
        v
    }

    /// A new instruction, simplified where the nesting allows.
    pub fn op(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        let result = if op.is_compare() { Type::Bool } else { ty };
        self.new_inst(op, ty, Imm::None, args, result)
    }

    pub fn lea(&mut self, base: Value, index: Option<Value>, imm: LeaImm) -> Value {
        let mut args: SmallVec<[Value; 3]> = SmallVec::from_elem(base, 1);
        args.extend(index);
        let ty = self.f.ty(base);
        self.new_inst(Op::Lea, ty, Imm::Lea(imm), &args, ty)
    }

    fn new_inst(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value], result: Type) -> Value {
        let i = self.make(op, ty, imm, args, result);
        let v = self.f.insts[i].results[0];
        if self.depth < DEPTH {
            self.depth += 1;
            self.inst(i);
            self.depth -= 1;
        } else {
            self.finish(i);
        }
        self.subst.get(v)
    }

    fn make(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value], result: Type) -> Inst {
        let data = InstData::new(op, ty, imm, args, self.loc);
        self.f.make_inst(data, &[result])
    }
}

/// Number of uses of every value by instructions and edges in the layout.
pub fn count_uses(f: &Function) -> Vec<u32> {
    let mut uses = vec![0; f.values.len()];
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            for &a in &f.insts[i].args {
                uses[a.index()] += 1;
            }
        }
        let term = &f.blocks[b].term;
        if let Term::Branch { cond, .. } = term {
            uses[cond.index()] += 1;
        }
        for t in term.targets() {
            for &a in &t.args {
                uses[a.index()] += 1;
            }
        }
    }
    uses
}

/// Operand list of an [`Act::Op`].
pub fn to(op: Op, ty: Type, args: &[Value]) -> Act {
    Act::Op(op, ty, SmallVec::from_slice(args))
}
