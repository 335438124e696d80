//! Where the registers go, and why: what every attempt of a compile needed and what the allocator decided, by source line.
//!
//! A target's adapter holds an [`Explainer`] and hands it what its driver tells; the result is an [`Explanation`], plain data
//! for the command and, as JSON, for everybody else ([`report`]; schema `kempe-explain/1`, published in
//! `docs/formats/explain.schema.json`). Everything here is about the program before spilling, except where edits are counted.
//!
//! *Needed* registers: the number that every register file of that shape would have to have for an instruction to fit. A
//! machine with several sets (rows, and a few accumulators for what does not live long) needs as many as its tightest set is
//! short of. *Firm* is the same without values that can be made again and are not operands of the instruction.

use crate::compile::CompileResult;
use crate::json::Head;
use kempe_ir::Module;
use kempe_mir::Mir;
pub use kempe_ra::report::LOOP_DISTANCE;
use kempe_ra::report::{Candidate, Decision, Definition, Lives, Profile, Reason, Report, Return};
use kempe_ra::{Allocation, Block, Costs, Edit, Inst, OperandKind, Point, Recipe, RegisterFile, VReg};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Name and version of the format.
pub const SCHEMA: &str = "kempe-explain/1";

/// Most decisions that are kept: enough for all but monsters, whose reports would be hundreds of megabytes.
pub const MAX_DECISIONS: usize = 4000;

/// Most characters of an instruction's text.
const MAX_TEXT: usize = 72;

/// An occupancy step: so many hardware threads with so many registers each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    pub threads: u32,
    pub registers: u32,
}

/// Why a program has the registers it has.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// What the target offers, most threads first.
    pub steps: Vec<Step>,
    /// Source files; places say which.
    pub files: Vec<String>,
    /// Text of the lines of the source itself that code came from, where it is known.
    pub lines: BTreeMap<u32, String>,
    /// In the order in which they were made.
    pub attempts: Vec<Attempt>,
}

/// One configuration that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attempt {
    pub threads: u32,
    /// Registers of this step, or the limit that was asked for if that is less.
    pub registers: u32,
    pub outcome: Outcome,
    /// Registers that could be given out, after the limit and what memory edits keep for themselves. None: there is no
    /// allocation.
    pub room: Option<u32>,
    /// The instruction that needs most.
    pub peak: Peak,
    /// The most that any instruction needs without values that can be made again.
    pub firm: u32,
    /// Instructions that need more registers than the step has.
    pub over: u32,
    /// The same without values that can be made again.
    pub over_firm: u32,
    pub edits: Edits,
    /// Estimated cycles of all edits, each as often as its block runs.
    pub cost: f64,
    /// One for each instruction, in order.
    pub points: Vec<PointOf>,
    /// How often a value lost its register.
    pub decided: u32,
    /// Who did, in the order of the instructions: the first [`MAX_DECISIONS`].
    pub decisions: Vec<DecisionOf>,
    /// How often which value was made again instead of stored, most often first.
    pub recomputed: Vec<Recomputed>,
    /// If memory was needed (or nothing fitted): what stood in the way of going without it.
    pub obstacle: Option<Obstacle>,
    #[serde(skip)]
    code: Vec<u8>,
}

/// What became of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Taken,
    /// Another one was better.
    NotTaken,
    /// There is no allocation.
    DoesNotFit,
}

/// An instruction and its source line (0: not known).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    pub inst: u32,
    /// Index into [`Explanation::files`].
    pub file: u32,
    pub line: u32,
}

/// One instruction: what it needs, and what the allocator put beside it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PointOf {
    /// The instruction; `_` is a register.
    pub text: String,
    pub file: u32,
    pub line: u32,
    /// Loops around it.
    pub depth: u32,
    pub needed: u32,
    pub firm: u32,
    #[serde(skip_serializing_if = "Edits::is_none")]
    pub edits: Edits,
}

/// Numbers of edits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Edits {
    pub spills: u32,
    pub fills: u32,
    pub recomputed: u32,
    pub copies: u32,
    pub swaps: u32,
}

impl Edits {
    pub fn is_none(&self) -> bool {
        *self == Edits::default()
    }

    pub fn add(&mut self, other: &Edits) {
        self.spills += other.spills;
        self.fills += other.fills;
        self.recomputed += other.recomputed;
        self.copies += other.copies;
        self.swaps += other.swaps;
    }

    fn count(&mut self, edit: &Edit) {
        match edit {
            Edit::Spill { .. } => self.spills += 1,
            Edit::Fill { .. } => self.fills += 1,
            Edit::Recompute { .. } | Edit::Repeat { .. } => self.recomputed += 1,
            Edit::Copy { .. } => self.copies += 1,
            Edit::Swap { .. } => self.swaps += 1,
        }
    }
}

/// A value: a virtual register.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Value {
    pub id: u32,
    /// From the source; empty if it has none.
    pub name: String,
    /// What makes it: an instruction, or `merge` where paths meet.
    pub made_by: String,
    pub defined: Option<Place>,
    /// How it can be made again without memory.
    pub again: Option<String>,
}

/// A value that lives at a peak.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LiveValue {
    pub value: Value,
    /// None: it is not read any more (a result that nothing reads).
    pub next: Option<Next>,
    /// The instruction of the peak reads it for the last time.
    pub dies: bool,
}

/// Where a value is read next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Next {
    pub place: Place,
    /// Instructions on the way.
    pub steps: u32,
    /// Loops that are left on the way.
    pub loops: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Peak {
    pub place: Place,
    /// The instruction.
    pub text: String,
    pub needed: u32,
    pub firm: u32,
    /// The values are those after the instruction, because that is when there are more; otherwise those before it.
    pub after: bool,
    /// Longest without a read first.
    pub values: Vec<LiveValue>,
}

/// A value lost its register.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisionOf {
    pub place: Place,
    /// `full`, `full-after`, `entry`, `arrangement` or `asked`.
    pub reason: &'static str,
    pub value: Value,
    pub next: Option<Next>,
    /// It comes back from memory; otherwise it is made again.
    pub memory: bool,
    #[serde(flatten)]
    pub score: Score,
    /// How many others could have gone.
    pub rejected: u32,
    /// Those of them with the highest scores, highest first.
    pub others: Vec<Other>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Score {
    /// The highest goes: distance for cost.
    pub score: f32,
    /// Instructions to the next read as the allocator counts, with [`LOOP_DISTANCE`] for every loop that is left.
    pub distance: u32,
    /// Estimated cycles of getting it back.
    pub cost: f32,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Other {
    pub value: Value,
    #[serde(flatten)]
    pub score: Score,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Recomputed {
    /// What is done.
    pub recipe: String,
    pub times: u32,
}

/// Why an attempt needed memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Obstacle {
    /// The peak without values that can be made again: they are not what is in the way.
    pub place: Place,
    pub needed: u32,
    /// Values that would have to be read sooner, made later or made again: live there, longest without a read first;
    /// a few more than are too many.
    pub longest: Vec<LiveValue>,
}

/// More values of an obstacle than are too many: there is some choice.
const SPARE_CHOICES: usize = 3;

/// Collects what a driver tells. The machine code of its attempts comes as it is; nothing is kept of it but what is shown.
pub(crate) struct Explainer {
    steps: Vec<Step>,
    files: Vec<String>,
    /// File and line, by the places that instructions name.
    places: Vec<(u32, u32)>,
    /// Of registers, asked for.
    limit: Option<u32>,
    costs: Costs,
    attempts: Vec<Attempt>,
}

impl Explainer {
    pub fn new(steps: &[Step], limit: Option<u32>, costs: Costs) -> Explainer {
        Explainer {
            steps: steps.to_vec(),
            files: Vec::new(),
            places: Vec::new(),
            limit,
            costs,
            attempts: Vec::new(),
        }
    }

    /// The module whose places the machine code names.
    pub fn module(&mut self, m: &Module) {
        self.files.clone_from(&m.files);
        self.places = m.locs.iter().map(|line| (line.file, line.line)).collect();
    }

    /// An attempt has an allocation, or has none.
    pub fn attempt<I: Display>(
        &mut self,
        threads: u32,
        file: &RegisterFile,
        mir: &Mir<I>,
        allocation: Option<&Allocation>,
    ) {
        let report = allocation.and_then(|allocation| allocation.report.as_deref());
        let profile = match report {
            Some(report) => Ok(report.profile.clone()),
            None => Profile::new(file, &mir.program),
        };
        // (A problem that the allocator does not take is a defect, and reported as one.)
        let (Ok(profile), Ok(lives)) = (profile, Lives::new(file, &mir.program)) else { return };
        let step = self.steps.iter().find(|step| step.threads == threads).map_or(0, |step| step.registers);
        let registers = self.limit.map_or(step, |limit| step.min(limit));
        let seen = Seen { mir, lives, profile, step, registers, places: &self.places };
        let attempt = seen.attempt(threads, allocation, &self.costs);
        self.attempts.push(attempt);
    }

    /// The last attempt came to code.
    pub fn code(&mut self, code: &[u8]) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.code = code.to_vec();
        }
    }

    /// `taken`: the code of the artifact.
    pub fn finish(mut self, taken: Option<&[u8]>) -> Explanation {
        let chosen = self.attempts.iter().position(|a| taken.is_some_and(|code| a.code == code));
        if let Some(attempt) = chosen.and_then(|chosen| self.attempts.get_mut(chosen)) {
            attempt.outcome = Outcome::Taken;
        }
        Explanation { steps: self.steps, files: self.files, lines: BTreeMap::new(), attempts: self.attempts }
    }
}

impl Explanation {
    /// Adds the text of the lines that occur, if the source is text and `name` is one of the files.
    pub(crate) fn add_lines(&mut self, name: &str, text: &str) {
        let Some(file) = self.files.iter().position(|file| file == name || file.is_empty()) else { return };
        let all: Vec<&str> = text.lines().collect();
        let points = self.attempts.iter().flat_map(|attempt| &attempt.points);
        for point in points.filter(|point| point.file == file as u32) {
            if let Some(line) = (point.line as usize).checked_sub(1).and_then(|at| all.get(at)) {
                self.lines.entry(point.line).or_insert_with(|| line.trim().to_owned());
            }
        }
    }

    /// The attempt whose code was taken.
    pub fn taken(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.outcome == Outcome::Taken)
    }

    /// Text of a line of the source itself.
    pub fn text(&self, line: u32) -> &str {
        self.lines.get(&line).map_or("", String::as_str)
    }
}

/// One attempt while it is looked at.
struct Seen<'a, I> {
    mir: &'a Mir<I>,
    lives: Lives,
    profile: Profile,
    /// Registers of the step, and how many of them may be given out.
    step: u32,
    registers: u32,
    places: &'a [(u32, u32)],
}

impl<I: Display> Seen<'_, I> {
    fn attempt(&self, threads: u32, allocation: Option<&Allocation>, costs: &Costs) -> Attempt {
        let report = allocation.and_then(|allocation| allocation.report.as_deref());
        let points = self.points(allocation);
        let peak = first_max(points.iter().map(|point| point.needed));
        let firm = first_max(points.iter().map(|point| point.firm));
        let over = |needed: &dyn Fn(&PointOf) -> u32| {
            points.iter().filter(|point| needed(point) > self.registers).count() as u32
        };
        let mut edits = Edits::default();
        points.iter().for_each(|point| edits.add(&point.edits));
        let memory = allocation.is_none_or(|allocation| allocation.memory_edits);
        Attempt {
            threads,
            registers: self.registers,
            outcome: if allocation.is_some() { Outcome::NotTaken } else { Outcome::DoesNotFit },
            room: report.and_then(|report| self.room(report)),
            peak: self.peak(peak, &points),
            firm: points.get(firm as usize).map_or(0, |point| point.firm),
            over: over(&|point| point.needed),
            over_firm: over(&|point| point.firm),
            edits,
            cost: allocation.map_or(0.0, |allocation| allocation.cost(&self.mir.program, costs)),
            decided: report.map_or(0, |report| report.decisions.len() as u32),
            decisions: report.map_or_else(Vec::new, |report| self.decisions(report)),
            recomputed: allocation.map_or_else(Vec::new, |allocation| self.recomputed(allocation)),
            obstacle: memory.then(|| self.obstacle(firm, &points)),
            points,
            code: Vec::new(),
        }
    }

    fn points(&self, allocation: Option<&Allocation>) -> Vec<PointOf> {
        let program = &self.mir.program;
        let mut points: Vec<PointOf> = (0..program.insts.len() as u32)
            .map(|inst| {
                let Place { file, line, .. } = self.place(inst);
                let needed = |firm| {
                    let all = i64::from(self.step) + self.profile.missing(Inst(inst), firm);
                    u32::try_from(all).unwrap_or(0)
                };
                PointOf {
                    text: self.text(inst),
                    file,
                    line,
                    needed: needed(false),
                    firm: needed(true),
                    ..PointOf::default()
                }
            })
            .collect();
        for block in &program.blocks {
            for point in
                points.get_mut(block.insts.start as usize..block.insts.end as usize).into_iter().flatten()
            {
                point.depth = block.loop_depth;
            }
        }
        for (point, edit) in allocation.iter().flat_map(|allocation| &allocation.edits) {
            let (Point::Before(at) | Point::After(at)) = point;
            if let Some(point) = points.get_mut(at.0 as usize) {
                point.edits.count(edit);
            }
        }
        points
    }

    fn place(&self, inst: u32) -> Place {
        let loc = self.mir.locs.get(inst as usize).copied().unwrap_or_default();
        let place = (loc.0 as usize).checked_sub(1).and_then(|at| self.places.get(at));
        let (file, line) = place.copied().unwrap_or_default();
        Place { inst, file, line }
    }

    /// Registers that could be given out: of the set that the step's number is about.
    fn room(&self, report: &Report) -> Option<u32> {
        let mut sets = report.room.iter().zip(&report.profile.capacity);
        sets.find(|(_, capacity)| **capacity == self.step).map(|(room, _)| *room)
    }

    fn peak(&self, inst: u32, points: &[PointOf]) -> Peak {
        let units = |list: &[VReg]| list.iter().map(|&v| u32::from(self.size(v))).sum::<u32>();
        let before = self.lives.live_at(Point::Before(Inst(inst)));
        let later = self.lives.live_at(Point::After(Inst(inst)));
        let after = units(&later) > units(&before);
        let (point, values) =
            if after { (Point::After(Inst(inst)), later) } else { (Point::Before(Inst(inst)), before) };
        let (needed, firm) = points.get(inst as usize).map_or((0, 0), |point| (point.needed, point.firm));
        let values = self.live_values(point, values);
        Peak { place: self.place(inst), text: self.text(inst), needed, firm, after, values }
    }

    fn size(&self, vreg: VReg) -> u8 {
        self.mir.program.vregs.get(vreg.0 as usize).map_or(1, |info| info.size)
    }

    /// Longest without a read first.
    fn live_values(&self, point: Point, values: Vec<VReg>) -> Vec<LiveValue> {
        let (Point::Before(at) | Point::After(at)) = point;
        let mut list: Vec<LiveValue> = values
            .into_iter()
            .map(|vreg| LiveValue {
                value: self.value(vreg),
                next: self.next(point, vreg),
                dies: point == Point::Before(at) && self.lives.dies_at(at, vreg),
            })
            .collect();
        let far = |live: &LiveValue| live.next.map_or((u32::MAX, 0), |next| (next.loops, next.steps));
        list.sort_by_key(|live| (std::cmp::Reverse(far(live)), live.value.id));
        list
    }

    fn next(&self, point: Point, vreg: VReg) -> Option<Next> {
        let read = self.lives.next_read(point, vreg)?;
        Some(Next { place: self.place(read.at.0), steps: read.steps, loops: read.loops })
    }

    fn text(&self, inst: u32) -> String {
        self.mir.data.get(inst as usize).map_or_else(String::new, |data| shortened(&data.to_string()))
    }

    fn recipe(&self, recipe: Recipe) -> String {
        let text = self.mir.recipes.get(recipe.0 as usize).map(ToString::to_string);
        shortened(&text.unwrap_or_default())
    }

    fn value(&self, vreg: VReg) -> Value {
        let info = self.mir.program.vregs.get(vreg.0 as usize);
        let (made_by, defined) = match self.lives.definition(vreg) {
            Some(Definition::Inst(at)) => (self.maker(at, vreg), Some(self.place(at.0))),
            Some(Definition::Block(Block(block))) => {
                let first = self.mir.program.blocks.get(block as usize).map(|block| block.insts.start);
                ("merge".to_owned(), first.map(|first| self.place(first)))
            }
            None => ("nothing".to_owned(), None),
        };
        Value {
            id: vreg.0,
            name: self.mir.names.get(vreg.0 as usize).cloned().unwrap_or_default(),
            made_by,
            defined,
            again: info.and_then(|info| info.recipe).map(|recipe| self.recipe(recipe)),
        }
    }

    /// The instruction that makes a value; with its number among them where there are several results.
    fn maker(&self, at: Inst, vreg: VReg) -> String {
        let defs = self.mir.operands(at).iter().filter(|op| op.kind != OperandKind::Use);
        let defs: Vec<VReg> = defs.map(|op| op.vreg).collect();
        // What a uniform or a lookup is of would hide the rest; a recipe says it.
        let text = self.text(at.0);
        let text = text.split(" Word(").next().unwrap_or_default();
        match defs.iter().position(|&def| def == vreg) {
            Some(index) if defs.len() > 1 => format!("{text} [{index}]"),
            _ => text.to_owned(),
        }
    }

    fn decisions(&self, report: &Report) -> Vec<DecisionOf> {
        let mut decisions: Vec<_> = report.decisions.iter().collect();
        decisions.sort_by_key(|decision| decision.at);
        decisions.truncate(MAX_DECISIONS);
        let others = |list: &[Candidate]| {
            list.iter().map(|c| Other { value: self.value(c.vreg), score: Score::of(c) }).collect()
        };
        let form = |decision: &Decision| DecisionOf {
            place: self.place(decision.at.0),
            reason: decision.reason.name(),
            value: self.value(decision.chosen.vreg),
            next: match decision.reason {
                Reason::FullAfter => self.next(Point::After(decision.at), decision.chosen.vreg),
                _ => self.next(Point::Before(decision.at), decision.chosen.vreg),
            },
            memory: decision.chosen.back == Return::Memory,
            score: Score::of(&decision.chosen),
            rejected: decision.rejected,
            others: others(&decision.others),
        };
        decisions.into_iter().map(form).collect()
    }

    fn recomputed(&self, allocation: &Allocation) -> Vec<Recomputed> {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for (_, edit) in &allocation.edits {
            let what = match *edit {
                Edit::Recompute { recipe, .. } => self.recipe(recipe),
                Edit::Repeat { inst, .. } => shortened(&self.text(inst.0)),
                _ => continue,
            };
            *times.entry(what).or_default() += 1;
        }
        let mut list: Vec<Recomputed> =
            times.into_iter().map(|(recipe, times)| Recomputed { recipe, times }).collect();
        list.sort_by_key(|entry| std::cmp::Reverse(entry.times));
        list
    }

    fn obstacle(&self, inst: u32, points: &[PointOf]) -> Obstacle {
        let point = Point::Before(Inst(inst));
        let mut longest = self.live_values(point, self.lives.live_at(point));
        let read_here = |live: &LiveValue| live.next.is_some_and(|next| next.place.inst == inst);
        longest.retain(|live| live.value.again.is_none() && !read_here(live));
        let needed = points.get(inst as usize).map_or(0, |point| point.firm);
        longest.truncate(needed.saturating_sub(self.registers) as usize + SPARE_CHOICES);
        Obstacle { place: self.place(inst), needed, longest }
    }
}

impl Score {
    fn of(candidate: &Candidate) -> Score {
        Score { score: candidate.score, distance: candidate.distance, cost: candidate.cost }
    }
}

/// The first of the largest numbers.
fn first_max(numbers: impl Iterator<Item = u32>) -> u32 {
    let best = numbers.enumerate().max_by_key(|&(at, number)| (number, std::cmp::Reverse(at)));
    best.map_or(0, |(at, _)| at as u32)
}

/// The text of an instruction without operands that say nothing (`_` stands for a register).
fn shortened(text: &str) -> String {
    let text = text.trim_end_matches([' ', ',', '_']);
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'static str,
    results: Vec<ResultForm<'a>>,
}

#[derive(Serialize)]
struct ResultForm<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    explanation: Option<&'a Explanation>,
}

/// All results as one object, ending in a line feed.
pub fn report(results: &[CompileResult]) -> String {
    let whole = Whole { schema: SCHEMA, results: results.iter().map(form).collect() };
    // Strings and numbers only: nothing here can fail to be written.
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

fn form(result: &CompileResult) -> ResultForm<'_> {
    ResultForm { head: Head::of(result), explanation: result.explanation.as_ref() }
}
