//! Random programs about private memory: variables of a few words, written and read as every type at overlapping
//! offsets, at constant and at computed places, in nested branches and loops with several exits.
//!
//! The general generator of `kempe_ir::generate` has few such programs; the passes that make values of memory need many.

use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::inputs::Random;
use kempe_ir::interp;
use kempe_ir::*;
use kempe_opt::{Level, optimise, run_named};

struct Gen {
    m: Module,
    r: Random,
    at: Block,
    vars: Vec<(Var, u32)>,
    /// Values of i32 that dominate the current place.
    values: Vec<Value>,
    budget: u32,
}

const OUT_WORDS: u32 = 32;

fn mem(space: Space, count: u8, align: u32) -> MemImm {
    MemImm { space, count, align, volatile: false, read_only: false }
}

impl Gen {
    fn b(&mut self) -> Builder<'_> {
        Builder::new(&mut self.m.func, self.at)
    }

    fn value(&mut self) -> Value {
        let n = self.r.below(self.values.len() as u64) as usize;
        self.values[n]
    }

    /// An address inside a variable for `bytes` bytes, a multiple of `align`.
    fn place(&mut self, bytes: u32, align: u32) -> Value {
        let (var, size) = self.vars[self.r.below(self.vars.len() as u64) as usize];
        let slots = (size - bytes) / align + 1;
        let base = self.b().var_addr(var, Space::Private);
        if self.r.below(3) == 0 && slots > 1 {
            // A computed place: any of the first 2^k slots.
            let mask = (1u32 << slots.ilog2()) - 1;
            let v = self.value();
            let mut b = self.b();
            let k = b.i32(mask);
            let index = b.op(Op::And, Type::I32, &[v, k]);
            return b.lea(base, Some(index), align, 0);
        }
        let slot = self.r.below(slots as u64) as u32;
        self.b().lea(base, None, 0, (slot * align) as i32)
    }

    fn ty(&mut self) -> Type {
        let all = [
            Type::I32,
            Type::I32,
            Type::I32,
            Type::F32,
            Type::I16,
            Type::I8,
            Type::I64,
            Type::F16,
            Type::F64,
        ];
        all[self.r.below(all.len() as u64) as usize]
    }

    /// An i32 as the bits of a type (repeated for wide ones).
    fn make(&mut self, ty: Type, v: Value) -> Value {
        let mut b = self.b();
        match ty {
            Type::I32 => v,
            Type::F32 => b.op(Op::Bitcast, ty, &[v]),
            Type::I8 | Type::I16 => b.op(Op::Trunc, ty, &[v]),
            Type::F16 => {
                let t = b.op(Op::Trunc, Type::I16, &[v]);
                b.op(Op::Bitcast, ty, &[t])
            }
            _ => {
                let w = b.op(Op::Zext, Type::I64, &[v]);
                let k = b.i32(24);
                let up = b.op(Op::Shl, Type::I64, &[w, k]);
                let all = b.op(Op::Xor, Type::I64, &[w, up]);
                if ty == Type::I64 { all } else { b.op(Op::Bitcast, ty, &[all]) }
            }
        }
    }

    fn unmake(&mut self, ty: Type, v: Value) -> Value {
        let mut b = self.b();
        match ty {
            Type::I32 => v,
            Type::F32 => b.op(Op::Bitcast, Type::I32, &[v]),
            Type::I8 | Type::I16 => b.op(Op::Zext, Type::I32, &[v]),
            Type::F16 => {
                let t = b.op(Op::Bitcast, Type::I16, &[v]);
                b.op(Op::Zext, Type::I32, &[t])
            }
            _ => {
                let w = if ty == Type::I64 { v } else { b.op(Op::Bitcast, Type::I64, &[v]) };
                let k = b.i32(19);
                let down = b.op(Op::Lshr, Type::I64, &[w, k]);
                let all = b.op(Op::Xor, Type::I64, &[w, down]);
                b.op(Op::Trunc, Type::I32, &[all])
            }
        }
    }

    fn access(&mut self) {
        let ty = self.ty();
        let count = if ty.bytes() <= 4 { 1 + self.r.below(3) as u32 } else { 1 };
        // Sometimes at places that are no multiple of the size: overlaps by parts.
        let align = if self.r.below(4) == 0 { ty.bytes().min(4) / 2 } else { ty.bytes() }.max(1);
        let addr = self.place(ty.bytes() * count, align);
        let imm = mem(Space::Private, count as u8, 1);
        if self.r.below(2) == 0 {
            let data: Vec<Value> = (0..count)
                .map(|_| {
                    let v = self.value();
                    self.make(ty, v)
                })
                .collect();
            self.b().store(ty, imm, addr, &data);
        } else {
            let loaded = self.b().load(ty, imm, addr);
            for v in loaded {
                let w = self.unmake(ty, v);
                let old = self.value();
                let sum = self.b().op(Op::Iadd, Type::I32, &[w, old]);
                self.values.push(sum);
            }
        }
    }

    fn condition(&mut self) -> Value {
        let v = self.value();
        let k = self.r.below(16) as u32;
        let mut b = self.b();
        let m = b.i32(15);
        let low = b.op(Op::And, Type::I32, &[v, m]);
        let k = b.i32(k);
        b.op(Op::Ult, Type::I32, &[low, k])
    }

    fn code(&mut self, depth: u32) {
        for _ in 0..2 + self.r.below(5) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.r.below(10) {
                0 | 1 if depth > 0 => self.branch(depth),
                2 if depth > 0 => self.repeat(depth),
                _ => self.access(),
            }
        }
    }

    fn branch(&mut self, depth: u32) {
        let cond = self.condition();
        let (then, els) = (self.m.func.add_block_detached(), self.m.func.add_block_detached());
        let end = self.m.func.add_block_detached();
        let two = self.r.below(2) == 0;
        self.b().branch(cond, then, if two { els } else { end });
        let known = self.values.len();
        for (arm, used) in [(then, true), (els, two)] {
            if used {
                self.m.func.layout.push(arm);
                self.at = arm;
                self.code(depth - 1);
                self.b().jump(end, &[]);
                self.values.truncate(known);
            }
        }
        self.m.func.layout.push(end);
        self.at = end;
    }

    /// A loop of one to four rounds, perhaps with a second exit.
    fn repeat(&mut self, depth: u32) {
        let trips = 1 + self.r.below(4) as u32;
        let head = self.m.func.add_block_detached();
        let (body, latch, end) = (
            self.m.func.add_block_detached(),
            self.m.func.add_block_detached(),
            self.m.func.add_block_detached(),
        );
        let varying = self.r.below(3) == 0;
        let mut b = self.b();
        let zero = b.i32(0);
        let one = b.i32(1);
        b.jump(head, &[zero]);
        self.m.func.layout.push(head);
        let i = self.m.func.add_param(head, Type::I32);
        let bound = if varying { self.value() } else { zero };
        self.at = head;
        let mut b = self.b();
        let mut bound = if varying {
            let three = b.i32(3);
            b.op(Op::And, Type::I32, &[bound, three])
        } else {
            b.i32(trips)
        };
        if varying {
            let mut b = self.b();
            bound = b.op(Op::Iadd, Type::I32, &[bound, one]);
        }
        let c = self.b().op(Op::Ult, Type::I32, &[i, bound]);
        self.b().branch(c, body, end);
        self.m.func.layout.push(body);
        self.at = body;
        let known = self.values.len();
        self.values.push(i);
        self.code(depth - 1);
        if self.r.below(3) == 0 {
            let c = self.condition();
            self.b().branch(c, end, latch);
        } else {
            self.b().jump(latch, &[]);
        }
        self.m.func.layout.push(latch);
        self.at = latch;
        let mut b = self.b();
        let next = b.op(Op::Iadd, Type::I32, &[i, one]);
        b.jump(head, &[next]);
        self.values.truncate(known);
        self.m.func.layout.push(end);
        self.at = end;
    }
}

fn program(seed: u64) -> Module {
    let mut m = Module::new("main", Stage::Compute);
    m.workgroup_size = [16, 1, 1];
    for (binding, read_only) in [(0, true), (1, false)] {
        m.resources.push(Resource {
            kind: ResKind::StorageBuffer,
            set: 0,
            binding,
            elements: 1,
            size: 0,
            tail_stride: 4,
            name: String::new(),
            read_only,
            image: None,
        });
    }
    let entry = m.func.add_block();
    let mut g = Gen { m, r: Random(seed), at: entry, vars: vec![], values: vec![], budget: 60 };
    let id = g.b().builtin(Builtin::LocalInvocationIndex);
    let base = g.b().resource_addr(Res(0), Space::Storage, None);
    let addr = g.b().lea(base, Some(id), 16, 0);
    let input = g.b().load(Type::I32, mem(Space::Storage, 4, 16), addr);
    g.values.extend(input);
    g.values.push(id);
    let mut words = 0;
    for _ in 0..1 + g.r.below(3) {
        let n = 3 + g.r.below(6) as u32;
        words += n;
        let var =
            g.m.vars.push(Variable { space: Space::Private, size: n * 4, align: 8, name: String::new() });
        g.vars.push((var, n * 4));
        // Everything is defined from the start.
        for k in 0..n {
            let v = g.value();
            let at = g.b().var_addr(var, Space::Private);
            let at = g.b().lea(at, None, 0, k as i32 * 4);
            g.b().store(Type::I32, mem(Space::Private, 1, 4), at, &[v]);
        }
    }
    assert!(words < OUT_WORDS);
    g.code(4);
    let mut word = 0;
    let base = g.b().resource_addr(Res(1), Space::Storage, None);
    for (var, size) in g.vars.clone() {
        for k in 0..size / 4 {
            let mut b = g.b();
            let at = b.var_addr(var, Space::Private);
            let at = b.lea(at, None, 0, k as i32 * 4);
            let v = b.load(Type::I32, mem(Space::Private, 1, 4), at)[0];
            let to = b.lea(base, Some(id), OUT_WORDS * 4, word * 4);
            b.store(Type::I32, mem(Space::Storage, 1, 4), to, &[v]);
            word += 1;
        }
    }
    let last = *g.values.last().unwrap();
    let mut b = g.b();
    let to = b.lea(base, Some(id), OUT_WORDS * 4, (OUT_WORDS as i32 - 1) * 4);
    b.store(Type::I32, mem(Space::Storage, 1, 4), to, &[last]);
    b.ret();
    g.m
}

fn results(m: &Module, seed: u64, what: &str) -> Vec<u8> {
    let mut r = Random(seed ^ 99);
    let input: Vec<u8> = (0..16 * 4).flat_map(|_| (r.bits() as u32).to_le_bytes()).collect();
    let inputs =
        Inputs::new([1, 1, 1]).buffer(0, 0, input).buffer(0, 1, vec![0; 16 * OUT_WORDS as usize * 4]);
    let env = Environment::new(m, &inputs, Sizes::source()).unwrap();
    let out = interp::run(m, &env, &interp::Options::source())
        .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(m)));
    env.buffer_contents(&out.memory)[1].to_vec()
}

#[test]
fn memory_becomes_values() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("KEMPE_FIRST_SEED").unwrap_or(0);
    let (mut split, mut unrolled, mut left) = (0, 0, 0);
    let seeds = number("KEMPE_SEEDS").unwrap_or(60);
    for seed in first..first + seeds {
        let source = program(seed);
        verify::verify(&source).unwrap_or_else(|e| panic!("seed {seed}: {e:#?}\n{}", text::print(&source)));
        let expected = results(&source, seed, &format!("seed {seed}"));
        let sequences: [&[&str]; 6] = [
            &["ssa", "dce"],
            &["split_arrays", "ssa", "dce"],
            &["gvn", "dse", "dce"],
            &["unroll", "ssa", "cfg", "algebra", "gvn", "ssa", "dce", "compact"],
            &[
                "algebra",
                "gvn",
                "cfg",
                "unroll",
                "ssa",
                "split_arrays",
                "algebra",
                "ssa",
                "if_convert",
                "cfg",
            ],
            &["cfg", "dse", "licm", "sink", "localise", "ssa", "unroll", "gvn", "cfg", "vectorise", "ssa"],
        ];
        for sequence in sequences {
            let mut m = source.clone();
            for &pass in sequence {
                let before = text::print(&m);
                let changed = run_named(&mut m, pass) == Some(true);
                split += (changed && pass == "split_arrays") as u32;
                unrolled += (changed && pass == "unroll") as u32;
                let what = format!("seed {seed}: {pass} of {sequence:?}");
                let got = results(&m, seed, &what);
                assert!(got == expected, "{what}\nbefore\n{before}\nafter\n{}", text::print(&m));
            }
        }
        for level in [Level::O0, Level::O1, Level::O2] {
            let mut m = source.clone();
            optimise(&mut m, level);
            let what = format!("seed {seed}: {level:?}");
            assert!(results(&m, seed, &what) == expected, "{what}\n{}", text::print(&m));
            left += (level == Level::O2 && !m.vars.is_empty()) as u64;
        }
    }
    assert!(split * 8 > seeds as u32 && unrolled * 4 > seeds as u32, "{split} split, {unrolled} unrolled");
    assert!(left * 4 < seeds * 3, "{left} of {seeds} programs still have private memory");
}
