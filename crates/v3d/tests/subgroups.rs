//! Operations between lanes, down the whole road and on the simulator, against the interpreter on the source form.
//!
//! The operations are put into other programs: into a fixed one with each of its blocks in another kind of control
//! (uniform, a branch, a loop that lanes leave one by one, behind an early end), one operation at a time; and into random
//! ones, where results also decide branches. What a lane gets goes to slots of its own, mixed with what was there, so
//! that every execution counts. `KEMPE_SEEDS=n` and `KEMPE_FIRST_SEED=n` choose the random programs.

mod common;

use common::simulate;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_ir::*;
use kempe_v3d::asm;
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok()).unwrap_or(default)
}

/// Slots of an invocation in the buffer of binding 4.
const SLOTS: u32 = 64;

/// One operation with how its operands are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Elect,
    VoteAny,
    VoteAll,
    VoteEq,
    Ballot,
    BallotTrue,
    First,
    ShuffleConst(u32),
    ShuffleUp(u32),
    ShuffleXor(u32),
    ShuffleAny,
    Reduce(Op, ReduceKind, u8),
}

const INT_REDUCTIONS: [Op; 9] =
    [Op::Iadd, Op::Imul, Op::Smin, Op::Smax, Op::Umin, Op::Umax, Op::And, Op::Or, Op::Xor];
const FLOAT_REDUCTIONS: [Op; 4] = [Op::Fadd, Op::Fmul, Op::Fmin, Op::Fmax];
const KINDS: [ReduceKind; 3] = [ReduceKind::Reduce, ReduceKind::InclusiveScan, ReduceKind::ExclusiveScan];

fn reductions(ty: Type) -> &'static [Op] {
    match ty {
        Type::Bool => &[Op::And, Op::Or, Op::Xor],
        Type::F32 | Type::F16 => &FLOAT_REDUCTIONS,
        _ => &INT_REDUCTIONS,
    }
}

/// Puts operations between lanes into a program.
struct Insert<'a> {
    func: &'a mut Function,
    block: Block,
    res: Res,
    /// Invocations of a work-group.
    size: u32,
    slot: u32,
}

impl Insert<'_> {
    fn b(&mut self) -> Builder<'_> {
        Builder::new(self.func, self.block)
    }

    fn lane(&mut self) -> Value {
        self.b().builtin(Builtin::SubgroupLocalId)
    }

    /// A value as an i32.
    fn word(&mut self, v: Value) -> Value {
        let ty = self.func.ty(v);
        let mut b = self.b();
        match ty {
            Type::I32 => v,
            Type::Bool | Type::I8 | Type::I16 => b.op(Op::Zext, Type::I32, &[v]),
            Type::F32 => b.op(Op::Bitcast, Type::I32, &[v]),
            Type::F16 => {
                let bits = b.op(Op::Bitcast, Type::I16, &[v]);
                b.op(Op::Zext, Type::I32, &[bits])
            }
            _ => {
                let n = b.i32(32);
                let high = b.op(Op::Lshr, Type::I64, &[v, n]);
                let (low, high) = (b.op(Op::Trunc, Type::I32, &[v]), b.op(Op::Trunc, Type::I32, &[high]));
                b.op(Op::Xor, Type::I32, &[low, high])
            }
        }
    }

    fn operation(&mut self, kind: Kind, v: Value) -> Value {
        let ty = self.func.ty(v);
        let from = match kind {
            Kind::ShuffleConst(n) => Some(self.b().i32(n)),
            Kind::ShuffleUp(n) => {
                let own = self.lane();
                let n = self.b().i32(n);
                Some(self.b().op(Op::Isub, Type::I32, &[own, n]))
            }
            Kind::ShuffleXor(n) => {
                let own = self.lane();
                let n = self.b().i32(n);
                Some(self.b().op(Op::Xor, Type::I32, &[own, n]))
            }
            Kind::ShuffleAny => {
                let (w, own) = (self.word(v), self.lane());
                let mut b = self.b();
                let mask = b.i32(15);
                let sum = b.op(Op::Iadd, Type::I32, &[w, own]);
                Some(b.op(Op::And, Type::I32, &[sum, mask]))
            }
            _ => None,
        };
        let zero = self.b().constant(ty, 0);
        let mut b = self.b();
        let bool_of = |b: &mut Builder<'_>| match ty {
            Type::Bool => v,
            _ if ty.is_float() => b.op(Op::Flt, ty, &[zero, v]),
            _ => b.op(Op::Slt, ty, &[zero, v]),
        };
        if let Some(from) = from {
            // A lane that is not there or does not run gives anything.
            let all = b.bool(true);
            let running = b.op(Op::Ballot, Type::I32, &[all]);
            let (limit, one, none) = (b.i32(16), b.i32(1), b.i32(0));
            let bit = b.op(Op::Lshr, Type::I32, &[running, from]);
            let bit = b.op(Op::And, Type::I32, &[bit, one]);
            let runs = b.op(Op::Ine, Type::I32, &[bit, none]);
            let exists = b.op(Op::Ult, Type::I32, &[from, limit]);
            let there = b.op(Op::And, Type::Bool, &[runs, exists]);
            let other = b.op(Op::Shuffle, ty, &[v, from]);
            return b.select(there, other, zero);
        }
        let one_result = |b: &mut Builder<'_>, op, ty, arg: &[Value], r| {
            let i = b.inst(op, ty, Imm::None, arg, &[r]);
            b.func.insts[i].results[0]
        };
        match kind {
            Kind::Elect => one_result(&mut b, Op::Elect, Type::Bool, &[], Type::Bool),
            Kind::VoteAny | Kind::VoteAll => {
                let c = bool_of(&mut b);
                let op = if kind == Kind::VoteAny { Op::VoteAny } else { Op::VoteAll };
                one_result(&mut b, op, Type::Bool, &[c], Type::Bool)
            }
            Kind::VoteEq => one_result(&mut b, Op::VoteEq, ty, &[v], Type::Bool),
            Kind::Ballot => {
                let c = bool_of(&mut b);
                one_result(&mut b, Op::Ballot, Type::I32, &[c], Type::I32)
            }
            Kind::BallotTrue => {
                let c = b.bool(true);
                one_result(&mut b, Op::Ballot, Type::I32, &[c], Type::I32)
            }
            Kind::First => b.op(Op::BroadcastFirst, ty, &[v]),
            Kind::Reduce(op, kind, cluster) => {
                b.op_imm(Op::Reduce, ty, Imm::Reduce(ReduceImm { op, kind, cluster }), &[v])
            }
            _ => unreachable!("shuffles are done"),
        }
    }

    /// Mixes a value into the next slot of the invocation.
    fn store(&mut self, v: Value) {
        let w = self.word(v);
        let (res, slot) = (self.res, self.slot % SLOTS);
        self.slot += 1;
        let size = self.size;
        let mut b = self.b();
        let base = b.resource_addr(res, Space::Storage, None);
        let (group, local) = (b.builtin(Builtin::WorkgroupId(0)), b.builtin(Builtin::LocalInvocationIndex));
        let size = b.i32(size);
        let first = b.op(Op::Imul, Type::I32, &[group, size]);
        let id = b.op(Op::Iadd, Type::I32, &[first, local]);
        let addr = b.lea(base, Some(id), 4 * SLOTS, 4 * slot as i32);
        let mem = MemImm { space: Space::Storage, count: 1, align: 4, volatile: false, read_only: false };
        let old = b.load(Type::I32, mem, addr)[0];
        let factor = b.i32(31);
        let mixed = b.op(Op::Imul, Type::I32, &[old, factor]);
        let mixed = b.op(Op::Xor, Type::I32, &[mixed, w]);
        b.store(Type::I32, mem, addr, &[mixed]);
    }

    /// Cuts the block here: the rest stands in a new one behind a branch on `cond` around a new block, where building
    /// goes on until [`Insert::join`].
    fn split(&mut self, cond: Value) -> Block {
        let (inner, rest) = (self.func.add_block_detached(), self.func.add_block_detached());
        let old = std::mem::replace(&mut self.func.blocks[self.block].term, Term::Unreachable);
        self.func.blocks[rest].term = old;
        let at = self.func.layout.iter().position(|&b| b == self.block).expect("in the layout");
        self.func.layout.splice(at + 1..at + 1, [inner, rest]);
        self.b().branch(cond, inner, rest);
        self.block = inner;
        rest
    }

    fn join(&mut self, rest: Block) {
        self.b().jump(rest, &[]);
        self.block = rest;
    }
}

/// The buffer in which the invocations have their slots.
fn slots(m: &mut Module) -> Res {
    m.uses_subgroups = true;
    m.resources.push(Resource {
        kind: ResKind::StorageBuffer,
        set: 0,
        binding: 4,
        elements: 1,
        size: 0,
        tail_stride: 4,
        name: "slots".to_owned(),
        read_only: false,
        image: None,
    })
}

fn inputs(m: &Module, seed: u64) -> Inputs {
    let mut r = Random(seed);
    let mut words = |n: u32| (0..n).flat_map(|_| (r.bits() as u32).to_le_bytes()).collect::<Vec<u8>>();
    let groups = 3;
    let items = m.workgroup_items() * groups;
    Inputs::new([groups, 1, 1])
        .buffer(0, 0, words(INPUT_WORDS))
        .buffer(0, 1, vec![0; (items * OUTPUT_WORDS * 4) as usize])
        .buffer(0, 2, vec![0; 64])
        .buffer(0, 3, words(16))
        .buffer(0, 4, vec![0; (items * SLOTS * 4) as usize])
        .push(words(4))
}

/// The machine code that selection made last.
#[derive(Default)]
struct Seen(String);

impl kempe_v3d::compile::Observer for Seen {
    fn selected(&mut self, _: u32, mir: &kempe_mir::Mir<kempe_v3d::mops::MInst>) {
        self.0 = kempe_mir::print::print(mir);
    }

    fn finished(
        &mut self,
        _: &kempe_mir::Mir<kempe_v3d::mops::MInst>,
        _: &kempe_ra::Allocation,
        frame: &kempe_v3d::finish::Frame,
        code: &kempe_v3d::finish::Finished,
    ) {
        for (n, &w) in code.words.iter().enumerate() {
            let block = code.block_starts.iter().rposition(|&b| b <= n).unwrap_or(0);
            self.0 += &format!("{n:5} block {block:3} {}\n", asm::disassemble(frame.version, w, false));
        }
    }
}

/// Compiles and runs in the given configurations; checker B looks at each. Returns how many were compiled, and to how many
/// that are right it objects.
fn judge(
    what: &str,
    source: &Module,
    seed: u64,
    level: kempe_opt::Level,
    configurations: &[Options],
) -> (u32, u32) {
    let inputs = inputs(source, seed);
    verify::verify(source).unwrap_or_else(|e| panic!("{what}: {e:?}\n{}", text::print(source)));
    let env = Environment::new(source, &inputs, Sizes::source()).unwrap();
    let expected = interp::run(source, &env, &interp::Options::source())
        .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(source)));
    assert!(expected.undefined.is_empty(), "{what}: {:?}", expected.undefined);
    let expected = env.buffer_contents(&expected.memory);
    let (mut compiled, mut objections) = (0, 0);
    for version in Version::ALL {
        let mut m = source.clone();
        let mut choices = kempe_opt::Options::new(level);
        choices.vector_within_16 = version == Version::V42;
        kempe_opt::optimise_with(&mut m, &choices, &mut ());
        for options in configurations {
            let options = Options { verify: true, ..*options };
            let what = format!("{what}, {}, {level:?}, {options:?}", version.name());
            let artifact = match compile(m.clone(), version, &options, &mut ()) {
                Ok(a) => a,
                Err(e) if !e.internal => continue,
                Err(e) => {
                    // Who is wrong, the code or checker B? Its objections to right code are counted.
                    let unchecked = Options { verify: false, ..options };
                    let mut seen = Seen::default();
                    let runs = compile(m.clone(), version, &unchecked, &mut seen)
                        .map_err(|e| e.to_string())
                        .and_then(|a| simulate(source, &a, version, &inputs))
                        .map(|got| got.buffers == expected);
                    assert!(
                        runs == Ok(true),
                        "{what}: {e}; it runs: {runs:?}\n{}\n{}",
                        text::print(&m),
                        seen.0
                    );
                    println!("{what}: checker B: {e}");
                    objections += 1;
                    continue;
                }
            };
            assert!(!artifact.may_share_batches, "{what}: lanes of other work-groups");
            let got = simulate(source, &artifact, version, &inputs)
                .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(&m)));
            assert!(got.buffers == expected, "{what}: the results differ\n{}", text::print(&m));
            compiled += 1;
        }
    }
    (compiled, objections)
}

fn with(threads: Option<u32>, force_spill: bool) -> Options {
    Options { threads, force_spill, ..Options::default() }
}

/// Every kind of operation on values of a type.
fn all_kinds(ty: Type) -> Vec<Kind> {
    let mut list = vec![Kind::Elect, Kind::VoteAny, Kind::VoteAll, Kind::VoteEq, Kind::Ballot];
    list.extend([Kind::BallotTrue, Kind::First, Kind::ShuffleConst(0), Kind::ShuffleConst(5)]);
    list.extend([Kind::ShuffleUp(1), Kind::ShuffleUp(0xffff_fffd), Kind::ShuffleXor(6), Kind::ShuffleAny]);
    for &op in reductions(ty) {
        for kind in KINDS {
            for cluster in [0, 1, 2, 4, 8, 16] {
                list.push(Kind::Reduce(op, kind, cluster));
            }
        }
    }
    list
}

/// A program with one operation in every kind of control.
fn everywhere(kind: Kind, ty: Type, items: u32, seed: u64) -> Module {
    let mut m = generate(seed, &Shape { operations: 0, workgroup: items, ..Shape::from_seed(seed) });
    m.func = Function::default();
    let res = slots(&mut m);
    let entry = m.func.add_block();
    let input = m.resources.keys().next().expect("the input");
    let mut x = Insert { func: &mut m.func, block: entry, res, size: items, slot: 0 };
    let mut b = x.b();
    let local = b.builtin(Builtin::LocalInvocationIndex);
    let mem = MemImm { space: Space::Storage, count: 1, align: 4, volatile: false, read_only: true };
    let base = b.resource_addr(input, Space::Storage, None);
    let mask = b.i32(INPUT_WORDS - 1);
    let index = b.op(Op::And, Type::I32, &[local, mask]);
    let addr = b.lea(base, Some(index), 4, 0);
    let word = b.load(Type::I32, mem, addr)[0];
    let v = match ty {
        Type::I32 => word,
        Type::F32 => {
            let low = b.op(Op::Trunc, Type::I16, &[word]);
            b.op(Op::Sitof, Type::F32, &[low])
        }
        Type::F16 => {
            let low = b.op(Op::Trunc, Type::I8, &[word]);
            b.op(Op::Sitof, Type::F16, &[low])
        }
        Type::Bool => {
            let (zero, bits) = (b.i32(0), b.i32(3));
            let bits = b.op(Op::And, Type::I32, &[word, bits]);
            b.op(Op::Ine, Type::I32, &[bits, zero])
        }
        Type::I64 => {
            let v = b.op(Op::Sext, Type::I64, &[word]);
            b.op(Op::Imul, Type::I64, &[v, v])
        }
        _ => b.op(Op::Trunc, ty, &[word]),
    };
    // All lanes together.
    let r = x.operation(kind, v);
    x.store(r);
    // Some lanes; inside of that, one in three of them.
    let (three, zero) = (x.b().i32(3), x.b().i32(0));
    let rest = x.b().op(Op::Umod, Type::I32, &[local, three]);
    let c = x.b().op(Op::Ine, Type::I32, &[rest, zero]);
    let outer = x.split(c);
    let r = x.operation(kind, v);
    x.store(r);
    let c = x.b().op(Op::Slt, Type::I32, &[word, zero]);
    let inner = x.split(c);
    let r = x.operation(kind, v);
    x.store(r);
    x.join(inner);
    x.join(outer);
    // A loop that each lane leaves after another number of rounds; its own result is used behind it.
    let (head, exit) = (x.func.add_block(), x.func.add_block());
    let start = x.b().i32(0);
    x.b().jump(head, &[start]);
    x.block = head;
    let count = x.func.add_param(head, Type::I32);
    let r = x.operation(kind, v);
    x.store(r);
    let (one, bits) = (x.b().i32(1), x.b().i32(3));
    let next = x.b().op(Op::Iadd, Type::I32, &[count, one]);
    let rounds = x.b().op(Op::And, Type::I32, &[local, bits]);
    let again = x.b().op(Op::Ule, Type::I32, &[next, rounds]);
    x.func.blocks[head].term = Term::Branch {
        cond: again,
        then: Target { block: head, args: [next].into_iter().collect() },
        els: Target { block: exit, args: Default::default() },
    };
    x.block = exit;
    x.store(r);
    // The last lanes end early.
    let limit = x.b().i32(items / 2 + 3);
    let c = x.b().op(Op::Ult, Type::I32, &[local, limit]);
    let done = x.split(c);
    let r = x.operation(kind, v);
    x.store(r);
    x.b().ret();
    x.func.blocks[done].term = Term::Return;
    m
}

#[test]
fn every_operation_in_every_control() {
    let types = [Type::I32, Type::F32, Type::Bool, Type::I16, Type::I8, Type::I64, Type::F16];
    let configurations = [with(Some(4), false), with(Some(2), false), with(None, true)];
    let levels = [kempe_opt::Level::O0, kempe_opt::Level::O2];
    let every = number("KEMPE_SUBGROUP_STEP", 16) as usize;
    let mut compiled = 0;
    for (t, ty) in types.into_iter().enumerate() {
        for (k, kind) in all_kinds(ty).into_iter().enumerate() {
            // Reductions are many: a part of them in each run, another part for each type.
            if every > 1 && k >= 13 && (k + t) % every != 0 {
                continue;
            }
            let items = [16, 32, 20, 8, 48, 1][(k + t) % 6];
            let m = everywhere(kind, ty, items, k as u64);
            let what = format!("{kind:?} of {ty} in {items}");
            let done = judge(&what, &m, k as u64, levels[k % 2], &configurations[k % 3..=k % 3]);
            assert!(done.1 == 0, "{what}: checker B objects");
            compiled += done.0;
        }
    }
    println!("{compiled} compiled");
    assert!(compiled > 0);
}

/// Puts operations into a random program.
fn spray(m: &mut Module, seed: u64) {
    let mut r = Random(seed ^ 0x1a5e5);
    let size = m.workgroup_items();
    let res = slots(m);
    let mut slot = 0;
    for block in m.func.layout.clone() {
        if r.below(100) < 40 {
            continue;
        }
        let at = r.below(m.func.blocks[block].insts.len() as u64 + 1) as usize;
        let behind = m.func.blocks[block].insts.split_off(at);
        let data = &m.func.blocks[block];
        let made = data.insts.iter().flat_map(|&i| m.func.insts[i].results.iter());
        let values: Vec<Value> = data.params.iter().chain(made).copied().collect();
        let values: Vec<Value> =
            values.into_iter().filter(|&v| !matches!(m.func.ty(v), Type::Ptr(_) | Type::F64)).collect();
        let mut x = Insert { func: &mut m.func, block, res, size, slot };
        for _ in 0..1 + r.below(3) {
            let v = match values.len() as u64 {
                0 => x.lane(),
                n => values[r.below(n) as usize],
            };
            let kinds = all_kinds(x.func.ty(v));
            let n = if r.below(2) == 0 { 13 } else { kinds.len() as u64 };
            let kind = kinds[r.below(n) as usize];
            let result = x.operation(kind, v);
            x.store(result);
            if r.below(100) < 40 {
                let cond = match x.func.ty(result) {
                    Type::Bool => result,
                    _ => {
                        let w = x.word(result);
                        let (bit, zero) = (x.b().i32(1 << r.below(5)), x.b().i32(0));
                        let bit = x.b().op(Op::And, Type::I32, &[w, bit]);
                        x.b().op(Op::Ine, Type::I32, &[bit, zero])
                    }
                };
                let rest = x.split(cond);
                let kind = kinds[r.below(kinds.len() as u64) as usize];
                let inner = x.operation(kind, v);
                x.store(inner);
                x.join(rest);
            }
        }
        let last = x.block;
        slot = x.slot;
        m.func.blocks[last].insts.extend(behind);
    }
}

#[test]
fn random_programs() {
    let first = number("KEMPE_FIRST_SEED", 0);
    let (mut compiled, mut objections) = (0, 0);
    for seed in first..first + number("KEMPE_SEEDS", 5) {
        let shape = Shape { approximate: false, shared: false, ..Shape::from_seed(seed) };
        let shape = Shape { operations: shape.operations / 2, ..shape };
        let mut m = generate(seed, &shape);
        spray(&mut m, seed);
        let levels = [kempe_opt::Level::O0, kempe_opt::Level::O1, kempe_opt::Level::O2];
        let all = [with(Some(4), false), with(Some(2), false), with(None, false), with(None, true)];
        let done = judge(&format!("seed {seed}"), &m, seed, levels[seed as usize % 3], &all);
        compiled += done.0;
        objections += done.1;
    }
    println!("{compiled} compiled, {objections} objections of checker B to right code");
    assert!(compiled > 0 && objections * 50 <= compiled);
}
