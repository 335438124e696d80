//! Instruction selection: lowered IR to machine instructions over virtual registers.
//!
//! It goes from the last block to the first and from the last instruction of a block to its first. A use comes before the
//! definition that way, so an instruction is only made when something asked for its value, and whoever takes an operand
//! decides whether to take it whole: a comparison goes into the branch or select that reads it, a negation into a float
//! source, a product into a sum. What nobody asked for is never made.
//!
//! * [`plan`]: order of the blocks, how lanes wait
//! * [`ops`]: arithmetic; [`memory`]: accesses, pointers
//! * [`sources`]: operands: immediates, uniforms, modifiers
//!
//! Constants that do not fit into an instruction are words of the uniform registers as long as there are any (reference
//! section 1.3): an operand like any other, without a register.
//!
//! Left out: 16-bit operations as such (halves are computed in f32 with 16-bit sources and results); saturation; fused
//! multiply-add, because the IR rounds twice.

mod memory;
mod ops;
pub mod plan;
mod sources;

use crate::instr::{Instr, Number, Role, Size};
use crate::lower::Lowered;
use crate::mops::{self, MInst};
use crate::ops::Op as MOp;
use crate::registers as regs;
use kempe_ir::{
    Block, Function, Inst, Loc, Module, Op, Space, Table, Term, Type, UniformWord, Value, ValueDef,
};
use kempe_mir::{Mir, MirBuilder, UniformSource};
use kempe_ra::{Edge, Group, Operand, OperandKind, Recipe, VReg, VRegInfo, VectorPart};
use plan::{Kind, Plan};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Why there is no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectError {
    pub message: String,
    pub loc: Loc,
    /// A defect of the compiler, not of the program.
    pub internal: bool,
}

/// What selection gives.
pub struct Selected {
    pub mir: Mir<MInst>,
    pub plan: Plan,
    /// Contents of the uniform registers from `u0` on.
    pub uniforms: Vec<UniformSource>,
    pub uses_barrier: bool,
}

/// Words of uniform registers.
const UNIFORM_WORDS: usize = 256;

/// Of these, how many a memory base can name (reference section 1.3).
const BASE_WORDS: usize = 128;

/// Executions of a block for each loop around it, as a factor: the guess that register allocation works with.
const LOOP_WEIGHT: f32 = 8.0;

/// Deepest nesting that the weight follows.
const MAX_WEIGHT_DEPTH: u32 = 6;

type Uses = SmallVec<[VReg; 6]>;

/// Runs of operands that stand side by side: first operand, count, alignment.
type Vectors = SmallVec<[(usize, usize, u8); 2]>;

/// An instruction before it is handed over: defs, uses, vectors.
struct Made {
    data: MInst,
    defs: SmallVec<[VReg; 4]>,
    uses: Uses,
    vectors: Vectors,
    is_move: bool,
    loc: Loc,
}

/// Makes machine code of a lowered module.
///
/// # Errors
/// What does not fit into the machine, and defects.
pub fn select(m: &Module, lowered: &Lowered) -> Result<Selected, SelectError> {
    let plan = Plan::new(&m.func);
    let mut s = Select {
        f: &m.func,
        lowered,
        plan: &plan,
        b: MirBuilder::new(),
        regs: Table::new(m.func.values.len(), None),
        highs: FxHashMap::default(),
        blocks: Vec::new(),
        seq: Vec::new(),
        uniforms: Vec::new(),
        slots: FxHashMap::default(),
        recipes: FxHashMap::default(),
        undefined: None,
        uses: use_counts(&m.func),
        loc: Loc(0),
        error: None,
        uses_barrier: false,
    };
    s.addresses_first();
    s.run();
    if let Some(e) = s.error {
        return Err(e);
    }
    let (mir, uniforms, uses_barrier) = s.hand_over();
    Ok(Selected { mir, plan, uniforms, uses_barrier })
}

/// How often each value is read.
fn use_counts(f: &Function) -> Table<Value, u32> {
    let mut uses = Table::new(f.values.len(), 0);
    for &b in &f.layout {
        let insts = f.blocks[b].insts.iter().flat_map(|&i| f.insts[i].args.iter());
        let edges = f.blocks[b].term.targets().flat_map(|t| t.args.iter());
        for &v in insts.chain(edges) {
            uses[v] += 1;
        }
        if let Term::Branch { cond, .. } = f.blocks[b].term {
            uses[cond] += 1;
        }
    }
    uses
}

struct Select<'a> {
    f: &'a Function,
    lowered: &'a Lowered,
    plan: &'a Plan,
    b: MirBuilder<MInst>,
    /// Register of each value that was asked for.
    regs: Table<Value, Option<VReg>>,
    /// High words of pointers.
    highs: FxHashMap<Value, VReg>,
    /// By block number: instructions, the last first, and the edges.
    blocks: Vec<(Vec<Made>, Vec<Edge>)>,
    /// What one IR instruction becomes, in order.
    seq: Vec<Made>,
    uniforms: Vec<UniformSource>,
    slots: FxHashMap<UniformSource, u16>,
    recipes: FxHashMap<MInst, Recipe>,
    undefined: Option<VReg>,
    uses: Table<Value, u32>,
    loc: Loc,
    error: Option<SelectError>,
    uses_barrier: bool,
}

impl Select<'_> {
    fn fail(&mut self, message: impl Into<String>) {
        let loc = self.loc;
        self.error.get_or_insert(SelectError { message: message.into(), loc, internal: false });
    }

    fn bug(&mut self, message: impl Into<String>) {
        let loc = self.loc;
        self.error.get_or_insert(SelectError { message: message.into(), loc, internal: true });
    }

    /// Memory bases name only the lower uniform registers, so addresses are placed before any constant.
    fn addresses_first(&mut self) {
        let f = self.f;
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let d = &f.insts[i];
                if d.results.first().is_some_and(|&r| matches!(f.ty(r), Type::Ptr(_)))
                    && let Some(word) = self.address_word(i)
                {
                    self.address_slot(word);
                }
            }
        }
        if self.uniforms.len() > BASE_WORDS {
            self.fail("more than 64 buffers");
        }
    }

    /// The word of the driver that a root of pointers is.
    fn address_word(&self, i: Inst) -> Option<UniformWord> {
        let d = &self.f.insts[i];
        match (d.op, d.imm) {
            (Op::ResourceAddr, kempe_ir::Imm::Res(res)) => {
                if d.ty == Type::Ptr(Space::Push) {
                    return Some(UniformWord::PushAddr);
                }
                let element = match d.args.first() {
                    Some(&a) => self.f.as_const(a)? as u32,
                    None => 0,
                };
                Some(UniformWord::BufferAddr { res, element })
            }
            (Op::Uniform, kempe_ir::Imm::Uniform(word)) => Some(word),
            _ => None,
        }
    }

    /// First of the two uniform words that hold an address of the driver.
    fn address_slot(&mut self, word: UniformWord) -> u16 {
        let low = UniformSource::Word(word, 0);
        if let Some(&at) = self.slots.get(&low) {
            return at;
        }
        if !self.uniforms.len().is_multiple_of(2) {
            self.uniforms.push(UniformSource::Const(0));
        }
        let at = self.uniforms.len() as u16;
        self.uniforms.extend([low, UniformSource::High(word)]);
        self.slots.insert(low, at);
        at
    }

    /// The uniform word that holds this, if there is still room.
    fn slot(&mut self, source: UniformSource) -> Option<u16> {
        if let Some(&at) = self.slots.get(&source) {
            return Some(at);
        }
        if self.uniforms.len() >= UNIFORM_WORDS {
            return None;
        }
        let at = self.uniforms.len() as u16;
        self.uniforms.push(source);
        self.slots.insert(source, at);
        Some(at)
    }

    fn run(&mut self) {
        let count = self.plan.kinds.len();
        self.blocks = (0..count).map(|_| (Vec::new(), Vec::new())).collect();
        for number in (0..count as u32).rev() {
            self.loc = Loc(0);
            match self.plan.kinds[number as usize] {
                Kind::Exit => self.terminator(MInst::End, smallvec![]),
                Kind::Edge(from, n) => {
                    let to = self.plan.succs[number as usize][0];
                    let args = self.edge_args(from, n);
                    self.terminator(MInst::Jump, smallvec![]);
                    self.blocks[number as usize].1.push(Edge { to: kempe_ra::Block(to), args });
                }
                Kind::Source(b) => self.block(number, b),
            }
            self.flush(number);
            if self.error.is_some() {
                return;
            }
        }
    }

    /// Moves what was made for one instruction to the front of the block.
    fn flush(&mut self, number: u32) {
        let list = &mut self.blocks[number as usize].0;
        list.extend(self.seq.drain(..).rev());
    }

    fn block(&mut self, number: u32, b: Block) {
        let f = self.f;
        let data = &f.blocks[b];
        self.loc = data.term_loc;
        let succs = self.plan.succs[number as usize].clone();
        match &data.term {
            Term::Return | Term::Unreachable => {
                self.terminator(MInst::Jump, smallvec![]);
                self.blocks[number as usize].1.push(Edge { to: kempe_ra::Block(succs[0]), args: vec![] });
            }
            Term::Jump(_) => {
                let args = self.edge_args(b, 0);
                self.terminator(MInst::Jump, smallvec![]);
                self.blocks[number as usize].1.push(Edge { to: kempe_ra::Block(succs[0]), args });
            }
            Term::Branch { cond, .. } => {
                for (n, &to) in succs.iter().enumerate() {
                    // Arguments of a split edge stand in the block of the edge.
                    let own =
                        !matches!(self.plan.kinds[to as usize], Kind::Edge(from, k) if (from, k) == (b, n));
                    let args = if own { self.edge_args(b, n) } else { vec![] };
                    self.blocks[number as usize].1.push(Edge { to: kempe_ra::Block(to), args });
                }
                let mut uses = Uses::new();
                let test = self.test(*cond, &mut uses);
                self.terminator(MInst::Branch(test), uses);
            }
        }
        self.flush(number);
        for &i in data.insts.iter().rev() {
            self.loc = f.insts[i].loc;
            self.inst(i);
            self.flush(number);
            if self.error.is_some() {
                return;
            }
        }
    }

    /// What the parameters of the target of an edge become.
    fn edge_args(&mut self, from: Block, n: usize) -> Vec<VReg> {
        let f = self.f;
        let Some(target) = f.blocks[from].term.targets().nth(n) else {
            self.bug("an edge without a target");
            return vec![];
        };
        let mut args = Vec::new();
        for &a in &target.args {
            args.push(self.reg(a));
            if self.is_pair(a) {
                args.push(self.high(a));
            }
        }
        args
    }

    /// A pointer that takes two words: one into memory of buffers.
    fn is_pair(&self, v: Value) -> bool {
        matches!(self.f.ty(v), Type::Ptr(space) if !matches!(space, Space::Private | Space::Shared))
    }

    fn terminator(&mut self, data: MInst, uses: Uses) {
        let loc = self.loc;
        self.seq.push(Made { data, defs: smallvec![], uses, vectors: smallvec![], is_move: false, loc });
    }

    fn fresh(&mut self) -> VReg {
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: None, undefined: false };
        self.b.vreg(info, String::new())
    }

    /// Appends an instruction with one result.
    fn push(&mut self, instr: Instr, dst: VReg, uses: Uses) {
        self.push_as(instr, smallvec![dst], uses, 0, smallvec![]);
    }

    fn push_as(&mut self, instr: Instr, defs: SmallVec<[VReg; 4]>, uses: Uses, class: u8, vectors: Vectors) {
        let is_move = instr.op == MOp::Bitop
            && instr.get(Number::Table) == crate::instr::MOV_TABLE
            && uses.len() == 1
            && instr.operand(Role::A).as_reg().is_some_and(|(_, size, _)| size == Size::B32);
        let loc = self.loc;
        let data = MInst::Plain(instr, class);
        self.seq.push(Made { data, defs, uses, vectors, is_move, loc });
    }

    /// Appends two instructions that write a half of the result each.
    fn push_halves(&mut self, instrs: [Instr; 2], dst: VReg, uses: Uses) {
        let loc = self.loc;
        self.seq.push(Made {
            data: MInst::Halves(instrs),
            defs: smallvec![dst],
            uses,
            vectors: smallvec![],
            is_move: false,
            loc,
        });
    }

    fn undefined(&mut self) -> VReg {
        if let Some(v) = self.undefined {
            return v;
        }
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: None, undefined: true };
        let v = self.b.vreg(info, String::new());
        self.undefined = Some(v);
        v
    }

    /// A register that is made here by an instruction without register uses, and may be made again anywhere.
    fn remade(&mut self, instr: Instr, cost: f32) -> VReg {
        let data = MInst::Plain(instr, 0);
        let recipe = match self.recipes.get(&data) {
            Some(&r) => r,
            None => {
                let r = self.b.recipe(data, cost);
                self.recipes.insert(data, r);
                r
            }
        };
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: Some(recipe), undefined: false };
        let v = self.b.vreg(info, String::new());
        self.push_as(instr, smallvec![v], smallvec![], 0, smallvec![]);
        v
    }

    /// The program for the allocator.
    fn hand_over(mut self) -> (Mir<MInst>, Vec<UniformSource>, bool) {
        let count = self.plan.kinds.len();
        self.b.declare_blocks(count);
        for (number, (list, succs)) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
            let block = kempe_ra::Block(number as u32);
            self.b.start_block(block);
            for made in list.into_iter().rev() {
                self.hand_over_inst(made);
            }
            let depth = self.plan.depth[number];
            let mut params = Vec::new();
            if let Kind::Source(b) = self.plan.kinds[number] {
                for &p in &self.f.blocks[b].params {
                    params.push(self.param(p));
                    if self.is_pair(p) {
                        params.push(self.high_param(p));
                    }
                }
            }
            self.b.end_block(block, succs);
            let info = &mut self.b.mir.program.blocks[number];
            info.params = params;
            info.frequency = LOOP_WEIGHT.powi(depth.min(MAX_WEIGHT_DEPTH) as i32);
            info.loop_depth = depth;
        }
        (self.b.finish(), self.uniforms, self.uses_barrier)
    }

    fn param(&mut self, p: Value) -> VReg {
        match self.regs[p] {
            Some(v) => v,
            None => self.fresh(),
        }
    }

    fn high_param(&mut self, p: Value) -> VReg {
        match self.highs.get(&p) {
            Some(&v) => v,
            None => self.fresh(),
        }
    }

    fn hand_over_inst(&mut self, made: Made) {
        let mut list: SmallVec<[Operand; 8]> = SmallVec::new();
        let plain = |vreg, kind| Operand {
            vreg,
            kind,
            set: regs::ANY,
            tied: None,
            fixed: None,
            hint: None,
            vector: None,
        };
        list.extend(made.defs.iter().map(|&d| plain(d, OperandKind::Def)));
        list.extend(made.uses.iter().map(|&u| plain(u, OperandKind::Use)));
        if matches!(made.data, MInst::Halves(_)) {
            list[0].kind = OperandKind::EarlyDef;
        }
        for (group, &(first, count, align)) in made.vectors.iter().enumerate() {
            for k in 0..count {
                let part = VectorPart { group: Group(group as u32), index: k as u8, align };
                list[first + k].vector = Some(part);
            }
        }
        self.b.loc = made.loc;
        let undefined = made.uses.iter().any(|u| self.b.mir.program.vregs[u.0 as usize].undefined);
        let repeat = match made.data {
            MInst::Plain(i, _) if !undefined => repeat_cost(&i, &made),
            _ => None,
        };
        let inst = self.b.inst(made.data, &list, regs::NONE, made.is_move);
        self.b.mir.program.insts[inst.0 as usize].repeat = repeat;
    }

    /// The register of a value, which is made if it is asked for.
    fn reg(&mut self, v: Value) -> VReg {
        let v = self.alias(v);
        if let ValueDef::Inst(i, _) = self.f.values[v].def {
            let d = &self.f.insts[i];
            match d.op {
                Op::Const => {
                    let bits = self.f.as_const(v).unwrap_or(0) as u32;
                    return self.constant_reg(bits);
                }
                Op::Undef => return self.undefined(),
                Op::Uniform if !self.is_pair(v) => {
                    if let kempe_ir::Imm::Uniform(word) = d.imm {
                        return self.word_reg(word);
                    }
                }
                Op::Builtin => return self.builtin_reg(v, d.imm),
                Op::ResourceAddr | Op::Uniform | Op::VarAddr => return self.root_reg(i, false),
                _ => {}
            }
        }
        if let Some(r) = self.regs[v] {
            return r;
        }
        let name = self.f.names.get(&v).cloned().unwrap_or_default();
        let info = VRegInfo { home: regs::ANY, size: 1, recipe: None, undefined: false };
        let r = self.b.vreg(info, name);
        self.regs[v] = Some(r);
        r
    }

    /// What a value is a mere name of: conversions that change no bit of the register.
    fn alias(&self, mut v: Value) -> Value {
        while let Some(i) = self.f.def_inst(v) {
            let d = &self.f.insts[i];
            let same = match d.op {
                Op::Bitcast => !self.is_pair(v) && !self.is_pair(d.args[0]) || d.ty == self.f.ty(d.args[0]),
                // Loads extend with zeros; stores look at the low bits only.
                Op::Zext => matches!(self.f.ty(d.args[0]), Type::I8 | Type::I16),
                Op::Trunc => matches!(d.ty, Type::I8 | Type::I16),
                _ => false,
            };
            if !same {
                break;
            }
            v = d.args[0];
        }
        v
    }

    /// The instruction behind a value, names looked through.
    fn def(&self, v: Value) -> Option<&kempe_ir::InstData> {
        self.f.def_inst(self.alias(v)).map(|i| &self.f.insts[i])
    }
}

/// Cycles of doing it once more where its uses are in registers, if that gives the same.
fn repeat_cost(i: &Instr, made: &Made) -> Option<f32> {
    let simple = made.defs.len() == 1 && (1..=2).contains(&made.uses.len()) && made.vectors.is_empty();
    let cost = i.op.info().cost;
    (simple && cost.latency != 0 && !mops::is_asynchronous(i.op)).then(|| f32::from(cost.throughput))
}
