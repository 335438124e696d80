//! Lookups through samplers: into the form of [`SampleImm`] for machines, whose operands are what is written to the texture
//! unit (reference 12.2).
//!
//! * Directions into a cube are divided by their largest magnitude, as the unit expects.
//! * Layers are rounded here; the unit limits them above. Constant offsets go into the immediate, others into a word.
//! * Gradients become a level: half the logarithm of the larger sum of squares, which is
//!   [`kempe_ir::sample::level_of`] without its roots.
//! * Where there are no quads, levels that would come from them are the first.
//!
//! Left out: variable offsets along three axes (the reference names fields for two), constant ones beyond four bits.

use super::elements::Element;
use super::*;
use kempe_ir::Flags;
use kempe_ir::image::{Axis, Dim};
use kempe_ir::sample::{Level, Lookup, SampleImm, coordinates};
use smallvec::smallvec;

/// Level of detail of a place that does not move.
const STILL: f32 = -126.0;

/// A lookup with its operands.
struct Access {
    imm: SampleImm,
    ty: Type,
    results: SmallVec<[Type; 4]>,
    at: SmallVec<[Value; 3]>,
    layer: Option<Value>,
    reference: Option<Value>,
    level: Detail,
    offset: Option<Value>,
}

/// Level of detail.
enum Detail {
    None,
    Operand(Value),
    /// Differences along x and y, with the factor of a cube.
    Gradient([SmallVec<[Value; 3]>; 2], Option<Value>),
}

impl Lower<'_> {
    pub fn sample(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Sample(mut imm) = inst.imm else { return self.error("a lookup without its immediate") };
        let Some(info) = self.m.resources.get(imm.res).and_then(|r| r.image) else {
            return self.error(format!("{} is not an image", imm.res));
        };
        if imm.machine {
            return self.error("a lookup in the form for machines already");
        }
        let mut args: SmallVec<[Value; 16]> = SmallVec::new();
        for n in 0..inst.args.len() {
            args.push(self.arg_one(inst, n)?);
        }
        if args.len() != imm.operands(&info).len() {
            return self.error("a lookup lacks an operand");
        }
        let mut rest = args.into_iter();
        let mut some = |there: bool| if there { rest.next() } else { None };
        let (element, sampler_element) = (some(imm.element), some(imm.sampler_element));
        let own = coordinates(info.dim);
        let mut at: SmallVec<[Value; 3]> = (0..own).filter_map(|_| some(true)).collect();
        let (layer, reference) = (some(info.arrayed), some(imm.dref));
        let operand = some(matches!(imm.level, Level::Bias | Level::Explicit));
        let gradient = imm.level == Level::Gradient;
        let [dx, dy, offsets] = [gradient, gradient, imm.offset]
            .map(|there| (0..own).filter_map(|_| some(there)).collect::<SmallVec<[Value; 3]>>());
        let element = self.element(imm.res, element)?;
        let sampler_element = match imm.sampler {
            Some(s) => self.element(s, sampler_element)?,
            None => Element::Known(0),
        };
        let factor = (info.dim == Dim::Cube).then(|| self.project(&mut at));
        let layer = layer.map(|l| self.layer(l));
        let offset = self.offset(&mut imm, &offsets)?;
        let quads = self.m.stage == Stage::Fragment;
        let level = match (imm.lookup, imm.level, operand) {
            // A gather reads the first level, whatever stands there.
            (Lookup::Gather(_), ..) => {
                imm.level = Level::Base;
                Detail::None
            }
            (_, Level::Gradient, _) => {
                imm.level = Level::Explicit;
                Detail::Gradient([dx, dy], factor)
            }
            (_, Level::Implicit, _) if quads => Detail::None,
            (_, Level::Implicit | Level::Base, _) => {
                imm.level = Level::Explicit;
                Detail::Operand(self.e.f(0.0))
            }
            (_, Level::Bias | Level::Explicit, Some(v)) => {
                if !quads {
                    imm.level = Level::Explicit;
                }
                Detail::Operand(v)
            }
            (_, Level::Bias | Level::Explicit, None) => {
                return self.error("a lookup lacks its level of detail");
            }
        };
        imm.machine = true;
        let results = inst.results.iter().map(|&r| self.src.ty(r)).collect();
        let access = Access { imm, ty: inst.ty, results, at, layer, reference, level, offset };
        let values =
            self.choose([element, sampler_element], &access.results, |l, pair| Ok(l.look_up(&access, pair)))?;
        for (&r, v) in inst.results.iter().zip(values) {
            self.set_one(r, v);
        }
        Ok(())
    }

    /// Divides a direction by its largest magnitude; gives the factor.
    fn project(&mut self, at: &mut [Value]) -> Value {
        let mut largest = None;
        for &c in at.iter() {
            let c = self.e.float(Op::Fabs, &[c]);
            largest = Some(match largest {
                Some(l) => self.e.float(Op::Fmax, &[l, c]),
                None => c,
            });
        }
        let largest = largest.unwrap_or_else(|| self.e.f(1.0));
        let factor = self.e.float(Op::RcpApprox, &[largest]);
        for c in at {
            *c = self.e.fmul(*c, factor);
        }
        factor
    }

    fn layer(&mut self, layer: Value) -> Value {
        let rounded = self.e.float(Op::Fround, &[layer]);
        let (n, zero) = (self.e.int(Op::Ftosi, &[rounded]), self.e.i(0));
        self.e.int(Op::Smax, &[n, zero])
    }

    /// The offset in the immediate or, if it varies, as a word.
    fn offset(&mut self, imm: &mut SampleImm, offsets: &[Value]) -> Result<Option<Value>> {
        imm.offset = false;
        let constants: Option<SmallVec<[u32; 3]>> = offsets.iter().map(|&v| self.e.value_of(v)).collect();
        if let Some(list) = constants {
            for (to, n) in imm.texels.iter_mut().zip(list) {
                match n as i32 {
                    n @ -8..8 => *to = n as i8,
                    n => return self.error(format!("an offset of {n} texels: a lookup takes -8 to 7")),
                }
            }
            return Ok(None);
        }
        if offsets.len() > 2 {
            return self.error("a variable offset along three axes is not supported in a lookup");
        }
        imm.offset = true;
        let mut word = self.e.i(0);
        for (k, &v) in offsets.iter().enumerate() {
            let field = self.e.and_c(v, 15);
            let field = self.e.shl_c(field, 4 * k as u32);
            word = self.e.or(word, field);
        }
        Ok(Some(word))
    }

    fn look_up(&mut self, a: &Access, [element, sampler]: [u32; 2]) -> SmallVec<[Value; 4]> {
        let imm = SampleImm { element: element != 0, sampler_element: sampler != 0, ..a.imm };
        let mut args: SmallVec<[Value; 12]> = SmallVec::new();
        for n in [element, sampler].into_iter().filter(|&n| n != 0) {
            args.push(self.e.i(n));
        }
        args.extend_from_slice(&a.at);
        args.extend(a.layer);
        args.extend(a.reference);
        match &a.level {
            Detail::None => {}
            Detail::Operand(v) => args.push(*v),
            Detail::Gradient(differences, factor) => {
                let level = self.level(a, element, differences, *factor);
                args.push(level);
            }
        }
        args.extend(a.offset);
        let implicit = matches!(imm.level, Level::Implicit | Level::Bias);
        let op = if implicit { Op::SampleImplicit } else { Op::Sample };
        let i = self.e.inst(op, a.ty, Flags::NONE, Imm::Sample(imm), &args, &a.results);
        self.e.func.insts[i].results.iter().copied().collect()
    }

    /// The level that belongs to gradients.
    fn level(
        &mut self,
        a: &Access,
        element: u32,
        differences: &[SmallVec<[Value; 3]>; 2],
        factor: Option<Value>,
    ) -> Value {
        let size = |l: &mut Self, axis: Axis| {
            let word = l.e.uniform(UniformWord::ImageSize { res: a.imm.res, element, axis });
            l.e.convert(Op::Uitof, Type::F32, word)
        };
        let axes = [Axis::Width, Axis::Height, Axis::Depth];
        let scales: SmallVec<[Value; 3]> = match factor {
            _ if a.imm.pixels => SmallVec::new(),
            // A face spans -1..1 of the other two components.
            Some(factor) => {
                let (width, half) = (size(self, Axis::Width), self.e.f(0.5));
                let width = self.e.fmul(width, half);
                smallvec![self.e.fmul(width, factor); 3]
            }
            None => axes.iter().take(a.at.len()).map(|&axis| size(self, axis)).collect(),
        };
        let mut largest = None;
        for list in differences {
            let mut sum = None;
            for (k, &d) in list.iter().enumerate() {
                let texels = match scales.get(k) {
                    Some(&scale) => self.e.fmul(d, scale),
                    None => d,
                };
                let square = self.e.fmul(texels, texels);
                sum = Some(match sum {
                    Some(s) => self.e.fadd(s, square),
                    None => square,
                });
            }
            let Some(sum) = sum else { continue };
            largest = Some(match largest {
                Some(l) => self.e.float(Op::Fmax, &[l, sum]),
                None => sum,
            });
        }
        let largest = largest.unwrap_or_else(|| self.e.f(0.0));
        let logarithm = self.e.float(Op::Log2Approx, &[largest]);
        let (half, still) = (self.e.f(0.5), self.e.f(STILL));
        let level = self.e.fmul(logarithm, half);
        self.e.float(Op::Fmax, &[level, still])
    }
}
