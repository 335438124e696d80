//! Malformed SPIR-V down the whole road, for every target: a message or checked code, never a panic, a hang or memory without
//! bound.
//!
//! Three kinds: modules that a validator rejects (kernels, whose refusal is switched off by making compute shaders of them), and
//! modules of the corpus and of `examples/` that were cut off, had bits flipped, or were spliced with another one. (The words that
//! `crates/front/tests/robust.rs` changes are in modules of our own, and only read.)

#![cfg(all(feature = "glsl", feature = "wgsl"))]

use kempe::Stage;
use kempe::compile::{CodeOptions, Keep, Options, Source, Status, compile};
use kempe::limits::{Allocator, Limits};
use kempe_front::Language;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Makes the limit of memory exact.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// What a compile of a module of at most [`LARGEST`] bytes may take. Valid ones of this size take a fraction of a second and some
/// 100 MB.
const LIMITS: Limits = Limits { time: Duration::from_secs(60), memory: 1 << 30 };
const LARGEST: u64 = 24 << 10;

/// What became of modules.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    tried: usize,
    /// Results with code.
    code: usize,
    /// Results with a message.
    refused: usize,
}

impl Tally {
    /// Compiles one module for every target; gives the first message.
    fn add(&mut self, name: &str, bytes: Vec<u8>) -> String {
        self.tried += 1;
        let source = Source { name: format!("{name}.spv"), contents: Ok(bytes), stage: None };
        let options = Options {
            targets: kempe::targets().to_vec(),
            front: kempe_front::Options::default(),
            code: CodeOptions { verify: true, ..CodeOptions::default() },
            keep: Keep::default(),
            limits: LIMITS,
        };
        let results = compile(&source, &options);
        assert!(results.len() >= options.targets.len(), "{name}: {} results", results.len());
        let mut message = String::new();
        for r in results {
            match r.status {
                Status::Ok => {
                    assert!(r.artifact.is_some_and(|a| !a.code.is_empty()), "{name}: no code");
                    self.code += 1;
                }
                Status::Error => {
                    assert!(!r.message.is_empty() && r.report.ends_with('\n'), "{name}: says nothing");
                    self.refused += 1;
                    message = r.message;
                }
                Status::Limit | Status::Bug => panic!("{name} for {}: {}", r.target, r.message),
            }
        }
        message
    }
}

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("KEMPE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let corpus = shared.join("corpus");
    if !corpus.is_dir() {
        eprintln!("SKIPPED: no corpus at {} (set KEMPE_SHARED)", corpus.display());
        return None;
    }
    Some(corpus)
}

/// The modules in the folders of a folder, by name.
fn modules(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for collection in std::fs::read_dir(folder).expect("a folder").flatten() {
        let files = std::fs::read_dir(collection.path()).expect("a folder").flatten().map(|f| f.path());
        out.extend(files.filter(|f| f.extension().is_some_and(|e| e == "spv")));
    }
    out.sort();
    out
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

const HEADER: usize = 5;
const MEMORY_MODEL: u32 = 14;
const ENTRY_POINT: u32 = 15;
const EXECUTION_MODE: u32 = 16;
const TYPE_VOID: u32 = 19;
const TYPE_POINTER: u32 = 32;
const TYPE_FUNCTION: u32 = 33;
const FUNCTION: u32 = 54;
const FUNCTION_PARAMETER: u32 = 55;
const VARIABLE: u32 = 59;
const LABEL: u32 = 248;

/// Where each instruction starts.
fn starts(words: &[u32]) -> Vec<usize> {
    let (mut at, mut out) = (HEADER, Vec::new());
    while at < words.len() && words[at] >> 16 != 0 {
        out.push(at);
        at += (words[at] >> 16) as usize;
    }
    out
}

/// A kernel as a compute shader: what the front end refuses of it at once is put aside (execution model, memory model, parameters of
/// entry points, which become undefined values, memory of kernels, which becomes that of physical pointers, inputs, which become
/// private), the rest stays.
fn as_shader(kernel: &[u32]) -> Vec<u32> {
    let mut out = kernel[..HEADER].to_vec();
    let bound = out[3];
    out[3] = bound + 1;
    let (mut entries, mut void) = (Vec::new(), None);
    let (mut typed, mut inside) = (false, false);
    let mut undefined = Vec::new();
    let class = |class: u32| match class {
        // Of constants, of all work-groups, of any kind.
        0 | 5 | 8 => 5349,
        // Inputs of kernels have 64 bits.
        1 => 6,
        other => other,
    };
    for at in starts(kernel) {
        let inst = &kernel[at..kernel.len().min(at + (kernel[at] >> 16) as usize)];
        match inst[0] & 0xffff {
            MEMORY_MODEL => out.extend([inst[0], 5348, 1]),
            TYPE_POINTER => out.extend([inst[0], inst[1], class(inst[2]), inst[3]]),
            VARIABLE => {
                out.extend([inst[0], inst[1], inst[2], class(inst[3])]);
                out.extend(&inst[4..]);
            }
            ENTRY_POINT => {
                out.extend([inst[0], 5]);
                out.extend(&inst[2..]);
                entries.push(inst[2]);
            }
            // Modes of kernels mean nothing to shaders.
            EXECUTION_MODE => {}
            FUNCTION => {
                if let (false, Some(void)) = (typed, void) {
                    out.extend([3 << 16 | TYPE_FUNCTION, bound, void]);
                    typed = true;
                }
                inside = entries.contains(&inst[2]);
                out.extend(&inst[..4]);
                out.push(if inside { bound } else { inst[4] });
            }
            FUNCTION_PARAMETER if inside => undefined.push([3 << 16 | 1, inst[1], inst[2]]),
            LABEL => {
                out.extend(inst);
                out.extend(undefined.drain(..).flatten());
            }
            op => {
                if op == TYPE_VOID {
                    void = Some(inst[1]);
                }
                out.extend(inst);
            }
        }
    }
    let modes = entries.iter().flat_map(|&e| [6 << 16 | EXECUTION_MODE, e, 17, 8, 1, 1]);
    let place = starts(&out).into_iter().rfind(|&at| out[at] & 0xffff == ENTRY_POINT);
    if let Some(at) = place {
        let end = at + (out[at] >> 16) as usize;
        out.splice(end..end, modes);
    }
    out
}

#[test]
fn modules_that_a_validator_rejects() {
    let Some(corpus) = corpus() else { return };
    let files = modules(&corpus.join("spv-invalid"));
    assert_eq!(files.len(), 72);
    let (mut kernels, mut shaders) = (Tally::default(), Tally::default());
    let mut reasons = std::collections::BTreeMap::<String, usize>::new();
    for file in files {
        let (name, module) = (file.to_string_lossy(), std::fs::read(&file).expect("a file"));
        let message = kernels.add(&name, module.clone());
        assert!(message.contains("OpenCL kernels are not supported yet"), "{name}: {message}");
        let message = shaders.add(&name, bytes(&as_shader(&words(&module))));
        *reasons.entry(message).or_default() += 1;
    }
    println!("as kernels {kernels:?}, as shaders {shaders:?}: {reasons:#?}");
    assert_eq!(kernels.code, 0);
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % n
    }
}

/// The modules of `examples/`.
fn examples() -> Vec<(String, Vec<u32>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|f| f.path()).collect();
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let (language, stage) = match file.extension().and_then(|e| e.to_str()) {
            Some("comp") => (Language::Glsl, Some(Stage::Compute)),
            Some("wgsl") => (Language::Wgsl, None),
            _ => continue,
        };
        let (name, text) = (file.to_string_lossy().into_owned(), std::fs::read(&file).expect("a file"));
        let options = kempe_front::Options { stage, ..kempe_front::Options::default() };
        out.push((
            name.clone(),
            kempe_front::to_spirv(&name, &text, language, &options).expect("an example"),
        ));
    }
    out
}

/// Examples, and every `step`th module of the corpus that is not too large and no kernel.
fn sample(step: usize) -> Vec<(String, Vec<u32>)> {
    let mut out = examples();
    let Some(corpus) = corpus() else { return out };
    let files = modules(&corpus.join("spv")).into_iter().filter(|f| {
        !f.to_string_lossy().contains(".kernel.") && f.metadata().is_ok_and(|m| m.len() <= LARGEST)
    });
    for file in files.step_by(step) {
        out.push((file.to_string_lossy().into_owned(), words(&std::fs::read(&file).expect("a file"))));
    }
    out
}

/// Damages each module `times` in each of three ways: cut off anywhere, a few bits flipped behind the header, its beginning before the
/// rest of another one.
fn damage(sample: &[(String, Vec<u32>)], times: usize, seed: u64) -> [Tally; 3] {
    let mut r = Random(seed);
    let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
    for (name, module) in sample {
        for n in 0..times {
            let whole = bytes(module);
            let cut = r.below(whole.len());
            let message = tallies[0].add(&format!("{name} cut at {cut}"), whole[..cut].to_vec());
            assert!(!message.is_empty(), "{name} cut at {cut} becomes code");

            let mut flipped = module.clone();
            let flips: Vec<(usize, u32)> = (0..1 + r.below(3))
                .map(|_| (HEADER + r.below(module.len() - HEADER), r.below(32) as u32))
                .collect();
            for &(word, bit) in &flips {
                flipped[word] ^= 1 << bit;
            }
            tallies[1].add(&format!("{name} flipped {flips:?}"), bytes(&flipped));

            // Half of them with itself: ids and types often agree then.
            let (other, tail) = if n % 2 == 0 {
                (name, module)
            } else {
                let pick = &sample[r.below(sample.len())];
                (&pick.0, &pick.1)
            };
            let (heads, tails) = (starts(module), starts(tail));
            let (head, from) = (heads[r.below(heads.len())], tails[r.below(tails.len())]);
            let mut spliced = [&module[..head], &tail[from..]].concat();
            spliced[3] = module[3].max(tail[3]);
            tallies[2].add(&format!("{name} to {head}, {other} from {from}"), bytes(&spliced));
        }
    }
    tallies
}

#[test]
fn damaged_modules() {
    let sample = sample(29);
    let [cut, flipped, spliced] = damage(&sample, 2, 1);
    println!("{} modules: cut {cut:?}, flipped {flipped:?}, spliced {spliced:?}", sample.len());
    // The changes reach both: code that stays right, and messages.
    assert!(flipped.code > 0 && flipped.refused > 0 && spliced.refused > 0);
}

/// `cargo test --release -p kempe --test malformed -- --ignored --nocapture`; `KEMPE_SEEDS=n` takes n seeds.
#[test]
#[ignore = "long"]
fn many_damaged_modules() {
    let seeds = std::env::var("KEMPE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let sample = sample(7);
    for seed in 2..2 + seeds {
        let [cut, flipped, spliced] = damage(&sample, 4, seed);
        println!(
            "seed {seed}, {} modules: cut {cut:?}, flipped {flipped:?}, spliced {spliced:?}",
            sample.len()
        );
    }
}
