//! Broadcom V3D behind [`Target`]. [`stages`]: its graphics programs.

mod primitives;
mod stages;

use crate::compile::{CodeOptions, Compiled, Keep, Stopwatch, TargetError};
use crate::explain::{Explainer, Step};
use crate::raw::{RawProgram, RawRun};
use crate::run::{self, RunError, RunOptions, RunReport, StageRun, ThreadCounts};
use crate::target::{CodeFacts, INVALID, Target, TextError, Variant, Violation};
use kempe_ir::exec::{Inputs, LANES, Memory, Sizes};
use kempe_ir::{Module, Stage, interp};
use kempe_mir::{Artifact, code_of_words, words_of_code};
use kempe_opt::pipeline;
use kempe_ra::Allocation;
use kempe_v3d::asm;
use kempe_v3d::instr::Version;
use kempe_v3d::lower::Shape;
use kempe_v3d::mops::MInst;
use kempe_v3d::regs;
use kempe_v3d::sim::{self, Dispatch, Program, Scratch, Start, UniformStream};
use kempe_v3d::validate::{self, ProgramFacts};
use std::time::Instant;

/// Bytes of an instruction.
const WORD: usize = 8;

/// One generation.
pub struct V3d(Version);

/// V3D 4.2.
pub static V42: V3d = V3d(Version::V42);
/// V3D 7.1.
pub static V71: V3d = V3d(Version::V71);

/// Most work-groups that the front end packs into a supergroup (reference 13.5).
const MAX_PACKED: u32 = 16;

impl Target for V3d {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn description(&self) -> &'static str {
        match self.0 {
            Version::V42 => "Broadcom V3D 4.2, VideoCore VI (BCM2711: Raspberry Pi 4)",
            Version::V71 => "Broadcom V3D 7.1, VideoCore VII (BCM2712: Raspberry Pi 5)",
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let registers = match self.0 {
            Version::V42 => "64 rows at 2 threads, 32 at 4; accumulators r0 to r5",
            Version::V71 => "64 rows at 2 threads, 32 at 4",
        };
        let cores = Start { version: self.0, threads: 4 }.qpus();
        vec![
            ("stages", "vertex, tessellation, geometry, fragment, compute".to_owned()),
            ("lanes", LANES.to_string()),
            ("threads", format!("2 or 4 on each of {cores} cores")),
            ("registers", registers.to_owned()),
            ("word", "64 bits: an ADD and a MUL operation and signals".to_owned()),
        ]
    }

    fn occupancy(&self) -> &'static [Step] {
        // Reference, section 1.
        &[Step { threads: 4, registers: 32 }, Step { threads: 2, registers: 64 }]
    }

    fn parcel(&self) -> usize {
        WORD
    }

    fn disassemble(&self, code: &[u8], quirks: bool) -> (String, usize) {
        match words_of_code(code).first() {
            Some(&word) => (asm::disassemble(self.0, word, quirks), WORD),
            None => (INVALID.to_owned(), WORD),
        }
    }

    fn assemble(&self, text: &str) -> Result<Vec<u8>, TextError> {
        let words = asm::assemble(self.0, text).map_err(|e| TextError {
            line: e.line,
            column: e.column,
            message: e.message,
        })?;
        Ok(code_of_words(&words))
    }

    fn opt_options(&self) -> pipeline::Options {
        pipeline::Options {
            // Reference 12.2: a vector access of 4.2 wraps inside its block of 16 bytes.
            vector_within_16: self.0 == Version::V42,
            // Reference 13.5: a group id has 16 bits.
            max_workgroups: 0xffff,
            ..pipeline::Options::new(pipeline::Level::O2)
        }
    }

    fn compile(
        &self,
        module: Module,
        variant: Variant,
        options: &CodeOptions,
        keep: Keep,
    ) -> Result<Compiled, TargetError> {
        let choices = kempe_v3d::compile::Options {
            shape: Shape { state: options.state, binning: variant == Variant::Binning },
            threads: options.threads,
            force_spill: options.force_spill,
            max_registers: options.max_registers,
            engine: options.engine,
            without: options.without,
            without_orders: options.without_orders,
            verify: options.verify,
            explain: keep.explanation,
            ..Default::default()
        };
        let explainer = || Explainer::new(self.occupancy(), options.max_registers, regs::costs());
        let mut observer = Watch {
            version: self.0,
            keep,
            explainer: keep.explanation.then(explainer),
            mir: Vec::new(),
            lowered: None,
            passes: Stopwatch::default(),
            warnings: Vec::new(),
            last: Instant::now(),
        };
        match kempe_v3d::compile::compile(module, self.0, &choices, &mut observer) {
            Ok(artifact) => {
                let explanation = observer.explainer.map(|explainer| explainer.finish(Some(&artifact.code)));
                let taken = observer.mir.into_iter().find(|(threads, _)| *threads == artifact.threads);
                Ok(Compiled {
                    artifact,
                    mir: taken.map(|(_, text)| text),
                    lowered: observer.lowered,
                    explanation,
                    passes: observer.passes.passes,
                    warnings: observer.warnings,
                })
            }
            Err(error) => {
                let explanation = observer.explainer.map(|explainer| explainer.finish(None));
                Err(TargetError::of(error, explanation, observer.passes))
            }
        }
    }

    fn validate(&self, code: &CodeFacts) -> Vec<Violation> {
        let facts = ProgramFacts {
            stage: code.stage,
            single_segment: code.single_section,
            entry: code.entry,
            code_address: code.address,
            ..ProgramFacts::compute(code.threads)
        };
        let found = validate::validate(self.0, &words_of_code(code.code), &facts);
        found.into_iter().map(|v| Violation::of(v, 1)).collect()
    }

    fn run(&self, artifact: &Artifact, inputs: &Inputs, options: &RunOptions) -> Result<RunReport, RunError> {
        let sizes = self.sizes(artifact)?;
        let (packed, scratch_bytes) = (sizes.wgs_per_supergroup, sizes.scratch_bytes_per_thread);
        let mut environment = run::environment(artifact, inputs, sizes)?;
        let mut program = Program::new(
            self.0,
            words_of_code(&artifact.code),
            run::uniform_words(artifact, &environment),
            artifact.threads,
            artifact.workgroup_size,
        );
        program.single_segment = artifact.single_section;
        let mut dispatch = Dispatch::new(inputs.groups);
        dispatch.wgs_per_supergroup = packed;
        if scratch_bytes != 0 {
            dispatch.scratch =
                Some(Scratch { base: environment.scratch_base, bytes_per_thread: scratch_bytes });
        }
        dispatch.images = environment.images.clone();
        dispatch.samplers = sim::PlacedSampler::all(&environment);
        let mut memory = std::mem::take(&mut environment.memory);
        let outcome = sim::run(&program, &dispatch, &mut memory, &sim_options(options));
        outcome.result.clone().map_err(|fault| self.program_error(artifact, &fault))?;
        Ok(RunReport { buffers: run::outputs(&environment, &memory), ..report(&outcome) })
    }

    fn interpreter(&self, artifact: &Artifact, run: &mut dyn FnMut(&interp::Options)) {
        let start = Start { version: self.0, threads: artifact.threads };
        run(&interp::Options::machine(&start));
    }

    fn variants(&self, stage: Stage) -> &'static [Variant] {
        match stage {
            Stage::Vertex | Stage::TessEval | Stage::Geometry => &[Variant::Render, Variant::Binning],
            Stage::Compute | Stage::Fragment | Stage::TessControl => &[Variant::Render],
        }
    }

    fn run_stage(
        &self,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        self.simulate_stage(artifact, inputs, options)
    }

    fn interpret_stage(
        &self,
        lowered: &Module,
        artifact: &Artifact,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<StageRun, RunError> {
        self.interpret_lowered_stage(lowered, artifact, inputs, options)
    }

    fn sizes(&self, artifact: &Artifact) -> Result<Sizes, RunError> {
        let start = Start { version: self.0, threads: artifact.threads };
        let scratch_bytes = artifact.scratch_bytes;
        Ok(Sizes {
            wgs_per_supergroup: self.packed(artifact, start)?,
            scratch_bytes_per_thread: scratch_bytes,
            threads: if scratch_bytes == 0 { 0 } else { start.scratch_threads() },
        })
    }

    fn run_raw(
        &self,
        raw: &RawProgram,
        memory: &mut Memory,
        options: &RunOptions,
    ) -> Result<RawRun, RunError> {
        let pieces: Vec<(u32, Vec<u64>)> =
            raw.code.iter().map(|(address, code)| (*address, words_of_code(code))).collect();
        let program = Program {
            version: self.0,
            pieces: pieces.clone(),
            entry: Some(raw.entry),
            uniforms: UniformStream::Address(raw.uniforms_address),
            threads: if raw.four_threads { 4 } else { 2 },
            single_segment: false,
            workgroup_size: raw.workgroup_size,
        };
        let mut dispatch = Dispatch::new(raw.workgroup_count);
        dispatch.wgs_per_supergroup = raw.wgs_per_supergroup;
        dispatch.batches = Some((raw.batches, raw.batches_per_supergroup));
        let mut how = sim_options(options);
        how.strict = raw.strict_switch;
        how.uniform_branch_lane = raw.uniform_branch_lane;
        how.undefined_in_memory = true;
        let outcome = sim::run(&program, &dispatch, memory, &how);
        outcome.result.clone().map_err(|fault| {
            let mut before = 0;
            let place = pieces.iter().find_map(|(address, words)| {
                let at = fault.pc - before;
                before += words.len();
                Some((address.wrapping_add(8 * at as u32), *words.get(at)?))
            });
            let place = place.map_or(String::new(), |(address, word)| {
                let text = asm::disassemble(self.0, word, false);
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("\n  at {address:#x}: {word:016x} {text}")
            });
            RunError::Program(format!("{fault}{place}"))
        })?;
        Ok(RawRun { report: report(&outcome), undefined: outcome.undefined })
    }
}

/// The counts of a run.
fn report(outcome: &sim::Outcome) -> RunReport {
    RunReport {
        buffers: Vec::new(),
        counts: outcome.executed.clone(),
        instructions: outcome.instructions,
        stalls: outcome.stalls,
        switches: outcome.switches,
        threads: outcome
            .threads
            .iter()
            .map(|t| ThreadCounts {
                supergroup: t.supergroup,
                batch: t.batch,
                instructions: t.instructions,
                stalls: t.stalls,
                switches: t.switches,
            })
            .collect(),
        warnings: outcome.warnings.iter().map(ToString::to_string).collect(),
    }
}

/// Listens to the driver.
struct Watch {
    version: Version,
    keep: Keep,
    explainer: Option<Explainer>,
    /// Text by number of threads.
    mir: Vec<(u32, String)>,
    lowered: Option<Module>,
    passes: Stopwatch,
    warnings: Vec<String>,
    last: Instant,
}

impl kempe_v3d::compile::Observer for Watch {
    fn step(&mut self, name: &'static str) {
        self.passes.add(name, self.last.elapsed(), 1);
        self.last = Instant::now();
    }

    fn warning(&mut self, message: &str) {
        self.warnings.push(message.to_owned());
    }

    fn lowered(&mut self, module: &Module) {
        if let Some(explainer) = &mut self.explainer {
            explainer.module(module);
        }
        if self.keep.lowered {
            self.lowered = Some(module.clone());
            self.last = Instant::now();
        }
    }

    fn allocated(&mut self, threads: u32, mir: &kempe_mir::Mir<MInst>, allocation: &Allocation) {
        self.explain(threads, mir, Some(allocation));
    }

    fn refused(&mut self, threads: u32, mir: &kempe_mir::Mir<MInst>) {
        self.explain(threads, mir, None);
    }

    fn finished(
        &mut self,
        _: &kempe_mir::Mir<MInst>,
        _: &Allocation,
        _: &kempe_v3d::finish::Frame,
        code: &kempe_v3d::finish::Finished,
    ) {
        if let Some(explainer) = &mut self.explainer {
            explainer.code(&code_of_words(&code.words));
        }
    }

    fn selected(&mut self, threads: u32, mir: &kempe_mir::Mir<MInst>) {
        if self.keep.mir {
            self.mir.push((threads, kempe_mir::print::print(mir)));
            self.last = Instant::now();
        }
    }
}

impl Watch {
    fn explain(&mut self, threads: u32, mir: &kempe_mir::Mir<MInst>, allocation: Option<&Allocation>) {
        if let Some(explainer) = &mut self.explainer {
            let file = regs::register_file(self.version, threads);
            explainer.attempt(threads, &file, mir, allocation);
            self.last = Instant::now();
        }
    }
}

fn sim_options(options: &RunOptions) -> sim::Options {
    sim::Options { step_limit: options.step_limit, order: options.order(), ..sim::Options::default() }
}

impl V3d {
    fn program_error(&self, artifact: &Artifact, fault: &sim::Fault) -> RunError {
        let word = words_of_code(&artifact.code).get(fault.pc).map_or(String::new(), |&word| {
            let text = asm::disassemble(self.0, word, false);
            format!("\n  at {}: {}", fault.pc, text.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        RunError::Program(format!("{fault}{word}"))
    }

    /// Work-groups per supergroup: as few as fill the lanes of all batches, if the code allows it and they can be
    /// resident together.
    fn packed(&self, artifact: &Artifact, start: Start) -> Result<u32, RunError> {
        if artifact.threads != 2 && artifact.threads != 4 {
            return Err(RunError::Setup(format!("{} threads: only 2 and 4 exist", artifact.threads)));
        }
        let items: u64 = artifact.workgroup_size.iter().map(|&n| u64::from(n)).product();
        let batches = |groups: u32| (items * u64::from(groups)).div_ceil(LANES as u64);
        if batches(1) > start.resident().into() {
            return Err(RunError::Setup(format!(
                "a work-group of {items} invocations takes {} threads, and {} has {} at {} per core",
                batches(1),
                self.name(),
                start.resident(),
                start.threads
            )));
        }
        if !artifact.may_share_batches {
            return Ok(1);
        }
        let full = (1..=MAX_PACKED).find(|&n| (items * u64::from(n)).is_multiple_of(LANES as u64));
        Ok(full.filter(|&n| batches(n) <= start.resident().into()).unwrap_or(1))
    }
}
