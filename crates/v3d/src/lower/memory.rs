//! Loads, stores and atomics.
//!
//! The memory unit moves one to four 32-bit words from or to any word address, or one 8 or 16-bit component
//! (reference section 12.2). So:
//!
//! * 64-bit components are two words, bools one;
//! * vectors of narrow components are moved as words where their alignment proves that they start at one, the rest
//!   one by one; nothing outside of the accessed bytes is touched;
//! * on 4.2 an access must stay inside an aligned 16-byte block (rule 67), so vectors are cut where the known
//!   alignment does not prove that;
//! * private memory is reached by dwords only (12.6): vectors word by word, narrow data by shifting inside a dword;
//! * push constants at a constant offset are words of the uniform stream.
//!
//! Atomics: the unit adds, subtracts, exchanges, compares and exchanges, takes minima and maxima and combines bits,
//! all on 32-bit words (12.2). An atomic load or store is an ordinary access of a word. A float addition becomes a
//! loop around a compare-and-exchange.
//!
//! Left out: 64-bit and narrow atomics, and 64-bit addresses: errors.

use super::address::{PRIVATE_SCALE, machine_space};
use super::emit::{MachineOps, low_mask, words};
use super::{Addr, Half, Lower, Origin, Rep, Result};
use crate::instr::Version;
use kempe_ir::{
    AtomicImm, AtomicOp, Flags, Imm, InstData, MemImm, Op, Space, Target, Term, Type, UniformWord, Value,
};
use smallvec::{SmallVec, smallvec};

type Words = SmallVec<[Value; 8]>;

/// Most words that one access moves (reference section 12.2).
const MAX_WORDS: u32 = 4;

/// Size of the blocks that an access must not leave on 4.2 (rule 67).
const BLOCK: u32 = 16;

impl Lower<'_> {
    fn mem_imm(&self, inst: &InstData) -> Result<MemImm> {
        match inst.imm {
            Imm::Mem(mem) => Ok(MemImm { space: machine_space(mem.space), ..mem }),
            _ => self.error(format!("`{}` without its immediate", inst.op.name())),
        }
    }

    /// Address units (see [`Addr`]) for a number of bytes.
    fn units(space: Space, bytes: u32) -> u32 {
        if space == Space::Private { bytes * PRIVATE_SCALE } else { bytes }
    }

    /// The largest power of two, up to 16, that the byte address is certainly a multiple of.
    fn alignment(&self, addr: Addr, promised: u32) -> u32 {
        let sum = addr.sum.map_or(u32::MAX, |s| self.e.known(s).zeros);
        let zeros = (sum & !addr.offset).trailing_ones();
        let zeros = if addr.space == Space::Private { zeros.saturating_sub(4) } else { zeros };
        let promised = if promised.is_power_of_two() { promised } else { 1 };
        (1 << zeros.min(4)).max(promised.min(BLOCK))
    }

    /// How many words from an address at `offset` bytes behind one of the given alignment one access may move.
    fn run_length(&self, align: u32, offset: u32, left: u32) -> u32 {
        match self.version {
            Version::V71 => left.min(MAX_WORDS),
            Version::V42 => {
                let align = align.max(4);
                left.min((align - offset % align) / 4)
            }
        }
    }

    fn load_words(&mut self, ty: Type, mem: MemImm, addr: Addr, count: u32) -> Words {
        let mut out = Words::new();
        match addr.space {
            Space::Push if addr.sum.is_none() && addr.offset.is_multiple_of(4) => {
                for k in 0..count {
                    let word = self.e.uniform(UniformWord::PushWord(addr.offset.wrapping_add(4 * k)));
                    out.push(self.e.bitcast(ty, word));
                }
            }
            Space::Private => {
                for k in 0..count {
                    let at = self.machine_address(addr.plus(4 * k * PRIVATE_SCALE));
                    let imm = MemImm { count: 1, align: 4, ..mem };
                    out.extend(self.e.load(ty, imm, at));
                }
            }
            _ => {
                let align = self.alignment(addr, mem.align);
                let mut k = 0;
                while k < count {
                    let run = self.run_length(align, 4 * k, count - k);
                    let at = self.machine_address(addr.plus(4 * k));
                    let imm = MemImm { count: run as u8, align: piece_align(align, 4 * k), ..mem };
                    out.extend(self.e.load(ty, imm, at));
                    k += run;
                }
            }
        }
        out
    }

    fn store_words(&mut self, ty: Type, mem: MemImm, addr: Addr, data: &[Value]) {
        if addr.space == Space::Private {
            for (k, &v) in data.iter().enumerate() {
                let at = self.machine_address(addr.plus(4 * k as u32 * PRIVATE_SCALE));
                self.e.store(ty, MemImm { count: 1, align: 4, ..mem }, at, &[v]);
            }
            return;
        }
        let align = self.alignment(addr, mem.align);
        let mut k = 0;
        while k < data.len() {
            let run = self.run_length(align, 4 * k as u32, (data.len() - k) as u32) as usize;
            let at = self.machine_address(addr.plus(4 * k as u32));
            let imm = MemImm { count: run as u8, align: piece_align(align, 4 * k as u32), ..mem };
            self.e.store(ty, imm, at, &data[k..k + run]);
            k += run;
        }
    }

    pub fn load(&mut self, inst: &InstData) -> Result<()> {
        let mem = self.mem_imm(inst)?;
        let addr = self.addr_arg(inst, 0)?;
        let count = inst.results.len() as u32;
        let reps: SmallVec<[Rep; 4]> = match inst.ty {
            Type::I32 | Type::F32 => {
                self.load_words(inst.ty, mem, addr, count).into_iter().map(Rep::One).collect()
            }
            Type::Bool => {
                let zero = self.e.i(0);
                let loaded = self.load_words(Type::I32, mem, addr, count);
                loaded.into_iter().map(|w| Rep::One(self.e.compare(Op::Ine, Type::I32, w, zero))).collect()
            }
            Type::I64 => {
                let loaded = self.load_words(Type::I32, mem, addr, 2 * count);
                loaded.chunks_exact(2).map(|w| Rep::Pair(w[0], w[1])).collect()
            }
            Type::Ptr(space) => {
                let loaded = self.load_words(Type::I32, mem, addr, count);
                loaded.into_iter().map(|w| Rep::Addr(Addr::dynamic(space, w))).collect()
            }
            Type::I8 | Type::I16 | Type::F16 => self.load_narrow(inst.ty, mem, addr, count),
            Type::F64 => return self.no_f64(),
        };
        for (&r, rep) in inst.results.iter().zip(reps) {
            self.set(r, rep);
        }
        Ok(())
    }

    fn load_narrow(&mut self, ty: Type, mem: MemImm, addr: Addr, count: u32) -> SmallVec<[Rep; 4]> {
        let size = ty.bytes();
        let mut out = SmallVec::new();
        // Whole words first, where the alignment shows that there are any.
        if self.alignment(addr, mem.align) >= 4 {
            let whole = count * size / 4;
            let loaded = self.load_words(Type::I32, mem, addr, whole);
            for w in loaded {
                for shift in (0..32).step_by(8 * size as usize) {
                    out.push(self.part_of_word(ty, w, shift));
                }
            }
        }
        for k in out.len() as u32..count {
            let at = addr.plus(Self::units(addr.space, k * size));
            let mem = MemImm { align: piece_align(mem.align, k * size), ..mem };
            out.push(self.load_part(ty, mem, at));
        }
        out
    }

    /// The component at a bit position of a word.
    fn part_of_word(&mut self, ty: Type, word: Value, shift: u32) -> Rep {
        let origin: Origin = Some((word, shift as u8));
        let bits = self.e.lshr_c(word, shift);
        if ty == Type::F16 {
            let op = if shift == 0 { Op::UnpackHalfLo } else { Op::UnpackHalfHi };
            let exact = self.e.convert(op, Type::F32, word);
            Rep::Half(Half { bits, exact, unrounded: None, origin })
        } else {
            Rep::Narrow(bits, origin)
        }
    }

    /// One narrow component.
    fn load_part(&mut self, ty: Type, mem: MemImm, addr: Addr) -> Rep {
        let size = ty.bytes();
        match addr.space {
            Space::Private => {
                let (at, shift) = self.private_dword(addr);
                let loaded = self.e.load(Type::I32, MemImm { count: 1, align: 4, ..mem }, at)[0];
                if let Some(shift) = self.e.value_of(shift) {
                    return self.part_of_word(ty, loaded, shift);
                }
                let bits = self.e.lshr(loaded, shift);
                self.part_of_word(ty, bits, 0)
            }
            Space::Push if addr.sum.is_none() => {
                let word = self.e.uniform(UniformWord::PushWord(addr.offset & !3));
                self.part_of_word(ty, word, 8 * (addr.offset & 3 & !(size - 1)))
            }
            _ => {
                let at = self.machine_address(addr);
                let align = self.alignment(addr, mem.align.max(size));
                let int = if size == 1 { Type::I8 } else { Type::I16 };
                let loaded = self.e.load(int, MemImm { count: 1, align, ..mem }, at)[0];
                self.part_of_word(ty, loaded, 0)
            }
        }
    }

    /// The dword that holds a byte of private memory, and the bit position in it.
    fn private_dword(&mut self, addr: Addr) -> (Value, Value) {
        let step = 4 * PRIVATE_SCALE;
        let aligned = addr.sum.is_none_or(|s| self.e.known(s).zeros.trailing_ones() >= step.trailing_zeros());
        if aligned {
            let inside = addr.offset % step;
            let at = self.machine_address(Addr { offset: addr.offset - inside, ..addr });
            return (at, self.e.i(8 * inside / PRIVATE_SCALE));
        }
        let place = self.pointer_value(addr);
        // Byte b of the dword stands at b * PRIVATE_SCALE; its bit position is 8 * b.
        let half = self.e.lshr_c(place, 1);
        let shift = self.e.and_c(half, 24);
        let start = self.e.and_c(place, !(step - 1));
        let at = self.machine_address(Addr::dynamic(Space::Private, start));
        (at, shift)
    }

    pub fn store(&mut self, inst: &InstData) -> Result<()> {
        let mem = self.mem_imm(inst)?;
        let addr = self.addr_arg(inst, 0)?;
        if addr.space.is_read_only() {
            return self.error(format!("a store to {} memory", addr.space.name()));
        }
        let mut data: Words = SmallVec::new();
        match inst.ty {
            Type::I32 | Type::F32 | Type::Ptr(_) | Type::Bool | Type::I64 => {
                for &v in &inst.args[1..] {
                    match self.rep(v)? {
                        Rep::One(v) if inst.ty == Type::Bool => data.push(self.e.bit(v)),
                        Rep::One(v) => data.push(v),
                        Rep::Pair(lo, hi) => data.extend([lo, hi]),
                        Rep::Addr(a) => data.push(self.pointer_value(a)),
                        _ => return self.error("the data of a store differ in type"),
                    }
                }
                let ty = if inst.ty == Type::F32 { Type::F32 } else { Type::I32 };
                self.store_words(ty, mem, addr, &data);
                Ok(())
            }
            Type::I8 | Type::I16 | Type::F16 => self.store_narrow(inst, mem, addr),
            Type::F64 => self.no_f64(),
        }
    }

    fn store_narrow(&mut self, inst: &InstData, mem: MemImm, addr: Addr) -> Result<()> {
        let size = inst.ty.bytes();
        let per_word = (4 / size) as usize;
        let mut data: SmallVec<[Rep; 4]> = SmallVec::new();
        for &v in &inst.args[1..] {
            data.push(self.rep(v)?);
        }
        let mut done = 0;
        if self.alignment(addr, mem.align) >= 4 {
            let mut combined = Words::new();
            for parts in data.chunks_exact(per_word) {
                combined.push(self.word_of_parts(parts, 8 * size)?);
            }
            done = combined.len() * per_word;
            if !combined.is_empty() {
                self.store_words(Type::I32, mem, addr, &combined);
            }
        }
        for (k, &part) in data.iter().enumerate().skip(done) {
            let at = addr.plus(Self::units(addr.space, k as u32 * size));
            let bits = self.narrow_bits(part)?;
            let mem = MemImm { align: piece_align(mem.align, k as u32 * size), ..mem };
            self.store_part(size, mem, at, bits);
        }
        Ok(())
    }

    fn narrow_bits(&self, rep: Rep) -> Result<Value> {
        match rep {
            Rep::Narrow(v, _) => Ok(v),
            Rep::Half(h) => Ok(h.bits),
            _ => self.error("the data of a store differ in type"),
        }
    }

    /// One word from components of `bits` bits, the first in the lowest.
    fn word_of_parts(&mut self, parts: &[Rep], bits: u32) -> Result<Value> {
        // All from one word, in order: that word.
        let origin = |n: usize| match parts[n] {
            Rep::Narrow(_, o) => o,
            Rep::Half(h) => h.origin,
            _ => None,
        };
        if let Some((word, 0)) = origin(0)
            && (1..parts.len()).all(|n| origin(n) == Some((word, (n as u32 * bits) as u8)))
        {
            return Ok(word);
        }
        if let [Rep::Half(lo), Rep::Half(hi)] = parts
            && let (Some(lo), Some(hi)) = (lo.unrounded, hi.unrounded)
        {
            return Ok(self.e.pack_half(lo, hi));
        }
        let mut word = None;
        for (n, &part) in parts.iter().enumerate() {
            let v = self.narrow_bits(part)?;
            // The topmost one loses what is above it by the shift.
            let v = if n + 1 == parts.len() { v } else { self.e.zext(v, bits) };
            let v = self.e.shl_c(v, n as u32 * bits);
            word = Some(match word {
                Some(w) => self.e.or(w, v),
                None => v,
            });
        }
        match word {
            Some(w) => Ok(w),
            None => self.error("a store without data"),
        }
    }

    fn store_part(&mut self, size: u32, mem: MemImm, addr: Addr, bits: Value) {
        if addr.space == Space::Private {
            // Nobody else sees private memory, so reading, changing and writing the dword is enough.
            let (at, shift) = self.private_dword(addr);
            let imm = MemImm { count: 1, align: 4, ..mem };
            let old = self.e.load(Type::I32, imm, at)[0];
            let mask = self.e.i(low_mask(8 * size));
            let mask = self.e.shl(mask, shift);
            let keep = self.e.not(mask);
            let kept = self.e.and(old, keep);
            let part = self.e.zext(bits, 8 * size);
            let part = self.e.shl(part, shift);
            let new = self.e.or(kept, part);
            self.e.store(Type::I32, imm, at, &[new]);
            return;
        }
        let at = self.machine_address(addr);
        let align = self.alignment(addr, mem.align.max(size));
        let int = if size == 1 { Type::I8 } else { Type::I16 };
        self.e.store(int, MemImm { count: 1, align, ..mem }, at, &[bits]);
    }

    pub fn atomic(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Atomic(imm) = inst.imm else { return self.error("`atomic` without its immediate") };
        let imm = AtomicImm { space: machine_space(imm.space), ..imm };
        if !matches!(inst.ty, Type::I32 | Type::F32) {
            return self.error(format!(
                "atomic operations on {} are not supported: the hardware has 32-bit ones only",
                inst.ty
            ));
        }
        if !matches!(imm.space, Space::Storage | Space::Shared) {
            return self.error(format!("atomic operations on {} memory are not supported", imm.space.name()));
        }
        let addr = self.addr_arg(inst, 0)?;
        let at = self.machine_address(addr);
        let mem = MemImm { volatile: true, ..words(imm.space, 1, 4) };
        let old = match imm.op {
            AtomicOp::Load => self.e.load(inst.ty, mem, at)[0],
            AtomicOp::Store => {
                let data = self.arg_one(inst, 1)?;
                self.e.store(inst.ty, mem, at, &[data]);
                self.e.constant(inst.ty, 0)
            }
            AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax => {
                let data = self.arg_one(inst, 1)?;
                let float = imm.op.float().unwrap_or(Op::Fadd);
                self.atomic_float(float, imm.space, mem, at, data)
            }
            op => {
                if inst.ty == Type::F32 && !matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange) {
                    return self.error("this atomic operation does not exist for floats");
                }
                let mut args: SmallVec<[Value; 3]> = smallvec![at];
                for n in 1..inst.args.len() {
                    let v = self.arg_one(inst, n)?;
                    args.push(self.e.bitcast(Type::I32, v));
                }
                let old = self.raw_atomic(op, imm.space, &args);
                self.e.bitcast(inst.ty, old)
            }
        };
        if let Some(&r) = inst.results.first() {
            self.set_one(r, old);
        }
        Ok(())
    }

    fn raw_atomic(&mut self, op: AtomicOp, space: Space, args: &[Value]) -> Value {
        let imm = Imm::Atomic(AtomicImm { op, space });
        let i = self.e.inst(Op::Atomic, Type::I32, Flags::NONE, imm, args, &[Type::I32]);
        self.e.func.insts[i].results[0]
    }

    /// Computes with a float: take the old value, compute, try to exchange, until nobody was faster.
    fn atomic_float(&mut self, op: Op, space: Space, mem: MemImm, at: Value, data: Value) -> Value {
        let first = self.e.load(Type::I32, mem, at)[0];
        let header = self.append_block();
        let old = self.e.param(header, Type::I32);
        self.e.jump(header, &[first]);
        self.e.switch_to(header);
        let value = self.e.bitcast(Type::F32, old);
        let new = self.e.float(op, &[value, data]);
        let new = self.e.bitcast(Type::I32, new);
        let seen = self.raw_atomic(AtomicOp::CompareExchange, space, &[at, old, new]);
        let done = self.e.ieq(seen, old);
        let rest = self.append_block();
        self.e.end(Term::Branch {
            cond: done,
            then: Target { block: rest, args: smallvec![] },
            els: Target { block: header, args: smallvec![seen] },
        });
        self.e.switch_to(rest);
        self.e.bitcast(Type::F32, seen)
    }
}

/// Alignment of what stands at an offset behind an aligned address.
fn piece_align(align: u32, offset: u32) -> u32 {
    if offset == 0 { align } else { align.min(1 << offset.trailing_zeros()) }
}
