//! A function in the shape that selection wants: one block at the end of the program, one way into each loop and one
//! way back, no two edges between the same blocks; which values are only other names; which values matter at all.
//!
//! Critical edges stay: whether an edge needs a block of its own is known only for the machine's own graph
//! (`plan.rs`), because a divergent branch is no branch there.

use super::SelectError;
use kempe_ir::analysis::{Cfg, NONE};
use kempe_ir::{
    Block, Effect, Function, Imm, Inst, InstData, Op, Stage, Table, Target, Term, Value, ValueDef,
};
use smallvec::SmallVec;

/// A short block that runs only where a condition holds, directly behind the branch on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arm {
    /// Position of the block with the branch.
    pub branch: u32,
    /// The value of the condition for which the arm runs.
    pub when: bool,
}

/// A branch around one or two short arms, which may be walked through by all lanes: only effects and the parameters of
/// the block behind need the condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Short {
    /// Position where the arms meet.
    pub merge: u32,
    /// Estimated cycles of the arms, and whether they are so few that even a real branch costs more.
    pub trivial: bool,
}

/// Estimated cycles up to which an arm is walked through under its condition: leaving the walk costs five operations
/// and a memory access with no lane in it its switch.
const SHORT_ARM: u32 = 16;
/// As much costs a branch with its test and slots.
const TRIVIAL_ARMS: u32 = 5;

/// Most operations in a row that are left for their use.
const LONGEST_CHAIN: u8 = 16;

/// A function ready for selection. Blocks are numbered by position.
pub(super) struct Prepared {
    /// By resource: what the program declares of an image.
    pub images: Vec<Option<(kempe_ir::ResKind, kempe_ir::ImageInfo)>>,
    pub stage: Stage,
    /// Of a vertex or fragment program.
    pub graphics: Option<kempe_mir::Graphics>,
    /// Samples of a pixel.
    pub samples: u8,
    pub func: Function,
    pub cfg: Cfg,
    /// Position of the block where the program ends (always the last one).
    pub end: u32,
    /// Another name's real value: bit casts and parameters that are always the same value.
    root: Table<Value, Value>,
    /// Values (by root) that some effect or condition depends on.
    live: Table<Value, bool>,
    /// Left for its uses, by root.
    lazy: Table<Value, bool>,
    /// How often instructions and conditions use each root.
    uses: Table<Value, u32>,
    /// Position of the block of every root's definition.
    def_pos: Table<Value, u32>,
    /// By position: the loop that the block heads.
    heads: Vec<u32>,
    /// By position: the block is a short arm.
    pub arms: Vec<Option<Arm>>,
    /// By position: the block ends in a branch around short arms.
    pub shorts: Vec<Option<Short>>,
    /// The last batch of a work-group may have lanes that do not exist.
    pub partial_batch: bool,
}

/// A load that happens even when nobody wants its result.
fn is_volatile(d: &kempe_ir::InstData) -> bool {
    match d.imm {
        Imm::Mem(m) => m.volatile,
        Imm::Image(i) => i.volatile,
        _ => false,
    }
}

impl Prepared {
    pub fn new(source: &Function, stage: Stage) -> Result<Prepared, SelectError> {
        let mut func = source.clone();
        drop_unreachable(&mut func);
        let Some(&entry) = func.layout.first() else {
            return Err(SelectError::malformed("the function has no blocks"));
        };
        let end = one_end(&mut func, entry);
        separate_edges(&mut func);
        shape_loops(&mut func)?;
        let cfg = Cfg::new(&func);
        let end = cfg.pos[end];
        if !cfg.preds.first().is_none_or(|p| p.is_empty()) {
            return Err(SelectError::malformed("the entry has predecessors"));
        }
        if !cfg.reachable(end) {
            return Err(SelectError::unsupported("a loop that never ends"));
        }
        let root = names(&func, &cfg);
        let mut heads = vec![NONE; cfg.len()];
        for (l, data) in cfg.loops.iter().enumerate() {
            heads[data.header as usize] = l as u32;
        }
        let mut p = Prepared {
            images: Vec::new(),
            stage,
            graphics: None,
            samples: 1,
            live: Table::new(func.values.len(), false),
            lazy: Table::new(func.values.len(), false),
            uses: Table::new(func.values.len(), 0),
            def_pos: Table::new(func.values.len(), NONE),
            func,
            cfg,
            end,
            root,
            arms: vec![None; heads.len()],
            shorts: vec![None; heads.len()],
            partial_batch: true,
            heads,
        };
        p.positions();
        p.mark_live();
        p.count_uses();
        p.find_lazy();
        p.find_arms();
        Ok(p)
    }

    /// Finds branches around short arms.
    fn find_arms(&mut self) {
        for at in 0..self.len() {
            let Term::Branch { then, els, .. } = &self.block(at).term else { continue };
            let (t, f) = (self.cfg.pos[then.block], self.cfg.pos[els.block]);
            let arms: SmallVec<[(u32, bool); 2]> = if t == at + 1 && f == at + 2 && self.is_arm(at, f, f + 1)
            {
                SmallVec::from_slice(&[(t, true), (f, false)])
            } else if f == at + 1 && t == at + 2 && self.is_arm(at, t, t + 1) {
                SmallVec::from_slice(&[(f, false), (t, true)])
            } else if t == at + 1 {
                SmallVec::from_slice(&[(t, true)])
            } else if f == at + 1 {
                SmallVec::from_slice(&[(f, false)])
            } else {
                continue;
            };
            let merge = at + 1 + arms.len() as u32;
            let meets = arms.len() == 2 || t.max(f) == merge;
            if !meets || !arms.iter().all(|a| self.is_arm(at, a.0, merge)) {
                continue;
            }
            let costs = arms.iter().try_fold(0, |sum: u32, a| {
                let (cost, loads) = self.arm_cost(a.0)?;
                (cost <= SHORT_ARM).then_some(sum + cost + if loads { TRIVIAL_ARMS } else { 0 })
            });
            let Some(costs) = costs else { continue };
            for (arm, when) in arms {
                self.arms[arm as usize] = Some(Arm { branch: at, when });
            }
            self.shorts[at as usize] = Some(Short { merge, trivial: costs <= TRIVIAL_ARMS });
        }
    }

    /// A block that only the branch leads to and that only leads to the merge, all in one loop.
    fn is_arm(&self, branch: u32, arm: u32, merge: u32) -> bool {
        let cfg = &self.cfg;
        (merge as usize) < cfg.len()
            && cfg.preds[arm as usize].as_slice() == [branch]
            && cfg.succs[arm as usize].as_slice() == [merge]
            && self.loop_at(merge).is_none()
            && cfg.loop_of[branch as usize] == cfg.loop_of[arm as usize]
            && cfg.loop_of[branch as usize] == cfg.loop_of[merge as usize]
    }

    /// Cost of a block, and whether it loads; `None` when it cannot be an arm.
    fn arm_cost(&self, at: u32) -> Option<(u32, bool)> {
        let mut cost = 0;
        let mut loads = false;
        for &i in &self.block(at).insts {
            let d = &self.func.insts[i];
            if !self.is_needed(i) || d.results.first().is_some_and(|&r| super::values::is_remade(self, r)) {
                continue;
            }
            cost += match d.op {
                Op::Load | Op::ImageLoad | Op::Sample => {
                    loads = true;
                    6
                }
                Op::Atomic => 6,
                Op::Store => 3,
                Op::Demote => 1,
                _ if d.op.effect() == Effect::Write || d.op.effect() == Effect::Lanes => return None,
                Op::Imul | Op::Select => 2,
                _ => 1,
            };
        }
        Some((cost, loads))
    }

    pub fn len(&self) -> u32 {
        self.cfg.len() as u32
    }

    pub fn block(&self, p: u32) -> &kempe_ir::BlockData {
        &self.func.blocks[self.func.layout[p as usize]]
    }

    #[inline]
    pub fn root(&self, v: Value) -> Value {
        self.root[v]
    }

    /// Position of the block that defines a root.
    #[inline]
    pub fn def_pos(&self, root: Value) -> u32 {
        self.def_pos[root]
    }

    /// Made where it is used and not where it stands.
    #[inline]
    pub fn is_lazy(&self, root: Value) -> bool {
        self.lazy[root]
    }

    /// Whether anything depends on this root.
    #[inline]
    pub fn is_live(&self, root: Value) -> bool {
        self.live[root]
    }

    /// The instruction behind a root.
    pub fn inst_of(&self, root: Value) -> Option<&InstData> {
        self.func.def_inst(root).map(|i| &self.func.insts[i])
    }

    /// The bits of a constant root.
    pub fn constant(&self, root: Value) -> Option<u32> {
        match self.inst_of(root)? {
            InstData { op: Op::Const, imm: Imm::Int(bits), ty, .. } => Some(if *ty == kempe_ir::Type::Bool {
                0u32.wrapping_sub(*bits as u32 & 1)
            } else {
                *bits as u32
            }),
            _ => None,
        }
    }

    /// Parameters of a block that stand for themselves and matter, with their number.
    pub fn params(&self, p: u32) -> impl Iterator<Item = (usize, Value)> + '_ {
        self.block(p).params.iter().copied().enumerate().filter(|&(_, v)| self.root[v] == v && self.live[v])
    }

    /// Edge `k` of a block, if it exists.
    pub fn edge(&self, p: u32, k: usize) -> Option<&Target> {
        self.block(p).term.targets().nth(k)
    }

    /// An instruction that must be emitted: it has an effect, or its result matters.
    pub fn is_needed(&self, i: Inst) -> bool {
        let d = &self.func.insts[i];
        match d.op.effect() {
            // A lookup that nobody wants has no effect on other lanes.
            Effect::Lanes if d.op == Op::SampleImplicit => self.any_live(d),
            Effect::Write | Effect::Lanes => true,
            Effect::Read => is_volatile(d) || self.any_live(d),
            Effect::Pure | Effect::Constant => self.any_live(d),
        }
    }

    fn any_live(&self, d: &InstData) -> bool {
        d.results.iter().any(|&r| self.root[r] == r && self.live[r])
    }

    /// The loop that a block heads.
    pub fn loop_at(&self, p: u32) -> Option<u32> {
        Some(self.heads[p as usize]).filter(|&l| l != NONE)
    }

    /// The loop contains the position.
    pub fn in_loop(&self, l: u32, p: u32) -> bool {
        let l = &self.cfg.loops[l as usize];
        l.header <= p && p <= l.last
    }

    fn positions(&mut self) {
        for p in 0..self.cfg.len() {
            let b = &self.func.blocks[self.func.layout[p]];
            for &v in &b.params {
                self.def_pos[v] = p as u32;
            }
            for &i in &b.insts {
                let d = &self.func.insts[i];
                // The payload is there from the start, wherever it is asked for, and so are the inputs of fragments.
                let early = match (d.op, d.imm) {
                    (Op::Payload, _) => true,
                    (Op::Input, _) => self.stage == Stage::Fragment,
                    (Op::Builtin, Imm::Builtin(b)) => {
                        matches!(b, kempe_ir::Builtin::PointCoord(_) | kempe_ir::Builtin::PrimitiveId)
                    }
                    _ => false,
                };
                let at = if early { 0 } else { p as u32 };
                for &v in &d.results {
                    self.def_pos[v] = at;
                }
            }
        }
    }

    fn count_uses(&mut self) {
        for p in 0..self.cfg.len() {
            let b = &self.func.blocks[self.func.layout[p]];
            for &i in &b.insts {
                if self.is_needed(i) {
                    for &a in &self.func.insts[i].args {
                        self.uses[self.root[a]] += 1;
                    }
                }
            }
            if let Term::Branch { cond, .. } = b.term {
                self.uses[self.root[cond]] += 1;
            }
            for t in b.term.targets() {
                for &a in &t.args {
                    self.uses[self.root[a]] += 2;
                }
            }
        }
    }

    /// Chains are cut, because making the last one makes all before it.
    fn find_lazy(&mut self) {
        let mut depth = Table::new(self.func.values.len(), 0u8);
        for p in 0..self.cfg.len() {
            for &i in &self.func.blocks[self.func.layout[p]].insts {
                let d = &self.func.insts[i];
                let [r] = d.results.as_slice() else { continue };
                if self.root[*r] == *r && super::values::may_be_lazy(d, self.uses[*r] == 1) {
                    let below = d.args.iter().map(|&a| depth[self.root[a]]).max().unwrap_or(0);
                    if below < LONGEST_CHAIN {
                        depth[*r] = below + 1;
                        self.lazy[*r] = true;
                    }
                }
            }
        }
    }

    fn mark_live(&mut self) {
        let mut work: Vec<Value> = Vec::new();
        for p in 0..self.cfg.len() {
            let b = &self.func.blocks[self.func.layout[p]];
            for &i in &b.insts {
                let d = &self.func.insts[i];
                let effect = matches!(d.op.effect(), Effect::Write | Effect::Lanes);
                if effect && d.op != Op::SampleImplicit || is_volatile(d) {
                    work.extend(d.args.iter().map(|&a| self.root[a]));
                }
            }
            if let Term::Branch { cond, .. } = b.term {
                work.push(self.root[cond]);
            }
        }
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut self.live[v], true) {
                continue;
            }
            match self.func.values[v].def {
                ValueDef::Inst(i, _) => {
                    work.extend(self.func.insts[i].args.iter().map(|&a| self.root[a]));
                }
                ValueDef::Param(b, n) => {
                    let p = self.cfg.pos[b];
                    for &q in &self.cfg.preds[p as usize] {
                        for t in self.func.blocks[self.func.layout[q as usize]].term.targets() {
                            if t.block == b {
                                work.extend(t.args.get(n as usize).map(|&a| self.root[a]));
                            }
                        }
                    }
                }
            }
        }
    }
}

fn drop_unreachable(func: &mut Function) {
    let cfg = Cfg::new(func);
    if (0..cfg.len() as u32).any(|p| !cfg.reachable(p)) {
        let keep: Vec<Block> =
            (0..cfg.len()).filter(|&p| cfg.reachable(p as u32)).map(|p| func.layout[p]).collect();
        func.layout = keep;
    }
}

/// Makes one block at the end where the program ends; edges to blocks that do nothing but end go there directly.
fn one_end(func: &mut Function, entry: Block) -> Block {
    let end = func.add_block();
    let jump = Term::Jump(Target { block: end, args: SmallVec::new() });
    let mut trivial = Table::new(func.blocks.len(), false);
    for n in 0..func.layout.len() - 1 {
        let b = func.layout[n];
        let data = &mut func.blocks[b];
        if matches!(data.term, Term::Return | Term::Unreachable) {
            data.term = jump.clone();
            trivial[b] = data.insts.is_empty() && b != entry;
        }
    }
    func.blocks[end].term = Term::Return;
    for n in 0..func.layout.len() {
        let b = func.layout[n];
        for t in func.blocks[b].term.targets_mut() {
            if trivial[t.block] {
                *t = Target { block: end, args: SmallVec::new() };
            }
        }
    }
    func.layout.retain(|&b| !trivial[b]);
    end
}

/// A branch whose two edges go to the same block gets a block on the second one.
fn separate_edges(func: &mut Function) {
    let mut at = 0;
    while at < func.layout.len() {
        let b = func.layout[at];
        let second = match &func.blocks[b].term {
            Term::Branch { then, els, .. } if then.block == els.block => Some(els.clone()),
            _ => None,
        };
        if let Some(target) = second {
            let new = func.add_block_detached();
            func.blocks[new].term = Term::Jump(target);
            if let Term::Branch { els, .. } = &mut func.blocks[b].term {
                *els = Target { block: new, args: SmallVec::new() };
            }
            func.layout.insert(at + 1, new);
            at += 1;
        }
        at += 1;
    }
}

/// Every loop is entered by one jump and goes back by one jump.
fn shape_loops(func: &mut Function) -> Result<(), SelectError> {
    let cfg = Cfg::new(func);
    let mut before: Vec<(u32, Block)> = Vec::new();
    let mut after: Vec<(u32, Block)> = Vec::new();
    // Inner loops first: of two loops that end at the same block the inner one closes first.
    for l in cfg.loops.iter().rev() {
        let header = func.layout[l.header as usize];
        let preds = &cfg.preds[l.header as usize];
        let mut outside: SmallVec<[u32; 4]> = preds.iter().copied().filter(|&p| p < l.header).collect();
        let mut inside: SmallVec<[u32; 4]> = preds.iter().copied().filter(|&p| p >= l.header).collect();
        outside.dedup();
        inside.dedup();
        for (list, places, at) in [(outside, &mut before, l.header), (inside, &mut after, l.last)] {
            // The block in front of the header must be its neighbour: lanes never wait for a header.
            if let [p] = list.as_slice()
                && cfg.succs[*p as usize].len() == 1
                && (*p >= l.header || p + 1 == l.header)
            {
                continue;
            }
            if list.is_empty() {
                return Err(SelectError::malformed("a loop that is not entered"));
            }
            let new = func.add_block_detached();
            let types: SmallVec<[kempe_ir::Type; 4]> =
                func.blocks[header].params.iter().map(|&v| func.ty(v)).collect();
            let args = types.iter().map(|&ty| func.add_param(new, ty)).collect();
            func.blocks[new].term = Term::Jump(Target { block: header, args });
            for p in list {
                let from = func.layout[p as usize];
                for t in func.blocks[from].term.targets_mut() {
                    if t.block == header {
                        t.block = new;
                    }
                }
            }
            places.push((at, new));
        }
    }
    if before.is_empty() && after.is_empty() {
        return Ok(());
    }
    let mut layout = Vec::with_capacity(func.layout.len() + before.len() + after.len());
    // Stable: `after` keeps inner before outer at the same place.
    before.sort_by_key(|e| e.0);
    after.sort_by_key(|e| e.0);
    let (mut b, mut a) = (before.into_iter().peekable(), after.into_iter().peekable());
    for (p, &block) in func.layout.iter().enumerate() {
        while let Some((_, new)) = b.next_if(|e| e.0 == p as u32) {
            layout.push(new);
        }
        layout.push(block);
        while let Some((_, new)) = a.next_if(|e| e.0 == p as u32) {
            layout.push(new);
        }
    }
    func.layout = layout;
    Ok(())
}

/// Which values are only names of others: casts between types of the same register, and parameters that get the same
/// value over every edge.
fn names(func: &Function, cfg: &Cfg) -> Table<Value, Value> {
    let mut root = Table::new(func.values.len(), Value(0));
    for v in func.values.keys() {
        root[v] = v;
    }
    for (p, &b) in func.layout.iter().enumerate() {
        let block = &func.blocks[b];
        for (n, &param) in block.params.iter().enumerate() {
            let mut same = None;
            let mut one = true;
            for &q in &cfg.preds[p] {
                for t in func.blocks[func.layout[q as usize]].term.targets().filter(|t| t.block == b) {
                    let Some(&arg) = t.args.get(n) else { continue };
                    // Around a loop only the parameter itself is known to be the same.
                    if arg == param {
                        continue;
                    }
                    let arg = if q >= p as u32 { arg } else { root[arg] };
                    match same {
                        None => same = Some((arg, q >= p as u32)),
                        Some((s, _)) if s == arg => {}
                        Some(_) => one = false,
                    }
                }
            }
            if let (true, Some((s, false))) = (one, same) {
                root[param] = s;
            }
        }
        for &i in &block.insts {
            let d = &func.insts[i];
            if let (Op::Bitcast, [a], [r]) = (d.op, d.args.as_slice(), d.results.as_slice()) {
                root[*r] = root[*a];
            }
        }
    }
    root
}
