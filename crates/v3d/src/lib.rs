//! Broadcom V3D 4.2 and 7.1: instruction set, code generation, validation and simulation.

pub mod asm;
pub mod checkb;
pub mod compile;
pub mod decode;
pub mod encode;
pub mod finish;
pub mod instr;
pub mod lower;
pub mod magic;
pub mod mops;
mod mops_text;
pub mod ops;
pub mod regs;
pub mod select;
pub mod sim;
pub mod stats;
pub mod tables;
pub mod validate;
