//! Following how far other right implementations may be from our values: the growth rules of `docs/bounds.md`.
//!
//! Every value of a lane and every piece of memory carries a [`Shadow`]. This is a running error analysis (Wilkinson,
//! "Rounding errors in algebraic processes", 1963) with a third state for values that are not a number within a bound:
//! *undecided*. Bounds are computed in f64; their own rounding is far below the half ulp that every rule adds on top.

use crate::bounds::{local, max_finite, min_normal, ulp};
use crate::eval;
use crate::module::{InstData, ReduceImm};
use crate::ops::Op;
use crate::types::Type;
use std::collections::BTreeMap;

/// What is known about a value on the other side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shadow {
    /// The same bits.
    Exact,
    /// The bits of a float within this distance (compared as a number, so 0 is for zeros of unknown sign).
    Float(f64),
    /// Two halves in an `i32`, each within a distance.
    Halves(f64, f64),
    /// Anything.
    Undecided,
}

impl Shadow {
    /// The bound of a float.
    fn error(self) -> Option<f64> {
        match self {
            Shadow::Exact => Some(0.0),
            Shadow::Float(e) => Some(e),
            Shadow::Halves(..) | Shadow::Undecided => None,
        }
    }

    /// The bits are the same, but perhaps for the sign of a zero.
    pub(super) fn is_exact(self) -> bool {
        self.error() == Some(0.0)
    }
}

/// An operand: bits, type, and what is known.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub bits: u64,
    pub ty: Type,
    pub shadow: Shadow,
}

/// The number of a float value.
fn number(ty: Type, bits: u64) -> f64 {
    match ty {
        Type::F16 => eval::f16_to_f64(bits as u16),
        Type::F64 => f64::from_bits(bits),
        _ => f32::from_bits(bits as u32) as f64,
    }
}

/// A float result with an error: what may be flushed is added, infinities and NaN decide nothing.
fn float(ty: Type, v: f64, e: f64) -> Shadow {
    if !v.is_finite() || !e.is_finite() || v.abs() + e > max_finite(ty) {
        return Shadow::Undecided;
    }
    let e = flush(ty, v, e);
    if e == 0.0 && v != 0.0 { Shadow::Exact } else { Shadow::Float(e) }
}

/// Adds the smallest normal number when the value may be a denormal.
fn flush(ty: Type, v: f64, e: f64) -> f64 {
    let exact_zero = v == 0.0 && e == 0.0;
    if !exact_zero && v.abs() - e < min_normal(ty) { e + min_normal(ty) } else { e }
}

/// What is known about the result of an instruction of one lane. `contracted`: a product that another implementation may
/// fuse into a sum.
pub(super) fn pure(inst: &InstData, contracted: bool, args: &[Known], result: u64) -> Shadow {
    let ty = inst.ty;
    let all_exact = || args.iter().all(|a| a.shadow.is_exact());
    let exact_or_not = |exact: bool| if exact { Shadow::Exact } else { Shadow::Undecided };
    match inst.op {
        Op::Select => return select(ty, args),
        Op::Bitcast | Op::Fneg | Op::Fabs => return args[0].shadow,
        Op::And | Op::Or => {
            // A same operand that decides alone.
            let absorbing = if inst.op == Op::And { 0 } else { ty.mask() };
            let decided = args.iter().any(|a| a.shadow == Shadow::Exact && a.bits == absorbing);
            return exact_or_not(decided || all_exact());
        }
        Op::Feq | Op::Fne | Op::Flt | Op::Fle => {
            let Some([(a, ea), (b, eb)]) = two(args) else { return Shadow::Undecided };
            let e = ea + eb;
            return exact_or_not(!a.is_nan() && !b.is_nan() && (e == 0.0 || (a - b).abs() > e));
        }
        Op::Ftosi | Op::Ftoui => {
            let Some((a, e)) = one(args) else { return Shadow::Undecided };
            let bits = ty.bits() as i32 - (inst.op == Op::Ftosi) as i32;
            let high = 2f64.powi(bits);
            let low = if inst.op == Op::Ftosi { -high } else { 0.0 };
            let (x, y) = ((a - e).trunc(), (a + e).trunc());
            return exact_or_not(x == y && x >= low && x < high);
        }
        Op::PackHalf => {
            let Some([(a, ea), (b, eb)]) = two(args) else { return Shadow::Undecided };
            let half = |bits: u64, x: f64, e: f64| {
                let h = eval::f16_to_f64(bits as u16);
                float(Type::F16, h, round_apart(Type::F16, x, e)).error()
            };
            return match (half(result, a, ea), half(result >> 16, b, eb)) {
                (Some(x), Some(y)) if x == 0.0 && y == 0.0 && a != 0.0 && b != 0.0 => Shadow::Exact,
                (Some(x), Some(y)) => Shadow::Halves(x, y),
                _ => Shadow::Undecided,
            };
        }
        Op::UnpackHalfLo | Op::UnpackHalfHi => {
            let v = number(Type::F32, result);
            let e = match (args[0].shadow, inst.op) {
                (Shadow::Halves(lo, _), Op::UnpackHalfLo) => lo,
                (Shadow::Halves(_, hi), _) => hi,
                (s, _) if s.is_exact() => 0.0,
                _ => return Shadow::Undecided,
            };
            return float(Type::F32, v, flush(Type::F16, v, e));
        }
        Op::Sitof | Op::Uitof => return exact_or_not(all_exact()),
        _ if any_bits(inst.op, ty, args) => return Shadow::Undecided,
        _ if !ty.is_float() => return exact_or_not(all_exact()),
        _ => {}
    }
    match arithmetic(inst.op, ty, contracted, args, result) {
        Some((v, e)) => float(ty, v, e),
        None => Shadow::Undecided,
    }
}

/// The source languages leave the result of an integer operation open for these operands.
fn any_bits(op: Op, ty: Type, args: &[Known]) -> bool {
    let bits = |n: usize| args.get(n).map_or(0, |a: &Known| a.bits);
    let width = ty.bits() as u64;
    match op {
        Op::Udiv | Op::Umod => bits(1) == 0,
        Op::Sdiv | Op::Srem | Op::Smod => {
            let least = ty.mask() ^ (ty.mask() >> 1);
            bits(1) == 0 || (bits(0) == least && bits(1) == ty.mask())
        }
        Op::Shl | Op::Lshr | Op::Ashr => bits(1) >= width,
        Op::BitInsert => bits(2) + bits(3) > width,
        Op::BitExtractS | Op::BitExtractU => bits(1) + bits(2) > width,
        _ => false,
    }
}

/// An error of values that were the same, or may have been rounded apart.
fn round_apart(ty: Type, v: f64, e: f64) -> f64 {
    if e == 0.0 { 0.0 } else { e + ulp(ty, v.abs() + e) }
}

/// Number and error of the first operand, denormals flushed.
fn one(args: &[Known]) -> Option<(f64, f64)> {
    let a = args.first()?;
    let (v, e) = (number(a.ty, a.bits), a.shadow.error()?);
    Some((v, flush(a.ty, v, e)))
}

fn two(args: &[Known]) -> Option<[(f64, f64); 2]> {
    Some([one(args)?, one(args.get(1..)?)?])
}

/// Result and error of float operations.
fn arithmetic(op: Op, ty: Type, contracted: bool, args: &[Known], result: u64) -> Option<(f64, f64)> {
    let v = number(ty, result);
    let (a, ea) = one(args)?;
    let e = match op {
        Op::Fadd | Op::Fsub => {
            let [_, (_, eb)] = two(args)?;
            round_apart(ty, v, ea + eb)
        }
        Op::Fmul => {
            let [_, (b, eb)] = two(args)?;
            let e = round_apart(ty, v, product(a, ea, b, eb));
            if contracted && e == 0.0 && v != 0.0 { ulp(ty, v) } else { e }
        }
        Op::Fma => {
            let [_, (b, eb)] = two(args)?;
            let (_, ec) = one(&args[2..])?;
            let p = a * b;
            let e = product(a, ea, b, eb) + if p == 0.0 { 0.0 } else { ulp(ty, p) };
            round_apart(ty, v, e + ec)
        }
        Op::Fdiv => {
            let [_, (b, eb)] = two(args)?;
            quotient(ty, v, ea, b, eb)?
        }
        Op::Frem | Op::Fmod => {
            let [_, (b, eb)] = two(args)?;
            let q = a / b;
            let eq = quotient(ty, q, ea, b, eb)?;
            let whole = if op == Op::Frem { f64::trunc } else { f64::floor };
            let w = whole(q);
            let ew = (whole(q - eq) - w).abs().max((whole(q + eq) - w).abs());
            let p = b * w;
            let ep = round_apart(ty, p, product(b, eb, w, ew)) + if p == 0.0 { 0.0 } else { ulp(ty, p) };
            round_apart(ty, v, ea + ep)
        }
        Op::Fsqrt | Op::Frsqrt | Op::Fexp2 | Op::Flog2 => {
            let f: fn(f64) -> f64 = match op {
                Op::Fsqrt => f64::sqrt,
                Op::Frsqrt => |x| 1.0 / x.sqrt(),
                Op::Fexp2 => libm::exp2,
                _ => libm::log2,
            };
            spread(f, a, ea)? + local(op, ty, a, 0.0, v)?
        }
        Op::Fsin | Op::Fcos => ea + local(op, ty, a, 0.0, v)?,
        Op::Ffloor => spread(f64::floor, a, ea)?,
        Op::Fceil => spread(f64::ceil, a, ea)?,
        Op::Ftrunc => spread(f64::trunc, a, ea)?,
        Op::Fround => spread(f64::round_ties_even, a, ea)?,
        Op::Fconv => round_apart(ty, v, ea),
        Op::Fmin | Op::Fmax => {
            let [_, (b, eb)] = two(args)?;
            if a.is_nan() || b.is_nan() {
                return None;
            }
            // Only an operand that can be the result counts.
            let (near, far) = (ea + eb, (a - b).abs());
            if far > near { if v == a { ea } else { eb } } else { ea.max(eb) }
        }
        // The special function unit is a machine's matter.
        _ => return None,
    };
    Some((v, e))
}

fn product(a: f64, ea: f64, b: f64, eb: f64) -> f64 {
    // 0 * infinity must not make a NaN of an exact zero.
    let times = |x: f64, e: f64| if e == 0.0 { 0.0 } else { x.abs() * e };
    times(a, eb) + times(b, ea) + ea * eb
}

fn quotient(ty: Type, v: f64, ea: f64, b: f64, eb: f64) -> Option<f64> {
    if eb >= b.abs() {
        return None;
    }
    let moved = if ea == 0.0 && eb == 0.0 { 0.0 } else { (ea + v.abs() * eb) / (b.abs() - eb) };
    Some(moved + local(Op::Fdiv, ty, 0.0, b, v)?)
}

/// Largest distance of a monotonic function at the ends of the interval from its value in the middle.
fn spread(f: fn(f64) -> f64, a: f64, e: f64) -> Option<f64> {
    if e == 0.0 {
        return Some(0.0);
    }
    let v = f(a);
    let d = (f(a - e) - v).abs().max((f(a + e) - v).abs());
    d.is_finite().then_some(d)
}

fn select(ty: Type, args: &[Known]) -> Shadow {
    let [c, a, b] = args else { return Shadow::Undecided };
    if c.shadow == Shadow::Exact {
        return if c.bits & 1 != 0 { a.shadow } else { b.shadow };
    }
    if a.bits == b.bits && a.shadow == Shadow::Exact && b.shadow == Shadow::Exact {
        return Shadow::Exact;
    }
    match (a.shadow.error(), b.shadow.error()) {
        (Some(x), Some(y)) if ty.is_float() => {
            let d = (number(ty, a.bits) - number(ty, b.bits)).abs();
            if d.is_finite() { Shadow::Float(d + x.max(y)) } else { Shadow::Undecided }
        }
        _ => Shadow::Undecided,
    }
}

/// A difference of neighbours in a quad, which another implementation may take from the other two lanes.
pub(super) fn derivative(ty: Type, own: [Known; 2], other: [Known; 2]) -> Shadow {
    let difference = |[a, b]: [Known; 2]| {
        let [(a, ea), (b, eb)] = two(&[a, b])?;
        Some((b - a, ea + eb))
    };
    match (difference(own), difference(other)) {
        (Some((v, e)), Some((w, f))) => {
            let far = (v - w).abs();
            float(ty, v, round_apart(ty, v, if far == 0.0 && e == 0.0 { 0.0 } else { e.max(far + f) }))
        }
        _ => Shadow::Undecided,
    }
}

/// A reduction or scan over lanes: one answer for all of them, with the largest bound that any of them has.
pub(super) fn reduce(imm: &ReduceImm, ty: Type, lanes: &[Known]) -> Shadow {
    let errors: Option<Vec<f64>> = lanes.iter().map(|l| l.shadow.error()).collect();
    let Some(errors) = errors else { return Shadow::Undecided };
    let exact = errors.iter().all(|&e| e == 0.0);
    match imm.op {
        _ if !ty.is_float() => {
            if exact {
                Shadow::Exact
            } else {
                Shadow::Undecided
            }
        }
        Op::Fmin | Op::Fmax => Shadow::Float(errors.iter().fold(0.0, |m: f64, &e| m.max(e))),
        Op::Fadd => {
            let sum: f64 = lanes.iter().map(|l| number(ty, l.bits).abs()).sum();
            let e = errors.iter().sum::<f64>() + lanes.len() as f64 * ulp(ty, sum);
            if e.is_finite() { Shadow::Float(e) } else { Shadow::Undecided }
        }
        _ => Shadow::Undecided,
    }
}

/// What is known about pieces of memory that are not exact, by byte offset: `(bytes, shadow)`.
#[derive(Clone, Default, Debug)]
pub struct Pieces {
    map: BTreeMap<usize, (u32, Shadow)>,
}

/// No access is wider than this, so a piece that reaches a byte starts at most this far before it.
const WIDEST: usize = 8;

impl Pieces {
    /// The pieces in order: offset, bytes, shadow.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u32, Shadow)> {
        self.map.iter().map(|(&o, &(n, s))| (o, n, s))
    }

    pub(super) fn clear(&mut self) {
        self.map.clear();
    }

    fn overlapping(&self, offset: usize, bytes: u32) -> impl Iterator<Item = (usize, u32, Shadow)> + '_ {
        let first = offset.saturating_sub(WIDEST - 1);
        self.map
            .range(first..offset + bytes as usize)
            .map(|(&o, &(n, s))| (o, n, s))
            .filter(move |&(o, n, _)| o + n as usize > offset)
    }

    pub(super) fn read(&self, offset: usize, bytes: u32) -> Shadow {
        if self.map.is_empty() {
            return Shadow::Exact;
        }
        match self.map.get(&offset) {
            Some(&(n, s)) if n == bytes => s,
            _ if self.overlapping(offset, bytes).next().is_some() => {
                // Two halves that were stored one by one and are read as a word.
                match (self.map.get(&offset), self.map.get(&(offset + 2)), bytes) {
                    (Some(&(2, Shadow::Float(a))), Some(&(2, Shadow::Float(b))), 4) => Shadow::Halves(a, b),
                    _ => Shadow::Undecided,
                }
            }
            _ => Shadow::Exact,
        }
    }

    pub(super) fn write(&mut self, offset: usize, bytes: u32, shadow: Shadow) {
        if !self.map.is_empty() {
            let old: Vec<(usize, u32, Shadow)> = self.overlapping(offset, bytes).collect();
            for (o, n, s) in old {
                self.map.remove(&o);
                // What a narrower write leaves of an older piece.
                let (end, old_end) = (offset + bytes as usize, o + n as usize);
                let rest = match s {
                    Shadow::Halves(a, b) if n == 4 && bytes == 2 => {
                        let (at, e) = if offset == o { (o + 2, b) } else { (o, a) };
                        vec![(at, 2, Shadow::Float(e))]
                    }
                    _ => {
                        let mut v = Vec::new();
                        if o < offset {
                            v.push((o, (offset - o) as u32, Shadow::Undecided));
                        }
                        if old_end > end {
                            v.push((end, (old_end - end) as u32, Shadow::Undecided));
                        }
                        v
                    }
                };
                for (at, n, s) in rest {
                    self.map.insert(at, (n, s));
                }
            }
        }
        if shadow != Shadow::Exact {
            self.map.insert(offset, (bytes, shadow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{Flags, Imm, Loc};
    use smallvec::SmallVec;

    fn inst(op: Op, ty: Type) -> InstData {
        InstData {
            op,
            ty,
            flags: Flags::NONE,
            imm: Imm::None,
            args: SmallVec::new(),
            results: SmallVec::new(),
            loc: Loc(0),
        }
    }

    fn known(v: f32, e: f64) -> Known {
        let shadow = if e == 0.0 { Shadow::Exact } else { Shadow::Float(e) };
        Known { bits: v.to_bits() as u64, ty: Type::F32, shadow }
    }

    fn apply(op: Op, ty: Type, args: &[Known]) -> Shadow {
        let bits: Vec<u64> = args.iter().map(|a| a.bits).collect();
        let r = eval::eval(op, ty, args[0].ty, Imm::None, &bits).unwrap();
        pure(&inst(op, ty), false, args, r)
    }

    #[test]
    fn sums_and_products() {
        let f = Type::F32;
        assert_eq!(apply(Op::Fadd, f, &[known(1.0, 0.0), known(2.0, 0.0)]), Shadow::Exact);
        let u = 2f64.powi(-23);
        assert_eq!(apply(Op::Fadd, f, &[known(1.0, u), known(2.0, 0.0)]), Shadow::Float(3.0 * u));
        assert_eq!(
            apply(Op::Fmul, f, &[known(4.0, u), known(2.0, u)]),
            Shadow::Float(6.0 * u + u * u + 8.0 * u)
        );
        assert_eq!(apply(Op::Fsub, f, &[known(1.0, 0.0), known(1.0, 0.0)]), Shadow::Float(0.0));
        assert_eq!(apply(Op::Fmul, f, &[known(f32::MAX, 0.0), known(2.0, 0.0)]), Shadow::Undecided);
        let p = pure(&inst(Op::Fmul, f), true, &[known(3.0, 0.0), known(0.5, 0.0)], 1.5f32.to_bits() as u64);
        assert_eq!(p, Shadow::Float(u));
    }

    #[test]
    fn decisions() {
        let less = |a: Known, b: Known| apply(Op::Flt, Type::F32, &[a, b]);
        assert_eq!(less(known(1.0, 0.1), known(1.3, 0.1)), Shadow::Exact);
        assert_eq!(less(known(1.0, 0.1), known(1.15, 0.1)), Shadow::Undecided);
        assert_eq!(less(known(1.0, 0.0), known(1.0, 0.0)), Shadow::Exact);
        assert_eq!(less(known(f32::NAN, 0.0), known(1.0, 0.0)), Shadow::Undecided);
        let to_int = |v: f32, e: f64| apply(Op::Ftosi, Type::I32, &[known(v, e)]);
        assert_eq!(to_int(2.5, 0.4), Shadow::Exact);
        assert_eq!(to_int(2.5, 0.6), Shadow::Undecided);
        assert_eq!(to_int(3e9, 0.0), Shadow::Undecided);
        assert_eq!(to_int(-2147483648.0, 0.0), Shadow::Exact);
        assert_eq!(apply(Op::Ffloor, Type::F32, &[known(2.5, 0.4)]), Shadow::Exact);
        assert_eq!(apply(Op::Ffloor, Type::F32, &[known(2.5, 0.6)]), Shadow::Float(1.0));
        let c = Known { bits: 1, ty: Type::Bool, shadow: Shadow::Undecided };
        assert_eq!(
            apply(Op::Select, Type::F32, &[c, known(1.0, 0.0), known(1.5, 0.25)]),
            Shadow::Float(0.75)
        );
    }

    #[test]
    fn open_results() {
        let int = |v: u32| Known { bits: v as u64, ty: Type::I32, shadow: Shadow::Exact };
        let two = |op: Op, a: u32, b: u32| apply(op, Type::I32, &[int(a), int(b)]);
        assert_eq!(two(Op::Udiv, 7, 2), Shadow::Exact);
        assert_eq!(two(Op::Udiv, 7, 0), Shadow::Undecided);
        assert_eq!(two(Op::Smod, 0x8000_0000, u32::MAX), Shadow::Undecided);
        assert_eq!(two(Op::Shl, 1, 31), Shadow::Exact);
        assert_eq!(two(Op::Shl, 1, 32), Shadow::Undecided);
        let extract = |o: u32, n: u32| apply(Op::BitExtractU, Type::I32, &[int(5), int(o), int(n)]);
        assert_eq!(extract(8, 24), Shadow::Exact);
        assert_eq!(extract(8, 25), Shadow::Undecided);
    }

    #[test]
    fn halves() {
        let s = apply(Op::PackHalf, Type::I32, &[known(1.0, 0.0), known(2.0, 0.125)]);
        assert_eq!(s, Shadow::Halves(0.0, 0.125 + 2f64.powi(-9)));
        let packed = eval::pack_half(1f32.to_bits(), 2f32.to_bits()) as u64;
        let k = Known { bits: packed, ty: Type::I32, shadow: s };
        assert_eq!(apply(Op::UnpackHalfLo, Type::F32, &[k]), Shadow::Exact);
        assert_eq!(apply(Op::UnpackHalfHi, Type::F32, &[k]), Shadow::Float(0.125 + 2f64.powi(-9)));
    }

    #[test]
    fn memory_remembers_pieces() {
        let mut p = Pieces::default();
        p.write(8, 4, Shadow::Float(0.5));
        assert_eq!(p.read(8, 4), Shadow::Float(0.5));
        assert_eq!(p.read(4, 4), Shadow::Exact);
        assert_eq!(p.read(8, 2), Shadow::Undecided);
        assert_eq!(p.read(4, 8), Shadow::Undecided);
        p.write(10, 1, Shadow::Exact);
        assert_eq!(p.read(8, 2), Shadow::Undecided);
        assert_eq!(p.read(11, 1), Shadow::Undecided);
        assert_eq!(p.read(10, 1), Shadow::Exact);
        p.write(8, 4, Shadow::Exact);
        assert_eq!(p.iter().count(), 0);
        p.write(0, 4, Shadow::Halves(0.25, 0.5));
        p.write(2, 2, Shadow::Exact);
        assert_eq!(p.read(0, 2), Shadow::Float(0.25));
        p.write(2, 2, Shadow::Float(1.0));
        assert_eq!(p.read(0, 4), Shadow::Halves(0.25, 1.0));
    }
}
