//! Machine instructions and the allocator's edits to operations on physical registers.
//!
//! * A test becomes a push (and an update for a second part); it is left out when flag A already holds the same
//!   comparison of the same registers.
//! * Results of loads are collected as late as the code allows: several lookups then share one thread switch and
//!   the output FIFO is used (reference 12.2). On 4.2 no accumulator may be live at that later switch.
//! * An address or data word that one ALU operation makes for a TMU access alone is written straight to the TMU.
//! * A store is waited for only before something that may read what it wrote (and at the end of the program).
//!
//! Here is the walk over the code; [`flags`] has the tests, [`lanes`] the operations between lanes, [`tmu`] the memory
//! accesses, [`edits`] what the allocator brought in.

mod edits;
mod flags;
mod lanes;
mod tmu;

use self::flags::Flags;
use self::tmu::config;
use super::FinishError;
use super::uop::{self, Kind, Origin, UOp, dest, mov, source, under};
use crate::instr::{Cond, Dest, Loc, Op, Part, Signals, Source, Unpack, Version};
use crate::magic;
use crate::mops::{MInst, MemClass, Src, TmuType, When};
use kempe_ir::io::Interpolation;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::{Allocation, Block, Edit, Inst, OperandKind, Point, Unit, VReg};
use smallvec::SmallVec;

/// How a block ends, with the flag already in A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Goes on to this block.
    Jump(Block),
    /// Branches to `taken` when flag A (inverted when `inverted`) says so, else goes on to `next`.
    Branch {
        when: When,
        inverted: bool,
        taken: Block,
        next: Block,
    },
    End,
}

/// One block of operations.
#[derive(Debug)]
pub struct Expanded {
    pub ops: Vec<UOp>,
    pub exit: Exit,
    /// Result words that each TMU sequence of this block brings, by its number in the block.
    pub words: Vec<u32>,
}

/// What expansion needs to know beside the code.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub version: Version,
    /// 2 or 4.
    pub threads: u32,
    pub stage: kempe_ir::Stage,
    /// Private arrays in front of the spill slots, bytes per lane.
    pub private_bytes: u32,
    /// Registers that memory edits use.
    pub spill_base: Loc,
    pub spill_scratch: Loc,
}

/// Registers that operations name: rows 0 to 63, accumulators 64 to 69.
const REGS: usize = 70;

fn reg(l: Loc) -> usize {
    match l {
        Loc::Row(r) => r as usize,
        Loc::Acc(r) => 64 + r as usize,
    }
}

struct Pending {
    seq: u32,
    /// Where each result word goes; `None`: thrown away.
    dests: SmallVec<[Option<Loc>; 4]>,
    origin: Origin,
    inst: u32,
}

/// How far ahead the 4.2 accumulator rule looks before it gives up and collects results at once.
const ACC_LOOKAHEAD: u32 = 16;

pub struct Expander<'a> {
    frame: Frame,
    mir: &'a Mir<MInst>,
    alloc: &'a Allocation,
    unit_loc: &'a dyn Fn(Unit) -> Loc,
    /// Number of uses of each virtual register.
    uses: Vec<u32>,
    /// Last instruction that uses a register, in its own block (`u32::MAX`: lives on).
    last_use: Vec<u32>,
    unused: Vec<bool>,
    /// Union of every store class of the program: what may be outstanding at a loop header.
    all_stores: MemClass,
    // State of the block being expanded.
    ops: Vec<UOp>,
    words: Vec<u32>,
    pending: Vec<Pending>,
    outstanding: u32,
    stores: MemClass,
    flags: Flags,
    /// The address of the next word of the side band.
    side: Option<UniformSource>,
    /// What r0 holds a copy of for rotations, and the operation that copied it.
    turned: Option<(Source, u32)>,
    /// Index of the operation that wrote a register last in this block, plus one.
    written: [u32; REGS],
    /// The register whose value that is, when it is a single plain ALU operation.
    holds: [Option<VReg>; REGS],
    inst: u32,
    origin: Origin,
    bad_recipe: bool,
}

impl<'a> Expander<'a> {
    pub fn new(
        frame: Frame,
        mir: &'a Mir<MInst>,
        alloc: &'a Allocation,
        unit_loc: &'a dyn Fn(Unit) -> Loc,
    ) -> Self {
        let p = &mir.program;
        let mut uses = vec![0u32; p.vregs.len()];
        let mut last_use = vec![0u32; p.vregs.len()];
        let mut block_of_use = vec![u32::MAX; p.vregs.len()];
        let mut block_of_def = vec![u32::MAX; p.vregs.len()];
        let mut all_stores = MemClass::default();
        for (b, block) in p.blocks.iter().enumerate() {
            for v in &block.params {
                block_of_def[v.0 as usize] = b as u32;
            }
            for i in block.insts.clone() {
                for o in mir.operands(Inst(i)) {
                    let v = o.vreg.0 as usize;
                    if o.kind == OperandKind::Use {
                        uses[v] += 1;
                        last_use[v] = i;
                        if block_of_use[v] != u32::MAX && block_of_use[v] != b as u32 {
                            block_of_use[v] = u32::MAX - 1;
                        } else {
                            block_of_use[v] = b as u32;
                        }
                    } else {
                        block_of_def[v] = b as u32;
                    }
                }
                match mir.data[i as usize] {
                    MInst::TmuStore { class, .. } | MInst::TmuAtomic { class, .. } => {
                        all_stores.0 |= class.0;
                    }
                    MInst::Texture { op, .. } if op.writes => all_stores.0 |= op.class.0,
                    _ => {}
                }
            }
            for e in &block.succs {
                for v in &e.args {
                    uses[v.0 as usize] += 1;
                    block_of_use[v.0 as usize] = u32::MAX - 1;
                }
            }
        }
        for v in 0..last_use.len() {
            if block_of_use[v] != block_of_def[v] {
                last_use[v] = u32::MAX;
            }
        }
        if alloc.edits.iter().any(|(_, e)| matches!(e, Edit::Spill { .. })) {
            all_stores.0 |= MemClass::SPILL.0;
        }
        for (_, edit) in &alloc.edits {
            // It reads its inputs once more, later than any instruction that names them.
            if let &Edit::Repeat { inst, .. } = edit {
                for o in mir.operands(inst).iter().filter(|o| o.kind == OperandKind::Use) {
                    uses[o.vreg.0 as usize] += 1;
                    last_use[o.vreg.0 as usize] = u32::MAX;
                }
            }
        }
        let mut unused = vec![false; p.operands.len()];
        for &o in &alloc.unused_defs {
            unused[o as usize] = true;
        }
        Expander {
            frame,
            mir,
            alloc,
            unit_loc,
            uses,
            last_use,
            unused,
            all_stores,
            ops: Vec::new(),
            words: Vec::new(),
            pending: Vec::new(),
            outstanding: 0,
            stores: MemClass::default(),
            flags: Flags::default(),
            side: None,
            turned: None,
            written: [0; REGS],
            holds: [None; REGS],
            inst: 0,
            origin: Origin::Program,
            bad_recipe: false,
        }
    }

    /// Expands every block.
    pub fn run(mut self) -> Result<Vec<Expanded>, FinishError> {
        let p = &self.mir.program;
        let mut out = Vec::with_capacity(p.blocks.len());
        let mut stores_out = vec![MemClass::default(); p.blocks.len()];
        let mut flags_out: Vec<Flags> = vec![Flags::default(); p.blocks.len()];
        let mut edits = self.alloc.edits.as_slice();
        for (b, block) in p.blocks.iter().enumerate() {
            self.ops = Vec::with_capacity(block.insts.len() * 2);
            self.words = Vec::new();
            // What all ways here leave in flag A.
            self.flags = match block.preds.split_first() {
                Some((q, rest)) if block.preds.iter().all(|q| (q.0 as usize) < b) => {
                    let first = &flags_out[q.0 as usize];
                    let same = rest.iter().all(|q| flags_out[q.0 as usize] == *first);
                    if same { first.clone() } else { Flags::default() }
                }
                _ => Flags::default(),
            };
            self.side = None;
            self.turned = None;
            self.written = [0; REGS];
            self.holds = [None; REGS];
            let back = block.preds.iter().any(|q| q.0 as usize >= b);
            self.stores = if back {
                self.all_stores
            } else {
                MemClass(block.preds.iter().fold(0, |m, q| m | stores_out[q.0 as usize].0))
            };
            let mut exit = Exit::End;
            for i in block.insts.clone() {
                let inst = Inst(i);
                self.inst = i;
                while let Some(((point, edit), rest)) = edits.split_first() {
                    if *point != Point::Before(inst) {
                        break;
                    }
                    self.edit(*edit);
                    edits = rest;
                }
                if let Some(e) = self.instruction(inst, Block(b as u32))? {
                    exit = e;
                }
                while let Some(((point, edit), rest)) = edits.split_first() {
                    if *point != Point::After(inst) {
                        break;
                    }
                    self.edit(*edit);
                    edits = rest;
                }
            }
            stores_out[b] = self.stores;
            flags_out[b] = std::mem::take(&mut self.flags);
            out.push(Expanded {
                ops: std::mem::take(&mut self.ops),
                exit,
                words: std::mem::take(&mut self.words),
            });
        }
        if !edits.is_empty() {
            return Err(FinishError::bug("an edit of the allocator has no place in the code"));
        }
        if self.bad_recipe {
            return Err(FinishError::bug("a recipe that cannot be made again"));
        }
        Ok(out)
    }

    fn loc(&self, u: Unit) -> Loc {
        (self.unit_loc)(u)
    }

    fn version(&self) -> Version {
        self.frame.version
    }

    /// The register still holds the copy of a source that was made last.
    fn holds_copy(&self, register: Loc, of: Source) -> bool {
        self.turned.is_some_and(|(s, at)| {
            s == of
                && self.written[reg(register)] == at
                && uop::source_loc(of).is_none_or(|l| self.written[reg(l)] <= at)
        })
    }

    /// Says that a register holds a copy now.
    fn copied(&mut self, register: Loc, of: Source) {
        self.turned = Some((of, self.written[reg(register)]));
    }

    fn emit(&mut self, mut op: UOp) {
        op.inst = self.inst;
        if op.origin == Origin::Program {
            op.origin = self.origin;
        }
        let index = self.ops.len() as u32 + 1;
        for l in op.writes(self.frame.version) {
            self.written[reg(l)] = index;
            self.holds[reg(l)] = None;
            self.flags.written(l);
        }
        if op.part.writes_flags() {
            self.flags = Flags::default();
        }
        self.ops.push(op);
    }

    /// The configuration byte of a load: of whole quads in a fragment program, so that helpers get their words.
    fn load_config(&self, ty: TmuType, guarded: bool) -> u8 {
        let quads = self.frame.stage == kempe_ir::Stage::Fragment && !guarded;
        if quads { config(15, ty) & !tmu::PER_PIXEL } else { config(15, ty) }
    }

    /// Memory that each lane has for itself.
    fn own_memory(&self, class: MemClass) -> bool {
        class == MemClass::PRIVATE || class == MemClass::SPILL
    }

    /// A varying (reference 12.1).
    fn varying(&mut self, how: Interpolation, w: Option<Source>, def: (VReg, Loc, bool)) {
        let (_, to, unused) = def;
        let first = if unused { Dest::NOP } else { dest(to) };
        let mut op = UOp::signal(Signals::LDVARY, Some(first));
        op.kind = Kind::LdVary;
        self.emit(op);
        if unused {
            return;
        }
        let constant = source(Loc::uniform(self.frame.version));
        if let Some(w) = w {
            self.emit_part(Part::new(Op::Fmul, dest(to), source(to), w));
        }
        let last = match how {
            Interpolation::Flat => mov(dest(to), constant),
            _ => Part::new(Op::Fadd, dest(to), source(to), constant),
        };
        let mut op = UOp::alu(last);
        op.kind = Kind::VaryingEnd;
        self.emit(op);
    }

    fn emit_part(&mut self, part: Part) {
        self.emit(UOp::alu(part));
    }

    fn load_uniform(&mut self, to: Loc, word: UniformSource) {
        let mut op = if to == Loc::uniform(self.frame.version) {
            UOp::signal(Signals::LDUNIF, None)
        } else {
            UOp::signal(Signals::LDUNIFRF, Some(dest(to)))
        };
        op.uniform = Some(word);
        self.emit(op);
    }

    /// The next word of the uniform stream is where the side band goes on (reference 12.5: no register is needed).
    fn side_address(&mut self, address: UniformSource) {
        if self.side == Some(address) {
            return;
        }
        self.side = Some(address);
        let mut op = UOp::signal(Signals::LDUNIFRF, Some(Dest::Magic(magic::UNIFA)));
        op.uniform = Some(address);
        op.kind = Kind::UnifaWrite;
        self.emit(op);
    }

    fn side_words(&mut self, defs: &[(VReg, Loc, bool)], count: u8) -> Result<(), FinishError> {
        for n in 0..count as usize {
            let &(_, to, _) = defs.get(n).ok_or_else(|| FinishError::bug("a side band without result"))?;
            self.side_word(to);
        }
        Ok(())
    }

    /// The next word through the side band.
    fn side_word(&mut self, to: Loc) {
        let mut op = if to == Loc::uniform(self.frame.version) {
            UOp::signal(Signals::LDUNIFA, None)
        } else {
            UOp::signal(Signals::LDUNIFARF, Some(dest(to)))
        };
        op.kind = Kind::LdUnifa;
        self.emit(op);
        if let Some(UniformSource::Word(_, c)) = &mut self.side {
            *c = c.wrapping_add(4);
        }
    }

    fn instruction(&mut self, i: Inst, block: Block) -> Result<Option<Exit>, FinishError> {
        let p = &self.mir.program;
        let range = p.insts[i.0 as usize].operands.clone();
        let operands = &p.operands[range.start as usize..range.end as usize];
        let places = &self.alloc.places[range.start as usize..range.end as usize];
        let defs: SmallVec<[(VReg, Loc, bool); 4]> = range
            .clone()
            .zip(operands.iter().zip(places))
            .filter(|(_, (o, _))| o.kind != OperandKind::Use)
            .map(|(n, (o, &u))| (o.vreg, self.loc(u), self.unused[n as usize]))
            .collect();
        let use_list: SmallVec<[Value; 6]> = operands
            .iter()
            .zip(places)
            .filter(|(o, _)| o.kind == OperandKind::Use)
            .map(|(o, &u)| Value { source: source(self.loc(u)), vreg: Some(o.vreg) })
            .collect();
        let data = self.mir.data[i.0 as usize];
        // A definition that nothing reads.
        let all_unused = !defs.is_empty() && defs.iter().all(|d| d.2);
        if all_unused
            && matches!(
                data,
                MInst::Alu { .. }
                    | MInst::Select { .. }
                    | MInst::Mul32 { .. }
                    | MInst::Uniform(_)
                    | MInst::Read { .. }
                    | MInst::Sideband { .. }
                    | MInst::Ballot { .. }
                    | MInst::Rotate { .. }
                    | MInst::Broadcast { .. }
            )
        {
            return Ok(None);
        }
        if !matches!(data, MInst::Entry) {
            let mut touched: SmallVec<[Loc; 8]> = defs.iter().map(|d| d.1).collect();
            touched.extend(use_list.iter().filter_map(|v| uop::source_loc(v.source)));
            let acc = !self.acc_defs_may_wait(i);
            self.before_access(&touched, acc);
        }
        let mut uses = Uses { list: &use_list, at: 0 };
        match data {
            MInst::Entry => {
                if self.alloc.memory_edits {
                    for op in Self::spill_base_setup(&self.frame) {
                        self.emit(op);
                    }
                }
            }
            MInst::Alu { op, pack, src, unpack, test } => {
                let cond = test.map(|t| self.test(&t, &mut uses));
                let s = [uses.take(src[0]), uses.take(src[1])];
                let (vreg, to, _) = def(&defs)?;
                let part = Part { op, dest: dest(to), pack, src: s, unpack, cond, push: None, update: None };
                if self.alu(part, to) && uop::is_plain(&part) {
                    self.holds[reg(to)] = Some(vreg);
                }
            }
            MInst::Select { test, src, unpack } => {
                let cond = self.test(&test, &mut uses);
                let s = [uses.take(src[0]), uses.take(src[1])];
                let (_, to, _) = def(&defs)?;
                let same = |n: usize| s[n] == source(to) && unpack[n] == Unpack::None;
                if same(0) && same(1) {
                } else if same(0) {
                    self.emit_part(under(uop::fmov(dest(to), s[1], unpack[1]), Some(cond.inverse())));
                } else {
                    if !same(1) {
                        // The unconditional move must not destroy what the conditional one reads.
                        if s[0] == source(to) {
                            let first = uop::fmov(dest(to), s[0], unpack[0]);
                            self.emit_part(under(first, Some(cond)));
                            self.emit_part(under(uop::fmov(dest(to), s[1], unpack[1]), Some(cond.inverse())));
                            return Ok(None);
                        }
                        self.emit_part(uop::fmov(dest(to), s[1], unpack[1]));
                    }
                    self.emit_part(under(uop::fmov(dest(to), s[0], unpack[0]), Some(cond)));
                }
                match s {
                    [Source::Small(0), Source::Small(1..)] => self.flags.decides(to, cond),
                    [Source::Small(1..), Source::Small(0)] => self.flags.decides(to, cond.inverse()),
                    _ => {}
                }
            }
            MInst::Mul32 { src } => {
                let s = [uses.take(src[0]), uses.take(src[1])];
                let (_, to, _) = def(&defs)?;
                self.emit_part(Part::new(Op::Multop, Dest::NOP, s[0], s[1]));
                self.emit_part(Part::new(Op::Umul24, dest(to), s[0], s[1]));
            }
            MInst::Uniform(word) => {
                let (_, to, _) = def(&defs)?;
                self.load_uniform(to, word);
            }
            MInst::Read { address, count } => {
                self.side_address(address);
                self.side_words(&defs, count)?;
            }
            MInst::Sideband { count } => {
                let address = uses.value();
                let mut op =
                    self.fused(address).map_or_else(|| UOp::alu(mov(Dest::NOP, address.source)), UOp::alu);
                op.part.dest = Dest::Magic(magic::UNIFA);
                self.side = None;
                op.kind = Kind::UnifaWrite;
                self.emit(op);
                self.side_words(&defs, count)?;
            }
            MInst::TmuLoad { ty, count, class, test } => {
                self.wait_for(class);
                let seq_words = count as u32;
                let limit = 16 / self.frame.threads;
                if self.outstanding + seq_words > limit {
                    self.collect();
                }
                let cond = test.map(|t| self.test(&t, &mut uses));
                let seq = self.new_sequence(seq_words);
                if class.0 & MemClass::PRIVATE.0 != 0 {
                    self.origin = Origin::Scratch;
                }
                let address = uses.value();
                self.tmu_start(self.load_config(ty, test.is_some()), address, cond, seq, true);
                self.pending.push(Pending {
                    seq,
                    dests: defs.iter().map(|d| if d.2 { None } else { Some(d.1) }).collect(),
                    origin: self.origin,
                    inst: i.0,
                });
                self.origin = Origin::Program;
                if defs.iter().any(|d| matches!(d.1, Loc::Acc(_))) {
                    self.collect();
                }
            }
            MInst::TmuStore { ty, count, class, test } => {
                let cond = test.map(|t| self.test(&t, &mut uses));
                let seq = self.new_sequence(0);
                if class.0 & MemClass::PRIVATE.0 != 0 {
                    self.origin = Origin::Scratch;
                }
                let address = uses.value();
                let words: SmallVec<[Value; 4]> = (0..count).map(|_| uses.value()).collect();
                for (n, &w) in words.iter().enumerate() {
                    self.tmu_write(magic::TMUD, w, cond, seq, (n == 0, false));
                }
                let byte = match self.own_memory(class) && test.is_none() {
                    true => self.load_config(ty, false),
                    false => config(15, ty),
                };
                self.tmu_start(byte, address, cond, seq, false);
                self.origin = Origin::Program;
                self.stores.0 |= class.0;
            }
            MInst::TmuAtomic { op, data, class, test } => {
                self.wait_for(class);
                if self.outstanding + 1 > 16 / self.frame.threads {
                    self.collect();
                }
                let cond = test.map(|t| self.test(&t, &mut uses));
                let seq = self.new_sequence(1);
                let address = uses.value();
                let words: SmallVec<[Value; 4]> = (0..data).map(|_| uses.value()).collect();
                for (n, &w) in words.iter().enumerate() {
                    self.tmu_write(magic::TMUD, w, cond, seq, (n == 0, false));
                }
                let ty = if data == 2 { TmuType::Vec2 } else { TmuType::Word };
                self.tmu_start(config(op, ty), address, cond, seq, data == 0);
                let to = defs.first().and_then(|d| if d.2 { None } else { Some(d.1) });
                self.pending.push(Pending {
                    seq,
                    dests: SmallVec::from_slice(&[to]),
                    origin: Origin::Program,
                    inst: i.0,
                });
                if matches!(to, Some(Loc::Acc(_))) {
                    self.collect();
                }
            }
            MInst::Texture { op, test } => self.texture(i, &op, test.as_ref(), &mut uses, &defs),
            MInst::Ballot { test, live } => {
                let cond = test.map(|t| self.test(&t, &mut uses));
                self.ballot(cond, live, def(&defs)?.1);
            }
            MInst::Rotate { by } => {
                let from = uses.next();
                self.rotate(from, by, def(&defs)?.1);
            }
            MInst::Broadcast { lane } => {
                let from = uses.next();
                let lane = uses.take(lane);
                self.broadcast(from, lane, def(&defs)?.1);
            }
            MInst::Varying { how } => {
                let w = (how == Interpolation::Smooth).then(|| uses.next());
                self.varying(how, w, def(&defs)?);
            }
            MInst::VertexOutput { op, src, test, .. } => {
                let cond = test.map(|t| self.test(&t, &mut uses));
                let s = [uses.take(src[0]), uses.take(src[1])];
                self.emit_part(under(Part::new(op, Dest::NOP, s[0], s[1]), cond));
            }
            MInst::RowRead { op, src } => {
                let s = [uses.take(src[0]), uses.take(src[1])];
                self.emit_part(Part::new(op, dest(def(&defs)?.1), s[0], s[1]));
            }
            MInst::VertexWait => {
                self.emit_part(Part::new(Op::Vpmwt, Dest::NOP, Source::None, Source::None));
            }
            MInst::SetSamples { src, test } => {
                let cond = test.map(|t| self.test(&t, &mut uses));
                let from = uses.take(src);
                self.emit_part(under(Part::new(Op::Setmsf, Dest::NOP, from, Source::None), cond));
            }
            MInst::MaskSamples => {
                let mask = uses.next();
                let (_, to, _) = def(&defs)?;
                self.emit_part(Part::new(Op::Msf, dest(to), Source::None, Source::None));
                self.emit_part(Part::new(Op::And, dest(to), source(to), mask));
                self.emit_part(Part::new(Op::Setmsf, Dest::NOP, source(to), Source::None));
            }
            MInst::Tlb { config, op, src, unpack, first } => {
                let s = [uses.take(src[0]), uses.take(src[1])];
                if first {
                    self.collect();
                    self.wait_for(MemClass(0xff));
                    // The last switch of the program is in this block, before the first write (reference 13.4).
                    if !self.ops.iter().any(UOp::is_switch) {
                        self.switch();
                    }
                }
                let to = if config.is_some() { magic::TLBU } else { magic::TLB };
                let part = Part { unpack, ..Part::new(op, Dest::Magic(to), s[0], s[1]) };
                let mut op = UOp::alu(part);
                op.kind = Kind::Tlb;
                op.uniform = config.map(|byte| UniformSource::Const(0xffff_ff00 | u32::from(byte)));
                self.emit(op);
            }
            MInst::TmuWait => self.wait_for(MemClass(0xff)),
            MInst::Barrier => {
                self.collect();
                let mut op =
                    UOp::alu(Part::new(Op::Barrierid, Dest::Magic(magic::SYNCB), Source::None, Source::None));
                op.kind = Kind::Barrier;
                self.emit(op);
                self.switch();
            }
            MInst::Branch { test, when } => {
                self.collect();
                let cond = self.test(&test, &mut uses);
                let succs = &p.blocks[block.0 as usize].succs;
                let [taken, next] = succs.as_slice() else {
                    return Err(FinishError::bug("a branch without two successors"));
                };
                return Ok(Some(Exit::Branch {
                    when,
                    inverted: cond == Cond::IfNa,
                    taken: taken.to,
                    next: next.to,
                }));
            }
            MInst::Jump => {
                self.collect();
                let succs = &p.blocks[block.0 as usize].succs;
                let [to] = succs.as_slice() else {
                    return Err(FinishError::bug("a jump without one successor"));
                };
                return Ok(Some(Exit::Jump(to.to)));
            }
            MInst::End => {
                self.collect();
                self.wait_for(MemClass(0xff));
                return Ok(Some(Exit::End));
            }
        }
        Ok(None)
    }
}

fn def(defs: &[(VReg, Loc, bool)]) -> Result<(VReg, Loc, bool), FinishError> {
    defs.first().copied().ok_or_else(|| FinishError::bug("an instruction without result"))
}

/// A use operand at its place.
#[derive(Clone, Copy, Debug)]
struct Value {
    source: Source,
    vreg: Option<VReg>,
}

struct Uses<'u> {
    list: &'u [Value],
    at: usize,
}

impl Uses<'_> {
    fn value(&mut self) -> Value {
        let v = self.list.get(self.at).copied().unwrap_or(Value { source: Source::None, vreg: None });
        self.at += 1;
        v
    }

    fn next(&mut self) -> Source {
        self.value().source
    }

    fn take(&mut self, s: Src) -> Source {
        match s {
            Src::None => Source::None,
            Src::Use => self.next(),
            Src::Imm(c) => Source::Small(c),
        }
    }
}
