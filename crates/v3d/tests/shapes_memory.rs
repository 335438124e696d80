//! Shapes of programs that other compilers got wrong: where spilled values lie in scratch, and how much work spilling is.
//! Judged as in `shapes.rs`. The names are those of the collection of bug shapes; `docs/shapes.md` says where each is tested.

mod common;
#[path = "common/shader.rs"]
mod shader;

use kempe_ir::module::{MemImm, Value, Var, Variable};
use kempe_ir::ops::Op;
use kempe_ir::types::{Space, Type};
use kempe_ra::Edit;
use shader::*;

/// Reads all values forwards and all backwards, with a branch between, so that they stay live to the end.
fn read_twice(s: &mut Shader, c: Value, values: &[Value]) {
    let cond = s.lanes(c, 1);
    let mut x = s.choose(cond, |s| vec![s.work(c)], |_| vec![c])[0];
    for &v in values {
        x = s.add(x, v);
    }
    s.store(0, x);
    let cond = s.lanes(c, 2);
    let mut x = s.choose(cond, |s| vec![s.work(x)], |_| vec![x])[0];
    for &v in values.iter().rev() {
        x = s.op(Op::Xor, &[x, v]);
        x = s.add(x, c);
    }
    s.store(1, x);
}

/// A30: constants, which are made again, and loaded values, which are stored, by turns: slots belong to the stored
/// ones only, and no two that live at the same time share one.
#[test]
fn a30_stored_values_beside_values_made_again() {
    let mut s = Shader::new(16);
    let c = s.load(100);
    let mut values = Vec::new();
    for k in 0..60 {
        values.push(s.load(k));
        values.push(s.int(0x9e37_79b9u32.wrapping_mul(k + 1)));
    }
    read_twice(&mut s, c, &values);
    let made = judge(&s.end());
    // (Where there is room constants are not live for long, so it takes a configuration that spills everything.)
    provoked(&made, 1, "values stored and values made again", |m| {
        let remakes = m.edits().filter(|e| matches!(e.2, Edit::Recompute { .. })).count();
        m.spills() >= 10 && remakes > 0
    });
    // With the constants there would be a hundred and twenty, besides sums and addresses.
    for m in &made {
        assert!(m.allocation.slots < 80, "{} slots for 60 values", m.allocation.slots);
    }
}

/// A32: a private array of forty words, reached by index, beside more than ten spilled values: neither is laid over the
/// other.
#[test]
fn a32_an_array_beside_spilled_values() {
    let mut s = Shader::new(16);
    let array: Var =
        s.m.vars.push(Variable { space: Space::Private, size: 160, align: 4, name: "array".to_owned() });
    let mem = MemImm { space: Space::Private, count: 1, align: 4, volatile: false, read_only: false };
    let many = s.loads(70);
    let c = s.load(100);
    for (k, &v) in many[..40].iter().enumerate() {
        let mut b = s.b();
        let base = b.var_addr(array, Space::Private);
        let address = b.lea(base, None, 1, 4 * k as i32);
        b.store(Type::I32, mem, address, &[v]);
    }
    read_twice(&mut s, c, &many);
    // Each element by an index that differs from lane to lane.
    let mask = s.int(31);
    for k in 0..8 {
        let shift = s.int(3 * k);
        let shifted = s.op(Op::Lshr, &[c, shift]);
        let at = s.op(Op::And, &[shifted, mask]);
        let mut b = s.b();
        let base = b.var_addr(array, Space::Private);
        let address = b.lea(base, Some(at), 4, 4 * k as i32);
        let element = b.load(Type::I32, mem, address)[0];
        s.store(2 + k, element);
    }
    let made = judge(&s.end());
    provoked(&made, 3, "an array and more than ten spilled values in scratch", |m| {
        m.artifact.stats.scratch >= 48 && m.allocation.slots > 10 && m.spills() > 10
    });
    for m in &made {
        // Bytes of sixteen lanes: the array, then the slots.
        let least = 16 * 4 * (40 + m.allocation.slots);
        assert!(m.artifact.scratch_bytes >= least, "{} bytes, {least} needed", m.artifact.scratch_bytes);
    }
}

/// A36 and A44: six hundred values live at once, each made of a loaded and a uniform word: as many slots far from the
/// base of scratch, and a fixed number of attempts.
#[test]
fn a36_a44_hundreds_of_slots() {
    const COUNT: u32 = 600;
    let mut s = Shader::new(16);
    let loaded = s.loads(100);
    let c = s.load(150);
    let uniform = s.uniform(0);
    let mut values = Vec::new();
    for k in 0..COUNT {
        let factor = s.int(2 * k + 3);
        let product = s.mul(loaded[(k % 100) as usize], factor);
        let next = loaded[((k * 7 + 1) % 100) as usize];
        let mixed = s.op(Op::Xor, &[product, next]);
        values.push(s.add(mixed, uniform));
    }
    read_twice(&mut s, c, &values);
    let made = judge(&s.end());
    provoked(&made, 8, "hundreds of slots", |m| m.allocation.slots >= 500 && m.spills() >= 500);
    for m in &made {
        assert!(m.artifact.attempts <= 2, "{} attempts: {:?}", m.artifact.attempts, m.options);
        assert!(m.spills() <= 2 * COUNT as usize, "{} spills: {:?}", m.spills(), m.options);
    }
}
