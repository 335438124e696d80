//! Optimises every compute module below the given folders and says what came of it: sizes, memory accesses, loops,
//! time by pass, the slowest modules.
//!
//! `cargo run --release -p kempe-opt --example survey -- DIR... [--run] [--print] [--filter TEXT] [--verify] [--list] [--level 0|1|2] [--repeat N]`
//!
//! `--verify` looks at the module after every pass, `--list` prints a line for every module, `--repeat N` times each
//! module as the least of N runs (and no single passes), `--run` executes every module before and after on two random
//! inputs and compares.

use kempe_front::{Language, compile};
use kempe_ir::{Module, Op, Space, Type};
use kempe_opt::{Level, Observer, Options, Times, optimise_with};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    if dir.is_file() {
        out.push(dir.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for e in entries.flatten() {
        let path = e.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|x| x == "spv") {
            out.push(path);
        }
    }
}

/// CPU time of this thread where the system tells it, else wall-clock time.
fn cpu(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    match told.and_then(|s| s.split(' ').next()?.parse().ok()) {
        Some(ns) => Duration::from_nanos(ns),
        None => start.elapsed(),
    }
}

struct Watch {
    start: Instant,
    last: Duration,
    times: Times,
    verify: bool,
    error: Option<String>,
}

impl Observer for Watch {
    fn pass(&mut self, name: &'static str, _: Duration, changed: bool, m: &Module) {
        let now = cpu(self.start);
        self.times.pass(name, now - self.last, changed, m);
        if self.verify
            && self.error.is_none()
            && let Err(e) = kempe_ir::verify::verify(m)
        {
            self.error = Some(format!("after {name}: {}", e[0]));
        }
        self.last = cpu(self.start);
    }
}

#[derive(Default, Clone, Copy)]
struct Count {
    insts: usize,
    blocks: usize,
    loops: usize,
    memory: usize,
    components: usize,
    private: usize,
}

impl Count {
    fn of(m: &Module) -> Count {
        let f = &m.func;
        let mut c = Count { blocks: f.layout.len(), ..Count::default() };
        c.loops = kempe_opt::graph::Loops::new(f, &kempe_opt::graph::Graph::new(f)).list.len();
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let d = &f.insts[i];
                c.insts += (d.op != Op::Const) as usize;
                if matches!(d.op, Op::Load | Op::Store) {
                    let private = matches!(f.ty(d.args[0]), Type::Ptr(Space::Private));
                    c.memory += 1;
                    c.private += private as usize;
                    c.components += d.results.len().max(d.args.len() - 1);
                }
            }
        }
        c
    }

    fn add(&mut self, o: Count) {
        self.insts += o.insts;
        self.blocks += o.blocks;
        self.loops += o.loops;
        self.memory += o.memory;
        self.components += o.components;
        self.private += o.private;
    }

    fn line(&self) -> String {
        format!(
            "{} instructions, {} blocks, {} loops, {} accesses ({} components, {} private)",
            self.insts, self.blocks, self.loops, self.memory, self.components, self.private
        )
    }
}

/// Runs a module before and after on inputs that stay inside its buffers: `Ok(steps)` when the results are equal,
/// `Err(None)` when no such input was found or the module uses undefined values, `Err(why)` when they differ.
fn compare(before: &Module, after: &Module, seed: u64) -> Result<(u64, u64), Option<String>> {
    use kempe_ir::exec::{Environment, Sizes};
    use kempe_ir::inputs::{Usage, Verdict, search};
    use kempe_ir::interp::{Form, Options, Stop, run};
    const STEPS: u64 = 2_000_000;
    let options = Options { step_limit: STEPS, ..Options::source() };
    let usage = Usage::scan(before);
    let mut expected = None;
    let inputs = search(before, &usage, seed, |inputs| {
        let env = match Environment::new(before, inputs, Sizes::source()) {
            Ok(env) => env,
            Err(e) => return Verdict::Useless(e),
        };
        match run(before, &env, &options) {
            Ok(r) if !r.undefined.is_empty() => Verdict::Useless("undefined values".to_owned()),
            Ok(r) => {
                let all: Vec<Vec<u8>> =
                    env.buffer_contents(&r.memory).into_iter().map(|b| b.to_vec()).collect();
                // Invocations that race have no one result: another order of lanes shows it.
                let alone = Options { form: Form::Source { subgroup_size: 1 }, ..options };
                let again = run(before, &env, &alone);
                let same = again
                    .is_ok_and(|r| env.buffer_contents(&r.memory).into_iter().eq(all.iter().map(|b| &b[..])));
                if !same && !before.uses_subgroups {
                    return Verdict::Useless("depends on the order of invocations".to_owned());
                }
                expected = Some((all, r.steps));
                Verdict::Fine
            }
            Err(Stop::Fault { fault, .. }) => Verdict::Outside(fault),
            Err(e) => Verdict::Useless(e.to_string()),
        }
    })
    .map_err(|_| None)?;
    let Some((all, steps)) = expected else { return Err(None) };
    let env = Environment::new(after, &inputs, Sizes::source()).map_err(Some)?;
    let r = run(after, &env, &options).map_err(|e| Some(e.to_string()))?;
    let got: Vec<Vec<u8>> = env.buffer_contents(&r.memory).into_iter().map(|b| b.to_vec()).collect();
    for (n, (a, b)) in all.iter().zip(&got).enumerate() {
        if let Some(at) = (0..a.len()).find(|&k| a[k] != b[k]) {
            return Err(Some(format!("buffer {n} differs at byte {at}")));
        }
    }
    Ok((steps, r.steps))
}

fn main() {
    let mut filter = ".comp.".to_owned();
    let (mut dirs, mut list, mut verify, mut level) = (Vec::new(), false, false, Level::O2);
    let (mut repeat, mut execute, mut ran, mut not_run, mut differ) = (1, false, 0, 0, 0);
    let mut steps = (0, 0);
    let mut print = false;
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--filter" => filter = args.next().unwrap_or_default(),
            "--list" => list = true,
            "--run" => execute = true,
            "--print" => print = true,
            "--repeat" => repeat = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            "--verify" => verify = true,
            "--level" => {
                level = match args.next().as_deref() {
                    Some("0") => Level::O0,
                    Some("1") => Level::O1,
                    _ => Level::O2,
                }
            }
            _ => dirs.push(PathBuf::from(a)),
        }
    }
    let mut files = Vec::new();
    for d in &dirs {
        collect(d, &mut files);
    }
    files.retain(|f| f.to_string_lossy().contains(&filter));
    files.sort();
    let options = Options::new(level);
    let (mut modules, mut panics, mut invalid) = (0, 0, 0);
    let (mut before, mut after) = (Count::default(), Count::default());
    let mut times: Vec<(f64, String)> = Vec::new();
    let start = Instant::now();
    let mut watch = Watch { start, last: Duration::ZERO, times: Times::default(), verify, error: None };
    for f in &files {
        let Ok(bytes) = std::fs::read(f) else { continue };
        let name = f.to_string_lossy().into_owned();
        let Ok(all) = compile(&name, &bytes, Language::Spirv, &kempe_front::Options::default()) else {
            continue;
        };
        for m in all {
            let a = Count::of(&m);
            let source = m.clone();
            // The least of several runs: other work on the machine only ever adds.
            let mut time = f64::MAX;
            let mut result = None;
            for _ in 0..repeat.max(1) {
                let mut m = m.clone();
                let begin = Instant::now();
                watch.last = cpu(start);
                result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    if repeat > 1 {
                        optimise_with(&mut m, &options, &mut ());
                    } else {
                        optimise_with(&mut m, &options, &mut watch);
                    }
                    m
                }))
                .ok();
                time = time.min(begin.elapsed().as_secs_f64() * 1e3);
            }
            modules += 1;
            let Some(m) = result else {
                panics += 1;
                println!("PANIC {name}");
                continue;
            };
            if let Some(e) = watch.error.take() {
                invalid += 1;
                println!("INVALID {name}: {e}");
            }
            if print {
                println!("{}", kempe_ir::text::print(&m));
            }
            if execute {
                for seed in 0..2 {
                    match compare(&source, &m, seed) {
                        Ok((a, b)) => {
                            ran += 1;
                            steps = (steps.0 + a, steps.1 + b);
                        }
                        Err(None) => not_run += 1,
                        Err(Some(why)) => {
                            differ += 1;
                            println!("DIFFERS {name} (seed {seed}): {why}");
                        }
                    }
                }
            }
            let b = Count::of(&m);
            if list {
                println!("{name}: {time:.2} ms\n    {}\n    {}", a.line(), b.line());
            }
            before.add(a);
            after.add(b);
            times.push((time, name.clone()));
        }
    }
    println!("{modules} modules, {panics} panics, {invalid} invalid");
    println!("before: {}\nafter:  {}", before.line(), after.line());
    if execute {
        println!(
            "runs: {ran} equal, {differ} differ, {not_run} without usable input; {} instructions executed before, {} after",
            steps.0, steps.1
        );
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    if !times.is_empty() {
        let at = |p: usize| times[(times.len() - 1) * p / 100].0;
        println!("time: median {:.3} ms, p90 {:.3} ms, most {:.3} ms", at(50), at(90), at(100));
        for (t, name) in times.iter().rev().take(8) {
            println!("    {t:9.3} ms  {name}");
        }
    }
    for (name, t, n) in &watch.times.rows {
        println!("{:>12} {:9.1} ms {n:8} runs", name, t.as_secs_f64() * 1e3);
    }
}
