//! The results of compiles as JSON: schema `kempe/1`, published in `docs/formats/compile.schema.json`.

use crate::artifact::StatsForm;
use crate::clock::micros;
use crate::compile::{CompileResult, Status};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the format.
pub const SCHEMA: &str = "kempe/1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    results: Vec<ResultForm<'a>>,
}

/// What a result is of, and how it ended: the same in every format.
#[derive(Serialize)]
pub(crate) struct Head<'a> {
    file: &'a str,
    entry: &'a str,
    /// Null if it is not known.
    stage: Option<&'static str>,
    variant: &'static str,
    target: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl Head<'_> {
    pub fn of(result: &CompileResult) -> Head<'_> {
        Head {
            file: &result.file,
            entry: &result.entry,
            stage: (!result.stage.is_empty()).then_some(result.stage),
            variant: result.variant.name(),
            target: result.target,
            status: result.status.name(),
            message: (result.status != Status::Ok).then_some(&result.message),
        }
    }
}

#[derive(Serialize)]
struct ResultForm<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<StatsForm>,
    compile_us: u64,
    front_us: u64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    passes_us: Option<BTreeMap<&'static str, u64>>,
}

fn form(result: &CompileResult, passes: bool) -> ResultForm<'_> {
    ResultForm {
        head: Head::of(result),
        stats: result.artifact.as_ref().map(|artifact| StatsForm::from(&artifact.stats)),
        compile_us: result.compile_us,
        front_us: result.front_us,
        attempts: result.attempts,
        passes_us: passes.then(|| result.passes.iter().map(|p| (p.name, micros(p.time))).collect()),
    }
}

/// All results as one object, ending in a line feed. With `passes` each result says how long each pass took.
pub fn report(results: &[CompileResult], passes: bool) -> String {
    let report = Report { schema: SCHEMA, results: results.iter().map(|r| form(r, passes)).collect() };
    // Strings and numbers only: nothing here can fail to be written.
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}

/// One result as one line, without a line feed: for files of many results.
pub fn line(result: &CompileResult) -> String {
    serde_json::to_string(&form(result, false)).unwrap_or_default()
}
