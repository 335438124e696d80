//! What the folding of addresses brings on AGX: `cargo xtask addresses [--only TEXT]`.
//!
//! Every plain compute module is compiled with and without it: accesses to buffers, how many of them carry their whole address
//! calculation, instructions, and how many modules got better or worse.

use crate::corpus;
use kempe_agx::compile::{Observer, Options, compile};
use kempe_agx::lower::AddressCounts;
use kempe_ir::Module;
use rayon::prelude::*;
use std::process::ExitCode;

#[derive(Default)]
struct Catch(AddressCounts);

impl Observer for Catch {
    fn lowered(&mut self, _: &Module, addresses: AddressCounts) {
        self.0 = addresses;
    }
}

/// Accesses, those that carry everything, instructions.
type Row = [u64; 3];

fn row(m: &Module, options: &Options) -> Option<Row> {
    let mut catch = Catch::default();
    let artifact = compile(m.clone(), options, &mut catch).ok()?;
    Some([catch.0.accesses.into(), catch.0.whole.into(), artifact.stats.instructions.into()])
}

fn both(e: &corpus::Entry) -> Option<(String, [Row; 2])> {
    let mut m = e.module().ok()?;
    let target = kempe::target("agx")?;
    kempe_opt::optimise_with(&mut m, &target.opt_options(), &mut ());
    let plain = Options { plain_addresses: true, ..Options::default() };
    Some((e.file.clone(), [row(&m, &plain)?, row(&m, &Options::default())?]))
}

pub fn run(args: &[String]) -> ExitCode {
    let only = args.iter().position(|a| a == "--only").and_then(|n| args.get(n + 1));
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            println!("addresses: skipped: {e}");
            return ExitCode::SUCCESS;
        }
    };
    let rows: Vec<(String, [Row; 2])> = entries
        .par_iter()
        .filter(|e| e.is_plain_compute() && only.is_none_or(|o| e.file.contains(o.as_str())))
        .filter_map(both)
        .collect();
    let mut sum = [[0; 3]; 2];
    let (mut helped, mut hurt) = (0, Vec::new());
    for (file, pair) in &rows {
        for (sum, row) in sum.iter_mut().zip(pair) {
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
        }
        match pair[1][2].cmp(&pair[0][2]) {
            std::cmp::Ordering::Less => helped += 1,
            std::cmp::Ordering::Greater => hurt.push((pair[1][2] - pair[0][2], file)),
            std::cmp::Ordering::Equal => {}
        }
    }
    for (name, [accesses, whole, instructions]) in ["without", "with"].iter().zip(sum) {
        println!("{name:<8} {accesses} accesses, {whole} carry everything, {instructions} instructions");
    }
    println!("{} modules, {helped} helped, {} HURT", rows.len(), hurt.len());
    hurt.sort();
    for (by, file) in hurt.iter().rev().take(10) {
        println!("  HURT by {by}: {file}");
    }
    ExitCode::SUCCESS
}
