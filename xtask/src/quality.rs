//! The table of code quality, `docs/quality.md`: `cargo xtask quality [--run FILE] [--no-execution] [--print]`.
//!
//! Compiles the corpus with `kempe corpus run` (or takes a run that is there), puts it beside the reference figures, and
//! writes the page anew. What the reference compiles and we do not comes first, by reason: a compiler that gives up on
//! its hard shaders has better figures. Then where we have fewer threads or more memory traffic, with reasons; then each program of each
//! stage, collection by collection. Modules with other loop counts than the reference's are compared by what the
//! simulator executes, unrolled and as the source has its loops.

mod reasons;

use crate::{corpus, judge, stages, survey};
use kempe_corpus::compare::{Group, OneSided, Options, Section, TIME, compare};
use kempe_corpus::load::{Results, Row, parse};
use kempe_ir::Stage;
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
pub fn kempe(args: &[&std::ffi::OsStr]) -> Result<std::process::Output, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command::new(cargo)
        .args(["run", "--release", "--quiet", "--package", "kempe-cli", "--"])
        .args(args)
        .output()
        .map_err(|e| format!("cargo cannot be started: {e}"))
}

pub fn load(path: &Path) -> Result<Results, String> {
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
    let columns = 2 + COLUMNS.matches('|').count();
    let _ = write!(out, "\n## Summary\n\n| target | program | {COLUMNS}\n|{}\n", "---|".repeat(columns));
    let mut reasons = String::from("\n## Where ours is worse, and why\n");
    let (mut details, mut remarks) = (String::new(), String::from(REMARKS));
    remarks.push('\n');
    for version in Version::ALL {
        let name = version.name();
        let reference = load(&corpus::shared().join(format!("reference/mesa-24.3-{name}.tsv")))?;
        let part = section(name, &ours, &reference)?;
        out.push_str(&part.summary);
        details.push_str(&part.details);
        remarks.push_str(&given_less(name, &ours, &reference)?);
        remarks.push_str(&image_stores(name, &ours, &reference));
        reasons.push_str(&reasons::reasons(name, folder, &ours, &reference)?);
        if execution {
            let _ = writeln!(details, "\n### {name}: other loops\n");
            for stage in ["vertex", "fragment", "compute"] {
                details.push_str(&executed(version, stage, &ours, &reference)?);
            }
        }
    }
    if !execution {
        remarks.push_str(NOT_EXECUTED);
    }
    let _ = write!(out, "\n## Remarks\n\n{remarks}");
    out.push_str(&reasons);
    out.push_str(&details);
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
machine and includes the driver's pipeline, the generated counterpart of a graphics stage and, for a vertex shader, both of its
programs, so read its ratio as an order of magnitude. The two programs of a vertex shader have their time in the row of the first.
";

const REMARKS: &str = "\
A few ncnn modules shrink to three instructions because their default constants make every invocation leave at once.
Totals leave the collections of piglit out, which are tests.
";

const NOT_EXECUTED: &str = "\
- Variants with other loops than the reference's were not run for this page (`--no-execution`); without that option the simulator says what
  they execute with and without unrolling, graphics stages too.
";

/// What is looked at as one: name on the page, stage and variant of results.
const KINDS: [(&str, &str, &str); 4] = [
    ("vertex", "vertex", "render"),
    ("vertex, binning", "vertex", "binning"),
    ("fragment", "fragment", "render"),
    ("compute", "compute", "render"),
];

const COLUMNS: &str = "both | equal loops | instructions | inst and stalls | total instructions | 4 threads | spills + fills | scratch | CPU median ms | CPU total s |";

/// Results of one kind: of one target, if they have one.
fn of_kind(results: &Results, stage: &str, variant: &str, target: &str) -> Results {
    let wanted =
        |r: &&Row| r.stage == stage && r.variant == variant && (r.target.is_empty() || r.target == target);
    let mut rows: Vec<Row> = results.rows.iter().filter(wanted).cloned().collect();
    if !results.table && variant == "render" {
        // One time for all programs of a shader, as the reference has it.
        let mut times: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let others = |r: &&Row| r.stage == stage && r.variant != variant && r.target == target;
        for r in results.rows.iter().filter(others) {
            *times.entry((&r.path, &r.entry)).or_default() += r.stats.get(TIME).copied().unwrap_or(0.0);
        }
        for r in &mut rows {
            let more = times.get(&(r.path.as_str(), r.entry.as_str())).copied().unwrap_or(0.0);
            r.stats.entry(TIME.to_owned()).and_modify(|t| *t += more);
        }
    }
    Results { rows, ..results.clone() }
}

/// The cells of a row of a table: what `ours` is beside `reference` over some collections. `None`: there is no pair.
fn cells(
    target: &str,
    ours: &Results,
    reference: &Results,
    collections: &[&str],
    time: bool,
) -> Result<Option<String>, String> {
    if collections.is_empty() {
        return Ok(None);
    }
    let compared = |equal_loops: bool| -> Result<Section, String> {
        let options = Options {
            target: Some(target.to_owned()),
            equal_loops,
            collections: collections.iter().map(|&c| c.to_owned()).collect(),
            ..Options::default()
        };
        let mut sections = compare(reference, ours, &options)?.sections;
        sections.pop().ok_or_else(|| format!("there are no results for {target}"))
    };
    let (section, equal) = (compared(false)?, compared(true)?);
    let group = |s: &Section| s.groups.iter().find(|g| g.name == "all").cloned();
    let (Some(all), Some(equal)) = (group(&section), group(&equal)) else { return Ok(None) };
    if all.pairs == 0 {
        return Ok(None);
    }
    // The reference does not say it, so that it is in no comparison.
    let alone: BTreeSet<&str> = section.gained.iter().map(|g| g.file.as_str()).collect();
    let scratch: f64 = ours
        .rows
        .iter()
        .filter(|r| {
            r.ok() && !alone.contains(r.file.as_str()) && collections.contains(&r.collection.as_str())
        })
        .filter_map(|r| r.stats.get("scratch"))
        .sum();
    let of = |group: &Group, stat: &str| group.statistics.iter().find(|s| s.name == stat).cloned();
    let geomean = |stat: &str| ratio(of(&equal, stat).and_then(|s| s.geomean).map(|g| g.0));
    let total = |group: &Group, stat: &str| of(group, stat).map_or((0.0, 0.0), |s| (s.before, s.after));
    let instructions = total(&equal, "instructions");
    let spills = total(&all, "spills+fills");
    let threads = total(&all, "threads");
    // A program has 2 threads or 4.
    let four = |threads: f64| (threads - 2.0 * all.pairs as f64) / 2.0;
    let [before, after, sum_before, sum_after] =
        of(&all, TIME).map_or([0.0; 4], |s| [s.median_before, s.median_after, s.before, s.after]);
    let times = match time {
        true => format!(
            "{:.2} → {:.2} | {:.2} → {:.2}",
            before / 1e3,
            after / 1e3,
            sum_before / 1e6,
            sum_after / 1e6
        ),
        false => "– | –".to_owned(),
    };
    Ok(Some(format!(
        "{} | {} | {} | {} | {} → {} | {} → {} | {} → {} | {} | {times} |",
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
        scratch,
    )))
}

/// What one target has to say: its rows of the summary, and its part of the page.
#[derive(Default)]
struct Part {
    summary: String,
    details: String,
}

fn section(target: &str, ours: &Results, reference: &Results) -> Result<Part, String> {
    let mut part = Part::default();
    let out = &mut part.details;
    let _ = writeln!(out, "\n## {target}");
    // Stage and reason -> variants.
    let mut missing: BTreeMap<(&str, String), Vec<OneSided>> = BTreeMap::new();
    let mut gained: Vec<String> = Vec::new();
    let mut neither: Vec<String> = Vec::new();
    for (kind, stage, variant) in KINDS {
        let (a, b) = (of_kind(reference, stage, variant, target), of_kind(ours, stage, variant, target));
        if a.rows.is_empty() && b.rows.is_empty() {
            continue;
        }
        let options = Options { target: Some(target.to_owned()), ..Options::default() };
        // Without results of ours all of the reference's are missing.
        let mut both = compare(&a, &Results { table: b.rows.is_empty(), ..b.clone() }, &options)?.sections;
        let section = both.pop().ok_or_else(|| format!("there are no results for {target}"))?;
        let names: BTreeSet<&str> = a.rows.iter().map(|r| r.collection.as_str()).collect();
        let time = variant == "render";
        let (piglit, others): (Vec<&str>, Vec<&str>) = names.iter().partition(|n| n.starts_with("piglit"));
        let mut rows = String::new();
        if !b.rows.is_empty() {
            for (label, collections) in [(kind.to_owned(), others), (format!("{kind}: piglit"), piglit)] {
                if let Some(cells) = cells(target, &b, &a, &collections, time)? {
                    let _ = writeln!(part.summary, "| {target} | {label} | {cells}");
                }
            }
            for name in names {
                if let Some(cells) = cells(target, &b, &a, &[name], time)? {
                    let _ = writeln!(rows, "| {name} | {cells}");
                }
            }
        }
        if !rows.is_empty() {
            let columns = 1 + COLUMNS.matches('|').count();
            let _ = write!(
                out,
                "\n### {target}: {kind}\n\n| collection | {COLUMNS}\n|{}\n{rows}",
                "---|".repeat(columns)
            );
        }
        if !section.gained.is_empty() {
            gained.push(format!("{} {kind}", section.gained.len()));
        }
        if section.neither != 0 {
            neither.push(format!("{} {kind}", section.neither));
        }
        for mut one in section.lost {
            if one.message == "not there" {
                // The programs of a shader fail together.
                let path = one.file.trim_start_matches("spv/");
                let of_file = |r: &&Row| r.target == target && r.path == path && !r.ok();
                if let Some(row) = ours.rows.iter().find(of_file) {
                    one.message = format!("{}: {}", row.status, row.message);
                }
            }
            let why = one.message.strip_prefix("error: ").unwrap_or(&one.message);
            missing.entry((kind, survey::reason(why).replace('|', "/"))).or_default().push(one);
        }
    }
    let list = |list: &[String]| if list.is_empty() { "none".to_owned() } else { list.join("; ") };
    let count: usize = missing.values().map(Vec::len).sum();
    let _ = writeln!(
        out,
        "\n### {target}: what one side lacks\n\nVariants that the reference does not compile and we do: {}. Neither: {}.\n",
        list(&gained),
        list(&neither)
    );
    let _ = writeln!(out, "Variants of the reference without a counterpart, failures of ours: {count}.");
    let _ = writeln!(part.summary, "| {target} | *failures of ours* | {count} |");
    if count == 0 {
        return Ok(part);
    }
    let _ = writeln!(out, "\n| variants | program | reason | collections |\n|---|---|---|---|");
    let mut files: BTreeSet<&str> = BTreeSet::new();
    for ((kind, why), variants) in &missing {
        let mut of: BTreeMap<&str, u32> = BTreeMap::new();
        for one in variants {
            *of.entry(&one.collection).or_default() += 1;
            files.insert(one.file.trim_start_matches("spv/"));
        }
        let of: Vec<String> = of.iter().map(|(c, n)| format!("{c} {n}")).collect();
        let _ = writeln!(out, "| {} | {kind} | {why} | {} |", variants.len(), of.join(", "));
    }
    let _ = writeln!(out, "\n<details><summary>Their modules</summary>\n");
    for file in files {
        let _ = writeln!(out, "- {file}");
    }
    out.push_str("\n</details>\n");
    Ok(part)
}

/// Vertex rows for which the reference's two programs have the same size: its generated counterpart reads no output there.
fn given_less(target: &str, ours: &Results, reference: &Results) -> Result<String, String> {
    let sizes = |variant: &str| -> BTreeMap<&str, f64> {
        let rows = reference.rows.iter().filter(|r| r.ok() && r.stage == "vertex" && r.variant == variant);
        rows.filter_map(|r| Some((r.path.as_str(), *r.stats.get("instructions")?))).collect()
    };
    let (render, binning) = (sizes("render"), sizes("binning"));
    let alike: BTreeSet<&str> = render
        .iter()
        .filter(|(path, n)| binning.get(*path).is_some_and(|b| (b - **n).abs() <= 1.0))
        .map(|(path, _)| *path)
        .collect();
    let mut by: BTreeMap<&str, u32> = BTreeMap::new();
    for path in &alike {
        *by.entry(path.split('/').next().unwrap_or("")).or_default() += 1;
    }
    let by: Vec<String> = by.iter().map(|(c, n)| format!("{c} {n}")).collect();
    let mut ratios = String::new();
    for (what, keep) in [("those", true), ("the others", false)] {
        let choose = |results: &Results| {
            let mut results = of_kind(results, "vertex", "render", target);
            results
                .rows
                .retain(|r| alike.contains(r.path.as_str()) == keep && !r.collection.starts_with("piglit"));
            results
        };
        let (a, b) = (choose(reference), choose(ours));
        if a.rows.is_empty() || b.rows.is_empty() {
            continue;
        }
        let options = Options { target: Some(target.to_owned()), equal_loops: true, ..Options::default() };
        let mut sections = compare(&a, &b, &options)?.sections;
        let all = sections.pop().and_then(|s| s.groups.into_iter().next());
        let Some(all) = all else { continue };
        let statistic = all.statistics.iter().find(|s| s.name == "instructions");
        let _ = write!(
            ratios,
            " Over {what} without piglit ({} pairs with equal loops) the geometric mean is {}.",
            all.compared,
            ratio(statistic.and_then(|s| s.geomean).map(|g| g.0))
        );
    }
    Ok(format!(
        "- {target}: in {} of {} vertex shaders the reference's program has the size of its binning program, within one instruction ({}): \
         nothing reads their outputs in the generated counterpart (or they have none), so the reference was given less to do; \
         we write all outputs that a shader has.{ratios}\n",
        alike.len(),
        render.len(),
        by.join(", ")
    ))
}

/// What image stores cost in threads.
fn image_stores(target: &str, ours: &Results, reference: &Results) -> String {
    let four = |results: &Results| {
        let rows = results.rows.iter().filter(|r| r.ok() && r.collection == "piglit-comp");
        rows.filter(|r| r.target.is_empty() || r.target == target)
            .filter(|r| r.stats.get("threads") == Some(&4.0))
            .count()
    };
    format!(
        "- {target}: programs of `piglit-comp` with 4 threads: {} → {}. A store of a whole texel to a 2D image needs 6 register writes, and \
         16 / threads of them may be waiting (rule 55), so 2 threads are all that the rule allows. The reference runs them at 4.\n",
        four(reference),
        four(ours)
    )
}

/// What the simulator executes of the modules whose loop counts differ: as compiled, and without unrolling.
fn executed(version: Version, stage: &str, ours: &Results, reference: &Results) -> Result<String, String> {
    let loops = |row: &Row| row.stats.get("loops").copied().unwrap_or(0.0);
    let wanted = |r: &&Row| r.ok() && r.stage == stage && r.variant == "render";
    let of_reference: BTreeMap<&str, f64> =
        reference.rows.iter().filter(wanted).map(|r| (r.path.as_str(), loops(r))).collect();
    let differ: BTreeSet<&str> = ours
        .rows
        .iter()
        .filter(wanted)
        .filter(|r| r.target == version.name())
        .filter(|r| of_reference.get(r.path.as_str()).is_some_and(|n| *n != loops(r)))
        .map(|r| r.path.as_str())
        .collect();
    let entries = corpus::entries()?;
    let chosen: Vec<&corpus::Entry> =
        entries.iter().filter(|e| differ.contains(e.file.trim_start_matches("spv/"))).collect();
    if chosen.is_empty() {
        return Ok(String::new());
    }
    eprintln!("running {} {stage} modules for {}", chosen.len(), version.name());
    let counts: Vec<Option<[u64; 2]>> = chosen.par_iter().map(|e| both_ways(e, version)).collect();
    let known: Vec<[u64; 2]> = counts.into_iter().flatten().filter(|c| c[0] > 0 && c[1] > 0).collect();
    let logs: f64 = known.iter().map(|c| (c[0] as f64 / c[1] as f64).ln()).sum();
    let fewer = known.iter().filter(|c| c[0] < c[1]).count();
    let more = known.iter().filter(|c| c[0] > c[1]).count();
    Ok(format!(
        "- {stage}: {} variants have another number of loops than the reference's. On the simulator, {} of them on the same random \
         inputs (the others have none within bounds that three seeds find): executed instructions with unrolling / without it, geometric mean {}; \
         fewer in {fewer}, more in {more}. The reference's own code is not at hand to be run.\n",
        differ.len(),
        known.len(),
        ratio((!known.is_empty()).then(|| (logs / known.len() as f64).exp())),
    ))
}

/// Executed instructions of a module as compiled and without unrolling, on the first inputs that are of use.
fn both_ways(e: &corpus::Entry, version: Version) -> Option<[u64; 2]> {
    let m = e.module().ok()?;
    let levels = [kempe_opt::Level::O2, kempe_opt::Level::O1];
    let made: Vec<judge::Made> = levels
        .iter()
        .filter_map(|&level| {
            judge::make(&m, version, &judge::Options { level, ..judge::Options::default() }).ok()
        })
        .collect();
    let [unrolled, rolled] = made.as_slice() else { return None };
    let usage = Usage::scan(&m);
    for seed in 0..3 {
        let mut counts = None;
        let count = |made: &judge::Made, inputs: &Inputs| match m.stage {
            Stage::Compute => judge::compare(made, inputs, seed % 5).map(|a| a.counts.iter().sum::<u64>()),
            _ => stages::executed(made, inputs, seed % 5),
        };
        let both = |inputs: &Inputs| -> Result<_, judge::Trouble> {
            judge::screen(&m, inputs)?;
            Ok([count(unrolled, inputs)?, count(rolled, inputs)?])
        };
        let found = search(&m, &usage, seed, |inputs| match both(inputs) {
            Ok(c) => {
                counts = Some(c);
                Verdict::Fine
            }
            Err(t) => t.verdict(),
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

    fn results(rows: Vec<Row>, table: bool) -> Results {
        Results { name: String::new(), rows, table, torn: false }
    }

    /// Ratios are of pairs with equal loops, and what we lack is named.
    #[test]
    fn tables_are_right() {
        let stats = |n: f64, loops: f64| [("instructions", n), ("inst_and_stalls", n), ("loops", loops)];
        let reference = results(
            vec![
                row("a/x", "", "ok", &stats(100.0, 0.0)),
                row("a/y", "", "ok", &stats(100.0, 0.0)),
                row("a/z", "", "ok", &stats(10.0, 1.0)),
                row("b/w", "", "ok", &stats(10.0, 0.0)),
                row("b/v", "", "error", &[]),
                row("piglit/x", "", "ok", &stats(10.0, 0.0)),
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
                row("piglit/x", "t", "ok", &stats(20.0, 0.0)),
            ],
            false,
        );
        let part = section("t", &ours, &reference).unwrap();
        let out = &part.details;
        assert!(out.contains("| a | 3 | 2 | 0.500 | 0.500 | 200 → 125 |"), "{out}");
        assert!(out.contains("| 1 | compute | error #: no | b 1 |") && out.contains("- b/w"), "{out}");
        assert!(out.contains("and we do: 1 compute."), "{out}");
        let out = &part.summary;
        assert!(out.contains("| t | compute | 3 | 2 | 0.500 |"), "{out}");
        assert!(out.contains("| t | compute: piglit | 1 | 1 | 2.000 |"), "{out}");
        assert!(out.contains("| t | *failures of ours* | 1 |"), "{out}");
    }

    /// The programs of a vertex shader are compared one by one, their time is one.
    #[test]
    fn programs_of_vertex_shaders() {
        let one = |path: &str, target: &str, variant: &str, n: f64| Row {
            stage: "vertex".into(),
            variant: variant.into(),
            ..row(path, target, "ok", &[("instructions", n), ("loops", 0.0), (TIME, 1000.0 * n)])
        };
        let reference = results(
            vec![
                one("a/x", "", "render", 20.0),
                one("a/x", "", "binning", 20.0),
                one("a/y", "", "render", 20.0),
                one("a/y", "", "binning", 10.0),
                one("a/z", "", "binning", 10.0),
            ],
            true,
        );
        let mut ours = results(
            vec![
                one("a/x", "t", "render", 30.0),
                one("a/x", "t", "binning", 10.0),
                one("a/y", "t", "render", 10.0),
                one("a/y", "t", "binning", 5.0),
            ],
            false,
        );
        ours.rows.push(Row { stage: "vertex".into(), ..row("a/z", "t", "error", &[]) });
        let part = section("t", &ours, &reference).unwrap();
        assert!(part.summary.contains("| t | vertex | 2 | 2 | 0.866 |"), "{}", part.summary);
        assert!(part.summary.contains("| 20.00 → 27.50 | 0.04 → 0.06 |"), "{}", part.summary);
        assert!(part.summary.contains("| t | vertex, binning | 2 | 2 | 0.500 |"), "{}", part.summary);
        assert!(part.details.contains("| 1 | vertex, binning | error #: no | a 1 |"), "{}", part.details);
        let text = given_less("t", &ours, &reference).unwrap();
        assert!(text.contains("in 1 of 2 vertex shaders") && text.contains("(a 1)"), "{text}");
        assert!(text.contains("(1 pairs with equal loops) the geometric mean is 0.500."), "{text}");
    }
}
