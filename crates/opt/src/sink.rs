//! Definitions to where they are used: into the nearest block that dominates all uses, but never into a loop.
//!
//! What only one side of a branch needs is then computed only there, and values do not stay alive across code that
//! has nothing to do with them. Loads of memory that never changes are moved as well. Blocks are visited from the last
//! to the first, so whole expression trees move with their roots.
//!
//! Where the uses run exactly as often as the definition, nothing is gained but registers in between, and only if no
//! more operands have to live on for it than the instruction has results. (Sums of products of what was loaded before
//! a barrier, added up after the next one, would keep all the products' factors instead of one sum each.)
//!
//! Order inside a block is left to the scheduler of the target.

use crate::alias::{Addresses, Class};
use crate::graph::{Dom, Graph, Loops};
use kempe_ir::*;

pub fn run(m: &mut Module) -> bool {
    if m.func.layout.len() < 2 {
        return false;
    }
    let g = Graph::new(&m.func);
    let dom = Dom::new(&m.func, &g);
    let loops = Loops::new(&m.func, &g);
    let addr = Addresses::new(m);
    let f = &mut m.func;
    // Position of the block that defines a value.
    let mut home = vec![0u32; f.values.len()];
    for (at, &b) in f.layout.iter().enumerate() {
        let results = f.blocks[b].insts.iter().flat_map(|&i| &f.insts[i].results);
        for v in f.blocks[b].params.iter().chain(results) {
            home[v.index()] = at as u32;
        }
    }
    let (values, blocks) = (f.values.len(), f.blocks.len());
    let mut s = Sink {
        f,
        g: &g,
        dom: &dom,
        loops: &loops,
        addr,
        needed: vec![None; values],
        last: vec![0; values],
        home,
        always: Always::new(blocks),
        undo: Vec::new(),
        parts: Parts::new(values),
    };
    // What goes to the head of a block, last first.
    let mut incoming: Vec<Vec<Inst>> = vec![Vec::new(); blocks];
    let mut changed = false;
    for at in (0..s.f.layout.len()).rev() {
        let b = s.f.layout[at];
        s.always.at = at as u32;
        s.terminator(b);
        let to = s.block(b);
        let insts = std::mem::take(&mut s.f.blocks[b].insts);
        let mut stay: Vec<Inst> = Vec::with_capacity(insts.len());
        for (&i, &to) in insts.iter().zip(&to).rev() {
            if to == b {
                stay.push(i);
            } else {
                incoming[to.index()].push(i);
                changed = true;
            }
        }
        stay.reverse();
        s.f.blocks[b].insts = stay;
    }
    if changed {
        for at in 0..f.layout.len() {
            let b = f.layout[at];
            let new = std::mem::take(&mut incoming[b.index()]);
            f.blocks[b].insts.splice(0..0, new.into_iter().rev());
        }
    }
    changed
}

struct Sink<'a> {
    f: &'a mut Function,
    g: &'a Graph,
    dom: &'a Dom,
    loops: &'a Loops,
    addr: Addresses,
    /// The block that dominates all uses seen so far.
    needed: Vec<Option<Block>>,
    /// Position of the last block that uses a value, among those seen so far.
    last: Vec<u32>,
    /// Position of the block that defines a value.
    home: Vec<u32>,
    always: Always,
    /// Values of `needed` and `last` before the first look at the block at hand.
    undo: Vec<(Value, Option<Block>, u32)>,
    parts: Parts,
}

impl Sink<'_> {
    fn need(&mut self, v: Value, b: Block) {
        let n = &mut self.needed[v.index()];
        *n = Some(n.map_or(b, |a| self.dom.common(a, b)));
        let last = &mut self.last[v.index()];
        *last = (*last).max(self.g.pos[b]);
    }

    fn terminator(&mut self, b: Block) {
        let term = std::mem::replace(&mut self.f.blocks[b].term, Term::Unreachable);
        if let Term::Branch { cond, .. } = term {
            self.need(cond, b);
        }
        for t in term.targets() {
            for &a in &t.args {
                self.need(a, b);
            }
        }
        self.f.blocks[b].term = term;
    }

    /// Where the instructions of a block go.
    fn block(&mut self, b: Block) -> Vec<Block> {
        self.undo.clear();
        let insts = self.f.blocks[b].insts.clone();
        let mut to = vec![b; insts.len()];
        // As if everything moved that can, to see what moves together.
        let mut doubtful: Vec<usize> = Vec::new();
        for n in (0..insts.len()).rev() {
            to[n] = self.destination(b, insts[n]);
            if to[n] != b && self.is_doubtful(b, to[n]) {
                doubtful.push(n);
            }
            for k in 0..self.f.insts[insts[n]].args.len() {
                let a = self.f.insts[insts[n]].args[k];
                self.undo.push((a, self.needed[a.index()], self.last[a.index()]));
                self.need(a, to[n]);
            }
        }
        if doubtful.is_empty() {
            return to;
        }
        while let Some((v, needed, last)) = self.undo.pop() {
            self.needed[v.index()] = needed;
            self.last[v.index()] = last;
        }
        let pays = self.parts_that_pay(&insts, &doubtful, &to);
        // Once more; what does not pay together may do so alone.
        for n in (0..insts.len()).rev() {
            let i = insts[n];
            to[n] = self.destination(b, i);
            if to[n] != b
                && self.is_doubtful(b, to[n])
                && !pays[n]
                && self.longer(i, to[n]).count() > self.f.insts[i].results.len()
            {
                to[n] = b;
            }
            for k in 0..self.f.insts[i].args.len() {
                self.need(self.f.insts[i].args[k], to[n]);
            }
        }
        to
    }

    /// A block that runs as often as `b`: only registers are to be gained.
    fn is_doubtful(&mut self, b: Block, to: Block) -> bool {
        self.loops.depth(self.g.pos[to]) == self.loops.depth(self.g.pos[b])
            && self.always.runs(self.f, self.g, to)
    }

    /// Operands of `i` that would have to live longer for it to move to `to`.
    fn longer(&self, i: Inst, to: Block) -> impl Iterator<Item = Value> {
        let args = &self.f.insts[i].args;
        // What comes from outside a loop lives all through it.
        let around = self.loops.innermost(self.g.pos[to]).map_or(0, |l| self.loops.list[l as usize].first);
        args.iter().enumerate().filter_map(move |(n, &a)| {
            let local = self.f.def_inst(a).is_some_and(|j| crate::localise::is_local(&self.f.insts[j]));
            let longer = !local
                && self.last[a.index()] < self.g.pos[to]
                && self.home[a.index()] >= around
                && !args[..n].contains(&a);
            longer.then_some(a)
        })
    }

    /// Instructions that share operands or use each other form a part; it pays where at least as many results are used outside
    /// of it as operands come from outside.
    fn parts_that_pay(&mut self, insts: &[Inst], doubtful: &[usize], to: &[Block]) -> Vec<bool> {
        let mut parts = std::mem::take(&mut self.parts);
        for &n in doubtful {
            for &r in &self.f.insts[insts[n]].results {
                parts.moves[r.index()] = true;
            }
        }
        for &n in doubtful {
            let i = insts[n];
            let first = self.f.insts[i].results[0];
            for &r in &self.f.insts[i].results {
                parts.join(first, r);
            }
            let inside = self.f.insts[i].args.iter().copied().filter(|a| parts.moves[a.index()]);
            let mut joined: Vec<Value> = inside.collect();
            joined.extend(self.longer(i, to[n]));
            for a in joined {
                parts.join(first, a);
                parts.touched.push(a);
            }
        }
        // One step of balance for every result that something else uses, and against every operand.
        for &n in doubtful {
            for &r in &self.f.insts[insts[n]].results {
                let root = parts.root(r);
                parts.balance[root.index()] += (self.needed[r.index()].is_some()) as i32;
            }
        }
        parts.touched.sort_unstable();
        parts.touched.dedup();
        for k in 0..parts.touched.len() {
            let a = parts.touched[k];
            if !parts.moves[a.index()] {
                let root = parts.root(a);
                parts.balance[root.index()] -= 1;
            }
        }
        let mut pays = vec![false; insts.len()];
        for &n in doubtful {
            let root = parts.root(self.f.insts[insts[n]].results[0]);
            pays[n] = parts.balance[root.index()] >= 0;
        }
        for &n in doubtful {
            for &r in &self.f.insts[insts[n]].results {
                parts.clear(r);
            }
        }
        while let Some(a) = parts.touched.pop() {
            parts.clear(a);
        }
        self.parts = parts;
        pays
    }

    fn destination(&mut self, b: Block, i: Inst) -> Block {
        let d = &self.f.insts[i];
        let movable = match d.op.effect() {
            Effect::Pure | Effect::Constant => true,
            Effect::Read => {
                !matches!(d.imm, Imm::Mem(mem) if mem.volatile)
                    && matches!(self.addr.access(self.f, d), Some((Class::Constant, ..)))
            }
            _ => false,
        };
        if !movable {
            return b;
        }
        let mut to: Option<Block> = None;
        for r in &d.results {
            if let Some(n) = self.needed[r.index()] {
                to = Some(to.map_or(n, |t| self.dom.common(t, n)));
            }
        }
        let Some(mut to) = to else { return b };
        // Out of the loops that the definition is not in.
        while let Some(l) = self.loops.innermost(self.g.pos[to]) {
            if self.loops.contains(l, self.g.pos[b]) {
                break;
            }
            to = self.dom.idom(self.loops.list[l as usize].header);
        }
        debug_assert!(self.dom.dominates(b, to));
        to
    }
}

/// A union-find over values.
#[derive(Default)]
struct Parts {
    up: Vec<Value>,
    moves: Vec<bool>,
    balance: Vec<i32>,
    touched: Vec<Value>,
}

impl Parts {
    fn new(values: usize) -> Parts {
        Parts {
            up: (0..values as u32).map(Value).collect(),
            moves: vec![false; values],
            balance: vec![0; values],
            touched: Vec::new(),
        }
    }

    fn root(&mut self, mut v: Value) -> Value {
        while self.up[v.index()] != v {
            self.up[v.index()] = self.up[self.up[v.index()].index()];
            v = self.up[v.index()];
        }
        v
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.root(a), self.root(b));
        self.up[a.max(b).index()] = a.min(b);
    }

    fn clear(&mut self, v: Value) {
        self.up[v.index()] = v;
        self.moves[v.index()] = false;
        self.balance[v.index()] = 0;
    }
}

/// Whether other blocks run whenever the block at hand does.
struct Always {
    at: u32,
    /// By position less `at`: does a way lead there?
    reached: Vec<bool>,
    /// By block: the answer, and for which block at hand.
    known: Vec<(u32, bool)>,
}

/// Blocks that are walked over to find that out; further away, it is taken not to be so.
const FAR: u32 = 512;

impl Always {
    fn new(blocks: usize) -> Always {
        Always { at: 0, reached: Vec::new(), known: vec![(u32::MAX, false); blocks] }
    }

    /// Does every way from the block at hand pass `to`, before it comes back?
    fn runs(&mut self, f: &Function, g: &Graph, to: Block) -> bool {
        let (at, known) = self.known[to.index()];
        if at == self.at {
            return known;
        }
        let result = self.sweep(f, g, g.pos[to]);
        self.known[to.index()] = (self.at, result);
        result
    }

    fn sweep(&mut self, f: &Function, g: &Graph, to: u32) -> bool {
        if to <= self.at || to - self.at > FAR {
            return false;
        }
        self.reached.clear();
        self.reached.resize((to - self.at) as usize, false);
        self.reached[0] = true;
        for pos in self.at..to {
            if !self.reached[(pos - self.at) as usize] {
                continue;
            }
            let term = &f.blocks[f.layout[pos as usize]].term;
            if term.targets().next().is_none() {
                return false;
            }
            for next in term.targets().map(|t| g.pos[t.block]) {
                if next > to || next <= self.at {
                    return false;
                }
                // (Back to a loop that begins after the block: it is left some time.)
                if next < to {
                    self.reached[(next - self.at) as usize] = true;
                }
            }
        }
        true
    }
}
