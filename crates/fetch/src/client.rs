//! Archives, by way of the registries' own clients: `npm pack`, `pip download`, `cargo info`, `apt-get download`.
//!
//! The clients know what their user has configured: other addresses, mirrors, proxies, certificates, passwords. What is not
//! installed is named, together with the file that may be put into the folder of archives instead. An archive counts only with the right
//! checksum; one that is there is never fetched again.

use crate::sources::{Kind, Source};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether a file is the archive.
fn is_it(path: &Path, source: &Source) -> bool {
    std::fs::read(path).is_ok_and(|bytes| sha256(&bytes) == source.sha256)
}

/// Where the archive of a package is: in `folder`, in `beside`, or fetched to `folder`.
///
/// # Errors
/// Why it cannot be had.
pub fn get(source: &Source, folder: &Path, beside: Option<&Path>, offline: bool) -> Result<PathBuf, String> {
    let kept = folder.join(source.archive);
    if is_it(&kept, source) {
        return Ok(kept);
    }
    if let Some(given) = beside.map(|folder| folder.join(source.archive))
        && is_it(&given, source)
    {
        return Ok(given);
    }
    let name = source.archive;
    if offline {
        return Err(format!("{name} is not there, and nothing is to be downloaded"));
    }
    // A folder of its own: what a client leaves behind when it is stopped is never taken for the archive.
    let scratch = folder.join(format!("{name}.part"));
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let fetched = download(source, &scratch).and_then(|path| {
        let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let is = sha256(&bytes);
        if is != source.sha256 {
            return Err(format!("{name} has the checksum {is}, not {}", source.sha256));
        }
        let part = scratch.join("whole");
        std::fs::write(&part, bytes).map_err(|e| format!("{}: {e}", part.display()))?;
        std::fs::rename(&part, &kept).map_err(|e| format!("{}: {e}", kept.display()))
    });
    let _ = std::fs::remove_dir_all(&scratch);
    fetched.map(|()| kept)
}

fn run(command: &mut Command, source: &Source) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| {
        format!(
            "{program} cannot be started ({e}): install it, or put {} into the folder of archives",
            source.archive
        )
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last =
        said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("nothing was said").trim().to_owned();
    Err(format!("{program} does not get {} {}: {last}", source.package, source.version))
}

/// Fetches into a folder. Gives the file.
fn download(source: &Source, folder: &Path) -> Result<PathBuf, String> {
    let Source { package, version, archive, .. } = *source;
    match source.kind {
        Kind::Npm => {
            run(
                Command::new("npm")
                    .args(["pack", "--silent", &format!("{package}@{version}")])
                    .current_dir(folder),
                source,
            )?;
        }
        Kind::Pypi => {
            let mut pip = Command::new("pip");
            pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.11"]);
            // The platforms that are in the name of the archive.
            let last = archive.trim_end_matches(".whl").rsplit('-').next().unwrap_or_default();
            for platform in last.split('.') {
                pip.args(["--platform", platform]);
            }
            run(pip.args(["-d", ".", &format!("{package}=={version}")]).current_dir(folder), source)?;
        }
        Kind::Deb => {
            let wanted = format!("{package}={version}");
            run(Command::new("apt-get").args(["download", "--quiet", &wanted]).current_dir(folder), source)?;
        }
        Kind::Crate => {
            // Reading about a package makes cargo keep its archive.
            run(
                Command::new("cargo")
                    .args(["info", "--quiet", &format!("{package}@{version}")])
                    .current_dir(folder),
                source,
            )?;
            return cargo_cache(archive);
        }
    }
    let found =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).find(|p| p.is_file());
    found.ok_or_else(|| format!("{package} {version}: the client left no file"))
}

/// The archive in cargo's cache of its registries.
fn cargo_cache(archive: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let user = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
        Some(PathBuf::from(user).join(".cargo"))
    });
    let cache = home.ok_or("there is no home folder")?.join("registry").join("cache");
    let registries = std::fs::read_dir(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let found = registries.flatten().map(|r| r.path().join(archive)).find(|p| p.is_file());
    found.ok_or_else(|| format!("{archive} is not in {}", cache.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_archive_counts() {
        let folder = std::env::temp_dir().join(format!("kempe-fetch-client-{}", std::process::id()));
        let beside = folder.join("beside");
        std::fs::create_dir_all(&beside).unwrap();
        let source = Source {
            kind: Kind::Npm,
            package: "p",
            version: "1",
            archive: "p-1.tgz",
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            licence: "",
        };
        assert_eq!(sha256(b"abc"), source.sha256);
        let get = || get(&source, &folder, Some(&beside), true);
        assert!(get().unwrap_err().contains("p-1.tgz is not there"));
        std::fs::write(beside.join("p-1.tgz"), "abd").unwrap();
        assert!(get().is_err());
        std::fs::write(beside.join("p-1.tgz"), "abc").unwrap();
        assert_eq!(get(), Ok(beside.join("p-1.tgz")));
        std::fs::write(folder.join("p-1.tgz"), "abc").unwrap();
        assert_eq!(get(), Ok(folder.join("p-1.tgz")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
