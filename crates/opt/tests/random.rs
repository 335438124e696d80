//! Random programs: every pass, and every level of the pipeline, leaves what the verifier accepts and what computes the
//! same as before. `KEMPE_SEEDS=n` runs more of them.

use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_ir::interp::{Options, run};
use kempe_ir::{Module, text, verify};
use kempe_opt::pipeline::PASSES;
use kempe_opt::{Level, optimise, run_named};

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("KEMPE_FIRST_SEED").unwrap_or(0);
    first..first + number("KEMPE_SEEDS").unwrap_or(80)
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

/// What a program leaves in its buffers, and how many instructions it took.
fn outcome(m: &Module, inputs: &Inputs, what: &str) -> (Vec<Vec<u8>>, u64) {
    let env = Environment::new(m, inputs, Sizes::source()).unwrap();
    let r = run(m, &env, &Options::source()).unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(m)));
    assert!(r.undefined.is_empty(), "{what}: undefined {:?}\n{}", r.undefined, text::print(m));
    (env.buffer_contents(&r.memory).into_iter().map(|b| b.to_vec()).collect(), r.steps)
}

fn check(m: &Module, what: &str) {
    if let Err(e) = verify::verify(m) {
        panic!("{what}: {e:#?}\n{}", text::print(m));
    }
}

#[test]
fn every_pass_keeps_the_meaning() {
    // Number of runs in which a pass changed something: a test of passes that do nothing says nothing.
    let mut changes: std::collections::BTreeMap<&str, u32> = Default::default();
    for seed in seeds() {
        let source = generate(seed, &Shape::from_seed(seed));
        let inputs = inputs(&source, seed);
        let (expected, _) = outcome(&source, &inputs, &format!("seed {seed}"));
        // Each pass on the source and on what `ssa` makes of it, then all of them in a row, twice.
        for pass in PASSES {
            let mut m = source.clone();
            run_named(&mut m, pass.name);
            let what = format!("seed {seed}, {}", pass.name);
            assert!(outcome(&m, &inputs, &what).0 == expected, "{what}\n{}", text::print(&m));
        }
        let mut m = source.clone();
        for round in 0..2 {
            for pass in PASSES {
                let before = text::print(&m);
                if run_named(&mut m, pass.name) == Some(true) {
                    *changes.entry(pass.name).or_default() += 1;
                }
                let what = format!("seed {seed}, round {round}, {}", pass.name);
                check(&m, &what);
                assert!(
                    outcome(&m, &inputs, &what).0 == expected,
                    "{what}\nbefore\n{before}\nafter\n{}",
                    text::print(&m)
                );
            }
        }
    } // What these two look for is in text tests; the generator does not write it.
    let special = ["counters", "spread", "split_arrays"];
    for pass in PASSES.iter().filter(|p| !special.contains(&p.name)) {
        assert!(changes.contains_key(pass.name), "{} never changed anything: {changes:?}", pass.name);
    }
    println!("{changes:?}");
}

#[test]
fn every_level_keeps_the_meaning() {
    let (mut before, mut after) = (0, 0);
    for seed in seeds() {
        let seed = seed + 10_000;
        let source = generate(seed, &Shape::from_seed(seed));
        let inputs = inputs(&source, seed);
        let (expected, steps) = outcome(&source, &inputs, &format!("seed {seed}"));
        before += steps;
        for level in [Level::O0, Level::O1, Level::O2] {
            let mut m = source.clone();
            optimise(&mut m, level);
            let what = format!("seed {seed}, {level:?}");
            check(&m, &what);
            let (got, steps) = outcome(&m, &inputs, &what);
            assert!(got == expected, "{what}\n{}", text::print(&m));
            if level == Level::O2 {
                after += steps;
            }
        }
    }
    assert!(after < before, "{after} instructions executed after optimisation, {before} before");
}

#[test]
fn the_same_input_gives_the_same_output() {
    for seed in seeds().step_by(7) {
        let m = generate(seed, &Shape::from_seed(seed));
        let (mut a, mut b) = (m.clone(), m);
        optimise(&mut a, Level::O2);
        optimise(&mut b, Level::O2);
        assert!(text::print(&a) == text::print(&b), "seed {seed}");
    }
}
