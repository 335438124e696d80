//! Next-use distances across blocks (Braun & Hack, "Register spilling and live-range splitting for SSA-form programs",
//! 2009): how many steps until a value is read again, the nearest path counting. Leaving a loop costs a lot of distance,
//! so that values that are only needed after the loop are the first to go inside it.
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

pub(crate) struct NextUse {
    /// By block: distances of the live-in values, in the order of [`Liveness::ins`].
    entry: Vec<Vec<(u32, u32)>>,
    /// By block: distances of the parameters.
    params: Vec<Vec<u32>>,
}

/// Distances of one block by value.
pub(crate) struct Distances {
    value: Vec<u32>,
    mark: Vec<u32>,
    now: u32,
}

impl Distances {
    pub fn new(count: usize) -> Distances {
        Distances { value: vec![0; count], mark: vec![0; count], now: 0 }
    }

    pub fn clear(&mut self) {
        self.now += 1;
    }

    pub fn get(&self, vreg: u32) -> u32 {
        if self.mark[vreg as usize] == self.now { self.value[vreg as usize] } else { NEVER }
    }

    pub fn set(&mut self, vreg: u32, distance: u32) {
        self.value[vreg as usize] = distance;
        self.mark[vreg as usize] = self.now;
    }

    fn lower(&mut self, vreg: u32, distance: u32) {
        if distance < self.get(vreg) {
            self.set(vreg, distance);
        }
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
                        scratch.set(op.vreg.0, position);
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
        for edge in &info.succs {
            let away = length + LOOP_EXIT_DISTANCE * graph.loops_left(block, edge.to);
            for &(vreg, distance) in &self.entry[edge.to as usize] {
                out.lower(vreg, distance.saturating_add(away));
            }
            for (index, &arg) in edge.args.iter().enumerate() {
                let distance = self.params[edge.to as usize].get(index).copied().unwrap_or(0);
                if distance != NEVER && !code.is_undefined(arg) {
                    out.lower(arg, distance.saturating_add(away));
                }
            }
        }
    }

    pub fn entry(&self, block: u32) -> &[(u32, u32)] {
        &self.entry[block as usize]
    }

    pub fn param(&self, block: u32, index: usize) -> u32 {
        self.params[block as usize].get(index).copied().unwrap_or(NEVER)
    }
}
