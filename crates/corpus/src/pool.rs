//! A worker process seen from outside: gives it a job, waits, and ends it when it takes too much.
//!
//! The worker keeps the limits itself, by CPU time and to the byte, as every compile does. The limits here are for
//! whatever that cannot stop, so they are wider.

use crate::file::Job;
use crate::find;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// What one shader may use, for each of its results.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub time: Duration,
    pub memory: u64,
}

/// CPU time for starting and reading, beside the limit.
const GRACE: Duration = Duration::from_secs(2);

/// A process that waits instead of computing uses no CPU time: this many times the limit may pass on the wall.
const WALL_FACTOR: u32 = 4;

/// Memory of a worker beside that of the shader.
const MEMORY_SLACK: u64 = 512 << 20;

/// How often the limits are looked at.
const POLL: Duration = Duration::from_millis(50);

/// Lines that may wait for being read.
const BACKLOG: usize = 64;

struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    fn start(program: &mut Command) -> Result<Process, String> {
        let child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("a worker process cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a worker process has no pipes".to_owned());
        };
        let (send, lines) = sync_channel(BACKLOG);
        // Ends with the process.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Process { child, stdin, lines })
    }

    fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A worker that is started when it is needed and again when it has died.
pub struct Worker<'a> {
    program: &'a (dyn Fn() -> Command + Sync),
    limits: Limits,
    process: Option<Process>,
}

impl<'a> Worker<'a> {
    /// `program` is the command of the worker.
    pub fn new(program: &'a (dyn Fn() -> Command + Sync), limits: Limits) -> Worker<'a> {
        Worker { program, limits, process: None }
    }

    /// The results of a job, whatever the worker does: one JSON object each.
    ///
    /// # Errors
    /// When there is no worker to be had.
    pub fn run(&mut self, job: &Job) -> Result<Vec<String>, String> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::start(&mut (self.program)())?,
        };
        let line = format!("{}\n", json!({ "file": job.file, "target": job.target }));
        // A worker that died meanwhile says so by its lines ending.
        let _ = process.stdin.write_all(line.as_bytes()).and_then(|()| process.stdin.flush());
        let start = Instant::now();
        let cpu_before = cpu_time(&process.child).unwrap_or_default();
        let (mut results, mut rows) = (1, Vec::new());
        loop {
            match process.lines.recv_timeout(POLL) {
                Ok(line) => match line.split_once(' ').unwrap_or((&line, "")) {
                    ("entries", count) => results = count.parse().unwrap_or(1),
                    ("row", row) => rows.push(row.to_owned()),
                    ("done", "") => {
                        self.process = Some(process);
                        return Ok(rows);
                    }
                    ("last", "") => {
                        process.kill();
                        return Ok(rows);
                    }
                    _ => {
                        process.kill();
                        let message = "the worker process said something that is no result";
                        return Ok(vec![stopped(job, "bug", message)]);
                    }
                },
                Err(RecvTimeoutError::Disconnected) => {
                    let message = format!("the compiler died: {}", end(process.child));
                    return Ok(vec![stopped(job, "bug", &message)]);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            // One more for finding out what there is to compile.
            let time = self.limits.time.saturating_mul(results + 1).saturating_add(GRACE);
            let cpu = cpu_time(&process.child).map(|cpu| cpu.saturating_sub(cpu_before));
            let over = if memory(&process.child).is_some_and(|m| m > self.limits.memory + MEMORY_SLACK) {
                format!("memory limit of {} MiB reached", self.limits.memory >> 20)
            } else if cpu.is_some_and(|cpu| cpu > time) || start.elapsed() > time.saturating_mul(WALL_FACTOR)
            {
                format!("time limit of {} s reached", self.limits.time.as_secs_f64())
            } else {
                continue;
            };
            process.kill();
            return Ok(vec![stopped(job, "limit", &format!("{over}, the compiler had to be killed"))]);
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }
}

/// The result of a job whose worker gave none.
fn stopped(job: &Job, status: &str, message: &str) -> String {
    json!({
        "file": job.file, "entry": "", "stage": find::stage_of(&job.file), "variant": "render", "target": job.target,
        "status": status, "message": message, "compile_us": 0, "front_us": 0, "attempts": 0,
    })
    .to_string()
}

/// How a process ended, in words.
fn end(mut child: Child) -> String {
    // Its output has ended; should it run on, nobody needs it.
    let _ = child.kill();
    match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}

/// CPU time that a process has used; `None` where the system does not tell.
fn cpu_time(child: &Child) -> Option<Duration> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // The name of the program, in parentheses, may hold spaces. User and system time are fields 14 and 15, in
    // hundredths of a second.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (next()? + next()?)))
}

/// Bytes of memory that a process holds; `None` where the system does not tell.
fn memory(child: &Child) -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
