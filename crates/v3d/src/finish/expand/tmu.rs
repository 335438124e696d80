//! Memory accesses: sequences of writes to the TMU, and results that are collected as late as the code allows
//! (reference 12.2).

use super::flags::Flags;
use super::{ACC_LOOKAHEAD, Expander, Pending, REGS, Uses, Value, reg};
use crate::finish::uop::{self, Kind, Origin, UOp, dest, mov, under};
use crate::instr::{Cond, Dest, Loc, Op, Part, Signals, Source, Version};
use crate::magic;
use crate::mops::{MInst, MemClass, Test, TextureOp, TmuType};
use kempe_mir::UniformSource;
use kempe_ra::{Inst, OperandKind, Point, VReg};

impl Expander<'_> {
    /// Collects every outstanding result.
    pub(super) fn collect(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.switch();
        let origin = self.origin;
        let inst = self.inst;
        for p in std::mem::take(&mut self.pending) {
            self.origin = p.origin;
            self.inst = p.inst;
            for d in p.dests {
                let to = d.map_or(Dest::NOP, dest);
                let mut op = UOp::signal(Signals::LDTMU, Some(to));
                op.kind = Kind::LdTmu { seq: p.seq };
                self.emit(op);
            }
        }
        self.origin = origin;
        self.inst = inst;
        self.outstanding = 0;
    }

    pub(super) fn switch(&mut self) {
        let mut op = UOp::alu(Part::NOP);
        op.kind = Kind::Switch;
        self.emit(op);
        self.flags = Flags::default();
        let index = self.ops.len() as u32;
        for k in 64..REGS {
            self.written[k] = index;
            self.holds[k] = None;
        }
    }

    /// Waits for the stores of a class, if some may be outstanding.
    pub(super) fn wait_for(&mut self, class: MemClass) {
        if self.stores.0 & class.0 != 0 {
            self.wait();
        }
    }

    pub(super) fn wait(&mut self) {
        self.collect();
        let mut op = UOp::alu(Part::new(Op::Tmuwt, Dest::NOP, Source::None, Source::None));
        op.kind = Kind::TmuWait;
        self.emit(op);
        self.stores = MemClass::default();
    }

    pub(super) fn new_sequence(&mut self, result_words: u32) -> u32 {
        let limit = 16 / self.frame.threads;
        if result_words > 0 && self.outstanding + result_words > limit {
            self.collect();
        }
        self.words.push(result_words);
        self.outstanding += result_words;
        self.words.len() as u32 - 1
    }

    /// A write to a TMU register: a move, or the operation that makes the value when nothing else wants it.
    pub(super) fn tmu_write(
        &mut self,
        to: u8,
        value: Value,
        cond: Option<Cond>,
        seq: u32,
        place: (bool, bool),
    ) {
        let mut op = self.fused(value).map_or_else(|| UOp::alu(mov(Dest::NOP, value.source)), UOp::alu);
        op.part.dest = Dest::Magic(to);
        op.part = under(op.part, cond);
        op.kind = Kind::TmuWrite { seq, first: place.0, last: place.1 };
        self.emit(op);
    }

    /// Takes back the operation that defined a value used only here, if it can run here instead.
    pub(super) fn fused(&mut self, value: Value) -> Option<Part> {
        let vreg = value.vreg?;
        let loc = uop::source_loc(value.source)?;
        if self.uses[vreg.0 as usize] != 1 || self.holds[reg(loc)] != Some(vreg) {
            return None;
        }
        let at = self.written[reg(loc)].checked_sub(1)?;
        let op = self.ops[at as usize];
        let movable = op.kind == Kind::Plain
            && op.origin == Origin::Program
            && op.signals.is_empty()
            && op.uniform.is_none()
            && op.rotate.is_none()
            && !op.part.op.reads_flag_a()
            && uop::is_plain(&op.part)
            && !op.part.op.is_sfu()
            // Rule 13; and what depends on the moment stays where it is.
            && !op.part.op.has_effect()
            && op.part.op != Op::Msf
            && op.part.op != Op::Umul24
            && op.part.op != Op::Multop;
        if !movable || op.reads().any(|l| self.written[reg(l)] > at) {
            return None;
        }
        self.ops[at as usize].part = Part::NOP;
        self.holds[reg(loc)] = None;
        Some(op.part)
    }

    /// Writes the address and starts the operation; the configuration byte 0xff needs no word of the stream.
    pub(super) fn tmu_start(&mut self, byte: u8, value: Value, cond: Option<Cond>, seq: u32, first: bool) {
        let (to, word) = start_register(byte);
        self.tmu_write(to, value, cond, seq, (first, true));
        if let Some(op) = self.ops.last_mut() {
            op.uniform = word;
        }
    }

    /// An access of the texture unit: configuration words, coordinates, data, then the S coordinate, which starts it.
    pub(super) fn texture(
        &mut self,
        i: Inst,
        op: &TextureOp,
        test: Option<&Test>,
        uses: &mut Uses<'_>,
        defs: &[(VReg, Loc, bool)],
    ) {
        let results = op.results as u32;
        if results > 0 {
            self.wait_for(op.class);
            if self.outstanding + results > 16 / self.frame.threads {
                self.collect();
            }
        }
        let cond = test.map(|t| self.test(t, uses));
        let seq = self.new_sequence(results);
        let s = uses.value();
        let words = [Some(op.p0), op.p1, op.p2.map(UniformSource::Const)];
        for (n, word) in words.into_iter().flatten().enumerate() {
            let mut op = UOp::signal(Signals::WRTMUC, None);
            op.uniform = Some(word);
            op.kind = Kind::TmuConfig { seq, first: n == 0 };
            self.emit(op);
        }
        // The lanes of the last write take part; what else was written in other lanes is not looked at, or is wanted of
        // whole quads.
        for to in op.coordinates.registers() {
            let value = uses.value();
            self.tmu_write(to, value, None, seq, (false, false));
        }
        for _ in 0..op.data {
            let value = uses.value();
            self.tmu_write(magic::TMUD, value, cond, seq, (false, false));
        }
        self.tmu_write(op.start.register(), s, cond, seq, (false, true));
        if op.writes {
            self.stores.0 |= op.class.0;
        }
        if results > 0 {
            self.pending.push(Pending {
                seq,
                dests: defs.iter().map(|d| if d.2 { None } else { Some(d.1) }).collect(),
                origin: Origin::Program,
                inst: i.0,
            });
            if defs.iter().any(|d| matches!(d.1, Loc::Acc(_))) {
                self.collect();
            }
        }
    }

    pub(super) fn is_pending(&self, l: Loc) -> bool {
        self.pending.iter().any(|p| p.dests.contains(&Some(l)))
    }

    /// Collects results if one of these registers waits for one, or if an accumulator is about to be written that
    /// the later switch would destroy.
    pub(super) fn before_access(&mut self, locs: &[Loc], writes_acc: bool) {
        if self.pending.is_empty() {
            return;
        }
        if writes_acc || locs.iter().any(|&l| self.is_pending(l)) {
            self.collect();
        }
    }

    /// The accumulator rule of 4.2 for the defs of an instruction: may collecting wait until after their last use?
    ///
    /// Nothing up to there may force the results to be collected. Instructions on the way may put values into
    /// accumulators themselves; the stretch then reaches to their last use too, so that the same question, asked again
    /// at each of them, has the same answer.
    pub(super) fn acc_defs_may_wait(&self, i: Inst) -> bool {
        if self.frame.version == Version::V71 || self.pending.is_empty() {
            return true;
        }
        let Some(last) = self.last_use_of_acc_defs(i.0) else { return true };
        let mut end = last;
        let mut j = i.0 + 1;
        if self.has_edit(i.0, 1) {
            return false;
        }
        while j <= end {
            if end == u32::MAX || end > i.0 + ACC_LOOKAHEAD {
                return false;
            }
            if let Some(more) = self.last_use_of_acc_defs(j) {
                end = end.max(more);
                if end > i.0 + ACC_LOOKAHEAD {
                    return false;
                }
            }
            let data = self.mir.data[j as usize];
            let quiet = matches!(
                data,
                MInst::Alu { .. } | MInst::Select { .. } | MInst::Mul32 { .. } | MInst::Uniform(_)
            ) || (j == end && matches!(data, MInst::TmuLoad { .. }));
            let touches = self.mir.program.insts[j as usize]
                .operands
                .clone()
                .any(|k| self.is_pending(self.loc(self.alloc.places[k as usize])));
            if !quiet || touches || self.has_edit(j, 0) || (j < end && self.has_edit(j, 1)) {
                return false;
            }
            if let MInst::TmuLoad { count, class, .. } = data
                && (self.outstanding + count as u32 > 16 / self.frame.threads || self.stores.0 & class.0 != 0)
            {
                return false;
            }
            j += 1;
        }
        true
    }

    /// Last instruction that uses a value which this one puts into an accumulator (`u32::MAX`: it lives on).
    pub(super) fn last_use_of_acc_defs(&self, i: u32) -> Option<u32> {
        let range = self.mir.program.insts[i as usize].operands.clone();
        range
            .filter(|&o| {
                self.mir.program.operands[o as usize].kind != OperandKind::Use
                    && matches!(self.loc(self.alloc.places[o as usize]), Loc::Acc(_))
            })
            .map(|o| self.last_use[self.mir.program.operands[o as usize].vreg.0 as usize])
            .max()
    }

    /// The allocator put something before (0) or after (1) an instruction.
    pub(super) fn has_edit(&self, i: u32, side: u32) -> bool {
        let key = |p: &Point| match p {
            Point::Before(i) => (i.0, 0),
            Point::After(i) => (i.0, 1),
        };
        self.alloc.edits.binary_search_by_key(&(i, side), |(p, _)| key(p)).is_ok()
    }
}

/// The register that starts a general access, and its word of the stream: 0xff needs none.
pub(super) fn start_register(byte: u8) -> (u8, Option<UniformSource>) {
    match byte {
        0xff => (magic::TMUA, None),
        _ => (magic::TMUAU, Some(UniformSource::Const(0xffff_ff00 | u32::from(byte)))),
    }
}

/// Only lanes with sample flags take part, not whole quads.
pub(super) const PER_PIXEL: u8 = 0x80;

/// The configuration byte of a general access: per pixel, operation, type (reference 12.2).
pub(super) fn config(op: u8, ty: TmuType) -> u8 {
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
    PER_PIXEL | op << 3 | ty
}
