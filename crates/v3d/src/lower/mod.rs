//! Lowering: from IR in source form to IR that instruction selection takes as it is.
//!
//! After this pass there are only the types bool, i32 and f32 and the operations that the machine has (or that
//! selection expands to a fixed sequence); [`check()`] states the form. One walk over the blocks in layout order
//! builds a new function; definitions precede uses in that order, so each source value is looked up as what it has
//! become ([`Rep`]): one value, a pair of words (i64), a narrow integer or a half in the low bits of a word, or an
//! address that is still a sum and a constant. An operation may need several blocks (a loop for the 64-bit
//! division, for a float atomic): the current block is cut and the new blocks stand between the pieces, so the
//! layout keeps its invariants.
//!
//! * [`emit`]: instructions, folding, known bits
//! * [`wide`]: 64-bit integers; [`narrow`]: 8 and 16-bit integers and halves; [`convert`]: conversions
//! * [`math`]: special functions, bit operations; [`divide`]: integer division
//! * [`address`], [`memory`]: addresses, loads, stores, atomics
//! * [`images`]: texels and sizes of images; [`samples`]: lookups through samplers; [`elements`]: arrays of
//!   them
//! * [`builtins`]: what an invocation knows of itself, and the start state that this is read from
//! * [`stages`]: inputs and outputs of graphics programs; [`exits`]: the one place where they end
//! * [`primitives`]: rows of vertices and patches; [`vertices`]: what a geometry program gives
//! * [`lanes`]: subgroup operations; [`share`]: may work-groups share batches; [`check()`]: the form that is left
//!
//! Facts: reference sections 6.4, 6.5, 12.2, 12.5, 12.6, 13.5; in our words in docs/isa/v3d.md.
//!
//! 64-bit floats are 64-bit integers when the walk begins (`kempe_opt::double`).
//!
//! Left out: 64-bit atomics, which give an error that names the place.

mod address;
mod builtins;
mod check;
mod convert;
mod divide;
mod elements;
mod emit;
mod exits;
mod images;
mod lanes;
mod math;
mod memory;
mod narrow;
mod primitives;
mod samples;
mod share;
pub mod stages;
mod vertices;
mod wide;

#[cfg(test)]
mod tests;

use crate::instr::Version;
use address::Addr;
pub use builtins::{StartWords, payload_word};
pub use check::check;
use emit::Emit;
use kempe_ir::{
    Block, Entity, Function, Imm, Inst, InstData, Loc, Module, Op, Space, Stage, Table, Target, Term, Type,
    UniformWord, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
pub use stages::Shape;
use std::fmt;

/// Why a module cannot be lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError {
    pub message: String,
    /// The place in the source, if known.
    pub loc: Loc,
    /// Name of the value concerned, if it has one.
    pub value: Option<String>,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.value {
            Some(name) => write!(f, " (`{name}`)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LowerError {}

/// What the rest of the road must know of a lowered module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lowered {
    /// Private memory of one invocation in bytes, a multiple of 4. Spill slots come behind it. A hardware thread
    /// needs 16 times as much scratch.
    pub private_bytes: u32,
    /// Shared memory of one work-group in bytes, a multiple of 16.
    pub shared_bytes: u32,
    /// Several work-groups may run in one supergroup and share batches.
    pub may_share_batches: bool,
    /// Physical pointers are there, of which only the low words count.
    pub low_addresses: bool,
    /// What is right as code but will not work as it stands.
    pub warnings: Vec<String>,
    /// Of programs of graphics stages.
    pub graphics: Option<kempe_mir::Graphics>,
}

/// Most invocations of a work-group that the chip starts (reference section 13.6: an 8-bit field where 256 is 0).
pub const MAX_DISPATCHED_ITEMS: u32 = 256;

/// Most invocations of a work-group that are compiled. The payload has room for them and the code is right, but
/// beyond [`MAX_DISPATCHED_ITEMS`] nobody can start it, so there is a warning. Many programs set the size by a
/// specialisation constant: they can be looked at as they are.
pub const MAX_WORKGROUP_ITEMS: u32 = 1024;

/// Brings a module into the lowered form. On error the module is left without a body.
pub fn lower(m: &mut Module, version: Version, shape: &Shape) -> Result<Lowered, LowerError> {
    let fail = |message: String| Err(LowerError { message, loc: Loc(0), value: None });
    let items = m.workgroup_size.iter().try_fold(1u32, |n, &s| n.checked_mul(s));
    let Some(items) = items.filter(|n| (1..=MAX_WORKGROUP_ITEMS).contains(n)) else {
        let [x, y, z] = m.workgroup_size;
        return fail(format!(
            "a work-group of {x} x {y} x {z} invocations: 1 to {MAX_WORKGROUP_ITEMS} are supported"
        ));
    };
    let mut warnings = Vec::new();
    if items > MAX_DISPATCHED_ITEMS {
        warnings.push(format!(
            "a work-group of {items} invocations cannot be started: the hardware runs at most {MAX_DISPATCHED_ITEMS}"
        ));
    }
    if m.func.layout.is_empty() {
        return fail("the module has no body".to_owned());
    }
    match kempe_opt::double::run(m, lanes::LANES) {
        // What the parts of neighbouring operations have in common is made once.
        Ok(true) => {
            kempe_opt::fold::run(m);
            kempe_opt::gvn::run(m);
            kempe_opt::dce::run(m);
        }
        Ok(false) => {}
        Err(e) => {
            let message = format!("{}: the hardware has no 64-bit floats", e.message);
            return Err(LowerError { message, loc: e.loc, value: None });
        }
    }
    let low_addresses = m.func.values.iter().any(|(_, v)| v.ty == Type::Ptr(Space::Global));
    let graphics = m.stage != Stage::Compute;
    if graphics {
        if shape.binning && m.stage.takes_primitives() {
            primitives::positions_only(m);
        }
        match m.stage {
            Stage::Geometry => vertices::run(m),
            // They give what they give where it stands.
            Stage::TessControl => {
                kempe_opt::ssa::run(m);
            }
            _ => exits::run(m),
        }
    }
    let src = std::mem::take(&mut m.func);
    let mut l = Lower::new(m, &src, version, items);
    l.shape = *shape;
    if l.m.stage.takes_primitives() {
        l.start_primitives()?;
    }
    l.run()?;
    let mut known = kempe_mir::Graphics::default();
    if l.m.stage.takes_primitives() {
        l.primitive_facts(&mut known);
    }
    known.output_rows = std::mem::take(&mut l.rows);
    let (func, private_bytes, shared_bytes) = l.finish();
    m.func = func;
    // Each part of an expansion is made where it is needed, so much is made twice and some for nothing.
    kempe_opt::fold::run(m);
    kempe_opt::gvn::run(m);
    kempe_opt::dce::run(m);
    // No variable is named any more, but whoever runs the module must know the shared ones.
    let vars = std::mem::take(&mut m.vars);
    kempe_opt::compact::run(m);
    m.vars = vars;
    debug_assert_eq!(check(m), Ok(()));
    let may_share_batches = !graphics && share::may_share_batches(m);
    let graphics = match graphics {
        true => match stages::facts(m, shape, known) {
            Ok(facts) => Some(facts),
            Err(message) => return fail(message),
        },
        false => None,
    };
    Ok(Lowered { private_bytes, shared_bytes, may_share_batches, low_addresses, warnings, graphics })
}

/// What a source value has become.
#[derive(Clone, Copy, Debug)]
enum Rep {
    /// Not defined yet (only seen for malformed input), or without a value.
    None,
    /// Bool, i32, f32.
    One(Value),
    /// i8, i16: in the low bits; what is above them is known only as far as [`emit::Known`] says.
    Narrow(Value, Origin),
    /// f16.
    Half(Half),
    /// i64: low word, high word.
    Pair(Value, Value),
    /// A pointer.
    Addr(Addr),
}

/// The word and bit position that a narrow value was taken from, so that copies of whole words stay such.
type Origin = Option<(Value, u8)>;

/// An f16 value in its forms; the unused ones are removed as dead code.
#[derive(Clone, Copy, Debug)]
struct Half {
    /// The half in the low 16 bits of an i32, anything above.
    bits: Value,
    /// The same number as f32.
    exact: Value,
    /// An f32 that gives `bits` when rounded to half.
    unrounded: Option<Value>,
    origin: Origin,
}

struct Lower<'a> {
    m: &'a Module,
    src: &'a Function,
    version: Version,
    /// Invocations per work-group.
    items: u32,
    e: Emit,
    map: Vec<Rep>,
    /// New block by old block.
    blocks: Table<Block, Block>,
    layout: Vec<Block>,
    /// What the arguments of the forward edges seen so far have in common, by parameter of the new function.
    joined: FxHashMap<Value, emit::Known>,
    /// Byte offset by variable (private or shared), given on first use for private ones.
    private_offsets: Vec<Option<u32>>,
    private_bytes: u32,
    shared: Option<kempe_ir::exec::VarLayout>,
    /// Where all lanes run together, if there are operations between lanes.
    control: Option<kempe_ir::divergence::Divergence>,
    shape: Shape,
    /// What the program gives when it returns.
    outputs: std::collections::BTreeMap<(kempe_ir::io::Slot, u8), Value>,
    /// What the rows of a vertex program's outputs hold, or those of each vertex that the program gives.
    rows: Vec<kempe_mir::VertexRow>,
    /// Of geometry and tessellation.
    interface: primitives::Interface,
    /// The source block that is being lowered.
    from: Block,
    /// The instruction that is being lowered.
    at: Loc,
    name: Option<Value>,
}

type Result<T, E = LowerError> = std::result::Result<T, E>;

impl<'a> Lower<'a> {
    fn new(m: &'a Module, src: &'a Function, version: Version, items: u32) -> Lower<'a> {
        Lower {
            m,
            src,
            version,
            items,
            e: Emit::new(),
            map: vec![Rep::None; src.values.len()],
            blocks: Table::new(src.blocks.len(), Block(u32::MAX)),
            layout: Vec::with_capacity(src.layout.len()),
            joined: FxHashMap::default(),
            private_offsets: vec![None; m.vars.len()],
            private_bytes: 0,
            shared: None,
            control: None,
            shape: Shape::default(),
            outputs: Default::default(),
            rows: Vec::new(),
            interface: Default::default(),
            from: Block(0),
            at: Loc(0),
            name: None,
        }
    }

    fn finish(self) -> (Function, u32, u32) {
        let shared_bytes = self.shared.as_ref().map_or(0, |s| s.bytes);
        let mut func = self.e.func;
        func.layout = self.layout;
        (func, self.private_bytes, shared_bytes)
    }

    /// An error at the current instruction.
    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        let value = self.name.and_then(|v| self.src.names.get(&v).cloned());
        Err(LowerError { message: message.into(), loc: self.at, value })
    }

    fn run(&mut self) -> Result<()> {
        let order = self.src.order();
        let mut is_header = vec![false; self.src.blocks.len()];
        for (n, &b) in self.src.layout.iter().enumerate() {
            self.blocks[b] = self.e.new_block();
            for t in self.src.blocks[b].term.targets() {
                if order[t.block] as usize <= n {
                    is_header[t.block.index()] = true;
                }
            }
        }
        for &b in &self.src.layout {
            self.block_params(b)?;
        }
        self.control = self.control();
        for &b in &self.src.layout {
            let data = &self.src.blocks[b];
            self.from = b;
            self.e.switch_to(self.blocks[b]);
            self.layout.push(self.blocks[b]);
            self.e.func.blocks[self.e.block].loop_hint = data.loop_hint;
            self.enter_block(b, is_header[b.index()]);
            for &i in &data.insts {
                self.inst(i)?;
            }
            self.terminator(b, &is_header)?;
        }
        let entry = self.blocks[self.src.layout[0]];
        self.e.finish_prologue(entry);
        Ok(())
    }

    /// Makes the parameters of the new block.
    fn block_params(&mut self, b: Block) -> Result<()> {
        let new = self.blocks[b];
        for &p in &self.src.blocks[b].params {
            self.at = Loc(0);
            self.name = Some(p);
            self.map[p.index()] = match self.src.ty(p) {
                ty @ (Type::Bool | Type::I32 | Type::F32) => Rep::One(self.e.param(new, ty)),
                Type::I8 | Type::I16 => Rep::Narrow(self.e.param(new, Type::I32), None),
                // The other forms are made when the block is entered.
                Type::F16 => {
                    let bits = self.e.param(new, Type::I32);
                    Rep::Half(Half { bits, exact: bits, unrounded: None, origin: None })
                }
                Type::I64 => Rep::Pair(self.e.param(new, Type::I32), self.e.param(new, Type::I32)),
                Type::F64 => return self.no_f64(),
                Type::Ptr(space) => Rep::Addr(Addr::dynamic(space, self.e.param(new, Type::I32))),
            };
            self.keep_name(p);
        }
        Ok(())
    }

    fn enter_block(&mut self, b: Block, is_header: bool) {
        if !is_header {
            for &p in &self.e.func.blocks[self.e.block].params.clone() {
                if let Some(&k) = self.joined.get(&p) {
                    self.e.set_known(p, k);
                }
            }
        }
        for &p in &self.src.blocks[b].params {
            if let Rep::Half(h) = self.map[p.index()] {
                self.map[p.index()] = Rep::Half(self.half_of_bits(h.bits));
            }
        }
    }

    fn terminator(&mut self, b: Block, is_header: &[bool]) -> Result<()> {
        let data = &self.src.blocks[b];
        self.at = data.term_loc;
        self.name = None;
        self.e.loc = data.term_loc;
        let term = match &data.term {
            Term::Jump(t) => Term::Jump(self.target(t, is_header)?),
            Term::Branch { cond, then, els } => {
                let cond = self.one(*cond)?;
                let (then, els) = (self.target(then, is_header)?, self.target(els, is_header)?);
                Term::Branch { cond, then, els }
            }
            Term::Return => {
                self.give_outputs()?;
                Term::Return
            }
            Term::Unreachable => Term::Unreachable,
        };
        self.e.end(term);
        let last = self.e.block;
        self.e.func.blocks[last].branch_hint = data.branch_hint;
        Ok(())
    }

    /// An edge with its arguments in lowered form.
    fn target(&mut self, t: &Target, is_header: &[bool]) -> Result<Target> {
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for &a in &t.args {
            match self.rep(a)? {
                Rep::One(v) | Rep::Narrow(v, _) => args.push(v),
                Rep::Half(h) => args.push(h.bits),
                Rep::Pair(lo, hi) => args.extend([lo, hi]),
                Rep::Addr(addr) => args.push(self.pointer_value(addr)),
                Rep::None => unreachable!("rep() gives none of these"),
            }
        }
        let block = self.blocks[t.block];
        if !is_header[t.block.index()] {
            for (n, &a) in args.iter().enumerate() {
                if let Some(&p) = self.e.func.blocks[block].params.get(n) {
                    let k = self.e.known(a);
                    self.joined.entry(p).and_modify(|j| *j = j.join(k)).or_insert(k);
                }
            }
        }
        Ok(Target { block, args })
    }

    /// What a source value has become.
    fn rep(&self, v: Value) -> Result<Rep> {
        match self.map[v.index()] {
            Rep::None => self.error(format!("{v} is used before it is defined")),
            rep => Ok(rep),
        }
    }

    /// A value that is one lowered value (bool, i32, f32, pointers).
    fn one(&mut self, v: Value) -> Result<Value> {
        match self.rep(v)? {
            Rep::One(v) => Ok(v),
            Rep::Addr(addr) => Ok(self.pointer_value(addr)),
            _ => self.error(format!("{v} has the type {} where one word is expected", self.src.ty(v))),
        }
    }

    fn set(&mut self, v: Value, rep: Rep) {
        self.map[v.index()] = rep;
        self.keep_name(v);
    }

    fn set_one(&mut self, v: Value, new: Value) {
        self.set(v, Rep::One(new));
    }

    /// Carries a name of the source over to what stands for the value.
    fn keep_name(&mut self, v: Value) {
        if self.src.names.is_empty() {
            return;
        }
        let Some(name) = self.src.names.get(&v) else { return };
        let (one, two) = match self.map[v.index()] {
            Rep::One(v) | Rep::Narrow(v, _) => (v, None),
            Rep::Half(h) => (h.unrounded.unwrap_or(h.bits), None),
            Rep::Pair(lo, hi) => (lo, Some(hi)),
            Rep::Addr(_) | Rep::None => return,
        };
        if self.e.func.as_const(one).is_some() {
            return; // shared by everybody who needs the same constant
        }
        self.e.func.names.entry(one).or_insert_with(|| name.clone());
        if let Some(hi) = two {
            self.e.func.names.entry(hi).or_insert_with(|| format!("{name}.hi"));
        }
    }

    /// [`kempe_opt::double`] leaves none.
    fn no_f64<T>(&self) -> Result<T> {
        self.error("a 64-bit float that is not an integer yet")
    }

    /// Starts a new block behind the current one; the caller has ended or will end the current one.
    fn append_block(&mut self) -> Block {
        let b = self.e.new_block();
        self.layout.push(b);
        b
    }

    fn inst(&mut self, i: Inst) -> Result<()> {
        let inst = &self.src.insts[i];
        self.at = inst.loc;
        self.e.loc = inst.loc;
        self.name = inst.results.first().copied();
        match inst.op {
            Op::Const => self.constant(inst),
            Op::Undef => self.undef(inst),
            Op::Select => self.select(inst),
            Op::Trunc
            | Op::Zext
            | Op::Sext
            | Op::Ftosi
            | Op::Ftoui
            | Op::Sitof
            | Op::Uitof
            | Op::Fconv
            | Op::Bitcast => self.conversion(inst),
            Op::PackHalf | Op::UnpackHalfLo | Op::UnpackHalfHi => self.copy(inst),
            Op::ResourceAddr | Op::VarAddr | Op::Lea => self.address(inst),
            Op::ResourceSize => self.resource_size(inst),
            Op::Load => self.load(inst),
            Op::Store => self.store(inst),
            Op::Atomic => self.atomic(inst),
            Op::Uniform => self.uniform(inst),
            Op::ImageLoad | Op::ImageStore | Op::ImageAtomic | Op::ImageSize | Op::ImageLevels => {
                self.image(inst)
            }
            Op::Sample | Op::SampleImplicit => self.sample(inst),
            Op::Barrier if self.m.stage == Stage::TessControl => self.patch_barrier(inst),
            Op::Barrier | Op::Fence | Op::Payload => self.copy(inst),
            Op::Builtin => self.builtin(inst),
            Op::Input | Op::ReadOutput if self.m.stage.takes_primitives() => self.input_row(inst),
            Op::Output if self.m.stage == Stage::TessControl => self.control_output(inst),
            Op::EmitVertex => self.emit_vertex(inst),
            Op::Input => self.input(inst),
            Op::Output => self.output(inst),
            Op::Demote | Op::IsHelper => self.copy(inst),
            Op::Ddx | Op::Ddy => self.derivative(inst),
            Op::Elect
            | Op::VoteAny
            | Op::VoteAll
            | Op::VoteEq
            | Op::Ballot
            | Op::BroadcastFirst
            | Op::Shuffle
            | Op::Reduce => self.lanes(inst),
            _ => match inst.ty {
                Type::Bool => self.bool_op(inst),
                Type::I32 | Type::Ptr(_) => self.int_op(inst),
                Type::F32 => self.float_op(inst),
                Type::I8 | Type::I16 => self.narrow_op(inst),
                Type::F16 => self.half_op(inst),
                Type::I64 => self.wide_op(inst),
                Type::F64 => self.no_f64(),
            },
        }
    }

    /// A difference in the quad; of halves in f32, which rounds the same.
    fn derivative(&mut self, inst: &InstData) -> Result<()> {
        if inst.ty != Type::F16 {
            return self.copy(inst);
        }
        let r = self.result(inst)?;
        let Rep::Half(h) = self.rep(self.arg(inst, 0)?)? else {
            return self.error("a derivative of something that is no float");
        };
        let v = self.e.float(inst.op, &[h.exact]);
        let rep = Rep::Half(self.half_of_float(v));
        self.set(r, rep);
        Ok(())
    }

    /// The single result of an instruction.
    fn result(&self, inst: &InstData) -> Result<Value> {
        match inst.results.first() {
            Some(&v) => Ok(v),
            None => self.error(format!("`{}` without a result", inst.op.name())),
        }
    }

    /// Operand number `n`.
    fn arg(&self, inst: &InstData, n: usize) -> Result<Value> {
        match inst.args.get(n) {
            Some(&v) => Ok(v),
            None => self.error(format!("`{}` lacks an operand", inst.op.name())),
        }
    }

    /// Operand number `n` as one lowered value.
    fn arg_one(&mut self, inst: &InstData, n: usize) -> Result<Value> {
        let v = self.arg(inst, n)?;
        self.one(v)
    }

    /// Copies an instruction whose operands and results are words.
    fn copy(&mut self, inst: &InstData) -> Result<()> {
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for &a in &inst.args {
            args.push(self.one(a)?);
        }
        let mut results: SmallVec<[Type; 2]> = SmallVec::new();
        for &r in &inst.results {
            match self.src.ty(r) {
                ty @ (Type::Bool | Type::I32 | Type::F32) => results.push(ty),
                ty => return self.error(format!("`{}` cannot give a value of type {ty}", inst.op.name())),
            }
        }
        let new = self.e.inst(inst.op, inst.ty, inst.flags, inst.imm, &args, &results);
        for (n, &r) in inst.results.iter().enumerate() {
            let v = self.e.func.insts[new].results[n];
            self.set_one(r, v);
        }
        Ok(())
    }

    /// A word of the driver that the source form names already, as a word or as a pointer.
    fn uniform(&mut self, inst: &InstData) -> Result<()> {
        let (r, Imm::Uniform(word)) = (self.result(inst)?, inst.imm) else {
            return self.error("`uniform` without its immediate");
        };
        let v = self.e.uniform(word);
        let rep = match (inst.ty, word) {
            (Type::I32, _) => Rep::One(v),
            (Type::F32, _) => Rep::One(self.e.bitcast(Type::F32, v)),
            // Push constants and private memory are addressed without their base (see `address`).
            (Type::Ptr(Space::Push), UniformWord::PushAddr) => {
                Rep::Addr(Addr { space: Space::Push, sum: None, offset: 0 })
            }
            (Type::Ptr(space @ Space::Constant), UniformWord::ConstantAddr)
            | (Type::Ptr(space @ (Space::Storage | Space::Uniform)), UniformWord::BufferAddr { .. }) => {
                Rep::Addr(Addr::dynamic(space, v))
            }
            (ty, _) => return self.error(format!("this word of the driver cannot be of type {ty}")),
        };
        self.set(r, rep);
        Ok(())
    }

    fn constant(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Int(bits) = inst.imm else { return self.error("a constant without bits") };
        let r = self.result(inst)?;
        let low = bits as u32;
        let rep = match inst.ty {
            Type::Bool => Rep::One(self.e.b(bits & 1 != 0)),
            Type::I32 | Type::F32 => Rep::One(self.e.constant(inst.ty, low)),
            Type::I8 | Type::I16 => Rep::Narrow(self.e.i(low & inst.ty.mask() as u32), None),
            Type::F16 => Rep::Half(self.half_constant(low as u16)),
            Type::I64 => Rep::Pair(self.e.i(low), self.e.i((bits >> 32) as u32)),
            Type::F64 => return self.no_f64(),
            Type::Ptr(space) => Rep::Addr(self.literal_address(space, low)?),
        };
        self.map[r.index()] = rep;
        Ok(())
    }

    fn undef(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let rep = match inst.ty {
            Type::Bool | Type::I32 | Type::F32 => Rep::One(self.e.undef(inst.ty)),
            Type::I8 | Type::I16 => Rep::Narrow(self.e.undef(Type::I32), None),
            // All forms must agree with each other, so some half is chosen.
            Type::F16 => Rep::Half(self.half_constant(0)),
            Type::I64 => Rep::Pair(self.e.undef(Type::I32), self.e.undef(Type::I32)),
            Type::F64 => return self.no_f64(),
            Type::Ptr(space) => {
                let v = self.e.i(0);
                Rep::Addr(Addr::dynamic(space, v))
            }
        };
        self.set(r, rep);
        Ok(())
    }

    fn select(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let cond = self.arg_one(inst, 0)?;
        let (a, b) = (self.rep(self.arg(inst, 1)?)?, self.rep(self.arg(inst, 2)?)?);
        let rep = match (a, b) {
            (Rep::Pair(al, ah), Rep::Pair(bl, bh)) => {
                Rep::Pair(self.e.select(cond, al, bl), self.e.select(cond, ah, bh))
            }
            (Rep::Narrow(a, _), Rep::Narrow(b, _)) => Rep::Narrow(self.e.select(cond, a, b), None),
            (Rep::Half(a), Rep::Half(b)) => {
                let bits = self.e.select(cond, a.bits, b.bits);
                let exact = self.e.select(cond, a.exact, b.exact);
                let unrounded = match (a.unrounded, b.unrounded) {
                    (Some(a), Some(b)) => Some(self.e.select(cond, a, b)),
                    _ => None,
                };
                Rep::Half(Half { bits, exact, unrounded, origin: None })
            }
            (Rep::Addr(a), Rep::Addr(b)) => {
                let (x, y) = (self.pointer_value(a), self.pointer_value(b));
                Rep::Addr(Addr::dynamic(a.space, self.e.select(cond, x, y)))
            }
            (Rep::One(a), Rep::One(b)) => Rep::One(self.e.select(cond, a, b)),
            _ => return self.error("the two values of a select differ in type"),
        };
        self.set(r, rep);
        Ok(())
    }

    fn bool_op(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let mut args: SmallVec<[Value; 2]> = SmallVec::new();
        for &a in &inst.args {
            args.push(self.one(a)?);
        }
        let v = match inst.op {
            Op::And | Op::Or | Op::Xor | Op::Not => self.e.bool_op(inst.op, &args),
            Op::Ine => self.e.bool_op(Op::Xor, &args),
            Op::Ieq => {
                let differ = self.e.bool_op(Op::Xor, &args);
                self.e.bool_op(Op::Not, &[differ])
            }
            op => return self.error(format!("`{}` does not exist for bool", op.name())),
        };
        self.set_one(r, v);
        Ok(())
    }
}
