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
    // Objections to right code, where facts about spilled values are lost (docs/limits.md).
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
    assert!(made > 0 && objections.len() * 100 <= made, "{} of {made}: {objections:#?}", objections.len());
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
