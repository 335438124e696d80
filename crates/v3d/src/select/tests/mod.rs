mod golden;
mod machine;

use super::select;
use crate::instr::Version;
use crate::lower::{self, StartWords};
use crate::regs;
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::generate::{INPUT_WORDS, OUTPUT_WORDS, Shape, generate};
use kempe_ir::inputs::Random;
use kempe_ir::{Module, interp, text};
use kempe_mir::Mir;
use machine::Machine;

fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("KEMPE_FIRST_SEED").unwrap_or(0);
    first..first + number("KEMPE_SEEDS").unwrap_or(default)
}

fn inputs(m: &Module, seed: u64) -> Inputs {
    let mut r = Random(seed);
    let mut words = |n: u32| (0..n).flat_map(|_| (r.bits() as u32).to_le_bytes()).collect::<Vec<u8>>();
    let groups = 3;
    let items = m.workgroup_items() * groups;
    Inputs::new([groups, 1, 1])
        .buffer(0, 0, words(INPUT_WORDS))
        .buffer(0, 1, vec![0; (items * OUTPUT_WORDS * 4) as usize])
        .buffer(0, 2, vec![0; 64])
        .buffer(0, 3, words(16))
        .push(words(4))
}

/// A random program in lowered form, or `None` where lowering refuses it.
fn program(seed: u64, version: Version) -> Option<(Module, lower::Lowered)> {
    let mut m = generate(seed, &Shape::from_seed(seed));
    let levels = [kempe_opt::Level::O0, kempe_opt::Level::O1, kempe_opt::Level::O2];
    kempe_opt::optimise(&mut m, levels[seed as usize % 3]);
    let lowered = lower::lower(&mut m, version, &Default::default()).ok()?;
    Some((m, lowered))
}

/// Runs the selected code on the machine with virtual registers and compares with the interpreter.
fn compare(
    m: &Module,
    lowered: &lower::Lowered,
    inputs: &Inputs,
    threads: u32,
    mir: &Mir<crate::mops::MInst>,
) -> Result<(), String> {
    let start = StartWords { workgroup_size: m.workgroup_size, threads_per_qpu: threads, qpus: 2 };
    let wgs = if lowered.may_share_batches { [1, 4, 16][m.workgroup_size[0] as usize % 3] } else { 1 };
    let sizes =
        Sizes { wgs_per_supergroup: wgs, scratch_bytes_per_thread: 16 * lowered.private_bytes, threads: 16 };
    let env = Environment::new(m, inputs, sizes)?;
    let expected =
        interp::run(m, &env, &interp::Options::machine(&start)).map_err(|e| format!("interpreter: {e}"))?;
    let mut machine = Machine { mir, env: &env, memory: env.memory.clone(), start: &start, steps: 0 };
    machine.run(m)?;
    if env.buffer_contents(&machine.memory) != env.buffer_contents(&expected.memory) {
        return Err("the results differ".to_owned());
    }
    Ok(())
}

/// Whether the allocator accepts what selection made; with registers for everything, because that is not the question.
fn well_formed(version: Version, threads: u32, mir: &Mir<crate::mops::MInst>) -> Result<(), String> {
    let mut file = regs::register_file(version, threads);
    for more in file.units.len()..250 {
        file.units.push(format!("more{more}"));
        for set in &mut file.sets {
            set.units.push(kempe_ra::Unit(more as u16));
        }
    }
    kempe_ra::allocate(&file, &mir.program, &regs::costs(), &Default::default())
        .map(|_| ())
        .map_err(|e| e.to_string())
}

#[test]
fn random_programs_compute_what_the_interpreter_says() {
    let mut count = 0;
    for seed in seeds(200) {
        let version = Version::ALL[seed as usize / 3 % 2];
        let threads = [2, 4][seed as usize / 6 % 2];
        let Some((m, lowered)) = program(seed, version) else { continue };
        let fail = |e: String| -> ! { panic!("seed {seed}: {e}\n{}", text::print(&m)) };
        let mut mir = select(&m, &lowered, version, threads).unwrap_or_else(|e| fail(e.to_string()));
        well_formed(version, threads, &mir).unwrap_or_else(|e| fail(e));
        let inputs = inputs(&m, seed);
        compare(&m, &lowered, &inputs, threads, &mir).unwrap_or_else(|e| fail(e));
        kempe_mir::order::order(&mut mir, kempe_mir::order::Room { aim: 24, registers: 32, memory: 10 });
        compare(&m, &lowered, &inputs, threads, &mir).unwrap_or_else(|e| fail(format!("ordered: {e}")));
        count += 1;
    }
    assert!(count > 0);
}
