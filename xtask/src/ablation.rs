//! What each part of the allocator and each order of instructions brings: `cargo xtask ablation [PART...]`.
//!
//! The corpus is compiled by the product as a user has it, once with everything and once without each part
//! (`--without PART`, and `--colour graph` in the place of a part), and the results are compared program by program. Writes
//! the section "Ablations" of docs/allocator.md, or prints it when parts are named.

use crate::corpus;
use crate::quality::{kempe, load};
use kempe_corpus::compare::{Options, compare};
use kempe_corpus::load::Results;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

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
    if let Some(unknown) = only.iter().find(|part| !parts.contains(part)) {
        return Err(format!("`{unknown}` is none of the parts: {}", parts.join(", ")));
    }
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
        for section in compare(&all, &without, &Options::default())?.sections {
            let whole = section.groups.first().ok_or("nothing was compiled")?;
            let cell = |name: &str| match whole.statistics.iter().find(|s| s.name == name) {
                Some(s) => {
                    let change = s.total().map_or("–".to_owned(), |t| format!("{:+.2} %", 100.0 * t));
                    format!("{} → {}, {change} ({}, {})", s.before, s.after, s.helped, s.hurt)
                }
                None => "–".to_owned(),
            };
            let lost = match section.lost.len() {
                0 => String::new(),
                lost => format!("; {lost} programs LOST"),
            };
            let [instructions, memory, threads] = ["instructions", "spills+fills", "threads"].map(cell);
            let _ = writeln!(
                out,
                "| {part} | {} | {instructions} | {memory} | {threads}{lost} |",
                section.target
            );
        }
    }
    Ok(out)
}

/// A run of the whole corpus without a part.
fn compile(folder: &Path, part: Option<&str>) -> Result<Results, String> {
    let path = std::env::temp_dir().join(format!("kempe-ablation-{}.jsonl", std::process::id()));
    let mut args =
        vec!["corpus".as_ref(), "run".as_ref(), folder.as_os_str(), "-o".as_ref(), path.as_os_str()];
    args.extend(["-t", TARGETS, "--restart"].map(AsRef::<std::ffi::OsStr>::as_ref));
    match part {
        Some(GRAPH) => args.extend(["--colour", "graph"].map(AsRef::<std::ffi::OsStr>::as_ref)),
        Some(part) => args.extend(["--without", part].map(AsRef::<std::ffi::OsStr>::as_ref)),
        None => {}
    }
    // (Rows with errors make the exit code; what was not compiled at all, there is no file of.)
    kempe(&args)?;
    let results = load(&path);
    // What cannot be removed does no harm.
    _ = std::fs::remove_file(&path);
    results
}
