//! What an order costs: registers, and memory traffic where they do not last.

use super::Room;
use super::graph::Graph;

/// Highest number of live registers.
pub(super) fn pressure(g: &Graph, order: &[u32]) -> u32 {
    let mut left = g.use_counts();
    let mut live = g.live_in();
    let mut max = live;
    for &k in order {
        let node = &g.nodes[k as usize];
        let born =
            node.defs.iter().filter(|&&v| left[v as usize] > 0 || g.lives_out[v as usize]).count() as i32;
        for &v in &node.uses {
            left[v as usize] -= 1;
            if left[v as usize] == 0 && !g.lives_out[v as usize] {
                live -= 1;
            }
        }
        live += born;
        max = max.max(live);
    }
    max.max(0) as u32
}

const FAR: u32 = u32::MAX - 1;
const NEVER: u32 = u32::MAX;

/// A value in a register, in [`traffic`].
#[derive(Clone, Copy)]
struct Held {
    next: u32,
    value: u32,
    stored: bool,
}

/// Cycles that this order takes for values that do not fit: stores, loads, and what is made again. The value goes whose next
/// use is farthest for what it costs to get it back (Belady 1966, with costs).
pub(super) fn traffic(g: &Graph, order: &[u32], room: Room) -> u32 {
    let end = order.len() as u32;
    let mut upcoming: Vec<u32> = g.lives_out.iter().map(|&out| if out { end } else { NEVER }).collect();
    // Next uses behind each operand, in the order of `order`, from the end.
    let mut next: Vec<u32> = Vec::new();
    for (at, &k) in order.iter().enumerate().rev() {
        let node = &g.nodes[k as usize];
        next.extend(node.defs.iter().rev().chain(node.uses.iter().rev()).map(|&v| upcoming[v as usize]));
        for &v in &node.uses {
            upcoming[v as usize] = at as u32;
        }
    }
    let mut place: Vec<u32> = vec![NEVER; g.values()];
    let mut held: Vec<Held> = Vec::new();
    let mut cost = 0;
    let put = |held: &mut Vec<Held>, place: &mut [u32], entry: Held| {
        if entry.value != NEVER {
            place[entry.value as usize] = held.len() as u32;
        }
        held.push(entry);
    };
    // What passes through without being used would go first; what is used comes by distance.
    for _ in 0..g.passing {
        put(&mut held, &mut place, Held { next: FAR, value: NEVER, stored: false });
    }
    for v in (0..g.values()).filter(|&v| g.comes_in[v]) {
        put(&mut held, &mut place, Held { next: upcoming[v], value: v as u32, stored: false });
    }
    let take = |held: &mut Vec<Held>, place: &mut [u32], at: usize| {
        let gone = held.swap_remove(at);
        if gone.value != NEVER {
            place[gone.value as usize] = NEVER;
        }
        if let Some(moved) = held.get(at).filter(|moved| moved.value != NEVER) {
            place[moved.value as usize] = at as u32;
        }
        gone
    };
    let remake = |held: &Held| if held.value == NEVER { None } else { g.remake[held.value as usize] };
    let back = |held: &Held| remake(held).unwrap_or(room.memory);
    let store = |held: &Held| if held.stored || remake(held).is_some() { 0 } else { room.memory };
    let shrink = |held: &mut Vec<Held>, place: &mut [u32], cost: &mut u32, now: usize, most: usize| {
        while held.len() > most {
            let worth = |held: &Held| {
                let distance = u64::from(held.next.saturating_sub(now as u32));
                distance * 64 / u64::from(back(held) + store(held)).max(1)
            };
            let Some(at) = (0..held.len()).max_by_key(|&at| worth(&held[at])) else { return };
            let gone = take(held, place, at);
            *cost += store(&gone);
        }
    };
    shrink(&mut held, &mut place, &mut cost, 0, room.registers as usize);
    for (at, &k) in order.iter().enumerate() {
        let node = &g.nodes[k as usize];
        for &v in &node.uses {
            let after = next.pop().unwrap_or(NEVER);
            match place[v as usize] {
                NEVER => {
                    let entry = Held { next: after, value: v, stored: true };
                    cost += back(&entry);
                    put(&mut held, &mut place, entry);
                }
                at => held[at as usize].next = after,
            }
        }
        for &v in &node.uses {
            let at = place[v as usize];
            if at != NEVER && held[at as usize].next == NEVER {
                take(&mut held, &mut place, at as usize);
            }
        }
        // All results are there at once, also what nobody reads.
        shrink(
            &mut held,
            &mut place,
            &mut cost,
            at + 1,
            (room.registers as usize).saturating_sub(node.defs.len()),
        );
        for &v in &node.defs {
            let after = next.pop().unwrap_or(NEVER);
            if after != NEVER {
                put(&mut held, &mut place, Held { next: after, value: v, stored: false });
            }
        }
    }
    cost
}
