//! From the lowered IR to machine instructions over virtual registers.
//!
//! * [`mod@prepare`]: the shape that selection wants; names, liveness
//! * [`flow`]: which values are the same in all lanes, which lanes wait where
//! * [`plan`]: the graph that the machine walks
//! * [`vars`]: values that are written while some lanes must keep what they have
//! * [`emit`]: the walk over the blocks; [`leave`]: their ends; [`ops`], [`conditions`], [`memory`], [`images`], [`textures`], [`lanes`],
//!   [`stages`]: single instructions; [`rules`]: what of it was used how often
//!
//! The machine has no execution mask: all 16 lanes walk one linear graph, and everything that has no effect is computed
//! in all of them. Divergence is an execution value per lane (0: the lane runs, else the number of the block where it
//! goes on), which is an ordinary virtual register, and moves under a test of it that are tied to the value that the
//! other lanes keep. The result is in SSA form over the linear graph, so the allocator needs to know nothing of lanes.
//!
//! What is left out: an *and* inside of an *or* in one chain of flags, and more than three comparisons.

mod conditions;
mod emit;
mod flow;
mod images;
mod lanes;
mod leave;
mod memory;
mod ops;
mod plan;
mod prepare;
mod rules;
mod stages;
#[cfg(test)]
mod tests;
mod textures;
mod values;
mod vars;

use crate::instr::Version;
use crate::lower::{Lowered, Shape};
use crate::mops::MInst;
use kempe_ir::{Loc, Module, Stage};
use kempe_mir::Mir;
pub use rules::Counts;

/// Why a module has no machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectError {
    pub message: String,
    /// Where in the source, if known.
    pub loc: Loc,
    /// The module breaks the contract of the lowered form: a defect of an earlier pass.
    pub internal: bool,
}

impl SelectError {
    fn unsupported(what: &str) -> SelectError {
        SelectError { message: format!("{what} is not supported yet"), loc: Loc(0), internal: false }
    }

    fn malformed(what: &str) -> SelectError {
        SelectError { message: what.to_owned(), loc: Loc(0), internal: true }
    }

    fn at(mut self, loc: Loc) -> SelectError {
        self.loc = loc;
        self
    }
}

impl std::fmt::Display for SelectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SelectError {}

/// What does not depend on the number of threads: made once for all attempts.
pub struct Prepared {
    prepared: prepare::Prepared,
    flow: flow::Flow,
    plan: plan::Plan,
    vars: vars::Vars,
}

/// Analyses a lowered module. `graphics`: what lowering says of a vertex or fragment program.
///
/// # Errors
/// When the module does not have the lowered form.
pub fn prepare(m: &Module, lowered: &Lowered, shape: &Shape) -> Result<Prepared, SelectError> {
    let mut prepared = prepare::Prepared::new(&m.func, m.stage)?;
    prepared.graphics = lowered.graphics.clone();
    prepared.samples = shape.state.samples;
    prepared.images = m.resources.values().map(|r| Some((r.kind, r.image?))).collect();
    prepared.partial_batch = m.stage == Stage::Compute && !m.workgroup_items().is_multiple_of(16);
    let flow = flow::Flow::new(m, &prepared);
    let plan = plan::Plan::new(&prepared, &flow);
    let vars = vars::Vars::new(&prepared, &flow, &plan);
    Ok(Prepared { prepared, flow, plan, vars })
}

/// Selects machine instructions for a program with 2 or 4 threads, and counts the rules that it takes. `side_values`: what is
/// loaded from a computed address that is the same everywhere may come through the side band, which asks lane 0.
///
/// # Errors
/// When the module contains something that is not supported, or does not have the lowered form.
pub fn select_prepared(
    x: &Prepared,
    version: Version,
    threads: u32,
    side_values: bool,
    counts: &mut Counts,
) -> Result<Mir<MInst>, SelectError> {
    let mut emit = emit::Emit::new(&x.prepared, &x.flow, &x.plan, &x.vars, version, threads, counts);
    emit.side_values = side_values;
    emit.run()
}

/// [`prepare()`] and [`select_prepared`].
///
/// # Errors
/// As these.
pub fn select(
    m: &Module,
    lowered: &Lowered,
    version: Version,
    threads: u32,
) -> Result<Mir<MInst>, SelectError> {
    select_prepared(&prepare(m, lowered, &Shape::default())?, version, threads, true, &mut Counts::default())
}
