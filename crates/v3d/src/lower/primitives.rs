//! What belongs to vertices and patches, in rows (`docs/graphics.md`; reference 12.3; of tessellation the contract is our own).
//!
//! Every scalar that a program names has a row among those of its vertices, or of its patch, by place and component. What one index
//! chooses from lies at equal distances: its locations have all components that any of them has.

use super::*;
use kempe_ir::io::{IoImm, Owner, Slot};
use kempe_ir::primitive::MAX_PATCH_VERTICES;
use kempe_ir::{Builtin, Flags};
use kempe_mir::{PrimitiveFacts, VertexRow};
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};

/// Scalars of a vertex that a geometry program takes (reference section 1).
const MAX_GEOMETRY_INPUTS: usize = 64;
/// Rows of a segment: 16 sectors of 8 rows at full width (reference 12.3).
const MAX_ROWS: usize = 128;
/// Rows of the output of a geometry program by width of the batch: the segment is 16 sectors of 8 rows of 16 words.
const WIDTHS: [(u32, u32); 4] = [(16, 128), (8, 256), (4, 512), (1, 2048)];
/// Lanes of a batch.
const LANES: u32 = 16;

/// Rows of one kind.
#[derive(Clone, Default, Debug)]
pub(super) struct Rows {
    list: Vec<(Slot, u8)>,
    /// Of the locations of an index: how many rows a step is.
    stride: BTreeMap<u8, u16>,
}

impl Rows {
    fn new(accesses: &[IoImm]) -> Rows {
        // Locations, or the place itself, with the components that are named of them.
        let mut named: BTreeMap<Slot, BTreeSet<u8>> = BTreeMap::new();
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for io in accesses {
            for step in 0..u32::from(io.locations.max(1)) {
                let components = named.entry(io.place(step, 0).0).or_default();
                components.extend((0..u32::from(io.components.max(1))).map(|k| io.place(0, k).1));
            }
            if let (Slot::Location(first), true) = (io.slot, io.locations > 1) {
                let Slot::Location(last) = io.place(u32::from(io.locations) - 1, 0).0 else { continue };
                ranges.push((first, last));
            }
        }
        ranges.sort_unstable();
        let mut merged: Vec<(u8, u8)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(m) if first <= m.1 => m.1 = m.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        let mut out = Rows::default();
        for (first, last) in merged {
            let all: BTreeSet<u8> = (first..=last)
                .flat_map(|l| named.get(&Slot::Location(l)).into_iter().flatten().copied())
                .collect();
            let (Some(&low), Some(&high)) = (all.first(), all.last()) else { continue };
            for l in first..=last {
                named.insert(Slot::Location(l), (low..=high).collect());
                out.stride.insert(l, u16::from(high - low) + 1);
            }
        }
        for (slot, components) in named {
            out.list.extend(components.into_iter().map(|c| (slot, c)));
        }
        out
    }

    fn row(&self, slot: Slot, component: u8) -> Option<u16> {
        self.list.iter().position(|&p| p == (slot, component)).map(|n| n as u16)
    }

    fn names(&self) -> Vec<VertexRow> {
        self.list.iter().map(|&(slot, component)| VertexRow::Varying(slot, component)).collect()
    }
}

/// Rows of the interface of a program.
#[derive(Clone, Default, Debug)]
pub(super) struct Interface {
    vertex: Rows,
    patch: Rows,
    /// Of a control program.
    output: Rows,
    patch_output: Rows,
    /// Of a geometry program: what it says of any vertex.
    pub said: BTreeSet<(Slot, u8)>,
}

impl Interface {
    pub fn new(m: &Module, f: &Function) -> Interface {
        let mut lists: BTreeMap<(bool, Owner), Vec<IoImm>> = BTreeMap::new();
        let mut said = BTreeSet::new();
        for &i in f.layout.iter().flat_map(|&b| &f.blocks[b].insts) {
            let d = &f.insts[i];
            let Imm::Io(io) = d.imm else { continue };
            if m.stage == Stage::Geometry && d.op == Op::Output {
                if !matches!(io.slot, Slot::Row(_)) {
                    said.insert((io.slot, io.component));
                }
                continue;
            }
            lists.entry((d.op == Op::Input, io.owner)).or_default().push(io);
        }
        let rows = |input, owner| Rows::new(lists.get(&(input, owner)).map_or(&[], Vec::as_slice));
        Interface {
            vertex: rows(true, Owner::Vertex),
            patch: rows(true, Owner::Patch),
            output: rows(false, Owner::Vertex),
            patch_output: rows(false, Owner::Patch),
            said,
        }
    }
}

/// Takes out of a program for binning what nobody looks at, so that it asks for no rows that it does not read.
pub(super) fn positions_only(m: &mut Module) {
    // What no program can give is refused in both.
    let needed = |slot| matches!(slot, Slot::Position | Slot::PointSize | Slot::Layer | Slot::ViewportIndex);
    for &b in &m.func.layout {
        let insts = &m.func.insts;
        m.func.blocks[b].insts.retain(|&i| match (insts[i].op, insts[i].imm) {
            (Op::Output, Imm::Io(io)) => needed(io.slot),
            _ => true,
        });
    }
    // Branches that decide about nothing any more go with what they decided about.
    for _ in 0..ROUNDS {
        if !(kempe_opt::dce::run(m) | kempe_opt::cfg::run(m)) {
            return;
        }
    }
}

/// Rounds of taking out code that is dead and branches that decide about nothing: nested ones need one each.
const ROUNDS: u32 = 8;

impl Lower<'_> {
    /// A number below `n`: what is beyond is the last one.
    fn inside(&mut self, v: Value, n: u32) -> Value {
        let last = n.saturating_sub(1);
        if let Some(k) = self.e.value_of(v) {
            return self.e.i(k.min(last));
        }
        let width = self.e.known(v).width();
        if width < 32 && 1u32 << width <= n {
            return v;
        }
        let last = self.e.i(last);
        self.e.int(Op::Umin, &[v, last])
    }

    /// The number of the invocation in its primitive or patch.
    fn is_invocation(&self, source: Value) -> bool {
        let inst = self.src.def_inst(source).map(|i| &self.src.insts[i]);
        inst.is_some_and(|d| d.imm == Imm::Builtin(Builtin::InvocationId))
    }

    fn number(&mut self, inst: &InstData, k: usize, n: u32) -> Result<Value> {
        let v = self.arg(inst, k)?;
        let invocations = match self.m.stage {
            Stage::TessControl => self.m.primitive.vertices,
            _ => self.m.primitive.invocations,
        };
        let inside = self.is_invocation(v) && invocations <= n;
        let v = self.one(v)?;
        Ok(if inside { v } else { self.inside(v, n) })
    }

    /// The access in rows, with its operands from number `first` of the source's on, which is that of the vertex if it has one.
    fn rows(&mut self, inst: &InstData, first: usize, rows: &Rows) -> Result<(IoImm, SmallVec<[Value; 4]>)> {
        let Imm::Io(io) = inst.imm else { return self.error("an access without its place") };
        let mut next = first;
        let mut take = || {
            next += 1;
            next - 1
        };
        let vertex = (io.owner == Owner::Vertex).then(&mut take);
        let location = (io.locations != 0).then(&mut take);
        let component = (io.components != 0).then(&mut take);
        let Some(row) = rows.row(io.slot, io.component) else { return self.error("an access without a row") };
        let mut args: SmallVec<[Value; 4]> = smallvec![];
        if let Some(k) = vertex {
            let n = match self.m.stage {
                Stage::Geometry => self.m.primitive.input.vertices(),
                _ if inst.op == Op::ReadOutput => self.m.primitive.vertices,
                _ => MAX_PATCH_VERTICES,
            };
            args.push(self.number(inst, k, n)?);
        }
        let mut reach = 0u32;
        let mut offset: Option<Value> = None;
        if let Some(k) = location {
            let Slot::Location(l) = io.slot else {
                return self.error("locations of something that has none");
            };
            let stride = rows.stride.get(&l).copied().unwrap_or(1);
            let v = self.number(inst, k, io.locations.into())?;
            reach += u32::from(io.locations - 1) * u32::from(stride);
            offset = Some(self.e.mul_c(v, stride.into()));
        }
        if let Some(k) = component {
            let v = self.number(inst, k, io.components.into())?;
            reach += u32::from(io.components - 1);
            offset = Some(match offset {
                Some(o) => self.e.add(o, v),
                None => v,
            });
        }
        let mut out = IoImm { owner: io.owner, ..IoImm::new(Slot::Row(row), 0) };
        match offset.map(|o| (o, self.e.value_of(o))) {
            None => {}
            Some((_, Some(k))) => out.slot = Slot::Row(row + k as u16),
            Some((v, None)) => {
                out.locations = reach as u16 + 1;
                args.push(v);
            }
        }
        Ok((out, args))
    }

    /// `input` and `read_output` of these stages.
    pub(super) fn input_row(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Io(io) = inst.imm else { return self.error("an access without its place") };
        let rows = match (inst.op, io.owner) {
            (Op::ReadOutput, Owner::Patch) => self.interface.patch_output.clone(),
            (Op::ReadOutput, _) => self.interface.output.clone(),
            (_, Owner::Patch) => self.interface.patch.clone(),
            _ => self.interface.vertex.clone(),
        };
        let r = self.result(inst)?;
        let (imm, args) = self.rows(inst, 0, &rows)?;
        let word = if matches!(inst.ty, Type::F32 | Type::F16) { Type::F32 } else { Type::I32 };
        let i = self.e.inst(inst.op, word, Flags::NONE, Imm::Io(imm), &args, &[word]);
        let v = self.e.func.insts[i].results[0];
        let rep = match inst.ty {
            Type::I32 | Type::F32 => Rep::One(v),
            Type::I16 => Rep::Narrow(v, None),
            ty => return self.error(format!("an input of type {ty} is not supported yet")),
        };
        self.set(r, rep);
        Ok(())
    }

    /// `output` of a control shader.
    pub(super) fn control_output(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Io(io) = inst.imm else { return self.error("an access without its place") };
        let value = self.output_value(inst)?;
        let patch = io.owner == Owner::Patch;
        let rows = if patch { self.interface.patch_output.clone() } else { self.interface.output.clone() };
        if !patch {
            let vertex = self.arg(inst, 1)?;
            let only = self.m.primitive.vertices == 1 && self.src.as_const(vertex) == Some(0);
            if !self.is_invocation(vertex) && !only {
                return self.error(
                    "an output of another vertex: an invocation gives its own vertex of the patch only",
                );
            }
        }
        let (mut imm, numbers) = self.rows(inst, 1, &rows)?;
        let mut args: SmallVec<[Value; 4]> = smallvec![value];
        // Its own vertex is its own column.
        args.extend(numbers.into_iter().skip(usize::from(!patch)));
        if !patch {
            imm.owner = Owner::Invocation;
        }
        let ty = self.e.func.ty(value);
        self.e.inst(Op::Output, ty, Flags::NONE, Imm::Io(imm), &args, &[]);
        Ok(())
    }

    /// A vertex of a geometry shader, with what was said of it.
    pub(super) fn emit_vertex(&mut self, inst: &InstData) -> Result<()> {
        let (n, begins) = (self.arg(inst, 0)?, self.arg(inst, 1)?);
        let (n, begins) = (self.one(n)?, self.one(begins)?);
        let outputs = std::mem::take(&mut self.outputs);
        let size = self.rows.len() as u32;
        let most = self.m.primitive.vertices.max(1);
        let header = vertices::header_rows(self.m.primitive.vertices);
        let offset = self.e.mul_c(n, size);
        // Nobody looks at what is drawn without a position.
        let placed = outputs.keys().any(|k| k.0 == Slot::Position);
        for (row, v) in self.vertex_rows(&outputs) {
            if !placed && !matches!(row, VertexRow::Varying(..) | VertexRow::PointSize) {
                continue;
            }
            let Some(k) = self.rows.iter().position(|&r| r == row) else { continue };
            self.give_row(header + k as u32, offset, (most - 1) * size, v);
        }
        // Reference 12.3: bit 0 begins a primitive, bits 15:8 rows, bits 23:16 the layer.
        let mut word = begins;
        if let Some(&layer) = outputs.get(&(Slot::Layer, 0)) {
            let layer = self.e.and_c(layer, 0xff);
            let layer = self.e.shl_c(layer, 16);
            word = self.e.or(word, layer);
        }
        let rows = self.e.i(size << 8);
        word = self.e.or(word, rows);
        self.give_row(1, n, most - 1, word);
        Ok(())
    }

    /// Gives a row some rows behind the named one, `reach` at most.
    fn give_row(&mut self, row: u32, offset: Value, reach: u32, v: Value) {
        let ty = self.e.func.ty(v);
        let mut io = IoImm::new(Slot::Row(row as u16), 0);
        let mut args: SmallVec<[Value; 2]> = smallvec![v];
        match self.e.value_of(offset) {
            Some(k) => io.slot = Slot::Row((row + k) as u16),
            None => {
                io.locations = reach as u16 + 1;
                args.push(offset);
            }
        }
        self.e.inst(Op::Output, ty, Flags::NONE, Imm::Io(io), &args, &[]);
    }

    /// Before anything is lowered: what vertices have, and whether there is room for it.
    pub(super) fn start_primitives(&mut self) -> Result<()> {
        self.interface = Interface::new(self.m, self.src);
        let i = &self.interface;
        let (vertices, inputs) = (self.m.primitive.vertices, i.vertex.list.len());
        match self.m.stage {
            Stage::Geometry => {
                if inputs > MAX_GEOMETRY_INPUTS {
                    return self.error(format!(
                        "{inputs} scalar inputs of a vertex: the hardware takes {MAX_GEOMETRY_INPUTS}"
                    ));
                }
                let said = std::mem::take(&mut self.interface.said);
                self.rows = self.vertex_layout(&said);
                if self.width().is_none() {
                    let rows = self.output_rows();
                    return self.error(format!(
                        "{vertices} vertices take {rows} rows: the hardware has room for {}",
                        WIDTHS[WIDTHS.len() - 1].1
                    ));
                }
            }
            Stage::TessControl if vertices > LANES => {
                return self.error(format!(
                    "a patch of {vertices} vertices: the invocations of a patch are lanes of one batch, which has {LANES}"
                ));
            }
            _ => {}
        }
        for (what, rows) in [
            ("inputs of a vertex", &self.interface.vertex),
            ("inputs of a patch", &self.interface.patch),
            ("outputs of a vertex", &self.interface.output),
            ("outputs of a patch", &self.interface.patch_output),
        ] {
            if rows.list.len() > MAX_ROWS {
                return self.error(format!("{} {what}: there are {MAX_ROWS} rows for them", rows.list.len()));
            }
        }
        if self.m.stage == Stage::TessControl {
            self.rows = self.interface.output.names();
        }
        Ok(())
    }

    /// Rows of all that an invocation of a geometry program gives.
    fn output_rows(&self) -> u32 {
        let vertices = self.m.primitive.vertices;
        vertices::header_rows(vertices).saturating_add(vertices.saturating_mul(self.rows.len() as u32))
    }

    /// Most lanes of a batch of a geometry program.
    fn width(&self) -> Option<u32> {
        let rows = self.output_rows();
        WIDTHS.iter().find(|w| rows <= w.1).map(|w| w.0)
    }

    /// What a driver must know besides the rows of the outputs.
    pub(super) fn primitive_facts(&self, facts: &mut kempe_mir::Graphics) {
        facts.vertex_rows = self.interface.vertex.names();
        facts.patch_rows = self.interface.patch.names();
        facts.patch_output_rows = self.interface.patch_output.names();
        facts.primitive = Some(PrimitiveFacts {
            modes: self.m.primitive,
            header_rows: match self.m.stage {
                Stage::Geometry => vertices::header_rows(self.m.primitive.vertices),
                _ => 0,
            },
            width: match self.m.stage {
                Stage::Geometry => self.width().unwrap_or(1),
                Stage::TessControl => {
                    LANES / self.m.primitive.vertices.clamp(1, LANES) * self.m.primitive.vertices
                }
                _ => LANES,
            },
        });
    }
}
