//! Statistics, counted from the final bytes, and the limits of registers by the number of threads.
//!
//! Definitions: reference sections 1.2 and 13. What the bytes do not say is told by [`Facts`].

use crate::decode::{DecodeError, decode_all};
use crate::instr::Number;
use crate::ops::Op;
use crate::regs;
use crate::tables::Unit;
use std::collections::BTreeSet;

/// Threads that fit on a core for so many half registers, by the largest number of them (section 1.2).
pub const OCCUPANCY: [(u32, u32); 10] = [
    (104, 1024),
    (112, 896),
    (128, 832),
    (136, 768),
    (144, 704),
    (160, 640),
    (184, 576),
    (208, 512),
    (232, 448),
    (256, 384),
];

/// Threads that fit on a core with so many half registers; 0 where there are not so many.
pub fn threads_for(halves: u32) -> u32 {
    OCCUPANCY.iter().find(|column| halves <= column.0).map_or(0, |column| column.1)
}

/// Most half registers that a threadgroup of so many threads may use; 0 if it does not fit on a core.
pub fn halves_for(threads: u32) -> u32 {
    OCCUPANCY.iter().rev().find(|column| threads <= column.1).map_or(0, |column| column.0)
}

/// Programs and functions start at a multiple of so many bytes.
pub const CODE_ALIGN: u32 = 256;

/// `regs` of a vertex stage is at least this: the hardware writes vertex and instance id.
pub const VERTEX_REGS: u32 = 12;

/// What the bytes do not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Bytes of the preamble, which precedes the program in the binary.
    pub preamble: &'a [u8],
    /// Halves of uniforms that are allocated: for the driver, by the preamble, for constants.
    pub uniforms: u32,
    /// Bytes of scratch that a thread is given, before the frame is rounded.
    pub scratch: u32,
    pub vertex: bool,
    /// Byte addresses, ascending, of stack accesses that the program itself asks for.
    pub api_scratch: &'a [usize],
}

/// The line of a shader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// All but the traps behind the end.
    pub instructions: u32,
    /// max(fscib, ic): both pipes run side by side.
    pub alu: u32,
    /// Throughput of float and simple integer operations.
    pub fscib: u32,
    /// Twice the throughput of all operations that take longer.
    pub ic: u32,
    /// The preamble padded, the program, the traps.
    pub bytes: u32,
    /// Highest half register that is used: one less than their number.
    pub regs: u32,
    /// Halves.
    pub uniforms: u32,
    pub scratch: u32,
    /// That fit on a core with `regs` halves. The reference driver looks this up with the highest number instead of the count, so
    /// at the bound of a column it promises too much.
    pub threads: u32,
    /// Jumps backwards to different places.
    pub loops: u32,
    /// Stack stores and loads, those that the program itself asks for included.
    pub spills: u32,
    pub fills: u32,
    /// Those that it asks for itself.
    pub api_stores: u32,
    pub api_loads: u32,
    pub preamble_instructions: u32,
}

/// Which operations cost something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// As the reference driver counts.
    Reference,
    /// Operations that it forgets (`bfeil`, `popcount`, `convert`, `ceil` and their kin) cost what `floor` does.
    Full,
}

/// Cost of an operation: the unit and how often it could have been used in the meantime.
pub fn cost(op: Op, model: Model) -> (Unit, u32) {
    let forgotten = matches!(
        op,
        Op::Bfeil
            | Op::Popcount
            | Op::Bitrev
            | Op::Ffs
            | Op::Intl
            | Op::Convert
            | Op::Ceil
            | Op::Trunc
            | Op::Rint
    );
    let op = if forgotten && model == Model::Full { Op::Floor } else { op };
    let cost = op.info().cost;
    (cost.unit, cost.throughput.into())
}

/// Counts a program. The error says which byte is the first of no instruction.
pub fn count(code: &[u8], facts: &Facts) -> Result<Statistics, (usize, DecodeError)> {
    let instrs = decode_all(code)?;
    // Traps are only padding behind the end.
    let body = instrs.iter().rposition(|(_, d)| d.instr.op != Op::Trap).map_or(0, |last| last + 1);
    let mut s = Statistics {
        instructions: body as u32,
        bytes: (facts.preamble.len() as u32).next_multiple_of(CODE_ALIGN) + code.len() as u32,
        uniforms: facts.uniforms,
        scratch: facts.scratch,
        regs: if facts.vertex { VERTEX_REGS } else { 0 },
        preamble_instructions: preamble_instructions(facts.preamble)?,
        ..Statistics::default()
    };
    let mut headers = BTreeSet::new();
    for (at, decoded) in &instrs[..body] {
        let instr = &decoded.instr;
        match cost(instr.op, Model::Reference) {
            (Unit::F | Unit::Scib, throughput) => s.fscib += throughput,
            (Unit::Ic, throughput) => s.ic += 2 * throughput,
            (Unit::Free, _) => {}
        }
        s.regs = s.regs.max(u32::from(regs::end(instr).saturating_sub(1)));
        let distance = instr.get(Number::Target) as i32;
        if instr.op == Op::JmpExecAny && distance < 0 {
            headers.insert(*at as i64 + i64::from(distance));
        }
        let api = u32::from(facts.api_scratch.binary_search(at).is_ok());
        match instr.op {
            Op::StackStore => {
                s.spills += 1;
                s.api_stores += api;
            }
            Op::StackLoad => {
                s.fills += 1;
                s.api_loads += api;
            }
            _ => {}
        }
    }
    s.alu = s.fscib.max(s.ic);
    s.threads = threads_for(s.regs);
    s.loops = headers.len() as u32;
    Ok(s)
}

fn preamble_instructions(code: &[u8]) -> Result<u32, (usize, DecodeError)> {
    let instrs = decode_all(code)?;
    Ok(instrs.iter().filter(|(_, d)| d.instr.op != Op::Trap).count() as u32)
}

/// Cycles of a run in the model: every instruction as often as `times` says by its byte address. The pipes run side by
/// side, so the busier one counts.
pub fn cycles(code: &[u8], model: Model, times: impl Fn(usize) -> f64) -> Result<f64, (usize, DecodeError)> {
    let (mut fscib, mut ic) = (0.0, 0.0);
    for (at, decoded) in decode_all(code)? {
        match cost(decoded.instr.op, model) {
            (Unit::F | Unit::Scib, throughput) => fscib += times(at) * f64::from(throughput),
            (Unit::Ic, throughput) => ic += 2.0 * times(at) * f64::from(throughput),
            (Unit::Free, _) => {}
        }
    }
    Ok(f64::max(fscib, ic))
}

/// Highest uniform half that a program reads, plus one.
pub fn uniforms_read(code: &[u8]) -> Result<u16, (usize, DecodeError)> {
    let ends = decode_all(code)?;
    let ends = ends.iter().flat_map(|(_, d)| d.instr.operands().map(|(_, _, o)| o.uniform_halves().end));
    Ok(ends.max().unwrap_or(0))
}

/// Does an instruction use the stack?
pub fn uses_stack(op: Op) -> bool {
    matches!(op, Op::StackLoad | Op::StackStore | Op::StackAdjust | Op::StackAdjustReg | Op::StackGetPtr)
}

/// Dwords of a frame for so many bytes (section 5.6).
pub fn frame_dwords(bytes: u32) -> u32 {
    (bytes.div_ceil(4) + FRAME_OVERHEAD).next_multiple_of(4)
}

/// Dwords of a frame that are not the program's own.
pub const FRAME_OVERHEAD: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::assemble;

    fn counted(text: &str, facts: &Facts) -> Statistics {
        let traps = "trap\n".repeat(8);
        count(&assemble(&format!("{text}\nstop\n{traps}")).unwrap(), facts).unwrap()
    }

    #[test]
    fn occupancy() {
        assert_eq!([104, 105, 256, 257].map(threads_for), [1024, 896, 384, 0]);
        assert_eq!([1024, 897, 896, 384, 1, 1025].map(halves_for), [104, 104, 112, 256, 256, 0]);
    }

    #[test]
    fn a_line() {
        let text = "mov_imm r1l, 5\n iadd r5, r4, 3\n fmadd32 r5, r5, r5, r5\n floor r5, r5\n rcp r5, r5\n
            bfeil r5, r5, r5, 1\n device_load 0, i32, xyzw, r10_r11_r12_r13, u0_u1, 0, signed\n wait 0";
        let s = counted(text, &Facts { uniforms: 7, ..Facts::default() });
        // scib 1 + 1, f 1; ic 2 * (2 + 3); bfeil, the load and the wait cost nothing.
        assert_eq!((s.instructions, s.fscib, s.ic, s.alu), (9, 3, 10, 10));
        assert_eq!((s.regs, s.threads, s.uniforms, s.loops), (27, 1024, 7, 0));
        assert_eq!(s.bytes, 4 + 8 + 8 + 4 + 4 + 8 + 8 + 2 + 2 + 16);
        let full = |model| cycles(&assemble(text).unwrap(), model, |_| 1.0).unwrap();
        assert_eq!((full(Model::Reference), full(Model::Full)), (10.0, 14.0));
    }

    #[test]
    fn loops_and_the_stack() {
        let text = "stack_adjust 0, 1, 2, 0, 0, 12\n a:\n stack_store i32, 1, 0, x, 4, r5, 0, 0\n
            stack_load r5, i32, 1, 0, x, 4, 0, 0\n stack_load r5, i32, 1, 0, x, 4, 4, 0\n wait 0\n jmp_exec_any a\n
            jmp_exec_any a\n jmp_exec_any b\n b:";
        let s = counted(text, &Facts { api_scratch: &[24], scratch: 8, ..Facts::default() });
        assert_eq!((s.loops, s.spills, s.fills, s.api_stores, s.api_loads, s.scratch), (1, 1, 2, 0, 1, 8));
        assert_eq!([0, 4, 8, 9].map(frame_dwords), [12, 12, 12, 16]);
    }

    #[test]
    fn preamble_and_vertex() {
        let preamble = assemble("mov_imm r1l, 5\nstop\ntrap").unwrap();
        let s = counted("", &Facts { preamble: &preamble, vertex: true, ..Facts::default() });
        assert_eq!((s.bytes, s.preamble_instructions, s.regs, s.instructions), (256 + 18, 2, 12, 1));
        // At the bound of a column the highest number still lies below it.
        assert_eq!(counted("mov_imm r52l, 0", &Facts::default()).threads, 1024);
        assert_eq!(counted("mov_imm r52h, 0", &Facts::default()).threads, 896);
        assert!(count(&[0xff; 4], &Facts::default()).is_err());
        assert_eq!(uniforms_read(&assemble("mov r1, u9").unwrap()), Ok(20));
    }

    /// Registers behind those that are named.
    #[test]
    fn what_is_written_beside_the_mask() {
        let texture =
            "texture_sample 0, 0b1100, 0b0, none, x, 0b00, r20, None, ts0, ss0, tex_2d, r10_r11, auto_lod, 0";
        assert_eq!(counted(texture, &Facts::default()).regs, 47);
        assert_eq!(counted("device_load 0, rgb10a2, x, r20, u0_u1, 0, signed", &Facts::default()).regs, 47);
        let load = crate::asm::parse("device_load 0, i32, x, r20, u0_u1, r3, signed").unwrap();
        assert!(regs::reads(&load).eq(std::iter::once(6..8)));
        assert!(regs::writes(&load).eq(std::iter::once(40..42)));
    }
}
