//! Carries out the lines of `[test]`, and says how it went.
//!
//! Rows of pixels count from the bottom, as in OpenGL. A draw makes only what a later probe looks at, where that is known
//! beforehand: fragments do not depend on each other.

use crate::command::{self, Command, Mode, Probe};
use crate::parse::{Line, ShaderTest};
use crate::program::{NoProgram, On, Program};
use crate::state::State;
use crate::vertices::{self, Supply};
use kempe::draw::picture::Surface;
use kempe::draw::raster::Cull;
use kempe::draw::{Draw, Region, Space};
use kempe::ir::image::Format;
use kempe::limits::{Limits, guarded};

/// How a file went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Pass,
    Fail(String),
    /// A shader does not compile: the message.
    Refused(String),
    /// Something that is not done here: what.
    Skip(String),
}

/// How files are run.
#[derive(Clone, Copy)]
pub struct Options {
    pub on: On,
    /// For the whole file.
    pub limits: Limits,
}

/// Tolerance of a probe if the file does not say one.
const TOLERANCE: f32 = 0.01;

/// Largest buffer that a line may make.
const MAX_BUFFER: u32 = 1 << 24;

/// Runs a file. `name` is for messages.
pub fn run(name: &str, bytes: &[u8], options: &Options) -> Verdict {
    let (name, bytes, options) = (name.to_owned(), bytes.to_vec(), *options);
    match guarded(options.limits, move || judge(&name, &bytes, &options)) {
        Ok(verdict) => verdict,
        Err(stopped) => Verdict::Fail(stopped.to_string()),
    }
}

fn judge(name: &str, bytes: &[u8], options: &Options) -> Verdict {
    let test = match ShaderTest::parse(bytes) {
        Ok(test) => test,
        Err(message) => return Verdict::Fail(message),
    };
    let commands = match prepare(&test) {
        Ok(commands) => commands,
        Err(what) => return Verdict::Skip(what),
    };
    let program = match Program::new(name, &test, options.on, options.limits) {
        Ok(program) => program,
        Err(NoProgram::Stages(what)) => return Verdict::Skip(what),
        Err(NoProgram::Refused(why)) => return Verdict::Refused(why),
    };
    let surface = match Surface::new(test.size, &[Format::Rgba8], [0.0; 4]) {
        Ok(surface) => surface,
        Err(message) => return Verdict::Skip(message),
    };
    let mut run = Run {
        test: &test,
        program: &program,
        region: region(&commands),
        window: surface,
        target: None,
        state: State::default(),
        clear: [0.0; 4],
        tolerance: [TOLERANCE; 4],
    };
    for (line, command) in commands {
        match run.step(&command) {
            Ok(()) => {}
            Err(Stop::Skip(what)) => return Verdict::Skip(what),
            Err(Stop::Fail(message)) => return Verdict::Fail(format!("line {}: {message}", line.number)),
        }
    }
    Verdict::Pass
}

/// All lines as commands, or what cannot be done here.
fn prepare(test: &ShaderTest) -> Result<Vec<(&Line, Command)>, String> {
    if let Some(section) = &test.foreign {
        return Err(format!("section [{section}]"));
    }
    if test.test.is_empty() {
        return Err("there is no test".to_owned());
    }
    if test.test.iter().any(|l| l.text.starts_with("link error")) {
        return Err("expects an error".to_owned());
    }
    let commands: Vec<(&Line, Command)> = test
        .test
        .iter()
        .map(|line| command::parse(line).map(|c| (line, c)).map_err(|what| format!("the line {what}")))
        .collect::<Result<_, _>>()?;
    let draws = commands.iter().any(|(_, c)| matches!(c, Command::Rect { .. } | Command::Arrays { .. }));
    let memory = |c: &Command| {
        matches!(c, Command::ImageTexture { .. } | Command::ProbeSsbo { .. } | Command::ProbeAtomic { .. })
    };
    if draws && commands.iter().any(|(_, c)| memory(c)) {
        return Err("memory that a draw writes".to_owned());
    }
    if !commands.iter().any(|(_, c)| {
        matches!(c, Command::Probe(_) | Command::ProbeSsbo { .. } | Command::ProbeAtomic { .. })
    }) {
        return Err("nothing is probed".to_owned());
    }
    if test.shaders.iter().any(|s| has_initial_uniform(&s.text)) {
        return Err("initial values of uniforms".to_owned());
    }
    Ok(commands)
}

/// Whether a text gives a uniform outside of blocks a value. Comments may make it look so: then a file is skipped.
fn has_initial_uniform(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("uniform") {
        let behind = &rest[at + "uniform".len()..];
        let whole = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && behind.starts_with(char::is_whitespace);
        let end = behind.find([';', '{', ')']).unwrap_or(behind.len());
        if whole && behind[..end].contains('=') {
            return true;
        }
        rest = behind;
    }
    false
}

/// The pixels that any probe looks at, if all say it in pixels of the window.
fn region(commands: &[(&Line, Command)]) -> Option<Region> {
    let mut found: Option<Region> = None;
    for (_, command) in commands {
        match command {
            Command::Target(_) => return None,
            Command::Probe(p) => {
                let limit = |v: i64| u32::try_from(v.clamp(0, i64::from(u32::MAX))).unwrap_or(0);
                let [x, y, w, h] = p.rect?;
                let one = [limit(x), limit(y), limit(x.saturating_add(w)), limit(y.saturating_add(h))];
                found = Some(found.map_or(one, |f| {
                    [f[0].min(one[0]), f[1].min(one[1]), f[2].max(one[2]), f[3].max(one[3])]
                }));
            }
            _ => {}
        }
    }
    found
}

/// Why a test does not go on.
enum Stop {
    Skip(String),
    Fail(String),
}

struct Run<'a> {
    test: &'a ShaderTest,
    program: &'a Program,
    region: Option<Region>,
    window: Surface,
    /// The texture unit that is drawn to.
    target: Option<u32>,
    state: State,
    clear: [f32; 4],
    tolerance: [f32; 4],
}

impl Run<'_> {
    fn step(&mut self, command: &Command) -> Result<(), Stop> {
        match command {
            Command::Nothing => {}
            Command::ClearColor(c) => self.clear = *c,
            Command::Tolerance(t) => self.tolerance = *t,
            Command::Clear => {
                let clear = self.clear;
                let surface = self.surface()?;
                let size = [surface.width, surface.height];
                *surface = Surface::new(size, &surface.formats.clone(), clear).map_err(Stop::Skip)?;
            }
            Command::Uniform { name, class, scalars, values } => {
                self.state.set_uniform(name, *class, *scalars, values);
            }
            Command::Ortho(planes) => {
                let [w, h] = self.test.size.map(f64::from);
                self.state.ortho = Some(planes.unwrap_or([0.0, w, 0.0, h]));
            }
            Command::Rect { ortho, rect, texture, instances } => {
                let mut rect = *rect;
                if *ortho {
                    let surface = self.surface()?;
                    let size = [surface.width as f32, surface.height as f32];
                    for k in 0..2 {
                        rect[k] = rect[k] * 2.0 / size[k] - 1.0;
                        rect[k + 2] = rect[k + 2] * 2.0 / size[k];
                    }
                }
                let Program::Draw { stages, .. } = self.program else {
                    return Err(Stop::Skip("a draw without a vertex shader".to_owned()));
                };
                self.draw(vertices::rectangle(&stages[0], rect, *texture), *instances)?;
            }
            Command::Arrays { mode, first, count, instances } => {
                self.arrays(*mode, [*first, *count], *instances)?
            }
            Command::Probe(p) => self.probe(p)?,
            Command::Compute(groups) => self.dispatch(*groups)?,
            Command::Rgbw { unit, size, format } => {
                let format = match format.as_deref() {
                    None | Some("GL_RGBA" | "GL_RGBA8" | "GL_RGB" | "GL_RGB8") => Format::Rgba8,
                    Some("GL_RGBA32F") => Format::Rgba32f,
                    Some("GL_RGBA16F") => Format::Rgba16f,
                    Some(other) => return Err(Stop::Skip(format!("a texture of format {other}"))),
                };
                let [w, h] = *size;
                let color = |x: u32, y: u32| match (x >= w / 2, y >= h / 2) {
                    (false, false) => [1.0, 0.0, 0.0, 1.0],
                    (true, false) => [0.0, 1.0, 0.0, 1.0],
                    (false, true) => [0.0, 0.0, 1.0, 1.0],
                    (true, true) => [1.0; 4],
                };
                self.texture(*unit, *size, format, color)?;
            }
            Command::Checkerboard { unit, size, colors } => {
                let [w, h] = size.map(|n| (n / 2).max(1));
                let colors = *colors;
                self.texture(*unit, *size, Format::Rgba8, |x, y| colors[(((x / w) ^ (y / h)) & 1) as usize])?;
            }
            Command::Filter { linear } => self.state.linear = *linear,
            Command::ImageTexture { .. } => {}
            Command::Target(unit) => self.target = *unit,
            Command::Ssbo { binding, size } => {
                if *size > MAX_BUFFER {
                    return Err(Stop::Skip("a buffer that is too large".to_owned()));
                }
                self.state.buffers.insert(*binding, vec![0; *size as usize]);
            }
            Command::SsboData { binding, float, offset, value } => {
                let word = if *float { value.f32().to_bits() } else { value.i64() as u32 };
                let buffer = self.state.buffers.get_mut(binding);
                let slot =
                    buffer.and_then(|b| b.get_mut(*offset as usize..)).and_then(|b| b.first_chunk_mut());
                match slot {
                    Some(slot) => *slot = word.to_le_bytes(),
                    None => return Err(Stop::Skip("data outside of a buffer".to_owned())),
                }
            }
            Command::ProbeSsbo { binding, float, offset, how, value } => {
                let bytes = self.state.buffers.get(binding).and_then(|b| b.get(*offset as usize..));
                let Some(&is) = bytes.and_then(|b| b.first_chunk::<4>()) else {
                    return Err(Stop::Skip("a probe outside of a buffer".to_owned()));
                };
                let word = u32::from_le_bytes(is);
                let (good, is) = if *float {
                    let is = f32::from_bits(word);
                    (how.holds(is, value.f32()), is.to_string())
                } else {
                    (how.holds(word, value.i64() as u32), word.to_string())
                };
                if !good {
                    return Err(Stop::Fail(format!("buffer {binding} has {is} at {offset}")));
                }
            }
            Command::AtomicCounters(n) => {
                if *n > MAX_BUFFER / 4 {
                    return Err(Stop::Skip("a buffer that is too large".to_owned()));
                }
                self.state.counters = vec![0; *n as usize];
            }
            Command::AtomicCounter { at, value } => match self.state.counters.get_mut(*at as usize) {
                Some(slot) => *slot = value.i64() as u32,
                None => return Err(Stop::Skip("data outside of a buffer".to_owned())),
            },
            Command::ProbeAtomic { at, how, value } => {
                let Some(&is) = self.state.counters.get(*at as usize) else {
                    return Err(Stop::Skip("a probe outside of a buffer".to_owned()));
                };
                if !how.holds(is, value.i64() as u32) {
                    return Err(Stop::Fail(format!("counter {at} is {is}")));
                }
            }
        }
        Ok(())
    }

    /// What is drawn to and probed.
    fn surface(&mut self) -> Result<&mut Surface, Stop> {
        match self.target {
            None => Ok(&mut self.window),
            Some(unit) => {
                let missing = || Stop::Skip("draws to a texture that is not there".to_owned());
                self.state.textures.get_mut(&unit).ok_or_else(missing)
            }
        }
    }

    fn texture(
        &mut self,
        unit: u32,
        size: [u32; 2],
        format: Format,
        color: impl Fn(u32, u32) -> [f32; 4],
    ) -> Result<(), Stop> {
        let mut surface = Surface::new(size, &[format], [0.0; 4]).map_err(Stop::Skip)?;
        for y in 0..size[1] {
            for x in 0..size[0] {
                surface.write(0, (y * size[0] + x) as usize, color(x, y).map(f32::to_bits));
            }
        }
        self.state.textures.insert(unit, surface);
        Ok(())
    }

    fn arrays(&mut self, mode: Mode, [first, count]: [u32; 2], instances: u32) -> Result<(), Stop> {
        let Program::Draw { stages, .. } = self.program else {
            return Err(Stop::Skip("a draw without a vertex shader".to_owned()));
        };
        let supply = vertices::table(&stages[0], &self.test.vertex_data, mode, first, count);
        self.draw(supply.map_err(Stop::Skip)?, instances)
    }

    fn draw(&mut self, supply: Supply, instances: u32) -> Result<(), Stop> {
        let Program::Draw { stages, .. } = self.program else {
            return Err(Stop::Skip("a draw without a vertex shader".to_owned()));
        };
        let inputs = |k: usize| self.state.inputs(&stages[k], [1; 3]).map_err(Stop::Skip);
        let (vertex_inputs, fragment_inputs) = (inputs(0)?, inputs(1)?);
        let (program, region) = (self.program, self.region);
        let surface = self.surface()?;
        let drawn = program.with_stages(|vertex, fragment| {
            let draw = Draw {
                vertex,
                fragment,
                vertex_inputs,
                fragment_inputs,
                vertices: supply.vertices,
                triangles: &supply.triangles,
                attributes: supply.attributes,
                instances,
                space: Space::OpenGl,
                region,
                cull: Cull::None,
                depth_test: false,
                depth_write: false,
            };
            kempe::draw::draw(&draw, surface)
        });
        drawn.map(|_| ()).map_err(|e| Stop::Fail(e.to_string()))
    }

    fn dispatch(&mut self, groups: [u32; 3]) -> Result<(), Stop> {
        let Program::Compute { stage, .. } = self.program else {
            return Err(Stop::Skip("a dispatch without a compute shader".to_owned()));
        };
        let inputs = self.state.inputs(stage, groups).map_err(Stop::Skip)?;
        let report = self.program.dispatch(&inputs).map_err(|e| Stop::Fail(e.to_string()))?;
        self.state.keep(stage, &inputs, &report.buffers);
        Ok(())
    }

    fn probe(&mut self, p: &Probe) -> Result<(), Stop> {
        let tolerance = self.tolerance;
        let surface = self.surface()?;
        let size = [i64::from(surface.width), i64::from(surface.height)];
        let part = |v: f32, k: usize| ((f64::from(v) * size[k] as f64) as i64).min(size[k] - 1).max(0);
        let rect = match (p.rect, p.relative) {
            (Some(rect), _) => rect,
            // A single pixel is written without a size.
            (None, Some([x, y, w, h])) => {
                let extent = |v: f32, k: usize| ((f64::from(v) * size[k] as f64) as i64).max(1);
                [part(x, 0), part(y, 1), extent(w, 0), extent(h, 1)]
            }
            (None, None) => [0, 0, size[0], size[1]],
        };
        let [left, bottom, width, height] = rect;
        for y in bottom..bottom.saturating_add(height).min(size[1]) {
            for x in left..left.saturating_add(width).min(size[0]) {
                let at = usize::try_from(y * size[0] + x).ok();
                let color = at.and_then(|at| surface.colors.first().and_then(|c| c.get(at)));
                let Some(color) = color else {
                    return Err(Stop::Skip("a probe outside of the window".to_owned()));
                };
                let is = color.map(f32::from_bits);
                let good = (0..p.components).all(|k| (is[k] - p.color[k]).abs() <= tolerance[k]);
                if !good {
                    let n = p.components;
                    let message = format!("pixel {x}, {y} is {:?}, not {:?}", &is[..n], &p.color[..n]);
                    return Err(Stop::Fail(message));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_values_are_seen() {
        for (text, want) in [
            ("uniform float x = 1.0;", true),
            ("uniform vec2 a, b = vec2(1);", true),
            ("uniform B { float x; };\nfloat y = 1.0;", false),
            ("uniform float x;\nvoid main() { float y = x; }", false),
            ("layout(binding = 0) uniform sampler2D s;", false),
            ("int uniforms = 3;", false),
        ] {
            assert_eq!(has_initial_uniform(text), want, "{text}");
        }
    }
}
