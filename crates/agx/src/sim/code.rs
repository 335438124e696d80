//! A program decoded once.

use super::{Program, Trouble};
use crate::decode::decode;
use crate::instr::{Hint, Instr, Number, Operand, Role};
use crate::ops::Op;

/// An instruction with what the simulator asks of it, so that it need not search.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub instr: Instr,
    pub op: Op,
    /// Byte address, and of what follows.
    pub pc: usize,
    pub next: usize,
    pub dest: Operand,
    /// A, B, C.
    pub sources: [Operand; 3],
    pub x: Operand,
    pub y: Operand,
    pub saturate: bool,
    pub shift: u32,
    pub condition: u32,
    pub nest: u16,
    /// Registers that are undefined afterwards.
    pub discarded: Vec<Operand>,
}

impl Step {
    pub(super) fn new(instr: Instr, pc: usize, length: usize) -> Step {
        let discarded = instr.operands().map(|(_, _, o)| o).filter(|o| o.hint == Hint::Discard).collect();
        Step {
            op: instr.op,
            pc,
            next: pc + length,
            dest: instr.operand(Role::Dest),
            sources: [Role::A, Role::B, Role::C].map(|role| instr.operand(role)),
            x: instr.operand(Role::X),
            y: instr.operand(Role::Y),
            saturate: instr.get(Number::Saturate) != 0,
            shift: instr.get(Number::Shift),
            condition: instr.get(Number::Condition),
            nest: instr.get(Number::Nest) as u16,
            discarded,
            instr,
        }
    }
}

/// Steps of a piece of code.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    pub steps: Vec<Step>,
    /// Number of the step by half its byte address.
    numbers: Vec<u32>,
    /// Where decoding stopped, if not at the end, and why.
    broken: Option<(usize, String)>,
}

impl Steps {
    pub fn new(code: &[u8]) -> Steps {
        let mut steps = Vec::new();
        let mut numbers = vec![u32::MAX; code.len() / 2 + 1];
        let mut broken = None;
        let mut at = 0;
        while at < code.len() {
            match decode(&code[at..]) {
                Ok(decoded) => {
                    numbers[at / 2] = steps.len() as u32;
                    steps.push(Step::new(decoded.instr, at, decoded.length));
                    at += decoded.length;
                }
                Err(error) => {
                    broken = Some((at, error.to_string()));
                    break;
                }
            }
        }
        Steps { steps, numbers, broken }
    }

    /// Number of the step at a byte address.
    pub fn find(&self, pc: usize) -> Result<usize, Trouble> {
        if let Some((at, error)) = &self.broken
            && *at == pc
        {
            return Err(Trouble::new("encoding", error.clone()));
        }
        let number = self.numbers.get(pc / 2).copied().filter(|&n| n != u32::MAX && pc & 1 == 0);
        number.map(|n| n as usize).ok_or_else(|| match self.steps.last() {
            Some(last) if pc < last.next => Trouble::new("branch", "no instruction starts here"),
            _ => Trouble::new("end", "runs past the end of the code"),
        })
    }
}

/// A program decoded once, for any number of runs.
#[derive(Clone, Debug)]
pub struct Code {
    pub(super) main: Steps,
    pub(super) preamble: Option<Steps>,
    pub(super) program: Program,
}

impl Code {
    pub fn new(program: &Program) -> Code {
        Code {
            main: Steps::new(&program.code),
            preamble: program.preamble.as_deref().map(Steps::new),
            program: program.clone(),
        }
    }

    /// Byte addresses of the instructions, in order.
    pub fn addresses(&self) -> impl Iterator<Item = usize> {
        self.main.steps.iter().map(|step| step.pc)
    }
}
