//! The allocator beside the optimum, on random problems.
//!
//! `cargo run --release -p kempe-ra --example optimum -- --count 1000 --seed 1`

#[path = "../testing/mod.rs"]
mod testing;

use std::time::{Duration, Instant};

use kempe_ra::*;
use testing::case::{KINDS, program_of};
use testing::dump::dump;
use testing::optimum::compare::{least_at, registers, spent};
use testing::optimum::spill::{Between, Effort, Least};
use testing::rng::Rng;

fn main() {
    let (mut count, mut seed, mut size, mut kinds, mut between, mut show) =
        (100u64, 1u64, 0u32, KINDS.to_vec(), Between::Safe, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value: Option<u64> = args.next().and_then(|text| text.parse().ok());
        match (arg.as_str(), value) {
            ("--count", Some(value)) => count = value,
            ("--seed", Some(value)) => seed = value,
            ("--size", Some(value)) => size = value as u32,
            ("--kind", Some(value)) => kinds = vec![KINDS[value as usize % KINDS.len()]],
            ("--exact", Some(1)) => between = Between::Exact,
            ("--show", Some(value)) => show = Some(value as u32),
            _ => std::process::exit(2),
        }
    }
    let effort = Effort { nodes: 20_000, time: Duration::from_secs(20), size: 6000 };
    let costs = Costs::default();
    for kind in kinds {
        let file = kind.file();
        let start = Instant::now();
        let (mut ours, mut best, mut counted, mut unsolved, mut refused, mut below) = (0.0, 0.0, 0, 0, 0, 0);
        let (mut regs_equal, mut regs) = (0, 0);
        let mut worst: Vec<(f64, f64, String)> = Vec::new();
        for case in seed..seed + count {
            let mut rng = Rng::new(case ^ 0x0971);
            let length = if size != 0 { size } else { rng.range(8, 40) };
            let program = program_of(kind, case, length);
            if program.insts.len() > 60 {
                continue;
            }
            if let Some((bound, found)) = registers(&file, &program, 64) {
                regs += 1;
                regs_equal += (found == Some(bound)) as u32;
                if found != Some(bound) {
                    println!("{kind:?} seed {case} size {length}: registers {found:?}, bound {bound}");
                }
            }
            let limits = match show {
                Some(limit) => limit..=limit,
                None => 2..=10,
            };
            for limit in limits {
                let options = Options { max_registers: Some(limit), ..Options::default() };
                let Ok(allocation) = allocate(&file, &program, &costs, &options) else {
                    refused += 1;
                    continue;
                };
                let spent = spent(&program, &costs, &allocation);
                if spent.memory == 0.0 {
                    break;
                }
                let begin = Instant::now();
                let found = least_at(&file, &program, &costs, Some(limit), between, effort);
                let took = begin.elapsed().as_secs_f64();
                let name = format!("{kind:?} seed {case} size {length} limit {limit} ({} insts, {took:.2} s)", program.insts.len());
                if show.is_some() {
                    println!("{}", dump(&file, &program, Some(&allocation)));
                    println!("{name}: {spent:?} {found:?}");
                }
                match found {
                    Least::Cost { cost, .. } => {
                        if spent.memory < cost - 1e-3 {
                            below += 1;
                            println!("BELOW {name}: {} < {cost}", spent.memory);
                        }
                        counted += (cost > 0.0) as u32;
                        ours += spent.memory;
                        best += cost;
                        worst.push((spent.memory - cost, cost, name));
                    }
                    Least::Infeasible => {
                        below += 1;
                        println!("BELOW {name}: {} but infeasible", spent.memory);
                    }
                    Least::Unsolved { .. } => unsolved += 1,
                }
            }
        }
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (loss, cost, name) in worst.iter().take(10).filter(|w| w.0 > 1e-3) {
            println!("  {loss:.2} over {cost:.2}: {name}");
        }
        let equal = worst.iter().filter(|w| w.0 < 1e-3).count();
        println!("{kind:?}: {counted} with non-zero optimum, {equal} of {} equal, ours {ours:.1}, best {best:.1}, {:+.2} %, {unsolved} unsolved, {refused} refused, {below} below; registers {regs_equal} of {regs}; {:.1} s",
            worst.len(), (ours / best - 1.0) * 100.0, start.elapsed().as_secs_f64());
    }
}
