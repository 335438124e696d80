//! The optimiser: IR to IR, one pass a file, and the one table that orders them ([`pipeline`]).
//!
//! Every pass is a function `run(&mut Module) -> bool` that says whether it changed something. A pass leaves a module
//! that the verifier accepts, with the layout rules of `kempe_ir::module` kept; in debug builds the pipeline looks.

pub mod algebra;
pub mod alias;
pub mod cells;
pub mod cfg;
pub mod compact;
pub mod counters;
pub mod dce;
pub mod demote;
pub mod double;
pub mod dse;
pub mod fold;
pub mod graph;
pub mod gvn;
pub mod if_convert;
pub mod licm;
pub mod lint;
pub mod localise;
pub mod pipeline;
pub mod sink;
pub mod split_arrays;
pub mod spread;
pub mod ssa;
pub mod subst;
pub mod uniform_loads;
pub mod unroll;
pub mod vectorise;

pub use pipeline::{Level, Observer, Options, Times, optimise, optimise_with, run_named};
