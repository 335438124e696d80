//! Dead code: instructions, block parameters, and stores to variables that nothing reads.
//!
//! Mark and sweep: a use is a root when it writes, synchronises or steers; everything it reaches is alive. A
//! parameter is alive when an instruction that is alive reaches it, and only then are its arguments, so loops that
//! carry a value nobody looks at lose it (Cytron et al., "Efficiently Computing Static Single Assignment Form",
//! section 7.1, without control dependence: dead branches are the business of `cfg`).
//!
//! A store to a private or shared variable is no root when nothing loads from the variable and its address goes
//! nowhere else; an output of undefined bits is none either. Left out: loops without effect.

use crate::graph::{Graph, edge_target};
use kempe_ir::*;

pub fn run(m: &mut Module) -> bool {
    let f = &mut m.func;
    let read = read_vars(f, m.vars.len());
    let g = Graph::new(f);
    let live = mark(f, &g, &read);
    sweep(f, &live)
}

/// The variable behind every pointer value, where an address is a variable plus something.
struct Roots {
    var: Vec<u32>,
}

const NO_VAR: u32 = u32::MAX;

/// Marks the variables that something may read.
fn read_vars(f: &Function, vars: usize) -> ReadVars {
    let mut roots = Roots { var: vec![NO_VAR; f.values.len()] };
    let mut read = vec![false; vars];
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            let root = |v: Value| roots.var[v.index()];
            match d.op {
                Op::VarAddr => {
                    if let Imm::Var(v) = d.imm {
                        roots.var[d.results[0].index()] = v.0;
                    }
                }
                Op::Lea => {
                    roots.var[d.results[0].index()] = root(d.args[0]);
                }
                Op::Store => {
                    for &a in &d.args[1..] {
                        mark_read(&mut read, root(a));
                    }
                    if matches!(d.imm, Imm::Mem(mem) if mem.volatile) {
                        mark_read(&mut read, root(d.args[0]));
                    }
                }
                _ => {
                    for &a in &d.args {
                        mark_read(&mut read, root(a));
                    }
                }
            }
        }
        for t in f.blocks[b].term.targets() {
            for &a in &t.args {
                mark_read(&mut read, roots.var[a.index()]);
            }
        }
    }
    ReadVars { roots, read }
}

struct ReadVars {
    roots: Roots,
    read: Vec<bool>,
}

fn mark_read(read: &mut [bool], var: u32) {
    if var != NO_VAR {
        read[var as usize] = true;
    }
}

impl ReadVars {
    /// The store writes to a variable that nobody reads.
    fn is_dead_store(&self, d: &InstData) -> bool {
        d.op == Op::Store
            && d.args.first().is_some_and(|a| {
                let v = self.roots.var[a.index()];
                v != NO_VAR && !self.read[v as usize]
            })
    }
}

/// May the instruction go when nobody uses its results?
pub fn is_removable(d: &InstData) -> bool {
    match d.op.effect() {
        Effect::Pure | Effect::Constant | Effect::Lanes => true,
        Effect::Read => match d.imm {
            Imm::Mem(mem) => !mem.volatile,
            Imm::Image(image) => !image.volatile,
            _ => true,
        },
        Effect::Write => false,
    }
}

/// An output that is never written: what would be given is any bits.
fn is_undefined_output(f: &Function, d: &InstData) -> bool {
    let undef = |v: Value| f.def_inst(v).is_some_and(|i| f.insts[i].op == Op::Undef);
    d.op == Op::Output && d.args.first().is_some_and(|&a| undef(a))
}

struct Live {
    inst: Vec<bool>,
    value: Vec<bool>,
}

fn mark(f: &Function, g: &Graph, read: &ReadVars) -> Live {
    let mut live = Live { inst: vec![false; f.insts.len()], value: vec![false; f.values.len()] };
    let mut work: Vec<Value> = Vec::new();
    let reach = |v: Value, live: &mut Live, work: &mut Vec<Value>| {
        if !std::mem::replace(&mut live.value[v.index()], true) {
            work.push(v);
        }
    };
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            if !is_removable(d) && !read.is_dead_store(d) && !is_undefined_output(f, d) {
                live.inst[i.index()] = true;
                for &a in &d.args {
                    reach(a, &mut live, &mut work);
                }
            }
        }
        if let Term::Branch { cond, .. } = f.blocks[b].term {
            reach(cond, &mut live, &mut work);
        }
    }
    while let Some(v) = work.pop() {
        match f.values[v].def {
            ValueDef::Inst(i, _) => {
                if !std::mem::replace(&mut live.inst[i.index()], true) {
                    for &a in &f.insts[i].args {
                        reach(a, &mut live, &mut work);
                    }
                }
            }
            ValueDef::Param(b, n) => {
                for &e in g.preds(b) {
                    reach(edge_target(f, e).args[n as usize], &mut live, &mut work);
                }
            }
        }
    }
    live
}

fn sweep(f: &mut Function, live: &Live) -> bool {
    let mut changed = false;
    // The parameters that stay, where some go.
    let mut keep: Vec<Option<Vec<bool>>> = vec![None; f.blocks.len()];
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        let before = f.blocks[b].insts.len();
        f.blocks[b].insts.retain(|i| live.inst[i.index()]);
        changed |= f.blocks[b].insts.len() != before;
        if f.blocks[b].params.iter().any(|p| !live.value[p.index()]) {
            let flags: Vec<bool> = f.blocks[b].params.iter().map(|p| live.value[p.index()]).collect();
            retain_params(f, b, &flags);
            keep[b.index()] = Some(flags);
            changed = true;
        }
    }
    if !changed {
        return false;
    }
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        for t in f.blocks[b].term.targets_mut() {
            if let Some(flags) = &keep[t.block.index()] {
                let mut n = 0;
                t.args.retain(|_| {
                    n += 1;
                    flags[n - 1]
                });
            }
        }
    }
    let Function { names, .. } = f;
    names.retain(|v, _| live.value.get(v.index()).is_some_and(|&l| l));
    true
}

/// Keeps the marked parameters of a block and renumbers them; the edges are left to the caller.
pub fn retain_params(f: &mut Function, b: Block, keep: &[bool]) {
    let mut n = 0;
    f.blocks[b].params.retain(|_| {
        n += 1;
        keep[n - 1]
    });
    for n in 0..f.blocks[b].params.len() {
        let p = f.blocks[b].params[n];
        f.values[p].def = ValueDef::Param(b, n as u16);
    }
}
