//! Next-use distances across blocks (Braun & Hack, "Register spilling and live-range splitting for SSA-form programs",
//! 2009): how many steps until a value is read again, the nearest path counting. Leaving a loop costs a lot of distance,
//! so that values that are only needed after the loop are the first to go inside it.
//!
//! Beside the distance stands how often that use comes for every time that the point is passed: what is read in one of
//! two arms has to be brought back half as often, what is read after a loop once for all its rounds.
//!
//! Left out: exactness in nested loops. One sweep sees everything but back edges, a second one takes those in; a third
//! would only refine distances that are beyond a loop anyway.

use crate::code::*;
use crate::graph::Graph;
use crate::liveness::Liveness;
use crate::problem::OperandKind;

/// Distance of a value that is not read again.
pub(crate) const NEVER: u32 = u32::MAX;

/// Extra distance for every loop that is left on the way to the use (Braun & Hack use 100,000).
pub(crate) const LOOP_EXIT_DISTANCE: u32 = 10_000;

/// How far away the next use of a value is, and how often it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub distance: u32,
    /// Zero to one.
    pub chance: f32,
}

impl Next {
    pub const NEVER: Next = Next { distance: NEVER, chance: 0.0 };

    /// A use that is certain to come.
    pub fn at(distance: u32) -> Next {
        Next { distance, chance: 1.0 }
    }
}

pub(crate) struct NextUse {
    /// By block: next uses of the live-in values, in the order of [`Liveness::ins`].
    entry: Vec<Vec<(u32, Next)>>,
    /// By block: next uses of the parameters.
    params: Vec<Vec<Next>>,
}

/// Next uses of one block by value.
pub(crate) struct Distances {
    value: Vec<Next>,
    mark: Vec<u32>,
    now: u32,
}

impl Distances {
    pub fn new(count: usize) -> Distances {
        Distances { value: vec![Next::NEVER; count], mark: vec![0; count], now: 0 }
    }

    pub fn clear(&mut self) {
        self.now += 1;
    }

    pub fn get(&self, vreg: u32) -> Next {
        if self.mark[vreg as usize] == self.now { self.value[vreg as usize] } else { Next::NEVER }
    }

    pub fn set(&mut self, vreg: u32, next: Next) {
        self.value[vreg as usize] = next;
        self.mark[vreg as usize] = self.now;
    }

    /// One path more.
    fn join(&mut self, vreg: u32, next: Next) {
        let known = self.get(vreg);
        let distance = known.distance.min(next.distance);
        self.set(vreg, Next { distance, chance: (known.chance + next.chance).min(1.0) });
    }
}

impl NextUse {
    pub fn new(code: &Code, live: &Liveness, graph: &Graph) -> NextUse {
        let count = code.blocks.len();
        let mut next = NextUse { entry: vec![Vec::new(); count], params: vec![Vec::new(); count] };
        let mut scratch = Distances::new(code.vregs.len());
        let sweeps = if graph.has_loops() { 2 } else { 1 };
        for _ in 0..sweeps {
            for &block in graph.rpo.iter().rev() {
                next.at_exit(code, graph, block, &mut scratch);
                let info = &code.blocks[block as usize];
                for step in info.steps.clone().rev() {
                    let position = step - info.steps.start;
                    let ops = &code.ops[code.steps[step as usize].ops()];
                    for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                        scratch.set(op.vreg.0, Next::at(position));
                    }
                }
                let list = live.ins(block).map(|vreg| (vreg, scratch.get(vreg)));
                next.entry[block as usize] = list.collect();
                next.params[block as usize] = info.params.iter().map(|&param| scratch.get(param)).collect();
            }
        }
        next
    }

    /// Distances at the end of a block, counted from its start.
    pub fn at_exit(&self, code: &Code, graph: &Graph, block: u32, out: &mut Distances) {
        out.clear();
        let info = &code.blocks[block as usize];
        let length = info.steps.end - info.steps.start;
        let frequency = |edge: &CodeEdge| code.blocks[edge.to as usize].frequency;
        let total: f32 = info.succs.iter().map(frequency).sum();
        for edge in &info.succs {
            let away = length + LOOP_EXIT_DISTANCE * graph.loops_left(block, edge.to);
            let share = if info.succs.len() == 1 { 1.0 } else { frequency(edge) / total };
            let back = graph.rpo_index[edge.to as usize] <= graph.rpo_index[block as usize];
            let from_here = |next: Next| Next {
                distance: next.distance.saturating_add(away),
                // (Round a loop only what the loop reads is met again; what comes after it is counted where it is left.)
                chance: if back && next.distance >= LOOP_EXIT_DISTANCE { 0.0 } else { next.chance * share },
            };
            for &(vreg, next) in &self.entry[edge.to as usize] {
                out.join(vreg, from_here(next));
            }
            for (index, &arg) in edge.args.iter().enumerate() {
                // (In the first sweep the parameters of a loop are not known yet: as if read at once.)
                let next = self.params[edge.to as usize].get(index).copied().unwrap_or(Next::at(0));
                if next.distance != NEVER && !code.is_undefined(arg) {
                    out.join(arg, from_here(next));
                }
            }
        }
    }

    pub fn entry(&self, block: u32) -> &[(u32, Next)] {
        &self.entry[block as usize]
    }

    pub fn param(&self, block: u32, index: usize) -> u32 {
        self.params[block as usize].get(index).map_or(NEVER, |next| next.distance)
    }
}
