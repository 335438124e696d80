//! Classes of nodes and what they take from each other. A class is a mask of units and a size; `p` is how many places
//! it has, `q` how many of them one neighbour of another class can block at most (Runeson & Nyström, "Retargetable
//! graph-coloring register allocation for irregular architectures", 2003; Smith, Ramsey & Holloway, "A generalized
//! algorithm for graph-coloring register allocation", 2004). A node always finds a place when the sum of `q` over its
//! neighbours is less than `p`. Both numbers come from the masks as they are: sets that overlap, units that are lost
//! or reserved, aligned windows of wide values.

use rustc_hash::FxHashMap;

use crate::masks::UnitMask;
use crate::problem::Unit;

const UNKNOWN: u32 = u32::MAX;

pub(crate) type ClassId = u32;

#[derive(Default)]
pub(crate) struct Classes {
    known: FxHashMap<(UnitMask, u8), ClassId>,
    masks: Vec<(UnitMask, u8)>,
    /// First units of all places.
    bases: Vec<UnitMask>,
    p: Vec<u32>,
    /// By class, then by class of the neighbour; filled in when asked for.
    q: Vec<Vec<u32>>,
}

/// First units in `mask` at which an aligned run of `size` units lies within it.
pub(crate) fn bases(mask: &UnitMask, size: u8) -> UnitMask {
    if size == 1 {
        return *mask;
    }
    let align = (size as u32).next_power_of_two();
    let mut out = UnitMask::EMPTY;
    for unit in mask.iter().filter(|unit| (unit.0 as u32).is_multiple_of(align)) {
        if (1..size as u16).all(|k| mask.contains(Unit(unit.0 + k))) {
            out.insert(unit);
        }
    }
    out
}

impl Classes {
    pub fn of(&mut self, mask: &UnitMask, size: u8) -> ClassId {
        if let Some(&class) = self.known.get(&(*mask, size)) {
            return class;
        }
        let class = self.masks.len() as ClassId;
        let places = bases(mask, size);
        self.known.insert((*mask, size), class);
        self.masks.push((*mask, size));
        self.p.push(places.count());
        self.bases.push(places);
        self.q.push(Vec::new());
        class
    }

    pub fn p(&self, class: ClassId) -> u32 {
        self.p[class as usize]
    }

    /// Most places of `class` that one node of class `other` blocks.
    pub fn q(&mut self, class: ClassId, other: ClassId) -> u32 {
        let row = &mut self.q[class as usize];
        if row.len() <= other as usize {
            row.resize(other as usize + 1, UNKNOWN);
        }
        if row[other as usize] == UNKNOWN {
            let most = self.blocked(class, other);
            self.q[class as usize][other as usize] = most;
            return most;
        }
        row[other as usize]
    }

    fn blocked(&self, class: ClassId, other: ClassId) -> u32 {
        let (mask, size) = self.masks[class as usize];
        let (theirs, width) = self.masks[other as usize];
        if size == 1 && width == 1 {
            return mask.intersects(&theirs) as u32;
        }
        let places = &self.bases[class as usize];
        let count = |base: Unit| {
            let first = base.0.saturating_sub(size as u16 - 1);
            let reach = first..base.0 + width as u16;
            reach.filter(|&at| places.contains(Unit(at))).count() as u32
        };
        self.bases[other as usize].iter().map(count).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_what_blocks_them_come_from_the_masks() {
        let mut classes = Classes::default();
        let all = UnitMask::run(Unit(0), 8);
        let single = classes.of(&all, 1);
        let pair = classes.of(&all, 2);
        let three = classes.of(&all, 3);
        let few = classes.of(&UnitMask::run(Unit(6), 4), 1);
        assert_eq!([single, pair, three, few].map(|class| classes.p(class)), [8, 4, 2, 4]);
        // A pair blocks two singles, a single one pair; three units reach over two pairs; three lie within one run of four.
        assert_eq!(classes.q(single, pair), 2);
        assert_eq!(classes.q(pair, single), 1);
        assert_eq!(classes.q(pair, three), 2);
        assert_eq!(classes.q(three, pair), 1);
        assert_eq!(classes.q(few, single), 1);
        let apart = classes.of(&UnitMask::run(Unit(20), 2), 1);
        assert_eq!(classes.q(apart, single), 0);
    }
}
