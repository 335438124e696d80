//! Does everything fit without spilling? One forward pass with counts only; [`crate::report`] keeps what it counts at
//! every instruction.

use crate::code::*;
use crate::demand::*;
use crate::graph::Graph;
use crate::liveness::Liveness;
use crate::problem::*;

pub(crate) struct Measure {
    /// Bounds that are exceeded somewhere, as bits.
    pub over: Over,
    /// Highest count in any bound.
    pub max: u32,
    /// By block: the highest count in every bound (`block * bounds + bound`).
    pub by_block: Vec<u32>,
}

/// Pressure at every point of `code`.
pub(crate) fn measure(code: &Code, live: &Liveness, limits: &Limits, graph: &Graph) -> Measure {
    let bounds = limits.capacity.len();
    let mut out = Measure { over: 0, max: 0, by_block: vec![0; code.blocks.len() * bounds] };
    count(code, live, limits, graph, true, &mut |block, _, pressure| {
        out.over |= pressure.over(limits);
        out.max = out.max.max(pressure.max(limits));
        pressure.raise(&mut out.by_block[block as usize * bounds..(block as usize + 1) * bounds]);
    });
    out
}

/// Calls `note` with block, instruction and pressure for every point. Without `recipes`, values that can be made again
/// count only where an instruction has them as operands.
pub(crate) fn count(
    code: &Code,
    live: &Liveness,
    limits: &Limits,
    graph: &Graph,
    recipes: bool,
    note: &mut dyn FnMut(u32, u32, &Pressure),
) {
    let mut pressure = Pressure::default();
    let mut list: Vec<Node> = Vec::new();
    let counted = |vreg: u32| recipes || code.vregs[vreg as usize].recipe.is_none();
    for &block in &graph.rpo {
        let steps = code.blocks[block as usize].steps.clone();
        let mut counts = Counts::new(limits);
        for vreg in live.ins(block).filter(|&vreg| counted(vreg)) {
            counts.add(code, limits, vreg);
        }
        for &param in &code.blocks[block as usize].params {
            if live.param_live[param as usize] && counted(param) {
                counts.add(code, limits, param);
            }
        }
        pressure.start(limits);
        pressure.add_counts(limits, &counts, At::Point);
        if let Some(first) = code.steps.get(steps.start as usize) {
            note(block, first.inst, &pressure);
        }
        for step in steps {
            let step = &code.steps[step as usize];
            let ops = &code.ops[step.ops()];
            let kills = &code.kills[step.ops()];
            for (op, &kill) in ops.iter().zip(kills) {
                if op.kind == OperandKind::Use && kill == DIES && counted(op.vreg.0) {
                    counts.sub(code, limits, op.vreg.0);
                }
            }
            // What lives through, then the step's own needs. A use that lives on is a node of its own.
            let mut through = counts.clone();
            for (index, op) in ops.iter().enumerate() {
                let again = ops[..index].iter().any(|o| o.kind == OperandKind::Use && o.vreg == op.vreg);
                if op.kind == OperandKind::Use
                    && kills[index] == LIVES
                    && !again
                    && !code.is_undefined(op.vreg.0)
                    && counted(op.vreg.0)
                {
                    through.sub(code, limits, op.vreg.0);
                }
            }
            if !ops.is_empty() || step.clobbers != ClobberId(0) {
                nodes(code, limits, step, &mut list);
                for phase in [READING, WRITING] {
                    pressure.start(limits);
                    pressure.add_counts(limits, &through, At::Through(step.clobbers));
                    pressure.add_nodes(limits, &list, step.clobbers, phase);
                    note(block, step.inst, &pressure);
                }
            }
            for (op, &kill) in ops.iter().zip(kills) {
                if op.kind != OperandKind::Use && kill == LIVES && counted(op.vreg.0) {
                    counts.add(code, limits, op.vreg.0);
                }
            }
            pressure.start(limits);
            pressure.add_counts(limits, &counts, At::Point);
            note(block, step.inst, &pressure);
        }
    }
}
