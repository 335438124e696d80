//! Lookups through samplers: what an instruction asks, what a sampler does, and what comes out.
//!
//! The model is that of Vulkan (chapter "Image Operations") with what it leaves open decided. The interpreter and the simulators
//! share it, so a lookup gives the same bits in both.
//!
//! # Precision
//! Coordinates in texels and levels of detail are rounded to 8 fractional bits, to nearest, ties up. Weights of linear
//! filtering are these fractions; the mean is taken in f32, first along x, then y, then z, then between levels, each step as
//! `a + (b - a) * w`.
//!
//! # Levels of detail
//! The scale is that of the longer of the two differences of the coordinates in texels (x and y of the quad), its logarithm
//! the level; bias and limits of the sampler follow. At a level of 0 or less the magnification filter is used.
//!
//! # Cubes
//! The face is that of the largest component (z before y before x when they are equal). Filtering stays within a face.
//!
//! Left out: anisotropic filtering, multisampled images, minimum level of detail as an operand, reduction modes.

use crate::eval;
use crate::image::{Component, Dim, ImageDesc, ImageInfo, Texel, level_extent};
use crate::module::Res;
use crate::types::Type;

/// What a lookup gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lookup {
    Color,
    /// One component of the four texels that linear filtering would mix.
    Gather(u8),
    /// The level of detail: as it would be used, then as it is computed.
    Level,
}

impl Lookup {
    pub const NAMES: [(&'static str, Lookup); 6] = [
        ("color", Lookup::Color),
        ("gather_x", Lookup::Gather(0)),
        ("gather_y", Lookup::Gather(1)),
        ("gather_z", Lookup::Gather(2)),
        ("gather_w", Lookup::Gather(3)),
        ("level", Lookup::Level),
    ];
}

/// Where the level of detail comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// Differences in the quad.
    Implicit,
    /// These, and an operand is added.
    Bias,
    /// An operand.
    Explicit,
    /// Operands: differences along x, then along y.
    Gradient,
    /// The first level, without an operand: gathers, in the form for machines.
    Base,
}

impl Level {
    pub const NAMES: [(&'static str, Level); 5] = [
        ("implicit", Level::Implicit),
        ("bias", Level::Bias),
        ("explicit", Level::Explicit),
        ("gradient", Level::Gradient),
        ("base", Level::Base),
    ];
}

/// The immediate of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SampleImm {
    pub res: Res,
    /// `None`: the sampler is bound together with the image.
    pub sampler: Option<Res>,
    pub lookup: Lookup,
    pub level: Level,
    /// Bit k is set when component k is a result (a gather gives all four, a level two).
    pub mask: u8,
    pub element: bool,
    pub sampler_element: bool,
    /// The texels are compared with an operand.
    pub dref: bool,
    pub offset: bool,
    /// Coordinates are texels.
    pub pixels: bool,
    /// The form that machines take: a cube's coordinates divided by their largest magnitude; the layer an i32, not
    /// negative, and rounded; no gradients; `offset` one word with four bits of each axis, x lowest.
    pub machine: bool,
    /// In the form for machines: a constant offset, -8 to 7 each.
    pub texels: [i8; 3],
}

impl SampleImm {
    pub fn new(res: Res) -> SampleImm {
        SampleImm {
            res,
            sampler: None,
            lookup: Lookup::Color,
            level: Level::Implicit,
            mask: 15,
            element: false,
            sampler_element: false,
            dref: false,
            offset: false,
            pixels: false,
            machine: false,
            texels: [0; 3],
        }
    }

    /// Numbers of results.
    pub fn results(&self) -> usize {
        match self.lookup {
            Lookup::Color => self.mask.count_ones() as usize,
            Lookup::Gather(_) => 4,
            Lookup::Level => 2,
        }
    }

    /// Types of the operands: element, element of the sampler, coordinates, layer, reference, bias or level or
    /// gradients, offset.
    pub fn operands(&self, info: &ImageInfo) -> Vec<Type> {
        let (i, f) = (Type::I32, Type::F32);
        let own = coordinates(info.dim);
        let mut out = vec![i; self.element as usize + self.sampler_element as usize];
        out.extend(vec![f; own]);
        if info.arrayed {
            out.push(if self.machine { i } else { f });
        }
        out.extend(vec![f; self.dref as usize]);
        match self.level {
            Level::Implicit | Level::Base => {}
            Level::Bias | Level::Explicit => out.push(f),
            Level::Gradient => out.extend(vec![f; 2 * own]),
        }
        if self.offset {
            out.extend(vec![i; if self.machine { 1 } else { own }]);
        }
        out
    }
}

/// The offsets that a word of the form for machines holds.
pub fn unpack_offset(word: u32) -> [i32; 3] {
    [0, 4, 8].map(|at| (word << (28 - at)) as i32 >> 28)
}

/// Coordinates of a lookup, without the layer.
pub fn coordinates(dim: Dim) -> usize {
    match dim {
        Dim::D1 | Dim::Buffer => 1,
        Dim::D2 => 2,
        Dim::D3 | Dim::Cube => 3,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Filter {
    #[default]
    Nearest,
    Linear,
}

/// What happens outside of the image along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Wrap {
    #[default]
    Repeat,
    Mirror,
    Clamp,
    Border,
    MirrorOnce,
}

/// When a comparison holds: reference against texel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Compare {
    Never,
    Less,
    Equal,
    #[default]
    LessEqual,
    Greater,
    NotEqual,
    GreaterEqual,
    Always,
}

impl Compare {
    fn holds(self, reference: f32, texel: f32) -> bool {
        match self {
            Compare::Never => false,
            Compare::Less => reference < texel,
            Compare::Equal => reference == texel,
            Compare::LessEqual => reference <= texel,
            Compare::Greater => reference > texel,
            Compare::NotEqual => reference != texel,
            Compare::GreaterEqual => reference >= texel,
            Compare::Always => true,
        }
    }
}

/// A sampler as it is bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampler {
    pub magnify: Filter,
    pub minify: Filter,
    pub mip: Filter,
    pub wrap: [Wrap; 3],
    pub compare: Compare,
    pub min_level: f32,
    pub max_level: f32,
    pub bias: f32,
    /// Colour outside, in the words of the component type.
    pub border: Texel,
    /// Coordinates are texels.
    pub unnormalised: bool,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            magnify: Filter::Linear,
            minify: Filter::Linear,
            mip: Filter::Linear,
            wrap: [Wrap::Repeat; 3],
            compare: Compare::LessEqual,
            min_level: 0.0,
            max_level: 1000.0,
            bias: 0.0,
            border: [0; 4],
            unnormalised: false,
        }
    }
}

/// A lookup of one invocation.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub lookup: Lookup,
    pub at: [f32; 3],
    pub layer: f32,
    pub reference: Option<f32>,
    /// Before bias and limits of the sampler; of [`level_of`], or an operand.
    pub level: f32,
    pub offset: [i32; 3],
}

/// Fixed-point steps of coordinates, weights and levels.
const STEPS: f32 = 256.0;

fn fixed(x: f32) -> i64 {
    // Far outside everything is the same.
    let x = (x as f64 * STEPS as f64 + 0.5).floor();
    if x.is_nan() { 0 } else { x.clamp(-1e12, 1e12) as i64 }
}

/// The level of detail that belongs to differences of the coordinates, before bias and limits.
pub fn level_of(desc: &ImageDesc, sampler: &Sampler, dx: [f32; 3], dy: [f32; 3]) -> f32 {
    let length = |d: [f32; 3]| {
        let mut sum = 0f32;
        for (k, &d) in d.iter().enumerate().take(coordinates(desc.dim)) {
            let size = match desc.dim {
                _ if sampler.unnormalised => 1.0,
                // A face spans -1..1 of the other two components.
                Dim::Cube => desc.extent[0] as f32 * 0.5,
                _ => desc.extent[k] as f32,
            };
            sum += (d * size) * (d * size);
        }
        sum.sqrt()
    };
    let scale = length(dx).max(length(dy));
    if scale == 0.0 { -126.0 } else { f32::from_bits(log2(scale)) }
}

fn log2(x: f32) -> u32 {
    eval::eval(crate::ops::Op::Flog2, Type::F32, Type::F32, crate::module::Imm::None, &[x.to_bits() as u64])
        .unwrap_or(0) as u32
}

/// The face of a cube that a direction meets and the place in it, 0 to 1 (Vulkan, "Cube Map Face Selection").
pub fn face(at: [f32; 3]) -> (u32, [f32; 2]) {
    let [x, y, z] = at;
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, s, t, m) = if az >= ax && az >= ay {
        if z >= 0.0 { (4, x, -y, az) } else { (5, -x, -y, az) }
    } else if ay >= ax {
        if y >= 0.0 { (2, x, z, ay) } else { (3, x, -z, ay) }
    } else if x >= 0.0 {
        (0, -z, -y, ax)
    } else {
        (1, z, -y, ax)
    };
    let place = |v: f32| if m == 0.0 { 0.5 } else { (v / m) * 0.5 + 0.5 };
    (face, [place(s), place(t)])
}

/// An index inside of `0..n`, or `None` for the border.
fn wrapped(wrap: Wrap, i: i64, n: u32) -> Option<u32> {
    let n = n as i64;
    let mirror = |i: i64| if i < 0 { -1 - i } else { i };
    Some(match wrap {
        Wrap::Repeat => i.rem_euclid(n),
        Wrap::Mirror => {
            let k = i.rem_euclid(2 * n);
            if k < n { k } else { 2 * n - 1 - k }
        }
        Wrap::Clamp => i.clamp(0, n - 1),
        Wrap::Border if (0..n).contains(&i) => i,
        Wrap::Border => return None,
        Wrap::MirrorOnce => mirror(i).min(n - 1),
    } as u32)
}

/// An image with the way to its texels.
pub struct Image<'a> {
    pub desc: ImageDesc,
    pub component: Component,
    /// The colour of the texel at a byte offset.
    pub texel: &'a dyn Fn(usize) -> Texel,
}

impl Image<'_> {
    /// What a lookup gives: four components.
    pub fn sample(&self, sampler: &Sampler, q: &Request) -> Texel {
        let top = (self.desc.levels - 1) as f32;
        let clamp = |l: f32| l.max(sampler.min_level).min(sampler.max_level);
        let computed = q.level + sampler.bias;
        let level = clamp(computed);
        if q.lookup == Lookup::Level {
            let used = level.max(0.0).min(top);
            let used = if sampler.mip == Filter::Nearest { (used + 0.5).ceil() - 1.0 } else { used };
            return [used.max(0.0).to_bits(), computed.to_bits(), 0, 0];
        }
        let filter = if level <= 0.0 { sampler.magnify } else { sampler.minify };
        let level = if level.is_nan() { 0.0 } else { level.max(0.0).min(top) };
        if let Lookup::Gather(component) = q.lookup {
            return self.gather(sampler, q, component);
        }
        let steps = fixed(level);
        if sampler.mip == Filter::Nearest {
            // Half way goes to the finer level.
            let nearest = ((steps + STEPS as i64 / 2 - 1) / STEPS as i64).clamp(0, top as i64) as u32;
            return self.filtered(sampler, q, filter, nearest);
        }
        let (low, part) = ((steps / STEPS as i64) as u32, steps % STEPS as i64);
        let a = self.filtered(sampler, q, filter, low);
        if part == 0 {
            return a;
        }
        let b = self.filtered(sampler, q, filter, (low + 1).min(top as u32));
        self.mix(a, b, part)
    }

    fn mix(&self, a: Texel, b: Texel, part: i64) -> Texel {
        // Integers are not filtered.
        if self.component != Component::F32 || part == 0 {
            return a;
        }
        let w = part as f32 / STEPS;
        std::array::from_fn(|k| {
            let (a, b) = (f32::from_bits(a[k]), f32::from_bits(b[k]));
            eval::f32_result(a + (b - a) * w)
        })
    }

    /// The places along the axes that filtering uses: index, and weight of the next one in steps.
    fn places(&self, sampler: &Sampler, q: &Request, linear: bool, level: u32) -> ([i64; 3], [i64; 3], u32) {
        let (mut face_layer, mut at) = (0, q.at);
        if self.desc.dim == Dim::Cube {
            let (face, place) = face(q.at);
            face_layer = face;
            at = [place[0], place[1], 0.0];
        }
        let used = if self.desc.dim == Dim::Cube { 2 } else { coordinates(self.desc.dim) };
        let (mut index, mut part) = ([0i64; 3], [0i64; 3]);
        for k in 0..used {
            let extent = level_extent(self.desc.extent[k], level) as f32;
            let texels = if sampler.unnormalised { at[k] } else { at[k] * extent };
            let steps = fixed(texels) - if linear { STEPS as i64 / 2 } else { 0 };
            index[k] = steps.div_euclid(STEPS as i64) + q.offset[k] as i64;
            part[k] = if linear { steps.rem_euclid(STEPS as i64) } else { 0 };
        }
        let layers = if self.desc.dim == Dim::Cube { self.desc.layers / 6 } else { self.desc.layers };
        let rounded = if q.layer.is_nan() { 0.0 } else { q.layer.round_ties_even() };
        let layer = if self.desc.arrayed { (rounded as i64).clamp(0, layers as i64 - 1) as u32 } else { 0 };
        let layer = if self.desc.dim == Dim::Cube { 6 * layer + face_layer } else { layer };
        (index, part, layer)
    }

    /// One texel, compared if that is asked.
    fn fetch(&self, sampler: &Sampler, q: &Request, index: [i64; 3], layer: u32, level: u32) -> Texel {
        let mut at = [0u32; 3];
        let cube = self.desc.dim == Dim::Cube;
        let used = if cube { 2 } else { coordinates(self.desc.dim) };
        let mut inside = true;
        for k in 0..used {
            // A cube has no outside: filtering stays within the face.
            let wrap = if cube { Wrap::Clamp } else { sampler.wrap[k] };
            match wrapped(wrap, index[k], level_extent(self.desc.extent[k], level)) {
                Some(i) => at[k] = i,
                None => inside = false,
            }
        }
        let mut c = at[..used].to_vec();
        if self.desc.arrayed || cube {
            c.push(layer);
        }
        let place = if inside { self.desc.offset(&c, level) } else { None };
        let color = match place {
            Some(offset) => (self.texel)(offset),
            None => sampler.border,
        };
        match q.reference {
            Some(r) => {
                let held = sampler.compare.holds(r, f32::from_bits(color[0]));
                let v = if held { 1f32.to_bits() } else { 0 };
                [v, 0, 0, 1f32.to_bits()]
            }
            None => color,
        }
    }

    fn filtered(&self, sampler: &Sampler, q: &Request, filter: Filter, level: u32) -> Texel {
        let linear = filter == Filter::Linear && self.component == Component::F32;
        let (index, part, layer) = self.places(sampler, q, linear, level);
        let corner = |d: [i64; 3]| {
            let i = std::array::from_fn(|k| index[k] + d[k]);
            self.fetch(sampler, q, i, layer, level)
        };
        // A weight of zero leaves its texel out: it may be an infinity.
        let along = |k: usize, d: [i64; 3], of: &dyn Fn([i64; 3]) -> Texel| {
            let a = of(d);
            if part[k] == 0 {
                return a;
            }
            let mut e = d;
            e[k] = 1;
            self.mix(a, of(e), part[k])
        };
        let row = |d: [i64; 3]| along(0, d, &corner);
        let plane = |d: [i64; 3]| along(1, d, &row);
        along(2, [0; 3], &plane)
    }

    /// Order of the results: (0, 1), (1, 1), (1, 0), (0, 0) of the square of texels.
    fn gather(&self, sampler: &Sampler, q: &Request, component: u8) -> Texel {
        let (index, _, layer) = self.places(sampler, q, true, 0);
        let of = |x: i64, y: i64| {
            let c = self.fetch(sampler, q, [index[0] + x, index[1] + y, index[2]], layer, 0);
            if q.reference.is_some() { c[0] } else { c[component.min(3) as usize] }
        };
        [of(0, 1), of(1, 1), of(1, 0), of(0, 0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Format;

    fn image(dim: Dim, size: &[u32], levels: u32) -> ImageDesc {
        let info = ImageInfo {
            dim,
            arrayed: false,
            multisampled: false,
            depth: false,
            component: Component::F32,
            format: None,
        };
        let mut d = ImageDesc::new(&info, Format::R32f, size);
        d.levels = levels;
        d.check().unwrap();
        d
    }

    /// Texel n has the value n.
    fn lookup(desc: ImageDesc, sampler: &Sampler, q: Request) -> [f32; 4] {
        let texel = |offset: usize| [(offset as f32 / 4.0).to_bits(), 0, 0, 1f32.to_bits()];
        let image = Image { desc, component: Component::F32, texel: &texel };
        image.sample(sampler, &q).map(f32::from_bits)
    }

    fn at(x: f32, y: f32) -> Request {
        Request {
            lookup: Lookup::Color,
            at: [x, y, 0.0],
            layer: 0.0,
            reference: None,
            level: 0.0,
            offset: [0; 3],
        }
    }

    fn sampler(filter: Filter, wrap: Wrap) -> Sampler {
        Sampler { magnify: filter, minify: filter, mip: filter, wrap: [wrap; 3], ..Sampler::default() }
    }

    #[test]
    fn nearest_and_linear() {
        let d = image(Dim::D2, &[4, 2], 1);
        let nearest = sampler(Filter::Nearest, Wrap::Clamp);
        for (x, want) in
            [(0.0, 0.0), (0.249, 0.0), (0.25, 1.0), (0.99, 3.0), (1.5, 3.0), (-2.0, 0.0), (f32::NAN, 0.0)]
        {
            assert_eq!(lookup(d, &nearest, at(x, 0.1))[0], want, "{x}");
        }
        let linear = sampler(Filter::Linear, Wrap::Clamp);
        assert_eq!(lookup(d, &linear, at(0.25, 0.25))[0], 0.5);
        assert_eq!(lookup(d, &linear, at(0.375, 0.5))[0], 3.0);
        assert_eq!(lookup(d, &linear, at(0.0, 0.0))[0], 0.0);
        // A 256th of a texel is the finest step.
        assert_eq!(lookup(d, &linear, at(0.125 + 0.25 / 256.0, 0.25))[0], 1.0 / 256.0);
        assert_eq!(lookup(d, &linear, at(0.125 + 0.25 / 1024.0, 0.25))[0], 0.0);
        assert_eq!(lookup(d, &linear, Request { offset: [2, 1, 0], ..at(0.125, 0.25) })[0], 6.0);
    }

    #[test]
    fn outside() {
        let list = |w: Wrap| -> Vec<Option<u32>> { (-5..6).map(|i| wrapped(w, i, 3)).collect() };
        let some = |v: [u32; 11]| v.map(Some).to_vec();
        assert_eq!(list(Wrap::Repeat), some([1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]));
        assert_eq!(list(Wrap::Mirror), some([1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]));
        assert_eq!(list(Wrap::Clamp), some([0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2]));
        assert_eq!(list(Wrap::MirrorOnce), some([2, 2, 2, 1, 0, 0, 1, 2, 2, 2, 2]));
        assert_eq!(list(Wrap::Border)[4..9], [None, Some(0), Some(1), Some(2), None]);
        let d = image(Dim::D1, &[4], 1);
        let border = Sampler { border: [7f32.to_bits(); 4], ..sampler(Filter::Linear, Wrap::Border) };
        assert_eq!(lookup(d, &border, at(0.0, 0.0)), [3.5, 3.5, 3.5, 4.0]);
    }

    #[test]
    fn levels() {
        let d = image(Dim::D1, &[4], 3);
        // Texels 0-3, then 4-5, then 6.
        let nearest = sampler(Filter::Nearest, Wrap::Clamp);
        let level = |l: f32| Request { level: l, ..at(0.9, 0.0) };
        for (l, want) in
            [(-3.0, 3.0), (0.5, 3.0), (0.51, 5.0), (1.0, 5.0), (1.6, 6.0), (9.0, 6.0), (f32::NAN, 3.0)]
        {
            assert_eq!(lookup(d, &nearest, level(l))[0], want, "{l}");
        }
        let mixed = Sampler { mip: Filter::Linear, ..nearest };
        assert_eq!(lookup(d, &mixed, level(0.25))[0], 3.5);
        let limited = Sampler { max_level: 1.0, bias: 0.5, ..mixed };
        assert_eq!(lookup(d, &limited, level(0.25))[0], 4.5);
        assert_eq!(lookup(d, &limited, level(5.0))[0], 5.0);
        let q = Request { lookup: Lookup::Level, ..level(0.25) };
        assert_eq!(lookup(d, &limited, q)[..2], [0.75, 0.75]);
        assert_eq!(level_of(&d, &nearest, [0.5, 0.0, 0.0], [0.0; 3]), 1.0);
        assert_eq!(level_of(&d, &nearest, [0.0; 3], [0.0; 3]), -126.0);
    }

    #[test]
    fn cubes_gathers_and_comparisons() {
        assert_eq!(face([1.0, 0.5, -0.5]), (0, [0.75, 0.25]));
        assert_eq!(face([-2.0, 0.0, 1.0]), (1, [0.75, 0.5]));
        assert_eq!(face([0.0, 4.0, 2.0]), (2, [0.5, 0.75]));
        assert_eq!(face([0.0, -4.0, 2.0]), (3, [0.5, 0.25]));
        assert_eq!(face([1.0, 1.0, 1.0]), (4, [1.0, 0.0]));
        assert_eq!(face([0.0; 3]), (4, [0.5, 0.5]));
        let cube = image(Dim::Cube, &[2, 2], 1);
        let nearest = sampler(Filter::Nearest, Wrap::Repeat);
        let q = Request { at: [-1.0, 0.9, -0.9], ..at(0.0, 0.0) };
        assert_eq!(lookup(cube, &nearest, q)[0], 4.0);
        let d = image(Dim::D2, &[4, 4], 1);
        let clamp = sampler(Filter::Linear, Wrap::Clamp);
        let q = Request { lookup: Lookup::Gather(0), ..at(0.5, 0.5) };
        assert_eq!(lookup(d, &clamp, q), [9.0, 10.0, 6.0, 5.0]);
        let q = Request { reference: Some(6.0), ..at(0.5, 0.5) };
        // 6 <= 5, 6, 9, 10: three of four.
        assert_eq!(lookup(d, &clamp, q)[0], 0.75);
        let q = Request { lookup: Lookup::Gather(0), ..q };
        assert_eq!(lookup(d, &clamp, q), [1.0, 1.0, 1.0, 0.0]);
    }
}
