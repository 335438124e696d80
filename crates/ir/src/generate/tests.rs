//! What the generator promises.

use super::*;
use crate::analysis::Cfg;
use crate::divergence::{self, Divergence};
use crate::exec::{Environment, Sizes};
use crate::interp;

fn operations(m: &Module) -> usize {
    m.func
        .layout
        .iter()
        .flat_map(|&b| &m.func.blocks[b].insts)
        .filter(|&&i| m.func.insts[i].op != Op::Const)
        .count()
}

#[test]
fn generated_programs_are_well_formed() {
    let mut sizes = Vec::new();
    let mut divergent = 0;
    const SEEDS: u64 = 400;
    for seed in 0..SEEDS {
        let m = generate(seed, &Shape::from_seed(seed));
        if let Err(e) = crate::verify::verify(&m) {
            panic!("seed {seed}: {e:#?}");
        }
        sizes.push(operations(&m));
        let cfg = Cfg::new(&m.func);
        let options = divergence::Options { one_workgroup_per_batch: true, uniform_payload: vec![] };
        let d = Divergence::new(&m.func, &cfg, &options);
        divergent += (0..cfg.loops.len()).any(|l| d.loop_kind(l).divergent) as u64;
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    println!("{SEEDS} programs: median {median} operations, {divergent} with divergent loops");
    assert!(median >= 150, "median of {median} operations");
    assert!(divergent * 2 >= SEEDS, "only {divergent} of {SEEDS} programs have divergent loops");
}

/// They end, stay inside their buffers, read nothing undefined and have no races.
#[test]
fn generated_programs_are_well_behaved() {
    for seed in 0..150 {
        let shape = Shape::from_seed(seed);
        let m = generate(seed, &shape);
        let inputs = inputs(seed, 2, &shape);
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        let options = interp::Options { races: true, ..interp::Options::source() };
        let r = interp::run(&m, &env, &options).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(r.race, None, "seed {seed}");
        assert!(r.undefined.is_empty(), "seed {seed}: {:?}", r.undefined);
    }
}
