//! Private variables to SSA values.
//!
//! Cells (see `cells`) become values: parameters go where the iterated dominance frontier of the stores says and the
//! cell is live (Cytron et al. 1991; pruned as Choi, Cytron & Ferrante 1991), then one walk of the dominator tree
//! replaces the loads. A cell that is read before it is written has an undefined value.
//!
//! An access that covers several cells (a 64-bit load of two 32-bit stores, a byte of a word) is put together by
//! shifts. An access outside the variable at a constant offset is an undefined value or nothing.

use crate::cells::{Accesses, Cells, inside};
use crate::graph::{Dom, Frontiers, Graph, edge_target_mut};
use crate::subst::Subst;
use kempe_ir::*;
use smallvec::SmallVec;

const NONE: Value = Value(u32::MAX);

pub fn run(m: &mut Module) -> bool {
    let private = |d: &InstData| d.op == Op::VarAddr && d.ty == Type::Ptr(Space::Private);
    if !m.func.layout.iter().any(|&b| m.func.blocks[b].insts.iter().any(|&i| private(&m.func.insts[i]))) {
        return false;
    }
    let acc = Accesses::new(m);
    let cells = Cells::new(m, &acc);
    let mut any = false;
    for &b in &m.func.layout {
        any |= m.func.blocks[b].insts.iter().any(|&i| acc.constant_place(&m.func.insts[i]).is_some());
    }
    if !any {
        return false;
    }
    let g = Graph::new(&m.func);
    let dom = Dom::new(&m.func, &g);
    let phis = place_params(m, &acc, &cells, &g, &dom);
    rename(m, &acc, &cells, &g, &dom, &phis);
    true
}

/// The cells that get a parameter, by block: indices into [`Cells::list`], in the order of the new parameters.
struct Phis {
    by_block: Vec<Vec<u32>>,
    /// Number of parameters that the block had before.
    first: Vec<u16>,
}

fn place_params(m: &mut Module, acc: &Accesses, cells: &Cells, g: &Graph, dom: &Dom) -> Phis {
    let f = &mut m.func;
    let nc = cells.list.len();
    let nb = f.blocks.len();
    let mut phis = Phis { by_block: vec![Vec::new(); nb], first: vec![0; nb] };
    for &b in &f.layout {
        phis.first[b.index()] = f.blocks[b].params.len() as u16;
    }
    if f.layout.len() == 1 {
        return phis;
    }
    // Blocks that store to a cell, and blocks that load it before they store.
    let mut defs: Vec<(u32, Block)> = Vec::new();
    let mut uses: Vec<(u32, Block)> = Vec::new();
    let mut seen_def = vec![u32::MAX; nc];
    let mut seen_use = vec![u32::MAX; nc];
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            let Some((var, offset)) = acc.constant_place(d) else { continue };
            let Imm::Mem(mem) = d.imm else { continue };
            for k in 0..mem.count as i64 {
                for c in cells.of(var, offset + k * d.ty.bytes() as i64, d.ty) {
                    if seen_def[c] == b.0 {
                        continue;
                    }
                    if d.op == Op::Store {
                        seen_def[c] = b.0;
                        defs.push((c as u32, b));
                    } else if seen_use[c] != b.0 {
                        seen_use[c] = b.0;
                        uses.push((c as u32, b));
                    }
                }
            }
        }
    }
    if uses.is_empty() {
        return phis;
    }
    // Stable: blocks stay in layout order.
    defs.sort_by_key(|&(c, _)| c);
    uses.sort_by_key(|&(c, _)| c);
    let df = Frontiers::new(f, g, dom);
    let mut is_def = vec![u32::MAX; nb];
    let mut live_in = vec![u32::MAX; nb];
    let mut has_phi = vec![u32::MAX; nb];
    let mut work: Vec<Block> = Vec::new();
    let (mut di, mut ui) = (0, 0);
    for c in 0..nc as u32 {
        let d0 = di;
        while di < defs.len() && defs[di].0 == c {
            di += 1;
        }
        let u0 = ui;
        while ui < uses.len() && uses[ui].0 == c {
            ui += 1;
        }
        if d0 == di || u0 == ui {
            continue;
        }
        for &(_, b) in &defs[d0..di] {
            is_def[b.index()] = c;
        }
        work.clear();
        for &(_, b) in &uses[u0..ui] {
            live_in[b.index()] = c;
            work.push(b);
        }
        while let Some(b) = work.pop() {
            for e in g.preds(b) {
                if is_def[e.from.index()] != c && live_in[e.from.index()] != c {
                    live_in[e.from.index()] = c;
                    work.push(e.from);
                }
            }
        }
        work.extend(defs[d0..di].iter().map(|&(_, b)| b));
        while let Some(b) = work.pop() {
            for &x in df.of(b) {
                if live_in[x.index()] == c && has_phi[x.index()] != c {
                    has_phi[x.index()] = c;
                    phis.by_block[x.index()].push(c);
                    work.push(x);
                }
            }
        }
    }
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        for &c in &phis.by_block[b.index()] {
            f.add_param(b, cells.list[c as usize].ty);
        }
    }
    phis
}

struct Renamer<'a> {
    m: &'a mut Module,
    acc: &'a Accesses,
    cells: &'a Cells,
    /// Value of every cell at the point of the walk.
    current: Vec<Value>,
    /// What to restore when the walk leaves a block.
    undo: Vec<(u32, Value)>,
    subst: Subst,
    undefs: Vec<(Type, Value)>,
    undef_insts: Vec<Inst>,
}

fn rename(m: &mut Module, acc: &Accesses, cells: &Cells, g: &Graph, dom: &Dom, phis: &Phis) {
    let subst = Subst::new(&m.func);
    let mut r = Renamer {
        m,
        acc,
        cells,
        current: vec![NONE; cells.list.len()],
        undo: Vec::new(),
        subst,
        undefs: Vec::new(),
        undef_insts: Vec::new(),
    };
    let entry = r.m.func.layout[0];
    // Blocks to enter, or undo marks to fall back to.
    enum Step {
        Enter(Block),
        Leave(usize),
    }
    let mut work = vec![Step::Enter(entry)];
    while let Some(step) = work.pop() {
        match step {
            Step::Leave(mark) => {
                while r.undo.len() > mark {
                    if let Some((c, v)) = r.undo.pop() {
                        r.current[c as usize] = v;
                    }
                }
            }
            Step::Enter(b) => {
                work.push(Step::Leave(r.undo.len()));
                for (k, &c) in phis.by_block[b.index()].iter().enumerate() {
                    let p = r.m.func.blocks[b].params[phis.first[b.index()] as usize + k];
                    r.write(c as usize, p);
                }
                r.block(b);
                for slot in 0..r.m.func.blocks[b].term.targets().count() {
                    let e = crate::graph::Edge { from: b, slot: slot as u8 };
                    let to = crate::graph::edge_target(&r.m.func, e).block;
                    for &c in &phis.by_block[to.index()] {
                        let v = r.read(c as usize);
                        edge_target_mut(&mut r.m.func, e).args.push(v);
                    }
                }
                work.extend(dom.children(b).iter().rev().map(|&c| Step::Enter(c)));
            }
        }
    }
    let _ = g;
    let undefs = std::mem::take(&mut r.undef_insts);
    let mut subst = r.subst;
    m.func.blocks[entry].insts.splice(0..0, undefs);
    subst.apply(&mut m.func);
}

impl Renamer<'_> {
    fn write(&mut self, c: usize, v: Value) {
        self.name(c, v);
        self.undo.push((c as u32, self.current[c]));
        self.current[c] = v;
    }

    /// What is written to a variable goes by its name, for messages.
    fn name(&mut self, c: usize, v: Value) {
        let cell = self.cells.list[c];
        let var = &self.m.vars[Var(cell.var)];
        if var.name.is_empty() || self.m.func.names.contains_key(&v) {
            return;
        }
        let part = match (cell.offset / 4, var.size) {
            _ if cell.ty.bytes() >= var.size => String::new(),
            (word @ 0..4, ..=16) if cell.offset.is_multiple_of(4) => {
                format!(".{}", ["x", "y", "z", "w"][word as usize])
            }
            (word, _) => format!("[{word}]"),
        };
        let name = format!("{}{part}", var.name);
        self.m.func.names.insert(v, name);
    }

    fn read(&mut self, c: usize) -> Value {
        let v = self.current[c];
        if v != NONE { v } else { self.undef(self.cells.list[c].ty) }
    }

    fn undef(&mut self, ty: Type) -> Value {
        if let Some(&(_, v)) = self.undefs.iter().find(|&&(t, _)| t == ty) {
            return v;
        }
        let data = InstData {
            op: Op::Undef,
            ty,
            flags: Flags::NONE,
            imm: Imm::None,
            args: SmallVec::new(),
            results: SmallVec::new(),
            loc: Loc(0),
        };
        let i = self.m.func.make_inst(data, &[ty]);
        self.undef_insts.push(i);
        let v = self.m.func.insts[i].results[0];
        self.undefs.push((ty, v));
        v
    }

    fn block(&mut self, b: Block) {
        let insts = &self.m.func.blocks[b].insts;
        if !insts.iter().any(|&i| self.acc.constant_place(&self.m.func.insts[i]).is_some()) {
            return;
        }
        let old = std::mem::take(&mut self.m.func.blocks[b].insts);
        self.m.func.blocks[b].insts.reserve(old.len());
        for i in old {
            match self.acc.constant_place(&self.m.func.insts[i]) {
                None => self.m.func.blocks[b].insts.push(i),
                Some((var, offset)) => self.access(b, i, var, offset),
            }
        }
    }

    fn access(&mut self, b: Block, i: Inst, var: u32, offset: i64) {
        let d = &self.m.func.insts[i];
        let (op, ty, loc) = (d.op, d.ty, d.loc);
        let values: SmallVec<[Value; 4]> = if op == Op::Load {
            d.results.iter().copied().collect()
        } else {
            d.args[1..].iter().copied().collect()
        };
        for (k, v) in values.into_iter().enumerate() {
            let at = offset + k as i64 * ty.bytes() as i64;
            let there = inside(&self.m.vars[Var(var)], at, ty).is_some();
            let range = self.cells.of(var, at, ty);
            if op == Op::Load {
                let new = if there { self.gather(b, loc, range, at, ty) } else { self.undef(ty) };
                self.subst.set(v, new);
            } else if there {
                let v = self.subst.get(v);
                self.scatter(b, loc, range, at, ty, v);
            }
        }
    }

    /// The value of a component from its cells.
    fn gather(&mut self, b: Block, loc: Loc, range: std::ops::Range<usize>, at: i64, ty: Type) -> Value {
        if range.len() == 1 {
            let (v, from) = (self.read(range.start), self.cells.list[range.start].ty);
            return self.convert(b, loc, v, from, ty);
        }
        if range.clone().all(|c| self.current[c] == NONE) {
            return self.undef(ty);
        }
        let Some(wide) = Type::int(ty.bytes() * 8) else { return self.undef(ty) };
        let mut all: Option<Value> = None;
        for c in range {
            let (v, cell) = (self.read(c), self.cells.list[c]);
            let mut bld = Builder::new(&mut self.m.func, b);
            bld.loc = loc;
            let mut v = bld.op(Op::Zext, wide, &[v]);
            let shift = (cell.offset as i64 - at) as u32 * 8;
            if shift != 0 {
                let n = bld.i32(shift);
                v = bld.op(Op::Shl, wide, &[v, n]);
            }
            all = Some(match all {
                None => v,
                Some(a) => bld.op(Op::Or, wide, &[a, v]),
            });
        }
        match all {
            Some(v) => self.convert(b, loc, v, wide, ty),
            None => self.undef(ty),
        }
    }

    /// Writes a component to its cells.
    fn scatter(&mut self, b: Block, loc: Loc, range: std::ops::Range<usize>, at: i64, ty: Type, v: Value) {
        if range.len() == 1 {
            let to = self.cells.list[range.start].ty;
            let v = self.convert(b, loc, v, ty, to);
            self.write(range.start, v);
            return;
        }
        let Some(wide) = Type::int(ty.bytes() * 8) else { return };
        let v = self.convert(b, loc, v, ty, wide);
        for c in range {
            let cell = self.cells.list[c];
            let mut bld = Builder::new(&mut self.m.func, b);
            bld.loc = loc;
            let shift = (cell.offset as i64 - at) as u32 * 8;
            let mut piece = v;
            if shift != 0 {
                let n = bld.i32(shift);
                piece = bld.op(Op::Lshr, wide, &[piece, n]);
            }
            let piece = bld.op(Op::Trunc, cell.ty, &[piece]);
            self.write(c, piece);
        }
    }

    /// A value of one type as the bits of another of the same size in memory.
    fn convert(&mut self, b: Block, loc: Loc, v: Value, from: Type, to: Type) -> Value {
        if from == to {
            return v;
        }
        let mut bld = Builder::new(&mut self.m.func, b);
        bld.loc = loc;
        if from == Type::Bool {
            let (one, zero) = (bld.i32(1), bld.i32(0));
            let word = bld.select(v, one, zero);
            return self.convert(b, loc, word, Type::I32, to);
        }
        if to == Type::Bool {
            let word = self.convert(b, loc, v, from, Type::I32);
            let mut bld = Builder::new(&mut self.m.func, b);
            bld.loc = loc;
            let zero = bld.i32(0);
            return bld.op(Op::Ine, Type::I32, &[word, zero]);
        }
        bld.op(Op::Bitcast, to, &[v])
    }
}
