//! A few words on a given register state: what the execution oracles ask for.

use super::code::{ACC, Code, REGISTERS};
use super::thread::{Machine, Thread};
use super::{Fault, LANES, Lanes, Mask, Options, Program};
use crate::instr::{Loc, Version};
use kempe_ir::exec::Memory;

/// Registers and flags, all defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepState {
    registers: Vec<Lanes>,
    /// Lanes of which the value is poison after the step; a test must not compare them.
    poison: Vec<Mask>,
    pub a: Mask,
    pub b: Mask,
    pub a_poison: Mask,
    pub b_poison: Mask,
}

impl StepState {
    /// Everything holds a recognisable pattern.
    pub fn junk() -> StepState {
        let registers = (0..REGISTERS)
            .map(|r| std::array::from_fn(|i| 0x5eed_0000 | (r as u32) << 4 | i as u32))
            .collect();
        StepState { registers, poison: vec![0; REGISTERS], a: 0x5a3c, b: 0xc396, a_poison: 0, b_poison: 0 }
    }

    fn index(loc: Loc) -> usize {
        match loc {
            Loc::Row(r) => usize::from(r & 63),
            Loc::Acc(r) => usize::from(ACC + r.min(5)),
        }
    }

    pub fn get(&self, loc: Loc) -> &Lanes {
        &self.registers[Self::index(loc)]
    }

    pub fn poison(&self, loc: Loc) -> Mask {
        self.poison[Self::index(loc)]
    }

    pub fn set(&mut self, loc: Loc, value: Lanes) {
        self.registers[Self::index(loc)] = value;
        self.poison[Self::index(loc)] = 0;
    }

    /// The registers in which two states differ in a lane that is not poison in either.
    pub fn differences(&self, other: &StepState) -> Vec<Loc> {
        let differs = |&r: &usize| {
            let known = !(self.poison[r] | other.poison[r]);
            (0..LANES).any(|i| known >> i & 1 != 0 && self.registers[r][i] != other.registers[r][i])
        };
        let loc = |r: usize| if r < ACC as usize { Loc::Row(r as u8) } else { Loc::Acc(r as u8 - ACC) };
        (0..REGISTERS).filter(differs).map(loc).collect()
    }
}

/// Executes the words one after the other, without memory.
pub fn step_words(version: Version, words: &[u64], state: &mut StepState) -> Result<(), Fault> {
    let code = Code::new(&Program::new(version, words.to_vec(), Vec::new(), 2, [16, 1, 1]));
    let mut memory = Memory::new();
    let mut m = Machine::new(&code, &mut memory, &Options::default(), None);
    let mut thread = Thread::new(&code);
    for r in 0..REGISTERS {
        thread.set(r as u8, state.registers[r]);
    }
    thread.set_flags(state.a, state.b);
    for _ in words {
        thread.step(&code, &mut m).map_err(|t| Fault {
            rule: t.rule,
            pc: thread.pc,
            lane: t.lane,
            supergroup: 0,
            batch: 0,
            message: t.message,
        })?;
    }
    for r in 0..REGISTERS {
        let (value, poison) = thread.get(r as u8);
        state.registers[r] = *value;
        state.poison[r] = poison;
    }
    (state.a, state.b) = (thread.a, thread.b);
    (state.a_poison, state.b_poison) = (thread.a_poison, thread.b_poison);
    Ok(())
}
