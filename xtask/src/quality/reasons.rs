//! Programs with fewer threads than the reference's, and programs that go to memory where the reference's do not or do less: why, one
//! by one. What stands in the way of four threads is asked of the product itself (`--threads 4`).

use super::kempe;
use kempe_corpus::load::{Results, Row};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Most names that a reason is given for one by one; more are counted by collection.
const MOST_NAMES: usize = 24;

/// Programs by reason.
type Reasons = BTreeMap<String, Vec<String>>;

fn stat(row: &Row, name: &str) -> f64 {
    row.stats.get(name).copied().unwrap_or(0.0)
}

/// The part of the page for one target.
pub fn reasons(target: &str, folder: &Path, ours: &Results, reference: &Results) -> Result<String, String> {
    let of_reference: BTreeMap<(&str, &str, &str), &Row> = reference
        .rows
        .iter()
        .filter(|row| row.ok())
        .map(|row| ((row.path.as_str(), row.stage.as_str(), row.variant.as_str()), row))
        .collect();
    let (mut threads, mut memory) = (Reasons::new(), Reasons::new());
    for row in ours.rows.iter().filter(|row| row.ok() && row.target == target) {
        let Some(theirs) = of_reference.get(&(row.path.as_str(), row.stage.as_str(), row.variant.as_str()))
        else {
            continue;
        };
        let name = match row.variant.as_str() {
            "render" => row.path.clone(),
            other => format!("{} ({other})", row.path),
        };
        if stat(row, "threads") < stat(theirs, "threads") {
            let reason = why_fewer_threads(target, folder, row, theirs)?;
            threads.entry(reason).or_default().push(name.clone());
        }
        // (What the reference does for private arrays stands among its spills and fills.)
        let traffic = |row: &Row| stat(row, "spills") + stat(row, "fills") + stat(row, "scratch");
        let (mine, other) = (traffic(row), traffic(theirs));
        if mine > other {
            let reason = why_more_memory(row, theirs);
            memory.entry(reason).or_default().push(format!("{name} ({mine:.0}, reference {other:.0})"));
        }
    }
    let mut out = String::new();
    for (title, reasons) in [("fewer threads", &threads), ("more memory traffic", &memory)] {
        let count: usize = reasons.values().map(Vec::len).sum();
        let _ = writeln!(out, "\n### {target}: {title} than the reference's programs ({count})\n");
        for (reason, names) in reasons {
            let _ = writeln!(out, "- {} of them: {reason}: {}", names.len(), list(names));
        }
    }
    Ok(out)
}

fn list(names: &[String]) -> String {
    if names.len() <= MOST_NAMES {
        return names.join(", ");
    }
    let mut by: BTreeMap<&str, u32> = BTreeMap::new();
    for name in names {
        *by.entry(name.split('/').next().unwrap_or("")).or_default() += 1;
    }
    by.iter().map(|(collection, count)| format!("{count} of {collection}")).collect::<Vec<_>>().join(", ")
}

/// Why the program has 2 threads.
fn why_fewer_threads(target: &str, folder: &Path, row: &Row, theirs: &Row) -> Result<String, String> {
    let path = folder.join(&row.path);
    let args = ["compile", "-t", target, "--threads", "4", "--format", "json"].map(std::ffi::OsStr::new);
    let out = kempe(&[&args[..], &[path.as_os_str()]].concat())?;
    let value: serde_json::Value =
        serde_json::from_slice(&out.stdout).map_err(|e| format!("{}: {e}", row.path))?;
    let results = value["results"].as_array().map_or(&[][..], |list| list);
    let one =
        results.iter().find(|r| r["variant"] == row.variant.as_str() && r["entry"] == row.entry.as_str());
    let one = one.ok_or_else(|| format!("{}: no result with 4 threads", row.path))?;
    if one["status"] != "ok" {
        // (Numbers would make a reason of each program.)
        let message = one["message"].as_str().unwrap_or("no code");
        return Ok(match message.contains("register writes needs 2 threads") {
            true => "an access writes more registers than the queues have for one of 4 threads (rule 55); the reference does not keep to \
                     it"
                .to_owned(),
            false => message.to_owned(),
        });
    }
    let number = |name: &str| one["stats"][name].as_f64().unwrap_or(0.0);
    let unrolled = stat(row, "loops") < stat(theirs, "loops");
    Ok(match (number("spills") + number("fills") == 0.0, unrolled) {
        (true, _) => "fits with 4 threads only where the allocator may also use memory, which it does not try for 4 threads".to_owned(),
        (_, true) => {
            "would go to memory with 4 threads; loops that the reference keeps are unrolled".to_owned()
        }
        (_, false) => "would go to memory with 4 threads".to_owned(),
    })
}

/// Why the program stores and loads more.
fn why_more_memory(row: &Row, theirs: &Row) -> String {
    let private = stat(row, "scratch") > 0.0;
    let spilled = stat(row, "spills") + stat(row, "fills") > 0.0;
    let unrolled = stat(row, "loops") < stat(theirs, "loops");
    let mut reasons = Vec::new();
    if private {
        reasons.push("private arrays that stay in memory, for they are indexed by variables");
    }
    if spilled && unrolled {
        reasons.push("loops that the reference keeps are unrolled, and more values live at once");
    }
    if spilled && !unrolled {
        reasons.push("more values live at once with the same loops");
    }
    reasons.join("; ")
}
