//! Places: a walk over the blocks in dominance order that gives every definition a unit among those that are free (the
//! colouring of a chordal graph in perfect elimination order, Hack & Goos 2006), with wishes. Values may change place
//! at any point by copies: where an instruction's fixed units, ties, clobbers or vectors do not agree with where the
//! values are, the whole point is settled anew ([`crate::settle`]). At merges every value gets one place and each edge
//! a parallel copy.

mod edges;

use smallvec::SmallVec;

use crate::code::*;
use crate::demand::{Limits, Node, Ways, in_parts};
use crate::graph::{Graph, NONE};
use crate::liveness::Liveness;
use crate::masks::{MAX_UNITS, UnitMask};
use crate::moves::{Move, parallel};
use crate::prefer::Prefer;
use crate::problem::*;
use crate::settle::{Item, node_item, settle, value_item};
use crate::wishes::{NO_UNIT, Wishes};

/// Where no place could be found.
pub(crate) struct Stuck {
    pub inst: u32,
    pub set: SetId,
    pub live: Vec<VReg>,
}

pub(crate) struct Placed {
    pub places: Vec<Unit>,
    pub edits: Vec<(Point, Edit)>,
}

struct Scan<'a> {
    code: &'a Code,
    live: &'a Liveness,
    limits: &'a Limits,
    graph: &'a Graph,
    costs: &'a Costs,
    wishes: Wishes,
    unit_of: Vec<u16>,
    /// The last place of a value that may be gone.
    last_unit: Vec<u16>,
    /// For parameters: the place at the start of their block.
    entry_unit: Vec<u16>,
    occupant: [u32; MAX_UNITS],
    occupied: UnitMask,
    /// Units that the parameters of the loops around would like to have back at the latch.
    wanted: UnitMask,
    loop_wanted: Vec<UnitMask>,
    prefer: Prefer,
    units: usize,
    places: Vec<Unit>,
    edits: Vec<(u32, Edit)>,
    /// `(value, unit)` at the end of every block, in order of value.
    exits: Vec<Vec<(u32, Unit)>>,
    entries: Vec<Vec<(u32, Unit)>>,
    /// Unit of every operand of the current step.
    op_units: Vec<Unit>,
    nodes: Vec<Node>,
    /// Places that the graph engine found, by value; empty without it.
    plan: &'a [u16],
    work: &'a mut Work,
}

#[expect(clippy::too_many_arguments, reason = "one call; each is a table that the scan reads")]
pub(crate) fn scan(
    program: &Program,
    code: &Code,
    live: &Liveness,
    limits: &Limits,
    graph: &Graph,
    costs: &Costs,
    options: &Options,
    units: usize,
    plan: &[u16],
    work: &mut Work,
) -> Result<Placed, Stuck> {
    let count = code.vregs.len();
    let mut scan = Scan {
        code,
        live,
        limits,
        graph,
        costs,
        wishes: Wishes::new(code, live, limits, graph),
        unit_of: vec![NO_UNIT; count],
        last_unit: vec![NO_UNIT; count],
        entry_unit: vec![NO_UNIT; count],
        occupant: [NONE; MAX_UNITS],
        occupied: UnitMask::EMPTY,
        wanted: UnitMask::EMPTY,
        loop_wanted: vec![UnitMask::EMPTY; graph.loops.len()],
        prefer: Prefer::new(code, limits, options),
        units,
        places: vec![Unit(0); program.operands.len()],
        edits: Vec::new(),
        exits: vec![Vec::new(); code.blocks.len()],
        entries: vec![Vec::new(); code.blocks.len()],
        op_units: Vec::new(),
        nodes: Vec::new(),
        plan,
        work,
    };
    for &block in &graph.rpo {
        scan.enter(block)?;
        for step in code.blocks[block as usize].steps.clone() {
            scan.step(step)?;
        }
        scan.leave(block);
    }
    scan.clear();
    for &block in &graph.rpo {
        scan.resolve_edges(block);
    }
    let mut edits = scan.edits;
    edits.sort_by_key(|edit| edit.0);
    let edits = edits.into_iter().map(|(inst, edit)| (Point::Before(Inst(inst)), edit)).collect();
    Ok(Placed { places: scan.places, edits })
}

impl Scan<'_> {
    fn span(&self, vreg: u32, unit: Unit) -> UnitMask {
        match self.code.vregs[vreg as usize].size {
            1 => UnitMask::single(unit),
            size => UnitMask::run(unit, size as u32),
        }
    }

    fn home_mask(&self, vreg: u32) -> UnitMask {
        self.limits.sets[self.code.vregs[vreg as usize].home.0 as usize]
    }

    fn place(&mut self, vreg: u32, unit: Unit) {
        self.unit_of[vreg as usize] = unit.0;
        self.last_unit[vreg as usize] = unit.0;
        for k in 0..self.code.vregs[vreg as usize].size as u16 {
            self.occupant[(unit.0 + k) as usize] = vreg;
            self.prefer.gave(Unit(unit.0 + k));
            self.occupied.insert(Unit(unit.0 + k));
        }
        self.wishes.settle_web(vreg, unit, false);
    }

    fn remove(&mut self, vreg: u32) {
        let unit = std::mem::replace(&mut self.unit_of[vreg as usize], NO_UNIT);
        if unit == NO_UNIT {
            return;
        }
        for k in 0..self.code.vregs[vreg as usize].size as u16 {
            if self.occupant[(unit + k) as usize] == vreg {
                self.occupant[(unit + k) as usize] = NONE;
                self.occupied.remove(Unit(unit + k));
            }
        }
    }

    fn clear(&mut self) {
        for unit in self.occupied.iter() {
            self.unit_of[self.occupant[unit.0 as usize] as usize] = NO_UNIT;
            self.occupant[unit.0 as usize] = NONE;
        }
        self.occupied = UnitMask::EMPTY;
    }

    /// The values that are resident, with their units, in order of unit.
    fn residents(&self) -> Vec<(u32, Unit)> {
        let mut list: Vec<(u32, Unit)> = Vec::new();
        for unit in self.occupied.iter() {
            let vreg = self.occupant[unit.0 as usize];
            if self.unit_of[vreg as usize] == unit.0 {
                list.push((vreg, unit));
            }
        }
        list
    }

    /// Where the plan wants a value.
    fn planned(&self, vreg: u32) -> Option<Unit> {
        let unit = self.plan.get(vreg as usize).copied().unwrap_or(NO_UNIT);
        (unit != NO_UNIT).then_some(Unit(unit))
    }

    /// The best of the free units `free` for a value.
    fn choose(&mut self, vreg: u32, set: SetId, free: &UnitMask, near: Option<Unit>) -> Unit {
        if let Some(unit) = self.planned(vreg).filter(|&unit| free.contains(unit)) {
            return unit;
        }
        let avoid = if vreg == NONE { UnitMask::EMPTY } else { self.wishes.avoid(vreg) };
        let good = free.minus(&avoid);
        if vreg != NONE && !good.is_empty() {
            if let Some(unit) = near.filter(|&unit| good.contains(unit)) {
                return unit;
            }
            if let Some(unit) = self.wishes.asked(vreg).filter(|&unit| good.contains(unit)) {
                return unit;
            }
            for &(other, _) in self.wishes.affinities(vreg) {
                let entry = self.entry_unit[other as usize];
                let unit = if entry != NO_UNIT { entry } else { self.last_unit[other as usize] };
                if unit != NO_UNIT && good.contains(Unit(unit)) {
                    return Unit(unit);
                }
            }
            if let Some(unit) = self.wishes.web_unit(vreg).filter(|&unit| good.contains(unit)) {
                return unit;
            }
        }
        let calm = good.minus(&self.wanted);
        let from = if !calm.is_empty() {
            calm
        } else if !good.is_empty() {
            good
        } else {
            *free
        };
        self.prefer.pick(self.limits, vreg, set, &from)
    }

    /// Bases in `mask` at which `size` units are free.
    fn bases(mask: &UnitMask, size: u32, align: u32) -> UnitMask {
        let mut out = UnitMask::EMPTY;
        for unit in mask.iter() {
            let fits = (unit.0 as u32).is_multiple_of(align)
                && (1..size).all(|k| mask.contains(Unit(unit.0 + k as u16)));
            if fits {
                out.insert(unit);
            }
        }
        out
    }

    fn free_places(&self, vreg: u32, mask: &UnitMask) -> UnitMask {
        match self.code.vregs[vreg as usize].size {
            1 => *mask,
            size => Scan::bases(mask, size as u32, (size as u32).next_power_of_two()),
        }
    }

    fn settle_items(&mut self, items: &mut [Item]) -> bool {
        let units = self.units;
        settle(items, units, self.limits.exact, &mut |vreg, free| {
            let set = if vreg == NONE { SetId(0) } else { self.code.vregs[vreg as usize].home };
            self.choose(vreg, set, free, None)
        })
    }

    fn stuck(&self, step: u32, values: Vec<u32>) -> Stuck {
        let first = values.iter().find(|&&vreg| vreg != NONE);
        let set = first.map_or(SetId(0), |&vreg| self.code.vregs[vreg as usize].home);
        Stuck {
            inst: self.code.steps[step as usize].inst,
            set,
            live: values.into_iter().filter(|&vreg| vreg != NONE).map(VReg).collect(),
        }
    }

    fn leave(&mut self, block: u32) {
        self.exits[block as usize] = self.residents();
    }

    fn step(&mut self, step: u32) -> Result<(), Stuck> {
        self.prefer.tick();
        let code = self.code;
        let info = &code.steps[step as usize];
        self.work.placed += 1;
        if !self.try_as_is(info) {
            self.work.settled += 1;
            self.settle_step(step)?;
        }
        for (k, op) in info.ops().enumerate() {
            if code.real[op] != u32::MAX {
                self.places[code.real[op] as usize] = self.op_units[k];
            }
        }
        self.emit(info);
        Ok(())
    }

    fn emit(&mut self, info: &Step) {
        let code = self.code;
        let Some(first) = self.op_units.first().copied() else { return };
        if let StepKind::Repeat(inst) = info.kind {
            let of_kind = |is_use: bool| {
                let placed = code.ops[info.ops()].iter().zip(&self.op_units);
                placed.filter(move |(op, _)| (op.kind == OperandKind::Use) == is_use).map(|(_, &unit)| unit)
            };
            let (mut from, to) = (of_kind(true), of_kind(false).next().unwrap_or(first));
            let one = from.next().unwrap_or(first);
            let other = from.next().unwrap_or(one);
            self.edits.push((info.inst, Edit::Repeat { inst: Inst(inst), from: [one, other], to }));
            return;
        }
        let size = code.vregs[code.ops[info.first_op as usize].vreg.0 as usize].size as u16;
        for k in 0..size {
            let unit = Unit(first.0 + k);
            let edit = match info.kind {
                StepKind::Inst | StepKind::Repeat(_) => return,
                StepKind::Copy => {
                    let to = Unit(self.op_units[1].0 + k);
                    if to == unit {
                        continue;
                    }
                    Edit::Copy { from: unit, to }
                }
                StepKind::Remake(recipe) => {
                    self.edits.push((info.inst, Edit::Recompute { recipe, to: unit }));
                    return;
                }
                StepKind::Store(slot) => Edit::Spill { from: unit, slot: Slot(slot + k as u32) },
                StepKind::Fill(slot) => Edit::Fill { slot: Slot(slot + k as u32), to: unit },
            };
            self.edits.push((info.inst, edit));
        }
    }

    /// The values are where the step wants them and every def finds a free unit: the usual case.
    fn try_as_is(&mut self, info: &Step) -> bool {
        let code = self.code;
        let range = info.ops();
        let ops = &code.ops[range.clone()];
        let kills = &code.kills[range];
        self.op_units.clear();
        self.op_units.resize(ops.len(), Unit(NO_UNIT));
        let mut dying = UnitMask::EMPTY;
        let mut bases: SmallVec<[(Group, u16); 4]> = SmallVec::new();
        for (index, op) in ops.iter().enumerate() {
            if op.kind != OperandKind::Use || code.is_undefined(op.vreg.0) {
                continue;
            }
            let unit = Unit(self.unit_of[op.vreg.0 as usize]);
            if unit.0 == NO_UNIT {
                return false;
            }
            let mask = &self.limits.sets[op.set.0 as usize];
            let span = self.span(op.vreg.0, unit);
            if !span.is_subset_of(mask) || op.fixed.is_some_and(|fixed| fixed != unit) {
                return false;
            }
            if let Some(part) = op.vector {
                let base = unit.0.wrapping_sub(part.index as u16);
                if base > unit.0 || !base.is_multiple_of(part.align as u16) {
                    return false;
                }
                match bases.iter().find(|entry| entry.0 == part.group) {
                    Some(entry) if entry.1 != base => return false,
                    Some(_) => {}
                    None => bases.push((part.group, base)),
                }
            }
            if kills[index] != LIVES {
                dying = dying.or(&span);
            }
            self.op_units[index] = unit;
        }
        let clobbered = self.limits.clobber_mask(info.clobbers);
        let spared = if in_parts(code, info) { clobbered } else { UnitMask::EMPTY };
        if self.occupied.minus(&dying.minus(&spared)).intersects(&clobbered) {
            return false;
        }
        let mut free = UnitMask::EMPTY;
        let mut free_early = UnitMask::EMPTY;
        let mut have_free = false;
        // Fixed defs, then tied ones, then the rest.
        for pass in 0..3 {
            for (index, op) in ops.iter().enumerate() {
                let mine = if op.fixed.is_some() {
                    0
                } else if op.tied.is_some() {
                    1
                } else {
                    2
                };
                if op.kind == OperandKind::Use || mine != pass || self.op_units[index].0 != NO_UNIT {
                    continue;
                }
                if !have_free {
                    have_free = true;
                    let all = UnitMask::run(Unit(0), self.units as u32);
                    free = all.minus(&self.occupied.minus(&dying));
                    free_early = all.minus(&self.occupied);
                }
                let vreg = op.vreg.0;
                let mask = self.limits.sets[op.set.0 as usize].minus(&spared);
                if op.vector.is_some() {
                    if !self.choose_window(ops, index, &mut free, &mut free_early) {
                        return false;
                    }
                    continue;
                }
                let tied = op.tied.filter(|&tied| !code.is_undefined(ops[tied as usize].vreg.0));
                let unit = if let Some(tied) = tied {
                    let unit = self.op_units[tied as usize];
                    // The early def's unit is read by its tied use only.
                    let shared = op.kind == OperandKind::EarlyDef
                        && ops.iter().enumerate().any(|(at, other)| {
                            at != tied as usize
                                && other.kind == OperandKind::Use
                                && other.vreg == ops[tied as usize].vreg
                        });
                    if kills[tied as usize] == LIVES || shared || op.fixed.is_some_and(|f| f != unit) {
                        return false;
                    }
                    let span = self.span(vreg, unit);
                    if !span.is_subset_of(&free) || !span.is_subset_of(&mask) {
                        return false;
                    }
                    unit
                } else {
                    let mut mask = mask;
                    let open = if op.kind == OperandKind::EarlyDef { &free_early } else { &free };
                    if let Some(tied) = op.tied {
                        let used = &ops[tied as usize];
                        mask = mask.and(&self.limits.sets[used.set.0 as usize]);
                        if let Some(fixed) = used.fixed {
                            mask = mask.and(&UnitMask::single(fixed));
                        }
                        if used.vector.is_some() {
                            return false;
                        }
                    }
                    let mask = self.free_places(vreg, &mask.and(open));
                    let near = if info.is_move { self.op_units.first().copied() } else { None };
                    match op.fixed {
                        Some(fixed) if mask.contains(fixed) => fixed,
                        Some(_) => return false,
                        None if mask.is_empty() => return false,
                        None => self.choose(vreg, op.set, &mask, near),
                    }
                };
                let span = self.span(vreg, unit);
                free = free.minus(&span);
                free_early = free_early.minus(&span);
                self.op_units[index] = unit;
            }
        }
        if !self.place_undefined(ops, &bases) {
            return false;
        }
        for (op, &kill) in ops.iter().zip(kills) {
            if op.kind == OperandKind::Use && kill == DIES {
                self.remove(op.vreg.0);
            }
        }
        for (index, op) in ops.iter().enumerate() {
            if op.kind != OperandKind::Use && kills[index] == LIVES {
                self.place(op.vreg.0, self.op_units[index]);
            }
        }
        true
    }

    /// A window for a vector of plain defs, if one is free.
    fn choose_window(
        &mut self,
        ops: &[Operand],
        index: usize,
        free: &mut UnitMask,
        free_early: &mut UnitMask,
    ) -> bool {
        let Some(part) = ops[index].vector else { return false };
        let members: SmallVec<[usize; 8]> =
            (0..ops.len()).filter(|&k| ops[k].vector.is_some_and(|v| v.group == part.group)).collect();
        if members
            .iter()
            .any(|&k| ops[k].tied.is_some() || ops[k].fixed.is_some() || self.op_units[k].0 != NO_UNIT)
        {
            return false;
        }
        let mut bases = UnitMask::EMPTY;
        let position = |k: usize| ops[k].vector.map_or(0, |v| v.index as u16);
        let open = if ops[index].kind == OperandKind::EarlyDef { *free_early } else { *free };
        for base in (0..self.units as u16).step_by(part.align.max(1) as usize) {
            let fits = members.iter().all(|&k| {
                let unit = Unit(base + position(k));
                open.contains(unit) && self.limits.sets[ops[k].set.0 as usize].contains(unit)
            });
            if fits {
                bases.insert(Unit(base));
            }
        }
        if bases.is_empty() {
            return false;
        }
        let lead = members.iter().copied().find(|&k| position(k) == 0).unwrap_or(index);
        let base = self.choose(ops[lead].vreg.0, ops[lead].set, &bases, None);
        for &k in &members {
            let unit = Unit(base.0 + position(k));
            self.op_units[k] = unit;
            free.remove(unit);
            free_early.remove(unit);
        }
        true
    }

    /// Units for operands that read nothing: any that is legal there and not written early.
    fn place_undefined(&mut self, ops: &[Operand], bases: &[(Group, u16)]) -> bool {
        let mut early = UnitMask::EMPTY;
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind == OperandKind::EarlyDef) {
            early = early.or(&self.span(op.vreg.0, self.op_units[index]));
        }
        for (index, op) in ops.iter().enumerate() {
            if self.op_units[index].0 != NO_UNIT {
                continue;
            }
            if let Some(def) = ops.iter().position(|other| other.tied == Some(index as u8)) {
                self.op_units[index] = self.op_units[def];
                continue;
            }
            let mask = self.limits.sets[op.set.0 as usize].minus(&early);
            let unit = if let Some(part) = op.vector {
                let known = bases.iter().find(|entry| entry.0 == part.group).map(|entry| entry.1);
                let base = known.or_else(|| {
                    let members = || ops.iter().filter(|o| o.vector.is_some_and(|v| v.group == part.group));
                    let mut all = (0..self.units as u16).step_by(part.align.max(1) as usize);
                    all.find(|&base| {
                        members().all(|o| {
                            let unit = Unit(base + o.vector.map_or(0, |v| v.index as u16));
                            self.limits.sets[o.set.0 as usize].minus(&early).contains(unit)
                        })
                    })
                });
                let Some(base) = base else { return false };
                Unit(base + part.index as u16)
            } else if let Some(fixed) = op.fixed {
                fixed
            } else {
                let Some(unit) = self.free_places(op.vreg.0, &mask).first() else { return false };
                unit
            };
            if !self.span(op.vreg.0, unit).is_subset_of(&mask) {
                return false;
            }
            self.op_units[index] = unit;
        }
        true
    }

    /// Give every value of this point a place that suits the step, and copy what has to move.
    fn settle_step(&mut self, step: u32) -> Result<(), Stuck> {
        let mut ways = Ways::new(self.limits);
        loop {
            let result = self.settle_with(step, &mut ways);
            if result.is_ok() || !ways.next() {
                return result;
            }
        }
    }

    fn settle_with(&mut self, step: u32, ways: &mut Ways) -> Result<(), Stuck> {
        let code = self.code;
        let info = &code.steps[step as usize];
        let range = info.ops();
        let ops = &code.ops[range.clone()];
        let kills = &code.kills[range];
        let mut nodes_here = std::mem::take(&mut self.nodes);
        ways.nodes(code, self.limits, info, &mut nodes_here);
        let clobbered = self.limits.clobber_mask(info.clobbers);
        let mut items: Vec<Item> = Vec::new();
        let mut claimed = UnitMask::EMPTY;
        for node in &nodes_here {
            let now = (node.value != NONE)
                .then(|| self.unit_of[node.value as usize])
                .filter(|&unit| unit != NO_UNIT)
                .map(Unit)
                // Only the first node of a value has the value's own place.
                .filter(|&unit| !claimed.contains(unit));
            if let Some(unit) = now {
                claimed.insert(unit);
            }
            items.push(Item { now, ..node_item(code, self.limits, info, node) });
        }
        let mentioned = |vreg: u32| ops.iter().any(|op| op.kind == OperandKind::Use && op.vreg.0 == vreg);
        let through: Vec<(u32, Unit)> =
            self.residents().into_iter().filter(|entry| !mentioned(entry.0)).collect();
        for &(vreg, unit) in &through {
            items.push(Item { now: Some(unit), ..value_item(code, self.limits, vreg, &clobbered) });
        }
        let lost = nodes_here.iter().any(|n| n.value != NONE && self.unit_of[n.value as usize] == NO_UNIT);
        let settled = !lost && self.settle_items(&mut items);
        let places: Option<Vec<Unit>> = items.iter().map(|item| item.unit).collect();
        let Some(places) = places.filter(|_| settled) else {
            let mut values: Vec<u32> = nodes_here.iter().map(|node| node.value).collect();
            values.extend(through.iter().map(|entry| entry.0));
            return Err(self.stuck(step, values));
        };
        self.op_units.clear();
        self.op_units.resize(ops.len(), Unit(NO_UNIT));
        for (node, &unit) in nodes_here.iter().zip(&places) {
            for &op in &node.ops {
                self.op_units[op as usize] = unit;
            }
        }
        let mut bases: SmallVec<[(Group, u16); 4]> = SmallVec::new();
        for (index, op) in ops.iter().enumerate() {
            if let (Some(part), true) = (op.vector, self.op_units[index].0 != NO_UNIT) {
                bases.push((part.group, self.op_units[index].0 - part.index as u16));
            }
        }
        if !self.place_undefined(ops, &bases) {
            return Err(self.stuck(step, Vec::new()));
        }
        self.move_values(info, &nodes_here, &through, &places);
        self.clear();
        for (&(vreg, _), &unit) in through.iter().zip(&places[nodes_here.len()..]) {
            self.place(vreg, unit);
        }
        for (node, &unit) in nodes_here.iter().zip(&places).filter(|(node, _)| node.main) {
            self.place(node.value, unit);
        }
        for (index, op) in ops.iter().enumerate() {
            if op.kind != OperandKind::Use && kills[index] == LIVES {
                self.place(op.vreg.0, self.op_units[index]);
            }
        }
        self.nodes = nodes_here;
        Ok(())
    }

    fn move_values(&mut self, info: &Step, nodes: &[Node], through: &[(u32, Unit)], places: &[Unit]) {
        let mut moves: Vec<Move> = Vec::new();
        let mut busy = self.occupied;
        let mut homes: Option<UnitMask> = None;
        let values = nodes
            .iter()
            .map(|node| (node.value, node.size))
            .chain(through.iter().map(|&(vreg, _)| (vreg, self.code.vregs[vreg as usize].size)));
        for ((value, size), &to) in values.zip(places) {
            if value == NONE {
                continue;
            }
            let from = self.unit_of[value as usize];
            for k in 0..size as u16 {
                busy.insert(Unit(to.0 + k));
                moves.push(Move {
                    from: Unit(from + k),
                    to: Unit(to.0 + k),
                    home: self.code.vregs[value as usize].home,
                });
            }
            if from != to.0 {
                let home = self.home_mask(value);
                homes = Some(homes.map_or(home, |mask| mask.and(&home)));
            }
        }
        let spare = homes.unwrap_or(UnitMask::EMPTY).minus(&busy);
        self.parallel(&moves, &spare, info.inst);
    }

    fn parallel(&mut self, moves: &[Move], spare: &UnitMask, inst: u32) {
        let (edits, limits) = (&mut self.edits, self.limits);
        let sets_of = |unit| limits.sets.iter().filter(|set| set.contains(unit)).count() as u32;
        let keeps =
            |set: SetId, unit| !limits.narrow.contains(unit) || limits.sets[set.0 as usize].contains(unit);
        parallel(moves, spare, self.costs, sets_of, keeps, |edit| edits.push((inst, edit)));
    }
}
