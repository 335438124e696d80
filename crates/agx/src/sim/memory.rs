//! Access to memory: of the device, of the threadgroup, of the lane.
//!
//! Facts: reference sections 5, 6 (effective address) and 5.6 (stack frame).

use super::code::Step;
use super::execute::Machine;
use super::format::{check_store, load, shape};
use super::group::{Group, Value, lanes_of};
use super::{Cause, LANES, Options, Trouble};
use crate::instr::{Number, Operand, Place, Role, Size};
use crate::ops::Op;
use kempe_ir::exec::Memory;
use std::collections::BTreeSet;

/// Where the regions of a [`Memory`] lie in the 64-bit address space of the device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddressMap {
    /// By ascending device address.
    windows: Vec<Window>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    device: u64,
    base: u32,
    bytes: u32,
}

impl AddressMap {
    /// Every region at the address that `place` gives for its number and its address in memory. They must not overlap.
    pub fn new(memory: &Memory, place: impl Fn(usize, u32) -> u64) -> Result<AddressMap, String> {
        let mut windows: Vec<Window> = memory
            .regions()
            .iter()
            .enumerate()
            .map(|(n, region)| {
                let bytes = region.bytes.len() as u32;
                Window { device: place(n, region.base), base: region.base, bytes }
            })
            .collect();
        windows.sort_by_key(|w| (w.device, w.bytes));
        let end = |w: &Window| w.device.checked_add(w.bytes.into());
        let apart = windows.windows(2).all(|w| end(&w[0]).is_some_and(|e| e <= w[1].device));
        if !apart || windows.last().is_some_and(|w| end(w).is_none()) {
            return Err("regions overlap in the address space of the device".to_owned());
        }
        Ok(AddressMap { windows })
    }

    /// Regions far apart from each other behind `base`: no two share the high word of their addresses, so arithmetic that
    /// forgets it goes wrong.
    pub fn scattered(memory: &Memory, base: u64) -> Result<AddressMap, String> {
        AddressMap::new(memory, |n, address| base.wrapping_add((n as u64) << 33).wrapping_add(address.into()))
    }

    /// Device address of an address in memory: that of the region it lies in or behind.
    pub fn device(&self, address: u32) -> Option<u64> {
        let window = self.windows.iter().filter(|w| w.base <= address).max_by_key(|w| w.base)?;
        Some(window.device + u64::from(address - window.base))
    }

    /// Address in memory of so many bytes.
    fn find(&self, device: u64, bytes: u32) -> Option<u32> {
        let behind = self.windows.partition_point(|w| w.device <= device);
        let window = self.windows[..behind].last()?;
        let offset = u32::try_from(device - window.device).ok()?;
        let end = offset.checked_add(bytes)?;
        (end <= window.bytes).then(|| window.base + offset)
    }

    /// Base in memory of the region closest to a device address, and the distance from its start.
    fn nearest(&self, device: u64) -> Option<(u32, i64)> {
        let distance = |w: &&Window| {
            let end = w.device + u64::from(w.bytes);
            if device < w.device { w.device - device } else { device.saturating_sub(end) }
        };
        let window = self.windows.iter().min_by_key(distance)?;
        Some((window.base, device.wrapping_sub(window.device) as i64))
    }
}

/// All memory that a program can reach, but for the stack, which lanes have for themselves.
pub(crate) struct Memories<'a> {
    pub device: &'a mut Memory,
    pub map: &'a AddressMap,
    /// Of the threadgroup that runs; `None` where nothing was stored.
    pub local: Vec<Option<u8>>,
    /// Bytes of memory that an undefined value was stored to.
    pub undefined: BTreeSet<u32>,
}

impl Memories<'_> {
    #[cold]
    fn outside(&self, lane: usize, device: u64, bytes: u32, what: &str) -> Trouble {
        let mut message = format!("{what} of {bytes} bytes at {device:#x} outside of every buffer");
        if let Some((base, offset)) = self.map.nearest(device)
            && let Some(n) = self.device.region_at(base)
        {
            let region = &self.device.regions()[n];
            message.push_str(&format!(
                " (offset {offset} of `{}`, which has {} bytes)",
                region.name,
                region.bytes.len()
            ));
        }
        Trouble::at("memory", lane, message)
    }

    /// Bits at an address, and whether they are defined.
    fn load(&self, lane: usize, device: u64, bytes: u32) -> Result<(u32, bool), Trouble> {
        let address =
            self.map.find(device, bytes).ok_or_else(|| self.outside(lane, device, bytes, "a read"))?;
        let value = self.device.read(address, bytes);
        let value = value.map_err(|fault| Trouble::at("memory", lane, fault.to_string()))?;
        let defined =
            self.undefined.is_empty() || self.undefined.range(address..address + bytes).next().is_none();
        Ok((value as u32, defined))
    }

    fn store(
        &mut self,
        lane: usize,
        device: u64,
        bytes: u32,
        value: u32,
        defined: bool,
    ) -> Result<(), Trouble> {
        let address =
            self.map.find(device, bytes).ok_or_else(|| self.outside(lane, device, bytes, "a write"))?;
        let written = self.device.write(address, bytes, value.into());
        written.map_err(|fault| Trouble::at("memory", lane, fault.to_string()))?;
        for byte in address..address + bytes {
            if !defined {
                self.undefined.insert(byte);
            } else if !self.undefined.is_empty() {
                self.undefined.remove(&byte);
            }
        }
        Ok(())
    }
}

/// Little-endian bytes with holes.
fn read_bytes(bytes: &[Option<u8>], offset: usize, count: usize) -> Option<u32> {
    (0..count).rev().try_fold(0u32, |value, i| Some(value << 8 | u32::from(bytes[offset + i]?)))
}

fn write_bytes(bytes: &mut [Option<u8>], offset: usize, count: usize, value: Option<u32>) {
    for i in 0..count {
        bytes[offset + i] = value.map(|v| (v >> (8 * i)) as u8);
    }
}

/// What an access to consecutive registers moves.
struct Access {
    data: Operand,
    size: Size,
    format: u32,
    /// Bytes of an element.
    bytes: u32,
    /// Elements by register: number of the element from the base on.
    elements: Vec<u32>,
    packed: bool,
}

impl Access {
    fn new(step: &Step) -> Result<Access, Trouble> {
        let instr = &step.instr;
        let format = instr.get(Number::Format);
        let mask = instr.get(Number::Mask);
        if mask == 0 {
            return Err(Trouble::new("encoding", "an access to no element"));
        }
        let (bytes, packed) = shape(format)?;
        let data = instr.operand(Role::Data);
        let Some((_, size, _)) = data.as_reg() else {
            return Err(Trouble::new("encoding", "the data are no registers"));
        };
        if format == 2 && size != Size::B32 {
            return Err(Trouble::new("encoding", "i32 with half registers"));
        }
        // Packed formats ignore the mask and always give everything.
        let all = (1 << packed) - 1;
        let mask = if packed == 0 { mask } else { all };
        let elements: Vec<u32> = (0..4).filter(|i| mask >> i & 1 != 0).collect();
        let half = data.halves().start;
        let data = Operand::vector(half, size, elements.len() as u8);
        Ok(Access { data, size, format, bytes, elements, packed: packed != 0 })
    }

    /// The part of the `i`-th register that a store takes its element from.
    fn stored(&self, i: usize) -> Operand {
        match self.register(i).as_reg() {
            Some((half, Size::B32, _)) if self.bytes < 4 => Operand::reg(half, Size::B16),
            _ => self.register(i),
        }
    }

    /// The `i`-th register.
    fn register(&self, i: usize) -> Operand {
        let (half, size, _) = self.data.as_reg().unwrap_or((0, self.size, 1));
        Operand::reg(half + size.halves() * i as u16, size)
    }
}

impl Machine<'_> {
    /// Base and extended index of an access to the device, checked.
    fn address(&self, group: &Group, step: &Step, bytes: u32) -> Result<(Value, Value), Trouble> {
        let instr = &step.instr;
        let base = group.read(&instr.operand(Role::Base), &self.uniforms)?;
        base.need(group.active, "the base of an address")?;
        let operand = instr.operand(Role::Index);
        let mut index = group.read(&operand, &self.uniforms)?;
        index.need(group.active, "the index of an address")?;
        let unsigned = instr.get(Number::Unsigned) == 1;
        match operand.place {
            Place::Imm(value) if unsigned && value < 0 && self.options.strict => {
                return Err(Trouble::new(
                    "unsettled",
                    "an unsigned immediate above 32767, which may be extended either way",
                ));
            }
            Place::Reg { .. } if !unsigned => {
                index.lanes = index.lanes.map(|v| v as u32 as i32 as i64 as u64);
            }
            _ => {}
        }
        if self.options.strict {
            for lane in group.active_lanes() {
                if !base.lanes[lane].is_multiple_of(bytes.into()) {
                    let message = format!("base {:#x} is not a multiple of {bytes}", base.lanes[lane]);
                    return Err(Trouble::at("memory", lane, message));
                }
            }
        }
        Ok((base, index))
    }

    /// device_load and device_store.
    pub(super) fn device(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let instr = &step.instr;
        let access = Access::new(step)?;
        let bytes = access.bytes;
        let store = matches!(step.op, Op::DeviceStore | Op::DeviceStoreControl);
        let shift = instr.get(Number::Shift);
        if shift > 2 && self.options.strict {
            return Err(Trouble::new("encoding", "an index shifted by 3"));
        }
        // A packed word has one address, whatever the shift.
        let shift = if access.packed { 0 } else { shift.min(2) };
        let slot = instr.get(Number::Slot) as usize & 1;
        let (base, index) = self.address(group, step, bytes)?;
        let at = |lane: usize, element: u32| {
            let start = base.lanes[lane] & !u64::from(bytes - 1);
            let element = if access.packed { 0 } else { element };
            let scaled = (index.lanes[lane] << shift).wrapping_add(element.into());
            start.wrapping_add(scaled.wrapping_mul(bytes.into()))
        };
        if store {
            check_store(access.format)?;
            for (i, &element) in access.elements.iter().enumerate() {
                let value = group.element(&access.stored(i), 0)?;
                self.need_stored(group, &value, "a stored value")?;
                for lane in group.active_lanes() {
                    let defined = value.poison >> lane & 1 == 0;
                    let bits = value.lanes[lane] as u32;
                    self.memories.store(lane, at(lane, element), bytes, bits, defined)?;
                }
            }
        } else {
            group.check_write(&access.data)?;
            for (i, &element) in access.elements.iter().enumerate() {
                let mut value = Value::splat(0);
                value.cause = Cause::Memory;
                for lane in group.active_lanes() {
                    let (raw, defined) = self.memories.load(lane, at(lane, element), bytes)?;
                    let wide = access.size == Size::B32;
                    value.lanes[lane] = load(access.format, raw, element as usize, wide);
                    value.poison |= u32::from(!defined) << lane;
                }
                group.write(&access.register(i), &value)?;
            }
        }
        group.request(slot, self.options.strict)?;
        if !store {
            group.set_pending(slot, &access.data);
        }
        Ok(())
    }

    fn need_stored(&self, group: &Group, value: &Value, what: &str) -> Result<(), Trouble> {
        if self.options.undefined_in_memory { Ok(()) } else { value.need(group.active, what) }
    }

    /// atomic: lanes one after the other.
    pub(super) fn atomic(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let instr = &step.instr;
        let (base, index) = self.address(group, step, 4)?;
        let source = group.read(&instr.operand(Role::Source), &self.uniforms)?;
        source.need(group.active, "the operand of an atomic")?;
        let result = instr.operand(Role::Data);
        if !result.is_none() {
            group.check_write(&result)?;
        }
        let slot = instr.get(Number::Slot) as usize & 1;
        let mut old = Value::splat(0);
        old.cause = Cause::Memory;
        for lane in group.active_lanes() {
            let address = (base.lanes[lane] & !3).wrapping_add(index.lanes[lane].wrapping_mul(4));
            let (value, defined) = self.memories.load(lane, address, 4)?;
            let new = combine(instr.get(Number::Atomic), value, source.lanes[lane])?;
            self.memories.store(lane, address, 4, new, defined)?;
            old.lanes[lane] = value.into();
            old.poison |= u32::from(!defined) << lane;
        }
        if !result.is_none() {
            group.write(&result, &old)?;
        }
        group.request(slot, self.options.strict)?;
        if !result.is_none() {
            group.set_pending(slot, &result);
        }
        Ok(())
    }

    /// Offset of an access to the memory of the threadgroup, checked.
    fn local_offset(
        &self,
        lane: usize,
        base: u64,
        index: u64,
        bytes: u32,
        element: u32,
    ) -> Result<usize, Trouble> {
        let index = index as i64 + i64::from(element);
        let offset = base as i64 + index * i64::from(bytes);
        let end = offset + i64::from(bytes);
        if offset < 0 || end > self.memories.local.len() as i64 {
            let message = format!(
                "byte {offset} of the memory of a threadgroup, which has {} bytes",
                self.memories.local.len()
            );
            return Err(Trouble::at("memory", lane, message));
        }
        if offset % i64::from(bytes) != 0 {
            let message =
                format!("byte {offset} of the memory of a threadgroup is not a multiple of {bytes}");
            return Err(Trouble::at("memory", lane, message));
        }
        Ok(offset as usize)
    }

    fn local_address(&self, group: &Group, step: &Step) -> Result<(Value, Value), Trouble> {
        if group.is_preamble {
            return Err(Trouble::new("unsettled", "threadgroup memory in a preamble"));
        }
        let base = group.read(&step.instr.operand(Role::Base), &self.uniforms)?;
        base.need(group.active, "the base of an address")?;
        let index = group.read(&step.instr.operand(Role::Index), &self.uniforms)?;
        index.need(group.active, "the index of an address")?;
        Ok((base, index))
    }

    /// threadgroup_load and threadgroup_store.
    pub(super) fn local(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let access = Access::new(step)?;
        if access.packed {
            return Err(Trouble::unsupported("a packed format in threadgroup memory"));
        }
        let (base, index) = self.local_address(group, step)?;
        let count = access.bytes as usize;
        let store = step.op == Op::ThreadgroupStore;
        for (i, &element) in access.elements.iter().enumerate() {
            let register = access.register(i);
            let mut value = Value::splat(0);
            if store {
                check_store(access.format)?;
                value = group.element(&access.stored(i), 0)?;
                self.need_stored(group, &value, "a stored value")?;
            }
            value.cause = Cause::Threadgroup;
            for lane in group.active_lanes() {
                let (base, index) = (base.lanes[lane], index.lanes[lane]);
                let offset = self.local_offset(lane, base, index, access.bytes, element)?;
                if store {
                    let bits = (value.poison >> lane & 1 == 0).then_some(value.lanes[lane] as u32);
                    write_bytes(&mut self.memories.local, offset, count, bits);
                } else {
                    let raw = read_bytes(&self.memories.local, offset, count);
                    let wide = access.size == Size::B32;
                    value.lanes[lane] = load(access.format, raw.unwrap_or(0), element as usize, wide);
                    value.poison |= u32::from(raw.is_none()) << lane;
                }
            }
            if !store {
                group.write(&register, &value)?;
            }
        }
        Ok(())
    }

    pub(super) fn local_atomic(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let instr = &step.instr;
        let (base, index) = self.local_address(group, step)?;
        let source = group.read(&instr.operand(Role::Source), &self.uniforms)?;
        source.need(group.active, "the operand of an atomic")?;
        let mut old = Value::splat(0);
        for lane in group.active_lanes() {
            let offset = self.local_offset(lane, base.lanes[lane], index.lanes[lane], 4, 0)?;
            let value = read_bytes(&self.memories.local, offset, 4).ok_or_else(|| {
                Trouble::at("undefined", lane, "an atomic on threadgroup memory that was never stored")
            })?;
            let new = combine(instr.get(Number::Atomic), value, source.lanes[lane])?;
            write_bytes(&mut self.memories.local, offset, 4, Some(new));
            old.lanes[lane] = value.into();
        }
        match instr.operand(Role::Data) {
            result if result.is_none() => Ok(()),
            result => group.write(&result, &old),
        }
    }

    /// stack_adjust: makes the frame, or gives it back.
    pub(super) fn adjust(&mut self, group: &mut Group, dwords: i32) -> Result<(), Trouble> {
        match (group.frame, dwords) {
            (0, 1..) if dwords as u32 > self.stack_dwords => {
                let message = format!("a frame of {dwords} dwords, but lanes have {}", self.stack_dwords);
                Err(Trouble::new("stack", message))
            }
            (0, 1..) => {
                group.frame = dwords as u32;
                group.stack = vec![None; group.frame as usize * 4 * LANES];
                Ok(())
            }
            (frame, _) if frame != 0 && i64::from(dwords) == -i64::from(frame) => {
                group.frame = 0;
                group.stack = Vec::new();
                Ok(())
            }
            (frame, _) => {
                Err(Trouble::new("stack", format!("moves the stack by {dwords} where the frame has {frame}")))
            }
        }
    }

    /// stack_load and stack_store.
    pub(super) fn stack(&mut self, group: &mut Group, step: &Step) -> Result<(), Trouble> {
        let access = Access::new(step)?;
        if access.format > 2 {
            return Err(Trouble::unsupported("a format other than an integer on the stack"));
        }
        let slot = step.instr.get(Number::Slot) as usize & 1;
        let index = group.read(&step.instr.operand(Role::Index), &self.uniforms)?;
        index.need(group.active, "the offset of a stack access")?;
        let store = step.op == Op::StackStore;
        let frame = group.frame as usize * 4;
        let count = access.bytes as usize;
        if !store {
            group.check_write(&access.data)?;
        }
        for (i, &element) in access.elements.iter().enumerate() {
            let mut value = Value::splat(0);
            if store {
                value = group.element(&access.stored(i), 0)?;
            }
            value.cause = Cause::Stack;
            for lane in lanes_of(group.active) {
                let offset = index.lanes[lane] as i64 + i64::from(element) * i64::from(access.bytes);
                if offset < 0 || offset + count as i64 > frame as i64 {
                    let message = format!("byte {offset} of a stack frame of {frame} bytes");
                    return Err(Trouble::at("stack", lane, message));
                }
                if offset % count as i64 != 0 {
                    let message = format!("byte {offset} of the stack is not a multiple of {count}");
                    return Err(Trouble::at("stack", lane, message));
                }
                let place = lane * frame + offset as usize;
                if store {
                    let bits = (value.poison >> lane & 1 == 0).then_some(value.lanes[lane] as u32);
                    write_bytes(&mut group.stack, place, count, bits);
                } else {
                    let raw = read_bytes(&group.stack, place, count);
                    value.lanes[lane] = raw.unwrap_or(0).into();
                    value.poison |= u32::from(raw.is_none()) << lane;
                }
            }
            if !store {
                group.write(&access.register(i), &value)?;
            }
        }
        group.request(slot, self.options.strict)?;
        if !store {
            group.set_pending(slot, &access.data);
        }
        Ok(())
    }
}

/// The new value of an atomic; of cmpxchg the source holds the new value below the comparand.
fn combine(op: u32, old: u32, source: u64) -> Result<u32, Trouble> {
    let operand = source as u32;
    Ok(match op {
        0 => old.wrapping_add(operand),
        1 => old.wrapping_sub(operand),
        2 => operand,
        3 if old == (source >> 32) as u32 => operand,
        3 => old,
        4 => old.min(operand),
        5 => (old as i32).min(operand as i32) as u32,
        6 => old.max(operand),
        7 => (old as i32).max(operand as i32) as u32,
        8 => old & operand,
        9 => old | operand,
        10 => old ^ operand,
        _ => return Err(Trouble::new("unsettled", "this atomic is not known")),
    })
}

/// Memory of a threadgroup at its start.
pub(super) fn fresh_local(bytes: u32, options: &Options) -> Vec<Option<u8>> {
    vec![options.zeroed_threadgroup.then_some(0); bytes as usize]
}
