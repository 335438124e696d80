//! A module made ready to run: operands as slots of a register array, functions looked up, edges as moves.

use super::Stop;
use super::image::ImageAccess;
use super::primitives::Numbers;
use super::sample::SampleAccess;
use crate::entity::Table;
use crate::eval::{self, Kernel};
use crate::exec::{VarLayout, variable_layout};
use crate::io::{IoImm, Owner, Slot};
use crate::module::*;
use crate::ops::{Effect, Op, Sig};
use crate::types::{Space, Type};
use crate::verify::moved_type;

/// The function of an operation: by operation, type and type of the first operand.
type Kernels = fn(Op, Type, Type) -> Option<Kernel>;

/// Slot 0 always holds zero.
pub(super) const ZERO: u32 = 0;

/// Where an address is known to point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Root {
    /// Flat memory, anywhere.
    Any,
    /// The lane's private memory.
    Private,
    /// Element 0 of a resource.
    Res(Res),
    /// Inside of a variable.
    Var(Var),
}

/// A load, store or atomic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub addr: u32,
    pub root: Root,
    /// Bytes of one component.
    pub bytes: u32,
    pub count: u32,
    pub align: u32,
    /// First result of a load or first data slot of a store in the operand pool.
    pub list: u32,
    /// Bits of a stored component.
    pub mask: u64,
    /// Undefined data may be stored here unnoticed: private, shared and scratch memory.
    pub own: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    /// Done before the program starts ([`Preset`]).
    Nothing,
    Iadd32(u32, u32),
    Isub32(u32, u32),
    Imul32(u32, u32),
    Shl32(u32, u32),
    Lshr32(u32, u32),
    And(u32, u32),
    /// With the mask of the type.
    Or(u32, u32, u64),
    Xor(u32, u32),
    Fadd32(u32, u32),
    Fsub32(u32, u32),
    Fmul32(u32, u32),
    Select(u32, u32, u32),
    Call1(Kernel, u32),
    Call2(Kernel, u32, u32),
    Call4(Kernel, [u32; 4]),
    Lea {
        base: u32,
        index: u32,
        imm: LeaImm,
    },
    /// Address or size of an element of a resource.
    Element {
        res: Res,
        index: u32,
        size: bool,
    },
    Load(Access),
    Store(Access),
    Atomic {
        access: Access,
        op: AtomicOp,
        ty: Type,
        data: u32,
        expected: u32,
    },
    /// An access to an image: index into [`Program::images`].
    Image(u32),
    /// A lookup through a sampler: index into [`Program::samples`].
    Sample(u32),
    Output(IoImm, u32),
    /// Accesses to what belongs to vertices and patches.
    InputAt(IoImm, Numbers, Type),
    ReadOutput(IoImm, Numbers, Type),
    OutputAt(IoImm, u32, Numbers),
    /// Of a geometry shader.
    Pend(IoImm, u32),
    EmitVertex,
    EndPrimitive,
    Demote,
    IsHelper,
    /// Difference of the lanes of a quad that differ in this bit, by the subtraction of the type.
    Derivative(u32, usize, Kernel),
    Barrier,
    Fence,
    Elect,
    VoteAny(u32),
    VoteAll(u32),
    /// With the equality of floats, if it is one.
    VoteEq(u32, Option<Kernel>),
    Ballot(u32),
    First(u32),
    Shuffle(u32, u32),
    Reduce {
        value: u32,
        imm: ReduceImm,
        ty: Type,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DInst {
    pub code: Code,
    /// First result (0: none).
    pub dst: u32,
    pub inst: Inst,
}

/// An edge: the block it goes to (by position) and its moves in the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub to: u32,
    pub moves: (u32, u32),
    /// A destination is also a source of a later move, so sources are read before any destination is written.
    pub parallel: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Jump(Edge),
    Branch(u32, Edge, Edge),
    Return,
    Unreachable,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DBlock {
    pub insts: (u32, u32),
    pub end: End,
}

/// A value that does not change while a lane runs, put into its slot at the start.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preset {
    Bits(u64),
    Undef,
    Resource(Res),
    ResourceSize(Res),
    Var(Var),
    Builtin(Builtin),
    Uniform(UniformWord),
    Payload(u32),
    /// What the stage is given.
    Input(IoImm, Type),
}

/// A module made ready to run any number of times.
pub struct Program<'a> {
    pub(super) module: &'a Module,
    /// What operations compute.
    kernels: Kernels,
    /// They flush f32 denormals.
    flush: bool,
    pub(super) blocks: Vec<DBlock>,
    pub(super) insts: Vec<DInst>,
    /// Operand slots of memory operations.
    pub(super) pool: Vec<u32>,
    pub(super) images: Vec<ImageAccess>,
    pub(super) samples: Vec<SampleAccess>,
    /// `(source, destination)` of edges.
    pub(super) moves: Vec<(u32, u32)>,
    pub(super) presets: Vec<(u32, Preset)>,
    /// Number of slots: one per value, plus the zero.
    pub(super) slots: u32,
    /// Value by slot, slot by value.
    pub(super) values: Vec<Option<Value>>,
    pub(super) slot: Table<Value, u32>,
    pub(super) private: VarLayout,
}

/// Private addresses start here, so that a null pointer is outside.
pub(super) const PRIVATE_BASE: u32 = 0x1000;

impl<'a> Program<'a> {
    /// Decodes a verified module.
    pub fn new(module: &'a Module) -> Result<Program<'a>, Stop> {
        Program::with_kernels(module, eval::kernel, false)
    }

    /// For a machine whose f32 operations take denormals for zeros and give none.
    pub fn flushing(module: &'a Module) -> Result<Program<'a>, Stop> {
        Program::with_kernels(module, eval::flushing_kernel, true)
    }

    fn with_kernels(module: &'a Module, kernels: Kernels, flush: bool) -> Result<Program<'a>, Stop> {
        let f = &module.func;
        let pos = f.order();
        let roots = roots(module);
        let mut p = Program {
            module,
            kernels,
            flush,
            blocks: Vec::with_capacity(f.layout.len()),
            insts: Vec::new(),
            pool: Vec::new(),
            images: Vec::new(),
            samples: Vec::new(),
            moves: Vec::new(),
            presets: Vec::new(),
            slots: 1,
            values: vec![None],
            slot: Table::new(0, ZERO),
            private: variable_layout(module, Space::Private).map_err(Stop::Unsupported)?,
        };
        // Slots in order of definition, which keeps what a block touches together.
        let mut slot = Table::new(f.values.len(), ZERO);
        for &b in &f.layout {
            let results = f.blocks[b].insts.iter().flat_map(|&i| f.insts[i].results.iter());
            for &v in f.blocks[b].params.iter().chain(results) {
                slot[v] = p.slots;
                p.values.push(Some(v));
                p.slots += 1;
            }
        }
        for &b in &f.layout {
            let data = &f.blocks[b];
            let first = p.insts.len() as u32;
            for &i in &data.insts {
                let inst = &f.insts[i];
                let code = p.code(inst, &slot, &roots)?;
                let dst = inst.results.first().map_or(ZERO, |&r| slot[r]);
                p.insts.push(DInst { code, dst, inst: i });
            }
            let end = match &data.term {
                Term::Jump(t) => End::Jump(p.edge(t, &slot, &pos)),
                Term::Branch { cond, then, els } => {
                    End::Branch(slot[*cond], p.edge(then, &slot, &pos), p.edge(els, &slot, &pos))
                }
                Term::Return => End::Return,
                Term::Unreachable => End::Unreachable,
            };
            p.blocks.push(DBlock { insts: (first, p.insts.len() as u32), end });
        }
        p.slot = slot;
        Ok(p)
    }

    fn edge(&mut self, t: &Target, slot: &Table<Value, u32>, pos: &Table<Block, u32>) -> Edge {
        let first = self.moves.len();
        let params = &self.module.func.blocks[t.block].params;
        for (&p, &a) in params.iter().zip(&t.args) {
            if slot[p] != slot[a] {
                self.moves.push((slot[a], slot[p]));
            }
        }
        let list = &self.moves[first..];
        let parallel =
            list.iter().enumerate().any(|(n, (_, dst))| list[n + 1..].iter().any(|(src, _)| src == dst));
        Edge { to: pos[t.block], moves: (first as u32, self.moves.len() as u32), parallel }
    }

    fn code(
        &mut self,
        inst: &InstData,
        slot: &Table<Value, u32>,
        roots: &Table<Value, Root>,
    ) -> Result<Code, Stop> {
        let args: Vec<u32> = inst.args.iter().map(|&a| slot[a]).collect();
        let arg = |n: usize| args.get(n).copied().unwrap_or(ZERO);
        let f = &self.module.func;
        let preset = match (inst.op, inst.imm) {
            (Op::Const, Imm::Int(bits)) => Some(Preset::Bits(bits)),
            (Op::Undef, _) => Some(Preset::Undef),
            (Op::ResourceAddr, Imm::Res(r)) if args.is_empty() => Some(Preset::Resource(r)),
            (Op::ResourceSize, Imm::Res(r)) if args.is_empty() => Some(Preset::ResourceSize(r)),
            (Op::VarAddr, Imm::Var(v)) => Some(Preset::Var(v)),
            (Op::Builtin, Imm::Builtin(b)) => Some(Preset::Builtin(b)),
            (Op::Uniform, Imm::Uniform(w)) => Some(Preset::Uniform(w)),
            (Op::Payload, Imm::Int(n)) => Some(Preset::Payload(n as u32)),
            (Op::Input, Imm::Io(io)) if args.is_empty() && io.owner == Owner::Invocation => {
                Some(Preset::Input(io, inst.ty))
            }
            _ => None,
        };
        if let Some(preset) = preset {
            if let Some(&r) = inst.results.first() {
                self.presets.push((slot[r], preset));
            }
            return Ok(Code::Nothing);
        }
        let i32s = inst.ty.bits() == 32 && !inst.ty.is_float();
        let f32s = inst.ty == Type::F32 && !self.flush;
        Ok(match (inst.op, inst.imm) {
            (Op::Iadd, _) if i32s => Code::Iadd32(arg(0), arg(1)),
            (Op::Isub, _) if i32s => Code::Isub32(arg(0), arg(1)),
            (Op::Imul, _) if i32s => Code::Imul32(arg(0), arg(1)),
            (Op::Shl, _) if i32s => Code::Shl32(arg(0), arg(1)),
            (Op::Lshr, _) if i32s => Code::Lshr32(arg(0), arg(1)),
            (Op::And, _) => Code::And(arg(0), arg(1)),
            (Op::Or, _) => Code::Or(arg(0), arg(1), inst.ty.mask()),
            (Op::Xor, _) => Code::Xor(arg(0), arg(1)),
            (Op::Fadd, _) if f32s => Code::Fadd32(arg(0), arg(1)),
            (Op::Fsub, _) if f32s => Code::Fsub32(arg(0), arg(1)),
            (Op::Fmul, _) if f32s => Code::Fmul32(arg(0), arg(1)),
            (Op::Select, _) => Code::Select(arg(0), arg(1), arg(2)),
            (Op::Lea, Imm::Lea(imm)) => Code::Lea { base: arg(0), index: arg(1), imm },
            (Op::ResourceAddr, Imm::Res(res)) => Code::Element { res, index: arg(0), size: false },
            (Op::ResourceSize, Imm::Res(res)) => Code::Element { res, index: arg(0), size: true },
            (Op::Load | Op::Store, Imm::Mem(mem)) => {
                let address = inst.args[0];
                let moved = moved_type(inst.ty, f.ty(address));
                let list = self.pool.len() as u32;
                if inst.op == Op::Load {
                    self.pool.extend(inst.results.iter().map(|&r| slot[r]));
                } else {
                    self.pool.extend(&args[1..]);
                }
                let access = Access {
                    addr: arg(0),
                    root: roots[address],
                    bytes: inst.ty.bytes(),
                    count: mem.count as u32,
                    align: mem.align,
                    list,
                    // Components that are narrower than their values: keep the low bits.
                    mask: if moved == inst.ty { moved.mask() } else { inst.ty.mask() },
                    own: matches!(mem.space, Space::Private | Space::Shared),
                };
                if inst.op == Op::Load { Code::Load(access) } else { Code::Store(access) }
            }
            (Op::Atomic, Imm::Atomic(a)) => {
                let compare = a.op == AtomicOp::CompareExchange;
                let access = Access {
                    addr: arg(0),
                    root: roots[inst.args[0]],
                    bytes: inst.ty.bytes(),
                    count: 1,
                    align: inst.ty.bytes(),
                    list: 0,
                    mask: inst.ty.mask(),
                    own: a.space == Space::Shared,
                };
                Code::Atomic {
                    access,
                    op: a.op,
                    ty: inst.ty,
                    data: if compare { arg(2) } else { arg(1) },
                    expected: arg(1),
                }
            }
            (_, Imm::Sample(imm)) => {
                let Some(info) = self.module.resources.get(imm.res).and_then(|r| r.image) else {
                    return Err(Stop::Unsupported(format!("{} is not an image", imm.res)));
                };
                let results = inst.results.iter().map(|&r| slot[r]).collect();
                self.samples.push(SampleAccess { imm, info, args: args.clone(), results });
                Code::Sample(self.samples.len() as u32 - 1)
            }
            (_, Imm::Image(imm)) => {
                let Some(info) = self.module.resources.get(imm.res).and_then(|r| r.image) else {
                    return Err(Stop::Unsupported(format!("{} is not an image", imm.res)));
                };
                let results: Vec<u32> = inst.results.iter().map(|&r| slot[r]).collect();
                self.images.push(ImageAccess::new(inst, imm, info, &args, &results));
                Code::Image(self.images.len() as u32 - 1)
            }
            (Op::Input, Imm::Io(io)) => Code::InputAt(io, numbers(&io, &args), inst.ty),
            (Op::ReadOutput, Imm::Io(io)) => Code::ReadOutput(io, numbers(&io, &args), inst.ty),
            (Op::Output, Imm::Io(io)) if io.owner != Owner::Invocation || io.numbers() != 0 => {
                Code::OutputAt(io, arg(0), numbers(&io, args.get(1..).unwrap_or_default()))
            }
            (Op::Output, Imm::Io(io))
                if self.module.stage == Stage::Geometry && !matches!(io.slot, Slot::Row(_)) =>
            {
                Code::Pend(io, arg(0))
            }
            (Op::Output, Imm::Io(io)) => Code::Output(io, arg(0)),
            (Op::EmitVertex, Imm::Stream(0)) => Code::EmitVertex,
            (Op::EndPrimitive, Imm::Stream(0)) => Code::EndPrimitive,
            (Op::EmitVertex | Op::EndPrimitive, _) => {
                return Err(Stop::Unsupported("vertices of streams other than 0".to_owned()));
            }
            (Op::Demote, _) => Code::Demote,
            (Op::IsHelper, _) => Code::IsHelper,
            (Op::Ddx | Op::Ddy, _) => {
                let Some(sub) = eval::kernel(Op::Fsub, inst.ty, inst.ty) else {
                    return Err(Stop::Unsupported(format!("{} at type {}", inst.op.name(), inst.ty)));
                };
                Code::Derivative(arg(0), if inst.op == Op::Ddx { 1 } else { 2 }, sub)
            }
            (Op::Barrier, _) => Code::Barrier,
            (Op::Fence, _) => Code::Fence,
            (Op::Elect, _) => Code::Elect,
            (Op::VoteAny, _) => Code::VoteAny(arg(0)),
            (Op::VoteAll, _) => Code::VoteAll(arg(0)),
            (Op::VoteEq, _) => {
                let ty = inst.args.first().map_or(Type::Bool, |&a| f.ty(a));
                let float = if ty.is_float() { eval::kernel(Op::Feq, ty, ty) } else { None };
                Code::VoteEq(arg(0), float)
            }
            (Op::Ballot, _) => Code::Ballot(arg(0)),
            (Op::BroadcastFirst, _) => Code::First(arg(0)),
            (Op::Shuffle, _) => Code::Shuffle(arg(0), arg(1)),
            (Op::Reduce, Imm::Reduce(imm)) => Code::Reduce { value: arg(0), imm, ty: inst.ty },
            _ => {
                let from = inst.args.first().map_or(inst.ty, |&a| f.ty(a));
                debug_assert!(inst.op.effect() == Effect::Pure && inst.op.info().sig != Sig::Nullary);
                let Some(k) = (self.kernels)(inst.op, inst.ty, from) else {
                    return Err(Stop::Unsupported(format!("{} at type {}", inst.op.name(), inst.ty)));
                };
                match args[..] {
                    [a] => Code::Call1(k, a),
                    [a, b] => Code::Call2(k, a, b),
                    _ => Code::Call4(k, [arg(0), arg(1), arg(2), arg(3)]),
                }
            }
        })
    }
}

/// The slots of the numbers of an access, by what they are.
fn numbers(io: &IoImm, args: &[u32]) -> Numbers {
    let mut rest = args.iter().copied();
    let there = [io.owner == Owner::Vertex, io.locations != 0, io.components != 0];
    there.map(|t| if t { rest.next().unwrap_or(ZERO) } else { ZERO })
}

/// What every pointer was derived from, where that is one thing.
fn roots(module: &Module) -> Table<Value, Root> {
    let f = &module.func;
    // `None`: not known yet. A pointer of several origins is `Any` (or `Private`).
    let mut roots: Table<Value, Option<Root>> = Table::new(f.values.len(), None);
    let any = |v: Value| match f.ty(v) {
        Type::Ptr(Space::Private) => Root::Private,
        _ => Root::Any,
    };
    let join = |v: Value, a: Option<Root>, b: Option<Root>| match (a, b) {
        (None, x) | (x, None) => x,
        (Some(x), Some(y)) if x == y => Some(x),
        _ => Some(any(v)),
    };
    // Each pass moves values up a lattice of height two, so the loop ends; most functions need two passes.
    let mut changed = true;
    while changed {
        changed = false;
        let mut set = |roots: &mut Table<Value, Option<Root>>, v: Value, r: Option<Root>| {
            let new = join(v, roots[v], r);
            if roots[v] != new {
                roots[v] = new;
                changed = true;
            }
        };
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let inst = &f.insts[i];
                for &r in inst.results.iter().filter(|&&r| f.ty(r).is_ptr()) {
                    let root = match (inst.op, inst.imm) {
                        (Op::ResourceAddr, Imm::Res(res)) if inst.args.is_empty() => Some(Root::Res(res)),
                        (Op::VarAddr, Imm::Var(v)) => Some(Root::Var(v)),
                        (Op::Lea, _) => roots[inst.args[0]],
                        (Op::Select, _) => join(r, roots[inst.args[1]], roots[inst.args[2]]),
                        _ => Some(any(r)),
                    };
                    set(&mut roots, r, root);
                }
            }
            for t in f.blocks[b].term.targets() {
                for (&p, &a) in f.blocks[t.block].params.iter().zip(&t.args) {
                    if f.ty(p).is_ptr() {
                        let root = roots[a];
                        set(&mut roots, p, root);
                    }
                }
            }
        }
    }
    let mut result = Table::new(f.values.len(), Root::Any);
    for (v, r) in roots.iter() {
        result[v] = r.unwrap_or(any(v));
    }
    result
}
