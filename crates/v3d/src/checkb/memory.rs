//! The memory accesses of the words, against the effects that the machine code has.
//!
//! Facts: reference sections 12.2 (TMU), 12.6 (scratch), 13.3 (barriers).

use super::graphics;
use super::program::{Access, EffectKind};
use super::value::Value;
use super::words::{DEPTH, Done, Machine, REGISTERS, Write};
use crate::instr::{Op, Unpack};
use crate::mops::MemClass;
use kempe_ir::Stage;
use kempe_mir::symbolic::Term;

impl Machine<'_> {
    pub(super) fn reach_barrier(&mut self) -> Done<()> {
        if self.barrier {
            return self.stop("a barrier before the thread switch of another");
        }
        let behaviour = self.behaviour;
        let Some(effect) = behaviour.effects.get(self.first_unmatched) else {
            return self.stop("a barrier that the program does not have");
        };
        if effect.kind != EffectKind::Barrier {
            return self.stop_at(effect.inst, "a barrier comes before this instruction");
        }
        if self.s.stores & !MemClass::SPILL.0 != 0 || !self.results.is_empty() {
            return self.stop_at(effect.inst, "memory accesses are not finished at the barrier");
        }
        self.fence = effect.fence;
        self.take(self.first_unmatched);
        self.barrier = true;
        Ok(())
    }

    pub(super) fn take(&mut self, n: usize) {
        self.matched[n] = true;
        while self.matched.get(self.first_unmatched) == Some(&true) {
            self.first_unmatched += 1;
        }
    }

    /// The slot behind an address, if it is one.
    fn slot(&self, address: Term) -> Option<u32> {
        let base = self.v.name(self.p.spill_base);
        self.v.facts(address).find_map(|t| {
            if t == base {
                return Some(0);
            }
            let Value::Two(Op::Add, [Unpack::None, Unpack::None], [a, b]) = self.v.terms.node(t) else {
                return None;
            };
            let offset = if a == base {
                b
            } else if b == base {
                a
            } else {
                return None;
            };
            match self.v.terms.node(offset) {
                Value::Const(c) if c % 64 == 0 => Some(c / 64),
                _ => None,
            }
        })
    }

    /// More results are on their way (rule 55).
    fn outstanding(&self, more: usize) -> Done<()> {
        match self.results.len() + more > 16 / self.p.threads.max(1) as usize {
            true => self.stop("more results outstanding than the queue of the thread holds"),
            false => Ok(()),
        }
    }

    /// A TMU operation starts.
    pub(super) fn access(&mut self, w: Write) -> Done<()> {
        let byte = (self.config & 0xff) as u8;
        self.config = self.config >> 8 | 0xff00_0000;
        let data = std::mem::take(&mut self.data);
        // Helpers have spills as well.
        let spill = if self.p.stage == Stage::Fragment { !graphics::PER_PIXEL } else { 0xff };
        if w.cond.is_none()
            && byte == spill
            && data.len() <= 1
            && let Some(slot) = self.slot(w.value)
            && slot < self.p.slots
        {
            return self.spill(slot, data.into_iter().next());
        }
        if !self.texture.is_empty() || !self.coordinates.is_empty() {
            return self.stop("coordinates at an access to memory");
        }
        let behaviour = self.behaviour;
        let Some(n) = self.find(byte, &w, &data) else {
            return match behaviour.effects.get(self.first_unmatched) {
                Some(e) => {
                    let why = self.difference(&e.kind, byte, &w, &data);
                    self.stop_at(e.inst, format!("a memory access does something else: {why}"))
                }
                None => self.stop("a memory access that the program does not have"),
            };
        };
        self.perform(n)
    }

    /// An access of the texture unit starts.
    pub(super) fn texture_access(&mut self, start: u8, w: Write) -> Done<()> {
        if self.config != u32::MAX {
            return self.stop("a general configuration at an access of the texture unit");
        }
        let words = std::mem::take(&mut self.texture);
        let mut coordinates = std::mem::take(&mut self.coordinates);
        coordinates.sort_by_key(|c| c.0);
        let data = std::mem::take(&mut self.data);
        let behaviour = self.behaviour;
        let end = behaviour.effects.len().min(self.first_unmatched + Self::WINDOW);
        let found = (self.first_unmatched..end).find(|&n| {
            let EffectKind::Access(a) = &behaviour.effects[n].kind else { return false };
            let Some(t) = &a.texture else { return false };
            !self.matched[n]
                && t.start == start
                && t.words == words
                && t.coordinates.len() == coordinates.len()
                && t.coordinates.iter().zip(&coordinates).all(|((register, want), (got, w))| {
                    // A coordinate may be there for more lanes than take part.
                    register == got
                        && self.v.is(w.value, *want)
                        && (w.cond.is_none() || self.same_condition(a.condition, w.cond))
                })
                && self.fits(a, 0, &w, &data)
        });
        match (found, behaviour.effects.get(self.first_unmatched)) {
            (Some(n), _) => self.perform(n),
            (None, Some(e)) => {
                let wanted = match &e.kind {
                    EffectKind::Access(a) => a.texture.as_ref(),
                    _ => None,
                };
                let mut pairs = wanted.iter().flat_map(|t| &t.coordinates).zip(&coordinates);
                let why = match pairs.find(|((_, want), (_, w))| !self.v.is(w.value, *want)) {
                    Some(((_, want), (_, w))) => self.other("coordinate", *want, w.value),
                    None => self.difference(&e.kind, 0, &w, &data),
                };
                self.stop_at(e.inst, format!("an access of the texture unit does something else: {why}"))
            }
            (None, None) => self.stop("an access of the texture unit that the program does not have"),
        }
    }

    /// What an effect may not overtake has been done.
    pub(super) fn in_turn(&self, n: usize) -> Done<()> {
        let effects = &self.behaviour.effects;
        for k in self.first_unmatched..n {
            if !self.matched[k] && effects[n].conflicts(&effects[k]) {
                return self.stop_at(effects[k].inst, "something overtakes this");
            }
        }
        self.beside_flags(&effects[n])
    }

    /// The access of an effect takes place.
    fn perform(&mut self, n: usize) -> Done<()> {
        let behaviour = self.behaviour;
        let effect = &behaviour.effects[n];
        // 13.3: the barrier takes effect at its switch.
        if self.barrier {
            return self.stop_at(effect.inst, "it is done before the thread switch of the barrier before it");
        }
        self.in_turn(n)?;
        if effect.fence > self.fence {
            if self.s.stores & !MemClass::SPILL.0 != 0 {
                return self.stop_at(effect.inst, "stores before it are not waited for");
            }
            self.fence = effect.fence;
        }
        let EffectKind::Access(a) = &effect.kind else {
            return self.stop("a memory access that is a barrier");
        };
        if a.reads && self.s.stores & a.class.0 != 0 {
            return self.stop_at(effect.inst, "it may read what a store before it has not written yet");
        }
        if a.writes && !a.reads {
            self.s.stores |= a.class.0;
        }
        self.outstanding(usize::from(a.results))?;
        for k in 0..a.results {
            let t = self.v.make(Value::Loaded(effect.inst, k, self.block));
            self.results.push_back(self.v.name(t));
        }
        self.take(n);
        Ok(())
    }

    /// Accesses that are looked at for one word.
    pub(super) const WINDOW: usize = 64;

    fn find(&self, byte: u8, w: &Write, data: &[(Term, Option<Term>)]) -> Option<usize> {
        let end = self.behaviour.effects.len().min(self.first_unmatched + Self::WINDOW);
        (self.first_unmatched..end).find(|&n| {
            !self.matched[n]
                && matches!(&self.behaviour.effects[n].kind, EffectKind::Access(a) if a.texture.is_none() && self.fits(a, byte, w, data))
        })
    }

    pub(super) fn same_condition(&self, wanted: Option<Term>, got: Option<Term>) -> bool {
        match (wanted, got) {
            (None, None) => true,
            (Some(t), Some(got)) => self.v.is(got, t),
            _ => false,
        }
    }

    fn fits(&self, a: &Access, byte: u8, w: &Write, data: &[(Term, Option<Term>)]) -> bool {
        a.byte == byte
            && a.data.len() == data.len()
            && self.same_condition(a.condition, w.cond)
            && self.v.is(w.value, a.address)
            && a.data.iter().zip(data).all(|(&t, &(f, c))| {
                // Data may be there for more lanes than take part.
                self.v.is(f, t) && (c.is_none() || self.same_condition(a.condition, c))
            })
    }

    fn other(&self, what: &str, wanted: Term, got: Term) -> String {
        let (got, wanted) = (self.v.contents_text(got, DEPTH), self.v.text(wanted, DEPTH));
        format!("another {what}, {got} instead of {wanted}")
    }

    fn difference(&self, kind: &EffectKind, byte: u8, w: &Write, data: &[(Term, Option<Term>)]) -> String {
        let pair = |what: &str, wanted: Term, got: Term| self.other(what, wanted, got);
        let a = match kind {
            EffectKind::Access(a) => a,
            EffectKind::Barrier => return "it crosses a barrier".to_owned(),
            _ => return "the program does something else first".to_owned(),
        };
        if a.byte != byte || a.data.len() != data.len() {
            return "another operation".to_owned();
        }
        if !self.v.is(w.value, a.address) {
            return pair("address", a.address, w.value);
        }
        match (a.condition, w.cond) {
            (Some(c), Some(got)) if !self.v.is(got, c) => return pair("condition", c, got),
            (None, Some(_)) | (Some(_), None) => return "other lanes".to_owned(),
            _ => {}
        }
        match a.data.iter().zip(data).find(|(t, (f, _))| !self.v.is(*f, **t)) {
            Some((&t, &(f, _))) => pair("data word", t, f),
            None => "data for other lanes".to_owned(),
        }
    }

    fn spill(&mut self, slot: u32, data: Option<(Term, Option<Term>)>) -> Done<()> {
        let place = REGISTERS + slot as usize;
        match data {
            Some((_, Some(_))) => return self.stop("a spill under a condition"),
            Some((value, None)) => {
                self.places[place] = value;
                self.s.stores |= MemClass::SPILL.0;
            }
            None => {
                if self.s.stores & MemClass::SPILL.0 != 0 {
                    return self.stop("a fill before the spills are waited for");
                }
                self.outstanding(1)?;
                self.results.push_back(self.places[place]);
            }
        }
        Ok(())
    }
}
