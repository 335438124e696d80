//! Symbolic values of V3D: expressions over machine values and uniform words, in a normal form.
//!
//! Values and per-lane predicates (flags) are both expressions. The normal form makes equal what the reference says is
//! equal: moves, operations that commute (6.1), exclusive ors that cancel, the same value on both sides of a minimum or
//! a bit operation, inverted conditions and writes under a condition that is overwritten. There is no constant folding:
//! both programs are built from the same operations.

use crate::instr::{Op, Pack, Push, Unpack};
use kempe_ir::UniformWord;
use kempe_mir::UniformSource;
use kempe_mir::symbolic::{Facts, Node, Term, Terms, add_fact};
use kempe_ra::{Block, Program};
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
    /// Contents of a place of which nothing is known, numbered inside a block.
    Unknown(u32, Block),
    /// A word of the side band: address of the first, number.
    Side(Term, u8),
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
            Undefined | Const(_) | Word(..) | Payload(_) | Param(..) | Loaded(..) | Unknown(..) | Zero(_) => {
                SmallVec::new()
            }
            Side(a, _) | One(_, _, a) | IsZero(a) | IsNegative(a) | Not(a) => smallvec![a],
            Two(_, _, ab) | Product(ab) | Less(ab) | Below(ab) | Carry(ab) | Float(_, _, ab) | Both(ab) => {
                SmallVec::from_slice(&ab)
            }
            Packed(_, a, b) => smallvec![a, b],
            Choice(c, [a, b]) => smallvec![c, a, b],
        }
    }

    fn home(&self) -> Option<Block> {
        match *self {
            Value::Param(_, b) | Value::Loaded(_, _, b) | Value::Unknown(_, b) => Some(b),
            _ => None,
        }
    }
}

/// Most combinations of facts that are looked up for one operation, and that are followed when none is known.
const MAX_LOOKUPS: usize = 1024;
const MAX_NEW: usize = 4;

/// The expressions of one comparison.
pub(super) struct Values {
    pub terms: Terms<Value>,
    pub undefined: Term,
    /// Some expression of the machine code is made from an undefined value.
    uses_undefined: bool,
    sealed: bool,
}

impl Values {
    pub fn new(program: &Program) -> Values {
        let mut terms = Terms::new(program);
        let undefined = terms.intern(Value::Undefined);
        Values { terms, undefined, uses_undefined: false, sealed: false }
    }

    pub fn seal(&mut self) {
        self.terms.seal();
        self.sealed = true;
    }

    /// The expression in its normal form.
    pub fn make(&mut self, v: Value) -> Term {
        match self.simplify(v) {
            Ok(t) => t,
            Err(v) => {
                if !self.sealed && v.children().contains(&self.undefined) {
                    self.uses_undefined = true;
                }
                self.terms.intern(v)
            }
        }
    }

    /// The same, but only if it exists.
    fn find(&self, v: Value) -> Option<Term> {
        match self.simplify(v) {
            Ok(t) => Some(t),
            Err(v) => self.terms.find(&v),
        }
    }

    fn is_not(&self, t: Term) -> Option<Term> {
        match self.terms.node(t) {
            Value::Not(inner) => Some(inner),
            _ => None,
        }
    }

    /// An expression that is equal, or the form to be looked up. One step suffices: the parts are in normal form.
    fn simplify(&self, v: Value) -> Result<Term, Value> {
        use Value::*;
        let plain = [Unpack::None; 2];
        Err(match v {
            One(Op::Mov | Op::Fmov, Unpack::None, a) => return Ok(a),
            // The same row in both sources.
            Two(Op::Or | Op::And | Op::Min | Op::Max | Op::Umin | Op::Umax, u, [a, b])
                if a == b && u == plain =>
            {
                return Ok(a);
            }
            Two(Op::Xor, u, [a, b]) if u == plain => {
                if let Two(Op::Xor, w, [c, d]) = self.terms.node(b)
                    && w == plain
                    && (a == c || a == d)
                {
                    return Ok(if a == c { d } else { c });
                }
                if let Two(Op::Xor, w, [c, d]) = self.terms.node(a)
                    && w == plain
                    && (b == c || b == d)
                {
                    return Ok(if b == c { d } else { c });
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
            IsZero(a) => match self.terms.node(a) {
                Choice(c, [x, y]) => match (self.terms.node(x), self.terms.node(y)) {
                    (Const(0), Const(1..)) => return Ok(c),
                    (Const(1..), Const(0)) => Not(c),
                    _ => IsZero(a),
                },
                _ => IsZero(a),
            },
            Choice(_, [a, b]) if a == b => return Ok(a),
            Choice(c, [a, b]) => {
                let (c, mut a, mut b) = match self.is_not(c) {
                    Some(inner) => (inner, b, a),
                    None => (c, a, b),
                };
                if let Choice(d, [x, _]) = self.terms.node(a)
                    && d == c
                {
                    a = x;
                }
                if let Choice(d, [_, y]) = self.terms.node(b)
                    && d == c
                {
                    b = y;
                }
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

    /// What an operation makes of contents of which these facts are known: every combination that the machine code knows,
    /// and what the machine code makes of undefined values, which anything stands for. If it knows none, a few new ones.
    pub fn combine(&mut self, sources: &[&Facts], build: &dyn Fn(&[Term]) -> Value) -> Facts {
        let mut out = Facts::new();
        if sources.iter().any(|s| s.is_empty()) {
            return out;
        }
        let extra = usize::from(self.uses_undefined);
        if extra == 1 || sources.iter().any(|s| s.len() > 1) {
            let undefined = self.undefined;
            let pick = |s: &Facts, i: usize| s.get(i).copied().unwrap_or(undefined);
            for_each_choice(sources, extra, MAX_LOOKUPS, pick, |list| {
                if let Some(t) = self.find(build(list)).filter(|&t| t != undefined && self.terms.is_known(t))
                {
                    add_fact(&mut out, t);
                }
            });
            if !out.is_empty() {
                return out;
            }
        }
        for_each_choice(
            sources,
            0,
            MAX_NEW,
            |s, i| s[i],
            |list| {
                let t = self.make(build(list));
                add_fact(&mut out, t);
            },
        );
        out
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
            Value::Payload(r) => format!("payload v{r}"),
            Value::Param(r, _) => format!("v{r}"),
            Value::Loaded(i, k, _) => format!("loaded {i}.{k}"),
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

    /// Contents as text.
    pub fn facts_text(&self, facts: &Facts, depth: u32) -> String {
        let list: Vec<String> = facts.iter().map(|&t| self.text(t, depth)).collect();
        if list.is_empty() { "something unknown".to_owned() } else { list.join(" = ") }
    }

    /// Whether contents with these facts may stand for a value of the machine code.
    pub fn is(&self, facts: &Facts, wanted: Term) -> bool {
        wanted == self.undefined || facts.contains(&wanted)
    }
}

/// Goes through the combinations of one fact of each source, `extra` more for each.
fn for_each_choice(
    sources: &[&Facts],
    extra: usize,
    limit: usize,
    pick: impl Fn(&Facts, usize) -> Term,
    mut f: impl FnMut(&[Term]),
) {
    let mut index: SmallVec<[usize; 3]> = smallvec![0; sources.len()];
    for _ in 0..limit {
        let list: SmallVec<[Term; 3]> = index.iter().zip(sources).map(|(&i, s)| pick(s, i)).collect();
        f(&list);
        let mut k = 0;
        loop {
            let Some(i) = index.get_mut(k) else { return };
            *i += 1;
            if *i < sources[k].len() + extra {
                break;
            }
            *i = 0;
            k += 1;
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
            | Ftoin
            | Ftoiz
            | Ftouz
            | Mov
            | Umul24
            | Smul24
    )
}
