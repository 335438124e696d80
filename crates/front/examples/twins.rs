//! Two folders with modules of the same names that ought to mean the same (one made from the other by a SPIR-V
//! optimiser, say): both are converted and run on the same random inputs, and must give the same buffers.
//!
//! `cargo run --release -p kempe-front --no-default-features --example twins -- DIR_A DIR_B [SEEDS]`

use kempe_front::{Language, Options, compile};
use kempe_ir::Module;
use kempe_ir::exec::{Environment, Sizes};
use kempe_ir::inputs::{Usage, Verdict, search};
use kempe_ir::interp::{self, Stop, run};
use std::path::Path;

fn read(path: &Path) -> Option<Module> {
    let bytes = std::fs::read(path).ok()?;
    compile(&path.to_string_lossy(), &bytes, Language::Spirv, &Options::default()).ok()?.pop()
}

/// `None`: no input was found that both can be run on.
fn same(a: &Module, b: &Module, seed: u64) -> Option<Result<(), String>> {
    let options = interp::Options { step_limit: 1_000_000, ..interp::Options::source() };
    let mut expected = None;
    let inputs = search(a, &Usage::scan(a), seed, |inputs| {
        let env = match Environment::new(a, inputs, Sizes::source()) {
            Ok(env) => env,
            Err(e) => return Verdict::Useless(e),
        };
        match run(a, &env, &options) {
            Ok(r) if !r.undefined.is_empty() => Verdict::Useless("undefined values".to_owned()),
            Ok(r) => {
                let all: Vec<Vec<u8>> =
                    env.buffer_contents(&r.memory).into_iter().map(<[u8]>::to_vec).collect();
                expected = Some(all);
                Verdict::Fine
            }
            Err(Stop::Fault { fault, .. }) => Verdict::Outside(fault),
            Err(e) => Verdict::Useless(e.to_string()),
        }
    })
    .ok()?;
    let expected = expected?;
    let check = || -> Result<(), String> {
        let env = Environment::new(b, &inputs, Sizes::source())?;
        let r = run(b, &env, &options).map_err(|e| e.to_string())?;
        for (n, (x, y)) in expected.iter().zip(env.buffer_contents(&r.memory)).enumerate() {
            if let Some(k) = (0..x.len()).find(|k| x[*k] != y[*k]) {
                let word = |b: &[u8]| {
                    b.get(k & !3..(k & !3) + 4).map_or(0, |w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
                };
                return Err(format!("buffer {n} differs at byte {k}: {:08x} {:08x}", word(x), word(y)));
            }
        }
        Ok(())
    };
    Some(check())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [a, b, rest @ ..] = &args[..] else {
        eprintln!("usage: twins DIR_A DIR_B [SEEDS]");
        std::process::exit(2);
    };
    let seeds = rest.first().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    let mut names: Vec<_> =
        std::fs::read_dir(b).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    names.sort();
    let (mut equal, mut different, mut not_run, mut not_both) = (0, 0, 0, 0);
    for name in names {
        let (Some(x), Some(y)) = (read(&Path::new(a).join(&name)), read(&Path::new(b).join(&name))) else {
            not_both += 1;
            continue;
        };
        for seed in 0..seeds {
            match same(&x, &y, seed) {
                None => not_run += 1,
                Some(Ok(())) => equal += 1,
                Some(Err(e)) => {
                    different += 1;
                    println!("{}: seed {seed}: {e}", name.to_string_lossy());
                }
            }
        }
    }
    println!(
        "{equal} runs equal, {different} different, {not_run} without a usable input, {not_both} do not convert"
    );
}
