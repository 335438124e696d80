//! From allocated machine instructions to code.
//!
//! One pass over the plan writes the blocks with registers in their places, the edits of the allocator between them, and what
//! lanes wait by (`select::plan`); a second one fills in the distances of jumps.
//!
//! * Waits: an access to a buffer or the stack goes on by itself (reference section 5.3). Loads and what brings a result
//!   belong to slot 0, stores to slot 1. A slot is waited for before a register that it still fills is touched, when it has
//!   [`MAX_PENDING`] requests, at the end of each block and before barriers.
//! * Skipping: where lanes may all have stopped, a jump leads past what they would walk through for nothing, if that is long
//!   enough ([`SKIP_COST`]).
//! * The stack frame (reference section 5.6): private variables first, then spill slots of four bytes.
//!
//! Left out: scheduling after allocation; the register cache hints.

use crate::encode;
use crate::instr::{Instr, Number, Operand, Role, Size};
use crate::mops::{self, MInst, is_asynchronous};
use crate::ops::Op;
use crate::registers as regs;
use crate::select::plan::{Item, Plan};
use kempe_mir::Mir;
use kempe_ra::{Allocation, Edit, Inst, OperandKind, Point, Unit};
use rustc_hash::FxHashMap;

/// Most requests of a slot that the reference driver has pending.
const MAX_PENDING: u32 = 8;

/// Instructions that a skipping jump must save (the public driver: 19 operations, twice for an if).
const SKIP_COST: u32 = 38;

/// What an access counts among skipped instructions, as the public driver has it.
const ACCESS_COST: u32 = 10;

/// Slot of loads, and of stores.
const LOADS: usize = 0;
const STORES: usize = 1;

/// Largest offset of a stack access.
const MAX_OFFSET: u32 = 65535;

/// Dwords that a frame has beside its bytes (reference section 5.6).
const FRAME_EXTRA: u32 = 10;

/// Bytes that a frame may have (reference section 5.6: below 32,767 dwords).
const MAX_FRAME_WORDS: u32 = 32766;

/// Traps behind the end.
pub const TRAPS: usize = 8;

/// Most lanes of pops that one push can add to (a field of two bits).
const MAX_NEST: u32 = 3;

/// Code and what there is to know of it.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    pub code: Vec<u8>,
    /// Byte offset and instruction, traps included.
    pub instrs: Vec<(u32, Instr)>,
    /// Private memory and spill slots of a lane, without what the frame has beside.
    pub stack_bytes: u32,
    /// Dwords that the program reserves.
    pub frame_words: u32,
    pub spills: u32,
    pub fills: u32,
    pub recomputed: u32,
    pub copies: u32,
    /// Accesses to private variables.
    pub scratch: u32,
    /// Registers from `r0` on that are touched.
    pub registers: u32,
}

/// A defect of the code generator, or something that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishError {
    pub message: String,
    pub internal: bool,
}

/// Makes code.
///
/// # Errors
/// When it does not fit (the stack), or something cannot be encoded, which is a defect.
pub fn finish(
    mir: &Mir<MInst>,
    allocation: &Allocation,
    plan: &Plan,
    private_bytes: u32,
) -> Result<Finished, FinishError> {
    let mut f = Finish {
        mir,
        allocation,
        plan,
        private_bytes,
        out: Vec::new(),
        jumps: Vec::new(),
        item_start: vec![0; plan.items.len()],
        loop_start: FxHashMap::default(),
        pending: Default::default(),
        made: Finished::default(),
        error: None,
    };
    f.run();
    if let Some(message) = f.error {
        return Err(FinishError { message, internal: true });
    }
    f.made.stack_bytes = private_bytes + 4 * allocation.slots;
    f.code()
}

#[derive(Clone, Default)]
struct Pending {
    count: u32,
    /// Registers that are being filled.
    filled: Vec<u16>,
}

/// Where a jump leads.
#[derive(Clone, Copy)]
enum To {
    Item(u32),
    Loop(u32),
}

struct Finish<'a> {
    mir: &'a Mir<MInst>,
    allocation: &'a Allocation,
    plan: &'a Plan,
    private_bytes: u32,
    out: Vec<Instr>,
    /// Instructions that jump.
    jumps: Vec<(usize, To)>,
    /// By position: the first instruction.
    item_start: Vec<usize>,
    /// By header: the instruction to go back to.
    loop_start: FxHashMap<u32, usize>,
    pending: [Pending; 2],
    made: Finished,
    error: Option<String>,
}

/// The counter of pops.
fn counter() -> Operand {
    Operand::reg(0, Size::B16)
}

/// The other half of its register, which is given to nobody.
fn spare() -> Operand {
    Operand::reg(1, Size::B16)
}

fn register(r: u16) -> Operand {
    Operand::reg(2 * r, Size::B32)
}

impl Finish<'_> {
    fn bug(&mut self, message: &str) {
        self.error.get_or_insert_with(|| message.to_owned());
    }

    fn run(&mut self) {
        let uses_mask = self.mir.data.iter().any(|i| matches!(i, MInst::Branch(_)))
            || self.plan.pops.contains(&true)
            || self.plan.loops != 0;
        if self.private_bytes + 4 * self.allocation.slots != 0 {
            // Filled in at the end.
            self.out.push(Instr::new(Op::StackAdjust));
        }
        if uses_mask {
            self.out.push(Instr::mov_imm(counter(), 0));
            self.push_all(self.plan.start_pushes);
        }
        let mut edits = self.allocation.edits.iter().peekable();
        for position in 0..self.plan.items.len() {
            self.item_start[position] = self.out.len();
            let popped = self.plan.pops[position];
            if popped {
                self.out.push(Instr::new(Op::PopExec).set(Number::Nest, 1));
            }
            match self.plan.items[position] {
                Item::Latch(header) => {
                    let jump = self.out.len();
                    self.out.push(Instr::jump(Op::JmpExecAny, 0));
                    self.jumps.push((jump, To::Loop(header)));
                }
                Item::Block(number) => {
                    if popped {
                        self.skip(position);
                    }
                    if let Some(pushes) = self.plan.pushes[number as usize] {
                        self.loop_start.insert(number, self.out.len());
                        self.push_all(pushes);
                    }
                    let insts = self.mir.program.blocks[number as usize].insts.clone();
                    for i in insts {
                        let inst = Inst(i);
                        while let Some((_, edit)) = edits.next_if(|(p, _)| *p == Point::Before(inst)) {
                            self.edit(*edit);
                        }
                        self.inst(inst, number, position);
                        while let Some((_, edit)) = edits.next_if(|(p, _)| *p == Point::After(inst)) {
                            self.edit(*edit);
                        }
                    }
                }
            }
        }
        if edits.next().is_some() {
            self.bug("an edit that stands nowhere");
        }
        self.out.push(Instr::new(Op::Stop));
        self.out.extend(std::iter::repeat_n(Instr::new(Op::Trap), TRAPS));
    }

    fn push_all(&mut self, mut count: u32) {
        while count != 0 {
            let n = count.min(MAX_NEST);
            self.out.push(Instr::always(Op::IfFcmp, n));
            count -= n;
        }
    }

    /// A jump past what nobody may be active in: to the next place where somebody may become so, or where a loop counts for
    /// those who wait.
    fn skip(&mut self, position: usize) {
        let mut cost = 0;
        for next in position..self.plan.items.len() {
            // A place that counts for those who wait must be walked through.
            let (pushes, ends_in_push) = match self.plan.items[next] {
                Item::Block(b) => {
                    (self.plan.pushes[b as usize].is_some_and(|n| n != 0), self.plan.branch_push[b as usize])
                }
                Item::Latch(_) => (false, false),
            };
            if next != position && (self.plan.pops[next] || pushes || ends_in_push) {
                if cost >= SKIP_COST {
                    let jump = self.out.len();
                    self.out.push(Instr::jump(Op::JmpExecNone, 0));
                    self.jumps.push((jump, To::Item(next as u32)));
                }
                return;
            }
            if pushes || ends_in_push {
                return;
            }
            if let Item::Block(b) = self.plan.items[next] {
                for i in self.mir.program.blocks[b as usize].insts.clone() {
                    cost += match &self.mir.data[i as usize] {
                        MInst::Plain(instr, _) if is_asynchronous(instr.op) => ACCESS_COST,
                        _ => 1,
                    };
                }
            }
        }
    }

    fn wait(&mut self, slot: usize) {
        if self.pending[slot].count != 0 {
            self.out.push(Instr::wait(slot as u32));
            self.pending[slot] = Pending::default();
        }
    }

    fn wait_all(&mut self) {
        self.wait(LOADS);
        self.wait(STORES);
    }

    /// Appends an instruction with its registers, after what it has to wait for.
    fn emit(&mut self, mut instr: Instr) {
        let mut touched = Vec::new();
        let mut top = 0;
        for (_, _, operand) in instr.operands() {
            touched.extend(operand.halves().map(|half| half / 2));
            top = top.max(operand.halves().end.div_ceil(2));
        }
        self.made.registers = self.made.registers.max(u32::from(top));
        for slot in [LOADS, STORES] {
            if self.pending[slot].filled.iter().any(|r| touched.contains(r)) {
                self.wait(slot);
            }
        }
        if matches!(instr.op, Op::ThreadgroupBarrier | Op::MemoryBarrier) {
            self.wait_all();
        }
        if is_asynchronous(instr.op) {
            let data = instr.operand(Role::Data).halves();
            let store = matches!(instr.op, Op::DeviceStore | Op::DeviceStoreControl | Op::StackStore)
                || instr.op == Op::Atomic && data.is_empty();
            let slot = if store { STORES } else { LOADS };
            if self.pending[slot].count >= MAX_PENDING {
                self.wait(slot);
            }
            instr.put_number(Number::Slot, slot as u32);
            self.pending[slot].count += 1;
            if !store {
                self.pending[slot].filled.extend(data.step_by(2).map(|half| half / 2));
            }
        }
        self.out.push(instr);
    }

    fn stack(&mut self, op: Op, unit: Unit, slot: u32) -> Instr {
        let offset = self.private_bytes + 4 * slot;
        if offset > MAX_OFFSET {
            self.bug("a spill slot beyond the reach of stack accesses");
        }
        Instr::new(op)
            .with(Role::Data, register(regs::register(unit)))
            .with(Role::Index, Operand::imm(offset as i32))
            .set(Number::Format, 2)
            .set(Number::Mask, 1)
    }

    fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Copy { from, to } => {
                self.made.copies += 1;
                self.emit(Instr::mov(register(regs::register(to)), register(regs::register(from))));
            }
            Edit::Swap { a, b } => {
                self.made.copies += 1;
                let (a, b) = (register(regs::register(a)), register(regs::register(b)));
                for (d, x, y) in [(a, a, b), (b, a, b), (a, a, b)] {
                    self.emit(Instr::bitop(XOR, d, x, y));
                }
            }
            Edit::Spill { from, slot } => {
                self.made.spills += 1;
                let instr = self.stack(Op::StackStore, from, slot.0);
                self.emit(instr);
            }
            Edit::Fill { slot, to } => {
                self.made.fills += 1;
                let instr = self.stack(Op::StackLoad, to, slot.0);
                self.emit(instr);
            }
            Edit::Recompute { recipe, to } => {
                self.made.recomputed += 1;
                match self.mir.recipes.get(recipe.0 as usize) {
                    Some(MInst::Plain(instr, _)) => self.emit(mops::fill(instr, |_| regs::register(to))),
                    _ => self.bug("a recipe that is no instruction"),
                }
            }
            Edit::Repeat { inst, from, to } => {
                self.made.recomputed += 1;
                let MInst::Plain(instr, _) = self.mir.data[inst.0 as usize] else {
                    return self.bug("something is repeated that is no instruction");
                };
                let kinds: Vec<OperandKind> = self.mir.operands(inst).iter().map(|o| o.kind).collect();
                let filled = mops::fill(&instr, |index| {
                    let uses = kinds[..index].iter().filter(|k| **k == OperandKind::Use).count();
                    let unit =
                        if kinds[index] == OperandKind::Use { from[uses.min(from.len() - 1)] } else { to };
                    regs::register(unit)
                });
                self.emit(filled);
            }
        }
    }

    fn filled(&self, inst: Inst, instr: &Instr) -> Instr {
        let first = self.mir.program.insts[inst.0 as usize].operands.start as usize;
        mops::fill(instr, |index| regs::register(self.allocation.places[first + index]))
    }

    /// Nothing reads what it makes, and it does nothing else.
    fn is_idle(&self, inst: Inst, instr: &Instr) -> bool {
        let info = &self.mir.program.insts[inst.0 as usize];
        let mut defs =
            info.operands.clone().filter(|&n| self.mir.program.operands[n as usize].kind != OperandKind::Use);
        let any =
            info.operands.clone().any(|n| self.mir.program.operands[n as usize].kind != OperandKind::Use);
        let pure = instr.op.info().cost.latency != 0
            || matches!(
                instr.op,
                Op::Bfeil
                    | Op::Popcount
                    | Op::Bitrev
                    | Op::Ffs
                    | Op::Convert
                    | Op::Ceil
                    | Op::Trunc
                    | Op::Rint
            );
        any && pure && defs.all(|n| self.allocation.unused_defs.binary_search(&n).is_ok())
    }

    fn inst(&mut self, inst: Inst, number: u32, position: usize) {
        let data = self.mir.data[inst.0 as usize];
        match data {
            MInst::Plain(instr, class) => {
                if self.is_idle(inst, &instr) {
                    return;
                }
                let filled = self.filled(inst, &instr);
                if matches!(instr.op, Op::StackLoad | Op::StackStore) && class == mops::class::PRIVATE {
                    self.made.scratch += 1;
                }
                // The group as a whole is at the barrier, active lanes or not, so it must not come there for nothing.
                if instr.op == Op::ThreadgroupBarrier && self.plan.may_wait[number as usize] {
                    self.wait_all();
                    let barrier = encode::encode(&instr).map_or(0, |bytes| bytes.len());
                    let jump = Instr::jump(Op::JmpExecNone, 0);
                    let own = encode::encode(&jump).map_or(0, |bytes| bytes.len());
                    self.out.push(jump.set(Number::Target, (own + barrier) as u32));
                }
                // A copy to where it stands.
                let copy = instr.op == Op::Bitop && instr.get(Number::Table) == crate::instr::MOV_TABLE;
                if copy && filled.operand(Role::Dest).place == filled.operand(Role::A).place {
                    return;
                }
                self.emit(filled);
            }
            MInst::Halves(instrs) => {
                if self.is_idle(inst, &instrs[0]) {
                    return;
                }
                for instr in &instrs {
                    let filled = self.filled(inst, instr);
                    self.emit(filled);
                }
            }
            MInst::End => self.wait_all(),
            MInst::Jump => {
                self.wait_all();
                let to = self.plan.succs[number as usize][0];
                if let Some(wait) = self.plan.wait(number, to) {
                    self.out.push(Instr::mov_imm(counter(), wait));
                }
            }
            MInst::Branch(test) => {
                self.wait_all();
                let filled = self.filled(inst, &test);
                self.branch(&filled, number, position);
            }
        }
    }

    /// Lanes go on or wait: with an `if` where those that wait do so for one pop, else with a select of their counts.
    fn branch(&mut self, test: &Instr, number: u32, position: usize) {
        let [then, els] = self.plan.succs[number as usize][..] else {
            return self.bug("a branch without two ways");
        };
        let waits = [self.plan.wait(number, then), self.plan.wait(number, els)];
        let condition = test.get(Number::Condition);
        let nest = u32::from(self.plan.branch_push[number as usize]);
        let top = test.operands().map(|(_, _, o)| o.halves().end.div_ceil(2)).max().unwrap_or(0);
        self.made.registers = self.made.registers.max(u32::from(top));
        match waits {
            [None, None] => {}
            [None, Some(1)] => self.out.push(test.set(Number::Nest, nest)),
            [Some(1), None] => {
                self.out.push(test.set(Number::Condition, condition ^ INVERT).set(Number::Nest, nest));
            }
            [a, b] => {
                let (a, b) = (a.unwrap_or(0), b.unwrap_or(0));
                let (x, y) = if condition & INVERT != 0 { (b, a) } else { (a, b) };
                let (x, y) = (self.count_operand(x, counter()), self.count_operand(y, spare()));
                let op = if test.op == Op::IfFcmp { Op::Fcmpsel } else { Op::Icmpsel };
                let select = Instr::binary(op, counter(), test.operand(Role::A), test.operand(Role::B))
                    .with(Role::X, x)
                    .with(Role::Y, y)
                    .set(Number::Condition, condition & !INVERT);
                self.out.push(select);
                if !self.plan.pops[position + 1] {
                    self.out.push(Instr::new(Op::PopExec).set(Number::Nest, 0));
                }
            }
        }
        if waits[0].is_none() || waits[1].is_none() {
            self.skip_after(position);
        }
    }

    /// A count as an operand of a select: an immediate, or in this half register, which nobody needs just now.
    fn count_operand(&mut self, count: u32, half: Operand) -> Operand {
        if count <= MAX_SELECT {
            return Operand::imm(count as i32);
        }
        self.out.push(Instr::mov_imm(half, count));
        half
    }

    /// As [`Finish::skip`], from the end of a block on.
    fn skip_after(&mut self, position: usize) {
        let next = position + 1;
        let counts = match self.plan.items.get(next) {
            Some(Item::Block(b)) => self.plan.pushes[*b as usize].is_some_and(|n| n != 0),
            _ => true,
        };
        // (A place that lanes wait for may have some.)
        if !counts && !self.plan.pops[next] {
            self.skip(next);
        }
    }

    /// Lays the instructions out and fills in what depends on that.
    fn code(mut self) -> Result<Finished, FinishError> {
        if self.made.stack_bytes != 0 {
            let words = (self.made.stack_bytes.div_ceil(4) + FRAME_EXTRA).next_multiple_of(4);
            if words > MAX_FRAME_WORDS {
                let message = format!("private memory takes {} bytes of stack", self.made.stack_bytes);
                return Err(FinishError { message, internal: false });
            }
            self.made.frame_words = words;
            self.out[0].put_number(Number::Value, words);
        }
        let defect = |e: encode::EncodeError| FinishError { message: e.to_string(), internal: true };
        let mut starts = Vec::with_capacity(self.out.len());
        let mut at = 0u32;
        for instr in &self.out {
            starts.push(at);
            at += encode::encode(instr).map_err(defect)?.len() as u32;
        }
        for &(jump, to) in &self.jumps {
            let to = match to {
                To::Item(position) => self.item_start[position as usize],
                To::Loop(header) => self.loop_start.get(&header).copied().unwrap_or(0),
            };
            let distance = starts[to].wrapping_sub(starts[jump]);
            self.out[jump].put_number(Number::Target, distance);
        }
        let mut code = Vec::with_capacity(at as usize);
        for instr in &self.out {
            code.extend_from_slice(&encode::encode(instr).map_err(defect)?);
        }
        if code.len() != at as usize {
            return Err(FinishError { message: "a jump has changed its length".to_owned(), internal: true });
        }
        self.made.code = code;
        self.made.instrs = starts.into_iter().zip(self.out).collect();
        Ok(self.made)
    }
}

/// Truth table of exclusive or.
const XOR: u32 = 6;

/// Bit of a condition that inverts it.
const INVERT: u32 = 8;

/// Largest immediate of a select.
const MAX_SELECT: u32 = 255;
