use super::*;
use crate::asm;
use crate::decode::decode;
use crate::instr::{Cond, MsfIgnore, Push, Update};
use crate::ops;

/// Fields of a 4.2 word, for words put together by hand: everything that is not named is that of a nop.
#[derive(Clone, Copy)]
struct Word42 {
    op_mul: u64,
    sig: u64,
    cond: u64,
    mm: u64,
    ma: u64,
    waddr_m: u64,
    waddr_a: u64,
    op_add: u64,
    mul: (u64, u64),
    add: (u64, u64),
    raddr: (u64, u64),
}

/// nop in both parts: MUL opcode 15 with selectors 0, 4; ADD opcode 187 with selectors 0, 0; destinations magic 6.
const W42: Word42 = Word42 {
    op_mul: 15,
    sig: 0,
    cond: 0,
    mm: 1,
    ma: 1,
    waddr_m: 6,
    waddr_a: 6,
    op_add: 187,
    mul: (0, 4),
    add: (0, 0),
    raddr: (0, 0),
};

impl Word42 {
    fn bits(self) -> u64 {
        self.op_mul << 58
            | self.sig << 53
            | self.cond << 46
            | self.mm << 45
            | self.ma << 44
            | self.waddr_m << 38
            | self.waddr_a << 32
            | self.op_add << 24
            | self.mul.1 << 21
            | self.mul.0 << 18
            | self.add.1 << 15
            | self.add.0 << 12
            | self.raddr.0 << 6
            | self.raddr.1
    }
}

/// Fields of a 7.1 word.
#[derive(Clone, Copy)]
struct Word71 {
    op_mul: u64,
    sig: u64,
    cond: u64,
    mm: u64,
    ma: u64,
    waddr_m: u64,
    waddr_a: u64,
    op_add: u64,
    mul: (u64, u64),
    add: (u64, u64),
}

/// nop in both parts: MUL opcode 14 with second address 63; ADD opcode 187 with second address 0.
const W71: Word71 = Word71 {
    op_mul: 14,
    sig: 0,
    cond: 0,
    mm: 1,
    ma: 1,
    waddr_m: 6,
    waddr_a: 6,
    op_add: 187,
    mul: (0, 63),
    add: (0, 0),
};

impl Word71 {
    fn bits(self) -> u64 {
        self.op_mul << 58
            | self.sig << 53
            | self.cond << 46
            | self.mm << 45
            | self.ma << 44
            | self.waddr_m << 38
            | self.waddr_a << 32
            | self.op_add << 24
            | self.mul.0 << 18
            | self.mul.1 << 12
            | self.add.0 << 6
            | self.add.1
    }
}

#[track_caller]
fn both_ways(version: Version, text: &str, word: u64) {
    assert_eq!(asm::assemble(version, text), Ok(vec![word]), "{text}");
    let printed = asm::disassemble(version, word, false);
    let squeeze = |s: &str| s.split(';').map(str::trim).collect::<Vec<_>>().join("; ");
    assert_eq!(squeeze(&printed), squeeze(text));
    let instr = decode(version, word).unwrap();
    assert_eq!(encode(version, &instr), Ok(word), "{text}");
}

#[test]
fn words_of_42_by_hand() {
    let t = |text: &str, word: Word42| both_ways(Version::V42, text, word.bits());
    t("nop; nop", W42);
    t("nop; nop; thrsw", Word42 { sig: 1, ..W42 });
    t("nop; nop; ldunif", Word42 { sig: 2, ..W42 });
    t("nop; nop; ldtmu.rf11", Word42 { sig: 4, cond: 11, ..W42 });
    t("nop; nop; ldvary.r4", Word42 { sig: 8, cond: 64 | 4, ..W42 });
    t("nop; nop; ldunifrf.unifa", Word42 { sig: 12, cond: 64 | 9, ..W42 });
    t("nop; nop; thrsw; ldvary.rf3; wrtmuc", Word42 { sig: 21, cond: 3, ..W42 });
    // The text order of signals is fixed; ldunif stands behind ldtmu.
    t("nop; nop; thrsw; ldtmu.rf0; ldunif", Word42 { sig: 7, ..W42 });
    // MUL mov: opcode 15, second selector 7; first selector 6 reads the first port.
    let mov = Word42 { mul: (6, 7), raddr: (11, 0), ..W42 };
    t("nop; mov tmud, rf11", Word42 { waddr_m: 11, ..mov });
    t("nop; mov.pushz -, rf11", Word42 { cond: 0x11, ..mov });
    t("nop; mov.ifa rf7, r2", Word42 { cond: 0x30, mul: (2, 7), mm: 0, waddr_m: 7, ..W42 });
    // One row and a small immediate: the immediate sits in the second port, -1 has code 31.
    let add = Word42 { op_add: 56, ma: 0, waddr_a: 9, ..W42 };
    t("add rf9, rf9, -1; nop", Word42 { sig: 15, add: (6, 7), raddr: (9, 31), ..add });
    t("add rf9, r1, r5; nop", Word42 { add: (1, 5), ..add });
    t("add.norn rf9, rf63, rf2; nop.ifnb", Word42 { cond: 0x70 | 11, add: (6, 7), raddr: (63, 2), ..add });
    t(
        "add tmuau, rf10, r5; nop; thrsw",
        Word42 { sig: 1, ma: 1, waddr_a: 13, add: (6, 5), raddr: (10, 0), ..add },
    );
    // fadd: pack, unpack a, unpack b in opcode bits 5:4, 3:2, 1:0; code 1 is none.
    let fadd = Word42 { op_add: 5, ma: 0, waddr_a: 13, ..W42 };
    t("fadd rf13, r0, r5; nop", Word42 { add: (0, 5), ..fadd });
    t("faddnf rf13, r5, r0; nop", Word42 { add: (5, 0), ..fadd });
    t("fadd rf13.h, rf1.abs, rf2; nop", Word42 { op_add: 0x21, add: (6, 7), raddr: (1, 2), ..fadd });
    t("fadd rf13, rf1.l, rf2.h; nop", Word42 { op_add: 0b1011, add: (6, 7), raddr: (1, 2), ..fadd });
    // Order keys compare the unpack codes first (section 6.1): none is 1, abs is 0.
    t("faddnf rf13, rf1, rf2.abs; nop", Word42 { op_add: 4, add: (6, 7), raddr: (1, 2), ..fadd });
    // Equal unpack codes: the ports decide, and the encoder turns them.
    t("fmax rf13, rf1, rf2; nop", Word42 { op_add: 128 + 5, add: (7, 6), raddr: (2, 1), ..fadd });
    t("fmin rf13, rf1, rf2; nop", Word42 { op_add: 128 + 5, add: (6, 7), raddr: (1, 2), ..fadd });
    // Equal sources: only with the row in both ports.
    t("fmax rf13, rf4, rf4; nop", Word42 { op_add: 128 + 5, add: (7, 6), raddr: (4, 4), ..fadd });
    // fcmp has packs on 4.2.
    t("fcmp.pushn -.l, r0, r1; nop", Word42 { op_add: 192 + 0x15, cond: 2, add: (0, 1), ..W42 });
    // fmul: pack code plus one in opcode bits 5:4.
    t("nop; fmul r0, r4, rf0", Word42 { op_mul: 0x15, waddr_m: 0, mul: (4, 6), ..W42 });
    t("nop; fmul rf2.l, r4.h, r3", Word42 { op_mul: 0x2d, mm: 0, waddr_m: 2, mul: (4, 3), ..W42 });
    // MUL fmov: pack in opcode bit 0 and the top of the second selector, unpack below.
    t("nop; fmov rf2, r3.l", Word42 { op_mul: 14, mm: 0, waddr_m: 2, mul: (3, 2), ..W42 });
    t("nop; fmov rf2.l, r3", Word42 { op_mul: 14, mm: 0, waddr_m: 2, mul: (3, 5), ..W42 });
    t("nop; fmov rf2.h, r3.abs", Word42 { op_mul: 15, mm: 0, waddr_m: 2, mul: (3, 0), ..W42 });
    // vfmul: f16 unpack above opcode 4.
    t("nop; vfmul rf2, r3.swp, r1", Word42 { op_mul: 8, mm: 0, waddr_m: 2, mul: (3, 1), ..W42 });
    t("nop; multop -, rf6, rf7", Word42 { op_mul: 10, mul: (6, 7), raddr: (6, 7), ..W42 });
    // Conversions: opcode bits 3:2 hold none (245), l (249), h (253).
    t("ftoin rf1, r2; nop", Word42 { op_add: 245, ma: 0, waddr_a: 1, add: (2, 3), ..W42 });
    t("ftoin rf1, r2.l; nop", Word42 { op_add: 249, ma: 0, waddr_a: 1, add: (2, 3), ..W42 });
    t("fceil rf1.h, r2.h; nop", Word42 { op_add: 254, ma: 0, waddr_a: 1, add: (2, 6), ..W42 });
    t("vfpack tlbu, rf6, rf7.h; nop", Word42 { op_add: 55, waddr_a: 8, add: (6, 7), raddr: (6, 7), ..W42 });
    t("recip rf12, rf6; nop", Word42 { op_add: 186, ma: 0, waddr_a: 12, add: (6, 5), raddr: (6, 0), ..W42 });
    t("tmuwt -; nop", Word42 { add: (5, 2), ..W42 });
    t("barrierid syncb; nop", Word42 { waddr_a: 18, add: (4, 2), ..W42 });
    // VPM: in and out differ in bit ma; a store has its kind in the write address.
    let row3 = Word42 { sig: 15, raddr: (0, 3), add: (7, 0), ..W42 };
    t("ldvpmv_in rf6, 3; nop", Word42 { op_add: 188, ma: 0, waddr_a: 6, ..row3 });
    t("ldvpmv_out rf6, 3; nop", Word42 { op_add: 188, ma: 1, waddr_a: 6, ..row3 });
    t("stvpmv 3, rf6; nop", Word42 { op_add: 248, ma: 0, waddr_a: 0, add: (7, 6), raddr: (6, 3), ..row3 });
    t("stvpmp 3, rf6; nop", Word42 { op_add: 248, ma: 0, waddr_a: 2, add: (7, 6), raddr: (6, 3), ..row3 });
    // Rotation: -3 is code 29.
    t("nop; mov r1, r0; rotate.-3", Word42 { sig: 23, waddr_m: 1, mul: (0, 7), raddr: (0, 29), ..W42 });
    t("nop; mov r1, r0; rotate.r5", Word42 { sig: 23, waddr_m: 1, mul: (0, 7), ..W42 });
    // Small immediate beside the two signals that allow it.
    t(
        "or rf1, 4, 4; nop; ldtmu.rf2",
        Word42 { op_add: 182, sig: 31, cond: 2, ma: 0, waddr_a: 1, add: (7, 7), raddr: (0, 4), ..W42 },
    );
}

#[test]
fn words_of_71_by_hand() {
    let t = |text: &str, word: Word71| both_ways(Version::V71, text, word.bits());
    t("nop; nop", W71);
    t("nop; nop; thrsw", Word71 { sig: 1, ..W71 });
    t("nop; nop; thrsw; ldtmu.rf3; wrtmuc", Word71 { sig: 27, cond: 3, ..W71 });
    t("nop; nop; ldunifarf.tmud", Word71 { sig: 25, cond: 64 | 11, ..W71 });
    // mov in both parts: second address 3 is the plain one, bits 4:2 the unpack.
    t("nop; mov tmud, rf11", Word71 { waddr_m: 11, mul: (11, 3), ..W71 });
    t("mov rf1, rf11.ih; nop", Word71 { op_add: 249, ma: 0, waddr_a: 1, add: (11, 19), ..W71 });
    t("nop; mov.ifa rf7, 1", Word71 { sig: 30, cond: 0x30, mm: 0, waddr_m: 7, mul: (1, 3), ..W71 });
    t("nop; fmov rf7.h, rf2.max0", Word71 { mm: 0, waddr_m: 7, mul: (2, 6 << 2 | 2), ..W71 });
    let add = Word71 { op_add: 56, ma: 0, waddr_a: 9, ..W71 };
    t("add rf9, rf9, -1; nop", Word71 { sig: 15, add: (9, 31), ..add });
    t("add rf9, -1, rf9; nop", Word71 { sig: 14, add: (31, 9), ..add });
    t(
        "add rf9, rf1, rf2; sub rf3, rf4, 0x3f800000",
        Word71 { sig: 31, add: (1, 2), op_mul: 2, mm: 0, waddr_m: 3, mul: (4, 40), ..add },
    );
    let fadd = Word71 { op_add: 5, ma: 0, waddr_a: 13, ..W71 };
    t("fadd rf13, rf0, rf5; nop", Word71 { add: (0, 5), ..fadd });
    t("fadd rf13, rf5, rf5; nop", Word71 { add: (5, 5), ..fadd });
    t("faddnf rf13, rf5, rf0; nop", Word71 { add: (5, 0), ..fadd });
    // A small immediate counts as larger than any row.
    t("fadd rf13, rf63.h, 0; nop", Word71 { sig: 15, op_add: 0b1101, add: (63, 0), ..fadd });
    t("fmax rf13, 0, rf63.h; nop", Word71 { sig: 14, op_add: 128 + 7, add: (0, 63), ..fadd });
    // No pack of fcmp on 7.1.
    t("fcmp.pushc -, rf1, rf2.abs; nop", Word71 { op_add: 196, cond: 3, add: (1, 2), ..W71 });
    t("fround rf1.l, rf2.h; nop", Word71 { op_add: 245, ma: 0, waddr_a: 1, add: (2, 3 << 2 | 1), ..W71 });
    t("ftoiz rf1, rf2; nop", Word71 { op_add: 245, ma: 0, waddr_a: 1, add: (2, 16 | 1 << 2 | 3), ..W71 });
    t("utof rf1, rf2; nop", Word71 { op_add: 246, ma: 0, waddr_a: 1, add: (2, 36), ..W71 });
    t("fxcd rf1; nop", Word71 { ma: 0, waddr_a: 1, add: (0, 32), ..W71 });
    t("vfmax rf1, rf2.hh, rf3; nop", Word71 { op_add: 243, ma: 0, waddr_a: 1, add: (2, 3), ..W71 });
    t("ldvpmg_out rf1, rf2, rf3; nop", Word71 { op_add: 189, ma: 1, waddr_a: 1, add: (2, 3), ..W71 });
    t("stvpmd rf2, rf3; nop", Word71 { op_add: 190, ma: 0, waddr_a: 1, add: (2, 3), ..W71 });
    t("nop; umul24 rf8, rf6, rf7", Word71 { op_mul: 3, mm: 0, waddr_m: 8, mul: (6, 7), ..W71 });
    t("nop; vftounorm10hi rf8, rf6", Word71 { mm: 0, waddr_m: 8, mul: (6, 49), ..W71 });
    t(
        "shuffle rf1, rf2, rf3; fmov quad, rf1",
        Word71 { op_add: 254, ma: 0, waddr_a: 1, add: (2, 3), waddr_m: 5, mul: (1, 4), ..W71 },
    );
}

#[test]
fn branch_words_by_hand() {
    for version in Version::ALL {
        let t = |text: &str, word: u64| both_ways(version, text, 2 << 56 | word);
        // Relative, uniforms relative: bdi 1, ub 1, bdu 1. 64 >> 3 is 8.
        t("bu  64, r:unif", 8 << 35 | 1 << 15 | 1 << 14 | 1 << 12);
        t("b.anya  64", 8 << 35 | 6 << 32 | 1 << 12);
        // -32: low part 0x1ffffc, high part 0xff.
        t(
            "bu.allnap  -32, r:unif",
            0x1f_fffc << 35 | 7 << 32 | 0xff << 24 | 1 << 21 | 1 << 15 | 1 << 14 | 1 << 12,
        );
        t("b  lri", 2 << 12);
        t("bl.na0  zero_addr+0x01000008", 1 << 35 | 3 << 32 | 1 << 24 | 1 << 23);
        t("bu.a0q  rf7, rf7", 2 << 32 | 2 << 21 | 3 << 15 | 1 << 14 | 3 << 12 | 7 << 6);
        t("bul.alla  lri, a:unif", 4 << 32 | 1 << 23 | 1 << 14 | 2 << 12);
    }
}

#[test]
fn a_branch_without_uniform_move_ignores_bdu() {
    let word = 2 << 56 | 1 << 15 | 2 << 12;
    let plain = 2 << 56 | 2 << 12;
    for version in Version::ALL {
        assert_eq!(decode(version, word), decode(version, plain));
        assert_eq!(encode(version, &decode(version, word).unwrap()), Ok(plain));
    }
}

fn alu(add: Part, mul: Part) -> Instr {
    Instr::Alu(Alu { add, mul, ..Alu::NOP })
}

fn binary(op: Op, a: Source, b: Source) -> Part {
    Part::new(op, Dest::Row(0), a, b)
}

#[test]
fn what_a_word_cannot_say_is_refused_with_its_rule() {
    use Source::{Acc, Row, Small};
    let refused = |version, instr: Instr| encode(version, &instr).unwrap_err();
    let rule = |version, instr: Instr| refused(version, instr).rule().unwrap();
    let (v42, v71) = (Version::V42, Version::V71);
    let add = |a, b| binary(Op::Add, a, b);
    let nop = Part::NOP;

    // 1: signals that do not exist together; small immediates beside signals.
    let signals = |signals| Instr::Alu(Alu::signal(signals));
    assert_eq!(rule(v71, signals(Signals::LDUNIF | Signals::WRTMUC)), "1");
    let mut with_small = Alu { add: add(Row(1), Small(1)), ..Alu::signal(Signals::THRSW) };
    assert_eq!(rule(v42, Instr::Alu(with_small)), "1");
    with_small.signals = Signals::LDVARY;
    with_small.sig_dest = Some(Dest::Row(3));
    assert!(encode(v42, &Instr::Alu(with_small)).is_ok());
    assert_eq!(rule(v71, Instr::Alu(with_small)), "1");
    // 2: the shared field.
    assert_eq!(rule(v71, signals(Signals::LDTMU)), "2");
    let mut addressed = Alu { sig_dest: Some(Dest::Row(1)), ..Alu::signal(Signals::LDTMU) };
    addressed.mul.push = Some(Push::Z);
    assert_eq!(rule(v71, Instr::Alu(addressed)), "2");
    // 3: flag combinations.
    let flags = |a: (Option<Cond>, Option<Push>, Option<Update>),
                 m: (Option<Cond>, Option<Push>, Option<Update>)| {
        let part = |f: (Option<Cond>, Option<Push>, Option<Update>)| Part {
            cond: f.0,
            push: f.1,
            update: f.2,
            ..nop
        };
        alu(part(a), part(m))
    };
    let (c, p, u) = (Some(Cond::IfA), Some(Push::Z), Some(Update::AndZ));
    for (a, m) in [
        ((None, p, None), (None, p, None)),
        ((None, None, u), (None, p, None)),
        ((c, p, None), (None, None, None)),
        ((None, None, None), (c, None, u)),
        ((c, None, None), (None, None, u)),
        ((None, p, u), (None, None, None)),
    ] {
        assert_eq!(rule(v71, flags(a, m)), "3");
    }
    for (a, m) in [
        ((c, None, None), (None, p, None)),
        ((None, None, u), (c, None, None)),
        ((c, None, None), (c, None, None)),
        ((None, p, None), (c, None, None)),
    ] {
        assert!(encode(v71, &flags(a, m)).is_ok());
    }
    // 4: two ports.
    assert!(encode(v42, &alu(add(Row(1), Row(2)), add(Row(2), Row(1)))).is_ok());
    assert_eq!(rule(v42, alu(add(Row(1), Row(2)), add(Row(3), Acc(1)))), "4");
    assert_eq!(rule(v42, alu(add(Row(1), Small(2)), add(Row(3), Acc(1)))), "4");
    assert_eq!(rule(v42, alu(add(Row(1), Small(2)), add(Small(3), Acc(1)))), "4");
    assert!(encode(v42, &alu(add(Row(1), Small(2)), add(Small(2), Acc(1)))).is_ok());
    assert!(encode(v71, &alu(add(Row(1), Row(2)), add(Row(3), Row(4)))).is_ok());
    // 6: one small immediate.
    assert_eq!(rule(v71, alu(add(Row(1), Small(2)), add(Small(2), Row(1)))), "6");
    // 8: codes.
    assert_eq!(rule(v71, alu(add(Row(1), Small(48)), nop)), "8");
    // 9: no order.
    assert_eq!(rule(v71, alu(binary(Op::Fmax, Row(1), Row(1)), nop)), "9");
    assert_eq!(rule(v42, alu(binary(Op::Faddnf, Acc(1), Acc(1)), nop)), "9");
    // 10: modifiers.
    let modified = |op, pack, unpack| alu(Part { pack, unpack, ..binary(op, Row(1), Row(2)) }, nop);
    let plain = [Unpack::None; 2];
    assert_eq!(rule(v71, modified(Op::Fcmp, Pack::L, plain)), "10");
    assert!(encode(v42, &modified(Op::Fcmp, Pack::L, plain)).is_ok());
    assert_eq!(rule(v71, modified(Op::Add, Pack::L, plain)), "10");
    assert_eq!(rule(v71, modified(Op::Vfpack, Pack::None, [Unpack::Abs, Unpack::None])), "10");
    assert_eq!(rule(v71, modified(Op::Fadd, Pack::None, [Unpack::Sat, Unpack::None])), "10");
    assert_eq!(rule(v71, modified(Op::Vfmin, Pack::None, [Unpack::None, Unpack::Ll])), "10");
    let round = alu(
        Part {
            unpack: [Unpack::Abs, Unpack::None],
            ..Part::new(Op::Fround, Dest::Row(0), Row(1), Source::None)
        },
        nop,
    );
    assert_eq!(rule(v71, round), "10");
    assert!(encode_any(v71, &round).is_ok());
    assert!(encode_any(v42, &round).is_err());
    // 12: operations and addresses that the version does not have.
    assert_eq!(rule(v42, alu(binary(Op::Rot, Row(1), Row(2)), nop)), "12");
    assert_eq!(rule(v71, alu(binary(Op::Fmul, Row(1), Row(2)), nop)), "12");
    let to = |dest| alu(Part::new(Op::Add, dest, Row(1), Row(2)), nop);
    assert_eq!(rule(v71, to(Dest::Magic(magic::R0))), "12");
    assert_eq!(rule(v71, to(Dest::Magic(magic::RECIP))), "12");
    assert_eq!(rule(v42, to(Dest::Magic(25))), "12");
    assert!(encode(v42, &to(Dest::Magic(magic::R0))).is_ok());
    // 13: VPM loads go to rows; there is no bit for anything else.
    let load = Part::new(Op::LdvpmvIn, Dest::Magic(magic::R0), Small(1), Source::None);
    assert_eq!(rule(v42, alu(load, nop)), "13");
    // Registers that do not exist.
    assert_eq!(refused(v71, alu(add(Acc(1), Row(2)), nop)), EncodeError::Register);
    assert_eq!(refused(v42, alu(add(Acc(6), Row(2)), nop)), EncodeError::Register);
    assert_eq!(refused(v42, alu(add(Row(64), Row(2)), nop)), EncodeError::Register);
    assert_eq!(refused(v42, to(Dest::Row(64))), EncodeError::Register);
    assert_eq!(refused(v71, Instr::Alu(Alu { rotate: Some(1), ..Alu::NOP })), EncodeError::Register);
    assert_eq!(refused(v71, alu(add(Row(1), Source::None), nop)), EncodeError::Operands(Op::Add));
    let branch = Branch {
        cond: BranchCond::Always,
        msfign: MsfIgnore::None,
        target: BranchTarget::Relative(4),
        uniforms: None,
        link: false,
    };
    assert_eq!(refused(v71, Instr::Branch(branch)), EncodeError::Branch);
    let rows = Branch { target: BranchTarget::Row(1), uniforms: Some(UniformMove::Row(2)), ..branch };
    assert_eq!(refused(v71, Instr::Branch(rows)), EncodeError::Branch);
}

#[test]
fn swapping_takes_the_modifiers_along() {
    // fadd needs the smaller key first: here source b, whose unpack code is smaller.
    let part = Part { unpack: [Unpack::H, Unpack::L], ..binary(Op::Fadd, Source::Row(1), Source::Row(2)) };
    for version in Version::ALL {
        let word = encode(version, &alu(part, Part::NOP)).unwrap();
        let back = *decode(version, word).unwrap().alu().unwrap();
        assert_eq!(back.add.op, Op::Fadd);
        assert_eq!(back.add.src, [Source::Row(2), Source::Row(1)]);
        assert_eq!(back.add.unpack, [Unpack::L, Unpack::H]);
    }
    // 7.1: a small immediate goes with its source to the other field.
    let part = binary(Op::Fadd, Source::Small(3), Source::Row(2));
    let word = encode(Version::V71, &alu(part, Part::NOP)).unwrap();
    let back = *decode(Version::V71, word).unwrap().alu().unwrap();
    assert_eq!(back.add.src, [Source::Row(2), Source::Small(3)]);
}

/// Random instructions put together from random fields, encodable or not: what encodes must come back, and nothing panics.
#[test]
fn random_instructions_round_trip() {
    let mut random = crate::decode::tests::Random(0x1234_5678_9abc_def1);
    for version in Version::ALL {
        let (mut good, mut operations) = (0, std::collections::BTreeSet::new());
        for _ in 0..300_000 {
            let instr = Instr::Alu(random_alu(version, &mut random));
            let Ok(word) = encode_any(version, &instr) else { continue };
            good += 1;
            let back = decode(version, word).unwrap_or_else(|e| panic!("{instr:?} {word:016x}: {e}"));
            let (a, b) = (instr.alu().unwrap(), back.alu().unwrap());
            operations.insert((0, a.add.op));
            operations.insert((1, a.mul.op));
            let mut swapped = *a;
            swapped.add.src.swap(0, 1);
            swapped.add.unpack.swap(0, 1);
            assert!(a == b || (wanted_order(a.add.op).is_some() && swapped == *b), "{a:?}\n{b:?}");
            assert_eq!(encode_any(version, &back), Ok(word));
        }
        assert!(good > 10_000, "{good}");
        for (i, unit) in [Unit::Add, Unit::Mul].into_iter().enumerate() {
            for form in tables::unit(version, unit).forms() {
                assert!(operations.contains(&(i, form.op)), "{} was never encoded", form.op.name());
            }
        }
    }
}

fn random_alu(version: Version, random: &mut crate::decode::tests::Random) -> Alu {
    let mut part = |unit: Unit| {
        let r = &mut *random;
        let op = loop {
            let op = ops::ALL[r.below(ops::ALL.len())];
            // Now and then an operation that the part does not have.
            if tables::available(version, unit, op) || r.below(200) == 0 {
                break op;
            }
        };
        let mut part = Part { op, ..Part::NOP };
        if op.has_dest() {
            let n = r.below(64) as u8;
            part.dest = if r.below(3) == 0 { Dest::Magic(n) } else { Dest::Row(n) };
        }
        for i in 0..op.sources() {
            part.src[i] = match r.below(if version == Version::V42 { 8 } else { 14 }) {
                0..=1 => Source::Row(r.below(2) as u8),
                2 => Source::Small(r.below(48) as u8),
                3..=6 if version == Version::V42 => Source::Acc(r.below(6) as u8),
                _ => Source::Row(r.below(64) as u8),
            };
            if r.below(4) == 0 {
                part.unpack[i] =
                    [Unpack::Abs, Unpack::L, Unpack::H, Unpack::Sat, Unpack::Hh, Unpack::Ul][r.below(6)];
            }
        }
        if r.below(8) == 0 {
            part.pack = Pack::H;
        }
        match r.below(8) {
            0 => part.cond = Some(Cond::ALL[r.below(4)]),
            1 => part.push = Some(Push::ALL[r.below(3)]),
            2 => part.update = Some(Update::ALL[r.below(12)]),
            _ => {}
        }
        part
    };
    let (add, mul) = (part(Unit::Add), part(Unit::Mul));
    let mut alu = Alu { add, mul, ..Alu::NOP };
    if random.below(3) == 0 {
        alu.signals = tables::signal_code(version, random.below(32) as u8).set;
        if alu.signals.has(Signals::ADDRESSED) {
            alu.sig_dest = Some(Dest::Row(random.below(64) as u8));
        }
    } else if random.below(30) == 0 {
        alu.rotate = Some(random.below(64) as u8);
    }
    alu
}
