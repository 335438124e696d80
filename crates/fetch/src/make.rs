//! Programs to SPIR-V: GLSL and WGSL through the front ends of this build, kernels through [`crate::opencl`].

use crate::manifest::Row;
use crate::recipes::{Candidate, Language, Package, Program, Recipe};
use crate::sources::Collection;
use crate::{Plan, features, opencl};
use indicatif::ProgressBar;
use kempe_front::{Language as Front, Options};
use kempe_ir::Stage;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// What came of a collection.
#[derive(Default)]
pub struct Made {
    /// In the order of the candidates.
    pub rows: Vec<Row>,
    pub failed: Vec<(String, String)>,
    /// A tool that is not there.
    pub missing: Option<String>,
}

/// Assembles and compiles all candidates.
///
/// # Errors
/// When the folder cannot be written.
pub fn all(
    plan: &Plan,
    collection: &Collection,
    package: &Package,
    recipe: &dyn Recipe,
    candidates: &[Candidate],
    bar: &ProgressBar,
) -> Result<Made, String> {
    let folders = ["src", "spv"].map(|part| plan.folder.join(part).join(collection.name));
    for path in &folders {
        std::fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    // Files that programs include.
    let includes = plan.folder.join("include").join(collection.name);
    for (path, bytes) in recipe.includes(package) {
        let path = includes.join(path);
        let parent = path.parent().unwrap_or(&includes);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let tools = opencl::Tools::find();
    let results: Vec<Result<Row, (String, String)>> = candidates
        .par_iter()
        .map(|candidate| {
            let name = format!("{}.{}", candidate.name, candidate.stage);
            let made = recipe
                .assemble(package, candidate)
                .and_then(|program| one(&folders, &includes, &name, candidate, &program, tools.as_ref()));
            bar.inc(1);
            match made {
                Ok((bytes, language)) => {
                    let source = collection.sources[0];
                    Ok(Row {
                        file: format!("spv/{}/{name}.spv", collection.name),
                        collection: collection.name.to_owned(),
                        package: format!("{}:{}", source.kind.name(), source.package),
                        version: source.version.to_owned(),
                        original: candidate.original.clone(),
                        language,
                        stage: candidate.stage.clone(),
                        sha256: crate::client::sha256(&bytes),
                        size: bytes.len() as u64,
                        features: features::features(&bytes),
                    })
                }
                Err(why) => Err((name, why)),
            }
        })
        .collect();
    let mut made = Made::default();
    for result in results {
        match result {
            Ok(row) => made.rows.push(row),
            Err(failed) => made.failed.push(failed),
        }
    }
    if let Err(e) = &tools
        && made.rows.is_empty()
        && made.failed.iter().any(|f| f.1 == *e)
    {
        made.missing = Some(e.clone());
        made.failed.clear();
    }
    Ok(made)
}

/// Writes the text, compiles it, writes the module. Gives its bytes and the language for the manifest.
fn one(
    folders: &[PathBuf; 2],
    includes: &Path,
    name: &str,
    candidate: &Candidate,
    program: &Program,
    tools: Result<&opencl::Tools, &String>,
) -> Result<(Vec<u8>, String), String> {
    let [src, spv] = folders;
    let extension = match program.language {
        Language::Glsl { .. } => "",
        Language::Wgsl => ".wgsl",
        Language::OpenCl { .. } => ".cl",
    };
    let text = src.join(format!("{name}{extension}"));
    std::fs::write(&text, &program.text).map_err(|e| format!("{}: {e}", text.display()))?;
    let target = spv.join(format!("{name}.spv"));
    let bytes = match &program.language {
        Language::OpenCl { options, passes } => {
            let tools = tools.map_err(Clone::clone)?;
            tools.compile(&text, options, includes, *passes, &target)?;
            std::fs::read(&target).map_err(|e| format!("{}: {e}", target.display()))?
        }
        language => {
            let mut options = Options { include_dirs: vec![includes.to_owned()], ..Options::default() };
            let front = match language {
                Language::Glsl { defines } => {
                    options.defines.clone_from(defines);
                    options.stage = Some(stage(&candidate.stage)?);
                    Front::Glsl
                }
                _ => Front::Wgsl,
            };
            let words = kempe_front::to_spirv(name, program.text.as_bytes(), front, &options)
                .map_err(|e| e.0.first().map_or(String::new(), |d| format!("{}: {}", d.line, d.message)))?;
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            std::fs::write(&target, &bytes).map_err(|e| format!("{}: {e}", target.display()))?;
            bytes
        }
    };
    Ok((bytes, program.label.to_owned()))
}

fn stage(name: &str) -> Result<Stage, String> {
    match name {
        "comp" => Ok(Stage::Compute),
        "vert" => Ok(Stage::Vertex),
        "frag" => Ok(Stage::Fragment),
        "geom" => Ok(Stage::Geometry),
        "tesc" => Ok(Stage::TessControl),
        "tese" => Ok(Stage::TessEval),
        other => Err(format!("`{other}` is no stage")),
    }
}
