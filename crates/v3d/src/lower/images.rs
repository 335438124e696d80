//! Images: colours to texel words, loads as the texture unit gives them, sizes from the driver.
//!
//! The texture unit converts what it loads (32-bit mode: one word a channel; 16-bit floats come as pairs of halves, which
//! loses nothing), but stores words that are texels already (reference 12.2). Each conversion here computes exactly what
//! [`kempe_ir::image::Format::encode`] says.

use super::elements::Element;
use super::*;
use kempe_ir::image::{Axis, Encoding, Format, ImageInfo};
use kempe_ir::{AtomicOp, Flags, ImageImm, ResKind, TexelForm};
use smallvec::smallvec;

/// An access with its operands.
struct Access {
    imm: ImageImm,
    info: ImageInfo,
    kind: ResKind,
    element: u32,
    /// Coordinates, and the level of detail if there is one.
    place: SmallVec<[Value; 4]>,
    data: SmallVec<[Value; 4]>,
}

impl Lower<'_> {
    pub fn image(&mut self, inst: &InstData) -> Result<()> {
        let (mut a, element) = self.image_access(inst)?;
        let types: SmallVec<[Type; 4]> = inst.results.iter().map(|&r| self.src.ty(r)).collect();
        let values = self.choose([element, Element::Known(0)], &types, |l, [element, _]| {
            a.element = element;
            l.one_image(inst, &a)?;
            inst.results.iter().map(|&r| l.one(r)).collect()
        })?;
        for (&r, v) in inst.results.iter().zip(values) {
            self.set_one(r, v);
        }
        Ok(())
    }

    /// An access with an element that is known.
    fn one_image(&mut self, inst: &InstData, a: &Access) -> Result<()> {
        match inst.op {
            Op::ImageSize => {
                for (&axis, &r) in a.info.axes().iter().zip(&inst.results) {
                    let size = self.image_size(a, axis);
                    self.set_one(r, size);
                }
                Ok(())
            }
            Op::ImageLevels => {
                let r = self.result(inst)?;
                let levels = self.image_size(a, Axis::Levels);
                self.set_one(r, levels);
                Ok(())
            }
            Op::ImageLoad => self.image_load(inst, a),
            Op::ImageStore => {
                self.image_store(a);
                Ok(())
            }
            _ => self.image_atomic(inst, a),
        }
    }

    fn image_access(&mut self, inst: &InstData) -> Result<(Access, Element)> {
        let Imm::Image(imm) = inst.imm else { return self.error("an image access without its immediate") };
        let Some((kind, info)) = self.m.resources.get(imm.res).and_then(|r| Some((r.kind, r.image?))) else {
            return self.error(format!("{} is not an image", imm.res));
        };
        let mut args: SmallVec<[Value; 8]> = SmallVec::new();
        for n in 0..inst.args.len() {
            args.push(self.arg_one(inst, n)?);
        }
        let mut rest = args.into_iter();
        let index = if imm.element { rest.next() } else { None };
        let element = self.element(imm.res, index)?;
        let access = !matches!(inst.op, Op::ImageSize | Op::ImageLevels);
        let count = if access { info.coordinates() } else { 0 };
        let mut place: SmallVec<[Value; 4]> = rest.by_ref().take(count).collect();
        let mut imm = imm;
        if imm.lod
            && let Some(lod) = rest.next()
        {
            // Level 0 is what an access without one means.
            imm.lod = self.e.value_of(lod) != Some(0);
            place.extend(imm.lod.then_some(lod));
        }
        Ok((Access { imm, info, kind, element: 0, place, data: rest.collect() }, element))
    }

    /// A size that the driver supplies, at the level of detail of the access.
    fn image_size(&mut self, a: &Access, axis: Axis) -> Value {
        let size = self.e.uniform(UniformWord::ImageSize { res: a.imm.res, element: a.element, axis });
        match a.place.last() {
            Some(&lod) if a.imm.lod && axis.shrinks() => {
                let (size, one) = (self.e.lshr(size, lod), self.e.i(1));
                self.e.int(Op::Umax, &[size, one])
            }
            _ => size,
        }
    }

    /// Makes an access with an element that is known.
    fn image_inst(
        &mut self,
        op: Op,
        ty: Type,
        a: &Access,
        imm: ImageImm,
        data: &[Value],
        results: &[Type],
    ) -> Inst {
        let imm = ImageImm { element: a.element != 0, ..imm };
        let mut args: SmallVec<[Value; 8]> = SmallVec::new();
        if imm.element {
            args.push(self.e.i(a.element));
        }
        args.extend_from_slice(&a.place);
        args.extend_from_slice(data);
        self.e.inst(op, ty, Flags::NONE, Imm::Image(imm), &args, results)
    }

    fn image_load(&mut self, inst: &InstData, a: &Access) -> Result<()> {
        // What a texture holds is not known here.
        let format = (a.kind == ResKind::Image).then(|| a.info.storage_format());
        let has = format.map_or(4, |f| f.bits().len());
        let halves = format.is_some_and(|f| f.encoding() == Encoding::Float && f.bits()[0] == 16);
        let wanted: SmallVec<[usize; 4]> = (0..4).filter(|k| a.imm.mask >> k & 1 != 0).collect();
        let mask = wanted
            .iter()
            .filter(|&&k| k < has)
            .fold(0, |m, &k| m | if halves { 1 << (k / 2) } else { 1 << k });
        let component = a.info.component.ty();
        let mut words: [Option<Value>; 4] = [None; 4];
        if mask != 0 {
            let form = if halves { TexelForm::Halves } else { TexelForm::Color };
            let ty = if halves { Type::I32 } else { component };
            let imm = ImageImm { form, mask, ..a.imm };
            let types = [ty; 4];
            let n = (mask as u32).count_ones() as usize;
            let i = self.image_inst(Op::ImageLoad, ty, a, imm, &[], &types[..n]);
            let mut results = self.e.func.insts[i].results.clone().into_iter();
            for (k, w) in words.iter_mut().enumerate() {
                if mask >> k & 1 != 0 {
                    *w = results.next();
                }
            }
        }
        for (k, &r) in wanted.into_iter().zip(&inst.results) {
            let v = match (k < has, halves) {
                (true, true) => words[k / 2].map(|w| {
                    let op = if k % 2 == 0 { Op::UnpackHalfLo } else { Op::UnpackHalfHi };
                    self.e.float(op, &[w])
                }),
                (true, false) => words[k],
                // Components that the format does not have: 0, 0, 0, 1.
                _ => Some(match component {
                    Type::F32 => self.e.f(if k == 3 { 1.0 } else { 0.0 }),
                    _ => self.e.i((k == 3) as u32),
                }),
            };
            match v {
                Some(v) => self.set_one(r, v),
                None => return self.error("a component of a texel has no word"),
            }
        }
        Ok(())
    }

    fn image_store(&mut self, a: &Access) {
        let words = match a.imm.form {
            TexelForm::Words => a.data.clone(),
            _ => self.texel_words(a.info.storage_format(), &a.data),
        };
        let imm = ImageImm { form: TexelForm::Words, ..a.imm };
        self.image_inst(Op::ImageStore, Type::I32, a, imm, &words, &[]);
    }

    /// The words of a texel of a format.
    fn texel_words(&mut self, format: Format, color: &[Value]) -> SmallVec<[Value; 4]> {
        let floats = format.encoding() == Encoding::Float;
        let missing = if format.component().ty() == Type::F32 { self.e.f(0.0) } else { self.e.i(0) };
        let component = |k: usize| color.get(k).copied().unwrap_or(missing);
        let bits = format.bits();
        if bits[0] == 32 {
            return (0..bits.len()).map(|k| self.e.bitcast(Type::I32, component(k))).collect();
        }
        if floats && bits[0] == 16 {
            let zero = self.e.f(0.0);
            let pair = |l: &mut Self, k: usize| {
                let high = if k + 1 < bits.len() { component(k + 1) } else { zero };
                l.e.int(Op::PackHalf, &[component(k), high])
            };
            return (0..bits.len()).step_by(2).map(|k| pair(self, k)).collect();
        }
        let mut words: SmallVec<[Value; 4]> = smallvec![self.e.i(0); format.words() as usize];
        let mut at = 0;
        for (k, &n) in bits.iter().enumerate() {
            // The bits above the last field of a word fall off by themselves.
            let field = self.texel_field(format, n, component(k), at % 32 + n < 32);
            let field = self.e.shl_c(field, at % 32);
            let word = &mut words[(at / 32) as usize];
            *word = self.e.or(*word, field);
            at += n;
        }
        words
    }

    /// One component in its field; with `clean` nothing is set above it.
    fn texel_field(&mut self, format: Format, bits: u32, c: Value, clean: bool) -> Value {
        match format.encoding() {
            Encoding::Float => {
                let zero = self.e.f(0.0);
                let positive = self.e.float(Op::Fmax, &[c, zero]);
                let half = self.e.int(Op::PackHalf, &[positive, zero]);
                let half = self.e.and_c(half, 0x7fff);
                self.e.lshr_c(half, 15 - bits)
            }
            Encoding::Unorm | Encoding::Snorm => {
                let signed = format.encoding() == Encoding::Snorm;
                let (low, high) = (self.e.f(if signed { -1.0 } else { 0.0 }), self.e.f(1.0));
                let x = self.e.float(Op::Fmax, &[c, low]);
                let x = self.e.float(Op::Fmin, &[x, high]);
                let scale = self.e.f(format.norm_max(bits) as f32);
                let x = self.e.float(Op::Fmul, &[x, scale]);
                let x = self.e.float(Op::Fround, &[x]);
                let v = self.e.int(if signed { Op::Ftosi } else { Op::Ftoui }, &[x]);
                if signed && clean { self.e.zext(v, bits) } else { v }
            }
            Encoding::Sint => {
                let high = (1 << (bits - 1)) - 1;
                let (low, high) = (self.e.i(!high), self.e.i(high));
                let v = self.e.int(Op::Smax, &[c, low]);
                let v = self.e.int(Op::Smin, &[v, high]);
                if clean { self.e.zext(v, bits) } else { v }
            }
            Encoding::Uint => {
                let high = self.e.i((1 << bits) - 1);
                self.e.int(Op::Umin, &[c, high])
            }
        }
    }

    fn image_atomic(&mut self, inst: &InstData, a: &Access) -> Result<()> {
        let Some(op) = a.imm.atomic else { return self.error("an atomic operation without its name") };
        let component = a.info.component.ty();
        let mut data: SmallVec<[Value; 2]> = SmallVec::new();
        for &v in &a.data {
            data.push(self.e.bitcast(Type::I32, v));
        }
        let old = match op {
            AtomicOp::Load => self.image_word(a, component),
            AtomicOp::Store => {
                let imm = ImageImm { form: TexelForm::Words, atomic: None, volatile: true, ..a.imm };
                self.image_inst(Op::ImageStore, Type::I32, a, imm, &data, &[]);
                self.e.i(0)
            }
            AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax => match data.first() {
                Some(&d) => self.image_float(op.float().unwrap_or(Op::Fadd), a, component, d),
                None => return self.error("an atomic operation without an operand"),
            },
            _ => self.image_raw_atomic(a, op, &data),
        };
        if let Some(&r) = inst.results.first() {
            let old = self.e.bitcast(inst.ty, old);
            self.set_one(r, old);
        }
        Ok(())
    }

    /// The bits of a texel of one 32-bit component, now.
    fn image_word(&mut self, a: &Access, component: Type) -> Value {
        let imm = ImageImm { mask: 1, atomic: None, volatile: true, ..a.imm };
        let i = self.image_inst(Op::ImageLoad, component, a, imm, &[], &[component]);
        let v = self.e.func.insts[i].results[0];
        self.e.bitcast(Type::I32, v)
    }

    fn image_raw_atomic(&mut self, a: &Access, op: AtomicOp, data: &[Value]) -> Value {
        let imm = ImageImm { atomic: Some(op), ..a.imm };
        let i = self.image_inst(Op::ImageAtomic, Type::I32, a, imm, data, &[Type::I32]);
        self.e.func.insts[i].results[0]
    }

    /// Computes with a float as [`Lower::atomic`] does in memory.
    fn image_float(&mut self, op: Op, a: &Access, component: Type, data: Value) -> Value {
        let first = self.image_word(a, component);
        let header = self.append_block();
        let old = self.e.param(header, Type::I32);
        self.e.jump(header, &[first]);
        self.e.switch_to(header);
        let (value, data) = (self.e.bitcast(Type::F32, old), self.e.bitcast(Type::F32, data));
        let new = self.e.float(op, &[value, data]);
        let new = self.e.bitcast(Type::I32, new);
        let seen = self.image_raw_atomic(a, AtomicOp::CompareExchange, &[old, new]);
        let done = self.e.ieq(seen, old);
        let rest = self.append_block();
        self.e.end(Term::Branch {
            cond: done,
            then: Target { block: rest, args: smallvec![] },
            els: Target { block: header, args: smallvec![seen] },
        });
        self.e.switch_to(rest);
        seen
    }
}
