//! What the tests of shapes share: programs written by hand for one invocation with one input and one output, and judging
//! them: compiled for both versions in several configurations, checkers A and B and the validator on the way, run on the
//! simulator and compared with the interpreter.

#![allow(dead_code)]

use crate::common::simulate;
use kempe_ir::builder::Builder;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::inputs::Random;
use kempe_ir::module::{Block, Builtin, MemImm, Res, ResKind, Resource, Stage, Value};
use kempe_ir::ops::Op;
use kempe_ir::types::{Space, Type};
use kempe_ir::{Module, interp, text};
use kempe_mir::{Artifact, Mir};
use kempe_ra::{Allocation, Edit, Inst, OperandKind, Point};
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::decode::decode;
use kempe_v3d::instr::{Instr, Version};
use kempe_v3d::mops::MInst;

/// Words of an invocation in the input and in the output.
pub const IN_WORDS: u32 = 200;
pub const OUT_WORDS: u32 = 96;

/// A program that is being written: one input, one output, push constants, an index for every invocation.
pub struct Shader {
    pub m: Module,
    pub block: Block,
    pub input: Res,
    pub output: Res,
    pub push: Res,
    pub index: Value,
}

impl Shader {
    pub fn new(items: u32) -> Shader {
        let mut m = Module::new("shape", Stage::Compute);
        m.workgroup_size = [items, 1, 1];
        let resource = |kind, binding, size, tail_stride, name: &str, read_only| Resource {
            kind,
            set: 0,
            binding,
            elements: 1,
            size,
            tail_stride,
            name: name.to_owned(),
            read_only,
            image: None,
        };
        let input = m.resources.push(resource(ResKind::StorageBuffer, 0, 0, 4, "input", true));
        let output = m.resources.push(resource(ResKind::StorageBuffer, 1, 0, 4, "output", false));
        let push = m.resources.push(resource(ResKind::PushConstants, 0, 16, 0, "push", true));
        let block = m.func.add_block();
        let mut s = Shader { m, block, input, output, push, index: Value(0) };
        s.index = s.invocation();
        s
    }

    pub fn b(&mut self) -> Builder<'_> {
        Builder::new(&mut self.m.func, self.block)
    }

    pub fn invocation(&mut self) -> Value {
        let items = self.m.workgroup_size[0];
        let mut b = self.b();
        let group = b.builtin(Builtin::WorkgroupId(0));
        let local = b.builtin(Builtin::LocalInvocationIndex);
        let items = b.i32(items);
        let first = b.op(Op::Imul, Type::I32, &[group, items]);
        b.op(Op::Iadd, Type::I32, &[first, local])
    }

    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.b().op(op, Type::I32, args)
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.op(Op::Iadd, &[a, b])
    }

    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.op(Op::Imul, &[a, b])
    }

    pub fn int(&mut self, v: u32) -> Value {
        self.b().i32(v)
    }

    pub fn load_at(&mut self, res: Res, words: u32, k: u32, count: u8, read_only: bool) -> Vec<Value> {
        let index = self.index;
        let mut b = self.b();
        let base = b.resource_addr(res, Space::Storage, None);
        let address = b.lea(base, Some(index), 4 * words, 4 * k as i32);
        let align = if count == 4 { 16 } else { 4 };
        let mem = MemImm { space: Space::Storage, count, align, volatile: false, read_only };
        b.load(Type::I32, mem, address).to_vec()
    }

    /// Word k of the invocation's input.
    pub fn load(&mut self, k: u32) -> Value {
        self.load_at(self.input, IN_WORDS, k, 1, true)[0]
    }

    /// Words 0 to n of the input.
    pub fn loads(&mut self, n: u32) -> Vec<Value> {
        (0..n).map(|k| self.load(k)).collect()
    }

    pub fn store_at(&mut self, index: Value, k: u32, data: &[Value]) {
        let output = self.output;
        let mut b = self.b();
        let base = b.resource_addr(output, Space::Storage, None);
        let address = b.lea(base, Some(index), 4 * OUT_WORDS, 4 * k as i32);
        let align = if data.len() == 4 { 16 } else { 4 };
        let count = data.len() as u8;
        let mem = MemImm { space: Space::Storage, count, align, volatile: false, read_only: false };
        b.store(Type::I32, mem, address, data);
    }

    pub fn store(&mut self, k: u32, v: Value) {
        self.store_at(self.index, k, &[v]);
    }

    /// A word of the push constants, the same in all lanes.
    pub fn uniform(&mut self, k: u32) -> Value {
        let push = self.push;
        let mut b = self.b();
        let base = b.resource_addr(push, Space::Push, None);
        let address = b.lea(base, None, 1, 4 * k as i32);
        let mem = MemImm { space: Space::Push, count: 1, align: 4, volatile: false, read_only: true };
        b.load(Type::I32, mem, address)[0]
    }

    /// Whether the low bits of a value are zero: another set of lanes for each value.
    pub fn lanes(&mut self, v: Value, bits: u32) -> Value {
        let mask = self.int(bits);
        let low = self.op(Op::And, &[v, mask]);
        let zero = self.int(0);
        self.op(Op::Ieq, &[low, zero])
    }

    pub fn new_block(&mut self) -> Block {
        self.m.func.add_block_detached()
    }

    /// What follows goes into this block, the next one of the order.
    pub fn start(&mut self, block: Block) {
        self.m.func.layout.push(block);
        self.block = block;
    }

    /// A chain of products that is long enough to be worth a branch.
    pub fn work(&mut self, v: Value) -> Value {
        let mut x = v;
        for k in 0..12 {
            let odd = self.int(2 * k + 3);
            x = self.mul(x, odd);
            x = self.op(Op::Xor, &[x, v]);
        }
        x
    }

    /// `if cond { then } else { other }`: the values that the two give.
    pub fn choose(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Shader) -> Vec<Value>,
        other: impl FnOnce(&mut Shader) -> Vec<Value>,
    ) -> Vec<Value> {
        let (a, b, merge) = (self.new_block(), self.new_block(), self.new_block());
        self.b().branch(cond, a, b);
        self.start(a);
        let values = then(self);
        let types: Vec<Type> = values.iter().map(|&v| self.m.func.ty(v)).collect();
        self.b().jump(merge, &values);
        self.start(b);
        let values = other(self);
        self.b().jump(merge, &values);
        let results = types.into_iter().map(|t| self.m.func.add_param(merge, t)).collect();
        self.start(merge);
        results
    }

    /// `while more(values) { values = body(values) }`: what the values are at the end.
    pub fn repeat(
        &mut self,
        first: &[Value],
        more: impl FnOnce(&mut Shader, &[Value]) -> Value,
        body: impl FnOnce(&mut Shader, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (header, inside, out) = (self.new_block(), self.new_block(), self.new_block());
        let types: Vec<Type> = first.iter().map(|&v| self.m.func.ty(v)).collect();
        self.b().jump(header, first);
        let values: Vec<Value> = types.iter().map(|&t| self.m.func.add_param(header, t)).collect();
        self.start(header);
        let more = more(self, &values);
        self.b().branch(more, inside, out);
        self.start(inside);
        let next = body(self, &values);
        self.b().jump(header, &next);
        self.start(out);
        values
    }

    /// Stores sums of the values in groups from output word k on, so that each of them has one use here.
    pub fn use_all(&mut self, values: &[Value], k: u32) {
        for (i, group) in values.chunks(3).enumerate() {
            let sum = group[1..].iter().fold(group[0], |sum, &v| self.op(Op::Xor, &[sum, v]));
            self.store(k + i as u32, sum);
        }
    }

    pub fn end(mut self) -> Module {
        self.b().ret();
        kempe_ir::verify::verify(&self.m).unwrap_or_else(|e| panic!("{e:?}\n{}", text::print(&self.m)));
        self.m
    }
}

/// What one compile went through.
#[derive(Default)]
pub struct Seen {
    /// By number of threads: what the allocator was given and what it gave.
    pub attempts: Vec<(u32, Mir<MInst>, Allocation)>,
}

impl Observer for Seen {
    fn allocated(&mut self, threads: u32, mir: &Mir<MInst>, allocation: &Allocation) {
        self.attempts.push((threads, mir.clone(), allocation.clone()));
    }
}

/// A compile that gave code, and what is known of it.
pub struct Made {
    pub version: Version,
    pub options: Options,
    pub artifact: Artifact,
    pub mir: Mir<MInst>,
    pub allocation: Allocation,
}

impl Made {
    pub fn block_of(&self, inst: Inst) -> usize {
        let blocks = &self.mir.program.blocks;
        blocks.iter().position(|b| b.insts.contains(&inst.0)).expect("every instruction is in a block")
    }

    pub fn edits(&self) -> impl Iterator<Item = (Inst, bool, Edit)> {
        self.allocation.edits.iter().map(|&(point, edit)| match point {
            Point::Before(i) => (i, false, edit),
            Point::After(i) => (i, true, edit),
        })
    }

    pub fn spills(&self) -> usize {
        self.edits().filter(|e| matches!(e.2, Edit::Spill { .. })).count()
    }

    pub fn fills(&self) -> usize {
        self.edits().filter(|e| matches!(e.2, Edit::Fill { .. })).count()
    }

    /// Writes under a predicate (tied to the version before) that are stored to memory: the last write of the stored
    /// register in the block is one.
    pub fn predicated_spills(&self) -> usize {
        let p = &self.mir.program;
        self.edits()
            .filter(|&(inst, after, edit)| {
                let Edit::Spill { from, .. } = edit else { return false };
                let first = p.blocks[self.block_of(inst)].insts.start;
                let mut defs = (first..inst.0 + u32::from(after))
                    .flat_map(|i| p.insts[i as usize].operands.clone())
                    .filter(|&o| p.operands[o as usize].kind != OperandKind::Use)
                    .filter(|&o| self.allocation.places[o as usize] == from);
                defs.next_back().is_some_and(|o| p.operands[o as usize].tied.is_some())
            })
            .count()
    }

    /// Slots that are stored in one block and loaded in another.
    pub fn slots_over_blocks(&self) -> usize {
        (0..self.allocation.slots)
            .filter(|&n| {
                let stored: Vec<usize> = self
                    .edits()
                    .filter(|e| matches!(e.2, Edit::Spill { slot, .. } if slot.0 == n))
                    .map(|e| self.block_of(e.0))
                    .collect();
                let mut loaded =
                    self.edits().filter(|e| matches!(e.2, Edit::Fill { slot, .. } if slot.0 == n));
                loaded.any(|e| !stored.contains(&self.block_of(e.0)))
            })
            .count()
    }

    /// Loads of spilled values that are directly in front of an instruction of this kind.
    pub fn fills_before(&self, wanted: impl Fn(&MInst) -> bool) -> usize {
        self.edits()
            .filter(|e| matches!(e.2, Edit::Fill { .. }) && !e.1 && wanted(&self.mir.data[e.0.0 as usize]))
            .count()
    }

    pub fn count(&self, wanted: impl Fn(&MInst) -> bool) -> usize {
        self.mir.data.iter().filter(|i| wanted(i)).count()
    }

    pub fn instrs(&self) -> Vec<Instr> {
        let words = kempe_mir::words_of_code(&self.artifact.code);
        words.into_iter().map(|w| decode(self.version, w).expect("code decodes")).collect()
    }
}

pub fn inputs(m: &Module, groups: u32) -> Inputs {
    let mut r = Random(5);
    let items = m.workgroup_items() * groups;
    let words = (0..items * IN_WORDS).flat_map(|_| (r.bits() as u32).to_le_bytes()).collect();
    let push = [3u32, 1, 40, 7].iter().flat_map(|w| w.to_le_bytes()).collect();
    Inputs::new([groups, 1, 1])
        .buffer(0, 0, words)
        .buffer(0, 1, vec![0; (items * OUT_WORDS * 4) as usize])
        .push(push)
}

/// Compiles and runs in all configurations; gives what was made.
pub fn judge(m: &Module) -> Vec<Made> {
    let inputs = inputs(m, 3);
    let env = Environment::new(m, &inputs, Sizes::source()).unwrap();
    let outcome = interp::run(m, &env, &interp::Options::source()).unwrap();
    assert!(outcome.undefined.is_empty());
    let expected = env.buffer_contents(&outcome.memory);
    let mut all = Vec::new();
    for version in Version::ALL {
        let natural = Options { verify: true, ..Options::default() };
        for options in [
            natural,
            Options { threads: Some(4), ..natural },
            Options { threads: Some(2), ..natural },
            Options { force_spill: true, ..natural },
            Options { threads: Some(2), force_spill: true, ..natural },
            Options { max_registers: Some(12), ..natural },
            Options { threads: Some(2), max_registers: Some(17), ..natural },
            Options { threads: Some(4), no_order: true, ..natural },
        ] {
            let what = format!("{}, {options:?}", version.name());
            let mut seen = Seen::default();
            let artifact = match compile(m.clone(), version, &options, &mut seen) {
                Ok(artifact) => artifact,
                Err(e) => panic!("{what}: {e}\n{}", text::print(m)),
            };
            let got = simulate(m, &artifact, version, &inputs).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(got.buffers == expected, "{what}: the results differ");
            let (_, mir, allocation) = seen
                .attempts
                .into_iter()
                .find(|a| a.0 == artifact.threads)
                .expect("the attempt that was kept");
            all.push(Made { version, options, artifact, mir, allocation });
        }
    }
    all
}

/// The shape must be there for both versions, in at least so many configurations of each.
pub fn provoked(made: &[Made], at_least: usize, what: &str, shape: impl Fn(&Made) -> bool) {
    for version in Version::ALL {
        let n = made.iter().filter(|m| m.version == version && shape(m)).count();
        assert!(n >= at_least, "{what}: only in {n} configurations of {}", version.name());
    }
}
