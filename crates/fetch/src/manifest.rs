//! The list of modules: what was made, and what is wanted.
//!
//! Tab-separated, with a line of column names: file, collection, package, version, original (the file in the package, with
//! defines or features), language, stage, sha256 and size of the module, features.

use crate::features;
use crate::recipes::Candidate;
use crate::sources::Collection;
use std::collections::BTreeSet;
use std::path::Path;

const COLUMNS: [&str; 10] = [
    "file",
    "collection",
    "package",
    "version",
    "original",
    "language",
    "stage",
    "sha256",
    "size",
    "features",
];

/// A module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Row {
    /// Below the folder: `spv/COLLECTION/NAME.STAGE.spv`.
    pub file: String,
    pub collection: String,
    /// With the registry: `npm:three`.
    pub package: String,
    pub version: String,
    pub original: String,
    pub language: String,
    pub stage: String,
    pub sha256: String,
    pub size: u64,
    pub features: String,
}

/// A row of a manifest that says what is wanted.
pub type Wanted = Row;

impl Row {
    /// The same for a recipe.
    pub fn candidate(&self) -> Candidate {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".spv").unwrap_or(name);
        let name = name.strip_suffix(&format!(".{}", self.stage)).unwrap_or(name);
        Candidate { name: name.to_owned(), original: self.original.clone(), stage: self.stage.clone() }
    }
}

/// # Errors
/// The first line that is none.
pub fn read(text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let at = |name: &str| {
        head.iter().position(|h| *h == name).ok_or_else(|| format!("there is no column `{name}`"))
    };
    let places: Vec<usize> = COLUMNS.iter().map(|c| at(c)).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for (n, line) in lines.enumerate().filter(|l| !l.1.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let get = |k: usize| cells.get(places[k]).copied().unwrap_or_default().to_owned();
        let size = get(8).parse().map_err(|_| format!("line {}: the size is no number", n + 2))?;
        rows.push(Row {
            file: get(0),
            collection: get(1),
            package: get(2),
            version: get(3),
            original: get(4),
            language: get(5),
            stage: get(6),
            sha256: get(7),
            size,
            features: get(9),
        });
    }
    Ok(rows)
}

pub fn write(rows: &[Row]) -> String {
    let mut out = COLUMNS.join("\t");
    out.push('\n');
    for r in rows {
        let size = r.size.to_string();
        let cells = [
            &r.file,
            &r.collection,
            &r.package,
            &r.version,
            &r.original,
            &r.language,
            &r.stage,
            &r.sha256,
            &size,
            &r.features,
        ];
        out.push_str(&cells.map(|c| c.replace(['\t', '\n', '\r'], " ")).join("\t"));
        out.push('\n');
    }
    out
}

/// What a part depends on: this version of the tool, the packages, and the choice.
pub fn stamp(collection: &Collection, wanted: Option<&[&Wanted]>) -> String {
    let mut out = format!("{} {}\n", env!("CARGO_PKG_VERSION"), collection.name);
    for source in collection.sources {
        out.push_str(&format!("{} {} {}\n", source.package, source.version, source.sha256));
    }
    match wanted {
        None => out.push_str("everything\n"),
        Some(list) => {
            for w in list {
                out.push_str(&format!("{}\t{}\n", w.file, w.original));
            }
        }
    }
    out
}

/// Only the first of modules that differ in names and lines at most; the files of the others are removed.
pub fn distinct(folder: &Path, rows: Vec<Row>) -> Vec<Row> {
    let mut seen = BTreeSet::new();
    let new = |row: &Row| {
        let path = folder.join(&row.file);
        let bare = std::fs::read(&path).ok().and_then(|bytes| features::bare(&bytes));
        let first = bare.is_none_or(|hash| seen.insert(hash));
        if !first {
            // What stays behind is not in the list; that it cannot be removed does no harm.
            let _ = std::fs::remove_file(&path);
        }
        first
    };
    rows.into_iter().filter(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_both_ways() {
        let row = Row {
            file: "spv/c/a.b.frag.spv".to_owned(),
            collection: "c".to_owned(),
            stage: "frag".to_owned(),
            original: "x y".to_owned(),
            size: 12,
            ..Row::default()
        };
        assert_eq!(read(&write(std::slice::from_ref(&row))), Ok(vec![row.clone()]));
        assert_eq!(row.candidate().name, "a.b");
        assert!(read("file\tstage\n").is_err() && read("").is_err());
        assert!(read(&write(&[row]).replace("\t12\t", "\tx\t")).is_err());
    }
}
