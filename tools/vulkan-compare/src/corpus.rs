//! The corpus of shaders: which modules can take part, with what specialisation constants.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Corpus {
    pub root: PathBuf,
    /// Compute modules without features that are out of reach: path in the corpus, collection.
    pub modules: Vec<(String, String)>,
    /// Fragment modules likewise.
    pub fragments: Vec<(String, String)>,
    /// By path: id and bits.
    spec: BTreeMap<String, Vec<(u32, u32)>>,
}

/// Features that keep a fragment module out.
const OUT_OF_STAGES: &[&str] = &["image", "f64", "int64", "geometry", "no-entry", "invalid", "subgroup"];

/// Features of the manifest that keep a module out.
const OUT: &[&str] = &["texture", "image", "int64atomic", "physptr", "no-entry", "invalid", "subgroup"];

impl Corpus {
    /// Finds the corpus by `KEMPE_SHARED`, or beside the workspace.
    pub fn open() -> Result<Corpus, String> {
        let shared = std::env::var_os("KEMPE_SHARED")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
        let root = shared.join("corpus");
        let read = |name: &str| {
            fs::read_to_string(root.join(name)).map_err(|e| format!("{}: {e}", root.join(name).display()))
        };
        let (mut modules, mut fragments) = (Vec::new(), Vec::new());
        for line in read("MANIFEST.tsv")?.lines().skip(1) {
            let f: Vec<&str> = line.split('\t').collect();
            let [file, collection, .., features] = f[..] else { continue };
            let stage = f.get(6).copied().unwrap_or_default();
            let kept = |list: &[&str]| !features.split([',', ' ']).any(|x| list.contains(&x));
            if stage == "frag" && kept(OUT_OF_STAGES) {
                fragments.push((file.to_owned(), collection.to_owned()));
            }
            if stage == "comp" && kept(OUT) {
                modules.push((file.to_owned(), collection.to_owned()));
            }
        }
        let mut spec: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
        for line in read("SPECIALISATION.tsv")?.lines().skip(1) {
            let f: Vec<&str> = line.split('\t').collect();
            let [file, id, _, ty, _, suggested] = f[..] else { continue };
            let bits = match (ty, suggested) {
                ("bool", s) => Some((s == "true" || s == "1") as u32),
                ("float", s) => s.parse::<f32>().ok().map(f32::to_bits),
                (_, s) => s.parse::<i64>().ok().map(|v| v as u32),
            };
            if let (Ok(id), Some(bits)) = (id.parse(), bits) {
                spec.entry(file.to_owned()).or_default().push((id, bits));
            }
        }
        Ok(Corpus { root, modules, fragments, spec })
    }

    pub fn spec(&self, file: &str) -> &[(u32, u32)] {
        self.spec.get(file).map_or(&[], |v| v)
    }

    pub fn words(&self, file: &str) -> Result<Vec<u32>, String> {
        let bytes = fs::read(self.root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}

/// Extended instructions whose allowed error is so large that a comparison would say little: inverse trigonometric and
/// hyperbolic functions (numbers of GLSL.std.450: asin 16, acos 17, atan 18, sinh 19, cosh 20, tanh 21, asinh 22,
/// acosh 23, atanh 24, atan2 25).
pub fn uses_loose_functions(words: &[u32]) -> bool {
    let mut at = 5;
    while let Some(&first) = words.get(at) {
        let (len, op) = ((first >> 16) as usize, first & 0xffff);
        if len == 0 {
            return true;
        }
        // OpExtInst: type, result, set, instruction.
        if op == 12 && words.get(at + 4).is_some_and(|n| (16..=25).contains(n)) {
            return true;
        }
        at += len;
    }
    false
}

/// Capabilities ComputeDerivativeGroupQuads (5288) and ComputeDerivativeGroupLinear (5350): OpCapability is 17.
pub fn uses_compute_derivatives(words: &[u32]) -> bool {
    let capabilities =
        words.get(5..).unwrap_or_default().chunks_exact(2).take_while(|c| c[0] == 2 << 16 | 17);
    capabilities.into_iter().any(|c| matches!(c[1], 5288 | 5350))
}
