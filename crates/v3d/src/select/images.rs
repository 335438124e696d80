//! Texel accesses of the texture unit (reference 12.2).
//!
//! Which words an access takes: P0 names the texture state and the wanted result words; P1 is left out when its default
//! (16-bit results, only lanes that take part) is right, which it never is for a load in a fragment shader, where helpers want
//! texels too; P2 only says what an atomic does. Stores of formats with 32-bit
//! components ask for 32-bit results although they have none, as the existing driver does.

use super::emit::Emit;
use super::textures::{Access, OPERATION, PER_PIXEL, WIDE};
use crate::mops::{Coordinates, MemClass, TextureOp};
use kempe_ir::image::Dim;
use kempe_ir::{AtomicOp, ImageInfo, Imm, Inst, Op, ResKind, TexelForm};
use kempe_mir::UniformSource;
use smallvec::SmallVec;

/// The registers of the coordinates behind S.
pub(super) fn coordinates(info: &ImageInfo, lod: bool) -> Coordinates {
    let two = matches!(info.dim, Dim::D2 | Dim::D3 | Dim::Cube);
    let layer = info.dim == Dim::Cube || info.arrayed;
    Coordinates { t: two, r: info.dim == Dim::D3, i: layer, b: lod, ..Coordinates::default() }
}

/// Operation codes of atomics (reference 12.2).
fn code(op: AtomicOp) -> Option<u32> {
    Some(match op {
        AtomicOp::Add => 0,
        AtomicOp::Sub => 1,
        AtomicOp::Exchange => 2,
        AtomicOp::CompareExchange => 3,
        AtomicOp::Umin => 4,
        AtomicOp::Umax => 5,
        AtomicOp::Smin => 6,
        AtomicOp::Smax => 7,
        AtomicOp::And => 8,
        AtomicOp::Or => 9,
        AtomicOp::Xor => 10,
        AtomicOp::Load | AtomicOp::Store => return None,
        AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax => return None,
    })
}

impl Emit<'_> {
    pub(super) fn image(&mut self, i: Inst) {
        let d = self.data(i);
        let op = d.op;
        let Imm::Image(imm) = d.imm else {
            self.unsupported(i);
            return;
        };
        let Some(&Some((kind, info))) = self.p.images.get(imm.res.0 as usize) else {
            self.unsupported(i);
            return;
        };
        let mut args = d.args.clone();
        let results = d.results.clone();
        let mut element = 0;
        if imm.element {
            match args.first().and_then(|&e| self.p.constant(self.p.root(e))) {
                Some(e) => element = e,
                None => {
                    self.unsupported(i);
                    return;
                }
            }
            args.remove(0);
        }
        let at = coordinates(&info, imm.lod);
        let Some((_, data)) = args.split_at_checked(at.count()) else {
            self.unsupported(i);
            return;
        };
        let wide = match op {
            Op::ImageLoad => imm.form == TexelForm::Color,
            Op::ImageStore => info.storage_format().bits()[0] == 32,
            _ => true,
        };
        let p2 = match (op, imm.atomic) {
            (Op::ImageAtomic, Some(what)) => match code(what) {
                Some(code) => Some(code << OPERATION),
                None => {
                    self.unsupported(i);
                    return;
                }
            },
            _ => None,
        };
        let bits: SmallVec<[u32; 4]> = match op {
            Op::ImageLoad => (0..4).filter(|k| imm.mask >> k & 1 != 0).collect(),
            Op::ImageAtomic => SmallVec::from_slice(&[0]),
            _ => SmallVec::new(),
        };
        let writes = op != Op::ImageLoad;
        let p1 = if wide { WIDE } else { 0 } | if writes { PER_PIXEL } else { self.lanes_of_reads() };
        let texture = TextureOp {
            p1: (p1 != PER_PIXEL || p2.is_some()).then_some(UniformSource::Const(p1)),
            p2,
            coordinates: at,
            data: data.len() as u8,
            writes,
            class: if kind == ResKind::Image { MemClass::IMAGE } else { MemClass::READ_ONLY },
            ..TextureOp::default()
        };
        let (res, op) = (imm.res, texture);
        self.texture(i, Access { res, element, op, words: &args, bits: &bits, results: &results });
    }
}
