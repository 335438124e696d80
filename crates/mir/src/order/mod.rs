//! Scheduling before allocation, inside blocks: long operations early, pressure within bounds.
//!
//! For each block a few orders are made: by latency ([`list`]), and where that takes more registers than there are, the
//! same for lower limits, the old order, by demand ([`demand`]), and from the end ([`backward`]: greedy, then searched for).
//! [`cost`] says what each moves to memory and back; the one that moves least is taken. (128 values in a sorting network:
//! 482 stores and loads instead of 3,890 in the old order.)
//!
//! Left out: motion between blocks.

mod backward;
mod cost;
mod demand;
mod graph;
mod list;

use crate::function::Mir;
use crate::live::Live;
use graph::{Graph, Numbers};

/// What the scheduler must know of a machine instruction.
pub trait Schedule {
    /// Cycles until its results can be used, for the priorities.
    fn latency(&self) -> u32;
    /// What it does to memory.
    fn memory(&self) -> Memory;
    /// Stays first (the entry) or last (terminators).
    fn pinned(&self) -> bool;
    /// May be placed right before its first user: it reads no register and touches no memory.
    fn is_cheap(&self) -> bool;
}

/// Effect on memory. Classes are bit sets; accesses of disjoint classes are independent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    None,
    Read(u8),
    Write(u8),
    /// A write to a place that no other instruction of the function writes: it keeps its order with reads of the
    /// class and with other writes, but not with other outputs.
    Output(u8),
    /// Ordered with every access.
    Fence,
}

/// Ready instructions looked at for one choice: bounds the time in huge blocks.
const WINDOW: usize = 48;

/// How many registers there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// An order that keeps to so many is not looked at further: a little less than there are leaves the allocator some choice.
    pub aim: u32,
    /// What is there before anything has to go.
    pub registers: u32,
    /// Cycles of an access to memory: what it really takes, or more where a program without any may have more threads.
    pub memory: u32,
}

/// Orders that are not made, to measure what they bring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Without {
    /// By latency: then the one by demand is the first to be looked at.
    pub latency: bool,
    /// By latency for lower limits.
    pub lower: bool,
    /// The old one.
    pub source: bool,
    pub demand: bool,
    /// From the end, greedy.
    pub backward: bool,
    /// From the end, searched for.
    pub search: bool,
}

impl Without {
    /// Every order with its name.
    pub fn parts(&mut self) -> [(&'static str, &mut bool); 6] {
        [
            ("order-latency", &mut self.latency),
            ("order-lower", &mut self.lower),
            ("order-source", &mut self.source),
            ("order-demand", &mut self.demand),
            ("order-backward", &mut self.backward),
            ("order-search", &mut self.search),
        ]
    }
}

/// Reorders the instructions of every block. Gives the cycles that stores, loads and what is made again are reckoned to take, each as
/// often as its block runs: beside what allocation then does ([`crate::Stats`]) it says how good the estimate is.
pub fn order<I: Schedule + Copy>(mir: &mut Mir<I>, room: Room, without: Without) -> f64 {
    let mut predicted = 0.0;
    let live = Live::new(mir);
    let mut numbers = Numbers::new(mir.program.vregs.len());
    let mut lives_out = vec![false; mir.program.vregs.len()];
    for b in 0..mir.program.blocks.len() {
        let range = mir.program.blocks[b].insts.clone();
        if range.len() < 3 {
            continue;
        }
        live.mark_out(mir, b, &mut lives_out);
        let graph =
            Graph::new(mir, (range.start, range.end), live.at_start(mir, b), &lives_out, &mut numbers);
        live.unmark_out(mir, b, &mut lives_out);
        let Candidate { least, order: new } = best(&graph, room, without);
        predicted += f64::from(least) * f64::from(mir.program.blocks[b].frequency);
        if !new.iter().copied().eq(0..new.len() as u32) {
            apply(mir, range.start as usize, &new);
        }
    }
    predicted
}

/// The order with the least memory traffic; by latency, if that fits.
fn best(g: &Graph, room: Room, without: Without) -> Candidate {
    let by_demand = demand::schedule(g);
    let mut rank = vec![0; g.len()];
    for (at, &k) in by_demand.iter().enumerate() {
        rank[k as usize] = at as u32;
    }
    let first = match without.latency {
        true => by_demand.clone(),
        false => list::schedule(g, &rank, room.aim),
    };
    if cost::pressure(g, &first) <= room.aim {
        return Candidate { least: 0, order: first };
    }
    // Something will go to memory or be made again: whichever order costs least.
    let mut best = Candidate { least: u32::MAX, order: Vec::new() };
    if !without.source {
        best.consider(g, room, (0..g.len() as u32).collect());
    }
    best.consider(g, room, first);
    if !without.lower {
        best.consider(g, room, list::schedule(g, &rank, room.aim / 2));
        best.consider(g, room, list::schedule(g, &rank, 0));
    }
    if !without.demand {
        best.consider(g, room, by_demand);
    }
    if !without.backward {
        best.consider(g, room, backward::schedule(g));
    }
    if !without.search && best.least > 0 && g.len() <= backward::MAX_SEARCHED {
        best.consider(g, room, backward::search(g, room.aim));
    }
    best
}

struct Candidate {
    least: u32,
    order: Vec<u32>,
}

impl Candidate {
    fn consider(&mut self, g: &Graph, room: Room, order: Vec<u32>) {
        let cost = cost::traffic(g, &order, room);
        if cost < self.least {
            *self = Candidate { least: cost, order };
        }
    }
}

fn apply<I: Copy>(mir: &mut Mir<I>, start: usize, order: &[u32]) {
    let pick = |k: &u32| start + *k as usize;
    let insts: Vec<_> = order.iter().map(|k| mir.program.insts[pick(k)].clone()).collect();
    let data: Vec<_> = order.iter().map(|k| mir.data[pick(k)]).collect();
    let locs: Vec<_> = order.iter().map(|k| mir.locs[pick(k)]).collect();
    for (n, inst) in insts.into_iter().enumerate() {
        mir.program.insts[start + n] = inst;
    }
    mir.data[start..start + order.len()].copy_from_slice(&data);
    mir.locs[start..start + order.len()].copy_from_slice(&locs);
}
