//! The driver: an optimised module in, an artifact out.
//!
//! Lower, select, order, allocate (with checker A), finish, validate. Nothing that breaks a hardware rule leaves here. A program may use as many registers as leave room for a whole
//! work-group on a core (`registers::limit`); fewer bring more threads, so the allocator takes the lowest that are free.

use crate::finish::{self, Finished};
use crate::lower;
use crate::mops::MInst;
use crate::validate::{self, Class, ProgramFacts};
use crate::{registers as regs, select};
use kempe_ir::{Loc, Module};
use kempe_mir::error::{CompileError, out_of_registers};
use kempe_mir::order::Room;
use kempe_mir::{Artifact, Mir, Stats};
use kempe_ra::Allocation;

/// Cycles that an access to the stack is reckoned with where orders are compared.
const MEMORY_COST: u32 = 20;

/// Registers that the order of instructions leaves to the allocator.
const SPARE: u32 = 4;

/// Forcing modes and choices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Spill everything that may be spilled.
    pub force_spill: bool,
    /// Register limit for the allocator.
    pub max_registers: Option<u32>,
    /// What gives out the registers.
    pub engine: kempe_ra::Engine,
    /// Parts of the allocator that are left out.
    pub without: kempe_ra::Without,
    /// Orders of instructions that are not tried.
    pub without_orders: kempe_mir::order::Without,
    /// Have the allocator keep what it saw and decided.
    pub explain: bool,
    /// Compute every byte offset, and shift it for the access: to measure what the folding of addresses brings.
    pub plain_addresses: bool,
}

/// Hears what happens: for pass times and for showing the forms on the way.
pub trait Observer {
    /// A step of this name has just ended.
    fn step(&mut self, _name: &'static str) {}
    fn lowered(&mut self, _m: &Module, _addresses: lower::AddressCounts) {}
    /// Machine instructions as the allocator gets them, and how many registers there are.
    fn selected(&mut self, _registers: u32, _mir: &Mir<MInst>) {}
    fn allocated(&mut self, _registers: u32, _mir: &Mir<MInst>, _allocation: &Allocation) {}
    /// There is no allocation.
    fn refused(&mut self, _registers: u32, _mir: &Mir<MInst>) {}
    fn finished(&mut self, _code: &Finished) {}
}

impl Observer for () {}

impl From<select::SelectError> for CompileError {
    fn from(e: select::SelectError) -> CompileError {
        CompileError { message: e.message, loc: e.loc, internal: e.internal, needed: None }
    }
}

impl From<finish::FinishError> for CompileError {
    fn from(e: finish::FinishError) -> CompileError {
        CompileError { message: e.message, loc: Loc(0), internal: e.internal, needed: None }
    }
}

/// The name of the target.
pub const NAME: &str = "agx";

/// Compiles a module (in source form, optimised).
///
/// # Errors
/// What is not supported, what does not fit, and defects found by the checks on the way.
pub fn compile(
    mut m: Module,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Artifact, CompileError> {
    let lowered = lower::lower(&mut m, options.plain_addresses)
        .map_err(|e| CompileError::refused(e.to_string(), e.loc))?;
    observer.step("lower");
    observer.lowered(&m, lowered.addresses);
    let selected = select::select(&m, &lowered)?;
    let mut mir = selected.mir;
    observer.step("select");
    let registers = regs::limit(m.workgroup_items());
    let room = Room { aim: registers - SPARE, registers: registers - 1, memory: MEMORY_COST };
    let predicted = kempe_mir::order::order(&mut mir, room, options.without_orders);
    observer.step("order");
    observer.selected(registers, &mir);
    let file = regs::register_file(registers);
    let choices = kempe_ra::Options {
        max_registers: options.max_registers,
        no_memory: false,
        force_spill: options.force_spill,
        engine: options.engine,
        without: options.without,
        explain: options.explain,
    };
    let costs = regs::costs();
    let allocation = match kempe_ra::allocate(&file, &mir.program, &costs, &choices) {
        Ok(allocation) => allocation,
        Err(failure) => {
            observer.refused(registers, &mir);
            return Err(out_of_registers(&m, &mir, options.max_registers, &failure));
        }
    };
    observer.step("allocate");
    observer.allocated(registers, &mir, &allocation);
    let finished = finish::finish(&mir, &allocation, &selected.plan, lowered.private_bytes)?;
    observer.step("finish");
    observer.finished(&finished);
    let facts = ProgramFacts::compute(2 * finished.registers as u16, 2 * selected.uniforms.len() as u16);
    if let Some(v) = validate::validate(&finished.code, &facts).into_iter().find(|v| v.class == Class::Hw) {
        return Err(CompileError::bug(format!("the code breaks a hardware rule: {v}")));
    }
    observer.step("validate");
    let stats = Stats {
        instructions: (finished.instrs.len() - finish::TRAPS) as u32,
        threads: regs::threads(finished.registers),
        loops: selected.plan.loops,
        uniforms: selected.uniforms.len() as u32,
        max_temps: finished.registers,
        spills: finished.spills,
        fills: finished.fills,
        scratch: finished.scratch,
        recomputed: finished.recomputed,
        code_bytes: finished.code.len() as u32,
        edit_cycles: allocation.cost(&mir.program, &costs).round() as u64,
        predicted_edit_cycles: predicted.round() as u64,
        ..Stats::default()
    };
    Ok(Artifact {
        target: NAME.to_owned(),
        entry: m.name.clone(),
        stage: m.stage,
        threads: stats.threads,
        code: finished.code,
        uniforms: selected.uniforms,
        single_section: false,
        workgroup_size: m.workgroup_size,
        shared_bytes: lowered.shared_bytes,
        scratch_bytes: 4 * finished.frame_words,
        constant_data: m.constant_data.clone(),
        uses_barrier: selected.uses_barrier,
        may_share_batches: false,
        low_addresses: lowered.low_addresses,
        resources: m.resources.values().cloned().collect(),
        graphics: None,
        stats,
        attempts: 1,
    })
}
