//! Who runs the programs of a draw.

use super::raster::STEPS;
use crate::run::{self, RunError, RunOptions, StageRun};
use crate::target::Target;
use kempe_ir::exec::Inputs;
use kempe_ir::io::IoImm;
use kempe_ir::{Module, Op, UniformWord};
use kempe_mir::{Artifact, UniformSource, VaryingSource, VertexRow};
use std::collections::BTreeSet;

/// Runs the program of one stage for the invocations of `inputs.stage`.
pub trait Executor {
    /// The scalars of the interface that the program reads.
    fn inputs(&self) -> &[IoImm];

    /// # Errors
    /// When the program cannot be run like this, or does something that is not allowed.
    fn run(&self, inputs: &Inputs) -> Result<StageRun, RunError>;
}

/// The interpreter on the source form.
pub struct Interpreted<'a> {
    module: &'a Module,
    inputs: Vec<IoImm>,
    options: RunOptions,
}

impl<'a> Interpreted<'a> {
    pub fn new(module: &'a Module, options: RunOptions) -> Interpreted<'a> {
        Interpreted { module, inputs: inputs(module), options }
    }
}

impl Executor for Interpreted<'_> {
    fn inputs(&self) -> &[IoImm] {
        &self.inputs
    }

    fn run(&self, inputs: &Inputs) -> Result<StageRun, RunError> {
        run::interpret_stage(self.module, inputs, &self.options)
    }
}

/// A target: its simulator on the code, or with `lowered` the interpreter on the program that the code was made from.
pub struct OnTarget<'a> {
    pub target: &'static dyn Target,
    pub artifact: &'a Artifact,
    /// Of a vertex program whose own results do not tell the position in clip space: the program for binning, which does.
    pub binning: Option<&'a Artifact>,
    pub lowered: Option<&'a Module>,
    pub options: RunOptions,
    inputs: Vec<IoImm>,
}

impl<'a> OnTarget<'a> {
    pub fn new(target: &'static dyn Target, artifact: &'a Artifact, options: RunOptions) -> OnTarget<'a> {
        let varyings = artifact.graphics.iter().flat_map(|g| &g.varyings);
        let inputs = varyings.filter_map(|v| match v.source {
            VaryingSource::Output(slot, component) => Some(IoImm {
                interpolation: v.interpolation,
                sampling: v.sampling,
                ..IoImm::new(slot, component)
            }),
            _ => None,
        });
        OnTarget { target, artifact, binning: None, lowered: None, options, inputs: inputs.collect() }
    }
}

impl OnTarget<'_> {
    /// Machines differ in the fixed point of their screens; here it is that of the rasteriser, to nearest, halves up.
    fn screen_in_steps(&self, run: &mut StageRun) {
        let own = self.artifact.uniforms.iter().find_map(|u| match u {
            UniformSource::Word(UniformWord::ViewportScale { axis: 0 | 1, steps }, _) => Some(*steps),
            _ => None,
        });
        let Some(own) = own.filter(|&s| s != STEPS && s != 0).map(i64::from) else { return };
        for k in 0..2 {
            let list = run.rows.get_mut(&VertexRow::Screen(k));
            for v in list.into_iter().flatten().flatten() {
                let twice = 2 * i64::from(*v as i32) * i64::from(STEPS) + own;
                *v = twice.div_euclid(2 * own) as i32 as u32;
            }
        }
    }
}

impl Executor for OnTarget<'_> {
    fn inputs(&self) -> &[IoImm] {
        &self.inputs
    }

    fn run(&self, inputs: &Inputs) -> Result<StageRun, RunError> {
        run::check_inputs(&self.artifact.resources, inputs)?;
        let one = |artifact: &Artifact, lowered: Option<&Module>| match lowered {
            Some(lowered) => self.target.interpret_stage(lowered, artifact, inputs, &self.options),
            None => self.target.run_stage(artifact, inputs, &self.options),
        };
        let mut run = one(self.artifact, self.lowered)?;
        self.screen_in_steps(&mut run);
        if let Some(binning) = self.binning {
            let positions = one(binning, None)?;
            run.report.instructions += positions.report.instructions;
            for (row, list) in positions.rows {
                run.rows.entry(row).or_insert(list);
            }
            for (at, list) in positions.outputs.values {
                run.outputs.values.entry(at).or_insert(list);
            }
        }
        Ok(run)
    }
}

/// The scalars of the interface that a module reads.
pub fn inputs(module: &Module) -> Vec<IoImm> {
    let all: BTreeSet<IoImm> = crate::link::places(module, Op::Input).collect();
    all.into_iter().collect()
}
