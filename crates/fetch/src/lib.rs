//! The public corpus: real shaders out of published packages, assembled as their own engines assemble them.
//!
//! * [`sources`]: which packages, with versions and checksums, and which collection comes from which
//! * [`client`]: archives, through the registries' own clients
//! * [`archive`]: what is in them
//! * [`recipes`]: from the files of a package to complete programs
//! * [`make`]: programs to SPIR-V; [`opencl`]: kernels through external tools
//! * [`manifest`]: the list of what was made, and the choice of what to make; [`features`]: what a module needs
//!
//! The shaders belong to their authors; nothing of them is part of Kempe, a user fetches them.

pub mod archive;
pub mod client;
pub mod features;
pub mod make;
pub mod manifest;
pub mod opencl;
pub mod recipes;
pub mod sources;

use indicatif::{ProgressBar, ProgressStyle};
use manifest::{Row, Wanted};
use recipes::{Candidate, Package};
use sources::{Collection, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is to be fetched.
pub struct Plan {
    /// Everything goes here: `archives`, `src`, `spv`, `MANIFEST.tsv`.
    pub folder: PathBuf,
    /// Names of collections; empty: all.
    pub collections: Vec<String>,
    /// Archives that are there already, by the names that registries give them.
    pub archives: Option<PathBuf>,
    /// A manifest that says what is wanted of each package.
    pub wanted: Option<Vec<Wanted>>,
    /// Nothing is downloaded.
    pub offline: bool,
}

/// How one collection went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub collection: &'static str,
    /// Modules in the manifest.
    pub made: usize,
    /// Of these, how many were there from an earlier call.
    pub kept: bool,
    /// What was asked for, where a manifest says it.
    pub wanted: Option<usize>,
    /// Modules whose checksum is that of the given manifest.
    pub same: usize,
    /// What could not be assembled or compiled, and why.
    pub failed: Vec<(String, String)>,
    /// Why nothing was made.
    pub missing: Option<String>,
}

fn bar(len: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(len as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix:14} {bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}

/// Fetches, assembles, compiles, and writes the manifest. What is there from an earlier call stays: archives with the right
/// checksum, and collections that were made of the same choice.
///
/// # Errors
/// When a collection is not known, or the folder cannot be written.
pub fn fetch(plan: &Plan) -> Result<Vec<Outcome>, String> {
    let chosen: Vec<&Collection> = match plan.collections.as_slice() {
        [] => sources::COLLECTIONS.iter().collect(),
        names => names
            .iter()
            .map(|name| {
                let known = || sources::COLLECTIONS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
                let found = sources::COLLECTIONS.iter().find(|c| c.name == *name);
                found.ok_or_else(|| format!("`{name}` is no collection; there are {}", known()))
            })
            .collect::<Result<_, _>>()?,
    };
    let fail = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    for part in ["archives", "src", "spv", "parts"] {
        let path = plan.folder.join(part);
        std::fs::create_dir_all(&path).map_err(|e| fail(&path, e))?;
    }
    let archives = archives(plan, &chosen);
    let mut outcomes = Vec::new();
    for collection in chosen {
        outcomes.push(one(plan, collection, &archives)?);
    }
    let mut rows = Vec::new();
    for collection in sources::COLLECTIONS {
        let path = plan.folder.join("parts").join(format!("{}.tsv", collection.name));
        if let Ok(text) = std::fs::read_to_string(&path) {
            rows.extend(manifest::read(&text).map_err(|e| format!("{}: {e}", path.display()))?);
        }
    }
    let path = plan.folder.join("MANIFEST.tsv");
    std::fs::write(&path, manifest::write(&rows)).map_err(|e| fail(&path, e))?;
    Ok(outcomes)
}

/// All archives that the collections need: where they are, or why not.
fn archives(plan: &Plan, chosen: &[&Collection]) -> BTreeMap<&'static str, Result<PathBuf, String>> {
    let mut needed: Vec<&Source> = Vec::new();
    for source in chosen.iter().flat_map(|c| c.sources) {
        if !needed.iter().any(|s| s.archive == source.archive) {
            needed.push(source);
        }
    }
    let bar = bar(needed.len(), "archives");
    let mut out = BTreeMap::new();
    for source in needed {
        bar.set_message(source.archive);
        let folder = plan.folder.join("archives");
        out.insert(source.archive, client::get(source, &folder, plan.archives.as_deref(), plan.offline));
        bar.inc(1);
    }
    bar.finish_and_clear();
    out
}

fn one(
    plan: &Plan,
    collection: &'static Collection,
    archives: &BTreeMap<&'static str, Result<PathBuf, String>>,
) -> Result<Outcome, String> {
    let name = collection.name;
    let wanted: Option<Vec<&Wanted>> =
        plan.wanted.as_ref().map(|all| all.iter().filter(|w| w.collection == name).collect());
    let mut outcome = Outcome {
        collection: name,
        made: 0,
        kept: false,
        wanted: wanted.as_ref().map(Vec::len),
        same: 0,
        failed: Vec::new(),
        missing: None,
    };
    let same = |rows: &[Row]| {
        let is = |w: &&&Wanted| rows.iter().any(|r| r.file == w.file && r.sha256 == w.sha256);
        wanted.iter().flatten().filter(is).count()
    };
    // A part that was made of the same choice of the same packages need not be made again.
    let stamp = manifest::stamp(collection, wanted.as_deref());
    let part = plan.folder.join("parts").join(format!("{name}.tsv"));
    let stamps = plan.folder.join("parts").join(format!("{name}.stamp"));
    if std::fs::read_to_string(&stamps).is_ok_and(|s| s == stamp)
        && let Ok(rows) =
            std::fs::read_to_string(&part).map_err(|_| ()).and_then(|t| manifest::read(&t).map_err(|_| ()))
        && rows.iter().all(|r| plan.folder.join(&r.file).is_file())
    {
        return Ok(Outcome { made: rows.len(), kept: true, same: same(&rows), ..outcome });
    }
    let keep = archive::Keep { starts: collection.keeps, holds: collection.holds };
    let mut files = Vec::new();
    for source in collection.sources {
        match archives.get(source.archive) {
            Some(Ok(path)) => match archive::read(path, source.kind, keep) {
                Ok(list) => files.push(list),
                Err(e) => outcome.missing = Some(format!("{}: {e}", source.archive)),
            },
            Some(Err(e)) => outcome.missing = Some(e.clone()),
            None => {}
        }
    }
    if outcome.missing.is_some() {
        return Ok(outcome);
    }
    let package = Package { files };
    let recipe = match (collection.recipe)(&package) {
        Ok(recipe) => recipe,
        Err(e) => return Ok(Outcome { missing: Some(e), ..outcome }),
    };
    let candidates: Vec<Candidate> = match &wanted {
        Some(list) => list.iter().map(|w| w.candidate()).collect(),
        None => recipe.all(&package),
    };
    let bar = bar(candidates.len(), name);
    let made = make::all(plan, collection, &package, &*recipe, &candidates, &bar);
    bar.finish_and_clear();
    let made = made?;
    let rows = if wanted.is_some() { made.rows } else { manifest::distinct(&plan.folder, made.rows) };
    outcome.failed = made.failed;
    outcome.missing = made.missing;
    outcome.made = rows.len();
    outcome.same = same(&rows);
    if outcome.missing.is_none() {
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
        };
        write(&part, &manifest::write(&rows))?;
        write(&stamps, &stamp)?;
    }
    Ok(outcome)
}
