//! Forwards, by latency while registers last: a list scheduler in the manner of Goodman & Hsu (1988).
//!
//! While few registers are live it follows the longest latency path, so that memory accesses start early and stand
//! together; when pressure reaches the limit it prefers what frees registers, then what comes next by demand.
//! Instructions without register uses are placed right before their first user.

use super::WINDOW;
use super::graph::{Graph, Node};

struct List<'a> {
    g: &'a Graph,
    /// Reads of a value that are still to come.
    left: Vec<u32>,
    /// When a value was last read or written in the order being made.
    touched: Vec<u32>,
    done: Vec<bool>,
    live: i32,
    out: Vec<u32>,
}

impl List<'_> {
    /// Change of the number of live registers when a node is placed now, with the cheap definitions that it pulls in.
    fn delta(&self, k: u32) -> i32 {
        let node = &self.g.nodes[k as usize];
        let pulled = |&&p: &&u32| self.g.nodes[p as usize].cheap && !self.done[p as usize];
        self.change(node) + node.preds.iter().filter(pulled).count() as i32
    }

    fn change(&self, node: &Node) -> i32 {
        let out = &self.g.lives_out;
        let dies = node.uses.iter().filter(|&&v| self.left[v as usize] == 1 && !out[v as usize]).count();
        let born = node.defs.iter().filter(|&&v| self.left[v as usize] > 0 || out[v as usize]).count();
        born as i32 - dies as i32
    }

    /// How long ago the operand was touched that was touched longest ago.
    fn age(&self, k: u32) -> u32 {
        let now = self.out.len() as u32;
        let oldest = self.g.nodes[k as usize].uses.iter().map(|&v| self.touched[v as usize]).min();
        now - oldest.unwrap_or(now)
    }

    fn place(&mut self, k: u32) {
        let node = &self.g.nodes[k as usize];
        self.live += self.change(node);
        self.out.push(k);
        self.done[k as usize] = true;
        for &v in &node.uses {
            self.left[v as usize] -= 1;
        }
        for &v in node.uses.iter().chain(&node.defs) {
            self.touched[v as usize] = self.out.len() as u32;
        }
    }
}

/// An order for at most about `limit` live registers. `rank`: places by demand.
pub(super) fn schedule(g: &Graph, rank: &[u32], limit: u32) -> Vec<u32> {
    let mut s = List {
        g,
        left: g.use_counts(),
        touched: vec![0; g.values()],
        done: vec![false; g.len()],
        live: g.live_in(),
        out: Vec::with_capacity(g.len()),
    };
    // Cheap nodes wait for the entry only.
    let own = |k: usize| g.nodes[k].preds.iter().filter(|&&p| !g.nodes[p as usize].cheap).count() as u32;
    let mut waiting: Vec<u32> = (0..g.len()).map(own).collect();
    // The window is at the end of the list: what comes first in the block stands there.
    let free = |&k: &u32| waiting[k as usize] == 0 && !g.nodes[k as usize].cheap;
    let mut ready: Vec<u32> = (0..g.len() as u32).rev().filter(free).collect();
    while !ready.is_empty() {
        let tight = s.live >= limit as i32;
        // Best first: what frees registers when they are short, then what is needed next; the longest path otherwise.
        let key = |&k: &u32| {
            let d = s.delta(k);
            match tight {
                true if d < 0 => (d, s.age(k) as i32, 0, k),
                true => (0, rank[k as usize] as i32, d, k),
                false => (-(g.nodes[k as usize].height as i32), d, 0, k),
            }
        };
        let from = ready.len().saturating_sub(WINDOW);
        let best = (from..ready.len()).min_by_key(|&at| key(&ready[at])).unwrap_or(from);
        let k = ready.remove(best);
        for &p in &g.nodes[k as usize].preds {
            if g.nodes[p as usize].cheap && !s.done[p as usize] {
                s.place(p);
            }
        }
        s.place(k);
        for &next in g.nodes[k as usize].succs.iter().filter(|&&next| !g.nodes[next as usize].cheap) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    s.out
}
