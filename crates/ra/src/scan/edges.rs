//! Where blocks meet: places at their start, and the parallel copies of edges.

use smallvec::SmallVec;

use super::{Scan, Stuck};
use crate::code::Code;
use crate::graph::NONE;
use crate::masks::UnitMask;
use crate::moves::Move;
use crate::problem::*;
use crate::settle::{Item, value_item};
use crate::wishes::NO_UNIT;

impl Scan<'_> {
    pub(super) fn enter(&mut self, block: u32) -> Result<(), Stuck> {
        self.clear();
        let preds = &self.code.blocks[block as usize].preds;
        let mut loop_id = self.graph.loop_of[block as usize];
        if preds.len() == 1 {
            let list = std::mem::take(&mut self.exits[preds[0] as usize]);
            for &(vreg, unit) in &list {
                if self.live.is_in(block, vreg) {
                    self.place(vreg, unit);
                }
            }
            self.exits[preds[0] as usize] = list;
        } else if preds.len() > 1 {
            self.enter_merge(block)?;
        }
        if self.graph.is_header[block as usize] {
            let mut mask = UnitMask::EMPTY;
            for &param in &self.code.blocks[block as usize].params {
                let unit = self.unit_of[param as usize];
                if unit != NO_UNIT {
                    mask = mask.or(&self.span(param, Unit(unit)));
                }
            }
            if loop_id != NONE && self.graph.loops[loop_id as usize].header == block {
                self.loop_wanted[loop_id as usize] = mask;
            }
        }
        self.wanted = UnitMask::EMPTY;
        while loop_id != NONE {
            self.wanted = self.wanted.or(&self.loop_wanted[loop_id as usize]);
            loop_id = self.graph.loops[loop_id as usize].parent;
        }
        Ok(())
    }

    /// A block with several predecessors: values stay where the most frequent predecessor that is already done has
    /// them; parameters take the unit of an argument that ends there.
    fn enter_merge(&mut self, block: u32) -> Result<(), Stuck> {
        let code = self.code;
        let info = &code.blocks[block as usize];
        let done = |pred: &&u32| self.graph.rpo_index[**pred as usize] < self.graph.rpo_index[block as usize];
        let mut preds: SmallVec<[u32; 4]> = info.preds.iter().filter(done).copied().collect();
        preds.sort_by(|&a, &b| {
            let frequency = |p: u32| code.blocks[p as usize].frequency;
            frequency(b).total_cmp(&frequency(a)).then(a.cmp(&b))
        });
        let Some(&main) = preds.first() else { return Ok(()) };
        let mut waiting: Vec<u32> = Vec::new();
        let exit = std::mem::take(&mut self.exits[main as usize]);
        for &(vreg, unit) in &exit {
            if self.live.is_in(block, vreg) {
                self.place(vreg, unit);
            }
        }
        for vreg in self.live.ins(block) {
            if self.unit_of[vreg as usize] == NO_UNIT {
                waiting.push(vreg);
            }
        }
        // What parameters would cost where.
        for (index, &param) in info.params.iter().enumerate() {
            if !self.live.param_live[param as usize] {
                continue;
            }
            let mut votes: SmallVec<[(Unit, f32); 4]> = SmallVec::new();
            for &pred in &preds {
                let Some(arg) = edge_arg(code, pred, block, index) else { continue };
                let list = if pred == main { &exit } else { &self.exits[pred as usize] };
                let Some(&(_, unit)) = list.iter().find(|entry| entry.0 == arg) else { continue };
                let frequency = code.blocks[pred as usize].frequency;
                match votes.iter_mut().find(|vote| vote.0 == unit) {
                    Some(vote) => vote.1 += frequency,
                    None => votes.push((unit, frequency)),
                }
            }
            votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let free = self.home_mask(param).minus(&self.occupied);
            let free = self.free_places(param, &free);
            let near = votes.iter().map(|vote| vote.0).find(|&unit| free.contains(unit));
            let near = self.planned(param).filter(|&unit| free.contains(unit)).or(near);
            if let Some(unit) = near {
                self.place(param, unit);
            } else {
                waiting.push(param);
            }
        }
        self.exits[main as usize] = exit;
        let mut stuck = false;
        for &vreg in &waiting {
            let free = self.home_mask(vreg).minus(&self.occupied);
            let free = self.free_places(vreg, &free);
            if free.is_empty() {
                stuck = true;
                break;
            }
            let unit = self.choose(vreg, self.code.vregs[vreg as usize].home, &free, None);
            self.place(vreg, unit);
        }
        if stuck {
            self.settle_entry(block, &waiting)?;
        }
        for &param in &info.params {
            self.entry_unit[param as usize] = self.unit_of[param as usize];
            if self.unit_of[param as usize] != NO_UNIT {
                self.wishes.settle_web(param, Unit(self.unit_of[param as usize]), true);
            }
        }
        self.entries[block as usize] = self.residents();
        Ok(())
    }

    fn settle_entry(&mut self, block: u32, waiting: &[u32]) -> Result<(), Stuck> {
        let mut values: Vec<u32> = self.residents().iter().map(|entry| entry.0).collect();
        values.extend(waiting.iter().filter(|&&vreg| self.unit_of[vreg as usize] == NO_UNIT));
        let mut items: Vec<Item> = values
            .iter()
            .map(|&vreg| Item {
                now: Some(self.unit_of[vreg as usize]).filter(|&unit| unit != NO_UNIT).map(Unit),
                ..value_item(self.code, self.limits, vreg, &UnitMask::EMPTY)
            })
            .collect();
        let step = self.code.blocks[block as usize].steps.start;
        if !self.settle_items(&mut items) {
            return Err(self.stuck(step, values));
        }
        self.clear();
        for (vreg, item) in values.iter().zip(&items) {
            if let Some(unit) = item.unit {
                self.place(*vreg, unit);
            }
        }
        Ok(())
    }

    /// The parallel copy of the edge out of a block with one successor.
    pub(super) fn resolve_edges(&mut self, block: u32) {
        let code = self.code;
        let info = &code.blocks[block as usize];
        let [edge] = &info.succs[..] else { return };
        let target = &code.blocks[edge.to as usize];
        if target.preds.len() < 2 {
            return;
        }
        let exit = &self.exits[block as usize];
        for &(vreg, unit) in exit {
            self.unit_of[vreg as usize] = unit.0;
        }
        let mut moves: Vec<Move> = Vec::new();
        let mut busy = UnitMask::EMPTY;
        let mut homes: Option<UnitMask> = None;
        for &(vreg, unit) in exit {
            busy = busy.or(&self.span(vreg, unit));
        }
        for &(vreg, to) in &self.entries[edge.to as usize] {
            busy = busy.or(&self.span(vreg, to));
            let source = match target.params.iter().position(|&param| param == vreg) {
                Some(index) => edge.args[index],
                None => vreg,
            };
            if code.is_undefined(source) {
                continue;
            }
            let from = self.unit_of[source as usize];
            if from == NO_UNIT {
                // Checker A will say what is missing.
                continue;
            }
            for k in 0..code.vregs[vreg as usize].size as u16 {
                moves.push(Move {
                    from: Unit(from + k),
                    to: Unit(to.0 + k),
                    home: code.vregs[source as usize].home,
                });
            }
            if from != to.0 {
                let home = self.home_mask(vreg);
                homes = Some(homes.map_or(home, |mask| mask.and(&home)));
            }
        }
        let spare = homes.unwrap_or(UnitMask::EMPTY).minus(&busy);
        let last = code.steps[info.steps.end as usize - 1].inst;
        self.parallel(&moves, &spare, last);
        for entry in &self.exits[block as usize] {
            self.unit_of[entry.0 as usize] = NO_UNIT;
        }
    }
}

fn edge_arg(code: &Code, pred: u32, block: u32, index: usize) -> Option<u32> {
    let edge = code.blocks[pred as usize].succs.iter().find(|edge| edge.to == block)?;
    edge.args.get(index).copied()
}
