//! Slots behind branches, filled from the block that follows.
//!
//! A branch that is not taken goes on to the next block. What that block does first may be done in the slots already,
//! where it is done on the other way too: when it has no effect there, because it writes only registers that nobody
//! reads on that way. Most blocks begin with such code: addresses, the flag of their first guarded access.
//!
//! Whole instructions are moved, in their order, also over others that they have nothing to do with. Times between
//! instructions of the block only shrink where instructions are left out in between: so nothing is moved out of the wait
//! behind a side-band start (section 9), and nothing from behind a thread switch. Reference 10.3 and rules 37 to 41 say
//! what may stand in a slot.

use super::Body;
use super::schedule::Slot;
use crate::instr::{Branch, BranchCond, Dest, Loc, Op, Part, Version};

/// Instructions of the next block that are looked at.
const WINDOW: usize = 16;

/// Sets of registers: rows 0 to 63, accumulators 64 to 69; then the flags.
type Set = u128;
const FLAGS: Set = 1 << 70;

fn bit(l: Loc) -> Set {
    match l {
        Loc::Row(r) => 1 << r,
        Loc::Acc(r) => 1 << (64 + r),
    }
}

/// What an instruction reads, may write, and writes for sure.
struct Access {
    reads: Set,
    writes: Set,
    kills: Set,
}

fn access(version: Version, s: &Slot) -> Access {
    let a = &s.alu;
    let merged = a.merged(version).fold(0, |m, l| m | bit(l));
    let mut reads = a.reads().fold(merged, |m, l| m | bit(l));
    let mut writes = a.writes(version).chain(a.writes_late(version)).fold(0, |m, l| m | bit(l));
    let mut kills = writes & !merged;
    for p in a.parts() {
        // A push moves A to B, which nothing reads.
        if p.cond.is_some() || p.update.is_some() || p.op.reads_flag_a() || p.op.reads_flag_b() {
            reads |= FLAGS;
        }
        if p.writes_flags() {
            writes |= FLAGS;
        }
        if p.push.is_some() {
            kills |= FLAGS;
        }
    }
    Access { reads, writes, kills }
}

/// Computes from registers into a register or a flag at once, and nothing else. (A product has a hidden half, so its
/// instructions count as having an effect.)
fn is_pure(version: Version, p: &Part) -> bool {
    let quiet = p.result().is_none_or(|d| d == Dest::NOP || d.loc(version).is_some());
    // Sample flags and rows of the VPM change on the way.
    quiet && !p.op.has_effect() && !p.op.is_sfu() && p.op != Op::Msf && !p.op.is_vpm_read()
}

fn may_move(version: Version, s: &Slot) -> bool {
    s.alu.signals.is_empty()
        && s.alu.sig_dest.is_none()
        && s.alu.rotate.is_none()
        && s.uniform.is_none()
        && !s.writes_unifa
        && s.alu.parts().into_iter().all(|p| is_pure(version, p))
        && s.alu.parts().into_iter().any(|p| p.op != Op::Nop)
}

/// Behind this instruction nothing is moved any more.
fn stops(s: &Slot) -> bool {
    s.writes_unifa || s.alu.signals.has(crate::instr::Signals::THRSW)
}

/// Registers that are read on some way from the start of each block before they are written.
fn live(version: Version, bodies: &[Body]) -> Vec<Set> {
    let mut effect: Vec<(Set, Set)> = Vec::with_capacity(bodies.len());
    for b in bodies {
        let (mut reads, mut kills) = (0, 0);
        // A block that asks the question of the one before may have nothing but the branch that reads the flag.
        let asks = b.branch.as_ref().filter(|j| j.branch.cond != BranchCond::Always).map(|j| j.at);
        if asks == Some(0) {
            reads |= FLAGS;
        }
        for (n, s) in b.slots.iter().enumerate() {
            let a = access(version, s);
            reads |= a.reads & !kills;
            kills |= a.kills;
            if asks == Some(n + 1) {
                reads |= FLAGS & !kills;
            }
        }
        effect.push((reads, kills));
    }
    let mut live = vec![0; bodies.len() + 1];
    loop {
        let mut changed = false;
        for (n, b) in bodies.iter().enumerate().rev() {
            let mut out = 0;
            if !b.branch.as_ref().is_some_and(|j| j.branch.cond == BranchCond::Always) {
                out |= live[n + 1];
            }
            if let Some(j) = &b.branch {
                out |= live[j.to.0 as usize];
            }
            let new = effect[n].0 | out & !effect[n].1;
            changed |= std::mem::replace(&mut live[n], new) != new;
        }
        if !changed {
            return live;
        }
    }
}

/// Fills the slots of conditional branches.
pub(super) fn fill(version: Version, bodies: &mut [Body]) {
    let live = live(version, bodies);
    let mut entered = vec![false; bodies.len()];
    for b in bodies.iter() {
        if let Some(j) = &b.branch {
            entered[j.to.0 as usize] = true;
        }
    }
    for b in 0..bodies.len() {
        let Some(j) = &bodies[b].branch else { continue };
        if j.branch.cond == BranchCond::Always {
            continue;
        }
        let (at, to) = (j.at, j.to.0 as usize);
        // The block behind, over empty ones, if only this branch leads there.
        let Some(next) =
            (b + 1..bodies.len()).find(|&n| !bodies[n].slots.is_empty() || bodies[n].branch.is_some())
        else {
            continue;
        };
        if entered[b + 1..=next].contains(&true) {
            continue;
        }
        let slots = at..at + Branch::DELAY_SLOTS;
        let mut free = slots.clone().find(|&n| is_empty(&bodies[b].slots[n])).unwrap_or(slots.end);
        if free == slots.end || !(free..slots.end).all(|n| is_empty(&bodies[b].slots[n])) {
            continue;
        }
        // The branch of the next block, and what runs in its slots, stay.
        let mut end = bodies[next].branch.as_ref().map_or(bodies[next].slots.len(), |j| j.at);
        let (mut reads, mut writes) = (0, 0);
        let mut n = 0;
        let mut seen = 0;
        // A block that has code keeps some: others may have to know where it is.
        let least = bodies[next].branch.is_none() as usize;
        while n < end && seen < WINDOW && free < slots.end && bodies[next].slots.len() > least {
            seen += 1;
            let s = bodies[next].slots[n];
            let a = access(version, &s);
            let clash = a.reads & writes | a.writes & (reads | writes);
            // Rule 43: it keeps sample flags and a branch that asks for them apart.
            let between = bodies[next].branch.is_some()
                && n + 1 == end
                && n > 0
                && bodies[next].slots[n - 1].alu.parts().iter().any(|p| p.op == Op::Setmsf);
            if may_move(version, &s)
                && !between
                && !hides_latency(version, &bodies[next].slots, n)
                && clash == 0
                && a.writes & live[to] == 0
            {
                bodies[b].slots[free] = s;
                bodies[next].slots.remove(n);
                if let Some(j) = &mut bodies[next].branch {
                    j.at -= 1;
                }
                free += 1;
                end -= 1;
                continue;
            }
            if stops(&s) {
                break;
            }
            reads |= a.reads;
            writes |= a.writes;
            n += 1;
        }
    }
}

/// The instruction stands between a special function and who reads its result, where it would be missed (section 9), or
/// between a write and a rotation of what was written, where something must stand (rule 27).
fn hides_latency(version: Version, slots: &[Slot], n: usize) -> bool {
    let (Some(before), Some(after)) = (n.checked_sub(1).and_then(|k| slots.get(k)), slots.get(n + 1)) else {
        return false;
    };
    if after.alu.rotate.is_some() && before.alu.writes(version).any(|w| after.alu.reads().any(|r| r == w)) {
        return true;
    }
    let results = before.alu.parts().into_iter().filter(|p| p.op.is_sfu());
    let results: Vec<Loc> = results.filter_map(|p| p.result().and_then(|d| d.loc(version))).collect();
    after.alu.reads().any(|l| results.contains(&l))
}

fn is_empty(s: &Slot) -> bool {
    s.alu.signals.is_empty() && s.uniform.is_none() && s.alu.parts().into_iter().all(|p| p.op == Op::Nop)
}
