//! Memory: read-only buffers, the words of each invocation, arrays, shared memory, atomics.
//!
//! Every access is inside its buffer, reads only what is written, and no two invocations touch a word without a barrier
//! or an atomic operation between. The final value of what several invocations touch does not depend on their order.

use super::{
    ARRAY_WORDS, BLOCK_WORDS, Gen, INPUT_WORDS, OUTPUT_WORDS, PUSH_WORDS, RESULT_WORDS, TABLE_WORDS,
};
use crate::module::*;
use crate::ops::Op;
use crate::types::{Space, Type};

/// Words of each invocation that the program works on.
const OWN_WORDS: u32 = OUTPUT_WORDS - RESULT_WORDS;

/// The facts of an access of this many components.
pub(super) fn access(space: Space, count: usize, align: u32) -> MemImm {
    MemImm { space, count: count as u8, align, volatile: false, read_only: space.is_read_only() }
}

/// A read-only piece of memory.
#[derive(Clone, Copy)]
struct Source {
    space: Space,
    base: Value,
    words: u32,
}

impl Gen<'_> {
    /// Loads and built-ins that later code has as uniform values, and others.
    pub(super) fn built_ins(&mut self) {
        self.push_words();
        let list = [
            Builtin::NumWorkgroups(0),
            Builtin::WorkgroupId(0),
            Builtin::LocalInvocationId(0),
            Builtin::LocalInvocationId(1),
            Builtin::LocalInvocationId(2),
        ];
        for _ in 0..self.r.below(3) {
            let k = self.r.below(list.len() as u64) as usize;
            let v = self.b().builtin(list[k]);
            self.values.push(v);
            if k < 2 {
                self.uniforms.push(v);
            }
        }
        if self.chance(20) {
            let input = self.res.input;
            let size = self.b().op_imm(Op::ResourceSize, Type::I32, Imm::Res(input), &[]);
            self.uniforms.push(size);
        }
    }

    pub(super) fn push_words(&mut self) {
        let push = self.res.push;
        for at in 0..PUSH_WORDS {
            let mut b = self.b();
            let base = b.resource_addr(push, Space::Push, None);
            let address = b.lea(base, None, 1, 4 * at as i32);
            let v = b.load(Type::I32, access(Space::Push, 1, 4), address)[0];
            self.uniforms.push(v);
        }
    }

    /// Helpers run along, and what they write is not there when they read it.
    fn only_writes(&self) -> bool {
        self.shape.stage == Stage::Fragment
    }

    fn source(&mut self) -> Source {
        let (input, block, push) = (self.res.input, self.res.block, self.res.push);
        let table = self.shape.arrays;
        let which = self.r.below(if table { 5 } else { 4 });
        let mut b = self.b();
        match which {
            0 | 1 => {
                let base = b.resource_addr(input, Space::Storage, None);
                Source { space: Space::Storage, base, words: INPUT_WORDS }
            }
            2 => {
                let base = b.resource_addr(block, Space::Uniform, None);
                Source { space: Space::Uniform, base, words: BLOCK_WORDS }
            }
            3 => {
                let base = b.resource_addr(push, Space::Push, None);
                Source { space: Space::Push, base, words: PUSH_WORDS }
            }
            _ => {
                let word = Imm::Uniform(UniformWord::ConstantAddr);
                let base = b.op_imm(Op::Uniform, Type::Ptr(Space::Constant), word, &[]);
                Source { space: Space::Constant, base, words: TABLE_WORDS }
            }
        }
    }

    /// One value of a type from memory that nobody writes.
    pub(super) fn load_any(&mut self, ty: Type) -> Value {
        let from = self.source();
        let mut access = access(from.space, 1, 4);
        access.read_only = true;
        let (index, offset) = if self.chance(60) {
            let index = self.index(from.words);
            // A constant beside the index, when there is room for it.
            let offset = if from.words == INPUT_WORDS && self.chance(30) { 4 } else { 0 };
            let index = if offset == 0 {
                index
            } else {
                let mut b = self.b();
                let mask = b.i32(INPUT_WORDS / 2 - 1);
                b.op(Op::And, Type::I32, &[index, mask])
            };
            (Some(index), offset * (1 + self.r.below(4) as i32))
        } else {
            (None, 4 * self.r.below(from.words as u64) as i32)
        };
        let mut b = self.b();
        let address = b.lea(from.base, index, 4, offset);
        b.load(ty, access, address)[0]
    }

    /// Several neighbouring components, or a narrow or wide one.
    pub(super) fn vector_load(&mut self) {
        let from = self.source();
        if self.shape.narrow_and_wide && self.chance(60) {
            let ty = self.pick(&[Type::I8, Type::I16, Type::I64, Type::F16]);
            let index = self.index(from.words * 4 / ty.bytes());
            let mut access = access(from.space, 1, ty.bytes().min(4));
            access.read_only = self.chance(70) || from.space.is_read_only();
            let mut b = self.b();
            let address = b.lea(from.base, Some(index), ty.bytes(), 0);
            let v = b.load(ty, access, address)[0];
            return self.keep(v);
        }
        let count = self.pick(&[2u32, 3, 4, 4]);
        let stride = if count == 3 { 4 } else { count };
        let ty = self.pick(&[Type::I32, Type::F32]);
        let index = self.index(from.words / stride);
        // Buffers begin at multiples of 16 bytes.
        let align = if self.chance(60) { 4 * if count == 3 { 4 } else { count } } else { 4 };
        let mut access = access(from.space, count as usize, align);
        access.read_only = self.chance(70) || from.space.is_read_only();
        let mut b = self.b();
        let address = b.lea(from.base, Some(index), 4 * stride, 0);
        let list = b.load(ty, access, address);
        for v in list {
            self.keep(v);
        }
    }

    /// Members of one structure of an array: neighbouring loads at constant distances.
    pub(super) fn fields(&mut self) {
        const WORDS: u32 = 16;
        let input = self.res.input;
        let (space, base, count) = if self.chance(50) {
            let base = self.b().resource_addr(input, Space::Storage, None);
            (Space::Storage, base, INPUT_WORDS / WORDS)
        } else {
            let block = self.res.block;
            let base = self.b().resource_addr(block, Space::Uniform, None);
            (Space::Uniform, base, BLOCK_WORDS / WORDS)
        };
        let structure = match self.r.below(3) {
            0 => self.b().lea(base, None, 1, 0),
            1 => {
                let v = self.uniform_int();
                let mut b = self.b();
                let mask = b.i32(count - 1);
                let index = b.op(Op::And, Type::I32, &[v, mask]);
                b.lea(base, Some(index), 4 * WORDS, 0)
            }
            _ => {
                let index = self.index(count);
                self.b().lea(base, Some(index), 4 * WORDS, 0)
            }
        };
        for _ in 0..2 + self.r.below(3) {
            let words = 1 + self.r.below(3) as u32;
            let at = self.r.below((WORDS - words + 1) as u64) as i32;
            let ty = self.pick(&[Type::I32, Type::F32]);
            let mut access = access(space, words as usize, 4);
            access.read_only = true;
            let mut b = self.b();
            let address = b.lea(structure, None, 1, 4 * at);
            for v in b.load(ty, access, address) {
                self.keep(v);
            }
        }
    }

    /// What only the first invocation of the dispatch does: its words have an address without an index.
    pub(super) fn first_words(&mut self) {
        if !self.shape.stores {
            return self.operation();
        }
        let output = self.res.output;
        let count = 1 + self.r.below(4) as u32;
        let at = RESULT_WORDS + self.r.below((OWN_WORDS - count + 1) as u64) as u32;
        let data: Vec<Value> = (0..count).map(|_| self.value(Type::I32)).collect();
        let access = access(Space::Storage, count as usize, 4);
        let mut b = self.b();
        let base = b.resource_addr(output, Space::Storage, None);
        let address = b.lea(base, None, 1, 4 * at as i32);
        if self.chance(70) || self.only_writes() {
            self.b().store(Type::I32, access, address, &data);
        } else {
            for v in self.b().load(Type::I32, access, address) {
                self.keep(v);
            }
        }
    }

    // ---- The words of this invocation ----

    /// Address of a word that only this invocation touches, from the `n`th on. With `computed` the offset comes from a
    /// value.
    fn own_address(&mut self, bytes: u32, count: u32) -> Value {
        let own = self.own;
        let first = 4 * RESULT_WORDS as i32;
        let size = bytes * count;
        let slots = 4 * OWN_WORDS / size.next_power_of_two();
        if self.chance(40) {
            let index = self.index(slots.next_power_of_two().min(slots));
            let mut b = self.b();
            return b.lea(own, Some(index), size.next_power_of_two(), first);
        }
        let at = self.r.below((4 * OWN_WORDS / size) as u64) as i32;
        self.b().lea(own, None, 1, first + at * size as i32)
    }

    /// Writes or reads words of this invocation in the output buffer.
    pub(super) fn own_words(&mut self) {
        if !self.shape.stores {
            return self.output();
        }
        let ty = if self.shape.narrow_and_wide && self.chance(40) {
            self.pick(&[Type::I8, Type::I16, Type::I64, Type::F16])
        } else {
            self.pick(&[Type::I32, Type::F32])
        };
        let count = if ty.bits() == 32 { 1 + self.r.below(4) as u32 } else { 1 };
        let address = self.own_address(ty.bytes(), count);
        let mut access = access(Space::Storage, count as usize, ty.bytes().min(4));
        access.volatile = self.chance(8);
        if self.chance(55) || self.only_writes() {
            let data: Vec<Value> = (0..count).map(|_| self.value(ty)).collect();
            if count == 3 {
                // Overwritten at once.
                let other: Vec<Value> = data.iter().rev().copied().collect();
                self.b().store(ty, access, address, &other);
            }
            self.b().store(ty, access, address, &data);
        } else {
            let list = self.b().load(ty, access, address);
            for v in list {
                self.keep(v);
            }
        }
    }

    // ---- Arrays ----

    /// Every element is written before it is read.
    pub(super) fn fill_arrays(&mut self) {
        for array in self.arrays {
            for at in 0..ARRAY_WORDS {
                let v = self.value(Type::I32);
                let mut b = self.b();
                let base = b.var_addr(array, Space::Private);
                let address = b.lea(base, None, 1, 4 * at as i32);
                b.store(Type::I32, access(Space::Private, 1, 4), address, &[v]);
            }
        }
    }

    pub(super) fn array_access(&mut self) {
        let array = self.pick(&self.arrays.clone());
        let ty = match self.r.below(10) {
            0 if self.shape.narrow_and_wide => Type::I8,
            1 if self.shape.narrow_and_wide => Type::I16,
            2 if self.shape.narrow_and_wide => Type::I64,
            3 | 4 => Type::F32,
            _ => Type::I32,
        };
        let count = if ty.bits() == 32 && self.chance(20) { self.pick(&[2u32, 4]) } else { 1 };
        let stride = ty.bytes() * count;
        let elements = 4 * ARRAY_WORDS / stride;
        let fixed = self.chance(35);
        let index = if fixed { None } else { Some(self.index(elements)) };
        let at = if fixed { self.r.below(elements as u64) as u32 * stride } else { 0 };
        let mut b = self.b();
        let base = b.var_addr(array, Space::Private);
        let address = b.lea(base, index, stride, at as i32);
        let access = access(Space::Private, count as usize, ty.bytes().min(4));
        if self.chance(50) {
            let data: Vec<Value> = (0..count).map(|_| self.value(ty)).collect();
            if count == 3 {
                // Overwritten at once.
                let other: Vec<Value> = data.iter().rev().copied().collect();
                self.b().store(ty, access, address, &other);
            }
            self.b().store(ty, access, address, &data);
        } else {
            let list = self.b().load(ty, access, address);
            for v in list {
                self.keep(v);
            }
        }
    }

    // ---- Atomics and shared memory ----

    /// Counters of all invocations, whose final value does not depend on the order and whose result is not looked at;
    /// or any operation on a word of this invocation, with its result.
    pub(super) fn atomic(&mut self) {
        if self.chance(50) {
            let address = self.own_address(4, 1);
            return self.any_atomic(Space::Storage, address);
        }
        let list = [
            AtomicOp::Add,
            AtomicOp::Umax,
            AtomicOp::Or,
            AtomicOp::Smin,
            AtomicOp::Umin,
            AtomicOp::Smax,
            AtomicOp::And,
            AtomicOp::Xor,
        ];
        let k = self.r.below(list.len() as u64);
        let at = self.index(2);
        let v = if self.chance(25) {
            let one = self.pick(&[1, u32::MAX]);
            self.b().i32(one)
        } else {
            self.value(Type::I32)
        };
        let counters = self.res.counters;
        let op = if k == 0 { self.pick(&[AtomicOp::Add, AtomicOp::Sub]) } else { list[k as usize] };
        let mut b = self.b();
        let base = b.resource_addr(counters, Space::Storage, None);
        let address = b.lea(base, Some(at), 4, 8 * k as i32);
        let imm = Imm::Atomic(AtomicImm { op, space: Space::Storage });
        b.op_imm(Op::Atomic, Type::I32, imm, &[address, v]);
    }

    fn any_atomic(&mut self, space: Space, address: Value) {
        let list = [
            AtomicOp::Add,
            AtomicOp::Sub,
            AtomicOp::Exchange,
            AtomicOp::CompareExchange,
            AtomicOp::Umin,
            AtomicOp::Umax,
            AtomicOp::Smin,
            AtomicOp::Smax,
            AtomicOp::And,
            AtomicOp::Or,
            AtomicOp::Xor,
            AtomicOp::Load,
            AtomicOp::Store,
        ];
        let op = self.pick(&list);
        let operands = match op {
            AtomicOp::Load => 0,
            AtomicOp::CompareExchange => 2,
            _ => 1,
        };
        let mut args = vec![address];
        for _ in 0..operands {
            let v = match self.r.below(6) {
                0 => self.b().i32(1),
                1 => self.b().i32(u32::MAX),
                _ => self.value(Type::I32),
            };
            args.push(v);
        }
        let imm = Imm::Atomic(AtomicImm { op, space });
        if op == AtomicOp::Store {
            self.b().inst(Op::Atomic, Type::I32, imm, &args, &[]);
        } else {
            let v = self.b().op_imm(Op::Atomic, Type::I32, imm, &args);
            if !self.only_writes() {
                self.keep(v);
            }
        }
    }

    fn barrier(&mut self, shared: bool, storage: bool) {
        self.b().inst(Op::Barrier, Type::I32, Imm::Barrier(BarrierImm { shared, storage }), &[], &[]);
    }

    /// Number of another invocation of this work-group, a different one for each.
    fn neighbour(&mut self) -> Value {
        let size = self.shape.workgroup.max(1);
        let by = 1 + self.r.below(size as u64) as u32;
        let local = self.local;
        let mut b = self.b();
        let by = b.i32(by);
        let n = b.i32(size);
        let sum = b.op(Op::Iadd, Type::I32, &[local, by]);
        b.op(Op::Umod, Type::I32, &[sum, n])
    }

    /// Each invocation writes its own word, and after a barrier reads (or changes, alone) that of another one.
    pub(super) fn exchange(&mut self) {
        let v = self.value(Type::I32);
        if self.chance(25) {
            return self.exchange_in_buffer(v);
        }
        let (shared, local) = (self.shared, self.local);
        let mut b = self.b();
        let base = b.var_addr(shared, Space::Shared);
        let own = b.lea(base, Some(local), 4, 0);
        b.store(Type::I32, access(Space::Shared, 1, 4), own, &[v]);
        self.barrier(true, false);
        let other = self.neighbour();
        let mut b = self.b();
        let address = b.lea(base, Some(other), 4, 0);
        let change = self.shape.atomics && self.chance(40);
        if change {
            self.any_atomic(Space::Shared, address);
            self.barrier(true, false);
            let mut b = self.b();
            let x = b.load(Type::I32, access(Space::Shared, 1, 4), own)[0];
            self.keep(x);
        } else {
            let mut b = self.b();
            let x = b.load(Type::I32, access(Space::Shared, 1, 4), address)[0];
            self.keep(x);
        }
        self.barrier(true, false);
    }

    fn exchange_in_buffer(&mut self, v: Value) {
        let at = 4 * (RESULT_WORDS as i32 + self.r.below(OWN_WORDS as u64) as i32);
        let own = self.own;
        let mut b = self.b();
        let address = b.lea(own, None, 1, at);
        b.store(Type::I32, access(Space::Storage, 1, 4), address, &[v]);
        self.barrier(false, true);
        let other = self.neighbour();
        let (output, group, size) = (self.res.output, self.uniforms[0], self.shape.workgroup.max(1));
        let mut b = self.b();
        let n = b.i32(size);
        let first = b.op(Op::Imul, Type::I32, &[group, n]);
        let id = b.op(Op::Iadd, Type::I32, &[first, other]);
        let base = b.resource_addr(output, Space::Storage, None);
        let address = b.lea(base, Some(id), 4 * OUTPUT_WORDS, at);
        let x = b.load(Type::I32, access(Space::Storage, 1, 4), address)[0];
        self.barrier(false, true);
        self.keep(x);
        if self.chance(20) {
            let fence = Imm::Barrier(BarrierImm { shared: false, storage: true });
            self.b().inst(Op::Fence, Type::I32, fence, &[], &[]);
        }
    }
}
