//! Random allocation problems in bulk.
//!
//! `cargo run --release -p kempe-ra --example fuzz -- --count 1000 --seed 1`

#[path = "../testing/mod.rs"]
mod testing;

use std::time::Instant;

use kempe_ra::*;
use testing::execute::Machine;
use testing::generate::{Kind, generate};
use testing::least::Verdict;
use testing::rng::Rng;

fn main() {
    let mut count = 1000u64;
    let mut seed = 1u64;
    let mut size = 0u32;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().and_then(|text| text.parse().ok());
        match (arg.as_str(), value) {
            ("--count", Some(value)) => count = value,
            ("--seed", Some(value)) => seed = value,
            ("--size", Some(value)) => size = value as u32,
            _ => {
                eprintln!("usage: fuzz [--count N] [--seed S] [--size INSTRUCTIONS]");
                std::process::exit(2);
            }
        }
    }
    if std::env::var("DUMP").is_ok() {
        // One problem, looked at closely: DUMP=kind, --seed, --size, LIMIT and FORCE.
        let kinds = [Kind::Rows(32, 6), Kind::Rows(64, 6), Kind::Rows(32, 0), Kind::Halves, Kind::Wide];
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
        let kind = kinds[number("DUMP").unwrap_or(0) as usize];
        let mut rng = Rng::new(seed);
        let length = if size != 0 { size } else { rng.range(5, 150) };
        let program = generate(kind, seed, length);
        let options = Options { max_registers: number("LIMIT"), force_spill: number("FORCE").is_some() };
        println!("{}", testing::dump::dump(&kind.file(), &program, None));
        match allocate(&kind.file(), &program, &Costs::default(), &options) {
            Ok(allocation) => println!("{}", testing::dump::dump(&kind.file(), &program, Some(&allocation))),
            Err(error) => println!("{error:?}"),
        }
        return;
    }
    let start = Instant::now();
    let mut bad = 0;
    for kind in [Kind::Rows(32, 6), Kind::Rows(64, 6), Kind::Rows(32, 0), Kind::Halves, Kind::Wide] {
        let file = kind.file();
        let (mut ok, mut spilled, mut refused, mut unjustified, mut unknown) = (0, 0, 0, 0, 0);
        for case in seed..seed + count {
            let mut rng = Rng::new(case);
            let length = if size != 0 { size } else { rng.range(5, 150) };
            let program = generate(kind, case, length);
            for limit in [None, Some(rng.range(1, 40))] {
                let force_spill = limit.is_some() && rng.chance(10);
                let options = Options { max_registers: limit, force_spill };
                match allocate(&file, &program, &Costs::default(), &options) {
                    Ok(allocation) => {
                        ok += 1;
                        spilled += allocation.memory_edits as u32;
                        if let Err(text) = Machine::new(&file, &program, &allocation).run(case, 4, 60) {
                            println!("{kind:?} seed {case} limit {limit:?} force {force_spill}: {text}");
                            bad += 1;
                        }
                    }
                    Err(Failure::OutOfRegisters { at, .. }) if limit.is_some() => {
                        refused += 1;
                        match testing::least::verdict(&file, &program, limit) {
                            Verdict::Exceeds(_) => {}
                            Verdict::Fits => {
                                println!(
                                    "{kind:?} seed {case} limit {limit:?} force {force_spill}: refused at {at:?} though everything fits"
                                );
                                unjustified += 1;
                            }
                            Verdict::Unknown(inst) => {
                                println!(
                                    "{kind:?} seed {case} limit {limit:?} force {force_spill}: refused at {at:?}, unknown at {inst}"
                                );
                                unknown += 1;
                            }
                        }
                        if std::env::var("VERBOSE").is_ok() {
                            println!(
                                "{kind:?} seed {case} limit {limit:?} force {force_spill}: refused at {at:?}"
                            );
                        }
                    }
                    Err(error) => {
                        println!("{kind:?} seed {case} limit {limit:?} force {force_spill}: {error:?}");
                        bad += 1;
                    }
                }
                if bad > 20 {
                    std::process::exit(1);
                }
            }
        }
        println!(
            "{kind:?}: {ok} allocated ({spilled} with memory edits), {refused} refused ({unjustified} without reason, {unknown} unknown)"
        );
    }
    println!("{bad} bad, {:.1} s", start.elapsed().as_secs_f64());
    std::process::exit((bad != 0) as i32);
}
