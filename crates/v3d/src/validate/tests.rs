//! One test per rule: a program that breaks it and its neighbour that does not, on each version that has the rule.

use super::*;
use crate::asm::assemble;
use crate::instr::{Alu, Cond, Dest, Op, Part, Push, Signals, Source, Unpack};

use Version::{V42, V71};

const MARK: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n";
const END: &str = "nop; nop; thrsw\n nop\n nop\n";

fn words(version: Version, text: &str) -> Vec<u64> {
    assemble(version, text).unwrap_or_else(|e| panic!("{e} in\n{text}"))
}

fn check(version: Version, text: &str, facts: &ProgramFacts) -> Vec<Violation> {
    validate(version, &words(version, text), facts)
}

fn breaks(version: Version, text: &str, facts: &ProgramFacts, rule: &str) -> Option<Class> {
    check(version, text, facts).into_iter().find(|v| v.rule == rule).map(|v| v.class)
}

/// `bad` breaks the rule and `good` does not; both stand in front of a proper end.
#[track_caller]
fn body(version: Version, rule: &str, class: Class, bad: &str, good: &str) {
    with(
        version,
        &ProgramFacts::compute(2),
        rule,
        class,
        &format!("{bad}\n{MARK}{END}"),
        &format!("{good}\n{MARK}{END}"),
    );
}

#[track_caller]
fn both(rule: &str, class: Class, bad: &str, good: &str) {
    body(V42, rule, class, bad, good);
    body(V71, rule, class, bad, good);
}

/// Whole programs.
#[track_caller]
fn with(version: Version, facts: &ProgramFacts, rule: &str, class: Class, bad: &str, good: &str) {
    assert_eq!(breaks(version, bad, facts, rule), Some(class), "{} rule {rule}:\n{bad}", version.name());
    let found = check(version, good, facts);
    assert!(found.iter().all(|v| v.rule != rule), "{} rule {rule}: {found:?}\n{good}", version.name());
}

/// A program whose end slots are these three lines (the first without its thrsw).
fn ending(slots: [&str; 3]) -> String {
    let part = |s: &str| if s.is_empty() { "nop; nop".to_owned() } else { s.to_owned() };
    format!("{MARK}{}; thrsw\n{}\n{}\n", part(slots[0]), part(slots[1]), part(slots[2]))
}

#[track_caller]
fn end(version: Version, rule: &str, class: Class, bad: [&str; 3], good: [&str; 3]) {
    with(version, &ProgramFacts::compute(2), rule, class, &ending(bad), &ending(good));
}

/// Puts a word of its own in front of a proper program.
fn raw(version: Version, word: u64) -> Vec<Violation> {
    let mut all = vec![word];
    all.extend(words(version, &format!("{MARK}{END}")));
    validate(version, &all, &ProgramFacts::compute(2))
}

fn has(found: &[Violation], rule: &str) -> bool {
    found.iter().any(|v| v.rule == rule)
}

const NOP42: u64 = 0x3c00_3186_bb80_0000;
const NOP71: u64 = 0x3800_3186_bb03_f000;

fn nop(version: Version) -> u64 {
    if version == V42 { NOP42 } else { NOP71 }
}

fn fragment() -> ProgramFacts<'static> {
    ProgramFacts { stage: Stage::Fragment, ..ProgramFacts::compute(2) }
}

#[test]
fn clean_programs_break_nothing() {
    for version in Version::ALL {
        let found = check(version, &format!("{MARK}{END}"), &ProgramFacts::compute(4));
        assert!(found.is_empty(), "{found:?}");
        let single = ProgramFacts { single_segment: true, ..ProgramFacts::compute(4) };
        let found = check(version, END, &single);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn rule_1_signal_sets() {
    for (version, code) in [(V42, 26), (V42, 30), (V71, 23), (V71, 28)] {
        assert!(has(&raw(version, nop(version) | code << 53), "1"));
        assert!(!has(&raw(version, nop(version) | 1 << 53), "1"));
    }
}

fn alu_check(version: Version, alu: Alu) -> Vec<Violation> {
    check_instr(version, &Instr::Alu(alu), &ProgramFacts::compute(2))
}

/// Rules 2, 4, 5, 6: only an instruction that cannot be encoded breaks them.
#[test]
fn rules_2_4_5_6_on_instructions() {
    for version in Version::ALL {
        let load = Alu { sig_dest: Some(Dest::Row(3)), ..Alu::signal(Signals::LDTMU) };
        assert!(!has(&alu_check(version, load), "2"));
        let mut conditional = load;
        conditional.add =
            Part { cond: Some(Cond::IfA), ..Part::new(Op::Tidx, Dest::Row(1), Source::None, Source::None) };
        assert!(has(&alu_check(version, conditional), "2"));
        let two = Alu { signals: Signals::LDTMU | Signals::LDUNIFRF, ..load };
        assert!(has(&alu_check(version, two), "2"));
    }
    let with = |a, b, c, d| Alu {
        add: Part::new(Op::Add, Dest::Row(1), a, b),
        mul: Part::new(Op::Umul24, Dest::Row(2), c, d),
        ..Alu::NOP
    };
    let row = Source::Row;
    assert!(has(&alu_check(V42, with(row(1), row(2), row(3), row(1))), "4"));
    assert!(!has(&alu_check(V42, with(row(1), row(2), row(2), Source::Acc(3))), "4"));
    assert!(!has(&alu_check(V71, with(row(1), row(2), row(3), row(4))), "4"));
    assert!(has(&alu_check(V42, with(row(1), Source::Small(1), row(2), row(1))), "4"));
    assert!(has(&alu_check(V42, with(row(1), Source::Small(1), Source::Small(2), row(1))), "4"));
    assert!(has(
        &alu_check(V42, with(Source::Acc(0), Source::Small(1), Source::Small(2), Source::Acc(1))),
        "5"
    ));
    assert!(!has(
        &alu_check(V42, with(Source::Acc(0), Source::Small(1), Source::Small(1), Source::Acc(1))),
        "5"
    ));
    assert!(has(&alu_check(V71, with(row(1), Source::Small(1), Source::Small(1), row(1))), "6"));
    assert!(!has(&alu_check(V71, with(row(1), Source::Small(1), row(2), row(1))), "6"));
}

#[test]
fn rule_3_conditions() {
    for version in Version::ALL {
        assert!(has(&raw(version, nop(version) | 0x10 << 46), "3"));
        assert!(!has(&raw(version, nop(version) | 0x11 << 46), "3"));
        let mut alu = Alu { add: Part::new(Op::Eidx, Dest::Row(1), Source::None, Source::None), ..Alu::NOP };
        alu.add.push = Some(Push::Z);
        assert!(!has(&alu_check(version, alu), "3"));
        alu.add.cond = Some(Cond::IfB);
        assert!(has(&alu_check(version, alu), "3"));
    }
}

#[test]
fn rule_7_unused_small_immediates() {
    assert!(has(&raw(V71, NOP71 | 14 << 53), "7"));
    assert!(has(&raw(V71, NOP71 | 31 << 53), "7"));
    body(V71, "16", Class::Drv, "recip rf1, rf2; nop; wrtmuc", "add rf1, rf2, 3; nop");
    let found = check(V71, &format!("add rf1, rf2, 3\n{MARK}{END}"), &ProgramFacts::compute(2));
    assert!(!has(&found, "7"));
}

#[test]
fn rule_8_small_immediate_codes() {
    for version in Version::ALL {
        let good = words(version, "add rf1, rf2, -1")[0];
        assert!(!has(&raw(version, good), "8"));
        assert!(has(&raw(version, good & !0x3f | 48), "8"));
        let part = Part::new(Op::Add, Dest::Row(1), Source::Row(1), Source::Small(50));
        assert!(has(&alu_check(version, Alu { add: part, ..Alu::NOP }), "8"));
    }
}

/// Rule 9: the order of the sources decides which operation a word is, so no word breaks it.
#[test]
fn rule_9_cannot_be_broken_by_a_word() {
    for version in Version::ALL {
        let word = words(version, "fadd rf1, rf2, rf3")[0];
        for other in [word, word ^ 0x41] {
            let found = raw(version, other);
            assert!(!has(&found, "9"), "{found:?}");
        }
    }
}

#[test]
fn rule_10_modifiers() {
    body(V71, "10", Class::Hw, "fround rf1, rf2.abs", "fround rf1, rf2.l");
    body(V71, "10", Class::Hw, "nop; fmov rf1, rf2.unpack7", "nop; fmov rf1, rf2.max0");
    both("10", Class::Hw, "itof.l rf1, rf2".replace("itof.l rf1", "itof rf1.l").as_str(), "itof rf1, rf2");
    let mut alu = Alu { add: Part::new(Op::Ftoin, Dest::Row(1), Source::Row(2), Source::None), ..Alu::NOP };
    assert!(!has(&alu_check(V42, alu), "10"));
    alu.add.unpack[0] = Unpack::Abs;
    assert!(has(&alu_check(V42, alu), "10"));
}

#[test]
fn rule_11_rows_of_four_threads() {
    let facts = ProgramFacts::compute(4);
    for version in Version::ALL {
        for (bad, good) in [
            ("add rf32, rf2, rf3", "add rf31, rf2, rf3"),
            ("add rf3, rf40, rf3", "add rf3, rf30, rf3"),
            ("nop; nop; ldunifrf.rf50", "nop; nop; ldunifrf.rf5"),
        ] {
            let whole = |text: &str| format!("{text}\n{MARK}{END}");
            with(version, &facts, "11", Class::Hw, &whole(bad), &whole(good));
            assert!(!has(&check(version, &whole(bad), &ProgramFacts::compute(2)), "11"));
        }
    }
}

#[test]
fn rule_12_reserved_codes() {
    body(V71, "12", Class::Hw, "add magic3, rf1, rf2", "add tmua, rf1, rf2");
    both("12", Class::Hw, "add magic60, rf1, rf2", "add rep, rf1, rf2".replace("rep", "tmud").as_str());
    both("12", Class::Hw, "b.reserved 0\n nop\n nop\n nop", "b 0\n nop\n nop\n nop");
    for version in Version::ALL {
        // An unassigned ADD opcode, no opcode at all.
        assert!(has(&raw(version, nop(version) & !(0xff << 24) | 50 << 24), "12"));
        assert!(has(&raw(version, 0), "12"));
        assert!(!has(&raw(version, nop(version)), "12"));
    }
}

#[test]
fn rule_13_results_in_rows() {
    both("13", Class::Hw, "recip tmud, rf1", "recip rf2, rf1");
    body(V42, "13", Class::Hw, "recip r1, rf1", "recip rf2, rf1");
    body(V71, "13", Class::Hw, "rot rep, rf1, rf3", "rot rf2, rf1, rf3");
    // The bit that would say magic selects the segment here.
    for version in Version::ALL {
        let read =
            |dest| Alu { add: Part::new(Op::LdvpmvIn, dest, Source::Row(1), Source::None), ..Alu::NOP };
        assert!(has(&alu_check(version, read(Dest::Magic(11))), "13"));
        assert!(!has(&alu_check(version, read(Dest::Row(2))), "13"));
    }
}

#[test]
fn rule_14_one_peripheral() {
    both("14", Class::Hw, "add tmud, rf1, rf2; mov tmua, rf1", "add tmud, rf1, rf2; mov rf5, rf1");
    body(V42, "14", Class::Hw, "add tmud, rf1, rf2; mov recip, rf1", "nop; mov recip, rf1");
    body(
        V42,
        "14b",
        Class::Drv,
        "add tmud, rf1, rf2; nop; ldtmu.rf9",
        "add tmud, rf1, rf2; nop; ldunifrf.rf9",
    );
    let found =
        check(V71, &format!("add tmud, rf1, rf2; nop; ldtmu.rf9\n{MARK}{END}"), &ProgramFacts::compute(2));
    assert!(!has(&found, "14") && !has(&found, "14b") && !has(&found, "16"), "{found:?}");
}

#[test]
fn rules_15_16_the_schedulers_form() {
    body(V42, "15", Class::Drv, "tmuwt -; nop; ldtmu.rf5", "tmuwt -; nop; ldunifrf.rf5");
    body(V42, "15", Class::Drv, "recip rf1, rf2; mov tmud, rf2", "recip rf1, rf2; mov rf3, rf2");
    body(V42, "15", Class::Drv, "nop; mov tmuc, rf1; wrtmuc", "nop; mov tmud, rf1; wrtmuc");
    body(V42, "15", Class::Drv, "vpmwt -; nop; ldtmu.rf5", "ldvpmv_in rf2, rf1; nop; ldtmu.rf5");
    body(V71, "16", Class::Drv, "recip rf1, rf2; mov tmud, rf2", "tmuwt -; mov tmud, rf2; ldtmu.rf5");
    body(V71, "16", Class::Drv, "nop; mov tmuc, rf1; wrtmuc", "nop; mov tmud, rf1; wrtmuc");
    body(V71, "16", Class::Drv, "nop; mov tlb, rf1; ldtlb.rf3", "recip rf1, rf2; mov tlb, rf1");
}

#[test]
fn rule_17_one_uniform() {
    both("17", Class::Hw, "add tmuau, rf1, rf2; nop; ldunif", "add tmua, rf1, rf2; nop; ldunif");
    both("17", Class::Hw, "add tmuau, rf1, rf2; nop; ldunifa", "add tmua, rf1, rf2; nop; ldunifa");
}

#[test]
fn rules_18_to_22_varyings() {
    let vary = "nop; nop; ldvary.rf4\n";
    both("18", Class::Hw, &format!("{vary} nop; nop; ldunif"), &format!("{vary} nop\n nop; nop; ldunif"));
    both("18", Class::Hw, &format!("{vary} nop; nop; ldunifa"), &format!("{vary} nop; nop; ldunifrf.rf7"));
    for (version, c) in [(V42, "r5"), (V71, "rf0")] {
        body(
            version,
            "20",
            Class::Hw,
            &format!("{vary} fadd rf5, {c}, rf4"),
            &format!("{vary} nop\n fadd rf5, {c}, rf4"),
        );
        // Pipelined: the sum reads the coefficient of the first varying one after the second.
        let pipelined =
            format!("{vary} nop; fmul rf5, rf4, rf6; ldvary.rf4\n fadd rf7, {c}, rf5; fmul rf8, rf5, rf5");
        let again = format!("{vary} nop\n fadd rf7, {c}, rf5\n {vary} fadd rf7, {c}, rf5");
        body(version, "20", Class::Hw, &again, &pipelined);
    }
    body(
        V71,
        "21",
        Class::Hw,
        &format!("{vary} add rf0, rf1, rf2"),
        &format!("{vary} nop\n add rf0, rf1, rf2"),
    );
    body(
        V71,
        "21",
        Class::Hw,
        &format!("{vary} nop; nop; ldtmu.rf0"),
        &format!("{vary} nop; nop; ldvary.rf5"),
    );
    body(V71, "22", Class::Hw, "nop; nop; ldvary.rf0", "nop; nop; ldvary.rf1");
}

#[test]
fn rule_19_old_chips() {
    let facts = ProgramFacts { before_42_14: true, ..ProgramFacts::compute(2) };
    let bad = format!("nop; nop; ldunif\n nop; nop; ldunifa\n{MARK}{END}");
    let good = format!("nop; nop; ldunif\n nop\n nop; nop; ldunifa\n{MARK}{END}");
    with(V42, &facts, "19", Class::Hw, &bad, &good);
    assert!(!has(&check(V42, &bad, &ProgramFacts::compute(2)), "19"));
}

#[test]
fn rules_23_24_special_functions_by_address() {
    let start = "nop; mov recip, rf1\n";
    body(
        V42,
        "23",
        Class::Hw,
        &format!("{start} add rf1, r4, rf2"),
        &format!("{start} nop\n add rf1, r4, rf2"),
    );
    body(V42, "23", Class::Hw, &format!("{start} add r4, r1, rf2"), &format!("{start} add r3, r1, rf2"));
    body(
        V42,
        "23",
        Class::Hw,
        &format!("{start} nop; mov exp, rf1"),
        &format!("{start} nop\n nop; mov exp, rf1"),
    );
    body(
        V42,
        "24",
        Class::Drv,
        &format!("{start} nop\n add rf1, r4, rf2"),
        &format!("{start} nop\n nop\n add rf1, r4, rf2"),
    );
}

#[test]
fn rule_25_stalls() {
    both("25", Class::Drv, "recip rf1, rf2\n add rf3, rf1, rf4", "recip rf1, rf2\n nop\n add rf3, rf1, rf4");
}

#[test]
fn rule_26_side_band() {
    let write = "nop; mov unifa, rf1\n";
    for load in ["ldunifa", "ldunifarf.rf3"] {
        both(
            "26",
            Class::Hw,
            &format!("{write} nop\n nop\n nop; nop; {load}"),
            &format!("{write} nop\n nop\n nop\n nop; nop; {load}"),
        );
    }
    // Over a branch: two of the three instructions are its slots.
    both(
        "26",
        Class::Hw,
        "b 8\n nop; mov unifa, rf1\n nop\n nop\n nop\n nop; nop; ldunifa",
        "b 8\n nop; mov unifa, rf1\n nop\n nop\n nop\n nop\n nop; nop; ldunifa",
    );
}

#[test]
fn rule_27_rotation() {
    body(
        V42,
        "27",
        Class::Hw,
        "add r0, rf1, rf2\n nop; mov r1, r0; rotate.3",
        "add r0, rf1, rf2\n nop\n nop; mov r1, r0; rotate.3",
    );
    body(
        V42,
        "27",
        Class::Hw,
        "nop; nop; ldunif\n nop; mov r1, r0; rotate.r5",
        "nop; nop; ldunif\n nop; mov r1, r0; rotate.3",
    );
}

#[test]
fn rule_28_spacing() {
    both(
        "28",
        Class::Drv,
        "nop; nop; thrsw\n nop\n nop; nop; thrsw\n nop\n nop",
        "nop; nop; thrsw\n nop\n nop\n nop; nop; thrsw\n nop\n nop",
    );
}

#[test]
fn rule_29_sections_and_end() {
    let facts = ProgramFacts::compute(2);
    for version in Version::ALL {
        let whole = format!("{MARK}{END}");
        with(version, &facts, "29", Class::Hw, MARK, &whole);
        with(version, &facts, "29", Class::Hw, END, &whole);
        with(version, &facts, "29", Class::Hw, &format!("{MARK}nop; nop; thrsw\n nop"), &whole);
        with(
            version,
            &facts,
            "29",
            Class::Hw,
            &format!("{MARK}nop; nop; thrsw\n nop; nop; thrsw\n nop\n"),
            &whole,
        );
        // The mark on one of two paths only.
        let half = format!("b.na0 32\n nop\n nop\n nop\n{MARK}{END}");
        with(version, &facts, "29", Class::Hw, &half, &format!("b.na0 0\n nop\n nop\n nop\n{MARK}{END}"));
        with(version, &facts, "29", Class::Hw, &format!("b 4000\n nop\n nop\n nop\n{whole}"), &whole);
        with(version, &facts, "29", Class::Hw, "b -32\n nop\n nop\n nop", &whole);
        assert!(has(&validate(version, &[], &facts), "29"));
    }
}

#[test]
fn rules_30_37_38_slots() {
    both(
        "30",
        Class::Hw,
        "b 0\n nop\n nop\n nop; nop; thrsw\n nop\n nop",
        "b 0\n nop\n nop\n nop\n nop; nop; thrsw\n nop\n nop",
    );
    both(
        "37",
        Class::Hw,
        "b 8\n nop\n nop\n b 0\n nop\n nop\n nop",
        "b 0\n nop\n nop\n nop\n b 0\n nop\n nop\n nop",
    );
    both(
        "38",
        Class::Hw,
        "nop; nop; thrsw\n nop\n b 0\n nop\n nop\n nop",
        "nop; nop; thrsw\n nop\n nop\n b 0\n nop\n nop\n nop",
    );
    // The slots are those of the path: behind a jump into them they are ordinary instructions.
    let jump = "b 32\n nop\n nop\n nop\n b 0\n nop\n nop\n nop\n nop; nop; thrsw\n nop\n nop";
    assert!(!has(&check(V71, &format!("{jump}\n{MARK}{END}"), &ProgramFacts::compute(2)), "30"));
}

#[test]
fn rules_31_to_34_work_in_switch_slots() {
    body(
        V42,
        "31",
        Class::Hw,
        "nop; nop; thrsw\n nop\n nop; mov recip, rf1\n nop",
        "nop; nop; thrsw\n nop\n nop\n nop; mov recip, rf1\n nop",
    );
    body(
        V71,
        "32",
        Class::Drv,
        "nop; nop; thrsw\n nop\n recip rf2, rf1",
        "nop; nop; thrsw\n nop\n nop\n recip rf2, rf1",
    );
    body(
        V42,
        "33",
        Class::Hw,
        "nop; nop; thrsw\n nop; nop; ldvary.rf1\n nop",
        "nop; nop; thrsw\n nop\n nop\n nop; nop; ldvary.rf1",
    );
    body(
        V71,
        "34",
        Class::Hw,
        "nop; nop; thrsw\n nop\n nop; nop; ldvary.rf1",
        "nop; nop; thrsw\n nop; nop; ldvary.rf1\n nop",
    );
}

#[test]
fn rule_35_unifa_near_a_switch() {
    let switch = "nop; nop; thrsw\n nop\n nop";
    both(
        "35",
        Class::Hw,
        "nop; mov unifa, rf1; thrsw\n nop\n nop",
        &format!("nop; mov unifa, rf1\n {switch}"),
    );
    both(
        "35",
        Class::Hw,
        "nop; nop; thrsw\n nop\n nop; mov unifa, rf1",
        &format!("{switch}\n nop; mov unifa, rf1"),
    );
}

#[test]
fn rule_36_rf0_before_a_switch() {
    let (load, beside) = ("nop; nop; ldtmu.rf5", "nop; nop; ldtmu.rf6; ldunif");
    let switch = |second: &str| format!("nop; nop; thrsw\n nop\n {second}");
    let breach = |bad: &str, good: &str| body(V71, "36", Class::Hw, bad, good);
    let bad = format!("{beside}\n {}", switch(load));
    // No signal in the last slot, the load in the first one, words apart, another write of rf0 behind, by ADD or a signal.
    breach(&bad, &format!("{beside}\n {}", switch("nop")));
    breach(&bad, &format!("{beside}\n nop; nop; thrsw\n {load}\n nop"));
    breach(&bad, &format!("nop; nop; ldtmu.rf6\n nop; nop; ldunif\n {}", switch(load)));
    breach(&bad, &format!("{beside}\n add rf0, rf1, rf2\n {}", switch(load)));
    breach(&bad, &format!("{beside}\n nop; nop; ldunifrf.rf0\n {}", switch(load)));
    // Other registers do not matter, nor where in front of the last slot it is.
    breach(&format!("{beside}\n add rf1, rf1, rf2\n {}", switch(load)), &switch(load));
    let in_first = |first: &str| format!("nop; nop; thrsw\n {first}\n {load}");
    breach(&in_first(beside), &in_first("nop; nop; ldunif"));
    breach(&switch(beside), &switch("nop; nop; ldunif"));
    // 4.2 has no such rule.
    assert_eq!(breaks(V42, &format!("{bad}\n{MARK}{END}"), &ProgramFacts::compute(2), "36"), None);
    // A coefficient comes in the instruction after the ldvary.
    let vary = "nop; nop; ldvary.rf4";
    breach(
        &format!("{vary}\n {load}\n {}", switch(load)),
        &format!("{vary}\n nop\n {load}\n {}", switch(load)),
    );
    breach(&in_first(vary), &format!("nop; nop; thrsw\n {vary}\n nop"));
    // On one way only.
    let around = |skipped: &str| format!("b.a0 8\n nop\n nop\n nop\n {skipped}\n {}", switch(load));
    breach(&around(beside), &around("nop; nop; ldunif"));
    // The end.
    let ends = |second: &str| format!("{MARK}{beside}\n nop; nop; thrsw\n nop\n {second}\n");
    with(V71, &ProgramFacts::compute(2), "36", Class::Hw, &ends(load), &ends("nop"));
}

#[test]
fn rules_39_40_42_branches() {
    both(
        "39",
        Class::Drv,
        "nop; mov unifa, rf1\n b 0\n nop\n nop\n nop",
        "b 0\n nop\n nop\n nop\n nop; mov unifa, rf1",
    );
    both(
        "39",
        Class::Drv,
        "b 0\n nop\n nop; mov unifa, rf1\n nop",
        "nop; mov unifa, rf1\n nop\n nop\n nop\n b 0\n nop\n nop\n nop",
    );
    both(
        "40",
        Class::Hw,
        "bu 0, r:unif\n nop\n nop; nop; ldunif\n nop",
        "bu 0, r:unif\n nop\n nop\n nop\n nop; nop; ldunif",
    );
    both("40b", Class::Drv, "b 0\n nop\n nop; nop; ldunif\n nop", "b 0\n nop\n nop\n nop\n nop; nop; ldunif");
    both(
        "42",
        Class::Drv,
        "nop; nop; ldvary.rf4\n b 0\n nop\n nop\n nop",
        "nop; nop; ldvary.rf4\n nop\n b 0\n nop\n nop\n nop",
    );
}

#[test]
fn rules_43_44_sample_flags() {
    let bad = "setmsf -, rf1\n b.anyap 0\n nop\n nop\n nop";
    let good = "setmsf -, rf1\n nop\n b.anyap 0\n nop\n nop\n nop";
    body(V42, "43", Class::Hw, bad, good);
    body(V71, "43b", Class::Drv, bad, good);
    body(V42, "43", Class::Hw, bad, "setmsf -, rf1\n b.anya 0\n nop\n nop\n nop");
    for version in Version::ALL {
        // The Z write is word 4.
        let facts = ProgramFacts { z_writes: &[4], ..fragment() };
        let z = "nop; mov tlbu, rf4\n";
        for word in ["setmsf -, rf1", "msf rf5", "b.allnaq 0\n nop\n nop\n nop"] {
            with(
                version,
                &facts,
                "44",
                Class::Hw,
                &format!("{MARK}{z}{word}\n{END}"),
                &format!("{MARK}{z}nop\n{END}"),
            );
        }
    }
}

#[test]
fn rule_45_scoreboard() {
    let write = "nop; mov tlb, rf4\n";
    let switch = "nop; nop; thrsw\n nop\n nop\n";
    let early = ProgramFacts { scoreboard_on_first: true, ..fragment() };
    for version in Version::ALL {
        let good = format!("{MARK}{write}{END}");
        with(version, &fragment(), "45", Class::Hw, &format!("{write}{MARK}{END}"), &good);
        let slots = format!("nop; nop; thrsw\n nop; nop; thrsw\n nop; mov tlb, rf4\n nop\n{END}");
        with(version, &fragment(), "45", Class::Hw, &slots, &good);
        let first = format!("{switch}{write}{MARK}{END}");
        with(version, &fragment(), "45", Class::Hw, &first, &good);
        with(version, &early, "45", Class::Hw, &format!("{write}{switch}{MARK}{END}"), &first);
    }
}

#[test]
fn rules_47_to_52_the_end() {
    end(V42, "47", Class::Hw, ["", "", "add rf5, rf6, rf7"], ["", "", "add r0, rf6, rf7"]);
    end(V42, "47", Class::Hw, ["nop; nop; ldtmu.rf5", "", ""], ["nop; nop; ldtmu.r1", "", ""]);
    end(V71, "48", Class::Hw, ["add rf5, rf6, rf7; nop", "", ""], ["", "add rf5, rf6, rf7", ""]);
    end(V71, "49", Class::Hw, ["", "add rf2, rf6, rf7", ""], ["", "add rf4, rf6, rf7", ""]);
    end(V71, "49", Class::Hw, ["", "", "add rf5, rf3, rf7"], ["", "", "add rf5, rf1, rf7"]);
    end(V42, "50", Class::Hw, ["", "add r0, rf2, rf7", ""], ["", "add r0, rf3, rf7", ""]);
    for version in Version::ALL {
        end(version, "51", Class::Hw, ["", "nop; nop; ldvary.rf5", ""], ["", "", ""]);
        end(version, "51", Class::Hw, ["", "nop; nop; ldunif", ""], ["nop; nop; ldunif", "", ""]);
        end(version, "51", Class::Hw, ["", "", "nop; mov unifa, rf6"], ["", "", ""]);
        let (text, early) = (ending(["", "", "nop; mov tlb, rf5"]), ending(["", "nop; mov tlb, rf5", ""]));
        let facts = ProgramFacts { z_writes: &[6], ..fragment() };
        assert!(has(&check(version, &text, &facts), "51"));
        let facts = ProgramFacts { z_writes: &[5], ..fragment() };
        assert!(!has(&check(version, &early, &facts), "51"));
    }
    end(V42, "52", Class::Hw, ["", "", "tmuwt -"], ["", "tmuwt -", ""]);
    end(V42, "52", Class::Hw, ["", "vpmwt -", ""], ["", "", ""]);
    end(V71, "52b", Class::Drv, ["", "", "tmuwt -"], ["", "tmuwt -", ""]);
}

#[test]
fn rule_53_vpm_is_waited_for() {
    body(V42, "53", Class::Hw, "stvpmv rf1, rf2", "stvpmv rf1, rf2\n vpmwt -");
    body(V42, "53", Class::Hw, "vpmwt -\n stvpmv rf1, rf2", "stvpmv rf1, rf2\n vpmwt -");
    assert!(!has(&check(V71, &format!("stvpmv rf1, rf2\n{MARK}{END}"), &ProgramFacts::compute(2)), "53"));
}

#[test]
fn rule_60_barriers() {
    let facts = ProgramFacts::compute(2);
    let switch = "nop; nop; thrsw\n nop\n nop\n";
    let barrier = "barrierid syncb\n";
    for version in Version::ALL {
        let good = format!("{barrier}{switch}{MARK}{END}");
        with(version, &facts, "60", Class::Hw, &format!("{MARK}{barrier}{END}"), &good);
        with(version, &facts, "60", Class::Hw, &format!("{barrier}{barrier}{switch}{MARK}{END}"), &good);
        // In the instruction of the switch, and in its slots.
        for text in ["barrierid syncb; nop; thrsw\n nop\n nop\n", "nop; nop; thrsw\n barrierid syncb\n nop\n"]
        {
            assert!(!has(&check(version, &format!("{text}{MARK}{END}"), &facts), "60"), "{text}");
        }
        // A path on which it is the end that follows.
        let path = format!("{MARK}b.na0 8\n nop\n nop\n nop\n barrierid syncb\n{END}");
        with(version, &facts, "60", Class::Hw, &path, &good);
    }
}

#[test]
fn rule_64_fragments_write() {
    for version in Version::ALL {
        let write = "nop; mov tlb, rf4\n";
        with(version, &fragment(), "64", Class::Hw, &format!("{MARK}{END}"), &format!("{MARK}{write}{END}"));
        // On every path.
        let skipped = format!("{MARK}b.na0 8\n nop\n nop\n nop\n{write}{END}");
        with(version, &fragment(), "64", Class::Hw, &skipped, &format!("{MARK}{write}{END}"));
        assert!(!has(&check(version, &format!("{MARK}{END}"), &ProgramFacts::compute(2)), "64"));
    }
}

#[test]
fn rule_70_rotations_beside_tmu_writes() {
    body(V71, "70", Class::Hw, "rot rf1, rf2, rf3; mov tmud, rf4", "rot rf1, rf2, rf3; mov rf5, rf4");
    body(V71, "70", Class::Hw, "shuffle tmua, rf2, rf3", "shuffle rf1, rf2, rf3");
}

/// Garbage gives findings, not panics or long runs.
#[test]
fn any_words_are_answered() {
    let mut x = 1u64;
    for version in Version::ALL {
        for facts in [ProgramFacts::compute(4), fragment()] {
            for _ in 0..200 {
                let mut words = Vec::new();
                for _ in 0..40 {
                    x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    // Half of them branches, so that paths cross.
                    words.push(if x >> 63 == 0 {
                        x.rotate_left(32)
                    } else {
                        0x0200_0000_0000_1000 | x & 0x0000_07ff_0021_f000
                    });
                }
                validate(version, &words, &facts);
            }
        }
    }
}

/// The rules of varyings, tile buffer and VPM where a branch lies between.
#[test]
fn graphics_rules_follow_every_path() {
    let facts = fragment();
    let write = "nop; mov tlb, rf4\n";
    for (version, c) in [(V42, "r5"), (V71, "rf0")] {
        let tail = format!("{MARK}{write}{END}");
        // An ldvary in the last slot: the target is the next instruction, and so is the fall through.
        for branch in ["b 8", "b.na0 8"] {
            let at_target = |first: &str, second: &str| {
                format!("{branch}\n nop\n nop\n nop; nop; ldvary.rf4\n {first}\n {second}\n {tail}")
            };
            let target = |word: &str| at_target("nop", word);
            for (rule, word) in [("18", "nop; nop; ldunif"), ("20", &format!("fadd rf5, {c}, rf4"))] {
                with(version, &facts, rule, Class::Hw, &target(word), &target(&format!("nop\n {word}")));
            }
            let through = at_target("nop; nop; ldunifa", "nop");
            assert_eq!(has(&check(version, &through, &facts), "18"), branch == "b.na0 8");
        }
        // Depth is written, and a loop comes back to where the flags are read.
        let back = |to: &str| {
            format!(
                "{MARK}top: msf rf5\n nop\n again: nop; mov tlbu, rf4\n b.na0 {to}\n nop\n nop\n nop\n{write}{END}"
            )
        };
        let facts = ProgramFacts { z_writes: &[6], ..fragment() };
        with(version, &facts, "44", Class::Hw, &back("top"), &back("again"));
    }
    let vertex = ProgramFacts { stage: Stage::Vertex, ..ProgramFacts::compute(2) };
    let skip =
        |wait: &str| format!("b.na0 skip\n nop\n nop\n nop\n stvpmv rf1, rf2\n skip: {wait}\n{MARK}{END}");
    with(V42, &vertex, "53", Class::Hw, &skip("nop"), &skip("vpmwt -"));
    assert!(!has(&check(V42, &skip("vpmwt -"), &vertex), "64"));
}

#[test]
fn tile_buffer_words() {
    for version in Version::ALL {
        let of =
            |word: &str| check(version, &format!("{MARK}{word}\n nop; mov tlb, rf4\n{END}"), &fragment());
        for word in [
            "nop; mov tlb, rf1; ldtlb.rf3",
            "add tmud, rf1, rf2; mov tlb, rf1",
            "add tlb, rf1, rf2; mov tlb, rf1",
        ] {
            assert!(has(&of(word), "14"), "{word}");
        }
        assert!(has(&of("nop; mov tlbu, rf1; ldunif"), "17"));
        for word in ["nop; mov tlbu, rf1", "nop; mov tlb, rf1; ldunif", "nop; nop; ldtlbu.rf5"] {
            assert!(of(word).iter().all(|v| v.class == Class::Drv), "{word}: {:?}", of(word));
        }
        end(version, "51", Class::Hw, ["", "nop; mov tlbu, rf5", ""], ["", "nop; mov tlb, rf5", ""]);
        // Reading needs the lock as writing does; a program that starts in its final section never takes it.
        let read = format!("nop; nop; ldtlbu.rf5\n{MARK}nop; mov tlb, rf4\n{END}");
        assert!(has(&check(version, &read, &fragment()), "45"));
        let single = ProgramFacts { single_segment: true, ..fragment() };
        assert!(has(&check(version, &format!("nop; mov tlb, rf4\n{END}"), &single), "45"));
    }
}
