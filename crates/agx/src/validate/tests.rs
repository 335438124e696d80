//! For every rule a program that breaks it, and its neighbour that does not.

use super::*;
use crate::asm::assemble;
use crate::encode::encode_all;
use crate::instr::{Number, Operand, Role, Size};
use crate::ops::Op;

const END: &str = "\nstop\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\n";

const FACTS: ProgramFacts =
    ProgramFacts { stage: Stage::Compute, halves: 104, uniforms: 8, preloaded: (4, 12) };

fn rules_with(facts: &ProgramFacts, text: &str) -> Vec<&'static str> {
    let code = assemble(&format!("{text}{END}")).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    validate(&code, facts).iter().map(|v| v.rule).collect()
}

fn rules(text: &str) -> Vec<&'static str> {
    rules_with(&FACTS, text)
}

/// Rules that instructions break that no text says.
fn rules_of(instrs: &[Instr]) -> Vec<&'static str> {
    let mut code = encode_all(instrs).unwrap();
    code.extend(assemble(END).unwrap());
    validate(&code, &FACTS).iter().map(|v| v.rule).collect()
}

/// The first text breaks the rule and no other, the second none.
#[track_caller]
fn breaks(rule: &str, broken: &str, right: &str) {
    assert_eq!(rules(broken), [rule], "{broken}");
    assert_eq!(rules(right), [""; 0], "{right}");
}

#[test]
fn rule_1a() {
    let code = [assemble("stop").unwrap(), vec![0xff, 0xff]].concat();
    assert!(validate(&code, &FACTS).iter().any(|v| v.rule == "1a" && v.at == 2));
    assert!(validate(&[], &FACTS).iter().any(|v| v.rule == "10b"));
}

#[test]
fn rule_1b() {
    // An odd number of a 32-bit register: bit 9 is the lowest one of the destination.
    let mut code = assemble(&format!("mov r4, r3{END}")).unwrap();
    code[1] |= 1 << 1;
    let found = validate(&code, &FACTS);
    assert_eq!(found.iter().map(|v| v.rule).collect::<Vec<_>>(), ["1b"], "{found:?}");
    breaks("1b", "fadd16 r4l, r2l, u3", "fadd16 r4l, r2l, u3h");
}

#[test]
fn rule_1c() {
    breaks(
        "1c",
        "atomic add, 0, None, r2_r3, r4, unsigned, r5, 0, 0, 1, 4, 2",
        "atomic add, 0, None, r2_r3, r4, unsigned, r5, 1, 0, 1, 4, 2",
    );
    breaks(
        "1c",
        "device_load.control 0, i32, x, r8, r2_r3, r4, unsigned, 1, 0, 3, 0",
        "device_load.control 0, i32, x, r8, r2_r3, r4, unsigned, 1, 0, 7, 0",
    );
}

#[test]
fn rule_1d() {
    breaks("1d", "icmpsel 3, r4, r2, r3, 0, 1", "icmpsel ult, r4, r2, r3, 0, 1");
    breaks("1d", "fcmpsel 4, r4, r2, r3, 0, 1", "fcmpsel ltn, r4, r2, r3, 0, 1");
    breaks("1d", "iadd r4, r2, r3, lsl 5", "iadd r4, r2, r3, lsl 4");
    breaks("1d", "bitop_mov_a 0011, r4, r2, r3", "bitop 1011, r4, r2, r3");
    breaks("1d", "convert 2, r4, r2, rte", "convert u32_to_f, r4, r2, rte");
    breaks(
        "1d",
        "atomic 11, 0, None, r2_r3, r4, unsigned, r5, 1, 0, 1, 4, 2",
        "atomic xor, 0, None, r2_r3, r4, unsigned, r5, 1, 0, 1, 4, 2",
    );
}

#[test]
fn rule_1e() {
    breaks("1e", "unk0C00", "threadgroup_barrier");
    breaks("1e", "funop r4, r2, 0b111111", "floor r4, r2");
}

#[test]
fn rule_2a() {
    breaks("2a", "mov r52, r2", "mov r51, r2");
    // All four registers of a lookup are written.
    let texture = |r| {
        format!(
            "texture_sample 0, 0b1100, 0b0, none, x, 0b00, r{r}, None, ts0, ss0, tex_2d, r2_r3, auto_lod, 0"
        )
    };
    breaks("2a", &texture(49), &texture(48));
}

#[test]
fn rule_2b() {
    breaks("2b", "iadd r5_r6, r2_r3, 1", "iadd r6_r7, r2_r3, 1");
}

#[test]
fn rule_2c() {
    breaks("2c", "mov r6, r2.discard\n mov r7, r2", "mov r6, r2.discard\n mov r2, 1\n mov r7, r2");
    // On one path only.
    let text = |hint: &str| format!("mov_imm r0l, 0\n jmp_exec_none a\n mov r6, r2{hint}\n a:\n mov r7, r2");
    breaks("2c", &text(".discard"), &text(""));
}

#[test]
fn rule_2d() {
    breaks("2d", "mov r7, r20", "mov r20, 1\n mov r7, r20");
    let text =
        |before: &str| format!("{before} mov_imm r0l, 0\n jmp_exec_none a\n mov r20, 1\n a:\n mov r7, r20");
    breaks("2d", &text(""), &text("mov r20, 2\n"));
}

#[test]
fn rule_3a() {
    let load = "device_load 0, i32, x, r8, r2_r3, r4, unsigned\n";
    breaks("3a", &format!("{load} mov r9, r8"), &format!("{load} wait 0\n mov r9, r8"));
    breaks("3a", &format!("{load} wait 1\n mov r9, r8"), &format!("{load} wait 0\n wait 1\n mov r9, r8"));
    breaks("3a", &format!("{load} mov_imm r8h, 0"), &format!("{load} mov_imm r9l, 0"));
    // Around a loop, where the requests add up as well.
    let text = |wait: &str| format!("mov r8, 0\n a:\n mov r9, r8\n {load} {wait} jmp_exec_any a");
    assert_eq!(rules(&text("\n")), ["3a", "3a", "3b"]);
    assert_eq!(rules(&text("wait 0\n")), [""; 0]);
}

#[test]
fn rule_3b() {
    let load = |n: usize| format!("device_load 1, i32, x, r{}, r2_r3, r4, unsigned\n", 10 + n);
    let many: String = (0..9).map(load).collect();
    let eight: String = (0..8).map(load).collect();
    breaks("3b", &many, &format!("{eight} wait 1\n {}", load(8)));
}

#[test]
fn rule_3c() {
    let store = "device_store 0, i32, x, r5, r2_r3, r4, unsigned, 0\n";
    breaks("3c", &format!("{store} threadgroup_barrier"), &format!("{store} wait 0\n threadgroup_barrier"));
}

#[test]
fn rule_4a() {
    let branch = "if_icmp r0l, ueq, r2, r3, 1\n pop_exec r0l, 1";
    breaks("4a", branch, &format!("mov_imm r0l, 0\n {branch}"));
    let some = format!("jmp_exec_none a\n mov_imm r0l, 0\n a:\n {branch}");
    breaks("4a", &some, &format!("mov_imm r0l, 0\n {some}"));
}

#[test]
fn rule_4b() {
    let text = |write: &str| {
        format!("mov_imm r0l, 0\n push_exec r0l, 1\n {write}\n update_exec r0l\n pop_exec r0l, 1")
    };
    breaks("4b", &text("iadd r0l, r2l, 1"), &text("icmpsel ueq, r0l, r2l, 1, 2, 0"));
    breaks("4b", &text("mov r0, r2"), &text("mov r1, r2"));
    // Without the execution mask it is a register like any other.
    assert_eq!(rules("mov r0, r2"), [""; 0]);
}

#[test]
fn rule_4c() {
    let begin = "mov_imm r0l, 0\n if_icmp r0l, ueq, r2, r3, 1\n";
    breaks("4c", begin, &format!("{begin} pop_exec r0l, 1"));
    breaks(
        "4c",
        &format!("{begin} pop_exec r0l, 2\n push_exec r0l, 1"),
        &format!("{begin} pop_exec r0l, 1\n push_exec r0l, 1\n pop_exec r0l, 1"),
    );
    let join = |last: &str| format!("{begin} jmp_exec_none a\n {last}\n a:\n pop_exec r0l, 1");
    assert!(rules(&join("push_exec r0l, 1")).contains(&"4c"));
    assert_eq!(rules(&join("update_exec r0l")), [""; 0]);
}

#[test]
fn rule_4d() {
    breaks("4d", "jmp_exec_any pc+4", "jmp_exec_any pc+6");
    breaks("4d", "jmp_exec_any pc-2", "a:\n jmp_exec_any a");
}

#[test]
fn rule_5a() {
    breaks("5a", "simd_iadd r4, u2", "simd_iadd r4, r2");
    breaks("5a", "icmp_ballot r4, ult, r2, u1", "icmp_ballot r4, ult, r2, 7");
    breaks(
        "5a",
        "threadgroup_atomic add, None, u1l, 0, r2, 0, 2, 128, 0",
        "threadgroup_atomic add, None, r2l, 0, r2, 0, 2, 128, 0",
    );
    assert_eq!(rules("device_load 0, i32, x, r8, u0_u1, r4, unsigned"), [""; 0]);
    assert_eq!(rules("threadgroup_load i32, x, r8, u1l, 0"), [""; 0]);
}

#[test]
fn rule_5b() {
    breaks("5b", "mov r4, u4", "mov r4, u3");
    breaks("5b", "mov r4, u4l", "mov r4, u3h");
}

#[test]
fn rule_5c() {
    let text = "uniform_store 2, i16, x, 0, r4l, 20";
    assert_eq!(rules(text), ["5c"]);
    let facts = ProgramFacts { stage: Stage::Preamble, ..FACTS };
    assert_eq!(rules_with(&facts, text), [""; 0]);
}

#[test]
fn rule_6() {
    let load = |tail: &str| format!("device_load 0, i32, x, r8, r2_r3, {tail}");
    breaks("6a", &load("r4, unsigned, lsl 3"), &load("r4, unsigned, lsl 2"));
    breaks("6d", &load("-1, unsigned"), &load("-1, signed"));
    breaks(
        "6b",
        "device_load 0, rgb10a2, x, r8, r2_r3, r4, unsigned",
        "device_load 0, rgb10a2, xyzw, r8_r9_r10_r11, r2_r3, r4, unsigned",
    );
    breaks(
        "6c",
        "device_load 0, i32, x, r8l, r2_r3, r4, unsigned",
        "device_load 0, i16, x, r8l, r2_r3, r4, unsigned",
    );
    let none = Instr::new(Op::DeviceLoad)
        .with(Role::Data, Operand::vector(16, Size::B32, 0))
        .with(Role::Base, Operand::reg(4, Size::B64))
        .with(Role::Index, Operand::imm(0))
        .set(Number::Format, 2);
    assert_eq!(rules_of(&[none]), ["6b"]);
    let one = none.with(Role::Data, Operand::vector(16, Size::B32, 1)).set(Number::Mask, 1);
    assert_eq!(rules_of(&[one]), [""; 0]);
}

#[test]
fn rules_7_and_8() {
    breaks("7", "wait_pix 1, 0", "dfdx r4, r2");
    breaks("8", "no_var 1, r2, 0", "threadgroup_barrier");
    let stage = |stage| ProgramFacts { stage, ..FACTS };
    assert_eq!(rules_with(&stage(Stage::Fragment), "wait_pix 1, 0"), [""; 0]);
    assert_eq!(rules_with(&stage(Stage::Vertex), "st_var_final 1, r2, 0"), [""; 0]);
    assert_eq!(rules_with(&stage(Stage::Vertex), "dfdx r4, r2"), ["7"]);
}

#[test]
fn rule_9() {
    let frame = "stack_adjust 0, 1, 2, 0, 0, 12\n";
    let load = |offset: i32| format!("stack_load r8, i32, 1, 0, x, 4, {offset}, 0");
    breaks("9a", &load(0), &format!("{frame}{}", load(0)));
    breaks("9a", &format!("mov r4, 0\n {frame}"), &format!("{frame} mov r4, 0"));
    breaks("9b", &format!("{frame}{}", load(8)), &format!("{frame}{}", load(4)));
    breaks("9b", &format!("{frame}{}", load(2)), &format!("{frame}{}", load(4)));
    breaks("9b", &format!("{frame}{}", load(-4)), &format!("{frame}{}", load(0)));
    breaks(
        "9a",
        &format!("{frame} stack_adjust 0, 1, 2, 0, 0, -8"),
        &format!("{frame} stack_adjust 0, 1, 2, 0, 0, -12"),
    );
    breaks("9a", "stack_adjust 0, 1, 2, 0, 0, 0", frame);
}

#[test]
fn rule_10() {
    let found = |text: &str| -> Vec<&'static str> {
        validate(&assemble(text).unwrap(), &FACTS).iter().map(|v| v.rule).collect()
    };
    assert_eq!(found("mov r4, 0"), ["10a", "10b"]);
    assert_eq!(found("stop\n trap"), ["10b"]);
    assert_eq!(found(&format!("mov r4, 0{}", END.replace("stop\n", ""))), ["10a", "10b"]);
    assert_eq!(found(&format!("jmp_exec_any pc+8{END}")), ["10a"]);
    assert_eq!(found(&format!("jmp_exec_any pc+6{END}")), [""; 0]);
}

#[test]
fn violations_are_told_in_order() {
    let code = assemble(&format!("mov r60, r20\n mov r4, u9{END}")).unwrap();
    let found: Vec<String> = validate(&code, &FACTS).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "error: byte 0: rule 2a: half 121 where 104 are declared",
            "warning: byte 0: rule 2d: r20l is not written on every path",
            "error: byte 6: rule 5b: uniform half 19 where 8 are filled",
        ]
    );
}
