//! A copy of every operand-free value (constant, uniform word, address of a variable or resource) in each block that
//! uses it, in front of the first use.
//!
//! They cost one instruction or none wherever they are needed, and a register as long as they live: so they live as
//! shortly as possible. The counterpart of `gvn`, which merges them; run it last.

use kempe_ir::*;

const NONE: Value = Value(u32::MAX);

pub fn run(m: &mut Module) -> bool {
    let f = &mut m.func;
    let mut copy = vec![NONE; f.values.len()];
    let mut made: Vec<Value> = Vec::new();
    let mut any = false;
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        let old = std::mem::take(&mut f.blocks[b].insts);
        f.blocks[b].insts.reserve(old.len());
        for i in old {
            if is_local(&f.insts[i]) {
                // The first user in this block asks for it, if there is one.
                any = true;
                continue;
            }
            for n in 0..f.insts[i].args.len() {
                let a = f.insts[i].args[n];
                f.insts[i].args[n] = get(f, b, a, &mut copy, &mut made);
            }
            f.blocks[b].insts.push(i);
        }
        let mut term = std::mem::replace(&mut f.blocks[b].term, Term::Unreachable);
        if let Term::Branch { cond, .. } = &mut term {
            *cond = get(f, b, *cond, &mut copy, &mut made);
        }
        for t in term.targets_mut() {
            for a in t.args.iter_mut() {
                *a = get(f, b, *a, &mut copy, &mut made);
            }
        }
        f.blocks[b].term = term;
        for v in made.drain(..) {
            copy[v.index()] = NONE;
        }
    }
    any
}

/// An instruction that is copied to its users.
pub fn is_local(d: &InstData) -> bool {
    d.args.is_empty() && matches!(d.op, Op::Const | Op::Undef | Op::Uniform | Op::VarAddr | Op::ResourceAddr)
}

fn get(f: &mut Function, b: Block, v: Value, copy: &mut [Value], made: &mut Vec<Value>) -> Value {
    let Some(i) = f.def_inst(v) else { return v };
    if !is_local(&f.insts[i]) {
        return v;
    }
    if copy[v.index()] != NONE {
        return copy[v.index()];
    }
    let mut d = f.insts[i].clone();
    d.results.clear();
    let ty = f.ty(v);
    let j = f.make_inst(d, &[ty]);
    f.blocks[b].insts.push(j);
    let new = f.insts[j].results[0];
    copy[v.index()] = new;
    made.push(v);
    if let Some(name) = f.names.get(&v).cloned() {
        f.names.insert(new, name);
    }
    new
}
