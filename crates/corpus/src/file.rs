//! The file of a run: a header line, then one line for each result.
//!
//! The lines are in the order of the jobs, whoever finished first, so a run that was interrupted left a correct start
//! of the file behind, at most with a torn line at its end. The last job is not kept: whether all its results are there
//! cannot be told.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Name and version of the format of the header; the other lines are of the format in it.
pub const KIND: &str = "kempe-corpus-run/1";

/// One shader for one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub file: String,
    pub target: String,
}

/// The first line of a run. Two runs with the same header are made the same way on the same machine.
pub fn header(schema: &str, version: &str, root: &Path, targets: &[&str], options: Value) -> Value {
    json!({
        "kind": KIND,
        "schema": schema,
        "version": version,
        "build": build(),
        "root": root.to_string_lossy(),
        "targets": targets,
        "options": options,
        "machine": machine(),
    })
}

/// Tells builds of the same version apart: a checksum (FNV-1a) of the program.
fn build() -> String {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", program.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

fn machine() -> Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    json!({ "os": std::env::consts::OS, "arch": std::env::consts::ARCH, "cpu": cpu, "cores": cores })
}

/// What is left of an earlier run.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// Jobs whose results are all there.
    pub jobs: usize,
    /// Bytes of the file that hold the header and these results.
    pub bytes: u64,
    /// Status of each of these results.
    pub rows: Vec<String>,
}

/// Reads what an earlier run left, for a run with this header and these jobs. `None`: no file, or one that ended
/// within its header.
///
/// # Errors
/// When the file is something else than a start of this run.
pub fn left(path: &Path, header: &Value, jobs: &[Job]) -> Result<Option<Left>, String> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut input = BufReader::new(file);
    let mut line = Vec::new();
    let mut read = |line: &mut Vec<u8>| {
        line.clear();
        input.read_until(b'\n', line).map_err(|error| error.to_string())?;
        Ok::<bool, String>(line.last() == Some(&b'\n'))
    };
    if !read(&mut line)? {
        let whole = format!("{header}\n");
        return if whole.as_bytes().starts_with(&line) { Ok(None) } else { Err("is not a run".to_owned()) };
    }
    let mut bytes = line.len() as u64;
    let first: Value = serde_json::from_slice(&line).unwrap_or_default();
    if first.get("kind") != Some(&Value::from(KIND)) {
        return Err("is not a run".to_owned());
    }
    if first != *header {
        let differs =
            header.as_object().into_iter().flatten().find(|(key, value)| first.get(*key) != Some(*value));
        let what = differs.map_or("something", |(key, _)| key);
        return Err(format!("is a run with another {what}"));
    }
    // Start of the job that the last row belongs to.
    let mut left = Left { jobs: 0, bytes, rows: Vec::new() };
    let (mut job, mut rows) = (None::<usize>, Vec::new());
    while read(&mut line)? {
        let Ok(row) = serde_json::from_slice::<Value>(&line) else { break };
        let of = |index: usize| {
            jobs.get(index).is_some_and(|j| row["file"] == j.file && row["target"] == j.target)
        };
        if !job.is_some_and(of) {
            // A job may have no results when its entry points are of stages that are not wanted.
            let next = (job.map_or(0, |j| j + 1)..jobs.len()).find(|&index| of(index));
            let Some(next) = next else {
                return Err(format!("does not fit the folder: {} is not where it was", row["file"]));
            };
            left.jobs = next;
            left.bytes = bytes;
            left.rows.append(&mut rows);
            job = Some(next);
        }
        rows.push(row["status"].as_str().unwrap_or_default().to_owned());
        bytes += line.len() as u64;
    }
    Ok(Some(left))
}
