//! The VPM segment of a batch of vertices, or of invocations of a geometry or tessellation program (section 12.3): rows of a column
//! for each lane, shared by inputs and outputs.
//!
//! Rule 62 cannot be seen in the words, but in a run: reading as input what an output has been put over stops it. Rule 53:
//! 4.2 waits for its writes before the end. Where the reference is silent: a row that is the same for all lanes must be so
//! in all of them; lanes without a vertex read undefined values and write nothing; rows outside of the segment stop the run (`12.3`).
//! What belongs to vertices of primitives and to patches is in [`super::patch`]. Not modelled: the legacy addresses.

use super::graphics::{Draw, Stage, VertexBatch, VpmRow};
use super::patch::Patch;
use super::thread::{Cause, Machine, Thread, Trouble, Value};
use super::tmu::lanes_of;
use super::{LANES, Lanes, Mask};
use crate::instr::{Op, Version};

/// Rows of a segment of which nothing is said.
const ROWS: usize = 128;

#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub words: Lanes,
    /// Lanes that hold a value: an input, or a defined output.
    pub known: Mask,
    pub written: Mask,
}

impl Row {
    pub const EMPTY: Row = Row { words: [0; LANES], known: 0, written: 0 };
}

#[derive(Clone, Debug)]
pub(super) struct Vpm {
    pub rows: Vec<Row>,
    /// Lanes with a vertex or invocation.
    pub lanes: Mask,
    /// Writes have not been waited for.
    pub open: bool,
    /// Of geometry and tessellation.
    pub patch: Option<Patch>,
}

impl Vpm {
    pub fn new(batch: &VertexBatch, draw: &Draw) -> Vpm {
        let count = if draw.segment_rows == 0 { ROWS } else { draw.segment_rows as usize };
        let count = count.clamp(batch.rows.len(), 1 << 12);
        let row = |n: usize| match batch.rows.get(n) {
            Some(&words) => Row { words, known: batch.lanes, written: 0 },
            None => Row::EMPTY,
        };
        let patch = draw.primitives.as_ref().map(|all| Patch::new(all, batch));
        Vpm { rows: (0..count).map(row).collect(), lanes: batch.lanes, open: false, patch }
    }

    /// Rows of the lanes, and of their patches.
    pub fn outputs(self) -> [Vec<VpmRow>; 2] {
        let rows = |list: &[Row]| {
            let end = list.iter().rposition(|r| r.written != 0).map_or(0, |n| n + 1);
            let row = |r: &Row| VpmRow { words: r.words, written: r.written, poison: r.written & !r.known };
            list[..end].iter().map(row).collect()
        };
        [rows(&self.rows), self.patch.as_ref().map_or(Vec::new(), |p| rows(p.outputs()))]
    }

    fn row(&mut self, row: u32, lane: usize) -> Result<&mut Row, Trouble> {
        let count = self.rows.len();
        self.rows.get_mut(row as usize).ok_or_else(|| {
            Trouble::lane("12.3", lane as u32, format!("row {row} of a VPM segment of {count} rows"))
        })
    }

    /// The program ends.
    fn at_end(&self, version: Version) -> Result<(), Trouble> {
        match self.open && version == Version::V42 {
            true => Err(Trouble::new("53", "the end without waiting for the writes of the VPM")),
            false => Ok(()),
        }
    }
}

fn no_vpm() -> Trouble {
    Trouble::new("unsupported", "the VPM outside of vertices and patches is not modelled")
}

impl Thread {
    pub(super) fn vpm(&mut self) -> Option<&mut Vpm> {
        match self.stage.as_mut() {
            Some(Stage::Vertex(vpm)) => Some(vpm),
            _ => None,
        }
    }

    pub(super) fn vpm_read(
        &mut self,
        op: Op,
        row: &Value,
        lanes: Mask,
        maybe: Mask,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let Some(vpm) = self.vpm() else { return Err(no_vpm()) };
        let input = matches!(op, Op::LdvpmvIn | Op::LdvpmdIn);
        let lanes = match op {
            Op::LdvpmvIn | Op::LdvpmvOut => {
                one_row(row)?;
                vpm.lanes
            }
            // A lane that does not want the result may hold any row.
            _ => vpm.lanes & (lanes | maybe),
        };
        if row.poison & lanes != 0 {
            return Err(Trouble::poison(row.cause, row.poison & lanes, "the row of a VPM access"));
        }
        let (mut v, mut poison) = ([0; LANES], Mask::MAX);
        for i in lanes_of(lanes) {
            let cell = vpm.row(row.v[i], i)?;
            if input && cell.written >> i & 1 != 0 {
                return Err(Trouble::lane(
                    "62",
                    i as u32,
                    format!("input row {} is read after an output was put over it", row.v[i]),
                ));
            }
            if (cell.known & if input { Mask::MAX } else { cell.written }) >> i & 1 != 0 {
                v[i] = cell.words[i];
                poison &= !(1 << i);
            }
        }
        Ok((v, poison, Some(Cause::Never)))
    }

    pub(super) fn vpm_write(
        &mut self,
        op: Op,
        row: &Value,
        value: &Value,
        lanes: Mask,
        maybe: Mask,
        cause: Cause,
    ) -> Result<(Lanes, Mask, Option<Cause>), Trouble> {
        let Some(vpm) = self.vpm() else { return Err(no_vpm()) };
        if maybe & vpm.lanes != 0 {
            return Err(Trouble::poison(cause, maybe & vpm.lanes, "the condition of a VPM write"));
        }
        if op == Op::Stvpmv {
            one_row(row)?;
        }
        let lanes = lanes & vpm.lanes;
        if row.poison & lanes != 0 {
            return Err(Trouble::poison(row.cause, row.poison & lanes, "the row of a VPM access"));
        }
        for i in lanes_of(lanes) {
            let cell = vpm.row(row.v[i], i)?;
            cell.words[i] = value.v[i];
            cell.written |= 1 << i;
            cell.known = cell.known & !(1 << i) | !value.poison & (1 << i);
        }
        vpm.open = true;
        Ok(([0; LANES], Mask::MAX, Some(Cause::Unsettled)))
    }

    /// vpmwt.
    pub(super) fn vpm_wait(&mut self) {
        if let Some(vpm) = self.vpm() {
            vpm.open = false;
        }
    }

    /// The end of a program of a graphics stage.
    pub(super) fn at_stage_end(&mut self, version: Version, m: &mut Machine) -> Result<(), Trouble> {
        match self.stage.as_mut() {
            Some(Stage::Vertex(vpm)) => vpm.at_end(version),
            _ => self.end_fragment(m),
        }
    }
}

/// A row that is the same for all lanes.
fn one_row(row: &Value) -> Result<(), Trouble> {
    if row.poison != 0 {
        return Err(Trouble::poison(row.cause, row.poison, "the row of a VPM access"));
    }
    match row.v.iter().position(|&w| w != row.v[0]) {
        Some(lane) => {
            Err(Trouble::lane("12.3", lane as u32, "the row of a VPM access differs between lanes"))
        }
        None => Ok(()),
    }
}
