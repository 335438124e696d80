//! What one instruction does to a SIMD group.
//!
//! Facts: reference sections 3 (execution mask), 1.6 (discard), 4, 10 and 11.

use super::code::{Step, Steps};
use super::group::{Group, Uniforms, Value, lanes_of};
use super::memory::Memories;
use super::{LANES, Mask, Options, Trouble, alu, lanes};
use crate::instr::{MOV_TABLE, Number, Operand, Place, Role, Size, XOR_TABLE};
use crate::ops::Op;

/// What the others of a threadgroup have to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    None,
    /// A point at which another SIMD group may be chosen.
    Switch,
    Barrier,
    End,
}

/// What all SIMD groups of a dispatch share.
pub(crate) struct Machine<'a> {
    pub memories: Memories<'a>,
    pub uniforms: Uniforms,
    pub options: &'a Options,
    pub groups: [u32; 3],
    pub size: [u32; 3],
    pub stack_dwords: u32,
    /// Instructions executed, and how often each.
    pub instructions: u64,
    pub executed: Vec<u64>,
}

impl Machine<'_> {
    /// Runs the next instruction.
    pub fn step(&mut self, group: &mut Group, steps: &Steps) -> Result<Event, Trouble> {
        let number = steps.find(group.pc)?;
        if self.instructions >= self.options.step_limit {
            let message = format!("more than {} instructions", self.options.step_limit);
            return Err(Trouble::new("limit", message));
        }
        self.instructions += 1;
        group.instructions += 1;
        if !group.is_preamble
            && let Some(count) = self.executed.get_mut(number)
        {
            *count += 1;
        }
        let step = &steps.steps[number];
        let event = self.execute(group, step)?;
        if group.pc == step.pc {
            group.pc = step.next;
        }
        Ok(event)
    }

    /// Runs one instruction; the program counter is only changed by jumps.
    pub fn execute(&mut self, group: &mut Group, step: &Step) -> Result<Event, Trouble> {
        let instr = &step.instr;
        if let Some(exchange) = exchange(step) {
            let [a, b, _] = &step.sources;
            let mut halves = group.read_halves(a)?;
            match exchange {
                Exchange::Move => {}
                Exchange::Xor => {
                    let others = group.read_halves(b)?;
                    halves = halves.iter().zip(&others).map(|(a, b)| group.xor(a, b)).collect();
                }
                Exchange::Turn => halves.rotate_left(1),
            }
            self.discard(group, step);
            group.write_halves(&step.dest, &halves)?;
            return Ok(Event::None);
        }
        if let Some(scalar) = alu::scalar(step.op) {
            alu::check(step)?;
            let result = self.lane_by_lane(group, step, scalar)?;
            return self.finish(group, step, &result);
        }
        match step.op {
            Op::Icmpsel | Op::Fcmpsel => {
                let result = self.select(group, step)?;
                return self.finish(group, step, &result);
            }
            Op::GetSr => {
                let result = self.special(group, instr.get(Number::Special))?;
                return self.finish(group, step, &result);
            }
            Op::IfIcmp | Op::ElseIcmp | Op::WhileIcmp | Op::IfFcmp | Op::ElseFcmp | Op::WhileFcmp => {
                self.mask(group, step, true)?;
            }
            Op::PopExec => self.mask(group, step, false)?,
            Op::JmpExecAny | Op::JmpExecNone => {
                if (group.active != 0) == (step.op == Op::JmpExecAny) {
                    self.jump(group, step)?;
                }
            }
            Op::CallImm => {
                let link = Value::splat(step.next as u64);
                group.write(&Operand::reg(2, Size::B32), &link)?;
                self.jump(group, step)?;
            }
            Op::CallReg | Op::Ret => {
                let target = group.read(&step.sources[0], &self.uniforms)?;
                target.need(group.active, "the target of a jump")?;
                let mut targets = group.active_lanes().map(|lane| target.lanes[lane]);
                let first = targets.next().ok_or_else(|| {
                    Trouble::new("branch", "a jump to an address in a register, and no lane is active")
                })?;
                if targets.any(|t| t != first) {
                    return Err(Trouble::new("unsettled", "lanes jump to different addresses"));
                }
                if step.op == Op::CallReg {
                    group.write(&Operand::reg(2, Size::B32), &Value::splat(step.next as u64))?;
                }
                group.pc = first as usize;
                if group.pc == step.pc {
                    return Err(Trouble::new("branch", "a jump to itself"));
                }
            }
            Op::Stop => {
                group.done = true;
                return Ok(Event::End);
            }
            Op::Trap => return Err(Trouble::new("end", "a trap")),
            Op::Wait => {
                group.wait(instr.get(Number::Slot) as usize & 1);
                return Ok(Event::Switch);
            }
            Op::ThreadgroupBarrier => {
                if group.is_preamble {
                    return Err(Trouble::new("barrier", "a barrier in a preamble"));
                }
                if group.active != group.exists {
                    let lane = (group.exists & !group.active).trailing_zeros() as usize;
                    return Err(Trouble::at("barrier", lane, "the lane misses a barrier"));
                }
                if group.slots.iter().any(|slot| slot.requests != 0) {
                    return Err(Trouble::new("wait", "requests are pending at a barrier"));
                }
                return Ok(Event::Barrier);
            }
            Op::MemoryBarrier => {}
            Op::DeviceLoad | Op::DeviceStore | Op::DeviceLoadControl | Op::DeviceStoreControl => {
                self.device(group, step)?;
            }
            Op::Atomic => self.atomic(group, step)?,
            Op::ThreadgroupLoad | Op::ThreadgroupStore => self.local(group, step)?,
            Op::ThreadgroupAtomic => self.local_atomic(group, step)?,
            Op::StackAdjust => self.adjust(group, instr.get(Number::Value) as i32)?,
            Op::StackLoad | Op::StackStore => self.stack(group, step)?,
            Op::UniformStore => self.store_uniform(group, step)?,
            _ => match lanes::across(self, group, step)? {
                Some(result) => return self.finish(group, step, &result),
                None => return Err(Trouble::unsupported(&format!("`{}`", step.op.info().name))),
            },
        }
        self.discard(group, step);
        Ok(Event::None)
    }

    /// Discards sources, then writes the result.
    fn finish(&mut self, group: &mut Group, step: &Step, result: &Value) -> Result<Event, Trouble> {
        self.discard(group, step);
        group.write(&step.dest, result)?;
        Ok(Event::None)
    }

    fn discard(&self, group: &mut Group, step: &Step) {
        if self.options.strict {
            for operand in &step.discarded {
                group.discard(operand, step.pc);
            }
        }
    }

    fn lane_by_lane(&self, group: &Group, step: &Step, scalar: alu::Scalar) -> Result<Value, Trouble> {
        let mut result = Value::splat(0);
        let mut sources = [const { [0u64; LANES] }; 3];
        for (operand, lanes) in step.sources.iter().zip(&mut sources) {
            if operand.place != Place::None {
                let value = group.read(operand, &self.uniforms)?;
                *lanes = value.lanes;
                result.taint(&value);
            }
        }
        // A lane that is poison is computed like the others, and its bits are nobody's concern.
        for lane in group.active_lanes() {
            let values = [sources[0][lane], sources[1][lane], sources[2][lane]];
            result.lanes[lane] = scalar(step, values, self.options.approximation);
        }
        Ok(result)
    }

    /// icmpsel, fcmpsel. A lane whose other value is undefined is not undefined.
    fn select(&self, group: &Group, step: &Step) -> Result<Value, Trouble> {
        let floats = step.op == Op::Fcmpsel;
        alu::check_condition(step, floats)?;
        let a = group.read(&step.sources[0], &self.uniforms)?;
        let b = group.read(&step.sources[1], &self.uniforms)?;
        let x = group.read(&step.x, &self.uniforms)?;
        let y = group.read(&step.y, &self.uniforms)?;
        let mut result = Value::splat(0);
        result.taint(&a);
        result.taint(&b);
        for lane in group.active_lanes() {
            let holds = compare(step, floats, a.lanes[lane], b.lanes[lane]);
            let taken = if holds { &x } else { &y };
            result.lanes[lane] = taken.lanes[lane];
            if taken.poison >> lane & 1 != 0 {
                if result.poison == 0 {
                    result.cause = taken.cause;
                }
                result.poison |= 1 << lane;
            }
        }
        Ok(result)
    }

    /// The instructions of section 3, on all lanes.
    fn mask(&mut self, group: &mut Group, step: &Step, compares: bool) -> Result<(), Trouble> {
        let (&counters, undefined) = group.half(0);
        if undefined & group.exists != 0 {
            let lane = (undefined & group.exists).trailing_zeros() as usize;
            return Err(Trouble::at(
                "mask",
                lane,
                "r0l is undefined at an instruction of the execution mask",
            ));
        }
        let n = step.nest;
        let floats = matches!(step.op, Op::IfFcmp | Op::ElseFcmp | Op::WhileFcmp);
        // Lanes that the comparison decides about.
        let asked = |v: u16| match step.op {
            Op::IfIcmp | Op::IfFcmp => v == 0,
            Op::ElseIcmp | Op::ElseFcmp => v == 1,
            Op::WhileIcmp | Op::WhileFcmp => v < n,
            _ => false,
        };
        let deciding = lanes_of(group.exists).filter(|&lane| asked(counters[lane]));
        let deciding: Mask = deciding.fold(0, |mask, lane| mask | 1 << lane);
        let mut holds: Mask = 0;
        if compares {
            alu::check_condition(step, floats)?;
            let a = group.read(&step.sources[0], &self.uniforms)?;
            let b = group.read(&step.sources[1], &self.uniforms)?;
            a.need(deciding, "a condition")?;
            b.need(deciding, "a condition")?;
            for lane in lanes_of(deciding) {
                holds |= Mask::from(compare(step, floats, a.lanes[lane], b.lanes[lane])) << lane;
            }
        }
        let mut result = Value::splat(0);
        let mut active = 0;
        for lane in lanes_of(group.exists) {
            let v = counters[lane];
            let held = holds >> lane & 1 != 0;
            let new = match step.op {
                Op::IfIcmp | Op::IfFcmp if v != 0 => v.checked_add(n).ok_or_else(|| {
                    Trouble::at("mask", lane, "the counter of the execution mask overflows")
                })?,
                Op::IfIcmp | Op::IfFcmp => u16::from(!held),
                Op::ElseIcmp | Op::ElseFcmp => match v {
                    0 => n,
                    1 => u16::from(!held),
                    _ => v,
                },
                Op::WhileIcmp | Op::WhileFcmp if v < n => {
                    if held {
                        0
                    } else {
                        n
                    }
                }
                Op::WhileIcmp | Op::WhileFcmp => v,
                _ => v.saturating_sub(n),
            };
            result.lanes[lane] = new.into();
            active |= Mask::from(new == 0) << lane;
        }
        group.write_lanes(&Operand::reg(0, Size::B16), &result, group.exists)?;
        group.active = active;
        Ok(())
    }

    fn jump(&self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let distance = step.instr.get(Number::Target) as i32;
        let target = step.pc as i64 + i64::from(distance);
        if distance == 0 {
            return Err(Trouble::new("limit", "a jump to itself never ends"));
        }
        group.pc = usize::try_from(target)
            .map_err(|_| Trouble::new("branch", format!("jumps to {target}, before the code")))?;
        Ok(())
    }

    /// Special registers of compute programs (section 11).
    fn special(&self, group: &Group, number: u32) -> Result<Value, Trouble> {
        let mut value = Value::splat(0);
        let [x, y, z] = self.size;
        let axis = (number & 3) as usize;
        let active = group.active;
        for lane in 0..LANES {
            let index = group.number * LANES as u32 + lane as u32;
            let local = [index % x.max(1), index / x.max(1) % y.max(1), index / (x * y).max(1)];
            let below = active & ((1 << lane) - 1);
            let quad = 0xf << (lane & !3);
            value.lanes[lane] = u64::from(match number {
                0..=2 => group.threadgroup_id[axis],
                4..=6 | 8..=10 => [x, y, z][axis],
                20 | 21 => 0,
                48..=50 => local[axis],
                51 => index,
                52 => lane as u32,
                53 => group.number,
                56 => (below & quad).count_ones(),
                57 => (active & quad).count_ones(),
                58 => below.count_ones(),
                59 => active.count_ones(),
                63 => group.exists >> lane & 1,
                80..=82 => {
                    let size = [x, y, z][axis];
                    group.threadgroup_id[axis].wrapping_mul(size).wrapping_add(local[axis])
                }
                _ => return Err(Trouble::unsupported(&format!("special register {number}"))),
            });
        }
        if group.is_preamble && number != 20 && number != 21 {
            return Err(Trouble::new("unsettled", format!("special register {number} in a preamble")));
        }
        Ok(value)
    }

    fn store_uniform(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        if !group.is_preamble {
            return Err(Trouble::new("uniform", "only a preamble writes uniforms"));
        }
        let instr = &step.instr;
        if instr.get(Number::Format) != 1 || instr.get(Number::Shift) != 0 {
            return Err(Trouble::new("unsettled", "uniforms are written as i16"));
        }
        let data = instr.operand(Role::Data);
        let index = group.read(&instr.operand(Role::Index), &self.uniforms)?;
        index.need(group.active, "the number of a uniform")?;
        let Some((_, Size::B16, count)) = data.as_reg() else {
            return Err(Trouble::new("unsettled", "uniforms are written from half registers"));
        };
        if instr.get(Number::Mask) != (1 << count) - 1 {
            return Err(Trouble::new("unsettled", "a mask with holes writes uniforms"));
        }
        for lane in group.active_lanes() {
            for i in 0..count {
                let value = group.element(&data, i)?;
                value.need(1 << lane, "a value for a uniform")?;
                let place = (index.lanes[lane] as usize).checked_add(usize::from(i));
                let place = place.and_then(|p| self.uniforms.get_mut(p));
                *place.ok_or_else(|| Trouble::new("uniform", "there is no such uniform"))? =
                    Some(value.lanes[lane] as u16);
            }
        }
        Ok(())
    }
}

/// What parallel copies consist of. Half a register may be undefined while the other half is moved along with it.
enum Exchange {
    Move,
    /// Three of them exchange two registers.
    Xor,
    /// The halves of a register change places.
    Turn,
}

/// Is the step one that moves halves without looking at them?
fn exchange(step: &Step) -> Option<Exchange> {
    let size = |operand: &Operand| operand.as_reg().map(|(_, size, _)| size);
    let [a, b, c] = &step.sources;
    let (wide, turned) = (size(&step.dest)?, a.place == b.place && *c == Operand::imm(16));
    match step.op {
        _ if size(a) != Some(wide) => None,
        Op::Bitop => match step.instr.get(Number::Table) {
            MOV_TABLE if *b == Operand::imm(0) => Some(Exchange::Move),
            XOR_TABLE if size(b) == Some(wide) => Some(Exchange::Xor),
            _ => None,
        },
        Op::Extr if wide == Size::B32 && turned && step.instr.get(Number::Width) == 0 => Some(Exchange::Turn),
        _ => None,
    }
}

fn compare(step: &Step, floats: bool, a: u64, b: u64) -> bool {
    if floats { alu::compare_floats(step, a, b) } else { alu::compare_integers(step, a, b) }
}
