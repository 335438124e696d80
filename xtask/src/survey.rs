//! Compiles modules of the corpus for both targets: `cargo xtask survey [--all] [--verify] [--only TEXT]
//! [--target T] [--images] [--stage comp|vert|frag|multi] [--force-spill] [--max-registers N]`, those of compute unless a stage is
//! named. With `--verify` checker B reads every result.
//!
//! A table of how many compile, by collection; failures by reason; CPU times. With `--all` also the modules that need
//! what is not there yet: they must be diagnosed, never panic.

use crate::corpus;
use crate::targets;
use kempe::compile::{CodeOptions, CompileResult, Keep, Options, Source, Status, compile};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Compiles one module for these targets, specialisation constants at their defaults.
pub fn compile_entry(
    e: &corpus::Entry,
    targets: &[&'static dyn kempe::Target],
    code: &CodeOptions,
) -> Vec<CompileResult> {
    let source = Source {
        name: e.file.clone(),
        contents: std::fs::read(&e.path).map_err(|e| e.to_string()),
        stage: None,
    };
    let options = Options {
        targets: targets.to_vec(),
        front: kempe_front::Options::default(),
        code: *code,
        keep: Keep::default(),
        limits: kempe::limits::Limits::default(),
    };
    compile(&source, &options)
}

/// A message without names and numbers, to count reasons.
pub fn reason(message: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in message.chars() {
        match c {
            '`' => {
                quoted = !quoted;
                out.push_str(if quoted { "`…" } else { "`" });
            }
            _ if quoted => {}
            '0'..='9' => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            _ => out.push(c),
        }
    }
    out.chars().take(140).collect()
}

fn percentile(sorted: &[u64], p: usize) -> f64 {
    sorted.get((sorted.len().saturating_sub(1)) * p / 100).copied().unwrap_or(0) as f64 / 1000.0
}

pub fn run(args: &[String]) -> ExitCode {
    let all = args.iter().any(|a| a == "--all");
    let verify = args.iter().any(|a| a == "--verify");
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let code = CodeOptions {
        verify,
        force_spill: args.iter().any(|a| a == "--force-spill"),
        max_registers: value("--max-registers").and_then(|n| n.parse().ok()),
        ..CodeOptions::default()
    };
    let only = value("--only");
    let stage = value("--stage");
    let images = args.iter().any(|a| a == "--images");
    let dump = value("--list");
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            println!("survey: skipped: {e}");
            return ExitCode::SUCCESS;
        }
    };
    let targets = targets::asked(value("--target").as_deref());
    let chosen: Vec<corpus::Entry> = entries
        .into_iter()
        .filter(|e| match &stage {
            Some(s) => e.stage == *s,
            None if all => e.stage == "comp",
            None => e.is_plain_compute(),
        })
        .filter(|e| !images || e.has_images())
        .filter(|e| only.as_ref().is_none_or(|o| e.file.contains(o.as_str())))
        .collect();
    let start = std::time::Instant::now();
    let results: Vec<Vec<CompileResult>> =
        chosen.par_iter().map(|e| compile_entry(e, &targets, &code)).collect();
    let mut bad = false;
    for t in &targets {
        println!("== {} ({} modules)", t.name(), chosen.len());
        let mut by_collection: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        let mut reasons: BTreeMap<String, (u32, String)> = BTreeMap::new();
        let mut times = Vec::new();
        let (mut inst, mut spills, mut fills, mut two) = (0u64, 0u64, 0u64, 0u32);
        let mut slow: Vec<(u64, &str)> = Vec::new();
        for (e, rs) in chosen.iter().zip(&results) {
            let row = by_collection.entry(&e.collection).or_default();
            row.1 += 1;
            let mine: Vec<&CompileResult> = rs.iter().filter(|r| r.target == t.name()).collect();
            let ok = !mine.is_empty() && mine.iter().all(|r| r.status == Status::Ok);
            row.0 += ok as u32;
            for r in mine {
                if let Some(list) = &dump
                    && *list == "all"
                {
                    println!("{}\t{}\t{}\t{}", e.file, r.status.name(), r.compile_us, r.message);
                }
                if r.compile_us > 10_000_000 {
                    slow.push((r.compile_us, &e.file));
                }
                if r.status != Status::Ok {
                    bad |= matches!(r.status, Status::Bug | Status::Limit);
                    let entry = reasons.entry(format!("{}: {}", r.status.name(), reason(&r.message)));
                    let entry = entry.or_insert((0, e.file.clone()));
                    entry.0 += 1;
                    continue;
                }
                times.push(r.compile_us);
                if let Some(c) = &r.artifact {
                    let s = &c.stats;
                    inst += s.instructions as u64;
                    spills += s.spills as u64;
                    fills += s.fills as u64;
                    two += (s.threads == 2) as u32;
                }
            }
        }
        for (name, (ok, n)) in &by_collection {
            println!("  {name:14} {ok:4}/{n:4}  {:5.1} %", 100.0 * *ok as f64 / *n as f64);
        }
        let ok: u32 = by_collection.values().map(|r| r.0).sum();
        println!(
            "  {:14} {ok:4}/{:4}  {:5.1} %",
            "all",
            chosen.len(),
            100.0 * ok as f64 / chosen.len().max(1) as f64
        );
        times.sort_unstable();
        println!(
            "  instructions {inst}, spills:fills {spills}:{fills}, 2 threads {two}; compile_us: median {:.2} ms, p90 {:.2} ms, max {:.1} ms, total {:.1} s",
            percentile(&times, 50),
            percentile(&times, 90),
            percentile(&times, 100),
            times.iter().sum::<u64>() as f64 / 1e6
        );
        for (us, file) in &slow {
            println!("  over 10 s: {file} ({:.1} s)", *us as f64 / 1e6);
        }
        let mut list: Vec<_> = reasons.into_iter().collect();
        list.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
        for (why, (n, file)) in list.iter().take(40) {
            println!("  {n:5}  {why}  (for example {file})");
        }
    }
    println!("survey: {:.1} s", start.elapsed().as_secs_f64());
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
