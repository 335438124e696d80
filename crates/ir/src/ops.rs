//! The one table of operations: name, operands, result, side effects.
//!
//! The printer, the parser, the verifier, the interpreter and the constant folder read this table. Semantics that
//! need more than a row are in the comments here and in `eval.rs`.

/// What the operands of an operation must be, in terms of the type `ty` of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sig {
    /// No operands.
    Nullary,
    /// One operand of type `ty`.
    Unary,
    /// Two operands of type `ty`.
    Binary,
    /// Three operands of type `ty`.
    Ternary,
    /// Two operands of one type, which is `ty`; the result is `bool`.
    Compare,
    /// `bool`, `ty`, `ty`.
    Select,
    /// One operand of any other type.
    Convert,
    /// First operand `ty`, second `i32` (shifts: the count is taken modulo the width of `ty`).
    Shift,
    /// Checked by its own rule in the verifier.
    Special,
}

/// Which types `ty` may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Any,
    Int,
    /// Integers and `bool`.
    IntBool,
    Float,
    F32,
    I32,
    Bool,
}

/// Side effects of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Depends on its operands only: may be moved, merged, removed.
    Pure,
    /// The same everywhere within one invocation (built-ins, uniforms): may be moved and merged.
    Constant,
    /// Reads memory: removable, but ordered with writes.
    Read,
    /// Writes memory or synchronises: stays, in order.
    Write,
    /// Reads other lanes: must not move across control flow.
    Lanes,
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $sig:ident, $class:ident, $effect:ident;)*) => {
        /// An operation. See [`OpInfo`] for its row.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Op { $($(#[$doc])* $name,)* }

        impl Op {
            /// Every operation, in table order.
            pub const ALL: &[Op] = &[$(Op::$name,)*];

            /// The row of the operation.
            pub fn info(self) -> &'static OpInfo {
                const TABLE: &[OpInfo] = &[$(OpInfo {
                    name: $text, sig: Sig::$sig, class: Class::$class, effect: Effect::$effect,
                },)*];
                &TABLE[self as usize]
            }
        }
    };
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Name in the text form.
    pub name: &'static str,
    pub sig: Sig,
    pub class: Class,
    pub effect: Effect,
}

ops! {
    /// A constant; the bits are in the immediate.
    Const = "const", Nullary, Any, Pure;
    /// Any bits; every use may see others.
    Undef = "undef", Nullary, Any, Pure;

    // Integers: wrapping two's complement.
    Iadd = "iadd", Binary, Int, Pure;
    Isub = "isub", Binary, Int, Pure;
    Imul = "imul", Binary, Int, Pure;
    Ineg = "ineg", Unary, Int, Pure;
    /// High half of the signed product.
    Smulhi = "smulhi", Binary, Int, Pure;
    /// High half of the unsigned product.
    Umulhi = "umulhi", Binary, Int, Pure;
    /// Signed quotient toward zero; division by zero gives any bits without a trap (the interpreter: all ones),
    /// and the smallest value divided by -1 is itself.
    Sdiv = "sdiv", Binary, Int, Pure;
    Udiv = "udiv", Binary, Int, Pure;
    /// Remainder with the sign of the dividend (x by zero: x).
    Srem = "srem", Binary, Int, Pure;
    /// Remainder with the sign of the divisor.
    Smod = "smod", Binary, Int, Pure;
    Umod = "umod", Binary, Int, Pure;
    Smin = "smin", Binary, Int, Pure;
    Smax = "smax", Binary, Int, Pure;
    Umin = "umin", Binary, Int, Pure;
    Umax = "umax", Binary, Int, Pure;
    And = "and", Binary, IntBool, Pure;
    Or = "or", Binary, IntBool, Pure;
    Xor = "xor", Binary, IntBool, Pure;
    Not = "not", Unary, IntBool, Pure;
    Shl = "shl", Shift, Int, Pure;
    Lshr = "lshr", Shift, Int, Pure;
    Ashr = "ashr", Shift, Int, Pure;
    /// Number of set bits, as `ty`.
    Popcount = "popcount", Unary, Int, Pure;
    Bitreverse = "bitreverse", Unary, Int, Pure;
    /// Number of leading zeros (width for 0).
    Clz = "clz", Unary, Int, Pure;
    /// Index of the lowest set bit, all ones for 0.
    FindLsb = "find_lsb", Unary, Int, Pure;
    /// Index of the highest bit that differs from the sign, all ones for 0 and -1.
    FindSmsb = "find_smsb", Unary, Int, Pure;
    /// Index of the highest set bit, all ones for 0.
    FindUmsb = "find_umsb", Unary, Int, Pure;
    /// Low 32 bits of the product of the low 24 bits, unsigned.
    Umul24 = "umul24", Binary, I32, Pure;
    /// Bit field insert: base, insert (`ty`), offset, count (`i32`). Count 0 gives base; offset + count beyond the
    /// width gives any bits.
    BitInsert = "bit_insert", Special, Int, Pure;
    /// Bit field extract, sign-extended: base (`ty`), offset, count (`i32`).
    BitExtractS = "bit_extract_s", Special, Int, Pure;
    /// Bit field extract, zero-extended.
    BitExtractU = "bit_extract_u", Special, Int, Pure;

    // Floats: IEEE, round to nearest even, denormals kept; every NaN result is the canonical quiet NaN.
    Fadd = "fadd", Binary, Float, Pure;
    Fsub = "fsub", Binary, Float, Pure;
    Fmul = "fmul", Binary, Float, Pure;
    Fdiv = "fdiv", Binary, Float, Pure;
    /// Remainder with the sign of the dividend: x - y * trunc(x / y).
    Frem = "frem", Binary, Float, Pure;
    /// x - y * floor(x / y).
    Fmod = "fmod", Binary, Float, Pure;
    /// a * b + c with a rounding after each of the two steps.
    Fma = "fma", Ternary, Float, Pure;
    Fneg = "fneg", Unary, Float, Pure;
    Fabs = "fabs", Unary, Float, Pure;
    /// Smaller value; a NaN operand gives the other operand; -0 is smaller than +0.
    Fmin = "fmin", Binary, Float, Pure;
    Fmax = "fmax", Binary, Float, Pure;
    Ffloor = "ffloor", Unary, Float, Pure;
    Fceil = "fceil", Unary, Float, Pure;
    Ftrunc = "ftrunc", Unary, Float, Pure;
    /// To the nearest integer, ties to even.
    Fround = "fround", Unary, Float, Pure;
    Fsqrt = "fsqrt", Unary, Float, Pure;
    /// 1 / sqrt(x).
    Frsqrt = "frsqrt", Unary, Float, Pure;
    Fexp2 = "fexp2", Unary, Float, Pure;
    Flog2 = "flog2", Unary, Float, Pure;
    /// Radians.
    Fsin = "fsin", Unary, Float, Pure;
    Fcos = "fcos", Unary, Float, Pure;

    // Special function units: the model in `eval.rs`, shared by interpreter and simulators, is the correctly
    // rounded value of the exact function.
    RcpApprox = "rcp_approx", Unary, F32, Pure;
    RsqrtApprox = "rsqrt_approx", Unary, F32, Pure;
    Exp2Approx = "exp2_approx", Unary, F32, Pure;
    Log2Approx = "log2_approx", Unary, F32, Pure;
    /// sin(pi * x) for x in -0.5..=0.5, clamped to that range outside.
    SinpiApprox = "sinpi_approx", Unary, F32, Pure;

    // Comparisons: the type is that of the operands.
    Ieq = "ieq", Compare, IntBool, Pure;
    Ine = "ine", Compare, IntBool, Pure;
    Slt = "slt", Compare, Int, Pure;
    Sle = "sle", Compare, Int, Pure;
    Ult = "ult", Compare, Int, Pure;
    Ule = "ule", Compare, Int, Pure;
    /// Equal, false when unordered.
    Feq = "feq", Compare, Float, Pure;
    /// Not equal, true when unordered.
    Fne = "fne", Compare, Float, Pure;
    /// Less, false when unordered.
    Flt = "flt", Compare, Float, Pure;
    /// Less or equal, false when unordered.
    Fle = "fle", Compare, Float, Pure;

    Select = "select", Select, Any, Pure;

    // Conversions: `ty` is the result.
    /// Low bits of a wider integer.
    Trunc = "trunc", Convert, Int, Pure;
    Zext = "zext", Convert, Int, Pure;
    Sext = "sext", Convert, Int, Pure;
    /// Float to signed, toward zero; out of range saturates and NaN gives 0 in the interpreter (sources leave it
    /// undefined).
    Ftosi = "ftosi", Convert, Int, Pure;
    Ftoui = "ftoui", Convert, Int, Pure;
    Sitof = "sitof", Convert, Float, Pure;
    Uitof = "uitof", Convert, Float, Pure;
    /// Between float widths, round to nearest even.
    Fconv = "fconv", Convert, Float, Pure;
    /// The same bits as another type of the same width.
    Bitcast = "bitcast", Convert, Any, Pure;
    /// Two f32 to two halves: first operand in the low half. `ty` is i32.
    PackHalf = "pack_half", Special, I32, Pure;
    /// Low half of an i32 as f32. `ty` is f32.
    UnpackHalfLo = "unpack_half_lo", Special, F32, Pure;
    /// High half of an i32 as f32.
    UnpackHalfHi = "unpack_half_hi", Special, F32, Pure;

    // Addresses.
    /// Start of a resource (immediate); with an operand, of that element of an array of resources.
    ResourceAddr = "resource_addr", Special, Any, Constant;
    /// Size in bytes of the bound range of a buffer resource (immediate, optional element operand), i32.
    ResourceSize = "resource_size", Special, I32, Constant;
    /// Address of a variable (immediate).
    VarAddr = "var_addr", Nullary, Any, Constant;
    /// `base + index * scale + offset` in bytes: operands base, and optionally index (i32); scale and offset are
    /// immediate. Opaque to algebraic rules until a target lowers it.
    Lea = "lea", Special, Any, Pure;

    // Memory. The immediate says space, element type, number of components, alignment. The address operand is a
    // pointer, or i32 after lowering. `ty` is the component type.
    /// Operand: address. One result per component.
    Load = "load", Special, Any, Read;
    /// Operands: address, components. No result.
    Store = "store", Special, Any, Write;
    /// Operands: address, data (compare-exchange: expected, new). Result: the old value.
    Atomic = "atomic", Special, Any, Write;
    /// Execution barrier of the work-group with memory ordering as the immediate says.
    Barrier = "barrier", Special, Any, Write;
    /// Memory ordering without execution barrier.
    Fence = "fence", Special, Any, Write;

    // Images. The immediate ([`crate::ImageImm`]) says which and what stands among the operands; `ty` is the type of a
    // component. Coordinates are texels, i32; they count from 0 and are signed.
    /// Results: the components of the mask. A texel outside of the image stops a run.
    ImageLoad = "image_load", Special, Any, Read;
    /// Operands end with the components of a colour (those that the format does not have are dropped), or texel
    /// words. Outside of the image it does nothing.
    ImageStore = "image_store", Special, Any, Write;
    /// As `atomic`, on an image of one 32-bit component. A texel outside of the image stops a run.
    ImageAtomic = "image_atomic", Special, Any, Write;
    /// Results: one for each axis ([`crate::ImageInfo::axes`]), i32. Operands: element, level of detail.
    ImageSize = "image_size", Special, I32, Constant;
    /// A lookup through a sampler; the immediate ([`crate::sample::SampleImm`]) says what stands among the operands. Results: the
    /// components of the mask; of a gather four. `ty` is the type of a component.
    Sample = "sample", Special, Any, Read;
    /// The same with the level of detail from the differences in the quad.
    SampleImplicit = "sample_implicit", Special, Any, Lanes;
    /// Number of levels of detail, i32. Operand: element.
    ImageLevels = "image_levels", Special, I32, Constant;

    // What an invocation knows of itself.
    /// A built-in of the source language (immediate).
    Builtin = "builtin", Nullary, Any, Constant;
    /// A word that the driver supplies, the same for all invocations (immediate).
    Uniform = "uniform", Nullary, Any, Constant;
    /// A word of the start state of the machine (immediate: its number); the target defines it.
    Payload = "payload", Nullary, I32, Constant;

    // Stages of the graphics pipeline. The immediate ([`crate::io::IoImm`]) is a place in the interface.
    /// A scalar that the stage is given. Operands: the numbers that the immediate asks for.
    Input = "input", Special, Any, Constant;
    /// Operands: a scalar that the stage gives, and the numbers that the immediate asks for. The last one counts; of a geometry
    /// shader the last one before `emit_vertex`. Several invocations that give the patch, or one vertex of it, different words at once
    /// leave it undefined.
    Output = "output", Special, Any, Write;
    /// A scalar that invocations of a control shader have given. Operands as `input`.
    ReadOutput = "read_output", Special, Any, Read;
    /// A geometry shader gives a vertex with what `output` said since the last one; beyond the most that it may give, nothing.
    /// Lowered: operands are the vertices before it, and 1 where a primitive begins with it.
    EmitVertex = "emit_vertex", Special, Bool, Write;
    /// The next vertex begins a primitive.
    EndPrimitive = "end_primitive", Special, Bool, Write;
    /// The invocation becomes a helper: it goes on for the sake of derivatives, but no output, store or atomic of it has
    /// an effect any more.
    Demote = "demote", Special, Bool, Write;
    /// bool: the invocation is a helper, from the start or by `demote`.
    IsHelper = "is_helper", Special, Bool, Read;
    /// Difference to the neighbour along x in the quad of 2 x 2 invocations, helpers too.
    Ddx = "ddx", Unary, Float, Lanes;
    Ddy = "ddy", Unary, Float, Lanes;

    // Lanes of a subgroup. Only active lanes take part.
    /// bool: true in exactly one active lane.
    Elect = "elect", Special, Bool, Lanes;
    /// bool operand, bool result.
    VoteAny = "vote_any", Special, Bool, Lanes;
    VoteAll = "vote_all", Special, Bool, Lanes;
    /// Operand of type `ty`, bool result.
    VoteEq = "vote_eq", Special, Any, Lanes;
    /// bool operand; i32: bit k is lane k (subgroups have at most 32 lanes).
    Ballot = "ballot", Special, I32, Lanes;
    BroadcastFirst = "broadcast_first", Unary, Any, Lanes;
    /// Value, lane (i32): value of that lane.
    Shuffle = "shuffle", Shift, Any, Lanes;
    /// Reduction or scan: the immediate says which.
    Reduce = "reduce", Unary, Any, Lanes;
}

impl Op {
    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn effect(self) -> Effect {
        self.info().effect
    }

    /// The result of this operation is `bool` whatever its `ty`.
    pub fn is_compare(self) -> bool {
        self.info().sig == Sig::Compare
    }

    /// The operation of a name in the text form.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// `op(a, b) == op(b, a)`, bit for bit.
    pub fn is_commutative(self) -> bool {
        use Op::*;
        matches!(
            self,
            Iadd | Imul
                | Smulhi
                | Umulhi
                | Smin
                | Smax
                | Umin
                | Umax
                | And
                | Or
                | Xor
                | Umul24
                | Fadd
                | Fmul
                | Fmin
                | Fmax
                | Ieq
                | Ine
                | Feq
                | Fne
        )
    }
}
