//! Small programs with results worked out by hand, and random programs that must not depend on how lanes are walked.

use super::*;
use crate::analysis::Cfg;
use crate::divergence;
use crate::exec::{Inputs, Sizes};
use crate::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use crate::inputs::Random;
use crate::text::parse;

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn module(head: &str, body: &str) -> Module {
    let text = format!(
        "module \"t\" compute\n{head}resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"out\"\nresource @1 push set 0 binding 0 elements 1 size 8 stride 0 \"push\"\nfunc\n{body}"
    );
    let m = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:?}"));
    m
}

fn try_run(m: &Module, groups: [u32; 3], out: &[u32], options: &Options) -> Result<Outcome, Stop> {
    let inputs = Inputs::new(groups).buffer(0, 0, bytes(out)).push(bytes(&[7, 9]));
    let env = Environment::new(m, &inputs, Sizes::source()).unwrap();
    let mut r = run(m, &env, options)?;
    // The buffers alone, so that results can be compared.
    let out = env.buffer_contents(&r.memory)[0].to_vec();
    r.memory = Memory::new();
    r.memory.place("out", out, true).unwrap();
    Ok(r)
}

fn result(m: &Module, groups: [u32; 3], out: &[u32]) -> Vec<u32> {
    let r = try_run(m, groups, out, &Options::source()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.undefined, []);
    words(r.memory.bytes(0))
}

/// Address of the invocation's own word of the output: `%2`, and its index `%0`.
const OWN: &str = "b0:
  %0:i32 = builtin.i32 <local_invocation_index>
  %1:ptr.storage = resource_addr.ptr.storage <@0>
  %2:ptr.storage = lea.ptr.storage <scale 4 offset 0> %1, %0
";

#[test]
fn lanes_go_round_different_numbers_of_times() {
    // Sum of 0..=index.
    let m = module(
        "workgroup 20 1 1\n",
        &format!(
            "{OWN}  %3:i32 = const.i32 <0>
  %4:i32 = const.i32 <1>
  jump b1(%3, %3)
b1(%5:i32, %6:i32):
  %7:i32 = iadd.i32 %6, %5
  %8:i32 = iadd.i32 %5, %4
  %9:bool = ule.i32 %8, %0
  branch %9, b1(%8, %7), b2
b2:
  store.i32 <storage x1 align 4> %2, %7
  return
"
        ),
    );
    let expect: Vec<u32> = (0..20).map(|i| i * (i + 1) / 2).collect();
    assert_eq!(result(&m, [1, 1, 1], &[0; 20]), expect);
}

#[test]
fn edges_swap_in_parallel() {
    let m = module(
        "",
        &format!(
            "{OWN}  %3:i32 = const.i32 <3>
  %4:i32 = const.i32 <4>
  %5:i32 = const.i32 <0>
  %6:i32 = const.i32 <1>
  jump b1(%3, %4, %5)
b1(%7:i32, %8:i32, %9:i32):
  %10:i32 = iadd.i32 %9, %6
  %11:bool = ult.i32 %10, %4
  branch %11, b1(%8, %7, %10), b2
b2:
  %12:i32 = const.i32 <10>
  %13:i32 = imul.i32 %7, %12
  %14:i32 = iadd.i32 %13, %8
  store.i32 <storage x1 align 4> %2, %14
  return
"
        ),
    );
    // Three swaps.
    assert_eq!(result(&m, [1, 1, 1], &[0]), [43]);
}

#[test]
fn builtins_and_push_constants() {
    let m = module(
        "workgroup 2 3 1\n",
        "b0:
  %0:i32 = builtin.i32 <local_invocation_id 0>
  %1:i32 = builtin.i32 <local_invocation_id 1>
  %2:i32 = builtin.i32 <workgroup_id 0>
  %3:i32 = builtin.i32 <workgroup_id 1>
  %4:i32 = builtin.i32 <num_workgroups 0>
  %5:i32 = builtin.i32 <local_invocation_index>
  %6:ptr.push = resource_addr.ptr.push <@1>
  %7:i32, %8:i32 = load.i32 <push x2 align 4> %6
  %9:i32 = uniform.i32 <push_word 4>
  %10:i32 = imul.i32 %3, %4
  %11:i32 = iadd.i32 %10, %2
  %12:i32 = const.i32 <6>
  %13:i32 = imul.i32 %11, %12
  %14:i32 = iadd.i32 %13, %5
  %15:i32 = const.i32 <4>
  %16:i32 = shl.i32 %0, %15
  %17:i32 = or.i32 %16, %1
  %18:i32 = const.i32 <8>
  %19:i32 = shl.i32 %8, %18
  %20:i32 = or.i32 %17, %19
  %21:i32 = isub.i32 %9, %8
  %22:i32 = or.i32 %20, %21
  %23:ptr.storage = resource_addr.ptr.storage <@0>
  %24:ptr.storage = lea.ptr.storage <scale 4 offset 0> %23, %14
  store.i32 <storage x1 align 4> %24, %22
  return
",
    );
    let one = [0x900, 0x910, 0x901, 0x911, 0x902, 0x912];
    assert_eq!(result(&m, [2, 2, 1], &[0; 24]), one.repeat(4));
}

const REVERSE: &str = "  %3:ptr.shared = var_addr.ptr.shared <$0>
  %4:ptr.shared = lea.ptr.shared <scale 4 offset 0> %3, %0
  store.i32 <shared x1 align 4> %4, %0
  barrier.i32 <shared>
  %5:i32 = const.i32 <39>
  %6:i32 = isub.i32 %5, %0
  %7:ptr.shared = lea.ptr.shared <scale 4 offset 0> %3, %6
  %8:i32 = load.i32 <shared x1 align 4> %7
  store.i32 <storage x1 align 4> %2, %8
  return
";

#[test]
fn barriers_order_shared_memory() {
    let m = module(
        "workgroup 40 1 1\nvar $0 shared size 160 align 4 \"s\"\n",
        &format!("{OWN}{REVERSE}").replace("var_addr", "var_addr"),
    );
    let expect: Vec<u32> = (0..40).rev().collect();
    assert_eq!(result(&m, [1, 1, 1], &[0; 40]), expect);
    // Without the barrier the first subgroup reads what was not written yet.
    let text = format!("{OWN}{REVERSE}").replace("  barrier.i32 <shared>\n", "");
    let m = module("workgroup 40 1 1\nvar $0 shared size 160 align 4 \"s\"\n", &text);
    let r = try_run(&m, [1, 1, 1], &[0; 40], &Options::source()).unwrap();
    assert!(matches!(r.undefined[..], [UndefinedUse::Data(_)]), "{:?}", r.undefined);
}

#[test]
fn barriers_that_not_all_reach() {
    let body = |at: &str| {
        format!(
            "{OWN}  %3:i32 = const.i32 <{at}>
  %4:bool = ult.i32 %0, %3
  branch %4, b1, b2
b1:
  barrier.i32 <shared>
  jump b2
b2:
  return
"
        )
    };
    let m = module("workgroup 32 1 1\n", &body("5"));
    let stop = try_run(&m, [1, 1, 1], &[0; 32], &Options::source()).unwrap_err();
    assert!(matches!(stop, Stop::DivergentBarrier { .. }), "{stop}");
    let m = module("workgroup 32 1 1\n", &body("16"));
    let stop = try_run(&m, [1, 1, 1], &[0; 32], &Options::source()).unwrap_err();
    assert_eq!(stop, Stop::Deadlock { waiting: 1, ended: 1 });
    let m = module("workgroup 32 1 1\n", &body("32"));
    try_run(&m, [1, 1, 1], &[0; 32], &Options::source()).unwrap();
}

#[test]
fn private_arrays_are_of_their_lane() {
    let m = module(
        "workgroup 16 1 1\nvar $0 private size 64 align 4 \"a\"\n",
        &format!(
            "{OWN}  %3:ptr.private = var_addr.ptr.private <$0>
  %4:i32 = const.i32 <15>
  %5:i32 = isub.i32 %4, %0
  %6:ptr.private = lea.ptr.private <scale 4 offset 0> %3, %5
  store.i32 <private x1 align 4> %6, %0
  %7:i32 = load.i32 <private x1 align 4> %6
  store.i32 <storage x1 align 4> %2, %7
  return
"
        ),
    );
    assert_eq!(result(&m, [1, 1, 1], &[0; 16]), (0..16).collect::<Vec<u32>>());
}

#[test]
fn faults_name_the_place() {
    let body = |scale: u32, offset: i32| {
        format!(
            "b0:
  %0:i32 = builtin.i32 <local_invocation_index>
  %1:ptr.storage = resource_addr.ptr.storage <@0>
  %2:ptr.storage = lea.ptr.storage <scale {scale} offset {offset}> %1, %0
  store.i32 <storage x1 align 4> %2, %0
  return
"
        )
    };
    let m = module("workgroup 16 1 1\n", &body(4, 0));
    let stop = try_run(&m, [1, 1, 1], &[0; 12], &Options::source()).unwrap_err();
    let Stop::Fault { fault, inst, lane } = &stop else { panic!("{stop}") };
    assert_eq!((inst.0, lane.local_index), (3, 12));
    assert_eq!(fault.nearest, Some(("out".to_owned(), 48, 48)));
    assert_eq!(
        stop.to_string().split(" at 0x").next(),
        Some("i3, invocation 12 of work-group 0,0,0: write of 4 bytes")
    );
    let m = module("workgroup 16 1 1\n", &body(2, 0));
    let stop = try_run(&m, [1, 1, 1], &[0; 16], &Options::source()).unwrap_err();
    assert!(matches!(stop, Stop::Misaligned { align: 4, .. }), "{stop}");
    // Derived from `out`, so it must stay there even where something else is mapped.
    let m = module("workgroup 1 1 1\n", &body(4, -(1 << 24) - 256));
    assert!(matches!(try_run(&m, [1, 1, 1], &[0; 16], &Options::source()).unwrap_err(), Stop::Fault { .. }));
}

#[test]
fn atomics_take_turns() {
    let m = module(
        "workgroup 48 1 1\n",
        &format!(
            "{OWN}  %3:i32 = atomic.i32 <add storage> %1, %0
  %4:i32 = const.i32 <0>
  %5:i32 = const.i32 <1>
  %6:ptr.storage = lea.ptr.storage <scale 4 offset 4> %1
  %7:i32 = atomic.i32 <umax storage> %6, %0
  %8:ptr.storage = lea.ptr.storage <scale 4 offset 8> %1
  %9:i32 = atomic.i32 <compare_exchange storage> %8, %4, %5
  %10:bool = ieq.i32 %9, %4
  branch %10, b1, b2
b1:
  %11:ptr.storage = lea.ptr.storage <scale 4 offset 12> %1
  %12:i32 = atomic.i32 <add storage> %11, %5
  jump b2
b2:
  return
"
        ),
    );
    assert_eq!(result(&m, [2, 1, 1], &[0; 4]), [2 * 47 * 24, 47, 1, 1]);
}

#[test]
fn subgroup_operations_see_the_active_lanes() {
    // Odd lanes only: ballot, first, sum, exclusive sum, one elected lane.
    let body = format!(
        "{OWN}  %3:i32 = const.i32 <1>
  %4:i32 = and.i32 %0, %3
  %5:i32 = const.i32 <0>
  %6:bool = ine.i32 %4, %5
  branch %6, b1, b2(%5)
b1:
  %7:bool = ult.i32 %5, %3
  %8:i32 = ballot.i32 %7
  %9:i32 = broadcast_first.i32 %0
  %10:i32 = reduce.i32 <iadd reduce cluster 0> %0
  %11:i32 = reduce.i32 <iadd exclusive cluster 0> %0
  %12:bool = elect.bool
  %13:i32 = zext.i32 %12
  %14:i32 = const.i32 <8>
  %15:i32 = shl.i32 %10, %14
  %16:i32 = or.i32 %15, %11
  %17:i32 = const.i32 <16>
  %18:i32 = shl.i32 %8, %17
  %19:i32 = or.i32 %16, %18
  %20:i32 = const.i32 <31>
  %21:i32 = shl.i32 %13, %20
  %22:i32 = xor.i32 %19, %21
  jump b2(%22)
b2(%23:i32):
  store.i32 <storage x1 align 4> %2, %23
  return
"
    );
    let m = module("workgroup 8 1 1\nsubgroups\n", &body);
    let e = |x: u32| 0x00aa_0000 | 16 << 8 | x;
    assert_eq!(result(&m, [1, 1, 1], &[0; 8]), [0, e(0) ^ 1 << 31, 0, e(1), 0, e(4), 0, e(9)]);
    // In subgroups of four.
    let options = Options { form: Form::Source { subgroup_size: 4 }, ..Options::source() };
    let r = try_run(&m, [1, 1, 1], &[0; 8], &options).unwrap();
    let e = |sum: u32, x: u32| 0x000a_0000 | sum << 8 | x;
    assert_eq!(
        words(r.memory.bytes(0)),
        [0, e(4, 0) ^ 1 << 31, 0, e(4, 1), 0, e(12, 0) ^ 1 << 31, 0, e(12, 5)]
    );
}

#[test]
fn undefined_data_is_followed() {
    let m = module(
        "workgroup 1 1 1\nvar $0 private size 8 align 4 \"p\"\n",
        &format!(
            "{OWN}  %3:i32 = undef.i32
  %4:i32 = const.i32 <0>
  %5:i32 = and.i32 %3, %4
  store.i32 <storage x1 align 4> %2, %5
  %6:ptr.private = var_addr.ptr.private <$0>
  store.i32 <private x1 align 4> %6, %3
  %7:i32 = load.i32 <private x1 align 4> %6
  %8:bool = ieq.i32 %7, %4
  %9:bool = ieq.i32 %4, %4
  %10:bool = select.bool %9, %9, %8
  branch %10, b1, b2
b1:
  branch %8, b2, b3
b2:
  return
b3:
  return
"
        ),
    );
    let r = try_run(&m, [1, 1, 1], &[5], &Options::source()).unwrap();
    assert_eq!(r.undefined, [UndefinedUse::Branch(crate::Block(1))]);
    assert_eq!(r.coverage(&m), (13, 13));
}

#[test]
fn endless_loops_are_stopped() {
    let m = module("", "b0:\n  jump b1\nb1:\n  jump b1\n");
    let options = Options { step_limit: 1000, ..Options::source() };
    assert_eq!(try_run(&m, [1, 1, 1], &[0], &options).unwrap_err(), Stop::StepLimit(1000));
    let m = module("", "b0:\n  unreachable\n");
    assert!(matches!(
        try_run(&m, [1, 1, 1], &[0], &Options::source()).unwrap_err(),
        Stop::Unreachable { .. }
    ));
}

/// Payload words that show where a lane runs.
struct Shown;

impl StartState for Shown {
    fn payload(&self, number: u32, lane: &LaneContext) -> u32 {
        match number {
            0 => lane.group[0] | lane.wg_in_memory << 8 | lane.local_index << 16,
            _ => 0,
        }
    }

    fn thread_id(&self, batch: u32) -> u32 {
        batch * 2
    }
}

#[test]
fn the_machine_form_packs_workgroups_into_batches() {
    // Five work-groups of six items, three in a supergroup. Each writes its payload to its own place.
    let m = module(
        "workgroup 6 1 1\n",
        "b0:
  %0:i32 = payload.i32 <0>
  %1:i32 = uniform.i32 <buffer_addr @0 0>
  %2:i32 = builtin.i32 <lane_id>
  %3:i32 = builtin.i32 <thread_id>
  %4:i32 = const.i32 <16>
  %5:i32 = lshr.i32 %0, %4
  %6:i32 = const.i32 <255>
  %7:i32 = and.i32 %0, %6
  %8:i32 = const.i32 <6>
  %9:i32 = imul.i32 %7, %8
  %10:i32 = iadd.i32 %9, %5
  %11:i32 = const.i32 <2>
  %12:i32 = shl.i32 %10, %11
  %13:i32 = iadd.i32 %1, %12
  %14:i32 = const.i32 <8>
  %15:i32 = shl.i32 %2, %14
  %16:i32 = or.i32 %15, %3
  %17:i32 = lshr.i32 %0, %14
  %18:i32 = and.i32 %17, %6
  %19:i32 = shl.i32 %18, %4
  %20:i32 = or.i32 %16, %19
  store.i32 <storage x1 align 4> %13, %20
  return
",
    );
    let inputs = Inputs::new([5, 1, 1]).buffer(0, 0, vec![0; 120]);
    let sizes = Sizes { wgs_per_supergroup: 3, scratch_bytes_per_thread: 0, threads: 0 };
    let env = Environment::new(&m, &inputs, sizes).unwrap();
    let r = run(&m, &env, &Options::machine(&Shown)).unwrap();
    let got = words(env.buffer_contents(&r.memory)[0]);
    let expect: Vec<u32> = (0..30)
        .map(|item| {
            let (wg, in_super) = (item / 6, item % 18);
            ((in_super % 16) << 8) | (in_super / 16 * 2) | ((wg % 3) << 16)
        })
        .collect();
    assert_eq!(got, expect);
}

fn random_inputs(m: &Module, seed: u64, groups: u32) -> Inputs {
    let mut r = Random(seed);
    let mut random = |n: u32| bytes(&(0..n).map(|_| r.bits() as u32).collect::<Vec<_>>());
    let items = m.workgroup_items() * groups;
    Inputs::new([groups, 1, 1])
        .buffer(0, 0, random(INPUT_WORDS))
        .buffer(0, 1, vec![0; (items * OUTPUT_WORDS * 4) as usize])
        .buffer(0, 2, vec![0; 64])
        .buffer(0, 3, random(16))
        .push(random(4))
}

/// Random programs give the same results in subgroups of 16, 8 and 1, as machine batches, and when values that the
/// divergence analysis calls uniform are shared by all lanes.
#[test]
fn random_programs_do_not_depend_on_the_walk() {
    let mut uniform = 0;
    let mut undecided = 0;
    let mut all = 0;
    for seed in 0..250 {
        let m = generate(seed, &Shape::from_seed(seed));
        let inputs = random_inputs(&m, seed, 3);
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        let program = Program::new(&m).unwrap();
        let base = program.run(&env, &Options::source()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(base.undefined, [], "seed {seed}");
        for subgroup_size in [8, 1] {
            let options = Options { form: Form::Source { subgroup_size }, ..Options::source() };
            let r = program.run(&env, &options).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(
                env.buffer_contents(&r.memory),
                env.buffer_contents(&base.memory),
                "seed {seed}, size {subgroup_size}"
            );
        }
        // The generator promises programs without races.
        match program.run(&env, &Options { bounds: true, races: true, ..Options::source() }) {
            Ok(r) => {
                assert_eq!(r.race, None, "seed {seed}");
                assert_eq!(env.buffer_contents(&r.memory), env.buffer_contents(&base.memory));
            }
            Err(Stop::Undecided(_)) => undecided += 1,
            Err(e) => panic!("seed {seed}: {e}"),
        }
        let cfg = Cfg::new(&m.func);
        let options = divergence::Options { one_workgroup_per_batch: true, uniform_payload: vec![] };
        let d = Divergence::new(&m.func, &cfg, &options);
        let r = program
            .run(&env, &Options { broadcast: Some(&d), ..Options::source() })
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", crate::text::print(&m)));
        assert_eq!(
            env.buffer_contents(&r.memory),
            env.buffer_contents(&base.memory),
            "seed {seed}, shared uniform values"
        );
        all += m.func.values.len();
        uniform += m.func.values.keys().filter(|&v| d.is_uniform(v)).count();
    }
    assert!(undecided < 200, "{undecided}");
    assert!(uniform * 10 > all, "{uniform} of {all} values are uniform");
}

/// Printing and parsing keeps what a program means and prints the same again.
#[test]
fn random_programs_survive_the_text_form() {
    for seed in 0..150 {
        let m = generate(seed, &Shape::from_seed(seed));
        let text = crate::text::print(&m);
        let again = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(crate::text::print(&again), text, "seed {seed}");
        crate::verify::verify(&again).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let inputs = random_inputs(&m, seed, 1);
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        let a = run(&m, &env, &Options::source()).unwrap();
        let b = run(&again, &env, &Options::source()).unwrap();
        assert_eq!(a.memory, b.memory, "seed {seed}");
    }
}

#[test]
fn bounds_follow_values_into_memory() {
    // out[i] = i / 3, out[16 + i] = i + 1 (as floats), then a branch on i / 3 < 2 or on i < 2.
    let body = |cond: &str| {
        format!(
            "{OWN}  %3:f32 = uitof.f32 %0
  %4:f32 = const.f32 <0x40400000>
  %5:f32 = fdiv.f32 %3, %4
  store.f32 <storage x1 align 4> %2, %5
  %6:f32 = const.f32 <0x3f800000>
  %7:f32 = fadd.f32 %3, %6
  %8:ptr.storage = lea.ptr.storage <scale 4 offset 64> %2
  store.f32 <storage x1 align 4> %8, %7
  %9:f32 = const.f32 <0x40000000>
  %10:bool = flt.f32 {cond}, %9
  branch %10, b1, b2
b1:
  jump b2
b2:
  return
"
        )
    };
    let options = Options { bounds: true, ..Options::source() };
    let run_it = |cond: &str| {
        let m = module("workgroup 16 1 1\n", &body(cond));
        let inputs = Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 128]);
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        run(&m, &env, &options).map(|r| {
            let region = r.memory.region_at(env.buffers[0].base).unwrap();
            r.pieces[region].iter().collect::<Vec<_>>()
        })
    };
    let pieces = run_it("%3").unwrap();
    // The quotients, 0 / 3 within flushed denormals; all sums are exact.
    assert_eq!(pieces.len(), 16);
    assert_eq!(pieces[3], (12, 4, Shadow::Float(3.0 * 2f64.powi(-23))));
    // 6 / 3 < 2 may come out either way.
    assert_eq!(run_it("%5").unwrap_err(), Stop::Undecided(UndefinedUse::Branch(crate::Block(0))));
}
