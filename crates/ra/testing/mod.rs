//! Shared by the tests and the `fuzz` example: synthetic register files, problems by hand and random ones, execution of a virtual
//! program beside its allocation, and an independent account of what an instruction needs at least.

#![allow(dead_code)]

pub mod arbitrary;
pub mod build;
pub mod case;
pub mod dump;
pub mod execute;
pub mod files;
pub mod generate;
pub mod grow;
pub mod judge;
pub mod lanes;
pub mod least;
pub mod mutate;
pub mod optimum;
pub mod rng;
