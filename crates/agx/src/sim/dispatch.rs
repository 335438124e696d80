//! Threadgroups of a dispatch: which SIMD groups exist, who runs when, barriers.
//!
//! Threadgroups run one after the other. All SIMD groups of one are resident together; one runs until it waits or meets a
//! barrier, then [`Order`] chooses. A barrier opens when all of them are there.
//!
//! Facts: reference sections 1 (threads of a core), 1.3 (uniforms, preamble), 10.

use super::code::{Code, Steps};
use super::execute::{Event, Machine};
use super::group::{Group, UNIFORM_HALVES, Uniforms};
use super::memory::{Memories, fresh_local};
use super::{Dispatch, Fault, GroupCounts, LANES, Mask, Options, Outcome, Trouble};
use crate::asm;
use crate::stats::threads_for;
use kempe_ir::exec::Memory;
use kempe_ir::schedule::Chooser;
use std::collections::BTreeSet;

/// Most threads of a threadgroup.
pub const MAX_THREADS: u64 = 1024;

/// Most bytes of threadgroup memory that a launch can ask for.
const MAX_LOCAL: u32 = 1 << 16;

/// Most dwords of stack memory of a lane.
const MAX_STACK: u32 = 131_072;

impl Code {
    /// Runs a dispatch. Memory is changed as far as the run came.
    pub fn run(&self, dispatch: &Dispatch, memory: &mut Memory, options: &Options) -> Outcome {
        let mut machine = Machine {
            memories: Memories {
                device: memory,
                map: &dispatch.map,
                local: Vec::new(),
                undefined: BTreeSet::new(),
            },
            uniforms: self.uniforms(),
            options,
            groups: dispatch.groups,
            size: self.program.threadgroup_size,
            stack_dwords: self.program.stack_dwords,
            instructions: 0,
            executed: vec![0; self.main.steps.len()],
        };
        let mut counts = Vec::new();
        let result = self.run_all(&mut machine, &mut counts);
        Outcome {
            result,
            executed: machine.executed,
            instructions: machine.instructions,
            groups: counts,
            undefined: machine.memories.undefined.into_iter().collect(),
        }
    }

    fn uniforms(&self) -> Uniforms {
        let mut uniforms = [None; UNIFORM_HALVES];
        for (pair, word) in uniforms.chunks_exact_mut(2).zip(&self.program.uniforms) {
            pair[0] = Some(*word as u16);
            pair[1] = Some((word >> 16) as u16);
        }
        uniforms
    }

    fn run_all(&self, machine: &mut Machine, counts: &mut Vec<GroupCounts>) -> Result<(), Fault> {
        let program = &self.program;
        let refuse = |message: String| {
            Err(Fault {
                rule: "dispatch",
                pc: 0,
                instr: String::new(),
                lane: None,
                threadgroup: 0,
                group: 0,
                message,
            })
        };
        let threads = program.threadgroup_size.iter().fold(1u64, |n, &s| n.saturating_mul(s.into()));
        if threads == 0 || threads > MAX_THREADS {
            return refuse(format!("a threadgroup of {threads} threads"));
        }
        if program.halves > 256 || u64::from(threads_for(program.halves)) < threads {
            return refuse(format!("{threads} threads with {} half registers do not fit", program.halves));
        }
        if program.uniforms.len() > UNIFORM_HALVES / 2 {
            return refuse(format!("{} uniform registers", program.uniforms.len()));
        }
        if program.threadgroup_bytes > MAX_LOCAL {
            return refuse(format!("{} bytes of threadgroup memory", program.threadgroup_bytes));
        }
        if program.stack_dwords > MAX_STACK {
            return refuse(format!("{} dwords of stack", program.stack_dwords));
        }
        if let Some(steps) = &self.preamble {
            // A preamble has all registers for itself.
            let mut group = Group::new(256, 1);
            group.is_preamble = true;
            run_threadgroup(steps, std::slice::from_mut(&mut group), machine)?;
        }
        let [x, y, z] = machine.groups.map(u64::from);
        let simd_groups = threads.div_ceil(LANES as u64) as u32;
        for number in 0..x.saturating_mul(y).saturating_mul(z) {
            let id = [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32];
            machine.memories.local = fresh_local(program.threadgroup_bytes, machine.options);
            let mut groups: Vec<Group> = (0..simd_groups)
                .map(|n| {
                    let left = threads - u64::from(n) * LANES as u64;
                    let exists = if left >= LANES as u64 { Mask::MAX } else { (1 << left) - 1 };
                    let mut group = Group::new(program.halves, exists);
                    group.number = n;
                    group.threadgroup = number;
                    group.threadgroup_id = id;
                    group
                })
                .collect();
            let result = run_threadgroup(&self.main, &mut groups, machine);
            let room = Outcome::MAX_GROUPS.saturating_sub(counts.len());
            counts.extend(groups.iter().take(room).map(|g| GroupCounts {
                threadgroup: g.threadgroup,
                group: g.number,
                instructions: g.instructions,
                requests: g.requests,
            }));
            result?;
        }
        Ok(())
    }
}

/// Runs the SIMD groups of one threadgroup to their ends.
fn run_threadgroup(steps: &Steps, groups: &mut [Group], machine: &mut Machine) -> Result<(), Fault> {
    let count = groups.len();
    let mut waiting = vec![false; count];
    let mut chooser = Chooser::new(machine.options.order, count);
    loop {
        let runnable = |i: usize| !groups[i].done && !waiting[i];
        let Some(current) = chooser.choose(runnable) else {
            if let Some(i) = waiting.iter().position(|&w| w) {
                if groups.iter().any(|g| g.done) {
                    let trouble = Trouble::new("deadlock", "waits at a barrier, others have ended");
                    return Err(fault(steps, &groups[i], trouble));
                }
                waiting.fill(false);
                continue;
            }
            return Ok(());
        };
        let group = &mut groups[current];
        loop {
            match machine.step(group, steps) {
                Ok(Event::None) => {}
                Ok(Event::Switch | Event::End) => break,
                Ok(Event::Barrier) => {
                    waiting[current] = true;
                    break;
                }
                Err(trouble) => return Err(fault(steps, group, trouble)),
            }
        }
    }
}

#[cold]
fn fault(steps: &Steps, group: &Group, trouble: Trouble) -> Fault {
    // At a barrier the program counter is already behind it; the text is that of what is to blame.
    let step = steps.find(group.pc).ok().map(|n| &steps.steps[n]);
    Fault {
        rule: trouble.rule,
        pc: group.pc,
        instr: step.map_or(String::new(), |step| asm::text(&step.instr, false)),
        lane: trouble.lane,
        threadgroup: group.threadgroup,
        group: group.number,
        message: trouble.message,
    }
}
