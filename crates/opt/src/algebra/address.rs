//! Rules for `lea`: constants go into the offset, and offsets go outward.
//!
//! After them an address is a chain of `lea`s with an index each, none of which has an offset but the outermost.
//! All exact modulo 2^32.

use super::{Act, Rules, View};
use kempe_ir::*;
use smallvec::{SmallVec, smallvec};

pub fn rule(r: &mut Rules, v: &View) -> Act {
    let Imm::Lea(l) = v.imm else {
        return Act::Keep;
    };
    let base = v.args[0];
    let index = v.args.get(1).copied();
    match index {
        Some(i) => indexed(r, l, base, i),
        None => plain(r, l, base),
    }
}

fn lea(base: Value, index: Option<Value>, scale: u32, offset: i32) -> Act {
    let mut args: SmallVec<[Value; 3]> = smallvec![base];
    args.extend(index);
    Act::Lea(args, LeaImm { scale, offset })
}

/// The base, index and immediate of a `lea`.
fn parts(r: &Rules, v: Value) -> Option<(Value, Option<Value>, LeaImm)> {
    let d = r.def(v)?;
    match (d.op, d.imm) {
        (Op::Lea, Imm::Lea(l)) => Some((d.args[0], d.args.get(1).copied(), l)),
        _ => None,
    }
}

fn plain(r: &mut Rules, l: LeaImm, base: Value) -> Act {
    if l.offset == 0 {
        return Act::Value(base);
    }
    if let Some((b, i, m)) = parts(r, base) {
        return lea(b, i, m.scale, m.offset.wrapping_add(l.offset));
    }
    if l.scale != 0 {
        return lea(base, None, 0, l.offset);
    }
    Act::Keep
}

fn indexed(r: &mut Rules, l: LeaImm, base: Value, index: Value) -> Act {
    if let Some(k) = r.as_const(index) {
        let by = (k as u32).wrapping_mul(l.scale);
        return lea(base, None, 0, l.offset.wrapping_add(by as i32));
    }
    if l.scale == 0 {
        return lea(base, None, 0, l.offset);
    }
    if let Some((x, c)) = r.with_const(index, Op::Iadd) {
        let by = (c as u32).wrapping_mul(l.scale);
        return lea(base, Some(x), l.scale, l.offset.wrapping_add(by as i32));
    }
    // index = x * c
    let factor = match r.with_const(index, Op::Imul) {
        Some((x, c)) => Some((x, c)),
        None => r.with_const(index, Op::Shl).map(|(x, n)| (x, 1u64 << (n % 32))),
    };
    if let Some((x, c)) = factor
        && let Some(scale) = c.checked_mul(l.scale as u64)
        && scale <= u32::MAX as u64
    {
        return lea(base, Some(x), scale as u32, l.offset);
    }
    if let Some((b, i, m)) = parts(r, base) {
        match i {
            None => return lea(b, Some(index), l.scale, l.offset.wrapping_add(m.offset)),
            // base + i * s + j * s
            Some(i) if m.scale == l.scale && r.used_once(base) => {
                let sum = r.op(Op::Iadd, Type::I32, &[i, index]);
                return lea(b, Some(sum), l.scale, l.offset.wrapping_add(m.offset));
            }
            Some(_) if m.offset != 0 => {
                let inner = r.lea(b, i, LeaImm { scale: m.scale, offset: 0 });
                return lea(inner, Some(index), l.scale, l.offset.wrapping_add(m.offset));
            }
            Some(_) => {}
        }
    }
    Act::Keep
}
