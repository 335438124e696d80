//! Gives every value of one point a place at once, moving as little as possible.
//!
//! Singles are a bipartite matching (augmenting paths, Kuhn 1955), started from where the values already are. Vector
//! operands and wide values are placed before, the widest first, each in the window that disturbs least; with aligned
//! windows of power-of-two size that order never has to be undone unless fixed units are in the way, and for those
//! there is a bounded backtracking search.
//!
//! The instruction is one phase here: a def either takes over the unit of a use that dies or has a unit of its own, as
//! [`crate::demand::nodes`] decided.

use crate::graph::NONE;
use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::Unit;

/// Most window arrangements that are tried for one point.
const MAX_ARRANGEMENTS: u32 = 200;

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
    pub unit: Option<Unit>,
}

/// A run of units to place: one wide item or the members of a vector operand.
struct Window {
    members: Vec<(u32, u8)>,
    size: u32,
    /// `(cost, base)`, cheapest first.
    bases: Vec<(u32, u16)>,
}

/// Fill in `unit` of every item; `false` when no arrangement was found. `pick` chooses among free units.
pub(crate) fn settle(items: &mut [Item], units: usize, pick: &mut dyn FnMut(u32, &UnitMask) -> Unit) -> bool {
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
    let mut windows = collect_windows(items, units, &stands);
    if windows.iter().any(|window| window.bases.is_empty()) {
        return false;
    }
    windows.sort_by(|a, b| {
        let size = |w: &Window| w.size.next_power_of_two();
        size(b).cmp(&size(a)).then(a.bases.len().cmp(&b.bases.len())).then(a.bases[0].0.cmp(&b.bases[0].0))
    });
    // Items with only one place come first, whatever else wants it.
    let mut taken = UnitMask::EMPTY;
    for item in items.iter_mut().filter(|item| item.size == 1 && item.window.is_none()) {
        if item.mask.count() == 1 {
            let unit = item.mask.first();
            if unit.is_none_or(|unit| taken.contains(unit)) {
                return false;
            }
            item.unit = unit;
            taken = taken.or(&item.mask);
        }
    }
    let mut budget = MAX_ARRANGEMENTS;
    arrange(items, &windows, 0, taken, &mut budget, pick)
}

fn collect_windows(items: &[Item], units: usize, stands: &[u32; MAX_UNITS]) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut groups: Vec<(u32, usize)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Some((group, position, _)) = item.window {
            match groups.iter().find(|entry| entry.0 == group) {
                Some(&(_, at)) => {
                    windows[at].members.push((index as u32, position));
                    windows[at].size = windows[at].size.max(position as u32 + 1);
                }
                None => {
                    groups.push((group, windows.len()));
                    windows.push(Window {
                        members: vec![(index as u32, position)],
                        size: position as u32 + 1,
                        bases: vec![],
                    });
                }
            }
        } else if item.size > 1 {
            windows.push(Window { members: vec![(index as u32, 0)], size: item.size as u32, bases: vec![] });
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
                        if other != NONE && other != member {
                            cost += 2;
                        }
                    }
                }
                // A window across its natural alignment splits two others.
                if base % natural != 0 {
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
    taken: UnitMask,
    budget: &mut u32,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let Some(window) = windows.get(at) else {
        *budget = budget.saturating_sub(1);
        return match_singles(items, taken, pick);
    };
    for &(_, base) in &window.bases {
        if *budget == 0 {
            return false;
        }
        let mut mine = UnitMask::EMPTY;
        for &(member, position) in &window.members {
            let size = items[member as usize].size as u32;
            mine = mine.or(&UnitMask::run(Unit(base + position as u16), size));
        }
        if mine.intersects(&taken) {
            continue;
        }
        for &(member, position) in &window.members {
            items[member as usize].unit = Some(Unit(base + position as u16));
        }
        if arrange(items, windows, at + 1, taken.or(&mine), budget, pick) {
            return true;
        }
    }
    *budget = budget.saturating_sub(1);
    false
}

fn match_singles(
    items: &mut [Item],
    mut taken: UnitMask,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let blocked = taken;
    let mut owner = [NONE; MAX_UNITS];
    let mut rest: Vec<u32> = Vec::new();
    for index in 0..items.len() {
        let item = &mut items[index];
        if item.size != 1 || item.window.is_some() || item.mask.count() == 1 {
            continue;
        }
        match item.now {
            Some(now) if item.mask.contains(now) && !taken.contains(now) => {
                item.unit = Some(now);
                taken.insert(now);
                owner[now.0 as usize] = index as u32;
            }
            _ => {
                item.unit = None;
                rest.push(index as u32);
            }
        }
    }
    rest.sort_by_key(|&index| items[index as usize].mask.count());
    for index in rest {
        let mut seen = blocked;
        if !augment(items, index, &mut owner, &mut taken, &mut seen, pick) {
            return false;
        }
    }
    true
}

/// Find a unit for item `index`, moving others along an augmenting path if it must be.
fn augment(
    items: &mut [Item],
    index: u32,
    owner: &mut [u32; MAX_UNITS],
    taken: &mut UnitMask,
    seen: &mut UnitMask,
    pick: &mut dyn FnMut(u32, &UnitMask) -> Unit,
) -> bool {
    let free = items[index as usize].mask.minus(taken);
    if !free.is_empty() {
        let unit = pick(items[index as usize].vreg, &free);
        items[index as usize].unit = Some(unit);
        owner[unit.0 as usize] = index;
        taken.insert(unit);
        return true;
    }
    let tries = items[index as usize].mask;
    for unit in tries.iter() {
        if seen.contains(unit) {
            continue;
        }
        seen.insert(unit);
        let other = owner[unit.0 as usize];
        if other != NONE && augment(items, other, owner, taken, seen, pick) {
            items[index as usize].unit = Some(unit);
            owner[unit.0 as usize] = index;
            return true;
        }
    }
    false
}
