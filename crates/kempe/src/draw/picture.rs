//! Pictures: PNG files, and what a pass draws into.

use kempe_ir::eval;
use kempe_ir::image::{Component, Encoding, Format};

/// Largest width and height of what is drawn into, and of a picture that is read.
pub const MAX_SIZE: u32 = 4096;

/// Eight bits for each of red, green, blue, alpha; rows from the top.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
}

impl Picture {
    /// Reads a PNG file of any kind; no colour profile is applied.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub fn from_png(bytes: &[u8]) -> Result<Picture, String> {
        let limits = png::Limits { bytes: 256 << 20 };
        let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), limits);
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
        let (width, height) = (reader.info().width, reader.info().height);
        if width == 0 || height == 0 || width > MAX_SIZE || height > MAX_SIZE {
            return Err(format!("{width} x {height}: a picture has 1 to {MAX_SIZE} points along each side"));
        }
        let size = reader.output_buffer_size().ok_or("too large")?;
        let mut raw = vec![0; size];
        let info = reader.next_frame(&mut raw).map_err(|e| e.to_string())?;
        let raw = raw.get(..info.buffer_size()).unwrap_or(&raw);
        let rgba = match info.color_type {
            png::ColorType::Rgba => raw.to_vec(),
            png::ColorType::Rgb => raw.chunks_exact(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect(),
            png::ColorType::GrayscaleAlpha => {
                raw.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect()
            }
            png::ColorType::Grayscale => raw.iter().flat_map(|&p| [p, p, p, 255]).collect(),
            png::ColorType::Indexed => return Err("an unexpected kind of colours".to_owned()),
        };
        Ok(Picture { width, height, rgba })
    }

    /// As a PNG file; the same picture gives the same bytes.
    ///
    /// # Errors
    /// When the sizes do not fit the contents.
    pub fn to_png(&self) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
        writer.write_image_data(&self.rgba).map_err(|e| e.to_string())?;
        writer.finish().map_err(|e| e.to_string())?;
        Ok(out)
    }

    /// A number for the contents (FNV-1a of 64 bits): to see that nothing changed.
    pub fn hash(&self) -> u64 {
        let words = [self.width, self.height].map(u32::to_le_bytes);
        let bytes = words.iter().flatten().chain(&self.rgba);
        bytes.fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    }
}

/// What a pass draws into: colours as four words, as the format keeps them, and the depth.
#[derive(Clone, PartialEq, Debug)]
pub struct Surface {
    pub width: u32,
    pub height: u32,
    pub formats: Vec<Format>,
    /// By target, then by pixel.
    pub colors: Vec<Vec<[u32; 4]>>,
    pub depth: Vec<f32>,
    /// Fragments that were written.
    pub written: u64,
}

impl Surface {
    /// All pixels of the colour, the depth at its far end.
    ///
    /// # Errors
    /// When the sizes are out of range.
    pub fn new(size: [u32; 2], formats: &[Format], clear: [f32; 4]) -> Result<Surface, String> {
        let [width, height] = size;
        if width == 0 || height == 0 || width > MAX_SIZE || height > MAX_SIZE {
            return Err(format!("{width}x{height}: 1 to {MAX_SIZE} pixels along each side"));
        }
        if formats.len() > kempe_ir::io::MAX_TARGETS {
            return Err(format!("{} colour targets", formats.len()));
        }
        let pixels = (width * height) as usize;
        let color = |f: &Format| {
            let words = clear.map(f32::to_bits);
            let words = if f.component() == Component::F32 { words } else { clear.map(|c| c as u32) };
            vec![stored(*f, words); pixels]
        };
        Ok(Surface {
            width,
            height,
            formats: formats.to_vec(),
            colors: formats.iter().map(color).collect(),
            depth: vec![1.0; pixels],
            written: 0,
        })
    }

    /// Writes a colour as the hardware would: floats by way of 16 bits unless the target has more, then as the format
    /// keeps them.
    pub fn write(&mut self, target: usize, pixel: usize, color: [u32; 4]) {
        let (Some(&format), Some(list)) = (self.formats.get(target), self.colors.get_mut(target)) else {
            return;
        };
        let wide = format.component() != Component::F32 || format.bits().first().is_some_and(|&b| b > 16);
        let narrow = |c: u32| eval::f16_to_f32(eval::pack_half(c, 0) as u16);
        let color = if wide { color } else { color.map(narrow) };
        if let Some(slot) = list.get_mut(pixel) {
            *slot = stored(format, color);
        }
    }

    /// The bytes of a target as an image holds them.
    pub fn bytes(&self, target: usize) -> Option<(Format, Vec<u8>)> {
        let format = *self.formats.get(target)?;
        let texel = |c: &[u32; 4]| {
            let words: Vec<u8> = format.encode(*c).iter().flat_map(|w| w.to_le_bytes()).collect();
            words.into_iter().take(format.bytes() as usize).collect::<Vec<u8>>()
        };
        Some((format, self.colors.get(target)?.iter().flat_map(texel).collect()))
    }

    /// A target as a picture; what is outside of 0 to 1 is cut off.
    pub fn picture(&self, target: usize) -> Option<Picture> {
        let colors = self.colors.get(target)?;
        let float = self.formats.get(target)?.component() == Component::F32;
        let byte = |c: &[u32; 4]| -> [u8; 4] {
            let c = if float { Format::Rgba8.encode(*c)[0] } else { Format::Rgba8ui.encode(*c)[0] };
            c.to_le_bytes()
        };
        let rgba = colors.iter().flat_map(byte).collect();
        Some(Picture { width: self.width, height: self.height, rgba })
    }
}

/// The colour that comes back from what the format keeps. Normalised formats round to nearest here.
fn stored(format: Format, color: [u32; 4]) -> [u32; 4] {
    match format.encoding() {
        Encoding::Float if format.bits().first() == Some(&32) && format.bits().len() == 4 => color,
        _ => format.decode(format.encode(color)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn png_goes_both_ways() {
        let rgba: Vec<u8> = (0..5 * 3 * 4).map(|n| (n * 37) as u8).collect();
        let picture = Picture { width: 5, height: 3, rgba };
        let bytes = picture.to_png().unwrap();
        assert_eq!(Picture::from_png(&bytes), Ok(picture.clone()));
        for end in 0..bytes.len() - 12 {
            assert!(Picture::from_png(&bytes[..end]).is_err(), "{end}");
        }
        assert!(Picture { width: 6, ..picture }.to_png().is_err());
    }

    #[test]
    fn colours_round_as_the_target_does() {
        let mut s = Surface::new([2, 1], &[Format::Rgba8, Format::Rgba32f], [0.0; 4]).unwrap();
        // 0.1 as a 16-bit float is 0.0999756, times 255 is 25.49.
        s.write(0, 1, [0.1f32, 2.0, -1.0, f32::NAN].map(f32::to_bits));
        s.write(1, 0, [0.1f32, 2.0, -1.0, 0.3].map(f32::to_bits));
        s.write(2, 0, [0; 4]);
        s.write(0, 9, [0; 4]);
        assert_eq!(s.picture(0).unwrap().rgba[4..], [25, 255, 0, 0]);
        assert_eq!(s.colors[1][0], [0.1f32, 2.0, -1.0, 0.3].map(f32::to_bits));
        assert_eq!(s.bytes(0).unwrap().1[4..], [25, 255, 0, 0]);
        assert!(
            Surface::new([0, 1], &[], [0.0; 4]).is_err() && Surface::new([1, 5000], &[], [0.0; 4]).is_err()
        );
    }
}
