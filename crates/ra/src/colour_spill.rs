//! Spilling for the graph engine: what it costs, and what becomes of a node that found no place.
//!
//! A spilled value falls into *pieces*: one from its definition to its store, and one from a fill to the instruction that reads
//! it. A piece goes on to later reads of its block as long as registers are left there; when such a piece finds no place
//! it falls apart once more. A value with a recipe is made again before each read and never stored. Nodes are webs: all
//! their values go together and share a slot, so that parameters within a web cost nothing. Where only one side
//! of an edge is in memory the edge fills or stores, and where both are, in different slots, it copies memory.
//!
//! Cost: edits weighted by how often their block runs. Nothing is spilled that cannot get shorter.
//!
//! Left out: pieces over several blocks; stores at a better place than right after the definition.

use smallvec::SmallVec;

use crate::code::*;
use crate::colour::Uncolourable;
use crate::demand::Limits;
use crate::graph::NONE;
use crate::interference::{Interference, Work};
use crate::liveness::Liveness;
use crate::problem::*;
use crate::rewrite::{Insertion, PHASE_FILL, PHASE_REMAKE, PHASE_STORE};
use crate::simplify::{Order, Selected};
use crate::slots;
use crate::wishes::NO_UNIT;

/// Most steps between two reads that share a fill. (24 gives the same edits on random problems; the bound keeps the look at
/// the steps between linear.)
const MOST_GAP: u32 = 128;

/// Edits of an edge stand after everything else at the end of their block, in the order in which they were made.
const PHASE_EDGE: u8 = PHASE_REMAKE + 1;

pub(crate) struct Spiller<'a> {
    /// The code as it was, and its liveness.
    code: &'a Code,
    live: &'a Liveness,
    limits: &'a Limits,
    costs: &'a Costs,
    recipe_costs: &'a [f32],
    block_of: Vec<u32>,
    step_of: Vec<u32>,
    /// By step: the last one up to it, in its block, before which a memory edit may stand, or [`NONE`].
    open_before: Vec<u32>,
    /// By step: the first one after it.
    open_after: Vec<u32>,
    /// By value: its operands, in order.
    ops_of: Vec<Vec<u32>>,
    /// By value: `(predecessor, index)` of the edges that it is an argument of.
    args_of: Vec<SmallVec<[(u32, u32); 2]>>,
    /// By value: the block that it is a parameter of.
    param_of: Vec<u32>,
    /// By value: the one that it is a piece of, or itself.
    origin: Vec<u32>,
    /// It cannot get shorter.
    minimal: Vec<bool>,
    in_memory: Vec<bool>,
    /// Values that share a slot.
    web: slots::Webs,
}

/// Where a parameter gets its value from on an edge.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Register(u32),
    Slot(u32),
    Recipe(u32, Recipe),
}

impl<'a> Spiller<'a> {
    pub fn new(
        code: &'a Code,
        live: &'a Liveness,
        limits: &'a Limits,
        costs: &'a Costs,
        recipe_costs: &'a [f32],
    ) -> Spiller<'a> {
        let (count, steps) = (code.vregs.len(), code.steps.len());
        let mut spiller = Spiller {
            code,
            live,
            limits,
            costs,
            recipe_costs,
            block_of: vec![0; steps],
            step_of: vec![0; code.ops.len()],
            open_before: vec![NONE; steps],
            open_after: vec![NONE; steps],
            ops_of: vec![Vec::new(); count],
            args_of: vec![SmallVec::new(); count],
            param_of: vec![NONE; count],
            origin: (0..count as u32).collect(),
            minimal: vec![false; count],
            in_memory: vec![false; count],
            web: slots::Webs::new(code),
        };
        for (index, block) in code.blocks.iter().enumerate() {
            let mut open = NONE;
            for step in block.steps.clone() {
                spiller.block_of[step as usize] = index as u32;
                if !code.steps[step as usize].no_memory {
                    open = step;
                }
                spiller.open_before[step as usize] = open;
                for op in code.steps[step as usize].ops() {
                    spiller.step_of[op] = step;
                    spiller.ops_of[code.ops[op].vreg.0 as usize].push(op as u32);
                }
            }
            let mut open = NONE;
            for step in block.steps.clone().rev() {
                spiller.open_after[step as usize] = open;
                if !code.steps[step as usize].no_memory {
                    open = step;
                }
            }
            for &param in &block.params {
                spiller.param_of[param as usize] = index as u32;
            }
            for edge in &block.succs {
                let params = &code.blocks[edge.to as usize].params;
                for (at, (&arg, &param)) in edge.args.iter().zip(params).enumerate() {
                    if live.param_live[param as usize] && !code.is_undefined(arg) {
                        spiller.args_of[arg as usize].push((index as u32, at as u32));
                    }
                }
            }
        }
        spiller
    }

    fn recipe(&self, vreg: u32) -> Option<Recipe> {
        self.code.vregs[self.origin[vreg as usize] as usize].recipe
    }

    fn frequency(&self, step: u32) -> f32 {
        self.code.blocks[self.block_of[step as usize] as usize].frequency
    }

    fn last_step(&self, block: u32) -> u32 {
        self.code.blocks[block as usize].steps.end - 1
    }

    /// The values that the graph adds for itself cannot be spilled.
    pub fn admit(&mut self, count: usize) {
        self.ops_of.resize(count, Vec::new());
        self.origin.resize(count, 0);
        self.minimal.resize(count, true);
    }

    /// By node: what spilling it costs; infinite where it cannot be spilled or would not get shorter.
    pub fn costs(&self, work: &Work<'_>, graph: &Interference) -> Vec<f32> {
        let mut cost = vec![0f32; graph.alive.len()];
        for vreg in 0..graph.alive.len() as u32 {
            let node = graph.root(vreg);
            if graph.alive[node as usize] {
                cost[node as usize] += self.cost(work, graph, vreg);
            }
        }
        cost
    }

    fn cost(&self, work: &Work<'_>, graph: &Interference, vreg: u32) -> f32 {
        if self.minimal[vreg as usize] {
            return f32::INFINITY;
        }
        let info = &self.code.vregs[self.origin[vreg as usize] as usize];
        let recipe = info.recipe;
        let memory = self.limits.memory && self.limits.backing[info.home.0 as usize] == Backing::Memory;
        if recipe.is_none() && !memory {
            return f32::INFINITY;
        }
        let again = match recipe {
            Some(recipe) => self.recipe_costs.get(recipe.0 as usize).copied().unwrap_or(1.0).max(0.1),
            None => self.costs.fill,
        };
        let (mut cost, mut shorter) = (0.0, false);
        // Where the value is at hand already.
        let mut at = NONE;
        for &op in &self.ops_of[vreg as usize] {
            let step = self.step_of[op as usize];
            if self.code.ops[op as usize].kind != OperandKind::Use {
                if recipe.is_none() {
                    if self.open_after[step as usize] == NONE {
                        return f32::INFINITY;
                    }
                    cost += self.costs.spill * self.frequency(step);
                }
                at = step;
                continue;
            }
            let open = if recipe.is_some() { step } else { self.open_before[step as usize] };
            if at != NONE && self.block_of[at as usize] == self.block_of[step as usize] {
                if open == NONE || at >= open {
                    continue;
                }
            } else if open == NONE {
                return f32::INFINITY;
            }
            shorter |= at == NONE || at + 1 < step;
            cost += again * self.frequency(step);
            at = step;
        }
        for &(pred, index) in self.args_of.get(vreg as usize).map_or(&[][..], |list| list) {
            let to = &self.code.blocks[self.code.blocks[pred as usize].succs[0].to as usize];
            let last = self.last_step(pred);
            if recipe.is_none() && self.code.steps[last as usize].no_memory {
                return f32::INFINITY;
            }
            let param = to.params[index as usize];
            if graph.root(param) != graph.root(vreg) {
                let stored = work.gone[param as usize];
                let edit = if stored { self.costs.spill + again } else { again };
                cost += edit * self.frequency(last);
            }
            shorter = true;
        }
        let block = self.param_of.get(vreg as usize).copied().unwrap_or(NONE);
        if block != NONE && recipe.is_none() {
            for &pred in &self.code.blocks[block as usize].preds {
                let last = self.last_step(pred);
                if self.code.steps[last as usize].no_memory {
                    return f32::INFINITY;
                }
                let edge = &self.code.blocks[pred as usize].succs[0];
                let params = &self.code.blocks[block as usize].params;
                let index = params.iter().position(|&param| param == vreg).unwrap_or(0);
                if edge
                    .args
                    .get(index)
                    .is_some_and(|&arg| !self.code.is_undefined(arg) && graph.root(arg) != graph.root(vreg))
                {
                    cost += self.costs.spill * self.frequency(last);
                }
            }
        }
        shorter |= block != NONE;
        if shorter { cost } else { f32::INFINITY }
    }

    /// What to spill for the nodes that found no place: they themselves, or, where they cannot be spilled, the
    /// neighbour that costs least.
    pub fn victims(
        &self,
        graph: &Interference,
        order: &Order,
        cost: &[f32],
        selected: &Selected,
    ) -> Result<Vec<u32>, Uncolourable> {
        let mut victims: Vec<u32> = Vec::new();
        for &node in &selected.failed {
            if cost[node as usize].is_finite() {
                victims.push(node);
                continue;
            }
            let mask = &graph.mask[node as usize];
            let near = graph.adjacent[node as usize].iter().copied().filter(|&other| {
                cost[other as usize].is_finite() && graph.mask[other as usize].intersects(mask)
            });
            let rank = |other: u32| {
                let settled = !order.left[other as usize] || selected.unit[other as usize] == NO_UNIT;
                (settled, cost[other as usize] / graph.adjacent[other as usize].len().max(1) as f32, other)
            };
            let best = near.min_by(|&a, &b| {
                let (a, b) = (rank(a), rank(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
            });
            victims.push(best.ok_or(Uncolourable)?);
        }
        victims.sort_unstable();
        victims.dedup();
        Ok(victims)
    }

    /// Spill these nodes and patch the graph. `strict`: a fill for every read.
    pub fn spill(
        &mut self,
        work: &mut Work<'_>,
        graph: &mut Interference,
        nodes: &[u32],
        strict: bool,
    ) -> Result<(), Uncolourable> {
        let first = work.code.vregs.len() as u32;
        let mut blocks: Vec<u32> = Vec::new();
        let mut edges: Vec<u32> = Vec::new();
        let mut values: Vec<u32> = Vec::new();
        for &node in nodes {
            let members: Vec<u32> = graph.members(node).collect();
            graph.alive[node as usize] = false;
            for &member in &members {
                work.gone[member as usize] = true;
                let steps = self.ops_of[member as usize].iter().map(|&op| self.step_of[op as usize]);
                blocks.extend(steps.map(|step| self.block_of[step as usize]));
                if self.origin[member as usize] == member {
                    edges.extend(self.args_of[member as usize].iter().map(|arg| arg.0));
                    let block = self.param_of[member as usize];
                    if block != NONE {
                        edges.extend(self.code.blocks[block as usize].preds.iter().copied());
                        // Its first block sees it no more.
                        blocks.push(block);
                    }
                }
            }
            self.share_slot(&members);
            values.extend(members);
        }
        values.sort_unstable();
        edges.sort_unstable();
        edges.dedup();
        blocks.extend(&edges);
        blocks.sort_unstable();
        blocks.dedup();
        work.edits.retain(|edit| !work.gone[edit.vreg as usize]);
        // How many registers are in use without them.
        graph.patch(work, &blocks, 0..0);
        for &vreg in &values {
            self.split(work, graph, vreg, strict);
        }
        self.clear_edges(work, graph, &edges);
        for &pred in &edges {
            self.redo_edge(work, pred)?;
        }
        work.edits.sort_by_key(|edit| (edit.step, edit.phase));
        let pieces = first..work.code.vregs.len() as u32;
        for piece in pieces.clone() {
            graph.add_value(work, piece);
            for &op in &self.ops_of[piece as usize] {
                graph.narrow(self.limits, &work.code.ops[op as usize]);
            }
        }
        graph.patch(work, &blocks, pieces);
        Ok(())
    }

    /// Values of one node share a slot, and with them the parameters in memory that they go to or come from, where they
    /// do not overlap.
    fn share_slot(&mut self, members: &[u32]) {
        let mut stored = members
            .iter()
            .copied()
            .filter(|&v| self.origin[v as usize] == v && self.code.vregs[v as usize].recipe.is_none());
        let Some(lead) = stored.next() else { return };
        self.in_memory[lead as usize] = true;
        for other in stored {
            self.in_memory[other as usize] = true;
            self.web.join(lead, other);
        }
        for &vreg in members.iter().filter(|&&v| self.origin[v as usize] == v && self.in_memory[v as usize]) {
            for &(pred, index) in &self.args_of[vreg as usize] {
                let to = self.code.blocks[pred as usize].succs[0].to;
                let param = self.code.blocks[to as usize].params[index as usize];
                if self.in_memory[param as usize] {
                    self.web.join_apart(self.code, self.live, vreg, param);
                }
            }
            let block = self.param_of[vreg as usize];
            if block == NONE {
                continue;
            }
            let info = &self.code.blocks[block as usize];
            let index = info.params.iter().position(|&param| param == vreg).unwrap_or(0);
            for &pred in &info.preds {
                let arg = self.code.blocks[pred as usize].succs[0].args.get(index);
                if let Some(&arg) = arg.filter(|&&arg| self.in_memory[arg as usize]) {
                    self.web.join_apart(self.code, self.live, vreg, arg);
                }
            }
        }
    }

    fn new_piece(&mut self, work: &mut Work<'_>, of: u32) -> u32 {
        let piece = work.code.vregs.len() as u32;
        let origin = self.origin[of as usize];
        work.code.vregs.push(self.code.vregs[origin as usize]);
        work.gone.push(false);
        self.origin.push(origin);
        self.minimal.push(true);
        self.ops_of.push(Vec::new());
        piece
    }

    /// The edit that brings a value back into `piece`.
    fn bring_back(&self, work: &mut Work<'_>, piece: u32, step: u32, phase: Option<u8>) {
        let (kind, usual) = match self.recipe(piece) {
            Some(recipe) => (StepKind::Remake(recipe), PHASE_REMAKE),
            None => (StepKind::Fill(self.origin[piece as usize]), PHASE_FILL),
        };
        let phase = phase.unwrap_or(usual);
        work.edits.push(Insertion { step, phase, kind, vreg: piece, to: NONE, no_memory: false });
    }

    fn split(&mut self, work: &mut Work<'_>, graph: &mut Interference, vreg: u32, strict: bool) {
        let whole = self.origin[vreg as usize] == vreg;
        let strict = strict || !whole;
        let recipe = self.recipe(vreg);
        let ops = std::mem::take(&mut self.ops_of[vreg as usize]);
        // The current piece, where it begins and where it was read last.
        let mut current: Option<(u32, u32, u32)> = None;
        let mut store: Option<(u32, u32)> = None;
        let mut fills = 0;
        for op in ops {
            let step = self.step_of[op as usize];
            let piece = if work.code.ops[op as usize].kind != OperandKind::Use {
                let piece = self.new_piece(work, vreg);
                store = Some((piece, step));
                current = Some((piece, step, step));
                piece
            } else {
                let open = match recipe {
                    Some(_) => step,
                    None => self.open_before[step as usize],
                };
                let goes_on = current.is_some_and(|(piece, _, last)| {
                    self.block_of[last as usize] == self.block_of[step as usize]
                        && (open == NONE
                            || last >= open
                            || !strict && self.goes_on(work, graph, piece, last, open))
                });
                match current {
                    Some((piece, begin, _)) if goes_on => {
                        let shortest =
                            if recipe.is_some() { step <= begin } else { open == NONE || open <= begin };
                        self.minimal[piece as usize] &= shortest;
                        current = Some((piece, begin, step));
                        piece
                    }
                    _ => {
                        let piece = self.new_piece(work, vreg);
                        self.bring_back(work, piece, open, None);
                        fills += 1;
                        current = Some((piece, open, step));
                        piece
                    }
                }
            };
            work.code.ops[op as usize].vreg = VReg(piece);
            self.ops_of[piece as usize].push(op);
        }
        let read_elsewhere = fills > 0 || !whole || !self.args_of[vreg as usize].is_empty();
        if let (Some((piece, step)), None, true) = (store, recipe, read_elsewhere) {
            let kind = StepKind::Store(self.origin[vreg as usize]);
            let step = self.open_after[step as usize];
            let store = Insertion { step, phase: PHASE_STORE, kind, vreg: piece, to: NONE, no_memory: false };
            work.edits.push(store);
        }
    }

    /// Are there registers for the value to stay from `last` to `open`?
    fn goes_on(&self, work: &Work<'_>, graph: &mut Interference, piece: u32, last: u32, open: u32) -> bool {
        let info = &work.code.vregs[piece as usize];
        if open - last > MOST_GAP {
            return false;
        }
        let room = self.limits.room(info.home);
        let gap = &mut graph.load[last as usize..=open as usize];
        let fits = gap.iter().all(|&load| load + (info.size as u32) <= room);
        if fits {
            gap.iter_mut().for_each(|load| *load += info.size as u32);
        }
        fits
    }

    /// Take out what stands on the edges out of these blocks.
    fn clear_edges(&self, work: &mut Work<'_>, graph: &mut Interference, preds: &[u32]) {
        let Work { edits, gone, .. } = work;
        edits.retain(|edit| {
            let block = self.block_of[edit.step as usize];
            if edit.phase != PHASE_EDGE || preds.binary_search(&block).is_err() {
                return true;
            }
            if self.origin[edit.vreg as usize] != edit.vreg {
                gone[edit.vreg as usize] = true;
                graph.alive[edit.vreg as usize] = false;
            }
            false
        });
    }

    /// Everything that stands on the edge out of `pred`, anew.
    fn redo_edge(&mut self, work: &mut Work<'_>, pred: u32) -> Result<(), Uncolourable> {
        let last = self.last_step(pred);
        let edge = &self.code.blocks[pred as usize].succs[0];
        let target = &self.code.blocks[edge.to as usize];
        // `(parameter, source)` for those in memory; `(index, argument)` for those in registers.
        let mut moves: Vec<(u32, Source)> = Vec::new();
        let mut late: Vec<(u32, u32)> = Vec::new();
        for (index, (&param, &arg)) in target.params.iter().zip(&edge.args).enumerate() {
            if !self.live.param_live[param as usize] || self.code.is_undefined(arg) {
                continue;
            }
            let gone = work.gone[arg as usize];
            if !work.gone[param as usize] {
                if gone {
                    late.push((index as u32, arg));
                } else {
                    work.code.blocks[pred as usize].succs[0].args[index] = arg;
                }
                continue;
            }
            if self.code.vregs[param as usize].recipe.is_some() {
                continue;
            }
            let source = match self.code.vregs[arg as usize].recipe {
                _ if !gone => Source::Register(arg),
                Some(recipe) => Source::Recipe(arg, recipe),
                None if self.web.same(arg, param) => continue,
                None => Source::Slot(arg),
            };
            moves.push((param, source));
        }
        if !moves.is_empty() && (self.code.steps[last as usize].no_memory || !self.limits.memory) {
            return Err(Uncolourable);
        }
        // What is read from slots that are about to be written comes first.
        let (first, late): (Vec<_>, Vec<_>) = late.into_iter().partition(|&(_, arg)| {
            self.code.vregs[arg as usize].recipe.is_none()
                && moves.iter().any(|&(param, _)| self.web.same(param, arg))
        });
        self.fill_args(work, pred, last, &first)?;
        while !moves.is_empty() {
            let blocked = |at: usize| {
                let (param, _) = moves[at];
                moves.iter().enumerate().any(|(other, &(_, source))| {
                    other != at && matches!(source, Source::Slot(arg) if self.web.same(arg, param))
                })
            };
            let free = (0..moves.len()).find(|&at| !blocked(at));
            let at = free.unwrap_or(0);
            let (param, source) = moves[at];
            let from = match source {
                Source::Register(vreg) => vreg,
                Source::Slot(arg) | Source::Recipe(arg, _) => {
                    let piece = self.new_piece(work, arg);
                    self.bring_back(work, piece, last, Some(PHASE_EDGE));
                    piece
                }
            };
            if free.is_none() {
                moves[at].1 = Source::Register(from);
                continue;
            }
            moves.remove(at);
            let kind = StepKind::Store(param);
            let phase = PHASE_EDGE;
            work.edits.push(Insertion { step: last, phase, kind, vreg: from, to: NONE, no_memory: false });
        }
        self.fill_args(work, pred, last, &late)
    }

    /// Arguments in memory for parameters in registers.
    fn fill_args(
        &mut self,
        work: &mut Work<'_>,
        pred: u32,
        last: u32,
        args: &[(u32, u32)],
    ) -> Result<(), Uncolourable> {
        for (at, &(index, arg)) in args.iter().enumerate() {
            let piece = match args[..at].iter().find(|other| other.1 == arg) {
                Some(&(same, _)) => work.code.blocks[pred as usize].succs[0].args[same as usize],
                None => {
                    if self.recipe(arg).is_none() && self.code.steps[last as usize].no_memory {
                        return Err(Uncolourable);
                    }
                    let piece = self.new_piece(work, arg);
                    self.bring_back(work, piece, last, Some(PHASE_EDGE));
                    piece
                }
            };
            work.code.blocks[pred as usize].succs[0].args[index as usize] = piece;
        }
        Ok(())
    }

    /// The edits with their slots.
    pub fn finish(&self, work: &Work<'_>) -> Vec<Insertion> {
        let slots = self.web.assign(self.code, self.live, &self.in_memory);
        let mut edits = work.edits.clone();
        for edit in &mut edits {
            match &mut edit.kind {
                StepKind::Fill(slot) | StepKind::Store(slot) => *slot = slots.slot[*slot as usize],
                _ => {}
            }
        }
        edits
    }
}
