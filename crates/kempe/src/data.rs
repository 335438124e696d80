//! Bytes of buffers as numbers: for printing, for writing values on the command line, and for comparing.

use std::fmt;

/// Type of the elements of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Width in bytes: 2, 4 or 8.
    Float(usize),
    /// Width in bytes: 1, 2, 4 or 8.
    Signed(usize),
    Unsigned(usize),
    /// An unsigned word of 4 bytes, shown in hexadecimal.
    Hex,
}

/// The names of [`Element`]s on the command line.
pub const ELEMENT_NAMES: &str = "f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 hex";

/// One element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Float(f64),
    /// A float of 32 bits: shown as short as its own type allows.
    Single(f32),
    Int(i128),
    Hex(u32),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Single(v) => write!(f, "{v:?}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Hex(v) => write!(f, "{v:#010x}"),
        }
    }
}

impl Value {
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Float(v) => v,
            Value::Single(v) => v.into(),
            Value::Int(v) => v as f64,
            Value::Hex(v) => v.into(),
        }
    }
}

impl Element {
    /// By its short name.
    pub fn from_name(name: &str) -> Option<Element> {
        Some(match name {
            "f16" => Element::Float(2),
            "f32" => Element::Float(4),
            "f64" => Element::Float(8),
            "i8" => Element::Signed(1),
            "i16" => Element::Signed(2),
            "i32" => Element::Signed(4),
            "i64" => Element::Signed(8),
            "u8" => Element::Unsigned(1),
            "u16" => Element::Unsigned(2),
            "u32" => Element::Unsigned(4),
            "u64" => Element::Unsigned(8),
            "hex" => Element::Hex,
            _ => return None,
        })
    }

    pub fn bytes(self) -> usize {
        match self {
            Element::Float(n) | Element::Signed(n) | Element::Unsigned(n) => n,
            Element::Hex => 4,
        }
    }

    /// The element in up to [`Element::bytes`] little-endian bytes.
    pub fn value(self, bytes: &[u8]) -> Value {
        let bits = bytes.iter().rev().fold(0u64, |bits, &b| bits << 8 | u64::from(b));
        let unused = 64 - 8 * self.bytes() as u32;
        match self {
            Element::Float(2) => Value::Float(kempe_ir::eval::f16_to_f64(bits as u16)),
            Element::Float(4) => Value::Single(f32::from_bits(bits as u32)),
            Element::Float(_) => Value::Float(f64::from_bits(bits)),
            Element::Signed(_) => Value::Int(((bits << unused) as i64 >> unused).into()),
            Element::Unsigned(_) => Value::Int(bits.into()),
            Element::Hex => Value::Hex(bits as u32),
        }
    }

    /// Bytes of a number written in text; `None` if it is none or does not fit.
    pub fn parse(self, text: &str) -> Option<Vec<u8>> {
        let size = self.bytes();
        if let Element::Float(_) = self {
            let v: f64 = text.parse().ok()?;
            return Some(match size {
                2 => kempe_ir::eval::f64_to_f16(v).to_le_bytes().to_vec(),
                // Not by way of f64: that would round twice.
                4 => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
                _ => v.to_le_bytes().to_vec(),
            });
        }
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let plain = match digits.strip_prefix("0x") {
            Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
            None => i128::from(digits.parse::<u64>().ok()?),
        };
        let v = if negative { -plain } else { plain };
        let top = 1i128 << (8 * size);
        let low = if matches!(self, Element::Signed(_)) { -(top / 2) } else { 0 };
        let high = if matches!(self, Element::Signed(_)) { top / 2 } else { top };
        (low..high).contains(&v).then(|| v.to_le_bytes()[..size].to_vec())
    }
}

/// Bytes from the short description of contents that the command line takes:
/// `zero:BYTES`, `TYPE:value,value,…` or `TYPE:first..end` (integers). `None` if the text is no such description.
///
/// # Errors
/// When it is one, but a wrong one.
pub fn inline(text: &str) -> Option<Result<Vec<u8>, String>> {
    let (head, tail) = text.split_once(':')?;
    if head == "zero" {
        return Some(match tail.parse::<usize>() {
            Ok(n) if n <= MAX_INLINE => Ok(vec![0; n]),
            _ => Err(format!("`{text}`: a number of bytes up to {MAX_INLINE} follows `zero:`")),
        });
    }
    let element = Element::from_name(head)?;
    Some(values(element, tail).map_err(|bad| format!("`{bad}` is not of type {head}")))
}

/// Most bytes that a short description makes.
const MAX_INLINE: usize = 1 << 30;

fn values(element: Element, text: &str) -> Result<Vec<u8>, String> {
    if let Some((first, end)) = text.split_once("..")
        && !matches!(element, Element::Float(_))
    {
        fn number(element: Element, text: &str) -> Result<i64, &str> {
            element.parse(text).ok_or(text)?;
            text.parse::<i64>().or(Err(text))
        }
        let (first, end) = (number(element, first)?, number(element, end)?);
        if end.saturating_sub(first) > (MAX_INLINE / 8) as i64 {
            return Err(text.to_owned());
        }
        return Ok((first..end).flat_map(|v| v.to_le_bytes()[..element.bytes()].to_vec()).collect());
    }
    let mut bytes = Vec::new();
    for part in text.split(',') {
        bytes.extend(element.parse(part.trim()).ok_or(part)?);
    }
    Ok(bytes)
}

/// The first element that differs: its number, what it is and what it should be. Trailing bytes that are no whole
/// element count as one.
pub fn first_difference(actual: &[u8], expected: &[u8], element: Element) -> Option<(usize, Value, Value)> {
    let size = element.bytes();
    let pairs = actual.chunks(size).zip(expected.chunks(size));
    pairs.enumerate().find(|(_, (a, e))| a != e).map(|(i, (a, e))| (i, element.value(a), element.value(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for (name, text, shown) in [
            ("f16", "1.5", "1.5"),
            ("f32", "0.1", "0.1"),
            ("f32", "-inf", "-inf"),
            ("f64", "1e300", "1e300"),
            ("i8", "-128", "-128"),
            ("u8", "0xff", "255"),
            ("i64", "-9223372036854775808", "-9223372036854775808"),
            ("u64", "18446744073709551615", "18446744073709551615"),
            ("hex", "0xdeadbeef", "0xdeadbeef"),
        ] {
            let element = Element::from_name(name).unwrap();
            let bytes = element.parse(text).unwrap();
            assert_eq!(bytes.len(), element.bytes());
            assert_eq!(element.value(&bytes).to_string(), shown, "{name} {text}");
        }
        for (name, text) in
            [("u8", "256"), ("u8", "-1"), ("i8", "128"), ("u32", "1.5"), ("f32", "x"), ("i32", "")]
        {
            assert_eq!(Element::from_name(name).unwrap().parse(text), None, "{name} {text}");
        }
        assert!(ELEMENT_NAMES.split(' ').all(|name| Element::from_name(name).is_some()));
    }

    #[test]
    fn short_descriptions() {
        assert_eq!(inline("zero:3"), Some(Ok(vec![0; 3])));
        assert_eq!(inline("u16:1, 2"), Some(Ok(vec![1, 0, 2, 0])));
        assert_eq!(inline("i8:-1..2"), Some(Ok(vec![255, 0, 1])));
        assert_eq!(inline("data.bin"), None);
        assert_eq!(inline("dir:file"), None);
        for bad in [
            "zero:x",
            "zero:99999999999",
            "u8:1,,2",
            "u8:0..9999999999",
            "i64:-9000000000000000000..9",
            "f32:",
        ] {
            assert!(matches!(inline(bad), Some(Err(_))), "{bad}");
        }
    }

    #[test]
    fn differences_are_found() {
        let u16 = Element::Unsigned(2);
        assert_eq!(first_difference(&[1, 0, 2, 0], &[1, 0, 2, 0], u16), None);
        assert_eq!(
            first_difference(&[1, 0, 2, 0], &[1, 0, 3, 0], u16),
            Some((1, Value::Int(2), Value::Int(3)))
        );
        // A NaN is equal to itself: bytes are compared.
        let nan = f32::NAN.to_le_bytes();
        assert_eq!(first_difference(&nan, &nan, Element::Float(4)), None);
    }
}
