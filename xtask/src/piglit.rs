//! Runs the `.shader_test` files below a folder on the simulator: `cargo xtask piglit FOLDER [--target T|--interpret]
//! [--only TEXT] [--limit SECONDS] [-v] [--expected FILE]`.
//!
//! Four outcomes: pass, fail, refused (a shader does not compile: the reasons are counted), skip (the test needs something that
//! is not done, for example other stages). Failures that are understood are named in `docs/piglit-failures.txt`, a path and a reason
//! a line; any other failure, and an entry that passes, makes the exit code 1.

use crate::survey::reason;
use kempe::limits::Limits;
use kempe_shader_test::program::On;
use kempe_shader_test::run::{Options, Verdict, run as run_file};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Seconds for one file if nothing else is said: the slowest take a tenth of that on an idle machine.
const SECONDS: u64 = 120;

const MAX_DEPTH: u32 = 64;

fn walk(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(&path, depth + 1, found);
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "shader_test") {
            found.push(path);
        }
    }
}

/// Failures that are understood: by path in the package, which is the end of the path of the file.
fn expected(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let line = |l: &str| {
        let (file, why) = l.trim().split_once(' ')?;
        (!file.starts_with('#')).then(|| (file.to_owned(), why.trim().to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1));
    let Some(folder) = args.first().filter(|a| !a.starts_with('-')).map(PathBuf::from) else {
        eprintln!(
            "usage: cargo xtask piglit FOLDER [--target T|--interpret] [--only TEXT] [--limit SECONDS] [-v]"
        );
        return ExitCode::from(2);
    };
    if !folder.is_dir() {
        println!("piglit: skipped: {} is no folder", folder.display());
        return ExitCode::SUCCESS;
    }
    let target = value("--target").and_then(|name| kempe::target(name)).unwrap_or(kempe::targets()[0]);
    let interpret = args.iter().any(|a| a == "--interpret");
    let on = if interpret { On::Interpreter } else { On::Target(target) };
    let seconds = value("--limit").and_then(|s| s.parse().ok()).unwrap_or(SECONDS);
    let limits = Limits { time: Duration::from_secs(seconds), ..Limits::default() };
    let verbose = args.iter().any(|a| a == "-v");
    let list = value("--expected").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/piglit-failures.txt"),
        PathBuf::from,
    );
    let known = match expected(&list) {
        Ok(known) => known,
        Err(message) => {
            eprintln!("piglit: {message}");
            return ExitCode::FAILURE;
        }
    };
    let mut files = Vec::new();
    walk(&folder, 0, &mut files);
    files.sort();
    let name = |path: &Path| path.strip_prefix(&folder).unwrap_or(path).to_string_lossy().into_owned();
    if let Some(only) = value("--only") {
        files.retain(|f| name(f).contains(only.as_str()));
    }
    let start = std::time::Instant::now();
    let verdicts: Vec<(String, Verdict)> = files
        .par_iter()
        .map(|path| {
            let name = name(path);
            let verdict = match std::fs::read(path) {
                Ok(bytes) => run_file(&name, &bytes, &Options { on, limits }),
                Err(e) => Verdict::Fail(e.to_string()),
            };
            if verbose {
                println!("{name}: {verdict:?}");
            }
            (name, verdict)
        })
        .collect();
    let mut counts = [0usize; 4];
    let mut reasons: BTreeMap<(usize, String), (usize, &str)> = BTreeMap::new();
    let understood = |name: &str| {
        let path = folder.join(name).to_string_lossy().into_owned();
        known.iter().find(|(end, _)| path.ends_with(end.as_str())).map(|(_, reason)| reason)
    };
    let (mut unexplained, mut explained, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (name, verdict) in &verdicts {
        let (kind, why) = match verdict {
            Verdict::Pass => (0, None),
            Verdict::Fail(why) => {
                match understood(name) {
                    Some(reason) => explained.push((name, reason)),
                    None => unexplained.push((name, why)),
                }
                (1, None)
            }
            Verdict::Refused(why) => (2, Some(why)),
            Verdict::Skip(why) => (3, Some(why)),
        };
        counts[kind] += 1;
        if kind != 1 && understood(name).is_some() {
            gone.push(name);
        }
        if let Some(why) = why {
            reasons.entry((kind, reason(why))).or_insert((0, name)).0 += 1;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|((kind, _), (n, _))| (*kind, std::cmp::Reverse(*n)));
    for ((kind, why), (n, name)) in reasons {
        println!("{n:6} {}: {why}  (for example {name})", ["", "", "refused", "skip"][kind]);
    }
    let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, reason) in &explained {
        *by_reason.entry(reason).or_default() += 1;
    }
    for (reason, n) in by_reason {
        println!("{n:6} fail, understood: {reason}");
    }
    for (name, why) in &unexplained {
        println!("FAIL {name}: {why}");
    }
    for name in &gone {
        println!("no longer fails: {name}");
    }
    let who = if interpret { "interpreter" } else { target.name() };
    println!(
        "piglit on {who}: {} files: {} pass, {} fail ({} understood), {} refused, {} skip; {:.0} s",
        verdicts.len(),
        counts[0],
        counts[1],
        explained.len(),
        counts[2],
        counts[3],
        start.elapsed().as_secs_f64()
    );
    if unexplained.is_empty() && gone.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
