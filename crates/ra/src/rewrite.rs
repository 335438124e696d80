//! Puts the edits that spilling decided on into the code as steps of their own.

use crate::code::*;
use crate::problem::*;

/// An edit to stand before `step`. Among those of one step the order is by `phase`, then as given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insertion {
    pub step: u32,
    pub phase: u8,
    pub kind: StepKind,
    pub vreg: u32,
    /// For copies: what is defined.
    pub to: u32,
    /// No memory edit directly before it.
    pub no_memory: bool,
}

pub(crate) const PHASE_STORE: u8 = 0;
pub(crate) const PHASE_FILL: u8 = 1;
pub(crate) const PHASE_REMAKE: u8 = 2;

/// `code` with `insertions`; memory edits get `memory_clobbers` as their clobbers.
pub(crate) fn rewrite(code: &Code, mut insertions: Vec<Insertion>, memory_clobbers: ClobberId) -> Code {
    insertions.sort_by_key(|insertion| (insertion.step, insertion.phase));
    let mut out = Code {
        blocks: Vec::with_capacity(code.blocks.len()),
        steps: Vec::with_capacity(code.steps.len() + insertions.len()),
        ops: Vec::with_capacity(code.ops.len() + 2 * insertions.len()),
        real: Vec::with_capacity(code.ops.len() + 2 * insertions.len()),
        kills: Vec::new(),
        vregs: code.vregs.clone(),
        makers: code.makers.clone(),
    };
    let mut next = insertions.iter().peekable();
    for block in &code.blocks {
        let start = out.steps.len() as u32;
        for index in block.steps.clone() {
            let step = &code.steps[index as usize];
            while let Some(insertion) = next.next_if(|insertion| insertion.step == index) {
                let vreg = insertion.vreg;
                let nothing = ClobberId(0);
                if let StepKind::Repeat(_) = insertion.kind {
                    out.push_repeat(vreg, step.inst);
                    continue;
                }
                let (operands, clobbers): (&[(u32, OperandKind)], _) = match insertion.kind {
                    StepKind::Copy => {
                        (&[(vreg, OperandKind::Use), (insertion.to, OperandKind::Def)], nothing)
                    }
                    StepKind::Store(_) => (&[(vreg, OperandKind::Use)], memory_clobbers),
                    StepKind::Fill(_) => (&[(vreg, OperandKind::Def)], memory_clobbers),
                    StepKind::Remake(_) => (&[(vreg, OperandKind::Def)], nothing),
                    StepKind::Inst | StepKind::Repeat(_) => continue,
                };
                out.push_edit(insertion.kind, operands, clobbers, step.inst);
                if let Some(last) = out.steps.last_mut() {
                    last.no_memory = insertion.no_memory;
                }
            }
            let first_op = out.ops.len() as u32;
            out.ops.extend_from_slice(&code.ops[step.ops()]);
            out.real.extend_from_slice(&code.real[step.ops()]);
            out.steps.push(Step { first_op, last_op: out.ops.len() as u32, ..*step });
        }
        out.blocks.push(CodeBlock { steps: start..out.steps.len() as u32, ..block.clone() });
    }
    out
}
