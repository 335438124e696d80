//! Ends of blocks: lanes that leave the walk, branches, edges.

use super::SelectError;
use super::emit::{Emit, Out, Snap, Uses, running};
use super::plan::{Exit, target};
use super::rules::Rule;
use super::values::Remade;
use super::vars::Kind;
use crate::mops::{MInst, Src, Test, When};
use crate::regs;
use kempe_ir::analysis::NONE;
use kempe_ir::{Term, Value};
use kempe_ra::{Block, Edge, VReg};
use smallvec::SmallVec;

impl Emit<'_> {
    pub(super) fn leave(&mut self) {
        let at = self.at;
        // Where the outputs are, or at the end if there are none: their values may be left for their use here.
        if !self.given.is_empty() || (self.plan.exits[at as usize] == Exit::End && !self.gave) {
            self.gave = true;
            self.give();
        }
        let a = at as usize;
        let p = self.p;
        let exit = self.plan.exits[a];
        self.out[a] = exit.succs().iter().map(|&to| Out { to, args: Vec::new() }).collect();
        for k in 0..2 {
            let Some(t) = p.edge(at, k) else { continue };
            let to = p.cfg.pos[t.block];
            let params: SmallVec<[(usize, Value); 4]> = p.params(to).collect();
            let meets = self.flow.meets[to as usize];
            let mut args: SmallVec<[VReg; 4]> = SmallVec::new();
            for &(n, param) in &params {
                let Some(&arg) = t.args.get(n) else {
                    self.fail(SelectError::malformed("a jump without its arguments"));
                    return;
                };
                let var = self.vars.of(param);
                match var {
                    Some(var) if meets => {
                        self.assign(var, arg);
                    }
                    Some(var) if self.vars.list[var as usize].kind == Kind::Header => {
                        let v = self.assign(var, arg);
                        args.push(v);
                    }
                    _ => {
                        let v = self.reg(arg);
                        args.push(v);
                    }
                }
            }
            if !meets {
                for v in args {
                    self.send(at, to, v);
                }
            }
            // What goes around a loop.
            if to <= at
                && let Some(l) = p.loop_at(to)
            {
                for n in 0..self.vars.carried[l as usize].len() {
                    let var = self.vars.carried[l as usize][n];
                    let v = match self.version(var) {
                        Some(v) => v,
                        None => self.undefined(),
                    };
                    self.send(at, to, v);
                }
                if self.flow.partial[to as usize] && self.plan.masks_change[l as usize] {
                    match self.exec {
                        Some(v) => self.send(at, to, v),
                        None => self.fail(SelectError::malformed("an execution value is missing")),
                    }
                }
            }
        }
        let skip_test = self.soft_exit();
        if self.exec.is_none() && exit.succs().iter().any(|&s| self.flow.partial[s as usize]) {
            self.exec = Some(self.remake_in(Remade::Const(0), Some(regs::ANY)));
        }
        self.exit(exit, skip_test);
        self.snaps[a] = Snap { exec: self.exec, vars: std::mem::take(&mut self.cur) };
    }

    /// Lanes that take a soft edge get the number of its target. Returns a test for the lanes that go on, when it is
    /// cheaper than asking the execution value.
    fn soft_exit(&mut self) -> Option<(Test, Uses)> {
        let at = self.at;
        let p = self.p;
        let soft = self.flow.soft[at as usize];
        if soft == [false; 2] {
            return None;
        }
        let Term::Branch { cond, .. } = p.block(at).term else {
            // Every lane that runs waits.
            self.rules.hit(Rule::WaitJump);
            let to = target(p, at, 0);
            let mut uses = Uses::new();
            let number = self.number(to, &mut uses);
            match self.exec {
                Some(exec) => self.exec = Some(self.move_under(number, &uses, running(exec), exec)),
                None => self.fail(SelectError::malformed("all lanes wait")),
            }
            return None;
        };
        let to = [target(p, at, 0), target(p, at, 1)];
        match self.exec {
            None => {
                let both = soft == [true, true];
                self.rules.hit(if both { Rule::WaitBothSides } else { Rule::WaitOneSide });
                let mut values: [Uses; 2] = Default::default();
                let mut src = [Src::Imm(0); 2];
                for k in 0..2 {
                    if soft[k] {
                        src[k] = self.number(to[k], &mut values[k]);
                    }
                }
                let exec =
                    self.choose(cond, src, [values[0].first().copied(), values[1].first().copied()], None);
                self.exec = Some(exec);
                // The flags are there already.
                (!self.is_nested(cond) && soft != [true, true]).then(|| self.test(cond, soft[0], None))
            }
            Some(exec) => {
                let both = soft == [true, true];
                self.rules.hit(if both { Rule::WaitMaskedBoth } else { Rule::WaitMasked });
                let first = if soft[1] { 1 } else { 0 };
                let mut exec = self.send_away(cond, first == 1, to[first], exec);
                if soft == [true, true] {
                    let mut value = Uses::new();
                    let number = self.number(to[0], &mut value);
                    exec = self.move_under(number, &value, running(exec), exec);
                }
                self.exec = Some(exec);
                None
            }
        }
    }

    /// Lanes that run and for which the condition holds (does not hold, if inverted) wait for a block.
    fn send_away(&mut self, cond: Value, invert: bool, to: u32, exec: VReg) -> VReg {
        // Where one of two conditions is enough, one after the other.
        if self.is_nested(cond)
            && let Some((op, inner, other)) = self.compound(cond)
            && invert == (op == kempe_ir::Op::And)
        {
            self.rules.hit(Rule::WaitTwice);
            let exec = self.send_away(inner, invert, to, exec);
            return self.send_away(other, invert, to, exec);
        }
        let test = self.test(cond, invert, Some(exec));
        let mut value = Uses::new();
        let number = self.number(to, &mut value);
        self.move_under(number, &value, test, exec)
    }

    fn exit(&mut self, exit: Exit, skip_test: Option<(Test, Uses)>) {
        let at = self.at;
        let id = self.plan.block[at as usize];
        let (when, (test, uses)) = match exit {
            Exit::End => {
                self.rules.hit(Rule::End);
                self.terminator(MInst::End, &[]);
                self.b.end_block(Block(id), Vec::new());
                return;
            }
            Exit::Jump { to } if to == at + 1 && self.plan.continues[to as usize] => {
                self.rules.hit(Rule::JumpOn);
                return;
            }
            Exit::Jump { .. } => {
                self.rules.hit(Rule::Jump);
                self.terminator(MInst::Jump, &[]);
                self.b.end_block(Block(id), Vec::new());
                return;
            }
            Exit::Lane0 { when, .. } => {
                let Term::Branch { cond, .. } = self.p.block(at).term else {
                    self.fail(SelectError::malformed("a branch without condition"));
                    return;
                };
                self.rules.hit(if when { Rule::UniformTaken } else { Rule::UniformNotTaken });
                if let Some(exec) = self.exec
                    && self.plan.is_unsure(self.p, self.flow, self.p.root(cond), at)
                {
                    // Lane 0 may not know: those that run do, and when there are none it does not matter.
                    self.rules.hit(Rule::UniformOfRunning);
                    return self.ask_lanes(cond, when, Some(exec));
                }
                if self.p.stage == kempe_ir::Stage::Fragment {
                    // Quad 0 may be dead, and then lane 0 does not know what came from memory.
                    return self.ask_lanes(cond, when, None);
                }
                let test = self.test(cond, false, None);
                (if when { When::Lane0 } else { When::NotLane0 }, test)
            }
            Exit::Skip { .. } => match (skip_test, self.exec) {
                (Some(t), _) => {
                    self.rules.hit(Rule::SkipByFlags);
                    (When::NoLane, t)
                }
                (None, Some(exec)) => {
                    self.rules.hit(Rule::SkipByMask);
                    (When::NoLane, running(exec))
                }
                (None, None) => {
                    self.fail(SelectError::malformed("an execution value is missing"));
                    return;
                }
            },
            Exit::Latch { .. } => match self.exec {
                Some(exec) => {
                    self.rules.hit(Rule::Latch);
                    (When::Any, running(exec))
                }
                None => {
                    self.fail(SelectError::malformed("an execution value is missing"));
                    return;
                }
            },
        };
        self.end_in_branch(when, (test, uses));
    }

    /// A branch on a condition on which the lanes that run agree. When there are none any more, a loop ends.
    fn ask_lanes(&mut self, cond: Value, when: bool, exec: Option<VReg>) {
        let at = self.at;
        let leaves = match self.plan.exits[at as usize] {
            Exit::Lane0 { taken, .. } => match self.p.cfg.loop_of[at as usize] {
                NONE => false,
                l => !self.p.in_loop(l, taken),
            },
            _ => false,
        };
        if leaves {
            let test = self.test(cond, when, exec);
            self.end_in_branch(When::NoLane, test);
        } else {
            let test = self.test(cond, !when, exec);
            self.end_in_branch(When::Any, test);
        }
    }

    fn end_in_branch(&mut self, when: When, (test, uses): (Test, Uses)) {
        let a = self.at as usize;
        let id = self.plan.block[a];
        let edges = self.plan.edge_block[a];
        // A block for the taken edge stands directly behind, so then the branch goes the other way.
        let when = if edges[0].is_some() { opposite(when) } else { when };
        self.terminator(MInst::Branch { test, when }, &uses);
        self.b.end_block(Block(id), Vec::new());
        for (k, e) in edges.into_iter().enumerate().filter_map(|(k, e)| Some((k, e?))) {
            self.rules.hit([Rule::EdgeTaken, Rule::EdgeOther][k]);
            self.b.start_block(Block(e));
            self.terminator(MInst::Jump, &[]);
            self.b.end_block(Block(e), Vec::new());
        }
    }

    /// Fills in the edges.
    pub(super) fn connect(&mut self) {
        let out = std::mem::take(&mut self.out);
        let depth = |at: u32| self.p.cfg.depth(at);
        for (a, list) in out.into_iter().enumerate() {
            let id = self.plan.block[a] as usize;
            let blocks = &mut self.b.mir.program.blocks;
            if !self.plan.continues[a] {
                blocks[id].frequency = self.plan.frequency[a];
                blocks[id].loop_depth = depth(a as u32);
            }
            if self.plan.continues.get(a + 1) == Some(&true) {
                continue;
            }
            let edges = self.plan.edge_block[a];
            let two = list.len() == 2;
            let mut succs: SmallVec<[Edge; 2]> = SmallVec::new();
            for (k, o) in list.into_iter().enumerate() {
                let to = Block(self.plan.block[o.to as usize]);
                match edges[k].filter(|_| two) {
                    Some(e) => {
                        blocks[e as usize].frequency =
                            self.plan.frequency[a].min(self.plan.frequency[o.to as usize]);
                        blocks[e as usize].loop_depth = depth(a as u32).min(depth(o.to));
                        blocks[e as usize].succs = vec![Edge { to, args: o.args }];
                        succs.push(Edge { to: Block(e), args: Vec::new() });
                    }
                    None => succs.push(Edge { to, args: o.args }),
                }
            }
            if two && edges[0].is_some() {
                succs.swap(0, 1);
            }
            blocks[id].succs = succs.into_vec();
        }
    }
}

fn opposite(w: When) -> When {
    match w {
        When::Lane0 => When::NotLane0,
        When::NotLane0 => When::Lane0,
        When::Any => When::NoLane,
        When::NoLane => When::Any,
    }
}
