//! `cargo xtask oracles`: prints `NAME passed/total` for every oracle file that the project can answer.
//!
//! The files are read where they lie: below `$KEMPE_SHARED`, else `../shared` beside the workspace. A missing file is
//! reported as skipped. One module per kind of oracle; a module adds its lines to [`all`].

mod agx;
mod disasm;
mod exec;

use crate::corpus;
use std::process::ExitCode;

/// How many failures of a line are shown.
const SHOWN: usize = 5;

/// The result of one line.
pub struct Tally {
    /// Cases that came out as the oracle says.
    pub passed: usize,
    /// All cases.
    pub total: usize,
    /// Descriptions of the first failures.
    pub failures: Vec<String>,
}

impl Tally {
    /// No case yet.
    pub fn new() -> Tally {
        Tally { passed: 0, total: 0, failures: Vec::new() }
    }

    /// Counts one case; the description is only made for the first failures.
    pub fn count(&mut self, passed: bool, describe: impl FnOnce() -> String) {
        self.total += 1;
        if passed {
            self.passed += 1;
        } else if self.failures.len() < SHOWN {
            self.failures.push(describe());
        }
    }
}

/// One line of output: a name, the file that it reads (relative to the shared folder) and what it does with its text.
pub struct Oracle {
    /// Name in the output.
    pub name: String,
    /// Path below the shared folder.
    pub file: String,
    /// Runs all cases of the file's text.
    pub run: Box<dyn Fn(&str) -> Tally>,
}

/// Every oracle that the project can answer.
fn all() -> Vec<Oracle> {
    let mut all = disasm::oracles();
    all.extend(exec::oracles());
    all.extend(agx::oracles());
    all
}

/// Runs the oracles whose name contains one of `names` (all without names). Fails if a case fails.
pub fn run(names: &[String]) -> ExitCode {
    let shared = corpus::shared();
    let mut good = true;
    for oracle in all() {
        if !names.is_empty() && !names.iter().any(|name| oracle.name.contains(name.as_str())) {
            continue;
        }
        let path = shared.join(&oracle.file);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                println!(
                    "{} skipped: {}: {error} (set KEMPE_SHARED to the folder that holds {})",
                    oracle.name,
                    path.display(),
                    oracle.file
                );
                continue;
            }
        };
        let tally = (oracle.run)(&text);
        println!("{} {}/{}", oracle.name, tally.passed, tally.total);
        for failure in &tally.failures {
            println!("    {failure}");
        }
        good &= tally.passed == tally.total;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
