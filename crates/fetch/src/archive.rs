//! The files of an archive that somebody wants: npm packages and crates (tar, gzip), wheels (zip), Debian packages (ar, with a tar in
//! xz, gzip or nothing).

use crate::sources::Kind;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// Path in the archive, contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Most bytes that are taken out of one archive.
const MAX_BYTES: u64 = 1 << 30;

/// Largest file that is taken.
const MAX_FILE: u64 = 256 << 20;

/// Which files of an archive are taken.
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a> {
    /// Starts of paths.
    pub starts: &'a [&'a str],
    /// What must be in a file.
    pub holds: &'a str,
}

impl Keep<'_> {
    fn path(&self, path: &str) -> bool {
        self.starts.iter().any(|k| path.starts_with(k))
    }

    fn contents(&self, bytes: &[u8]) -> bool {
        let mark = self.holds.as_bytes();
        mark.is_empty() || bytes.windows(mark.len()).any(|w| w == mark)
    }
}

/// All files that are to be taken. Crates and npm packages have one folder around everything, which is left out.
///
/// # Errors
/// When it is no such archive, or too much.
pub fn read(path: &Path, kind: Kind, keep: Keep) -> Result<Files, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    match kind {
        Kind::Npm | Kind::Crate => tar(flate2::read::GzDecoder::new(&bytes[..]), keep, true),
        Kind::Pypi => zip(&bytes, keep),
        Kind::Deb => {
            let (name, data) = member(&bytes, "data.tar").ok_or("there is no data.tar in it")?;
            match name.rsplit('.').next() {
                Some("xz") => tar(lzma_rust2::XzReader::new(data, false), keep, false),
                Some("gz") => tar(flate2::read::GzDecoder::new(data), keep, false),
                Some("tar") => tar(data, keep, false),
                _ => Err(format!("{name} is packed in a way that is not known")),
            }
        }
    }
}

/// A member of an `ar` archive whose name starts like this.
fn member<'a>(bytes: &'a [u8], start: &str) -> Option<(String, &'a [u8])> {
    const HEAD: usize = 60;
    let mut rest = bytes.strip_prefix(b"!<arch>\n")?;
    while rest.len() >= HEAD {
        let text = |range: std::ops::Range<usize>| {
            rest.get(range).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default().trim()
        };
        let name = text(0..16).trim_end_matches('/').to_owned();
        let size: usize = text(48..58).parse().ok()?;
        let body = rest.get(HEAD..HEAD.checked_add(size)?)?;
        if name.starts_with(start) {
            return Some((name, body));
        }
        rest = rest.get(HEAD + size + size % 2..)?;
    }
    None
}

/// Files that are taken, and how many bytes they are.
#[derive(Default)]
struct Taken {
    files: Files,
    total: u64,
}

impl Taken {
    fn take(&mut self, path: &str, from: &mut dyn Read, keep: Keep) -> Result<(), String> {
        let mut bytes = Vec::new();
        from.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| format!("{path}: {e}"))?;
        if keep.contents(&bytes) {
            self.total = self.total.saturating_add(bytes.len() as u64);
            if bytes.len() as u64 > MAX_FILE || self.total > MAX_BYTES {
                return Err(format!("{path} is too large"));
            }
            self.files.insert(path.to_owned(), bytes);
        }
        Ok(())
    }
}

fn tar(from: impl Read, keep: Keep, folder: bool) -> Result<Files, String> {
    let mut archive = tar::Archive::new(from);
    let mut out = Taken::default();
    for entry in archive.entries().map_err(|e| e.to_string())? {
        let mut entry = entry.map_err(|e| e.to_string())?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.strip_prefix("./").unwrap_or(&path);
        let path = if folder { path.split_once('/').map_or(path, |p| p.1) } else { path };
        if keep.path(path) {
            let path = path.to_owned();
            out.take(&path, &mut entry, keep)?;
        }
    }
    Ok(out.files)
}

fn zip(bytes: &[u8], keep: Keep) -> Result<Files, String> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let mut out = Taken::default();
    for n in 0..archive.len() {
        let mut entry = archive.by_index(n).map_err(|e| e.to_string())?;
        let path = entry.name().to_owned();
        if entry.is_file() && keep.path(&path) {
            out.take(&path, &mut entry, keep)?;
        }
    }
    Ok(out.files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tarred(files: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn keep<'a>(starts: &'a [&'a str]) -> Keep<'a> {
        Keep { starts, holds: "" }
    }

    #[test]
    fn archives_are_read() {
        let folder = std::env::temp_dir().join(format!("kempe-fetch-archive-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tar = tarred(&[("package/a/x.glsl", "one"), ("package/b/y", "two")]);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&tar).unwrap();
        let path = folder.join("a.tgz");
        std::fs::write(&path, gz.finish().unwrap()).unwrap();
        let files = read(&path, Kind::Npm, keep(&["a/"])).unwrap();
        assert_eq!(files, Files::from([("a/x.glsl".to_owned(), b"one".to_vec())]));
        assert!(read(&path, Kind::Npm, Keep { holds: "two", ..keep(&["a/"]) }).unwrap().is_empty());
        let data = tarred(&[("./usr/a", "one")]);
        let mut ar = b"!<arch>\n".to_vec();
        for (name, body) in [("debian-binary", &b"2.0"[..]), ("data.tar", &data)] {
            ar.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 0, body.len()).bytes());
            ar.extend_from_slice(body);
            ar.extend(vec![b'\n'; body.len() % 2]);
        }
        let path = folder.join("a.deb");
        std::fs::write(&path, &ar).unwrap();
        assert_eq!(read(&path, Kind::Deb, keep(&["usr/"])).unwrap().len(), 1);
        // Anything else is an error, never a panic.
        for end in (0..ar.len()).step_by(7) {
            std::fs::write(&path, &ar[..end]).unwrap();
            let _ = read(&path, Kind::Deb, keep(&["usr/"]));
            let _ = read(&path, Kind::Pypi, keep(&["usr/"]));
            let _ = read(&path, Kind::Crate, keep(&["usr/"]));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
