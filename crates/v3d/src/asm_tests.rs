use super::*;
use crate::encode::encode;

#[test]
fn labels_count_from_behind_the_delay_slots() {
    let program = "start: nop ; nop # comment\nback:\n  b.anya start\n  nop\n nop\n nop\n bu  end, r:unif\n nop\n nop\n nop\nend:\n nop";
    let words = assemble(Version::V71, program).unwrap();
    assert_eq!(words.len(), 10);
    let target = |i: usize| match decode(Version::V71, words[i]).unwrap() {
        Instr::Branch(branch) => branch.target,
        Instr::Alu(_) => panic!("{i} is no branch"),
    };
    // From index 1: the instruction behind the slots is 5, the target 0.
    assert_eq!(target(1), BranchTarget::Relative(-40));
    // From index 5: behind the slots is 9, the target.
    assert_eq!(target(5), BranchTarget::Relative(0));
}

#[test]
fn errors_point_at_the_place() {
    let fails = |version, text: &str| assemble(version, text).unwrap_err();
    let at = |e: &AsmError| (e.line, e.column);
    let e = fails(Version::V71, "nop\n  add rf1, rf2, 77");
    assert_eq!(at(&e), (2, 17), "{e}");
    let e = fails(Version::V71, "add rf1, r2, rf3");
    assert_eq!(at(&e), (1, 10), "{e}");
    let e = fails(Version::V42, "nop; rot rf1, rf2, rf3");
    assert_eq!(at(&e), (1, 6), "{e}");
    let e = fails(Version::V42, "nop; nop; ldtmu");
    assert_eq!(at(&e), (1, 11), "{e}");
    let e = fails(Version::V42, "add.pushq rf1, rf2, rf3");
    assert_eq!(at(&e), (1, 5), "{e}");
    let e = fails(Version::V42, "add rf1, rf2, rf3; add rf4, rf5, rf6");
    assert!(e.message.contains("rule 4"), "{e}");
    let e = fails(Version::V71, "b nowhere");
    assert_eq!(at(&e), (1, 3), "{e}");
    let e = fails(Version::V71, "a: nop\nb.\na: nop");
    assert_eq!(e.line, 3, "{e}");
    for text in [
        "add rf1",
        "add rf1, rf2, rf3, rf4",
        "nop rf1",
        "stvpmv rf1",
        "b",
        "bu 8",
        "b 8, r:unif",
        "b 4",
        "b.never 8",
        "nop; nop; nop",
        "nop; nop; rotate",
        "nop; nop; thrsw; thrsw",
        "nop; nop; thrsw.rf1",
        ";;;",
        "add rf64, rf1, rf2",
        "add rf01, rf1, rf2",
        "add rf1.x, rf1, rf2",
        "b 99999999999",
        "nop; nop; ldtmu.rf1; ldvary.rf2",
        ": nop",
        "add.ifa.ifa rf1, rf2, rf3",
        "nop; fmov rf1, rf2.unpack7.l",
        "b zero_addr+1",
        "bu lri, unif3",
        "rf1",
        ".",
    ] {
        assert!(assemble(Version::V71, text).is_err(), "{text}");
    }
}

#[test]
fn the_two_texts_differ_where_the_reference_is_wrong() {
    let v71 = Version::V71;
    let texts = |version, text: &str| {
        let word = assemble(version, text).unwrap()[0];
        (disassemble(version, word, false), disassemble(version, word, true))
    };
    let (true_text, quirk) = texts(v71, "fround rf1, rf2.h");
    assert!(true_text.contains("rf2.h") && !quirk.contains("rf2.h"));
    let (true_text, quirk) = texts(v71, "nop; fmov rf1, rf2.sat");
    assert!(true_text.contains("rf2.sat") && quirk.contains("rf2.abs"));
    let (true_text, quirk) = texts(Version::V42, "iid rf1");
    assert!(true_text.starts_with("iid") && quirk.starts_with("vdwwt"));
    let (true_text, quirk) = texts(v71, "bl 8");
    assert!(true_text == "bl  8" && quirk == "b  8");
    let (true_text, quirk) = texts(Version::V42, "nop; mov r1, r0; rotate.2");
    assert!(true_text.ends_with("; rotate.2") && quirk.ends_with("mov r1, r0"));
    let (true_text, quirk) = texts(v71, "nop; v8dot rf1, rf2, rf3");
    assert!(true_text.contains("v8dot") && quirk == "invalid");
    assert_eq!(texts(v71, "mov magic0, rf1").1.trim(), "mov r0, rf1                   ; nop");
}

#[test]
fn columns_are_those_of_the_reference() {
    let text = text(Version::V71, &parse(Version::V71, "add rf1,rf2,rf3;mov rf4,rf5;thrsw").unwrap(), false);
    assert_eq!(text, "add rf1, rf2, rf3             ; mov rf4, rf5                ; thrsw");
}

#[test]
fn random_text_never_panics() {
    let mut random = crate::decode::tests::Random(77);
    let pieces = [
        "add",
        "fadd",
        "nop",
        "b",
        "bu",
        "mov",
        ".",
        ",",
        ";",
        " ",
        "rf",
        "r",
        "1",
        "63",
        "64",
        "-",
        "0x",
        "é",
        ":",
        "#",
        "\n",
        "ifa",
        "pushz",
        "thrsw",
        "ldtmu",
        "rotate",
        "lri",
        "unif",
        "zero_addr+",
        "99999999999999999999",
        "magic",
        "a:unif",
        "\t",
        "\u{0}",
        "l",
        "abs",
        "p",
        "start",
    ];
    for _ in 0..50_000 {
        let text: String = (0..random.below(14)).map(|_| pieces[random.below(pieces.len())]).collect();
        for version in Version::ALL {
            if let Err(e) = assemble(version, &text) {
                assert!(e.line >= 1 && e.column >= 1);
            }
        }
    }
}

#[test]
fn the_strict_encoder_refuses_what_the_assembler_accepts() {
    let instr = parse(Version::V71, "add magic0, rf1, rf2").unwrap();
    assert!(encode(Version::V71, &instr).is_err());
    assert!(encode_any(Version::V71, &instr).is_ok());
}
