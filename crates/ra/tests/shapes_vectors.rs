//! Shapes of bugs of other allocators: groups, wide values, fixed registers and parallel copies. Names are those of the
//! collection of bug shapes; `docs/shapes.md` says where each is tested.
//!
//! Files: 256 halves (aligned groups, wide values, a low part) and 128 units (wide values, calls). Each test shows that
//! its shape was there: the window that had to be cleared, the swaps, the cycle in memory.

#[path = "../testing/mod.rs"]
mod testing;

use kempe_ra::*;
use testing::build::*;
use testing::files::*;
use testing::judge::*;

/// Defined by one instruction each, in these units.
fn defined_in(b: &mut Builder, size: u8, units: impl IntoIterator<Item = u16>) -> Vec<VReg> {
    let define = |unit| {
        let value = b.wide_value(HALVES, size, false);
        b.inst(&[fixed(write(value, HALVES), unit)], NONE, false);
        value
    };
    units.into_iter().map(define).collect()
}

fn reads(values: &[VReg]) -> Vec<Operand> {
    values.iter().map(|&value| read(value, HALVES)).collect()
}

fn read_each(b: &mut Builder, values: &[VReg]) {
    for &value in values {
        b.op(&[value], &[]);
    }
}

/// A14: messages of eight units whose result is written before the source is read, every window of the file taken: the
/// result may not lie over the source, not even in the last window.
#[test]
fn a14_results_keep_off_their_source_in_a_full_file() {
    let mut b = Builder::default();
    b.block(&[]);
    let eight = |b: &mut Builder| b.wide_value(WIDE, 8, false);
    let kept: Vec<VReg> = (0..14).map(|_| eight(&mut b)).collect();
    for &value in &kept {
        b.op(&[], &[value]);
    }
    let mut value = eight(&mut b);
    b.op(&[], &[value]);
    let mut messages = Vec::new();
    for _ in 0..4 {
        let result = eight(&mut b);
        messages.push(b.inst(&[read(value, WIDE), early(result, WIDE)], NONE, false));
        value = result;
    }
    b.op(&[value], &[]);
    for &value in &kept {
        b.op(&[value], &[]);
    }
    let program = b.finish();
    let file = wide_file();
    by_every_engine(&file, &program, &Options::default(), |allocation| {
        assert!(allocation.edits.is_empty(), "sixteen windows are enough: {:?}", allocation.edits);
        let mut last = 0;
        for &message in &messages {
            let places = places_of(&program, allocation, message);
            assert!(places[0].abs_diff(places[1]) >= 8, "{places:?}");
            last += places.contains(&120) as u32;
        }
        assert!(last > 0, "no message used the last window");
    });
}

/// A15: the last message reads two groups, both confined to one part of the file. Neither stands there before.
#[test]
fn a15_both_sources_of_the_last_message_are_confined() {
    let mut b = Builder::default();
    b.block(&[]);
    let low = defined_in(&mut b, 1, 0..64);
    let depth = defined_in(&mut b, 1, 100..104);
    let colour = defined_in(&mut b, 1, 201..205);
    let mut operands = vector(0, 4, depth.iter().map(|&v| read(v, LOW_HALVES)));
    operands.extend(vector(1, 4, colour.iter().map(|&v| read(v, LOW_HALVES))));
    let message = b.inst(&operands, NONE, false);
    read_each(&mut b, &low);
    let program = b.finish();
    for options in [Options::default(), forced()] {
        by_every_engine(&halves_file(), &program, &options, |allocation| {
            let places = places_of(&program, allocation, message);
            assert!(places.iter().all(|&unit| unit < 64), "{places:?}");
            assert_eq!((places[0] % 4, places[4] % 4), (0, 0));
            let edits = edits_before(allocation, message);
            assert!(copies(&edits) + 2 * swaps(&edits) + fills(&edits) >= 8, "{edits:?}");
        });
    }
}

/// A16: eight values that are all in memory when the last instruction gives them away: they are there before it.
#[test]
fn a16_exported_values_are_filled_before_the_export() {
    let mut b = Builder::default();
    b.block(&[]);
    let exported = b.values(HALVES, 8);
    for &value in &exported {
        b.op(&[], &[value]);
    }
    let others = b.values(HALVES, 6);
    for &value in &others {
        b.op(&[], &[value]);
    }
    read_each(&mut b, &others);
    let operands: Vec<Operand> = reads(&exported).into_iter().zip(40..).map(|(op, u)| fixed(op, u)).collect();
    let export = b.inst(&operands, NONE, false);
    let program = b.finish();
    for options in [forced(), at_most(9)] {
        by_every_engine(&halves_file(), &program, &options, |allocation| {
            let filled = fills(&edits_before(allocation, export));
            assert!(filled >= 1 && (filled == 8 || !options.force_spill), "{filled}: {options:?}");
        });
    }
}

/// A17: seven eighths of the file are full, three small values and one of four in every eight units, so that no eight
/// units in a row are free. Eight are needed: small values must not fill what large ones have been moved for.
#[test]
fn a17_a_hole_for_a_large_value_in_a_fragmented_file() {
    let mut b = Builder::default();
    b.block(&[]);
    let small = defined_in(&mut b, 1, (0..96).map(|k| k / 3 * 8 + k % 3));
    let large = defined_in(&mut b, 4, (0..32).map(|k| k * 8 + 4));
    let most = b.wide_value(HALVES, 8, false);
    let needs = b.op(&[], &[most]);
    let group = b.values(HALVES, 8);
    b.op(&[most], &[]);
    // The same once more for a group.
    let wants = b.inst(&vector(0, 8, group.iter().map(|&v| write(v, HALVES))), NONE, false);
    read_each(&mut b, &group);
    read_each(&mut b, &small);
    read_each(&mut b, &large);
    let program = b.finish();
    by_every_engine(&halves_file(), &program, &Options::default(), |allocation| {
        assert!(!allocation.memory_edits, "232 of 256 units are needed: {:?}", allocation.edits);
        let edits = edits_before(allocation, needs);
        // Four units of a large value and three small ones, twice.
        assert!(copies(&edits) + swaps(&edits) >= 7, "nothing was in the way: {edits:?}");
        assert_eq!(places_of(&program, allocation, needs)[0] % 8, 0);
        assert_eq!(places_of(&program, allocation, wants)[0] % 8, 0);
    });
}

/// A18: a group whose members stand across the border of the place it needs, every unit of the file taken and the lowest 32
/// by values that are read there: only exchanges help, and no member may be lost.
#[test]
fn a18_a_group_across_the_border_in_a_full_file() {
    for first in [37u16, 38, 39, 61, 62, 63, 125, 126, 127] {
        let mut b = Builder::default();
        b.block(&[]);
        let values = defined_in(&mut b, 1, 0..256);
        let members = &values[first as usize..first as usize + 4];
        let gather = b.inst(&vector(0, 4, reads(members)), NONE, false);
        let pinned: Vec<Operand> =
            reads(&values[..32]).into_iter().zip(0..).map(|(op, u)| fixed(op, u)).collect();
        b.inst(&pinned, NONE, false);
        read_each(&mut b, &values);
        let program = b.finish();
        by_every_engine(&halves_file(), &program, &Options::default(), |allocation| {
            assert!(!allocation.memory_edits, "{first}: {:?}", allocation.edits);
            let edits = edits_before(allocation, gather);
            assert!(swaps(&edits) > 0, "{first}: {edits:?}");
            assert_eq!(copies(&edits), 0, "{first}: no unit is free: {edits:?}");
            assert_eq!(places_of(&program, allocation, gather)[0] % 4, 0);
        });
    }
}

/// A19: a merge of nine arms, each with a value of its own, one of four units among them.
#[test]
fn a19_a_merge_of_many_arms() {
    const ARMS: u32 = 9;
    let mut b = Builder::default();
    b.block(&[]);
    let which = b.make(HALVES, &[]);
    let kept = b.values(HALVES, 5);
    for &value in &kept {
        b.op(&[], &[value]);
    }
    let from: Vec<VReg> = (0..ARMS).map(|_| b.wide_value(HALVES, 4, false)).collect();
    for &value in &from {
        b.op(&[], &[value]);
    }
    b.branch(which, &(1..=ARMS).collect::<Vec<_>>());
    for arm in 0..ARMS {
        b.block_at(&[], 1.0 / ARMS as f32);
        let mine = b.make(HALVES, &[which]);
        b.jump(ARMS + 1, &[mine, from[arm as usize], kept[arm as usize % 5]]);
    }
    let params = [b.value(HALVES, false), b.wide_value(HALVES, 4, false), b.value(HALVES, false)];
    b.block(&params);
    b.op(&params, &[]);
    read_each(&mut b, &kept);
    let program = b.finish();
    for options in [Options::default(), at_most(12), forced()] {
        by_every_engine(&halves_file(), &program, &options, |allocation| {
            // All arms but one have the large value elsewhere.
            let mut edges = 0;
            for arm in 1..=ARMS {
                let last = program.blocks[arm as usize].insts.end - 1;
                edges += !edits_before(allocation, last).is_empty() as u32;
            }
            assert!(edges >= ARMS - 1, "only {edges} arms bring their values");
        });
    }
}

/// A20: a group of three and later a group of two with a common member at the front and one at another position, the
/// first read after both.
#[test]
fn a20_a_member_of_two_groups_that_lives_on() {
    for (align, other) in [(4, 2), (1, 1), (2, 4)] {
        let mut b = Builder::default();
        b.block(&[]);
        let [x, y, z] = [0; 3].map(|_| b.make(HALVES, &[]));
        b.inst(&vector(0, align, reads(&[x, y, z])), NONE, false);
        let second = b.inst(&vector(0, other, reads(&[x, z])), NONE, false);
        b.op(&[x], &[]);
        b.op(&[z], &[]);
        // Both groups at once, and the members the other way round.
        let mut both = vector(0, align, reads(&[x, z, x]));
        both.extend(vector(1, other, reads(&[z, x])));
        let together = b.inst(&both, NONE, false);
        b.op(&[x, z], &[]);
        let program = b.finish();
        for options in [Options::default(), at_most(12), forced()] {
            by_every_engine(&halves_file(), &program, &options, |allocation| {
                assert!(
                    !edits_before(allocation, second).is_empty(),
                    "z stood where the second group wants it"
                );
                assert!(edits_before(allocation, together).len() >= 3, "three more places are needed");
            });
        }
    }
}

/// A21: groups gathered from every other one of as many values as there are registers: there is no more room, and
/// none is needed.
#[test]
fn a21_groups_gathered_at_the_limit() {
    for (registers, members) in [(8u32, 4usize), (16, 8), (32, 16), (64, 16)] {
        let mut b = Builder::default();
        b.block(&[]);
        let values = b.values(HALVES, registers as usize);
        for &value in &values {
            b.op(&[], &[value]);
        }
        let stride = registers as usize / members;
        let group: Vec<VReg> = values.iter().copied().skip(stride - 1).step_by(stride).collect();
        let gather = b.inst(&vector(0, members as u8, reads(&group)), NONE, false);
        read_each(&mut b, &values);
        let program = b.finish();
        by_every_engine(&halves_file(), &program, &at_most(registers), |allocation| {
            assert!(!allocation.memory_edits, "{registers}: {:?}", allocation.edits);
            // (Where the places of the group are chosen before those of the values, nothing has to move.)
            if allocation.engine == Engine::Scan {
                let edits = edits_before(allocation, gather);
                assert!(swaps(&edits) >= members / 2, "{registers}: {edits:?}");
                assert_eq!(copies(&edits), 0, "{registers}: no unit is free");
            }
        });
    }
}

/// A22: six values that change places with each other in every round of a loop and live in memory: no register is free
/// where they do. Every part is moved once, plus one that makes room, plus what is lent.
#[test]
fn a22_a_cycle_of_values_in_memory() {
    const CYCLE: usize = 6;
    for size in [1u8, 2] {
        let mut b = Builder::default();
        b.block(&[]);
        let busy = b.values(HALVES, 4);
        for &value in &busy {
            b.op(&[], &[value]);
        }
        let start: Vec<VReg> = (0..CYCLE).map(|_| b.wide_value(HALVES, size, false)).collect();
        for &value in &start {
            b.op(&[], &[value]);
        }
        let params: Vec<VReg> = (0..CYCLE).map(|_| b.wide_value(HALVES, size, false)).collect();
        b.jump(1, &start);
        b.block_at(&params, 10.0);
        for _ in 0..4 {
            b.op(&busy, &[]);
        }
        b.branch(busy[0], &[2, 3]);
        b.block_at(&[], 9.0);
        let mut turned = params.clone();
        turned.rotate_left(1);
        b.jump(1, &turned);
        let back = b.0.insts.len() as u32 - 1;
        b.block(&[]);
        read_each(&mut b, &params);
        let program = b.finish();
        for options in [at_most(4), forced()] {
            by_every_engine(&halves_file(), &program, &options, |allocation| {
                let edits = edits_before(allocation, back);
                let (stores, loads) = (spills(&edits), fills(&edits));
                let parts = CYCLE * size as usize;
                assert!(stores >= parts && loads >= parts, "they do not change places in memory: {edits:?}");
                // One part aside, two lent registers for wide ones at most.
                let most = parts + 3 * size as usize;
                assert!(stores <= most && loads <= most, "{stores} stores and {loads} loads: {edits:?}");
            });
        }
    }
}

/// A23: the same value alone in one group and with another one in a second group; the other members read nothing.
#[test]
fn a23_a_value_in_a_partly_empty_group_and_in_a_fuller_one() {
    let mut b = Builder::default();
    b.block(&[]);
    let occupied = defined_in(&mut b, 1, [0, 1]);
    let [x, y] = [0; 2].map(|_| b.make(HALVES, &[]));
    let nothing = b.value(HALVES, true);
    let one = [x, nothing, nothing, nothing];
    let two = [x, y, nothing, nothing];
    let first = b.inst(&vector(0, 4, reads(&one)), NONE, false);
    b.inst(&vector(0, 4, reads(&two)), NONE, false);
    let mut both = vector(0, 4, reads(&one));
    both.extend(vector(1, 4, reads(&[y, x, nothing, nothing])));
    b.inst(&both, NONE, false);
    read_each(&mut b, &occupied);
    b.op(&[x, y], &[]);
    let program = b.finish();
    for options in [Options::default(), at_most(12), forced()] {
        by_every_engine(&halves_file(), &program, &options, |allocation| {
            let scanned = allocation.engine == Engine::Scan;
            let edits = edits_before(allocation, first);
            assert!(!scanned || !edits.is_empty(), "x stood at the front of four units already");
        });
    }
}

/// A46 with a group: an instruction whose own operands are all the registers there are, each of them in memory before. One
/// register less is refused, by its name.
#[test]
fn a46_a_group_of_fills() {
    let mut b = Builder::default();
    b.block(&[]);
    let members = b.values(HALVES, 8);
    for &value in &members {
        b.op(&[], &[value]);
    }
    let others = b.values(HALVES, 8);
    for &value in &others {
        b.op(&[], &[value]);
    }
    read_each(&mut b, &others);
    let wants = b.inst(&vector(0, 8, reads(&members)), NONE, false);
    read_each(&mut b, &members);
    let program = b.finish();
    by_every_engine(&halves_file(), &program, &at_most(8), |allocation| {
        assert!(fills(&edits_before(allocation, wants)) >= 4, "{:?}", allocation.edits);
    });
    for engine in ENGINES {
        let options = Options { engine, ..at_most(7) };
        match allocate(&halves_file(), &program, &Costs::default(), &options) {
            Err(Failure::OutOfRegisters { at, .. }) => assert_eq!(at.0, wants),
            other => panic!("{other:?}"),
        }
    }
}

/// A47 with groups: of a hundred and forty live groups of four, three members are undefined. They take nothing, and
/// nothing of them is stored.
#[test]
fn a47_undefined_members_are_not_spilled() {
    const COUNT: usize = 140;
    let mut b = Builder::default();
    b.block(&[]);
    let values = b.values(HALVES, COUNT);
    for &value in &values {
        b.op(&[], &[value]);
    }
    let nothing: Vec<VReg> = (0..3 * COUNT).map(|_| b.value(HALVES, true)).collect();
    for (k, &value) in values.iter().enumerate() {
        let members = [nothing[3 * k], value, nothing[3 * k + 1], nothing[3 * k + 2]];
        b.inst(&vector(0, 4, reads(&members)), NONE, false);
    }
    read_each(&mut b, &values);
    let program = b.finish();
    by_every_engine(&halves_file(), &program, &Options::default(), |allocation| {
        assert!(!allocation.memory_edits, "140 values fit in 256 units");
    });
    by_every_engine(&halves_file(), &program, &at_most(16), |allocation| {
        let edits = all_edits(allocation);
        assert!(spills(&edits) > 0 && spills(&edits) <= COUNT, "{} spills", spills(&edits));
        assert!(allocation.slots as usize <= COUNT, "{} slots", allocation.slots);
        assert!(allocation.work.attempts <= most_attempts(allocation), "{:?}", allocation.work);
    });
}
