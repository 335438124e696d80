//! Statistics, recounted from the encoded words.
//!
//! Definitions: reference `cost-and-spill`, section 8. Instructions, nops, uniforms and SFU stalls are read off the
//! words; spills, fills, recomputations and scratch accesses are words that start a memory access (or load a
//! uniform) and that the provenance map gives to the allocator or to a private array; max-temps is recomputed from
//! live intervals over machine instructions.

use crate::decode::decode;
use crate::finish::{Finished, Origin};
use crate::instr::{Instr, Op, Signals, Source, Version};
use crate::mops::MInst;
use kempe_mir::{Mir, Stats};
use kempe_ra::{Inst, OperandKind};

/// Cycles of one instruction, and what waiting for memory costs beside it, for the estimate.
const TMU_WAIT: f64 = 20.0;
const SFU_STALL: f64 = 1.0;

/// Recounts the statistics of finished code. `None` if a word does not decode.
pub fn recount(
    version: Version,
    threads: u32,
    code: &Finished,
    mir: &Mir<MInst>,
    attempt_memory_edits: bool,
) -> Option<Stats> {
    let mut s = Stats {
        threads,
        instructions: code.words.len() as u32,
        code_bytes: 8 * code.words.len() as u32,
        ..Stats::default()
    };
    let mut sfu_row: Option<u8> = None;
    let mut cycles = 0.0;
    let mut block = 0;
    for (n, &word) in code.words.iter().enumerate() {
        while code.block_starts.get(block + 1).is_some_and(|&b| b <= n) {
            block += 1;
        }
        let frequency = mir.program.blocks.get(block).map_or(1.0, |b| b.frequency as f64);
        let instr = decode(version, word).ok()?;
        cycles += frequency;
        s.uniforms += instr.consumes_uniform() as u32;
        let Instr::Alu(alu) = instr else {
            sfu_row = None;
            continue;
        };
        if alu.add.is_nop() && alu.mul.is_nop() && alu.signals == Signals::NONE {
            s.nops += 1;
        }
        let stalls = sfu_row.is_some_and(|r| alu.sources().any(|(x, _)| x == Source::Row(r)));
        if stalls {
            s.sfu_stalls += 1;
            cycles += SFU_STALL * frequency;
        }
        sfu_row = alu.parts().iter().find(|p| p.op.is_sfu()).and_then(|p| p.dest.row());
        let from = code.provenance.get(n)?;
        if alu.starts_tmu() {
            match from.starts {
                Some(Origin::Spill) => s.spills += 1,
                Some(Origin::Fill) => s.fills += 1,
                Some(Origin::Scratch) => s.scratch += 1,
                _ => {}
            }
        }
        s.recomputed += from.recomputes as u32;
        if alu.signals.has(Signals::LDTMU) || alu.add.op == Op::Tmuwt {
            cycles += TMU_WAIT * 2.0 / threads as f64 * frequency;
        }
    }
    debug_assert!(attempt_memory_edits || (s.spills == 0 && s.fills == 0));
    s.inst_and_stalls = s.instructions + s.sfu_stalls;
    s.cycles = cycles as u64;
    s.loops = loops(mir);
    s.max_temps = max_temps(mir, s.instructions);
    Some(s)
}

/// Loop headers: blocks with an edge from themselves or a later block.
fn loops(mir: &Mir<MInst>) -> u32 {
    let blocks = &mir.program.blocks;
    (0..blocks.len()).filter(|&b| blocks[b].preds.iter().any(|p| p.0 as usize >= b)).count() as u32
}

/// Most registers live at once, an interval reaching from its first position to just before its last one; only the
/// first `instructions` positions count (a property of the definition).
fn max_temps(mir: &Mir<MInst>, instructions: u32) -> u32 {
    let p = &mir.program;
    let n = p.vregs.len();
    let mut first = vec![u32::MAX; n];
    let mut last = vec![0u32; n];
    let touch = |v: usize, at: u32, first: &mut Vec<u32>, last: &mut Vec<u32>| {
        first[v] = first[v].min(at);
        last[v] = last[v].max(at);
    };
    for block in &p.blocks {
        for v in &block.params {
            touch(v.0 as usize, block.insts.start, &mut first, &mut last);
        }
        for i in block.insts.clone() {
            for o in mir.operands(Inst(i)) {
                let undefined = o.kind == OperandKind::Use && p.vregs[o.vreg.0 as usize].undefined;
                if !undefined {
                    touch(o.vreg.0 as usize, i, &mut first, &mut last);
                }
            }
        }
        for e in &block.succs {
            for v in &e.args {
                if !p.vregs[v.0 as usize].undefined {
                    touch(v.0 as usize, block.insts.end.saturating_sub(1), &mut first, &mut last);
                }
            }
        }
    }
    // What is live into a loop header and used inside lives to the end of the loop.
    for (b, block) in p.blocks.iter().enumerate() {
        let Some(latch) = block.preds.iter().map(|q| q.0 as usize).filter(|&q| q >= b).max() else {
            continue;
        };
        let (start, end) = (block.insts.start, p.blocks[latch].insts.end.saturating_sub(1));
        for v in 0..n {
            if first[v] < start && last[v] >= start && last[v] < end {
                last[v] = end;
            }
        }
    }
    let mut change = vec![0i32; p.insts.len() + 1];
    for v in 0..n {
        if first[v] < last[v] {
            change[first[v] as usize] += 1;
            change[last[v] as usize] -= 1;
        }
    }
    let mut live = 0;
    let mut max = 0;
    for c in change.iter().take(instructions as usize) {
        live += c;
        max = max.max(live);
    }
    max as u32
}
