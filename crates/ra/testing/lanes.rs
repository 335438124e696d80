//! A machine of sixteen lanes whose writes, copies, stores and fills hit all lanes at once.
//!
//! Divergent control flow is linear: the machine walks one graph, the execution mask is an ordinary value, and a merge of
//! lanes is a predicated move tied to the previous version (the first undefined). The virtual program runs with one
//! value per virtual register and undefined lanes as poison; the allocated one with registers, slots and edits that
//! hold whatever was there before. What the programs put out must agree in every lane that is not poison.

use kempe_ra::*;

use super::files::*;
use super::generate::plain;
use super::rng::mix;

pub const LANES: usize = 16;

type Poisoned = [Option<u32>; LANES];
type Real = [u32; LANES];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Lane,
    Const(u32),
    Input(u32),
    Add,
    Mul,
    Xor,
    /// Flag: first less than second.
    Less,
    /// Flag: not zero.
    NotZero,
    /// The flag as a value, 1 or 0.
    FromFlag,
    And,
    Not,
    Move,
    /// Flag, source, old: source where the flag is set.
    Select,
    /// A load through the texture unit: some function of the address. Switches threads.
    Load,
    /// An exchange in memory: the old contents in the register of the data.
    Exchange,
    /// Difference to the neighbour in the quad.
    Derivative,
    /// Puts a value out.
    Out,
    /// Does nothing with what it reads.
    Keep,
    Jump,
    /// To the first successor when the value is not zero in any lane.
    BranchAny,
    End,
}

#[derive(Default)]
pub struct Lanes {
    pub program: Program,
    pub ops: Vec<Op>,
    blocks: Vec<Draft>,
    current: usize,
}

#[derive(Default)]
struct Draft {
    insts: Vec<(Op, InstInfo, Vec<Operand>)>,
    params: Vec<VReg>,
    succs: Vec<(usize, Vec<VReg>)>,
    frequency: f32,
}

impl Lanes {
    pub fn new() -> Lanes {
        let mut lanes = Lanes::default();
        lanes.block(0, 1.0);
        lanes
    }

    fn vreg(&mut self, home: SetId) -> VReg {
        self.program.vregs.push(VRegInfo { home, size: 1, recipe: None, undefined: false });
        VReg(self.program.vregs.len() as u32 - 1)
    }

    pub fn undefined(&mut self) -> VReg {
        let vreg = self.vreg(ROWS);
        self.program.vregs[vreg.0 as usize].undefined = true;
        vreg
    }

    /// A new block with `params` parameters.
    pub fn block(&mut self, params: usize, frequency: f32) -> usize {
        let params = (0..params).map(|_| self.vreg(ROWS)).collect();
        self.blocks.push(Draft { params, frequency, ..Draft::default() });
        self.blocks.len() - 1
    }

    pub fn params(&self, block: usize) -> Vec<VReg> {
        self.blocks[block].params.clone()
    }

    pub fn at(&mut self, block: usize) {
        self.current = block;
    }

    fn emit(&mut self, op: Op, operands: Vec<Operand>, clobbers: ClobberId, no_memory: bool) {
        let is_move = op == Op::Move;
        let repeat = matches!(op, Op::Add | Op::Mul | Op::Xor).then_some(1.0);
        let info = InstInfo { operands: 0..0, clobbers, no_memory_edit_before: no_memory, is_move, repeat };
        self.blocks[self.current].insts.push((op, info, operands));
    }

    fn used(&self, vreg: VReg) -> Operand {
        plain(vreg, OperandKind::Use, self.program.vregs[vreg.0 as usize].home)
    }

    pub fn op(&mut self, op: Op, uses: &[VReg]) -> VReg {
        self.op_in(op, uses, false)
    }

    /// With `no_memory`: no memory edit directly before it.
    pub fn op_in(&mut self, op: Op, uses: &[VReg], no_memory: bool) -> VReg {
        let home = if matches!(op, Op::Less | Op::NotZero) { FLAGS } else { ROWS };
        let vreg = self.vreg(home);
        let mut operands: Vec<Operand> = uses.iter().map(|&vreg| self.used(vreg)).collect();
        let mut def = plain(vreg, OperandKind::Def, home);
        match op {
            Op::Select => def.tied = Some(2),
            Op::Exchange => def.tied = Some(0),
            _ => {}
        }
        operands.push(def);
        let clobbers = if matches!(op, Op::Load | Op::Exchange) { SWITCH } else { ClobberId(0) };
        self.emit(op, operands, clobbers, no_memory);
        if let Op::Const(value) = op {
            self.program.vregs[vreg.0 as usize].recipe = Some(Recipe(value));
            if self.program.recipe_cost.len() <= value as usize {
                self.program.recipe_cost.resize(value as usize + 1, 1.0);
            }
        }
        vreg
    }

    pub fn fixed_def(&mut self, op: Op, row: u16) -> VReg {
        let vreg = self.vreg(ROWS);
        let mut def = plain(vreg, OperandKind::Def, ROWS);
        def.fixed = Some(Unit(row));
        self.emit(op, vec![def], ClobberId(0), false);
        vreg
    }

    pub fn fixed_use(&mut self, vreg: VReg, row: u16) {
        let mut operand = self.used(vreg);
        operand.fixed = Some(Unit(row));
        self.emit(Op::Out, vec![operand], ClobberId(0), false);
    }

    pub fn select(&mut self, flag: VReg, source: VReg, old: VReg) -> VReg {
        self.op(Op::Select, &[flag, source, old])
    }

    pub fn out(&mut self, vreg: VReg) {
        let operand = self.used(vreg);
        self.emit(Op::Out, vec![operand], ClobberId(0), false);
    }

    pub fn keep(&mut self, values: &[VReg]) {
        let operands = values.iter().map(|&vreg| self.used(vreg)).collect();
        self.emit(Op::Keep, operands, ClobberId(0), false);
    }

    pub fn jump(&mut self, to: usize, args: &[VReg]) {
        self.emit(Op::Jump, Vec::new(), ClobberId(0), false);
        self.blocks[self.current].succs.push((to, args.to_vec()));
    }

    pub fn branch_any(&mut self, value: VReg, yes: usize, no: usize) {
        let operand = self.used(value);
        self.emit(Op::BranchAny, vec![operand], ClobberId(0), false);
        self.blocks[self.current].succs = vec![(yes, Vec::new()), (no, Vec::new())];
    }

    /// Add an argument to the edge into a block with one predecessor.
    pub fn argument(&mut self, to: usize, arg: VReg) {
        for draft in &mut self.blocks {
            for edge in draft.succs.iter_mut().filter(|edge| edge.0 == to) {
                edge.1.push(arg);
            }
        }
    }

    /// `count` values made from `seed` and a constant each.
    pub fn many(&mut self, count: u32, seed: VReg) -> Vec<VReg> {
        (0..count)
            .map(|k| {
                let c = self.op(Op::Const(k + 3), &[]);
                self.op(Op::Mul, &[seed, c])
            })
            .collect()
    }

    pub fn sum(&mut self, values: &[VReg]) -> VReg {
        let mut sum = values[0];
        for &value in &values[1..] {
            sum = self.op(Op::Add, &[sum, value]);
        }
        sum
    }

    pub fn finish(mut self) -> Lanes {
        self.emit(Op::End, Vec::new(), ClobberId(0), false);
        let program = &mut self.program;
        for draft in &self.blocks {
            let start = program.insts.len() as u32;
            for (op, info, operands) in &draft.insts {
                let first = program.operands.len() as u32;
                program.operands.extend_from_slice(operands);
                program
                    .insts
                    .push(InstInfo { operands: first..program.operands.len() as u32, ..info.clone() });
                self.ops.push(*op);
            }
            let edge = |(to, args): &(usize, Vec<VReg>)| Edge { to: Block(*to as u32), args: args.clone() };
            program.blocks.push(BlockInfo {
                insts: start..program.insts.len() as u32,
                params: draft.params.clone(),
                succs: draft.succs.iter().map(edge).collect(),
                preds: Vec::new(),
                frequency: draft.frequency,
                loop_depth: 0,
            });
        }
        for (index, draft) in self.blocks.iter().enumerate() {
            for (to, _) in &draft.succs {
                program.blocks[*to].preds.push(Block(index as u32));
            }
        }
        self
    }

    /// What the virtual program puts out.
    pub fn run_virtual(&self) -> Result<Vec<Poisoned>, String> {
        let mut values: Vec<Poisoned> = vec![[None; LANES]; self.program.vregs.len()];
        let mut out = Vec::new();
        let mut block = 0usize;
        for _ in 0..10_000 {
            let info = &self.program.blocks[block];
            let mut next = None;
            for inst in info.insts.clone() {
                let ops = self.operands(inst);
                let uses = ops.iter().filter(|op| op.kind == OperandKind::Use);
                let read: Vec<Poisoned> = uses.map(|op| values[op.vreg.0 as usize]).collect();
                let op = self.ops[inst as usize];
                match op {
                    Op::Out => out.push(read[0]),
                    Op::Keep => {}
                    Op::Jump => next = Some(0),
                    Op::BranchAny => next = Some(read[0].iter().all(|lane| lane.unwrap_or(0) == 0) as usize),
                    Op::End => return Ok(out),
                    _ => {
                        let result = std::array::from_fn(|lane| lane_of(op, lane, &read));
                        for operand in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                            values[operand.vreg.0 as usize] = result;
                        }
                    }
                }
            }
            let edge = &info.succs[next.ok_or("no terminator")?];
            let args: Vec<Poisoned> = edge.args.iter().map(|arg| values[arg.0 as usize]).collect();
            block = edge.to.0 as usize;
            for (param, value) in self.program.blocks[block].params.iter().zip(args) {
                values[param.0 as usize] = value;
            }
        }
        Err("does not end".into())
    }

    /// What the allocated program puts out.
    pub fn run_allocated(&self, file: &RegisterFile, allocation: &Allocation) -> Result<Vec<Real>, String> {
        let junk = |seed: u64| -> Real { std::array::from_fn(|lane| mix(seed * 64 + lane as u64) as u32) };
        let mut units: Vec<Real> = (0..file.units.len()).map(|k| junk(k as u64 + 1)).collect();
        let mut slots: Vec<Real> = (0..allocation.slots).map(|k| junk(k as u64 + 5000)).collect();
        let mut lost = 10_000;
        let mut clobber = |units: &mut Vec<Real>, clobbers: ClobberId| {
            for unit in file.clobbers.get(clobbers.0 as usize).into_iter().flatten() {
                lost += 1;
                units[unit.0 as usize] = junk(lost);
            }
        };
        let mut edits: Vec<Vec<Edit>> = vec![Vec::new(); self.program.insts.len()];
        for &(point, edit) in &allocation.edits {
            match point {
                Point::Before(inst) => edits[inst.0 as usize].push(edit),
                Point::After(inst) => edits[inst.0 as usize + 1].push(edit),
            }
        }
        let mut out = Vec::new();
        let mut block = 0usize;
        for _ in 0..10_000 {
            let info = &self.program.blocks[block];
            let mut next = None;
            for inst in info.insts.clone() {
                for edit in &edits[inst as usize] {
                    match *edit {
                        Edit::Copy { from, to } => units[to.0 as usize] = units[from.0 as usize],
                        Edit::Swap { a, b } => units.swap(a.0 as usize, b.0 as usize),
                        Edit::Spill { from, slot } => {
                            let value = units[from.0 as usize];
                            clobber(&mut units, file.memory_edit_clobbers);
                            slots[slot.0 as usize] = value;
                        }
                        Edit::Fill { slot, to } => {
                            clobber(&mut units, file.memory_edit_clobbers);
                            units[to.0 as usize] = slots[slot.0 as usize];
                        }
                        Edit::Recompute { recipe, to } => units[to.0 as usize] = [recipe.0; LANES],
                        Edit::Repeat { inst, from, to } => {
                            let read = from.map(|unit| units[unit.0 as usize].map(Some));
                            let op = self.ops[inst.0 as usize];
                            units[to.0 as usize] =
                                std::array::from_fn(|lane| lane_of(op, lane, &read).unwrap_or(0));
                        }
                    }
                }
                let ops = self.operands(inst);
                let first = self.program.insts[inst as usize].operands.start;
                let place = |k: usize| allocation.places[first as usize + k].0 as usize;
                let uses = (0..ops.len()).filter(|&k| ops[k].kind == OperandKind::Use);
                let read: Vec<Poisoned> = uses.map(|k| units[place(k)].map(Some)).collect();
                clobber(&mut units, self.program.insts[inst as usize].clobbers);
                let op = self.ops[inst as usize];
                match op {
                    Op::Out => out.push(read[0].map(|lane| lane.unwrap_or(0))),
                    Op::Keep => {}
                    Op::Jump => next = Some(0),
                    Op::BranchAny => next = Some(read[0].iter().all(|lane| lane.unwrap_or(0) == 0) as usize),
                    Op::End => return Ok(out),
                    _ => {
                        for k in (0..ops.len()).filter(|&k| ops[k].kind != OperandKind::Use) {
                            units[place(k)] =
                                std::array::from_fn(|lane| lane_of(op, lane, &read).unwrap_or(0));
                        }
                    }
                }
            }
            block = info.succs[next.ok_or("no terminator")?].to.0 as usize;
        }
        Err("does not end".into())
    }

    fn operands(&self, inst: u32) -> &[Operand] {
        let info = &self.program.insts[inst as usize];
        &self.program.operands[info.operands.start as usize..info.operands.end as usize]
    }
}

fn lane_of(op: Op, lane: usize, read: &[Poisoned]) -> Option<u32> {
    let get = |index: usize| read[index][lane];
    Some(match op {
        Op::Lane => lane as u32,
        Op::Const(value) => value,
        Op::Input(k) => mix(k as u64 * 97 + lane as u64) as u32,
        Op::Add => get(0)?.wrapping_add(get(1)?),
        Op::Mul => get(0)?.wrapping_mul(get(1)?),
        Op::Xor => get(0)? ^ get(1)?,
        Op::Less => (get(0)? < get(1)?) as u32,
        Op::NotZero | Op::FromFlag => (get(0)? != 0) as u32,
        Op::And => get(0)? & get(1)?,
        Op::Not => (get(0)? == 0) as u32,
        Op::Move => get(0)?,
        Op::Select => {
            if get(0)? != 0 {
                get(1)?
            } else {
                get(2)?
            }
        }
        Op::Load => mix(get(0)? as u64 + 12345) as u32,
        Op::Exchange => mix(get(0)? as u64 * 3 + get(1)? as u64) as u32,
        Op::Derivative => read[0][lane | 1]?.wrapping_sub(read[0][lane & !1]?),
        Op::Out | Op::Keep | Op::Jump | Op::BranchAny | Op::End => return None,
    })
}
