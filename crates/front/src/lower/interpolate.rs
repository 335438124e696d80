//! `interpolateAt*`: inputs of fragment shaders at another place in the pixel.
//!
//! The operand is a pointer into an input variable, perhaps by an index that varies. So each variable concerned gets further
//! private variables of the same layout ([`Side`]), filled at the start like the variable itself, and the pointer is followed
//! in those; what nobody reads of them vanishes with the first passes.
//!
//! * At the centroid: the inputs once more, asked for there.
//! * At an offset: an input divided by the w of its fragment is linear on the screen, and so is 1/w. Both are moved by their
//!   differences in the quad, which are taken at the start, where all lanes run. Without perspective the input is linear itself.
//! * At a sample: the offset of the sample. One sample lies in the middle; four lie where Vulkan's standard locations say.

use super::stages::Place;
use super::*;
use kempe_ir::io::{Interpolation, Sampling};
use kempe_ir::{Builtin, Var};
use spirv::GlslStd450Op as G;

/// What a further variable of an input holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Side {
    Centroid,
    /// The input divided by w if it is in perspective.
    Linear,
    /// Its differences along an axis.
    Step(u8),
    /// 1 if it is in perspective, else 0.
    Perspective,
}

impl Lower<'_, '_> {
    pub(super) fn interpolation(&mut self, i: &Inst, op: G) -> Res<()> {
        if self.m.stage != ir::Stage::Fragment {
            return self.err("only fragment shaders interpolate");
        }
        let (ty, id) = self.result(i)?;
        let ptr = self.ptr(i.w(5)?)?;
        if self.p.component(ty).is_none_or(|t| !t.is_float()) {
            return self.err("only floats are interpolated");
        }
        let values = match op {
            G::InterpolateAtCentroid => self.side_values(&ptr, Side::Centroid)?,
            G::InterpolateAtSample => {
                let sample = self.leaf(i.w(6)?)?;
                let offset = self.sample_offset(sample)?;
                self.at_offset(&ptr, offset)?
            }
            _ => {
                let r = self.leaves(i.w(6)?)?;
                if r.len != 2 || self.ty_of(self.at(r, 0)) != Type::F32 {
                    return self.err("an offset in a pixel is two 32-bit floats");
                }
                self.at_offset(&ptr, [self.at(r, 0), self.at(r, 1)])?
            }
        };
        self.set_all(id, ty, &values)
    }

    /// Where a sample lies as seen from the middle of its pixel.
    fn sample_offset(&mut self, sample: Value) -> Res<[Value; 2]> {
        let count = self.builtin(Builtin::SampleCount);
        let one = self.i32(1);
        let several = self.op(Op::Ine, Type::I32, &[count, one])?;
        // Four samples: x is 3, 7, 1, 5 eighths, y is 1, 3, 5, 7 eighths.
        let low = self.op(Op::And, Type::I32, &[sample, one])?;
        let high = self.op(Op::Lshr, Type::I32, &[sample, one])?;
        let place = |l: &mut Self, first: f64, parts: [(Value, f64); 2]| -> Res<Value> {
            let mut at = l.fconst(Type::F32, first - 0.5);
            for (n, step) in parts {
                let n = l.op(Op::Uitof, Type::F32, &[n])?;
                let step = l.fconst(Type::F32, step);
                let part = l.op(Op::Fmul, Type::F32, &[n, step])?;
                at = l.op(Op::Fadd, Type::F32, &[at, part])?;
            }
            let middle = l.fconst(Type::F32, 0.0);
            l.op(Op::Select, Type::F32, &[several, at, middle])
        };
        Ok([
            place(self, 0.375, [(low, 0.5), (high, -0.25)])?,
            place(self, 0.125, [(low, 0.25), (high, 0.5)])?,
        ])
    }

    /// The scalars of an input at a place as seen from the middle of the pixel.
    fn at_offset(&mut self, ptr: &Ptr, offset: [Value; 2]) -> Res<Vec<Value>> {
        let f = Type::F32;
        let half = self.fconst(f, 0.5);
        let one = self.fconst(f, 1.0);
        // The fragment may stand for a sample that lies elsewhere.
        let mut by = offset;
        for (axis, by) in by.iter_mut().enumerate() {
            let at = self.builtin(Builtin::FragCoord(axis as u8));
            let whole = self.op(Op::Ffloor, f, &[at])?;
            let own = self.op(Op::Fsub, f, &[at, whole])?;
            let back = self.op(Op::Fsub, f, &[half, own])?;
            *by = self.op(Op::Fadd, f, &[back, *by])?;
        }
        let moved = |l: &mut Self, v: Value, steps: [Value; 2]| -> Res<Value> {
            let mut v = v;
            for (step, by) in steps.into_iter().zip(by) {
                let part = l.op(Op::Fmul, f, &[step, by])?;
                v = l.op(Op::Fadd, f, &[v, part])?;
            }
            Ok(v)
        };
        let w = self.builtin(Builtin::FragCoord(3));
        let w_steps = self.at_start(|l| Ok([l.op(Op::Ddx, f, &[w])?, l.op(Op::Ddy, f, &[w])?]))?;
        let divisor = moved(self, w, w_steps)?;
        let linear = self.side_values(ptr, Side::Linear)?;
        let steps = [self.side_values(ptr, Side::Step(0))?, self.side_values(ptr, Side::Step(1))?];
        let perspective = self.side_values(ptr, Side::Perspective)?;
        let mut out = Vec::with_capacity(linear.len());
        for (k, &v) in linear.iter().enumerate() {
            let ty = self.ty_of(v);
            let wide = |l: &mut Self, v: Value| if ty == f { Ok(v) } else { l.op(Op::Fconv, f, &[v]) };
            let (v, x, y) = (wide(self, v)?, wide(self, steps[0][k])?, wide(self, steps[1][k])?);
            let mode = wide(self, perspective[k])?;
            let v = moved(self, v, [x, y])?;
            let in_perspective = self.op(Op::Feq, f, &[mode, one])?;
            let by = self.op(Op::Select, f, &[in_perspective, divisor, one])?;
            let v = self.op(Op::Fdiv, f, &[v, by])?;
            out.push(if ty == f { v } else { self.op(Op::Fconv, ty, &[v])? });
        }
        Ok(out)
    }

    /// Emits at the start of the entry point.
    fn at_start<T>(&mut self, make: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let start = self.m.func.add_block_detached();
        let here = std::mem::replace(&mut self.cur, start);
        let flags = std::mem::replace(&mut self.flags, Flags::NONE);
        let made = make(self);
        (self.cur, self.flags) = (here, flags);
        let insts = std::mem::take(&mut self.m.func.blocks[start].insts);
        self.prelude.extend(insts);
        made
    }

    /// What a further variable holds where the pointer points.
    fn side_values(&mut self, ptr: &Ptr, side: Side) -> Res<Vec<Value>> {
        let Base::Value(base) = ptr.base else { return self.err("a built-in variable is not interpolated") };
        let base = self.follow(base, side)?;
        let mut out = Vec::new();
        self.load(&Ptr { base: Base::Value(base), ..*ptr }, ptr.lay, 0, &mut out)?;
        Ok(out)
    }

    /// The address in a further variable that corresponds to one in an input variable.
    fn follow(&mut self, address: Value, side: Side) -> Res<Value> {
        if let Some(i) = self.m.func.def_inst(address) {
            let d = self.m.func.insts[i].clone();
            match (d.op, d.imm) {
                (Op::VarAddr, Imm::Var(var)) => return self.side(var, side),
                (Op::Lea, _) => {
                    let mut args = d.args;
                    args[0] = self.follow(args[0], side)?;
                    return self.emit1(Op::Lea, d.ty, d.imm, &args);
                }
                _ => {}
            }
        }
        self.err("what is interpolated must be an input variable or a part of one")
    }

    /// The address of a further variable of an input variable, which is made at first use.
    fn side(&mut self, var: Var, side: Side) -> Res<Value> {
        if let Some(&v) = self.sides.get(&(var, side)) {
            return Ok(v);
        }
        let Some(input) = self.inputs.get(&var).cloned() else {
            return self.err("what is interpolated must be an input variable or a part of one");
        };
        let data = self.m.vars[var].clone();
        let ty = Type::Ptr(Space::Private);
        let copy = self.m.vars.push(data);
        let address = self.prelude(Op::VarAddr, ty, Imm::Var(copy));
        let ptr = Ptr { base: Base::Value(address), ..input.ptr };
        self.at_start(|l| {
            let mut values = Vec::with_capacity(input.places.len());
            for &(place, ty) in &input.places {
                values.push(l.side_value(place, ty, side)?);
            }
            let mut rest = values.as_slice();
            l.store(&ptr, ptr.lay, 0, &mut rest)
        })?;
        self.sides.insert((var, side), address);
        Ok(address)
    }

    fn side_value(&mut self, place: Place, ty: Type, side: Side) -> Res<Value> {
        let io = match place {
            Place::Io(io) if ty.is_float() && io.interpolation != Interpolation::Flat => Some(io),
            _ => None,
        };
        let perspective = io.is_some_and(|io| io.interpolation == Interpolation::Smooth);
        Ok(match (side, io) {
            (Side::Centroid, Some(mut io)) => {
                io.sampling = Sampling::Centroid;
                self.read_place(Place::Io(io), ty)?
            }
            (Side::Linear | Side::Step(_), Some(mut io)) => {
                io.sampling = Sampling::Center;
                let v = self.read_place(Place::Io(io), ty)?;
                let linear = if perspective {
                    let w = self.builtin(Builtin::FragCoord(3));
                    let w = if ty == Type::F32 { w } else { self.op(Op::Fconv, ty, &[w])? };
                    self.op(Op::Fmul, ty, &[v, w])?
                } else {
                    v
                };
                match side {
                    Side::Step(0) => self.op(Op::Ddx, ty, &[linear])?,
                    Side::Step(_) => self.op(Op::Ddy, ty, &[linear])?,
                    _ => linear,
                }
            }
            (Side::Perspective, _) if ty.is_float() => self.fconst(ty, if perspective { 1.0 } else { 0.0 }),
            // What is the same all over the primitive, or no number.
            (Side::Step(_) | Side::Perspective, None) => self.konst(ty, 0),
            _ => self.read_place(place, ty)?,
        })
    }
}
