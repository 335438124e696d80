//! What an allocation was up against and what it decided, for people who want to know where the registers went.
//!
//! [`Profile`] counts what every instruction needs before anything is spilled, as the allocator itself counts
//! ([`crate::pressure`]). [`Decision`]s are what an engine tells when it puts a value out of its register; nothing in them
//! belongs to one engine. [`Report`] is both, made when [`crate::Options::explain`] asks for it. Which values live at a
//! point, and where they are read next, is not kept but worked out on demand by [`Lives`].
//!
//! Values have the names of the program, with one exception: a parameter of a block with one predecessor is the same value
//! as its argument wherever both may live in the same set, and goes by the name of the argument ([`Lives::name`]).

use crate::code::{Code, LIVES, Names, StepKind};
use crate::demand::Limits;
use crate::graph::{Graph, NONE};
use crate::liveness::Liveness;
use crate::problem::*;
use crate::{pressure, verify};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Distance that leaving a loop adds to [`Candidate::distance`].
pub const LOOP_DISTANCE: u32 = crate::nextuse::LOOP_EXIT_DISTANCE;

/// Most rejected candidates that a decision names, the nearest to being chosen.
pub const MAX_OTHERS: usize = 16;

/// What [`crate::Options::explain`] asks for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Before spilling, without a limit of registers.
    pub profile: Profile,
    /// By set: units that could be given out, after the limit of registers and what memory edits keep for themselves.
    pub room: Vec<u32>,
    /// In the order in which they were taken.
    pub decisions: Vec<Decision>,
}

/// A value lost its register.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The instruction for which it had to go.
    pub at: Inst,
    /// Why one had to.
    pub reason: Reason,
    /// Who went.
    pub chosen: Candidate,
    /// Who could have gone instead: the [`MAX_OTHERS`] with the highest scores, highest first.
    pub others: Vec<Candidate>,
    /// How many could have gone instead.
    pub rejected: u32,
}

/// Why room had to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// More was in registers than fits at the instruction.
    Full,
    /// The same, and the value is one that the instruction reads: it leaves right after.
    FullAfter,
    /// Not all that lives where a block begins (most often a loop) is kept in registers there; the instruction is its
    /// first.
    Entry,
    /// The counts fit, but vectors, wide values and fixed units found no arrangement: the instruction has its operands alone.
    Arrangement,
    /// [`crate::Options::force_spill`].
    Asked,
}

impl Reason {
    /// The name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Full => "full",
            Reason::FullAfter => "full-after",
            Reason::Entry => "entry",
            Reason::Arrangement => "arrangement",
            Reason::Asked => "asked",
        }
    }
}

/// How a value comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// Stored, and loaded again.
    Memory,
    /// Made again.
    Recipe(Recipe),
    /// Made again by this instruction, if its inputs are still in registers then.
    Repeat(Inst),
}

/// A value that may lose its register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// The value.
    pub vreg: VReg,
    /// How it comes back.
    pub back: Return,
    /// Instructions until it is read again, the nearest path counting, and [`LOOP_DISTANCE`] more for every loop that
    /// is left on the way.
    pub distance: u32,
    /// Estimated cycles of putting it out and getting it back.
    pub cost: f32,
    /// How little it is worth keeping: the highest goes.
    pub score: f32,
}

impl Decision {
    /// `others` in any order, whole.
    pub(crate) fn new(at: Inst, reason: Reason, chosen: Candidate, mut others: Vec<Candidate>) -> Decision {
        others.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.vreg.cmp(&b.vreg)));
        let rejected = others.len() as u32;
        others.truncate(MAX_OTHERS);
        Decision { at, reason, chosen, others, rejected }
    }

    /// Does every value exist in a program with this many? (An engine may have values of its own.)
    pub(crate) fn is_of(&self, values: usize) -> bool {
        let all = self.others.iter().chain([&self.chosen]);
        all.into_iter().all(|candidate| (candidate.vreg.0 as usize) < values)
    }
}

/// Units that are needed at every instruction before spilling: the most at any moment from directly before it to
/// directly after it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// By set: its units.
    pub capacity: Vec<u32>,
    /// By instruction, then set: units for what can live nowhere but in this set there.
    demand: Vec<u32>,
    /// The same without values that can be made again and are no operands of the instruction.
    firm: Vec<u32>,
}

impl Profile {
    /// # Errors
    /// A malformed problem.
    pub fn new(file: &RegisterFile, program: &Program) -> Result<Profile, Failure> {
        let graph = checked(file, program)?;
        let mut code = Code::new(program, &graph);
        let live = Liveness::new(&mut code, &graph);
        Ok(Profile::of(file, program, &graph, &code, &live))
    }

    pub(crate) fn of(
        file: &RegisterFile,
        program: &Program,
        graph: &Graph,
        code: &Code,
        live: &Liveness,
    ) -> Profile {
        let limits = Limits::new(file, program, None, false);
        let sets = limits.sets.len();
        let bounds: Vec<_> = (0..sets).map(|set| limits.bound_of(SetId(set as u8))).collect();
        let count = |recipes: bool| {
            let mut most = vec![0u32; program.insts.len() * sets];
            pressure::count(code, live, &limits, graph, recipes, &mut |_, inst, pressure| {
                for (set, bound) in bounds.iter().enumerate() {
                    let used = bound.map_or(0, |bound| pressure.used(bound));
                    let most = &mut most[inst as usize * sets + set];
                    *most = used.max(*most);
                }
            });
            most
        };
        let capacity = limits.sets.iter().map(|set| set.count()).collect();
        Profile { capacity, demand: count(true), firm: count(false) }
    }

    /// How many instructions there are.
    pub fn len(&self) -> usize {
        self.demand.len().checked_div(self.capacity.len()).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Units for what can live nowhere but in `set` at `at`; 0 for what is not there.
    pub fn demand(&self, at: Inst, set: SetId) -> u32 {
        row(&self.demand, self.capacity.len(), at).get(set.0 as usize).copied().unwrap_or(0)
    }

    /// Units that every set would have to have more (or may have less, when negative), so that everything fits at
    /// `at`. With `firm`, values that can be made again and are no operands of the instruction do not count.
    pub fn missing(&self, at: Inst, firm: bool) -> i64 {
        let row = row(if firm { &self.firm } else { &self.demand }, self.capacity.len(), at);
        let sets = row.iter().zip(&self.capacity).filter(|(used, _)| **used != 0);
        let most = sets.map(|(&used, &capacity)| i64::from(used) - i64::from(capacity)).max();
        most.unwrap_or_else(|| -self.capacity.iter().max().map_or(0, |&most| i64::from(most)))
    }
}

fn row(table: &[u32], sets: usize, at: Inst) -> &[u32] {
    let start = at.0 as usize * sets;
    table.get(start..start + sets).unwrap_or_default()
}

fn checked(file: &RegisterFile, program: &Program) -> Result<Graph, Failure> {
    verify::verify_file(file).map_err(Failure::Malformed)?;
    verify::verify_program(file, program).map_err(Failure::Malformed)?;
    let graph = Graph::new(program);
    verify::verify_reachable(program, &graph).map_err(Failure::Malformed)?;
    Ok(graph)
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Definition {
    /// An instruction.
    Inst(Inst),
    /// A parameter.
    Block(Block),
}

/// Where a value is read next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextRead {
    /// The instruction that reads it.
    pub at: Inst,
    /// Instructions on the way.
    pub steps: u32,
    /// Loops that are left on the way.
    pub loops: u32,
}

/// What lives where in a program, and what for.
pub struct Lives {
    graph: Graph,
    code: Code,
    live: Liveness,
    /// By instruction: its step, and its block.
    places: Vec<(u32, u32)>,
    /// By value.
    definitions: Vec<Option<Definition>>,
    names: Vec<VReg>,
}

impl Lives {
    /// # Errors
    /// A malformed problem.
    pub fn new(file: &RegisterFile, program: &Program) -> Result<Lives, Failure> {
        let graph = checked(file, program)?;
        let mut code = Code::new(program, &graph);
        let live = Liveness::new(&mut code, &graph);
        let mut places = vec![(NONE, NONE); program.insts.len()];
        for (index, block) in code.blocks.iter().enumerate() {
            for step in block.steps.clone().filter(|&s| code.steps[s as usize].kind == StepKind::Inst) {
                places[code.steps[step as usize].inst as usize] = (step, index as u32);
            }
        }
        let mut definitions = vec![None; program.vregs.len()];
        for (index, block) in program.blocks.iter().enumerate() {
            for param in &block.params {
                definitions[param.0 as usize] = Some(Definition::Block(Block(index as u32)));
            }
        }
        for (index, inst) in program.insts.iter().enumerate() {
            for op in &program.operands[inst.operands.start as usize..inst.operands.end as usize] {
                if op.kind != OperandKind::Use {
                    definitions[op.vreg.0 as usize] = Some(Definition::Inst(Inst(index as u32)));
                }
            }
        }
        let names = Names::new(program, &graph).name.into_iter().map(VReg).collect();
        Ok(Lives { graph, code, live, places, definitions, names })
    }

    /// The name by which a value goes here and in decisions.
    pub fn name(&self, vreg: VReg) -> VReg {
        self.names.get(vreg.0 as usize).copied().unwrap_or(vreg)
    }

    /// Where a value is defined; nothing for one that is undefined.
    pub fn definition(&self, vreg: VReg) -> Option<Definition> {
        self.definitions.get(vreg.0 as usize).copied().flatten()
    }

    /// The values that live at a point, ascending. At the end of a block that is everything that a successor reads,
    /// arguments of parameters included.
    pub fn live_at(&self, point: Point) -> Vec<VReg> {
        let (Point::Before(at) | Point::After(at)) = point;
        let Some((target, block)) = self.place(at) else { return Vec::new() };
        let mut live = vec![false; self.code.vregs.len()];
        for vreg in self.live.outs(block) {
            live[vreg as usize] = true;
        }
        let info = &self.code.blocks[block as usize];
        for edge in &info.succs {
            for (&arg, &param) in edge.args.iter().zip(&self.code.blocks[edge.to as usize].params) {
                live[arg as usize] |= self.live.param_live[param as usize] && !self.code.is_undefined(arg);
            }
        }
        for step in (target..info.steps.end).rev() {
            if step == target && matches!(point, Point::After(_)) {
                break;
            }
            let ops = &self.code.ops[self.code.steps[step as usize].ops()];
            for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                live[op.vreg.0 as usize] = false;
            }
            for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                live[op.vreg.0 as usize] |= !self.code.is_undefined(op.vreg.0);
            }
        }
        (0..live.len() as u32).filter(|&vreg| live[vreg as usize]).map(VReg).collect()
    }

    /// Where a value that lives at `point` is read next, on the path that leaves fewest loops and of these the shortest; an
    /// argument of a parameter is read where the parameter is.
    pub fn next_read(&self, point: Point, vreg: VReg) -> Option<NextRead> {
        let (at, skip) = match point {
            Point::Before(at) => (at, 0),
            Point::After(at) => (at, 1),
        };
        let (step, block) = self.place(at)?;
        // `(loops left, steps, block, next step, value)`, nearest first.
        let mut waiting = BinaryHeap::from([Reverse((0, 0, block, step + skip, vreg.0))]);
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        while let Some(Reverse((loops, mut steps, block, from, vreg))) = waiting.pop() {
            let info = &self.code.blocks[block as usize];
            if from == info.steps.start && !seen.insert((block, vreg)) {
                continue;
            }
            for index in from..info.steps.end {
                let step = &self.code.steps[index as usize];
                let ops = &self.code.ops[step.ops()];
                if ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg) {
                    match ops {
                        // A parameter in a set of its own.
                        [_, to] if step.kind == StepKind::Copy => {
                            waiting.push(Reverse((loops, steps, block, index + 1, to.vreg.0)));
                        }
                        _ => return Some(NextRead { at: Inst(step.inst), steps, loops }),
                    }
                }
                steps += (step.kind == StepKind::Inst) as u32;
            }
            for edge in &info.succs {
                let to = &self.code.blocks[edge.to as usize];
                let loops = loops + self.graph.loops_left(block, edge.to);
                let params = to.params.iter().zip(&edge.args).filter(|(_, arg)| **arg == vreg);
                let same = Some(&vreg).filter(|&&vreg| self.live.is_in(edge.to, vreg));
                for &name in params.map(|(param, _)| param).chain(same) {
                    waiting.push(Reverse((loops, steps, edge.to, to.steps.start, name)));
                }
            }
        }
        None
    }

    /// Does `at` read this value for the last time?
    pub fn dies_at(&self, at: Inst, vreg: VReg) -> bool {
        let Some((step, _)) = self.place(at) else { return false };
        self.code.steps[step as usize].ops().any(|op| {
            let operand = &self.code.ops[op];
            operand.kind == OperandKind::Use && operand.vreg == vreg && self.code.kills[op] != LIVES
        })
    }

    fn place(&self, at: Inst) -> Option<(u32, u32)> {
        self.places.get(at.0 as usize).copied().filter(|place| place.0 != NONE)
    }
}
