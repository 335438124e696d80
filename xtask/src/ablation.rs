//! What each part of the allocator and each order of instructions brings: `cargo xtask ablation [PART...]`.
//!
//! The corpus is compiled by the product as a user has it, once with everything and once without each part
//! (`--without PART`, and `--colour graph` in the place of a part), and the results are compared program by program. Writes
//! the section "Ablations" of docs/allocator.md, or prints it when parts are named.

use crate::corpus;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What is counted of one program.
#[derive(Clone, Copy, Default)]
struct Counted {
    instructions: u64,
    memory: u64,
    threads: u64,
}

/// By target, then file, entry and variant.
type Run = BTreeMap<String, BTreeMap<String, Counted>>;

const TARGETS: &str = "v3d42,v3d71";
const GRAPH: &str = "(graph engine)";
const HEADING: &str = "## Ablations\n";

pub fn run(args: &[String]) -> ExitCode {
    let folder = corpus::shared().join("corpus/spv");
    if !folder.is_dir() {
        println!("ablation: skipped: there is no corpus; set KEMPE_SHARED to the folder that holds `corpus`");
        return ExitCode::SUCCESS;
    }
    match section(&folder, args) {
        Ok(text) if !args.is_empty() => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Ok(text) => match replace(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("ablation: {e}");
                ExitCode::FAILURE
            }
        },
        Err(e) => {
            eprintln!("ablation: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Puts the section into the page, at its end or where it is.
fn replace(section: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/allocator.md");
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (before, behind) = match page.split_once(HEADING) {
        Some((before, rest)) => (before.to_owned(), rest.find("\n## ").map_or("", |at| &rest[at + 1..])),
        None => (format!("{}\n\n", page.trim_end()), ""),
    };
    let gap = if behind.is_empty() { "" } else { "\n" };
    std::fs::write(&path, format!("{before}{section}{gap}{behind}"))
        .map_err(|e| format!("{}: {e}", path.display()))
}

fn section(folder: &Path, only: &[String]) -> Result<String, String> {
    let mut parts: Vec<String> = kempe::compile::CodeOptions::parts()
        .into_iter()
        .map(str::to_owned)
        .chain([GRAPH.to_owned()])
        .collect();
    if !only.is_empty() {
        parts.retain(|part| only.contains(part));
    }
    let all = compile(folder, None)?;
    let mut out = format!(
        "{HEADING}\nThe corpus compiled with everything, then without each part (`cargo xtask ablation`; `kempe --without PART`). In \
         brackets: programs that get better, worse, for lack of it. *Memory* is spills and fills; *threads* the sum over all programs.\n\n\
         | part left out | target | instructions | memory | threads |\n|---|---|---|---|---|\n"
    );
    for part in &parts {
        eprintln!("without {part}");
        let without = compile(folder, Some(part))?;
        for (target, before) in &all {
            let empty = BTreeMap::new();
            let after = without.get(target).unwrap_or(&empty);
            let cell = |of: fn(&Counted) -> u64| {
                let (mut old, mut new, mut better, mut worse) = (0u64, 0u64, 0, 0);
                for (name, b) in before {
                    let Some(a) = after.get(name) else { continue };
                    (old, new) = (old + of(b), new + of(a));
                    better += usize::from(of(a) < of(b));
                    worse += usize::from(of(a) > of(b));
                }
                let change = if old == 0 { 0.0 } else { 100.0 * (new as f64 - old as f64) / old as f64 };
                (format!("{old} → {new}, {change:+.2} %"), better, worse)
            };
            let (instructions, a, b) = cell(|c| c.instructions);
            let (memory, c, d) = cell(|c| c.memory);
            // (Fewer threads are worse.)
            let (threads, f, e) = cell(|c| c.threads);
            let lost = before.keys().filter(|name| !after.contains_key(*name)).count();
            let lost = if lost == 0 { String::new() } else { format!("; {lost} programs LOST") };
            let _ = writeln!(
                out,
                "| {part} | {target} | {instructions} ({a}, {b}) | {memory} ({c}, {d}) | {threads} ({e}, {f}){lost} |"
            );
        }
    }
    Ok(out)
}

fn compile(folder: &Path, part: Option<&str>) -> Result<Run, String> {
    let path: PathBuf = std::env::temp_dir().join(format!("kempe-ablation-{}.jsonl", std::process::id()));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--quiet", "--package", "kempe-cli", "--", "corpus", "run"]);
    command.arg(folder).args(["-t", TARGETS, "--restart", "-o"]).arg(&path);
    match part {
        Some(GRAPH) => _ = command.args(["--colour", "graph"]),
        Some(part) => _ = command.args(["--without", part]),
        None => {}
    }
    command.output().map_err(|e| format!("cargo cannot be started: {e}"))?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    // What cannot be removed does no harm.
    _ = std::fs::remove_file(&path);
    let mut run = Run::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).map_err(|e| format!("{}: {e}", path.display()))?;
        if row["status"] != "ok" {
            continue;
        }
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let count = |key: &str| row["stats"][key].as_u64().unwrap_or(0);
        let counted = Counted {
            instructions: count("instructions"),
            memory: count("spills") + count("fills"),
            threads: count("threads"),
        };
        let name = [text("file"), text("entry"), text("variant")].join(" ");
        run.entry(text("target").to_owned()).or_default().insert(name, counted);
    }
    if run.is_empty() {
        return Err(format!(
            "nothing was compiled{}",
            part.map_or(String::new(), |p| format!(" without {p}"))
        ));
    }
    Ok(run)
}
