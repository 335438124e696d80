//! Addresses: what an access gets from a chain of `lea`s.
//!
//! A device access computes base + (ext64(index) << shift) in 64 bits, the shift being log2 of the element size and up to 2
//! more (reference section 6). The IR counts bytes from the start of a buffer modulo 2^32. With T that byte offset and an
//! element of 2^e bytes, the index for a total shift of u = e + s must be T / 2^u exactly, as no bit beyond the 32nd may come
//! out of the shift:
//!
//! * T = sum of v_i * c_i + K with all c_i and K multiples of 2^u: the index is the sum of v_i * (c_i / 2^u) + K / 2^u modulo
//!   2^(32 - u). It is equal to that sum modulo 2^32 wherever the sum is known to be below 2^(32 - u); else the upper u bits
//!   are masked off, one operation. Multiplications of the source wrap at 2^32, and the optimiser folds them into scales
//!   (exact modulo 2^32), so a scale alone proves nothing.
//! * otherwise T is summed up in bytes and shifted right by e: an access is aligned, so nothing is lost.
//!
//! An access within a buffer has 0 <= T < 2^31 (buffers are smaller), so zero-extension is right; what reaches outside is as
//! undefined as it is in the source. Negative indices only occur inside of sums, which are taken modulo 2^32.
//!
//! Rules 1 to 9 of reference section 6.1 and 6.2 are cases of this: 1, 7: one term; 2, 5, 9: the constant; 8: scales that keep
//! a factor; 3, 4 do not occur, because offsets have 32 bits here; 6: the byte sum.
//!
//! Threadgroup memory takes 16 bits of index and a 16-bit base; there the index modulo 2^16 is all that counts. Private
//! memory is counted in bytes.

use kempe_ir::{Flags, Imm, LeaImm, Op, Space, Type, Value};
use kempe_words::Words;
use smallvec::SmallVec;

/// The shift that an index may get beyond the element size.
pub const MAX_EXTRA_SHIFT: u32 = 2;

/// A pointer taken apart: where it starts, and the byte offset as a sum.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// What is no `lea`.
    pub root: Value,
    pub space: Space,
    /// Values with their scales.
    terms: SmallVec<[(Value, u32); 4]>,
    offset: u32,
}

/// Whether an access carries its whole address calculation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    Whole,
    Computed,
}

impl Parts {
    pub fn of(w: &Words, pointer: Value) -> Option<Parts> {
        let Type::Ptr(space) = w.e.func.ty(pointer) else { return None };
        let mut parts = Parts { root: pointer, space, terms: SmallVec::new(), offset: 0 };
        loop {
            let Some(def) = w.e.func.def_inst(parts.root) else { return Some(parts) };
            let def = &w.e.func.insts[def];
            let (Op::Lea, Imm::Lea(l)) = (def.op, def.imm) else { return Some(parts) };
            parts.offset = parts.offset.wrapping_add(l.offset as u32);
            if let Some(&index) = def.args.get(1) {
                parts.add(w, index, l.scale);
            }
            parts.root = def.args[0];
        }
    }

    fn add(&mut self, w: &Words, index: Value, scale: u32) {
        match w.e.value_of(index) {
            Some(c) => self.offset = self.offset.wrapping_add(c.wrapping_mul(scale)),
            None if scale == 0 => {}
            None => match self.terms.iter_mut().find(|(v, _)| *v == index) {
                Some((_, s)) => *s = s.wrapping_add(scale),
                None => self.terms.push((index, scale)),
            },
        }
        self.terms.retain(|(_, scale)| *scale != 0);
    }

    pub fn plus(&self, bytes: u32) -> Parts {
        Parts { offset: self.offset.wrapping_add(bytes), ..self.clone() }
    }

    /// The byte offset, if it is a constant.
    pub fn constant(&self) -> Option<u32> {
        self.terms.is_empty().then_some(self.offset)
    }

    /// Low bits of the byte offset that are certainly 0.
    pub fn trailing(&self, w: &Words) -> u32 {
        let terms =
            self.terms.iter().map(|&(v, scale)| w.e.known(v).zeros.trailing_ones() + scale.trailing_zeros());
        terms.chain([self.offset.trailing_zeros()]).min().unwrap_or(32).min(32)
    }

    /// The sum divided by 2^u, all of whose scales are multiples of that.
    fn sum(&self, w: &mut Words, u: u32) -> Value {
        let mut sum = None;
        for &(v, scale) in &self.terms {
            let part = w.e.mul_c(v, scale >> u);
            sum = Some(match sum {
                Some(sum) => w.e.add(sum, part),
                None => part,
            });
        }
        let zero = w.e.i(0);
        w.e.add_c(sum.unwrap_or(zero), self.offset >> u)
    }

    /// A pointer in the form that selection takes for elements of 2^e bytes: the root and an offset, or the root and an index
    /// with a scale of the element size times 1 to 2^`extra`. `plain`: by the
    /// byte sum, whatever the scales are.
    pub fn pointer(&self, w: &mut Words, e: u32, extra: u32, plain: bool) -> (Value, Carried) {
        let ty = Type::Ptr(self.space);
        if self.terms.is_empty() {
            if self.offset == 0 {
                return (self.root, Carried::Whole);
            }
            let imm = Imm::Lea(LeaImm { scale: 0, offset: self.offset as i32 });
            return (w.e.one(Op::Lea, ty, Flags::NONE, imm, &[self.root]), Carried::Whole);
        }
        let common = self.terms.iter().map(|t| t.1).chain([self.offset]).map(u32::trailing_zeros).min();
        let common = common.unwrap_or(0);
        let (u, index, carried) = if common >= e && !plain {
            let u = common.min(e + extra);
            let sum = self.sum(w, u);
            let bits = 32 - u;
            let fits = self.space == Space::Shared || w.e.known(sum).width() <= bits;
            let index = if fits { sum } else { w.e.zext(sum, bits) };
            let whole = fits && matches!(self.terms[..], [(_, scale)] if scale >> u == 1) && self.offset == 0;
            (u, index, if whole { Carried::Whole } else { Carried::Computed })
        } else {
            let sum = self.sum(w, 0);
            (e, w.e.lshr_c(sum, e), Carried::Computed)
        };
        let imm = Imm::Lea(LeaImm { scale: 1 << u, offset: 0 });
        (w.e.one(Op::Lea, ty, Flags::NONE, imm, &[self.root, index]), carried)
    }
}
