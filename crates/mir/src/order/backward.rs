//! Backwards, for few registers: from the end, whatever makes the least live comes next.
//!
//! Greedy, and as a beam search: several unfinished orders are kept, those with the least excess over the limit so far.
//! Of orders of the same instructions only the best goes on. (Beam search for scheduling: Lowerre 1976; register
//! pressure from the end: as the schedulers of LLVM do it.)

use super::WINDOW;
use super::graph::Graph;
use rustc_hash::FxHashMap;

/// Greedy: of equals, what was asked for last.
pub(super) fn schedule(g: &Graph) -> Vec<u32> {
    let mut state = State::new(g);
    while !state.ready.is_empty() {
        let from = state.ready.len().saturating_sub(WINDOW);
        let best = (from..state.ready.len())
            .min_by_key(|&at| (state.delta(g, state.ready[at]), std::cmp::Reverse(at)))
            .unwrap_or(from);
        state.place(g, best, 0);
    }
    state.finish()
}

/// Unfinished orders that are kept, and ways on from each that are looked at.
const BEAM: usize = 12;
const WAYS: usize = 6;
/// Instructions up to which a block is searched: the time grows with their square.
pub(super) const MAX_SEARCHED: usize = 600;

/// Beam search for the least excess over `limit` registers, summed up over the block.
pub(super) fn search(g: &Graph, limit: u32) -> Vec<u32> {
    let mut beam = vec![State::new(g)];
    // A number for every instruction; a set of them is the exclusive or of its members'.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let names: Vec<u64> = (0..g.len())
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        })
        .collect();
    let mut ways: Vec<(u64, i32, usize, usize)> = Vec::new();
    let mut seen: FxHashMap<u64, ()> = FxHashMap::default();
    for _ in 0..g.len() {
        ways.clear();
        for (b, state) in beam.iter().enumerate() {
            let from = state.ready.len().saturating_sub(WINDOW);
            let mut own: Vec<(i32, usize)> =
                (from..state.ready.len()).map(|at| (state.delta(g, state.ready[at]), at)).collect();
            own.sort_by_key(|&(delta, at)| (delta, std::cmp::Reverse(at)));
            for &(delta, at) in own.iter().take(WAYS) {
                let excess = state.excess + over(state.peak(g, state.ready[at]), limit);
                ways.push((excess, state.live + delta, b, at));
            }
        }
        ways.sort_by_key(|&(excess, live, b, at)| (excess, live, b, std::cmp::Reverse(at)));
        seen.clear();
        let mut next: Vec<State> = Vec::with_capacity(BEAM);
        for &(_, _, b, at) in &ways {
            let name = beam[b].name ^ names[beam[b].ready[at] as usize];
            if seen.insert(name, ()).is_some() {
                continue;
            }
            let mut state = beam[b].clone();
            state.place(g, at, limit);
            state.name = name;
            next.push(state);
            if next.len() == BEAM {
                break;
            }
        }
        beam = next;
    }
    beam.into_iter().next().map(State::finish).unwrap_or_default()
}

fn over(live: i32, limit: u32) -> u64 {
    (live - limit as i32).max(0) as u64
}

#[derive(Clone)]
struct State {
    /// Placed so far, last instruction first.
    out: Vec<u32>,
    waiting: Vec<u32>,
    ready: Vec<u32>,
    is_live: Vec<bool>,
    live: i32,
    excess: u64,
    name: u64,
}

impl State {
    fn new(g: &Graph) -> State {
        let waiting: Vec<u32> = g.nodes.iter().map(|node| node.succs.len() as u32).collect();
        let ready = (0..g.len() as u32).filter(|&k| waiting[k as usize] == 0).collect();
        let live = g.passing as i32 + g.lives_out.iter().filter(|&&out| out).count() as i32;
        State {
            out: Vec::with_capacity(g.len()),
            waiting,
            ready,
            is_live: g.lives_out.clone(),
            live,
            excess: 0,
            name: 0,
        }
    }

    /// Registers that begin to be live before the node, less those that it writes.
    fn delta(&self, g: &Graph, k: u32) -> i32 {
        let node = &g.nodes[k as usize];
        let ends = node.defs.iter().filter(|&&v| self.is_live[v as usize]).count() as i32;
        let begins = node.uses.iter().filter(|&&v| !self.is_live[v as usize]).count() as i32;
        begins - ends
    }

    /// Registers in use while the node reads, or while it writes.
    fn peak(&self, g: &Graph, k: u32) -> i32 {
        let node = &g.nodes[k as usize];
        let unread = node.defs.iter().filter(|&&v| !self.is_live[v as usize]).count() as i32;
        (self.live + unread).max(self.live + self.delta(g, k))
    }

    fn place(&mut self, g: &Graph, at: usize, limit: u32) {
        let k = self.ready[at];
        self.excess += over(self.peak(g, k), limit);
        self.live += self.delta(g, k);
        self.ready.remove(at);
        let node = &g.nodes[k as usize];
        for &v in &node.defs {
            self.is_live[v as usize] = false;
        }
        for &v in &node.uses {
            self.is_live[v as usize] = true;
        }
        self.out.push(k);
        for &p in &node.preds {
            self.waiting[p as usize] -= 1;
            if self.waiting[p as usize] == 0 {
                self.ready.push(p);
            }
        }
    }

    fn finish(mut self) -> Vec<u32> {
        self.out.reverse();
        self.out
    }
}
