//! Floats: arithmetic, halves, conversions, rounding, special functions.

use super::alu::table;
use super::*;

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// The value of a half.
fn half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::INFINITY,
        e => (1024.0 + fraction) * 2f64.powi(e as i32 - 25),
    };
    if bits >> 15 & 1 != 0 { -magnitude } else { magnitude }
}

/// The nearest half, ties to even, found by looking at all of them.
fn to_half(value: f64) -> u32 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let v = value.abs();
    let distance = |&bits: &u32| (half(bits) - v).abs();
    // 65520 and above round to infinity.
    if v >= 65520.0 {
        return sign | 0x7c00;
    }
    let best = (0..0x7c00u32).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    sign | best.unwrap_or(0)
}

/// Numbers without NaN and infinity: some of few bits, some of many, some with ties.
fn numbers(r: &mut Random) -> Row {
    row(|i| {
        let w = r.word();
        let v = match i % 4 {
            0 => (w as i32 % 4096) as f32 / 8.0,
            1 => (w as i32 % 100) as f32 + 0.5,
            2 => (w as i32) as f32 / 65536.0,
            _ => (w as i32 % 2000) as f32 * 0.37,
        };
        v.to_bits()
    })
}

pub fn cases(target: &'static str) -> Vec<Case> {
    let mut r = Random(11);
    let (a, b) = (numbers(&mut r), numbers(&mut r));
    let pairs = row(|_| {
        to_half(f64::from((r.word() as i32 % 512) as f32 / 4.0))
            | to_half(f64::from((r.word() as i32 % 512) as f32 / 4.0)) << 16
    });
    let pairs_b = row(|_| {
        to_half(f64::from((r.word() as i32 % 64) as f32 / 8.0))
            | to_half(f64::from((r.word() as i32 % 64) as f32 / 8.0)) << 16
    });
    let mut all = vec![
        table(
            "float",
            target,
            &[
                ("fadd rf5, rf20, rf21", |a, b| (f(a) + f(b)).to_bits()),
                ("faddnf rf5, rf20, rf21", |a, b| (f(a) + f(b)).to_bits()),
                ("fsub rf5, rf20, rf21", |a, b| (f(a) - f(b)).to_bits()),
                ("nop; fmul rf5, rf20, rf21", |a, b| (f(a) * f(b)).to_bits()),
                ("fmin rf5, rf20, rf21", |a, b| f(a).min(f(b)).to_bits()),
                ("fmax rf5, rf20, rf21", |a, b| f(a).max(f(b)).to_bits()),
                ("fadd rf5, rf20.abs, rf21", |a, b| (f(a).abs() + f(b)).to_bits()),
                ("fsub rf5, rf20, rf21.abs", |a, b| (f(a) - f(b).abs()).to_bits()),
                ("nop; fmul rf5, rf20.abs, rf21.abs", |a, b| (f(a).abs() * f(b).abs()).to_bits()),
                ("nop; fmov rf5, rf20.abs", |a, _| f(a).abs().to_bits()),
                ("fcmp rf5, rf20, rf21", |a, b| (f(a) - f(b)).to_bits()),
                ("fadd rf5, rf20, 0x3f800000", |a, _| (f(a) + 1.0).to_bits()),
            ],
            a,
            b,
        ),
        table(
            "float-rounding",
            target,
            &[
                ("fround rf5, rf20", |a, _| f(a).round_ties_even().to_bits()),
                ("ftrunc rf5, rf20", |a, _| f(a).trunc().to_bits()),
                ("ffloor rf5, rf20", |a, _| f(a).floor().to_bits()),
                ("fceil rf5, rf20", |a, _| f(a).ceil().to_bits()),
                ("ftoin rf5, rf20", |a, _| f(a).round_ties_even() as i32 as u32),
                ("ftoiz rf5, rf20", |a, _| f(a) as i32 as u32),
                ("ftouz rf5, rf20", |a, _| f(a) as u32),
            ],
            a,
            b,
        ),
        table(
            "float-from-integer",
            target,
            &[
                ("itof rf5, rf20", |a, _| (a as i32 as f32).to_bits()),
                ("utof rf5, rf20", |a, _| (a as f32).to_bits()),
            ],
            row(|i| (i as u32).wrapping_sub(8).wrapping_mul(0x0100_0000 >> (i % 5 * 4))),
            b,
        ),
        table(
            "half-sources",
            target,
            &[
                ("fadd rf5, rf20.l, rf21.h", |a, b| ((half(a & 0xffff) + half(b >> 16)) as f32).to_bits()),
                ("fsub rf5, rf20.h, rf21.l", |a, b| ((half(a >> 16) - half(b & 0xffff)) as f32).to_bits()),
                ("nop; fmul rf5, rf20.l, rf21.l", |a, b| {
                    ((half(a & 0xffff) * half(b & 0xffff)) as f32).to_bits()
                }),
                ("nop; fmov rf5, rf20.h", |a, _| (half(a >> 16) as f32).to_bits()),
                ("ftoin rf5, rf20.l", |a, _| half(a & 0xffff).round_ties_even() as i32 as u32),
                ("ftoiz rf5, rf20.h", |a, _| half(a >> 16) as i32 as u32),
                ("ffloor rf5, rf20.l", |a, _| (half(a & 0xffff).floor() as f32).to_bits()),
                ("fmax rf5, rf20.h, rf21.h", |a, b| (half(a >> 16).max(half(b >> 16)) as f32).to_bits()),
            ],
            pairs,
            pairs_b,
        ),
        table(
            "half-pairs",
            target,
            &[
                ("vfmin rf5, rf20, rf21", |a, b| both(a, b, f64::min)),
                ("vfmax rf5, rf20, rf21", |a, b| both(a, b, f64::max)),
                ("nop; vfmul rf5, rf20, rf21", |a, b| both(a, b, |x, y| x * y)),
                ("vfmax rf5, rf20.swp, rf21", |a, b| both(a.rotate_left(16), b, f64::max)),
                ("vfmin rf5, rf20.ll, rf21", |a, b| both(a & 0xffff | a << 16, b, f64::min)),
                ("nop; vfmul rf5, rf20.hh, rf21", |a, b| both(a & 0xffff_0000 | a >> 16, b, |x, y| x * y)),
            ],
            pairs,
            pairs_b,
        ),
        table(
            "half-results",
            target,
            &[
                ("vfpack rf5, rf20, rf21", |a, b| to_half(f(a).into()) | to_half(f(b).into()) << 16),
                ("or rf5, rf21, rf21\n nop\n fadd rf5.l, rf20, rf21", |a, b| {
                    b & 0xffff_0000 | to_half((f(a) + f(b)).into())
                }),
                ("or rf5, rf21, rf21\n nop\n fsub rf5.h, rf20, rf21", |a, b| {
                    b & 0xffff | to_half((f(a) - f(b)).into()) << 16
                }),
                ("nop; fmov rf5.l, rf20\n nop; fmov rf5.h, rf21", |a, b| {
                    to_half(f(a).into()) | to_half(f(b).into()) << 16
                }),
                ("or rf5, rf21, rf21\n nop\n fround rf5.h, rf20", |a, b| {
                    b & 0xffff | to_half(f(a).round_ties_even().into()) << 16
                }),
            ],
            a,
            b,
        ),
        special(target),
        derivatives(target),
    ];
    if target == "v3d71" {
        all.push(table(
            "clamped-moves",
            target,
            &[
                ("nop; fmov rf5, rf20.sat", |a, _| f(a).clamp(0.0, 1.0).to_bits()),
                ("fmov rf5, rf20.nsat", |a, _| f(a).clamp(-1.0, 1.0).to_bits()),
                ("fmov rf5, rf20.max0", |a, _| f(a).max(0.0).to_bits()),
            ],
            row(|i| (i as f32 * 0.3 - 2.2).to_bits()),
            b,
        ));
    } else {
        all.push(by_address(target));
    }
    all
}

fn both(a: u32, b: u32, op: fn(f64, f64) -> f64) -> u32 {
    let one = |shift: u32| to_half(op(half(a >> shift & 0xffff), half(b >> shift & 0xffff)));
    one(0) | one(16) << 16
}

type Function = (&'static str, fn(f64) -> f64);

const FUNCTIONS: [Function; 6] = [
    ("recip", |x| 1.0 / x),
    ("rsqrt", |x| 1.0 / x.sqrt()),
    ("rsqrt2", |x| 1.0 / x.sqrt()),
    ("exp", f64::exp2),
    ("log", f64::log2),
    ("sin", |x| (x * std::f64::consts::PI).sin()),
];

/// Arguments that suit a function.
fn arguments(name: &str) -> Row {
    row(|i| {
        let x = i as f32;
        let v = match name {
            "recip" => (x - 7.5) * 3.0,
            "exp" => (x - 8.0) / 4.0,
            "sin" => (x - 7.5) / 15.0,
            _ => (x + 0.3) * (x + 1.0),
        };
        v.to_bits()
    })
}

fn with_tolerance(mut case: Case, rows: &[Row], functions: &[Function]) -> Case {
    let values = functions.iter().zip(rows).flat_map(|((_, g), row)| row.map(|x| g(f(x).into()) as f32));
    // What the chips are known to keep (relative).
    let relative = if case.target == "v3d42" { 1e-4 } else { 1e-2 };
    case.expected[0].bytes = values.flat_map(|v| v.to_bits().to_le_bytes()).collect();
    case.expected[0].dtype = "float32";
    case.expected[0].tolerance = Some((relative, 1e-6));
    case
}

/// The operations, their results read at once.
fn special(target: &'static str) -> Case {
    let ins: Vec<Row> = FUNCTIONS.iter().map(|(name, _)| arguments(name)).collect();
    let body: String = FUNCTIONS
        .iter()
        .enumerate()
        .map(|(i, (name, _))| format!("{name} rf5, rf{}\n{}", 20 + i, store("rf5")))
        .collect();
    let case = Case::rows("special", target, &body, &ins, &vec![[0; 16]; ins.len()]);
    with_tolerance(case, &ins, &FUNCTIONS)
}

/// 4.2: started by a magic address, the result in r4 one instruction later; the sine stops at a quarter turn.
fn by_address(target: &'static str) -> Case {
    let mut functions = FUNCTIONS.to_vec();
    functions.push(("sin", |x| if x < 0.0 { -1.0 } else { 1.0 }));
    let mut ins: Vec<Row> = FUNCTIONS.iter().map(|(name, _)| arguments(name)).collect();
    ins.push(row(|i| (if i % 2 == 0 { -0.5 - i as f32 } else { 0.5 + i as f32 * 0.1 }).to_bits()));
    let body: String = functions
        .iter()
        .enumerate()
        .map(|(i, (name, _))| {
            format!("nop; mov {name}, rf{}\n nop\n or rf5, r4, r4\n{}", 20 + i, store("rf5"))
        })
        .collect();
    let case = Case::rows("special-by-address", target, &body, &ins, &vec![[0; 16]; ins.len()]);
    with_tolerance(case, &ins, &functions)
}

/// Differences inside quads.
fn derivatives(target: &'static str) -> Case {
    let a = row(|i| ((i * i) as f32 * 0.25).to_bits());
    let difference = |i: usize, j: usize| (f(a[j]) - f(a[i])).to_bits();
    let outs = [row(|i| difference(i & !1, i | 1)), row(|i| difference(i & !2, i | 2))];
    let body = format!("fdx rf5, rf20\n{}fdy rf5, rf20\n{}", store("rf5"), store("rf5"));
    Case::rows("differences", target, &body, &[a], &outs)
}
