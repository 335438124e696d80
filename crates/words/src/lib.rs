//! From IR in source form to IR in 32-bit words.
//!
//! Machines whose registers are 32-bit words need the same preparation: after this pass arithmetic knows bool, i32 and f32
//! only, while memory, addresses and what an invocation knows of itself are the machine's own business
//! ([`Machine::inst`]). One walk over the blocks in layout order builds a new function; definitions precede uses in that
//! order, so each source value is looked up as what it has become ([`Rep`]): one value, a pair of words (i64), a narrow
//! integer or a half in the low bits of a word, an address that is still a sum and a constant. An operation may need several blocks (a loop for the 64-bit division): the
//! current block is cut and the new blocks stand between the pieces, so the layout keeps its invariants.
//!
//! * [`emit`]: instructions, folding, known bits
//! * [`wide`]: 64-bit integers; [`narrow`]: 8 and 16-bit integers and halves; [`convert`]: conversions
//! * [`math`]: special functions, bit operations; [`divide`]: integer division
//!
//! What a machine computes in one operation is data ([`Has`]).
//!
//! 64-bit floats are 64-bit integers when the walk begins (`kempe_opt::double`).
//!
//! Left out: 64-bit atomics, which are memory and so the machine's; pairs of halves in one register.

pub mod convert;
pub mod divide;
pub mod emit;
pub mod math;
pub mod narrow;
pub mod wide;

use emit::{Emit, Known};
use kempe_ir::{Block, Entity, Function, Imm, InstData, Loc, Op, Space, Table, Target, Term, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;

/// Why a module cannot be brought to words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WordsError {
    pub message: String,
    /// The place in the source, if known.
    pub loc: Loc,
    /// Name of the value concerned, if it has one.
    pub value: Option<String>,
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.value {
            Some(name) => write!(f, " (`{name}`)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for WordsError {}

pub type Result<T, E = WordsError> = std::result::Result<T, E>;

/// What the machine computes in one operation, beyond what all have.
#[derive(Clone, Copy, Debug)]
pub struct Has {
    /// `popcount`, `bitreverse`, `find_umsb` (all ones for 0).
    pub bits: bool,
    /// `umulhi` and `smulhi`.
    pub high_products: bool,
    /// A product of 24 bits that is cheaper than one of 32.
    pub umul24: bool,
    /// `sinpi_approx`; otherwise a polynomial takes its place.
    pub sine: bool,
    /// Pointers are words, kept as a sum and a constant ([`Addr`]) until an access needs them; otherwise they are values of
    /// their own type. What a constant of a pointer type or an undefined pointer is, the machine says ([`Machine::inst`]).
    pub word_addresses: bool,
    /// What is certain about a word of the driver ([`Imm::Uniform`]) or a built-in ([`Imm::Builtin`]).
    pub given: fn(Imm) -> Known,
}

/// What a target does itself. It holds the walk, so that its own part can stand beside it.
pub trait Machine<'a> {
    /// Names what is computed once, at the start of the program ([`Emit::once`]).
    type Key;

    fn words(&mut self) -> &mut Words<'a, Self::Key>;

    /// Lowers an instruction, if it is the machine's: addresses, memory, built-ins, and what words cannot say. `false`:
    /// not mine.
    ///
    /// # Errors
    /// When the machine cannot do it.
    fn inst(&mut self, inst: &InstData) -> Result<bool>;

    /// Before the program returns.
    ///
    /// # Errors
    /// When the machine cannot do it.
    fn leave(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What a source value has become.
#[derive(Clone, Copy, Debug)]
pub enum Rep {
    /// Not defined yet (only seen for malformed input), or without a value.
    None,
    /// Bool, i32, f32, pointers that are values.
    One(Value),
    /// i8, i16: in the low bits; what is above them is known only as far as [`Known`] says.
    Narrow(Value, Origin),
    /// f16.
    Half(Half),
    /// i64: low word, high word.
    Pair(Value, Value),
    /// A pointer, where they are words.
    Addr(Addr),
}

/// An address that is not materialised yet. It counts what the machine counts.
#[derive(Clone, Copy, Debug)]
pub struct Addr {
    pub space: Space,
    pub sum: Option<Value>,
    pub offset: u32,
}

impl Addr {
    pub fn dynamic(space: Space, sum: Value) -> Addr {
        Addr { space, sum: Some(sum), offset: 0 }
    }

    pub fn plus(self, bytes: u32) -> Addr {
        Addr { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// The word and bit position that a narrow value was taken from, so that copies of whole words stay such.
pub type Origin = Option<(Value, u8)>;

/// An f16 value in its forms; the unused ones are removed as dead code.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// The half in the low 16 bits of an i32, anything above.
    pub bits: Value,
    /// The same number as f32.
    pub exact: Value,
    /// An f32 that gives `bits` when rounded to half.
    pub unrounded: Option<Value>,
    pub origin: Origin,
}

/// The walk.
pub struct Words<'a, K = ()> {
    /// The function as it was.
    pub src: &'a Function,
    pub has: Has,
    /// The function as it becomes.
    pub e: Emit<K>,
    /// The source block that is being lowered.
    pub from: Block,
    map: Vec<Rep>,
    /// New block by old block.
    blocks: Table<Block, Block>,
    layout: Vec<Block>,
    /// Source blocks that start loops.
    is_header: Vec<bool>,
    /// What the arguments of the forward edges seen so far have in common, by parameter of the new function.
    joined: FxHashMap<Value, Known>,
    /// The instruction that is being lowered.
    at: Loc,
    name: Option<Value>,
}

/// Walks over the function of a machine's [`Words`].
///
/// # Errors
/// What the machine or words cannot do.
pub fn run<'a, M: Machine<'a>>(machine: &mut M) -> Result<()> {
    machine.words().start()?;
    let src = machine.words().src;
    for &b in &src.layout {
        machine.words().enter_block(b);
        for &i in &src.blocks[b].insts {
            let inst = &src.insts[i];
            machine.words().at(inst.loc, inst.results.first().copied());
            if !machine.inst(inst)? {
                machine.words().inst(inst)?;
            }
        }
        let data = &src.blocks[b];
        machine.words().at(data.term_loc, None);
        if data.term == Term::Return {
            machine.leave()?;
        }
        machine.words().terminator(b)?;
    }
    Ok(())
}

impl<'a, K> Words<'a, K> {
    pub fn new(src: &'a Function, has: Has) -> Words<'a, K> {
        Words {
            src,
            has,
            e: Emit::new(&has),
            from: Block(0),
            map: vec![Rep::None; src.values.len()],
            blocks: Table::new(src.blocks.len(), Block(u32::MAX)),
            layout: Vec::with_capacity(src.layout.len()),
            is_header: vec![false; src.blocks.len()],
            joined: FxHashMap::default(),
            at: Loc(0),
            name: None,
        }
    }

    /// An error at the current instruction.
    pub fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        let value = self.name.and_then(|v| self.src.names.get(&v).cloned());
        Err(WordsError { message: message.into(), loc: self.at, value })
    }

    /// The function that has been built.
    pub fn finish(mut self) -> Function {
        if let Some(&entry) = self.layout.first() {
            self.e.finish_prologue(entry);
        }
        let mut func = self.e.func;
        func.layout = self.layout;
        func
    }

    /// Makes the new blocks and their parameters.
    fn start(&mut self) -> Result<()> {
        let order = self.src.order();
        for (n, &b) in self.src.layout.iter().enumerate() {
            self.blocks[b] = self.e.new_block();
            for t in self.src.blocks[b].term.targets() {
                if order[t.block] as usize <= n {
                    self.is_header[t.block.index()] = true;
                }
            }
        }
        for &b in &self.src.layout {
            self.block_params(b)?;
        }
        Ok(())
    }

    /// The place in the source that is looked at next.
    fn at(&mut self, loc: Loc, name: Option<Value>) {
        self.at = loc;
        self.e.loc = loc;
        self.name = name;
    }

    /// Makes the parameters of the new block.
    fn block_params(&mut self, b: Block) -> Result<()> {
        let new = self.blocks[b];
        for &p in &self.src.blocks[b].params {
            self.at = Loc(0);
            self.name = Some(p);
            self.map[p.index()] = match self.src.ty(p) {
                Type::Ptr(space) if self.has.word_addresses => {
                    Rep::Addr(Addr::dynamic(space, self.e.param(new, Type::I32)))
                }
                ty @ (Type::Bool | Type::I32 | Type::F32 | Type::Ptr(_)) => Rep::One(self.e.param(new, ty)),
                Type::I8 | Type::I16 => Rep::Narrow(self.e.param(new, Type::I32), None),
                // The other forms are made when the block is entered.
                Type::F16 => {
                    let bits = self.e.param(new, Type::I32);
                    Rep::Half(Half { bits, exact: bits, unrounded: None, origin: None })
                }
                Type::I64 => Rep::Pair(self.e.param(new, Type::I32), self.e.param(new, Type::I32)),
                Type::F64 => return self.no_f64(),
            };
            self.keep_name(p);
        }
        Ok(())
    }

    fn enter_block(&mut self, b: Block) {
        self.from = b;
        self.e.switch_to(self.blocks[b]);
        self.layout.push(self.blocks[b]);
        self.e.func.blocks[self.e.block].loop_hint = self.src.blocks[b].loop_hint;
        if !self.is_header[b.index()] {
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

    fn terminator(&mut self, b: Block) -> Result<()> {
        let data = &self.src.blocks[b];
        let term = match &data.term {
            Term::Jump(t) => Term::Jump(self.target(t)?),
            Term::Branch { cond, then, els } => {
                let cond = self.one(*cond)?;
                let (then, els) = (self.target(then)?, self.target(els)?);
                Term::Branch { cond, then, els }
            }
            Term::Return => Term::Return,
            Term::Unreachable => Term::Unreachable,
        };
        self.e.end(term);
        let last = self.e.block;
        self.e.func.blocks[last].branch_hint = data.branch_hint;
        Ok(())
    }

    /// An edge with its arguments in words.
    fn target(&mut self, t: &Target) -> Result<Target> {
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
        if !self.is_header[t.block.index()] {
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
    pub fn rep(&self, v: Value) -> Result<Rep> {
        match self.map[v.index()] {
            Rep::None => self.error(format!("{v} is used before it is defined")),
            rep => Ok(rep),
        }
    }

    /// A value that is one lowered value (bool, i32, f32, pointers).
    pub fn one(&mut self, v: Value) -> Result<Value> {
        match self.rep(v)? {
            Rep::One(v) => Ok(v),
            Rep::Addr(addr) => Ok(self.pointer_value(addr)),
            _ => self.error(format!("{v} has the type {} where one word is expected", self.src.ty(v))),
        }
    }

    pub fn set(&mut self, v: Value, rep: Rep) {
        self.map[v.index()] = rep;
        self.keep_name(v);
    }

    pub fn set_one(&mut self, v: Value, new: Value) {
        self.set(v, Rep::One(new));
    }

    /// The pointer as a word that can be passed on.
    pub fn pointer_value(&mut self, a: Addr) -> Value {
        let offset = self.e.i(a.offset);
        match a.sum {
            Some(sum) => self.e.add(sum, offset),
            None => offset,
        }
    }

    /// A word that becomes a pointer.
    fn pointer(&mut self, space: Space, word: Value) -> Rep {
        match self.has.word_addresses {
            true => Rep::Addr(Addr::dynamic(space, word)),
            false => Rep::One(self.e.bitcast(Type::Ptr(space), word)),
        }
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

    /// `kempe_opt::double` leaves none.
    pub fn no_f64<T>(&self) -> Result<T> {
        self.error("a 64-bit float that is not an integer yet")
    }

    /// Starts a new block behind the current one; the caller has ended or will end the current one.
    pub fn append_block(&mut self) -> Block {
        let b = self.e.new_block();
        self.place(b);
        b
    }

    /// A block that has been made stands behind the current one.
    pub fn place(&mut self, b: Block) {
        self.layout.push(b);
    }

    fn inst(&mut self, inst: &InstData) -> Result<()> {
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

    /// The single result of an instruction.
    pub fn result(&self, inst: &InstData) -> Result<Value> {
        match inst.results.first() {
            Some(&v) => Ok(v),
            None => self.error(format!("`{}` without a result", inst.op.name())),
        }
    }

    /// Operand number `n`.
    pub fn arg(&self, inst: &InstData, n: usize) -> Result<Value> {
        match inst.args.get(n) {
            Some(&v) => Ok(v),
            None => self.error(format!("`{}` lacks an operand", inst.op.name())),
        }
    }

    /// Operand number `n` as one lowered value.
    pub fn arg_one(&mut self, inst: &InstData, n: usize) -> Result<Value> {
        let v = self.arg(inst, n)?;
        self.one(v)
    }

    /// Copies an instruction whose operands and results are words or pointers.
    pub fn copy(&mut self, inst: &InstData) -> Result<()> {
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for &a in &inst.args {
            args.push(self.one(a)?);
        }
        let mut results: SmallVec<[Type; 2]> = SmallVec::new();
        for &r in &inst.results {
            match self.src.ty(r) {
                ty @ (Type::Bool | Type::I32 | Type::F32) => results.push(ty),
                ty @ Type::Ptr(_) if !self.has.word_addresses => results.push(ty),
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

    fn constant(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Int(bits) = inst.imm else { return self.error("a constant without bits") };
        let r = self.result(inst)?;
        let low = bits as u32;
        let rep = match inst.ty {
            Type::Bool => Rep::One(self.e.b(bits & 1 != 0)),
            Type::I32 | Type::F32 | Type::Ptr(_) => Rep::One(self.e.constant(inst.ty, low)),
            Type::I8 | Type::I16 => Rep::Narrow(self.e.i(low & inst.ty.mask() as u32), None),
            Type::F16 => Rep::Half(self.half_constant(low as u16)),
            Type::I64 => Rep::Pair(self.e.i(low), self.e.i((bits >> 32) as u32)),
            Type::F64 => return self.no_f64(),
        };
        self.map[r.index()] = rep;
        Ok(())
    }

    fn undef(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let rep = match inst.ty {
            Type::Bool | Type::I32 | Type::F32 | Type::Ptr(_) => Rep::One(self.e.undef(inst.ty)),
            Type::I8 | Type::I16 => Rep::Narrow(self.e.undef(Type::I32), None),
            // All forms must agree with each other, so some half is chosen.
            Type::F16 => Rep::Half(self.half_constant(0)),
            Type::I64 => Rep::Pair(self.e.undef(Type::I32), self.e.undef(Type::I32)),
            Type::F64 => return self.no_f64(),
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
