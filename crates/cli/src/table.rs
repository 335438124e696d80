//! Results as tables for people.

use kempe::Variant;
use kempe::compile::{CompileResult, Status};
use std::time::Duration;

/// Columns side by side, each as wide as its widest cell; the columns from `right` on are numbers.
pub fn align(rows: &[Vec<String>], right: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|row| row.get(c)).map(|s| s.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            if c != 0 {
                line.push_str("  ");
            }
            if c >= right {
                line.push_str(&pad);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&pad);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What the code of each result costs. Nothing if nothing compiled.
pub fn results(results: &[CompileResult]) -> String {
    if results.iter().all(|r| r.status != Status::Ok) {
        return String::new();
    }
    let head = [
        "file", "entry", "target", "inst", "threads", "loops", "uniforms", "temps", "spills", "fills",
        "scratch", "stalls", "nops", "cycles", "ms",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for result in results {
        let target = match result.variant {
            Variant::Render => result.target.to_owned(),
            other => format!("{} {}", result.target, other.name()),
        };
        let mut row = vec![result.file.clone(), result.entry.clone(), target];
        match &result.artifact {
            Some(artifact) => {
                let s = &artifact.stats;
                let counts = [
                    s.instructions,
                    s.threads,
                    s.loops,
                    s.uniforms,
                    s.max_temps,
                    s.spills,
                    s.fills,
                    s.scratch,
                    s.sfu_stalls,
                    s.nops,
                ];
                row.extend(counts.map(|n| n.to_string()));
                row.push(s.cycles.to_string());
                row.push(format!("{:.1}", result.compile_us as f64 / 1000.0));
            }
            None => row.push(result.status.name().to_owned()),
        }
        rows.push(row);
    }
    align(&rows, 3)
}

/// Where the time went, over all results.
pub fn passes(results: &[CompileResult]) -> String {
    let mut sums: Vec<(&str, Duration, u32)> = Vec::new();
    for pass in results.iter().flat_map(|r| &r.passes) {
        match sums.iter_mut().find(|sum| sum.0 == pass.name) {
            Some(sum) => {
                sum.1 += pass.time;
                sum.2 += pass.runs;
            }
            None => sums.push((pass.name, pass.time, pass.runs)),
        }
    }
    let all: Duration = sums.iter().map(|sum| sum.1).sum();
    let mut rows = vec![["pass", "runs", "us", "%"].map(str::to_owned).to_vec()];
    let row = |name: &str, runs: String, time: Duration| {
        let share = 100.0 * time.as_secs_f64() / all.as_secs_f64().max(1e-12);
        vec![name.to_owned(), runs, time.as_micros().to_string(), format!("{share:.1}")]
    };
    rows.extend(sums.iter().map(|&(name, time, runs)| row(name, runs.to_string(), time)));
    rows.push(row("all", String::new(), all));
    align(&rows, 1)
}
