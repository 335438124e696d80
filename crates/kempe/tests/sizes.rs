//! Great sizes and odd control flow down the whole road, SPIR-V or text to artifact, for every target: code that computes what the
//! source says, or a refusal that says what is too large, within the limits of time and memory that every compile has.

#![cfg(feature = "glsl")]

#[path = "../../front/tests/common/mod.rs"]
mod common;

use common::{body, bytes, shader, sizes};
use kempe::Stage;
use kempe::compile::{CodeOptions, Keep, Options, Source, Status, compile, source_module};
use kempe::exec::Inputs;
use kempe::limits::{Allocator, Limits};
use kempe::run::{RunOptions, interpret, run_artifact};
use kempe::{Artifact, FrontOptions};
use std::fmt::Write;

/// Makes the limit of memory exact.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const IN: [u32; 8] = [0, 1, 2, 3, 100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

fn spirv(words: &[u32]) -> Source {
    Source { name: "sizes.spv".to_owned(), contents: Ok(bytes(words)), stage: None }
}

/// A compute shader in GLSL, with `f` called for the word `a` of each of eight lanes and its number `x`.
fn glsl(functions: &str) -> Source {
    let text = format!(
        "#version 450
        layout(local_size_x = 8) in;
        layout(std430, binding = 0) buffer O {{ uint o[]; }};
        layout(std430, binding = 1) readonly buffer I {{ uint i[]; }};
        {functions}
        void main() {{ uint x = gl_GlobalInvocationID.x; o[x] = f(i[x], x); }}"
    );
    Source { name: "sizes.comp".to_owned(), contents: Ok(text.into_bytes()), stage: Some(Stage::Compute) }
}

fn options() -> Options {
    Options {
        targets: kempe::targets().to_vec(),
        front: FrontOptions::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: Limits::default(),
    }
}

/// The code for every target.
///
/// # Errors
/// The message of the refusal; a bug or a limit is a failure at once.
fn made(name: &str, source: &Source) -> Result<Vec<Artifact>, String> {
    let mut out = Vec::new();
    for r in compile(source, &options()) {
        match r.status {
            Status::Ok => out.push(r.artifact.expect("code")),
            Status::Error => return Err(r.message),
            Status::Limit | Status::Bug => panic!("{name} for {}: {}", r.target, r.message),
        }
    }
    assert_eq!(out.len(), kempe::targets().len());
    Ok(out)
}

fn inputs() -> Inputs {
    Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 32]).buffer(0, 1, bytes(&IN))
}

/// The eight words that a run gives, without the step limit in the way.
fn words(buffer: &[u8]) -> [u32; 8] {
    std::array::from_fn(|n| u32::from_le_bytes(buffer[4 * n..4 * n + 4].try_into().expect("four bytes")))
}

/// Compiles a source and runs it: interpreter and every target give what `value` computes from a word and the number of its lane.
fn judge(name: &str, source: &Source, value: impl Fn(u32, u32) -> u32) {
    let want: [u32; 8] = std::array::from_fn(|n| value(IN[n], n as u32));
    let module = source_module(source, &options()).unwrap_or_else(|e| panic!("{name}: {}", e.report));
    let run = RunOptions::default();
    let meant = interpret(&module, &inputs(), &run).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(words(&meant.buffers[0].bytes), want, "{name}: the source");
    for artifact in made(name, source).unwrap_or_else(|e| panic!("{name}: {e}")) {
        let got = run_artifact(&artifact, &inputs(), &run).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(words(&got.buffers[0].bytes), want, "{name} on {}", artifact.target);
    }
}

#[test]
fn long_blocks() {
    for n in [10, 2000, 200_000] {
        let (name, words, value) = sizes::long_block(n);
        judge(&name, &spirv(&words), |a, _| value(a));
    }
}

#[test]
fn deep_nests() {
    for n in [5, 500] {
        let (name, words, value) = sizes::nest(n);
        judge(&name, &spirv(&words), |a, _| value(a));
    }
    // As text, with another value on each level: a way in and a way out.
    for n in [5, 200] {
        let open: String = (0..n).map(|k| format!("if (a > {k}u) {{ r += {k}u;\n")).collect();
        let close: String = (0..n).map(|k| format!("r ^= {k}u; }}\n")).collect();
        let text = format!("uint f(uint a, uint x) {{ uint r = x; {open}{close} return r; }}");
        judge(&format!("{n} levels of text"), &glsl(&text), |a, x| {
            let inside = n.min(a);
            let down = (0..inside).fold(x, u32::wrapping_add);
            (n - inside..n).fold(down, |r, k| r ^ k)
        });
    }
}

#[test]
fn many_functions() {
    for n in [10, 1000] {
        let (name, words, value) = sizes::functions(n);
        judge(&name, &spirv(&words), |a, _| value(a));
    }
    let functions: String =
        (0..1000).map(|k| format!("uint g{k}(uint v) {{ return v * 3u + {k}u; }}\n")).collect();
    let calls: String = (0..1000).map(|k| format!("a = g{k}(a);\n")).collect();
    let text = format!("{functions} uint f(uint a, uint x) {{ {calls} return a; }}");
    judge("1000 functions of text", &glsl(&text), |a, _| {
        (0..1000u32).fold(a, |a, k| a.wrapping_mul(3).wrapping_add(k))
    });
}

/// Every third case has a way out; the others fall into the next one.
#[test]
fn switches_that_fall_through() {
    for n in [7u32, 600] {
        let mut cases = String::new();
        for k in 0..n {
            let out = if k % 3 == 2 { "break;" } else { "" };
            writeln!(cases, "case {k}: r = r * 3u + {k}u; {out}").unwrap();
        }
        let text = format!(
            "uint f(uint a, uint x) {{
                uint r = x;
                switch (int(a % {}u)) {{ {cases} default: r += 1000u; }}
                return r;
            }}",
            n + 2
        );
        judge(&format!("{n} cases"), &glsl(&text), |a, x| {
            let (mut r, mut k) = (x, a % (n + 2));
            if k >= n {
                return r + 1000;
            }
            loop {
                r = r.wrapping_mul(3).wrapping_add(k);
                if k % 3 == 2 {
                    return r;
                }
                k += 1;
                if k == n {
                    // The last case falls into the default.
                    return r.wrapping_add(1000);
                }
            }
        });
    }
}

#[test]
fn loops_with_several_exits() {
    for n in [3u32, 150] {
        let mut exits = String::new();
        for k in 0..n {
            let way = ["break", "continue", "return r + 7u"][k as usize % 3];
            writeln!(exits, "if ((r ^ i) % {}u == 0u) {{ r += {k}u; {way}; }}\nr += a;", k + 5).unwrap();
        }
        let text = format!(
            "uint f(uint a, uint x) {{
                uint r = x;
                for (uint i = 0u; i < 20u; i++) {{ {exits} }}
                return r;
            }}"
        );
        judge(&format!("{n} exits"), &glsl(&text), |a, x| {
            let mut r = x;
            'all: for i in 0..20 {
                for k in 0..n {
                    if (r ^ i) % (k + 5) == 0 {
                        r = r.wrapping_add(k);
                        match k % 3 {
                            0 => break 'all,
                            1 => continue 'all,
                            _ => return r.wrapping_add(7),
                        }
                    }
                    r = r.wrapping_add(a);
                }
            }
            r
        });
    }
}

/// Returns from selections and from loops inside of each other, in a function that is called twice.
#[test]
fn early_returns() {
    for n in [3u32, 200] {
        let returns: String = (0..n)
            .map(|k| format!("if (v % {}u == 1u) return v + {k}u;\nv = v * 5u + 1u;\n", k + 3))
            .collect();
        let text = format!(
            "uint g(uint v, uint x) {{
                for (uint i = 0u; i < x; i++)
                    for (uint j = 0u; j < 3u; j++) {{
                        if (v == i * j) return j;
                        v += i + j;
                    }}
                {returns} return v;
            }}
            uint f(uint a, uint x) {{ return g(a, x) ^ g(x, a & 3u); }}"
        );
        let g = |mut v: u32, x: u32| {
            for i in 0..x {
                for j in 0..3 {
                    if v == i * j {
                        return j;
                    }
                    v = v.wrapping_add(i + j);
                }
            }
            for k in 0..n {
                if v % (k + 3) == 1 {
                    return v.wrapping_add(k);
                }
                v = v.wrapping_mul(5).wrapping_add(1);
            }
            v
        };
        judge(&format!("{n} returns"), &glsl(&text), |a, x| g(a, x) ^ g(x, a & 3));
    }
}

/// Blocks that nothing leads to: some that lead to each other, some that lead back into what is reached, ends that are never reached.
#[test]
fn unreachable_blocks() {
    for n in [2, 2000] {
        let mut lost = String::new();
        for k in 0..n {
            let next =
                if k % 2 == 0 { "OpUnreachable".to_owned() } else { format!("OpBranch %lost{}", k - 1) };
            writeln!(lost, "%lost{k} = OpLabel\n%n{k} = OpIAdd %uint %u1 %u{}\n{next}", k % 5).unwrap();
        }
        let code = format!(
            "%c = OpUGreaterThan %bool %a %u3
            OpSelectionMerge %join 0
            OpSwitch %x %other 1 %one 2 %never
            %one = OpLabel
            OpBranch %join
            {lost}
            %other = OpLabel
            OpBranch %join
            %never = OpLabel
            OpSelectionMerge %dead 0
            OpBranchConditional %c %left %right
            %left = OpLabel
            OpBranch %join
            %right = OpLabel
            OpBranch %join
            %dead = OpLabel
            OpUnreachable
            %join = OpLabel
            %p = OpPhi %uint %u1 %one %u10 %other %u2 %left %u3 %right
            %r = OpIAdd %uint %p %a"
        );
        judge(&format!("{n} unreachable blocks"), &spirv(&shader("", &body(&code))), |a, x| {
            let p = match x {
                1 => 1,
                2 if a > 3 => 2,
                2 => 3,
                _ => 10,
            };
            a.wrapping_add(p)
        });
    }
    let text = "uint f(uint a, uint x) {
        if (false) { a = 7u; while (true) a++; }
        for (;;) { if (a > x) { return a - x; a++; } else { return x; } }
        return 99u;
    }";
    judge("code behind returns", &glsl(text), |a, x| if a > x { a - x } else { x });
}

/// Loops without an end: code that runs for ever where a lane gets into one, and is right where none does.
#[test]
fn infinite_loops() {
    for n in [1, 60] {
        let open = "while (true) { o[x + 8u] = a;\n".repeat(n);
        let close = "}\n".repeat(n);
        let text = format!("uint f(uint a, uint x) {{ if (x > 8u) {{ {open}{close} }} return a + 1u; }}");
        judge(&format!("{n} infinite loops that nobody enters"), &glsl(&text), |a, _| a.wrapping_add(1));
        let text = format!(
            "uint f(uint a, uint x) {{ uint k = a; if (x > 3u) {{ {}{close} }} return k; }}",
            "while (true) { k += a;\n".repeat(n)
        );
        let name = format!("{n} infinite loops");
        let source = glsl(&text);
        let short = RunOptions { step_limit: 100_000, ..RunOptions::default() };
        let module = source_module(&source, &options()).unwrap_or_else(|e| panic!("{}", e.report));
        let e = interpret(&module, &inputs(), &short).expect_err("it has no end").to_string();
        assert!(e.contains("100000"), "{name}: {e}");
        for artifact in made(&name, &source).unwrap_or_else(|e| panic!("{name}: {e}")) {
            let e = run_artifact(&artifact, &inputs(), &short).expect_err("it has no end").to_string();
            let ends = ["more than 100000 instructions", "a jump to itself never ends"];
            assert!(ends.iter().any(|end| e.contains(end)), "{name} on {}: {e}", artifact.target);
        }
    }
}

/// What is beyond the limits is refused by name, not tried.
#[test]
fn beyond_the_limits() {
    let refused = |name: &str, source: &Source| made(name, source).expect_err(name);
    let (name, words, _) = sizes::long_block(1_100_000);
    let e = refused(&name, &spirv(&words));
    assert!(e.contains("1048576 instructions"), "{name}: {e}");
    let text = "uint f(uint a, uint x) { uint r[5000]; r[a % 5000u] = x; r[x] += a; return r[a & 1023u] + r[x * 7u]; }";
    let e = refused("an array of 20 kB in each lane", &glsl(&text.replace("5000", "50000")));
    assert!(e.contains("private"), "{e}");
}
