//! Loads, stores and atomics.
//!
//! An access moves one to four elements of 8, 16 or 32 bits to or from consecutive registers (reference section 5), so
//! 64-bit components are two words, bools one, and narrow components are zero-extended into registers of their own. Longer
//! vectors are cut. Every access has its pointer in the form of [`super::address`].
//!
//! * Push constants at a constant offset are words that the driver puts into uniform registers.
//! * Atomics are on 32-bit words, in buffers and in threadgroup memory. An atomic load or store is an ordinary access of a
//!   word; an addition of floats becomes a loop around a compare-and-exchange.
//!
//! Left out: 64-bit and narrow atomics; components at less than their own alignment: errors.

use super::Lower;
use super::address::{Carried, MAX_EXTRA_SHIFT, Parts};
use kempe_ir::{
    AtomicImm, AtomicOp, Flags, Imm, InstData, MemImm, Op, Space, Target, Term, Type, UniformWord, Value,
};
use kempe_words::{Rep, Result, Words};
use smallvec::{SmallVec, smallvec};

type Values = SmallVec<[Value; 8]>;

/// Most elements that one access moves.
const MAX_ELEMENTS: usize = 4;

/// Memory that a device access reaches.
fn is_device(space: Space) -> bool {
    !matches!(space, Space::Private | Space::Shared)
}

impl Lower {
    fn mem_imm(w: &Words, inst: &InstData) -> Result<MemImm> {
        match inst.imm {
            Imm::Mem(mem) => Ok(mem),
            _ => w.error(format!("`{}` without its immediate", inst.op.name())),
        }
    }

    fn parts(w: &mut Words, inst: &InstData) -> Result<Parts> {
        let pointer = w.arg_one(inst, 0)?;
        match Parts::of(w, pointer) {
            Some(parts) => Ok(parts),
            None => w.error(format!("`{}` through something that is no pointer", inst.op.name())),
        }
    }

    /// Log2 of the size of an element of memory.
    fn log_size(ty: Type) -> u32 {
        ty.bytes().trailing_zeros()
    }

    fn pointer(&mut self, w: &mut Words, parts: &Parts, ty: Type, extra: u32) -> Value {
        let extra = if parts.space == Space::Shared { 0 } else { extra };
        // Private memory is counted in bytes.
        let (e, extra) = if parts.space == Space::Private { (0, 0) } else { (Self::log_size(ty), extra) };
        let (v, carried) = parts.pointer(w, e, extra, self.plain_addresses);
        if is_device(parts.space) {
            self.addresses.accesses += 1;
            self.addresses.whole += u32::from(carried == Carried::Whole);
        }
        v
    }

    fn check_alignment(w: &Words, parts: &Parts, ty: Type, mem: MemImm) -> Result<()> {
        let known = 1u64 << parts.trailing(w).min(4);
        let align = u64::from(mem.align).max(known);
        if align < u64::from(ty.bytes()) {
            return w
                .error(format!("an access to {ty} that is only aligned to {align} bytes is not supported"));
        }
        Ok(())
    }

    /// Elements of a type that memory has, as i32 or f32.
    fn load_elements(
        &mut self,
        w: &mut Words,
        ty: Type,
        mem: MemImm,
        parts: &Parts,
        count: usize,
    ) -> Result<Values> {
        let mut out = Values::new();
        if let (Space::Push, Some(at)) = (parts.space, parts.constant())
            && (ty.bytes() == 4 && at.is_multiple_of(4) || ty.bytes() < 4)
        {
            for k in 0..count as u32 {
                let at = at.wrapping_add(k * ty.bytes());
                let word = w.e.uniform(UniformWord::PushWord(at & !3));
                out.push(match ty {
                    Type::I8 | Type::I16 => {
                        let low = w.e.lshr_c(word, 8 * (at & 3));
                        w.e.zext(low, ty.bits())
                    }
                    _ => w.e.bitcast(ty, word),
                });
            }
            return Ok(out);
        }
        Self::check_alignment(w, parts, ty, mem)?;
        let mut done = 0;
        while done < count {
            let run = (count - done).min(MAX_ELEMENTS);
            let at = done as u32 * ty.bytes();
            let pointer = self.pointer(w, &parts.plus(at), ty, MAX_EXTRA_SHIFT);
            let align = piece_align(mem.align.max(ty.bytes()), at);
            let imm = Imm::Mem(MemImm { count: run as u8, align, ..mem });
            let results: SmallVec<[Type; 4]> = smallvec![ty; run];
            let inst = w.e.inst(Op::Load, ty, Flags::NONE, imm, &[pointer], &results);
            let values = w.e.func.insts[inst].results.clone();
            for v in values {
                if ty.bytes() == 4 {
                    out.push(v);
                } else {
                    let word = w.e.convert(Op::Zext, Type::I32, v);
                    w.e.set_known(word, kempe_words::emit::Known::below(ty.bits()));
                    out.push(word);
                }
            }
            done += run;
        }
        Ok(out)
    }

    fn store_elements(
        &mut self,
        w: &mut Words,
        ty: Type,
        mem: MemImm,
        parts: &Parts,
        data: &[Value],
    ) -> Result<()> {
        Self::check_alignment(w, parts, ty, mem)?;
        for (n, run) in data.chunks(MAX_ELEMENTS).enumerate() {
            let at = (n * MAX_ELEMENTS) as u32 * ty.bytes();
            let pointer = self.pointer(w, &parts.plus(at), ty, MAX_EXTRA_SHIFT);
            let align = piece_align(mem.align.max(ty.bytes()), at);
            let imm = Imm::Mem(MemImm { count: run.len() as u8, align, ..mem });
            let mut args: SmallVec<[Value; 5]> = smallvec![pointer];
            for &v in run {
                args.push(if ty.bytes() == 4 { v } else { w.e.convert(Op::Trunc, ty, v) });
            }
            w.e.inst(Op::Store, ty, Flags::NONE, imm, &args, &[]);
        }
        Ok(())
    }

    pub(super) fn load(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let mem = Self::mem_imm(w, inst)?;
        let parts = Self::parts(w, inst)?;
        let count = inst.results.len();
        let mut reps: SmallVec<[Rep; 4]> = SmallVec::new();
        match inst.ty {
            Type::I32 | Type::F32 => {
                let words = self.load_elements(w, inst.ty, mem, &parts, count)?;
                reps.extend(words.into_iter().map(Rep::One));
            }
            Type::Bool => {
                let zero = w.e.i(0);
                for word in self.load_elements(w, Type::I32, mem, &parts, count)? {
                    reps.push(Rep::One(w.e.compare(Op::Ine, Type::I32, word, zero)));
                }
            }
            Type::I64 => {
                let mem = MemImm { align: mem.align.min(8), ..mem };
                let words = self.load_elements(w, Type::I32, mem, &parts, 2 * count)?;
                reps.extend(words.chunks_exact(2).map(|w| Rep::Pair(w[0], w[1])));
            }
            Type::Ptr(_) => {
                for word in self.load_elements(w, Type::I32, mem, &parts, count)? {
                    reps.push(Rep::One(w.e.bitcast(inst.ty, word)));
                }
            }
            Type::I8 | Type::I16 | Type::F16 => {
                let ty = if inst.ty == Type::I8 { Type::I8 } else { Type::I16 };
                for word in self.load_elements(w, ty, mem, &parts, count)? {
                    reps.push(if inst.ty == Type::F16 {
                        Rep::Half(w.half_of_bits(word))
                    } else {
                        Rep::Narrow(word, None)
                    });
                }
            }
            Type::F64 => return w.no_f64(),
        }
        for (&r, rep) in inst.results.iter().zip(reps) {
            w.set(r, rep);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let mem = Self::mem_imm(w, inst)?;
        let parts = Self::parts(w, inst)?;
        if parts.space.is_read_only() {
            return w.error(format!("a store to {} memory", parts.space.name()));
        }
        let mut data = Values::new();
        for &v in &inst.args[1..] {
            match w.rep(v)? {
                Rep::One(v) if inst.ty == Type::Bool => data.push(w.e.bit(v)),
                Rep::One(v) if inst.ty.is_ptr() => data.push(w.e.bitcast(Type::I32, v)),
                Rep::One(v) | Rep::Narrow(v, _) => data.push(v),
                Rep::Half(h) => data.push(h.bits),
                Rep::Pair(lo, hi) => data.extend([lo, hi]),
                Rep::Addr(_) | Rep::None => return w.error("the data of a store differ in type"),
            }
        }
        let ty = match inst.ty {
            Type::F16 => Type::I16,
            ty @ (Type::F32 | Type::I8 | Type::I16) => ty,
            Type::F64 => return w.no_f64(),
            _ => Type::I32,
        };
        self.store_elements(w, ty, mem, &parts, &data)
    }

    pub(super) fn atomic(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let Imm::Atomic(imm) = inst.imm else { return w.error("`atomic` without its immediate") };
        if !matches!(inst.ty, Type::I32 | Type::F32) {
            return w.error(format!(
                "atomic operations on {} are not supported: the hardware has 32-bit ones only",
                inst.ty
            ));
        }
        if !matches!(imm.space, Space::Storage | Space::Shared | Space::Global) {
            return w.error(format!("atomic operations on {} memory are not supported", imm.space.name()));
        }
        let parts = Self::parts(w, inst)?;
        let pointer = self.pointer(w, &parts, Type::I32, 0);
        let mem = MemImm { space: imm.space, count: 1, align: 4, volatile: true, read_only: false };
        let load = |w: &mut Words, ty| {
            let load = w.e.inst(Op::Load, ty, Flags::NONE, Imm::Mem(mem), &[pointer], &[ty]);
            w.e.func.insts[load].results[0]
        };
        let old = match imm.op {
            AtomicOp::Load => load(w, inst.ty),
            AtomicOp::Store => {
                let data = w.arg_one(inst, 1)?;
                w.e.inst(Op::Store, inst.ty, Flags::NONE, Imm::Mem(mem), &[pointer, data], &[]);
                w.e.constant(inst.ty, 0)
            }
            AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax => {
                let data = w.arg_one(inst, 1)?;
                let float = imm.op.float().unwrap_or(Op::Fadd);
                let first = load(w, Type::I32);
                self.atomic_float(w, float, imm.space, pointer, data, first)
            }
            op => {
                if inst.ty == Type::F32 && !matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange) {
                    return w.error("this atomic operation does not exist for floats");
                }
                let mut args: SmallVec<[Value; 3]> = smallvec![pointer];
                for n in 1..inst.args.len() {
                    let v = w.arg_one(inst, n)?;
                    args.push(w.e.bitcast(Type::I32, v));
                }
                let old = Self::raw_atomic(w, op, imm.space, &args);
                w.e.bitcast(inst.ty, old)
            }
        };
        if let Some(&r) = inst.results.first() {
            w.set_one(r, old);
        }
        Ok(())
    }

    fn raw_atomic(w: &mut Words, op: AtomicOp, space: Space, args: &[Value]) -> Value {
        let imm = Imm::Atomic(AtomicImm { op, space });
        w.e.one(Op::Atomic, Type::I32, Flags::NONE, imm, args)
    }

    /// Computes with a float: take the old value, compute, try to exchange, until nobody was faster.
    fn atomic_float(
        &mut self,
        w: &mut Words,
        op: Op,
        space: Space,
        pointer: Value,
        data: Value,
        first: Value,
    ) -> Value {
        let header = w.append_block();
        let old = w.e.param(header, Type::I32);
        w.e.jump(header, &[first]);
        w.e.switch_to(header);
        let value = w.e.bitcast(Type::F32, old);
        let new = w.e.float(op, &[value, data]);
        let new = w.e.bitcast(Type::I32, new);
        let seen = Self::raw_atomic(w, AtomicOp::CompareExchange, space, &[pointer, old, new]);
        let done = w.e.ieq(seen, old);
        let rest = w.append_block();
        w.e.end(Term::Branch {
            cond: done,
            then: Target { block: rest, args: smallvec![] },
            els: Target { block: header, args: smallvec![seen] },
        });
        w.e.switch_to(rest);
        w.e.bitcast(Type::F32, seen)
    }
}

/// Alignment of what stands at an offset behind an aligned address.
fn piece_align(align: u32, offset: u32) -> u32 {
    if offset == 0 { align } else { align.min(1 << offset.trailing_zeros()) }
}
