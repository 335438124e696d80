//! Vertices that a geometry shader gives, made explicit: how many there are, and whether the next one begins a primitive, are private
//! variables that become values; a vertex beyond the most that was declared is not given. `emit_vertex` has the two as operands
//! afterwards, and the number of vertices is the one output at the end, in row 0 (reference 12.3).
//!
//! Left out: streams other than 0, which only transform feedback would see.

use kempe_ir::io::{IoImm, Slot};
use kempe_ir::primitive::OutputPrimitive;
use kempe_ir::{
    Block, Imm, InstData, Loc, MemImm, Module, Op, Space, Target, Term, Type, Value, Var, Variable,
};
use smallvec::smallvec;

/// Appends to a block.
struct Writer<'a> {
    m: &'a mut Module,
    block: Block,
    loc: Loc,
}

impl Writer<'_> {
    fn inst(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value], results: &[Type]) -> Option<Value> {
        let data = InstData::new(op, ty, imm, args, self.loc);
        let i = self.m.func.make_inst(data, results);
        self.m.func.blocks[self.block].insts.push(i);
        self.m.func.insts[i].results.first().copied()
    }

    fn one(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value]) -> Value {
        let result = if op.is_compare() { Type::Bool } else { ty };
        // An instruction that was asked for a result has one.
        self.inst(op, ty, imm, args, &[result]).unwrap_or(Value(u32::MAX))
    }

    fn constant(&mut self, n: u32) -> Value {
        self.one(Op::Const, Type::I32, Imm::Int(n.into()), &[])
    }

    fn load(&mut self, var: Var) -> Value {
        let at = self.one(Op::VarAddr, Type::Ptr(Space::Private), Imm::Var(var), &[]);
        self.one(Op::Load, Type::I32, Imm::Mem(WORD), &[at])
    }

    fn store(&mut self, var: Var, v: Value) {
        let at = self.one(Op::VarAddr, Type::Ptr(Space::Private), Imm::Var(var), &[]);
        self.inst(Op::Store, Type::I32, Imm::Mem(WORD), &[at, v], &[]);
    }
}

const WORD: MemImm = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };

pub(super) fn run(m: &mut Module) {
    let mut variable = || {
        let data = Variable { space: Space::Private, size: 4, align: 4, name: String::new() };
        m.vars.push(data)
    };
    let (count, start) = (variable(), variable());
    let Some(&entry) = m.func.layout.first() else { return };
    let body = std::mem::take(&mut m.func.blocks[entry].insts);
    let mut w = Writer { m, block: entry, loc: Loc(0) };
    let (zero, one) = (w.constant(0), w.constant(1));
    w.store(count, zero);
    w.store(start, one);
    m.func.blocks[entry].insts.extend(body);
    let mut at = 0;
    while let Some(&b) = m.func.layout.get(at) {
        split(m, b, at, count, start);
        at += 1;
    }
    let exit = m.func.add_block();
    for b in m.func.layout.clone() {
        if b != exit && m.func.blocks[b].term == Term::Return {
            m.func.blocks[b].term = Term::Jump(Target { block: exit, args: smallvec![] });
        }
    }
    let header = header_rows(m.primitive.vertices);
    let mut w = Writer { m, block: exit, loc: Loc(0) };
    let n = w.load(count);
    let half = w.constant(16);
    let n = w.one(Op::Shl, Type::I32, Imm::None, &[n, half]);
    let size = w.constant(header);
    let word = w.one(Op::Or, Type::I32, Imm::None, &[n, size]);
    w.inst(Op::Output, Type::I32, Imm::Io(IoImm::new(Slot::Row(0), 0)), &[word], &[]);
    m.func.blocks[exit].term = Term::Return;
    let reached = m.func.layout.iter().any(|&b| m.func.blocks[b].term.targets().any(|t| t.block == exit));
    if !reached {
        m.func.layout.retain(|&b| b != exit);
    }
    kempe_opt::ssa::run(m);
    // That one vertex is given tells the number of the next.
    for _ in 0..ROUNDS {
        if !(kempe_opt::fold::run(m) | kempe_opt::cfg::run(m)) {
            break;
        }
    }
    kempe_opt::gvn::run(m);
    kempe_opt::dce::run(m);
}

/// Vertices in a row whose place becomes known; those behind them are placed when the program runs.
const ROUNDS: u32 = 128;

/// Rows in front of the vertices: one for the program, one for each vertex.
pub(super) fn header_rows(vertices: u32) -> u32 {
    1 + vertices
}

/// Rewrites the first vertex of a block; what follows it becomes a block of its own, which is looked at next.
fn split(m: &mut Module, b: Block, at: usize, count: Var, start: Var) {
    let most = m.primitive.vertices;
    let points = m.primitive.output == OutputPrimitive::Points;
    let mut insts = std::mem::take(&mut m.func.blocks[b].insts).into_iter();
    while let Some(i) = insts.next() {
        let (op, loc) = (m.func.insts[i].op, m.func.insts[i].loc);
        match op {
            Op::EndPrimitive => {
                let mut w = Writer { m, block: b, loc };
                let one = w.constant(1);
                w.store(start, one);
            }
            // One with operands has been through here.
            Op::EmitVertex if m.func.insts[i].args.is_empty() => {
                let (given, rest) = (m.func.add_block_detached(), m.func.add_block_detached());
                m.func.blocks[rest].insts = insts.collect();
                m.func.blocks[rest].branch_hint = std::mem::take(&mut m.func.blocks[b].branch_hint);
                m.func.blocks[rest].term = std::mem::replace(&mut m.func.blocks[b].term, Term::Unreachable);
                m.func.blocks[rest].term_loc = m.func.blocks[b].term_loc;
                m.func.layout.splice(at + 1..at + 1, [given, rest]);
                let to = |block| Target { block, args: smallvec![] };
                let mut w = Writer { m, block: b, loc };
                let n = w.load(count);
                let limit = w.constant(most);
                let cond = w.one(Op::Ult, Type::I32, Imm::None, &[n, limit]);
                w.m.func.blocks[b].term = Term::Branch { cond, then: to(given), els: to(rest) };
                w.block = given;
                let begins = if points { w.constant(1) } else { w.load(start) };
                m.func.insts[i].args = smallvec![n, begins];
                m.func.blocks[given].insts.push(i);
                let mut w = Writer { m, block: given, loc };
                let (zero, one) = (w.constant(0), w.constant(1));
                let next = w.one(Op::Iadd, Type::I32, Imm::None, &[n, one]);
                w.store(count, next);
                w.store(start, zero);
                m.func.blocks[given].term = Term::Jump(to(rest));
                return;
            }
            _ => m.func.blocks[b].insts.push(i),
        }
    }
}
