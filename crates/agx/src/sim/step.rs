//! Single instructions on a given state, for the execution oracle (section 18).

use super::execute::{Event, Machine};
use super::group::{Group, HALVES, UNIFORM_HALVES};
use super::memory::Memories;
use super::{AddressMap, LANES, Mask, Options};
use crate::decode::decode;
use kempe_ir::exec::Memory;
use std::collections::BTreeSet;

/// Registers, uniforms, execution mask and memory around a few instructions.
#[derive(Clone, Debug)]
pub struct StepState {
    /// 32-bit registers by lane.
    pub registers: Vec<[u32; LANES]>,
    /// 32-bit uniform registers.
    pub uniforms: Vec<u32>,
    pub mask: Mask,
    /// One piece of memory: device address and contents.
    pub memory: Option<(u64, Vec<u8>)>,
}

impl StepState {
    /// Zeros everywhere, all lanes active.
    pub fn new() -> StepState {
        StepState {
            registers: vec![[0; LANES]; HALVES / 2],
            uniforms: vec![0; UNIFORM_HALVES / 2],
            mask: Mask::MAX,
            memory: None,
        }
    }
}

impl Default for StepState {
    fn default() -> StepState {
        StepState::new()
    }
}

/// Runs instructions, without what is only a habit (`strict`). All requests are done at the end.
pub fn step_bytes(code: &[u8], state: &mut StepState) -> Result<(), String> {
    let mut memory = Memory::new();
    const BASE: u32 = 1 << 20;
    let (device, bytes) = state.memory.clone().unwrap_or_default();
    memory.put("memory", BASE, bytes, true)?;
    let map = AddressMap::new(&memory, |_, _| device)?;
    let options = Options { strict: false, ..Options::default() };
    let mut uniforms = [None; UNIFORM_HALVES];
    for (pair, word) in uniforms.chunks_exact_mut(2).zip(&state.uniforms) {
        pair.copy_from_slice(&[Some(*word as u16), Some((word >> 16) as u16)]);
    }
    let mut machine = Machine {
        memories: Memories { device: &mut memory, map: &map, local: Vec::new(), undefined: BTreeSet::new() },
        uniforms,
        options: &options,
        groups: [1; 3],
        size: [LANES as u32, 1, 1],
        stack_dwords: 0,
        instructions: 0,
        executed: Vec::new(),
    };
    let mut group = Group::new(HALVES as u32, Mask::MAX);
    group.active = state.mask;
    for (n, lanes) in state.registers.iter().enumerate() {
        group.set_half(2 * n, lanes.map(|v| v as u16));
        group.set_half(2 * n + 1, lanes.map(|v| (v >> 16) as u16));
    }
    let mut at = 0;
    while at < code.len() {
        let decoded = decode(&code[at..]).map_err(|e| e.to_string())?;
        let step = super::code::Step::new(decoded.instr, at, decoded.length);
        match machine.execute(&mut group, &step) {
            Ok(Event::None | Event::Switch) => {}
            Ok(event) => return Err(format!("{event:?} among single instructions")),
            Err(trouble) => return Err(format!("{}: {}", trouble.rule, trouble.message)),
        }
        at += decoded.length;
    }
    for slot in 0..2 {
        group.wait(slot);
    }
    for (n, lanes) in state.registers.iter_mut().enumerate() {
        let ((low, low_bad), (high, high_bad)) = (group.half(2 * n), group.half(2 * n + 1));
        if low_bad | high_bad != 0 {
            return Err(format!("r{n} is undefined"));
        }
        for (lane, word) in lanes.iter_mut().enumerate() {
            *word = u32::from(low[lane]) | u32::from(high[lane]) << 16;
        }
    }
    state.mask = group.active;
    if let Some((_, bytes)) = &mut state.memory {
        bytes.copy_from_slice(memory.bytes(0));
    }
    Ok(())
}
