//! The intermediate representation: scalar SSA over blocks whose order is their structure.
//!
//! * [`entity`]: ids and dense tables; [`types`]: scalar types and address spaces
//! * [`ops`]: the one table of operations; [`module`]: modules, functions, blocks, instructions
//! * [`generate`]: random programs
//! * [`inputs`]: plausible inputs for a module that nobody has described
//! * [`builder`]: appending instructions
//! * [`analysis`]: predecessors, dominators, loops, uses
//! * [`divergence`]: which values are the same on all lanes
//! * [`eval`]: what every pure operation computes
//! * [`bounds`]: how far two right float results may lie apart
//! * [`image`]: images: formats, descriptors, where a texel lies
//! * [`sample`]: lookups through samplers
//! * [`exec`]: memory, bindings and lanes: what everything that runs a program shares
//! * [`io`]: the interface between stages; [`primitive`]: primitives and patches
//! * [`interp`]: the interpreter
//! * [`verify`]: is a module well formed?
//! * [`reduce`]: makes a program that shows a defect small
//! * [`text`]: printing and parsing

pub mod analysis;
pub mod bounds;
pub mod builder;
pub mod divergence;
pub mod entity;
pub mod eval;
pub mod exec;
pub mod generate;
pub mod image;
pub mod inputs;
pub mod interp;
pub mod io;
pub mod module;
pub mod ops;
pub mod primitive;
pub mod reduce;
pub mod sample;
pub mod schedule;
pub mod text;
pub mod types;
pub mod verify;

pub use builder::Builder;
pub use entity::{Arena, Entity, Table};
pub use image::ImageInfo;
pub use module::*;
pub use ops::{Class, Effect, Op, Sig};
pub use types::{Space, Type};
