//! Checker B has no objection to what the compiler makes of random programs. `KEMPE_SEEDS=n` runs more of them.

use kempe_ir::generate::{Shape, generate};
use kempe_opt::Level;
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

#[test]
fn correct_code_passes() {
    let first = number("KEMPE_FIRST_SEED", 0);
    let mut made = 0;
    let mut objections = Vec::new();
    for seed in first..first + number("KEMPE_SEEDS", 60) {
        for version in Version::ALL {
            let mut m = generate(seed, &Shape::from_seed(seed));
            let mut choices = kempe_opt::Options::new([Level::O0, Level::O1, Level::O2][(seed % 3) as usize]);
            choices.vector_within_16 = version == Version::V42;
            kempe_opt::optimise_with(&mut m, &choices, &mut ());
            for round in 0..3u64 {
                let options = Options {
                    verify: true,
                    threads: [None, Some(4), Some(2)][((seed + round) % 3) as usize],
                    force_spill: round == 1,
                    max_registers: (round == 2).then_some(12 + (seed % 9) as u32),
                    ..Options::default()
                };
                match compile(m.clone(), version, &options, &mut ()) {
                    Ok(_) => made += 1,
                    Err(e) if !e.internal => {}
                    Err(e) if e.message.starts_with("the code does not do what") => {
                        objections.push(format!("seed {seed} {} {options:?}: {e}", version.name()));
                    }
                    Err(e) => panic!("seed {seed} {} {options:?}: {e}", version.name()),
                }
            }
        }
    }
    for o in &objections {
        println!("{o}");
    }
    assert!(made > 0 && objections.is_empty(), "{} of {made}: {objections:#?}", objections.len());
}

/// Two loops, one in the other, around many values that all begin as 0 and change places in every round: in the first
/// round over the loops every place may be any of them, and the parallel copies are exchanges.
fn many_equal_values(n: usize) -> String {
    let zeros = vec!["%1"; n].join(", ");
    let mut s = String::from(
        "module \"main\" compute\nworkgroup 64 1 1\n\
         resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"data\"\nfunc\n",
    );
    // Values are numbered by their names: accumulators of the outer loop, of the inner one, and their next values.
    let (outer, inner, next) = (100, 100 + n, 100 + 2 * n);
    let params = |from: usize| (0..n).map(|k| format!("%{}:i32", from + k)).collect::<Vec<_>>().join(", ");
    let args = |from: usize, shift: usize| {
        (0..n).map(|k| format!("%{}", from + (k + shift) % n)).collect::<Vec<_>>().join(", ")
    };
    s += "b0:\n  %0:i32 = builtin.i32 <lane_id>\n  %1:i32 = const.i32 <0>\n  %2:i32 = const.i32 <1>\n";
    s += "  %3:i32 = const.i32 <8>\n";
    s += &format!("  jump b1(%1, {zeros})\n");
    s += &format!("b1(%5:i32, {}):\n  %6:bool = slt.i32 %5, %3\n  branch %6, b2, b6\n", params(outer));
    s += &format!("b2:\n  jump b3(%1, {})\n", args(outer, 0));
    s += &format!("b3(%7:i32, {}):\n  %8:bool = slt.i32 %7, %3\n  branch %8, b4, b5\n", params(inner));
    s += "b4:\n";
    for k in 0..n {
        s += &format!("  %{}:i32 = iadd.i32 %{}, %0\n", next + k, inner + (k * 3 + 1) % n);
    }
    s += &format!("  %9:i32 = iadd.i32 %7, %2\n  jump b3(%9, {})\n", args(next, 0));
    s += &format!("b5:\n  %10:i32 = iadd.i32 %5, %2\n  jump b1(%10, {})\n", args(inner, 1));
    s += "b6:\n  %11:ptr.storage = resource_addr.ptr.storage <@0>\n  %13:ptr.storage = lea.ptr.storage <scale 4 offset 0> %11, %0\n";
    for k in 0..n {
        s += &format!("  store.i32 <storage x1 align 4> %13, %{}\n", outer + k);
    }
    s + "  return\n"
}

#[test]
fn loops_that_begin_with_the_same_value_everywhere() {
    for n in [6, 24, 40] {
        let m = kempe_ir::text::parse(&many_equal_values(n)).unwrap_or_else(|e| panic!("{e:?}"));
        for version in Version::ALL {
            for max_registers in [None, Some(14), Some(22)] {
                let options = Options { verify: true, max_registers, ..Options::default() };
                if let Err(e) = compile(m.clone(), version, &options, &mut ()) {
                    panic!("{n} values, {} {max_registers:?}: {e}", version.name());
                }
            }
        }
    }
}

/// A variable of the loop equals a value outside of it in every round, and both are asked whether they are zero: the one
/// question is named as the inversion of what the value was chosen by, the other one by its own name.
const ONE_QUESTION_TWO_NAMES: &str = "module \"main\" vertex\nworkgroup 1 1 1\n\
    resource @0 storage set 0 binding 1 elements 1 size 0 stride 4 \"output\"\nfunc\n\
    b0:\n  %0:i32 = const.i32 <0>\n  %3:f32 = input.f32 <location 0 component 1>\n  \
    %4:i32 = builtin.i32 <instance_index>\n  %5:ptr.storage = resource_addr.ptr.storage <@0>\n  \
    %6:bool = feq.f32 %3, %3\n  jump b1(%6)\n\
    b1(%7:bool):\n  %8:i32 = const.i32 <1>\n  %9:bool = slt.i32 %8, %4\n  branch %9, b1(%6), b2\n\
    b2:\n  %10:i32 = const.i32 <1>\n  %11:i32 = const.i32 <0>\n  %12:i32 = select.i32 %6, %10, %11\n  \
    %15:i32 = select.i32 %7, %10, %11\n  store.i32 <storage x4 align 4> %5, %0, %0, %0, %15\n  \
    %16:ptr.storage = lea.ptr.storage <scale 1 offset 28> %5\n  store.i32 <storage x1 align 4> %16, %12\n  return\n";

/// Behind a loop whose variable begins as a value that lives on there is another loop. While the first one has been walked
/// once, the two are equal; what is seen then of the way round the second loop is not all that holds later.
const A_LOOP_BEHIND_A_LOOP: &str = "module \"main\" vertex\nworkgroup 1 1 1\n\
    resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 readonly \"input\"\n\
    resource @1 storage set 0 binding 1 elements 1 size 0 stride 4 \"output\"\n\
    resource @2 uniform set 0 binding 3 elements 1 size 64 stride 0 readonly \"block\"\n\
    resource @3 push set 0 binding 0 elements 1 size 16 stride 0 readonly \"push\"\nfunc\n\
    b0:\n  %0:i32 = const.i32 <0>\n  %2:bool = const.bool <0>\n  %4:f32 = const.f32 <0>\n  \
    %7:i32 = input.i32 <location 15 component 3 flat>\n  %8:ptr.push = resource_addr.ptr.push <@3>\n  \
    %9:i32 = load.i32 <push x1 align 4 readonly> %8\n  %12:ptr.storage = resource_addr.ptr.storage <@1>\n  \
    %15:ptr.uniform = resource_addr.ptr.uniform <@2>\n  %16:i32 = load.i32 <uniform x1 align 4 readonly> %15\n  \
    %17:i8 = trunc.i8 %9\n  %18:i8 = trunc.i8 %16\n  %19:bool = ieq.i8 %17, %18\n  jump b1(%19)\n\
    b1(%20:bool):\n  %21:bool = slt.i32 %0, %9\n  branch %21, b2, b3\n\
    b2:\n  jump b1(%2)\n\
    b3:\n  %22:i32 = select.i32 %19, %7, %0\n  %23:ptr.storage = resource_addr.ptr.storage <@0>\n  \
    %24:f32 = load.f32 <storage x1 align 4 readonly> %23\n  %25:f32 = select.f32 %20, %4, %24\n  \
    %27:bool = ine.i32 %9, %0\n  branch %27, b4, b5\n\
    b4:\n  jump b6(%4)\n\
    b5:\n  output.f32 <position component 0> %24\n  jump b6(%25)\n\
    b6(%28:f32):\n  jump b7(%0)\n\
    b7(%30:i32):\n  %31:bool = slt.i32 %30, %7\n  branch %31, b8, b9\n\
    b8:\n  %32:i32 = const.i32 <1>\n  %33:i32 = iadd.i32 %30, %32\n  jump b7(%33)\n\
    b9:\n  %35:ptr.storage = lea.ptr.storage <scale 4 offset 0> %23, %22\n  \
    %36:f32 = load.f32 <storage x1 align 4 readonly> %35\n  output.f32 <position component 1> %36\n  \
    %37:i32 = bitcast.i32 %24\n  %38:i32 = bitcast.i32 %28\n  store.i32 <storage x4 align 4> %12, %0, %0, %37, %38\n  return\n";

/// What checker B once objected to, made small: every version, level and limit.
#[test]
fn code_that_was_objected_to() {
    for text in [
        ONE_QUESTION_TWO_NAMES,
        A_LOOP_BEHIND_A_LOOP,
        include_str!("objections/choice_in_a_choice.kir"),
        include_str!("objections/undefined_round_the_loops.kir"),
        include_str!("objections/exchange_over_a_branch.kir"),
        include_str!("objections/two_exchanges_over_a_branch.kir"),
        include_str!("objections/question_asked_twice.kir"),
    ] {
        let m = kempe_ir::text::parse(text).unwrap_or_else(|e| panic!("{e:?}"));
        for (version, level) in
            Version::ALL.into_iter().flat_map(|v| [Level::O0, Level::O1, Level::O2].map(|l| (v, l)))
        {
            let mut m = m.clone();
            let mut choices = kempe_opt::Options::new(level);
            choices.vector_within_16 = version == Version::V42;
            kempe_opt::optimise_with(&mut m, &choices, &mut ());
            let limits = [None, Some(12), Some(16)].map(|limit| (limit, None));
            for (max_registers, threads) in limits.into_iter().chain([(None, Some(4)), (Some(21), Some(4))]) {
                for force_spill in [false, true] {
                    let options =
                        Options { verify: true, max_registers, threads, force_spill, ..Options::default() };
                    match compile(m.clone(), version, &options, &mut ()) {
                        Err(e) if e.internal || !(force_spill || max_registers.is_some()) => {
                            panic!("{} {level:?} {max_registers:?} {threads:?}: {e}\n{text}", version.name());
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
