//! The tile buffer as one thread sees it (section 12.4): configuration, writes, reads, and the scoreboard (13.4).
//!
//! Nothing is blended or tested here: what the program delivered is kept, with the lanes and the undefined ones. Where the
//! reference is silent it is read thus: a configuration that has not got all its words when the next one begins, or when the
//! program ends, stops the run (`12.4`); with bit 1 of a half configuration set the first component is the low half, as `vfpack`
//! of the default configuration leaves it. Rules checked here: 44 (with `thread`), 45, 51 (Z in slot 2 of the end), 64.

use super::graphics::{TileKind, TileWord, TileWrite};
use super::thread::{Cause, Thread, Trouble, Value, Write};
use super::{LANES, Mask};
use crate::instr::Version;

/// Samples of a pixel when each has words of its own.
const SAMPLES: usize = 4;

/// A configuration that is being read with.
#[derive(Clone, Copy, Debug)]
struct Reading {
    target: u8,
    /// The next word, and how many there are.
    next: usize,
    words: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Tile {
    version: Version,
    lock_on_first: bool,
    config: u32,
    locked: bool,
    /// Depth has been handed over, and the sample flags with it.
    pub z_written: bool,
    pub written: Vec<TileWrite>,
    reading: Option<Reading>,
}

/// What a configuration byte says, and whether every sample has words of its own.
fn decode(version: Version, byte: u32) -> Result<(TileKind, bool), Trouble> {
    let wrong =
        |what: &str| Err(Trouble::new("12.4", format!("tile-buffer configuration {byte:#04x}: {what}")));
    let per_sample = byte & 4 == 0;
    let target = (7 - (byte >> 3 & 7)) as u8;
    let targets = match version {
        Version::V42 => 4,
        Version::V71 => 8,
    };
    let kind = match byte >> 6 {
        3 => TileKind::Half { target, components: if byte & 1 != 0 { 4 } else { 2 }, swapped: byte & 2 != 0 },
        0 => TileKind::Word { target, components: (byte & 3) as u8 + 1 },
        2 => {
            let own = byte & 8 != 0;
            if !own && per_sample {
                return wrong("depth that is not modified is written per pixel");
            }
            match byte >> 4 & 3 {
                0 => TileKind::Depth { own },
                1 => TileKind::Stencil { own },
                _ => return wrong("neither depth nor stencil"),
            }
        }
        _ => return wrong("a type that does not exist"),
    };
    match kind.target() {
        Some(n) if n >= targets => wrong("a render target that does not exist"),
        _ => Ok((kind, per_sample)),
    }
}

impl Tile {
    pub fn new(version: Version, lock_on_first: bool) -> Tile {
        Tile {
            version,
            lock_on_first,
            config: u32::MAX,
            locked: false,
            z_written: false,
            written: Vec::new(),
            reading: None,
        }
    }

    /// A thread switch has taken place; the last one?
    pub fn at_switch(&mut self, last: bool) {
        self.locked |= last || self.lock_on_first;
    }

    /// The program ends.
    pub fn at_end(&self) -> Result<(), Trouble> {
        self.complete()?;
        match self.written.is_empty() {
            true => Err(Trouble::new("64", "a fragment program that never writes the tile buffer")),
            false => Ok(()),
        }
    }

    /// Words that the last configuration still lacks.
    fn missing(&self) -> usize {
        self.written.last().map_or(0, |w| {
            let samples = if w.per_sample { SAMPLES } else { 1 };
            (w.kind.words() * samples).saturating_sub(w.words.len())
        })
    }

    fn complete(&self) -> Result<(), Trouble> {
        match self.missing() {
            0 => Ok(()),
            n => Err(Trouble::new("12.4", format!("{n} words of a tile-buffer write are missing"))),
        }
    }

    fn check_lock(&self) -> Result<(), Trouble> {
        match self.locked {
            true => Ok(()),
            false => Err(Trouble::new("45", "tile-buffer access before the scoreboard lock is in force")),
        }
    }

    /// The next configuration byte.
    fn next_config(&mut self, uniform: Option<u32>) -> Result<(TileKind, bool), Trouble> {
        if let Some(word) = uniform {
            self.config = word;
        }
        let byte = self.config & 0xff;
        self.config = self.config >> 8 | 0xff00_0000;
        decode(self.version, byte)
    }

    fn write(&mut self, word: TileWord, uniform: Option<u32>, end_slot_2: bool) -> Result<(), Trouble> {
        self.check_lock()?;
        if uniform.is_some() {
            self.complete()?;
        }
        if self.missing() == 0 {
            let (kind, per_sample) = self.next_config(uniform)?;
            if matches!(kind, TileKind::Depth { .. }) {
                if end_slot_2 {
                    return Err(Trouble::new("51", "Z written in slot 2 of the end"));
                }
                self.z_written = true;
            }
            self.written.push(TileWrite { kind, per_sample, words: Vec::new() });
        }
        if let Some(open) = self.written.last_mut() {
            open.words.push(word);
        }
        Ok(())
    }

    /// Target and number of the word that a read delivers.
    fn read(&mut self, uniform: Option<u32>) -> Result<(u8, usize), Trouble> {
        self.check_lock()?;
        let open = self.reading.filter(|r| r.next < r.words);
        if uniform.is_some() && open.is_some() {
            return Err(Trouble::new("12.4", "a tile-buffer read is configured before the words of another"));
        }
        let mut reading = match open {
            Some(reading) => reading,
            None => {
                let (kind, per_sample) = self.next_config(uniform)?;
                let Some(target) = kind.target() else {
                    return Err(Trouble::new("unsupported", "reading depth or stencil is not modelled"));
                };
                let words = kind.words() * if per_sample { SAMPLES } else { 1 };
                Reading { target, next: 0, words }
            }
        };
        reading.next += 1;
        self.reading = Some(reading);
        Ok((reading.target, reading.next - 1))
    }
}

impl Thread {
    /// A write of tlb, or of tlbu with its uniform.
    pub(super) fn tile_write(&mut self, write: &Write, uniform: Option<u32>) -> Result<(), Trouble> {
        let unknown = write.maybe & self.covered;
        if unknown != 0 {
            return Err(Trouble::poison(write.flag_cause, unknown, "the condition of a tile-buffer write"));
        }
        let lanes = write.lanes & self.covered;
        let (value, samples) = (&write.value, self.sample_flags);
        let word = TileWord { words: value.v, lanes, poison: value.poison & lanes, samples };
        let end_slot_2 = self.ending && self.switch_in == 1;
        match self.fragment() {
            Some(fragment) => fragment.tile.write(word, uniform, end_slot_2),
            None => Err(Trouble::new(
                "unsupported",
                "the tile buffer outside of fragment programs is not modelled",
            )),
        }
    }

    /// ldtlb, or ldtlbu with its uniform.
    pub(super) fn tile_read(&mut self, uniform: Option<u32>) -> Result<Value, Trouble> {
        let Some(fragment) = self.fragment() else {
            return Err(Trouble::new(
                "unsupported",
                "the tile buffer outside of fragment programs is not modelled",
            ));
        };
        let (target, word) = fragment.tile.read(uniform)?;
        let contents = fragment.batch.tile.iter().find(|t| t.target == target);
        let words = contents.and_then(|t| t.words.get(word));
        let poison: Mask = if words.is_some() { fragment.dead } else { Mask::MAX };
        let cause = if words.is_some() { Cause::Dead } else { Cause::Unsettled };
        Ok(Value { v: words.copied().unwrap_or([0; LANES]), poison, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        let of = |byte| decode(Version::V71, byte).map_err(|t| t.rule);
        let half = |target, components, swapped| TileKind::Half { target, components, swapped };
        assert_eq!(of(0xff), Ok((half(0, 4, true), false)));
        assert_eq!(of(0b1110_1100), Ok((half(2, 2, false), false)));
        assert_eq!(of(0b0000_0011), Ok((TileKind::Word { target: 7, components: 4 }, true)));
        assert_eq!(of(0b1000_1100), Ok((TileKind::Depth { own: true }, false)));
        assert_eq!(of(0b1000_0100), Ok((TileKind::Depth { own: false }, false)));
        assert_eq!(of(0b1001_1000), Ok((TileKind::Stencil { own: true }, true)));
        for wrong in [0b1000_0000, 0b0111_1100, 0b1011_1100] {
            assert_eq!(of(wrong), Err("12.4"), "{wrong:#x}");
        }
        assert!(decode(Version::V42, 0b0001_1100).is_err());
        assert!(decode(Version::V42, 0b0010_0100).is_ok());
    }
}
