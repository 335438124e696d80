//! Coverage-guided fuzzing: `cargo xtask coverage TARGET [--runs N] [--seconds S] [--seed S]`.
//!
//! Builds the program of the target in `fuzz/` (a crate of its own, with LLVM's coverage instrumentation, which stable
//! compilers have as a pass) and lets libFuzzer run it over `target/coverage/TARGET/corpus`, which starts with the seeds
//! of `seeds.rs` and grows. Inputs that fail are left in `target/coverage/TARGET`, made small by `--minimise FILE`.
//! Linux on x86-64 only.

mod seeds;
#[path = "../../../crates/front/tests/common/mod.rs"]
mod spirv_text;
mod targets;

use std::path::Path;
use std::process::{Command, ExitCode};
use targets::TARGETS;

/// Inline counters for every edge, comparisons traced; the passes of debug builds stay on.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// Seconds for one input, megabytes of memory.
const TIMEOUT: u32 = 10;
const MEMORY: u32 = 2048;

pub fn run(args: &[String]) -> ExitCode {
    let usage = || {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        let names = names.join("|");
        eprintln!(
            "usage: cargo xtask coverage {names} [--runs N] [--seconds S] [--seed S] [--minimise FILE]"
        );
        ExitCode::from(2)
    };
    let Some(target) = args.first().and_then(|name| TARGETS.iter().find(|t| t.name == name)) else {
        return usage();
    };
    let mut options = vec![
        format!("-max_len={}", target.max_len),
        format!("-timeout={TIMEOUT}"),
        format!("-rss_limit_mb={MEMORY}"),
        "-print_final_stats=1".to_owned(),
    ];
    let mut minimise = None;
    let mut it = args[1..].iter();
    while let Some(name) = it.next() {
        let Some(value) = it.next() else { return usage() };
        match (name.as_str(), value.parse::<u64>()) {
            ("--runs", Ok(n)) => options.push(format!("-runs={n}")),
            ("--seconds", Ok(n)) => options.push(format!("-max_total_time={n}")),
            ("--seed", Ok(n)) => options.push(format!("-seed={n}")),
            ("--minimise", _) => minimise = Some(value.clone()),
            _ => return usage(),
        }
    }
    match start(target.name, options, minimise) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn start(target: &str, mut options: Vec<String>, minimise: Option<String>) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let work = root.join("target/coverage");
    let corpus = work.join(target).join("corpus");
    std::fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    for (n, bytes) in seeds::of(target).iter().enumerate() {
        let path = corpus.join(format!("seed-{n}"));
        std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--target", TRIPLE, "--bin", target, "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(work.join("build"))
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .status()
        .map_err(|e| format!("cargo cannot be started: {e}"))?;
    if !built.success() {
        return Err("the target cannot be built".to_owned());
    }
    let folder = work.join(target);
    options.push(format!("-artifact_prefix={}/", folder.display()));
    let mut command = Command::new(work.join("build").join(TRIPLE).join("release").join(target));
    match minimise {
        Some(file) => {
            options.retain(|o| !o.starts_with("-runs"));
            command.args(["-minimize_crash=1", "-runs=20000"]).args(&options).arg(file)
        }
        None => command.args(&options).arg(&corpus),
    };
    let status = command.status().map_err(|e| format!("{target} cannot be started: {e}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds, and each with some bytes changed, go through every target.
    #[test]
    fn seeds_pass() {
        let mut random = kempe_ir::inputs::Random(1);
        for target in &TARGETS {
            let list = seeds::of(target.name);
            assert!(list.len() >= 5, "{}: {} seeds", target.name, list.len());
            for seed in &list {
                (target.run)(seed);
                for _ in 0..20 {
                    let mut changed = seed.clone();
                    for _ in 0..1 + random.below(4) {
                        let at = random.below(changed.len() as u64) as usize;
                        changed[at] = match random.below(3) {
                            0 => random.bits() as u8,
                            1 => changed[at] ^ 1 << random.below(8),
                            _ => changed[random.below(changed.len() as u64) as usize],
                        };
                    }
                    (target.run)(&changed);
                }
            }
        }
    }

    /// The seeds reach what they are for.
    #[test]
    fn seeds_are_good() {
        for seed in seeds::of("spirv") {
            let options = kempe_front::Options::default();
            kempe_front::compile("seed.spv", &seed, kempe_front::Language::Spirv, &options).unwrap();
        }
        for seed in seeds::of("agx").iter().filter(|seed| seed[0] != 1) {
            assert!(kempe_agx::decode::decode_all(&seed[1..]).is_ok_and(|code| code.len() > 12));
        }
        for seed in seeds::of("artifact") {
            kempe::artifact::read(std::str::from_utf8(&seed).unwrap()).unwrap();
        }
        for seed in seeds::of("raw") {
            let at = seed.iter().position(|&b| b == 0).unwrap();
            kempe::raw::Raw::new(std::str::from_utf8(&seed[..at]).unwrap(), &seed[at + 1..])
                .map(|_| ())
                .unwrap();
        }
    }
}
