//! Formats of memory: elements to registers and back.
//!
//! Facts: reference section 5.1.

use super::Trouble;
use super::float::{from_f16, to_f16, to_f32};

/// Bytes of an element in memory, and elements that come out of a packed word (0 for formats that are not packed).
pub(super) fn shape(format: u32) -> Result<(u32, usize), Trouble> {
    Ok(match format {
        0 | 4 | 5 => (1, 0),
        1 | 3 | 6 | 7 => (2, 0),
        2 => (4, 0),
        8 => (4, 4),
        12 | 13 => (4, 3),
        10 | 14 | 15 => return Err(Trouble::unsupported("this format of memory")),
        _ => return Err(Trouble::new("unsettled", "this format of memory is not known")),
    })
}

/// The bits of a register for an element (its number counts in packed formats).
pub(super) fn load(format: u32, raw: u32, element: usize, wide: bool) -> u64 {
    let float = |x: f64| if wide { to_f32(x).into() } else { u64::from(to_f16(x)) };
    let part = |at: u32, bits: u32| f64::from(raw >> at & ((1 << bits) - 1));
    match format {
        0..=2 => raw.into(),
        3 if wide => to_f32(from_f16(raw as u16)).into(),
        3 => raw.into(),
        4 => float(f64::from(raw as u8) / 255.0),
        5 => float((f64::from(raw as u8 as i8) / 127.0).max(-1.0)),
        6 => float(f64::from(raw as u16) / 65535.0),
        7 => float((f64::from(raw as u16 as i16) / 32767.0).max(-1.0)),
        8 if element == 3 => float(part(30, 2) / 3.0),
        8 => float(part(10 * element as u32, 10) / 1023.0),
        12 => float(match element {
            0 => small_float(raw & 0x7ff, 6),
            1 => small_float(raw >> 11 & 0x7ff, 6),
            _ => small_float(raw >> 22, 5),
        }),
        _ => float(part(9 * element as u32, 9) * f64::from((raw >> 27) as i32 - 24).exp2()),
    }
}

/// A float without sign, 5 bits of exponent and so many of mantissa: an f16 whose low bits are missing.
fn small_float(bits: u32, mantissa: u32) -> f64 {
    from_f16((bits << (10 - mantissa)) as u16)
}

/// Formats that stores are simulated for: those that move bits.
pub(super) fn check_store(format: u32) -> Result<(), Trouble> {
    match format {
        0..=3 => Ok(()),
        _ => Err(Trouble::unsupported("a store that converts")),
    }
}
