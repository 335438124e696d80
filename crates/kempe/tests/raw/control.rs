//! Flags, conditions, updates, branches, the uniform streams.

use super::*;

/// The lanes of a flag as a row of ones and zeros.
fn ones(lanes: impl Fn(usize) -> bool) -> Row {
    row(|i| lanes(i).into())
}

/// rf5 = 1 in the lanes of a condition, stored.
fn show(cond: &str) -> String {
    format!("nop; mov rf5, 0\n nop; mov.{cond} rf5, 1\n{}", store("rf5"))
}

pub fn cases(target: &'static str) -> Vec<Case> {
    vec![
        comparisons(target),
        float_comparisons(target),
        older_flag(target),
        updates(target, false),
        updates(target, true),
        flags_as_values(target),
        conditions_in_both_parts(target),
        branches(target),
        branches_on_what_exists(target),
        collatz(target),
        nested_loops(target),
        rewound_uniforms(target),
        moved_uniforms(target),
        lane_of_a_pointer(target),
        side_band(target),
        calls(target),
        other_piece(target),
    ]
}

/// A test that pushes its flag, and what it says.
type Test = (&'static str, fn(u32, u32) -> bool);

/// The integer tests of the reference (section 7.3), on corners.
fn comparisons(target: &'static str) -> Case {
    let a: Row =
        [0, 1, 5, u32::MAX, 0x8000_0000, 0x7fff_ffff, 7, 7, 0, 3, 100, 99, u32::MAX, 0, 0x8000_0001, 12];
    let b: Row =
        [0, 2, 4, 1, 0x7fff_ffff, 0x8000_0000, 7, 8, u32::MAX, 3, 99, 100, u32::MAX, 1, 0x8000_0000, 12];
    let mut body = String::new();
    let mut outs = Vec::new();
    let tests: [Test; 6] = [
        ("xor.pushz -, rf20, rf21", |a, b| a == b),
        ("min.pushc -, rf21, rf20", |a, b| (a as i32) < b as i32),
        ("sub.pushc -, rf20, rf21", |a, b| a < b),
        ("sub.pushn -, rf20, rf21", |a, b| a.wrapping_sub(b) >> 31 != 0),
        ("add.pushc -, rf20, rf21", |a, b| a.checked_add(b).is_none()),
        ("and.pushz -, rf20, rf21", |a, b| a & b == 0),
    ];
    for (text, holds) in tests {
        body += &format!("{text}\n{}{text}\n{}", show("ifa"), show("ifna"));
        outs.push(ones(|i| holds(a[i], b[i])));
        outs.push(ones(|i| !holds(a[i], b[i])));
    }
    // A push by the MUL part.
    body += &format!("nop; mov.pushn -, rf20\n{}nop; sub.pushz -, rf20, rf21\n{}", show("ifa"), show("ifa"));
    outs.push(ones(|i| a[i] >> 31 != 0));
    outs.push(ones(|i| a[i] == b[i]));
    // min.pushc b, a: C is "the first is larger", so a < b.
    Case::rows("comparisons", target, &body, &[a, b], &outs)
}

fn float_comparisons(target: &'static str) -> Case {
    let values = [0.0, -0.0, 1.0, -1.0, 2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let a = row(|i| f32::to_bits(values[i % 8]));
    let b = row(|i| f32::to_bits(values[(i * 3 + i / 8) % 8]));
    let f = |bits: u32| f32::from_bits(bits);
    let mut body = String::new();
    for (text, cond) in [
        ("fcmp.pushz -, rf20, rf21", "ifa"),
        ("fcmp.pushz -, rf20, rf21", "ifna"),
        ("fcmp.pushn -, rf20, rf21", "ifa"),
        ("fcmp.pushc -, rf21, rf20", "ifa"),
    ] {
        body += &format!("{text}\n{}", show(cond));
    }
    let outs = [
        ones(|i| f(a[i]) == f(b[i])),
        ones(|i| f(a[i]) != f(b[i])),
        ones(|i| f(a[i]) < f(b[i])),
        ones(|i| f(b[i]) <= f(a[i])),
    ];
    Case::rows("float-comparisons", target, &body, &[a, b], &outs)
}

/// A push moves A to B.
fn older_flag(target: &'static str) -> Case {
    let a = row(|i| (i % 2) as u32);
    let b = row(|i| (i % 3) as u32);
    let c = row(|i| (i % 5) as u32);
    let push = "nop; mov.pushz -, rf20\n nop; mov.pushz -, rf21\n";
    let body = format!(
        "{push}{}{push}{}{push}{}{push}{}{push} nop; mov.pushz -, rf22\n{}{push} nop; mov.pushz -, rf22\n{}",
        show("ifa"),
        show("ifb"),
        show("ifna"),
        show("ifnb"),
        show("ifa"),
        show("ifb"),
    );
    let outs = [
        ones(|i| b[i] == 0),
        ones(|i| a[i] == 0),
        ones(|i| b[i] != 0),
        ones(|i| a[i] != 0),
        ones(|i| c[i] == 0),
        ones(|i| b[i] == 0),
    ];
    Case::rows("older-flag", target, &body, &[a, b, c], &outs)
}

/// The twelve updates, by ADD or by MUL; B stays.
fn updates(target: &'static str, mul: bool) -> Case {
    let a = row(|i| (i as u32) & 1);
    let x = row(|i| [5, 0, 9, 3, 7, 7, 2, 1][i / 2]);
    let y = row(|i| [5, 1, 3, 9, 7, 8, 1, 2][i / 2]);
    let mut body = String::new();
    let mut outs = Vec::new();
    for (k, flag) in ["z", "n", "c"].into_iter().enumerate() {
        // The C rows need an operation that has one; MUL subtracts too.
        let holds = |i: usize| match k {
            0 => x[i] == y[i],
            1 => x[i].wrapping_sub(y[i]) >> 31 != 0,
            _ => x[i] < y[i],
        };
        for form in 0..4 {
            let name = ["and", "andn", "norn", "nor"][form];
            let name = format!("{name}{flag}");
            let sub = if mul { "nop; sub" } else { "sub" };
            body += &format!(
                "nop; mov.pushz -, rf21\n nop; mov.pushz -, rf20\n {sub}.{name} -, rf21, rf22\n{}",
                show("ifa")
            );
            outs.push(ones(|i| {
                let (a, f) = (a[i] == 0, holds(i));
                match form {
                    0 => a && f,
                    1 => a && !f,
                    2 => !a && f,
                    _ => !a && !f,
                }
            }));
            body += &format!(
                "nop; mov.pushz -, rf21\n nop; mov.pushz -, rf20\n {sub}.{name} -, rf21, rf22\n{}",
                show("ifb")
            );
            outs.push(ones(|i| x[i] == 0));
        }
    }
    Case::rows(if mul { "updates-mul" } else { "updates-add" }, target, &body, &[a, x, y], &outs)
}

fn flags_as_values(target: &'static str) -> Case {
    let a = row(|i| (i as u32 * 7) % 4);
    let b = row(|i| (i as u32 * 5) % 3);
    let push = "nop; mov.pushz -, rf21\n nop; mov.pushz -, rf20\n";
    let mut body = String::new();
    for op in [
        "vfla rf5",
        "vflna rf5",
        "vflb rf5",
        "vflnb rf5",
        "flapush rf5, rf20",
        "flbpush rf5, rf20",
        "flpop rf5, rf21",
    ] {
        body += &format!("{push}{op}\n{}", store("rf5"));
    }
    let wide = |lanes: &dyn Fn(usize) -> bool| row(|i| if lanes(i) { 0x1_0001 } else { 0 });
    let outs = [
        wide(&|i| a[i] == 0),
        wide(&|i| a[i] != 0),
        wide(&|i| b[i] == 0),
        wide(&|i| b[i] != 0),
        row(|i| a[i] << 2 | if a[i] == 0 { 3 } else { 0 }),
        row(|i| a[i] << 2 | if b[i] == 0 { 3 } else { 0 }),
        row(|i| b[i] >> 2),
    ];
    Case::rows("flags-as-values", target, &body, &[a, b], &outs)
}

/// Each part has a condition of its own, or one pushes while the other is conditional: all read the old flags.
fn conditions_in_both_parts(target: &'static str) -> Case {
    let a = row(|i| (i % 4 == 0).into());
    let x = row(|i| 1000 + i as u32);
    let body = format!(
        "nop; mov.pushz -, rf20\n nop; mov rf5, 0\n nop; mov rf6, 0\n add.ifa rf5, rf21, 1; mov.ifna rf6, rf21\n {}{}\
         nop; mov.pushz -, rf20\n nop; mov rf5, 0\n add.ifa rf5, rf21, 2; mov.pushn -, rf21\n {}{}\
         nop; mov.pushz -, rf20\n nop; mov rf5, 0\n and.pushz -, rf20, rf20; mov.ifna rf5, rf21\n {}{}",
        store("rf5"),
        store("rf6"),
        store("rf5"),
        show("ifa"),
        store("rf5"),
        show("ifa"),
    );
    let outs = [
        row(|i| if a[i] == 0 { x[i] + 1 } else { 0 }),
        row(|i| if a[i] != 0 { x[i] } else { 0 }),
        row(|i| if a[i] == 0 { x[i] + 2 } else { 0 }),
        [0; 16],
        row(|i| if a[i] != 0 { x[i] } else { 0 }),
        ones(|i| a[i] == 0),
    ];
    Case::rows("conditions-in-both-parts", target, &body, &[a, x], &outs)
}

/// All seven conditions on five patterns of the flag: zero where taken.
fn branches(target: &'static str) -> Case {
    let patterns: [fn(usize) -> bool; 5] = [|_| true, |_| false, |i| i == 0, |i| i != 0, |i| i % 3 == 1];
    let mut body = String::new();
    let mut outs = Vec::new();
    for (p, set) in patterns.iter().enumerate() {
        for (c, cond) in ["", ".a0", ".na0", ".alla", ".anyna", ".anya", ".allna"].into_iter().enumerate() {
            let label = format!("on{p}x{c}");
            body += &format!(
                "nop; mov.pushn -, rf{}\n b{cond} {label}\n nop; mov rf5, 0\n nop\n nop\n nop; mov rf5, 1\n {label}: nop\n{}",
                20 + p,
                store("rf5")
            );
            let (all, any) = ((0..16).all(set), (0..16).any(set));
            let taken = [true, set(0), !set(0), all, !all, any, !any][c];
            outs.push([u32::from(!taken); 16]);
        }
    }
    let ins: Vec<Row> = patterns.iter().map(|set| row(|i| if set(i) { u32::MAX } else { 0 })).collect();
    Case::rows("branches", target, &body, &ins, &outs)
}

/// With ten of sixteen items: lanes that do not exist, or whole quads of them, can be left out.
fn branches_on_what_exists(target: &'static str) -> Case {
    // A is set below lane 10, or below 12.
    let mut body = String::new();
    let mut outs = Vec::new();
    for (limit, cond, taken) in [
        (10, "alla", false),
        (10, "allap", true),
        (10, "allaq", false),
        (12, "allaq", true),
        (10, "anynap", false),
        (10, "anynaq", true),
        (10, "anyna", true),
    ] {
        let label = format!("{cond}x{limit}");
        body += &format!(
            "eidx rf6\n sub.pushn -, rf6, {limit}\n b.{cond} {label}\n nop; mov rf5, 0\n nop\n nop\n nop; mov rf5, 1\n {label}: nop\n{}",
            store("rf5")
        );
        outs.push(row(|i| if i < 10 { u32::from(!taken) } else { 0 }));
    }
    body += &format!("msf rf5\n{}", store("rf5"));
    // Lanes without sample flags do not store.
    outs.push(row(|i| if i < 10 { 15 } else { 0 }));
    let mut case = Case::rows("branches-on-what-exists", target, &body, &[], &outs);
    case.size = [10, 1, 1];
    case
}

/// Steps of the 3n + 1 sequence: lanes leave the loop one by one.
fn collatz(target: &'static str) -> Case {
    let body = format!(
        "nop; mov rf5, 0\n \
         top: sub.pushz -, rf20, 1\n b.alla done\n and rf6, rf20, 1\n shl rf7, rf20, 1\n shr rf8, rf20, 1\n \
         add.ifna rf5, rf5, 1\n add rf7, rf7, rf20\n add rf7, rf7, 1\n xor.pushz -, rf6, 1\n nop; mov.ifa rf8, rf7\n \
         b top\n nop; mov.ifnb rf20, rf8\n nop\n nop\n done: nop\n{}",
        store("rf5")
    );
    let start = row(|i| [1, 2, 3, 6, 7, 9, 18, 19, 25, 27, 54, 73, 97, 4, 5, 8][i]);
    let steps = start.map(|n| {
        let (mut n, mut steps) = (n, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    });
    Case::rows("collatz", target, &body, &[start], &[steps])
}

/// A loop in a loop with uniform counts: products by repeated addition.
fn nested_loops(target: &'static str) -> Case {
    let body = format!(
        "nop; mov rf5, 0\n nop; mov rf6, 5\n \
         outer: nop; mov rf7, 7\n \
         inner: add rf5, rf5, rf20\n sub.pushz rf7, rf7, 1\n b.na0 inner\n nop\n nop\n nop\n \
         sub.pushz rf6, rf6, 1\n b.anyna outer\n add rf5, rf5, 1\n nop\n nop\n{}",
        store("rf5")
    );
    let a = row(|i| i as u32 * i as u32);
    Case::rows("nested-loops", target, &body, &[a], &[a.map(|x| 35 * x + 5)])
}

/// The branch at the end of a loop takes the pointer back; the offset is consumed when it falls through, too.
fn rewound_uniforms(target: &'static str) -> Case {
    let body = format!(
        "nop; mov rf5, 0\n nop; mov rf6, 3\n \
         top: nop; nop; ldunifrf.rf7\n add rf5, rf5, rf7; nop; ldunifrf.rf8\n sub.pushz rf6, rf6, 1\n \
         bu.anyna top, r:unif\n add rf5, rf5, rf8\n nop\n nop\n nop; nop; ldunifrf.rf7\n add rf5, rf5, rf7\n{}",
        store("rf5")
    );
    Case::rows("rewound-uniforms", target, &body, &[], &[[3 * (10 + 200) + 7; 16]]).uniforms(&[
        Word(10),
        Word(200),
        Word(-12i32 as u32),
        Word(7),
    ])
}

/// The pointer moved by an address in the stream and by a register; `bdu` without `ub` is nothing.
fn moved_uniforms(target: &'static str) -> Case {
    let body = format!(
        "bu 0, a:unif\n nop\n nop\n nop\n nop; nop; ldunifrf.rf5\n{}\
         nop; nop; ldunifrf.rf6\n bu 0, rf6\n nop\n nop\n nop\n nop; nop; ldunifrf.rf5\n{}",
        store("rf5"),
        store("rf5"),
    );
    Case::rows("moved-uniforms", target, &body, &[], &[[55; 16], [77; 16]]).uniforms(&[
        Stream(4),
        Word(1),
        Word(55),
        Stream(7),
        Word(2),
        Word(77),
    ])
}

/// A register uniform pointer that differs between lanes, with the lane that counts named.
fn lane_of_a_pointer(target: &'static str) -> Case {
    let body = format!(
        "nop; nop; ldunifrf.rf6\n add rf6, rf6, rf12\n bu 0, rf6\n nop\n nop\n nop\n nop; nop; ldunifrf.rf5\n{}",
        store("rf5")
    );
    let mut case = Case::rows("lane-of-a-pointer", target, &body, &[], &[[31; 16]]).uniforms(&[
        Stream(3),
        Word(30),
        Word(31),
        Word(32),
    ]);
    case.uniform_branch_lane = Some(1);
    case
}

/// Side-band words beside the stream, at a rewritten address, and the memory as it was at dispatch.
fn side_band(target: &'static str) -> Case {
    let body = format!(
        "nop; mov tmud, rf12\n nop; mov tmua, rf10\n tmuwt -\n \
         nop; mov unifa, rf10\n nop\n nop\n nop\n nop; nop; ldunifarf.rf5\n nop; nop; ldunifrf.rf6\n nop; nop; ldunifarf.rf7\n {}{}{}\
         add rf8, rf10, 12; nop\n nop; mov unifa, rf8\n nop\n nop\n nop\n nop; nop; ldunifarf.rf5\n \
         sub rf9, rf10, rf12\n nop; mov unifa, rf9; ldunifarf.rf6\n nop\n nop\n nop\n nop; nop; ldunifarf.rf7\n {}{}{}",
        store("rf5"),
        store("rf6"),
        store("rf7"),
        store("rf5"),
        store("rf6"),
        store("rf7"),
    );
    let words = row(|i| 500 + i as u32);
    let outs = [[500; 16], [1234; 16], [501; 16], [503; 16], [504; 16], [500; 16]];
    let mut case = Case::rows("side-band", target, &body, &[], &outs).uniforms(&[Word(1234)]);
    case.arrays[0].1 = bytes(words);
    // The array itself has changed by then.
    case.expect("in", bytes(row(|i| 4 * i as u32)))
}

/// A subroutine that is called twice, its return address, a call from a register.
fn calls(target: &'static str) -> Case {
    let text = format!(
        "{BEGIN}{} bl double\n nop\n nop\n nop\n bl double\n nop\n nop\n nop\n{} lr rf6\n sub rf6, rf6, rf6\n{}{FINISH}\
         double: add rf20, rf20, rf20\n b lri\n nop\n nop\n nop\n",
        load("rf20"),
        store("rf20"),
        store("rf6"),
    );
    let a = row(|i| 3 * i as u32 + 1);
    let mut case = Case::new("calls", target, text);
    case.uniforms = vec![Array("in", 0), Array("out", 0)];
    case.array("in", bytes(a))
        .array("out", vec![0; 128])
        .expect("out", bytes([a.map(|x| 4 * x), [0; 16]].concat()))
}

/// An absolute branch to another piece of program, and back by a register.
fn other_piece(target: &'static str) -> Case {
    let there = format!("b zero_addr+{OTHER_CODE:#010x}\n nop\n nop\n nop\n");
    let head = format!("{BEGIN}{}nop; nop; ldunifrf.rf6\n", load("rf20"));
    let words = head.lines().count() + 4;
    let text = format!("{head}{there}{}{FINISH}", store("rf5"));
    let mut case = Case::new("other-piece", target, text);
    case.other_text = "b rf6\n add rf5, rf20, rf20\n nop\n add rf5, rf5, 1\n".to_owned();
    let a = row(|i| 9 * i as u32);
    case.uniforms = vec![Array("in", 0), Array("out", 0), Word(CODE + 8 * words as u32)];
    case.array("in", bytes(a)).array("out", vec![0; 64]).expect("out", bytes(a.map(|x| 2 * x + 1)))
}
