use super::*;
use crate::asm;
use crate::encode::{encode, encode_any};
use crate::instr::{Loc, Pack, Signals};
use crate::magic;

/// A small generator, so that the tests need no crate and always see the same numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 32) as usize % n
    }
}

#[test]
fn random_words_never_panic_and_round_trip() {
    for version in Version::ALL {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut valid = 0;
        for i in 0..1_000_000u32 {
            let word = random.next();
            let Ok(instr) = decode(version, word) else { continue };
            valid += 1;
            let canonical =
                encode_any(version, &instr).unwrap_or_else(|e| panic!("{word:016x} {instr:?}: {e}"));
            assert_eq!(decode(version, canonical), Ok(instr), "{word:016x} {canonical:016x}");
            if let Ok(strict) = encode(version, &instr) {
                assert_eq!(strict, canonical);
            }
            // Text is slower: every eighth word.
            if i % 8 == 0 {
                let text = asm::disassemble(version, word, false);
                assert_eq!(asm::parse(version, &text), Ok(instr), "{word:016x} {text}");
                asm::disassemble(version, word, true);
            }
        }
        // More than half of all words mean something, so the loop has seen many.
        assert!(valid > 400_000, "{valid}");
    }
}

/// Every opcode with every selector of its part, beside a nop.
#[test]
fn every_operation_round_trips() {
    for version in Version::ALL {
        let nop = encode(version, &Instr::NOP).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut check = |word: u64, unit: Unit| {
            let Ok(instr) = decode(version, word) else { return };
            let Instr::Alu(alu) = instr else { panic!("{word:016x} is no ALU word") };
            seen.insert((unit as u8, if unit == Unit::Add { alu.add.op } else { alu.mul.op }));
            let canonical =
                encode_any(version, &instr).unwrap_or_else(|e| panic!("{word:016x} {instr:?}: {e}"));
            assert_eq!(decode(version, canonical), Ok(instr), "{word:016x}");
            let text = asm::text(version, &instr, false);
            assert_eq!(asm::parse(version, &text), Ok(instr), "{text}");
        };
        let (add, mul) = match version {
            Version::V42 => (0x3_f000u64, 0xfc_0000u64),
            Version::V71 => (0x3f, 0x3_f000),
        };
        for selector in 0..64u64 {
            for opcode in 0..256u64 {
                let rest = nop & !(0xff << 24 | add);
                for ma in [0, 1] {
                    for waddr in [0, 1, 2, 6] {
                        let dest = (rest & !(1 << 44 | 63 << 32)) | ma << 44 | waddr << 32;
                        check(dest | opcode << 24 | selector << add.trailing_zeros(), Unit::Add);
                    }
                }
            }
            for opcode in 1..64u64 {
                let rest = nop & !(63 << 58 | mul);
                check(rest | opcode << 58 | selector << mul.trailing_zeros(), Unit::Mul);
            }
        }
        for unit in [Unit::Add, Unit::Mul] {
            for form in tables::unit(version, unit).forms() {
                assert!(seen.contains(&(unit as u8, form.op)), "{} never decoded", form.op.name());
            }
        }
    }
}

#[test]
fn every_signal_with_every_condition_round_trips() {
    for version in Version::ALL {
        let nop = encode(version, &Instr::NOP).unwrap();
        let mut valid = 0;
        for sig in 0..32u64 {
            for cond in 0..128u64 {
                let word = nop & !(31 << 53 | 127 << 46) | sig << 53 | cond << 46;
                let decoded = decode(version, word);
                let code = tables::signal_code(version, sig as u8);
                let addressed = code.set.has(Signals::ADDRESSED);
                let wanted = code.field != Field::Reserved && (addressed || cond != 0x10);
                assert_eq!(decoded.is_ok(), wanted, "{sig} {cond}");
                let Ok(instr) = decoded else { continue };
                valid += 1;
                let canonical = encode_any(version, &instr).unwrap();
                assert_eq!(decode(version, canonical), Ok(instr));
                let field = canonical >> 46 & 127;
                // A conditional ADD part with a push of code 0 on the MUL part and the other way round are the only
                // condition fields with two spellings, and there are none: each field comes back.
                assert_eq!(field, cond, "{sig}");
            }
        }
        assert!(valid > 3000);
    }
}

#[test]
fn reserved_words_are_refused_with_the_rule() {
    for version in Version::ALL {
        let nop = encode(version, &Instr::NOP).unwrap();
        assert_eq!(decode(version, 0), Err(DecodeError::NotAnInstruction));
        assert_eq!(decode(version, 1 << 56), Err(DecodeError::NotAnInstruction));
        assert_eq!(decode(version, 2 << 56 | 3 << 21), Err(DecodeError::Msfign));
        assert_eq!(decode(version, nop | 28 << 53), Err(DecodeError::Signal(28)));
        assert_eq!(decode(version, nop | 0x10 << 46), Err(DecodeError::Condition));
        assert_eq!(decode(version, nop & !(0xff << 24) | 48 << 24), Err(DecodeError::AddOp(48)));
        assert_eq!(decode(version, nop & !(63 << 58) | 12 << 58), Err(DecodeError::MulOp(12)));
        assert!(DecodeError::Condition.to_string().contains("rule 3"));
    }
    // or rf0, rf0, code 48: 4.2 through selector 7 with signal 15, 7.1 in the second source.
    let nop42 = encode(Version::V42, &Instr::NOP).unwrap();
    let word = nop42 & !(0xff << 24 | 0x3ffff) | 182 << 24 | 15 << 53 | 7 << 15 | 6 << 12 | 48;
    assert_eq!(decode(Version::V42, word), Err(DecodeError::SmallImmediate(48)));
    let nop71 = encode(Version::V71, &Instr::NOP).unwrap();
    let word = nop71 & !(0xff << 24 | 0xfff) | 182 << 24 | 15 << 53 | 48;
    assert_eq!(decode(Version::V71, word), Err(DecodeError::SmallImmediate(48)));
}

#[test]
fn reads_and_writes_name_the_implicit_registers() {
    let uniform = Alu::signal(Signals::LDUNIF);
    assert_eq!(uniform.writes(Version::V42).collect::<Vec<_>>(), [Loc::Acc(5)]);
    assert_eq!(uniform.writes(Version::V71).collect::<Vec<_>>(), [Loc::Row(0)]);
    assert!(uniform.consumes_uniform());
    let vary = Alu { sig_dest: Some(Dest::Row(3)), ..Alu::signal(Signals::LDVARY) };
    assert_eq!(vary.writes(Version::V71).collect::<Vec<_>>(), [Loc::Row(3)]);
    assert_eq!(vary.writes_late(Version::V71).collect::<Vec<_>>(), [Loc::Row(0)]);
    let mut packed =
        Alu { add: Part::new(Op::Fadd, Dest::Row(7), Source::Row(1), Source::Acc(2)), ..Alu::NOP };
    assert_eq!(packed.reads().collect::<Vec<_>>(), [Loc::Row(1), Loc::Acc(2)]);
    assert_eq!(packed.merged(Version::V42).count(), 0);
    packed.add.pack = Pack::H;
    assert_eq!(packed.merged(Version::V42).collect::<Vec<_>>(), [Loc::Row(7)]);
    let start =
        Alu { add: Part::new(Op::Or, Dest::Magic(magic::TMUAU), Source::Row(1), Source::Row(1)), ..Alu::NOP };
    assert!(start.starts_tmu() && start.has_tmu_write() && start.uniforms() == 1);
    let sfu =
        Alu { mul: Part::new(Op::Mov, Dest::Magic(magic::EXP), Source::Row(1), Source::None), ..Alu::NOP };
    assert_eq!(sfu.writes_late(Version::V42).collect::<Vec<_>>(), [Loc::Acc(4)]);
}
