//! Register allocation: data in, places and edits out.
//!
//! [`allocate`] brings the pressure of every set under its size first (in SSA form, splitting values), then gives places
//! out in dominance order, and hands nothing out that checker A ([`check()`]) has not agreed to. It knows no IR and no
//! GPU. `docs/register-allocation.md` has the overview.

mod backing;
mod check;
mod code;
mod couple;
mod demand;
mod graph;
mod liveness;
mod masks;
mod moves;
mod nextuse;
mod nodes;
mod prefer;
mod pressure;
pub mod problem;
mod rewrite;
mod scan;
mod settle;
mod slots;
mod spill;
mod verify;
mod wishes;

pub use check::check;
pub use masks::MAX_UNITS;
pub use problem::*;

use code::{Code, DIES};
use demand::Limits;
use graph::Graph;
use liveness::Liveness;
use spill::{Spiller, Trouble};

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
    if options.engine == Engine::Graph {
        return Err(Failure::Malformed("the graph engine does not exist yet".to_owned()));
    }
    let graph = Graph::new(program);
    verify::verify_reachable(program, &graph).map_err(Failure::Malformed)?;
    let mut code = Code::new(program, &graph);
    let live = Liveness::new(&mut code, &graph);
    if let Some(vreg) = live.ins(0).next() {
        return Err(Failure::Malformed(format!("v{vreg} is used where it is not defined")));
    }
    let mut job = Job {
        file,
        program,
        graph: &graph,
        costs,
        options,
        max_pressure: 0,
        exact: false,
        bare: vec![false; program.insts.len()],
        force: options.force_spill,
        stuck: None,
    };
    // First without memory edits, then, when it takes some, once more without the units that they need.
    let mut found = None;
    if !options.force_spill {
        found = job.attempt(code.clone(), false).ok();
    }
    let allocation = match found {
        Some(allocation) => allocation,
        None if options.no_memory => return Err(Failure::NeedsMemory { pressure: job.max_pressure }),
        None => job.with_memory(code)?,
    };
    check::check_with(file, program, &graph, &allocation).map_err(Failure::CheckFailed)?;
    Ok(allocation)
}

struct Job<'a> {
    file: &'a RegisterFile,
    program: &'a Program,
    graph: &'a Graph,
    costs: &'a Costs,
    options: &'a Options,
    max_pressure: u32,
    /// See [`Limits::exact`].
    exact: bool,
    /// Instructions at which nothing but their operands is in registers, because placing failed there before.
    bare: Vec<bool>,
    /// See [`Options::force_spill`].
    force: bool,
    /// Where no place or no room was found in the last attempt.
    stuck: Option<u32>,
}

impl Job<'_> {
    /// With memory edits. Where it does not fit or vectors, wide values and fixed units leave no arrangement although the
    /// counts fit, everything runs once more, arranged instead of counted; then the instruction keeps nothing but its
    /// operands in registers; then all instructions do.
    fn with_memory(&mut self, code: Code) -> Result<Allocation, Failure> {
        let mut first = None;
        for round in 0..4 {
            self.stuck = None;
            let result = self.attempt(code.clone(), true);
            let (Err(_), Some(at), 0..3) = (&result, self.stuck, round) else { return result };
            let first = *first.get_or_insert(at);
            match round {
                0 => self.exact = true,
                1 => {
                    self.bare[first as usize] = true;
                    self.bare[at as usize] = true;
                }
                _ => {
                    self.bare.fill(true);
                    self.force = true;
                }
            }
        }
        Err(Failure::CheckFailed("no attempt came to an end".to_owned()))
    }

    fn attempt(&mut self, mut code: Code, memory: bool) -> Result<Allocation, Failure> {
        let mut limits = Limits::new(self.file, self.program, self.options.max_registers, memory);
        limits.exact = self.exact;
        let mut live = Liveness::new(&mut code, self.graph);
        let mut measure = pressure::measure(&code, &live, &limits, self.graph);
        if self.max_pressure == 0 {
            self.max_pressure = measure.max;
        }
        if backing::is_needed(&code, &limits, measure.over) {
            code = backing::keep(&mut code, &live, &limits).map_err(|step| self.full(&code, step))?;
            live = Liveness::new(&mut code, self.graph);
            measure = pressure::measure(&code, &live, &limits, self.graph);
        }
        let mut slots = 0;
        // (What counts do not see has to go even though they fit.)
        if measure.over != 0 || self.force || self.exact {
            let mut spiller = Spiller {
                code: &mut code,
                live: &live,
                limits: &limits,
                graph: self.graph,
                costs: self.costs,
                measure: &measure,
                recipe_costs: &self.program.recipe_cost,
                force: self.force,
                bare: &self.bare,
            };
            let decided = spiller.run();
            let coupled = decided
                .and_then(|decisions| couple::couple(&code, &live, &limits, self.graph, decisions))
                .map_err(|trouble| match trouble {
                    Trouble::Full { step, set, live } => {
                        let inst = code.steps[step as usize].inst;
                        self.stuck = Some(inst);
                        Failure::OutOfRegisters { at: Inst(inst), set, live: self.real_values(&live) }
                    }
                    Trouble::NeedsMemory => self.full(&code, 0),
                })?;
            slots = coupled.slots;
            code = rewrite::rewrite(&code, coupled.insertions, self.file.memory_edit_clobbers);
            live = Liveness::new(&mut code, self.graph);
            // Post-condition: nothing is in a register at the start of a block that was not meant to be.
            debug_assert!(
                (0..code.blocks.len())
                    .all(|block| { live.ins(block as u32).all(|vreg| coupled.entry[block].contains(&vreg)) }),
                "more values stay in registers than spilling decided"
            );
            if let Some(vreg) = live.ins(0).next() {
                return Err(Failure::CheckFailed(format!("v{vreg} is lost on some path after spilling")));
            }
        }
        let placed = scan::scan(
            self.program,
            &code,
            &live,
            &limits,
            self.graph,
            self.costs,
            self.options,
            self.file.units.len(),
        )
        .map_err(|stuck| {
            self.stuck = Some(stuck.inst);
            Failure::OutOfRegisters {
                at: Inst(stuck.inst),
                set: stuck.set,
                live: stuck.live.into_iter().filter(|v| (v.0 as usize) < self.program.vregs.len()).collect(),
            }
        })?;
        let unused = code.ops.iter().zip(&code.kills).zip(&code.real);
        let unused = unused
            .filter(|((op, kill), real)| op.kind != OperandKind::Use && **kill == DIES && **real != u32::MAX);
        let mut unused_defs: Vec<u32> = unused.map(|(_, &real)| real).collect();
        unused_defs.sort_unstable();
        let memory_edits =
            placed.edits.iter().any(|(_, edit)| matches!(edit, Edit::Spill { .. } | Edit::Fill { .. }));
        Ok(Allocation {
            places: placed.places,
            edits: placed.edits,
            slots,
            memory_edits,
            max_pressure: self.max_pressure,
            unused_defs,
        })
    }

    fn full(&self, code: &Code, step: u32) -> Failure {
        let step = &code.steps[step as usize];
        let ops = &code.ops[step.ops()];
        Failure::OutOfRegisters {
            at: Inst(step.inst),
            set: ops.first().map_or(SetId(0), |op| op.set),
            live: self.real_values(&ops.iter().map(|op| op.vreg.0).collect::<Vec<_>>()),
        }
    }

    /// Shadows have no meaning outside.
    fn real_values(&self, values: &[u32]) -> Vec<VReg> {
        let known = values.iter().filter(|&&vreg| (vreg as usize) < self.program.vregs.len());
        known.map(|&vreg| VReg(vreg)).collect()
    }
}
