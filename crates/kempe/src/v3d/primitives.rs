//! Geometry and tessellation programs: primitives and patches in the rows of the hardware, and what invocations gave out of them
//! (`docs/graphics.md`).

use super::stages::{lanes, place, vertex_outputs};
use crate::run::RunError;
use kempe_ir::Stage;
use kempe_ir::exec::LANES;
use kempe_ir::io::{Slot, StageInputs, StageOutputs, start};
use kempe_mir::{Graphics, VertexRow};
use kempe_v3d::sim::Primitives;
use kempe_v3d::sim::graphics::VertexBatch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Outputs by place, and rows by what they hold.
pub(super) type Given = (StageOutputs, BTreeMap<VertexRow, Vec<Option<u32>>>);

/// Invocations of a batch.
pub(super) fn width(facts: &Graphics) -> usize {
    facts.primitive.map_or(LANES, |p| (p.width as usize).clamp(1, LANES))
}

/// Words by row of a list; what is not given is 0.
fn words(rows: &[VertexRow], values: &BTreeMap<(Slot, u8), Vec<u32>>) -> Vec<Vec<u32>> {
    let word = |row: &VertexRow| match row {
        VertexRow::Varying(slot, component) => values.get(&(*slot, *component)).cloned().unwrap_or_default(),
        _ => Vec::new(),
    };
    rows.iter().map(word).collect()
}

pub(super) fn batches(
    facts: &Graphics,
    stage: Stage,
    inputs: &StageInputs,
) -> (Vec<VertexBatch>, Arc<Primitives>) {
    let (n, width) = (inputs.invocations as usize, width(facts));
    let batch = |first: usize| {
        let exists = |k: usize| k < width && first + k < n;
        let word = |w: u64| lanes(inputs.payload.get(&(w as u32)), first);
        let row = |row: &VertexRow| match *row {
            VertexRow::PrimitiveId => word(start::PRIMITIVE),
            VertexRow::TessCoord(k) => word(start::TESS_X + u64::from(k)),
            _ => [0; LANES],
        };
        let own = lanes(Some(&inputs.primitives), first);
        VertexBatch {
            lanes: (0..LANES).filter(|&k| exists(k)).fold(0, |m, k| m | 1 << k),
            rows: facts.input_rows.iter().map(row).collect(),
            // Lanes that do not exist are of no patch.
            primitive: std::array::from_fn(|k| if exists(k) { own[k] } else { u32::MAX }),
            invocation: word(start::INVOCATION),
        }
    };
    let primitives = Primitives {
        vertices: inputs.vertices,
        vertex_rows: words(&facts.vertex_rows, &inputs.values),
        patch_rows: words(&facts.patch_rows, &inputs.patch_values),
        columns: match (stage, facts.primitive) {
            (Stage::TessControl, Some(p)) => p.modes.vertices,
            _ => 0,
        },
        patch_outputs: facts.patch_output_rows.len() as u32,
    };
    ((0..n).step_by(width).map(batch).collect(), Arc::new(primitives))
}

/// Rows of the segment of a batch.
pub(super) fn segment_rows(facts: &Graphics, stage: Stage) -> u32 {
    let own = facts.output_rows.len() as u32;
    let rows = match (stage, facts.primitive) {
        (Stage::Geometry, Some(p)) => p.header_rows.saturating_add(p.modes.vertices.saturating_mul(own)),
        _ => own,
    };
    rows.max(facts.input_rows.len() as u32).max(1)
}

/// The inputs as the lowered program names them: by row.
pub(super) fn in_rows(facts: &Graphics, stage: Stage, mut inputs: StageInputs) -> StageInputs {
    if !stage.takes_primitives() {
        return inputs;
    }
    let by_row = |rows: &[VertexRow], values: &BTreeMap<(Slot, u8), Vec<u32>>| {
        let rows = words(rows, values).into_iter().enumerate();
        rows.map(|(r, list)| ((Slot::Row(r as u16), 0), list)).collect()
    };
    inputs.values = by_row(&facts.vertex_rows, &inputs.values);
    inputs.patch_values = by_row(&facts.patch_rows, &inputs.patch_values);
    inputs.width = width(facts) as u32;
    inputs
}

/// What invocations gave, in the form of the interface. `word`: what is in a row, by invocation; of its patch if so asked.
pub(super) fn outputs(
    facts: &Graphics,
    stage: Stage,
    inputs: &StageInputs,
    word: impl Fn(usize, bool, usize) -> Option<u32>,
) -> Result<Given, RunError> {
    let n = inputs.invocations as usize;
    if stage != Stage::Geometry {
        let (mut out, rows) = vertex_outputs(facts, n, |r, at| word(at, false, r));
        let patches = inputs.primitives.iter().max().map_or(0, |&p| p as usize + 1);
        for (r, row) in facts.patch_output_rows.iter().enumerate() {
            let mut list = vec![None; patches];
            for at in 0..n {
                if let Some(v) = inputs.primitives.get(at).and_then(|&p| list.get_mut(p as usize)) {
                    *v = word(at, true, r);
                }
            }
            if let Some((slot, component)) = place(*row) {
                out.patch_values.insert((slot, component), list);
            }
        }
        return Ok((out, rows));
    }
    let Some(p) = facts.primitive else {
        return Err(RunError::Setup("the artifact says nothing of its primitives".to_owned()));
    };
    let (most, header, size) = (p.modes.vertices as usize, p.header_rows, facts.output_rows.len());
    let wrong = |at: usize, what: &str| Err(RunError::Program(format!("invocation {at}: {what}")));
    let mut out = StageOutputs { helpers: vec![false; n], ..StageOutputs::default() };
    out.emitted = vec![Vec::new(); n];
    let mut rows: BTreeMap<VertexRow, Vec<Option<u32>>> = BTreeMap::new();
    for &row in &facts.output_rows {
        rows.insert(row, vec![None; n * most]);
    }
    let mut layers = vec![None; n * most];
    for at in 0..n {
        let Some(first) = word(at, false, 0) else {
            return wrong(at, "how many vertices it gives is undefined");
        };
        let count = (first >> 16) as usize;
        if first & 0xffff != header || count > most {
            return wrong(at, &format!("the header is {first:#x}"));
        }
        for k in 0..count {
            let Some(head) = word(at, false, 1 + k) else {
                return wrong(at, "the header of a vertex is undefined");
            };
            if (head >> 8 & 0xff) as usize != size & 0xff || head >> 24 != 0 || head & 0xfe != 0 {
                return wrong(at, &format!("the header of a vertex is {head:#x}"));
            }
            out.emitted[at].push(head & 1 != 0);
            layers[at * most + k] = Some(head >> 16 & 0xff);
            for (r, row) in facts.output_rows.iter().enumerate() {
                if let Some(list) = rows.get_mut(row) {
                    list[at * most + k] = word(at, false, header as usize + k * size + r);
                }
            }
        }
    }
    for (&row, list) in &rows {
        if let Some((slot, component)) = place(row) {
            out.values.insert((slot, component, 0), list.clone());
        }
    }
    // A layer that the program does not choose is the first one.
    if layers.iter().flatten().any(|&l| l != 0) {
        out.values.insert((Slot::Layer, 0, 0), layers);
    }
    Ok((out, rows))
}
