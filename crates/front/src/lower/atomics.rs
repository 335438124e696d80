//! Atomic operations and barriers.

use super::*;
use kempe_ir::{AtomicImm, AtomicOp, BarrierImm};

/// Memory semantics (SPIR-V 3.25): what is ordered, and which memory.
const ORDERS: u32 = 2 | 4 | 8 | 16;
const UNIFORM: u32 = 0x40;
const SHARED: u32 = 0x100;
const CROSS: u32 = 0x200;
const IMAGE: u32 = 0x800;
const SCOPE_SUBGROUP: i64 = 3;
const SCOPE_INVOCATION: i64 = 4;

fn barrier(semantics: u32) -> BarrierImm {
    BarrierImm { shared: semantics & SHARED != 0, storage: semantics & (UNIFORM | CROSS | IMAGE) != 0 }
}

impl Lower<'_, '_> {
    pub(super) fn atomic_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        use AtomicOp::*;
        // Pointer, scope and semantics stand behind the result, if there is one.
        let (what, data) = match op {
            S::AtomicIAdd => (Add, 6),
            S::AtomicISub => (Sub, 6),
            S::AtomicIIncrement => (Add, 0),
            S::AtomicIDecrement => (Sub, 0),
            S::AtomicExchange => (Exchange, 6),
            S::AtomicCompareExchange | S::AtomicCompareExchangeWeak => (CompareExchange, 7),
            S::AtomicUMin => (Umin, 6),
            S::AtomicUMax => (Umax, 6),
            S::AtomicSMin => (Smin, 6),
            S::AtomicSMax => (Smax, 6),
            S::AtomicAnd => (And, 6),
            S::AtomicOr => (Or, 6),
            S::AtomicXor => (Xor, 6),
            S::AtomicFAddEXT => (Fadd, 6),
            S::AtomicFMinEXT => (Fmin, 6),
            S::AtomicFMaxEXT => (Fmax, 6),
            S::AtomicLoad => (Load, 0),
            S::AtomicStore => (Store, 4),
            S::ControlBarrier => {
                self.control_barrier(i)?;
                return Ok(true);
            }
            S::MemoryBarrier => {
                let semantics = self.semantics(i.w(2)?)?;
                let scope = self.p.int_const(i.w(1)?).unwrap_or(0);
                if scope != SCOPE_INVOCATION {
                    self.emit(Op::Fence, Type::I32, Imm::Barrier(barrier(semantics)), &[], &[])?;
                }
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let has_result = what != Store;
        let (pointer, semantics) = if has_result { (i.w(3)?, i.w(5)?) } else { (i.w(1)?, i.w(3)?) };
        let texel = self.texel_pointer(pointer)?;
        let ptr = if texel.is_none() { Some(self.ptr(pointer)?) } else { None };
        let semantics = self.semantics(semantics)?;
        let ty = match (texel, &ptr) {
            (Some(h), _) => self.texel_type(h),
            (None, Some(ptr)) => self.p.scalar(self.lay.infos[ptr.lay as usize].ty),
            _ => None,
        };
        let Some(ty) = ty.filter(|t| t.is_int() || t.is_float()) else {
            return self.err("an atomic operation on something that is no number");
        };
        if ptr.is_some_and(|p| {
            !matches!(p.space, Space::Storage | Space::Shared | Space::Private | Space::Global)
        }) {
            return self.err("an atomic operation on memory that can only be read");
        }
        let mut values: SmallVec<[Value; 2]> = SmallVec::new();
        match (what, data) {
            (Add | Sub, 0) => values.push(self.konst(ty, 1)),
            (Load, _) => {}
            // SPIR-V says the new value first, then the expected one.
            (CompareExchange, _) => values.extend([self.leaf(i.w(8)?)?, self.leaf(i.w(7)?)?]),
            _ => values.push(self.leaf(i.w(data)?)?),
        }
        if values.iter().any(|v| self.ty_of(*v) != ty) {
            return self.err("an atomic operation with a value of another type");
        }
        let float_op = what.float().is_some();
        let moves = matches!(what, Exchange | Load | Store | CompareExchange);
        if ty.is_float() != float_op && !(ty.is_float() && moves) {
            return self.err("an atomic operation of the wrong type");
        }
        // Floats are only moved here: as bits they need no operation of their own.
        let bits = if ty.is_float() && moves { Type::int(ty.bits()).unwrap_or(ty) } else { ty };
        if bits != ty {
            for v in &mut values {
                *v = self.op(Op::Bitcast, bits, &[*v])?;
            }
        }
        let order = |l: &mut Self, when: u32| -> Res<()> {
            if semantics & when != 0 && semantics & (UNIFORM | SHARED | CROSS | IMAGE) != 0 {
                l.emit(Op::Fence, Type::I32, Imm::Barrier(barrier(semantics)), &[], &[])?;
            }
            Ok(())
        };
        order(self, 4 | 8 | 16)?;
        let mut old = match (texel, ptr) {
            (Some(h), _) => self.image_atomic(h, what, bits, &values)?,
            (None, Some(ptr)) => {
                let addr = self.addr(&ptr, 0)?;
                let mut args: SmallVec<[Value; 3]> = smallvec![addr];
                args.extend(values);
                let imm = Imm::Atomic(AtomicImm { op: what, space: ptr.space });
                self.emit1(Op::Atomic, bits, imm, &args)?
            }
            _ => return self.err("an atomic operation on something that is no number"),
        };
        order(self, 2 | 8 | 16)?;
        if has_result {
            let (result, id) = self.result(i)?;
            if bits != ty {
                old = self.op(Op::Bitcast, ty, &[old])?;
            }
            self.set1(id, result, old)?;
        }
        Ok(true)
    }

    fn semantics(&self, id: u32) -> Res<u32> {
        match self.p.int_const(id) {
            Some(s) => Ok(s as u32),
            None => self.err("memory semantics must be a constant"),
        }
    }

    fn control_barrier(&mut self, i: &Inst) -> Res<()> {
        let Some(scope) = self.p.int_const(i.w(1)?) else {
            return self.err("the scope of a barrier must be a constant");
        };
        let semantics = self.semantics(i.w(3)?)?;
        let imm = Imm::Barrier(if semantics & ORDERS != 0 { barrier(semantics) } else { barrier(0) });
        // The lanes of a subgroup run together: only the order of memory is left.
        let op = if scope >= SCOPE_SUBGROUP { Op::Fence } else { Op::Barrier };
        self.emit(op, Type::I32, imm, &[], &[])?;
        Ok(())
    }
}
