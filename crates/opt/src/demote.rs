//! Values to private variables: what a pass that duplicates code does first to the values that leave the code.
//!
//! A store behind the definition and a load before every use outside; `ssa` makes values and parameters of them again
//! once the code was duplicated. So such passes need no repair of SSA form of their own.

use kempe_ir::*;
use smallvec::SmallVec;

/// Demotes every value that is defined in a marked block and used in another one. `false`: some value cannot be (a
/// pointer into private memory, which would make its variable escape); nothing was changed then.
pub fn demote_outside_uses(m: &mut Module, inside: &dyn Fn(Block) -> bool) -> bool {
    let f = &mut m.func;
    let mut defined = vec![false; f.values.len()];
    for &b in &f.layout {
        if inside(b) {
            for &p in &f.blocks[b].params {
                defined[p.index()] = true;
            }
            for &i in &f.blocks[b].insts {
                for &r in &f.insts[i].results {
                    defined[r.index()] = true;
                }
            }
        }
    }
    // The values, in layout order of their first use outside.
    let mut out: Vec<Value> = Vec::new();
    let mut seen = vec![false; f.values.len()];
    for &b in &f.layout {
        if inside(b) {
            continue;
        }
        let mut visit = |v: Value| {
            if defined[v.index()] && !std::mem::replace(&mut seen[v.index()], true) {
                out.push(v);
            }
        };
        for &i in &f.blocks[b].insts {
            f.insts[i].args.iter().for_each(|&a| visit(a));
        }
        if let Term::Branch { cond, .. } = f.blocks[b].term {
            visit(cond);
        }
        for t in f.blocks[b].term.targets() {
            t.args.iter().for_each(|&a| visit(a));
        }
    }
    if out.is_empty() {
        return true;
    }
    if out.iter().any(|&v| matches!(f.ty(v), Type::Ptr(Space::Private))) {
        return false;
    }
    let mut var_of: Vec<Option<Var>> = vec![None; f.values.len()];
    for &v in &out {
        let size = f.ty(v).bytes();
        let var = Variable { space: Space::Private, size, align: size, name: String::new() };
        var_of[v.index()] = Some(m.vars.push(var));
    }
    for at in 0..f.layout.len() {
        let b = f.layout[at];
        if inside(b) {
            store_defs(f, b, &var_of);
        } else {
            load_uses(f, b, &var_of);
        }
    }
    true
}

fn access(ty: Type) -> MemImm {
    MemImm { space: Space::Private, count: 1, align: ty.bytes(), volatile: false, read_only: false }
}

fn store_defs(f: &mut Function, b: Block, var_of: &[Option<Var>]) {
    let var = |v: Value| var_of.get(v.index()).copied().flatten();
    let old = std::mem::take(&mut f.blocks[b].insts);
    let params: SmallVec<[Value; 4]> = f.blocks[b].params.clone();
    let store = |f: &mut Function, v: Value| {
        if let Some(var) = var(v) {
            let ty = f.ty(v);
            let mut bld = Builder::new(f, b);
            let addr = bld.var_addr(var, Space::Private);
            bld.store(ty, access(ty), addr, &[v]);
        }
    };
    for p in params {
        store(f, p);
    }
    for i in old {
        f.blocks[b].insts.push(i);
        for r in f.insts[i].results.clone() {
            store(f, r);
        }
    }
}

fn load_uses(f: &mut Function, b: Block, var_of: &[Option<Var>]) {
    let var = |v: Value| var_of.get(v.index()).copied().flatten();
    let load = |f: &mut Function, v: Value, var: Var| -> Value {
        let ty = f.ty(v);
        let mut bld = Builder::new(f, b);
        let addr = bld.var_addr(var, Space::Private);
        bld.load(ty, access(ty), addr)[0]
    };
    // One load a block: nothing outside stores to the variables.
    let mut here: Vec<(Value, Value)> = Vec::new();
    let mut get = |f: &mut Function, v: Value, var: Var| -> Value {
        if let Some(&(_, l)) = here.iter().find(|(x, _)| *x == v) {
            return l;
        }
        let l = load(f, v, var);
        here.push((v, l));
        l
    };
    let old = std::mem::take(&mut f.blocks[b].insts);
    for i in old {
        for n in 0..f.insts[i].args.len() {
            let a = f.insts[i].args[n];
            if let Some(x) = var(a) {
                f.insts[i].args[n] = get(f, a, x);
            }
        }
        f.blocks[b].insts.push(i);
    }
    let mut term = std::mem::replace(&mut f.blocks[b].term, Term::Unreachable);
    if let Term::Branch { cond, .. } = &mut term
        && let Some(x) = var(*cond)
    {
        *cond = get(f, *cond, x);
    }
    for t in term.targets_mut() {
        for a in t.args.iter_mut() {
            if let Some(x) = var(*a) {
                *a = get(f, *a, x);
            }
        }
    }
    f.blocks[b].term = term;
}

/// Moves instructions without operands that only depend on the invocation (constants, built-ins, addresses), and
/// `lea`s with constant offset on them, from the given blocks (in layout order) to the end of the entry.
pub fn hoist_nullary(f: &mut Function, blocks: &[Block]) {
    let entry = f.layout[0];
    let mut in_entry = vec![false; f.insts.len()];
    for &i in &f.blocks[entry].insts {
        in_entry[i.index()] = true;
    }
    let mut moved: Vec<Inst> = Vec::new();
    for &b in blocks {
        if b == entry {
            continue;
        }
        let Function { blocks, insts, values, .. } = f;
        blocks[b].insts.retain(|&i| {
            let d = &insts[i];
            let above = |v: Value| matches!(values[v].def, ValueDef::Inst(j, _) if in_entry[j.index()]);
            let go = match d.args.len() {
                0 => matches!(d.op.effect(), Effect::Pure | Effect::Constant),
                1 => d.op == Op::Lea && above(d.args[0]),
                _ => false,
            };
            if go {
                in_entry[i.index()] = true;
                moved.push(i);
            }
            !go
        });
    }
    f.blocks[entry].insts.extend(moved);
}
