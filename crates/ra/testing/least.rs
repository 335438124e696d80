//! What a problem needs at least, worked out without the allocator: may it be refused at a register limit?
//!
//! A refusal is justified when the values that one instruction (or one region without memory edits) needs at the same
//! time cannot all be placed in the units that the limit leaves, whatever is in memory. Places are searched
//! exhaustively, both phases of the instruction at once: operands of one value may use copies, everything that need not be
//! in a register is not. A value of a set that is backed by another set counts in that other set as well, since nothing
//! can bring it through memory edits but its copy there.

use std::collections::{BTreeMap, BTreeSet};

use kempe_ra::*;

/// Search steps for one instruction; beyond that the answer is unknown.
const BUDGET: u32 = 400_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every instruction can be placed: a refusal is a mistake.
    Fits,
    /// This instruction cannot.
    Exceeds(u32),
    /// The search was cut short at this instruction.
    Unknown(u32),
}

/// Units of every set that the limit leaves when memory edits are used, in the words of [`Options::max_registers`].
pub fn limited_sets(file: &RegisterFile, program: &Program, limit: Option<u32>) -> Vec<BTreeSet<Unit>> {
    let wiped: BTreeSet<Unit> =
        file.clobbers.get(file.memory_edit_clobbers.0 as usize).into_iter().flatten().copied().collect();
    let span = |op: &Operand| {
        let size = program.vregs[op.vreg.0 as usize].size as u16;
        op.fixed.into_iter().flat_map(move |unit| (unit.0..unit.0 + size).map(Unit))
    };
    let fixed: BTreeSet<Unit> = program.operands.iter().flat_map(span).collect();
    let mut kept: Vec<BTreeSet<Unit>> = vec![BTreeSet::new(); file.sets.len()];
    let whole = |set: usize| file.sets[set].units.iter().copied().collect::<BTreeSet<Unit>>();
    let mut sizes: Vec<(usize, usize)> = (0..file.sets.len()).map(|set| (whole(set).len(), set)).collect();
    sizes.sort_unstable();
    let limited = |set: usize| file.sets[set].backing == Backing::Memory;
    for k in 0..sizes.len() {
        let set = sizes[k].1;
        let units = file.sets[set].units.iter().copied().filter(|unit| !file.edit_reserved.contains(unit));
        let units: Vec<Unit> = units.collect();
        let (Some(limit), true) = (limit, limited(set)) else {
            kept[set] = units.into_iter().collect();
            continue;
        };
        let (free, counted): (Vec<Unit>, Vec<Unit>) = units.into_iter().partition(|u| wiped.contains(u));
        let within = |unit: &Unit| {
            sizes[..k].iter().any(|&(_, inner)| {
                limited(inner) && whole(inner).is_subset(&whole(set)) && kept[inner].contains(unit)
            })
        };
        let mut wanted = counted;
        wanted.sort_by_key(|unit| !fixed.contains(unit) && !within(unit));
        let bound = wanted.iter().filter(|unit| fixed.contains(unit) || within(unit)).count();
        let most = bound.max(limit as usize);
        kept[set] = wanted.into_iter().take(most).chain(free).collect();
    }
    kept
}

/// Values live after every instruction, by plain sets.
fn live_after(program: &Program) -> Vec<BTreeSet<u32>> {
    let mut live_in: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); program.blocks.len()];
    let mut after: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); program.insts.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..program.blocks.len()).rev() {
            let block = &program.blocks[index];
            let mut live: BTreeSet<u32> = BTreeSet::new();
            for edge in &block.succs {
                let params = &program.blocks[edge.to.0 as usize].params;
                for vreg in &live_in[edge.to.0 as usize] {
                    if !params.contains(&VReg(*vreg)) {
                        live.insert(*vreg);
                    }
                }
                for (arg, param) in edge.args.iter().zip(params) {
                    if live_in[edge.to.0 as usize].contains(&param.0) {
                        live.insert(arg.0);
                    }
                }
            }
            for inst in block.insts.clone().rev() {
                after[inst as usize] = live.clone();
                let info = &program.insts[inst as usize];
                let ops = &program.operands[info.operands.start as usize..info.operands.end as usize];
                for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                    live.remove(&op.vreg.0);
                }
                for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
                    if !program.vregs[op.vreg.0 as usize].undefined {
                        live.insert(op.vreg.0);
                    }
                }
            }
            if live != live_in[index] {
                live_in[index] = live;
                changed = true;
            }
        }
    }
    after
}

pub fn verdict(file: &RegisterFile, program: &Program, limit: Option<u32>) -> Verdict {
    let sets = limited_sets(file, program, limit);
    let after = live_after(program);
    let mut unknown = None;
    for block in &program.blocks {
        let mut start = block.insts.start;
        while start < block.insts.end {
            let mut end = start + 1;
            while end < block.insts.end && program.insts[end as usize].no_memory_edit_before {
                end += 1;
            }
            for (what, at) in [(Edge::Before, start), (Edge::After, end - 1)] {
                if between(file, program, &sets, &after, start..end, what) == Some(false) {
                    return Verdict::Exceeds(at);
                }
            }
            for inst in start..end {
                match placeable(file, program, &sets, &after, start..end, inst) {
                    Some(true) => {}
                    Some(false) => return Verdict::Exceeds(inst),
                    None => unknown = Some(inst),
                }
            }
            start = end;
        }
    }
    unknown.map_or(Verdict::Fits, Verdict::Unknown)
}

#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Before,
    After,
}

/// Where memory edits may stand, around a region: can what it reads stand side by side where an edit leaves it alone, and
/// likewise what it leaves?
fn between(
    file: &RegisterFile,
    program: &Program,
    sets: &[BTreeSet<Unit>],
    after: &[BTreeSet<u32>],
    region: std::ops::Range<u32>,
    what: Edge,
) -> Option<bool> {
    let wiped: BTreeSet<Unit> =
        file.clobbers.get(file.memory_edit_clobbers.0 as usize).into_iter().flatten().copied().collect();
    let mut values: BTreeSet<u32> = BTreeSet::new();
    let mut defined: BTreeSet<u32> = BTreeSet::new();
    for inst in region.clone() {
        for op in ops_of(program, inst) {
            let info = &program.vregs[op.vreg.0 as usize];
            if op.kind != OperandKind::Use {
                defined.insert(op.vreg.0);
            } else if !info.undefined && info.recipe.is_none() && !defined.contains(&op.vreg.0) {
                values.insert(op.vreg.0);
            }
        }
    }
    if what == Edge::After {
        let left = &after[region.end as usize - 1];
        values = defined.intersection(left).copied().collect();
    }
    let needs: Vec<Need> = values
        .into_iter()
        .map(|vreg| {
            let info = &program.vregs[vreg as usize];
            let home = backing_of(file, info.home).unwrap_or(info.home);
            let room: BTreeSet<Unit> = sets[home.0 as usize].difference(&wiped).copied().collect();
            Need {
                value: vreg,
                reads: true,
                writes: true,
                bases: bases(&room, info.size as u16),
                size: info.size as u16,
                same_as: None,
                beside: None,
                group: None,
                early: false,
                idle: false,
            }
        })
        .collect();
    search(&needs)
}

/// Something to place: a value, where it may stand, and when.
#[derive(Clone, Debug)]
struct Need {
    /// Needs of one value may share a place.
    value: u32,
    reads: bool,
    writes: bool,
    bases: Vec<u16>,
    size: u16,
    /// Must equal the place of an earlier need.
    same_as: Option<usize>,
    /// Vector: must stand at this distance from an earlier need.
    beside: Option<(usize, i32)>,
    /// Its vector operand. Two vectors never share places, even where they hold the same values.
    group: Option<Group>,
    early: bool,
    /// The place is only named.
    idle: bool,
}

fn ops_of(program: &Program, inst: u32) -> &[Operand] {
    let info = &program.insts[inst as usize];
    &program.operands[info.operands.start as usize..info.operands.end as usize]
}

fn backing_of(file: &RegisterFile, set: SetId) -> Option<SetId> {
    match file.sets[set.0 as usize].backing {
        Backing::Set(behind) => Some(behind),
        _ => None,
    }
}

fn bases(set: &BTreeSet<Unit>, size: u16) -> Vec<u16> {
    let align = size.next_power_of_two();
    set.iter()
        .map(|unit| unit.0)
        .filter(|base| base % align == 0 && (0..size).all(|k| set.contains(&Unit(base + k))))
        .collect()
}

/// Can everything that `inst` needs at once be placed?
fn placeable(
    file: &RegisterFile,
    program: &Program,
    sets: &[BTreeSet<Unit>],
    after: &[BTreeSet<u32>],
    region: std::ops::Range<u32>,
    inst: u32,
) -> Option<bool> {
    let ops = ops_of(program, inst);
    let wiped: BTreeSet<Unit> =
        file.clobbers.get(file.memory_edit_clobbers.0 as usize).into_iter().flatten().copied().collect();
    let lost: BTreeSet<Unit> = file
        .clobbers
        .get(program.insts[inst as usize].clobbers.0 as usize)
        .into_iter()
        .flatten()
        .copied()
        .collect();
    let mut needs: Vec<Need> = Vec::new();
    // Uses and defs, each with its own place.
    let mut need_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut order: Vec<usize> = (0..ops.len()).filter(|&k| ops[k].kind == OperandKind::Use).collect();
    order.extend((0..ops.len()).filter(|&k| ops[k].kind != OperandKind::Use));
    for &k in &order {
        let op = &ops[k];
        let info = &program.vregs[op.vreg.0 as usize];
        let is_use = op.kind == OperandKind::Use;
        let early_beside = || ops.iter().any(|o| o.kind == OperandKind::EarlyDef && o.tied != Some(k as u8));
        if info.undefined
            && op.vector.is_none()
            && !ops.iter().any(|o| o.tied == Some(k as u8))
            && !early_beside()
        {
            continue;
        }
        let mut places = bases(&sets[op.set.0 as usize], info.size as u16);
        if let Some(fixed) = op.fixed {
            places.retain(|&base| base == fixed.0);
        }
        if let Some(part) = op.vector {
            places.retain(|&base| {
                base >= part.index as u16 && (base - part.index as u16).is_multiple_of(part.align as u16)
            });
        }
        let beside = op.vector.and_then(|part| {
            order.iter().take_while(|&&other| other != k).find_map(|&other| {
                let v = ops[other].vector?;
                let at = *need_of.get(&other)?;
                (v.group == part.group).then_some((at, part.index as i32 - v.index as i32))
            })
        });
        let early = op.kind == OperandKind::EarlyDef;
        let need = Need {
            // An undefined use holds nothing; it only has to exist.
            value: op.vreg.0,
            reads: (is_use && !info.undefined) || early,
            writes: !is_use,
            bases: places,
            size: info.size as u16,
            same_as: op.tied.and_then(|tied| need_of.get(&(tied as usize)).copied()),
            beside,
            group: op.vector.map(|part| part.group),
            early,
            idle: is_use && info.undefined,
        };
        need_of.insert(k, needs.len());
        needs.push(need);
        // The shadow of a value that is brought in or put out around the instruction.
        if let (Some(behind), false) = (backing_of(file, info.home), info.undefined || info.recipe.is_some())
        {
            let room: BTreeSet<Unit> = sets[behind.0 as usize].difference(&wiped).copied().collect();
            needs.push(Need {
                value: op.vreg.0 + program.vregs.len() as u32,
                reads: is_use,
                writes: !is_use,
                bases: bases(&room, info.size as u16),
                size: info.size as u16,
                same_as: None,
                beside: None,
                group: None,
                early: false,
                idle: false,
            });
        }
    }
    // What the region needs later or must keep.
    let mut keep: BTreeSet<u32> = BTreeSet::new();
    let defined_in = |range: std::ops::Range<u32>, vreg: u32| {
        range
            .clone()
            .any(|i| ops_of(program, i).iter().any(|o| o.kind != OperandKind::Use && o.vreg.0 == vreg))
    };
    for later in inst + 1..region.end {
        for op in ops_of(program, later).iter().filter(|op| op.kind == OperandKind::Use) {
            let info = &program.vregs[op.vreg.0 as usize];
            if !info.undefined && info.recipe.is_none() && !defined_in(inst..region.end, op.vreg.0) {
                keep.insert(op.vreg.0);
            }
        }
    }
    for &vreg in &after[inst as usize] {
        if program.vregs[vreg as usize].recipe.is_none() && defined_in(region.start..inst, vreg) {
            keep.insert(vreg);
        }
    }
    for vreg in keep {
        let info = &program.vregs[vreg as usize];
        let home = backing_of(file, info.home).unwrap_or(info.home);
        let room: BTreeSet<Unit> = sets[home.0 as usize]
            .iter()
            .copied()
            .filter(|u| !wiped.contains(u) && !lost.contains(u))
            .collect();
        needs.push(Need {
            value: if home == info.home { vreg } else { vreg + program.vregs.len() as u32 },
            reads: true,
            writes: true,
            bases: bases(&room, info.size as u16),
            size: info.size as u16,
            same_as: None,
            beside: None,
            group: None,
            early: false,
            idle: false,
        });
    }
    search(&needs)
}

fn search(needs: &[Need]) -> Option<bool> {
    // Fewest choices first, except that what depends on another need comes after it.
    let mut order: Vec<usize> = Vec::new();
    let ready = |k: usize, order: &[usize]| {
        needs[k].same_as.is_none_or(|other| order.contains(&other))
            && needs[k].beside.is_none_or(|(other, _)| order.contains(&other))
    };
    while order.len() < needs.len() {
        let next = (0..needs.len()).filter(|k| !order.contains(k) && ready(*k, &order)).min_by_key(|&k| {
            (
                needs[k].beside.is_none() && needs[k].same_as.is_none(),
                needs[k].bases.len(),
                std::cmp::Reverse(needs[k].size),
                k,
            )
        });
        match next {
            Some(next) => order.push(next),
            None => return None,
        }
    }
    let mut places: Vec<Option<u16>> = vec![None; needs.len()];
    let mut budget = BUDGET;
    let found = place(needs, &order, 0, &mut places, &mut budget);
    if !found && budget == 0 { None } else { Some(found) }
}

/// Units that look alike to everything not placed yet are tried once.
fn signature(
    needs: &[Need],
    order: &[usize],
    at: usize,
    places: &[Option<u16>],
    base: u16,
    size: u16,
) -> Vec<u32> {
    let mut out = Vec::new();
    for &k in &order[at + 1..] {
        let need = &needs[k];
        // Which of the bases of this need overlap the candidate, relative to its start.
        for &other in need.bases.iter().filter(|&&other| other < base + size && base < other + need.size) {
            out.push(k as u32 * 1024 + (other as i32 - base as i32 + 512) as u32);
        }
    }
    // What stands there already (needs of other phases and of the same value).
    for (k, place) in places.iter().enumerate() {
        if let Some(other) = place
            && *other < base + size
            && base < *other + needs[k].size
        {
            out.push(1 << 20 | (k as u32 * 1024 + (*other as i32 - base as i32 + 512) as u32));
        }
    }
    out
}

fn place(
    needs: &[Need],
    order: &[usize],
    at: usize,
    places: &mut Vec<Option<u16>>,
    budget: &mut u32,
) -> bool {
    let Some(&k) = order.get(at) else { return true };
    let need = &needs[k];
    let mut tried: BTreeSet<Vec<u32>> = BTreeSet::new();
    let small = need.size == 1 && need.beside.is_none() && need.same_as.is_none();
    for &base in &need.bases {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        if need.same_as.is_some_and(|other| places[other] != Some(base)) {
            continue;
        }
        if need.beside.is_some_and(|(other, distance)| {
            places[other].map(|other| other as i32 + distance) != Some(base as i32)
        }) {
            continue;
        }
        let clash = (0..needs.len()).any(|other| {
            let Some(place) = places[other] else { return false };
            let apart = place + needs[other].size <= base || base + need.size <= place;
            let named = |early: &Need, idle: &Need| early.early && idle.idle;
            let tied = need.same_as == Some(other) || needs[other].same_as == Some(k);
            let meet = need.reads && needs[other].reads
                || need.writes && needs[other].writes
                || !tied && (named(need, &needs[other]) || named(&needs[other], need));
            // Copies of one value may be one place, read or kept; two defs never are.
            let vectors = need.group.is_some() && needs[other].group.is_some();
            let same = need.value == needs[other].value
                && place == base
                && need.size == needs[other].size
                && !vectors;
            !apart && meet && !same
        });
        if clash {
            continue;
        }
        if small && !tried.insert(signature(needs, order, at, places, base, need.size)) {
            continue;
        }
        places[k] = Some(base);
        if place(needs, order, at + 1, places, budget) {
            return true;
        }
        places[k] = None;
    }
    false
}
