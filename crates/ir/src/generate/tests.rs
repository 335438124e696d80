//! What the generator promises.

use super::*;
use crate::analysis::Cfg;
use crate::divergence::{self, Divergence};
use crate::exec::{Environment, Sizes};
use crate::interp;

/// FNV-1a of the text of the first programs.
const HASH: u64 = 0x1ee1_9481_4e62_d361;

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

/// Graphics programs: well-formed, nothing undefined has an effect, no races, and what is called uniform is.
#[test]
fn generated_stages_are_well_behaved() {
    let mut seen: std::collections::BTreeMap<Op, u32> = Default::default();
    let mut silent = 0;
    for seed in 0..200 {
        for stage in [Stage::Fragment, Stage::Vertex] {
            let shape = Shape::for_stage(seed, stage);
            let m = generate(seed, &shape);
            let what = format!("seed {seed} {stage:?}");
            crate::verify::verify(&m).unwrap_or_else(|e| panic!("{what}: {e:#?}"));
            let inputs = stage_inputs(seed, &m, &shape);
            let env =
                Environment::new(&m, &inputs, Sizes::source()).unwrap_or_else(|e| panic!("{what}: {e}"));
            let options = interp::Options { races: true, ..interp::Options::source() };
            let r = interp::run(&m, &env, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(r.race, None, "{what}");
            assert!(r.undefined.is_empty(), "{what}: {:?}\n{}", r.undefined, crate::text::print(&m));
            let stage_out = r.stage.as_ref().unwrap();
            let given = stage_out.values.values().flatten().filter(|v| v.is_some()).count();
            silent += (given == 0) as u32;
            let cfg = Cfg::new(&m.func);
            let options = divergence::Options { one_workgroup_per_batch: true, uniform_payload: vec![] };
            let d = Divergence::new(&m.func, &cfg, &options);
            let shared = interp::Options { broadcast: Some(&d), ..interp::Options::source() };
            let again = interp::run(&m, &env, &shared)
                .unwrap_or_else(|e| panic!("{what}: {e}\n{}", crate::text::print(&m)));
            assert!(
                (&again.memory, &again.stage) == (&r.memory, &r.stage),
                "{what}\n{}",
                crate::text::print(&m)
            );
            for (&b, &visits) in m.func.layout.iter().zip(&r.visits) {
                for &i in m.func.blocks[b].insts.iter().filter(|_| visits > 0) {
                    *seen.entry(m.func.insts[i].op).or_default() += 1;
                }
            }
        }
    }
    assert!(silent < 20, "{silent} programs give nothing");
    for op in [
        Op::Input,
        Op::Output,
        Op::Ddx,
        Op::Ddy,
        Op::Demote,
        Op::IsHelper,
        Op::Sample,
        Op::SampleImplicit,
        Op::ImageLoad,
        Op::ImageStore,
    ] {
        assert!(seen.get(&op).is_some_and(|&n| n > 30), "{op:?}: {seen:?}");
    }
}

/// The programs of compute seeds stay as they were: found seeds are written down.
#[test]
fn compute_programs_are_the_old_ones() {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for seed in 0..40 {
        for byte in crate::text::print(&generate(seed, &Shape::from_seed(seed))).bytes() {
            hash = (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(hash, HASH, "{hash:#x}");
}
