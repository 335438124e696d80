//! Shapes on which other compilers took minutes or never ended. What is asserted is counted work, the same on every
//! machine: attempts, blocks visited, edits. Seconds are measured by the example `growth`. Names are those of the
//! collection of bug shapes; `docs/shapes.md` says where each is tested.

#[path = "../testing/mod.rs"]
mod testing;

use kempe_ra::*;
use testing::build::*;
use testing::files::*;
use testing::grow::{a44, a45, a48, a49, nested};
use testing::judge::*;

fn file() -> RegisterFile {
    rows_file(64, 0)
}

fn blocks(program: &Program) -> u64 {
    program.blocks.len() as u64
}

/// A44: six hundred values derived from uniforms, live at once: two attempts, not one for each value, and no value is
/// stored or filled twice.
#[test]
fn a44_attempts_do_not_count_values() {
    for values in [600, 2400] {
        let program = a44(values);
        by_every_engine(&file(), &program, &Options::default(), |allocation| {
            let edits = all_edits(allocation);
            let through = values as usize - 62;
            assert!(spills(&edits) >= through, "{} spills", spills(&edits));
            assert!(spills(&edits) <= through + 2 && fills(&edits) <= through + 2, "{} fills", fills(&edits));
            assert!(allocation.work.attempts <= most_attempts(allocation), "{:?}", allocation.work);
        });
    }
}

/// A45: functions inlined in two loops under pressure. Nothing is built anew for each spill: liveness runs a fixed number
/// of times, whatever is spilled.
#[test]
fn a45_nothing_is_built_anew_for_each_spill() {
    for functions in [5, 20] {
        let program = a45(functions);
        by_every_engine(&file(), &program, &at_most(8), |allocation| {
            let edits = all_edits(allocation);
            assert!(spills(&edits) + fills(&edits) > 10 * functions as usize, "{} edits", edits.len());
            assert!(allocation.work.attempts <= most_attempts(allocation), "{:?}", allocation.work);
            // Once at the beginning and at most three times in each attempt, at most twice for each block of a loop.
            assert!(allocation.work.live_visits <= 7 * 2 * blocks(&program), "{:?}", allocation.work);
        });
    }
}

/// A48: each of five thousand uses wants another register: one copy and one settled point for each, no more.
#[test]
fn a48_every_use_wants_another_register() {
    for uses in [50, 5000] {
        let program = a48(uses);
        by_every_engine(&file(), &program, &Options::default(), |allocation| {
            let edits = all_edits(allocation);
            assert!(copies(&edits) >= uses as usize - 1, "the uses agree: {} copies", copies(&edits));
            assert!(edits.len() <= uses as usize, "{} edits", edits.len());
            let work = allocation.work;
            assert!(work.attempts == 1 && work.settled <= uses as u64, "{work:?}");
        });
    }
}

/// A49: a chain of five thousand small selections: without loops data flow visits each block once.
#[test]
fn a49_data_flow_visits_a_block_once() {
    for count in [50, 5000] {
        let program = a49(count);
        by_every_engine(&file(), &program, &Options::default(), |allocation| {
            let work = allocation.work;
            // Once at the beginning, once in the only attempt.
            assert!(work.live_visits > 0 && work.live_visits <= 2 * blocks(&program), "{work:?}");
            assert_eq!(work.check_visits, blocks(&program), "{work:?}");
        });
    }
}

/// A50: sixty selections in each other in a loop: a block is visited twice at most (loop depth + 1), however long it is.
#[test]
fn a50_nested_selections_in_a_loop() {
    for (depth, runs) in [(60, 4), (60, 40), (240, 4)] {
        let program = nested(depth, runs);
        for options in [Options::default(), at_most(8)] {
            by_every_engine(&file(), &program, &options, |allocation| {
                let work = allocation.work;
                let steps = program.insts.len() as u64 + allocation.edits.len() as u64;
                assert!(work.attempts <= most_attempts(allocation), "{work:?}");
                assert!(work.live_visits <= 2 * 3 * work.attempts as u64 * blocks(&program), "{work:?}");
                assert!(work.check_visits <= 3 * blocks(&program), "{work:?}");
                assert!(work.placed <= work.attempts as u64 * steps, "{work:?}");
            });
        }
    }
}

/// A53: a value that is read eight loops deep beside an instruction with a fixed register that the value stands in, its
/// blocks running ever more often, in the end too often for any number.
#[test]
fn a53_a_value_in_a_deep_nest_beside_a_fixed_register() {
    const DEPTH: u32 = 8;
    for factor in [10.0f32, 1e6, f32::INFINITY, f32::NAN, 0.0, -1.0] {
        let mut b = Builder::default();
        b.block(&[]);
        let value = b.value(ROWS, false);
        b.inst(&[fixed(write(value, ROWS), 5)], NONE, false);
        let others = (0..6).map(|_| b.make(ROWS, &[])).collect::<Vec<_>>();
        let mut params = Vec::new();
        for level in 1..=DEPTH {
            let carried = b.value(ROWS, false);
            b.jump(level, &[others[level as usize % 6]]);
            b.block_at(&[carried], factor.powi(level as i32));
            params.push(carried);
        }
        let wanted = b.value(ROWS, false);
        let pinned = b.inst(
            &[fixed(read(others[0], ROWS), 5), read(value, ROWS), fixed(write(wanted, ROWS), 5)],
            NONE,
            false,
        );
        b.op(&[wanted, value], &[]);
        for level in (1..=DEPTH).rev() {
            let block = b.0.blocks.len() as u32;
            b.branch(params[level as usize - 1], &[block, block + 1]);
            b.block_at(&[], factor.powi(level as i32));
            b.jump(level, &[params[level as usize - 1]]);
            b.block_at(&[], factor.powi(level as i32 - 1));
        }
        b.op(&others, &[]);
        b.op(&[value], &[]);
        let program = b.finish();
        for options in [Options::default(), at_most(8), forced()] {
            by_every_engine(&file(), &program, &options, |allocation| {
                let places = places_of(&program, allocation, pinned);
                assert!(places[0] == 5 && places[2] == 5 && places[1] != 5, "{places:?}");
                assert!(allocation.work.attempts <= most_attempts(allocation), "{:?}", allocation.work);
            });
        }
    }
}
