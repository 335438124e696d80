//! SPIR-V functions to the IR: one entry point, everything inlined, all arithmetic scalar.
//!
//! A SPIR-V value becomes the string of its scalars ([`Rng`]); a pointer stays a base with an index and an offset
//! ([`Ptr`]) until it is used, so that constant offsets fold. Blocks are emitted in the order of [`crate::cfg`]; a
//! called function is emitted in place, its returns become jumps to what follows the call (or nothing at all when
//! it returns once, at its end). Constants, addresses of variables and built-ins stand at the start of the entry.
//!
//! Left out: recursion (SPIR-V forbids it for shaders).

mod arith;
mod atomics;
mod calls;
mod composite;
mod control;
mod derivatives;
mod glsl450;
mod images;
mod interface;
mod interpolate;
mod math;
mod memory;
mod samples;
mod stages;
mod subgroup;
mod variables;

use crate::arith::{Arith, fits};
use crate::cfg::{self, Cfg};
use crate::layout::{LayId, Layouts};
use crate::parse::{ConstKind, Def, Numbered, Parsed, Ty, TyId, fact};
use crate::reader::{self, Inst, Res, error, error_help, op_name};
use kempe_ir as ir;
use kempe_ir::{Block, Flags, Imm, InstData, Loc, Module, Op, SourceLine, Space, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use spirv::{ExecutionModel, Op as S};
use std::rc::Rc;

/// Most instructions of a module after inlining. Exhaustive inlining of a small source can make millions; this is
/// twenty times the largest real shader known.
pub const MAX_INSTS: usize = 1 << 20;
/// Most scalars that all values together may have.
const MAX_POOL: usize = 8 << 20;
/// Deepest nesting of calls.
const MAX_CALL_DEPTH: usize = 64;

/// Instructions for which there will be nothing: part of the name, what and why, what to do instead.
const REFUSED: [(&str, &str, &str); 4] = [
    (
        "ImageSparse",
        "sparse residency is not supported: the hardware does not say what is resident",
        "use the instruction without residency",
    ),
    (
        "Ray",
        "ray queries are not supported: the hardware does not trace rays",
        "compute intersections in the shader",
    ),
    (
        "HitObject",
        "ray queries are not supported: the hardware does not trace rays",
        "compute intersections in the shader",
    ),
    (
        "CooperativeMatrix",
        "cooperative matrices are not supported: the hardware has none",
        "multiply in a loop, with tiles in shared memory",
    ),
];

/// The scalars of a value: a range of [`Lower::pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rng {
    pub start: u32,
    pub len: u32,
}

/// Marks [`Val::start`] as an index into `Lower::ptrs`.
const IS_PTR: u32 = u32::MAX;
/// Marks [`Val::start`] as an index into `Lower::handles`.
const IS_IMAGE: u32 = u32::MAX - 1;
/// Epoch of values that hold everywhere (constants).
const EVERYWHERE: u32 = u32::MAX;

/// What an id stands for in the function instance of `epoch`.
#[derive(Clone, Copy, Debug)]
struct Val {
    epoch: u32,
    ty: TyId,
    start: u32,
    len: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    Value(Value),
    /// A built-in variable (its number in SPIR-V); the offset chooses the component.
    Builtin(u32),
    /// An array of buffers, before an index has chosen one.
    Buffers(ir::Res),
    /// Something of the interface that belongs to vertices or to the patch.
    Interface(u32),
}

/// A pointer that has not been computed yet: `base + index * scale + offset`.
#[derive(Clone, Copy, Debug)]
pub struct Ptr {
    pub base: Base,
    pub index: Option<(Value, u32)>,
    pub offset: i32,
    /// Known alignment of everything but `offset`.
    pub align: u32,
    /// Alignment of the whole address that an access promises.
    pub promised: u32,
    pub lay: LayId,
    pub space: Space,
    pub volatile: bool,
    pub read_only: bool,
    /// The buffer it points into, with the element of an array of buffers.
    pub buffer: Option<(ir::Res, Option<Value>)>,
}

pub struct Lower<'p, 'w> {
    p: &'p Parsed<'w>,
    /// Steps between the lanes of a quad, in compute shaders that say so.
    derivatives: Option<[u32; 2]>,
    /// Arithmetic need not keep signs of zeros, infinities and NaNs: Vulkan says so of what does not ask for them, and graphics
    /// shaders multiply by 0 and 1 all the time.
    fast: bool,
    m: Module,
    lay: Layouts,
    cfgs: Vec<Option<Rc<Cfg>>>,
    cur: Block,
    /// Goes in front of everything in the entry block.
    prelude: Vec<ir::Inst>,
    consts: FxHashMap<(Type, u64), Value>,
    undefs: FxHashMap<Type, Value>,
    builtins: FxHashMap<ir::Builtin, Value>,
    vals: Vec<Val>,
    pool: Vec<Value>,
    ptrs: Vec<Ptr>,
    io_ptrs: Vec<interface::IoPtr>,
    handles: Vec<images::Handle>,
    /// By global variable.
    global_ptrs: Vec<Option<Ptr>>,
    /// Variables that only ever hold one constant: offset in the constant data, by id.
    const_vars: FxHashMap<u32, u32>,
    const_blobs: FxHashMap<Vec<u8>, u32>,
    large_vars: FxHashMap<u32, Ptr>,
    /// What all shared blocks are.
    shared_blocks: Option<kempe_ir::Var>,
    constant_base: Option<Value>,
    epoch: u32,
    epochs: u32,
    /// Functions being emitted.
    active: Vec<u32>,
    flags: Flags,
    loc: Loc,
    files: FxHashMap<u32, u32>,
    /// The instruction being lowered: its word.
    at: usize,
    /// Blocks without predecessors may have come up.
    dead: bool,
    types: Vec<Type>,
    /// Bytes of all private variables.
    private_bytes: u64,
    /// Of graphics stages: what is given when the entry point returns, in this block.
    outputs: Vec<stages::OutputVar>,
    /// Of fragment shaders: what the variables of inputs were filled with, and their further variables.
    inputs: FxHashMap<ir::Var, stages::InputVar>,
    sides: FxHashMap<(ir::Var, interpolate::Side), Value>,
    exit: Option<Block>,
}

impl Arith for Lower<'_, '_> {
    type V = Value;

    fn op(&mut self, op: Op, ty: Type, args: &[(Type, Value)]) -> Res<Value> {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        for &(t, v) in args {
            debug_assert_eq!(t, self.m.func.ty(v));
            values.push(v);
        }
        if !fits(op, ty, args) {
            return self.err(format!("operands of the wrong type for {}", op.name()));
        }
        self.emit1(op, ty, Imm::None, &values)
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.konst(ty, bits)
    }
}

/// Lowers one entry point.
pub fn lower(p: &Parsed, entry: &crate::parse::Entry) -> Res<Module> {
    let Def::Func(number) = p.def(entry.func) else {
        return error(entry.at, format!("entry point `{}` names no function", entry.name));
    };
    let func = &p.funcs[number as usize];
    if !func.params.is_empty() || p.ty(func.ret) != Ty::Void {
        return error(func.at, "an entry point must not have parameters or a result");
    }
    calls::check_calls(p, number)?;
    let stage = match ExecutionModel::from_u32(entry.model) {
        Some(ExecutionModel::Vertex) => ir::Stage::Vertex,
        Some(ExecutionModel::Fragment) => ir::Stage::Fragment,
        Some(ExecutionModel::Geometry) => ir::Stage::Geometry,
        Some(ExecutionModel::TessellationControl) => ir::Stage::TessControl,
        Some(ExecutionModel::TessellationEvaluation) => ir::Stage::TessEval,
        _ => ir::Stage::Compute,
    };
    let mut m = Module::new(&entry.name, stage);
    match stage {
        ir::Stage::Compute => m.workgroup_size = crate::entry::workgroup_size(p, entry)?,
        ir::Stage::Fragment => m.fragment = stages::fragment_modes(p, entry)?,
        ir::Stage::Vertex => {}
        _ => m.primitive = interface::primitive_modes(p, entry, stage)?,
    }
    let cur = m.func.add_block();
    let derivatives = match stage {
        ir::Stage::Compute => crate::entry::derivative_steps(p, entry, m.workgroup_size)?,
        _ => None,
    };
    let mut l = Lower {
        p,
        m,
        derivatives,
        fast: stages::is_fast(p, entry, stage)?,
        lay: Layouts::default(),
        cfgs: vec![None; p.funcs.len()],
        cur,
        prelude: Vec::new(),
        consts: FxHashMap::default(),
        undefs: FxHashMap::default(),
        builtins: FxHashMap::default(),
        vals: vec![Val { epoch: 0, ty: 0, start: 0, len: 0 }; p.defs.len()],
        pool: Vec::new(),
        ptrs: Vec::new(),
        io_ptrs: Vec::new(),
        handles: Vec::new(),
        global_ptrs: vec![None; p.globals.len()],
        const_vars: FxHashMap::default(),
        const_blobs: FxHashMap::default(),
        large_vars: FxHashMap::default(),
        shared_blocks: None,
        constant_base: None,
        epoch: 1,
        epochs: 1,
        active: Vec::new(),
        flags: Flags::NONE,
        loc: Loc(0),
        files: FxHashMap::default(),
        at: entry.at,
        dead: false,
        types: Vec::new(),
        private_bytes: 0,
        outputs: Vec::new(),
        inputs: FxHashMap::default(),
        sides: FxHashMap::default(),
        exit: None,
    };
    match l.run(number, &entry.interface) {
        Ok(()) => Ok(l.m),
        Err(e) => Err(e),
    }
}

impl<'p, 'w> Lower<'p, 'w> {
    #[cold]
    fn err<T>(&self, message: impl Into<String>) -> Res<T> {
        error(self.at, message)
    }

    fn run(&mut self, number: u32, interface: &[u32]) -> Res<()> {
        self.find_constant_variables(number)?;
        self.start_globals(number)?;
        self.start_interface(number, interface)?;
        self.active.push(number);
        self.body(number, true)?;
        self.finish_interface()?;
        let entry = self.m.func.layout[0];
        let insts = &mut self.m.func.blocks[entry].insts;
        let rest = std::mem::replace(insts, std::mem::take(&mut self.prelude));
        insts.extend(rest);
        if self.dead {
            self.drop_unreachable();
        }
        self.drop_unused_resources();
        Ok(())
    }

    fn drop_unreachable(&mut self) {
        let f = &mut self.m.func;
        let mut seen = vec![false; f.blocks.len()];
        let mut work = vec![f.layout[0]];
        seen[f.layout[0].0 as usize] = true;
        while let Some(b) = work.pop() {
            for t in f.blocks[b].term.targets() {
                if !seen[t.block.0 as usize] {
                    seen[t.block.0 as usize] = true;
                    work.push(t.block);
                }
            }
        }
        f.layout.retain(|b| seen[b.0 as usize]);
    }

    /// Numbers the resources that are used, by set and binding.
    fn drop_unused_resources(&mut self) {
        let f = &mut self.m.func;
        let mut used = vec![false; self.m.resources.len()];
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                match f.insts[i].imm {
                    Imm::Res(r) => used[r.0 as usize] = true,
                    Imm::Image(imm) => used[imm.res.0 as usize] = true,
                    Imm::Sample(imm) => {
                        used[imm.res.0 as usize] = true;
                        if let Some(s) = imm.sampler {
                            used[s.0 as usize] = true;
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut map = vec![ir::Res(0); used.len()];
        let old = std::mem::take(&mut self.m.resources);
        let mut kept: Vec<_> = old.iter().filter(|(r, _)| used[r.0 as usize]).collect();
        kept.sort_by_key(|(_, res)| (res.kind == ir::ResKind::PushConstants, res.set, res.binding));
        for (r, res) in kept {
            map[r.0 as usize] = self.m.resources.push(res.clone());
        }
        for b in &f.layout {
            for &i in &f.blocks[*b].insts {
                match &mut f.insts[i].imm {
                    Imm::Res(r) => *r = map[r.0 as usize],
                    Imm::Image(imm) => imm.res = map[imm.res.0 as usize],
                    Imm::Sample(imm) => {
                        imm.res = map[imm.res.0 as usize];
                        if let Some(s) = &mut imm.sampler {
                            *s = map[s.0 as usize];
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    // Emitting.

    fn emit(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value], results: &[Type]) -> Res<ir::Inst> {
        if self.m.func.insts.len() >= MAX_INSTS {
            return error_help(
                self.at,
                format!("the code grows beyond {MAX_INSTS} instructions when functions are inlined"),
                "call large functions from fewer places",
            );
        }
        let data = InstData {
            op,
            ty,
            flags: self.arithmetic_flags(op),
            imm,
            args: SmallVec::from_slice(args),
            results: smallvec![],
            loc: self.loc,
        };
        let i = self.m.func.make_inst(data, results);
        self.m.func.blocks[self.cur].insts.push(i);
        Ok(i)
    }

    fn arithmetic_flags(&self, op: Op) -> Flags {
        let arithmetic = matches!(op, Op::Fadd | Op::Fsub | Op::Fmul | Op::Fdiv | Op::Fma);
        if self.fast && arithmetic && !self.flags.has(Flags::NO_CONTRACTION) {
            self.flags.with(Flags::FAST)
        } else {
            self.flags
        }
    }

    /// One result: bool for comparisons, `ty` for everything else.
    fn emit1(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value]) -> Res<Value> {
        let result = if op.is_compare() { Type::Bool } else { ty };
        let i = self.emit(op, ty, imm, args, &[result])?;
        Ok(self.m.func.insts[i].results[0])
    }

    /// An operation on values of the types they have, checked.
    fn op(&mut self, op: Op, ty: Type, args: &[Value]) -> Res<Value> {
        let mut typed: SmallVec<[(Type, Value); 4]> = SmallVec::new();
        for &v in args {
            typed.push((self.m.func.ty(v), v));
        }
        Arith::op(self, op, ty, &typed)
    }

    /// In front of everything: no operands, the same everywhere.
    fn prelude(&mut self, op: Op, ty: Type, imm: Imm) -> Value {
        let data = InstData {
            op,
            ty,
            flags: Flags::NONE,
            imm,
            args: smallvec![],
            results: smallvec![],
            loc: Loc(0),
        };
        let i = self.m.func.make_inst(data, &[ty]);
        self.prelude.push(i);
        self.m.func.insts[i].results[0]
    }

    fn konst(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & ty.mask();
        if let Some(&v) = self.consts.get(&(ty, bits)) {
            return v;
        }
        let v = self.prelude(Op::Const, ty, Imm::Int(bits));
        self.consts.insert((ty, bits), v);
        v
    }

    /// One for all: every use may see other bits anyway.
    fn undef(&mut self, ty: Type) -> Value {
        if let Some(&v) = self.undefs.get(&ty) {
            return v;
        }
        let v = self.prelude(Op::Undef, ty, Imm::None);
        self.undefs.insert(ty, v);
        v
    }

    fn i32(&mut self, n: u32) -> Value {
        self.konst(Type::I32, n as u64)
    }

    /// A float constant of any float type.
    fn fconst(&mut self, ty: Type, x: f64) -> Value {
        self.konst(ty, float_bits(ty, x))
    }

    fn builtin(&mut self, b: ir::Builtin) -> Value {
        if let Some(&v) = self.builtins.get(&b) {
            return v;
        }
        let v = self.prelude(Op::Builtin, b.ty(), Imm::Builtin(b));
        self.builtins.insert(b, v);
        v
    }

    fn ty_of(&self, v: Value) -> Type {
        self.m.func.ty(v)
    }

    // Values of ids.

    fn push_values(&mut self, values: &[Value]) -> Res<Rng> {
        if self.pool.len() + values.len() > MAX_POOL {
            return self.err("the values of this shader are too large together");
        }
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(values);
        Ok(Rng { start, len: values.len() as u32 })
    }

    #[inline]
    fn at(&self, r: Rng, k: usize) -> Value {
        self.pool[r.start as usize + k]
    }

    fn slice(&self, r: Rng) -> SmallVec<[Value; 8]> {
        SmallVec::from_slice(&self.pool[r.start as usize..(r.start + r.len) as usize])
    }

    fn val(&mut self, id: u32) -> Res<Val> {
        match self.vals.get(id as usize) {
            Some(v) if v.epoch == self.epoch || v.epoch == EVERYWHERE => return Ok(*v),
            _ => {}
        }
        match self.p.def(id) {
            Def::Const(c) => self.const_val(c, id),
            Def::Global(g) => {
                if let Some(start) = self.image_global(g)? {
                    let ty = self.p.globals[g as usize].ty;
                    let v = Val { epoch: EVERYWHERE, ty, start, len: IS_IMAGE };
                    self.vals[id as usize] = v;
                    return Ok(v);
                }
                let ptr = self.global_ptr(g)?;
                let start = self.push_ptr(ptr)?;
                let v = Val { epoch: EVERYWHERE, ty: self.p.globals[g as usize].ty, start, len: IS_PTR };
                self.vals[id as usize] = v;
                Ok(v)
            }
            Def::Local(_) => self.err(format!("{} is used before it is defined", self.p.label(id))),
            _ => self.err(format!("id {id} is not a value")),
        }
    }

    fn const_val(&mut self, c: u32, id: u32) -> Res<Val> {
        let c = self.p.consts[c as usize];
        let mut types = std::mem::take(&mut self.types);
        types.clear();
        self.p.leaf_types(self.at, c.ty, &mut types)?;
        let start = self.pool.len() as u32;
        self.push_values(&[])?;
        for (k, &t) in types.iter().enumerate() {
            let v = match c.kind {
                ConstKind::Null => self.konst(t, 0),
                ConstKind::Undef => self.undef(t),
                ConstKind::Bits(b) => self.konst(t, self.p.bits[b as usize + k]),
            };
            self.pool.push(v);
        }
        let v = Val { epoch: EVERYWHERE, ty: c.ty, start, len: types.len() as u32 };
        self.types = types;
        self.vals[id as usize] = v;
        Ok(v)
    }

    /// The scalars of a value; a pointer is computed here.
    fn leaves(&mut self, id: u32) -> Res<Rng> {
        let v = self.val(id)?;
        if v.len == IS_IMAGE {
            return self.err(format!("{} is an image, not a number", self.p.label(id)));
        }
        if v.len != IS_PTR {
            return Ok(Rng { start: v.start, len: v.len });
        }
        let ptr = self.ptrs[v.start as usize];
        let addr = self.addr(&ptr, 0)?;
        self.push_values(&[addr])
    }

    /// The only scalar of a value.
    fn leaf(&mut self, id: u32) -> Res<Value> {
        let r = self.leaves(id)?;
        if r.len != 1 {
            return self.err(format!("{} must be a scalar", self.p.label(id)));
        }
        Ok(self.at(r, 0))
    }

    /// The type of the value of an id.
    fn type_of(&mut self, id: u32) -> Res<TyId> {
        Ok(self.val(id)?.ty)
    }

    fn push_ptr(&mut self, ptr: Ptr) -> Res<u32> {
        if self.ptrs.len() >= MAX_POOL {
            return self.err("the values of this shader are too many");
        }
        self.ptrs.push(ptr);
        Ok(self.ptrs.len() as u32 - 1)
    }

    fn set_ptr(&mut self, id: u32, ty: TyId, ptr: Ptr) -> Res<()> {
        let start = self.push_ptr(ptr)?;
        self.vals[id as usize] = Val { epoch: self.epoch, ty, start, len: IS_PTR };
        Ok(())
    }

    /// Binds the result of an instruction, whose scalars must be those of its type.
    fn set(&mut self, id: u32, ty: TyId, r: Rng) -> Res<()> {
        let ok = match self.p.component(ty) {
            Some(s) => {
                let n = self.p.leaf_count(ty);
                r.len == n && (0..n as usize).all(|k| self.ty_of(self.at(r, k)) == s)
            }
            None => {
                let mut types = std::mem::take(&mut self.types);
                types.clear();
                self.p.leaf_types(self.at, ty, &mut types)?;
                let ok = types.len() == r.len as usize
                    && types.iter().enumerate().all(|(k, &t)| self.ty_of(self.at(r, k)) == t);
                self.types = types;
                ok
            }
        };
        if !ok {
            return self.err(format!(
                "the result of {} does not have its type",
                op_name(self.p.words[self.at] as u16)
            ));
        }
        self.vals[id as usize] = Val { epoch: self.epoch, ty, start: r.start, len: r.len };
        if self.p.names.contains_key(&id) {
            self.name_values(id, r);
        }
        Ok(())
    }

    fn name_values(&mut self, id: u32, r: Rng) {
        let Some(name) = self.p.name(id) else { return };
        if r.len > 4 {
            return;
        }
        for k in 0..r.len as usize {
            let v = self.at(r, k);
            let n = if r.len == 1 { name.clone() } else { format!("{name}.{}", ["x", "y", "z", "w"][k]) };
            self.m.func.names.entry(v).or_insert(n);
        }
    }

    fn set1(&mut self, id: u32, ty: TyId, v: Value) -> Res<()> {
        let r = self.push_values(&[v])?;
        self.set(id, ty, r)
    }

    fn set_all(&mut self, id: u32, ty: TyId, v: &[Value]) -> Res<()> {
        let r = self.push_values(v)?;
        self.set(id, ty, r)
    }

    /// Result type and result id.
    fn result(&self, i: &Inst) -> Res<(TyId, u32)> {
        Ok((self.p.type_of_id(i.at, i.w(1)?)?, i.w(2)?))
    }

    fn line(&mut self, i: &Inst) -> Res<()> {
        let (file, line, column) = (i.w(1)?, i.w(2)?, i.w(3)?);
        self.set_line(file, line, column)
    }

    fn set_line(&mut self, file: u32, line: u32, column: u32) -> Res<()> {
        let file = match self.files.get(&file) {
            Some(&f) => f,
            None => {
                let name = match self.p.def(file) {
                    Def::Str(at) => self.p.inst(at as usize)?.string(2)?.0,
                    _ => String::new(),
                };
                let f = self.m.files.len() as u32;
                self.m.files.push(name);
                self.files.insert(file, f);
                f
            }
        };
        let place = SourceLine { file, line, column };
        if self.m.locs.last() != Some(&place) {
            self.m.locs.push(place);
        }
        self.loc = Loc(self.m.locs.len() as u32);
        Ok(())
    }

    fn instruction(&mut self, i: &Inst, op: S) -> Res<()> {
        if let Some(&id) = i.words.get(2) {
            let facts = self.p.facts.get(id as usize).copied().unwrap_or(0);
            self.flags = if facts & fact::FLAGS != 0 { flags(facts) } else { Flags::NONE };
        }
        match op {
            S::FunctionCall => self.call(i),
            S::ExtInst => self.ext_inst(i),
            S::Undef => {
                let (ty, id) = self.result(i)?;
                let mut types = Vec::new();
                self.p.leaf_types(self.at, ty, &mut types)?;
                let values: Vec<Value> = types.into_iter().map(|t| self.undef(t)).collect();
                self.set_all(id, ty, &values)
            }
            S::SelectionMerge | S::LoopMerge | S::LifetimeStart | S::LifetimeStop | S::AssumeTrueKHR => {
                Ok(())
            }
            _ => {
                if self.image_inst(i, op)?
                    || self.memory_inst(i, op)?
                    || self.composite_inst(i, op)?
                    || self.atomic_inst(i, op)?
                    || self.stage_inst(i, op)?
                    || self.vertex_inst(i, op)?
                    || self.subgroup_inst(i, op)?
                    || self.derivative_inst(i, op)?
                    || self.arith_inst(i, op)?
                {
                    return Ok(());
                }
                self.unsupported(op)
            }
        }
    }

    /// An error that says what to do.
    #[cold]
    fn refuse<T>(&self, message: impl Into<String>, help: &str) -> Res<T> {
        error_help(self.at, message, help)
    }

    #[cold]
    fn unsupported(&self, op: S) -> Res<()> {
        let name = format!("{op:?}");
        for (part, what, help) in REFUSED {
            if name.contains(part) {
                return self.refuse(format!("{what} (Op{name})"), help);
            }
        }
        let what = if name.starts_with("Image") || name.starts_with("SampledImage") {
            "images and samplers are"
        } else if name.starts_with("Untyped") {
            let message = format!("untyped pointers are not supported yet: Op{name}");
            return self.refuse(message, "compile the source without SPV_KHR_untyped_pointers");
        } else if matches!(op, S::GenericCastToPtr | S::PtrCastToGeneric) {
            "pointers of OpenCL kernels are"
        } else {
            "this instruction is"
        };
        self.err(format!("{what} not supported yet: Op{name}"))
    }

    fn ext_inst(&mut self, i: &Inst) -> Res<()> {
        use crate::parse::ExtSet;
        match self.p.def(i.w(3)?) {
            Def::ExtSet(ExtSet::Glsl) => self.glsl_inst(i),
            Def::ExtSet(ExtSet::NonSemantic) => Ok(()),
            Def::ExtSet(ExtSet::DebugInfo) => {
                // DebugLine: source, first line, last line, first column, last column (all ids of constants).
                if i.w(4)? == 103 {
                    let line = self.p.int_const(i.w(6)?).unwrap_or(0) as u32;
                    let column = self.p.int_const(i.w(8)?).unwrap_or(0) as u32;
                    let file = self.p.debug_source(i.w(5)?);
                    return self.set_line(file, line, column);
                }
                Ok(())
            }
            Def::ExtSet(ExtSet::OpenCl) => self.err("instructions of OpenCL kernels are not supported yet"),
            Def::ExtSet(ExtSet::Unknown) => self.err("this set of extended instructions is not supported"),
            _ => self.err(format!("id {} is no set of extended instructions", i.w(3)?)),
        }
    }
}

fn flags(facts: u16) -> Flags {
    let mut f = Flags::NONE;
    for (bit, flag) in [
        (fact::NO_CONTRACTION, Flags::NO_CONTRACTION),
        (fact::RELAXED, Flags::RELAXED),
        (fact::NO_SIGNED_WRAP, Flags::NO_SIGNED_WRAP),
        (fact::NO_UNSIGNED_WRAP, Flags::NO_UNSIGNED_WRAP),
        (fact::FAST, Flags::FAST),
    ] {
        if facts & bit != 0 {
            f = f.with(flag);
        }
    }
    f
}

/// Bits of a float constant, rounded to the type.
pub fn float_bits(ty: Type, x: f64) -> u64 {
    match ty {
        Type::F16 => ir::eval::f64_to_f16(x) as u64,
        Type::F32 => (x as f32).to_bits() as u64,
        _ => x.to_bits(),
    }
}

/// The number that a decoration gives to an id.
fn number(p: &Parsed, id: u32, kind: Numbered) -> Option<u32> {
    p.numbers.get(&(id, kind)).copied()
}
