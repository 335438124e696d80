//! Runs and tables of reference figures as rows.

use crate::file::KIND;
use crate::find;
use serde_json::Value;
use std::collections::BTreeMap;

/// One result.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub file: String,
    /// Below the folder of the run; of a table, below the folder that all its files share.
    pub path: String,
    /// First folder of `path`.
    pub collection: String,
    /// Empty if it is not known.
    pub entry: String,
    /// Empty if it is not known.
    pub stage: String,
    pub variant: String,
    /// Empty in a table, which does not say.
    pub target: String,
    pub status: String,
    pub message: String,
    pub stats: BTreeMap<String, f64>,
}

impl Row {
    pub fn ok(&self) -> bool {
        self.status == "ok"
    }
}

/// A set of results.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    pub name: String,
    pub rows: Vec<Row>,
    /// A table without targets and entry points, whose files are matched by the end of their path.
    pub table: bool,
    /// The last line was torn: the run was interrupted.
    pub torn: bool,
}

/// Reads a run or a table.
///
/// # Errors
/// When it is neither, with the line.
pub fn parse(name: &str, text: &str) -> Result<Results, String> {
    if text.starts_with('{') { run(name, text) } else { table(name, text) }
}

fn run(name: &str, text: &str) -> Result<Results, String> {
    let mut lines = text.split_inclusive('\n').enumerate();
    let header: Value =
        lines.next().and_then(|(_, line)| serde_json::from_str(line).ok()).unwrap_or_default();
    if header["kind"] != KIND {
        return Err(format!("is not a run: the first line should have the kind {KIND}"));
    }
    let root = header["root"].as_str().unwrap_or_default();
    let mut results = Results { name: name.to_owned(), rows: Vec::new(), table: false, torn: false };
    for (number, line) in lines {
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(_) if !line.ends_with('\n') => {
                results.torn = true;
                break;
            }
            Err(error) => return Err(format!("line {}: {error}", number + 1)),
        };
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let (file, status) = (text("file"), text("status"));
        if file.is_empty() || status.is_empty() {
            return Err(format!("line {}: is no result", number + 1));
        }
        let path = below(&file, root);
        results.rows.push(Row {
            collection: collection(&path, root),
            path,
            file,
            entry: text("entry"),
            stage: text("stage"),
            variant: text("variant"),
            target: text("target"),
            status,
            message: text("message"),
            stats: stats(&value),
        });
    }
    Ok(results)
}

/// Every number of a result that can be compared.
fn stats(value: &Value) -> BTreeMap<String, f64> {
    let mut stats = BTreeMap::new();
    for (key, value) in value["stats"].as_object().into_iter().flatten() {
        if let Some(number) = value.as_f64() {
            stats.insert(key.clone(), number);
        }
        for (part, value) in value.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                stats.insert(format!("{key}.{part}"), number);
            }
        }
    }
    if let (false, Some(time)) = (stats.is_empty(), value["compile_us"].as_f64()) {
        stats.insert("compile_us".to_owned(), time);
    }
    sum_up(&mut stats);
    stats
}

/// What register allocation brought in, in one number.
fn sum_up(stats: &mut BTreeMap<String, f64>) {
    if let (Some(spills), Some(fills)) = (stats.get("spills"), stats.get("fills")) {
        stats.insert("spills+fills".to_owned(), spills + fills);
    }
}

/// Columns of a table, with the names of the same figures in results.
const COLUMNS: [(&str, &str); 11] = [
    ("inst", "instructions"),
    ("threads", "threads"),
    ("loops", "loops"),
    ("uniforms", "uniforms"),
    ("max_temps", "max_temps"),
    ("spills", "spills"),
    ("fills", "fills"),
    ("sfu_stalls", "sfu_stalls"),
    ("inst_and_stalls", "inst_and_stalls"),
    ("nops", "nops"),
    ("cpu_us", "compile_us"),
];

/// Columns that are no figures of the code.
const OTHERS: [&str; 5] = ["file", "stage", "strategy", "attempts", "status"];

fn table(name: &str, text: &str) -> Result<Results, String> {
    let mut lines = text.lines().enumerate();
    let head: Vec<&str> = lines.next().map_or(Vec::new(), |(_, line)| line.split('\t').collect());
    for needed in ["file", "stage", "inst", "status"] {
        if !head.contains(&needed) {
            return Err(format!("is neither a run nor a table: there is no column `{needed}`"));
        }
    }
    for column in &head {
        if !OTHERS.contains(column) && !COLUMNS.iter().any(|row| row.0 == *column) {
            return Err(format!("the column `{column}` is not known"));
        }
    }
    let mut rows = Vec::new();
    for (number, line) in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != head.len() {
            return Err(format!("line {}: {} columns instead of {}", number + 1, fields.len(), head.len()));
        }
        let field = |column: &str| head.iter().position(|c| *c == column).map_or("", |at| fields[at]);
        let (stage, variant) = match field("stage").strip_suffix("-bin") {
            Some(stage) => (stage, "binning"),
            None => (field("stage"), "render"),
        };
        let stage =
            find::stage(stage).ok_or_else(|| format!("line {}: `{stage}` is no stage", number + 1))?;
        let status = field("status");
        let mut stats = BTreeMap::new();
        if status == "ok" {
            for (column, stat) in COLUMNS {
                let text = field(column);
                if text.is_empty() {
                    continue;
                }
                let number =
                    text.parse().map_err(|_| format!("line {}: `{text}` is no number", number + 1))?;
                stats.insert(stat.to_owned(), number);
            }
            sum_up(&mut stats);
        }
        rows.push(Row {
            file: field("file").to_owned(),
            path: String::new(),
            collection: String::new(),
            entry: String::new(),
            stage: stage.to_owned(),
            variant: variant.to_owned(),
            target: String::new(),
            status: if status == "ok" { "ok" } else { "error" }.to_owned(),
            message: status.to_owned(),
            stats,
        });
    }
    let root = shared_folder(rows.iter().map(|row| row.file.as_str()));
    for row in &mut rows {
        row.path = below(&row.file, &root);
        row.collection = collection(&row.path, &root);
    }
    Ok(Results { name: name.to_owned(), rows, table: true, torn: false })
}

/// The folder that all files are in.
fn shared_folder<'a>(files: impl Iterator<Item = &'a str>) -> String {
    let mut shared: Option<Vec<&str>> = None;
    for file in files {
        let mut parts: Vec<&str> = file.split('/').collect();
        parts.pop();
        shared = Some(match shared {
            None => parts,
            Some(before) => {
                let same = before.iter().zip(&parts).take_while(|(a, b)| a == b).count();
                before[..same].to_vec()
            }
        });
    }
    shared.unwrap_or_default().join("/")
}

fn below(file: &str, root: &str) -> String {
    let rest = file.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    rest.unwrap_or(file).trim_start_matches('/').to_owned()
}

/// First folder of a path; of a file that is in none, the folder of the run.
fn collection(path: &str, root: &str) -> String {
    match path.split_once('/') {
        Some((folder, _)) => folder.to_owned(),
        None => root.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "file\tstage\tinst\tthreads\tspills\tfills\tcpu_us\tstatus\n";

    #[test]
    fn tables() {
        let text = format!(
            "{HEAD}spv/a/x.comp.spv\tcomp\t10\t4\t1\t2\t300\tok\nspv/b/y.vert.spv\tvert-bin\t\t\t\t\t\tcrash\n"
        );
        let results = parse("t", &text).unwrap();
        let (x, y) = (&results.rows[0], &results.rows[1]);
        assert_eq!(
            (x.path.as_str(), x.collection.as_str(), x.stage.as_str()),
            ("a/x.comp.spv", "a", "compute")
        );
        assert_eq!((x.stats["instructions"], x.stats["spills+fills"]), (10.0, 3.0));
        assert_eq!(
            (y.variant.as_str(), y.status.as_str(), y.message.as_str()),
            ("binning", "error", "crash")
        );
        for bad in
            ["", "a\tb\n", &format!("{HEAD}x\tcomp\n"), &format!("{HEAD}x\tpixel\t1\t1\t1\t1\t1\tok\n")]
        {
            assert!(parse("t", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn runs() {
        let head = format!("{{\"kind\":\"{KIND}\",\"root\":\"in/dir/\"}}\n");
        let row = "{\"file\":\"in/dir/c/d/x.spv\",\"status\":\"ok\",\"stage\":null,\"compile_us\":7,\
                   \"stats\":{\"spills\":1,\"fills\":2,\"cycles\":{\"thread\":9}}}\n";
        let results = parse("r", &format!("{head}{row}{{\"fi")).unwrap();
        assert!(results.torn && results.rows.len() == 1);
        let x = &results.rows[0];
        assert_eq!((x.path.as_str(), x.collection.as_str(), x.stage.as_str()), ("c/d/x.spv", "c", ""));
        assert_eq!((x.stats["cycles.thread"], x.stats["compile_us"]), (9.0, 7.0));
        assert!(parse("r", &format!("{head}{{\"fi\n")).is_err() && parse("r", row).is_err());
        assert_eq!(collection("x.spv", "in/dir/"), "dir");
    }
}
