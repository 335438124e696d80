//! The public corpus: which modules there are, what they need, which values their specialisation constants suggest.
//!
//! The corpus lies outside of the project: in the folder `corpus` of `KEMPE_SHARED`, or of `../shared`.

use kempe_ir::Module;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One SPIR-V module.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As in the manifest, for example `spv/vello/clear.comp.spv`.
    pub file: String,
    pub path: PathBuf,
    pub collection: String,
    pub stage: String,
    pub features: BTreeSet<String>,
    /// Suggested specialisation: (id, bits).
    pub suggested: Vec<(u32, u64)>,
}

/// Where shared inputs lie.
pub fn shared() -> PathBuf {
    std::env::var_os("KEMPE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from)
}

/// Reads the manifest. `Err` says what is missing and how to point to it.
pub fn entries() -> Result<Vec<Entry>, String> {
    let dir = shared().join("corpus");
    let read = |name: &str| {
        std::fs::read_to_string(dir.join(name)).map_err(|e| {
            format!(
                "{name} of the corpus cannot be read ({e}); set KEMPE_SHARED to the folder that holds `corpus`"
            )
        })
    };
    let manifest = read("MANIFEST.tsv")?;
    let mut spec: BTreeMap<String, Vec<(u32, u64)>> = BTreeMap::new();
    for line in read("SPECIALISATION.tsv")?.lines().skip(1) {
        let c: Vec<&str> = line.split('\t').collect();
        let [file, id, _, ty, _, value] = c.as_slice() else { continue };
        if let (Ok(id), Some(bits)) = (id.parse(), bits(ty, value)) {
            spec.entry((*file).to_owned()).or_default().push((id, bits));
        }
    }
    let mut out = Vec::new();
    let mut lines = manifest.lines();
    let head: Vec<&str> = lines.next().unwrap_or("").split('\t').collect();
    let column = |name: &str| head.iter().position(|h| *h == name).ok_or(format!("no column {name}"));
    let (file, collection, stage, features) =
        (column("file")?, column("collection")?, column("stage")?, column("features")?);
    for line in lines {
        let c: Vec<&str> = line.split('\t').collect();
        let get = |n: usize| c.get(n).copied().unwrap_or("").to_owned();
        out.push(Entry {
            file: get(file),
            path: dir.join(get(file)),
            collection: get(collection),
            stage: get(stage),
            features: get(features).split([',', ' ']).map(str::to_owned).collect(),
            suggested: spec.remove(&get(file)).unwrap_or_default(),
        });
    }
    out.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(out)
}

fn bits(ty: &str, value: &str) -> Option<u64> {
    Some(match ty {
        "bool" => (value == "true" || value == "1") as u64,
        "f32" | "float" => value.parse::<f32>().ok()?.to_bits() as u64,
        _ => value.parse::<i64>().ok()? as u64 & 0xffff_ffff,
    })
}

impl Entry {
    /// All modules of the file in source form, one for each entry point, specialised with the suggested values.
    pub fn modules(&self) -> Result<Vec<Module>, String> {
        let bytes = std::fs::read(&self.path).map_err(|e| e.to_string())?;
        let options =
            kempe_front::Options { spec: self.suggested.clone(), ..kempe_front::Options::default() };
        kempe_front::compile(&self.file, &bytes, kempe_front::Language::Spirv, &options)
            .map_err(|e| e.to_string())
    }

    /// The first of them.
    pub fn module(&self) -> Result<Module, String> {
        self.modules()?.into_iter().next().ok_or_else(|| "no entry point".to_owned())
    }

    /// It uses images or textures.
    pub fn has_images(&self) -> bool {
        self.features.contains("texture") || self.features.contains("image")
    }

    /// Compute without 64-bit atomics.
    pub fn is_plain_compute(&self) -> bool {
        self.stage == "comp" && !self.features.contains("int64atomic")
    }
}
