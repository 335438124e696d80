//! Textures: from pictures, from what a pass drew, or made here by name; samplers from words.

use super::picture::Picture;
use kempe_ir::image::{Dim, Format, ImageDesc, ImageInfo, level_extent};
use kempe_ir::sample::{Compare, Filter, Sampler, Wrap};

/// What a texture holds: colours of level 0, by row.
#[derive(Clone, PartialEq, Debug)]
pub struct Texture {
    pub width: u32,
    pub height: u32,
    pub format: Format,
    pub texels: Vec<[f32; 4]>,
    /// Lower levels are made.
    pub levels: bool,
}

/// Largest side of a texture that is made by name.
const MAX_SIDE: u32 = 1024;

impl Texture {
    pub fn of_picture(picture: &Picture) -> Texture {
        let texels =
            picture.rgba.as_chunks::<4>().0.iter().map(|p| p.map(|c| f32::from(c) / 255.0)).collect();
        Texture { width: picture.width, height: picture.height, format: Format::Rgba8, texels, levels: true }
    }

    /// `white`, `checker`, `noise`, `fbm`, `bricks`, `bricks_normal`, `height`, `gradient`, `sky`, `waves_normal`, `text WORD`, each
    /// with a size behind it if it is not 64.
    ///
    /// # Errors
    /// When there is no such texture.
    pub fn named(text: &str) -> Result<Texture, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let word = if name == "text" { words.next().unwrap_or("KEMPE") } else { "" };
        let size = match words.next() {
            None => 64,
            Some(n) => match n.parse::<u32>() {
                Ok(n) if (1..=MAX_SIDE).contains(&n) => n,
                _ => return Err(format!("`{n}`: a texture has 1 to {MAX_SIDE} texels along a side")),
            },
        };
        if words.next().is_some() {
            return Err(format!("`{text}` has too many words"));
        }
        let grey = |v: f32| [v, v, v, 1.0];
        let pick: Box<dyn Fn(f32, f32) -> [f32; 4]> = match name {
            "white" => Box::new(|_, _| [1.0; 4]),
            "black" => Box::new(|_, _| [0.0, 0.0, 0.0, 1.0]),
            "checker" => Box::new(move |u, v| {
                grey(if ((u * 8.0) as u32 + (v * 8.0) as u32).is_multiple_of(2) { 0.9 } else { 0.2 })
            }),
            "noise" => Box::new(move |u, v| {
                let at = |seed| random((u * 4096.0) as u32, (v * 4096.0) as u32, seed);
                [at(1), at(2), at(3), at(4)]
            }),
            "fbm" => Box::new(move |u, v| grey(fbm(u, v))),
            "bricks" => Box::new(|u, v| {
                let (h, mortar) = bricks(u, v);
                let tone = 0.75 + 0.5 * (fbm(u, v) - 0.5);
                if mortar {
                    [0.55 * tone, 0.52 * tone, 0.48 * tone, h]
                } else {
                    [0.75 * tone, 0.33 * tone, 0.22 * tone, h]
                }
            }),
            "bricks_normal" => {
                Box::new(move |u, v| slope(|u, v| bricks(u, v).0 + 0.15 * fbm(u, v), u, v, size, 3.0))
            }
            "waves_normal" => Box::new(move |u, v| slope(fbm, u, v, size, 6.0)),
            "height" => Box::new(|u, v| {
                let h = fbm(u, v);
                [h, h, h, h]
            }),
            "gradient" => Box::new(|u, v| [u, v, 1.0 - u, 1.0]),
            "sky" => Box::new(|u, v| {
                let t = v * 2.0 - 1.0;
                let sky = if t < 0.0 { [0.35 - 0.3 * t, 0.55 - 0.3 * t, 0.95] } else { [0.45, 0.4, 0.35] };
                let cloud = ((fbm(u, v) - 0.5) * 3.0).clamp(0.0, 1.0) * if t < 0.0 { 1.0 } else { 0.0 };
                [0, 1, 2, 3].map(|k| if k == 3 { 1.0 } else { sky[k.min(2)] * (1.0 - cloud) + cloud })
            }),
            "text" => return signed_distance(word, size),
            _ => {
                return Err(format!(
                    "`{name}` is no texture; there are white, black, checker, noise, fbm, bricks, bricks_normal, waves_normal, \
                     height, gradient, sky, text WORD, and files .png"
                ));
            }
        };
        let at = |n: u32| (n as f32 + 0.5) / size as f32;
        let texels = (0..size * size).map(|n| pick(at(n % size), at(n / size))).collect();
        Ok(Texture { width: size, height: size, format: Format::Rgba8, texels, levels: true })
    }

    /// As the program declares it: every layer and face has the same contents.
    ///
    /// # Errors
    /// When it cannot be such a texture.
    pub fn image(&self, info: &ImageInfo) -> Result<(ImageDesc, Vec<u8>), String> {
        if info.multisampled {
            return Err("a texture with several samples cannot be bound".to_owned());
        }
        let (width, height) = match info.dim {
            Dim::D2 => (self.width, self.height),
            Dim::Cube => (self.width.min(self.height), self.width.min(self.height)),
            Dim::D3 => (self.width, self.height),
            Dim::D1 => (self.width, 1),
            Dim::Buffer => return Err("a buffer of texels cannot be a picture".to_owned()),
        };
        let mut desc = ImageDesc {
            dim: info.dim,
            arrayed: info.arrayed,
            extent: [width, height, 1],
            layers: if info.dim == Dim::Cube { 6 } else { 1 },
            levels: 1,
            format: self.format,
        };
        if info.component != self.format.component() {
            return Err("its texels are floats, and the shader reads integers".to_owned());
        }
        if self.levels {
            desc.levels = 32 - width.max(height).leading_zeros();
        }
        let mut level: Vec<[f32; 4]> = Vec::with_capacity((width * height) as usize);
        for y in 0..height {
            let row = (y * self.width) as usize;
            level.extend(self.texels.get(row..row + width as usize).unwrap_or_default());
        }
        level.resize((width * height) as usize, [0.0; 4]);
        let mut bytes = Vec::new();
        for n in 0..desc.levels {
            if n > 0 {
                let (w, h) = (level_extent(width, n - 1) as usize, level_extent(height, n - 1) as usize);
                level = halved(&level, w, h);
            }
            let size = self.format.bytes() as usize;
            let mut one = Vec::with_capacity(level.len() * size);
            for texel in &level {
                let words = self.format.encode(texel.map(f32::to_bits));
                one.extend(words.iter().flat_map(|w| w.to_le_bytes()).take(size));
            }
            for _ in 0..desc.layers {
                bytes.extend_from_slice(&one);
            }
        }
        Ok((desc, bytes))
    }
}

/// The next level: means of four texels.
fn halved(level: &[[f32; 4]], w: usize, h: usize) -> Vec<[f32; 4]> {
    let (nw, nh) = ((w / 2).max(1), (h / 2).max(1));
    let mut out = Vec::with_capacity(nw * nh);
    for y in 0..nh {
        for x in 0..nw {
            let at = |dx: usize, dy: usize| level[(2 * y + dy).min(h - 1) * w + (2 * x + dx).min(w - 1)];
            let four = [at(0, 0), at(1, 0), at(0, 1), at(1, 1)];
            out.push([0, 1, 2, 3].map(|k| four.iter().map(|t| t[k]).sum::<f32>() * 0.25));
        }
    }
    out
}

/// A number from 0 to 1 that looks like chance.
fn random(x: u32, y: u32, seed: u32) -> f32 {
    let mut h = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77) ^ seed.wrapping_mul(0xc2b2_ae3d);
    h = (h ^ h >> 15).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ h >> 12).wrapping_mul(0x297a_2d39);
    (h ^ h >> 15) as f32 / u32::MAX as f32
}

/// Smooth noise of `n` fields along a side that goes on beyond its edges.
fn smooth(u: f32, v: f32, n: u32, seed: u32) -> f32 {
    let (x, y) = (u * n as f32, v * n as f32);
    let (i, j) = (x.floor(), y.floor());
    let ease = |t: f32| t * t * (3.0 - 2.0 * t);
    let (fx, fy) = (ease(x - i), ease(y - j));
    let at = |di: u32, dj: u32| {
        let wrap = |k: f32, d: u32| (k as i64 + i64::from(d)).rem_euclid(i64::from(n)) as u32;
        random(wrap(i, di), wrap(j, dj), seed)
    };
    let row = |dj| at(0, dj) + (at(1, dj) - at(0, dj)) * fx;
    row(0) + (row(1) - row(0)) * fy
}

fn fbm(u: f32, v: f32) -> f32 {
    let mut sum = 0.0;
    for octave in 0..4 {
        sum += smooth(u, v, 4 << octave, octave + 1) * (0.5 / (1u32 << octave) as f32);
    }
    sum / 0.9375
}

/// Height of a wall of bricks, and whether there is mortar.
fn bricks(u: f32, v: f32) -> (f32, bool) {
    let row = (v * 8.0).floor();
    let x = (u * 4.0 + if row as i32 % 2 == 0 { 0.0 } else { 0.5 }).fract();
    let y = (v * 8.0).fract();
    let edge = (x.min(1.0 - x) * 2.0).min(y.min(1.0 - y));
    (((edge - 0.04) * 10.0).clamp(0.0, 1.0), edge < 0.07)
}

/// The normal of a height, as colours.
fn slope(height: impl Fn(f32, f32) -> f32, u: f32, v: f32, size: u32, strength: f32) -> [f32; 4] {
    let d = 1.0 / size as f32;
    let go = |x: f32| x.rem_euclid(1.0);
    let dx = (height(go(u + d), v) - height(go(u - d), v)) * strength;
    let dy = (height(u, go(v + d)) - height(u, go(v - d))) * strength;
    let length = (dx * dx + dy * dy + 1.0).sqrt();
    [0.5 - 0.5 * dx / length, 0.5 - 0.5 * dy / length, 0.5 + 0.5 / length, height(u, v)]
}

/// Letters of 5 by 7 points, a row in five bits.
const LETTERS: [(char, [u8; 7]); 16] = [
    ('K', [17, 18, 20, 24, 20, 18, 17]),
    ('E', [31, 16, 16, 30, 16, 16, 31]),
    ('M', [17, 27, 21, 21, 17, 17, 17]),
    ('P', [30, 17, 17, 30, 16, 16, 16]),
    ('A', [14, 17, 17, 31, 17, 17, 17]),
    ('B', [30, 17, 17, 30, 17, 17, 30]),
    ('C', [14, 17, 16, 16, 16, 17, 14]),
    ('D', [30, 17, 17, 17, 17, 17, 30]),
    ('G', [14, 17, 16, 23, 17, 17, 14]),
    ('I', [14, 4, 4, 4, 4, 4, 14]),
    ('L', [16, 16, 16, 16, 16, 16, 31]),
    ('N', [17, 25, 21, 19, 17, 17, 17]),
    ('O', [14, 17, 17, 17, 17, 17, 14]),
    ('R', [30, 17, 17, 30, 20, 18, 17]),
    ('S', [15, 16, 16, 14, 1, 1, 30]),
    ('T', [31, 4, 4, 4, 4, 4, 4]),
];

/// A word as distances from the outlines of its letters: half on the outline, more inside.
fn signed_distance(word: &str, size: u32) -> Result<Texture, String> {
    let mut rows = Vec::new();
    for c in word.chars() {
        let letter = LETTERS.iter().find(|l| l.0 == c.to_ascii_uppercase());
        rows.push(letter.ok_or_else(|| format!("there is no letter `{c}`"))?.1);
    }
    if rows.is_empty() || rows.len() > 16 {
        return Err("a word of 1 to 16 letters follows `text`".to_owned());
    }
    let (width, height) = (6 * rows.len() as i32 + 1, 9);
    let set = |x: i32, y: i32| -> bool {
        let (letter, column) = ((x - 1).div_euclid(6), (x - 1).rem_euclid(6));
        let row = rows.get(letter as usize).and_then(|r| r.get((y - 1) as usize));
        x >= 1 && y >= 1 && column < 5 && row.is_some_and(|r| r >> (4 - column) & 1 != 0)
    };
    // The letters lie in a strip in the middle of the square.
    let scale = width as f32;
    let texel = |n: u32| {
        let x = (n % size) as f32 + 0.5;
        let y = (n / size) as f32 + 0.5;
        let px = x / size as f32 * scale;
        let py = (y / size as f32 - 0.5) * scale + height as f32 / 2.0;
        let inside = set(px.floor() as i32, py.floor() as i32);
        let mut least = 2.0f32;
        for j in -2..=2 {
            for i in -2..=2 {
                let (cx, cy) = (px.floor() as i32 + i, py.floor() as i32 + j);
                if set(cx, cy) != inside {
                    let dx = (cx as f32 - px).max(px - (cx as f32 + 1.0)).max(0.0);
                    let dy = (cy as f32 - py).max(py - (cy as f32 + 1.0)).max(0.0);
                    least = least.min((dx * dx + dy * dy).sqrt());
                }
            }
        }
        let d = 0.5 + if inside { least } else { -least } * 0.25;
        [d, d, d, 1.0]
    };
    let texels = (0..size * size).map(texel).collect();
    Ok(Texture { width: size, height: size, format: Format::Rgba8, texels, levels: true })
}

/// A sampler from words: `linear` or `nearest`, `no-mip`, `repeat`, `mirror`, `clamp`, `border`, `compare` (less or equal).
///
/// # Errors
/// The first word that means nothing.
pub fn sampler(text: &str) -> Result<Sampler, String> {
    let mut s = Sampler::default();
    for word in text.split_whitespace() {
        let wrap = |w| [w; 3];
        match word {
            "linear" => (s.magnify, s.minify, s.mip) = (Filter::Linear, Filter::Linear, Filter::Linear),
            "nearest" => (s.magnify, s.minify, s.mip) = (Filter::Nearest, Filter::Nearest, Filter::Nearest),
            "no-mip" => s.max_level = 0.0,
            "repeat" => s.wrap = wrap(Wrap::Repeat),
            "mirror" => s.wrap = wrap(Wrap::Mirror),
            "clamp" => s.wrap = wrap(Wrap::Clamp),
            "border" => (s.wrap, s.border) = (wrap(Wrap::Border), [1f32.to_bits(); 4]),
            "compare" => s.compare = Compare::LessEqual,
            _ => return Err(format!("`{word}` is nothing that a sampler does")),
        }
    }
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ir::image::Component;

    #[test]
    fn textures_have_all_their_levels() {
        let info = |dim| ImageInfo {
            dim,
            arrayed: false,
            multisampled: false,
            depth: false,
            component: Component::F32,
            format: None,
        };
        let names =
            "white black checker noise fbm bricks bricks_normal waves_normal height gradient sky text";
        for name in names.split(' ') {
            let t = Texture::named(&format!("{name}{} 16", if name == "text" { " K" } else { "" })).unwrap();
            for dim in [Dim::D1, Dim::D2, Dim::D3, Dim::Cube] {
                let (desc, bytes) = t.image(&info(dim)).unwrap();
                assert_eq!((desc.check(), desc.bytes()), (Ok(()), bytes.len() as u64), "{name}");
                assert_eq!(desc.levels, 5);
            }
        }
        for bad in ["", "wood", "checker 0", "checker 4096", "text É", "noise 4 4"] {
            assert!(Texture::named(bad).is_err(), "{bad}");
        }
        assert!(sampler("nearest clamp compare").is_ok() && sampler("soft").is_err());
    }
}
