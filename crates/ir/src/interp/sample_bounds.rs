//! Bounds of lookups, as `docs/bounds.md` ("Lookups") says: the lookup is done again at the ends of what the other side
//! may use for its coordinates, level and reference.

use super::error::Shadow;
use super::run::{Batch, Runner};
use super::sample::SampleAccess;
use crate::bounds::ulp;
use crate::exec::{LANES, PlacedImage};
use crate::image::{Component, Dim, Texel, level_extent};
use crate::sample::{Compare, Filter, Level, Lookup, Request, Sampler, Wrap, coordinates, face};
use crate::types::Type;

/// Where the operands stand, and how they are used.
pub(super) struct Operand<'a> {
    pub slots: &'a [u32],
    /// Operands before the coordinates.
    pub head: usize,
    pub own: usize,
    /// The level comes from the quad.
    pub quads: bool,
    pub cube: bool,
}

/// A lookup of one lane.
pub(super) struct Asked<'a> {
    pub b: &'a Batch,
    pub a: &'a SampleAccess,
    pub image: &'a PlacedImage,
    pub sampler: &'a Sampler,
    pub q: &'a Request,
    pub o: &'a Operand<'a>,
    pub lane: usize,
    /// Coordinates of all lanes.
    pub at: &'a [Row32; 3],
}

/// Texels (of the first level) that a coordinate may be off.
const FARTHEST: f64 = 0.25;
/// Steps of coordinates and weights.
const STEP: f64 = 1.0 / 256.0;
/// Rounding of a coordinate, as a part of its size in texels.
const ROUNDING: f64 = 1.0 / (1 << 20) as f64;
/// Levels that are computed from differences: distance that is allowed, and for cubes.
const LEVEL: f64 = 0.125;
const CUBE_LEVEL: f64 = 2.0;
/// log2 of the square root of 3, and of that times the square root of 2.
const GRADIENT: [f64; 2] = [0.7925, 1.2925];
/// Roundings of the means of a lookup.
const MEANS: f64 = 8.0;

const UNDECIDED: [Shadow; 4] = [Shadow::Undecided; 4];

impl Runner<'_> {
    fn error(&self, b: &Batch, slot: u32, lane: usize) -> Option<f64> {
        match b.known[slot as usize][lane] {
            Shadow::Exact => Some(0.0),
            Shadow::Float(e) => Some(e),
            _ => None,
        }
    }

    /// What is known of the results of a lookup of a lane.
    pub(super) fn lookup_bound(&self, asked: &Asked) -> [Shadow; 4] {
        self.try_bound(asked).unwrap_or(UNDECIDED)
    }

    fn try_bound(&self, asked: &Asked) -> Option<[Shadow; 4]> {
        let &Asked { b, a, image, sampler, q, o, lane, .. } = asked;
        let mut errors = Vec::new();
        for &slot in o.slots {
            errors.push(self.error(b, slot, lane)?);
        }
        let exact = |n: usize| errors.get(n).is_some_and(|&e| e == 0.0);
        let finite = q.at.iter().all(|c| c.is_finite()) && q.level.is_finite();
        if !finite || a.imm.lookup == Lookup::Level || !(0..o.head).all(exact) {
            return None;
        }
        let mut n = o.head;
        let e: Vec<f64> = errors[n..n + o.own].to_vec();
        n += o.own;
        if a.info.arrayed {
            // Half way between layers is open.
            let half = (q.layer - q.layer.floor() - 0.5).abs() < 1e-3;
            if !exact(n) || half {
                return None;
            }
            n += 1;
        }
        let mut reference = 0.0;
        if a.imm.dref {
            reference = errors[n];
            let jumps = matches!(sampler.compare, Compare::Equal | Compare::NotEqual);
            if reference > 0.0 && jumps {
                return None;
            }
            n += 1;
        }
        let levels = self.levels(asked, errors.get(n..).unwrap_or(&[]))?;
        let d = self.distances(image, sampler, q, o, &e);
        // Ends that are farther apart than a texel may agree by chance.
        let texels = |k: usize| match o.cube {
            true => {
                d[k] * image.desc.extent[0] as f64
                    / (2.0 * q.at.iter().fold(0f32, |m, c| m.max(c.abs())) as f64)
            }
            false if sampler.unnormalised => d[k],
            false => d[k] * image.desc.extent[k] as f64,
        };
        if !(0..o.own).all(|k| texels(k) <= FARTHEST) {
            return None;
        }
        let linear = [sampler.magnify, sampler.minify].contains(&Filter::Linear)
            && a.info.component == Component::F32
            && a.imm.lookup == Lookup::Color;
        if o.cube && (linear || a.imm.lookup != Lookup::Color) && edge(image, q, &levels, &d, sampler) {
            return None;
        }
        let middle = self.look_up(a, image, sampler, q);
        let mut spread = Spread { far: [0.0; 4], most: 0.0, same: true };
        // How far the level alone may move the result.
        let mut by_level = [0f64; 4];
        // What is looked up: sampler, level, and what it is compared with.
        let mut cases: Vec<(Sampler, f32, Texel)> = Vec::new();
        if linear_between(sampler, image)
            && a.imm.lookup == Lookup::Color
            && a.info.component == Component::F32
        {
            // Each level rounds coordinates on its own, so their differences need not cancel in the mean.
            for &level in &levels {
                let other = self.look_up(a, image, sampler, &Request { level, ..*q });
                spread.add(&middle, &other);
            }
            by_level = std::mem::take(&mut spread.far);
            for level in whole_levels(sampler, image, &levels) {
                for filter in [sampler.magnify, sampler.minify] {
                    let one = alone(sampler, filter);
                    let own = self.look_up(a, image, &one, &Request { level, ..*q });
                    cases.push((one, level, own));
                }
            }
        } else {
            cases.extend(levels.iter().map(|&level| (*sampler, level, middle)));
        }
        let ends = |d: f64| if d == 0.0 { vec![0.0] } else { vec![-d, d] };
        let axis = |k: usize| ends(d.get(k).copied().unwrap_or(0.0));
        for (sampler, level, own) in &cases {
            for &x in &axis(0) {
                for &y in &axis(1) {
                    for &z in &axis(2) {
                        for &r in &ends(reference) {
                            let move_by = |c: f32, d: f64| (c as f64 + d) as f32;
                            let q = Request {
                                at: [move_by(q.at[0], x), move_by(q.at[1], y), move_by(q.at[2], z)],
                                level: *level,
                                reference: q.reference.map(|c| move_by(c, r)),
                                ..*q
                            };
                            spread.add(own, &self.look_up(a, image, sampler, &q));
                        }
                    }
                }
            }
        }
        let Spread { mut far, most, same } = spread;
        for (far, by_level) in far.iter_mut().zip(by_level) {
            *far += by_level;
        }
        if a.info.component != Component::F32 {
            return Some(if same { [Shadow::Exact; 4] } else { UNDECIDED });
        }
        if !most.is_finite() {
            return None;
        }
        let means = linear || linear_between(sampler, image);
        let rounding = if means { MEANS * ulp(Type::F32, most.max(largest(self, image))) } else { 0.0 };
        Some(far.map(|far| match 2.0 * far + rounding {
            0.0 => Shadow::Exact,
            e if e.is_finite() => Shadow::Float(e),
            _ => Shadow::Undecided,
        }))
    }

    /// How far the other side may be along each coordinate, in units of the coordinate.
    fn distances(
        &self,
        image: &PlacedImage,
        sampler: &Sampler,
        q: &Request,
        o: &Operand,
        e: &[f64],
    ) -> Vec<f64> {
        let longest = q.at.iter().fold(0f32, |m, c| m.max(c.abs())) as f64;
        let one = |k: usize| {
            if o.cube {
                let extent = image.desc.extent[0] as f64;
                return e[k] + longest * 2.0 / extent * (STEP + extent * ROUNDING);
            }
            let extent = if sampler.unnormalised { 1.0 } else { image.desc.extent[k] as f64 };
            let texels = q.at[k] as f64 * extent;
            // Places that both sides have exactly, in every level.
            let levels = (0..image.desc.levels).all(|l| {
                let at = q.at[k] as f64 * level_extent(image.desc.extent[k], l) as f64 * 256.0;
                at == at.floor() && at.abs() < 65536.0
            });
            // A mirrored coordinate may be mirrored before a texel is chosen: other texels at edges.
            let mirrored = matches!(sampler.wrap[k], Wrap::Mirror | Wrap::MirrorOnce);
            if e[k] == 0.0 && !mirrored && (levels || sampler.unnormalised && texels == texels.floor()) {
                return 0.0;
            }
            // A step of the smallest level is the widest.
            let smallest = level_extent(image.desc.extent[k], image.desc.levels - 1) as f64;
            let step = if sampler.unnormalised { STEP } else { STEP / smallest };
            e[k] + step + ROUNDING * (texels.abs() + 1.0) / extent
        };
        (0..o.own).map(one).collect()
    }

    /// Levels (before bias and limits of the sampler) that the other side may use: ends and places between.
    fn levels(&self, asked: &Asked, rest: &[f64]) -> Option<Vec<f32>> {
        let &Asked { b, a, image, sampler, q, o, lane, at } = asked;
        let given = matches!(a.imm.level, Level::Explicit | Level::Bias);
        let own = if given { *rest.first()? } else { 0.0 };
        let one_level = image.desc.levels == 1 && sampler.magnify == sampler.minify;
        if one_level || matches!(a.imm.lookup, Lookup::Gather(_)) {
            return Some(vec![q.level]);
        }
        let (low, high) = match a.imm.level {
            Level::Explicit | Level::Base => {
                let exact = own == 0.0 && (q.level * 256.0).fract() == 0.0;
                let d = if exact { 0.0 } else { own + STEP };
                (q.level as f64 - d, q.level as f64 + d)
            }
            Level::Gradient => {
                if rest.iter().take(2 * o.own).any(|&e| e != 0.0) {
                    return None;
                }
                // Half a level between the largest component and the length of two of them, and a little more for three; upwards as much and a
                // half.
                (q.level as f64 - GRADIENT[0] - LEVEL, q.level as f64 + GRADIENT[1] + LEVEL)
            }
            _ if !o.quads => (q.level as f64 - own - STEP, q.level as f64 + own + STEP),
            _ => {
                let (low, high) = self.of_quad(b, image, sampler, o, lane, at)?;
                // What is there besides: a bias.
                let bias = q.level as f64 - self.middle(image, sampler, o, lane, at);
                let bias = if a.imm.level == Level::Bias { bias } else { 0.0 };
                (low + bias - own - LEVEL, high + bias + own + LEVEL)
            }
        };
        let wide = if o.cube && (o.quads || a.imm.level == Level::Gradient) { CUBE_LEVEL } else { 0.0 };
        let (low, high) = (low - wide, high + wide);
        let mut list = vec![low as f32];
        // Halves, where nearest levels change, and whole ones; bias of the sampler is in 16ths.
        let top = image.desc.levels as f64;
        let bias = sampler.bias as f64;
        let mut k = -0.5;
        while k <= top {
            for v in [k - bias, k - bias + STEP] {
                if v > low && v < high {
                    list.push(v as f32);
                }
            }
            k += 0.5;
        }
        list.push(high as f32);
        list.dedup();
        Some(list)
    }

    /// Scale of a lane: the least that is allowed, ours, the largest that is allowed.
    fn difference(
        &self,
        image: &PlacedImage,
        sampler: &Sampler,
        o: &Operand,
        lane: usize,
        at: &[Row32; 3],
    ) -> [f64; 3] {
        let length = |i: usize| match o.cube {
            true => (0..3).fold(0f32, |m, k| m.max(f32::from_bits(at[k][i]).abs())),
            false => 1.0,
        };
        let c = |k: usize, i: usize| (f32::from_bits(at[k][i]) / length(i)) as f64;
        let size = |k: usize| match image.desc.dim {
            _ if sampler.unnormalised => 1.0,
            Dim::Cube => image.desc.extent[0] as f64 * 0.5,
            _ => image.desc.extent[k] as f64,
        };
        let of = |bit: usize| {
            let one = |k: usize| ((c(k, lane | bit) - c(k, lane & !bit)) * size(k)).abs();
            scales((0..coordinates(image.desc.dim)).map(one))
        };
        let (x, y) = (of(1), of(2));
        std::array::from_fn(|k| x[k].max(y[k]))
    }

    fn middle(
        &self,
        image: &PlacedImage,
        sampler: &Sampler,
        o: &Operand,
        lane: usize,
        at: &[Row32; 3],
    ) -> f64 {
        self.difference(image, sampler, o, lane, at)[1].log2().max(-126.0)
    }

    /// Least and largest level that any lane of the quad may have computed.
    fn of_quad(
        &self,
        b: &Batch,
        image: &PlacedImage,
        sampler: &Sampler,
        o: &Operand,
        lane: usize,
        at: &[Row32; 3],
    ) -> Option<(f64, f64)> {
        let first = lane & !3;
        let mut e = 0f64;
        for k in 0..o.own {
            let size = if sampler.unnormalised { 1.0 } else { image.desc.extent[k] as f64 };
            let mut most = 0f64;
            for i in first..first + 4 {
                most = most.max(self.error(b, o.slots[o.head + k], i)?);
            }
            e += 2.0 * most * size;
        }
        let list = (first..first + 4).map(|i| self.difference(image, sampler, o, i, at));
        let (low, high) = list.fold((f64::MAX, 0f64), |(l, h), [least, _, most]| (l.min(least), h.max(most)));
        if !high.is_finite() {
            return None;
        }
        Some(((low - e).max(0.0).log2().max(-126.0), (high + e).log2().max(-126.0)))
    }
}

/// How far results lie apart.
struct Spread {
    far: [f64; 4],
    /// The largest magnitude.
    most: f64,
    same: bool,
}

impl Spread {
    fn add(&mut self, own: &Texel, other: &Texel) {
        self.same &= own == other;
        for k in 0..4 {
            let [v, w] = [own[k], other[k]].map(|w| f32::from_bits(w) as f64);
            self.far[k] = self.far[k].max((v - w).abs());
            self.most = self.most.max(w.abs());
        }
    }
}

/// The result may be a mean of two levels.
fn linear_between(sampler: &Sampler, image: &PlacedImage) -> bool {
    sampler.mip == Filter::Linear && image.desc.levels > 1
}

/// A sampler that reads one whole level with one filter.
fn alone(sampler: &Sampler, filter: Filter) -> Sampler {
    Sampler {
        magnify: filter,
        minify: filter,
        mip: Filter::Nearest,
        min_level: 0.0,
        max_level: 1000.0,
        bias: 0.0,
        ..*sampler
    }
}

/// The levels that a mean may be made of.
fn whole_levels(sampler: &Sampler, image: &PlacedImage, levels: &[f32]) -> Vec<f32> {
    let top = (image.desc.levels - 1) as f32;
    let used = |l: f32| (l + sampler.bias).max(sampler.min_level).min(sampler.max_level).max(0.0).min(top);
    let mut out: Vec<f32> = levels.iter().flat_map(|&l| [used(l).floor(), used(l).ceil()]).collect();
    out.sort_by(f32::total_cmp);
    out.dedup();
    out
}

/// What Vulkan ("Scale Factor Operation") allows for the length of a difference: the largest component to the square root of two times
/// the sum of them; ours in the middle.
fn scales(components: impl Iterator<Item = f64>) -> [f64; 3] {
    let (largest, squares, sum) =
        components.fold((0f64, 0f64, 0f64), |(m, q, s), c| (m.max(c), q + c * c, s + c));
    [largest, squares.sqrt(), std::f64::consts::SQRT_2 * sum]
}

type Row32 = [u32; LANES];

/// The largest magnitude of a colour of the image, and of a border.
fn largest(r: &Runner, image: &PlacedImage) -> f64 {
    let memory = &r.state.memory;
    let bytes = memory.region_at(image.base).map_or(&[][..], |r| memory.bytes(r));
    let format = image.desc.format;
    let texels = bytes.chunks_exact(format.bytes() as usize);
    let words = texels.flat_map(|t| format.decode(crate::image::texel_words(t)));
    words.map(|w| f32::from_bits(w).abs() as f64).filter(|v| v.is_finite()).fold(1.0, f64::max)
}

/// Filtering near the edge of a face: other implementations go on to the next face.
fn edge(image: &PlacedImage, q: &Request, levels: &[f32], d: &[f64], sampler: &Sampler) -> bool {
    let highest = levels.iter().copied().fold(f32::MIN, f32::max) + sampler.bias;
    let highest = highest.max(sampler.min_level).min(sampler.max_level);
    let level = highest.ceil().clamp(0.0, (image.desc.levels - 1) as f32) as u32;
    let extent = level_extent(image.desc.extent[0], level) as f64;
    let (_, place) = face(q.at);
    let longest = q.at.iter().fold(0f32, |m, c| m.max(c.abs())) as f64;
    let wide = d.iter().fold(0f64, |m, &d| m.max(d)) / longest.max(1e-30);
    let margin = 0.5 + wide * extent + STEP;
    place.iter().any(|&p| (p as f64) * extent < margin || (p as f64) * extent > extent - margin)
}
