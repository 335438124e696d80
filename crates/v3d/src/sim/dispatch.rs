//! Threads of a dispatch: which batches exist, what their registers hold at the start, who runs when, barriers.
//!
//! Supergroups run one after the other. All batches of a supergroup are resident together; one runs until its next
//! thread switch, then [`Order`] chooses. A barrier opens when all of them wait.
//!
//! Facts: reference sections 2 (tidx), 12.7 (barrier), 13.5 (payload, packing of work-groups).

use super::code::Code;
use super::thread::{Event, Machine, Thread, Trouble};
use super::{Dispatch, Fault, LANES, Mask, Options, Outcome, ThreadCounts};
use crate::instr::Version;
use kempe_ir::exec::{Batches, LaneContext, Memory, StartState};
use kempe_ir::schedule::Chooser;

/// What the chip puts into the registers of a compute thread, and which hardware thread it is. The interpreter takes it
/// as its [`StartState`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    pub version: Version,
    /// 2 or 4 per QPU.
    pub threads: u32,
}

impl Start {
    /// QPUs of the chip (section 1).
    pub fn qpus(self) -> u32 {
        match self.version {
            Version::V42 => 8,
            Version::V71 => 12,
        }
    }

    /// Most batches that are resident together.
    pub fn resident(self) -> u32 {
        self.qpus() * self.threads
    }

    /// Threads that scratch memory has to be laid out for: 4 per QPU whatever the program uses (section 12.6).
    pub fn scratch_threads(self) -> u32 {
        self.qpus() * 4
    }

    /// Number of the hardware thread (as tidx gives it) of the n-th batch that is resident.
    pub(super) fn thread_id_of(self, batch: u32) -> u32 {
        let slot = batch / self.qpus();
        let thread = if self.threads == 4 { slot } else { slot * 2 };
        (batch % self.qpus()) << 2 | thread
    }

    /// Rows of the two payload words.
    pub fn rows(self) -> [u8; 2] {
        match self.version {
            Version::V42 => [0, 2],
            Version::V71 => [3, 2],
        }
    }
}

/// Most batches of a supergroup in a dispatch that states them.
const MAX_STATED: u32 = 4096;

impl StartState for Start {
    fn payload(&self, number: u32, lane: &LaneContext) -> u32 {
        let [x, y, z] = lane.group.map(|g| g & 0xffff);
        if number == 0 {
            return x | y << 16;
        }
        // n = log2 of the work-group size rounded up, at least 6.
        let n = lane.workgroup_items.max(1).next_power_of_two().trailing_zeros().clamp(6, 16);
        let number_in_memory = lane.wg_in_memory & ((1 << (16 - n)) - 1);
        let data = lane.local_index << (16 - n) | number_in_memory;
        z | data << 16
    }

    fn thread_id(&self, batch: u32) -> u32 {
        self.thread_id_of(batch)
    }
}

/// What the threads that have run did.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) stalls: u64,
    pub(super) switches: u64,
    pub(super) threads: Vec<ThreadCounts>,
}

impl Totals {
    pub(super) fn add(&mut self, threads: &[Thread]) {
        for t in threads {
            self.stalls += t.stalls;
            self.switches += t.switches;
        }
        let room = Outcome::MAX_THREADS.saturating_sub(self.threads.len());
        self.threads.extend(threads.iter().take(room).map(|t| ThreadCounts {
            supergroup: t.supergroup,
            batch: t.batch,
            tidx: t.tidx,
            instructions: t.clock,
            stalls: t.stalls,
            switches: t.switches,
        }));
    }
}

impl Code {
    /// Runs a dispatch. Memory is changed as far as the run came.
    pub fn run(&self, dispatch: &Dispatch, memory: &mut Memory, options: &Options) -> Outcome {
        let mut machine = Machine::new(self, memory, options, dispatch.scratch);
        machine.images = &dispatch.images;
        machine.samplers = &dispatch.samplers;
        let mut totals = Totals::default();
        let result = self.run_supergroups(dispatch, &mut machine, &mut totals);
        machine.outcome(result, totals)
    }

    /// The word to start at, if the program can be started at all.
    pub(super) fn entry_word(&self) -> Result<usize, Fault> {
        if self.threads != 2 && self.threads != 4 {
            return Err(Fault::dispatch(format!("{} threads per QPU: only 2 and 4 exist", self.threads)));
        }
        let entry = self.entry.filter(|&e| e < self.steps.len());
        entry.ok_or_else(|| Fault::dispatch("no program at the entry address".to_owned()))
    }

    fn run_supergroups(
        &self,
        dispatch: &Dispatch,
        m: &mut Machine,
        totals: &mut Totals,
    ) -> Result<(), Fault> {
        let start = Start { version: self.version, threads: self.threads };
        let items = self.workgroup_size.iter().fold(1u64, |n, &s| n.saturating_mul(u64::from(s)));
        let refuse = Fault::dispatch;
        let entry = self.entry_word()?;
        if items == 0 || items > 1 << 16 {
            return Err(refuse(format!("work-group of {items} items")));
        }
        let batches = Batches {
            groups: dispatch.groups,
            workgroup_items: items as u32,
            wgs_per_supergroup: dispatch.wgs_per_supergroup.max(1),
        };
        // A dispatch that states its batches may have fewer than its supergroup could hold; and what is asked of more than
        // the chip has at a time is done as if it had them.
        let (together, most) = match dispatch.batches {
            Some((_, 0)) => return Err(refuse("no batches per supergroup".to_owned())),
            Some((all, per)) => (all.min(per), MAX_STATED),
            None => (batches.batches_in(0), start.resident()),
        };
        if together > most {
            return Err(refuse(format!("{together} batches per supergroup, but only {most} threads")));
        }
        let supergroups = match dispatch.batches {
            Some((all, per)) => u64::from(all.div_ceil(per)),
            None => batches.supergroups(),
        };
        let mut threads: Vec<Thread> = Vec::new();
        for supergroup in 0..supergroups {
            let count = match dispatch.batches {
                Some((all, per)) => {
                    u64::from(all).saturating_sub(supergroup * u64::from(per)).min(per.into()) as u32
                }
                None => batches.batches_in(supergroup),
            };
            threads.clear();
            for batch in 0..count {
                let mut thread = Thread::new(self);
                thread.pc = entry;
                thread.tidx = start.thread_id(batch);
                thread.supergroup = supergroup;
                thread.batch = batch;
                let mut covered: Mask = 0;
                let mut payload = [[0; LANES]; 2];
                for lane in 0..LANES {
                    let (context, exists) = batches.lane(supergroup, batch, lane as u32);
                    // A dispatch that states its batches has work-groups without end (z goes on).
                    let exists = match dispatch.batches {
                        Some(_) => context.wg_in_memory < batches.wgs_per_supergroup,
                        None => exists,
                    };
                    covered |= Mask::from(exists) << lane;
                    for (number, words) in payload.iter_mut().enumerate() {
                        words[lane] = start.payload(number as u32, &context);
                    }
                }
                thread.set_covered(covered);
                for (row, words) in start.rows().into_iter().zip(payload) {
                    thread.set(row, words);
                }
                threads.push(thread);
            }
            let result = self.run_threads(&mut threads, m);
            totals.add(&threads);
            result?;
        }
        Ok(())
    }

    /// Runs the threads of one supergroup to their ends.
    pub(super) fn run_threads(&self, threads: &mut [Thread], m: &mut Machine) -> Result<(), Fault> {
        let count = threads.len();
        let mut waiting = vec![false; count];
        let mut chooser = Chooser::new(m.options.order, count);
        let mut live = count;
        let mut blocked = 0;
        while live != 0 {
            if blocked == live {
                // A thread that has ended never arrives, and the hardware counts all of them.
                if live != count {
                    let thread = &threads[waiting.iter().position(|&w| w).unwrap_or(0)];
                    let message =
                        format!("{blocked} of {count} threads wait at a barrier, the others have ended");
                    return Err(fault(thread, Trouble::new("deadlock", message)));
                }
                waiting.fill(false);
                blocked = 0;
            }
            let runnable = |i: usize| !threads[i].done && !waiting[i];
            let Some(current) = chooser.choose(runnable) else { break };
            let thread = &mut threads[current];
            loop {
                match thread.step(self, m) {
                    Ok(Event::None) => {}
                    Ok(Event::Switch) => break,
                    Ok(Event::Barrier) => {
                        waiting[current] = true;
                        blocked += 1;
                        break;
                    }
                    Ok(Event::End) => {
                        live -= 1;
                        break;
                    }
                    Err(trouble) => return Err(fault(thread, trouble)),
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn fault(thread: &Thread, trouble: Trouble) -> Fault {
    Fault {
        rule: trouble.rule,
        pc: thread.pc,
        lane: trouble.lane,
        supergroup: thread.supergroup,
        batch: thread.batch,
        message: trouble.message,
    }
}
