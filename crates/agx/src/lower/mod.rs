//! Lowering: from IR in source form to IR that instruction selection takes as it is.
//!
//! After this pass there are only bool, i32, f32 and pointers, i8 and i16 as what memory holds, and the operations that the
//! machine has or that selection expands to a fixed sequence. `kempe_words` does the arithmetic; here is what belongs to the
//! machine: addresses and accesses ([`memory`], [`address`]) and what an invocation knows of itself.
//!
//! Pointers stay typed, so the lowered module is still run by the interpreter as source form: a group of lanes by itself,
//! private memory a space of its own. That is what the machine does too (reference sections 1 and 5.6).
//!
//! Facts: reference sections 5, 6, 11.
//!
//! Left out, with an error that names the place: other stages than compute, images and textures, operations between lanes,
//! 64-bit and narrow atomics.

mod address;
mod memory;

pub use address::MAX_EXTRA_SHIFT;
use kempe_ir::exec::VarLayout;
use kempe_ir::{Builtin, Imm, InstData, Loc, Module, Op, Res, Space, Stage, Type, UniformWord, Value};
use kempe_words::emit::Known;
use kempe_words::{Has, Machine, Rep, Result, Words, WordsError};

/// Why a module cannot be lowered.
pub type LowerError = WordsError;

/// What the rest of the road must know of a lowered module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lowered {
    /// Byte offset in stack memory by private variable (`u32::MAX` for others).
    pub private_offsets: Vec<u32>,
    /// Private memory of one invocation in bytes, a multiple of 16.
    pub private_bytes: u32,
    /// Byte offset in threadgroup memory by shared variable (`u32::MAX` for others).
    pub shared_offsets: Vec<u32>,
    /// Shared memory of one work-group in bytes, a multiple of 16.
    pub shared_bytes: u32,
    /// Physical pointers are there, of which only the low words count.
    pub low_addresses: bool,
    /// How accesses to buffers got their addresses.
    pub addresses: AddressCounts,
}

/// How many accesses to buffers, and how many of them carry their whole address calculation behind the base.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AddressCounts {
    pub accesses: u32,
    /// The index goes in as it is, with its scale.
    pub whole: u32,
}

/// Most invocations of a work-group (reference section 1.2).
pub const MAX_WORKGROUP_ITEMS: u32 = 1024;

/// Most bytes of threadgroup memory (reference section 5.5: what the public driver exposes).
pub const MAX_SHARED_BYTES: u32 = 32768;

/// Most bytes of private variables: offsets of stack accesses have 16 bits where they are constant, and 4 KiB are kept
/// for spill slots (reference section 12.3).
pub const MAX_PRIVATE_BYTES: u32 = 61440;

/// Longest chain of selects that an indexed array of resources becomes.
const MAX_RESOURCE_ELEMENTS: u32 = 32;

/// What the machine computes in one operation (reference section 4.1).
const HAS: Has = Has {
    bits: true,
    high_products: true,
    umul24: false,
    sine: false,
    word_addresses: false,
    given: |imm| match imm {
        // A dispatch has at most 65535 work-groups by axis.
        Imm::Uniform(UniformWord::NumWorkgroups(_)) => Known::below(16),
        _ => Known::NOTHING,
    },
};

/// Lanes that hold private copies of tables; nothing is shared between lanes here.
const LANES: u32 = 32;

/// Brings a module into the lowered form; with `plain_addresses` byte offsets are computed whole. On error the module is left
/// without a body.
///
/// # Errors
/// What is not supported.
pub fn lower(m: &mut Module, plain_addresses: bool) -> Result<Lowered> {
    let fail = |message: String| Err(WordsError { message, loc: Loc(0), value: None });
    if m.stage != Stage::Compute {
        return fail("only compute shaders are supported on this target".to_owned());
    }
    let items = m.workgroup_size.iter().try_fold(1u32, |n, &s| n.checked_mul(s));
    if items.filter(|n| (1..=MAX_WORKGROUP_ITEMS).contains(n)).is_none() {
        let [x, y, z] = m.workgroup_size;
        return fail(format!(
            "a work-group of {x} x {y} x {z} invocations: 1 to {MAX_WORKGROUP_ITEMS} are supported"
        ));
    }
    if m.func.layout.is_empty() {
        return fail("the module has no body".to_owned());
    }
    match kempe_opt::double::run(m, LANES) {
        Ok(true) => tidy(m),
        Ok(false) => {}
        Err(e) => {
            let message = format!("{}: the hardware has no 64-bit floats", e.message);
            return Err(WordsError { message, loc: e.loc, value: None });
        }
    }
    let low_addresses = m.func.values.iter().any(|(_, v)| v.ty == Type::Ptr(Space::Global));
    let lower = Lower {
        workgroup_size: m.workgroup_size,
        elements: m.resources.values().map(|r| r.elements).collect(),
        plain_addresses,
        addresses: AddressCounts::default(),
    };
    let src = std::mem::take(&mut m.func);
    let mut walk = Walk { words: Words::new(&src, HAS), lower };
    kempe_words::run(&mut walk)?;
    let Walk { words, lower } = walk;
    m.func = words.finish();
    // Each part of an expansion is made where it is needed, so much is made twice and some for nothing.
    tidy(m);
    // (Variables that nothing names any more take no room.)
    kempe_opt::compact::run(m);
    let layout = |space| match kempe_ir::exec::variable_layout(m, space) {
        Ok(layout) => Ok(layout),
        Err(message) => Err(WordsError { message, loc: Loc(0), value: None }),
    };
    let (private, shared) = (layout(Space::Private)?, layout(Space::Shared)?);
    if shared.bytes > MAX_SHARED_BYTES {
        return fail(format!(
            "{} bytes of shared memory: at most {MAX_SHARED_BYTES} are supported",
            shared.bytes
        ));
    }
    if private.bytes > MAX_PRIVATE_BYTES {
        return fail(format!(
            "the private variables take {} bytes; at most {MAX_PRIVATE_BYTES} are supported",
            private.bytes
        ));
    }
    let offsets = |layout: &VarLayout| layout.offsets.iter().map(|(_, &at)| at).collect();
    Ok(Lowered {
        private_offsets: offsets(&private),
        private_bytes: private.bytes,
        shared_offsets: offsets(&shared),
        shared_bytes: shared.bytes,
        low_addresses,
        addresses: lower.addresses,
    })
}

fn tidy(m: &mut Module) {
    kempe_opt::fold::run(m);
    kempe_opt::gvn::run(m);
    kempe_opt::dce::run(m);
}

/// The machine's part of the walk.
struct Lower {
    workgroup_size: [u32; 3],
    /// Elements by resource.
    elements: Vec<u32>,
    plain_addresses: bool,
    addresses: AddressCounts,
}

/// With the walk itself.
struct Walk<'a> {
    words: Words<'a>,
    lower: Lower,
}

impl<'a> Machine<'a> for Walk<'a> {
    type Key = ();

    fn words(&mut self) -> &mut Words<'a> {
        &mut self.words
    }

    fn inst(&mut self, inst: &InstData) -> Result<bool> {
        self.lower.inst(&mut self.words, inst)
    }
}

impl Lower {
    fn inst(&mut self, w: &mut Words, inst: &InstData) -> Result<bool> {
        match inst.op {
            Op::Load => self.load(w, inst)?,
            Op::Store => self.store(w, inst)?,
            Op::Atomic => self.atomic(w, inst)?,
            Op::ResourceAddr => self.resource_addr(w, inst)?,
            Op::ResourceSize => self.resource_size(w, inst)?,
            Op::VarAddr | Op::Lea | Op::Uniform | Op::Barrier | Op::Fence => w.copy(inst)?,
            Op::Builtin => self.builtin(w, inst)?,
            Op::ImageLoad
            | Op::ImageStore
            | Op::ImageAtomic
            | Op::ImageSize
            | Op::ImageLevels
            | Op::Sample
            | Op::SampleImplicit => {
                return w.error(format!(
                    "`{}`: images and textures are not supported on this target",
                    inst.op.name()
                ));
            }
            Op::Elect
            | Op::VoteAny
            | Op::VoteAll
            | Op::VoteEq
            | Op::Ballot
            | Op::BroadcastFirst
            | Op::Shuffle
            | Op::Reduce => {
                return w.error(format!(
                    "`{}`: operations between lanes are not supported on this target",
                    inst.op.name()
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same for each element of an array of resources, where a variable chooses.
    fn by_element(
        &self,
        w: &mut Words,
        inst: &InstData,
        res: Res,
        one: impl Fn(&mut Words, u32) -> Value,
    ) -> Result<Value> {
        let Some(&index) = inst.args.first() else { return Ok(one(w, 0)) };
        if let Some(element) = w.src.as_const(index) {
            return Ok(one(w, element as u32));
        }
        let elements = self.elements.get(res.0 as usize).copied().unwrap_or(0);
        if elements == 0 || elements > MAX_RESOURCE_ELEMENTS {
            return w.error(format!(
                "an array of {} resources is indexed with a variable: each is an address of its own, so it needs a size of at most {MAX_RESOURCE_ELEMENTS}",
                if elements == 0 { "an unknown number of".to_owned() } else { elements.to_string() }
            ));
        }
        let index = w.one(index)?;
        // The last element stands for everything beyond, which no valid program asks for.
        let mut v = one(w, elements - 1);
        for element in (0..elements - 1).rev() {
            let number = w.e.i(element);
            let this = w.e.ieq(index, number);
            let value = one(w, element);
            v = w.e.select(this, value, v);
        }
        Ok(v)
    }

    fn resource_addr(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let Imm::Res(res) = inst.imm else { return w.error("`resource_addr` without its immediate") };
        let r = w.result(inst)?;
        let (ty, imm, array) = (inst.ty, inst.imm, !inst.args.is_empty());
        let v = self.by_element(w, inst, res, |w, element| {
            if array {
                let element = w.e.i(element);
                w.e.one(Op::ResourceAddr, ty, kempe_ir::Flags::NONE, imm, &[element])
            } else {
                w.e.leaf(Op::ResourceAddr, ty, imm)
            }
        })?;
        w.set_one(r, v);
        Ok(())
    }

    fn resource_size(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let Imm::Res(res) = inst.imm else { return w.error("`resource_size` without its immediate") };
        let r = w.result(inst)?;
        let v = self
            .by_element(w, inst, res, |w, element| w.e.uniform(UniformWord::BufferSize { res, element }))?;
        w.set_one(r, v);
        Ok(())
    }

    fn builtin(&mut self, w: &mut Words, inst: &InstData) -> Result<()> {
        let Imm::Builtin(b) = inst.imm else { return w.error("`builtin` without its immediate") };
        let r = w.result(inst)?;
        let below = |n: u32| Known::below(u32::BITS - n.saturating_sub(1).leading_zeros());
        let [x, y, z] = self.workgroup_size;
        let v = match b {
            Builtin::LocalInvocationId(c) => {
                let size = self.workgroup_size.get(usize::from(c)).copied().unwrap_or(1);
                if size == 1 {
                    w.e.i(0)
                } else {
                    let v = w.e.builtin(b);
                    w.e.set_known(v, below(size));
                    v
                }
            }
            Builtin::LocalInvocationIndex => {
                let v = w.e.builtin(b);
                w.e.set_known(v, below(x * y * z));
                v
            }
            Builtin::WorkgroupId(_) => {
                let v = w.e.builtin(b);
                // A dispatch has at most 65535 work-groups by axis.
                w.e.set_known(v, Known::below(16));
                v
            }
            Builtin::NumWorkgroups(c) => w.e.uniform(UniformWord::NumWorkgroups(c)),
            _ => {
                return w.error("subgroups and their lanes are not supported on this target");
            }
        };
        w.set(r, Rep::One(v));
        Ok(())
    }
}
