//! Inputs, outputs and sample flags of programs of graphics stages (`docs/graphics.md`; reference 12.1, 12.3, 12.4).
//!
//! Varyings come in the order in which the hardware gives them, behind the entry, all of them. Outputs of a fragment program are a
//! region at its end: once it has begun, the program may not switch any more, so no memory edit may stand inside.

use super::SelectError;
use super::emit::{Emit, Uses, alu};
use super::values::Remade;
use crate::instr::{Op as MOp, Unpack, Version, small_code};
use crate::lower::stages::start;
use crate::mops::{Cmp, CmpOp, MInst, Src, Test};
use crate::regs;
use kempe_ir::io::{Interpolation, IoImm, Owner, Sampling, Slot};
use kempe_ir::{Builtin, Imm, Inst, Op, Stage, Value};
use kempe_mir::{Graphics, Varying, VaryingSource, VertexRow};
use kempe_ra::{Operand, OperandKind, SetId, VReg};
use smallvec::SmallVec;

/// Configuration bytes of the tile buffer (reference 12.4).
mod tlb {
    /// What the configuration register begins with: target 0, four 16-bit floats.
    pub const FIRST: u8 = 0xff;
    pub const HALF: u8 = 3 << 6;
    pub const SWAP: u8 = 1 << 1;
    pub const FOUR: u8 = 1;
    pub const DEPTH: u8 = 2 << 6;
    pub const OWN_DEPTH: u8 = 1 << 3;
    pub const PER_PIXEL: u8 = 1 << 2;

    pub fn target(n: u8) -> u8 {
        (7 - n) << 3
    }
}

impl Emit<'_> {
    fn facts(&self) -> Option<&Graphics> {
        self.p.graphics.as_ref()
    }

    fn operand(vreg: VReg, kind: OperandKind, set: SetId) -> Operand {
        Operand { vreg, kind, set, tied: None, fixed: None, hint: None, vector: None }
    }

    /// Registers of the start words, and the inputs of a fragment program.
    pub(super) fn stage_entry(&mut self) {
        let p = self.p;
        let fragment = p.stage == Stage::Fragment;
        let mut used = [false; 8];
        let mut inputs: Vec<(IoImm, Value)> = Vec::new();
        let mut builtins: Vec<(Builtin, Value)> = Vec::new();
        for at in 0..p.len() {
            for &i in &p.block(at).insts {
                let d = self.data(i);
                let Some(&r) = d.results.first().filter(|_| p.is_needed(i)) else { continue };
                match (d.op, d.imm) {
                    (Op::Payload, Imm::Int(n @ 0..=7)) => used[n as usize] = true,
                    (Op::Input, Imm::Io(io)) => inputs.push((io, r)),
                    (Op::Builtin, Imm::Builtin(b)) => builtins.push((b, r)),
                    _ => {}
                }
            }
        }
        let varyings: Vec<Varying> =
            self.facts().filter(|_| fragment).map_or(Vec::new(), |g| g.varyings.clone());
        for v in varyings.iter().filter(|v| v.interpolation == Interpolation::Smooth) {
            used[if v.sampling == Sampling::Centroid { start::CENTROID_W } else { start::W } as usize] = true;
        }
        let mut list: SmallVec<[Operand; 3]> = SmallVec::new();
        for n in 0..3u64 {
            if !used[n as usize] || !fragment {
                continue;
            }
            let vreg = self.fresh(regs::RF);
            let row = Some(regs::fragment_row(self.version, n));
            let def = Operand { fixed: row, hint: row, ..Self::operand(vreg, OperandKind::Def, regs::RF) };
            list.push(def);
            self.payload[n as usize] = Some(vreg);
        }
        self.b.inst(MInst::Entry, &list, regs::NONE, false);
        if fragment {
            if used[start::SAMPLES as usize] {
                self.payload[start::SAMPLES as usize] = Some(self.sample_flags());
            }
            for v in varyings {
                self.varying(v, &inputs, &builtins);
            }
            return;
        }
        if p.stage.takes_primitives() && used[start::INVOCATION as usize] {
            // That it counts in tessellation as it does in geometry is our own assumption (`docs/isa/v3d.md`).
            let v = self.fresh(regs::ANY);
            self.push(alu(MOp::Iid, [Src::None; 2], None), &[v], &[], None, regs::NONE);
            self.payload[start::INVOCATION as usize] = Some(v);
        }
        let rows: &[(u64, VertexRow)] = match p.stage.takes_primitives() {
            true => &[
                (start::PRIMITIVE, VertexRow::PrimitiveId),
                (start::TESS_X, VertexRow::TessCoord(0)),
                (start::TESS_X + 1, VertexRow::TessCoord(1)),
                (start::TESS_X + 2, VertexRow::TessCoord(2)),
            ],
            false => &[
                (start::INSTANCE, VertexRow::InstanceId),
                (start::BASE_INSTANCE, VertexRow::BaseInstance),
                (start::VERTEX, VertexRow::VertexId),
            ],
        };
        for &(n, row) in rows.iter().filter(|r| used[r.0 as usize]) {
            self.payload[n as usize] = self.vertex_row(row);
        }
    }

    /// A scalar of a vertex of the primitive or of the patch, given to the program or by it.
    pub(super) fn input_row(&mut self, i: Inst) {
        let d = self.data(i);
        let (Imm::Io(io), Some(&r)) = (d.imm, d.results.first()) else {
            self.unsupported(i);
            return;
        };
        let (args, back) = (d.args.clone(), d.op == Op::ReadOutput);
        let (vertex, offset) = match io.owner {
            Owner::Vertex => (args.first().copied(), args.get(1).copied()),
            _ => (None, args.first().copied()),
        };
        if back {
            self.wait_for_rows();
        }
        let mut uses = Uses::new();
        let row = self.row_at(io, offset, &mut uses);
        let (op, src) = match vertex {
            Some(v) => {
                let op = if back { MOp::LdvpmgOut } else { MOp::LdvpmgIn };
                (op, [row, self.src(v, row == Src::Use, &mut uses)])
            }
            None => (MOp::Ldvpmp, [row, Src::None]),
        };
        let v = self.fresh_for(regs::RF, r);
        let data = if back { MInst::RowRead { op, src } } else { alu(op, src, None) };
        self.push(data, &[v], &uses, None, regs::NONE);
        self.set(r, v);
        self.defined(r);
    }

    /// What is read back has been written.
    fn wait_for_rows(&mut self) {
        self.push(MInst::VertexWait, &[], &[], None, regs::NONE);
    }

    /// The row of an access, `offset` behind the named one.
    fn row_at(&mut self, io: IoImm, offset: Option<Value>, uses: &mut Uses) -> Src {
        let Slot::Row(first) = io.slot else {
            self.fail(SelectError::malformed("an access to a vertex or patch that has no row"));
            return Src::None;
        };
        let Some(offset) = offset else { return self.row(u32::from(first), uses) };
        if first == 0 {
            uses.push(self.reg(offset));
            return Src::Use;
        }
        let mut sum_uses = Uses::new();
        let constant = self.row(u32::from(first), &mut sum_uses);
        let at = usize::from(constant == Src::Use);
        sum_uses.insert(at, self.reg(offset));
        let sum = self.fresh(regs::ANY);
        self.push(alu(MOp::Add, [constant, Src::Use], None), &[sum], &sum_uses, None, regs::NONE);
        uses.push(sum);
        Src::Use
    }

    /// A row that is written where the program says so.
    pub(super) fn output_row(&mut self, i: Inst) {
        let d = self.data(i);
        let (Imm::Io(io), Some(&v)) = (d.imm, d.args.first()) else {
            self.unsupported(i);
            return;
        };
        let offset = d.args.get(1).copied();
        let (test, mut uses) = self.guard();
        let row = self.row_at(io, offset, &mut uses);
        // One immediate in an instruction: that of the row.
        let value = self.src(v, row == Src::Use, &mut uses);
        let op = match (io.owner, offset) {
            (Owner::Patch, _) => MOp::Stvpmp,
            (_, Some(_)) => MOp::Stvpmd,
            (_, None) => MOp::Stvpmv,
        };
        let once = self.p.stage == Stage::Geometry;
        let data = MInst::VertexOutput { op, src: [row, value], test, once };
        self.push(data, &[], &uses, None, regs::NONE);
    }

    /// The sample flags of the lanes, as they are now.
    fn sample_flags(&mut self) -> VReg {
        let v = self.fresh(regs::ANY);
        self.push(alu(MOp::Msf, [Src::None; 2], None), &[v], &[], None, regs::NONE);
        v
    }

    fn varying(&mut self, v: Varying, inputs: &[(IoImm, Value)], builtins: &[(Builtin, Value)]) {
        let values: SmallVec<[Value; 2]> = match v.source {
            VaryingSource::Output(slot, component) => inputs
                .iter()
                .filter(|(io, r)| {
                    (io.slot, io.component, io.interpolation, io.sampling)
                        == (slot, component, v.interpolation, v.sampling)
                        && !self.has_reg(self.p.root(*r))
                })
                .map(|i| i.1)
                .take(1)
                .collect(),
            VaryingSource::PrimitiveId => {
                builtins.iter().filter(|b| b.0 == Builtin::PrimitiveId).map(|b| b.1).collect()
            }
            VaryingSource::PointCoord(k) => {
                builtins.iter().filter(|b| b.0 == Builtin::PointCoord(k)).map(|b| b.1).collect()
            }
        };
        let mut uses = Uses::new();
        if v.interpolation == Interpolation::Smooth {
            let n = if v.sampling == Sampling::Centroid { start::CENTROID_W } else { start::W };
            uses.extend(self.payload[n as usize]);
        }
        let root = values.first().map(|&v| self.p.root(v));
        let dst = match root {
            Some(r) => self.fresh_for(regs::ANY, r),
            None => self.fresh(regs::ANY),
        };
        let mut list: SmallVec<[Operand; 2]> = SmallVec::new();
        // It is written before W is read.
        list.push(Self::operand(dst, OperandKind::EarlyDef, regs::VARYING));
        list.extend(uses.iter().map(|&u| Self::operand(u, OperandKind::Use, regs::RF)));
        self.b.inst(MInst::Varying { how: v.interpolation }, &list, regs::BROADCAST, false);
        for v in values {
            let root = self.p.root(v);
            self.set(root, dst);
            self.defined(root);
        }
    }

    fn vertex_row(&mut self, row: VertexRow) -> Option<VReg> {
        let n = self.facts().and_then(|g| g.input_rows.iter().position(|&r| r == row));
        let Some(n) = n else {
            self.fail(SelectError::malformed("an input that has no row"));
            return None;
        };
        let mut uses = Uses::new();
        let src = self.row(n as u32, &mut uses);
        let v = self.fresh(regs::RF);
        self.push(alu(MOp::LdvpmvIn, [src, Src::None], None), &[v], &uses, None, regs::NONE);
        Some(v)
    }

    /// The number of a row as an operand.
    fn row(&mut self, n: u32, uses: &mut Uses) -> Src {
        match small_code(n) {
            Some(code) => Src::Imm(code),
            None => {
                uses.push(self.remake(Remade::Const(n)));
                Src::Use
            }
        }
    }

    /// An input where it stands: a fragment program has it since its entry.
    pub(super) fn input(&mut self, i: Inst) {
        let d = self.data(i);
        let (Imm::Io(io), Some(&r)) = (d.imm, d.results.first()) else {
            self.unsupported(i);
            return;
        };
        let row = match (self.p.stage, io.slot) {
            (Stage::Vertex, Slot::Location(location)) => {
                VertexRow::Attribute { location, component: io.component }
            }
            _ => {
                self.unsupported(i);
                return;
            }
        };
        if let Some(v) = self.vertex_row(row) {
            self.set(r, v);
            self.defined(r);
        }
    }

    /// Noted; see [`Emit::give`].
    pub(super) fn output(&mut self, i: Inst) {
        let d = self.data(i);
        match (d.imm, d.args.first()) {
            (Imm::Io(io), Some(&v)) => self.given.push((io, v)),
            _ => self.unsupported(i),
        }
    }

    /// The lanes that run have no effect any more.
    pub(super) fn demote(&mut self) {
        let (test, uses) = self.guard();
        self.push(MInst::SetSamples { src: Src::Imm(0), test }, &[], &uses, None, regs::NONE);
    }

    pub(super) fn is_helper(&mut self, root: Value) {
        let flags = self.sample_flags();
        let cmp =
            Cmp { op: CmpOp::NonZero, src: [Src::Use, Src::None], unpack: [Unpack::None; 2], invert: true };
        let dst = self.fresh_for(regs::ANY, root);
        let data = MInst::Select {
            test: Test::of(cmp),
            src: [super::ops::ONES, super::ops::ZERO],
            unpack: [Unpack::None; 2],
        };
        self.push(data, &[dst], &[flags], None, regs::NONE);
        self.set(root, dst);
        self.defined(root);
    }

    /// Everything that a graphics program gives, at its end.
    pub(super) fn give(&mut self) {
        match self.p.stage {
            Stage::Compute => {}
            Stage::Vertex | Stage::TessEval => self.give_rows(),
            Stage::Geometry | Stage::TessControl => self.wait_for_last_rows(),
            Stage::Fragment => self.give_fragment(),
        }
    }

    fn give_rows(&mut self) {
        let given = std::mem::take(&mut self.given);
        for &(io, v) in &given {
            let Slot::Row(n) = io.slot else {
                self.fail(SelectError::malformed("an output of a vertex program that is no row"));
                return;
            };
            let mut uses = Uses::new();
            let row = self.row(u32::from(n), &mut uses);
            // One immediate in an instruction: that of the row.
            let value = self.src(v, row == Src::Use, &mut uses);
            let data = MInst::VertexOutput { op: MOp::Stvpmv, src: [row, value], test: None, once: true };
            self.push(data, &[], &uses, None, regs::NONE);
        }
        self.wait_for_last_rows();
    }

    fn wait_for_last_rows(&mut self) {
        if self.version == Version::V42 {
            // Hardware issue 1684 (rule 53).
            self.push(MInst::VertexWait, &[], &[], None, regs::NONE);
        }
    }

    fn give_fragment(&mut self) {
        let given = std::mem::take(&mut self.given);
        let Some(facts) = self.facts().cloned() else {
            self.fail(SelectError::malformed("a fragment program without facts"));
            return;
        };
        let find = |slot: Slot, component: u8| {
            given.iter().find(|(io, _)| (io.slot, io.component) == (slot, component)).map(|g| g.1)
        };
        if let Some(mask) = find(Slot::SampleMask, 0) {
            self.sample_mask(mask);
        }
        // Everything is at hand before the first write.
        let mut writes: Vec<TileWrite> = Vec::new();
        if facts.writes_depth {
            let own = find(Slot::FragDepth, 0);
            let byte = tlb::DEPTH | tlb::PER_PIXEL | if own.is_some() { tlb::OWN_DEPTH } else { 0 };
            let mut uses = Uses::new();
            let src = match own {
                Some(v) => self.src(v, true, &mut uses),
                // What is written does not matter; an immediate keeps signals away.
                None => match facts.targets.first().and_then(|c| find(Slot::Location(c.target), 0)) {
                    Some(v) => self.src(v, true, &mut uses),
                    None => Src::Imm(0),
                },
            };
            let (src, unpack) = ([src, Src::None], [Unpack::None; 2]);
            writes.push(TileWrite { config: Some(byte), op: MOp::Mov, src, unpack, uses });
        }
        // The register keeps all ones above the bytes that were given, which is what target 0 wants.
        for c in &facts.targets {
            let values: SmallVec<[Option<Value>; 4]> =
                (0..c.components).map(|k| find(Slot::Location(c.target), k)).collect();
            let Some(any) = values.iter().flatten().next().copied() else { continue };
            if c.wide {
                let byte = tlb::target(c.target) | tlb::PER_PIXEL | (c.components - 1);
                for (k, v) in values.iter().enumerate() {
                    let mut uses = Uses::new();
                    let src = self.src(v.unwrap_or(any), true, &mut uses);
                    let (src, unpack) = ([src, Src::None], [Unpack::None; 2]);
                    let config = (k == 0).then_some(byte);
                    writes.push(TileWrite { config, op: MOp::Mov, src, unpack, uses });
                }
                continue;
            }
            let four = if c.components > 2 { tlb::FOUR } else { 0 };
            let byte = tlb::HALF | tlb::target(c.target) | tlb::PER_PIXEL | tlb::SWAP | four;
            for k in (0..c.components as usize).step_by(2) {
                let part = |n: usize| values.get(n).copied().flatten();
                let (a, b) = match (part(k), part(k + 1)) {
                    (Some(a), Some(b)) => (a, b),
                    (Some(a), None) | (None, Some(a)) => (a, a),
                    (None, None) => (any, any),
                };
                let mut uses = Uses::new();
                let (src, unpack) = self.float_sources(a, b, false, &mut uses);
                let config = (k == 0 && byte != tlb::FIRST).then_some(byte);
                writes.push(TileWrite { config, op: MOp::Vfpack, src, unpack, uses });
            }
        }
        if writes.is_empty() {
            self.fail(SelectError::malformed("a fragment program that gives nothing"));
        }
        for (n, w) in writes.into_iter().enumerate() {
            let first = n == 0;
            // The last switch lies before the first write, so what is written is in rows.
            let list: SmallVec<[Operand; 2]> =
                w.uses.iter().map(|&u| Self::operand(u, OperandKind::Use, regs::RF)).collect();
            let data = MInst::Tlb { config: w.config, op: w.op, src: w.src, unpack: w.unpack, first };
            self.b.inst(data, &list, if first { regs::SWITCH } else { regs::NONE }, false);
            if let Some(i) = self.b.mir.program.insts.last_mut() {
                i.no_memory_edit_before = !first;
            }
        }
    }

    /// Samples that the program takes out.
    fn sample_mask(&mut self, mask: Value) {
        let mut mask = self.reg(mask);
        if self.p.samples == 1 {
            // One sample is all flags of the lane.
            let (one, all) = (self.fresh(regs::ANY), self.fresh(regs::ANY));
            self.push(alu(MOp::And, [Src::Use, Src::Imm(1)], None), &[one], &[mask], None, regs::NONE);
            self.push(alu(MOp::Neg, [Src::Use, Src::None], None), &[all], &[one], None, regs::NONE);
            mask = all;
        }
        let flags = self.fresh(regs::ANY);
        let list = [
            Self::operand(flags, OperandKind::EarlyDef, regs::ANY),
            Self::operand(mask, OperandKind::Use, self.home(mask)),
        ];
        self.b.inst(MInst::MaskSamples, &list, regs::NONE, false);
    }

    /// Of a load in a fragment program that not all lanes take part in: an address that every lane may load from.
    pub(super) fn safe_address(&mut self, address: Value) -> Option<VReg> {
        let base = self.base_of(self.p.root(address))?;
        let (test, mut uses) = self.active()?;
        let base = self.reg(base);
        let own = self.reg(address);
        uses.extend([own, base]);
        let dst = self.fresh(regs::ANY);
        let data = MInst::Select { test, src: [Src::Use; 2], unpack: [Unpack::None; 2] };
        self.push(data, &[dst], &uses, None, regs::NONE);
        Some(dst)
    }

    /// The part of a sum that is an address by itself: the start of a buffer, or the private memory of the lane.
    fn base_of(&self, root: Value) -> Option<Value> {
        use kempe_ir::UniformWord as W;
        let mut work: SmallVec<[Value; 8]> = SmallVec::from_slice(&[root]);
        for _ in 0..BASE_STEPS {
            let v = work.pop()?;
            let Some(d) = self.p.inst_of(v) else { continue };
            match (d.op, d.imm) {
                (Op::Uniform, Imm::Uniform(W::BufferAddr { .. } | W::PushAddr | W::ConstantAddr)) => {
                    return Some(v);
                }
                (Op::Iadd, _) if self.is_private_base(v, &mut 0) => return Some(v),
                (Op::Iadd, _) => work.extend(d.args.iter().map(|&a| self.p.root(a))),
                _ => {}
            }
        }
        None
    }

    /// Nothing but scratch memory, thread and lane.
    fn is_private_base(&self, v: Value, steps: &mut u32) -> bool {
        *steps += 1;
        if *steps > BASE_STEPS {
            return false;
        }
        use kempe_ir::UniformWord as W;
        let Some(d) = self.p.inst_of(v) else { return false };
        match (d.op, d.imm) {
            (Op::Const, _) => true,
            (Op::Uniform, Imm::Uniform(w)) => matches!(w, W::ScratchAddr | W::ScratchBytesPerThread),
            (Op::Builtin, Imm::Builtin(b)) => matches!(b, Builtin::LaneId | Builtin::ThreadId),
            (Op::Iadd | Op::Umul24 | Op::Imul | Op::Shl, _) => {
                d.args.iter().all(|&a| self.is_private_base(self.p.root(a), steps))
            }
            _ => false,
        }
    }
}

/// One write to the tile buffer.
struct TileWrite {
    config: Option<u8>,
    op: MOp,
    src: [Src; 2],
    unpack: [Unpack; 2],
    uses: Uses,
}

/// Operations of a sum that are looked at.
const BASE_STEPS: u32 = 24;
