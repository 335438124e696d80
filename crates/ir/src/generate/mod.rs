//! Random programs: valid, terminating, free of races, inside their buffers.
//!
//! The programs are built directly in IR (source form), so they reach what no front end writes: values of every
//! type carried through nested uniform and divergent control flow, loops with several exits, private arrays, shared
//! memory with barriers, atomics whose results do not depend on the order of lanes. The same seed gives the same
//! program. What a program computes goes to buffer slots of its own invocation, so any two correct ways to run it
//! agree bit for bit; with [`Shape::approximate`] off it uses only operations with one right result.
//!
//! * [`values`]: operations and the values they take
//! * [`control`]: ifs, switches, loops, calls, and the jumps that leave them
//! * [`memory`]: buffers, arrays, shared memory, atomics
//! * [`graphics`]: what vertices and fragments have besides
//!
//! A module of the IR has one function with everything inlined, so there are no calls to generate. What inlining makes
//! of them is there: a region with early returns at any depth of ifs and loops, which meet with the result in one block.
//!
//! Left out: 64-bit floats, subgroup operations and 64-bit addresses, which no target of ours takes yet; values that
//! are undefined.

mod control;
mod graphics;
mod memory;
mod values;

#[cfg(test)]
mod tests;

use crate::builder::Builder;
use crate::exec::Inputs;
use crate::inputs::Random;
use crate::module::*;
use crate::ops::Op;
use crate::types::{Space, Type};
use control::Frame;

pub use graphics::{NUMBER, stage_inputs};

/// What a generated program may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// About this many instructions that are not constants.
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
    /// Private arrays with computed indices, tables of constants.
    pub arrays: bool,
    pub atomics: bool,
    /// Some invocations end early.
    pub early_return: bool,
    /// A loop whose lanes leave one by one stands in the program for certain.
    pub divergent_loop: bool,
    /// Invocations per work-group.
    pub workgroup: u32,
    pub stage: Stage,
    /// A graphics stage writes buffers and images too.
    pub stores: bool,
}

impl Shape {
    /// A shape that varies with the seed: sizes, nesting, pressure and features.
    pub fn from_seed(seed: u64) -> Shape {
        let mut r = Random(seed ^ 0x5eed);
        let mut chance = |percent: u64| r.below(100) < percent;
        let (narrow_and_wide, approximate, shared, arrays, atomics) =
            (chance(35), chance(40), chance(35), chance(35), chance(30));
        let (early_return, divergent_loop, large) = (chance(10), chance(60), chance(15));
        Shape {
            operations: if large { 300 + r.below(500) as u32 } else { 90 + r.below(210) as u32 },
            depth: 1 + r.below(4) as u32,
            live: 4 + r.below(if large { 90 } else { 40 }) as u32,
            narrow_and_wide,
            approximate,
            shared,
            arrays,
            atomics,
            early_return,
            divergent_loop,
            workgroup: [16, 16, 32, 48, 64, 8, 20, 1][r.below(8) as usize],
            stage: Stage::Compute,
            stores: true,
        }
    }

    /// The same for another stage.
    pub fn for_stage(seed: u64, stage: Stage) -> Shape {
        let shape = Shape::from_seed(seed);
        if stage == Stage::Compute {
            return shape;
        }
        let stores = Random(seed ^ 0x9a11).below(2) == 0;
        Shape { stage, stores, shared: false, atomics: shape.atomics && stores, workgroup: 1, ..shape }
    }
}

/// Words of the input buffer.
pub const INPUT_WORDS: u32 = 64;
/// Words of the output buffer for each invocation: the results, then words that the program works on.
pub const OUTPUT_WORDS: u32 = 16;
const RESULT_WORDS: u32 = 8;
const ARRAY_WORDS: u32 = 8;
const BLOCK_WORDS: u32 = 16;
const PUSH_WORDS: u32 = 4;
const TABLE_WORDS: u32 = 16;

/// Makes a program. Bindings of set 0: 0 input words, 1 output (`OUTPUT_WORDS` per invocation of a one-dimensional
/// dispatch), 2 atomic counters (16 words), 3 uniform block (16 words); push constants of 4 words. Graphics stages have images,
/// too, and outputs instead of the results in the buffer.
pub fn generate(seed: u64, shape: &Shape) -> Module {
    let mut m = Module::new("main", shape.stage);
    let items = shape.workgroup.max(1);
    let mut r = Random(seed);
    m.workgroup_size = match r.below(8) {
        0 if items.is_multiple_of(4) => [4, items / 4, 1],
        1 if items.is_multiple_of(8) => [2, items / 4, 2],
        _ => [items, 1, 1],
    };
    let compute = shape.stage == Stage::Compute;
    if !compute {
        m.workgroup_size = [1; 3];
    }
    let resource = |kind, binding, size, tail, name: &str, read_only| Resource {
        kind,
        set: 0,
        binding,
        elements: 1,
        size,
        tail_stride: tail,
        name: name.to_owned(),
        read_only,
        image: None,
    };
    let input = m.resources.push(resource(ResKind::StorageBuffer, 0, 0, 4, "input", true));
    let output = m.resources.push(resource(ResKind::StorageBuffer, 1, 0, 4, "output", false));
    let counters = m.resources.push(resource(ResKind::StorageBuffer, 2, 64, 0, "counters", false));
    let block = m.resources.push(resource(ResKind::UniformBuffer, 3, 4 * BLOCK_WORDS, 0, "block", true));
    let push = m.resources.push(resource(ResKind::PushConstants, 0, 4 * PUSH_WORDS, 0, "push", true));
    let mut shared = Var(0);
    if compute {
        shared = m.vars.push(Variable {
            space: Space::Shared,
            size: 4 * items,
            align: 4,
            name: "tile".to_owned(),
        });
    }
    let mut array = |name: &str| {
        m.vars.push(Variable {
            space: Space::Private,
            size: 4 * ARRAY_WORDS,
            align: 4,
            name: name.to_owned(),
        })
    };
    let arrays = [array("array"), array("other")];
    if shape.arrays {
        m.constant_data = (0..4 * TABLE_WORDS).map(|_| r.bits() as u8).collect();
    }
    let graphics = if compute { None } else { Some(graphics::resources(&mut m, &mut r)) };
    let entry = m.func.add_block();
    let mut g = Gen {
        r,
        shape: *shape,
        limit: shape.operations as usize,
        counted: 0,
        operations: 0,
        func: &mut m.func,
        block: entry,
        res: Resources { input, output, counters, block, push },
        graphics,
        shared,
        arrays,
        values: Vec::new(),
        uniforms: Vec::new(),
        structural: true,
        frames: Vec::new(),
        loops: 0,
        local: Value(0),
        id: Value(0),
        own: Value(0),
    };
    g.run();
    m
}

/// Buffers for a generated program, with words that tend to be small, special or anything.
pub fn inputs(seed: u64, groups: u32, shape: &Shape) -> Inputs {
    let mut r = Random(seed ^ 0x1234_5678);
    let mut words = |n: u32| -> Vec<u8> {
        (0..n)
            .flat_map(|_| {
                let w = match r.below(4) {
                    0 => r.bits() as u32,
                    1 => r.float().to_bits(),
                    2 => r.below(16) as u32,
                    _ => (r.below(40) as i32 - 20) as u32,
                };
                w.to_le_bytes()
            })
            .collect()
    };
    let out = 4 * OUTPUT_WORDS * groups * shape.workgroup.max(1);
    Inputs::new([groups, 1, 1])
        .buffer(0, 0, words(INPUT_WORDS))
        .buffer(0, 1, vec![0; out as usize])
        .buffer(0, 2, vec![0; 64])
        .buffer(0, 3, words(BLOCK_WORDS))
        .push(words(PUSH_WORDS))
}

struct Resources {
    input: Res,
    output: Res,
    counters: Res,
    block: Res,
    push: Res,
}

struct Gen<'a> {
    r: Random,
    shape: Shape,
    /// Operations wanted in all.
    limit: usize,
    /// Instructions looked at so far, and how many of them are operations.
    counted: usize,
    operations: usize,
    func: &'a mut Function,
    block: Block,
    res: Resources,
    graphics: Option<graphics::Graphics>,
    shared: Var,
    arrays: [Var; 2],
    /// Values that may be used here, oldest first.
    values: Vec<Value>,
    /// Those i32 that are certainly the same in all invocations of the work-group.
    uniforms: Vec<Value>,
    /// All that is around this place decides the same for every invocation of the work-group.
    structural: bool,
    /// What may be left from here, outermost first.
    frames: Vec<Frame>,
    /// Loops around this place.
    loops: u32,
    local: Value,
    /// Number of this invocation in the dispatch.
    id: Value,
    /// Address of the output words of this invocation.
    own: Value,
}

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

    /// Operations that may still be made.
    fn budget(&mut self) -> usize {
        let all = self.func.insts.len();
        for n in self.counted..all {
            self.operations += (self.func.insts[Inst(n as u32)].op != Op::Const) as usize;
        }
        self.counted = all;
        self.limit.saturating_sub(self.operations)
    }

    fn start_compute(&mut self) {
        let size = self.shape.workgroup.max(1);
        let mut b = self.b();
        let local = b.builtin(Builtin::LocalInvocationIndex);
        let group = b.builtin(Builtin::WorkgroupId(0));
        let n = b.i32(size);
        let first = b.op(Op::Imul, Type::I32, &[group, n]);
        self.id = b.op(Op::Iadd, Type::I32, &[first, local]);
        self.own_words_at();
        self.local = local;
        self.values = vec![local, self.id, group];
        self.uniforms = vec![group];
        self.built_ins();
    }

    /// Address of what belongs to this invocation.
    fn own_words_at(&mut self) {
        let (output, id) = (self.res.output, self.id);
        let mut b = self.b();
        let base = b.resource_addr(output, Space::Storage, None);
        self.own = b.lea(base, Some(id), 4 * OUTPUT_WORDS, 0);
    }

    fn run(&mut self) {
        if self.graphics.is_none() {
            self.start_compute();
        } else {
            self.start_graphics();
            if self.shape.stores {
                self.own_words_at();
            }
        }
        let starts = 3 + self.shape.live / 3;
        for k in 0..starts {
            let ty = if k % 2 == 0 { Type::I32 } else { Type::F32 };
            let v = self.load_any(ty);
            self.values.push(v);
        }
        if self.shape.arrays {
            self.fill_arrays();
        }
        if self.shape.early_return {
            self.program_frame();
        }
        if self.shape.divergent_loop {
            self.repeat(0, false);
        }
        while self.budget() > 0 {
            self.statements(0);
        }
        self.results();
        self.b().ret();
    }

    /// Everything that is still alive goes out, folded into the slots of this invocation.
    fn results(&mut self) {
        let mut slots: Vec<Option<Value>> = vec![None; RESULT_WORDS as usize];
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
        if self.graphics.is_some() {
            let words: Vec<Value> = slots.iter().flatten().copied().collect();
            self.outputs(&words);
        }
        if !self.shape.stores {
            return;
        }
        let own = self.own;
        let mut slots = slots.into_iter().flatten().peekable();
        let mut at = 0;
        while slots.peek().is_some() {
            let count = 1 + self.r.below(4) as usize;
            let words: Vec<Value> = slots.by_ref().take(count).collect();
            let mut b = self.b();
            let address = b.lea(own, None, 1, at);
            at += 4 * words.len() as i32;
            b.store(Type::I32, memory::access(Space::Storage, words.len(), 4), address, &words);
        }
    }
}
