//! One random mistake in a valid allocation.

use kempe_ra::*;

use super::rng::Rng;

/// A copy of `allocation` with one thing changed, and what it was.
pub fn mutate(
    file: &RegisterFile,
    program: &Program,
    allocation: &Allocation,
    rng: &mut Rng,
) -> (Allocation, String) {
    let mut out = allocation.clone();
    let any_unit = |rng: &mut Rng| Unit(rng.below(file.units.len() as u32) as u16);
    // A unit that something stands in is likelier to hurt.
    let used_unit = |rng: &mut Rng| {
        if rng.chance(70) && !allocation.places.is_empty() {
            rng.pick(&allocation.places)
        } else {
            any_unit(rng)
        }
    };
    let edits = out.edits.len() as u32;
    let kind = if edits == 0 { 0 } else { rng.below(8) };
    match kind {
        0 | 1 => {
            let at = rng.below(out.places.len() as u32) as usize;
            let unit = used_unit(rng);
            let what = format!("place {at} from {} to {}", out.places[at].0, unit.0);
            out.places[at] = unit;
            (out, what)
        }
        2 => {
            let at = rng.below(edits) as usize;
            let edit = out.edits.remove(at);
            (out, format!("dropped {edit:?}"))
        }
        3 | 4 => {
            let at = rng.below(edits) as usize;
            let unit = used_unit(rng);
            let slots = allocation.slots.max(1);
            let recipes = program.recipe_cost.len() as u32;
            let before = out.edits[at].1;
            let first = rng.chance(50);
            out.edits[at].1 = match before {
                Edit::Copy { to, .. } if first => Edit::Copy { from: unit, to },
                Edit::Copy { from, .. } => Edit::Copy { from, to: unit },
                Edit::Swap { a, .. } => Edit::Swap { a, b: unit },
                Edit::Spill { slot, .. } if first => Edit::Spill { from: unit, slot },
                Edit::Spill { from, .. } => Edit::Spill { from, slot: Slot(rng.below(slots)) },
                Edit::Fill { slot, .. } if first => Edit::Fill { slot, to: unit },
                Edit::Fill { to, .. } => Edit::Fill { slot: Slot(rng.below(slots)), to },
                Edit::Recompute { recipe, .. } if first => Edit::Recompute { recipe, to: unit },
                Edit::Recompute { to, .. } => Edit::Recompute { recipe: Recipe(rng.below(recipes)), to },
                Edit::Repeat { inst, from, .. } if first => Edit::Repeat { inst, from, to: unit },
                Edit::Repeat { inst, from, to } => Edit::Repeat { inst, from: [unit, from[1]], to },
            };
            (out.clone(), format!("{before:?} became {:?}", out.edits[at].1))
        }
        5 => {
            let at = rng.below(edits) as usize;
            let other = (at + 1) % out.edits.len();
            let (a, b) = (out.edits[at].1, out.edits[other].1);
            out.edits[at].1 = b;
            out.edits[other].1 = a;
            (out, format!("exchanged {a:?} and {b:?}"))
        }
        6 => {
            // An edit elsewhere.
            let at = rng.below(edits) as usize;
            let (point, edit) = out.edits.remove(at);
            let to = Point::Before(Inst(rng.below(program.insts.len() as u32)));
            let place = out.edits.partition_point(|entry| entry.0 <= to);
            out.edits.insert(place, (to, edit));
            (out, format!("{edit:?} moved from {point:?} to {to:?}"))
        }
        _ => {
            let defs: Vec<u32> = (0..program.operands.len() as u32)
                .filter(|&k| program.operands[k as usize].kind != OperandKind::Use)
                .filter(|k| allocation.unused_defs.binary_search(k).is_err())
                .collect();
            if defs.is_empty() {
                return (out, "nothing".into());
            }
            let def = rng.pick(&defs);
            out.unused_defs.push(def);
            out.unused_defs.sort_unstable();
            (out, format!("def {def} called unused"))
        }
    }
}
