//! Rules for integers and bit operations. All hold modulo the width.

use super::known::{max_of, sign};
use super::{Act, Rules, View, to};
use kempe_ir::eval::sign_extend;
use kempe_ir::*;

pub fn rule(r: &mut Rules, v: &View) -> Act {
    use Op::*;
    match v.op {
        Iadd => add(r, v),
        Isub => sub(r, v),
        Imul => mul(r, v),
        Ineg => neg(r, v),
        Umulhi if r.as_const(v.args[1]).is_some_and(|c| c <= 1) => Act::Const(0),
        Udiv | Umod => udiv(r, v),
        Sdiv | Srem | Smod => sdiv(r, v),
        Smin | Smax | Umin | Umax => min_max(r, v),
        And => and(r, v),
        Or => or(r, v),
        Xor => xor(r, v),
        Not => not(r, v),
        Shl | Lshr | Ashr => shift(r, v),
        BitExtractU | BitExtractS => extract(r, v),
        BitInsert => insert(r, v),
        _ => Act::Keep,
    }
}

fn add(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if let Some(c) = r.as_const(b) {
        if c == 0 {
            return Act::Value(a);
        }
        if let Some((x, c1)) = r.with_const(a, Op::Iadd) {
            let c = r.konst(ty, c.wrapping_add(c1));
            return to(Op::Iadd, ty, &[x, c]);
        }
        // (c1 - x) + c
        if let Some([k, x]) = r.args(a, Op::Isub)
            && let Some(c1) = r.as_const(k)
        {
            let c = r.konst(ty, c.wrapping_add(c1));
            return to(Op::Isub, ty, &[c, x]);
        }
        return Act::Keep;
    }
    for [a, b] in [[a, b], [b, a]] {
        if let Some(x) = r.arg(b, Op::Ineg) {
            return to(Op::Isub, ty, &[a, x]);
        }
        // (x - y) + y
        if let Some([x, y]) = r.args(a, Op::Isub)
            && y == b
        {
            return Act::Value(x);
        }
        // Constants move outward, where they meet others or the offset of a `lea`.
        if let Some((x, c)) = r.with_const(a, Op::Iadd) {
            let sum = r.op(Op::Iadd, ty, &[x, b]);
            let c = r.konst(ty, c);
            return to(Op::Iadd, ty, &[sum, c]);
        }
    }
    // Bits that never meet: or. (Not the other way round: `or` has no carries and more rules.)
    Act::Keep
}

fn sub(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        return Act::Const(0);
    }
    if let Some(c) = r.as_const(b) {
        let c = r.konst(ty, c.wrapping_neg());
        return to(Op::Iadd, ty, &[a, c]);
    }
    if let Some(c) = r.as_const(a) {
        if c == 0 {
            return to(Op::Ineg, ty, &[b]);
        }
        // c - (x + c1)
        if let Some((x, c1)) = r.with_const(b, Op::Iadd) {
            let c = r.konst(ty, c.wrapping_sub(c1));
            return to(Op::Isub, ty, &[c, x]);
        }
    }
    if let Some(x) = r.arg(b, Op::Ineg) {
        return to(Op::Iadd, ty, &[a, x]);
    }
    if let Some([x, y]) = r.args(a, Op::Iadd) {
        if y == b {
            return Act::Value(x);
        }
        if x == b {
            return Act::Value(y);
        }
    }
    if let Some([x, y]) = r.args(b, Op::Iadd)
        && (x == a || y == a)
    {
        return to(Op::Ineg, ty, &[if x == a { y } else { x }]);
    }
    // a - (a - y)
    if let Some([x, y]) = r.args(b, Op::Isub)
        && x == a
    {
        return Act::Value(y);
    }
    // x - (x & c)
    if let Some((x, c)) = r.with_const(b, Op::And)
        && x == a
    {
        let rest = r.konst(ty, !c);
        return to(Op::And, ty, &[a, rest]);
    }
    if let Some((x, c)) = r.with_const(a, Op::Iadd) {
        let diff = r.op(Op::Isub, ty, &[x, b]);
        let c = r.konst(ty, c);
        return to(Op::Iadd, ty, &[diff, c]);
    }
    if let Some((x, c)) = r.with_const(b, Op::Iadd) {
        let diff = r.op(Op::Isub, ty, &[a, x]);
        let c = r.konst(ty, c.wrapping_neg());
        return to(Op::Iadd, ty, &[diff, c]);
    }
    Act::Keep
}

fn neg(r: &mut Rules, v: &View) -> Act {
    if let Some(x) = r.arg(v.args[0], Op::Ineg) {
        return Act::Value(x);
    }
    if let Some([x, y]) = r.args(v.args[0], Op::Isub) {
        return to(Op::Isub, v.ty, &[y, x]);
    }
    Act::Keep
}

fn mul(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let Some(c) = r.as_const(v.args[1]) else {
        return Act::Keep;
    };
    if c == 0 {
        return Act::Const(0);
    }
    if c == 1 {
        return Act::Value(a);
    }
    if c == ty.mask() {
        return to(Op::Ineg, ty, &[a]);
    }
    if let Some((x, c1)) = r.with_const(a, Op::Imul) {
        let c = r.konst(ty, c.wrapping_mul(c1));
        return to(Op::Imul, ty, &[x, c]);
    }
    if let Some((x, n)) = r.with_const(a, Op::Shl) {
        let c = r.konst(ty, c << (n % ty.bits() as u64));
        return to(Op::Imul, ty, &[x, c]);
    }
    // (x + c1) * c: the constant moves outward.
    if let Some((x, c1)) = r.with_const(a, Op::Iadd) {
        let k = r.konst(ty, c);
        let p = r.op(Op::Imul, ty, &[x, k]);
        let k = r.konst(ty, c.wrapping_mul(c1));
        return to(Op::Iadd, ty, &[p, k]);
    }
    if c.is_power_of_two() {
        let n = r.konst(Type::I32, c.trailing_zeros() as u64);
        return to(Op::Shl, ty, &[a, n]);
    }
    Act::Keep
}

fn udiv(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let Some(c) = r.as_const(v.args[1]) else {
        return Act::Keep;
    };
    let div = v.op == Op::Udiv;
    if c == 1 {
        return if div { Act::Value(a) } else { Act::Const(0) };
    }
    if c == 0 {
        return Act::Keep;
    }
    if r.max(a) < c {
        return if div { Act::Const(0) } else { Act::Value(a) };
    }
    if c.is_power_of_two() {
        return if div {
            let n = r.konst(Type::I32, c.trailing_zeros() as u64);
            to(Op::Lshr, ty, &[a, n])
        } else {
            let m = r.konst(ty, c - 1);
            to(Op::And, ty, &[a, m])
        };
    }
    if let Some((factor, shift)) = reciprocal(ty, r.max(a), c) {
        let k = r.konst(ty, factor);
        let product = r.op(Op::Imul, ty, &[a, k]);
        let n = r.konst(Type::I32, shift as u64);
        if div {
            return to(Op::Lshr, ty, &[product, n]);
        }
        let quotient = r.op(Op::Lshr, ty, &[product, n]);
        let k = r.konst(ty, c);
        let whole = r.op(Op::Imul, ty, &[quotient, k]);
        return to(Op::Isub, ty, &[a, whole]);
    }
    // (x / c1) / c
    if div
        && let Some((x, c1)) = r.with_const(a, Op::Udiv)
        && let Some(cc) = c.checked_mul(c1).filter(|&cc| cc <= ty.mask() && cc != 0)
    {
        let c = r.konst(ty, cc);
        return to(Op::Udiv, ty, &[x, c]);
    }
    Act::Keep
}

/// Factor and shift such that `x * factor >> shift` is `x / c` for every `x` up to `max`, where the product fits 32
/// bits (Granlund & Montgomery, "Division by Invariant Integers using Multiplication", with the range of x known).
fn reciprocal(ty: Type, max: u64, c: u64) -> Option<(u64, u32)> {
    if ty != Type::I32 {
        return None;
    }
    for shift in 0..32 {
        let factor = (1u64 << shift) / c + 1;
        let error = factor * c - (1u64 << shift);
        if factor.checked_mul(max)? > ty.mask() {
            return None;
        }
        // x * factor = x * 2^shift / c + x * error / c: the second part must not reach the next whole number.
        if error.checked_mul(max)? < 1u64 << shift {
            return Some((factor, shift));
        }
    }
    None
}

fn sdiv(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let both = r.non_negative(a) && r.non_negative(v.args[1]);
    if both {
        let op = if v.op == Op::Sdiv { Op::Udiv } else { Op::Umod };
        return to(op, ty, &[a, v.args[1]]);
    }
    let Some(c) = r.as_const(v.args[1]) else {
        return Act::Keep;
    };
    let s = sign_extend(ty, c);
    if s == 1 {
        return if v.op == Op::Sdiv { Act::Value(a) } else { Act::Const(0) };
    }
    if s == -1 {
        return if v.op == Op::Sdiv { to(Op::Ineg, ty, &[a]) } else { Act::Const(0) };
    }
    if s <= 0 || !c.is_power_of_two() {
        return Act::Keep;
    }
    let k = c.trailing_zeros();
    if v.op == Op::Smod {
        let m = r.konst(ty, c - 1);
        return to(Op::And, ty, &[a, m]);
    }
    // Toward zero: add c - 1 to negative dividends first.
    let top = r.konst(Type::I32, ty.bits() as u64 - 1);
    let negative = r.op(Op::Ashr, ty, &[a, top]);
    let by = r.konst(Type::I32, (ty.bits() - k) as u64);
    let bias = r.op(Op::Lshr, ty, &[negative, by]);
    let sum = r.op(Op::Iadd, ty, &[a, bias]);
    if v.op == Op::Sdiv {
        let n = r.konst(Type::I32, k as u64);
        return to(Op::Ashr, ty, &[sum, n]);
    }
    let m = r.konst(ty, !(c - 1));
    let whole = r.op(Op::And, ty, &[sum, m]);
    to(Op::Isub, ty, &[a, whole])
}

fn min_max(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        return Act::Value(a);
    }
    let signed = matches!(v.op, Op::Smin | Op::Smax);
    let min = matches!(v.op, Op::Smin | Op::Umin);
    if signed && r.non_negative(a) && r.non_negative(b) {
        return to(if min { Op::Umin } else { Op::Umax }, ty, &[a, b]);
    }
    let Some(c) = r.as_const(b) else {
        return Act::Keep;
    };
    let (least, most) = if signed { (sign(ty), sign(ty) - 1) } else { (0, ty.mask()) };
    if c == if min { least } else { most } {
        return Act::Value(b);
    }
    if c == if min { most } else { least } {
        return Act::Value(a);
    }
    if !signed && r.max(a) <= c {
        return Act::Value(if min { a } else { b });
    }
    if signed && r.non_negative(a) {
        if sign_extend(ty, c) < 0 {
            return Act::Value(if min { b } else { a });
        }
        if r.max(a) <= c {
            return Act::Value(if min { a } else { b });
        }
    }
    if let Some((x, c1)) = r.with_const(a, v.op) {
        let first = if signed { sign_extend(ty, c) < sign_extend(ty, c1) } else { c < c1 };
        let c = r.konst(ty, if first == min { c } else { c1 });
        return to(v.op, ty, &[x, c]);
    }
    Act::Keep
}

/// Every bit of one is the opposite of the other's.
fn complementary(r: &Rules, ty: Type, a: Value, b: Value) -> bool {
    if ty == Type::Bool {
        return super::logic::complement(r, a, b);
    }
    r.arg(a, Op::Not) == Some(b) || r.arg(b, Op::Not) == Some(a)
}

fn and(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        return Act::Value(a);
    }
    if let Some(c) = r.as_const(b) {
        if c == 0 {
            return Act::Const(0);
        }
        // Every bit that the mask clears is known to be zero.
        if !c & ty.mask() & !r.zero(a) == 0 {
            return Act::Value(a);
        }
        if let Some((x, c1)) = r.with_const(a, Op::And) {
            let c = r.konst(ty, c & c1);
            return to(Op::And, ty, &[x, c]);
        }
        for op in [Op::Or, Op::Xor] {
            // The other constant only touches bits that the mask clears.
            if let Some((x, c1)) = r.with_const(a, op)
                && c1 & c == 0
            {
                return to(Op::And, ty, &[x, b]);
            }
        }
        return Act::Keep;
    }
    if max_of(r.zero(a) | r.zero(b), ty.mask()) == 0 {
        return Act::Const(0);
    }
    for [a, b] in [[a, b], [b, a]] {
        if complementary(r, ty, a, b) {
            return Act::Const(0);
        }
        // a and (not a or y)
        if let Some([x, y]) = r.args(a, Op::Or) {
            for [x, y] in [[x, y], [y, x]] {
                if complementary(r, ty, x, b) {
                    return to(Op::And, ty, &[b, y]);
                }
            }
        }
        if r.args(a, Op::And).is_some_and(|x| x.contains(&b)) {
            return Act::Value(a);
        }
        if r.args(a, Op::Or).is_some_and(|x| x.contains(&b)) {
            return Act::Value(b);
        }
    }
    Act::Keep
}

fn or(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        return Act::Value(a);
    }
    if let Some(c) = r.as_const(b) {
        if c == 0 {
            return Act::Value(a);
        }
        if c == ty.mask() {
            return Act::Const(c);
        }
        if let Some((x, c1)) = r.with_const(a, Op::Or) {
            let c = r.konst(ty, c | c1);
            return to(Op::Or, ty, &[x, c]);
        }
        return Act::Keep;
    }
    for [a, b] in [[a, b], [b, a]] {
        if complementary(r, ty, a, b) {
            return Act::Const(ty.mask());
        }
        // a or (not a and y)
        if let Some([x, y]) = r.args(a, Op::And) {
            for [x, y] in [[x, y], [y, x]] {
                if complementary(r, ty, x, b) {
                    return to(Op::Or, ty, &[b, y]);
                }
            }
        }
        if r.args(a, Op::Or).is_some_and(|x| x.contains(&b)) {
            return Act::Value(a);
        }
        if r.args(a, Op::And).is_some_and(|x| x.contains(&b)) {
            return Act::Value(b);
        }
    }
    Act::Keep
}

fn xor(r: &mut Rules, v: &View) -> Act {
    let (ty, [a, b]) = (v.ty, [v.args[0], v.args[1]]);
    if a == b {
        return Act::Const(0);
    }
    if let Some(c) = r.as_const(b) {
        if c == 0 {
            return Act::Value(a);
        }
        if c == ty.mask() {
            return to(Op::Not, ty, &[a]);
        }
        if let Some((x, c1)) = r.with_const(a, Op::Xor) {
            let c = r.konst(ty, c ^ c1);
            return to(Op::Xor, ty, &[x, c]);
        }
        return Act::Keep;
    }
    for [a, b] in [[a, b], [b, a]] {
        if let Some([x, y]) = r.args(a, Op::Xor) {
            if x == b {
                return Act::Value(y);
            }
            if y == b {
                return Act::Value(x);
            }
        }
    }
    Act::Keep
}

fn not(r: &mut Rules, v: &View) -> Act {
    let a = v.args[0];
    if let Some(x) = r.arg(a, Op::Not) {
        return Act::Value(x);
    }
    // The opposite comparison; ordered float comparisons have none.
    if v.ty == Type::Bool
        && let Some(d) = r.def(a)
    {
        let (op, swap) = match d.op {
            Op::Ieq => (Op::Ine, false),
            Op::Ine => (Op::Ieq, false),
            Op::Feq => (Op::Fne, false),
            Op::Fne => (Op::Feq, false),
            Op::Slt => (Op::Sle, true),
            Op::Sle => (Op::Slt, true),
            Op::Ult => (Op::Ule, true),
            Op::Ule => (Op::Ult, true),
            _ => return Act::Keep,
        };
        let (ty, [x, y]) = (d.ty, [d.args[0], d.args[1]]);
        return to(op, ty, &if swap { [y, x] } else { [x, y] });
    }
    Act::Keep
}

fn shift(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let bits = ty.bits() as u64;
    if r.as_const(a) == Some(0) {
        return Act::Const(0);
    }
    let Some(n) = r.as_const(v.args[1]) else {
        // The count is taken modulo the width: a mask that keeps those bits is nothing.
        if let Some((x, c)) = r.with_const(v.args[1], Op::And)
            && c & (bits - 1) == bits - 1
        {
            return to(v.op, ty, &[a, x]);
        }
        return Act::Keep;
    };
    if n >= bits {
        let n = r.konst(Type::I32, n % bits);
        return to(v.op, ty, &[a, n]);
    }
    if n == 0 {
        return Act::Value(a);
    }
    if v.op == Op::Ashr && r.non_negative(a) {
        return to(Op::Lshr, ty, &[a, v.args[1]]);
    }
    // Twice in the same direction.
    if let Some((x, n1)) = r.with_const(a, v.op) {
        let sum = n + n1 % bits;
        if sum < bits {
            let n = r.konst(Type::I32, sum);
            return to(v.op, ty, &[x, n]);
        }
        if v.op != Op::Ashr {
            return Act::Const(0);
        }
        let n = r.konst(Type::I32, bits - 1);
        return to(Op::Ashr, ty, &[x, n]);
    }
    match v.op {
        Op::Shl => {
            for op in [Op::Lshr, Op::Ashr] {
                if let Some((x, n1)) = r.with_const(a, op)
                    && n1 % bits == n
                {
                    let m = r.konst(ty, ty.mask() << n);
                    return to(Op::And, ty, &[x, m]);
                }
            }
            // (x + c) << n: the constant moves outward.
            if let Some((x, c)) = r.with_const(a, Op::Iadd) {
                let s = r.op(Op::Shl, ty, &[x, v.args[1]]);
                let c = r.konst(ty, c << n);
                return to(Op::Iadd, ty, &[s, c]);
            }
            if let Some((x, c)) = r.with_const(a, Op::Imul) {
                let c = r.konst(ty, c << n);
                return to(Op::Imul, ty, &[x, c]);
            }
        }
        Op::Lshr => {
            if let Some((x, n1)) = r.with_const(a, Op::Shl)
                && n1 % bits == n
            {
                let m = r.konst(ty, ty.mask() >> n);
                return to(Op::And, ty, &[x, m]);
            }
            // The sign bit of a sign.
            if n == bits - 1
                && let Some((x, _)) = r.with_const(a, Op::Ashr)
            {
                return to(Op::Lshr, ty, &[x, v.args[1]]);
            }
        }
        _ => {}
    }
    Act::Keep
}

fn extract(r: &mut Rules, v: &View) -> Act {
    let (ty, a) = (v.ty, v.args[0]);
    let (Some(offset), Some(count)) = (r.as_const(v.args[1]), r.as_const(v.args[2])) else {
        return Act::Keep;
    };
    let bits = ty.bits() as u64;
    if count == 0 {
        return Act::Const(0);
    }
    if offset >= bits || offset + count > bits {
        return Act::Keep;
    }
    if v.op == Op::BitExtractU {
        let n = r.konst(Type::I32, offset);
        let x = r.op(Op::Lshr, ty, &[a, n]);
        let m = r.konst(ty, ty.mask() >> (bits - count));
        return to(Op::And, ty, &[x, m]);
    }
    let up = r.konst(Type::I32, bits - offset - count);
    let x = r.op(Op::Shl, ty, &[a, up]);
    let n = r.konst(Type::I32, bits - count);
    to(Op::Ashr, ty, &[x, n])
}

fn insert(r: &mut Rules, v: &View) -> Act {
    let (ty, [base, new]) = (v.ty, [v.args[0], v.args[1]]);
    let (Some(offset), Some(count)) = (r.as_const(v.args[2]), r.as_const(v.args[3])) else {
        return Act::Keep;
    };
    let bits = ty.bits() as u64;
    if count == 0 {
        return Act::Value(base);
    }
    if offset >= bits || offset + count > bits {
        return Act::Keep;
    }
    if count == bits {
        return Act::Value(new);
    }
    let field = ty.mask() >> (bits - count);
    let hole = r.konst(ty, !(field << offset));
    let rest = r.op(Op::And, ty, &[base, hole]);
    let field = r.konst(ty, field);
    let low = r.op(Op::And, ty, &[new, field]);
    let n = r.konst(Type::I32, offset);
    let placed = r.op(Op::Shl, ty, &[low, n]);
    to(Op::Or, ty, &[rest, placed])
}

#[cfg(test)]
mod tests {
    use super::reciprocal;
    use kempe_ir::Type;

    #[test]
    fn reciprocals_divide() {
        let mut found = 0;
        for max in [1, 7, 255, 1023, 0xffff, 0xff_ffff] {
            for c in (2..300).chain([1000, 4097, 65535, 99_999]) {
                let Some((factor, shift)) = reciprocal(Type::I32, max, c) else { continue };
                found += 1;
                let check = |x: u64| {
                    let product = x * factor;
                    assert!(product <= u32::MAX as u64, "{x} * {factor}");
                    assert_eq!(product >> shift, x / c, "{x} / {c} up to {max}");
                };
                // Where the quotient changes, and both ends.
                let steps = (max / c).min(20_000);
                (1..=steps).flat_map(|k| [k * c - 1, k * c]).for_each(check);
                (0..=max.min(300)).chain(max - max.min(300)..=max).for_each(check);
            }
        }
        assert!(found > 800, "{found}");
    }
}
