//! Every operation of the instruction set: name, lengths, fixed bits, cost, what it has.
//!
//! One line each, in the order in which words are matched: the first line fits whose fixed bits are there. A line is
//!
//! `Variant "name" ["name in the public disassembler"] lengths mask value cost [what it has, in the order of the text] "what it does";`
//!
//! Lengths in bytes: `only(n)`; `short(n, m, b)`: the short form unless bits are lost, bit b says which; `memory(n, m, b)`:
//! the reference driver always takes the long form. The items are in `tables`.
//!
//! Facts: reference sections 2, 4, 5, 13 and appendix A.

use crate::tables::*;

/// Name, encoding and cost of an operation.
#[derive(Debug)]
pub struct Info {
    /// In our own text.
    pub name: &'static str,
    /// In the text of the public disassembler.
    pub public: &'static str,
    pub lengths: Lengths,
    /// Bits that are fixed, and what they are.
    pub mask: u128,
    pub value: u128,
    pub cost: Cost,
    /// Operands and numbers, in the order of the text.
    pub items: &'static [Item],
}

impl Info {
    /// Its operands, in the order in which [`crate::instr::Instr`] holds them.
    pub fn operands(&self) -> impl Iterator<Item = &'static Field> {
        self.items.iter().filter_map(|item| match item {
            Item::Operand(field) => Some(field),
            Item::Number(_) => None,
        })
    }

    /// Its numbers, in the order in which [`crate::instr::Instr`] holds them.
    pub fn numbers(&self) -> impl Iterator<Item = &'static NumberField> {
        self.items.iter().filter_map(|item| match item {
            Item::Number(field) => Some(field),
            Item::Operand(_) => None,
        })
    }
}

macro_rules! operations {
    ($($variant:ident $name:literal $($public:literal)? $form:ident($($n:literal),*) $mask:literal $value:literal $cost:ident
       [$($item:ident)*] $doc:literal;)*) => {
        /// An operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
        }

        /// Every operation, in the order of matching.
        pub const ALL: &[Op] = &[$(Op::$variant,)*];

        static INFO: &[Info] = &[$(Info {
            name: $name,
            public: [$name, $($public)?][[$name, $($public)?].len() - 1],
            lengths: Lengths::$form($($n),*),
            mask: $mask,
            value: $value,
            cost: $cost,
            items: &[$($item,)*],
        },)*];
    };
}

impl Op {
    /// Its line of the table.
    pub fn info(self) -> &'static Info {
        &INFO[self as usize]
    }
}

operations! {
    StackGetPtr "stack_get_ptr" short(6, 8, 47) 0x30000000f00ff 0x2000000010035 FREE [U0_8 U1_26 U2_36 U4_50 U3_44 DEST_40] "Reads the stack pointer.";
    StackAdjust "stack_adjust" "TODO.stack_adjust" memory(6, 8, 47) 0x30f00ff 0x10100b5 FREE [U0_8 STACK_U1_26 STACK_U2_36 U3_44 U4_50 SIGNED_20] "Moves the stack pointer by a number of dwords.";
    Unk51 "unk51" "TODO.unk51" only(4) 0x7fffffff 0x51 FREE [] "Not known.";
    StackAdjustReg "stack_adjust_reg" "TODO.stack_adjust2" short(6, 8, 47) 0x30f00ff 0x100b5 FREE [U0_8 U1_26 U2_36 U3_44 U4_50 A_32] "Moves the stack pointer by a register.";
    MovImm16 "mov_imm" short(4, 6, 15) 0x17f 0x62 S1_1 [DEST_44 VALUE_16_HALF] "A number to a half register.";
    MovImm32 "mov_imm" short(6, 8, 15) 0x17f 0x162 S1_1 [DEST_60 VALUE_16_WORD KILL_62] "A number to a 32-bit register.";
    GetSr "get_sr" only(4) 0x807f 0x72 S2_2 [DEST_28 SPECIAL_16] "Reads a special register.";
    Iadd "iadd" only(8) 0x800803f 0xe S2_1 [SAT DESTL_44 ALS_42 BLS_40 SHIFT_39] "A + (B << shift).";
    Isub "isub" only(8) 0x800803f 0x800000e S2_1 [SAT DESTL_44 ALS_42 BLS_40 SHIFT_39] "A - (B << shift).";
    Imadd "imadd" only(8) 0x800803f 0x1e I3_2 [SAT DESTL_60 AIS_58 BIS_56 CLS_54 SHIFT_39] "A * B + (C << shift).";
    Imsub "imsub" only(8) 0x800803f 0x800001e I3_2 [SAT DESTL_60 AIS_58 BIS_56 CLS_54 SHIFT_39] "A * B - (C << shift).";
    Convert "convert" only(6) 0xcc003c0807f 0x803e FREE [CONVERT_16 DEST_44 AI_40 CONVERT_ROUND_26] "Between integers and floats, by mode.";
    Bfi "bfi" only(8) 0xc00807f 0x2e I3_2 [DEST_60 AI_58 BI_56 CI_54 WIDTH_38] "Low bits of B put into A at C.";
    Bfeil "bfeil" only(8) 0xc00807f 0x802e FREE [DEST_60 AI_58 BI_56 CI_54 WIDTH_38] "Low bits of A replaced by those of B >> C.";
    Extr "extr" only(8) 0xc00807f 0x400002e I3_2 [DEST_60 AI_58 BI_56 CI_54 WIDTH_38] "Low word of the pair B:A shifted right by C.";
    Shlhi "shlhi" only(8) 0xc00807f 0x800002e FREE [DEST_60 AI_58 BI_56 CI_54 WIDTH_38] "High word of B << C, over A.";
    Shrhi "shrhi" only(8) 0xc00807f 0x800802e FREE [DEST_60 AI_58 BI_56 CI_54 WIDTH_38] "High word of (B in the high word) >> C, over A.";
    Asr "asr" only(8) 0xc00807f 0x400802e I3_2 [DEST_60 AI_58 BI_56] "Arithmetic shift right of A by B.";
    Asrh "asrh" only(8) 0xc00807f 0xc00802e FREE [DEST_60 AI_58 BI_56] "Arithmetic shift right of A in the high word by B.";
    Bitop "bitop" only(6) 0x807f 0x7e S2_1 [TABLE_26 DEST_44 AI_42 BI_40] "Bit by bit function of A and B.";
    Bitrev "bitrev" only(6) 0xfffc00807f 0x400003e FREE [DEST_44 AI_42] "Bits of A in reverse order.";
    Popcount "popcount" only(6) 0xfffc00807f 0x800003e FREE [DEST_44 AI_42] "Number of ones in A.";
    Intl "intl" only(6) 0xc00c00807f 0x3e FREE [DEST_44 AI_42 BI_40] "Low halves of A and B interleaved.";
    Ffs "ffs" only(6) 0xfffc00807f 0xc00003e FREE [DEST_44 AI_42] "Position of the highest one, all ones if there is none.";
    Iunop "iunop" only(6) 0x3ff000807f 0x3e FREE [DEST_44 AI_42 CODE1_38 CODE2_26] "Integer operation of one source that has no name.";
    Fmadd32 "fmadd32" short(6, 8, 15) 0x3f 0x3a F2_1 [SAT DEST_60 AF_58 BF_56 CF_54] "A * B + C, rounded once to f32.";
    Fmadd16 "fmadd16" short(6, 8, 15) 0x3f 0x36 F2_1 [SAT DESTH_60 AE_58 BE_56 CE_54] "A * B + C in f16.";
    Fadd32 "fadd32" short(4, 6, 15) 0x3f 0x2a F2_1 [SAT DEST_44 AF_42 BF_40] "A + B in f32.";
    Fadd16 "fadd16" short(4, 6, 15) 0x3f 0x26 F2_1 [SAT DESTH_44 AE_42 BE_40] "A + B in f16.";
    Fmul32 "fmul32" short(4, 6, 15) 0x3f 0x1a F2_1 [SAT DEST_44 AF_42 BF_40] "A * B in f32.";
    Fmul16 "fmul16" short(4, 6, 15) 0x3f 0x16 F2_1 [SAT DESTH_44 AE_42 BE_40] "A * B in f16.";
    Floor "floor" short(4, 6, 15) 0x3fff000003f 0xa I3_2 [SAT DEST_44 AF_42] "Integer below.";
    Ceil "ceil" short(4, 6, 15) 0x3fff000003f 0x10000000a FREE [SAT DEST_44 AF_42] "Integer above.";
    Trunc "trunc" short(4, 6, 15) 0x3fff000003f 0x20000000a FREE [SAT DEST_44 AF_42] "Integer towards zero.";
    Rint "rint" short(4, 6, 15) 0x3fff000003f 0x30000000a FREE [SAT DEST_44 AF_42] "Nearest integer, ties to even.";
    Rcp "rcp" short(4, 6, 15) 0x3fff000003f 0x8000000a I5_3 [SAT DEST_44 AF_42] "About 1 / A.";
    Rsqrt "rsqrt" short(4, 6, 15) 0x3fff000003f 0x9000000a I6_4 [SAT DEST_44 AF_42] "About 1 / sqrt(A).";
    RsqrtSpecial "rsqrt_special" short(4, 6, 15) 0x3fff000003f 0x1000000a I6_4 [SAT DEST_44 AF_42] "As rsqrt, such that A times it is sqrt(A).";
    SinPt1 "sin_pt_1" short(4, 6, 15) 0x3fff000003f 0xa000000a I3_2 [SAT DEST_44 AF_42] "Quadrants in [0, 4) to an offset in [-1, 1].";
    SinPt2 "sin_pt_2" short(4, 6, 15) 0x3fff000003f 0xe000000a I5_2 [SAT DEST_44 AF_42] "sin(x * pi/2) / x.";
    Log2 "log2" short(4, 6, 15) 0x3fff000003f 0xc000000a I5_2 [SAT DEST_44 AF_42] "Binary logarithm.";
    Exp2 "exp2" short(4, 6, 15) 0x3fff000003f 0xd000000a I5_2 [SAT DEST_44 AF_42] "Power of two.";
    Dfdx "dfdx" short(4, 6, 15) 0x3fff000003f 0x4000000a FREE [SAT DEST_44 AF_42] "Difference to the horizontal neighbour.";
    Dfdy "dfdy" short(4, 6, 15) 0x3fff000003f 0x6000000a FREE [SAT DEST_44 AF_42] "Difference to the vertical neighbour.";
    Funop "funop" short(4, 6, 15) 0x3fc0000003f 0xa FREE [SAT DEST_44 AF_42 CODE1_28] "Float operation of one source that has no name.";
    Ret "ret" only(2) 0x7f 0x14 FREE [A_9] "Jump to an address in a register.";
    Stop "stop" only(2) 0xffff 0x88 FREE [] "End of the program.";
    Trap "trap" only(2) 0xffff 0x8 FREE [] "Never to be reached.";
    CallReg "call" only(2) 0x7f 0x4 FREE [A_9] "Call of an address in a register.";
    JmpIncomplete "jmp_incomplete" only(4) 0xff00ffff 0x0 FREE [TARGET_16_SHORT] "Short jump, not understood.";
    JmpExecAny "jmp_exec_any" only(6) 0xffff 0xc000 FREE [TARGET_16] "Jump if a lane is active.";
    JmpExecNone "jmp_exec_none" only(6) 0xffff 0xc020 FREE [TARGET_16] "Jump if no lane is active.";
    CallImm "call" only(6) 0xffff 0xc010 FREE [TARGET_16] "Call; the address behind it goes to r1.";
    PopExec "pop_exec" only(6) 0xffffffffe67f 0x652 FREE [R0L NEST_11] "Every counter less n.";
    IfIcmp "if_icmp" only(6) 0x30c00c00067f 0x52 FREE [R0L ICOND_13 AI_42 BI_40 NEST_11] "Lanes whose comparison fails stop.";
    IfFcmp "if_fcmp" only(6) 0x30000000067f 0x42 FREE [R0L FCOND_13 AF_42 BF_40 NEST_11] "The same for floats.";
    WhileIcmp "while_icmp" only(6) 0x30c00c00067f 0x452 FREE [R0L ICOND_13 AI_42 BI_40 NEST_11] "Lanes below n stay if the comparison holds.";
    WhileFcmp "while_fcmp" only(6) 0x30000000067f 0x442 FREE [R0L FCOND_13 AF_42 BF_40 NEST_11] "The same for floats.";
    ElseIcmp "else_icmp" only(6) 0x30c00c00067f 0x252 FREE [R0L ICOND_13 AI_42 BI_40 NEST_11] "Lanes that stopped at the if go on, the others stop.";
    ElseFcmp "else_fcmp" only(6) 0x30000000067f 0x242 FREE [R0L FCOND_13 AF_42 BF_40 NEST_11] "The same for floats.";
    Icmpsel "icmpsel" short(8, 10, 15) 0x7f 0x12 S2_1 [ICOND_61 DEST_76 AI_74 BI_72 X_70 Y_68] "X or Y by an integer comparison of A and B.";
    Fcmpsel "fcmpsel" short(8, 10, 15) 0x7f 0x2 S2_1 [FCOND_61 DEST_76 AF_74 BF_72 X_70 Y_68] "X or Y by a float comparison of A and B.";
    IcmpBallot "icmp_ballot" only(8) 0x1fff00c00c00007f 0x1000000000032 S5_2 [DEST_44 ICOND_61_NOT AI_42 BI_40] "Active lanes whose comparison holds, one bit each.";
    IcmpQuadBallot "icmp_quad_ballot" only(8) 0x1fff00c00c00007f 0x32 S4_2 [DEST_44 ICOND_61_NOT AI_42 BI_40] "The same for the four lanes of a quad.";
    FcmpBallot "fcmp_ballot" only(8) 0x1fff00000000007f 0x1000000000022 S5_2 [DEST_44 FCOND_61_NOT AF_42 BF_40] "Active lanes whose float comparison holds.";
    FcmpQuadBallot "fcmp_quad_ballot" only(8) 0x1fff00000000007f 0x22 S4_2 [DEST_44 FCOND_61_NOT AF_42 BF_40] "The same for the four lanes of a quad.";
    SimdShuffle "simd_shuffle" only(6) 0x80c00c00807f 0x400006f S5_2 [DEST_44 AI_42 BH_40] "A of lane B.";
    SimdShuffleDown "simd_shuffle_down" only(6) 0x80c00c00807f 0xc00400006f FREE [DEST_44 AI_42 BH_40] "A of the lane B further up.";
    SimdShuffleUp "simd_shuffle_up" only(6) 0x80c00c00807f 0x800400006f FREE [DEST_44 AI_42 BH_40] "A of the lane B further down.";
    SimdShuffleRotateUp "simd_shuffle_rotate_up" only(6) 0x80c00c00807f 0x80800400006f FREE [DEST_44 AI_42 BH_40] "A of the lane B further down, around the end.";
    SimdShuffleXor "simd_shuffle_xor" only(6) 0x80c00c00807f 0x400400006f FREE [DEST_44 AI_42 BH_40] "A of the lane whose number differs in the bits of B.";
    SimdMatrixFmadd32 "simd_matrix_fmadd32" only(8) 0x800000000c00807f 0x800000000c00006f FREE [DESTP_60 AP_58 BP_56 CP_54] "Product of 8x8 matrices plus a matrix, f32.";
    SimdMatrixFmadd16 "simd_matrix_fmadd16" only(8) 0x800000000c00807f 0x800000000800006f FREE [DESTP_60 AP_58 BP_56 CP_54] "Product of 8x8 matrices plus a matrix, f16.";
    QuadShuffle "quad_shuffle" only(6) 0x80c00c00807f 0x6f S5_2 [DEST_44 AL_42 BL_40] "A of lane B of the quad.";
    QuadShuffleDown "quad_shuffle_down" only(6) 0x80c00c00807f 0xc00000006f FREE [DEST_44 AL_42 BL_40] "As simd_shuffle_down, within the quad.";
    QuadShuffleUp "quad_shuffle_up" only(6) 0x80c00c00807f 0x800000006f FREE [DEST_44 AL_42 BL_40] "As simd_shuffle_up, within the quad.";
    QuadShuffleRotateUp "quad_shuffle_rotate_up" only(6) 0x80c00c00807f 0x80800000006f FREE [DEST_44 AL_42 BL_40] "As simd_shuffle_rotate_up, within the quad.";
    QuadShuffleXor "quad_shuffle_xor" only(6) 0x80c00c00807f 0x400000006f FREE [DEST_44 AL_42 BL_40] "As simd_shuffle_xor, within the quad.";
    SimdShufOp "simd_shuf_op" only(6) 0x807f 0x6f FREE [CODE1_47 CODE2_38 CODE3_26 DEST_44 AL_42 BL_40] "Shuffle that has no name.";
    QuadAnd "quad_and" only(6) 0x83fffc00807f 0x806f S24_24 [DEST_44 AL_42] "And over the quad.";
    QuadOr "quad_or" only(6) 0x83fffc00807f 0x400000806f S24_24 [DEST_44 AL_42] "Or over the quad.";
    QuadXor "quad_xor" only(6) 0x83fffc00807f 0x800000806f S24_24 [DEST_44 AL_42] "Exclusive or over the quad.";
    QuadIadd "quad_iadd" only(6) 0x83fffc00807f 0x80000000806f S24_24 [DEST_44 AL_42] "Integer sum over the quad.";
    QuadFadd "quad_fadd" only(6) 0x83fffc00807f 0x1000806f S24_24 [DEST_44 AL_42] "Float sum over the quad.";
    QuadFmul "quad_fmul" only(6) 0x83fffc00807f 0x401000806f S24_24 [DEST_44 AL_42] "Float product over the quad.";
    QuadPrefixIadd "quad_prefix_iadd" only(6) 0x83fffc00807f 0x80004000806f S18_18 [DEST_44 AL_42] "Integer sum over the lanes of the quad below.";
    QuadPrefixFadd "quad_prefix_fadd" only(6) 0x83fffc00807f 0x5000806f S18_18 [DEST_44 AL_42] "Float sum over the lanes of the quad below.";
    QuadPrefixFmul "quad_prefix_fmul" only(6) 0x83fffc00807f 0x405000806f S18_18 [DEST_44 AL_42] "Float product over the lanes of the quad below.";
    QuadMinU "quad_min.u" only(6) 0x83fffc00807f 0x81800000806f S24_24 [DEST_44 AL_42] "Smallest unsigned over the quad.";
    QuadMaxU "quad_max.u" only(6) 0x83fffc00807f 0x81c00000806f S24_24 [DEST_44 AL_42] "Largest unsigned over the quad.";
    QuadMinS "quad_min.s" only(6) 0x83fffc00807f 0x80800000806f S24_24 [DEST_44 AL_42] "Smallest signed over the quad.";
    QuadMaxS "quad_max.s" only(6) 0x83fffc00807f 0x80c00000806f S24_24 [DEST_44 AL_42] "Largest signed over the quad.";
    QuadMinF "quad_min.f" only(6) 0x83fffc00807f 0x801000806f S24_24 [DEST_44 AL_42] "Smallest float over the quad.";
    QuadMaxF "quad_max.f" only(6) 0x83fffc00807f 0xc01000806f S24_24 [DEST_44 AL_42] "Largest float over the quad.";
    SimdAnd "simd_and" only(6) 0x83fffc00807f 0x2000806f S24_24 [DEST_44 AL_42] "And over the SIMD group.";
    SimdOr "simd_or" only(6) 0x83fffc00807f 0x402000806f S24_24 [DEST_44 AL_42] "Or over the SIMD group.";
    SimdXor "simd_xor" only(6) 0x83fffc00807f 0x802000806f S24_24 [DEST_44 AL_42] "Exclusive or over the SIMD group.";
    SimdIadd "simd_iadd" only(6) 0x83fffc00807f 0x80002000806f S24_24 [DEST_44 AL_42] "Integer sum over the SIMD group.";
    SimdFadd "simd_fadd" only(6) 0x83fffc00807f 0x3000806f S24_24 [DEST_44 AL_42] "Float sum over the SIMD group.";
    SimdFmul "simd_fmul" only(6) 0x83fffc00807f 0x403000806f S24_24 [DEST_44 AL_42] "Float product over the SIMD group.";
    SimdPrefixIadd "simd_prefix_iadd" only(6) 0x83fffc00807f 0x80006000806f S18_18 [DEST_44 AL_42] "Integer sum over the lanes of the SIMD group below.";
    SimdPrefixFadd "simd_prefix_fadd" only(6) 0x83fffc00807f 0x7000806f S18_18 [DEST_44 AL_42] "Float sum over the lanes of the SIMD group below.";
    SimdPrefixFmul "simd_prefix_fmul" only(6) 0x83fffc00807f 0x407000806f S18_18 [DEST_44 AL_42] "Float product over the lanes of the SIMD group below.";
    SimdPrefixAnd "simd_prefix_and" only(6) 0x83fffc00807f 0x6000806f S18_18 [DEST_44 AL_42] "And over the lanes of the SIMD group below.";
    SimdPrefixOr "simd_prefix_or" only(6) 0x83fffc00807f 0x406000806f S18_18 [DEST_44 AL_42] "Or over the lanes of the SIMD group below.";
    SimdPrefixXor "simd_prefix_xor" only(6) 0x83fffc00807f 0x806000806f S18_18 [DEST_44 AL_42] "Exclusive or over the lanes of the SIMD group below.";
    SimdPrefixMinS "simd_prefix_min.s" only(6) 0x83fffc00807f 0x80806000806f S18_18 [DEST_44 AL_42] "Smallest signed over the lanes of the SIMD group below.";
    SimdPrefixMinU "simd_prefix_min.u" only(6) 0x83fffc00807f 0x81806000806f S18_18 [DEST_44 AL_42] "Smallest unsigned over the lanes of the SIMD group below.";
    SimdPrefixMaxS "simd_prefix_max.s" only(6) 0x83fffc00807f 0x80c06000806f S18_18 [DEST_44 AL_42] "Largest signed over the lanes of the SIMD group below.";
    SimdPrefixMaxU "simd_prefix_max.u" only(6) 0x83fffc00807f 0x81c06000806f S18_18 [DEST_44 AL_42] "Largest unsigned over the lanes of the SIMD group below.";
    SimdMinU "simd_min.u" only(6) 0x83fffc00807f 0x81802000806f S24_24 [DEST_44 AL_42] "Smallest unsigned over the SIMD group.";
    SimdMaxU "simd_max.u" only(6) 0x83fffc00807f 0x81c02000806f S24_24 [DEST_44 AL_42] "Largest unsigned over the SIMD group.";
    SimdMinS "simd_min.s" only(6) 0x83fffc00807f 0x80802000806f S24_24 [DEST_44 AL_42] "Smallest signed over the SIMD group.";
    SimdMaxS "simd_max.s" only(6) 0x83fffc00807f 0x80c02000806f S24_24 [DEST_44 AL_42] "Largest signed over the SIMD group.";
    SimdMinF "simd_min.f" only(6) 0x83fffc00807f 0x803000806f S24_24 [DEST_44 AL_42] "Smallest float over the SIMD group.";
    SimdMaxF "simd_max.f" only(6) 0x83fffc00807f 0xc03000806f S24_24 [DEST_44 AL_42] "Largest float over the SIMD group.";
    SimdOp "simd_op" only(6) 0x807f 0x806f FREE [CODE1_47 CODE2_26_WIDE DEST_44 AL_42] "Reduction that has no name.";
    WaitPix "wait_pix" only(4) 0xff 0x48 FREE [VALUE_8 U1_22] "Waits for earlier fragments of the pixel.";
    SignalPix "signal_pix" only(4) 0xff 0x58 FREE [VALUE_8 U1_22] "Lets later fragments of the pixel go on.";
    Wait "wait" only(2) 0xff 0x38 FREE [SLOT_8] "Until no request of a slot is pending.";
    LdTile "ld_tile" short(8, 10, 15) 0x7f 0x49 FREE [LOCAL_DATA_60 FORMAT_24 U0_35 MASK_36 OFFSET_28 TILE_SAMPLES_56 TILE_VALUE_16] "Reads the tile buffer.";
    StTile "st_tile" short(8, 10, 15) 0x7f 0x9 FREE [LOCAL_DATA_60 FORMAT_24 U0_35 MASK_36 OFFSET_28 TILE_SAMPLES_56 TILE_VALUE_16] "Writes the tile buffer.";
    Iter "iter" memory(4, 8, 15) 0xff 0x21 FREE [VARYING_56 COEFFICIENT_58 SAMPLE_32 FORWARD_22 ELIDE_46 INTERPOLATION_48 KILL_52 U1_40 U2_47 U3_50 U4_53 U5_62] "Interpolates inputs, linear on the screen.";
    Iterproj "iterproj" memory(4, 8, 15) 0xff 0x61 FREE [VARYING_56 COEFFICIENT_58 INVERSE_60 SAMPLE_32 FORWARD_22 ELIDE_46 INTERPOLATION_48 KILL_52 U1_40 U2_47 U3_50 U4_53 U5_62] "Interpolates inputs, with perspective.";
    Ldcf "ldcf" "TODO.ldcf" memory(4, 8, 15) 0xff 0xa1 FREE [TRIPLES_56 COEFFICIENT_58] "Reads coefficients of inputs.";
    UniformStore "uniform_store" memory(6, 8, 47) 0xc00f0380f027f 0x38000045 FREE [U1_25 FORMAT_7_SHORT MASK_52 U2_44 DATA_40 INDEX_56 SHIFT_42] "Writes uniforms, in a preamble.";
    TexStateStore "tex_state_store" only(8) 0x1000ff 0x1000ed FREE [TEXTURE_8 UNIFORM_58 INDEX_27] "Loads a texture state.";
    SamplerStateStore "sampler_state_store" only(8) 0x1000ff 0x1000ad FREE [SAMPLER_8 UNIFORM_58 INDEX_27] "Loads a sampler state.";
    NoVar "no_var" only(4) 0x4003ff 0x51 FREE [U1_31 OUTPUT_24 SLOT_INDEX_26] "A vertex without outputs.";
    StVar "st_var" only(4) 0x4003ff 0x11 FREE [U1_31 OUTPUT_24 SLOT_INDEX_26] "Writes an output of a vertex.";
    StVarFinal "st_var_final" only(4) 0x4003ff 0x91 FREE [U1_31 OUTPUT_24 SLOT_INDEX_26] "Writes the last output of a vertex.";
    AsyncStore "async_store" only(8) 0x7f 0x65 FREE [COPY_47 ASYNC_9 ASYNC_36] "Block copy from threadgroup memory to a buffer.";
    AsyncLoad "async_load" only(8) 0x7f 0x25 FREE [COPY_47 ASYNC_9 ASYNC_36] "Block copy from a buffer to threadgroup memory.";
    DeviceLoad "device_load" memory(6, 8, 47) 0xc70003400007f 0x400004000005 FREE [SLOT_30 FORMAT_7 MASK_52 DATA_40 BASE_36 INDEX_56 UNSIGNED_25 SHIFT_42] "Loads from memory into consecutive registers.";
    DeviceStore "device_store" memory(6, 8, 47) 0xc60003400007f 0x400004000045 FREE [SLOT_30 FORMAT_7 MASK_52 DATA_40 BASE_36 INDEX_56 UNSIGNED_25 SHIFT_42 U6_44] "Stores consecutive registers to memory.";
    DeviceLoadControl "device_load.control" "device_load.TODO" memory(6, 8, 47) 0x7f 0x5 FREE [SLOT_30 FORMAT_7 MASK_52 DATA_40 BASE_36 INDEX_56 UNSIGNED_25 SHIFT_42 STACK_U1_26 U3_28 COHERENT_U4_44 U5_50] "Load with stated cache control.";
    DeviceStoreControl "device_store.control" "device_store.TODO" memory(6, 8, 47) 0x7f 0x45 FREE [SLOT_30 FORMAT_7 MASK_52 DATA_40 BASE_36 INDEX_56 UNSIGNED_25 SHIFT_42 COHERENT_U6_44 STACK_U1_26 U3_28 COHERENT_U4_45 U5_50] "Store with stated cache control.";
    StackStore "stack_store" memory(6, 8, 47) 0xff 0xb5 FREE [FORMAT_8_50 STACK_U1_26 U2_36 MASK_52 U5_44 DATA_40 INDEX_56 SLOT_30] "Stores to the memory of the lane.";
    StackLoad "stack_load" memory(6, 8, 47) 0xff 0x35 FREE [DATA_40 FORMAT_8_50 STACK_U1_26 U2_36 MASK_52 U5_44 INDEX_56 SLOT_30] "Loads from the memory of the lane.";
    ThreadgroupLoad "threadgroup_load" memory(6, 8, 15) 0x6f 0x69 FREE [FORMAT_24 MASK_36 LOCAL_DATA_60 LOCAL_BASE_58 LOCAL_INDEX_48] "Loads from the memory of the threadgroup.";
    ThreadgroupStore "threadgroup_store" memory(6, 8, 15) 0x6f 0x29 FREE [FORMAT_24 MASK_36 LOCAL_DATA_60 LOCAL_BASE_58 LOCAL_INDEX_48] "Stores to the memory of the threadgroup.";
    TextureSample "texture_sample" short(8, 12, 15) 0xff 0x31 FREE [COMPARE_23 QUERY_30 TEXTURE_U3_43 TEXTURE_SLOT_63 GATHER_86 TEXEL_MASK_48 KILL_69 TEXTURE_DATA_72 HEAP_64 TEXTURE_78 SAMPLER_92 DIM_40_71 COORDS_74 LOD_MODE_52 LOD_76 COMPARE_94] "Looks a texture up through a sampler.";
    TextureLoad "texture_load" short(8, 12, 15) 0xff 0x71 FREE [COMPARE_23 QUERY_30 TEXTURE_U3_43 TEXTURE_SLOT_63 GATHER_86 TEXEL_MASK_48 KILL_69 TEXTURE_DATA_72 HEAP_64 TEXTURE_78 SAMPLER_92 DIM_40_71 COORDS_74 LOD_MODE_52 LOD_76 COMPARE_94] "Fetches a texel.";
    ThreadgroupBarrier "threadgroup_barrier" only(2) 0xff 0x68 FREE [] "Until all SIMD groups of the threadgroup are here.";
    Atomic "atomic" only(8) 0x3f 0x15 FREE [ATOMIC_6 SLOT_30 ATOMIC_DATA_40 BASE_36 INDEX_56 UNSIGNED_25 SOURCE_48 STACK_U1_26 U2_28 U3_31 U4_42 U5_45] "Read, modify, write in memory.";
    ThreadgroupAtomic "threadgroup_atomic" memory(6, 10, 15) 0x3f 0x19 FREE [ATOMIC_24 ATOMIC_DATA_60 LOCAL_BASE_58 LOCAL_INDEX_48 SOURCE_64 U1_6 U3_35 U4_40 U5_72] "Read, modify, write in threadgroup memory.";
    AfterSampling1 "after_sampling1" "TODO.after_sampling1" only(2) 0xffff 0x101c FREE [] "Seen after lookups.";
    AfterSampling2 "after_sampling2" "TODO.after_sampling2" only(2) 0xffff 0x62cc FREE [] "Seen after lookups.";
    Unk30C0 "unk30C0" "TODO.unk30C0" only(6) 0xffff 0xc030 FREE [VALUE_16_WORD] "Not known.";
    Unk40C0 "unk40C0" "TODO.unk40C0" only(6) 0xffffffffffff 0xc040 FREE [] "Not known.";
    UnkC0000000 "unkC0000000" "TODO.unkC0000000" only(4) 0xffffffff 0xc0 FREE [] "Not known.";
    UnkE800 "unkE800" "TODO.unkE800" only(2) 0xffff 0xe8 FREE [] "Not known.";
    Unk0C00 "unk0C00" "TODO.unk0C00" only(2) 0xffff 0xc FREE [] "Not known.";
    Doorbell "doorbell" only(2) 0xff 0x28 FREE [VALUE_8_BYTE] "Answer to the scratch service.";
    JmpIfSkippingDoorbell "jmp_if_skipping_doorbell" only(4) 0xff00ffff 0x20 FREE [TARGET_16_SHORT] "Jump over the doorbell where it is to be skipped.";
    ImageWriteBlock "image_write_block" memory(6, 10, 15) 0x3ff0001f0000000000ff 0xb1 FREE [BLOCK_56 COORDS_58 LOD_60 TEXTURE_62 DIM_40_55 ROUND_53 FORMAT_8_64 U0_23 U1_43 U2_67] "Writes a block of the tile buffer to an image.";
    ImageWrite "image_write" short(6, 8, 15) 0xff 0xf1 FREE [TEXEL_56 COORDS_58 LOD_60 HEAP_48 TEXTURE_62 DIM_40_55 ROUND_53 U1_23 U2_30 IMAGE_U3_43 U5_54] "Writes a texel.";
    GetSrAlt "get_sr.alt" "TODO.sr_thing" only(4) 0x807f 0x8072 FREE [DEST_28 SPECIAL_16] "get_sr with bit 15 set.";
    PopExecAlt "pop_exec.alt" "TODO.pop_exec2" only(6) 0xffe67f 0x800652 FREE [R0L NEST_11] "pop_exec with bit 23 set.";
    Unmap "unmap" only(8) 0x8000bb0f04ff 0x800001000075 FREE [SPACE_36 A_40 SIGNED_20 MAP_U1_8 MAP_U2_30 MAP_U3_37 MAP_U4_42 MAP_U5_48] "Reads a block address of a scratch request.";
    Map "map" only(8) 0x8000bb0f04ff 0x800001010075 FREE [SPACE_36 A_40 SIGNED_20 MAP_U1_8 MAP_U2_30 MAP_U3_37 MAP_U4_42 MAP_U5_48] "Sets a block address of a scratch request.";
    MapOp "map.op" "TODO.map" only(8) 0x8000bb0004ff 0x800001000075 FREE [MAP_MODE_16 SPACE_36 A_40 SIGNED_20 MAP_U1_8 MAP_U2_30 MAP_U3_37 MAP_U4_42 MAP_U5_48] "Other operations on scratch requests.";
    MapAlt "map.alt" "TODO.unk75_alt" only(8) 0x8000000004ff 0x800000000075 FREE [U6_16 U7_24 U8_27 U9_31 A_40 SIGNED_20 MAP_U1_8] "Other forms of the same opcode.";
    SampleMask "sample_mask" only(4) 0x80ff 0xc1 FREE [SAMPLES_24 TEST_26] "Samples that are tested, and those that are killed.";
    ZsEmit "zs_emit" only(4) 0x80ff 0x41 FREE [SAMPLES_24 DEPTH_26 U0_22] "Depth and stencil of samples; runs the tests.";
    MemoryBarrier "memory_barrier" only(2) 0xff 0xf5 FREE [U1_10 U2_8 U3_12] "Order of memory accesses, by scope.";
}
