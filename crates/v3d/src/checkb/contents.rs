//! What places hold while the words of one block are executed.
//!
//! Contents have an *identity*: an expression over what the places held at the start of the block. Copies and exchanges are
//! understood by it alone, whether anything is known of the contents or not. Expressions of the machine code that a place
//! is known to hold at the start are equal there, and one of them stands for all (congruence as in value numbering:
//! Alpern, Wegman & Zadeck 1988); it is the identity of these contents.
//!
//! *Loose* expressions, those that may be made of an undefined value ([`Values::seal`]), are equal to nothing by that: where
//! they are undefined, two places with different contents may both stand for one of them. They are kept beside the
//! identity, any number of them, and what the machine code makes of them is looked up in every combination. So in the
//! first round through a loop every place may hold all variables that begin undefined, and exchanges of such places are
//! no harder than others.

use super::value::{Value, Values};
use crate::instr::{Op, Unpack};
use kempe_mir::symbolic::{Facts, Node, Term, add_fact};
use kempe_ra::Block;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// Most combinations of expressions that are looked up for one operation. Where there are more, those that nothing in
/// reach is made of are left out first.
const MAX_LOOKUPS: usize = 4096;

/// Most combinations that are made for one operation although the machine code does not have them. Without any, an inverted
/// condition of a loose value is lost: 2 of the first 200 random programs were objected to.
const MAX_MADE: usize = 64;

/// No modifiers.
const PLAIN: [Unpack; 2] = [Unpack::None; 2];

/// Expressions of one source.
type List = SmallVec<[Term; 8]>;

/// Times that what is made from equal parts is looked for. Two are the rule: parts come first.
const MAX_PASSES: usize = 16;

/// Which expressions are equal while one block is executed.
#[derive(Default)]
pub(super) struct Equal {
    /// A union-find forest: an expression that is not here stands for itself.
    up: FxHashMap<Term, Term>,
    /// The expressions that a name stands for, itself first, where there are others.
    members: FxHashMap<Term, SmallVec<[Term; 4]>>,
    /// What contents are besides their identity, in names.
    also: FxHashMap<Term, Facts>,
    /// Of a ^ b = c: what c ^ a and c ^ b are.
    exchanged: FxHashMap<[Term; 2], Term>,
    /// What the expressions in reach are made of, two steps deep.
    parts: FxHashSet<Term>,
}

impl Values {
    /// What stands for an expression in this block.
    pub fn name(&self, mut t: Term) -> Term {
        while let Some(&up) = self.equal.up.get(&t) {
            t = up;
        }
        t
    }

    /// What the exclusive or of a result with one of its operands is.
    pub(super) fn exchanged(&self, a: Term, b: Term) -> Option<Term> {
        self.equal.exchanged.get(&[a, b]).or_else(|| self.equal.exchanged.get(&[b, a])).copied()
    }

    /// Makes two expressions equal; whether they were not. A constant is the best name, because offsets are recognised by
    /// it, then a choice, because normal forms look into it; something new is the worst.
    ///
    /// Of a predicate and its inversion one has a name that is no inversion, and the other one has the inversion of that:
    /// whoever looks for an inversion finds it by the name.
    fn unite(&mut self, a: Term, b: Term) -> bool {
        let (a, b) = (self.name(a), self.name(b));
        if a == b {
            return false;
        }
        let (name, other) = match (self.terms.node(a), self.terms.node(b)) {
            (Value::Not(a), Value::Not(b)) => return self.unite(a, b),
            (Value::Not(inner), _) if inner != b => (a, b),
            (_, Value::Not(inner)) if inner != a => (b, a),
            // Something is its own inversion: nobody gets here.
            (Value::Not(_), _) | (_, Value::Not(_)) => return false,
            _ => {
                let rank = |t: Term| match self.terms.node(t) {
                    Value::Const(_) => (0, t),
                    Value::Choice(..) => (1, t),
                    _ => (2, t),
                };
                if rank(a) < rank(b) { (a, b) } else { (b, a) }
            }
        };
        self.stand(name, other);
        if let Some(inverse) = self.terms.find(&Value::Not(other)) {
            let name = self.not(name);
            self.stand(name, inverse);
        }
        true
    }

    /// From now on one name stands for the other one too.
    fn stand(&mut self, name: Term, other: Term) {
        self.equal.up.insert(other, name);
        let others = self.equal.members.remove(&other).unwrap_or_else(|| smallvec![other]);
        self.equal.members.entry(name).or_insert_with(|| smallvec![name]).extend(others);
    }

    /// The forms of an expression that are known to be equal: those that a normal form looks into.
    pub(super) fn forms(&self, t: Term) -> impl Iterator<Item = Value> + '_ {
        let others = self.equal.members.get(&t).into_iter().flatten().skip(1);
        std::iter::once(t).chain(others.copied()).map(|t| self.terms.node(t))
    }

    /// Begins a block in which places hold these expressions, and gives the identities of their contents. `made`:
    /// expressions that the machine code makes in reach of its words.
    pub fn enter(&mut self, block: Block, places: &[&Facts], made: &[Term]) -> Vec<Term> {
        self.equal = Equal::default();
        for facts in places {
            let firm: SmallVec<[Term; 8]> = facts.iter().copied().filter(|&t| !self.is_loose(t)).collect();
            for pair in firm.windows(2) {
                self.unite(pair[0], pair[1]);
            }
        }
        if !self.equal.up.is_empty() {
            self.close(places, made);
        }
        for &t in made {
            for c in self.terms.node(t).children() {
                let inner = self.terms.node(c).children();
                let names: SmallVec<[Term; 4]> = inner.iter().chain([&c]).map(|&t| self.name(t)).collect();
                self.equal.parts.extend(names);
            }
        }
        let mut contents = Vec::with_capacity(places.len());
        for (n, facts) in places.iter().enumerate() {
            let firm = facts.iter().find(|&&t| !self.is_loose(t));
            let identity = match firm {
                Some(&t) => self.name(t),
                None => self.make(Value::Unknown(n as u32, block)),
            };
            for &t in facts.iter() {
                self.add(identity, t);
            }
            self.complete(identity);
            contents.push(identity);
        }
        contents
    }

    /// What is made from equal parts is equal: what the block makes, what it reads (an operation that is repeated makes it here as
    /// well), and what normal forms look into.
    fn close(&mut self, places: &[&Facts], made: &[Term]) {
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
                let same = self.make(node.with_children(&mut |c| self.name(c)));
                if same != self.undefined {
                    changed |= self.unite(same, t);
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// Contents are this expression too.
    fn add(&mut self, contents: Term, t: Term) {
        let name = self.name(t);
        if name != contents && name != self.undefined {
            add_fact(self.equal.also.entry(contents).or_default(), name);
        }
    }

    /// Contents are every choice too that the machine code makes between them and an undefined value: where that choice is
    /// given the register of its one side, no word is left of it.
    pub fn complete(&mut self, contents: Term) {
        if self.completes.is_empty() {
            return;
        }
        let mut todo: List = self.facts(contents).collect();
        while let Some(t) = todo.pop() {
            let members = self.equal.members.get(&t).map_or(std::slice::from_ref(&t), |l| l.as_slice());
            let choices: List =
                members.iter().filter_map(|t| self.completes.get(t)).flatten().copied().collect();
            for choice in choices {
                let name = self.name(choice);
                if !self.facts(contents).any(|t| t == name) {
                    self.add(contents, name);
                    todo.extend(self.facts(contents).find(|&t| t == name));
                }
            }
        }
    }

    /// Whether the machine code has an expression, under this name.
    fn is_known(&self, name: Term) -> bool {
        let members = self.equal.members.get(&name).into_iter().flatten();
        members.chain([&name]).any(|&t| self.terms.is_known(t))
    }

    /// Whether something in reach is made of an expression, or of its inversion: a choice is made with its sides exchanged
    /// in the place of that.
    fn in_reach(&self, name: Term) -> bool {
        let parts = &self.equal.parts;
        parts.contains(&name) || self.is_not(name).is_some_and(|inner| parts.contains(&inner))
    }

    /// What a step is made from: what the machine code has of what contents are, their identity included; without any,
    /// steps before it; without those, the identity.
    fn steps(&self, contents: Term) -> List {
        let also: List = self.facts(contents).skip(1).collect();
        let known: List = self.facts(contents).filter(|&t| self.is_known(t)).collect();
        match (known.is_empty(), also.is_empty()) {
            (false, _) => known,
            (true, false) => also,
            (true, true) => smallvec![contents],
        }
    }

    /// What contents are known to be, in names, identity first.
    pub fn facts(&self, contents: Term) -> impl Iterator<Item = Term> + '_ {
        std::iter::once(contents).chain(self.equal.also.get(&contents).into_iter().flatten().copied())
    }

    /// The expressions of the machine code that contents are, behind the block, and what an exchange has put in between: its
    /// last step may stand behind a branch whose slots have the first ones.
    pub fn leave(&mut self, contents: Term) -> Facts {
        let mut facts = Facts::new();
        let forms: List = self.facts(contents).flat_map(|t| self.members(t)).collect();
        for t in forms {
            if self.terms.is_known(t) {
                add_fact(&mut facts, t);
            } else if let Some([a, b]) = self.operands(t) {
                let between = [self.of_machine_code(a), self.of_machine_code(b)];
                if let [Some(a), Some(b)] = between {
                    let t = self.terms.intern(Value::Two(Op::Xor, PLAIN, [a.min(b), a.max(b)]));
                    add_fact(&mut facts, t);
                }
            }
        }
        facts
    }

    /// What contents are the exclusive or of, unless the machine code has it.
    pub fn sides(&self, contents: Term) -> Option<[Term; 2]> {
        self.operands(contents).filter(|_| !self.is_known(contents)).map(|ab| ab.map(|t| self.name(t)))
    }

    /// The operands of an exclusive or.
    fn operands(&self, t: Term) -> Option<[Term; 2]> {
        match self.terms.node(t) {
            Value::Two(Op::Xor, PLAIN, ab) => Some(ab),
            _ => None,
        }
    }

    /// The first expression of the machine code that is equal. An operand may be named by something else: `v + 1` is made as
    /// `0 + 1` where `v` is 0.
    fn of_machine_code(&self, t: Term) -> Option<Term> {
        self.members(self.name(t)).into_iter().filter(|&t| self.terms.is_known(t)).min()
    }

    /// The expressions that a name stands for.
    fn members(&self, name: Term) -> List {
        self.equal.members.get(&name).map_or_else(|| smallvec![name], |l| l.iter().copied().collect())
    }

    /// Whether contents may stand for a value of the machine code.
    pub fn is(&self, contents: Term, wanted: Term) -> bool {
        let name = self.name(wanted);
        wanted == self.undefined || self.facts(contents).any(|t| t == name)
    }

    /// The contents that an operation makes. Besides their identity they are whatever the machine code makes of what the
    /// sources are besides theirs, and of undefined values, which anything stands for.
    pub fn combine(&mut self, sources: &[Term], build: &dyn Fn(&[Term]) -> Value) -> Term {
        let node = build(sources);
        let made = self.make(node);
        let result = self.name(made);
        if let Value::Two(Op::Xor, PLAIN, [a, b]) = node {
            self.equal.exchanged.insert([result, a], b);
            self.equal.exchanged.insert([result, b], a);
        }
        if !self.uses_undefined && !sources.iter().any(|s| self.equal.also.contains_key(s)) {
            return result;
        }
        let extra = self.uses_undefined.then_some(self.undefined);
        let mut lists: SmallVec<[List; 3]> =
            sources.iter().map(|&s| self.facts(s).chain(extra).collect()).collect();
        let many = |lists: &[List]| {
            lists
                .iter()
                .try_fold(1usize, |n, l| n.checked_mul(l.len()).filter(|&n| n <= MAX_LOOKUPS))
                .is_none()
        };
        if many(&lists) {
            for (list, s) in lists.iter_mut().zip(sources) {
                list.retain(|t| t == s || Some(*t) == extra || self.in_reach(*t));
            }
        }
        let mut found = Facts::new();
        for_each_choice(&lists, MAX_LOOKUPS, |list| {
            if let Some(t) = self.find(build(list)).filter(|&t| self.is_known(self.name(t))) {
                add_fact(&mut found, t);
            }
        });
        // Of few, also a step on the way to something that the machine code has.
        let mut lists: SmallVec<[List; 3]> = sources.iter().map(|&s| self.steps(s)).collect();
        let many = |lists: &[List]| lists.iter().map(|l| l.len()).product::<usize>() > MAX_MADE;
        if many(&lists) {
            lists.iter_mut().for_each(|l| l.retain(|t| self.in_reach(*t)));
        }
        if many(&lists) {
            lists.iter_mut().for_each(|l| l.retain(|t| self.equal.parts.contains(t)));
        }
        if !many(&lists) {
            for_each_choice(&lists, MAX_MADE, |list| {
                let t = self.make(build(list));
                add_fact(&mut found, t);
            });
        }
        for t in found {
            self.add(result, t);
        }
        self.complete(result);
        result
    }

    /// Contents as text.
    pub fn contents_text(&self, contents: Term, depth: u32) -> String {
        let list: Vec<String> = self.facts(contents).map(|t| self.text(t, depth)).collect();
        list.join(" = ")
    }
}

/// Goes through the combinations of one expression of each list.
pub(super) fn for_each_choice<L: AsRef<[Term]>>(lists: &[L], limit: usize, mut f: impl FnMut(&[Term])) {
    if lists.iter().any(|l| l.as_ref().is_empty()) {
        return;
    }
    let mut index: SmallVec<[usize; 3]> = smallvec![0; lists.len()];
    for _ in 0..limit {
        let list: SmallVec<[Term; 3]> = index.iter().zip(lists).map(|(&i, l)| l.as_ref()[i]).collect();
        f(&list);
        let mut k = 0;
        loop {
            let Some(i) = index.get_mut(k) else { return };
            *i += 1;
            if *i < lists[k].as_ref().len() {
                break;
            }
            *i = 0;
            k += 1;
        }
    }
}
