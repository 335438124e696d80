//! Is the allocation problem well formed? Everything the later passes rely on is checked here once, so that no input
//! can make them panic. What is left out: that every use is dominated by its definition follows from liveness (no
//! value may be live at the entry) and is checked there.

use crate::graph::{Graph, NONE};
use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::*;

/// A text that says what is wrong.
pub(crate) type Verdict = Result<(), String>;

macro_rules! demand {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!($($text)*));
        }
    };
}

pub(crate) fn verify_file(file: &RegisterFile) -> Verdict {
    let units = file.units.len();
    demand!(units <= MAX_UNITS, "{units} units, at most {MAX_UNITS} are supported");
    demand!(file.sets.len() <= 64, "{} sets, at most 64 are supported", file.sets.len());
    demand!(file.clobbers.len() <= 255, "{} clobber masks, at most 255 are supported", file.clobbers.len());
    let known = |list: &[Unit]| list.iter().all(|unit| (unit.0 as usize) < units);
    demand!(file.clobbers.first().is_none_or(|mask| mask.is_empty()), "clobber mask 0 is not empty");
    for (index, mask) in file.clobbers.iter().enumerate() {
        demand!(known(mask), "clobber mask {index} names an unknown unit");
    }
    demand!(known(&file.edit_reserved), "edit_reserved names an unknown unit");
    demand!(
        file.memory_edit_clobbers == ClobberId(0)
            || (file.memory_edit_clobbers.0 as usize) < file.clobbers.len(),
        "memory_edit_clobbers is unknown"
    );
    for set in &file.sets {
        demand!(known(&set.units), "set {} names an unknown unit", set.name);
        demand!(!set.units.is_empty(), "set {} is empty", set.name);
        if let Backing::Set(backing) = set.backing {
            let Some(behind) = file.sets.get(backing.0 as usize) else {
                return Err(format!("set {} is backed by an unknown set", set.name));
            };
            demand!(
                behind.backing == Backing::Memory,
                "set {} is backed by set {}, which is not backed by memory",
                set.name,
                behind.name
            );
        }
    }
    Ok(())
}

pub(crate) fn verify_program(file: &RegisterFile, program: &Program) -> Verdict {
    demand!(!program.blocks.is_empty(), "no blocks");
    demand!(program.insts.len() < u32::MAX as usize / 4, "too many instructions");
    demand!(program.vregs.len() < u32::MAX as usize / 4, "too many virtual registers");
    let mut recipe_size = vec![0u8; program.recipe_cost.len()];
    for (index, info) in program.vregs.iter().enumerate() {
        demand!((info.home.0 as usize) < file.sets.len(), "v{index} has an unknown home set");
        demand!((1..=64).contains(&info.size), "v{index} has size {}", info.size);
        if let Some(recipe) = info.recipe {
            let Some(size) = recipe_size.get_mut(recipe.0 as usize) else {
                return Err(format!("v{index} has an unknown recipe"));
            };
            demand!(*size == 0 || *size == info.size, "recipe {} makes values of two sizes", recipe.0);
            *size = info.size;
        }
    }
    let sets: Vec<UnitMask> = file.sets.iter().map(|set| UnitMask::of(&set.units)).collect();
    let mut defined = vec![false; program.vregs.len()];
    let mut define = |vreg: VReg, at: &str| -> Verdict {
        let Some(flag) = defined.get_mut(vreg.0 as usize) else {
            return Err(format!("{at}: v{} does not exist", vreg.0));
        };
        demand!(!*flag, "{at}: v{} is defined twice", vreg.0);
        demand!(!program.vregs[vreg.0 as usize].undefined, "{at}: v{} is undefined but written", vreg.0);
        *flag = true;
        Ok(())
    };
    let mut next = 0;
    for (index, block) in program.blocks.iter().enumerate() {
        let at = format!("block {index}");
        demand!(block.insts.start == next && block.insts.end > next, "{at}: instructions do not follow on");
        demand!(block.insts.end as usize <= program.insts.len(), "{at}: instructions out of range");
        next = block.insts.end;
        for &param in &block.params {
            define(param, &at)?;
        }
        verify_edges(program, index, block)?;
        for inst in block.insts.clone() {
            verify_inst(file, &sets, program, inst)?;
            for operand in operands(program, inst)? {
                if operand.kind != OperandKind::Use {
                    define(operand.vreg, &format!("instruction {inst}"))?;
                }
            }
        }
        let last = &program.insts[block.insts.end as usize - 1];
        let list = operands(program, block.insts.end - 1)?;
        demand!(list.iter().all(|o| o.kind == OperandKind::Use), "{at}: the terminator defines something");
        if block.succs.len() == 1 {
            demand!(
                list.is_empty() && last.clobbers == ClobberId(0),
                "{at}: the terminator of a block with one successor has operands or clobbers"
            );
        }
    }
    demand!(next as usize == program.insts.len(), "instructions outside all blocks");
    demand!(program.blocks[0].preds.is_empty(), "the entry has predecessors");
    demand!(program.blocks[0].params.is_empty(), "the entry has parameters");
    Ok(())
}

pub(crate) fn verify_reachable(program: &Program, graph: &Graph) -> Verdict {
    for index in 0..program.blocks.len() {
        demand!(graph.rpo_index[index] != NONE, "block {index} cannot be reached");
    }
    Ok(())
}

fn operands(program: &Program, inst: u32) -> Result<&[Operand], String> {
    let range = &program.insts[inst as usize].operands;
    program
        .operands
        .get(range.start as usize..range.end as usize)
        .ok_or_else(|| format!("instruction {inst}: operands out of range"))
}

fn verify_edges(program: &Program, index: usize, block: &BlockInfo) -> Verdict {
    let at = format!("block {index}");
    for edge in &block.succs {
        let Some(to) = program.blocks.get(edge.to.0 as usize) else {
            return Err(format!("{at}: successor {} does not exist", edge.to.0));
        };
        demand!(edge.args.len() == to.params.len(), "{at}: arguments for block {} do not match", edge.to.0);
        let count = to.preds.iter().filter(|pred| pred.0 as usize == index).count();
        let edges = block.succs.iter().filter(|other| other.to == edge.to).count();
        demand!(count == edges, "{at}: predecessors of block {} do not match", edge.to.0);
        demand!(
            block.succs.len() == 1 || to.preds.len() == 1,
            "{at}: the edge to block {} is critical",
            edge.to.0
        );
        for (&arg, &param) in edge.args.iter().zip(&to.params) {
            let (Some(a), Some(p)) = (program.vregs.get(arg.0 as usize), program.vregs.get(param.0 as usize))
            else {
                return Err(format!("{at}: an argument for block {} does not exist", edge.to.0));
            };
            demand!(a.size == p.size, "{at}: argument v{} and parameter v{} differ in size", arg.0, param.0);
        }
    }
    for pred in &block.preds {
        let Some(from) = program.blocks.get(pred.0 as usize) else {
            return Err(format!("{at}: predecessor {} does not exist", pred.0));
        };
        demand!(
            from.succs.iter().any(|edge| edge.to.0 as usize == index),
            "{at}: block {} is no predecessor",
            pred.0
        );
    }
    Ok(())
}

fn verify_inst(file: &RegisterFile, sets: &[UnitMask], program: &Program, inst: u32) -> Verdict {
    let at = format!("instruction {inst}");
    let info = &program.insts[inst as usize];
    demand!(
        info.clobbers == ClobberId(0) || (info.clobbers.0 as usize) < file.clobbers.len(),
        "{at}: unknown clobbers"
    );
    let list = operands(program, inst)?;
    if info.repeat.is_some() {
        let defs = list.iter().filter(|op| op.kind == OperandKind::Def).count();
        let plain = |op: &Operand| {
            let vreg = program.vregs.get(op.vreg.0 as usize);
            let in_memory =
                |set: SetId| file.sets.get(set.0 as usize).is_some_and(|s| s.backing == Backing::Memory);
            op.fixed.is_none()
                && op.tied.is_none()
                && op.vector.is_none()
                && vreg.is_some_and(|info| info.size == 1 && !info.undefined && in_memory(info.home))
        };
        demand!(
            defs == 1
                && (2..=1 + MAX_REPEAT_USES).contains(&list.len())
                && list.iter().all(|op| op.kind != OperandKind::EarlyDef && plain(op))
                && info.clobbers == ClobberId(0),
            "{at}: cannot be repeated"
        );
    }
    demand!(list.len() <= 250, "{at}: {} operands, at most 250 are supported", list.len());
    for (index, operand) in list.iter().enumerate() {
        let Some(vreg) = program.vregs.get(operand.vreg.0 as usize) else {
            return Err(format!("{at}: v{} does not exist", operand.vreg.0));
        };
        let Some(set) = file.sets.get(operand.set.0 as usize) else {
            return Err(format!("{at}: operand {index} has an unknown set"));
        };
        if operand.set != vreg.home {
            let home = &file.sets[vreg.home.0 as usize];
            demand!(
                sets[operand.set.0 as usize].is_subset_of(&sets[vreg.home.0 as usize]),
                "{at}: operand {index} wants set {}, outside the home set {} of v{}",
                set.name,
                home.name,
                operand.vreg.0
            );
        }
        if let Some(unit) = operand.fixed {
            demand!(
                sets[operand.set.0 as usize].contains(unit),
                "{at}: operand {index} is fixed outside its set"
            );
        }
        if let Some(tied) = operand.tied {
            demand!(operand.kind != OperandKind::Use, "{at}: operand {index} is a tied use");
            let Some(other) = list.get(tied as usize) else {
                return Err(format!("{at}: operand {index} is tied to nothing"));
            };
            demand!(other.kind == OperandKind::Use, "{at}: operand {index} is tied to a def");
            let size = program.vregs[other.vreg.0 as usize].size;
            demand!(size == vreg.size, "{at}: operand {index} is tied to another size");
            let both = list.iter().filter(|o| o.tied == Some(tied)).count();
            demand!(both == 1, "{at}: two defs are tied to operand {tied}");
        }
        if let Some(part) = operand.vector {
            demand!(part.align.is_power_of_two(), "{at}: operand {index} has alignment {}", part.align);
            demand!(vreg.size == 1, "{at}: operand {index} is a wide member of a vector");
            let members = list.iter().filter_map(|o| o.vector.map(|v| (v, o.kind == OperandKind::Use)));
            let mine: Vec<_> = members.filter(|(v, _)| v.group == part.group).collect();
            demand!((part.index as usize) < mine.len(), "{at}: operand {index} leaves a hole in its vector");
            for (v, is_use) in &mine {
                demand!(v.align == part.align, "{at}: a vector operand with two alignments");
                demand!(
                    *is_use == (operand.kind == OperandKind::Use),
                    "{at}: a vector operand with uses and defs"
                );
            }
            let same = mine.iter().filter(|(v, _)| v.index == part.index).count();
            demand!(same == 1, "{at}: two members of a vector operand have the same position");
        }
    }
    Ok(())
}
