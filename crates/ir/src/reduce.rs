//! Makes a program that shows a defect small: the reducer of the fuzzers.
//!
//! A caller says what must stay true ("the simulator still computes something else"); the reducer tries edits and keeps
//! those that leave a well-formed module for which it is. Large edits come first (branches that go one way only, halves
//! of all side effects, halves of all operations), then smaller and smaller pieces, as in delta debugging (Zeller and
//! Hildebrandt, "Simplifying and isolating failure-inducing input", TSE 2002), again from the start until nothing
//! helps any more or the budget is spent. The result is what was reached; the order of edits is fixed.
//!
//! Left out: edits that add something (other than constants), and resources, whose numbers the inputs know.

use crate::analysis::Cfg;
use crate::entity::{Entity, Table};
use crate::module::*;
use crate::ops::{Effect, Op};
use crate::sample::{Lookup, coordinates};
use crate::types::Type;
use crate::verify::verify;
use smallvec::{SmallVec, smallvec};
use std::time::{Duration, Instant};

/// Where the reducer stops, whatever it could still do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Questions asked.
    pub steps: u32,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 20_000, time: Duration::from_secs(60) }
    }
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Reduced {
    pub module: Module,
    /// Questions asked.
    pub steps: u32,
    /// Nothing smaller was found; else a limit ended it.
    pub complete: bool,
}

/// Makes `m` smaller as long as `fails` holds. `fails` must hold for `m` itself, or nothing happens.
pub fn reduce(m: &Module, limits: &Limits, fails: &mut dyn FnMut(&Module) -> bool) -> Reduced {
    let mut r =
        Reducer { best: m.clone(), limits: *limits, start: Instant::now(), steps: 0, tidy: true, fails };
    if !r.ask(m) {
        return Reduced { module: m.clone(), steps: r.steps, complete: false };
    }
    // What nothing needs goes at once, unless it is what matters.
    r.tidy = r.attempt(|_| {}) || size(&tidied(m)) >= size(m);
    loop {
        let before = size(&r.best);
        r.workgroup();
        r.branches();
        r.effects();
        r.operations();
        r.params();
        r.operands();
        r.constants();
        r.lookups();
        r.facts();
        if r.spent() || size(&r.best) >= before {
            break;
        }
    }
    Reduced { complete: !r.spent(), module: r.best, steps: r.steps }
}

/// Goes down with every edit that is kept.
fn size(m: &Module) -> u64 {
    let f = &m.func;
    let mut n = m.workgroup_items() as u64 + m.vars.len() as u64;
    for &b in &f.layout {
        let block = &f.blocks[b];
        n += 8 + 4 * block.params.len() as u64;
        n += (block.loop_hint != LoopHint::None) as u64 + (block.branch_hint != BranchHint::None) as u64;
        n += 2 * block.term.targets().count() as u64;
        for &i in &block.insts {
            let d = &f.insts[i];
            n += match (d.op, d.imm) {
                (Op::Const, Imm::Int(0)) => 1,
                (Op::Const, Imm::Int(1)) => 2,
                (Op::Const, _) => 3,
                (_, Imm::Mem(mem)) => 8 + mem.volatile as u64 + mem.count as u64,
                (_, Imm::Sample(s)) => 8 + s.offset as u64 + s.mask.count_ones() as u64,
                (_, Imm::Image(i)) => 8 + i.volatile as u64 + i.mask.count_ones() as u64,
                _ => 8 + (d.flags != Flags::NONE) as u64,
            };
        }
    }
    n
}

struct Reducer<'a> {
    best: Module,
    limits: Limits,
    start: Instant,
    steps: u32,
    /// Unused values are removed after every edit.
    tidy: bool,
    fails: &'a mut dyn FnMut(&Module) -> bool,
}

impl Reducer<'_> {
    fn spent(&self) -> bool {
        self.steps >= self.limits.steps || self.start.elapsed() >= self.limits.time
    }

    fn ask(&mut self, m: &Module) -> bool {
        self.steps += 1;
        (self.fails)(m)
    }

    /// Tries an edit; true when it was kept.
    fn attempt(&mut self, edit: impl FnOnce(&mut Module)) -> bool {
        if self.spent() {
            return false;
        }
        let mut m = self.best.clone();
        edit(&mut m);
        clean(&mut m, self.tidy);
        if size(&m) >= size(&self.best) || verify(&m).is_err() || !self.ask(&m) {
            return false;
        }
        self.best = m;
        true
    }

    /// Tries an edit on parts of a list, from half of it down to single elements. `list` makes it anew after a change;
    /// what was refused is skipped by its position.
    fn pieces<T: Copy>(&mut self, list: impl Fn(&Module) -> Vec<T>, edit: impl Fn(&mut Module, &[T])) {
        let mut piece = list(&self.best).len().div_ceil(2).max(1);
        loop {
            let mut end = list(&self.best).len();
            while end > 0 && !self.spent() {
                // From the end: what uses comes before what is used.
                let all = list(&self.best);
                end = end.min(all.len());
                let from = end.saturating_sub(piece);
                let part: Vec<T> = all[from..end].to_vec();
                self.attempt(|m| edit(m, &part));
                end = from;
            }
            if piece == 1 || self.spent() {
                break;
            }
            piece = piece.div_ceil(2);
        }
    }

    fn workgroup(&mut self) {
        let [x, y, z] = self.best.workgroup_size;
        for size in [[1, 1, 1], [16, 1, 1], [x.max(1) * y.max(1) * z.max(1), 1, 1], [x / 2, y, z]] {
            if size.iter().all(|&s| s > 0) {
                self.attempt(|m| m.workgroup_size = size);
            }
        }
    }

    /// Branches that go to one side only.
    fn branches(&mut self) {
        for side in 0..2 {
            let list = |m: &Module| -> Vec<Block> {
                let branch = |b: &&Block| matches!(m.func.blocks[**b].term, Term::Branch { .. });
                m.func.layout.iter().filter(branch).copied().collect()
            };
            self.pieces(list, |m, part| {
                for &b in part {
                    let term = &mut m.func.blocks[b].term;
                    if let Term::Branch { then, els, .. } = term {
                        let to = if side == 0 { els.clone() } else { then.clone() };
                        *term = Term::Jump(to);
                    }
                }
            });
        }
        // The program ends here.
        let list = |m: &Module| m.func.layout.clone();
        self.pieces(list, |m, part| {
            if let [b] = part {
                m.func.blocks[*b].term = Term::Return;
            }
        });
    }

    /// Stores, atomics, barriers.
    fn effects(&mut self) {
        let list = |m: &Module| insts(m, |d| d.op.effect() == Effect::Write);
        self.pieces(list, drop_insts);
    }

    /// Everything else, replaced by zeros.
    fn operations(&mut self) {
        let list = |m: &Module| insts(m, |d| d.op != Op::Const && d.op.effect() != Effect::Write);
        self.pieces(list, drop_insts);
    }

    /// Parameters of blocks, replaced by zeros or by their first argument.
    fn params(&mut self) {
        let list = |m: &Module| -> Vec<(Block, Value)> {
            let f = &m.func;
            f.layout.iter().flat_map(|&b| f.blocks[b].params.iter().map(move |&p| (b, p))).collect()
        };
        self.pieces(list, |m, part| {
            for &(b, p) in part {
                let zero = constant(m, m.func.ty(p), 0);
                drop_param(&mut m.func, b, p, zero);
            }
        });
        self.pieces(list, |m, part| {
            for &(b, p) in part {
                let n = m.func.blocks[b].params.iter().position(|&q| q == p);
                let Some(n) = n else { continue };
                let f = &m.func;
                let to = f.layout.iter().flat_map(|&q| f.blocks[q].term.targets()).filter(|t| t.block == b);
                let arg = to.filter_map(|t| t.args.get(n).copied()).find(|&a| a != p);
                if let Some(arg) = arg {
                    drop_param(&mut m.func, b, p, arg);
                }
            }
        });
    }

    /// Operations replaced by one of their operands.
    fn operands(&mut self) {
        for n in 0..4 {
            let list = |m: &Module| {
                insts(m, |d| {
                    let arg = d.args.get(n).map(|&a| m.func.ty(a));
                    d.results.len() == 1 && arg == d.results.first().map(|&r| m.func.ty(r))
                })
            };
            self.pieces(list, |m, part| {
                for &i in part {
                    let d = &m.func.insts[i];
                    if let (Some(&r), Some(&a)) = (d.results.first(), d.args.get(n)) {
                        replace(&mut m.func, r, a);
                    }
                }
            });
        }
    }

    fn constants(&mut self) {
        for bits in [0, 1] {
            let list = |m: &Module| insts(m, |d| d.op == Op::Const && d.imm != Imm::Int(bits));
            self.pieces(list, |m, part| {
                for &i in part {
                    m.func.insts[i].imm = Imm::Int(bits);
                }
            });
        }
    }

    /// Offsets of lookups, components that nobody uses.
    fn lookups(&mut self) {
        let list = |m: &Module| insts(m, |d| matches!(d.imm, Imm::Sample(s) if s.offset));
        self.pieces(list, |m, part| {
            for &i in part {
                let d = &mut m.func.insts[i];
                let Imm::Sample(s) = &mut d.imm else { continue };
                let Some(info) = m.resources.get(s.res).and_then(|r| r.image) else { continue };
                s.offset = false;
                let left = d.args.len().saturating_sub(coordinates(info.dim));
                d.args.truncate(left);
            }
        });
        let list = |m: &Module| {
            insts(m, |d| {
                let color = matches!(d.imm, Imm::Sample(s) if s.lookup == Lookup::Color);
                (color || d.op == Op::ImageLoad) && d.results.len() > 1
            })
        };
        self.pieces(list, |m, part| {
            let used = used_values(&m.func);
            for &i in part {
                let d = &mut m.func.insts[i];
                let mask = match &mut d.imm {
                    Imm::Sample(s) => &mut s.mask,
                    Imm::Image(s) => &mut s.mask,
                    _ => continue,
                };
                let kept: Vec<bool> = d.results.iter().map(|&r| used[r]).collect();
                if !kept.contains(&true) {
                    continue;
                }
                let mut kept_bits = kept.iter();
                for k in 0..8 {
                    if *mask >> k & 1 != 0 && kept_bits.next() == Some(&false) {
                        *mask &= !(1 << k);
                    }
                }
                let mut at = kept.iter();
                d.results.retain(|_| at.next() == Some(&true));
            }
        });
    }

    /// Hints, flags, volatile accesses, modes.
    fn facts(&mut self) {
        let list = |m: &Module| m.func.layout.clone();
        self.pieces(list, |m, part| {
            for &b in part {
                m.func.blocks[b].loop_hint = LoopHint::None;
                m.func.blocks[b].branch_hint = BranchHint::None;
            }
        });
        let list = |m: &Module| insts(m, |_| true);
        self.pieces(list, |m, part| {
            for &i in part {
                let d = &mut m.func.insts[i];
                d.flags = Flags::NONE;
                match &mut d.imm {
                    Imm::Mem(mem) => mem.volatile = false,
                    Imm::Image(image) => image.volatile = false,
                    _ => {}
                }
            }
        });
    }
}

fn insts(m: &Module, wanted: impl Fn(&InstData) -> bool) -> Vec<Inst> {
    let f = &m.func;
    f.layout
        .iter()
        .flat_map(|&b| f.blocks[b].insts.iter().copied())
        .filter(|&i| wanted(&f.insts[i]))
        .collect()
}

fn replace(f: &mut Function, from: Value, to: Value) {
    for n in 0..f.layout.len() {
        let b = f.layout[n];
        for k in 0..f.blocks[b].insts.len() {
            let i = f.blocks[b].insts[k];
            for a in f.insts[i].args.iter_mut().filter(|a| **a == from) {
                *a = to;
            }
        }
        let term = &mut f.blocks[b].term;
        if let Term::Branch { cond, .. } = term
            && *cond == from
        {
            *cond = to;
        }
        for a in term.targets_mut().flat_map(|t| t.args.iter_mut()).filter(|a| **a == from) {
            *a = to;
        }
    }
}

/// A constant at the start of the program.
fn constant(m: &mut Module, ty: Type, bits: u64) -> Value {
    let f = &mut m.func;
    let entry = f.layout[0];
    let data = InstData {
        op: Op::Const,
        ty,
        flags: Flags::NONE,
        imm: Imm::Int(bits),
        args: smallvec![],
        results: smallvec![],
        loc: Loc(0),
    };
    let i = f.make_inst(data, &[ty]);
    f.blocks[entry].insts.insert(0, i);
    f.insts[i].results[0]
}

/// Removes instructions; what used their results gets zeros.
fn drop_insts(m: &mut Module, part: &[Inst]) {
    for &i in part {
        for r in m.func.insts[i].results.clone() {
            let ty = m.func.ty(r);
            if !ty.is_ptr() {
                let zero = constant(m, ty, 0);
                replace(&mut m.func, r, zero);
            }
        }
    }
    // An address that is still used stays.
    let used = used_values(&m.func);
    let f = &m.func;
    let gone: std::collections::BTreeSet<Inst> = part
        .iter()
        .copied()
        .filter(|&i| !f.insts[i].results.iter().any(|&r| f.ty(r).is_ptr() && used[r]))
        .collect();
    for n in 0..m.func.layout.len() {
        let b = m.func.layout[n];
        m.func.blocks[b].insts.retain(|i| !gone.contains(i));
    }
}

fn drop_param(f: &mut Function, block: Block, param: Value, with: Value) {
    let Some(n) = f.blocks[block].params.iter().position(|&p| p == param) else { return };
    replace(f, param, with);
    remove_param(f, block, n);
}

fn remove_param(f: &mut Function, block: Block, n: usize) {
    f.blocks[block].params.remove(n);
    for (k, &p) in f.blocks[block].params.iter().enumerate() {
        f.values[p].def = ValueDef::Param(block, k as u16);
    }
    for k in 0..f.layout.len() {
        let b = f.layout[k];
        for t in f.blocks[b].term.targets_mut().filter(|t| t.block == block) {
            if n < t.args.len() {
                t.args.remove(n);
            }
        }
    }
}

/// Removes what nothing needs: unreachable blocks, unused values, seams between blocks, variables; numbers everything
/// anew.
fn clean(m: &mut Module, unused: bool) {
    let f = &mut m.func;
    let mut reached = Table::new(f.blocks.len(), false);
    let mut work = vec![f.layout[0]];
    while let Some(b) = work.pop() {
        if !std::mem::replace(&mut reached[b], true) {
            work.extend(f.blocks[b].term.targets().map(|t| t.block));
        }
    }
    f.layout.retain(|&b| reached[b]);
    merge_blocks(f);
    while drop_unused(f, unused) {}
    renumber(m);
}

fn tidied(m: &Module) -> Module {
    let mut m = m.clone();
    clean(&mut m, true);
    m
}

/// A block that only its neighbour jumps to becomes part of it.
fn merge_blocks(f: &mut Function) {
    let mut n = 0;
    while n + 1 < f.layout.len() {
        let (a, b) = (f.layout[n], f.layout[n + 1]);
        let single =
            f.layout.iter().flat_map(|&q| f.blocks[q].term.targets()).filter(|t| t.block == b).count();
        let args = match &f.blocks[a].term {
            Term::Jump(t) if t.block == b && single == 1 => t.args.clone(),
            _ => {
                n += 1;
                continue;
            }
        };
        let params: SmallVec<[Value; 4]> = std::mem::take(&mut f.blocks[b].params);
        let insts = std::mem::take(&mut f.blocks[b].insts);
        let term = std::mem::replace(&mut f.blocks[b].term, Term::Unreachable);
        f.blocks[a].insts.extend(insts);
        f.blocks[a].term = term;
        f.blocks[a].branch_hint = f.blocks[b].branch_hint;
        f.layout.remove(n + 1);
        for (p, v) in params.into_iter().zip(args) {
            replace(f, p, v);
        }
    }
}

fn used_values(f: &Function) -> Table<Value, bool> {
    let mut used = Table::new(f.values.len(), false);
    for &b in &f.layout {
        let block = &f.blocks[b];
        for &i in &block.insts {
            for &a in &f.insts[i].args {
                used[a] = true;
            }
        }
        if let Term::Branch { cond, .. } = block.term {
            used[cond] = true;
        }
        for t in block.term.targets() {
            for &a in &t.args {
                used[a] = true;
            }
        }
    }
    used
}

/// One round over unused constants, or over everything that is unused.
fn drop_unused(f: &mut Function, all: bool) -> bool {
    let used = used_values(f);
    let mut changed = false;
    for k in 0..f.layout.len() {
        let b = f.layout[k];
        let mut list = std::mem::take(&mut f.blocks[b].insts);
        let before = list.len();
        list.retain(|&i| {
            let d = &f.insts[i];
            let kept = d.op.effect() == Effect::Write || !all && d.op != Op::Const;
            kept || d.results.iter().any(|&r| used[r])
        });
        changed |= list.len() != before;
        f.blocks[b].insts = list;
        for n in (0..f.blocks[b].params.len()).rev() {
            if all && !used[f.blocks[b].params[n]] {
                remove_param(f, b, n);
                changed = true;
            }
        }
    }
    changed
}

/// Ids in order of the layout, without gaps; variables that nothing names are dropped.
fn renumber(m: &mut Module) {
    let old = std::mem::take(&mut m.func);
    let mut new = Function::default();
    let mut block_of = Table::new(old.blocks.len(), Block(0));
    for &b in &old.layout {
        block_of[b] = new.add_block();
    }
    let mut value_of = Table::new(old.values.len(), Value(0));
    let mut vars: Vec<Option<Var>> = vec![None; m.vars.len()];
    let mut kept = crate::entity::Arena::new();
    // All values first: a loop uses some before they are made.
    for &b in &old.layout {
        for &p in &old.blocks[b].params {
            value_of[p] = new.add_param(block_of[b], old.ty(p));
        }
        for &i in &old.blocks[b].insts {
            let mut d = old.insts[i].clone();
            if let Imm::Var(v) = &mut d.imm {
                let at = v.index();
                let to = *vars[at].get_or_insert_with(|| kept.push(m.vars[*v].clone()));
                *v = to;
            }
            let types: SmallVec<[Type; 4]> = d.results.iter().map(|&r| old.ty(r)).collect();
            let j = new.make_inst(d, &types);
            for (k, &r) in old.insts[i].results.iter().enumerate() {
                value_of[r] = new.insts[j].results[k];
            }
            new.blocks[block_of[b]].insts.push(j);
        }
    }
    for i in new.insts.values_mut() {
        for a in &mut i.args {
            *a = value_of[*a];
        }
    }
    for &b in &old.layout {
        let from = &old.blocks[b];
        let mut term = from.term.clone();
        if let Term::Branch { cond, .. } = &mut term {
            *cond = value_of[*cond];
        }
        for t in term.targets_mut() {
            t.block = block_of[t.block];
            for a in &mut t.args {
                *a = value_of[*a];
            }
        }
        let to = &mut new.blocks[block_of[b]];
        to.term = term;
        to.loop_hint = from.loop_hint;
        to.branch_hint = from.branch_hint;
    }
    // A hint of a loop belongs to its header only.
    let cfg = Cfg::new(&new);
    for p in 0..new.layout.len() as u32 {
        if cfg.loop_at(p).is_none() {
            let b = new.layout[p as usize];
            new.blocks[b].loop_hint = LoopHint::None;
        }
    }
    m.vars = kept;
    m.func = new;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};

    fn count(m: &Module, op: Op) -> usize {
        insts(m, |d| d.op == op).len()
    }

    /// Two operations somewhere in a program of hundreds are found.
    #[test]
    fn what_matters_is_left() {
        let mut shrunk = 0;
        for seed in 0..40 {
            let m = generate(seed, &Shape { narrow_and_wide: false, ..Shape::from_seed(seed) });
            let mut fails = |m: &Module| count(m, Op::Umulhi) > 0 && count(m, Op::Select) > 0;
            let r = reduce(&m, &Limits::default(), &mut fails);
            verify(&r.module).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
            if !fails(&m) {
                assert_eq!(r.module, m);
                continue;
            }
            assert!(r.complete && fails(&r.module), "seed {seed}");
            // Both of them, something that uses each, the end.
            let left = insts(&r.module, |d| d.op != Op::Const).len();
            assert!(
                left <= 6,
                "seed {seed}: {left} of {} operations\n{}",
                count(&m, Op::Iadd),
                crate::text::print(&r.module)
            );
            assert!(r.module.func.layout.len() <= 3, "seed {seed}\n{}", crate::text::print(&r.module));
            assert_eq!(r.module.workgroup_items(), 1);
            shrunk += 1;
        }
        assert!(shrunk > 10, "{shrunk}");
    }

    /// A derivative that reaches an output, and a helper.
    #[test]
    fn graphics_programs_become_small() {
        let (mut shrunk, mut lookups) = (0, 0);
        for seed in 0..80 {
            let m = generate(seed, &Shape::for_stage(seed, Stage::Fragment));
            let mut fails =
                |m: &Module| count(m, Op::Ddx) > 0 && count(m, Op::Demote) > 0 && count(m, Op::Sample) > 0;
            if !fails(&m) {
                continue;
            }
            let r = reduce(&m, &Limits::default(), &mut fails);
            verify(&r.module).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
            assert!(r.complete && fails(&r.module), "seed {seed}");
            let left = insts(&r.module, |d| d.op != Op::Const).len();
            assert!(left <= 8, "seed {seed}\n{}", crate::text::print(&r.module));
            for i in insts(&r.module, |d| d.op == Op::Sample) {
                lookups += matches!(r.module.func.insts[i].imm, Imm::Sample(s) if !s.offset) as u32;
            }
            shrunk += 1;
        }
        assert!(shrunk > 5 && lookups == shrunk, "{shrunk} {lookups}");
    }

    /// A loop that is needed stays a loop.
    #[test]
    fn structure_that_matters_is_left() {
        let m = generate(3, &Shape { divergent_loop: true, ..Shape::from_seed(3) });
        let mut fails = |m: &Module| {
            let cfg = Cfg::new(&m.func);
            cfg.loops.iter().any(|l| {
                (l.header..=l.last).any(|p| {
                    let b = m.func.layout[p as usize];
                    m.func.blocks[b].insts.iter().any(|&i| m.func.insts[i].op == Op::Store)
                })
            })
        };
        assert!(fails(&m));
        let r = reduce(&m, &Limits::default(), &mut fails);
        assert!(fails(&r.module));
        assert!(r.module.func.layout.len() <= 4, "{}", crate::text::print(&r.module));
        assert!(insts(&r.module, |_| true).len() <= 8, "{}", crate::text::print(&r.module));
    }

    #[test]
    fn limits_hold() {
        let m = generate(5, &Shape::from_seed(5));
        let mut asked = 0;
        let limits = Limits { steps: 7, ..Limits::default() };
        let r = reduce(&m, &limits, &mut |_| {
            asked += 1;
            true
        });
        assert_eq!((asked, r.steps, r.complete), (7, 7, false));
        let limits = Limits { time: Duration::ZERO, ..Limits::default() };
        assert_eq!(reduce(&m, &limits, &mut |_| true).steps, 1);
    }
}
