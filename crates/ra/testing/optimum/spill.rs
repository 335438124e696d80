//! The least weighted cost of stores, fills and recomputations, as a zero-one program.
//!
//! For every value and every point there is one variable that says whether it is in a register and one that says whether
//! it is in memory. A value that lives is in one of the two; it comes into a register by a fill (or by its recipe) and
//! into memory by a store from a register, each at the frequency of its block, and stays stored for ever. What is in
//! registers has to fit ([`super::demand`]). Where paths meet, a value is where all of them have it. A parameter is born
//! in a register if every argument is in one, or in memory if every argument is written to its slot: by a store on the
//! edge, or for nothing if the argument lies there already because both share the slot.
//!
//! Within a run of instructions that do not touch a value nothing is won by an edit in the middle, so edits are offered
//! next to its uses, its definition and the ends of blocks only (with [`Between::Exact`] everywhere).
//!
//! What is left out, so that the result can be below what can be had, never above: arrangements of vectors, wide and
//! fixed operands beyond Hall's condition; registers that moves from slot to slot and flags on their way from memory need
//! for a moment. A slot is shared only while it has to hold one content: rows for that are added where a solution breaks it.

use std::collections::BTreeMap;
use std::time::Duration;

use kempe_ra::*;

use super::demand::{Item, Residents, asks, phases};
use super::linear::{Linear, Outcome, Sum, Term};
use super::view::{NOTHING, View};

/// Solutions that are tried before every shared slot holds one content.
const MOST_ROUNDS: u32 = 40;

/// Which units hold a value between instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// Those that every memory edit leaves alone, wherever one might stand: what the allocator confines itself to. (Where
    /// it keeps a flag it closes points to memory edits, and more is allowed there; so with flags this is no bound.)
    Safe,
    /// All that the edits which do stand there leave alone.
    Exact,
}

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub nodes: u64,
    pub time: Duration,
    /// Larger programs are not tried (variables).
    pub size: usize,
}

/// What is known of the least cost.
#[derive(Clone, PartialEq, Debug)]
pub enum Least {
    /// The least cost, and edits that cost as much, in the order of the program.
    Cost { cost: f64, plan: Vec<Planned> },
    /// It does not fit whatever is in memory.
    Infeasible,
    /// Not solved: too large, or the search was cut short.
    Unsolved { bound: f64 },
}

/// An edit that costs something, before `inst`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Planned {
    pub inst: u32,
    pub edit: Action,
    /// Number in [`View::values`]; of a store on an edge the parameter.
    pub value: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    Store,
    Fill,
    Remake,
    /// The argument of a parameter that is born in memory, from its register.
    StoreArgument,
    /// The same, brought into a register for it.
    MoveArgument,
}

struct Builder<'v> {
    view: &'v View<'v>,
    costs: &'v Costs,
    between: Between,
    linear: Linear,
    /// By instruction, in registers and in memory once the edits before it are made, and after it.
    entering: Vec<Residents>,
    leaving: Vec<Residents>,
    /// By merge, where it begins.
    birth: Vec<Residents>,
    /// By instruction: one if a memory edit stands before it.
    edited: Vec<Term>,
    /// Argument and parameter that share a slot if the term is one.
    shared: Vec<(Term, u32, u32)>,
    plan: Vec<(Term, Planned)>,
}

/// The least cost of edits that touch memory or recompute, for values that stand as `between` says.
pub fn least(view: &View, costs: &Costs, between: Between, effort: Effort) -> Least {
    let mut builder = Builder {
        view,
        costs,
        between,
        linear: Linear::default(),
        entering: vec![Residents::new(); view.program.insts.len()],
        leaving: vec![Residents::new(); view.program.insts.len()],
        birth: vec![Residents::new(); view.program.blocks.len()],
        edited: vec![Term::Zero; view.program.insts.len()],
        shared: Vec::new(),
        plan: Vec::new(),
    };
    for &block in &view.order {
        builder.block(block);
    }
    for &block in &view.order {
        if view.is_merge(block) {
            builder.edges(block);
        }
    }
    if builder.linear.size().0 > effort.size {
        return Least::Unsolved { bound: 0.0 };
    }
    for _ in 0..MOST_ROUNDS {
        let (cost, values) = match builder.linear.solve(effort.nodes, effort.time) {
            Outcome::Optimal { cost, values } => (cost, values),
            Outcome::Infeasible => return Least::Infeasible,
            Outcome::Unknown { bound } => return Least::Unsolved { bound },
        };
        let is_one = |term: Term| match term {
            Term::Zero => false,
            Term::One => true,
            Term::Var(var) => values[var as usize] > 0.5,
        };
        if !builder.keep_slots_apart(&is_one) {
            let chosen = builder.plan.iter().filter(|(term, _)| is_one(*term)).map(|entry| entry.1);
            let mut plan: Vec<Planned> = chosen.collect();
            plan.sort_unstable();
            return Least::Cost { cost, plan };
        }
    }
    Least::Unsolved { bound: 0.0 }
}

impl Builder<'_> {
    fn frequency(&self, block: u32) -> f64 {
        f64::from(self.view.program.blocks[block as usize].frequency)
    }

    fn choice(&mut self) -> Term {
        self.linear.var(0.0, true)
    }

    /// One if `edit` is made before `inst`.
    fn edit(&mut self, inst: u32, edit: Action, value: u32, cost: f64) -> Term {
        let term = self.linear.var(cost, false);
        self.plan.push((term, Planned { inst, edit, value }));
        term
    }

    fn fits(&mut self, items: &[Item]) {
        for ask in asks(items) {
            self.linear.at_most(&ask.sum, f64::from(ask.capacity));
        }
    }

    fn block(&mut self, block: u32) {
        let view = self.view;
        let info = &view.program.blocks[block as usize];
        let mut state = match info.preds[..] {
            [] => view.live_in[block as usize].iter().map(|&v| (v, (Term::Zero, Term::Zero))).collect(),
            [pred] => {
                let last = view.program.blocks[pred.0 as usize].insts.end - 1;
                let mut state = self.leaving[last as usize].clone();
                state.retain(|value, _| view.live_in[block as usize].contains(value));
                state
            }
            _ => self.born(block),
        };
        for inst in info.insts.clone() {
            state = self.inst(block, inst, state);
        }
    }

    /// Where values are when a merge begins.
    fn born(&mut self, block: u32) -> Residents {
        let view = self.view;
        let mut state = Residents::new();
        for &value in &view.live_in[block as usize] {
            let info = &view.values[value as usize];
            let here = self.choice();
            let stored = match (info.recipe, info.storable) {
                (None, true) => self.choice(),
                _ => Term::Zero,
            };
            if info.recipe.is_none() {
                self.linear.at_least(&[(1.0, here), (1.0, stored)], 1.0);
            }
            state.insert(value, (here, stored));
        }
        let items: Vec<Item> = self.items(&state);
        self.fits(&items);
        self.birth[block as usize] = state.clone();
        state
    }

    fn items(&self, state: &Residents) -> Vec<Item> {
        let item = |(&value, &(here, _)): (&u32, &(Term, Term))| {
            let info = &self.view.values[value as usize];
            Item::new(info.mask, info.size, here)
        };
        state.iter().map(item).collect()
    }

    /// May an edit of `value` before `inst` be worth something?
    fn is_useful(&self, block: u32, inst: u32, value: u32) -> bool {
        let (view, insts) = (self.view, &self.view.program.blocks[block as usize].insts);
        if inst == insts.start || inst + 1 == insts.end || view.touches(inst, value) {
            return true;
        }
        if view.touches(inst - 1, value) || self.between == Between::Exact {
            return true;
        }
        if !view.is_open(inst) {
            return false;
        }
        // The first open point after the value was touched, or the last one before it is again.
        let earlier = (insts.start..inst).rev().find(|&k| view.touches(k, value) || view.is_open(k));
        let later =
            (inst..insts.end).find(|&k| view.touches(k, value) || k + 1 < insts.end && view.is_open(k + 1));
        let near = |k: Option<u32>| k.is_none_or(|k| view.touches(k, value));
        near(earlier) || near(later)
    }

    fn inst(&mut self, block: u32, inst: u32, before: Residents) -> Residents {
        let view = self.view;
        let frequency = self.frequency(block);
        let open = view.is_open(inst);
        let mut entering = Residents::new();
        // What was not in a register before the edits, by value: the term that says it was brought in.
        let mut brought: BTreeMap<u32, Term> = BTreeMap::new();
        let mut memory: Vec<Term> = Vec::new();
        for &value in &view.before(inst) {
            let (here, stored) = before.get(&value).copied().unwrap_or((Term::Zero, Term::Zero));
            let info = &view.values[value as usize];
            let reads = view.reads(inst, value);
            let useful = self.is_useful(block, inst, value);
            let size = f64::from(info.size);
            let (mut now, mut kept) = (here, stored);
            if let Some(cost) = info.recipe {
                if reads {
                    now = Term::One;
                } else if useful {
                    now = self.choice();
                }
                if now != here && here != Term::One {
                    let made = self.edit(inst, Action::Remake, value, cost * frequency);
                    self.linear.at_most(&[(1.0, now), (-1.0, here), (-1.0, made)], 0.0);
                    brought.insert(value, made);
                }
            } else {
                if reads {
                    now = Term::One;
                } else if open && useful {
                    now = self.choice();
                }
                if !open {
                    self.linear.at_most(&[(1.0, now), (-1.0, here)], 0.0);
                } else if useful && info.storable && stored != Term::One {
                    kept = self.choice();
                    let cost = f64::from(self.costs.spill) * size * frequency;
                    let store = self.edit(inst, Action::Store, value, cost);
                    self.linear.at_most(&[(1.0, kept), (-1.0, stored), (-1.0, store)], 0.0);
                    self.linear.at_most(&[(1.0, store), (-1.0, here)], 0.0);
                    memory.push(store);
                }
                if open && now != here && here != Term::One {
                    let cost = f64::from(self.costs.fill) * size * frequency;
                    let fill = self.edit(inst, Action::Fill, value, cost);
                    self.linear.at_most(&[(1.0, now), (-1.0, here), (-1.0, fill)], 0.0);
                    brought.insert(value, fill);
                    memory.push(fill);
                }
                self.linear.at_least(&[(1.0, now), (1.0, kept)], 1.0);
            }
            entering.insert(value, (now, kept));
        }
        if open {
            self.point(inst, &before, &entering, &brought, &memory);
        }
        let leaving = self.after(inst, &entering);
        for items in phases(view, inst, &entering, &leaving) {
            self.fits(&items);
        }
        self.entering[inst as usize] = entering;
        self.leaving[inst as usize] = leaving.clone();
        leaving
    }

    fn after(&mut self, inst: u32, entering: &Residents) -> Residents {
        let view = self.view;
        let mut leaving = Residents::new();
        for &value in &view.after[inst as usize] {
            let remade = view.values[value as usize].recipe.is_some();
            let (here, stored) = entering.get(&value).copied().unwrap_or((Term::Zero, Term::Zero));
            let state = match (view.writes(inst, value), view.reads(inst, value)) {
                (true, _) => (if remade { self.choice() } else { Term::One }, Term::Zero),
                (false, true) if remade => (self.choice(), Term::Zero),
                (false, true) => {
                    let stays = self.choice();
                    self.linear.at_least(&[(1.0, stays), (1.0, stored)], 1.0);
                    (stays, stored)
                }
                (false, false) => (here, stored),
            };
            leaving.insert(value, state);
        }
        leaving
    }

    /// What stands where a memory edit may stand, before and after it.
    fn point(
        &mut self,
        inst: u32,
        before: &Residents,
        entering: &Residents,
        brought: &BTreeMap<u32, Term>,
        memory: &[Term],
    ) {
        let wiped = self.view.wiped;
        let narrow = |mut item: Item| {
            item.mask = item.mask.minus(&wiped);
            item
        };
        // What is made again right here comes after all memory edits.
        let crossing = |value: u32, here: Term, fills: bool| -> Sum {
            let remade = self.view.values[value as usize].recipe.is_some();
            let mut sum = vec![(1.0, here)];
            let new = brought.get(&value).filter(|_| remade || fills);
            sum.extend(new.map(|&term| (-1.0, term)));
            sum
        };
        let items = |fills: bool| -> Vec<Item> {
            let item = |(&value, &(here, _)): (&u32, &(Term, Term))| {
                let info = &self.view.values[value as usize];
                narrow(Item { mask: info.mask, size: info.size, weight: crossing(value, here, fills) })
            };
            entering.iter().map(item).collect()
        };
        let (all, through) = (items(false), items(true));
        if self.between == Between::Safe {
            let earlier: Vec<Item> = self.items(before).into_iter().map(narrow).collect();
            self.fits(&earlier);
            self.fits(&all);
            return;
        }
        let edited = self.linear.var(0.0, false);
        for &term in memory {
            self.linear.at_most(&[(1.0, term), (-1.0, edited)], 0.0);
        }
        self.edited[inst as usize] = edited;
        // The last value that is filled may come to where edits destroy; what stays through all of them may not.
        let values: Vec<u32> = entering.keys().copied().collect();
        for (items, spare) in [(all, 1.0), (through, 0.0)] {
            for ask in asks(&items) {
                let masks = ask.members.iter().map(|&k| self.view.values[values[k] as usize].mask);
                let full = masks.fold(ask.units, |all, mask| all.or(&mask));
                let room = f64::from(full.count()) - f64::from(ask.capacity) - spare;
                if room > 0.0 && ask.capacity == ask.units.count() {
                    let mut sum = ask.sum;
                    sum.push((room, edited));
                    self.linear.at_most(&sum, f64::from(ask.capacity) + spare + room);
                }
            }
        }
    }

    /// What a merge asks of its predecessors.
    fn edges(&mut self, block: u32) {
        let view = self.view;
        for pred in &view.program.blocks[block as usize].preds {
            let last = view.program.blocks[pred.0 as usize].insts.end - 1;
            let frequency = self.frequency(pred.0);
            let end = self.entering[last as usize].clone();
            let birth = self.birth[block as usize].clone();
            for (&value, &(here, stored)) in &birth {
                let param = view.params[block as usize].iter().find(|param| param.value == value);
                let Some(param) = param else {
                    let (there, kept) = end[&value];
                    self.linear.at_most(&[(1.0, here), (-1.0, there)], 0.0);
                    self.linear.at_most(&[(1.0, stored), (-1.0, kept)], 0.0);
                    continue;
                };
                let arg = view.argument(pred.0, block, param.index);
                if arg == NOTHING {
                    continue;
                }
                let (there, kept) = end[&arg];
                self.linear.at_most(&[(1.0, here), (-1.0, there)], 0.0);
                if stored == Term::Zero {
                    continue;
                }
                let mut sum: Sum = vec![(1.0, stored)];
                if kept != Term::Zero {
                    let share = self.linear.var(0.0, true);
                    self.linear.at_most(&[(1.0, share), (-1.0, kept)], 0.0);
                    self.shared.push((share, arg, value));
                    sum.push((-1.0, share));
                }
                if view.is_open(last) {
                    sum.extend(self.edge_stores(last, (arg, value), there, frequency));
                }
                self.linear.at_most(&sum, 0.0);
            }
        }
    }

    /// Stores of an argument into the slot of a parameter: from its register, or on the way from elsewhere.
    fn edge_stores(&mut self, last: u32, (arg, param): (u32, u32), there: Term, frequency: f64) -> Sum {
        let info = &self.view.values[arg as usize];
        let size = f64::from(info.size);
        let (spill, fill) = (f64::from(self.costs.spill) * size, f64::from(self.costs.fill) * size);
        let direct = self.edit(last, Action::StoreArgument, param, spill * frequency);
        let first = self.view.program.blocks.iter().any(|info| info.insts.start == last);
        let earlier = match first {
            // (Right at the start of the block it may have been in a register before the edits; let it.)
            true => Term::One,
            false => self.leaving[last as usize - 1].get(&arg).map_or(Term::Zero, |state| state.0),
        };
        self.linear.at_most(&[(1.0, direct), (-1.0, there), (-1.0, earlier)], 0.0);
        let get = info.recipe.unwrap_or(fill);
        let around = self.edit(last, Action::MoveArgument, param, (spill + get) * frequency);
        let edited = self.edited[last as usize];
        if self.between == Between::Exact {
            for term in [direct, around] {
                self.linear.at_most(&[(1.0, term), (-1.0, edited)], 0.0);
            }
        }
        vec![(-1.0, direct), (-1.0, around)]
    }

    /// Rows against values that share a slot while both are in memory; `false` if there are none in this solution. Every
    /// chain of shared slots between two such values is one row: not all of its links and both values at that point.
    fn keep_slots_apart(&mut self, is_one: &dyn Fn(Term) -> bool) -> bool {
        let links: Vec<(Term, u32, u32)> =
            self.shared.iter().copied().filter(|link| is_one(link.0)).collect();
        if links.is_empty() {
            return false;
        }
        let mut rows: Vec<(Sum, f64)> = Vec::new();
        for state in self.entering.iter().chain(&self.birth) {
            let stored: Vec<(u32, Term)> = state
                .iter()
                .filter(|(_, state)| is_one(state.1))
                .map(|(&value, state)| (value, state.1))
                .collect();
            for (k, &(a, first)) in stored.iter().enumerate() {
                let paths = chains(&links, a);
                for &(b, second) in &stored[k + 1..] {
                    let Some(path) = paths.get(&b) else { continue };
                    if path.len() == 1 && self.is_only(path[0].1, path[0].2) {
                        continue;
                    }
                    let mut sum: Sum = path.iter().map(|link| (1.0, link.0)).collect();
                    sum.extend([(1.0, first), (1.0, second)]);
                    rows.push((sum, path.len() as f64 + 1.0));
                }
            }
        }
        for (sum, bound) in &rows {
            self.linear.at_most(sum, *bound);
        }
        !rows.is_empty()
    }

    /// Is the parameter that argument wherever it is defined at all?
    fn is_only(&self, arg: u32, param: u32) -> bool {
        let view = self.view;
        view.order.iter().all(|&block| {
            let mut own = view.params[block as usize].iter().filter(|own| own.value == param);
            own.all(|own| {
                let mut preds = view.program.blocks[block as usize].preds.iter();
                preds.all(|pred| [arg, NOTHING].contains(&view.argument(pred.0, block, own.index)))
            })
        })
    }
}

/// By value: the shortest chain of links from `from` to it.
fn chains(links: &[(Term, u32, u32)], from: u32) -> BTreeMap<u32, Vec<(Term, u32, u32)>> {
    let mut paths = BTreeMap::from([(from, Vec::new())]);
    let mut ends = vec![from];
    while !ends.is_empty() {
        let mut next = Vec::new();
        for &(term, arg, param) in links {
            for (a, b) in [(arg, param), (param, arg)] {
                if ends.contains(&a) && !paths.contains_key(&b) {
                    let mut path = paths[&a].clone();
                    path.push((term, arg, param));
                    paths.insert(b, path);
                    next.push(b);
                }
            }
        }
        ends = next;
    }
    paths
}
