//! What is in registers where a block begins.

use super::Walk;
use crate::demand::*;
use crate::graph::NONE;
use crate::nextuse::LOOP_EXIT_DISTANCE;
use crate::report::{Decision, Reason};

impl Walk<'_, '_> {
    /// Which values are in registers where the block begins.
    pub(super) fn choose_entry(&mut self, block: u32) -> Vec<u32> {
        let code = &*self.s.code;
        let info = &code.blocks[block as usize];
        match info.preds.len() {
            0 => return Vec::new(),
            1 => {
                let exit = &self.out.exit[info.preds[0] as usize];
                return exit.iter().copied().filter(|&v| self.s.live.is_in(block, v)).collect();
            }
            _ => {}
        }
        let rpo = &self.s.graph.rpo_index;
        let done = |pred: u32| rpo[pred as usize] < rpo[block as usize];
        let header = self.s.graph.is_header[block as usize];
        // How much of the incoming frequency has the value in a register. `(value, distance, parameter)`.
        let mut candidates: Vec<(u32, u32, u32)> =
            self.next.entry(block).iter().map(|&(vreg, next)| (vreg, next.distance, NONE)).collect();
        for (index, &param) in info.params.iter().enumerate() {
            if self.s.live.param_live[param as usize] {
                candidates.push((param, self.next.param(block, index), index as u32));
            }
        }
        let mut share = vec![0.0f32; candidates.len()];
        let mut total = 0.0;
        for &pred in info.preds.iter().filter(|&&pred| done(pred)) {
            let frequency = code.blocks[pred as usize].frequency;
            total += frequency;
            self.marks += 1;
            for &vreg in &self.out.exit[pred as usize] {
                self.mark[vreg as usize] = self.marks;
            }
            let edge = code.blocks[pred as usize].succs.iter().find(|edge| edge.to == block);
            for (share, &(vreg, _, param)) in share.iter_mut().zip(&candidates) {
                let source = match edge.and_then(|edge| edge.args.get(param as usize)) {
                    Some(&arg) => arg,
                    None => vreg,
                };
                let ready = code.is_undefined(source)
                    || self.mark[source as usize] == self.marks
                    || param != NONE && code.vregs[source as usize].recipe.is_some();
                if ready {
                    *share += frequency;
                }
            }
        }
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        // First what has to be here, then what is here on all paths, then what is nearest.
        let rank = |at: usize| {
            let (vreg, distance, _) = candidates[at];
            let beyond = header && distance >= LOOP_EXIT_DISTANCE;
            let everywhere = share[at] >= total * 0.999;
            (self.evictable(vreg), beyond, !everywhere && !header, distance, vreg)
        };
        order.sort_by_key(|&at| rank(at));
        if self.s.without.splitting {
            order.retain(|&at| !self.was_out[candidates[at].0 as usize]);
        }
        let bounds = self.s.limits.capacity.len();
        let mut used = vec![0u32; bounds];
        // Room that the loop needs for itself beside what only lives through it.
        let mut spare: Vec<i64> = vec![i64::MAX; bounds];
        if header {
            spare = self.loop_room(block, &candidates);
        }
        // Where the home of an argument is not that of its parameter, the edge has room of its own.
        let edges = info.preds.iter().filter_map(|&pred| {
            let edge = code.blocks[pred as usize].succs.iter().find(|edge| edge.to == block)?;
            let home = |vreg: u32| code.vregs[vreg as usize].home;
            let differ = edge.args.iter().zip(&info.params).any(|(&arg, &param)| home(arg) != home(param));
            differ.then(|| (edge, vec![0u32; bounds], Vec::<u32>::new()))
        });
        let mut edges: Vec<_> = edges.collect();
        // Where no arrangement was found for what one of the edges brings, memory brings everything.
        let bare = info.preds.iter().any(|&pred| {
            let last = code.blocks[pred as usize].steps.end - 1;
            self.s.bare[code.steps[last as usize].inst as usize]
        });
        let mut entry = Vec::new();
        let mut left = Vec::new();
        for at in order {
            let (vreg, distance, param) = candidates[at];
            let must = !self.evictable(vreg);
            let beyond = header && distance >= LOOP_EXIT_DISTANCE;
            let recipe = self.has_recipe(vreg);
            if !must {
                if self.s.force || bare || share[at] == 0.0 && (!header || beyond || recipe) {
                    continue;
                }
                if recipe && share[at] < total * 0.999 && param == NONE {
                    continue;
                }
            }
            let (home, size) = (code.vregs[vreg as usize].home, code.vregs[vreg as usize].size);
            let limits = self.s.limits;
            let mut fits = true;
            limits.charge(home, At::Point, size, |bound, weight| {
                fits &= used[bound] + weight <= limits.capacity[bound];
                fits &= !beyond || spare[bound] >= weight as i64;
            });
            for (edge, used, sources) in &edges {
                let source = edge.args.get(param as usize).copied().unwrap_or(vreg);
                if !code.is_undefined(source) && !sources.contains(&source) {
                    limits.charge(code.vregs[source as usize].home, At::Point, size, |bound, weight| {
                        fits &= used[bound] + weight <= limits.capacity[bound];
                    });
                }
            }
            if !fits && !must {
                if share[at] > 0.0 {
                    left.push((vreg, distance));
                }
                continue;
            }
            for (edge, used, sources) in &mut edges {
                let source = edge.args.get(param as usize).copied().unwrap_or(vreg);
                if !code.is_undefined(source) && !sources.contains(&source) {
                    limits.charge(code.vregs[source as usize].home, At::Point, size, |bound, weight| {
                        used[bound] += weight;
                    });
                    sources.push(source);
                }
            }
            limits.charge(home, At::Point, size, |bound, weight| {
                used[bound] += weight;
                if beyond {
                    spare[bound] = spare[bound].saturating_sub(weight as i64);
                }
            });
            entry.push(vreg);
        }
        for (vreg, distance) in left {
            self.record_entry(block, vreg, distance);
        }
        while self.s.limits.exact
            && entry.last().is_some_and(|&vreg| self.evictable(vreg))
            && !self.arranges(entry.iter().copied(), At::Point)
        {
            entry.pop();
        }
        entry
    }

    /// Tells the log, if there is one, that a value that was in a register does not stay in one where `block` begins.
    fn record_entry(&mut self, block: u32, vreg: u32, distance: u32) {
        if self.s.log.is_some() {
            let inst = self.inst(self.s.code.blocks[block as usize].steps.start);
            let chosen = self.candidate(block, vreg, distance.max(1));
            self.tell(Decision::new(inst, Reason::Entry, chosen, Vec::new()));
        }
    }

    /// By bound: how many of the values that the loop of `block` does not read may stay in registers all through it.
    fn loop_room(&self, block: u32, candidates: &[(u32, u32, u32)]) -> Vec<i64> {
        let limits = self.s.limits;
        let bounds = limits.capacity.len();
        let id = self.s.graph.loop_of[block as usize];
        let mut most = vec![0i64; bounds];
        for &other in &self.s.graph.loop_blocks[id as usize] {
            let counts = &self.s.measure.by_block[other as usize * bounds..(other as usize + 1) * bounds];
            for (most, &count) in most.iter_mut().zip(counts) {
                *most = (*most).max(count as i64);
            }
        }
        let mut through = vec![0i64; bounds];
        for &(vreg, distance, _) in candidates {
            if distance < LOOP_EXIT_DISTANCE {
                continue;
            }
            let home = self.s.code.vregs[vreg as usize].home;
            let size = self.s.code.vregs[vreg as usize].size;
            limits.charge(home, At::Point, size, |bound, weight| through[bound] += weight as i64);
        }
        (0..bounds).map(|k| limits.capacity[k] as i64 - (most[k] - through[k])).collect()
    }
}
