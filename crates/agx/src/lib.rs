//! The machine half of the target Apple AGX G13 (M1): instructions, their encoding and text, a strict simulator, the rules.

pub mod asm;
pub mod decode;
pub mod encode;
pub mod instr;
pub mod ops;
pub mod oracle;
pub mod regs;
pub mod sim;
pub mod stats;
pub mod tables;
pub mod validate;
