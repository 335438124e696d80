//! Lookups through samplers against [`kempe_ir::sample`], each terminator and operand, and what stops them.

use super::graphics_tests::{END, Fragments, MARK, batch};
use super::*;
use kempe_ir::ImageInfo;
use kempe_ir::image::{Dim, Format, ImageDesc, Texel, texel_words};
use kempe_ir::sample::{Compare, Filter, Image, Lookup, Request, Sampler, Wrap, level_of};

const IMAGE: u32 = 0xfffe_0040;
const SAMPLER: u32 = 0xfffd_0020;
const REGULAR: u32 = 15 << 20;

/// One operand: its address and what every lane writes.
type Operand = (&'static str, [u32; LANES]);

struct Look {
    desc: ImageDesc,
    sampler: Sampler,
    mask: u32,
    p1: u32,
    /// `None`: left out.
    p2: Option<u32>,
    operands: Vec<Operand>,
    /// The terminator and S.
    start: Operand,
    /// Text before the lookup; row 20 + k holds operand k, row 19 holds S.
    before: &'static str,
    /// Row that is written to the tile buffer is put through this operation.
    through: &'static str,
}

fn floats(f: impl Fn(usize) -> f32) -> [u32; LANES] {
    std::array::from_fn(|i| f(i).to_bits())
}

/// Differences between the lanes of a quad that give other levels in each quad.
fn s_of(i: usize) -> f32 {
    0.07 + (i & 1) as f32 * 0.04 * (1 + i / 4) as f32 + (i / 4) as f32 * 0.2
}

fn t_of(i: usize) -> f32 {
    -0.3 + (i >> 1 & 1) as f32 * 0.11 * (1 + i / 4) as f32 + (i / 4) as f32 * 0.37
}

fn image(dim: Dim, arrayed: bool, format: Format, size: &[u32], levels: u32) -> ImageDesc {
    let info = ImageInfo {
        dim,
        arrayed,
        multisampled: false,
        depth: false,
        component: format.component(),
        format: None,
    };
    let mut desc = ImageDesc::new(&info, format, size);
    desc.levels = levels;
    desc.check().unwrap();
    desc
}

fn sampler() -> Sampler {
    Sampler { wrap: [Wrap::Repeat, Wrap::Mirror, Wrap::Clamp], bias: 0.25, ..Sampler::default() }
}

/// A lookup in two dimensions, 32-bit results, levels from the quad.
fn look() -> Look {
    Look {
        desc: image(Dim::D2, false, Format::Rgba8, &[16, 8], 4),
        sampler: sampler(),
        mask: 15,
        p1: SAMPLER | 1,
        p2: None,
        operands: vec![("tmut", floats(t_of))],
        start: ("tmus", floats(s_of)),
        before: "",
        through: "",
    }
}

impl Look {
    fn bytes(&self) -> Vec<u8> {
        let byte = |b: u64| (b.wrapping_mul(0x9e37_79b9) >> 7) as u8;
        match self.desc.format {
            // Numbers, so that nothing is a NaN.
            Format::R32f => {
                (0..self.desc.bytes() / 4).flat_map(|b| (f32::from(byte(b)) / 256.0).to_le_bytes()).collect()
            }
            _ => (0..self.desc.bytes()).map(byte).collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let rows = [(19, self.start.1)].into_iter().chain((20..).zip(self.operands.iter().map(|o| o.1)));
        for (row, _) in rows {
            text += &format!("nop; nop; ldvary.rf50\n nop\n nop; mov rf{row}, @C\n");
        }
        text += self.before;
        text += &"nop; nop; wrtmuc\n".repeat(2 + usize::from(self.p2.is_some()));
        for (k, (name, _)) in self.operands.iter().enumerate() {
            text += &format!("nop; mov {name}, rf{}\n", 20 + k);
        }
        text += &format!("nop; mov {}, rf19\n nop; nop; thrsw\n nop\n nop\n", self.start.0);
        let words = self.mask.count_ones();
        for k in 0..words {
            text += &format!("nop; nop; ldtmu.rf{}\n", 30 + k);
        }
        text += self.through;
        text += MARK;
        for k in 0..words {
            text += &format!("nop; mov {}, rf{}\n", if k == 0 { "tlbu" } else { "tlb" }, 30 + k);
        }
        text + END
    }

    fn fragments(&self) -> Fragments {
        let mut f = Fragments::new(&[IMAGE | self.mask, self.p1]);
        f.uniforms.extend(self.p2);
        f.uniforms.push(0xffff_ff3b + self.mask.count_ones());
        let lists = [self.start.1].into_iter().chain(self.operands.iter().map(|o| o.1));
        f.batches[0].varyings = lists.map(|constant| Varying { part: [0; LANES], constant }).collect();
        let base = f.memory.place("image", self.bytes(), true).unwrap();
        let name = "image".to_owned();
        f.draw.images = vec![kempe_ir::exec::PlacedImage {
            set: 0,
            binding: 0,
            element: 0,
            name,
            desc: self.desc,
            base,
            state: IMAGE,
        }];
        f.draw.samplers = vec![PlacedSampler { state: SAMPLER, sampler: self.sampler }];
        f
    }

    /// The words of all lanes.
    fn run(&self) -> Vec<[Option<u32>; 4]> {
        let (out, _) = self.fragments().ok(&self.text());
        let color = out[0].color(0).unwrap();
        (0..LANES).map(|lane| std::array::from_fn(|k| color.component(0, k, lane))).collect()
    }

    #[track_caller]
    fn stops(&self, rule: &str) {
        self.fragments().stops(&self.text(), rule);
    }

    /// What the model gives.
    fn model(&self, request: &Request) -> Texel {
        let bytes = self.bytes();
        let format = self.desc.format;
        let texel = |o: usize| format.decode(texel_words(&bytes[o..o + format.bytes() as usize]));
        Image { desc: self.desc, component: format.component(), texel: &texel }.sample(&self.sampler, request)
    }

    /// Every lane with samples holds what the model gives, through `pack`.
    #[track_caller]
    fn gives(&self, request: impl Fn(usize) -> Request, pack: impl Fn(Texel) -> Texel) {
        let got = self.run();
        let mut different = false;
        for lane in 0..LANES {
            if batch().samples[lane] == 0 {
                assert_eq!(got[lane], [None; 4]);
                continue;
            }
            let want = pack(self.model(&request(lane)));
            different |= want != pack(self.model(&request(0)));
            let words = self.mask.count_ones() as usize;
            let kept: Vec<u32> = (0..4).filter(|k| self.mask >> k & 1 != 0).map(|k| want[k]).collect();
            let there: Vec<u32> = got[lane][..words].iter().map(|w| w.unwrap()).collect();
            assert_eq!(there, kept, "lane {lane}");
        }
        assert!(different, "all lanes are the same");
    }

    fn float(&self, name: &str, lane: usize) -> f32 {
        f32::from_bits(self.word(name, lane))
    }

    fn word(&self, name: &str, lane: usize) -> u32 {
        let found = self.operands.iter().find(|o| o.0 == name);
        found.map_or(0, |o| o.1[lane])
    }

    fn at(&self, lane: usize) -> [f32; 3] {
        [f32::from_bits(self.start.1[lane]), self.float("tmut", lane), self.float("tmur", lane)]
    }

    /// The level that the quad of a lane gives.
    fn level(&self, lane: usize) -> f32 {
        let d = |bit: usize| {
            let (low, high) = (self.at(lane & !bit), self.at(lane | bit));
            std::array::from_fn(|k| high[k] - low[k])
        };
        level_of(&self.desc, &self.sampler, d(1), d(2))
    }

    fn request(&self, lane: usize) -> Request {
        Request {
            lookup: Lookup::Color,
            at: self.at(lane),
            layer: 0.0,
            reference: None,
            level: self.level(lane),
            offset: [0; 3],
        }
    }
}

/// A batch with an image and a sampler, and their addresses as uniforms.
pub(super) fn fragments() -> Fragments {
    look().fragments()
}

fn same(t: Texel) -> Texel {
    t
}

#[test]
fn levels_from_the_quad_biased_and_given() {
    let implicit = look();
    implicit.gives(|lane| implicit.request(lane), same);
    // The levels are not all one.
    assert!((1..3).any(|q| implicit.level(4 * q).to_bits() != implicit.level(0).to_bits()));
    let mut biased = look();
    biased.operands.push(("tmub", floats(|i| 0.3 * i as f32)));
    biased.gives(|l| Request { level: biased.level(l) + 0.3 * l as f32, ..biased.request(l) }, same);
    // The same operand is the level with the other terminator, and without automatic levels.
    let given = |l: usize| Request { level: 0.3 * l as f32, ..biased.request(l) };
    let explicit = Look { start: ("tmuslod", floats(s_of)), operands: biased.operands.clone(), ..look() };
    explicit.gives(given, same);
    let manual = Look { p2: Some(REGULAR | 2), operands: biased.operands.clone(), ..look() };
    manual.gives(given, same);
    let base = Look { p2: Some(REGULAR | 2), ..look() };
    base.gives(|l| Request { level: 0.0, ..base.request(l) }, same);
}

#[test]
fn sizes_of_results_and_formats() {
    let half = Look { p1: SAMPLER, mask: 3, ..look() };
    half.gives(|l| half.request(l), |t| Format::Rgba8.halves(t));
    let some = Look { mask: 0b1010, ..look() };
    some.gives(|l| some.request(l), same);
    let integers = Look { desc: image(Dim::D2, false, Format::Rgba8ui, &[16, 8], 4), ..look() };
    integers.gives(|l| integers.request(l), same);
    let halves =
        Look { desc: image(Dim::D2, false, Format::Rgba8ui, &[16, 8], 4), p1: SAMPLER, mask: 3, ..look() };
    halves.gives(|l| halves.request(l), |t| Format::Rgba8ui.halves(t));
    for mask in [0, 4, 8] {
        Look { p1: SAMPLER, mask, ..look() }.stops("56");
    }
}

#[test]
fn dimensions() {
    let one = Look { desc: image(Dim::D1, false, Format::Rgba8, &[16], 3), operands: vec![], ..look() };
    one.gives(|l| one.request(l), same);
    let mut deep = look();
    deep.desc = image(Dim::D3, false, Format::Rgba8, &[8, 4, 4], 2);
    deep.operands.push(("tmur", floats(|i| 0.1 * i as f32)));
    deep.gives(|l| deep.request(l), same);
    // Layers are integers that the unit clamps.
    let mut layers = look();
    layers.desc = image(Dim::D2, true, Format::Rgba8, &[8, 8, 5], 2);
    layers.operands.push(("tmui", std::array::from_fn(|i| (i as u32).wrapping_sub(1))));
    layers.gives(|l| Request { layer: l as f32 - 1.0, ..layers.request(l) }, same);
    look().run();
    Look { operands: vec![], ..look() }.stops("54");
    Look { operands: vec![("tmut", floats(t_of)), ("tmui", [0; LANES])], ..look() }.stops("54");
}

#[test]
fn cubes() {
    let direction = |k: usize| {
        floats(move |i| {
            let v = [1.0, 0.2 - 0.05 * i as f32, 0.03 * i as f32 - 0.4];
            v[(k + i / 4) % 3] * if i / 4 % 2 == 0 { 1.0 } else { -1.0 }
        })
    };
    let mut cube = look();
    cube.desc = image(Dim::Cube, false, Format::Rgba8, &[8, 8], 3);
    cube.start = ("tmuscm", direction(0));
    cube.operands = vec![("tmut", direction(1)), ("tmur", direction(2))];
    cube.gives(|l| cube.request(l), same);
    let mut given = look();
    (given.desc, given.start, given.operands) = (cube.desc, cube.start, cube.operands.clone());
    given.operands.push(("tmub", floats(|i| 0.2 * i as f32)));
    given.p2 = Some(REGULAR | 2);
    given.gives(|l| Request { level: 0.2 * l as f32, ..given.request(l) }, same);
    // Layers of arrays are cubes.
    let mut array = look();
    (array.start, array.operands) = (cube.start, cube.operands.clone());
    array.desc = image(Dim::Cube, true, Format::Rgba8, &[4, 4, 3], 1);
    array.operands.push(("tmui", std::array::from_fn(|i| i as u32 % 4)));
    array.gives(|l| Request { layer: (l % 4) as f32, ..array.request(l) }, same);
    // Not divided; not the terminator for it, in both directions.
    let mut large = look();
    (large.desc, large.start, large.operands) = (cube.desc, cube.start, cube.operands.clone());
    large.start.1 = [3f32.to_bits(); LANES];
    large.stops("12.2");
    large.start = ("tmus", cube.start.1);
    large.stops("54");
    Look { start: ("tmuscm", floats(s_of)), ..look() }.stops("54");
}

#[test]
fn comparisons() {
    let mut shadow = look();
    shadow.desc = image(Dim::D2, false, Format::R32f, &[8, 8], 2);
    shadow.sampler.compare = Compare::Greater;
    shadow.operands.push(("tmudref", floats(|i| 0.07 * i as f32)));
    shadow.mask = 1;
    let request = |l: usize| Request { reference: Some(0.07 * l as f32), ..shadow.request(l) };
    shadow.gives(request, same);
    let half = Look { p1: SAMPLER, operands: shadow.operands.clone(), ..Look { ..shadow } };
    half.gives(
        |l| Request { reference: Some(0.07 * l as f32), ..half.request(l) },
        |t| [kempe_ir::eval::pack_half(t[0], t[1]), 0, 0, 0],
    );
}

#[test]
fn gathers_offsets_and_levels() {
    let gather = Look { p2: Some(REGULAR | 1 << 7 | 2 << 5 | 0x1f << 8), ..look() };
    gather.gives(|l| Request { lookup: Lookup::Gather(2), offset: [-1, 1, 0], ..gather.request(l) }, same);
    let constant = Look { p2: Some(REGULAR | 0xe3 << 8), ..look() };
    constant.gives(|l| Request { offset: [3, -2, 0], ..constant.request(l) }, same);
    let mut variable = look();
    variable.operands.push(("tmuoff", std::array::from_fn(|i| i as u32 | (i as u32 ^ 8) << 4)));
    let signed = |n: usize| (n as i32) << 28 >> 28;
    variable.gives(|l| Request { offset: [signed(l), signed(l ^ 8), 0], ..variable.request(l) }, same);
    let both = Look { p2: constant.p2, operands: variable.operands.clone(), ..look() };
    both.stops("unsupported");
    let query = Look { p2: Some(REGULAR | 1 << 24), mask: 3, ..look() };
    query.gives(|l| Request { lookup: Lookup::Level, ..query.request(l) }, same);
    Look { p2: query.p2, mask: 7, ..look() }.stops("56");
    let query = Look { p2: Some(REGULAR | 1 << 24), mask: 1, p1: SAMPLER, ..look() };
    query.gives(
        |l| Request { lookup: Lookup::Level, ..query.request(l) },
        |t| [kempe_ir::eval::pack_half(t[0], t[1]), 0, 0, 0],
    );
}

#[test]
fn texels_as_coordinates() {
    let mut texels = look();
    texels.p1 |= 2;
    texels.start.1 = floats(|i| 0.7 * i as f32);
    texels.operands = vec![("tmut", floats(|i| 0.3 * i as f32))];
    let model = Look {
        sampler: Sampler { unnormalised: true, ..sampler() },
        operands: texels.operands.clone(),
        start: texels.start,
        ..look()
    };
    let got = texels.run();
    for lane in [0, 1, 5, 11] {
        assert_eq!(got[lane].map(|w| w.unwrap()), model.model(&model.request(lane)));
    }
    // So a description that says it.
    assert_eq!(model.run(), got);
}

#[test]
fn helpers_and_neighbours() {
    // The difference of a result across the first quad, whose lanes 2 and 3 are helpers.
    let down = "fdy rf30, rf30\n";
    let quads = Look { through: down, ..look() };
    let got = quads.run();
    let value = |lane| f32::from_bits(quads.model(&quads.request(lane))[0]);
    assert_eq!(got[0][0], Some((value(2) - value(0)).to_bits()));
    // Per pixel the helpers take no part, and without them there is no level.
    let pixels = Look { p1: SAMPLER | 5, ..look() };
    let got = pixels.run();
    assert_eq!((got[0][0], got[4][0]), (None, quads.model(&quads.request(4)).map(Some)[0]));
    let given = Look { p1: SAMPLER | 5, p2: Some(REGULAR | 2), ..look() };
    given.gives(|l| Request { level: 0.0, ..given.request(l) }, same);
    // A coordinate that is not known: in a helper the quad has no level; in a lane with samples the run stops.
    let unknown = |lane: u32| -> &'static str {
        match lane {
            2 => "xcd rf10\n xor.pushz -, rf10, 2\n nop; mov.ifa rf20, rf49\n",
            _ => "xcd rf10\n xor.pushz -, rf10, 1\n nop; mov.ifa rf20, rf49\n",
        }
    };
    let got = Look { before: unknown(2), ..look() }.run();
    assert_eq!((got[0], got[4][0]), ([None; 4], quads.model(&quads.request(4)).map(Some)[0]));
    Look { before: unknown(1), ..look() }.stops("undefined");
    let level = Look { p2: Some(REGULAR | 2), before: unknown(2), ..look() };
    level.gives(|l| Request { level: 0.0, ..level.request(l) }, same);
}

#[test]
fn what_stops_a_lookup() {
    Look { p1: (SAMPLER + 16) | 1, ..look() }.stops("memory");
    Look { operands: vec![("tmut", floats(t_of)), ("tmud", [0; LANES])], ..look() }.stops("54");
    Look { p2: Some(0), ..look() }.stops("54");
    Look { p2: Some(REGULAR | 1 << 7 | 1 << 24), ..look() }.stops("54");
    for bit in [0, 2, 4, 25, 26] {
        Look { p2: Some(REGULAR | 1 << bit), ..look() }.stops("unsupported");
    }
    let mut lost = look().fragments();
    lost.draw.images.clear();
    lost.stops(&look().text(), "memory");
    // One configuration word, and four.
    let text = look().text();
    look().fragments().stops(&text.replacen("nop; nop; wrtmuc\n", "", 1), "54");
    let mut four = look().fragments();
    four.uniforms.splice(0..0, [0, 0]);
    four.stops(&text.replacen("nop; nop; wrtmuc\n", &"nop; nop; wrtmuc\n".repeat(3), 1), "54");
    // More register writes than a thread has entries for.
    let mut full = Look {
        operands: vec![("tmut", floats(t_of)), ("tmub", [0; LANES]), ("tmuoff", [0; LANES])],
        ..look()
    };
    full.run();
    full.operands.push(("tmudref", [0; LANES]));
    let mut fragments = full.fragments();
    fragments.threads = 4;
    let low = full.text().replace("rf50", "rf15");
    fragments.stops(&low, "55");
    // Texels that the thread stored and did not wait for are not looked up.
    let store = "nop; nop; wrtmuc\n nop; mov rf15, 0\n nop; mov tmut, rf15\n nop; mov tmud, rf15\n nop; mov tmusf, rf15\n";
    let mut stored = Look { before: store, sampler: Sampler { max_level: 0.0, ..sampler() }, ..look() };
    (stored.start.1, stored.operands[0].1) = ([0; LANES], [0; LANES]);
    let mut fragments = stored.fragments();
    fragments.uniforms.insert(0, IMAGE);
    fragments.stops(&stored.text(), "12.2");
    fragments.ok(&stored.text().replace("nop; mov tmusf, rf15\n", "nop; mov tmusf, rf15\n tmuwt -\n"));
}

#[test]
fn filters_of_a_sampler() {
    for (magnify, mip) in [(Filter::Nearest, Filter::Linear), (Filter::Linear, Filter::Nearest)] {
        let mut other = look();
        other.sampler = Sampler {
            magnify,
            minify: mip,
            mip,
            wrap: [Wrap::Border; 3],
            border: [1f32.to_bits(), 0, 0, 1f32.to_bits()],
            ..other.sampler
        };
        other.gives(|l| other.request(l), same);
    }
}

#[test]
fn fetches_per_quad() {
    // tmusf of texel (lane, 0): helpers load too.
    let mut fetch = look();
    fetch.start = ("tmusf", std::array::from_fn(|i| i as u32));
    fetch.operands = vec![("tmut", [0; LANES])];
    fetch.p1 = 1;
    fetch.through = "fdy rf30, rf30\n";
    let bytes = fetch.bytes();
    let red = |lane: usize| f32::from(bytes[4 * lane]) / 255.0;
    let got = fetch.run();
    assert_eq!(got[0][0], Some((red(2) - red(0)).to_bits()));
    // Offsets: constants, or an operand.
    let moved = |f: &Look, by: usize| {
        let got = Look { through: "", operands: f.operands.clone(), ..*f }.run();
        assert_eq!((got[0][0], got[4][0]), (Some(red(by).to_bits()), Some(red(4 + by).to_bits())));
    };
    fetch.p2 = Some(REGULAR | 0x12 << 8);
    moved(&fetch, 18);
    fetch.p2 = None;
    fetch.operands.push(("tmuoff", [0x13; LANES]));
    moved(&fetch, 19);
    fetch.p2 = Some(REGULAR | 0x12 << 8);
    fetch.stops("unsupported");
    (fetch.p1, fetch.p2) = (5, None);
    fetch.operands.pop();
    assert_eq!(fetch.run()[0][0], None);
}
