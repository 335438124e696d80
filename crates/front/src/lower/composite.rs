//! Taking values apart and putting them together: no instructions, only which scalar goes where.

use super::*;
use crate::arith::resize;

impl Lower<'_, '_> {
    pub(super) fn composite_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        match op {
            S::CompositeConstruct => {
                let (ty, id) = self.result(i)?;
                let mut out: SmallVec<[Value; 16]> = SmallVec::new();
                for &part in i.rest(3) {
                    let r = self.leaves(part)?;
                    if out.len() + r.len as usize > crate::parse::MAX_LEAVES as usize {
                        return self.err("a value of this many scalars is too large");
                    }
                    out.extend_from_slice(&self.pool[r.start as usize..(r.start + r.len) as usize]);
                }
                self.set_all(id, ty, &out)?;
            }
            S::CompositeExtract => {
                let (ty, id) = self.result(i)?;
                let whole = self.type_of(i.w(3)?)?;
                let r = self.leaves(i.w(3)?)?;
                let (offset, part) = self.p.part_of(self.at, whole, i.rest(4))?;
                let len = self.p.leaf_count(part);
                if offset.saturating_add(len) > r.len {
                    return self.err("an extracted part lies outside of its value");
                }
                self.set(id, ty, Rng { start: r.start + offset, len })?;
            }
            S::CompositeInsert => {
                let (ty, id) = self.result(i)?;
                let object = self.leaves(i.w(3)?)?;
                let whole = self.type_of(i.w(4)?)?;
                let r = self.leaves(i.w(4)?)?;
                let (offset, part) = self.p.part_of(self.at, whole, i.rest(5))?;
                if self.p.leaf_count(part) != object.len || offset.saturating_add(object.len) > r.len {
                    return self.err("an inserted part lies outside of its value");
                }
                let mut out = self.slice(r);
                for k in 0..object.len as usize {
                    out[offset as usize + k] = self.at(object, k);
                }
                self.set_all(id, ty, &out)?;
            }
            S::VectorShuffle => {
                let (ty, id) = self.result(i)?;
                let (a, b) = (self.vector(i.w(3)?)?, self.vector(i.w(4)?)?);
                let mut all = self.slice(a);
                all.extend_from_slice(&self.slice(b));
                let mut out: SmallVec<[Value; 8]> = SmallVec::new();
                for &k in i.rest(5) {
                    match all.get(k as usize) {
                        Some(&v) => out.push(v),
                        None if k == u32::MAX => out.push(self.undef(self.ty_of(all[0]))),
                        None => return self.err("a shuffle index is out of range"),
                    }
                }
                self.set_all(id, ty, &out)?;
            }
            S::VectorExtractDynamic => {
                let (ty, id) = self.result(i)?;
                let r = self.vector(i.w(3)?)?;
                let index = self.index(i.w(4)?)?;
                let v = self.choose(&self.slice(r), index)?;
                self.set1(id, ty, v)?;
            }
            S::VectorInsertDynamic => {
                let (ty, id) = self.result(i)?;
                let r = self.vector(i.w(3)?)?;
                let mut out = self.slice(r);
                let object = self.leaf(i.w(4)?)?;
                let index = self.index(i.w(5)?)?;
                for (k, v) in out.iter_mut().enumerate() {
                    let k = self.i32(k as u32);
                    let here = self.op(Op::Ieq, Type::I32, &[index, k])?;
                    *v = self.op(Op::Select, self.ty_of(*v), &[here, object, *v])?;
                }
                self.set_all(id, ty, &out)?;
            }
            S::CopyObject | S::CopyLogical => {
                let (ty, id) = self.result(i)?;
                let r = self.leaves(i.w(3)?)?;
                self.set(id, ty, r)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The scalars of a vector (there is at least one).
    fn vector(&mut self, id: u32) -> Res<Rng> {
        let r = self.leaves(id)?;
        if r.len == 0 {
            return self.err("an operand must be a vector");
        }
        Ok(r)
    }

    /// An index as i32.
    pub(super) fn index(&mut self, id: u32) -> Res<Value> {
        let v = self.leaf(id)?;
        let ty = self.type_of(id)?;
        let Ty::Int { signed, .. } = self.p.ty(ty) else {
            return self.err("an index must be an integer");
        };
        let from = self.ty_of(v);
        resize(self, (from, v), Type::I32, signed)
    }

    /// `values[index]`; out of range gives the last one.
    pub(super) fn choose(&mut self, values: &[Value], index: Value) -> Res<Value> {
        let Some((&last, rest)) = values.split_last() else { return self.err("an index into nothing") };
        let mut v = last;
        for (k, &x) in rest.iter().enumerate().rev() {
            let k = self.i32(k as u32);
            let here = self.op(Op::Ieq, Type::I32, &[index, k])?;
            v = self.op(Op::Select, self.ty_of(x), &[here, x, v])?;
        }
        Ok(v)
    }
}
