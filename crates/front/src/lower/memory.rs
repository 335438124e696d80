//! Pointers, loads and stores.
//!
//! Composites are loaded and stored part by part: vectors whose components lie side by side in one access, everything
//! else scalar by scalar.

use super::*;
use crate::arith::resize;
use crate::layout::{Lay, Rule};
use crate::parse::class_name;
use kempe_ir::{LeaImm, MemImm};
use spirv::StorageClass;

fn alignment(offset: i64, align: u32) -> u32 {
    if offset == 0 { align } else { align.min(1 << offset.trailing_zeros().min(30)) }
}

/// Memory operands of an access (SPIR-V 3.26): bit 0 is volatile, bit 1 a promised alignment, which counts for physical pointers;
/// what those point to is otherwise aligned like its scalars.
fn access(ptr: &mut Ptr, operands: &[u32]) {
    let Some(&bits) = operands.first() else { return };
    ptr.volatile |= bits & 1 != 0;
    if let (2, Some(&align), Space::Global) = (bits & 2, operands.get(1), ptr.space)
        && align.is_power_of_two()
    {
        // That of the whole pointer, so the offset has it too.
        ptr.promised = ptr.promised.max(align);
    }
}

impl Lower<'_, '_> {
    pub(super) fn memory_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        match op {
            S::Variable => {
                let (ty, id) = self.result(i)?;
                let Ty::Pointer { pointee, class } = self.p.ty(ty) else {
                    return self.err("the type of a variable must be a pointer");
                };
                if class != StorageClass::Function as u32 {
                    return self.err("a variable inside a function must be of storage class Function");
                }
                let init = i.words.get(4).copied().unwrap_or(0);
                let ptr = self.variable(id, pointee, Space::Private, init)?;
                self.set_ptr(id, ty, ptr)?;
            }
            S::Load => {
                let (ty, id) = self.result(i)?;
                let mut ptr = self.ptr(i.w(3)?)?;
                access(&mut ptr, i.rest(4));
                if let Some(max) = self.p.leaf_count(ty).checked_sub(crate::parse::MAX_LEAVES + 1) {
                    return self.err(format!("a load of {} scalars at once is too large", max));
                }
                let mut out = Vec::new();
                self.load(&ptr, ptr.lay, 0, &mut out)?;
                self.set_all(id, ty, &out)?;
            }
            S::Store => {
                let object = i.w(2)?;
                if self.is_constant_variable(i.w(1)?) {
                    return Ok(true);
                }
                let mut ptr = self.ptr(i.w(1)?)?;
                access(&mut ptr, i.rest(3));
                let r = self.leaves(object)?;
                let data = self.slice(r);
                let mut rest = &data[..];
                self.store(&ptr, ptr.lay, 0, &mut rest)?;
                if !rest.is_empty() {
                    return self.err("a store of a value of another type");
                }
            }
            S::CopyMemory => {
                let mut to = self.ptr(i.w(1)?)?;
                let mut from = self.ptr(i.w(2)?)?;
                let volatile = i.words.get(3).is_some_and(|m| m & 1 != 0);
                (to.volatile, from.volatile) = (to.volatile | volatile, from.volatile | volatile);
                let ty = self.lay.infos[from.lay as usize].ty;
                if self.p.leaf_count(ty) > crate::parse::MAX_LEAVES {
                    return self.err("a copy of this many scalars at once is too large");
                }
                let mut out = Vec::new();
                self.load(&from, from.lay, 0, &mut out)?;
                let mut rest = &out[..];
                self.store(&to, to.lay, 0, &mut rest)?;
                if !rest.is_empty() {
                    return self.err("a copy between different types");
                }
            }
            S::AccessChain | S::InBoundsAccessChain => {
                let (ty, id) = self.result(i)?;
                let base = self.ptr(i.w(3)?)?;
                let ptr = self.chain(base, i.rest(4))?;
                self.check_pointee(ty, &ptr)?;
                self.set_ptr(id, ty, ptr)?;
            }
            S::PtrAccessChain | S::InBoundsPtrAccessChain => {
                let (ty, id) = self.result(i)?;
                let base_id = i.w(3)?;
                let mut ptr = self.ptr(base_id)?;
                let stride = match self.p.def(base_id) {
                    Def::Local(t) => number(self.p, self.p.types[t as usize].id, Numbered::ArrayStride),
                    _ => None,
                };
                let stride = stride.map_or(self.lay.infos[ptr.lay as usize].size, u64::from);
                self.step(&mut ptr, i.w(4)?, stride)?;
                let ptr = self.chain(ptr, i.rest(5))?;
                self.check_pointee(ty, &ptr)?;
                self.set_ptr(id, ty, ptr)?;
            }
            S::CopyObject if matches!(self.p.def(i.w(1)?), Def::Type(t) if matches!(self.p.ty(t), Ty::Pointer { .. })) =>
            {
                let (ty, id) = self.result(i)?;
                let ptr = self.ptr(i.w(3)?)?;
                self.set_ptr(id, ty, ptr)?;
            }
            S::ConvertUToPtr | S::ConvertPtrToU => {
                let (ty, id) = self.result(i)?;
                let v = self.leaf(i.w(3)?)?;
                let Some(to) = self.p.scalar(ty) else {
                    return self.err("a conversion between a pointer and something that is no integer");
                };
                let v = self.physical(&[v], to)?[0];
                self.set1(id, ty, v)?;
            }
            S::ArrayLength => {
                let (ty, id) = self.result(i)?;
                let ptr = self.ptr(i.w(3)?)?;
                let member = i.w(4)?;
                let (Some((res, element)), Lay::Struct { first, n }) =
                    (ptr.buffer, self.lay.infos[ptr.lay as usize].lay)
                else {
                    return self.err("the length of something that is no array at the end of a buffer");
                };
                if member >= n || ptr.index.is_some() || ptr.offset != 0 {
                    return self.err("the length of something that is no array at the end of a buffer");
                }
                let field = self.lay.fields[(first + member) as usize];
                let Lay::Array { n: 0, stride, .. } = self.lay.infos[field.lay as usize].lay else {
                    return self.err("the length of something that is no array at the end of a buffer");
                };
                let size = self.emit1(Op::ResourceSize, Type::I32, Imm::Res(res), element.as_slice())?;
                let offset = self.i32(field.offset);
                let bytes = self.op(Op::Isub, Type::I32, &[size, offset])?;
                let stride = self.i32(stride);
                let n = self.op(Op::Udiv, Type::I32, &[bytes, stride])?;
                self.set1(id, ty, n)?;
            }
            S::PtrEqual | S::PtrNotEqual | S::PtrDiff => {
                let (ty, id) = self.result(i)?;
                let (a, b) = (self.ptr(i.w(3)?)?, self.ptr(i.w(4)?)?);
                let size = self.lay.infos[a.lay as usize].size.clamp(1, u32::MAX as u64) as u32;
                let mut bits = [self.addr(&a, 0)?, self.addr(&b, 0)?];
                for v in &mut bits {
                    *v = self.op(Op::Bitcast, Type::I32, &[*v])?;
                }
                let v = match op {
                    S::PtrEqual => self.op(Op::Ieq, Type::I32, &bits)?,
                    S::PtrNotEqual => self.op(Op::Ine, Type::I32, &bits)?,
                    _ => {
                        let d = self.op(Op::Isub, Type::I32, &bits)?;
                        let size = self.i32(size);
                        let v = self.op(Op::Sdiv, Type::I32, &[d, size])?;
                        match self.p.scalar(ty) {
                            Some(t) if t.is_int() => resize(self, (Type::I32, v), t, true)?,
                            _ => v,
                        }
                    }
                };
                self.set1(id, ty, v)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Physical pointers from and to integers of the same bits: of the 64 that the source knows the low word is the address, the
    /// rest is 0.
    pub(super) fn physical(&mut self, values: &[Value], to: Type) -> Res<SmallVec<[Value; 16]>> {
        let global = Type::Ptr(Space::Global);
        let word = match *values {
            [v] if self.ty_of(v) == global => self.op(Op::Bitcast, Type::I32, &[v])?,
            [v, ..] if self.ty_of(v).is_int() => resize(self, (self.ty_of(v), v), Type::I32, false)?,
            _ => return self.err("a conversion between a pointer and something that is no integer"),
        };
        Ok(match to {
            _ if to == global => smallvec![self.op(Op::Bitcast, to, &[word])?],
            Type::I32 => smallvec![word, self.i32(0)],
            _ if to.is_int() => smallvec![resize(self, (Type::I32, word), to, false)?],
            _ => return self.err("a conversion between a pointer and something that is no integer"),
        })
    }

    /// The pointee of a chain must be what the type of its result says: later loads rely on it.
    fn check_pointee(&self, ty: TyId, ptr: &Ptr) -> Res<()> {
        match self.p.ty(ty) {
            Ty::Pointer { pointee, .. } if pointee == self.lay.infos[ptr.lay as usize].ty => Ok(()),
            Ty::Pointer { .. } => self.err("an access chain does not lead to the type it says"),
            _ => self.err("the type of an access chain must be a pointer"),
        }
    }

    /// The pointer that an id is.
    pub(super) fn ptr(&mut self, id: u32) -> Res<Ptr> {
        let v = self.val(id)?;
        if v.len == IS_PTR {
            return Ok(self.ptrs[v.start as usize]);
        }
        if v.len == IS_IMAGE {
            return self.err(format!("{} is an image, which is not in memory", self.p.label(id)));
        }
        let Ty::Pointer { pointee, class } = self.p.ty(v.ty) else {
            return self.err(format!("{} must be a pointer", self.p.label(id)));
        };
        let base = self.pool[v.start as usize];
        let Type::Ptr(space) = self.ty_of(base) else {
            return self.err(format!("{} must be a pointer", self.p.label(id)));
        };
        let explicit = !matches!(space, Space::Private | Space::Shared);
        let _ = class;
        let rule = if explicit { Rule::EXPLICIT } else { self.shared_rule(space, pointee) };
        let lay = self.lay.get(self.p, self.at, pointee, rule)?;
        Ok(Ptr {
            base: Base::Value(base),
            index: None,
            offset: 0,
            align: self.lay.infos[lay as usize].align,
            promised: 1,
            lay,
            space,
            volatile: false,
            read_only: space.is_read_only(),
            buffer: None,
        })
    }

    /// Shared memory lies as its decorations say if it is a block.
    pub(super) fn shared_rule(&self, space: Space, pointee: TyId) -> Rule {
        let id = self.p.types[pointee as usize].id;
        if space == Space::Shared && self.p.facts[id as usize] & fact::BLOCK != 0 {
            Rule::EXPLICIT
        } else {
            Rule::Own
        }
    }

    // Addresses.

    /// `ptr + offset` as a value.
    pub(super) fn addr(&mut self, ptr: &Ptr, offset: i64) -> Res<Value> {
        let base = match ptr.base {
            Base::Value(v) => v,
            Base::Builtin(_) => return self.err("the address of a built-in variable is not supported"),
            Base::Buffers(_) => return self.err("an array of buffers needs an index"),
            Base::Interface(_) => return self.err("what a stage is given or gives has no address"),
        };
        let offset = (ptr.offset as i64).wrapping_add(offset) as i32;
        if ptr.index.is_none() && offset == 0 {
            return Ok(base);
        }
        let (index, scale) = match ptr.index {
            Some((v, s)) => (Some(v), s),
            None => (None, 1),
        };
        let mut args: SmallVec<[Value; 2]> = smallvec![base];
        args.extend(index);
        let flags = std::mem::replace(&mut self.flags, Flags::NONE);
        let v = self.emit1(Op::Lea, self.ty_of(base), Imm::Lea(LeaImm { scale, offset }), &args);
        self.flags = flags;
        v
    }

    /// Moves a pointer by `index * stride`.
    fn step(&mut self, ptr: &mut Ptr, index: u32, stride: u64) -> Res<()> {
        if matches!(ptr.base, Base::Buffers(_)) {
            return self.err("an array of buffers needs an index");
        }
        if matches!(ptr.base, Base::Interface(_)) {
            return self.err("what a stage is given or gives has no address");
        }
        if let Some(k) = self.p.int_const(index) {
            let Some(offset) = k
                .checked_mul(stride.min(i64::MAX as u64) as i64)
                .and_then(|o| o.checked_add(ptr.offset as i64))
                .and_then(|o| i32::try_from(o).ok())
            else {
                return self.err(format!("index {k} reaches beyond 2 GB"));
            };
            ptr.offset = offset;
            return Ok(());
        }
        let Ok(scale) = u32::try_from(stride) else {
            return self.err("the stride of an array is beyond 4 GB");
        };
        let v = self.leaf(index)?;
        let ty = self.type_of(index)?;
        let Ty::Int { signed, .. } = self.p.ty(ty) else {
            return self.err("an index must be an integer");
        };
        let from = self.ty_of(v);
        let v = resize(self, (from, v), Type::I32, signed)?;
        if let (Base::Value(base), Some((old, scale))) = (ptr.base, ptr.index) {
            let lea = Imm::Lea(LeaImm { scale, offset: 0 });
            let flags = std::mem::replace(&mut self.flags, Flags::NONE);
            let base = self.emit1(Op::Lea, self.ty_of(base), lea, &[base, old])?;
            self.flags = flags;
            ptr.base = Base::Value(base);
        } else if ptr.index.is_some() {
            return self.err("two indexes into a built-in variable");
        }
        ptr.index = Some((v, scale));
        ptr.align = alignment(scale as i64, ptr.align);
        Ok(())
    }

    /// An index as a word.
    pub(super) fn word_index(&mut self, id: u32) -> Res<Value> {
        let v = self.leaf(id)?;
        let ty = self.type_of(id)?;
        let signed = matches!(self.p.ty(ty), Ty::Int { signed: true, .. });
        let from = self.ty_of(v);
        if !from.is_int() {
            return self.err("an index must be an integer");
        }
        resize(self, (from, v), Type::I32, signed)
    }

    /// `outer * n + inner`: arrays of arrays of resources are one array, as their bindings are.
    pub(super) fn element_of(&mut self, outer: Value, n: u32, inner: Value) -> Res<Value> {
        let f = &self.m.func;
        if let (Some(outer), Some(inner)) = (f.as_const(outer), f.as_const(inner)) {
            return Ok(self.i32((outer as u32).wrapping_mul(n).wrapping_add(inner as u32)));
        }
        let n = self.i32(n);
        let first = self.op(Op::Imul, Type::I32, &[outer, n])?;
        self.op(Op::Iadd, Type::I32, &[first, inner])
    }

    /// Follows the indexes of an access chain.
    fn chain(&mut self, mut ptr: Ptr, indexes: &[u32]) -> Res<Ptr> {
        let mut indexes = indexes.iter();
        if let Base::Buffers(res) = ptr.base {
            // The first indexes choose the buffer, one for each array around it.
            while let Lay::Array { elem, n, .. } = self.lay.infos[ptr.lay as usize].lay {
                let Some(&k) = indexes.next() else { return Ok(ptr) };
                let v = self.word_index(k)?;
                let v = match ptr.index {
                    Some((outer, _)) => self.element_of(outer, n, v)?,
                    None => v,
                };
                ptr.index = Some((v, 1));
                ptr.lay = elem;
            }
            let Some((element, _)) = ptr.index.take() else {
                return self.err("an array of buffers needs an index");
            };
            let base = self.emit1(Op::ResourceAddr, Type::Ptr(ptr.space), Imm::Res(res), &[element])?;
            ptr.base = Base::Value(base);
            ptr.buffer = Some((res, Some(element)));
        }
        for &k in indexes {
            if matches!(ptr.base, Base::Interface(_)) {
                ptr = self.step_into(ptr, k)?;
                continue;
            }
            let info = self.lay.infos[ptr.lay as usize];
            match info.lay {
                Lay::Struct { first, n } => {
                    let m = match self.p.int_const(k) {
                        Some(m) if (0..n as i64).contains(&m) => m as u32,
                        _ => return self.err("an index into a structure must be a constant within it"),
                    };
                    let field = self.lay.fields[(first + m) as usize];
                    let Some(offset) = ptr.offset.checked_add(field.offset as i32) else {
                        return self.err("an offset beyond 2 GB");
                    };
                    ptr.offset = offset;
                    ptr.lay = field.lay;
                    ptr.volatile |= field.facts & fact::VOLATILE != 0;
                }
                Lay::Array { elem, stride, .. } => {
                    self.step(&mut ptr, k, stride as u64)?;
                    ptr.lay = elem;
                }
                Lay::Vector { stride, .. } => {
                    self.step(&mut ptr, k, stride as u64)?;
                    let Ty::Vector { elem, .. } = self.p.ty(info.ty) else {
                        return self.err("an access chain into something that has no parts");
                    };
                    ptr.lay = self.lay.get(self.p, self.at, elem, Rule::Own)?;
                }
                _ => return self.err("an access chain into something that has no parts"),
            }
        }
        Ok(ptr)
    }

    // Loads and stores.

    fn mem(&self, ptr: &Ptr, offset: i64, count: u32) -> MemImm {
        MemImm {
            space: ptr.space,
            count: count as u8,
            align: alignment(ptr.offset as i64 + offset, ptr.align).max(alignment(offset, ptr.promised)),
            volatile: ptr.volatile,
            read_only: ptr.read_only,
        }
    }

    fn check_bool(&self, ty: Type, space: Space) -> Res<()> {
        if ty == Type::Bool && !matches!(space, Space::Private | Space::Shared | Space::Constant) {
            return self.err("booleans in memory that others can see");
        }
        Ok(())
    }

    /// Loads what lies at `ptr + offset`.
    pub(super) fn load(&mut self, ptr: &Ptr, lay: LayId, offset: i64, out: &mut Vec<Value>) -> Res<()> {
        if self.is_nothing(lay) {
            return self.err_opaque(lay);
        }
        if let Base::Interface(n) = ptr.base {
            return self.load_interface(n, out);
        }
        match self.lay.infos[lay as usize].lay {
            Lay::Scalar(ty) => self.load_some(ptr, ty, offset, 1, out),
            Lay::Vector { ty, n, stride } if stride == ty.bytes() => self.load_some(ptr, ty, offset, n, out),
            Lay::Vector { ty, n, stride } => {
                for k in 0..n {
                    self.load_some(ptr, ty, offset + k as i64 * stride as i64, 1, out)?;
                }
                Ok(())
            }
            Lay::Array { n: 0, .. } | Lay::Opaque => self.err_opaque(lay),
            Lay::Array { elem, n, stride } => {
                for k in 0..n {
                    self.load(ptr, elem, offset + k as i64 * stride as i64, out)?;
                }
                Ok(())
            }
            Lay::Struct { first, n } => {
                for k in first..first + n {
                    let f = self.lay.fields[k as usize];
                    let mut part = *ptr;
                    part.volatile |= f.facts & fact::VOLATILE != 0;
                    self.load(&part, f.lay, offset + f.offset as i64, out)?;
                }
                Ok(())
            }
        }
    }

    /// A type without scalars: walking it could take for ever.
    pub(super) fn is_nothing(&self, lay: LayId) -> bool {
        self.p.leaf_count(self.lay.infos[lay as usize].ty) == 0
    }

    #[cold]
    pub(super) fn err_opaque(&self, lay: LayId) -> Res<()> {
        match self.p.ty(self.lay.infos[lay as usize].ty) {
            Ty::Opaque { what } => match REFUSED.iter().find(|(_, message, _)| message.starts_with(what)) {
                Some((_, message, help)) => self.refuse((*message).to_owned(), help),
                None => self.err(format!("{what} are not supported yet")),
            },
            Ty::Image { .. } | Ty::SampledImage { .. } | Ty::Sampler => {
                self.err("an image where a number is expected")
            }
            Ty::Pointer { class, .. } => {
                self.err(format!("pointers to {} are not supported yet", class_name(class)))
            }
            _ => self.err("something without a size cannot be loaded or stored"),
        }
    }

    pub(super) fn load_some(
        &mut self,
        ptr: &Ptr,
        ty: Type,
        offset: i64,
        n: u32,
        out: &mut Vec<Value>,
    ) -> Res<()> {
        if out.len() > crate::parse::MAX_LEAVES as usize {
            return self.err("a load of this many scalars at once is too large");
        }
        if let Base::Builtin(b) = ptr.base {
            for k in 0..n {
                let at = ptr.offset as i64 + offset + 4 * k as i64;
                let v = self.load_builtin(b, ptr.index.map(|i| i.0), at / 4)?;
                out.push(v);
            }
            return Ok(());
        }
        self.check_bool(ty, ptr.space)?;
        let addr = self.addr(ptr, offset)?;
        let mem = self.mem(ptr, offset, n);
        if let Type::Ptr(Space::Global) = ty {
            let word = self.emit1(Op::Load, Type::I32, Imm::Mem(MemImm { count: 1, ..mem }), &[addr])?;
            out.push(self.op(Op::Bitcast, ty, &[word])?);
            return Ok(());
        }
        let types: SmallVec<[Type; 4]> = smallvec![ty; n as usize];
        let i = self.emit(Op::Load, ty, Imm::Mem(mem), &[addr], &types)?;
        out.extend_from_slice(&self.m.func.insts[i].results);
        Ok(())
    }

    /// Stores the first scalars of `data` at `ptr + offset` and takes them away.
    pub(super) fn store(&mut self, ptr: &Ptr, lay: LayId, offset: i64, data: &mut &[Value]) -> Res<()> {
        if self.is_nothing(lay) {
            return self.err_opaque(lay);
        }
        if let Base::Interface(n) = ptr.base {
            return self.store_interface(n, data);
        }
        match self.lay.infos[lay as usize].lay {
            Lay::Scalar(ty) => self.store_some(ptr, ty, offset, 1, data),
            Lay::Vector { ty, n, stride } if stride == ty.bytes() => {
                self.store_some(ptr, ty, offset, n, data)
            }
            Lay::Vector { ty, n, stride } => {
                for k in 0..n {
                    self.store_some(ptr, ty, offset + k as i64 * stride as i64, 1, data)?;
                }
                Ok(())
            }
            Lay::Array { n: 0, .. } | Lay::Opaque => self.err_opaque(lay),
            Lay::Array { elem, n, stride } => {
                for k in 0..n {
                    if data.is_empty() {
                        break;
                    }
                    self.store(ptr, elem, offset + k as i64 * stride as i64, data)?;
                }
                Ok(())
            }
            Lay::Struct { first, n } => {
                for k in first..first + n {
                    let f = self.lay.fields[k as usize];
                    let mut part = *ptr;
                    part.volatile |= f.facts & fact::VOLATILE != 0;
                    self.store(&part, f.lay, offset + f.offset as i64, data)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn store_some(
        &mut self,
        ptr: &Ptr,
        ty: Type,
        offset: i64,
        n: u32,
        data: &mut &[Value],
    ) -> Res<()> {
        if ptr.space.is_read_only() || matches!(ptr.base, Base::Builtin(_)) {
            return self.err("a store to memory that can only be read");
        }
        self.check_bool(ty, ptr.space)?;
        let (Some(now), Some(rest)) = (data.get(..n as usize), data.get(n as usize..)) else {
            return self.err("a store of a value of another type");
        };
        if now.iter().any(|v| self.ty_of(*v) != ty) {
            return self.err("a store of a value of another type");
        }
        *data = rest;
        let addr = self.addr(ptr, offset)?;
        let mem = self.mem(ptr, offset, n);
        let mut args: SmallVec<[Value; 5]> = smallvec![addr];
        if let (Type::Ptr(Space::Global), &[pointer]) = (ty, now) {
            let word = self.op(Op::Bitcast, Type::I32, &[pointer])?;
            args.extend([word, self.i32(0)]);
            self.emit(Op::Store, Type::I32, Imm::Mem(MemImm { count: 2, ..mem }), &args, &[])?;
            return Ok(());
        }
        args.extend_from_slice(now);
        self.emit(Op::Store, ty, Imm::Mem(mem), &args, &[])?;
        Ok(())
    }
}
