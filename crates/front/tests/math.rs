//! The functions of GLSL.std.450 against the host's f64, in units of the last place.

mod common;

use common::*;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::interp;

/// Runs a function of one or two floats at many points.
fn at_points(code: &str, globals: &str, points: &[(f32, f32)]) -> Vec<u32> {
    let points: Vec<(f32, f32)> = {
        let mut p = points.to_vec();
        while !p.len().is_multiple_of(8) {
            p.push((0.5, 0.5));
        }
        p
    };
    let code = format!(
        "%y = OpIAdd %uint %x %count
         %pb = OpAccessChain %puint %in %u0 %y
         %b = OpLoad %uint %pb
         %fa = OpBitcast %float %a
         %fb = OpBitcast %float %b
         {code}"
    );
    let globals = format!("%count = OpConstant %uint {}\n{globals}", points.len());
    let module = convert(&shader(&globals, &body(&code))).unwrap_or_else(|e| panic!("{code}: {e}"));
    let mut input: Vec<u32> = points.iter().map(|p| p.0.to_bits()).collect();
    input.extend(points.iter().map(|p| p.1.to_bits()));
    let groups = [points.len() as u32 / 8, 1, 1];
    let inputs = Inputs::new(groups).buffer(0, 0, vec![0; 4 * points.len()]).buffer(0, 1, bytes(&input));
    let env = Environment::new(&module, &inputs, Sizes::source()).expect("an environment");
    let outcome = interp::run(&module, &env, &interp::Options::source()).expect("a run");
    let out = env.buffer_contents(&outcome.memory)[0];
    out.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Distance in units of the last place of the correctly rounded result.
fn ulps(got: f32, want: f64) -> f64 {
    if want.is_nan() {
        return if got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if (want as f32).is_infinite() || got.is_infinite() {
        return if got == want as f32 { 0.0 } else { f64::INFINITY };
    }
    let w = want.abs().max(f32::MIN_POSITIVE as f64);
    let ulp = 2f64.powi(w.log2().floor() as i32 - 23);
    (got as f64 - want).abs() / ulp
}

/// Points from `-limit` to `limit`, dense near zero, with the special ones.
fn spread(limit: f32) -> Vec<f32> {
    let mut out = vec![0.0, 1.0, 0.5, 0.625, 2.0, 0.99999994, 1.0000001, 1e-30, 1e-10, 1e-5];
    for k in 1..=400 {
        out.push(limit * k as f32 / 400.0);
        out.push(limit * (k as f32 / 400.0).powi(6));
    }
    let minus: Vec<f32> = out.iter().map(|x| -x).collect();
    out.extend(minus);
    out.retain(|x| x.abs() <= limit);
    out
}

fn unary(name: &str, number: u32, points: &[f32], bound: impl Fn(f32) -> f64, f: impl Fn(f64) -> f64) {
    let pairs: Vec<(f32, f32)> = points.iter().map(|x| (*x, 0.0)).collect();
    let code = format!("%fr = OpExtInst %float %glsl {number} %fa\n%r = OpBitcast %uint %fr");
    let out = at_points(&code, "", &pairs);
    let mut worst = (0.0, 0.0f32);
    for (x, got) in points.iter().zip(&out) {
        let d = ulps(f32::from_bits(*got), f(*x as f64));
        assert!(
            d <= bound(*x),
            "{name}({x}) = {} instead of {}: {d} ulps",
            f32::from_bits(*got),
            f(*x as f64)
        );
        if d > worst.0 {
            worst = (d, *x);
        }
    }
    println!("{name}: at most {:.2} ulps, at {}", worst.0, worst.1);
}

#[test]
fn inverse_functions() {
    unary("asin", 16, &spread(1.0), |_| 3.0, f64::asin);
    unary("acos", 17, &spread(1.0), |_| 3.0, f64::acos);
    unary("atan", 18, &spread(1e6), |_| 3.0, f64::atan);
    unary("atan", 18, &spread(3.0), |_| 3.0, f64::atan);
    unary("asin out of range", 16, &[1.5, -2.0], |_| 0.0, f64::asin);
}

#[test]
fn hyperbolic_functions() {
    // exp(x) is exp2(x * log2(e)), whose argument is rounded: the error grows with the argument.
    let of_exp = |x: f32| 4.0 + 2.0 * x.abs() as f64;
    unary("sinh", 19, &spread(88.0), of_exp, f64::sinh);
    unary("cosh", 20, &spread(88.0), of_exp, f64::cosh);
    unary("cosh", 20, &[89.0, 89.4, 90.0, -89.3], of_exp, f64::cosh);
    unary("tanh", 21, &spread(20.0), |_| 4.0, f64::tanh);
    unary("tanh", 21, &[100.0, 1e30, -1e30, f32::INFINITY], |_| 0.5, f64::tanh);
    unary("asinh", 22, &spread(1e30), |_| 8.0, f64::asinh);
    unary("asinh", 22, &spread(4.0), |_| 8.0, f64::asinh);
    let above: Vec<f32> = spread(1e30).into_iter().filter(|x| *x >= 1.0).collect();
    unary("acosh", 23, &above, |_| 8.0, f64::acosh);
    let above: Vec<f32> = spread(3.0).into_iter().filter(|x| *x >= 1.0).collect();
    unary("acosh", 23, &above, |_| 8.0, f64::acosh);
    unary("atanh", 24, &spread(0.9999), |_| 8.0, f64::atanh);
}

#[test]
fn exponentials() {
    unary("exp", 27, &spread(87.0), |x| 3.0 + 2.0 * x.abs() as f64, f64::exp);
    let positive: Vec<f32> = spread(1e30).into_iter().filter(|x| *x > 0.0).collect();
    unary("log", 28, &positive, |_| 3.0, f64::ln);
    unary("tan", 15, &spread(1.5), |_| 4.0, f64::tan);
    unary("fract", 10, &spread(1e5), |_| 1.0, |x| x - x.floor());
    unary("sign", 6, &spread(1e5), |_| 0.0, |x| if x == 0.0 { x } else { x.signum() });
}

#[test]
fn two_arguments() {
    let values =
        [0.0f32, 1.0, -1.0, 0.5, -0.3, 3.0, -1e10, 1e-20, f32::INFINITY, f32::NEG_INFINITY, 7.25, -2.5];
    let pairs: Vec<(f32, f32)> = values.iter().flat_map(|y| values.iter().map(move |x| (*y, *x))).collect();
    let out = at_points("%fr = OpExtInst %float %glsl 25 %fa %fb\n%r = OpBitcast %uint %fr", "", &pairs);
    for ((y, x), got) in pairs.iter().zip(&out) {
        let want = (*y as f64).atan2(*x as f64);
        let d = ulps(f32::from_bits(*got), want);
        // At the origin the angle is free.
        assert!(d <= 4.0 || (*x == 0.0 && *y == 0.0), "atan({y}, {x}): {d} ulps");
    }
    let globals = "";
    for (code, f) in [
        ("26 %fa %fb", (|a: f64, b: f64| a.powf(b)) as fn(f64, f64) -> f64),
        ("48 %fa %fb", |a, b| if b < a { 0.0 } else { 1.0 }),
        ("66 %v2", |a, b| (a * a + b * b).sqrt()),
        ("46 %fa %fb %f2", |a, b| -a + 2.0 * b),
        ("49 %f0 %f2 %fa", |a, _| {
            let t = (a / 2.0).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }),
    ] {
        let pairs: Vec<(f32, f32)> =
            [0.25f32, 1.0, 2.0, 3.5].iter().flat_map(|a| [0.5f32, 1.0, -2.0, 3.0].map(|b| (*a, b))).collect();
        let code = format!(
            "%v2 = OpCompositeConstruct %v2float %fa %fb
             %fr = OpExtInst %float %glsl {code}
             %r = OpBitcast %uint %fr"
        );
        let out = at_points(&code, globals, &pairs);
        for ((a, b), got) in pairs.iter().zip(&out) {
            let d = ulps(f32::from_bits(*got), f(*a as f64, *b as f64));
            assert!(
                d <= 8.0,
                "{code} of {a}, {b}: {} instead of {}",
                f32::from_bits(*got),
                f(*a as f64, *b as f64)
            );
        }
    }
}

#[test]
fn splitting_and_scaling() {
    let values = [
        1.0f32,
        0.5,
        -3.75,
        1e-40,
        -1e-45,
        f32::MAX,
        f32::MIN_POSITIVE,
        0.0,
        -0.0,
        f32::INFINITY,
        1e20,
        -0.999,
        123.456,
        2.0,
        1.999_999_9,
        7e-39,
    ];
    let pairs: Vec<(f32, f32)> = values.iter().map(|x| (*x, 0.0)).collect();
    let globals = "%pair = OpTypeStruct %float %int\n%fpair = OpTypeStruct %float %float";
    let significand = at_points(
        "%s = OpExtInst %pair %glsl 52 %fa\n%fr = OpCompositeExtract %float %s 0\n%r = OpBitcast %uint %fr",
        globals,
        &pairs,
    );
    let exponent = at_points(
        "%s = OpExtInst %pair %glsl 52 %fa\n%ir = OpCompositeExtract %int %s 1\n%r = OpBitcast %uint %ir",
        globals,
        &pairs,
    );
    for (k, x) in values.iter().enumerate() {
        let (s, e) = (f32::from_bits(significand[k]), exponent[k] as i32);
        if *x == 0.0 || x.is_infinite() {
            assert_eq!((s.to_bits(), e), (x.to_bits(), 0));
            continue;
        }
        assert!((0.5..1.0).contains(&s.abs()), "{x}: {s}");
        assert_eq!(s as f64 * 2f64.powi(e), *x as f64);
        // And back.
        let code = "%fr = OpExtInst %float %glsl 53 %fa %k\n%r = OpBitcast %uint %fr";
        let back = at_points(code, &format!("%k = OpConstant %int {e}"), &[(s, 0.0)]);
        assert_eq!(f32::from_bits(back[0]), *x);
    }
    let fract = at_points(
        "%s = OpExtInst %fpair %glsl 36 %fa\n%fr = OpCompositeExtract %float %s 0\n%r = OpBitcast %uint %fr",
        globals,
        &pairs,
    );
    for (x, f) in values.iter().zip(&fract) {
        let want = if x.is_infinite() { 0.0 } else { x - x.trunc() };
        assert_eq!(f32::from_bits(*f), want, "{x}");
    }
}

#[test]
fn packing() {
    let pairs = [
        (0.0f32, 1.0f32),
        (0.5, -1.0),
        (-0.25, 2.0),
        (0.333, -0.999),
        (1e-3, 0.125),
        (-5.0, 0.7),
        (1.0, 1.0),
        (0.1, 0.9),
    ];
    let pack = |code: &str| {
        at_points(
            &format!(
                "%v2 = OpCompositeConstruct %v2float %fa %fb
                 %v4 = OpCompositeConstruct %v4float %fa %fb %fb %fa
                 %r = OpExtInst %uint %glsl {code}"
            ),
            "",
            &pairs,
        )
    };
    let norm = |x: f32, low: f32, most: f32, mask: u32| {
        ((x.clamp(low, 1.0) * most).round_ties_even() as i32 as u32) & mask
    };
    for ((a, b), w) in pairs.iter().zip(pack("54 %v4")) {
        let (p, q) = (norm(*a, -1.0, 127.0, 0xff), norm(*b, -1.0, 127.0, 0xff));
        assert_eq!(w, p | q << 8 | q << 16 | p << 24);
    }
    for ((a, b), w) in pairs.iter().zip(pack("55 %v4")) {
        let (p, q) = (norm(*a, 0.0, 255.0, 0xff), norm(*b, 0.0, 255.0, 0xff));
        assert_eq!(w, p | q << 8 | q << 16 | p << 24);
    }
    for ((a, b), w) in pairs.iter().zip(pack("56 %v2")) {
        assert_eq!(w, norm(*a, -1.0, 32767.0, 0xffff) | norm(*b, -1.0, 32767.0, 0xffff) << 16);
    }
    for ((a, b), w) in pairs.iter().zip(pack("57 %v2")) {
        assert_eq!(w, norm(*a, 0.0, 65535.0, 0xffff) | norm(*b, 0.0, 65535.0, 0xffff) << 16);
    }
    // Unpacking what was packed: the ends are exact.
    let words: Vec<(f32, f32)> =
        [0u32, 0xff, 0x80, 0x7f, 0x81, 1, 0x40, 0xfe].iter().map(|w| (f32::from_bits(*w), 0.0)).collect();
    for (number, f) in [
        (64, (|b: u32| b as f32 / 255.0) as fn(u32) -> f32),
        (63, |b| (b as u8 as i8 as f32 / 127.0).max(-1.0)),
    ] {
        let out = at_points(
            &format!(
                "%u = OpExtInst %v4float %glsl {number} %a\n%fr = OpCompositeExtract %float %u 0\n%r = OpBitcast %uint %fr"
            ),
            "",
            &words,
        );
        for (w, got) in words.iter().zip(&out) {
            let want = f(w.0.to_bits());
            assert!(ulps(f32::from_bits(*got), want as f64) <= 1.0, "{:x}", w.0.to_bits());
            if want.abs() == 1.0 {
                assert_eq!(f32::from_bits(*got), want);
            }
        }
    }
}

#[test]
fn matrices() {
    // The inverse of a matrix times the matrix, for 2, 3 and 4 columns.
    for n in 2..=4u32 {
        let globals = format!("%mat = OpTypeMatrix %v{n}float {n}");
        // Columns from the two numbers: diagonal dominant, so well conditioned.
        let mut code = String::new();
        let mut columns = String::new();
        for c in 0..n {
            let mut parts = String::new();
            for r in 0..n {
                let op = if r == c {
                    format!("%e{c}{r} = OpFAdd %float %fa %f{}\n", 2)
                } else if (r + c) % 2 == 0 {
                    format!("%e{c}{r} = OpFSub %float %fb %f{}\n", c % 3)
                } else {
                    format!("%e{c}{r} = OpFMul %float %fb %f{}\n", r % 3)
                };
                code.push_str(&op);
                parts.push_str(&format!(" %e{c}{r}"));
            }
            code.push_str(&format!("%col{c} = OpCompositeConstruct %v{n}float{parts}\n"));
            columns.push_str(&format!(" %col{c}"));
        }
        code.push_str(&format!(
            "%m = OpCompositeConstruct %mat{columns}\n%inv = OpExtInst %mat %glsl 34 %m\n"
        ));
        code.push_str("%id = OpMatrixTimesMatrix %mat %m %inv\n");
        // Sum of the absolute values of (id - 1) on the diagonal and id elsewhere.
        code.push_str("%sum0 = OpFSub %float %f0 %f0\n");
        let mut k = 0;
        for c in 0..n {
            for r in 0..n {
                code.push_str(&format!("%x{k} = OpCompositeExtract %float %id {c} {r}\n"));
                code.push_str(&format!("%y{k} = OpFSub %float %x{k} %f{}\n", (r == c) as u32));
                code.push_str(&format!("%z{k} = OpExtInst %float %glsl 4 %y{k}\n"));
                code.push_str(&format!("%sum{} = OpFAdd %float %sum{k} %z{k}\n", k + 1));
                k += 1;
            }
        }
        code.push_str(&format!("%r = OpBitcast %uint %sum{k}"));
        let out = at_points(&code, &globals, &[(5.0, 0.25), (9.0, 1.5), (-11.0, 0.5), (20.0, -3.0)]);
        for w in &out[..4] {
            assert!(f32::from_bits(*w) < 1e-5, "{n}: {}", f32::from_bits(*w));
        }
    }
}

#[test]
fn geometry() {
    let pairs = [(0.6f32, 0.8f32), (1.0, 0.0), (0.28, 0.96), (-0.6, 0.8)];
    let get = |code: &str, k: u32| {
        at_points(
            &format!(
                "%n = OpCompositeConstruct %v3float %fb %fa %f0
                 %i = OpCompositeConstruct %v3float %fa %fb %f0
                 %v = OpExtInst %v3float %glsl {code}
                 %fr = OpCompositeExtract %float %v {k}
                 %r = OpBitcast %uint %fr"
            ),
            "",
            &pairs,
        )
    };
    let close = |got: u32, want: f32| {
        assert!((f32::from_bits(got) - want).abs() < 1e-6, "{} {want}", f32::from_bits(got))
    };
    for (k, (a, b)) in pairs.iter().enumerate() {
        let (n, i) = ([*b, *a, 0.0f32], [*a, *b, 0.0f32]);
        let d = n[0] * i[0] + n[1] * i[1];
        close(get("71 %i %n", 0)[k], i[0] - 2.0 * d * n[0]);
        close(get("68 %i %n", 2)[k], i[0] * n[1] - i[1] * n[0]);
        close(get("69 %i", 1)[k], *b);
        close(get("70 %n %i %n", 0)[k], if d < 0.0 { n[0] } else { -n[0] });
        let eta = 0.5f32;
        let kk = 1.0 - eta * eta * (1.0 - d * d);
        let want = if kk < 0.0 { 0.0 } else { eta * i[0] - (eta * d + kk.sqrt()) * n[0] };
        let got = at_points(
            "%half = OpFDiv %float %f1 %f2
             %n = OpCompositeConstruct %v3float %fb %fa %f0
             %i = OpCompositeConstruct %v3float %fa %fb %f0
             %v = OpExtInst %v3float %glsl 72 %i %n %half
             %fr = OpCompositeExtract %float %v 0
             %r = OpBitcast %uint %fr",
            "",
            &pairs,
        )[k];
        close(got, want);
    }
}
