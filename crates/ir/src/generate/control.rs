//! Control flow: ifs, switches, loops, calls, and jumps that leave any of them.
//!
//! What may be left is a [`Frame`]: a loop (break), the rest of a round (continue), an inlined function (return), the
//! program. A jump to a frame may come from any depth of ifs and loops, as an edge of a branch or in a block of its
//! own, which stands in the loop or behind it. The order of blocks stays within the rules of `module.rs`, since the
//! target of a frame is always put behind everything that the frame contains.
//!
//! Barriers are allowed only where all invocations of the work-group come together; [`Gen::control_is_uniform`] knows:
//! an invocation that leaves a frame alone makes the rest of that frame non-uniform, and a loop in which all go round
//! together is never left by some of them.

use super::Gen;
use crate::module::*;
use crate::ops::Op;
use crate::types::Type;
use smallvec::SmallVec;

/// Operations that must be left for a new structure.
const ROOM: usize = 12;

/// Something that can be left by a jump.
pub(super) struct Frame {
    /// Where the jump goes; `None`: the program ends.
    block: Option<Block>,
    /// Parameters of the block.
    types: Vec<Type>,
    kind: Kind,
    /// Some invocations left alone.
    diverged: bool,
    /// Blocks that are to stand behind the loop.
    behind: Vec<Block>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A loop; `together`: all invocations of the work-group make the same rounds.
    Loop {
        together: bool,
    },
    Other,
}

impl Gen<'_> {
    /// Every invocation of the work-group is here, so a barrier is allowed.
    pub(super) fn control_is_uniform(&self) -> bool {
        self.structural && self.frames.iter().all(|f| !f.diverged)
    }

    pub(super) fn statements(&mut self, depth: u32) {
        let count = 3 + self.r.below(10);
        for _ in 0..count {
            let budget = self.budget();
            if budget == 0 {
                return;
            }
            let nest = depth < self.shape.depth && budget > ROOM;
            if self.graphics.is_some() && self.chance(20) {
                self.graphics_statement();
                continue;
            }
            match self.r.below(100) {
                0..=11 if nest => self.branch(depth),
                12..=13 if nest => self.switch(depth),
                14..=22 if nest => {
                    let uniform = self.chance(40);
                    self.repeat(depth, uniform);
                }
                23..=25 if nest => self.call(depth),
                26..=31 if self.shape.arrays => self.array_access(),
                32..=37 if self.shape.atomics => self.atomic(),
                38..=43 if self.shape.shared && self.control_is_uniform() => self.exchange(),
                44..=50 => {
                    let ty = self.pick(&[Type::I32, Type::F32]);
                    let v = self.load_any(ty);
                    self.keep(v);
                }
                51..=53 => self.vector_load(),
                54..=55 => self.fields(),
                56..=59 => self.own_words(),
                60 if nest => self.first_only(),
                61 if nest => self.gate(),
                _ => self.operation(),
            }
        }
    }

    fn start(&mut self, block: Block) {
        self.func.layout.push(block);
        self.block = block;
    }

    fn detached(&mut self) -> Block {
        self.func.add_block_detached()
    }

    fn carried_types(&mut self, most: u64) -> Vec<Type> {
        let n = self.r.below(most + 1);
        (0..n).map(|_| self.carried_type()).collect()
    }

    fn arguments(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&t| self.value(t)).collect()
    }

    fn params(&mut self, block: Block, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&t| self.func.add_param(block, t)).collect()
    }

    /// Joins several ends into `block`: a few values of common types become parameters.
    fn join(&mut self, ends: Vec<(Block, Vec<Value>)>, block: Block, keep: &[Value]) {
        let mut types = self.carried_types(3);
        types.push(Type::I32);
        let params = self.params(block, &types);
        for (end, values) in ends {
            self.block = end;
            self.values = values;
            let args = self.arguments(&types);
            self.b().jump(block, &args);
        }
        self.start(block);
        self.values = keep.to_vec();
        for p in params {
            self.keep(p);
        }
    }

    // ---- Frames ----

    fn enter(&mut self, kind: Kind, types: Vec<Type>) -> Block {
        let block = self.detached();
        self.frames.push(Frame { block: Some(block), types, kind, diverged: false, behind: Vec::new() });
        block
    }

    /// Goes from here to the target of the innermost frame, and on there with these values and the parameters.
    fn close(&mut self, keep: &[Value]) {
        let Some(f) = self.frames.pop() else { return };
        let Some(block) = f.block else { return };
        let args = self.arguments(&f.types);
        self.b().jump(block, &args);
        let params = self.params(block, &f.types);
        self.func.layout.extend(f.behind);
        self.start(block);
        self.values = keep.to_vec();
        for p in params {
            self.keep(p);
        }
    }

    /// Whether some or all of the invocations that are here may leave a frame: not some of them a loop that all go
    /// round together.
    fn may_leave(&self, k: usize) -> bool {
        let alone = !self.control_is_uniform();
        !alone || self.frames[k..].iter().all(|f| f.kind != Kind::Loop { together: true })
    }

    /// Notes that those that are here leave.
    fn left(&mut self, k: usize) {
        if !self.control_is_uniform() {
            self.frames[k].diverged = true;
        }
    }

    /// A frame that may be left under a condition of this kind.
    fn leavable(&mut self, uniform: bool) -> Option<usize> {
        let was = self.structural;
        self.structural &= uniform;
        let list: Vec<usize> = (0..self.frames.len()).filter(|&k| self.may_leave(k)).collect();
        self.structural = was;
        if list.is_empty() {
            return None;
        }
        let k = self.pick(&list);
        // The end of the program only now and then: it makes what follows dull.
        (self.frames[k].block.is_some() || self.chance(30)).then_some(k)
    }

    /// Ends the current block with a jump to a frame.
    fn leave(&mut self, k: usize) {
        let types = self.frames[k].types.clone();
        let args = self.arguments(&types);
        match self.frames[k].block {
            Some(block) => self.b().jump(block, &args),
            None => {
                self.own_words();
                self.b().ret();
            }
        }
    }

    /// `if (c) leave;` in one of its forms.
    fn leave_if(&mut self, k: usize, uniform: bool) {
        let stay = self.detached();
        let was = self.structural;
        self.structural &= uniform;
        self.left(k);
        self.structural = was;
        let form = self.r.below(3);
        let target = self.frames[k].block;
        if let (0, Some(block)) = (form, target) {
            // The edge itself leaves.
            let types = self.frames[k].types.clone();
            let args = self.arguments(&types);
            let cond = self.decide(uniform);
            let away = Target { block, args: SmallVec::from_vec(args) };
            let on = Target { block: stay, args: SmallVec::new() };
            let (then, els) = if self.chance(70) { (away, on) } else { (on, away) };
            self.func.blocks[self.block].term = Term::Branch { cond, then, els };
        } else {
            let c = self.decide(uniform);
            let away = self.detached();
            self.b().branch(c, away, stay);
            let values = self.values.clone();
            let inner = self.frames[k..].iter().rposition(|f| matches!(f.kind, Kind::Loop { .. }));
            match inner {
                // Behind the loop that is left. Nothing can be made there later, so all of it is made now.
                Some(at) if form == 1 => {
                    self.block = away;
                    self.leave(k);
                    self.frames[k + at].behind.push(away);
                }
                _ => {
                    self.start(away);
                    self.leave(k);
                }
            }
            self.values = values;
        }
        self.start(stay);
    }

    // ---- Structures ----

    fn branch(&mut self, depth: u32) {
        let uniform = self.chance(35);
        let leaves = if self.chance(45) { self.leavable(uniform) } else { None };
        if let Some(k) = leaves
            && self.chance(50)
        {
            return self.leave_if(k, uniform);
        }
        let c = self.decide(uniform);
        let before = self.values.clone();
        let was = self.structural;
        let (then, merge) = (self.detached(), self.detached());
        let hint =
            self.pick(&[BranchHint::None, BranchHint::None, BranchHint::Flatten, BranchHint::DontFlatten]);
        self.func.blocks[self.block].branch_hint = hint;
        if leaves.is_none() && self.chance(30) {
            // Without an other side: the edge goes to the merge.
            let mut types = self.carried_types(2);
            types.push(Type::I32);
            let args = self.arguments(&types);
            let inside = Target { block: then, args: SmallVec::new() };
            let around = Target { block: merge, args: SmallVec::from_vec(args) };
            let (a, b) = if self.chance(50) { (inside, around) } else { (around, inside) };
            self.func.blocks[self.block].term = Term::Branch { cond: c, then: a, els: b };
            self.start(then);
            self.structural &= uniform;
            self.statements(depth + 1);
            self.structural = was;
            let args = self.arguments(&types);
            self.b().jump(merge, &args);
            let params = self.params(merge, &types);
            self.start(merge);
            self.values = before;
            for p in params {
                self.keep(p);
            }
            return;
        }
        let els = self.detached();
        self.b().branch(c, then, els);
        // Which side leaves, if one does: what the other one made can be used behind.
        let leaver = self.r.below(2);
        let mut ends = Vec::new();
        let mut keep = before.clone();
        for (side, block) in [then, els].into_iter().enumerate() {
            self.start(block);
            self.values = before.clone();
            self.structural = was && uniform;
            let leaving = leaves.filter(|_| leaver == side as u64);
            if leaving.is_none() && (side == 0 || leaves.is_some()) || self.chance(60) {
                self.statements(depth + 1);
            }
            match leaving {
                Some(k) if self.may_leave(k) => {
                    self.left(k);
                    self.leave(k);
                }
                _ => {
                    if leaves.is_some() {
                        keep = self.values.clone();
                    }
                    ends.push((self.block, self.values.clone()));
                }
            }
        }
        self.structural = was;
        if ends.len() == 2 {
            keep = before;
        }
        self.join(ends, merge, &keep);
    }

    /// A chain of comparisons in front of the cases; a case may fall through to the next.
    fn switch(&mut self, depth: u32) {
        let uniform = self.chance(35);
        let v = if uniform { self.uniform_int() } else { self.value(Type::I32) };
        let cases = 2 + self.r.below(3) as u32;
        let mut b = self.b();
        let mask = b.i32(7);
        let selector = b.op(Op::And, Type::I32, &[v, mask]);
        let before = self.values.clone();
        let was = self.structural;
        let blocks: Vec<Block> = (0..=cases).map(|_| self.detached()).collect();
        let ty = self.carried_type();
        // Every case gets one value from where it comes from.
        let params: Vec<Value> = blocks.iter().map(|&b| self.func.add_param(b, ty)).collect();
        for k in 0..cases {
            let arg = self.value(ty);
            let mut b = self.b();
            let number = b.i32(k);
            let is = b.op(Op::Ieq, Type::I32, &[selector, number]);
            let case = Target { block: blocks[k as usize], args: SmallVec::from_slice(&[arg]) };
            let last = k + 1 == cases;
            let other = if last {
                let arg = self.value(ty);
                Target { block: blocks[cases as usize], args: SmallVec::from_slice(&[arg]) }
            } else {
                Target { block: self.detached(), args: SmallVec::new() }
            };
            let next = other.block;
            self.func.blocks[self.block].term = Term::Branch { cond: is, then: case, els: other };
            if !last {
                self.start(next);
            }
        }
        self.structural &= uniform;
        let mut ends = Vec::new();
        for (k, &block) in blocks.iter().enumerate() {
            self.start(block);
            self.values = before.clone();
            self.keep(params[k]);
            self.statements(depth + 1);
            match blocks.get(k + 1) {
                Some(&next) if self.chance(25) => {
                    let arg = self.value(ty);
                    self.b().jump(next, &[arg]);
                }
                _ => ends.push((self.block, self.values.clone())),
            }
        }
        self.structural = was;
        let merge = self.detached();
        self.join(ends, merge, &before);
    }

    /// A branch that only the first invocation takes.
    fn first_only(&mut self) {
        let (then, merge) = (self.detached(), self.detached());
        let id = self.id;
        let mut b = self.b();
        let zero = b.i32(0);
        let first = b.op(Op::Ieq, Type::I32, &[id, zero]);
        b.branch(first, then, merge);
        let before = self.values.clone();
        self.start(then);
        self.first_words();
        self.b().jump(merge, &[]);
        self.start(merge);
        self.values = before;
    }

    /// Three blocks of which a uniform condition skips the first, and a divergent one chooses between the others: what
    /// `goto` and jump threading make.
    fn gate(&mut self) {
        let ty = self.carried_type();
        let [choose, first, left, right, merge] = std::array::from_fn(|_| self.detached());
        let before = self.values.clone();
        let uniform = self.decide(true);
        self.b().branch(uniform, first, choose);
        self.start(choose);
        let args = [self.value(ty), self.value(ty)];
        let cond = self.decide(false);
        let to = |block, v| Target { block, args: SmallVec::from_slice(&[v]) };
        let (then, els) = (to(left, args[0]), to(right, args[1]));
        self.func.blocks[self.block].term = Term::Branch { cond, then, els };
        self.start(first);
        self.values = before.clone();
        self.operation();
        let arg = self.value(ty);
        self.b().jump(left, &[arg]);
        let p = [self.func.add_param(left, ty), self.func.add_param(right, ty)];
        let mut ends = Vec::new();
        for (k, block) in [left, right].into_iter().enumerate() {
            self.start(block);
            self.values = before.clone();
            self.keep(p[k]);
            self.operation();
            if k == 0 && self.chance(30) {
                let arg = self.value(ty);
                self.b().jump(right, &[arg]);
            } else {
                ends.push((self.block, self.values.clone()));
            }
        }
        self.join(ends, merge, &before);
    }

    /// What inlining makes of a call: returns from anywhere inside meet behind it with the result.
    fn call(&mut self, depth: u32) {
        let mut types = self.carried_types(1);
        types.push(Type::I32);
        self.enter(Kind::Other, types);
        let before = self.values.clone();
        self.statements(depth + 1);
        for _ in 0..1 + self.r.below(2) {
            let uniform = self.chance(30);
            if let Some(k) = self.leavable(uniform) {
                self.leave_if(k, uniform);
                self.statements(depth + 1);
            }
        }
        self.close(&before);
    }

    /// A loop of at most four rounds (fewer deep inside); a divergent one has a bound of its own in each lane.
    pub(super) fn repeat(&mut self, depth: u32, uniform: bool) {
        let most = if self.loops < 2 { 4 } else { 2 };
        let bound = if uniform {
            if self.chance(40) {
                let n = 1 + self.r.below(most) as u32;
                self.b().i32(n)
            } else {
                let v = self.uniform_int();
                let mut b = self.b();
                let mask = b.i32(most as u32 - 1);
                b.op(Op::And, Type::I32, &[v, mask])
            }
        } else {
            let v = if self.chance(30) { self.local } else { self.value(Type::I32) };
            let mut b = self.b();
            let mask = b.i32(most as u32 - 1);
            b.op(Op::And, Type::I32, &[v, mask])
        };
        let types = {
            let mut t = self.carried_types(3);
            t.push(Type::I32);
            t
        };
        let zero = self.b().i32(0);
        let mut first = vec![zero];
        first.extend(self.arguments(&types));
        let before = self.values.clone();
        let (was, uniforms) = (self.structural, self.uniforms.len());
        let together = uniform && self.control_is_uniform();
        let at_top = self.chance(65);
        let header = self.detached();
        let exit_types = self.carried_types(2);
        let exit = self.enter(Kind::Loop { together }, exit_types.clone());
        let counter = self.func.add_param(header, Type::I32);
        let carried = self.params(header, &types);
        self.b().jump(header, &first);
        self.start(header);
        self.func.blocks[header].loop_hint =
            self.pick(&[LoopHint::None, LoopHint::None, LoopHint::Unroll, LoopHint::DontUnroll]);
        self.structural &= uniform;
        self.loops += 1;
        self.values.extend(&carried);
        self.values.push(counter);
        if together {
            self.uniforms.push(counter);
        }
        if self.chance(50) {
            self.operation();
        }
        if at_top {
            let args = self.arguments(&exit_types);
            let cond = self.b().op(Op::Slt, Type::I32, &[counter, bound]);
            let body = self.detached();
            let then = Target { block: body, args: SmallVec::new() };
            let els = Target { block: exit, args: SmallVec::from_vec(args) };
            self.func.blocks[self.block].term = Term::Branch { cond, then, els };
            self.start(body);
        }
        // The header is on every way to what follows the loop.
        let mut keep = before;
        keep.extend(self.values.iter().copied().filter(|v| carried.contains(v) || *v == counter));
        let inside = self.values.clone();
        // The rest of the round: what continues meets at its end.
        self.enter(Kind::Other, types.clone());
        self.statements(depth + 1);
        if self.chance(45) {
            let together = self.chance(40);
            if let Some(k) = self.leavable(together) {
                self.leave_if(k, together);
                self.statements(depth + 1);
            }
        }
        self.close(&inside);
        let mut b = self.b();
        let one = b.i32(1);
        let counted = b.op(Op::Iadd, Type::I32, &[counter, one]);
        let mut back = vec![counted];
        back.extend(self.arguments(&types));
        if at_top {
            self.b().jump(header, &back);
        } else {
            let args = self.arguments(&exit_types);
            let cond = self.b().op(Op::Slt, Type::I32, &[counted, bound]);
            let then = Target { block: header, args: SmallVec::from_vec(back) };
            let els = Target { block: exit, args: SmallVec::from_vec(args) };
            self.func.blocks[self.block].term = Term::Branch { cond, then, els };
        }
        self.structural = was;
        self.loops -= 1;
        self.uniforms.truncate(uniforms);
        // Not `close`: nothing goes on from here.
        if let Some(f) = self.frames.pop() {
            self.func.layout.extend(f.behind);
        }
        let params = self.params(exit, &exit_types);
        self.start(exit);
        self.values = keep;
        while self.values.len() > self.shape.live.max(4) as usize {
            let at = self.r.below(self.values.len() as u64) as usize;
            self.values.remove(at);
        }
        for p in params {
            self.keep(p);
        }
    }

    /// The program itself as something to leave.
    pub(super) fn program_frame(&mut self) {
        let frame =
            Frame { block: None, types: Vec::new(), kind: Kind::Other, diverged: false, behind: Vec::new() };
        self.frames.push(frame);
    }
}
