//! Every shader in `examples/` at many register limits, for both targets, with all checks on: code, or a refusal that names what
//! does not fit, and no refusal above the smallest limit that works. (`cargo xtask sweep` does it with the corpus.)

#![cfg(all(feature = "glsl", feature = "wgsl"))]

use kempe_front::Language;
use kempe_ir::Stage;
use kempe_v3d::compile::{Options, finish_ready, ready};
use kempe_v3d::instr::Version;
use kempe_v3d::lower::Shape;
use std::path::{Path, PathBuf};

const LIMITS: [u32; 18] = [64, 48, 32, 28, 24, 20, 18, 16, 14, 12, 10, 8, 6, 5, 4, 3, 2, 1];

fn sources(folder: &Path) -> Vec<(PathBuf, Language, Option<Stage>)> {
    let mut list: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    list.sort();
    let kind = |path: PathBuf| {
        let (language, stage) = match path.extension()?.to_str()? {
            "wgsl" => (Language::Wgsl, None),
            "comp" => (Language::Glsl, Some(Stage::Compute)),
            "vert" => (Language::Glsl, Some(Stage::Vertex)),
            "frag" => (Language::Glsl, Some(Stage::Fragment)),
            _ => return None,
        };
        Some((path, language, stage))
    };
    list.into_iter().filter_map(kind).collect()
}

#[derive(Default, Debug)]
struct Seen {
    programs: u32,
    four: u32,
    two: u32,
    spilling: u32,
    refused: u32,
}

fn sweep(name: &str, m: &kempe_ir::Module, version: Version, binning: bool, seen: &mut Seen) {
    let target = kempe::target(version.name()).expect("a target");
    let mut m = m.clone();
    kempe_opt::optimise_with(&mut m, &target.opt_options(), &mut ());
    let shape = Shape { binning, ..Shape::default() };
    let ready = ready(m, version, &shape, &mut ()).unwrap_or_else(|e| panic!("{name}: {e}"));
    seen.programs += 1;
    let mut refused = false;
    for limit in LIMITS {
        let options = Options { max_registers: Some(limit), shape, verify: true, ..Options::default() };
        match finish_ready(&ready, &options, &mut ()) {
            Ok(a) => {
                assert!(!refused, "{name} is made at {limit} and refused above");
                *(if a.threads == 4 { &mut seen.four } else { &mut seen.two }) += 1;
                seen.spilling += u32::from(a.stats.spills + a.stats.fills > 0);
            }
            Err(e) => {
                assert!(!e.internal, "{name} at {limit}: {e}");
                assert!(e.message.starts_with("out of registers"), "{name} at {limit}: {e}");
                assert!(e.message.contains(" registers are needed"), "{name} at {limit}: {e}");
                refused = true;
                seen.refused += 1;
            }
        }
    }
}

#[test]
fn examples_at_every_limit() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut list = sources(&examples);
    list.extend(sources(&examples.join("graphics")));
    let mut seen = Seen::default();
    for (path, language, stage) in list {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read(&path).expect("a source");
        let options = kempe_front::Options { stage, ..kempe_front::Options::default() };
        let modules = kempe_front::compile(&name, &text, language, &options)
            .unwrap_or_else(|e| panic!("{}", e.render(&name, None)));
        for m in &modules {
            for version in Version::ALL {
                sweep(&name, m, version, false, &mut seen);
                if m.stage == Stage::Vertex {
                    sweep(&name, m, version, true, &mut seen);
                }
            }
        }
    }
    println!("{seen:?}");
    // It would say nothing if no limit were felt.
    assert!(seen.programs > 60 && seen.spilling > 100 && seen.refused > 60, "{seen:?}");
}
