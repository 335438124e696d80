//! Random programs: the lowered form computes bit for bit what the source form does, on both versions, with and without
//! optimisation before, however work-groups share batches. `KEMPE_SEEDS=n` runs more of them.

use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::generate::{self, generate};
use kempe_ir::interp::{Options, run};
use kempe_ir::{Module, text, verify};
use kempe_v3d::instr::Version;
use kempe_v3d::lower::{Shape, StartWords, check, lower};

const QPUS: u32 = 4;

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("KEMPE_FIRST_SEED").unwrap_or(0);
    first..first + number("KEMPE_SEEDS").unwrap_or(120)
}

fn buffers(m: &Module, inputs: &Inputs, sizes: Sizes, options: &Options, what: &str) -> Vec<Vec<u8>> {
    let env = Environment::new(m, inputs, sizes).unwrap();
    let r = run(m, &env, options).unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(m)));
    assert!(r.undefined.is_empty(), "{what}: undefined {:?}\n{}", r.undefined, text::print(m));
    env.buffer_contents(&r.memory).into_iter().map(|b| b.to_vec()).collect()
}

#[test]
fn lowering_keeps_the_meaning() {
    for seed in seeds() {
        // Exact operations only; what the others may differ by is in the unit tests.
        let shape = generate::Shape { approximate: false, ..generate::Shape::from_seed(seed) };
        let source = generate(seed, &shape);
        let inputs = generate::inputs(seed, 5, &shape);
        let what = format!("seed {seed}");
        let want = buffers(&source, &inputs, Sizes::source(), &Options::source(), &what);
        for (version, optimised) in [(Version::V71, true), (Version::V42, true), (Version::V42, false)] {
            let mut m = source.clone();
            if optimised {
                kempe_opt::optimise(&mut m, kempe_opt::Level::O2);
            }
            let before = text::print(&m);
            let what = format!("seed {seed} {}, optimised: {optimised}\n{before}", version.name());
            let lowered = lower(&mut m, version, &Shape::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
            verify::verify(&m).unwrap_or_else(|e| panic!("{what}: {e:?}\n{}", text::print(&m)));
            check(&m).unwrap_or_else(|e| panic!("{what}: {e}"));
            let threads_per_qpu = if seed % 2 == 0 { 4 } else { 2 };
            let sizes = Sizes {
                wgs_per_supergroup: if lowered.may_share_batches { 1 + (seed % 4) as u32 } else { 1 },
                scratch_bytes_per_thread: 16 * lowered.private_bytes,
                threads: 4 * QPUS,
            };
            let start = StartWords { workgroup_size: m.workgroup_size, threads_per_qpu, qpus: QPUS };
            let got = buffers(&m, &inputs, sizes, &Options::machine(&start), &what);
            assert!(got == want, "{what}\nlowered\n{}", text::print(&m));
        }
    }
}
