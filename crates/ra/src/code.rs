//! The allocator's own view of the program: a list of steps per block. At first every step is an instruction; spilling
//! rewrites the list with the edits it decided on standing in it as steps with operands of their own, so that everything
//! after it (liveness, colouring) sees a store, a fill or a recomputation as an instruction with all its side effects.
//!
//! A value keeps its number when it is filled again: between a step that drops it and the fill it is simply not
//! resident. That is why no SSA form has to be repaired after spilling.
//!
//! Parameters of blocks with one predecessor are the same value as their argument (the parameter's live range lies in
//! what its block dominates, where the argument is not defined again) and take its name here; so does every parameter
//! whose arguments are all the same value.

use std::ops::Range;

use std::rc::Rc;

use smallvec::SmallVec;

use crate::graph::{Graph, NONE};
use crate::problem::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepKind {
    Inst,
    /// Use, def: a value into its shadow in the backing set and back, or a parameter with a home of its own.
    Copy,
    /// Def.
    Remake(Recipe),
    /// The operands of this instruction, once more.
    Repeat(u32),
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
    /// Instructions that may be repeated.
    pub makers: Makers,
}

/// Instructions that may be repeated ([`InstInfo::repeat`]), by the value that they make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Makers {
    /// Index into `list` by value, or [`NONE`]; shorter than the values where spilling added some.
    of: Rc<[u32]>,
    list: Rc<[Maker]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub inst: u32,
    /// Its cost in cycles.
    pub cost: f32,
    pub ops: SmallVec<[Operand; 3]>,
}

impl Maker {
    /// What it reads.
    pub fn inputs(&self) -> impl Iterator<Item = u32> + '_ {
        self.ops.iter().filter(|op| op.kind == OperandKind::Use).map(|op| op.vreg.0)
    }
}

impl Makers {
    pub fn get(&self, vreg: u32) -> Option<&Maker> {
        self.of.get(vreg as usize).and_then(|&at| self.list.get(at as usize))
    }

    fn new(program: &Program, code: &Code) -> Makers {
        let mut of = vec![NONE; code.vregs.len()];
        let mut list = Vec::new();
        for step in code.steps.iter().filter(|step| step.kind == StepKind::Inst) {
            let Some(cost) = program.insts[step.inst as usize].repeat else { continue };
            let ops = SmallVec::from_slice(&code.ops[step.ops()]);
            let maker = Maker { inst: step.inst, cost, ops };
            let made = maker.ops.iter().find(|op| op.kind != OperandKind::Use).map(|op| op.vreg.0);
            let Some(made) = made.filter(|&vreg| code.vregs[vreg as usize].recipe.is_none()) else {
                continue;
            };
            of[made as usize] = list.len() as u32;
            list.push(maker);
        }
        Makers { of: of.into(), list: list.into() }
    }
}

/// Sweeps over the program that look for parameters which can only be one value. One sees everything in code without
/// loops; what the others find is rare.
const MOST_PASSES: u32 = 4;

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

/// By value: the one that it always is. A parameter whose arguments are all one value, or itself on the way round a
/// loop, is that value; names go down at most [`MOST_PASSES`] back edges.
fn names(program: &Program, graph: &Graph) -> Vec<u32> {
    let mut name: Vec<u32> = (0..program.vregs.len() as u32).collect();
    let find = |name: &[u32], mut value: u32| {
        while name[value as usize] != value {
            value = name[value as usize];
        }
        value
    };
    for _ in 0..MOST_PASSES {
        let mut changed = false;
        for &block in &graph.rpo {
            let info = &program.blocks[block as usize];
            for (index, param) in info.params.iter().enumerate() {
                if name[param.0 as usize] != param.0 {
                    continue;
                }
                let edges = info.preds.iter().flat_map(|pred| &program.blocks[pred.0 as usize].succs);
                let args = edges.filter(|edge| edge.to.0 == block);
                let mut args = args.map(|edge| find(&name, edge.args[index].0)).filter(|arg| *arg != param.0);
                let Some(first) = args.next() else { continue };
                let source = &program.vregs[first as usize];
                let undefined = |arg: u32| source.undefined && program.vregs[arg as usize].undefined;
                let same_home = source.undefined || source.home == program.vregs[param.0 as usize].home;
                // (Checker A does not look round loops for what a recipe makes.)
                let back = |pred: &Block| graph.rpo_index[pred.0 as usize] >= graph.rpo_index[block as usize];
                let round = source.recipe.is_some() && info.preds.iter().any(back);
                if same_home && !round && args.all(|arg| arg == first || undefined(arg)) {
                    name[param.0 as usize] = first;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    (0..name.len() as u32).map(|value| find(&name, value)).collect()
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
        let name = names(program, graph);
        let mut moved: Vec<(u32, u32, u32)> = Vec::new();
        let read = read_values(program);
        for &block in &graph.rpo {
            let info = &program.blocks[block as usize];
            let [pred] = info.preds[..] else { continue };
            let from = &program.blocks[pred.0 as usize];
            let Some(edge) = from.succs.iter().find(|edge| edge.to.0 == block) else { continue };
            for (&param, &arg) in info.params.iter().zip(&edge.args) {
                // (A copy for a parameter that nothing reads would keep its argument alive.)
                if name[param.0 as usize] == param.0 && read[param.0 as usize] {
                    moved.push((block, param.0, name[arg.0 as usize]));
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
            makers: Makers::default(),
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
            // Parameters of merges that are values of their own.
            let own =
                |block: &BlockInfo, param: &VReg| block.preds.len() > 1 && name[param.0 as usize] == param.0;
            code.blocks.push(CodeBlock {
                steps: start..code.steps.len() as u32,
                params: info.params.iter().filter(|param| own(info, param)).map(|param| param.0).collect(),
                succs: info
                    .succs
                    .iter()
                    .map(|edge| {
                        let to = &program.blocks[edge.to.0 as usize];
                        let args = edge.args.iter().zip(&to.params).filter(|(_, param)| own(to, param));
                        CodeEdge { to: edge.to.0, args: args.map(|(arg, _)| name[arg.0 as usize]).collect() }
                    })
                    .collect(),
                preds: info.preds.iter().map(|pred| pred.0).collect(),
                frequency: if info.frequency.is_finite() { info.frequency.max(1e-6) } else { 1.0 },
            });
        }
        code.makers = Makers::new(program, &code);
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

    /// What makes `vreg`, once more before `inst`.
    pub fn push_repeat(&mut self, vreg: u32, inst: u32) {
        let Some(maker) = self.makers.get(vreg).cloned() else { return };
        let first_op = self.ops.len() as u32;
        self.ops.extend_from_slice(&maker.ops);
        self.real.resize(self.ops.len(), u32::MAX);
        self.steps.push(Step {
            kind: StepKind::Repeat(maker.inst),
            first_op,
            last_op: self.ops.len() as u32,
            clobbers: ClobberId(0),
            no_memory: false,
            is_move: false,
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
