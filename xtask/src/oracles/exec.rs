//! Execution oracles of V3D: one or two words with the state before and after, run on the simulator.
//!
//! Format: section 2 of the reference's notes on hardware tests. State that a case does not name is junk before and is
//! checked to stay as it was; a lane that must be compared and is poison counts as wrong.

use super::{Oracle, Tally};
use kempe_v3d::instr::{Loc, Version};
use kempe_v3d::sim::{LANES, Lanes, Mask, StepState, step_words};
use std::collections::HashMap;

/// A value of column 4: `None` in a lane stands for any NaN.
type Expected = [Option<u32>; LANES];

/// Named vectors of the file.
type Vectors<'a> = HashMap<&'a str, Expected>;

fn lanes(digits: &str) -> Result<Expected, String> {
    if digits.len() != 8 * LANES || !digits.is_ascii() {
        return Err(format!("`{digits}` is not {} digits", 8 * LANES));
    }
    let mut value = [None; LANES];
    for (lane, word) in value.iter_mut().enumerate() {
        let word_text = &digits[8 * lane..8 * lane + 8];
        if word_text != "qqqqqqqq" {
            *word = Some(u32::from_str_radix(word_text, 16).map_err(|e| format!("{word_text}: {e}"))?);
        }
    }
    Ok(value)
}

fn value(text: &str, vectors: &Vectors) -> Result<Expected, String> {
    if let Some(word) = text.strip_prefix('*') {
        let word = u32::from_str_radix(word, 16).map_err(|e| format!("{text}: {e}"))?;
        Ok([Some(word); LANES])
    } else if let Some(name) = text.strip_prefix('@') {
        vectors.get(name).copied().ok_or_else(|| format!("no vector @{name}"))
    } else {
        lanes(text)
    }
}

enum Place {
    Register(Loc),
    A,
    B,
}

fn place(name: &str) -> Result<Place, String> {
    let number = |digits: &str| digits.parse::<u8>().map_err(|e| format!("{name}: {e}"));
    Ok(match name {
        "A" => Place::A,
        "B" => Place::B,
        _ => match (name.strip_prefix("rf"), name.strip_prefix('r')) {
            (Some(row), _) => Place::Register(Loc::Row(number(row)?)),
            (None, Some(accumulator)) => Place::Register(Loc::Acc(number(accumulator)?)),
            _ => return Err(format!("unknown place `{name}`")),
        },
    })
}

fn assignments(column: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    column
        .split(' ')
        .filter(|s| !s.is_empty())
        .map(|s| s.split_once('=').ok_or_else(|| format!("`{s}` has no =")))
}

fn flags(text: &str) -> Result<Mask, String> {
    Mask::from_str_radix(text, 16).map_err(|e| format!("flags `{text}`: {e}"))
}

/// Runs one case: `Ok` when the state afterwards is as the oracle says.
fn case(version: Version, columns: &[&str], vectors: &Vectors) -> Result<(), String> {
    let &[words, _basis, before, after, _tag] = columns else {
        return Err(format!("{} columns instead of 5", columns.len()));
    };
    let words: Vec<u64> = words
        .split(',')
        .map(|w| u64::from_str_radix(w, 16).map_err(|e| format!("word `{w}`: {e}")))
        .collect::<Result<_, _>>()?;
    let mut state = StepState::junk();
    for assignment in assignments(before) {
        let (name, text) = assignment?;
        match place(name)? {
            Place::A => state.a = flags(text)?,
            Place::B => state.b = flags(text)?,
            Place::Register(loc) => {
                let value: Lanes = value(text, vectors)?.map(|w| w.unwrap_or(0x7fc0_0000));
                state.set(loc, value);
            }
        }
    }
    let start = state.clone();
    step_words(version, &words, &mut state).map_err(|fault| fault.to_string())?;
    let mut named = Vec::new();
    let mut flags_named = false;
    for assignment in assignments(after) {
        let (name, text) = assignment?;
        let flag = |got: Mask, poison: Mask| {
            let expected = flags(text)?;
            match (got ^ expected) | poison {
                0 => Ok(()),
                wrong => Err(format!("{name} = {got:04x} instead of {expected:04x} (lanes {wrong:04x})")),
            }
        };
        match place(name)? {
            Place::A => {
                flags_named = true;
                flag(state.a, state.a_poison)?;
            }
            Place::B => {
                flags_named = true;
                flag(state.b, state.b_poison)?;
            }
            Place::Register(loc) => {
                let (got, poison) = (state.get(loc), state.poison(loc));
                for (lane, expected) in value(text, vectors)?.into_iter().enumerate() {
                    let right = match expected {
                        Some(word) => got[lane] == word,
                        None => f32::from_bits(got[lane]).is_nan(),
                    };
                    if !right || poison >> lane & 1 != 0 {
                        let poison = if poison >> lane & 1 != 0 { " (poison)" } else { "" };
                        let expected = expected.map_or("any NaN".to_owned(), |w| format!("{w:08x}"));
                        return Err(format!(
                            "{name} lane {lane}: {:08x}{poison} instead of {expected}",
                            got[lane]
                        ));
                    }
                }
                named.push(loc);
            }
        }
    }
    let changed: Vec<Loc> =
        start.differences(&state).into_iter().filter(|loc| !named.contains(loc)).collect();
    if !changed.is_empty() {
        return Err(format!("changes {changed:?}, which the oracle does not name"));
    }
    let unnamed_flags =
        (start.a, start.b) != (state.a, state.b) && (state.a_poison, state.b_poison) == (0, 0);
    if !flags_named && unnamed_flags {
        return Err("changes the flags, which the oracle does not name".to_owned());
    }
    Ok(())
}

/// Runs every `step`-th case of a file.
fn run(version: Version, text: &str, step: usize, verbose: bool) -> Tally {
    let mut tally = Tally::new();
    let mut vectors = Vectors::new();
    let mut number = 0;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(vector) = line.strip_prefix('@') {
            match vector.split_once('\t').map(|(name, digits)| (name, lanes(digits))) {
                Some((name, Ok(value))) => {
                    vectors.insert(name, value);
                }
                _ => tally.count(false, || format!("bad vector line `@{vector}`")),
            }
            continue;
        }
        number += 1;
        if (number - 1) % step != 0 {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let result = case(version, &columns, &vectors);
        if verbose && let Err(message) = &result {
            println!("    {}: {}: {message}", columns.last().unwrap_or(&""), columns[0]);
        }
        tally.count(result.is_ok(), || {
            format!("{}: {}: {}", columns.last().unwrap_or(&""), columns[0], result.unwrap_err())
        });
    }
    tally
}

/// The execution oracles of both versions. With KEMPE_VERBOSE set every failing case is shown.
pub fn oracles() -> Vec<Oracle> {
    let verbose = std::env::var_os("KEMPE_VERBOSE").is_some();
    Version::ALL
        .into_iter()
        .map(|version| Oracle {
            name: format!("oracle-exec-{}", version.name()),
            file: format!("isa/v3d/oracle-exec-{}.tsv", version.name()),
            run: Box::new(move |text| run(version, text, 1, verbose)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Every twentieth case of both files.
    #[test]
    fn sample_of_the_execution_oracles() {
        for oracle in oracles() {
            let path = crate::corpus::shared().join(&oracle.file);
            let Ok(text) = std::fs::read_to_string(&path) else {
                // Past the capturing of the test runner, so that a skipped test can be seen to be one.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: {} is not there (set KEMPE_SHARED)",
                    path.display()
                );
                continue;
            };
            let version = Version::ALL.into_iter().find(|v| oracle.name.ends_with(v.name())).unwrap();
            let tally = run(version, &text, 20, false);
            assert!(tally.total > 200, "{} cases", tally.total);
            assert_eq!(tally.passed, tally.total, "{:#?}", tally.failures);
        }
    }

    /// The checker itself objects to a wrong value, a wrong flag and an unnamed change.
    #[test]
    fn wrong_expectations_are_noticed() {
        // 7.1: add rf9, rf9, -1 with an empty MUL part.
        let run = |before: &str, after: &str| {
            case(Version::V71, &["39e021893803f25f", "H", before, after, "add"], &Vectors::new())
        };
        assert_eq!(run("rf9=*00000005", "rf9=*00000004"), Ok(()));
        assert!(run("rf9=*00000005", "rf9=*00000005").is_err());
        assert!(run("rf9=*00000005 A=0000 B=ffff", "rf9=*00000004 A=0001").is_err());
        assert!(run("rf9=*00000005", "rf8=*00000004").is_err());
        assert!(run("rf9=*00000005", "").is_err());
        assert!(run("rf9=5", "").is_err());
    }
}
