//! Apple AGX behind [`Target`].

use crate::compile::{CodeOptions, Compiled, Keep, Stopwatch, TargetError};
use crate::explain::{Explainer, Step};
use crate::raw::{RawProgram, RawRun};
use crate::run::{self, RunError, RunOptions, RunReport, ThreadCounts};
use crate::target::{CodeFacts, INVALID, Target, TextError, Variant, Violation};
use kempe_agx::finish::Finished;
use kempe_agx::lower::AddressCounts;
use kempe_agx::mops::MInst;
use kempe_agx::sim::{self, AddressMap, Dispatch, Program};
use kempe_agx::validate::{self, ProgramFacts};
use kempe_agx::{asm, compile, registers as regs, stats};
use kempe_ir::exec::{Environment, Inputs, Memory, Sizes};
use kempe_ir::{Module, Stage, UniformWord, interp};
use kempe_mir::{Artifact, Mir, UniformSource};
use kempe_opt::pipeline;
use kempe_ra::Allocation;
use std::time::Instant;

/// Half registers, general and uniform (reference sections 1.1, 1.3).
const MAX_HALVES: u16 = 256;
const MAX_UNIFORM_HALVES: u16 = 512;

/// Bytes that all lengths of instructions are multiples of.
const PARCEL: usize = 2;

/// The GPU of the M1.
pub struct Agx;

/// AGX G13.
pub static G13: Agx = Agx;

/// Threads and registers of 32 bits (reference section 1.2).
static OCCUPANCY: [Step; stats::OCCUPANCY.len()] = {
    let mut steps = [Step { threads: 0, registers: 0 }; stats::OCCUPANCY.len()];
    let mut n = 0;
    while n < steps.len() {
        let (halves, threads) = stats::OCCUPANCY[n];
        steps[n] = Step { threads, registers: halves / 2 };
        n += 1;
    }
    steps
};

/// Where the simulated buffers begin: beyond 32 bits, each with a high word of its own, so that arithmetic that forgets it
/// goes wrong.
const DEVICE_BASE: u64 = 0x11_0000_0000;

impl Target for Agx {
    fn name(&self) -> &'static str {
        compile::NAME
    }

    fn supports(&self, stage: Stage) -> bool {
        stage == Stage::Compute
    }

    fn description(&self) -> &'static str {
        "Apple AGX G13 (M1)"
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("stages", "compute".to_owned()),
            ("lanes", "32".to_owned()),
            ("threads", "384 with all registers, up to 1024 on a core".to_owned()),
            ("registers", format!("{} of 32 bits, 256 uniform ones", regs::REGISTERS)),
            ("word", "2 to 12 bytes: one operation".to_owned()),
        ]
    }

    fn occupancy(&self) -> &'static [Step] {
        &OCCUPANCY
    }

    fn parcel(&self) -> usize {
        PARCEL
    }

    fn disassemble(&self, code: &[u8], quirks: bool) -> (String, usize) {
        asm::disassemble(code, quirks).unwrap_or_else(|_| (INVALID.to_owned(), PARCEL))
    }

    fn assemble(&self, text: &str) -> Result<Vec<u8>, TextError> {
        // Line by line, so that the place of an error is known; targets of jumps are distances.
        let mut code = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let bytes = asm::assemble(line).map_err(|message| TextError {
                line: number + 1,
                column: 1 + line.len() - line.trim_start().len(),
                message,
            })?;
            code.extend(bytes);
        }
        Ok(code)
    }

    fn opt_options(&self) -> pipeline::Options {
        pipeline::Options { max_workgroups: 0xffff, ..pipeline::Options::new(pipeline::Level::O2) }
    }

    fn compile(
        &self,
        module: Module,
        _variant: Variant,
        options: &CodeOptions,
        keep: Keep,
    ) -> Result<Compiled, TargetError> {
        let choices = compile::Options {
            force_spill: options.force_spill,
            max_registers: options.max_registers,
            engine: options.engine,
            without: options.without,
            without_orders: options.without_orders,
            explain: keep.explanation,
            plain_addresses: false,
        };
        let explainer = || Explainer::new(self.occupancy(), options.max_registers, regs::costs());
        let mut observer = Watch {
            keep,
            explainer: keep.explanation.then(explainer),
            mir: None,
            lowered: None,
            passes: Stopwatch::default(),
            last: Instant::now(),
        };
        match compile::compile(module, &choices, &mut observer) {
            Ok(artifact) => {
                let explanation = observer.explainer.map(|explainer| explainer.finish(Some(&artifact.code)));
                let warnings = match options.verify {
                    true => vec!["checker B does not exist for this target".to_owned()],
                    false => Vec::new(),
                };
                Ok(Compiled {
                    artifact,
                    mir: observer.mir,
                    lowered: observer.lowered,
                    explanation,
                    passes: observer.passes.passes,
                    warnings,
                })
            }
            Err(error) => {
                let explanation = observer.explainer.map(|explainer| explainer.finish(None));
                Err(TargetError::of(error, explanation, observer.passes))
            }
        }
    }

    fn validate(&self, code: &CodeFacts) -> Vec<Violation> {
        // What is not said: all registers, all uniforms.
        let facts = ProgramFacts::compute(MAX_HALVES, MAX_UNIFORM_HALVES);
        validate::validate(code.code, &facts).into_iter().map(|v| Violation::of(v, PARCEL)).collect()
    }

    fn run(&self, artifact: &Artifact, inputs: &Inputs, options: &RunOptions) -> Result<RunReport, RunError> {
        let mut environment = run::environment(artifact, inputs, self.sizes(artifact)?)?;
        let mut memory = std::mem::take(&mut environment.memory);
        let map = match artifact.low_addresses {
            // Addresses come out of memory as 32 bits.
            true => AddressMap::new(&memory, |_, address| address.into()),
            false => AddressMap::scattered(&memory, DEVICE_BASE),
        };
        let map = map.map_err(RunError::Setup)?;
        let program = Program {
            // The launch word counts in units of 8 halves.
            halves: (2 * artifact.stats.max_temps).next_multiple_of(8).max(8),
            threadgroup_bytes: artifact.shared_bytes,
            stack_dwords: artifact.scratch_bytes / 4,
            ..Program::new(
                artifact.code.clone(),
                uniforms(artifact, &environment, &map),
                artifact.workgroup_size,
            )
        };
        let dispatch = Dispatch { groups: inputs.groups, map };
        let how = sim::Options {
            step_limit: options.step_limit,
            order: options.order(),
            undefined_in_memory: true,
            zeroed_threadgroup: true,
            ..sim::Options::default()
        };
        let outcome = sim::run(&program, &dispatch, &mut memory, &how);
        outcome.result.clone().map_err(|fault| RunError::Program(fault.to_string()))?;
        Ok(RunReport {
            buffers: run::outputs(&environment, &memory),
            counts: outcome.executed,
            instructions: outcome.instructions,
            threads: outcome
                .groups
                .iter()
                .map(|g| ThreadCounts {
                    supergroup: g.threadgroup,
                    batch: g.group,
                    instructions: g.instructions,
                    stalls: 0,
                    switches: 0,
                })
                .collect(),
            ..RunReport::default()
        })
    }

    fn interpreter(&self, _artifact: &Artifact, run: &mut dyn FnMut(&interp::Options)) {
        run(&interp::Options { flush: true, ..interp::Options::source() });
    }

    fn sizes(&self, _artifact: &Artifact) -> Result<Sizes, RunError> {
        // Private memory is a space of each lane, threadgroup memory one of each work-group.
        Ok(Sizes::source())
    }

    fn run_raw(&self, _: &RawProgram, _: &mut Memory, _: &RunOptions) -> Result<RawRun, RunError> {
        Err(RunError::Setup(format!("machine code from elsewhere cannot be run for {}", self.name())))
    }
}

/// Words of the uniform registers as a driver would fill them: addresses are those of the device.
fn uniforms(artifact: &Artifact, environment: &Environment, map: &AddressMap) -> Vec<u32> {
    let address = |word: UniformWord| {
        let is_address = matches!(
            word,
            UniformWord::BufferAddr { .. } | UniformWord::PushAddr | UniformWord::ConstantAddr
        );
        let value = environment.word(word);
        if is_address { map.device(value).unwrap_or(value.into()) } else { value.into() }
    };
    let word = |source: &UniformSource| match *source {
        UniformSource::Const(value) => value,
        UniformSource::Word(word, plus) => (address(word) as u32).wrapping_add(plus),
        UniformSource::High(word) => (address(word) >> 32) as u32,
    };
    artifact.uniforms.iter().map(word).collect()
}

/// Listens to the driver.
struct Watch {
    keep: Keep,
    explainer: Option<Explainer>,
    mir: Option<String>,
    lowered: Option<Module>,
    passes: Stopwatch,
    last: Instant,
}

impl compile::Observer for Watch {
    fn step(&mut self, name: &'static str) {
        self.passes.add(name, self.last.elapsed(), 1);
        self.last = Instant::now();
    }

    fn lowered(&mut self, module: &Module, _: AddressCounts) {
        if let Some(explainer) = &mut self.explainer {
            explainer.module(module);
        }
        if self.keep.lowered {
            self.lowered = Some(module.clone());
            self.last = Instant::now();
        }
    }

    fn selected(&mut self, _: u32, mir: &Mir<MInst>) {
        if self.keep.mir {
            self.mir = Some(kempe_mir::print::print(mir));
            self.last = Instant::now();
        }
    }

    fn allocated(&mut self, registers: u32, mir: &Mir<MInst>, allocation: &Allocation) {
        self.explain(registers, mir, Some(allocation));
    }

    fn refused(&mut self, registers: u32, mir: &Mir<MInst>) {
        self.explain(registers, mir, None);
    }

    fn finished(&mut self, code: &Finished) {
        if let Some(explainer) = &mut self.explainer {
            explainer.code(&code.code);
        }
    }
}

impl Watch {
    fn explain(&mut self, registers: u32, mir: &Mir<MInst>, allocation: Option<&Allocation>) {
        if let Some(explainer) = &mut self.explainer {
            let threads = regs::threads(registers);
            explainer.attempt(threads, &regs::register_file(registers), mir, allocation);
            self.last = Instant::now();
        }
    }
}
