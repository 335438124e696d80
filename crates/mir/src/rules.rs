//! Broken rules of a target's reference, as validators tell them.

use std::fmt;

/// How bad it is to break a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Class {
    /// A limit of the hardware or of the encoding, or nobody knows what happens: an error.
    Hw,
    /// Practice of the reference driver or advice: a warning.
    Drv,
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Its number in the target's reference.
    pub rule: &'static str,
    pub class: Class,
    /// What is counted: `word` or `byte`.
    pub unit: &'static str,
    /// The place that breaks it.
    pub at: usize,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Hw => "error",
            Class::Drv => "warning",
        };
        write!(f, "{class}: {} {}: rule {}: {}", self.unit, self.at, self.rule, self.message)
    }
}

/// Collects violations.
pub struct Report {
    unit: &'static str,
    found: Vec<Violation>,
}

impl Report {
    /// `unit`: what the places count.
    pub fn new(unit: &'static str) -> Report {
        Report { unit, found: Vec::new() }
    }

    #[cold]
    pub fn hw(&mut self, rule: &'static str, at: usize, message: impl Into<String>) {
        self.add(rule, Class::Hw, at, message.into());
    }

    #[cold]
    pub fn drv(&mut self, rule: &'static str, at: usize, message: impl Into<String>) {
        self.add(rule, Class::Drv, at, message.into());
    }

    fn add(&mut self, rule: &'static str, class: Class, at: usize, message: String) {
        self.found.push(Violation { rule, class, unit: self.unit, at, message });
    }

    /// As they were found.
    pub fn found(self) -> Vec<Violation> {
        self.found
    }

    /// By place, errors first. A place that is reached in several ways is told once.
    pub fn sorted(self) -> Vec<Violation> {
        let mut found = self.found;
        found.sort_by(|a, b| (a.at, a.class, a.rule).cmp(&(b.at, b.class, b.rule)));
        found.dedup_by(|a, b| (a.at, a.rule) == (b.at, b.rule));
        found
    }
}
