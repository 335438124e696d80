//! Hand-written programs: what runs, what it gives, and which rule stops it.

use super::*;
use crate::asm::assemble;
use Version::{V42, V71};

const MARK: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n";
const SWITCH: &str = "nop; nop; thrsw\n nop\n nop\n";
const END: &str = "nop; nop; thrsw\n nop\n nop\n";

/// rf10 = address of the buffer + 4 * lane, rf11 = 4 * lane, rf12 = address of the buffer. Takes one uniform.
pub(super) const LANES_AT: &str =
    "eidx rf11; nop; ldunifrf.rf12\n shl rf11, rf11, 2\n add rf10, rf11, rf12\n";

/// A run with one buffer of 256 words that hold their own number.
pub(super) struct Run {
    version: Version,
    pub program: Program,
    dispatch: Dispatch,
    pub options: Options,
    memory: Memory,
    base: u32,
}

const WORDS: u32 = 256;

impl Run {
    /// The text is followed by the last-section mark and the end; the first uniform is the address of the buffer.
    fn new(version: Version, text: &str) -> Run {
        Run::whole(version, &format!("{text}\n{MARK}{END}"))
    }

    pub fn whole(version: Version, text: &str) -> Run {
        let words = assemble(version, text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        let mut memory = Memory::new();
        let bytes = (0..WORDS).flat_map(u32::to_le_bytes).collect();
        let base = memory.place("data", bytes, true).unwrap();
        Run {
            version,
            program: Program::new(version, words, vec![base], 2, [16, 1, 1]),
            dispatch: Dispatch::new([1, 1, 1]),
            options: Options::default(),
            memory,
            base,
        }
    }

    pub fn uniforms(mut self, more: &[u32]) -> Run {
        if let UniformStream::Words(words) = &mut self.program.uniforms {
            words.extend_from_slice(more);
        }
        self
    }

    fn loose(mut self) -> Run {
        self.options.strict = false;
        self
    }

    pub fn threads(mut self, threads: u32) -> Run {
        self.program.threads = threads;
        self
    }

    fn size(mut self, items: u32) -> Run {
        self.program.workgroup_size = [items, 1, 1];
        self
    }

    fn order(mut self, order: Order) -> Run {
        self.options.order = order;
        self
    }

    pub fn go(&mut self) -> Outcome {
        run(&self.program, &self.dispatch, &mut self.memory, &self.options)
    }

    /// Runs to the end; the buffer afterwards.
    #[track_caller]
    fn ok(mut self) -> Vec<u32> {
        let outcome = self.go();
        if let Err(fault) = outcome.result {
            panic!("{}: {fault}", self.version.name());
        }
        self.words()
    }

    fn words(&self) -> Vec<u32> {
        (0..WORDS).map(|i| self.memory.read_u32(self.base + 4 * i).unwrap()).collect()
    }

    #[track_caller]
    fn fault(mut self) -> Fault {
        let version = self.version.name();
        self.go().result.expect_err(version)
    }

    #[track_caller]
    fn stops(self, rule: &str) -> Fault {
        let fault = self.fault();
        assert_eq!(fault.rule, rule, "{fault}");
        fault
    }
}

/// Text with the register of ldunif in place of `U`.
fn uniform_register(version: Version, text: &str) -> String {
    text.replace('U', if version == V42 { "r5" } else { "rf0" })
}

#[test]
fn lanes_store_and_the_tail_does_not() {
    for version in Version::ALL {
        let store = "nop; mov tmud, rf11\n nop; mov tmua, rf10\n tmuwt -\n";
        let words = Run::new(version, &format!("{LANES_AT}{store}")).ok();
        let expected: Vec<u32> = (0..WORDS).map(|i| if i < 16 { 4 * i } else { i }).collect();
        assert_eq!(words, expected);
        let words = Run::new(version, &format!("{LANES_AT}{store}")).size(10).ok();
        assert_eq!(words[9..12], [36, 10, 11]);
    }
}

#[test]
fn values_that_do_not_exist_stop_the_run() {
    for version in Version::ALL {
        let never = format!("{LANES_AT} nop; mov tmud, rf9\n nop; mov tmua, rf10");
        let fault = Run::new(version, &never).stops("undefined");
        assert_eq!((fault.pc, fault.lane), (4, Some(0)));
        assert!(fault.message.contains("never written"), "{fault}");
        // Poison goes through arithmetic, also in one lane only.
        let one_lane = "xor.pushz -, rf11, 12\n mov.ifna rf9, rf11\n add rf9, rf9, 1\n";
        let text = format!("{LANES_AT}{}nop; mov tmud, rf9\n nop; mov tmua, rf10", in_mul(one_lane));
        assert_eq!(Run::new(version, &text).stops("undefined").lane, Some(3));
        // The lane that lacks the value does not store.
        let text = format!("{LANES_AT}{}nop; mov tmud, rf9\n nop; mov.ifna tmua, rf10", in_mul(one_lane));
        let words = Run::new(version, &text).ok();
        assert_eq!(words[..5], [1, 5, 9, 3, 17]);
        // A register against itself is zero whatever it holds.
        let zero = format!(
            "{LANES_AT} xor rf9, rf9, rf9\n sub rf8, rf8, rf8\n add rf9, rf9, rf8\n nop; mov tmud, rf9\n nop; mov tmua, rf10"
        );
        assert_eq!(Run::new(version, &zero).ok()[..2], [0, 0]);
        // So an exchange by three exclusive ors carries a value past an unknown one, and the unknown one stays unknown.
        let exchange = "xor rf11, rf11, rf9\n xor rf9, rf9, rf11\n xor rf11, rf11, rf9\n";
        let store = |row: &str| format!("{LANES_AT}{exchange} nop; mov tmud, {row}\n nop; mov tmua, rf10");
        assert_eq!(Run::new(version, &store("rf9")).ok()[..2], [0, 4]);
        Run::new(version, &store("rf11")).stops("undefined");
        Run::new(version, "b.anya 0\n nop\n nop\n nop").stops("undefined");
        Run::new(version, &format!("{LANES_AT} nop; mov.ifb tmua, rf10")).stops("undefined");
        Run::new(version, &format!("{LANES_AT} nop; mov.ifb tmud, rf11\n nop; mov tmua, rf10"))
            .stops("undefined");
        // A condition that is unknown only where no lane exists.
        let text = format!(
            "{LANES_AT} nop; mov tmua, rf10\n nop; nop; ldtmu.rf1\n sub.pushn -, rf1, 2\n nop; mov.ifa tmud, rf11\n nop; mov.ifa tmua, rf10"
        );
        assert_eq!(Run::new(version, &text).size(3).ok()[..4], [0, 4, 2, 3]);
        Run::new(version, "nop; mov unifa, rf20").stops("undefined");
    }
}

/// Moves of 4.2 stand in the MUL part; so they do on 7.1 here.
fn in_mul(text: &str) -> String {
    text.replace("mov", "nop; mov")
}

#[test]
fn a_switch_takes_flags_and_accumulators() {
    for version in Version::ALL {
        let flags = format!("eidx.pushz rf1\n {SWITCH} b.anya 0\n nop\n nop\n nop");
        Run::new(version, &flags).stops("58");
        Run::new(version, &flags).loose().ok();
        // Set in the slots is set before the switch; set after it is fine.
        Run::new(version, "nop; nop; thrsw\n nop\n eidx.pushz rf1\n b.anya 0\n nop\n nop\n nop").stops("58");
        Run::new(version, &format!("{SWITCH} eidx.pushz rf1\n b.anya 0\n nop\n nop\n nop")).ok();
    }
    let accumulator = format!("{LANES_AT} add r1, rf10, 0\n{SWITCH} nop; mov tmua, r1");
    Run::new(V42, &accumulator).stops("58");
    Run::new(V42, &format!("{LANES_AT} add r1, rf10, 0\n nop; mov tmua, r1\n nop; nop; ldtmu.rf1")).ok();
    // A row survives.
    Run::new(V42, &format!("{LANES_AT} {SWITCH} nop; mov tmua, rf10\n nop; nop; ldtmu.rf1")).ok();
}

#[test]
fn loops_and_uniform_rewinds() {
    // Adds the uniform 3 four times: the branch goes back 8 words (itself, 3 slots, 4 of the body) and moves the
    // pointer back from behind its own word to the 3.
    for version in Version::ALL {
        let text = format!(
            "{LANES_AT} and rf1, rf11, 0\n and rf2, rf11, 0\n \
             top: nop; nop; ldunifrf.rf3\n add rf1, rf1, rf3\n add rf2, rf2, 1\n xor.pushz -, rf2, 4\n \
             bu.anyna top, r:unif\n nop\n nop\n nop\n nop; mov tmud, rf1\n nop; mov tmua, rf10\n tmuwt -"
        );
        let mut run = Run::new(version, &text).uniforms(&[3, -8i32 as u32]);
        let outcome = run.go();
        assert_eq!(outcome.result, Ok(()));
        assert_eq!(run.words()[..3], [12, 12, 12]);
        assert_eq!(outcome.executed[5], 4);
        assert_eq!(outcome.instructions, outcome.executed.iter().sum::<u64>());
        // One word short, and a pointer that leaves the stream.
        Run::new(version, &text).uniforms(&[3]).stops("uniforms");
        Run::new(version, &text).uniforms(&[3, -80i32 as u32]).stops("uniforms");
        let mut endless = Run::new(version, "b -32\n nop\n nop\n nop");
        endless.options.step_limit = 1000;
        endless.stops("limit");
    }
}

#[test]
fn branch_conditions() {
    for version in Version::ALL {
        // A is set in lanes 0 to 3; 12 of 16 lanes exist.
        for (cond, taken) in [
            ("b", true),
            ("b.a0", true),
            ("b.na0", false),
            ("b.alla", false),
            ("b.anyna", true),
            ("b.anya", true),
            ("b.allna", false),
        ] {
            let text = format!(
                "{LANES_AT} sub.pushn -, rf11, 15\n {cond} skip\n nop\n nop\n nop\n \
                 nop; mov tmud, rf11\n nop; mov tmua, rf12\n skip: nop"
            );
            let words = Run::new(version, &text).size(12).ok();
            assert_eq!(words[0] == 0, taken, "{} {cond}", version.name());
        }
        // Lanes 0 to 3 alone, or with their quad: lane 4 is not considered.
        for (cond, size, taken) in [
            ("b.alla", 4, false),
            ("b.allap", 4, true),
            ("b.allap", 5, false),
            ("b.allaq", 3, true),
            ("b.anynaq", 3, false),
            ("b.anynaq", 5, true),
        ] {
            let text = format!(
                "{LANES_AT} sub.pushn -, rf11, 15\n {cond} skip\n nop\n nop\n nop\n \
                 nop; mov tmud, rf10\n nop; mov tmua, rf10\n skip: nop"
            );
            let words = Run::new(version, &text).size(size).ok();
            assert_eq!(words[0] == 0, taken, "{} {cond} {size}", version.name());
        }
    }
}

#[test]
fn links_and_register_branches() {
    for version in Version::ALL {
        // The subroutine at `sub` adds 1 to rf1 and returns; it is called twice.
        let text = format!(
            "{LANES_AT} and rf1, rf11, 0\n bl sub\n nop\n nop\n nop\n bl sub\n nop\n nop\n nop\n \
             nop; mov tmud, rf1\n nop; mov tmua, rf10\n tmuwt -\n {MARK}{END} sub: add rf1, rf1, 1\n b lri\n nop\n nop\n nop"
        );
        assert_eq!(Run::whole(version, &text).ok()[..2], [2, 2]);
        Run::new(version, "b lri\n nop\n nop\n nop").stops("undefined");
        // Word 14 is the first of the mark; a register branch skips a store that would fault.
        let skip = |set: &str| {
            format!(
                "eidx rf2; nop; ldunifrf.rf1\n {set}\n b rf1\n nop\n nop\n nop\n nop; mov tmua, rf9\n nop\n"
            )
        };
        let run = |text: &str| {
            let mut run = Run::new(version, text);
            run.program.uniforms = UniformStream::Words(vec![8 * 8]);
            run
        };
        run(&skip("nop")).ok();
        assert_eq!(run(&skip("add rf1, rf1, rf2")).stops("66").lane, Some(1));
        run(&skip("nop").replace("b rf1", "b rf7")).stops("undefined");
        // A register uniform pointer with unequal lanes: stopped, or the lane that the options name.
        let text = format!(
            "{LANES_AT} add rf1, rf10, 4\n bu 0, rf1\n nop\n nop\n nop\n nop; nop; ldunifrf.rf4\n \
             nop; mov tmud, rf4\n nop; mov tmua, rf10\n tmuwt -"
        );
        Run::new(version, &text).stops("66");
        let mut one_lane = Run::new(version, &text);
        one_lane.options.uniform_branch_lane = Some(1);
        assert_eq!(one_lane.ok()[..2], [2, 2]);
    }
}

#[test]
fn the_side_band_reads_the_memory_of_the_dispatch() {
    for version in Version::ALL {
        let text = |gap: &str| {
            uniform_register(
                version,
                &format!(
                    "{LANES_AT} nop; mov tmud, rf11\n nop; mov tmua, rf10\n tmuwt -\n nop; mov unifa, rf10\n {gap}\n \
                     nop; nop; ldunifa\n add rf1, U, U; nop; ldunifarf.rf2\n add rf1, rf1, rf2\n \
                     nop; mov tmud, rf1\n nop; mov tmua, rf10\n tmuwt -"
                ),
            )
        };
        // Words 0 and 1 as they were: 0 + 1.
        assert_eq!(Run::new(version, &text("nop\n nop\n nop")).ok()[..2], [1, 1]);
        Run::new(version, &text("nop\n nop")).stops("26");
        Run::new(version, "nop; nop; ldunifa").stops("undefined");
        // Rewritten in the instruction that loads: the old address counts.
        let text = format!(
            "{LANES_AT} nop; mov unifa, rf10\n add rf7, rf12, 8\n nop\n nop\n add unifa, rf7, rf11; nop; ldunifarf.rf1\n \
             nop; mov tmud, rf1\n nop; mov tmua, rf10\n tmuwt -"
        );
        assert_eq!(Run::new(version, &text).ok()[0], 0);
    }
}

#[test]
fn special_functions() {
    for version in Version::ALL {
        let text = |gap: &str| {
            format!(
                "{LANES_AT} itof rf1, rf11\n recip rf2, rf1\n {gap} nop; fmul rf3, rf2, rf2\n nop; mov tmud, rf3\n nop; mov tmua, rf10\n tmuwt -"
            )
        };
        let mut run = Run::new(version, &text(""));
        let outcome = run.go();
        assert_eq!((outcome.result, outcome.stalls), (Ok(()), 1));
        assert_eq!(run.words()[1], (1.0f32 / 16.0).to_bits());
        assert_eq!(run.words()[0], f32::INFINITY.to_bits());
        let mut run = Run::new(version, &text("nop\n"));
        assert_eq!(run.go().stalls, 0);
    }
    let text = |gap: &str| {
        format!(
            "{LANES_AT} itof rf1, rf11\n nop; mov recip, rf1\n {gap} add tmud, r4, 0\n nop; mov tmua, rf10\n tmuwt -"
        )
    };
    assert_eq!(Run::new(V42, &text("nop\n")).ok()[2], 0.125f32.to_bits());
    Run::new(V42, &text("")).stops("23");
    Run::new(V42, &text("nop; mov exp, rf1\n nop\n")).stops("23");
}

#[test]
fn products_of_32_bits() {
    for version in Version::ALL {
        let text = |between: &str| {
            format!(
                "{LANES_AT} sub rf1, rf11, 7\n not rf2, rf11\n nop; multop -, rf1, rf2\n {between} nop; umul24 rf3, rf1, rf2\n \
                 nop; mov tmud, rf3\n nop; mov tmua, rf10\n tmuwt -"
            )
        };
        let words = Run::new(version, &text("")).ok();
        let expected: Vec<u32> = (0..16u32).map(|i| (4 * i).wrapping_sub(7).wrapping_mul(!(4 * i))).collect();
        assert_eq!(words[..16], expected);
        Run::new(version, &text(SWITCH)).stops("46");
        // Without multop only 24 bits count, and the second one finds the register cleared.
        let words = Run::new(version, &text("nop; umul24 rf4, rf1, rf2\n")).ok();
        assert_eq!(words[0], (0u32.wrapping_sub(7) & 0xff_ffff).wrapping_mul(0xff_ffff));
    }
}

#[test]
fn sections_and_ends() {
    for version in Version::ALL {
        let mut run = Run::new(version, &format!("{LANES_AT}{SWITCH}"));
        assert_eq!(run.go().switches, 2);
        Run::whole(version, MARK).stops("29");
        Run::whole(version, "nop").stops("29");
        Run::whole(version, "nop; nop; thrsw\n nop\n nop").stops("29");
        let mut single = Run::whole(version, END);
        single.program.single_segment = true;
        single.ok();
        // Spacing 2, with a load that is collected in a slot.
        let chain = format!(
            "{LANES_AT} nop; mov tmua, rf10\n nop; nop; thrsw\n nop\n nop; nop; thrsw\n nop; nop; ldtmu.rf1\n nop\n"
        );
        let mut run = Run::new(version, &chain);
        let outcome = run.go();
        assert_eq!((outcome.result, outcome.switches), (Ok(()), 3));
        // Mark and end close together: the slots of the end still run.
        let text = format!(
            "{LANES_AT} nop; nop; thrsw\n nop; mov tmud, rf11; thrsw\n nop; mov tmua, rf10; thrsw\n nop; mov tmud, rf11\n nop; mov tmua, rf12\n"
        );
        assert_eq!(Run::whole(version, &text).ok()[..2], [60, 4]);
        Run::new(version, "b 0\n nop; nop; thrsw\n nop\n nop").stops("30");
        Run::new(version, "b 0\n nop\n b 0\n nop\n nop\n nop").stops("37");
        Run::new(version, "nop; nop; thrsw\n b 0\n nop\n nop\n nop").stops("38");
        let mut empty = Run::whole(version, "");
        assert_eq!(empty.go().result.unwrap_err().rule, "dispatch");
        let mut odd = Run::new(version, "nop").threads(3);
        assert_eq!(odd.go().result.unwrap_err().rule, "dispatch");
    }
}

#[test]
fn the_tmu_configuration_shifts() {
    for version in Version::ALL {
        // Bytes fa (two words), fd (u8), then ff.
        let text = format!(
            "{LANES_AT} shl rf1, rf11, 1\n add rf1, rf1, rf12; nop; ldunifrf.rf5\n nop; mov tmuc, rf5\n \
             nop; mov tmua, rf1\n nop; nop; ldtmu.rf2\n nop; nop; ldtmu.rf3\n nop; mov tmua, rf1\n nop; nop; ldtmu.rf4\n \
             add rf2, rf2, rf3\n shl rf4, rf4, 8\n add rf2, rf2, rf4\n nop; mov tmud, rf2\n nop; mov tmua, rf10\n tmuwt -"
        );
        let words = Run::new(version, &text).uniforms(&[0xffff_fdfa]).ok();
        // Lane i: words 2i and 2i + 1, and the low byte of word 2i.
        assert_eq!(words[..3], [1, 5 + (2 << 8), 9 + (4 << 8)]);
        let uneven = "eidx tmuc\n";
        Run::new(version, uneven).stops("54");
        // Bytes that stay behind are a warning.
        let mut left = Run::new(version, &format!("{LANES_AT} nop; nop; ldunifrf.rf1\n nop; mov tmuc, rf1"))
            .uniforms(&[0xffff_ff80]);
        let outcome = left.go();
        assert_eq!(outcome.result, Ok(()));
        assert_eq!(outcome.warnings.iter().map(|w| w.rule).collect::<Vec<_>>(), ["68"]);
    }
}

#[test]
fn vectors_wrap_on_42_and_run_on_on_71() {
    for version in Version::ALL {
        // Each lane loads three words from 16 * lane + 8.
        let text = format!(
            "{LANES_AT} shl rf1, rf11, 2\n add rf1, rf1, rf12\n add rf1, rf1, 8\n nop; mov tmuau, rf1\n \
             nop; nop; ldtmu.rf3\n nop; nop; ldtmu.rf4\n nop; nop; ldtmu.rf5\n shl rf4, rf4, 8\n shl rf5, rf5, 15\n \
             add rf3, rf3, rf4\n add rf3, rf3, rf5\n nop; mov tmud, rf3\n nop; mov tmua, rf10\n tmuwt -"
        );
        let mut run = Run::new(version, &text).uniforms(&[0xffff_fffb]);
        let outcome = run.go();
        assert_eq!(outcome.result, Ok(()));
        let third = if version == V42 { 4 } else { 8 };
        assert_eq!(run.words()[1], 6 + (7 << 8) + (third << 15));
        assert_eq!(outcome.warnings.iter().any(|w| w.rule == "67"), version == V42);
        // Stores in the same way: two words at 16 * lane + 12.
        let text = format!(
            "{LANES_AT} shl rf1, rf11, 2\n add rf1, rf1, rf12\n add rf1, rf1, 12\n nop; mov tmud, rf11\n nop; mov tmud, rf11\n \
             nop; mov tmuau, rf1\n tmuwt -"
        );
        let words = Run::new(version, &text).uniforms(&[0xffff_fffa]).ok();
        let expected = if version == V42 { [4, 5, 6, 4] } else { [0, 5, 6, 4] };
        assert_eq!(words[4..8], expected, "{}", version.name());
    }
}

#[test]
fn narrow_accesses() {
    for version in Version::ALL {
        // One byte per lane: loads sign-extended, stores the double as a half word.
        let text = format!(
            "{LANES_AT} shr rf1, rf11, 2\n add rf1, rf1, rf12\n nop; mov tmuau, rf1\n nop; nop; ldtmu.rf2\n add rf2, rf2, rf2\n \
             shr rf3, rf11, 1\n add rf3, rf3, rf12\n nop; mov tmud, rf2\n nop; mov tmuau, rf3\n tmuwt -"
        );
        let mut run = Run::new(version, &text).uniforms(&[0xffff_fff8, 0xffff_fffe]);
        for i in 0..16u32 {
            run.memory.write(run.base + i, 1, u64::from(0x78 + i)).unwrap();
        }
        let words = run.ok();
        assert_eq!(words[..2], [0x00f2_00f0, 0x00f6_00f4]);
        assert_eq!(words[4], 0xff02_ff00);
        let unaligned = format!("{LANES_AT} add rf1, rf10, 1\n nop; mov tmuau, rf1\n nop; nop; ldtmu.rf2");
        assert_eq!(Run::new(version, &unaligned).uniforms(&[0xffff_fffe]).stops("69").lane, Some(0));
        Run::new(version, &unaligned).uniforms(&[0xffff_ffff]).stops("69");
        Run::new(version, &unaligned).uniforms(&[0xffff_fffd]).ok();
    }
}

#[test]
fn atomics() {
    for version in Version::ALL {
        // All lanes add 4 * lane to word 0 and store the old value.
        let atomic = |operands: &str| {
            format!(
                "{LANES_AT} {operands} nop; mov tmuau, rf12\n nop; nop; ldtmu.rf1\n add rf2, rf10, 8\n add rf2, rf2, 8\n \
                 nop; mov tmud, rf1\n nop; mov tmua, rf2\n tmuwt -"
            )
        };
        let add = 0xffff_ff87;
        for operands in ["nop; mov tmud, rf11\n", "nop; mov tmudref, rf11\n"] {
            let words = Run::new(version, &atomic(operands)).uniforms(&[add]).ok();
            assert_eq!((words[0], words[4], words[6]), (480, 0, 4));
        }
        // Increment takes no operand.
        let words = Run::new(version, &atomic("")).uniforms(&[0xffff_ffc7]).ok();
        assert_eq!((words[0], words[6]), (16, 2));
        // Compare and exchange: lane 0 finds 0 and puts 4, lane 1 finds its own 4 and puts 8, and so on.
        let words =
            Run::new(version, &atomic("add rf3, rf11, 4\n nop; mov tmud, rf11\n nop; mov tmud, rf3\n"))
                .uniforms(&[0xffff_ff9a])
                .ok();
        assert_eq!((words[0], words[6]), (64, 8));
        let words =
            Run::new(version, &atomic("add rf3, rf11, 4\n nop; mov tmudref, rf11\n nop; mov tmuoff, rf3\n"))
                .uniforms(&[0xffff_ff9f])
                .ok();
        assert_eq!((words[0], words[6]), (64, 8));
        // The old value must be collected.
        let text = format!("{LANES_AT} nop; mov tmud, rf11\n nop; mov tmuau, rf12");
        Run::new(version, &text).uniforms(&[add]).stops("57");
        // Two operands for an addition.
        let text = format!("{LANES_AT} nop; mov tmud, rf11\n nop; mov tmud, rf11\n nop; mov tmuau, rf12");
        Run::new(version, &text).uniforms(&[add]).stops("54");
    }
}

#[test]
fn queues() {
    for version in Version::ALL {
        let load = "nop; mov tmua, rf10\n";
        let collect = "nop; nop; ldtmu.rf1\n";
        Run::new(version, &format!("{LANES_AT}{load}")).stops("56");
        Run::new(version, &format!("{LANES_AT}{collect}")).stops("56");
        let fill = |n: usize| format!("{LANES_AT}{}{}", load.repeat(n), collect.repeat(n));
        Run::new(version, &fill(8)).ok();
        Run::new(version, &fill(9)).stops("55");
        Run::new(version, &fill(4)).threads(4).ok();
        Run::new(version, &fill(5)).threads(4).stops("55");
        // A load in the instruction that takes the word out of a full queue.
        let text =
            format!("{LANES_AT}{} nop; mov tmua, rf10; ldtmu.rf1\n{}", load.repeat(8), collect.repeat(8));
        Run::new(version, &text).ok();
        // Nothing can be collected in the instruction that starts the only load.
        Run::new(version, &format!("{LANES_AT} nop; mov tmua, rf10; ldtmu.rf1")).stops("56");
        // Register writes of one operation.
        let data = |n: usize| format!("{LANES_AT}{} nop; mov tmuau, rf10", "nop; mov tmud, rf11\n".repeat(n));
        Run::new(version, &data(4)).threads(4).uniforms(&[0xffff_fffc]).stops("55");
        Run::new(version, &data(3)).threads(4).uniforms(&[0xffff_fffb]).ok();
        // The number of data words is that of the type.
        Run::new(version, &data(1)).uniforms(&[0xffff_fffa]).stops("54");
        Run::new(version, &data(2)).uniforms(&[0xffff_ffff]).stops("54");
        let mut short = Run::new(version, &data(1)).uniforms(&[0xffff_fffa]).loose();
        assert_eq!(short.go().result.is_ok(), version == V71);
        // A switch between data and address.
        Run::new(version, &format!("{LANES_AT} nop; mov tmud, rf11\n{SWITCH} nop; mov tmua, rf10"))
            .stops("54");
    }
}

#[test]
fn stores_are_waited_for() {
    for version in Version::ALL {
        let text = |wait: &str| {
            format!(
                "{LANES_AT} nop; mov tmud, rf11\n nop; mov tmua, rf10\n {wait}\n nop; mov tmua, rf12\n nop; nop; ldtmu.rf1"
            )
        };
        Run::new(version, &text("tmuwt -")).ok();
        Run::new(version, &text("nop")).stops("12.2");
        Run::new(version, &text("nop")).loose().ok();
        Run::new(version, "nop; mov tmua, rf11").stops("undefined");
        let outside = format!("{LANES_AT} shl rf1, rf10, 1\n nop; mov tmua, rf1\n nop; nop; ldtmu.rf1");
        assert_eq!(Run::new(version, &outside).stops("memory").lane, Some(0));
    }
}

#[test]
fn lanes_that_take_no_part_in_a_load() {
    for version in Version::ALL {
        // Lanes 0 to 3 are A. Per-pixel, per-quad.
        let text = |cond: &str| {
            format!(
                "{LANES_AT} sub.pushn -, rf11, 14\n nop; mov{cond} tmuau, rf10\n nop; nop; ldtmu.rf1\n \
                 nop; mov tmud, rf1\n nop; mov.ifa tmua, rf10\n tmuwt -"
            )
        };
        Run::new(version, &text(".ifa")).uniforms(&[0xffff_ffff]).ok();
        let fault = Run::new(version, &text(".ifna")).uniforms(&[0xffff_ffff]).stops("undefined");
        assert!(fault.message.contains("no part"), "{fault}");
        // One lane of the quad is enough, and lanes that do not exist run along.
        let text = format!(
            "{LANES_AT} xor.pushz -, rf11, 4\n nop; mov.ifa tmuau, rf10\n nop; nop; ldtmu.rf1\n nop; mov tmud, rf1\n \
             sub.pushn -, rf11, 12\n nop; mov.ifa tmua, rf10\n tmuwt -"
        );
        Run::new(version, &text).uniforms(&[0xffff_ff7f]).size(2).ok();
        Run::new(version, &text).uniforms(&[0xffff_ffff]).size(2).stops("undefined");
    }
}

#[test]
fn barriers_order_the_threads() {
    for version in Version::ALL {
        // Each of 4 batches stores its number to its own word, waits, and adds up all four.
        let text = |barrier: &str| {
            format!(
                "nop; nop; ldunifrf.rf12\n eidx.pushz rf11\n nop; nop; ldunifrf.rf20\n shr rf1, rf2, rf20\n shl rf3, rf1, 2\n add rf3, rf3, rf12\n \
                 shl rf4, rf1, 4\n add rf4, rf4, 1\n nop; mov tmud, rf4\n nop; mov.ifa tmua, rf3\n tmuwt -\n {barrier} \
                 nop; mov tmua, rf12; thrsw\n nop\n nop\n nop; nop; ldtmu.rf5\n add rf13, rf12, 4\n nop; mov tmua, rf13\n nop; nop; ldtmu.rf6\n add rf5, rf5, rf6\n \
                 add rf13, rf13, 4\n nop; mov tmua, rf13\n nop; nop; ldtmu.rf6\n add rf5, rf5, rf6\n add rf13, rf13, 4\n nop; mov tmua, rf13\n nop; nop; ldtmu.rf6\n \
                 add rf5, rf5, rf6\n add rf3, rf3, 15\n add rf3, rf3, 1\n nop; mov tmud, rf5\n eidx.pushz -\n nop; mov.ifa tmua, rf3\n tmuwt -"
            )
        };
        // 64 items: n = 6, so the local index is the upper half shifted by 10; the batch is that over 16.
        for order in
            [Order::RoundRobin, Order::Reverse, Order::Sequential, Order::Shuffled(7), Order::Shuffled(8)]
        {
            let with = Run::new(version, &text(&format!("barrierid syncb\n{SWITCH}")))
                .size(64)
                .order(order)
                .uniforms(&[30]);
            let words = with.ok();
            let expected = 1 + 17 + 33 + 49;
            assert_eq!(words[4..8], [expected; 4], "{} {order:?}", version.name());
        }
        // Without it some thread reads too early.
        let without = Run::new(version, &text("")).size(64).order(Order::Sequential).uniforms(&[30]).ok();
        assert_ne!(without[4], 1 + 17 + 33 + 49);
        // A thread that ends instead of arriving.
        let text = "nop; nop; ldunifrf.rf1\n shr rf1, rf2, rf1\n sub.pushz -, rf1, 1\n b.anya out\n nop\n nop\n nop\n barrierid syncb; nop; thrsw\n nop\n nop\n out: nop";
        let mut run = Run::new(version, text).size(64);
        run.program.uniforms = UniformStream::Words(vec![30]);
        run.stops("deadlock");
        // The switch of the end does not count.
        Run::whole(version, &format!("{MARK} barrierid syncb\n {END}")).stops("60");
    }
}

#[test]
fn payload_and_thread_numbers() {
    for version in Version::ALL {
        let id = if version == V42 { "rf0" } else { "rf3" };
        // Stores both payload words and tidx of every batch.
        let text = format!(
            "tidx rf20\n eidx rf11; nop; ldunifrf.rf12\n nop; nop; ldunifrf.rf13\n nop; nop; ldunifrf.rf14\n shl rf11, rf11, 2\n add rf10, rf11, rf12\n \
             add rf15, {id}, 0\n shr rf16, rf15, rf14\n shl rf16, rf16, 8\n add rf10, rf10, rf16\n nop; mov tmud, {id}\n nop; mov tmua, rf10\n \
             add rf10, rf10, rf13\n nop; mov tmud, rf2\n nop; mov tmua, rf10\n add rf10, rf10, rf13\n nop; mov tmud, rf20\n nop; mov tmua, rf10\n tmuwt -"
        );
        // One batch per group: 10 items, groups (1, 2, 1); the second group's words lie 256 bytes on.
        let mut run = Run::new(version, &text).size(10);
        run.program.uniforms = UniformStream::Words(vec![run.base, 64, 16]);
        run.dispatch.groups = [1, 2, 1];
        let words = run.ok();
        assert_eq!(words[..3], [0, 0, 0]);
        assert_eq!(words[64..66], [1 << 16, 1 << 16]);
        // n = 6: local index << 10 in the upper half.
        assert_eq!(words[16 + 64..16 + 67], [0, 1 << 26, 2 << 26]);
        assert_eq!(words[16 + 9], 9 << 26);
        assert_eq!(words[32], 0);
    }
    let of = |version, threads, batch| {
        use kempe_ir::exec::StartState;
        Start { version, threads }.thread_id(batch)
    };
    assert_eq!([of(V42, 2, 0), of(V42, 2, 7), of(V42, 2, 8)], [0, 28, 2]);
    assert_eq!([of(V71, 4, 11), of(V71, 4, 12), of(V71, 4, 47)], [44, 1, 47]);
    assert_eq!([of(V71, 2, 12), of(V71, 2, 23)], [2, 46]);
}

#[test]
fn scratch_keeps_poison() {
    for version in Version::ALL {
        let text = |data: &str, back: &str| {
            format!(
                "{LANES_AT} tidx rf1; nop; ldunifrf.rf5\n shl rf1, rf1, 7\n add rf1, rf1, rf11\n add rf1, rf1, rf5\n \
                 nop; mov tmud, {data}\n nop; mov tmua, rf1\n tmuwt -\n {back}\n nop; mov tmua, rf1\n nop; nop; ldtmu.rf2\n \
                 nop; mov tmud, rf2\n nop; mov tmua, rf10\n tmuwt -"
            )
        };
        let run = |text: &str| {
            let mut run = Run::new(version, text);
            let base = run.memory.place("scratch", vec![0; 128 * 48], true).unwrap();
            run.dispatch.scratch = Some(Scratch { base, bytes_per_thread: 128 });
            run.uniforms(&[base])
        };
        assert_eq!(run(&text("rf11", "nop")).ok()[..3], [0, 4, 8]);
        // Poison may be stored, and is poison again.
        run(&text("rf30", "nop")).stops("undefined");
        run(&text("rf30", "nop; mov tmud, rf11\n nop; mov tmua, rf1\n tmuwt -")).ok();
        let fault = run(&text(
            "rf11",
            "add rf1, rf1, 15\n add rf1, rf1, 15\n add rf1, rf1, 15\n add rf1, rf1, 15\n add rf1, rf1, 4",
        ))
        .stops("undefined");
        assert!(fault.message.contains("never stored"), "{fault}");
        run(&text("rf11", "shl rf3, rf11, 5\n add rf1, rf1, rf3")).stops("memory");
    }
}

#[test]
fn rf0_after_a_switch_on_71() {
    // A uniform beside a load into a row, then a switch whose last slot loads into a row.
    let text = |slot: &str, first: &str| {
        format!(
            "{LANES_AT} nop; mov tmua, rf10\n nop; mov tmua, rf10\n {first}\n nop; nop; thrsw\n nop\n {slot}\n \
             nop; mov tmud, rf0\n nop; mov tmua, rf10\n tmuwt -"
        )
    };
    let (load, beside) = ("nop; nop; ldtmu.rf5", "nop; nop; ldtmu.rf6; ldunif");
    Run::new(V71, &text(load, beside)).uniforms(&[9]).stops("36");
    let apart = "nop; nop; ldtmu.rf6\n nop; nop; ldunif";
    assert_eq!(Run::new(V71, &text(load, apart)).uniforms(&[9]).ok()[0], 9);
    let before = format!("nop; nop; ldtmu.rf5\n {beside}");
    assert_eq!(Run::new(V71, &text("nop", &before)).uniforms(&[9]).ok()[0], 9);
    // The write of rf0 in the slot itself.
    let text = text("nop; nop; ldtmu.rf5; ldunif", "nop; nop; ldtmu.rf6");
    Run::new(V71, &text).uniforms(&[9]).stops("36");
}

#[test]
fn halves_are_tracked_apart() {
    for version in Version::ALL {
        let text = |second: &str| {
            format!(
                "{LANES_AT} nop; fmov rf9.l, rf11\n {second}\n nop; mov tmud, rf9\n nop; mov tmua, rf10\n tmuwt -"
            )
        };
        Run::new(version, &text("nop")).stops("undefined");
        Run::new(version, &text("nop; fmov rf9.l, rf11")).stops("undefined");
        assert_eq!(Run::new(version, &text("nop; fmov rf9.h, rf11")).ok()[..2], [0, 0]);
    }
}

#[test]
fn cross_lane_operations_of_71() {
    let text =
        |op: &str| format!("{LANES_AT} {op}\n nop\n nop; mov tmud, rf1\n nop; mov tmua, rf10\n tmuwt -");
    assert_eq!(Run::new(V71, &text("rot rf1, rf11, 3")).ok()[..2], [12, 16]);
    assert_eq!(Run::new(V71, &text("rotq rf1, rf11, 1")).ok()[..5], [4, 8, 12, 0, 20]);
    assert_eq!(Run::new(V71, &text("ballot rf1, rf11")).ok()[5], 0xfffe);
    // Quads without any lane take no part.
    assert_eq!(Run::new(V71, &text("ballot rf1, rf11")).size(5).ok()[0], 0xfe);
    assert_eq!(Run::new(V71, &text("eidx.pushn -\n bcastf.ifna rf1, rf11")).ok()[7], 0);
    assert_eq!(Run::new(V71, &text("alleq rf1, rf11")).ok()[7], 0);
}

#[test]
fn rotation_of_42() {
    let text = |op: &str| format!("{LANES_AT} add r0, rf11, 0\n nop\n {op}\n nop; mov tmua, rf10\n tmuwt -");
    assert_eq!(Run::new(V42, &text("nop; mov tmud, r0; rotate.1")).ok()[..3], [60, 0, 4]);
    assert_eq!(Run::new(V42, &text("nop; mov tmud, rf11; rotate.1")).ok()[..5], [12, 0, 4, 8, 28]);
    Run::new(V42, &text("nop; mov tmud, r0; rotate.r5")).stops("undefined");
}

/// Every order gives the same result when the program does not depend on it.
#[test]
fn orders_agree() {
    for version in Version::ALL {
        let text = format!(
            "{LANES_AT} shr rf1, rf2, 15\n shr rf1, rf1, 11\n shl rf1, rf1, 2\n add rf10, rf1, rf12\n nop; mov tmua, rf10\n {SWITCH} \
             nop; nop; ldtmu.rf3\n {SWITCH} add rf3, rf3, rf3\n nop; mov tmud, rf3\n nop; mov tmua, rf10\n tmuwt -"
        );
        let of = |order| Run::new(version, &text).size(64).order(order).ok();
        let first = of(Order::RoundRobin);
        assert_eq!(first[..64], (0..64).map(|i| 2 * i).collect::<Vec<u32>>());
        for order in [Order::Reverse, Order::Sequential, Order::Shuffled(1), Order::Shuffled(2)] {
            assert_eq!(of(order), first);
        }
    }
}

/// Any words: an answer, no panic.
#[test]
fn garbage_stops_cleanly() {
    let mut x = 7u64;
    for version in Version::ALL {
        for _ in 0..300 {
            let mut run = Run::new(version, "nop");
            let words = &mut run.program.pieces[0].1;
            for word in words.iter_mut() {
                x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                *word = x ^ x.rotate_left(31);
            }
            run.options.step_limit = 500;
            run.options.strict = x & 1 == 0;
            let _ = run.go();
        }
    }
}
