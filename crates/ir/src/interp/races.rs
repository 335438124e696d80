//! Data races: two invocations that touch the same byte with nothing between them, one of them writing something new.
//!
//! What such a program computes depends on the order in which invocations run, so it says nothing about a compiler.
//! Every byte remembers who wrote and who read it last, and in which *epoch* (stretch between barriers). Two accesses
//! conflict when they come from different invocations, at least one changes the byte, and they lie in the same epoch or
//! in different work-groups. Atomic accesses do not conflict with each other. A store of the value that is already
//! there changes nothing and is no race.
//!
//! Each byte remembers its last writer and all readers since, so that every race is found: if an access is in order
//! with the latest ones before it, it is in order with all.

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

/// Who made the accesses of one kind that later ones must be in order with.
#[derive(Clone, Copy, Default)]
struct Stamp {
    /// Local index plus one; 0: nobody; [`SEVERAL`].
    who: u32,
    /// [`SEVERAL`] when they are of several work-groups.
    group: u32,
    epoch: u32,
}

const SEVERAL: u32 = u32::MAX;

impl Stamp {
    /// Nothing orders these accesses before one of `me`.
    fn meets(&self, me: Stamp) -> bool {
        let same = self.who == me.who && self.group == me.group;
        self.who != 0 && !same && (self.group != me.group || self.epoch == me.epoch)
    }

    /// `me` joins; earlier ones that are in order before it need not be remembered.
    fn join(&mut self, me: Stamp) {
        if !self.meets(me) {
            *self = me;
        } else {
            let group = if self.group == me.group { me.group } else { SEVERAL };
            *self = Stamp { who: SEVERAL, group, epoch: me.epoch };
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    /// Those that wrote the value that is there.
    writer: Stamp,
    reader: Stamp,
    /// The writers were atomic.
    atomic: bool,
    /// They changed the value.
    changed: bool,
}

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
            if r.writable && Some(n) != scratch { vec![Cell::default(); r.bytes.len()] } else { Vec::new() }
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
            cells.fill(Cell::default());
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
        let me = Stamp { who: lane.local_index + 1, group, epoch: self.epoch };
        for n in 0..bytes as usize {
            let cell = &mut self.cells[region][offset + n];
            let changes = match how {
                Touch::Read => false,
                Touch::Write(mask) => mask >> (8 * n) & 0xff != 0,
                Touch::Atomic => true,
            };
            let both_atomic = how == Touch::Atomic && cell.atomic;
            let with_write = cell.writer.meets(me);
            let conflict = if with_write && !both_atomic && (changes || how == Touch::Read && cell.changed) {
                Some(cell.writer)
            } else if changes && cell.reader.meets(me) {
                Some(cell.reader)
            } else {
                None
            };
            if let Some(other) = conflict {
                self.first = Some(Race {
                    region: memory.regions()[region].name.clone(),
                    offset: offset + n,
                    first: (other.group, other.who.wrapping_sub(1)),
                    second: (me.group, me.who - 1),
                });
                return;
            }
            match how {
                Touch::Read => cell.reader.join(me),
                _ => {
                    // Without an order between them, all of these writers count; otherwise the last.
                    let again = cell.writer.who == me.who && cell.writer.group == me.group;
                    let earlier = (with_write || again && cell.writer.epoch == me.epoch) && cell.changed;
                    cell.writer.join(me);
                    cell.changed = changes || earlier;
                    cell.atomic = how == Touch::Atomic;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(group: u32, local_index: u32) -> LaneContext {
        LaneContext { group: [group, 0, 0], local_index, wg_in_memory: 0, workgroup_items: 64 }
    }

    /// Whether a list of accesses races; `None` is a barrier.
    fn race(list: &[Option<(LaneContext, Touch)>]) -> bool {
        let mut memory = Memory::new();
        memory.place("a", vec![0; 8], true).unwrap();
        let mut r = Races { cells: vec![vec![Cell::default(); 8]], shared: None, epoch: 1, first: None };
        for access in list {
            match access {
                Some((lane, how)) => r.touch(&memory, Place::Flat(0, 4), 2, lane, *how),
                None => r.barrier(),
            }
        }
        r.first.is_some()
    }

    #[test]
    fn orders() {
        use Touch::{Atomic, Read};
        let (a, b, c, d) = (lane(0, 1), lane(0, 2), lane(1, 1), lane(0, 3));
        let write = Touch::Write(0xff);
        let same = Touch::Write(0);
        let s = |l: LaneContext, t: Touch| Some((l, t));
        assert!(!race(&[s(a, write), s(a, Read), s(a, write)]));
        assert!(race(&[s(a, write), s(b, Read)]));
        assert!(race(&[s(a, write), s(c, Read)]));
        assert!(!race(&[s(a, write), None, s(b, Read)]));
        assert!(race(&[s(a, write), None, s(c, Read)]));
        assert!(race(&[s(a, Read), s(b, write)]));
        assert!(!race(&[s(a, Read), None, s(b, write)]));
        // One of several readers is not in order with the writer.
        assert!(race(&[s(a, Read), s(b, Read), s(a, write)]));
        assert!(race(&[s(a, Read), s(b, Read), s(b, write)]));
        assert!(race(&[s(c, Read), s(a, Read), None, s(a, write)]));
        assert!(!race(&[s(a, Read), s(d, Read), None, s(b, write)]));
        // The value that is there already.
        assert!(!race(&[s(a, same), s(b, Read), s(c, same)]));
        assert!(race(&[s(a, write), s(b, same), s(c, Read)]));
        assert!(race(&[s(a, same), s(b, write)]));
        assert!(race(&[s(a, write), s(a, same), s(b, Read)]));
        // Atomics among themselves, and with others.
        assert!(!race(&[s(a, Atomic), s(b, Atomic), s(c, Atomic)]));
        assert!(!race(&[s(a, Atomic), s(b, Atomic), None, s(d, Read)]));
        assert!(race(&[s(a, Atomic), s(c, Atomic), None, s(d, Read)]));
        assert!(race(&[s(a, Atomic), s(b, Read)]));
        assert!(race(&[s(a, write), s(b, Atomic)]));
    }
}
