//! Built-ins from the start state of the machine, and the start state from them.
//!
//! Reference section 13.5: payload word 0 holds the work-group id x (low half) and y (high half), word 1 z (low
//! half) and the lane data (high half). With n = log2 of the work-group size rounded up to a power of two, at
//! least 64, the upper n bits of the lane data are the local invocation index and the 16 - n bits below them the
//! number of the work-group in memory. Batches are 16 items with consecutive local indices.
//!
//! [`payload_word`] is the inverse: what the machine (or whoever plays it) puts into the registers.

use super::emit::{Emit, Known, MachineOps, Once, low_mask};
use super::{Lower, MAX_WORKGROUP_ITEMS, Result};
use kempe_ir::exec::{LaneContext, StartState};
use kempe_ir::{Builtin, Imm, InstData, UniformWord, Value};

/// Lanes of a batch, which is also the subgroup.
const LANES: u32 = 16;

/// Bits behind the point of the reciprocals in [`small_quotient`].
const QUOTIENT_BITS: u32 = 20;

/// Number of bits of the local index in the lane data.
fn index_bits(items: u32) -> u32 {
    items.next_power_of_two().max(64).trailing_zeros()
}

/// Payload word `n` of one lane: `group` is the work-group id, `local_index` the index of the invocation in it,
/// `wg_in_memory` the number of the work-group among those that share the memory of a supergroup.
pub fn payload_word(
    n: u32,
    workgroup_size: [u32; 3],
    group: [u32; 3],
    local_index: u32,
    wg_in_memory: u32,
) -> u32 {
    let items = workgroup_size.iter().fold(1u32, |p, &s| p.saturating_mul(s)).clamp(1, MAX_WORKGROUP_ITEMS);
    match n {
        0 => (group[0] & 0xffff) | group[1] << 16,
        1 => {
            let bits = index_bits(items);
            let index = local_index & low_mask(bits);
            let number = wg_in_memory & low_mask(16 - bits);
            (group[2] & 0xffff) | number << 16 | index << (32 - bits)
        }
        _ => 0,
    }
}

/// The start state of the machine for those who run lowered modules or machine code.
///
/// Thread numbers (reference section 2): core << 6 | QPU << 2 | thread. Batches are dealt to `threads` hardware
/// threads in turn; a program with two threads per QPU has the threads 0 and 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartWords {
    pub workgroup_size: [u32; 3],
    /// Hardware threads of a QPU: 2 or 4.
    pub threads_per_qpu: u32,
    /// QPUs of the chip.
    pub qpus: u32,
}

impl StartState for StartWords {
    fn payload(&self, number: u32, lane: &LaneContext) -> u32 {
        payload_word(number, self.workgroup_size, lane.group, lane.local_index, lane.wg_in_memory)
    }

    fn thread_id(&self, batch: u32) -> u32 {
        let per_qpu = self.threads_per_qpu.clamp(1, 4);
        let slot = batch % (self.qpus.max(1) * per_qpu);
        let (qpu, thread) = (slot / per_qpu, slot % per_qpu);
        (qpu << 2) | (thread * (4 / per_qpu))
    }
}

/// The second payload word, which holds the lane data.
fn lane_word(e: &mut Emit) -> Value {
    e.once(Once::LaneData, |e| e.payload(1))
}

fn first_word(e: &mut Emit) -> Value {
    // The key stands for the word as a whole; x and y are taken from it.
    e.once(Once::GroupWord, |e| e.payload(0))
}

/// Number of the work-group in memory.
pub(super) fn workgroup_in_memory(e: &mut Emit, items: u32) -> Value {
    let word = lane_word(e);
    let high = e.lshr_c(word, 16);
    e.and_c(high, low_mask(16 - index_bits(items)))
}

fn local_index(e: &mut Emit, items: u32) -> Value {
    e.once(Once::Builtin(Builtin::LocalInvocationIndex), |e| {
        if items == 1 {
            return e.i(0);
        }
        let word = lane_word(e);
        let v = e.lshr_c(word, 32 - index_bits(items));
        // It is below the size, which may need fewer bits than the field has.
        e.set_known(v, Known::below(u32::BITS - (items - 1).leading_zeros()));
        v
    })
}

/// Quotient by a constant of a value below 1024.
fn small_quotient(e: &mut Emit, v: Value, by: u32) -> Value {
    if by.is_power_of_two() {
        return e.lshr_c(v, by.trailing_zeros());
    }
    // v * ceil(2^20 / d) >> 20 is exact for v and d up to 2^10: the factor is too large by less than 1, so the quotient
    // by less than v / 2^20 <= 1 / d, and v / d is at least that far below the next integer.
    let product = e.mul_c(v, (1u32 << QUOTIENT_BITS).div_ceil(by));
    e.lshr_c(product, QUOTIENT_BITS)
}

/// Component of the local id: the index runs x fastest, then y, then z.
fn local_id(e: &mut Emit, size: [u32; 3], axis: usize) -> Value {
    let items = size.iter().product();
    e.once(Once::Builtin(Builtin::LocalInvocationId(axis as u8)), |e| {
        if size[axis] == 1 {
            return e.i(0);
        }
        let index = local_index(e, items);
        // Items of the axes below this one, and whether an axis above varies.
        let below: u32 = size[..axis].iter().product();
        let above: u32 = size[axis + 1..].iter().product();
        let quotient = if below == 1 { index } else { small_quotient(e, index, below) };
        if above == 1 {
            return quotient;
        }
        if size[axis].is_power_of_two() {
            return e.and_c(quotient, size[axis] - 1);
        }
        // quotient mod size: the next quotient is shared with the axis above.
        let next = small_quotient(e, index, below * size[axis]);
        let whole = e.mul_c(next, size[axis]);
        let v = e.sub(quotient, whole);
        e.set_known(v, Known::below(u32::BITS - (size[axis] - 1).leading_zeros()));
        v
    })
}

impl Lower<'_> {
    pub fn builtin(&mut self, inst: &InstData) -> Result<()> {
        let Imm::Builtin(b) = inst.imm else { return self.error("`builtin` without its immediate") };
        let r = self.result(inst)?;
        if self.m.stage != kempe_ir::Stage::Compute {
            let v = self.stage_builtin(b)?;
            self.set_one(r, v);
            return Ok(());
        }
        let (items, size) = (self.items, self.m.workgroup_size);
        let e = &mut self.e;
        let v = match b {
            Builtin::LocalInvocationId(axis @ 0..=2) => local_id(e, size, axis as usize),
            Builtin::LocalInvocationIndex => local_index(e, items),
            Builtin::WorkgroupId(axis @ 0..=2) => e.once(Once::Builtin(b), |e| match axis {
                0 => {
                    let word = first_word(e);
                    e.and_c(word, 0xffff)
                }
                1 => {
                    let word = first_word(e);
                    e.lshr_c(word, 16)
                }
                _ => {
                    let word = lane_word(e);
                    e.and_c(word, 0xffff)
                }
            }),
            Builtin::NumWorkgroups(axis @ 0..=2) => e.uniform(UniformWord::NumWorkgroups(axis)),
            Builtin::SubgroupSize => e.i(LANES),
            Builtin::SubgroupLocalId | Builtin::LaneId => e.builtin(Builtin::LaneId),
            Builtin::SubgroupId => {
                let index = local_index(e, items);
                e.lshr_c(index, LANES.trailing_zeros())
            }
            Builtin::NumSubgroups => e.i(items.div_ceil(LANES)),
            Builtin::ThreadId => e.builtin(Builtin::ThreadId),
            _ => return self.error("a built-in that compute shaders do not have"),
        };
        self.set_one(r, v);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_fields_do_not_overlap() {
        // 100 items: 7 bits of index, 9 bits of number.
        assert_eq!(payload_word(0, [100, 1, 1], [0x1234, 0xffff, 7], 99, 5), 0xffff_1234);
        assert_eq!(payload_word(1, [100, 1, 1], [0x1234, 0xffff, 7], 99, 5), 99 << 25 | 5 << 16 | 7);
        // At least 6 bits of index, at most 8.
        assert_eq!(payload_word(1, [1, 1, 1], [0, 0, 0], 0, 1023), 1023 << 16);
        assert_eq!(payload_word(1, [16, 16, 1], [0, 0, 0], 255, 255), 0xffff_0000);
        assert_eq!(payload_word(2, [16, 16, 1], [1, 1, 1], 255, 255), 0);
    }

    #[test]
    fn small_quotients_are_exact() {
        for by in (1..=1024u32).filter(|by| !by.is_power_of_two()) {
            let factor = (1u32 << QUOTIENT_BITS).div_ceil(by);
            assert!(factor < 1 << 24);
            for v in 0..1024u32 {
                assert_eq!((v * factor) >> QUOTIENT_BITS, v / by, "{v} / {by}");
            }
        }
    }

    #[test]
    fn threads_are_numbered_as_the_chip_does() {
        let start = |threads_per_qpu| StartWords { workgroup_size: [64, 1, 1], threads_per_qpu, qpus: 2 };
        let ids = |t| (0..9).map(|b| start(t).thread_id(b)).collect::<Vec<_>>();
        assert_eq!(ids(4), [0, 1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(ids(2), [0, 2, 4, 6, 0, 2, 4, 6, 0]);
    }
}
