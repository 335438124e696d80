//! The result of a compile: everything a driver needs, and everything a reader wants to know.

use kempe_ir::UniformWord;

/// One word of the uniform stream, in final order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UniformSource {
    /// The same for every run: constants, configuration words, branch offsets of the stream.
    Const(u32),
    /// Supplied by the driver, plus a constant.
    Word(UniformWord, u32),
}

/// Statistics, recounted from the encoded words (see `docs/formats/artifact.md` for the definitions).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    pub instructions: u32,
    pub threads: u32,
    pub loops: u32,
    pub uniforms: u32,
    pub max_temps: u32,
    /// Stores and loads that register allocation brought in.
    pub spills: u32,
    pub fills: u32,
    /// Loads and stores of private arrays.
    pub scratch: u32,
    /// Values made again instead of filled.
    pub recomputed: u32,
    pub sfu_stalls: u32,
    pub inst_and_stalls: u32,
    pub nops: u32,
    pub code_bytes: u32,
    /// Estimated cycles of one thread, loops weighted.
    pub cycles: u64,
}

/// What one compile gives for one target and variant.
#[derive(Clone, PartialEq, Debug)]
pub struct Artifact {
    pub target: String,
    pub entry: String,
    pub stage: kempe_ir::Stage,
    pub code: Vec<u64>,
    pub uniforms: Vec<UniformSource>,
    /// Hardware threads per core the code was made for.
    pub threads: u32,
    /// The program has no thread switch before its end and is dispatched in its final section.
    pub single_section: bool,
    pub workgroup_size: [u32; 3],
    /// Shared memory per work-group in bytes.
    pub shared_bytes: u32,
    /// Scratch memory per hardware thread in bytes.
    pub scratch_bytes: u32,
    pub constant_data: Vec<u8>,
    pub uses_barrier: bool,
    /// Several work-groups may share a 16-lane batch.
    pub may_share_batches: bool,
    /// By id: a [`UniformWord`] names its resource by its number here.
    pub resources: Vec<kempe_ir::Resource>,
    pub stats: Stats,
    /// Configurations (thread counts) really tried.
    pub attempts: u32,
}
