//! Random programs: every pass, and the whole pipeline, leaves what the verifier accepts.

use kempe_ir::generate::{Shape, generate};
use kempe_opt::{Level, optimise};

fn seeds() -> std::ops::Range<u64> {
    let n = std::env::var("KEMPE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    0..n
}

/// The pipeline and `run_named` call the verifier after every pass in debug builds.
#[test]
fn every_level_verifies() {
    for seed in seeds() {
        let m = generate(seed, &Shape::from_seed(seed));
        for level in [Level::O0, Level::O1, Level::O2] {
            let mut m = m.clone();
            optimise(&mut m, level);
            kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("seed {seed}: {e:#?}"));
        }
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    for seed in seeds().step_by(7) {
        let m = generate(seed, &Shape::from_seed(seed));
        let (mut a, mut b) = (m.clone(), m);
        optimise(&mut a, Level::O2);
        optimise(&mut b, Level::O2);
        assert!(kempe_ir::text::print(&a) == kempe_ir::text::print(&b), "seed {seed}");
    }
}
