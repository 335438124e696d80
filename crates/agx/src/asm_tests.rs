//! Texts and encodings that no file says: refusals, labels, forms, random bytes.

use super::*;
use crate::decode::{MAX_BYTES, decode_all};
use crate::encode::{EncodeError, is_canonical};
use kempe_ir::inputs::Random;

fn bytes(random: &mut Random) -> [u8; MAX_BYTES] {
    std::array::from_fn(|_| random.bits() as u8)
}

/// What has been decoded encodes to bytes that decode to the same, and those to themselves.
fn check_decoded(bytes: &[u8]) -> bool {
    let Ok(decoded) = decode(bytes) else { return false };
    let canonical = encode(&decoded.instr).unwrap_or_else(|e| panic!("{bytes:02x?}: {e}"));
    let again = decode(&canonical).expect("bytes of our own");
    assert_eq!((again.instr, again.length), (decoded.instr, canonical.len()), "{bytes:02x?}");
    assert!(is_canonical(&canonical, &again.instr));
    let own = text(&decoded.instr, false);
    if !decoded.instr.has(Number::Mask) || decoded.instr.get(Number::Mask) != 0 {
        assert_eq!(assemble(&own).as_deref(), Ok(&*canonical), "{bytes:02x?} {own}");
    }
    true
}

#[test]
fn random_bytes_decode_or_fail() {
    let mut random = Random(1);
    let decoded = (0..100_000).filter(|_| check_decoded(&bytes(&mut random))).count();
    assert!(decoded > 10_000, "only {decoded} of the random words are instructions");
}

/// Random bits around the fixed ones of every operation, so that each is met often.
#[test]
fn random_fields_of_every_operation() {
    let mut random = Random(2);
    for &op in ALL {
        let info = op.info();
        let mut met = 0;
        for _ in 0..2000 {
            let noise = u128::from(random.bits()) | u128::from(random.bits()) << 64;
            let word = noise & !info.mask | info.value;
            let bytes = word.to_le_bytes();
            met += usize::from(decode(&bytes[..MAX_BYTES]).is_ok_and(|d| d.instr.op == op));
            check_decoded(&bytes[..MAX_BYTES]);
        }
        // Not each one: others may stand before it, and operands may be of no type.
        assert!(met > 0, "{} was never met", info.name);
    }
}

#[test]
fn short_bytes_are_truncated() {
    let code = assemble("iadd r1, r2, r3").unwrap();
    assert_eq!(decode(&code[..6]), Err(DecodeError::Truncated { op: Op::Iadd }));
    assert!(matches!(decode(&[]), Err(DecodeError::Unknown { .. } | DecodeError::Truncated { .. })));
}

/// The four operations that the public disassembler never gets to.
#[test]
fn hidden_operations() {
    assert_eq!(ALL[..4], [Op::StackGetPtr, Op::StackAdjust, Op::Unk51, Op::StackAdjustReg]);
    for (line, public) in [
        ("stack_adjust 0, 1, 2, 0, 0, 12", "stack_store      i8, 1, 2, 0, r0l, 12, 0"),
        ("unk51", "no_var           0, r0, r0l"),
    ] {
        let code = assemble(line).unwrap();
        let instr = decode(&code).unwrap().instr;
        assert_eq!(text(&instr, false).split_whitespace().collect::<Vec<_>>().join(" "), line);
        assert_ne!(disassemble(&code, true).unwrap().0, line);
        // A mask of 0 prints no registers.
        let public = public.replace(", r0l, 12", ", 12");
        assert_eq!(disassemble(&code, true).unwrap().0, public);
    }
    let pointer = Instr::new(Op::StackGetPtr).with(Role::Dest, Operand::reg(8, Size::B32));
    assert_eq!(decode(&encode(&pointer).unwrap()).unwrap().instr, pointer);
    let by_reg = Instr::new(Op::StackAdjustReg).with(Role::A, Operand::reg(8, Size::B32));
    assert_eq!(decode(&encode(&by_reg).unwrap()).unwrap().instr, by_reg);
}

/// The words that section 16 and 5 give.
#[test]
fn words_of_the_reference() {
    assert_eq!(assemble("stop\ntrap").unwrap(), [0x88, 0, 0x08, 0]);
    assert_eq!(assemble("threadgroup_barrier").unwrap(), [0x68, 0]);
    assert_eq!(assemble("memory_barrier 1, 2, 9").unwrap(), [0xf5, 0x96]);
    let adjust = Instr::new(Op::StackAdjust).set(Number::Value, 0);
    let word = u32::from_le_bytes(encode(&adjust).unwrap()[..4].try_into().unwrap());
    assert_eq!(word & 0x3ff_ffff & !(1 << 26), 0x10100b5 & 0x3ff_ffff);
}

#[test]
fn forms() {
    let short =
        Instr::binary(Op::Fadd32, Operand::reg(0, Size::B32), Operand::reg(2, Size::B32), Operand::float(0));
    assert_eq!(encode(&short).unwrap().len(), 4);
    let long = short.in_form(Form::Long);
    let bytes = encode(&long).unwrap();
    assert_eq!(bytes.len(), 6);
    assert_eq!(decode(&bytes).unwrap().instr, long);
    assert_eq!(assemble("fadd32.long r0, r1, 0.0").as_deref(), Ok(&*bytes));
    let mut high = short;
    high.put(Role::Dest, Operand::reg(64, Size::B32));
    assert_eq!(encode(&high).unwrap().len(), 6);
    assert_eq!(decode(&encode(&high).unwrap()).unwrap().instr, high);
    high.form = Form::Short;
    assert_eq!(encode(&high), Err(EncodeError::Form { op: Op::Fadd32 }));
    // Memory accesses are long, whatever their registers.
    let load = parse("device_load 0, i32, x, r0, u0_u1, 0, signed").unwrap();
    assert_eq!(encode(&load).unwrap().len(), 8);
    let load = load.in_form(Form::Short);
    assert!(matches!(encode(&load), Err(EncodeError::Form { .. })), "the mask is in the long part");
    let stop = Instr::new(Op::Stop).in_form(Form::Long);
    assert!(encode(&stop).is_err());
}

#[test]
fn what_has_no_encoding_is_refused() {
    let r = |half| Operand::reg(half, Size::B32);
    let refused = [
        Instr::mov(r(3), r(4)),
        Instr::new(Op::MovImm16).with(Role::Dest, r(2)),
        Instr::new(Op::MovImm32).with(Role::Dest, Operand::reg(2, Size::B16)),
        Instr::mov(r(2), Operand::imm(256)),
        Instr::mov(r(2), Operand::imm(-1)),
        Instr::mov(r(2), r(256)),
        Instr::mov(r(2), Operand::uniform(512, Size::B16)),
        Instr::mov(r(2), Operand::uniform(0, Size::B64)),
        Instr::mov(r(2), Operand::float(0)),
        Instr::mov(r(2), r(4).neg()),
        Instr::mov(r(2).discard(), r(4)),
        Instr::mov(r(2), Operand::imm(1).cache()),
        Instr::mov(Operand::NONE, r(2)),
        Instr::mov(r(2), r(4)).set(Number::Shift, 1),
        Instr::mov(r(2), r(4)).with(Role::C, r(6)),
        Instr::bitop(16, r(2), r(4), r(6)),
        Instr::binary(Op::Fadd16, r(2), Operand::reg(1, Size::B16), Operand::reg(2, Size::B16)),
        Instr::binary(Op::SimdShuffle, r(2), r(4), r(6)),
        Instr::always(Op::IfFcmp, 4),
        parse("device_load 0, i32, xy, r0_r1, r2_r3, 0, signed").unwrap().set(Number::Mask, 1),
    ];
    for instr in refused {
        assert!(encode(&instr).is_err(), "{instr:?}");
    }
    for line in [
        "",
        "nothing",
        "mov r0",
        "mov r0, r1, r2",
        "mov r0, r1_r2",
        "iadd r0, r1, 300",
        "wait",
        "fadd32 r0, 0.3, 0.0",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn labels() {
    let code = assemble(
        "start: ; the loop\n  mov_imm r1l, 5\n  jmp_exec_any start\n  jmp_exec_none end\nend:\n  stop\n",
    )
    .unwrap();
    let found = decode_all(&code).unwrap();
    let targets: Vec<i32> = found.iter().map(|(_, d)| d.instr.get(Number::Target) as i32).collect();
    assert_eq!(targets, [0, -4, 6, 0]);
    assert!(assemble("jmp_exec_any nowhere").is_err());
    assert!(assemble("a:\na:").is_err());
}

#[test]
fn a_signed_immediate_is_shown_only_without_quirks() {
    let instr = Instr::binary(
        Op::Iadd,
        Operand::reg(0, Size::B32),
        Operand::imm(7).signed(),
        Operand::reg(2, Size::B32),
    );
    assert_eq!(text(&instr, true), "iadd             r0, 7, r1");
    assert_eq!(text(&instr, false), "iadd             r0, 7.sx, r1");
    assert_eq!(parse(&text(&instr, false)), Ok(instr));
}

#[test]
fn floats() {
    assert_eq!(float_value(0x80).to_bits(), (-0.0f64).to_bits());
    assert_eq!(float_value(0x7f), 31.0);
    assert_eq!(float_value(1), 1.0 / 64.0);
    assert_eq!(float_value(0x30), 1.0);
    for bits in 0..=255 {
        assert_eq!(float_bits(float_value(bits)), Some(bits));
    }
}
