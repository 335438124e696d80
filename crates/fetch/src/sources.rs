//! Packages with their checksums, and the collections that are made of them.

use crate::recipes::{self, MakeRecipe};

/// The registry of a package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Npm,
    Crate,
    Pypi,
    /// Debian 12, main.
    Deb,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Npm => "npm",
            Kind::Crate => "crate",
            Kind::Pypi => "pypi",
            Kind::Deb => "deb",
        }
    }
}

/// A package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    pub kind: Kind,
    pub package: &'static str,
    pub version: &'static str,
    /// What the registry's client calls the file.
    pub archive: &'static str,
    /// Of the archive, in hexadecimal.
    pub sha256: &'static str,
    pub licence: &'static str,
}

/// Shaders of one origin.
pub struct Collection {
    pub name: &'static str,
    pub sources: &'static [Source],
    /// Starts of the paths that are looked at, all packages together.
    pub keeps: &'static [&'static str],
    /// What must be in a file that is looked at.
    pub holds: &'static str,
    pub recipe: MakeRecipe,
}

const fn source(
    kind: Kind,
    [package, version, archive]: [&'static str; 3],
    sha256: &'static str,
    licence: &'static str,
) -> Source {
    Source { kind, package, version, archive, sha256, licence }
}

const PRESETS: Source = source(
    Kind::Npm,
    ["butterchurn-presets", "2.4.7", "butterchurn-presets-2.4.7.tgz"],
    "d9c067b354e4ed87b3a1dace1dc59c9d64e6a99300a82d5fa086f696e35204a7",
    "MIT",
);
const BUTTERCHURN: Source = source(
    Kind::Npm,
    ["butterchurn", "2.6.7", "butterchurn-2.6.7.tgz"],
    "0212618a871df3980c03cf6e03b34d0026fd7230e0320b4de5cdb472454c0eb0",
    "MIT",
);
const TRANSITIONS: Source = source(
    Kind::Npm,
    ["gl-transitions", "1.71.0", "gl-transitions-1.71.0.tgz"],
    "25d4ca522e9af1fbad3054bd4c7683fae5264949111cce0f14ff1d2e81148ea3",
    "MIT, one file BSD-2-Clause, one BSD-3-Clause",
);
const WEBRENDER: Source = source(
    Kind::Crate,
    ["webrender", "0.70.1", "webrender-0.70.1.crate"],
    "b90e7e9f5be8b8e81a292dc5617bcb06661f5b110891499ff793ca55e364e0ca",
    "MPL-2.0",
);
const VELLO: Source = source(
    Kind::Crate,
    ["vello_shaders", "0.11.0", "vello_shaders-0.11.0.crate"],
    "2e653222cee49f2571729c3e4b0fa99bc4f826c6bb9487dbb88b825d552b3a27",
    "Apache-2.0 OR MIT",
);
const KISS3D: Source = source(
    Kind::Crate,
    ["kiss3d", "0.47.0", "kiss3d-0.47.0.crate"],
    "be2c1554a0e6d82ce5ffcee8ca60c9b4bdb1ecda9f1d09bfc149c188b906a7ba",
    "BSD-3-Clause",
);
const LLAMA: Source = source(
    Kind::Crate,
    ["llama-cpp-sys-2", "0.1.161", "llama-cpp-sys-2-0.1.161.crate"],
    "e9bea77fde41bbc15a278891cd5edd2ba07c5260d162614b41080ba1f100b39b",
    "MIT OR Apache-2.0, shaders MIT",
);
const NCNN: Source = source(
    Kind::Pypi,
    ["ncnn", "1.0.20261020", "ncnn-1.0.20261020-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl"],
    "8107eeaa269e7b725afdd5c4492109c2682de5bf2a76670ab5f8f5fbfe9c152d",
    "BSD-3-Clause",
);
const CLESPERANTO: Source = source(
    Kind::Pypi,
    ["pyclesperanto-prototype", "0.24.6", "pyclesperanto_prototype-0.24.6-py3-none-any.whl"],
    "c023b634857268ea947d7f8417ab7e4582c1e44b6e71dfe787bff09bd772da09",
    "BSD-3-Clause",
);
const HASHCAT: Source = source(
    Kind::Deb,
    ["hashcat-data", "6.2.6+ds1-1", "hashcat-data_6.2.6+ds1-1_all.deb"],
    "6009500e4ce81e5ebe10f019e1b21c562cb50f7dcc268e9eba5f4ae60616409d",
    "MIT",
);
const GLMARK2: Source = source(
    Kind::Deb,
    ["glmark2-data", "2023.01+dfsg-1", "glmark2-data_2023.01+dfsg-1_all.deb"],
    "14a62322c6131ac9d846f428f06056a1de85caded38c77cb497b73e9ec316bd9",
    "GPL-3+ mostly, parts MIT: see the package",
);
const PIGLIT: Source = source(
    Kind::Deb,
    ["piglit", "0~git20220119-124bca3c9-1", "piglit_0~git20220119-124bca3c9-1_amd64.deb"],
    "37dd651ae04419602b4287ea590fca1f5bcaabc0ea4bf32fe48ffe86b946c986",
    "MIT mostly, a few files LGPL or GPL: see the package",
);

/// Paths are as in the archive, without the folder that all files of an npm package or of a crate are in.
pub static COLLECTIONS: &[Collection] = &[
    Collection {
        name: "butterchurn",
        sources: &[PRESETS, BUTTERCHURN],
        keeps: &["presets/converted/", "lib/butterchurn.js"],
        holds: "",
        recipe: recipes::butterchurn::make,
    },
    Collection {
        name: "gl-transitions",
        sources: &[TRANSITIONS],
        keeps: &["transitions/"],
        holds: "",
        recipe: recipes::texts::transitions,
    },
    Collection {
        name: "webrender",
        sources: &[WEBRENDER],
        keeps: &["res/"],
        holds: "",
        recipe: recipes::webrender::make,
    },
    Collection {
        name: "vello",
        sources: &[VELLO],
        keeps: &["shader/"],
        holds: "",
        recipe: recipes::vello::make,
    },
    Collection {
        name: "kiss3d",
        sources: &[KISS3D],
        keeps: &["src/"],
        holds: "",
        recipe: recipes::texts::wgsl,
    },
    Collection {
        name: "ggml-vulkan",
        sources: &[LLAMA],
        keeps: &["llama.cpp/ggml/src/ggml-vulkan/vulkan-shaders/"],
        holds: "",
        recipe: recipes::texts::ggml_vulkan,
    },
    Collection {
        name: "ncnn",
        sources: &[NCNN],
        keeps: &["ncnn/", "ncnn.libs/"],
        holds: "",
        recipe: recipes::ncnn::make,
    },
    Collection {
        name: "glmark2",
        sources: &[GLMARK2],
        keeps: &["usr/share/glmark2/shaders/"],
        holds: "",
        recipe: recipes::texts::glmark2,
    },
    Collection {
        name: "piglit",
        sources: &[PIGLIT],
        keeps: &["usr/lib/x86_64-linux-gnu/piglit/tests/"],
        holds: "",
        recipe: recipes::shader_test::graphics,
    },
    Collection {
        name: "piglit-comp",
        sources: &[PIGLIT],
        keeps: &[
            "usr/lib/x86_64-linux-gnu/piglit/tests/",
            "usr/lib/x86_64-linux-gnu/piglit/generated_tests/",
        ],
        holds: "[compute shader",
        recipe: recipes::shader_test::compute,
    },
    Collection {
        name: "piglit-cl",
        sources: &[PIGLIT],
        keeps: &[
            "usr/lib/x86_64-linux-gnu/piglit/tests/cl/",
            "usr/lib/x86_64-linux-gnu/piglit/generated_tests/cl/",
        ],
        holds: "",
        recipe: recipes::kernels::piglit,
    },
    Collection {
        name: "ggml-opencl",
        sources: &[LLAMA],
        keeps: &["llama.cpp/ggml/src/ggml-opencl/kernels/"],
        holds: "",
        recipe: recipes::kernels::ggml,
    },
    Collection {
        name: "pyclesperanto",
        sources: &[CLESPERANTO],
        keeps: &["pyclesperanto_prototype/"],
        holds: "",
        recipe: recipes::kernels::clesperanto,
    },
    Collection {
        name: "hashcat",
        sources: &[HASHCAT],
        keeps: &["usr/share/hashcat/OpenCL/"],
        holds: "",
        recipe: recipes::kernels::hashcat,
    },
];
