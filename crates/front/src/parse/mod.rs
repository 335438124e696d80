//! The module-level part of a SPIR-V module as tables: types, constants, decorations, global variables, functions.
//!
//! One pass over the words. Types are numbered densely and know how many scalars a value of them has; constants are
//! evaluated right here, specialisation included, as strings of scalar bits. Function bodies are only found, not
//! read: see [`crate::cfg`] and [`crate::lower`].

mod consts;
mod decor;
mod function;
mod image;

use crate::arith::{self, ConstArith};
use crate::reader::{Header, Inst, Res, error, error_help, header, inst, op_name};
pub use image::ImageTy;
use kempe_ir::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Decoration, Op, StorageClass};

/// Most scalars that one value may have (a larger array can live in memory, but not be a value).
pub const MAX_LEAVES: u32 = 16_384;
/// Most scalars that all constants together may have.
const MAX_CONST_LEAVES: usize = 4 << 20;
/// Deepest nesting of types; the specification allows 255 for structures.
const MAX_TYPE_DEPTH: u8 = 64;
/// Most applications of decoration groups.
const MAX_GROUP_DECORATIONS: usize = 1 << 20;

/// DebugSource of NonSemantic.Shader.DebugInfo.100.
const DEBUG_SOURCE: u32 = 35;
/// Index into [`Parsed::types`].
pub type TyId = u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    Void,
    Bool,
    Int {
        bits: u8,
        signed: bool,
    },
    Float {
        bits: u8,
    },
    Vector {
        elem: TyId,
        n: u32,
    },
    Matrix {
        column: TyId,
        n: u32,
    },
    Array {
        elem: TyId,
        n: u32,
    },
    RuntimeArray {
        elem: TyId,
    },
    /// Members are `Parsed::members[first..first + n]`.
    Struct {
        first: u32,
        n: u32,
    },
    Pointer {
        class: u32,
        pointee: TyId,
    },
    Function {
        ret: TyId,
    },
    /// `Parsed::images[image]`.
    Image {
        image: u32,
    },
    /// With a sampler.
    SampledImage {
        image: u32,
    },
    Sampler,
    /// Whatever else cannot be computed with.
    Opaque {
        what: &'static str,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct TypeInfo {
    pub ty: Ty,
    /// The id that defines it.
    pub id: u32,
    /// Scalars in a value of the type, saturating; 0 for what has no value.
    pub leaves: u32,
    pub depth: u8,
}

/// The pointee of a pointer type that was declared ahead and not defined yet.
pub const NO_TYPE: TyId = u32::MAX;

/// What an id stands for at module level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    None,
    Type(TyId),
    Const(u32),
    Global(u32),
    Func(u32),
    ExtSet(ExtSet),
    /// Word of an OpString.
    Str(u32),
    Group,
    /// A label: function, index of the block in it.
    Label(u32, u32),
    /// Result of an instruction inside a function, with its type.
    Local(TyId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtSet {
    Glsl,
    OpenCl,
    /// Says nothing about what is computed.
    NonSemantic,
    /// NonSemantic.Shader.DebugInfo.100: source lines.
    DebugInfo,
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstKind {
    /// All bits zero, whatever the type.
    Null,
    Undef,
    /// `Parsed::bits[start..start + leaves]`.
    Bits(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Const {
    pub ty: TyId,
    pub kind: ConstKind,
}

#[derive(Clone, Copy, Debug)]
pub struct Global {
    pub id: u32,
    pub ty: TyId,
    pub class: u32,
    /// Id of a constant, 0 if none.
    pub init: u32,
    pub at: usize,
}

/// Facts of an id or of a member of a structure, as a bit set.
pub mod fact {
    pub const BLOCK: u16 = 1;
    pub const BUFFER_BLOCK: u16 = 2;
    pub const ROW_MAJOR: u16 = 4;
    pub const NON_WRITABLE: u16 = 8;
    pub const VOLATILE: u16 = 16;
    pub const RESTRICT: u16 = 32;
    pub const NO_CONTRACTION: u16 = 64;
    pub const RELAXED: u16 = 128;
    pub const NO_SIGNED_WRAP: u16 = 256;
    pub const NO_UNSIGNED_WRAP: u16 = 512;
    pub const FAST: u16 = 1024;
    pub const FLAT: u16 = 2048;
    pub const NO_PERSPECTIVE: u16 = 4096;
    pub const CENTROID: u16 = 8192;
    pub const SAMPLE: u16 = 16384;
    pub const PATCH: u16 = 32768;
    pub const FLAGS: u16 = NO_CONTRACTION | RELAXED | NO_SIGNED_WRAP | NO_UNSIGNED_WRAP | FAST;
}

#[derive(Clone, Copy, Default, Debug)]
pub struct MemberDecor {
    pub facts: u16,
    pub offset: Option<u32>,
    pub matrix_stride: u32,
    pub built_in: Option<u32>,
    pub location: Option<u32>,
    pub component: u32,
}

/// A decoration of an id that carries a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Numbered {
    ArrayStride,
    SpecId,
    Binding,
    Set,
    BuiltIn,
    Location,
    Component,
    /// Of a second colour.
    Index,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub model: u32,
    pub func: u32,
    pub name: String,
    /// Ids of the variables that it may use: those of its stage at least.
    pub interface: Vec<u32>,
    pub at: usize,
}

#[derive(Clone, Debug)]
pub struct Func {
    pub id: u32,
    pub ret: TyId,
    /// Id and type.
    pub params: SmallVec<[(u32, TyId); 4]>,
    pub blocks: Vec<Blk>,
    /// Ids of called functions, in order, with repetitions.
    pub calls: Vec<u32>,
    /// Instructions.
    pub size: u32,
    pub at: usize,
}

/// A block of a function: words.
#[derive(Clone, Copy, Debug)]
pub struct Blk {
    pub label: u32,
    /// First word behind the label.
    pub first: usize,
    /// First word of the terminator.
    pub term: usize,
    /// Ids of the merge block and the continue target, 0 if none.
    pub merge: u32,
    pub cont: u32,
    /// Selection or loop control.
    pub control: u32,
}

pub struct Parsed<'a> {
    pub words: &'a [u32],
    pub header: Header,
    pub defs: Vec<Def>,
    pub types: Vec<TypeInfo>,
    pub images: Vec<ImageTy>,
    pub members: Vec<TyId>,
    /// By member: scalars of the structure in front of it, saturating.
    pub member_leaves: Vec<u32>,
    pub consts: Vec<Const>,
    pub bits: Vec<u64>,
    pub globals: Vec<Global>,
    pub funcs: Vec<Func>,
    pub entries: Vec<Entry>,
    /// Words of the execution modes.
    pub modes: Vec<usize>,
    /// By id.
    pub facts: Vec<u16>,
    pub numbers: FxHashMap<(u32, Numbered), u32>,
    pub member_decor: FxHashMap<(u32, u32), MemberDecor>,
    /// Words of the OpName of an id.
    pub names: FxHashMap<u32, u32>,
    /// Files by DebugSource.
    debug_sources: FxHashMap<u32, u32>,
    pub addressing: u32,
    /// Constant decorated as the size of the work-group.
    pub workgroup_size_const: Option<u32>,
}

/// Reads a module; `spec` gives values to specialisation constants (the last one of an id counts).
pub fn parse<'a>(words: &'a [u32], spec: &[(u32, u64)]) -> Res<Parsed<'a>> {
    let header = header(words)?;
    let mut p = Parsed {
        words,
        header,
        defs: vec![Def::None; header.bound as usize],
        types: Vec::new(),
        images: Vec::new(),
        members: Vec::new(),
        member_leaves: Vec::new(),
        consts: Vec::new(),
        bits: Vec::new(),
        globals: Vec::new(),
        funcs: Vec::new(),
        entries: Vec::new(),
        modes: Vec::new(),
        facts: vec![0; header.bound as usize],
        numbers: FxHashMap::default(),
        member_decor: FxHashMap::default(),
        names: FxHashMap::default(),
        debug_sources: FxHashMap::default(),
        addressing: 0,
        workgroup_size_const: None,
    };
    let mut decorations = Vec::new();
    let mut at = 5;
    while at < words.len() {
        let i = inst(words, at)?;
        at += i.words.len();
        if i.op == Op::Function as u16 {
            at = p.function(&i)?;
        } else {
            p.global_inst(&i, spec, &mut decorations)?;
        }
    }
    Ok(p)
}

impl<'a> Parsed<'a> {
    pub fn inst(&self, at: usize) -> Res<Inst<'a>> {
        inst(self.words, at)
    }

    #[inline]
    pub fn def(&self, id: u32) -> Def {
        self.defs.get(id as usize).copied().unwrap_or(Def::None)
    }

    fn define(&mut self, at: usize, id: u32, def: Def) -> Res<()> {
        match self.defs.get_mut(id as usize) {
            Some(d @ Def::None) if id != 0 => {
                *d = def;
                Ok(())
            }
            Some(_) if id != 0 => error(at, format!("id {id} is defined twice")),
            _ => error(at, format!("id {id} is outside the bound of ids ({})", self.header.bound)),
        }
    }

    #[inline]
    pub fn ty(&self, t: TyId) -> Ty {
        self.types[t as usize].ty
    }

    pub fn leaf_count(&self, t: TyId) -> u32 {
        self.types[t as usize].leaves
    }

    /// The type that an id names.
    #[inline]
    pub fn type_of_id(&self, at: usize, id: u32) -> Res<TyId> {
        match self.def(id) {
            Def::Type(t) => Ok(t),
            _ => error(at, format!("id {id} is not a type")),
        }
    }

    pub fn const_of_id(&self, at: usize, id: u32) -> Res<Const> {
        match self.def(id) {
            Def::Const(c) => Ok(self.consts[c as usize]),
            _ => error(at, format!("id {id} is not a constant")),
        }
    }

    /// Bits of a scalar constant, if the id is one.
    pub fn scalar_const(&self, id: u32) -> Option<u64> {
        let Def::Const(c) = self.def(id) else { return None };
        let c = self.consts[c as usize];
        match (self.ty(c.ty), c.kind) {
            (Ty::Bool | Ty::Int { .. } | Ty::Float { .. }, ConstKind::Bits(b)) => Some(self.bits[b as usize]),
            (Ty::Bool | Ty::Int { .. } | Ty::Float { .. }, ConstKind::Null) => Some(0),
            _ => None,
        }
    }

    /// Value of a constant integer, sign-extended if its type is signed.
    pub fn int_const(&self, id: u32) -> Option<i64> {
        let bits = self.scalar_const(id)?;
        let Def::Const(c) = self.def(id) else { return None };
        match self.ty(self.consts[c as usize].ty) {
            Ty::Int { bits: w, signed: true } => Some((bits << (64 - w as u32)) as i64 >> (64 - w as u32)),
            Ty::Int { .. } => i64::try_from(bits).ok(),
            _ => None,
        }
    }

    /// The file name (an OpString) of a DebugSource, 0 if it is none.
    pub fn debug_source(&self, id: u32) -> u32 {
        self.debug_sources.get(&id).copied().unwrap_or(0)
    }

    /// The IR type of a scalar (pointers included).
    pub fn scalar(&self, t: TyId) -> Option<Type> {
        match self.ty(t) {
            Ty::Bool => Some(Type::Bool),
            Ty::Int { bits, .. } => Type::int(bits as u32),
            Ty::Float { bits } => Type::float(bits as u32),
            Ty::Pointer { class, .. } => self.space(t, class).map(Type::Ptr),
            _ => None,
        }
    }

    /// The scalar of a scalar or vector.
    pub fn component(&self, t: TyId) -> Option<Type> {
        match self.ty(t) {
            Ty::Vector { elem, .. } => self.scalar(elem),
            _ => self.scalar(t),
        }
    }

    /// Types of the scalars of a value, appended.
    pub fn leaf_types(&self, at: usize, t: TyId, out: &mut Vec<Type>) -> Res<()> {
        if self.leaf_count(t) > MAX_LEAVES {
            return error_help(
                at,
                format!("a value of {} scalars is too large (at most {MAX_LEAVES})", self.leaf_count(t)),
                "keep large arrays in memory and access their elements",
            );
        }
        if self.leaf_count(t) == 0 && matches!(self.ty(t), Ty::Array { .. } | Ty::Struct { .. }) {
            // Nothing, however often and deep it is nested.
            return Ok(());
        }
        match self.ty(t) {
            Ty::Vector { elem, n } | Ty::Matrix { column: elem, n } | Ty::Array { elem, n } => {
                let start = out.len();
                if n != 0 {
                    self.leaf_types(at, elem, out)?;
                }
                let len = out.len() - start;
                for _ in 1..n {
                    out.extend_from_within(start..start + len);
                }
                Ok(())
            }
            Ty::Struct { first, n } => {
                for m in first..first + n {
                    self.leaf_types(at, self.members[m as usize], out)?;
                }
                Ok(())
            }
            Ty::Void => Ok(()),
            ty => match self.scalar(t) {
                Some(s) => {
                    out.push(s);
                    Ok(())
                }
                None => error(at, self.no_value(ty)),
            },
        }
    }

    fn no_value(&self, ty: Ty) -> String {
        match ty {
            Ty::Opaque { what } => format!("{what} are not supported yet"),
            Ty::Image { .. } | Ty::SampledImage { .. } | Ty::Sampler => {
                "values of images and samplers are not supported yet".to_owned()
            }
            Ty::Pointer { class, .. } => format!("pointers to {} are not supported yet", class_name(class)),
            Ty::Float { bits } => format!("{bits}-bit floats are not supported"),
            Ty::Int { bits, .. } => format!("{bits}-bit integers are not supported"),
            _ => "this type has no values".to_owned(),
        }
    }

    /// The address space of a storage class, for a pointer type.
    pub fn space(&self, pointer: TyId, class: u32) -> Option<Space> {
        Some(match StorageClass::from_u32(class)? {
            StorageClass::Function | StorageClass::Private => Space::Private,
            StorageClass::Workgroup => Space::Shared,
            StorageClass::StorageBuffer => Space::Storage,
            StorageClass::Uniform => match self.ty(pointer) {
                Ty::Pointer { pointee, .. } if pointee != NO_TYPE && self.is_buffer_block(pointee) => {
                    Space::Storage
                }
                _ => Space::Uniform,
            },
            StorageClass::PushConstant => Space::Push,
            StorageClass::PhysicalStorageBuffer => Space::Global,
            _ => return None,
        })
    }

    /// The structure, or array of structures, is a storage buffer in the way of SPIR-V 1.0.
    pub fn is_buffer_block(&self, t: TyId) -> bool {
        match self.ty(t) {
            Ty::Array { elem, .. } | Ty::RuntimeArray { elem } => self.is_buffer_block(elem),
            _ => self.facts[self.types[t as usize].id as usize] & fact::BUFFER_BLOCK != 0,
        }
    }

    pub fn name(&self, id: u32) -> Option<String> {
        let i = self.inst(*self.names.get(&id)? as usize).ok()?;
        let (s, _) = i.string(2).ok()?;
        if s.is_empty() { None } else { Some(s) }
    }

    /// The name of an id, or its number.
    pub fn label(&self, id: u32) -> String {
        self.name(id).map_or_else(|| format!("%{id}"), |n| format!("`{n}`"))
    }

    fn add_type(&mut self, i: &Inst, ty: Ty, leaves: u64, depth: u32) -> Res<()> {
        if depth > MAX_TYPE_DEPTH as u32 {
            return error(i.at, format!("types nest deeper than {MAX_TYPE_DEPTH}"));
        }
        let id = i.w(1)?;
        let t = self.types.len() as TyId;
        self.define(i.at, id, Def::Type(t))?;
        let leaves = leaves.min(u32::MAX as u64) as u32;
        self.types.push(TypeInfo { ty, id, leaves, depth: depth as u8 });
        Ok(())
    }

    /// The type named by operand `k`, its number of scalars and its depth.
    fn part(&self, i: &Inst, k: usize) -> Res<(TyId, u64, u32)> {
        let t = self.type_of_id(i.at, i.w(k)?)?;
        let info = self.types[t as usize];
        Ok((t, info.leaves as u64, info.depth as u32))
    }

    fn global_inst(&mut self, i: &Inst, spec: &[(u32, u64)], decorations: &mut Vec<usize>) -> Res<()> {
        let Some(op) = Op::from_u32(i.op as u32) else {
            return error(i.at, format!("unknown instruction: {}", op_name(i.op)));
        };
        match op {
            Op::Capability
            | Op::Extension
            | Op::Nop
            | Op::Source
            | Op::SourceContinued
            | Op::SourceExtension
            | Op::MemberName
            | Op::ModuleProcessed
            | Op::Line
            | Op::NoLine
            | Op::DecorateString
            | Op::MemberDecorateString
            | Op::ConditionalExtensionINTEL => {}
            Op::ExtInstImport => {
                let (name, _) = i.string(2)?;
                let set = match name.as_str() {
                    "GLSL.std.450" => ExtSet::Glsl,
                    "OpenCL.std" => ExtSet::OpenCl,
                    "NonSemantic.Shader.DebugInfo.100" => ExtSet::DebugInfo,
                    n if n.starts_with("NonSemantic.") => ExtSet::NonSemantic,
                    n if n.starts_with("OpenCL.DebugInfo") || n == "DebugInfo" => ExtSet::NonSemantic,
                    _ => ExtSet::Unknown,
                };
                self.define(i.at, i.w(1)?, Def::ExtSet(set))?;
            }
            Op::MemoryModel => self.addressing = i.w(1)?,
            Op::EntryPoint => {
                let (name, behind) = i.string(3)?;
                let interface = i.rest(behind).to_vec();
                self.entries.push(Entry { model: i.w(1)?, func: i.w(2)?, name, interface, at: i.at });
            }
            Op::ExecutionMode | Op::ExecutionModeId => self.modes.push(i.at),
            Op::String => self.define(i.at, i.w(1)?, Def::Str(i.at as u32))?,
            Op::Name => {
                self.names.insert(i.w(1)?, i.at as u32);
            }
            Op::Decorate => {
                decorations.push(i.at);
                self.decorate(i, i.w(1)?, None, i.rest(2))?;
            }
            Op::MemberDecorate => {
                decorations.push(i.at);
                self.decorate(i, i.w(1)?, Some(i.w(2)?), i.rest(3))?;
            }
            Op::DecorateId => {}
            Op::DecorationGroup => self.define(i.at, i.w(1)?, Def::Group)?,
            Op::GroupDecorate | Op::GroupMemberDecorate => self.decorate_group(i, op, decorations)?,
            Op::TypeVoid => self.add_type(i, Ty::Void, 0, 0)?,
            Op::TypeBool => self.add_type(i, Ty::Bool, 1, 0)?,
            Op::TypeInt => {
                let (bits, signed) = (i.w(2)?, i.w(3)? != 0);
                if !matches!(bits, 8 | 16 | 32 | 64) {
                    return error(
                        i.at,
                        format!("{bits}-bit integers are not supported: 8, 16, 32 and 64 bits are"),
                    );
                }
                self.add_type(i, Ty::Int { bits: bits as u8, signed }, 1, 0)?;
            }
            Op::TypeFloat => {
                let bits = i.w(2)?;
                if bits > 64 {
                    return error(
                        i.at,
                        format!("{bits}-bit floats are not supported: 16, 32 and 64 bits are"),
                    );
                }
                match i.words.get(3) {
                    None => self.add_type(i, Ty::Float { bits: bits as u8 }, 1, 0)?,
                    Some(_) => self.add_type(i, Ty::Opaque { what: "floats of a special encoding" }, 0, 0)?,
                }
            }
            Op::TypeVector => {
                let (elem, leaves, depth) = self.part(i, 2)?;
                let n = i.w(3)?;
                if !matches!(self.ty(elem), Ty::Bool | Ty::Int { .. } | Ty::Float { .. } | Ty::Pointer { .. })
                {
                    return error(i.at, "the components of a vector must be scalars");
                }
                if !(2..=16).contains(&n) {
                    return error(i.at, format!("a vector of {n} components"));
                }
                self.add_type(i, Ty::Vector { elem, n }, leaves * n as u64, depth + 1)?;
            }
            Op::TypeMatrix => {
                let (column, leaves, depth) = self.part(i, 2)?;
                let n = i.w(3)?;
                if !matches!(self.ty(column), Ty::Vector { .. }) {
                    return error(i.at, "the columns of a matrix must be vectors");
                }
                if !(2..=16).contains(&n) {
                    return error(i.at, format!("a matrix of {n} columns"));
                }
                self.add_type(i, Ty::Matrix { column, n }, leaves * n as u64, depth + 1)?;
            }
            Op::TypeArray => {
                let (elem, leaves, depth) = self.part(i, 2)?;
                let Some(n) = self.int_const(i.w(3)?) else {
                    return error(i.at, "the length of an array must be a constant integer");
                };
                if n <= 0 || n > u32::MAX as i64 {
                    return error(i.at, format!("an array of {n} elements"));
                }
                self.add_type(i, Ty::Array { elem, n: n as u32 }, leaves * n as u64, depth + 1)?;
            }
            Op::TypeRuntimeArray => {
                let (elem, _, depth) = self.part(i, 2)?;
                self.add_type(i, Ty::RuntimeArray { elem }, 0, depth + 1)?;
            }
            Op::TypeStruct => {
                let first = self.members.len() as u32;
                let (mut leaves, mut depth) = (0u64, 0);
                for k in 2..i.words.len() {
                    let (t, l, d) = self.part(i, k)?;
                    self.members.push(t);
                    self.member_leaves.push(leaves.min(u32::MAX as u64) as u32);
                    leaves = leaves.saturating_add(l);
                    depth = depth.max(d);
                }
                let n = self.members.len() as u32 - first;
                self.add_type(i, Ty::Struct { first, n }, leaves, depth + 1)?;
            }
            Op::TypePointer => {
                let class = i.w(2)?;
                let pointee = match self.def(i.w(3)?) {
                    Def::Type(t) => t,
                    _ => return error(i.at, format!("id {} is not a type", i.w(3)?)),
                };
                // Declared ahead: its structure may have used it already.
                if let Def::Type(t) = self.def(i.w(1)?)
                    && self.ty(t) == (Ty::Pointer { class, pointee: NO_TYPE })
                {
                    self.types[t as usize].ty = Ty::Pointer { class, pointee };
                    return Ok(());
                }
                // The pointee does not nest inside a value, so it does not count for the depth.
                self.add_type(i, Ty::Pointer { class, pointee }, 1, 0)?;
            }
            Op::TypeUntypedPointerKHR => {
                self.add_type(i, Ty::Opaque { what: "untyped pointers" }, 0, 0)?;
            }
            Op::TypeForwardPointer => {
                self.add_type(i, Ty::Pointer { class: i.w(2)?, pointee: NO_TYPE }, 1, 0)?;
            }
            Op::TypeFunction => {
                let (ret, ..) = self.part(i, 2)?;
                self.add_type(i, Ty::Function { ret }, 0, 0)?;
            }
            Op::TypeImage => {
                let image = self.images.len() as u32;
                let ty = self.image_type(i)?;
                self.images.push(ty);
                self.add_type(i, Ty::Image { image }, 0, 0)?;
            }
            Op::TypeSampledImage => {
                let t = self.type_of_id(i.at, i.w(2)?)?;
                let Ty::Image { image } = self.ty(t) else {
                    return error(i.at, format!("id {} is not an image type", i.w(2)?));
                };
                self.add_type(i, Ty::SampledImage { image }, 0, 0)?;
            }
            Op::TypeSampler => self.add_type(i, Ty::Sampler, 0, 0)?,
            Op::TypeAccelerationStructureKHR | Op::TypeRayQueryKHR => {
                self.add_type(i, Ty::Opaque { what: "ray queries" }, 0, 0)?;
            }
            Op::ConstantTrue | Op::ConstantFalse => {
                self.scalar_constant(i, (op == Op::ConstantTrue) as u64)?;
            }
            Op::SpecConstantTrue | Op::SpecConstantFalse => {
                let v = self.specialised(i.w(2)?, spec).map_or(op == Op::SpecConstantTrue, |v| v != 0);
                self.scalar_constant(i, v as u64)?;
            }
            Op::Constant => {
                let v = self.literal(i)?;
                self.scalar_constant(i, v)?;
            }
            Op::SpecConstant => {
                let v = match self.specialised(i.w(2)?, spec) {
                    Some(v) => v,
                    None => self.literal(i)?,
                };
                self.scalar_constant(i, v)?;
            }
            Op::ConstantNull => self.constant(i, ConstKind::Null)?,
            // A sampler has no scalars: whatever uses it is refused there.
            Op::Undef | Op::ConstantSampler => self.constant(i, ConstKind::Undef)?,
            Op::ConstantComposite | Op::SpecConstantComposite => {
                let t = self.type_of_id(i.at, i.w(1)?)?;
                let ids = i.rest(3);
                self.composite_constant(i, t, ids)?;
            }
            Op::SpecConstantOp => self.spec_constant_op(i)?,
            Op::Variable => {
                let ty = self.type_of_id(i.at, i.w(1)?)?;
                let id = i.w(2)?;
                let Ty::Pointer { pointee, .. } = self.ty(ty) else {
                    return error(i.at, "the type of a variable must be a pointer");
                };
                let g = Global {
                    id,
                    ty: pointee,
                    class: i.w(3)?,
                    init: i.words.get(4).copied().unwrap_or(0),
                    at: i.at,
                };
                self.define(i.at, id, Def::Global(self.globals.len() as u32))?;
                self.globals.push(g);
            }
            Op::ExtInst => {
                // Only non-semantic sets may be used outside functions.
                match self.def(i.w(3)?) {
                    Def::ExtSet(ExtSet::DebugInfo) if i.w(4)? == DEBUG_SOURCE => {
                        self.debug_sources.insert(i.w(2)?, i.w(5)?);
                    }
                    Def::ExtSet(ExtSet::NonSemantic | ExtSet::DebugInfo) => {}
                    _ => return error(i.at, "an extended instruction outside a function"),
                }
            }
            _ => {
                // Types of extensions: they may stand in a module as long as nothing uses them.
                let name = op_name(i.op);
                if name.starts_with("OpType") {
                    let matrix = name.starts_with("OpTypeCooperativeMatrix");
                    let what = if matrix { "cooperative matrices" } else { "types of this extension" };
                    self.add_type(i, Ty::Opaque { what }, 0, 0)?;
                } else {
                    return error(i.at, format!("{name} is not supported outside functions"));
                }
            }
        }
        Ok(())
    }
}

pub fn class_name(class: u32) -> String {
    match StorageClass::from_u32(class) {
        Some(StorageClass::PhysicalStorageBuffer) => "physical storage buffers".to_owned(),
        Some(StorageClass::UniformConstant | StorageClass::Image) => "images and samplers".to_owned(),
        Some(StorageClass::CrossWorkgroup | StorageClass::Generic) => "memory of OpenCL kernels".to_owned(),
        Some(c) => format!("storage class {c:?}"),
        None => format!("storage class {class}"),
    }
}
