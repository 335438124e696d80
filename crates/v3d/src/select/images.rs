//! Texel accesses of the texture unit (reference 12.2).
//!
//! Which words an access takes: P0 names the texture state and the wanted result words; P1 is left out when its default
//! (16-bit results, only lanes that take part) is right; P2 only says what an atomic does. Stores of formats with 32-bit
//! components ask for 32-bit results although they have none, as the existing driver does.

use super::SelectError;
use super::emit::Emit;
use crate::mops::{Coordinates, MInst, MemClass, TextureOp};
use crate::regs;
use kempe_ir::image::Dim;
use kempe_ir::{AtomicOp, ImageInfo, Imm, Inst, Op, ResKind, TexelForm, UniformWord, Value};
use kempe_mir::UniformSource;
use kempe_ra::VReg;
use smallvec::SmallVec;

/// P1: results are 32 bits wide; only lanes that take part.
const WIDE: u32 = 1 << 0;
const PER_PIXEL: u32 = 1 << 2;
/// Place of the operation in P2.
const OPERATION: u32 = 20;

/// The registers of the coordinates behind S.
fn coordinates(info: &ImageInfo, lod: bool) -> Coordinates {
    let two = matches!(info.dim, Dim::D2 | Dim::D3 | Dim::Cube);
    let layer = info.dim == Dim::Cube || info.arrayed;
    Coordinates { t: two, r: info.dim == Dim::D3, i: layer, b: lod }
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
        AtomicOp::Load | AtomicOp::Store | AtomicOp::Fadd => return None,
    })
}

impl Emit<'_> {
    pub(super) fn image(&mut self, i: Inst) {
        let d = self.data(i);
        let (op, loc) = (d.op, d.loc);
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
        let Some((place, data)) = args.split_at_checked(at.count()) else {
            self.unsupported(i);
            return;
        };
        // Rule 55: register writes of one operation.
        if place.len() + data.len() > 16 / self.threads as usize {
            let message = format!(
                "an image access of {} register writes needs 2 threads (at most {} with {})",
                place.len() + data.len(),
                16 / self.threads,
                self.threads
            );
            self.fail(SelectError { message, loc, internal: false });
            return;
        }
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
        // Result words that somebody wants; an access for its own sake takes its first.
        let bits: SmallVec<[u32; 4]> = match op {
            Op::ImageLoad => (0..4).filter(|k| imm.mask >> k & 1 != 0).collect(),
            Op::ImageAtomic => SmallVec::from_slice(&[0]),
            _ => SmallVec::new(),
        };
        let mut mask = 0;
        let mut wanted: SmallVec<[Value; 4]> = SmallVec::new();
        for (&bit, &r) in bits.iter().zip(&results) {
            if self.p.is_live(r) {
                mask |= 1 << bit;
                wanted.push(r);
            }
        }
        let first = bits.first().copied();
        let words: SmallVec<[VReg; 8]> = place.iter().chain(data).map(|&v| self.reg(v)).collect();
        let (test, mut uses) = self.guard();
        uses.extend_from_slice(&words);
        let mut defs: SmallVec<[VReg; 4]> = wanted.iter().map(|&r| self.fresh_for(regs::ANY, r)).collect();
        if defs.is_empty()
            && let Some(bit) = first
        {
            mask = 1 << bit;
            defs.push(self.fresh(regs::ANY));
        }
        let writes = op != Op::ImageLoad;
        let class = if kind == ResKind::Image { MemClass::IMAGE } else { MemClass::READ_ONLY };
        let texture = TextureOp {
            p0: UniformSource::Word(UniformWord::TextureState { res: imm.res, element }, mask),
            p1: (wide || p2.is_some()).then_some(if wide { WIDE | PER_PIXEL } else { PER_PIXEL }),
            p2,
            coordinates: at,
            data: data.len() as u8,
            results: defs.len() as u8,
            writes,
            class,
        };
        self.push(MInst::Texture { op: texture, test }, &defs, &uses, None, regs::SWITCH);
        self.results(&wanted, &defs);
    }
}
