//! The allocator beside the least cost and the fewest registers, and what came of it over many programs.

use std::fmt::Write as _;

use kempe_ra::*;

use super::registers::{fewest, fits};
use super::spill::{Between, Effort, Least, least};
use super::view::View;

/// Costs below this are equal: frequencies are sums of fractions.
const EQUAL: f64 = 1e-3;

/// Programs with a loss that are listed.
const WORST: usize = 10;

/// What an allocation costs, without and with copies.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    /// Stores, fills and recomputations, weighted.
    pub memory: f64,
    /// Copies and swaps, weighted.
    pub copies: f64,
}

pub fn spent(program: &Program, costs: &Costs, allocation: &Allocation) -> Spent {
    let is_copy = |edit: &Edit| matches!(edit, Edit::Copy { .. } | Edit::Swap { .. });
    let part = |copies: bool| {
        let edits = allocation.edits.iter().copied().filter(|(_, edit)| is_copy(edit) == copies).collect();
        Allocation { edits, ..Allocation::default() }.cost(program, costs)
    };
    Spent { memory: part(false), copies: part(true) }
}

/// The fewest registers the allocator does with, without memory edits.
fn fewest_of_allocator(file: &RegisterFile, program: &Program, from: u32, most: u32) -> Option<u32> {
    (from..=most).find(|&limit| {
        // The solver knows no operations made again.
        let without = Without { repeats: true, ..Without::default() };
        let options = Options { max_registers: Some(limit), without, ..Options::default() };
        let done = allocate(file, program, &Costs::default(), &options);
        done.is_ok_and(|allocation| !allocation.memory_edits)
    })
}

/// What is compared, and how hard is tried.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub file: &'a RegisterFile,
    pub costs: &'a Costs,
    pub between: Between,
    pub effort: Effort,
    /// Limits up to this are tried when the fewest registers are looked for.
    pub most: u32,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub limit: u32,
    pub ours: Spent,
    pub least: f64,
}

/// What many programs gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub cases: Vec<Case>,
    /// Too large for the solver, or given up.
    pub unsolved: u32,
    /// The allocator refuses the limit.
    pub refused: u32,
    /// Mistakes: the allocator is better than the least cost.
    pub wrong: Vec<String>,
    /// Registers without memory edits: programs, those with the fewest possible, the others.
    pub programs: u32,
    pub equal: u32,
    pub more: Vec<String>,
}

/// Limits at which a program that needs `fewest` registers is short of some: by one, by a third, by half.
fn limits(fewest: u32) -> Vec<u32> {
    let mut list = vec![fewest.saturating_sub(1), fewest * 2 / 3, fewest / 2];
    list.retain(|limit| *limit > 0);
    list.sort_unstable();
    list.dedup();
    list
}

impl Report {
    /// Compares one program, at `only` or at several limits below what it needs.
    pub fn add(&mut self, plan: &Plan, name: &str, program: &Program, only: Option<u32>) {
        let Some(bound) = fewest(plan.file, program, plan.most) else { return };
        let found = fewest_of_allocator(plan.file, program, bound, plan.most);
        self.programs += 1;
        self.equal += (found == Some(bound)) as u32;
        if found != Some(bound) {
            self.more.push(format!("{name}: {bound}, ours {found:?}"));
        }
        for limit in only.map_or_else(|| limits(bound), |limit| vec![limit]) {
            self.at(plan, name, program, limit);
        }
    }

    fn at(&mut self, plan: &Plan, name: &str, program: &Program, limit: u32) {
        // The solver knows no operations made again.
        let without = Without { repeats: true, ..Without::default() };
        let options = Options { max_registers: Some(limit), without, ..Options::default() };
        let ours = match allocate(plan.file, program, plan.costs, &options) {
            Ok(allocation) => spent(program, plan.costs, &allocation),
            Err(_) => {
                self.refused += 1;
                return;
            }
        };
        // (Without memory edits the units that they reserve are there as well.)
        if fits(&View::new(plan.file, program, Some(limit), false)) {
            return;
        }
        let view = View::new(plan.file, program, Some(limit), true);
        match least(&view, plan.costs, plan.between, plan.effort) {
            Least::Cost { cost, .. } => {
                if ours.memory < cost - EQUAL {
                    self.wrong.push(format!("{name} limit {limit}: {} below {cost}", ours.memory));
                }
                self.cases.push(Case { name: name.to_owned(), limit, ours, least: cost });
            }
            Least::Infeasible => {
                self.wrong.push(format!("{name} limit {limit}: {} although nothing fits", ours.memory));
            }
            Least::Unsolved { .. } => self.unsolved += 1,
        }
    }

    pub fn join(mut self, other: Report) -> Report {
        self.cases.extend(other.cases);
        self.unsolved += other.unsolved;
        self.refused += other.refused;
        self.wrong.extend(other.wrong);
        self.programs += other.programs;
        self.equal += other.equal;
        self.more.extend(other.more);
        self
    }

    /// Cases in which the least cost is not zero.
    pub fn counted(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.least > EQUAL)
    }

    /// Cost of the allocator by the least cost, over all cases.
    pub fn ratio(&self) -> f64 {
        let ours: f64 = self.cases.iter().map(|case| case.ours.memory).sum();
        ours / self.cases.iter().map(|case| case.least).sum::<f64>()
    }

    /// Several lines of text: totals, the worst cases, programs with more registers than needed.
    pub fn text(&self, title: &str) -> String {
        let mut out = String::new();
        let counted = self.counted().count();
        let ours: f64 = self.cases.iter().map(|case| case.ours.memory).sum();
        let best: f64 = self.cases.iter().map(|case| case.least).sum();
        let equal = self.cases.iter().filter(|case| case.ours.memory <= case.least + EQUAL).count();
        // Every case weighing the same: what loops make dear counts no more than the rest.
        let ratios: Vec<f64> = self.counted().map(|case| case.ours.memory / case.least).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        let _ = writeln!(
            out,
            "{title}: {counted} cases with a least cost above zero ({} unsolved, {} refused, {} wrong)",
            self.unsolved,
            self.refused,
            self.wrong.len()
        );
        let _ = writeln!(
            out,
            "  cost {ours:.0}, least {best:.0}: {:+.1} %; mean of the ratios {mean:.3}; {equal} of {} equal",
            (ours / best - 1.0) * 100.0,
            self.cases.len()
        );
        let _ = writeln!(out, "  fewest registers in {} of {} programs", self.equal, self.programs);
        let mut worst: Vec<&Case> =
            self.cases.iter().filter(|case| case.ours.memory > case.least + EQUAL).collect();
        worst.sort_by(|a, b| (b.ours.memory / b.least).total_cmp(&(a.ours.memory / a.least)));
        for case in worst.iter().take(WORST) {
            let (ours, least) = (case.ours.memory, case.least);
            let _ = writeln!(out, "    {ours:.1} for {least:.1}: {} limit {}", case.name, case.limit);
        }
        for text in self.more.iter().take(WORST) {
            let _ = writeln!(out, "    registers {text}");
        }
        for text in &self.wrong {
            let _ = writeln!(out, "    WRONG {text}");
        }
        out
    }
}
