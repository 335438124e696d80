//! Renumbering: blocks, instructions, values and variables in layout order, without holes.
//!
//! Later rooms have dense tables by id; after unrolling and clean-up most ids are dead. Variables that nobody names
//! any more go, so that they take no memory.

use kempe_ir::*;

pub fn run(m: &mut Module) -> bool {
    let f = std::mem::take(&mut m.func);
    let mut new = Function::default();
    let mut block_of = vec![Block(u32::MAX); f.blocks.len()];
    let mut value_of = vec![Value(u32::MAX); f.values.len()];
    let mut var_of = vec![Var(u32::MAX); m.vars.len()];
    let mut vars = Arena::new();
    let Function { values, mut insts, mut blocks, layout, names } = f;
    let mut same = layout.len() == blocks.len();
    for &b in &layout {
        let nb = new.add_block();
        block_of[b.index()] = nb;
        same &= nb == b;
        for &p in &blocks[b].params {
            let ty = values[p].ty;
            value_of[p.index()] = new.add_param(nb, ty);
            same &= value_of[p.index()] == p;
        }
    }
    for &b in &layout {
        let nb = block_of[b.index()];
        for i in std::mem::take(&mut blocks[b].insts) {
            let next = Inst(new.insts.len() as u32);
            same &= next == i;
            let mut d = std::mem::replace(
                &mut insts[i],
                InstData {
                    op: Op::Undef,
                    ty: Type::Bool,
                    flags: Flags::NONE,
                    imm: Imm::None,
                    args: Default::default(),
                    results: Default::default(),
                    loc: Loc(0),
                },
            );
            for (n, r) in d.results.iter_mut().enumerate() {
                let v = new.values.push(ValueData { ty: values[*r].ty, def: ValueDef::Inst(next, n as u16) });
                value_of[r.index()] = v;
                same &= v == *r;
                *r = v;
            }
            if let Imm::Var(v) = &mut d.imm {
                let to = &mut var_of[v.index()];
                if to.0 == u32::MAX {
                    *to = vars.push(m.vars[*v].clone());
                    same &= *to == *v;
                }
                *v = *to;
            }
            new.insts.push(d);
            new.blocks[nb].insts.push(next);
        }
        let old = &mut blocks[b];
        let d = &mut new.blocks[nb];
        d.term = std::mem::replace(&mut old.term, Term::Unreachable);
        (d.loop_hint, d.branch_hint, d.term_loc) = (old.loop_hint, old.branch_hint, old.term_loc);
    }
    same &= insts.len() == new.insts.len() && vars.len() == m.vars.len();
    for d in new.insts.values_mut() {
        for a in d.args.iter_mut() {
            *a = value_of[a.index()];
        }
    }
    for d in new.blocks.values_mut() {
        if let Term::Branch { cond, .. } = &mut d.term {
            *cond = value_of[cond.index()];
        }
        for t in d.term.targets_mut() {
            t.block = block_of[t.block.index()];
            for a in t.args.iter_mut() {
                *a = value_of[a.index()];
            }
        }
    }
    for (v, name) in names {
        if let Some(&to) = value_of.get(v.index())
            && to.0 != u32::MAX
        {
            new.names.insert(to, name);
        }
    }
    m.func = new;
    m.vars = vars;
    !same
}
