//! What the tests of the command share: running it, and a folder of their own.

#![allow(dead_code, reason = "every test file is a crate of its own and uses a part")]

pub mod spirv;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the command gave.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("standard output is text")
    }

    /// Checks the exit code and that nothing was said on stderr.
    pub fn quiet(self) -> Ran {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        assert_eq!(self.stderr, "");
        self
    }

    /// Checks the exit code, that stderr says all of this, and that there was no panic.
    pub fn says(self, code: i32, parts: &[&str]) -> Ran {
        assert_eq!(self.code, Some(code), "stderr: {}\nstdout: {}", self.stderr, self.text());
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in: {}", self.stderr);
        }
        self
    }
}

/// A folder that is removed at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder");
        }
        std::fs::write(&path, contents).expect("a file for the test");
        path
    }

    /// Runs the command in the folder.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    /// The same with something on standard input.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kempe"))
            .args(args)
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // A command that does not read its input closes it early.
        let _ = child.stdin.take().expect("piped").write_all(input);
        let output = child.wait_with_output().expect("the command ends");
        Ran {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A line past the capturing of the test runner, so that a skipped test can be seen to be one.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
