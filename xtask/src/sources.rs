//! Compiles the unmodified sources of the corpus through our own front ends: `cargo xtask sources [--only TEXT] [-v]`.
//!
//! A source counts as read when it becomes SPIR-V, and as compiled when every entry point of it becomes code for every target.
//! OpenCL C has no front end here and is counted apart. Exit code 1 when fewer than [`LEAST`] are read.

use crate::corpus::shared;
use crate::survey::reason;
use kempe::compile::{CodeOptions, Keep, Options, Source, Status, compile};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Least part of the sources that must be read.
const LEAST: f64 = 0.97;

/// What became of one source.
struct Outcome {
    collection: String,
    name: String,
    /// SPIR-V was made.
    read: bool,
    /// Code was made of all of it.
    compiled: bool,
    why: Option<String>,
    defect: bool,
}

/// The sources below `corpus/src`, and how many are OpenCL C.
fn sources() -> Result<(Vec<(String, PathBuf)>, usize), String> {
    let root = shared().join("corpus").join("src");
    let missing = |e| {
        format!("{} cannot be read ({e}); set KEMPE_SHARED to the folder that holds `corpus`", root.display())
    };
    let (mut found, mut opencl) = (Vec::new(), 0);
    for folder in std::fs::read_dir(&root).map_err(missing)?.flatten() {
        let collection = folder.file_name().to_string_lossy().into_owned();
        let Ok(files) = std::fs::read_dir(folder.path()) else { continue };
        for path in files.flatten().map(|f| f.path()) {
            match path.extension().and_then(|e| e.to_str()) {
                Some("cl") => opencl += 1,
                // The list of the collection and the folder of lifted texts are no sources.
                Some("tsv") | None => {}
                Some(_) => found.push((collection.clone(), path)),
            }
        }
    }
    found.sort();
    Ok((found, opencl))
}

fn outcome(collection: &str, path: &PathBuf) -> Outcome {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let source = Source { name, contents: std::fs::read(path).map_err(|e| e.to_string()), stage: None };
    let options = Options {
        targets: crate::targets::usual(),
        front: kempe_front::Options::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: kempe::limits::Limits::default(),
    };
    let results = compile(&source, &options);
    let bad = results.iter().find(|r| r.status != Status::Ok);
    Outcome {
        collection: collection.to_owned(),
        // An entry point is only known of what became SPIR-V.
        read: !results.is_empty() && results.iter().all(|r| !r.entry.is_empty()),
        compiled: !results.is_empty() && bad.is_none(),
        why: bad.map(|r| format!("{}: {}", r.status.name(), r.message)),
        defect: bad.is_some_and(|r| matches!(r.status, Status::Bug | Status::Limit)),
        name: source.name,
    }
}

pub fn run(args: &[String]) -> ExitCode {
    let only = args.iter().position(|a| a == "--only").and_then(|n| args.get(n + 1));
    let verbose = args.iter().any(|a| a == "-v");
    let (mut list, opencl) = match sources() {
        Ok(found) => found,
        Err(why) => {
            println!("sources: skipped: {why}");
            return ExitCode::SUCCESS;
        }
    };
    if let Some(only) = only {
        list.retain(|(_, path)| path.to_string_lossy().contains(only.as_str()));
    }
    let outcomes: Vec<Outcome> = list.par_iter().map(|(c, path)| outcome(c, path)).collect();
    let mut rows: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut reasons: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for o in &outcomes {
        let row = rows.entry(&o.collection).or_default();
        row[0] += usize::from(o.read);
        row[1] += usize::from(o.compiled);
        row[2] += 1;
        let Some(why) = &o.why else { continue };
        if verbose {
            println!("{}/{}: {why}", o.collection, o.name);
        }
        reasons.entry(reason(why)).or_insert((0, format!("{}/{}", o.collection, o.name))).0 += 1;
    }
    let total = rows.values().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    println!("{:14} {:>6} {:>9} {:>6}", "", "read", "compiled", "of");
    for (name, [read, compiled, n]) in rows.iter().map(|r| (*r.0, *r.1)).chain([("all", total)]) {
        println!("{name:14} {read:6} {compiled:9} {n:6}");
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    for (why, (n, name)) in reasons {
        println!("  {n:4}  {why}  (for example {name})");
    }
    let percent = |n: usize| 100.0 * n as f64 / total[2].max(1) as f64;
    println!(
        "sources: {:.1} % read, {:.1} % compiled; {opencl} in OpenCL C left out",
        percent(total[0]),
        percent(total[1])
    );
    let enough = total[0] as f64 >= LEAST * total[2] as f64;
    if enough && !outcomes.iter().any(|o| o.defect) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
