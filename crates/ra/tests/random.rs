//! Random problems on the synthetic register files, and mistakes put into valid allocations.

#[path = "../testing/mod.rs"]
mod testing;

use kempe_ra::*;
use testing::case::{KINDS, Tally, program_of, run_case, run_random};
use testing::execute::Machine;
use testing::mutate::mutate;
use testing::rng::Rng;

#[test]
fn random_problems_are_allocated_right_or_refused_with_reason() {
    for kind in KINDS {
        let file = kind.file();
        let engines = [Engine::Scan, Engine::Graph];
        let mut tallies = [Tally::default(), Tally::default()];
        for seed in 0..300 {
            run_case(kind, &file, seed, 0, &engines, &mut tallies);
        }
        for tally in &tallies {
            assert!(tally.bad.is_empty(), "{:#?}", tally.bad);
            // The test would say nothing if little was allocated or nothing spilled.
            assert!(tally.allocated > 700, "{kind:?}: {tally:?}");
            assert!(tally.with_memory > 150, "{kind:?}: {tally:?}");
        }
        // Nor if the graph engine left it all to the other one.
        assert!(tallies[1].handed_on * 4 < tallies[1].allocated, "{kind:?}: {tallies:?}");
        assert_eq!(tallies[0].handed_on, 0);
    }
}

/// The same, each problem on a register file of its own. (A million of them are for the `fuzz` example.)
#[test]
fn problems_on_random_files_are_allocated_right_or_refused_with_reason() {
    let mut tallies = [Tally::default()];
    for seed in 0..3000 {
        run_random(seed, 0, &[Engine::Scan], &mut tallies);
    }
    let [tally] = tallies;
    assert!(tally.bad.is_empty(), "{:#?}", tally.bad);
    assert!(tally.allocated > 4500 && tally.with_memory > 1000, "{tally:?}");
}

/// Problems that were refused although they fit: an operand of a set without backing beside a def of the same set; a value that
/// can be made again, in a set that memory edits leave one unit of; one that is read from units its home does not have; a
/// parameter whose argument has no place in any register of its home; sets that overlap in part, where counts say too much.
#[test]
fn what_fits_is_not_refused() {
    let mut tallies = [Tally::default(), Tally::default()];
    for seed in [2_026_892, 2_083_809, 2_088_676, 2_105_445, 2_117_695, 2_196_334, 2_220_140] {
        run_random(seed, 0, &[Engine::Scan, Engine::Graph], &mut tallies);
    }
    for tally in &tallies {
        assert!(tally.bad.is_empty(), "{:#?}", tally.bad);
    }
}

/// Whenever the program computes something else after a mistake, checker A has to object.
#[test]
fn the_checker_sees_every_mistake_that_shows() {
    let (mut tried, mut differ, mut objected, mut missed) = (0, 0, 0, Vec::new());
    for kind in KINDS {
        let file = kind.file();
        for seed in 1000..1060 {
            let program = program_of(kind, seed, 40);
            let mut rng = Rng::new(seed);
            let options = Options {
                max_registers: Some(rng.range(6, 20)),
                force_spill: rng.chance(20),
                engine: if seed % 2 == 0 { Engine::Scan } else { Engine::Graph },
                ..Options::default()
            };
            let Ok(allocation) = allocate(&file, &program, &Costs::default(), &options) else { continue };
            for _ in 0..8 {
                let (wrong, what) = mutate(&file, &program, &allocation, &mut rng);
                tried += 1;
                let runs = Machine::new(&file, &program, &wrong).run(seed, 6, 60);
                let verdict = check(&file, &program, &wrong);
                objected += verdict.is_err() as u32;
                if runs.is_err() {
                    differ += 1;
                    if verdict.is_ok() {
                        missed.push(format!("{kind:?} seed {seed}: {what}: {runs:?}"));
                    }
                }
            }
        }
    }
    println!("{tried} mistakes: {differ} show when run, the checker objected to {objected}");
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(differ > 500, "only {differ} of {tried} mistakes show");
    // It does not simply object to everything: some mistakes are harmless (an edit that nothing depends on).
    assert!(objected < tried);
}
