//! A few hundred random programs of each stage use every rule of selection.

use kempe_ir::Stage;
use kempe_ir::generate::{Shape, generate};
use kempe_opt::Level;
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::instr::Version;
use kempe_v3d::select::Counts;

/// Rules that no program of this generator reaches, with the reason.
const UNREACHABLE: &[(&str, &str)] = &[
    ("atomic load", "lowering makes a volatile load of it"),
    ("atomic store", "lowering makes a volatile store of it"),
];

struct Count(Counts);

impl Observer for Count {
    fn rules(&mut self, counts: &Counts) {
        self.0.add(counts);
    }
}

#[test]
fn every_selection_rule_is_used() {
    let mut count = Count(Counts::default());
    const SEEDS: u64 = 700;
    const STAGES: [Stage; 3] = [Stage::Compute, Stage::Fragment, Stage::Vertex];
    for (seed, stage) in (0..SEEDS).flat_map(|seed| STAGES.map(|stage| (seed, stage))) {
        let shape = match stage {
            Stage::Compute => Shape::from_seed(seed),
            _ if seed % 4 != 0 => continue,
            _ => Shape::for_stage(seed, stage),
        };
        let source = generate(seed, &shape);
        let version = Version::ALL[(seed & 1) as usize];
        let level = [Level::O0, Level::O1, Level::O2][(seed % 3) as usize];
        let mut m = source;
        let mut choices = kempe_opt::Options::new(level);
        choices.vector_within_16 = version == Version::V42;
        kempe_opt::optimise_with(&mut m, &choices, &mut ());
        let threads = [None, Some(2), Some(4)][(seed / 2 % 3) as usize];
        let options = Options { threads, ..Options::default() };
        if let Err(e) = compile(m, version, &options, &mut count) {
            assert!(!e.internal, "seed {seed}: {e}");
        }
    }
    let all = count.0.all();
    let unused: Vec<&String> = all.iter().filter(|(_, n)| **n == 0).map(|(name, _)| name).collect();
    println!("{} of {} rules of selection used by {SEEDS} programs", all.len() - unused.len(), all.len());
    for (name, n) in &all {
        println!("{n:9} {name}");
    }
    for (name, reason) in UNREACHABLE {
        assert!(unused.iter().any(|u| u == name), "`{name}` is used although {reason}");
    }
    let missing: Vec<_> = unused.iter().filter(|u| !UNREACHABLE.iter().any(|r| r.0 == u.as_str())).collect();
    assert!(missing.is_empty(), "not used: {missing:#?}");
}
