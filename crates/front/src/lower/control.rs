//! How blocks end.

use super::*;
use crate::parse::Blk;
use kempe_ir::{BranchHint, Target, Term};

impl Lower<'_, '_> {
    /// A jump target with the arguments that the phis of the block want from the block `from` (a label).
    fn target(&mut self, number: u32, from: u32, to: u32, map: &[Block]) -> Res<Target> {
        let (b, blk) = match self.p.def(to) {
            Def::Label(f, b) if f == number && b != 0 => (b, self.p.funcs[f as usize].blocks[b as usize]),
            _ => return self.err(format!("a branch to id {to}, which is no label of this function")),
        };
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        let p = self.p;
        let mut at = blk.first;
        while at < blk.term {
            let i = reader::inst(p.words, at)?;
            match S::from_u32(i.op as u32) {
                Some(S::Phi) => {
                    let ty = p.type_of_id(at, i.w(1)?)?;
                    let Some(pair) = i.rest(3).chunks_exact(2).find(|c| c[1] == from) else {
                        return error(at, format!("a phi has no value for predecessor {}", p.label(from)));
                    };
                    let r = self.leaves(pair[0])?;
                    if self.type_of(pair[0])? != ty && !matches!(p.ty(ty), Ty::Pointer { .. }) {
                        return error(at, "a phi has a value of another type");
                    }
                    let start = args.len();
                    args.extend_from_slice(&self.slice(r));
                    let mut types = std::mem::take(&mut self.types);
                    types.clear();
                    p.leaf_types(at, ty, &mut types)?;
                    let same = types.len() == args.len() - start
                        && types.iter().zip(&args[start..]).all(|(&t, &v)| self.ty_of(v) == t);
                    self.types = types;
                    if !same {
                        return error(at, "a phi has a value of another type");
                    }
                }
                Some(S::Line | S::NoLine | S::Nop) => {}
                _ => break,
            }
            at += i.words.len();
        }
        Ok(Target { block: map[b as usize], args })
    }

    fn end(&mut self, term: Term) {
        let b = &mut self.m.func.blocks[self.cur];
        b.term = term;
        b.term_loc = self.loc;
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn terminator(
        &mut self,
        i: &Inst,
        number: u32,
        blk: &Blk,
        map: &[Block],
        after: Option<Block>,
        falls_through: bool,
        result: &mut Option<Rng>,
    ) -> Res<()> {
        self.flags = Flags::NONE;
        let Some(op) = S::from_u32(i.op as u32) else { return self.err("unknown terminator") };
        if let Some(label) = cfg::constant_target(self.p, i.at)? {
            let t = self.target(number, blk.label, label, map)?;
            self.end(Term::Jump(t));
            return Ok(());
        }
        match op {
            S::Branch => {
                let t = self.target(number, blk.label, i.w(1)?, map)?;
                self.end(Term::Jump(t));
            }
            S::BranchConditional => {
                let cond = self.leaf(i.w(1)?)?;
                if self.ty_of(cond) != Type::Bool {
                    return self.err("the condition of a branch must be a boolean");
                }
                let then = self.target(number, blk.label, i.w(2)?, map)?;
                if i.w(2)? == i.w(3)? {
                    self.end(Term::Jump(then));
                    return Ok(());
                }
                let els = self.target(number, blk.label, i.w(3)?, map)?;
                self.end(Term::Branch { cond, then, els });
                if blk.cont == 0 && blk.merge != 0 {
                    self.m.func.blocks[self.cur].branch_hint = match blk.control & 3 {
                        1 => BranchHint::Flatten,
                        2 => BranchHint::DontFlatten,
                        _ => BranchHint::None,
                    };
                }
            }
            S::Switch => self.switch(i, number, blk, map)?,
            S::Return | S::ReturnValue => {
                let value = match op {
                    S::ReturnValue => {
                        let ret = self.p.funcs[number as usize].ret;
                        let r = self.leaves(i.w(1)?)?;
                        if self.type_of(i.w(1)?)? != ret && !matches!(self.p.ty(ret), Ty::Pointer { .. }) {
                            return self.err("a function returns a value of another type");
                        }
                        Some(r)
                    }
                    _ => {
                        if self.p.ty(self.p.funcs[number as usize].ret) != Ty::Void {
                            return self.err("a function returns without its value");
                        }
                        None
                    }
                };
                match after {
                    Some(after) => {
                        let args = value.map_or_else(SmallVec::new, |r| self.slice(r));
                        if let Some(r) = value
                            && self.m.func.blocks[after].params.is_empty()
                        {
                            let mut params: SmallVec<[Value; 8]> = SmallVec::new();
                            for k in 0..r.len as usize {
                                let ty = self.ty_of(self.at(r, k));
                                params.push(self.m.func.add_param(after, ty));
                            }
                            *result = Some(self.push_values(&params)?);
                        }
                        let params = &self.m.func.blocks[after].params;
                        let same = params.len() == args.len()
                            && params.iter().zip(&args).all(|(&p, &a)| self.ty_of(p) == self.ty_of(a));
                        if !same {
                            return self.err("a function returns values of several types");
                        }
                        self.end(Term::Jump(Target { block: after, args: SmallVec::from_slice(&args) }));
                    }
                    None if falls_through => *result = value,
                    None => {
                        let term = self.return_from_entry();
                        self.end(term);
                    }
                }
            }
            S::Kill | S::TerminateInvocation => {
                let term = self.kill()?;
                self.end(term);
            }
            S::Unreachable => self.end(Term::Unreachable),
            _ => return self.unsupported(op),
        }
        Ok(())
    }

    /// A switch becomes a chain of comparisons in front of its cases; literals that lead to one label share one.
    fn switch(&mut self, i: &Inst, number: u32, blk: &Blk, map: &[Block]) -> Res<()> {
        let s = cfg::switch(self.p, i.at)?;
        let selector = self.leaf(s.selector)?;
        let ty = self.ty_of(selector);
        // Labels in order of their first literal; what leads to the default needs no comparison.
        let mut groups: Vec<(u32, Vec<u64>)> = Vec::new();
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        for &(literal, label) in s.cases.iter().filter(|c| c.1 != s.default) {
            let g = *known.entry(label).or_insert_with(|| {
                groups.push((label, Vec::new()));
                groups.len() - 1
            });
            groups[g].1.push(literal);
        }
        let last = groups.len();
        for (n, (label, literals)) in groups.into_iter().enumerate() {
            let mut cond = None;
            for l in literals {
                let l = self.konst(ty, l);
                let eq = self.op(Op::Ieq, ty, &[selector, l])?;
                cond = Some(match cond {
                    Some(c) => self.op(Op::Or, Type::Bool, &[c, eq])?,
                    None => eq,
                });
            }
            let Some(cond) = cond else { continue };
            let then = self.target(number, blk.label, label, map)?;
            if n + 1 == last {
                let els = self.target(number, blk.label, s.default, map)?;
                self.end(Term::Branch { cond, then, els });
                return Ok(());
            }
            let next = self.m.func.add_block_detached();
            self.end(Term::Branch { cond, then, els: Target { block: next, args: smallvec![] } });
            self.cur = next;
            self.m.func.layout.push(next);
        }
        let t = self.target(number, blk.label, s.default, map)?;
        self.end(Term::Jump(t));
        Ok(())
    }
}
