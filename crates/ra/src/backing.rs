//! Values of sets that are backed by another set (a flag kept in an ordinary register): where they do not fit, or where
//! something destroys them, they get a *shadow*, an ordinary value of the backing set. The shadow is copied from the
//! value right after its definition and back before a use; from then on it is spilled like any other value.
//!
//! Such values are brought in block by block: none stays in its own set across a block boundary once this pass runs.
//! (It only runs when something does not fit, or when memory edits, which destroy the set, are needed.)
//!
//! When memory edits destroy the set, the steps between the copy back and the last use in a row become a region in which no
//! memory edit may stand. A region that touches too many values is cut, at the price of another copy.
//!
//! Fragile values of sets without backing are kept in one region as well and fail where that cannot be.

use crate::code::*;
use crate::demand::*;
use crate::graph::NONE;
use crate::liveness::Liveness;
use crate::problem::*;
use crate::rewrite::{Insertion, rewrite};

/// Steps that are looked at for the next use of an eviction candidate.
const LOOK_AHEAD: u32 = 64;

const PHASE_SAVE: u8 = 0;
const PHASE_RESTORE: u8 = 1;

struct Keeper<'a> {
    code: &'a mut Code,
    limits: &'a Limits,
    shadow: Vec<u32>,
    /// Values whose shadow has to be made.
    saved: Vec<bool>,
    insertions: Vec<Insertion>,
    resident: Vec<u32>,
    /// Values of other sets that the current region reads or writes.
    touched: Vec<u32>,
    most: u32,
    /// Last step of the current block that reads a value of ours.
    last_use: Vec<u32>,
}

/// Is this pass about values of `set`?
fn is_ours(limits: &Limits, set: SetId) -> bool {
    match limits.backing[set.0 as usize] {
        Backing::Set(_) => true,
        Backing::None => limits.fragile[set.0 as usize],
        Backing::Memory => false,
    }
}

/// Does the pass have to run, when the bounds `over` do not fit?
pub(crate) fn is_needed(code: &Code, limits: &Limits, over: Over) -> bool {
    let mut used = vec![false; limits.sets.len()];
    for info in code.vregs.iter().filter(|info| !info.undefined) {
        used[info.home.0 as usize] = true;
    }
    limits.homes.iter().any(|&home| {
        used[home.0 as usize]
            && is_ours(limits, home)
            && (limits.fragile[home.0 as usize] || limits.full_bounds(home) & over != 0)
    })
}

/// The code with shadows; `Err` names a step where a value can neither stay nor go.
pub(crate) fn keep(code: &mut Code, live: &Liveness, limits: &Limits) -> Result<Code, u32> {
    let count = code.vregs.len();
    let smallest = limits
        .homes
        .iter()
        .filter(|home| limits.backing[home.0 as usize] == Backing::Memory && !limits.fragile[home.0 as usize])
        .map(|&home| limits.room(home))
        .min();
    let mut keeper = Keeper {
        code,
        limits,
        shadow: vec![NONE; count],
        saved: vec![false; count],
        insertions: Vec::new(),
        resident: Vec::new(),
        touched: Vec::new(),
        // Half the registers may be tied down for the sake of a flag; more cuts the region. Where that was too much, each step is
        // one of its own.
        most: if limits.exact { 0 } else { smallest.unwrap_or(0) / 2 },
        last_use: vec![NONE; count],
    };
    for block in 0..keeper.code.blocks.len() as u32 {
        keeper.block(block, live)?;
    }
    keeper.shadow_params();
    keeper.save_definitions();
    let Keeper { code, insertions, .. } = keeper;
    Ok(rewrite(code, insertions, limits.memory_clobbers))
}

impl Keeper<'_> {
    fn ours(&self, vreg: u32) -> bool {
        let info = &self.code.vregs[vreg as usize];
        !info.undefined && is_ours(self.limits, info.home)
    }

    fn fragile(&self, vreg: u32) -> bool {
        self.limits.fragile[self.code.vregs[vreg as usize].home.0 as usize]
    }

    fn shadow_of(&mut self, vreg: u32) -> Option<u32> {
        let info = self.code.vregs[vreg as usize];
        let Backing::Set(behind) = self.limits.backing[info.home.0 as usize] else { return None };
        if self.shadow[vreg as usize] == NONE {
            self.shadow[vreg as usize] = self.code.vregs.len() as u32;
            self.code.vregs.push(VRegInfo { home: behind, recipe: None, ..info });
        }
        Some(self.shadow[vreg as usize])
    }

    /// The value leaves its set; can it come back?
    fn evict(&mut self, vreg: u32, step: u32) -> Result<(), u32> {
        self.resident.retain(|&other| other != vreg);
        if self.code.vregs[vreg as usize].recipe.is_some() {
            return Ok(());
        }
        if self.shadow_of(vreg).is_none() {
            return Err(step);
        }
        self.saved[vreg as usize] = true;
        Ok(())
    }

    fn block(&mut self, block: u32, live: &Liveness) -> Result<(), u32> {
        self.resident.clear();
        self.touched.clear();
        let steps = self.code.blocks[block as usize].steps.clone();
        for vreg in live.ins(block) {
            let info = &self.code.vregs[vreg as usize];
            if self.ours(vreg) && info.recipe.is_none() && self.shadow_of(vreg).is_none() {
                return Err(steps.start);
            }
        }
        for step in steps.clone() {
            for op in self.code.steps[step as usize].ops() {
                let op = &self.code.ops[op];
                let last = &mut self.last_use[op.vreg.0 as usize];
                *last = if op.kind == OperandKind::Use { step } else { NONE };
            }
        }
        for step in steps.clone() {
            // What is not read again in this block leaves at once, so that it ties nothing down.
            for vreg in self.resident.clone() {
                let last = self.last_use[vreg as usize];
                if last == NONE || last < step {
                    self.evict(vreg, step)?;
                }
            }
            self.step(block, step)?;
        }
        for vreg in self.resident.clone() {
            self.evict(vreg, steps.end - 1)?;
        }
        Ok(())
    }

    fn step(&mut self, block: u32, step: u32) -> Result<(), u32> {
        let info = self.code.steps[step as usize];
        let ops: Vec<Operand> = self.code.ops[info.ops()].to_vec();
        // What the step destroys and does not read leaves before it: the step need not lie in a region for its sake.
        let clobbered = self.limits.clobber_mask(info.clobbers);
        for vreg in self.resident.clone() {
            let home = self.code.vregs[vreg as usize].home;
            if self.limits.sets[home.0 as usize].is_subset_of(&clobbered)
                && !ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg)
            {
                self.evict(vreg, step)?;
            }
        }
        if !self.resident.iter().any(|&vreg| self.fragile(vreg)) && !info.no_memory {
            self.touched.clear();
        }
        self.touch(&ops);
        // A run of steps without memory edits cannot be cut inside: it counts as a whole where it begins.
        let end = self.code.blocks[block as usize].steps.end;
        let mut later = step + 1;
        while !info.no_memory && later < end && self.code.steps[later as usize].no_memory {
            let ops: Vec<Operand> = self.code.ops[self.code.steps[later as usize].ops()].to_vec();
            self.touch(&ops);
            later += 1;
        }
        let too_many: u32 = self.touched.iter().map(|&vreg| self.code.vregs[vreg as usize].size as u32).sum();
        if self.limits.memory && too_many > self.most && !info.no_memory {
            for vreg in self.resident.clone() {
                if self.fragile(vreg) && !self.is_unbacked(vreg) {
                    self.evict(vreg, step)?;
                }
            }
            if self.resident.is_empty() {
                self.touched.clear();
                self.touch(&ops);
            }
        }
        let mut inside = info.no_memory || self.resident.iter().any(|&vreg| self.fragile(vreg));
        for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
            let vreg = op.vreg.0;
            if !self.ours(vreg) || self.resident.contains(&vreg) {
                continue;
            }
            let insertion = Insertion {
                step,
                phase: PHASE_RESTORE,
                kind: StepKind::Copy,
                vreg,
                to: vreg,
                no_memory: inside,
            };
            if let Some(recipe) = self.code.vregs[vreg as usize].recipe {
                self.insertions.push(Insertion { kind: StepKind::Remake(recipe), ..insertion });
            } else {
                let Some(shadow) = self.shadow_of(vreg) else { return Err(step) };
                self.saved[vreg as usize] = true;
                self.insertions.push(Insertion { vreg: shadow, ..insertion });
                if !self.touched.contains(&shadow) {
                    self.touched.push(shadow);
                }
            }
            self.resident.push(vreg);
            inside |= self.limits.memory && self.fragile(vreg);
        }
        if self.limits.memory && inside {
            self.code.steps[step as usize].no_memory = true;
        }
        self.make_room(block, step)?;
        self.pass(step, &ops)
    }

    fn is_unbacked(&self, vreg: u32) -> bool {
        let info = &self.code.vregs[vreg as usize];
        info.recipe.is_none() && self.limits.backing[info.home.0 as usize] == Backing::None
    }

    fn touch(&mut self, ops: &[Operand]) {
        for op in ops {
            let vreg = op.vreg.0;
            if !self.ours(vreg) && !self.code.is_undefined(vreg) && !self.touched.contains(&vreg) {
                self.touched.push(vreg);
            }
        }
    }

    fn make_room(&mut self, block: u32, step: u32) -> Result<(), u32> {
        loop {
            if self.fits(step) {
                return Ok(());
            }
            let range = self.code.steps[step as usize].ops();
            let reads = |vreg: u32| {
                self.code.ops[range.clone()].iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg)
            };
            let others: Vec<u32> =
                self.resident.iter().copied().filter(|&v| !reads(v) && !self.is_unbacked(v)).collect();
            if let Some(victim) = self.farthest(block, step, &others) {
                self.evict(victim, step)?;
                continue;
            }
            // Something that is read here leaves after the step.
            let mine = range.clone().find(|&op| {
                let vreg = self.code.ops[op].vreg.0;
                self.code.ops[op].kind == OperandKind::Use
                    && self.code.kills[op] == LIVES
                    && self.ours(vreg)
                    && !self.is_unbacked(vreg)
            });
            let Some(mine) = mine else {
                // All that the step reads at once, if no memory edit stands between what brings it in.
                if !self.limits.memory || self.code.steps[step as usize].no_memory {
                    return Err(step);
                }
                self.code.steps[step as usize].no_memory = true;
                for insertion in self.insertions.iter_mut().filter(|insertion| insertion.step == step).skip(1)
                {
                    insertion.no_memory = true;
                }
                continue;
            };
            let vreg = self.code.ops[mine].vreg.0;
            let mut first = true;
            for op in range {
                if self.code.ops[op].kind == OperandKind::Use && self.code.ops[op].vreg.0 == vreg {
                    self.code.kills[op] = if first { DIES } else { DIES_AGAIN };
                    first = false;
                }
            }
            if self.code.vregs[vreg as usize].recipe.is_none() {
                self.saved[vreg as usize] = self.shadow_of(vreg).is_some();
            }
        }
    }

    fn farthest(&self, block: u32, step: u32, others: &[u32]) -> Option<u32> {
        if others.len() < 2 {
            return others.first().copied();
        }
        let end = self.code.blocks[block as usize].steps.end.min(step.saturating_add(LOOK_AHEAD));
        let next = |vreg: u32| {
            (step..end).find(|&at| {
                let ops = &self.code.ops[self.code.steps[at as usize].ops()];
                ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg)
            })
        };
        others.iter().copied().max_by_key(|&vreg| (next(vreg).unwrap_or(u32::MAX), std::cmp::Reverse(vreg)))
    }

    /// Our own sets only, beside what the step itself needs of sets that nothing stands behind. (What is made again is made
    /// right before a step, and need not stay.)
    fn fits(&self, step: u32) -> bool {
        let info = &self.code.steps[step as usize];
        let ops = &self.code.ops[info.ops()];
        let kills = &self.code.kills[info.ops()];
        let mut through = Counts::new(self.limits);
        let mut after = Counts::new(self.limits);
        let mut before = Counts::new(self.limits);
        for &vreg in &self.resident {
            before.add(self.code, self.limits, vreg);
            let used = ops.iter().position(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg);
            if used.is_none() {
                through.add(self.code, self.limits, vreg);
            }
            if used.is_none_or(|op| kills[op] == LIVES) {
                after.add(self.code, self.limits, vreg);
            }
        }
        for (op, &kill) in ops.iter().zip(kills) {
            if op.kind != OperandKind::Use && kill == LIVES && self.ours(op.vreg.0) {
                after.add(self.code, self.limits, op.vreg.0);
            }
        }
        // Where a memory edit may stand, sets of which it leaves a part have less room.
        let next = self.code.steps.get(step as usize + 1);
        let stays_inside = self.resident.iter().any(|&vreg| self.fragile(vreg));
        let at = |inside: bool| if inside { INSIDE } else { At::Point };
        let points = [
            (&before, at(info.no_memory)),
            (&after, at(stays_inside || next.is_some_and(|next| next.no_memory))),
        ];
        let mut pressure = Pressure::default();
        for (counts, at) in points {
            pressure.start(self.limits);
            pressure.add_counts(self.limits, counts, at);
            if pressure.over(self.limits) != 0 {
                return false;
            }
        }
        let mut ways = Ways::new(self.limits);
        let mut list = Vec::new();
        loop {
            ways.nodes(self.code, self.limits, info, &mut list);
            self.keep_ours(ops, &mut list);
            let fits = [READING, WRITING].into_iter().all(|phase| {
                pressure.start(self.limits);
                pressure.add_counts(self.limits, &through, At::Through(info.clobbers));
                pressure.add_nodes(self.limits, &list, info.clobbers, phase);
                pressure.over(self.limits) == 0
            });
            if fits || !ways.next() {
                return fits;
            }
        }
    }

    /// What a step needs of our sets, and of those that nothing stands behind.
    fn keep_ours(&self, ops: &[Operand], list: &mut Vec<Node>) {
        list.retain_mut(|node| {
            let vreg = node.ops.first().map_or(node.value, |&op| ops[op as usize].vreg.0);
            let home = self.code.vregs[vreg as usize].home;
            if self.limits.backing[home.0 as usize] != Backing::None || is_ours(self.limits, home) {
                return is_ours(self.limits, node.set);
            }
            if node.main {
                node.counts = READING;
            }
            !(node.main && node.ops.is_empty())
        });
    }

    fn pass(&mut self, step: u32, ops: &[Operand]) -> Result<(), u32> {
        let info = self.code.steps[step as usize];
        let kills: Vec<u8> = self.code.kills[info.ops()].to_vec();
        for (op, &kill) in ops.iter().zip(&kills) {
            if op.kind == OperandKind::Use && kill != LIVES {
                self.resident.retain(|&vreg| vreg != op.vreg.0);
            }
        }
        // What the step destroys.
        let clobbered = self.limits.clobber_mask(info.clobbers);
        for vreg in self.resident.clone() {
            let home = self.code.vregs[vreg as usize].home;
            if self.limits.sets[home.0 as usize].is_subset_of(&clobbered) {
                self.evict(vreg, step)?;
            }
        }
        for (op, &kill) in ops.iter().zip(&kills) {
            let vreg = op.vreg.0;
            if op.kind != OperandKind::Use && kill == LIVES && self.ours(vreg) {
                self.resident.push(vreg);
                if let Some(shadow) = self.shadow_of(vreg) {
                    self.touched.push(shadow);
                }
            }
        }
        Ok(())
    }

    /// Parameters travel as shadows.
    fn shadow_params(&mut self) {
        for block in 0..self.code.blocks.len() {
            for index in 0..self.code.blocks[block].params.len() {
                let param = self.code.blocks[block].params[index];
                if self.ours(param)
                    && let Some(shadow) = self.shadow_of(param)
                {
                    self.code.blocks[block].params[index] = shadow;
                }
            }
            for edge in 0..self.code.blocks[block].succs.len() {
                for index in 0..self.code.blocks[block].succs[edge].args.len() {
                    let arg = self.code.blocks[block].succs[edge].args[index];
                    if self.ours(arg)
                        && let Some(shadow) = self.shadow_of(arg)
                    {
                        self.saved[arg as usize] = true;
                        self.code.blocks[block].succs[edge].args[index] = shadow;
                    }
                }
            }
        }
    }

    fn save_definitions(&mut self) {
        for block in 0..self.code.blocks.len() {
            for step in self.code.blocks[block].steps.clone() {
                for op in self.code.steps[step as usize].ops() {
                    let operand = self.code.ops[op];
                    let vreg = operand.vreg.0;
                    if operand.kind == OperandKind::Use || !self.saved.get(vreg as usize).is_some_and(|&s| s)
                    {
                        continue;
                    }
                    let to = self.shadow[vreg as usize];
                    self.insertions.push(Insertion {
                        step: step + 1,
                        phase: PHASE_SAVE,
                        kind: StepKind::Copy,
                        vreg,
                        to,
                        no_memory: true,
                    });
                }
            }
        }
    }
}
