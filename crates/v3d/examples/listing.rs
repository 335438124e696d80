//! Machine instructions and code of a program in the text form of the IR:
//! `cargo run -p kempe-v3d --example listing -- FILE.kir v3d42|v3d71 [force-spill] [threads=N] [registers=N] [binning] [verify] [O0|O1]`.
//!
//! For what `cargo xtask fuzz` has made small.

use kempe_v3d::asm::disassemble;
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::instr::Version;
use kempe_v3d::mops::MInst;

struct Show(Version);

impl Observer for Show {
    fn lowered(&mut self, m: &kempe_ir::Module) {
        println!("{}", kempe_ir::text::print(m));
    }

    fn selected(&mut self, threads: u32, mir: &kempe_mir::Mir<MInst>) {
        println!("# {threads} threads\n{}", kempe_mir::print::print(mir));
    }

    fn finished(
        &mut self,
        _: &kempe_mir::Mir<MInst>,
        allocation: &kempe_ra::Allocation,
        _: &kempe_v3d::finish::Frame,
        code: &kempe_v3d::finish::Finished,
    ) {
        for (point, edit) in &allocation.edits {
            println!("{point:?}: {edit:?}");
        }
        for (n, &word) in code.words.iter().enumerate() {
            println!("{n:4} {:3} {}", code.provenance[n].inst as i32, disassemble(self.0, word, false));
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, target, rest @ ..] = args.as_slice() else {
        eprintln!(
            "usage: listing FILE.kir v3d42|v3d71 [force-spill] [threads=N] [registers=N] [binning] [verify]"
        );
        std::process::exit(2);
    };
    let Some(version) = Version::ALL.into_iter().find(|v| v.name() == target) else {
        eprintln!("no target `{target}`");
        std::process::exit(2);
    };
    let mut options = Options::default();
    let mut level = kempe_opt::Level::O2;
    for a in rest {
        match a.split_once('=') {
            Some(("threads", n)) => options.threads = n.parse().ok(),
            Some(("registers", n)) => options.max_registers = n.parse().ok(),
            _ if a == "O0" => level = kempe_opt::Level::O0,
            _ if a == "O1" => level = kempe_opt::Level::O1,
            _ if a == "scan" => options.engine = kempe_ra::Engine::Scan,
            _ if a == "graph" => options.engine = kempe_ra::Engine::Graph,
            _ if a == "force-spill" => options.force_spill = true,
            _ if a == "verify" => options.verify = true,
            _ if a == "binning" => options.shape.binning = true,
            _ => eprintln!("`{a}` is not known"),
        }
    }
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| {
        eprintln!("{file}: {e}");
        std::process::exit(2);
    });
    let mut m = match kempe_ir::text::parse(&text) {
        Ok(m) => m,
        Err(e) => {
            eprintln!("{file}: {e}");
            std::process::exit(1);
        }
    };
    let mut choices = kempe_opt::Options::new(level);
    choices.vector_within_16 = version == Version::V42;
    kempe_opt::optimise_with(&mut m, &choices, &mut ());
    if let Err(e) = compile(m, version, &options, &mut Show(version)) {
        println!("{e}");
        std::process::exit(1);
    }
}
