//! How many registers a program needs at least, whatever is spilled: for the message of an allocation that failed.
//!
//! A lower bound: what the instructions themselves name, and in a region (where no memory edit may stand) what the region
//! still reads and what it has defined. That an arrangement exists is not looked into.

use crate::code::*;
use crate::demand::*;
use crate::problem::*;

/// Units that are missing under `limits` in the worst set at the worst instruction, with nothing in registers that could be
/// elsewhere.
pub(crate) fn missing(code: &Code, limits: &Limits) -> u32 {
    // A limit of registers is about sets backed by memory, and not about what memory edits destroy.
    let bounds: Vec<usize> = (0..limits.sets.len())
        .filter(|&set| limits.backing[set] == Backing::Memory && !limits.fragile[set])
        .filter_map(|set| limits.bound_of(SetId(set as u8)))
        .collect();
    let mut code = code.clone();
    let mut most = 0;
    let mut list: Vec<Node> = Vec::new();
    let mut pressure = Pressure::default();
    for block in 0..code.blocks.len() {
        let steps = code.blocks[block].steps.clone();
        let mut start = steps.start;
        while start < steps.end {
            let inside = (start + 1..steps.end).take_while(|&s| code.steps[s as usize].no_memory);
            let end = start + 1 + inside.count() as u32;
            let mut here = read_first(&code, start, end);
            for at in start..end {
                leave(&mut code, at, &here);
                let step = &code.steps[at as usize];
                let ops = &code.ops[step.ops()];
                let names = |vreg: u32| ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg);
                let mut through = Counts::new(limits);
                for &(vreg, _) in here.iter().filter(|(vreg, _)| !names(*vreg)) {
                    through.add(&code, limits, vreg);
                }
                // As few as in the best of the ways in which operands can share places.
                let mut ways = Ways::every();
                let mut least = u32::MAX;
                while least > most {
                    ways.nodes(&code, limits, step, &mut list);
                    let mut missing = 0;
                    for phase in [READING, WRITING] {
                        pressure.start(limits);
                        pressure.add_counts(limits, &through, At::Through(step.clobbers));
                        pressure.add_nodes(limits, &list, step.clobbers, phase);
                        let of = |&b: &usize| pressure.used(b).saturating_sub(limits.capacity[b]);
                        missing = missing.max(bounds.iter().map(of).max().unwrap_or(0));
                    }
                    least = least.min(missing);
                    if !ways.next() {
                        break;
                    }
                }
                most = most.max(least);
                here.retain(|&(_, last)| last > at);
                for (op, &kill) in ops.iter().zip(&code.kills[step.ops()]) {
                    let vreg = op.vreg.0;
                    if op.kind != OperandKind::Use && kill == LIVES && is_held(&code, vreg) {
                        here.push((vreg, last_of(&code, vreg, at + 1, end)));
                    }
                }
            }
            start = end;
        }
    }
    most
}

/// What a step reads is not needed in a register after it, unless the region reads it again.
fn leave(code: &mut Code, at: u32, here: &[(u32, u32)]) {
    let mut read: Vec<u32> = Vec::new();
    for op in code.steps[at as usize].ops() {
        let (vreg, kind) = (code.ops[op].vreg.0, code.ops[op].kind);
        let stays = here.iter().any(|&(held, last)| held == vreg && last > at);
        if kind == OperandKind::Use && code.kills[op] == LIVES && !stays && !code.is_undefined(vreg) {
            code.kills[op] = if read.contains(&vreg) { DIES_AGAIN } else { DIES };
            read.push(vreg);
        }
    }
}

/// Must it stay where it is inside a region?
fn is_held(code: &Code, vreg: u32) -> bool {
    let info = &code.vregs[vreg as usize];
    info.recipe.is_none() && !info.undefined
}

/// The values that a region reads and does not define first, each with the step that reads it last.
fn read_first(code: &Code, start: u32, end: u32) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    let mut defined: Vec<u32> = Vec::new();
    for at in start..end {
        let ops = &code.ops[code.steps[at as usize].ops()];
        for op in ops.iter().filter(|op| op.kind == OperandKind::Use && is_held(code, op.vreg.0)) {
            let vreg = op.vreg.0;
            match found.iter_mut().find(|entry| entry.0 == vreg) {
                Some(entry) => entry.1 = at,
                None if !defined.contains(&vreg) => found.push((vreg, at)),
                None => {}
            }
        }
        defined.extend(ops.iter().filter(|op| op.kind != OperandKind::Use).map(|op| op.vreg.0));
    }
    found
}

/// Up to which step a value that the region has defined stays: to its last use, or, when it lives on, to the end.
fn last_of(code: &Code, vreg: u32, from: u32, end: u32) -> u32 {
    let dies = |step: u32| {
        code.steps[step as usize].ops().any(|op| {
            let operand = &code.ops[op];
            operand.kind == OperandKind::Use && operand.vreg.0 == vreg && code.kills[op] != LIVES
        })
    };
    (from..end).find(|&step| dies(step)).unwrap_or(end)
}
