//! Register allocation: data in, places and edits out.

pub mod problem;

pub use problem::*;
