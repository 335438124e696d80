//! Apple AGX G13 (M1): instruction set, code generation, validation and simulation of compute programs.

pub mod asm;
pub mod compile;
pub mod decode;
pub mod encode;
pub mod finish;
pub mod instr;
pub mod lower;
pub mod mops;
pub mod ops;
pub mod oracle;
pub mod registers;
pub mod regs;
pub mod select;
pub mod sim;
pub mod stats;
pub mod tables;
pub mod validate;
