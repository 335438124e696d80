//! Data races: two invocations that touch the same byte with nothing between them, one of them writing something new.
//!
//! What such a program computes depends on the order in which invocations run, so it says nothing about a compiler.
//! Every byte remembers who wrote and who read it last, and in which *epoch* (stretch between barriers). Two accesses
//! conflict when they come from different invocations, at least one changes the byte, and they lie in the same epoch or
//! in different work-groups. Atomic accesses do not conflict with each other. A store of the value that is already
//! there changes nothing and is no race.
//!
//! Left out: of several readers only the last is remembered, so a race of three can be missed.

use super::access::Place;
use crate::exec::{Environment, LaneContext, Memory, Region};
use std::fmt;

/// The first race of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// Name of the buffer, and the byte in it.
    pub region: String,
    pub offset: usize,
    /// What met: a store, a load or an atomic, by work-group number and local index.
    pub first: (u32, u32),
    pub second: (u32, u32),
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((g1, l1), (g2, l2)) = (self.first, self.second);
        write!(
            f,
            "a race: invocation {l1} of work-group {g1} and invocation {l2} of work-group {g2} at byte {} of `{}`",
            self.offset, self.region
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    group: u32,
    /// Local index plus one; 0: nobody.
    who: u32,
    epoch: u32,
}

const NOBODY: Stamp = Stamp { group: 0, who: 0, epoch: 0 };
/// An atomic access: by nobody in particular.
const ATOMIC: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Cell {
    writer: Stamp,
    reader: Stamp,
}

const UNTOUCHED: Cell = Cell { writer: NOBODY, reader: NOBODY };

/// Who touched what.
pub(super) struct Races {
    cells: Vec<Vec<Cell>>,
    shared: Option<usize>,
    epoch: u32,
    pub first: Option<Race>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    /// The bytes that the store changes, as a mask from the first one.
    Write(u64),
    Atomic,
}

impl Races {
    /// Watches every region that can be written, but for the scratch memory of the hardware threads.
    pub fn new(env: &Environment) -> Races {
        let memory = &env.memory;
        let scratch = memory.region_at(env.scratch_base);
        let watched = |(n, r): (usize, &Region)| {
            if r.writable && Some(n) != scratch { vec![UNTOUCHED; r.bytes.len()] } else { Vec::new() }
        };
        Races {
            cells: memory.regions().iter().enumerate().map(watched).collect(),
            shared: memory.region_at(env.shared_base),
            epoch: 1,
            first: None,
        }
    }

    /// Other work-groups get the shared memory.
    pub fn new_workgroups(&mut self) {
        self.epoch += 1;
        if let Some(cells) = self.shared.map(|r| &mut self.cells[r]) {
            cells.fill(UNTOUCHED);
        }
    }

    /// All invocations of a work-group have met.
    pub fn barrier(&mut self) {
        self.epoch += 1;
    }

    pub fn touch(&mut self, memory: &Memory, place: Place, bytes: u32, lane: &LaneContext, how: Touch) {
        let Place::Flat(region, offset) = place else { return };
        if self.cells[region].is_empty() || self.first.is_some() {
            return;
        }
        let group = lane.group[0].wrapping_add(lane.group[1] << 11).wrapping_add(lane.group[2] << 21);
        let who = if how == Touch::Atomic { ATOMIC } else { lane.local_index + 1 };
        let me = Stamp { group, who, epoch: self.epoch };
        let meets = |other: Stamp| {
            let same = other.who == me.who && other.group == me.group;
            let both_atomic = other.who == ATOMIC && who == ATOMIC;
            other.who != 0 && !same && !both_atomic && (other.epoch == me.epoch || other.group != me.group)
        };
        for n in 0..bytes as usize {
            let cell = &mut self.cells[region][offset + n];
            let changes = match how {
                Touch::Read => false,
                Touch::Write(mask) => mask >> (8 * n) & 0xff != 0,
                Touch::Atomic => true,
            };
            let conflict = if meets(cell.writer) && (changes || how == Touch::Read) {
                Some(cell.writer)
            } else if changes && meets(cell.reader) {
                Some(cell.reader)
            } else {
                None
            };
            if let Some(other) = conflict {
                self.first = Some(Race {
                    region: memory.regions()[region].name.clone(),
                    offset: offset + n,
                    first: (other.group, other.who.wrapping_sub(1)),
                    second: (me.group, me.who.wrapping_sub(1)),
                });
                return;
            }
            match how {
                Touch::Read => cell.reader = me,
                // A store that changes nothing is as good as a read.
                Touch::Write(_) if !changes => cell.reader = me,
                _ => cell.writer = me,
            }
        }
    }
}
