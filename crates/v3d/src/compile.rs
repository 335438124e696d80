//! The driver: an optimised module in, an artifact out.
//!
//! Lowering and the analyses of selection happen once. Then the thread counts are tried, 4 before 2: 4 threads without
//! memory edits win at once (more threads hide more latency); otherwise both are finished, and the one with fewer spills
//! and fills, then the one with fewer estimated cycles (`stats.rs`) is kept. Each attempt is one pass: select, order, allocate (with checker A),
//! finish, validate. Nothing that breaks a hardware rule leaves here.

use crate::checkb;
use crate::finish::{self, Frame};
use crate::instr::Version;
use crate::lower::{self, Lowered};
use crate::mops::MInst;
use crate::validate::{self, Class, ProgramFacts};
use crate::{regs, select, stats};
use kempe_ir::{Loc, Module, Stage};
pub use kempe_mir::error::CompileError;
use kempe_mir::error::out_of_registers;
use kempe_mir::order::Room;
use kempe_mir::{Artifact, Mir};
use kempe_ra::{Allocation, Inst, OperandKind};

/// Registers for the order before allocation, by thread count: aims of 52 to 60 and 26 to 30 differ by less than 0.1 % of the
/// instructions of the compute corpus. With four threads memory is out of the question as long as anything else will do.
const ROOM: [Room; 2] =
    [Room { aim: 56, registers: 62, memory: 10 }, Room { aim: 30, registers: 32, memory: 1000 }];

/// Forcing modes and choices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Only this thread count (2 or 4).
    pub threads: Option<u32>,
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
    /// Leave the order of instructions as selection made it.
    pub no_order: bool,
    /// What a graphics program is made for.
    pub shape: lower::Shape,
    /// Have checker B compare the final words with the machine instructions before allocation.
    pub verify: bool,
    /// Have the allocator keep what it saw and decided ([`Allocation::report`]), for [`Observer::allocated`].
    pub explain: bool,
}

/// Hears what happens: for pass times and for showing the forms on the way.
pub trait Observer {
    /// A step of this name has just ended.
    fn step(&mut self, _name: &'static str) {}
    /// Something the user should know that is no error.
    fn warning(&mut self, _message: &str) {}
    fn lowered(&mut self, _m: &Module) {}
    /// How often an attempt used each rule of selection.
    fn rules(&mut self, _counts: &select::Counts) {}
    /// Machine instructions of an attempt, as the allocator gets them.
    fn selected(&mut self, _threads: u32, _mir: &Mir<MInst>) {}
    fn allocated(&mut self, _threads: u32, _mir: &Mir<MInst>, _allocation: &Allocation) {}
    /// There is no allocation.
    fn refused(&mut self, _threads: u32, _mir: &Mir<MInst>) {}
    /// Final words of an attempt, before anything judges them.
    fn finished(
        &mut self,
        _mir: &Mir<MInst>,
        _allocation: &Allocation,
        _frame: &Frame,
        _code: &finish::Finished,
    ) {
    }
}

impl Observer for () {}

impl From<select::SelectError> for CompileError {
    fn from(e: select::SelectError) -> CompileError {
        CompileError { message: e.message, loc: e.loc, internal: e.internal, needed: None }
    }
}

/// Hardware threads of a core that a program may share it with, best first.
const THREADS: [u32; 2] = [4, 2];

/// A configuration to try.
#[derive(Clone, Copy)]
struct Way {
    version: Version,
    threads: u32,
    /// Only if nothing goes to memory.
    no_memory: bool,
}

/// One attempt that worked.
struct Attempt {
    threads: u32,
    finished: finish::Finished,
    stats: kempe_mir::Stats,
    scratch_bytes: u32,
    uses_barrier: bool,
}

/// A module brought to where thread counts and registers begin to matter: whoever asks for the same program with several
/// choices lowers it once.
pub struct Ready {
    m: Module,
    version: Version,
    lowered: Lowered,
    prepared: select::Prepared,
}

/// Compiles a module (in source form, optimised) for one version.
///
/// # Errors
/// What is not supported, what does not fit, and defects found by the checks on the way.
pub fn compile(
    m: Module,
    version: Version,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Artifact, CompileError> {
    finish_ready(&ready(m, version, &options.shape, observer)?, options, observer)
}

/// The first part of [`compile`]: lowering, and the analyses of selection.
///
/// # Errors
/// What is not supported.
pub fn ready(
    mut m: Module,
    version: Version,
    shape: &lower::Shape,
    observer: &mut dyn Observer,
) -> Result<Ready, CompileError> {
    let lowered =
        lower::lower(&mut m, version, shape).map_err(|e| CompileError::refused(e.to_string(), e.loc))?;
    observer.step("lower");
    for warning in &lowered.warnings {
        observer.warning(warning);
    }
    observer.lowered(&m);
    let prepared = select::prepare(&m, &lowered, shape)?;
    observer.step("flow");
    Ok(Ready { m, version, lowered, prepared })
}

/// The second part of [`compile`]. The shape is the one that the first part was told.
///
/// # Errors
/// As [`compile`].
pub fn finish_ready(
    ready: &Ready,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Artifact, CompileError> {
    let Ready { m, version, lowered, prepared } = ready;
    let version = *version;
    let wanted: Vec<u32> =
        THREADS.into_iter().filter(|&t| options.threads.is_none_or(|want| want == t)).collect();
    if wanted.is_empty() {
        return Err(CompileError::refused("a program has 2 or 4 threads".to_owned(), Loc(0)));
    }
    let mut best = Err(CompileError::bug("no configuration was tried".to_owned()));
    let mut attempts = 0;
    for (n, &threads) in wanted.iter().enumerate() {
        attempts += 1;
        // Half of the threads have twice the registers, and no program of the corpus is better off with all threads and
        // memory traffic. (Unless the registers are as few with half of the threads.)
        let few = options.max_registers.is_some_and(|limit| limit < u32::from(regs::rows(threads)));
        let no_memory = n + 1 < wanted.len() && !options.force_spill && !few;
        let way = Way { version, threads, no_memory };
        let result = attempt(m, way, lowered, prepared, options, observer);
        // Too many values at once may still fit with more registers; anything else is final.
        let done = result.as_ref().map_or_else(|e| e.internal, |_| true);
        // Of several refusals the one that asks for least says what is worth trying.
        let needed = |r: &Result<Attempt, CompileError>| r.as_ref().err().and_then(|e| e.needed);
        if done || needed(&best).is_none_or(|old| needed(&result).is_some_and(|new| new <= old)) {
            best = result;
        }
        if done {
            break;
        }
    }
    let best = best?;
    Ok(Artifact {
        target: version.name().to_owned(),
        entry: m.name.clone(),
        stage: m.stage,
        code: kempe_mir::code_of_words(&best.finished.words),
        uniforms: best.finished.uniforms,
        threads: best.threads,
        single_section: best.finished.single_section,
        workgroup_size: m.workgroup_size,
        shared_bytes: lowered.shared_bytes,
        scratch_bytes: best.scratch_bytes,
        constant_data: m.constant_data.clone(),
        uses_barrier: best.uses_barrier,
        may_share_batches: lowered.may_share_batches,
        low_addresses: lowered.low_addresses,
        resources: m.resources.values().map(with_format).collect(),
        graphics: lowered.graphics.clone(),
        stats: best.stats,
        attempts,
    })
}

/// The code stores texels in one format, so the artifact says which.
fn with_format(r: &kempe_ir::Resource) -> kempe_ir::Resource {
    let mut r = r.clone();
    if let Some(image) = r.image.as_mut().filter(|_| r.kind == kempe_ir::ResKind::Image) {
        image.format = Some(image.storage_format());
    }
    r
}

/// Some address for the side band stands in a register that may be filled from memory.
fn asks_lane_0(mir: &Mir<MInst>) -> bool {
    mir.data.iter().enumerate().any(|(i, data)| {
        let uses = mir.operands(Inst(i as u32)).iter().filter(|o| o.kind == OperandKind::Use);
        matches!(data, MInst::Sideband { .. })
            && uses.into_iter().any(|o| mir.program.vregs[o.vreg.0 as usize].recipe.is_none())
    })
}

/// Selection, order, allocation. `side_values`: see [`select::select_prepared`].
fn allocated(
    m: &Module,
    way: Way,
    prepared: &select::Prepared,
    options: &Options,
    side_values: bool,
    observer: &mut dyn Observer,
) -> Result<Allocated, CompileError> {
    let Way { version, threads, no_memory } = way;
    let mut rules = select::Counts::default();
    let mut mir = select::select_prepared(prepared, version, threads, side_values, &mut rules)?;
    observer.step("select");
    observer.rules(&rules);
    let mut predicted = 0.0;
    if !options.no_order {
        predicted = kempe_mir::order::order(&mut mir, ROOM[(threads >= 4) as usize], options.without_orders);
        observer.step("order");
    }
    observer.selected(threads, &mir);
    let file = regs::register_file(version, threads);
    let choices = kempe_ra::Options {
        max_registers: options.max_registers,
        no_memory,
        force_spill: options.force_spill,
        engine: options.engine,
        without: options.without,
        explain: options.explain,
    };
    let allocation = kempe_ra::allocate(&file, &mir.program, &regs::costs(), &choices).map_err(|f| {
        observer.refused(threads, &mir);
        out_of_registers(m, &mir, options.max_registers, &f)
    })?;
    observer.step("allocate");
    Ok(Allocated { mir, allocation, predicted })
}

/// Machine instructions in their order, and their registers.
struct Allocated {
    mir: Mir<MInst>,
    allocation: Allocation,
    /// Cycles that the order reckoned with for what does not fit.
    predicted: f64,
}

fn attempt(
    m: &Module,
    way: Way,
    lowered: &Lowered,
    prepared: &select::Prepared,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Attempt, CompileError> {
    let Way { version, threads, .. } = way;
    let mut all = allocated(m, way, prepared, options, true, observer)?;
    if m.stage == Stage::Fragment && all.allocation.memory_edits && asks_lane_0(&all.mir) {
        // A fill brings nothing to a dead quad, and quad 0 may be one.
        all = allocated(m, way, prepared, options, false, observer)?;
    }
    let Allocated { mir, allocation, predicted } = all;
    observer.allocated(threads, &mir, &allocation);
    let frame = Frame {
        version,
        threads,
        stage: m.stage,
        private_bytes: lowered.private_bytes,
        spill_base: regs::unit_loc(threads, regs::spill_base(threads)),
        spill_scratch: regs::unit_loc(threads, regs::spill_scratch(version, threads)),
    };
    let finished = finish::finish(&frame, &mir, &allocation, &|u| regs::unit_loc(threads, u))
        .map_err(|e| CompileError::bug(e.message))?;
    observer.step("finish");
    observer.finished(&mir, &allocation, &frame, &finished);
    let facts = ProgramFacts {
        stage: m.stage,
        single_segment: finished.single_section,
        ..ProgramFacts::compute(threads)
    };
    if let Some(v) =
        validate::validate(version, &finished.words, &facts).into_iter().find(|v| v.class == Class::Hw)
    {
        return Err(CompileError::bug(format!("the code breaks a hardware rule: {v}")));
    }
    observer.step("validate");
    if options.verify {
        let view = checkb::View::new(&finished, allocation.slots);
        checkb::check(&mir, &view, version, m.stage, threads, lowered.private_bytes).map_err(|e| {
            CompileError {
                message: format!("the code does not do what the program says: {e}"),
                loc: e.loc,
                internal: true,
                needed: None,
            }
        })?;
        observer.step("check");
    }
    let mut stats = stats::recount(version, threads, &finished, &mir, allocation.memory_edits)
        .ok_or_else(|| CompileError::bug("the code does not decode".to_owned()))?;
    stats.edit_cycles = allocation.cost(&mir.program, &regs::costs()).round() as u64;
    stats.predicted_edit_cycles = predicted.round() as u64;
    observer.step("stats");
    // Reference 12.6 and cost-and-spill 4: 16 lanes of private memory, then 64 bytes for each slot.
    let scratch_bytes = lowered
        .private_bytes
        .checked_mul(16)
        .and_then(|b| b.checked_add(allocation.slots.checked_mul(64)?))
        .ok_or_else(|| CompileError::refused("private memory is too large".to_owned(), Loc(0)))?;
    let uses_barrier = mir.data.iter().any(|i| matches!(i, MInst::Barrier));
    Ok(Attempt { threads, finished, stats, scratch_bytes, uses_barrier })
}
