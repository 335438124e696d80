//! Machine code before allocation as text, for people. It cannot be read back.

use crate::function::Mir;
use kempe_ra::{Operand, OperandKind, VReg};
use std::fmt::{Display, Write};

/// The text of a function: one instruction a line, registers as `v7` with the name of the source behind it where it is
/// known. The operands stand in front of what the target says about the instruction.
pub fn print<I: Display>(mir: &Mir<I>) -> String {
    let mut out = String::new();
    let list = |vregs: &[VReg]| vregs.iter().map(|&v| vreg(mir, v)).collect::<Vec<_>>().join(", ");
    for (b, block) in mir.program.blocks.iter().enumerate() {
        // Writing into a String cannot fail.
        writeln!(
            out,
            "block{b}({}):  ; frequency {}, loop depth {}",
            list(&block.params),
            block.frequency,
            block.loop_depth
        )
        .unwrap_or_default();
        for i in block.insts.clone() {
            let inst = &mir.program.insts[i as usize];
            let operands = &mir.program.operands[inst.operands.start as usize..inst.operands.end as usize];
            let pick = |def: bool| {
                let of_kind = operands.iter().filter(|o| (o.kind != OperandKind::Use) == def);
                of_kind.map(|o| operand(mir, o)).collect::<Vec<_>>().join(", ")
            };
            let (defs, uses) = (pick(true), pick(false));
            let equals = if defs.is_empty() { "" } else { " = " };
            let gap = if uses.is_empty() { "" } else { "  " };
            writeln!(out, "  {i:>4}: {defs}{equals}{uses}{gap}; {}", mir.data[i as usize])
                .unwrap_or_default();
        }
        for edge in &block.succs {
            writeln!(out, "        -> block{}({})", edge.to.0, list(&edge.args)).unwrap_or_default();
        }
    }
    out
}

fn vreg<I>(mir: &Mir<I>, v: VReg) -> String {
    match mir.names.get(v.0 as usize) {
        Some(name) if !name.is_empty() => format!("v{}.{name}", v.0),
        _ => format!("v{}", v.0),
    }
}

fn operand<I>(mir: &Mir<I>, o: &Operand) -> String {
    let mut text = vreg(mir, o.vreg);
    if o.kind == OperandKind::EarlyDef {
        text.push_str(" early");
    }
    if let Some(unit) = o.fixed {
        write!(text, " in u{}", unit.0).unwrap_or_default();
    }
    if let Some(n) = o.tied {
        write!(text, " tied to {n}").unwrap_or_default();
    }
    text
}
