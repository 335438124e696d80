//! ncnn: complete texts in the data of its library, which are given types and work-group sizes when they are used.

use super::{Candidate, Package, Program, Recipe};

struct Ncnn {
    texts: Vec<String>,
    /// What some texts include.
    activation: String,
}

const VERSION: &str = "#version 450";
const ACTIVATION: &str = "vulkan_activation.comp";

/// 32-bit storage and arithmetic: names of types, and functions that convert nothing.
const TYPES: [(&str, &str); 14] = [
    ("sfp", "float"),
    ("sfpvec2", "vec2"),
    ("sfpvec4", "vec4"),
    ("sfpvec8", "mat2x4"),
    ("sfpmat4", "mat4"),
    ("afp", "float"),
    ("afpvec2", "vec2"),
    ("afpvec4", "vec4"),
    ("afpvec8", "mat2x4"),
    ("afpmat4", "mat4"),
    ("lfp", "float"),
    ("lfpvec2", "vec2"),
    ("lfpvec4", "vec4"),
    ("lfpvec8", "mat2x4"),
];

fn head() -> String {
    let mut out = String::new();
    for (name, ty) in TYPES {
        out.push_str(&format!("#define {name} {ty}\n"));
    }
    for (from, to) in [("sfp", "afp"), ("afp", "sfp"), ("sfp", "lfp"), ("lfp", "afp")] {
        for kind in ["", "vec2", "vec4", "vec8", "mat4"] {
            out.push_str(&format!("#define {from}2{to}{kind}(v) v\n"));
        }
    }
    for n in ["1", "2", "4", "8"] {
        out.push_str(&format!("#define buffer_ld{n}(buf, i) buf[i]\n#define buffer_sm{n}(buf, i) buf[i]\n"));
        out.push_str(&format!("#define buffer_st{n}(buf, i, v) {{ buf[i] = v; }}\n"));
        out.push_str(&format!("#define buffer_cp{n}(buf, i, sbuf, si) {{ buf[i] = sbuf[si]; }}\n"));
    }
    out.push_str("#define buffer_cp1to4(buf, i, sbuf, si) { buf[i] = vec4(sbuf[si.r], sbuf[si.g], sbuf[si.b], sbuf[si.a]); }\n");
    out.push_str("#define buffer_cp4to1(buf, i, sbuf, si) { vec4 all_four = sbuf[si]; buf[i.r] = all_four.r; buf[i.g] = all_four.g; buf[i.b] = all_four.b; buf[i.a] = all_four.a; }\n");
    out.push_str("#define psc(x) (x == 0 ? p.x : x)\n");
    out
}

/// Used where a text says nothing of its size.
const SIZES: &str = "layout(local_size_x_id = 233) in;\nlayout(local_size_y_id = 234) in;\nlayout(local_size_z_id = 235) in;\n\
    layout(local_size_x = 8, local_size_y = 8, local_size_z = 1) in;\n";

fn printable(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b' '..=b'~')
}

/// The texts in the data of a library.
fn texts(bytes: &[u8]) -> Vec<String> {
    let starts: Vec<usize> =
        bytes.windows(VERSION.len()).enumerate().filter(|w| w.1 == VERSION.as_bytes()).map(|w| w.0).collect();
    let text = |(n, &start): (usize, &usize)| {
        let limit = starts.get(n + 1).copied().unwrap_or(bytes.len());
        let body = &bytes[start..limit];
        let end = body.iter().position(|&b| !printable(b)).unwrap_or(body.len());
        String::from_utf8_lossy(&body[..end]).into_owned()
    };
    starts.iter().enumerate().map(text).collect()
}

pub fn make(package: &Package) -> Result<Box<dyn Recipe>, String> {
    let is_library = |p: &&str| p.rsplit('/').next().is_some_and(|f| f.contains(".so"));
    let mut texts_of: Vec<(Vec<String>, String)> = Vec::new();
    for path in package.paths("ncnn", "").filter(is_library) {
        let bytes = package.bytes(path)?;
        // The included text has no version; it starts at its licence, as the others do behind theirs.
        let mark = b"afp activation_afp(";
        let activation = bytes.windows(mark.len()).position(|w| w == mark).map_or(String::new(), |at| {
            let start = bytes[..at].iter().rposition(|&b| !printable(b)).map_or(0, |p| p + 1);
            let end = bytes[at..].iter().position(|&b| !printable(b)).map_or(bytes.len(), |p| at + p);
            String::from_utf8_lossy(&bytes[start..end]).into_owned()
        });
        texts_of.push((texts(bytes), activation));
    }
    let largest = texts_of.into_iter().max_by_key(|t| t.0.len()).filter(|t| !t.0.is_empty());
    let (texts, activation) = largest.ok_or("there is no library with texts in it")?;
    Ok(Box::new(Ncnn { texts, activation }))
}

impl Recipe for Ncnn {
    fn all(&self, _: &Package) -> Vec<Candidate> {
        let one = |(n, text): (usize, &String)| {
            let blobs =
                text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| w.ends_with("_blob"));
            let mut names: Vec<&str> = Vec::new();
            for blob in blobs {
                if names.len() < 2 && !names.contains(&blob) {
                    names.push(blob);
                }
            }
            Candidate::new(
                format!("shader{n:03}-{}", names.join("-")),
                format!("ncnn .so rodata #{n}"),
                "comp",
            )
        };
        self.texts.iter().enumerate().map(one).collect()
    }

    fn assemble(&self, _: &Package, candidate: &Candidate) -> Result<Program, String> {
        let number = candidate.original.rsplit_once('#').and_then(|(_, n)| n.parse::<usize>().ok());
        let own = number.and_then(|n| self.texts.get(n)).ok_or("there is no text of this number")?;
        let (version, rest) = own.split_once('\n').ok_or("the text has one line")?;
        let mut text = format!("{version}\n#extension GL_GOOGLE_include_directive : enable\n{}", head());
        if !rest.contains("local_size") {
            text.push_str(SIZES);
        }
        for line in rest.lines() {
            if line.trim_start().starts_with("#include") && line.contains(ACTIVATION) {
                text.push_str(&self.activation);
            } else {
                text.push_str(line);
            }
            text.push('\n');
        }
        Ok(Program::glsl(text, "GLSL 450"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Files;

    #[test]
    fn texts_are_found_in_data() {
        let mut bytes = b"\0\x01afp activation_afp(afp v) { return v; }\0".to_vec();
        bytes.extend(
            b"#version 450\n#include \"vulkan_activation.comp\"\na_blob b_blob a_blob c_blob\n\0junk",
        );
        bytes.extend(b"#version 450\nlayout (local_size_x = 1) in;\n#version 450\nlast");
        let package = Package { files: vec![Files::from([("ncnn/ncnn.so".to_owned(), bytes)])] };
        let recipe = make(&package).unwrap();
        let all = recipe.all(&package);
        let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["shader000-a_blob-b_blob", "shader001-", "shader002-"]);
        let text = recipe.assemble(&package, &all[0]).unwrap().text;
        assert!(
            text.contains("local_size_x_id") && text.contains("return v; }") && !text.contains("#include"),
            "{text}"
        );
        let text = recipe.assemble(&package, &all[1]).unwrap().text;
        assert!(!text.contains("local_size_x_id"), "{text}");
        assert!(make(&Package { files: vec![] }).is_err());
    }
}
