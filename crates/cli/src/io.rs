//! Reading files and writing results.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// Most bytes of an input file: more is surely a mistake.
const MAX_INPUT: u64 = 256 << 20;

/// Everything in a file, or in standard input for `-`. The error is a message without the name of the file.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limited = |input: &mut dyn Read, bytes: &mut Vec<u8>| {
        input.take(MAX_INPUT + 1).read_to_end(bytes).map_err(|e| reason(&e))
    };
    if path == Path::new("-") {
        limited(&mut std::io::stdin().lock(), &mut bytes)?;
    } else {
        // Opening a directory works on some systems, reading it does not.
        if path.is_dir() {
            return Err("is a directory".to_owned());
        }
        limited(&mut File::open(path).map_err(|e| reason(&e))?, &mut bytes)?;
    }
    if bytes.len() as u64 > MAX_INPUT {
        return Err(format!("is larger than {} MiB", MAX_INPUT >> 20));
    }
    Ok(bytes)
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Writes a file. The error is a message without the name of the file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|e| reason(&e))
}

/// Writes to standard output. When the reader has gone away (`kempe … | head`) nobody wants the rest.
pub fn out(bytes: &[u8]) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {}", reason(&e))),
        _ => Ok(()),
    }
}

/// A message about a file: `name: error: message`.
pub fn complain(name: &Path, message: &str) {
    eprintln!("{}: error: {message}", shown(name));
}

/// The name of a file in messages.
pub fn shown(path: &Path) -> String {
    if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() }
}
