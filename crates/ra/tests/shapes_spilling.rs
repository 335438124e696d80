//! Shapes of bugs of other allocators: spilling before colouring, slots, recipes. Names are those of the collection of bug
//! shapes; `docs/shapes.md` says where each is tested. What lanes have to do with it is in `lanes.rs`.
//!
//! File: 64 rows without accumulators unless a test says otherwise, two of them reserved for memory edits. Each test shows
//! that its shape was there: values stored and filled in other blocks, parameters born in memory, recipes between them.

#[path = "../testing/mod.rs"]
mod testing;

use kempe_ra::*;
use testing::build::*;
use testing::files::*;
use testing::judge::*;

fn file() -> RegisterFile {
    rows_file(64, 0)
}

fn defined(b: &mut Builder, count: usize) -> Vec<VReg> {
    (0..count).map(|_| b.make(ROWS, &[])).collect()
}

fn read_each(b: &mut Builder, values: &[VReg]) {
    for &value in values {
        b.op(&[value], &[]);
    }
}

/// Edits before the instructions of a block.
fn edits_in(program: &Program, allocation: &Allocation, block: u32) -> Vec<Edit> {
    let insts = program.blocks[block as usize].insts.clone();
    insts.flat_map(|inst| edits_before(allocation, inst)).collect()
}

/// A10: stores in one block, fills in others, every value in another one.
#[test]
fn a10_fills_in_other_blocks_than_stores() {
    let mut b = Builder::default();
    b.block(&[]);
    let values = defined(&mut b, 70);
    let mut arms = Vec::new();
    for k in 0..4u32 {
        b.branch(values[k as usize], &[3 * k + 1, 3 * k + 2]);
        arms.push(b.block_at(&[], 0.5));
        read_each(&mut b, &values[10 + 10 * k as usize..20 + 10 * k as usize]);
        b.jump(3 * k + 3, &[]);
        b.block_at(&[], 0.5);
        b.jump(3 * k + 3, &[]);
        b.block(&[]);
    }
    read_each(&mut b, &values);
    let program = b.finish();
    by_every_engine(&file(), &program, &at_most(8), |allocation| {
        assert!(spills(&edits_in(&program, allocation, 0)) >= 60);
        for &arm in &arms {
            assert!(fills(&edits_in(&program, allocation, arm)) >= 2, "block {arm}");
        }
        assert!(allocation.work.attempts <= most_attempts(allocation), "{:?}", allocation.work);
    });
}

/// A11: twice as many values as there are registers, so that what stands for values grows while values are spilled.
#[test]
fn a11_pressure_of_twice_the_file() {
    for count in [128, 256, 1024] {
        let mut b = Builder::default();
        b.block(&[]);
        let values = defined(&mut b, count);
        let mut all = values[0];
        for &value in &values[1..] {
            all = b.make(ROWS, &[all, value]);
        }
        read_each(&mut b, &values);
        b.op(&[all], &[]);
        let program = b.finish();
        by_every_engine(&file(), &program, &Options::default(), |allocation| {
            let edits = all_edits(allocation);
            assert!(spills(&edits) >= count - 62, "{count}: {} spills", spills(&edits));
            // Stored once however often it comes back.
            assert!(spills(&edits) <= count && allocation.slots as usize <= count, "{count}");
            assert!(allocation.work.attempts <= most_attempts(allocation), "{count}: {:?}", allocation.work);
        });
    }
}

/// A24: what the back edge gives a parameter was spilled and filled in the body already: it has one slot and is stored once.
#[test]
fn a24_a_back_edge_value_that_was_spilled_before() {
    let mut b = Builder::default();
    b.block(&[]);
    let start = b.make(ROWS, &[]);
    let param = b.value(ROWS, false);
    b.jump(1, &[start]);
    b.block_at(&[param], 10.0);
    let next = b.make(ROWS, &[param]);
    let mut others = defined(&mut b, 8);
    read_each(&mut b, &others);
    b.op(&[next], &[]);
    others = defined(&mut b, 8);
    read_each(&mut b, &others);
    let which = b.make(ROWS, &[next]);
    b.branch(which, &[2, 3]);
    b.block_at(&[], 9.0);
    b.jump(1, &[next]);
    b.block(&[]);
    b.op(&[next], &[]);
    let program = b.finish();
    for options in [at_most(8), forced()] {
        by_every_engine(&file(), &program, &options, |allocation| {
            let body = edits_in(&program, allocation, 1);
            assert!(spills(&body) > 0 && fills(&body) > 0, "{body:?}");
            let mut slots: Vec<Slot> = Vec::new();
            for edit in body {
                if let Edit::Spill { slot, .. } = edit {
                    slots.push(slot);
                }
            }
            let stores = slots.len();
            slots.sort_unstable();
            slots.dedup();
            // (A slot may be another value's later: with everything spilled the eight values share some.)
            assert!(options.force_spill || stores == slots.len(), "a value is stored twice");
            let back = edits_in(&program, allocation, 2);
            assert!(spills(&back) <= 1, "{back:?}");
        });
    }
}

/// A25: eighty values cross a selection that uses none of them. They leave and come back once each; none comes back in the
/// selection but on the way out of it.
#[test]
fn a25_values_that_cross_a_selection_in_memory() {
    let mut b = Builder::default();
    b.block(&[]);
    let which = b.make(ROWS, &[]);
    let values = defined(&mut b, 80);
    b.branch(which, &[1, 2]);
    let mut arms = [[VReg(0); 2]; 2];
    for (arm, made) in arms.iter_mut().enumerate() {
        b.block_at(&[], 0.5);
        let inner = defined(&mut b, 20 * arm);
        *made = [b.make(ROWS, &[which]), b.make(ROWS, &[which])];
        read_each(&mut b, &inner);
        b.jump(3, made);
    }
    let merged = b.values(ROWS, 2);
    b.block(&merged);
    read_each(&mut b, &merged);
    read_each(&mut b, &values);
    let program = b.finish();
    by_every_engine(&file(), &program, &at_most(32), |allocation| {
        let edits = all_edits(allocation);
        assert!(spills(&edits) >= 48, "{}", spills(&edits));
        assert!(spills(&edits) <= 82 && fills(&edits) <= 82, "{} and {}", spills(&edits), fills(&edits));
        for arm in [1, 2] {
            let last = program.blocks[arm].insts.end - 1;
            let out = fills(&edits_before(allocation, last));
            assert_eq!(fills(&edits_in(&program, allocation, arm as u32)), out, "arm {arm}");
        }
        // Nothing beyond the limit is ever named.
        let named: std::collections::BTreeSet<Unit> = allocation.places.iter().copied().collect();
        assert!(named.len() <= 32, "{} registers", named.len());
    });
}

/// A26: a loop with two exits, each through a block of one predecessor with a parameter.
#[test]
fn a26_parameters_of_one_argument_behind_a_loop() {
    for (keep, options) in [(0, Options::default()), (12, at_most(8)), (12, forced())] {
        let mut b = Builder::default();
        b.block(&[]);
        let kept = defined(&mut b, keep);
        let start = b.make(ROWS, &[]);
        b.jump(1, &[start]);
        let i = b.value(ROWS, false);
        b.block_at(&[i], 8.0);
        let first = b.make(ROWS, &[i]);
        // Block 1 to 2 (on) and 4 (out, with an argument), block 2 to 3 (back) and 5 (out, likewise).
        b.op(&[first], &[]);
        b.edge(2, &[]);
        b.edge(4, &[first]);
        b.block_at(&[], 8.0);
        let second = b.make(ROWS, &[first, i]);
        b.op(&[second], &[]);
        b.edge(3, &[]);
        b.edge(5, &[second]);
        b.block_at(&[], 7.0);
        b.jump(1, &[second]);
        let closed = b.values(ROWS, 2);
        b.block_at(&closed[..1], 0.5);
        let other = b.make(ROWS, &[closed[0]]);
        b.jump(6, &[other]);
        b.block_at(&closed[1..], 0.5);
        b.jump(6, &[closed[1]]);
        let end = b.value(ROWS, false);
        b.block(&[end]);
        b.op(&[end], &[]);
        read_each(&mut b, &kept);
        let program = b.finish();
        by_every_engine(&file(), &program, &options, |allocation| {
            assert_eq!(allocation.memory_edits, keep != 0);
        });
    }
}

/// A28: the arm with high pressure puts a value out, the other one does not; it is read behind both. Both paths are walked
/// by the judge; the store stands where both have passed.
#[test]
fn a28_a_store_that_both_arms_have_passed() {
    let mut b = Builder::default();
    b.block(&[]);
    let value = b.make(ROWS, &[]);
    let which = b.make(ROWS, &[]);
    b.branch(which, &[1, 2]);
    b.block_at(&[], 0.5);
    let many = defined(&mut b, 12);
    read_each(&mut b, &many);
    b.jump(3, &[]);
    b.block_at(&[], 0.5);
    b.jump(3, &[]);
    b.block(&[]);
    b.op(&[value], &[]);
    let program = b.finish();
    by_every_engine(&file(), &program, &at_most(6), |allocation| {
        assert!(allocation.memory_edits);
        let inside = edits_in(&program, allocation, 1);
        assert!(spills(&inside) > 0, "the arm has no pressure: {inside:?}");
    });
}

/// A30: values that are made again and values that are stored, by turns and of different sizes: only what is stored has
/// slots, one for each of its units, and none is another's.
#[test]
fn a30_slots_beside_recipes() {
    let mut b = Builder::default();
    b.block(&[]);
    let sizes = [1u8, 2, 4, 1, 3, 1];
    let mut values = Vec::new();
    for k in 0..24 {
        let size = sizes[k % sizes.len()];
        let value = if k % 2 == 0 { b.remade(HALVES, size) } else { b.wide_value(HALVES, size, false) };
        b.op(&[], &[value]);
        values.push((value, size));
    }
    for &(value, _) in &values {
        b.op(&[value], &[]);
    }
    let program = b.finish();
    by_every_engine(&halves_file(), &program, &forced(), |allocation| {
        let edits = all_edits(allocation);
        assert!(remakes(&edits) >= 6 && spills(&edits) >= 6, "{edits:?}");
        let mut stored: Vec<u32> = Vec::new();
        for edit in &edits {
            if let Edit::Spill { slot, .. } = edit {
                stored.push(slot.0);
            }
        }
        // All of them live at once, so every slot is written once.
        stored.sort_unstable();
        assert_eq!(stored, (0..allocation.slots).collect::<Vec<_>>());
        let of_stored: u32 = values.iter().skip(1).step_by(2).map(|value| value.1 as u32).sum();
        assert!(allocation.slots <= of_stored, "{} slots, {of_stored} units", allocation.slots);
    });
}

/// A31: an odd number of small values before wide ones. A slot is one unit for all lanes, and each unit of a wide value has
/// its own edit, so slots need no alignment; they follow each other and belong to nobody else.
#[test]
fn a31_wide_values_behind_an_odd_number_of_small_ones() {
    let mut b = Builder::default();
    b.block(&[]);
    let mut values = Vec::new();
    for size in [1u8, 1, 1, 4, 1, 4, 2, 1, 8] {
        let value = b.wide_value(HALVES, size, false);
        b.op(&[], &[value]);
        values.push((value, size));
    }
    let mut reads = Vec::new();
    for &(value, size) in &values {
        reads.push((b.op(&[value], &[]), size));
    }
    let program = b.finish();
    by_every_engine(&halves_file(), &program, &forced(), |allocation| {
        let mut wide = 0;
        for &(inst, size) in &reads {
            let mut slots: Vec<u32> = Vec::new();
            for edit in edits_before(allocation, inst) {
                if let Edit::Fill { slot, .. } = edit {
                    slots.push(slot.0);
                }
            }
            if slots.len() == size as usize {
                let run: Vec<u32> = (slots[0]..slots[0] + size as u32).collect();
                assert_eq!(slots, run);
                wide += (size > 1) as u32;
            }
        }
        assert!(wide >= 4, "only {wide} wide values were filled");
        assert!(allocation.slots >= 20);
    });
}

/// A36: eight hundred values in memory at once: as many slots, each of them named.
#[test]
fn a36_eight_hundred_slots() {
    let mut b = Builder::default();
    b.block(&[]);
    let values = defined(&mut b, 862);
    read_each(&mut b, &values);
    let program = b.finish();
    by_every_engine(&file(), &program, &Options::default(), |allocation| {
        assert!(allocation.slots >= 800, "{}", allocation.slots);
        let mut filled = vec![0u32; allocation.slots as usize];
        for edit in all_edits(allocation) {
            if let Edit::Fill { slot, .. } = edit {
                filled[slot.0 as usize] += 1;
            }
        }
        assert!(filled.iter().all(|&count| count == 1));
    });
}

/// A42: forty values each written on both sides of an inner selection and read right behind it, in a loop: they are not
/// live all through the loop.
#[test]
fn a42_written_on_both_sides_is_written() {
    let mut b = Builder::default();
    b.block(&[]);
    let (outer, inner) = (b.make(ROWS, &[]), b.make(ROWS, &[]));
    let start = b.make(ROWS, &[]);
    b.jump(1, &[start]);
    let mut x = b.value(ROWS, false);
    b.block_at(&[x], 10.0);
    let mut block = 1;
    for _ in 0..40 {
        // 0: outer, 1: inner, 2: no inner, 3 and 4: arms, 5: behind the inner one, 6: behind the outer one.
        b.branch(outer, &[block + 1, block + 2]);
        b.block_at(&[], 5.0);
        b.branch(inner, &[block + 3, block + 4]);
        b.block_at(&[], 5.0);
        b.jump(block + 6, &[x]);
        for _ in 0..2 {
            b.block_at(&[], 2.5);
            let t = b.make(ROWS, &[x]);
            b.jump(block + 5, &[t]);
        }
        let t = b.value(ROWS, false);
        b.block_at(&[t], 5.0);
        let used = b.make(ROWS, &[t]);
        b.jump(block + 6, &[used]);
        x = b.value(ROWS, false);
        b.block_at(&[x], 10.0);
        block += 6;
    }
    b.branch(inner, &[block + 1, block + 2]);
    b.block_at(&[], 9.0);
    b.jump(1, &[x]);
    b.block(&[]);
    b.op(&[x], &[]);
    let program = b.finish();
    by_every_engine(&file(), &program, &Options::default(), |allocation| {
        // The two conditions, x and t.
        assert!(allocation.max_pressure <= 4, "{}", allocation.max_pressure);
        assert!(allocation.edits.len() <= 2 * 40, "{} edits", allocation.edits.len());
    });
}
