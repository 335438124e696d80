//! The raw programs of `raw/` on the simulator, in several orders of the threads, and what must not pass.

mod raw;

use kempe::raw::Raw;
use kempe::run::{RunError, RunOptions};
use raw::Case;

fn open(case: &Case) -> Result<Raw, RunError> {
    let (json, bytes) = case.files().map_err(RunError::Setup)?;
    Raw::new(&json, &bytes).map_err(RunError::Setup)
}

/// Runs it; the difference if there is one.
fn run(case: &Case, schedule: u64) -> Result<Option<String>, RunError> {
    open(case)?.run(&RunOptions { schedule, ..RunOptions::default() }).map(|outcome| outcome.difference)
}

#[test]
fn all_programs_give_what_is_expected() {
    let cases = raw::cases();
    let mut wrong = Vec::new();
    for case in &cases {
        // In turn, one after the other, and two drawn orders.
        for schedule in [0, RunOptions::SEQUENTIAL, 1, 2] {
            match run(case, schedule) {
                Ok(None) => continue,
                Ok(Some(difference)) => wrong.push(format!("{}: {difference}", case.name)),
                Err(error) => wrong.push(format!("{}: {error}", case.name)),
            }
            break;
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let mut names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    assert!(names.len() >= 40);
    println!("{} programs", cases.len());
}

/// Every program would notice: with one expected bit changed it fails, and so it does without its last store.
#[test]
fn no_program_passes_by_itself() {
    for case in raw::cases() {
        let mut changed = case.clone();
        for e in &mut changed.expected {
            // An element that is compared, well outside of the tolerance.
            let at = e.mask.as_ref().and_then(|m| m.iter().position(|&m| m)).unwrap_or(0) * 4 + 3;
            e.bytes[at] ^= 0x21;
        }
        assert!(matches!(run(&changed, 0), Ok(Some(_))), "{}", case.name);
    }
}

/// A small program whose first lines are given; each lane stores rf5.
fn small(target: &'static str, body: &str) -> Case {
    Case::rows(
        "small",
        target,
        &format!("{body}\n{}", raw::store("rf5")),
        &[raw::row(|i| i as u32)],
        &[[7; 16]],
    )
}

fn program_error(case: &Case) -> String {
    match run(case, 0) {
        Err(RunError::Program(message)) => message,
        other => panic!("{}: {other:?}", case.name),
    }
}

#[test]
fn rules_are_named_with_place_and_lane() {
    for target in raw::TARGETS {
        // Lane 3 has an odd address.
        let text = "xor.pushz -, rf20, 3\n nop; mov rf6, rf10\n add.ifa rf6, rf6, 2\n nop; mov tmua, rf6\n nop; nop; ldtmu.rf5";
        let message = program_error(&small(target, text));
        let words = 8 + 4 + 3;
        let address = raw::CODE + 8 * words;
        assert!(message.starts_with(&format!("rule 69: pc {words}, lane 3, ")), "{message}");
        assert!(message.contains(&format!("at {address:#x}: ")), "{message}");
        // Hardware limits stop; habits of the driver do not.
        let message = program_error(&small(target, "nop; mov rf5, 7\n b 0\n nop\n nop; nop; thrsw\n nop"));
        assert!(message.starts_with("rule 30: "), "{message}");
        assert_eq!(
            run(&small(target, "nop; mov rf5, 7\n nop; nop; thrsw\n nop\n nop; nop; thrsw\n nop\n nop"), 0),
            Ok(None)
        );
        // Lost at a switch only if the description says so.
        let lost = "sub.pushz -, rf20, rf20\n nop; nop; thrsw\n nop\n nop\n nop; mov.ifa rf5, 7";
        let mut case = small(target, lost);
        assert_eq!(run(&case, 0), Ok(None));
        case.strict = true;
        let message = program_error(&case);
        assert!(message.starts_with("rule 58: "), "{message}");
        if target == "v3d42" {
            let mut case = small(target, "add r1, rf20, 0\n nop; nop; thrsw\n nop\n nop\n or rf5, r1, r1");
            case.strict = true;
            assert!(program_error(&case).starts_with("rule 58: "));
        } else {
            // Rule 36 holds for every run.
            let text = "nop; mov tmua, rf10\n nop; mov tmua, rf10\n nop; nop; ldtmu.rf6; ldunif\n nop; nop; thrsw\n nop\n \
                        nop; nop; ldtmu.rf7\n nop; mov rf5, rf0";
            let case = small(target, text).uniforms(&[raw::Word(7)]);
            assert!(program_error(&case).starts_with("rule 36: "));
        }
    }
}

#[test]
fn undefined_values() {
    for target in raw::TARGETS {
        // Stored and compared; stored, loaded, and compared; in the narrow part of a word.
        let never = small(target, "nop; mov.pushz -, rf20\n nop; mov.ifna rf5, 7");
        assert_eq!(run(&never, 0), Ok(Some("out: element 0 is undefined, expected 7".to_owned())));
        let through = "nop; mov.pushz -, rf20\n nop; mov.ifna rf6, 7\n nop; mov tmud, rf6\n nop; mov tmua, rf11\n tmuwt -\n \
                       nop; mov tmua, rf11\n nop; nop; ldtmu.rf5";
        let mut case = small(target, through);
        assert_eq!(run(&case, 0), Ok(Some("out: element 0 is undefined, expected 7".to_owned())));
        case.expected[0].mask = Some((0..16).map(|i| i != 0).collect());
        assert_eq!(run(&case, 0), Ok(None));
        // Written over, it is defined again.
        let over = format!("{through}\n nop; mov rf5, 7\n nop; mov tmud, rf5\n nop; mov tmua, rf11");
        assert_eq!(run(&small(target, &over), 0), Ok(None));
        // What decides: an address, a condition of an access, a branch.
        for text in [
            "nop; mov tmua, rf30\n nop; nop; ldtmu.rf5",
            "nop; mov.pushz -, rf30\n nop; mov.ifa tmua, rf10\n nop; nop; ldtmu.rf5",
            "nop; mov.pushz -, rf30\n b.anya 0\n nop\n nop\n nop",
        ] {
            assert!(program_error(&small(target, text)).starts_with("undefined: "), "{text}");
        }
        // So does a value that came from memory.
        let text = "nop; mov tmud, rf30\n nop; mov tmua, rf11\n tmuwt -\n nop; mov tmua, rf11\n nop; nop; ldtmu.rf6\n \
                    nop; mov tmua, rf6\n nop; nop; ldtmu.rf5";
        let message = program_error(&small(target, text));
        assert!(message.contains("an undefined value had been stored"), "{message}");
    }
}

/// Edits the description and opens it.
fn edited(case: &Case, edit: impl FnOnce(&mut serde_json::Value)) -> Result<Raw, String> {
    let (json, bytes) = case.files()?;
    let mut json = serde_json::from_str(&json).map_err(|e| e.to_string())?;
    edit(&mut json);
    Raw::new(&json.to_string(), &bytes)
}

fn difference(raw: Result<Raw, String>) -> Option<String> {
    raw.unwrap().run(&RunOptions::default()).unwrap().difference
}

#[test]
fn the_ways_to_compare() {
    for target in raw::TARGETS {
        let float = |value: f32, text: &str| {
            let mut case = small(target, text);
            case.expected[0].dtype = "float32";
            case.expected[0].bytes = raw::bytes([value.to_bits(); 16]);
            case
        };
        let one = |value| float(value, "nop; mov rf5, 0x3f800000");
        let tolerances = |case: &Case, relative: f64, absolute: f64| {
            difference(edited(case, |json| {
                json["expected"][0]["compare"] = "rtol".into();
                json["expected"][0]["rtol"] = relative.into();
                json["expected"][0]["atol"] = absolute.into();
            }))
        };
        // |got - expected| <= atol + rtol * |expected|.
        assert_eq!(tolerances(&one(0.75), 0.25, 0.0625), None);
        assert!(tolerances(&one(0.75), 0.25, 0.0).is_some());
        assert_eq!(tolerances(&one(1.25), 0.2, 0.0), None);
        assert!(tolerances(&one(-1.0), 0.5, 1.4).is_some());
        assert!(tolerances(&one(f32::INFINITY), 0.5, 0.5).is_some());
        assert!(tolerances(&one(f32::NAN), 0.5, 0.5).is_some());
        let infinite = float(f32::INFINITY, "nop; mov rf6, 0\n recip rf5, rf6");
        assert_eq!(tolerances(&infinite, 0.0, 0.0), None);
        // Without tolerances in the description they are zero.
        let plain = difference(edited(&one(1.0), |json| json["expected"][0]["compare"] = "rtol".into()));
        assert_eq!(plain, None);
        assert_eq!(
            difference(edited(&one(1.5), |json| json["expected"][0]["compare"] = "exact".into())),
            Some("out: element 0 is 1.0, expected 1.5".to_owned())
        );
        // Exact means bytes: a zero of the other sign differs.
        let mut zero = float(-0.0, "nop; mov rf5, 0");
        zero.arrays[1].1 = raw::bytes([9; 16]);
        assert!(run(&zero, 0).unwrap().is_some());
        assert_eq!(tolerances(&zero, 0.0, 0.0), None);
        // Elements as wide as their type says, in numbers of that type.
        for (dtype, message) in [
            ("int8", "out: element 4 is 7, expected -1"),
            ("uint8", "out: element 4 is 7, expected 255"),
            ("int16", "out: element 2 is 7, expected -1"),
            ("<i4", "out: element 1 is 7, expected -1"),
            ("uint32", "out: element 1 is 7, expected 4294967295"),
            ("uint64", "out: element 0 is 30064771079, expected 18446744069414584327"),
        ] {
            let mut case = small(target, "nop; mov rf5, 7");
            case.expected[0].bytes[4..8].fill(255);
            let found = difference(edited(&case, |json| json["expected"][0]["dtype"] = dtype.into()));
            assert_eq!(found.as_deref(), Some(message), "{dtype}");
        }
        // Without a type bytes are compared.
        let case = small(target, "nop; mov rf5, 7");
        let untyped = edited(&case, |json| {
            json["expected"][0].as_object_mut().unwrap().remove("dtype");
        });
        assert_eq!(difference(untyped), None);
        // `changed`.
        let claim = |case: &Case, changed: bool| {
            difference(edited(case, |json| json["expected"][0]["changed"] = changed.into()))
        };
        assert_eq!(claim(&case, true), None);
        assert_eq!(claim(&case, false), Some("out: was changed".to_owned()));
        let mut same = case.clone();
        same.arrays[1].1 = raw::bytes([7; 16]);
        assert_eq!(claim(&same, true), Some("out: nothing was changed".to_owned()));
    }
}

#[test]
fn what_a_description_may_say() {
    for target in raw::TARGETS {
        let case = small(target, "nop; mov rf5, 7");
        let opened = |edit: &dyn Fn(&mut serde_json::Value)| edited(&case, edit);
        let refused = |edit: &dyn Fn(&mut serde_json::Value)| opened(edit).err().expect("an error");
        // Left out: other code, strict switches, the lane, what is expected; and keys that nobody knows.
        let bare = opened(&|json| {
            for key in ["other_code", "strict_switch", "uniform_branch_lane", "expected"] {
                json.as_object_mut().unwrap().remove(key);
            }
            json["remark"] = "none".into();
            json["dispatch"]["remark"] = 1.into();
        });
        assert_eq!(difference(bare), None);
        // Null is as good as left out.
        let null = opened(&|json| {
            for key in ["other_code", "strict_switch", "uniform_branch_lane"] {
                json[key] = serde_json::Value::Null;
            }
            for key in ["rtol", "atol", "mask_offset", "changed", "dtype", "name"] {
                json["expected"][0][key] = serde_json::Value::Null;
            }
            json["memory"][1]["name"] = serde_json::Value::Null;
        });
        assert_eq!(difference(null), None);
        for key in ["target", "code", "code_address", "uniforms_address", "dispatch"] {
            let message = refused(&|json| {
                json.as_object_mut().unwrap().remove(key);
            });
            assert!(message.contains(key), "{message}");
        }
        assert!(refused(&|json| json["target"] = "v3d33".into()).contains("v3d33"));
        assert!(refused(&|json| json["code"]["length"] = 4.into()).contains("no whole words"));
        assert!(refused(&|json| json["code"]["offset"] = 1_000_000.into()).contains("not in the file"));
        assert!(refused(&|json| json["memory"][0]["address"] = 0x3fffc.into()).contains("below 0x40000"));
        assert!(refused(&|json| json["expected"][0]["address"] = 16.into()).contains("below 0x40000"));
        assert!(refused(&|json| json["memory"][0]["address"] = 0xffff_fff0u32.into()).contains("span"));
        assert!(refused(&|json| json["expected"][0]["compare"] = "about".into()).contains("about"));
        assert!(refused(&|json| json["expected"][0]["dtype"] = "complex".into()).contains("complex"));
        assert!(refused(&|json| json["expected"][0]["length"] = 63.into()).contains("no whole elements"));
        assert!(
            refused(&|json| json["expected"][0]["mask_offset"] = 1_000_000.into())
                .contains("not in the file")
        );
        // A dispatch that cannot be.
        let stops = |edit: &dyn Fn(&mut serde_json::Value)| {
            opened(edit).unwrap().run(&RunOptions::default()).expect_err("an error").to_string()
        };
        assert!(
            stops(&|json| json["dispatch"]["workgroup_size"] = serde_json::json!([0, 1, 1]))
                .contains("work-group")
        );
        assert!(stops(&|json| json["dispatch"]["batches_per_supergroup"] = 0.into()).contains("no batches"));
        assert!(stops(&|json| json["code_address"] = 0x40004.into()).contains("entry"));
        // More batches than a supergroup has items for: their lanes do not exist and do nothing.
        let more = opened(&|json| json["dispatch"]["batches_per_supergroup"] = 48.into());
        assert_eq!(difference(more), None);
        // No batches: nothing happens.
        let none = opened(&|json| json["dispatch"]["batches"] = 0.into());
        assert!(difference(none).is_some());
    }
}

/// Reads of memory that nobody lists give zero, up to 4 KiB behind the last array; elsewhere there is none.
#[test]
fn memory_around_the_arrays() {
    for target in raw::TARGETS {
        let at = |offset: u32| {
            let text = "nop; nop; ldunifrf.rf6\n add rf6, rf6, rf10\n nop; mov tmua, rf6\n nop; nop; ldtmu.rf5\n add rf5, rf5, 7";
            small(target, text).uniforms(&[raw::Word(offset)])
        };
        // rf10 is at 0x50040; "out" ends at 0x52040, the end of all.
        assert_eq!(run(&at(0x1000), 0), Ok(None));
        assert_eq!(run(&at(0x2000 + 0xf00), 0), Ok(None));
        assert!(program_error(&at(0x2000 + 0x1000)).starts_with("memory: "));
        // Below the code.
        assert!(program_error(&at(0u32.wrapping_sub(0x1_0100))).starts_with("memory: "));
        // The uniform stream, too.
        let text = "nop; nop; ldunifrf.rf6\n nop; nop; ldunifrf.rf6\n add rf5, rf6, 7";
        assert_eq!(run(&small(target, text), 0), Ok(None));
    }
}

/// Threads are counted one by one, and the sums are those of the words.
#[test]
fn counts_add_up() {
    for case in raw::cases() {
        let report = open(&case).unwrap().run(&RunOptions::default()).unwrap().report;
        let sum = |f: fn(&kempe::run::ThreadCounts) -> u64| report.threads.iter().map(f).sum::<u64>();
        assert_eq!(report.threads.len(), case.batches as usize, "{}", case.name);
        assert_eq!(sum(|t| t.instructions), report.instructions, "{}", case.name);
        assert_eq!(report.counts.iter().sum::<u64>(), report.instructions, "{}", case.name);
        assert_eq!(
            (sum(|t| t.stalls), sum(|t| t.switches)),
            (report.stalls, report.switches),
            "{}",
            case.name
        );
    }
}
