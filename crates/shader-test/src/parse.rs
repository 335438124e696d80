//! A file as its sections.
//!
//! A section starts at a line `[name]`. Shaders without `#version` get the one that `[require]` asks of the language.

use kempe::Stage;

/// Largest file.
const MAX_BYTES: usize = 16 << 20;

/// A shader as it is written in the file, with its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shader {
    pub stage: Stage,
    /// Line of the section's head.
    pub line: u32,
    /// Ready to compile; lines are those of the file.
    pub text: String,
}

/// A line of `[test]` that says something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub number: u32,
    pub text: String,
}

/// A file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ShaderTest {
    pub require: Vec<String>,
    pub shaders: Vec<Shader>,
    /// Why not all shaders of the file are in `shaders`: the first section that is not known here.
    pub foreign: Option<String>,
    pub vertex_data: Vec<Line>,
    pub test: Vec<Line>,
    /// Size of the window.
    pub size: [u32; 2],
}

/// Size of the window if the file does not say one.
const WINDOW: [u32; 2] = [250, 250];

/// What `[require]` says about the version, as a `#version` line.
fn version(require: &[String]) -> String {
    let number = |rest: &str| {
        let digits: String = rest.chars().filter(char::is_ascii_digit).take(3).collect();
        digits.parse::<u32>().ok()
    };
    let mut found = (110, false, false);
    for line in require {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["GLSL", "ES", ">=" | "=", v] => found = (number(v).unwrap_or(100), true, false),
            ["GLSL", "COMPAT", ">=" | "=", v] => found = (number(v).unwrap_or(110), false, true),
            ["GLSL", ">=" | "=", v] => found = (number(v).unwrap_or(110), false, false),
            _ => {}
        }
    }
    match found {
        (v, true, _) if v > 100 => format!("#version {v} es"),
        (v, true, _) => format!("#version {v}"),
        (v, _, true) if v >= 150 => format!("#version {v} compatibility"),
        (v, ..) => format!("#version {v}"),
    }
}

/// The text of a section with a version, each line where it is in the file: nothing but blank lines and comments may stand
/// before the version, which takes the line of the section's head (`line`) if the text has none.
fn with_version(text: &str, line: u32, version: &str) -> String {
    let is_version =
        |l: &str| l.trim_start().strip_prefix('#').is_some_and(|l| l.trim_start().starts_with("version"));
    let own = text.lines().any(is_version);
    format!("{}{}\n{text}", "\n".repeat(line as usize - 1), if own { "" } else { version })
}

/// A vertex shader that hands its position on.
fn passthrough(version: &str) -> String {
    let number: u32 = version.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(110);
    let word = if number >= 130 { "in" } else { "attribute" };
    format!("{version}\n{word} vec4 piglit_vertex;\nvoid main() {{ gl_Position = piglit_vertex; }}\n")
}

/// What the fixed functions make of a vertex, without lights.
const FIXED_VERTEX: &str = "#version 110\nvoid main() {\n    gl_Position = ftransform();\n    gl_FrontColor = gl_Color;\n    \
    gl_TexCoord[0] = gl_MultiTexCoord0;\n}\n";

impl ShaderTest {
    /// # Errors
    /// When it is no such file.
    pub fn parse(bytes: &[u8]) -> Result<ShaderTest, String> {
        if bytes.len() > MAX_BYTES {
            return Err(format!("{} bytes: more than {MAX_BYTES} are refused", bytes.len()));
        }
        let text = String::from_utf8_lossy(bytes);
        let mut sections: Vec<(String, u32, String)> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            if line.starts_with('[')
                && let Some((name, _)) = line[1..].split_once(']')
            {
                sections.push((name.trim().to_owned(), n as u32 + 1, String::new()));
            } else if let Some(section) = sections.last_mut() {
                section.2.push_str(line.trim_end_matches('\r'));
                section.2.push('\n');
            }
        }
        if sections.is_empty() {
            return Err("there is no section like [vertex shader]".to_owned());
        }
        let lines = |name: &str| -> Vec<Line> {
            let of = sections.iter().filter(|s| s.0 == name);
            of.flat_map(|(_, first, text)| {
                text.lines().enumerate().filter_map(move |(n, line)| {
                    let line = line.split('#').next().unwrap_or_default().trim();
                    let number = first + 1 + n as u32;
                    (!line.is_empty()).then(|| Line { number, text: line.to_owned() })
                })
            })
            .collect()
        };
        let require: Vec<String> = lines("require").into_iter().map(|l| l.text).collect();
        let version = version(&require);
        let mut out = ShaderTest { size: WINDOW, ..ShaderTest::default() };
        for line in &require {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["SIZE", w, h] = words.as_slice()
                && let (Ok(w), Ok(h)) = (w.parse(), h.parse())
            {
                out.size = [w, h];
            }
        }
        for (name, line, text) in &sections {
            let mut add = |stage, text| out.shaders.push(Shader { stage, line: *line, text });
            match name.as_str() {
                "require" | "test" | "vertex data" => {}
                "vertex shader" => add(Stage::Vertex, with_version(text, *line, &version)),
                "fragment shader" => add(Stage::Fragment, with_version(text, *line, &version)),
                "compute shader" => add(Stage::Compute, with_version(text, *line, &version)),
                "geometry shader" => add(Stage::Geometry, with_version(text, *line, &version)),
                "tessellation control shader" => add(Stage::TessControl, with_version(text, *line, &version)),
                "tessellation evaluation shader" => add(Stage::TessEval, with_version(text, *line, &version)),
                "vertex shader passthrough" => add(Stage::Vertex, passthrough(&version)),
                other => out.foreign = out.foreign.take().or_else(|| Some(other.to_owned())),
            }
        }
        let has = |stage| out.shaders.iter().any(|s| s.stage == stage);
        if !has(Stage::Vertex) && has(Stage::Fragment) && out.foreign.is_none() {
            out.shaders.insert(0, Shader { stage: Stage::Vertex, line: 1, text: FIXED_VERTEX.to_owned() });
        }
        out.vertex_data = lines("vertex data");
        out.test = lines("test");
        out.require = require;
        Ok(out)
    }

    /// The shader of a stage, if there is exactly one.
    pub fn shader(&self, stage: Stage) -> Option<&Shader> {
        let mut of = self.shaders.iter().filter(|s| s.stage == stage);
        of.next().filter(|_| of.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_versions() {
        let text = "# a comment\n[require]\nGLSL >= 1.30\nSIZE 8 4\n\n[vertex shader passthrough]\n[fragment shader]\n\
            void main() {}\n[vertex data]\na/float/2\n1 2\n\n[test]\n# nothing\nclear # all\n";
        let t = ShaderTest::parse(text.as_bytes()).unwrap();
        assert_eq!((t.size, t.shaders.len(), t.foreign.as_deref()), ([8, 4], 2, None));
        assert!(t.shaders[0].text.starts_with("#version 130\nin vec4 piglit_vertex;"), "{:?}", t.shaders[0]);
        assert_eq!(t.shaders[1].text, "\n\n\n\n\n\n#version 130\nvoid main() {}\n");
        assert_eq!(t.test, [Line { number: 15, text: "clear".to_owned() }]);
        assert_eq!(t.vertex_data.len(), 2);
        let t = ShaderTest::parse(b"[fragment shader]\n\n#version 330\nx\n").unwrap();
        assert_eq!(t.shader(Stage::Fragment).unwrap().text, "\n\n#version 330\nx\n");
        assert!(t.shader(Stage::Vertex).unwrap().text.contains("ftransform"));
        let t = ShaderTest::parse(b"[vertex shader]\n[vertex program]\n[fragment shader]\n").unwrap();
        assert_eq!(t.foreign.as_deref(), Some("vertex program"));
        for (line, want) in [
            ("GLSL ES >= 3.00", "#version 300 es"),
            ("GLSL ES >= 1.00", "#version 100"),
            ("GLSL COMPAT >= 1.50", "#version 150 compatibility"),
            ("GL >= 3.0", "#version 110"),
        ] {
            assert_eq!(version(&[line.to_owned()]), want);
        }
    }

    #[test]
    fn anything_else_is_refused_or_empty() {
        for text in [&b""[..], b"void main() {}", b"\xff\xfe", b"[", b"]"] {
            assert!(ShaderTest::parse(text).is_err(), "{text:?}");
        }
        for text in [&b"[]"[..], b"[test]\n", b"[require]\nSIZE x y\n[fragment shader]"] {
            assert!(ShaderTest::parse(text).is_ok(), "{text:?}");
        }
    }
}
