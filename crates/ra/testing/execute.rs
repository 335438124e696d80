//! Runs a virtual program and its allocation side by side on the same path through the blocks.
//!
//! A value is a hash of what made it: the instruction, the def and the values it read. The virtual program keeps one
//! value per virtual register, the allocated one a value per unit and slot, and does what the edits and clobbers do,
//! nothing else. Every operand that is read must hold what the virtual program holds; undefined values are poison, and
//! what is made from them is not compared.

use kempe_ra::*;

use super::rng::{Rng, mix};

const POISON: u64 = 0;

fn hash(parts: &[u64]) -> u64 {
    let mut h = 0x1234_5678_9abc_def1;
    for &part in parts {
        h = mix(h ^ part).wrapping_add(0x9e37_79b9);
    }
    h | 1
}

fn part_of(value: u64, part: u32) -> u64 {
    if value == POISON { POISON } else { hash(&[value, part as u64 + 77]) }
}

/// What a recipe makes.
fn made(recipe: Recipe) -> u64 {
    hash(&[0xc0de, recipe.0 as u64])
}

pub struct Machine<'a> {
    file: &'a RegisterFile,
    program: &'a Program,
    allocation: &'a Allocation,
    /// Edits before every instruction (those after the one before included).
    edits: Vec<Vec<Edit>>,
}

impl<'a> Machine<'a> {
    pub fn new(file: &'a RegisterFile, program: &'a Program, allocation: &'a Allocation) -> Machine<'a> {
        let mut edits = vec![Vec::new(); program.insts.len()];
        for &(point, edit) in &allocation.edits {
            let inst = match point {
                Point::Before(inst) => inst.0,
                Point::After(inst) => inst.0 + 1,
            };
            if let Some(list) = edits.get_mut(inst as usize) {
                list.push(edit);
            }
        }
        Machine { file, program, allocation, edits }
    }

    /// Run `rounds` paths of at most `blocks` blocks each; the first difference is the error.
    pub fn run(&self, seed: u64, rounds: u32, blocks: u32) -> Result<(), String> {
        for round in 0..rounds {
            self.path(&mut Rng::new(seed ^ mix(round as u64 + 1)), blocks)?;
        }
        Ok(())
    }

    fn path(&self, rng: &mut Rng, blocks: u32) -> Result<(), String> {
        let program = self.program;
        let mut virtuals = vec![POISON; program.vregs.len()];
        let mut units: Vec<u64> = (0..self.file.units.len()).map(|k| hash(&[0xbad, k as u64])).collect();
        let mut slots: Vec<u64> = (0..self.allocation.slots).map(|k| hash(&[0xbad5, k as u64])).collect();
        let mut junk = 0u64;
        let mut block = 0usize;
        for _ in 0..blocks {
            let info = &program.blocks[block];
            for inst in info.insts.clone() {
                for edit in &self.edits[inst as usize] {
                    self.edit(*edit, &virtuals, &mut units, &mut slots, &mut junk)
                        .map_err(|text| format!("before instruction {inst}: {edit:?}: {text}"))?;
                }
                self.inst(inst, &mut virtuals, &mut units, &mut junk)
                    .map_err(|text| format!("instruction {inst} in block {block}: {text}"))?;
            }
            if info.succs.is_empty() {
                return Ok(());
            }
            let edge = &info.succs[rng.below(info.succs.len() as u32) as usize];
            let values: Vec<u64> = edge.args.iter().map(|arg| virtuals[arg.0 as usize]).collect();
            block = edge.to.0 as usize;
            for (&param, value) in program.blocks[block].params.iter().zip(values) {
                virtuals[param.0 as usize] = value;
            }
        }
        Ok(())
    }

    fn clobber(&self, clobbers: ClobberId, units: &mut [u64], junk: &mut u64) {
        for unit in self.file.clobbers.get(clobbers.0 as usize).into_iter().flatten() {
            *junk += 1;
            units[unit.0 as usize] = hash(&[0xdead, *junk]);
        }
    }

    fn edit(
        &self,
        edit: Edit,
        virtuals: &[u64],
        units: &mut [u64],
        slots: &mut [u64],
        junk: &mut u64,
    ) -> Result<(), String> {
        let lost = self.file.memory_edit_clobbers;
        let out_of_range = || "out of range".to_string();
        let unit_ok = |unit: Unit| (unit.0 as usize) < self.file.units.len();
        match edit {
            Edit::Copy { from, to } => {
                if !unit_ok(from) || !unit_ok(to) {
                    return Err(out_of_range());
                }
                units[to.0 as usize] = units[from.0 as usize];
            }
            Edit::Swap { a, b } => {
                if !unit_ok(a) || !unit_ok(b) {
                    return Err(out_of_range());
                }
                units.swap(a.0 as usize, b.0 as usize);
            }
            Edit::Spill { from, slot } => {
                let value = *units.get(from.0 as usize).ok_or_else(out_of_range)?;
                self.clobber(lost, units, junk);
                *slots.get_mut(slot.0 as usize).ok_or_else(out_of_range)? = value;
            }
            Edit::Fill { slot, to } => {
                let value = *slots.get(slot.0 as usize).ok_or_else(out_of_range)?;
                self.clobber(lost, units, junk);
                *units.get_mut(to.0 as usize).ok_or_else(out_of_range)? = value;
            }
            Edit::Recompute { recipe, to } => {
                let size = self.program.vregs.iter().find(|info| info.recipe == Some(recipe));
                let size = size.map_or(1, |info| info.size as u32);
                for part in 0..size {
                    let unit = units.get_mut(to.0 as usize + part as usize).ok_or_else(out_of_range)?;
                    *unit = part_of(made(recipe), part);
                }
            }
            Edit::Repeat { inst, from, to } => {
                // From what its inputs are now, whenever the value was made.
                let range = self.program.insts[inst.0 as usize].operands.clone();
                let ops = &self.program.operands[range.start as usize..range.end as usize];
                let mut inputs = vec![inst.0 as u64];
                for (op, unit) in ops.iter().filter(|op| op.kind == OperandKind::Use).zip(from) {
                    let value = virtuals[op.vreg.0 as usize];
                    let found = *units.get(unit.0 as usize).ok_or_else(out_of_range)?;
                    if value != POISON && found != part_of(value, 0) {
                        return Err(format!("v{} is not there", op.vreg.0));
                    }
                    inputs.push(value);
                }
                let def = ops.iter().position(|op| op.kind != OperandKind::Use).ok_or_else(out_of_range)?;
                *junk += 1;
                let value = match inputs.contains(&POISON) {
                    true => hash(&[0xdead, *junk]),
                    false => {
                        inputs.push(def as u64 | 1 << 40);
                        hash(&inputs)
                    }
                };
                *units.get_mut(to.0 as usize).ok_or_else(out_of_range)? = part_of(value, 0);
            }
        }
        Ok(())
    }

    fn inst(&self, inst: u32, virtuals: &mut [u64], units: &mut [u64], junk: &mut u64) -> Result<(), String> {
        let program = self.program;
        let info = &program.insts[inst as usize];
        let range = info.operands.start as usize..info.operands.end as usize;
        let ops = &program.operands[range.clone()];
        let places = &self.allocation.places[range];
        let size = |op: &Operand| program.vregs[op.vreg.0 as usize].size as u32;
        // The tied use of an early def is read before anything is written.
        let mut before: Vec<(usize, Vec<u64>)> = Vec::new();
        for op in ops.iter().filter(|op| op.kind == OperandKind::EarlyDef) {
            if let Some(tied) = op.tied {
                let parts = (0..size(op)).map(|k| units[places[tied as usize].0 as usize + k as usize]);
                before.push((tied as usize, parts.collect()));
            }
        }
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind == OperandKind::EarlyDef) {
            for part in 0..size(op) {
                *junk += 1;
                units[places[index].0 as usize + part as usize] = hash(&[0xea21, *junk]);
            }
        }
        let mut inputs: Vec<u64> = vec![inst as u64];
        let mut poisoned = false;
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind == OperandKind::Use) {
            let vreg = &program.vregs[op.vreg.0 as usize];
            if vreg.undefined {
                // Anything is read; the instruction does not look at it.
                continue;
            }
            let value = virtuals[op.vreg.0 as usize];
            if value == POISON {
                poisoned = true;
                continue;
            }
            for part in 0..size(op) {
                let early = before.iter().find(|entry| entry.0 == index);
                let found = match early {
                    Some((_, parts)) => parts[part as usize],
                    None => units[places[index].0 as usize + part as usize],
                };
                if found != part_of(value, part) {
                    return Err(format!(
                        "operand {index}: {} does not hold part {part} of v{}",
                        self.file.units[places[index].0 as usize + part as usize],
                        op.vreg.0
                    ));
                }
            }
            inputs.push(value);
        }
        self.clobber(info.clobbers, units, junk);
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.kind != OperandKind::Use) {
            inputs.push(index as u64 | 1 << 40);
            let value = match program.vregs[op.vreg.0 as usize].recipe {
                Some(recipe) => made(recipe),
                None if poisoned => POISON,
                None => hash(&inputs),
            };
            virtuals[op.vreg.0 as usize] = value;
            let unused =
                self.allocation.unused_defs.binary_search(&(self.index_of(inst) + index as u32)).is_ok();
            for part in 0..size(op) {
                *junk += 1;
                let written = if unused { hash(&[0xdead, *junk]) } else { part_of(value, part) };
                units[places[index].0 as usize + part as usize] = written;
            }
        }
        Ok(())
    }

    fn index_of(&self, inst: u32) -> u32 {
        self.program.insts[inst as usize].operands.start
    }
}
