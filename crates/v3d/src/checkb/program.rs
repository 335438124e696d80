//! The machine instructions before allocation, executed with symbols: the value of every virtual register, and what
//! every block does to memory, in order. What an instruction means is the contract in `mops.rs`.

use super::graphics;
use super::value::{Value, Values};
use crate::instr::{Op, Pack, Push, Unpack, Version, small_value};
use crate::mops::{Cmp, CmpOp, MInst, MemClass, Src, Test, TmuType, When};
use kempe_ir::Stage;
use kempe_mir::symbolic::Term;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::{Block, Inst, OperandKind, Program, Unit};
use smallvec::SmallVec;

/// Something that memory or other threads notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Effect {
    pub inst: u32,
    pub kind: EffectKind,
    /// Fences (waits and barriers) in front of it in its block.
    pub fence: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum EffectKind {
    Access(Access),
    Barrier,
    /// setmsf.
    Samples {
        value: Term,
        condition: Option<Term>,
    },
    /// A write to the tile buffer: the configuration byte that it takes, unless it is a further word of the one before.
    Tile {
        setup: Option<u8>,
        value: Term,
    },
    /// A row that the program gives.
    Row {
        op: Op,
        row: Term,
        value: Term,
        condition: Option<Term>,
    },
    /// One that it reads back: row and, of a vertex, its number.
    RowRead {
        op: Op,
        row: Term,
        vertex: Option<Term>,
    },
    /// The wait for these writes.
    RowsDone,
}

/// A TMU operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Access {
    /// Configuration byte (12.2).
    pub byte: u8,
    pub class: MemClass,
    pub reads: bool,
    pub writes: bool,
    pub condition: Option<Term>,
    /// Address, or S coordinate.
    pub address: Term,
    /// Of the texture unit: its configuration words and other coordinates.
    pub texture: Option<Texture>,
    pub data: SmallVec<[Term; 4]>,
    /// Result words.
    pub results: u8,
}

/// What an access of the texture unit has beside data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Texture {
    /// The register that starts it.
    pub start: u8,
    pub words: SmallVec<[UniformSource; 3]>,
    /// Register and value, by ascending register.
    pub coordinates: SmallVec<[(u8, Term); 4]>,
}

impl Access {
    /// What it does depends on the sample flags of single lanes. (Those of whole quads do not matter: nothing that a dead
    /// quad computes does.)
    pub fn asks_samples(&self) -> bool {
        self.writes && self.texture.is_some()
            || self.texture.is_none() && self.byte & graphics::PER_PIXEL != 0
    }
}

impl Effect {
    /// Whether the order of two effects matters.
    pub fn conflicts(&self, other: &Effect) -> bool {
        match (&self.kind, &other.kind) {
            (EffectKind::Access(a), EffectKind::Access(b)) => {
                self.fence != other.fence || ((a.writes || b.writes) && a.class.0 & b.class.0 != 0)
            }
            (EffectKind::Barrier, _) | (_, EffectKind::Barrier) => true,
            // Rule 61.
            (EffectKind::Samples { .. }, EffectKind::Access(a))
            | (EffectKind::Access(a), EffectKind::Samples { .. }) => a.asks_samples(),
            (EffectKind::Samples { .. } | EffectKind::Tile { .. }, EffectKind::Samples { .. })
            | (EffectKind::Samples { .. } | EffectKind::Tile { .. }, EffectKind::Tile { .. }) => true,
            // Rows that are the same in all lanes are known: one term is one row.
            (
                EffectKind::Row { op: Op::Stvpmv, row: a, .. },
                EffectKind::Row { op: Op::Stvpmv, row: b, .. },
            ) => a == b,
            (EffectKind::RowRead { .. }, EffectKind::RowRead { .. }) => false,
            (
                EffectKind::Row { .. } | EffectKind::RowRead { .. } | EffectKind::RowsDone,
                EffectKind::Row { .. } | EffectKind::RowRead { .. } | EffectKind::RowsDone,
            ) => true,
            _ => false,
        }
    }
}

/// How a block is left. Every condition is one of two questions, positive or negated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    Jump,
    /// To successor 0 when the answer is `taken`.
    Branch {
        lane0: bool,
        predicate: Term,
        taken: bool,
    },
    End,
}

/// A block of machine code.
#[derive(Clone, Debug)]
pub(super) struct Behaviour {
    pub effects: Vec<Effect>,
    /// Fences in the block; the last may stand behind all effects.
    pub fences: u32,
    pub leave: Leave,
    /// Every expression that the block makes or reads.
    pub made: Vec<Term>,
    /// Address and number of words of everything that is read through the side band.
    pub sides: Vec<(Term, u8)>,
    /// The varyings that it takes, in order.
    pub varyings: Vec<u32>,
    /// The sample flags at its start.
    pub samples: graphics::Flags,
}

impl Behaviour {
    /// The sample flags behind what has been done so far.
    fn flags(&self, id: Block) -> Value {
        let writes = self.effects.iter().filter(|e| matches!(e.kind, EffectKind::Samples { .. })).count();
        self.samples.after(writes as u32, id).value()
    }
}

/// What a program is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub version: Version,
    pub stage: Stage,
}

/// Why the machine code itself could not be understood.
pub(super) struct Malformed {
    pub inst: u32,
    pub message: &'static str,
}

pub(super) struct Source {
    /// By virtual register.
    pub value: Vec<Option<Term>>,
    pub blocks: Vec<Behaviour>,
    /// Payload values and where they arrive.
    pub payload: Vec<(Unit, Term)>,
}

pub(super) struct Uses {
    list: SmallVec<[Term; 8]>,
    at: usize,
}

impl Uses {
    pub(super) fn next(&mut self) -> Option<Term> {
        let t = self.list.get(self.at).copied();
        self.at += 1;
        t
    }

    pub(super) fn take(&mut self, s: Src, v: &mut Values) -> Option<Term> {
        match s {
            Src::None => None,
            Src::Use => self.next(),
            Src::Imm(code) => small_value(code).map(|c| v.constant(c)),
        }
    }
}

/// Executes everything.
pub(super) fn run(mir: &Mir<MInst>, target: Target, v: &mut Values) -> Result<Source, Malformed> {
    let p = &mir.program;
    let mut out = Source {
        value: vec![None; p.vregs.len()],
        blocks: Vec::with_capacity(p.blocks.len()),
        payload: Vec::new(),
    };
    for (n, undefined) in undefined(p).into_iter().enumerate() {
        if undefined {
            out.value[n] = Some(v.undefined);
        }
    }
    let flags = graphics::flags_at_starts(mir);
    for (b, block) in p.blocks.iter().enumerate() {
        let id = Block(b as u32);
        for (k, param) in block.params.iter().enumerate() {
            if out.value[param.0 as usize].is_none() {
                let t = parameter(mir, v, &out.value, id, k);
                out.value[param.0 as usize] = Some(t);
            }
        }
        let mut behaviour = Behaviour {
            effects: Vec::new(),
            fences: 0,
            leave: Leave::End,
            made: Vec::new(),
            sides: Vec::new(),
            varyings: Vec::new(),
            samples: flags.get(id.0 as usize).copied().unwrap_or_default(),
        };
        let mut left = false;
        for i in block.insts.clone() {
            if left {
                return Err(Malformed { inst: i, message: "an instruction after the end of its block" });
            }
            left = instruction(mir, target, v, &mut out, &mut behaviour, id, i)
                .ok_or(Malformed { inst: i, message: "operands are missing" })?;
        }
        if !left {
            return Err(Malformed { inst: block.insts.end, message: "a block without an end" });
        }
        behaviour.made = v.take_made();
        // What is read here may be made again here.
        let read = block.insts.clone().flat_map(|i| mir.operands(Inst(i)));
        behaviour.made.extend(read.filter_map(|op| out.value[op.vreg.0 as usize]));
        behaviour.made.sort_unstable();
        behaviour.made.dedup();
        out.blocks.push(behaviour);
    }
    Ok(out)
}

/// By virtual register: it is undefined on every way to it. A parameter is where nothing but undefined values and
/// parameters like it are brought, round a loop too: what is only handed on there may be in no place at all.
fn undefined(p: &Program) -> Vec<bool> {
    let mut is: Vec<bool> = p.vregs.iter().map(|v| v.undefined).collect();
    p.blocks.iter().flat_map(|b| &b.params).for_each(|v| is[v.0 as usize] = true);
    // Parameters of the first block arrive from outside.
    p.blocks.iter().take(1).flat_map(|b| &b.params).for_each(|v| is[v.0 as usize] = false);
    let mut again = true;
    while std::mem::take(&mut again) {
        for e in p.blocks.iter().flat_map(|b| &b.succs) {
            for (param, arg) in p.blocks[e.to.0 as usize].params.iter().zip(&e.args) {
                if !is[arg.0 as usize] && std::mem::replace(&mut is[param.0 as usize], false) {
                    again = true;
                }
            }
        }
    }
    is
}

/// A parameter is a value of its own, unless every edge brings the same one.
fn parameter(mir: &Mir<MInst>, v: &mut Values, value: &[Option<Term>], id: Block, k: usize) -> Term {
    let p = &mir.program;
    let me = p.blocks[id.0 as usize].params[k];
    let own = Value::Param(me.0, id);
    let mut same: Option<Term> = None;
    for q in &p.blocks[id.0 as usize].preds {
        for e in p.blocks[q.0 as usize].succs.iter().filter(|e| e.to == id) {
            let Some(&arg) = e.args.get(k) else { return v.make(own) };
            if arg == me {
                continue;
            }
            let Some(t) = value[arg.0 as usize] else { return v.make(own) };
            if !v.terms.survives(t, id) || same.is_some_and(|s| s != t) {
                return v.make(own);
            }
            same = Some(t);
        }
    }
    same.unwrap_or_else(|| v.make(own))
}

/// What an ALU operation computes. `None`: it depends on more than its sources.
pub(super) fn operation(op: Op, unpack: [Unpack; 2], s: &[Term]) -> Option<Value> {
    if op.reads_flag_a() || op.reads_flag_b() || op == Op::Lr {
        return None;
    }
    Some(match (op.sources(), s) {
        (0, _) => Value::Zero(op),
        (1, &[a, ..]) => Value::One(op, unpack[0], a),
        (2, &[a, b, ..]) => Value::Two(op, unpack, [a, b]),
        _ => return None,
    })
}

fn compare(v: &mut Values, c: &Cmp, uses: &mut Uses) -> Option<Term> {
    let a = uses.take(c.src[0], v)?;
    let b = uses.take(c.src[1], v);
    let t = match (c.op, b) {
        (CmpOp::NonZero, _) => {
            let z = v.make(Value::IsZero(a));
            v.not(z)
        }
        (CmpOp::Ieq, Some(b)) => {
            let x = v.make(Value::Two(Op::Xor, [Unpack::None; 2], [a, b]));
            v.make(Value::IsZero(x))
        }
        (CmpOp::Slt, Some(b)) => v.make(Value::Less([a, b])),
        (CmpOp::Ult, Some(b)) => v.make(Value::Below([a, b])),
        (CmpOp::Feq, Some(b)) => v.make(Value::Float(Push::Z, c.unpack, [a, b])),
        (CmpOp::Flt, Some(b)) => v.make(Value::Float(Push::N, c.unpack, [a, b])),
        (CmpOp::Fle, Some(b)) => v.make(Value::Float(Push::C, c.unpack, [a, b])),
        (_, None) => return None,
    };
    Some(if c.invert { v.not(t) } else { t })
}

fn test(v: &mut Values, t: &Test, uses: &mut Uses) -> Option<Term> {
    let mask = match t.mask {
        true => {
            let m = uses.next()?;
            let runs = v.make(Value::IsZero(m));
            // A flag may hold it the other way round.
            v.not(runs);
            Some(runs)
        }
        false => None,
    };
    let mut cmp = None;
    for c in t.cmps() {
        let one = compare(v, c, uses)?;
        cmp = Some(match cmp {
            Some(before) => v.make(Value::Both([before, one])),
            None => one,
        });
    }
    if t.not {
        cmp = cmp.map(|c| v.not(c));
    }
    match (mask, cmp) {
        (Some(m), Some(c)) => Some(v.make(Value::Both([m, c]))),
        (m, c) => m.or(c),
    }
}

pub(super) fn maybe_test(v: &mut Values, t: &Option<Test>, uses: &mut Uses) -> Option<Option<Term>> {
    match t {
        Some(t) => test(v, t, uses).map(Some),
        None => Some(None),
    }
}

/// The configuration byte of an operation (12.2): for each lane, or for whole quads.
fn byte(op: u8, ty: TmuType, per_quad: bool) -> u8 {
    let ty = match ty {
        TmuType::I8 => 0,
        TmuType::I16 => 1,
        TmuType::Vec2 => 2,
        TmuType::Vec3 => 3,
        TmuType::Vec4 => 4,
        TmuType::U8 => 5,
        TmuType::U16 => 6,
        TmuType::Word => 7,
    };
    (if per_quad { 0 } else { graphics::PER_PIXEL }) | (op & 15) << 3 | ty
}

/// Code of loads and stores.
const REGULAR: u8 = 15;

/// One instruction; returns whether it ends its block.
fn instruction(
    mir: &Mir<MInst>,
    target: Target,
    v: &mut Values,
    out: &mut Source,
    block: &mut Behaviour,
    id: Block,
    i: u32,
) -> Option<bool> {
    let operands = mir.operands(Inst(i));
    let mut uses = Uses { list: SmallVec::new(), at: 0 };
    for o in operands.iter().filter(|o| o.kind == OperandKind::Use) {
        uses.list.push(out.value[o.vreg.0 as usize]?);
    }
    let defs: SmallVec<[_; 4]> = operands.iter().filter(|o| o.kind != OperandKind::Use).collect();
    let fence = block.fences;
    let mut results: SmallVec<[Term; 4]> = SmallVec::new();
    let access = |block: &mut Behaviour, a: Access| {
        block.effects.push(Effect { inst: i, kind: EffectKind::Access(a), fence });
    };
    let loaded = |v: &mut Values, n: u8| (0..n).map(|k| v.make(Value::Loaded(i, k, id))).collect();
    match mir.data[i as usize] {
        MInst::Entry => {
            for o in &defs {
                let t = v.make(Value::Payload(o.vreg.0));
                out.payload.push((o.fixed?, t));
                results.push(t);
            }
        }
        MInst::Alu { op, pack, src, unpack, test } => {
            let condition = maybe_test(v, &test, &mut uses)?;
            let mut s: SmallVec<[Term; 2]> = SmallVec::new();
            for &x in src.iter().take(op.sources()) {
                s.push(uses.take(x, v)?);
            }
            let old = uses.next().unwrap_or(v.undefined);
            let mut t = match operation(op, unpack, &s) {
                _ if op == Op::Msf => v.make(block.flags(id)),
                Some(value) => v.make(value),
                None => v.make(Value::Loaded(i, 0, id)),
            };
            if pack != Pack::None {
                t = v.make(Value::Packed(pack, t, old));
            }
            if let Some(c) = condition {
                t = v.make(Value::Choice(c, [t, old]));
            }
            results.push(t);
        }
        MInst::Select { test: how, src, unpack } => {
            let c = test(v, &how, &mut uses)?;
            let mut s = [v.undefined; 2];
            for k in 0..2 {
                let t = uses.take(src[k], v)?;
                s[k] = v.make(Value::One(Op::Fmov, unpack[k], t));
            }
            results.push(v.make(Value::Choice(c, s)));
        }
        MInst::Mul32 { src } => {
            let (a, b) = (uses.take(src[0], v)?, uses.take(src[1], v)?);
            results.push(v.make(Value::Product([a, b])));
        }
        MInst::Uniform(u) => results.push(v.uniform(u)),
        MInst::Read { address, count } => {
            let a = v.uniform(address);
            block.sides.push((a, count));
            results = (0..count).map(|k| v.make(Value::Side(a, k))).collect();
        }
        MInst::Sideband { count } => {
            let a = uses.next()?;
            block.sides.push((a, count));
            results = (0..count).map(|k| v.make(Value::Side(a, k))).collect();
        }
        MInst::TmuLoad { ty, count, class, test } => {
            // A load that no test guards is for helpers too.
            let per_quad = target.stage == Stage::Fragment && test.is_none();
            let condition = maybe_test(v, &test, &mut uses)?;
            let address = uses.next()?;
            results = loaded(v, count);
            access(
                block,
                Access {
                    byte: byte(REGULAR, ty, per_quad),
                    class,
                    reads: true,
                    writes: false,
                    condition,
                    address,
                    texture: None,
                    data: SmallVec::new(),
                    results: count,
                },
            );
        }
        MInst::TmuStore { ty, count, class, test } => {
            // Helpers have private memory.
            let per_quad = target.stage == Stage::Fragment && test.is_none() && class == MemClass::PRIVATE;
            let condition = maybe_test(v, &test, &mut uses)?;
            let address = uses.next()?;
            let mut data = SmallVec::new();
            for _ in 0..count {
                data.push(uses.next()?);
            }
            access(
                block,
                Access {
                    byte: byte(REGULAR, ty, per_quad),
                    class,
                    reads: false,
                    writes: true,
                    condition,
                    address,
                    texture: None,
                    data,
                    results: 0,
                },
            );
        }
        MInst::TmuAtomic { op, data: words, class, test } => {
            let condition = maybe_test(v, &test, &mut uses)?;
            let address = uses.next()?;
            let mut data = SmallVec::new();
            for _ in 0..words {
                data.push(uses.next()?);
            }
            results = loaded(v, 1);
            let ty = if words == 2 { TmuType::Vec2 } else { TmuType::Word };
            access(
                block,
                Access {
                    byte: byte(op, ty, false),
                    class,
                    reads: true,
                    writes: true,
                    condition,
                    address,
                    texture: None,
                    data,
                    results: 1,
                },
            );
        }
        MInst::Texture { op, test } => {
            let condition = maybe_test(v, &test, &mut uses)?;
            let address = uses.next()?;
            let mut coordinates = SmallVec::new();
            for register in op.coordinates.registers() {
                coordinates.push((register, uses.next()?));
            }
            let mut data = SmallVec::new();
            for _ in 0..op.data {
                data.push(uses.next()?);
            }
            let words = [Some(op.p0), op.p1, op.p2.map(UniformSource::Const)];
            results = loaded(v, op.results);
            access(
                block,
                Access {
                    byte: 0,
                    class: op.class,
                    reads: op.results != 0,
                    writes: op.writes,
                    condition,
                    address,
                    texture: Some(Texture {
                        start: op.start.register(),
                        words: words.into_iter().flatten().collect(),
                        coordinates,
                    }),
                    data,
                    results: op.results,
                },
            );
        }
        MInst::Ballot { test, live } => {
            let condition = maybe_test(v, &test, &mut uses)?;
            let flags = block.flags(id);
            results.push(ballot(target.version, v, condition, live.then_some(flags)));
        }
        MInst::Rotate { by } => {
            let a = uses.next()?;
            results.push(turned(v, a, by));
        }
        MInst::Broadcast { lane } => {
            let a = uses.next()?;
            let from_lane = match lane {
                Src::Imm(n) => turned(v, a, n),
                _ => {
                    let lane = uses.next()?;
                    let count = v.make(Value::One(Op::Neg, Unpack::None, lane));
                    let count = v.make(Value::Spread(false, count));
                    v.make(Value::Turned([count, a]))
                }
            };
            results.push(v.make(Value::Spread(true, from_lane)));
        }
        MInst::Varying { how } => {
            block.varyings.push(i);
            results.push(graphics::varying(v, how, i, id, &mut uses)?);
        }
        MInst::VertexOutput { .. }
        | MInst::RowRead { .. }
        | MInst::VertexWait
        | MInst::SetSamples { .. }
        | MInst::MaskSamples
        | MInst::Tlb { .. } => {
            let flags = block.flags(id);
            let kind = graphics::effect(mir.data[i as usize], v, flags, &block.effects, &mut uses)?;
            block.effects.push(Effect { inst: i, kind, fence });
            if !defs.is_empty() {
                results.push(v.make(Value::Loaded(i, 0, id)));
            }
        }
        MInst::TmuWait => block.fences += 1,
        MInst::Barrier => {
            block.fences += 1;
            block.effects.push(Effect { inst: i, kind: EffectKind::Barrier, fence: block.fences });
            block.fences += 1;
        }
        MInst::Branch { test: how, when } => {
            let c = test(v, &how, &mut uses)?;
            let lane0 = matches!(when, When::Lane0 | When::NotLane0);
            // In one lane the negation of the predicate is the negation of the answer.
            let (predicate, flipped) = question(v, lane0, c);
            let taken = matches!(when, When::Lane0 | When::Any) != flipped;
            block.leave = Leave::Branch { lane0, predicate, taken };
            return (mir.program.blocks[id.0 as usize].succs.len() == 2).then_some(true);
        }
        MInst::Jump => {
            block.leave = Leave::Jump;
            return (mir.program.blocks[id.0 as usize].succs.len() == 1).then_some(true);
        }
        MInst::End => {
            block.leave = Leave::End;
            return mir.program.blocks[id.0 as usize].succs.is_empty().then_some(true);
        }
    }
    for (n, o) in defs.iter().enumerate() {
        out.value[o.vreg.0 as usize] = Some(*results.get(n)?);
    }
    Some(false)
}

/// Every lane gets the value of the lane `by` further on.
fn turned(v: &mut Values, a: Term, by: u8) -> Term {
    if by.is_multiple_of(16) {
        return a;
    }
    let count = v.constant(u32::from(by));
    v.make(Value::Two(Op::Rot, [Unpack::None; 2], [a, count]))
}

/// One bit for each lane in which a condition holds.
fn ballot(version: Version, v: &mut Values, condition: Option<Term>, live: Option<Value>) -> Term {
    let mut condition = condition;
    if let Some(flags) = live {
        let flags = v.make(flags);
        let none = v.make(Value::IsZero(flags));
        let exists = v.not(none);
        condition = Some(match condition {
            Some(c) => v.make(Value::Both([c, exists])),
            None => exists,
        });
    }
    let zero = v.constant(0);
    if version == Version::V71 {
        // Any word that is not 0 counts; flags are seen as two ones.
        let set = match condition {
            Some(c) => {
                let ones = v.constant(FLAG_SET);
                v.make(Value::Choice(c, [ones, zero]))
            }
            None => v.constant(1),
        };
        return v.make(Value::One(Op::Ballot, Unpack::None, set));
    }
    let plain = [Unpack::None; 2];
    let (one, lane) = (v.constant(1), v.make(Value::Zero(Op::Eidx)));
    let mut bits = v.make(Value::Two(Op::Shl, plain, [one, lane]));
    if let Some(c) = condition {
        bits = v.make(Value::Choice(c, [bits, zero]));
    }
    for n in [8, 4, 2, 1] {
        let other = turned(v, bits, n);
        bits = v.make(Value::Two(Op::Or, plain, [bits, other]));
    }
    bits
}

/// What an operation that shows flags gives where the flag is set (6.5).
pub(super) const FLAG_SET: u32 = 0x1_0001;

/// A lane-0 question without a negated predicate, and whether the answer is turned round by that.
pub(super) fn question(v: &mut Values, lane0: bool, predicate: Term) -> (Term, bool) {
    if lane0 && matches!(v.terms.node(predicate), Value::Not(_)) {
        (v.not(predicate), true)
    } else {
        (predicate, false)
    }
}
