//! Machine IR: what a target selects, what the allocator sees, what is emitted.
//!
//! * [`function`]: machine code in SSA form over virtual registers; its program view is the allocator's own
//! * [`order`]: scheduling before allocation
//! * [`mod@print`]: as text for people
//! * [`symbolic`]: symbolic values, for the judge of the final words
//! * [`artifact`]: the result of a compile; [`error`]: why there is none
//! * [`rules`]: rules of the hardware that code breaks

pub mod artifact;
pub mod error;
pub mod function;
mod live;
pub mod order;
pub mod print;
pub mod rules;
pub mod symbolic;

pub use artifact::{
    Artifact, ColorTarget, Graphics, PrimitiveFacts, Stats, UniformSource, Varying, VaryingSource, VertexRow,
    code_of_words, words_of_code,
};
pub use function::{Mir, MirBuilder};
