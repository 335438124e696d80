//! What a sweep calls a failure, and how failures are told: one of each sort, the smallest program first.

use crate::survey::reason;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Out of registers: an answer, not a failure.
    Refused,
    /// The module needs something that is not there: no failure either, when a program begins with it.
    Unsupported,
    Panic,
    /// Time or memory.
    Limit,
    /// The allocator, checker A, the validator or checker B objects.
    Bug,
    /// Refused at a limit, and not at a lower one.
    Hole,
    /// A refusal that does not say what does not fit.
    Words,
    /// A refusal that takes longer than a compile.
    SlowRefusal,
    /// The simulator does not give what the interpreter gives.
    Wrong,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Refused => "out of registers",
            Kind::Unsupported => "not supported",
            Kind::Panic => "panic",
            Kind::Limit => "time or memory",
            Kind::Bug => "bug",
            Kind::Hole => "refused above the smallest limit",
            Kind::Words => "refused without saying why",
            Kind::SlowRefusal => "slow refusal",
            Kind::Wrong => "computes something else",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    /// Of the program.
    pub name: String,
    /// What shows it.
    pub command: String,
    /// Instructions of the lowered program.
    pub size: usize,
}

/// Prints each sort of failure with its smallest program.
pub fn tell(failures: &[Failure]) {
    let mut sorts: BTreeMap<(Kind, String), Vec<&Failure>> = BTreeMap::new();
    for f in failures {
        let first = f.message.lines().next().unwrap_or_default();
        sorts.entry((f.kind, reason(first))).or_default().push(f);
    }
    for ((kind, _), list) in &sorts {
        let Some(f) = list.iter().min_by_key(|f| (f.size, &f.name)) else { continue };
        println!("{} times {}, the smallest: {}", list.len(), kind.name(), f.name);
        println!("    {}", f.message.lines().next().unwrap_or_default());
        println!("    {}", f.command);
    }
}
