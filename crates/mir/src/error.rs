//! Why there is no artifact.

use crate::Mir;
use kempe_ir::{Loc, Module};
use kempe_ra::{Failure, Inst, OperandKind, VReg};
use std::fmt;

/// Why there is no artifact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    pub message: String,
    /// Where in the source, if known.
    pub loc: Loc,
    /// A defect of the compiler, not of the program.
    pub internal: bool,
    /// If there are too few registers: how many it takes at least.
    pub needed: Option<u32>,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CompileError {}

impl CompileError {
    /// A defect of the compiler.
    pub fn bug(message: String) -> CompileError {
        CompileError { message, loc: Loc(0), internal: true, needed: None }
    }

    /// A program that cannot be made, at a place of the source (0: nowhere).
    pub fn refused(message: String, loc: Loc) -> CompileError {
        CompileError { message, loc, internal: false, needed: None }
    }
}

/// The message for a failed allocation: what is needed at once, by name or by what makes it, and how many registers that
/// takes at least. `limit`: the registers that the user allows.
pub fn out_of_registers<I: fmt::Display>(
    m: &Module,
    mir: &Mir<I>,
    limit: Option<u32>,
    failure: &Failure,
) -> CompileError {
    if let Failure::NeedsMemory { .. } = failure {
        return CompileError::refused(failure.to_string(), Loc(0));
    }
    let Failure::OutOfRegisters { at, live, needed, .. } = failure else {
        return CompileError::bug(failure.to_string());
    };
    let loc = mir.locs.get(at.0 as usize).copied().unwrap_or_default();
    let line =
        |inst: Inst| mir.locs.get(inst.0 as usize).and_then(|&loc| m.line(loc)).map(|place| place.line);
    let mut labels: Vec<(String, u32)> = Vec::new();
    for &vreg in live {
        let label = match mir.names.get(vreg.0 as usize).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => made_by(mir, vreg, &line),
        };
        match labels.iter_mut().find(|known| known.0 == label) {
            Some(known) => known.1 += 1,
            None => labels.push((label, 1)),
        }
    }
    let more = labels.len().saturating_sub(MAX_LABELS);
    labels.truncate(MAX_LABELS);
    let mut list: Vec<String> = (labels.into_iter())
        .map(|(label, times)| if times == 1 { label } else { format!("{times} x {label}") })
        .collect();
    if more != 0 {
        list.push(format!("{more} more"));
    }
    let at_line = line(*at).map_or(String::new(), |line| format!(" at line {line}"));
    let limit = limit.map_or(String::new(), |limit| format!(" where {limit} may be used"));
    let (count, list) = (live.len(), list.join(", "));
    CompileError {
        message: format!(
            "out of registers{at_line}: {count} values at once, and at least {needed} registers are needed{limit}: {list}"
        ),
        loc,
        internal: false,
        needed: Some(*needed),
    }
}

/// Most values that the message names.
const MAX_LABELS: usize = 12;

/// A value without a name: the operation that makes it, and where.
fn made_by<I: fmt::Display>(mir: &Mir<I>, vreg: VReg, line: &dyn Fn(Inst) -> Option<u32>) -> String {
    let defines =
        |inst: &Inst| mir.operands(*inst).iter().any(|o| o.vreg == vreg && o.kind != OperandKind::Use);
    let inst = (0..mir.data.len() as u32).map(Inst).find(defines);
    let block = mir.program.blocks.iter().find(|block| block.params.contains(&vreg));
    let what = match inst {
        Some(inst) => {
            let text = mir.data[inst.0 as usize].to_string();
            text.split(' ').next().unwrap_or_default().to_owned()
        }
        None => "merge".to_owned(),
    };
    let line = inst.or(block.map(|block| Inst(block.insts.start))).and_then(line);
    line.map_or_else(|| what.clone(), |line| format!("{what} of line {line}"))
}
