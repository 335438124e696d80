//! How far is an allocation from the best one? Least costs of spilling and least numbers of registers for small programs,
//! found without anything of the allocator: from the definitions of `problem.rs` only.

pub mod bits;
pub mod brute;
pub mod compare;
pub mod demand;
pub mod linear;
pub mod registers;
pub mod spill;
pub mod view;
