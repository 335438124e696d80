//! The part of an artifact that only programs of graphics stages have.

use super::{ReadError, named, printable, value_of};
use kempe_ir::Stage;
use kempe_ir::io::{Interpolation, MAX_TARGETS, Sampling, Slot};
use kempe_ir::primitive::{
    Domain, InputPrimitive, MAX_OUTPUT_VERTICES, MAX_PATCH_VERTICES, OutputPrimitive, PrimitiveModes, Spacing,
};
use kempe_mir::{ColorTarget, Graphics, PrimitiveFacts, Varying, VaryingSource, VertexRow};
use serde::{Deserialize, Serialize};

/// Most entries of each list: more than any machine has rows or varyings.
const MAX_LIST: usize = 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphicsForm {
    binning: bool,
    varyings: Vec<VaryingForm>,
    targets: Vec<TargetForm>,
    writes_depth: bool,
    late_tests: bool,
    per_sample: bool,
    center_w: bool,
    input_rows: Vec<RowForm>,
    output_rows: Vec<RowForm>,
    // Of geometry and tessellation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vertex_rows: Vec<RowForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    patch_rows: Vec<RowForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    patch_output_rows: Vec<RowForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primitive: Option<PrimitiveForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrimitiveForm {
    input: String,
    output: String,
    vertices: u32,
    invocations: u32,
    domain: String,
    spacing: String,
    clockwise: bool,
    point_mode: bool,
    header_rows: u32,
    width: u32,
}

/// Where something comes from or what a row holds: `kind` decides which of the other keys are there.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowForm {
    kind: RowKind,
    /// Of an output for the next stage: the place, which has a number if it is `location`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VaryingForm {
    kind: RowKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<u8>,
    interpolation: String,
    sampling: String,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RowKind {
    // Of varyings.
    PrimitiveId,
    PointCoord,
    // Of both.
    Output,
    // Of rows.
    InstanceId,
    BaseInstance,
    VertexId,
    TessCoord,
    Attribute,
    Clip,
    Screen,
    Depth,
    ReciprocalW,
    PointSize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetForm {
    target: u8,
    components: u8,
    wide: bool,
}

fn row_form(kind: RowKind) -> RowForm {
    RowForm { kind, place: None, location: None, component: None }
}

fn output_form(slot: Slot, component: u8) -> RowForm {
    let (place, location) = match slot {
        Slot::Location(n) => ("location".to_owned(), Some(n)),
        other => (named(&Slot::NAMES, other), None),
    };
    RowForm { kind: RowKind::Output, place: Some(place), location, component: Some(component) }
}

pub(super) fn write(g: &Graphics) -> GraphicsForm {
    let rows = |list: &[VertexRow]| list.iter().map(|&row| write_row(row)).collect();
    GraphicsForm {
        binning: g.binning,
        varyings: g.varyings.iter().map(write_varying).collect(),
        targets: g
            .targets
            .iter()
            .map(|t| TargetForm { target: t.target, components: t.components, wide: t.wide })
            .collect(),
        writes_depth: g.writes_depth,
        late_tests: g.late_tests,
        per_sample: g.per_sample,
        center_w: g.center_w,
        input_rows: rows(&g.input_rows),
        output_rows: rows(&g.output_rows),
        vertex_rows: rows(&g.vertex_rows),
        patch_rows: rows(&g.patch_rows),
        patch_output_rows: rows(&g.patch_output_rows),
        primitive: g.primitive.as_ref().map(write_primitive),
    }
}

fn write_primitive(p: &PrimitiveFacts) -> PrimitiveForm {
    let m = &p.modes;
    PrimitiveForm {
        input: named(&InputPrimitive::NAMES, m.input),
        output: named(&OutputPrimitive::NAMES, m.output),
        vertices: m.vertices,
        invocations: m.invocations,
        domain: named(&Domain::NAMES, m.domain),
        spacing: named(&Spacing::NAMES, m.spacing),
        clockwise: m.clockwise,
        point_mode: m.point_mode,
        header_rows: p.header_rows,
        width: p.width,
    }
}

fn read_primitive(form: &PrimitiveForm) -> Result<PrimitiveFacts, ReadError> {
    let wrong = |key: &str, what: &str| ReadError(format!("graphics.primitive.{key}: `{}`", printable(what)));
    let limits = [
        ("vertices", form.vertices, MAX_OUTPUT_VERTICES),
        ("invocations", form.invocations, MAX_PATCH_VERTICES),
        ("header_rows", form.header_rows, 1 + MAX_OUTPUT_VERTICES),
        ("width", form.width, 16),
    ];
    if let Some((key, n, most)) = limits.iter().find(|(_, n, most)| n > most) {
        return Err(ReadError(format!("graphics.primitive.{key}: {n} is more than {most}")));
    }
    if form.width == 0 || form.invocations == 0 {
        return Err(ReadError("graphics.primitive: batches without invocations".to_owned()));
    }
    let modes = PrimitiveModes {
        input: value_of(&InputPrimitive::NAMES, &form.input).ok_or_else(|| wrong("input", &form.input))?,
        output: value_of(&OutputPrimitive::NAMES, &form.output)
            .ok_or_else(|| wrong("output", &form.output))?,
        vertices: form.vertices,
        invocations: form.invocations,
        domain: value_of(&Domain::NAMES, &form.domain).ok_or_else(|| wrong("domain", &form.domain))?,
        spacing: value_of(&Spacing::NAMES, &form.spacing).ok_or_else(|| wrong("spacing", &form.spacing))?,
        clockwise: form.clockwise,
        point_mode: form.point_mode,
    };
    Ok(PrimitiveFacts { modes, header_rows: form.header_rows, width: form.width })
}

fn write_varying(v: &Varying) -> VaryingForm {
    let row = match v.source {
        VaryingSource::Output(slot, component) => output_form(slot, component),
        VaryingSource::PrimitiveId => row_form(RowKind::PrimitiveId),
        VaryingSource::PointCoord(k) => RowForm { component: Some(k), ..row_form(RowKind::PointCoord) },
    };
    VaryingForm {
        kind: row.kind,
        place: row.place,
        location: row.location,
        component: row.component,
        interpolation: named(&Interpolation::NAMES, v.interpolation),
        sampling: named(&Sampling::NAMES, v.sampling),
    }
}

fn write_row(row: VertexRow) -> RowForm {
    let of = |kind, component| RowForm { component: Some(component), ..row_form(kind) };
    match row {
        VertexRow::InstanceId => row_form(RowKind::InstanceId),
        VertexRow::BaseInstance => row_form(RowKind::BaseInstance),
        VertexRow::VertexId => row_form(RowKind::VertexId),
        VertexRow::PrimitiveId => row_form(RowKind::PrimitiveId),
        VertexRow::TessCoord(k) => of(RowKind::TessCoord, k),
        VertexRow::Attribute { location, component } => {
            RowForm { location: Some(location), ..of(RowKind::Attribute, component) }
        }
        VertexRow::Clip(k) => of(RowKind::Clip, k),
        VertexRow::Screen(k) => of(RowKind::Screen, k),
        VertexRow::Depth => row_form(RowKind::Depth),
        VertexRow::ReciprocalW => row_form(RowKind::ReciprocalW),
        VertexRow::PointSize => row_form(RowKind::PointSize),
        VertexRow::Varying(slot, component) => output_form(slot, component),
    }
}

/// Where an entry stands, for messages.
struct At<'a> {
    list: &'a str,
    index: usize,
}

impl At<'_> {
    fn wrong<T>(&self, what: impl std::fmt::Display) -> Result<T, ReadError> {
        Err(ReadError(format!("graphics.{}[{}]: {what}", self.list, self.index)))
    }
}

/// Keys of an entry.
struct Keys<'a> {
    place: Option<&'a str>,
    location: Option<u8>,
    component: Option<u8>,
}

impl Keys<'_> {
    /// Keys that the kind does not have are as wrong as unknown ones.
    fn only(&self, at: &At, place: bool, location: bool, component: bool) -> Result<(), ReadError> {
        let strays = [
            ("place", self.place.is_some() && !place),
            ("location", self.location.is_some() && !location),
            ("component", self.component.is_some() && !component),
        ];
        match strays.iter().find(|(_, stray)| *stray) {
            Some((key, _)) => at.wrong(format!("`{key}` does not belong to this kind")),
            None => Ok(()),
        }
    }

    fn component(&self, at: &At, count: u8) -> Result<u8, ReadError> {
        match self.component {
            Some(k) if k < count => Ok(k),
            Some(k) => at.wrong(format!("`component` is {k}, and there are {count}")),
            None => at.wrong("`component` is missing"),
        }
    }

    fn location(&self, at: &At) -> Result<u8, ReadError> {
        self.location.map_or_else(|| at.wrong("`location` is missing"), Ok)
    }

    /// A place of the interface and its component.
    fn output(&self, at: &At) -> Result<(Slot, u8), ReadError> {
        let Some(place) = self.place else { return at.wrong("`place` is missing") };
        let Some(slot) = value_of(&Slot::NAMES, place) else {
            return at.wrong(format!("`{}` is no place of an interface", printable(place)));
        };
        let located = matches!(slot, Slot::Location(_));
        self.only(at, true, located, true)?;
        let slot = if located { Slot::Location(self.location(at)?) } else { slot };
        Ok((slot, self.component(at, slot.components())?))
    }
}

pub(super) fn read(form: &GraphicsForm, stage: Stage) -> Result<Graphics, ReadError> {
    let (fragment, primitives) = (stage == Stage::Fragment, stage.takes_primitives());
    // With the stages that have them.
    let lists = [
        ("varyings", form.varyings.len(), fragment),
        ("targets", form.targets.len(), fragment),
        ("input_rows", form.input_rows.len(), !fragment),
        ("output_rows", form.output_rows.len(), !fragment),
        ("vertex_rows", form.vertex_rows.len(), primitives),
        ("patch_rows", form.patch_rows.len(), stage == Stage::TessEval),
        ("patch_output_rows", form.patch_output_rows.len(), stage == Stage::TessControl),
        ("primitive", usize::from(form.primitive.is_some()), primitives),
    ];
    for (name, len, belongs) in lists {
        if len > MAX_LIST {
            return Err(ReadError(format!("graphics.{name}: {len} entries are more than {MAX_LIST}")));
        }
        if len != 0 && !belongs {
            return Err(ReadError(format!("graphics.{name}: does not belong to a program of this stage")));
        }
    }
    if primitives && form.primitive.is_none() {
        return Err(ReadError("graphics.primitive: is missing".to_owned()));
    }
    if form.binning && (fragment || stage == Stage::TessControl) {
        return Err(ReadError(
            "graphics.binning: only programs before the rasteriser have a variant for binning".to_owned(),
        ));
    }
    let varyings = form.varyings.iter().enumerate().map(|(i, v)| read_varying(i, v));
    let targets = form.targets.iter().enumerate().map(|(index, t)| {
        let at = At { list: "targets", index };
        if usize::from(t.target) >= MAX_TARGETS {
            return at.wrong(format!("there is no target {}", t.target));
        }
        if !(1..=4).contains(&t.components) {
            return at.wrong(format!("{} components", t.components));
        }
        Ok(ColorTarget { target: t.target, components: t.components, wide: t.wide })
    });
    let rows = |list, rows: &[RowForm], input: bool| -> Result<Vec<VertexRow>, ReadError> {
        rows.iter().enumerate().map(|(index, row)| read_row(&At { list, index }, row, input)).collect()
    };
    Ok(Graphics {
        binning: form.binning,
        varyings: varyings.collect::<Result<_, _>>()?,
        targets: targets.collect::<Result<_, _>>()?,
        writes_depth: form.writes_depth,
        late_tests: form.late_tests,
        per_sample: form.per_sample,
        center_w: form.center_w,
        input_rows: rows("input_rows", &form.input_rows, true)?,
        output_rows: rows("output_rows", &form.output_rows, false)?,
        vertex_rows: rows("vertex_rows", &form.vertex_rows, false)?,
        patch_rows: rows("patch_rows", &form.patch_rows, false)?,
        patch_output_rows: rows("patch_output_rows", &form.patch_output_rows, false)?,
        primitive: form.primitive.as_ref().map(read_primitive).transpose()?,
    })
}

fn read_varying(index: usize, v: &VaryingForm) -> Result<Varying, ReadError> {
    let at = At { list: "varyings", index };
    let keys = Keys { place: v.place.as_deref(), location: v.location, component: v.component };
    let source = match v.kind {
        RowKind::Output => {
            let (slot, component) = keys.output(&at)?;
            VaryingSource::Output(slot, component)
        }
        RowKind::PrimitiveId => {
            keys.only(&at, false, false, false)?;
            VaryingSource::PrimitiveId
        }
        RowKind::PointCoord => {
            keys.only(&at, false, false, true)?;
            VaryingSource::PointCoord(keys.component(&at, 2)?)
        }
        _ => return at.wrong("this kind is no source of a varying"),
    };
    let Some(interpolation) = value_of(&Interpolation::NAMES, &v.interpolation) else {
        return at.wrong(format!("`{}` is no interpolation", printable(&v.interpolation)));
    };
    let Some(sampling) = value_of(&Sampling::NAMES, &v.sampling) else {
        return at.wrong(format!("`{}` is no place to interpolate at", printable(&v.sampling)));
    };
    Ok(Varying { source, interpolation, sampling })
}

fn read_row(at: &At, form: &RowForm, input: bool) -> Result<VertexRow, ReadError> {
    let keys = Keys { place: form.place.as_deref(), location: form.location, component: form.component };
    let of_inputs = matches!(
        form.kind,
        RowKind::InstanceId
            | RowKind::BaseInstance
            | RowKind::VertexId
            | RowKind::PrimitiveId
            | RowKind::TessCoord
            | RowKind::Attribute
    );
    if input != of_inputs {
        return at.wrong("this kind does not belong into this list");
    }
    let bare = |row| keys.only(at, false, false, false).map(|()| row);
    let counted = |count| keys.only(at, false, false, true).and_then(|()| keys.component(at, count));
    match form.kind {
        RowKind::InstanceId => bare(VertexRow::InstanceId),
        RowKind::BaseInstance => bare(VertexRow::BaseInstance),
        RowKind::VertexId => bare(VertexRow::VertexId),
        RowKind::Attribute => {
            keys.only(at, false, true, true)?;
            Ok(VertexRow::Attribute { location: keys.location(at)?, component: keys.component(at, 4)? })
        }
        RowKind::Clip => Ok(VertexRow::Clip(counted(4)?)),
        RowKind::Screen => Ok(VertexRow::Screen(counted(2)?)),
        RowKind::Depth => bare(VertexRow::Depth),
        RowKind::ReciprocalW => bare(VertexRow::ReciprocalW),
        RowKind::PointSize => bare(VertexRow::PointSize),
        RowKind::Output => {
            let (slot, component) = keys.output(at)?;
            Ok(VertexRow::Varying(slot, component))
        }
        RowKind::PrimitiveId => bare(VertexRow::PrimitiveId),
        RowKind::TessCoord => Ok(VertexRow::TessCoord(counted(3)?)),
        RowKind::PointCoord => at.wrong("this kind is no row"),
    }
}
