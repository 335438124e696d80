//! How code and compile time of real shaders grow: `cargo xtask growth [NAME]...`
//!
//! Two families written here, whose values are all live at once: sorting networks over 16 to 256 values, and two layers of
//! a small neural network of 8 to 64 inputs. The time is that of the processor, from SPIR-V to code, checks included; then
//! what of it is the allocator's. The exponent is the slope between neighbours on logarithmic axes, time over instructions.
//! `docs/allocator.md` has the table.

use crate::quality::kempe;
use std::fmt::Write as _;
use std::path::Path;
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

/// Instructions and milliseconds.
type Size = (f64, f64);

/// One shader on one target, its row and its size; a refusal has a row too.
fn row(
    name: &str,
    file: &Path,
    target: &str,
    before: Option<Size>,
) -> Result<(String, Option<Size>), String> {
    let mut best: Option<serde_json::Value> = None;
    let time = |result: &serde_json::Value| result["compile_us"].as_f64().unwrap_or(f64::INFINITY);
    for _ in 0..RUNS {
        let args = ["-t", target, "--format", "json", "--time-passes"].map(AsRef::as_ref);
        let run = kempe(&[&["compile".as_ref(), file.as_os_str()], &args[..]].concat())?;
        let value: serde_json::Value = serde_json::from_slice(&run.stdout).map_err(|e| e.to_string())?;
        let result = &value["results"][0];
        if result["status"] == "bug" {
            return Err(result["message"].to_string());
        }
        if result["status"] != "ok" {
            return Ok((format!("| {name} | {target} | {} |", result["message"]), None));
        }
        if best.as_ref().is_none_or(|known| time(result) < time(known)) {
            best = Some(result.clone());
        }
    }
    let Some(best) = best else { return Err("nothing was compiled".to_owned()) };
    let stats = &best["stats"];
    let now = (stats["instructions"].as_f64().unwrap_or(f64::NAN), time(&best) / 1000.0);
    let slope = before.map_or("–".to_owned(), |(instructions, time)| {
        format!("{:.2}", (now.1 / time).ln() / (now.0 / instructions).ln())
    });
    let allocation = best["passes_us"]["allocate"].as_f64().unwrap_or(f64::NAN) / 1000.0;
    let text = format!(
        "| {name} | {target} | {} | {} | {} : {} | {} | {:.1} | {allocation:.1} | {slope} |",
        now.0, stats["threads"], stats["spills"], stats["fills"], stats["scratch"], now.1,
    );
    Ok((text, Some(now)))
}

pub fn run(args: &[String]) -> ExitCode {
    match table(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn table(args: &[String]) -> Result<(), String> {
    let wanted = |name: &str| args.is_empty() || args.iter().any(|part| name.contains(part.as_str()));
    let families = [
        BITONIC.map(|n| (format!("bitonic{n}"), bitonic(n))).to_vec(),
        MATVEC.map(|n| (format!("matvec{n}x{LAYERS}"), matvec(n, LAYERS))).to_vec(),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/growth");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!(
        "| shader | target | instructions | threads | spills : fills | scratch | CPU ms | of these allocation | exponent |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for family in &families {
        for target in crate::targets::usual() {
            let mut before = None;
            for (name, text) in family.iter().filter(|shader| wanted(&shader.0)) {
                let file = folder.join(format!("{name}.comp"));
                std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
                let (text, size) =
                    row(name, &file, target.name(), before).map_err(|e| format!("{name}: {e}"))?;
                println!("{text}");
                before = size;
            }
        }
    }
    Ok(())
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
