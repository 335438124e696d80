//! From "what is in registers where" to edits: coupling at edges, stores and slots.
//!
//! Every value that is ever put out without a recipe is stored once, at a point that dominates all places where it is put
//! out, in the least frequent block between its definition and there. A value is in a register everywhere between its
//! definition and that point, so the store can be made, and whatever path leads to a fill has passed it (bug shape
//! A28: the store on one of two paths). A parameter that is not in a register at the start of its block is born in its
//! slot: each edge stores its argument there, unless argument and parameter share the slot.
//!
//! Left out: stores on several cheap paths instead of one dominating point.

use crate::code::*;
use crate::demand::{At, Counts, Limits, Pressure};
use crate::graph::{Graph, NONE};
use crate::liveness::Liveness;
use crate::problem::*;
use crate::rewrite::*;
use crate::slots::{self, Slots};
use crate::spill::{Decisions, Eviction, Trouble};

pub(crate) struct Coupled {
    pub insertions: Vec<Insertion>,
    /// Values in registers where each block begins.
    pub entry: Vec<Vec<u32>>,
}

struct Coupler<'a> {
    code: &'a Code,
    live: &'a Liveness,
    limits: &'a Limits,
    graph: &'a Graph,
    decisions: Decisions,
    slots: Slots,
    /// In a register at the start of the block at hand; likewise at the end.
    at_entry: Vec<u32>,
    at_exit: Vec<u32>,
    mark: u32,
    /// Born in memory.
    in_memory: Vec<bool>,
    /// A parameter in memory has it without an edit: they share a slot.
    shared: Vec<bool>,
    /// A slot for breaking cycles.
    scratch: u32,
    /// Slots for values whose register is lent out.
    lending: Vec<u32>,
    /// Slots for values that are to be filled after their own slot has changed.
    waiting: Vec<u32>,
}

/// Edits for what `decisions` says.
pub(crate) fn couple(
    code: &Code,
    live: &Liveness,
    limits: &Limits,
    graph: &Graph,
    decisions: Decisions,
) -> Result<Coupled, Trouble> {
    let count = code.vregs.len();
    let mut coupler = Coupler {
        code,
        live,
        limits,
        graph,
        decisions,
        slots: Slots { slot: vec![NONE; count], count: 0 },
        at_entry: vec![0; count],
        at_exit: vec![0; count],
        mark: 0,
        in_memory: vec![false; count],
        shared: vec![false; count],
        scratch: NONE,
        lending: Vec::new(),
        waiting: Vec::new(),
    };
    coupler.run()?;
    let Coupler { decisions, slots, .. } = coupler;
    let mut insertions = decisions.insertions;
    for insertion in &mut insertions {
        if insertion.kind == StepKind::Fill(NONE) {
            insertion.kind = StepKind::Fill(slots.slot[insertion.vreg as usize]);
        }
    }
    Ok(Coupled { insertions, entry: decisions.entry })
}

/// Where a memory parameter gets its value from.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Source {
    Register,
    Slot(u32),
    Recipe(Recipe),
}

#[derive(Clone, Copy, Debug)]
struct MemoryMove {
    slot: u32,
    arg: u32,
    /// The parameter, if it goes through a register under that name: no register of the argument's home could hold it.
    through: Option<u32>,
    from: Source,
}

impl MemoryMove {
    /// Under which name it goes through a register.
    fn name(&self) -> u32 {
        self.through.unwrap_or(self.arg)
    }
}

impl Coupler<'_> {
    fn run(&mut self) -> Result<(), Trouble> {
        let mut memory_params: Vec<(u32, u32)> = Vec::new();
        for &block in &self.graph.rpo {
            let info = &self.code.blocks[block as usize];
            self.mark_entry(block);
            for (index, &param) in info.params.iter().enumerate() {
                if self.live.param_live[param as usize] && self.at_entry[param as usize] != self.mark {
                    memory_params.push((block, index as u32));
                    self.in_memory[param as usize] = true;
                }
            }
        }
        for index in 0..self.graph.rpo.len() {
            self.find_edge_evictions(self.graph.rpo[index]);
        }
        let mut wanted = self.in_memory.clone();
        for eviction in &self.decisions.evictions {
            wanted[eviction.vreg as usize] = true;
        }
        self.slots = slots::assign(self.code, self.live, &wanted, &memory_params);
        for index in 0..self.graph.rpo.len() {
            self.edge(self.graph.rpo[index])?;
        }
        self.place_stores()
    }

    fn mark_entry(&mut self, block: u32) {
        self.mark += 1;
        for &vreg in &self.decisions.entry[block as usize] {
            self.at_entry[vreg as usize] = self.mark;
        }
    }

    fn mark_exit(&mut self, block: u32) {
        for &vreg in &self.decisions.exit[block as usize] {
            self.at_exit[vreg as usize] = self.mark;
        }
    }

    /// The merge that a block leads to, and its last step.
    fn merge_after(&self, block: u32) -> Option<(usize, u32)> {
        let info = &self.code.blocks[block as usize];
        let [edge] = &info.succs[..] else { return None };
        (self.code.blocks[edge.to as usize].preds.len() > 1).then_some((edge.to as usize, info.steps.end - 1))
    }

    /// Values in a register at the end of a block but not where its successor begins.
    fn find_edge_evictions(&mut self, block: u32) {
        let Some((to, last)) = self.merge_after(block) else { return };
        self.mark_entry(to as u32);
        let exit = std::mem::take(&mut self.decisions.exit[block as usize]);
        for &vreg in &exit {
            if self.live.is_in(to as u32, vreg)
                && self.at_entry[vreg as usize] != self.mark
                && self.code.vregs[vreg as usize].recipe.is_none()
            {
                self.decisions.evictions.push(Eviction { vreg, block, step: last });
            }
        }
        self.decisions.exit[block as usize] = exit;
    }

    fn insert(&mut self, step: u32, kind: StepKind, vreg: u32) {
        let insertion = Insertion { step, phase: PHASE_FILL, kind, vreg, to: NONE, no_memory: false };
        self.decisions.insertions.push(insertion);
    }

    /// Everything that stands at the end of a block because of its successor.
    fn edge(&mut self, block: u32) -> Result<(), Trouble> {
        let Some((to, last)) = self.merge_after(block) else { return Ok(()) };
        self.mark_entry(to as u32);
        self.mark_exit(block);
        let code = self.code;
        let target = &code.blocks[to];
        let args = &code.blocks[block as usize].succs[0].args;
        let mut moves: Vec<MemoryMove> = Vec::new();
        // Values that the successor wants in registers, by their names here.
        let mut sources: Vec<u32> = Vec::new();
        for &vreg in &self.decisions.entry[to] {
            let source = match target.params.iter().position(|&param| param == vreg) {
                Some(index) => args[index],
                None => vreg,
            };
            if !code.is_undefined(source) && !sources.contains(&source) {
                sources.push(source);
            }
        }
        for (&param, &arg) in target.params.iter().zip(args) {
            if !self.in_memory[param as usize] || code.is_undefined(arg) {
                continue;
            }
            let slot = self.slots.slot[param as usize];
            let info = &code.vregs[arg as usize];
            if self.slots.slot[arg as usize] == slot {
                if !self.in_memory[arg as usize] {
                    self.shared[arg as usize] = true;
                    self.decisions.evictions.push(Eviction { vreg: arg, block, step: last });
                }
            } else if self.at_exit[arg as usize] == self.mark {
                moves.push(MemoryMove { slot, arg, through: None, from: Source::Register });
            } else {
                let from = match info.recipe {
                    Some(recipe) => Source::Recipe(recipe),
                    None => Source::Slot(self.slots.slot[arg as usize]),
                };
                let free =
                    !self.fits(&[], arg, None) && self.fits(&[], param, None) && !args.contains(&param);
                moves.push(MemoryMove { slot, arg, through: free.then_some(param), from });
            }
        }
        let (ready, mut missing): (Vec<u32>, Vec<u32>) =
            sources.iter().partition(|&&source| self.at_exit[source as usize] == self.mark);
        if moves.is_empty() && missing.is_empty() {
            return Ok(());
        }
        let needs_memory =
            !moves.is_empty() || missing.iter().any(|&source| code.vregs[source as usize].recipe.is_none());
        if needs_memory && (code.steps[last as usize].no_memory || !self.limits.memory) {
            let live = sources.clone();
            return Err(Trouble::Full { step: last, set: SetId(0), live });
        }
        // What sits in registers while memory moves; then what is filled from slots that are about to change.
        let mut here = ready;
        for change in moves.iter().filter(|change| change.from == Source::Register) {
            if !here.contains(&change.arg) {
                here.push(change.arg);
            }
        }
        let mut aside: Vec<(u32, u32)> = Vec::new();
        for source in std::mem::take(&mut missing) {
            let slot = self.slots.slot[source as usize];
            let filled = code.vregs[source as usize].recipe.is_none();
            let changes = filled && moves.iter().any(|change| change.slot == slot);
            // What a parameter in memory is made from as well is filled once for both.
            let both = filled && moves.iter().any(|change| change.arg == source);
            if !(changes || both && self.fits(&here, source, None)) {
                missing.push(source);
            } else if self.fits(&here, source, None) {
                here.push(source);
            } else {
                // No register is left for it: it waits in a slot of its own.
                while self.waiting.len() <= aside.len() {
                    let slot = self.new_slots();
                    self.waiting.push(slot);
                }
                aside.push((source, self.waiting[aside.len()]));
            }
        }
        for &(arg, slot) in &aside {
            let from = Source::Slot(self.slots.slot[arg as usize]);
            moves.push(MemoryMove { slot, arg, through: None, from });
        }
        for change in &mut moves {
            if here.contains(&change.arg) {
                change.from = Source::Register;
            }
        }
        let early: Vec<u32> = sources
            .iter()
            .copied()
            .filter(|source| here.contains(source) && self.at_exit[*source as usize] != self.mark)
            .collect();
        for source in early {
            self.insert(last, StepKind::Fill(self.slots.slot[source as usize]), source);
        }
        self.move_memory(last, moves, &here)?;
        for (source, slot) in aside {
            self.insert(last, StepKind::Fill(slot), source);
        }
        for source in missing {
            match code.vregs[source as usize].recipe {
                Some(recipe) => self.insert(last, StepKind::Remake(recipe), source),
                None => self.insert(last, StepKind::Fill(self.slots.slot[source as usize]), source),
            }
        }
        Ok(())
    }

    /// Parameters in memory get their values, as if all at once. `here` is what stays in registers meanwhile.
    fn move_memory(&mut self, step: u32, mut moves: Vec<MemoryMove>, here: &[u32]) -> Result<(), Trouble> {
        // Values whose register was lent out, with the scratch slot that they wait in.
        let mut lent: Vec<(u32, u32)> = Vec::new();
        let mut here: Vec<u32> = here.to_vec();
        while !moves.is_empty() {
            // A slot that nothing pending reads may be written.
            let blocked = |slot: u32, at: usize, moves: &[MemoryMove]| {
                let mut others = moves.iter().enumerate();
                others.any(|(other, change)| other != at && change.from == Source::Slot(slot))
            };
            let free = (0..moves.len()).find(|&at| !blocked(moves[at].slot, at, &moves));
            let Some(at) = free else {
                // Only cycles are left: one source waits elsewhere.
                let first = moves[0];
                if self.scratch == NONE {
                    self.scratch = self.new_slots();
                }
                let aside = self.scratch;
                self.borrow(step, first.name(), &mut here, &mut moves, &mut lent)?;
                if let Source::Slot(slot) = first.from {
                    self.insert(step, StepKind::Fill(slot), first.name());
                }
                self.insert(step, StepKind::Store(aside), first.name());
                moves[0].from = Source::Slot(aside);
                continue;
            };
            let change = moves.remove(at);
            match change.from {
                Source::Register => {}
                Source::Slot(slot) => {
                    self.borrow(step, change.name(), &mut here, &mut moves, &mut lent)?;
                    self.insert(step, StepKind::Fill(slot), change.name());
                }
                Source::Recipe(recipe) => {
                    self.borrow(step, change.name(), &mut here, &mut moves, &mut lent)?;
                    self.insert(step, StepKind::Remake(recipe), change.name());
                }
            }
            self.insert(step, StepKind::Store(change.slot), change.name());
        }
        for (vreg, slot) in lent {
            self.insert(step, StepKind::Fill(slot), vreg);
        }
        Ok(())
    }

    fn new_slots(&mut self) -> u32 {
        // Wide enough for any value, so that one serves all edges.
        let size = self.code.vregs.iter().map(|info| info.size as u32).max().unwrap_or(1);
        let slot = self.slots.count;
        self.slots.count += size;
        slot
    }

    /// Make sure that a register is free for `vreg`, if need be by keeping another value in memory meanwhile.
    fn borrow(
        &mut self,
        step: u32,
        vreg: u32,
        here: &mut Vec<u32>,
        moves: &mut [MemoryMove],
        lent: &mut Vec<(u32, u32)>,
    ) -> Result<(), Trouble> {
        if here.contains(&vreg) || self.fits(here, vreg, None) {
            return Ok(());
        }
        let backed =
            |v: u32| self.limits.backing[self.code.vregs[v as usize].home.0 as usize] == Backing::Memory;
        while !self.fits(here, vreg, None) {
            // One whose place is enough, or else the widest and then more.
            let able = || here.iter().copied().filter(|&other| backed(other));
            let enough = able().find(|&other| self.fits(here, vreg, Some(other)));
            let widest = || able().max_by_key(|&other| (self.code.vregs[other as usize].size, other));
            let Some(other) = enough.or_else(widest) else {
                let set = self.code.vregs[vreg as usize].home;
                return Err(Trouble::Full { step, set, live: here.clone() });
            };
            while self.lending.len() <= lent.len() {
                let slot = self.new_slots();
                self.lending.push(slot);
            }
            let slot = self.lending[lent.len()];
            self.insert(step, StepKind::Store(slot), other);
            here.retain(|&value| value != other);
            for change in moves.iter_mut().filter(|change| change.arg == other) {
                change.from = Source::Slot(slot);
            }
            lent.push((other, slot));
        }
        Ok(())
    }

    fn fits(&self, here: &[u32], extra: u32, without: Option<u32>) -> bool {
        let mut counts = Counts::new(self.limits);
        for &vreg in here.iter().filter(|&&vreg| Some(vreg) != without) {
            counts.add(self.code, self.limits, vreg);
        }
        counts.add(self.code, self.limits, extra);
        let mut pressure = Pressure::default();
        pressure.start(self.limits);
        pressure.add_counts(self.limits, &counts, At::Point);
        pressure.over(self.limits) == 0
    }

    /// One store for every value that is put out, at a point that dominates all of them.
    fn place_stores(&mut self) -> Result<(), Trouble> {
        let mut evictions = std::mem::take(&mut self.decisions.evictions);
        // What is always made again where it is read needs no store.
        let mut read = std::mem::take(&mut self.shared);
        for insertion in self.decisions.insertions.iter().filter(|i| matches!(i.kind, StepKind::Fill(_))) {
            read[insertion.vreg as usize] = true;
        }
        evictions.retain(|eviction| !self.in_memory[eviction.vreg as usize] && read[eviction.vreg as usize]);
        evictions.sort_by_key(|eviction| (eviction.vreg, eviction.block, eviction.step));
        let mut defs: Vec<(u32, u32)> = vec![(NONE, NONE); self.code.vregs.len()];
        for (index, block) in self.code.blocks.iter().enumerate() {
            for &param in &block.params {
                defs[param as usize] = (index as u32, block.steps.start);
            }
            for step in block.steps.clone() {
                for op in &self.code.ops[self.code.steps[step as usize].ops()] {
                    if op.kind != OperandKind::Use {
                        defs[op.vreg.0 as usize] = (index as u32, step + 1);
                    }
                }
            }
        }
        let mut at = 0;
        while at < evictions.len() {
            let vreg = evictions[at].vreg;
            let mut end = at;
            while end < evictions.len() && evictions[end].vreg == vreg {
                end += 1;
            }
            self.place(vreg, defs[vreg as usize], evictions[at..end].to_vec())?;
            at = end;
        }
        Ok(())
    }

    /// Store `vreg` so that all of `evictions` are dominated; where no single point allows it, once for every subtree
    /// of the dominator tree.
    fn place(&mut self, vreg: u32, def: (u32, u32), evictions: Vec<Eviction>) -> Result<(), Trouble> {
        let mut waiting = vec![evictions];
        while let Some(mut evictions) = waiting.pop() {
            let mut common = evictions[0].block;
            for eviction in &evictions {
                common = self.graph.common_dominator(common, eviction.block);
            }
            if let Some(step) = self.store_point(def, common, &evictions) {
                let kind = StepKind::Store(self.slots.slot[vreg as usize]);
                let phase = PHASE_STORE;
                let insertion = Insertion { step, phase, kind, vreg, to: NONE, no_memory: false };
                self.decisions.insertions.push(insertion);
                continue;
            }
            if evictions.iter().any(|eviction| eviction.block == common) {
                return Err(Trouble::Full { step: evictions[0].step, set: SetId(0), live: vec![vreg] });
            }
            let child = |mut block: u32| {
                while self.graph.idom[block as usize] != common {
                    block = self.graph.idom[block as usize];
                }
                block
            };
            evictions.sort_by_key(|eviction| child(eviction.block));
            // Where the value is not in a register to begin with, it has been stored on the way.
            let groups = evictions.chunk_by(|a, b| child(a.block) == child(b.block));
            let groups =
                groups.filter(|group| self.decisions.entry[child(group[0].block) as usize].contains(&vreg));
            waiting.extend(groups.map(<[_]>::to_vec));
        }
        Ok(())
    }

    /// The first step from `from` on before which a memory edit may stand.
    fn open_step(&self, block: u32, from: u32) -> Option<u32> {
        (from..self.code.blocks[block as usize].steps.end)
            .find(|&step| !self.code.steps[step as usize].no_memory)
    }

    /// The cheapest point after the definition that dominates `evictions`, whose common dominator is `common`.
    fn store_point(&self, def: (u32, u32), common: u32, evictions: &[Eviction]) -> Option<u32> {
        let (def_block, def_step) = def;
        let first = evictions.iter().filter(|eviction| eviction.block == common);
        let first = first.map(|eviction| eviction.step).min();
        let after_def = self.open_step(def_block, def_step);
        let mut best: Option<(f32, u32)> = None;
        let mut block = common;
        loop {
            let frequency = self.code.blocks[block as usize].frequency;
            let start = self.code.blocks[block as usize].steps.start;
            let from = if block == def_block { after_def } else { self.open_step(block, start) };
            let point = match first {
                Some(step) if block == common && from.is_some_and(|from| from <= step) => Some(step),
                _ => from,
            };
            if let Some(point) = point
                && best.is_none_or(|(least, _)| frequency < least)
            {
                best = Some((frequency, point));
            }
            if block == def_block || block == self.graph.idom[block as usize] {
                return best.map(|(_, point)| point);
            }
            block = self.graph.idom[block as usize];
        }
    }
}
