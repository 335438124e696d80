//! What a sweep prints.

use super::program::{Answer, FIXED, Refusals, Swept, engine_name};
use super::{Outcome, Plan};
use crate::simulate::Fate;
use crate::survey::reason;
use std::collections::BTreeMap;

/// Of the programs at one limit.
#[derive(Clone, Copy, Default)]
struct Row {
    four: u32,
    two: u32,
    refused: u32,
    failed: u32,
    /// Of those that were made: have spills or fills.
    spill: u32,
    traffic: u64,
}

impl Row {
    fn add(&mut self, answer: Answer) {
        match answer {
            Answer::Made { threads, traffic } => {
                *(if threads >= 4 { &mut self.four } else { &mut self.two }) += 1;
                self.spill += u32::from(traffic > 0);
                self.traffic += u64::from(traffic);
            }
            Answer::Refused => self.refused += 1,
            Answer::Failed => self.failed += 1,
        }
    }

    fn of(answers: impl Iterator<Item = Answer>) -> Row {
        let mut row = Row::default();
        answers.for_each(|a| row.add(a));
        row
    }

    fn print(&self, name: &str) {
        println!(
            "  {name:>9} {:9} {:9} {:8} {:7} {:9} {:14}",
            self.four, self.two, self.refused, self.failed, self.spill, self.traffic
        );
    }
}

pub fn print(plan: &Plan, outcomes: &[Outcome]) {
    println!(
        "A limit counts rows of a thread; on v3d42 accumulators come on top. A program with 4 threads has 32 rows, two of which\n\
         spilling takes: under a higher limit a program has 4 threads if it fits there without spills, else the number of\n\
         threads with the fewer spills and fills, then cycles. At 30 and below that rule alone decides: both have the same rows."
    );
    for &engine in &plan.engines {
        for &version in &plan.targets {
            let mine: Vec<&Swept> = outcomes
                .iter()
                .flat_map(|o| &o.programs)
                .filter(|(e, v, _)| (*e, *v) == (engine, version))
                .map(|(_, _, s)| s)
                .collect();
            let fates = outcomes.iter().flat_map(|o| &o.fates);
            let fates: Vec<&Fate> =
                fates.filter(|(e, v, _)| (*e, *v) == (engine, version)).map(|(_, _, f)| f).collect();
            println!("== {}, {}: {} programs", version.name(), engine_name(engine), mine.len());
            limits(&mine);
            smallest(&mine);
            refusals(&mine);
            simulated(&fates);
        }
    }
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    for why in outcomes.iter().flat_map(|o| &o.unsupported) {
        // Without the file in front.
        let why = why.lines().next().unwrap_or_default();
        let why = why.split_once("error: ").map_or(why, |(_, why)| why);
        *reasons.entry(reason(why)).or_default() += 1;
    }
    let total: u32 = reasons.values().sum();
    println!("== {total} modules or programs that do not compile without a limit either");
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    for (why, n) in reasons.iter().take(8) {
        println!("  {n:5}  {why}");
    }
}

fn limits(all: &[&Swept]) {
    println!("      limit 4 threads 2 threads  refused  failed    spilling spills + fills");
    Row::of(all.iter().map(|s| s.natural)).print("none");
    for limit in FIXED {
        Row::of(all.iter().filter_map(|s| s.answers.get(&limit).copied())).print(&limit.to_string());
    }
    for (above, name) in [(2, "min + 2"), (1, "min + 1"), (0, "min")] {
        let at = |s: &&Swept| s.answers.get(&(s.least? + above)).copied();
        Row::of(all.iter().filter_map(at)).print(name);
    }
    let below = |s: &&Swept| s.answers.get(&s.least?.checked_sub(1)?).copied();
    Row::of(all.iter().filter_map(below)).print("min - 1");
    let made =
        all.iter().flat_map(|s| s.answers.values()).filter(|a| matches!(a, Answer::Made { .. })).count();
    let asked: usize = all.iter().map(|s| s.answers.len()).sum();
    println!("  {} compiles with a limit, {made} of them give code", asked);
}

/// How many programs have which smallest limit.
fn smallest(all: &[&Swept]) {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for s in all {
        if let Some(least) = s.least {
            *counts.entry(least).or_default() += 1;
        }
    }
    let list: Vec<String> = counts.iter().map(|(limit, n)| format!("{limit}: {n}")).collect();
    println!("  smallest limit (programs): {}", list.join(", "));
    let wants = all.iter().map(|s| s.pressure).max().unwrap_or(0);
    println!("  most registers that a program wants at once: {wants}");
}

fn refusals(all: &[&Swept]) {
    let mut sum = Refusals::default();
    for s in all {
        sum.count += s.refusals.count;
        sum.with_line += s.refusals.with_line;
        sum.times.extend(&s.refusals.times);
    }
    sum.times.sort_by(f64::total_cmp);
    let at = |p: usize| sum.times.get((sum.times.len().saturating_sub(1)) * p / 100).copied().unwrap_or(0.0);
    println!(
        "  {} refusals, {} with a line; one below the smallest limit takes {:.2} of a compile (median), {:.2} (99 of 100), {:.2} (most)",
        sum.count,
        sum.with_line,
        at(50),
        at(99),
        at(100)
    );
}

fn simulated(fates: &[&Fate]) {
    let count = |f: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| f(fate)).count();
    println!(
        "  on the simulator at three limits: {} modules equal the interpreter ({} of them with 90 % of their words executed and outputs that differ), {} without input",
        count(&|f| matches!(f, Fate::Counts { .. } | Fate::Thin { .. })),
        count(&|f| matches!(f, Fate::Counts { .. })),
        count(&|f| matches!(f, Fate::NoInput(_)))
    );
    for fate in fates {
        if let Fate::NoInput(why) = fate
            && fates.len() <= 24
        {
            println!("    no input: {}", why.lines().next().unwrap_or_default());
        }
    }
}
