//! Constants: strings of scalar bits, evaluated while they are read.
//!
//! Specialisation takes place here: a scalar with a SpecId takes the value that was given, and everything made from
//! it (composites, `OpSpecConstantOp`) follows.

use super::*;

impl Parsed<'_> {
    pub(super) fn specialised(&self, id: u32, spec: &[(u32, u64)]) -> Option<u64> {
        let spec_id = *self.numbers.get(&(id, Numbered::SpecId))?;
        spec.iter().rev().find(|s| s.0 == spec_id).map(|s| s.1)
    }

    /// The literal of a scalar constant.
    pub(super) fn literal(&self, i: &Inst) -> Res<u64> {
        let low = i.w(3)? as u64;
        let t = self.type_of_id(i.at, i.w(1)?)?;
        match self.scalar(t) {
            Some(ty) if ty.bits() == 64 => Ok(low | (i.w(4)? as u64) << 32),
            _ => Ok(low),
        }
    }

    pub(super) fn scalar_constant(&mut self, i: &Inst, value: u64) -> Res<()> {
        let t = self.type_of_id(i.at, i.w(1)?)?;
        let ty = match self.ty(t) {
            Ty::Bool | Ty::Int { .. } | Ty::Float { .. } => match self.scalar(t) {
                Some(ty) => ty,
                None => return error(i.at, self.no_value(self.ty(t))),
            },
            _ => return error(i.at, "the type of this constant must be a scalar"),
        };
        self.bits.push(value & ty.mask());
        self.constant(i, ConstKind::Bits(self.bits.len() as u32 - 1))
    }

    pub(super) fn constant(&mut self, i: &Inst, kind: ConstKind) -> Res<()> {
        let (ty, id) = (self.type_of_id(i.at, i.w(1)?)?, i.w(2)?);
        self.define(i.at, id, Def::Const(self.consts.len() as u32))?;
        self.consts.push(Const { ty, kind });
        if self.numbers.get(&(id, Numbered::BuiltIn)) == Some(&(spirv::BuiltIn::WorkgroupSize as u32)) {
            self.workgroup_size_const = Some(id);
        }
        Ok(())
    }

    /// Appends the bits of a constant to the pool.
    fn append_const(&mut self, at: usize, id: u32) -> Res<TyId> {
        let c = self.const_of_id(at, id)?;
        let n = self.leaf_count(c.ty) as usize;
        if n > MAX_CONST_LEAVES || self.bits.len() + n > MAX_CONST_LEAVES {
            return error(at, format!("constants of more than {MAX_CONST_LEAVES} scalars"));
        }
        match c.kind {
            ConstKind::Null | ConstKind::Undef => self.bits.resize(self.bits.len() + n, 0),
            ConstKind::Bits(start) => self.bits.extend_from_within(start as usize..start as usize + n),
        }
        Ok(c.ty)
    }

    pub(super) fn composite_constant(&mut self, i: &Inst, t: TyId, ids: &[u32]) -> Res<()> {
        let start = self.bits.len();
        for (k, &id) in ids.iter().enumerate() {
            let expected = match self.ty(t) {
                Ty::Vector { elem, n } | Ty::Matrix { column: elem, n } | Ty::Array { elem, n }
                    if ids.len() == n as usize =>
                {
                    elem
                }
                Ty::Struct { first, n } if ids.len() == n as usize => self.members[first as usize + k],
                _ => return error(i.at, "the parts of a constant do not fit its type"),
            };
            if self.append_const(i.at, id)? != expected {
                return error(i.at, format!("part {k} of a constant has the wrong type"));
            }
        }
        self.constant(i, ConstKind::Bits(start as u32))?;
        if self.bits.len() - start != self.leaf_count(t) as usize {
            return error(i.at, "the parts of a constant do not fit its type");
        }
        Ok(())
    }

    /// Offset in scalars, and type, of the part of `t` that `path` names.
    pub fn part_of(&self, at: usize, mut t: TyId, path: &[u32]) -> Res<(u32, TyId)> {
        let mut offset = 0u32;
        for &k in path {
            match self.ty(t) {
                Ty::Vector { elem, n } | Ty::Matrix { column: elem, n } | Ty::Array { elem, n } if k < n => {
                    offset = offset.saturating_add(k.saturating_mul(self.leaf_count(elem)));
                    t = elem;
                }
                Ty::Struct { first, n } if k < n => {
                    offset = offset.saturating_add(self.member_leaves[(first + k) as usize]);
                    t = self.members[(first + k) as usize];
                }
                _ => return error(at, format!("index {k} does not fit the type it goes into")),
            }
        }
        Ok((offset, t))
    }

    pub(super) fn spec_constant_op(&mut self, i: &Inst) -> Res<()> {
        let t = self.type_of_id(i.at, i.w(1)?)?;
        let opcode = i.w(3)?;
        let Some(op) = Op::from_u32(opcode) else {
            return error(i.at, format!("a constant made by the unknown opcode {opcode}"));
        };
        let start = self.bits.len();
        // Scalars of an operand, as a range of the pool (copies end behind the result and are dropped).
        match op {
            Op::CompositeExtract => {
                let whole = self.append_const(i.at, i.w(4)?)?;
                let (offset, part) = self.part_of(i.at, whole, i.rest(5))?;
                let n = self.leaf_count(part) as usize;
                if part != t {
                    return error(i.at, "the extracted part has another type");
                }
                self.bits.copy_within(start + offset as usize..start + offset as usize + n, start);
                self.bits.truncate(start + n);
            }
            Op::CompositeInsert => {
                let whole = self.append_const(i.at, i.w(5)?)?;
                let (offset, part) = self.part_of(i.at, whole, i.rest(6))?;
                let end = self.bits.len();
                if self.append_const(i.at, i.w(4)?)? != part || whole != t {
                    return error(i.at, "the inserted part has another type");
                }
                self.bits.copy_within(end.., start + offset as usize);
                self.bits.truncate(end);
            }
            Op::VectorShuffle => {
                let a = self.append_const(i.at, i.w(4)?)?;
                self.append_const(i.at, i.w(5)?)?;
                let all = self.bits.split_off(start);
                let _ = a;
                for &k in i.rest(6) {
                    let v = if k == u32::MAX { Some(0) } else { all.get(k as usize).copied() };
                    match v {
                        Some(v) => self.bits.push(v),
                        None => return error(i.at, "a shuffle index is out of range"),
                    }
                }
            }
            _ => {
                let mut args: SmallVec<[(TyId, Vec<u64>); 3]> = SmallVec::new();
                for &id in i.rest(4) {
                    let ty = self.append_const(i.at, id)?;
                    args.push((ty, self.bits.split_off(start)));
                }
                let Some(result) = self.component(t) else {
                    return error(i.at, "the type of this constant must be a scalar or a vector");
                };
                for k in 0..self.leaf_count(t) as usize {
                    let mut scalars: SmallVec<[(Type, u64); 3]> = SmallVec::new();
                    for (ty, bits) in &args {
                        // One condition may select whole vectors.
                        let k = if bits.len() == 1 { 0 } else { k };
                        match (self.component(*ty), bits.get(k)) {
                            (Some(ty), Some(&b)) => scalars.push((ty, b)),
                            _ => return error(i.at, "an operand of this constant has the wrong size"),
                        }
                    }
                    let v = arith::scalar(&mut ConstArith { at: i.at }, i.at, op, result, &scalars)?;
                    match v {
                        Some((ty, v)) if ty == result => self.bits.push(v),
                        Some(_) => return error(i.at, "an operand of this constant has the wrong type"),
                        None => return error(i.at, format!("a constant made by Op{op:?} is not supported")),
                    }
                }
            }
        }
        self.constant(i, ConstKind::Bits(start as u32))?;
        if self.bits.len() - start != self.leaf_count(t) as usize {
            return error(i.at, "the size of a constant does not fit its type");
        }
        Ok(())
    }
}
