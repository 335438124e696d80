//! The command `kempe`.

fn main() {}
