//! The fewest registers with which a program can do without memory edits.
//!
//! Nothing can be put out then except what has a recipe, and that is in a register where it is read only. Copies are
//! possible at every point, so that nothing but what stands at one point together counts.

use kempe_ra::*;

use super::demand::{Item, Residents, asks, phases};
use super::linear::Term;
use super::view::{NOTHING, View};

/// A lower bound for [`Options::max_registers`] without memory edits; `None` if not even `most` are enough.
pub fn fewest(file: &RegisterFile, program: &Program, most: u32) -> Option<u32> {
    (1..=most).find(|&limit| fits(&View::new(file, program, Some(limit), false)))
}

/// Does everything fit at every point?
pub fn fits(view: &View) -> bool {
    let remade = |value: u32| view.values[value as usize].recipe.is_some();
    let term = |value: u32, reads: bool| if remade(value) && !reads { Term::Zero } else { Term::One };
    for &block in &view.order {
        for inst in view.program.blocks[block as usize].insts.clone() {
            let state = |value: u32, reads: bool| (value, (term(value, reads), Term::Zero));
            let entering: Residents =
                view.before(inst).into_iter().map(|value| state(value, view.reads(inst, value))).collect();
            let leaving: Residents =
                view.after[inst as usize].iter().map(|&value| state(value, false)).collect();
            if !phases(view, inst, &entering, &leaving).iter().all(|items| fit(items)) {
                return false;
            }
        }
        if view.is_merge(block) {
            // Parameters are in registers, so what they come from is in one at the end of every predecessor.
            let live = view.live_in[block as usize].iter().map(|&value| (value, term(value, false)));
            let items: Vec<Item> = live
                .map(|(value, term)| {
                    let info = &view.values[value as usize];
                    Item::new(info.mask, info.size, term)
                })
                .collect();
            if !fit(&items) || !ends_fit(view, block) {
                return false;
            }
        }
    }
    true
}

fn ends_fit(view: &View, block: u32) -> bool {
    view.program.blocks[block as usize].preds.iter().all(|pred| {
        let last = view.program.blocks[pred.0 as usize].insts.end - 1;
        let mut here = view.before(last);
        here.retain(|&value| {
            let args = view.params[block as usize].iter();
            let mut args = args.map(|param| view.argument(pred.0, block, param.index));
            view.values[value as usize].recipe.is_none() || args.any(|arg| arg == value && arg != NOTHING)
        });
        let item = |value: u32| {
            let info = &view.values[value as usize];
            Item::new(info.mask, info.size, Term::One)
        };
        fit(&here.into_iter().map(item).collect::<Vec<_>>())
    })
}

fn fit(items: &[Item]) -> bool {
    let weight = |term: Term| if term == Term::One { 1.0 } else { 0.0 };
    asks(items).iter().all(|ask| {
        let asked: f64 = ask.sum.iter().map(|&(factor, term)| factor * weight(term)).sum();
        asked <= f64::from(ask.capacity) + 1e-9
    })
}
