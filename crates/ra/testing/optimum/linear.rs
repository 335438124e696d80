//! Zero-one programs: a thin layer over the solver.

use std::time::Duration;

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, SolveOutcome, Variable};

/// Zero, one or a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Term {
    Zero,
    One,
    Var(u32),
}

/// A sum of weighted terms.
pub type Sum = Vec<(f64, Term)>;

/// Minimise a weighted sum of zero-one variables under `sum <= bound`.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    costs: Vec<(f64, bool)>,
    rows: Vec<(Vec<(u32, f64)>, f64)>,
    /// A row without variables was violated.
    broken: bool,
}

/// How far the search got.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Optimal {
        cost: f64,
        values: Vec<f64>,
    },
    Infeasible,
    /// Out of time or nodes, with what was proved until then, or a mistake of the solver.
    Unknown {
        bound: f64,
    },
}

impl Linear {
    /// A variable with its cost. One that is not `whole` is whole by itself once the others are.
    pub fn var(&mut self, cost: f64, whole: bool) -> Term {
        self.costs.push((cost, whole));
        Term::Var(self.costs.len() as u32 - 1)
    }

    pub fn size(&self) -> (usize, usize) {
        (self.costs.len(), self.rows.len())
    }

    /// `sum <= bound`.
    pub fn at_most(&mut self, sum: &[(f64, Term)], mut bound: f64) {
        let mut row: Vec<(u32, f64)> = Vec::new();
        for &(weight, term) in sum {
            match term {
                Term::Zero => {}
                Term::One => bound -= weight,
                Term::Var(var) => match row.iter_mut().find(|entry| entry.0 == var) {
                    Some(entry) => entry.1 += weight,
                    None => row.push((var, weight)),
                },
            }
        }
        row.retain(|entry| entry.1 != 0.0);
        let most: f64 = row.iter().map(|entry| entry.1.max(0.0)).sum();
        if most <= bound + 1e-9 {
            return;
        }
        self.broken |= row.is_empty();
        self.rows.push((row, bound));
    }

    /// `sum >= bound`.
    pub fn at_least(&mut self, sum: &[(f64, Term)], bound: f64) {
        let turned: Sum = sum.iter().map(|&(weight, term)| (-weight, term)).collect();
        self.at_most(&turned, -bound);
    }

    /// Cost and values where everything is whole, as far as `nodes` and `time` go.
    pub fn solve(&self, nodes: u64, time: Duration) -> Outcome {
        if self.broken {
            return Outcome::Infeasible;
        }
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let var = |&(cost, whole): &(f64, bool)| {
            if whole { problem.add_binary_var(cost) } else { problem.add_var(cost, (0.0, 1.0)) }
        };
        let vars: Vec<Variable> = self.costs.iter().map(var).collect();
        for (row, bound) in &self.rows {
            let row: Vec<(Variable, f64)> = row.iter().map(|&(var, w)| (vars[var as usize], w)).collect();
            problem.add_constraint(&row[..], ComparisonOp::Le, *bound);
        }
        let mut options = SolveOptions::default();
        options.node_limit = Some(nodes);
        options.time_limit = Some(time);
        match problem.solve_with(options) {
            Ok(outcome) if outcome.is_optimal() => match outcome {
                SolveOutcome::Solution(solution) => Outcome::Optimal {
                    cost: solution.objective(),
                    values: vars.iter().map(|&var| solution.var_value(var)).collect(),
                },
                SolveOutcome::Interrupted(_) => Outcome::Unknown { bound: 0.0 },
            },
            Ok(outcome) => Outcome::Unknown { bound: outcome.stats().best_bound.unwrap_or(0.0) },
            Err(microlp::Error::Infeasible) => Outcome::Infeasible,
            Err(_) => Outcome::Unknown { bound: 0.0 },
        }
    }
}
