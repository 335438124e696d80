//! Random allocation problems in bulk, on every synthetic register file.
//!
//! `cargo run --release -p kempe-ra --example fuzz -- --count 1000 --seed 1`
//!
//! `--files random`: each on a register file of its own, made from its seed, instead of the synthetic ones (`--files fixed`).
//! `--engine scan|graph|both`: with `both`, the second must allocate whatever the first does.
//! `--show KIND` (0 to 4, or 5 for a random file) prints one case, seed `--seed`, instead, at `--limit N` and with `--force 1`.

#[path = "../testing/mod.rs"]
mod testing;

use std::time::Instant;

use kempe_ra::*;
use testing::case::{KINDS, Tally, program_of, run_case, run_random};
use testing::dump::dump;
use testing::generate::Kind;

fn main() {
    let (mut count, mut seed, mut size, mut show, mut limit, mut force, mut random) =
        (1000u64, 1u64, 0u32, None, None, false, false);
    let mut engines = vec![Engine::Scan];
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let text = args.next().unwrap_or_default();
        let value: Option<u64> = text.parse().ok();
        match (arg.as_str(), value) {
            ("--files", None) if matches!(text.as_str(), "random" | "fixed") => random = text == "random",
            ("--count", Some(value)) => count = value,
            ("--seed", Some(value)) => seed = value,
            ("--size", Some(value)) => size = value as u32,
            ("--show", Some(value)) if value as usize <= KINDS.len() => show = Some(value as usize),
            ("--limit", Some(value)) => limit = Some(value as u32),
            ("--force", Some(value)) => force = value != 0,
            ("--engine", _) if text == "scan" => engines = vec![Engine::Scan],
            ("--engine", _) if text == "graph" => engines = vec![Engine::Graph],
            ("--engine", _) if text == "both" => engines = vec![Engine::Scan, Engine::Graph],
            _ => {
                eprintln!(
                    "usage: fuzz [--files fixed|random] [--count N] [--seed S] [--size INSTRUCTIONS] \
                     [--engine scan|graph|both] [--show KIND [--limit N] [--force 0|1]]"
                );
                std::process::exit(2);
            }
        }
    }
    if let Some(kind) = show {
        let kind = KINDS.get(kind).copied().unwrap_or(Kind::Random(seed));
        let program = program_of(kind, seed, size);
        let options =
            Options { max_registers: limit, force_spill: force, engine: engines[0], ..Options::default() };
        let result = allocate(&kind.file(), &program, &Costs::default(), &options);
        println!("{}", dump(&kind.file(), &program, result.as_ref().ok()));
        println!("{:?}", result.err());
        return;
    }
    let start = Instant::now();
    let mut bad = 0;
    let kinds: Vec<Option<Kind>> = if random { vec![None] } else { KINDS.into_iter().map(Some).collect() };
    for kind in kinds {
        let begin = Instant::now();
        let mut tallies = vec![Tally::default(); engines.len()];
        let file = kind.map(Kind::file);
        for case in seed..seed + count {
            match kind.zip(file.as_ref()) {
                Some((kind, file)) => run_case(kind, file, case, size, &engines, &mut tallies),
                None => run_random(case, size, &engines, &mut tallies),
            }
        }
        let name = kind.map_or("random files".to_owned(), |kind| format!("{kind:?}"));
        for (engine, tally) in engines.iter().zip(&tallies) {
            for text in tally.bad.iter().take(20) {
                println!("{text}");
            }
            bad += tally.bad.len();
            println!(
                "{name} {engine:?}: seeds {seed} to {}, {} allocated ({} handed on, {} with memory edits, {} edits, \
                 cost {:.0}), {} refused, {} bad",
                seed + count - 1,
                tally.allocated,
                tally.handed_on,
                tally.with_memory,
                tally.edits,
                tally.cost,
                tally.refused,
                tally.bad.len(),
            );
        }
        println!("{:.1} s", begin.elapsed().as_secs_f64());
    }
    println!("{bad} bad, {:.1} s", start.elapsed().as_secs_f64());
    std::process::exit((bad != 0) as i32);
}
