//! 64-bit floats in software against the interpreter's own, bit for bit: every operation on all pairs of edge values and on
//! random ones. `KEMPE_SEEDS=n` runs more random ones.

use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::inputs::Random;
use kempe_ir::interp::{Options, run};
use kempe_ir::*;
use kempe_opt::double;

/// Invocations of a work-group.
const ITEMS: u32 = 16;

/// Numbers at which something changes: zeros, the ends of the denormals, of f32, f16 and of the integers, halves, ties.
fn edges() -> Vec<u64> {
    let mut list = Vec::new();
    for x in [
        0.0,
        f64::from_bits(1),
        f64::from_bits((1 << 52) - 1),
        f64::MIN_POSITIVE,
        f64::from_bits(1f64.to_bits() - 1),
        0.25,
        0.49999999999999994,
        0.5,
        0.75,
        1.0,
        1.0 + f64::EPSILON,
        1.5,
        2.0,
        2.5,
        3.0,
        4.0,
        10.0,
        127.5,
        65504.0,
        65519.99,
        65520.0,
        5.960464477539063e-8,
        2.98e-8,
        8388608.5,
        16777217.0,
        2147483647.0,
        2147483647.5,
        2147483648.0,
        4294967295.5,
        4294967296.0,
        4503599627370496.5,
        4503599627370497.0,
        9007199254740991.0,
        9007199254740993.0,
        9.223372036854775e18,
        9223372036854775808.0,
        18446744073709551615.0,
        f32::MAX as f64,
        3.4028235677973366e38,
        f32::MIN_POSITIVE as f64,
        1.0e-45,
        7.0e-46,
        f64::MAX,
        f64::INFINITY,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0x7fff_ffff_ffff_ffff),
    ] {
        list.extend([x.to_bits(), x.to_bits() | 1 << 63]);
    }
    list
}

/// Random bits; half of the time near what came before, so that sums cancel and quotients are near 1.
fn random(n: u64) -> Vec<[u64; 3]> {
    let mut r = Random(n);
    let mut out = Vec::new();
    for _ in 0..n {
        let mut pick = |near: u64| match r.bits() % 8 {
            0 | 1 => r.bits(),
            2 => near ^ r.bits() >> 44,
            3 => near ^ 1 << (r.bits() % 64),
            4 => (((r.bits() >> 40) as i64 - (1 << 23)) as f64 * 0.125).to_bits(),
            5 => near.wrapping_add((r.bits() % 128) << 52),
            6 => r.bits() & 0x800f_ffff_ffff_ffff | (r.bits() % 80) << 52,
            _ => r.bits() & 0x800f_ffff_ffff_ffff | (1023 - 64 + r.bits() % 128) << 52,
        };
        let a = pick(1f64.to_bits());
        let b = pick(a);
        out.push([a, b, pick(b)]);
    }
    out
}

/// One operation on three doubles, which gives 64 bits.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// With this many operands.
    Plain(Op, usize),
    /// To an integer or float type.
    To(Op, Type),
    /// Over lanes, of which a few do not run.
    Lanes(Op, ReduceKind, u8),
    /// From one, its bits the low ones of the first operand.
    From(Op, Type),
    Select,
}

fn kinds() -> Vec<Kind> {
    use Op::*;
    let mut list = vec![Kind::Select, Kind::Plain(Fma, 3)];
    list.extend(
        [Fadd, Fsub, Fmul, Fdiv, Frem, Fmod, Fmin, Fmax, Feq, Fne, Flt, Fle].map(|op| Kind::Plain(op, 2)),
    );
    list.extend([Fneg, Fabs, Ffloor, Fceil, Ftrunc, Fround, Fsqrt, Frsqrt].map(|op| Kind::Plain(op, 1)));
    for ty in [Type::I8, Type::I16, Type::I32, Type::I64] {
        list.extend([Kind::To(Ftosi, ty), Kind::To(Ftoui, ty), Kind::From(Sitof, ty), Kind::From(Uitof, ty)]);
    }
    list.extend(
        [Type::F16, Type::F32].into_iter().flat_map(|ty| [Kind::To(Fconv, ty), Kind::From(Fconv, ty)]),
    );
    list.extend([Kind::To(Bitcast, Type::I64), Kind::From(Bitcast, Type::I64)]);
    for op in [Fadd, Fmul, Fmin, Fmax] {
        list.extend(
            [(ReduceKind::Reduce, 0), (ReduceKind::Reduce, 4)].map(|(kind, n)| Kind::Lanes(op, kind, n)),
        );
        list.extend([ReduceKind::InclusiveScan, ReduceKind::ExclusiveScan].map(|k| Kind::Lanes(op, k, 0)));
    }
    list
}

/// Operands in binding 0, results in binding 1.
fn module(kind: Kind) -> Module {
    let mut m = Module::new("main", Stage::Compute);
    m.workgroup_size = [ITEMS, 1, 1];
    for binding in 0..2 {
        m.resources.push(Resource {
            kind: ResKind::StorageBuffer,
            set: 0,
            binding,
            elements: 1,
            size: 0,
            tail_stride: 8,
            name: String::new(),
            read_only: false,
            image: None,
        });
    }
    let entry = m.func.add_block();
    let mut b = Builder::new(&mut m.func, entry);
    let group = b.builtin(Builtin::WorkgroupId(0));
    let items = b.i32(ITEMS);
    let first = b.op(Op::Imul, Type::I32, &[group, items]);
    let local = b.builtin(Builtin::LocalInvocationId(0));
    let n = b.op(Op::Iadd, Type::I32, &[first, local]);
    let base = b.resource_addr(Res(0), Space::Storage, None);
    let at = b.lea(base, Some(n), 24, 0);
    let mem = MemImm { space: Space::Storage, count: 3, align: 8, volatile: false, read_only: false };
    let v = b.load(Type::F64, mem, at);
    let out = match kind {
        Kind::Plain(op, n) => b.op(op, Type::F64, &v[..n]),
        Kind::To(op, ty) => b.op(op, ty, &v[..1]),
        Kind::From(op, ty) => {
            let bits = b.op(Op::Bitcast, Type::I64, &v[..1]);
            let int = Type::int(ty.bits()).unwrap();
            let low = if int == Type::I64 { bits } else { b.op(Op::Trunc, int, &[bits]) };
            let low = if int == ty { low } else { b.op(Op::Bitcast, ty, &[low]) };
            b.op(op, Type::F64, &[low])
        }
        Kind::Lanes(op, kind, cluster) => {
            // Lanes whose number has a bit in common with the group do not run.
            let shared = b.op(Op::And, Type::I32, &[group, local]);
            let four = b.i32(4);
            let bit = b.op(Op::And, Type::I32, &[shared, four]);
            let zero = b.i32(0);
            let runs = b.op(Op::Ieq, Type::I32, &[bit, zero]);
            let (inside, end) = (b.func.add_block(), b.func.add_block());
            b.branch(runs, inside, end);
            b.block = end;
            b.ret();
            b.block = inside;
            b.op_imm(Op::Reduce, Type::F64, Imm::Reduce(ReduceImm { op, kind, cluster }), &v[..1])
        }
        Kind::Select => {
            let less = b.op(Op::Flt, Type::F64, &v[..2]);
            b.select(less, v[1], v[2])
        }
    };
    let out = match b.func.ty(out) {
        Type::F64 | Type::I64 => out,
        Type::Bool => b.op(Op::Zext, Type::I64, &[out]),
        ty if ty.is_float() => {
            let int = Type::int(ty.bits()).unwrap();
            let bits = b.op(Op::Bitcast, int, &[out]);
            b.op(Op::Zext, Type::I64, &[bits])
        }
        _ => b.op(Op::Zext, Type::I64, &[out]),
    };
    let base = b.resource_addr(Res(1), Space::Storage, None);
    let at = b.lea(base, Some(n), 8, 0);
    let ty = b.func.ty(out);
    b.store(ty, MemImm { count: 1, ..mem }, at, &[out]);
    b.ret();
    verify::verify(&m).unwrap_or_else(|e| panic!("{kind:?}: {e:?}"));
    m
}

fn results(m: &Module, operands: &[[u64; 3]]) -> Vec<u64> {
    let bytes: Vec<u8> = operands.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let inputs = Inputs::new([operands.len() as u32 / ITEMS, 1, 1]).buffer(0, 0, bytes).buffer(
        0,
        1,
        vec![0; operands.len() * 8],
    );
    let env = Environment::new(m, &inputs, Sizes::source()).unwrap();
    let r = run(m, &env, &Options { step_limit: u64::MAX, ..Options::source() }).unwrap();
    let out = env.buffer_contents(&r.memory)[1];
    out.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

#[test]
fn every_operation_is_exact() {
    let edges = edges();
    let mut operands = Vec::new();
    for &a in &edges {
        operands.extend(edges.iter().map(|&b| [a, b, edges[(a ^ b) as usize % edges.len()]]));
    }
    let seeds = std::env::var("KEMPE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20_000);
    operands.extend(random(seeds));
    while operands.len() % ITEMS as usize != 0 {
        operands.push([0; 3]);
    }
    for kind in kinds() {
        let source = module(kind);
        let mut soft = source.clone();
        assert_eq!(double::run(&mut soft, ITEMS), Ok(true));
        verify::verify(&soft).unwrap_or_else(|e| panic!("{kind:?}: {e:?}\n{}", text::print(&soft)));
        assert!(soft.func.values.iter().all(|(_, v)| v.ty != Type::F64), "{kind:?}");
        let (want, got) = (results(&source, &operands), results(&soft, &operands));
        for ((x, want), got) in operands.iter().zip(want).zip(got) {
            assert_eq!(got, want, "{kind:?} of {x:#018x?}: {got:#x}, not {want:#x}");
        }
    }
}

#[test]
fn what_has_no_software_is_named() {
    let mut m = module(Kind::Plain(Op::Fsin, 1));
    let error = double::run(&mut m, ITEMS).unwrap_err();
    assert_eq!(error.message, "`fsin` of 64-bit floats is not supported");
}
