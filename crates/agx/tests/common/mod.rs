//! Modules in text form down the road of the target: the simulator against the interpreter on the lowered form.

// Each test binary uses a part of it.
#![allow(dead_code)]

use kempe_agx::compile::{Observer, Options, compile};
use kempe_agx::instr::Instr;
use kempe_agx::lower::AddressCounts;
use kempe_agx::sim::{self, AddressMap, Dispatch, Program};
use kempe_agx::{asm, decode};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::{Module, UniformWord, interp, text};
use kempe_mir::{Artifact, UniformSource};

/// What a compile gave.
pub struct Made {
    pub artifact: Artifact,
    pub lowered: Module,
    pub addresses: AddressCounts,
}

struct Catch(Option<(Module, AddressCounts)>);

impl Observer for Catch {
    fn lowered(&mut self, m: &Module, addresses: AddressCounts) {
        self.0 = Some((m.clone(), addresses));
    }
}

/// Compiles as it stands, without the optimiser.
pub fn made(m: &Module, options: &Options) -> Result<Made, String> {
    let mut catch = Catch(None);
    let artifact = compile(m.clone(), options, &mut catch).map_err(|e| e.to_string())?;
    let (lowered, addresses) = catch.0.ok_or("nothing was lowered")?;
    Ok(Made { artifact, lowered, addresses })
}

pub fn module(text: &str) -> Module {
    let m = text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    m
}

impl Made {
    pub fn instrs(&self) -> Vec<Instr> {
        let all = decode::decode_all(&self.artifact.code).unwrap_or_else(|e| panic!("{e:?}"));
        all.into_iter().map(|(_, d)| d.instr).collect()
    }

    pub fn text(&self) -> String {
        let lines: Vec<String> = self.instrs().iter().map(|i| asm::text(i, false)).collect();
        lines.join("\n")
    }

    /// Runs code and lowered form; both must give the same buffers, which are returned.
    pub fn run(&self, inputs: &Inputs) -> Vec<Vec<u8>> {
        let env = Environment::new(&self.lowered, inputs, Sizes::source()).expect("an environment");
        let how = interp::Options { flush: true, ..interp::Options::source() };
        let wanted = interp::run(&self.lowered, &env, &how).unwrap_or_else(|e| panic!("{e}"));
        let mut memory = env.memory.clone();
        let map = AddressMap::scattered(&memory, 0x7_0000_0000).expect("a map");
        let address = |word: UniformWord| {
            let value = env.word(word);
            match word {
                UniformWord::BufferAddr { .. } | UniformWord::PushAddr | UniformWord::ConstantAddr => {
                    map.device(value).unwrap_or(0)
                }
                _ => value.into(),
            }
        };
        let uniforms = self.artifact.uniforms.iter().map(|source| match *source {
            UniformSource::Const(v) => v,
            UniformSource::Word(word, plus) => (address(word) as u32).wrapping_add(plus),
            UniformSource::High(word) => (address(word) >> 32) as u32,
        });
        let program = Program {
            halves: (2 * self.artifact.stats.max_temps).next_multiple_of(8).max(8),
            threadgroup_bytes: self.artifact.shared_bytes,
            stack_dwords: self.artifact.scratch_bytes / 4,
            ..Program::new(self.artifact.code.clone(), uniforms.collect(), self.artifact.workgroup_size)
        };
        let dispatch = Dispatch { groups: inputs.groups, map };
        let options = sim::Options { zeroed_threadgroup: true, ..sim::Options::default() };
        let outcome = sim::run(&program, &dispatch, &mut memory, &options);
        if let Err(fault) = &outcome.result {
            panic!("{fault}\n{}", self.text());
        }
        let contents = |m| env.buffer_contents(m).into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (got, want) = (contents(&memory), contents(&wanted.memory));
        assert!(got == want, "buffers differ\n{}\n{}", text::print(&self.lowered), self.text());
        got
    }
}

/// Little-endian words.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}
