//! Small programs in lowered form and the machine instructions that selection makes of them, as text. After a wanted
//! change, run with `KEMPE_BLESS=1` and look at the difference.

use super::super::select;
use crate::instr::Version;
use kempe_ir::Stage;
use std::path::Path;

/// Each file: a module, a line `=>`, and the listing.
#[test]
fn listings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/select");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "{} files in {}", files.len(), folder.display());
    let bless = std::env::var_os("KEMPE_BLESS").is_some();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (module, expected) = text.split_once("=>\n").unwrap_or((&text, ""));
        let m = kempe_ir::text::parse(module).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{}: {e:?}", file.display()));
        crate::lower::check(&m).unwrap_or_else(|e| panic!("{}: {e:?}", file.display()));
        let graphics = (m.stage == Stage::Fragment)
            .then(|| kempe_mir::Graphics { writes_depth: true, ..Default::default() });
        let lowered = crate::lower::Lowered { graphics, ..Default::default() };
        let mir = select(&m, &lowered, Version::V71, 4).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        super::well_formed(Version::V71, 4, &mir).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let got = kempe_mir::print::print(&mir);
        if bless {
            std::fs::write(&file, format!("{module}=>\n{got}")).unwrap();
        } else {
            assert!(got == expected, "{}:\n{got}", file.display());
        }
    }
}
