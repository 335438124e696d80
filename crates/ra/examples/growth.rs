//! How the time of an allocation grows with the program.
//!
//! `cargo run --release -p kempe-ra --example growth [-- NAME]...`
//!
//! Nanoseconds for each instruction at three sizes for everyday forms, without and with spilling, and how steep the time
//! of the shapes is on which other compilers took minutes (`testing/grow.rs`): the exponent is the slope between the
//! smallest and the largest size on logarithmic axes, 1 is linear. What is timed is the whole of `allocate`, checker A
//! included: processor time where the system tells it (Linux), so that other work on the machine counts little, the mean
//! of as many runs as make up [`ENOUGH`]. `docs/allocator.md` has the table.

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

/// Runs of one problem go on for this long, in seconds. (What the system tells has steps of a hundredth.)
const ENOUGH: f64 = 0.5;

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

/// Seconds of processor time of this process; of the clock on the wall where that is unknown.
fn seconds(since: Instant) -> f64 {
    let clock = || since.elapsed().as_secs_f64();
    let Ok(text) = std::fs::read_to_string("/proc/self/stat") else { return clock() };
    // Behind the name in parentheses: time in the program is field 12, in the system field 13, in hundredths.
    let fields = text.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    if ticks.len() == 2 { (ticks[0] + ticks[1]) / 100.0 } else { clock() }
}

fn time(program: &Program, options: &Options) -> Result<Timed, Failure> {
    let file = rows_file(64, 0);
    let clock = Instant::now();
    let start = seconds(clock);
    let mut runs = 0;
    loop {
        let allocation = allocate(&file, program, &Costs::default(), options)?;
        runs += 1;
        let taken = seconds(clock) - start;
        if taken < ENOUGH {
            continue;
        }
        let memory = |edit: &&(Point, Edit)| matches!(edit.1, Edit::Spill { .. } | Edit::Fill { .. });
        return Ok(Timed {
            instructions: program.insts.len() as u32,
            seconds: taken / f64::from(runs),
            memory_edits: allocation.edits.iter().filter(memory).count(),
        });
    }
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
