//! A whole collection: jobs to workers, results to the file in the order of the jobs.

use crate::file::{self, Job};
use crate::pool::{Limits, Worker};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// What to run and where to.
pub struct Plan<'a> {
    pub jobs: Vec<Job>,
    /// Made by [`file::header`].
    pub header: Value,
    pub output: &'a Path,
    /// Start anew, whatever is in the file.
    pub restart: bool,
    /// Number of workers.
    pub workers: usize,
    pub limits: Limits,
    /// The command of a worker.
    pub program: &'a (dyn Fn() -> Command + Sync),
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Summary {
    /// Jobs that were already done.
    pub kept: usize,
    /// Number of results by status, those kept included.
    pub by_status: BTreeMap<String, usize>,
}

/// Runs whatever is not done yet.
///
/// # Errors
/// When the file is not a start of this run, cannot be written, or no worker can be started.
pub fn run(plan: &Plan) -> Result<Summary, String> {
    let here = |message: String| format!("{}: {message}", plan.output.display());
    let left = match plan.restart {
        true => None,
        false => file::left(plan.output, &plan.header, &plan.jobs)
            .map_err(|message| here(format!("{message}; --restart overwrites it")))?,
    };
    let io = |error: std::io::Error| here(error.to_string());
    let mut output =
        OpenOptions::new().create(true).write(true).truncate(left.is_none()).open(plan.output).map_err(io)?;
    let mut summary = Summary::default();
    let mut first = 0;
    if let Some(left) = left {
        output.set_len(left.bytes).map_err(io)?;
        output.seek(SeekFrom::End(0)).map_err(io)?;
        first = left.jobs;
        for status in left.rows {
            *summary.by_status.entry(status).or_default() += 1;
        }
    } else {
        output.write_all(format!("{}\n", plan.header).as_bytes()).map_err(io)?;
    }
    summary.kept = first;
    let bar = bar(plan.jobs.len(), first);
    let next = AtomicUsize::new(first);
    let stop = AtomicBool::new(false);
    let (send, results) = channel();
    let written = std::thread::scope(|scope| {
        for _ in 0..plan.workers.clamp(1, plan.jobs.len().max(1)) {
            let (send, next, stop) = (send.clone(), &next, &stop);
            scope.spawn(move || {
                let mut worker = Worker::new(plan.program, plan.limits);
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = plan.jobs.get(index) else { break };
                    let rows = worker.run(job);
                    let failed = rows.is_err();
                    if send.send((index, rows)).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(send);
        // Results that came before their turn.
        let mut early = BTreeMap::new();
        let mut turn = first;
        for (index, rows) in results {
            let rows: Vec<String> = match rows {
                Ok(rows) => rows,
                Err(message) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(message);
                }
            };
            bar.inc(1);
            early.insert(index, rows);
            while let Some(rows) = early.remove(&turn) {
                turn += 1;
                let mut text = String::new();
                for row in rows {
                    *summary.by_status.entry(status(&row)).or_default() += 1;
                    text.push_str(&row);
                    text.push('\n');
                }
                if let Err(error) = output.write_all(text.as_bytes()) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(io(error));
                }
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    written.map(|()| summary)
}

fn status(row: &str) -> String {
    let row: Value = serde_json::from_str(row).unwrap_or_default();
    row["status"].as_str().unwrap_or_default().to_owned()
}

/// Progress on stderr, if that is a terminal.
fn bar(jobs: usize, done: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), ProgressDrawTarget::stderr_with_hz(5));
    let form = "{bar:40} {pos}/{len}  {elapsed} gone, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    // What was done before says nothing about how fast it goes.
    bar.set_position(done as u64);
    bar.reset_eta();
    bar
}
