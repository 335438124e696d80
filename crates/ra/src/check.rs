//! Checker A: is an allocation right? An abstract interpretation of the program with its edits over places.
//!
//! Every unit and every slot holds a set of facts "this is part k of value v" (or "this is what recipe r makes"). An edit
//! or an instruction changes the facts as it would change the contents; where paths meet only facts that hold on all
//! of them remain; the whole runs to a fixpoint. A use must find its value in its place. A definition takes the
//! facts about earlier versions of its value (the last round of a loop) away everywhere.
//!
//! The checker reads the register file and the program, never anything that the allocator computed on its way:
//! no liveness, no intervals. It assumes that the allocator is hostile. The only thing it shares with it is the order
//! in which blocks are visited, which the result does not depend on.
//!
//! A parameter whose argument is undefined may hold anything, so it is "anywhere" on that path.
//!
//! Idea: the symbolic checker of regalloc2 and IonMonkey's integrity checker; the facts for recipes, slots shared
//! in time, memory-edit clobbers and ties are ours.

use smallvec::SmallVec;

use crate::graph::{Graph, NONE};
use crate::masks::UnitMask;
use crate::problem::*;
use crate::verify;

type Facts = SmallVec<[u32; 3]>;

/// What is known at one point.
#[derive(Clone)]
struct State {
    /// Units first, then slots; each list sorted.
    places: Vec<Facts>,
    /// Facts about values that may be read from any place.
    anywhere: Vec<u32>,
}

/// No set limits it.
const ANYWHERE: u32 = u32::MAX;

/// The bit of a set; sets beyond those that a word counts limit nothing.
fn set_bit(set: SetId) -> u32 {
    1u32.checked_shl(set.0 as u32).unwrap_or(ANYWHERE)
}

struct Checker<'a> {
    file: &'a RegisterFile,
    program: &'a Program,
    allocation: &'a Allocation,
    /// First fact of a value.
    value_fact: Vec<u32>,
    /// First fact of a recipe; `recipe_size` parts.
    recipe_fact: Vec<u32>,
    recipe_size: Vec<u8>,
    /// Values with the parameters that are always the same, sorted.
    aliases: Vec<(VReg, VReg)>,
    /// By value: the recipe that makes it, if any.
    recipe_of: Vec<Option<Recipe>>,
    /// Sets by fact, one bit each: home and operands; [`ANYWHERE`] for what a recipe makes.
    fact_home: Vec<u32>,
    /// Where values of a set may be: the set and the one behind it.
    homes: Vec<UnitMask>,
    narrow: UnitMask,
    sets: Vec<UnitMask>,
    clobbers: Vec<UnitMask>,
    reserved: UnitMask,
    /// `copies[a]`: units that a copy from unit `a` may reach.
    copies: Vec<UnitMask>,
    /// `swaps[a]`: units that share a set with `a`.
    swaps: Vec<UnitMask>,
    memory_units: UnitMask,
    unused: Vec<bool>,
    units: usize,
    /// In how many places of the current state a fact holds.
    count: Vec<u32>,
    /// Blocks visited.
    visits: u64,
}

/// Is `allocation` right for `program`? The error names the instruction, the operand, what was expected and found.
pub fn check(file: &RegisterFile, program: &Program, allocation: &Allocation) -> Result<(), Failure> {
    verify::verify_file(file).map_err(Failure::Malformed)?;
    verify::verify_program(file, program).map_err(Failure::Malformed)?;
    let graph = Graph::new(program);
    check_with(file, program, &graph, allocation).map_err(Failure::CheckFailed).map(|_| ())
}

/// As [`check`]; gives how many blocks were visited.
pub(crate) fn check_with(
    file: &RegisterFile,
    program: &Program,
    graph: &Graph,
    allocation: &Allocation,
) -> Result<u64, String> {
    let mut checker = Checker::new(file, program, allocation, graph)?;
    checker.run(graph)?;
    Ok(checker.visits)
}

/// Sweeps over the parameters; each sees through one more back edge.
const ALIAS_PASSES: u32 = 8;

/// Values, each with a parameter all of whose arguments are this value, or the parameter itself; sorted.
fn aliases(program: &Program, graph: &Graph) -> Vec<(VReg, VReg)> {
    let mut same: Vec<VReg> = (0..program.vregs.len() as u32).map(VReg).collect();
    for _ in 0..ALIAS_PASSES {
        let mut changed = false;
        for &block in &graph.rpo {
            let info = &program.blocks[block as usize];
            for (index, &param) in info.params.iter().enumerate() {
                let edges = info.preds.iter().flat_map(|pred| &program.blocks[pred.0 as usize].succs);
                let args =
                    edges.filter(|edge| edge.to.0 == block).map(|edge| same[edge.args[index].0 as usize]);
                let mut args = args.filter(|&arg| arg != param);
                if let Some(first) = args.next()
                    && args.all(|arg| arg == first)
                    && same[param.0 as usize] != first
                {
                    same[param.0 as usize] = first;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let all = same.iter().enumerate().map(|(vreg, &value)| (value, VReg(vreg as u32)));
    let mut list: Vec<(VReg, VReg)> = all.filter(|(value, vreg)| value != vreg).collect();
    list.sort_unstable();
    list
}

impl<'a> Checker<'a> {
    fn new(
        file: &'a RegisterFile,
        program: &'a Program,
        allocation: &'a Allocation,
        graph: &Graph,
    ) -> Result<Checker<'a>, String> {
        let units = file.units.len();
        if allocation.places.len() != program.operands.len() {
            return Err(format!(
                "{} places for {} operands",
                allocation.places.len(),
                program.operands.len()
            ));
        }
        let mut next = 0u32;
        let mut value_fact = Vec::with_capacity(program.vregs.len());
        let mut recipe_size = vec![1u8; program.recipe_cost.len()];
        let mut fact_home = Vec::with_capacity(program.vregs.len());
        for info in &program.vregs {
            value_fact.push(next);
            next += info.size as u32;
            fact_home.resize(next as usize, set_bit(info.home));
            if let Some(recipe) = info.recipe {
                recipe_size[recipe.0 as usize] = info.size;
            }
        }
        let mut recipe_fact = Vec::with_capacity(recipe_size.len());
        for &size in &recipe_size {
            recipe_fact.push(next);
            next += size as u32;
        }
        // A parameter is what a recipe makes when every argument is; loops are not looked into.
        let mut recipe_of: Vec<Option<Recipe>> = program.vregs.iter().map(|info| info.recipe).collect();
        for &block in &graph.rpo {
            let info = &program.blocks[block as usize];
            for (index, &param) in info.params.iter().enumerate() {
                let mut edges = info.preds.iter().flat_map(|pred| {
                    let succs = program.blocks[pred.0 as usize].succs.iter();
                    succs.filter(|edge| edge.to.0 == block).map(|edge| recipe_of[edge.args[index].0 as usize])
                });
                if let (None, Some(Some(first))) = (recipe_of[param.0 as usize], edges.next())
                    && edges.all(|recipe| recipe == Some(first))
                {
                    recipe_of[param.0 as usize] = Some(first);
                }
            }
        }
        fact_home.resize(next as usize, ANYWHERE);
        // A parameter may live where its arguments do not: the copy on the edge brings them there.
        for block in &program.blocks {
            for edge in &block.succs {
                let params = &program.blocks[edge.to.0 as usize].params;
                for (arg, param) in edge.args.iter().zip(params) {
                    let home = set_bit(program.vregs[param.0 as usize].home);
                    let first = value_fact[arg.0 as usize] as usize;
                    let size = program.vregs[arg.0 as usize].size as usize;
                    fact_home[first..first + size].iter_mut().for_each(|sets| *sets |= home);
                }
            }
        }
        // An operand may ask for a set that the value does not live in otherwise: a copy brings it there.
        for op in &program.operands {
            let first = value_fact[op.vreg.0 as usize] as usize;
            for home in &mut fact_home[first..first + program.vregs[op.vreg.0 as usize].size as usize] {
                *home |= set_bit(op.set);
            }
        }
        let sets: Vec<UnitMask> = file.sets.iter().map(|set| UnitMask::of(&set.units)).collect();
        let homes = file
            .sets
            .iter()
            .zip(&sets)
            .map(|(set, mask)| match set.backing {
                Backing::Set(behind) => mask.or(&sets[behind.0 as usize]),
                _ => *mask,
            })
            .collect();
        let clobbers: Vec<UnitMask> = file.clobbers.iter().map(|mask| UnitMask::of(mask)).collect();
        let mut memory_units = UnitMask::EMPTY;
        let mut copies = vec![UnitMask::EMPTY; units];
        let mut swaps = vec![UnitMask::EMPTY; units];
        for (index, set) in file.sets.iter().enumerate() {
            let mut reach = sets[index];
            match set.backing {
                Backing::Memory => memory_units = memory_units.or(&sets[index]),
                Backing::Set(behind) => {
                    reach = reach.or(&sets[behind.0 as usize]);
                    for unit in &file.sets[behind.0 as usize].units {
                        copies[unit.0 as usize] = copies[unit.0 as usize].or(&sets[index]);
                    }
                }
                Backing::None => {}
            }
            for unit in &set.units {
                copies[unit.0 as usize] = copies[unit.0 as usize].or(&reach);
                swaps[unit.0 as usize] = swaps[unit.0 as usize].or(&sets[index]);
            }
        }
        let mut unused = vec![false; program.operands.len()];
        for &index in &allocation.unused_defs {
            match unused.get_mut(index as usize) {
                Some(flag) if !*flag => *flag = true,
                _ => return Err(format!("unused def {index} does not exist or stands twice")),
            }
        }
        let has_memory =
            allocation.edits.iter().any(|(_, edit)| matches!(edit, Edit::Spill { .. } | Edit::Fill { .. }));
        if has_memory && !allocation.memory_edits {
            return Err("there are memory edits but the allocation says there are none".into());
        }
        let reserved =
            if allocation.memory_edits { UnitMask::of(&file.edit_reserved) } else { UnitMask::EMPTY };
        // A hostile slot count must not make the table large.
        if allocation.slots as usize > allocation.edits.len() {
            return Err(format!("{} slots for {} edits", allocation.slots, allocation.edits.len()));
        }
        Ok(Checker {
            file,
            program,
            allocation,
            value_fact,
            recipe_fact,
            recipe_size,
            aliases: aliases(program, graph),
            recipe_of,
            fact_home,
            homes,
            narrow: UnitMask::of(&file.narrow),
            sets,
            clobbers,
            reserved,
            copies,
            swaps,
            memory_units,
            unused,
            units,
            count: vec![0; next as usize],
            visits: 0,
        })
    }

    fn run(&mut self, graph: &Graph) -> Result<(), String> {
        let (first_edit, edits) = self.order_edits()?;
        let blocks = self.program.blocks.len();
        let mut entry: Vec<Option<State>> = (0..blocks).map(|_| None).collect();
        entry[0] = Some(State {
            places: vec![Facts::new(); self.units + self.allocation.slots as usize],
            anywhere: Vec::new(),
        });
        let again = self.may_come_again(graph);
        let mut dirty = vec![false; graph.rpo.len()];
        dirty[0] = true;
        let mut position = 0;
        // Positions before this one have been visited.
        let mut done = 0;
        while position < graph.rpo.len() {
            if !std::mem::take(&mut dirty[position]) {
                position += 1;
                continue;
            }
            let block = graph.rpo[position];
            // What is known at the start of a block that is seen once is not kept.
            let known = &mut entry[block as usize];
            let known = if again[position] { known.clone() } else { known.take() };
            let Some(mut state) = known else { continue };
            self.visits += 1;
            done = done.max(position + 1);
            self.recount(&state, true);
            let result = self.block(block, &mut state, &first_edit, &edits);
            self.recount(&state, false);
            result?;
            let succs = &self.program.blocks[block as usize].succs;
            let mut back = position + 1;
            for (index, edge) in succs.iter().enumerate() {
                let mut after = if index + 1 == succs.len() {
                    std::mem::replace(&mut state, State { places: Vec::new(), anywhere: Vec::new() })
                } else {
                    state.clone()
                };
                self.pass_edge(edge, &mut after);
                let at = graph.rpo_index[edge.to.0 as usize] as usize;
                if at < done && !again[at] {
                    return Err(format!("block {} is entered again from block {block}", edge.to.0));
                }
                let changed = match &mut entry[edge.to.0 as usize] {
                    Some(known) => meet(known, &after),
                    empty => {
                        *empty = Some(after);
                        true
                    }
                };
                if changed {
                    dirty[at] = true;
                    back = back.min(at);
                }
            }
            position = back;
        }
        Ok(())
    }

    /// By position: does an edge from there or later lead there or before? Other blocks are visited once: going back along
    /// such an edge revisits only blocks between its ends.
    fn may_come_again(&self, graph: &Graph) -> Vec<bool> {
        let mut again = vec![false; graph.rpo.len()];
        let mut from = usize::MAX;
        for position in (0..graph.rpo.len()).rev() {
            let succs = self.program.blocks[graph.rpo[position] as usize].succs.iter();
            let first = succs.map(|edge| graph.rpo_index[edge.to.0 as usize] as usize).min();
            if let Some(first) = first.filter(|&first| first <= position) {
                from = from.min(first);
            }
            again[position] = from <= position;
        }
        again
    }

    fn recount(&mut self, state: &State, add: bool) {
        for &fact in state.places.iter().flatten() {
            let count = &mut self.count[fact as usize];
            *count = if add { *count + 1 } else { *count - 1 };
        }
    }

    /// Edits by instruction, as `first_edit[inst]..first_edit[inst + 1]` for those before it and after the previous one.
    fn order_edits(&self) -> Result<(Vec<u32>, Vec<Edit>), String> {
        let count = self.program.insts.len();
        let mut terminator = vec![false; count];
        for block in &self.program.blocks {
            terminator[block.insts.end as usize - 1] = true;
        }
        let mut first = vec![0u32; count + 1];
        let mut last = 0;
        let mut edits = Vec::with_capacity(self.allocation.edits.len());
        for &(point, edit) in &self.allocation.edits {
            let (inst, key) = match point {
                Point::Before(inst) => (inst.0, inst.0 as u64 * 2),
                Point::After(inst) => (inst.0.wrapping_add(1), inst.0 as u64 * 2 + 1),
            };
            if inst as usize >= count {
                return Err(format!("{edit:?} stands at {point:?}, outside the program"));
            }
            if matches!(point, Point::After(inst) if terminator[inst.0 as usize]) {
                return Err(format!("{edit:?} stands after the terminator {point:?}"));
            }
            if key < last {
                return Err(format!("{edit:?} at {point:?} is out of order"));
            }
            last = key;
            first[inst as usize + 1] += 1;
            edits.push(edit);
        }
        for k in 1..first.len() {
            first[k] += first[k - 1];
        }
        Ok((first, edits))
    }

    fn block(&mut self, block: u32, state: &mut State, first: &[u32], edits: &[Edit]) -> Result<(), String> {
        let program = self.program;
        for inst in program.blocks[block as usize].insts.clone() {
            for edit in &edits[first[inst as usize] as usize..first[inst as usize + 1] as usize] {
                self.edit(inst, *edit, state)
                    .map_err(|text| format!("before instruction {inst}: {edit:?}: {text}"))?;
            }
            self.inst(inst, state).map_err(|text| format!("instruction {inst}: {text}"))?;
        }
        Ok(())
    }

    fn set_facts(&mut self, state: &mut State, place: usize, facts: Facts) {
        for &fact in &facts {
            self.count[fact as usize] += 1;
        }
        for fact in std::mem::replace(&mut state.places[place], facts) {
            self.count[fact as usize] -= 1;
        }
    }

    /// What of these facts survives in a unit. A narrow one keeps a value only if it belongs to the home set of the value
    /// or the set behind that, or to the set of one of its operands or of a parameter that it goes to. Facts of one place are about
    /// the same bits: what keeps one keeps all.
    fn at_home(&self, unit: Unit, facts: &Facts) -> Facts {
        if !self.narrow.contains(unit) {
            return facts.clone();
        }
        let stays = |fact: &u32| {
            let sets = self.fact_home[*fact as usize];
            sets == ANYWHERE
                || self.homes.iter().enumerate().any(|(n, home)| sets >> n & 1 != 0 && home.contains(unit))
        };
        if facts.iter().any(stays) { facts.clone() } else { Facts::default() }
    }

    fn unit(&self, unit: Unit) -> Result<usize, String> {
        if unit.0 as usize >= self.units {
            return Err(format!("unit {} does not exist", unit.0));
        }
        if self.reserved.contains(unit) {
            return Err(format!("{} is reserved for edits", self.file.units[unit.0 as usize]));
        }
        Ok(unit.0 as usize)
    }

    fn slot(&self, slot: Slot) -> Result<usize, String> {
        if slot.0 >= self.allocation.slots {
            return Err(format!("slot {} of {} does not exist", slot.0, self.allocation.slots));
        }
        Ok(self.units + slot.0 as usize)
    }

    fn clobber(&mut self, state: &mut State, clobbers: ClobberId) {
        let Some(mask) = self.clobbers.get(clobbers.0 as usize).copied() else { return };
        for unit in mask.iter() {
            self.set_facts(state, unit.0 as usize, Facts::new());
        }
    }

    fn memory_allowed(&self, inst: u32, unit: Unit) -> Result<(), String> {
        if self.program.insts[inst as usize].no_memory_edit_before {
            return Err("no memory edit may stand here".into());
        }
        if !self.memory_units.contains(unit) {
            return Err(format!("{} is in no set backed by memory", self.file.units[unit.0 as usize]));
        }
        Ok(())
    }

    fn edit(&mut self, inst: u32, edit: Edit, state: &mut State) -> Result<(), String> {
        match edit {
            Edit::Copy { from, to } => {
                let (source, target) = (self.unit(from)?, self.unit(to)?);
                if !self.copies[source].contains(to) {
                    return Err("no set or backing connects the two units".into());
                }
                let facts = self.at_home(to, &state.places[source]);
                self.set_facts(state, target, facts);
            }
            Edit::Swap { a, b } => {
                let (one, other) = (self.unit(a)?, self.unit(b)?);
                if !self.swaps[one].contains(b) {
                    return Err("no set holds both units".into());
                }
                let (at_a, at_b) =
                    (self.at_home(a, &state.places[other]), self.at_home(b, &state.places[one]));
                self.set_facts(state, one, at_a);
                self.set_facts(state, other, at_b);
            }
            Edit::Spill { from, slot } => {
                let (source, target) = (self.unit(from)?, self.slot(slot)?);
                self.memory_allowed(inst, from)?;
                let facts = state.places[source].clone();
                self.clobber(state, self.file.memory_edit_clobbers);
                self.set_facts(state, target, facts);
            }
            Edit::Fill { slot, to } => {
                let (source, target) = (self.slot(slot)?, self.unit(to)?);
                self.memory_allowed(inst, to)?;
                self.clobber(state, self.file.memory_edit_clobbers);
                let facts = self.at_home(to, &state.places[source]);
                self.set_facts(state, target, facts);
            }
            Edit::Recompute { recipe, to } => {
                let Some(&size) = self.recipe_size.get(recipe.0 as usize) else {
                    return Err("the recipe does not exist".into());
                };
                for part in 0..size as u16 {
                    let unit = self.unit(Unit(to.0.saturating_add(part)))?;
                    let fact = self.recipe_fact[recipe.0 as usize] + part as u32;
                    self.set_facts(state, unit, Facts::from_slice(&[fact]));
                }
            }
            // The inputs that a value was made from are the same wherever it may be read: every way from a new definition of one of
            // them to a use of the value passes its definition. So the result is the value; and a parameter that can only be this
            // value is it for the same reason.
            Edit::Repeat { inst: again, from, to } => {
                let repeated = self.program.insts.get(again.0 as usize).filter(|info| info.repeat.is_some());
                let Some(info) = repeated else { return Err("that instruction cannot be repeated".into()) };
                let ops = &self.program.operands[info.operands.start as usize..info.operands.end as usize];
                let mut sources = from.into_iter();
                for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                    let unit = sources.next().unwrap_or(from[0]);
                    self.legal(op, unit).and_then(|()| self.read(op, unit, state))?;
                }
                for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                    self.legal(op, to)?;
                    let same = self.aliases.partition_point(|entry| entry.0 < op.vreg);
                    let same = self.aliases[same..].iter().take_while(|entry| entry.0 == op.vreg);
                    let all = same.map(|entry| entry.1).chain([op.vreg]);
                    let facts: Facts = all.map(|vreg| self.value_fact[vreg.0 as usize]).collect();
                    self.set_facts(state, to.0 as usize, facts);
                }
            }
        }
        Ok(())
    }

    fn inst(&mut self, inst: u32, state: &mut State) -> Result<(), String> {
        let program = self.program;
        let info = &program.insts[inst as usize];
        let range = info.operands.start as usize..info.operands.end as usize;
        let ops = &program.operands[range.clone()];
        let allocation = self.allocation;
        let places = &allocation.places[range.clone()];
        for (index, (op, &unit)) in ops.iter().zip(places).enumerate() {
            self.legal(op, unit).map_err(|text| format!("operand {index} (v{}): {text}", op.vreg.0))?;
            if op.vector.is_some() {
                self.legal_vector(ops, places, index)?;
            }
            if op.kind == OperandKind::Use {
                self.read(op, unit, state)
                    .map_err(|text| format!("operand {index} (v{}): {text}", op.vreg.0))?;
            }
        }
        let span = |index: usize| {
            UnitMask::run(places[index], program.vregs[ops[index].vreg.0 as usize].size as u32)
        };
        let mut written = UnitMask::EMPTY;
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind != OperandKind::Use) {
            let mine = span(index);
            if written.intersects(&mine) {
                return Err(format!("operand {index} (v{}): two defs share a unit", op.vreg.0));
            }
            written = written.or(&mine);
            if let Some(tied) = op.tied
                && places[tied as usize] != places[index]
            {
                return Err(format!(
                    "operand {index} (v{}): tied to operand {tied} in {}, but placed in {}",
                    op.vreg.0,
                    self.name(places[tied as usize]),
                    self.name(places[index])
                ));
            }
            if op.kind == OperandKind::EarlyDef {
                for (other, used) in ops.iter().enumerate() {
                    // (Even a use that reads nothing: the machine may not allow the same name twice.)
                    if used.kind == OperandKind::Use
                        && op.tied != Some(other as u8)
                        && span(other).intersects(&mine)
                    {
                        return Err(format!(
                            "operand {index} (v{}): written early into {}, which operand {other} (v{}) reads",
                            op.vreg.0,
                            self.name(places[index]),
                            used.vreg.0
                        ));
                    }
                }
            }
        }
        self.clobber(state, info.clobbers);
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind != OperandKind::Use) {
            let size = program.vregs[op.vreg.0 as usize].size;
            let first = self.value_fact[op.vreg.0 as usize];
            self.forget(state, first, size);
            let recipe = self.recipe_of[op.vreg.0 as usize];
            for part in 0..size as u16 {
                let mut facts = Facts::new();
                if !self.unused[range.start + index] {
                    facts.push(first + part as u32);
                    // What it makes is also what the recipe makes.
                    facts.extend(recipe.map(|r| self.recipe_fact[r.0 as usize] + part as u32));
                }
                self.set_facts(state, (places[index].0 + part) as usize, facts);
            }
        }
        Ok(())
    }

    fn name(&self, unit: Unit) -> &str {
        self.file.units.get(unit.0 as usize).map_or("?", |name| name.as_str())
    }

    /// What the place of an operand must satisfy whatever it holds.
    fn legal(&self, op: &Operand, unit: Unit) -> Result<(), String> {
        let size = self.program.vregs[op.vreg.0 as usize].size as u16;
        if size > 1 && !unit.0.is_multiple_of(size.next_power_of_two()) {
            return Err(format!("{} is not aligned for {size} units", self.name(unit)));
        }
        for part in 0..size {
            let part = Unit(unit.0.saturating_add(part));
            self.unit(part)?;
            if !self.sets[op.set.0 as usize].contains(part) {
                let set = &self.file.sets[op.set.0 as usize].name;
                return Err(format!("{} is not in set {set}", self.name(part)));
            }
        }
        match op.fixed {
            Some(fixed) if fixed != unit => {
                Err(format!("must be in {}, but is in {}", self.name(fixed), self.name(unit)))
            }
            _ => Ok(()),
        }
    }

    fn legal_vector(&self, ops: &[Operand], places: &[Unit], index: usize) -> Result<(), String> {
        let Some(part) = ops[index].vector else { return Ok(()) };
        let base = places[index].0 as i32 - part.index as i32;
        if base < 0 || base % part.align as i32 != 0 {
            return Err(format!(
                "operand {index}: the vector does not start at a multiple of {}",
                part.align
            ));
        }
        for (other, op) in ops.iter().enumerate() {
            if let Some(v) = op.vector.filter(|v| v.group == part.group)
                && places[other].0 as i32 - v.index as i32 != base
            {
                return Err(format!(
                    "operand {other}: {} is not position {} of a vector whose position {} is {}",
                    self.name(places[other]),
                    v.index,
                    part.index,
                    self.name(places[index])
                ));
            }
        }
        Ok(())
    }

    fn read(&self, op: &Operand, unit: Unit, state: &State) -> Result<(), String> {
        let info = &self.program.vregs[op.vreg.0 as usize];
        if info.undefined {
            return Ok(());
        }
        for part in 0..info.size as u32 {
            let fact = self.value_fact[op.vreg.0 as usize] + part;
            let facts = &state.places[unit.0 as usize + part as usize];
            let recipe = self.recipe_of[op.vreg.0 as usize];
            let made = recipe.map(|recipe| self.recipe_fact[recipe.0 as usize] + part);
            let found = facts.contains(&fact)
                || made.is_some_and(|made| facts.contains(&made))
                || state.anywhere.binary_search(&fact).is_ok();
            if !found {
                let name = self.name(Unit(unit.0 + part as u16));
                return Err(format!(
                    "expected part {part} of v{} in {name}, found {}",
                    op.vreg.0,
                    self.describe(facts)
                ));
            }
        }
        Ok(())
    }

    fn describe(&self, facts: &Facts) -> String {
        if facts.is_empty() {
            return "nothing known".into();
        }
        let mut out = String::new();
        for &fact in facts.iter().take(8) {
            if !out.is_empty() {
                out += " = ";
            }
            let values = self.recipe_fact.first().copied().unwrap_or(u32::MAX);
            let base = if fact < values { &self.value_fact } else { &self.recipe_fact };
            let index = base.partition_point(|&first| first <= fact) - 1;
            let kind = if fact < values { "v" } else { "recipe " };
            out += &format!("{kind}{index}");
            if fact != base[index] {
                out += &format!(" part {}", fact - base[index]);
            }
        }
        out
    }

    /// A new version of a value begins: nothing holds it any more.
    fn forget(&mut self, state: &mut State, first: u32, size: u8) {
        for fact in first..first + size as u32 {
            if self.count[fact as usize] != 0 {
                for facts in &mut state.places {
                    facts.retain(|known| *known != fact);
                }
                self.count[fact as usize] = 0;
            }
            if let Ok(at) = state.anywhere.binary_search(&fact) {
                state.anywhere.remove(at);
            }
        }
    }

    /// Along an edge the parameters become what their arguments are, all at once.
    fn pass_edge(&self, edge: &Edge, state: &mut State) {
        let program = self.program;
        let params = &program.blocks[edge.to.0 as usize].params;
        if params.is_empty() {
            return;
        }
        // Facts that a fact brings along, as chains through `links`.
        let mut head: rustc_hash::FxHashMap<u32, u32> = Default::default();
        let mut links: Vec<(u32, u32)> = Vec::new();
        let mut old: Vec<u32> = Vec::new();
        let mut anywhere: Vec<u32> = Vec::new();
        for (&param, &arg) in params.iter().zip(&edge.args) {
            let source = &program.vregs[arg.0 as usize];
            for part in 0..source.size as u32 {
                let new = self.value_fact[param.0 as usize] + part;
                old.push(new);
                let fact = self.value_fact[arg.0 as usize] + part;
                if source.undefined || state.anywhere.binary_search(&fact).is_ok() {
                    anywhere.push(new);
                    continue;
                }
                let made =
                    self.recipe_of[arg.0 as usize].map(|recipe| self.recipe_fact[recipe.0 as usize] + part);
                for from in [Some(fact), made].into_iter().flatten() {
                    let next = head.insert(from, links.len() as u32).unwrap_or(NONE);
                    links.push((new, next));
                }
            }
        }
        old.sort_unstable();
        for facts in &mut state.places {
            if facts.is_empty() {
                continue;
            }
            let mut after = Facts::new();
            for &fact in facts.iter() {
                if old.binary_search(&fact).is_err() {
                    after.push(fact);
                }
                let mut at = head.get(&fact).copied().unwrap_or(NONE);
                while at != NONE {
                    after.push(links[at as usize].0);
                    at = links[at as usize].1;
                }
            }
            after.sort_unstable();
            after.dedup();
            *facts = after;
        }
        state.anywhere.retain(|fact| old.binary_search(fact).is_err());
        state.anywhere.extend(anywhere);
        state.anywhere.sort_unstable();
        state.anywhere.dedup();
    }
}

/// Keep in `known` only what also holds in `other`; whether anything was lost.
fn meet(known: &mut State, other: &State) -> bool {
    let mut changed = false;
    let extra: Vec<u32> =
        known.anywhere.iter().copied().filter(|fact| other.anywhere.binary_search(fact).is_err()).collect();
    if !extra.is_empty() {
        changed = true;
        known.anywhere.retain(|fact| other.anywhere.binary_search(fact).is_ok());
    }
    for (mine, theirs) in known.places.iter_mut().zip(&other.places) {
        if mine == theirs && extra.is_empty() {
            continue;
        }
        let before = mine.len();
        mine.retain(|fact| theirs.contains(fact) || other.anywhere.binary_search(fact).is_ok());
        changed |= mine.len() != before;
        // What could be anywhere here is where the other path has it.
        if !extra.is_empty() {
            mine.extend(theirs.iter().copied().filter(|fact| extra.binary_search(fact).is_ok()));
            mine.sort_unstable();
            mine.dedup();
        }
    }
    changed
}
