//! Two sets of results, pair by pair.
//!
//! Only pairs in which both sides have code count for figures. What has code on one side alone is gained or lost and
//! comes first: a compiler that gives up on its hard shaders has better figures.

use crate::figures::{Mean, mean, median};
use crate::load::{Results, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Which way a statistic is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    Lower,
    Higher,
    /// Says what the code is like, not how good.
    Neither,
}

/// The statistics, in the order to show them. Those that are not here are compared last, as if lower were better.
const STATISTICS: [(&str, Better); 19] = [
    ("instructions", Better::Lower),
    ("inst_and_stalls", Better::Lower),
    ("cycles.thread", Better::Lower),
    ("cycles.edits", Better::Lower),
    ("cycles.edits_predicted", Better::Neither),
    ("threads", Better::Higher),
    ("spills", Better::Lower),
    ("fills", Better::Lower),
    ("spills+fills", Better::Lower),
    ("scratch", Better::Lower),
    ("recomputed", Better::Lower),
    ("max_temps", Better::Lower),
    ("uniforms", Better::Lower),
    ("loops", Better::Neither),
    ("sfu_stalls", Better::Lower),
    ("nops", Better::Lower),
    ("code_bytes", Better::Lower),
    (TIME, Better::Lower),
    ("executed", Better::Lower),
];

/// CPU time of the compile: never the same twice, so it is only judged when it is asked for by name.
pub const TIME: &str = "compile_us";

/// Whether a collection and a stage belong to a group.
type Filter = Box<dyn Fn(&str, &str) -> bool>;

fn better(stat: &str) -> Better {
    STATISTICS.iter().find(|row| row.0 == stat).map_or(Better::Lower, |row| row.1)
}

/// The names of the statistics that are judged.
pub fn statistics_with_budget() -> impl Iterator<Item = &'static str> {
    STATISTICS.iter().filter(|row| row.1 != Better::Neither).map(|row| row.0)
}

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only this target.
    pub target: Option<String>,
    /// Only these stages; empty: all.
    pub stages: Vec<String>,
    /// Only these collections; empty: all.
    pub collections: Vec<String>,
    /// Figures only of pairs with the same number of loops.
    pub equal_loops: bool,
    /// Number of extremes of each kind.
    pub extremes: usize,
}

/// What changed for one shader.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub file: String,
    pub entry: String,
    pub before: f64,
    pub after: f64,
}

impl Change {
    /// Relative change; `None` from zero.
    pub fn relative(&self) -> Option<f64> {
        (self.before != 0.0).then(|| (self.after - self.before) / self.before)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No pair differs.
    Unchanged,
    /// Too few differ to say.
    Few,
    /// The whole interval is on the good side.
    Helped,
    /// The whole interval is on the bad side.
    Hurt,
    /// The interval holds zero, or that of the values and that of the relative changes disagree.
    Inconclusive,
    /// It differs in one direction, and neither is better.
    Changed,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unchanged => "unchanged",
            Verdict::Few => "too few",
            Verdict::Helped => "helped",
            Verdict::Hurt => "HURT",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Changed => "changed",
        }
    }
}

/// One statistic over one group of pairs.
#[derive(Clone, PartialEq, Debug)]
pub struct Statistic {
    pub name: String,
    pub better: Better,
    pub pairs: usize,
    pub before: f64,
    pub after: f64,
    pub median_before: f64,
    pub median_after: f64,
    /// Pairs that differ, and how.
    pub affected: usize,
    pub helped: usize,
    pub hurt: usize,
    /// Geometric mean of after / before and the number of pairs it is over: those without zeros.
    pub geomean: Option<(f64, usize)>,
    /// Change of the pairs that differ: of the value, and relative.
    pub change: Option<Mean>,
    pub relative: Option<Mean>,
    pub verdict: Verdict,
    /// The largest changes for the better and for the worse: relative, absolute.
    pub best: [Vec<Change>; 2],
    pub worst: [Vec<Change>; 2],
}

impl Statistic {
    /// Relative change of the total; `None` from zero.
    pub fn total(&self) -> Option<f64> {
        (self.before != 0.0).then(|| (self.after - self.before) / self.before)
    }
}

/// A set of pairs that is looked at as one.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// `all`, `stage NAME` or `collection NAME`.
    pub name: String,
    pub pairs: usize,
    /// Pairs that figures are of.
    pub compared: usize,
    pub gained: usize,
    pub lost: usize,
    pub statistics: Vec<Statistic>,
}

/// A shader that has code on one side only.
#[derive(Clone, PartialEq, Debug)]
pub struct OneSided {
    pub file: String,
    pub entry: String,
    pub stage: String,
    pub variant: String,
    pub collection: String,
    /// What the other side says.
    pub message: String,
}

/// Everything about one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    pub target: String,
    pub gained: Vec<OneSided>,
    pub lost: Vec<OneSided>,
    /// Shaders without code on both sides.
    pub neither: usize,
    /// Pairs left out because their numbers of loops differ.
    pub other_loops: usize,
    pub groups: Vec<Group>,
}

/// A comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    pub before: String,
    pub after: String,
    pub sections: Vec<Section>,
}

/// Compares two sets of results.
///
/// # Errors
/// When it is not clear what belongs together.
pub fn compare(before: &Results, after: &Results, options: &Options) -> Result<Comparison, String> {
    let targets = |results: &Results| -> BTreeSet<String> {
        let wanted = |t: &&Row| options.target.as_ref().is_none_or(|target| t.target == *target);
        results.rows.iter().filter(wanted).map(|row| row.target.clone()).collect()
    };
    let sections: Vec<String> = match (before.table, after.table) {
        (true, true) => vec![String::new()],
        (false, false) => targets(before).union(&targets(after)).cloned().collect(),
        _ => {
            let run = if before.table { after } else { before };
            let all: Vec<String> = targets(run).into_iter().collect();
            if all.len() > 1 {
                let all = all.join(", ");
                return Err(format!(
                    "{} has several targets ({all}): say with -t which one the table is of",
                    run.name
                ));
            }
            all
        }
    };
    if sections.is_empty() {
        return Err("there are no results to compare".to_owned());
    }
    let mut done = Vec::new();
    for target in sections {
        let wanted = |row: &&Row| {
            (row.target.is_empty() || row.target == target)
                && (options.stages.is_empty() || row.stage.is_empty() || options.stages.contains(&row.stage))
                && (options.collections.is_empty() || options.collections.contains(&row.collection))
        };
        let a: Vec<&Row> = before.rows.iter().filter(wanted).collect();
        let b: Vec<&Row> = after.rows.iter().filter(wanted).collect();
        let by_suffix = before.table != after.table;
        done.push(section(target.clone(), pairs(&a, &b, by_suffix), options));
    }
    Ok(Comparison { before: before.name.clone(), after: after.name.clone(), sections: done })
}

/// What belongs together; at least one side is there.
type Pair<'a> = (Option<&'a Row>, Option<&'a Row>);

/// Pairs in the order of `before`, then what only `after` has.
fn pairs<'a>(before: &[&'a Row], after: &[&'a Row], by_suffix: bool) -> Vec<Pair<'a>> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    // Rows of `after` by file. The map is only asked, never walked.
    let mut files: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, row) in after.iter().enumerate() {
        let key = if by_suffix { name(&row.file) } else { row.path.clone() };
        files.entry(key).or_default().push(index);
    }
    let mut partner: Vec<Option<usize>> = vec![None; before.len()];
    let mut taken = vec![false; after.len()];
    // A result without entry point speaks for all of its file; it takes what nobody else wants.
    for exact in [true, false] {
        for (index, row) in before.iter().enumerate() {
            if partner[index].is_some() {
                continue;
            }
            let key = if by_suffix { name(&row.file) } else { row.path.clone() };
            let fits = |&&other: &&usize| {
                let candidate = after[other];
                let same_file =
                    !by_suffix || row.path == candidate.path || ends_alike(&row.file, &candidate.file);
                let stage = row.stage == candidate.stage
                    || !exact && (row.stage.is_empty() || candidate.stage.is_empty());
                let entry = row.entry == candidate.entry
                    || !exact && (row.entry.is_empty() || candidate.entry.is_empty());
                !taken[other] && same_file && stage && entry && row.variant == candidate.variant
            };
            let found = files.get(&key).and_then(|all| all.iter().find(fits).copied());
            if let Some(other) = found {
                taken[other] = true;
                partner[index] = Some(other);
            }
        }
    }
    let mut all: Vec<Pair> =
        before.iter().zip(&partner).map(|(a, b)| (Some(*a), b.map(|b| after[b]))).collect();
    all.extend(after.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(b, _)| (None, Some(*b))));
    all
}

/// One path is the other or its end, in whole parts and at least two of them: many folders have a `copy.comp`.
fn ends_alike(a: &str, b: &str) -> bool {
    let within = |long: &str, short: &str| {
        let short = short.trim_start_matches("./");
        short.contains('/')
            && long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    within(a, b) || within(b, a)
}

fn section(target: String, pairs: Vec<Pair>, options: &Options) -> Section {
    let mut section = Section {
        target,
        gained: Vec::new(),
        lost: Vec::new(),
        neither: 0,
        other_loops: 0,
        groups: Vec::new(),
    };
    let mut both: Vec<(&Row, &Row)> = Vec::new();
    for (a, b) in pairs {
        let code = |row: Option<&'_ Row>| row.is_some_and(Row::ok);
        match (a, b) {
            (Some(a), Some(b)) if a.ok() && b.ok() => both.push((a, b)),
            (a, b) if code(b) => section.gained.extend(b.map(|row| one_sided(row, a))),
            (a, b) if code(a) => section.lost.extend(a.map(|row| one_sided(row, b))),
            _ => section.neither += 1,
        }
    }
    let mut names: Vec<(String, Filter)> = vec![("all".to_owned(), Box::new(|_: &str, _: &str| true))];
    let sided = section.gained.iter().chain(&section.lost);
    let stages: BTreeSet<&str> =
        both.iter().map(|(a, _)| a.stage.as_str()).chain(sided.clone().map(|s| s.stage.as_str())).collect();
    let collections: BTreeSet<&str> =
        both.iter().map(|(a, _)| a.collection.as_str()).chain(sided.map(|s| s.collection.as_str())).collect();
    for stage in stages {
        let wanted = stage.to_owned();
        names.push((format!("stage {stage}"), Box::new(move |s, _| s == wanted)));
    }
    for collection in collections {
        let wanted = collection.to_owned();
        names.push((format!("collection {collection}"), Box::new(move |_, c| c == wanted)));
    }
    let same_loops =
        |(a, b): &&(&Row, &Row)| !options.equal_loops || a.stats.get("loops") == b.stats.get("loops");
    let mut groups = Vec::new();
    for (name, holds) in names {
        let of_group: Vec<&(&Row, &Row)> =
            both.iter().filter(|(a, _)| holds(&a.stage, &a.collection)).collect();
        let compared: Vec<(&Row, &Row)> = of_group.iter().copied().filter(same_loops).copied().collect();
        let count = |list: &[OneSided]| list.iter().filter(|s| holds(&s.stage, &s.collection)).count();
        groups.push(Group {
            name,
            pairs: of_group.len(),
            compared: compared.len(),
            gained: count(&section.gained),
            lost: count(&section.lost),
            statistics: statistics(&compared, options.extremes),
        });
    }
    section.other_loops = groups.first().map_or(0, |all| all.pairs - all.compared);
    section.groups = groups;
    section
}

fn one_sided(row: &Row, other: Option<&Row>) -> OneSided {
    OneSided {
        file: row.file.clone(),
        entry: row.entry.clone(),
        stage: row.stage.clone(),
        variant: row.variant.clone(),
        collection: row.collection.clone(),
        message: other.map_or("not there".to_owned(), |other| format!("{}: {}", other.status, other.message)),
    }
}

fn statistics(pairs: &[(&Row, &Row)], extremes: usize) -> Vec<Statistic> {
    let mut values: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
    for (a, b) in pairs {
        for (stat, before) in &a.stats {
            if let Some(after) = b.stats.get(stat) {
                values.entry(stat).or_default().push(Change {
                    file: b.file.clone(),
                    entry: if b.entry.is_empty() { a.entry.clone() } else { b.entry.clone() },
                    before: *before,
                    after: *after,
                });
            }
        }
    }
    let place = |stat: &str| STATISTICS.iter().position(|row| row.0 == stat).unwrap_or(STATISTICS.len());
    let mut all: Vec<Statistic> =
        values.into_iter().map(|(name, changes)| statistic(name, &changes, extremes)).collect();
    all.sort_by_key(|s| place(&s.name));
    all
}

fn statistic(name: &str, changes: &[Change], extremes: usize) -> Statistic {
    let better = better(name);
    let sign = if better == Better::Higher { -1.0 } else { 1.0 };
    let list = |f: fn(&Change) -> f64| changes.iter().map(f).collect::<Vec<f64>>();
    let (before, after) = (list(|c| c.before), list(|c| c.after));
    let affected: Vec<&Change> = changes.iter().filter(|c| c.before != c.after).collect();
    let worse = |c: &&&Change| (c.after - c.before) * sign > 0.0;
    let hurt = affected.iter().filter(worse).count();
    let logs: Vec<f64> = changes
        .iter()
        .filter(|c| c.before > 0.0 && c.after > 0.0)
        .map(|c| (c.after / c.before).ln())
        .collect();
    let geomean =
        (!logs.is_empty()).then(|| ((logs.iter().sum::<f64>() / logs.len() as f64).exp(), logs.len()));
    let change = mean(&affected.iter().map(|c| c.after - c.before).collect::<Vec<f64>>());
    let relative = mean(&affected.iter().filter_map(|c| c.relative()).collect::<Vec<f64>>());
    let top = |bad: bool, size: &dyn Fn(&Change) -> Option<f64>| {
        let mut sized: Vec<(f64, &Change)> = affected
            .iter()
            .filter_map(|c| Some((size(c)? * sign * if bad { 1.0 } else { -1.0 }, *c)))
            .collect();
        sized.retain(|(size, _)| *size > 0.0);
        // Largest first; the order of the shaders decides between equals.
        sized.sort_by(|a, b| b.0.total_cmp(&a.0));
        sized.into_iter().take(extremes).map(|(_, c)| c.clone()).collect::<Vec<Change>>()
    };
    let both = |bad: bool| [top(bad, &Change::relative), top(bad, &|c: &Change| Some(c.after - c.before))];
    Statistic {
        name: name.to_owned(),
        better,
        pairs: changes.len(),
        before: before.iter().sum(),
        after: after.iter().sum(),
        median_before: median(&before),
        median_after: median(&after),
        affected: affected.len(),
        helped: affected.len() - hurt,
        hurt,
        geomean,
        verdict: verdict(affected.len(), change, relative, better),
        change,
        relative,
        best: both(false),
        worst: both(true),
    }
}

fn verdict(affected: usize, change: Option<Mean>, relative: Option<Mean>, better: Better) -> Verdict {
    let Some(change) = change else {
        return if affected == 0 { Verdict::Unchanged } else { Verdict::Few };
    };
    // Without enough pairs that start above zero the values alone decide.
    let relative = relative.unwrap_or(change);
    let verdict = |up: bool| match better {
        Better::Neither => Verdict::Changed,
        Better::Lower if up => Verdict::Hurt,
        Better::Higher if !up => Verdict::Hurt,
        _ => Verdict::Helped,
    };
    if change.low > 0.0 && relative.low > 0.0 {
        verdict(true)
    } else if change.high < 0.0 && relative.high < 0.0 {
        verdict(false)
    } else {
        Verdict::Inconclusive
    }
}

/// How much worse a statistic may get.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Budget {
    /// For every statistic but the time: a relative change.
    pub all: Option<f64>,
    /// For these statistics.
    pub named: BTreeMap<String, f64>,
}

/// What is beyond the budget, one line each, over all pairs of a target. Without a budget whatever is HURT is beyond
/// it; with one, whatever is HURT by more on average, or has a total that is worse by more.
pub fn beyond(comparison: &Comparison, budget: &Budget) -> Vec<String> {
    let mut found = Vec::new();
    for section in &comparison.sections {
        let target = if section.target.is_empty() { "" } else { &format!("{}: ", section.target) };
        if !section.lost.is_empty() {
            found.push(format!("{target}{} lost", section.lost.len()));
        }
        for s in section.groups.first().map_or(&[][..], |all| &all.statistics) {
            let named = budget.named.get(&s.name);
            if s.better == Better::Neither || s.name == TIME && named.is_none() {
                continue;
            }
            let sign = if s.better == Better::Higher { -1.0 } else { 1.0 };
            let is_hurt = s.verdict == Verdict::Hurt;
            let (mean, total) = (s.relative.map(|m| m.mean * sign), s.total().map(|t| t * sign));
            let bad = match named.copied().or(budget.all) {
                None => is_hurt,
                // From zero every growth is beyond it.
                Some(limit) => {
                    is_hurt && mean.is_none_or(|m| m > limit)
                        || total.map_or(s.after > s.before && sign > 0.0, |t| t > limit)
                }
            };
            if bad {
                found.push(format!(
                    "{target}{} {}",
                    s.name,
                    if is_hurt { "HURT" } else { "beyond the budget" }
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_alike_in_whole_parts() {
        assert!(ends_alike("a/b/c.spv", "b/c.spv") && ends_alike("./b/c.spv", "a/b/c.spv"));
        assert!(ends_alike("b/c.spv", "b/c.spv"));
        for (a, b) in [("a/b/c.spv", "c.spv"), ("ab/c.spv", "b/c.spv"), ("a/c.spv", "b/c.spv")] {
            assert!(!ends_alike(a, b) && !ends_alike(b, a), "{a} {b}");
        }
    }

    fn row(file: &str, stage: &str, entry: &str, status: &str) -> Row {
        Row {
            file: file.to_owned(),
            path: file.to_owned(),
            collection: "c".to_owned(),
            entry: entry.to_owned(),
            stage: stage.to_owned(),
            variant: "render".to_owned(),
            target: "t".to_owned(),
            status: status.to_owned(),
            message: String::new(),
            stats: BTreeMap::new(),
        }
    }

    #[test]
    fn a_failure_without_entry_point_stands_for_its_file() {
        let before = [
            row("x", "compute", "main", "ok"),
            row("y", "compute", "a", "ok"),
            row("y", "compute", "b", "ok"),
        ];
        let after =
            [row("y", "compute", "b", "ok"), row("y", "compute", "a", "ok"), row("x", "", "", "error")];
        let of =
            |rows: &[Row]| Results { name: String::new(), rows: rows.to_vec(), table: false, torn: false };
        let c = compare(&of(&before), &of(&after), &Options::default()).unwrap();
        let s = &c.sections[0];
        assert_eq!((s.groups[0].pairs, s.lost.len(), s.gained.len(), s.neither), (2, 1, 0, 0));
        assert_eq!((s.lost[0].file.as_str(), s.lost[0].message.as_str()), ("x", "error: "));
        assert_eq!(beyond(&c, &Budget::default()), ["t: 1 lost"]);
    }

    #[test]
    fn verdicts() {
        let m = |low: f64, high: f64| Some(Mean { mean: (low + high) / 2.0, low, high });
        let up = m(1.0, 2.0);
        assert_eq!(verdict(0, None, None, Better::Lower), Verdict::Unchanged);
        assert_eq!(verdict(2, None, None, Better::Lower), Verdict::Few);
        assert_eq!(verdict(9, up, m(0.1, 0.2), Better::Lower), Verdict::Hurt);
        assert_eq!(verdict(9, up, None, Better::Lower), Verdict::Hurt);
        assert_eq!(verdict(9, up, m(0.1, 0.2), Better::Higher), Verdict::Helped);
        assert_eq!(verdict(9, up, m(-0.1, 0.2), Better::Lower), Verdict::Inconclusive);
        assert_eq!(verdict(9, m(-2.0, -1.0), m(-0.2, -0.1), Better::Lower), Verdict::Helped);
        assert_eq!(verdict(9, m(-2.0, -1.0), m(-0.2, -0.1), Better::Neither), Verdict::Changed);
    }
}
