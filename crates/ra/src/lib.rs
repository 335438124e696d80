//! Register allocation: data in, places and edits out.
//!
//! [`allocate`] brings the pressure of every set under its size first (in SSA form, splitting values), then gives places
//! out in dominance order, and hands nothing out that checker A ([`check()`]) has not agreed to. It knows no IR and no
//! GPU. `docs/register-allocation.md` has the overview.
//!
//! What is asked is a [`RegisterFile`] (units, sets of units, clobber masks), a [`Program`] (blocks, instructions,
//! operands, virtual registers in SSA form) and [`Costs`]; the answer is an [`Allocation`]: a unit for every operand, and
//! copies, swaps, spills, fills and recomputations to be put between instructions. All of it is in [`problem`].
//!
//! `examples/toy.rs` is the whole of it on a small machine with register pairs, an argument in a fixed register and a
//! call that destroys half of the file (`cargo run -p kempe-ra --example toy`). The shortest that works:
//!
//! ```
//! use kempe_ra::*;
//!
//! let file = RegisterFile {
//!     units: vec!["r0".into(), "r1".into()],
//!     sets: vec![UnitSet {
//!         name: "all".into(),
//!         units: vec![Unit(0), Unit(1)],
//!         rotate: false,
//!         backing: Backing::Memory,
//!     }],
//!     clobbers: vec![vec![]],
//!     ..RegisterFile::default()
//! };
//! let operand = |value, kind| Operand {
//!     vreg: VReg(value), kind, set: SetId(0), tied: None, fixed: None, hint: None, vector: None,
//! };
//! let inst = |operands| InstInfo {
//!     operands, clobbers: ClobberId(0), no_memory_edit_before: false, is_move: false,
//! };
//! // v0 is written by one instruction and read by the next.
//! let program = Program {
//!     blocks: vec![BlockInfo { insts: 0..2, frequency: 1.0, ..BlockInfo::default() }],
//!     insts: vec![inst(0..1), inst(1..2)],
//!     operands: vec![operand(0, OperandKind::Def), operand(0, OperandKind::Use)],
//!     vregs: vec![VRegInfo { home: SetId(0), size: 1, recipe: None, undefined: false }],
//!     recipe_cost: vec![],
//! };
//! let allocation = allocate(&file, &program, &Costs::default(), &Options::default())?;
//! assert_eq!(allocation.places[0], allocation.places[1]);
//! assert!(allocation.edits.is_empty());
//! # Ok::<(), Failure>(())
//! ```

#![warn(missing_docs)]

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
use demand::{Limits, Tight};
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
    let work = Work { live_visits: live.visits, ..Work::default() };
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
        tight: vec![Tight::No; program.insts.len()],
        stuck: None,
        work,
    };
    // First without memory edits, then, when it takes some, once more without the units that they need.
    let mut found = None;
    if !options.force_spill {
        found = job.attempt(code.clone(), false).ok();
    }
    let mut allocation = match found {
        Some(allocation) => allocation,
        None if options.no_memory => return Err(Failure::NeedsMemory { pressure: job.max_pressure }),
        None => job.with_memory(code)?,
    };
    job.work.check_visits =
        check::check_with(file, program, &graph, &allocation).map_err(Failure::CheckFailed)?;
    allocation.work = job.work;
    Ok(allocation)
}

struct Job<'a> {
    file: &'a RegisterFile,
    program: &'a Program,
    graph: &'a Graph,
    costs: &'a Costs,
    options: &'a Options,
    max_pressure: u32,
    /// Instructions at which placing failed before: they are counted with more room.
    tight: Vec<Tight>,
    /// Where placing failed in the last attempt.
    stuck: Option<u32>,
    work: Work,
}

impl Job<'_> {
    /// With memory edits. Where vectors, wide values and fixed units leave no arrangement although the counts fit, the
    /// instruction is counted as tight and everything runs once more; then it keeps nothing but its operands in
    /// registers; then all instructions of that kind do.
    fn with_memory(&mut self, code: Code) -> Result<Allocation, Failure> {
        self.stuck = None;
        let mut result = self.attempt(code.clone(), true);
        let Some(first) = self.stuck.take().filter(|_| result.is_err()) else { return result };
        for round in 0..3 {
            let at = self.stuck.take().unwrap_or(first);
            match round {
                0 => self.tight[at as usize] = Tight::Counted,
                1 => {
                    self.tight[first as usize] = Tight::Bare;
                    self.tight[at as usize] = Tight::Bare;
                }
                _ => self.make_bare(),
            }
            result = self.attempt(code.clone(), true);
            if result.is_ok() {
                return result;
            }
        }
        result
    }

    fn make_bare(&mut self) {
        for (inst, info) in self.program.insts.iter().enumerate() {
            let range = info.operands.start as usize..info.operands.end as usize;
            let special = |op: &Operand| {
                op.vector.is_some() || op.fixed.is_some() || self.program.vregs[op.vreg.0 as usize].size > 1
            };
            if self.program.operands[range].iter().any(special) {
                self.tight[inst] = Tight::Bare;
            }
        }
    }

    fn attempt(&mut self, mut code: Code, memory: bool) -> Result<Allocation, Failure> {
        self.work.attempts += 1;
        let limits = Limits::new(self.file, self.program, self.options.max_registers, memory);
        let mut live = self.live(&mut code);
        let mut measure = pressure::measure(&code, &live, &limits, self.graph, &self.tight);
        if self.max_pressure == 0 {
            self.max_pressure = measure.max;
        }
        if backing::is_needed(&code, &limits, measure.over) {
            code = backing::keep(&mut code, &live, &limits).map_err(|step| self.full(&code, step))?;
            live = self.live(&mut code);
            measure = pressure::measure(&code, &live, &limits, self.graph, &self.tight);
        }
        let mut slots = 0;
        // (Where an instruction is to be bare, what it reads has to go even though the counts fit.)
        let bare = memory && self.tight.contains(&Tight::Bare);
        if measure.over != 0 || self.options.force_spill || bare {
            let mut spiller = Spiller {
                code: &mut code,
                live: &live,
                limits: &limits,
                graph: self.graph,
                costs: self.costs,
                measure: &measure,
                recipe_costs: &self.program.recipe_cost,
                force: self.options.force_spill,
                tight: &self.tight,
            };
            let decided = spiller.run();
            let coupled = decided
                .and_then(|decisions| couple::couple(&code, &live, &limits, self.graph, decisions))
                .map_err(|trouble| match trouble {
                    Trouble::Full { step, set, live } => Failure::OutOfRegisters {
                        at: Inst(code.steps[step as usize].inst),
                        set,
                        live: self.real_values(&live),
                    },
                    Trouble::NeedsMemory => self.full(&code, 0),
                })?;
            slots = coupled.slots;
            code = rewrite::rewrite(&code, coupled.insertions, self.file.memory_edit_clobbers);
            live = self.live(&mut code);
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
            self.file.units.len(),
            &self.tight,
            &mut self.work,
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
            work: Work::default(),
        })
    }

    fn live(&mut self, code: &mut Code) -> Liveness {
        let live = Liveness::new(code, self.graph);
        self.work.live_visits += live.visits;
        live
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
