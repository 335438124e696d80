//! Images: what a program says of them, how their texels are stored, where a texel lies.
//!
//! The interpreter of the IR and the simulators of the machines share this file, so that an image means the same to both.
//!
//! * [`ImageInfo`]: what the program declares: dimension, component type, format.
//! * [`Format`]: the formats of storage images (those of SPIR-V, which are those of Vulkan), with [`Format::encode`] and
//!   [`Format::decode`] between colours and texel words.
//! * [`ImageDesc`]: an image as it is bound: extent, levels, layers, format.
//!
//! # Memory
//! Texels lie without padding: x fastest, then y, then z, then the array layer (the faces of a cube are six layers), then
//! the level of detail. How a machine tiles them is not modelled. Components lie from bit 0 of the texel upwards in the
//! order red, green, blue, alpha, each texel in little-endian bytes.
//!
//! # Rounding
//! Colour to texel: normalised formats clamp to 0..1 (-1..1 when signed; NaN as minimum and maximum of
//! [`crate::eval`] give it), multiply by the largest integer rounding to f32, and round that to the nearest integer, ties
//! to even. 16-bit floats round to nearest even. 11 and 10-bit floats are cut off from the 16-bit float of the value, of
//! which negative numbers count as zero. Integers clamp to the range of the component (the source languages leave that
//! open). Texel to colour is exact but for normalised formats, whose quotient is correctly rounded to f32; components
//! that the format does not have are 0, 0, 0, 1.
//!
//! What is left out: multisampled images but for loads, depth and compressed formats, sRGB, 64-bit texels, mip levels of storage images
//! other than the first.

use crate::eval;
use crate::module::Imm;
use crate::ops::Op;
use crate::types::Type;

/// Shape of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    D1,
    D2,
    D3,
    Cube,
    /// A buffer of texels.
    Buffer,
}

impl Dim {
    pub const ALL: [(&'static str, Dim); 5] =
        [("1d", Dim::D1), ("2d", Dim::D2), ("3d", Dim::D3), ("cube", Dim::Cube), ("buffer", Dim::Buffer)];
}

/// Type of a component as the program sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Component {
    F32,
    I32,
    U32,
}

impl Component {
    pub const ALL: [(&'static str, Component); 3] =
        [("float", Component::F32), ("int", Component::I32), ("uint", Component::U32)];

    /// Type of the values.
    pub fn ty(self) -> Type {
        if self == Component::F32 { Type::F32 } else { Type::I32 }
    }
}

/// How the bits of a component are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    Float,
    Unorm,
    Snorm,
    Sint,
    Uint,
}

macro_rules! formats {
    ($($name:ident = $text:literal, $encoding:ident, $bits:expr;)*) => {
        /// How a texel is stored. The names are those of the `layout` qualifiers of GLSL; the order is that of SPIR-V.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Format { $($name,)* }

        impl Format {
            pub const ALL: &[Format] = &[$(Format::$name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Format::$name => $text,)* }
            }

            pub fn encoding(self) -> Encoding {
                match self { $(Format::$name => Encoding::$encoding,)* }
            }

            /// Bits of each component, red first.
            pub fn bits(self) -> &'static [u32] {
                match self { $(Format::$name => &$bits,)* }
            }
        }
    };
}

formats! {
    Rgba32f = "rgba32f", Float, [32, 32, 32, 32];
    Rgba16f = "rgba16f", Float, [16, 16, 16, 16];
    R32f = "r32f", Float, [32];
    Rgba8 = "rgba8", Unorm, [8, 8, 8, 8];
    Rgba8Snorm = "rgba8_snorm", Snorm, [8, 8, 8, 8];
    Rg32f = "rg32f", Float, [32, 32];
    Rg16f = "rg16f", Float, [16, 16];
    R11fG11fB10f = "r11f_g11f_b10f", Float, [11, 11, 10];
    R16f = "r16f", Float, [16];
    Rgba16 = "rgba16", Unorm, [16, 16, 16, 16];
    Rgb10A2 = "rgb10_a2", Unorm, [10, 10, 10, 2];
    Rg16 = "rg16", Unorm, [16, 16];
    Rg8 = "rg8", Unorm, [8, 8];
    R16 = "r16", Unorm, [16];
    R8 = "r8", Unorm, [8];
    Rgba16Snorm = "rgba16_snorm", Snorm, [16, 16, 16, 16];
    Rg16Snorm = "rg16_snorm", Snorm, [16, 16];
    Rg8Snorm = "rg8_snorm", Snorm, [8, 8];
    R16Snorm = "r16_snorm", Snorm, [16];
    R8Snorm = "r8_snorm", Snorm, [8];
    Rgba32i = "rgba32i", Sint, [32, 32, 32, 32];
    Rgba16i = "rgba16i", Sint, [16, 16, 16, 16];
    Rgba8i = "rgba8i", Sint, [8, 8, 8, 8];
    R32i = "r32i", Sint, [32];
    Rg32i = "rg32i", Sint, [32, 32];
    Rg16i = "rg16i", Sint, [16, 16];
    Rg8i = "rg8i", Sint, [8, 8];
    R16i = "r16i", Sint, [16];
    R8i = "r8i", Sint, [8];
    Rgba32ui = "rgba32ui", Uint, [32, 32, 32, 32];
    Rgba16ui = "rgba16ui", Uint, [16, 16, 16, 16];
    Rgba8ui = "rgba8ui", Uint, [8, 8, 8, 8];
    R32ui = "r32ui", Uint, [32];
    Rgb10A2ui = "rgb10_a2ui", Uint, [10, 10, 10, 2];
    Rg32ui = "rg32ui", Uint, [32, 32];
    Rg16ui = "rg16ui", Uint, [16, 16];
    Rg8ui = "rg8ui", Uint, [8, 8];
    R16ui = "r16ui", Uint, [16];
    R8ui = "r8ui", Uint, [8];
}

/// A texel or a colour: four words.
pub type Texel = [u32; 4];

fn op1(op: Op, from: Type, ty: Type, a: u32) -> u32 {
    eval::eval(op, ty, from, Imm::None, &[a as u64]).unwrap_or(0) as u32
}

fn op2(op: Op, a: u32, b: u32) -> u32 {
    eval::eval(op, Type::F32, Type::F32, Imm::None, &[a as u64, b as u64]).unwrap_or(0) as u32
}

impl Format {
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// What stands in for a format that the program does not give.
    pub fn default_of(component: Component) -> Format {
        match component {
            Component::F32 => Format::Rgba32f,
            Component::I32 => Format::Rgba32i,
            Component::U32 => Format::Rgba32ui,
        }
    }

    /// The component type whose values the format holds.
    pub fn component(self) -> Component {
        match self.encoding() {
            Encoding::Sint => Component::I32,
            Encoding::Uint => Component::U32,
            _ => Component::F32,
        }
    }

    /// Bytes of a texel: 1, 2, 4, 8 or 16.
    pub fn bytes(self) -> u32 {
        self.bits().iter().sum::<u32>() / 8
    }

    /// Words that hold a texel.
    pub fn words(self) -> u32 {
        self.bytes().div_ceil(4)
    }

    /// Largest value of a normalised component of some bits.
    pub fn norm_max(self, bits: u32) -> u32 {
        (1 << (bits - (self.encoding() == Encoding::Snorm) as u32)) - 1
    }

    /// The texel words of a colour. See the head of this file for the rounding.
    pub fn encode(self, color: Texel) -> Texel {
        let mut out = [0; 4];
        let mut at = 0;
        for (&bits, &c) in self.bits().iter().zip(&color) {
            out[at / 32] |= self.encode_component(bits, c) << (at % 32);
            at += bits as usize;
        }
        out
    }

    fn encode_component(self, bits: u32, c: u32) -> u32 {
        let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        let float = |x: f32| x.to_bits();
        match self.encoding() {
            _ if bits == 32 => c,
            Encoding::Float if bits == 16 => eval::pack_half(c, 0) & mask,
            Encoding::Float => (eval::pack_half(op2(Op::Fmax, c, 0), 0) & 0x7fff) >> (15 - bits),
            Encoding::Unorm | Encoding::Snorm => {
                let signed = self.encoding() == Encoding::Snorm;
                let least = if signed { -1.0 } else { 0.0 };
                let x = op2(Op::Fmin, op2(Op::Fmax, c, float(least)), float(1.0));
                let x = op2(Op::Fmul, x, float(self.norm_max(bits) as f32));
                let x = op1(Op::Fround, Type::F32, Type::F32, x);
                let to = if signed { Op::Ftosi } else { Op::Ftoui };
                op1(to, Type::F32, Type::I32, x) & mask
            }
            Encoding::Sint => {
                let high = (mask >> 1) as i32;
                (c as i32).clamp(-high - 1, high) as u32 & mask
            }
            Encoding::Uint => c.min(mask),
        }
    }

    /// The colour of texel words.
    pub fn decode(self, texel: Texel) -> Texel {
        let one = if self.component() == Component::F32 { 1f32.to_bits() } else { 1 };
        let mut out = [0, 0, 0, one];
        let mut at = 0;
        for (&bits, c) in self.bits().iter().zip(&mut out) {
            let field = texel[at / 32] >> (at % 32);
            *c = self.decode_component(bits, field);
            at += bits as usize;
        }
        out
    }

    /// A colour in pairs: two halves in a word for float formats, the low 16 bits of integers.
    pub fn halves(self, color: Texel) -> Texel {
        let pair = |a: u32, b: u32| match self.component() {
            Component::F32 => eval::pack_half(a, b),
            _ => a & 0xffff | b << 16,
        };
        [pair(color[0], color[1]), pair(color[2], color[3]), 0, 0]
    }

    fn decode_component(self, bits: u32, field: u32) -> u32 {
        let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        let unsigned = field & mask;
        let signed = ((field << (32 - bits)) as i32) >> (32 - bits);
        match self.encoding() {
            _ if bits == 32 => field,
            Encoding::Float if bits == 16 => eval::f16_to_f32(unsigned as u16),
            Encoding::Float => eval::f16_to_f32((unsigned << (15 - bits)) as u16),
            // Both operands are exact in f32, so the quotient is the correctly rounded one.
            Encoding::Unorm => (unsigned as f32 / self.norm_max(bits) as f32).to_bits(),
            Encoding::Snorm => (signed as f32 / self.norm_max(bits) as f32).max(-1.0).to_bits(),
            Encoding::Sint => signed as u32,
            Encoding::Uint => unsigned,
        }
    }
}

/// What a program declares of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageInfo {
    pub dim: Dim,
    pub arrayed: bool,
    /// Four samples in a pixel: the texels are those of an image of twice the width and height, sample k of a pixel at
    /// `(2 x + k % 2, 2 y + k / 2)`. Only loads know of them.
    pub multisampled: bool,
    /// The program compares with it.
    pub depth: bool,
    pub component: Component,
    /// Storage images may name theirs.
    pub format: Option<Format>,
}

impl ImageInfo {
    /// Coordinates of a texel: those of the shape, then the array layer; for cubes x, y, and face plus six times layer.
    pub fn coordinates(self) -> usize {
        let own = match self.dim {
            Dim::D1 | Dim::Buffer => 1,
            Dim::D2 => 2,
            Dim::D3 | Dim::Cube => 3,
        };
        own + (self.arrayed && self.dim != Dim::Cube) as usize
    }

    /// Numbers that a query for the size gives, in the order of [`Axis`].
    pub fn axes(self) -> &'static [Axis] {
        use Axis::*;
        match (self.dim, self.arrayed) {
            (Dim::D1 | Dim::Buffer, false) => &[Width],
            (Dim::D1 | Dim::Buffer, true) => &[Width, Layers],
            (Dim::D2 | Dim::Cube, false) => &[Width, Height],
            (Dim::D2 | Dim::Cube, true) => &[Width, Height, Layers],
            (Dim::D3, _) => &[Width, Height, Depth],
        }
    }

    /// The format that texels are written in: the declared one, or the default of the component type.
    pub fn storage_format(self) -> Format {
        self.format.unwrap_or(Format::default_of(self.component))
    }
}

/// A number that a program may ask of an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    Width,
    Height,
    Depth,
    /// Array layers; of cubes: cubes.
    Layers,
    Levels,
}

impl Axis {
    pub const ALL: [(&'static str, Axis); 5] = [
        ("width", Axis::Width),
        ("height", Axis::Height),
        ("depth", Axis::Depth),
        ("layers", Axis::Layers),
        ("levels", Axis::Levels),
    ];

    /// Lower levels are smaller along this axis.
    pub fn shrinks(self) -> bool {
        matches!(self, Axis::Width | Axis::Height | Axis::Depth)
    }
}

/// Extent of a level of detail along an axis that shrinks: halves, at least 1.
pub fn level_extent(extent: u32, level: u32) -> u32 {
    (extent >> (level & 31)).max(1)
}

/// Largest extent along an axis (texel buffers: [`MAX_TEXELS`]), most layers, most bytes of an image.
pub const MAX_EXTENT: u32 = 1 << 14;
pub const MAX_LAYERS: u32 = 6 << 11;
pub const MAX_TEXELS: u32 = 1 << 27;
pub const MAX_IMAGE_BYTES: u64 = 1 << 28;

/// An image as it is bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageDesc {
    pub dim: Dim,
    pub arrayed: bool,
    /// Width, height and depth of level 0; 1 where the shape has none.
    pub extent: [u32; 3],
    /// Array layers, for cubes faces: a multiple of 6.
    pub layers: u32,
    pub levels: u32,
    pub format: Format,
}

impl ImageDesc {
    /// A plain image of one level; `size` in the order of [`ImageInfo::axes`], missing ones 1.
    pub fn new(info: &ImageInfo, format: Format, size: &[u32]) -> ImageDesc {
        let mut d = ImageDesc {
            dim: info.dim,
            arrayed: info.arrayed,
            extent: [1; 3],
            layers: if info.dim == Dim::Cube { 6 } else { 1 },
            levels: 1,
            format,
        };
        for (&axis, &n) in info.axes().iter().zip(size) {
            match axis {
                Axis::Width => d.extent[0] = n,
                Axis::Height => d.extent[1] = n,
                Axis::Depth => d.extent[2] = n,
                _ => d.layers = d.layers.saturating_mul(n),
            }
        }
        d
    }

    /// The image fits what the program declares.
    pub fn fits(&self, info: &ImageInfo) -> Result<(), String> {
        if (self.dim, self.arrayed) != (info.dim, info.arrayed) {
            return Err("has another shape than the program declares".to_owned());
        }
        if info.component != self.format.component() {
            return Err(format!("has the format {}, of another component type", self.format.name()));
        }
        Ok(())
    }

    /// Limits of the sizes.
    pub fn check(&self) -> Result<(), String> {
        let largest = if self.dim == Dim::Buffer { MAX_TEXELS } else { MAX_EXTENT };
        if self.extent.iter().any(|&e| e == 0 || e > largest) {
            return Err(format!("has an extent that is not in 1..={largest}"));
        }
        if self.layers == 0
            || self.layers > MAX_LAYERS
            || self.dim == Dim::Cube && !self.layers.is_multiple_of(6)
        {
            return Err(format!("has {} layers", self.layers));
        }
        let largest = self.extent.iter().copied().max().unwrap_or(1);
        if self.levels == 0 || self.levels > 32 - largest.leading_zeros() {
            return Err(format!("has {} levels of detail", self.levels));
        }
        match self.bytes() {
            n if n > MAX_IMAGE_BYTES => Err(format!("has {n} bytes, more than {MAX_IMAGE_BYTES}")),
            _ => Ok(()),
        }
    }

    fn level_texels(&self, level: u32) -> u64 {
        self.extent.iter().map(|&e| level_extent(e, level) as u64).product::<u64>() * self.layers as u64
    }

    /// Bytes of all levels.
    pub fn bytes(&self) -> u64 {
        let texels: u64 = (0..self.levels.min(32)).map(|l| self.level_texels(l)).sum();
        texels * self.format.bytes() as u64
    }

    /// Byte offset of a texel; `None` outside of the image. Coordinates as [`ImageInfo::coordinates`] says, signed.
    pub fn offset(&self, coordinates: &[u32], level: u32) -> Option<usize> {
        if level >= self.levels {
            return None;
        }
        let extent = self.extent.map(|e| level_extent(e, level) as u64);
        let mut limits = [extent[0], extent[1], extent[2], self.layers as u64];
        let used: &[usize] = match (self.dim, self.arrayed) {
            (Dim::D1 | Dim::Buffer, false) => &[0],
            (Dim::D1 | Dim::Buffer, true) => &[0, 3],
            (Dim::D2, false) => &[0, 1],
            (Dim::D2, true) | (Dim::Cube, _) => &[0, 1, 3],
            (Dim::D3, _) => &[0, 1, 2],
        };
        if used.len() != coordinates.len() {
            return None;
        }
        let mut at = [0u64; 4];
        for (&axis, &c) in used.iter().zip(coordinates) {
            // A negative coordinate is large as an unsigned number.
            if c as u64 >= limits[axis] {
                return None;
            }
            at[axis] = c as u64;
        }
        let texel = at.iter().zip(&mut limits).rev().fold(0, |n, (&a, limit)| n * *limit + a);
        let before: u64 = (0..level).map(|l| self.level_texels(l)).sum();
        usize::try_from((before + texel) * self.format.bytes() as u64).ok()
    }

    /// The answer to a query.
    pub fn size(&self, axis: Axis) -> u32 {
        match axis {
            Axis::Width => self.extent[0],
            Axis::Height => self.extent[1],
            Axis::Depth => self.extent[2],
            Axis::Layers if self.dim == Dim::Cube => self.layers / 6,
            Axis::Layers => self.layers,
            Axis::Levels => self.levels,
        }
    }
}

/// The words of a texel from its bytes.
pub fn texel_words(bytes: &[u8]) -> Texel {
    let mut out = [0; 4];
    for (k, &b) in bytes.iter().take(16).enumerate() {
        out[k / 4] |= (b as u32) << (k % 4 * 8);
    }
    out
}

/// Puts the words of a texel into its bytes.
pub fn put_texel(bytes: &mut [u8], words: &Texel) {
    for (k, b) in bytes.iter_mut().take(16).enumerate() {
        *b = (words[k / 4] >> (k % 4 * 8)) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(c: [f32; 4]) -> Texel {
        c.map(f32::to_bits)
    }

    #[test]
    fn sizes() {
        for &f in Format::ALL {
            assert!(matches!(f.bytes(), 1 | 2 | 4 | 8 | 16), "{}", f.name());
            assert_eq!(Format::from_name(f.name()), Some(f));
        }
        assert_eq!(Format::R11fG11fB10f.words(), 1);
        assert_eq!(Format::Rgba16i.words(), 2);
        assert_eq!(Format::R8.words(), 1);
        assert_eq!(Format::from_name("rgba64"), None);
    }

    /// Every texel of a format with up to 16 bits, and many of the others, comes back from its colour.
    #[test]
    fn decoded_colours_encode_to_their_texels() {
        let mut rng = crate::inputs::Random(5);
        for &f in Format::ALL {
            let bits: u32 = f.bits().iter().sum();
            for n in 0..1u64 << bits.min(16) {
                let word = |rng: &mut crate::inputs::Random| rng.bits() as u32;
                let mut texel = match bits {
                    0..=16 => [n as u32, 0, 0, 0],
                    32 => [word(&mut rng), 0, 0, 0],
                    64 => [word(&mut rng), word(&mut rng), 0, 0],
                    _ => [(); 4].map(|()| word(&mut rng)),
                };
                let color = f.decode(texel);
                let back = f.encode(color);
                // NaN becomes the canonical one, and the least signed normalised number has two codes.
                let float = f.encoding() == Encoding::Float && f.bits()[0] != 32;
                if float && color.iter().any(|&c| f32::from_bits(c).is_nan()) {
                    continue;
                }
                if f.encoding() == Encoding::Snorm {
                    let mut at = 0;
                    for &b in f.bits() {
                        let field = texel[at / 32] >> (at % 32) & ((1 << b) - 1);
                        if field == 1 << (b - 1) {
                            texel[at / 32] |= 1 << (at % 32);
                        }
                        at += b as usize;
                    }
                }
                assert_eq!(back, texel, "{} {texel:08x?} {color:08x?}", f.name());
            }
        }
    }

    #[test]
    fn rounding() {
        let e = |f: Format, c: [f32; 4]| f.encode(floats(c))[0];
        // 127.5 is a tie.
        assert_eq!(e(Format::Rgba8, [0.5, 1.5, -1.0, f32::INFINITY]), 0xff00_ff80);
        assert_eq!(e(Format::R8, [f32::NAN, 0.0, 0.0, 0.0]), eval_clamped_nan());
        assert_eq!(e(Format::R8Snorm, [-1.0, 0.0, 0.0, 0.0]), 0x81);
        assert_eq!(e(Format::R8Snorm, [-0.5, 0.0, 0.0, 0.0]), 0xc0);
        assert_eq!(e(Format::Rgb10A2, [1.0, 0.0, 1.0, 0.5]), 0xbff0_03ff);
        assert_eq!(e(Format::Rg16f, [1.0, -2.0, 0.0, 0.0]), 0xc000_3c00);
        assert_eq!(e(Format::R11fG11fB10f, [1.0, -1.0, 2.0, 0.0]), 0x3c0 | 0x200 << 22);
        assert_eq!(e(Format::R11fG11fB10f, [f32::INFINITY, 65024.0, 0.0, 0.0]), 0x7c0 | 0x7bf << 11);
        assert_eq!(Format::Rgba8i.encode([300, -300i32 as u32, 5, -1i32 as u32])[0], 0xff05_807f);
        assert_eq!(Format::Rgba8ui.encode([300, u32::MAX, 5, 0])[0], 0x0005_ffff);
        assert_eq!(Format::R16i.decode([0x8000, 0, 0, 0]), [-32768i32 as u32, 0, 0, 1]);
        assert_eq!(Format::R8.decode([51, 0, 0, 0]), floats([0.2, 0.0, 0.0, 1.0]));
        assert_eq!(Format::R8Snorm.decode([0x80, 0, 0, 0]), floats([-1.0, 0.0, 0.0, 1.0]));
    }

    /// What minimum and maximum make of NaN.
    fn eval_clamped_nan() -> u32 {
        let x = op2(Op::Fmin, op2(Op::Fmax, f32::NAN.to_bits(), 0), 1f32.to_bits());
        op1(Op::Ftoui, Type::F32, Type::I32, op2(Op::Fmul, x, 255f32.to_bits()))
    }

    fn info(dim: Dim, arrayed: bool) -> ImageInfo {
        let component = Component::F32;
        ImageInfo { dim, arrayed, multisampled: false, depth: false, component, format: None }
    }

    #[test]
    fn places() {
        let at = |dim, arrayed, size: &[u32], c: &[u32]| {
            let d = ImageDesc::new(&info(dim, arrayed), Format::R8, size);
            d.check().unwrap();
            d.offset(c, 0)
        };
        assert_eq!(at(Dim::D1, false, &[5], &[4]), Some(4));
        assert_eq!(at(Dim::D1, false, &[5], &[5]), None);
        assert_eq!(at(Dim::D1, false, &[5], &[-1i32 as u32]), None);
        assert_eq!(at(Dim::D1, true, &[5, 3], &[2, 2]), Some(12));
        assert_eq!(at(Dim::D2, false, &[5, 3], &[1, 2]), Some(11));
        assert_eq!(at(Dim::D2, false, &[5, 3], &[1, 3]), None);
        assert_eq!(at(Dim::D2, true, &[5, 3, 2], &[1, 2, 1]), Some(26));
        assert_eq!(at(Dim::D3, false, &[5, 3, 2], &[1, 2, 1]), Some(26));
        assert_eq!(at(Dim::Cube, false, &[4, 4], &[1, 1, 5]), Some(85));
        assert_eq!(at(Dim::Cube, false, &[4, 4], &[1, 1, 6]), None);
        assert_eq!(at(Dim::Cube, true, &[4, 4, 2], &[1, 1, 6]), Some(101));
        assert_eq!(at(Dim::Buffer, false, &[100], &[99]), Some(99));
        let mut d = ImageDesc::new(&info(Dim::D2, false), Format::R16, &[5, 4]);
        d.levels = 3;
        assert_eq!((d.bytes(), d.check()), (2 * (20 + 4 + 1), Ok(())));
        assert_eq!(d.offset(&[1, 1], 1), Some(2 * (20 + 3)));
        assert_eq!(d.offset(&[2, 0], 1), None);
        assert_eq!(d.offset(&[0, 0], 2), Some(2 * 24));
        assert_eq!(d.offset(&[0, 0], 3), None);
        d.levels = 4;
        assert!(d.check().is_err());
        let cube = ImageDesc::new(&info(Dim::Cube, true), Format::R8, &[4, 4, 2]);
        assert_eq!((cube.layers, cube.size(Axis::Layers), cube.size(Axis::Width)), (12, 2, 4));
    }
}
