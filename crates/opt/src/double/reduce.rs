//! Reductions and scans over the lanes of a subgroup.
//!
//! Lanes that do not run compute nothing, so no steps go through them: every lane takes the numbers of all others by shuffles and
//! combines them in the order that the steps over all lanes would have ([`kempe_ir::eval::reduce`]); for a lane that does not run
//! stands the identity.

use super::emit::Emit;
use kempe_ir::{Builtin, Imm, Op, ReduceImm, ReduceKind, Type, Value, eval};

impl Emit {
    /// `lanes` is the size of a subgroup, a power of two.
    pub fn reduce(&mut self, imm: ReduceImm, v: Value, lanes: u32) -> Option<Value> {
        let n = if imm.cluster == 0 { lanes } else { u32::from(imm.cluster).min(lanes) };
        let scan = imm.kind != ReduceKind::Reduce;
        let identity = self.c64(eval::reduce_identity(imm.op, Type::F64)?);
        let always = self.truth();
        let running = self.op(Op::Ballot, Type::I32, &[always]);
        let own = self.builtin(Builtin::SubgroupLocalId);
        let inside = self.int_c(Op::And, own, n - 1);
        let zero = self.c(0);
        // The number that stands `d` lanes on, in the order of the steps.
        let mut row = Vec::with_capacity(n as usize);
        for d in 0..n {
            let d = if imm.kind == ReduceKind::ExclusiveScan { d + 1 } else { d };
            let from = self.int_c(if scan { Op::Isub } else { Op::Xor }, own, d);
            let bit = self.int(Op::Lshr, running, from);
            let bit = self.int_c(Op::And, bit, 1);
            let mut missing = self.int(Op::Ieq, bit, zero);
            if scan {
                let d = self.c(d);
                let outside = self.int(Op::Ult, inside, d);
                missing = self.either(missing, outside);
            }
            let there = self.op(Op::Shuffle, Type::I64, &[v, from]);
            row.push(self.select(missing, identity, there));
        }
        let mut step = if scan { 1 } else { n as usize / 2 };
        while step > 0 && step < n as usize {
            if scan {
                for d in (0..n as usize - step).step_by(2 * step) {
                    let sum = self.combine(imm.op, row[d], row[d + step])?;
                    // A lane that has none so far below keeps what it has.
                    let limit = self.c((d + step) as u32);
                    let none = self.int(Op::Ult, inside, limit);
                    row[d] = self.select(none, row[d], sum);
                }
                step *= 2;
            } else {
                for d in 0..step {
                    row[d] = self.combine(imm.op, row[d], row[d + step])?;
                }
                step /= 2;
            }
        }
        row.first().copied()
    }

    fn combine(&mut self, op: Op, a: Value, b: Value) -> Option<Value> {
        Some(match op {
            Op::Fadd => self.sum(a, b),
            Op::Fmul => self.product(a, b),
            Op::Fmin => self.extreme(true, a, b),
            Op::Fmax => self.extreme(false, a, b),
            _ => return None,
        })
    }

    fn builtin(&mut self, b: Builtin) -> Value {
        self.op_imm(Op::Builtin, Type::I32, Imm::Builtin(b))
    }
}
