//! Every rule of class [HW]: a program that breaks it is stopped with its number, and a neighbour that differs as little
//! as can be runs. The same pairs go through the validator where it can see the rule (checks W and P).
//!
//! The list of the rules is complete: with the reference at hand it is compared with the table of section 15.

use super::graphics_tests::{Fragments, per_version, vertices};
use super::tests::{LANES_AT, Run};
use super::*;
use crate::asm::assemble;
use crate::validate::{Class, ProgramFacts, Stage, validate};
use Version::{V42, V71};

/// Where a rule can be seen (section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Check {
    Word,
    Program,
    Run,
    Compiler,
}

/// Why there is a pair or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    Pair,
    /// The encoding has no room for a breach: every word means something that obeys the rule.
    NoWord,
    /// The words are legal in any order: a breach is a wrong result (class C).
    AnyOrder,
}

use Check::*;
use Shown::*;

/// Number, versions, check, how it is shown.
const RULES: [(&str, &[Version], Check, Shown); 58] = [
    ("1", &[V42, V71], Word, Pair),
    ("2", &[V42, V71], Word, NoWord),
    ("3", &[V42, V71], Word, Pair),
    ("4", &[V42], Word, NoWord),
    ("5", &[V42], Word, NoWord),
    ("6", &[V71], Word, NoWord),
    ("8", &[V42, V71], Word, Pair),
    ("9", &[V42, V71], Word, NoWord),
    ("10", &[V42, V71], Word, Pair),
    ("11", &[V42, V71], Word, Pair),
    ("12", &[V42, V71], Word, Pair),
    ("13", &[V42, V71], Word, Pair),
    ("14", &[V42, V71], Word, Pair),
    ("17", &[V42, V71], Word, Pair),
    ("18", &[V42, V71], Program, Pair),
    ("19", &[V42], Program, Pair),
    ("20", &[V42, V71], Program, Pair),
    ("21", &[V71], Program, Pair),
    ("22", &[V71], Word, Pair),
    ("23", &[V42], Program, Pair),
    ("26", &[V42, V71], Program, Pair),
    ("27", &[V42], Program, Pair),
    ("29", &[V42, V71], Program, Pair),
    ("30", &[V42, V71], Program, Pair),
    ("31", &[V42], Program, Pair),
    ("33", &[V42], Program, Pair),
    ("34", &[V71], Program, Pair),
    ("35", &[V42, V71], Program, Pair),
    ("36", &[V71], Check::Run, Pair),
    ("37", &[V42, V71], Program, Pair),
    ("38", &[V42, V71], Program, Pair),
    ("40", &[V42, V71], Program, Pair),
    ("41", &[V42, V71], Compiler, AnyOrder),
    ("43", &[V42], Program, Pair),
    ("44", &[V42, V71], Program, Pair),
    ("45", &[V42, V71], Program, Pair),
    ("46", &[V42, V71], Check::Run, Pair),
    ("47", &[V42], Program, Pair),
    ("48", &[V71], Program, Pair),
    ("49", &[V71], Program, Pair),
    ("50", &[V42], Program, Pair),
    ("51", &[V42, V71], Program, Pair),
    ("52", &[V42], Program, Pair),
    ("53", &[V42], Program, Pair),
    ("54", &[V42, V71], Check::Run, Pair),
    ("55", &[V42, V71], Check::Run, Pair),
    ("56", &[V42, V71], Check::Run, Pair),
    ("57", &[V42, V71], Check::Run, Pair),
    ("58", &[V42, V71], Check::Run, Pair),
    ("60", &[V42, V71], Program, Pair),
    ("61", &[V42, V71], Compiler, AnyOrder),
    ("62", &[V42, V71], Compiler, AnyOrder),
    ("63", &[V42, V71], Compiler, AnyOrder),
    ("64", &[V42, V71], Program, Pair),
    ("65", &[V71], Compiler, AnyOrder),
    ("66", &[V42, V71], Check::Run, Pair),
    ("69", &[V42, V71], Check::Run, Pair),
    ("70", &[V71], Word, Pair),
];

fn rules() -> impl Iterator<Item = (&'static str, &'static [Version], Check, Shown)> {
    RULES.into_iter()
}

const MARK: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n";
const SWITCH: &str = "nop; nop; thrsw\n nop\n nop\n";
const END: &str = "nop; nop; thrsw\n nop\n nop\n";

/// Two programs.
struct PairOf {
    rule: &'static str,
    versions: &'static [Version],
    bad: String,
    good: String,
    /// Clears and sets these bits of a word of `bad`, counted from its first word.
    patch: Option<(usize, u64, u64)>,
    threads: u32,
    stage: Stage,
    before_42_14: bool,
    /// What follows the address of the buffer in the uniform stream.
    uniforms: [u32; 4],
}

const BOTH: &[Version] = &[V42, V71];

impl PairOf {
    /// Whole programs, behind the addresses of the lanes.
    fn whole(rule: &'static str, versions: &'static [Version], bad: &str, good: &str) -> PairOf {
        let text = |body: &str| format!("{LANES_AT}{body}\n");
        PairOf {
            rule,
            versions,
            bad: text(bad),
            good: text(good),
            patch: None,
            threads: 2,
            stage: Stage::Compute,
            before_42_14: false,
            // The configuration of an addition with one operand, then zeros.
            uniforms: [0xffff_ff87, 0, 0, 0],
        }
    }

    /// What stands in front of the mark and the end.
    fn body(rule: &'static str, versions: &'static [Version], bad: &str, good: &str) -> PairOf {
        PairOf::whole(rule, versions, &format!("{bad}\n{MARK}{END}"), &format!("{good}\n{MARK}{END}"))
    }

    /// The three instructions of the end, the first without its switch.
    fn end(rule: &'static str, versions: &'static [Version], bad: [&str; 3], good: [&str; 3]) -> PairOf {
        let text = |[a, b, c]: [&str; 3]| format!("{MARK}{a}; thrsw\n{b}\n{c}\n");
        PairOf::whole(rule, versions, &text(bad), &text(good))
    }

    /// Whole fragment programs; every write of tlbu in them is one of depth, unmodified. `@C` and `@W`: see `per_version`.
    fn fragment(rule: &'static str, versions: &'static [Version], bad: &str, good: &str) -> PairOf {
        let (bad, good) = (bad.to_owned(), good.to_owned());
        let uniforms = [0xffff_ff84, 0, 0, 0];
        PairOf { stage: Stage::Fragment, bad, good, uniforms, ..PairOf::whole(rule, versions, "", "") }
    }

    /// What stands in front of the mark, a colour and the end of a fragment program.
    fn varyings(rule: &'static str, versions: &'static [Version], bad: &str, good: &str) -> PairOf {
        let text = |body: &str| format!("{body}\n{MARK}{COLOR}{END}");
        PairOf::fragment(rule, versions, &text(bad), &text(good))
    }

    /// One instruction with some of its bits changed.
    fn patch(rule: &'static str, versions: &'static [Version], instr: &str, clear: u64, set: u64) -> PairOf {
        let mut pair = PairOf::body(rule, versions, instr, instr);
        // Behind the words of the lanes' addresses.
        pair.patch = Some((LANES_AT.lines().count(), clear, set));
        pair
    }
}

/// A colour in the default configuration.
const COLOR: &str = "nop; mov tlb, rf1\n nop; mov tlb, rf1\n";
/// Depth.
const Z: &str = "nop; mov tlbu, rf1\n";

/// Instructions of the end that do nothing.
const IDLE: [&str; 3] = ["nop; nop", "nop; nop", "nop; nop"];

fn pairs() -> Vec<PairOf> {
    let mut all = vec![
        // Words.
        PairOf::patch("1", &[V42], "nop", 0, 26 << 53),
        PairOf::patch("1", &[V71], "nop", 0, 23 << 53),
        PairOf::patch("3", BOTH, "nop", 0, 0x10 << 46),
        PairOf::patch("8", BOTH, "add rf1, rf11, 5", 0x3f, 48),
        PairOf::body("10", BOTH, "itof rf1.l, rf11", "itof rf1, rf11"),
        PairOf::body("10", &[V71], "fround rf1, rf11.abs", "fround rf1, rf11.l"),
        PairOf::body("10", &[V71], "nop; fmov rf1, rf11.unpack7", "nop; fmov rf1, rf11.max0"),
        PairOf { threads: 4, ..PairOf::body("11", BOTH, "add rf32, rf11, rf11", "add rf31, rf11, rf11") },
        PairOf { threads: 4, ..PairOf::body("11", BOTH, "add rf1, rf40, rf11", "add rf1, rf30, rf11") },
        PairOf {
            threads: 4,
            ..PairOf::body("11", BOTH, "nop; nop; ldunifrf.rf50", "nop; nop; ldunifrf.rf20")
        },
        PairOf::body("12", BOTH, "add magic60, rf11, rf11", "add -, rf11, rf11"),
        PairOf::body("12", &[V71], "add magic3, rf11, rf11", "add -, rf11, rf11"),
        PairOf::patch("12", BOTH, "add rf1, rf11, rf11", 0xff << 24, 50 << 24),
        PairOf::body("13", BOTH, "recip tmud, rf11", "recip rf2, rf11"),
        PairOf::body("13", &[V42], "recip r1, rf11", "recip rf1, rf11"),
        PairOf::body("13", &[V71], "rot rep, rf11, 1", "rot rf1, rf11, 1"),
        PairOf::body(
            "14",
            BOTH,
            "nop\n add tmud, rf11, rf11; mov tmua, rf10",
            "add tmud, rf11, rf11\n nop; mov tmua, rf10",
        ),
        PairOf::body(
            "14",
            &[V42],
            "add tmud, rf11, rf11; mov exp, rf11",
            "add rf1, rf11, rf11; mov exp, rf11",
        ),
        PairOf::body(
            "17",
            BOTH,
            "nop; mov tmuau, rf10; ldunif\n nop; nop; ldtmu.rf1",
            "nop; mov tmua, rf10; ldunif\n nop; nop; ldtmu.rf1",
        ),
        PairOf::body(
            "17",
            BOTH,
            "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; mov tmuau, rf10; ldunifa\n nop; nop; ldtmu.rf1",
            "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; mov tmua, rf10; ldunifa\n nop; nop; ldtmu.rf1",
        ),
        PairOf::body("70", &[V71], "rot rf1, rf11, 3; mov tmuc, rf12", "rot rf1, rf11, 3; mov rf5, rf12"),
        PairOf::body("70", &[V71], "shuffle tmud, rf10, rf11", "shuffle rf1, rf10, rf11"),
        PairOf::body("70", &[V71], "rotq tmua, rf10, rf11", "rotq rf1, rf10, rf11"),
        // Distances.
        PairOf {
            before_42_14: true,
            ..PairOf::body(
                "19",
                &[V42],
                "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunif\n nop; nop; ldunifa\n nop",
                "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunif\n nop\n nop; nop; ldunifa",
            )
        },
        PairOf {
            before_42_14: true,
            ..PairOf::body(
                "19",
                &[V42],
                "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunifarf.rf1\n nop; nop; ldunifrf.rf2\n nop",
                "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunifarf.rf1\n nop\n nop; nop; ldunifrf.rf2",
            )
        },
        PairOf::body(
            "23",
            &[V42],
            "nop; mov recip, rf11\n add rf1, r4, rf11\n nop",
            "nop; mov recip, rf11\n nop\n add rf1, r4, rf11",
        ),
        PairOf::body(
            "23",
            &[V42],
            "nop; mov recip, rf11\n add r4, rf10, rf11",
            "nop; mov recip, rf11\n add r3, rf10, rf11",
        ),
        PairOf::body(
            "23",
            &[V42],
            "nop; mov recip, rf11\n nop; mov exp, rf11\n nop",
            "nop; mov recip, rf11\n nop\n nop; mov exp, rf11",
        ),
        PairOf::body(
            "26",
            BOTH,
            "nop; mov unifa, rf10\n nop\n nop\n nop; nop; ldunifa\n nop",
            "nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunifa",
        ),
        PairOf::body(
            "26",
            BOTH,
            "nop\n nop; mov unifa, rf10\n b 0\n nop\n nop; nop; ldunifarf.rf1\n nop",
            "nop; mov unifa, rf10\n nop\n b 0\n nop\n nop; nop; ldunifarf.rf1\n nop",
        ),
        PairOf::body(
            "27",
            &[V42],
            "add r0, rf11, 1\n nop; mov r1, r0; rotate.3\n nop",
            "add r0, rf11, 1\n nop\n nop; mov r1, r0; rotate.3",
        ),
        PairOf::body(
            "27",
            &[V42],
            "add rf1, rf11, 1\n nop; mov r1, rf1; rotate.3\n nop",
            "add rf1, rf11, 1\n nop\n nop; mov r1, rf1; rotate.3",
        ),
        PairOf::body(
            "27",
            &[V42],
            "add r0, rf11, 1\n nop; nop; ldunif\n nop; mov r1, r0; rotate.r5",
            "add r0, rf11, 1\n nop; nop; ldunif\n nop; mov r1, r0; rotate.3",
        ),
        PairOf::body(
            "43",
            &[V42],
            "nop; mov rf1, 15\n eidx.pushz -\n setmsf -, rf1\n b.anyap 0\n nop\n nop\n nop\n nop",
            "nop; mov rf1, 15\n eidx.pushz -\n setmsf -, rf1\n nop\n b.anyap 0\n nop\n nop\n nop",
        ),
        PairOf::body(
            "43",
            &[V42],
            "nop; mov rf1, 15\n eidx.pushz -\n setmsf -, rf1\n b.allnaq 0\n nop\n nop\n nop",
            "nop; mov rf1, 15\n eidx.pushz -\n setmsf -, rf1\n b.allna 0\n nop\n nop\n nop",
        ),
        // Slots.
        PairOf::body(
            "30",
            BOTH,
            "b 0\n nop\n nop\n nop; nop; thrsw\n nop\n nop",
            "b 0\n nop\n nop\n nop\n nop; nop; thrsw\n nop\n nop",
        ),
        PairOf::body(
            "30",
            BOTH,
            "eidx.pushn -\n b.a0 0\n nop; nop; thrsw\n nop\n nop",
            "eidx.pushn -\n nop; nop; thrsw\n nop\n nop\n eidx.pushn -\n b.a0 0\n nop\n nop\n nop",
        ),
        PairOf::body(
            "31",
            &[V42],
            "nop; nop; thrsw\n nop\n nop; mov recip, rf11\n nop",
            "nop; nop; thrsw\n nop\n nop\n nop; mov recip, rf11",
        ),
        PairOf::body(
            "35",
            BOTH,
            "nop; mov unifa, rf10; thrsw\n nop\n nop\n nop",
            "nop; mov unifa, rf10\n nop; nop; thrsw\n nop\n nop",
        ),
        PairOf::body(
            "35",
            BOTH,
            "nop; nop; thrsw\n nop\n nop; mov unifa, rf10\n nop",
            "nop; nop; thrsw\n nop\n nop\n nop; mov unifa, rf10",
        ),
        PairOf::body(
            "37",
            BOTH,
            "b 8\n nop\n nop\n b 0\n nop\n nop\n nop",
            "b 0\n nop\n nop\n nop\n b 0\n nop\n nop\n nop",
        ),
        // In a slot of a branch that is not taken, too.
        PairOf::body(
            "37",
            BOTH,
            "eidx.pushn -\n b.a0 0\n nop\n b.a0 0\n nop\n nop\n nop",
            "eidx.pushn -\n b.a0 0\n nop\n nop\n nop\n b.a0 0\n nop\n nop\n nop",
        ),
        PairOf::body(
            "38",
            BOTH,
            "nop; nop; thrsw\n nop\n b 0\n nop\n nop\n nop",
            "nop; nop; thrsw\n nop\n nop\n b 0\n nop\n nop\n nop",
        ),
        PairOf {
            uniforms: [0; 4],
            ..PairOf::body(
                "40",
                BOTH,
                "bu 0, r:unif\n nop\n nop\n nop; nop; ldunif\n nop",
                "bu 0, r:unif\n nop\n nop\n nop\n nop; nop; ldunif",
            )
        },
        PairOf {
            uniforms: [0; 4],
            ..PairOf::body(
                "40",
                BOTH,
                "eidx.pushn -\n bu.a0 0, r:unif\n nop; nop; ldunifrf.rf1\n nop\n nop",
                "eidx.pushn -\n b.a0 0\n nop; nop; ldunifrf.rf1\n nop\n nop",
            )
        },
        // The end.
        PairOf::whole("29", BOTH, MARK, &format!("{MARK}{END}")),
        PairOf::whole(
            "29",
            BOTH,
            &format!("{MARK}nop; nop; thrsw\n nop; nop; thrsw\n nop\n"),
            &format!("{MARK}nop; nop; thrsw\n nop\n nop\n"),
        ),
        PairOf::whole(
            "29",
            BOTH,
            &format!("b 4000\n nop\n nop\n nop\n{MARK}{END}"),
            &format!("b 0\n nop\n nop\n nop\n{MARK}{END}"),
        ),
        PairOf::end(
            "47",
            &[V42],
            ["nop; nop", "nop", "add rf5, rf6, rf7"],
            ["nop; nop", "nop", "add r0, rf6, rf7"],
        ),
        PairOf::end("47", &[V42], ["nop; mov rf5, rf6", "nop", "nop"], ["nop; mov r1, rf6", "nop", "nop"]),
        PairOf::end(
            "48",
            &[V71],
            ["add rf5, rf6, rf7; nop", "nop", "nop"],
            ["nop; nop", "add rf5, rf6, rf7", "nop"],
        ),
        PairOf::end("48", &[V71], ["nop; mov rep, rf7", "nop", "nop"], ["nop; mov -, rf7", "nop", "nop"]),
        PairOf::end(
            "49",
            &[V71],
            ["nop; nop", "add rf2, rf6, rf7", "nop"],
            ["nop; nop", "add rf4, rf6, rf7", "nop"],
        ),
        PairOf::end(
            "49",
            &[V71],
            ["nop; nop", "nop", "add rf5, rf3, rf7"],
            ["nop; nop", "nop", "add rf5, rf1, rf7"],
        ),
        PairOf::end(
            "50",
            &[V42],
            ["nop; nop", "add r0, rf2, rf7", "nop"],
            ["nop; nop", "add r0, rf3, rf7", "nop"],
        ),
        PairOf::end("50", &[V42], ["nop; mov r0, rf0", "nop", "nop"], ["nop; mov r0, rf5", "nop", "nop"]),
        PairOf::end("51", BOTH, ["nop; nop", "nop; nop; ldunif", "nop"], ["nop; nop; ldunif", "nop", "nop"]),
        PairOf::end(
            "51",
            BOTH,
            ["nop; nop", "nop", "nop; mov unifa, rf10"],
            ["nop; nop", "nop", "nop; mov -, rf10"],
        ),
        PairOf::end("52", &[V42], ["nop; nop", "nop", "tmuwt -"], ["nop; nop", "tmuwt -", "nop"]),
        PairOf::end("52", &[V42], ["nop; nop", "vpmwt -", "nop"], IDLE),
        // What only a run shows.
        PairOf::body(
            "36",
            &[V71],
            "nop; mov tmua, rf10\n nop; mov tmua, rf10\n nop; nop; ldtmu.rf6; ldunif\n nop; nop; thrsw\n nop\n \
             nop; nop; ldtmu.rf5\n nop; mov tmud, rf0\n nop; mov tmua, rf10",
            "nop; mov tmua, rf10\n nop; mov tmua, rf10\n nop; nop; ldtmu.rf6; ldunif\n nop; nop; thrsw\n \
             nop; nop; ldtmu.rf5\n nop\n nop; mov tmud, rf0\n nop; mov tmua, rf10",
        ),
        PairOf::body(
            "46",
            BOTH,
            &format!("nop; multop -, rf10, rf11\n {SWITCH} nop; umul24 rf1, rf10, rf11"),
            &format!("{SWITCH} nop; multop -, rf10, rf11\n nop; umul24 rf1, rf10, rf11"),
        ),
        PairOf::body(
            "54",
            BOTH,
            &format!("nop; mov tmud, rf11\n {SWITCH} nop; mov tmua, rf10"),
            &format!("{SWITCH} nop; mov tmud, rf11\n nop; mov tmua, rf10"),
        ),
        PairOf::body(
            "54",
            BOTH,
            "nop; mov tmud, rf11\n nop; mov tmud, rf11\n nop; mov tmua, rf10",
            "nop; mov tmud, rf11\n nop; mov tmua, rf10\n nop",
        ),
        PairOf::body(
            "57",
            BOTH,
            "nop; mov tmud, rf11\n nop; mov tmuau, rf10",
            "nop; mov tmud, rf11\n nop; mov tmuau, rf10\n nop; nop; ldtmu.rf1",
        ),
        PairOf::body("56", BOTH, "nop; mov tmua, rf10", "nop; mov tmua, rf10\n nop; nop; ldtmu.rf1"),
        PairOf::body(
            "56",
            BOTH,
            "nop; mov tmua, rf10\n nop; nop; ldtmu.rf1\n nop; nop; ldtmu.rf1",
            "nop; mov tmua, rf10\n nop; nop; ldtmu.rf1\n nop",
        ),
        PairOf::body(
            "58",
            BOTH,
            &format!("eidx.pushz -\n {SWITCH} b.anya 0\n nop\n nop\n nop"),
            &format!("{SWITCH} eidx.pushz -\n b.anya 0\n nop\n nop\n nop"),
        ),
        PairOf::body(
            "58",
            &[V42],
            &format!("add r1, rf10, 0\n {SWITCH} nop; mov tmua, r1\n nop; nop; ldtmu.rf1"),
            &format!("add rf20, rf10, 0\n {SWITCH} nop; mov tmua, rf20\n nop; nop; ldtmu.rf1"),
        ),
        PairOf::whole(
            "60",
            BOTH,
            &format!("{MARK}barrierid syncb\n{END}"),
            &format!("barrierid syncb\n{MARK}{END}"),
        ),
        PairOf::body(
            "60",
            BOTH,
            &format!("barrierid syncb\n barrierid syncb\n {SWITCH}"),
            &format!("barrierid syncb\n nop\n {SWITCH}"),
        ),
        PairOf::body(
            "66",
            BOTH,
            "add rf1, rf12, rf11\n bu 0, rf1\n nop\n nop\n nop",
            "add rf1, rf12, 0\n bu 0, rf1\n nop\n nop\n nop",
        ),
        PairOf::body(
            "69",
            BOTH,
            "add rf1, rf10, 2\n nop; mov tmua, rf1\n nop; nop; ldtmu.rf1",
            "add rf1, rf10, 4\n nop; mov tmua, rf1\n nop; nop; ldtmu.rf1",
        ),
    ];
    all.extend(graphics_pairs());
    // Queues: of results, and of register writes, for both numbers of threads.
    for (threads, share) in [(2, 8), (4, 4)] {
        let load = "nop; mov tmua, rf10\n";
        let collect = "nop; nop; ldtmu.rf1\n";
        let text = |n: usize| format!("{}{}", load.repeat(n), collect.repeat(n));
        all.push(PairOf { threads, ..PairOf::body("55", BOTH, &text(share + 1), &text(share)) });
    }
    let data = |n: usize| format!("{}nop; mov tmuau, rf10", "nop; mov tmud, rf11\n".repeat(n));
    // Four words of data and an address; the type of the neighbour comes from its own uniform.
    all.push(PairOf {
        threads: 4,
        ..PairOf::body("55", BOTH, &data(4), "nop; mov tmud, rf11\n nop; mov tmua, rf10")
    });
    all
}

/// Varyings, tile buffer, VPM.
fn graphics_pairs() -> Vec<PairOf> {
    let vary = "nop; nop; ldvary.rf4\n";
    let vertex = |bad: &str, good: &str| {
        let text = |body: &str| format!("nop; mov rf1, 1\n{body}{MARK}{END}");
        let (bad, good) = (text(bad), text(good));
        PairOf { stage: Stage::Vertex, bad, good, ..PairOf::whole("53", &[V42], "", "") }
    };
    let whole = |rule, bad: String, good: String| PairOf::fragment(rule, BOTH, &bad, &good);
    let mut all = vec![
        PairOf::varyings(
            "18",
            BOTH,
            &format!("{vary} nop; nop; ldunif\n nop"),
            &format!("{vary} nop\n nop; nop; ldunif"),
        ),
        PairOf::varyings(
            "20",
            BOTH,
            &format!("{vary} fadd rf5, rf4, @C\n nop"),
            &format!("{vary} nop\n fadd rf5, rf4, @C"),
        ),
        // The coefficient of the varying before has been taken; read once, it may be read then.
        PairOf::varyings(
            "20",
            BOTH,
            &format!("{vary} nop\n fadd rf5, rf4, @C\n {vary} fadd rf6, rf4, @C"),
            &format!("{vary} nop; nop; ldvary.rf7\n fadd rf5, rf4, @C\n nop\n fadd rf6, rf7, @C"),
        ),
        PairOf::varyings(
            "21",
            &[V71],
            &format!("{vary} add rf0, rf1, rf1\n nop"),
            &format!("{vary} nop\n add rf0, rf1, rf1"),
        ),
        PairOf::varyings(
            "21",
            &[V71],
            &format!("{vary} nop; mov rep, rf1\n nop"),
            &format!("{vary} nop; nop; ldvary.rf5"),
        ),
        PairOf::varyings("22", &[V71], "nop; nop; ldvary.rf0", "nop; nop; ldvary.rf4"),
        PairOf::varyings(
            "33",
            &[V42],
            "nop; nop; thrsw\n nop\n nop; nop; ldvary.rf4\n nop",
            "nop; nop; thrsw\n nop\n nop\n nop; nop; ldvary.rf4",
        ),
        PairOf::varyings(
            "33",
            &[V42],
            "nop; nop; thrsw\n nop; nop; ldvary.rf4\n nop",
            "nop; nop; ldvary.rf4; thrsw\n nop\n nop",
        ),
        PairOf::varyings(
            "34",
            &[V71],
            "nop; nop; thrsw\n nop\n nop; nop; ldvary.rf4",
            "nop; nop; thrsw\n nop; nop; ldvary.rf4\n nop",
        ),
        whole("45", format!("{COLOR}{MARK}{END}"), format!("{MARK}{COLOR}{END}")),
        // In the slots of the last switch, and behind a switch that is not the last.
        whole(
            "45",
            format!("nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop; mov tlb, rf1\n nop; mov tlb, rf1\n{END}")
                .replacen("nop\n nop; mov tlb", "nop; mov tlb", 1),
            format!("nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop; mov tlb, rf1\n nop; mov tlb, rf1\n{END}"),
        ),
        whole("45", format!("{SWITCH}{COLOR}{MARK}{END}"), format!("{SWITCH}{MARK}{COLOR}{END}")),
        whole("64", format!("{MARK}{END}"), format!("{MARK}{COLOR}{END}")),
        whole(
            "64",
            format!("eidx.pushn -\n{MARK}b skip\n nop\n nop\n nop\n {COLOR}skip: nop\n{END}"),
            format!("eidx.pushn -\n{MARK}b skip\n nop\n nop\n nop\n skip: {COLOR}{END}"),
        ),
        PairOf::fragment(
            "51",
            &[V42],
            &format!("{MARK}{COLOR}nop; nop; ldvary.r1; thrsw\n nop\n nop\n"),
            &format!("{MARK}{COLOR}nop; nop; ldvary.r1\n nop\n nop\n{END}"),
        ),
        PairOf::fragment(
            "51",
            &[V71],
            &format!("{MARK}{COLOR}nop; nop; ldvary.rf5; thrsw\n nop\n nop\n"),
            &format!("{MARK}{COLOR}nop; nop; ldvary.rf5\n nop\n nop\n{END}"),
        ),
        vertex("stvpmv 0, rf1\n", "stvpmv 0, rf1\n vpmwt -\n"),
        vertex("vpmwt -\n stvpmv 0, rf1\n", "stvpmv 0, rf1\n vpmwt -\n"),
    ];
    for word in ["setmsf -, rf1", "msf rf5", "eidx.pushz -\n b.allnaq 0\n nop\n nop\n nop"] {
        let head = "nop; mov rf1, 15\n";
        // Lanes without flags stay without.
        let head = if word.starts_with("setmsf") { "msf rf1\n" } else { head };
        let bad = format!("{head}{MARK}{Z}{word}\n{COLOR}{END}");
        let good = format!("{head}{MARK}{word}\n{Z}{COLOR}{END}");
        all.push(whole("44", bad, good));
    }
    all
}

impl PairOf {
    fn words(&self, version: Version, text: &str) -> Vec<u64> {
        let text = &per_version(version, text);
        assemble(version, text).unwrap_or_else(|e| panic!("rule {}: {e} in\n{text}", self.rule))
    }

    fn bad_words(&self, version: Version) -> Vec<u64> {
        let mut words = self.words(version, &self.bad);
        if let Some((at, clear, set)) = self.patch {
            words[at] = words[at] & !clear | set;
        }
        words
    }

    fn run(&self, version: Version, words: Vec<u64>, text: &str) -> Result<(), Fault> {
        match self.stage {
            Stage::Compute => {}
            Stage::Fragment => return Fragments::new(&self.uniforms).run(version, text).0.outcome.result,
            // No rule is about the other stages alone.
            _ => {
                let batch = VertexBatch { lanes: 0xffff, rows: vec![[0; LANES]], ..VertexBatch::default() };
                return vertices(version, text, &self.uniforms, &batch, 8).outcome.result;
            }
        }
        let mut run = Run::whole(version, "nop").uniforms(&self.uniforms).threads(self.threads);
        run.program.pieces[0].1 = words;
        run.options.before_42_14 = self.before_42_14;
        run.go().result
    }

    /// Rules of the hardware class that the validator finds.
    fn validator(&self, version: Version, words: &[u64]) -> Vec<&'static str> {
        let tlbu = |w: &u64| {
            let instr = crate::decode::decode(version, *w);
            instr.is_ok_and(|i| i.alu().is_some_and(|alu| alu.writes_magic(crate::magic::TLBU)))
        };
        let z_writes: Vec<usize> = match self.stage {
            Stage::Fragment => (0..words.len()).filter(|&at| tlbu(&words[at])).collect(),
            _ => Vec::new(),
        };
        let facts = ProgramFacts {
            before_42_14: self.before_42_14,
            stage: self.stage,
            z_writes: &z_writes,
            ..ProgramFacts::compute(self.threads)
        };
        let found = validate(version, words, &facts);
        found.iter().filter(|v| v.class == Class::Hw).map(|v| v.rule).collect()
    }
}

#[test]
fn every_hardware_rule_has_a_pair_or_a_reason() {
    let pairs = pairs();
    let mut table = String::from("rule  check     shown by\n");
    let mut missing = Vec::new();
    for (rule, versions, check, shown) in rules() {
        let of_rule = |version: Version| {
            pairs.iter().filter(|p| p.rule == rule && p.versions.contains(&version)).count()
        };
        let by = match shown {
            Pair => {
                let counts: Vec<String> = versions
                    .iter()
                    .map(|&v| {
                        if of_rule(v) == 0 {
                            missing.push((rule, v));
                        }
                        format!("{} {}", of_rule(v), v.name())
                    })
                    .collect();
                format!("pairs: {}", counts.join(", "))
            }
            NoWord => "no word breaks it: the encoding has no room for it".to_owned(),
            AnyOrder => "legal words in another order: a breach is a wrong result".to_owned(),
        };
        if shown != Pair {
            assert!(pairs.iter().all(|p| p.rule != rule), "{rule}");
        }
        table.push_str(&format!("{rule:>4}  {:<8}  {by}\n", format!("{check:?}")));
    }
    println!("{table}");
    assert!(missing.is_empty(), "rules without a pair: {missing:?}");
    assert!(pairs.iter().all(|p| rules().any(|r| r.0 == p.rule)));
}

#[test]
fn breaches_stop_and_neighbours_run() {
    let mut wrong = Vec::new();
    for pair in pairs() {
        for &version in pair.versions {
            let (rule, name) = (pair.rule, version.name());
            let (bad, good) = (pair.bad_words(version), pair.words(version, &pair.good));
            assert_ne!(bad, good, "rule {rule}");
            match pair.run(version, bad.clone(), &pair.bad) {
                Err(fault) if fault.rule == rule => {}
                other => wrong.push(format!("{name}: rule {rule}: {other:?}\n{}", pair.bad)),
            }
            if let Err(fault) = pair.run(version, good.clone(), &pair.good) {
                wrong.push(format!("{name}: the neighbour for rule {rule}: {fault}\n{}", pair.good));
            }
            let check = rules().find(|r| r.0 == rule).map(|r| r.2);
            // The breach of rule 36 is visible in the text, its effect (rf0 is undefined) in a run only.
            if matches!(check, Some(Word | Program)) || rule == "36" {
                let (of_bad, of_good) = (pair.validator(version, &bad), pair.validator(version, &good));
                if !of_bad.contains(&rule) {
                    wrong.push(format!("{name}: validator, rule {rule}: {of_bad:?}\n{}", pair.bad));
                }
                if !of_good.is_empty() {
                    wrong
                        .push(format!("{name}: validator, neighbour for {rule}: {of_good:?}\n{}", pair.good));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words that only graphics has are refused in compute programs.
#[test]
fn graphics_words_are_unsupported() {
    for version in Version::ALL {
        for text in [
            "nop; nop; ldvary.rf4",
            "nop; mov tlb, rf11",
            "nop; mov tlbu, rf11",
            "nop; nop; ldtlb.rf4",
            "stvpmv rf11, rf10",
            "ldvpmv_in rf4, rf11",
        ] {
            let text = format!("{LANES_AT}{text}\n{MARK}{END}");
            let mut run = Run::whole(version, &text).uniforms(&[0]);
            assert_eq!(run.go().result.map_err(|f| f.rule), Err("unsupported"), "{text}");
        }
    }
}

/// With the reference at hand: the list is that of section 15, rule for rule, with versions and checks.
#[test]
fn the_list_is_that_of_the_reference() {
    let Some(text) = reference() else {
        // Past the capturing of the test runner, so that a skipped test can be seen to be one.
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: the reference is not at hand (set KEMPE_SHARED)");
        return;
    };
    let mut seen = 0;
    for line in text.lines() {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, chip, _, "[HW]", check, ..] = columns[..] else { continue };
        let (rule, versions, known, _) = rules()
            .find(|r| r.0 == number)
            .unwrap_or_else(|| panic!("rule {number} of the reference is not in the list"));
        let expected: &[Version] = match chip {
            "both" => BOTH,
            "7.1" => &[V71],
            _ => &[V42],
        };
        let check = match check {
            "W" => Word,
            "P" => Program,
            "R" => Check::Run,
            _ => Compiler,
        };
        assert_eq!((versions, known), (expected, check), "rule {rule}");
        seen += 1;
    }
    assert_eq!(seen, rules().count());
}

fn reference() -> Option<String> {
    let shared = std::env::var_os("KEMPE_SHARED")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    std::fs::read_to_string(shared.join("isa/v3d/README.md")).ok()
}
