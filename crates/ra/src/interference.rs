//! The interference graph: which values are in registers at the same time. Built by one walk over the live set of
//! every block, backwards: a definition interferes with what lives on after it (Chaitin 1982), so that no pair of
//! values is ever looked at that does not meet. Adjacency lists; whether two nodes are neighbours is answered by a bit
//! matrix as long as that is small, by a hash set of pairs beyond.
//!
//! What an instruction destroys and the sets that operands ask for narrow the mask of a node; the mask and the size
//! are its class ([`crate::simplify`]). Where narrowing would leave nothing, or hardly anything, the constraint is left
//! to the walk that emits the places, which copies the value there and back ([`crate::scan`]).
//!
//! After a spill the graph is patched: the spilled node goes, and only the blocks in which it left pieces are walked
//! again, adding edges of the pieces alone. Liveness is that of the code before spilling, less what is gone: pieces never
//! leave their block.
//!
//! Left out: interference on the level of parts of wide values.

use rustc_hash::FxHashSet;

use crate::code::*;
use crate::demand::{Limits, Node, WRITING, nodes};
use crate::graph::NONE;
use crate::listed::Listed;
use crate::liveness::Liveness;
use crate::masks::UnitMask;
use crate::problem::*;
use crate::rewrite::Insertion;

/// Most nodes for which a bit matrix is kept (a triangle of 4 MiB).
const MATRIX_NODES: u32 = 8192;

/// Most edges: beyond that the register demand is far out of proportion and the graph is not built.
const MAX_EDGES: u64 = 40_000_000;

/// An operand's set narrows the whole life of a value only when it has at least this share of the value's home set:
/// else the value would be confined for the sake of one instruction, and a copy is better.
const NARROWING_SHARE: u32 = 4;

/// The code while it is being coloured: operands and arguments are renamed to pieces, edits wait to be put in.
pub(crate) struct Work<'a> {
    pub code: Code,
    /// Of the code as it was.
    pub live: &'a Liveness,
    pub limits: &'a Limits,
    /// By value: it is in no register any more.
    pub gone: Vec<bool>,
    /// In order of step and phase.
    pub edits: Vec<Insertion>,
}

impl Work<'_> {
    /// The edits before `step`.
    pub fn edits_before(&self, step: u32) -> std::ops::Range<usize> {
        let start = self.edits.partition_point(|edit| edit.step < step);
        let count = self.edits[start..].iter().take_while(|edit| edit.step == step).count();
        start..start + count
    }

    pub fn param_lives(&self, param: u32) -> bool {
        self.live.param_live[param as usize] && !self.gone[param as usize]
    }
}

/// Pairs of nodes.
enum EdgeSet {
    /// The triangle below the diagonal, row by row: it grows at its end.
    Matrix(Vec<u64>),
    Hash(FxHashSet<u64>),
}

fn triangle(a: u32, b: u32) -> usize {
    let (low, high) = (a.min(b) as usize, a.max(b) as usize);
    high * (high - 1) / 2 + low
}

impl EdgeSet {
    fn key(a: u32, b: u32) -> u64 {
        (a.max(b) as u64) << 32 | a.min(b) as u64
    }

    fn insert(&mut self, a: u32, b: u32) -> bool {
        match self {
            EdgeSet::Matrix(bits) => {
                let at = triangle(a, b);
                if bits.len() <= at / 64 {
                    bits.resize(at / 64 + 1, 0);
                }
                let new = bits[at / 64] >> (at % 64) & 1 == 0;
                bits[at / 64] |= 1 << (at % 64);
                new
            }
            EdgeSet::Hash(set) => set.insert(EdgeSet::key(a, b)),
        }
    }

    fn contains(&self, a: u32, b: u32) -> bool {
        match self {
            EdgeSet::Matrix(bits) => {
                let at = triangle(a, b);
                bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
            }
            EdgeSet::Hash(set) => set.contains(&EdgeSet::key(a, b)),
        }
    }
}

pub(crate) struct Interference {
    /// By value: the node it belongs to, which is one of its values.
    node: Vec<u32>,
    /// Ring of the members of a node, and how many they are.
    next_member: Vec<u32>,
    member_count: Vec<u32>,
    /// By node: it takes part. (Undefined values and those that are gone do not.)
    pub alive: Vec<bool>,
    /// By node: neighbours, as values (a neighbour may stand there more than once after a merge).
    pub adjacent: Vec<Vec<u32>>,
    edges: EdgeSet,
    pub edge_count: u64,
    /// By node: units it may have.
    pub mask: Vec<UnitMask>,
    pub size: Vec<u8>,
    /// By node: where its first definition stands, twice the step.
    pub birth: Vec<u32>,
    /// By node: steps that it lives.
    pub length: Vec<u32>,
    /// Units that instructions need besides those of their values, in order of step: where one value has to stand in
    /// two places at once (bug shapes A20, A23, A29).
    extra: Vec<Extra>,
    /// By step: most units in use there.
    pub load: Vec<u32>,
    walker: Walker,
}

#[derive(Default)]
struct Walker {
    live: Listed,
    /// Where a value became live (walking backwards).
    since: Vec<u32>,
    /// Pieces of this round.
    fresh: Vec<bool>,
    fresh_live: Vec<u32>,
    units: u32,
}

/// A unit that is taken during one step.
#[derive(Clone, Copy)]
struct Extra {
    step: u32,
    node: u32,
    /// Also while the defs are written.
    writing: bool,
}

/// Too many edges.
pub(crate) struct TooLarge;

impl Interference {
    pub fn build(work: &mut Work<'_>) -> Result<Interference, TooLarge> {
        let count = work.code.vregs.len();
        let edges = if count as u32 <= MATRIX_NODES {
            EdgeSet::Matrix(Vec::new())
        } else {
            EdgeSet::Hash(FxHashSet::default())
        };
        let mut graph = Interference {
            node: Vec::new(),
            next_member: Vec::new(),
            member_count: Vec::new(),
            alive: Vec::new(),
            adjacent: Vec::new(),
            edges,
            edge_count: 0,
            mask: Vec::new(),
            size: Vec::new(),
            birth: Vec::new(),
            length: Vec::new(),
            extra: Vec::new(),
            load: vec![0; work.code.steps.len()],
            walker: Walker::default(),
        };
        for vreg in 0..count as u32 {
            graph.add_value(work, vreg);
            graph.alive[vreg as usize] = false;
        }
        for step in &work.code.steps {
            for op in &work.code.ops[step.ops()] {
                graph.narrow(work.limits, op);
            }
        }
        graph.find_extra(work);
        for block in 0..work.code.blocks.len() as u32 {
            graph.walk(work, block, false);
            if graph.edge_count > MAX_EDGES {
                return Err(TooLarge);
            }
        }
        Ok(graph)
    }

    /// Nodes for places that no value has for longer than one step.
    fn find_extra(&mut self, work: &mut Work<'_>) {
        let mut list: Vec<Node> = Vec::new();
        for index in 0..work.code.steps.len() {
            let step = work.code.steps[index];
            let ops = &work.code.ops[step.ops()];
            let special = |op: &Operand| {
                op.fixed.is_some()
                    || op.vector.is_some()
                    || op.tied.is_some()
                    || op.kind == OperandKind::EarlyDef
            };
            let apart = |(at, op): (usize, &Operand)| {
                ops[..at].iter().any(|other| other.vreg == op.vreg && other.set != op.set)
            };
            if !ops.iter().any(special) && !ops.iter().enumerate().any(apart) {
                continue;
            }
            nodes(&work.code, work.limits, &step, &mut list);
            for (at, node) in list.iter().enumerate() {
                let again = node.value != NONE && list[..at].iter().any(|other| other.value == node.value);
                // (A tied def takes the extra place over: its own node stands for it.)
                if !again || node.def != NONE {
                    continue;
                }
                let vreg = work.code.vregs.len() as u32;
                work.code.vregs.push(VRegInfo { recipe: None, ..work.code.vregs[node.value as usize] });
                work.gone.push(false);
                self.add_value(work, vreg);
                self.keep(vreg, work.limits.sets[node.set.0 as usize]);
                self.birth[vreg as usize] = 2 * index as u32 + 1;
                let writing = node.counts & WRITING != 0;
                self.extra.push(Extra { step: index as u32, node: vreg, writing });
            }
        }
    }

    /// A node for a value; what it needs comes with [`Interference::narrow`].
    pub fn add_value(&mut self, work: &Work<'_>, vreg: u32) {
        let info = &work.code.vregs[vreg as usize];
        self.node.push(vreg);
        self.next_member.push(vreg);
        self.member_count.push(1);
        self.alive.push(true);
        self.adjacent.push(Vec::new());
        self.mask.push(work.limits.sets[info.home.0 as usize]);
        self.size.push(info.size);
        self.birth.push(u32::MAX);
        self.length.push(0);
        self.walker.live.grow();
        self.walker.since.push(0);
        self.walker.fresh.push(false);
        if vreg >= MATRIX_NODES {
            self.leave_matrix();
        }
    }

    fn leave_matrix(&mut self) {
        if let EdgeSet::Hash(_) = self.edges {
            return;
        }
        let mut set = FxHashSet::default();
        for (a, list) in self.adjacent.iter().enumerate() {
            set.extend(list.iter().map(|&b| EdgeSet::key(a as u32, b)));
        }
        self.edges = EdgeSet::Hash(set);
    }

    /// The operand's set, where it leaves enough.
    pub fn narrow(&mut self, limits: &Limits, op: &Operand) {
        let node = self.root(op.vreg.0);
        let mask = self.mask[node as usize].and(&limits.sets[op.set.0 as usize]);
        let home = self.mask[node as usize].count();
        if op.fixed.is_none() && mask.count() * NARROWING_SHARE >= home {
            self.keep(node, mask);
        }
    }

    fn keep(&mut self, node: u32, mask: UnitMask) {
        if !mask.is_empty() {
            self.mask[node as usize] = mask;
        }
    }

    /// The node of a value.
    pub fn root(&self, vreg: u32) -> u32 {
        self.node[vreg as usize]
    }

    pub fn members(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = Some(node);
        std::iter::from_fn(move || {
            let member = at?;
            let next = self.next_member[member as usize];
            at = (next != node).then_some(next);
            Some(member)
        })
    }

    pub fn meets(&self, a: u32, b: u32) -> bool {
        a != b && self.edges.contains(a, b)
    }

    fn connect(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b && self.edges.insert(a, b) {
            self.adjacent[a as usize].push(b);
            self.adjacent[b as usize].push(a);
            self.edge_count += 1;
        }
    }

    /// What moving a node into another one takes.
    pub fn weight(&self, node: u32) -> usize {
        self.adjacent[node as usize].len() + self.member_count[node as usize] as usize
    }

    /// Two nodes that do not meet become one, the smaller one moving into the larger.
    pub fn merge(&mut self, from: u32, into: u32) {
        let mask = self.mask[into as usize].and(&self.mask[from as usize]);
        self.mask[into as usize] = mask;
        self.birth[into as usize] = self.birth[into as usize].min(self.birth[from as usize]);
        self.length[into as usize] += self.length[from as usize];
        for other in std::mem::take(&mut self.adjacent[from as usize]) {
            let other = self.root(other);
            if self.alive[other as usize] {
                self.connect(into, other);
            }
        }
        let members: Vec<u32> = self.members(from).collect();
        for member in members {
            self.node[member as usize] = into;
        }
        self.member_count[into as usize] += self.member_count[from as usize];
        self.alive[from as usize] = false;
        self.next_member.swap(into as usize, from as usize);
    }

    /// Neighbour lists with every live neighbour once.
    pub fn compact(&mut self) {
        let mut seen = vec![NONE; self.node.len()];
        for node in 0..self.node.len() {
            if !self.alive[node] {
                self.adjacent[node] = Vec::new();
                continue;
            }
            let mut list = std::mem::take(&mut self.adjacent[node]);
            list.retain_mut(|other| {
                *other = self.node[*other as usize];
                let keep = self.alive[*other as usize] && seen[*other as usize] != node as u32;
                seen[*other as usize] = node as u32;
                keep
            });
            self.adjacent[node] = list;
        }
    }

    /// Pieces have come up in these blocks: their edges. Values that are gone take no part from now on.
    pub fn patch(&mut self, work: &Work<'_>, blocks: &[u32], pieces: std::ops::Range<u32>) {
        for piece in pieces.clone() {
            self.walker.fresh[piece as usize] = true;
        }
        for &block in blocks {
            self.walk(work, block, true);
        }
        for piece in pieces {
            self.walker.fresh[piece as usize] = false;
        }
    }

    fn enter(&mut self, work: &Work<'_>, vreg: u32, position: u32) {
        if work.code.is_undefined(vreg) || work.gone[vreg as usize] {
            return;
        }
        let walker = &mut self.walker;
        if !walker.live.insert(vreg) {
            return;
        }
        walker.since[vreg as usize] = position;
        walker.units += work.code.vregs[vreg as usize].size as u32;
        if walker.fresh[vreg as usize] {
            walker.fresh_live.push(vreg);
        }
    }

    fn exit(&mut self, work: &Work<'_>, vreg: u32) {
        let walker = &mut self.walker;
        if !walker.live.remove(vreg) {
            return;
        }
        walker.units -= work.code.vregs[vreg as usize].size as u32;
        if walker.fresh[vreg as usize] {
            walker.fresh_live.retain(|&other| other != vreg);
        }
    }

    /// Edges of a definition, which stands in the live set itself.
    fn define(&mut self, vreg: u32, patch: bool) {
        // (`connect` does not look at the walker.)
        let walker = std::mem::take(&mut self.walker);
        let only_fresh = patch && !walker.fresh[vreg as usize];
        let list = if only_fresh { &walker.fresh_live[..] } else { walker.live.as_slice() };
        for &other in list {
            self.connect(vreg, other);
        }
        self.walker = walker;
    }

    /// Walk one block backwards. `patch`: only edges of fresh pieces are new.
    fn walk(&mut self, work: &Work<'_>, block: u32, patch: bool) {
        let code = &work.code;
        let info = &code.blocks[block as usize];
        self.walker.live.take();
        self.walker.fresh_live.clear();
        self.walker.units = 0;
        let end = 2 * info.steps.end;
        for vreg in work.live.outs(block) {
            self.enter(work, vreg, end);
        }
        for edge in &info.succs {
            for (&arg, &param) in edge.args.iter().zip(&code.blocks[edge.to as usize].params) {
                if work.param_lives(param) {
                    self.enter(work, arg, end);
                }
            }
        }
        for step in info.steps.clone().rev() {
            let (kind, range) = (code.steps[step as usize].clobbers, code.steps[step as usize].ops());
            self.load[step as usize] = 0;
            self.step(work, step, &code.ops[range.clone()], kind, patch);
            self.take_extra(work, step, &code.ops[range], patch);
            for edit in work.edits_before(step).rev() {
                let edit = &work.edits[edit];
                let (kind, clobbers) = match edit.kind {
                    StepKind::Store(_) => (OperandKind::Use, work.limits.memory_clobbers),
                    StepKind::Fill(_) => (OperandKind::Def, work.limits.memory_clobbers),
                    _ => (OperandKind::Def, ClobberId(0)),
                };
                self.step(work, step, &[code.plain(edit.vreg, kind)], clobbers, patch);
            }
        }
        let start = 2 * info.steps.start;
        for &param in info.params.iter().filter(|&&param| work.param_lives(param)) {
            self.enter(work, param, start);
        }
        for &param in info.params.iter().filter(|&&param| work.param_lives(param)) {
            self.born(param, start, patch);
        }
        for vreg in self.walker.live.take() {
            self.grow(vreg, start, patch);
        }
    }

    /// The extra places of a step meet everything that lives there; the uses have just become live.
    fn take_extra(&mut self, work: &Work<'_>, step: u32, ops: &[Operand], patch: bool) {
        let start = self.extra.partition_point(|extra| extra.step < step);
        let mut at = start;
        while let Some(&Extra { node, writing, .. }) = self.extra.get(at).filter(|extra| extra.step == step) {
            for other in start..at {
                self.connect(node, self.extra[other].node);
            }
            let list =
                if patch { self.walker.fresh_live.clone() } else { self.walker.live.as_slice().to_vec() };
            for other in list {
                self.connect(node, other);
            }
            for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                if (writing || op.kind == OperandKind::EarlyDef) && !work.gone[op.vreg.0 as usize] {
                    self.connect(node, op.vreg.0);
                }
            }
            at += 1;
        }
    }

    fn grow(&mut self, vreg: u32, start: u32, patch: bool) {
        if !patch || self.walker.fresh[vreg as usize] {
            let node = self.root(vreg) as usize;
            self.length[node] += (self.walker.since[vreg as usize].saturating_sub(start) / 2).max(1);
        }
    }

    fn born(&mut self, vreg: u32, position: u32, patch: bool) {
        let node = self.root(vreg) as usize;
        self.birth[node] = self.birth[node].min(position);
        if !patch || self.walker.fresh[vreg as usize] {
            self.alive[node] = true;
        }
        self.define(vreg, patch);
    }

    fn step(&mut self, work: &Work<'_>, step: u32, ops: &[Operand], clobbers: ClobberId, patch: bool) {
        let code = &work.code;
        let position = 2 * step + 1;
        let defs = || ops.iter().filter(|op| op.kind != OperandKind::Use);
        for op in defs() {
            self.enter(work, op.vreg.0, position);
        }
        let mut units = self.walker.units;
        for op in defs() {
            self.born(op.vreg.0, position, patch);
        }
        for op in defs() {
            self.grow(op.vreg.0, position, patch);
            self.exit(work, op.vreg.0);
        }
        let lost = work.limits.clobber_mask(clobbers);
        if !lost.is_empty() {
            for at in 0..self.walker.live.as_slice().len() {
                let vreg = self.walker.live.as_slice()[at];
                let node = self.root(vreg) as usize;
                let mask = self.mask[node].minus(&lost);
                // What an operand asked for gives way; what has nowhere else to be has to be spilled.
                let home = work.limits.sets[code.vregs[vreg as usize].home.0 as usize];
                self.mask[node] = if mask.is_empty() { home.minus(&lost) } else { mask };
            }
        }
        let lives_on = defs().any(|op| {
            op.tied.is_some_and(|tied| {
                ops.get(tied as usize).is_some_and(|used| self.walker.live.contains(used.vreg.0))
            })
        });
        for op in ops.iter().filter(|op| op.kind == OperandKind::Use) {
            self.enter(work, op.vreg.0, position);
        }
        units = units.max(self.walker.units);
        self.load[step as usize] = self.load[step as usize].max(units);
        // Written before anything is read, or taking a copy of a value that lives on: off everything that is read.
        if lives_on || defs().any(|op| op.kind == OperandKind::EarlyDef) {
            for op in defs() {
                let tied = op.tied.and_then(|tied| ops.get(tied as usize));
                if op.kind != OperandKind::EarlyDef && tied.is_none() {
                    continue;
                }
                for used in ops.iter().filter(|used| used.kind == OperandKind::Use) {
                    if !code.is_undefined(used.vreg.0)
                        && !work.gone[used.vreg.0 as usize]
                        && tied.is_none_or(|tied| tied.vreg != used.vreg)
                        && (!patch
                            || self.walker.fresh[used.vreg.0 as usize]
                            || self.walker.fresh[op.vreg.0 as usize])
                    {
                        self.connect(op.vreg.0, used.vreg.0);
                    }
                }
            }
        }
    }
}
