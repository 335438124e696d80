//! Which values are the same on all lanes, and where some lanes may be waiting.
//!
//! # The machine
//! All lanes of a batch walk together. Every lane has a block that it is in; the batch executes the block that stands
//! first in the layout among those, with the lanes that are in it *active* and the others *waiting*. So lanes that
//! took different sides of a branch meet again at the first block that all of them reach.
//!
//! # Uniform values
//! A value is *uniform* when computing it for all lanes at once (waiting ones too, without a predicate) leaves every
//! lane with what it would have computed alone, for as long as the lane may still use it. Otherwise it is
//! *divergent*.
//!
//! 1. An operation without effect on uniform operands is uniform whoever is active: all lanes hold the same operands,
//!    so all would compute the same.
//! 2. A load from a uniform address is uniform: all lanes read one place at one time. That holds for memory that
//!    others write, too, as long as the program has no data race; volatile and atomic accesses may race, so they are
//!    divergent. Private memory is a different place on every lane.
//! 3. A branch on a divergent condition lets lanes reach a later block by different edges. If two paths from the two
//!    sides meet in a block without having met before, lanes with different arguments may stand there together: its
//!    parameters are divergent unless the arguments are the same value (sync dependence; the labels are those of
//!    Rosemann, Moll and Hack, "An abstract interpretation for SPMD divergence on reducible control flow graphs",
//!    POPL 2021). At any other block the active lanes all came by one edge, and a uniform argument stays uniform.
//! 4. Since the earliest block runs first, a block is executed a second time, for other lanes, while lanes still wait
//!    behind it only when lanes went back to a loop header in between. That gives two cases:
//!    * lanes leave a loop in different iterations (*divergent loop*): a value that changes from iteration to
//!      iteration and is used behind the loop is divergent, and so is a parameter of an exit that receives it;
//!    * lanes go back to the header while others still wait inside of the loop (*skewed loop*, possible only with a
//!      back edge from a block that is not the last): a value that changes from iteration to iteration and is used
//!      in another block than its own is divergent.
//!
//!    In a loop that is not skewed, all lanes that are still in it are in the same iteration, so a counter stays
//!    uniform even when lanes leave one by one.
//!
//! # Control
//! Control is *non-uniform* in a block when some lanes that are not active there may have to go on later, or have
//! ended: between a divergent branch and its immediate post-dominator, and in all blocks of a divergent or skewed
//! loop.
//!
//! What is left out: a value that is uniform in parts of its life only; facts about lanes (affine values).

use crate::analysis::{Cfg, NONE, User, Uses};
use crate::entity::Table;
use crate::module::*;
use crate::ops::{Effect, Op};
use crate::types::Space;
use std::collections::BTreeSet;

/// What the machine says about sources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// All lanes of a batch belong to one work-group: work-group ids and the number of the subgroup are uniform.
    pub one_workgroup_per_batch: bool,
    /// Payload words that are the same on all lanes.
    pub uniform_payload: Vec<u32>,
}

/// The result of the analysis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    divergent: Table<Value, bool>,
    non_uniform: Table<Block, bool>,
    /// By index into [`Cfg::loops`].
    loops: Vec<LoopKind>,
}

/// How lanes go through a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopKind {
    /// Lanes may leave in different iterations.
    pub divergent: bool,
    /// Lanes that are inside may be in different iterations.
    pub skewed: bool,
}

impl Divergence {
    /// Analyses a verified function.
    pub fn new(func: &Function, cfg: &Cfg, options: &Options) -> Divergence {
        let mut a = Analysis {
            func,
            cfg,
            uses: Uses::new(func),
            ipdom: cfg.post_dominators(),
            place: Table::new(func.values.len(), NONE),
            inst_place: Table::new(func.insts.len(), NONE),
            variant: Table::new(func.values.len(), 0),
            joins: vec![false; cfg.len()],
            done: vec![false; cfg.len()],
            out: Divergence {
                divergent: Table::new(func.values.len(), false),
                non_uniform: Table::new(func.blocks.len(), false),
                loops: vec![LoopKind::default(); cfg.loops.len()],
            },
            work: Vec::new(),
        };
        a.prepare(options);
        a.run();
        a.out
    }

    pub fn is_divergent(&self, v: Value) -> bool {
        self.divergent[v]
    }

    pub fn is_uniform(&self, v: Value) -> bool {
        !self.divergent[v]
    }

    /// Some lanes may be waiting, or have ended, while this block runs.
    pub fn is_non_uniform(&self, b: Block) -> bool {
        self.non_uniform[b]
    }

    /// The block ends in a branch that may split the active lanes.
    pub fn splits(&self, func: &Function, b: Block) -> bool {
        matches!(func.blocks[b].term, Term::Branch { cond, .. } if self.divergent[cond])
    }

    /// By index into [`Cfg::loops`].
    pub fn loop_kind(&self, index: usize) -> LoopKind {
        self.loops[index]
    }
}

struct Analysis<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    uses: Uses,
    ipdom: Vec<u32>,
    /// Position of the block that defines a value.
    place: Table<Value, u32>,
    /// Position of the block of an instruction.
    inst_place: Table<Inst, u32>,
    /// A value changes from iteration to iteration of the loops around its definition whose depth is at most this.
    variant: Table<Value, u32>,
    /// Blocks (by position) where lanes with different arguments may meet.
    joins: Vec<bool>,
    /// Branches (by position) whose effects are in.
    done: Vec<bool>,
    out: Divergence,
    /// Values that became divergent, uses not yet looked at.
    work: Vec<Value>,
}

impl Analysis<'_> {
    fn mark(&mut self, v: Value) {
        if !std::mem::replace(&mut self.out.divergent[v], true) {
            self.work.push(v);
        }
    }

    /// Sources of divergence, and what changes in which loops.
    fn prepare(&mut self, options: &Options) {
        for (p, &b) in self.func.layout.iter().enumerate() {
            let depth = self.cfg.depth(p as u32);
            for &v in &self.func.blocks[b].params {
                self.place[v] = p as u32;
                self.variant[v] = depth;
            }
            for &i in &self.func.blocks[b].insts {
                let inst = &self.func.insts[i];
                self.inst_place[i] = p as u32;
                let read_only = match inst.imm {
                    Imm::Mem(m) => m.space.is_read_only() && !m.volatile,
                    _ => false,
                };
                let variant = match inst.op.effect() {
                    Effect::Pure | Effect::Constant => self.inherited(inst, p as u32),
                    Effect::Read if read_only => self.inherited(inst, p as u32),
                    _ => depth,
                };
                for &r in &inst.results {
                    self.place[r] = p as u32;
                    self.variant[r] = variant;
                }
                if is_source(inst, options) {
                    for &r in &inst.results {
                        self.mark(r);
                    }
                }
            }
        }
    }

    /// Changes with its operands: the deepest loop around both the operand and the instruction counts.
    fn inherited(&self, inst: &InstData, p: u32) -> u32 {
        inst.args
            .iter()
            .map(|&a| match self.place[a] {
                NONE => 0,
                place => self.variant[a].min(self.common_depth(place, p)),
            })
            .max()
            .unwrap_or(0)
    }

    /// Number of loops around both blocks.
    fn common_depth(&self, a: u32, b: u32) -> u32 {
        let mut l = self.cfg.loop_of[a as usize];
        while l != NONE {
            let data = &self.cfg.loops[l as usize];
            if (data.header..=data.last).contains(&b) {
                return data.depth;
            }
            l = data.parent;
        }
        0
    }

    /// Whether a value changes from iteration to iteration of a loop that contains its definition.
    fn changes_in(&self, v: Value, l: usize) -> bool {
        let data = &self.cfg.loops[l];
        let place = self.place[v];
        (data.header..=data.last).contains(&place) && self.variant[v] >= data.depth
    }

    fn run(&mut self) {
        loop {
            while let Some(v) = self.work.pop() {
                for n in 0..self.uses.of(v).len() {
                    let user = self.uses.of(v)[n];
                    self.spread(user);
                }
            }
            // Branches whose condition has become divergent. In layout order, for a result that does not depend on
            // the order in which values were found.
            let mut changed = false;
            for p in 0..self.cfg.len() {
                let term = &self.func.blocks[self.func.layout[p]].term;
                if let Term::Branch { cond, .. } = term
                    && self.out.divergent[*cond]
                    && !std::mem::replace(&mut self.done[p], true)
                {
                    self.split(p as u32);
                    changed = true;
                }
            }
            if changed {
                self.temporal();
                self.joined_params();
            }
            if self.work.is_empty() && !changed {
                break;
            }
        }
    }

    /// A divergent operand makes the results of its user divergent, if the user works lane by lane.
    fn spread(&mut self, user: User) {
        match user {
            User::Inst(i, n) => {
                let inst = &self.func.insts[i];
                let spreads = match inst.op {
                    // The same for all active lanes, whatever they bring.
                    Op::VoteAny | Op::VoteAll | Op::VoteEq | Op::Ballot | Op::BroadcastFirst => false,
                    Op::Reduce => !is_full_reduction(inst),
                    // One lane for all gives one value; a value that all hold is the same from any lane.
                    Op::Shuffle => {
                        inst.args.get(1 - n.min(1) as usize).is_some_and(|&v| self.out.divergent[v])
                    }
                    _ => true,
                };
                if spreads {
                    for n in 0..self.func.insts[i].results.len() {
                        self.mark(self.func.insts[i].results[n]);
                    }
                }
            }
            // Branches are looked at when the values have settled.
            User::Cond(_) => {}
            User::Arg(b, edge, n) => {
                let target = self.func.blocks[b].term.targets().nth(edge as usize);
                if let Some(&p) = target.and_then(|t| self.func.blocks[t.block].params.get(n as usize)) {
                    self.mark(p);
                }
            }
        }
    }

    /// Some way leads from `d` back to the header of a loop around it, and not through `stop`.
    fn goes_round(&self, d: u32, stop: u32, l: usize) -> bool {
        let data = self.cfg.loops[l];
        let mut seen = BTreeSet::from([d]);
        let mut work = vec![d];
        while let Some(b) = work.pop() {
            for &to in &self.cfg.succs[b as usize] {
                if to == data.header {
                    return true;
                }
                if to != stop && to > data.header && to <= data.last && seen.insert(to) {
                    work.push(to);
                }
            }
        }
        false
    }

    /// Follows the two sides of a divergent branch until they are one again.
    fn split(&mut self, d: u32) {
        let n = self.cfg.len();
        let behind = |b: u32| match self.ipdom[b as usize] {
            NONE => n as u32,
            s => s,
        };
        let mut stop = behind(d);
        // Label by block: which "strand" of lanes stands there. 0 and 1 are the sides of the branch, 2 + b is a
        // strand that began at block b, where two had met.
        let mut label = vec![NONE; n];
        let mut todo: BTreeSet<u32> = BTreeSet::new();
        // Loops around the branch, innermost last, and the edges that leave them.
        let mut around: Vec<usize> = Vec::new();
        let mut l = self.cfg.loop_of[d as usize];
        while l != NONE {
            around.push(l as usize);
            l = self.cfg.loops[l as usize].parent;
        }
        // A block that all pass on their way out is no meeting place when it stands in the loop and some go round first:
        // `while (true) { if (c) { stop; break; } ... }`. Those that are there go on alone.
        for &l in &around {
            let last = self.cfg.loops[l].last;
            if stop > d && stop <= last && self.goes_round(d, stop, l) {
                while stop <= last {
                    stop = behind(stop);
                }
            }
        }
        around.reverse();
        let mut leaving: Vec<(u32, u32)> = Vec::new();
        let mut backs: Vec<(u32, u32, u32)> = Vec::new();
        let mut ended: Vec<u32> = Vec::new();

        // Both sides to one block: lanes with different arguments arrive together, even at a loop header.
        if let Term::Branch { then, els, .. } = &self.func.blocks[self.func.layout[d as usize]].term
            && then.block == els.block
        {
            let (func, block) = (self.func, then.block);
            for (n, &p) in func.blocks[block].params.iter().enumerate() {
                if then.args.get(n) != els.args.get(n) {
                    self.mark(p);
                }
            }
        }
        let mut edges: Vec<(u32, u32, u32)> = Vec::new();
        for (side, &to) in self.cfg.succs[d as usize].iter().enumerate() {
            edges.push((d, to, side as u32));
        }
        loop {
            // Deliver edges: back edges and those that leave the innermost loop under way are put aside.
            for (from, to, strand) in edges.drain(..) {
                if to <= from {
                    backs.push((from, to, strand));
                } else if around.last().is_some_and(|&l| to > self.cfg.loops[l].last) {
                    leaving.push((to, strand));
                } else if label[to as usize] == NONE {
                    label[to as usize] = strand;
                    todo.insert(to);
                } else if label[to as usize] != strand {
                    label[to as usize] = 2 + to;
                    self.joins[to as usize] = true;
                }
            }
            if let Some(b) = todo.pop_first() {
                if b == stop {
                    continue;
                }
                self.out.non_uniform[self.func.layout[b as usize]] = true;
                let strand = label[b as usize];
                let succs = &self.cfg.succs[b as usize];
                if succs.is_empty() {
                    ended.push(strand);
                }
                edges.extend(succs.iter().map(|&to| (b, to, strand)));
                continue;
            }
            // Everything inside of the innermost loop is done: close it.
            let Some(index) = around.pop() else { break };
            let data = self.cfg.loops[index];
            let mine: Vec<(u32, u32)> =
                backs.iter().filter(|(_, h, _)| *h == data.header).map(|&(from, _, s)| (from, s)).collect();
            let out = std::mem::take(&mut leaving);
            if mine.is_empty() {
                // Nobody goes round: the loop is left like any other stretch of code.
                edges.extend(out.into_iter().map(|(to, s)| (d, to, s)));
                continue;
            }
            let mut strands: BTreeSet<u32> = mine.iter().map(|&(_, s)| s).collect();
            strands.extend(out.iter().map(|&(_, s)| s));
            let divergent = strands.len() > 1;
            let skewed = mine.iter().any(|&(from, s)| {
                (from + 1..=data.last).any(|q| label[q as usize] != NONE && label[q as usize] != s)
            });
            self.out.loops[index].divergent |= divergent;
            self.out.loops[index].skewed |= skewed;
            // Lanes that ended are missing in the next iteration.
            strands.extend(&ended);
            for b in data.header..=data.last {
                if strands.len() > 1 || skewed {
                    self.out.non_uniform[self.func.layout[b as usize]] = true;
                }
                // Lanes that go round leave by any exit later, but where all have met again before they can. When
                // they leave at different times, every exit gathers a strand of its own.
                if self.cfg.dominates(stop, b) {
                    continue;
                }
                let succs = &self.cfg.succs[b as usize];
                if succs.is_empty() {
                    ended.push(2 + b);
                }
                for &to in succs.iter().filter(|&&to| to > data.last) {
                    if divergent || skewed {
                        self.joins[to as usize] = true;
                        edges.push((b, to, 2 + to));
                    } else {
                        edges.push((b, to, mine[0].1));
                    }
                }
            }
        }
    }

    /// Parameters of blocks where lanes meet that came by different forward edges.
    fn joined_params(&mut self) {
        for p in 0..self.cfg.len() {
            if !self.joins[p] {
                continue;
            }
            let b = self.func.layout[p];
            for n in 0..self.func.blocks[b].params.len() {
                let mut args = Vec::new();
                for &q in &self.cfg.preds[p] {
                    // Lanes that wait at a loop header have come from outside: those that go back find nobody there
                    // to wait for. (Edges back are the temporal rules' matter.)
                    if q < p as u32 {
                        let term = &self.func.blocks[self.func.layout[q as usize]].term;
                        args.extend(
                            term.targets().filter(|t| t.block == b).filter_map(|t| t.args.get(n).copied()),
                        );
                    }
                }
                if args.windows(2).any(|w| w[0] != w[1]) {
                    self.mark(self.func.blocks[b].params[n]);
                }
            }
        }
    }

    /// Values that lanes see at different times (rule 4).
    fn temporal(&mut self) {
        for l in 0..self.cfg.loops.len() {
            let kind = self.out.loops[l];
            if kind == LoopKind::default() {
                continue;
            }
            let data = self.cfg.loops[l];
            let inside = |p: u32| (data.header..=data.last).contains(&p);
            for p in data.header..=data.last {
                let b = self.func.layout[p as usize];
                let block = &self.func.blocks[b];
                let insts = block.insts.iter().flat_map(|&i| self.func.insts[i].results.iter());
                let values: Vec<Value> = block.params.iter().chain(insts).copied().collect();
                for v in values {
                    if self.out.divergent[v] || !self.changes_in(v, l) {
                        continue;
                    }
                    let seen_late = (0..self.uses.of(v).len()).any(|n| {
                        let at = self.position(self.uses.of(v)[n]);
                        kind.divergent && !inside(at) || kind.skewed && at != p
                    });
                    if seen_late {
                        self.mark(v);
                    }
                }
                // Arguments of edges out of the loop.
                for t in block.term.targets() {
                    if inside(self.cfg.pos[t.block]) {
                        continue;
                    }
                    let params = &self.func.blocks[t.block].params;
                    for (&param, &a) in params.iter().zip(&t.args) {
                        if self.changes_in(a, l) && !std::mem::replace(&mut self.out.divergent[param], true) {
                            self.work.push(param);
                        }
                    }
                }
            }
        }
    }

    /// Position of the block in which a use reads its value.
    fn position(&self, user: User) -> u32 {
        match user {
            User::Inst(i, _) => self.inst_place[i],
            User::Cond(b) | User::Arg(b, ..) => self.cfg.pos[b],
        }
    }
}

fn is_full_reduction(inst: &InstData) -> bool {
    matches!(inst.imm, Imm::Reduce(r) if r.kind == ReduceKind::Reduce && r.cluster == 0)
}

/// Results differ between lanes even when all operands are uniform.
fn is_source(inst: &InstData, options: &Options) -> bool {
    match (inst.op, inst.imm) {
        (Op::Builtin, Imm::Builtin(b)) => match b {
            Builtin::LocalInvocationId(_)
            | Builtin::LocalInvocationIndex
            | Builtin::SubgroupLocalId
            | Builtin::LaneId
            | Builtin::VertexIndex
            | Builtin::InstanceIndex
            | Builtin::FragCoord(_)
            | Builtin::FrontFacing
            | Builtin::PointCoord(_)
            | Builtin::SampleId
            | Builtin::SampleMaskIn
            | Builtin::PrimitiveId
            | Builtin::SamplePosition(_)
            | Builtin::InvocationId
            | Builtin::TessCoord(_) => true,
            Builtin::WorkgroupId(_) | Builtin::SubgroupId => !options.one_workgroup_per_batch,
            Builtin::NumWorkgroups(_)
            | Builtin::SubgroupSize
            | Builtin::SampleCount
            | Builtin::NumSubgroups
            | Builtin::ThreadId
            | Builtin::BaseVertex
            | Builtin::BaseInstance
            | Builtin::DrawIndex
            | Builtin::PatchVertices => false,
        },
        (Op::Payload, Imm::Int(n)) => !options.uniform_payload.iter().any(|&u| u as u64 == n),
        // Shared variables lie in the memory of the work-group.
        (Op::VarAddr, _) => {
            inst.ty == crate::types::Type::Ptr(Space::Shared) && !options.one_workgroup_per_batch
        }
        (Op::Load, Imm::Mem(m)) => m.space == Space::Private || m.volatile,
        (Op::ImageLoad, Imm::Image(i)) => i.volatile,
        (Op::Atomic | Op::ImageAtomic | Op::Elect | Op::Input | Op::ReadOutput | Op::IsHelper, _) => true,
        (Op::Reduce, _) => !is_full_reduction(inst),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
