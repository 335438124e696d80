//! A program seen by its values rather than its virtual registers: parameters that can only be one value take its name,
//! everything that one recipe makes is one value, and liveness is by plain sets.

use std::collections::BTreeSet;

use kempe_ra::*;

use super::bits::Bits;

/// No value: undefined.
pub const NOTHING: u32 = u32::MAX;

/// What is known of a value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Where it may stand between instructions, under the limit; for a set with another one behind it, both.
    pub mask: Bits,
    pub size: u32,
    /// What it costs to make it again, if that is possible.
    pub recipe: Option<f64>,
    /// May go to memory.
    pub storable: bool,
}

/// A parameter of a merge that is a value of its own.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub value: u32,
    pub index: usize,
}

pub struct View<'a> {
    pub program: &'a Program,
    /// Value of every virtual register, or [`NOTHING`].
    pub value_of: Vec<u32>,
    pub values: Vec<Value>,
    /// Units of every set under the limit.
    pub sets: Vec<Bits>,
    pub clobbers: Vec<Bits>,
    /// Destroyed by a memory edit.
    pub wiped: Bits,
    /// By block: its parameters that are values of their own and are read somewhere.
    pub params: Vec<Vec<Param>>,
    /// Values live where a block begins, parameters among them.
    pub live_in: Vec<BTreeSet<u32>>,
    /// Values live after an instruction.
    pub after: Vec<BTreeSet<u32>>,
    /// Blocks in an order in which a block with one predecessor comes after it.
    pub order: Vec<u32>,
}

/// Units of every set that `limit` leaves, in the words of [`Options::max_registers`].
pub fn limited(file: &RegisterFile, program: &Program, limit: Option<u32>, memory: bool) -> Vec<Bits> {
    let wiped = Bits::of(&file.clobbers[file.memory_edit_clobbers.0 as usize]);
    let reserved = if memory { Bits::of(&file.edit_reserved) } else { Bits::default() };
    let mut fixed = Bits::default();
    for op in &program.operands {
        let size = program.vregs[op.vreg.0 as usize].size as u16;
        op.fixed.into_iter().flat_map(|unit| unit.0..unit.0 + size).for_each(|u| fixed.insert(Unit(u)));
    }
    let all: Vec<Bits> = file.sets.iter().map(|set| Bits::of(&set.units)).collect();
    let in_memory = |set: usize| file.sets[set].backing == Backing::Memory;
    let mut kept = vec![Bits::default(); all.len()];
    // A set comes after all that lie within it.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&set| all[set].count());
    for (at, &set) in order.iter().enumerate() {
        let list: Vec<Unit> =
            file.sets[set].units.iter().copied().filter(|u| !reserved.contains(*u)).collect();
        let (Some(limit), true) = (limit, in_memory(set)) else {
            kept[set] = Bits::of(&list);
            continue;
        };
        let within = order[..at].iter().filter(|&&inner| in_memory(inner) && all[inner].within(&all[set]));
        let first = within.fold(wiped.or(&fixed), |sum, &inner| sum.or(&kept[inner]));
        let (stays, others): (Vec<Unit>, Vec<Unit>) =
            list.into_iter().partition(|unit| first.contains(*unit));
        let named = stays.iter().filter(|unit| !wiped.contains(**unit)).count();
        let left = others.iter().take((limit as usize).saturating_sub(named));
        kept[set] = Bits::of(stays.iter().chain(left));
    }
    kept
}

impl<'a> View<'a> {
    /// `memory`: with the units that memory edits reserve taken out.
    pub fn new(file: &'a RegisterFile, program: &'a Program, limit: Option<u32>, memory: bool) -> View<'a> {
        let order = reverse_postorder(program);
        let same = same_values(program, &order);
        let sets = limited(file, program, limit, memory);
        let recipes = recipes(program, &order, &same);
        let mut view = View {
            program,
            value_of: vec![NOTHING; program.vregs.len()],
            values: Vec::new(),
            sets,
            clobbers: file.clobbers.iter().map(Bits::of).collect(),
            wiped: Bits::of(&file.clobbers[file.memory_edit_clobbers.0 as usize]),
            params: vec![Vec::new(); program.blocks.len()],
            live_in: vec![BTreeSet::new(); program.blocks.len()],
            after: vec![BTreeSet::new(); program.insts.len()],
            order,
        };
        let mut known = std::collections::BTreeMap::new();
        for (vreg, info) in program.vregs.iter().enumerate() {
            let first = same[vreg];
            if first == NOTHING {
                continue;
            }
            let recipe = recipes[first as usize];
            let key = recipe.map_or((0, first), |recipe| (1, recipe.0));
            let value = *known.entry(key).or_insert_with(|| {
                view.values.push(Value {
                    mask: Bits::default(),
                    size: info.size as u32,
                    recipe: recipe.map(|recipe| f64::from(program.recipe_cost[recipe.0 as usize])),
                    storable: false,
                });
                view.values.len() as u32 - 1
            });
            view.value_of[vreg] = value;
            let home = info.home.0 as usize;
            let value = &mut view.values[value as usize];
            value.mask = value.mask.or(&view.sets[home]);
            if let Backing::Set(behind) = file.sets[home].backing {
                value.mask = value.mask.or(&view.sets[behind.0 as usize]);
            }
            value.storable |= file.sets[home].backing != Backing::None;
        }
        view.live(&same);
        view
    }

    pub fn ops(&self, inst: u32) -> &'a [Operand] {
        let range = &self.program.insts[inst as usize].operands;
        &self.program.operands[range.start as usize..range.end as usize]
    }

    /// The value of an operand, unless it is undefined.
    pub fn value(&self, op: &Operand) -> Option<u32> {
        let value = self.value_of[op.vreg.0 as usize];
        (value != NOTHING).then_some(value)
    }

    pub fn touches(&self, inst: u32, value: u32) -> bool {
        self.ops(inst).iter().any(|op| self.value(op) == Some(value))
    }

    pub fn reads(&self, inst: u32, value: u32) -> bool {
        self.ops(inst).iter().any(|op| op.kind == OperandKind::Use && self.value(op) == Some(value))
    }

    pub fn writes(&self, inst: u32, value: u32) -> bool {
        self.ops(inst).iter().any(|op| op.kind != OperandKind::Use && self.value(op) == Some(value))
    }

    pub fn is_open(&self, inst: u32) -> bool {
        !self.program.insts[inst as usize].no_memory_edit_before
    }

    pub fn is_merge(&self, block: u32) -> bool {
        self.program.blocks[block as usize].preds.len() > 1
    }

    /// Arguments of an edge by parameter.
    pub fn argument(&self, pred: u32, block: u32, index: usize) -> u32 {
        let succs = &self.program.blocks[pred as usize].succs;
        let edge = succs.iter().find(|edge| edge.to.0 == block);
        edge.map_or(NOTHING, |edge| self.value_of[edge.args[index].0 as usize])
    }

    /// What is live before an instruction.
    pub fn before(&self, inst: u32) -> BTreeSet<u32> {
        let mut live = self.after[inst as usize].clone();
        let killed = |op: &Operand| self.value(op).filter(|v| self.values[*v as usize].recipe.is_none());
        for op in self.ops(inst).iter().filter(|op| op.kind != OperandKind::Use) {
            killed(op).map(|value| live.remove(&value));
        }
        live.extend(
            self.ops(inst).iter().filter(|op| op.kind == OperandKind::Use).filter_map(|op| self.value(op)),
        );
        live
    }

    fn own_params(&self, block: u32, same: &[u32]) -> Vec<Param> {
        let info = &self.program.blocks[block as usize];
        if info.preds.len() < 2 {
            return Vec::new();
        }
        let own = info.params.iter().enumerate().filter(|(_, param)| same[param.0 as usize] == param.0);
        let own = own.map(|(index, param)| Param { value: self.value_of[param.0 as usize], index });
        own.filter(|param| self.values[param.value as usize].recipe.is_none()).collect()
    }

    fn live(&mut self, same: &[u32]) {
        let own: Vec<Vec<Param>> =
            (0..self.program.blocks.len() as u32).map(|block| self.own_params(block, same)).collect();
        loop {
            let mut changed = false;
            for at in (0..self.order.len()).rev() {
                let block = self.order[at];
                let info = &self.program.blocks[block as usize];
                let mut live = BTreeSet::new();
                for edge in &info.succs {
                    let to = edge.to.0;
                    for &value in &self.live_in[to as usize] {
                        match own[to as usize].iter().find(|param| param.value == value) {
                            None => drop(live.insert(value)),
                            Some(param) => {
                                let arg = self.argument(block, to, param.index);
                                if arg != NOTHING {
                                    live.insert(arg);
                                }
                            }
                        }
                    }
                }
                for inst in info.insts.clone().rev() {
                    self.after[inst as usize] = live;
                    live = self.before(inst);
                }
                if live != self.live_in[block as usize] {
                    self.live_in[block as usize] = live;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        self.params = own;
        for (params, live) in self.params.iter_mut().zip(&self.live_in) {
            params.retain(|param| live.contains(&param.value));
        }
    }
}

fn reverse_postorder(program: &Program) -> Vec<u32> {
    let mut seen = vec![false; program.blocks.len()];
    let mut order = Vec::new();
    let mut stack = vec![(0u32, 0usize)];
    seen[0] = true;
    while let Some((block, next)) = stack.pop() {
        match program.blocks[block as usize].succs.get(next) {
            Some(edge) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut seen[edge.to.0 as usize], true) {
                    stack.push((edge.to.0, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// By virtual register: the first one that is always the same value, or [`NOTHING`].
fn same_values(program: &Program, order: &[u32]) -> Vec<u32> {
    let mut same: Vec<u32> = (0..program.vregs.len() as u32).collect();
    for (vreg, info) in program.vregs.iter().enumerate() {
        if info.undefined {
            same[vreg] = NOTHING;
        }
    }
    loop {
        let mut changed = false;
        for &block in order {
            let info = &program.blocks[block as usize];
            for (index, param) in info.params.iter().enumerate() {
                let edges = info.preds.iter().flat_map(|pred| &program.blocks[pred.0 as usize].succs);
                let args = edges.filter(|edge| edge.to.0 == block).map(|edge| edge.args[index]);
                let mut args: Vec<u32> = args.map(|arg| same[arg.0 as usize]).collect();
                let old = same[param.0 as usize];
                if old == NOTHING {
                    continue;
                }
                args.retain(|arg| *arg != old);
                args.sort_unstable();
                args.dedup();
                // (Checker A does not look round loops for what a recipe makes.)
                let place = |block: u32| order.iter().position(|other| *other == block);
                let round = info.preds.iter().any(|pred| place(pred.0) >= place(block));
                let remade = |value: u32| value != NOTHING && program.vregs[value as usize].recipe.is_some();
                if let [only] = args[..]
                    && !(round && remade(only))
                {
                    same.iter_mut().filter(|name| **name == old).for_each(|name| *name = only);
                    changed = true;
                }
            }
        }
        if !changed {
            return same;
        }
    }
}

/// By value: its recipe. A parameter is what a recipe makes when every argument is; loops are not looked into.
fn recipes(program: &Program, order: &[u32], same: &[u32]) -> Vec<Option<Recipe>> {
    let mut recipes: Vec<Option<Recipe>> = program.vregs.iter().map(|info| info.recipe).collect();
    for &block in order {
        let info = &program.blocks[block as usize];
        for (index, param) in info.params.iter().enumerate() {
            if same[param.0 as usize] != param.0 {
                continue;
            }
            let edges = info.preds.iter().flat_map(|pred| &program.blocks[pred.0 as usize].succs);
            let mut args =
                edges.filter(|edge| edge.to.0 == block).map(|edge| same[edge.args[index].0 as usize]);
            let recipe = |arg: u32| if arg == NOTHING { None } else { recipes[arg as usize] };
            if let Some(first) = args.next().and_then(recipe)
                && args.all(|arg| recipe(arg) == Some(first))
            {
                recipes[param.0 as usize] = Some(first);
            }
        }
    }
    recipes
}
