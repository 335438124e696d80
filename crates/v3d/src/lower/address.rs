//! Addresses: `resource_addr`, `var_addr` and `lea` become sums of words.
//!
//! An address is kept as a running sum and a constant ([`Addr`]) until an access needs it: all accesses through
//! the same index share the sum, and the constant is added last, where selection can put the addition into the
//! write that starts the access. A constant that the index carries (`a[i + 1]`) goes into the constant as well:
//! addresses are taken modulo 2^32, so the distribution is exact.
//!
//! * Buffers: the sum starts with the address word of the driver.
//! * Shared variables: with the place of the work-group in the shared memory (reference section 12.6).
//! * Private variables: counted in scratch bytes, sixteen for each byte of the source, without the base: dword k
//!   of a lane is 64 * k behind the first one (reference section 12.6). The base is added at the access.
//! * Physical pointers: the low word of what the source holds in 64 bits; the chip's addresses have 32.
//! * Push constants: without the base, because accesses at a constant offset come from the uniform stream.

use super::emit::Once;
use super::{Addr, Lower, Rep, Result};
use kempe_ir::{Builtin, Imm, InstData, Op, Res, Space, Type, UniformWord, Value};

/// Scratch bytes for each byte of private memory: the dwords of 16 lanes lie side by side.
pub(super) const PRIVATE_SCALE: u32 = 16;

/// Most private bytes of an invocation: a mebibyte of scratch for each hardware thread.
const MAX_PRIVATE_BYTES: u32 = 1 << 16;

/// Longest chain of selects that an indexed array of resources becomes.
const MAX_RESOURCE_ELEMENTS: u32 = 32;

/// How many additions of a constant to an index are looked through.
const MAX_INDEX_STEPS: usize = 4;

/// The space that accesses are made in: a physical pointer is an address like those of buffers.
pub(super) fn machine_space(space: Space) -> Space {
    if space == Space::Global { Space::Storage } else { space }
}

impl Lower<'_> {
    /// A `const` of a pointer type, or an undefined pointer.
    pub fn literal_pointer(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let addr = match (inst.ty, inst.imm) {
            (Type::Ptr(space), Imm::Int(bits)) if inst.op == Op::Const => {
                self.literal_address(space, bits as u32)?
            }
            (Type::Ptr(space), _) if inst.op == Op::Undef => Addr::dynamic(space, self.e.i(0)),
            _ => return self.error("a constant without bits"),
        };
        self.set(r, Rep::Addr(addr));
        Ok(())
    }

    /// What a `const` of a pointer type means: an offset into its space.
    fn literal_address(&mut self, space: Space, at: u32) -> Result<Addr> {
        let sum = match space {
            Space::Private => return Ok(Addr { space, sum: None, offset: at.wrapping_mul(PRIVATE_SCALE) }),
            Space::Push => None,
            Space::Constant => Some(self.e.uniform(UniformWord::ConstantAddr)),
            Space::Shared => Some(self.shared_base()?),
            Space::Storage | Space::Uniform | Space::Global => Some(self.e.i(0)),
        };
        Ok(Addr { space: machine_space(space), sum, offset: at })
    }

    /// The machine address of an access; for private memory that of the dword at the scratch offset.
    pub fn machine_address(&mut self, a: Addr) -> Value {
        let sum = match a.space {
            Space::Private => {
                let base = self.private_base();
                match a.sum {
                    Some(sum) => self.e.add(base, sum),
                    None => base,
                }
            }
            Space::Push => {
                let base = self.e.uniform(UniformWord::PushAddr);
                match a.sum {
                    Some(sum) => self.e.add(base, sum),
                    None => base,
                }
            }
            _ => match a.sum {
                Some(sum) => sum,
                None => self.e.i(0),
            },
        };
        self.e.add_c(sum, a.offset)
    }

    /// The pointer operand of an access.
    pub fn addr_arg(&mut self, inst: &InstData, n: usize) -> Result<Addr> {
        let v = self.arg(inst, n)?;
        match self.rep(v)? {
            Rep::Addr(a) => Ok(Addr { space: machine_space(a.space), ..a }),
            _ => self.error(format!("`{}` through {v}, which is not a pointer", inst.op.name())),
        }
    }

    pub fn address(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let addr = match (inst.op, inst.imm) {
            (Op::ResourceAddr, Imm::Res(res)) => self.resource_addr(inst, res)?,
            (Op::VarAddr, Imm::Var(var)) => self.var_addr(var)?,
            (Op::Lea, Imm::Lea(l)) => {
                let base = self.addr_arg(inst, 0)?;
                let unit = if base.space == Space::Private { PRIVATE_SCALE } else { 1 };
                let mut addr = base.plus((l.offset as u32).wrapping_mul(unit));
                if let Some(&index) = inst.args.get(1) {
                    let scale = l.scale.wrapping_mul(unit);
                    let (index, constant) = self.split_index(index);
                    addr = addr.plus(constant.wrapping_mul(scale));
                    if let Some(index) = index {
                        let index = self.one(index)?;
                        let part = self.scaled(index, scale);
                        let sum = match addr.sum {
                            Some(sum) => self.e.add(sum, part),
                            None => part,
                        };
                        addr.sum = Some(sum);
                    }
                }
                addr
            }
            _ => return self.error(format!("`{}` without its immediate", inst.op.name())),
        };
        self.set(r, Rep::Addr(addr));
        Ok(())
    }

    /// An index times a size.
    fn scaled(&mut self, index: Value, scale: u32) -> Value {
        // A shifted index and a power of two give one shift; the emitter merges them.
        self.e.mul_c(index, scale)
    }

    /// Splits constants off an index: `i + 1` is `i` and 1.
    fn split_index(&self, mut index: Value) -> (Option<Value>, u32) {
        let mut constant = 0u32;
        for _ in 0..MAX_INDEX_STEPS {
            if let Some(c) = self.src.as_const(index) {
                return (None, constant.wrapping_add(c as u32));
            }
            let Some(def) = self.src.def_inst(index) else { break };
            let def = &self.src.insts[def];
            let c = |n: usize| def.args.get(n).and_then(|&a| self.src.as_const(a)).map(|c| c as u32);
            match (def.op, c(0), c(1)) {
                (Op::Iadd, _, Some(c)) => {
                    constant = constant.wrapping_add(c);
                    index = def.args[0];
                }
                (Op::Iadd, Some(c), _) => {
                    constant = constant.wrapping_add(c);
                    index = def.args[1];
                }
                (Op::Isub, _, Some(c)) => {
                    constant = constant.wrapping_sub(c);
                    index = def.args[0];
                }
                _ => break,
            }
        }
        (Some(index), constant)
    }

    fn resource_addr(&mut self, inst: &InstData, res: Res) -> Result<Addr> {
        let Some(space) = (match inst.ty {
            Type::Ptr(space) => Some(space),
            _ => None,
        }) else {
            return self.error("`resource_addr` without a pointer type");
        };
        if space == Space::Push {
            return Ok(Addr { space, sum: None, offset: 0 });
        }
        let sum = self.resource_word(inst, res, |res, element| UniformWord::BufferAddr { res, element })?;
        Ok(Addr { space, sum: Some(sum), offset: 0 })
    }

    pub fn resource_size(&mut self, inst: &InstData) -> Result<()> {
        let r = self.result(inst)?;
        let Imm::Res(res) = inst.imm else { return self.error("`resource_size` without its immediate") };
        let v = self.resource_word(inst, res, |res, element| UniformWord::BufferSize { res, element })?;
        self.set_one(r, v);
        Ok(())
    }

    /// A word of the driver for a resource, or for the element of an array of resources that the operand says.
    fn resource_word(
        &mut self,
        inst: &InstData,
        res: Res,
        word: impl Fn(Res, u32) -> UniformWord,
    ) -> Result<Value> {
        let Some(&index) = inst.args.first() else { return Ok(self.e.uniform(word(res, 0))) };
        if let Some(element) = self.src.as_const(index) {
            return Ok(self.e.uniform(word(res, element as u32)));
        }
        let elements = self.m.resources.get(res).map_or(0, |r| r.elements);
        if elements == 0 || elements > MAX_RESOURCE_ELEMENTS {
            return self.error(format!(
                "an array of {} resources is indexed with a variable: each is an address of its own, so it needs a size of at most {MAX_RESOURCE_ELEMENTS}",
                if elements == 0 { "an unknown number of".to_owned() } else { elements.to_string() }
            ));
        }
        let index = self.one(index)?;
        // The last element stands for everything beyond, which no valid program asks for.
        let mut v = self.e.uniform(word(res, elements - 1));
        for element in (0..elements - 1).rev() {
            let number = self.e.i(element);
            let this = self.e.ieq(index, number);
            let one = self.e.uniform(word(res, element));
            v = self.e.select(this, one, v);
        }
        Ok(v)
    }

    fn var_addr(&mut self, var: kempe_ir::Var) -> Result<Addr> {
        let Some(data) = self.m.vars.get(var) else {
            return self.error(format!("there is no variable {var}"));
        };
        match data.space {
            Space::Private => {
                let offset = match self.private_offsets[var.0 as usize] {
                    Some(offset) => offset,
                    None => {
                        // Only dwords are accessed (12.6), so no more than their alignment matters.
                        let offset = self.private_bytes;
                        let size = data.size as u64;
                        let end = offset as u64 + size.next_multiple_of(4);
                        if end > MAX_PRIVATE_BYTES as u64 {
                            return self.error(format!(
                                "the private variables take {end} bytes; at most {MAX_PRIVATE_BYTES} are supported"
                            ));
                        }
                        self.private_offsets[var.0 as usize] = Some(offset);
                        self.private_bytes = end as u32;
                        offset
                    }
                };
                Ok(Addr { space: Space::Private, sum: None, offset: offset * PRIVATE_SCALE })
            }
            Space::Shared => {
                let base = self.shared_base()?;
                let layout = self.shared_layout()?;
                Ok(Addr { space: Space::Shared, sum: Some(base), offset: layout.offsets[var] })
            }
            space => self.error(format!("a variable in {} memory", space.name())),
        }
    }

    fn shared_layout(&mut self) -> Result<&kempe_ir::exec::VarLayout> {
        if self.shared.is_none() {
            match kempe_ir::exec::variable_layout(self.m, Space::Shared) {
                Ok(layout) => self.shared = Some(layout),
                Err(message) => return self.error(message),
            }
        }
        match &self.shared {
            Some(layout) => Ok(layout),
            None => self.error("no layout of shared memory"),
        }
    }

    /// Start of the shared memory of this work-group: base + number in memory * size (reference section 12.6).
    fn shared_base(&mut self) -> Result<Value> {
        let bytes = self.shared_layout()?.bytes;
        let items = self.items;
        Ok(self.e.once(Once::SharedBase, |e| {
            let number = super::builtins::workgroup_in_memory(e, items);
            let base = e.uniform(UniformWord::SharedAddr);
            let offset = e.mul_c(number, bytes);
            e.add(base, offset)
        }))
    }

    /// Start of the private memory of this lane (reference section 12.6).
    fn private_base(&mut self) -> Value {
        self.e.once(Once::PrivateBase, |e| {
            let thread = e.builtin(Builtin::ThreadId);
            let size = e.uniform(UniformWord::ScratchBytesPerThread);
            let thread_offset = e.mul(thread, size);
            let lane = e.builtin(Builtin::LaneId);
            let lane_offset = e.shl_c(lane, 2);
            let base = e.uniform(UniformWord::ScratchAddr);
            let start = e.add(base, thread_offset);
            e.add(start, lane_offset)
        })
    }
}
