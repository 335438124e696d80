//! Symbolic values of V3D: expressions over machine values and uniform words, in a normal form.
//!
//! Values and per-lane predicates (flags) are both expressions. The normal form makes equal what the reference says is
//! equal: moves, operations that commute (6.1), exclusive ors that cancel, the same value on both sides of a minimum or
//! a bit operation, inverted conditions and writes under a condition that is overwritten. There is no constant folding:
//! both programs are built from the same operations.
//!
//! While the words of one block are executed, expressions of which a place holds several at the start of the block are
//! equal there; one of them stands for all ([`Values::enter`], congruence as in value numbering: Alpern, Wegman & Zadeck
//! 1988). In the first round through a loop nest many parameters begin with the same value.

use crate::instr::{Op, Pack, Push, Unpack};
use kempe_ir::UniformWord;
use kempe_mir::UniformSource;
use kempe_mir::symbolic::{Facts, Node, Term, Terms, add_fact};
use kempe_ra::{Block, Program};
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
    /// Contents of which several expressions are known, by number: one name for all of them.
    Group(u32),
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
            | Samples(..) | Unknown(..) | Group(_) | Zero(_) => SmallVec::new(),
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
    /// The same of other parts.
    fn with_children(self, of: &dyn Fn(Term) -> Term) -> Value {
        use Value::*;
        let two = |[a, b]: [Term; 2]| [of(a), of(b)];
        match self {
            Undefined | Const(_) | Word(..) | Read(..) | Payload(_) | Param(..) | Loaded(..)
            | Samples(..) | Unknown(..) | Group(_) | Zero(_) => self,
            Side(a, n) => Side(of(a), n),
            Turned(ab) => Turned(two(ab)),
            Spread(all, a) => Spread(all, of(a)),
            One(op, u, a) => One(op, u, of(a)),
            Two(op, u, ab) => Two(op, u, two(ab)),
            Product(ab) => Product(two(ab)),
            Packed(p, a, b) => Packed(p, of(a), of(b)),
            Choice(c, ab) => Choice(of(c), two(ab)),
            IsZero(a) => IsZero(of(a)),
            IsNegative(a) => IsNegative(of(a)),
            Less(ab) => Less(two(ab)),
            Below(ab) => Below(two(ab)),
            Carry(ab) => Carry(two(ab)),
            Float(p, u, ab) => Float(p, u, two(ab)),
            Not(a) => Not(of(a)),
            Both(ab) => Both(two(ab)),
        }
    }
}

/// Most combinations of facts that are looked up for one operation.
const MAX_LOOKUPS: usize = 1024;

/// Times that what is made from equal parts is looked for. What a later round would find is seldom there.
const MAX_PASSES: usize = 4;

/// How deep an expression is searched for a value that any place may hold.
const WILD_DEPTH: u32 = 4;

/// Which expressions are equal while one block is executed.
#[derive(Default)]
struct Equal {
    /// A union-find forest: an expression that is not here stands for itself.
    up: FxHashMap<Term, Term>,
    /// The expressions of the machine code that a name stands for, where there are others than itself.
    members: FxHashMap<Term, SmallVec<[Term; 4]>>,
    /// Parameters that any place may hold so far; no two places are equal for that.
    wild: Facts,
    /// Contents that have a name of their own, by number, and the name of contents.
    groups: Vec<Facts>,
    group_names: FxHashMap<Facts, Term>,
}

/// The expressions of one comparison.
pub(super) struct Values {
    pub terms: Terms<Value>,
    pub undefined: Term,
    /// Some expression of the machine code is made from an undefined value.
    uses_undefined: bool,
    sealed: bool,
    /// Expressions made since [`Values::take_made`].
    made: Vec<Term>,
    /// Words of memory that the machine code reads through the side band where the driver's word is. As that memory never changes,
    /// they may be read again anywhere.
    reads: FxHashSet<(UniformWord, u32)>,
    equal: Equal,
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
            equal: Equal::default(),
        }
    }

    pub fn seal(&mut self) {
        self.terms.seal();
        self.sealed = true;
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
    pub fn may_read_again(&self, address: &Facts, n: u8) -> bool {
        address.iter().any(|&a| match self.terms.node(a) {
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

    fn is_not(&self, t: Term) -> Option<Term> {
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
            IsZero(a) => match self.terms.node(a) {
                Choice(c, [x, y]) => {
                    let of = |t| self.terms.node(self.name(t));
                    match (of(x), of(y)) {
                        (Const(0), Const(1..)) => return Ok(self.name(c)),
                        // The condition of a choice is no inversion.
                        (Const(1..), Const(0)) => Not(self.name(c)),
                        _ => IsZero(a),
                    }
                }
                _ => IsZero(a),
            },
            Spread(_, a) if self.is_uniform(a) => return Ok(a),
            Choice(_, [a, b]) if a == b => return Ok(a),
            Choice(c, [a, b]) => {
                let (c, mut a, mut b) = match self.is_not(c) {
                    Some(inner) => (inner, b, a),
                    None => (c, a, b),
                };
                // A choice by the same condition, or by its inverse.
                let inner = |t: Term, side: usize| match self.terms.node(t) {
                    Choice(d, ab) if self.name(d) == c => self.name(ab[side]),
                    Choice(d, ab) if self.is_not(self.name(d)) == Some(c) => self.name(ab[1 - side]),
                    _ => t,
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

    // ---- Equality inside a block ----

    /// What stands for an expression in this block.
    pub fn name(&self, mut t: Term) -> Term {
        while let Some(&up) = self.equal.up.get(&t) {
            t = up;
        }
        t
    }

    /// A value that any place may hold so far.
    pub fn is_wild(&self, t: Term) -> bool {
        self.equal.wild.contains(&t)
    }

    /// Makes two expressions equal; whether they were not. A constant is the best name, because offsets are recognised by
    /// it, then a choice, because normal forms look into it; something new is the worst.
    fn unite(&mut self, a: Term, b: Term) -> bool {
        let (a, b) = (self.name(a), self.name(b));
        if a == b {
            return false;
        }
        let rank = |t: Term| match self.terms.node(t) {
            Value::Const(_) => (0, t),
            Value::Choice(..) => (1, t),
            _ => (2, t),
        };
        let (a, b) = if rank(a) < rank(b) { (a, b) } else { (b, a) };
        self.equal.up.insert(b, a);
        true
    }

    /// Whether an expression has one of these in it.
    fn is_made_of(&self, t: Term, these: &Facts, depth: u32) -> bool {
        !these.is_empty()
            && (these.contains(&t)
                || depth > 0
                    && self.terms.node(t).children().iter().any(|&c| self.is_made_of(c, these, depth - 1)))
    }

    /// Begins a block with these contents of places. `made`: expressions that its machine code makes. From here on,
    /// contents are facts in names.
    pub fn enter<'f>(&mut self, places: impl Iterator<Item = &'f mut Facts>, wild: &Facts, made: &[Term]) {
        self.equal = Equal { wild: wild.clone(), ..Equal::default() };
        let places: Vec<&mut Facts> = places.filter(|f| !f.is_empty()).collect();
        for facts in &places {
            let list: SmallVec<[Term; 8]> =
                facts.iter().copied().filter(|&t| !self.is_made_of(t, wild, WILD_DEPTH)).collect();
            for pair in list.windows(2) {
                self.unite(pair[0], pair[1]);
            }
        }
        if self.equal.up.is_empty() {
            return;
        }
        // What is made from equal parts is equal: what the block makes, and what normal forms look into.
        let mut list = made.to_vec();
        for &t in places.iter().flat_map(|f| f.iter()) {
            for c in self.terms.node(t).children() {
                list.push(c);
                list.extend(self.terms.node(c).children());
            }
        }
        list.sort_unstable();
        list.dedup();
        for _ in 0..MAX_PASSES {
            let mut changed = false;
            for &t in &list {
                let node = self.terms.node(t);
                // A normal form looks one step into its parts.
                let named = |c: &Term| self.equal.up.contains_key(c);
                let inside = |c: &Term| self.terms.node(*c).children().iter().any(named);
                if !node.children().iter().any(|c| named(c) || inside(c)) {
                    continue;
                }
                let same = self.make(node.with_children(&|c| self.name(c)));
                if same != self.undefined && !wild.contains(&same) {
                    changed |= self.unite(same, t);
                }
            }
            if !changed {
                break;
            }
        }
        let mut all: Vec<Term> = self.equal.up.keys().copied().collect();
        all.sort_unstable();
        for t in all {
            let name = self.name(t);
            for t in [name, t] {
                let list = self.equal.members.entry(name).or_default();
                if self.terms.is_known(t) && !list.contains(&t) {
                    list.push(t);
                }
            }
        }
        for facts in places {
            let named: Facts = facts.iter().map(|&t| self.name(t)).collect();
            facts.clear();
            for t in named {
                add_fact(facts, t);
            }
        }
    }

    /// Ends the block: contents are facts of the machine code again.
    pub fn leave<'f>(&mut self, places: impl Iterator<Item = &'f mut Facts>) {
        for facts in places {
            let named = std::mem::take(facts);
            for t in named {
                match self.equal.members.get(&t) {
                    Some(list) => list.iter().for_each(|&t| add_fact(facts, t)),
                    None if self.terms.is_known(t) => add_fact(facts, t),
                    None => {}
                }
            }
        }
    }

    /// Adds an expression to facts under its name; whether the machine code has it.
    fn note(&self, out: &mut Facts, t: Term) -> bool {
        let name = self.name(t);
        let known = t != self.undefined && self.terms.is_known(name);
        if known {
            add_fact(out, name);
            // An exchange looks inside.
            if name != t && matches!(self.terms.node(t), Value::Two(Op::Xor, ..)) {
                add_fact(out, t);
            }
        }
        known
    }

    /// One name for contents.
    fn contents(&mut self, facts: &Facts) -> Term {
        if let [one] = facts[..] {
            return one;
        }
        if let Some(&t) = self.equal.group_names.get(facts) {
            return t;
        }
        let t = self.terms.intern(Value::Group(self.equal.groups.len() as u32));
        self.equal.groups.push(facts.clone());
        self.equal.group_names.insert(facts.clone(), t);
        t
    }

    /// What an operation makes of contents of which these facts are known: every combination that the machine code knows,
    /// and what the machine code makes of undefined values, which anything stands for; else one that nobody knows.
    ///
    /// Contents of which much is known come back out of an exchange by exclusive or: for that they go in under one name.
    pub fn combine(&mut self, sources: &[&Facts], build: &dyn Fn(&[Term]) -> Value) -> Facts {
        let mut out = Facts::new();
        if sources.iter().any(|s| s.is_empty()) {
            return out;
        }
        let extra = usize::from(self.uses_undefined);
        let wild = !self.equal.wild.is_empty();
        let several = sources.iter().any(|s| s.len() > 1);
        let mut named = None;
        if several {
            let names: SmallVec<[Term; 3]> = sources.iter().map(|s| self.contents(s)).collect();
            let t = self.make(build(&names));
            match self.terms.node(t) {
                Value::Group(n) => out = self.equal.groups[n as usize].clone(),
                _ => named = Some(t),
            }
        }
        if wild || extra == 1 || several {
            let undefined = self.undefined;
            let pick = |s: &Facts, i: usize| s.get(i).copied().unwrap_or(undefined);
            for_each_choice(sources, extra, MAX_LOOKUPS, pick, |list| {
                if let Some(t) = self.find(build(list)) {
                    self.note(&mut out, t);
                }
            });
        }
        // With values that may be anywhere, what is known may be about them only: the contents go on as well.
        if out.is_empty() || wild {
            let own = |s: &&Facts| s.iter().copied().find(|t| !self.equal.wild.contains(t));
            let list: Option<SmallVec<[Term; 3]>> = sources.iter().map(own).collect();
            if let Some(list) = list {
                let t = self.make(build(&list));
                if !self.note(&mut out, t) {
                    add_fact(&mut out, t);
                }
            }
        }
        match named {
            Some(t) if out.is_empty() => add_fact(&mut out, t),
            Some(t) if out.len() > 1 => {
                self.equal.group_names.insert(out.clone(), t);
            }
            _ => {}
        }
        out
    }

    /// Whether every lane holds the same: what only operations over all lanes, words of the streams, constants and the
    /// number of the thread make.
    pub fn is_uniform(&self, t: Term) -> bool {
        use Value::*;
        match self.terms.node(t) {
            Const(_) | Word(..) | Side(..) | Read(..) | Zero(Op::Tidx | Op::Barrierid) => true,
            // What all lanes get from one, or from all of them.
            Spread(true, _) | One(Op::Ballot | Op::Bcastf | Op::Alleq | Op::Allfeq, ..) => true,
            Undefined | Payload(_) | Param(..) | Loaded(..) | Samples(..) | Unknown(..) | Group(_)
            | Zero(_) => false,
            // One row, but a column for each lane (12.3).
            One(op, ..) if op.is_vpm_read() => false,
            v => v.children().iter().all(|&c| self.is_uniform(c)),
        }
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
            Value::Group(n) => format!("contents {n}"),
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

    /// Contents as text.
    pub fn facts_text(&self, facts: &Facts, depth: u32) -> String {
        let list: Vec<String> = facts.iter().map(|&t| self.text(t, depth)).collect();
        if list.is_empty() { "something unknown".to_owned() } else { list.join(" = ") }
    }

    /// Whether contents with these facts may stand for a value of the machine code.
    pub fn is(&self, facts: &Facts, wanted: Term) -> bool {
        wanted == self.undefined || facts.contains(&self.name(wanted))
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
            | Msf
            | Ftoin
            | Ftoiz
            | Ftouz
            | Mov
            | Umul24
            | Smul24
    )
}
