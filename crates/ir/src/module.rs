//! Modules, functions, blocks, instructions.
//!
//! # Order is structure
//! The blocks of a function stand in an order ([`Function::layout`]) that carries the structure of the program:
//!
//! 1. the entry is first and has no predecessors;
//! 2. every edge goes to a later block, except *back edges*, which go to a loop header;
//! 3. the blocks of a loop are contiguous: its header, then everything up to the last block with a back edge to
//!    it; the loop is entered only through its header;
//! 4. every block is reachable.
//!
//! That is all a linear machine needs to run divergent code: lanes that left the walk wait for a later block. It
//! also means that dominance and loop nesting are one pass over the order, and that `switch`, multi-level breaks
//! and early returns need no special form.

use crate::entity;
use crate::entity::Arena;
use crate::image::{Axis, ImageInfo};
use crate::io::{FragmentModes, IoImm};
use crate::ops::Op;
use crate::primitive::PrimitiveModes;
use crate::sample::SampleImm;
use crate::types::{Space, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;

entity! {
    /// An SSA value: a result of an instruction or a block parameter.
    Value = "%";
    /// An instruction.
    Inst = "i";
    /// A basic block.
    Block = "b";
    /// A variable in private or shared memory.
    Var = "$";
    /// A resource: buffer, push constant block, image.
    Res = "@";
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Result number `.1` of an instruction.
    Inst(Inst, u16),
    /// Parameter number `.1` of a block.
    Param(Block, u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueData {
    pub ty: Type,
    pub def: ValueDef,
}

/// Facts an instruction may carry, as a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash, PartialOrd, Ord)]
pub struct Flags(pub u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// The exact signed result fits.
    pub const NO_SIGNED_WRAP: Flags = Flags(1);
    /// The exact unsigned result fits.
    pub const NO_UNSIGNED_WRAP: Flags = Flags(2);
    /// Must not be fused or reassociated with others.
    pub const NO_CONTRACTION: Flags = Flags(4);
    /// 16-bit precision is enough.
    pub const RELAXED: Flags = Flags(8);
    /// NaN, infinities and the sign of zero do not matter.
    pub const FAST: Flags = Flags(16);

    pub fn has(self, f: Flags) -> bool {
        self.0 & f.0 == f.0
    }

    pub fn with(self, f: Flags) -> Flags {
        Flags(self.0 | f.0)
    }
}

/// Index into [`Module::locs`] plus one; 0 is "unknown".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash, PartialOrd, Ord)]
pub struct Loc(pub u32);

/// A place in the source text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// Index into [`Module::files`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// The immediate part of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Imm {
    None,
    /// Bits of a constant (upper bits zero), or a payload number.
    Int(u64),
    Lea(LeaImm),
    Mem(MemImm),
    Atomic(AtomicImm),
    Var(Var),
    Res(Res),
    Builtin(Builtin),
    Uniform(UniformWord),
    Barrier(BarrierImm),
    Reduce(ReduceImm),
    Image(ImageImm),
    Io(IoImm),
    Sample(SampleImm),
    /// The stream of a geometry shader.
    Stream(u8),
}

/// `base + index * scale + offset`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeaImm {
    pub scale: u32,
    pub offset: i32,
}

/// Facts of a load or a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemImm {
    pub space: Space,
    /// Number of consecutive components, 1 to 16 (a target lowers it to what it can do).
    pub count: u8,
    /// The address is a multiple of this power of two (bytes).
    pub align: u32,
    /// Must happen as written, in order with other volatile accesses.
    pub volatile: bool,
    /// Nothing that the program writes can be seen by it.
    pub read_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    Add,
    Sub,
    Exchange,
    CompareExchange,
    Umin,
    Umax,
    Smin,
    Smax,
    And,
    Or,
    Xor,
    /// Plain atomic load (no data operand).
    Load,
    /// Plain atomic store (no useful result).
    Store,
    /// On floats.
    Fadd,
    Fmin,
    Fmax,
}

impl AtomicOp {
    /// What it computes, if it computes with floats.
    pub fn float(self) -> Option<Op> {
        match self {
            AtomicOp::Fadd => Some(Op::Fadd),
            AtomicOp::Fmin => Some(Op::Fmin),
            AtomicOp::Fmax => Some(Op::Fmax),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AtomicImm {
    pub op: AtomicOp,
    pub space: Space,
}

/// What the operands or results of an image access are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TexelForm {
    /// Components of a colour: f32 or i32 as the image declares.
    Color,
    /// Stores of a lowered program: the words of the texel in the format of the image ([`ImageInfo::storage_format`]).
    Words,
    /// Loads of a lowered program from a format of 16-bit floats: red and green, then blue and alpha, two halves a word.
    Halves,
}

/// An access to an image. Operands: the element of an array of resources if `element`, the coordinates
/// ([`ImageInfo::coordinates`]), the level of detail if `lod`, then data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageImm {
    pub res: Res,
    pub form: TexelForm,
    /// Of a load: bit k is set when component (or word) k is a result; results stand in this order.
    pub mask: u8,
    /// Of an atomic: what it does.
    pub atomic: Option<AtomicOp>,
    pub element: bool,
    pub lod: bool,
    /// Must happen as written, in order with other volatile accesses.
    pub volatile: bool,
}

impl ImageImm {
    pub fn new(res: Res) -> ImageImm {
        ImageImm {
            res,
            form: TexelForm::Color,
            mask: 0,
            atomic: None,
            element: false,
            lod: false,
            volatile: false,
        }
    }
}

/// Built-ins of the source languages; 3-component ones by component.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Builtin {
    LocalInvocationId(u8),
    LocalInvocationIndex,
    WorkgroupId(u8),
    NumWorkgroups(u8),
    SubgroupSize,
    SubgroupLocalId,
    SubgroupId,
    NumSubgroups,
    /// Number of the lane in the hardware vector.
    LaneId,
    /// Number of the hardware thread.
    ThreadId,
    // Vertex shaders: i32.
    VertexIndex,
    InstanceIndex,
    BaseVertex,
    BaseInstance,
    DrawIndex,
    // Fragment shaders.
    /// Position on the screen: x, y, z, 1 / w (f32).
    FragCoord(u8),
    /// bool.
    FrontFacing,
    /// Place in a point sprite, x and y (f32).
    PointCoord(u8),
    /// i32, as the next two.
    SampleId,
    /// Samples that the fragment covers, a bit each.
    SampleMaskIn,
    PrimitiveId,
    /// Samples in a pixel.
    SampleCount,
    /// Place of the sample in its pixel, x and y (f32).
    SamplePosition(u8),
    // Geometry and tessellation.
    /// Number of the invocation among those of its primitive or patch; i32, as the next.
    InvocationId,
    /// Vertices of a patch that the stage is given.
    PatchVertices,
    /// Place of the point in its patch, x, y, z (f32).
    TessCoord(u8),
}

impl Builtin {
    /// The type of the value.
    pub fn ty(self) -> Type {
        match self {
            Builtin::FragCoord(_)
            | Builtin::PointCoord(_)
            | Builtin::SamplePosition(_)
            | Builtin::TessCoord(_) => Type::F32,
            Builtin::FrontFacing => Type::Bool,
            _ => Type::I32,
        }
    }

    /// Of what has components: the first one, which one it is, and how many there are.
    pub fn component(self) -> Option<(Builtin, u8, u8)> {
        Some(match self {
            Builtin::LocalInvocationId(c) => (Builtin::LocalInvocationId(0), c, 3),
            Builtin::WorkgroupId(c) => (Builtin::WorkgroupId(0), c, 3),
            Builtin::NumWorkgroups(c) => (Builtin::NumWorkgroups(0), c, 3),
            Builtin::FragCoord(c) => (Builtin::FragCoord(0), c, 4),
            Builtin::PointCoord(c) => (Builtin::PointCoord(0), c, 2),
            Builtin::SamplePosition(c) => (Builtin::SamplePosition(0), c, 2),
            Builtin::TessCoord(c) => (Builtin::TessCoord(0), c, 3),
            _ => return None,
        })
    }

    /// Another component of the same.
    pub fn with_component(self, c: u8) -> Builtin {
        match self {
            Builtin::LocalInvocationId(_) => Builtin::LocalInvocationId(c),
            Builtin::WorkgroupId(_) => Builtin::WorkgroupId(c),
            Builtin::NumWorkgroups(_) => Builtin::NumWorkgroups(c),
            Builtin::FragCoord(_) => Builtin::FragCoord(c),
            Builtin::PointCoord(_) => Builtin::PointCoord(c),
            Builtin::SamplePosition(_) => Builtin::SamplePosition(c),
            Builtin::TessCoord(_) => Builtin::TessCoord(c),
            other => other,
        }
    }
}

/// A word that the driver puts into the uniform stream: the same list is what the artifact names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum UniformWord {
    /// Address of a buffer resource (element of an array of resources).
    BufferAddr {
        res: Res,
        element: u32,
    },
    /// Size in bytes of the bound range of a buffer.
    BufferSize {
        res: Res,
        element: u32,
    },
    /// Address of the description of an image for the texture unit, a multiple of 16.
    TextureState {
        res: Res,
        element: u32,
    },
    /// Address of the description of a sampler, alone or together with an image, a multiple of 16.
    SamplerState {
        res: Res,
        element: u32,
    },
    /// A size of an image, at its first level of detail.
    ImageSize {
        res: Res,
        element: u32,
        axis: Axis,
    },
    /// The word at this byte offset of the push constants.
    PushWord(u32),
    /// Address of the push constants in memory (for indexed access).
    PushAddr,
    /// Address of [`Module::constant_data`].
    ConstantAddr,
    /// Number of work-groups of the dispatch, by axis.
    NumWorkgroups(u8),
    /// Scratch memory (private arrays, spills): address and bytes per hardware thread.
    ScratchAddr,
    ScratchBytesPerThread,
    /// Shared memory of the dispatch.
    SharedAddr,
    /// f32. Axes 0 and 1: half the extent of the viewport in pixels, times `steps`; axis 2: far minus near depth.
    ViewportScale {
        axis: u8,
        steps: u32,
    },
    /// f32: the near depth of the viewport.
    ViewportNear,
    /// Vertices of the patches that a tessellation shader is given.
    PatchVertices,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BarrierImm {
    /// Orders shared memory.
    pub shared: bool,
    /// Orders storage memory.
    pub storage: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    Reduce,
    InclusiveScan,
    ExclusiveScan,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReduceImm {
    /// One of iadd imul smin smax umin umax and or xor fadd fmul fmin fmax.
    pub op: Op,
    pub kind: ReduceKind,
    /// Lanes per cluster (0: the whole subgroup).
    pub cluster: u8,
}

/// One instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct InstData {
    pub op: Op,
    /// See [`crate::ops::Sig`]: operand type of comparisons, result type of everything else.
    pub ty: Type,
    pub flags: Flags,
    pub imm: Imm,
    pub args: SmallVec<[Value; 3]>,
    pub results: SmallVec<[Value; 1]>,
    pub loc: Loc,
}

impl InstData {
    /// Without flags, and without results until [`Function::make_inst`] gives it some.
    pub fn new(op: Op, ty: Type, imm: Imm, args: &[Value], loc: Loc) -> InstData {
        InstData {
            op,
            ty,
            flags: Flags::NONE,
            imm,
            args: SmallVec::from_slice(args),
            results: SmallVec::new(),
            loc,
        }
    }
}

/// A destination of a jump, with one argument per parameter of the block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub block: Block,
    pub args: SmallVec<[Value; 4]>,
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    Jump(Target),
    /// `cond` is a bool.
    Branch {
        cond: Value,
        then: Target,
        els: Target,
    },
    /// The invocation ends.
    Return,
    /// Never reached.
    Unreachable,
}

impl Term {
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        let (a, b) = match self {
            Term::Jump(t) => (Some(t), None),
            Term::Branch { then, els, .. } => (Some(then), Some(els)),
            Term::Return | Term::Unreachable => (None, None),
        };
        a.into_iter().chain(b)
    }

    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let (a, b) = match self {
            Term::Jump(t) => (Some(t), None),
            Term::Branch { then, els, .. } => (Some(then), Some(els)),
            Term::Return | Term::Unreachable => (None, None),
        };
        a.into_iter().chain(b)
    }
}

/// What the source asks of a loop; on its header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LoopHint {
    #[default]
    None,
    Unroll,
    DontUnroll,
}

/// What the source asks of the branch that ends a block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BranchHint {
    #[default]
    None,
    Flatten,
    DontFlatten,
}

#[derive(Clone, PartialEq, Debug)]
pub struct BlockData {
    pub params: SmallVec<[Value; 4]>,
    pub insts: Vec<Inst>,
    pub term: Term,
    pub loop_hint: LoopHint,
    pub branch_hint: BranchHint,
    pub term_loc: Loc,
}

/// A function body: after the front end there is one per module, the entry point with everything inlined.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Function {
    pub values: Arena<Value, ValueData>,
    pub insts: Arena<Inst, InstData>,
    pub blocks: Arena<Block, BlockData>,
    /// Blocks in order; see the head of this file. Blocks that are not listed do not exist any more.
    pub layout: Vec<Block>,
    /// Names from the source, where known.
    pub names: BTreeMap<Value, String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Compute,
    Vertex,
    Fragment,
    Geometry,
    /// Tessellation: gives patches; places the points of a divided patch.
    TessControl,
    TessEval,
}

impl Stage {
    /// Vertices of a primitive or patch come together.
    pub fn takes_primitives(self) -> bool {
        matches!(self, Stage::Geometry | Stage::TessControl | Stage::TessEval)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResKind {
    StorageBuffer,
    UniformBuffer,
    /// The push constant block; at most one.
    PushConstants,
    /// An image or texel buffer that is read and written texel by texel.
    Image,
    /// An image or texel buffer that is only read, perhaps through a sampler.
    Texture,
    /// A sampler without an image.
    Sampler,
    /// Acceleration structures: named, not yet usable.
    Other,
}

impl ResKind {
    /// Its accesses name texels ([`Resource::image`] is there).
    pub fn is_image(self) -> bool {
        matches!(self, ResKind::Image | ResKind::Texture)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    pub kind: ResKind,
    pub set: u32,
    pub binding: u32,
    /// Number of elements of an array of resources (1 if none, 0 if unsized).
    pub elements: u32,
    /// Size of the fixed part in bytes (a run-time array at the end counts as 0).
    pub size: u32,
    /// Stride of the run-time array at the end, 0 if none.
    pub tail_stride: u32,
    pub name: String,
    /// The program never writes it.
    pub read_only: bool,
    /// Of images and textures: what the program declares.
    pub image: Option<ImageInfo>,
}

/// A variable in private or shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    pub space: Space,
    /// Bytes.
    pub size: u32,
    pub align: u32,
    pub name: String,
}

/// A compiled unit: one entry point with everything it uses.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// Name of the entry point.
    pub name: String,
    pub stage: Stage,
    pub workgroup_size: [u32; 3],
    pub fragment: FragmentModes,
    /// Of geometry and tessellation.
    pub primitive: PrimitiveModes,
    /// The program uses subgroup operations, so subgroups must be packed as the source expects.
    pub uses_subgroups: bool,
    pub resources: Arena<Res, Resource>,
    pub vars: Arena<Var, Variable>,
    /// Bytes behind [`Space::Constant`].
    pub constant_data: Vec<u8>,
    pub files: Vec<String>,
    pub locs: Vec<SourceLine>,
    pub func: Function,
}

impl Module {
    pub fn new(name: &str, stage: Stage) -> Module {
        Module {
            name: name.to_owned(),
            stage,
            workgroup_size: [1, 1, 1],
            fragment: FragmentModes::default(),
            primitive: PrimitiveModes::default(),
            uses_subgroups: false,
            resources: Arena::new(),
            vars: Arena::new(),
            constant_data: Vec::new(),
            files: Vec::new(),
            locs: Vec::new(),
            func: Function::default(),
        }
    }

    /// Invocations per work-group.
    pub fn workgroup_items(&self) -> u32 {
        self.workgroup_size.iter().product()
    }

    /// The source line of an instruction.
    pub fn line(&self, loc: Loc) -> Option<&SourceLine> {
        (loc.0 as usize).checked_sub(1).and_then(|i| self.locs.get(i))
    }
}

impl Function {
    /// Makes a block at the end of the layout, ending in `unreachable`.
    pub fn add_block(&mut self) -> Block {
        let b = self.add_block_detached();
        self.layout.push(b);
        b
    }

    /// Makes a block that is not in the layout yet.
    pub fn add_block_detached(&mut self) -> Block {
        self.blocks.push(BlockData {
            params: SmallVec::new(),
            insts: Vec::new(),
            term: Term::Unreachable,
            loop_hint: LoopHint::None,
            branch_hint: BranchHint::None,
            term_loc: Loc(0),
        })
    }

    pub fn add_param(&mut self, block: Block, ty: Type) -> Value {
        let n = self.blocks[block].params.len() as u16;
        let v = self.values.push(ValueData { ty, def: ValueDef::Param(block, n) });
        self.blocks[block].params.push(v);
        v
    }

    /// Makes an instruction that is in no block yet, with its results.
    pub fn make_inst(&mut self, mut data: InstData, result_types: &[Type]) -> Inst {
        let next = Inst(self.insts.len() as u32);
        data.results = result_types
            .iter()
            .enumerate()
            .map(|(n, &ty)| self.values.push(ValueData { ty, def: ValueDef::Inst(next, n as u16) }))
            .collect();
        self.insts.push(data)
    }

    pub fn ty(&self, v: Value) -> Type {
        self.values[v].ty
    }

    /// The instruction that defines a value, if one does.
    pub fn def_inst(&self, v: Value) -> Option<Inst> {
        match self.values[v].def {
            ValueDef::Inst(i, _) => Some(i),
            ValueDef::Param(..) => None,
        }
    }

    /// The constant behind a value, if it is one.
    pub fn as_const(&self, v: Value) -> Option<u64> {
        let i = &self.insts[self.def_inst(v)?];
        match (i.op, i.imm) {
            (Op::Const, Imm::Int(bits)) => Some(bits),
            _ => None,
        }
    }

    /// Position of every block in the layout (`u32::MAX` for blocks not in it).
    pub fn order(&self) -> entity::Table<Block, u32> {
        let mut t = entity::Table::new(self.blocks.len(), u32::MAX);
        for (i, &b) in self.layout.iter().enumerate() {
            t[b] = i as u32;
        }
        t
    }
}
