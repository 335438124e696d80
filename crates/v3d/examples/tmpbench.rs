use kempe_v3d::{asm::assemble, instr::Version, sim::*};
use kempe_ir::exec::Memory;
fn main() {
    for version in Version::ALL {
      for (name, bodytext) in [
        ("int", "add rf1, rf1, rf3; nop\nxor rf2, rf1, rf3\nshl rf4, rf2, 3\nsub rf1, rf4, rf1\nmax rf2, rf2, rf1\n"),
        ("float dual", "fadd rf1, rf1, rf3; fmul rf2, rf1, rf3\nfsub rf4, rf2, rf1; fmul rf1, rf2, rf2\nfmin rf1, rf4, rf1; fmul rf2, rf4, rf4\n"),
        ("cond", "sub.pushn -, rf1, rf3\nadd.ifa rf1, rf1, rf3; nop\n add.ifna rf2, rf1, rf3; nop\n xor.pushz -, rf2, rf1\n nop; mov.ifa rf1, rf3\n"),
        ("sfu", "recip rf1, rf3\n exp rf2, rf3\n sin rf2, rf3\nfadd rf1, rf2, rf1\n"),
        ("half", "vfpack rf1, rf3, rf3\n fadd rf2, rf1.l, rf1.h\n"),
        ("load", "nop; mov tmua, rf10\nadd rf1, rf1, rf3\nnop; nop; ldtmu.rf3\n"),
        ("store", "nop; mov tmud, rf3\nnop; mov tmua, rf10\ntmuwt -\n"),
        ("switch", "nop; nop; thrsw\nadd rf1, rf1, rf3\nadd rf2, rf1, rf3\n"),
      ] {
        let text = format!("eidx rf11; nop; ldunifrf.rf12\nitof rf3, rf11\n shl rf11, rf11, 2\n add rf10, rf11, rf12\n fadd rf1, rf3, rf3; fmul rf2, rf3, rf3\n and rf20, rf11, 0\n nop; nop; ldunifrf.rf21\ntop: add rf20, rf20, 1\n{}sub.pushn -, rf20, rf21\nb.anya top\nnop\nnop\nnop\nnop; nop; thrsw\nnop; nop; thrsw\nnop\nnop\nnop; nop; thrsw\nnop\nnop\n", bodytext.repeat(4));
        let words = assemble(version, &text).unwrap_or_else(|e| panic!("{e}"));
        let mut memory = Memory::new();
        let base = memory.place("d", vec![0; 4096], true).unwrap();
        let p = Program::new(version, words, vec![base, 20000], 4, [64, 1, 1]);
        let code = Code::new(&p);
        let t = std::time::Instant::now();
        let o = code.run(&Dispatch::new([4, 1, 1]), &mut memory, &Options::default());
        let dt = t.elapsed();
        if let Err(e) = &o.result { println!("{e}"); }
        println!("{} {name}: {} instr, {:.1} ns/instr, {:.1} M lane-instr/s", version.name(), o.instructions, dt.as_nanos() as f64 / o.instructions as f64, o.instructions as f64 * 16.0 / dt.as_secs_f64() / 1e6);
      }
    }
}
