//! Arithmetic: component by component, and the few instructions that mix components.

use super::*;
use crate::arith::{operands, resize, scalar};

impl Lower<'_, '_> {
    pub(super) fn arith_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        match op {
            S::Dot => {
                let (ty, id) = self.result(i)?;
                let (a, b) = (self.leaves(i.w(3)?)?, self.leaves(i.w(4)?)?);
                let v = self.dot(a, b)?;
                self.set1(id, ty, v)?;
            }
            S::VectorTimesScalar | S::MatrixTimesScalar => {
                let (ty, id) = self.result(i)?;
                let (a, b) = (self.leaves(i.w(3)?)?, self.leaf(i.w(4)?)?);
                let mut out: SmallVec<[Value; 16]> = SmallVec::new();
                for k in 0..a.len as usize {
                    let x = self.at(a, k);
                    out.push(self.op(Op::Fmul, self.ty_of(x), &[x, b])?);
                }
                self.set_all(id, ty, &out)?;
            }
            S::VectorTimesMatrix | S::MatrixTimesVector | S::MatrixTimesMatrix | S::OuterProduct => {
                self.matrix_product(i, op)?;
            }
            S::Transpose => {
                let (ty, id) = self.result(i)?;
                let m = i.w(3)?;
                let (rows, columns) = self.matrix_shape(m)?;
                let r = self.leaves(m)?;
                let mut out: SmallVec<[Value; 16]> = SmallVec::new();
                for k in 0..rows {
                    for c in 0..columns {
                        out.push(self.at(r, c * rows + k));
                    }
                }
                self.set_all(id, ty, &out)?;
            }
            S::Any | S::All => {
                let (ty, id) = self.result(i)?;
                let r = self.leaves(i.w(3)?)?;
                let join = if op == S::Any { Op::Or } else { Op::And };
                let mut v = self.at(r, 0);
                for k in 1..r.len as usize {
                    v = self.op(join, Type::Bool, &[v, self.at(r, k)])?;
                }
                self.set1(id, ty, v)?;
            }
            S::IAddCarry | S::ISubBorrow | S::UMulExtended | S::SMulExtended => self.extended(i, op)?,
            S::Select => self.select_inst(i)?,
            S::Bitcast => self.bitcast(i)?,
            S::SDot | S::UDot | S::SUDot | S::SDotAccSat | S::UDotAccSat | S::SUDotAccSat => {
                self.integer_dot(i, op)?;
            }
            _ => return self.components(i, op),
        }
        Ok(true)
    }

    /// Instructions that work on each component alone.
    fn components(&mut self, i: &Inst, op: S) -> Res<bool> {
        let Some(want) = operands(op) else { return Ok(false) };
        if i.rest(3).len() != want {
            return self.err(format!("Op{op:?} with {} operands: {want} are needed", i.rest(3).len()));
        }
        let (ty, id) = self.result(i)?;
        let Some(result) = self.p.component(ty) else {
            return self.err("the result of this instruction must be a scalar or a vector");
        };
        let n = self.p.leaf_count(ty) as usize;
        let mut operands: SmallVec<[Rng; 4]> = SmallVec::new();
        for &a in i.rest(3) {
            let r = self.leaves(a)?;
            // The offset and count of a bit field are scalars beside vectors.
            if r.len as usize != n && r.len != 1 {
                return self.err("operands of several sizes");
            }
            operands.push(r);
        }
        let mut out: SmallVec<[Value; 16]> = SmallVec::new();
        for k in 0..n {
            let mut args: SmallVec<[(Type, Value); 4]> = SmallVec::new();
            for &r in &operands {
                let v = self.at(r, if r.len == 1 { 0 } else { k });
                args.push((self.ty_of(v), v));
            }
            let at = self.at;
            match scalar(self, at, op, result, &args)? {
                Some((_, v)) => out.push(v),
                None => return Ok(false),
            }
        }
        self.set_all(id, ty, &out)?;
        Ok(true)
    }

    pub(super) fn dot(&mut self, a: Rng, b: Rng) -> Res<Value> {
        if a.len != b.len || a.len == 0 {
            return self.err("a dot product of vectors of several sizes");
        }
        let ty = self.ty_of(self.at(a, 0));
        let mut sum = self.op(Op::Fmul, ty, &[self.at(a, 0), self.at(b, 0)])?;
        for k in 1..a.len as usize {
            let x = self.op(Op::Fmul, ty, &[self.at(a, k), self.at(b, k)])?;
            sum = self.op(Op::Fadd, ty, &[sum, x])?;
        }
        Ok(sum)
    }

    /// Rows and columns of the matrix that an id is.
    pub(super) fn matrix_shape(&mut self, id: u32) -> Res<(usize, usize)> {
        let ty = self.type_of(id)?;
        match self.p.ty(ty) {
            Ty::Matrix { column, n } => Ok((self.p.leaf_count(column) as usize, n as usize)),
            _ => self.err("an operand must be a matrix"),
        }
    }

    fn matrix_product(&mut self, i: &Inst, op: S) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let (ia, ib) = (i.w(3)?, i.w(4)?);
        let (a, b) = (self.leaves(ia)?, self.leaves(ib)?);
        // Both as matrices: rows x inner times inner x columns.
        let (rows, inner, columns) = match op {
            S::OuterProduct => (a.len as usize, 1, b.len as usize),
            S::VectorTimesMatrix => {
                let (r, c) = self.matrix_shape(ib)?;
                (1, r, c)
            }
            S::MatrixTimesVector => {
                let (r, c) = self.matrix_shape(ia)?;
                (r, c, 1)
            }
            _ => {
                let ((r, n), (m, c)) = (self.matrix_shape(ia)?, self.matrix_shape(ib)?);
                if n != m {
                    return self.err("a product of matrices whose sizes do not fit");
                }
                (r, n, c)
            }
        };
        if a.len as usize != rows * inner || b.len as usize != inner * columns {
            return self.err("a product of matrices whose sizes do not fit");
        }
        let f = self.ty_of(self.at(a, 0));
        let mut out: SmallVec<[Value; 16]> = SmallVec::new();
        for c in 0..columns {
            for r in 0..rows {
                let mut sum = None;
                for k in 0..inner {
                    let x = self.op(Op::Fmul, f, &[self.at(a, k * rows + r), self.at(b, c * inner + k)])?;
                    sum = Some(match sum {
                        Some(s) => self.op(Op::Fadd, f, &[s, x])?,
                        None => x,
                    });
                }
                out.extend(sum);
            }
        }
        self.set_all(id, ty, &out)
    }

    /// Results of two words: a structure of the low parts and the high parts (or carries).
    fn extended(&mut self, i: &Inst, op: S) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let (a, b) = (self.leaves(i.w(3)?)?, self.leaves(i.w(4)?)?);
        if a.len != b.len {
            return self.err("operands of several sizes");
        }
        let (mut low, mut high): (SmallVec<[Value; 8]>, SmallVec<[Value; 8]>) = Default::default();
        for k in 0..a.len as usize {
            let (x, y) = (self.at(a, k), self.at(b, k));
            let t = self.ty_of(x);
            let (l, h) = match op {
                S::IAddCarry | S::ISubBorrow => {
                    let (one, zero) = (self.konst(t, 1), self.konst(t, 0));
                    let (l, c) = if op == S::IAddCarry {
                        let l = self.op(Op::Iadd, t, &[x, y])?;
                        (l, self.op(Op::Ult, t, &[l, x])?)
                    } else {
                        (self.op(Op::Isub, t, &[x, y])?, self.op(Op::Ult, t, &[x, y])?)
                    };
                    (l, self.op(Op::Select, t, &[c, one, zero])?)
                }
                _ => {
                    let hi = if op == S::UMulExtended { Op::Umulhi } else { Op::Smulhi };
                    (self.op(Op::Imul, t, &[x, y])?, self.op(hi, t, &[x, y])?)
                }
            };
            low.push(l);
            high.push(h);
        }
        low.extend(high);
        self.set_all(id, ty, &low)
    }

    /// Also selects pointers, and whole composites under one condition.
    fn select_inst(&mut self, i: &Inst) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let c = self.leaves(i.w(3)?)?;
        let (a, b) = (self.leaves(i.w(4)?)?, self.leaves(i.w(5)?)?);
        if a.len != b.len || (c.len != 1 && c.len != a.len) {
            return self.err("a selection of operands of several sizes");
        }
        let mut out: SmallVec<[Value; 16]> = SmallVec::new();
        for k in 0..a.len as usize {
            let cond = self.at(c, if c.len == 1 { 0 } else { k });
            let (x, y) = (self.at(a, k), self.at(b, k));
            out.push(self.op(Op::Select, self.ty_of(x), &[cond, x, y])?);
        }
        self.set_all(id, ty, &out)
    }

    fn bitcast(&mut self, i: &Inst) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let r = self.leaves(i.w(3)?)?;
        let Some(to) = self.p.component(ty) else { return self.err("a bit cast to a composite") };
        let values = self.slice(r);
        let Some(from) = values.first().map(|&v| self.ty_of(v)) else {
            return self.err("a bit cast of nothing");
        };
        let global = Type::Ptr(Space::Global);
        if to == global || from == global {
            let mut out = self.physical(&values, to)?;
            out.truncate(self.p.leaf_count(ty) as usize);
            return self.set_all(id, ty, &out);
        }
        if to.is_ptr() || from.is_ptr() {
            return self.err("a bit cast of a pointer that is not physical");
        }
        let out = self.bitcast_values(&values, to)?;
        self.set_all(id, ty, &out)
    }

    /// The same bits as scalars of another type, lower ones first.
    pub(super) fn bitcast_values(&mut self, values: &[Value], to: Type) -> Res<SmallVec<[Value; 16]>> {
        let mut out: SmallVec<[Value; 16]> = SmallVec::new();
        let from = values.first().map_or(to, |v| self.ty_of(*v));
        if from == Type::Bool || to == Type::Bool {
            return self.err("a bit cast of booleans");
        }
        if from == to {
            out.extend_from_slice(values);
            return Ok(out);
        }
        let (Some(fi), Some(ti)) = (Type::int(from.bits()), Type::int(to.bits())) else {
            return self.err("a bit cast of something that has no bits");
        };
        if from.bits() == to.bits() {
            for &v in values {
                out.push(self.op(Op::Bitcast, to, &[v])?);
            }
            return Ok(out);
        }
        let mut ints: SmallVec<[Value; 16]> = SmallVec::new();
        for &v in values {
            ints.push(if from == fi { v } else { self.op(Op::Bitcast, fi, &[v])? });
        }
        let mut wide: SmallVec<[Value; 16]> = SmallVec::new();
        if from.bits() < to.bits() {
            let n = (to.bits() / from.bits()) as usize;
            if !ints.len().is_multiple_of(n) {
                return self.err("a bit cast between different sizes");
            }
            for group in ints.chunks_exact(n) {
                let mut all = self.op(Op::Zext, ti, &[group[0]])?;
                for (k, &v) in group.iter().enumerate().skip(1) {
                    let v = self.op(Op::Zext, ti, &[v])?;
                    let shift = self.i32(k as u32 * from.bits());
                    let v = self.op(Op::Shl, ti, &[v, shift])?;
                    all = self.op(Op::Or, ti, &[all, v])?;
                }
                wide.push(all);
            }
        } else {
            for v in ints {
                for k in 0..from.bits() / to.bits() {
                    let shift = self.i32(k * to.bits());
                    let v = if k == 0 { v } else { self.op(Op::Lshr, fi, &[v, shift])? };
                    wide.push(self.op(Op::Trunc, ti, &[v])?);
                }
            }
        }
        for v in wide {
            out.push(if to == ti { v } else { self.op(Op::Bitcast, to, &[v])? });
        }
        Ok(out)
    }

    /// Dot products of integers (SPIR-V 1.6): vectors, or four bytes packed in a word.
    fn integer_dot(&mut self, i: &Inst, op: S) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let Some(to) = self.p.scalar(ty).filter(|t| t.is_int()) else {
            return self.err("the result of an integer dot product must be an integer");
        };
        let accumulates = matches!(op, S::SDotAccSat | S::UDotAccSat | S::SUDotAccSat);
        let signed_a = !matches!(op, S::UDot | S::UDotAccSat);
        let signed_b = matches!(op, S::SDot | S::SDotAccSat);
        let (ra, rb) = (self.leaves(i.w(3)?)?, self.leaves(i.w(4)?)?);
        let (mut a, mut b) = (self.slice(ra), self.slice(rb));
        if a.len() == 1 && self.ty_of(a[0]) == Type::I32 {
            a = SmallVec::from_slice(&self.bitcast_values(&a, Type::I8)?);
            b = SmallVec::from_slice(&self.bitcast_values(&b, Type::I8)?);
        }
        if a.len() != b.len() {
            return self.err("a dot product of vectors of several sizes");
        }
        let mut sum = None;
        for (x, y) in a.into_iter().zip(b) {
            let x = resize(self, (self.ty_of(x), x), to, signed_a)?;
            let y = resize(self, (self.ty_of(y), y), to, signed_b)?;
            let product = self.op(Op::Imul, to, &[x, y])?;
            sum = Some(match sum {
                Some(s) => self.op(Op::Iadd, to, &[s, product])?,
                None => product,
            });
        }
        let Some(mut sum) = sum else { return self.err("a dot product of nothing") };
        if accumulates {
            let acc = self.leaf(i.w(5)?)?;
            sum = if op == S::UDotAccSat {
                let total = self.op(Op::Iadd, to, &[sum, acc])?;
                let carry = self.op(Op::Ult, to, &[total, sum])?;
                let max = self.konst(to, to.mask());
                self.op(Op::Select, to, &[carry, max, total])?
            } else {
                // Overflow when both have the sign that the total has not; then the limit has the sign of the sum.
                let total = self.op(Op::Iadd, to, &[sum, acc])?;
                let p = self.op(Op::Xor, to, &[total, sum])?;
                let q = self.op(Op::Xor, to, &[total, acc])?;
                let both = self.op(Op::And, to, &[p, q])?;
                let zero = self.konst(to, 0);
                let overflow = self.op(Op::Slt, to, &[both, zero])?;
                let bits = self.i32(to.bits() - 1);
                let sign = self.op(Op::Ashr, to, &[sum, bits])?;
                let max = self.konst(to, to.mask() >> 1);
                let limit = self.op(Op::Xor, to, &[sign, max])?;
                self.op(Op::Select, to, &[overflow, limit, total])?
            };
        }
        self.set1(id, ty, sum)
    }
}
