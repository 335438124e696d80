//! Subgroup operations.
//!
//! Left out: all of them. The lowered form has no operation that reads other lanes, so each gives an error.

use super::{Lower, Result};
use kempe_ir::InstData;

impl Lower<'_> {
    pub fn lanes(&mut self, inst: &InstData) -> Result<()> {
        self.error(format!("subgroup operations are not supported yet (`{}`)", inst.op.name()))
    }
}
