//! Whole kernels: reductions, scans, sorting, transposition, histogram, matrix products.

use super::*;

pub fn cases(target: &'static str) -> Vec<Case> {
    let mut all = vec![
        sum_by_rotation(target),
        sum_in_quads(target),
        broadcasts(target),
        first_lane(target),
        maximum_by_flags(target),
        scan(target),
        transposition(target),
        histogram(target),
        matrix_product(target),
        matrix_by_batches(target),
        scaled_copy(target),
        greatest_common_divisor(target),
    ];
    if target == "v3d71" {
        all.extend([cross_lane(target), bitonic(target)]);
    }
    all
}

/// Turns `from` by n lanes (lane k gets lane k + n) into rf6, on either target; 4.2 turns accumulators the other way.
fn turned(target: &str, from: &str, n: i32) -> String {
    if target == "v3d42" {
        format!(
            "or r0, {from}, {from}\n nop\n nop; mov rf6, r0; rotate.{}\n",
            if n > 0 { 16 - n } else { -n }
        )
    } else {
        format!("rot rf6, {from}, {n}\n")
    }
}

fn sum_by_rotation(target: &'static str) -> Case {
    let mut body = "nop; mov rf5, rf20\n".to_owned();
    for n in [8, 4, 2, 1] {
        body += &format!("{}add rf5, rf5, rf6\n", turned(target, "rf5", n));
    }
    // And the lanes themselves, turned by 3.
    body += &format!("{}{}{}", store("rf5"), turned(target, "rf20", 3), store("rf6"));
    let a = Random(51).row();
    let sum = a.iter().fold(0u32, |s, &x| s.wrapping_add(x));
    Case::rows("sum-by-rotation", target, &body, &[a], &[[sum; 16], row(|i| a[(i + 3) % 16])])
}

fn sum_in_quads(target: &'static str) -> Case {
    // 4.2 turns rows inside quads: lane k gets lane k - n.
    let turn = |n: u32| {
        if target == "v3d42" {
            format!("nop; mov rf6, rf5; rotate.{}\n", 4 - n)
        } else {
            format!("rotq rf6, rf5, {n}\n")
        }
    };
    let body = format!(
        "nop; mov rf5, rf20\n nop\n {}add rf5, rf5, rf6\n nop\n {}add rf5, rf5, rf6\n{}",
        turn(2),
        turn(1),
        store("rf5")
    );
    let a = Random(52).row();
    let quad = |i: usize| (0..4).fold(0u32, |s, k| s.wrapping_add(a[i / 4 * 4 + k]));
    Case::rows("sum-in-quads", target, &body, &[a], &[row(quad)])
}

/// Lane 0 to all lanes, and lane 0 of each quad to its quad.
fn broadcasts(target: &'static str) -> Case {
    let (quad, rep, r) = if target == "v3d42" { ("r5", "r5rep", "r5") } else { ("quad", "rep", "rf0") };
    let body = format!(
        "nop; mov {rep}, rf20\n or rf5, {r}, {r}\n{}nop; mov {quad}, rf20\n or rf5, {r}, {r}\n{}",
        store("rf5"),
        store("rf5"),
    );
    let a = Random(53).row();
    Case::rows("broadcasts", target, &body, &[a], &[[a[0]; 16], row(|i| a[i / 4 * 4])])
}

/// The lowest lane with a property.
fn first_lane(target: &'static str) -> Case {
    let body = format!(
        "and.pushz -, rf20, 7\n flafirst rf5\n{}and.pushz -, rf20, 7\n flnafirst rf5\n{}",
        store("rf5"),
        store("rf5"),
    );
    let a = row(|i| [3, 9, 16, 4, 8, 24, 1, 0, 5, 6, 7, 32, 40, 2, 1, 8][i]);
    Case::rows("first-lane", target, &body, &[a], &[row(|i| (i == 2).into()), row(|i| (i == 0).into())])
}

/// The maximum of all lanes, bit by bit from the top: does any candidate have the bit? Uses branches on flags only.
fn maximum_by_flags(target: &'static str) -> Case {
    // rf5: result; rf7: 1 where the lane is a candidate; rf8: the bit.
    let body = format!(
        "nop; mov rf5, 0\n nop; mov rf7, 1\n nop; mov rf8, 1\n shl rf8, rf8, 15\n shl rf8, rf8, 15\n shl rf8, rf8, 1\n \
         top: and rf9, rf20, rf8\n nop; mov.pushz -, rf7\n nop; mov.ifa rf9, 0\n nop; mov.pushz -, rf9\n \
         b.alla none\n nop\n nop\n nop\n or rf5, rf5, rf8\n nop; mov.ifa rf7, 0\n \
         none: shr rf8, rf8, 1\n nop; mov.pushz -, rf8\n b.na0 top\n nop\n nop\n nop\n{}",
        store("rf5")
    );
    let a = Random(54).row();
    let max = a.iter().copied().max().unwrap_or(0);
    Case::rows("maximum-by-flags", target, &body, &[a], &[[max; 16]])
}

/// Sums of all lanes up to each one.
fn scan(target: &'static str) -> Case {
    let mut body = "nop; mov rf5, rf20\n eidx rf7\n".to_owned();
    for n in [1, 2, 4, 8] {
        body += &format!("{}sub.pushn -, rf7, {n}\n add.ifna rf5, rf5, rf6\n", turned(target, "rf5", 16 - n));
    }
    body = body.replace(", 16\n", ", 0\n") + &store("rf5");
    let a = Random(55).row();
    let mut sum = 0u32;
    let sums = a.map(|x| {
        sum = sum.wrapping_add(x);
        sum
    });
    Case::rows("scan", target, &body, &[a], &[sums])
}

/// 16 by 16 words by way of memory that all batches of a work-group share.
fn transposition(target: &'static str) -> Case {
    // 256 items: 16 batches; the local index is the upper half of rf2 shifted right by 8.
    let text = format!(
        "{BEGIN} shr rf5, rf2, -8\n nop; mov rf6, 15\n and rf7, rf5, rf6\n shr rf8, rf5, 4\n \
         shl rf9, rf8, 6\n add rf14, rf10, rf9\n nop; mov tmua, rf14; thrsw\n sub rf10, rf10, rf12\n sub rf11, rf11, rf12\n nop; nop; ldtmu.rf15\n \
         nop; nop; ldunifrf.rf16\n add rf17, rf9, rf12\n add rf17, rf17, rf16\n nop; mov tmud, rf15\n nop; mov tmua, rf17\n tmuwt -\n \
         barrierid syncb; nop; thrsw\n shl rf18, rf7, 6\n shl rf19, rf8, 2\n \
         add rf18, rf18, rf19\n add rf18, rf18, rf16\n nop; mov tmua, rf18; thrsw\n add rf11, rf11, rf9\n add rf11, rf11, rf12\n \
         nop; nop; ldtmu.rf15\n nop; mov tmud, rf15\n nop; mov tmua, rf11\n{FINISH}"
    );
    let mut case = Case::new("transposition", target, text);
    case.uniforms = vec![Array("in", 0), Array("out", 0), Array("shared", 0)];
    case.size = [16, 16, 1];
    (case.batches, case.batches_per_supergroup) = (16, 16);
    let mut r = Random(56);
    let a: Vec<u32> = (0..256).map(|_| r.word()).collect();
    let out = (0..256).map(|i| a[i % 16 * 16 + i / 16]);
    let out = bytes(out);
    case.array("in", bytes(a.clone()))
        .array("out", vec![0; 1024])
        .array("shared", vec![0; 1024])
        .expect("out", out)
        .expect("shared", bytes(a))
}

/// Counts of 16 values over eight batches, with atomic increments.
fn histogram(target: &'static str) -> Case {
    let id = if target == "v3d42" { "rf0" } else { "rf3" };
    let text = format!(
        "{BEGIN} nop; mov rf6, -1\n shr rf6, rf6, -16\n and rf8, {id}, rf6\n shl rf9, rf8, 8\n add rf10, rf10, rf9\n sub rf11, rf11, rf12\n nop; nop; ldunifrf.rf15\n \
         nop; mov rf14, 4\n \
         top: nop; mov tmua, rf10; thrsw\n add rf10, rf10, rf13\n nop\n nop; nop; ldtmu.rf5\n shr rf5, rf5, 14\n shr rf5, rf5, 14\n shl rf5, rf5, 2\n \
         nop; mov tmuc, rf15\n add tmua, rf5, rf11; nop; thrsw\n sub.pushz rf14, rf14, 1\n nop\n nop; nop; ldtmu.rf7\n \
         sub.pushz -, rf14, 0\n b.anyna top\n nop\n nop\n nop\n{FINISH}"
    );
    let mut case = Case::new("histogram", target, text);
    case.uniforms = vec![Array("in", 0), Array("out", 0), Word(0xffff_ff00 | 0x80 | 8 << 3 | 7)];
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (8, 8, 8);
    case.count = [8, 1, 1];
    let mut r = Random(57);
    let a: Vec<u32> = (0..512).map(|_| r.word() & r.word() | r.word() >> 2).collect();
    let mut out = [0; 16];
    for x in &a {
        out[(x >> 28) as usize] += 1;
    }
    case.array("in", bytes(a)).array("out", vec![0; 64]).expect("out", bytes(out))
}

/// 16 by 16 floats: a lane is a column, rows of the first factor come through the side band.
fn matrix_product(target: &'static str) -> Case {
    // rf14: rows left; rf15: address of the row of A; rf16: address of B; rf17: sum; rf18: rest of the row.
    let text = format!(
        "{BEGIN} nop; nop; ldunifrf.rf15\n nop; mov rf14, 8\n add rf14, rf14, rf14\n \
         rows: nop; mov unifa, rf15\n nop; mov rf16, rf10\n nop; mov rf17, 0\n nop; mov rf18, 8\n add rf18, rf18, rf18\n \
         sums: nop; mov tmua, rf16; thrsw\n add rf16, rf16, rf13\n nop\n nop; nop; ldtmu.rf5\n nop; nop; ldunifarf.rf6\n \
         nop; fmul rf5, rf5, rf6\n fadd rf17, rf17, rf5\n sub.pushz rf18, rf18, 1\n b.na0 sums\n nop\n nop\n nop\n{} \
         add rf15, rf15, rf13\n sub.pushz rf14, rf14, 1\n b.na0 rows\n nop\n nop\n nop\n{FINISH}",
        store("rf17")
    );
    let mut case = Case::new("matrix-product", target, text);
    case.uniforms = vec![Array("b", 0), Array("c", 0), Array("a", 0)];
    let (a, b, c) = product(16);
    case.array("a", a).array("b", b).array("c", vec![0; 1024]).expect("c", c)
}

/// Small integers as floats, so that the sums are exact: both factors and the product, n rows.
fn product(n: usize) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut r = Random(58);
    let mut matrix = || -> Vec<f32> { (0..n * n).map(|_| (r.word() % 17) as f32 - 8.0).collect() };
    let (a, b) = (matrix(), matrix());
    let mut c = vec![0f32; n * n];
    for i in 0..n {
        for j in 0..n {
            c[i * n + j] = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
        }
    }
    let raw = |m: Vec<f32>| bytes(m.into_iter().map(f32::to_bits));
    (raw(a), raw(b), raw(c))
}

/// 32 by 32, one batch for each half of a row of the product, four threads.
fn matrix_by_batches(target: &'static str) -> Case {
    let id = if target == "v3d42" { "rf0" } else { "rf3" };
    // The group's x is the half, y the row.
    let text = format!(
        "{BEGIN} nop; nop; ldunifrf.rf15\n nop; mov rf6, -1\n shr rf6, rf6, -16\n and rf7, {id}, rf6\n shr rf8, {id}, -16\n \
         shl rf7, rf7, 6\n shl rf8, rf8, 7\n add rf15, rf15, rf8\n add rf10, rf10, rf7\n add rf11, rf11, rf7\n add rf11, rf11, rf8\n \
         add rf13, rf13, rf13\n nop; mov rf17, 0\n nop; mov rf18, 8\n shl rf18, rf18, 2\n \
         sums: nop; mov tmua, rf10\n nop; mov tmua, rf15; thrsw\n add rf10, rf10, rf13\n add rf15, rf15, 4\n nop; nop; ldtmu.rf5\n nop; nop; ldtmu.rf6\n \
         nop; fmul rf5, rf5, rf6\n fadd rf17, rf17, rf5\n sub.pushz rf18, rf18, 1\n b.na0 sums\n nop\n nop\n nop\n{}{FINISH}",
        store("rf17")
    );
    let mut case = Case::new("matrix-by-batches", target, text);
    case.uniforms = vec![Array("b", 0), Array("c", 0), Array("a", 0)];
    case.four_threads = true;
    case.count = [2, 32, 1];
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (64, 16, 16);
    let (a, b, c) = product(32);
    case.array("a", a).array("b", b).array("c", vec![0; 4096]).expect("c", c)
}

/// y = s * x + y with loads in flight over a switch, compared with a tolerance.
fn scaled_copy(target: &'static str) -> Case {
    let text = format!(
        "{BEGIN} nop; nop; ldunifrf.rf14\n nop; mov rf15, 8\n \
         top: nop; mov tmua, rf10\n nop; mov tmua, rf11; thrsw\n add rf10, rf10, rf13\n sub.pushz rf15, rf15, 1\n nop; nop; ldtmu.rf5\n nop; fmul rf5, rf5, rf14; ldtmu.rf6\n \
         fadd rf5, rf5, rf6\n nop; mov tmud, rf5\n sub.pushz -, rf15, 0\n b.na0 top\n nop; mov tmua, rf11\n add rf11, rf11, rf13\n nop\n{FINISH}"
    );
    let mut case = Case::new("scaled-copy", target, text);
    case.uniforms = vec![Array("x", 0), Array("y", 0), Word(0.3f32.to_bits())];
    let mut r = Random(59);
    let mut numbers = || -> Vec<f32> { (0..128).map(|_| (r.word() as i32) as f32 / 1e6).collect() };
    let (x, y) = (numbers(), numbers());
    let raw = |m: &[f32]| bytes(m.iter().map(|v| v.to_bits()));
    let out: Vec<f32> =
        x.iter().zip(&y).map(|(&x, &y)| (f64::from(0.3f32) * f64::from(x) + f64::from(y)) as f32).collect();
    let mut case = case.array("x", raw(&x)).array("y", raw(&y)).expect("y", raw(&out));
    case.expected[0].dtype = "float32";
    case.expected[0].tolerance = Some((1e-5, 1e-4));
    case
}

/// Lanes with trip counts of their own; remainders by subtraction and shifts.
fn greatest_common_divisor(target: &'static str) -> Case {
    // While a differs from b, the larger one is reduced by the smaller one.
    let body = format!(
        "top: sub.pushz -, rf20, rf21\n b.alla done\n sub rf5, rf20, rf21\n sub rf6, rf21, rf20\n nop\n \
         sub.pushc -, rf20, rf21\n nop; mov.ifa rf21, rf6\n \
         nop; mov rf7, 0\n nop; mov.ifa rf7, 1\n sub.pushz -, rf20, rf21\n nop; mov.ifa rf7, 1\n nop; mov.pushz -, rf7\n \
         b top\n nop; mov.ifa rf20, rf5\n nop\n nop\n done: nop\n{}",
        store("rf20")
    );
    let a = row(|i| [48, 18, 100, 7, 1, 270, 64, 81, 17, 1000, 999, 12, 35, 6, 90, 2][i]);
    let b = row(|i| [36, 27, 75, 7, 9, 192, 48, 54, 51, 250, 333, 8, 49, 4, 120, 3][i]);
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    Case::rows("gcd", target, &body, &[a, b], &[row(|i| gcd(a[i], b[i]))])
}

/// The operations of 7.1 over all lanes, and with a condition.
fn cross_lane(target: &'static str) -> Case {
    let body = format!(
        "ballot rf5, rf20\n nop\n{s}bcastf rf5, rf20\n nop\n{s}alleq rf5, rf20\n nop\n{s}alleq rf5, rf22\n nop\n{s}allfeq rf5, rf23\n nop\n{s}\
         shuffle rf5, rf20, rf21\n nop\n{s}rot rf5, rf20, -3\n nop\n{s}rotq rf5, rf20, rf21\n nop\n{s}\
         nop; mov.pushz -, rf20\n ballot.ifna rf5, rf21\n nop\n nop; mov.ifa rf5, 9\n{s}",
        s = store("rf5")
    );
    let a = row(|i| if i % 3 == 0 { 0 } else { 40 + i as u32 });
    let b = row(|i| 11 * i as u32 + 2);
    let zeros = row(|i| if i % 2 == 0 { 0 } else { 0x8000_0000 });
    let bits = |lanes: &dyn Fn(usize) -> bool| (0..16).filter(|&i| lanes(i)).fold(0u32, |m, i| m | 1 << i);
    let taking_part = bits(&|i| a[i] != 0 && b[i] != 0);
    let outs = [
        [bits(&|i| a[i] != 0); 16],
        [a[0]; 16],
        [0; 16],
        [1; 16],
        [1; 16],
        row(|i| a[b[i] as usize % 16]),
        row(|i| a[(i + 13) % 16]),
        row(|i| a[i / 4 * 4 + (i + b[i / 4 * 4] as usize) % 4]),
        row(|i| if a[i] == 0 { 9 } else { taking_part }),
    ];
    Case::rows("cross-lane", target, &body, &[a, b, [77; 16], zeros], &outs)
}

/// Sorts the lanes: a bitonic network of shuffles and conditional moves.
fn bitonic(target: &'static str) -> Case {
    let mut body = "eidx rf7\n nop; mov rf5, rf20\n".to_owned();
    for k in [2, 4, 8, 16] {
        let mut j = k / 2;
        while j > 0 {
            // Ascending where bit k of the lane is clear; the lower one of a pair keeps the smaller.
            body += &format!(
                "nop; mov rf14, {j}\n xor rf8, rf7, rf14\n shuffle rf6, rf5, rf8\n and rf9, rf7, rf14\n \
                 nop; mov rf14, {half}\n shl rf14, rf14, 1\n and rf15, rf7, rf14\n nop; mov rf16, 0\n \
                 nop; mov.pushz -, rf9\n nop; mov.ifna rf16, 1\n nop; mov.pushz -, rf15\n nop; mov rf17, 0\n nop; mov.ifna rf17, 1\n \
                 umin rf18, rf5, rf6\n umax rf19, rf5, rf6\n xor.pushz -, rf16, rf17\n nop; mov.ifa rf5, rf18\n nop; mov.ifna rf5, rf19\n",
                half = k / 2,
            );
            j /= 2;
        }
    }
    body += &store("rf5");
    let a = Random(60).row();
    let mut sorted = a;
    sorted.sort_unstable();
    Case::rows("bitonic", target, &body, &[a], &[sorted])
}
