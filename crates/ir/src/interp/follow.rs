//! Runs with bounds: carries what is known ([`Shadow`]) along with the values of the lanes and through memory.

use super::access::Place;
use super::decode::Access;
use super::error::{self, Known, Pieces, Shadow};
use super::lanes::lanes;
use super::run::{Batch, Runner};
use super::{Stop, UndefinedUse};
use crate::analysis::{User, Uses};
use crate::entity::Table;
use crate::exec::LANES;
use crate::io::Slot;
use crate::module::*;
use crate::ops::Op;
use std::collections::BTreeMap;

/// State of a run with bounds.
pub(super) struct Bounds {
    /// Products that another implementation may fuse into a sum.
    pub contracted: Table<Inst, bool>,
    /// By region.
    pub pieces: Vec<Pieces>,
    pub shared: Option<usize>,
    /// Of the outputs of a graphics stage, as they are given.
    pub outputs: BTreeMap<(Slot, u8, u8), Vec<Shadow>>,
}

impl Runner<'_> {
    /// In a run with bounds: what is known of the result of an instruction that is not a memory access.
    pub fn follow(&self, b: &mut Batch, i: Inst, dst: u32) {
        let module = self.program.module;
        let inst = &module.func.insts[i];
        let mask = b.active;
        let slots: Vec<u32> = inst.args.iter().map(|&a| self.program.slot[a]).collect();
        let operands = |b: &Batch, lane: usize| -> Vec<Known> {
            let known = |(&slot, &a): (&u32, &Value)| Known {
                bits: b.regs.row(slot)[lane],
                ty: module.func.ty(a),
                shadow: b.known[slot as usize][lane],
            };
            slots.iter().zip(&inst.args).map(known).collect()
        };
        let all_exact = |b: &Batch, n: usize| lanes(mask).all(|l| b.known[slots[n] as usize][l].is_exact());
        let contracted = self.bounds.as_ref().is_some_and(|x| x.contracted[i]);
        for lane in lanes(mask) {
            let shadow = match inst.op {
                // The old value depends on the order of invocations.
                Op::Atomic => Shadow::Undecided,
                Op::Elect => Shadow::Exact,
                Op::VoteAny | Op::VoteAll | Op::VoteEq | Op::Ballot => match all_exact(b, 0) {
                    true => Shadow::Exact,
                    false => Shadow::Undecided,
                },
                Op::BroadcastFirst => b.known[slots[0] as usize][mask.trailing_zeros() as usize],
                Op::Shuffle => {
                    let from = b.regs.row(slots[1])[lane] as usize;
                    match b.known[slots[1] as usize][lane].is_exact() && from < LANES {
                        true => b.known[slots[0] as usize][from],
                        false => Shadow::Undecided,
                    }
                }
                // That of either row (or column) of the quad.
                Op::Ddx | Op::Ddy => {
                    let across = if inst.op == Op::Ddx { 1 } else { 2 };
                    let pair = |l: usize| [operands(b, l & !across)[0], operands(b, l | across)[0]];
                    let quad: u16 = 0b1111 << (lane & !3);
                    let missing = mask & quad != quad || b.regs.poison(slots[0]) & quad != 0;
                    match missing {
                        true => Shadow::Undecided,
                        false => error::derivative(inst.ty, pair(lane), pair(lane ^ across ^ 3)),
                    }
                }
                Op::Reduce => {
                    let list: Vec<Known> = lanes(mask).map(|l| operands(b, l)[0]).collect();
                    match inst.imm {
                        Imm::Reduce(imm) => error::reduce(&imm, inst.ty, &list),
                        _ => Shadow::Undecided,
                    }
                }
                _ => error::pure(inst, contracted, &operands(b, lane), b.regs.row(dst)[lane]),
            };
            let undefined = b.regs.poison(dst) >> lane & 1 != 0;
            b.known[dst as usize][lane] = if undefined { Shadow::Undecided } else { shadow };
        }
    }

    /// In a run with bounds: the address of an access must be decided.
    pub fn decided_address(&self, b: &Batch, a: &Access, inst: Inst) -> Result<(), Stop> {
        if self.bounds.is_some() && lanes(b.active).any(|i| !b.known[a.addr as usize][i].is_exact()) {
            return Err(Stop::Undecided(UndefinedUse::Address(inst)));
        }
        Ok(())
    }

    pub fn known_at(&self, b: &Batch, place: Place, bytes: u32) -> Shadow {
        match (place, &self.bounds) {
            (Place::Flat(r, o), Some(x)) => x.pieces[r].read(o, bytes),
            (Place::Private(o), _) => b.private_pieces.read(o, bytes),
            _ => Shadow::Exact,
        }
    }

    pub fn set_known(&mut self, b: &mut Batch, place: Place, bytes: u32, shadow: Shadow) {
        match (place, &mut self.bounds) {
            (Place::Flat(r, o), Some(x)) => x.pieces[r].write(o, bytes, shadow),
            (Place::Private(o), Some(_)) => b.private_pieces.write(o, bytes, shadow),
            _ => {}
        }
    }
}

/// Products without the `nocontract` fact that a sum uses, directly or negated.
pub(super) fn contracted(module: &Module) -> Table<Inst, bool> {
    let f = &module.func;
    let uses = Uses::new(f);
    let mut table = Table::new(f.insts.len(), false);
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let inst = &f.insts[i];
            if inst.op == Op::Fmul && !inst.flags.has(Flags::NO_CONTRACTION) {
                table[i] = inst.results.iter().flat_map(|&r| uses.of(r)).any(|u| match u {
                    User::Inst(user, _) => {
                        matches!(f.insts[*user].op, Op::Fadd | Op::Fsub | Op::Fneg)
                    }
                    // Carried to a sum elsewhere.
                    User::Arg(..) => true,
                    User::Cond(_) => false,
                });
            }
        }
    }
    table
}
