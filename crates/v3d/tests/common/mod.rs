//! What the tests that run compiled code share.

use kempe_ir::Module;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_mir::{Artifact, UniformSource};
use kempe_v3d::instr::Version;
use kempe_v3d::{asm, sim};

/// Contents of all buffers after a run on the simulator.
pub fn simulate(m: &Module, a: &Artifact, version: Version, inputs: &Inputs) -> Result<Vec<Vec<u8>>, String> {
    let start = sim::Start { version, threads: a.threads };
    let wgs = if a.may_share_batches { 4 } else { 1 };
    let scratch_threads = if a.scratch_bytes == 0 { 0 } else { start.scratch_threads() };
    let sizes = Sizes {
        wgs_per_supergroup: wgs,
        scratch_bytes_per_thread: a.scratch_bytes,
        threads: scratch_threads,
    };
    let env = Environment::new(m, inputs, sizes)?;
    let uniforms = a
        .uniforms
        .iter()
        .map(|u| match *u {
            UniformSource::Const(c) => c,
            UniformSource::Word(w, c) => env.word(w).wrapping_add(c),
        })
        .collect();
    let mut program = sim::Program::new(version, a.code.clone(), uniforms, a.threads, a.workgroup_size);
    program.single_segment = a.single_section;
    let mut dispatch = sim::Dispatch::new(inputs.groups);
    dispatch.wgs_per_supergroup = wgs;
    if a.scratch_bytes != 0 {
        dispatch.scratch = Some(sim::Scratch { base: env.scratch_base, bytes_per_thread: a.scratch_bytes });
    }
    let mut memory = env.memory.clone();
    let order = sim::Order::Shuffled(a.code.len() as u64);
    let outcome = sim::run(&program, &dispatch, &mut memory, &sim::Options { order, ..Default::default() });
    if let Err(f) = outcome.result {
        let from = f.pc.saturating_sub(8);
        let near: String = (from..(f.pc + 4).min(a.code.len()))
            .map(|n| format!("{n:5} {}\n", asm::disassemble(version, a.code[n], false)))
            .collect();
        return Err(format!("{f}\n{near}"));
    }
    Ok(env.buffer_contents(&memory).into_iter().map(<[u8]>::to_vec).collect())
}
