//! What the coverage-guided targets do with one input. Anything may come in; a panic is a defect.
//!
//! This file is part of `xtask` (which replays its seeds in the normal tests) and, by its path, of the instrumented
//! programs in `fuzz/`.

use kempe::exec::Inputs;
use kempe::raw::Raw;
use kempe::run::{RunOptions, run_artifact};
use kempe_front::{Language, Options};
use kempe_v3d::instr::Version;
use kempe_v3d::validate::{ProgramFacts, validate};
use kempe_v3d::{asm, decode, encode};

/// A target: its name, what it does, the longest input.
pub struct Target {
    pub name: &'static str,
    /// Called by the tests here; the instrumented programs call the functions themselves.
    #[cfg_attr(not(test), allow(dead_code))]
    pub run: fn(&[u8]),
    pub max_len: usize,
}

pub const TARGETS: [Target; 6] = [
    Target { name: "spirv", run: spirv, max_len: 4096 },
    Target { name: "decode", run: words, max_len: 256 },
    Target { name: "assemble", run: assemble, max_len: 1024 },
    Target { name: "agx", run: agx, max_len: 512 },
    Target { name: "raw", run: raw, max_len: 4096 },
    Target { name: "artifact", run: artifact, max_len: 8192 },
];

/// Most instructions of a run on the simulator.
const STEPS: u64 = 2000;

/// The reader of SPIR-V and everything that makes IR of it. What it makes is well formed.
pub fn spirv(data: &[u8]) {
    match kempe_front::compile("input.spv", data, Language::Spirv, &Options::default()) {
        Ok(modules) => {
            for m in &modules {
                if let Err(e) = kempe::ir::verify::verify(m) {
                    panic!("not well formed: {e:?}");
                }
            }
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

/// The decoder: an instruction has a text that means it, and a word that decodes to it; the validator takes any words.
pub fn words(data: &[u8]) {
    let Some((&head, data)) = data.split_first() else { return };
    let version = Version::ALL[(head & 1) as usize];
    let (chunks, _) = data.as_chunks::<8>();
    let words: Vec<u64> = chunks.iter().map(|c| u64::from_le_bytes(*c)).collect();
    for &word in &words {
        let text = asm::disassemble(version, word, false);
        asm::disassemble(version, word, true);
        let Ok(instr) = decode::decode(version, word) else {
            assert_eq!(text, "invalid");
            continue;
        };
        match asm::parse(version, &text) {
            Ok(again) => assert_eq!(asm::text(version, &again, false), text),
            Err(e) => panic!("{word:#018x} is `{text}`, but {e}"),
        }
        if let Ok(canonical) = encode::encode_any(version, &instr) {
            assert_eq!(decode::decode(version, canonical).ok(), Some(instr), "{word:#018x}: {text}");
        }
    }
    let facts = ProgramFacts {
        single_segment: head & 2 != 0,
        code_address: (head & 4 != 0).then_some(0x10000),
        ..ProgramFacts::compute(if head & 8 == 0 { 4 } else { 2 })
    };
    validate(version, &words, &facts);
}

/// The assembler: what it accepts has words whose text gives the same words.
pub fn assemble(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for version in Version::ALL {
        match asm::assemble(version, text) {
            Ok(words) => {
                let list: Vec<String> = words.iter().map(|&w| asm::disassemble(version, w, false)).collect();
                let again = asm::assemble(version, &list.join("\n"));
                assert_eq!(again.as_ref().ok(), Some(&words), "{list:#?}: {:?}", again.as_ref().err());
            }
            Err(e) => assert!(e.line > 0 && e.column > 0 && !e.message.is_empty()),
        }
    }
}

/// AGX: bytes through decoder, encoder, text, validator, statistics and simulator; or a text through the assembler. The first byte
/// chooses.
pub fn agx(data: &[u8]) {
    use kempe_agx::{asm, decode, encode, instr, sim, stats, validate};
    let Some((&head, data)) = data.split_first() else { return };
    if head & 1 != 0 {
        let Ok(text) = std::str::from_utf8(data) else { return };
        match asm::assemble(text) {
            Ok(code) => assert!(decode::decode_all(&code).is_ok()),
            Err(e) => assert!(!e.is_empty()),
        }
        return;
    }
    for (at, decoded) in decode::decode_all(data).unwrap_or_default() {
        let instr = decoded.instr;
        let canonical = encode::encode(&instr).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        assert_eq!(decode::decode(&canonical).map(|d| d.instr), Ok(instr), "byte {at}");
        let text = asm::text(&instr, false);
        // An access to no element has no registers that could be written down.
        if !instr.has(instr::Number::Mask) || instr.get(instr::Number::Mask) != 0 {
            assert_eq!(asm::assemble(&text).as_deref(), Ok(&*canonical), "byte {at}: {text}");
        }
        let _ = asm::disassemble(&data[at..], true);
    }
    validate::validate(data, &validate::ProgramFacts::compute(104, 16));
    let _ = stats::count(data, &stats::Facts::default());
    let mut memory = kempe::exec::Memory::new();
    let Ok(base) = memory.place("data", vec![1; 64], true) else { return };
    let Ok(map) = sim::AddressMap::scattered(&memory, 1 << 40) else { return };
    let address = map.device(base).unwrap_or_default();
    let program = sim::Program {
        threadgroup_bytes: 64,
        stack_dwords: 64,
        ..sim::Program::new(data.to_vec(), vec![address as u32, (address >> 32) as u32], [40, 1, 1])
    };
    let options = sim::Options { strict: head & 2 != 0, step_limit: STEPS, ..sim::Options::default() };
    let outcome = sim::run(&program, &sim::Dispatch { groups: [2, 1, 1], map }, &mut memory, &options);
    assert!(outcome.instructions <= STEPS);
}

/// Raw programs: a description, and behind the first zero byte the bytes that it names.
pub fn raw(data: &[u8]) {
    let at = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let Ok(json) = std::str::from_utf8(&data[..at]) else { return };
    let Ok(raw) = Raw::new(json, data.get(at + 1..).unwrap_or_default()) else { return };
    // A run copies the memory image, which may have a gigabyte: only small ones here.
    if numbers(json).all(|n| n < 1 << 22) {
        // Either answer will do.
        let _ = raw.run(&RunOptions { step_limit: STEPS, schedule: data.len() as u64 });
    }
}

/// Artifacts: what is read is written so that it reads the same; it may be run.
pub fn artifact(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(artifact) = kempe::artifact::read(text) else { return };
    let written = kempe::artifact::write(&artifact);
    match kempe::artifact::read(&written) {
        Ok(again) => assert_eq!(kempe::artifact::write(&again), written),
        Err(e) => panic!("what was written is not read: {e}\n{written}"),
    }
    if numbers(text).all(|n| n < 1 << 16) {
        let mut inputs = Inputs::new([1, 1, 1]).push(vec![1; 16]);
        for r in artifact.resources.iter().take(8) {
            inputs = inputs.buffer(r.set, r.binding, vec![1; 256]);
        }
        let _ = run_artifact(&artifact, &inputs, &RunOptions { step_limit: STEPS, schedule: 1 });
    }
}

/// The decimal numbers in a text (very long ones as the largest).
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty()).map(|s| s.parse().unwrap_or(u64::MAX))
}
