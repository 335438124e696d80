//! Which targets a command works for.

use kempe::Target;
use kempe_v3d::instr::Version;

/// Those that everything is run for when nobody names one.
pub fn usual() -> Vec<&'static dyn Target> {
    Version::ALL.iter().filter_map(|v| kempe::target(v.name())).collect()
}

/// The one of `--target NAME` (none, if there is no such), or the usual ones.
pub fn asked(name: Option<&str>) -> Vec<&'static dyn Target> {
    match name {
        Some(name) => kempe::target(name).into_iter().collect(),
        None => usual(),
    }
}
