//! Hand-written programs: what runs, what it gives, and which rule stops it.

use super::*;
use crate::asm::assemble;

const WORDS: u32 = 256;

/// The end of a program, as the reference driver writes it.
const END: &str = "stop\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\n";

/// r2_r3 = address of the buffer (u0_u1), r4 = global thread id.
const START: &str = "get_sr r4, sr80\n mov r2, u0\n mov r3, u1\n";

/// A run with one buffer of 256 words that hold their own number; u0_u1 is its address, u2 its low word alone.
struct Run {
    program: Program,
    groups: [u32; 3],
    options: Options,
    memory: Memory,
    base: u32,
}

impl Run {
    fn new(text: &str) -> Run {
        Run::whole(&format!("{text}\n{END}"))
    }

    fn whole(text: &str) -> Run {
        let code = assemble(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        let mut memory = Memory::new();
        memory.place("other", vec![0; 64], true).unwrap();
        let base = memory.place("data", (0..WORDS).flat_map(u32::to_le_bytes).collect(), true).unwrap();
        let program = Program::new(code, Vec::new(), [32, 1, 1]);
        Run { program, groups: [1, 1, 1], options: Options::default(), memory, base }
    }

    fn with(mut self, change: impl FnOnce(&mut Run)) -> Run {
        change(&mut self);
        self
    }

    fn outcome(&mut self) -> Outcome {
        let map = AddressMap::scattered(&self.memory, 0x155_f000_0000).unwrap();
        let address = map.device(self.base).unwrap();
        assert!(address >> 32 != 0);
        let mut uniforms = vec![address as u32, (address >> 32) as u32, address as u32];
        uniforms.append(&mut self.program.uniforms);
        self.program.uniforms = uniforms;
        let dispatch = Dispatch { groups: self.groups, map };
        run(&self.program, &dispatch, &mut self.memory, &self.options)
    }

    fn words(mut self) -> Vec<u32> {
        let outcome = self.outcome();
        outcome.result.unwrap_or_else(|fault| panic!("{fault}"));
        let region = self.memory.region_at(self.base).unwrap();
        self.memory.bytes(region).chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// The rule that stops it.
    fn rule(mut self) -> &'static str {
        match self.outcome().result {
            Ok(()) => "nothing",
            Err(fault) => fault.rule,
        }
    }

    fn message(mut self) -> String {
        self.outcome().result.expect_err("a fault").to_string()
    }
}

/// A store of r5 to the word of the thread.
const STORE: &str = "device_store 0, i32, x, r5, r2_r3, r4, unsigned, 0\n";

fn stored(text: &str) -> Vec<u32> {
    Run::new(&format!("{START}{text}\n{STORE}")).words()
}

fn stops(text: &str) -> &'static str {
    Run::new(&format!("{START}{text}\n{STORE}")).rule()
}

#[test]
fn every_thread_of_a_grid() {
    let text = format!("{START} iadd r5, r4, 100\n {STORE}");
    for order in [Order::RoundRobin, Order::Reverse, Order::Sequential, Order::Shuffled(3)] {
        let words = Run::new(&text)
            .with(|run| {
                run.groups = [2, 1, 1];
                run.program.threadgroup_size = [80, 1, 1];
                run.options.order = order;
            })
            .words();
        // 80 threads are 3 SIMD groups, the last of which has 16 lanes.
        for (i, &word) in words.iter().enumerate() {
            assert_eq!(word, if i < 160 { i as u32 + 100 } else { i as u32 });
        }
    }
}

#[test]
fn ids() {
    // x + 10 y + 100 z of the thread in the grid, by its linear number.
    let text = "get_sr r6, sr80\n get_sr r7, sr81\n get_sr r8, sr82\n mov r2, u0\n mov r3, u1\n
        imadd r5, r7, 10, r6\n imadd r5, r8, 100, r5\n
        get_sr r4, sr51\n get_sr r9, sr0\n imadd r4, r9, 24, r4\n";
    let words = Run::new(&format!("{text}{STORE}"))
        .with(|run| {
            run.groups = [2, 1, 1];
            run.program.threadgroup_size = [4, 3, 2];
        })
        .words();
    for i in 0..48u32 {
        let (group, local) = (i / 24, i % 24);
        let expected = (group * 4 + local % 4) + 10 * (local / 4 % 3) + 100 * (local / 12);
        assert_eq!(words[i as usize], expected, "{i}");
    }
    assert_eq!(Run::new("get_sr r0, sr60").rule(), "unsupported");
}

#[test]
fn control_flow() {
    // Odd threads take 7, even ones 9.
    let branch = "mov_imm r0l, 0\n and r6, r4, 1\n if_icmp r0l, ueq, r6, 1, 1\n mov_imm r5, 7, 0b0\n
        else_fcmp r0l, eq, 0.0, 0.0, 1\n mov_imm r5, 9, 0b0\n pop_exec r0l, 1\n";
    let words = stored(branch);
    assert!((0..32).all(|i| words[i] == [9, 7][i % 2]));
    // A loop: the sum of the numbers below the thread's own.
    let looped = "mov_imm r0l, 0\n mov_imm r5, 0, 0b0\n mov_imm r6, 0, 0b0\n push_exec r0l, 1\n
        while_icmp r0l, ult, r6, r4, 1\n jmp_exec_none out\n
        again: iadd r5, r5, r6\n iadd r6, r6, 1\n while_icmp r0l, ult, r6, r4, 1\n jmp_exec_any again\n
        out: pop_exec r0l, 1\n"
        .replace("again: ", "again:\n")
        .replace("out: ", "out:\n");
    let words = stored(&looped);
    assert!((0..32u32).all(|i| words[i as usize] == i * i.saturating_sub(1) / 2), "{words:?}");
    // Nobody set the counter.
    assert_eq!(stops("mov_imm r5, 0, 0b0\n push_exec r0l, 1"), "mask");
    // The condition of a lane that does not decide may be undefined, that of one that does may not.
    assert_eq!(stops(&branch.replace("and r6, r4, 1\n", "")), "undefined");
    let guarded = "mov_imm r5, 1, 0b0\n mov_imm r0l, 0\n if_icmp r0l, ult, r4, 4, 1\n mov_imm r6, 0, 0b0\n
        if_icmp r0l, ueq, r6, 0, 1\n pop_exec r0l, 2\n";
    assert_eq!(stops(guarded), "nothing");
}

#[test]
fn calls() {
    let text = format!("{START} call sub\n {STORE}\n {END}\n sub:\n mov_imm r5, 77, 0b0\n ret r1\n");
    assert_eq!(Run::whole(&text).words()[31], 77);
    assert_eq!(Run::new(&format!("mov_imm r1, 3, 0b0\n ret r1\n{END}")).rule(), "branch");
}

#[test]
fn undefined_registers() {
    assert_eq!(stops(""), "undefined");
    assert_eq!(stops("mov r5, r9"), "undefined");
    // A copy of nothing has no effect; a select does not need the value that it does not take.
    assert_eq!(stops("mov r9, r10\n mov_imm r5, 1, 0b0"), "nothing");
    assert_eq!(stops("icmpsel ugt, r5, r4, 99, r9, r4"), "nothing");
    assert_eq!(stops("icmpsel ult, r5, r4, 99, r9, r4"), "undefined");
    // Half of a register is not all of it.
    assert_eq!(stops("mov_imm r5l, 1"), "undefined");
    assert_eq!(stops("mov_imm r5l, 1\n mov_imm r5h, 1"), "nothing");
    // Discarded, then read; discarded by the instruction that writes it.
    assert_eq!(stops("mov_imm r5, 1, 0b0\n mov r6, r5.discard"), "undefined");
    assert_eq!(stops("mov_imm r5, 1, 0b0\n iadd r5, r5.discard, 1"), "nothing");
    let message = Run::new(&format!("{START} mov_imm r5, 1, 0b0\n mov r6, r5.discard\n {STORE}")).message();
    assert!(message.contains("was discarded at pc"), "{message}");
    // Addresses and stored data.
    assert_eq!(
        Run::new(&format!("{START} mov r5, r4\n device_store 0, i32, x, r5, r2_r3, r9, unsigned, 0")).rule(),
        "undefined"
    );
    assert_eq!(Run::new(&format!("get_sr r4, sr80\n mov r5, r4\n mov r2, u0\n {STORE}")).rule(), "undefined");
    assert_eq!(Run::new("mov r5, u9").rule(), "uniform");
    assert_eq!(Run::new("mov r5, r100").with(|run| run.program.halves = 104).rule(), "registers");
}

/// What a parallel copy consists of moves what is defined and what is not, half by half.
#[test]
fn copies_of_what_is_partly_undefined() {
    let swap = "xor r5, r5, r6\n xor r6, r5, r6\n xor r5, r5, r6\n";
    assert_eq!(stored(&format!("mov r6, r4\n {swap}"))[9], 9);
    assert_eq!(stops(&format!("mov r5, r4\n {swap}")), "undefined");
    assert_eq!(stored(&format!("mov r5, r4\n {swap} mov r5, r6"))[9], 9);
    // Two unknown values stay unknown.
    assert_eq!(stops(swap), "undefined");
    assert_eq!(stops("xor r5, r6, r7\n xor r5, r5, r8"), "undefined");
    assert_eq!(stored("xor r5, r6, r6")[3], 0);
    let load = |half: &str| format!("device_store 0, i16, x, {half}, r2_r3, r4, unsigned, 0\n mov r5, r4\n");
    assert_eq!(stops(&format!("mov_imm r8l, 1\n mov r9, r8\n {}", load("r9l"))), "nothing");
    assert_eq!(stops(&format!("mov_imm r8l, 1\n mov r9, r8\n {}", load("r9h"))), "undefined");
    assert_eq!(stops(&format!("mov_imm r8l, 1\n extr r9, r8, r8, 16\n {}", load("r9h"))), "nothing");
    assert_eq!(stops(&format!("mov_imm r8l, 1\n extr r9, r8, r8, 16\n {}", load("r9l"))), "undefined");
    // A narrow store looks at the low half only.
    assert_eq!(stops(&format!("mov_imm r8l, 1\n {}", load("r8"))), "nothing");
}

#[test]
fn undefined_values_in_memory() {
    let mut run = Run::new(&format!("{START}{STORE}")).with(|run| run.options.undefined_in_memory = true);
    let outcome = run.outcome();
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.undefined, (0..128).map(|i| run.base + i).collect::<Vec<u32>>());
    // Loaded again it is as undefined as before, until something else is stored.
    let again = "device_load 0, i32, x, r6, r2_r3, r4, unsigned\n wait 0\n";
    let used = format!("{START}{STORE}{again} device_store 0, i32, x, r6, r2_r3, r6, unsigned, 0");
    assert_eq!(Run::new(&used).with(|run| run.options.undefined_in_memory = true).rule(), "undefined");
    let defined = format!(
        "{START}{STORE} mov r5, r4\n {STORE}{again} device_store 0, i32, x, r6, r2_r3, r6, unsigned, 0"
    );
    assert_eq!(Run::new(&defined).with(|run| run.options.undefined_in_memory = true).rule(), "nothing");
}

#[test]
fn loads_have_to_be_waited_for() {
    let load = "device_load 0, i32, x, r5, r2_r3, r4, unsigned\n";
    assert_eq!(stops(load), "wait");
    assert_eq!(stops(&format!("{load} wait 1")), "wait");
    assert_eq!(stops(&format!("{load} wait 0")), "nothing");
    assert_eq!(stops(&format!("{load} mov_imm r5l, 0\n wait 0")), "wait");
    assert_eq!(stops(&format!("{load} mov_imm r6l, 0\n wait 0")), "nothing");
    assert_eq!(stops(&format!("{load}{load} wait 0")), "wait");
    let many = |n: usize| (0..n).map(|i| load.replace("r5", &format!("r{}", 10 + i))).collect::<String>();
    assert_eq!(stops(&format!("mov r5, r4\n {}", many(7))), "nothing");
    assert_eq!(stops(&format!("mov r5, r4\n {}", many(8))), "wait");
    assert_eq!(stops(&format!("mov r5, r4\n {} wait 0\n", many(8))), "nothing");
    assert_eq!(stops(&format!("{load} threadgroup_barrier")), "wait");
}

#[test]
fn addresses() {
    let at = |index: &str, ext: &str| {
        format!("mov_imm r6, {index}, 0b0\n device_load 0, i32, x, r5, r2_r3, r6, {ext}\n wait 0")
    };
    assert_eq!(stored(&at("255", "unsigned"))[3], 255);
    assert_eq!(stops(&at("256", "unsigned")), "memory");
    // -1 sign-extended is just before the buffer, zero-extended 16 GiB behind it.
    let one = "iadd r2_r3, r2_r3, 4\n";
    assert_eq!(stops(&at("4294967295", "signed")), "memory");
    let loaded =
        format!("{START}{one}{} mov r2, u0\n mov r3, u1\n{STORE}", at("4294967295", "signed") + "\n");
    assert_eq!(Run::new(&loaded).words()[9], 0);
    assert_eq!(stops(&at("4294967295", "unsigned")), "memory");
    // The high word counts.
    assert_eq!(Run::new(&format!("{START} mov_imm r3, 0, 0b0\n mov r5, r4\n {STORE}")).rule(), "memory");
    // Immediates, scale, elements with holes in memory but not in registers.
    let words = stored("mov_imm r6, 2, 0b0\n device_load 0, i32, xw, r8_r9, r2_r3, r6, unsigned, lsl 2\n wait 0\n imadd r5, r9, 1000, r8"
        .replace("1000", "100").as_str());
    assert_eq!(words[0], 8 + 1100);
    assert_eq!(stored("device_load 0, i8, x, r5, r2_r3, 9, signed\n wait 0")[0], 0);
    assert_eq!(stored("device_load 0, i8, x, r5, r2_r3, 8, signed\n wait 0")[0], 2);
    assert_eq!(stored("device_load 0, i16, xy, r5l_r5h, u0_u1, 6, signed\n wait 0")[0], 3);
    assert_eq!(stops("iadd r2_r3, r2_r3, 2\n mov r5, r4"), "memory");
    assert_eq!(stops("mov r5, r4\n device_load 0, i32, x, r6, r2_r3, -2, unsigned"), "unsettled");
    let message = Run::new(&format!("{START} mov_imm r4, 300, 0b0\n mov r5, r4\n {STORE}")).message();
    assert!(message.contains("offset 1200 of `data`, which has 1024 bytes"), "{message}");
}

#[test]
fn atomics() {
    let text = |op: &str| {
        format!(
            "{START} mov_imm r5, 1, 0b0\n mov_imm r6, 0, 0b0\n
        atomic {op}, 0, r7, r2_r3, r6, unsigned, r5, 1, 0, 1, 4, 2\n wait 0\n
        iadd r4, r4, 32\n device_store 0, i32, x, r7, r2_r3, r4, unsigned, 0\n"
        )
    };
    let words = Run::new(&text("add")).with(|run| run.program.threadgroup_size = [64, 1, 1]).words();
    assert_eq!(words[0], 64);
    let mut old = words[32..96].to_vec();
    old.sort();
    assert_eq!(old, (0..64).collect::<Vec<u32>>());
    assert_eq!(Run::new(&text("umax")).words()[0], 1);
    assert_eq!(Run::new(&text("11")).rule(), "unsettled");
    // cmpxchg: new value below, comparand above.
    let swap = format!(
        "{START} mov_imm r8, 50, 0b0\n mov r9, r4\n mov_imm r6, 3, 0b0\n
        atomic cmpxchg, 0, None, r2_r3, r6, unsigned, r8_r9, 1, 0, 1, 4, 2\n"
    );
    assert_eq!(Run::new(&swap).words()[3], 50);
}

#[test]
fn threadgroup_memory_and_barriers() {
    // Every thread reads what the one 32 further on wrote.
    let text = |barrier: &str| {
        format!(
            "{START} mov r9l, r4l\n threadgroup_store i32, x, r4, 0, r9l\n {barrier}\n
        bitop 0110, r9, r4, 32\n mov r8l, r9l\n threadgroup_load i32, x, r5, 0, r8l\n {STORE}"
        )
    };
    let set = |run: &mut Run| {
        run.program.threadgroup_size = [64, 1, 1];
        run.program.threadgroup_bytes = 256;
    };
    let words = Run::new(&text("threadgroup_barrier")).with(set).words();
    assert!((0..64).all(|i| words[i as usize] == i ^ 32));
    // Without it one of them finds nothing, in every order.
    for order in [Order::Sequential, Order::Reverse, Order::Shuffled(1)] {
        assert_eq!(Run::new(&text("")).with(set).with(|run| run.options.order = order).rule(), "undefined");
    }
    assert_eq!(
        Run::new(&text("threadgroup_barrier"))
            .with(set)
            .with(|run| run.program.threadgroup_bytes = 252)
            .rule(),
        "memory"
    );
    let zeros = format!("{START} threadgroup_load i32, x, r5, 0, 0\n {STORE}");
    assert_eq!(Run::new(&zeros).with(set).rule(), "undefined");
    assert_eq!(Run::new(&zeros).with(set).with(|run| run.options.zeroed_threadgroup = true).words()[5], 0);
    let counted = format!("{START} mov_imm r5, 0, 0b0\n threadgroup_store i32, x, r5, 0, 1\n threadgroup_barrier\n
        mov_imm r6l, 4\n mov_imm r7, 1, 0b0\n threadgroup_atomic add, None, r6l, 0, r7, 0, 2, 128, 0\n threadgroup_barrier\n
        threadgroup_load i32, x, r5, 0, 1\n {STORE}");
    assert_eq!(Run::new(&counted).with(set).words()[40], 64);
    // Some lanes, or some groups, are missing.
    assert_eq!(stops("mov_imm r0l, 0\n if_icmp r0l, ult, r4, 5, 1\n threadgroup_barrier"), "barrier");
    let some = format!(
        "get_sr r4, sr53\n mov_imm r0l, 0\n if_icmp r0l, ueq, r4, 0, 1\n jmp_exec_none end\n threadgroup_barrier\n end:\n {END}"
    );
    assert_eq!(Run::whole(&some).with(set).rule(), "deadlock");
}

#[test]
fn stack() {
    let text = "stack_adjust 0, 1, 2, 0, 0, 16\n mov_imm r6, 8, 0b0\n mov r7, r4\n
        stack_store i32, 1, 0, xy, 4, r6_r7, 8, 0\n wait 0\n stack_load r5, i32, 1, 0, x, 4, 12, 0\n wait 0\n";
    let frame = |run: &mut Run| run.program.stack_dwords = 16;
    let whole = |text: &str| Run::new(&format!("{START}{text}{STORE}")).with(frame);
    assert_eq!(whole(text).words()[20], 20);
    assert_eq!(whole(&text.replace("4, 12, 0", "4, 16, 0")).rule(), "undefined");
    assert_eq!(whole(&text.replace("4, 12, 0", "4, 64, 0")).rule(), "stack");
    assert_eq!(whole(&text.replace("4, 12, 0", "4, 10, 0")).rule(), "stack");
    assert_eq!(whole(&text.replace("0, 0, 16", "0, 0, 17")).rule(), "stack");
    assert_eq!(whole(&text.replace("stack_adjust 0, 1, 2, 0, 0, 16\n", "")).rule(), "stack");
    // Every lane has its own; what is undefined may be put there.
    assert_eq!(whole(&text.replace("mov_imm r6, 8, 0b0\n", "")).words()[20], 20);
}

#[test]
fn preamble_and_uniforms() {
    let code = format!("mov r6, u0\n mov_imm r5l, 1234\n uniform_store 2, i16, x, 0, r5l, 20\n {END}");
    let text = format!("{START} mov r5, u10l\n {STORE}");
    let set = |run: &mut Run| run.program.preamble = Some(assemble(&code).unwrap());
    assert_eq!(Run::new(&text).with(set).words()[7], 1234);
    assert_eq!(Run::new(&text).rule(), "uniform");
    assert_eq!(Run::new("mov_imm r5l, 1\n uniform_store 2, i16, x, 0, r5l, 20").rule(), "uniform");
}

#[test]
fn ends() {
    assert_eq!(Run::whole("mov_imm r0l, 0").rule(), "end");
    assert_eq!(Run::whole("trap").rule(), "end");
    assert_eq!(Run::whole("jmp_exec_any pc+8\n stop").rule(), "end");
    assert_eq!(Run::whole("jmp_exec_any pc+10\n mov_imm r0, 0, 0b0\n stop").rule(), "branch");
    assert_eq!(Run::whole("jmp_exec_any pc-6\n stop").rule(), "branch");
    assert_eq!(Run::whole("jmp_exec_any pc+0\n stop").rule(), "limit");
    assert_eq!(
        Run::whole("a:\n mov_imm r0l, 0\n jmp_exec_any a\n stop")
            .with(|run| run.options.step_limit = 1000)
            .rule(),
        "limit"
    );
    let mut broken = Run::whole("stop");
    broken.program.code = vec![0xff; 12];
    assert_eq!(broken.rule(), "encoding");
    assert_eq!(Run::whole("").rule(), "end");
}

#[test]
fn what_is_not_simulated() {
    for line in
        ["wait_pix 1, 0", "dfdx r0, 1.0", "doorbell 3", "unk0C00", "no_var 1, r0, 0", "get_sr r0, sr124"]
    {
        assert_eq!(Run::new(line).rule(), "unsupported", "{line}");
    }
    assert_eq!(Run::new("convert 3, r5, 1, rtz").rule(), "unsettled");
    assert_eq!(Run::new("icmpsel 3, r5, 1, 2, 3, 4").rule(), "unsettled");
}

#[test]
fn launches_that_do_not_fit() {
    let size = |x: u32, halves: u32| {
        Run::new("").with(|run| {
            run.program.threadgroup_size = [x, 1, 1];
            run.program.halves = halves;
        })
    };
    assert_eq!(size(1024, 104).rule(), "nothing");
    assert_eq!(size(1024, 112).rule(), "dispatch");
    assert_eq!(size(1025, 8).rule(), "dispatch");
    assert_eq!(size(0, 8).rule(), "dispatch");
    assert_eq!(size(384, 256).rule(), "nothing");
    assert_eq!(size(385, 256).rule(), "dispatch");
}

#[test]
fn across_lanes() {
    assert_eq!(stored("icmp_ballot r5, ult, r4, 5")[0], 31);
    assert_eq!(stored("icmp_quad_ballot r5, ult, r4, 6")[4..8], [3; 4]);
    assert_eq!(stored("simd_iadd r5, r4")[9], 496);
    assert_eq!(stored("simd_prefix_iadd r5, r4")[9], 36);
    assert_eq!(stored("quad_prefix_iadd r5, r4")[11], 8 + 9 + 10);
    assert_eq!(stored("simd_max.u r5, r4")[9], 31);
    assert_eq!(stored("simd_min.s r5, r4")[9], 0);
    assert_eq!(stored("simd_shuffle_xor r5, r4, 7")[9], 14);
    assert_eq!(stored("simd_shuffle_down r5, r4, 3")[30], 30);
    assert_eq!(stored("quad_shuffle r5, r4, 2")[9], 10);
    assert_eq!(stored("quad_shuffle_xor r5, r4, 1")[9], 8);
    // Only active lanes count, and inactive ones are read by a shuffle.
    let odd = "mov_imm r0l, 0\n mov_imm r5, 0, 0b0\n and r6, r4, 1\n if_icmp r0l, ueq, r6, 1, 1\n";
    assert_eq!(stored(&format!("{odd} simd_iadd r5, r4\n pop_exec r0l, 1"))[9], 256);
    assert_eq!(stored(&format!("{odd} simd_shuffle_xor r5, r4, 1\n pop_exec r0l, 1"))[9], 8);
    assert_eq!(stored(&format!("{odd} get_sr r5, sr58\n pop_exec r0l, 1"))[9], 4);
    // An index that is undefined where nobody is active spoils that of its quad.
    assert_eq!(
        stops(&format!("{odd} mov r9l, r6l\n simd_shuffle r5, r4, r9l\n pop_exec r0l, 1")),
        "undefined"
    );
}

#[test]
fn floats() {
    // fmul keeps the sign of zero; a sum of zeros of both signs is +0.
    assert_eq!(stored("mov_imm r6, 2147483648, 0b0\n fmul32 r5, r6, 1.0")[0], 0x8000_0000);
    assert_eq!(stored("mov_imm r6, 2147483648, 0b0\n fadd32 r5, r6, 0.0")[0], 0);
    assert_eq!(stored("fadd32 r5, 1.0, -0.5")[0], 0.5f32.to_bits());
    // Below the normal range zero.
    assert_eq!(stored("mov_imm r6, 8388607, 0b0\n fadd32 r5, r6, -0.0")[0], 0);
    assert_eq!(stored("mov_imm r6, 4, 0b0\n convert u32_to_f, r5, r6, rte")[0], 4f32.to_bits());
    assert_eq!(stored("mov_imm r6, 3213675724, 0b0\n convert f_to_s32, r5, r6, rtz")[0] as i32, -1);
    let rcp = |units: i8| {
        let text = format!("{START} fadd32 r6, 3.0, 0.0\n rcp r5, r6\n {STORE}");
        Run::new(&text).with(|run| run.options.approximation = units).words()[0]
    };
    assert_eq!(rcp(0), (1f32 / 3.0).to_bits());
    assert_eq!([rcp(-1) + 1, rcp(1) - 1], [rcp(0); 2]);
    // sin(x) in quadrants: p * sin_pt_2(p).
    let sine = stored("fadd32 r6, 2.5, 0.0\n sin_pt_1 r6, r6\n sin_pt_2 r7, r6\n fmul32 r5, r6, r7");
    assert!((f32::from_bits(sine[0]) - (2.5 * std::f32::consts::FRAC_PI_2).sin()).abs() < 1e-6);
    assert_eq!(stored("fcmpsel ltn, r5, 1.0, 2.0, 5, 6")[0], 5);
}

#[test]
fn counts() {
    let mut run = Run::new(&format!("{START} mov r5, r4\n {STORE}")).with(|run| run.groups = [3, 1, 1]);
    let outcome = run.outcome();
    assert_eq!(outcome.instructions, 18);
    assert_eq!(outcome.executed[..6], [3; 6]);
    assert_eq!(outcome.executed[6..], [0; 8]);
    let first = GroupCounts { threadgroup: 0, group: 0, instructions: 6, requests: 1 };
    assert_eq!((outcome.groups.len(), outcome.groups[0]), (3, first));
    assert_eq!(Code::new(&run.program).addresses().take(2).collect::<Vec<_>>(), [0, 4]);
}

#[test]
fn address_maps() {
    let mut memory = Memory::new();
    let a = memory.place("a", vec![0; 16], true).unwrap();
    let b = memory.place("b", vec![0; 16], true).unwrap();
    assert!(AddressMap::new(&memory, |_, _| 1 << 40).is_err());
    assert!(AddressMap::new(&memory, |n, _| u64::MAX - 8 * n as u64).is_err());
    let map = AddressMap::new(&memory, |n, _| (1 << 40) - 16 * n as u64).unwrap();
    assert_eq!([map.device(a), map.device(b + 3)], [Some(1 << 40), Some((1 << 40) - 13)]);
    assert_eq!(map.device(0), None);
}
