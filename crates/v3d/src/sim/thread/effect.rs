//! What an instruction does beside computing: uniform streams, signals, writes to registers and peripherals, branches.

use super::Cause;
use super::{Machine, Thread, Trouble, Value, Write, halves, moved, whole_quads};
use crate::instr::{
    Branch, BranchCond, BranchTarget, MsfIgnore, Pack, Signals, UniformMove, Unpack, Version,
};
use crate::magic;
use crate::ops::Op;
use crate::sim::alu::{self, blend, blend_packed, mask};
use crate::sim::code::{ALL, Code, From, To, register_name, uniform_register};
use crate::sim::{LANES, Mask, model, rules};

impl Thread {
    /// The next word of the uniform stream.
    fn next_uniform(&mut self, code: &Code, m: &Machine) -> Result<u32, Trouble> {
        let word = m.uniform_word(code, self.uniform)?;
        self.uniform = moved(self.uniform, 4);
        Ok(word)
    }

    /// The next word of the side band, three instructions after its address was written at the earliest (rule 26).
    fn next_side(&mut self, m: &Machine) -> Result<u32, Trouble> {
        let Some(address) = self.side else {
            return Err(Trouble::new("undefined", "ldunifa before any write of unifa"));
        };
        if self.clock - self.side_since < 4 {
            return Err(Trouble::new(
                "26",
                format!("ldunifa {} instructions after the write of unifa", self.clock - self.side_since),
            ));
        }
        if address % 4 != 0 {
            return Err(Trouble::new("69", format!("unaligned side-band address {address:#x}")));
        }
        let memory = m.snapshot.as_ref().unwrap_or(m.memory);
        let word = memory.read_u32(address).map_err(|f| Trouble::new("memory", f.to_string()))?;
        self.side = Some(address.wrapping_add(4));
        Ok(word)
    }

    /// What the signals deliver, but for the addressed value, which is returned.
    pub(super) fn signals(
        &mut self,
        signals: Signals,
        code: &Code,
        m: &mut Machine,
    ) -> Result<Option<Value>, Trouble> {
        let mut addressed = None;
        if signals.has(Signals::LDVARY | Signals::LDTLB | Signals::LDTLBU | Signals::UCB) {
            addressed = self.graphics_signals(signals, code, m)?;
        }
        if signals.has(Signals::LDTMU) {
            addressed = Some(self.tmu.collect()?);
        }
        if signals.has(Signals::LDUNIF | Signals::LDUNIFA) {
            let word =
                if signals.has(Signals::LDUNIF) { self.next_uniform(code, m)? } else { self.next_side(m)? };
            self.set(uniform_register(code.version), [word; LANES]);
        }
        if signals.has(Signals::LDUNIFRF) {
            addressed = Some(Value::splat(self.next_uniform(code, m)?));
        }
        if signals.has(Signals::LDUNIFARF) {
            addressed = Some(Value::splat(self.next_side(m)?));
        }
        if signals.has(Signals::WRTMUC) {
            let word = self.next_uniform(code, m)?;
            self.tmu.config_word(word);
        }
        Ok(addressed)
    }

    /// Signals of graphics.
    #[cold]
    fn graphics_signals(
        &mut self,
        signals: Signals,
        code: &Code,
        m: &mut Machine,
    ) -> Result<Option<Value>, Trouble> {
        if signals.has(Signals::UCB) {
            return Err(Trouble::new("unsupported", "the signal ucb is not modelled"));
        }
        Ok(Some(if signals.has(Signals::LDVARY) {
            self.next_varying()?
        } else if signals.has(Signals::LDTLBU) {
            let word = self.next_uniform(code, m)?;
            self.tile_read(Some(word))?
        } else {
            self.tile_read(None)?
        }))
    }

    /// Writes a result to where it goes.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        op: Op,
        to: To,
        pack: Pack,
        write: &Write,
        code: &Code,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        match to {
            To::Nowhere => Ok(()),
            To::Register(r) => {
                self.write_register(r, pack, write);
                if op.is_sfu() {
                    self.sfu_row = r;
                }
                Ok(())
            }
            To::Magic(n) => self.magic(n, pack, write, code, m),
        }
    }

    #[inline]
    fn write_register(&mut self, r: u8, pack: Pack, write: &Write) {
        let r = r as usize;
        let mut decided = *write;
        if write.maybe != 0 && pack == Pack::None {
            // Written or not, a lane that holds the value already holds it afterwards.
            let known = !(write.value.poison | self.poison[r] as Mask | (self.poison[r] >> 16) as Mask);
            let same = mask(|i| self.regs[r][i] == write.value.v[i]);
            decided.maybe &= !(known & same);
        }
        let write = &decided;
        let lanes = write.lanes;
        if pack == Pack::None {
            blend(&mut self.regs[r], &write.value.v, lanes);
            self.poison[r] =
                self.poison[r] & !halves(lanes) | halves(write.value.poison & lanes | write.maybe);
        } else {
            // The half that is kept stays poison if it was.
            blend_packed(&mut self.regs[r], &write.value.v, lanes, pack);
            let half = if pack == Pack::H { 0xffff_0000 } else { 0xffff };
            let new = halves(write.value.poison & lanes | write.maybe) & half;
            self.poison[r] = self.poison[r] & !(halves(lanes) & half) | new;
            if self.poison[r] != 0 {
                // With one half changed it is another unknown.
                self.origin[r] = self.new_unknowns();
            }
        }
        if (write.value.poison & lanes) | write.maybe != 0 {
            self.note_poison(r, pack, write);
        }
    }

    /// Keeps why a register is poison, and the name of what is not known.
    #[cold]
    fn note_poison(&mut self, r: usize, pack: Pack, write: &Write) {
        let lanes = write.value.poison & write.lanes;
        self.cause[r] = if lanes != 0 { write.value.cause } else { write.flag_cause };
        let new = self.new_unknowns();
        blend(&mut self.origin[r], &new, lanes | write.maybe);
        if let Some(unit) = write.origin
            && pack == Pack::None
        {
            let names = self.result_origin[usize::from(unit)];
            blend(&mut self.origin[r], &names, lanes & !write.maybe);
        }
    }

    fn magic(
        &mut self,
        n: u8,
        pack: Pack,
        write: &Write,
        code: &Code,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let mut write = *write;
        if pack != Pack::None {
            // What the other half is without a register to keep it in is not known.
            write.value.poison = ALL;
            write.value.cause = Cause::Unsettled;
        }
        let value = &write.value;
        match n {
            magic::QUAD | magic::REP => {
                let source = |i: usize| if n == magic::QUAD { i & !3 } else { 0 };
                let (v, mut poison) = alu::gather(&value.v, value.poison, |i| (source(i), false));
                if write.lanes != ALL {
                    // Which lanes a condition then selects is not known.
                    poison = ALL;
                }
                let cause = if write.lanes == ALL { value.cause } else { Cause::Unsettled };
                let r = uniform_register(code.version);
                self.set(r, v);
                self.set_poison(r, poison, cause);
            }
            magic::UNIFA => {
                if value.poison & 1 != 0 {
                    return Err(Trouble::poison(value.cause, 1, "the side-band address"));
                }
                self.side = Some(value.v[0]);
                self.side_since = self.clock;
            }
            magic::SYNCB => {
                if self.barrier {
                    return Err(Trouble::new("60", "second barrier before a thread switch"));
                }
                if value.poison & 1 != 0 {
                    return Err(Trouble::poison(value.cause, 1, "the barrier number"));
                }
                if self.tmu.outstanding() != 0 {
                    m.warn(self, "60b", "TMU results are outstanding at a barrier".to_owned());
                }
                if m.options.strict && self.tmu.has_unwaited_stores() {
                    m.warn(self, "60b", "a store has not been waited for at a barrier".to_owned());
                }
                self.barrier = true;
            }
            magic::RECIP..=magic::RSQRT2 if code.version == Version::V42 => {
                let op = [Op::Recip, Op::Rsqrt, Op::Exp, Op::Log, Op::Sin, Op::Rsqrt2]
                    [usize::from(n - magic::RECIP)];
                let argument = if op == Op::Sin { alu::quarter_turn(&value.v) } else { value.v };
                let v = model::special(op, &argument);
                let cause = if write.lanes == ALL { value.cause } else { Cause::Unsettled };
                self.late_next = Some(Value { v, poison: value.poison | !write.lanes, cause });
            }
            magic::TMUC => {
                let word = equal_lanes(value, "the TMU configuration", "54")?;
                self.tmu.set_config(word);
            }
            magic::TMUD | magic::TMUDREF | magic::TMUOFF | magic::TMUT..=magic::TMUB => {
                self.tmu.operand(n, &write)?;
            }
            magic::TLB => self.tile_write(&write, None)?,
            magic::TLBU => {
                let word = self.next_uniform(code, m)?;
                self.tile_write(&write, Some(word))?;
            }
            magic::TMUS | magic::TMUSCM | magic::TMUSLOD => self.lookup_start(n, &write, m)?,
            magic::TMUSF => self.texture_start(&write, m)?,
            magic::TMUA => self.tmu_start(&write, m)?,
            magic::TMUAU => {
                let word = self.next_uniform(code, m)?;
                self.tmu.set_config(word);
                self.tmu_start(&write, m)?;
            }
            _ => {
                return Err(match magic::name(code.version, n) {
                    Some(name) => Trouble::new("unsupported", format!("writing {name} is not modelled")),
                    None => Trouble::new("12", format!("write to reserved address {n}")),
                });
            }
        }
        Ok(())
    }

    /// The address in a row, which all lanes must agree on (rule 66).
    fn row_address(&self, row: u8) -> Result<u32, Trouble> {
        let value = self.read(From::Register(row & 63), Unpack::None);
        equal_lanes(&value, &format!("the address in {}", register_name(row & 63)), "66")
    }

    pub(super) fn branch(&mut self, branch: &Branch, code: &Code, m: &mut Machine) -> Result<(), Trouble> {
        if self.switch_in != 0 {
            return Err(Trouble::new("38", "branch in a delay slot of a thread switch"));
        }
        if code.version == Version::V42
            && branch.msfign != MsfIgnore::None
            && branch.cond.is_vector()
            && self.traits_before(code) & rules::SETMSF != 0
        {
            return Err(Trouble::new("43", "branch on sample flags right after setmsf"));
        }
        if branch.reads_sample_flags() {
            self.check_handed_over()?;
        }
        self.branch_slots = Branch::DELAY_SLOTS as u8;
        self.moves_pointer = branch.uniforms.is_some();
        let considered = match branch.msfign {
            MsfIgnore::None => ALL,
            MsfIgnore::Lanes => self.covered,
            MsfIgnore::Quads => whole_quads(self.covered),
        };
        let depends = match branch.cond {
            BranchCond::Always => 0,
            BranchCond::Reserved => return Err(Trouble::new("12", "reserved branch condition")),
            BranchCond::A0 | BranchCond::Na0 => 1,
            _ => considered,
        };
        if self.a_poison & depends != 0 {
            return Err(Trouble::poison(self.flag_cause, self.a_poison & depends, "the flag of a branch"));
        }
        let taken = match branch.cond {
            BranchCond::A0 => self.a & 1 != 0,
            BranchCond::Na0 => self.a & 1 == 0,
            BranchCond::AllA => self.a & considered == considered,
            BranchCond::AnyNa => self.a & considered != considered,
            BranchCond::AnyA => self.a & considered != 0,
            BranchCond::AllNa => self.a & considered == 0,
            _ => true,
        };
        let behind = code.address_of(self.pc).wrapping_add(32);
        let link = self.link;
        let linked = || link.ok_or_else(|| Trouble::new("undefined", "the link register was never written"));
        // The word of the stream is taken whether or not the branch is.
        let pointer = match branch.uniforms {
            None => None,
            Some(UniformMove::Absolute) => Some(u64::from(self.next_uniform(code, m)?)),
            Some(UniformMove::Relative) => {
                let offset = self.next_uniform(code, m)? as i32;
                Some(moved(self.uniform, offset))
            }
            Some(_) if !taken => None,
            Some(UniformMove::Link) => Some(u64::from(linked()?)),
            Some(UniformMove::Row(row)) => Some(u64::from(match m.options.uniform_branch_lane {
                Some(lane) => {
                    let value = self.read(From::Register(row & 63), Unpack::None);
                    let lane = usize::from(lane) % LANES;
                    if value.poison >> lane & 1 != 0 {
                        return Err(Trouble::poison(value.cause, 1 << lane, "the uniform pointer"));
                    }
                    value.v[lane]
                }
                None => self.row_address(row)?,
            })),
            Some(UniformMove::Reserved(_)) => return Err(Trouble::new("12", "reserved uniform move")),
        };
        if taken {
            let address = match branch.target {
                BranchTarget::Absolute(address) => address,
                BranchTarget::Relative(offset) => behind.wrapping_add_signed(offset),
                BranchTarget::Link => linked()?,
                BranchTarget::Row(row) => self.row_address(row)?,
            };
            let Some(target) = code.at_address(address) else {
                return Err(Trouble::new("29", format!("branch to {address:#x}, where no program is")));
            };
            self.jump = Some((Branch::DELAY_SLOTS as u8, target));
            if let Some(pointer) = pointer {
                self.uniform = pointer;
            }
        }
        if branch.link {
            // Whether a branch that is not taken writes the link register is not known.
            self.link = taken.then_some(behind);
        }
        Ok(())
    }
}

/// The one word that all lanes hold.
fn equal_lanes(value: &Value, what: &str, rule: &'static str) -> Result<u32, Trouble> {
    if value.poison != 0 {
        return Err(Trouble::poison(value.cause, value.poison, what));
    }
    match value.v.iter().position(|&w| w != value.v[0]) {
        Some(lane) => Err(Trouble::lane(rule, lane as u32, format!("{what} differs between lanes"))),
        None => Ok(value.v[0]),
    }
}
