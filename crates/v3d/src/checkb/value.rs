//! Symbolic values of V3D: expressions over machine values and uniform words, in a normal form.
//!
//! Values and per-lane predicates (flags) are both expressions. The normal form makes equal what the reference says is
//! equal: moves, operations that commute (6.1), exclusive ors that cancel, the same value on both sides of a minimum or
//! a bit operation, inverted conditions and writes under a condition that is overwritten. There is no constant folding:
//! both programs are built from the same operations.
//!
//! Which expressions are equal inside a block, and what places hold there, is the matter of [`contents`](super::contents).

use super::contents::Equal;
use crate::instr::{Op, Pack, Push, Unpack};
use kempe_ir::UniformWord;
use kempe_mir::UniformSource;
use kempe_mir::symbolic::{Node, Term, Terms};
use kempe_ra::{Block, Program, VReg};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// An expression. The first group are leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Value {
    /// Anything: what no program may depend on. Whatever a place holds is as good.
    Undefined,
    Const(u32),
    Word(UniformWord, u32),
    /// What arrives in a row at the start.
    Payload(u32),
    /// A block parameter, by virtual register.
    Param(u32, Block),
    /// A result word of a memory access, by instruction.
    Loaded(u32, u8, Block),
    /// Sample flags of the lanes: behind which write of a block, or at its start.
    Samples(u32, Block),
    /// Contents of a place of which nothing is known, numbered inside a block.
    Unknown(u32, Block),
    /// A word of the side band: address of the first, number.
    Side(Term, u8),
    /// The same where the address is a word of the driver and a constant.
    Read(UniformWord, u32),
    /// Operations, sources with their modifiers.
    Zero(Op),
    One(Op, Unpack, Term),
    Two(Op, [Unpack; 2], [Term; 2]),
    /// 32-bit product.
    Product([Term; 2]),
    /// A half put into an old value.
    Packed(Pack, Term, Term),
    /// `condition ? a : b`, lane by lane.
    Choice(Term, [Term; 2]),
    /// Turned by a count in a register: count, value (4.2; by a constant it is `rot`).
    Turned([Term; 2]),
    /// Lane 0 of each quad for its quad, or (`true`) lane 0 for all.
    Spread(bool, Term),
    // Predicates.
    IsZero(Term),
    IsNegative(Term),
    /// a < b, signed.
    Less([Term; 2]),
    /// a < b, unsigned.
    Below([Term; 2]),
    Carry([Term; 2]),
    /// What fcmp pushes.
    Float(Push, [Unpack; 2], [Term; 2]),
    Not(Term),
    Both([Term; 2]),
}

impl Node for Value {
    fn children(&self) -> SmallVec<[Term; 3]> {
        use Value::*;
        match *self {
            Undefined | Const(_) | Word(..) | Read(..) | Payload(_) | Param(..) | Loaded(..)
            | Samples(..) | Unknown(..) | Zero(_) => SmallVec::new(),
            Side(a, _) | One(_, _, a) | Spread(_, a) | IsZero(a) | IsNegative(a) | Not(a) => smallvec![a],
            Two(_, _, ab)
            | Product(ab)
            | Less(ab)
            | Below(ab)
            | Carry(ab)
            | Float(_, _, ab)
            | Both(ab)
            | Turned(ab) => SmallVec::from_slice(&ab),
            Packed(_, a, b) => smallvec![a, b],
            Choice(c, [a, b]) => smallvec![c, a, b],
        }
    }

    fn home(&self) -> Option<Block> {
        match *self {
            Value::Param(_, b) | Value::Loaded(_, _, b) | Value::Samples(_, b) | Value::Unknown(_, b) => {
                Some(b)
            }
            _ => None,
        }
    }
}

impl Value {
    /// The same of other parts, which are asked for in the order of the children.
    pub(super) fn with_children(self, of: &mut dyn FnMut(Term) -> Term) -> Value {
        use Value::*;
        match self {
            Undefined | Const(_) | Word(..) | Read(..) | Payload(_) | Param(..) | Loaded(..)
            | Samples(..) | Unknown(..) | Zero(_) => self,
            Side(a, n) => Side(of(a), n),
            Turned(ab) => Turned(two(of, ab)),
            Spread(all, a) => Spread(all, of(a)),
            One(op, u, a) => One(op, u, of(a)),
            Two(op, u, ab) => Two(op, u, two(of, ab)),
            Product(ab) => Product(two(of, ab)),
            Packed(p, a, b) => Packed(p, of(a), of(b)),
            Choice(c, ab) => Choice(of(c), two(of, ab)),
            IsZero(a) => IsZero(of(a)),
            IsNegative(a) => IsNegative(of(a)),
            Less(ab) => Less(two(of, ab)),
            Below(ab) => Below(two(of, ab)),
            Carry(ab) => Carry(two(of, ab)),
            Float(p, u, ab) => Float(p, u, two(of, ab)),
            Not(a) => Not(of(a)),
            Both(ab) => Both(two(of, ab)),
        }
    }
}

fn two(of: &mut dyn FnMut(Term) -> Term, [a, b]: [Term; 2]) -> [Term; 2] {
    [of(a), of(b)]
}

/// Choices by one condition inside of each other that a normal form looks through. Equal values can make a ring of them.
const MAX_CHOICES: usize = 8;

/// Parts that are looked at to see whether a value is the same in all lanes. Beyond them it is said not to be.
const MAX_UNIFORM: u32 = 256;

/// The expressions of one comparison.
pub(super) struct Values {
    pub terms: Terms<Value>,
    pub undefined: Term,
    /// Some expression of the machine code is made from an undefined value.
    pub(super) uses_undefined: bool,
    sealed: bool,
    /// Expressions made since [`Values::take_made`].
    made: Vec<Term>,
    /// Words of memory that the machine code reads through the side band where the driver's word is. As that memory never changes,
    /// they may be read again anywhere.
    reads: FxHashSet<(UniformWord, u32)>,
    /// By expression of the machine code: it may be undefined, as a whole or in part.
    loose: Vec<bool>,
    /// By expression: the choices of the machine code between it and an undefined value. It is as good as any of them.
    pub(super) completes: FxHashMap<Term, SmallVec<[Term; 2]>>,
    pub(super) equal: Equal,
}

impl Values {
    pub fn new(program: &Program) -> Values {
        let mut terms = Terms::new(program);
        let undefined = terms.intern(Value::Undefined);
        Values {
            terms,
            undefined,
            uses_undefined: false,
            sealed: false,
            made: Vec::new(),
            reads: FxHashSet::default(),
            loose: Vec::new(),
            completes: FxHashMap::default(),
            equal: Equal::default(),
        }
    }

    /// The machine code has been executed; `value`: its virtual registers. Loose is what is made of an undefined value, or
    /// of a parameter for which an edge brings something loose.
    pub fn seal(&mut self, program: &Program, value: &[Option<Term>]) {
        self.terms.seal();
        self.sealed = true;
        self.loose = vec![false; self.terms.len()];
        self.loose[self.undefined.0 as usize] = true;
        for t in (0..self.loose.len()).map(|t| Term(t as u32)) {
            if let Value::Choice(_, [a, b]) = self.terms.node(t)
                && (a == self.undefined) != (b == self.undefined)
            {
                self.completes.entry(if a == self.undefined { b } else { a }).or_default().push(t);
            }
        }
        let of = |v: VReg| value.get(v.0 as usize).copied().flatten();
        let mut arguments: Vec<(Term, Term)> = Vec::new();
        for e in program.blocks.iter().flat_map(|b| &b.succs) {
            let params = &program.blocks[e.to.0 as usize].params;
            arguments.extend(params.iter().zip(&e.args).filter_map(|(&p, &a)| Some((of(p)?, of(a)?))));
        }
        let mut again = true;
        while std::mem::take(&mut again) {
            for &(p, a) in &arguments {
                if self.is_loose(a) && !std::mem::replace(&mut self.loose[p.0 as usize], true) {
                    again = true;
                }
            }
            // Parts have smaller numbers.
            for t in 0..self.loose.len() {
                let parts = self.terms.node(Term(t as u32)).children();
                if !self.loose[t] && parts.iter().any(|&c| self.is_loose(c)) {
                    self.loose[t] = true;
                    again = true;
                }
            }
        }
    }

    /// An expression that may be undefined, as a whole or in part.
    pub fn is_loose(&self, t: Term) -> bool {
        match self.loose.get(t.0 as usize) {
            Some(&loose) => loose,
            None => self.terms.node(t).children().iter().any(|&c| self.is_loose(c)),
        }
    }

    /// The expression in its normal form.
    pub fn make(&mut self, v: Value) -> Term {
        let t = match self.simplify(v) {
            Ok(t) => t,
            Err(v) => {
                if !self.sealed && v.children().contains(&self.undefined) {
                    self.uses_undefined = true;
                }
                self.terms.intern(v)
            }
        };
        if !self.sealed {
            if let Value::Read(w, c) = self.terms.node(t) {
                self.reads.insert((w, c));
            }
            self.made.push(t);
        }
        t
    }

    /// Does the machine code read word `n` from this address anywhere, and may it be read again?
    pub fn may_read_again(&self, address: Term, n: u8) -> bool {
        self.facts(address).any(|a| match self.terms.node(a) {
            Value::Word(w, c) => self.reads.contains(&(w, c.wrapping_add(u32::from(n) * 4))),
            _ => false,
        })
    }

    /// Expressions of the machine code made since the last call, each once, what they are made of first.
    pub fn take_made(&mut self) -> Vec<Term> {
        self.made.sort_unstable();
        self.made.dedup();
        std::mem::take(&mut self.made)
    }

    /// The same, but only if it exists.
    pub fn find(&self, v: Value) -> Option<Term> {
        match self.simplify(v) {
            Ok(t) => Some(t),
            Err(v) => self.terms.find(&v),
        }
    }

    pub(super) fn is_not(&self, t: Term) -> Option<Term> {
        match self.terms.node(t) {
            Value::Not(inner) => Some(self.name(inner)),
            _ => None,
        }
    }

    /// An expression that is equal, or the form to be looked up. One step suffices: the parts are in normal form.
    fn simplify(&self, v: Value) -> Result<Term, Value> {
        use Value::*;
        let plain = [Unpack::None; 2];
        Err(match v {
            One(Op::Mov | Op::Fmov, Unpack::None, a) => return Ok(a),
            Side(a, k) => match self.terms.node(a) {
                Word(w, c) => Read(w, c.wrapping_add(u32::from(k) * 4)),
                _ => v,
            },
            // The same row in both sources.
            Two(Op::Or | Op::And | Op::Min | Op::Max | Op::Umin | Op::Umax, u, [a, b])
                if a == b && u == plain =>
            {
                return Ok(a);
            }
            Two(Op::Xor, u, [a, b]) if u == plain => {
                if let Some(t) = self.exchanged(a, b) {
                    return Ok(t);
                }
                for (a, b) in [(a, b), (b, a)] {
                    if let Two(Op::Xor, w, [c, d]) = self.terms.node(b)
                        && w == plain
                    {
                        let (c, d) = (self.name(c), self.name(d));
                        if a == c || a == d {
                            return Ok(if a == c { d } else { c });
                        }
                    }
                }
                Two(Op::Xor, u, [a.min(b), a.max(b)])
            }
            Two(op, u, [a, b]) => {
                // Rule 9: equal sources have no order that would say maximum; the minimum is the same then.
                let op = if op == Op::Fmax && a == b && u[0] == u[1] { Op::Fmin } else { op };
                if op.commutes() && (b, u[1] as u8) < (a, u[0] as u8) {
                    Two(op, [u[1], u[0]], [b, a])
                } else {
                    Two(op, u, [a, b])
                }
            }
            Product([a, b]) => Product([a.min(b), a.max(b)]),
            Both([a, b]) if a == b => return Ok(a),
            Both([a, b]) => Both([a.min(b), a.max(b)]),
            Carry([a, b]) => Carry([a.min(b), a.max(b)]),
            Not(a) => match self.is_not(a) {
                Some(inner) => return Ok(inner),
                None => Not(a),
            },
            // A register that was made 0 under a condition asks for that condition.
            IsZero(a) => {
                let of = |t| self.terms.node(self.name(t));
                let asked = self.forms(a).find_map(|form| match form {
                    Choice(c, [x, y]) => match (of(x), of(y)) {
                        (Const(0), Const(1..)) => Some((c, false)),
                        (Const(1..), Const(0)) => Some((c, true)),
                        _ => None,
                    },
                    _ => None,
                });
                match asked.map(|(c, inverse)| (self.name(c), inverse)) {
                    Some((c, false)) => return Ok(c),
                    Some((c, true)) => match self.is_not(c) {
                        Some(inner) => return Ok(inner),
                        None => Not(c),
                    },
                    None => IsZero(a),
                }
            }
            Spread(_, a) if self.is_uniform(a) => return Ok(a),
            Choice(_, [a, b]) if a == b => return Ok(a),
            Choice(c, [a, b]) => {
                let (c, mut a, mut b) = match self.is_not(c) {
                    Some(inner) => (inner, b, a),
                    None => (c, a, b),
                };
                // A choice by the same condition, or by its inverse, and one inside of that: what stands for a part may
                // be a choice again.
                let inner = |mut t: Term, side: usize| {
                    for _ in 0..MAX_CHOICES {
                        let same = self.forms(t).find_map(|form| match form {
                            Choice(d, ab) if self.name(d) == c => Some(ab[side]),
                            Choice(d, ab) if self.is_not(self.name(d)) == Some(c) => Some(ab[1 - side]),
                            _ => None,
                        });
                        match same.map(|same| self.name(same)) {
                            Some(same) if same != t => t = same,
                            _ => break,
                        }
                    }
                    t
                };
                (a, b) = (inner(a, 0), inner(b, 1));
                if a == b {
                    return Ok(a);
                }
                Choice(c, [a, b])
            }
            other => other,
        })
    }

    pub fn constant(&mut self, c: u32) -> Term {
        self.terms.intern(Value::Const(c))
    }

    pub fn uniform(&mut self, u: UniformSource) -> Term {
        match u {
            UniformSource::Const(c) => self.constant(c),
            UniformSource::Word(w, c) => self.terms.intern(Value::Word(w, c)),
            // Addresses have 32 bits here.
            UniformSource::High(_) => self.constant(0),
        }
    }

    pub fn not(&mut self, a: Term) -> Term {
        self.make(Value::Not(a))
    }

    /// Base of a lane's spill area (12.6): behind the private arrays of its thread.
    pub fn spill_base(&mut self, private_bytes: u32) -> Term {
        let plain = [Unpack::None; 2];
        let thread = self.make(Value::Zero(Op::Tidx));
        let bytes = self.uniform(UniformSource::Word(UniformWord::ScratchBytesPerThread, 0));
        let lane = self.make(Value::Zero(Op::Eidx));
        let two = self.constant(2);
        let lane = self.make(Value::Two(Op::Shl, plain, [lane, two]));
        let thread = self.make(Value::Two(Op::Umul24, plain, [thread, bytes]));
        let sum = self.make(Value::Two(Op::Add, plain, [thread, lane]));
        let address =
            self.uniform(UniformSource::Word(UniformWord::ScratchAddr, private_bytes.wrapping_mul(16)));
        self.make(Value::Two(Op::Add, plain, [sum, address]))
    }

    /// Whether every lane holds the same: what only operations over all lanes, words of the streams, constants and the
    /// number of the thread make, and what is equal to that here: a loop variable that always is its first value may be the
    /// name of it.
    pub fn is_uniform(&self, t: Term) -> bool {
        self.is_uniform_within(t, &mut { MAX_UNIFORM })
    }

    fn is_uniform_within(&self, t: Term, steps: &mut u32) -> bool {
        use Value::*;
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        self.forms(self.name(t)).any(|v| match v {
            Const(_) | Word(..) | Side(..) | Read(..) | Zero(Op::Tidx | Op::Barrierid) => true,
            // What all lanes get from one, or from all of them.
            Spread(true, _) | One(Op::Ballot | Op::Bcastf | Op::Alleq | Op::Allfeq, ..) => true,
            Undefined | Payload(_) | Param(..) | Loaded(..) | Samples(..) | Unknown(..) | Zero(_) => false,
            // One row, but a column for each lane (12.3).
            One(op, ..) | Two(op, ..) if op.is_vpm_read() => false,
            v => v.children().iter().all(|&c| self.is_uniform_within(c, steps)),
        })
    }

    /// An expression as text, cut off at some depth.
    pub fn text(&self, t: Term, depth: u32) -> String {
        if depth == 0 {
            return format!("#{}", t.0);
        }
        let of = |t: Term| self.text(t, depth - 1);
        match self.terms.node(t) {
            Value::Undefined => "undefined".to_owned(),
            Value::Const(c) => format!("{c:#x}"),
            Value::Word(w, c) => format!("{w:?}+{c}"),
            Value::Read(w, c) => format!("read({w:?}+{c})"),
            Value::Payload(r) => format!("payload v{r}"),
            Value::Param(r, _) => format!("v{r}"),
            Value::Loaded(i, k, _) => format!("loaded {i}.{k}"),
            Value::Samples(n, b) => format!("flags {}.{n}", b.0),
            Value::Unknown(n, _) => format!("unknown {n}"),
            Value::Side(a, k) => format!("side({}, {k})", of(a)),
            Value::Zero(op) => op.name().to_owned(),
            Value::One(op, u, a) => format!("{}{}({})", op.name(), u.name(), of(a)),
            Value::Two(op, u, [a, b]) => {
                format!("{}{}{}({}, {})", op.name(), u[0].name(), u[1].name(), of(a), of(b))
            }
            Value::Product([a, b]) => format!("mul({}, {})", of(a), of(b)),
            Value::Packed(p, a, b) => format!("pack{p:?}({}, {})", of(a), of(b)),
            Value::Choice(c, [a, b]) => format!("({} ? {} : {})", of(c), of(a), of(b)),
            Value::Turned([n, a]) => format!("turned({}, {})", of(n), of(a)),
            Value::Spread(all, a) => format!("{}({})", if all { "all" } else { "quad" }, of(a)),
            Value::IsZero(a) => format!("zero({})", of(a)),
            Value::IsNegative(a) => format!("negative({})", of(a)),
            Value::Less([a, b]) => format!("less({}, {})", of(a), of(b)),
            Value::Below([a, b]) => format!("below({}, {})", of(a), of(b)),
            Value::Carry([a, b]) => format!("carry({}, {})", of(a), of(b)),
            Value::Float(p, _, [a, b]) => format!("fcmp.{}({}, {})", p.name(), of(a), of(b)),
            Value::Not(a) => format!("not({})", of(a)),
            Value::Both([a, b]) => format!("both({}, {})", of(a), of(b)),
        }
    }
}

/// Operations whose Z and N are those of a 32-bit integer (7.3); for the others no source says.
pub(super) fn has_integer_flags(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Add | Sub
            | Min
            | Max
            | Umin
            | Umax
            | Shl
            | Shr
            | Asr
            | Ror
            | And
            | Or
            | Xor
            | Not
            | Neg
            | Clz
            | Tidx
            | Eidx
            | Msf
            | Ftoin
            | Ftoiz
            | Ftouz
            | Mov
            | Umul24
            | Smul24
    )
}
