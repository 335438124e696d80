//! Time of the road on generated programs, by size: `cargo bench -p kempe --no-default-features`.
//!
//! The programs are those of `kempe_ir::generate`, so the bench needs no input from outside and no front end. Times are
//! for reading and comparing; nothing asserts them.

use kempe_ir::Module;
use kempe_ir::generate::{Shape, generate};
use kempe_opt::Level;
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;

fn main() {
    divan::main();
}

/// Operations asked for.
const SIZES: [u32; 3] = [200, 1000, 5000];

fn program(operations: u32) -> Module {
    let shape = Shape { operations, depth: 3, live: 24, ..Shape::from_seed(11) };
    generate(11, &shape)
}

fn optimised(operations: u32) -> Module {
    let mut m = program(operations);
    kempe_opt::optimise(&mut m, Level::O2);
    m
}

#[divan::bench(args = SIZES)]
fn optimise(bencher: divan::Bencher, operations: u32) {
    bencher.with_inputs(|| program(operations)).bench_values(|mut m| {
        kempe_opt::optimise(&mut m, Level::O2);
        m
    });
}

#[divan::bench(args = SIZES)]
fn back_end_v3d71(bencher: divan::Bencher, operations: u32) {
    bencher
        .with_inputs(|| optimised(operations))
        .bench_values(|m| compile(m, Version::V71, &Options::default(), &mut ()));
}

#[divan::bench(args = SIZES)]
fn back_end_v3d42(bencher: divan::Bencher, operations: u32) {
    bencher
        .with_inputs(|| optimised(operations))
        .bench_values(|m| compile(m, Version::V42, &Options::default(), &mut ()));
}

#[divan::bench(args = SIZES)]
fn back_end_forced_spill(bencher: divan::Bencher, operations: u32) {
    let options = Options { force_spill: true, ..Options::default() };
    bencher
        .with_inputs(|| optimised(operations))
        .bench_values(|m| compile(m, Version::V71, &options, &mut ()));
}
