//! The least cost once more, by trying everything: for tiny programs, to judge [`super::spill`].
//!
//! A state is a set of values in registers and a set in memory. One edit at a time leads from state to state (store, fill,
//! recompute, drop, forget), shortest paths lead through a block, and the states in which merges begin are all tried, as
//! are all choices of slots that argument and parameter share. Whether a set of values fits is found by placing them one by
//! one, in both phases of an instruction at once, without any counting. Single units only.

use std::collections::BTreeMap;

use kempe_ra::*;

use super::bits::Bits;
use super::view::{NOTHING, View};

/// In registers, in memory, as bits by value.
type State = (u32, u32);

/// States and costs after some part of the program.
type Reached = BTreeMap<State, f64>;

/// An edge and a parameter whose slot the argument has, too.
type Share = (u32, u32, usize);

pub struct Brute<'v> {
    view: &'v View<'v>,
    costs: &'v Costs,
    merges: Vec<u32>,
    /// States that merges begin in, in their order.
    begin: Vec<State>,
    shares: Vec<Share>,
    /// Values that share slots, pair by pair: not both in memory.
    apart: Vec<(u32, u32)>,
    /// Steps that may still be made.
    budget: u64,
}

/// The least cost; `None` if the program is too large, `Some(f64::INFINITY)` if it does not fit.
pub fn least(view: &View, costs: &Costs, budget: u64) -> Option<f64> {
    if view.values.len() > 12 || view.values.iter().any(|value| value.size > 1) {
        return None;
    }
    let merges: Vec<u32> = view.order.iter().copied().filter(|&block| view.is_merge(block)).collect();
    let mut possible: Vec<Share> = Vec::new();
    for &block in &merges {
        for pred in &view.program.blocks[block as usize].preds {
            for param in &view.params[block as usize] {
                let arg = view.argument(pred.0, block, param.index);
                if arg != NOTHING && view.values[arg as usize].recipe.is_none() {
                    possible.push((pred.0, block, param.index));
                }
            }
        }
    }
    if possible.len() > 6 {
        return None;
    }
    let mut best = f64::INFINITY;
    let mut brute =
        Brute { view, costs, merges, begin: Vec::new(), shares: Vec::new(), apart: Vec::new(), budget };
    for chosen in 0..1u32 << possible.len() {
        let picked = possible.iter().enumerate().filter(|(k, _)| chosen >> k & 1 != 0);
        brute.shares = picked.map(|(_, share)| *share).collect();
        brute.apart = brute.pairs();
        best = best.min(brute.choose()?);
    }
    Some(best)
}

impl Brute<'_> {
    /// Values in one slot, closed over chains, except what is the same value wherever it is defined.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let mut web: Vec<u32> = (0..self.view.values.len() as u32).collect();
        let mut direct = Vec::new();
        for &(pred, block, index) in &self.shares {
            let arg = self.view.argument(pred, block, index);
            let param = self.view.params[block as usize].iter().find(|param| param.index == index);
            let Some(param) = param.map(|param| param.value) else { continue };
            let mut preds = self.view.program.blocks[block as usize].preds.iter();
            if preds.all(|pred| [arg, NOTHING].contains(&self.view.argument(pred.0, block, index))) {
                direct.push((arg.min(param), arg.max(param)));
            }
            let (from, to) = (web[arg as usize], web[param as usize]);
            web.iter_mut().filter(|web| **web == from).for_each(|web| *web = to);
        }
        let count = web.len() as u32;
        let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        all.filter(|pair| web[pair.0 as usize] == web[pair.1 as usize] && !direct.contains(pair)).collect()
    }

    /// Tries all states for the next merge, then the whole program.
    fn choose(&mut self) -> Option<f64> {
        if self.begin.len() == self.merges.len() {
            return self.total();
        }
        let block = self.merges[self.begin.len()];
        let live: Vec<u32> = self.view.live_in[block as usize].iter().copied().collect();
        let mut best = f64::INFINITY;
        for code in 0..4u32.pow(live.len() as u32) {
            self.budget = self.budget.checked_sub(1)?;
            let mut state = (0u32, 0u32);
            let mut sound = true;
            for (k, &value) in live.iter().enumerate() {
                let info = &self.view.values[value as usize];
                let (here, stored) = (code >> (2 * k) & 1, code >> (2 * k + 1) & 1);
                sound &= here + stored > 0 || info.recipe.is_some();
                sound &= stored == 0 || info.recipe.is_none() && info.storable;
                state.0 |= here << value;
                state.1 |= stored << value;
            }
            if !sound || !self.allowed(state) || !self.stands(state.0, &Bits::default()) {
                continue;
            }
            self.begin.push(state);
            let cost = self.choose();
            self.begin.pop();
            best = best.min(cost?);
        }
        Some(best)
    }

    fn allowed(&self, state: State) -> bool {
        self.apart.iter().all(|&(a, b)| state.1 >> a & state.1 >> b & 1 == 0)
    }

    fn total(&mut self) -> Option<f64> {
        let mut sum = self.from(0, (0, 0))?;
        for k in 0..self.merges.len() {
            if sum < f64::INFINITY {
                sum += self.from(self.merges[k], self.begin[k])?;
            }
        }
        Some(sum)
    }

    /// Least cost from the start of a block in this state, up to the merges.
    fn from(&mut self, block: u32, state: State) -> Option<f64> {
        let mut reached = Reached::from([(state, 0.0)]);
        let info = &self.view.program.blocks[block as usize];
        for inst in info.insts.clone() {
            reached = self.inst(inst, f64::from(info.frequency), reached)?;
        }
        let mut best = f64::INFINITY;
        for (state, cost) in reached {
            let mut sum = cost;
            for edge in &info.succs {
                if sum < f64::INFINITY {
                    sum += match self.merges.iter().position(|&merge| merge == edge.to.0) {
                        Some(k) => self.edge(block, edge.to.0, state, self.begin[k]),
                        None => {
                            let live = &self.view.live_in[edge.to.0 as usize];
                            let live = live.iter().fold(0u32, |bits, value| bits | 1 << value);
                            self.from(edge.to.0, (state.0 & live, state.1 & live))?
                        }
                    };
                }
            }
            best = best.min(sum);
        }
        Some(best)
    }

    /// What an edge costs beyond the edits before the last instruction.
    fn edge(&self, pred: u32, block: u32, from: State, to: State) -> f64 {
        let view = self.view;
        let info = &view.program.blocks[pred as usize];
        let open = view.is_open(info.insts.end - 1);
        let mut cost = 0.0;
        for &value in &view.live_in[block as usize] {
            let (here, stored) = (to.0 >> value & 1 != 0, to.1 >> value & 1 != 0);
            let param = view.params[block as usize].iter().find(|param| param.value == value);
            let source = param.map_or(value, |param| view.argument(pred, block, param.index));
            if source == NOTHING {
                continue;
            }
            let (there, kept) = (from.0 >> source & 1 != 0, from.1 >> source & 1 != 0);
            if here && !there {
                return f64::INFINITY;
            }
            let Some(param) = param.filter(|_| stored) else {
                if stored && !kept {
                    return f64::INFINITY;
                }
                continue;
            };
            if kept && self.shares.contains(&(pred, block, param.index)) {
                continue;
            }
            if !open {
                return f64::INFINITY;
            }
            let get = match view.values[source as usize].recipe {
                _ if there => 0.0,
                Some(cost) => cost,
                None if kept => f64::from(self.costs.fill),
                None => return f64::INFINITY,
            };
            cost += (get + f64::from(self.costs.spill)) * f64::from(info.frequency);
        }
        cost
    }

    /// All states after an instruction.
    fn inst(&mut self, inst: u32, frequency: f64, before: Reached) -> Option<Reached> {
        let view = self.view;
        let bits = |values: &mut dyn Iterator<Item = u32>| values.fold(0u32, |bits, value| bits | 1 << value);
        let live = bits(&mut view.before(inst).iter().copied());
        let reads = bits(&mut view.before(inst).into_iter().filter(|&value| view.reads(inst, value)));
        let after = bits(&mut view.after[inst as usize].iter().copied());
        let writes = bits(&mut view.after[inst as usize].iter().copied().filter(|&v| view.writes(inst, v)));
        let mut out = Reached::new();
        for ((here, stored), cost) in self.edits(inst, frequency, live, before)? {
            if reads & !here != 0 {
                continue;
            }
            // Any part of what is in registers afterwards may be let go.
            let most = (here | writes) & after;
            let remade = |value: u32| view.values[value as usize].recipe.is_some();
            let mut left = most;
            loop {
                self.budget = self.budget.checked_sub(1)?;
                let kept = stored & after & !writes;
                let lost = after & !left & !kept;
                let sound = (0..view.values.len() as u32).all(|v| lost >> v & 1 == 0 || remade(v));
                if sound
                    && writes & !left & !bits(&mut (0..view.values.len() as u32).filter(|&v| remade(v))) == 0
                    && self.runs(inst, left)
                {
                    let entry = out.entry((left, kept)).or_insert(f64::INFINITY);
                    *entry = entry.min(cost);
                }
                if left == 0 {
                    break;
                }
                left = (left - 1) & most;
            }
        }
        Some(out)
    }

    /// All states that edits before `inst` lead to.
    fn edits(&mut self, inst: u32, frequency: f64, live: u32, before: Reached) -> Option<Reached> {
        let view = self.view;
        let open = view.is_open(inst);
        let lost = if open { view.wiped } else { Bits::default() };
        let mut out = Reached::new();
        // (What is remade comes after all memory edits, so it does not have to stand where those leave it alone.)
        let mut waiting: Vec<(State, u32, f64)> =
            before.into_iter().map(|((r, m), cost)| ((r & live, m & live), 0, cost)).collect();
        let mut known: BTreeMap<(State, u32), f64> = BTreeMap::new();
        while let Some((state, fresh, cost)) = waiting.pop() {
            self.budget = self.budget.checked_sub(1)?;
            let best = known.entry((state, fresh)).or_insert(f64::INFINITY);
            if *best <= cost {
                continue;
            }
            *best = cost;
            let (here, stored) = state;
            if !self.allowed(state)
                || !self.stands(here & !fresh, &lost)
                || !self.stands(here, &Bits::default())
            {
                // Dropping something may help.
                for value in 0..view.values.len() as u32 {
                    if here >> value & 1 != 0 {
                        waiting.push(((here & !(1 << value), stored), fresh & !(1 << value), cost));
                    }
                }
                continue;
            }
            let entry = out.entry(state).or_insert(f64::INFINITY);
            *entry = entry.min(cost);
            for value in 0..view.values.len() as u32 {
                let info = &view.values[value as usize];
                let bit = 1u32 << value;
                if here & bit != 0 {
                    waiting.push(((here & !bit, stored), fresh & !bit, cost));
                }
                if stored & bit != 0 {
                    waiting.push(((here, stored & !bit), fresh, cost));
                }
                if live & bit == 0 {
                    continue;
                }
                if open
                    && fresh == 0
                    && here & bit != 0
                    && stored & bit == 0
                    && info.storable
                    && info.recipe.is_none()
                {
                    let cost = cost + f64::from(self.costs.spill) * frequency;
                    waiting.push(((here, stored | bit), fresh, cost));
                }
                if open && fresh == 0 && here & bit == 0 && stored & bit != 0 {
                    waiting.push((
                        (here | bit, stored),
                        fresh,
                        cost + f64::from(self.costs.fill) * frequency,
                    ));
                }
                if let Some(recipe) = info.recipe.filter(|_| here & bit == 0) {
                    waiting.push(((here | bit, stored), fresh | bit, cost + recipe * frequency));
                }
            }
        }
        Some(out)
    }

    /// Can these values stand side by side in what `lost` leaves?
    fn stands(&self, values: u32, lost: &Bits) -> bool {
        let list = (0..self.view.values.len()).filter(|v| values >> v & 1 != 0);
        let masks: Vec<Bits> = list.map(|v| self.view.values[v].mask.minus(lost)).collect();
        let mut taken = Vec::new();
        spread(&masks, &mut taken)
    }

    /// Can the instruction run when `left` is what stays in registers after it?
    fn runs(&self, inst: u32, left: u32) -> bool {
        let view = self.view;
        let lost = view.clobbers[view.program.insts[inst as usize].clobbers.0 as usize];
        let ops = view.ops(inst);
        // Values that stay, with the unit that each is in all through.
        let stays: Vec<u32> =
            (0..view.values.len() as u32).filter(|&v| left >> v & 1 != 0 && !view.writes(inst, v)).collect();
        let masks: Vec<Bits> = stays.iter().map(|&v| view.values[v as usize].mask.minus(&lost)).collect();
        let mut taken = Vec::new();
        self.arrange(ops, &stays, &masks, &mut taken)
    }

    fn arrange(&self, ops: &[Operand], stays: &[u32], masks: &[Bits], taken: &mut Vec<Unit>) -> bool {
        let Some(mask) = masks.get(taken.len()) else {
            let mut places: Vec<Option<Unit>> = vec![None; ops.len()];
            return self.operands(ops, stays, taken, &mut places);
        };
        for unit in mask.iter() {
            if !taken.contains(&unit) {
                taken.push(unit);
                if self.arrange(ops, stays, masks, taken) {
                    return true;
                }
                taken.pop();
            }
        }
        false
    }

    /// Places for the operands, uses first.
    fn operands(
        &self,
        ops: &[Operand],
        stays: &[u32],
        taken: &[Unit],
        places: &mut Vec<Option<Unit>>,
    ) -> bool {
        let view = self.view;
        let mut order: Vec<usize> = (0..ops.len()).collect();
        order.sort_by_key(|&k| ops[k].kind != OperandKind::Use);
        let nothing = |k: usize| ops[k].kind == OperandKind::Use && view.value(&ops[k]).is_none();
        let Some(&at) = order.iter().find(|&&k| places[k].is_none() && !nothing(k)) else { return true };
        let op = &ops[at];
        let mut mask = op.fixed.map_or(view.sets[op.set.0 as usize], |unit| Bits::of(&[unit]));
        let is_use = op.kind == OperandKind::Use;
        if let Some(tied) = op.tied {
            let other = &ops[tied as usize];
            let set = other.fixed.map_or(view.sets[other.set.0 as usize], |unit| Bits::of(&[unit]));
            mask = mask.and(&places[tied as usize].map_or(set, |unit| Bits::of(&[unit])));
        }
        let value = view.value(op);
        let early_tie =
            |k: usize| ops.iter().any(|def| def.tied == Some(k as u8) && def.kind == OperandKind::EarlyDef);
        let tied_by = |k: usize| ops.iter().any(|def| def.tied == Some(k as u8));
        for unit in mask.iter() {
            let holder = taken.iter().position(|other| *other == unit).map(|k| stays[k]);
            let early = |op: &Operand| op.kind == OperandKind::EarlyDef;
            let clash = match is_use {
                // The unit of another value; of one that stays it may be only if nothing is written there.
                true => {
                    holder.is_some_and(|holder| Some(holder) != value || tied_by(at))
                        || (0..ops.len()).any(|k| {
                            let same = ops[k].kind == OperandKind::Use && view.value(&ops[k]) == value;
                            let apart = tied_by(k) && tied_by(at) || early_tie(k) || early_tie(at);
                            places[k] == Some(unit) && (!same || apart)
                        })
                }
                false => {
                    holder.is_some()
                        || (0..ops.len()).any(|k| {
                            let other = &ops[k];
                            let both_written = other.kind != OperandKind::Use;
                            let read = !both_written && early(op) && op.tied != Some(k as u8);
                            places[k] == Some(unit) && (both_written || read)
                        })
                }
            };
            if clash {
                continue;
            }
            places[at] = Some(unit);
            if self.operands(ops, stays, taken, places) {
                return true;
            }
            places[at] = None;
        }
        false
    }
}

/// Different units for all masks.
fn spread(masks: &[Bits], taken: &mut Vec<Unit>) -> bool {
    let Some(mask) = masks.get(taken.len()) else { return true };
    for unit in mask.iter() {
        if !taken.contains(&unit) {
            taken.push(unit);
            if spread(masks, taken) {
                return true;
            }
            taken.pop();
        }
    }
    false
}
