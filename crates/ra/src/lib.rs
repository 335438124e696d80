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
//!     repeat: None,
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

mod apart;
mod backing;
mod check;
mod classes;
mod coalesce;
mod code;
mod colour;
mod colour_spill;
mod couple;
mod demand;
mod graph;
mod interference;
mod least;
mod listed;
mod liveness;
mod masks;
mod moves;
mod nextuse;
mod nodes;
mod prefer;
mod pressure;
pub mod problem;
pub mod report;
mod rewrite;
mod scan;
mod settle;
mod simplify;
mod slots;
mod spill;
mod verify;
mod wishes;

pub use check::check;
pub use masks::MAX_UNITS;
pub use problem::*;

use std::cell::OnceCell;

use code::{Code, DIES, Makers, StepKind};
use demand::Limits;
use graph::Graph;
use liveness::Liveness;
use masks::UnitMask;
use report::{Decision, Profile, Report};
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
    let graph = Graph::new(program);
    verify::verify_reachable(program, &graph).map_err(Failure::Malformed)?;
    let mut code = Code::new(program, &graph);
    if options.without.recipes {
        let in_memory = |info: &VRegInfo| file.sets[info.home.0 as usize].backing == Backing::Memory;
        code.vregs.iter_mut().filter(|info| in_memory(info)).for_each(|info| info.recipe = None);
    }
    if options.without.repeats {
        code.makers = Makers::default();
    }
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
        exact: false,
        bare: vec![false; program.insts.len()],
        force: options.force_spill,
        missing: OnceCell::new(),
        decisions: Vec::new(),
        work,
    };
    let profile = options.explain.then(|| Profile::of(file, program, &graph, &code, &live));
    let mut allocation = job.run(code)?;
    if let Some(profile) = profile {
        let limits = Limits::new(file, program, options.max_registers, allocation.memory_edits);
        let room = limits.order.iter().map(|units| units.len() as u32).collect();
        let mut decisions = std::mem::take(&mut job.decisions);
        // (Shadows have no meaning outside.)
        decisions.retain(|decision| decision.is_of(program.vregs.len()));
        allocation.report = Some(Box::new(Report { profile, room, decisions }));
    }
    job.work.check_visits =
        check::check_with(file, program, &graph, &allocation).map_err(Failure::CheckFailed)?;
    allocation.work = job.work;
    Ok(allocation)
}

/// Where an attempt begins.
struct Start {
    code: Code,
    live: Liveness,
    limits: Limits,
    measure: pressure::Measure,
}

/// The outcome of spilling, before the edits stand in the code.
struct Spilled {
    code: Code,
    coupled: couple::Coupled,
    /// Estimated cycles.
    cost: f64,
    /// What was decided and why, where that is asked for.
    log: Vec<Decision>,
}

/// Times that places are closed to memory edits: a third time brings hardly anything.
const CLOSINGS: u32 = 2;

/// Most steps of a program that is coloured as a graph beside being scanned. In larger ones (sorting networks, matrices) colouring took
/// longer than everything else together and brought nothing.
const MOST_COLOURED_TOO: usize = 3000;

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
    /// See [`Job::missing`]: known once it has been asked for.
    missing: OnceCell<u32>,
    /// What the last attempt decided, if that is asked for.
    decisions: Vec<Decision>,
    work: Work,
}

impl Job<'_> {
    /// First without memory edits, then, when it takes some, once more without the units that they need. Where the graph
    /// engine finds no colouring, the other one has its turn; where the better one is asked for, both have.
    fn run(&mut self, code: Code) -> Result<Allocation, Failure> {
        let mut hopeless = false;
        for memory in [false, true] {
            if !memory && self.options.force_spill {
                continue;
            }
            hopeless = memory && self.options.max_registers.is_some() && self.names_too_much(&code);
            if self.options.engine == Engine::Graph
                && !hopeless
                && let Some(allocation) = self.attempt_graph(code.clone(), memory)
            {
                return Ok(allocation);
            }
            // (A mistake is not mended by another attempt.)
            if !memory
                && let result @ (Ok(_) | Err(Failure::CheckFailed(_))) = self.attempt(code.clone(), false)
            {
                return result;
            }
            if self.options.no_memory && !self.options.force_spill {
                return Err(Failure::NeedsMemory { pressure: self.max_pressure });
            }
        }
        let scanned = self.with_memory(code.clone()).map_err(|failure| self.with_needed(failure, &code));
        let wrong = matches!(scanned, Err(Failure::CheckFailed(_)));
        let large = scanned.is_ok() && code.steps.len() > MOST_COLOURED_TOO;
        if self.options.engine != Engine::Best || wrong || large || hopeless {
            return scanned;
        }
        let decisions = std::mem::take(&mut self.decisions);
        // (Cheaper by the frequency of blocks alone can be much longer code: +12 % stores and loads in all.)
        let better = |other: &Allocation| {
            let Ok(scanned) = &scanned else { return true };
            let cost = |allocation: &Allocation| allocation.cost(self.program, self.costs);
            let memory = |(_, edit): &&(Point, Edit)| matches!(edit, Edit::Spill { .. } | Edit::Fill { .. });
            let count = |allocation: &Allocation| allocation.edits.iter().filter(memory).count();
            cost(other) < cost(scanned) && count(other) <= count(scanned)
        };
        match self.attempt_graph(code, true) {
            Some(coloured) if better(&coloured) => Ok(coloured),
            _ => {
                self.decisions = decisions;
                scanned
            }
        }
    }

    /// By colouring whole live ranges ([`colour`]).
    fn attempt_graph(&mut self, code: Code, memory: bool) -> Option<Allocation> {
        let Start { code, live, limits, .. } = self.start(code, memory).ok()?;
        let coloured = colour::colour(
            code,
            live,
            &limits,
            self.graph,
            self.costs,
            &self.program.recipe_cost,
            self.file.memory_edit_clobbers,
            self.options,
        )
        .ok()?;
        let colour::Coloured { code, live, plan } = coloured;
        let allocation = self.place(&code, &live, &limits, &plan).ok()?;
        Some(Allocation { engine: Engine::Graph, ..allocation })
    }

    /// With memory edits. Where it does not fit although what instructions name does, or vectors, wide values and fixed units leave
    /// no arrangement although the counts fit, everything runs once more, arranged instead of counted; then the instruction keeps nothing but its
    /// operands in registers; then all instructions do.
    fn with_memory(&mut self, code: Code) -> Result<Allocation, Failure> {
        let mut first = None;
        for round in 0..4 {
            let result = self.attempt(code.clone(), true);
            let (Err(Failure::OutOfRegisters { at: Inst(at), .. }), 0..3) = (&result, round) else {
                return result;
            };
            let (at, first) = (*at, *first.get_or_insert(*at));
            if round == 0 && self.names_too_much(&code) {
                return result;
            }
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

    /// What every attempt begins with: the limits, liveness and pressure, and shadows for what memory edits would destroy.
    fn start(&mut self, mut code: Code, memory: bool) -> Result<Start, Failure> {
        self.decisions.clear();
        self.work.attempts += 1;
        let mut limits = Limits::new(self.file, self.program, self.options.max_registers, memory);
        limits.exact = self.exact;
        if self.bare.contains(&true) {
            code = apart::split(code, &self.bare, &limits, self.file.memory_edit_clobbers);
        }
        let mut live = self.live(&mut code);
        let mut measure = pressure::measure(&code, &live, &limits, self.graph);
        if self.max_pressure == 0 {
            self.max_pressure = measure.max;
        }
        if backing::is_needed(&code, &limits, measure.over) {
            code = backing::keep(&mut code, &live, &limits).map_err(|step| self.full(&code, step))?;
            live = self.live(&mut code);
            measure = pressure::measure(&code, &live, &limits, self.graph);
        }
        Ok(Start { code, live, limits, measure })
    }

    fn attempt(&mut self, code: Code, memory: bool) -> Result<Allocation, Failure> {
        let Start { mut code, mut live, limits, measure } = self.start(code, memory)?;
        // (What counts do not see has to go even though they fit.)
        if measure.over != 0 || self.force || self.exact {
            let mut spilled = self.spill(code.clone(), &live, &limits, &measure)?;
            if memory && limits.loses_at_edits() && !self.force && !self.exact {
                self.close(&code, &limits, &mut spilled);
            }
            self.decisions = std::mem::take(&mut spilled.log);
            let insertions = std::mem::take(&mut spilled.coupled.insertions);
            code = rewrite::rewrite(&spilled.code, insertions, self.file.memory_edit_clobbers);
            live = self.live(&mut code);
            // Post-condition: nothing is in a register at the start of a block that was not meant to be.
            let entry = &spilled.coupled.entry;
            debug_assert!(
                (0..code.blocks.len())
                    .all(|block| { live.ins(block as u32).all(|vreg| entry[block].contains(&vreg)) }),
                "more values stay in registers than spilling decided"
            );
            if let Some(vreg) = live.ins(0).next() {
                return Err(Failure::CheckFailed(format!("v{vreg} is lost on some path after spilling")));
            }
        }
        self.place(&code, &live, &limits, &[])
    }

    /// Places for everything, and the allocation.
    fn place(
        &mut self,
        code: &Code,
        live: &Liveness,
        limits: &Limits,
        plan: &[u16],
    ) -> Result<Allocation, Failure> {
        let placed = scan::scan(
            self.program,
            code,
            live,
            limits,
            self.graph,
            self.costs,
            self.options,
            self.file.units.len(),
            plan,
            &mut self.work,
        )
        .map_err(|stuck| Failure::OutOfRegisters {
            at: Inst(stuck.inst),
            set: stuck.set,
            live: stuck.live.into_iter().filter(|v| (v.0 as usize) < self.program.vregs.len()).collect(),
            needed: 0,
        })?;
        let unused = code.ops.iter().zip(&code.kills).zip(&code.real);
        let unused = unused
            .filter(|((op, kill), real)| op.kind != OperandKind::Use && **kill == DIES && **real != u32::MAX);
        let mut unused_defs: Vec<u32> = unused.map(|(_, &real)| real).collect();
        unused_defs.sort_unstable();
        let memory_edits =
            placed.edits.iter().any(|(_, edit)| matches!(edit, Edit::Spill { .. } | Edit::Fill { .. }));
        let mut edits = placed.edits;
        let slots = slots::close_gaps(&mut edits);
        Ok(Allocation {
            places: placed.places,
            edits,
            slots,
            memory_edits,
            max_pressure: self.max_pressure,
            unused_defs,
            engine: Engine::Scan,
            report: None,
            work: Work::default(),
        })
    }

    fn live(&mut self, code: &mut Code) -> Liveness {
        let live = Liveness::new(code, self.graph);
        self.work.live_visits += live.visits;
        live
    }

    /// Which values go to memory or are made again, and where.
    fn spill(
        &self,
        mut code: Code,
        live: &Liveness,
        limits: &Limits,
        measure: &pressure::Measure,
    ) -> Result<Spilled, Failure> {
        let mut log = Vec::new();
        let mut spiller = Spiller {
            code: &mut code,
            live,
            limits,
            graph: self.graph,
            costs: self.costs,
            measure,
            recipe_costs: &self.program.recipe_cost,
            force: self.force,
            without: self.options.without,
            bare: &self.bare,
            log: self.options.explain.then_some(&mut log),
        };
        let decided = spiller.run();
        let coupled = decided
            .and_then(|decisions| couple::couple(&code, live, limits, self.graph, decisions))
            .map_err(|trouble| match trouble {
                Trouble::Full { step, set, live } => self.full_of(&code, (step, set), live),
                Trouble::NeedsMemory => self.full(&code, 0),
            })?;
        let mut frequency = vec![0.0; code.steps.len()];
        for block in &code.blocks {
            frequency[block.steps.start as usize..block.steps.end as usize].fill(f64::from(block.frequency));
        }
        let one = |insertion: &rewrite::Insertion| {
            let cost = match insertion.kind {
                StepKind::Store(_) => self.costs.spill,
                StepKind::Fill(_) => self.costs.fill,
                StepKind::Remake(recipe) => self.program.recipe_cost[recipe.0 as usize],
                StepKind::Repeat(_) => code.makers.get(insertion.vreg).map_or(0.0, |maker| maker.cost),
                StepKind::Copy | StepKind::Inst => 0.0,
            };
            f64::from(cost) * frequency[insertion.step as usize]
        };
        let cost = coupled.insertions.iter().map(one).sum();
        Ok(Spilled { code, coupled, cost, log })
    }

    /// Where units do not survive memory edits, the first round has to reckon with one everywhere, and uses such units within
    /// instructions only. Once it is known where edits stand, all other places can be closed to them, which gives those units back to
    /// whatever lives between two edits; so fewer edits are needed. (With five such
    /// units beside 64: 10 % fewer stores, 9 % fewer fills.)
    fn close(&mut self, code: &Code, limits: &Limits, spilled: &mut Spilled) {
        for _ in 0..CLOSINGS {
            let mut open = vec![false; code.steps.len()];
            for insertion in &spilled.coupled.insertions {
                open[insertion.step as usize] |=
                    matches!(insertion.kind, StepKind::Store(_) | StepKind::Fill(_));
            }
            let mut closed = code.clone();
            for (step, &open) in closed.steps.iter_mut().zip(&open) {
                step.no_memory |= !open;
            }
            let live = self.live(&mut closed);
            let measure = pressure::measure(&closed, &live, limits, self.graph);
            match self.spill(closed, &live, limits, &measure) {
                Ok(next) if next.cost < spilled.cost => *spilled = next,
                _ => return,
            }
        }
    }

    fn full(&self, code: &Code, step: u32) -> Failure {
        let ops = &code.ops[code.steps[step as usize].ops()];
        let set = ops.first().map_or(SetId(0), |op| op.set);
        self.full_of(code, (step, set), Vec::new())
    }

    /// What `step` names is in the way as well as what is `live` there.
    fn full_of(&self, code: &Code, (step, set): (u32, SetId), mut live: Vec<u32>) -> Failure {
        let step = &code.steps[step as usize];
        for op in code.ops[step.ops()].iter().filter(|op| !code.is_undefined(op.vreg.0)) {
            if !live.contains(&op.vreg.0) {
                live.push(op.vreg.0);
            }
        }
        Failure::OutOfRegisters { at: Inst(step.inst), set, live: self.real_values(&live), needed: 0 }
    }

    /// Adds what would be enough at the very least: a limit, or where there is none the units of the set. It failed with
    /// what there is, so it takes one more in any case. (`code` is as it came: without memory edits nothing needs a
    /// shadow.)
    fn with_needed(&self, failure: Failure, code: &Code) -> Failure {
        let Failure::OutOfRegisters { at, set, live, .. } = failure else { return failure };
        let limits = || Limits::new(self.file, self.program, self.options.max_registers, true);
        let there = self.options.max_registers.unwrap_or_else(|| limits().room(set));
        let needed = there.saturating_add(self.missing(code).max(1));
        Failure::OutOfRegisters { at, set, live, needed }
    }

    /// An instruction names more than fits, whatever is in memory. (Not asked where sets overlap in part: there the counts say too
    /// much too soon.)
    fn names_too_much(&self, code: &Code) -> bool {
        self.sets_are_nested() && self.missing(code) > 0
    }

    /// Of any two sets, one is part of the other, or they have nothing in common.
    fn sets_are_nested(&self) -> bool {
        let sets: Vec<UnitMask> = self.file.sets.iter().map(|set| UnitMask::of(&set.units)).collect();
        let apart = |a: &UnitMask, b: &UnitMask| !a.intersects(b) || a.is_subset_of(b) || b.is_subset_of(a);
        sets.iter().all(|a| sets.iter().all(|b| apart(a, b)))
    }

    /// Registers that are missing for what instructions name alone. (Fixed units that memory edits would take may make more room
    /// without them.)
    fn missing(&self, code: &Code) -> u32 {
        let limits = |memory| Limits::new(self.file, self.program, self.options.max_registers, memory);
        *self.missing.get_or_init(|| match least::missing(code, &limits(true)) {
            0 => 0,
            missing => missing.min(least::missing(code, &limits(false))),
        })
    }

    /// Shadows have no meaning outside.
    fn real_values(&self, values: &[u32]) -> Vec<VReg> {
        let known = values.iter().filter(|&&vreg| (vreg as usize) < self.program.vregs.len());
        known.map(|&vreg| VReg(vreg)).collect()
    }
}
