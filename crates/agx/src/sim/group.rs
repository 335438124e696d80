//! One SIMD group: registers with their poison, the execution mask, requests that are pending.
//!
//! Facts: reference sections 1, 3 and 5.3.

use super::{Cause, LANES, Mask, Trouble};
use crate::instr::{Operand, Place, Size};

/// Half registers there are.
pub const HALVES: usize = 256;

/// Uniform halves there are.
pub const UNIFORM_HALVES: usize = 512;

/// Most requests that the reference driver leaves pending in a slot.
pub const MAX_PENDING: u32 = 8;

/// A value on every lane.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub lanes: [u64; LANES],
    /// Lanes that are undefined.
    pub poison: Mask,
    pub cause: Cause,
}

impl Value {
    /// The same on every lane.
    pub fn splat(value: u64) -> Value {
        Value { lanes: [value; LANES], poison: 0, cause: Cause::Never }
    }

    /// Takes over the poison of another value.
    pub fn taint(&mut self, other: &Value) {
        if self.poison == 0 {
            self.cause = other.cause;
        }
        self.poison |= other.poison;
    }

    /// The first of these lanes that is undefined is an error.
    pub fn need(&self, lanes: Mask, what: &str) -> Result<(), Trouble> {
        match self.poison & lanes {
            0 => Ok(()),
            bad => Err(Trouble::at(
                "undefined",
                bad.trailing_zeros() as usize,
                format!("{what} is undefined: it {}", self.cause),
            )),
        }
    }
}

/// What a scoreboard slot waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub requests: u32,
    /// Halves whose load has not been waited for.
    pub halves: [u64; HALVES / 64],
}

/// Uniforms of a dispatch; `None` where nobody put anything.
pub(crate) type Uniforms = [Option<u16>; UNIFORM_HALVES];

/// A half register with all that is known of it, for operations that move bits without looking at them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half {
    bits: [u16; LANES],
    undefined: Mask,
    cause: Cause,
    unknowns: [u64; LANES],
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    halves: Box<[[u16; LANES]; HALVES]>,
    undefined: Box<[Mask; HALVES]>,
    causes: Box<[Cause; HALVES]>,
    /// Where a half is undefined: the number of the unknown value that its bits have been combined with by exclusive or. Two
    /// registers are exchanged by three of these, so a value that goes through an unknown one must come out of it again.
    unknowns: Box<[[u64; LANES]; HALVES]>,
    /// Number of the next unknown value.
    next_unknown: u64,
    /// Halves that the program declared.
    declared: u16,
    pub slots: [Slot; 2],
    /// Lanes that have an invocation.
    pub exists: Mask,
    pub active: Mask,
    /// Byte address of the next instruction.
    pub pc: usize,
    /// Number in the threadgroup.
    pub number: u32,
    /// Of the threadgroup.
    pub threadgroup: u64,
    pub threadgroup_id: [u32; 3],
    /// The preamble, which may write uniforms.
    pub is_preamble: bool,
    pub done: bool,
    /// Dwords of the stack frame, 0 before it is made.
    pub frame: u32,
    /// Bytes of the frame, lane by lane; `None` where nothing was stored.
    pub stack: Vec<Option<u8>>,
    pub instructions: u64,
    pub requests: u64,
}

impl Group {
    pub fn new(declared: u32, exists: Mask) -> Group {
        let mut unknowns = Box::new([[0; LANES]; HALVES]);
        for (number, unknown) in unknowns.iter_mut().flatten().enumerate() {
            *unknown = number as u64;
        }
        Group {
            halves: Box::new([[0; LANES]; HALVES]),
            undefined: Box::new([Mask::MAX; HALVES]),
            causes: Box::new([Cause::Never; HALVES]),
            unknowns,
            next_unknown: (HALVES * LANES) as u64,
            declared: declared.min(HALVES as u32) as u16,
            slots: Default::default(),
            exists,
            active: exists,
            pc: 0,
            number: 0,
            threadgroup: 0,
            threadgroup_id: [0; 3],
            is_preamble: false,
            done: false,
            frame: 0,
            stack: Vec::new(),
            instructions: 0,
            requests: 0,
        }
    }

    /// Lanes that are active, in order.
    pub fn active_lanes(&self) -> impl Iterator<Item = usize> + use<> {
        lanes_of(self.active)
    }

    /// Is the range in the registers of the program, and not waited for?
    fn check(&self, operand: &Operand, what: &str) -> Result<(), Trouble> {
        let halves = operand.halves();
        if halves.end > self.declared {
            let message = format!("{what} of half {}, but {} are declared", halves.end - 1, self.declared);
            return Err(Trouble::new("registers", message));
        }
        for half in halves {
            if self.is_pending(half) {
                let side = if half & 1 == 0 { 'l' } else { 'h' };
                let message = format!("{what} of r{}{side}, whose load has not been waited for", half / 2);
                return Err(Trouble::new("wait", message));
            }
        }
        Ok(())
    }

    fn is_pending(&self, half: u16) -> bool {
        let (word, bit) = (usize::from(half / 64), half % 64);
        self.slots.iter().any(|slot| slot.halves[word] >> bit & 1 != 0)
    }

    /// The registers of a load become what it gives, but not before the slot is waited for.
    pub fn set_pending(&mut self, slot: usize, operand: &Operand) {
        for half in operand.halves() {
            self.slots[slot].halves[usize::from(half / 64)] |= 1 << (half % 64);
        }
    }

    /// The `i`-th element of an operand on all lanes.
    pub fn element(&self, operand: &Operand, i: u8) -> Result<Value, Trouble> {
        let Place::Reg { half, size, .. } = operand.place else {
            return Err(Trouble::new("encoding", "an operand is no register"));
        };
        let half = half + size.halves() * u16::from(i);
        self.read_reg(&Operand::reg(half, size))
    }

    fn read_reg(&self, operand: &Operand) -> Result<Value, Trouble> {
        self.check(operand, "read")?;
        let mut value = Value::splat(0);
        for (i, half) in operand.halves().enumerate() {
            let half = usize::from(half);
            for (lane, bits) in value.lanes.iter_mut().zip(&self.halves[half]) {
                *lane |= u64::from(*bits) << (16 * i);
            }
            if self.undefined[half] != 0 && value.poison == 0 {
                value.cause = self.causes[half];
            }
            value.poison |= self.undefined[half];
        }
        Ok(value)
    }

    /// A source: register, uniform or immediate.
    pub fn read(&self, operand: &Operand, uniforms: &Uniforms) -> Result<Value, Trouble> {
        match operand.place {
            Place::Reg { count: 1, .. } => self.read_reg(operand),
            Place::Uniform { half, size, count: 1 } => {
                let mut value = 0;
                for i in 0..size.halves() {
                    let place = half + i;
                    let Some(bits) = uniforms.get(usize::from(place)).copied().flatten() else {
                        let side = if place & 1 == 0 { 'l' } else { 'h' };
                        let message = format!("u{}{side} holds nothing", place / 2);
                        return Err(Trouble::new("uniform", message));
                    };
                    value |= u64::from(bits) << (16 * i);
                }
                Ok(Value::splat(value))
            }
            Place::Imm(value) => Ok(Value::splat(value as i64 as u64)),
            Place::Float(_) => Ok(Value::splat(0)),
            _ => Err(Trouble::new("encoding", "an operand cannot be read")),
        }
    }

    /// Writes the active lanes of a register.
    pub fn write(&mut self, operand: &Operand, value: &Value) -> Result<(), Trouble> {
        self.write_lanes(operand, value, self.active)
    }

    /// Writes some lanes of a register.
    pub fn write_lanes(&mut self, operand: &Operand, value: &Value, lanes: Mask) -> Result<(), Trouble> {
        let Place::Reg { size, count: 1, .. } = operand.place else {
            return Err(Trouble::new("encoding", "a result is no register"));
        };
        self.check(operand, "write")?;
        debug_assert!(size <= Size::B64);
        for (i, half) in operand.halves().enumerate() {
            let half = usize::from(half);
            for lane in lanes_of(lanes) {
                self.halves[half][lane] = (value.lanes[lane] >> (16 * i)) as u16;
            }
            self.undefined[half] = self.undefined[half] & !lanes | value.poison & lanes;
            if value.poison & lanes != 0 {
                self.causes[half] = value.cause;
                self.forget(half, value.poison & lanes);
            }
        }
        Ok(())
    }

    /// The lanes of a half hold unknown values that nothing else holds.
    fn forget(&mut self, half: usize, lanes: Mask) {
        for lane in lanes_of(lanes) {
            self.unknowns[half][lane] = self.next_unknown;
            self.next_unknown += 1;
        }
    }

    /// The halves of a register as they are.
    pub fn read_halves(&self, operand: &Operand) -> Result<Vec<Half>, Trouble> {
        self.check(operand, "read")?;
        Ok(operand
            .halves()
            .map(|half| {
                let half = usize::from(half);
                Half {
                    bits: self.halves[half],
                    undefined: self.undefined[half],
                    cause: self.causes[half],
                    unknowns: self.unknowns[half],
                }
            })
            .collect())
    }

    /// Exclusive or of two halves. What both contain goes away, even where it is unknown.
    pub fn xor(&mut self, a: &Half, b: &Half) -> Half {
        let mut result = *a;
        if a.undefined == 0 {
            result.cause = b.cause;
        }
        for lane in 0..LANES {
            result.bits[lane] = a.bits[lane] ^ b.bits[lane];
            match (a.undefined >> lane & 1 != 0, b.undefined >> lane & 1 != 0) {
                (_, false) => {}
                (false, true) => {
                    result.undefined |= 1 << lane;
                    result.unknowns[lane] = b.unknowns[lane];
                }
                (true, true) if a.unknowns[lane] == b.unknowns[lane] => result.undefined &= !(1 << lane),
                (true, true) => {
                    result.unknowns[lane] = self.next_unknown;
                    self.next_unknown += 1;
                }
            }
        }
        result
    }

    /// Writes the active lanes of the halves of a register.
    pub fn write_halves(&mut self, operand: &Operand, halves: &[Half]) -> Result<(), Trouble> {
        self.check(operand, "write")?;
        for (half, value) in operand.halves().map(usize::from).zip(halves) {
            let lanes = self.active;
            for lane in lanes_of(lanes) {
                self.halves[half][lane] = value.bits[lane];
                self.unknowns[half][lane] = value.unknowns[lane];
            }
            self.undefined[half] = self.undefined[half] & !lanes | value.undefined & lanes;
            if value.undefined & lanes != 0 {
                self.causes[half] = value.cause;
            }
        }
        Ok(())
    }

    /// Checks that a load may write these registers.
    pub fn check_write(&self, operand: &Operand) -> Result<(), Trouble> {
        self.check(operand, "write")
    }

    /// The registers hold nothing any more, on any lane: the cache may be written back or not.
    pub fn discard(&mut self, operand: &Operand, pc: usize) {
        for half in operand.halves().map(usize::from).filter(|&h| h < HALVES) {
            self.undefined[half] = Mask::MAX;
            self.causes[half] = Cause::Discarded(pc as u32);
            self.forget(half, Mask::MAX);
        }
    }

    /// All requests of a slot are done.
    pub fn wait(&mut self, slot: usize) {
        self.slots[slot] = Slot::default();
    }

    /// One more request.
    pub fn request(&mut self, slot: usize, strict: bool) -> Result<(), Trouble> {
        self.requests += 1;
        self.slots[slot].requests += 1;
        if strict && self.slots[slot].requests > MAX_PENDING {
            return Err(Trouble::new(
                "wait",
                format!("more than {MAX_PENDING} requests pending in slot {slot}"),
            ));
        }
        Ok(())
    }

    /// Value and undefined lanes of a half.
    pub fn half(&self, half: usize) -> (&[u16; LANES], Mask) {
        (&self.halves[half], self.undefined[half])
    }

    /// Sets a half on all lanes.
    pub fn set_half(&mut self, half: usize, lanes: [u16; LANES]) {
        self.halves[half] = lanes;
        self.undefined[half] = 0;
    }
}

/// Numbers of the lanes in a mask.
pub(crate) fn lanes_of(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
