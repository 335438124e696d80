//! Accesses and pointers (reference sections 5 and 6).
//!
//! Lowering has left each access a pointer that is a root, or a root and a constant, or a root and an index with a scale that
//! the access takes along. Pointers into buffers are pairs of words where they are values (merged, selected, computed);
//! those into threadgroup and stack memory are one word.

use super::{Select, Uses, Vectors};
use crate::instr::{Instr, Number, Operand, Role, Size};
use crate::mops::{class, mov_imm, place, vector};
use crate::ops::Op as MOp;
use kempe_ir::{AtomicOp, Imm, Inst, InstData, MemImm, Op, Space, Type, Value};
use kempe_mir::UniformSource;
use kempe_ra::VReg;
use smallvec::{SmallVec, smallvec};

/// Formats of memory (reference section 5.1).
const FORMAT_I8: u32 = 0;
const FORMAT_I16: u32 = 1;
const FORMAT_I32: u32 = 2;

/// Immediate indices that mean the same to everybody: signed ones (reference section 6, "immediate range").
const IMMEDIATES: std::ops::RangeInclusive<i64> = -32768..=32767;

/// Largest immediate offset of a stack access (reference section 12.3).
const MAX_STACK_OFFSET: u32 = 65535;

/// A pointer as an access takes it.
struct Access {
    root: Value,
    index: Option<Value>,
    /// Log2 of the scale of the index.
    shift: u32,
    offset: u32,
}

/// Base and index of an access, with their numbers.
struct Address {
    base: Operand,
    index: Operand,
    shift: u32,
    unsigned: u32,
}

fn space_class(space: Space) -> u8 {
    match space {
        Space::Shared => class::SHARED,
        Space::Private => class::PRIVATE,
        _ => class::DEVICE,
    }
}

fn format(ty: Type) -> u32 {
    match ty.bytes() {
        1 => FORMAT_I8,
        2 => FORMAT_I16,
        _ => FORMAT_I32,
    }
}

impl Select<'_> {
    fn access(&mut self, pointer: Value) -> Access {
        let plain = Access { root: pointer, index: None, shift: 0, offset: 0 };
        let Some(d) = self.f.def_inst(pointer).map(|i| &self.f.insts[i]) else { return plain };
        let (Op::Lea, Imm::Lea(l)) = (d.op, d.imm) else { return plain };
        let root = d.args[0];
        match d.args.get(1) {
            None => Access { root, index: None, shift: 0, offset: l.offset as u32 },
            Some(&index) if l.offset == 0 && l.scale.is_power_of_two() => {
                Access { root, index: Some(index), shift: l.scale.trailing_zeros(), offset: 0 }
            }
            Some(_) => {
                self.bug("an address that is not in the form of accesses");
                plain
            }
        }
    }

    /// The variable behind a pointer: its offset in its memory.
    fn variable(&self, root: Value) -> Option<u32> {
        let d = self.f.def_inst(root).map(|i| &self.f.insts[i])?;
        let (Op::VarAddr, Imm::Var(var)) = (d.op, d.imm) else { return None };
        let offsets = match self.f.ty(root) {
            Type::Ptr(Space::Shared) => &self.lowered.shared_offsets,
            _ => &self.lowered.private_offsets,
        };
        offsets.get(var.0 as usize).copied().filter(|&at| at != u32::MAX)
    }

    /// A use that shares no place with others, for vectors.
    fn own(&mut self, v: VReg, defs: usize, uses: &mut Uses) -> usize {
        uses.push(v);
        defs + uses.len() - 1
    }

    /// Base of a device access: a pair of uniforms or of registers.
    fn device_base(&mut self, root: Value, defs: usize, uses: &mut Uses, vectors: &mut Vectors) -> Operand {
        if let Some(i) = self.f.def_inst(root)
            && let Some(word) = self.address_word(i)
        {
            let at = self.address_slot(word);
            return Operand::uniform(2 * at, Size::B64);
        }
        let (low, high) = (self.reg(root), self.high(root));
        let first = self.own(low, defs, uses);
        self.own(high, defs, uses);
        vectors.push((first, 2, 2));
        place(first, Size::B64, false)
    }

    /// Address of a device access to elements of 2^e bytes.
    fn device_address(
        &mut self,
        pointer: Value,
        e: u32,
        extra: u32,
        defs: usize,
        uses: &mut Uses,
        vectors: &mut Vectors,
    ) -> Address {
        let access = self.access(pointer);
        if let Some(index) = access.index {
            let Some(shift) = access.shift.checked_sub(e).filter(|&s| s <= extra) else {
                self.bug("an index with a scale that the access does not have");
                return Address { base: Operand::NONE, index: Operand::NONE, shift: 0, unsigned: 1 };
            };
            let base = self.device_base(access.root, defs, uses, vectors);
            let r = self.reg(index);
            let index = self.used(r, defs, uses);
            return Address { base, index, shift, unsigned: 1 };
        }
        let base = self.device_base(access.root, defs, uses, vectors);
        // Offsets count from -2^31 to 2^31 - 1.
        let offset = i64::from(access.offset as i32);
        let total = offset.trailing_zeros().min(e + extra);
        if total < e {
            self.bug("an offset that is no multiple of the element size");
        }
        let (shift, count) =
            if offset == 0 { (0, 0) } else { (total.saturating_sub(e), offset >> total.max(e)) };
        let unsigned = u32::from(offset >= 0);
        if IMMEDIATES.contains(&count) {
            return Address { base, index: Operand::imm(count as i32), shift, unsigned: 0 };
        }
        let r = self.constant_reg(count as u32);
        let index = self.used(r, defs, uses);
        Address { base, index, shift, unsigned }
    }

    /// Address of a threadgroup access.
    fn local_address(&mut self, pointer: Value, e: u32, defs: usize, uses: &mut Uses) -> Address {
        let access = self.access(pointer);
        let (base, mut constant) = match self.variable(access.root) {
            Some(at) => (None, at),
            None => {
                let r = self.reg(access.root);
                (Some(self.half_used(r, defs, uses)), 0)
            }
        };
        constant = constant.wrapping_add(access.offset);
        let index = match access.index {
            Some(v) => {
                let r = self.reg(v);
                Some(self.half_used(r, defs, uses))
            }
            None => None,
        };
        // A 16-bit constant goes where nothing else stands.
        let count = i64::from(constant as i32) >> e;
        let fits = count << e == i64::from(constant as i32) && IMMEDIATES.contains(&count);
        let (base, index) = match (base, index) {
            (base, None) if fits => (base.unwrap_or(Operand::imm(0)), Operand::imm(count as i32)),
            (Some(base), Some(index)) => (base, index),
            (None, index) => {
                let base = if constant == 0 {
                    Operand::imm(0)
                } else if let Some(at) = self.slot(UniformSource::Const(constant)) {
                    Operand::uniform(2 * at, Size::B16)
                } else {
                    let r = self.constant_reg(constant);
                    self.half_used(r, defs, uses)
                };
                (base, index.unwrap_or(Operand::imm(0)))
            }
            (Some(base), None) => {
                let r = self.constant_reg((constant as i32 >> e) as u32);
                (base, self.half_used(r, defs, uses))
            }
        };
        Address { base, index, shift: 0, unsigned: 0 }
    }

    fn half_used(&mut self, v: VReg, defs: usize, uses: &mut Uses) -> Operand {
        let whole = self.used(v, defs, uses);
        Operand::reg(whole.halves().start, Size::B16)
    }

    /// Byte offset of a stack access.
    fn stack_index(&mut self, pointer: Value, defs: usize, uses: &mut Uses) -> Operand {
        let access = self.access(pointer);
        let constant = self.variable(access.root).map(|at| at.wrapping_add(access.offset));
        match (constant, access.index) {
            (Some(at), None) if at <= MAX_STACK_OFFSET => Operand::imm(at as i32),
            (Some(0), Some(v)) if access.shift == 0 => {
                let r = self.reg(v);
                self.used(r, defs, uses)
            }
            _ => {
                let sum = self.fresh();
                self.local_sum(access, sum);
                self.used(sum, defs, uses)
            }
        }
    }

    /// The word that a pointer into threadgroup or stack memory is.
    fn local_sum(&mut self, access: Access, dst: VReg) {
        let mut uses = Uses::new();
        let constant = self.variable(access.root);
        let base = match constant {
            Some(at) => self.constant_source(at.wrapping_add(access.offset), 1, &mut uses),
            None => {
                let r = self.reg(access.root);
                self.used(r, 1, &mut uses)
            }
        };
        let dest = place(0, Size::B32, false);
        let rest = if constant.is_some() { 0 } else { access.offset };
        match access.index {
            Some(v) => {
                let x = self.source(v, 1, &mut uses);
                let scale = self.constant_source(1 << access.shift, 1, &mut uses);
                self.push(Instr::ternary(MOp::Imadd, dest, x, scale, base), dst, uses);
            }
            None => {
                let plus = self.constant_source(rest, 1, &mut uses);
                self.push(Instr::binary(MOp::Iadd, dest, base, plus), dst, uses);
            }
        }
    }

    /// A pointer into threadgroup or stack memory that is a value.
    pub(super) fn local_pointer(&mut self, i: Inst, dst: VReg) {
        let d = &self.f.insts[i];
        let Imm::Lea(l) = d.imm else { return self.bug("a variable got a register") };
        let Some(&index) = d.args.get(1) else {
            let access = Access { root: d.args[0], index: None, shift: 0, offset: l.offset as u32 };
            return self.local_sum(access, dst);
        };
        let mut uses = Uses::new();
        let base = self.source(d.args[0], 1, &mut uses);
        let x = self.source(index, 1, &mut uses);
        let scale = self.constant_source(l.scale, 1, &mut uses);
        let dest = place(0, Size::B32, false);
        let sum = if l.offset == 0 { dst } else { self.fresh() };
        self.push(Instr::ternary(MOp::Imadd, dest, x, scale, base), sum, uses);
        if l.offset != 0 {
            let mut uses = Uses::new();
            let sum = self.used(sum, 1, &mut uses);
            let plus = self.constant_source(l.offset as u32, 1, &mut uses);
            self.push(Instr::binary(MOp::Iadd, dest, sum, plus), dst, uses);
        }
    }

    /// A root in a register: its low word or its high one.
    pub(super) fn root_reg(&mut self, i: Inst, high: bool) -> VReg {
        let f = self.f;
        let root = f.insts[i].results[0];
        if let Some(at) = self.variable(root) {
            return self.constant_reg(at);
        }
        let Some(word) = self.address_word(i) else {
            self.bug("a pointer to nothing");
            return self.undefined();
        };
        let at = self.address_slot(word) + u16::from(high);
        self.remade(Instr::mov(place(0, Size::B32, false), Operand::uniform(2 * at, Size::B32)), 1.0)
    }

    /// The high word of a pointer into a buffer.
    pub(super) fn high(&mut self, v: Value) -> VReg {
        let v = self.alias(v);
        if let Some(i) = self.f.def_inst(v) {
            match self.f.insts[i].op {
                Op::Const => return self.constant_reg(0),
                Op::Undef => return self.undefined(),
                Op::ResourceAddr | Op::Uniform => return self.root_reg(i, true),
                _ => {}
            }
        }
        if let Some(&r) = self.highs.get(&v) {
            return r;
        }
        let r = self.fresh();
        self.highs.insert(v, r);
        r
    }

    /// A pointer into a buffer that is a value.
    pub(super) fn pointer(&mut self, i: Inst, r: Value) {
        let f = self.f;
        let d = &f.insts[i];
        if self.regs[r].is_none() && !self.highs.contains_key(&r) {
            return;
        }
        let (low, high) = (self.reg(r), self.high(r));
        match (d.op, d.imm) {
            (Op::Select, _) => {
                self.select_words(d.args[0], low, (d.args[1], d.args[2]), false);
                self.select_words(d.args[0], high, (d.args[1], d.args[2]), true);
            }
            (Op::Lea, Imm::Lea(l)) => {
                let offset = match d.args.get(1) {
                    None => None,
                    Some(&index) => {
                        let mut uses = Uses::new();
                        let x = self.source(index, 1, &mut uses);
                        let scale = self.constant_source(l.scale, 1, &mut uses);
                        let plus = self.constant_source(l.offset as u32, 1, &mut uses);
                        let sum = self.fresh();
                        let dest = place(0, Size::B32, false);
                        self.push(Instr::ternary(MOp::Imadd, dest, x, scale, plus), sum, uses);
                        Some(sum)
                    }
                };
                let mut uses = Uses::new();
                let base = d.args[0];
                let (base_low, base_high) = (self.reg(base), self.high(base));
                let offset = match offset {
                    Some(v) => v,
                    None => self.constant_reg(l.offset as u32),
                };
                let first = self.own(base_low, 2, &mut uses);
                self.own(base_high, 2, &mut uses);
                let offset = self.used(offset, 2, &mut uses).signed();
                let pair = place(0, Size::B64, false);
                let instr = Instr::binary(MOp::Iadd, pair, place(first, Size::B64, false), offset);
                self.push_as(instr, smallvec![low, high], uses, 0, smallvec![(0, 2, 2), (first, 2, 2)]);
            }
            // A physical pointer, of which only the low word counts.
            (Op::Bitcast, _) => {
                let mut uses = Uses::new();
                let x = self.source(d.args[0], 1, &mut uses);
                let dest = place(0, Size::B32, false);
                self.push(Instr::mov(dest, x), low, uses);
                self.push(mov_imm(dest, 0), high, Uses::new());
            }
            (op, _) => self.bug(format!("`{}` gives a pointer", op.name())),
        }
    }

    fn data_of(&mut self, values: &[Value], defs: usize, uses: &mut Uses, vectors: &mut Vectors) -> Operand {
        let regs: SmallVec<[VReg; 4]> = values.iter().map(|&v| self.reg(v)).collect();
        let first = defs + uses.len();
        for r in regs {
            self.own(r, defs, uses);
        }
        if values.len() > 1 {
            vectors.push((first, values.len(), 1));
        }
        vector(first, Size::B32, values.len())
    }

    fn mem(&mut self, imm: Imm) -> MemImm {
        match imm {
            Imm::Mem(mem) => mem,
            _ => {
                self.bug("an access without its immediate");
                MemImm { space: Space::Storage, count: 1, align: 4, volatile: false, read_only: false }
            }
        }
    }

    /// An access with everything but its data.
    fn memory_instr(
        &mut self,
        store: bool,
        d: &InstData,
        mem: MemImm,
        defs: usize,
        uses: &mut Uses,
        vectors: &mut Vectors,
    ) -> Instr {
        let (pointer, ty) = (d.args[0], d.ty);
        let e = ty.bytes().trailing_zeros();
        let mask = (1u32 << mem.count) - 1;
        let space = match self.f.ty(pointer) {
            Type::Ptr(space) => space,
            _ => mem.space,
        };
        let instr = match space {
            Space::Private => {
                let index = self.stack_index(pointer, defs, uses);
                let op = if store { MOp::StackStore } else { MOp::StackLoad };
                Instr::new(op).with(Role::Index, index)
            }
            Space::Shared => {
                let at = self.local_address(pointer, e, defs, uses);
                let op = if store { MOp::ThreadgroupStore } else { MOp::ThreadgroupLoad };
                Instr::new(op).with(Role::Base, at.base).with(Role::Index, at.index)
            }
            _ => {
                let extra = crate::lower::MAX_EXTRA_SHIFT;
                let at = self.device_address(pointer, e, extra, defs, uses, vectors);
                let op = match (store, mem.volatile) {
                    (false, false) => MOp::DeviceLoad,
                    (true, false) => MOp::DeviceStore,
                    (false, true) => MOp::DeviceLoadControl,
                    (true, true) => MOp::DeviceStoreControl,
                };
                Instr::new(op)
                    .with(Role::Base, at.base)
                    .with(Role::Index, at.index)
                    .set(Number::Shift, at.shift)
                    .set(Number::Unsigned, at.unsigned)
            }
        };
        instr.set(Number::Format, format(ty)).set(Number::Mask, mask)
    }

    pub(super) fn load(&mut self, i: Inst) {
        let f = self.f;
        let d = &f.insts[i];
        let mem = self.mem(d.imm);
        if !mem.volatile && d.results.iter().all(|&r| self.regs[r].is_none()) {
            return;
        }
        let mut defs: SmallVec<[VReg; 4]> = SmallVec::new();
        for &r in &d.results {
            let v = match self.regs[r] {
                Some(v) => v,
                None => self.fresh(),
            };
            defs.push(v);
        }
        let (mut uses, mut vectors) = (Uses::new(), Vectors::new());
        if defs.len() > 1 {
            vectors.push((0, defs.len(), 1));
        }
        let instr = self.memory_instr(false, d, mem, defs.len(), &mut uses, &mut vectors);
        let instr = instr.with(Role::Data, vector(0, Size::B32, defs.len()));
        let read_only = mem.read_only || mem.space.is_read_only();
        let class = if read_only { class::READ_ONLY } else { space_class(mem.space) };
        self.push_as(instr, defs, uses, class, vectors);
    }

    pub(super) fn store(&mut self, i: Inst) {
        let f = self.f;
        let d = &f.insts[i];
        let mem = self.mem(d.imm);
        let (mut uses, mut vectors) = (Uses::new(), Vectors::new());
        let data = self.data_of(&d.args[1..], 0, &mut uses, &mut vectors);
        let instr = self.memory_instr(true, d, mem, 0, &mut uses, &mut vectors);
        self.push_as(instr.with(Role::Data, data), smallvec![], uses, space_class(mem.space), vectors);
    }

    pub(super) fn atomic(&mut self, i: Inst) {
        let f = self.f;
        let d = &f.insts[i];
        let Imm::Atomic(imm) = d.imm else { return self.bug("an atomic without its immediate") };
        // Reference section 5.5.
        let number = match imm.op {
            AtomicOp::Add => 0,
            AtomicOp::Sub => 1,
            AtomicOp::Exchange => 2,
            AtomicOp::CompareExchange => 3,
            AtomicOp::Umin => 4,
            AtomicOp::Smin => 5,
            AtomicOp::Umax => 6,
            AtomicOp::Smax => 7,
            AtomicOp::And => 8,
            AtomicOp::Or => 9,
            AtomicOp::Xor => 10,
            _ => return self.bug("an atomic that lowering should have replaced"),
        };
        let result = d.results.first().and_then(|&r| self.regs[r]);
        let defs: SmallVec<[VReg; 4]> = result.into_iter().collect();
        let (mut uses, mut vectors) = (Uses::new(), Vectors::new());
        // The new value stands before what is compared with.
        let data: SmallVec<[Value; 2]> = d.args[1..].iter().rev().copied().collect();
        let first = defs.len();
        for &v in &data {
            let r = self.reg(v);
            self.own(r, first, &mut uses);
        }
        let source = if data.len() == 2 {
            vectors.push((first, 2, 2));
            place(first, Size::B64, false)
        } else {
            place(first, Size::B32, false)
        };
        let instr = if imm.space == Space::Shared {
            let at = self.local_address(d.args[0], 2, defs.len(), &mut uses);
            Instr::new(MOp::ThreadgroupAtomic).with(Role::Base, at.base).with(Role::Index, at.index)
        } else {
            let at = self.device_address(d.args[0], 2, 0, defs.len(), &mut uses, &mut vectors);
            Instr::new(MOp::Atomic)
                .with(Role::Base, at.base)
                .with(Role::Index, at.index)
                .set(Number::Unsigned, at.unsigned)
        };
        let mut instr = instr.with(Role::Source, source).set(Number::Atomic, number);
        if !defs.is_empty() {
            instr.put(Role::Data, place(0, Size::B32, false));
        }
        self.push_as(instr, defs, uses, space_class(imm.space), vectors);
    }
}
