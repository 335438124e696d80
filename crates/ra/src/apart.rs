//! Values that are made again right where an instruction reads them, in the set that it reads them from.
//!
//! Spilling makes a value again in its home set, and the instruction's operand may ask for another: a copy then needs room in
//! both. Where there is no such room (an instruction that keeps nothing but its operands in registers still does not fit), the
//! value that is read gets a name of its own, whose home is the operand's set.

use crate::code::*;
use crate::demand::Limits;
use crate::problem::*;
use crate::rewrite::{Insertion, PHASE_REMAKE, rewrite};

/// The code in which instructions in `bare` read values with recipes under names of their own, if their operand's set is not
/// part of the value's home.
pub(crate) fn split(mut code: Code, bare: &[bool], limits: &Limits, memory_clobbers: ClobberId) -> Code {
    let mut insertions = Vec::new();
    for index in 0..code.steps.len() {
        let step = code.steps[index];
        if step.kind != StepKind::Inst || !bare[step.inst as usize] || step.no_memory {
            continue;
        }
        for at in step.ops() {
            let op = code.ops[at];
            let info = code.vregs[op.vreg.0 as usize];
            let Some(recipe) = info.recipe.filter(|_| op.kind == OperandKind::Use && !info.undefined) else {
                continue;
            };
            if limits.nested(op.set, info.home) {
                continue;
            }
            let name = code.vregs.len() as u32;
            code.vregs.push(VRegInfo { home: op.set, ..info });
            code.ops[at].vreg = VReg(name);
            insertions.push(Insertion {
                step: index as u32,
                phase: PHASE_REMAKE,
                kind: StepKind::Remake(recipe),
                vreg: name,
                to: name,
                no_memory: false,
            });
        }
    }
    if insertions.is_empty() { code } else { rewrite(&code, insertions, memory_clobbers) }
}
