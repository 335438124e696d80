//! Kernels in OpenCL C.

use super::{Candidate, Language, Package, Program, Recipe, plain, stem};
use crate::opencl::Passes;
use std::collections::BTreeSet;

struct Kernels {
    all: fn(&Package) -> Vec<Candidate>,
    assemble: fn(&Package, &Candidate) -> Result<Program, String>,
    includes: &'static str,
}

impl Recipe for Kernels {
    fn all(&self, package: &Package) -> Vec<Candidate> {
        (self.all)(package)
    }

    fn assemble(&self, package: &Package, candidate: &Candidate) -> Result<Program, String> {
        (self.assemble)(package, candidate)
    }

    fn includes<'a>(&self, package: &'a Package) -> Vec<(String, &'a [u8])> {
        if self.includes.is_empty() {
            return Vec::new();
        }
        let files = package.files.iter().flatten();
        files
            .filter_map(|(path, bytes)| {
                Some((path.strip_prefix(self.includes)?.to_owned(), bytes.as_slice()))
            })
            .collect()
    }
}

fn opencl(text: String, options: &[&str], passes: Passes) -> Program {
    let options = options.iter().map(|o| (*o).to_owned()).collect();
    Program { text, language: Language::OpenCl { options, passes }, label: "OpenCL C" }
}

const PIGLIT: &str = "usr/lib/x86_64-linux-gnu/piglit/";

pub fn piglit(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Kernels {
        all: |package| {
            let one = |path: &str| {
                let short = path.strip_prefix(PIGLIT).unwrap_or(path);
                Candidate::new(plain(short.strip_suffix(".cl").unwrap_or(short)), short, "kernel")
            };
            package.paths(PIGLIT, ".cl").map(one).collect()
        },
        assemble: |package, candidate| {
            let text = package.text(&format!("{PIGLIT}{}", candidate.original))?;
            Ok(opencl(text, &["-cl-std=CL1.2"], Passes::Clang))
        },
        includes: "",
    }))
}

const GGML: &str = "llama.cpp/ggml/src/ggml-opencl/kernels/";

/// Fast mathematics, Intel's sub-groups, small tiles.
const GGML_OPTIONS: [&str; 18] = [
    "-cl-std=CL2.0",
    "-cl-mad-enable",
    "-cl-unsafe-math-optimizations",
    "-cl-finite-math-only",
    "-cl-fast-relaxed-math",
    "-DREQD_SUBGROUP_SIZE_64=",
    "-DREQD_SUBGROUP_SIZE_128=",
    "-DREQD_SUBGROUP_SIZE_16=",
    "-DREQD_SUBGROUP_SIZE_32=",
    "-DINTEL_GPU=1",
    "-DSIMDGROUP_WIDTH=16",
    "-DDK=64",
    "-DDV=64",
    "-DBLOCK_M=32",
    "-DBLOCK_N=32",
    "-DN_DST=4",
    "-DN_SIMDGROUP=2",
    "-DN_SIMDWIDTH=16",
];

pub fn ggml(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Kernels {
        all: |package| {
            package.paths(GGML, ".cl").map(|path| Candidate::new(plain(stem(path)), path, "kernel")).collect()
        },
        assemble: |package, candidate| {
            Ok(opencl(package.text(&candidate.original)?, &GGML_OPTIONS, Passes::Clang))
        },
        includes: GGML,
    }))
}

/// Words that follow `start` and come before `end`, as in `IMAGE_src_TYPE`.
fn keys(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words
        .filter_map(|w| {
            let key = w
                .strip_prefix("IMAGE_")
                .and_then(|w| w.strip_suffix("_PIXEL_TYPE").or_else(|| w.strip_suffix("_TYPE")))
                .or_else(|| w.strip_prefix("READ_").and_then(|w| w.strip_suffix("_IMAGE")))
                .or_else(|| w.strip_prefix("WRITE_").and_then(|w| w.strip_suffix("_IMAGE")))?;
            (!key.is_empty()).then(|| key.to_owned())
        })
        .collect()
}

/// The macros that clij makes for images that are buffers of floats.
fn image_macros(text: &str, flat: bool) -> String {
    let mut out = String::from("#define MAX_ARRAY_SIZE 1000\n");
    for (upper, lower) in [("WIDTH", "width"), ("HEIGHT", "height"), ("DEPTH", "depth")] {
        out.push_str(&format!("#define GET_IMAGE_{upper}(image_key) image_size_ ## image_key ## _{lower}\n"));
    }
    let (dim, pos, instance) = if flat { (2, "int2", "pos0,pos1") } else { (3, "int4", "pos0,pos1,pos2,0") };
    for key in keys(text) {
        let size = "GET_IMAGE_WIDTH(a),GET_IMAGE_HEIGHT(a),GET_IMAGE_DEPTH(a),a,b,c";
        out.push_str(&format!("#define CONVERT_{key}_PIXEL_TYPE clij_convert_float_sat\n"));
        out.push_str(&format!("#define IMAGE_{key}_PIXEL_TYPE float\n#define POS_{key}_TYPE {pos}\n"));
        out.push_str(&format!("#define POS_{key}_INSTANCE(pos0,pos1,pos2,pos3) ({pos})({instance})\n"));
        out.push_str(&format!(
            "#define IMAGE_{key}_TYPE long image_size_{key}_width, long image_size_{key}_height, long image_size_{key}_depth, __global float*\n"
        ));
        out.push_str(&format!("#define READ_{key}_IMAGE(a,b,c) read_buffer{dim}df({size})\n"));
        out.push_str(&format!("#define WRITE_{key}_IMAGE(a,b,c) write_buffer{dim}df({size})\n"));
    }
    out
}

pub fn clesperanto(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Kernels {
        all: |package| {
            let one = |path: &str| Candidate::new(plain(stem(path)), path, "kernel");
            package
                .paths("pyclesperanto_prototype/", ".cl")
                .filter(|p| stem(p) != "preamble")
                .map(one)
                .collect()
        },
        assemble: |package, candidate| {
            let path = &candidate.original;
            let inner = path.split_once('/').map_or(path.as_str(), |p| p.1);
            let own = package.text(path).or_else(|_| package.text(inner))?;
            let preamble = package.text("pyclesperanto_prototype/_tier0/preamble.cl")?;
            let macros = image_macros(&own, stem(path).contains("_2d"));
            Ok(opencl(format!("{macros}{preamble}\n{own}"), &["-cl-std=CL1.2"], Passes::Clang))
        },
        includes: "",
    }))
}

const HASHCAT: &str = "usr/share/hashcat/OpenCL/";

/// Functions of machines that are not there.
const HASHCAT_LACKS: &str = "ADD ADDC SUB SUBC VADD VADDC VADD_CO VADDC_CO VSUB VSUBB VSUB_CO VSUBB_CO VPERM VADD3 VBFE BFE LOP3 MOV64 PRMT SHFW";

pub fn hashcat(_: &Package) -> Result<Box<dyn Recipe>, String> {
    Ok(Box::new(Kernels {
        all: |package| {
            let slow = |p: &&str| {
                let name = stem(p);
                name.starts_with('m') && name.ends_with("-pure") && !name.contains("_a")
            };
            let one = |path: &str| Candidate::new(plain(stem(path)), path, "kernel");
            package.paths(HASHCAT, ".cl").filter(slow).map(one).collect()
        },
        assemble: |package, candidate| {
            let number: u32 = stem(&candidate.original)
                .chars()
                .filter(char::is_ascii_digit)
                .collect::<String>()
                .parse()
                .map_err(|_| "the name has no number")?;
            let mut options: Vec<String> = [
                "-cl-std=CL1.2",
                "-DKERNEL_STATIC",
                "-DINCLUDE_PATH=OpenCL",
                "-DVENDOR_ID=64",
                "-DXM2S(x)=#x",
                "-DM2S(x)=XM2S(x)",
                "-DVECT_SIZE=1",
                "-DDEVICE_TYPE=4",
                "-DDGST_R0=0",
                "-DDGST_R1=1",
                "-DDGST_R2=2",
                "-DDGST_R3=3",
                "-DDGST_ELEM=16",
                "-DATTACK_EXEC=10",
                "-DATTACK_KERN=0",
                "-DATTACK_MODE=0",
                "-DLOCAL_MEM_TYPE=1",
                "-DCUDA_ARCH=0",
            ]
            .map(str::to_owned)
            .into();
            options.push(format!("-DKERN_TYPE={number}"));
            options.extend(HASHCAT_LACKS.split(' ').map(|name| format!("-DHAS_{name}=0")));
            let text = package.text(&candidate.original)?;
            Ok(Program {
                text,
                language: Language::OpenCl { options, passes: Passes::Inline },
                label: "OpenCL C",
            })
        },
        // The folder is named in what the texts include.
        includes: "usr/share/hashcat/",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_clij_are_buffers() {
        let text = "kernel void k(IMAGE_src_TYPE src, IMAGE_dst_TYPE dst) { WRITE_dst_IMAGE(dst, p, READ_src_IMAGE(src, s, p)); }";
        assert_eq!(keys(text).into_iter().collect::<Vec<_>>(), ["dst", "src"]);
        let flat = image_macros(text, true);
        assert!(flat.contains("#define POS_src_TYPE int2\n") && flat.contains("write_buffer2df("), "{flat}");
        assert!(
            image_macros(text, false)
                .contains("#define POS_dst_INSTANCE(pos0,pos1,pos2,pos3) (int4)(pos0,pos1,pos2,0)")
        );
    }
}
