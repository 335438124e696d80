//! What the tests that run compiled code share.

use kempe_ir::Module;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_mir::{Artifact, UniformSource};
use kempe_v3d::instr::Version;
use kempe_v3d::{asm, sim};

/// What a run on the simulator left behind.
#[derive(PartialEq, Debug)]
pub struct Ran {
    pub buffers: Vec<Vec<u8>>,
    pub images: Vec<Vec<u8>>,
    pub warnings: usize,
}

/// Runs on the simulator, threads in an order that the code chooses.
#[allow(dead_code)]
pub fn simulate(m: &Module, a: &Artifact, version: Version, inputs: &Inputs) -> Result<Ran, String> {
    simulate_in(m, a, version, inputs, sim::Order::Shuffled(a.code.len() as u64 / 8))
}

/// The same in a given order.
pub fn simulate_in(
    m: &Module,
    a: &Artifact,
    version: Version,
    inputs: &Inputs,
    order: sim::Order,
) -> Result<Ran, String> {
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
    let words = kempe_mir::words_of_code(&a.code);
    let mut program = sim::Program::new(version, words.clone(), uniforms, a.threads, a.workgroup_size);
    program.single_segment = a.single_section;
    let mut dispatch = sim::Dispatch::new(inputs.groups);
    dispatch.wgs_per_supergroup = wgs;
    dispatch.images = env.images.clone();
    dispatch.samplers = sim::PlacedSampler::all(&env);
    if a.scratch_bytes != 0 {
        dispatch.scratch = Some(sim::Scratch { base: env.scratch_base, bytes_per_thread: a.scratch_bytes });
    }
    let mut memory = env.memory.clone();
    let outcome = sim::run(&program, &dispatch, &mut memory, &sim::Options { order, ..Default::default() });
    if let Err(f) = outcome.result {
        let from = f.pc.saturating_sub(12);
        let near: String = (from..(f.pc + 4).min(words.len()))
            .map(|n| format!("{n:5} {}\n", asm::disassemble(version, words[n], false)))
            .collect();
        return Err(format!("{f}\n{near}"));
    }
    let owned = |list: Vec<&[u8]>| list.into_iter().map(<[u8]>::to_vec).collect();
    Ok(Ran {
        buffers: owned(env.buffer_contents(&memory)),
        images: owned(env.image_contents(&memory)),
        warnings: outcome.warnings.len(),
    })
}

/// Text of a module in which values have names: `%name` gets a number where it is first seen.
#[allow(dead_code)]
pub fn numbered(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let n = names.iter().position(|&k| k == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        out.push_str(&n.to_string());
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
