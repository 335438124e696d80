//! The machine half of the target Apple AGX G13 (M1).
//!
//! * [`instr`], [`ops`], [`tables`]: what an instruction is; one table of all of them.
//! * [`encode`], [`decode`], [`asm`]: bytes and text, both ways; [`regs`]: which registers an instruction reads and writes.
//! * [`validate`]: the rules of the reference; [`stats`]: what is counted, and how many threads fit with so many registers.
//! * [`sim`]: runs compute programs, strictly.
//! * [`oracle`]: the formats of the oracle files that all this is held against.
//!
//! Facts in our own words: `docs/isa/agx.md`.

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
