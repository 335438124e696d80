//! The walk: batches of a work-group in turn, blocks in layout order, instructions on the active lanes.

use super::access::{Private, State};
use super::decode::{Access, Code, End, PRIVATE_BASE, Preset, Program, ZERO};
use super::error::{Pieces, Shadow};
use super::follow::{self, Bounds};
use super::lanes::{ALL, Mask, Registers, Row, lanes};
use super::primitives::Pending;
use super::races::{Races, Touch};
use super::stages::derivative;
use super::{Form, Options, Outcome, Stop, UndefinedUse};
use crate::eval;
use crate::exec::{Batches, Environment, LANES, LaneContext};
use crate::io::StageOutputs;
use crate::module::*;
use crate::types::Type;
use std::collections::BTreeSet;

/// Position of a lane that has ended.
const ENDED: u32 = u32::MAX;

/// Instructions after which a batch that has met no barrier lets the others run, so that a wait for data from another
/// batch of the work-group is not forever.
const SLICE: u64 = 1 << 16;

/// Most bytes of registers and private memory of the batches of one work-group.
const MAX_BYTES: u64 = 1 << 30;

/// Sixteen lanes and where they are.
pub(super) struct Batch {
    pub regs: Registers,
    /// In a run with bounds: what is known, by slot and lane, and of private memory.
    pub known: Vec<[Shadow; LANES]>,
    pub private_pieces: Pieces,
    pub private: Private,
    pub context: [LaneContext; LANES],
    /// First byte of the shared memory of the lane's work-group.
    shared: [u32; LANES],
    thread: u32,
    /// Position of waiting lanes (of the active ones only when they part).
    at: [u32; LANES],
    /// Waiting lanes.
    waiting: Mask,
    pub active: Mask,
    /// Lanes that were started.
    pub live: Mask,
    /// Of a fragment stage: lanes without effect.
    pub helpers: Mask,
    /// The invocation of lane 0, in a graphics stage.
    pub first: u32,
    /// Of a geometry stage: what is said of the next vertex, and lanes in which it begins a primitive.
    pub pending: Pending,
    pub cut: Mask,
    /// Block and next instruction.
    pos: u32,
    pc: u32,
    status: Status,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Barrier,
    Ended,
}

pub(super) struct Runner<'a> {
    pub program: &'a Program<'a>,
    pub env: &'a Environment,
    pub(super) options: &'a Options<'a>,
    pub state: State,
    steps: u64,
    lane_steps: u64,
    visits: Vec<u64>,
    pub undefined: BTreeSet<UndefinedUse>,
    /// In a broadcast run: value by slot, if it is uniform.
    pub uniform: Vec<Option<Value>>,
    pub bounds: Option<Bounds>,
    pub races: Option<Races>,
    /// What a graphics stage gives.
    pub stage: Option<StageOutputs>,
}

impl Program<'_> {
    /// Runs the program once. The memory of `env` is not changed.
    pub fn run(&self, env: &Environment, options: &Options) -> Result<Outcome, Stop> {
        if options.bounds && self.module.stage.takes_primitives() {
            return Err(Stop::Unsupported("bounds of what vertices and patches are given".to_owned()));
        }
        let mut r = Runner {
            program: self,
            env,
            options,
            state: State::new(self, env),
            steps: 0,
            lane_steps: 0,
            visits: vec![0; self.blocks.len()],
            undefined: BTreeSet::new(),
            uniform: self.uniform_slots(options),
            races: options.races.then(|| Races::new(env)),
            stage: self.stage_outputs(env)?,
            bounds: options.bounds.then(|| Bounds {
                contracted: follow::contracted(self.module),
                pieces: vec![Pieces::default(); env.memory.regions().len()],
                shared: env.memory.region_at(env.shared_base),
                outputs: Default::default(),
            }),
        };
        r.dispatch()?;
        let pieces = r.bounds.map_or(Default::default(), |b| (b.pieces, b.outputs));
        Ok(Outcome {
            memory: r.state.memory,
            steps: r.steps,
            lane_steps: r.lane_steps,
            visits: r.visits,
            undefined: r.undefined.into_iter().collect(),
            pieces: pieces.0,
            output_bounds: pieces.1,
            race: r.races.and_then(|r| r.first),
            stage: r.stage,
        })
    }

    fn uniform_slots(&self, options: &Options) -> Vec<Option<Value>> {
        let Some(d) = options.broadcast else { return Vec::new() };
        self.values.iter().map(|v| v.filter(|&v| d.is_uniform(v))).collect()
    }
}

impl Runner<'_> {
    fn dispatch(&mut self) -> Result<(), Stop> {
        let module = self.program.module;
        let (geometry, size) = match self.options.form {
            Form::Source { subgroup_size } => {
                let b = Batches {
                    groups: self.env.groups,
                    workgroup_items: module.workgroup_items(),
                    wgs_per_supergroup: 1,
                };
                (b, subgroup_size)
            }
            Form::Machine => (Batches::new(module, self.env), LANES as u32),
        };
        let (geometry, size) = self.stage_geometry().map_or((geometry, size), |g| (g, LANES as u32));
        if size == 0 || size > LANES as u32 {
            return Err(Stop::Unsupported(format!("subgroups of {size} lanes")));
        }
        let items = |unit: u64| geometry.workgroups_in(unit) as u64 * geometry.workgroup_items as u64;
        let most = items(0).div_ceil(size as u64);
        let per_batch =
            self.program.slots as u64 * 130 + self.program.private.bytes as u64 * 2 * LANES as u64;
        if most.saturating_mul(per_batch) > MAX_BYTES {
            return Err(Stop::Unsupported(format!("a work-group needs {most} times {per_batch} bytes")));
        }
        let mut pool: Vec<Batch> = Vec::new();
        for unit in 0..geometry.supergroups() {
            self.state.forget_shared();
            if let Some(races) = &mut self.races {
                races.new_workgroups();
            }
            if let Some(b) = &mut self.bounds
                && let Some(region) = b.shared
            {
                b.pieces[region].clear();
            }
            let count = items(unit).div_ceil(size as u64) as usize;
            while pool.len() < count {
                pool.push(self.new_batch());
            }
            let batches = &mut pool[..count];
            for (n, b) in batches.iter_mut().enumerate() {
                self.start(b, &geometry, unit, n as u32, size);
            }
            self.unit(batches)?;
        }
        Ok(())
    }

    /// Runs the batches of a work-group to their end.
    fn unit(&mut self, batches: &mut [Batch]) -> Result<(), Stop> {
        loop {
            let mut waiting = 0;
            let mut ended = 0;
            for b in batches.iter_mut() {
                if b.status == Status::Ready {
                    self.slice(b)?;
                }
                waiting += (b.status == Status::Barrier) as u32;
                ended += (b.status == Status::Ended) as u32;
            }
            if ended as usize == batches.len() {
                return Ok(());
            }
            if (waiting + ended) as usize == batches.len() {
                if ended > 0 {
                    return Err(Stop::Deadlock { waiting, ended });
                }
                if let Some(races) = &mut self.races {
                    races.barrier();
                }
                for b in batches.iter_mut() {
                    b.status = Status::Ready;
                }
            }
        }
    }

    fn new_batch(&self) -> Batch {
        let none = LaneContext { group: [0; 3], local_index: 0, wg_in_memory: 0, workgroup_items: 0 };
        let mut b = Batch {
            regs: Registers::new(self.program.slots),
            known: if self.bounds.is_some() {
                vec![[Shadow::Exact; LANES]; self.program.slots as usize]
            } else {
                Vec::new()
            },
            private_pieces: Pieces::default(),
            private: Private::new(0, 0),
            context: [none; LANES],
            shared: [0; LANES],
            thread: 0,
            at: [ENDED; LANES],
            waiting: 0,
            active: 0,
            live: 0,
            helpers: 0,
            first: 0,
            pending: Pending::new(),
            cut: 0,
            pos: 0,
            pc: 0,
            status: Status::Ready,
        };
        // What is the same for all batches; the slots stay as they are when a batch is used again, because nothing
        // but its own instruction writes a slot.
        for &(slot, preset) in &self.program.presets {
            let (bits, poison) = match preset {
                Preset::Bits(bits) => (bits, 0),
                Preset::Undef => (0, ALL),
                Preset::Resource(r) => (self.state.resource(r).0 as u64, 0),
                Preset::ResourceSize(r) => (self.state.resource(r).1 as u64, 0),
                Preset::Uniform(w) => (self.env.word(w) as u64, 0),
                Preset::Var(v) => {
                    let offset = self.program.private.offsets[v];
                    (PRIVATE_BASE.wrapping_add(offset) as u64, 0)
                }
                Preset::Builtin(_) | Preset::Payload(_) | Preset::Input(..) => continue,
            };
            b.regs.write(slot, ALL, &[bits; LANES], poison);
            if poison != 0 && self.bounds.is_some() {
                b.known[slot as usize] = [Shadow::Undecided; LANES];
            }
        }
        b
    }

    /// Puts a batch at the entry.
    fn start(&self, b: &mut Batch, geometry: &Batches, unit: u64, number: u32, size: u32) {
        let program = self.program;
        let mut live: Mask = 0;
        for lane in 0..LANES {
            let item = number as u64 * size as u64 + lane as u64;
            let (context, exists) =
                geometry.lane(unit, (item / LANES as u64) as u32, (item % LANES as u64) as u32);
            b.context[lane] = context;
            b.shared[lane] =
                self.env.shared_base.wrapping_add(context.wg_in_memory.wrapping_mul(self.env.shared.bytes));
            if exists && lane < size as usize {
                live |= 1 << lane;
            }
        }
        if self.stage.is_some() {
            let first = unit as usize * self.stage_unit() + number as usize * LANES;
            self.start_stage(b, first as u32, &mut live);
        }
        b.thread = self.options.start.thread_id(number);
        b.private = Private::new(program.private.bytes, LANES);
        b.private_pieces.clear();
        b.at = [ENDED; LANES];
        (b.waiting, b.active, b.live, b.pos) = (0, live, live, 0);
        b.pc = program.blocks.first().map_or(0, |x| x.insts.0);
        b.status = if live == 0 { Status::Ended } else { Status::Ready };
        for &(slot, preset) in &program.presets {
            match preset {
                Preset::Input(io, ty) => self.stage_input(b, slot, io, ty),
                Preset::Builtin(builtin) if self.stage.is_some() => self.stage_builtin(b, slot, builtin),
                Preset::Builtin(builtin) => {
                    for lane in 0..LANES {
                        let v = self.builtin(builtin, b, lane, number, size);
                        b.regs.set(slot, lane, v as u64, false);
                    }
                }
                Preset::Payload(n) if self.stage.is_some() => self.stage_payload(b, slot, n),
                Preset::Payload(n) => {
                    for lane in 0..LANES {
                        let v = self.options.start.payload(n, &b.context[lane]);
                        b.regs.set(slot, lane, v as u64, false);
                    }
                }
                Preset::Var(v) if self.env.shared.offsets[v] != u32::MAX => {
                    for lane in 0..LANES {
                        let a = b.shared[lane].wrapping_add(self.env.shared.offsets[v]);
                        b.regs.set(slot, lane, a as u64, false);
                    }
                }
                _ => {}
            }
        }
    }

    fn builtin(&self, builtin: Builtin, b: &Batch, lane: usize, number: u32, size: u32) -> u32 {
        let c = &b.context[lane];
        let [x, y, _] = self.program.module.workgroup_size;
        let axis = |v: [u32; 3], n: u8| v.get(n as usize).copied().unwrap_or(0);
        let source = matches!(self.options.form, Form::Source { .. });
        match builtin {
            Builtin::LocalInvocationIndex => c.local_index,
            Builtin::LocalInvocationId(n) => {
                axis([c.local_index % x, c.local_index / x % y, c.local_index / (x * y)], n)
            }
            Builtin::WorkgroupId(n) => axis(c.group, n),
            Builtin::NumWorkgroups(n) => axis(self.env.groups, n),
            Builtin::SubgroupSize => size,
            Builtin::SubgroupLocalId | Builtin::LaneId => lane as u32,
            Builtin::SubgroupId if source => number,
            Builtin::SubgroupId => c.local_index / LANES as u32,
            Builtin::NumSubgroups => c.workgroup_items.div_ceil(size),
            Builtin::ThreadId => b.thread,
            // Of graphics stages: not here.
            _ => 0,
        }
    }

    /// Runs a batch until it meets a barrier, ends, or has had its turn.
    fn slice(&mut self, b: &mut Batch) -> Result<(), Stop> {
        let start = self.steps;
        loop {
            let block = self.program.blocks[b.pos as usize];
            let rest = (block.insts.1 - b.pc) as u64 + 1;
            if b.pc == block.insts.0 {
                self.visits[b.pos as usize] += 1;
            }
            self.steps += rest;
            self.lane_steps += rest * b.active.count_ones() as u64;
            if self.steps > self.options.step_limit {
                return Err(Stop::StepLimit(self.options.step_limit));
            }
            if let Some(d) = self.options.broadcast
                && b.active != b.live
            {
                let block = self.program.module.func.layout[b.pos as usize];
                if !d.is_non_uniform(block) {
                    return Err(Stop::LanesMissing { block });
                }
            }
            for n in b.pc..block.insts.1 {
                if matches!(self.program.insts[n as usize].code, Code::Barrier) {
                    if b.waiting != 0 {
                        let lane = b.context[b.active.trailing_zeros() as usize];
                        return Err(Stop::DivergentBarrier {
                            inst: self.program.insts[n as usize].inst,
                            lane,
                        });
                    }
                    b.pc = n + 1;
                    b.status = Status::Barrier;
                    // The rest of the block is counted when it runs.
                    let left = (block.insts.1 - n) as u64;
                    self.steps -= left;
                    self.lane_steps -= left * b.active.count_ones() as u64;
                    return Ok(());
                }
                self.inst(b, n)?;
            }
            self.end(b, block.end)?;
            if b.status == Status::Ended || self.steps - start > SLICE {
                return Ok(());
            }
        }
    }

    fn end(&mut self, b: &mut Batch, end: End) -> Result<(), Stop> {
        match end {
            End::Jump(e) => {
                self.take(b, e.moves, e.parallel, b.active)?;
                if b.waiting == 0 {
                    self.enter(b, e.to);
                    return Ok(());
                }
                for i in lanes(b.active) {
                    b.at[i] = e.to;
                }
            }
            End::Branch(cond, then, els) => {
                let row = b.regs.row(cond);
                let yes = lanes(b.active).fold(0, |m: Mask, i| m | ((row[i] & 1) as Mask) << i);
                let no = b.active & !yes;
                if b.regs.poison(cond) & b.active != 0 {
                    let block = self.program.module.func.layout[b.pos as usize];
                    self.undefined.insert(UndefinedUse::Branch(block));
                }
                if self.bounds.is_some()
                    && lanes(b.active).any(|i| b.known[cond as usize][i] != Shadow::Exact)
                {
                    let block = self.program.module.func.layout[b.pos as usize];
                    return Err(Stop::Undecided(UndefinedUse::Branch(block)));
                }
                if !self.uniform.is_empty() {
                    // Both edges read before either writes for all lanes.
                    let sides = [(then, yes), (els, no)].map(|(e, mask)| (self.sources(b, e.moves), e, mask));
                    for (read, e, mask) in sides.iter().filter(|s| s.2 != 0) {
                        self.put(b, e.moves, read, *mask)?;
                    }
                } else {
                    if yes != 0 {
                        self.take(b, then.moves, then.parallel, yes)?;
                    }
                    if no != 0 {
                        self.take(b, els.moves, els.parallel, no)?;
                    }
                }
                if b.waiting == 0 && (yes == 0 || no == 0) {
                    self.enter(b, if no == 0 { then.to } else { els.to });
                    return Ok(());
                }
                for i in lanes(yes) {
                    b.at[i] = then.to;
                }
                for i in lanes(no) {
                    b.at[i] = els.to;
                }
            }
            End::Return => {
                for i in lanes(b.active) {
                    b.at[i] = ENDED;
                }
            }
            End::Unreachable => {
                let block = self.program.module.func.layout[b.pos as usize];
                let lane = b.context[b.active.trailing_zeros() as usize];
                return Err(Stop::Unreachable { block, lane });
            }
        }
        // The earliest block that a lane is in.
        let next = b.at.iter().copied().min().unwrap_or(ENDED);
        if next == ENDED {
            b.status = Status::Ended;
            self.end_stage(b);
            return Ok(());
        }
        (b.active, b.waiting) = (0, 0);
        for (i, &at) in b.at.iter().enumerate() {
            b.active |= ((at == next) as Mask) << i;
            b.waiting |= ((at != next && at != ENDED) as Mask) << i;
        }
        self.enter(b, next);
        Ok(())
    }

    /// Goes to a block. (Positions of active lanes are written only when they part.)
    fn enter(&self, b: &mut Batch, pos: u32) {
        b.pos = pos;
        b.pc = self.program.blocks[pos as usize].insts.0;
    }

    /// Parameters of the target of an edge.
    fn take(&self, b: &mut Batch, moves: (u32, u32), parallel: bool, mask: Mask) -> Result<(), Stop> {
        if self.bounds.is_some() {
            let read: Vec<[Shadow; LANES]> =
                self.moves(moves).iter().map(|&(src, _)| b.known[src as usize]).collect();
            for (&(_, dst), row) in self.moves(moves).iter().zip(&read) {
                for i in lanes(mask) {
                    b.known[dst as usize][i] = row[i];
                }
            }
        }
        if parallel || !self.uniform.is_empty() {
            let read = self.sources(b, moves);
            return self.put(b, moves, &read, mask);
        }
        for &(src, dst) in self.moves(moves) {
            let (row, poison) = (*b.regs.row(src), b.regs.poison(src));
            b.regs.write(dst, mask, &row, poison);
        }
        Ok(())
    }

    fn moves(&self, range: (u32, u32)) -> &[(u32, u32)] {
        &self.program.moves[range.0 as usize..range.1 as usize]
    }

    fn sources(&self, b: &Batch, moves: (u32, u32)) -> Vec<(Row, Mask)> {
        self.moves(moves).iter().map(|&(src, _)| (*b.regs.row(src), b.regs.poison(src))).collect()
    }

    fn put(&self, b: &mut Batch, moves: (u32, u32), read: &[(Row, Mask)], mask: Mask) -> Result<(), Stop> {
        for (&(_, dst), (row, poison)) in self.moves(moves).iter().zip(read) {
            b.regs.write(dst, mask, row, *poison);
            self.broadcast(b, dst, mask)?;
        }
        Ok(())
    }

    /// In a broadcast run: gives a uniform value to all lanes, waiting ones too.
    pub fn broadcast(&self, b: &mut Batch, slot: u32, mask: Mask) -> Result<(), Stop> {
        let Some(value) = self.uniform.get(slot as usize).copied().flatten() else { return Ok(()) };
        let row = *b.regs.row(slot);
        let defined = mask & !b.regs.poison(slot);
        let from = if defined != 0 { defined } else { mask };
        let bits = row[from.trailing_zeros() as usize];
        if lanes(defined).any(|i| row[i] != bits) {
            let block = self.program.module.func.layout[b.pos as usize];
            return Err(Stop::NotUniform { block, value });
        }
        b.regs.write(slot, ALL, &[bits; LANES], if defined != 0 { 0 } else { ALL });
        Ok(())
    }

    pub fn inst(&mut self, b: &mut Batch, n: u32) -> Result<(), Stop> {
        let d = self.program.insts[n as usize];
        if b.helpers & b.active != 0 && self.has_effect(d.code) {
            return self.without_helpers(b, n);
        }
        let (dst, mask) = (d.dst, b.active);
        let r = &mut b.regs;
        let f = |bits: u64| f32::from_bits(bits as u32);
        match d.code {
            Code::Nothing | Code::Barrier | Code::Fence => return Ok(()),
            Code::Iadd32(x, y) => r.map2(dst, mask, x, y, |x, y| (x as u32).wrapping_add(y as u32) as u64),
            Code::Isub32(x, y) => r.map2(dst, mask, x, y, |x, y| (x as u32).wrapping_sub(y as u32) as u64),
            Code::Imul32(x, y) => r.map2(dst, mask, x, y, |x, y| (x as u32).wrapping_mul(y as u32) as u64),
            Code::Shl32(x, y) => r.map2(dst, mask, x, y, |x, y| ((x as u32) << (y & 31)) as u64),
            Code::Lshr32(x, y) => r.map2(dst, mask, x, y, |x, y| (x as u32 >> (y & 31)) as u64),
            Code::And(x, y) => {
                let poison = r.absorbed(x, y, 0);
                r.map2_poison(dst, mask, x, y, poison, |x, y| x & y);
            }
            Code::Or(x, y, ones) => {
                let poison = r.absorbed(x, y, ones);
                r.map2_poison(dst, mask, x, y, poison, |x, y| x | y);
            }
            Code::Xor(x, y) => r.map2(dst, mask, x, y, |x, y| x ^ y),
            Code::Fadd32(x, y) => {
                r.map2(dst, mask, x, y, |x, y| eval::f32_result(f(x) + f(y)) as u64);
            }
            Code::Fsub32(x, y) => {
                r.map2(dst, mask, x, y, |x, y| eval::f32_result(f(x) - f(y)) as u64);
            }
            Code::Fmul32(x, y) => {
                r.map2(dst, mask, x, y, |x, y| eval::f32_result(f(x) * f(y)) as u64);
            }
            Code::Select(c, x, y) => {
                let (rc, rx, ry) = (r.row(c), r.row(x), r.row(y));
                let mut out = [0; LANES];
                let mut chosen: Mask = 0;
                for i in 0..LANES {
                    out[i] = if rc[i] & 1 != 0 { rx[i] } else { ry[i] };
                    chosen |= ((rc[i] & 1) as Mask) << i;
                }
                let poison = r.poison(c) | r.poison(x) & chosen | r.poison(y) & !chosen;
                r.write(dst, mask, &out, poison);
            }
            Code::Call1(k, x) => r.map1(dst, mask, x, |x| k(x, 0, 0, 0)),
            Code::Call2(k, x, y) => r.map2(dst, mask, x, y, |x, y| k(x, y, 0, 0)),
            Code::Call4(k, [x, y, z, w]) => {
                let rows = [x, y, z, w].map(|s| *r.row(s));
                let poison = [x, y, z, w].iter().fold(0, |p, &s| p | r.poison(s));
                let mut out = [0; LANES];
                for i in lanes(mask) {
                    out[i] = k(rows[0][i], rows[1][i], rows[2][i], rows[3][i]);
                }
                r.write(dst, mask, &out, poison);
            }
            Code::Lea { base, index, imm } => r.map2(dst, mask, base, index, |x, y| {
                eval::lea(x as u32, y as u32, imm.scale, imm.offset) as u64
            }),
            Code::Element { res, index, size } => {
                let row = *r.row(index);
                let poison = r.poison(index);
                for i in lanes(mask) {
                    let (base, bytes) = match row[i] {
                        0 => self.state.resource(res),
                        e => self.env.resource(res, e as u32),
                    };
                    let v = if size { bytes } else { base };
                    b.regs.set(dst, i, v as u64, poison >> i & 1 != 0);
                }
            }
            Code::Output(io, x) => {
                // Which samples are covered is an effect; other outputs are undefined in their turn.
                if io.slot == crate::io::Slot::SampleMask && b.regs.poison(x) & b.active != 0 {
                    self.undefined.insert(UndefinedUse::Data(d.inst));
                }
                self.output(b, io, x);
            }
            Code::InputAt(io, numbers, ty) => self.input_at(b, dst, io, &numbers, ty),
            Code::ReadOutput(io, numbers, ty) => self.read_output(b, dst, io, &numbers, ty),
            Code::OutputAt(io, x, numbers) => {
                if numbers.iter().any(|&s| b.regs.poison(s) & b.active != 0) {
                    self.undefined.insert(UndefinedUse::Address(d.inst));
                }
                self.output_at(b, io, x, &numbers);
            }
            Code::Pend(io, x) => self.pend(b, io, x),
            Code::EmitVertex => self.emit_vertex(b)?,
            Code::EndPrimitive => b.cut |= mask,
            Code::Demote => b.helpers |= mask,
            Code::IsHelper => {
                let row: Row = std::array::from_fn(|i| (b.helpers >> i & 1) as u64);
                r.write(dst, mask, &row, 0);
            }
            Code::Derivative(x, bit, sub) => derivative(b, dst, x, bit, sub),
            Code::Image(n) => return self.image(b, n, d.inst),
            Code::Sample(n) => return self.sample(b, n, d.inst),
            Code::Load(a) => return self.load(b, &a, d.inst),
            Code::Store(a) => return self.store(b, &a, d.inst),
            Code::Atomic { access, op, ty, data, expected } => {
                self.atomic(b, &access, d.inst, dst, op, ty, data, expected)?;
            }
            Code::Elect => {
                let first = mask & mask.wrapping_neg();
                let mut out = [0; LANES];
                for (i, x) in out.iter_mut().enumerate() {
                    *x = (first >> i & 1) as u64;
                }
                r.write(dst, mask, &out, 0);
            }
            Code::VoteAny(x) => {
                let v = lanes(mask).any(|i| r.row(x)[i] & 1 != 0);
                splat(r, dst, mask, v as u64, r.poison(x) & mask != 0);
            }
            Code::VoteAll(x) => {
                let v = lanes(mask).all(|i| r.row(x)[i] & 1 != 0);
                splat(r, dst, mask, v as u64, r.poison(x) & mask != 0);
            }
            Code::VoteEq(x, float) => {
                let row = r.row(x);
                let first = row[mask.trailing_zeros() as usize];
                let v = match float {
                    // Equality of floats, not of their bits.
                    Some(k) => lanes(mask).all(|i| k(row[i], first, 0, 0) != 0),
                    None => lanes(mask).all(|i| row[i] == first),
                };
                splat(r, dst, mask, v as u64, r.poison(x) & mask != 0);
            }
            Code::Ballot(x) => {
                let row = r.row(x);
                let v = lanes(mask).fold(0, |v, i| v | (row[i] & 1) << i);
                splat(r, dst, mask, v, r.poison(x) & mask != 0);
            }
            Code::First(x) => {
                let first = mask.trailing_zeros() as usize;
                splat(r, dst, mask, r.row(x)[first], r.poison(x) >> first & 1 != 0);
            }
            Code::Shuffle(x, lane) => {
                let (row, from) = (*r.row(x), *r.row(lane));
                let (px, pl) = (r.poison(x), r.poison(lane));
                for i in lanes(mask) {
                    // A lane that is not there or not active gives undefined bits.
                    let k = from[i] as usize;
                    let there = k < LANES && mask >> k & 1 != 0;
                    let poison = !there || px >> k & 1 != 0 || pl >> i & 1 != 0;
                    r.set(dst, i, if there { row[k] } else { 0 }, poison);
                }
            }
            Code::Reduce { value, imm, ty } => {
                let row = *r.row(value);
                let poison = r.poison(value);
                let cluster = if imm.cluster == 0 { LANES } else { (imm.cluster as usize).min(LANES) };
                for start in (0..LANES).step_by(cluster) {
                    let range = start..(start + cluster).min(LANES);
                    let mut list: Vec<(bool, u64)> =
                        range.clone().map(|i| (mask >> i & 1 != 0, row[i])).collect();
                    eval::reduce(imm.op, ty, imm.kind, &mut list);
                    let undefined = range.clone().any(|i| mask & poison & 1 << i != 0);
                    for (i, (on, v)) in range.zip(list) {
                        if on {
                            r.set(dst, i, v, undefined);
                        }
                    }
                }
            }
        }
        if !self.uniform.is_empty() {
            self.broadcast(b, dst, mask)?;
        }
        if self.bounds.is_some() && dst != ZERO {
            self.follow(b, d.inst, dst);
        }
        Ok(())
    }

    /// Checks an address and finds its place.
    #[inline(always)]
    fn locate(
        &mut self,
        b: &Batch,
        a: &Access,
        inst: Inst,
        lane: usize,
        write: bool,
    ) -> Result<super::access::Place, Stop> {
        let address = b.regs.row(a.addr)[lane] as u32;
        let bytes = a.bytes * a.count;
        let place = self.state.place(a.root, address, bytes, lane, &b.private, b.shared[lane]);
        match place {
            Some(p) if address & (a.align - 1) == 0 => Ok(p),
            Some(_) => Err(Stop::Misaligned { address, align: a.align, inst, lane: b.context[lane] }),
            None => {
                let fault = self.state.fault(a.root, address, bytes, write, &b.private);
                Err(Stop::Fault { fault, inst, lane: b.context[lane] })
            }
        }
    }

    fn undefined_address(&mut self, b: &Batch, a: &Access, inst: Inst) -> Mask {
        let poison = b.regs.poison(a.addr) & b.active;
        if poison != 0 {
            self.undefined.insert(UndefinedUse::Address(inst));
        }
        poison
    }

    fn load(&mut self, b: &mut Batch, a: &Access, inst: Inst) -> Result<(), Stop> {
        let mask = b.active;
        let unknown = self.undefined_address(b, a, inst);
        self.decided_address(b, a, inst)?;
        for i in lanes(mask) {
            let place = self.locate(b, a, inst, i, false)?;
            for n in 0..a.count {
                let (v, poison) = self.state.read(place.add(n * a.bytes), a.bytes, &b.private);
                if let Some(races) = &mut self.races {
                    let place = place.add(n * a.bytes);
                    races.touch(&self.state.memory, place, a.bytes, &b.context[i], Touch::Read);
                }
                let dst = self.program.pool[(a.list + n) as usize];
                b.regs.set(dst, i, v & a.mask, poison || unknown >> i & 1 != 0);
                if self.bounds.is_some() {
                    let known = self.known_at(b, place.add(n * a.bytes), a.bytes);
                    b.known[dst as usize][i] = if poison { Shadow::Undecided } else { known };
                }
            }
        }
        if !self.uniform.is_empty() {
            for n in 0..a.count {
                self.broadcast(b, self.program.pool[(a.list + n) as usize], mask)?;
            }
        }
        Ok(())
    }

    fn store(&mut self, b: &mut Batch, a: &Access, inst: Inst) -> Result<(), Stop> {
        let unknown = self.undefined_address(b, a, inst);
        self.decided_address(b, a, inst)?;
        let mut undefined = false;
        for i in lanes(b.active) {
            let place = self.locate(b, a, inst, i, true)?;
            for n in 0..a.count {
                let src = self.program.pool[(a.list + n) as usize];
                let poison = (b.regs.poison(src) | unknown) >> i & 1 != 0;
                undefined |= poison;
                let v = b.regs.row(src)[i] & a.mask;
                if let Some(races) = &mut self.races {
                    let place = place.add(n * a.bytes);
                    let changes = self.state.read(place, a.bytes, &b.private).0 ^ v;
                    let how = Touch::Write(changes);
                    races.touch(&self.state.memory, place, a.bytes, &b.context[i], how);
                }
                if !self.state.write(place.add(n * a.bytes), a.bytes, v, poison, &mut b.private) {
                    let address = b.regs.row(a.addr)[i] as u32;
                    let fault = self.state.fault(a.root, address, a.bytes * a.count, true, &b.private);
                    return Err(Stop::Fault { fault, inst, lane: b.context[i] });
                }
                if self.bounds.is_some() {
                    let known = if poison { Shadow::Undecided } else { b.known[src as usize][i] };
                    self.set_known(b, place.add(n * a.bytes), a.bytes, known);
                }
            }
        }
        if undefined && !a.own {
            self.undefined.insert(UndefinedUse::Data(inst));
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn atomic(
        &mut self,
        b: &mut Batch,
        a: &Access,
        inst: Inst,
        dst: u32,
        op: AtomicOp,
        ty: Type,
        data: u32,
        expected: u32,
    ) -> Result<(), Stop> {
        let unknown = self.undefined_address(b, a, inst);
        self.decided_address(b, a, inst)?;
        // One lane after the other, in order.
        for i in lanes(b.active) {
            let place = self.locate(b, a, inst, i, true)?;
            let (old, old_poison) = self.state.read(place, a.bytes, &b.private);
            if let Some(races) = &mut self.races {
                races.touch(&self.state.memory, place, a.bytes, &b.context[i], Touch::Atomic);
            }
            let operands =
                if op == AtomicOp::Load { 0 } else { b.regs.poison(data) | b.regs.poison(expected) };
            let data_poison = (operands | unknown) >> i & 1 != 0;
            let new = eval::atomic(op, ty, old, b.regs.row(data)[i], b.regs.row(expected)[i]);
            let replaces = matches!(op, AtomicOp::Store | AtomicOp::Exchange);
            let poison = data_poison || old_poison && !replaces;
            if op != AtomicOp::Load && !self.state.write(place, a.bytes, new & a.mask, poison, &mut b.private)
            {
                let address = b.regs.row(a.addr)[i] as u32;
                let fault = self.state.fault(a.root, address, a.bytes, true, &b.private);
                return Err(Stop::Fault { fault, inst, lane: b.context[i] });
            }
            if data_poison && !a.own {
                self.undefined.insert(UndefinedUse::Data(inst));
            }
            if self.bounds.is_some() && op != AtomicOp::Load {
                let ordered = matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange | AtomicOp::Fadd);
                let operand = b.known[data as usize][i];
                let old_known = self.known_at(b, place, a.bytes);
                let known = match op {
                    AtomicOp::Store => operand,
                    _ if ordered || poison || !operand.is_exact() => Shadow::Undecided,
                    _ => old_known,
                };
                self.set_known(b, place, a.bytes, known);
            }
            if dst != ZERO {
                b.regs.set(dst, i, old, old_poison);
            }
        }
        Ok(())
    }
}

fn splat(r: &mut Registers, dst: u32, mask: Mask, bits: u64, poison: bool) {
    r.write(dst, mask, &[bits; LANES], if poison { ALL } else { 0 });
}
