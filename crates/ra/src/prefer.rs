//! Which of the free units a value takes, when any would do: what the register file prefers ([`Preferences`]).
//!
//! None of it is binding. Round robin keeps a unit unused for as long as possible after its value has died, so that the code
//! behind can still be reordered; a favoured unit is taken again after a rest, for the same reason.

use crate::code::*;
use crate::demand::Limits;
use crate::graph::NONE;
use crate::masks::{MAX_UNITS, UnitMask};
use crate::problem::*;

pub(crate) struct Prefer {
    prefer: Preferences,
    without: Without,
    brief: UnitMask,
    late: UnitMask,
    /// The unit given out last, and that to a brief value: sets that overlap go round together.
    last: [Unit; 2],
    /// By set, then unit: its place in the order of the set, or [`NONE`].
    place: Vec<Vec<u32>>,
    /// When a unit was given out last.
    given: [u32; MAX_UNITS],
    now: u32,
    /// By value: steps from its definition to its last use, [`NONE`] when it leaves its block.
    life: Vec<u32>,
    /// By value: touched close to the end of the program.
    is_late: Vec<bool>,
}

impl Prefer {
    pub fn new(code: &Code, limits: &Limits, options: &Options) -> Prefer {
        let prefer = limits.preferences.clone();
        let mask = |out: bool, units: &[Unit]| if out { UnitMask::EMPTY } else { UnitMask::of(units) };
        let (life, is_late) = lives(code, prefer.late_steps);
        Prefer {
            without: options.without,
            brief: mask(options.without.lifespan, &prefer.brief),
            late: mask(options.without.avoids, &prefer.late),
            last: [Unit(u16::MAX); 2],
            place: limits.order.iter().map(|order| places(order, limits.units)).collect(),
            given: [0; MAX_UNITS],
            // (So that every unit has had its rest at the start.)
            now: NEVER_GIVEN,
            life,
            is_late,
            prefer,
        }
    }

    /// The next step begins.
    pub fn tick(&mut self) {
        self.now += 1;
    }

    pub fn gave(&mut self, unit: Unit) {
        self.given[unit.0 as usize] = self.now;
    }

    /// `other` shares the place of `vreg`.
    pub fn join(&mut self, vreg: u32, other: u32) {
        let (vreg, other) = (vreg as usize, other as usize);
        self.life[vreg] = self.life[vreg].saturating_add(self.life[other]);
        self.is_late[vreg] |= self.is_late[other];
    }

    /// One of `free`, which is not empty, for a value of `set` (`vreg` may be [`NONE`]).
    pub fn pick(&mut self, limits: &Limits, vreg: u32, set: SetId, free: &UnitMask) -> Unit {
        let mut free = *free;
        if vreg != NONE && self.is_late[vreg as usize] {
            free = narrowed(free, free.minus(&self.late));
        }
        let set = set.0 as usize;
        let favours =
            self.prefer.favoured.iter().filter(|f| f.set.0 as usize == set && !self.without.favours);
        for favour in favours {
            if free.contains(favour.unit) {
                if self.now - self.given[favour.unit.0 as usize] > favour.rest {
                    return favour.unit;
                }
                // It rests, if there is anything else.
                let mut others = free;
                others.remove(favour.unit);
                free = narrowed(free, others);
            }
        }
        let brief = vreg != NONE && self.life[vreg as usize] <= self.prefer.brief_life;
        let apart = if brief { free.and(&self.brief) } else { free.minus(&self.brief) };
        let from = narrowed(free, apart);
        let order = &limits.order[set];
        let last = &mut self.last[usize::from(brief)];
        let start = match self.place[set].get(last.0 as usize) {
            Some(&at) if at != NONE && limits.rotates[set] && !self.without.rotation => at as usize + 1,
            _ => 0,
        };
        let (ahead, behind) = order.split_at(start);
        let unit = behind.iter().chain(ahead).copied().find(|&unit| from.contains(unit));
        // (The set's order may not list it: an operand's set outside its home under a register limit.)
        let unit = unit.or(from.first()).unwrap_or(Unit(0));
        *last = unit;
        unit
    }
}

/// Where the clock begins.
const NEVER_GIVEN: u32 = 1 << 16;

fn places(order: &[Unit], units: usize) -> Vec<u32> {
    let mut place = vec![NONE; units];
    for (at, unit) in order.iter().enumerate() {
        place[unit.0 as usize] = at as u32;
    }
    place
}

fn narrowed(all: UnitMask, some: UnitMask) -> UnitMask {
    if some.is_empty() { all } else { some }
}

/// How long values live, and which are touched within the last `late` steps of a block that ends the program.
fn lives(code: &Code, late: u32) -> (Vec<u32>, Vec<bool>) {
    let count = code.vregs.len();
    let mut born = vec![(NONE, 0u32); count];
    let mut life = vec![0u32; count];
    let mut is_late = vec![false; count];
    for (b, block) in code.blocks.iter().enumerate() {
        let b = b as u32;
        for &param in &block.params {
            life[param as usize] = NONE;
        }
        let ends = block.succs.is_empty();
        for step in block.steps.clone() {
            for op in &code.ops[code.steps[step as usize].ops()] {
                let v = op.vreg.0 as usize;
                let here = born[v].0 == b;
                match op.kind {
                    OperandKind::Use if here => life[v] = life[v].max(step - born[v].1),
                    OperandKind::Use => life[v] = NONE,
                    // Filled or made again: it has several lives.
                    _ if born[v].0 != NONE && !here => life[v] = NONE,
                    _ => born[v] = (b, step),
                }
                is_late[v] |= ends && block.steps.end - step <= late;
            }
        }
        for &arg in block.succs.iter().flat_map(|edge| &edge.args) {
            life[arg as usize] = NONE;
        }
    }
    (life, is_late)
}
