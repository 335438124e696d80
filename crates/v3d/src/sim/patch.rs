//! What vertices of primitives and patches have, and what a patch is given (section 12.3).
//!
//! Of geometry: a row and a vertex number for each lane. Of tessellation the reference only has the names of the operations; modelled is
//! our own contract (`docs/graphics.md`): inputs as in geometry, `iid` the number of the invocation, outputs of a vertex in the column
//! of its lane, read back with the number of the vertex in its patch; per-patch rows are one cell for all lanes of a patch. Lanes of one
//! patch that write different words at once leave that cell undefined. Reading back needs a wait for the writes before.

use super::graphics::VertexBatch;
use super::thread::{Cause, Thread, Trouble, Value};
use super::tmu::lanes_of;
use super::vpm::{Row, Vpm};
use super::{LANES, Lanes, Mask};
use crate::instr::Op;
use std::sync::Arc;

/// What a draw has for all batches of a geometry or tessellation stage. Missing words are undefined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Primitives {
    /// Vertices of a primitive or patch that the program is given.
    pub vertices: u32,
    /// By row, then by primitive, then by vertex.
    pub vertex_rows: Vec<Vec<u32>>,
    /// By row, then by patch.
    pub patch_rows: Vec<Vec<u32>>,
    /// Of a control program: lanes of a patch, and rows that it may write for it.
    pub columns: u32,
    pub patch_outputs: u32,
}

/// The same for a batch.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    all: Arc<Primitives>,
    /// By lane.
    primitive: Lanes,
    invocation: Lanes,
    /// Rows of the patch that a control program has written: a word for each lane, the same for those of a patch.
    given: Vec<Row>,
}

impl Patch {
    pub fn new(all: &Arc<Primitives>, batch: &VertexBatch) -> Patch {
        Patch {
            all: all.clone(),
            primitive: batch.primitive,
            invocation: batch.invocation,
            given: vec![Row::EMPTY; all.patch_outputs as usize],
        }
    }

    pub fn outputs(&self) -> &[Row] {
        &self.given
    }

    fn is_control(&self) -> bool {
        self.all.columns != 0
    }

    /// Lanes of the patch of a lane.
    fn siblings(&self, lane: usize) -> Mask {
        (0..LANES).filter(|&k| self.primitive[k] == self.primitive[lane]).fold(0, |m, k| m | 1 << k)
    }
}

/// Most vertices that a number may mean.
const MAX_VERTICES: u32 = 32;

impl Vpm {
    /// A vertex's or patch's word in a lane; `None`: undefined.
    fn word_of(&self, op: Op, lane: usize, row: u32, vertex: u32) -> Result<Option<u32>, Trouble> {
        let Some(patch) = &self.patch else {
            return Err(Trouble::new(
                "unsupported",
                format!("{} outside of geometry and tessellation", op.name()),
            ));
        };
        let beyond = |what: &str, count: usize| {
            Trouble::lane("12.3", lane as u32, format!("row {row} of the {count} rows of a {what}"))
        };
        let all = &patch.all;
        let primitive = patch.primitive[lane] as usize;
        let known = |r: &Row, k: usize| (r.known >> k & r.written >> k & 1 != 0).then_some(r.words[k]);
        if matches!(op, Op::LdvpmgIn | Op::LdvpmgOut) && vertex >= MAX_VERTICES {
            return Err(Trouble::lane("12.3", lane as u32, format!("vertex {vertex} of a primitive")));
        }
        match op {
            Op::LdvpmgIn => {
                let Some(list) = all.vertex_rows.get(row as usize) else {
                    return Err(beyond("vertex", all.vertex_rows.len()));
                };
                let at = primitive * all.vertices as usize + vertex as usize;
                Ok(if vertex < all.vertices { list.get(at).copied() } else { None })
            }
            Op::Ldvpmp if !patch.is_control() => {
                let Some(list) = all.patch_rows.get(row as usize) else {
                    return Err(beyond("patch", all.patch_rows.len()));
                };
                Ok(list.get(primitive).copied())
            }
            Op::Ldvpmp => {
                self.settled()?;
                let Some(cell) = patch.given.get(row as usize) else {
                    return Err(beyond("patch", patch.given.len()));
                };
                Ok(known(cell, lane))
            }
            _ if patch.is_control() => {
                self.settled()?;
                if vertex >= all.columns {
                    return Err(Trouble::lane(
                        "12.3",
                        lane as u32,
                        format!("vertex {vertex} of {}", all.columns),
                    ));
                }
                let Some(cell) = self.rows.get(row as usize) else {
                    return Err(beyond("vertex", self.rows.len()));
                };
                let first = patch.siblings(lane).trailing_zeros();
                Ok(known(cell, ((first + vertex) as usize).min(LANES - 1)))
            }
            op => Err(Trouble::new(
                "unsupported",
                format!("{} of a geometry program is not modelled", op.name()),
            )),
        }
    }

    /// What is read back has been waited for.
    fn settled(&self) -> Result<(), Trouble> {
        match self.open {
            true => Err(Trouble::new("12.3", "rows are read back before their writes are waited for")),
            false => Ok(()),
        }
    }
}

impl Thread {
    /// ldvpmg and ldvpmp. A lane that holds no row or vertex gets nothing.
    pub(super) fn patch_read(
        &mut self,
        op: Op,
        [row, vertex]: [&Value; 2],
        lanes: Mask,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let Some(vpm) = self.vpm() else {
            return Err(Trouble::new(
                "unsupported",
                "the VPM outside of vertices and patches is not modelled",
            ));
        };
        let unknown = row.poison | if op == Op::Ldvpmp { 0 } else { vertex.poison };
        let (mut v, mut poison) = ([0; LANES], Mask::MAX);
        for i in lanes_of(lanes & vpm.lanes & !unknown) {
            if let Some(word) = vpm.word_of(op, i, row.v[i], vertex.v[i])? {
                v[i] = word;
                poison &= !(1 << i);
            }
        }
        Ok((v, poison, Some(Cause::Never)))
    }

    /// stvpmp.
    pub(super) fn patch_write(
        &mut self,
        [row, value]: [&Value; 2],
        lanes: Mask,
        maybe: Mask,
        cause: Cause,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let Some(vpm) = self.vpm().filter(|v| v.patch.as_ref().is_some_and(Patch::is_control)) else {
            return Err(Trouble::new("unsupported", "stvpmp outside of a control program is not modelled"));
        };
        if maybe & vpm.lanes != 0 {
            return Err(Trouble::poison(cause, maybe & vpm.lanes, "the condition of a VPM write"));
        }
        let lanes = lanes & vpm.lanes;
        if row.poison & lanes != 0 {
            return Err(Trouble::poison(row.cause, row.poison & lanes, "the row of a VPM access"));
        }
        let Some(patch) = &mut vpm.patch else { return Ok(([0; LANES], Mask::MAX, None)) };
        for i in lanes_of(lanes) {
            let siblings = patch.siblings(i);
            let count = patch.given.len();
            let Some(cell) = patch.given.get_mut(row.v[i] as usize) else {
                let message = format!("row {} of the {count} rows of a patch", row.v[i]);
                return Err(Trouble::lane("12.3", i as u32, message));
            };
            let same = |k: usize| value.poison >> k & 1 == 0 && value.v[k] == value.v[i];
            let agree = lanes_of(siblings & lanes).filter(|&k| row.v[k] == row.v[i]).all(same);
            for k in lanes_of(siblings) {
                cell.words[k] = value.v[i];
            }
            cell.written |= siblings;
            cell.known = if agree { cell.known | siblings } else { cell.known & !siblings };
        }
        vpm.open = true;
        Ok(([0; LANES], Mask::MAX, Some(Cause::Unsettled)))
    }

    /// iid.
    pub(super) fn invocation(&mut self) -> Option<Lanes> {
        self.vpm()?.patch.as_ref().map(|p| p.invocation)
    }
}
