//! Hand-written vertex and fragment programs: what they give, and what stops them.

use super::*;
use crate::asm::assemble;
use kempe_ir::eval::{f16_to_f32, f32_to_f16};
use kempe_ir::io::{Interpolation, Plane};

pub(super) const MARK: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n";
pub(super) const END: &str = "nop; nop; thrsw\n nop\n nop\n";
/// A write of target 0: 32-bit words, per pixel; a pair of halves; and depth, own or not.
const WORDS: [u32; 5] = [0, 0xffff_ff3c, 0xffff_ff3d, 0xffff_ff3e, 0xffff_ff3f];
const PAIR: u32 = 0xffff_fffe;
const DEPTH: u32 = 0xffff_ff8c;
const UNMODIFIED: u32 = 0xffff_ff84;

/// `W` payload w, `C` the register of coefficients.
pub(super) fn per_version(version: Version, text: &str) -> String {
    let (w, c) = match version {
        Version::V42 => ("rf0", "r5"),
        Version::V71 => ("rf3", "rf0"),
    };
    text.replace("@W", w).replace("@C", c)
}

/// Lane k at pixel (k, 2 k); all lanes have all samples but lanes 2 and 3; quad 3 is dead.
pub(super) fn batch() -> FragmentBatch {
    let of = |f: &dyn Fn(u32) -> u32| std::array::from_fn(|i| f(i as u32));
    let varying = |n: u32| Varying {
        part: of(&|i| ((i * n) as f32 * 0.3).to_bits()),
        constant: of(&|i| (n as f32 + 0.7 * (i / 4) as f32).to_bits()),
    };
    FragmentBatch {
        x: of(&|i| i),
        y: of(&|i| 2 * i),
        fx: of(&|i| (i as f32 + 0.5).to_bits()),
        fy: of(&|i| (2.0 * i as f32 + 0.5).to_bits()),
        samples: std::array::from_fn(|i| if matches!(i, 2 | 3 | 12..) { 0 } else { 0xf }),
        back: 0x00f0,
        w: of(&|i| (1.0 + i as f32 / 7.0).to_bits()),
        w_centroid: of(&|i| (1.1 + i as f32 / 9.0).to_bits()),
        z: of(&|i| (i as f32 / 16.0).to_bits()),
        sample: [2; LANES],
        varyings: (1..=4).map(varying).collect(),
        tile: Vec::new(),
    }
}

const COVERED: Mask = 0x0ff3;

pub(super) struct Fragments {
    pub batches: Vec<FragmentBatch>,
    pub draw: Draw,
    pub memory: Memory,
    pub uniforms: Vec<u32>,
    pub options: Options,
    pub threads: u32,
}

impl Fragments {
    pub fn new(uniforms: &[u32]) -> Fragments {
        Fragments {
            batches: vec![batch()],
            draw: Draw::default(),
            memory: Memory::new(),
            uniforms: uniforms.to_vec(),
            options: Options::default(),
            threads: 2,
        }
    }

    pub fn run(&self, version: Version, text: &str) -> (FragmentRun, Memory) {
        let text = per_version(version, text);
        let words = assemble(version, &text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        let program = Program::graphics(version, words, self.uniforms.clone(), self.threads);
        let mut memory = self.memory.clone();
        let run = Code::new(&program).run_fragments(&self.batches, &self.draw, &mut memory, &self.options);
        (run, memory)
    }

    /// Runs on both versions with the same outputs.
    #[track_caller]
    pub fn ok(&self, text: &str) -> (Vec<FragmentOutput>, Memory) {
        let [a, b] = Version::ALL.map(|version| {
            let (run, memory) = self.run(version, text);
            if let Err(fault) = run.outcome.result {
                panic!("{}: {fault}\n{text}", version.name());
            }
            assert!(run.outcome.warnings.iter().all(|w| w.rule == "12.1"), "{:?}", run.outcome.warnings);
            assert!(run.batches.iter().all(|b| b.ended));
            (run.batches, memory)
        });
        assert_eq!(a, b);
        a
    }

    #[track_caller]
    pub fn stops(&self, text: &str, rule: &str) {
        for version in Version::ALL {
            match self.run(version, text).0.outcome.result {
                Err(fault) => assert_eq!(fault.rule, rule, "{}: {fault}", version.name()),
                Ok(()) => panic!("{}: nothing stops it\n{text}", version.name()),
            }
        }
    }
}

/// Varying n, its part in rf10 and its constant in rf11.
pub(super) const VARY: &str = "nop; nop; ldvary.rf10\n nop\n nop; mov rf11, @C\n";
/// rf20 and rf21: 1 and 0, of which nothing is undefined.
const CONSTANTS: &str = "nop; mov rf21, 0\n add rf20, rf21, 1; nop\n";

#[test]
fn varyings_in_all_modes() {
    // Pipelined as section 12.1 says: each product goes with the next ldvary, and its sum reads the coefficient then.
    let text = format!(
        "nop; nop; ldvary.rf10
 nop; fmul rf11, rf10, @W; ldvary.rf12
 fadd rf13, rf11, @C; nop; ldvary.rf14
 fadd rf15, rf12, @C; nop
 nop; fmul rf16, rf14, rf1; ldvary.rf17
 fadd rf18, rf16, @C; nop
 nop; mov rf19, @C
 {MARK} nop; mov tlbu, rf13\n nop; mov tlb, rf15\n nop; mov tlb, rf18\n nop; mov tlb, rf19\n {END}"
    );
    let fragments = Fragments::new(&[WORDS[4]]);
    let (out, _) = fragments.ok(&text);
    let b = &fragments.batches[0];
    let color = out[0].color(0).unwrap();
    assert_eq!(color.kind, TileKind::Word { target: 0, components: 4 });
    for lane in 0..LANES {
        let value = |n: usize, how, w: u32| {
            let v = &b.varyings[n];
            let plane = Plane { part: vec![v.part[lane]], constant: vec![v.constant[lane]] };
            (COVERED >> lane & 1 != 0).then(|| plane.value(0, how, w))
        };
        let got = [0, 1, 2, 3].map(|k| color.component(0, k, lane));
        let want = [
            value(0, Interpolation::Smooth, b.w[lane]),
            value(1, Interpolation::NoPerspective, 0),
            value(2, Interpolation::Smooth, b.w_centroid[lane]),
            value(3, Interpolation::Flat, 0),
        ];
        assert_eq!(got, want, "lane {lane}");
    }
    assert_eq!(out[0].samples, b.samples);
    assert_eq!(out[0].depth(0), Depth::Early);
    // One varying too many, and one that is left: a warning.
    Fragments::new(&[]).stops(&format!("{}{MARK}{END}", VARY.repeat(5)), "12.1");
    let few = format!("{VARY}{MARK} nop; mov tlbu, rf11\n {END}");
    for version in Version::ALL {
        let (run, _) = Fragments::new(&[WORDS[1]]).run(version, &few);
        assert_eq!((run.outcome.result, run.outcome.warnings[0].rule), (Ok(()), "12.1"));
    }
}

#[test]
fn what_a_fragment_is_given() {
    let text = format!(
        "fxcd rf10; nop\n fycd rf11; nop\n xcd rf12; nop\n ycd rf13; nop\n revf rf14; nop\n sampid rf15; nop\n msf rf16; nop
 fdx rf17, rf10; nop\n fdy rf18, rf11; nop
 {MARK} nop; mov tlbu, rf10\n nop; mov tlb, rf11\n nop; mov tlb, rf12\n nop; mov tlb, rf13
 nop; mov tlbu, rf14\n nop; mov tlb, rf15\n nop; mov tlb, rf16\n nop; mov tlb, rf2
 nop; mov tlbu, rf17\n nop; mov tlb, rf18\n {END}"
    );
    let fragments = Fragments::new(&[WORDS[4], WORDS[4] - 8, WORDS[2] - 16]);
    let (out, _) = fragments.ok(&text);
    let b = &fragments.batches[0];
    let at = |target, k, lane| out[0].color(target).unwrap().component(0, k, lane);
    for lane in [0, 1, 4, 11] {
        assert_eq!([0, 1, 2, 3].map(|k| at(0, k, lane).unwrap()), [b.fx, b.fy, b.x, b.y].map(|v| v[lane]));
        let back = u32::from((4..8).contains(&lane));
        assert_eq!([0, 1, 2, 3].map(|k| at(1, k, lane).unwrap()), [back, 2, 15, b.z[lane]]);
        // Helpers have coordinates: lane 0 has both derivatives.
        assert_eq!([0, 1].map(|k| at(2, k, lane).unwrap()), [1f32, 4.0].map(f32::to_bits));
    }
    assert!([2, 3, 12, 15].iter().all(|&lane| at(0, 0, lane).is_none()));
    Fragments::new(&[]).stops(&format!("iid rf1; nop\n{MARK}{END}"), "unsupported");
}

#[test]
fn quads_that_nobody_asks_for() {
    let write = format!("{MARK} nop; mov tlbu, rf20\n {END}");
    let fragments = Fragments::new(&[WORDS[1]]);
    // Lanes of quad 3 have no coordinates: a branch on them stops, one that ignores dead quads does not.
    let branch = |b: &str| {
        format!(
            "{CONSTANTS}xcd rf10; nop\n sub.pushn -, rf10, 12; nop\n {b} skip\n nop\n nop\n nop\n nop\n skip: {write}"
        )
    };
    fragments.stops(&branch("b.alla"), "undefined");
    fragments.ok(&branch("b.allaq"));
    fragments.ok(&branch("b.allap"));
    // A helper counts with q, and not with p: lane 2 has x = 2.
    let helper = |b: &str| {
        format!(
            "{CONSTANTS}xcd rf10; nop\n xor.pushz -, rf10, 2; nop\n {b} skip\n nop\n nop\n nop\n nop; mov rf20, rf21\n skip: {write}"
        )
    };
    let color = |text: &str| fragments.ok(text).0[0].color(0).unwrap().component(0, 0, 0);
    assert_eq!(color(&helper("b.anyaq")), Some(1));
    assert_eq!(color(&helper("b.anyap")), Some(0));
    // Undefined in dead quads only, and in helpers only: nothing is written there.
    fragments.ok(&format!("xcd rf20; nop\n{write}"));
    // What a lane with samples writes may be undefined; it is told.
    let (out, _) = fragments.ok(&write.replace("rf20", "rf40"));
    assert_eq!(out[0].color(0).unwrap().words[0].poison, COVERED);
    assert_eq!(out[0].color(0).unwrap().component(0, 0, 0), None);
}

/// Puts x into the word x of the buffer at the first uniform; rf12 = address.
const STORE: &str = "xcd rf10; nop; ldunifrf.rf11\n shl rf12, rf10, 2; nop\n add rf12, rf12, rf11; nop\n";

fn buffer(memory: &mut Memory) -> u32 {
    memory.place("data", (0..64u32).flat_map(|w| (100 + w).to_le_bytes()).collect(), true).unwrap()
}

fn words(memory: &Memory, base: u32) -> Vec<u32> {
    (0..64).map(|i| memory.read_u32(base + 4 * i).unwrap()).collect()
}

#[test]
fn discard_then_store_and_output() {
    // Odd lanes are discarded; the store and the colour know it, the load per quad does not.
    let text = format!(
        "{STORE} {CONSTANTS} and.pushz -, rf10, 1; nop
 nop; mov.ifna rf13, rf21\n nop
 setmsf.ifna -, rf21; nop
 nop; mov tmud, rf10\n nop; mov tmua, rf12\n tmuwt -; nop
 nop; mov tmuau, rf12\n nop; nop; thrsw\n nop\n nop\n nop; nop; ldtmu.rf14\n fdx rf15, rf14; nop
 {MARK} nop; mov tlbu, rf20\n nop; mov tlbu, rf14\n nop; mov tlb, rf15\n {END}"
    );
    let mut fragments = Fragments::new(&[]);
    let base = buffer(&mut fragments.memory);
    // Per quad, 32 bits, load.
    fragments.uniforms = vec![base, 0xffff_ff7f, UNMODIFIED, WORDS[2]];
    let (out, memory) = fragments.ok(&text);
    let even: Mask = COVERED & 0x5555;
    let got = words(&memory, base);
    for lane in 0..LANES {
        let there = even >> lane & 1 != 0;
        assert_eq!(got[lane], if there { lane as u32 } else { 100 + lane as u32 });
        assert_eq!(out[0].samples[lane], if there { 15 } else { 0 });
        let color = out[0].color(0).unwrap();
        assert_eq!(color.component(0, 0, lane), there.then_some(lane as u32));
        // Lane + 1 was not stored, but loaded: the difference of the bits of 101 + lane and lane as floats.
        let difference = f32::from_bits(101 + lane as u32) - f32::from_bits(lane as u32);
        assert_eq!(color.component(0, 1, lane), there.then_some(difference.to_bits()));
        assert_eq!(out[0].depth(lane), if there { Depth::Unmodified } else { Depth::Early });
    }
    // Per pixel the neighbours load nothing, so there is no difference.
    fragments.uniforms[1] = 0xffff_ffff;
    let (out, _) = fragments.ok(&text);
    assert_eq!(out[0].color(0).unwrap().component(0, 1, 0), None);
    assert_eq!(out[0].color(0).unwrap().component(0, 0, 4), Some(4));
    // Flags that a lane does not have cannot be set; nor unknown ones.
    let set = |value: &str| format!("{CONSTANTS} setmsf -, {value}; nop\n{MARK} nop; mov tlbu, rf20\n{END}");
    let fragments = Fragments::new(&[WORDS[1]]);
    fragments.stops(&set("rf20"), "undefined");
    fragments.stops(&set("rf50"), "undefined");
    fragments.ok(&set("rf21"));
    // In dead quads the condition is not known: what is clear stays clear.
    let dead = format!(
        "{CONSTANTS} xcd.pushz rf10; nop\n setmsf.ifa -, rf21; nop\n{MARK} nop; mov tlbu, rf20\n{END}"
    );
    assert_eq!(fragments.ok(&dead).0[0].samples[..2], [0, 15]);
    let dead =
        dead.replace("setmsf.ifa -, rf21", "msf rf13; nop\n and rf13, rf13, rf10; nop\n setmsf.ifa -, rf13");
    fragments.ok(&dead);
}

#[test]
fn helpers_in_accesses_per_quad() {
    let mut fragments = Fragments::new(&[]);
    let base = buffer(&mut fragments.memory);
    fragments.uniforms = vec![base, 0xffff_ff7f, WORDS[1]];
    let load = |how: &str, address: &str| {
        format!(
            "{STORE} {CONSTANTS} {how} nop; mov{address}, rf12\n nop; nop; thrsw\n nop\n nop\n nop; nop; ldtmu.rf14\n itof rf15, rf14; nop\n fdy rf15, rf15; nop
 {MARK} nop; mov tlbu, rf15\n {END}"
        )
    };
    let value = |fragments: &Fragments, text: &str, lane| {
        fragments.ok(text).0[0].color(0).unwrap().component(0, 0, lane)
    };
    let two = Some(2f32.to_bits());
    assert_eq!(value(&fragments, &load("", " tmuau"), 0), two);
    // Only the helper 2 is enabled: all of its quad take part, other quads do not.
    let only = "xor.pushz -, rf10, 2; nop\n";
    assert_eq!(value(&fragments, &load(only, ".ifa tmuau"), 0), two);
    assert_eq!(value(&fragments, &load(only, ".ifa tmuau"), 4), None);
    // An address of nowhere: stops in an enabled lane with samples, not in a helper or in a lane that only runs along.
    let far = |lane: u32| format!("xor.pushz -, rf10, {lane}; nop\n nop; mov.ifa rf12, rf21\n");
    fragments.stops(&load(&far(1), " tmuau"), "memory");
    assert_eq!(value(&fragments, &load(&far(2), " tmuau"), 0), None);
    assert_eq!(value(&fragments, &load(&far(1), ".ifna tmuau"), 0), two);
    assert_eq!(value(&fragments, &load(&far(1), ".ifna tmuau"), 1), None);
    // Stores per quad are done by helpers too; a bad address stops them.
    let store = |how: &str, address: &str| {
        format!(
            "{STORE} {CONSTANTS} {how} nop; mov tmud, rf10\n nop; mov{address}, rf12\n tmuwt -; nop\n {MARK} nop; mov tlbu, rf20\n {END}"
        )
    };
    let (_, memory) = fragments.ok(&store("", " tmuau"));
    assert_eq!(words(&memory, base)[..14], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 112, 113]);
    fragments.stops(&store(&far(2), " tmuau"), "memory");
    fragments.stops(&store("", " tmuau").replace("mov tmuau, rf12", "mov.ifa tmuau, rf12"), "undefined");
}

#[test]
fn tile_buffer_formats() {
    // Targets 3 (halves, two pairs), 0 (one pair), 1 (three words), depth before them.
    let text = format!(
        "{CONSTANTS} itof rf10, rf20; nop\n nop; mov rf11, 0x3f000000\n fadd rf12, rf10, rf11; nop
 {MARK} nop; mov tlbu, rf11
 vfpack tlbu, rf10, rf11; nop\n vfpack tlb, rf12, rf21; nop
 vfpack tlbu, rf12, rf10; nop
 nop; mov tlbu, rf20\n nop; mov tlb, rf21\n nop; mov tlb, rf12\n {END}"
    );
    let third = 0xffff_ffc7 | 4 << 3;
    let fragments = Fragments::new(&[DEPTH, third, PAIR, WORDS[3] - 8]);
    let (out, _) = fragments.ok(&text);
    let o = &out[0];
    let kinds: Vec<TileKind> = o.tile.iter().map(|w| w.kind).collect();
    let half = |target, components| TileKind::Half { target, components, swapped: true };
    assert_eq!(
        kinds,
        [TileKind::Depth { own: true }, half(3, 4), half(0, 2), TileKind::Word { target: 1, components: 3 }]
    );
    let all =
        |target: u8| [0, 1, 2, 3].map(|k| o.color(target).unwrap().component(0, k, 5).map(f32::from_bits));
    assert_eq!(all(3), [Some(1.0), Some(0.5), Some(1.5), Some(0.0)]);
    assert_eq!(all(0), [Some(1.5), Some(1.0), None, None]);
    assert_eq!(
        [0, 1, 2].map(|k| o.color(1).unwrap().component(0, k, 5)),
        [Some(1), Some(0), Some(1.5f32.to_bits())]
    );
    assert_eq!((o.depth(5), o.depth(2)), (Depth::Own(Some(0.5f32.to_bits())), Depth::Early));
    assert!(o.color(2).is_none());
    // The default configuration needs no uniform, and comes back behind one.
    let plain = format!("{CONSTANTS}{MARK} nop; mov tlb, rf20\n nop; mov tlb, rf21\n {END}");
    assert_eq!(Fragments::new(&[]).ok(&plain).0[0].tile[0].kind, half(0, 4));
    let behind = plain.replacen("nop; mov tlb", "nop; mov tlbu, rf21\n nop; mov tlb", 1);
    assert_eq!(Fragments::new(&[PAIR - 8]).ok(&behind).0[0].tile[1].kind, half(0, 4));
    // Several bytes in one word.
    let both = format!("{CONSTANTS}{MARK} nop; mov tlbu, rf20\n nop; mov tlb, rf21\n {END}");
    let kinds: Vec<TileKind> =
        Fragments::new(&[0xffff_fe84]).ok(&both).0[0].tile.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [TileKind::Depth { own: false }, half(0, 2)]);
    // Words that are missing, at the end and before another configuration; configurations that do not exist.
    Fragments::new(&[WORDS[2]])
        .stops(&plain.replacen("tlb,", "tlbu,", 1).replace("nop; mov tlb, rf21", "nop"), "12.4");
    Fragments::new(&[WORDS[2], WORDS[1]]).stops(&plain.replace("tlb,", "tlbu,"), "12.4");
    Fragments::new(&[0xffff_ff7f]).stops(&plain.replacen("tlb,", "tlbu,", 1), "12.4");
    Fragments::new(&[UNMODIFIED - 4]).stops(&plain.replacen("tlb,", "tlbu,", 1), "12.4");
    // Halves that are not swapped have the first component above.
    let (out, _) = Fragments::new(&[PAIR - 2]).ok(&text.replace(
        "nop; mov tlbu, rf11\n vfpack tlbu, rf10, rf11; nop\n vfpack tlb, rf12, rf21; nop\n vfpack tlbu, rf12, rf10; nop
 nop; mov tlbu, rf20\n nop; mov tlb, rf21\n nop; mov tlb, rf12",
        "vfpack tlbu, rf12, rf10; nop",
    ));
    assert_eq!(out[0].color(0).unwrap().component(0, 0, 5), Some(1f32.to_bits()));
}

#[test]
fn samples_of_their_own() {
    let text = format!(
        "{CONSTANTS}{MARK} nop; mov tlbu, rf20\n nop; mov tlb, rf21\n add tlb, rf20, rf20; nop\n nop; mov tlb, rf20\n {END}"
    );
    let fragments = Fragments::new(&[WORDS[1] - 4]);
    let (out, _) = fragments.ok(&text);
    let color = out[0].color(0).unwrap();
    assert!(color.per_sample);
    assert_eq!([0, 1, 2, 3].map(|s| color.component(s, 0, 5)), [Some(1), Some(0), Some(2), Some(1)]);
    assert_eq!(color.words[0].samples[5], 15);
    fragments.stops(&text.replace("nop; mov tlb, rf20\n", "nop\n"), "12.4");
}

#[test]
fn reading_the_tile_buffer() {
    let text = format!(
        "{MARK} nop; nop; ldtlbu.rf10\n nop; nop; ldtlb.rf11\n add rf12, rf10, rf11; nop\n nop; mov tlbu, rf12\n {END}"
    );
    let mut fragments = Fragments::new(&[WORDS[2], WORDS[1]]);
    fragments.batches[0].tile = vec![TileContents { target: 0, words: vec![[5; LANES], [7; LANES]] }];
    let value = |f: &Fragments| f.ok(&text).0[0].color(0).unwrap().component(0, 0, 1);
    assert_eq!(value(&fragments), Some(12));
    fragments.batches[0].tile[0].words.pop();
    assert_eq!(value(&fragments), None);
    fragments.stops(&text.replace("nop; nop; ldtlb.rf11", "nop; nop; ldtlbu.rf11"), "12.4");
    fragments.stops(&format!("nop; nop; ldtlbu.rf10\n{text}"), "45");
}

#[test]
fn batches_interleave_and_give_the_same() {
    // Each batch counts itself in memory around a switch; four threads are resident, nine batches run.
    let text = format!(
        "{STORE} {VARY} nop; mov tmua, rf12\n nop; nop; thrsw\n nop\n nop\n nop; nop; ldtmu.rf14
 {MARK} nop; mov tlbu, rf14\n nop; mov tlb, rf11\n {END}"
    );
    let mut fragments = Fragments::new(&[]);
    let base = buffer(&mut fragments.memory);
    fragments.uniforms = vec![base, WORDS[2]];
    fragments.batches = (0..9)
        .map(|n| {
            let mut b = batch();
            b.varyings = vec![Varying { part: [0; LANES], constant: [n; LANES] }];
            b.x = b.x.map(|x| x + n);
            b
        })
        .collect();
    fragments.draw.together = 4;
    let orders = [Order::RoundRobin, Order::Reverse, Order::Sequential, Order::Shuffled(7)];
    let results = orders.map(|order| {
        fragments.options.order = order;
        let (run, _) = fragments.run(Version::V71, &text);
        assert_eq!(run.outcome.threads.len(), 9);
        assert!(run.outcome.threads.iter().all(|t| t.switches == 2));
        fragments.ok(&text).0
    });
    assert!(results.iter().all(|r| *r == results[0]));
    for (n, out) in results[0].iter().enumerate() {
        let color = out.color(0).unwrap();
        assert_eq!(color.component(0, 0, 5), Some(105 + n as u32));
        assert_eq!(color.component(0, 1, 5), Some(n as u32));
    }
    fragments.draw.together = 1000;
    fragments.stops(&text, "dispatch");
    // A fault names its batch.
    fragments.draw.together = 0;
    fragments.batches[7].x = [1000; LANES];
    let (run, _) = fragments.run(Version::V42, &text);
    let fault = run.outcome.result.unwrap_err();
    assert_eq!((fault.rule, fault.batch), ("memory", 7));
    fragments.batches.clear();
    assert!(fragments.ok(&text).0.is_empty());
}

pub(super) fn vertices(
    version: Version,
    text: &str,
    uniforms: &[u32],
    batch: &VertexBatch,
    rows: u32,
) -> VertexRun {
    let words = assemble(version, text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let program = Program::graphics(version, words, uniforms.to_vec(), 4);
    let draw = Draw { segment_rows: rows, ..Draw::default() };
    Code::new(&program).run_vertices(
        std::slice::from_ref(batch),
        &draw,
        &mut Memory::new(),
        &Options::default(),
    )
}

#[test]
fn rows_of_vertices() {
    let row = |n: u32| std::array::from_fn(|i| 100 * n + i as u32);
    let batch = VertexBatch { lanes: 0x03ff, rows: (0..3).map(row).collect(), ..VertexBatch::default() };
    let body = "ldvpmv_in rf1, 0; nop\n ldvpmv_in rf2, 2; nop\n eidx rf3; nop\n and rf4, rf3, 1; nop\n ldvpmd_in rf5, rf4; nop
 add rf6, rf1, rf2; nop\n stvpmv 0, rf6; nop\n add rf7, rf4, 4; nop\n stvpmd rf7, rf5; nop\n ldvpmv_out rf8, 0; nop
 stvpmv 6, rf8; nop\n vpmwt -; nop\n";
    let text = |body: &str| format!("{body}{MARK}{END}");
    let run = |version, body: &str| vertices(version, &text(body), &[], &batch, 8);
    for version in Version::ALL {
        let out = run(version, body);
        assert_eq!(out.outcome.result, Ok(()));
        let rows = &out.batches[0].rows;
        assert_eq!(rows.len(), 7);
        assert_eq!(rows[0].written, 0x03ff);
        assert_eq!([0, 3, 9, 10].map(|lane| rows[0].get(lane)), [Some(200), Some(206), Some(218), None]);
        assert_eq!([0, 1, 2, 3].map(|lane| rows[4].get(lane)), [Some(0), None, Some(2), None]);
        assert_eq!(rows[5].get(3), Some(103));
        assert_eq!(rows[6].get(9), Some(218));
        assert_eq!((rows[1].written, out.batches[0].ended), (0, true));
        // Undefined words are told; undefined or unequal rows stop, as does a row outside.
        let out = run(version, "stvpmv 1, rf9; nop\n vpmwt -; nop\n");
        assert_eq!((out.batches[0].rows[1].written, out.batches[0].rows[1].get(0)), (0x03ff, None));
        let stops = |body: &str| run(version, body).outcome.result.map_err(|f| f.rule);
        assert_eq!(stops("stvpmv rf9, rf9; nop\n"), Err("undefined"));
        assert_eq!(stops("eidx rf3; nop\n ldvpmv_in rf4, rf3; nop\n"), Err("12.3"));
        assert_eq!(stops("ldvpmv_in rf4, 8; nop\n"), Err("12.3"));
        assert_eq!(stops("eidx rf3; nop\n stvpmv 8, rf3; nop\n"), Err("12.3"));
        // A row that is no input holds nothing.
        assert_eq!(stops("ldvpmv_in rf4, 5; nop\n b.anya 0\n nop\n nop\n nop\n"), Err("undefined"));
        // Rule 62: an input that an output has been put over, in another lane or not.
        let over = "eidx.pushz rf3; nop\n stvpmv.ifa 2, rf3; nop\n ldvpmv_in rf4, 2; nop\n vpmwt -; nop\n";
        assert_eq!(stops(over), Err("62"));
        assert_eq!(stops(&over.replace("rf4, 2", "rf4, 1")), Ok(()));
        for other in [
            "ldvpmp rf4, rf3; nop\n",
            "ldvpmg_in rf4, rf3, rf3; nop\n",
            "nop; nop; ldvary.rf4\n",
            "nop; mov tlb, rf3\n",
            "xcd rf4; nop\n",
        ] {
            assert_eq!(stops(&format!("eidx rf3; nop\n{other}")), Err("unsupported"), "{other}");
        }
    }
}

/// Rules that a table of pairs cannot hold: see `rule_pairs`.
#[test]
fn depth_in_the_last_slot() {
    let text = |last: [&str; 2]| {
        format!("{CONSTANTS}{MARK} nop; mov tlbu, rf20\n nop; nop; thrsw\n {}\n {}\n", last[0], last[1])
    };
    let fragments = Fragments::new(&[0xffff_84fe]);
    let z = "nop; mov tlb, rf20";
    fragments.ok(&text([z, "nop"]));
    fragments.stops(&text(["nop", z]), "51");
    Fragments::new(&[0xffff_fefe]).ok(&text(["nop", z]));
}

#[test]
fn halves_round() {
    let text = format!("{VARY}{MARK} vfpack tlbu, rf11, rf10; nop\n {END}");
    let fragments = Fragments::new(&[PAIR]);
    let (out, _) = fragments.ok(&text);
    let v = fragments.batches[0].varyings[0].constant[9];
    assert_eq!(out[0].color(0).unwrap().component(0, 0, 9), Some(f16_to_f32(f32_to_f16(v))));
}

/// Programs of random words of all kinds, with and without flipped bits, come to an end or to a fault.
#[test]
fn any_program_is_answered() {
    let pool = "nop; nop; ldvary.rf4\n nop; nop; ldvary.rf4; thrsw\n nop; nop; ldvary.r1\n xcd rf5; nop\n fycd rf6; nop
 msf rf7; nop\n setmsf -, rf7; nop\n setmsf.ifa -, rf20; nop\n revf rf8; nop\n setrevf -, rf8; nop\n sampid rf9; nop
 eidx.pushz rf10; nop\n nop; mov tlb, rf5\n nop; mov tlbu, rf6\n nop; nop; ldtlb.rf4\n nop; nop; ldtlbu.rf4\n nop; nop; thrsw
 nop; nop; wrtmuc\n nop; mov tmut, rf6\n nop; mov tmuoff, rf10\n nop; mov tmus, rf6\n nop; mov tmuslod, rf6\n nop; mov.ifa tmus, rf6
 nop; mov tmud, rf10\n nop; mov tmuau, rf10\n nop; mov.ifna tmuau, rf10\n nop; nop; ldtmu.rf11\n nop; nop; ldunif\n vpmwt -; nop
 ldvpmv_in rf4, 0; nop\n ldvpmd_in rf4, rf10; nop\n stvpmv 1, rf10; nop\n stvpmd rf10, rf10; nop\n ldvpmd_out rf4, rf10; nop\n nop";
    let mut state = 5u64;
    let mut next = move |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut fragments = super::lookup_tests::fragments();
    fragments.options.step_limit = 1000;
    let mut reached = 0;
    for version in Version::ALL {
        let all =
            assemble(version, &pool.replace(".r1", if version == Version::V42 { ".r1" } else { ".rf9" }))
                .unwrap();
        let close = assemble(version, &format!("{MARK}{END}")).unwrap();
        for round in 0..4000 {
            let mut words: Vec<u64> = Vec::new();
            // Half of them may use the tile buffer at once.
            if round % 2 == 0 {
                words.extend(&close[..4]);
            }
            words.extend((0..next(12) + 1).map(|_| all[next(all.len())]));
            if next(4) == 0 {
                let at = next(words.len());
                words[at] ^= 1 << next(64);
            }
            words.extend(if round % 2 == 0 { &close[4..] } else { &close[..] });
            let configurations = [
                u32::MAX,
                0xffff_ff84,
                0xffff_ff3c,
                0xffff_ff7f,
                fragments.uniforms[0],
                fragments.uniforms[1],
            ];
            let uniforms: Vec<u32> = (0..16).map(|_| configurations[next(6)]).collect();
            let program = Program::graphics(version, words, uniforms, 2 + 2 * (round & 1));
            let code = Code::new(&program);
            let mut memory = fragments.memory.clone();
            let out =
                code.run_fragments(&fragments.batches, &fragments.draw, &mut memory, &fragments.options);
            reached += usize::from(out.outcome.result.is_ok());
            let batch = VertexBatch { lanes: 0x0fff, rows: vec![[1; LANES]; 3], ..VertexBatch::default() };
            let out = code.run_vertices(&[batch], &fragments.draw, &mut memory, &fragments.options);
            reached += usize::from(out.outcome.result.is_ok());
        }
    }
    assert!(reached > 100, "{reached}");
}

/// 7.1: the coefficient counts as a write of rf0 beside what the instruction that it arrives in does (rule 36). 4.2: a
/// write of r5 in that instruction leaves nothing that is known.
#[test]
fn coefficients_beside_other_writes() {
    let v71 = |text: String| {
        let words = format!(
            "{STORE} nop; mov tmua, rf12\n nop; mov tmua, rf12\n {text} add.pushz rf6, rf0, rf0; nop\n b.anyap 0\n nop\n nop\n nop\n{MARK} nop; mov tlb, rf6\n nop; mov tlb, rf6\n {END}"
        );
        let mut fragments = Fragments::new(&[]);
        let base = buffer(&mut fragments.memory);
        fragments.uniforms = vec![base];
        fragments.run(Version::V71, &words).0.outcome.result.map_err(|f| f.rule)
    };
    let switch = "nop; nop; thrsw\n";
    let vary = "nop; nop; ldvary.rf4\n";
    let load = "nop; nop; ldtmu.rf5\n";
    assert_eq!(v71(format!("{switch}{vary}{load}{load}")), Err("36"));
    assert_eq!(v71(format!("{load}{vary}{switch}nop\n{load}")), Ok(()));
    assert_eq!(v71(format!("{vary}nop; nop; ldtmu.rf5; thrsw\n nop\n{load}")), Err("36"));
    assert_eq!(v71(format!("{vary}nop; nop; ldtmu.rf5; thrsw\n {load}nop\n")), Ok(()));
    let v42 = |gap: &str| {
        let text = format!(
            "{CONSTANTS}{VARY}{vary}{gap} nop; mov r5, rf20\n add.pushz rf6, r5, r5; nop\n b.anyap 0\n nop\n nop\n nop\n{MARK} nop; mov tlb, rf6\n nop; mov tlb, rf6\n {END}"
        );
        Fragments::new(&[]).run(Version::V42, &text).0.outcome.result.map_err(|f| f.rule)
    };
    assert_eq!((v42(""), v42("nop\n")), (Err("undefined"), Ok(())));
}

/// The number of threads changes nothing that a program gives.
#[test]
fn four_threads() {
    let text = format!(
        "{VARY} nop; fmul rf12, rf10, @W\n nop; fmul rf13, rf10, rf1\n {MARK} nop; mov tlbu, rf12\n nop; mov tlb, rf13\n {END}"
    );
    let mut fragments = Fragments::new(&[WORDS[2]]);
    let two = fragments.ok(&text).0;
    fragments.threads = 4;
    assert_eq!(fragments.ok(&text).0, two);
    fragments.threads = 3;
    fragments.stops(&text, "dispatch");
}

#[test]
fn batches_of_a_draw() {
    use kempe_ir::io::{Slot, StageInputs};
    let mut inputs = StageInputs { invocations: 20, helpers: vec![false, true], ..StageInputs::default() };
    let list = |f: &dyn Fn(u32) -> u32| (0..20).map(f).collect::<Vec<u32>>();
    inputs.payload.insert(0, list(&|i| i + 7));
    inputs.payload.insert(3, list(&|i| (i as f32 + 0.5).to_bits()));
    inputs.payload.insert(5, list(&|i| i & 1));
    inputs.payload.insert(6, list(&|i| i & 7));
    let place = (Slot::Location(2), 1);
    inputs.planes.insert(place, Plane { part: list(&|i| i), constant: list(&|i| 2 * i) });
    let batches = FragmentBatch::all(&inputs, &[(Slot::Location(0), 0), place]);
    assert_eq!(batches.len(), 2);
    let b = &batches[1];
    assert_eq!((b.w[3], b.x[3], b.varyings[1].part[3], b.varyings[1].constant[3]), (26, 19, 19, 38));
    assert_eq!((b.samples[..5].to_vec(), b.live(), b.back & 15), (vec![0, 1, 2, 3, 0], 0xf, 0b1010));
    assert_eq!(batches[0].samples[..3], [0, 0, 2]);
    assert_eq!(batches[0].varyings[0], Varying::default());
    let vertices = VertexBatch::all(17, &[(0..17).collect(), vec![5]]);
    assert_eq!((vertices.len(), vertices[0].lanes, vertices[1].lanes), (2, 0xffff, 1));
    assert_eq!((vertices[1].rows[0][0], vertices[0].rows[1][..2].to_vec()), (16, vec![5, 0]));
    assert!(
        FragmentBatch::all(&StageInputs::default(), &[]).is_empty() && VertexBatch::all(0, &[]).is_empty()
    );
}

#[test]
fn a_batch_that_nobody_asks_for() {
    let mut fragments = Fragments::new(&[WORDS[4]]);
    fragments.batches[0].samples = [0; LANES];
    // Pipelined varyings, a loop that dead quads do not keep alive, a store and a lookup of nowhere.
    let text = format!(
        "nop; nop; ldvary.rf10\n nop; fmul rf11, rf10, @W; ldvary.rf12\n fadd rf13, rf11, @C; nop\n fadd rf15, rf12, @C; nop
 xcd.pushz rf14; nop\n b.anyaq -32\n nop\n nop\n nop
 nop; mov tmud, rf13\n nop; mov tmua, rf14\n tmuwt -; nop\n nop; mov tmua, rf14\n nop; nop; ldtmu.rf16
 {MARK} nop; mov tlbu, rf13\n nop; mov tlb, rf13\n nop; mov tlb, rf15\n nop; mov tlb, rf16\n {END}"
    );
    let (out, _) = fragments.ok(&text);
    assert!(out[0].color(0).unwrap().words.iter().all(|w| w.lanes == 0));
    assert_eq!((out[0].samples, out[0].depth(0)), ([0; LANES], Depth::Early));
}

#[test]
fn vertices_store_and_interleave() {
    let text = format!(
        "ldvpmv_in rf1, 0; nop\n nop; nop; ldunifrf.rf11\n shl rf2, rf1, 2; nop\n add rf2, rf2, rf11; nop\n nop; mov tmud, rf1
 nop; mov tmua, rf2\n tmuwt -; nop\n nop; mov tmua, rf2\n nop; nop; thrsw\n nop\n nop\n nop; nop; ldtmu.rf3
 stvpmv 4, rf3; nop\n vpmwt -; nop\n {MARK}{END}"
    );
    let batches = VertexBatch::all(37, &[(0..37).collect()]);
    for version in Version::ALL {
        let words_of = assemble(version, &text).unwrap();
        for order in [Order::RoundRobin, Order::Sequential, Order::Shuffled(3)] {
            let mut memory = Memory::new();
            let base = buffer(&mut memory);
            let program = Program::graphics(version, words_of.clone(), vec![base], 2);
            let options = Options { order, ..Options::default() };
            let draw = Draw { together: 2, ..Draw::default() };
            let run = Code::new(&program).run_vertices(&batches, &draw, &mut memory, &options);
            assert_eq!(run.outcome.result, Ok(()));
            let want: Vec<u32> = (0..64).map(|i| if i < 37 { i } else { 100 + i }).collect();
            assert_eq!(words(&memory, base), want);
            assert_eq!(run.batches[2].rows[4].get(4), Some(36));
            assert_eq!(run.batches[2].rows[4].get(5), None);
        }
    }
}
