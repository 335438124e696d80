//! Lookups through samplers (section 12.2).

use super::thread::{Machine, Thread, Trouble, Write};

impl Thread {
    /// A write to tmus, tmuscm or tmuslod: the lookup starts.
    pub(super) fn lookup_start(&mut self, _n: u8, _write: &Write, _m: &mut Machine) -> Result<(), Trouble> {
        Err(Trouble::new("unsupported", "lookups through samplers are not modelled"))
    }
}
