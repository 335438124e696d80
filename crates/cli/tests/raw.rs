//! The raw programs of the library's tests, by the command.

mod common;

#[path = "../../kempe/tests/raw/mod.rs"]
#[allow(dead_code, reason = "only the programs are used here")]
mod raw;

use common::Folder;

#[test]
fn the_command_runs_all_raw_programs() {
    let folder = Folder::new("raw-programs");
    for case in raw::cases() {
        let (json, bytes) = case.files().unwrap();
        folder.file(&format!("{}.json", case.name), json);
        folder.file(&format!("{}.bin", case.name), bytes);
        let ran = folder.run(&["run", "--raw", &format!("{}.json", case.name)]);
        // What the validator thinks of the text is a warning at most.
        assert!(ran.stderr.lines().all(|line| line.contains(": warning: ")), "{}: {}", case.name, ran.stderr);
        assert_eq!(ran.code, Some(0), "{}: {}", case.name, ran.stderr);
    }
}

/// Exit codes: 5 for a difference, 1 for a broken rule.
#[test]
fn differences_and_broken_rules() {
    let folder = Folder::new("raw-codes");
    for target in raw::TARGETS {
        let run = |case: &raw::Case| {
            let (json, bytes) = case.files().unwrap();
            folder.file("p.json", json);
            folder.file("p.bin", bytes);
            folder.run(&["run", "--raw", "p.json"])
        };
        let text = format!("nop; mov rf5, 7\n{}", raw::store("rf5"));
        let case = raw::Case::rows("p", target, &text, &[], &[raw::row(|i| if i == 9 { 8 } else { 7 })]);
        run(&case).says(5, &["p.json: error: out: element 9 is 7, expected 8"]);
        let text = format!("nop; mov rf5, 7\n b 0\n nop\n b 0\n nop\n nop\n nop\n{}", raw::store("rf5"));
        let case = raw::Case::rows("p", target, &text, &[], &[[7; 16]]);
        let warning = "warning: rule 37, a limit of the hardware on some way through the text: word 11: ";
        run(&case).says(1, &[warning, "p.json: error: rule 37: pc 11, supergroup 0, batch 0: "]);
        // Counts, by instruction and by thread.
        let text = format!("nop; mov rf5, 7\n recip rf6, rf5\n add rf6, rf6, 1\n{}", raw::store("rf5"));
        let mut case = raw::Case::rows("p", target, &text, &[], &[[7; 16]]);
        case.batches = 2;
        let (json, bytes) = case.files().unwrap();
        folder.file("p.json", json);
        folder.file("p.bin", bytes);
        let out = folder.run(&["run", "--raw", "--counts", "p.json"]);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let out = out.text();
        assert!(out.contains("         2     0  nop"), "{out}");
        assert!(out.contains("         1     0           22      1        1\n"), "{out}");
        assert!(out.ends_with("44 instructions, 2 thread switches, 2 stalls\n"), "{out}");
    }
}
