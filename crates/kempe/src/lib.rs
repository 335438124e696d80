//! Kempe as a library: an offline shader compiler for GPUs. The command line and everything else stands on this crate.
//!
//! * [`targets`]: the GPUs that code can be made for
//! * [`compile`]: from a source file to artifacts; [`json`]: the results as JSON
//! * [`explain`]: where the registers go, and why
//! * [`artifact`]: the result of a compile as JSON
//! * [`run`]: an artifact on the simulator; [`raw`]: machine code that was made elsewhere
//! * [`link`]: a vertex and a fragment shader that belong together; [`draw`]: pictures of what they draw
//! * [`data`]: bytes as numbers
//! * [`limits`]: time and memory limits, panics caught
//! * [`clock`]: CPU time

mod agx;
pub mod artifact;
pub mod clock;
pub mod compile;
pub mod data;
pub mod draw;
pub mod explain;
pub mod json;
pub mod limits;
pub mod link;
pub mod raw;
pub mod run;
mod target;
mod v3d;

pub use kempe_front::Options as FrontOptions;
pub use kempe_ir as ir;
pub use kempe_ir::{Stage, exec, inputs};
pub use kempe_mir::{Artifact, Stats, UniformSource};
pub use kempe_opt::Level;
pub use kempe_ra::{Engine, Without};
pub use target::{CodeFacts, INVALID, Target, TextError, Variant, Violation, target, targets};

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
