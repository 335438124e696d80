//! The lines of `[test]`, and which of them can be carried out here.

use crate::parse::Line;

/// A number of a line: as it is written, and as bits where it is written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    value: f64,
    bits: Option<u64>,
    /// Exact, where the number is a whole one.
    whole: Option<i128>,
}

impl Number {
    pub fn parse(text: &str) -> Option<Number> {
        if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            let bits = u64::from_str_radix(hex, 16).ok()?;
            return Some(Number { value: bits as f64, bits: Some(bits), whole: Some(bits.into()) });
        }
        let value = text.parse::<f64>().ok()?;
        Some(Number { value, bits: None, whole: text.parse().ok() })
    }

    /// As a float; hexadecimal digits are its bits.
    pub fn f32(self) -> f32 {
        self.bits.map_or(self.value as f32, |b| f32::from_bits(b as u32))
    }

    pub fn f64(self) -> f64 {
        self.bits.map_or(self.value, f64::from_bits)
    }

    pub fn i64(self) -> i64 {
        self.whole.map_or(self.value as i64, |w| w as i64)
    }
}

/// Class of the scalars of a uniform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Float,
    Double,
    Int,
    Long,
}

/// What a probe compares with what.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// Left, bottom, width, height in pixels; `None`: everything.
    pub rect: Option<[i64; 4]>,
    /// The same as a part of the window.
    pub relative: Option<[f32; 4]>,
    pub color: [f32; 4],
    /// 3 or 4.
    pub components: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    ClearColor([f32; 4]),
    Clear,
    Tolerance([f32; 4]),
    Uniform {
        name: String,
        class: Class,
        /// Scalars of one element.
        scalars: usize,
        values: Vec<Number>,
    },
    Ortho(Option<[f64; 4]>),
    Rect {
        /// In pixels.
        ortho: bool,
        rect: [f32; 4],
        texture: Option<[f32; 4]>,
        instances: u32,
    },
    Arrays {
        mode: Mode,
        first: u32,
        count: u32,
        instances: u32,
    },
    Probe(Probe),
    Compute([u32; 3]),
    /// A texture of four colours.
    Rgbw {
        unit: u32,
        size: [u32; 2],
        format: Option<String>,
    },
    Checkerboard {
        unit: u32,
        size: [u32; 2],
        colors: [[f32; 4]; 2],
    },
    Filter {
        linear: bool,
    },
    ImageTexture {
        unit: u32,
    },
    /// Draws go to a texture, or back to the window.
    Target(Option<u32>),
    Ssbo {
        binding: u32,
        size: u32,
    },
    SsboData {
        binding: u32,
        float: bool,
        offset: u32,
        value: Number,
    },
    ProbeSsbo {
        binding: u32,
        float: bool,
        offset: u32,
        how: Compare,
        value: Number,
    },
    AtomicCounters(u32),
    AtomicCounter {
        at: u32,
        value: Number,
    },
    ProbeAtomic {
        at: u32,
        how: Compare,
        value: Number,
    },
    /// Something that is true here anyway.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Triangles,
    Strip,
    Fan,
    Quads,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Compare {
    fn parse(text: &str) -> Option<Compare> {
        Some(match text {
            "==" => Compare::Equal,
            "!=" => Compare::NotEqual,
            "<" => Compare::Less,
            "<=" => Compare::LessEqual,
            ">" => Compare::Greater,
            ">=" => Compare::GreaterEqual,
            _ => return None,
        })
    }

    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Compare::Equal => a == b,
            Compare::NotEqual => a != b,
            Compare::Less => a < b,
            Compare::LessEqual => a <= b,
            Compare::Greater => a > b,
            Compare::GreaterEqual => a >= b,
        }
    }
}

/// Class and scalars of a type of GLSL.
pub fn glsl_type(name: &str) -> Option<(Class, usize)> {
    let scalar = match name {
        "float" => Some(Class::Float),
        "double" => Some(Class::Double),
        "int" | "uint" | "bool" => Some(Class::Int),
        "int64_t" | "uint64_t" => Some(Class::Long),
        _ => None,
    };
    if let Some(class) = scalar {
        return Some((class, 1));
    }
    let digit = |c: Option<char>| c.and_then(|c| c.to_digit(10)).filter(|n| (2..=4).contains(n));
    for (prefix, class) in [
        ("vec", Class::Float),
        ("dvec", Class::Double),
        ("ivec", Class::Int),
        ("uvec", Class::Int),
        ("bvec", Class::Int),
        ("i64vec", Class::Long),
        ("u64vec", Class::Long),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let n = digit(rest.chars().next()).filter(|_| rest.len() == 1)?;
            return Some((class, n as usize));
        }
    }
    for (prefix, class) in [("mat", Class::Float), ("dmat", Class::Double)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let mut chars = rest.chars();
            let columns = digit(chars.next())?;
            let rows = match chars.next() {
                None => columns,
                Some('x') => digit(chars.next()).filter(|_| chars.next().is_none())?,
                Some(_) => return None,
            };
            return Some((class, (columns * rows) as usize));
        }
    }
    None
}

fn mode(name: &str) -> Option<Mode> {
    Some(match name {
        "GL_TRIANGLES" => Mode::Triangles,
        "GL_TRIANGLE_STRIP" => Mode::Strip,
        "GL_TRIANGLE_FAN" => Mode::Fan,
        "GL_QUADS" => Mode::Quads,
        _ => return None,
    })
}

/// Numbers of a list of words.
fn numbers<const N: usize>(words: &[&str]) -> Option<[f32; N]> {
    let list: Option<Vec<f32>> = words.iter().map(|w| Number::parse(w).map(Number::f32)).collect();
    list.filter(|l| l.len() >= N).and_then(|l| l[..N].try_into().ok())
}

fn whole<const N: usize>(words: &[&str]) -> Option<[u32; N]> {
    let list: Option<Vec<u32>> =
        words.iter().take(N).map(|w| Number::parse(w).and_then(|n| u32::try_from(n.i64()).ok())).collect();
    list.and_then(|l| l.try_into().ok())
}

/// What a line asks for. `Err` names what cannot be carried out, without its numbers.
pub fn parse(line: &Line) -> Result<Command, String> {
    let spaced: String =
        line.text.chars().map(|c| if matches!(c, '(' | ')' | ',' | ';') { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    command(&words).ok_or_else(|| {
        let is_number = |w: &&str| Number::parse(w).is_some();
        let name: Vec<&str> = words.iter().copied().take_while(|w| !is_number(w)).take(4).collect();
        name.join(" ")
    })
}

fn command(words: &[&str]) -> Option<Command> {
    let probe = |rect, relative, color: [f32; 4], components| {
        Some(Command::Probe(Probe { rect, relative, color, components }))
    };
    let three = |w: &[&str]| numbers::<3>(w).map(|[r, g, b]| [r, g, b, 0.0]);
    let at = |w: &str| Number::parse(w).map(Number::i64);
    Some(match *words {
        ["clear", "color", ref c @ ..] => Command::ClearColor(numbers(c)?),
        ["clear"] => Command::Clear,
        ["tolerance", ref c @ ..] => Command::Tolerance(numbers(c)?),
        ["uniform", ty, name, ref values @ ..] => {
            let (class, scalars) = glsl_type(ty)?;
            let values: Option<Vec<Number>> = values.iter().map(|w| Number::parse(w)).collect();
            Command::Uniform { name: name.to_owned(), class, scalars, values: values? }
        }
        ["ortho"] => Command::Ortho(None),
        ["ortho", ref r @ ..] => Command::Ortho(Some(numbers::<4>(r)?.map(f64::from))),
        ["draw", "rect", "ortho", ref r @ ..] => {
            Command::Rect { ortho: true, rect: numbers(r)?, texture: None, instances: 1 }
        }
        ["draw", "rect", "tex", ref r @ ..] => {
            let all = numbers::<8>(r)?;
            let (rect, texture) = ([all[0], all[1], all[2], all[3]], [all[4], all[5], all[6], all[7]]);
            Command::Rect { ortho: false, rect, texture: Some(texture), instances: 1 }
        }
        ["draw", "rect", ref r @ ..] => {
            Command::Rect { ortho: false, rect: numbers(r)?, texture: None, instances: 1 }
        }
        ["draw", "instanced", "rect", "ortho", n, ref r @ ..] => {
            Command::Rect { ortho: true, rect: numbers(r)?, texture: None, instances: n.parse().ok()? }
        }
        ["draw", "instanced", "rect", n, ref r @ ..] => {
            Command::Rect { ortho: false, rect: numbers(r)?, texture: None, instances: n.parse().ok()? }
        }
        ["draw", "arrays", "instanced", m, ref r @ ..] => {
            let [first, count, instances] = whole(r)?;
            Command::Arrays { mode: mode(m)?, first, count, instances }
        }
        ["draw", "arrays", m, ref r @ ..] => {
            let [first, count] = whole(r)?;
            Command::Arrays { mode: mode(m)?, first, count, instances: 1 }
        }
        ["probe", "all", "rgba", ref c @ ..] => return probe(None, None, numbers(c)?, 4),
        ["probe", "all", "rgb", ref c @ ..] => return probe(None, None, three(c)?, 3),
        ["probe", "rect", "rgba", x, y, w, h, ref c @ ..] => {
            return probe(Some([at(x)?, at(y)?, at(w)?, at(h)?]), None, numbers(c)?, 4);
        }
        ["probe", "rect", "rgb", x, y, w, h, ref c @ ..] => {
            return probe(Some([at(x)?, at(y)?, at(w)?, at(h)?]), None, three(c)?, 3);
        }
        ["probe", "rgba", x, y, ref c @ ..] => {
            return probe(Some([at(x)?, at(y)?, 1, 1]), None, numbers(c)?, 4);
        }
        ["probe", "rgb", x, y, ref c @ ..] => return probe(Some([at(x)?, at(y)?, 1, 1]), None, three(c)?, 3),
        ["relative", "probe", "rect", kind @ ("rgb" | "rgba"), ref r @ ..] => {
            let rect = numbers::<4>(r)?;
            let (color, n) = if kind == "rgb" { (three(&r[4..])?, 3) } else { (numbers(&r[4..])?, 4) };
            return probe(None, Some(rect), color, n);
        }
        ["relative", "probe", kind @ ("rgb" | "rgba"), ref r @ ..] => {
            let [x, y] = numbers::<2>(r)?;
            let (color, n) = if kind == "rgb" { (three(&r[2..])?, 3) } else { (numbers(&r[2..])?, 4) };
            return probe(None, Some([x, y, 0.0, 0.0]), color, n);
        }
        ["compute", ref r @ ..] => Command::Compute(whole(r)?),
        ["texture", "rgbw", unit, w, h, ref format @ ..] => Command::Rgbw {
            unit: unit.parse().ok()?,
            size: whole(&[w, h])?,
            format: format.first().map(|f| (*f).to_owned()),
        },
        ["texture", "checkerboard", unit, "0", w, h, ref c @ ..] => {
            let c = numbers::<8>(c)?;
            let colors = [[c[0], c[1], c[2], c[3]], [c[4], c[5], c[6], c[7]]];
            Command::Checkerboard { unit: unit.parse().ok()?, size: whole(&[w, h])?, colors }
        }
        ["texparameter", "2D", "min" | "mag", filter @ ("nearest" | "linear")] => {
            Command::Filter { linear: filter == "linear" }
        }
        ["image", "texture", unit, ..] => Command::ImageTexture { unit: unit.parse().ok()? },
        ["fb", "tex", "2d", unit] => Command::Target(Some(unit.parse().ok()?)),
        ["fb", "draw", "winsys"] => Command::Target(None),
        ["ssbo", binding, size] => Command::Ssbo { binding: binding.parse().ok()?, size: size.parse().ok()? },
        ["ssbo", binding, "subdata", kind @ ("float" | "int" | "uint"), offset, value] => Command::SsboData {
            binding: binding.parse().ok()?,
            float: kind == "float",
            offset: offset.parse().ok()?,
            value: Number::parse(value)?,
        },
        ["probe", "ssbo", kind @ ("float" | "int" | "uint"), binding, offset, how, value] => {
            Command::ProbeSsbo {
                binding: binding.parse().ok()?,
                float: kind == "float",
                offset: offset.parse().ok()?,
                how: Compare::parse(how)?,
                value: Number::parse(value)?,
            }
        }
        ["atomic", "counters", n] => Command::AtomicCounters(n.parse().ok()?),
        ["atomic", "counter", at, value] => {
            Command::AtomicCounter { at: at.parse().ok()?, value: Number::parse(value)? }
        }
        ["probe", "atomic", "counter", at, how, value] => Command::ProbeAtomic {
            at: at.parse().ok()?,
            how: Compare::parse(how)?,
            value: Number::parse(value)?,
        },
        ["link", "success"] | ["memory", "barrier", ..] | ["shade", "model", "smooth"] => Command::Nothing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Command, String> {
        parse(&Line { number: 1, text: text.to_owned() })
    }

    #[test]
    fn lines_are_read() {
        let Ok(Command::Probe(p)) = one("relative probe rgba ( 0.25 , 0.75) (0.0,1.0, 0.0, 0.5);") else {
            panic!()
        };
        assert_eq!(
            (p.relative, p.color, p.components),
            (Some([0.25, 0.75, 0.0, 0.0]), [0.0, 1.0, 0.0, 0.5], 4)
        );
        let Ok(Command::Probe(p)) = one("probe rgb 3 0 0.0 1.0 0.0 1.0") else { panic!() };
        assert_eq!((p.rect, p.components), (Some([3, 0, 1, 1]), 3));
        let Ok(Command::Uniform { name, class, scalars, values }) =
            one("uniform mat2x3 m 1 2 3 4 0x3f800000 -1e3")
        else {
            panic!()
        };
        assert_eq!((name.as_str(), class, scalars, values.len()), ("m", Class::Float, 6, 6));
        assert_eq!((values[4].f32(), values[5].f32()), (1.0, -1000.0));
        assert_eq!(
            one("uniform u64vec2 x 18446744073709551615 1")
                .map(|c| matches!(c, Command::Uniform { values, .. } if values[0].i64() == -1)),
            Ok(true)
        );
        assert_eq!(one("draw arrays GL_POINTS 0 4"), Err("draw arrays GL_POINTS".to_owned()));
        assert_eq!(one("enable GL_BLEND"), Err("enable GL_BLEND".to_owned()));
        assert_eq!(
            one("probe ssbo uint 0 4 >= 7")
                .map(|c| matches!(c, Command::ProbeSsbo { how: Compare::GreaterEqual, .. })),
            Ok(true)
        );
        assert_eq!(one("compute 1 2"), Err("compute".to_owned()));
        for (name, want) in [
            ("vec4", Some((Class::Float, 4))),
            ("dmat4x2", Some((Class::Double, 8))),
            ("mat5", None),
            ("vec", None),
            ("matx", None),
            ("mat2x", None),
        ] {
            assert_eq!(glsl_type(name), want, "{name}");
        }
    }
}
