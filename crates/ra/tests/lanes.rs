//! Hand-written programs in linear form on sixteen lanes, at every register limit.
//!
//! Each is run as it is and as allocated, from the smallest limit that leaves room for its widest instruction up to
//! where nothing is spilled, and with everything spilled. The shapes named A... are the known failures of other
//! allocators that they stand for.

#[path = "../testing/mod.rs"]
mod testing;

use kempe_ra::*;
use testing::files::rows_file;
use testing::judge::ENGINES;
use testing::lanes::{LANES, Lanes, Op};
use testing::least::{Verdict, verdict};

struct Seen {
    smallest: u32,
    natural: u32,
    /// Allocations that used memory.
    spilling: u32,
    most_edits: usize,
}

fn at_every_limit(name: &str, lanes: &Lanes) -> Seen {
    let expected = lanes.run_virtual().unwrap_or_else(|text| panic!("{name}: {text}"));
    assert!(expected.iter().any(|value| value.iter().any(|lane| lane.is_some())), "{name} puts nothing out");
    let mut seen = Seen { smallest: 0, natural: 0, spilling: 0, most_edits: 0 };
    for accumulators in [0, 4] {
        // More rows than anything here needs; two are reserved for memory edits.
        let file = rows_file(128, accumulators);
        let natural = match allocate(&file, &lanes.program, &Costs::default(), &Options::default()) {
            Ok(allocation) => {
                assert!(!allocation.memory_edits, "{name} spills with 128 rows");
                allocation.max_pressure
            }
            Err(error) => panic!("{name}: {error}"),
        };
        seen.natural = natural;
        for limit in (1..=natural + 1).rev() {
            for (engine, force_spill) in ENGINES.into_iter().flat_map(|e| [(e, false), (e, true)]) {
                let options =
                    Options { max_registers: Some(limit), force_spill, engine, ..Options::default() };
                match allocate(&file, &lanes.program, &Costs::default(), &options) {
                    Ok(allocation) => {
                        seen.smallest = limit;
                        seen.spilling += allocation.memory_edits as u32;
                        seen.most_edits = seen.most_edits.max(allocation.edits.len());
                        let found = lanes.run_allocated(&file, &allocation);
                        let found = found.unwrap_or_else(|text| panic!("{name} at {limit}: {text}"));
                        compare(&format!("{name} at {limit}"), &expected, &found);
                    }
                    Err(Failure::OutOfRegisters { .. }) => {
                        let reason = verdict(&file, &lanes.program, Some(limit));
                        assert!(matches!(reason, Verdict::Exceeds(_)), "{name} at {limit}: {reason:?}");
                    }
                    Err(error) => panic!("{name} at {limit}: {error}"),
                }
            }
        }
    }
    println!(
        "{name}: limits {} to {}, {} allocations with memory edits, up to {} edits",
        seen.smallest, seen.natural, seen.spilling, seen.most_edits
    );
    seen
}

fn compare(name: &str, expected: &[[Option<u32>; LANES]], found: &[[u32; LANES]]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (k, (want, have)) in expected.iter().zip(found).enumerate() {
        for lane in 0..LANES {
            if let Some(want) = want[lane] {
                assert_eq!(want, have[lane], "{name}: output {k}, lane {lane}");
            }
        }
    }
}

/// if (lane < 8) { if (lane < 4) x = a*3 else x = b } else if (a < b) x = a + b, with values kept across.
fn nested_if() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(1), &[]);
    let b = p.op(Op::Input(2), &[]);
    let kept = p.many(6, a);
    let eight = p.op(Op::Const(8), &[]);
    let f = p.op(Op::Less, &[lane, eight]);
    let outer = p.op(Op::FromFlag, &[f]);
    let other = p.op(Op::Not, &[outer]);
    let x0 = p.undefined();
    let (then, skip, middle) = (p.block(0, 0.5), p.block(0, 0.5), p.block(1, 1.0));
    p.branch_any(outer, then, skip);
    p.at(skip);
    p.jump(middle, &[x0]);
    p.at(then);
    let four = p.op(Op::Const(4), &[]);
    let g = p.op(Op::Less, &[lane, four]);
    let low = p.op(Op::FromFlag, &[g]);
    let inner = p.op(Op::And, &[low, outer]);
    let (inner_then, inner_skip, inner_merge) = (p.block(0, 0.25), p.block(0, 0.25), p.block(1, 0.5));
    p.branch_any(inner, inner_then, inner_skip);
    p.at(inner_skip);
    p.jump(inner_merge, &[x0]);
    p.at(inner_then);
    let three = p.op(Op::Const(3), &[]);
    let y = p.op(Op::Mul, &[a, three]);
    let f = p.op(Op::NotZero, &[inner]);
    let x1 = p.select(f, y, x0);
    p.jump(inner_merge, &[x1]);
    p.at(inner_merge);
    let x2 = p.params(inner_merge)[0];
    let rest = p.op(Op::Xor, &[inner, outer]);
    let f = p.op(Op::NotZero, &[rest]);
    let x3 = p.select(f, b, x2);
    p.jump(middle, &[x3]);
    p.at(middle);
    let x4 = p.params(middle)[0];
    let (last, past, end) = (p.block(0, 0.5), p.block(0, 0.5), p.block(1, 1.0));
    p.branch_any(other, last, past);
    p.at(past);
    p.jump(end, &[x4]);
    p.at(last);
    let f = p.op(Op::Less, &[a, b]);
    let less = p.op(Op::FromFlag, &[f]);
    let both = p.op(Op::And, &[less, other]);
    let sum = p.op(Op::Add, &[a, b]);
    let f = p.op(Op::NotZero, &[both]);
    let x5 = p.select(f, sum, x4);
    p.jump(end, &[x5]);
    p.at(end);
    let x6 = p.params(end)[0];
    p.out(x6);
    let total = p.sum(&kept);
    p.out(total);
    p.finish()
}

/// A loop that lanes leave in different rounds; with `reload` the copied value is made again for all lanes in every round
/// (shape A03). The result is used after the loop.
fn divergent_break(reload: bool) -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(3), &[]);
    let kept = p.many(5, a);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let y0 = p.undefined();
    let (head, body, leave) = (p.block(3, 10.0), p.block(0, 10.0), p.block(0, 1.0));
    let all = p.op(Op::Add, &[zero, one]);
    p.jump(head, &[zero, all, y0]);
    p.at(head);
    let [i, active, y] = p.params(head)[..] else { unreachable!() };
    let x = if reload { p.op(Op::Load, &[i]) } else { p.op(Op::Mul, &[i, a]) };
    // A lane leaves when its number modulo 4 is not above the round.
    let three = p.op(Op::Const(3), &[]);
    let low = p.op(Op::And, &[lane, three]);
    let f = p.op(Op::Less, &[i, low]);
    let stays = p.op(Op::FromFlag, &[f]);
    let goes = p.op(Op::Not, &[stays]);
    let goes = p.op(Op::And, &[goes, active]);
    let f = p.op(Op::NotZero, &[goes]);
    let y1 = p.select(f, x, y);
    let still = p.op(Op::And, &[active, stays]);
    let next = p.op(Op::Add, &[i, one]);
    p.branch_any(still, body, leave);
    p.at(body);
    p.jump(head, &[next, still, y1]);
    p.at(leave);
    p.out(y1);
    let total = p.sum(&kept);
    p.out(total);
    p.finish()
}

/// Values that go round a loop in a circle, with pressure inside (shape A22 with six).
fn loop_carried(count: usize) -> Lanes {
    let mut p = Lanes::new();
    let a = p.op(Op::Input(4), &[]);
    let start = p.many(count as u32, a);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let head = p.block(count + 1, 10.0);
    let (back, leave) = (p.block(0, 9.0), p.block(0, 1.0));
    let mut args = vec![zero];
    args.extend(&start);
    p.jump(head, &args);
    p.at(head);
    let params = p.params(head);
    let inside = p.many(4, params[0]);
    let pressed = p.sum(&inside);
    let next = p.op(Op::Add, &[params[0], one]);
    let seven = p.op(Op::Const(7), &[]);
    let f = p.op(Op::Less, &[next, seven]);
    let again = p.op(Op::FromFlag, &[f]);
    p.branch_any(again, back, leave);
    p.at(back);
    let mut args = vec![next];
    args.extend((1..=count).map(|k| params[1 + k % count]));
    p.jump(head, &args);
    p.at(leave);
    p.out(pressed);
    for &param in &params[1..] {
        p.out(param);
    }
    p.finish()
}

/// A comparison whose flag is needed on both sides of a load and of many values.
fn flag_across_spill() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(5), &[]);
    let b = p.op(Op::Input(6), &[]);
    let f = p.op(Op::Less, &[a, b]);
    let x = p.op(Op::Load, &[lane]);
    let many = p.many(9, x);
    let y1 = p.select(f, a, x);
    let total = p.sum(&many);
    let z = p.op(Op::Load, &[total]);
    let y2 = p.select(f, z, y1);
    p.out(y2);
    p.out(b);
    p.finish()
}

/// A01: written for all lanes, then under a lane condition, both versions spilled, read by all lanes.
fn a01() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(7), &[]);
    let x0 = p.op(Op::Add, &[a, lane]);
    let many = p.many(8, x0);
    let five = p.op(Op::Const(5), &[]);
    let f = p.op(Op::Less, &[lane, five]);
    let x1 = p.select(f, a, x0);
    let first = p.sum(&many);
    let more = p.many(8, first);
    let second = p.sum(&more);
    p.out(x1);
    p.out(x0);
    p.out(second);
    p.finish()
}

/// A02: made before nested loops, spilled across them, then differences in the quad, helper lanes included.
fn a02() -> Lanes {
    let mut p = Lanes::new();
    let a = p.op(Op::Input(8), &[]);
    let value = p.op(Op::Load, &[a]);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let three = p.op(Op::Const(3), &[]);
    let (outer, inner) = (p.block(2, 4.0), p.block(2, 16.0));
    let (inner_back, inner_out) = (p.block(0, 12.0), p.block(0, 4.0));
    let (outer_back, outer_out) = (p.block(0, 3.0), p.block(0, 1.0));
    p.jump(outer, &[zero, a]);
    p.at(outer);
    let [i, s] = p.params(outer)[..] else { unreachable!() };
    p.jump(inner, &[zero, s]);
    p.at(inner);
    let [j, t] = p.params(inner)[..] else { unreachable!() };
    let many = p.many(7, t);
    let sum = p.sum(&many);
    let t1 = p.op(Op::Load, &[sum]);
    let j1 = p.op(Op::Add, &[j, one]);
    let f = p.op(Op::Less, &[j1, three]);
    let c = p.op(Op::FromFlag, &[f]);
    p.branch_any(c, inner_back, inner_out);
    p.at(inner_back);
    p.jump(inner, &[j1, t1]);
    p.at(inner_out);
    let i1 = p.op(Op::Add, &[i, one]);
    let f = p.op(Op::Less, &[i1, three]);
    let c = p.op(Op::FromFlag, &[f]);
    p.branch_any(c, outer_back, outer_out);
    p.at(outer_back);
    p.jump(outer, &[i1, t1]);
    p.at(outer_out);
    let d = p.op(Op::Derivative, &[value]);
    p.out(d);
    p.out(t1);
    p.finish()
}

/// A04: two writes with different predicates inside a sequence that no memory edit may enter, then spilled.
fn a04() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(9), &[]);
    let b = p.op(Op::Input(10), &[]);
    let kept = p.many(7, a);
    let x0 = p.undefined();
    let six = p.op(Op::Const(6), &[]);
    let f = p.op(Op::Less, &[lane, six]);
    let x1 = p.op_in(Op::Select, &[f, a, x0], true);
    let low = p.op_in(Op::FromFlag, &[f], true);
    let high = p.op_in(Op::Not, &[low], true);
    let g = p.op_in(Op::NotZero, &[high], true);
    let x2 = p.op_in(Op::Select, &[g, b, x1], true);
    let r = p.op_in(Op::Load, &[b], true);
    let total = p.sum(&kept);
    let more = p.many(7, total);
    let last = p.sum(&more);
    p.out(x2);
    p.out(r);
    p.out(last);
    p.finish()
}

/// A24: the back-edge operand of a loop value was already spilled and reloaded in the body.
fn a24() -> Lanes {
    let mut p = Lanes::new();
    let a = p.op(Op::Input(11), &[]);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let five = p.op(Op::Const(5), &[]);
    let head = p.block(2, 5.0);
    let (back, leave) = (p.block(0, 4.0), p.block(0, 1.0));
    p.jump(head, &[zero, a]);
    p.at(head);
    let [i, v] = p.params(head)[..] else { unreachable!() };
    let n = p.op(Op::Load, &[v]);
    let many = p.many(8, i);
    let s = p.sum(&many);
    let used = p.op(Op::Xor, &[n, s]);
    let more = p.many(8, used);
    let s2 = p.sum(&more);
    let i1 = p.op(Op::Add, &[i, one]);
    let f = p.op(Op::Less, &[i1, five]);
    let c = p.op(Op::FromFlag, &[f]);
    p.branch_any(c, back, leave);
    p.at(back);
    p.keep(&[s2]);
    p.jump(head, &[i1, n]);
    p.at(leave);
    p.out(n);
    p.out(s2);
    p.finish()
}

/// A25: many values cross a selection that uses none of them, plus two that the branch itself makes.
fn a25(count: u32) -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(12), &[]);
    let many = p.many(count, a);
    let (yes, no, merge) = (p.block(0, 0.5), p.block(0, 0.5), p.block(2, 1.0));
    p.branch_any(lane, yes, no);
    p.at(yes);
    let x = p.op(Op::Mul, &[lane, lane]);
    let y = p.op(Op::Add, &[lane, x]);
    p.jump(merge, &[x, y]);
    p.at(no);
    let x = p.op(Op::Add, &[lane, lane]);
    p.jump(merge, &[x, lane]);
    p.at(merge);
    let [x, y] = p.params(merge)[..] else { unreachable!() };
    p.out(x);
    p.out(y);
    let total = p.sum(&many);
    p.out(total);
    p.finish()
}

/// A28: one arm needs everything, the other nothing; a value from before is read after. Both arms are walked.
fn a28() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let a = p.op(Op::Input(13), &[]);
    let v = p.op(Op::Load, &[a]);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let head = p.block(2, 2.0);
    p.jump(head, &[lane, zero]);
    p.at(head);
    let [c, n] = p.params(head)[..] else { unreachable!() };
    let (yes, no, merge) = (p.block(0, 1.0), p.block(0, 1.0), p.block(1, 2.0));
    p.branch_any(c, yes, no);
    p.at(yes);
    let many = p.many(10, n);
    let s = p.sum(&many);
    p.jump(merge, &[s]);
    p.at(no);
    p.jump(merge, &[n]);
    p.at(merge);
    let x = p.params(merge)[0];
    p.out(v);
    let r = p.op(Op::Xor, &[v, x]);
    let n1 = p.op(Op::Add, &[n, one]);
    let two = p.op(Op::Const(2), &[]);
    let f = p.op(Op::Less, &[n1, two]);
    let again = p.op(Op::FromFlag, &[f]);
    let (back, leave) = (p.block(0, 1.0), p.block(0, 1.0));
    p.branch_any(again, back, leave);
    p.at(back);
    p.jump(head, &[zero, n1]);
    p.at(leave);
    p.out(r);
    p.finish()
}

/// A29: an exchange gives the old contents in the register of its data, and the data are needed again.
fn a29() -> Lanes {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let data = p.op(Op::Input(14), &[]);
    let kept = p.many(6, data);
    let old = p.op(Op::Exchange, &[data, lane]);
    let both = p.op(Op::Add, &[old, data]);
    p.out(both);
    let total = p.sum(&kept);
    p.out(total);
    p.finish()
}

/// A12: payload in fixed rows, read late; outputs in fixed rows.
fn payload() -> Lanes {
    let mut p = Lanes::new();
    let first = p.fixed_def(Op::Input(15), 0);
    let second = p.fixed_def(Op::Input(16), 2);
    let many = p.many(8, first);
    let total = p.sum(&many);
    let x = p.op(Op::Xor, &[total, second]);
    p.fixed_use(second, 0);
    p.fixed_use(x, 2);
    p.fixed_use(first, 1);
    p.finish()
}

/// A26 and A27: three nested loops that carry the same unmodified value out through merges with one input.
fn carried_unchanged() -> Lanes {
    let mut p = Lanes::new();
    let a = p.op(Op::Input(17), &[]);
    let zero = p.op(Op::Const(0), &[]);
    let one = p.op(Op::Const(1), &[]);
    let two = p.op(Op::Const(2), &[]);
    let heads: Vec<usize> = (0..3).map(|k| p.block(2, 2.0f32.powi(k + 1))).collect();
    p.jump(heads[0], &[zero, a]);
    for level in 0..2 {
        p.at(heads[level]);
        let same = p.params(heads[level])[1];
        p.jump(heads[level + 1], &[zero, same]);
    }
    p.at(heads[2]);
    let mut carried = p.params(heads[2])[1];
    for level in (0..3).rev() {
        let i = p.params(heads[level])[0];
        let many = p.many(5, i);
        let s = p.sum(&many);
        p.keep(&[s]);
        let i1 = p.op(Op::Add, &[i, one]);
        let f = p.op(Op::Less, &[i1, two]);
        let c = p.op(Op::FromFlag, &[f]);
        let (back, leave) = (p.block(0, 1.0), p.block(1, 1.0));
        p.branch_any(c, back, leave);
        p.at(back);
        let mine = p.params(heads[level])[1];
        p.jump(heads[level], &[i1, mine]);
        p.argument(leave, carried);
        p.at(leave);
        carried = p.params(leave)[0];
    }
    p.out(carried);
    p.finish()
}

#[test]
fn programs_agree_at_every_limit() {
    let programs: Vec<(&str, Lanes)> = vec![
        ("nested if", nested_if()),
        ("divergent break", divergent_break(false)),
        ("A03: divergent break with a reload", divergent_break(true)),
        ("loop-carried values", loop_carried(4)),
        ("A22: six values go round in memory", loop_carried(6)),
        ("a flag across a spill", flag_across_spill()),
        ("A01", a01()),
        ("A02", a02()),
        ("A04", a04()),
        ("A24", a24()),
        ("A25", a25(20)),
        ("A28", a28()),
        ("A29", a29()),
        ("A12: payload", payload()),
        ("A26, A27: carried unchanged", carried_unchanged()),
    ];
    for (name, lanes) in &programs {
        let seen = at_every_limit(name, lanes);
        assert!(seen.smallest > 0 && seen.smallest < seen.natural, "{name}");
        assert!(seen.spilling > 0, "{name}: nothing was ever spilled");
    }
}

/// A25 as reported: eighty values at the size of a real register file.
#[test]
fn eighty_values_cross_a_selection() {
    let lanes = a25(80);
    let file = rows_file(32, 0);
    let allocation = allocate(&file, &lanes.program, &Costs::default(), &Options::default()).unwrap();
    assert!(allocation.memory_edits);
    let expected = lanes.run_virtual().unwrap();
    let found = lanes.run_allocated(&file, &allocation).unwrap();
    compare("A25", &expected, &found);
}

/// A29: exactly one register beside what the exchange keeps must be enough.
#[test]
fn a_result_in_the_place_of_an_operand_that_stays() {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let data = p.op(Op::Input(1), &[]);
    let old = p.op(Op::Exchange, &[data, lane]);
    let both = p.op(Op::Add, &[old, data]);
    p.out(both);
    p.out(lane);
    let lanes = p.finish();
    let file = rows_file(16, 0);
    // Live after the exchange: lane, data and the old contents.
    let options = Options { max_registers: Some(3), ..Options::default() };
    let allocation = allocate(&file, &lanes.program, &Costs::default(), &options).unwrap();
    assert!(!allocation.memory_edits, "three registers are enough: {:?}", allocation.edits);
}

/// A47: values that are only undefined take no register and are never stored.
#[test]
fn undefined_values_take_nothing() {
    let mut p = Lanes::new();
    let lane = p.op(Op::Lane, &[]);
    let nothing: Vec<VReg> = (0..140).map(|_| p.undefined()).collect();
    for &value in &nothing {
        p.keep(&[value, lane]);
    }
    p.keep(&nothing[..100]);
    p.out(lane);
    let lanes = p.finish();
    let file = rows_file(16, 0);
    let options = Options { max_registers: Some(2), ..Options::default() };
    let allocation = allocate(&file, &lanes.program, &Costs::default(), &options).unwrap();
    assert!(allocation.edits.is_empty(), "{:?}", allocation.edits);
}

/// A46: an instruction that alone needs more than there is ends with an error that names it.
#[test]
fn too_many_operands_are_refused() {
    let mut p = Lanes::new();
    let a = p.op(Op::Input(1), &[]);
    let many = p.many(9, a);
    p.keep(&many);
    p.out(a);
    let lanes = p.finish();
    let file = rows_file(16, 0);
    let options = Options { max_registers: Some(8), ..Options::default() };
    match allocate(&file, &lanes.program, &Costs::default(), &options) {
        Err(Failure::OutOfRegisters { at, .. }) => assert_eq!(lanes.ops[at.0 as usize], Op::Keep),
        other => panic!("{other:?}"),
    }
    let options = Options { max_registers: Some(9), ..Options::default() };
    assert!(allocate(&file, &lanes.program, &Costs::default(), &options).is_ok());
}
