//! The walk over the blocks: execution values, variables, edges. What single instructions become is in `ops.rs`.

use super::SelectError;
use super::flow::Flow;
use super::plan::Plan;
use super::prepare::{Arm, Prepared};
use super::rules::{Counts, Rule};
use super::values::{self, Remade};
use super::vars::{Kind, Vars};
use crate::instr::{Op, Pack, Unpack, Version, small_code};
use crate::mops::{Cmp, CmpOp, MAX_CMPS, MInst, Src, Test};
use crate::regs;
use kempe_ir::io::IoImm;
use kempe_ir::{Stage, Table, Term, Value};
use kempe_mir::{Mir, MirBuilder, UniformSource};
use kempe_ra::{Block, ClobberId, Operand, OperandKind, Recipe, SetId, VReg, VRegInfo};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// How far a word of the uniform stream is shared: further on it is loaded again, which costs a signal and no
/// register in between (the reference compiler looks back as far).
const SHARE_WITHIN: u32 = 20;

/// Cycles to read a word again through the side band: the address from the uniform stream, its move, and some of the
/// slots that a word is waited for (reference 12.5).
const READ_COST: f32 = 4.0;

pub(super) type Uses = SmallVec<[VReg; 4]>;

/// State at the end of a block.
#[derive(Clone, Default)]
pub(super) struct Snap {
    pub exec: Option<VReg>,
    pub vars: Vec<(u32, VReg)>,
}

pub(super) struct Out {
    pub to: u32,
    pub args: Vec<VReg>,
}

pub(super) struct Emit<'a> {
    pub p: &'a Prepared,
    pub flow: &'a Flow,
    pub plan: &'a Plan,
    pub vars: &'a Vars,
    pub version: Version,
    pub threads: u32,
    pub b: MirBuilder<MInst>,
    /// Register of each root, once it has one.
    val: Table<Value, Option<VReg>>,
    /// Versions of the variables in scope, by variable.
    pub cur: Vec<(u32, VReg)>,
    /// The execution value; `None` where all lanes run.
    pub exec: Option<VReg>,
    /// The block is a short arm that all lanes walk through.
    pub arm: Option<Arm>,
    /// Position of the block being made, and the index of the instruction in it.
    pub at: u32,
    pub index: usize,
    pub snaps: Vec<Snap>,
    pub out: Vec<SmallVec<[Out; 2]>>,
    remade: FxHashMap<Remade, (VReg, u32)>,
    /// Values of this block that become the next version of a variable: they may be made under the mask at once.
    pub into: Vec<(Value, u32)>,
    /// Those of them that were.
    written: Vec<(Value, u32)>,
    recipes: FxHashMap<Remade, Recipe>,
    pub payload: [Option<VReg>; 8],
    undefined: Option<VReg>,
    /// What a graphics program gives at its end.
    pub given: Vec<(IoImm, Value)>,
    pub gave: bool,
    /// Addresses that were computed may go to the side band.
    pub side_values: bool,
    /// Loads done together with an earlier one, by instruction.
    pub done: Table<kempe_ir::Inst, bool>,
    pub error: Option<SelectError>,
    pub rules: &'a mut Counts,
}

impl<'a> Emit<'a> {
    pub fn new(
        p: &'a Prepared,
        flow: &'a Flow,
        plan: &'a Plan,
        vars: &'a Vars,
        version: Version,
        threads: u32,
        rules: &'a mut Counts,
    ) -> Emit<'a> {
        Emit {
            p,
            flow,
            plan,
            vars,
            version,
            threads,
            b: MirBuilder::new(),
            val: Table::new(p.func.values.len(), None),
            cur: Vec::new(),
            exec: None,
            arm: None,
            at: 0,
            index: 0,
            snaps: vec![Snap::default(); p.cfg.len()],
            out: (0..p.cfg.len()).map(|_| SmallVec::new()).collect(),
            remade: FxHashMap::default(),
            into: Vec::new(),
            written: Vec::new(),
            recipes: FxHashMap::default(),
            payload: [None; 8],
            given: Vec::new(),
            gave: false,
            side_values: true,
            undefined: None,
            done: Table::new(p.func.insts.len(), false),
            error: None,
            rules,
        }
    }

    pub fn run(mut self) -> Result<Mir<MInst>, SelectError> {
        self.b.declare_blocks(self.plan.blocks as usize);
        for at in 0..self.p.len() {
            self.at = at;
            self.block();
            if let Some(e) = self.error.take() {
                return Err(e);
            }
        }
        self.connect();
        Ok(self.b.finish())
    }

    // ---- Registers and operands ----

    pub fn fresh(&mut self, home: SetId) -> VReg {
        self.b.vreg(VRegInfo { home, size: 1, recipe: None, undefined: false }, String::new())
    }

    /// A register for a root, with its name.
    pub fn fresh_for(&mut self, home: SetId, root: Value) -> VReg {
        let name = self.p.func.names.get(&root).cloned().unwrap_or_default();
        self.b.vreg(VRegInfo { home, size: 1, recipe: None, undefined: false }, name)
    }

    pub fn undefined(&mut self) -> VReg {
        if let Some(v) = self.undefined {
            return v;
        }
        self.rules.hit(Rule::Undefined);
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: None, undefined: true };
        let v = self.b.vreg(info, String::new());
        self.undefined = Some(v);
        v
    }

    pub fn home(&self, v: VReg) -> SetId {
        self.b.mir.program.vregs[v.0 as usize].home
    }

    pub fn set(&mut self, root: Value, v: VReg) {
        self.val[root] = Some(v);
    }

    pub fn fail(&mut self, e: SelectError) {
        self.error.get_or_insert(e);
    }

    /// Appends an instruction. With `tied` the def is a new version of that register.
    pub fn push(
        &mut self,
        data: MInst,
        defs: &[VReg],
        uses: &[VReg],
        tied: Option<VReg>,
        clobbers: ClobberId,
    ) {
        let mut list: SmallVec<[Operand; 8]> = SmallVec::new();
        let plain =
            |vreg, kind, set| Operand { vreg, kind, set, tied: None, fixed: None, hint: None, vector: None };
        for &d in defs {
            list.push(plain(d, OperandKind::Def, self.home(d)));
        }
        for &u in uses {
            list.push(plain(u, OperandKind::Use, self.home(u)));
        }
        if let Some(t) = tied {
            // Sets are nested: rows, rows and accumulators, these and r5.
            let set = self.home(t).min(list[0].set);
            list[0].set = set;
            list[0].tied = Some(list.len() as u8);
            list.push(plain(t, OperandKind::Use, set));
        }
        let is_move = matches!(data, MInst::Alu { op: Op::Mov | Op::Fmov, test: None, pack: Pack::None, .. })
            && list.len() == 2
            && matches!(data, MInst::Alu { unpack: [Unpack::None, _], .. });
        let repeat = data.repeat_cost().filter(|_| tied.is_none() && clobbers == regs::NONE);
        let inst = self.b.inst(data, &list, clobbers, is_move);
        self.b.mir.program.insts[inst.0 as usize].repeat = repeat;
    }

    pub fn terminator(&mut self, data: MInst, uses: &[VReg]) {
        self.push(data, &[], uses, None, regs::NONE);
    }

    /// `dst = src` in the lanes of the test, keeping the rest of `old`.
    pub fn move_under(&mut self, src: Src, value: &[VReg], test: (Test, Uses), old: VReg) -> VReg {
        let dst = self.fresh(regs::ANY);
        let mut uses = test.1;
        uses.extend_from_slice(value);
        self.push(alu(Op::Mov, [src, Src::None], Some(test.0)), &[dst], &uses, Some(old), regs::NONE);
        dst
    }

    /// A word that is made again here, shared with near uses in this block.
    pub fn remake(&mut self, what: Remade) -> VReg {
        let now = self.b.mir.data.len() as u32;
        if let Some(&(v, at)) = self.remade.get(&what)
            && (now - at <= SHARE_WITHIN || matches!(what, Remade::LaneId | Remade::ThreadId))
        {
            self.rules.hit(Rule::SharedWord);
            return v;
        }
        let v = self.remake_in(what, None);
        self.remade.insert(what, (v, now));
        v
    }

    /// The instruction that makes the value, its natural home, and the recipe of the two.
    pub fn recipe(&mut self, what: Remade) -> (MInst, SetId, Recipe) {
        let (data, natural, cost) = match what {
            Remade::Const(c) => match small_code(c) {
                Some(code) => (alu(Op::Mov, [Src::Imm(code), Src::None], None), regs::ANY, 1.0),
                None => (MInst::Uniform(UniformSource::Const(c)), regs::UNI, 1.0),
            },
            Remade::Word(w, c) => (MInst::Uniform(UniformSource::Word(w, c)), regs::UNI, 1.0),
            Remade::Read(w, c) => {
                (MInst::Read { address: UniformSource::Word(w, c), count: 1 }, regs::UNI, READ_COST)
            }
            Remade::LaneId => (alu(Op::Eidx, [Src::None; 2], None), regs::ANY, 1.0),
            Remade::ThreadId => (alu(Op::Tidx, [Src::None; 2], None), regs::ANY, 1.0),
            Remade::Start(n) => match values::start_op(u64::from(n)) {
                Some(op) => (alu(op, [Src::None; 2], None), regs::ANY, 1.0),
                None => (MInst::Uniform(UniformSource::Const(0)), regs::UNI, 1.0),
            },
        };
        let recipe = match self.recipes.get(&what) {
            Some(&r) => r,
            None => {
                let r = self.b.recipe(data, cost);
                self.recipes.insert(what, r);
                r
            }
        };
        (data, natural, recipe)
    }

    /// The same into a register of its own.
    pub fn remake_in(&mut self, what: Remade, home: Option<SetId>) -> VReg {
        let (data, natural, recipe) = self.recipe(what);
        self.rules.hit(match (what, data) {
            (Remade::Const(_), MInst::Uniform(_)) => Rule::ConstantWord,
            (Remade::Const(_), _) => Rule::ConstantMove,
            (Remade::Word(_, 0), _) => Rule::DriverWord,
            (Remade::Word(..), _) => Rule::DriverWordPlus,
            (Remade::Read(..), _) => Rule::SideBandWord,
            (Remade::LaneId, _) => Rule::LaneId,
            (Remade::ThreadId, _) => Rule::ThreadId,
            (Remade::Start(_), _) => Rule::StartWord,
        });
        let home = home.unwrap_or(natural);
        let v =
            self.b.vreg(VRegInfo { home, size: 1, recipe: Some(recipe), undefined: false }, String::new());
        self.push(data, &[v], &[], None, regs::NONE);
        v
    }

    /// The register that holds a value here.
    pub fn reg(&mut self, v: Value) -> VReg {
        let root = self.p.root(v);
        if let Some(n) = values::payload(self.p, root) {
            return match self.payload.get(n as usize).copied().flatten() {
                Some(v) => v,
                None => self.lost(root),
            };
        }
        if let Some(what) = values::remade(self.p, root) {
            return self.remake(what);
        }
        let def = self.p.def_pos(root);
        if self.is_here(def) {
            if self.val[root].is_none() && self.p.is_lazy(root) {
                self.make(root);
            }
        } else if let Some(var) = self.vars.of(root)
            && self.vars.reads_version(self.p, self.flow, self.plan, root, self.at)
        {
            self.rules.hit(Rule::ReadVersion);
            return match self.version(var) {
                Some(v) => v,
                None => self.undefined(),
            };
        }
        match self.val[root] {
            Some(v) => v,
            None => self.lost(root),
        }
    }

    /// Defined in this block, or in the block whose short arm this is.
    pub fn is_here(&self, def: u32) -> bool {
        def == self.at || self.arm.is_some_and(|arm| arm.branch == def)
    }

    /// The lanes in which this block has effects; `None`: all.
    pub fn active(&mut self) -> Option<(Test, Uses)> {
        if let Some(arm) = self.arm
            && let Term::Branch { cond, .. } = self.p.block(arm.branch).term
        {
            return Some(self.test(cond, !arm.when, self.exec));
        }
        self.exec.map(running)
    }

    pub fn has_reg(&self, root: Value) -> bool {
        self.val[root].is_some()
    }

    fn lost(&mut self, root: Value) -> VReg {
        self.fail(SelectError::malformed(&format!("{root} has no register in block {}", self.at)));
        self.undefined()
    }

    /// A source operand: an immediate if it may be one, else a register that is added to `uses`.
    pub fn src(&mut self, v: Value, imm: bool, uses: &mut Uses) -> Src {
        if imm
            && let Some(c) = self.p.constant(self.p.root(v))
            && let Some(code) = small_code(c)
        {
            self.rules.hit(Rule::SmallImmediate);
            return Src::Imm(code);
        }
        uses.push(self.reg(v));
        Src::Use
    }

    /// Two sources of one operation: at most one is an immediate.
    pub fn src2(&mut self, a: Value, b: Value, uses: &mut Uses) -> [Src; 2] {
        let small = |c: &Self, v: Value| c.p.constant(c.p.root(v)).and_then(small_code).is_some();
        let second = small(self, b);
        let first = !second && small(self, a);
        [self.src(a, first, uses), self.src(b, second, uses)]
    }

    // ---- Variables ----

    /// Finds the values of this block that are assigned to variables at its end.
    fn find_assigned(&mut self) {
        self.into.clear();
        let p = self.p;
        for k in 0..2 {
            let Some(t) = p.edge(self.at, k) else { continue };
            let to = p.cfg.pos[t.block];
            for (n, param) in p.params(to) {
                let (Some(var), Some(&arg)) = (self.vars.of(param), t.args.get(n)) else { continue };
                let root = p.root(arg);
                let kind = self.vars.list[var as usize].kind;
                if !(self.flow.meets[to as usize] || kind == Kind::Header)
                    || p.def_pos(root) != self.at
                    || self.flow.value_is_uniform(root)
                {
                    continue;
                }
                match self.into.iter().position(|e| e.0 == root) {
                    // Two variables cannot both be written at once.
                    Some(_) => {}
                    None => self.into.push((root, var)),
                }
            }
        }
    }

    /// Says that [`Emit::replaces`] was done.
    pub fn replaced(&mut self, root: Value) {
        if let Some(&e) = self.into.iter().find(|e| e.0 == root) {
            self.written.push(e);
        }
    }

    /// The version that a value of this block is to replace, when it can be written under a mask at once.
    pub fn replaces(&self, root: Value) -> Option<VReg> {
        let &(_, var) = self.into.iter().find(|e| e.0 == root)?;
        if self.exec.is_none() && self.arm.is_none() {
            return None;
        }
        self.version(var)
    }

    pub fn version(&self, var: u32) -> Option<VReg> {
        self.cur.binary_search_by_key(&var, |e| e.0).ok().map(|i| self.cur[i].1)
    }

    fn write_version(&mut self, var: u32, v: VReg) {
        match self.cur.binary_search_by_key(&var, |e| e.0) {
            Ok(i) => self.cur[i].1 = v,
            Err(i) => self.cur.insert(i, (var, v)),
        }
    }

    /// The next version of a variable: the value, in the lanes that run.
    pub fn assign(&mut self, var: u32, value: Value) -> VReg {
        let root = self.p.root(value);
        if let Some(v) = self.val[root]
            && self.written.contains(&(root, var))
        {
            self.rules.hit(Rule::AssignInPlace);
            self.write_version(var, v);
            return v;
        }
        let old = self.version(var);
        if let Some(old) = old.filter(|&old| self.val[root] == Some(old)) {
            // The lanes that run have the same as those that left before.
            return old;
        }
        let all = self.exec.is_none() && self.arm.is_none();
        let v = match old.filter(|_| !all) {
            Some(old) => {
                self.rules.hit(Rule::AssignMasked);
                let mut uses = Uses::new();
                let src = self.src(value, true, &mut uses);
                match self.active() {
                    Some(test) => self.move_under(src, &uses, test, old),
                    None => old,
                }
            }
            // Nobody needs the old version: the value itself is the new one.
            _ => match values::remade(self.p, self.p.root(value)) {
                Some(what) => {
                    self.rules.hit(Rule::AssignRemade);
                    self.remake_in(what, Some(regs::ANY))
                }
                None => {
                    self.rules.hit(Rule::AssignWhole);
                    self.reg(value)
                }
            },
        };
        self.write_version(var, v);
        v
    }

    /// Called when a root of this block has its register: writes its variable.
    pub fn defined(&mut self, root: Value) {
        let Some(var) = self.vars.of(root) else { return };
        let Some(v) = self.val[root] else { return };
        match self.vars.list[var as usize].kind {
            Kind::Plain => {
                self.rules.hit(Rule::DefinedRenamed);
                self.write_version(var, v);
            }
            Kind::Def => {
                let new = match self.version(var) {
                    Some(old) => match self.active() {
                        Some(test) => {
                            self.rules.hit(Rule::DefinedMasked);
                            self.move_under(Src::Use, &[v], test, old)
                        }
                        None => v,
                    },
                    None => v,
                };
                self.write_version(var, new);
            }
            Kind::Join | Kind::Header => {}
        }
    }

    // ---- Blocks ----

    fn block(&mut self) {
        let at = self.at;
        let a = at as usize;
        let id = self.plan.block[a];
        self.arm = self.flow.arm(self.p, at);
        if self.arm.is_some() {
            self.rules.hit(Rule::Arm);
        }
        if !self.plan.continues[a] {
            self.b.start_block(Block(id));
            self.remade.clear();
        }
        self.b.loc = self.p.block(at).term_loc;
        if at == 0 {
            self.entry();
        } else {
            self.enter(id);
        }
        self.written.clear();
        self.find_assigned();
        let p = self.p;
        for (index, &i) in p.block(at).insts.iter().enumerate() {
            self.index = index;
            if p.is_needed(i) && !self.done[i] {
                self.b.loc = p.func.insts[i].loc;
                self.inst(i);
                if self.error.is_some() {
                    return;
                }
            }
        }
        self.b.loc = p.block(at).term_loc;
        self.leave();
    }

    fn entry(&mut self) {
        if self.p.stage != Stage::Compute {
            self.stage_entry();
            return;
        }
        let mut used = [false; 2];
        for p in 0..self.p.len() {
            for &i in &self.p.block(p).insts {
                let d = &self.p.func.insts[i];
                if let (kempe_ir::Op::Payload, kempe_ir::Imm::Int(n @ 0..=1)) = (d.op, d.imm)
                    && self.p.is_needed(i)
                {
                    used[n as usize] = true;
                }
            }
        }
        let mut list: SmallVec<[Operand; 2]> = SmallVec::new();
        for n in 0..2 {
            if let (true, Some(unit)) = (used[n], regs::payload_row(self.version, n as u64)) {
                let vreg = self.fresh(regs::RF);
                self.payload[n] = Some(vreg);
                self.rules.hit([Rule::Payload0, Rule::Payload1][n]);
                list.push(Operand {
                    vreg,
                    kind: OperandKind::Def,
                    set: regs::RF,
                    tied: None,
                    fixed: Some(unit),
                    hint: Some(unit),
                    vector: None,
                });
            }
        }
        self.b.inst(MInst::Entry, &list, regs::NONE, false);
    }

    fn add_param(&mut self, id: u32, v: VReg) {
        self.b.mir.program.blocks[id as usize].params.push(v);
    }

    pub fn send(&mut self, from: u32, to: u32, v: VReg) {
        if let Some(o) = self.out[from as usize].iter_mut().find(|o| o.to == to) {
            o.args.push(v);
        }
    }

    /// Parameters, versions and the execution value at the start of a block.
    fn enter(&mut self, id: u32) {
        let at = self.at;
        let p = self.p;
        let head = p.loop_at(at);
        let preds: SmallVec<[u32; 4]> =
            self.plan.preds[at as usize].iter().copied().filter(|&q| q < at).collect();
        let meets = self.flow.meets[at as usize];
        let params: SmallVec<[Value; 4]> = p.params(at).map(|(_, v)| v).collect();
        if !meets {
            for &v in &params {
                let r = self.fresh_for(regs::ANY, v);
                self.add_param(id, r);
                self.val[v] = Some(r);
            }
        }
        self.merge(id, &preds, head);
        if self.flow.join[at as usize] {
            self.resume();
        }
        if meets {
            for &v in &params {
                let version = self.vars.of(v).and_then(|var| self.version(var));
                let r = match version {
                    Some(r) => r,
                    None => self.undefined(),
                };
                self.val[v] = Some(r);
            }
        } else {
            for &v in &params {
                if let Some(var) = self.vars.of(v)
                    && self.vars.list[var as usize].kind == Kind::Header
                    && let Some(r) = self.val[v]
                {
                    self.write_version(var, r);
                }
            }
        }
        for &v in &params {
            self.defined(v);
        }
    }

    /// Brings the versions of all predecessors together.
    fn merge(&mut self, id: u32, preds: &[u32], head: Option<u32>) {
        let at = self.at;
        let in_scope = |vars: &Vars, var: u32| vars.list[var as usize].to >= at;
        let Some((&first, rest)) = preds.split_first() else {
            self.fail(SelectError::malformed("a block that nothing leads to"));
            return;
        };
        let mut wanted: Vec<u32> = Vec::new();
        for q in preds {
            wanted
                .extend(self.snaps[*q as usize].vars.iter().map(|e| e.0).filter(|&v| in_scope(self.vars, v)));
        }
        let carried: &[u32] = head.map_or(&[], |l| &self.vars.carried[l as usize]);
        wanted.extend(carried.iter().copied());
        wanted.sort_unstable();
        wanted.dedup();
        let find = |s: &Snap, var: u32| s.vars.binary_search_by_key(&var, |e| e.0).ok().map(|i| s.vars[i].1);
        let mut cur = Vec::with_capacity(wanted.len());
        for var in wanted {
            let v0 = find(&self.snaps[first as usize], var);
            let same = rest.iter().all(|&q| find(&self.snaps[q as usize], var) == v0);
            if let (true, Some(v), false) = (same, v0, carried.contains(&var)) {
                cur.push((var, v));
                continue;
            }
            self.rules.hit(Rule::VersionsMeet);
            let param = self.fresh_for(regs::ANY, self.vars.list[var as usize].value);
            self.add_param(id, param);
            for &q in preds {
                let arg = match find(&self.snaps[q as usize], var) {
                    Some(v) => v,
                    None => self.undefined(),
                };
                self.send(q, at, arg);
            }
            cur.push((var, param));
        }
        self.cur = cur;
        self.exec = None;
        if self.flow.partial[at as usize] || self.flow.join[at as usize] {
            let v0 = self.snaps[first as usize].exec;
            let same = rest.iter().all(|&q| self.snaps[q as usize].exec == v0);
            let changes = head.is_some_and(|l| self.plan.masks_change[l as usize]);
            if same && !changes {
                self.exec = v0;
            } else if self.flow.partial[at as usize] {
                self.rules.hit(Rule::MasksMeet);
                let param = self.fresh(regs::ANY);
                self.add_param(id, param);
                for &q in preds {
                    match self.snaps[q as usize].exec {
                        Some(v) => self.send(q, at, v),
                        None => self.fail(SelectError::malformed("an execution value is missing")),
                    }
                }
                self.exec = Some(param);
            }
        }
    }

    /// Lanes that wait for this block run again.
    fn resume(&mut self) {
        if !self.flow.partial[self.at as usize] {
            self.rules.hit(Rule::ResumeAll);
            self.exec = None;
            return;
        }
        self.rules.hit(Rule::Resume);
        let Some(exec) = self.exec else {
            self.fail(SelectError::malformed("an execution value is missing"));
            return;
        };
        let mut uses: Uses = smallvec![exec];
        let number = self.number(self.at, &mut uses);
        let cmp = Cmp { op: CmpOp::Ieq, src: [Src::Use, number], unpack: [Unpack::None; 2], invert: false };
        let test = (Test::of(cmp), uses);
        self.exec = Some(self.move_under(Src::Imm(0), &[], test, exec));
    }

    /// The number of a block as an operand.
    pub fn number(&mut self, to: u32, uses: &mut Uses) -> Src {
        let n = self.plan.number[to as usize] as u32;
        match small_code(n) {
            Some(code) => Src::Imm(code),
            None => {
                uses.push(self.remake(Remade::Const(n)));
                Src::Use
            }
        }
    }

    // ---- Tests ----

    /// A condition as a test, under an execution value if one is given.
    pub fn test(&mut self, cond: Value, invert: bool, mask: Option<VReg>) -> (Test, Uses) {
        let (literals, not) = self.literals(cond, invert);
        if matches!(self.folded(cond), Some((kempe_ir::Op::Not, _))) {
            self.rules.hit(Rule::TestNot);
        }
        match literals.len() {
            0 | 1 => {}
            2 => self.rules.hit(Rule::TestTwo),
            _ => self.rules.hit(Rule::TestThree),
        }
        if not {
            self.rules.hit(Rule::TestInverted);
        }
        let mut uses = Uses::new();
        uses.extend(mask);
        let mut cmps = [None; MAX_CMPS];
        for (slot, &(v, invert)) in cmps.iter_mut().zip(&literals) {
            *slot = Some(self.condition(v, invert, &mut uses));
        }
        let [cmp, more @ ..] = cmps;
        (Test { mask: mask.is_some(), cmp, more, not }, uses)
    }
}

/// An operation without modifiers.
pub(super) fn alu(op: Op, src: [Src; 2], test: Option<Test>) -> MInst {
    MInst::Alu { op, pack: Pack::None, src, unpack: [Unpack::None; 2], test }
}

/// The lanes that run.
pub(super) fn running(exec: VReg) -> (Test, Uses) {
    (Test::RUNNING, smallvec![exec])
}
