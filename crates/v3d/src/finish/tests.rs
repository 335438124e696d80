//! Hand-made machine code with every register in a row of its own.

use super::*;
use crate::asm::disassemble;
use crate::instr::{Op, Pack, Unpack};
use crate::mops::{Cmp, CmpOp, MInst, MemClass, Src, Test, TmuType, When};
use crate::regs;
use kempe_ir::{Res, UniformWord};
use kempe_mir::{MirBuilder, UniformSource};
use kempe_ra::{Allocation, Block, Edge, Operand, OperandKind, SetId, VReg, VRegInfo};

struct Code {
    b: MirBuilder<MInst>,
}

fn operand(vreg: VReg, kind: OperandKind) -> Operand {
    Operand { vreg, kind, set: regs::RF, tied: None, fixed: None, hint: None, vector: None }
}

impl Code {
    fn new(blocks: usize) -> Code {
        let mut b = MirBuilder::new();
        b.declare_blocks(blocks);
        Code { b }
    }

    fn vreg(&mut self) -> VReg {
        self.b.vreg(VRegInfo { home: SetId(0), size: 1, recipe: None, undefined: false }, String::new())
    }

    fn put(&mut self, data: MInst, uses: &[VReg]) {
        let ops: Vec<Operand> = uses.iter().map(|&v| operand(v, OperandKind::Use)).collect();
        self.b.inst(data, &ops, regs::NONE, false);
    }

    fn def(&mut self, data: MInst, uses: &[VReg]) -> VReg {
        let d = self.vreg();
        let mut ops = vec![operand(d, OperandKind::Def)];
        ops.extend(uses.iter().map(|&v| operand(v, OperandKind::Use)));
        self.b.inst(data, &ops, regs::NONE, false);
        d
    }

    fn alu(&mut self, op: Op, src: [Src; 2], uses: &[VReg]) -> VReg {
        self.def(MInst::Alu { op, pack: Pack::None, src, unpack: [Unpack::None; 2], test: None }, uses)
    }

    fn finish(self, version: Version) -> (Vec<String>, Finished) {
        let mir = self.b.finish();
        // Register n in row n + 5.
        let places = mir.program.operands.iter().map(|o| Unit(o.vreg.0 as u16 + 5)).collect();
        let alloc = Allocation { places, ..Allocation::default() };
        let frame = Frame {
            version,
            threads: 4,
            private_bytes: 0,
            spill_base: Loc::Row(31),
            spill_scratch: Loc::uniform(version),
        };
        let out = finish(&frame, &mir, &alloc, &|u| regs::unit_loc(4, u)).unwrap();
        (out.words.iter().map(|&w| disassemble(version, w, false)).collect(), out)
    }
}

fn address(c: &mut Code) -> VReg {
    let base = c.def(
        MInst::Uniform(UniformSource::Word(UniformWord::BufferAddr { res: Res(0), element: 0 }, 0)),
        &[],
    );
    let lane = c.alu(Op::Eidx, [Src::None; 2], &[]);
    let offset = c.alu(Op::Shl, [Src::Use, Src::Imm(2)], &[lane]);
    c.alu(Op::Add, [Src::Use; 2], &[base, offset])
}

#[test]
fn a_store_of_the_lane_number() {
    for version in Version::ALL {
        let mut c = Code::new(1);
        c.b.start_block(Block(0));
        c.put(MInst::Entry, &[]);
        let a = address(&mut c);
        let lane = c.alu(Op::Eidx, [Src::None; 2], &[]);
        c.put(
            MInst::TmuStore { ty: TmuType::Word, count: 1, class: MemClass::STORAGE, test: None },
            &[a, lane],
        );
        c.put(MInst::End, &[]);
        c.b.end_block(Block(0), vec![]);
        let (text, out) = c.finish(version);
        // The address and the data are written straight to the TMU; no switch, so one section.
        assert!(out.single_section);
        assert!(text.iter().any(|t| t.contains("add tmua,")), "{text:#?}");
        assert!(text.iter().any(|t| t.contains("eidx tmud")), "{text:#?}");
        assert_eq!(text.iter().filter(|t| t.contains("tmuwt")).count(), 1, "{text:#?}");
        assert!(text.len() <= 9, "{text:#?}");
    }
}

#[test]
fn two_loads_share_a_switch() {
    for version in Version::ALL {
        let mut c = Code::new(1);
        c.b.start_block(Block(0));
        c.put(MInst::Entry, &[]);
        let a = address(&mut c);
        let load = MInst::TmuLoad { ty: TmuType::Word, count: 1, class: MemClass::READ_ONLY, test: None };
        let x = c.def(load, &[a]);
        let b = c.alu(Op::Add, [Src::Use, Src::Imm(4)], &[a]);
        let y = c.def(load, &[b]);
        let s = c.alu(Op::Fadd, [Src::Use; 2], &[x, y]);
        c.put(MInst::TmuStore { ty: TmuType::Word, count: 1, class: MemClass::STORAGE, test: None }, &[a, s]);
        c.put(MInst::End, &[]);
        c.b.end_block(Block(0), vec![]);
        let (text, out) = c.finish(version);
        assert!(!out.single_section);
        // One switch, its mark, and the end.
        assert_eq!(text.iter().filter(|t| t.contains("thrsw")).count(), 3, "{text:#?}");
        assert_eq!(text.iter().filter(|t| t.contains("ldtmu")).count(), 2, "{text:#?}");
    }
}

#[test]
fn a_loop_moves_the_uniform_pointer_back() {
    for version in Version::ALL {
        let mut c = Code::new(3);
        c.b.start_block(Block(0));
        c.put(MInst::Entry, &[]);
        let a = address(&mut c);
        c.put(MInst::Jump, &[]);
        c.b.end_block(Block(0), vec![Edge { to: Block(1), args: vec![] }]);
        c.b.start_block(Block(1));
        let k = c.def(MInst::Uniform(UniformSource::Const(1000)), &[]);
        let n = c.alu(Op::Add, [Src::Use; 2], &[k, a]);
        let cmp = Cmp { op: CmpOp::Ult, src: [Src::Use; 2], unpack: [Unpack::None; 2], invert: true };
        c.put(MInst::Branch { test: Test { mask: false, cmp: Some(cmp) }, when: When::Lane0 }, &[n, k]);
        c.b.end_block(
            Block(1),
            vec![Edge { to: Block(1), args: vec![] }, Edge { to: Block(2), args: vec![] }],
        );
        c.b.start_block(Block(2));
        c.put(MInst::End, &[]);
        c.b.end_block(Block(2), vec![]);
        let (text, out) = c.finish(version);
        let at = text.iter().position(|t| t.starts_with("bu")).unwrap();
        assert!(text[at].contains("bu.na0"), "{text:#?}");
        // The stream goes back over the constant and the word of the branch itself.
        assert_eq!(out.uniforms.last(), Some(&UniformSource::Const((-8i32) as u32)));
        // The target is the ldunif of the constant, an inverted comparison sits in front of the branch.
        let start = out.block_starts[1] as i64;
        assert!(text[at].contains(&format!("{}", (start - (at as i64 + 4)) * 8)), "{text:#?}");
    }
}

#[test]
fn a_comparison_held_in_the_flag_is_not_made_again() {
    let version = Version::V71;
    let mut c = Code::new(1);
    c.b.start_block(Block(0));
    c.put(MInst::Entry, &[]);
    let a = address(&mut c);
    let lane = c.alu(Op::Eidx, [Src::None; 2], &[]);
    let cmp = Cmp { op: CmpOp::Slt, src: [Src::Use, Src::Imm(7)], unpack: [Unpack::None; 2], invert: false };
    let select = MInst::Select {
        test: Test { mask: false, cmp: Some(cmp) },
        src: [Src::Use; 2],
        unpack: [Unpack::None; 2],
    };
    let x = c.def(select, &[lane, a, lane]);
    let y = c.def(select, &[lane, lane, a]);
    let s = c.alu(Op::Add, [Src::Use; 2], &[x, y]);
    c.put(MInst::TmuStore { ty: TmuType::Word, count: 1, class: MemClass::STORAGE, test: None }, &[a, s]);
    c.put(MInst::End, &[]);
    c.b.end_block(Block(0), vec![]);
    let (text, _) = c.finish(version);
    assert_eq!(text.iter().filter(|t| t.contains("push")).count(), 1, "{text:#?}");
}
