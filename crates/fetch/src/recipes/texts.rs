//! Recipes that put something in front of a file, or nothing.

use super::{Candidate, Language, Package, Program, Recipe, mentions, plain, stem};

/// A recipe without anything to prepare.
struct Simple {
    all: fn(&Package) -> Vec<Candidate>,
    assemble: fn(&Package, &Candidate) -> Result<Program, String>,
    /// Where included files are.
    includes: Option<&'static str>,
}

impl Recipe for Simple {
    fn all(&self, package: &Package) -> Vec<Candidate> {
        (self.all)(package)
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        (self.assemble)(package, candidate)
    }

    fn includes<'a>(&self, package: &'a Package) -> Vec<(String, &'a [u8])> {
        let Some(start) = self.includes else { return Vec::new() };
        let files = package.files.iter().flatten();
        files
            .filter_map(|(path, bytes)| Some((path.strip_prefix(start)?.to_owned(), bytes.as_slice())))
            .collect()
    }
}

/// Transitions between two pictures: a function `transition` for a place.
const BEFORE_TRANSITION: &str = "#version 100
precision highp float;
varying vec2 _uv;
uniform sampler2D from, to;
uniform float progress, ratio, _fromR, _toR;
vec2 fitted(vec2 uv, float own) { return 0.5 + (uv - 0.5) * vec2(min(ratio / own, 1.0), min(own / ratio, 1.0)); }
vec4 getFromColor(vec2 uv) { return texture2D(from, fitted(uv, _fromR)); }
vec4 getToColor(vec2 uv) { return texture2D(to, fitted(uv, _toR)); }
";

pub fn transitions(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Simple {
        all: |package| {
            let one = |path: &str| Candidate::new(stem(path), path, "frag");
            package.paths("transitions/", ".glsl").map(one).collect()
        },
        assemble: |package, candidate| {
            let own = package.text(&candidate.original)?;
            let text =
                format!("{BEFORE_TRANSITION}{own}\nvoid main() {{ gl_FragColor = transition(_uv); }}\n");
            Ok(Program::glsl(text, "GLSL ES 1.00"))
        },
        includes: None,
    }))
}

/// Every file in WGSL as it is.
pub fn wgsl(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Simple {
        all: |package| {
            let one = |path: &str| Candidate::new(plain(stem(path)), path, "multi");
            package.paths("", ".wgsl").map(one).collect()
        },
        assemble: |package, candidate| {
            // The folder around a crate is not part of our paths.
            let path = &candidate.original;
            let inner = path.split_once('/').map_or(path.as_str(), |p| p.1);
            let text = package.text(path).or_else(|_| package.text(inner))?;
            Ok(Program { text, language: Language::Wgsl, label: "WGSL" })
        },
        includes: None,
    }))
}

const GGML: &str = "llama.cpp/ggml/src/ggml-vulkan/vulkan-shaders/";

/// Files with sets of macros, which a program of the package makes up: of them only a manifest knows. Without one there are the
/// files that compile as they are.
pub fn ggml_vulkan(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Simple {
        all: |package| {
            let one = |path: &str| Candidate::new(plain(stem(path)), path, "comp");
            package.paths(GGML, ".comp").map(one).collect()
        },
        assemble: |package, candidate| {
            let mut parts = candidate.original.split(" -D");
            let text = package.text(parts.next().unwrap_or_default().trim())?;
            let define = |d: &str| match d.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (d.to_owned(), None),
            };
            let defines = parts.map(define).collect();
            Ok(Program { text, language: Language::Glsl { defines }, label: "GLSL 450" })
        },
        includes: Some(GGML),
    }))
}

/// What glmark2 puts into its texts, for those that do not declare it: name, declaration.
const GLMARK2_CONSTANTS: [(&str, &str); 16] = [
    ("LightSourcePosition", "const vec4 LightSourcePosition = vec4(20.0, 20.0, 10.0, 1.0);"),
    ("LightSourceHalfVector", "const vec3 LightSourceHalfVector = vec3(0.5, 0.5, 0.7);"),
    ("LightSourceAmbient", "const vec4 LightSourceAmbient = vec4(0.1, 0.1, 0.1, 1.0);"),
    ("LightSourceDiffuse", "const vec4 LightSourceDiffuse = vec4(0.8, 0.8, 0.8, 1.0);"),
    ("LightSourceSpecular", "const vec4 LightSourceSpecular = vec4(0.8, 0.8, 0.8, 1.0);"),
    ("MaterialAmbient", "const vec4 MaterialAmbient = vec4(1.0);"),
    ("MaterialDiffuse", "const vec4 MaterialDiffuse = vec4(1.0);"),
    ("MaterialSpecular", "const vec4 MaterialSpecular = vec4(0.2, 0.2, 0.2, 1.0);"),
    ("MaterialShininess", "const float MaterialShininess = 100.0;"),
    ("MaterialColor", "const vec4 MaterialColor = vec4(0.3, 0.6, 0.9, 1.0);"),
    ("TextureStepX", "const float TextureStepX = 0.00125;"),
    ("TextureStepY", "const float TextureStepY = 0.00167;"),
    ("TextureWidth", "const float TextureWidth = 512.0;"),
    ("Coefficients", "uniform float Coefficients[9];"),
    ("CurrentLight", "const int CurrentLight = 0;"),
    ("LightSourceCount", "const int LightSourceCount = 1;"),
];

/// Whether a text declares a name: a type or a comma in front of it, on a line with a qualifier or a type.
fn declares(text: &str, name: &str) -> bool {
    const TYPES: [&str; 7] = ["float", "int", "vec2", "vec3", "vec4", "mat3", "mat4"];
    text.split(';').any(|statement| {
        let words: Vec<&str> =
            statement.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
        words.windows(2).any(|w| TYPES.contains(&w[0]) && w[1] == name)
    })
}

const GLMARK2: &str = "usr/share/glmark2/shaders/";

/// Places of the form `$NAME$` are filled or emptied. Each file once as it is, and once with constants for what it does not declare.
pub fn glmark2(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Simple {
        all: |package| {
            let one = |path: &str| -> Vec<Candidate> {
                let stage = if path.ends_with(".vert") { "vert" } else { "frag" };
                ["", "-p"].map(|end| Candidate::new(format!("{}{end}", stem(path)), path, stage)).into()
            };
            let files = package.paths(GLMARK2, ".vert").chain(package.paths(GLMARK2, ".frag"));
            files.flat_map(one).collect()
        },
        assemble: |package, candidate| {
            let own = package.text(&candidate.original)?;
            let mut text = String::new();
            for (n, part) in own.split('$').enumerate() {
                match (n % 2, part) {
                    (0, text_part) => text.push_str(text_part),
                    (_, "CONVOLUTION") => text.push_str("vec4(0.0)"),
                    (_, "SAMPLES") => text.push('8'),
                    _ => {}
                }
            }
            let mut head = String::from("#version 100\n");
            if candidate.name.ends_with("-p") {
                for (name, declaration) in GLMARK2_CONSTANTS {
                    if mentions(&text, name) && !declares(&text, name) {
                        head.push_str(declaration);
                        head.push('\n');
                    }
                }
            }
            Ok(Program::glsl(head + &text, "GLSL ES 1.00"))
        },
        includes: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Files;

    #[test]
    fn constants_only_where_they_are_missing() {
        let path = format!("{GLMARK2}a.frag");
        let own = "uniform vec4 MaterialDiffuse;\nvoid main() { gl_FragColor = MaterialDiffuse * MaterialColor + $CONVOLUTION$$X$; }";
        let package = Package { files: vec![Files::from([(path.clone(), own.as_bytes().to_vec())])] };
        let recipe = glmark2(&package).unwrap();
        let all = recipe.all(&package);
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "a-p"]);
        let text = recipe.assemble(&package, &all[1]).unwrap().text;
        assert!(
            text.starts_with("#version 100\nconst vec4 MaterialColor") && text.contains("+ vec4(0.0);"),
            "{text}"
        );
        assert!(!text.contains("const vec4 MaterialDiffuse"));
        assert!(recipe.assemble(&package, &Candidate::new("b", "nothing", "frag")).is_err());
    }

    #[test]
    fn defines_are_taken_from_the_original() {
        let path = format!("{GGML}a.comp");
        let package = Package { files: vec![Files::from([(path.clone(), b"x".to_vec())])] };
        let recipe = ggml_vulkan(&package).unwrap();
        let program =
            recipe.assemble(&package, &Candidate::new("a", format!("{path} -DA=f(1) -DB"), "comp")).unwrap();
        let want = vec![("A".to_owned(), Some("f(1)".to_owned())), ("B".to_owned(), None)];
        assert_eq!(program.language, Language::Glsl { defines: want });
        assert_eq!(recipe.includes(&package), [("a.comp".to_owned(), &b"x"[..])]);
    }
}
