//! Derivatives: differences between neighbours in a quad.
//!
//! Fragments come in quads, so the machine knows who the neighbour is. In a compute shader the entry point declares the
//! arrangement ([`crate::entry`]): the neighbour's number differs in a bit, and its value comes by a shuffle. All
//! derivatives are fine ones.

use super::*;
use kempe_ir::{Builtin, Stage};

impl Lower<'_, '_> {
    pub(super) fn derivative_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        use S::*;
        let axes: &[usize] = match op {
            DPdx | DPdxFine | DPdxCoarse => &[0],
            DPdy | DPdyFine | DPdyCoarse => &[1],
            Fwidth | FwidthFine | FwidthCoarse => &[0, 1],
            _ => return Ok(false),
        };
        let (ty, id) = self.result(i)?;
        let r = self.leaves(i.w(3)?)?;
        let mut out: SmallVec<[Value; 8]> = SmallVec::new();
        for v in self.slice(r) {
            let float = self.ty_of(v);
            out.push(match *axes {
                [axis] => self.difference(v, axis)?,
                _ => {
                    let (dx, dy) = (self.difference(v, 0)?, self.difference(v, 1)?);
                    let (dx, dy) = (self.op(Op::Fabs, float, &[dx])?, self.op(Op::Fabs, float, &[dy])?);
                    self.op(Op::Fadd, float, &[dx, dy])?
                }
            });
        }
        self.set_all(id, ty, &out)?;
        Ok(true)
    }

    /// The value of the second invocation along an axis minus that of the first.
    fn difference(&mut self, v: Value, axis: usize) -> Res<Value> {
        let float = self.ty_of(v);
        match self.m.stage {
            Stage::Fragment => self.op([Op::Ddx, Op::Ddy][axis], float, &[v]),
            Stage::Vertex | Stage::Geometry | Stage::TessControl | Stage::TessEval => {
                self.err("derivatives are not supported in this stage")
            }
            Stage::Compute => {
                let step = self.quad_steps()?[axis];
                self.m.uses_subgroups = true;
                let own = self.builtin(Builtin::SubgroupLocalId);
                let (bit, zero) = (self.i32(step), self.i32(0));
                let from = self.op(Op::Xor, Type::I32, &[own, bit])?;
                let other = self.shuffle(v, from)?;
                let side = self.op(Op::And, Type::I32, &[own, bit])?;
                let second = self.op(Op::Ine, Type::I32, &[side, zero])?;
                let here = self.op(Op::Fsub, float, &[v, other])?;
                let there = self.op(Op::Fsub, float, &[other, v])?;
                self.op(Op::Select, float, &[second, here, there])
            }
        }
    }

    /// Bits of the lane number in which neighbours differ along the axes.
    fn quad_steps(&self) -> Res<[u32; 2]> {
        match self.derivatives {
            None => self.refuse(
                "derivatives in compute shaders need a declared arrangement of the invocations",
                "declare `derivative_group_quadsNV` or `derivative_group_linearNV`",
            ),
            Some([_, 0]) => {
                let [width, ..] = self.m.workgroup_size;
                self.err(format!(
                    "derivatives in quads of a work-group that is {width} wide are not supported: 2, 4 and 8 are"
                ))
            }
            Some(steps) => Ok(steps),
        }
    }
}
