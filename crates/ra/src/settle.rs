//! Gives every value of one point a place at once, moving as little as possible.
//!
//! Singles are a bipartite matching (augmenting paths, Kuhn 1955), started from where the values already are. Vector
//! operands and wide values are placed before, the widest first, each in the window that disturbs least; with aligned
//! windows of power-of-two size that order never has to be undone unless fixed units are in the way, and for those
//! there is a bounded backtracking search.
//!
//! An instruction has two phases, reading and writing; most items take their place in both, uses that die only in the
//! first, defs only in the second. An augmenting path may then have to move two items to free one unit, which makes the
//! matching a heuristic there; [`crate::nodes`] pairs defs with dying uses so that it hardly ever matters. Where it does, there is
//! a bounded search.

use crate::code::{Code, Step};
use crate::demand::{BOTH, EARLY, IDLE, Limits, Node, READING, WRITING};
use crate::graph::NONE;
use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::Unit;

/// Most window arrangements that are tried for one point.
const MAX_ARRANGEMENTS: u32 = 200;

/// Most steps of a search for the single units of one point. It bounds the time of a refusal.
const MAX_TRIED: u32 = 1000;

/// Something that needs a unit or an aligned run of units.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// For the choice among free units; may be [`NONE`].
    pub vreg: u32,
    pub mask: UnitMask,
    pub size: u8,
    /// Where it would best stay.
    pub now: Option<Unit>,
    /// Vector operand: number, position and alignment of the window.
    pub window: Option<(u32, u8, u8)>,
    pub phases: u8,
    pub unit: Option<Unit>,
}

/// The item of a node; `now` is filled in by the caller.
pub(crate) fn node_item(code: &Code, limits: &Limits, step: &Step, node: &Node) -> Item {
    let ops = &code.ops[step.ops()];
    let mut mask = match node.fixed {
        Some(unit) => UnitMask::run(unit, node.size as u32),
        None => limits.sets[node.set.0 as usize],
    };
    for &op in &node.ops {
        mask = mask.and(&limits.sets[ops[op as usize].set.0 as usize]);
    }
    if node.main {
        let home = code.vregs[node.value as usize].home;
        mask = mask.and(&limits.sets[home.0 as usize]);
    }
    if node.spared {
        mask = mask.minus(&limits.clobber_mask(step.clobbers));
    }
    let vreg = if node.def != NONE {
        ops[node.def as usize].vreg.0
    } else if node.main {
        node.value
    } else {
        NONE
    };
    Item {
        vreg,
        mask,
        size: node.size,
        now: None,
        window: node.vector.map(|part| (part.group.0, part.index, part.align)),
        phases: node.phases,
        unit: None,
    }
}

/// The item of a value that merely lives here; `lost` is what is destroyed.
pub(crate) fn value_item(code: &Code, limits: &Limits, vreg: u32, lost: &UnitMask) -> Item {
    let info = &code.vregs[vreg as usize];
    Item {
        vreg,
        mask: limits.sets[info.home.0 as usize].minus(lost),
        size: info.size,
        now: None,
        window: None,
        phases: BOTH,
        unit: None,
    }
}

/// Units taken in each phase. (Uses that read nothing, in `idle`, are never taken back, so they may share.)
#[derive(Clone, Copy)]
struct Taken {
    reading: UnitMask,
    writing: UnitMask,
    early: UnitMask,
    idle: UnitMask,
}

impl Taken {
    /// What something with these phases must keep off.
    fn in_phases(&self, phases: u8) -> UnitMask {
        let taken = match phases & BOTH {
            0 => UnitMask::EMPTY,
            READING => self.reading,
            WRITING => self.writing,
            _ => self.reading.or(&self.writing),
        };
        match phases & (EARLY | IDLE) {
            EARLY => taken.or(&self.idle),
            IDLE => taken.or(&self.early),
            _ => taken,
        }
    }

    fn parts(&mut self, phases: u8) -> impl Iterator<Item = &mut UnitMask> {
        let parts = [
            (READING, &mut self.reading),
            (WRITING, &mut self.writing),
            (EARLY, &mut self.early),
            (IDLE, &mut self.idle),
        ];
        parts.into_iter().filter(move |(phase, _)| phases & phase != 0).map(|(_, part)| part)
    }

    fn add(&mut self, phases: u8, mask: &UnitMask) {
        for part in self.parts(phases) {
            *part = part.or(mask);
        }
    }

    fn remove(&mut self, phases: u8, mask: &UnitMask) {
        for part in self.parts(phases) {
            *part = part.minus(mask);
        }
    }
}

/// Which item has a unit, by phase.
struct Owners([[u32; MAX_UNITS]; 2]);

impl Owners {
    fn set(&mut self, phases: u8, unit: Unit, owner: u32) {
        for (phase, row) in self.0.iter_mut().enumerate() {
            if phases >> phase & 1 != 0 {
                row[unit.0 as usize] = owner;
            }
        }
    }
}

/// A run of units to place: one wide item or the members of a vector operand.
struct Window {
    members: Vec<(u32, u8)>,
    phases: u8,
    size: u32,
    /// `(cost, base)`, cheapest first.
    bases: Vec<(u32, u16)>,
}

/// Fill in `unit` of every item; `false` when no arrangement was found. `pick` chooses among free units.
///
/// First with as few moves as possible; when that leads nowhere, once more with windows kept out of units that other
/// items are confined to; and where it has to be `exact`, with a search instead of the matching.
pub(crate) fn settle(
    items: &mut [Item],
    units: usize,
    exact: bool,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let mut tried = 0;
    settle_with(items, units, false, &mut tried, pick)
        || settle_with(items, units, true, &mut tried, pick)
        || exact && {
            tried = MAX_TRIED;
            settle_with(items, units, true, &mut tried, pick)
        }
}

fn settle_with(
    items: &mut [Item],
    units: usize,
    considerate: bool,
    tried: &mut u32,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    for item in items.iter_mut() {
        item.unit = None;
    }
    // Which item stands in a unit now, for the cost of taking it.
    let mut stands = [NONE; MAX_UNITS];
    for (index, item) in items.iter().enumerate() {
        if let Some(now) = item.now {
            for k in 0..item.size as usize {
                if let Some(entry) = stands.get_mut(now.0 as usize + k) {
                    *entry = index as u32;
                }
            }
        }
    }
    let mut windows = collect_windows(items, units, considerate, &stands);
    if windows.iter().any(|window| window.bases.is_empty()) {
        return false;
    }
    windows.sort_by(|a, b| {
        let size = |w: &Window| w.size.next_power_of_two();
        // What has only one place first, whatever its size.
        let forced = |w: &Window| w.bases.len() == 1;
        forced(b)
            .cmp(&forced(a))
            .then(size(b).cmp(&size(a)))
            .then(a.bases.len().cmp(&b.bases.len()))
            .then(a.bases[0].0.cmp(&b.bases[0].0))
    });
    // Items with only one place come first, whatever else wants it.
    let nothing = UnitMask::EMPTY;
    let mut taken = Taken { reading: nothing, writing: nothing, early: nothing, idle: nothing };
    for item in items.iter_mut().filter(|item| item.size == 1 && item.window.is_none()) {
        if item.mask.count() == 1 {
            let unit = item.mask.first();
            if unit.is_none_or(|unit| taken.in_phases(item.phases).contains(unit)) {
                return false;
            }
            item.unit = unit;
            taken.add(item.phases, &item.mask);
        }
    }
    let mut budget = MAX_ARRANGEMENTS;
    arrange(items, &windows, 0, taken, (&mut budget, tried), pick)
}

fn collect_windows(
    items: &[Item],
    units: usize,
    considerate: bool,
    stands: &[u32; MAX_UNITS],
) -> Vec<Window> {
    let mut masks: Vec<UnitMask> = Vec::new();
    if considerate {
        for item in items.iter().filter(|item| item.phases & BOTH != 0) {
            if !masks.contains(&item.mask) {
                masks.push(item.mask);
            }
        }
    }

    let mut windows: Vec<Window> = Vec::new();
    let mut groups: Vec<(u32, usize)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Some((group, position, _)) = item.window {
            match groups.iter().find(|entry| entry.0 == group) {
                Some(&(_, at)) => {
                    windows[at].members.push((index as u32, position));
                    windows[at].phases |= item.phases;
                    windows[at].size = windows[at].size.max(position as u32 + 1);
                }
                None => {
                    groups.push((group, windows.len()));
                    windows.push(Window {
                        members: vec![(index as u32, position)],
                        phases: item.phases,
                        size: position as u32 + 1,
                        bases: vec![],
                    });
                }
            }
        } else if item.size > 1 {
            windows.push(Window {
                members: vec![(index as u32, 0)],
                phases: item.phases,
                size: item.size as u32,
                bases: vec![],
            });
        }
    }
    for window in &mut windows {
        let (first, _) = window.members[0];
        let align = match items[first as usize].window {
            Some((_, _, align)) => (align as u32).max(1),
            None => window.size.next_power_of_two(),
        };
        let natural = window.size.next_power_of_two();
        let mut base = 0u32;
        while base + window.size <= units as u32 {
            let fits = window.members.iter().all(|&(member, position)| {
                let item = &items[member as usize];
                (0..item.size as u32).all(|k| item.mask.contains(Unit((base + position as u32 + k) as u16)))
            });
            if fits {
                let mut cost = 0;
                for &(member, position) in &window.members {
                    let item = &items[member as usize];
                    let at = Unit((base + position as u32) as u16);
                    if item.now.is_some() && item.now != Some(at) {
                        cost += 2 * item.size as u32;
                    }
                    for k in 0..item.size as usize {
                        let other = stands[at.0 as usize + k];
                        // Taking the place of something that dies costs nothing when it is only written.
                        let meets = other != NONE
                            && other != member
                            && items[other as usize].phases & item.phases & BOTH != 0;
                        cost += 2 * meets as u32;
                    }
                }
                let lead = &items[window.members[0].0 as usize].mask;
                let here = UnitMask::run(Unit(base as u16), window.size);
                for narrow in masks.iter().filter(|narrow| *narrow != lead && narrow.is_subset_of(lead)) {
                    cost += 1000 * here.intersects(narrow) as u32;
                }
                // A window across its natural alignment splits two others.
                if !base.is_multiple_of(natural) {
                    cost += 1;
                }
                window.bases.push((cost, base as u16));
            }
            base += align;
        }
        window.bases.sort_unstable();
    }
    windows
}

fn arrange(
    items: &mut [Item],
    windows: &[Window],
    at: usize,
    taken: Taken,
    (budget, tried): (&mut u32, &mut u32),
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let Some(window) = windows.get(at) else {
        *budget = budget.saturating_sub(1);
        if *tried > 0 {
            let singles = (0..items.len() as u32).filter(|&index| {
                let item = &items[index as usize];
                item.size == 1 && item.window.is_none() && item.mask.count() != 1
            });
            return search_singles(items, &mut singles.collect(), taken, tried);
        }
        return match_singles(items, taken, pick);
    };
    for &(_, base) in &window.bases {
        if *budget == 0 {
            return false;
        }
        let place = |&(member, position): &(u32, u8)| {
            let size = items[member as usize].size as u32;
            (items[member as usize].phases, UnitMask::run(Unit(base + position as u16), size))
        };
        if window.members.iter().map(place).any(|(phases, mask)| mask.intersects(&taken.in_phases(phases))) {
            continue;
        }
        let mut after = taken;
        for (phases, mask) in window.members.iter().map(place) {
            after.add(phases, &mask);
        }
        for &(member, position) in &window.members {
            items[member as usize].unit = Some(Unit(base + position as u16));
        }
        if arrange(items, windows, at + 1, after, (&mut *budget, &mut *tried), pick) {
            return true;
        }
    }
    *budget = budget.saturating_sub(1);
    false
}

/// Both phases at once: what has the fewest units first, each of them in turn (one of those that are alike to everything that
/// waits). `tried` says how many more steps it may take.
fn search_singles(items: &mut [Item], waiting: &mut Vec<u32>, taken: Taken, tried: &mut u32) -> bool {
    let free = |item: &Item| item.mask.minus(&taken.in_phases(item.phases));
    let Some(at) = (0..waiting.len()).min_by_key(|&at| free(&items[waiting[at] as usize]).count()) else {
        return true;
    };
    let index = waiting.swap_remove(at);
    let phases = items[index as usize].phases;
    let units = free(&items[index as usize]);
    let mut alike: Vec<Vec<u32>> = Vec::new();
    for unit in units.iter() {
        if *tried <= 1 {
            break;
        }
        let others = waiting.iter().copied().filter(|&other| free(&items[other as usize]).contains(unit));
        let mut others: Vec<u32> = others.collect();
        others.sort_unstable();
        if alike.contains(&others) {
            continue;
        }
        *tried -= 1;
        items[index as usize].unit = Some(unit);
        let mut after = taken;
        after.add(phases, &UnitMask::single(unit));
        if search_singles(items, waiting, after, tried) {
            return true;
        }
        alike.push(others);
    }
    waiting.push(index);
    false
}

fn match_singles(items: &mut [Item], mut taken: Taken, pick: &mut dyn FnMut(u32, &UnitMask) -> Unit) -> bool {
    let blocked = taken;
    let mut owners = Owners([[NONE; MAX_UNITS]; 2]);
    let mut rest: Vec<u32> = Vec::new();
    for (index, item) in items.iter_mut().enumerate() {
        if item.size != 1 || item.window.is_some() || item.mask.count() == 1 {
            continue;
        }
        match item.now {
            Some(now) if item.mask.contains(now) && !taken.in_phases(item.phases).contains(now) => {
                item.unit = Some(now);
                taken.add(item.phases, &UnitMask::single(now));
                owners.set(item.phases, now, index as u32);
            }
            _ => {
                item.unit = None;
                rest.push(index as u32);
            }
        }
    }
    // What needs a unit in both phases has the least choice.
    rest.sort_by_key(|&index| {
        let item = &items[index as usize];
        (item.phases & BOTH != BOTH, item.mask.count())
    });
    for index in rest {
        let mut seen = UnitMask::EMPTY;
        if !augment(items, index, &blocked, &mut owners, &mut taken, &mut seen, pick) {
            return false;
        }
    }
    true
}

/// Find a unit for item `index`, moving others along an augmenting path if it must be.
fn augment(
    items: &mut [Item],
    index: u32,
    blocked: &Taken,
    owners: &mut Owners,
    taken: &mut Taken,
    seen: &mut UnitMask,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let phases = items[index as usize].phases;
    let open = items[index as usize].mask.minus(&blocked.in_phases(phases));
    let free = open.minus(&taken.in_phases(phases)).minus(seen);
    if !free.is_empty() {
        let unit = pick(items[index as usize].vreg, &free);
        move_to(items, index, unit, owners, taken);
        return true;
    }
    for unit in open.iter() {
        if seen.contains(unit) {
            continue;
        }
        seen.insert(unit);
        let mut others = [NONE; 2];
        for (phase, other) in others.iter_mut().enumerate() {
            if phases >> phase & 1 != 0 {
                *other = owners.0[phase][unit.0 as usize];
            }
        }
        if others[0] == others[1] {
            others[1] = NONE;
        }
        let cleared = others
            .into_iter()
            .filter(|&other| other != NONE)
            .all(|other| augment(items, other, blocked, owners, taken, seen, pick));
        if cleared {
            move_to(items, index, unit, owners, taken);
            return true;
        }
    }
    false
}

fn move_to(items: &mut [Item], index: u32, unit: Unit, owners: &mut Owners, taken: &mut Taken) {
    let item = &mut items[index as usize];
    if let Some(old) = item.unit.replace(unit) {
        owners.set(item.phases, old, NONE);
        taken.remove(item.phases, &UnitMask::single(old));
    }
    owners.set(item.phases, unit, index);
    taken.add(item.phases, &UnitMask::single(unit));
}
