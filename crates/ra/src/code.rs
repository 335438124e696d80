//! The allocator's own view of the program: a list of steps per block. At first every step is an instruction; spilling
//! rewrites the list with the edits it decided on standing in it as steps with operands of their own, so that everything
//! after it (liveness, colouring) sees a store, a fill or a recomputation as an instruction with all its side effects.
//!
//! A value keeps its number when it is filled again: between a step that drops it and the fill it is simply not
//! resident. That is why no SSA form has to be repaired after spilling.
//!
//! Parameters of blocks with one predecessor are the same value as their argument (the parameter's live range lies in
//! what its block dominates, where the argument is not defined again) and take its name here.

use std::ops::Range;

use smallvec::SmallVec;

use crate::graph::Graph;
use crate::problem::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepKind {
    Inst,
    /// Use, def: a value into its shadow in the backing set and back, or a parameter with a home of its own.
    Copy,
    /// Def.
    Remake(Recipe),
    /// Use; a wide value takes consecutive slots.
    Store(u32),
    /// Def.
    Fill(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub kind: StepKind,
    pub first_op: u32,
    pub last_op: u32,
    pub clobbers: ClobberId,
    /// No memory edit directly before this step.
    pub no_memory: bool,
    pub is_move: bool,
    /// The instruction itself, or the one before which this edit stands.
    pub inst: u32,
}

impl Step {
    pub fn ops(&self) -> Range<usize> {
        self.first_op as usize..self.last_op as usize
    }
}

/// The value stays live after this operand's step.
pub(crate) const LIVES: u8 = 0;
/// Last use (or a def that is never read).
pub(crate) const DIES: u8 = 1;
/// Another operand of the same step with the same value that dies; counted only once.
pub(crate) const DIES_AGAIN: u8 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct CodeBlock {
    pub steps: Range<u32>,
    pub params: SmallVec<[u32; 4]>,
    pub succs: SmallVec<[CodeEdge; 2]>,
    pub preds: SmallVec<[u32; 2]>,
    pub frequency: f32,
}

#[derive(Clone, Debug)]
pub(crate) struct CodeEdge {
    pub to: u32,
    pub args: SmallVec<[u32; 4]>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub blocks: Vec<CodeBlock>,
    pub steps: Vec<Step>,
    pub ops: Vec<Operand>,
    /// Index of the operand in the program, or `u32::MAX` for operands of edits.
    pub real: Vec<u32>,
    /// [`LIVES`], [`DIES`] or [`DIES_AGAIN`], filled in by liveness.
    pub kills: Vec<u8>,
    pub vregs: Vec<VRegInfo>,
}

/// By value: does an instruction read it, directly or through parameters?
fn read_values(program: &Program) -> Vec<bool> {
    let mut read = vec![false; program.vregs.len()];
    let mut param_of = vec![(u32::MAX, 0); program.vregs.len()];
    for (block, info) in program.blocks.iter().enumerate() {
        for (index, param) in info.params.iter().enumerate() {
            param_of[param.0 as usize] = (block as u32, index);
        }
    }
    let mut waiting: Vec<VReg> = Vec::new();
    let uses = program.operands.iter().filter(|op| op.kind == OperandKind::Use).map(|op| op.vreg);
    for vreg in uses {
        if !std::mem::replace(&mut read[vreg.0 as usize], true) {
            waiting.push(vreg);
        }
    }
    while let Some(vreg) = waiting.pop() {
        let (block, index) = param_of[vreg.0 as usize];
        let Some(info) = program.blocks.get(block as usize) else { continue };
        for pred in &info.preds {
            let succs = &program.blocks[pred.0 as usize].succs;
            for arg in succs.iter().filter(|edge| edge.to.0 == block).map(|edge| edge.args[index]) {
                if !std::mem::replace(&mut read[arg.0 as usize], true) {
                    waiting.push(arg);
                }
            }
        }
    }
    read
}

/// Which values are one.
pub(crate) struct Names {
    /// By value of the program: the value that it is here.
    pub name: Vec<u32>,
    /// Parameters with a set of their own, which take a copy: block, parameter, argument.
    moved: Vec<(u32, u32, u32)>,
}

impl Names {
    pub fn new(program: &Program, graph: &Graph) -> Names {
        let mut name: Vec<u32> = (0..program.vregs.len() as u32).collect();
        let mut moved: Vec<(u32, u32, u32)> = Vec::new();
        let read = read_values(program);
        for &block in &graph.rpo {
            let info = &program.blocks[block as usize];
            if info.params.is_empty() || info.preds.len() != 1 {
                continue;
            }
            let from = &program.blocks[info.preds[0].0 as usize];
            let Some(edge) = from.succs.iter().find(|edge| edge.to.0 == block) else { continue };
            for (&param, &arg) in info.params.iter().zip(&edge.args) {
                let arg = name[arg.0 as usize];
                let source = &program.vregs[arg as usize];
                if source.undefined || source.home == program.vregs[param.0 as usize].home {
                    name[param.0 as usize] = arg;
                } else if read[param.0 as usize] {
                    // (A copy for a parameter that nothing reads would keep its argument alive.)
                    moved.push((block, param.0, arg));
                }
            }
        }
        Names { name, moved }
    }
}

impl Code {
    pub fn new(program: &Program, graph: &Graph) -> Code {
        let Names { name, mut moved } = Names::new(program, graph);
        let mut code = Code {
            blocks: Vec::with_capacity(program.blocks.len()),
            steps: Vec::with_capacity(program.insts.len()),
            ops: Vec::with_capacity(program.operands.len()),
            real: Vec::with_capacity(program.operands.len()),
            kills: Vec::new(),
            vregs: program.vregs.clone(),
        };
        moved.sort_unstable();
        for (index, info) in program.blocks.iter().enumerate() {
            let start = code.steps.len() as u32;
            let copies = moved.partition_point(|entry| entry.0 < index as u32);
            for &(_, param, arg) in moved[copies..].iter().take_while(|entry| entry.0 == index as u32) {
                code.push_copy(arg, param, info.insts.start);
            }
            for inst in info.insts.clone() {
                let source = &program.insts[inst as usize];
                let first_op = code.ops.len() as u32;
                for index in source.operands.clone() {
                    let mut operand = program.operands[index as usize];
                    operand.vreg = VReg(name[operand.vreg.0 as usize]);
                    code.ops.push(operand);
                    code.real.push(index);
                }
                code.steps.push(Step {
                    kind: StepKind::Inst,
                    first_op,
                    last_op: code.ops.len() as u32,
                    clobbers: source.clobbers,
                    no_memory: source.no_memory_edit_before,
                    is_move: source.is_move,
                    inst,
                });
            }
            let merges = info.preds.len() > 1;
            code.blocks.push(CodeBlock {
                steps: start..code.steps.len() as u32,
                params: info.params.iter().filter(|_| merges).map(|param| param.0).collect(),
                succs: info
                    .succs
                    .iter()
                    .map(|edge| CodeEdge {
                        to: edge.to.0,
                        args: if program.blocks[edge.to.0 as usize].preds.len() > 1 {
                            edge.args.iter().map(|arg| name[arg.0 as usize]).collect()
                        } else {
                            SmallVec::new()
                        },
                    })
                    .collect(),
                preds: info.preds.iter().map(|pred| pred.0).collect(),
                frequency: if info.frequency.is_finite() { info.frequency.max(1e-6) } else { 1.0 },
            });
        }
        code
    }

    /// An operand of an edit.
    pub fn plain(&self, vreg: u32, kind: OperandKind) -> Operand {
        let set = self.vregs[vreg as usize].home;
        Operand { vreg: VReg(vreg), kind, set, tied: None, fixed: None, hint: None, vector: None }
    }

    pub fn push_edit(
        &mut self,
        kind: StepKind,
        operands: &[(u32, OperandKind)],
        clobbers: ClobberId,
        inst: u32,
    ) {
        let first_op = self.ops.len() as u32;
        for &(vreg, kind) in operands {
            let operand = self.plain(vreg, kind);
            self.ops.push(operand);
            self.real.push(u32::MAX);
        }
        self.steps.push(Step {
            kind,
            first_op,
            last_op: self.ops.len() as u32,
            clobbers,
            no_memory: false,
            is_move: kind == StepKind::Copy,
            inst,
        });
    }

    pub fn push_copy(&mut self, from: u32, to: u32, inst: u32) {
        let operands = [(from, OperandKind::Use), (to, OperandKind::Def)];
        self.push_edit(StepKind::Copy, &operands, ClobberId(0), inst);
    }

    pub fn is_undefined(&self, vreg: u32) -> bool {
        self.vregs[vreg as usize].undefined
    }
}
