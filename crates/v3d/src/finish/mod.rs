//! From allocated machine instructions to words: expansion, scheduling, pairing, delay slots, uniform stream.
//!
//! * [`expand`]: machine instructions and edits to operations on physical registers
//! * [`schedule`] and [`merge`]: order and pairing inside a block
//! * [`switches`]: where thread switches, branches and the program end ride
//! * [`fill`]: slots behind branches
//! * [`jumps`]: empty blocks are not gone through
//! * this file: blocks in order, branch offsets, the uniform stream in final order, encoding
//!
//! Nothing here decides what is right: the words are decoded and validated afterwards.

mod expand;
mod fill;
mod jumps;
mod merge;
mod schedule;
mod switches;
mod uop;

pub use expand::Frame;
pub use uop::{Origin, Provenance};

use crate::encode::encode;
use crate::instr::{Branch, BranchCond, BranchTarget, Instr, Loc, MsfIgnore, Op, UniformMove, Version};
use crate::mops::{MInst, When};
use expand::{Exit, Expander};
use kempe_ir::Stage;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::{Allocation, Block, Unit};
use schedule::Slot;
use switches::Placed;

/// Finished code.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    pub words: Vec<u64>,
    /// The uniform stream in final order.
    pub uniforms: Vec<UniformSource>,
    /// Per word.
    pub provenance: Vec<Provenance>,
    /// The program never switches before its end: it starts in its final section.
    pub single_section: bool,
    /// Uniform words per block start, for estimates: (first word of the block, block).
    pub block_starts: Vec<usize>,
}

/// Code could not be made: always a defect of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishError {
    pub message: String,
}

impl FinishError {
    pub(crate) fn bug(message: &str) -> FinishError {
        FinishError { message: message.to_owned() }
    }
}

impl std::fmt::Display for FinishError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// A block ready for its address.
struct Body {
    slots: Vec<Slot>,
    branch: Option<Jump>,
}

/// A branch: where it stands in its block, and where it goes.
struct Jump {
    at: usize,
    branch: Branch,
    to: Block,
}

/// Makes code.
///
/// # Errors
/// Only when allocation or selection broke their contract.
pub fn finish(
    frame: &Frame,
    mir: &Mir<MInst>,
    alloc: &Allocation,
    unit_loc: &dyn Fn(Unit) -> Loc,
) -> Result<Finished, FinishError> {
    let version = frame.version;
    let mut expanded = Expander::new(*frame, mir, alloc, unit_loc).run()?;
    jumps::thread(&mut expanded);
    let mut scheduled: Vec<schedule::Scheduled> = expanded
        .iter()
        .map(|e| {
            let branch = matches!(e.exit, Exit::Branch { .. });
            schedule::schedule(version, frame.threads, &e.ops, &e.words, branch)
        })
        .collect::<Result<_, _>>()?;
    let switches = scheduled.iter().any(|s| !s.switches.is_empty());
    let mut bodies = Vec::with_capacity(expanded.len());
    for (b, e) in expanded.iter().enumerate() {
        let mut block = std::mem::take(&mut scheduled[b]);
        let ends = e.exit == Exit::End;
        if ends && frame.stage == Stage::Fragment && !e.ops.iter().any(|o| o.kind == uop::Kind::Tlb) {
            return Err(FinishError::bug("the last block of a fragment program gives nothing"));
        }
        if ends && switches && block.switches.is_empty() {
            switches::mark_somewhere(version, &mut block);
        }
        let mut placed = switches::place(version, block, ends && switches);
        let branch = match e.exit {
            Exit::End => {
                switches::end(version, &mut placed);
                None
            }
            Exit::Jump(to) if falls_through(&expanded, b, to) => None,
            Exit::Jump(to) => Some((unconditional(), to)),
            Exit::Branch { when, inverted, taken, next } => {
                if !falls_through(&expanded, b, next) {
                    return Err(FinishError::bug("a branch does not fall through to the next block"));
                }
                Some((conditional(frame.stage, when, inverted), taken))
            }
        };
        bodies.push(body(placed, branch));
    }
    keep_apart(&mut bodies);
    fill::fill(version, &mut bodies);
    layout(version, bodies)
}

/// Only empty blocks lie between a block and the target of its jump.
fn falls_through(blocks: &[expand::Expanded], from: usize, to: Block) -> bool {
    let to = to.0 as usize;
    to > from
        && blocks[from + 1..to].iter().enumerate().all(|(k, b)| {
            b.ops.is_empty()
                && matches!(b.exit, Exit::Jump(t) if t.0 as usize > from + 1 + k && t.0 as usize <= to)
        })
}

fn unconditional() -> Branch {
    Branch {
        cond: BranchCond::Always,
        msfign: MsfIgnore::None,
        target: BranchTarget::Relative(0),
        uniforms: Some(UniformMove::Relative),
        link: false,
    }
}

fn conditional(stage: Stage, when: When, inverted: bool) -> Branch {
    // Helpers of a quad that lives count; lanes that do not exist do not.
    let live = if stage == Stage::Fragment { MsfIgnore::Quads } else { MsfIgnore::Lanes };
    let (cond, msfign) = match (when, inverted) {
        (When::Lane0, false) | (When::NotLane0, true) => (BranchCond::A0, MsfIgnore::None),
        (When::Lane0, true) | (When::NotLane0, false) => (BranchCond::Na0, MsfIgnore::None),
        (When::Any, false) => (BranchCond::AnyA, live),
        (When::Any, true) => (BranchCond::AnyNa, live),
        (When::NoLane, false) => (BranchCond::AllNa, live),
        (When::NoLane, true) => (BranchCond::AllA, live),
    };
    Branch { cond, msfign, ..unconditional() }
}

/// Moves the branch up over the instructions that may run in its delay slots; the rest are nops.
fn body(mut placed: Placed, branch: Option<(Branch, Block)>) -> Body {
    let Some((branch, to)) = branch else {
        return Body { slots: placed.slots, branch: None };
    };
    let k = switches::branch_slots(&placed, branch.cond != BranchCond::Always);
    let mut at = placed.slots.len() - k;
    // Rule 38: not in the slots of a switch. `branch_slots` kept clear of them; a switch that ends the block has
    // its slots behind it already.
    if at < placed.busy_until {
        at = placed.busy_until;
    }
    // Rules 42, 43.
    let close = |s: &Slot| {
        s.alu.signals.has(crate::instr::Signals::LDVARY)
            || (branch.reads_sample_flags() && s.alu.parts().iter().any(|p| p.op == Op::Setmsf))
    };
    while at > 0 && placed.slots.get(at - 1).is_some_and(close) {
        if at == placed.slots.len() {
            placed.slots.push(Slot::NOP);
        }
        at += 1;
    }
    while placed.slots.len() < at + Branch::DELAY_SLOTS {
        placed.slots.push(Slot::NOP);
    }
    Body { slots: placed.slots, branch: Some(Jump { at, branch, to }) }
}

/// Rules 18, 20 and 21, and rule 43, across the start of a block: the second part of a varying arrives in its first
/// instruction; a branch that comes first asks for sample flags that may have been set right before.
fn keep_apart(bodies: &mut [Body]) {
    for b in bodies.iter_mut().filter(|b| b.branch.is_none()) {
        if b.slots.last().is_some_and(Slot::takes_varying) {
            b.slots.push(Slot::NOP);
        }
    }
    let sets = |s: &Slot| s.alu.parts().iter().any(|p| p.op == Op::Setmsf);
    let mut before = false;
    for b in bodies {
        if let Some(j) = b.branch.as_mut().filter(|j| before && j.at == 0 && j.branch.reads_sample_flags()) {
            b.slots.insert(0, Slot::NOP);
            j.at += 1;
        }
        // Nothing that sets them stands in the slots of a branch.
        before = match b.slots.last() {
            Some(s) => sets(s),
            None => before && b.branch.is_none(),
        };
    }
}

fn layout(version: Version, bodies: Vec<Body>) -> Result<Finished, FinishError> {
    // Where each block starts, in instructions and in uniform words.
    let mut starts = Vec::with_capacity(bodies.len() + 1);
    let mut words = 0usize;
    let mut uniforms = 0usize;
    for b in &bodies {
        starts.push((words, uniforms));
        words += b.slots.len() + b.branch.is_some() as usize;
        uniforms += b.slots.iter().filter(|s| s.uniform.is_some()).count() + b.branch.is_some() as usize;
    }
    let mut out = Finished { block_starts: starts.iter().map(|s| s.0).collect(), ..Finished::default() };
    let mut switches = 0;
    for b in &bodies {
        for n in 0..=b.slots.len() {
            if let Some(j) = &b.branch
                && j.at == n
            {
                let (target, target_uniform) = starts[j.to.0 as usize];
                let here = out.words.len();
                // Relative to the instruction after the delay slots, and to the word after the consumed one.
                let offset = (target as i64 - (here as i64 + 4)) * 8;
                let stream = (target_uniform as i64 - (out.uniforms.len() as i64 + 1)) * 4;
                let branch = Branch { target: BranchTarget::Relative(offset as i32), ..j.branch };
                out.uniforms.push(UniformSource::Const(stream as i32 as u32));
                push(&mut out, version, &Instr::Branch(branch), Slot::NOP.origin)?;
            }
            let Some(s) = b.slots.get(n) else { break };
            if s.alu.signals.has(crate::instr::Signals::THRSW) {
                switches += 1;
            }
            if let Some(u) = s.uniform {
                out.uniforms.push(u);
            }
            push(&mut out, version, &Instr::Alu(s.alu), s.origin)?;
        }
    }
    out.single_section = switches == 1;
    Ok(out)
}

fn push(out: &mut Finished, version: Version, i: &Instr, origin: Provenance) -> Result<(), FinishError> {
    let word = encode(version, i)
        .map_err(|e| FinishError { message: format!("an instruction cannot be encoded: {e} ({i:?})") })?;
    out.words.push(word);
    out.provenance.push(origin);
    Ok(())
}
