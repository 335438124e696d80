//! Text of a problem and its allocation, for looking at failures.

use std::fmt::Write;

use kempe_ra::*;

pub fn dump(file: &RegisterFile, program: &Program, allocation: Option<&Allocation>) -> String {
    let mut out = String::new();
    for set in &file.sets {
        let units: Vec<u16> = set.units.iter().map(|u| u.0).collect();
        let how = if set.rotate { ", in turn" } else { "" };
        let _ = writeln!(out, "set {} {units:?}, {:?}{how}", set.name, set.backing);
    }
    let numbers = |list: &[Unit]| list.iter().map(|u| u.0).collect::<Vec<u16>>();
    for (k, mask) in file.clobbers.iter().enumerate().skip(1) {
        let _ = writeln!(out, "clobbers {k} {:?}", numbers(mask));
    }
    let (reserved, narrow) = (numbers(&file.edit_reserved), numbers(&file.narrow));
    let _ = writeln!(
        out,
        "edits reserve {reserved:?}, clobber {}; narrow {narrow:?}",
        file.memory_edit_clobbers.0
    );
    for (index, block) in program.blocks.iter().enumerate() {
        let params: Vec<String> = block.params.iter().map(|v| name(program, file, *v)).collect();
        let preds: Vec<u32> = block.preds.iter().map(|b| b.0).collect();
        let _ = writeln!(out, "block {index} ({}) from {preds:?} x{}", params.join(", "), block.frequency);
        for inst in block.insts.clone() {
            for (point, edit) in allocation.into_iter().flat_map(|a| &a.edits) {
                let here =
                    *point == Point::Before(Inst(inst)) || inst > 0 && *point == Point::After(Inst(inst - 1));
                if here {
                    let _ = writeln!(out, "          | {edit:?}");
                }
            }
            let info = &program.insts[inst as usize];
            let mut text = String::new();
            for k in info.operands.clone() {
                let op = &program.operands[k as usize];
                let _ = write!(text, "  {:?} {}", op.kind, name(program, file, op.vreg));
                if op.set != program.vregs[op.vreg.0 as usize].home {
                    let _ = write!(text, " in {}", file.sets[op.set.0 as usize].name);
                }
                if let Some(tied) = op.tied {
                    let _ = write!(text, " tied {tied}");
                }
                if let Some(unit) = op.fixed {
                    let _ = write!(text, " fixed {}", file.units[unit.0 as usize]);
                }
                if let Some(v) = op.vector {
                    let _ = write!(text, " vec{}[{}]a{}", v.group.0, v.index, v.align);
                }
                if let Some(allocation) = allocation {
                    let _ = write!(text, " @{}", file.units[allocation.places[k as usize].0 as usize]);
                }
                text.push(';');
            }
            let _ = writeln!(
                out,
                "  {inst:4}: {}{}{text}",
                if info.clobbers.0 != 0 { format!("clobbers {} ", info.clobbers.0) } else { String::new() },
                if info.no_memory_edit_before { "nomem " } else { "" }
            );
        }
        for edge in &block.succs {
            let args: Vec<String> = edge.args.iter().map(|v| name(program, file, *v)).collect();
            let _ = writeln!(out, "    -> {} ({})", edge.to.0, args.join(", "));
        }
    }
    out
}

fn name(program: &Program, file: &RegisterFile, vreg: VReg) -> String {
    let info = &program.vregs[vreg.0 as usize];
    let mut out = format!("v{}", vreg.0);
    if info.undefined {
        out += "?";
    }
    let _ = write!(out, ":{}", file.sets[info.home.0 as usize].name);
    if info.size > 1 {
        let _ = write!(out, "x{}", info.size);
    }
    if let Some(recipe) = info.recipe {
        let _ = write!(out, "=r{}", recipe.0);
    }
    out
}
