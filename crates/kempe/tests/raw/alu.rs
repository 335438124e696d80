//! Integer operations, shifts, products, moves, dual issue.

use super::*;

/// One operation: its text with result rf5 and sources rf20 and rf21, and what it gives.
type Op = (&'static str, fn(u32, u32) -> u32);

/// A program that applies each operation to all pairs of lanes and stores the rows.
pub fn table(name: &str, target: &'static str, ops: &[Op], a: Row, b: Row) -> Case {
    let body: String = ops.iter().map(|(text, _)| format!("{text}\n nop\n{}", store("rf5"))).collect();
    let outs: Vec<Row> = ops.iter().map(|(_, f)| row(|i| f(a[i], b[i]))).collect();
    Case::rows(name, target, &body, &[a, b], &outs)
}

fn signed(f: fn(i32, i32) -> i32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| f(a as i32, b as i32) as u32
}

pub fn cases(target: &'static str) -> Vec<Case> {
    let mut r = Random(1);
    let (a, b) = (r.row(), r.row());
    let corners =
        [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff, 0x1_0000, 3, 31, 32, 33, 64, 255, 0x8000, 7];
    let turned = row(|i| corners[(i * 5 + 3) % 16]);
    let arithmetic: [Op; 12] = [
        ("add rf5, rf20, rf21", u32::wrapping_add),
        ("sub rf5, rf20, rf21", u32::wrapping_sub),
        ("and rf5, rf20, rf21", |a, b| a & b),
        ("or rf5, rf20, rf21", |a, b| a | b),
        ("xor rf5, rf20, rf21", |a, b| a ^ b),
        ("not rf5, rf20", |a, _| !a),
        ("neg rf5, rf20", |a, _| a.wrapping_neg()),
        ("min rf5, rf20, rf21", |a, b| signed(i32::min)(a, b)),
        ("max rf5, rf20, rf21", |a, b| signed(i32::max)(a, b)),
        ("umin rf5, rf20, rf21", u32::min),
        ("umax rf5, rf20, rf21", u32::max),
        ("clz rf5, rf20", |a, _| a.leading_zeros()),
    ];
    let shifts: [Op; 5] = [
        ("shl rf5, rf20, rf21", |a, b| a << (b & 31)),
        ("shr rf5, rf20, rf21", |a, b| a >> (b & 31)),
        ("asr rf5, rf20, rf21", |a, b| (a as i32 >> (b & 31)) as u32),
        ("ror rf5, rf20, rf21", |a, b| a.rotate_right(b & 31)),
        // The small immediate -16 is a count of 16.
        ("shr rf5, rf20, -16", |a, _| a >> 16),
    ];
    let mul_part: [Op; 6] = [
        ("nop; add rf5, rf20, rf21", u32::wrapping_add),
        ("nop; sub rf5, rf20, rf21", u32::wrapping_sub),
        ("nop; mov rf5, rf21", |_, b| b),
        ("nop; umul24 rf5, rf20, rf21", |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
        ("nop; smul24 rf5, rf20, rf21", |a, b| {
            (((a << 8) as i32 >> 8) as i64 * ((b << 8) as i32 >> 8) as i64) as u32
        }),
        ("nop; multop -, rf20, rf21\n nop; umul24 rf5, rf20, rf21", u32::wrapping_mul),
    ];
    let halves: [Op; 2] = [
        ("vadd rf5, rf20, rf21", |a, b| a.wrapping_add(b) & 0xffff | (a >> 16).wrapping_add(b >> 16) << 16),
        ("vsub rf5, rf20, rf21", |a, b| a.wrapping_sub(b) & 0xffff | (a >> 16).wrapping_sub(b >> 16) << 16),
    ];
    let mut all = vec![
        table("integer", target, &arithmetic, a, b),
        table("integer-corners", target, &arithmetic, corners, turned),
        table("shifts", target, &shifts, a, b),
        table("shifts-corners", target, &shifts, r.row(), corners),
        table("products", target, &mul_part, a, b),
        table("products-corners", target, &mul_part, corners, turned),
        table("integer-halves", target, &halves, a, b),
        wide_product(target),
        small_immediates(target),
        dual_issue(target),
    ];
    if target == "v3d71" {
        let words: [Op; 9] = [
            ("mov rf5, rf20.ul", |a, _| a & 0xffff),
            ("mov rf5, rf20.uh", |a, _| a >> 16),
            ("mov rf5, rf20.il", |a, _| a as i16 as u32),
            ("mov rf5, rf20.ih", |a, _| (a as i32 >> 16) as u32),
            ("nop; mov rf5, rf20.ul", |a, _| a & 0xffff),
            ("nop; mov rf5, rf20.ih", |a, _| (a as i32 >> 16) as u32),
            ("vpack rf5, rf20, rf21", |a, b| a & 0xffff | b << 16),
            ("v8pack rf5, rf20, rf21", |a, b| {
                u32::from_le_bytes([a as u8, (a >> 16) as u8, b as u8, (b >> 16) as u8])
            }),
            ("v10pack rf5, rf20, rf21", |a, b| {
                a & 0x3ff | (a >> 16 & 0x3ff) << 10 | (b & 0x3ff) << 20 | (b >> 16 & 3) << 30
            }),
        ];
        all.push(table("word-parts", target, &words, a, b));
    }
    all
}

/// All 64 bits of products, unsigned and signed, from four products of halves.
fn wide_product(target: &'static str) -> Case {
    let body = format!(
        "nop; mov rf30, -1\n shr rf30, rf30, -16\n \
         and rf1, rf20, rf30\n shr rf4, rf20, -16\n and rf5, rf21, rf30\n shr rf6, rf21, -16\n \
         nop; umul24 rf7, rf1, rf5\n nop; umul24 rf8, rf4, rf5\n nop; umul24 rf9, rf1, rf6\n nop; umul24 rf14, rf4, rf6\n \
         shr rf15, rf7, -16\n and rf16, rf8, rf30\n add rf15, rf15, rf16\n and rf16, rf9, rf30\n add rf15, rf15, rf16\n \
         shl rf16, rf15, -16\n and rf17, rf7, rf30\n or rf16, rf16, rf17\n {}\
         shr rf15, rf15, -16\n shr rf8, rf8, -16\n add rf15, rf15, rf8\n shr rf9, rf9, -16\n add rf15, rf15, rf9\n \
         add rf15, rf15, rf14\n {}\
         nop; mov.pushn -, rf20\n nop; mov rf17, 0\n nop; mov.ifa rf17, rf21\n sub rf15, rf15, rf17\n \
         nop; mov.pushn -, rf21\n nop; mov rf17, 0\n nop; mov.ifa rf17, rf20\n sub rf15, rf15, rf17\n {}",
        store("rf16"),
        store("rf15"),
        store("rf15"),
    );
    let mut r = Random(2);
    let mut a = r.row();
    let mut b = r.row();
    (a[0], b[0], a[1], b[1], a[2], b[2]) = (u32::MAX, u32::MAX, 0x8000_0000, 0x8000_0000, 0, 5);
    let product = |i: usize| u64::from(a[i]) * u64::from(b[i]);
    let outs = [
        row(|i| product(i) as u32),
        row(|i| (product(i) >> 32) as u32),
        row(|i| ((i64::from(a[i] as i32) * i64::from(b[i] as i32)) >> 32) as u32),
    ];
    Case::rows("wide-product", target, &body, &[a, b], &outs)
}

/// Every small immediate, as an integer, and the floats among them.
fn small_immediates(target: &'static str) -> Case {
    let mut body = String::new();
    let mut outs = Vec::new();
    for value in -16i32..16 {
        body += &format!("add rf5, rf20, {value}\n{}", store("rf5"));
        outs.push(row(|i| (100 + i as u32).wrapping_add(value as u32)));
    }
    for exponent in -8i32..8 {
        let bits = 2f32.powi(exponent).to_bits();
        body += &format!("xor rf5, rf20, {bits:#010x}\n{}", store("rf5"));
        outs.push(row(|i| (100 + i as u32) ^ bits));
    }
    Case::rows("small-immediates", target, &body, &[row(|i| 100 + i as u32)], &outs)
}

/// Both parts read what the registers held before the instruction; a signal writes a third register.
fn dual_issue(target: &'static str) -> Case {
    let body = format!(
        "nop; mov tmua, rf10; thrsw\n add rf10, rf10, rf13\n nop\n \
         add rf20, rf20, rf21; mov rf21, rf20; ldtmu.rf5\n {}{}{}\
         add rf20, rf21, rf20; sub rf21, rf20, rf21\n {}{}",
        store("rf20"),
        store("rf21"),
        store("rf5"),
        store("rf20"),
        store("rf21"),
    );
    let mut r = Random(3);
    let (a, b, c) = (r.row(), r.row(), r.row());
    let sum = row(|i| a[i].wrapping_add(b[i]));
    let outs = [sum, a, c, row(|i| sum[i].wrapping_add(a[i])), row(|i| sum[i].wrapping_sub(a[i]))];
    // The third row is loaded by the body.
    let mut case = Case::rows("dual-issue", target, &body, &[a, b], &outs);
    case.arrays[0].1.extend(bytes(c));
    case
}
