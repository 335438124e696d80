//! The text form of modules: [`print`] writes it, [`parse`] reads it back.
//!
//! One statement a line; `;` starts a comment. Ids are kept: value `%7` and block `b3` of the text are `%7` and
//! `b3` of the module, so a message about a module can be looked up in its text. (Instructions are numbered in text
//! order when they are read.) Printing what was parsed from a printed module gives the same text.
//!
//! ```text
//! module "main" compute
//! workgroup 16 1 1
//! resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 "data"
//! var $0 shared size 64 align 4 "tile"
//! func
//! b0:
//!   %0:ptr.storage = resource_addr.ptr.storage <@0>
//!   %1:i32 "i" = builtin.i32 <local_invocation_index>
//!   %2:ptr.storage = lea.ptr.storage <scale 4 offset 0> %0, %1
//!   %3:f32 = load.f32 <storage x1 align 4> %2
//!   %4:f32 = fadd.f32 %3, %3 {nocontract}
//!   store.f32 <storage x1 align 4> %2, %4
//!   return
//! ```
//!
//! A result is `%ID:TYPE "name" =`; an instruction is `OP.TYPE <immediate> operands {flags} #location`. A block is
//! `bID(parameters) [hints]:` and ends in `jump`, `branch`, `return` or `unreachable`. Parsing does not check that the
//! module is well formed beyond what it needs to build it; that is the verifier's task.

mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::{ParseError, parse};
pub use print::{print, print_inst};

use crate::module::{AtomicOp, Builtin, Flags, ReduceKind, ResKind, Stage, TexelForm, UniformWord};

/// Names of flags, in the order in which they are printed.
const FLAGS: &[(&str, Flags)] = &[
    ("nsw", Flags::NO_SIGNED_WRAP),
    ("nuw", Flags::NO_UNSIGNED_WRAP),
    ("nocontract", Flags::NO_CONTRACTION),
    ("relaxed", Flags::RELAXED),
    ("fast", Flags::FAST),
];

const STAGES: &[(&str, Stage)] = &[
    ("compute", Stage::Compute),
    ("vertex", Stage::Vertex),
    ("fragment", Stage::Fragment),
    ("geometry", Stage::Geometry),
    ("tess_control", Stage::TessControl),
    ("tess_eval", Stage::TessEval),
];

const RES_KINDS: &[(&str, ResKind)] = &[
    ("storage", ResKind::StorageBuffer),
    ("uniform", ResKind::UniformBuffer),
    ("push", ResKind::PushConstants),
    ("image", ResKind::Image),
    ("texture", ResKind::Texture),
    ("sampler", ResKind::Sampler),
    ("other", ResKind::Other),
];

const TEXEL_FORMS: &[(&str, TexelForm)] =
    &[("color", TexelForm::Color), ("words", TexelForm::Words), ("halves", TexelForm::Halves)];

const ATOMIC_OPS: &[(&str, AtomicOp)] = &[
    ("add", AtomicOp::Add),
    ("sub", AtomicOp::Sub),
    ("exchange", AtomicOp::Exchange),
    ("compare_exchange", AtomicOp::CompareExchange),
    ("umin", AtomicOp::Umin),
    ("umax", AtomicOp::Umax),
    ("smin", AtomicOp::Smin),
    ("smax", AtomicOp::Smax),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
    ("load", AtomicOp::Load),
    ("store", AtomicOp::Store),
    ("fadd", AtomicOp::Fadd),
    ("fmin", AtomicOp::Fmin),
    ("fmax", AtomicOp::Fmax),
];

const REDUCE_KINDS: &[(&str, ReduceKind)] = &[
    ("reduce", ReduceKind::Reduce),
    ("inclusive", ReduceKind::InclusiveScan),
    ("exclusive", ReduceKind::ExclusiveScan),
];

/// Built-ins; those with a component are listed with component 0 and `true`.
const BUILTINS: &[(&str, Builtin, bool)] = &[
    ("local_invocation_id", Builtin::LocalInvocationId(0), true),
    ("local_invocation_index", Builtin::LocalInvocationIndex, false),
    ("workgroup_id", Builtin::WorkgroupId(0), true),
    ("num_workgroups", Builtin::NumWorkgroups(0), true),
    ("subgroup_size", Builtin::SubgroupSize, false),
    ("subgroup_local_id", Builtin::SubgroupLocalId, false),
    ("subgroup_id", Builtin::SubgroupId, false),
    ("num_subgroups", Builtin::NumSubgroups, false),
    ("lane_id", Builtin::LaneId, false),
    ("thread_id", Builtin::ThreadId, false),
    ("vertex_index", Builtin::VertexIndex, false),
    ("instance_index", Builtin::InstanceIndex, false),
    ("base_vertex", Builtin::BaseVertex, false),
    ("base_instance", Builtin::BaseInstance, false),
    ("draw_index", Builtin::DrawIndex, false),
    ("frag_coord", Builtin::FragCoord(0), true),
    ("front_facing", Builtin::FrontFacing, false),
    ("point_coord", Builtin::PointCoord(0), true),
    ("sample_id", Builtin::SampleId, false),
    ("sample_mask_in", Builtin::SampleMaskIn, false),
    ("primitive_id", Builtin::PrimitiveId, false),
    ("sample_count", Builtin::SampleCount, false),
    ("sample_position", Builtin::SamplePosition(0), true),
    ("invocation_id", Builtin::InvocationId, false),
    ("patch_vertices", Builtin::PatchVertices, false),
    ("tess_coord", Builtin::TessCoord(0), true),
];

/// Uniform words without operands.
const PLAIN_WORDS: &[(&str, UniformWord)] = &[
    ("push_addr", UniformWord::PushAddr),
    ("constant_addr", UniformWord::ConstantAddr),
    ("scratch_addr", UniformWord::ScratchAddr),
    ("scratch_bytes_per_thread", UniformWord::ScratchBytesPerThread),
    ("shared_addr", UniformWord::SharedAddr),
    ("viewport_near", UniformWord::ViewportNear),
    ("patch_vertices", UniformWord::PatchVertices),
];

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, v)| *v == value).map_or("?", |(n, _)| n)
}

fn value_of<T: Copy>(table: &[(&'static str, T)], name: &str) -> Option<T> {
    table.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}
