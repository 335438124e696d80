//! No input makes the machine half panic: random bytes and random instructions through decoder, text, validator,
//! statistics and simulator.

use kempe_agx::decode::{MAX_BYTES, decode};
use kempe_agx::ops::ALL;
use kempe_agx::sim::{AddressMap, Dispatch, Options, Order, Program, run};
use kempe_agx::stats::{Facts, count};
use kempe_agx::validate::{ProgramFacts, validate};
use kempe_ir::exec::Memory;
use kempe_ir::inputs::Random;

/// Random bits in the fields of random operations, and that often with few bits, so that registers, immediates and
/// distances are small.
fn code(random: &mut Random) -> Vec<u8> {
    let mut code = Vec::new();
    // A start that defines something, so that not every program stops at once.
    for half in 0..32u8 {
        code.extend([0x62, half << 1, half, 0]);
    }
    for _ in 0..random.below(24) {
        let info = ALL[random.below(ALL.len() as u64) as usize].info();
        let mut noise = u128::from(random.bits()) | u128::from(random.bits()) << 64;
        for _ in 0..random.below(4) {
            noise &= u128::from(random.bits()) | u128::from(random.bits()) << 64;
        }
        let bytes = (noise & !info.mask | info.value).to_le_bytes();
        let length = decode(&bytes[..MAX_BYTES]).map_or(2, |d| d.length);
        code.extend(&bytes[..length]);
    }
    if random.below(4) != 0 {
        code.extend([0x88, 0]);
    }
    code
}

#[test]
fn random_programs() {
    let mut random = Random(7);
    let (mut ended, mut instructions) = (0, 0);
    for _ in 0..8_000 {
        let code = code(&mut random);
        let found = validate(&code, &ProgramFacts::compute(256, 16));
        assert!(!found.is_empty(), "a program without traps behind its end");
        let _ = count(&code, &Facts::default());
        let mut memory = Memory::new();
        memory.place("data", vec![1; 64], true).unwrap();
        let map = AddressMap::scattered(&memory, 1 << 40).unwrap();
        let address = map.device(memory.regions()[0].base).unwrap();
        let program = Program {
            threadgroup_bytes: 64,
            stack_dwords: 64,
            ..Program::new(code, vec![address as u32, (address >> 32) as u32, 3, 4], [40, 1, 1])
        };
        let options = Options {
            strict: random.below(2) == 0,
            order: Order::Shuffled(random.bits()),
            step_limit: 500,
            undefined_in_memory: random.below(2) == 0,
            ..Options::default()
        };
        let outcome = run(&program, &Dispatch { groups: [2, 1, 1], map }, &mut memory, &options);
        ended += usize::from(outcome.result.is_ok());
        instructions += outcome.instructions;
        assert!(outcome.instructions <= 500);
    }
    assert!(ended > 100 && instructions > 50_000, "{ended} ended, {instructions} instructions");
}

#[test]
fn random_bytes() {
    let mut random = Random(8);
    for _ in 0..20_000 {
        let code: Vec<u8> = (0..random.below(64)).map(|_| random.bits() as u8).collect();
        assert!(!validate(&code, &ProgramFacts::compute(104, 0)).is_empty());
        let _ = count(&code, &Facts { preamble: &code, ..Facts::default() });
    }
}
