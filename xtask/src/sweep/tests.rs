use super::*;

/// A few modules of the corpus at every limit and on the simulator; the whole is for the command.
#[test]
fn corpus_sample_at_every_limit() {
    let entries = match corpus::entries() {
        Ok(e) => e,
        Err(e) => {
            eprintln!("skipped: {e}");
            return;
        }
    };
    let plan = Plan { engines: vec![Engine::Scan], targets: Version::ALL.to_vec(), verify: true, run: true };
    let chosen = choose(&entries, &plan, QUICK);
    let sample: Vec<Entry> = entries.iter().filter(|e| chosen.contains(&e.file)).cloned().collect();
    assert_eq!(sample.len(), QUICK);
    let outcomes: Vec<Outcome> = sample.par_iter().map(|e| plan.entry(e, true)).collect();
    let failures: Vec<&Failure> = outcomes.iter().flat_map(|o| &o.failures).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let programs: Vec<&Swept> = outcomes.iter().flat_map(|o| &o.programs).map(|(_, _, s)| s).collect();
    assert!(programs.len() >= 2 * QUICK, "{}", programs.len());
    // The sample would say nothing if no limit were felt.
    let answers = || programs.iter().flat_map(|s| s.answers.values());
    let spilling = answers().filter(|a| matches!(a, program::Answer::Made { traffic: 1.., .. })).count();
    let refused = answers().filter(|a| **a == program::Answer::Refused).count();
    assert!(spilling > 50 && refused > 20, "{spilling} spilling, {refused} refused");
    let ran = outcomes.iter().flat_map(|o| &o.fates).filter(|(_, _, f)| !matches!(f, Fate::NoInput(_)));
    assert!(ran.count() > QUICK);
}
