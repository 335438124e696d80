//! The end of a graphics program: one block in which everything is given.
//!
//! * A lane that is discarded need not leave the walk: it has no effect any more, so it may as well go on with the others, and no
//!   execution mask is needed from there on. That is done where nothing depends on it: outside of loops, for a block that one branch
//!   leads to.
//! * Every other way out goes to one block at the end, and outputs are given there and nowhere else. Front ends mostly write them
//!   so already; where they do not, outputs become private variables first.
//!
//! Left out: discards deeper inside of an arm, and in loops, which leave the walk as a return does.

use kempe_ir::analysis::{Cfg, NONE};
use kempe_ir::io::{IoImm, Slot};
use kempe_ir::{
    Block, Imm, InstData, Loc, MemImm, Module, Op, Space, Stage, Target, Term, Type, Value, ValueDef,
    Variable,
};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// Brings a graphics module into that form.
pub(super) fn run(m: &mut Module) {
    if m.stage == Stage::Fragment {
        go_on_after_discard(m);
    }
    outputs_at_the_end(m);
}

fn demotes(m: &Module, b: Block) -> bool {
    m.func.blocks[b].insts.iter().any(|&i| m.func.insts[i].op == Op::Demote)
}

fn go_on_after_discard(m: &mut Module) {
    let cfg = Cfg::new(&m.func);
    let order = m.func.layout.clone();
    let mut moved: Vec<(Block, Block)> = Vec::new();
    for (p, &b) in order.iter().enumerate() {
        if m.func.blocks[b].term != Term::Return || !demotes(m, b) || !m.func.blocks[b].params.is_empty() {
            continue;
        }
        let [q] = cfg.preds[p].as_slice() else { continue };
        if cfg.loop_of[*q as usize] != NONE || cfg.loop_of[p] != NONE {
            continue;
        }
        let Term::Branch { then, els, .. } = &m.func.blocks[order[*q as usize]].term else { continue };
        let other = if then.block == b { els.clone() } else { then.clone() };
        // The other side may be a discard itself, or the same block.
        if other.block == b || (m.func.blocks[other.block].term == Term::Return && demotes(m, other.block)) {
            continue;
        }
        // A loop is entered from one place.
        if cfg.loops.iter().any(|l| order[l.header as usize] == other.block) {
            continue;
        }
        if cfg.pos[other.block] < p as u32 {
            moved.push((b, order[*q as usize]));
        }
        m.func.blocks[b].term = Term::Jump(other);
    }
    for (b, behind) in moved {
        m.func.layout.retain(|&x| x != b);
        if let Some(at) = m.func.layout.iter().position(|&x| x == behind) {
            m.func.layout.insert(at + 1, b);
        }
    }
}

fn inst(
    m: &mut Module,
    b: Block,
    op: Op,
    ty: Type,
    imm: Imm,
    args: &[Value],
    results: &[Type],
) -> Option<Value> {
    let data = InstData::new(op, ty, imm, args, Loc(0));
    let i = m.func.make_inst(data, results);
    m.func.blocks[b].insts.push(i);
    m.func.insts[i].results.first().copied()
}

fn outputs_at_the_end(m: &mut Module) {
    let gives =
        |m: &Module, b: Block| m.func.blocks[b].insts.iter().any(|&i| m.func.insts[i].op == Op::Output);
    let givers: Vec<Block> = m.func.layout.iter().copied().filter(|&b| gives(m, b)).collect();
    let exit = match givers.as_slice() {
        [b] if m.func.blocks[*b].term == Term::Return => {
            let b = *b;
            m.func.layout.retain(|&x| x != b);
            m.func.layout.push(b);
            b
        }
        [] => m.func.add_block(),
        _ => collect(m),
    };
    let returns: Vec<Block> = m.func.layout.clone();
    let returns: Vec<Block> =
        returns.into_iter().filter(|&b| b != exit && m.func.blocks[b].term == Term::Return).collect();
    let only_outputs = m.func.blocks[exit].insts.iter().all(|&i| m.func.insts[i].op == Op::Output);
    let exit = match returns.is_empty() || givers.is_empty() {
        true => exit,
        false if only_outputs => {
            take_as_parameters(m, exit);
            exit
        }
        false => outputs_alone(m, exit),
    };
    for b in returns {
        let params = m.func.blocks[exit].params.clone();
        let masks = masks(m, exit);
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for p in params {
            let ty = m.func.ty(p);
            // A mask that is not given keeps all samples.
            args.extend(match masks.contains(&p) {
                true => inst(m, b, Op::Const, ty, Imm::Int(ty.mask()), &[], &[ty]),
                false => inst(m, b, Op::Undef, ty, Imm::None, &[], &[ty]),
            });
        }
        m.func.blocks[b].term = Term::Jump(Target { block: exit, args });
    }
    m.func.blocks[exit].term = Term::Return;
    if m.func.layout.first() == Some(&exit) && m.func.layout.len() == 1 {
        return;
    }
    // Nothing leads to the new end of a program that never ends.
    let reached = m.func.layout.iter().any(|&b| m.func.blocks[b].term.targets().any(|t| t.block == exit));
    if !reached {
        m.func.layout.retain(|&b| b != exit);
    }
}

/// The outputs of the last block in one of their own, whatever else that block does.
fn outputs_alone(m: &mut Module, b: Block) -> Block {
    let exit = m.func.add_block();
    let insts = std::mem::take(&mut m.func.blocks[b].insts);
    let (outputs, others) = insts.into_iter().partition(|&i| m.func.insts[i].op == Op::Output);
    (m.func.blocks[exit].insts, m.func.blocks[b].insts) = (outputs, others);
    m.func.blocks[b].term = Term::Jump(Target { block: exit, args: smallvec![] });
    m.func.blocks[exit].term = Term::Return;
    take_as_parameters(m, exit);
    exit
}

/// What a block without successors uses of others comes in as parameters, because ways to it will be added that those others do
/// not lie on.
fn take_as_parameters(m: &mut Module, b: Block) {
    let own = |m: &Module, v: Value| match m.func.values[v].def {
        ValueDef::Inst(i, _) => m.func.blocks[b].insts.contains(&i),
        ValueDef::Param(of, _) => of == b,
    };
    let mut taken: Vec<(Value, Value)> = Vec::new();
    for i in m.func.blocks[b].insts.clone() {
        for v in m.func.insts[i].args.clone() {
            if !own(m, v) && !taken.iter().any(|t| t.0 == v) {
                let ty = m.func.ty(v);
                let p = m.func.add_param(b, ty);
                taken.push((v, p));
            }
        }
        for a in &mut m.func.insts[i].args {
            if let Some(t) = taken.iter().find(|t| t.0 == *a) {
                *a = t.1;
            }
        }
    }
    for from in m.func.layout.clone() {
        for t in m.func.blocks[from].term.targets_mut().filter(|t| t.block == b) {
            t.args.extend(taken.iter().map(|t| t.0));
        }
    }
}

/// What a block gives as sample masks.
fn masks(m: &Module, b: Block) -> SmallVec<[Value; 1]> {
    let mask =
        |d: &InstData| matches!(d.imm, Imm::Io(io) if d.op == Op::Output && io.slot == Slot::SampleMask);
    let insts = m.func.blocks[b].insts.iter().map(|&i| &m.func.insts[i]);
    insts.filter(|d| mask(d)).filter_map(|d| d.args.first().copied()).collect()
}

/// Outputs as private variables, given in a new block at the end.
fn collect(m: &mut Module) -> Block {
    let exit = m.func.add_block();
    let mut vars: BTreeMap<(Slot, u8, u8), (kempe_ir::Var, IoImm, Type)> = BTreeMap::new();
    let mem = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };
    for b in m.func.layout.clone() {
        for i in std::mem::take(&mut m.func.blocks[b].insts) {
            let (op, imm, ty) = (m.func.insts[i].op, m.func.insts[i].imm, m.func.insts[i].ty);
            let (Op::Output, Imm::Io(io), Some(&v)) = (op, imm, m.func.insts[i].args.first()) else {
                m.func.blocks[b].insts.push(i);
                continue;
            };
            let key = (io.slot, io.component, io.index);
            let var = match vars.get(&key) {
                Some(v) => v.0,
                None => {
                    let data = Variable { space: Space::Private, size: 4, align: 4, name: String::new() };
                    let var = m.vars.push(data);
                    vars.insert(key, (var, io, ty));
                    var
                }
            };
            let at = Type::Ptr(Space::Private);
            if let Some(p) = inst(m, b, Op::VarAddr, at, Imm::Var(var), &[], &[at]) {
                inst(m, b, Op::Store, ty, Imm::Mem(mem), &[p, v], &[]);
            }
        }
    }
    for (var, io, ty) in vars.into_values() {
        let at = Type::Ptr(Space::Private);
        if io.slot == Slot::SampleMask
            && let Some(&entry) = m.func.layout.first()
        {
            // A mask that is not given keeps all samples.
            let before = std::mem::take(&mut m.func.blocks[entry].insts);
            let place = inst(m, entry, Op::VarAddr, at, Imm::Var(var), &[], &[at]);
            let all = inst(m, entry, Op::Const, ty, Imm::Int(ty.mask()), &[], &[ty]);
            if let (Some(place), Some(all)) = (place, all) {
                inst(m, entry, Op::Store, ty, Imm::Mem(mem), &[place, all], &[]);
            }
            m.func.blocks[entry].insts.extend(before);
        }
        let Some(p) = inst(m, exit, Op::VarAddr, at, Imm::Var(var), &[], &[at]) else { continue };
        if let Some(v) = inst(m, exit, Op::Load, ty, Imm::Mem(mem), &[p], &[ty]) {
            inst(m, exit, Op::Output, ty, Imm::Io(io), &[v], &[]);
        }
    }
    // The returns lead here, so that the passes see where the values go.
    for b in m.func.layout.clone() {
        if b != exit && m.func.blocks[b].term == Term::Return {
            m.func.blocks[b].term = Term::Jump(Target { block: exit, args: smallvec![] });
        }
    }
    m.func.blocks[exit].term = Term::Return;
    kempe_opt::ssa::run(m);
    kempe_opt::dce::run(m);
    exit
}
