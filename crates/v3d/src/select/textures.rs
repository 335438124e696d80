//! Accesses of the texture unit: lookups through samplers, and what they share with texel accesses (reference 12.2).
//!
//! P1 of a lookup always stands in the uniform stream, because the state of the sampler is in it. Results are asked for in
//! 32 bits, a word a channel, and only those that somebody wants. In fragment shaders whole quads take part, so that
//! differences are those of all four lanes and helpers get texels; elsewhere only lanes that run do.
//!
//! The level of detail: `tmus` takes it from the quad, with a bias in `tmub`; `tmuslod` from `tmub`; a cube has one start
//! only and a bit in P2 instead. Gathers have that bit too, and no operand: the first level.

use super::SelectError;
use super::emit::Emit;
use super::images::coordinates;
use crate::mops::{Coordinates, MInst, Start, TextureOp};
use crate::regs;
use kempe_ir::image::Dim;
use kempe_ir::sample::{Level, Lookup, SampleImm};
use kempe_ir::{Imm, Inst, Res, Stage, UniformWord, Value};
use kempe_mir::UniformSource;
use kempe_ra::VReg;
use smallvec::SmallVec;

/// P1: results are 32 bits wide; coordinates are texels; only lanes that take part.
pub(super) const WIDE: u32 = 1 << 0;
const PIXELS: u32 = 1 << 1;
pub(super) const PER_PIXEL: u32 = 1 << 2;

/// P2: no level from the quad; place of a gather's component, gather; place of a constant offset; question for the level.
const NO_AUTO_LOD: u32 = 1 << 1;
const COMPONENT: u32 = 5;
const GATHER: u32 = 1 << 7;
const OFFSET: u32 = 8;
/// Place of the operation in P2, and the one that is none.
pub(super) const OPERATION: u32 = 20;
const REGULAR: u32 = 15 << OPERATION;
const QUERY: u32 = 1 << 24;

/// Registers that a thread's share of the queue holds with the fewest threads (rule 55).
const MOST_WRITES: usize = 8;

/// What a lookup says in P2.
fn second(imm: &SampleImm, cube: bool) -> u32 {
    let mut p2 = REGULAR;
    if matches!(imm.level, Level::Explicit | Level::Base) && (cube || imm.level == Level::Base) {
        p2 |= NO_AUTO_LOD;
    }
    match imm.lookup {
        Lookup::Color => {}
        Lookup::Gather(component) => p2 |= GATHER | u32::from(component & 3) << COMPONENT,
        Lookup::Level => p2 |= QUERY,
    }
    for (k, &t) in imm.texels.iter().enumerate() {
        p2 |= (t as u32 & 15) << (OFFSET + 4 * k as u32);
    }
    p2
}

/// An access before it is known which of its results are wanted.
pub(super) struct Access<'a> {
    pub res: Res,
    pub element: u32,
    /// Without P0 and results.
    pub op: TextureOp,
    /// S, the other coordinates, data.
    pub words: &'a [Value],
    /// Result words that it could have, by their bit in P0.
    pub bits: &'a [u32],
    pub results: &'a [Value],
}

impl Emit<'_> {
    /// P1's bit for lanes that only help their quad: an access without effect in a fragment shader is done for them too.
    pub(super) fn lanes_of_reads(&self) -> u32 {
        if self.p.stage == Stage::Fragment { 0 } else { PER_PIXEL }
    }

    pub(super) fn lookup(&mut self, i: Inst) {
        let d = self.data(i);
        let Imm::Sample(imm) = d.imm else {
            self.unsupported(i);
            return;
        };
        let info = self.p.images.get(imm.res.0 as usize).copied().flatten();
        let (Some((_, info)), true) = (info, imm.machine && imm.level != Level::Gradient) else {
            self.unsupported(i);
            return;
        };
        let mut args = d.args.clone();
        let results = d.results.clone();
        let mut elements = [0; 2];
        for (to, there) in elements.iter_mut().zip([imm.element, imm.sampler_element]) {
            if there {
                match args.first().and_then(|&e| self.p.constant(self.p.root(e))) {
                    Some(e) => *to = e,
                    None => {
                        self.unsupported(i);
                        return;
                    }
                }
                args.remove(0);
            }
        }
        let cube = info.dim == Dim::Cube;
        let operand = matches!(imm.level, Level::Bias | Level::Explicit);
        let at = Coordinates {
            r: matches!(info.dim, Dim::D3 | Dim::Cube),
            i: info.arrayed,
            dref: imm.dref,
            off: imm.offset,
            ..coordinates(&info, operand)
        };
        if args.len() != at.count() {
            self.unsupported(i);
            return;
        }
        // The reference stands before the level in the IR, its register behind.
        if imm.dref && operand {
            let n = 1 + usize::from(at.t) + usize::from(at.r) + usize::from(at.i);
            args.swap(n, n + 1);
        }
        let start = match imm.level {
            _ if cube => Start::Cube,
            Level::Explicit => Start::Level,
            _ => Start::Quad,
        };
        let (sampler, sampler_element) = match imm.sampler {
            Some(s) => (s, elements[1]),
            None => (imm.res, elements[0]),
        };
        let p1 = WIDE | if imm.pixels { PIXELS } else { 0 } | self.lanes_of_reads();
        let p2 = second(&imm, cube);
        let op = TextureOp {
            p1: Some(UniformSource::Word(
                UniformWord::SamplerState { res: sampler, element: sampler_element },
                p1,
            )),
            p2: (p2 != REGULAR).then_some(p2),
            start,
            coordinates: at,
            ..TextureOp::default()
        };
        let bits: SmallVec<[u32; 4]> = match imm.lookup {
            Lookup::Color => (0..4).filter(|k| imm.mask >> k & 1 != 0).collect(),
            Lookup::Gather(_) => (0..4).collect(),
            Lookup::Level => (0..2).collect(),
        };
        let (res, element) = (imm.res, elements[0]);
        self.texture(i, Access { res, element, op, words: &args, bits: &bits, results: &results });
    }

    pub(super) fn texture(&mut self, i: Inst, a: Access) {
        // Rule 55: register writes of one operation.
        let most = 16 / self.threads as usize;
        if a.words.len() > most {
            let n = a.words.len();
            let message = match n {
                ..=MOST_WRITES => {
                    format!(
                        "an image access of {n} register writes needs 2 threads (at most {most} with {})",
                        self.threads
                    )
                }
                _ => format!("an image access of {n} register writes: at most {MOST_WRITES} are possible"),
            };
            let loc = self.data(i).loc;
            self.fail(SelectError { message, loc, internal: false });
            return;
        }
        // Result words that somebody wants; an access for its own sake takes its first.
        let mut mask = 0;
        let mut wanted: SmallVec<[Value; 4]> = SmallVec::new();
        for (&bit, &r) in a.bits.iter().zip(a.results) {
            if self.p.is_live(r) {
                mask |= 1 << bit;
                wanted.push(r);
            }
        }
        let words: SmallVec<[VReg; 8]> = a.words.iter().map(|&v| self.reg(v)).collect();
        let (test, mut uses) = self.guard();
        uses.extend_from_slice(&words);
        let mut defs: SmallVec<[VReg; 4]> = wanted.iter().map(|&r| self.fresh_for(regs::ANY, r)).collect();
        if defs.is_empty()
            && let Some(bit) = a.bits.first()
        {
            mask = 1 << bit;
            defs.push(self.fresh(regs::ANY));
        }
        let word = UniformWord::TextureState { res: a.res, element: a.element };
        let op = TextureOp { p0: UniformSource::Word(word, mask), results: defs.len() as u8, ..a.op };
        self.push(MInst::Texture { op, test }, &defs, &uses, None, regs::SWITCH);
        self.results(&wanted, &defs);
    }
}
