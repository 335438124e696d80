//! The end of a worker process: takes jobs from its standard input, compiles them, writes the results to its standard
//! output.
//!
//! Protocol, in lines. In: `{"file":…,"target":…}`. Out, for each job: `entries N` (about how many results there may
//! be, before the compile starts), `row {…}` for each result, then `done`, or `last` when the process ends after this
//! job because something was left running in it.

use crate::file::Job;
use crate::find;
use std::io::{BufRead, Write};
use std::sync::mpsc::channel;

/// What a job gave.
pub struct Done {
    /// Results, one JSON object each.
    pub rows: Vec<String>,
    /// Something may still run in this process: it is not used again.
    pub spent: bool,
}

/// For tests only: a worker whose file name contains the value of this variable hangs.
pub const TEST_HANG: &str = "KEMPE_TEST_HANG";

/// For tests only: a worker whose file name contains the value of this variable dies.
pub const TEST_CRASH: &str = "KEMPE_TEST_CRASH";

/// For tests only: a worker takes this many milliseconds more for each job.
pub const TEST_SLOW: &str = "KEMPE_TEST_SLOW";

/// Works until there are no more jobs. `compile` gets the job and what is in the file, or why it cannot be read.
///
/// # Errors
/// When the other side does not keep to the protocol.
pub fn serve(compile: impl Fn(&Job, Result<Vec<u8>, String>) -> Done) -> Result<(), String> {
    let (send, jobs) = channel();
    // Reads on its own, so that the end of the input, which is the end of whoever wants the results, ends a compile
    // too, however stuck it is.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if send.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let mut out = std::io::stdout().lock();
    for line in jobs {
        let job = parse(&line).ok_or_else(|| format!("`{line}` is no job"))?;
        let contents = read(&job.file);
        let entries = contents.as_ref().map_or(1, |bytes| find::entry_points(bytes));
        let mut say = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // Nobody listens any more: the same end as that of the input.
        if say(&format!("entries {entries}\n")).is_err() {
            break;
        }
        test_hooks(&job.file);
        let done = compile(&job, contents);
        let mut text = String::new();
        for row in &done.rows {
            text.push_str(&format!("row {row}\n"));
        }
        text.push_str(if done.spent { "last\n" } else { "done\n" });
        if say(&text).is_err() || done.spent {
            break;
        }
    }
    Ok(())
}

fn parse(line: &str) -> Option<Job> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    Some(Job { file: text("file")?, target: text("target")? })
}

/// Most bytes of a shader: more is surely a mistake.
const MAX_INPUT: u64 = 256 << 20;

fn read(file: &str) -> Result<Vec<u8>, String> {
    let size = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MAX_INPUT {
        return Err(format!("is larger than {} MiB", MAX_INPUT >> 20));
    }
    std::fs::read(file).map_err(|error| error.to_string())
}

fn test_hooks(file: &str) {
    let asked = |name: &str| std::env::var(name).is_ok_and(|part| !part.is_empty() && file.contains(&part));
    if asked(TEST_CRASH) {
        std::process::abort();
    }
    while asked(TEST_HANG) {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
    if let Some(millis) = std::env::var(TEST_SLOW).ok().and_then(|text| text.parse().ok()) {
        std::thread::sleep(std::time::Duration::from_millis(millis));
    }
}
