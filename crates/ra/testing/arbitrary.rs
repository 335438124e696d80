//! Register files of any shape, made from a seed, and the instructions of random problems on them.
//!
//! A file has 8 to 64 units (seldom 256), sets that lie within each other, overlap or stand apart, in any order of preference, handed
//! out in order or round robin; some are backed by another set, some by nothing; masks that instructions and memory edits destroy,
//! units that edits reserve, units that are narrow. What a target could not mean is left out: values of sets that nothing stands
//! behind all have recipes; a value goes to a parameter only where a copy can bring it (a narrow unit keeps nothing that does not
//! belong there); a set that memory stands behind is not destroyed by memory edits as a whole.

use kempe_ra::*;

use super::generate::{Generator, plain};
use super::rng::Rng;

/// Sets of a file by what values of them may do.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Backed by memory.
    ordinary: Vec<SetId>,
    /// Backed by another set.
    pub flags: Vec<SetId>,
    /// Backed by nothing.
    pub constants: Vec<SetId>,
    /// By set: the others that lie within it.
    inner: Vec<Vec<SetId>>,
    /// By set: narrow units of it.
    narrow: Vec<Vec<Unit>>,
    /// By set: the largest size (a power of two) for which it has four aligned windows.
    widest: Vec<u8>,
}

/// A part of `list`, not empty.
fn part(rng: &mut Rng, list: &[Unit]) -> Vec<Unit> {
    let count = rng.range(1, list.len() as u32) as usize;
    if rng.chance(60) {
        let start = rng.below((list.len() - count + 1) as u32) as usize;
        return list[start..start + count].to_vec();
    }
    let percent = rng.range(20, 90);
    let mut some: Vec<Unit> = list.iter().copied().filter(|_| rng.chance(percent)).collect();
    if some.is_empty() {
        some.push(rng.pick(list));
    }
    some
}

fn shuffle(rng: &mut Rng, list: &mut [Unit]) {
    for k in (1..list.len()).rev() {
        list.swap(k, rng.below(k as u32 + 1) as usize);
    }
}

/// A register file from its seed.
pub fn random_file(seed: u64) -> RegisterFile {
    let mut rng = Rng::new(seed ^ 0xf11e);
    let count = if rng.chance(3) { 256 } else { rng.pick(&[8u16, 10, 12, 16, 16, 20, 24, 32, 32, 48, 64]) };
    let all: Vec<Unit> = (0..count).map(Unit).collect();
    // Some units are not for ordinary values: narrow ones, flags, those of constants.
    let special = rng.below((count / 4).min(8) as u32 + 1) as usize;
    let (main, apart) = all.split_at(all.len() - special);
    let narrow: Vec<Unit> = if rng.chance(40) { apart.iter().copied().take(2).collect() } else { Vec::new() };
    let apart = &apart[narrow.len()..];
    let mut sets: Vec<(Vec<Unit>, Backing)> = vec![(main.to_vec(), Backing::Memory)];
    for _ in 0..rng.below(4) {
        let units = if rng.chance(70) {
            part(&mut rng, main)
        } else {
            // What lies in it in part, too.
            let from = rng.below(sets.len() as u32) as usize;
            let mut units = part(&mut rng, &sets[from].0);
            units.extend(part(&mut rng, main));
            units
        };
        sets.push((units, Backing::Memory));
    }
    if !narrow.is_empty() {
        let mut units = narrow.clone();
        units.extend(main);
        sets.push((units, Backing::Memory));
    }
    // Flags and constants share their units or have some of their own.
    let (flags, constants) =
        if rng.chance(50) { (apart, apart) } else { apart.split_at(apart.len() - apart.len() / 2) };
    if !flags.is_empty() && rng.chance(60) {
        let behind = SetId(rng.below(sets.len() as u32) as u8);
        sets.push((part(&mut rng, flags), Backing::Set(behind)));
    }
    if rng.chance(25) {
        let from = if constants.is_empty() || rng.chance(30) { main } else { constants };
        sets.push((part(&mut rng, from), Backing::None));
    }
    let mut clobbers = vec![Vec::new()];
    for _ in 0..rng.below(4) {
        clobbers.push(part(&mut rng, &all));
    }
    // Every set that memory stands behind keeps two units through a memory edit.
    let mut edit_reserved: Vec<Unit> = (0..rng.below(4)).map(|_| rng.pick(main)).collect();
    edit_reserved.sort_unstable();
    edit_reserved.dedup();
    let left = |units: &[Unit], lost: &[Unit]| {
        units.iter().filter(|u| !lost.contains(u) && !edit_reserved.contains(u)).count()
    };
    let mut lost = rng.below(clobbers.len() as u32) as usize;
    if left(main, &clobbers[lost]) < 2 {
        lost = 0;
    }
    sets.retain(|(units, backing)| *backing != Backing::Memory || left(units, &clobbers[lost]) >= 2);
    let memory_edit_clobbers = ClobberId(lost as u8);
    let plain_sets = sets.iter().filter(|(_, b)| *b == Backing::Memory).count() as u8;
    let sets = sets.into_iter().enumerate().map(|(k, (mut units, backing))| {
        units.sort_unstable();
        units.dedup();
        if rng.chance(40) {
            shuffle(&mut rng, &mut units);
        }
        let backing = match backing {
            Backing::Set(behind) => Backing::Set(SetId(behind.0 % plain_sets)),
            other => other,
        };
        UnitSet { name: format!("set{k}"), units, rotate: rng.chance(50), backing }
    });
    let sets: Vec<UnitSet> = sets.collect();
    // Wishes of any kind: nothing may depend on them.
    let favour = |rng: &mut Rng| {
        let set = rng.below(sets.len() as u32);
        Favour { set: SetId(set as u8), unit: rng.pick(&sets[set as usize].units), rest: rng.below(8) }
    };
    let preferences = Preferences {
        favoured: (0..rng.below(3)).map(|_| favour(&mut rng)).collect(),
        brief: part(&mut rng, &all),
        brief_life: rng.below(12),
        late: part(&mut rng, &all),
        late_steps: rng.below(6),
    };
    RegisterFile {
        units: (0..count).map(|k| format!("u{k}")).collect(),
        sets,
        clobbers,
        edit_reserved,
        memory_edit_clobbers,
        narrow,
        preferences,
    }
}

impl Profile {
    pub fn of(file: &RegisterFile) -> Profile {
        let ids = || (0..file.sets.len()).map(|k| SetId(k as u8));
        let units = |set: SetId| &file.sets[set.0 as usize].units;
        let with = |wanted: &dyn Fn(Backing) -> bool| {
            ids().filter(|set| wanted(file.sets[set.0 as usize].backing)).collect::<Vec<_>>()
        };
        let inside = |inner: SetId, outer: SetId| units(inner).iter().all(|u| units(outer).contains(u));
        let windows = |set: SetId, size: u16| {
            let all = |base: &u16| (*base..base + size).all(|u| units(set).contains(&Unit(u)));
            (0..file.units.len() as u16).step_by(size as usize).filter(all).count()
        };
        Profile {
            ordinary: with(&|b| b == Backing::Memory),
            flags: with(&|b| matches!(b, Backing::Set(_))),
            constants: with(&|b| b == Backing::None),
            inner: ids()
                .map(|outer| ids().filter(|&inner| inner != outer && inside(inner, outer)).collect())
                .collect(),
            narrow: ids()
                .map(|set| file.narrow.iter().copied().filter(|u| units(set).contains(u)).collect())
                .collect(),
            widest: ids()
                .map(|set| [8, 4, 2].into_iter().find(|&size| windows(set, size) >= 4).map_or(1, |s| s as u8))
                .collect(),
        }
    }

    /// A copy can bring a value of `from` to a place for one of `to`: one set holds both, and no unit of `to` is too narrow.
    pub fn reaches(&self, from: SetId, to: SetId) -> bool {
        let holds = |set: SetId, inner: SetId| set == inner || self.inner[set.0 as usize].contains(&inner);
        from == to
            || self.ordinary.contains(&to)
                && self.ordinary.iter().any(|&set| holds(set, from) && holds(set, to))
                && self.narrow[to.0 as usize].iter().all(|u| self.narrow[from.0 as usize].contains(u))
    }
}

impl Generator {
    /// Set and size of a new value that may go anywhere.
    pub fn arbitrary_home(&mut self) -> (SetId, u8) {
        let home = if self.rng.chance(50) {
            self.profile.ordinary[0]
        } else {
            self.rng.pick(&self.profile.ordinary)
        };
        let widest = self.profile.widest[home.0 as usize];
        let size = self.rng.pick(&[1, 1, 1, 1, 1, 1, 1, 2, 4, 3, 8]);
        (home, if size <= widest { size } else { 1 })
    }

    /// A set for a value that is never anything but a constant, or of one that need not be.
    pub fn constant_home(&mut self) -> (SetId, u8) {
        if !self.profile.constants.is_empty() && self.rng.chance(20) {
            return (self.rng.pick(&self.profile.constants), 1);
        }
        self.arbitrary_home()
    }

    /// The home of a parameter; sometimes of a flag.
    pub fn arbitrary_param(&mut self) -> (SetId, u8) {
        if !self.profile.flags.is_empty() && self.rng.chance(10) {
            return (self.rng.pick(&self.profile.flags), 1);
        }
        self.arbitrary_home()
    }

    /// The home of a parameter that takes a value of this one: mostly the same.
    pub fn nearby_home(&mut self, home: SetId, size: u8) -> SetId {
        let to = self.rng.pick(&self.profile.ordinary);
        let fits = self.profile.reaches(home, to) && size <= self.profile.widest[to.0 as usize];
        if fits && self.rng.chance(20) { to } else { home }
    }

    /// A set for an operand of this home: seldom a smaller one, in which it has room.
    pub fn arbitrary_set(&mut self, home: SetId, size: u8) -> SetId {
        let inner = &self.profile.inner[home.0 as usize];
        if inner.is_empty() || !self.rng.chance(12) {
            return home;
        }
        let set = self.rng.pick(inner);
        if size <= self.profile.widest[set.0 as usize] { set } else { home }
    }

    /// A unit at which a value of this size stands within a set.
    pub fn unit_for(&mut self, set: SetId, size: u8) -> Option<Unit> {
        let units = &self.file.sets[set.0 as usize].units;
        let unit = self.rng.pick(units);
        let align = u16::from(size).next_power_of_two();
        let base = unit.0 - unit.0 % align;
        (base..base + u16::from(size)).all(|u| units.contains(&Unit(u))).then_some(Unit(base))
    }

    fn clobber(&mut self) -> ClobberId {
        ClobberId(self.rng.below(self.file.clobbers.len() as u32) as u8)
    }

    /// One instruction; `no_memory`: inside of a region.
    pub fn arbitrary_instruction(&mut self, no_memory: bool) {
        match self.rng.below(100) {
            0..=39 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 1, no_memory);
            }
            40..=45 => {
                let from = self.plain_value();
                let (home, size) = (self.vregs[from.0 as usize].home, self.vregs[from.0 as usize].size);
                let home = if self.profile.ordinary.contains(&home) { home } else { SetId(0) };
                let vreg = self.new_vreg(home, size);
                let operands = vec![self.use_of(from), self.def_of(vreg)];
                self.emit(operands, ClobberId(0), no_memory, true);
                self.available.push(vreg);
            }
            46..=54 => {
                self.constant();
            }
            55..=61 if !self.profile.flags.is_empty() => {
                let from = self.plain_value();
                let home = self.rng.pick(&self.profile.flags);
                let flag = self.new_vreg(home, 1);
                let operands = vec![self.use_of(from), plain(flag, OperandKind::Def, home)];
                self.emit(operands, ClobberId(0), no_memory, false);
                self.available.push(flag);
            }
            55..=72 => {
                let flags = self.flags();
                let flag = self.pick(|info| flags.contains(&info.home));
                self.predicated(flag, no_memory);
            }
            73..=80 => {
                let (clobbers, uses, defs) = (self.clobber(), self.rng.range(0, 4), self.rng.range(0, 3));
                self.alu(clobbers, uses, defs, no_memory);
            }
            81..=83 if !no_memory => {
                self.arbitrary_instruction(false);
                for _ in 0..self.rng.range(1, 3) {
                    self.arbitrary_instruction(true);
                }
            }
            84..=89 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 0, no_memory);
            }
            90..=93 => self.arbitrary_fixed(no_memory),
            94..=97 => self.arbitrary_vectors(no_memory),
            _ => self.alu(ClobberId(0), 2, 2, no_memory),
        }
    }

    /// An ALU operation with operands in named units.
    fn arbitrary_fixed(&mut self, no_memory: bool) {
        let used = self.plain_value();
        let mut operand = self.use_of(used);
        operand.fixed = self.unit_for(operand.set, self.vregs[used.0 as usize].size);
        let (home, size) = self.arbitrary_home();
        let vreg = self.new_vreg(home, size);
        let mut def = plain(vreg, OperandKind::Def, self.arbitrary_set(home, size));
        if self.rng.chance(60) {
            def.fixed = self.unit_for(def.set, size);
        }
        let clobbers = if self.rng.chance(20) { self.clobber() } else { ClobberId(0) };
        self.emit(vec![operand, def], clobbers, no_memory, false);
        self.available.push(vreg);
    }

    /// Members of one vector operand, in a set with windows for them.
    fn arbitrary_vector(&mut self, operands: &mut Vec<Operand>, group: u32, kind: OperandKind) {
        let set = self.rng.pick(&self.profile.ordinary);
        let count = self.rng.pick(&[2u8, 2, 4, 3]).min(self.profile.widest[set.0 as usize]);
        let align = if self.rng.chance(75) { count.next_power_of_two() } else { 1 };
        for index in 0..count {
            let found = if kind == OperandKind::Use && !self.rng.chance(4) {
                self.pick(|info| info.size == 1 && info.home == set)
            } else {
                None
            };
            let vreg = match found {
                Some(vreg) => vreg,
                None => {
                    let vreg = self.new_vreg(set, 1);
                    self.vregs[vreg.0 as usize].undefined = kind == OperandKind::Use;
                    vreg
                }
            };
            let mut operand = plain(vreg, kind, set);
            operand.vector = Some(VectorPart { group: Group(group), index, align });
            operands.push(operand);
        }
    }

    fn arbitrary_vectors(&mut self, no_memory: bool) {
        let mut operands = Vec::new();
        if self.rng.chance(70) {
            self.arbitrary_vector(&mut operands, 1, OperandKind::Use);
        }
        if self.rng.chance(50) {
            let vreg = self.plain_value();
            operands.push(self.use_of(vreg));
        }
        if self.rng.chance(60) {
            self.arbitrary_vector(&mut operands, 2, OperandKind::Def);
        }
        let defs: Vec<VReg> =
            operands.iter().filter(|op| op.kind == OperandKind::Def).map(|op| op.vreg).collect();
        self.emit(operands, ClobberId(0), no_memory, false);
        self.available.extend(defs);
    }
}
