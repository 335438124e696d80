//! 64-bit floats in software: every f64 becomes the i64 of its bits, every operation on it integer arithmetic.
//!
//! For targets whose hardware has no f64. The results are those of `kempe_ir::eval`, bit for bit, canonical NaN included: IEEE,
//! to nearest even, denormals kept. The pass runs when everything else is done, just before a target lowers what is left: as
//! long as an f64 is an f64, folding and numbering know what it means.
//!
//! * [`emit`]: making instructions, the parts of a double; [`arith`]: sum, product, quotient, root; [`round`]: to whole
//!   numbers, comparisons, minima; [`convert`]: from and to other types
//!
//! There are no calls in this form, so an operation is spelled out where it stands, without branches: special values are
//! selected at the end. A quotient or a root is a loop of one bit a step: a tenth of the size of a fast one, and code is what
//! many doubles have too much of. (About 100 machine operations for a sum, 150 for a product.)
//!
//! Left out: exponentials, logarithms, trigonometric functions and derivatives, which the source languages do not have at this
//! width; atomics. Each is named in the error.

mod arith;
mod convert;
mod emit;
mod reduce;
mod round;

use crate::subst::Subst;
use emit::Emit;
use kempe_ir::*;

/// Most instructions of a module afterwards: four times what the front ends let through, and more than any real shader comes to.
const MAX_INSTS: usize = 1 << 22;

/// An operation that there is no software for, or too many that there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    pub message: String,
    pub loc: Loc,
}

/// Makes integers of all f64; a subgroup has `lanes` lanes. Says whether there were any; on error the module is left without a
/// body.
pub fn run(m: &mut Module, lanes: u32) -> Result<bool, Unsupported> {
    let double: Vec<bool> = m.func.values.keys().map(|v| m.func.ty(v) == Type::F64).collect();
    if !double.contains(&true) {
        return Ok(false);
    }
    let mut f = std::mem::take(&mut m.func);
    for v in f.values.keys().collect::<Vec<_>>() {
        if double[v.index()] {
            f.values[v].ty = Type::I64;
        }
    }
    let mut map = Subst::new(&f);
    let layout = std::mem::take(&mut f.layout);
    let mut e = Emit::new(f);
    for b in layout {
        e.enter(b);
        let term = std::mem::replace(&mut e.func.blocks[b].term, Term::Unreachable);
        for i in std::mem::take(&mut e.func.blocks[b].insts) {
            let data = &mut e.func.insts[i];
            let takes = data.args.iter().any(|v| double[v.index()]);
            if !takes && data.ty != Type::F64 {
                e.keep(i);
                continue;
            }
            if moves_bits(data.op, data.imm) {
                // What only moves bits moves them as an integer.
                if data.ty == Type::F64 {
                    data.ty = Type::I64;
                }
                e.keep(i);
                continue;
            }
            let data = data.clone();
            let from_double = data.args.first().is_some_and(|v| double[v.index()]);
            e.loc = data.loc;
            if e.func.insts.len() > MAX_INSTS {
                let message = format!(
                    "the code grows beyond {MAX_INSTS} instructions when 64-bit floats are computed in software"
                );
                return Err(Unsupported { message, loc: data.loc });
            }
            match e.operation(&data, from_double, lanes) {
                Some(v) => map.set(data.results[0], v),
                None => {
                    let message = format!("`{}` of 64-bit floats is not supported", data.op.name());
                    return Err(Unsupported { message, loc: data.loc });
                }
            }
        }
        e.leave(b, term);
    }
    m.func = e.finish();
    map.apply(&mut m.func);
    Ok(true)
}

/// The operation gives or takes bits as they are, whatever the type says.
fn moves_bits(op: Op, imm: Imm) -> bool {
    match op {
        Op::Const | Op::Undef | Op::Select | Op::Load | Op::Store | Op::BroadcastFirst | Op::Shuffle => true,
        Op::Atomic => matches!(imm, Imm::Atomic(a) if a.op != AtomicOp::Fadd),
        _ => false,
    }
}

impl Emit {
    /// What an operation that takes or gives f64 computes, `None` if there is no way.
    fn operation(&mut self, d: &InstData, from_double: bool, lanes: u32) -> Option<Value> {
        use Op::*;
        let arg = |n: usize| d.args.get(n).copied().unwrap_or(d.args[0]);
        if d.args.is_empty() || d.results.len() != 1 {
            return None;
        }
        let (a, b) = (arg(0), arg(1));
        Some(match d.op {
            Fadd => self.sum(a, b),
            Fsub => self.difference(a, b),
            Fmul => self.product(a, b),
            Fdiv => self.quotient(a, b),
            Fma => {
                let product = self.product(a, b);
                self.sum(product, arg(2))
            }
            Frem | Fmod => {
                let quotient = self.quotient(a, b);
                let whole = self.whole(if d.op == Frem { Ftrunc } else { Ffloor }, quotient);
                let product = self.product(b, whole);
                self.difference(a, product)
            }
            Fsqrt => self.root(a),
            Frsqrt => {
                let root = self.root(a);
                let one = self.c64(1f64.to_bits());
                self.quotient(one, root)
            }
            Fneg => {
                let sign = self.c64(emit::SIGN);
                self.wide(Xor, a, sign)
            }
            Fabs => self.magnitude(a),
            Fmin | Fmax => self.extreme(d.op == Fmin, a, b),
            Ffloor | Fceil | Ftrunc | Fround => self.whole(d.op, a),
            Feq | Fne | Flt | Fle => self.compare(d.op, a, b),
            VoteEq => self.vote_equal(a),
            Reduce => match d.imm {
                Imm::Reduce(imm) => self.reduce(imm, a, lanes)?,
                _ => return None,
            },
            Ftosi | Ftoui => self.integer_of(d.op == Ftosi, d.ty, a)?,
            Sitof | Uitof => self.of_integer(d.op == Sitof, self.func.ty(a), a)?,
            Fconv if from_double => self.narrow(d.ty, a)?,
            Fconv => self.widen(self.func.ty(a), a)?,
            // Bits from or to an i64: the value itself.
            Bitcast => a,
            _ => return None,
        })
    }
}
