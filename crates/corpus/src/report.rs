//! A comparison as text, Markdown or JSON. All three say the same figures; lists of shaders are cut in the first two,
//! and say so.

use crate::compare::{Change, Comparison, Group, OneSided, Section, Statistic, TIME};
use crate::figures::Mean;
use serde_json::{Value, json};

/// Most shaders of a list in text.
const MAX_LIST: usize = 20;

/// Statistics that are shown for stages and collections in text; JSON has all.
const OF_GROUPS: [&str; 5] = ["instructions", "inst_and_stalls", "spills+fills", "threads", TIME];

const HEAD: [&str; 12] = [
    "statistic",
    "before",
    "after",
    "change",
    "affected",
    "helped",
    "HURT",
    "geomean",
    "mean change",
    "95 % interval",
    "verdict",
    "median",
];

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{:+.2} %", v * 100.0))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn interval(mean: Option<Mean>) -> String {
    mean.map_or("-".to_owned(), |m| format!("{} .. {}", percent(Some(m.low)), percent(Some(m.high))))
}

fn cells(s: &Statistic) -> Vec<String> {
    vec![
        s.name.clone(),
        number(s.before),
        number(s.after),
        percent(s.total()),
        format!("{}/{}", s.affected, s.pairs),
        s.helped.to_string(),
        s.hurt.to_string(),
        s.geomean.map_or("-".to_owned(), |(ratio, _)| format!("{ratio:.4}")),
        percent(s.relative.map(|m| m.mean)),
        interval(s.relative),
        s.verdict.name().to_owned(),
        format!("{} -> {}", number(s.median_before), number(s.median_after)),
    ]
}

/// What makes text of either kind.
struct Style {
    markdown: bool,
}

impl Style {
    fn heading(&self, level: usize, text: &str) -> String {
        if self.markdown { format!("\n{} {text}\n\n", "#".repeat(level)) } else { format!("\n{text}\n") }
    }

    fn item(&self, text: &str) -> String {
        if self.markdown { format!("* {text}\n") } else { format!("  {text}\n") }
    }

    fn table(&self, head: &[&str], rows: &[Vec<String>]) -> String {
        let mut out = String::new();
        if self.markdown {
            out.push_str(&format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len())));
            for row in rows {
                out.push_str(&format!("| {} |\n", row.join(" | ").replace("HURT", "**HURT**")));
            }
            return out;
        }
        let width = |i: usize| {
            let of = |text: &str| text.chars().count();
            rows.iter().map(|row| of(&row[i])).chain([of(head[i])]).max().unwrap_or_default()
        };
        let mut line = |row: &[&str]| {
            let mut text = String::from(" ");
            for (i, cell) in row.iter().enumerate() {
                let gap = " ".repeat(width(i).saturating_sub(cell.chars().count()));
                // Names to the left, figures to the right.
                text.push_str(&if i == 0 { format!(" {cell}{gap}") } else { format!("  {gap}{cell}") });
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(head);
        for row in rows {
            line(&row.iter().map(String::as_str).collect::<Vec<&str>>());
        }
        out
    }
}

/// As text, or as Markdown.
pub fn text(comparison: &Comparison, markdown: bool) -> String {
    let style = Style { markdown };
    let mut out = format!("{} -> {}\n", comparison.before, comparison.after);
    for section in &comparison.sections {
        let target = if section.target.is_empty() { "no target given" } else { &section.target };
        let pairs = section.groups.first().map_or(0, |all| all.pairs);
        let title = format!(
            "{target}: {pairs} pairs, {} gained, {} LOST, {} without code on both sides",
            section.gained.len(),
            section.lost.len(),
            section.neither
        );
        out.push_str(&style.heading(2, &title));
        if section.other_loops > 0 {
            let text = format!("{} pairs are left out: their numbers of loops differ", section.other_loops);
            out.push_str(&style.item(&text));
        }
        list(&mut out, &style, "LOST", &section.lost);
        list(&mut out, &style, "gained", &section.gained);
        let Some((all, groups)) = section.groups.split_first() else { continue };
        out.push_str(&style.heading(3, &format!("all ({} pairs)", all.compared)));
        out.push_str(&style.table(&HEAD, &all.statistics.iter().map(cells).collect::<Vec<_>>()));
        extremes(&mut out, &style, all);
        by_group(&mut out, &style, groups);
    }
    out
}

fn list(out: &mut String, style: &Style, name: &str, shaders: &[OneSided]) {
    if shaders.is_empty() {
        return;
    }
    out.push_str(&style.heading(3, &format!("{name}: {}", shaders.len())));
    for s in shaders.iter().take(MAX_LIST) {
        out.push_str(&style.item(&format!("{}{} ({})", s.file, entry(&s.entry), s.message)));
    }
    if shaders.len() > MAX_LIST {
        out.push_str(&style.item(&format!("and {} more; --format json has all", shaders.len() - MAX_LIST)));
    }
}

/// An entry point, where it tells anything.
fn entry(name: &str) -> String {
    if name.is_empty() || name == "main" { String::new() } else { format!(" {name}") }
}

fn extremes(out: &mut String, style: &Style, group: &Group) {
    let mut lines = Vec::new();
    for s in &group.statistics {
        for (name, [relative, absolute]) in [("HURT", &s.worst), ("helped", &s.best)] {
            let mut seen: Vec<&Change> = Vec::new();
            for change in relative.iter().chain(absolute) {
                if !seen.contains(&change) {
                    seen.push(change);
                    lines.push(format!(
                        "{} {name}: {} ({} -> {}) {}{}",
                        s.name,
                        percent(change.relative()),
                        number(change.before),
                        number(change.after),
                        change.file,
                        entry(&change.entry)
                    ));
                }
            }
        }
    }
    if !lines.is_empty() {
        out.push_str(&style.heading(3, "extremes"));
        lines.iter().for_each(|line| out.push_str(&style.item(line)));
    }
}

/// Stages and collections; where there is only one, it is that of the whole.
fn by_group(out: &mut String, style: &Style, groups: &[Group]) {
    for kind in ["stage ", "collection "] {
        let of_kind: Vec<&Group> = groups.iter().filter(|g| g.name.starts_with(kind)).collect();
        if of_kind.len() < 2 {
            continue;
        }
        let mut rows = Vec::new();
        for group in of_kind {
            let of_group = group.statistics.iter().filter(|s| OF_GROUPS.contains(&s.name.as_str()));
            for (i, s) in of_group.enumerate() {
                let name = group.name.strip_prefix(kind).unwrap_or_default().to_owned();
                let sides = format!("{} / {}", group.gained, group.lost);
                let mut row = if i == 0 { vec![name, sides] } else { vec![String::new(), String::new()] };
                row.extend(cells(s));
                rows.push(row);
            }
            if group.statistics.is_empty() {
                let name = group.name.strip_prefix(kind).unwrap_or_default().to_owned();
                let mut row = vec![name, format!("{} / {}", group.gained, group.lost)];
                row.extend(HEAD.iter().map(|_| "-".to_owned()));
                rows.push(row);
            }
        }
        out.push_str(&style.heading(3, &format!("by {}", kind.trim_end())));
        let head: Vec<&str> = [kind.trim_end(), "gained / LOST"].into_iter().chain(HEAD).collect();
        out.push_str(&style.table(&head, &rows));
    }
}

/// As one JSON object, with everything.
pub fn json(comparison: &Comparison, beyond: &[String]) -> String {
    let value = json!({
        "kind": "kempe-corpus-compare/1",
        "before": comparison.before,
        "after": comparison.after,
        "beyond_budget": beyond,
        "targets": comparison.sections.iter().map(section).collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}

fn section(section: &Section) -> Value {
    let side = |s: &OneSided| {
        json!({
            "file": s.file, "entry": s.entry, "stage": s.stage, "variant": s.variant, "collection": s.collection,
            "message": s.message,
        })
    };
    json!({
        "target": section.target,
        "gained": section.gained.iter().map(side).collect::<Vec<Value>>(),
        "lost": section.lost.iter().map(side).collect::<Vec<Value>>(),
        "neither": section.neither,
        "other_loops": section.other_loops,
        "groups": section.groups.iter().map(group).collect::<Vec<Value>>(),
    })
}

fn group(group: &Group) -> Value {
    json!({
        "name": group.name,
        "pairs": group.pairs,
        "compared": group.compared,
        "gained": group.gained,
        "lost": group.lost,
        "statistics": group.statistics.iter().map(statistic).collect::<Vec<Value>>(),
    })
}

fn statistic(s: &Statistic) -> Value {
    let mean = |m: Option<Mean>| m.map(|m| json!({ "mean": m.mean, "low": m.low, "high": m.high }));
    let list = |changes: &[Change]| {
        let one = |c: &Change| {
            json!({
                "file": c.file, "entry": c.entry, "before": c.before, "after": c.after, "relative": c.relative(),
            })
        };
        changes.iter().map(one).collect::<Vec<Value>>()
    };
    let both = |of: &[Vec<Change>; 2]| json!({ "relative": list(&of[0]), "absolute": list(&of[1]) });
    json!({
        "name": s.name,
        "pairs": s.pairs,
        "before": s.before,
        "after": s.after,
        "median_before": s.median_before,
        "median_after": s.median_after,
        "affected": s.affected,
        "helped": s.helped,
        "hurt": s.hurt,
        "geomean": s.geomean.map(|(ratio, pairs)| json!({ "ratio": ratio, "pairs": pairs })),
        "change": mean(s.change),
        "relative_change": mean(s.relative),
        "verdict": s.verdict.name(),
        "helped_most": both(&s.best),
        "hurt_most": both(&s.worst),
    })
}
