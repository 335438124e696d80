//! General memory access through the TMU (section 12.2; texels: `texture`): operand queue, configuration register, result queue, and what
//! an operation does to memory.
//!
//! Operations take effect when they start. That is one of the orders the hardware may choose; where the program must
//! not rely on an order, strict runs stop: a load must not meet a store of the same thread that has not been waited for
//! with tmuwt. Rules checked here: 54 to 57, 67 to 69.

use super::thread::{Cause, Machine, Thread, Trouble, Value, Write, whole_quads};
use super::{LANES, Lanes, Mask};
use crate::instr::Version;
use crate::magic;
use kempe_ir::eval;
use kempe_ir::exec::{Memory, read_le, write_le};
use kempe_ir::module::AtomicOp;
use kempe_ir::types::Type;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// One tmud write.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub value: Value,
    pub lanes: Mask,
}

/// A result word that waits for its ldtmu.
#[derive(Clone, Debug)]
struct Word {
    value: Value,
    atomic: bool,
}

/// The TMU as one thread sees it.
#[derive(Clone, Debug)]
pub(super) struct Tmu {
    version: Version,
    /// Entries of a thread in the operand queue and in the result queue (rule 55).
    share: usize,
    config: u32,
    /// What has been written for the operation that is being put together.
    pub(super) data: Vec<Operand>,
    pub(super) reference: Option<Operand>,
    pub(super) offset: Option<Operand>,
    /// T, R, layer and level of detail of an access of the texture unit, and its configuration words.
    pub(super) coordinates: [Option<Operand>; 4],
    pub(super) words: Vec<u32>,
    results: VecDeque<Word>,
    /// Words stored since the last tmuwt, by address / 4; kept only in strict runs.
    pub(super) unwaited: FxHashSet<u32>,
}

/// The type field of the configuration byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Access {
    bytes: u32,
    components: usize,
    signed: bool,
}

impl Access {
    fn of(code: u32) -> Access {
        let (bytes, components, signed) = match code {
            0 => (1, 1, true),
            1 => (2, 1, true),
            2..=4 => (4, code as usize, false),
            5 => (1, 1, false),
            6 => (2, 1, false),
            _ => (4, 1, false),
        };
        Access { bytes, components, signed }
    }

    fn extend(self, value: u32) -> u32 {
        match (self.signed, self.bytes) {
            (true, 1) => value as i8 as u32,
            (true, 2) => value as i16 as u32,
            _ => value,
        }
    }
}

/// What the operation field asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Load,
    Store,
    Atomic(AtomicOp),
    /// With a constant operand: increment, decrement, complement.
    Fixed(AtomicOp, u32),
    /// Cache control: nothing that can be seen here.
    Cache,
}

pub(super) fn action(code: u32, has_data: bool) -> Option<Action> {
    Some(match (code, has_data) {
        (15, true) => Action::Store,
        (15, false) => Action::Load,
        (0, true) => Action::Atomic(AtomicOp::Add),
        (1, true) => Action::Atomic(AtomicOp::Sub),
        (2, true) => Action::Atomic(AtomicOp::Exchange),
        (3, true) => Action::Atomic(AtomicOp::CompareExchange),
        (4, true) => Action::Atomic(AtomicOp::Umin),
        (5, true) => Action::Atomic(AtomicOp::Umax),
        (6, true) => Action::Atomic(AtomicOp::Smin),
        (7, true) => Action::Atomic(AtomicOp::Smax),
        (8, true) => Action::Atomic(AtomicOp::And),
        (9, true) => Action::Atomic(AtomicOp::Or),
        (10, true) => Action::Atomic(AtomicOp::Xor),
        (8, false) => Action::Fixed(AtomicOp::Add, 1),
        (9, false) => Action::Fixed(AtomicOp::Sub, 1),
        (10, false) => Action::Fixed(AtomicOp::Xor, u32::MAX),
        (0..=4, false) => Action::Cache,
        _ => return None,
    })
}

impl Tmu {
    pub fn new(version: Version, threads: u32) -> Tmu {
        Tmu {
            version,
            share: if threads == 4 { 4 } else { 8 },
            config: u32::MAX,
            data: Vec::new(),
            reference: None,
            offset: None,
            coordinates: [const { None }; 4],
            words: Vec::new(),
            results: VecDeque::new(),
            unwaited: FxHashSet::default(),
        }
    }

    pub fn set_config(&mut self, word: u32) {
        self.config = word;
        self.words.clear();
    }

    /// wrtmuc: the words belong to the operation that starts next (P0 to P2 of the texture unit; for a general access the
    /// last one is the configuration).
    pub fn config_word(&mut self, word: u32) {
        self.words.push(word);
    }

    pub fn is_reset(&self) -> bool {
        self.config == u32::MAX && self.words.is_empty()
    }

    /// Result words that have not been collected.
    pub fn outstanding(&self) -> usize {
        self.results.len()
    }

    pub fn has_unwaited_stores(&self) -> bool {
        !self.unwaited.is_empty()
    }

    /// tmuwt.
    pub fn wait(&mut self) {
        self.unwaited.clear();
    }

    /// A write to tmud, tmudref, tmuoff, or a coordinate.
    pub fn operand(&mut self, n: u8, write: &Write) -> Result<(), Trouble> {
        // A lane whose condition is poison has no data: that matters only if it takes part in the operation.
        let operand = Operand { value: write.value, lanes: write.lanes };
        match n {
            magic::TMUDREF => self.reference = Some(operand),
            magic::TMUOFF => self.offset = Some(operand),
            magic::TMUT..=magic::TMUB => self.coordinates[usize::from(n - magic::TMUT)] = Some(operand),
            _ => self.data.push(operand),
        }
        // The terminating write needs an entry too.
        if self.entries() >= self.share {
            return Err(Trouble::new(
                "55",
                format!("an operation with more than {} register writes", self.share),
            ));
        }
        Ok(())
    }

    fn entries(&self) -> usize {
        let coordinates = self.coordinates.iter().filter(|c| c.is_some()).count();
        self.data.len()
            + usize::from(self.reference.is_some())
            + usize::from(self.offset.is_some())
            + coordinates
    }

    /// ldtmu.
    pub fn collect(&mut self) -> Result<Value, Trouble> {
        match self.results.pop_front() {
            Some(word) => Ok(word.value),
            None => Err(Trouble::new("56", "ldtmu with no result outstanding")),
        }
    }

    /// A thread switch takes place.
    pub fn at_switch(&self) -> Result<(), Trouble> {
        if self.entries() != 0 || !self.words.is_empty() {
            return Err(Trouble::new("54", "thread switch between the operands of a TMU operation"));
        }
        Ok(())
    }

    /// The program ends.
    pub fn at_end(&self) -> Result<(), Trouble> {
        match self.results.front() {
            None => Ok(()),
            Some(word) => Err(Trouble::new(
                if word.atomic { "57" } else { "56" },
                format!("{} result words are not collected at the end", self.results.len()),
            )),
        }
    }

    pub(super) fn push(&mut self, value: Value, atomic: bool) -> Result<(), Trouble> {
        if self.results.len() >= self.share {
            return Err(Trouble::new("55", format!("more than {} result words outstanding", self.share)));
        }
        self.results.push_back(Word { value, atomic });
        Ok(())
    }
}

/// Lane numbers of a mask, in order.
pub(super) fn lanes_of(m: Mask) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |i| m >> i & 1 != 0)
}

/// The address of component `k` (section 12.2): 4.2 wraps inside the aligned 16 bytes.
fn component(version: Version, address: u32, k: usize) -> u32 {
    match version {
        Version::V42 => address & !15 | address.wrapping_add(4 * k as u32) & 15,
        Version::V71 => address.wrapping_add(4 * k as u32),
    }
}

/// The regions of memory with the last one remembered.
struct Cursor {
    region: usize,
    base: u32,
    len: usize,
}

impl Cursor {
    fn new() -> Cursor {
        Cursor { region: usize::MAX, base: 0, len: 0 }
    }

    /// Offset of an access in the region that the cursor then stands on.
    #[inline]
    fn find(&mut self, memory: &Memory, address: u32, bytes: u32) -> Option<usize> {
        let offset = address.wrapping_sub(self.base) as usize;
        if offset + bytes as usize <= self.len {
            return Some(offset);
        }
        let (region, offset) = memory.find(address, bytes)?;
        let r = &memory.regions()[region];
        *self = Cursor { region, base: r.base, len: r.bytes.len() };
        Some(offset)
    }
}

impl Thread {
    /// A write to tmua or tmuau: the operation starts.
    pub(super) fn tmu_start(&mut self, write: &Write, m: &mut Machine) -> Result<(), Trouble> {
        // A lane without sample flags does not start anything, whatever its condition.
        let unknown = write.maybe & self.covered;
        if unknown != 0 {
            return Err(Trouble::poison(write.flag_cause, unknown, "the condition of a TMU address"));
        }
        if self.tmu.coordinates.iter().any(Option::is_some) {
            return Err(Trouble::new("54", "coordinates at a general access"));
        }
        if let Some(&word) = self.tmu.words.last() {
            self.tmu.set_config(word);
        }
        let byte = self.tmu.config & 0xff;
        self.tmu.config = self.tmu.config >> 8 | 0xff00_0000;
        // Per pixel: enabled lanes with sample flags. Per quad: all lanes of the quads in which any lane is enabled,
        // helpers included, but nothing of dead quads.
        let enabled = write.lanes & self.covered;
        let live = whole_quads(self.covered);
        let per_pixel = byte & 0x80 != 0;
        let lanes = if per_pixel { enabled } else { whole_quads(write.lanes) & live };
        let access = Access::of(byte & 7);
        let data = std::mem::take(&mut self.tmu.data);
        let reference = self.tmu.reference.take();
        let offset = self.tmu.offset.take();
        let has_data = !data.is_empty() || reference.is_some();
        let Some(action) = action(byte >> 3 & 15, has_data) else {
            return Err(Trouble::new("54", format!("configuration byte {byte:#04x} names no TMU operation")));
        };
        if action == Action::Cache {
            return Ok(());
        }
        let undecided = whole_quads(write.maybe) & live & !lanes;
        if action != Action::Load && !per_pixel && undecided != 0 {
            return Err(Trouble::poison(write.flag_cause, undecided, "the condition of a TMU address"));
        }
        // Lanes that must be right; the other lanes of a quad only run along in a load.
        let needed = if action == Action::Load { enabled } else { lanes };
        let address = &write.value;
        if address.poison & needed != 0 {
            return Err(Trouble::poison(
                address.cause,
                address.poison & needed,
                "the address of a TMU operation",
            ));
        }
        let known = lanes & !address.poison;
        if let Some(i) = lanes_of(known & needed).find(|&i| !address.v[i].is_multiple_of(access.bytes)) {
            return Err(Trouble::lane(
                "69",
                i as u32,
                format!("address {:#x} is not aligned to {} bytes", address.v[i], access.bytes),
            ));
        }
        if self.tmu.version == Version::V42 && access.components > 1 {
            let last = 4 * (access.components as u32 - 1);
            if let Some(i) = lanes_of(known & needed).find(|&i| address.v[i] % 16 + last >= 16) {
                let message = format!("vector access at {:#x} wraps inside its 16 bytes", address.v[i]);
                m.warn(self, "67", message);
            }
        }
        match action {
            Action::Load => self.tmu_load(address, known, needed, access, m),
            Action::Store => self.tmu_store(address, lanes, access, &data, m),
            Action::Atomic(op) => {
                let (operand, expected) = match (op, data.as_slice(), &reference, &offset) {
                    (AtomicOp::CompareExchange, [expected, new], None, None) => (new, Some(expected)),
                    (AtomicOp::CompareExchange, [], Some(expected), Some(new)) => (new, Some(expected)),
                    (AtomicOp::CompareExchange, ..) => return Err(operands(op)),
                    (_, [operand], None, None) => (operand, None),
                    (_, [], Some(operand), None) => (operand, None),
                    _ => return Err(operands(op)),
                };
                // Two words for a compare and exchange through tmud, else one.
                let words = if data.len() == 2 { 2 } else { 1 };
                if access.bytes != 4 || access.components != words {
                    return Err(Trouble::new("54", "the type does not fit an atomic operation"));
                }
                self.tmu_atomic(address, lanes, op, operand, expected, m)
            }
            Action::Fixed(op, constant) => {
                if access.bytes != 4 || access.components != 1 {
                    return Err(Trouble::new("54", "the type does not fit an atomic operation"));
                }
                let operand = Operand { value: Value::splat(constant), lanes };
                self.tmu_atomic(address, lanes, op, &operand, None, m)
            }
            Action::Cache => Ok(()),
        }
    }

    /// Poison of a scratch word, or `None` outside of scratch. The access must stay in the thread's own block.
    fn scratch_word(&self, m: &Machine, address: u32, lane: usize) -> Result<Option<usize>, Trouble> {
        let Some(scratch) = m.scratch else { return Ok(None) };
        let offset = address.wrapping_sub(scratch.base);
        if offset as usize / 4 >= m.scratch_poison.len() {
            return Ok(None);
        }
        if offset / scratch.bytes_per_thread.max(1) != self.tidx {
            return Err(Trouble::lane(
                "memory",
                lane as u32,
                "access to the scratch memory of another thread",
            ));
        }
        Ok(Some(offset as usize / 4))
    }

    fn tmu_load(
        &mut self,
        address: &Value,
        lanes: Mask,
        needed: Mask,
        access: Access,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let mut cursor = Cursor::new();
        for k in 0..access.components {
            let mut v: Lanes = [0xdead_beef; LANES];
            let mut poison = !lanes;
            let mut cause = Cause::OffLane;
            for i in lanes_of(lanes) {
                let at = if access.components == 1 {
                    address.v[i]
                } else {
                    component(self.tmu.version, address.v[i], k)
                };
                let must = needed >> i & 1 != 0;
                match cursor.find(m.memory, at, access.bytes) {
                    Some(offset) => {
                        let bytes = m.memory.bytes(cursor.region);
                        v[i] = access.extend(read_le(bytes, offset, access.bytes) as u32);
                    }
                    None if must => {
                        let fault = m.memory.fault(at, access.bytes, false);
                        return Err(Trouble::lane("memory", i as u32, fault.to_string()));
                    }
                    None => poison |= 1 << i,
                }
                if m.is_undefined(at, access.bytes) {
                    poison |= 1 << i;
                    cause = Cause::Memory;
                }
                if !self.tmu.unwaited.is_empty() && self.tmu.unwaited.contains(&(at / 4)) {
                    if must {
                        return Err(unwaited(i, at));
                    }
                    poison |= 1 << i;
                }
                if m.scratch.is_some() {
                    match self.scratch_word(m, at, i) {
                        Ok(Some(word)) if m.scratch_poison[word] => {
                            poison |= 1 << i;
                            cause = Cause::Scratch;
                        }
                        Ok(_) => {}
                        Err(trouble) if must => return Err(trouble),
                        Err(_) => poison |= 1 << i,
                    }
                }
            }
            self.tmu.push(Value { v, poison, cause }, false)?;
        }
        Ok(())
    }

    fn tmu_store(
        &mut self,
        address: &Value,
        lanes: Mask,
        access: Access,
        data: &[Operand],
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let short = data.len() < access.components && !m.options.strict && self.tmu.version == Version::V71;
        if data.is_empty() || data.len() != access.components && !short {
            return Err(Trouble::new(
                "54",
                format!("store of {} words with {} writes of tmud", access.components, data.len()),
            ));
        }
        let mut cursor = Cursor::new();
        for i in lanes_of(lanes) {
            for (k, operand) in data.iter().enumerate() {
                let at = if access.components == 1 {
                    address.v[i]
                } else {
                    component(self.tmu.version, address.v[i], k)
                };
                let poison = (operand.value.poison | !operand.lanes) >> i & 1 != 0;
                let word = self.scratch_word(m, at, i)?;
                match word {
                    Some(word) => m.scratch_poison[word] = poison,
                    None if poison => {
                        let cause =
                            if operand.lanes >> i & 1 == 0 { Cause::Never } else { operand.value.cause };
                        // What breaks a rule stops the run; what is merely undefined may be kept in memory.
                        if !m.options.undefined_in_memory || cause.rule() != "undefined" {
                            return Err(Trouble::poison(cause, 1 << i, "the data of a store"));
                        }
                    }
                    None => {}
                }
                let found = cursor.find(m.memory, at, access.bytes);
                match found {
                    Some(offset) if m.memory.regions()[cursor.region].writable => {
                        let bytes = m.memory.bytes_mut(cursor.region);
                        write_le(bytes, offset, access.bytes, u64::from(operand.value.v[i]));
                    }
                    _ => {
                        let fault = m.memory.fault(at, access.bytes, true);
                        return Err(Trouble::lane("memory", i as u32, fault.to_string()));
                    }
                }
                if m.options.undefined_in_memory && word.is_none() {
                    m.set_undefined(at, access.bytes, poison);
                }
                if m.options.strict {
                    self.tmu.unwaited.insert(at / 4);
                }
            }
        }
        Ok(())
    }

    fn tmu_atomic(
        &mut self,
        address: &Value,
        lanes: Mask,
        op: AtomicOp,
        operand: &Operand,
        expected: Option<&Operand>,
        m: &mut Machine,
    ) -> Result<(), Trouble> {
        let mut v: Lanes = [0xdead_beef; LANES];
        for i in lanes_of(lanes) {
            let at = address.v[i];
            let word = |o: &Operand| {
                if (o.value.poison | !o.lanes) >> i & 1 != 0 {
                    let cause = if o.lanes >> i & 1 == 0 { Cause::Never } else { o.value.cause };
                    return Err(Trouble::poison(cause, 1 << i, "the operand of an atomic operation"));
                }
                Ok(u64::from(o.value.v[i]))
            };
            let data = word(operand)?;
            let comparison = expected.map_or(Ok(0), word)?;
            if self.tmu.unwaited.contains(&(at / 4)) {
                return Err(unwaited(i, at));
            }
            if let Some(word) = self.scratch_word(m, at, i)?
                && m.scratch_poison[word]
            {
                return Err(Trouble::poison(Cause::Scratch, 1 << i, "the operand of an atomic operation"));
            }
            if m.is_undefined(at, 4) {
                return Err(Trouble::poison(Cause::Memory, 1 << i, "the operand of an atomic operation"));
            }
            let fault = |f: kempe_ir::exec::Fault| Trouble::lane("memory", i as u32, f.to_string());
            let old = m.memory.read(at, 4).map_err(fault)?;
            v[i] = old as u32;
            let new = eval::atomic(op, Type::I32, old, data, comparison);
            m.memory.write(at, 4, new).map_err(fault)?;
        }
        self.tmu.push(Value { v, poison: !lanes, cause: Cause::OffLane }, true)
    }
}

#[cold]
fn operands(op: AtomicOp) -> Trouble {
    Trouble::new("54", format!("wrong number of operands for an atomic {op:?}"))
}

#[cold]
pub(super) fn unwaited(lane: usize, address: u32) -> Trouble {
    Trouble::lane(
        "12.2",
        lane as u32,
        format!("load at {address:#x} of what the thread stored without waiting (tmuwt)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_wrap_on_42_only() {
        let at = |version, address| [0, 1, 2, 3].map(|k| component(version, address, k));
        assert_eq!(at(Version::V42, 0x108), [0x108, 0x10c, 0x100, 0x104]);
        assert_eq!(at(Version::V71, 0x108), [0x108, 0x10c, 0x110, 0x114]);
        assert_eq!(component(Version::V42, 0xffff_fffc, 1), 0xffff_fff0);
    }
}
