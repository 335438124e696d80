//! Random allocation problems: structured control flow (selections, loops with breaks, one-input merges) over
//! instructions that fit one of the register files of [`super::files`].

use kempe_ra::*;

use super::arbitrary::{Profile, random_file};
use super::files::*;
use super::rng::Rng;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Rows, accumulators and flags; the number of rows and accumulators.
    Rows(u16, u16),
    Halves,
    Wide,
    /// A file made from a seed ([`super::arbitrary`]).
    Random(u64),
}

impl Kind {
    pub fn file(self) -> RegisterFile {
        match self {
            Kind::Rows(rows, accumulators) => rows_file(rows, accumulators),
            Kind::Halves => halves_file(),
            Kind::Wide => wide_file(),
            Kind::Random(seed) => random_file(seed),
        }
    }
}

#[derive(Default)]
struct Draft {
    insts: Vec<(InstInfo, Vec<Operand>)>,
    params: Vec<VReg>,
    succs: Vec<(usize, Vec<VReg>)>,
    frequency: f32,
    depth: u32,
}

pub struct Generator {
    kind: Kind,
    pub(super) file: RegisterFile,
    /// Of a random file; empty for the others.
    pub(super) profile: Profile,
    pub(super) rng: Rng,
    pub(super) vregs: Vec<VRegInfo>,
    recipe_cost: Vec<f32>,
    /// Size and set of what each recipe makes.
    recipe_of: Vec<(u8, SetId)>,
    blocks: Vec<Draft>,
    current: usize,
    pub(super) available: Vec<VReg>,
    budget: i32,
    /// Percentage of uses that reach far back: high values make pressure.
    reach: u32,
    /// Blocks that break out of the loops around, with their loop.
    breaks: Vec<Vec<usize>>,
}

/// A random problem of about `size` instructions.
pub fn generate(kind: Kind, seed: u64, size: u32) -> Program {
    let mut rng = Rng::new(seed);
    let reach = rng.pick(&[10, 30, 60, 90]);
    let file = kind.file();
    let profile = if matches!(kind, Kind::Random(_)) { Profile::of(&file) } else { Profile::default() };
    let mut g = Generator {
        kind,
        file,
        profile,
        rng,
        vregs: Vec::new(),
        recipe_cost: Vec::new(),
        recipe_of: Vec::new(),
        blocks: Vec::new(),
        current: 0,
        available: Vec::new(),
        budget: size as i32,
        reach,
        breaks: Vec::new(),
    };
    g.new_block(1.0, 0);
    g.inputs();
    while g.budget > 0 {
        g.sequence(0);
    }
    g.outputs();
    g.finish()
}

pub fn plain(vreg: VReg, kind: OperandKind, set: SetId) -> Operand {
    Operand { vreg, kind, set, tied: None, fixed: None, hint: None, vector: None }
}

impl Generator {
    fn new_block(&mut self, frequency: f32, depth: u32) -> usize {
        self.blocks.push(Draft { frequency, depth, ..Draft::default() });
        self.blocks.len() - 1
    }

    pub(super) fn new_vreg(&mut self, home: SetId, size: u8) -> VReg {
        self.vregs.push(VRegInfo { home, size, recipe: None, undefined: false });
        VReg(self.vregs.len() as u32 - 1)
    }

    fn random_home(&mut self) -> (SetId, u8) {
        match self.kind {
            Kind::Rows(..) => (if self.rng.chance(85) { ANY } else { ROWS }, 1),
            Kind::Halves => (HALVES, self.rng.pick(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 4])),
            Kind::Wide => (WIDE, self.rng.pick(&[1, 1, 1, 1, 2, 2, 2, 4, 4, 8, 3])),
            Kind::Random(_) => self.arbitrary_home(),
        }
    }

    pub(super) fn use_of(&mut self, vreg: VReg) -> Operand {
        let home = self.vregs[vreg.0 as usize].home;
        let mut set = home;
        match self.kind {
            Kind::Rows(_, accumulators) => {
                if home == ANY && self.rng.chance(8) {
                    set = if accumulators > 0 && self.rng.chance(25) { ACCUMULATORS } else { ROWS };
                }
            }
            Kind::Halves => {
                if self.rng.chance(3) {
                    set = LOW_HALVES;
                }
            }
            Kind::Wide => {}
            Kind::Random(_) => set = self.arbitrary_set(home, self.vregs[vreg.0 as usize].size),
        }
        plain(vreg, OperandKind::Use, set)
    }

    pub(super) fn def_of(&mut self, vreg: VReg) -> Operand {
        let mut operand = self.use_of(vreg);
        operand.kind = OperandKind::Def;
        if self.rng.chance(4) {
            operand.kind = OperandKind::EarlyDef;
        }
        if self.rng.chance(4) {
            let units = &self.file.sets[operand.set.0 as usize].units;
            if self.vregs[vreg.0 as usize].size == 1 {
                operand.hint = Some(units[self.rng.below(units.len() as u32) as usize]);
            }
        }
        operand
    }

    /// An available value that `fits`, near or far.
    pub(super) fn pick(&mut self, fits: impl Fn(&VRegInfo) -> bool) -> Option<VReg> {
        let list: Vec<VReg> =
            self.available.iter().copied().filter(|v| fits(&self.vregs[v.0 as usize])).collect();
        if list.is_empty() {
            return None;
        }
        let count = list.len() as u32;
        let far = self.rng.chance(self.reach);
        let at = if far { self.rng.below(count) } else { count - 1 - self.rng.below(count.min(6)) };
        Some(list[at as usize])
    }

    /// Homes of values that are not for ordinary operands.
    pub(super) fn flags(&self) -> Vec<SetId> {
        match self.kind {
            Kind::Rows(..) => vec![FLAGS],
            Kind::Random(_) => self.profile.flags.clone(),
            Kind::Halves | Kind::Wide => Vec::new(),
        }
    }

    pub(super) fn plain_value(&mut self) -> VReg {
        let flags = self.flags();
        match self.pick(|info| !flags.contains(&info.home)) {
            Some(vreg) => vreg,
            None => self.constant(),
        }
    }

    pub(super) fn emit(
        &mut self,
        operands: Vec<Operand>,
        clobbers: ClobberId,
        no_memory: bool,
        is_move: bool,
    ) {
        self.budget -= 1;
        let info =
            InstInfo { operands: 0..0, clobbers, no_memory_edit_before: no_memory, is_move, repeat: None };
        self.blocks[self.current].insts.push((info, operands));
    }

    pub(super) fn constant(&mut self) -> VReg {
        let random = matches!(self.kind, Kind::Random(_));
        let (home, size) = if random { self.constant_home() } else { self.random_home() };
        let size = if size > 2 { 1 } else { size };
        let vreg = self.new_vreg(home, size);
        let alike = |&(other, set): &(u8, SetId)| other == size && (!random || set == home);
        let same: Vec<usize> = (0..self.recipe_of.len()).filter(|&r| alike(&self.recipe_of[r])).collect();
        let recipe = if !same.is_empty() && self.rng.chance(30) {
            self.rng.pick(&same)
        } else {
            self.recipe_of.push((size, home));
            self.recipe_cost.push(self.rng.range(1, 3) as f32);
            self.recipe_of.len() - 1
        };
        self.vregs[vreg.0 as usize].recipe = Some(Recipe(recipe as u32));
        let def = plain(vreg, OperandKind::Def, home);
        self.emit(vec![def], ClobberId(0), false, false);
        self.available.push(vreg);
        vreg
    }

    /// Fixed registers that hold values at the start.
    fn inputs(&mut self) {
        let count = self.rng.range(1, 4);
        let mut operands = Vec::new();
        let (mut next, mut used) = (0u16, Vec::new());
        for k in 0..count {
            let (home, size) = match self.kind {
                Kind::Rows(..) => (ANY, 1),
                _ => self.random_home(),
            };
            let size = size.min(4);
            let align = (size as u16).next_power_of_two();
            next = next.next_multiple_of(align);
            let vreg = self.new_vreg(home, size);
            let mut operand = plain(vreg, OperandKind::Def, home);
            operand.fixed = match self.kind {
                Kind::Random(_) => self.unit_for(home, size).filter(|u| !used.contains(u)),
                _ => Some(Unit(next)),
            };
            used.extend(operand.fixed.iter().flat_map(|u| (u.0..u.0 + size as u16).map(Unit)));
            next += size as u16 + (k % 2) as u16;
            operands.push(operand);
            self.available.push(vreg);
        }
        self.emit(operands, ClobberId(0), false, false);
    }

    fn outputs(&mut self) {
        let mut operands = Vec::new();
        let (mut next, mut used) = (0u16, Vec::new());
        let fixed = self.rng.chance(50);
        for _ in 0..self.rng.range(1, 4) {
            let vreg = self.plain_value();
            let mut operand = self.use_of(vreg);
            let size = self.vregs[vreg.0 as usize].size as u16;
            next = next.next_multiple_of(size.next_power_of_two());
            if fixed && matches!(self.kind, Kind::Random(_)) {
                operand.fixed = self.unit_for(operand.set, size as u8).filter(|u| !used.contains(u));
                used.extend(operand.fixed.iter().flat_map(|u| (u.0..u.0 + size).map(Unit)));
            } else if fixed && (operand.set != ACCUMULATORS || !matches!(self.kind, Kind::Rows(..))) {
                operand.fixed = Some(Unit(next));
            }
            next += size;
            operands.push(operand);
        }
        self.emit(operands, ClobberId(0), false, false);
    }

    fn sequence(&mut self, depth: u32) {
        for _ in 0..self.rng.range(1, 12) {
            self.instruction();
        }
        if self.budget <= 0 || depth >= 5 {
            return;
        }
        match self.rng.below(10) {
            0..=3 => self.selection(depth),
            4..=6 => self.repetition(depth),
            7 if !self.breaks.is_empty() => self.break_out(depth),
            _ => {}
        }
    }

    /// The conditional branch that ends a block.
    fn branch(&mut self) {
        let flags = self.flags();
        let condition = if !flags.is_empty() && self.rng.chance(50) {
            self.pick(|info| flags.contains(&info.home))
        } else {
            None
        };
        let condition = match condition {
            Some(vreg) => Some(vreg),
            None if self.rng.chance(50) => Some(self.plain_value()),
            None => None,
        };
        let operands = condition.map(|vreg| self.use_of(vreg)).into_iter().collect();
        self.emit(operands, ClobberId(0), false, false);
    }

    fn jump(&mut self, to: usize, args: Vec<VReg>) {
        self.emit(Vec::new(), ClobberId(0), false, false);
        let current = self.current;
        self.blocks[current].succs.push((to, args));
    }

    /// Homes and sizes of the parameters of a new merge.
    fn new_params(&mut self, block: usize, most: u32) {
        for _ in 0..self.rng.below(most + 1) {
            let (home, size) = match self.kind {
                Kind::Rows(..) if self.rng.chance(8) => (FLAGS, 1),
                Kind::Random(_) => self.arbitrary_param(),
                _ => self.random_home(),
            };
            let param = self.new_vreg(home, size);
            self.blocks[block].params.push(param);
        }
    }

    fn args_for(&mut self, block: usize) -> Vec<VReg> {
        let params = self.blocks[block].params.clone();
        params
            .into_iter()
            .map(|param| {
                let want = self.vregs[param.0 as usize];
                let flags = self.flags();
                let profile = self.profile.clone();
                let random = matches!(self.kind, Kind::Random(_));
                let fits = |home: SetId| match random {
                    true => profile.reaches(home, want.home),
                    false => flags.contains(&home) == flags.contains(&want.home),
                };
                let found = if self.rng.chance(4) {
                    None
                } else {
                    self.pick(|info| info.size == want.size && fits(info.home))
                };
                match found {
                    Some(vreg) => vreg,
                    None if self.rng.chance(40) => {
                        let vreg = self.new_vreg(want.home, want.size);
                        self.vregs[vreg.0 as usize].undefined = true;
                        vreg
                    }
                    None => {
                        let vreg = self.new_vreg(want.home, want.size);
                        let operands = if flags.contains(&want.home) {
                            let from = self.plain_value();
                            vec![self.use_of(from), plain(vreg, OperandKind::Def, want.home)]
                        } else {
                            vec![plain(vreg, OperandKind::Def, want.home)]
                        };
                        self.emit(operands, ClobberId(0), false, false);
                        self.available.push(vreg);
                        vreg
                    }
                }
            })
            .collect()
    }

    fn selection(&mut self, depth: u32) {
        self.branch();
        let before = self.available.clone();
        let from = self.current;
        let (frequency, level) = (self.blocks[from].frequency, self.blocks[from].depth);
        let merge_params: Vec<VReg> = Vec::new();
        let mut ends = Vec::new();
        let arms = self.rng.range(2, 3);
        for _ in 0..arms {
            let arm = self.new_block(frequency / arms as f32, level);
            self.blocks[from].succs.push((arm, Vec::new()));
            self.current = arm;
            self.available = before.clone();
            // A parameter of a block with one predecessor.
            let constants = self.profile.constants.clone();
            // (Nothing but its recipe can make some constants again, and a parameter has none.)
            if self.rng.chance(15)
                && let Some(arg) = self.pick(|info| !constants.contains(&info.home))
            {
                let info = self.vregs[arg.0 as usize];
                let home = if matches!(self.kind, Kind::Random(_)) {
                    self.nearby_home(info.home, info.size)
                } else if info.home == ANY && matches!(self.kind, Kind::Rows(..)) && self.rng.chance(20) {
                    ROWS
                } else {
                    info.home
                };
                let param = self.new_vreg(home, info.size);
                self.blocks[arm].params.push(param);
                if let Some(edge) = self.blocks[from].succs.last_mut() {
                    edge.1.push(arg);
                }
                self.available.push(param);
            }
            if self.rng.chance(80) {
                self.sequence(depth + 1);
            }
            ends.push((self.current, self.available.clone()));
        }
        let merge = self.new_block(frequency, level);
        self.blocks[merge].params = merge_params;
        self.new_params(merge, 4);
        for (end, available) in ends {
            self.current = end;
            self.available = available;
            let args = self.args_for(merge);
            self.jump(merge, args);
        }
        self.current = merge;
        self.available = before;
        let params = self.blocks[merge].params.clone();
        self.available.extend(params);
    }

    fn repetition(&mut self, depth: u32) {
        let (frequency, level) = (self.blocks[self.current].frequency, self.blocks[self.current].depth);
        let header = self.new_block(frequency * 8.0, level + 1);
        self.new_params(header, 4);
        let args = self.args_for(header);
        self.jump(header, args);
        let before = self.available.clone();
        self.current = header;
        let params = self.blocks[header].params.clone();
        self.available.extend(params);
        let inside = self.available.clone();
        self.breaks.push(Vec::new());
        self.sequence(depth + 1);
        if self.rng.chance(40) {
            self.break_out(depth + 1);
        }
        let breaks = self.breaks.pop().unwrap_or_default();
        // The latch: back, or out.
        self.branch();
        let latch = self.current;
        let available = self.available.clone();
        let back = self.new_block(frequency * 7.0, level + 1);
        let out = self.new_block(frequency, level + 1);
        self.blocks[latch].succs = vec![(back, Vec::new()), (out, Vec::new())];
        self.current = back;
        let args = self.args_for(header);
        self.jump(header, args);
        let exit = self.new_block(frequency, level);
        self.new_params(exit, 3);
        for block in breaks.into_iter().chain([out]) {
            self.current = block;
            self.available = if block == out { available.clone() } else { inside.clone() };
            let args = self.args_for(exit);
            self.jump(exit, args);
        }
        self.current = exit;
        self.available = before;
        let params = self.blocks[exit].params.clone();
        self.available.extend(params);
        if self.rng.chance(50) {
            let params = self.blocks[header].params.clone();
            self.available.extend(params);
        }
    }

    fn break_out(&mut self, _depth: u32) {
        self.branch();
        let from = self.current;
        let (frequency, level) = (self.blocks[from].frequency, self.blocks[from].depth);
        let leave = self.new_block(frequency * 0.1, level);
        let stay = self.new_block(frequency, level);
        self.blocks[from].succs = vec![(leave, Vec::new()), (stay, Vec::new())];
        if let Some(list) = self.breaks.last_mut() {
            list.push(leave);
        }
        self.current = stay;
    }

    fn instruction(&mut self) {
        if self.budget <= 0 {
            return;
        }
        match self.kind {
            Kind::Rows(..) => self.rows_instruction(false),
            Kind::Halves => self.halves_instruction(),
            Kind::Wide => self.wide_instruction(),
            Kind::Random(_) => self.arbitrary_instruction(false),
        }
    }

    pub(super) fn alu(&mut self, clobbers: ClobberId, uses: u32, defs: u32, no_memory: bool) {
        let mut operands: Vec<Operand> = Vec::new();
        for _ in 0..uses {
            let vreg = self.plain_value();
            operands.push(self.use_of(vreg));
        }
        let mut made = Vec::new();
        for _ in 0..defs {
            let (home, size) = self.random_home();
            let vreg = self.new_vreg(home, size);
            operands.push(self.def_of(vreg));
            made.push(vreg);
        }
        self.emit(operands, clobbers, no_memory, false);
        self.available.extend(made);
    }

    /// A write under a predicate: tied to the previous version, which may be undefined.
    pub(super) fn predicated(&mut self, flag: Option<VReg>, no_memory: bool) {
        let old = if self.rng.chance(25) { None } else { Some(self.plain_value()) };
        // A new version of what only a recipe can make again would have none.
        let old = old.filter(|v| !self.profile.constants.contains(&self.vregs[v.0 as usize].home));
        let old = old.unwrap_or_else(|| {
            let (home, size) = self.random_home();
            let vreg = self.new_vreg(home, size);
            self.vregs[vreg.0 as usize].undefined = true;
            vreg
        });
        let info = self.vregs[old.0 as usize];
        let source = self.plain_value();
        let vreg = self.new_vreg(info.home, info.size);
        let mut operands: Vec<Operand> = flag.map(|flag| self.use_of(flag)).into_iter().collect();
        operands.push(self.use_of(source));
        operands.push(plain(old, OperandKind::Use, info.home));
        let tied = operands.len() as u8 - 1;
        let mut def = plain(vreg, OperandKind::Def, info.home);
        if self.rng.chance(5) {
            def.kind = OperandKind::EarlyDef;
        }
        def.tied = Some(tied);
        operands.push(def);
        self.emit(operands, ClobberId(0), no_memory, false);
        self.available.push(vreg);
    }

    fn rows_instruction(&mut self, no_memory: bool) {
        match self.rng.below(100) {
            0..=44 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 1, no_memory);
            }
            45..=49 => {
                let from = self.plain_value();
                let (home, size) = self.random_home();
                let vreg = self.new_vreg(home, size);
                let operands = vec![self.use_of(from), plain(vreg, OperandKind::Def, home)];
                self.emit(operands, ClobberId(0), no_memory, true);
                self.available.push(vreg);
            }
            50..=57 if !no_memory => {
                self.constant();
            }
            58..=66 => {
                let from = self.plain_value();
                let flag = self.new_vreg(FLAGS, 1);
                let operands = vec![self.use_of(from), plain(flag, OperandKind::Def, FLAGS)];
                self.emit(operands, ClobberId(0), no_memory, false);
                self.available.push(flag);
            }
            67..=76 => {
                let flag = self.pick(|info| info.home == FLAGS);
                self.predicated(flag, no_memory);
            }
            77..=83 => {
                let (uses, defs) = (self.rng.range(1, 4), self.rng.range(1, 4));
                self.alu(SWITCH, uses, defs, no_memory);
            }
            84..=86 if !no_memory => {
                self.rows_instruction(false);
                for _ in 0..self.rng.range(1, 4) {
                    self.rows_instruction(true);
                }
            }
            87..=92 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 0, no_memory);
            }
            93..=94 => self.alu(FLAG_WRITE, 1, 1, no_memory),
            95..=97 => self.fixed_operands(no_memory),
            _ => self.alu(ClobberId(0), 2, 2, no_memory),
        }
    }

    fn fixed_operands(&mut self, no_memory: bool) {
        let used = self.plain_value();
        let mut operand = self.use_of(used);
        if operand.set == ACCUMULATORS && matches!(self.kind, Kind::Rows(..)) {
            operand.set = self.vregs[used.0 as usize].home;
        }
        let align = (self.vregs[used.0 as usize].size as u32).next_power_of_two();
        operand.fixed = Some(Unit((self.rng.below(4) * align) as u16));
        let (home, size) = self.random_home();
        let vreg = self.new_vreg(home, size);
        let mut def = plain(vreg, OperandKind::Def, home);
        if self.rng.chance(60) {
            let align = (size as u32).next_power_of_two();
            def.fixed = Some(Unit((self.rng.below(4) * align) as u16));
        }
        self.emit(vec![operand, def], ClobberId(0), no_memory, false);
        self.available.push(vreg);
    }

    fn vector(&mut self, operands: &mut Vec<Operand>, group: u32, kind: OperandKind) {
        let count = self.rng.pick(&[2u8, 2, 4, 4, 3]);
        let align = if self.rng.chance(75) { count.next_power_of_two() } else { 1 };
        for index in 0..count {
            let vreg = match kind {
                OperandKind::Use if self.rng.chance(4) => {
                    let vreg = self.new_vreg(HALVES, 1);
                    self.vregs[vreg.0 as usize].undefined = true;
                    vreg
                }
                OperandKind::Use => match self.pick(|info| info.size == 1) {
                    Some(vreg) => vreg,
                    None => {
                        let vreg = self.new_vreg(HALVES, 1);
                        self.vregs[vreg.0 as usize].undefined = true;
                        vreg
                    }
                },
                _ => self.new_vreg(HALVES, 1),
            };
            let mut operand = plain(vreg, kind, HALVES);
            operand.vector = Some(VectorPart { group: Group(group), index, align });
            operands.push(operand);
        }
    }

    fn halves_instruction(&mut self) {
        match self.rng.below(100) {
            0..=49 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 1, false);
            }
            50..=57 => {
                self.constant();
            }
            58..=82 => {
                let mut operands = Vec::new();
                if self.rng.chance(70) {
                    self.vector(&mut operands, 1, OperandKind::Use);
                }
                if self.rng.chance(20) {
                    self.vector(&mut operands, 2, OperandKind::Use);
                }
                if self.rng.chance(50) {
                    let vreg = self.plain_value();
                    operands.push(self.use_of(vreg));
                }
                if self.rng.chance(60) {
                    self.vector(&mut operands, 3, OperandKind::Def);
                }
                let defs: Vec<VReg> =
                    operands.iter().filter(|op| op.kind == OperandKind::Def).map(|op| op.vreg).collect();
                self.emit(operands, ClobberId(0), false, false);
                self.available.extend(defs);
            }
            83..=89 => self.predicated(None, false),
            90..=92 => {
                let from = self.plain_value();
                let info = self.vregs[from.0 as usize];
                let vreg = self.new_vreg(info.home, info.size);
                let operands = vec![self.use_of(from), plain(vreg, OperandKind::Def, info.home)];
                self.emit(operands, ClobberId(0), false, true);
                self.available.push(vreg);
            }
            93..=95 => self.fixed_operands(false),
            _ => {
                let uses = self.rng.range(1, 4);
                self.alu(ClobberId(0), uses, 0, false);
            }
        }
    }

    fn wide_instruction(&mut self) {
        match self.rng.below(100) {
            0..=59 => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 1, false);
            }
            60..=67 => {
                self.constant();
            }
            68..=77 => self.predicated(None, false),
            78..=82 => {
                let (uses, defs) = (self.rng.range(0, 3), self.rng.range(1, 2));
                self.alu(CALL, uses, defs, false);
            }
            83..=89 => self.fixed_operands(false),
            _ => {
                let uses = self.rng.range(1, 3);
                self.alu(ClobberId(0), uses, 0, false);
            }
        }
    }

    fn finish(self) -> Program {
        let mut program = Program { vregs: self.vregs, recipe_cost: self.recipe_cost, ..Program::default() };
        for draft in &self.blocks {
            let start = program.insts.len() as u32;
            for (info, operands) in &draft.insts {
                let first = program.operands.len() as u32;
                program.operands.extend_from_slice(operands);
                program
                    .insts
                    .push(InstInfo { operands: first..program.operands.len() as u32, ..info.clone() });
            }
            program.blocks.push(BlockInfo {
                insts: start..program.insts.len() as u32,
                params: draft.params.clone(),
                succs: draft
                    .succs
                    .iter()
                    .map(|(to, args)| Edge { to: Block(*to as u32), args: args.clone() })
                    .collect(),
                preds: Vec::new(),
                frequency: draft.frequency,
                loop_depth: draft.depth,
            });
        }
        allow_repeats(&self.file, &mut program);
        for (index, draft) in self.blocks.iter().enumerate() {
            for (to, _) in &draft.succs {
                program.blocks[*to].preds.push(Block(index as u32));
            }
        }
        program
    }
}

/// Two of three instructions that have the form for it may be repeated.
fn allow_repeats(file: &RegisterFile, program: &mut Program) {
    let plain = |op: &Operand| {
        let info = &program.vregs[op.vreg.0 as usize];
        let in_memory = file.sets[info.home.0 as usize].backing == Backing::Memory;
        let free = op.fixed.is_none() && op.tied.is_none() && op.vector.is_none();
        free && in_memory && info.size == 1 && !info.undefined && op.kind != OperandKind::EarlyDef
    };
    for (index, info) in program.insts.iter_mut().enumerate() {
        let ops = &program.operands[info.operands.start as usize..info.operands.end as usize];
        let defs = ops.iter().filter(|op| op.kind == OperandKind::Def).count();
        let able = defs == 1 && (2..=1 + MAX_REPEAT_USES).contains(&ops.len()) && ops.iter().all(plain);
        if able && info.clobbers == ClobberId(0) && index % 3 != 0 {
            info.repeat = Some(1.0 + (index % 2) as f32);
        }
    }
}
