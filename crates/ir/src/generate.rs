//! Random programs: valid, terminating, free of races, inside their buffers.
//!
//! The programs are built directly in IR (source form), so they reach what no front end writes: values of every
//! type carried through nested uniform and divergent control flow, loops with several exits, private arrays, shared
//! memory with barriers, atomics whose results do not depend on the order of lanes. The same seed gives the same
//! program. What a program computes goes to a buffer slot of its own invocation, so any two correct ways to run it
//! agree bit for bit; with [`Shape::approximate`] off it uses only operations with one right result.

use crate::builder::Builder;
use crate::inputs::Random;
use crate::module::*;
use crate::ops::Op;
use crate::types::{Space, Type};

/// What a generated program may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// About this many operations.
    pub operations: u32,
    /// Deepest nesting of control flow.
    pub depth: u32,
    /// Values kept alive together.
    pub live: u32,
    /// 8, 16 and 64-bit integers and f16.
    pub narrow_and_wide: bool,
    /// Division, square roots, sines, exponentials: results within bounds only.
    pub approximate: bool,
    /// Shared memory and barriers.
    pub shared: bool,
    /// Private arrays with computed indices.
    pub arrays: bool,
    pub atomics: bool,
    /// Invocations per work-group.
    pub workgroup: u32,
}

impl Shape {
    /// A shape that varies with the seed: sizes, nesting, pressure and features.
    pub fn from_seed(seed: u64) -> Shape {
        let mut r = Random(seed ^ 0x5eed);
        let mut chance = |percent: u64| r.below(100) < percent;
        let (narrow_and_wide, approximate, shared, arrays, atomics) =
            (chance(35), chance(40), chance(35), chance(35), chance(30));
        Shape {
            operations: 60 + r.below(400) as u32,
            depth: 1 + r.below(4) as u32,
            live: 4 + r.below(40) as u32,
            narrow_and_wide,
            approximate,
            shared,
            arrays,
            atomics,
            workgroup: [16, 16, 32, 48, 64, 8, 20, 1][r.below(8) as usize],
        }
    }
}

/// Words of the input, uniform and output buffers that a program uses per invocation or in all.
pub const INPUT_WORDS: u32 = 64;
pub const OUTPUT_WORDS: u32 = 8;
const ARRAY_WORDS: u32 = 8;

/// Makes a program. Bindings of set 0: 0 input words, 1 output (`OUTPUT_WORDS` per invocation of a one-dimensional
/// dispatch), 2 atomic counters (16 words), 3 uniform block (16 words); push constants of 4 words.
pub fn generate(seed: u64, shape: &Shape) -> Module {
    let mut m = Module::new("main", Stage::Compute);
    m.workgroup_size = [shape.workgroup.max(1), 1, 1];
    let resource = |kind, binding, size, tail, name: &str, read_only| Resource {
        kind,
        set: 0,
        binding,
        elements: 1,
        size,
        tail_stride: tail,
        name: name.to_owned(),
        read_only,
    };
    let input = m.resources.push(resource(ResKind::StorageBuffer, 0, 0, 4, "input", true));
    let output = m.resources.push(resource(ResKind::StorageBuffer, 1, 0, 4, "output", false));
    let counters = m.resources.push(resource(ResKind::StorageBuffer, 2, 64, 0, "counters", false));
    let block = m.resources.push(resource(ResKind::UniformBuffer, 3, 64, 0, "block", true));
    let push = m.resources.push(resource(ResKind::PushConstants, 0, 16, 0, "push", true));
    let shared = m.vars.push(Variable {
        space: Space::Shared,
        size: 4 * shape.workgroup.max(1),
        align: 4,
        name: "tile".to_owned(),
    });
    let array = m.vars.push(Variable {
        space: Space::Private,
        size: 4 * ARRAY_WORDS,
        align: 4,
        name: "array".to_owned(),
    });
    let entry = m.func.add_block();
    let mut g = Gen {
        r: Random(seed),
        shape: *shape,
        budget: shape.operations as i64,
        func: &mut m.func,
        block: entry,
        res: [input, output, counters, block, push],
        shared,
        array,
        values: Vec::new(),
        uniform_control: true,
        local: Value(0),
    };
    g.run();
    m
}

struct Gen<'a> {
    r: Random,
    shape: Shape,
    budget: i64,
    func: &'a mut Function,
    block: Block,
    res: [Res; 5],
    shared: Var,
    array: Var,
    /// Values that may be used here, oldest first.
    values: Vec<Value>,
    /// Every invocation of the work-group is here, so a barrier is allowed.
    uniform_control: bool,
    local: Value,
}

const INT_OPS: [Op; 14] = [
    Op::Iadd,
    Op::Isub,
    Op::Imul,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Smin,
    Op::Smax,
    Op::Umin,
    Op::Umax,
    Op::Iadd,
    Op::Isub,
    Op::Umulhi,
    Op::Smulhi,
];
const DIV_OPS: [Op; 5] = [Op::Sdiv, Op::Udiv, Op::Srem, Op::Smod, Op::Umod];
const UNARY_INT: [Op; 7] =
    [Op::Not, Op::Ineg, Op::Popcount, Op::Bitreverse, Op::Clz, Op::FindLsb, Op::FindUmsb];
const FLOAT_OPS: [Op; 6] = [Op::Fadd, Op::Fsub, Op::Fmul, Op::Fmin, Op::Fmax, Op::Fadd];
const UNARY_FLOAT: [Op; 6] = [Op::Fneg, Op::Fabs, Op::Ffloor, Op::Fceil, Op::Ftrunc, Op::Fround];
const APPROX: [Op; 6] = [Op::Fsqrt, Op::Frsqrt, Op::Fexp2, Op::Flog2, Op::Fsin, Op::Fcos];

impl Gen<'_> {
    fn b(&mut self) -> Builder<'_> {
        Builder::new(self.func, self.block)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.r.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.r.below(list.len() as u64) as usize]
    }

    fn run(&mut self) {
        let size = self.shape.workgroup.max(1);
        let mut b = self.b();
        let local = b.builtin(Builtin::LocalInvocationIndex);
        let group = b.builtin(Builtin::WorkgroupId(0));
        let n = b.i32(size);
        let first = b.op(Op::Imul, Type::I32, &[group, n]);
        let id = b.op(Op::Iadd, Type::I32, &[first, local]);
        self.local = local;
        self.values = vec![local, id, group];
        let starts = 3 + self.shape.live / 3;
        for k in 0..starts {
            let ty = if k % 2 == 0 { Type::I32 } else { Type::F32 };
            let v = self.load_any(ty);
            self.values.push(v);
        }
        self.statements(0);
        // Everything that is still alive goes out, folded into the slots of this invocation.
        let mut slots: Vec<Option<Value>> = vec![None; OUTPUT_WORDS as usize];
        for (k, v) in self.values.clone().into_iter().enumerate() {
            let w = self.word_of(v);
            let at = k % slots.len();
            slots[at] = Some(match slots[at] {
                None => w,
                Some(old) => {
                    let mut b = self.b();
                    let three = b.i32(3);
                    let twisted = b.op(Op::Imul, Type::I32, &[old, three]);
                    b.op(Op::Xor, Type::I32, &[twisted, w])
                }
            });
        }
        let mut b = self.b();
        let base = b.resource_addr(Res(1), Space::Storage, None);
        let addr = b.lea(base, Some(id), 4 * OUTPUT_WORDS, 0);
        let mem =
            |count| MemImm { space: Space::Storage, count, align: 4, volatile: false, read_only: false };
        for (k, s) in slots.into_iter().enumerate() {
            if let Some(s) = s {
                let at = b.lea(addr, None, 1, 4 * k as i32);
                b.store(Type::I32, mem(1), at, &[s]);
            }
        }
        b.ret();
    }

    /// Any value as 32 bits.
    fn word_of(&mut self, v: Value) -> Value {
        let ty = self.func.ty(v);
        let mut b = self.b();
        match ty {
            Type::I32 => v,
            Type::F32 => b.op(Op::Bitcast, Type::I32, &[v]),
            Type::Bool => {
                let (one, two) = (b.i32(1), b.i32(2));
                b.select(v, one, two)
            }
            Type::I8 | Type::I16 => b.op(Op::Sext, Type::I32, &[v]),
            Type::I64 => {
                let n = b.i32(32);
                let high = b.op(Op::Lshr, Type::I64, &[v, n]);
                let both = b.op(Op::Xor, Type::I64, &[v, high]);
                b.op(Op::Trunc, Type::I32, &[both])
            }
            Type::F16 => {
                let bits = b.op(Op::Bitcast, Type::I16, &[v]);
                b.op(Op::Zext, Type::I32, &[bits])
            }
            _ => b.i32(0),
        }
    }

    /// A value of this type: an old one, or made from one.
    fn value(&mut self, ty: Type) -> Value {
        let list: Vec<Value> = self.values.iter().copied().filter(|&v| self.func.ty(v) == ty).collect();
        if !list.is_empty() && !self.chance(8) {
            return self.pick(&list);
        }
        match ty {
            Type::Bool => self.condition(),
            Type::I32 | Type::F32 if self.chance(50) => self.constant(ty),
            Type::I32 => self.pick_from_bits(),
            Type::F32 => {
                let w = self.pick_from_bits();
                self.b().op(Op::Sitof, Type::F32, &[w])
            }
            Type::I8 | Type::I16 => {
                let w = self.pick_from_bits();
                self.b().op(Op::Trunc, ty, &[w])
            }
            Type::I64 => {
                let w = self.pick_from_bits();
                let op = self.pick(&[Op::Sext, Op::Zext]);
                self.b().op(op, ty, &[w])
            }
            Type::F16 => {
                let w = self.pick_from_bits();
                let mut b = self.b();
                let m = b.i32(63);
                let w = b.op(Op::And, Type::I32, &[w, m]);
                let f = b.op(Op::Sitof, Type::F32, &[w]);
                b.op(Op::Fconv, Type::F16, &[f])
            }
            _ => self.constant(Type::I32),
        }
    }

    fn pick_from_bits(&mut self) -> Value {
        let list: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.func.ty(v) == Type::I32).collect();
        if list.is_empty() { self.constant(Type::I32) } else { self.pick(&list) }
    }

    fn constant(&mut self, ty: Type) -> Value {
        let small = self.r.below(40) as i64 - 20;
        let odd = self.r.bits();
        let bits = match (ty, self.r.below(3)) {
            (Type::F32, 0) => (small as f32 / 4.0).to_bits() as u64,
            (Type::F32, _) => self.r.float().to_bits() as u64,
            (_, 0) => odd,
            _ => small as u64,
        };
        self.b().constant(ty, bits)
    }

    fn condition(&mut self) -> Value {
        let float = self.chance(35);
        let ty = if float { Type::F32 } else { self.int_type() };
        let (x, y) = (self.value(ty), self.value(ty));
        let op = if float {
            self.pick(&[Op::Feq, Op::Fne, Op::Flt, Op::Fle])
        } else {
            self.pick(&[Op::Ieq, Op::Ine, Op::Slt, Op::Sle, Op::Ult, Op::Ule])
        };
        self.b().op(op, ty, &[x, y])
    }

    fn int_type(&mut self) -> Type {
        if self.shape.narrow_and_wide && self.chance(40) {
            self.pick(&[Type::I8, Type::I16, Type::I64])
        } else {
            Type::I32
        }
    }

    /// An index in `0..n` made from any integer.
    fn index(&mut self, n: u32) -> Value {
        let v = self.value(Type::I32);
        let mut b = self.b();
        let mask = b.i32(n - 1);
        b.op(Op::And, Type::I32, &[v, mask])
    }

    fn load_any(&mut self, ty: Type) -> Value {
        let which = self.r.below(4);
        let (space, res, words) = match which {
            0 | 1 => (Space::Storage, self.res[0], INPUT_WORDS),
            2 => (Space::Uniform, self.res[3], 16),
            _ => (Space::Push, self.res[4], 4),
        };
        let dynamic = self.chance(60);
        let index = if dynamic { Some(self.index(words)) } else { None };
        let offset = if dynamic { 0 } else { 4 * self.r.below(words as u64) as i32 };
        let mut b = self.b();
        let base = b.resource_addr(res, space, None);
        let addr = b.lea(base, index, 4, offset);
        b.load(ty, MemImm { space, count: 1, align: 4, volatile: false, read_only: true }, addr)[0]
    }

    fn statements(&mut self, depth: u32) {
        let count = 3 + self.r.below(10);
        for _ in 0..count {
            if self.budget <= 0 {
                return;
            }
            let nest = depth < self.shape.depth && self.budget > 12;
            match self.r.below(100) {
                0..=13 if nest => self.branch(depth),
                14..=26 if nest => self.repeat(depth),
                27..=31 if self.shape.arrays => self.array_access(),
                32..=36 if self.shape.atomics => self.atomic(),
                37..=42 if self.shape.shared && self.uniform_control => self.exchange(),
                43..=50 => {
                    let ty = self.pick(&[Type::I32, Type::F32]);
                    let v = self.load_any(ty);
                    self.keep(v);
                }
                _ => self.operation(),
            }
        }
        // A whole program at the top level: go on until the budget is spent.
        if depth == 0 && self.budget > 0 {
            self.statements(0);
        }
    }

    fn keep(&mut self, v: Value) {
        self.budget -= 1;
        self.values.push(v);
        while self.values.len() > self.shape.live.max(4) as usize {
            let at = self.r.below(self.values.len() as u64 - 1) as usize;
            self.values.remove(at);
        }
    }

    fn operation(&mut self) {
        let v = match self.r.below(100) {
            0..=34 => {
                let ty = self.int_type();
                let (x, y) = (self.value(ty), self.value(ty));
                let op = if self.chance(6) { self.pick(&DIV_OPS) } else { self.pick(&INT_OPS) };
                // A zero divisor has any result; ask for one that is not zero.
                if DIV_OPS.contains(&op) {
                    let mut b = self.b();
                    let one = b.constant(ty, 1);
                    let y = b.op(Op::Or, ty, &[y, one]);
                    b.op(op, ty, &[x, y])
                } else {
                    self.b().op(op, ty, &[x, y])
                }
            }
            35..=42 => {
                let ty = self.int_type();
                let x = self.value(ty);
                let n = self.value(Type::I32);
                let op = self.pick(&[Op::Shl, Op::Lshr, Op::Ashr]);
                let mut b = self.b();
                let mask = b.i32(ty.bits() - 1);
                let n = b.op(Op::And, Type::I32, &[n, mask]);
                b.op(op, ty, &[x, n])
            }
            43..=49 => {
                let x = self.value(Type::I32);
                let op = self.pick(&UNARY_INT);
                self.b().op(op, Type::I32, &[x])
            }
            50..=68 => {
                let ty = if self.shape.narrow_and_wide && self.chance(20) { Type::F16 } else { Type::F32 };
                let (x, y) = (self.value(ty), self.value(ty));
                let op = self.pick(&FLOAT_OPS);
                self.b().op(op, ty, &[x, y])
            }
            69..=75 => {
                let x = self.value(Type::F32);
                let op = self.pick(&UNARY_FLOAT);
                self.b().op(op, Type::F32, &[x])
            }
            76..=80 if self.shape.approximate => {
                let (x, y) = (self.value(Type::F32), self.value(Type::F32));
                if self.chance(30) {
                    self.b().op(Op::Fdiv, Type::F32, &[x, y])
                } else {
                    let op = self.pick(&APPROX);
                    self.b().op(op, Type::F32, &[x])
                }
            }
            81..=88 => {
                let c = self.value(Type::Bool);
                let ty = self.pick(&[Type::I32, Type::F32, Type::I32]);
                let (x, y) = (self.value(ty), self.value(ty));
                self.b().select(c, x, y)
            }
            89..=92 => {
                let (x, y) = (self.value(Type::Bool), self.value(Type::Bool));
                let op = self.pick(&[Op::And, Op::Or, Op::Xor]);
                self.b().op(op, Type::Bool, &[x, y])
            }
            93..=95 => {
                let x = self.value(Type::I32);
                let op = self.pick(&[Op::Sitof, Op::Uitof]);
                self.b().op(op, Type::F32, &[x])
            }
            96 => {
                // Kept small, so that the conversion has one right result.
                let x = self.value(Type::F32);
                let mut b = self.b();
                let (low, high) = (b.f32(0.0), b.f32(1000.0));
                let x = b.op(Op::Fmax, Type::F32, &[x, low]);
                let x = b.op(Op::Fmin, Type::F32, &[x, high]);
                b.op(Op::Ftosi, Type::I32, &[x])
            }
            _ => self.condition(),
        };
        self.keep(v);
    }

    // ---- Control flow ----

    fn start(&mut self, block: Block) {
        self.func.layout.push(block);
        self.block = block;
    }

    /// Joins several ends into `block`: a few values of common types become parameters.
    fn join(&mut self, ends: Vec<(Block, Vec<Value>)>, block: Block, keep: &[Value]) {
        let types: Vec<Type> = {
            let n = 1 + self.r.below(4);
            (0..n).map(|_| self.pick(&[Type::I32, Type::F32, Type::I32, Type::Bool])).collect()
        };
        let mut args: Vec<Vec<Value>> = Vec::new();
        for (end, values) in &ends {
            self.block = *end;
            self.values = values.clone();
            args.push(types.iter().map(|&t| self.value(t)).collect());
        }
        let params: Vec<Value> = types.iter().map(|&t| self.func.add_param(block, t)).collect();
        for ((end, _), args) in ends.iter().zip(&args) {
            Builder::new(self.func, *end).jump(block, args);
        }
        self.start(block);
        self.values = keep.to_vec();
        for p in params {
            self.keep(p);
        }
    }

    /// A condition that is the same in all lanes, or not.
    fn decide(&mut self, uniform: bool) -> Value {
        if !uniform {
            return self.condition();
        }
        let words = self.r.below(4) as i32;
        let push = self.res[4];
        let limit = self.constant(Type::I32);
        let mut b = self.b();
        let base = b.resource_addr(push, Space::Push, None);
        let addr = b.lea(base, None, 1, 4 * words);
        let mem = MemImm { space: Space::Push, count: 1, align: 4, volatile: false, read_only: true };
        let v = b.load(Type::I32, mem, addr)[0];
        let one = b.i32(1);
        let odd = b.op(Op::And, Type::I32, &[v, one]);
        let limit = b.op(Op::And, Type::I32, &[limit, one]);
        b.op(Op::Ieq, Type::I32, &[odd, limit])
    }

    fn branch(&mut self, depth: u32) {
        self.budget -= 4;
        let uniform = self.chance(35);
        let c = self.decide(uniform);
        let before = self.values.clone();
        let was_uniform = self.uniform_control;
        self.uniform_control &= uniform;
        let (then, els, merge) =
            (self.func.add_block_detached(), self.func.add_block_detached(), self.func.add_block_detached());
        self.b().branch(c, then, els);
        self.start(then);
        self.statements(depth + 1);
        let a = (self.block, self.values.clone());
        self.start(els);
        self.values = before.clone();
        if self.chance(60) {
            self.statements(depth + 1);
        }
        let b = (self.block, self.values.clone());
        self.uniform_control = was_uniform;
        self.join(vec![a, b], merge, &before);
    }

    fn repeat(&mut self, depth: u32) {
        self.budget -= 8;
        let uniform = self.chance(40);
        let was_uniform = self.uniform_control;
        self.uniform_control &= uniform;
        // At most four rounds; a divergent loop has a bound of its own in each lane.
        let bound = if uniform {
            let n = 1 + self.r.below(4) as u32;
            self.b().i32(n)
        } else {
            let v = self.value(Type::I32);
            let mut b = self.b();
            let three = b.i32(3);
            b.op(Op::And, Type::I32, &[v, three])
        };
        let types: Vec<Type> = {
            let n = 1 + self.r.below(3);
            (0..n).map(|_| self.pick(&[Type::I32, Type::F32])).collect()
        };
        let zero = self.b().i32(0);
        let mut first = vec![zero];
        for &t in &types {
            let v = self.value(t);
            first.push(v);
        }
        let before = self.values.clone();
        let header = self.func.add_block_detached();
        let body = self.func.add_block_detached();
        let latch = self.func.add_block_detached();
        let exit = self.func.add_block_detached();
        let counter = self.func.add_param(header, Type::I32);
        let carried: Vec<Value> = types.iter().map(|&t| self.func.add_param(header, t)).collect();
        self.b().jump(header, &first);
        self.start(header);
        self.values.extend(&carried);
        self.values.push(counter);
        let more = self.b().op(Op::Slt, Type::I32, &[counter, bound]);
        // Leaving at the top needs a block of its own for its arguments.
        let out = self.func.add_block_detached();
        self.b().branch(more, body, out);
        let at_top = (out, self.values.clone());
        self.start(body);
        self.statements(depth + 1);
        let mut ends = vec![at_top];
        let mut next = Vec::new();
        if self.chance(45) {
            // A break in the middle.
            let c = self.decide(uniform);
            let (leave, stay) = (self.func.add_block_detached(), self.func.add_block_detached());
            self.b().branch(c, leave, stay);
            ends.push((leave, self.values.clone()));
            self.func.layout.push(leave);
            self.start(stay);
            // The leaving block belongs behind the loop.
            self.func.layout.retain(|&b| b != leave);
            next.push(leave);
            self.statements(depth + 1);
        }
        let one = self.b().i32(1);
        let counted = self.b().op(Op::Iadd, Type::I32, &[counter, one]);
        let mut back = vec![counted];
        for &t in &types {
            let v = self.value(t);
            back.push(v);
        }
        self.b().jump(latch, &[]);
        self.start(latch);
        self.b().jump(header, &back);
        self.func.layout.push(out);
        self.func.layout.extend(next);
        self.uniform_control = was_uniform;
        self.join(ends, exit, &before);
    }

    // ---- Memory ----

    fn array_access(&mut self) {
        let at = self.index(ARRAY_WORDS);
        let v = self.value(Type::I32);
        let again = self.index(ARRAY_WORDS);
        let array = self.array;
        let mut b = self.b();
        let mem = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };
        let base = b.var_addr(array, Space::Private);
        let a = b.lea(base, Some(at), 4, 0);
        // Every element is written before it is read.
        let a2 = b.lea(base, Some(again), 4, 0);
        b.store(Type::I32, mem, a2, &[v]);
        b.store(Type::I32, mem, a, &[again]);
        let x = b.load(Type::I32, mem, a2)[0];
        self.budget -= 4;
        self.keep(x);
    }

    /// Atomics whose final value does not depend on the order, and whose result is not looked at.
    fn atomic(&mut self) {
        let k = self.r.below(4);
        let op = [AtomicOp::Add, AtomicOp::Umax, AtomicOp::Or, AtomicOp::Smin][k as usize];
        let at = self.index(4);
        let v = self.value(Type::I32);
        let counters = self.res[2];
        let mut b = self.b();
        let base = b.resource_addr(counters, Space::Storage, None);
        let addr = b.lea(base, Some(at), 4, 16 * k as i32);
        b.op_imm(Op::Atomic, Type::I32, Imm::Atomic(AtomicImm { op, space: Space::Storage }), &[addr, v]);
        self.budget -= 3;
    }

    /// Each invocation writes its own shared word, and after a barrier reads another one.
    fn exchange(&mut self) {
        let size = self.shape.workgroup.max(1);
        let v = self.value(Type::I32);
        let by = 1 + self.r.below(size as u64) as u32;
        let (shared, local) = (self.shared, self.local);
        let mut b = self.b();
        let mem = MemImm { space: Space::Shared, count: 1, align: 4, volatile: false, read_only: false };
        let base = b.var_addr(shared, Space::Shared);
        let own = b.lea(base, Some(local), 4, 0);
        b.store(Type::I32, mem, own, &[v]);
        let barrier = Imm::Barrier(BarrierImm { shared: true, storage: false });
        b.inst(Op::Barrier, Type::I32, barrier, &[], &[]);
        let by = b.i32(by);
        let n = b.i32(size);
        let sum = b.op(Op::Iadd, Type::I32, &[local, by]);
        let other = b.op(Op::Umod, Type::I32, &[sum, n]);
        let addr = b.lea(base, Some(other), 4, 0);
        let x = b.load(Type::I32, mem, addr)[0];
        b.inst(Op::Barrier, Type::I32, barrier, &[], &[]);
        self.budget -= 6;
        self.keep(x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_programs_are_well_formed() {
        let mut divergent = 0;
        for seed in 0..300 {
            let m = generate(seed, &Shape::from_seed(seed));
            if let Err(e) = crate::verify::verify(&m) {
                panic!("seed {seed}: {e:#?}");
            }
            divergent += (m.func.layout.len() > 3) as u32;
        }
        assert!(divergent > 200, "{divergent}");
    }
}
