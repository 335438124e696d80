//! The result of a compile: everything a driver needs, and everything a reader wants to know.

use kempe_ir::UniformWord;
use kempe_ir::io::{Interpolation, Sampling, Slot};
use kempe_ir::primitive::PrimitiveModes;

/// One word of the uniform stream, in final order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UniformSource {
    /// The same for every run: constants, configuration words, branch offsets of the stream.
    Const(u32),
    /// Supplied by the driver, plus a constant.
    Word(UniformWord, u32),
    /// The upper 32 bits of a word that is an address, where addresses have 64.
    High(UniformWord),
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
    /// Of these, what allocation brought in: stores, loads, copies, what is made again.
    pub edit_cycles: u64,
    /// What the order before allocation reckoned with for stores, loads and what is made again.
    pub predicted_edit_cycles: u64,
}

/// An input of a fragment program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Varying {
    pub source: VaryingSource,
    pub interpolation: Interpolation,
    pub sampling: Sampling,
}

/// What a varying carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VaryingSource {
    /// A component of what the stage before wrote.
    Output(Slot, u8),
    /// Number of the primitive.
    PrimitiveId,
    /// Place in a point sprite, x or y.
    PointCoord(u8),
}

/// What a row of a vertex program's memory holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VertexRow {
    /// Inputs.
    InstanceId,
    BaseInstance,
    VertexId,
    /// Of geometry and tessellation: the primitive or patch; the place of a point in its patch.
    PrimitiveId,
    TessCoord(u8),
    Attribute {
        location: u8,
        component: u8,
    },
    /// Outputs: position in clip space; on the screen x and y in fixed point; depth; 1 / w; size of a point; what the next stage
    /// is given.
    Clip(u8),
    Screen(u8),
    Depth,
    ReciprocalW,
    PointSize,
    Varying(Slot, u8),
}

/// A colour target that a fragment program writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColorTarget {
    pub target: u8,
    pub components: u8,
    /// 32 bits for each component; otherwise 16-bit floats.
    pub wide: bool,
}

/// Of geometry and tessellation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrimitiveFacts {
    pub modes: PrimitiveModes,
    /// Of a geometry program: rows in front of those of its vertices.
    pub header_rows: u32,
    /// Most invocations in a batch.
    pub width: u32,
}

/// What a driver must know of a program of a graphics stage.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Graphics {
    /// A program before the rasteriser, for binning: positions only.
    pub binning: bool,
    /// Of a fragment program, in the order in which it takes them.
    pub varyings: Vec<Varying>,
    /// In the order in which they are written, after the depth.
    pub targets: Vec<ColorTarget>,
    /// The program writes a depth for each fragment: its own, or the unchanged one.
    pub writes_depth: bool,
    /// Depth must not be tested before the program runs.
    pub late_tests: bool,
    /// It runs for each sample.
    pub per_sample: bool,
    /// It reads the w of the pixel's centre, although something else is interpolated at centroids.
    pub center_w: bool,
    /// Rows of the invocation's own, from the first. Outputs of a geometry program: rows of each vertex that it gives; of a control
    /// program: of the vertex that the invocation gives.
    pub input_rows: Vec<VertexRow>,
    pub output_rows: Vec<VertexRow>,
    /// Of geometry and tessellation: rows of each vertex of the primitive or patch, and of the patch itself.
    pub vertex_rows: Vec<VertexRow>,
    pub patch_rows: Vec<VertexRow>,
    /// Of a control program: rows that it gives the patch.
    pub patch_output_rows: Vec<VertexRow>,
    pub primitive: Option<PrimitiveFacts>,
}

/// What one compile gives for one target and variant.
#[derive(Clone, PartialEq, Debug)]
pub struct Artifact {
    pub target: String,
    pub entry: String,
    pub stage: kempe_ir::Stage,
    /// As it lies in memory. What is in it is the target's business, also how long an instruction is.
    pub code: Vec<u8>,
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
    /// The program holds addresses of 64 bits; they are taken to be below 2^32, only the low word of each counts.
    pub low_addresses: bool,
    /// By id: a [`UniformWord`] names its resource by its number here.
    pub resources: Vec<kempe_ir::Resource>,
    /// Of programs of graphics stages.
    pub graphics: Option<Graphics>,
    pub stats: Stats,
    /// Configurations (thread counts) really tried.
    pub attempts: u32,
}

/// Code as words of 64 bits, for machines that have such; a rest at the end is left out.
pub fn words_of_code(code: &[u8]) -> Vec<u64> {
    code.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The other way.
pub fn code_of_words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
