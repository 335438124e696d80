//! Rules for comparisons, selections and conversions.

use super::known::sign;
use super::{Act, Rules, View, to};
use kempe_ir::*;

pub fn rule(r: &mut Rules, v: &View) -> Act {
    use Op::*;
    match v.op {
        Ieq | Ine => equal(r, v),
        Slt | Sle | Ult | Ule => less(r, v),
        Feq | Fne | Flt | Fle => float(r, v),
        Select => select(r, v),
        _ => convert(r, v),
    }
}

fn bool_const(b: bool) -> Act {
    Act::Const(b as u64)
}

fn equal(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    let eq = v.op == Op::Ieq;
    if a == b {
        return bool_const(eq);
    }
    let Some(c) = r.as_const(b) else {
        return Act::Keep;
    };
    if ty == Type::Bool {
        return if (c != 0) == eq { Act::Value(a) } else { to(Op::Not, ty, &[a]) };
    }
    // A bit of the constant that the other side cannot have.
    if c & r.zero(a) != 0 {
        return bool_const(!eq);
    }
    if let Some((x, c1)) = r.with_const(a, Op::Iadd) {
        let c = r.konst(ty, c.wrapping_sub(c1));
        return to(v.op, ty, &[x, c]);
    }
    if let Some((x, c1)) = r.with_const(a, Op::Xor) {
        let c = r.konst(ty, c ^ c1);
        return to(v.op, ty, &[x, c]);
    }
    if c == 0 {
        for op in [Op::Isub, Op::Xor] {
            if let Some([x, y]) = r.args(a, op) {
                return to(v.op, ty, &[x, y]);
            }
        }
        for op in [Op::Ineg, Op::Zext, Op::Sext] {
            if let Some(x) = r.arg(a, op)
                && r.ty(x) != Type::Bool
            {
                let from = r.ty(x);
                let zero = r.konst(from, 0);
                return to(v.op, from, &[x, zero]);
            }
        }
    }
    // A boolean that became a number.
    if let Some((cond, one, zero)) = as_choice(r, a) {
        return match ((one == c) == eq, (zero == c) == eq) {
            (true, true) => bool_const(true),
            (false, false) => bool_const(false),
            (true, false) => Act::Value(cond),
            (false, true) => to(Op::Not, Type::Bool, &[cond]),
        };
    }
    // A single bit: (x & bit) == bit is (x & bit) != 0.
    if c.is_power_of_two() && r.with_const(a, Op::And).is_some_and(|(_, m)| m == c) {
        let zero = r.konst(ty, 0);
        return to(if eq { Op::Ine } else { Op::Ieq }, ty, &[a, zero]);
    }
    Act::Keep
}

/// A value that is one of two constants: the condition, the value when it holds, the value when it does not.
fn as_choice(r: &Rules, v: Value) -> Option<(Value, u64, u64)> {
    let d = r.def(v)?;
    match d.op {
        Op::Select => Some((d.args[0], r.as_const(d.args[1])?, r.as_const(d.args[2])?)),
        Op::Zext if r.ty(d.args[0]) == Type::Bool => Some((d.args[0], 1, 0)),
        Op::Sext if r.ty(d.args[0]) == Type::Bool => Some((d.args[0], d.ty.mask(), 0)),
        _ => None,
    }
}

fn less(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    let or_equal = matches!(v.op, Op::Sle | Op::Ule);
    if a == b {
        return bool_const(or_equal);
    }
    let signed = matches!(v.op, Op::Slt | Op::Sle);
    if signed {
        let (na, nb) = (r.non_negative(a), r.non_negative(b));
        if na && nb {
            return to(if or_equal { Op::Ule } else { Op::Ult }, ty, &[a, b]);
        }
        // Below the smallest or above the greatest number.
        let least = sign(ty);
        let extreme = |a: Option<u64>, b: Option<u64>| a == Some(least) || b == Some(least - 1);
        let (ca, cb) = (r.as_const(a), r.as_const(b));
        if or_equal && extreme(ca, cb) {
            return bool_const(true);
        }
        if !or_equal && extreme(cb, ca) {
            return bool_const(false);
        }
        return Act::Keep;
    }
    let (ma, mb) = (r.max(a), r.max(b));
    match (r.as_const(a), r.as_const(b)) {
        (_, Some(c)) => {
            if if or_equal { ma <= c } else { ma < c } {
                return bool_const(true);
            }
            if c == 0 {
                return if or_equal { to(Op::Ieq, ty, &[a, b]) } else { bool_const(false) };
            }
            if c == 1 && !or_equal {
                let zero = r.konst(ty, 0);
                return to(Op::Ieq, ty, &[a, zero]);
            }
        }
        (Some(c), _) => {
            if if or_equal { c > mb } else { c >= mb } {
                return bool_const(false);
            }
            if c == 0 {
                return if or_equal { bool_const(true) } else { to(Op::Ine, ty, &[b, a]) };
            }
            if c == 1 && or_equal {
                let zero = r.konst(ty, 0);
                return to(Op::Ine, ty, &[b, zero]);
            }
        }
        _ => {}
    }
    Act::Keep
}

fn float(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        match v.op {
            Op::Flt => return Act::Const(0),
            Op::Fne | Op::Feq | Op::Fle if v.flags.has(Flags::FAST) => return bool_const(v.op != Op::Fne),
            _ => {}
        }
    }
    let swap = matches!(v.op, Op::Flt | Op::Fle);
    let bits = 1u64 << (ty.bits() - 1);
    match (r.arg(a, Op::Fneg), r.arg(b, Op::Fneg)) {
        (Some(x), Some(y)) => return to(v.op, ty, &if swap { [y, x] } else { [x, y] }),
        (Some(x), None) => {
            if let Some(c) = r.as_const(b) {
                let c = r.konst(ty, c ^ bits);
                return to(v.op, ty, &if swap { [c, x] } else { [x, c] });
            }
        }
        (None, Some(y)) => {
            if let Some(c) = r.as_const(a) {
                let c = r.konst(ty, c ^ bits);
                return to(v.op, ty, &if swap { [y, c] } else { [c, y] });
            }
        }
        (None, None) => {}
    }
    Act::Keep
}

fn is_undef(r: &Rules, v: Value) -> bool {
    r.def(v).is_some_and(|d| d.op == Op::Undef)
}

fn select(r: &mut Rules, v: &View) -> Act {
    let (ty, [c, a, b]) = (v.ty, [v.args[0], v.args[1], v.args[2]]);
    if a == b || is_undef(r, b) {
        return Act::Value(a);
    }
    if is_undef(r, a) || is_undef(r, c) {
        return Act::Value(b);
    }
    if let Some(k) = r.as_const(c) {
        return Act::Value(if k != 0 { a } else { b });
    }
    if let (Some(x), Some(y)) = (r.as_const(a), r.as_const(b))
        && x == y
    {
        return Act::Value(a);
    }
    if let Some(n) = r.arg(c, Op::Not) {
        return to(Op::Select, ty, &[n, b, a]);
    }
    if ty == Type::Bool {
        match (r.as_const(a), r.as_const(b)) {
            (Some(x), Some(_)) => {
                return if x != 0 { Act::Value(c) } else { to(Op::Not, ty, &[c]) };
            }
            (Some(x), None) => {
                if x != 0 {
                    return to(Op::Or, ty, &[c, b]);
                }
                let n = r.op(Op::Not, ty, &[c]);
                return to(Op::And, ty, &[n, b]);
            }
            (None, Some(y)) => {
                if y == 0 {
                    return to(Op::And, ty, &[c, a]);
                }
                let n = r.op(Op::Not, ty, &[c]);
                return to(Op::Or, ty, &[n, a]);
            }
            _ => {}
        }
        // One arm says the opposite of the condition.
        if complement(r, c, b) {
            return to(Op::Or, ty, &[b, a]);
        }
        if complement(r, c, a) {
            return to(Op::And, ty, &[a, b]);
        }
        if a == c {
            return to(Op::Or, ty, &[c, b]);
        }
        if b == c {
            return to(Op::And, ty, &[c, a]);
        }
    }
    // A selection on the same condition inside.
    if let Some(d) = r.def(a)
        && d.op == Op::Select
        && d.args[0] == c
    {
        let x = d.args[1];
        return to(Op::Select, ty, &[c, x, b]);
    }
    if let Some(d) = r.def(b)
        && d.op == Op::Select
        && d.args[0] == c
    {
        let y = d.args[2];
        return to(Op::Select, ty, &[c, a, y]);
    }
    // Minimum and maximum of integers. Of floats only where NaN does not matter.
    if let Some(d) = r.def(c)
        && d.args.len() == 2
        && d.ty == ty
    {
        let (op, [x, y]) = (d.op, [d.args[0], d.args[1]]);
        let fast = v.flags.has(Flags::FAST);
        let pair = match op {
            Op::Slt | Op::Sle => Some((Op::Smin, Op::Smax)),
            Op::Ult | Op::Ule => Some((Op::Umin, Op::Umax)),
            Op::Flt | Op::Fle if fast => Some((Op::Fmin, Op::Fmax)),
            _ => None,
        };
        if let Some((min, max)) = pair {
            if [a, b] == [x, y] {
                return to(min, ty, &[a, b]);
            }
            if [b, a] == [x, y] {
                return to(max, ty, &[a, b]);
            }
        }
        // x == y ? x : y, either way round: on equal values the arms are the same (integers only).
        if matches!(op, Op::Ieq | Op::Ine) && ([a, b] == [x, y] || [a, b] == [y, x]) {
            return Act::Value(if op == Op::Ieq { b } else { a });
        }
    }
    Act::Keep
}

/// Exactly one of two conditions holds.
pub fn complement(r: &Rules, a: Value, b: Value) -> bool {
    if r.arg(a, Op::Not) == Some(b) || r.arg(b, Op::Not) == Some(a) {
        return true;
    }
    let (Some(x), Some(y)) = (r.def(a), r.def(b)) else { return false };
    if x.ty != y.ty || x.args.len() != 2 || y.args.len() != 2 {
        return false;
    }
    let swapped = x.args[0] == y.args[1] && x.args[1] == y.args[0];
    match (x.op, y.op) {
        (Op::Slt, Op::Sle) | (Op::Sle, Op::Slt) | (Op::Ult, Op::Ule) | (Op::Ule, Op::Ult) => swapped,
        (Op::Ieq, Op::Ine) | (Op::Ine, Op::Ieq) | (Op::Feq, Op::Fne) | (Op::Fne, Op::Feq) => {
            swapped || x.args == y.args
        }
        _ => false,
    }
}

fn convert(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let from = r.ty(a);
    match v.op {
        Op::Bitcast => {
            if from == ty {
                return Act::Value(a);
            }
            if let Some(x) = r.arg(a, Op::Bitcast) {
                return if r.ty(x) == ty { Act::Value(x) } else { to(Op::Bitcast, ty, &[x]) };
            }
        }
        Op::Trunc => {
            if let Some(x) = r.arg(a, Op::Trunc) {
                return to(Op::Trunc, ty, &[x]);
            }
            for op in [Op::Zext, Op::Sext] {
                if let Some(x) = r.arg(a, op) {
                    let t = r.ty(x);
                    return if t == ty {
                        Act::Value(x)
                    } else if t.bits() < ty.bits() {
                        to(op, ty, &[x])
                    } else {
                        to(Op::Trunc, ty, &[x])
                    };
                }
            }
            // A mask that keeps all the bits that stay.
            if let Some((x, c)) = r.with_const(a, Op::And)
                && c & ty.mask() == ty.mask()
            {
                return to(Op::Trunc, ty, &[x]);
            }
        }
        Op::Zext => {
            if let Some(x) = r.arg(a, Op::Zext) {
                return to(Op::Zext, ty, &[x]);
            }
            // The low bits of something of this type.
            if let Some(x) = r.arg(a, Op::Trunc)
                && r.ty(x) == ty
            {
                let m = r.konst(ty, from.mask());
                return to(Op::And, ty, &[x, m]);
            }
        }
        Op::Sext => {
            if let Some(x) = r.arg(a, Op::Sext) {
                return to(Op::Sext, ty, &[x]);
            }
            if from != Type::Bool && r.non_negative(a) {
                return to(Op::Zext, ty, &[a]);
            }
            if let Some(x) = r.arg(a, Op::Trunc)
                && r.ty(x) == ty
            {
                let n = r.konst(Type::I32, (ty.bits() - from.bits()) as u64);
                let up = r.op(Op::Shl, ty, &[x, n]);
                return to(Op::Ashr, ty, &[up, n]);
            }
        }
        Op::Ftosi | Op::Ftoui => {
            // They cut toward zero themselves.
            if let Some(x) = r.arg(a, Op::Ftrunc) {
                return to(v.op, ty, &[x]);
            }
        }
        Op::Fconv => {
            // Widened and back: the same but for NaN's bits.
            if from == ty {
                return Act::Value(a);
            }
            if let Some(x) = r.arg(a, Op::Fconv)
                && r.ty(x) == ty
                && ty.bits() < from.bits()
                && (v.flags.has(Flags::FAST) || super::float::canonical(r, x))
            {
                return Act::Value(x);
            }
        }
        _ => {}
    }
    Act::Keep
}
