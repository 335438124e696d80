//! Common subexpressions, redundant loads, and conditions that the way here decided.
//!
//! One sweep in layout order with a hash table of expressions: an entry counts where its block dominates (Briggs,
//! Cooper & Simpson, "Value Numbering", 1997, dominator-based, with the scoped table replaced by a dominance test).
//!
//! Memory: every store gets a number, and every block knows at its entry, for each alias class, the last store and
//! the last store through another root. A remembered load or store still holds when no later number may have touched
//! it. Where predecessors disagree, and at the head of a loop that writes, everything of the class is forgotten.
//! So loads are merged and stores forwarded across blocks wherever memory is provably unmodified.
//!
//! Left out: equal block parameters (see `cfg`), loads that are available on some paths only.

use crate::alias::{Addresses, Class, Root};
use crate::graph::{Dom, Graph, Loops};
use crate::subst::Subst;
use kempe_ir::*;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Operations that a known condition is looked through (`and`, `or`, `not`).
const FACT_DEPTH: u32 = 4;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    ty: Type,
    imm: Imm,
    args: SmallVec<[Value; 3]>,
}

/// What is known of the stores to a class.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ClassState {
    /// Root of the last store.
    root: Root,
    /// Number of the last store.
    last: u32,
    /// Number of the last store through any other root.
    other: u32,
}

/// A component that memory is known to hold.
#[derive(Clone, Copy)]
struct Held {
    value: Value,
    ty: Type,
    block: Block,
    /// Number of the last store before, or of the store itself.
    since: u32,
}

struct Gvn<'a> {
    m: &'a mut Module,
    dom: &'a Dom,
    addr: Addresses,
    subst: Subst,
    exprs: FxHashMap<Key, Inst>,
    def_block: Vec<Block>,
    facts: FxHashMap<Value, SmallVec<[(Block, bool); 2]>>,
    /// By class.
    state: Vec<ClassState>,
    stores: u32,
    held: FxHashMap<(Root, u32, u32), Held>,
    /// Number of the last store to a word of a root.
    words: FxHashMap<(Root, u32), u32>,
    out: Vec<Inst>,
    bools: [Option<Value>; 2],
    bool_insts: Vec<Inst>,
    changed: bool,
}

pub fn run(m: &mut Module) -> bool {
    let g = Graph::new(&m.func);
    let dom = Dom::new(&m.func, &g);
    let loops = Loops::new(&m.func, &g);
    let addr = Addresses::new(m);
    let subst = Subst::new(&m.func);
    let classes = addr.classes();
    let insts: usize = m.func.layout.iter().map(|&b| m.func.blocks[b].insts.len()).sum();
    let entry = m.func.layout[0];
    let n = m.func.blocks.len();
    let def_block = vec![entry; m.func.insts.len()];
    let fresh = ClassState { root: Root::MAX, last: 0, other: 0 };
    let mut v = Gvn {
        m,
        dom: &dom,
        addr,
        subst,
        exprs: FxHashMap::with_capacity_and_hasher(insts, Default::default()),
        def_block,
        facts: FxHashMap::default(),
        state: vec![fresh; classes],
        stores: 0,
        held: FxHashMap::default(),
        words: FxHashMap::default(),
        out: Vec::new(),
        bools: [None; 2],
        bool_insts: Vec::new(),
        changed: false,
    };
    let written = v.written_by_loop(&g, &loops);
    let writes = v.writes();
    // State at the end of every block, by block and class; states are kept only where memory is written at all.
    let mut ends: Vec<ClassState> = if writes { vec![fresh; n * classes] } else { Vec::new() };
    for at in 0..v.m.func.layout.len() {
        let b = v.m.func.layout[at];
        if writes && at > 0 {
            v.enter(&g, b, &ends, &written);
        }
        v.learn(&g, b);
        v.block(b);
        if writes {
            ends[b.index() * classes..][..classes].copy_from_slice(&v.state);
        }
    }
    let (mut subst, changed, bools) = (v.subst, v.changed, v.bool_insts);
    let changed = changed || !subst.is_empty();
    m.func.blocks[entry].insts.splice(0..0, bools);
    subst.apply(&mut m.func);
    changed
}

impl Gvn<'_> {
    fn writes(&self) -> bool {
        let f = &self.m.func;
        f.layout.iter().any(|&b| f.blocks[b].insts.iter().any(|&i| f.insts[i].op.effect() == Effect::Write))
    }

    /// Classes that an instruction may change.
    fn writes_of(&mut self, i: Inst) -> u64 {
        let d = &self.m.func.insts[i];
        // What a stage gives is in no memory.
        if d.op.effect() != Effect::Write || matches!(d.op, Op::Output | Op::EmitVertex | Op::EndPrimitive) {
            return 0;
        }
        if let Imm::Barrier(b) = d.imm {
            return self.addr.fenced(&self.m.vars, b);
        }
        match self.addr.access(&self.m.func, d) {
            Some((Class::Id(c), ..)) => 1 << c,
            Some((Class::Constant, ..)) => 0,
            None => u64::MAX,
        }
    }

    /// For every loop header the classes that its loop writes.
    fn written_by_loop(&mut self, g: &Graph, loops: &Loops) -> FxHashMap<Block, u64> {
        let mut masks = vec![0u64; loops.list.len()];
        for at in 0..self.m.func.layout.len() {
            let b = self.m.func.layout[at];
            let Some(l) = loops.innermost(g.pos[b]) else { continue };
            for n in 0..self.m.func.blocks[b].insts.len() {
                let i = self.m.func.blocks[b].insts[n];
                masks[l as usize] |= self.writes_of(i);
            }
        }
        for l in (0..masks.len()).rev() {
            if let Some(p) = loops.list[l].parent {
                masks[p as usize] |= masks[l];
            }
        }
        loops.list.iter().zip(masks).map(|(l, m)| (l.header, m)).collect()
    }

    /// The state of memory at the entry of a block.
    fn enter(&mut self, g: &Graph, b: Block, ends: &[ClassState], written: &FxHashMap<Block, u64>) {
        let n = self.state.len();
        let end = |b: Block| &ends[b.index() * n..][..n];
        let mut preds = g.preds(b).iter().filter(|e| !g.is_back(e.from, b)).map(|e| e.from);
        let Some(first) = preds.next() else { return };
        self.state.copy_from_slice(end(first));
        let mut forget = written.get(&b).copied().unwrap_or(0);
        for other in preds {
            for (c, (x, y)) in self.state.iter().zip(end(other)).enumerate() {
                forget |= ((x != y) as u64) << c;
            }
        }
        self.forget(forget);
    }

    /// Memory of these classes may hold anything now.
    fn forget(&mut self, mut classes: u64) {
        if classes == 0 {
            return;
        }
        self.stores += 1;
        while classes != 0 {
            let c = classes.trailing_zeros() as usize;
            classes &= classes - 1;
            if c >= self.state.len() {
                break;
            }
            self.state[c] = ClassState { root: Root::MAX, last: self.stores, other: self.stores };
        }
    }

    /// Conditions that hold in `b` because of the branch that leads here.
    fn learn(&mut self, g: &Graph, b: Block) {
        let Some(e) = g.single_pred(b) else { return };
        let Term::Branch { cond, then, els } = &self.m.func.blocks[e.from].term else { return };
        if then.block == els.block {
            return;
        }
        let cond = self.subst.get(*cond);
        self.fact(b, cond, e.slot == 0, FACT_DEPTH);
    }

    fn fact(&mut self, b: Block, cond: Value, holds: bool, depth: u32) {
        if self.m.func.as_const(cond).is_some() {
            return;
        }
        self.facts.entry(cond).or_default().push((b, holds));
        if depth == 0 {
            return;
        }
        let Some(i) = self.m.func.def_inst(cond) else { return };
        let d = &self.m.func.insts[i];
        let (op, args) = (d.op, d.args.clone());
        match (op, holds) {
            (Op::Not, _) => self.fact(b, args[0], !holds, depth - 1),
            (Op::And, true) | (Op::Or, false) => {
                self.fact(b, args[0], holds, depth - 1);
                self.fact(b, args[1], holds, depth - 1);
            }
            _ => {}
        }
    }

    /// The value of a condition in block `b`, if the way there decided it.
    fn decided(&self, b: Block, v: Value) -> Option<bool> {
        let facts = self.facts.get(&v)?;
        facts.iter().rev().find(|(at, _)| self.dom.dominates(*at, b)).map(|&(_, holds)| holds)
    }

    fn bool_const(&mut self, k: bool) -> Value {
        if let Some(v) = self.bools[k as usize] {
            return v;
        }
        let i = self.m.func.make_inst(
            InstData {
                op: Op::Const,
                ty: Type::Bool,
                flags: Flags::NONE,
                imm: Imm::Int(k as u64),
                args: smallvec![],
                results: smallvec![],
                loc: Loc(0),
            },
            &[Type::Bool],
        );
        self.bool_insts.push(i);
        let v = self.m.func.insts[i].results[0];
        self.bools[k as usize] = Some(v);
        v
    }

    /// What an operand is in block `b`.
    fn operand(&mut self, b: Block, v: Value) -> Value {
        let v = self.subst.get(v);
        if !self.facts.is_empty()
            && self.m.func.ty(v) == Type::Bool
            && let Some(k) = self.decided(b, v)
        {
            self.changed = true;
            return self.bool_const(k);
        }
        v
    }

    fn block(&mut self, b: Block) {
        let old = std::mem::take(&mut self.m.func.blocks[b].insts);
        self.out = Vec::with_capacity(old.len());
        for i in old {
            for n in 0..self.m.func.insts[i].args.len() {
                let a = self.m.func.insts[i].args[n];
                let new = self.operand(b, a);
                self.m.func.insts[i].args[n] = new;
            }
            self.inst(b, i);
        }
        self.m.func.blocks[b].insts = std::mem::take(&mut self.out);
        let mut term = std::mem::replace(&mut self.m.func.blocks[b].term, Term::Unreachable);
        let edge_facts = match &mut term {
            Term::Branch { cond, then, els } => {
                *cond = self.operand(b, *cond);
                (then.block != els.block).then_some(*cond)
            }
            _ => None,
        };
        for (slot, t) in term.targets_mut().enumerate() {
            for a in t.args.iter_mut() {
                *a = self.operand(b, *a);
                // The condition itself, passed along its own branch.
                if edge_facts == Some(*a) && self.m.func.as_const(*a).is_none() {
                    *a = self.bool_const(slot == 0);
                    self.changed = true;
                }
            }
        }
        self.m.func.blocks[b].term = term;
    }

    fn inst(&mut self, b: Block, i: Inst) {
        let d = &self.m.func.insts[i];
        match d.op.effect() {
            Effect::Pure | Effect::Constant if d.results.len() == 1 => self.pure(b, i),
            Effect::Read => self.load(b, i),
            Effect::Write => self.write(b, i),
            _ => self.out.push(i),
        }
    }

    fn pure(&mut self, b: Block, i: Inst) {
        let d = &self.m.func.insts[i];
        let mut args = d.args.clone();
        if d.op.is_commutative() && args.len() == 2 && args[0] > args[1] {
            args.swap(0, 1);
        }
        let key = Key { op: d.op, ty: d.ty, imm: d.imm, args };
        if let Some(&leader) = self.exprs.get(&key)
            && self.dom.dominates(self.def_block[leader.index()], b)
        {
            let (v, flags) = (d.results[0], d.flags);
            let l = &mut self.m.func.insts[leader];
            l.flags = merge_flags(l.flags, flags);
            let to = l.results[0];
            self.subst.set(v, to);
            return;
        }
        self.def_block[i.index()] = b;
        self.exprs.insert(key, i);
        self.out.push(i);
    }

    /// The component that memory is known to hold.
    fn lookup(&self, b: Block, class: Class, root: Root, offset: u32, ty: Type) -> Option<Held> {
        let h = *self.held.get(&(root, offset, ty.bytes()))?;
        if !self.dom.dominates(h.block, b) {
            return None;
        }
        let Class::Id(c) = class else { return Some(h) };
        let s = self.state[c as usize];
        let others = if s.root == root { s.other } else { s.last };
        if others > h.since {
            return None;
        }
        let touched =
            words(offset, ty.bytes()).any(|w| self.words.get(&(root, w)).is_some_and(|&n| n > h.since));
        (!touched).then_some(h)
    }

    fn load(&mut self, b: Block, i: Inst) {
        let d = &self.m.func.insts[i];
        let (ty, loc, results) = (d.ty, d.loc, d.results.clone());
        let volatile = matches!(d.imm, Imm::Mem(mem) if mem.volatile);
        let Some((class, root, offset)) = self.addr.access(&self.m.func, d) else {
            self.out.push(i);
            return;
        };
        if volatile {
            self.out.push(i);
            return;
        }
        let at = |k: usize| offset.wrapping_add(k as u32 * ty.bytes());
        let held: SmallVec<[Option<Held>; 4]> = (0..results.len())
            .map(|k| {
                self.lookup(b, class, root, at(k), ty)
                    .filter(|h| h.ty == ty || h.ty != Type::Bool && ty != Type::Bool)
            })
            .collect();
        if held.iter().all(|h| h.is_some()) {
            for (v, h) in results.into_iter().zip(held.into_iter().flatten()) {
                let to = if h.ty == ty {
                    h.value
                } else {
                    let cast = InstData {
                        op: Op::Bitcast,
                        ty,
                        flags: Flags::NONE,
                        imm: Imm::None,
                        args: smallvec![h.value],
                        results: smallvec![],
                        loc,
                    };
                    let c = self.m.func.make_inst(cast, &[ty]);
                    self.def_block.resize(self.m.func.insts.len(), b);
                    let v = self.m.func.insts[c].results[0];
                    self.pure(b, c);
                    self.subst.get(v)
                };
                self.subst.set(v, to);
            }
            return;
        }
        for (k, v) in results.into_iter().enumerate() {
            // Keep an older entry that still holds: it dominates more.
            if held[k].is_none_or(|h| h.ty != ty) {
                let h = Held { value: v, ty, block: b, since: self.stores };
                self.held.insert((root, at(k), ty.bytes()), h);
            }
        }
        self.out.push(i);
    }

    fn write(&mut self, b: Block, i: Inst) {
        let d = &self.m.func.insts[i];
        let volatile = matches!(d.imm, Imm::Mem(mem) if mem.volatile);
        let access = self.addr.access(&self.m.func, d);
        let (Op::Store, Some((Class::Id(c), root, offset)), false) = (d.op, access, volatile) else {
            let mask = self.writes_of(i);
            self.forget(mask);
            self.out.push(i);
            return;
        };
        let (ty, data): (Type, SmallVec<[Value; 4]>) = (d.ty, d.args[1..].iter().copied().collect());
        let at = |k: usize| offset.wrapping_add(k as u32 * ty.bytes());
        let same = (0..data.len()).all(|k| {
            self.lookup(b, Class::Id(c), root, at(k), ty).is_some_and(|h| h.ty == ty && h.value == data[k])
        });
        if same {
            self.changed = true;
            return;
        }
        self.stores += 1;
        let s = &mut self.state[c as usize];
        if s.root != root {
            s.other = s.last;
            s.root = root;
        }
        s.last = self.stores;
        for (k, &v) in data.iter().enumerate() {
            for w in words(at(k), ty.bytes()) {
                self.words.insert((root, w), self.stores);
            }
            self.held.insert((root, at(k), ty.bytes()), Held { value: v, ty, block: b, since: self.stores });
        }
        self.out.push(i);
    }
}

/// The words that a range of bytes touches.
fn words(offset: u32, bytes: u32) -> impl Iterator<Item = u32> {
    let first = offset / 4;
    let n = offset.wrapping_add(bytes - 1).wrapping_sub(first * 4) / 4 + 1;
    (0..n).map(move |k| first.wrapping_add(k) & (u32::MAX / 4))
}

/// Facts that hold for an instruction that stands for two.
fn merge_flags(a: Flags, b: Flags) -> Flags {
    let strict = Flags::NO_CONTRACTION.0;
    Flags(a.0 & b.0 & !strict | (a.0 | b.0) & strict)
}
