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
