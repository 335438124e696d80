//! `kempe corpus`: a run survives whatever a shader or a user does to it, and a comparison says what a script of another
//! kind computes.

mod common;

use common::Folder;
use common::spirv::{double_and_increment, sample};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `kempe corpus run` with variables of the environment.
fn run(folder: &Folder, args: &[&str], vars: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kempe"));
    command.args(["corpus", "run"]).args(args).current_dir(folder.path("")).stdin(Stdio::null());
    let output = command.envs(vars.iter().copied()).output().expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn lines(folder: &Folder, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path(name)).expect("the run");
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The rows without their times.
fn timeless(folder: &Folder, name: &str) -> Vec<Value> {
    let mut rows = lines(folder, name);
    for row in rows.iter_mut().skip(1) {
        row["compile_us"] = 0.into();
        row["front_us"] = 0.into();
    }
    rows
}

/// Shaders in two folders: good ones, one of a stage that is not there yet, one with two entry points, a broken one.
fn collection(folder: &Folder, good: usize) {
    for i in 0..good {
        folder.file(&format!("in/b/{i:02}.comp.spv"), sample());
    }
    folder.file("in/a/two.spv", double_and_increment(&[(5, "first"), (5, "second")]));
    folder.file("in/a/pixel.frag.spv", double_and_increment(&[(4, "main")]));
    folder.file("in/a/broken.comp.spv", [1, 2, 3]);
    folder.file("in/a/notes.txt", "no shader");
    folder.file("in/z.comp.spv", sample());
}

#[test]
fn rows_are_in_order_and_complete() {
    let folder = Folder::new("corpus-order");
    collection(&folder, 3);
    let (code, said) = run(&folder, &["in", "-t", "v3d71,v3d42", "-o", "r.jsonl", "-j", "3"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, "14 compiles: 4 error, 12 ok\n");
    let rows = lines(&folder, "r.jsonl");
    let head = &rows[0];
    assert_eq!((&head["root"], &head["targets"][1]), (&"in".into(), &"v3d42".into()));
    assert!(head["version"].is_string() && head["machine"]["cores"].is_number());
    assert_eq!(head["options"]["time_limit"], 60.0);
    let of = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {} {}", text("file"), text("entry"), text("stage"), text("target"), text("status"))
    };
    let seen: Vec<String> = rows[1..].iter().map(of).collect();
    assert_eq!(seen[0], "in/a/broken.comp.spv  compute v3d71 error");
    assert_eq!(seen[1], "in/a/broken.comp.spv  compute v3d42 error");
    assert_eq!(seen[2], "in/a/pixel.frag.spv main fragment v3d71 error");
    assert_eq!(seen[4..8].join("|"), {
        let row = |target: &str, entry: &str| format!("in/a/two.spv {entry} compute {target} ok");
        [row("v3d71", "first"), row("v3d71", "second"), row("v3d42", "first"), row("v3d42", "second")]
            .join("|")
    });
    assert_eq!(seen[14], "in/z.comp.spv main compute v3d71 ok");
    assert!(rows[5]["stats"]["instructions"].as_u64().unwrap() > 5);
    // The same results whatever the number of workers, and as `kempe compile` gives them.
    let (code, _) = run(&folder, &["in", "-t", "v3d71,v3d42", "-o", "s.jsonl", "-j", "1"], &[]);
    assert_eq!(code, Some(0));
    assert_eq!(timeless(&folder, "r.jsonl"), timeless(&folder, "s.jsonl"));
    let single = folder.run(&["compile", "in/a/two.spv", "-t", "v3d71", "--format", "json"]).quiet().text();
    let mut single: Value = serde_json::from_str(&single).unwrap();
    single["results"][1]["compile_us"] = 0.into();
    assert_eq!(timeless(&folder, "r.jsonl")[6], single["results"][1]);
    // Only some stages: what the name tells is not even compiled, the rest is sorted out by entry point.
    let (_, said) = run(&folder, &["in", "-t", "v3d71", "-o", "t.jsonl", "--stage", "frag"], &[]);
    assert_eq!(said, "2 compiles: 1 error\n");
}

#[test]
fn a_killed_run_is_taken_up_again() {
    let folder = Folder::new("corpus-kill");
    collection(&folder, 12);
    let args = ["in", "-t", "v3d42,v3d71", "-o", "whole.jsonl", "-j", "2"];
    assert_eq!(run(&folder, &args, &[]).0, Some(0));
    let whole = timeless(&folder, "whole.jsonl");
    let args = ["in", "-t", "v3d42,v3d71", "-o", "part.jsonl", "-j", "2"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_kempe"))
        .args(["corpus", "run"])
        .args(args)
        .current_dir(folder.path(""))
        .env("KEMPE_TEST_SLOW", "150")
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let length =
        || std::fs::read(folder.path("part.jsonl")).map_or(0, |b| b.iter().filter(|b| **b == b'\n').count());
    let start = Instant::now();
    while length() < 8 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let kept = length();
    assert!((8..whole.len()).contains(&kept), "{kept} lines when it was killed");
    // A torn line, as a kill in the middle of writing leaves it.
    let mut bytes = std::fs::read(folder.path("part.jsonl")).unwrap();
    bytes.extend_from_slice(b"{\"file\":\"in/b");
    std::fs::write(folder.path("part.jsonl"), bytes).unwrap();
    let (code, said) = run(&folder, &args, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("were there already"), "{said}");
    assert_eq!(timeless(&folder, "part.jsonl"), whole);
    // Torn at every length of its last rows.
    let bytes = std::fs::read(folder.path("whole.jsonl")).unwrap();
    for cut in [10, 200, bytes.len() - 1, bytes.len() - 300] {
        std::fs::write(folder.path("part.jsonl"), &bytes[..cut]).unwrap();
        // The header names no output, so this is a start of the same run.
        assert_eq!(run(&folder, &args, &[]).0, Some(0), "cut at {cut}");
        assert_eq!(timeless(&folder, "part.jsonl"), whole, "cut at {cut}");
    }
    // Rows of another run are not mixed in.
    let (code, said) = run(&folder, &["in", "-t", "v3d42,v3d71", "-O1", "-o", "part.jsonl"], &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("another options") && said.contains("--restart"), "{said}");
    assert_eq!(timeless(&folder, "part.jsonl"), whole);
    folder.file("notes", "mine\n");
    assert_eq!(run(&folder, &["in", "-t", "v3d42", "-o", "notes"], &[]).0, Some(1));
    assert_eq!(std::fs::read(folder.path("notes")).unwrap(), b"mine\n");
}

#[test]
fn hanging_and_crashing_shaders_are_rows() {
    let folder = Folder::new("corpus-hang");
    collection(&folder, 4);
    let vars = [("KEMPE_TEST_HANG", "b/01"), ("KEMPE_TEST_CRASH", "b/02")];
    let args = ["in", "-t", "v3d71", "-o", "r.jsonl", "--time-limit", "0.5"];
    let (code, said) = run(&folder, &args, &vars);
    assert_eq!(code, Some(4), "{said}");
    let rows = lines(&folder, "r.jsonl");
    let by_file: BTreeMap<&str, &Value> =
        rows[1..].iter().map(|r| (r["file"].as_str().unwrap(), r)).collect();
    let hung = by_file["in/b/01.comp.spv"];
    assert_eq!((&hung["status"], &hung["stage"]), (&"limit".into(), &"compute".into()));
    assert!(hung["message"].as_str().unwrap().starts_with("time limit of 0.5 s reached"), "{hung}");
    let crashed = by_file["in/b/02.comp.spv"];
    assert_eq!(crashed["status"], "bug");
    assert!(crashed["message"].as_str().unwrap().starts_with("the compiler died: "), "{crashed}");
    for good in ["in/b/00.comp.spv", "in/b/03.comp.spv", "in/z.comp.spv"] {
        assert_eq!(by_file[good]["status"], "ok", "{good}");
    }
    assert_eq!(rows.len(), 1 + 9);
}

/// A run made up of figures: `rows` are (file, stage, status, instructions, spills, threads).
fn made_up(root: &str, rows: &[(String, &str, &str, u64, u64, u64)]) -> String {
    let mut text = format!("{{\"kind\":\"kempe-corpus-run/1\",\"root\":\"{root}\"}}\n");
    for (file, stage, status, instructions, spills, threads) in rows {
        let mut row = serde_json::json!({
            "file": format!("{root}/{file}"), "entry": "main", "stage": stage, "variant": "render",
            "target": "v3d71", "status": status, "compile_us": 100 + instructions, "front_us": 0, "attempts": 1,
        });
        if *status == "ok" {
            row["stats"] = serde_json::json!({
                "instructions": instructions, "threads": threads, "spills": spills, "fills": 2 * spills, "loops": 0,
                "cycles": { "thread": 3 * instructions },
            });
        } else {
            row["message"] = "no".into();
        }
        text.push_str(&format!("{row}\n"));
    }
    text
}

/// Two runs whose differences are drawn with a small generator.
fn pair(folder: &Folder) {
    let mut state = 12345u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for i in 0..90u64 {
        let file = format!("{}/{i:03}.comp.spv", ["x", "y", "z"][i as usize % 3]);
        let stage = if i % 5 == 0 { "vertex" } else { "compute" };
        let status = |n: u64| if n == 0 { "error" } else { "ok" };
        let (inst, spills) = (20 + draw(2000), if draw(3) == 0 { draw(9) } else { 0 });
        a.push((file.clone(), stage, status(draw(15)), inst, spills, 2 + 2 * draw(2)));
        let better = if draw(2) == 0 { inst } else { inst - draw(20) + draw(4) };
        b.push((
            file,
            stage,
            status(draw(15)),
            better,
            (spills + draw(2)).saturating_sub(draw(2)),
            2 + 2 * draw(2),
        ));
    }
    // Only on one side; in another order.
    a.push(("x/old.comp.spv".to_owned(), "compute", "ok", 5, 0, 4));
    b.push(("y/new.comp.spv".to_owned(), "compute", "ok", 5, 0, 4));
    b.reverse();
    folder.file("a.jsonl", made_up("in/here", &a));
    folder.file("b.jsonl", made_up("elsewhere", &b));
}

/// The same figures from the same files, with numerical integration of the t distribution. Prints what differs.
const SCRIPT: &str = r#"
import json, math, statistics, sys

def load(name):
    lines = open(name).read().splitlines()
    root = json.loads(lines[0])["root"]
    rows = {}
    for line in lines[1:]:
        row = json.loads(line)
        rows[row["file"][len(root) + 1:]] = row
    return rows

def t95(df):
    c = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    def inside(t, n=2000):
        h = t / n
        f = lambda x: c * (1 + x * x / df) ** (-(df + 1) / 2)
        s = f(0) + f(t) + sum((4 if i % 2 else 2) * f(i * h) for i in range(1, n))
        return 2 * s * h / 3
    lo, hi = 0.0, 20.0
    for _ in range(40):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if inside(mid) < 0.95 else (lo, mid)
    return lo

def interval(values):
    if len(values) < 3:
        return None
    m = statistics.fmean(values)
    half = t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": m, "low": m - half, "high": m + half}

def value(row, stat):
    if stat == "compile_us":
        return row["compile_us"]
    if stat == "spills+fills":
        return row["stats"]["spills"] + row["stats"]["fills"]
    x = row["stats"]
    for part in stat.split("."):
        x = x[part]
    return x

before, after, said = load(sys.argv[1]), load(sys.argv[2]), json.load(open(sys.argv[3]))
section = said["targets"][0]
bad = []
checked = 0

def check(what, ours, theirs):
    global checked
    checked += 1
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        same = math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            check(what + " " + key, ours[key], theirs.get(key))
        return
    else:
        same = ours == theirs
    if not same:
        bad.append(f"{what}: script {ours}, compare {theirs}")

ok = lambda rows: {f for f, r in rows.items() if r["status"] == "ok"}
name = lambda entries: sorted(e["file"].split("/", 1)[1] for e in entries)
tail = lambda f: f.split("/", 1)[1]
lost = sorted("here/" + f for f in ok(before) - ok(after))
gained = sorted(ok(after) - ok(before))
check("lost", lost, name(section["lost"]))
check("gained", gained, name(section["gained"]))
both = sorted(ok(before) & ok(after))
groups = [("all", both)]
for stage in ("compute", "vertex"):
    groups.append(("stage " + stage, [f for f in both if before[f]["stage"] == stage]))
for c in "xyz":
    groups.append(("collection " + c, [f for f in both if f.startswith(c + "/")]))
check("groups", [g for g, _ in groups], [g["name"] for g in section["groups"]])
stats = ["instructions", "cycles.thread", "threads", "spills", "fills", "spills+fills", "loops", "compile_us"]
for (group, files), theirs in zip(groups, section["groups"]):
    check(group + " statistics", stats, [s["name"] for s in theirs["statistics"]])
    for stat, s in zip(stats, theirs["statistics"]):
        what = group + " " + stat
        pairs = [(value(before[f], stat), value(after[f], stat), f) for f in files]
        sign = -1 if stat == "threads" else 1
        diff = [(a, b, f) for a, b, f in pairs if a != b]
        check(what + " before", float(sum(a for a, _, _ in pairs)), s["before"])
        check(what + " after", float(sum(b for _, b, _ in pairs)), s["after"])
        check(what + " median", float(statistics.median(b for _, b, _ in pairs)), s["median_after"])
        check(what + " affected", len(diff), s["affected"])
        check(what + " helped", sum((b - a) * sign < 0 for a, b, _ in diff), s["helped"])
        check(what + " hurt", sum((b - a) * sign > 0 for a, b, _ in diff), s["hurt"])
        ratios = [b / a for a, b, _ in pairs if a and b]
        check(what + " geomean", {"ratio": math.prod(r ** (1 / len(ratios)) for r in ratios), "pairs": len(ratios)} if ratios else None, s["geomean"])
        values = interval([b - a for a, b, _ in diff])
        relative = interval([(b - a) / a for a, b, _ in diff if a])
        check(what + " change", values, s["change"])
        check(what + " relative", relative, s["relative_change"])
        if values is None:
            verdict = "too few" if diff else "unchanged"
        else:
            r = relative or values
            if values["low"] > 0 and r["low"] > 0:
                verdict = "helped" if sign < 0 else "HURT"
            elif values["high"] < 0 and r["high"] < 0:
                verdict = "HURT" if sign < 0 else "helped"
            else:
                verdict = "inconclusive"
        check(what + " verdict", verdict, s["verdict"])
        worst = [((b - a) * sign) for a, b, _ in diff if (b - a) * sign > 0]
        top = s["hurt_most"]["absolute"]
        check(what + " worst", float(max(worst)) if worst else None, (top[0]["after"] - top[0]["before"]) * sign if top else None)
        best = [(b - a) / a * sign for a, b, _ in diff if a and (b - a) * sign < 0]
        top = s["helped_most"]["relative"]
        check(what + " best", float(min(best)) if best else None, top[0]["relative"] * sign if top else None)
for line in bad:
    print(line)
print(checked, "checked")
sys.exit(1 if bad else 0)
"#;

#[test]
fn figures_are_those_of_an_independent_script() {
    let folder = Folder::new("corpus-figures");
    pair(&folder);
    let ran = folder.run(&["corpus", "compare", "a.jsonl", "b.jsonl", "--format", "json"]);
    folder.file("said.json", &ran.stdout);
    folder.file("script.py", SCRIPT);
    let python = Command::new("python3")
        .args(["script.py", "a.jsonl", "b.jsonl", "said.json"])
        .current_dir(folder.path(""))
        .output();
    let Ok(python) = python else {
        common::say("SKIPPED: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&python.stdout).into_owned();
    assert!(python.status.success(), "{said}{}", String::from_utf8_lossy(&python.stderr));
    let checked: usize = said.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    assert!(checked > 500, "{said}");
}

#[test]
fn forms_and_exit_codes() {
    let folder = Folder::new("corpus-forms");
    let row = |name: &str, inst: u64| (format!("c/{name}.comp.spv"), "compute", "ok", inst, 0, 4);
    let base: Vec<_> = (0..8).map(|i| row(&i.to_string(), 100 + i)).collect();
    let worse: Vec<_> = (0..8).map(|i| row(&i.to_string(), 102 + i + i % 3)).collect();
    let fewer = base[1..].to_vec();
    for (name, rows) in [("base", &base), ("worse", &worse), ("fewer", &fewer)] {
        folder.file(name, made_up("in", rows));
    }
    let compare = |args: &[&str]| folder.run(&[&["corpus", "compare"], args].concat());
    let same = compare(&["base", "base"]).quiet().text();
    assert!(same.contains("8 pairs, 0 gained, 0 LOST") && same.contains("unchanged"), "{same}");
    let text = compare(&["base", "worse"]).says(3, &["budget: v3d71: instructions HURT"]).text();
    assert!(text.contains("HURT") && text.contains("extremes") && text.contains("c/2.comp.spv"), "{text}");
    assert!(compare(&["base", "worse", "--format", "markdown"]).text().contains("| **HURT** |"));
    // The other way round it is better; time is only judged by name.
    let better = compare(&["worse", "base"]).quiet().text();
    assert!(better.contains("helped"), "{better}");
    compare(&["base", "worse", "--budget", "5"]).quiet();
    compare(&["base", "worse", "--budget", "2"]).says(3, &["instructions HURT"]);
    compare(&["base", "worse", "--budget", "5", "--budget", "compile_us=0.1"]).says(3, &["compile_us"]);
    compare(&["base", "worse", "--budget", "5", "--budget", "nothing=1"]).says(2, &["the statistics are"]);
    // Lost shaders come first, and no budget allows them.
    let lost = compare(&["base", "fewer", "--budget", "100"]).says(3, &["1 lost"]).text();
    assert!(
        lost.find("in/c/0.comp.spv (not there)").unwrap() < lost.find("all (7 pairs)").unwrap(),
        "{lost}"
    );
    compare(&["fewer", "base"]).quiet();
    compare(&["base", "nowhere"]).says(1, &["nowhere: no such file"]);
    // A table of another compiler: by the end of the path, whatever folder either side was in.
    folder.file(
        "table",
        "file\tstage\tinst\tthreads\tloops\tspills\tfills\tcpu_us\tstatus\n\
         spv/c/0.comp.spv\tcomp\t200\t4\t0\t0\t0\t5\tok\nspv/c/1.comp.spv\tcomp\t101\t4\t1\t0\t0\t5\tok\n\
         spv/d/1.comp.spv\tcomp\t1\t4\t1\t0\t0\t5\tok\nspv/c/2.comp.spv\tcomp\t\t\t\t\t\t\tcrash\n\
         spv/e/5.vert.spv\tvert\t1\t4\t1\t0\t0\t5\tok\n",
    );
    let text = compare(&["table", "base", "--stage", "comp"]).says(3, &["1 lost"]).text();
    assert!(
        text.contains("2 pairs, 6 gained, 1 LOST") && text.contains("spv/d/1.comp.spv (not there)"),
        "{text}"
    );
    assert!(text.contains("in/c/2.comp.spv (error: crash)"), "{text}");
    let text = compare(&["table", "base", "--stage", "comp", "--equal-loops"]).text();
    assert!(text.contains("1 pairs are left out") && text.contains("-50.00 %"), "{text}");
}
