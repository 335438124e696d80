//! Inputs of primitives and patches, and outputs that several invocations share: not copied to variables of their own as those of
//! other stages ([`super::stages`]), but read and written where the source does so, because which vertex and which element is meant
//! is mostly only known when the program runs.
//!
//! A pointer is followed through its type without a layout: constant indexes move the place, others become operands
//! ([`kempe_ir::io::IoImm`]). Members of nested arrays of arrays count in locations, elements of built-in arrays in components.

use super::stages::{MAX_LOCATION, element_slot, halves};
use super::*;
use crate::arith::resize;
use crate::layout::Rule;
use crate::parse::Global;
use kempe_ir::Stage;
use kempe_ir::io::{IoImm, Owner, Slot};
use kempe_ir::primitive::{
    Domain, InputPrimitive, MAX_OUTPUT_VERTICES, MAX_PATCH_VERTICES, OutputPrimitive, PrimitiveModes, Spacing,
};
use spirv::{BuiltIn, ExecutionMode};

/// A number that an operand chooses, and how many it chooses from.
type Choice = Option<(Value, u32)>;

/// A pointer into the interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoPtr {
    ty: TyId,
    input: bool,
    owner: Owner,
    /// Of [`Owner::Vertex`], once an index has chosen it.
    vertex: Option<Value>,
    built_in: Option<u32>,
    location: Option<u32>,
    component: u32,
    /// Counted from `location` and from `component`.
    locations: Choice,
    components: Choice,
    facts: u16,
}

/// Modes of a geometry or tessellation shader.
pub(super) fn primitive_modes(p: &Parsed, entry: &crate::parse::Entry, stage: Stage) -> Res<PrimitiveModes> {
    let mut out = PrimitiveModes::default();
    for &at in &p.modes {
        let i = p.inst(at)?;
        if i.w(1)? != entry.func {
            continue;
        }
        use ExecutionMode as M;
        match ExecutionMode::from_u32(i.w(2)?) {
            Some(M::InputPoints) => out.input = InputPrimitive::Points,
            Some(M::InputLines) => out.input = InputPrimitive::Lines,
            Some(M::InputLinesAdjacency) => out.input = InputPrimitive::LinesAdjacency,
            Some(M::InputTrianglesAdjacency) => out.input = InputPrimitive::TrianglesAdjacency,
            Some(M::Triangles) if stage == Stage::Geometry => out.input = InputPrimitive::Triangles,
            Some(M::Triangles) => out.domain = Domain::Triangles,
            Some(M::Quads) => out.domain = Domain::Quads,
            Some(M::Isolines) => out.domain = Domain::Isolines,
            Some(M::OutputPoints) => out.output = OutputPrimitive::Points,
            Some(M::OutputLineStrip) => out.output = OutputPrimitive::LineStrip,
            Some(M::OutputTriangleStrip) => out.output = OutputPrimitive::TriangleStrip,
            Some(M::OutputVertices) => out.vertices = i.w(3)?,
            Some(M::Invocations) => out.invocations = i.w(3)?,
            Some(M::SpacingEqual) => out.spacing = Spacing::Equal,
            Some(M::SpacingFractionalEven) => out.spacing = Spacing::FractionalEven,
            Some(M::SpacingFractionalOdd) => out.spacing = Spacing::FractionalOdd,
            Some(M::VertexOrderCw) => out.clockwise = true,
            Some(M::PointMode) => out.point_mode = true,
            _ => {}
        }
    }
    let most = if stage == Stage::Geometry { MAX_OUTPUT_VERTICES } else { MAX_PATCH_VERTICES };
    if stage != Stage::TessEval && out.vertices > most {
        return error(entry.at, format!("{} output vertices: at most {most} are supported", out.vertices));
    }
    if stage == Stage::TessControl && out.vertices == 0 {
        return error(entry.at, "a control shader must say how many vertices a patch has that it gives");
    }
    if !(1..=MAX_PATCH_VERTICES).contains(&out.invocations) {
        return error(entry.at, format!("{} invocations for each primitive", out.invocations));
    }
    Ok(out)
}

impl Lower<'_, '_> {
    /// A variable of the interface that belongs to vertices or to the patch.
    pub(super) fn shared_interface(&mut self, global: &Global, input: bool) -> Res<Option<Ptr>> {
        use BuiltIn as B;
        let p = self.p;
        let built_in = number(p, global.id, Numbered::BuiltIn);
        let levels = [B::TessLevelOuter, B::TessLevelInner].map(|b| Some(b as u32));
        let facts = p.facts[global.id as usize];
        let patch = facts & fact::PATCH != 0 || levels.contains(&built_in) || self.is_patch_block(global.ty);
        let of_vertices = [B::Position, B::PointSize, B::ClipDistance, B::CullDistance];
        let own = built_in
            .is_some_and(|b| !levels.contains(&Some(b)) && !of_vertices.iter().any(|v| *v as u32 == b));
        let shared = match self.m.stage {
            Stage::Geometry => input,
            Stage::TessControl => true,
            Stage::TessEval => input,
            _ => false,
        };
        if !shared || own {
            return Ok(None);
        }
        // Sizes are checked before anything grows.
        let lay = self.lay.get(p, self.at, global.ty, Rule::Own)?;
        let io = IoPtr {
            ty: global.ty,
            input,
            owner: if patch { Owner::Patch } else { Owner::Vertex },
            vertex: None,
            built_in,
            location: number(p, global.id, Numbered::Location),
            component: number(p, global.id, Numbered::Component).unwrap_or(0),
            locations: None,
            components: None,
            facts,
        };
        self.io_ptrs.push(io);
        Ok(Some(Ptr {
            base: Base::Interface(self.io_ptrs.len() as u32 - 1),
            index: None,
            offset: 0,
            align: 4,
            lay,
            space: Space::Private,
            volatile: false,
            read_only: input,
            buffer: None,
            promised: 1,
        }))
    }

    /// A block whose members are decorated instead of the variable.
    fn is_patch_block(&self, ty: TyId) -> bool {
        let Ty::Struct { n, .. } = self.p.ty(ty) else { return false };
        let id = self.p.types[ty as usize].id;
        let patch = |k| self.p.member_decor.get(&(id, k)).is_some_and(|d| d.facts & fact::PATCH != 0);
        n > 0 && (0..n).all(patch)
    }

    /// Locations that a type takes.
    fn locations_of(&self, ty: TyId) -> u32 {
        match self.p.ty(ty) {
            Ty::Array { elem, n } | Ty::Matrix { column: elem, n } => {
                n.saturating_mul(self.locations_of(elem))
            }
            Ty::Struct { first, n } => (first..first + n)
                .fold(0, |sum: u32, k| sum.saturating_add(self.locations_of(self.p.members[k as usize]))),
            // Three and four components of 64 bits go on at the next location.
            _ if self.words_of(ty) == 2 && self.p.leaf_count(ty) > 2 => 2,
            _ => 1,
        }
    }

    /// Words that a component of a vector takes.
    fn words_of(&self, ty: TyId) -> u32 {
        if self.p.component(ty).is_some_and(|s| s.bits() == 64) { 2 } else { 1 }
    }

    /// Follows an index.
    pub(super) fn step_into(&mut self, mut ptr: Ptr, index: u32) -> Res<Ptr> {
        let Base::Interface(n) = ptr.base else { return Ok(ptr) };
        let mut io = self.io_ptrs[n as usize];
        let p = self.p;
        let constant = p.int_const(index);
        if io.owner == Owner::Vertex && io.vertex.is_none() {
            let Ty::Array { elem, .. } = p.ty(io.ty) else {
                return self.err("what belongs to vertices must be an array");
            };
            io.vertex = Some(self.index_value(index)?);
            io.ty = elem;
        } else {
            match p.ty(io.ty) {
                Ty::Struct { first, n } => {
                    let Some(m) = constant.filter(|m| (0..i64::from(n)).contains(m)) else {
                        return self.err("an index into a structure must be a constant within it");
                    };
                    self.member(&mut io, first, m as u32);
                }
                Ty::Array { elem, n } | Ty::Matrix { column: elem, n } => {
                    let stride = if io.built_in.is_some() { 1 } else { self.locations_of(elem) };
                    let list = if io.built_in.is_some() { io.components } else { io.locations };
                    let moved = match constant {
                        Some(k) if (0..i64::from(n)).contains(&k) => {
                            let step = (k as u32).saturating_mul(stride);
                            let at = if io.built_in.is_some() {
                                Some(&mut io.component)
                            } else {
                                io.location.as_mut()
                            };
                            if let Some(at) = at {
                                *at = at.saturating_add(step);
                            }
                            list
                        }
                        _ => self.choose_place(list, index, n, stride)?,
                    };
                    *(if io.built_in.is_some() { &mut io.components } else { &mut io.locations }) = moved;
                    io.ty = elem;
                }
                Ty::Vector { elem, n } => {
                    let words = self.words_of(elem);
                    match constant {
                        Some(k) if (0..i64::from(n)).contains(&k) => io.component += words * k as u32,
                        _ if words == 2 => {
                            return self.err("a 64-bit component that an index chooses is not supported yet");
                        }
                        _ => io.components = self.choose_place(io.components, index, n, 1)?,
                    }
                    io.ty = elem;
                }
                _ => return self.err("an access chain into something that has no parts"),
            }
        }
        ptr.lay = self.lay.get(p, self.at, io.ty, Rule::Own)?;
        self.io_ptrs.push(io);
        ptr.base = Base::Interface(self.io_ptrs.len() as u32 - 1);
        Ok(ptr)
    }

    /// Moves to a member of a structure.
    fn member(&self, io: &mut IoPtr, first: u32, m: u32) {
        let p = self.p;
        let id = p.types[io.ty as usize].id;
        let decor = |k: u32| p.member_decor.get(&(id, k)).cloned().unwrap_or_default();
        let mut next = io.location;
        for k in 0..m {
            let d = decor(k);
            if d.built_in.is_none() {
                let size = self.locations_of(p.members[(first + k) as usize]);
                next = d.location.or(next).map(|l| l.saturating_add(size));
            }
        }
        let d = decor(m);
        io.ty = p.members[(first + m) as usize];
        io.location = d.location.or(next);
        io.built_in = d.built_in.or(io.built_in);
        io.facts |= d.facts;
        if d.component != 0 {
            io.component = d.component;
        }
    }

    fn index_value(&mut self, index: u32) -> Res<Value> {
        let v = self.leaf(index)?;
        let ty = self.type_of(index)?;
        let Ty::Int { signed, .. } = self.p.ty(ty) else { return self.err("an index must be an integer") };
        let from = self.ty_of(v);
        resize(self, (from, v), Type::I32, signed)
    }

    /// One more index beside those that have chosen already.
    fn choose_place(&mut self, old: Choice, index: u32, n: u32, stride: u32) -> Res<Choice> {
        let mut v = self.index_value(index)?;
        if stride != 1 {
            // In range before it is scaled: what is beyond counts as the last one.
            let last = self.i32(n.saturating_sub(1));
            let inside = self.op(Op::Umin, Type::I32, &[v, last])?;
            let stride = self.i32(stride);
            v = self.op(Op::Imul, Type::I32, &[inside, stride])?;
        }
        let reach = n.saturating_sub(1).saturating_mul(stride);
        Ok(Some(match old {
            None => (v, reach.saturating_add(1)),
            Some((old, count)) => (self.op(Op::Iadd, Type::I32, &[old, v])?, count.saturating_add(reach)),
        }))
    }

    /// Places of all scalars behind a pointer, in their order.
    fn io_leaves(&mut self, io: IoPtr, out: &mut Vec<(IoPtr, Type)>) -> Res<()> {
        let p = self.p;
        if out.len() > crate::parse::MAX_LEAVES as usize {
            return self.err("this many scalars at once are too many");
        }
        match p.ty(io.ty) {
            Ty::Array { elem, n } if io.owner == Owner::Vertex && io.vertex.is_none() => {
                for k in 0..n {
                    let vertex = Some(self.i32(k));
                    self.io_leaves(IoPtr { vertex, ty: elem, ..io }, out)?;
                }
            }
            Ty::Array { elem, n } | Ty::Matrix { column: elem, n } => {
                for k in 0..n {
                    let mut part = IoPtr { ty: elem, ..io };
                    if io.built_in.is_some() {
                        part.component = io.component.saturating_add(k);
                    } else {
                        let step = k.saturating_mul(self.locations_of(elem));
                        part.location = io.location.map(|l| l.saturating_add(step));
                    }
                    self.io_leaves(part, out)?;
                }
            }
            Ty::Struct { first, n } => {
                for m in 0..n {
                    let mut part = io;
                    self.member(&mut part, first, m);
                    self.io_leaves(part, out)?;
                }
            }
            Ty::Vector { elem, n } => {
                for k in 0..n {
                    let component = io.component.saturating_add(self.words_of(elem) * k);
                    self.io_leaves(IoPtr { ty: elem, component, ..io }, out)?;
                }
            }
            _ => match p.scalar(io.ty) {
                Some(ty) => out.push((io, ty)),
                None => return self.err("something in the interface of a stage is no number"),
            },
        }
        Ok(())
    }

    /// The immediate and the operands of an access to a scalar.
    fn io_access(&mut self, io: &IoPtr, ty: Type) -> Res<(IoImm, SmallVec<[Value; 4]>)> {
        if ty == Type::Bool {
            return self.err("a boolean cannot be in the interface of a stage");
        }
        let mut io = *io;
        // Behind the fourth word comes the next location.
        if let (None, Some(l)) = (io.built_in, io.location) {
            io.location = Some(l.saturating_add(io.component / 4));
            io.component %= 4;
        }
        if ty.bits() == 64 && !io.component.is_multiple_of(2) {
            return self.err("64 bits at an odd component of a location");
        }
        let slot = match (io.built_in, io.location) {
            (Some(b), _) => match element_slot(b) {
                Some(slot) => slot,
                None => {
                    let name = BuiltIn::from_u32(b);
                    return self
                        .err(format!("the built-in variable {name:?} is not supported in this stage yet"));
                }
            },
            (None, Some(l)) if l <= MAX_LOCATION => Slot::Location(l as u8),
            (None, Some(l)) => return self.err(format!("the location {l}")),
            (None, None) => return self.err("something in the interface of a stage has no location"),
        };
        let count = |c: Choice| c.map_or(0, |c| c.1);
        let (locations, components) = (count(io.locations), count(io.components));
        let last = io.location.unwrap_or(0).saturating_add(locations.saturating_sub(1));
        if io.built_in.is_none() && last > MAX_LOCATION {
            return self.err(format!("the location {last}"));
        }
        let last = io.component.saturating_add(components.saturating_sub(1));
        if last >= u32::from(slot.components()) {
            return self.err(format!("component {last} of something that has {}", slot.components()));
        }
        let imm = IoImm {
            owner: io.owner,
            locations: locations as u16,
            components: components as u8,
            ..IoImm::new(slot, io.component as u8)
        };
        let mut numbers: SmallVec<[Value; 4]> = smallvec![];
        numbers.extend(io.vertex.filter(|_| io.owner == Owner::Vertex));
        numbers.extend(io.locations.map(|c| c.0));
        numbers.extend(io.components.map(|c| c.0));
        Ok((imm, numbers))
    }

    pub(super) fn load_interface(&mut self, n: u32, out: &mut Vec<Value>) -> Res<()> {
        let io = self.io_ptrs[n as usize];
        let mut leaves = Vec::new();
        self.io_leaves(io, &mut leaves)?;
        for (leaf, ty) in leaves {
            let (imm, numbers) = self.io_access(&leaf, ty)?;
            let op = if io.input { Op::Input } else { Op::ReadOutput };
            let v = if ty.bits() == 64 {
                let mut words: SmallVec<[Value; 2]> = smallvec![];
                for imm in halves(imm) {
                    words.push(self.emit1(op, Type::I32, Imm::Io(imm), &numbers)?);
                }
                self.bitcast_values(&words, ty)?[0]
            } else {
                self.emit1(op, ty, Imm::Io(imm), &numbers)?
            };
            out.push(v);
        }
        Ok(())
    }

    pub(super) fn store_interface(&mut self, n: u32, data: &mut &[Value]) -> Res<()> {
        let io = self.io_ptrs[n as usize];
        if io.input {
            return self.err("a store to an input");
        }
        let mut leaves = Vec::new();
        self.io_leaves(io, &mut leaves)?;
        let (Some(now), Some(rest)) = (data.get(..leaves.len()), data.get(leaves.len()..)) else {
            return self.err("a store of a value of another type");
        };
        *data = rest;
        for ((leaf, ty), &v) in leaves.into_iter().zip(now) {
            if self.ty_of(v) != ty {
                return self.err("a store of a value of another type");
            }
            let (imm, numbers) = self.io_access(&leaf, ty)?;
            let give = |l: &mut Self, ty: Type, imm: IoImm, v: Value| -> Res<()> {
                let mut args: SmallVec<[Value; 4]> = smallvec![v];
                args.extend(numbers.iter().copied());
                l.emit(Op::Output, ty, Imm::Io(imm), &args, &[])?;
                Ok(())
            };
            if ty.bits() == 64 {
                let words = self.bitcast_values(&[v], Type::I32)?;
                for (imm, &word) in halves(imm).into_iter().zip(&words) {
                    give(self, Type::I32, imm, word)?;
                }
            } else {
                give(self, ty, imm, v)?;
            }
        }
        Ok(())
    }

    /// Instructions of geometry shaders.
    pub(super) fn vertex_inst(&mut self, i: &Inst, op: S) -> Res<bool> {
        let stream = match op {
            S::EmitVertex | S::EndPrimitive => 0,
            S::EmitStreamVertex | S::EndStreamPrimitive => match self.p.int_const(i.w(1)?) {
                Some(n) => n,
                None => return self.err("the number of a stream must be a constant"),
            },
            _ => return Ok(false),
        };
        if self.m.stage != Stage::Geometry {
            return self.err("only geometry shaders give vertices");
        }
        if stream != 0 {
            return self.err(format!("vertices of stream {stream}: only stream 0 is supported yet"));
        }
        let op = match op {
            S::EmitVertex | S::EmitStreamVertex => {
                self.give_outputs()?;
                Op::EmitVertex
            }
            _ => Op::EndPrimitive,
        };
        self.emit(op, Type::Bool, Imm::Stream(0), &[], &[])?;
        Ok(true)
    }
}
