//! `kempe explain`: where the registers go, as a chart and lists for people.
//!
//! What is shown is bounded (the constants below) unless `--all` asks for everything. Plain characters and no colours, so that
//! it can be kept and compared.

use crate::Exit;
use crate::args::{Explain, ExplainFormat};
use crate::compile::{code_options, complain, exit_of, front_options, limits, source};
use crate::{io, table};
use kempe::Variant;
use kempe::compile::{CompileResult, Keep, Options};
use kempe::explain::{
    Attempt, DecisionOf, Edits, Explanation, LOOP_DISTANCE, LiveValue, Next, Obstacle, Outcome, Place, Value,
};
use std::fmt::Write;

/// Rows of the chart.
const ROWS: usize = 32;
/// Characters of the longest bar.
const BAR: usize = 36;
/// Characters of a source line in the chart.
const SOURCE: usize = 34;
/// Live values of the peak.
const VALUES: usize = 40;
/// Decisions, and rejected candidates of each.
const DECISIONS: usize = 10;
const CANDIDATES: usize = 3;
/// Values that were made again.
const RECIPES: usize = 8;
/// Values in the way of a step.
const OBSTACLES: usize = 12;
/// Places with the most copies and swaps.
const COPIES: usize = 5;

pub fn explain(args: &Explain) -> Exit {
    let options = Options {
        targets: args.target.clone(),
        front: front_options(&args.front),
        code: code_options(&args.code),
        keep: Keep { explanation: true, ..Keep::default() },
        limits: limits(&args.limits),
    };
    let results = kempe::compile::compile(&source(&args.file, &args.front), &options);
    complain(&results);
    let text = match args.format {
        ExplainFormat::Json => kempe::explain::report(&results),
        ExplainFormat::Text => {
            let parts: Vec<String> = results.iter().filter_map(|result| shown(result, args)).collect();
            parts.join("\n")
        }
    };
    let exit = results.iter().map(|r| exit_of(r.status)).max().unwrap_or(Exit::Fine);
    match io::out(text.as_bytes()) {
        Ok(()) => exit,
        Err(message) => {
            eprintln!("error: {message}");
            exit.max(Exit::Wrong)
        }
    }
}

/// One result; nothing if it did not come to machine code.
fn shown(result: &CompileResult, args: &Explain) -> Option<String> {
    let explanation = result.explanation.as_ref()?;
    let shown = match args.attempt {
        Some(threads) => explanation.attempts.iter().rfind(|attempt| attempt.threads == threads),
        None => explanation.taken().or(explanation.attempts.last()),
    };
    let variant = if result.variant == Variant::Render { "" } else { " binning" };
    let mut page = Page { out: String::new(), explanation, all: args.all };
    page.line(&format!("{} {} {}{variant}", result.file, result.entry, result.target));
    page.attempts();
    match shown {
        Some(attempt) => page.attempt(attempt),
        None => page.line("There is no attempt with that many threads."),
    }
    Some(page.out)
}

struct Page<'a> {
    out: String,
    explanation: &'a Explanation,
    all: bool,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        self.line(text);
    }

    /// Says how much of a list is left out.
    fn rest(&mut self, shown: usize, all: usize) {
        if shown < all {
            self.line(&format!("  … and {} more (--all)", all - shown));
        }
    }

    fn bound(&self, most: usize) -> usize {
        if self.all { usize::MAX } else { most }
    }

    /// A line for everything that was tried.
    fn attempts(&mut self) {
        let mut rows = vec![words(&[
            "threads",
            "",
            "registers",
            "needed",
            "spills",
            "fills",
            "made again",
            "copies",
            "swaps",
            "cycles",
        ])];
        for attempt in &self.explanation.attempts {
            let outcome = match attempt.outcome {
                Outcome::Taken => "taken",
                Outcome::NotTaken => "not taken",
                Outcome::DoesNotFit => "does not fit",
            };
            let Edits { spills, fills, recomputed, copies, swaps } = attempt.edits;
            let mut row = vec![attempt.threads.to_string(), outcome.to_owned()];
            row.extend([attempt.registers, attempt.peak.needed].map(|n| n.to_string()));
            if attempt.outcome != Outcome::DoesNotFit {
                row.extend([spills, fills, recomputed, copies, swaps].map(|n| n.to_string()));
                row.push(format!("{:.0}", attempt.cost));
            }
            rows.push(row);
        }
        self.indented(&table::align(&rows, 2));
    }

    fn indented(&mut self, text: &str) {
        for line in text.lines() {
            self.line(&format!("  {line}"));
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.chart(attempt);
        self.peak(attempt);
        self.decisions(attempt);
        self.recomputed(attempt);
        self.copies(attempt);
        self.advice(attempt);
    }

    fn chart(&mut self, attempt: &Attempt) {
        let rows = rows_of(attempt, self.bound(ROWS));
        let peak = attempt.peak.needed;
        // The step above is always in sight; larger ones where something comes near them.
        let steps: Vec<u32> = {
            let registers = self.explanation.steps.iter().map(|step| step.registers);
            let least = registers.clone().min().unwrap_or(0);
            registers
                .chain([attempt.registers])
                .filter(|&n| n <= peak || n == least || n == attempt.registers)
                .collect()
        };
        let scale = Scale { whole: steps.iter().copied().chain([peak, 1]).max().unwrap_or(1), steps };
        let each = attempt.points.len().div_ceil(rows.len().max(1));
        self.heading(&format!(
            "registers needed before spilling, {} threads, {} instructions in their order",
            attempt.threads,
            attempt.points.len()
        ));
        self.line("  █ must be kept  ░ can be made again  ┊ limit of a step   ↓ stored ↑ loaded ↻ made again → copied ⇄ swapped");
        self.line(&format!("{:>7} {:<SOURCE$}      {}", "line", "", scale.ruler()));
        for row in &rows {
            let loops = "↺".repeat(row.depth.min(3) as usize);
            let source = clipped(self.source(attempt, row.place), SOURCE - loops.chars().count());
            let number = self.number(row.place);
            let label = format!("{loops}{source}");
            self.line(&format!(
                "{number:>7} {label:<SOURCE$} {:>4} {} {}",
                row.needed,
                scale.bar(row.firm, row.needed),
                marks(&row.edits)
            ));
        }
        if rows.len() > 1 && attempt.points.len() > rows.len() && each > 1 && !self.all {
            self.line("        Each row stands for a stretch of instructions; its line is that of the one that needs most.");
        }
    }

    /// The text of a line, or of the instruction where there is none.
    fn source<'a>(&'a self, attempt: &'a Attempt, place: Place) -> &'a str {
        match self.explanation.text(place.line) {
            "" => attempt.points.get(place.inst as usize).map_or("", |point| &point.text),
            text => text,
        }
    }

    /// The number of a line, or of the instruction where none is known.
    fn number(&self, place: Place) -> String {
        match place.line {
            0 => format!("i{}", place.inst),
            line => line.to_string(),
        }
    }

    fn at(&self, place: Place) -> String {
        match place.line {
            0 => format!("i{}", place.inst),
            line => match self.explanation.files.get(place.file as usize).filter(|_| place.file != 0) {
                Some(file) => format!("{file}:{line}"),
                None => format!("line {line}"),
            },
        }
    }

    fn peak(&mut self, attempt: &Attempt) {
        let peak = &attempt.peak;
        let side = if peak.after { "after" } else { "at" };
        self.heading(&format!(
            "peak: {} registers {side} {} (instruction {}: {}), {} values",
            peak.needed,
            self.at(peak.place),
            peak.place.inst,
            peak.text.split(" Word(").next().unwrap_or_default(),
            peak.values.len()
        ));
        let most = self.bound(VALUES);
        let rows = self.live(&peak.values, most);
        self.indented(&rows);
        self.rest(most.min(peak.values.len()), peak.values.len());
    }

    fn live(&self, values: &[LiveValue], most: usize) -> String {
        let mut rows = vec![words(&["value", "made by", "at", "read next at", "steps", ""])];
        for live in values.iter().take(most) {
            let value = &live.value;
            let (next, after) = match live.next {
                Some(next) if next.steps == 0 && next.loops == 0 => ("here".to_owned(), String::new()),
                Some(next) => (self.at(next.place), away(next)),
                None => ("never".to_owned(), String::new()),
            };
            let again = value.again.as_ref().map_or("", |_| "can be made again");
            let note = if live.dies { "last read here" } else { again };
            rows.push(vec![
                name(value),
                clipped(&value.made_by, 40),
                value.defined.map_or_else(String::new, |place| self.at(place)),
                next,
                after,
                note.to_owned(),
            ]);
        }
        table::align(&rows, 6)
    }

    fn decisions(&mut self, attempt: &Attempt) {
        let memory = attempt.decisions.iter().filter(|decision| decision.memory).count();
        if attempt.decisions.is_empty() {
            return;
        }
        let again = attempt.decisions.len() - memory;
        self.heading(&format!(
            "values that lost their register: {} times ({memory} to memory, {again} made again later)",
            attempt.decided
        ));
        self.line("  The highest score goes: instructions until the next read, for each cycle of getting the value back.");
        // Memory is what costs; the rest is listed after it.
        let most = self.bound(DECISIONS);
        let mut list: Vec<&DecisionOf> = attempt.decisions.iter().collect();
        list.sort_by_key(|decision| !decision.memory);
        for decision in list.iter().take(most) {
            self.decision(decision);
        }
        self.rest(most.min(list.len()), attempt.decided as usize);
    }

    fn decision(&mut self, decision: &DecisionOf) {
        let value = &decision.value;
        let made = value.defined.map_or_else(String::new, |place| format!(" of {}", self.at(place)));
        let why = match decision.reason {
            "full" => "",
            "full-after" => ", read there and not soon again",
            "entry" => ", not kept through what begins there",
            "arrangement" => ", to have the instruction to itself",
            _ => ", because everything is spilled",
        };
        let how = if decision.memory { "memory" } else { "made again" };
        let next = decision.next.map_or("never read again".to_owned(), |next| {
            format!("next read at {}, {} on", self.at(next.place), away(next))
        });
        let score = &decision.score;
        self.line(&format!(
            "  {}: {} ({}{made}){why}: {how}; {next}",
            self.at(decision.place),
            name(value),
            clipped(&value.made_by, 40)
        ));
        let mut text = format!("      score {}", ratio(score.score, score.distance, score.cost));
        let most = self.bound(CANDIDATES);
        let others: Vec<String> = (decision.others.iter().take(most))
            .map(|other| {
                let score = &other.score;
                format!("{} {}", name(&other.value), ratio(score.score, score.distance, score.cost))
            })
            .collect();
        if !others.is_empty() {
            let rest = decision.rejected as usize - others.len();
            let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            write!(text, "; kept: {}{rest}", others.join(", ")).unwrap_or_default();
        }
        self.line(&text);
    }

    fn recomputed(&mut self, attempt: &Attempt) {
        if attempt.recomputed.is_empty() {
            return;
        }
        self.heading(&format!("made again instead of loaded: {} times", attempt.edits.recomputed));
        let most = self.bound(RECIPES);
        for entry in attempt.recomputed.iter().take(most) {
            self.line(&format!("  {:>4} x {}", entry.times, entry.recipe));
        }
        self.rest(most.min(attempt.recomputed.len()), attempt.recomputed.len());
    }

    fn copies(&mut self, attempt: &Attempt) {
        let Edits { copies, swaps, .. } = attempt.edits;
        if copies + swaps == 0 {
            return;
        }
        self.heading(&format!("moved to another register: {copies} copies, {swaps} swaps"));
        let mut places: Vec<(u32, Place)> = Vec::new();
        for (inst, point) in attempt.points.iter().enumerate() {
            let moved = point.edits.copies + point.edits.swaps;
            if moved == 0 {
                continue;
            }
            let place = Place { inst: inst as u32, file: point.file, line: point.line };
            match places
                .iter_mut()
                .find(|(_, p)| place.line != 0 && (p.file, p.line) == (place.file, place.line))
            {
                Some(entry) => entry.0 += moved,
                None => places.push((moved, place)),
            }
        }
        places.sort_by_key(|&(moved, place)| (std::cmp::Reverse(moved), place.inst));
        let most = self.bound(COPIES);
        for &(moved, place) in places.iter().take(most) {
            let (at, text) = (self.at(place), self.explanation.text(place.line).to_owned());
            self.line(&format!("  {moved:>4} at {at:<8} {}", clipped(&text, 60)));
        }
        self.rest(most.min(places.len()), places.len());
    }

    /// What would save the step: about the attempt with the most threads that had to use memory, or did not fit.
    fn advice(&mut self, attempt: &Attempt) {
        let wanted = (self.explanation.attempts.iter())
            .filter(|other| other.obstacle.is_some() && other.threads >= attempt.threads)
            .max_by_key(|other| other.threads);
        let Some((wanted, obstacle)) = wanted.and_then(|wanted| Some((wanted, wanted.obstacle.as_ref()?)))
        else {
            let most = self.explanation.steps.first().is_none_or(|step| step.threads == attempt.threads);
            let left = attempt.registers.saturating_sub(attempt.peak.needed);
            if most && attempt.edits.recomputed == 0 {
                self.heading(&format!(
                    "nothing stands in the way: {left} of {} registers are never used",
                    attempt.registers
                ));
            } else if most {
                self.heading("nothing goes to memory: what is too much is made again");
            }
            return;
        };
        self.heading(&format!("what keeps it from {} threads without spills", wanted.threads));
        for line in self.obstacle(wanted, obstacle) {
            self.line(&format!("  {line}"));
        }
        let most = self.bound(OBSTACLES);
        let rows = self.live(&obstacle.longest, most);
        if !obstacle.longest.is_empty() {
            self.indented(&rows);
            self.rest(most.min(obstacle.longest.len()), obstacle.longest.len());
        }
        // The one that was taken may have had to use memory as well.
        if let Some(own) = attempt.obstacle.as_ref().filter(|_| wanted.threads != attempt.threads) {
            let (threads, registers, needed) = (attempt.threads, attempt.registers, own.needed);
            let at = self.at(own.place);
            self.line(&format!("  At {threads} threads {needed} of {registers} registers are needed at {at}, so that it spills too."));
        }
    }

    fn obstacle(&self, wanted: &Attempt, obstacle: &Obstacle) -> Vec<String> {
        let registers = wanted.registers;
        let mut lines = vec![format!(
            "{registers} registers are there, {} are needed at {}; {} of {} instructions need more than there are.",
            wanted.peak.needed,
            self.at(wanted.peak.place),
            wanted.over,
            wanted.points.len()
        )];
        let made_again = wanted.peak.needed.saturating_sub(wanted.peak.firm);
        let excess = obstacle.needed.saturating_sub(registers);
        if excess == 0 {
            lines.push(format!(
                "Without values that can be made again (uniforms, constants) {} would do: reading them late helps.",
                wanted.firm
            ));
        } else if made_again == 0 {
            lines.push("No value there can be made again: reading uniforms late does not help.".to_owned());
        } else {
            lines.push(format!(
                "{made_again} of these values can be made again, which is done by itself; {} remain at {}: reading uniforms late does not help.",
                obstacle.needed,
                self.at(obstacle.place)
            ));
        }
        if excess != 0 {
            lines.push(format!(
                "{excess} values fewer at {} would do there. These live longest without being read:",
                self.at(obstacle.place)
            ));
        }
        lines
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// The number of a value, as in `--emit mir`, behind its name: many values go by the name of one variable.
fn name(value: &Value) -> String {
    match value.name.as_str() {
        "" => format!("v{}", value.id),
        name => format!("{} v{}", clipped(name, 24), value.id),
    }
}

/// How far a read is.
fn away(next: Next) -> String {
    match next.loops {
        0 => next.steps.to_string(),
        1 => format!("a loop + {}", next.steps),
        n => format!("{n} loops + {}", next.steps),
    }
}

/// `12.0 = 240 / 20`
fn ratio(score: f32, distance: u32, cost: f32) -> String {
    let (loops, steps) = (distance / LOOP_DISTANCE, distance % LOOP_DISTANCE);
    match loops {
        0 => format!("{score:.1} = {steps}/{cost:.0}"),
        1 => format!("{score:.0} = (a loop + {steps})/{cost:.0}"),
        n => format!("{score:.0} = ({n} loops + {steps})/{cost:.0}"),
    }
}

fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// What the allocator put in: only what there is.
fn marks(edits: &Edits) -> String {
    let parts = [
        ('↓', edits.spills),
        ('↑', edits.fills),
        ('↻', edits.recomputed),
        ('→', edits.copies),
        ('⇄', edits.swaps),
    ];
    let parts = parts.iter().filter(|(_, n)| *n != 0).map(|(mark, n)| format!("{mark}{n}"));
    parts.collect::<Vec<_>>().join(" ")
}

/// A stretch of instructions.
struct Row {
    first: usize,
    last: usize,
    /// The instruction that needs most.
    place: Place,
    depth: u32,
    needed: u32,
    firm: u32,
    edits: Edits,
}

/// Runs of one line, or, where these are more than `most`, stretches of the same length.
fn rows_of(attempt: &Attempt, most: usize) -> Vec<Row> {
    let points = &attempt.points;
    let same = |a: usize, b: usize| {
        let (a, b) = (&points[a], &points[b]);
        a.line != 0 && (a.file, a.line, a.depth) == (b.file, b.line, b.depth)
    };
    let runs = 1 + (1..points.len()).filter(|&at| !same(at - 1, at)).count();
    let each = points.len().div_ceil(most.max(1)).max(1);
    let mut rows: Vec<Row> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let joins = match rows.last() {
            None => false,
            Some(_) if runs <= most => same(at - 1, at),
            Some(row) => at - row.first < each,
        };
        if !joins {
            let place = Place { inst: at as u32, file: point.file, line: point.line };
            let (depth, needed, firm) = (point.depth, point.needed, point.firm);
            rows.push(Row { first: at, last: at, place, depth, needed, firm, edits: Edits::default() });
        }
        let Some(row) = rows.last_mut() else { continue };
        row.last = at;
        row.edits.add(&point.edits);
        row.depth = row.depth.max(point.depth);
        row.firm = row.firm.max(point.firm);
        if point.needed > row.needed {
            row.needed = point.needed;
            row.place = Place { inst: at as u32, file: point.file, line: point.line };
        }
    }
    rows
}

/// How registers become characters.
struct Scale {
    whole: u32,
    /// Limits, each marked.
    steps: Vec<u32>,
}

impl Scale {
    /// The number of characters for so many registers, at least one for what is not nothing.
    fn cells(&self, registers: u32) -> usize {
        let cells = (registers as usize * BAR).div_ceil(self.whole.max(1) as usize);
        cells.min(BAR)
    }

    /// A limit is the line behind the last register that fits.
    fn is_step(&self, cell: usize) -> bool {
        self.steps.iter().any(|&step| self.cells(step) == cell)
    }

    fn bar(&self, firm: u32, needed: u32) -> String {
        let (firm, needed) = (self.cells(firm), self.cells(needed));
        let cell = |at: usize| {
            let limit = self.is_step(at);
            match at {
                _ if at < firm => {
                    if limit {
                        '▌'
                    } else {
                        '█'
                    }
                }
                _ if at < needed => {
                    if limit {
                        '▒'
                    } else {
                        '░'
                    }
                }
                _ => {
                    if limit {
                        '┊'
                    } else {
                        ' '
                    }
                }
            }
        };
        (0..=BAR).map(cell).collect()
    }

    /// The numbers of the limits above their marks.
    fn ruler(&self) -> String {
        let mut text = String::new();
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        steps.dedup();
        for step in steps {
            let at = self.cells(step);
            let number = step.to_string();
            let pad = at.saturating_sub(text.chars().count());
            text.push_str(&" ".repeat(pad));
            text.push_str(&number);
        }
        text
    }
}
