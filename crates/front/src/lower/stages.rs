//! Vertex and fragment shaders: their interface, helper invocations.
//!
//! Inputs and outputs are variables in SPIR-V, read and written in parts and by index. So each becomes a private variable:
//! inputs are stored to it before anything else, outputs are loaded from it when the invocation returns. Nearly all of
//! these variables are gone after the first passes; what is never written then is an undefined output, which goes too.

use super::*;
use crate::layout::Rule;
use crate::parse::Global;
use kempe_ir::io::{DepthMode, FragmentModes, Interpolation, IoImm, Sampling, Slot};
use kempe_ir::{Builtin, Stage, Target, Term};
use spirv::{BuiltIn, ExecutionMode, StorageClass};

/// More places than any interface has.
pub(super) const MAX_LOCATION: u32 = 255;

/// Where a scalar of an input or output variable comes from or goes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Io(IoImm),
    /// A scalar of 64 bits: this place and the next component, the low word first.
    Wide(IoImm),
    Builtin(Builtin),
    Helper,
    /// Neither here nor there: the further words of a sample mask.
    Nothing,
}

/// The places of the words of a 64-bit scalar, which never straddles two locations.
pub(super) fn halves(io: IoImm) -> [IoImm; 2] {
    [io, IoImm { component: io.component + 1, ..io }]
}

/// An input variable.
#[derive(Clone, Debug)]
pub(super) struct InputVar {
    pub ptr: Ptr,
    pub places: Vec<(Place, Type)>,
}

/// An output variable.
#[derive(Clone, Debug)]
pub(super) struct OutputVar {
    ptr: Ptr,
    places: Vec<(Place, Type)>,
}

/// Modes of the entry point of a fragment shader.
pub(super) fn fragment_modes(p: &Parsed, entry: &crate::parse::Entry) -> Res<FragmentModes> {
    let mut out = FragmentModes::default();
    for &at in &p.modes {
        let i = p.inst(at)?;
        if i.w(1)? != entry.func {
            continue;
        }
        match ExecutionMode::from_u32(i.w(2)?) {
            Some(ExecutionMode::EarlyFragmentTests) => out.early_tests = true,
            Some(ExecutionMode::DepthGreater) => out.depth = DepthMode::Greater,
            Some(ExecutionMode::DepthLess) => out.depth = DepthMode::Less,
            Some(ExecutionMode::DepthUnchanged) => out.depth = DepthMode::Unchanged,
            Some(ExecutionMode::PixelCenterInteger | ExecutionMode::OriginLowerLeft) => {
                return error(at, "pixels are counted from the upper left, and their centres are at halves");
            }
            _ => {}
        }
    }
    Ok(out)
}

/// Nothing in the module asks for exact zeros, infinities and NaNs, and it is of a stage that seldom cares.
pub(super) fn is_fast(p: &Parsed, entry: &crate::parse::Entry, stage: Stage) -> Res<bool> {
    for &at in &p.modes {
        let i = p.inst(at)?;
        let exact = Some(ExecutionMode::SignedZeroInfNanPreserve);
        if i.w(1)? == entry.func && ExecutionMode::from_u32(i.w(2)?) == exact {
            return Ok(false);
        }
    }
    Ok(stage != Stage::Compute)
}

/// The place of a built-in variable that belongs to vertices or to the patch.
pub(super) fn element_slot(b: u32) -> Option<Slot> {
    Some(match BuiltIn::from_u32(b)? {
        BuiltIn::Position => Slot::Position,
        BuiltIn::PointSize => Slot::PointSize,
        BuiltIn::ClipDistance => Slot::ClipDistance,
        BuiltIn::CullDistance => Slot::CullDistance,
        BuiltIn::TessLevelOuter => Slot::TessLevelOuter,
        BuiltIn::TessLevelInner => Slot::TessLevelInner,
        _ => return None,
    })
}

impl Lower<'_, '_> {
    /// Makes the variables of the interface that the functions mention, and fills the inputs. What only looks as if it was
    /// mentioned may belong to an entry point of another stage, so the list of the entry point counts too.
    pub(super) fn start_interface(&mut self, number: u32, interface: &[u32]) -> Res<()> {
        if self.m.stage == Stage::Compute {
            return Ok(());
        }
        let mentioned = self.mentioned_globals(number);
        for (g, global) in self.p.globals.iter().enumerate() {
            if !mentioned[g] || !interface.contains(&global.id) {
                continue;
            }
            self.at = global.at;
            let class = StorageClass::from_u32(global.class);
            if let Some(StorageClass::Input | StorageClass::Output) = class
                && let Some(ptr) = self.shared_interface(global, class == Some(StorageClass::Input))?
            {
                if global.init != 0 {
                    return self.err("initial values of what invocations share are not supported yet");
                }
                self.global_ptrs[g] = Some(ptr);
                continue;
            }
            match class {
                Some(StorageClass::Input) => {
                    let places = self.places(global, true)?;
                    let ptr = self.variable(global.id, global.ty, Space::Private, 0)?;
                    let mut values = Vec::with_capacity(places.len());
                    for &(place, ty) in &places {
                        values.push(self.read_place(place, ty)?);
                    }
                    let mut rest = values.as_slice();
                    self.store(&ptr, ptr.lay, 0, &mut rest)?;
                    self.global_ptrs[g] = Some(ptr);
                    let base = match ptr.base {
                        Base::Value(v) => self.m.func.def_inst(v).map(|i| self.m.func.insts[i].imm),
                        _ => None,
                    };
                    if let Some(Imm::Var(var)) = base {
                        self.inputs.insert(var, InputVar { ptr, places });
                    }
                }
                Some(StorageClass::Output) => {
                    let places = self.places(global, false)?;
                    let ptr = self.variable(global.id, global.ty, Space::Private, global.init)?;
                    self.global_ptrs[g] = Some(ptr);
                    self.outputs.push(OutputVar { ptr, places });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The entry point returns.
    pub(super) fn return_from_entry(&mut self) -> Term {
        // What is said of a vertex that is not given counts for nothing.
        if self.outputs.is_empty() || self.m.stage == Stage::Geometry {
            return Term::Return;
        }
        let exit = match self.exit {
            Some(b) => b,
            None => {
                let b = self.m.func.add_block_detached();
                self.exit = Some(b);
                b
            }
        };
        Term::Jump(Target { block: exit, args: smallvec![] })
    }

    /// The block in which outputs are given.
    pub(super) fn finish_interface(&mut self) -> Res<()> {
        let Some(exit) = self.exit else { return Ok(()) };
        self.cur = exit;
        self.m.func.layout.push(exit);
        self.flags = Flags::NONE;
        self.give_outputs()?;
        self.m.func.blocks[exit].term = Term::Return;
        Ok(())
    }

    /// What the output variables hold now.
    pub(super) fn give_outputs(&mut self) -> Res<()> {
        for n in 0..self.outputs.len() {
            let (ptr, places) = (self.outputs[n].ptr, self.outputs[n].places.clone());
            let mut values = Vec::with_capacity(places.len());
            self.load(&ptr, ptr.lay, 0, &mut values)?;
            for (&v, &(place, ty)) in values.iter().zip(&places) {
                match place {
                    Place::Io(io) => _ = self.emit(Op::Output, ty, Imm::Io(io), &[v], &[])?,
                    Place::Wide(io) => {
                        let words = self.bitcast_values(&[v], Type::I32)?;
                        for (io, &word) in halves(io).into_iter().zip(&words) {
                            self.emit(Op::Output, Type::I32, Imm::Io(io), &[word], &[])?;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn read_place(&mut self, place: Place, ty: Type) -> Res<Value> {
        match place {
            Place::Io(io) => self.emit1(Op::Input, ty, Imm::Io(io), &[]),
            Place::Wide(io) => {
                let mut words: SmallVec<[Value; 2]> = SmallVec::new();
                for io in halves(io) {
                    words.push(self.emit1(Op::Input, Type::I32, Imm::Io(io), &[])?);
                }
                Ok(self.bitcast_values(&words, ty)?[0])
            }
            Place::Builtin(b) => Ok(self.builtin(b)),
            Place::Helper => self.emit1(Op::IsHelper, Type::Bool, Imm::None, &[]),
            Place::Nothing => Ok(self.konst(ty, 0)),
        }
    }

    /// The places of all scalars of a variable.
    fn places(&mut self, global: &Global, input: bool) -> Res<Vec<(Place, Type)>> {
        // Sizes are checked before anything grows.
        self.lay.get(self.p, self.at, global.ty, Rule::Own)?;
        let mut out = Vec::new();
        let facts = self.p.facts[global.id as usize];
        if let Some(b) = number(self.p, global.id, Numbered::BuiltIn) {
            self.builtin_places(b, global.ty, input, &mut out)?;
            return Ok(out);
        }
        let mut io = IoImm::new(Slot::Location(0), 0);
        io.component = self.small(number(self.p, global.id, Numbered::Component).unwrap_or(0))?;
        io.index = self.small(number(self.p, global.id, Numbered::Index).unwrap_or(0))?;
        let location = number(self.p, global.id, Numbered::Location);
        let label = self.p.label(global.id);
        self.location_places(global.ty, location, io, facts, input, &label, &mut out)?;
        Ok(out)
    }

    fn small(&self, n: u32) -> Res<u8> {
        match u8::try_from(n) {
            Ok(n) => Ok(n),
            Err(_) => self.err(format!("{n} is no place in an interface")),
        }
    }

    /// Returns the first location behind.
    #[allow(clippy::too_many_arguments)]
    fn location_places(
        &mut self,
        ty: TyId,
        location: Option<u32>,
        io: IoImm,
        facts: u16,
        input: bool,
        label: &str,
        out: &mut Vec<(Place, Type)>,
    ) -> Res<u32> {
        let p = self.p;
        match p.ty(ty) {
            Ty::Array { elem, n } | Ty::Matrix { column: elem, n } => {
                let mut next = location;
                for _ in 0..n {
                    next = Some(self.location_places(elem, next, io, facts, input, label, out)?);
                }
                Ok(next.unwrap_or(0))
            }
            Ty::Struct { first, n } => {
                let id = p.types[ty as usize].id;
                let mut next = location;
                for k in 0..n {
                    let member = p.members[(first + k) as usize];
                    let decor = p.member_decor.get(&(id, k)).cloned().unwrap_or_default();
                    if let Some(b) = decor.built_in {
                        self.builtin_places(b, member, input, out)?;
                        continue;
                    }
                    let mut io = io;
                    if decor.component != 0 {
                        io.component = self.small(decor.component)?;
                    }
                    let start = decor.location.or(next);
                    next = Some(self.location_places(
                        member,
                        start,
                        io,
                        facts | decor.facts,
                        input,
                        label,
                        out,
                    )?);
                }
                Ok(next.unwrap_or(0))
            }
            _ => {
                let Some(scalar) = p.component(ty) else {
                    return self.err(format!("{label} cannot be in the interface of a stage"));
                };
                let Some(location) = location else {
                    return self.err(format!("{label} has no location"));
                };
                if location > MAX_LOCATION {
                    return self.err(format!("{label} has the location {location}"));
                }
                if scalar == Type::Bool {
                    return self.err(format!("{label}: a boolean cannot be in the interface of a stage"));
                }
                let wide = scalar.bits() == 64;
                if wide && !io.component.is_multiple_of(2) {
                    return self.err(format!("{label}: 64 bits at an odd component of a location"));
                }
                let words = if wide { 2 } else { 1 };
                let count = p.leaf_count(ty);
                // Of 64-bit vectors, three and four components go on at the next location.
                let locations = if words * count > 4 { 2 } else { 1 };
                if io.component as u32 + words * count > 4 * locations {
                    return self.err(format!("{label} has more than four components at its location"));
                }
                if location + locations > MAX_LOCATION + 1 {
                    return self.err(format!("{label} has the location {}", location + locations - 1));
                }
                for k in 0..count {
                    let word = io.component as u32 + words * k;
                    let (slot, component) = (Slot::Location((location + word / 4) as u8), (word % 4) as u8);
                    let mut io = IoImm { slot, component, ..io };
                    if input && self.m.stage == Stage::Fragment {
                        io.interpolation = if facts & fact::FLAT != 0 || scalar.is_int() || wide {
                            Interpolation::Flat
                        } else if facts & fact::NO_PERSPECTIVE != 0 {
                            Interpolation::NoPerspective
                        } else {
                            Interpolation::Smooth
                        };
                        io.sampling = if io.interpolation == Interpolation::Flat {
                            Sampling::Center
                        } else if facts & fact::SAMPLE != 0 {
                            Sampling::Sample
                        } else if facts & fact::CENTROID != 0 {
                            Sampling::Centroid
                        } else {
                            Sampling::Center
                        };
                    }
                    out.push((if wide { Place::Wide(io) } else { Place::Io(io) }, scalar));
                }
                Ok(location + locations)
            }
        }
    }

    fn builtin_places(&mut self, b: u32, ty: TyId, input: bool, out: &mut Vec<(Place, Type)>) -> Res<()> {
        let mut types = Vec::new();
        self.p.leaf_types(self.at, ty, &mut types)?;
        let name = BuiltIn::from_u32(b);
        for (k, &ty) in types.iter().enumerate() {
            let k = k.min(u8::MAX as usize) as u8;
            let io = |slot: Slot| Place::Io(IoImm::new(slot, k.min(slot.components() - 1)));
            let stage = self.m.stage;
            let (vertex, fragment) = (stage == Stage::Vertex, stage == Stage::Fragment);
            // Stages whose outputs go on to the rasteriser.
            let before = matches!(stage, Stage::Vertex | Stage::TessEval | Stage::Geometry);
            let primitives = stage.takes_primitives();
            let place = match (name, input) {
                (Some(BuiltIn::VertexIndex), true) if vertex => Place::Builtin(Builtin::VertexIndex),
                (Some(BuiltIn::InstanceIndex), true) if vertex => Place::Builtin(Builtin::InstanceIndex),
                (Some(BuiltIn::BaseVertex), true) if vertex => Place::Builtin(Builtin::BaseVertex),
                (Some(BuiltIn::BaseInstance), true) if vertex => Place::Builtin(Builtin::BaseInstance),
                (Some(BuiltIn::DrawIndex), true) if vertex => Place::Builtin(Builtin::DrawIndex),
                (Some(BuiltIn::FragCoord), true) if fragment => Place::Builtin(Builtin::FragCoord(k)),
                (Some(BuiltIn::FrontFacing), true) if fragment => Place::Builtin(Builtin::FrontFacing),
                (Some(BuiltIn::PointCoord), true) if fragment => Place::Builtin(Builtin::PointCoord(k)),
                (Some(BuiltIn::SampleId), true) if fragment => Place::Builtin(Builtin::SampleId),
                (Some(BuiltIn::SamplePosition), true) if fragment => {
                    Place::Builtin(Builtin::SamplePosition(k))
                }
                (Some(BuiltIn::PrimitiveId), true) if fragment || primitives => {
                    Place::Builtin(Builtin::PrimitiveId)
                }
                (Some(BuiltIn::HelperInvocation), true) if fragment => Place::Helper,
                (Some(BuiltIn::SampleMask), true) if fragment && k == 0 => {
                    Place::Builtin(Builtin::SampleMaskIn)
                }
                (Some(BuiltIn::SampleMask), false) if fragment && k == 0 => io(Slot::SampleMask),
                (Some(BuiltIn::SampleMask), _) if fragment => Place::Nothing,
                (Some(BuiltIn::FragDepth), false) if fragment => io(Slot::FragDepth),
                (Some(BuiltIn::ClipDistance), _) if if input { fragment } else { before } => {
                    io(Slot::ClipDistance)
                }
                (Some(BuiltIn::CullDistance), _) if if input { fragment } else { before } => {
                    io(Slot::CullDistance)
                }
                (Some(BuiltIn::Layer), _) if if input { fragment } else { before } => io(Slot::Layer),
                (Some(BuiltIn::ViewportIndex), _) if if input { fragment } else { before } => {
                    io(Slot::ViewportIndex)
                }
                (Some(BuiltIn::Position), false) if before => io(Slot::Position),
                (Some(BuiltIn::PointSize), false) if before => io(Slot::PointSize),
                (Some(BuiltIn::InvocationId), true) if primitives => Place::Builtin(Builtin::InvocationId),
                (Some(BuiltIn::PatchVertices), true) if primitives => Place::Builtin(Builtin::PatchVertices),
                (Some(BuiltIn::TessCoord), true) if stage == Stage::TessEval => {
                    Place::Builtin(Builtin::TessCoord(k.min(2)))
                }
                (Some(BuiltIn::PrimitiveId), false) if stage == Stage::Geometry => io(Slot::PrimitiveId),
                (Some(b), _) => {
                    return self
                        .err(format!("the built-in variable {b:?} is not supported in this stage yet"));
                }
                (None, _) => return self.err(format!("the built-in variable {b} is not supported")),
            };
            let place = match place {
                Place::Io(io) if input && fragment => {
                    let interpolation = if ty.is_int() { Interpolation::Flat } else { Interpolation::Smooth };
                    Place::Io(IoImm { interpolation, ..io })
                }
                other => other,
            };
            let want = match place {
                Place::Builtin(b) => b.ty(),
                Place::Helper => Type::Bool,
                _ if ty.bits() == 32 => ty,
                _ => Type::I32,
            };
            if want != ty {
                return self.err(format!("a built-in variable is {ty}, not {want}"));
            }
            out.push((place, ty));
        }
        Ok(())
    }

    /// Instructions of fragment shaders.
    pub(super) fn stage_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        use S::*;
        let is_fragment = self.m.stage == Stage::Fragment;
        match op {
            DemoteToHelperInvocation if is_fragment => {
                self.emit(Op::Demote, Type::Bool, Imm::None, &[], &[])?;
            }
            IsHelperInvocationEXT if is_fragment => {
                let (ty, id) = self.result(i)?;
                let v = self.emit1(Op::IsHelper, Type::Bool, Imm::None, &[])?;
                self.set1(id, ty, v)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The invocation ends without outputs.
    pub(super) fn kill(&mut self) -> Res<Term> {
        if self.m.stage != Stage::Fragment {
            return self.err("only fragment shaders can be discarded");
        }
        self.emit(Op::Demote, Type::Bool, Imm::None, &[], &[])?;
        Ok(Term::Return)
    }
}
