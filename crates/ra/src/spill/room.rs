//! Room for one step: what does not fit, and who goes.
//!
//! Counts by bound come first ([`crate::demand`]); where they are too cautious, or where everything is tried, an arrangement of the
//! point is looked for ([`crate::settle`]).

use super::{SOMEWHERE, Trouble, Walk, somewhere};
use crate::code::*;
use crate::demand::*;
use crate::graph::NONE;
use crate::problem::*;
use crate::report::Reason;
use crate::rewrite::PHASE_REMAKE;
use crate::settle::{Item, node_item, settle, value_item};

impl Walk<'_, '_> {
    /// Bits of the bounds that `step` exceeds until it has read, and from when it writes.
    fn excess(&mut self, step: u32, region: u32) -> (Over, Over) {
        let limits = self.s.limits;
        let code = &*self.s.code;
        let info = &code.steps[step as usize];
        let point = |open: bool| if open { At::Point } else { INSIDE };
        // Before the step: what was made again right here never meets a memory edit.
        let mut counts = self.counts.clone();
        for &vreg in &self.fresh {
            counts.sub(code, limits, vreg);
        }
        // At a bare instruction nothing else could go: whether what it reads has its places will be seen.
        let arranged = limits.exact && !self.s.bare[info.inst as usize];
        let mut over = self.excess_at(&counts, point(step == region), &self.fresh, arranged);
        if !self.fresh.is_empty() {
            over |= self.excess_at(&self.counts, INSIDE, &[], arranged);
        }
        let ops = &code.ops[info.ops()];
        let kills = &code.kills[info.ops()];
        let mut through = self.counts.clone();
        let mut after = self.counts.clone();
        for (index, op) in ops.iter().enumerate() {
            let vreg = op.vreg.0;
            if op.kind != OperandKind::Use {
                if kills[index] == LIVES {
                    after.add(code, limits, vreg);
                }
            } else if !code.is_undefined(vreg) {
                let mut before = ops[..index].iter();
                if !before.any(|o| o.kind == OperandKind::Use && o.vreg == op.vreg) {
                    through.sub(code, limits, vreg);
                    if kills[index] != LIVES {
                        after.sub(code, limits, vreg);
                    }
                }
            }
        }
        nodes(code, limits, info, &mut self.nodes);
        let mut within = [0, 0];
        for (phase, within) in [READING, WRITING].into_iter().zip(&mut within) {
            self.pressure.start(limits);
            self.pressure.add_counts(limits, &through, At::Through(info.clobbers));
            self.pressure.add_nodes(limits, &self.nodes, info.clobbers, phase);
            *within = self.pressure.over(limits);
        }
        let both = within[0] | within[1];
        if limits.exact || both != 0 && both & Pressure::unit_bounds() == 0 {
            if self.arranges_within(step) {
                within = [0, 0];
            } else if both == 0 {
                within[0] = SOMEWHERE;
            }
        }
        let next = code.steps.get(step as usize + 1);
        let open = point(next.is_none_or(|next| !next.no_memory));
        let dies = |vreg: u32| {
            let mut uses = ops.iter().zip(kills);
            uses.any(|(op, &kill)| op.kind == OperandKind::Use && op.vreg.0 == vreg && kill != LIVES)
        };
        let born: Vec<u32> = (ops.iter().zip(kills))
            .filter(|(op, kill)| op.kind != OperandKind::Use && **kill == LIVES)
            .map(|(op, _)| op.vreg.0)
            .collect();
        self.pressure.start(limits);
        self.pressure.add_counts(limits, &after, open);
        let mut left = self.pressure.over(limits);
        if (arranged || left != 0) && left & Pressure::unit_bounds() == 0 {
            let stays = self.resident.as_slice().iter().copied().filter(|&v| !dies(v));
            left = if self.arranges(stays.chain(born), open) { 0 } else { somewhere(left) };
        }
        (over | within[0], within[1] | left)
    }

    /// As [`Walk::excess`], between steps, for the residents without `except`.
    fn excess_at(&self, counts: &Counts, at: At, except: &[u32], arranged: bool) -> Over {
        let mut pressure = Pressure::default();
        pressure.start(self.s.limits);
        pressure.add_counts(self.s.limits, counts, at);
        let over = pressure.over(self.s.limits);
        if over == 0 && !arranged || over & Pressure::unit_bounds() != 0 {
            return over;
        }
        let values = self.resident.as_slice().iter().copied().filter(|vreg| !except.contains(vreg));
        if self.arranges(values, at) { 0 } else { somewhere(over) }
    }

    /// The window counts are cautious where sets are not whole blocks: try it.
    pub(super) fn arranges(&self, values: impl Iterator<Item = u32>, at: At) -> bool {
        let (code, limits) = (&*self.s.code, self.s.limits);
        let lost = |vreg: u32| limits.lost_at(code.vregs[vreg as usize].home, at);
        let mut items: Vec<Item> = values.map(|vreg| value_item(code, limits, vreg, &lost(vreg))).collect();
        settle(&mut items, limits.units, limits.exact, &mut |_, free| free.first().unwrap_or(Unit(0)))
    }

    fn arranges_within(&self, step: u32) -> bool {
        let (code, limits) = (&*self.s.code, self.s.limits);
        let info = &code.steps[step as usize];
        let ops = &code.ops[info.ops()];
        let lost = limits.clobber_mask(info.clobbers);
        let read = |vreg: u32| ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg);
        let through = self.resident.as_slice().iter().filter(|&&vreg| !read(vreg));
        let through: Vec<Item> = through.map(|&vreg| value_item(code, limits, vreg, &lost)).collect();
        let mut ways = Ways::new(limits);
        let mut list = Vec::new();
        loop {
            ways.nodes(code, limits, info, &mut list);
            let mut items: Vec<Item> = list.iter().map(|node| node_item(code, limits, info, node)).collect();
            items.extend_from_slice(&through);
            if settle(&mut items, limits.units, limits.exact, &mut |_, free| free.first().unwrap_or(Unit(0)))
            {
                return true;
            }
            if !limits.exact || !ways.next() {
                return false;
            }
        }
    }

    pub(super) fn make_room(&mut self, block: u32, step: u32, region: u32) -> Result<(), Trouble> {
        loop {
            let (reading, writing) = self.excess(step, region);
            if reading | writing == 0 {
                return Ok(());
            }
            // What the step reads is judged by what reads it next.
            for op in self.s.code.steps[step as usize].ops() {
                if self.s.code.ops[op].kind == OperandKind::Use {
                    self.upcoming[self.s.code.ops[op].vreg.0 as usize] = self.after[op];
                }
            }
            let mut victim = self.victim(block, step, region, reading | writing);
            if victim.is_none() && self.s.limits.exact {
                victim = self.victim(block, step, region, SOMEWHERE);
            }
            let mut leaver = self.leaver(block, step, region, Some((reading, writing)));
            if victim.is_none() && leaver.is_none() {
                leaver = self.leaver(block, step, region, None);
            }
            match (victim, leaver) {
                (Some((score, victim)), other) if other.is_none_or(|(other, _)| score >= other) => {
                    if self.s.log.is_some() {
                        let all: Vec<u32> = self.candidates(step, region, reading | writing).collect();
                        self.record(block, step, Reason::Full, victim, &all);
                    }
                    self.evict(victim, block, region);
                }
                (_, Some((_, leaver))) => {
                    self.record(block, step, Reason::FullAfter, leaver, &[]);
                    self.leave_after(leaver, block, step, region);
                }
                (_, None) if self.refresh(step) => {}
                (_, None) => return Err(self.full(step)),
            }
        }
    }

    /// Of the values that the step reads and that live on, the one that is least worth keeping, with its score: it may go
    /// right after the step. That helps from there on, and before that only where a def takes its register, so that it
    /// stands twice; with `over`, what does not help where there is too much is left out.
    fn leaver(
        &mut self,
        block: u32,
        step: u32,
        region: u32,
        over: Option<(Over, Over)>,
    ) -> Option<(f32, u32)> {
        let mut best: Option<(f32, u32)> = None;
        let ops = self.s.code.steps[step as usize].ops();
        let clobbers = self.s.code.steps[step as usize].clobbers;
        for op in ops.clone() {
            let vreg = self.s.code.ops[op].vreg.0;
            if let Some((reading, writing)) = over {
                let tied = ops.clone().any(|def| self.s.code.ops[def].tied == Some((op - ops.start) as u8));
                let here = if reading == 0 { writing } else { reading };
                if reading != 0 && !tied || self.bounds_around(vreg, clobbers) & here == 0 {
                    continue;
                }
            }
            let locked = self.locked[vreg as usize];
            if self.s.code.ops[op].kind != OperandKind::Use
                || self.s.code.kills[op] != LIVES
                || self.s.code.is_undefined(vreg)
                || !self.evictable_at(vreg, region)
                || locked != NONE && locked > step
            {
                continue;
            }
            let score = self.score(block, step, vreg);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, vreg));
            }
        }
        best
    }

    /// A recipe that the step reads may be made again right before it, after all memory edits.
    fn refresh(&mut self, step: u32) -> bool {
        for op in self.s.code.steps[step as usize].ops() {
            let operand = self.s.code.ops[op];
            let vreg = operand.vreg.0;
            let recipe = self.s.code.vregs[vreg as usize].recipe;
            if let (OperandKind::Use, Some(recipe), false) =
                (operand.kind, recipe, self.fresh.contains(&vreg))
            {
                self.fresh.push(vreg);
                self.insert(step, PHASE_REMAKE, StepKind::Remake(recipe), vreg);
                return true;
            }
        }
        false
    }

    /// Bits of the bounds that a value counts in around a step with these clobbers.
    fn bounds_around(&self, vreg: u32, clobbers: ClobberId) -> Over {
        let home = self.s.code.vregs[vreg as usize].home;
        let at = |at: At| self.s.limits.bounds_at_all_levels(home, at);
        at(At::Point) | at(INSIDE) | at(At::Through(clobbers))
    }

    /// The resident values that may go and count where there is too much.
    fn candidates(&self, step: u32, region: u32, over: Over) -> impl Iterator<Item = u32> {
        let code = &*self.s.code;
        let info = &code.steps[step as usize];
        let ops = &code.ops[info.ops()];
        self.resident.as_slice().iter().copied().filter(move |&vreg| {
            let locked = self.locked[vreg as usize];
            self.bounds_around(vreg, info.clobbers) & over != 0
                && self.evictable_at(vreg, region)
                && (locked == NONE || locked < step)
                && !ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg)
        })
    }

    /// The candidate that is least worth keeping.
    fn victim(&self, block: u32, step: u32, region: u32, over: Over) -> Option<(f32, u32)> {
        let mut best: Option<(f32, u32)> = None;
        for vreg in self.candidates(step, region, over) {
            let score = self.score(block, step, vreg);
            if best.is_none_or(|(most, other)| score > most || score == most && vreg < other) {
                best = Some((score, vreg));
            }
        }
        best
    }

    /// Steps of a register gained per cycle that it costs.
    pub(super) fn score(&self, block: u32, step: u32, vreg: u32) -> f32 {
        self.worth(block, vreg, self.distance(block, step, vreg))
    }

    pub(super) fn distance(&self, block: u32, step: u32, vreg: u32) -> u32 {
        let here = step - self.s.code.blocks[block as usize].steps.start;
        self.upcoming[vreg as usize].distance.saturating_sub(here).max(1)
    }

    pub(super) fn worth(&self, block: u32, vreg: u32, distance: u32) -> f32 {
        let size = self.s.code.vregs[vreg as usize].size as f32;
        distance as f32 / self.cost(block, vreg) * size
    }

    /// Cycles of putting a value out and getting it back once.
    pub(super) fn cost(&self, block: u32, vreg: u32) -> f32 {
        let code = &*self.s.code;
        let next = self.upcoming[vreg as usize];
        let info = &code.vregs[vreg as usize];
        let cost = match (info.recipe, self.repeat_cost(vreg)) {
            (Some(recipe), _) => self.s.recipe_cost(recipe) * next.chance,
            (_, Some(cost)) => cost * next.chance,
            (None, None) => {
                let store = if self.stored[vreg as usize] {
                    0.0
                } else {
                    let frequency = code.blocks[block as usize].frequency;
                    self.s.costs.spill * (self.def_frequency[vreg as usize] / frequency).min(4.0)
                };
                self.s.costs.fill * next.chance + store
            }
        };
        // What was to be made from it has to come from memory then.
        let lost = self.held[vreg as usize] as f32 * (self.s.costs.fill + self.s.costs.spill);
        (cost + lost).max(0.1)
    }

    /// Cycles of making a value in a register again, if what it is made from is in registers too and read later than it.
    pub(super) fn repeat_cost(&self, vreg: u32) -> Option<f32> {
        if self.s.force {
            return None;
        }
        let back = self.upcoming[vreg as usize].distance;
        self.cost_from(vreg, |input| self.is_in(input) && self.upcoming[input as usize].distance >= back)
    }
}
