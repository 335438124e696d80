//! Whether work-groups may share a batch.
//!
//! A work-group whose size is not a multiple of 16 leaves lanes free, which the next work-group of a supergroup fills
//! (reference 13.5). The walk and the barriers then belong to all work-groups of the batch. A barrier under a condition
//! that differs between work-groups (their id, say) is right in the source, where each counts its own, but as machine
//! code one work-group would be counted at a barrier that the others never reach. Such programs get a supergroup for
//! each work-group. So do programs that know of subgroups.

use kempe_ir::analysis::Cfg;
use kempe_ir::divergence::{Divergence, Options};
use kempe_ir::{Module, Op};

/// Looks at a module in lowered form.
pub(super) fn may_share_batches(m: &Module) -> bool {
    // Lanes of other work-groups must not take part in operations between lanes (reference 13.6).
    if m.workgroup_items().is_multiple_of(16) || m.uses_subgroups {
        return false;
    }
    let f = &m.func;
    let has_barrier = |b| f.blocks[b].insts.iter().any(|&i| f.insts[i].op == Op::Barrier);
    if !f.layout.iter().any(|&b| has_barrier(b)) {
        return true;
    }
    // Nothing of the payload is the same in all lanes when they belong to several work-groups.
    let flow = Divergence::new(f, &Cfg::new(f), &Options::default());
    !f.layout.iter().any(|&b| has_barrier(b) && flow.is_non_uniform(b))
}
