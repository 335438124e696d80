//! How code and compile time of real shaders grow: `cargo xtask growth [NAME]...`
//!
//! Two families written here, whose values are all live at once: sorting networks over 16 to 256 values, and two layers of
//! a small neural network of 8 to 64 inputs. The time is that of the processor, from SPIR-V to code, checks included; then
//! what of it is the allocator's. The exponent is the slope between neighbours on logarithmic axes, time over instructions.
//! `docs/allocator.md` has the table.

use kempe::compile::{CodeOptions, Keep, Options, Source, Status, compile};
use std::fmt::Write as _;
use std::process::ExitCode;

const BITONIC: [u32; 5] = [16, 32, 64, 128, 256];
const MATVEC: [u32; 4] = [8, 16, 32, 64];
const LAYERS: u32 = 2;

/// Compiles of each shader; the fastest counts.
const RUNS: u32 = 2;

/// Bitonic sorting network over `n` values in one invocation, all in variables.
fn bitonic(n: u32) -> String {
    let mut text = String::from(
        "#version 450\nlayout(local_size_x = 64) in;\n\
         layout(set = 0, binding = 0, std430) readonly buffer From { uint from[]; };\n\
         layout(set = 0, binding = 1, std430) writeonly buffer To { uint to[]; };\n\
         void main() {\n",
    );
    let _ = writeln!(text, "uint first = gl_GlobalInvocationID.x * {n}u, less, more;");
    for k in 0..n {
        let _ = writeln!(text, "uint x{k} = from[first + {k}u];");
    }
    let mut run = 2;
    while run <= n {
        let mut apart = run / 2;
        while apart > 0 {
            for one in (0..n).filter(|one| one & apart == 0) {
                let other = one | apart;
                let (low, high) = if one & run == 0 { (one, other) } else { (other, one) };
                let _ = writeln!(
                    text,
                    "less = min(x{one}, x{other}); more = max(x{one}, x{other}); x{low} = less; x{high} = more;"
                );
            }
            apart /= 2;
        }
        run *= 2;
    }
    for k in 0..n {
        let _ = writeln!(text, "to[first + {k}u] = x{k};");
    }
    text + "}\n"
}

/// `layers` products of an `n` by `n` matrix with a vector in variables, each clamped at zero.
fn matvec(n: u32, layers: u32) -> String {
    let mut text = String::from(
        "#version 450\nlayout(local_size_x = 64) in;\n\
         layout(set = 0, binding = 0, std430) readonly buffer From { float from[]; };\n\
         layout(set = 0, binding = 1, std430) writeonly buffer To { float to[]; };\n\
         layout(set = 0, binding = 2, std430) readonly buffer Weights { float weights[]; };\n\
         void main() {\n",
    );
    let _ = writeln!(text, "uint first = gl_GlobalInvocationID.x * {n}u;");
    for k in 0..n {
        let _ = writeln!(text, "float v0_{k} = from[first + {k}u];");
    }
    for layer in 0..layers {
        for row in 0..n {
            let terms: Vec<String> =
                (0..n).map(|k| format!("v{layer}_{k} * weights[{}]", (layer * n + row) * n + k)).collect();
            let _ = writeln!(text, "float v{}_{row} = max(0.0, {});", layer + 1, terms.join(" + "));
        }
    }
    for k in 0..n {
        let _ = writeln!(text, "to[first + {k}u] = v{layers}_{k};");
    }
    text + "}\n"
}

/// Instructions and milliseconds, or why there are none.
type Size = Option<(f64, f64)>;

/// Prints the row of one shader on one target.
fn row(name: &str, text: &str, target: &'static dyn kempe::Target, before: Size) -> Result<Size, String> {
    let source = Source { name: format!("{name}.comp"), contents: Ok(text.as_bytes().to_vec()), stage: None };
    let options = Options {
        targets: vec![target],
        front: kempe_front::Options::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: kempe::limits::Limits::default(),
    };
    let mut best = None;
    for _ in 0..RUNS {
        let results = compile(&source, &options);
        let [result] = &results[..] else { return Err(format!("{name}: {} results", results.len())) };
        if result.status != Status::Ok {
            println!("| {name} | {} | {} |", target.name(), result.message);
            return if result.status == Status::Bug { Err(result.message.clone()) } else { Ok(None) };
        }
        if best.as_ref().is_none_or(|(time, _)| result.compile_us < *time) {
            best = Some((result.compile_us, result.clone()));
        }
    }
    let Some((time, result)) = best else { return Ok(None) };
    let Some(artifact) = &result.artifact else { return Err(format!("{name}: no artifact")) };
    let stats = &artifact.stats;
    let allocate: f64 =
        result.passes.iter().filter(|p| p.name == "allocate").map(|p| p.time.as_secs_f64() * 1e3).sum();
    let now = (f64::from(stats.instructions), time as f64 / 1000.0);
    let slope = before.map_or("–".to_owned(), |(instructions, time)| {
        format!("{:.2}", (now.1 / time).ln() / (now.0 / instructions).ln())
    });
    println!(
        "| {name} | {} | {} | {} | {} : {} | {} | {:.1} | {allocate:.1} | {slope} |",
        target.name(),
        stats.instructions,
        stats.threads,
        stats.spills,
        stats.fills,
        stats.scratch,
        now.1,
    );
    Ok(Some(now))
}

pub fn run(args: &[String]) -> ExitCode {
    let wanted = |name: &str| args.is_empty() || args.iter().any(|part| name.contains(part.as_str()));
    let families = [
        BITONIC.map(|n| (format!("bitonic{n}"), bitonic(n))).to_vec(),
        MATVEC.map(|n| (format!("matvec{n}x{LAYERS}"), matvec(n, LAYERS))).to_vec(),
    ];
    println!(
        "| shader | target | instructions | threads | spills : fills | scratch | CPU ms | of these allocation | exponent |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut code = ExitCode::SUCCESS;
    for family in &families {
        for &target in kempe::targets() {
            let mut before = None;
            for (name, text) in family.iter().filter(|shader| wanted(&shader.0)) {
                match row(name, text, target, before) {
                    Ok(size) => before = size,
                    Err(text) => {
                        eprintln!("{name}: {text}");
                        code = ExitCode::FAILURE;
                    }
                }
            }
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The networks sort, by the shader text itself: every line of comparisons is read back and done.
    #[test]
    fn networks_sort() {
        for n in [16u32, 32] {
            let mut x: Vec<u32> = (0..n).map(|k| k * 7919 % 101).collect();
            let mut lines = 0;
            for line in bitonic(n).lines().filter(|line| line.starts_with("less")) {
                let numbers: Vec<usize> = line
                    .split(|c: char| !c.is_ascii_alphanumeric())
                    .filter_map(|word| word.strip_prefix('x')?.parse().ok())
                    .collect();
                let [one, other, _, _, low, high] = numbers[..] else { panic!("{line}") };
                let (less, more) = (x[one].min(x[other]), x[one].max(x[other]));
                (x[low], x[high]) = (less, more);
                lines += 1;
            }
            let rounds = n.ilog2() * (n.ilog2() + 1) / 2;
            assert_eq!(lines, rounds * n / 2);
            assert!(x.is_sorted(), "{x:?}");
        }
    }
}
