//! What is legal and hardly meant: findings for people, with their places. Nothing is changed.
//!
//! * a value that nobody has given is computed with or stored: an undefined value, a variable that is read before it is written;
//! * constants out of range: shifts by the width or more, bit fields beyond it, division by zero, an access behind the end of a
//!   variable or of a buffer that has a size;
//! * a loop that no way leads out of.
//!
//! Variables are made values first, on a copy, and what nobody needs is taken out: so constants are seen through variables, and
//! what is undefined counts only where it has a use. What depends on the way that is taken is not looked into: a finding is about
//! every way to its place.

use kempe_ir::analysis::Cfg;
use kempe_ir::*;
use std::collections::BTreeSet;

/// Something to look at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The place in the source, if known.
    pub loc: Loc,
    pub message: String,
}

/// All findings of a module in source form, by place, each once.
pub fn lint(m: &Module) -> Vec<Finding> {
    let mut found = BTreeSet::new();
    // Accesses at constant places disappear with their variables.
    accesses(m, &mut found);
    let mut m = m.clone();
    crate::ssa::run(&mut m);
    crate::dce::run(&mut m);
    let f = &m.func;
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            operands(f, &f.insts[i], &mut found);
        }
        if let Term::Branch { cond, .. } = f.blocks[b].term
            && is_undefined(f, cond)
        {
            add(&mut found, f.blocks[b].term_loc, "a branch on an undefined value");
        }
    }
    endless_loops(f, &mut found);
    found.into_iter().collect()
}

fn add(found: &mut BTreeSet<Finding>, loc: Loc, message: impl Into<String>) {
    found.insert(Finding { loc, message: message.into() });
}

fn is_undefined(f: &Function, v: Value) -> bool {
    f.def_inst(v).is_some_and(|i| f.insts[i].op == Op::Undef)
}

/// The variable or the buffer that an address with constant indices points into, and how far.
fn place(f: &Function, address: Value) -> Option<(Imm, i64)> {
    let (mut at, mut offset) = (address, 0i64);
    loop {
        let d = &f.insts[f.def_inst(at)?];
        match (d.op, d.imm) {
            (Op::Lea, Imm::Lea(l)) => {
                let index = match d.args.get(1) {
                    Some(&index) => f.as_const(index)? as u32 as i32,
                    None => 0,
                };
                offset = offset.checked_add(i64::from(index) * i64::from(l.scale) + i64::from(l.offset))?;
                at = d.args[0];
            }
            (Op::VarAddr | Op::ResourceAddr, imm) => return Some((imm, offset)),
            _ => return None,
        }
    }
}

fn accesses(m: &Module, found: &mut BTreeSet<Finding>) {
    let f = &m.func;
    for &i in f.layout.iter().flat_map(|&b| &f.blocks[b].insts) {
        let d = &f.insts[i];
        let (count, address) = match (d.imm, d.args.first()) {
            (Imm::Mem(mem), Some(&a)) => (mem.count, a),
            (Imm::Atomic(_), Some(&a)) => (1, a),
            _ => continue,
        };
        let Some((of, offset)) = place(f, address) else { continue };
        let (size, name) = match of {
            Imm::Var(v) => (m.vars[v].size, &m.vars[v].name),
            // A run-time array at the end has no end.
            Imm::Res(r) if m.resources[r].tail_stride == 0 => (m.resources[r].size, &m.resources[r].name),
            _ => continue,
        };
        let end = offset + i64::from(d.ty.bytes()) * i64::from(count);
        if offset < 0 || end > i64::from(size) {
            let what = if d.op == Op::Load { "read" } else { "write" };
            let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
            add(found, d.loc, format!("a {what} at byte {offset} of{name}, which has {size} bytes"));
        }
    }
}

fn operands(f: &Function, d: &InstData, found: &mut BTreeSet<Finding>) {
    let constant = |n: usize| d.args.get(n).and_then(|&v| f.as_const(v));
    let bits = d.ty.bits() as u64;
    match d.op {
        Op::Shl | Op::Lshr | Op::Ashr if constant(1).is_some_and(|n| n >= bits) => {
            let n = constant(1).unwrap_or(0) as u32 as i32;
            add(found, d.loc, format!("a shift of {bits} bits by {n}"));
        }
        Op::Sdiv | Op::Udiv | Op::Srem | Op::Smod | Op::Umod if constant(1) == Some(0) => {
            add(found, d.loc, "an integer is divided by zero");
        }
        Op::BitInsert | Op::BitExtractS | Op::BitExtractU => {
            let first = if d.op == Op::BitInsert { 2 } else { 1 };
            if let (Some(offset), Some(count)) = (constant(first), constant(first + 1))
                && offset + count > bits
            {
                add(found, d.loc, format!("a field of {count} bits at bit {offset} of {bits}"));
            }
        }
        _ => {}
    }
    // A selection may choose the other one, and a shuffled vector may have parts that nobody asked for.
    let matters = match d.op {
        Op::Select | Op::Output => false,
        Op::Load | Op::Store | Op::Atomic | Op::ImageStore | Op::ImageAtomic => true,
        _ => !d.args.is_empty(),
    };
    if matters && d.args.iter().any(|&v| is_undefined(f, v)) {
        let what = match d.op {
            Op::Store | Op::ImageStore => "an undefined value is stored",
            _ => "an undefined value is computed with",
        };
        add(found, d.loc, what);
    }
}

fn endless_loops(f: &Function, found: &mut BTreeSet<Finding>) {
    let cfg = Cfg::new(f);
    for l in &cfg.loops {
        let blocks = l.header as usize..=l.last as usize;
        let leaves = blocks.clone().any(|at| {
            let term = &f.blocks[f.layout[at]].term;
            matches!(term, Term::Return | Term::Unreachable)
                || term.targets().any(|t| !blocks.contains(&(cfg.pos[t.block] as usize)))
        });
        if !leaves {
            let header = f.layout[l.header as usize];
            let first = f.blocks[header].insts.iter().map(|&i| f.insts[i].loc).find(|l| l.0 != 0);
            add(found, first.unwrap_or(f.blocks[header].term_loc), "a loop that nothing leads out of");
        }
    }
}
