//! Programs of a sweep on the simulator: the code of three limits against the interpreter, on the same inputs.

use super::failure::{Failure, Kind};
use super::program::{Program, Swept, engine_name};
use crate::corpus::Entry;
use crate::judge::{self, Made, Trouble};
use crate::simulate::{Agreed, Fate, over_seeds};
use crate::stages::{self, Other, Variant};
use kempe_ir::{Module, Stage};

/// Inputs of each module; `cargo xtask simulate` has more of them, at one limit.
const SEEDS: u32 = 3;

fn name(limit: Option<u32>) -> String {
    limit.map_or("without a limit".to_owned(), |n| format!("at {n}"))
}

/// The programs of one module at one target (of a vertex shader both), each with its code at the same places of its own range.
pub fn run(e: &Entry, m: &Module, programs: &[(Program, Swept)]) -> Result<Fate, Failure> {
    let mut rounds: Vec<(String, Vec<(Variant, Made)>)> = Vec::new();
    for round in 0..programs.iter().map(|(_, s)| s.code.len()).min().unwrap_or(0) {
        let mut names = Vec::new();
        let mut list = Vec::new();
        for (p, swept) in programs {
            let (limit, artifact) = &swept.code[round];
            names.push(name(*limit));
            let lowered = (*p.lowered).clone();
            list.push((p.variant, Made { lowered, artifact: artifact.clone() }));
        }
        rounds.push((names.join(" and "), list));
    }
    let fate = judge::caught(|| match m.stage {
        Stage::Compute => compute(m, &rounds),
        _ => graphics(m, rounds),
    });
    let fate = fate.unwrap_or_else(Fate::Wrong);
    let (Fate::Wrong(why), Some((p, _))) = (&fate, programs.first()) else { return Ok(fate) };
    Err(Failure {
        kind: Kind::Wrong,
        message: why.clone(),
        name: p.name.clone(),
        command: format!(
            "cargo xtask sweep --only {} --target {} --engine {}",
            e.file,
            p.version.name(),
            engine_name(p.engine)
        ),
        size: m.func.insts.len(),
    })
}

/// Which code it is.
fn at(name: &str, trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Wrong(why) => Trouble::Wrong(format!("{name}: {why}")),
        other => other,
    }
}

fn compute(m: &Module, rounds: &[(String, Vec<(Variant, Made)>)]) -> Fate {
    over_seeds(m, SEEDS, |inputs, schedule| {
        judge::screen(m, inputs)?;
        let mut all = Agreed { executed: Vec::new(), output: Vec::new() };
        for (name, list) in rounds {
            for (_, made) in list {
                let a = judge::compare(made, inputs, schedule).map_err(|t| at(name, t))?;
                if a.undefined {
                    return Err(Trouble::Setup("it reads what was never written".into()));
                }
                all.executed.extend(a.counts.iter().map(|&n| n > 0));
                all.output = a.output;
            }
        }
        Ok(all)
    })
}

fn graphics(m: &Module, rounds: Vec<(String, Vec<(Variant, Made)>)>) -> Fate {
    let rounds: Vec<(String, Other)> = rounds.into_iter().map(|(n, list)| (n, Other::Code(list))).collect();
    over_seeds(m, SEEDS, |inputs, schedule| {
        let mut all = Agreed { executed: Vec::new(), output: Default::default() };
        for (name, other) in &rounds {
            let ran = stages::compare(m, other, inputs, schedule).map_err(|t| at(name, t))?;
            all.output = stages::seen(&ran);
            all.executed.extend(ran.executed);
        }
        Ok(all)
    })
}
