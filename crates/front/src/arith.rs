//! Scalar arithmetic of SPIR-V in terms of the operations of the IR, once for code and for constants.
//!
//! [`scalar`] is generic over what a value is: [`ConstArith`] computes (specialisation constants), the lowering
//! emits instructions.

use crate::reader::{Res, error};
use kempe_ir::{Class, Imm, Op, Sig, Type, eval};
use spirv::Op as S;

/// Something that can apply an operation of the IR.
pub trait Arith {
    type V: Copy;
    /// Applies an operation; `args` are checked against its row in the table.
    fn op(&mut self, op: Op, ty: Type, args: &[(Type, Self::V)]) -> Res<Self::V>;
    fn constant(&mut self, ty: Type, bits: u64) -> Self::V;
}

/// Computes with bits.
pub struct ConstArith {
    pub at: usize,
}

impl Arith for ConstArith {
    type V = u64;

    fn op(&mut self, op: Op, ty: Type, args: &[(Type, u64)]) -> Res<u64> {
        if !fits(op, ty, args) {
            return error(self.at, "an operand of a constant has the wrong type");
        }
        let mut bits = [0; 4];
        for (b, a) in bits.iter_mut().zip(args) {
            *b = a.1;
        }
        let from = args.first().map_or(ty, |a| a.0);
        match eval::eval(op, ty, from, Imm::None, &bits[..args.len().min(4)]) {
            Some(v) => Ok(v),
            None => error(self.at, format!("{} of constants is not supported", op.name())),
        }
    }

    fn constant(&mut self, ty: Type, bits: u64) -> u64 {
        bits & ty.mask()
    }
}

/// The operand types are those that the operation wants.
pub fn fits<V>(op: Op, ty: Type, args: &[(Type, V)]) -> bool {
    let info = op.info();
    let class = match info.class {
        Class::Any => true,
        Class::Int => ty.is_int(),
        Class::IntBool => ty.is_int() || ty == Type::Bool,
        Class::Float => ty.is_float(),
        Class::F32 => ty == Type::F32,
        Class::I32 => ty == Type::I32,
        Class::Bool => ty == Type::Bool,
    };
    let t = |n: usize| args[n].0;
    class
        && match info.sig {
            Sig::Nullary => args.is_empty(),
            Sig::Unary => args.len() == 1 && t(0) == ty,
            Sig::Binary | Sig::Compare => args.len() == 2 && t(0) == ty && t(1) == ty,
            Sig::Ternary => args.len() == 3 && t(0) == ty && t(1) == ty && t(2) == ty,
            Sig::Select => args.len() == 3 && t(0) == Type::Bool && t(1) == ty && t(2) == ty,
            Sig::Shift => args.len() == 2 && t(0) == ty && t(1) == Type::I32,
            Sig::Convert => {
                args.len() == 1
                    && match op {
                        Op::Trunc => t(0).is_int() && t(0).bits() > ty.bits(),
                        Op::Zext | Op::Sext => t(0).is_int() && t(0).bits() < ty.bits(),
                        Op::Ftosi | Op::Ftoui => t(0).is_float(),
                        Op::Sitof | Op::Uitof => t(0).is_int(),
                        Op::Fconv => t(0).is_float() && t(0) != ty,
                        Op::Bitcast => t(0).bits() == ty.bits() && t(0) != Type::Bool,
                        _ => true,
                    }
            }
            Sig::Special => match op {
                Op::BitInsert => {
                    args.len() == 4 && t(0) == ty && t(1) == ty && t(2) == Type::I32 && t(3) == Type::I32
                }
                Op::BitExtractS | Op::BitExtractU => {
                    args.len() == 3 && t(0) == ty && t(1) == Type::I32 && t(2) == Type::I32
                }
                Op::PackHalf => args.len() == 2 && t(0) == Type::F32 && t(1) == Type::F32,
                Op::UnpackHalfLo | Op::UnpackHalfHi => args.len() == 1 && t(0) == Type::I32,
                _ => true,
            },
        }
}

/// An integer as another width, by truncation, sign or zero extension.
pub fn resize<A: Arith>(a: &mut A, (from, v): (Type, A::V), to: Type, signed: bool) -> Res<A::V> {
    if from == to {
        return Ok(v);
    }
    let op = match (from.bits() > to.bits(), signed) {
        (true, _) => Op::Trunc,
        (false, true) => Op::Sext,
        (false, false) => Op::Zext,
    };
    a.op(op, to, &[(from, v)])
}

/// Number of operands of an instruction that works component by component, `None` for every other one.
pub fn operands(op: S) -> Option<usize> {
    use S::*;
    Some(match op {
        SNegate | FNegate | Not | LogicalNot | IsNan | IsInf | IsFinite | IsNormal | SignBitSet
        | BitCount | BitReverse | ConvertFToU | ConvertFToS | ConvertSToF | ConvertUToF | UConvert
        | SConvert | FConvert | QuantizeToF16 => 1,
        IAdd
        | ISub
        | IMul
        | UDiv
        | SDiv
        | UMod
        | SRem
        | SMod
        | FAdd
        | FSub
        | FMul
        | FDiv
        | FRem
        | FMod
        | BitwiseAnd
        | LogicalAnd
        | BitwiseOr
        | LogicalOr
        | BitwiseXor
        | ShiftLeftLogical
        | ShiftRightLogical
        | ShiftRightArithmetic
        | IEqual
        | LogicalEqual
        | INotEqual
        | LogicalNotEqual
        | ULessThan
        | ULessThanEqual
        | UGreaterThan
        | UGreaterThanEqual
        | SLessThan
        | SLessThanEqual
        | SGreaterThan
        | SGreaterThanEqual
        | FOrdEqual
        | FUnordNotEqual
        | FOrdLessThan
        | FOrdLessThanEqual
        | FOrdGreaterThan
        | FOrdGreaterThanEqual
        | FUnordLessThan
        | FUnordLessThanEqual
        | FUnordGreaterThan
        | FUnordGreaterThanEqual
        | FOrdNotEqual
        | LessOrGreater
        | FUnordEqual
        | Ordered
        | Unordered => 2,
        Select | BitFieldSExtract | BitFieldUExtract => 3,
        BitFieldInsert => 4,
        _ => return None,
    })
}

/// One scalar of a SPIR-V instruction that works component by component. `ty` is the type of the result scalar;
/// the answer says its type again, and is `None` when the instruction is not of this kind.
pub fn scalar<A: Arith>(
    a: &mut A,
    at: usize,
    op: S,
    ty: Type,
    args: &[(Type, A::V)],
) -> Res<Option<(Type, A::V)>> {
    use Type::Bool;
    match operands(op) {
        None => return Ok(None),
        Some(want) if args.len() != want => {
            return error(at, format!("Op{op:?} with {} operands: {want} are needed", args.len()));
        }
        _ => {}
    }
    let (t0, x) = args[0];
    let binary = |a: &mut A, op: Op| a.op(op, ty, &[args[0], args[1]]).map(|v| Some((ty, v)));
    let compare = |a: &mut A, op: Op, swap: bool, negate: bool| {
        let pair = if swap { [args[1], args[0]] } else { [args[0], args[1]] };
        let v = a.op(op, t0, &pair)?;
        let v = if negate { a.op(Op::Not, Bool, &[(Bool, v)])? } else { v };
        Ok(Some((Bool, v)))
    };
    let unary = |a: &mut A, op: Op| a.op(op, ty, &[args[0]]).map(|v| Some((ty, v)));
    let (swap, keep, negate) = (true, false, true);
    match op {
        S::IAdd => binary(a, Op::Iadd),
        S::ISub => binary(a, Op::Isub),
        S::IMul => binary(a, Op::Imul),
        S::UDiv => binary(a, Op::Udiv),
        S::SDiv => binary(a, Op::Sdiv),
        S::UMod => binary(a, Op::Umod),
        S::SRem => binary(a, Op::Srem),
        S::SMod => binary(a, Op::Smod),
        S::FAdd => binary(a, Op::Fadd),
        S::FSub => binary(a, Op::Fsub),
        S::FMul => binary(a, Op::Fmul),
        S::FDiv => binary(a, Op::Fdiv),
        S::FRem => binary(a, Op::Frem),
        S::FMod => binary(a, Op::Fmod),
        S::BitwiseAnd | S::LogicalAnd => binary(a, Op::And),
        S::BitwiseOr | S::LogicalOr => binary(a, Op::Or),
        S::BitwiseXor => binary(a, Op::Xor),
        S::SNegate => unary(a, Op::Ineg),
        S::FNegate => unary(a, Op::Fneg),
        S::Not | S::LogicalNot => unary(a, Op::Not),
        S::BitReverse => unary(a, Op::Bitreverse),
        S::BitCount => {
            let n = a.op(Op::Popcount, t0, &[args[0]])?;
            Ok(Some((ty, resize(a, (t0, n), ty, false)?)))
        }
        S::ShiftLeftLogical | S::ShiftRightLogical | S::ShiftRightArithmetic => {
            let count = resize(a, args[1], Type::I32, false)?;
            let op = match op {
                S::ShiftLeftLogical => Op::Shl,
                S::ShiftRightLogical => Op::Lshr,
                _ => Op::Ashr,
            };
            Ok(Some((ty, a.op(op, ty, &[args[0], (Type::I32, count)])?)))
        }
        S::BitFieldInsert => {
            let offset = resize(a, args[2], Type::I32, false)?;
            let count = resize(a, args[3], Type::I32, false)?;
            let args = [args[0], args[1], (Type::I32, offset), (Type::I32, count)];
            Ok(Some((ty, a.op(Op::BitInsert, ty, &args)?)))
        }
        S::BitFieldSExtract | S::BitFieldUExtract => {
            let offset = resize(a, args[1], Type::I32, false)?;
            let count = resize(a, args[2], Type::I32, false)?;
            let op = if op == S::BitFieldSExtract { Op::BitExtractS } else { Op::BitExtractU };
            Ok(Some((ty, a.op(op, ty, &[args[0], (Type::I32, offset), (Type::I32, count)])?)))
        }
        S::IEqual | S::LogicalEqual => compare(a, Op::Ieq, keep, false),
        S::INotEqual | S::LogicalNotEqual => compare(a, Op::Ine, keep, false),
        S::ULessThan => compare(a, Op::Ult, keep, false),
        S::ULessThanEqual => compare(a, Op::Ule, keep, false),
        S::UGreaterThan => compare(a, Op::Ult, swap, false),
        S::UGreaterThanEqual => compare(a, Op::Ule, swap, false),
        S::SLessThan => compare(a, Op::Slt, keep, false),
        S::SLessThanEqual => compare(a, Op::Sle, keep, false),
        S::SGreaterThan => compare(a, Op::Slt, swap, false),
        S::SGreaterThanEqual => compare(a, Op::Sle, swap, false),
        S::FOrdEqual => compare(a, Op::Feq, keep, false),
        S::FUnordNotEqual => compare(a, Op::Fne, keep, false),
        S::FOrdLessThan => compare(a, Op::Flt, keep, false),
        S::FOrdLessThanEqual => compare(a, Op::Fle, keep, false),
        S::FOrdGreaterThan => compare(a, Op::Flt, swap, false),
        S::FOrdGreaterThanEqual => compare(a, Op::Fle, swap, false),
        // Unordered comparisons are the negated opposites.
        S::FUnordLessThan => compare(a, Op::Fle, swap, negate),
        S::FUnordLessThanEqual => compare(a, Op::Flt, swap, negate),
        S::FUnordGreaterThan => compare(a, Op::Fle, keep, negate),
        S::FUnordGreaterThanEqual => compare(a, Op::Flt, keep, negate),
        S::FOrdNotEqual | S::LessOrGreater | S::FUnordEqual => {
            let lt = a.op(Op::Flt, t0, &[args[0], args[1]])?;
            let gt = a.op(Op::Flt, t0, &[args[1], args[0]])?;
            let ne = a.op(Op::Or, Bool, &[(Bool, lt), (Bool, gt)])?;
            let v = if op == S::FUnordEqual { a.op(Op::Not, Bool, &[(Bool, ne)])? } else { ne };
            Ok(Some((Bool, v)))
        }
        S::Ordered | S::Unordered => {
            let (op, join) = if op == S::Ordered { (Op::Feq, Op::And) } else { (Op::Fne, Op::Or) };
            let p = a.op(op, t0, &[args[0], args[0]])?;
            let q = a.op(op, t0, &[args[1], args[1]])?;
            Ok(Some((Bool, a.op(join, Bool, &[(Bool, p), (Bool, q)])?)))
        }
        S::IsNan => Ok(Some((Bool, a.op(Op::Fne, t0, &[args[0], args[0]])?))),
        S::IsInf | S::IsFinite => {
            let abs = a.op(Op::Fabs, t0, &[args[0]])?;
            let inf = a.constant(t0, infinity(t0));
            let op = if op == S::IsInf { Op::Feq } else { Op::Flt };
            Ok(Some((Bool, a.op(op, t0, &[(t0, abs), (t0, inf)])?)))
        }
        S::IsNormal => {
            let abs = a.op(Op::Fabs, t0, &[args[0]])?;
            let inf = a.constant(t0, infinity(t0));
            let least = a.constant(t0, smallest_normal(t0));
            let p = a.op(Op::Flt, t0, &[(t0, abs), (t0, inf)])?;
            let q = a.op(Op::Fle, t0, &[(t0, least), (t0, abs)])?;
            Ok(Some((Bool, a.op(Op::And, Bool, &[(Bool, p), (Bool, q)])?)))
        }
        S::SignBitSet => {
            let Some(int) = Type::int(t0.bits()).filter(|_| t0.is_float()) else { return Ok(None) };
            let bits = a.op(Op::Bitcast, int, &[args[0]])?;
            let zero = a.constant(int, 0);
            Ok(Some((Bool, a.op(Op::Slt, int, &[(int, bits), (int, zero)])?)))
        }
        S::Select => Ok(Some((ty, a.op(Op::Select, ty, &[args[0], args[1], args[2]])?))),
        S::ConvertFToU => unary(a, Op::Ftoui),
        S::ConvertFToS => unary(a, Op::Ftosi),
        S::ConvertSToF => unary(a, Op::Sitof),
        S::ConvertUToF => unary(a, Op::Uitof),
        S::UConvert | S::SConvert => {
            if !t0.is_int() || !ty.is_int() {
                return error(at, "the operand of an integer conversion must be an integer");
            }
            Ok(Some((ty, resize(a, args[0], ty, op == S::SConvert)?)))
        }
        S::FConvert => {
            if t0 == ty {
                return Ok(Some((ty, x)));
            }
            unary(a, Op::Fconv)
        }
        S::QuantizeToF16 => {
            // Through a half and back; halves that would be denormal become zero of the same sign.
            let half = a.op(Op::Fconv, Type::F16, &[args[0]])?;
            let back = a.op(Op::Fconv, ty, &[(Type::F16, half)])?;
            let abs = a.op(Op::Fabs, ty, &[(ty, back)])?;
            let least = a.constant(Type::F32, 0x3880_0000); // 2^-14
            let tiny = a.op(Op::Flt, ty, &[(ty, abs), (Type::F32, least)])?;
            let zero = a.constant(ty, 0);
            let zero = a.op(Op::Fmul, ty, &[(ty, back), (ty, zero)])?;
            Ok(Some((ty, a.op(Op::Select, ty, &[(Bool, tiny), (ty, zero), (ty, back)])?)))
        }
        _ => Ok(None),
    }
}

/// Bits of positive infinity.
pub fn infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    }
}

fn smallest_normal(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x0400,
        Type::F32 => 0x0080_0000,
        _ => 0x0010_0000_0000_0000,
    }
}
