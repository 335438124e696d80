//! The allocator's edits, and the spill area.

use super::{Expander, Frame, Pending, Value, reg, tmu};
use crate::finish::uop::{Kind, Origin, UOp, dest, mov, source};
use crate::instr::{Dest, Loc, Op, Pack, Part, Signals, Source, Unpack, Version};
use crate::magic;
use crate::mops::{MInst, MemClass, Src, TmuType};
use kempe_ir::UniformWord;
use kempe_mir::UniformSource;
use kempe_ra::{Edit, Unit};
use smallvec::SmallVec;

impl Expander<'_> {
    pub(super) fn slot_address(&mut self, slot: u32) -> Value {
        let base = source(self.frame.spill_base);
        if slot == 0 {
            return Value { source: base, vreg: None };
        }
        self.load_uniform(self.frame.spill_scratch, UniformSource::Const(64 * slot));
        Value { source: source(self.frame.spill_scratch), vreg: None }
    }

    pub(super) fn start_at_slot(&mut self, slot: u32, seq: u32, first: bool) {
        let address = self.slot_address(slot);
        self.open_slot(slot, address, seq, first);
    }

    /// Starts an access of a slot: of all lanes of a batch, helpers too.
    fn open_slot(&mut self, slot: u32, address: Value, seq: u32, first: bool) {
        let byte = self.load_config(TmuType::Word, false);
        if slot == 0 {
            self.tmu_start(byte, address, None, seq, first);
            return;
        }
        let (to, word) = tmu::start_register(byte);
        let base = source(self.frame.spill_base);
        let mut op = UOp::alu(Part::new(Op::Add, Dest::Magic(to), base, address.source));
        op.uniform = word;
        op.kind = Kind::TmuWrite { seq, first, last: true };
        self.emit(op);
    }

    pub(super) fn edit(&mut self, e: Edit) {
        let touches = |this: &Self, u: Unit| this.is_pending(this.loc(u));
        // What an edit reads must stay where it is: its definition cannot move to a TMU register any more.
        match e {
            Edit::Copy { from, .. } | Edit::Spill { from, .. } => {
                let from = self.loc(from);
                self.holds[reg(from)] = None;
            }
            Edit::Repeat { from, .. } => {
                for from in from.map(|unit| self.loc(unit)) {
                    self.holds[reg(from)] = None;
                }
            }
            _ => {}
        }
        match e {
            Edit::Copy { from, to } => {
                let (from, to) = (self.loc(from), self.loc(to));
                self.before_access(&[from, to], matches!(to, Loc::Acc(_)));
                self.origin = Origin::Copy;
                self.emit_part(mov(dest(to), source(from)));
            }
            Edit::Swap { a, b } => {
                if touches(self, a) || touches(self, b) {
                    self.collect();
                }
                let (a, b) = (self.loc(a), self.loc(b));
                if matches!(a, Loc::Acc(_)) || matches!(b, Loc::Acc(_)) {
                    self.collect();
                }
                self.origin = Origin::Copy;
                // The scheduler sees three exclusive-ors; nothing else is free for sure.
                for (d, s) in [(a, b), (b, a), (a, b)] {
                    self.emit_part(Part::new(Op::Xor, dest(d), source(d), source(s)));
                }
            }
            Edit::Spill { from, slot } => {
                let from = self.loc(from);
                self.before_access(&[from, self.frame.spill_scratch], false);
                self.origin = Origin::Spill;
                let seq = self.new_sequence(0);
                // The slot's address word must be there before the sequence opens.
                let address = self.slot_address(slot.0);
                self.tmu_write(
                    magic::TMUD,
                    Value { source: source(from), vreg: None },
                    None,
                    seq,
                    (true, false),
                );
                self.open_slot(slot.0, address, seq, false);
                self.stores.0 |= MemClass::SPILL.0;
            }
            Edit::Fill { slot, to } => {
                let to = self.loc(to);
                self.before_access(&[to, self.frame.spill_scratch], matches!(to, Loc::Acc(_)));
                self.wait_for(MemClass::SPILL);
                self.origin = Origin::Fill;
                let seq = self.new_sequence(1);
                self.start_at_slot(slot.0, seq, true);
                self.pending.push(Pending {
                    seq,
                    dests: SmallVec::from_slice(&[Some(to)]),
                    origin: Origin::Fill,
                    inst: self.inst,
                });
                // A collected fill must not wait behind a switch that its own target would not survive.
                if matches!(to, Loc::Acc(_)) {
                    self.collect();
                }
            }
            Edit::Recompute { recipe, to } => {
                let to = self.loc(to);
                self.before_access(&[to], matches!(to, Loc::Acc(_)));
                self.origin = Origin::Recompute;
                let what = self.mir.recipes.get(recipe.0 as usize).copied();
                self.recompute(what, to);
            }
            Edit::Repeat { inst, from, to } => {
                let (from, to) = (from.map(|unit| self.loc(unit)), self.loc(to));
                self.before_access(&[from[0], from[1], to], matches!(to, Loc::Acc(_)));
                self.origin = Origin::Recompute;
                self.repeat(self.mir.data[inst.0 as usize], from, to);
            }
        }
        self.origin = Origin::Program;
    }

    /// An operation ([`MInst::repeat_cost`]) once more, its uses in `from`.
    fn repeat(&mut self, what: MInst, from: [Loc; 2], to: Loc) {
        let MInst::Alu { op, pack, src, unpack, test: None } = what else {
            self.bad_recipe = true;
            return;
        };
        let mut places = from.into_iter();
        let src = src.map(|s| match s {
            Src::None => Source::None,
            Src::Use => places.next().map_or(Source::None, source),
            Src::Imm(c) => Source::Small(c),
        });
        let part = Part { op, dest: dest(to), pack, src, unpack, cond: None, push: None, update: None };
        self.alu(part, to);
        self.holds[reg(to)] = None;
    }

    /// An operation into `to`, unless it would move a register onto itself; says whether there was anything to do.
    pub(super) fn alu(&mut self, mut part: Part, to: Loc) -> bool {
        // Rule 9: `fmax x, x` has no operand order that encodes it; the smaller of x and x is the same.
        if part.op == Op::Fmax && part.src[0] == part.src[1] && part.unpack[0] == part.unpack[1] {
            part.op = Op::Fmin;
        }
        let is_move = (part.op == Op::Mov || part.op == Op::Fmov)
            && part.pack == Pack::None
            && part.unpack[0] == Unpack::None
            && part.src[0] == source(to);
        if !is_move {
            self.emit_part(part);
        }
        !is_move
    }

    /// Emits a recipe: the definition it names, once more.
    pub(super) fn recompute(&mut self, what: Option<MInst>, to: Loc) {
        match what {
            Some(MInst::Uniform(word)) => self.load_uniform(to, word),
            Some(MInst::Read { address, .. }) => {
                self.side_address(address);
                self.side_word(to);
            }
            Some(MInst::Alu { op, src, .. }) => {
                let s = |s: Src| match s {
                    Src::Imm(c) => Source::Small(c),
                    _ => Source::None,
                };
                self.emit_part(Part::new(op, dest(to), s(src[0]), s(src[1])));
            }
            _ => self.bad_recipe = true,
        }
    }

    /// The base of the spill area of this lane, once at the start: thread * bytes + lane * 4 + address.
    pub fn spill_base_setup(frame: &Frame) -> Vec<UOp> {
        let base = frame.spill_base;
        // A per-lane temporary: on 4.2 r5 holds one value per quad only, and no accumulator is in use yet.
        let temp = match frame.version {
            Version::V42 => Loc::Acc(0),
            Version::V71 => frame.spill_scratch,
        };
        let word = Loc::uniform(frame.version);
        let ldunif = |w: UniformSource| {
            let mut op = UOp::signal(Signals::LDUNIF, None);
            op.uniform = Some(w);
            op
        };
        let alu = |op: Op, d: Loc, a: Source, b: Source| UOp::alu(Part::new(op, dest(d), a, b));
        let mut ops = vec![
            alu(Op::Tidx, base, Source::None, Source::None),
            ldunif(UniformSource::Word(UniformWord::ScratchBytesPerThread, 0)),
            alu(Op::Umul24, base, source(base), source(word)),
            alu(Op::Eidx, temp, Source::None, Source::None),
            alu(Op::Shl, temp, source(temp), Source::Small(2)),
            alu(Op::Add, base, source(base), source(temp)),
            ldunif(UniformSource::Word(UniformWord::ScratchAddr, 16 * frame.private_bytes)),
            alu(Op::Add, base, source(base), source(word)),
        ];
        for op in &mut ops {
            op.origin = Origin::Spill;
        }
        ops
    }
}
