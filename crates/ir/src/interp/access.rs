//! Memory as the interpreter sees it: flat memory and private memory, with a shadow that says which bytes were written.

use super::decode::{PRIVATE_BASE, Program, Root};
use crate::exec::{Environment, Fault, Memory, read_le, write_le};
use crate::module::ResKind;
use crate::types::Space;

/// Private memory of the lanes of a batch.
#[derive(Clone)]
pub(super) struct Private {
    /// Bytes of one lane.
    size: u32,
    /// Lane by lane.
    bytes: Vec<u8>,
    defined: Vec<bool>,
}

impl Private {
    pub fn new(size: u32, lanes: usize) -> Private {
        let total = size as usize * lanes;
        Private { size, bytes: vec![0; total], defined: vec![false; total] }
    }
}

/// Memory during a run.
pub(super) struct State {
    pub memory: Memory,
    /// By region: which bytes were written, for memory that starts undefined.
    defined: Vec<Option<Vec<bool>>>,
    shared_region: Option<usize>,
    /// First byte and size by resource, element 0.
    resources: Vec<(u32, u32)>,
    /// Offset and size by variable.
    vars: Vec<(u32, u32)>,
    private_vars: Vec<bool>,
}

/// A place that an access was found to mean.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Flat(usize, usize),
    Private(usize),
}

impl Place {
    pub fn add(self, bytes: u32) -> Place {
        match self {
            Place::Flat(r, o) => Place::Flat(r, o + bytes as usize),
            Place::Private(o) => Place::Private(o + bytes as usize),
        }
    }
}

impl State {
    pub fn new(program: &Program, env: &Environment) -> State {
        let memory = env.memory.clone();
        let mut defined = vec![None; memory.regions().len()];
        let shared_region = memory.region_at(env.shared_base);
        for base in [env.shared_base, env.scratch_base] {
            if let Some(r) = memory.region_at(base) {
                defined[r] = Some(vec![false; memory.bytes(r).len()]);
            }
        }
        let resources = program.module.resources.iter().map(|(id, r)| match r.kind {
            ResKind::PushConstants => {
                let size = memory.region_at(env.push_base).map_or(0, |r| memory.bytes(r).len() as u32);
                (env.push_base, size)
            }
            _ => env.resource(id, 0),
        });
        let vars = program.module.vars.iter().map(|(id, v)| {
            let offset = program.private.offsets[id];
            (if offset == u32::MAX { env.shared.offsets[id] } else { offset }, v.size)
        });
        State {
            defined,
            shared_region,
            resources: resources.collect(),
            vars: vars.collect(),
            private_vars: program.module.vars.values().map(|v| v.space == Space::Private).collect(),
            memory,
        }
    }

    /// Shared memory starts undefined in every work-group (or supergroup).
    pub fn forget_shared(&mut self) {
        if let Some(d) = self.shared_region.and_then(|r| self.defined[r].as_mut()) {
            d.fill(false);
        }
    }

    /// Address and size of a resource, push constants included.
    pub fn resource(&self, res: crate::module::Res) -> (u32, u32) {
        self.resources.get(res.0 as usize).copied().unwrap_or((0, 0))
    }

    /// Finds `bytes` at an address. `shared_start` is the shared memory of the lane's work-group.
    #[inline]
    pub fn place(
        &self,
        root: Root,
        address: u32,
        bytes: u32,
        lane: usize,
        private: &Private,
        shared_start: u32,
    ) -> Option<Place> {
        let flat = |limits: (u32, u32)| {
            let offset = address.wrapping_sub(limits.0);
            if offset.checked_add(bytes)? > limits.1 {
                return None;
            }
            self.memory.find(address, bytes).map(|(r, o)| Place::Flat(r, o))
        };
        match root {
            Root::Any => self.memory.find(address, bytes).map(|(r, o)| Place::Flat(r, o)),
            Root::Res(r) => flat(self.resources[r.0 as usize]),
            Root::Var(v) => {
                let (offset, size) = self.vars[v.0 as usize];
                if self.is_private(v) {
                    let start = PRIVATE_BASE.wrapping_add(offset);
                    let end = address.wrapping_sub(start).checked_add(bytes)?;
                    (end <= size).then_some(())?;
                    Some(private_place(private, address, bytes, lane)?)
                } else {
                    flat((shared_start.wrapping_add(offset), size))
                }
            }
            Root::Private => private_place(private, address, bytes, lane),
        }
    }

    fn is_private(&self, v: crate::module::Var) -> bool {
        self.private_vars.get(v.0 as usize).copied().unwrap_or(false)
    }

    /// The error for an access that was not found, or that may not be written.
    #[cold]
    pub fn fault(&self, root: Root, address: u32, bytes: u32, write: bool, private: &Private) -> Fault {
        let in_private = match root {
            Root::Private => true,
            Root::Var(v) => self.is_private(v),
            _ => false,
        };
        let mut fault = self.memory.fault(address, bytes, write);
        if in_private {
            let offset = address as i64 - PRIVATE_BASE as i64;
            fault.nearest = Some(("private memory".to_owned(), offset, private.size));
            fault.read_only = false;
            return fault;
        }
        let there = self.memory.find(address, bytes);
        fault.read_only = write && there.is_some_and(|(r, _)| !self.memory.regions()[r].writable);
        // The buffer that the address was derived from says more than the closest one.
        if let Root::Res(res) = root {
            let (base, size) = self.resource(res);
            if let Some(r) = self.memory.region_at(base) {
                let name = self.memory.regions()[r].name.clone();
                fault.nearest = Some((name, address as i64 - base as i64, size));
            }
        }
        fault
    }

    #[inline]
    pub fn read(&self, place: Place, bytes: u32, private: &Private) -> (u64, bool) {
        match place {
            Place::Flat(r, o) => {
                let poison = match &self.defined[r] {
                    Some(d) => !d[o..o + bytes as usize].iter().all(|&x| x),
                    None => false,
                };
                (read_le(self.memory.bytes(r), o, bytes), poison)
            }
            Place::Private(o) => {
                let poison = !private.defined[o..o + bytes as usize].iter().all(|&x| x);
                (read_le(&private.bytes, o, bytes), poison)
            }
        }
    }

    /// Writes; false when the place is read-only.
    #[inline]
    pub fn write(
        &mut self,
        place: Place,
        bytes: u32,
        value: u64,
        poison: bool,
        private: &mut Private,
    ) -> bool {
        match place {
            Place::Flat(r, o) => {
                if !self.memory.regions()[r].writable {
                    return false;
                }
                if let Some(d) = &mut self.defined[r] {
                    d[o..o + bytes as usize].fill(!poison);
                }
                write_le(self.memory.bytes_mut(r), o, bytes, value);
            }
            Place::Private(o) => {
                private.defined[o..o + bytes as usize].fill(!poison);
                write_le(&mut private.bytes, o, bytes, value);
            }
        }
        true
    }
}

#[inline]
fn private_place(private: &Private, address: u32, bytes: u32, lane: usize) -> Option<Place> {
    let offset = address.wrapping_sub(PRIVATE_BASE);
    if offset.checked_add(bytes)? > private.size {
        return None;
    }
    Some(Place::Private(lane * private.size as usize + offset as usize))
}
