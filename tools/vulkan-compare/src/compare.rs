//! What `docs/bounds.md` says of runs: which of them count, and what is compared.

use kempe_ir::bounds::{DECIDED, VACUOUS};
use kempe_ir::exec::Environment;
use kempe_ir::interp::{Outcome, Shadow};

/// A run of the interpreter with its bounds, made ready to be compared.
pub struct Expected {
    pub buffers: Vec<Vec<u8>>,
    /// By buffer: offset, bytes and what is known of the pieces that are not the same everywhere.
    pieces: Vec<Vec<(usize, u32, Shadow)>>,
    /// Words that the run changed, and how many of them are decided.
    pub changed: usize,
    pub decided: usize,
    /// Of the decided ones, floats within a bound that is not 0.
    pub within: usize,
}

fn float(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b] => kempe_ir::eval::f16_to_f64(u16::from_le_bytes([a, b])),
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]) as f64,
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}

/// Splits halves, so that every piece is one float or undecided.
fn singles(offset: usize, bytes: u32, shadow: Shadow) -> Vec<(usize, u32, Shadow)> {
    match shadow {
        Shadow::Halves(a, b) => {
            vec![(offset, 2, Shadow::Float(a)), (offset + 2, 2, Shadow::Float(b))]
        }
        _ => vec![(offset, bytes, shadow)],
    }
}

/// Compares one word: the part of the bound that was used.
pub fn far_from(want: u32, got: u32, shadow: Shadow) -> Result<f64, String> {
    let [x, y] = [want, got].map(|v| f32::from_bits(v) as f64);
    let d = (x - y).abs();
    match shadow {
        _ if want == got => Ok(0.0),
        // A NaN on the other side is never within a bound.
        Shadow::Float(e) if d <= e => Ok(if e > 0.0 { d / e } else { 0.0 }),
        Shadow::Float(e) => Err(format!("{y} is not within {e:e} of {x}")),
        Shadow::Exact => Err(format!("{got:#010x} ({y}), not {want:#010x} ({x})")),
        _ => Ok(0.0),
    }
}

impl Expected {
    pub fn new(env: &Environment, outcome: &Outcome) -> Expected {
        let mut e = Expected { buffers: Vec::new(), pieces: Vec::new(), changed: 0, decided: 0, within: 0 };
        for b in &env.buffers {
            let Some(region) = outcome.memory.region_at(b.base) else { continue };
            let (before, after) = (env.memory.bytes(region), outcome.memory.bytes(region));
            let mut pieces: Vec<(usize, u32, Shadow)> =
                outcome.pieces[region].iter().flat_map(|(o, n, s)| singles(o, n, s)).collect();
            let largest = pieces
                .iter()
                .filter(|(_, _, s)| matches!(s, Shadow::Float(_)))
                .map(|&(o, n, _)| float(&after[o..o + n as usize]).abs())
                .fold(0.0, f64::max);
            for (_, _, s) in &mut pieces {
                if matches!(s, Shadow::Float(e) if *e > 0.0 && *e > largest * VACUOUS) {
                    *s = Shadow::Undecided;
                }
            }
            let mut undecided = vec![false; after.len().div_ceil(4)];
            let mut within = vec![false; undecided.len()];
            for &(o, n, s) in &pieces {
                for w in o / 4..(o + n as usize).div_ceil(4) {
                    undecided[w] |= s == Shadow::Undecided;
                    within[w] |= matches!(s, Shadow::Float(e) if e > 0.0);
                }
            }
            for (w, (x, y)) in before.chunks(4).zip(after.chunks(4)).enumerate() {
                if x != y {
                    e.changed += 1;
                    e.decided += !undecided[w] as usize;
                    e.within += (!undecided[w] && within[w]) as usize;
                }
            }
            e.buffers.push(after.to_vec());
            e.pieces.push(pieces);
        }
        e
    }

    /// Why the run does not count, if it does not.
    pub fn useless(&self) -> Option<String> {
        if self.changed == 0 {
            return Some("nothing was written".to_owned());
        }
        if (self.decided as f64) < self.changed as f64 * DECIDED {
            return Some(format!("{} of {} changed words are decided", self.decided, self.changed));
        }
        None
    }

    /// Compares with the buffers of the other side: the first difference, or the largest part of a bound that was used.
    pub fn compare(&self, other: &[Vec<u8>]) -> Result<f64, String> {
        let mut worst: f64 = 0.0;
        for (n, ((ours, theirs), pieces)) in self.buffers.iter().zip(other).zip(&self.pieces).enumerate() {
            if ours.len() != theirs.len() {
                return Err(format!("buffer {n}: {} bytes, not {}", theirs.len(), ours.len()));
            }
            let mut exact = vec![true; ours.len()];
            for &(o, len, shadow) in pieces {
                let range = o..o + len as usize;
                exact[range.clone()].fill(false);
                let Shadow::Float(e) = shadow else { continue };
                let (x, y) = (float(&ours[range.clone()]), float(&theirs[range]));
                // A NaN on the other side is never within a bound.
                let d = (x - y).abs();
                if d.is_nan() || d > e {
                    return Err(format!("buffer {n}, byte {o}: {y} is not within {e:e} of {x}"));
                }
                if e > 0.0 {
                    worst = worst.max(d / e);
                }
            }
            if let Some(o) = (0..ours.len()).find(|&o| exact[o] && ours[o] != theirs[o]) {
                let w = o / 4 * 4;
                let word = |b: &[u8]| {
                    let mut bytes = [0; 4];
                    let part = &b[w..(w + 4).min(b.len())];
                    bytes[..part.len()].copy_from_slice(part);
                    u32::from_le_bytes(bytes)
                };
                let (x, y) = (word(ours), word(theirs));
                return Err(format!(
                    "buffer {n}, byte {o}: the word there is {y:#010x} ({:?}), not {x:#010x} ({:?})",
                    f32::from_bits(y),
                    f32::from_bits(x)
                ));
            }
        }
        Ok(worst)
    }
}
