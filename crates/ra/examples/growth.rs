//! How the time of an allocation grows with the program.
//!
//! `cargo run --release -p kempe-ra --example growth [-- NAME]...`
//!
//! Nanoseconds for each instruction at three sizes for everyday forms, without and with spilling, and how steep the time
//! of the shapes is on which other compilers took minutes (`testing/grow.rs`): the exponent is the slope between the
//! smallest and the largest size on logarithmic axes, 1 is linear. The best of several runs counts; what is timed is the
//! whole of `allocate`, checker A included. `docs/allocator.md` has the table.

#[path = "../testing/mod.rs"]
mod testing;

use std::time::Instant;

use kempe_ra::*;
use testing::build::at_most;
use testing::files::rows_file;
use testing::grow::*;

/// Sizes of the everyday forms, in instructions.
const SIZES: [u32; 3] = [1_000, 10_000, 100_000];

/// Small enough for the everyday forms to spill.
const FEW: u32 = 16;

/// Runs of one problem go on until this long, in seconds; the best counts.
const PATIENCE: f64 = 0.5;

/// Each with its smallest size; the others are 4, 16 and 64 times that.
const SHAPES: [(&str, Make, u32, Option<u32>); 6] = [
    ("A44", a44, 600, None),
    ("A45", a45, 5, Some(8)),
    ("A48", a48, 500, None),
    ("A49", a49, 500, None),
    ("A50", a50, 10, None),
    ("A50 depth", a50_deep, 30, Some(8)),
];

struct Timed {
    instructions: u32,
    seconds: f64,
    memory_edits: usize,
}

fn time(program: &Program, options: &Options) -> Result<Timed, Failure> {
    let file = rows_file(64, 0);
    let begin = Instant::now();
    let mut seconds = f64::INFINITY;
    let mut memory_edits = 0;
    while seconds.is_infinite() || begin.elapsed().as_secs_f64() < PATIENCE {
        let start = Instant::now();
        let allocation = allocate(&file, program, &Costs::default(), options)?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
        let edits = allocation.edits.iter();
        memory_edits =
            edits.filter(|(_, edit)| matches!(edit, Edit::Spill { .. } | Edit::Fill { .. })).count();
    }
    Ok(Timed { instructions: program.insts.len() as u32, seconds, memory_edits })
}

fn main() -> Result<(), Failure> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
    println!("| program | memory edits | ns per instruction at 1,000 | 10,000 | 100,000 | ratio |");
    println!("|---|---|---|---|---|---|");
    for (name, make) in FORMS {
        for limit in [None, Some(FEW)] {
            let name = if limit.is_some() { format!("{name}, spilling") } else { name.to_owned() };
            if !wanted(&name) {
                continue;
            }
            let options = Options { max_registers: limit, ..Options::default() };
            let all = SIZES.map(|size| time(&make(size), &options));
            let mut each = Vec::new();
            let mut edits = 0;
            for timed in all {
                let timed = timed?;
                each.push(timed.seconds * 1e9 / f64::from(timed.instructions));
                edits = timed.memory_edits;
            }
            let [small, middle, large] = each[..] else { continue };
            println!("| {name} | {edits} | {small:.0} | {middle:.0} | {large:.0} | {:.1} |", large / small);
        }
    }
    println!();
    println!("| shape | instructions | ms | exponent |");
    println!("|---|---|---|---|");
    for (name, make, first, limit) in SHAPES {
        if !wanted(name) {
            continue;
        }
        let options = limit.map_or_else(Options::default, at_most);
        let mut instructions = Vec::new();
        let mut seconds = Vec::new();
        for step in 0..4 {
            let timed = time(&make(first << (2 * step)), &options)?;
            instructions.push(f64::from(timed.instructions));
            seconds.push(timed.seconds);
        }
        let slope = (seconds[3] / seconds[0]).ln() / (instructions[3] / instructions[0]).ln();
        let list = |values: &[f64], digits: usize| {
            let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
            texts.join(", ")
        };
        let milliseconds: Vec<f64> = seconds.iter().map(|value| value * 1e3).collect();
        println!("| {name} | {} | {} | {slope:.2} |", list(&instructions, 0), list(&milliseconds, 2));
    }
    Ok(())
}
