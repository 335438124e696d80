//! The allocator beside the optimum, on random problems of up to about 60 instructions.
//!
//! `cargo run --release -p kempe-ra --example optimum -- --count 1000 --seed 1`
//!
//! `--kind K` takes one register file only (0 to 4), `--size N` programs of about N instructions, `--exact 1` what
//! stands between instructions as it is rather than where any memory edit would leave it; `--show LIMIT` prints the
//! program of `--seed`, its allocation and the edits of an optimum.

#[path = "../testing/mod.rs"]
mod testing;

use std::time::{Duration, Instant};

use kempe_ra::*;
use testing::case::{KINDS, program_of};
use testing::dump::dump;
use testing::generate::Kind;
use testing::optimum::compare::{Plan, Report};
use testing::optimum::spill::{Between, Effort, Least, least};
use testing::optimum::view::View;
use testing::rng::Rng;

/// Larger programs are left out (instructions).
const MOST: usize = 60;

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
            ("--exact", Some(value)) => between = if value != 0 { Between::Exact } else { Between::Safe },
            ("--show", Some(value)) => show = Some(value as u32),
            _ => {
                eprintln!(
                    "usage: optimum [--count N] [--seed S] [--size N] [--kind K] [--exact 1] [--show LIMIT]"
                );
                std::process::exit(2);
            }
        }
    }
    let effort = Effort { nodes: 20_000, time: Duration::from_secs(20), size: 8000 };
    let costs = Costs::default();
    let mut wrong = 0;
    for kind in kinds {
        let file = kind.file();
        let plan = Plan { file: &file, costs: &costs, between, effort, most: 128 };
        if let Some(limit) = show {
            print(&plan, &program(kind, seed, size), limit);
            continue;
        }
        let (start, mut report) = (Instant::now(), Report::default());
        for seed in seed..seed + count {
            let program = program(kind, seed, size);
            if program.insts.len() <= MOST {
                report.add(&plan, &format!("seed {seed}"), &program, None);
            }
        }
        print!("{}", report.text(&format!("{kind:?}, {:.0} s", start.elapsed().as_secs_f64())));
        wrong += report.wrong.len();
    }
    std::process::exit((wrong != 0) as i32);
}

/// The program of a seed.
fn program(kind: Kind, seed: u64, size: u32) -> Program {
    let mut rng = Rng::new(seed ^ 0x0971);
    let length = if size != 0 { size } else { rng.range(8, 45) };
    program_of(kind, seed, length)
}

fn print(plan: &Plan, program: &Program, limit: u32) {
    // The solver knows no operations made again.
    let without = Without { repeats: true, ..Without::default() };
    let options = Options { max_registers: Some(limit), without, ..Options::default() };
    let result = allocate(plan.file, program, plan.costs, &options);
    println!("{}", dump(plan.file, program, result.as_ref().ok()));
    println!("{:?}", result.err());
    let view = View::new(plan.file, program, Some(limit), true);
    match least(&view, plan.costs, plan.between, plan.effort) {
        Least::Cost { cost, plan } => {
            println!("least cost {cost}");
            for step in plan {
                let vreg = view.value_of.iter().position(|value| *value == step.value);
                println!("  before {}: {:?} v{}", step.inst, step.edit, vreg.unwrap_or(0));
            }
        }
        other => println!("{other:?}"),
    }
}
