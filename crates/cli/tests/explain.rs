//! `kempe explain`, on shaders whose peak is known because of how they are made.

#![cfg(feature = "glsl")]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::Folder;
use serde_json::Value;

/// `many` words are read, one a line, and only then all are written: no write may pass a read of the same buffer, so all
/// words live where the first one is written. Line 5 reads the first word.
fn shader(many: u32) -> String {
    let mut text = "#version 450\nlayout(local_size_x = 16) in;\n\
        layout(set = 0, binding = 0) buffer B { uint b[]; };\nvoid main() { uint g = gl_GlobalInvocationID.x * 1024u;\n"
        .to_owned();
    for k in 0..many {
        text.push_str(&format!("uint a{k} = b[g + {}u];\n", 8 * k));
    }
    for k in 0..many {
        text.push_str(&format!("b[g + {}u] = a{};\n", 512 + k, many - 1 - k));
    }
    text.push_str("}\n");
    text
}

fn report(folder: &Folder, code: i32, args: &[&str]) -> Value {
    let mut all = vec!["explain", "--format", "json"];
    all.extend(args);
    let ran = folder.run(&all).says(code, &[]);
    let json: Value = serde_json::from_str(&ran.text()).expect("standard output is one JSON object");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/explain.schema.json");
    let published = std::fs::read_to_string(path).expect("the published schema");
    let published: Value = serde_json::from_str(&published).expect("the schema is JSON");
    schema::check(&published, &json, "$").unwrap();
    json
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn attempts(json: &Value) -> &Vec<Value> {
    json["results"][0]["attempts"].as_array().expect("attempts")
}

#[test]
fn the_peak_is_where_all_words_live() {
    let folder = Folder::new("explain-peak");
    folder.file("a.comp", shader(40));
    let json = report(&folder, 0, &["a.comp", "-t", "v3d71"]);
    let result = &json["results"][0];
    assert_eq!((&result["status"], &result["lines"]["5"]), (&"ok".into(), &"uint a0 = b[g + 0u];".into()));
    let taken = attempts(&json).iter().find(|a| a["outcome"] == "taken").expect("an attempt was taken");
    assert_eq!((number(&taken["threads"]), number(&taken["registers"])), (2, 64));
    for attempt in attempts(&json) {
        let peak = &attempt["peak"];
        // The words, and a few for addresses.
        assert!((40..=48).contains(&number(&peak["needed"])), "{peak}");
        // Between the last read and the first write (or the first few, whose addresses take more).
        assert!((44..=50).contains(&number(&peak["place"]["line"])), "{peak}");
        let values = peak["values"].as_array().expect("values");
        let read =
            values.iter().filter(|v| (5..45).contains(&number(&v["value"]["defined"]["line"]))).count();
        assert!((38..=44).contains(&read), "{read} words live at the peak");
        // What is read last comes first: the last four lines, which become one store, write the first four words.
        let last = values.iter().find(|v| !v["next"].is_null()).expect("a value that is read");
        assert!((81..=84).contains(&number(&last["next"]["place"]["line"])), "{last}");
        assert!((5..=8).contains(&number(&last["value"]["defined"]["line"])), "{last}");
        // Every instruction has its point, and none needs more than the peak.
        let points = attempt["points"].as_array().expect("points");
        let most = points.iter().map(|point| number(&point["needed"])).max();
        assert_eq!(most, Some(number(&peak["needed"])));
        let over = points.iter().filter(|p| number(&p["needed"]) > number(&attempt["registers"])).count();
        assert_eq!(number(&attempt["over"]), over as u64);
    }
    // With 32 registers, at least eight words are in the way.
    let four = attempts(&json).iter().find(|a| number(&a["threads"]) == 4).expect("four threads were tried");
    assert_ne!(four["outcome"], "taken");
    let obstacle = &four["obstacle"];
    assert!(number(&obstacle["needed"]) >= 40, "{obstacle}");
    assert!(obstacle["longest"].as_array().expect("values").len() >= 8);
    // They would have to go to memory, and four threads are not taken for that: nothing was decided.
    assert_eq!(four["decisions"].as_array().map(Vec::len), Some(0), "{four}");
    assert_eq!(taken["obstacle"], Value::Null);
}

#[test]
fn spills_are_explained_by_their_scores() {
    let folder = Folder::new("explain-spills");
    folder.file("a.comp", shader(40));
    let json = report(&folder, 0, &["a.comp", "-t", "v3d42,v3d71", "--threads", "4"]);
    assert_eq!(json["results"].as_array().map(Vec::len), Some(2));
    for result in json["results"].as_array().expect("results") {
        let attempt = &result["attempts"][0];
        assert_eq!(attempt["outcome"], "taken");
        let decisions = attempt["decisions"].as_array().expect("decisions");
        assert!(number(&attempt["edits"]["spills"]) >= 4 && decisions.len() >= 4, "{attempt}");
        for decision in decisions.iter().filter(|d| d["reason"] == "full") {
            let score = decision["score"].as_f64().expect("a score");
            for other in decision["others"].as_array().expect("others") {
                assert!(other["score"].as_f64().expect("a score") <= score, "{decision}");
            }
        }
    }
}

#[test]
fn the_chart_is_bounded_and_says_what_is_in_the_way() {
    let folder = Folder::new("explain-chart");
    folder.file("a.comp", shader(40));
    let show = |more: &[&str]| {
        let mut args = vec!["explain", "a.comp", "-t", "v3d71"];
        args.extend(more);
        folder.run(&args).quiet().text()
    };
    let text = show(&[]);
    assert_eq!(text, show(&[]));
    assert!(text.lines().next().is_some_and(|line| line == "a.comp main v3d71"), "{text}");
    for part in ["taken", "peak: ", "what keeps it from 4 threads", "uint a", "┊", "█"] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(text.lines().count() < 130 && text.lines().all(|line| line.chars().count() <= 160), "{text}");
    let all = show(&["--all", "--attempt", "4"]);
    assert!(all.lines().count() > text.lines().count(), "{all}");
    assert!(show(&["--attempt", "3"]).contains("no attempt with that many threads"));
    // Few words: nothing is in the way of four threads.
    folder.file("a.comp", shader(12));
    let text = show(&[]);
    assert!(text.contains("nothing stands in the way") && !text.contains("what keeps it from"), "{text}");
}

#[test]
fn too_few_registers_are_explained_too() {
    let folder = Folder::new("explain-few");
    folder.file("a.comp", shader(8));
    let args = ["a.comp", "-t", "v3d71", "--max-registers", "2"];
    let ran =
        folder.run(&[&["compile"], &args[..]].concat()).says(1, &["a.comp:", "out of registers at line"]);
    // It says how many would do at least, what for, and that is true.
    let words: Vec<&str> = ran.stderr.split_whitespace().collect();
    let at = words.windows(2).position(|pair| pair == ["at", "least"]).expect("at least so many");
    let least: u32 = words[at + 2].parse().expect("a number");
    assert!(least > 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(" of line "), "{}", ran.stderr);
    for limit in 1..least {
        let limit = limit.to_string();
        folder
            .run(&["compile", "a.comp", "-t", "v3d71", "--max-registers", &limit])
            .says(1, &["out of registers"]);
    }
    let json = report(&folder, 1, &args);
    assert_eq!(json["results"][0]["status"], "error");
    for attempt in attempts(&json) {
        assert_eq!((&attempt["outcome"], number(&attempt["registers"])), (&"does-not-fit".into(), 2));
    }
    let shown = folder.run(&[&["explain"], &args[..]].concat()).says(1, &["out of registers"]).text();
    assert!(shown.contains("does not fit") && shown.contains("peak: "), "{shown}");
    // A shader that is wrong has nothing to explain.
    folder.file("b.comp", "#version 450\nvoid main() { x; }\n");
    let ran = folder.run(&["explain", "b.comp", "-t", "v3d71"]).says(1, &["b.comp:2"]);
    assert!(ran.stdout.is_empty());
}
