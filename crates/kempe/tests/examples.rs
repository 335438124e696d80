//! Every shader in `examples/`, compiled every way and run: the simulator must give what the interpreter gives.

#![cfg(all(feature = "glsl", feature = "wgsl"))]

use kempe::compile::{CodeOptions, Keep, Options, Source, Status};
use kempe::exec::Inputs;
use kempe::inputs::Random;
use kempe::limits::Limits;
use kempe::run::RunOptions;
use std::path::PathBuf;

/// Whether a program for this target can run in so many threads.
fn offers(target: &dyn kempe::Target, threads: Option<u32>) -> bool {
    threads.is_none_or(|n| target.occupancy().iter().any(|step| step.threads == n))
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

/// Words from their description: see the head of `inputs.tsv`.
fn words(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.split(',').filter(|part| *part != "-") {
        if let Some((kind, count)) = part.split_once('*') {
            for _ in 0..count.parse::<u32>().expect("a count") {
                let bits = random.bits() as u32;
                let word = match kind {
                    "rand32" => bits,
                    "randf" => (bits as i32 as f32 / 2f32.powi(31)).to_bits(),
                    "zero" => 0,
                    other => panic!("kind {other}"),
                };
                bytes.extend(word.to_le_bytes());
            }
        } else if part.contains('.') {
            bytes.extend(part.parse::<f32>().expect("a float").to_le_bytes());
        } else if let Some(hex) = part.strip_prefix("0x") {
            bytes.extend(u32::from_str_radix(hex, 16).expect("a word").to_le_bytes());
        } else {
            bytes.extend((part.parse::<i64>().expect("an integer") as u32).to_le_bytes());
        }
    }
    bytes
}

struct Example {
    file: String,
    inputs: Inputs,
}

fn examples(seed: u64) -> Vec<Example> {
    let text = std::fs::read_to_string(folder().join("inputs.tsv")).expect("the list of inputs");
    let mut random = Random(seed);
    let mut examples = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [file, groups, push, buffers] = columns[..] else { panic!("{line}") };
        let groups: Vec<u32> = groups.split(',').map(|n| n.parse().expect("a number")).collect();
        let mut inputs = Inputs::new(groups.try_into().expect("three axes")).push(words(push, &mut random));
        for buffer in buffers.split(' ') {
            let (place, contents) = buffer.split_once('=').expect("a buffer");
            let (set, binding) = place.split_once(':').expect("a binding");
            let number = |text: &str| text.parse().expect("a number");
            inputs = inputs.buffer(number(set), number(binding), words(contents, &mut random));
        }
        examples.push(Example { file: file.to_owned(), inputs });
    }
    examples
}

fn check(code: CodeOptions, seed: u64) {
    let options = Options {
        targets: kempe::targets().iter().copied().filter(|t| offers(*t, code.threads)).collect(),
        front: kempe::FrontOptions::default(),
        code,
        keep: Keep { lowered: true, ..Keep::default() },
        limits: Limits::default(),
    };
    let examples = examples(seed);
    assert_eq!(examples.len(), 12);
    for example in &examples {
        let source = Source {
            name: example.file.clone(),
            contents: std::fs::read(folder().join(&example.file)).map_err(|e| e.to_string()),
            stage: None,
        };
        let results = kempe::compile::compile(&source, &options);
        assert_eq!(results.len(), options.targets.len(), "{}", example.file);
        for result in results {
            let name = format!("{} for {} with {code:?}", example.file, result.target);
            assert_eq!(result.status, Status::Ok, "{name}: {}", result.report);
            let (Some(artifact), Some(lowered)) = (result.artifact, result.lowered) else { panic!("{name}") };
            if let Some(threads) = code.threads {
                assert_eq!(artifact.threads, threads, "{name}");
            }
            if code.force_spill {
                assert!(artifact.stats.spills > 0, "{name}: nothing was spilled");
            }
            // Through its JSON form, so that nothing is missing in it.
            let artifact = kempe::artifact::read(&kempe::artifact::write(&artifact)).expect("an artifact");
            for schedule in [0, 9] {
                let run = RunOptions { schedule, ..RunOptions::default() };
                let report = kempe::run::run_artifact(&artifact, &example.inputs, &run)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                let different = kempe::run::compare(&lowered, &artifact, &example.inputs, &run, &report)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(different, None, "{name}");
                // It did something.
                let changed =
                    report.buffers.iter().zip(&example.inputs.buffers).any(|(a, b)| a.bytes != b.bytes);
                assert!(changed, "{name}: no buffer was changed");
            }
        }
    }
}

#[test]
fn at_4_threads() {
    check(CodeOptions { threads: Some(4), ..CodeOptions::default() }, 1);
}

#[test]
fn at_2_threads() {
    check(CodeOptions { threads: Some(2), ..CodeOptions::default() }, 2);
}

#[test]
fn at_4_threads_with_everything_spilled() {
    check(CodeOptions { threads: Some(4), force_spill: true, ..CodeOptions::default() }, 3);
}

#[test]
fn at_2_threads_with_everything_spilled() {
    check(CodeOptions { threads: Some(2), force_spill: true, ..CodeOptions::default() }, 4);
}

#[test]
fn without_optimisation() {
    check(CodeOptions { level: kempe::Level::O0, ..CodeOptions::default() }, 5);
}
