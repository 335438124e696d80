//! What an instruction demands of the register file, and whether a point fits.
//!
//! *Classes* are the sets of units that values can be confined to at some point: every set, and every set less what an
//! instruction destroys. For single-unit values that may move at every point, an assignment exists exactly when Hall's
//! condition holds: no union of classes has more values confined to it than it has units. [`Limits`] keeps the
//! unions that matter (those of classes that overlap without one containing the other) and counts against them. This is
//! the p/q idea of Smith, Ramsey & Holloway ("A generalized algorithm for graph-coloring register allocation", 2004)
//! turned from a colouring test into a pressure test.
//!
//! Wide values and vector operands are counted by *levels*, one for every size that occurs: besides the units as such, how
//! many aligned windows for that size are taken by what is at least as wide. Placing the widest first then never runs
//! out of windows. A level only counts where something of exactly its size is to be placed.
//!
//! A step has two phases, reading and writing ([`crate::nodes`] lists what it needs). Left out: an exact test of both at
//! once. Where placing fails all the same, another attempt does not count but arranges ([`Limits::exact`]).

use crate::code::*;
use crate::masks::UnitMask;
pub(crate) use crate::nodes::*;
use crate::problem::*;
use rustc_hash::FxHashMap;

/// Most unions of classes that are counted; beyond that only the first ones are, and placing may fail later.
const MAX_BOUNDS: usize = 64;

/// Most sizes that are told apart.
const MAX_LEVELS: usize = 16;

/// Bounds as bits: the low half stands for units, the high half for windows of any size.
pub(crate) type Over = u128;

/// A set of units that some values are confined to.
pub(crate) type Class = u16;

/// Where something is counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum At {
    /// Between steps, where a memory edit may stand (if there are any).
    Point,
    /// Within a step that destroys something, or between steps where no memory edit may stand.
    Through(ClobberId),
}

/// Between steps inside a region.
pub(crate) const INSIDE: At = At::Through(ClobberId(0));

pub(crate) struct Limits {
    /// Units of each set that may be used, in order of preference.
    pub order: Vec<Vec<Unit>>,
    /// The same as masks.
    pub sets: Vec<UnitMask>,
    pub clobbers: Vec<UnitMask>,
    /// Memory edits are possible: `edit_reserved` is taken out, and between instructions values stand only where
    /// a memory edit leaves them alone.
    pub memory: bool,
    pub memory_clobbers: ClobberId,
    /// Counts fitted before where placing failed: every point is arranged to see whether it fits, in all [`Ways`].
    pub exact: bool,
    /// `nested[a * sets + b]`: set `a` lies within set `b`.
    nested: Vec<bool>,
    /// Class of a set under a clobber mask: `set * clobbers + clobber`.
    class_of: Vec<Class>,
    /// Class of a set where memory edits may stand.
    point_class: Vec<Class>,
    used_clobbers: Vec<ClobberId>,
    unit_class: Vec<Class>,
    /// By class: bits of the bounds that contain it.
    in_bounds: Vec<u64>,
    /// How many bounds there are at each level.
    bases: usize,
    bounds: Vec<UnitMask>,
    /// Sizes that occur, ascending, the first 1.
    levels: Vec<u32>,
    /// By level, then bound: units in windows for that size, each with its alignment's worth.
    pub capacity: Vec<u32>,
    /// Bounds that any memory-backed or plain home counts in (for statistics).
    pub homes: Vec<SetId>,
    /// By set: where its values go under pressure.
    pub backing: Vec<Backing>,
    /// By set: no unit survives a memory edit.
    pub fragile: Vec<bool>,
    /// By set: registers are handed out round robin.
    pub rotates: Vec<bool>,
    pub preferences: Preferences,
    /// Units that keep only what belongs into their sets.
    pub narrow: UnitMask,
    /// Units of the whole register file.
    pub units: usize,
}

impl Limits {
    /// Some unit of a set that memory stands behind does not survive a memory edit.
    pub fn loses_at_edits(&self) -> bool {
        let lost = self.clobber_mask(self.memory_clobbers);
        let backed = self.sets.iter().zip(&self.backing).filter(|(_, backing)| **backing == Backing::Memory);
        backed.into_iter().any(|(set, _)| set.intersects(&lost))
    }

    pub fn new(file: &RegisterFile, program: &Program, max_registers: Option<u32>, memory: bool) -> Limits {
        let all_sets: Vec<UnitMask> = file.sets.iter().map(|set| UnitMask::of(&set.units)).collect();
        let clobbers: Vec<UnitMask> = file.clobbers.iter().map(|mask| UnitMask::of(mask)).collect();
        let wiped = clobbers.get(file.memory_edit_clobbers.0 as usize).copied().unwrap_or(UnitMask::EMPTY);
        let mut fixed = UnitMask::EMPTY;
        for operand in &program.operands {
            if let Some(unit) = operand.fixed {
                let size = program.vregs[operand.vreg.0 as usize].size as u32;
                fixed = fixed.or(&UnitMask::run(unit, size));
            }
        }
        let reserved = if memory { UnitMask::of(&file.edit_reserved) } else { UnitMask::EMPTY };
        // Small sets first: a limit leaves a set all that it left to those within it, so that they lie within it still.
        let mut order: Vec<Vec<Unit>> = vec![Vec::new(); file.sets.len()];
        let mut small_first: Vec<usize> = (0..file.sets.len()).collect();
        small_first.sort_by_key(|&set| all_sets[set].count());
        for (at, &set) in small_first.iter().enumerate() {
            let usable = file.sets[set].units.iter().copied().filter(|&unit| !reserved.contains(unit));
            let mut list: Vec<Unit> = usable.collect();
            if let (Some(most), Backing::Memory) = (max_registers, file.sets[set].backing) {
                let inner = small_first[..at].iter().filter(|&&inner| {
                    file.sets[inner].backing == Backing::Memory
                        && all_sets[inner].is_subset_of(&all_sets[set])
                });
                let inner = inner.fold(UnitMask::EMPTY, |mask, &inner| mask.or(&UnitMask::of(&order[inner])));
                let mut keep = wiped.or(&fixed).or(&inner);
                let kept = list.iter().filter(|&&unit| keep.contains(unit) && !wiped.contains(unit)).count();
                let others = list.iter().copied().filter(|&unit| !keep.contains(unit));
                let others: Vec<Unit> = others.take((most as usize).saturating_sub(kept)).collect();
                keep = keep.or(&UnitMask::of(&others));
                list.retain(|&unit| keep.contains(unit));
            }
            order[set] = list;
        }
        let sets: Vec<UnitMask> = order.iter().map(|list| UnitMask::of(list)).collect();
        let count = sets.len();
        let mut nested = vec![false; count * count];
        for a in 0..count {
            for b in 0..count {
                nested[a * count + b] = sets[a].is_subset_of(&sets[b]);
            }
        }
        let fragile = all_sets.iter().map(|set| memory && set.is_subset_of(&wiped)).collect();
        let mut limits = Limits {
            order,
            sets,
            clobbers,
            memory,
            memory_clobbers: file.memory_edit_clobbers,
            exact: false,
            nested,
            class_of: Vec::new(),
            point_class: Vec::new(),
            used_clobbers: Vec::new(),
            unit_class: vec![Class::MAX; file.units.len()],
            in_bounds: Vec::new(),
            bases: 0,
            bounds: Vec::new(),
            levels: vec![1],
            capacity: Vec::new(),
            homes: Vec::new(),
            backing: file.sets.iter().map(|set| set.backing).collect(),
            fragile,
            units: file.units.len(),
            preferences: file.preferences.clone(),
            narrow: UnitMask::of(&file.narrow),
            rotates: file.sets.iter().map(|set| set.rotate).collect(),
        };
        limits.make_classes(program, if memory { wiped } else { UnitMask::EMPTY });
        limits
    }

    fn make_classes(&mut self, program: &Program, wiped: UnitMask) {
        let count = self.clobbers.len().max(1);
        let mut used_sets = vec![false; self.sets.len()];
        let mut used_clobbers = vec![false; count];
        used_clobbers[0] = true;
        if self.memory {
            used_clobbers[self.memory_clobbers.0 as usize] = true;
        }
        for info in &program.vregs {
            used_sets[info.home.0 as usize] = true;
            if let Backing::Set(set) = self.backing[info.home.0 as usize] {
                used_sets[set.0 as usize] = true;
            }
        }
        self.homes = (0..self.sets.len()).filter(|&s| used_sets[s]).map(|s| SetId(s as u8)).collect();
        for operand in &program.operands {
            used_sets[operand.set.0 as usize] = true;
        }
        for info in &program.insts {
            used_clobbers[info.clobbers.0 as usize] = true;
        }
        let clobber_ids = (0..count).filter(|&clobber| used_clobbers[clobber]);
        self.used_clobbers = clobber_ids.map(|clobber| ClobberId(clobber as u8)).collect();
        let mut masks: Vec<UnitMask> = Vec::new();
        let mut known: FxHashMap<UnitMask, Class> = FxHashMap::default();
        let mut intern = |mask: UnitMask, masks: &mut Vec<UnitMask>| {
            *known.entry(mask).or_insert_with(|| {
                masks.push(mask);
                (masks.len() - 1) as Class
            })
        };
        self.class_of = vec![0; self.sets.len() * count];
        self.point_class = vec![0; self.sets.len()];
        for set in (0..self.sets.len()).filter(|&set| used_sets[set]) {
            for clobber in (0..count).filter(|&clobber| used_clobbers[clobber]) {
                let mask = self.sets[set];
                let mask = self.clobbers.get(clobber).map_or(mask, |clobber| mask.minus(clobber));
                self.class_of[set * count + clobber] = intern(mask, &mut masks);
            }
            let narrow = self.sets[set].minus(&wiped);
            let mask = if narrow.is_empty() { self.sets[set] } else { narrow };
            self.point_class[set] = intern(mask, &mut masks);
        }
        let mut sizes: Vec<u32> = vec![1];
        sizes.extend(program.vregs.iter().map(|info| info.size as u32));
        let vectors = program.operands.iter().filter_map(|operand| operand.vector);
        sizes.extend(vectors.map(|part| part.index as u32 + 1));
        sizes.sort_unstable();
        sizes.dedup();
        sizes.truncate(MAX_LEVELS);
        self.levels = sizes;
        // Unions of overlapping classes, until nothing new comes up.
        let mut bounds: Vec<UnitMask> = masks.iter().copied().take(MAX_BOUNDS).collect();
        let mut next = 1;
        while next < bounds.len() && bounds.len() < MAX_BOUNDS {
            for other in 0..next {
                let (a, b) = (bounds[next], bounds[other]);
                if a.intersects(&b) && !a.is_subset_of(&b) && !b.is_subset_of(&a) {
                    let union = a.or(&b);
                    if !bounds.contains(&union) && bounds.len() < MAX_BOUNDS {
                        bounds.push(union);
                    }
                }
            }
            next += 1;
        }
        self.bounds = bounds.clone();
        // Single units only count in what contains them; two values in one unit are found when placing.
        for operand in &program.operands {
            if let Some(unit) = operand.fixed {
                self.unit_class[unit.0 as usize] = intern(UnitMask::single(unit), &mut masks);
            }
        }
        self.bases = bounds.len();
        for &level in &self.levels {
            self.capacity
                .extend(bounds.iter().map(|bound| level.next_power_of_two() * windows(bound, level)));
        }
        self.in_bounds = masks
            .iter()
            .map(|mask| {
                let inside = bounds.iter().enumerate().filter(|(_, bound)| mask.is_subset_of(bound));
                inside.fold(0u64, |bits, (index, _)| bits | 1 << index)
            })
            .collect();
    }

    pub fn nested(&self, inner: SetId, outer: SetId) -> bool {
        self.nested[inner.0 as usize * self.sets.len() + outer.0 as usize]
    }

    pub fn class(&self, set: SetId, clobbers: ClobberId) -> Class {
        self.class_of[set.0 as usize * self.clobbers.len().max(1) + clobbers.0 as usize]
    }

    /// The level-1 bound that holds exactly the units of `set`, if anything counts there.
    pub fn bound_of(&self, set: SetId) -> Option<usize> {
        self.bounds.iter().position(|bound| *bound == self.sets[set.0 as usize])
    }

    pub fn clobber_mask(&self, clobbers: ClobberId) -> UnitMask {
        self.clobbers.get(clobbers.0 as usize).copied().unwrap_or(UnitMask::EMPTY)
    }

    /// The level-1 bounds in which a value of `set` counts, as bits.
    fn bounds_of(&self, set: SetId, at: At) -> u64 {
        let class = match at {
            At::Point => self.point_class[set.0 as usize],
            At::Through(clobbers) => self.class(set, clobbers),
        };
        self.in_bounds[class as usize]
    }

    /// What something `size` units wide takes at level `index`.
    fn weight(&self, size: u32, index: usize) -> u32 {
        match self.levels[index] {
            1 => size,
            level if size >= level => size.next_power_of_two(),
            _ => 0,
        }
    }

    /// Every bound in which a value of `set` counts, with how much.
    pub fn charge(&self, set: SetId, at: At, size: u8, mut f: impl FnMut(usize, u32)) {
        let base = self.bounds_of(set, at);
        for level in 0..self.levels.len() {
            let weight = self.weight(size as u32, level);
            let mut bits = if weight == 0 { 0 } else { base };
            while bits != 0 {
                f(level * self.bases + bits.trailing_zeros() as usize, weight);
                bits &= bits - 1;
            }
        }
    }

    /// All bounds in which a value of `set` counts, at any level, as bits.
    pub fn bounds_at_all_levels(&self, set: SetId, at: At) -> Over {
        let base = Over::from(self.bounds_of(set, at));
        base | base << MAX_BOUNDS
    }

    /// Bits of all bounds that some value of `set` can count in.
    pub fn full_bounds(&self, set: SetId) -> Over {
        let used = self.used_clobbers.iter();
        used.fold(self.bounds_at_all_levels(set, At::Point), |bits, &clobber| {
            bits | self.bounds_at_all_levels(set, At::Through(clobber))
        })
    }

    /// What values between steps have to stay out of.
    pub fn lost_at(&self, set: SetId, at: At) -> UnitMask {
        let lost = match at {
            At::Through(clobbers) => self.clobber_mask(clobbers),
            At::Point if self.memory => self.clobber_mask(self.memory_clobbers),
            At::Point => UnitMask::EMPTY,
        };
        let narrow = at == At::Point && self.sets[set.0 as usize].is_subset_of(&lost);
        if narrow { UnitMask::EMPTY } else { lost }
    }

    /// Units that a value of `set` has between instructions.
    pub fn room(&self, set: SetId) -> u32 {
        let mask = self.sets[set.0 as usize];
        let narrow = mask.minus(&self.clobber_mask(self.memory_clobbers));
        if self.memory && !narrow.is_empty() { narrow.count() } else { mask.count() }
    }

    fn node_bounds(&self, node: &Node, clobbers: ClobberId) -> u64 {
        let class = match node.fixed {
            // A wide place counts where all of it lies.
            Some(unit) if node.size > 1 => {
                let place = UnitMask::run(unit, node.size as u32);
                let around = self.bounds.iter().enumerate().filter(|(_, bound)| place.is_subset_of(bound));
                return around.fold(0, |bits, (index, _)| bits | 1 << index);
            }
            Some(unit) => self.unit_class[unit.0 as usize],
            None if node.spared => self.class(node.set, clobbers),
            None => self.class(node.set, ClobberId(0)),
        };
        self.in_bounds[class as usize]
    }
}

/// How many places there are in `mask` for something `size` units wide.
fn windows(mask: &UnitMask, size: u32) -> u32 {
    if size == 1 {
        return mask.count();
    }
    let align = size.next_power_of_two();
    let starts = mask.iter().filter(|unit| (unit.0 as u32).is_multiple_of(align));
    starts.filter(|unit| UnitMask::run(*unit, size).is_subset_of(mask)).count() as u32
}

/// Counts of what is resident, by home set and level.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// `(units, values of exactly that size)`.
    by_home: Vec<(u32, u32)>,
    levels: usize,
}

impl Counts {
    pub fn new(limits: &Limits) -> Counts {
        let levels = limits.levels.len();
        Counts { by_home: vec![(0, 0); limits.sets.len() * levels], levels }
    }

    fn row(&mut self, code: &Code, vreg: u32) -> (&mut [(u32, u32)], u32) {
        let info = &code.vregs[vreg as usize];
        let at = info.home.0 as usize * self.levels;
        (&mut self.by_home[at..at + self.levels], info.size as u32)
    }

    pub fn add(&mut self, code: &Code, limits: &Limits, vreg: u32) {
        let (row, size) = self.row(code, vreg);
        for (level, entry) in row.iter_mut().enumerate() {
            entry.0 += limits.weight(size, level);
            entry.1 += (limits.levels[level] == size) as u32;
        }
    }

    pub fn sub(&mut self, code: &Code, limits: &Limits, vreg: u32) {
        let (row, size) = self.row(code, vreg);
        for (level, entry) in row.iter_mut().enumerate() {
            entry.0 -= limits.weight(size, level);
            entry.1 -= (limits.levels[level] == size) as u32;
        }
    }
}

/// Pressure in every bound at one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pressure {
    used: Vec<u32>,
    /// By level: bounds in which something of exactly that size counts here.
    exact: [u64; MAX_LEVELS],
}

impl Pressure {
    pub fn start(&mut self, limits: &Limits) {
        self.used.clear();
        self.used.resize(limits.capacity.len(), 0);
        self.exact = [0; MAX_LEVELS];
    }

    fn add(&mut self, limits: &Limits, level: usize, mut bounds: u64, weight: u32, exact: bool) {
        if weight == 0 {
            return;
        }
        if exact {
            self.exact[level] |= bounds;
        }
        while bounds != 0 {
            self.used[level * limits.bases + bounds.trailing_zeros() as usize] += weight;
            bounds &= bounds - 1;
        }
    }

    /// Values that merely live here.
    pub fn add_counts(&mut self, limits: &Limits, counts: &Counts, at: At) {
        for &home in &limits.homes {
            let bounds = limits.bounds_of(home, at);
            for level in 0..counts.levels {
                let (units, values) = counts.by_home[home.0 as usize * counts.levels + level];
                self.add(limits, level, bounds, units, values != 0);
            }
        }
    }

    /// What the step itself needs in `phase`.
    pub fn add_nodes(&mut self, limits: &Limits, nodes: &[Node], clobbers: ClobberId, phase: u8) {
        let here = |node: &&Node| node.counts & phase != 0;
        for node in nodes.iter().filter(here) {
            self.add(limits, 0, limits.node_bounds(node, clobbers), node.size as u32, true);
        }
        for level in 1..limits.levels.len() {
            let size = limits.levels[level];
            for (index, node) in nodes.iter().enumerate().filter(|(_, node)| here(node)) {
                let bounds = limits.node_bounds(node, clobbers);
                if let Some(unit) = node.fixed {
                    self.add_fixed(limits, &nodes[..index], level, bounds, (unit, node.size as u32), phase);
                } else if let Some(part) = node.vector {
                    // The vector as a whole, at its first member that is here. One with a smaller alignment than its
                    // size counts as so many windows of that alignment.
                    let mine = |other: &&Node| other.vector.is_some_and(|v| v.group == part.group);
                    if nodes[..index].iter().filter(here).any(|other| mine(&other)) {
                        continue;
                    }
                    let members = nodes.iter().filter(mine).filter_map(|other| other.vector);
                    let whole = members.map(|v| v.index as u32 + 1).max().unwrap_or(1);
                    let align = part.align as u32;
                    if align >= whole {
                        self.add(limits, level, bounds, limits.weight(whole, level), whole == size);
                    } else if align >= size {
                        self.add(limits, level, bounds, whole.next_multiple_of(align), true);
                    }
                } else {
                    let own = node.size as u32;
                    self.add(limits, level, bounds, limits.weight(own, level), own == size);
                }
            }
        }
    }

    /// Windows that a fixed node breaks and that no fixed node before it has broken.
    fn add_fixed(
        &mut self,
        limits: &Limits,
        before: &[Node],
        level: usize,
        bounds: u64,
        (unit, width): (Unit, u32),
        phase: u8,
    ) {
        let size = limits.levels[level];
        let align = size.next_power_of_two();
        let covers = |unit: Unit, width: u32, window: u32| {
            unit.0 as u32 / align <= window && window <= (unit.0 as u32 + width - 1) / align
        };
        for window in unit.0 as u32 / align..=(unit.0 as u32 + width - 1) / align {
            let mut others = before.iter().filter(|other| other.counts & phase != 0);
            if others.any(|o| o.fixed.is_some_and(|unit| covers(unit, o.size as u32, window))) {
                continue;
            }
            let mask = UnitMask::run(Unit((window * align) as u16), size);
            let mut inside = 0u64;
            for (k, bound) in limits.bounds.iter().enumerate() {
                if bounds >> k & 1 != 0 && mask.is_subset_of(bound) {
                    inside |= 1 << k;
                }
            }
            self.add(limits, level, inside, align, width == size);
        }
    }

    /// The bounds that hold too much, as bits.
    pub fn over(&self, limits: &Limits) -> Over {
        let mut over = 0;
        for (level, exact) in self.exact.iter().enumerate().take(limits.levels.len()) {
            let row = level * limits.bases..(level + 1) * limits.bases;
            let mut bits = 0u64;
            for (index, (used, capacity)) in
                self.used[row.clone()].iter().zip(&limits.capacity[row]).enumerate()
            {
                bits |= u64::from(used > capacity) << index;
            }
            over |= Over::from(bits & exact) << if level == 0 { 0 } else { MAX_BOUNDS };
        }
        over
    }

    /// Bits of the bounds that count units rather than windows.
    pub fn unit_bounds() -> Over {
        Over::from(u64::MAX)
    }

    /// Units used in a bound.
    pub fn used(&self, bound: usize) -> u32 {
        self.used.get(bound).copied().unwrap_or(0)
    }

    /// Raise `most` to what is used here.
    pub fn raise(&self, most: &mut [u32]) {
        for (most, &used) in most.iter_mut().zip(&self.used) {
            *most = (*most).max(used);
        }
    }

    /// Most units used in any bound.
    pub fn max(&self, limits: &Limits) -> u32 {
        self.used.iter().take(limits.bases).copied().max().unwrap_or(0)
    }
}
