//! Spilling before colouring, over the SSA form (Braun & Hack 2009): walk the blocks in reverse postorder with the set
//! of values that are in registers, bring in what the next step reads, and where the step does not fit put out what is
//! least worth keeping. Values are split at the points where they are put out and brought back, nothing is spilled
//! everywhere, and nothing is started over.
//!
//! What is least worth keeping: distance to the next use (in steps, loops weighing in: [`crate::nextuse`]) divided
//! by what putting it out and getting it back costs (as often as that use comes). Values with a recipe are made again and never stored.
//!
//! A *region*, a run of steps before which no memory edit may stand, counts as one step: what it reads is brought in
//! before it, and what is defined in it can only be put out after it. Between regions values stand only where memory
//! edits leave them alone ([`crate::demand`] counts that way), so an edit may go anywhere there.
//!
//! The pass decides what is in registers where; [`crate::couple`] derives stores, slots and edge edits from it.

mod entry;
mod room;

use std::ops::Range;

use crate::code::*;
use crate::demand::*;
use crate::graph::{Graph, NONE};
use crate::listed::Listed;
use crate::liveness::Liveness;
use crate::nextuse::{Distances, Next, NextUse};
use crate::pressure::Measure;
use crate::problem::*;
use crate::report::{Candidate, Decision, Reason, Return};
use crate::rewrite::{Insertion, PHASE_FILL, PHASE_REMAKE};

/// Any bound.
const SOMEWHERE: Over = Over::MAX;

/// What does not fit though no count shows it may be anywhere.
fn somewhere(over: Over) -> Over {
    if over == 0 { SOMEWHERE } else { over }
}

/// Why spilling did not get through.
pub(crate) enum Trouble {
    /// Without memory edits it does not fit.
    NeedsMemory,
    /// Not even with everything else in memory.
    Full { step: u32, set: SetId, live: Vec<u32> },
}

/// A value was put out before `step` of `block`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eviction {
    pub vreg: u32,
    pub block: u32,
    pub step: u32,
}

/// What was decided.
pub(crate) struct Decisions {
    /// Fills have no slot yet (`StepKind::Fill(NONE)`).
    pub insertions: Vec<Insertion>,
    pub evictions: Vec<Eviction>,
    /// Values in registers at the start (after the edge's edits) and the end of every block.
    pub entry: Vec<Vec<u32>>,
    pub exit: Vec<Vec<u32>>,
}

pub(crate) struct Spiller<'a> {
    pub code: &'a mut Code,
    pub live: &'a Liveness,
    pub limits: &'a Limits,
    pub graph: &'a Graph,
    pub costs: &'a Costs,
    pub measure: &'a Measure,
    pub recipe_costs: &'a [f32],
    pub force: bool,
    pub without: Without,
    /// Instructions at which nothing but their operands is in registers.
    pub bare: &'a [bool],
    /// What is decided is told here.
    pub log: Option<&'a mut Vec<Decision>>,
}

struct Walk<'a, 'b> {
    s: &'b mut Spiller<'a>,
    next: NextUse,
    def_frequency: Vec<f32>,
    /// Values in registers.
    resident: Listed,
    counts: Counts,
    /// Values that come right before the current step, after all other memory edits.
    fresh: Vec<u32>,
    /// Next use of a resident value, counted from the start of the block.
    upcoming: Vec<Next>,
    /// Next use after an operand.
    after: Vec<Next>,
    /// Has it been put out before (so that no further store is needed)?
    stored: Vec<bool>,
    /// Has it been put out at all?
    was_out: Vec<bool>,
    /// How many values are out that are to be made again from this one.
    held: Vec<u32>,
    /// It is out, and to be made again from what is at hand.
    planned: Vec<bool>,
    /// Last step of the current region that reads the value, or that it was defined there.
    locked: Vec<u32>,
    /// Marks for [`Walk::choose_entry`].
    mark: Vec<u32>,
    marks: u32,
    scratch: Distances,
    nodes: Vec<Node>,
    pressure: Pressure,
    out: Decisions,
}

impl<'a> Spiller<'a> {
    pub fn run(&mut self) -> Result<Decisions, Trouble> {
        let next = NextUse::new(self.code, self.live, self.graph);
        let count = self.code.vregs.len();
        let blocks = self.code.blocks.len();
        let mut def_frequency = vec![1.0f32; count];
        for block in &self.code.blocks {
            for &param in &block.params {
                def_frequency[param as usize] = block.frequency;
            }
            for step in block.steps.clone() {
                for op in &self.code.ops[self.code.steps[step as usize].ops()] {
                    if op.kind != OperandKind::Use {
                        def_frequency[op.vreg.0 as usize] = block.frequency;
                    }
                }
            }
        }
        let counts = Counts::new(self.limits);
        let after = vec![Next::NEVER; self.code.ops.len()];
        let mut walk = Walk {
            s: self,
            next,
            def_frequency,
            resident: Listed::new(count),
            counts,
            fresh: Vec::new(),
            upcoming: vec![Next::NEVER; count],
            after,
            stored: vec![false; count],
            was_out: vec![false; count],
            held: vec![0; count],
            planned: vec![false; count],
            locked: vec![NONE; count],
            mark: vec![0; count],
            marks: 0,
            scratch: Distances::new(count),
            nodes: Vec::new(),
            pressure: Pressure::default(),
            out: Decisions {
                insertions: Vec::new(),
                evictions: Vec::new(),
                entry: vec![Vec::new(); blocks],
                exit: vec![Vec::new(); blocks],
            },
        };
        for index in 0..walk.s.graph.rpo.len() {
            let block = walk.s.graph.rpo[index];
            walk.block(block)?;
        }
        Ok(walk.out)
    }
}

impl Walk<'_, '_> {
    fn is_in(&self, vreg: u32) -> bool {
        self.resident.contains(vreg)
    }

    fn bring(&mut self, vreg: u32) {
        if self.resident.insert(vreg) {
            self.counts.add(self.s.code, self.s.limits, vreg);
        }
    }

    fn drop(&mut self, vreg: u32) {
        if self.resident.remove(vreg) {
            self.counts.sub(self.s.code, self.s.limits, vreg);
        }
    }

    /// Can it be put out at all?
    fn evictable(&self, vreg: u32) -> bool {
        let info = &self.s.code.vregs[vreg as usize];
        info.recipe.is_some()
            || self.s.limits.memory && self.s.limits.backing[info.home.0 as usize] == Backing::Memory
    }

    /// Can it be put out in the region that begins at step `region`?
    fn evictable_at(&self, vreg: u32, region: u32) -> bool {
        self.evictable(vreg) && (self.has_recipe(vreg) || !self.s.code.steps[region as usize].no_memory)
    }

    fn has_recipe(&self, vreg: u32) -> bool {
        self.s.code.vregs[vreg as usize].recipe.is_some()
    }

    fn block(&mut self, block: u32) -> Result<(), Trouble> {
        let entry = self.choose_entry(block);
        while let Some(&vreg) = self.resident.as_slice().last() {
            self.drop(vreg);
        }
        for &vreg in &entry {
            self.bring(vreg);
        }
        self.out.entry[block as usize] = entry;
        self.look_ahead(block);
        let steps = self.s.code.blocks[block as usize].steps.clone();
        let mut start = steps.start;
        while start < steps.end {
            let mut end = start + 1;
            while self.s.limits.memory && end < steps.end && self.s.code.steps[end as usize].no_memory {
                end += 1;
            }
            self.region(block, start, end)?;
            start = end;
        }
        self.out.exit[block as usize] = self.resident.as_slice().to_vec();
        Ok(())
    }

    /// Next-use positions for every operand of the block and for what is resident at its start.
    fn look_ahead(&mut self, block: u32) {
        let code = &*self.s.code;
        self.next.at_exit(code, self.s.graph, block, &mut self.scratch);
        let steps = code.blocks[block as usize].steps.clone();
        for step in steps.clone().rev() {
            let range = code.steps[step as usize].ops();
            for op in range.clone() {
                self.after[op] = self.scratch.get(code.ops[op].vreg.0);
            }
            for op in range.filter(|&op| code.ops[op].kind == OperandKind::Use) {
                self.scratch.set(code.ops[op].vreg.0, Next::at(step - steps.start));
            }
        }
        for &vreg in self.resident.as_slice() {
            self.upcoming[vreg as usize] = self.scratch.get(vreg);
        }
    }

    fn region(&mut self, block: u32, start: u32, end: u32) -> Result<(), Trouble> {
        let base = self.s.code.blocks[block as usize].steps.start;
        // What must be here before the region begins: all it reads and does not define, except recipes.
        let mut needs: Vec<u32> = Vec::new();
        let mut locks: Vec<u32> = Vec::new();
        let mut defined: Vec<u32> = Vec::new();
        for step in start..end {
            for op in self.s.code.steps[step as usize].ops() {
                let op = &self.s.code.ops[op];
                let vreg = op.vreg.0;
                if self.s.code.is_undefined(vreg) {
                    continue;
                }
                if op.kind == OperandKind::Use {
                    if !self.has_recipe(vreg) {
                        self.locked[vreg as usize] = step;
                        locks.push(vreg);
                        if !self.is_in(vreg) && !needs.contains(&vreg) {
                            needs.push(vreg);
                        }
                    }
                } else if self.s.limits.memory && !self.has_recipe(vreg) {
                    // Defined here: stays until the region is over.
                    defined.push(vreg);
                }
            }
        }
        for &vreg in &defined {
            self.locked[vreg as usize] = end;
            locks.push(vreg);
        }
        if !defined.is_empty() {
            needs.retain(|need| self.locked[*need as usize] != end);
        }
        if self.s.force || self.s.without.splitting {
            for vreg in self.resident.as_slice().to_vec() {
                let locked = self.locked[vreg as usize];
                let leaves = self.s.force || self.was_out[vreg as usize];
                if leaves && self.evictable_at(vreg, start) && (locked == NONE || locked < start) {
                    self.record(block, start, Reason::Asked, vreg, &[]);
                    self.evict(vreg, block, start);
                }
            }
        }
        if !needs.is_empty() && !self.s.limits.memory {
            return Err(Trouble::NeedsMemory);
        }
        if !needs.is_empty() && self.s.code.steps[start as usize].no_memory {
            return Err(self.full(start));
        }
        self.bring_needs(needs, start..end, base, &mut locks);
        for step in start..end {
            for op in self.s.code.steps[step as usize].ops() {
                let operand = self.s.code.ops[op];
                let vreg = operand.vreg.0;
                if operand.kind == OperandKind::Use && !self.s.code.is_undefined(vreg) && !self.is_in(vreg) {
                    if let Some(recipe) = self.s.code.vregs[vreg as usize].recipe {
                        self.bring(vreg);
                        self.fresh.push(vreg);
                        self.upcoming[vreg as usize] = Next::at(step - base);
                        self.insert(step, PHASE_REMAKE, StepKind::Remake(recipe), vreg);
                    } else {
                        return Err(self.full(step));
                    }
                }
            }
            if self.s.bare[self.s.code.steps[step as usize].inst as usize] {
                self.bare(block, step, start);
            }
            self.make_room(block, step, start)?;
            self.pass(step);
            self.fresh.clear();
        }
        for vreg in locks {
            self.locked[vreg as usize] = NONE;
        }
        Ok(())
    }

    /// What the region `steps` reads and is not there comes from memory, or is made again from what is.
    fn bring_needs(&mut self, needs: Vec<u32>, steps: Range<u32>, base: u32, locks: &mut Vec<u32>) {
        let bare = |step: u32| self.s.bare[self.s.code.steps[step as usize].inst as usize];
        let repeats = !self.s.force && !steps.clone().any(bare);
        let (made, filled): (Vec<u32>, Vec<u32>) =
            needs.iter().partition(|&&vreg| repeats && self.maker_at_hand(vreg, &needs));
        for &vreg in filled.iter().chain(&made) {
            self.bring(vreg);
            self.upcoming[vreg as usize] = Next::at(steps.start - base);
            self.release(vreg);
        }
        for &vreg in &filled {
            self.insert(steps.start, PHASE_FILL, StepKind::Fill(NONE), vreg);
        }
        // What the last fill brings meets no memory edit before it is read.
        self.fresh.extend(filled.last().filter(|&&vreg| self.s.code.vregs[vreg as usize].size == 1));
        for vreg in made {
            let Some(maker) = self.s.code.makers.get(vreg).cloned() else { continue };
            for input in maker.inputs() {
                if self.is_in(input) {
                    // It stays: all that goes leaves before the region, and so before this.
                    self.locked[input as usize] = steps.end;
                    locks.push(input);
                } else if let Some(recipe) = self.s.code.vregs[input as usize].recipe {
                    // It dies right away, and gives its register to the value.
                    self.insert(steps.start, PHASE_REMAKE, StepKind::Remake(recipe), input);
                }
            }
            self.fresh.push(vreg);
            self.insert(steps.start, PHASE_REMAKE, StepKind::Repeat(maker.inst), vreg);
        }
    }

    /// Can `vreg` be made again here, from values in registers other than those on their way in?
    fn maker_at_hand(&self, vreg: u32, coming: &[u32]) -> bool {
        self.cost_from(vreg, |input| self.is_in(input) && !coming.contains(&input)).is_some()
    }

    /// Cycles of making `vreg` again from inputs that are `at_hand`. One may be made from its recipe before: it takes the register that
    /// the value will have.
    fn cost_from(&self, vreg: u32, at_hand: impl Fn(u32) -> bool) -> Option<f32> {
        let maker = self.s.code.makers.get(vreg)?;
        let mut away = maker.inputs().filter(|&input| !at_hand(input));
        let (first, second) = (away.next(), away.next());
        match (first, second) {
            (None, _) => Some(maker.cost),
            (Some(input), None) => {
                let recipe = self.s.code.vregs[input as usize].recipe?;
                Some(maker.cost + self.s.recipe_cost(recipe))
            }
            _ => None,
        }
    }

    /// What `vreg` was to be made from is no longer held for it.
    fn release(&mut self, vreg: u32) {
        if std::mem::take(&mut self.planned[vreg as usize])
            && let Some(maker) = self.s.code.makers.get(vreg)
        {
            maker.inputs().for_each(|input| self.held[input as usize] -= 1);
        }
    }

    /// Put out everything that the step does not read, and what it reads right after it.
    fn bare(&mut self, block: u32, step: u32, region: u32) {
        for vreg in self.resident.as_slice().to_vec() {
            let locked = self.locked[vreg as usize];
            let reads = self.s.code.steps[step as usize].ops().find(|&op| {
                self.s.code.ops[op].kind == OperandKind::Use && self.s.code.ops[op].vreg.0 == vreg
            });
            if !self.evictable_at(vreg, region) {
                continue;
            }
            match reads {
                None if locked == NONE || locked < step => {
                    self.record(block, step, Reason::Arrangement, vreg, &[]);
                    self.evict(vreg, block, region);
                }
                Some(op) if self.s.code.kills[op] == LIVES && (locked == NONE || locked <= step) => {
                    self.record(block, step, Reason::Arrangement, vreg, &[]);
                    self.leave_after(vreg, block, step, region);
                }
                _ => {}
            }
        }
        // What is defined here and can be made again is made again where it is read.
        for op in self.s.code.steps[step as usize].ops() {
            if self.s.code.ops[op].kind != OperandKind::Use && self.has_recipe(self.s.code.ops[op].vreg.0) {
                self.s.code.kills[op] = DIES;
                self.was_out[self.s.code.ops[op].vreg.0 as usize] = true;
            }
        }
    }

    /// A value that the step reads is not needed in a register after it.
    fn leave_after(&mut self, vreg: u32, block: u32, step: u32, region: u32) {
        let mut first = true;
        for op in self.s.code.steps[step as usize].ops() {
            let operand = &self.s.code.ops[op];
            if operand.kind == OperandKind::Use && operand.vreg.0 == vreg {
                self.s.code.kills[op] = if first { DIES } else { DIES_AGAIN };
                first = false;
            }
        }
        self.note_eviction(vreg, block, region);
    }

    fn insert(&mut self, step: u32, phase: u8, kind: StepKind, vreg: u32) {
        self.out.insertions.push(Insertion { step, phase, kind, vreg, to: NONE, no_memory: false });
    }

    /// Put a value out before `step`, a place where memory edits may stand.
    fn evict(&mut self, vreg: u32, block: u32, step: u32) {
        self.drop(vreg);
        self.note_eviction(vreg, block, step);
    }

    fn note_eviction(&mut self, vreg: u32, block: u32, step: u32) {
        self.was_out[vreg as usize] = true;
        if self.has_recipe(vreg) {
            return;
        }
        // (Where nothing fills it in the end, there will be no store.)
        self.out.evictions.push(Eviction { vreg, block, step });
        if self.repeat_cost(vreg).is_none() {
            self.stored[vreg as usize] = true;
        } else if let Some(maker) = self.s.code.makers.get(vreg) {
            maker.inputs().for_each(|input| self.held[input as usize] += 1);
            self.planned[vreg as usize] = true;
        }
    }

    /// The step itself: last uses leave, definitions come.
    fn pass(&mut self, step: u32) {
        for op in self.s.code.steps[step as usize].ops() {
            let vreg = self.s.code.ops[op].vreg.0;
            if self.s.code.ops[op].kind == OperandKind::Use {
                self.upcoming[vreg as usize] = self.after[op];
                if self.s.code.kills[op] == DIES {
                    self.drop(vreg);
                }
            }
        }
        for op in self.s.code.steps[step as usize].ops() {
            if self.s.code.ops[op].kind != OperandKind::Use && self.s.code.kills[op] == LIVES {
                let vreg = self.s.code.ops[op].vreg.0;
                self.bring(vreg);
                self.upcoming[vreg as usize] = self.after[op];
            }
        }
    }

    /// Tells the log, if there is one, that `vreg` goes, chosen among `all`.
    fn record(&mut self, block: u32, step: u32, reason: Reason, vreg: u32, all: &[u32]) {
        if self.s.log.is_some() {
            let candidate = |vreg: u32| self.candidate(block, vreg, self.distance(block, step, vreg));
            let others = all.iter().filter(|&&other| other != vreg).map(|&other| candidate(other));
            let decision = Decision::new(self.inst(step), reason, candidate(vreg), others.collect());
            self.tell(decision);
        }
    }

    fn tell(&mut self, decision: Decision) {
        if let Some(log) = self.s.log.as_deref_mut() {
            log.push(decision);
        }
    }

    fn inst(&self, step: u32) -> Inst {
        Inst(self.s.code.steps[step as usize].inst)
    }

    fn candidate(&self, block: u32, vreg: u32, distance: u32) -> Candidate {
        let recipe = self.s.code.vregs[vreg as usize].recipe;
        Candidate {
            vreg: VReg(vreg),
            back: match (recipe, self.s.code.makers.get(vreg)) {
                (Some(recipe), _) => Return::Recipe(recipe),
                (_, Some(maker)) if self.repeat_cost(vreg).is_some() => Return::Repeat(Inst(maker.inst)),
                _ => Return::Memory,
            },
            distance,
            cost: self.cost(block, vreg),
            score: self.worth(block, vreg, distance),
        }
    }

    fn full(&self, step: u32) -> Trouble {
        if !self.s.limits.memory {
            return Trouble::NeedsMemory;
        }
        let code = &*self.s.code;
        let ops = &code.ops[code.steps[step as usize].ops()];
        let set = ops.first().map_or(SetId(0), |op| op.set);
        Trouble::Full { step, set, live: self.resident.as_slice().to_vec() }
    }
}

impl Spiller<'_> {
    fn recipe_cost(&self, recipe: Recipe) -> f32 {
        self.recipe_costs.get(recipe.0 as usize).copied().unwrap_or(1.0).max(0.1)
    }
}
