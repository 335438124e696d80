//! Lowering: from IR in source form to IR that instruction selection takes as it is.
//!
//! After this pass there are only the types bool, i32 and f32 and the operations that the machine has (or that
//! selection expands to a fixed sequence); [`check()`] states the form. The walk and the arithmetic are those of [`kempe_words`];
//! here is what belongs to the machine. Pointers are words, kept as a sum and a constant until an access.
//!
//! * [`emit`]: instructions of the machine, what is computed once, what is known of the words that it is given
//! * [`address`], [`memory`]: addresses, loads, stores, atomics
//! * [`images`]: texels and sizes of images; [`samples`]: lookups through samplers; [`elements`]: arrays of
//!   them
//! * [`builtins`]: what an invocation knows of itself, and the start state that this is read from
//! * [`stages`]: inputs and outputs of graphics programs; [`exits`]: the one place where they end
//! * [`primitives`]: rows of vertices and patches; [`vertices`]: what a geometry program gives
//! * [`lanes`]: subgroup operations; [`share`]: may work-groups share batches; [`check()`]: the form that is left
//!
//! Facts: reference sections 6.4, 6.5, 12.2, 12.5, 12.6, 13.5; in our words in docs/isa/v3d.md.
//!
//! 64-bit floats are 64-bit integers when the walk begins (`kempe_opt::double`).
//!
//! Left out: 64-bit atomics, which give an error that names the place.

mod address;
mod builtins;
mod check;
mod elements;
mod emit;
mod exits;
mod images;
mod lanes;
mod memory;
mod primitives;
mod samples;
mod share;
pub mod stages;
mod vertices;

#[cfg(test)]
mod tests;

use crate::instr::Version;
pub use builtins::{StartWords, payload_word};
pub use check::check;
use emit::Once;
use kempe_ir::{
    Function, Imm, Inst, InstData, Loc, Module, Op, Space, Stage, Target, Term, Type, UniformWord, Value,
};
use kempe_words::{Addr, Half, Has, Machine, Origin, Rep, Result, Words, WordsError};
use smallvec::SmallVec;
pub use stages::Shape;
use std::ops::{Deref, DerefMut};

/// Why a module cannot be lowered.
pub type LowerError = WordsError;

/// What the rest of the road must know of a lowered module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lowered {
    /// Private memory of one invocation in bytes, a multiple of 4. Spill slots come behind it. A hardware thread
    /// needs 16 times as much scratch.
    pub private_bytes: u32,
    /// Shared memory of one work-group in bytes, a multiple of 16.
    pub shared_bytes: u32,
    /// Several work-groups may run in one supergroup and share batches.
    pub may_share_batches: bool,
    /// Physical pointers are there, of which only the low words count.
    pub low_addresses: bool,
    /// What is right as code but will not work as it stands.
    pub warnings: Vec<String>,
    /// Of programs of graphics stages.
    pub graphics: Option<kempe_mir::Graphics>,
}

/// Most invocations of a work-group that the chip starts (reference section 13.6: an 8-bit field where 256 is 0).
pub const MAX_DISPATCHED_ITEMS: u32 = 256;

/// Most invocations of a work-group that are compiled. The payload has room for them and the code is right, but
/// beyond [`MAX_DISPATCHED_ITEMS`] nobody can start it, so there is a warning. Many programs set the size by a
/// specialisation constant: they can be looked at as they are.
pub const MAX_WORKGROUP_ITEMS: u32 = 1024;

/// What the machine computes in one operation, and what its pointers are (reference sections 6.4, 6.5, 12.5).
const HAS: Has = Has {
    bits: false,
    high_products: false,
    umul24: true,
    sine: true,
    word_addresses: true,
    given: emit::given,
};

/// Brings a module into the lowered form. On error the module is left without a body.
pub fn lower(m: &mut Module, version: Version, shape: &Shape) -> Result<Lowered> {
    let fail = |message: String| Err(LowerError { message, loc: Loc(0), value: None });
    let items = m.workgroup_size.iter().try_fold(1u32, |n, &s| n.checked_mul(s));
    let Some(items) = items.filter(|n| (1..=MAX_WORKGROUP_ITEMS).contains(n)) else {
        let [x, y, z] = m.workgroup_size;
        return fail(format!(
            "a work-group of {x} x {y} x {z} invocations: 1 to {MAX_WORKGROUP_ITEMS} are supported"
        ));
    };
    let mut warnings = Vec::new();
    if items > MAX_DISPATCHED_ITEMS {
        warnings.push(format!(
            "a work-group of {items} invocations cannot be started: the hardware runs at most {MAX_DISPATCHED_ITEMS}"
        ));
    }
    if m.func.layout.is_empty() {
        return fail("the module has no body".to_owned());
    }
    match kempe_opt::double::run(m, lanes::LANES) {
        // What the parts of neighbouring operations have in common is made once.
        Ok(true) => {
            kempe_opt::fold::run(m);
            kempe_opt::gvn::run(m);
            kempe_opt::dce::run(m);
        }
        Ok(false) => {}
        Err(e) => {
            let message = format!("{}: the hardware has no 64-bit floats", e.message);
            return Err(LowerError { message, loc: e.loc, value: None });
        }
    }
    let low_addresses = m.func.values.iter().any(|(_, v)| v.ty == Type::Ptr(Space::Global));
    let graphics = m.stage != Stage::Compute;
    if graphics {
        if shape.binning && m.stage.takes_primitives() {
            primitives::positions_only(m);
        }
        match m.stage {
            Stage::Geometry => vertices::run(m),
            // They give what they give where it stands.
            Stage::TessControl => {
                kempe_opt::ssa::run(m);
            }
            _ => exits::run(m),
        }
    }
    let src = std::mem::take(&mut m.func);
    let mut l = Lower::new(m, &src, version, items);
    l.shape = *shape;
    if l.m.stage.takes_primitives() {
        l.start_primitives()?;
    }
    l.control = l.control();
    kempe_words::run(&mut l)?;
    let mut known = kempe_mir::Graphics::default();
    if l.m.stage.takes_primitives() {
        l.primitive_facts(&mut known);
    }
    known.output_rows = std::mem::take(&mut l.rows);
    let (func, private_bytes, shared_bytes) = l.finish();
    m.func = func;
    // Each part of an expansion is made where it is needed, so much is made twice and some for nothing.
    kempe_opt::fold::run(m);
    kempe_opt::gvn::run(m);
    kempe_opt::dce::run(m);
    // No variable is named any more, but whoever runs the module must know the shared ones.
    let vars = std::mem::take(&mut m.vars);
    kempe_opt::compact::run(m);
    m.vars = vars;
    debug_assert_eq!(check(m), Ok(()));
    let may_share_batches = !graphics && share::may_share_batches(m);
    let graphics = match graphics {
        true => match stages::facts(m, shape, known) {
            Ok(facts) => Some(facts),
            Err(message) => return fail(message),
        },
        false => None,
    };
    Ok(Lowered { private_bytes, shared_bytes, may_share_batches, low_addresses, warnings, graphics })
}

/// The walk, and what the machine knows on it.
struct Lower<'a> {
    words: Words<'a, Once>,
    m: &'a Module,
    version: Version,
    /// Invocations per work-group.
    items: u32,
    /// Byte offset by variable (private or shared), given on first use for private ones.
    private_offsets: Vec<Option<u32>>,
    private_bytes: u32,
    shared: Option<kempe_ir::exec::VarLayout>,
    /// Where all lanes run together, if there are operations between lanes.
    control: Option<kempe_ir::divergence::Divergence>,
    shape: Shape,
    /// What the program gives when it returns.
    outputs: std::collections::BTreeMap<(kempe_ir::io::Slot, u8), Value>,
    /// What the rows of a vertex program's outputs hold, or those of each vertex that the program gives.
    rows: Vec<kempe_mir::VertexRow>,
    /// Of geometry and tessellation.
    interface: primitives::Interface,
}

impl<'a> Deref for Lower<'a> {
    type Target = Words<'a, Once>;

    fn deref(&self) -> &Words<'a, Once> {
        &self.words
    }
}

impl<'a> DerefMut for Lower<'a> {
    fn deref_mut(&mut self) -> &mut Words<'a, Once> {
        &mut self.words
    }
}

impl<'a> Lower<'a> {
    fn new(m: &'a Module, src: &'a Function, version: Version, items: u32) -> Lower<'a> {
        Lower {
            words: Words::new(src, HAS),
            m,
            version,
            items,
            private_offsets: vec![None; m.vars.len()],
            private_bytes: 0,
            shared: None,
            control: None,
            shape: Shape::default(),
            outputs: Default::default(),
            rows: Vec::new(),
            interface: Default::default(),
        }
    }

    fn finish(self) -> (Function, u32, u32) {
        let shared_bytes = self.shared.as_ref().map_or(0, |s| s.bytes);
        (self.words.finish(), self.private_bytes, shared_bytes)
    }

    /// A difference in the quad; of halves in f32, which rounds the same.
    fn derivative(&mut self, inst: &InstData) -> Result<()> {
        if inst.ty != Type::F16 {
            return self.copy(inst);
        }
        let r = self.result(inst)?;
        let Rep::Half(h) = self.rep(self.arg(inst, 0)?)? else {
            return self.error("a derivative of something that is no float");
        };
        let v = self.e.float(inst.op, &[h.exact]);
        let rep = Rep::Half(self.half_of_float(v));
        self.set(r, rep);
        Ok(())
    }

    /// A word of the driver that the source form names already, as a word or as a pointer.
    fn uniform(&mut self, inst: &InstData) -> Result<()> {
        let (r, Imm::Uniform(word)) = (self.result(inst)?, inst.imm) else {
            return self.error("`uniform` without its immediate");
        };
        let v = self.e.uniform(word);
        let rep = match (inst.ty, word) {
            (Type::I32, _) => Rep::One(v),
            (Type::F32, _) => Rep::One(self.e.bitcast(Type::F32, v)),
            // Push constants and private memory are addressed without their base (see `address`).
            (Type::Ptr(Space::Push), UniformWord::PushAddr) => {
                Rep::Addr(Addr { space: Space::Push, sum: None, offset: 0 })
            }
            (Type::Ptr(space @ Space::Constant), UniformWord::ConstantAddr)
            | (Type::Ptr(space @ (Space::Storage | Space::Uniform)), UniformWord::BufferAddr { .. }) => {
                Rep::Addr(Addr::dynamic(space, v))
            }
            (ty, _) => return self.error(format!("this word of the driver cannot be of type {ty}")),
        };
        self.set(r, rep);
        Ok(())
    }
}

impl<'a> Machine<'a> for Lower<'a> {
    type Key = Once;

    fn words(&mut self) -> &mut Words<'a, Once> {
        &mut self.words
    }

    fn inst(&mut self, inst: &InstData) -> Result<bool> {
        match inst.op {
            Op::Const | Op::Undef if matches!(inst.ty, Type::Ptr(_)) => self.literal_pointer(inst),
            Op::ResourceAddr | Op::VarAddr | Op::Lea => self.address(inst),
            Op::ResourceSize => self.resource_size(inst),
            Op::Load => self.load(inst),
            Op::Store => self.store(inst),
            Op::Atomic => self.atomic(inst),
            Op::Uniform => self.uniform(inst),
            Op::ImageLoad | Op::ImageStore | Op::ImageAtomic | Op::ImageSize | Op::ImageLevels => {
                self.image(inst)
            }
            Op::Sample | Op::SampleImplicit => self.sample(inst),
            Op::Barrier if self.m.stage == Stage::TessControl => self.patch_barrier(inst),
            Op::Barrier | Op::Fence | Op::Payload => self.copy(inst),
            Op::Builtin => self.builtin(inst),
            Op::Input | Op::ReadOutput if self.m.stage.takes_primitives() => self.input_row(inst),
            Op::Output if self.m.stage == Stage::TessControl => self.control_output(inst),
            Op::EmitVertex => self.emit_vertex(inst),
            Op::Input => self.input(inst),
            Op::Output => self.output(inst),
            Op::Demote | Op::IsHelper => self.copy(inst),
            Op::Ddx | Op::Ddy => self.derivative(inst),
            Op::Elect
            | Op::VoteAny
            | Op::VoteAll
            | Op::VoteEq
            | Op::Ballot
            | Op::BroadcastFirst
            | Op::Shuffle
            | Op::Reduce => self.lanes(inst),
            _ => return Ok(false),
        }?;
        Ok(true)
    }

    fn leave(&mut self) -> Result<()> {
        self.give_outputs()
    }
}
