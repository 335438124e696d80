//! The table of code quality, `docs/quality.md`: `cargo xtask quality [--run FILE] [--no-execution] [--print]`.
//!
//! Compiles the corpus with `kempe corpus run` (or takes a run that is there), puts it beside the reference figures, and
//! writes the page anew. What the reference compiles and we do not comes first, by reason: a compiler that gives up on
//! its hard shaders has better figures. Modules with other loop counts than the reference's are compared by what the
//! simulator executes, unrolled and as the source has its loops.

use crate::{corpus, judge, survey};
use kempe_corpus::compare::{Group, OneSided, Options, Section, TIME, compare};
use kempe_corpus::load::{Results, Row, parse};
use kempe_ir::exec::Inputs;
use kempe_ir::inputs::{Usage, Verdict, search};
use kempe_v3d::instr::Version;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Instructions, spills, fills, seconds of CPU; `None`: not run, or it never finished.
type Known = Option<(u32, u32, u32, f64)>;

/// Yardsticks and what the reference says of them on each target.
const YARDSTICKS: [(&str, [Known; 2]); 8] = [
    ("bitonic16", [None, None]),
    ("bitonic32", [None, None]),
    ("bitonic64", [Some((1723, 27, 52, 0.45)), Some((1602, 34, 64, 0.44))]),
    ("bitonic128", [Some((6327, 339, 644, 23.7)), Some((5939, 353, 671, 25.4))]),
    ("matvec16x2", [Some((852, 0, 0, 4.1)), Some((695, 0, 0, 4.5))]),
    ("matvec32x2", [Some((3295, 33, 48, 296.0)), None]),
    ("matvec32x4", [None, None]),
    ("mat32", [None, None]),
];

fn ratio(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |v| format!("{v:.3}"))
}

pub fn run(args: &[String]) -> ExitCode {
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1)).cloned();
    let flag = |name: &str| args.iter().any(|a| a == name);
    let folder = corpus::shared().join("corpus/spv");
    if !folder.is_dir() {
        println!("quality: skipped: there is no corpus; set KEMPE_SHARED to the folder that holds `corpus`");
        return ExitCode::SUCCESS;
    }
    match page(&folder, value("--run").map(PathBuf::from), !flag("--no-execution")) {
        Ok(text) if flag("--print") => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Ok(text) => {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/quality.md");
            match std::fs::write(&path, text) {
                Ok(()) => ExitCode::SUCCESS,
                Err(e) => {
                    eprintln!("{}: {e}", path.display());
                    ExitCode::FAILURE
                }
            }
        }
        Err(e) => {
            eprintln!("quality: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the product, as a user has it.
fn kempe(args: &[&std::ffi::OsStr]) -> Result<std::process::Output, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command::new(cargo)
        .args(["run", "--release", "--quiet", "--package", "kempe-cli", "--"])
        .args(args)
        .output()
        .map_err(|e| format!("cargo cannot be started: {e}"))
}

fn load(path: &Path) -> Result<Results, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&path.display().to_string(), &text).map_err(|e| format!("{}: {e}", path.display()))
}

fn page(folder: &Path, run: Option<PathBuf>, execution: bool) -> Result<String, String> {
    let run = match run {
        Some(path) => path,
        None => {
            let path = std::env::temp_dir().join(format!("kempe-quality-{}.jsonl", std::process::id()));
            eprintln!("compiling the corpus");
            let out = kempe(&[
                "corpus".as_ref(),
                "run".as_ref(),
                folder.as_os_str(),
                "-t".as_ref(),
                "v3d42,v3d71".as_ref(),
                "--restart".as_ref(),
                // One at a time: the figures are CPU times.
                "-j".as_ref(),
                "1".as_ref(),
                "-o".as_ref(),
                path.as_os_str(),
            ])?;
            if !matches!(out.status.code(), Some(0 | 4)) {
                return Err(String::from_utf8_lossy(&out.stderr).into_owned());
            }
            path
        }
    };
    let ours = load(&run)?;
    let mut out = String::from(INTRODUCTION);
    for version in Version::ALL {
        let name = version.name();
        let reference = load(&corpus::shared().join(format!("reference/mesa-24.3-{name}.tsv")))?;
        section(&mut out, name, &ours, &reference)?;
        if execution {
            let table = executed(version, &ours, &reference)?;
            out.push_str(&table);
        }
    }
    out.push_str(&yardsticks()?);
    Ok(out)
}

const INTRODUCTION: &str = "\
# Code quality

Made by `cargo xtask quality` from the whole public corpus; do not edit. The reference is Mesa 24.3 with the same
pipeline state and specialisation constants at the modules' defaults. *Ratios are ours / reference, geometric means;
below 1 is better.* Code size is compared only between variants with the same number of loops: the reference unrolls
where we may not, and the other way round. Modules that one side alone compiles count for no ratio; those that we lack
are listed. Spills and fills are what register allocation brought in; loads and stores of private arrays are `scratch`.
CPU time is the product's own measure, all checks included, one shader at a time; the reference's was taken on a busy
machine and includes the driver's pipeline, so read its ratio as an order of magnitude.

A few ncnn modules shrink to three instructions because their default constants make every invocation leave at once.
";

fn section(out: &mut String, target: &str, ours: &Results, reference: &Results) -> Result<(), String> {
    let compared = |equal_loops: bool| -> Result<Section, String> {
        let options = Options { target: Some(target.to_owned()), equal_loops, ..Options::default() };
        let mut sections = compare(reference, ours, &options)?.sections;
        sections.pop().ok_or_else(|| format!("there are no results for {target}"))
    };
    let (all, equal) = (compared(false)?, compared(true)?);
    let _ = writeln!(out, "\n## {target}\n");
    let _ = writeln!(
        out,
        "| collection | both | equal loops | instructions | inst and stalls | total instructions | 4 threads | spills + fills | scratch | CPU median ms | CPU total s |"
    );
    let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|");
    // The reference does not say it, so that it is in no comparison.
    let alone: BTreeSet<&str> = all.gained.iter().map(|g| g.file.as_str()).collect();
    let scratch = |collection: Option<&str>| -> f64 {
        ours.rows
            .iter()
            .filter(|r| r.ok() && r.target == target && !alone.contains(r.file.as_str()))
            .filter(|r| collection.is_none_or(|c| c == r.collection))
            .filter_map(|r| r.stats.get("scratch"))
            .sum()
    };
    let mut groups: Vec<(&Group, &Group)> = all.groups.iter().zip(&equal.groups).collect();
    // The sum of all comes last.
    groups.rotate_left(1);
    for (all, equal) in groups {
        let collection = all.name.strip_prefix("collection ");
        if all.pairs == 0 || collection.is_none() && all.name != "all" {
            continue;
        }
        let of = |group: &Group, stat: &str| group.statistics.iter().find(|s| s.name == stat).cloned();
        let geomean = |stat: &str| ratio(of(equal, stat).and_then(|s| s.geomean).map(|g| g.0));
        let total = |group: &Group, stat: &str| of(group, stat).map_or((0.0, 0.0), |s| (s.before, s.after));
        let instructions = total(equal, "instructions");
        let spills = total(all, "spills+fills");
        let threads = total(all, "threads");
        // A program has 2 threads or 4.
        let four = |threads: f64| (threads - 2.0 * all.pairs as f64) / 2.0;
        let time = of(all, TIME).map_or([0.0; 4], |s| [s.median_before, s.median_after, s.before, s.after]);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} → {} | {} → {} | {} → {} | {} | {:.2} → {:.2} | {:.2} → {:.2} |",
            collection.unwrap_or("**all**"),
            all.pairs,
            equal.compared,
            geomean("instructions"),
            geomean("inst_and_stalls"),
            instructions.0,
            instructions.1,
            four(threads.0),
            four(threads.1),
            spills.0,
            spills.1,
            scratch(collection),
            time[0] / 1e3,
            time[1] / 1e3,
            time[2] / 1e6,
            time[3] / 1e6,
        );
    }
    let mut gained: BTreeMap<&str, u32> = BTreeMap::new();
    for one in &all.gained {
        *gained.entry(&one.stage).or_default() += 1;
    }
    // Stage and reason -> variants.
    let mut missing: BTreeMap<(&str, String), Vec<&OneSided>> = BTreeMap::new();
    for one in &all.lost {
        let stage = if one.variant == "binning" { "vertex (binning)" } else { &one.stage };
        let why = one.message.strip_prefix("error: ").unwrap_or(&one.message);
        missing.entry((stage, survey::reason(why).replace('|', "/"))).or_default().push(one);
    }
    let gained: Vec<String> = gained.iter().map(|(stage, n)| format!("{n} {stage}")).collect();
    let _ = writeln!(
        out,
        "\nVariants that the reference does not compile and we do: {}.\n",
        if gained.is_empty() { "none".to_owned() } else { gained.join(", ") }
    );
    let count: usize = missing.values().map(Vec::len).sum();
    let _ = writeln!(out, "Variants of the reference without a counterpart, failures of ours: {count}.\n");
    let _ = writeln!(out, "| variants | stage | reason | collections |\n|---|---|---|---|");
    for ((stage, why), variants) in &missing {
        let mut of: BTreeMap<&str, u32> = BTreeMap::new();
        for one in variants {
            *of.entry(&one.collection).or_default() += 1;
        }
        let of: Vec<String> = of.iter().map(|(c, n)| format!("{c} {n}")).collect();
        let _ = writeln!(out, "| {} | {stage} | {why} | {} |", variants.len(), of.join(", "));
    }
    let mut compute: Vec<&str> = all
        .lost
        .iter()
        .filter(|one| one.stage == "compute")
        .map(|one| one.file.trim_start_matches("spv/"))
        .collect();
    if !compute.is_empty() {
        let _ = writeln!(out, "\n<details><summary>The compute modules among them</summary>\n");
        compute.sort_unstable();
        for file in compute {
            let _ = writeln!(out, "- {file}");
        }
        out.push_str("\n</details>\n");
    }
    Ok(())
}

/// What the simulator executes of the modules whose loop counts differ: as compiled, and without unrolling.
fn executed(version: Version, ours: &Results, reference: &Results) -> Result<String, String> {
    let loops = |row: &Row| row.stats.get("loops").copied().unwrap_or(0.0);
    let of_reference: BTreeMap<&str, f64> = reference
        .rows
        .iter()
        .filter(|r| r.ok() && r.stage == "compute")
        .map(|r| (r.path.as_str(), loops(r)))
        .collect();
    let differ: BTreeSet<&str> = ours
        .rows
        .iter()
        .filter(|r| r.ok() && r.target == version.name())
        .filter(|r| of_reference.get(r.path.as_str()).is_some_and(|n| *n != loops(r)))
        .map(|r| r.path.as_str())
        .collect();
    let entries = corpus::entries()?;
    let chosen: Vec<&corpus::Entry> =
        entries.iter().filter(|e| differ.contains(e.file.trim_start_matches("spv/"))).collect();
    eprintln!("running {} modules for {}", chosen.len(), version.name());
    let counts: Vec<Option<[u64; 2]>> = chosen.par_iter().map(|e| both_ways(e, version)).collect();
    let known: Vec<[u64; 2]> = counts.into_iter().flatten().filter(|c| c[0] > 0 && c[1] > 0).collect();
    let logs: f64 = known.iter().map(|c| (c[0] as f64 / c[1] as f64).ln()).sum();
    let fewer = known.iter().filter(|c| c[0] < c[1]).count();
    let more = known.iter().filter(|c| c[0] > c[1]).count();
    Ok(format!(
        "\n{} variants have another number of loops than the reference's. On the simulator, {} of them on the same random \
         inputs (the others have none within bounds that three seeds find): executed instructions with unrolling / without it, geometric mean {}; \
         fewer in {fewer}, more in {more}. The reference's own code is not at hand to be run.\n",
        differ.len(),
        known.len(),
        ratio((!known.is_empty()).then(|| (logs / known.len() as f64).exp())),
    ))
}

/// Executed instructions of a module as compiled and without unrolling, on the first inputs that are of use.
fn both_ways(e: &corpus::Entry, version: Version) -> Option<[u64; 2]> {
    let bytes = std::fs::read(&e.path).ok()?;
    let options = kempe_front::Options { spec: e.suggested.clone(), ..kempe_front::Options::default() };
    let modules = kempe_front::compile(&e.file, &bytes, kempe_front::Language::Spirv, &options).ok()?;
    let m = modules.first()?;
    let levels = [kempe_opt::Level::O2, kempe_opt::Level::O1];
    let made: Vec<judge::Made> = levels
        .iter()
        .filter_map(|&level| {
            judge::make(m, version, &judge::Options { level, ..judge::Options::default() }).ok()
        })
        .collect();
    let [unrolled, rolled] = made.as_slice() else { return None };
    let usage = Usage::scan(m);
    for seed in 0..3 {
        let mut counts = None;
        let both = |inputs: &Inputs| {
            judge::screen(m, inputs)?;
            let a = judge::compare(unrolled, inputs, seed % 5)?;
            let b = judge::compare(rolled, inputs, seed % 5)?;
            Ok([a.counts.iter().sum::<u64>(), b.counts.iter().sum::<u64>()])
        };
        let found = search(m, &usage, seed, |inputs| match both(inputs) {
            Ok(c) => {
                counts = Some(c);
                Verdict::Fine
            }
            Err(judge::Trouble::Input(kempe_ir::interp::Stop::Fault { fault, .. })) => {
                Verdict::Outside(fault)
            }
            Err(judge::Trouble::Input(stop)) => Verdict::Useless(stop.to_string()),
            Err(judge::Trouble::Setup(s) | judge::Trouble::Wrong(s)) => Verdict::Useless(s),
        });
        if found.is_ok() && counts.is_some() {
            return counts;
        }
    }
    None
}

/// The shaders made to hurt an allocator.
fn yardsticks() -> Result<String, String> {
    let folder = corpus::shared().join("yardsticks");
    let mut out = String::from(
        "\n## Yardsticks\n\nShaders made to hurt an allocator. In brackets: the reference, on one pipeline (`–`: not run or never finished).\n\n\
         | shader | target | instructions | threads | spills : fills | scratch | CPU ms |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, reference) in YARDSTICKS {
        let file = folder.join(format!("{name}.comp"));
        let run = kempe(&[
            "compile".as_ref(),
            file.as_os_str(),
            "-t".as_ref(),
            "v3d42,v3d71".as_ref(),
            "--format".as_ref(),
            "json".as_ref(),
        ])?;
        let value: serde_json::Value =
            serde_json::from_slice(&run.stdout).map_err(|e| format!("{name}: {e}"))?;
        for (result, reference) in value["results"].as_array().into_iter().flatten().zip(reference) {
            let stats = &result["stats"];
            let of = |text: Option<String>| format!("({})", text.unwrap_or_else(|| "–".to_owned()));
            if result["status"] != "ok" {
                let _ = writeln!(out, "| {name} | {} | {} |", result["target"], result["message"]);
                continue;
            }
            let _ = writeln!(
                out,
                "| {name} | {} | {} {} | {} | {} : {} {} | {} | {:.1} {} |",
                result["target"].as_str().unwrap_or(""),
                stats["instructions"],
                of(reference.map(|r| r.0.to_string())),
                stats["threads"],
                stats["spills"],
                stats["fills"],
                of(reference.map(|r| format!("{} : {}", r.1, r.2))),
                stats["scratch"],
                result["compile_us"].as_f64().unwrap_or(0.0) / 1000.0,
                of(reference.map(|r| format!("{:.0}", r.3 * 1000.0))),
            );
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, target: &str, status: &str, stats: &[(&str, f64)]) -> Row {
        Row {
            file: path.into(),
            path: path.into(),
            collection: path.split('/').next().unwrap().into(),
            entry: String::new(),
            stage: "compute".into(),
            variant: "render".into(),
            target: target.into(),
            status: status.into(),
            message: "error 12: no".into(),
            stats: stats.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
        }
    }

    /// Ratios are of pairs with equal loops, and what we lack is named.
    #[test]
    fn tables_are_right() {
        let stats = |n: f64, loops: f64| [("instructions", n), ("inst_and_stalls", n), ("loops", loops)];
        let results = |rows, table| Results { name: String::new(), rows, table, torn: false };
        let reference = results(
            vec![
                row("a/x", "", "ok", &stats(100.0, 0.0)),
                row("a/y", "", "ok", &stats(100.0, 0.0)),
                row("a/z", "", "ok", &stats(10.0, 1.0)),
                row("b/w", "", "ok", &stats(10.0, 0.0)),
                row("b/v", "", "error", &[]),
            ],
            true,
        );
        let ours = results(
            vec![
                row("a/x", "t", "ok", &stats(25.0, 0.0)),
                row("a/y", "t", "ok", &stats(100.0, 0.0)),
                row("a/z", "t", "ok", &stats(1000.0, 0.0)),
                row("a/x", "u", "ok", &stats(1.0, 0.0)),
                row("b/w", "t", "error", &[]),
                row("b/v", "t", "ok", &stats(5.0, 0.0)),
            ],
            false,
        );
        let mut out = String::new();
        section(&mut out, "t", &ours, &reference).unwrap();
        assert!(out.contains("| a | 3 | 2 | 0.500 | 0.500 | 200 → 125 |"), "{out}");
        assert!(out.contains("| 1 | compute | error #: no | b 1 |") && out.contains("- b/w"), "{out}");
        assert!(out.contains("and we do: 1 compute."), "{out}");
    }
}
