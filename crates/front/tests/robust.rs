//! Whatever the input: a message or a module, never a panic.

mod common;

use common::*;
use kempe_front::{Language, Options, compile};
use std::time::{Duration, Instant};

fn try_bytes(bytes: &[u8]) -> bool {
    match compile("fuzz.spv", bytes, Language::Spirv, &Options::default()) {
        Ok(_) => true,
        Err(e) => {
            assert!(!e.0.is_empty() && !e.to_string().is_empty());
            false
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }
}

/// Modules of our own with much in them.
fn samples() -> Vec<Vec<u32>> {
    let loops = "\
        OpBranch %head
        %head = OpLabel
        %i = OpPhi %uint %u0 %entry %i1 %cont
        %s = OpPhi %uint %u0 %entry %s1 %cont
        OpLoopMerge %after %cont 0
        OpBranch %test
        %test = OpLabel
        %done = OpUGreaterThanEqual %bool %i %x
        OpBranchConditional %done %after %work
        %work = OpLabel
        OpSelectionMerge %join 0
        OpSwitch %i %other 1 %one 2 %two
        %one = OpLabel
        OpBranch %two
        %two = OpLabel
        OpBranch %join
        %other = OpLabel
        OpBranch %cont
        %join = OpLabel
        OpBranch %cont
        %cont = OpLabel
        %k = OpPhi %uint %u1 %join %u2 %other
        %s1 = OpIAdd %uint %s %k
        %i1 = OpIAdd %uint %i %u1
        OpBranch %head
        %after = OpLabel
        %r = OpIAdd %uint %s %a";
    let memory_globals = "\
        %arr = OpTypeArray %v4float %u4
        %st = OpTypeStruct %uint %arr %v3uint
        %fst = OpTypePointer 7 %st
        %ff = OpTypePointer 7 %float
        %wst = OpTypePointer 4 %st
        %wuint = OpTypePointer 4 %uint
        %zero = OpConstantNull %st
        %sh = OpVariable %wst 4
        %c4 = OpConstantComposite %v4float %f0 %f1 %f2 %f1
        %ca = OpConstantComposite %arr %c4 %c4 %c4 %c4
        %fn1 = OpTypeFunction %float %fst %uint
        %scope = OpConstant %uint 2
        %sem = OpConstant %uint 264";
    let memory = format!(
        "%pick = OpFunction %float 0 %fn1
        %pp = OpFunctionParameter %fst
        %pi = OpFunctionParameter %uint
        %pl = OpLabel
        %pc = OpUGreaterThan %bool %pi %u2
        OpSelectionMerge %pm 0
        OpBranchConditional %pc %early %pm
        %early = OpLabel
        OpReturnValue %f1
        %pm = OpLabel
        %pe = OpAccessChain %ff %pp %u1 %pi %u2
        %pv = OpLoad %float %pe
        OpReturnValue %pv
        OpFunctionEnd
        {}",
        body(
            "%v = OpLoad %st %t
             %v1 = OpCompositeInsert %st %a %v 0
             OpStore %t %v1
             %g = OpFunctionCall %float %pick %t %u1
             %h = OpExtInst %float %glsl 21 %g
             %wp = OpAccessChain %wuint %sh %u0
             %old = OpAtomicIAdd %uint %wp %u1 %u0 %a
             OpControlBarrier %scope %scope %sem
             %w = OpLoad %uint %wp
             %hi = OpBitcast %uint %h
             %r = OpIAdd %uint %w %hi"
        )
        .replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %fst 7 %zero")
    );
    vec![
        shader("", &body("%r = OpIMul %uint %a %u3")),
        shader("", &body(loops)),
        shader(memory_globals, &memory),
    ]
}

#[test]
fn samples_convert() {
    for (n, s) in samples().iter().enumerate() {
        convert(s).unwrap_or_else(|e| panic!("{n}: {e}"));
    }
}

#[test]
fn not_a_module() {
    for bytes in [&b""[..], b"\0", b"void main() {}", &[0; 20], &[0xff; 64], &[3, 2, 0x23, 7]] {
        assert!(!try_bytes(bytes));
    }
}

#[test]
fn truncated_everywhere() {
    for s in samples() {
        let b = bytes(&s);
        for n in 0..b.len() {
            let whole = try_bytes(&b[..n]);
            assert!(!whole, "{n} of {} bytes convert", b.len());
        }
        assert!(try_bytes(&b));
    }
}

#[test]
fn random_words_behind_a_header() {
    let mut r = Random(7);
    for _ in 0..2000 {
        let mut w = vec![0x0723_0203, 0x0001_0300, 0, 50, 0];
        for _ in 0..r.below(40) {
            let op = r.below(400) as u32;
            let len = 1 + r.below(6) as u32;
            w.push(len << 16 | op);
            for _ in 1..len {
                w.push(r.below(60) as u32);
            }
        }
        try_bytes(&bytes(&w));
    }
}

/// Changes a module in a few places. Words are replaced by other words of the module, small numbers, or with bits
/// flipped; instructions are dropped, doubled or moved.
fn mutate(words: &[u32], r: &mut Random) -> Vec<u32> {
    let mut w = words.to_vec();
    for _ in 0..1 + r.below(3) {
        let k = r.below(w.len());
        match r.below(8) {
            0 => w[k] ^= 1 << r.below(32),
            1 => w[k] = r.next(),
            2 => w[k] = r.below(80) as u32,
            3 | 4 => w[k] = w[r.below(w.len())],
            _ => {
                let starts: Vec<usize> = {
                    let (mut at, mut out) = (5, Vec::new());
                    while at < w.len() && w[at] >> 16 != 0 {
                        out.push(at);
                        at += (w[at] >> 16) as usize;
                    }
                    out
                };
                if starts.is_empty() {
                    continue;
                }
                let at = starts[r.below(starts.len())];
                let end = (at + (w[at] >> 16) as usize).min(w.len());
                let inst: Vec<u32> = w[at..end].to_vec();
                let to = starts[r.below(starts.len())];
                match r.below(3) {
                    0 => drop(w.drain(at..end)),
                    1 => drop(w.splice(to..to, inst)),
                    _ => {
                        w.splice(to..to, inst.iter().copied());
                        let at = if to <= at { at + inst.len() } else { at };
                        let end = (at + inst.len()).min(w.len());
                        w.drain(at..end);
                    }
                }
            }
        }
    }
    w
}

/// Mutates modules for `time`; says how many were tried and how many of them converted.
fn fuzz(samples: &[Vec<u32>], seed: u64, count: usize, time: Duration) -> (usize, usize) {
    let (mut r, start) = (Random(seed), Instant::now());
    let (mut tried, mut fine) = (0, 0);
    while tried < count && start.elapsed() < time {
        let w = mutate(&samples[r.below(samples.len())], &mut r);
        let b = bytes(&w);
        let one = Instant::now();
        fine += try_bytes(&b) as usize;
        tried += 1;
        assert!(one.elapsed() < Duration::from_secs(10), "a mutation took {:?}", one.elapsed());
    }
    (tried, fine)
}

#[test]
fn mutations() {
    let (tried, fine) = fuzz(&samples(), 1, 20_000, Duration::from_secs(20));
    assert!(tried > 1000 && fine > 0 && fine < tried, "{fine} of {tried}");
}

/// `cargo test --release -p kempe-front --test robust -- --ignored`
#[test]
#[ignore = "long"]
fn many_mutations() {
    let (tried, fine) = fuzz(&samples(), 2, 100_000, Duration::from_secs(300));
    println!("{tried} mutations, {fine} still convert");
    let root = std::env::var_os("KEMPE_SHARED").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        std::path::PathBuf::from,
    );
    let mut files = Vec::new();
    for collection in ["vello", "piglit-comp", "tfjs-webgpu", "ggml-vulkan", "ncnn"] {
        let Ok(dir) = std::fs::read_dir(root.join("corpus/spv").join(collection)) else { continue };
        let mut all: Vec<_> =
            dir.flatten().map(|e| e.path()).filter(|p| p.to_string_lossy().contains(".comp.")).collect();
        all.sort();
        files.extend(all.into_iter().step_by(7).take(12));
    }
    if files.is_empty() {
        eprintln!("SKIPPED: no corpus at {} (set KEMPE_SHARED)", root.display());
        return;
    }
    let modules: Vec<Vec<u32>> = files
        .iter()
        .filter_map(|f| std::fs::read(f).ok())
        .map(|b| b.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
        .collect();
    let (tried, fine) = fuzz(&modules, 3, 30_000, Duration::from_secs(300));
    println!("{tried} mutations of {} corpus modules, {fine} still convert", modules.len());
    for m in modules.iter().take(10) {
        let b = bytes(m);
        for n in (0..b.len()).step_by(4) {
            assert!(!try_bytes(&b[..n]));
        }
    }
}
