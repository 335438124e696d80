//! A machine with virtual registers: runs what selection made before anything is allocated, so that a difference to
//! the interpreter is a mistake of selection and of nothing else.

use crate::instr::{Op, Unpack, small_value};
use crate::mops::{Cmp, CmpOp, MInst, Src, Test, TmuType, When};
use kempe_ir::exec::{Batches, Environment, LANES, LaneContext, Memory, StartState};
use kempe_ir::{AtomicOp, Module, Type, eval};
use kempe_mir::{Mir, UniformSource};
use kempe_ra::{Inst, OperandKind};

type Lanes = [u32; LANES];

struct Batch {
    regs: Vec<Lanes>,
    block: usize,
    inst: u32,
    lanes: Vec<(LaneContext, bool)>,
    thread: u32,
    ended: bool,
}

pub struct Machine<'a> {
    pub mir: &'a Mir<MInst>,
    pub env: &'a Environment,
    pub memory: Memory,
    pub start: &'a dyn StartState,
    pub steps: u64,
}

impl Machine<'_> {
    /// Runs the dispatch.
    pub fn run(&mut self, m: &Module) -> Result<(), String> {
        let batches = Batches::new(m, self.env);
        for s in 0..batches.supergroups() {
            let mut list: Vec<Batch> = (0..batches.batches_in(s))
                .map(|b| Batch {
                    regs: vec![[0xdead_beef; LANES]; self.mir.program.vregs.len()],
                    block: 0,
                    inst: 0,
                    lanes: (0..LANES as u32).map(|l| batches.lane(s, b, l)).collect(),
                    thread: self.start.thread_id(b),
                    ended: false,
                })
                .collect();
            while list.iter().any(|b| !b.ended) {
                for b in &mut list {
                    if !b.ended {
                        self.until_barrier(b)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn until_barrier(&mut self, b: &mut Batch) -> Result<(), String> {
        loop {
            self.steps += 1;
            if self.steps > 20_000_000 {
                return Err("too many steps".to_owned());
            }
            let i = Inst(b.inst);
            b.inst += 1;
            match self.mir.data[i.0 as usize] {
                MInst::Barrier => return Ok(()),
                MInst::End => {
                    b.ended = true;
                    return Ok(());
                }
                MInst::Jump => self.go(b, 0),
                MInst::Branch { test, when } => {
                    let uses = self.uses(b, i);
                    let mut at = 0;
                    let holds = self.test(&test, &uses, &mut at);
                    let live = |l: usize| b.lanes[l].1;
                    let any = (0..LANES).any(|l| live(l) && holds[l]);
                    let taken = match when {
                        When::Lane0 => holds[0],
                        When::NotLane0 => !holds[0],
                        When::Any => any,
                        When::NoLane => !any,
                    };
                    self.go(b, if taken { 0 } else { 1 });
                }
                _ => self.step(b, i).map_err(|e| format!("instruction {}: {e}", i.0))?,
            }
        }
    }

    fn go(&self, b: &mut Batch, k: usize) {
        let edge = &self.mir.program.blocks[b.block].succs[k];
        let args: Vec<Lanes> = edge.args.iter().map(|v| b.regs[v.0 as usize]).collect();
        let to = &self.mir.program.blocks[edge.to.0 as usize];
        for (p, a) in to.params.iter().zip(args) {
            b.regs[p.0 as usize] = a;
        }
        b.block = edge.to.0 as usize;
        b.inst = to.insts.start;
    }

    fn uses(&self, b: &Batch, i: Inst) -> Vec<Lanes> {
        let list = self.mir.operands(i).iter().filter(|o| o.kind == OperandKind::Use);
        list.map(|o| b.regs[o.vreg.0 as usize]).collect()
    }

    fn defs(&self, i: Inst) -> Vec<usize> {
        let list = self.mir.operands(i).iter().filter(|o| o.kind != OperandKind::Use);
        list.map(|o| o.vreg.0 as usize).collect()
    }

    fn source(&self, s: Src, uses: &[Lanes], at: &mut usize) -> Lanes {
        match s {
            Src::None => [0; LANES],
            Src::Imm(c) => [small_value(c).unwrap(); LANES],
            Src::Use => {
                *at += 1;
                uses[*at - 1]
            }
        }
    }

    fn test(&self, t: &Test, uses: &[Lanes], at: &mut usize) -> [bool; LANES] {
        let mut running = [true; LANES];
        if t.mask {
            let m = uses[*at];
            *at += 1;
            running = m.map(|x| x == 0);
        }
        let mut holds = [true; LANES];
        for c in t.cmps() {
            let a = self.source(c.src[0], uses, at);
            let b = self.source(c.src[1], uses, at);
            for l in 0..LANES {
                holds[l] &= compare(c, a[l], b[l]);
            }
        }
        std::array::from_fn(|l| running[l] && holds[l] != t.not)
    }

    fn step(&mut self, b: &mut Batch, i: Inst) -> Result<(), String> {
        let uses = self.uses(b, i);
        let defs = self.defs(i);
        let mut at = 0;
        match self.mir.data[i.0 as usize] {
            MInst::Entry => {
                for (n, &d) in defs.iter().enumerate() {
                    let unit = self.mir.operands(i)[n].fixed.unwrap().0;
                    // Row 2 is word 1 on both versions.
                    let word = if unit == 2 { 1 } else { 0 };
                    for l in 0..LANES {
                        b.regs[d][l] = self.start.payload(word, &b.lanes[l].0);
                    }
                }
            }
            MInst::Alu { op, src, unpack, test, .. } => {
                let holds = match &test {
                    Some(t) => self.test(t, &uses, &mut at),
                    None => [true; LANES],
                };
                let x = self.source(src[0], &uses, &mut at);
                let y = self.source(src[1], &uses, &mut at);
                let tied = self.mir.operands(i)[0].tied;
                let mut r = match tied {
                    Some(t) => b.regs[self.mir.operands(i)[t as usize].vreg.0 as usize],
                    None => [0xdead_beef; LANES],
                };
                if tied.is_none() && test.is_some() {
                    return Err("a write under a test that is not tied".to_owned());
                }
                for l in 0..LANES {
                    if holds[l] {
                        r[l] = match op {
                            Op::Shuffle => x[y[l] as usize % LANES],
                            Op::Rotq => x[l & !3 | (l + y[l & !3] as usize) & 3],
                            Op::Eidx => l as u32,
                            Op::Tidx => b.thread,
                            _ => alu(op, unpacked(unpack[0], x[l]), unpacked(unpack[1], y[l]))?,
                        };
                    }
                }
                b.regs[defs[0]] = r;
            }
            MInst::Select { test, src, unpack } => {
                let holds = self.test(&test, &uses, &mut at);
                let x = self.source(src[0], &uses, &mut at);
                let y = self.source(src[1], &uses, &mut at);
                for l in 0..LANES {
                    b.regs[defs[0]][l] =
                        if holds[l] { unpacked(unpack[0], x[l]) } else { unpacked(unpack[1], y[l]) };
                }
            }
            MInst::Mul32 { src } => {
                let x = self.source(src[0], &uses, &mut at);
                let y = self.source(src[1], &uses, &mut at);
                for l in 0..LANES {
                    b.regs[defs[0]][l] = x[l].wrapping_mul(y[l]);
                }
            }
            MInst::Uniform(w) => {
                let v = self.word(w);
                b.regs[defs[0]] = [v; LANES];
            }
            what @ (MInst::Sideband { count } | MInst::Read { count, .. }) => {
                let base = match what {
                    MInst::Read { address, .. } => self.word(address),
                    _ => uses[0][0],
                };
                for n in 0..count as usize {
                    let address = base.wrapping_add(4 * n as u32);
                    // Words between wanted ones may lie outside.
                    let v = self.memory.read_u32(address).unwrap_or(0xdead_beef);
                    b.regs[defs[n]] = [v; LANES];
                }
            }
            MInst::TmuLoad { ty, count, test, .. } => {
                let holds = self.enabled(b, &test, &uses, &mut at);
                // Lanes that take no part get anything.
                for &d in &defs {
                    b.regs[d] = [0xbad0_0000 + self.steps as u32; LANES];
                }
                for l in (0..LANES).filter(|&l| holds[l]) {
                    for n in 0..count as usize {
                        let v = self.memory.read(uses[at][l].wrapping_add(4 * n as u32), bytes(ty));
                        b.regs[defs[n]][l] = v.map_err(|f| f.to_string())? as u32;
                    }
                }
            }
            MInst::TmuStore { ty, count, test, .. } => {
                let holds = self.enabled(b, &test, &uses, &mut at);
                for l in (0..LANES).filter(|&l| holds[l]) {
                    for n in 0..count as usize {
                        let to = uses[at][l].wrapping_add(4 * n as u32);
                        let v = uses[at + 1 + n][l];
                        self.memory.write(to, bytes(ty), v as u64).map_err(|f| f.to_string())?;
                    }
                }
            }
            MInst::TmuAtomic { op, data, test, .. } => {
                let holds = self.enabled(b, &test, &uses, &mut at);
                b.regs[defs[0]] = [0xbad0_0000 + self.steps as u32; LANES];
                for l in (0..LANES).filter(|&l| holds[l]) {
                    let old = self.memory.read_u32(uses[at][l]).map_err(|f| f.to_string())?;
                    let word = |n: usize| if n < data as usize { uses[at + 1 + n][l] as u64 } else { 1 };
                    let (op, value, expected) = match (op, data) {
                        (8, 0) => (AtomicOp::Add, 1, 0),
                        (9, 0) => (AtomicOp::Sub, 1, 0),
                        (3, _) => (AtomicOp::CompareExchange, word(1), word(0)),
                        (n, _) => (atomic(n)?, word(0), 0),
                    };
                    let new = eval::atomic(op, Type::I32, old as u64, value, expected);
                    self.memory.write_u32(uses[at][l], new as u32).map_err(|f| f.to_string())?;
                    b.regs[defs[0]][l] = old;
                }
            }
            MInst::Texture { .. } => return Err("images are not followed here".to_owned()),
            MInst::Varying { .. }
            | MInst::VertexOutput { .. }
            | MInst::RowRead { .. }
            | MInst::VertexWait
            | MInst::SetSamples { .. }
            | MInst::MaskSamples
            | MInst::Tlb { .. } => return Err("graphics programs are not followed here".to_owned()),
            MInst::Ballot { test, live } => {
                let mut holds = match &test {
                    Some(t) => self.test(t, &uses, &mut at),
                    None => [true; LANES],
                };
                for l in 0..LANES {
                    holds[l] &= !live || b.lanes[l].1;
                }
                b.regs[defs[0]] = [(0..LANES).fold(0, |m, l| m | (holds[l] as u32) << l); LANES];
            }
            MInst::Rotate { by } => {
                b.regs[defs[0]] = std::array::from_fn(|l| uses[0][(l + by as usize) % LANES]);
            }
            MInst::Broadcast { lane } => {
                at = 1;
                let lane = self.source(lane, &uses, &mut at)[0];
                b.regs[defs[0]] = [uses[0][lane as usize % LANES]; LANES];
            }
            MInst::TmuWait => {}
            MInst::Barrier | MInst::Branch { .. } | MInst::Jump | MInst::End => {}
        }
        Ok(())
    }

    fn word(&self, source: UniformSource) -> u32 {
        match source {
            UniformSource::Const(c) => c,
            UniformSource::Word(w, c) => self.env.word(w).wrapping_add(c),
            UniformSource::High(_) => 0,
        }
    }

    fn enabled(&self, b: &Batch, t: &Option<Test>, uses: &[Lanes], at: &mut usize) -> [bool; LANES] {
        let mut holds = match t {
            Some(t) => self.test(t, uses, at),
            None => [true; LANES],
        };
        for l in 0..LANES {
            holds[l] &= b.lanes[l].1;
        }
        holds
    }
}

fn bytes(ty: TmuType) -> u32 {
    match ty {
        TmuType::I8 | TmuType::U8 => 1,
        TmuType::I16 | TmuType::U16 => 2,
        _ => 4,
    }
}

fn atomic(op: u8) -> Result<AtomicOp, String> {
    use AtomicOp::*;
    let list = [Add, Sub, Exchange, CompareExchange, Umin, Umax, Smin, Smax, And, Or, Xor];
    list.get(op as usize).copied().ok_or_else(|| format!("atomic {op}"))
}

fn unpacked(u: Unpack, x: u32) -> u32 {
    match u {
        Unpack::Abs => x & 0x7fff_ffff,
        Unpack::L => eval::f16_to_f32(x as u16),
        Unpack::H => eval::f16_to_f32((x >> 16) as u16),
        _ => x,
    }
}

fn compare(c: &Cmp, a: u32, b: u32) -> bool {
    let abs = |n: usize, x: u32| unpacked(c.unpack[n], x);
    let (fa, fb) = (f32::from_bits(abs(0, a)), f32::from_bits(abs(1, b)));
    let holds = match c.op {
        CmpOp::NonZero => a != 0,
        CmpOp::Ieq => a == b,
        CmpOp::Slt => (a as i32) < b as i32,
        CmpOp::Ult => a < b,
        CmpOp::Feq => fa == fb,
        CmpOp::Flt => fa < fb,
        CmpOp::Fle => fa <= fb,
    };
    holds != c.invert
}

fn alu(op: Op, a: u32, b: u32) -> Result<u32, String> {
    use kempe_ir::Op as I;
    let (f, ty, from) = match op {
        Op::Mov | Op::Fmov => return Ok(a),
        Op::Recip => (I::RcpApprox, Type::F32, Type::F32),
        Op::Rsqrt => (I::RsqrtApprox, Type::F32, Type::F32),
        Op::Exp => (I::Exp2Approx, Type::F32, Type::F32),
        Op::Log => (I::Log2Approx, Type::F32, Type::F32),
        Op::Sin => (I::SinpiApprox, Type::F32, Type::F32),
        Op::Fadd => (I::Fadd, Type::F32, Type::F32),
        Op::Fsub => (I::Fsub, Type::F32, Type::F32),
        Op::Fmul => (I::Fmul, Type::F32, Type::F32),
        Op::Fmin => (I::Fmin, Type::F32, Type::F32),
        Op::Fmax => (I::Fmax, Type::F32, Type::F32),
        Op::Ffloor => (I::Ffloor, Type::F32, Type::F32),
        Op::Fceil => (I::Fceil, Type::F32, Type::F32),
        Op::Ftrunc => (I::Ftrunc, Type::F32, Type::F32),
        Op::Fround => (I::Fround, Type::F32, Type::F32),
        Op::Ftoiz => (I::Ftosi, Type::I32, Type::F32),
        Op::Ftouz => (I::Ftoui, Type::I32, Type::F32),
        Op::Itof => (I::Sitof, Type::F32, Type::I32),
        Op::Utof => (I::Uitof, Type::F32, Type::I32),
        Op::Ftoin => return alu(Op::Ftoiz, alu(Op::Fround, a, 0)?, 0),
        Op::Vfpack => return Ok(eval::pack_half(a, b)),
        Op::Add => (I::Iadd, Type::I32, Type::I32),
        Op::Sub => (I::Isub, Type::I32, Type::I32),
        Op::Neg => (I::Ineg, Type::I32, Type::I32),
        Op::Not => (I::Not, Type::I32, Type::I32),
        Op::And => (I::And, Type::I32, Type::I32),
        Op::Or => (I::Or, Type::I32, Type::I32),
        Op::Xor => (I::Xor, Type::I32, Type::I32),
        Op::Shl => (I::Shl, Type::I32, Type::I32),
        Op::Shr => (I::Lshr, Type::I32, Type::I32),
        Op::Asr => (I::Ashr, Type::I32, Type::I32),
        Op::Min => (I::Smin, Type::I32, Type::I32),
        Op::Max => (I::Smax, Type::I32, Type::I32),
        Op::Umin => (I::Umin, Type::I32, Type::I32),
        Op::Umax => (I::Umax, Type::I32, Type::I32),
        Op::Clz => (I::Clz, Type::I32, Type::I32),
        Op::Umul24 => (I::Umul24, Type::I32, Type::I32),
        _ => return Err(format!("{op:?} in the test machine")),
    };
    eval::eval(f, ty, from, kempe_ir::Imm::None, &[a as u64, b as u64][..op.sources()])
        .map(|v| v as u32)
        .ok_or_else(|| format!("{op:?} in the test machine"))
}
