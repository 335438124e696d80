//! Register allocation: data in, places and edits out.
//!
//! [`allocate`] brings the pressure of every set under its size first ([`spill`], in SSA form), then gives places
//! out in dominance order ([`scan`]), and hands nothing out that [`check`] has not agreed to. It knows no IR and no GPU.
//! `docs/register-allocation.md` has the overview.

#![allow(dead_code)]

mod check;
mod code;
mod demand;
mod graph;
mod liveness;
mod masks;
mod moves;
mod pressure;
pub mod problem;
mod scan;
mod settle;
mod verify;
mod wishes;

pub use check::check;
pub use masks::MAX_UNITS;
pub use problem::*;

use code::{Code, DIES};
use demand::Limits;
use graph::Graph;
use liveness::Liveness;

/// Allocate. The result has passed checker A.
///
/// Errors: a malformed problem, a demand that no spilling can lower under the register limit, or a mistake of the
/// allocator itself that the checker saw.
pub fn allocate(
    file: &RegisterFile,
    program: &Program,
    costs: &Costs,
    options: &Options,
) -> Result<Allocation, Failure> {
    verify::verify_file(file).map_err(Failure::Malformed)?;
    verify::verify_program(file, program).map_err(Failure::Malformed)?;
    let graph = Graph::new(program);
    verify::verify_reachable(program, &graph).map_err(Failure::Malformed)?;
    let mut code = Code::new(program, &graph);
    let live = Liveness::new(&mut code, &graph);
    if let Some(vreg) = live.ins(0).next() {
        return Err(Failure::Malformed(format!("v{vreg} is used where it is not defined")));
    }
    let limits = Limits::new(file, program, options.max_registers, false);
    let measure = pressure::measure(&code, &live, &limits, &graph);
    let placed =
        scan::scan(program, &code, &live, &limits, &graph, costs, file.units.len()).map_err(|stuck| {
            Failure::OutOfRegisters { at: Inst(stuck.inst), set: stuck.set, live: stuck.live }
        })?;
    let unused = code.ops.iter().zip(&code.kills).zip(&code.real);
    let unused = unused
        .filter(|((op, kill), real)| op.kind != OperandKind::Use && **kill == DIES && **real != u32::MAX);
    let mut unused_defs: Vec<u32> = unused.map(|(_, &real)| real).collect();
    unused_defs.sort_unstable();
    let allocation = Allocation {
        places: placed.places,
        edits: placed.edits,
        slots: 0,
        memory_edits: false,
        max_pressure: measure.max,
        unused_defs,
    };
    check::check_with(file, program, &graph, &allocation).map_err(Failure::CheckFailed)?;
    Ok(allocation)
}
