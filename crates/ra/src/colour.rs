//! The graph engine: colours for whole live ranges. Build the interference graph ([`crate::interference`]), join copies
//! ([`crate::coalesce`]), simplify and select ([`crate::simplify`]); what finds no place is spilled
//! ([`crate::colour_spill`]), the graph patched, and simplification starts over, until everything has a place.
//!
//! The result is a plan: a place for every value of the code with its edits. [`crate::scan`] walks over it and emits it;
//! where an instruction's fixed units, vectors or ties do not agree with the plan, that walk splits the live range by
//! copies at the instruction.

use crate::classes::Classes;
use crate::coalesce::coalesce;
use crate::code::Code;
use crate::colour_spill::Spiller;
use crate::demand::Limits;
use crate::graph::Graph;
use crate::interference::{Interference, Work};
use crate::liveness::Liveness;
use crate::problem::*;
use crate::rewrite::rewrite;
use crate::simplify::{Vectors, select, simplify, spread};
use crate::wishes::Wishes;

/// Most rounds of spilling. A round spills everything that found no place; pieces are spilled once more at most, and what
/// remains then lives from an edit to the next instruction. (How many rounds real programs take has not been measured.)
const MAX_ROUNDS: u32 = 40;

pub(crate) struct Coloured {
    pub code: Code,
    pub live: Liveness,
    /// Place by value, [`crate::wishes::NO_UNIT`] for none.
    pub plan: Vec<u16>,
}

/// No colouring: a value that cannot be spilled finds no place, or the graph would be too large.
pub(crate) struct Uncolourable;

#[expect(clippy::too_many_arguments, reason = "one call; each is a table that the engine reads")]
pub(crate) fn colour(
    code: Code,
    live: Liveness,
    limits: &Limits,
    graph: &Graph,
    costs: &Costs,
    recipe_costs: &[f32],
    memory_clobbers: ClobberId,
    options: &Options,
) -> Result<Coloured, Uncolourable> {
    let wishes = Wishes::new(&code, &live, limits, graph);
    let vectors = Vectors::new(&code);
    let gone = vec![false; code.vregs.len()];
    let mut work = Work { code: code.clone(), live: &live, limits, gone, edits: Vec::new() };
    let mut web = Interference::build(&mut work).map_err(|_| Uncolourable)?;
    let mut classes = Classes::default();
    web.compact();
    coalesce(&mut web, &mut classes, &code);
    let mut spiller = Spiller::new(&code, &live, limits, costs, recipe_costs);
    spiller.admit(work.code.vregs.len());
    if options.force_spill {
        let cost = spiller.costs(&work, &web);
        let all = (0..cost.len() as u32).filter(|&n| web.alive[n as usize] && cost[n as usize].is_finite());
        let all: Vec<u32> = all.collect();
        spiller.spill(&mut work, &mut web, &all, true)?;
    }
    for _ in 0..MAX_ROUNDS {
        web.compact();
        let cost = spiller.costs(&work, &web);
        let order = simplify(&web, &mut classes, &cost);
        let mut chosen = select(&web, limits, &work.code, &order, &wishes, &vectors, options, false);
        if !chosen.failed.is_empty() {
            let packed = select(&web, limits, &work.code, &order, &wishes, &vectors, options, true);
            if packed.failed.len() < chosen.failed.len() {
                chosen = packed;
            }
        }
        if !chosen.failed.is_empty() {
            let victims = spiller.victims(&web, &order, &cost, &chosen)?;
            spiller.spill(&mut work, &mut web, &victims, false)?;
            continue;
        }
        if work.edits.is_empty() {
            let plan = spread(&web, &chosen);
            return Ok(Coloured { code: work.code, live, plan });
        }
        let edits = spiller.finish(&work);
        let mut code = rewrite(&work.code, edits, memory_clobbers);
        let last = Liveness::new(&mut code, graph);
        if last.ins(0).next().is_some() {
            return Err(Uncolourable);
        }
        // Once more with the wishes of the pieces.
        let wishes = Wishes::new(&code, &last, limits, graph);
        let again = select(&web, limits, &code, &order, &wishes, &vectors, options, false);
        let best = if again.failed.is_empty() { &again } else { &chosen };
        return Ok(Coloured { plan: spread(&web, best), code, live: last });
    }
    Err(Uncolourable)
}
