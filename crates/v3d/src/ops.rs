//! The operations of both versions as data.
//!
//! Facts: reference sections 6.2 to 6.5. [`Op`] has one variant for every operation of either version and either part
//! of the instruction.

/// What is true of an operation wherever it appears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpInfo {
    /// Name in assembly text.
    pub name: &'static str,
    /// Whether it delivers a result.
    pub dest: bool,
    /// How many sources it reads.
    pub sources: u8,
}

macro_rules! operations {
    ($($variant:ident $name:literal $dest:literal $sources:literal, $doc:literal;)*) => {
        /// An operation of the ADD or the MUL part. The same operation keeps its variant in both parts (`add`, `sub`,
        /// `mov`, `fmov`, `nop`); where it may stand is a matter of the version's tables.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
        }

        /// Every operation, in the order of the enumeration.
        pub const ALL: &[Op] = &[$(Op::$variant,)*];

        const INFO: &[OpInfo] = &[$(OpInfo { name: $name, dest: $dest, sources: $sources },)*];
    };
}

operations! {
    Nop "nop" false 0, "Nothing.";
    Fadd "fadd" true 2, "f32 addition.";
    Faddnf "faddnf" true 2, "f32 addition; what \"nf\" changes is not known.";
    Fsub "fsub" true 2, "f32 subtraction.";
    Fmin "fmin" true 2, "Smaller f32.";
    Fmax "fmax" true 2, "Larger f32.";
    Fcmp "fcmp" true 2, "f32 a - b, used for its flags: Z equal, N less, C less or equal.";
    Vfpack "vfpack" true 2, "Two f32 to a pair of f16, a low.";
    Vfmin "vfmin" true 2, "Smaller of two pairs of f16.";
    Vfmax "vfmax" true 2, "Larger of two pairs of f16.";
    Add "add" true 2, "32-bit addition; C is the carry.";
    Sub "sub" true 2, "32-bit subtraction; C is the borrow.";
    Min "min" true 2, "Smaller signed; C means a > b.";
    Max "max" true 2, "Larger signed.";
    Umin "umin" true 2, "Smaller unsigned.";
    Umax "umax" true 2, "Larger unsigned.";
    Shl "shl" true 2, "Left shift by the low 5 bits of b.";
    Shr "shr" true 2, "Logical right shift by the low 5 bits of b.";
    Asr "asr" true 2, "Arithmetic right shift by the low 5 bits of b.";
    Ror "ror" true 2, "Rotate right by the low 5 bits of b.";
    And "and" true 2, "Bitwise and.";
    Or "or" true 2, "Bitwise or.";
    Xor "xor" true 2, "Bitwise exclusive or.";
    Vadd "vadd" true 2, "Two 16-bit additions.";
    Vsub "vsub" true 2, "Two 16-bit subtractions.";
    Not "not" true 1, "Bitwise complement.";
    Neg "neg" true 1, "Two's complement negation.";
    Flapush "flapush" true 1, "a << 2 with bits 1:0 = 11 where flag A is set.";
    Flbpush "flbpush" true 1, "a << 2 with bits 1:0 = 11 where flag B is set.";
    Flpop "flpop" true 1, "a >> 2.";
    Clz "clz" true 1, "Leading zeros.";
    Setmsf "setmsf" true 1, "Sets the sample flags of the lane.";
    Setrevf "setrevf" true 1, "Sets the facing flag.";
    Tidx "tidx" true 0, "(core << 6) | (QPU << 2) | thread.";
    Eidx "eidx" true 0, "Lane number.";
    Lr "lr" true 0, "Link register.";
    Vfla "vfla" true 0, "0x00010001 in lanes with A set.";
    Vflna "vflna" true 0, "0x00010001 in lanes with A clear.";
    Vflb "vflb" true 0, "0x00010001 in lanes with B set.";
    Vflnb "vflnb" true 0, "0x00010001 in lanes with B clear.";
    Fxcd "fxcd" true 0, "Pixel x as f32.";
    Xcd "xcd" true 0, "Pixel x.";
    Fycd "fycd" true 0, "Pixel y as f32.";
    Ycd "ycd" true 0, "Pixel y.";
    Msf "msf" true 0, "Sample flags of the lane.";
    Revf "revf" true 0, "Facing flag.";
    Iid "iid" true 0, "Geometry-shader invocation.";
    Sampid "sampid" true 0, "Sample number.";
    Barrierid "barrierid" true 0, "The value that syncb wants for a work-group barrier.";
    Tmuwt "tmuwt" true 0, "Waits for the TMU writes of the thread.";
    Vpmwt "vpmwt" true 0, "Waits for the VPM writes of the thread.";
    Flafirst "flafirst" true 0, "1 in the lowest lane with A set.";
    Flnafirst "flnafirst" true 0, "1 in the lowest lane with A clear.";
    Vpmsetup "vpmsetup" true 1, "4.2: left over from 3.3, never used.";
    LdvpmvIn "ldvpmv_in" true 1, "VPM input row, the same for all lanes.";
    LdvpmvOut "ldvpmv_out" true 1, "VPM output row read back, the same for all lanes.";
    LdvpmdIn "ldvpmd_in" true 1, "VPM input row, one per lane.";
    LdvpmdOut "ldvpmd_out" true 1, "VPM output row read back, one per lane.";
    LdvpmgIn "ldvpmg_in" true 2, "Geometry input: row and vertex.";
    LdvpmgOut "ldvpmg_out" true 2, "Geometry output read back.";
    Ldvpmp "ldvpmp" true 1, "Per-patch input.";
    Stvpmv "stvpmv" false 2, "Writes a VPM output row, the same for all lanes.";
    Stvpmd "stvpmd" false 2, "Writes a VPM output row, one per lane.";
    Stvpmp "stvpmp" false 2, "Writes per-patch data.";
    Recip "recip" true 1, "SFU: 1/x.";
    Rsqrt "rsqrt" true 1, "SFU: 1/sqrt(x).";
    Exp "exp" true 1, "SFU: 2^x.";
    Log "log" true 1, "SFU: log2(x).";
    Sin "sin" true 1, "SFU: sin(pi x).";
    Rsqrt2 "rsqrt2" true 1, "SFU: 1/sqrt(x), second form.";
    Fround "fround" true 1, "To integral f32, ties to even.";
    Ftrunc "ftrunc" true 1, "To integral f32, toward zero.";
    Ffloor "ffloor" true 1, "To integral f32, down.";
    Fceil "fceil" true 1, "To integral f32, up.";
    Ftoin "ftoin" true 1, "f32 to signed, nearest even.";
    Ftoiz "ftoiz" true 1, "f32 to signed, toward zero.";
    Ftouz "ftouz" true 1, "f32 to unsigned, toward zero.";
    Ftoc "ftoc" true 1, "f32 in 0..1 to a coverage mask.";
    Itof "itof" true 1, "Signed to f32.";
    Utof "utof" true 1, "Unsigned to f32.";
    Fdx "fdx" true 1, "Difference along x inside the quad.";
    Fdy "fdy" true 1, "Difference along y inside the quad.";
    Mov "mov" true 1, "Integer move.";
    Fmov "fmov" true 1, "Float move.";
    Umul24 "umul24" true 2, "Unsigned 24 by 24 bits plus rtop, which it clears.";
    Smul24 "smul24" true 2, "Signed 24 by 24 bits, low 32 bits.";
    Multop "multop" true 2, "First half of a 32-bit multiplication: sets rtop.";
    Fmul "fmul" true 2, "f32 multiplication.";
    Vfmul "vfmul" true 2, "Two f16 multiplications.";
    Ballot "ballot" true 1, "7.1 SFU: mask of participating lanes with a non-zero.";
    Bcastf "bcastf" true 1, "7.1 SFU: value of the first participating lane.";
    Alleq "alleq" true 1, "7.1 SFU: whether all participating lanes agree, bitwise.";
    Allfeq "allfeq" true 1, "7.1 SFU: whether all participating lanes agree, as f32.";
    Rotq "rotq" true 2, "7.1 SFU: rotation inside quads.";
    Rot "rot" true 2, "7.1 SFU: rotation over the vector.";
    Shuffle "shuffle" true 2, "7.1 SFU: any lane to any lane.";
    Vpack "vpack" true 2, "7.1: low halves of a and b.";
    V8pack "v8pack" true 2, "7.1: four bytes out of the halves of a and b.";
    V10pack "v10pack" true 2, "7.1: 10, 10, 10, 2 bits out of the halves of a and b.";
    V11fpack "v11fpack" true 2, "7.1: 11, 11, 10-bit floats out of f16 halves.";
    Ftounorm16 "ftounorm16" true 1, "7.1: f32 to 16-bit unsigned normalised.";
    Ftosnorm16 "ftosnorm16" true 1, "7.1: f32 to 16-bit signed normalised.";
    Vftounorm8 "vftounorm8" true 1, "7.1: f16 pair to 8-bit unsigned normalised.";
    Vftosnorm8 "vftosnorm8" true 1, "7.1: f16 pair to 8-bit signed normalised.";
    Vftounorm10lo "vftounorm10lo" true 1, "7.1: f16 pair to 10-bit unsigned normalised.";
    Vftounorm10hi "vftounorm10hi" true 1, "7.1: f16 pair to 10-bit and 2-bit unsigned normalised.";
    Funpackunormlo "funpackunormlo" true 1, "7.1, late: unsigned normalised low part to f32.";
    Funpackunormhi "funpackunormhi" true 1, "7.1, late: unsigned normalised high part to f32.";
    Funpacksnormlo "funpacksnormlo" true 1, "7.1, late: signed normalised low part to f32.";
    Funpacksnormhi "funpacksnormhi" true 1, "7.1, late: signed normalised high part to f32.";
    V8dot "v8dot" true 2, "7.1, late: dot product of four 8-bit values.";
    SetnnmodeUu "setnnmode_uu" false 0, "7.1, late: v8dot takes a and b unsigned.";
    SetnnmodeSu "setnnmode_su" false 0, "7.1, late: v8dot takes a signed, b unsigned.";
    SetnnmodeUs "setnnmode_us" false 0, "7.1, late: v8dot takes a unsigned, b signed.";
    SetnnmodeSs "setnnmode_ss" false 0, "7.1, late: v8dot takes a and b signed.";
}

impl Op {
    /// The facts that hold in both parts and versions.
    #[inline]
    pub fn info(self) -> &'static OpInfo {
        &INFO[self as usize]
    }

    /// Name in assembly text.
    #[inline]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// How many sources it reads.
    #[inline]
    pub fn sources(self) -> usize {
        self.info().sources as usize
    }

    /// Whether it delivers a result (possibly to the nop address).
    #[inline]
    pub fn has_dest(self) -> bool {
        self.info().dest
    }

    /// The result is a function of the sources in the same lane, and of nothing else.
    pub fn is_pure(self) -> bool {
        let lanes = matches!(
            self,
            Op::Fdx
                | Op::Fdy
                | Op::Ballot
                | Op::Bcastf
                | Op::Alleq
                | Op::Allfeq
                | Op::Rotq
                | Op::Rot
                | Op::Shuffle
        );
        let state = matches!(
            self,
            Op::Flapush
                | Op::Flbpush
                | Op::Setmsf
                | Op::Setrevf
                | Op::Vpmsetup
                | Op::LdvpmvIn
                | Op::LdvpmvOut
                | Op::LdvpmdIn
                | Op::LdvpmdOut
                | Op::LdvpmgIn
                | Op::LdvpmgOut
                | Op::Ldvpmp
                | Op::V8dot
        );
        self.has_dest() && self.sources() > 0 && !lanes && !state
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Op> {
        ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Runs in the special function unit: result latency 2 (sections 9 and 12.5).
    #[inline]
    pub fn is_sfu(self) -> bool {
        use Op::*;
        matches!(
            self,
            Recip
                | Rsqrt
                | Exp
                | Log
                | Sin
                | Rsqrt2
                | Ballot
                | Bcastf
                | Alleq
                | Allfeq
                | Rotq
                | Rot
                | Shuffle
        )
    }

    /// Reads the VPM.
    #[inline]
    pub fn is_vpm_read(self) -> bool {
        use Op::*;
        matches!(self, LdvpmvIn | LdvpmvOut | LdvpmdIn | LdvpmdOut | LdvpmgIn | LdvpmgOut | Ldvpmp)
    }

    /// Writes the VPM.
    #[inline]
    pub fn is_vpm_write(self) -> bool {
        matches!(self, Op::Stvpmv | Op::Stvpmd | Op::Stvpmp)
    }

    /// The value depends on the A flags whatever the condition (vfla and its relatives, flapush, flafirst).
    #[inline]
    pub fn reads_flag_a(self) -> bool {
        matches!(self, Op::Vfla | Op::Vflna | Op::Flapush | Op::Flafirst | Op::Flnafirst)
    }

    /// The value depends on the B flags whatever the condition.
    #[inline]
    pub fn reads_flag_b(self) -> bool {
        matches!(self, Op::Vflb | Op::Vflnb | Op::Flbpush)
    }

    /// Swapping the sources does not change the value.
    pub fn commutes(self) -> bool {
        use Op::*;
        matches!(
            self,
            Fadd | Faddnf
                | Fmin
                | Fmax
                | Vfmin
                | Vfmax
                | Add
                | Min
                | Max
                | Umin
                | Umax
                | And
                | Or
                | Xor
                | Vadd
                | Umul24
                | Smul24
                | Multop
                | Fmul
                | Vfmul
        )
    }

    /// Done for an effect other than its result: must not be dropped although nobody reads the result.
    pub fn has_effect(self) -> bool {
        use Op::*;
        self.is_vpm_read()
            || self.is_vpm_write()
            || matches!(
                self,
                Setmsf
                    | Setrevf
                    | Tmuwt
                    | Vpmwt
                    | Vpmsetup
                    | Multop
                    | Umul24
                    | Flpop
                    | SetnnmodeUu
                    | SetnnmodeSu
                    | SetnnmodeUs
                    | SetnnmodeSs
            )
    }
}
