//! Speed of the simulator in lane-instructions per second of CPU time: `cargo bench -p kempe --no-default-features --bench
//! simulator`. One instruction of one thread is sixteen of them, whatever it does and however many lanes it does it for.
//!
//! The programs are those that matter: arithmetic in a loop, memory in a loop, both in dual-issued instructions, and
//! generated programs as the compiler makes them.

use kempe::clock::thread_time;
use kempe_ir::exec::Memory;
use kempe_ir::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_v3d::asm::assemble;
use kempe_v3d::instr::Version;
use kempe_v3d::sim::{Dispatch, Options, Program, run};
use std::time::Duration;

const END: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n nop; nop; thrsw\n nop\n nop\n";

/// Text of a loop of 200 rounds around a body; rf10 is the word of the lane.
fn repeated(body: &str) -> String {
    format!(
        "eidx rf11; nop; ldunifrf.rf10\n shl rf11, rf11, 2\n add rf10, rf10, rf11\n itof rf12, rf11\n nop; mov rf13, 10\n \
         nop; mov rf14, 10\n nop; umul24 rf13, rf13, rf14\n add rf13, rf13, rf13\n and rf15, rf11, 0\n and rf16, rf11, 0\n \
         top: {body}\n sub.pushz rf13, rf13, 1\n b.na0 top\n nop\n nop\n nop\n tmuwt -\n {END}"
    )
}

fn measure(name: &str, version: Version, mut once: impl FnMut() -> u64) {
    once();
    let (mut instructions, start) = (0, thread_time());
    let elapsed = loop {
        instructions += once();
        let elapsed = thread_time() - start;
        if elapsed > Duration::from_millis(700) {
            break elapsed;
        }
    };
    let rate = 16.0 * instructions as f64 / elapsed.as_secs_f64() / 1e6;
    println!(
        "{name:<22} {}  {instructions:>10} instructions  {rate:>6.0} million lane-instructions/s",
        version.name()
    );
}

fn by_hand(name: &str, version: Version, body: &str) {
    let words = assemble(version, &repeated(body)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut memory = Memory::new();
    let base = memory.place("data", vec![0; 4096], true).expect("room");
    let program = Program::new(version, words, vec![base], 4, [16, 1, 1]);
    let mut dispatch = Dispatch::new([64, 1, 1]);
    dispatch.wgs_per_supergroup = 16;
    measure(name, version, || {
        let outcome = run(&program, &dispatch, &mut memory, &Options::default());
        outcome.result.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        outcome.instructions
    });
}

/// Generated programs, compiled and run as the command does it.
fn generated(version: Version) {
    let target = kempe::target(version.name()).expect("a target");
    let mut runs = Vec::new();
    for seed in 0..6 {
        let mut module = generate(seed, &Shape { operations: 300, ..Shape::from_seed(seed) });
        let groups = 8;
        let items = module.workgroup_items() * groups;
        let mut r = Random(seed);
        let mut words = |n: u32| (0..n).flat_map(|_| (r.bits() as u32).to_le_bytes()).collect::<Vec<u8>>();
        let inputs = kempe::exec::Inputs::new([groups, 1, 1])
            .buffer(0, 0, words(INPUT_WORDS))
            .buffer(0, 1, vec![0; (items * OUTPUT_WORDS * 4) as usize])
            .buffer(0, 2, vec![0; 64])
            .buffer(0, 3, words(16))
            .push(words(4));
        kempe_opt::optimise(&mut module, kempe_opt::Level::O2);
        let Ok(compiled) =
            target.compile(module, Default::default(), &Default::default(), Default::default())
        else {
            continue;
        };
        runs.push((compiled.artifact, inputs));
    }
    measure("generated programs", version, || {
        runs.iter()
            .map(|(artifact, inputs)| {
                let report = kempe::run::run_artifact(artifact, inputs, &Default::default());
                report.unwrap_or_else(|e| panic!("{e}")).instructions
            })
            .sum()
    });
}

fn main() {
    for version in Version::ALL {
        by_hand(
            "arithmetic",
            version,
            "fadd rf15, rf15, rf12\n nop; fmul rf16, rf15, rf12\n xor rf17, rf11, rf13\n shl rf18, rf17, 3\n max rf19, rf18, rf11\n \
             sub.pushn -, rf19, rf13\n add.ifa rf20, rf19, 1\n fmax rf21, rf15, rf16",
        );
        by_hand(
            "both parts",
            version,
            "add rf17, rf11, rf13; fmul rf16, rf11, rf13\n fadd rf15, rf16, rf12; mov rf18, rf12\n and rf19, rf18, rf17; umul24 rf20, rf17, rf18\n \
             fmin rf21, rf15, rf16; fmul rf22, rf15, rf16",
        );
        by_hand(
            "memory",
            version,
            "nop; mov tmua, rf10; thrsw\n add rf15, rf15, 1\n nop\n nop; nop; ldtmu.rf16\n add rf16, rf16, rf15\n nop; mov tmud, rf16\n \
             nop; mov tmua, rf10\n tmuwt -",
        );
        generated(version);
    }
}
