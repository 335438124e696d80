//! The two parts of an instruction: conditions, sources, results, flags.

use super::{Cause, Machine, Thread, Trouble, Value, Write, whole_quads};
use crate::instr::{Pack, Push, Signals, Unpack, Version};
use crate::magic;
use crate::ops::Op;
use crate::sim::alu::{self, mask};
use crate::sim::code::{ACC, ALL, Code, Flags, From, Half, Micro, Origin, R4, R5, Step, To};
use crate::sim::{LANES, Lanes, Mask};

impl Thread {
    pub(super) fn alu(
        &mut self,
        op: &Micro,
        code: &Code,
        m: &mut Machine,
        sfu_row: u8,
    ) -> Result<(), Trouble> {
        self.check_late(op)?;
        if sfu_row != 255 && reads(op, sfu_row) {
            self.stalls += 1;
        }
        // Everything is read and computed before anything is written.
        let add = if op.add.is_idle() { None } else { Some(self.part(&op.add, 0, None)?) };
        let mul = if op.mul.is_idle() { None } else { Some(self.part(&op.mul, 1, op.rotate)?) };
        let (mut a, mut b) = ((self.a, self.a_poison), (self.b, self.b_poison));
        for (half, done) in [(&op.add, &add), (&op.mul, &mul)] {
            let Some((write, flag)) = done else { continue };
            if half.flags != Flags::Keep {
                if write.value.poison != 0 {
                    self.flag_cause = write.value.cause;
                } else if flag.1 != 0 {
                    self.flag_cause = Cause::Unsettled;
                }
            }
            match half.flags {
                Flags::Keep => {}
                Flags::Push(_) => {
                    b = (self.a, self.a_poison);
                    a = *flag;
                }
                Flags::Update(update) => a = combine(update as u8, (self.a, self.a_poison), *flag),
            }
        }
        let signal = if op.signals.is_empty() { None } else { self.signals(op.signals, code, m)? };
        for (half, done) in [(&op.add, &add), (&op.mul, &mul)] {
            if let Some((write, _)) = done {
                self.deliver(half.op, half.to, half.pack, write, code, m)?;
            }
        }
        if let Some(value) = signal {
            let write = Write { value, lanes: ALL, maybe: 0, flag_cause: Cause::Never, origin: None };
            self.deliver(Op::Nop, op.sig_to, Pack::None, &write, code, m)?;
        }
        if let Some(r) = op.clash {
            self.set_poison(r, ALL, Cause::Clash);
        }
        (self.a, self.a_poison) = a;
        (self.b, self.b_poison) = b;
        if code.version == Version::V71 {
            self.track_rf0(op);
        }
        Ok(())
    }

    /// Rule 23: r4 must be left alone right after a special function was started by a magic write.
    fn check_late(&self, op: &Micro) -> Result<(), Trouble> {
        if self.late.is_none() {
            return Ok(());
        }
        let touches = |to: To| matches!(to, To::Register(R4) | To::Magic(magic::RECIP..=magic::RSQRT2));
        if reads(op, R4) || touches(op.add.to) || touches(op.mul.to) || touches(op.sig_to) {
            return Err(Trouble::new("23", "r4 used right after a special function was started"));
        }
        Ok(())
    }

    /// Rule 44: with the depth the sample flags are handed over to the tile buffer.
    pub(super) fn check_handed_over(&mut self) -> Result<(), Trouble> {
        match self.fragment() {
            Some(f) if f.tile.z_written => Err(Trouble::new("44", "sample flags used after the Z write")),
            _ => Ok(()),
        }
    }

    /// The coefficient of a varying has been written beside what the instruction itself did (rule 36).
    pub(in crate::sim) fn note_implicit_rf0(&mut self, step: &Step) {
        self.rf0_conflict = matches!(step, Step::Alu(op) if matches!(op.sig_to, To::Register(_)));
    }

    fn track_rf0(&mut self, op: &Micro) {
        let writes = |to: To| matches!(to, To::Register(0) | To::Magic(magic::QUAD | magic::REP));
        if op.signals.has(Signals::LDUNIF | Signals::LDUNIFA) {
            self.rf0_conflict = matches!(op.sig_to, To::Register(_));
        } else if writes(op.add.to) || writes(op.mul.to) || writes(op.sig_to) {
            self.rf0_conflict = false;
        }
    }

    /// Computes one part: its result and the flag that it pushes or updates with.
    fn part(&mut self, half: &Half, unit: u8, rotate: Option<u8>) -> Result<(Write, (Mask, Mask)), Trouble> {
        let mut sources = [0, 1].map(|i| self.read(half.from[i], half.unpack[i]));
        if let Some(count) = rotate {
            self.rotate_sources(half, count, &mut sources)?;
        }
        for (source, how) in sources.iter_mut().zip(half.unpack) {
            if how != Unpack::None {
                match alu::unpack(how, &source.v) {
                    Some(v) => source.v = v,
                    None => {
                        source.poison = ALL;
                        source.cause = Cause::Unsettled;
                    }
                }
            }
        }
        if half.quarter_turn {
            sources[0].v = alu::quarter_turn(&sources[0].v);
        }
        let (lanes, maybe) = self.lanes(half.cond);
        let [a, b] = &sources;
        let mut cause = if a.poison != 0 { a.cause } else { b.cause };
        let (v, mut poison) = match alu::pure(half.op, &a.v, &b.v, a.poison, b.poison) {
            // Whatever a register holds, it holds it for both sources.
            Some((v, _)) if half.cancels() => (v, 0),
            Some(result) => result,
            None => match self.impure(half.op, a, b, lanes, maybe)? {
                (v, poison, Some(why)) => {
                    cause = why;
                    (v, poison)
                }
                (v, poison, None) => (v, poison),
            },
        };
        if poison != 0 && half.op == Op::And {
            // A known zero decides.
            poison &=
                !mask(|i| a.poison >> i & 1 == 0 && a.v[i] == 0 || b.poison >> i & 1 == 0 && b.v[i] == 0);
        }
        let mut origin = None;
        if poison != 0 && rotate.is_none() && half.origin() != Origin::New {
            poison &= !self.name_result(half, unit, a.poison, b.poison);
            origin = Some(unit);
        }
        let flag = match half.flags {
            Flags::Keep => (0, 0),
            Flags::Push(which) => self.flag(half, which, a, b, &v, poison),
            Flags::Update(update) => self.flag(half, update.flag(), a, b, &v, poison),
        };
        let value = Value { v, poison, cause };
        Ok((Write { value, lanes, maybe, flag_cause: self.flag_cause, origin }, flag))
    }

    /// Names the unknowns of a result; returns the lanes in which they cancel each other.
    #[cold]
    fn name_result(&mut self, half: &Half, unit: u8, pa: Mask, pb: Mask) -> Mask {
        let of = |from: From, poison: Mask, i: usize| match from {
            From::Register(r) if poison >> i & 1 != 0 => self.origin[r as usize][i],
            _ => 0,
        };
        let both = half.origin() == Origin::Xor;
        let names =
            std::array::from_fn(|i| of(half.from[0], pa, i) ^ if both { of(half.from[1], pb, i) } else { 0 });
        self.result_origin[usize::from(unit)] = names;
        mask(|i| names[i] == 0)
    }

    fn flag(&self, half: &Half, which: Push, a: &Value, b: &Value, v: &Lanes, poison: Mask) -> (Mask, Mask) {
        let (bits, unknown) = alu::flag(half.op, half.pack, which, &a.v, &b.v, v);
        (bits, unknown | poison)
    }

    /// 4.2: the rotate signal turns the inputs of the MUL part (section 8.5).
    fn rotate_sources(&self, half: &Half, code: u8, sources: &mut [Value; 2]) -> Result<(), Trouble> {
        let count = match code {
            0 => {
                let r5 = &self.read(From::Register(R5), Unpack::None);
                if r5.poison & 1 != 0 {
                    return Err(Trouble::poison(r5.cause, 1, "the count of a rotation"));
                }
                r5.v[0] as i32
            }
            1..=15 => i32::from(code),
            16..=31 => i32::from(code) - 32,
            _ => return Err(Trouble::new("8", "invalid rotation count")),
        };
        for (source, from) in sources.iter_mut().zip(half.from) {
            // A constant is the same in all lanes.
            if let From::Register(r) = from {
                (source.v, source.poison) = alu::rotate(&source.v, source.poison, count, r >= ACC);
            }
        }
        Ok(())
    }

    /// Operations that need the thread's state. The cause is given when it is not that of the sources.
    fn impure(
        &mut self,
        op: Op,
        a: &Value,
        b: &Value,
        lanes: Mask,
        maybe: Mask,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let of_mask =
            |bits: Mask, one: u32| std::array::from_fn(|i| if bits >> i & 1 != 0 { one } else { 0 });
        let flags = |bits: Mask, poison: Mask| (of_mask(bits, 0x1_0001), poison, Some(self.flag_cause));
        let push = |bits: Mask, poison: Mask| {
            let v = std::array::from_fn(|i| a.v[i] << 2 | if bits >> i & 1 != 0 { 3 } else { 0 });
            (v, a.poison | poison, (a.poison == 0).then_some(self.flag_cause))
        };
        Ok(match op {
            Op::Nop => ([0; LANES], ALL, Some(Cause::Unsettled)),
            Op::Tidx => ([self.tidx; LANES], 0, None),
            Op::Eidx => (std::array::from_fn(|i| i as u32), 0, None),
            Op::Lr => match self.link {
                Some(address) => ([address; LANES], 0, None),
                None => ([0; LANES], ALL, Some(Cause::Never)),
            },
            Op::Vfla => flags(self.a, self.a_poison),
            Op::Vflna => flags(!self.a, self.a_poison),
            Op::Vflb => flags(self.b, self.b_poison),
            Op::Vflnb => flags(!self.b, self.b_poison),
            Op::Flapush => push(self.a, self.a_poison),
            Op::Flbpush => push(self.b, self.b_poison),
            Op::Flafirst | Op::Flnafirst => {
                let bits = if op == Op::Flafirst { self.a } else { !self.a };
                let first = bits & bits.wrapping_neg();
                (of_mask(first, 1), if self.a_poison != 0 { ALL } else { 0 }, Some(self.flag_cause))
            }
            Op::Msf => {
                self.check_handed_over()?;
                (self.sample_flags.map(u32::from), 0, None)
            }
            Op::Setmsf => {
                self.check_handed_over()?;
                // Where the flags are what they shall become, it does not matter whether the lane takes part.
                let maybe =
                    maybe & mask(|i| a.poison >> i & 1 != 0 || a.v[i] as u8 & 0xf != self.sample_flags[i]);
                if a.poison & (lanes | maybe) != 0 {
                    return Err(Trouble::poison(a.cause, a.poison & (lanes | maybe), "the new sample flags"));
                }
                if maybe != 0 {
                    return Err(Trouble::poison(self.flag_cause, maybe, "the condition of setmsf"));
                }
                let flags = &self.sample_flags;
                let raised = lanes & mask(|i| a.v[i] as u8 & 0xf & !flags[i] != 0);
                if raised != 0 && self.stage.is_some() {
                    let message = "setmsf sets sample flags that the lane does not have";
                    return Err(Trouble::lane("undefined", raised.trailing_zeros(), message));
                }
                for i in 0..LANES {
                    if lanes >> i & 1 != 0 {
                        self.sample_flags[i] = a.v[i] as u8 & 0xf;
                    }
                }
                self.covered = mask(|i| self.sample_flags[i] != 0);
                (a.v, 0, None)
            }
            Op::Vpmwt => {
                self.vpm_wait();
                ([0; LANES], ALL, Some(Cause::Unsettled))
            }
            Op::LdvpmvIn | Op::LdvpmvOut | Op::LdvpmdIn | Op::LdvpmdOut => {
                self.vpm_read(op, a, lanes, maybe)?
            }
            Op::LdvpmgIn | Op::LdvpmgOut | Op::Ldvpmp => self.patch_read(op, [a, b], lanes | maybe)?,
            Op::Stvpmp => {
                let cause = self.flag_cause;
                self.patch_write([a, b], lanes, maybe, cause)?
            }
            Op::Iid => match self.invocation() {
                Some(numbers) => (numbers, 0, None),
                None => return Err(not_modelled(op)),
            },
            Op::Stvpmv | Op::Stvpmd => {
                let cause = self.flag_cause;
                self.vpm_write(op, a, b, lanes, maybe, cause)?
            }
            Op::Setrevf => {
                let Some(fragment) = self.fragment() else { return Err(not_modelled(op)) };
                fragment.set_facing(&a.v, a.poison, lanes, maybe);
                (a.v, a.poison, None)
            }
            Op::Fxcd | Op::Fycd | Op::Xcd | Op::Ycd | Op::Revf | Op::Sampid => {
                let given = self.fragment().and_then(|f| f.query(op));
                given.ok_or_else(|| not_modelled(op))?
            }
            // The number itself is of no use but for syncb.
            Op::Barrierid => ([self.supergroup as u32 & 0x3f; LANES], 0, None),
            Op::Tmuwt => {
                self.tmu.wait();
                ([0; LANES], ALL, Some(Cause::Unsettled))
            }
            Op::Multop => {
                for i in 0..LANES {
                    let (x, y) = (a.v[i], b.v[i]);
                    let cross = (x >> 24)
                        .wrapping_mul(y & 0xff_ffff)
                        .wrapping_add((x & 0xff_ffff).wrapping_mul(y >> 24));
                    self.rtop[i] = cross << 24;
                }
                // Whether masked lanes keep the old contents is not known.
                self.rtop_poison = a.poison | b.poison | !lanes;
                self.rtop_pending = true;
                self.rtop_lost = false;
                (self.rtop, ALL, Some(Cause::Unsettled))
            }
            Op::Umul24 => {
                if self.rtop_lost {
                    return Err(Trouble::new("46", "umul24 after a thread switch that followed a multop"));
                }
                let v = std::array::from_fn(|i| {
                    (a.v[i] & 0xff_ffff).wrapping_mul(b.v[i] & 0xff_ffff).wrapping_add(self.rtop[i])
                });
                let poison = a.poison | b.poison | self.rtop_poison;
                let cause = ((a.poison | b.poison) == 0).then_some(Cause::Unsettled);
                if self.rtop_pending || self.rtop_poison != 0 {
                    // Cleared in the lanes that took part; nothing is known of the others.
                    self.rtop_poison = !lanes;
                    self.rtop = [0; LANES];
                    self.rtop_pending = false;
                }
                (v, poison, cause)
            }
            Op::Ballot | Op::Bcastf | Op::Alleq | Op::Allfeq => self.across(op, a, lanes, maybe)?,
            // The result or part of it is not settled; using it stops the run.
            Op::V11fpack | Op::Ftoc => ([0; LANES], ALL, Some(Cause::Unsettled)),
            Op::Funpackunormlo | Op::Funpackunormhi | Op::Funpacksnormlo | Op::Funpacksnormhi => {
                ([0; LANES], ALL, Some(Cause::Unsettled))
            }
            _ => return Err(not_modelled(op)),
        })
    }

    /// 7.1 operations over the participating lanes: those that the condition selects and that belong to a quad with
    /// a sample flag (section 6.5).
    fn across(
        &self,
        op: Op,
        a: &Value,
        lanes: Mask,
        maybe: Mask,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let active = whole_quads(self.covered);
        let lanes = lanes & active;
        if maybe & active != 0 {
            return Ok(([0; LANES], ALL, Some(self.flag_cause)));
        }
        if a.poison & lanes != 0 {
            return Ok(([0; LANES], ALL, None));
        }
        let mut taking_part = (0..LANES).filter(|i| lanes >> i & 1 != 0);
        let word = match op {
            Op::Ballot => u32::from(lanes & mask(|i| a.v[i] != 0)),
            Op::Bcastf => match taking_part.next() {
                Some(first) => a.v[first],
                None => return Ok(([0; LANES], ALL, Some(Cause::Unsettled))),
            },
            _ => match taking_part.next() {
                Some(first) => {
                    let equal = |x: u32, y: u32| match op {
                        Op::Alleq => x == y,
                        _ => f32::from_bits(x) == f32::from_bits(y),
                    };
                    u32::from(taking_part.all(|i| equal(a.v[first], a.v[i])))
                }
                None => return Ok(([0; LANES], ALL, Some(Cause::Unsettled))),
            },
        };
        Ok(([word; LANES], 0, None))
    }
}

#[cold]
fn not_modelled(op: Op) -> Trouble {
    Trouble::new("unsupported", format!("{} is not modelled here", op.name()))
}

/// Whether an instruction reads a register as a source.
fn reads(op: &Micro, r: u8) -> bool {
    let from = From::Register(r);
    op.add.from[0] == from || op.add.from[1] == from || op.mul.from[0] == from || op.mul.from[1] == from
}

/// A flag update (section 7.1): codes 4 to 15 are, four for each of Z, N, C: and, and not, nor not, nor. The result is
/// known where one side alone decides it.
fn combine(code: u8, a: (Mask, Mask), flag: (Mask, Mask)) -> (Mask, Mask) {
    let negate = matches!(code & 3, 1 | 2);
    let flag = if negate { (!flag.0, flag.1) } else { flag };
    if code & 3 < 2 {
        let decided = !a.0 & !a.1 | !flag.0 & !flag.1;
        (a.0 & flag.0, (a.1 | flag.1) & !decided)
    } else {
        let decided = a.0 & !a.1 | flag.0 & !flag.1;
        (!(a.0 | flag.0), (a.1 | flag.1) & !decided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_follow_the_table() {
        // Lanes: A and flag take all four combinations.
        let (a, f) = (0b1100, 0b1010);
        let of = |code| combine(code, (a, 0), (f, 0)).0 & 0xf;
        assert_eq!([of(4), of(5), of(6), of(7)], [0b1000, 0b0100, 0b0010, 0b0001]);
        // Poison only where the other side does not decide.
        assert_eq!(combine(4, (a, 0), (0, 0xf)), (0, 0b1100));
        assert_eq!(combine(7, (a, 0), (0, 0xf)).1 & 0xf, 0b0011);
    }
}
