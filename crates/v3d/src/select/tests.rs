use super::select;
use crate::instr::Version;
use crate::regs;
use kempe_ir::generate::{Shape, generate};

/// What selection makes of random programs is a well-formed allocation problem.
#[test]
fn random_programs_are_well_formed() {
    for seed in 0..150u64 {
        let mut m = generate(seed, &Shape::from_seed(seed));
        let version = Version::ALL[seed as usize % 2];
        let threads = [2, 4][seed as usize / 2 % 2];
        if seed % 3 != 0 {
            kempe_opt::pipeline::optimise(&mut m, kempe_opt::pipeline::Level::O1);
        }
        if crate::lower::lower(&mut m, version).is_err() {
            continue;
        }
        let mir = match select(&m, version, threads) {
            Ok(mir) => mir,
            Err(e) => panic!("seed {seed}: {e}\n{}", kempe_ir::text::print(&m)),
        };
        // With registers for everything: whether the problem is well formed is the question here.
        let mut file = regs::register_file(version, threads);
        let mut more = 0;
        while file.units.len() < 250 {
            let unit = kempe_ra::Unit(file.units.len() as u16);
            file.units.push(format!("more{more}"));
            more += 1;
            for set in &mut file.sets {
                set.units.push(unit);
            }
        }
        if let Err(e) = kempe_ra::allocate(&file, &mir.program, &regs::costs(), &Default::default()) {
            panic!("seed {seed}: {e}\n{}", kempe_ir::text::print(&m));
        }
    }
}
