//! The whole road behind the front end: random programs, compiled in every configuration and run on the simulator,
//! compute what the interpreter says of the module in source form.
//!
//! `KEMPE_SEEDS=n` and `KEMPE_FIRST_SEED=n` choose the programs.

mod common;

use common::simulate;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_ir::{Module, interp, text};
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;

fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("KEMPE_FIRST_SEED").unwrap_or(0);
    first..first + number("KEMPE_SEEDS").unwrap_or(default)
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
        .push(words(4))
}

#[test]
fn random_programs_on_the_simulator() {
    let mut compiled = 0;
    let mut refused: Vec<(String, u64)> = Vec::new();
    for seed in seeds(40) {
        let shape = Shape { approximate: false, ..Shape::from_seed(seed) };
        let source = generate(seed, &shape);
        let inputs = inputs(&source, seed);
        let env = Environment::new(&source, &inputs, Sizes::source()).unwrap();
        let expected = interp::run(&source, &env, &interp::Options::source()).unwrap();
        let expected = env.buffer_contents(&expected.memory);
        let levels = [kempe_opt::Level::O0, kempe_opt::Level::O1, kempe_opt::Level::O2];
        let mut m = source.clone();
        kempe_opt::optimise(&mut m, levels[seed as usize % 3]);
        for version in Version::ALL {
            for (threads, force_spill) in [(Some(4), false), (Some(2), false), (None, false), (None, true)] {
                let options = Options { threads, force_spill, ..Options::default() };
                let what = format!("seed {seed}, {}, {options:?}", version.name());
                let artifact = match compile(m.clone(), version, &options, &mut ()) {
                    Ok(a) => a,
                    Err(e) if !e.internal => {
                        let reason = e.message.split(':').next().unwrap_or_default();
                        let reason: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
                        match refused.iter_mut().find(|r| r.0 == reason) {
                            Some(r) => r.1 += 1,
                            None => refused.push((reason, 1)),
                        }
                        continue;
                    }
                    Err(e) => panic!("{what}: {e}\n{}", text::print(&m)),
                };
                let got = simulate(&source, &artifact, version, &inputs)
                    .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(&m)));
                assert!(got.buffers == expected, "{what}: the results differ\n{}", text::print(&m));
                compiled += 1;
            }
        }
    }
    println!("{compiled} compiled; refused: {refused:?}");
    let failures: u64 = refused.iter().map(|r| r.1).sum();
    assert!(compiled > 0 && failures * 20 <= compiled, "{compiled} compiled, but {refused:?}");
}
