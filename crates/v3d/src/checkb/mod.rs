//! Checker B: the final words do what the machine instructions before allocation say.
//!
//! Translation validation (Pnueli, Siegel & Singerman 1998; Necula 2000) by symbolic execution of both sides. The machine
//! code in SSA form gives every virtual register an expression and every block its effects ([`program`]). The decoded
//! words are executed block by block with *facts* ([`words`]): which expressions a register, a spill slot, a flag, a
//! queue entry holds. Every effect of the words must be one of the machine code, with the same operands, in an order that
//! memory allows; every branch must ask the same question and lead to the same place, with the uniform stream at the
//! same position; the program must end where the machine code ends. Facts at the start of a block are those that hold on
//! every edge, with parameters named after their arguments; they are computed until nothing changes. An undefined argument
//! is in every place: which one holds the parameter is seen on the edge that goes back.
//!
//! Vertex and fragment programs have more that others notice ([`graphics`]): varyings are taken in order, sample flags are
//! written in order with what asks for them, the tile buffer gets its words in order, every row of the VPM is given once.
//!
//! It shares with the rest of the target what instructions mean (`mops.rs`, decoder, register data), and nothing with
//! allocator, expansion and scheduler. `docs/mutation.md` says what it does not see.

mod contents;
mod graphics;
mod memory;
mod program;
mod value;
mod words;

use crate::finish::Finished;
use crate::instr::{Loc, Version};
use crate::mops::MInst;
use crate::regs;
use kempe_ir::{Loc as SourceLoc, Stage};
use kempe_mir::symbolic::{Facts, Node, Term, add_fact};
use kempe_mir::{Mir, UniformSource};
use kempe_ra::Block;
use program::{Behaviour, Leave, Source, Target, question};
use smallvec::smallvec;
use value::Values;
use words::{State, Stop, WordsLeave};

/// Finished code.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub words: &'a [u64],
    pub uniforms: &'a [UniformSource],
    /// First word of every block of the machine code.
    pub block_starts: &'a [usize],
    /// The program starts in its final section.
    pub single_section: bool,
    /// Spill slots.
    pub slots: u32,
}

impl<'a> View<'a> {
    pub fn new(code: &'a Finished, slots: u32) -> View<'a> {
        View {
            words: &code.words,
            uniforms: &code.uniforms,
            block_starts: &code.block_starts,
            single_section: code.single_section,
            slots,
        }
    }
}

/// The first disagreement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Index of the word.
    pub word: usize,
    /// The machine instruction that is not done right, where one can be named.
    pub inst: Option<u32>,
    /// Its place in the source.
    pub loc: SourceLoc,
    pub message: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "word {}: {}", self.word, self.message)?;
        match self.inst {
            Some(i) => write!(f, " (machine instruction {i})"),
            None => Ok(()),
        }
    }
}

/// Rounds over one block before it is given up; a block takes one more round than loops around it, seldom two.
const MAX_ROUNDS: u32 = 64;

/// Rounds in which a block may know more than in the one before. What is found is not monotonous: less may be found where
/// more is equal. One of the first 1,600 random programs went to and fro.
const FREE_ROUNDS: u32 = 16;

/// How deep a fact about a flag is searched for arguments of an edge: a predicate, what it asks, and what that is made of.
const FLAG_DEPTH: u32 = 3;

/// Most expressions that are looked for in one place of a fact about a flag.
const MAX_CARRIED: usize = 64;

/// An edge as both sides have it.
struct Out {
    /// Facts at the end of the block.
    state: State,
    /// Position in the uniform stream, by successor.
    uniform: [usize; 2],
}

/// Compares finished code with the machine code it was made from.
///
/// # Errors
/// The first disagreement in the order of the blocks.
pub fn check(
    mir: &Mir<MInst>,
    view: &View,
    version: Version,
    stage: Stage,
    threads: u32,
    private_bytes: u32,
) -> Result<(), Mismatch> {
    let blocks = &mir.program.blocks;
    let fail = |word: usize, inst: Option<u32>, message: &str| Mismatch {
        word,
        inst,
        loc: inst.and_then(|i| mir.locs.get(i as usize)).copied().unwrap_or_default(),
        message: message.to_owned(),
    };
    let starts = view.block_starts;
    if starts.len() != blocks.len()
        || starts.first() != Some(&0)
        || !starts.is_sorted()
        || starts.last().is_some_and(|&s| s > view.words.len())
    {
        return Err(fail(0, None, "the blocks of the code are not those of the program"));
    }
    // 13.2: a fragment program takes the scoreboard at a switch of its own.
    if stage == Stage::Fragment && view.single_section {
        return Err(fail(0, None, "a fragment program that starts in its final section"));
    }
    let mut v = Values::new(&mir.program);
    let spill_base = v.spill_base(private_bytes);
    let source =
        program::run(mir, Target { version, stage }, &mut v).map_err(|m| fail(0, Some(m.inst), m.message))?;
    v.seal(&mir.program, &source.value);
    let program = words::Program {
        version,
        stage,
        rows: regs::rows(threads) as usize,
        threads,
        words: view.words,
        uniforms: view.uniforms,
        spill_base,
        slots: view.slots,
    };
    let mut judge = Judge { mir, view, threads, source, values: v, outs: Vec::new(), ahead: Vec::new() };
    judge.outs.resize_with(blocks.len(), || None);
    judge.ahead.resize_with(blocks.len(), || None);
    judge.run(&program).map_err(|s| Mismatch {
        loc: s.inst.and_then(|i| mir.locs.get(i as usize)).copied().unwrap_or_default(),
        word: s.word,
        inst: s.inst,
        message: s.message,
    })
}

struct Judge<'a> {
    mir: &'a Mir<MInst>,
    view: &'a View<'a>,
    threads: u32,
    source: Source,
    values: Values,
    outs: Vec<Option<Out>>,
    /// What held at the start of each block on the edges from blocks in front of it, when it was last walked.
    ahead: Vec<Option<State>>,
}

impl Judge<'_> {
    fn range(&self, b: usize) -> std::ops::Range<usize> {
        let end = self.view.block_starts.get(b + 1).copied().unwrap_or(self.view.words.len());
        self.view.block_starts[b]..end
    }

    fn stop<T>(&self, b: usize, message: impl Into<String>) -> Result<T, Stop> {
        let range = self.range(b);
        let inst = self.mir.program.blocks[b].insts.end.checked_sub(1);
        Err(Stop { word: range.end.saturating_sub(1).max(range.start), inst, message: message.into() })
    }

    fn run(&mut self, program: &words::Program) -> Result<(), Stop> {
        let n = self.mir.program.blocks.len();
        let mut states: Vec<Option<State>> = vec![None; n];
        let mut rounds = vec![0u32; n];
        let mut errors: Vec<Option<Stop>> = Vec::new();
        errors.resize_with(n, || None);
        let mut dirty = vec![false; n];
        if n > 0 {
            dirty[0] = true;
        }
        let mut again = true;
        while again {
            again = false;
            for b in 0..n {
                if !std::mem::replace(&mut dirty[b], false) {
                    continue;
                }
                let Some(mut state) = self.enter(b, true)? else { continue };
                let loops: Vec<usize> = self.backs(b).collect();
                if !loops.is_empty() {
                    let more = self.ahead[b].as_ref().is_some_and(|before| !state.is_within(before));
                    if more && rounds[b] < FREE_ROUNDS {
                        // What was found behind the loop's end followed from less: the loop starts anew.
                        for q in loops {
                            self.outs[q] = None;
                            states[q] = None;
                            dirty[q] = true;
                        }
                    }
                    self.ahead[b] = Some(state);
                    match self.enter(b, false)? {
                        Some(all) => state = all,
                        None => continue,
                    }
                }
                if let Some(before) = states[b].as_ref().filter(|_| rounds[b] >= FREE_ROUNDS) {
                    state.narrow(before);
                }
                if states[b].as_ref() == Some(&state) {
                    continue;
                }
                rounds[b] += 1;
                if rounds[b] > MAX_ROUNDS {
                    return self.stop(b, "the comparison does not come to an end");
                }
                states[b] = Some(state.clone());
                match self.block(program, b, state) {
                    Ok(out) => {
                        errors[b] = None;
                        self.outs[b] = Some(out);
                    }
                    Err(e) => {
                        errors[b] = Some(e);
                        // Nothing can be said of what follows.
                        self.outs[b] = None;
                    }
                }
                for e in &self.mir.program.blocks[b].succs {
                    let to = e.to.0 as usize;
                    dirty[to] = true;
                    again |= to <= b;
                }
            }
        }
        match errors.into_iter().flatten().next() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    /// Where the edges begin that go back to a block.
    fn backs(&self, b: usize) -> impl Iterator<Item = usize> + '_ {
        let preds = self.mir.program.blocks[b].preds.iter().map(|q| q.0 as usize);
        preds.filter(move |&q| q >= b)
    }

    /// What holds at the start of a block on every edge that has been walked; `ahead`: of those that do not go back.
    fn enter(&self, b: usize, ahead: bool) -> Result<Option<State>, Stop> {
        let blocks = &self.mir.program.blocks;
        let mut merged: Option<State> = None;
        if b == 0 {
            let mut places = vec![Facts::new(); words::REGISTERS + self.view.slots as usize + words::SIDES];
            for &(unit, t) in &self.source.payload {
                if let Loc::Row(r) = regs::unit_loc(self.threads, unit) {
                    places[(r & 63) as usize] = smallvec![t];
                }
            }
            merged = Some(State {
                places,
                uniform: 0,
                stores: 0,
                given: words::Given::default(),
                last_section: self.view.single_section,
            });
        }
        let mut preds: Vec<usize> = blocks[b].preds.iter().map(|q| q.0 as usize).collect();
        preds.sort_unstable();
        preds.dedup();
        for q in preds {
            let Some(out) = self.outs[q].as_ref().filter(|_| !ahead || q < b) else { continue };
            for (k, e) in blocks[q].succs.iter().enumerate().filter(|(_, e)| e.to.0 as usize == b) {
                let mut names: Vec<(Term, Term)> = Vec::new();
                // What an undefined value is brought for is in every place.
                let mut anywhere = Facts::new();
                for (param, arg) in blocks[b].params.iter().zip(&e.args) {
                    let (Some(p), Some(a)) =
                        (self.source.value[param.0 as usize], self.source.value[arg.0 as usize])
                    else {
                        continue;
                    };
                    // A parameter that is another name for a value needs no fact of its own.
                    if self.values.terms.survives(p, Block(b as u32)) {
                        continue;
                    }
                    if a == self.values.undefined {
                        add_fact(&mut anywhere, p);
                    } else {
                        names.push((a, p));
                    }
                }
                names.sort_unstable();
                let mut entering = self.along(out, k, b, &names);
                for (_, facts) in entering.places.iter_mut().enumerate().filter(|(n, _)| !words::is_flag(*n))
                {
                    anywhere.iter().for_each(|&t| add_fact(facts, t));
                }
                merged = Some(match merged {
                    None => entering,
                    Some(m) => self.meet(b, m, entering)?,
                });
            }
        }
        Ok(merged)
    }

    /// Facts after walking an edge.
    fn along(&self, out: &Out, k: usize, b: usize, names: &[(Term, Term)]) -> State {
        let mut places = Vec::with_capacity(out.state.places.len());
        for (n, facts) in out.state.places.iter().enumerate() {
            // A flag may say something of an argument, which it then says of the parameter.
            let depth = if words::is_flag(n) { FLAG_DEPTH } else { 0 };
            let mut new = Facts::new();
            for &t in facts {
                self.carried(t, b, names, depth).iter().for_each(|&t| add_fact(&mut new, t));
            }
            places.push(new);
        }
        State { places, uniform: out.uniform[k.min(1)], ..out.state }
    }

    /// What an expression is behind an edge: itself, if it means the same there, parameters that it is the argument of, and
    /// what is made of that.
    fn carried(&self, t: Term, b: usize, names: &[(Term, Term)], depth: u32) -> Facts {
        let mut new = Facts::new();
        if self.values.terms.survives(t, Block(b as u32)) {
            add_fact(&mut new, t);
        }
        let at = names.partition_point(|n| n.0 < t);
        for &(_, p) in names[at..].iter().take_while(|n| n.0 == t) {
            add_fact(&mut new, p);
        }
        let node = self.values.terms.node(t);
        let parts = node.children();
        if depth == 0 || parts.is_empty() {
            return new;
        }
        let parts: Vec<Facts> = parts.iter().map(|&c| self.carried(c, b, names, depth - 1)).collect();
        contents::for_each_choice(&parts, MAX_CARRIED, |list| {
            let mut next = list.iter();
            let made = node.with_children(&mut |t| next.next().copied().unwrap_or(t));
            if let Some(t) = self.values.find(made).filter(|&t| self.values.terms.is_known(t)) {
                add_fact(&mut new, t);
            }
        });
        new
    }

    fn meet(&self, b: usize, x: State, y: State) -> Result<State, Stop> {
        if x.uniform != y.uniform {
            return self.stop(b, "the uniform stream is not at the same position on every path");
        }
        if x.last_section != y.last_section {
            return self.stop(b, "the final section begins on some paths only");
        }
        let mut both = x;
        both.narrow(&y);
        both.stores |= y.stores;
        both.given = both.given.or(y.given);
        Ok(both)
    }

    /// The first block with words at or behind one, along jumps.
    fn resolve(&self, mut b: usize) -> Option<usize> {
        for _ in 0..=self.mir.program.blocks.len() {
            if !self.range(b).is_empty() {
                return Some(b);
            }
            if self.source.blocks[b].leave != Leave::Jump {
                return None;
            }
            b = self.mir.program.blocks[b].succs.first()?.to.0 as usize;
        }
        None
    }

    /// What the words of a block may make: what the block makes, and what the blocks behind it make, because the slots of a
    /// branch may hold their first instructions.
    fn made(&self, b: usize) -> Vec<Term> {
        let succs = |b: usize| self.mir.program.blocks[b].succs.iter().map(|e| e.to.0 as usize);
        let mut blocks: Vec<usize> = std::iter::once(b).chain(succs(b)).collect();
        blocks.extend(succs(b).flat_map(succs).collect::<Vec<_>>());
        blocks.sort_unstable();
        blocks.dedup();
        blocks.iter().flat_map(|&b| &self.source.blocks[b].made).copied().collect()
    }

    /// Walks through one block.
    fn block(&mut self, program: &words::Program, b: usize, mut state: State) -> Result<Out, Stop> {
        let range = self.range(b);
        let here = state.uniform;
        if range.is_empty() {
            let Behaviour { effects, leave, fences, varyings, .. } = &self.source.blocks[b];
            // A wait has nothing to wait for when no store is outstanding.
            if !effects.is_empty()
                || !varyings.is_empty()
                || *leave != Leave::Jump
                || (*fences > 0 && state.stores != 0)
            {
                return self.stop(b, "a block without words does something");
            }
            return Ok(Out { state, uniform: [here; 2] });
        }
        let end = range.end;
        let made = self.made(b);
        let left = {
            let Judge { source, values, .. } = self;
            words::run(program, values, Block(b as u32), &source.blocks[b], &mut state, &made, range)?
        };
        let behind = state.uniform;
        let next = (end as i64, behind as i64);
        // Where control goes: successor 0, successor 1.
        let ways: [(i64, i64); 2] = match (self.source.blocks[b].leave, left) {
            (Leave::End, WordsLeave::End) => [next; 2],
            (Leave::End, _) => return self.stop(b, "the program does not end here"),
            (_, WordsLeave::End) => return self.stop(b, "the program ends here"),
            (_, WordsLeave::Next) => [next; 2],
            (_, WordsLeave::Jump { to, uniform }) => [(to, uniform); 2],
            (Leave::Jump, WordsLeave::Branch { .. }) => {
                return self.stop(b, "a branch where the program has none");
            }
            (
                Leave::Branch { lane0, predicate, taken },
                WordsLeave::Branch { lane0: of_words, predicates, to, uniform },
            ) => {
                let name = self.values.name(predicate);
                let (wanted, flipped) = question(&mut self.values, lane0, name);
                let taken = taken != flipped;
                let asked = predicates.iter().find(|(t, _)| *t == wanted);
                let Some((_, when)) = asked.filter(|_| lane0 == of_words) else {
                    let text = |t: Term| self.values.text(t, words::DEPTH);
                    let got: Vec<String> = predicates.iter().map(|p| text(p.0)).collect();
                    let message =
                        format!("the branch asks {} instead of {}", got.join(" = "), text(predicate));
                    return self.stop(b, message);
                };
                if *when == taken { [(to, uniform), next] } else { [next, (to, uniform)] }
            }
        };
        let succs = &self.mir.program.blocks[b].succs;
        let mut out = Out { state, uniform: [behind; 2] };
        for (k, e) in succs.iter().enumerate().take(2) {
            let (to, uniform) = ways[k];
            let wanted = self.resolve(e.to.0 as usize).map(|r| self.view.block_starts[r] as i64);
            if wanted != Some(to) {
                return self.stop(b, format!("control goes to word {to} instead of {wanted:?}"));
            }
            out.uniform[k] = match usize::try_from(uniform) {
                Ok(u) if u <= self.view.uniforms.len() => u,
                _ => return self.stop(b, "a branch moves out of the uniform stream"),
            };
        }
        Ok(out)
    }
}
