//! Apple AGX behind [`Target`].

use crate::compile::{CodeOptions, Compiled, Keep, Stopwatch, TargetError};
use crate::explain::{Explainer, Step};
use crate::raw::{RawProgram, RawRun};
use crate::run::{self, RunError, RunOptions, RunReport};
use crate::target::{CodeFacts, INVALID, Target, TextError, Variant, Violation};
use kempe_agx::finish::Finished;
use kempe_agx::lower::AddressCounts;
use kempe_agx::mops::MInst;
use kempe_agx::{asm, compile, regs};
use kempe_ir::exec::{Inputs, Memory, Sizes};
use kempe_ir::{Module, interp};
use kempe_mir::{Artifact, Mir};
use kempe_opt::pipeline;
use kempe_ra::Allocation;
use std::time::Instant;

/// Bytes that all lengths of instructions are multiples of.
const PARCEL: usize = 2;

/// The GPU of the M1.
pub struct Agx;

/// AGX G13.
pub static G13: Agx = Agx;

/// Threads and registers (reference section 1.2).
static OCCUPANCY: [Step; 10] = {
    let mut steps = [Step { threads: 0, registers: 0 }; 10];
    let mut n = 0;
    while n < steps.len() {
        steps[n] = Step { threads: regs::OCCUPANCY[n].0, registers: regs::OCCUPANCY[n].1 };
        n += 1;
    }
    steps
};

impl Target for Agx {
    fn name(&self) -> &'static str {
        compile::NAME
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
            Err(error) => Err(TargetError {
                bug: error.internal,
                message: error.message,
                loc: error.loc,
                attempts: observer.passes.runs("select"),
                explanation: observer.explainer.map(|explainer| explainer.finish(None)),
                passes: observer.passes.passes,
            }),
        }
    }

    fn validate(&self, _code: &CodeFacts) -> Vec<Violation> {
        Vec::new()
    }

    fn run(&self, _artifact: &Artifact, _inputs: &Inputs, _options: &RunOptions) -> Result<RunReport, RunError> {
        Err(RunError::Setup("there is no simulator for agx yet".to_owned()))
    }

    fn interpret(
        &self,
        lowered: &Module,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<RunReport, RunError> {
        let how = interp::Options { step_limit: options.step_limit, ..interp::Options::source() };
        run::interpreted(lowered, inputs, self.sizes(artifact)?, &how).map(|(report, _)| report)
    }

    fn sizes(&self, _artifact: &Artifact) -> Result<Sizes, RunError> {
        // Private memory is a space of each lane, threadgroup memory one of each work-group.
        Ok(Sizes::source())
    }

    fn run_raw(&self, _: &RawProgram, _: &mut Memory, _: &RunOptions) -> Result<RawRun, RunError> {
        Err(RunError::Setup(format!("machine code from elsewhere cannot be run for {}", self.name())))
    }
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
