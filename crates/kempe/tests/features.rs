//! Features of the source languages down the whole road: each as a small shader, compiled for both versions with all checks, as
//! it comes, under pressure and with everything spilled. What the simulator gives must be what the interpreter gives for the
//! lowered form, bit for bit, and for the source form (unless a test says what is rounded in another way).

#![cfg(feature = "glsl")]

use kempe::exec::{BufferInput, Environment, Inputs, Sizes};
use kempe::inputs::{Random, Usage, Verdict, search};
use kempe::run::{self, RunOptions, StageRun};
use kempe_front::{Language, Options as FrontOptions};
use kempe_ir::image::ImageDesc;
use kempe_ir::io::Slot;
use kempe_ir::{Module, Stage};
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::instr::Version;

fn module(stage: Stage, text: &str) -> Module {
    let name = match stage {
        Stage::Vertex => "feature.vert",
        Stage::Fragment => "feature.frag",
        _ => "feature.comp",
    };
    let text = format!("#version 460\n{text}");
    let options = FrontOptions { stage: Some(stage), ..FrontOptions::default() };
    let modules = kempe_front::compile(name, text.as_bytes(), Language::Glsl, &options);
    let mut m = modules.unwrap_or_else(|e| panic!("{}", e.render(name, Some(&text)))).remove(0);
    kempe_opt::optimise(&mut m, kempe_opt::Level::O2);
    m
}

#[derive(Default)]
struct Lowered(Option<Module>);

impl Observer for Lowered {
    fn lowered(&mut self, m: &Module) {
        self.0 = Some(m.clone());
    }
}

/// The configurations of a compile.
fn configurations() -> [Options; 3] {
    let natural = Options { verify: true, ..Options::default() };
    [
        natural,
        Options { force_spill: true, ..natural },
        Options { threads: Some(2), max_registers: Some(24), ..natural },
    ]
}

const RUN: RunOptions = RunOptions { step_limit: 20_000_000, schedule: 1 };

/// Compiles a compute shader in every way; every run must give what the source form gives.
fn judge(m: &Module, inputs: &Inputs) -> Vec<Vec<u8>> {
    let want = run::interpret(m, inputs, &RUN).unwrap_or_else(|e| panic!("source: {e}"));
    assert!(want.warnings.is_empty(), "{:?}", want.warnings);
    let want: Vec<Vec<u8>> = want.buffers.into_iter().map(|b| b.bytes).collect();
    for version in Version::ALL {
        for options in configurations() {
            let what = format!("{}, {options:?}", version.name());
            let mut seen = Lowered::default();
            let artifact =
                compile(m.clone(), version, &options, &mut seen).unwrap_or_else(|e| panic!("{what}: {e}"));
            let got = run::run_artifact(&artifact, inputs, &RUN).unwrap_or_else(|e| panic!("{what}: {e}"));
            let lowered = seen.0.expect("the lowered form");
            let differs = run::compare(&lowered, &artifact, inputs, &RUN, &got).expect("a run");
            assert_eq!(differs, None, "{what}");
            for (n, (want, got)) in want.iter().zip(&got.buffers).enumerate() {
                let at = want.iter().zip(&got.bytes).position(|(a, b)| a != b);
                assert_eq!(at, None, "{what}: buffer {n} differs from the source form at this byte");
            }
        }
    }
    want
}

/// Compiles a graphics shader in every way; outputs and memory must be those of the lowered form, and close to those of the source
/// form: `exact` means the same bits.
fn judge_stage(m: &Module, exact: bool) {
    let usage = Usage::scan(m);
    for seed in 0..3 {
        let mut given = None;
        let found = search(m, &usage, seed, |inputs| match run::interpret_stage(m, inputs, &RUN) {
            Ok(run) if run.report.warnings.is_empty() => {
                given = Some((inputs.clone(), run));
                Verdict::Fine
            }
            Ok(run) => Verdict::Useless(run.report.warnings.join(", ")),
            Err(e) => Verdict::Useless(e.to_string()),
        });
        found.unwrap_or_else(|e| panic!("no inputs: {e}"));
        let (inputs, source) = given.expect("inputs");
        for version in Version::ALL {
            for options in configurations() {
                judge_stage_once(m, &inputs, &source, version, &options, exact);
            }
        }
    }
}

fn judge_stage_once(
    m: &Module,
    inputs: &Inputs,
    source: &StageRun,
    version: Version,
    options: &Options,
    exact: bool,
) {
    let what = format!("{}, {options:?}", version.name());
    let target = kempe::target(version.name()).expect("a target");
    let mut seen = Lowered::default();
    let artifact = compile(m.clone(), version, options, &mut seen).unwrap_or_else(|e| panic!("{what}: {e}"));
    let lowered = seen.0.expect("the lowered form");
    let want = target.interpret_stage(&lowered, &artifact, inputs, &RUN).expect("the lowered form runs");
    let got = target.run_stage(&artifact, inputs, &RUN).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut compared = 0;
    for (place, list) in &want.outputs.values {
        for (n, &v) in list.iter().enumerate() {
            let live = want.outputs.helpers.get(n) != Some(&true);
            let Some(v) = v.filter(|_| live) else { continue };
            let is = got.outputs.values.get(place).and_then(|l| l[n]);
            assert_eq!(is, Some(v), "{what}: {place:?} of invocation {n}");
            compared += 1;
            let Some(wanted) = source.outputs.values.get(place).and_then(|l| l[n]) else { continue };
            if exact {
                assert_eq!(v, wanted, "{what}: {place:?} of invocation {n}, source form");
            } else {
                let (v, wanted) = (f32::from_bits(v), f32::from_bits(wanted));
                let near = (v - wanted).abs() <= 1e-4 * wanted.abs().max(1.0);
                assert!(near, "{what}: {place:?} of invocation {n}: {v} for {wanted}");
            }
        }
    }
    assert!(compared > 0, "{what}: nothing was given");
}

fn words(list: impl IntoIterator<Item = u32>) -> Vec<u8> {
    list.into_iter().flat_map(u32::to_le_bytes).collect()
}

const DOUBLES: &str = "
    layout(local_size_x = 32) in;
    layout(std430, binding = 0) readonly buffer A { double a[]; };
    layout(std430, binding = 1) buffer B { double r[]; };
";

/// Doubles of all sizes, and what is special.
fn doubles(n: usize) -> Vec<u8> {
    let special =
        [0.0, -0.0, 1.0, -1.5, f64::MIN_POSITIVE / 8.0, f64::MAX, f64::INFINITY, f64::NAN, 2.5, 1e300];
    let mut r = Random(7);
    let mut list: Vec<f64> = special.to_vec();
    while list.len() < n {
        let near = (r.below(1 << 20) as f64 - 500_000.0) / 64.0;
        list.push(if r.below(2) == 0 { near } else { f64::from_bits(r.bits()) });
    }
    list.into_iter().flat_map(f64::to_le_bytes).collect()
}

#[test]
fn double_arithmetic() {
    for (name, code) in [
        ("sum", "x + y - z"),
        ("product", "x * y"),
        ("quotient", "x / y"),
        ("root", "sqrt(x) + inversesqrt(abs(y))"),
        ("fma", "fma(x, y, z)"),
        ("whole", "floor(x) + ceil(y) + trunc(z) + roundEven(x) + fract(y)"),
        ("rest", "mod(x, y)"),
        ("choice", "min(x, max(y, z)) + (x < y ? 1.0LF : 2.0LF) + (y >= z ? sign(x) : abs(z))"),
        ("floats", "double(float(x)) + double(float(y) + 1.0)"),
        ("integers", "double(int(y)) + double(uint(abs(z))) + double(gl_GlobalInvocationID.x)"),
        ("bits", "packDouble2x32(unpackDouble2x32(x).yx ^ uvec2(1, 5))"),
        ("vectors", "dot(dvec3(x, y, z), dvec3(z, x, y)) + length(dvec2(y, z))"),
        ("matrix", "(dmat2(x, y, z, 1.0) * dvec2(y, z)).x"),
    ] {
        let text = format!(
            "{DOUBLES} void main() {{
                uint n = gl_GlobalInvocationID.x;
                double x = a[n], y = a[(n * 7u + 3u) & 63u], z = a[(n + 11u) & 63u];
                r[n] = {code};
            }}"
        );
        println!("{name}");
        let m = module(Stage::Compute, &text);
        let inputs = Inputs::new([2, 1, 1]).buffer(0, 0, doubles(64)).buffer(0, 1, vec![0; 64 * 8]);
        let got = judge(&m, &inputs);
        assert!(got[1].chunks(8).any(|c| c != [0; 8]), "{name}");
    }
}

/// In private and shared arrays, in a loop, between lanes.
#[test]
fn doubles_in_memory_and_loops() {
    let m = module(
        Stage::Compute,
        "#extension GL_KHR_shader_subgroup_shuffle : require
        layout(local_size_x = 16) in;
        layout(std430, binding = 0) readonly buffer A { double a[]; };
        layout(std430, binding = 1) buffer B { dvec2 r[]; };
        shared double s[16];
        void main() {
            uint n = gl_LocalInvocationID.x;
            double t[4] = double[](a[n], a[n + 16u], a[n + 32u], 1.0LF);
            s[n] = t[n & 3u];
            barrier();
            double sum = 0.0LF;
            for (uint i = 0u; i < n; i++) {
                t[i & 3u] = s[(n + i) & 15u] * 0.5LF;
                sum += t[(i + n) & 3u];
            }
            r[n] = dvec2(sum, subgroupShuffleXor(sum, 5u));
        }",
    );
    judge(&m, &Inputs::new([1, 1, 1]).buffer(0, 0, doubles(64)).buffer(0, 1, vec![0; 256]));
}

#[test]
fn doubles_between_stages() {
    let vertex = module(
        Stage::Vertex,
        "layout(location = 0) in dvec3 a;
        layout(location = 2) in dvec2 b;
        layout(location = 0) flat out dvec4 o;
        layout(location = 2, component = 2) flat out double p;
        void main() {
            gl_Position = vec4(0.0, 0.0, 0.0, 1.0);
            o = dvec4(a.xy + b, a.z, 3.0);
            p = b.y;
        }",
    );
    let places: Vec<(Slot, u8)> =
        kempe::link::places(&vertex, kempe_ir::Op::Output).map(|io| (io.slot, io.component)).collect();
    let of = |l: u8| places.iter().filter(|p| p.0 == Slot::Location(l)).map(|p| p.1).collect::<Vec<_>>();
    assert_eq!((of(0), of(1), of(2)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![2, 3]));
    judge_stage(&vertex, true);
    let fragment = module(
        Stage::Fragment,
        "layout(location = 0) flat in dvec4 v;
        layout(location = 2, component = 2) flat in double p;
        layout(location = 0) out uvec4 o;
        void main() { o = uvec4(unpackDouble2x32(v.x + p), unpackDouble2x32(v.w)); }",
    );
    judge_stage(&fragment, true);
}

/// Inputs at other places in the pixel, by a constant index and one that varies.
#[test]
fn interpolation_in_the_shader() {
    for code in [
        "interpolateAtCentroid(v).xyz",
        "interpolateAtOffset(v.yzw, vec2(0.25, -0.5))",
        "vec3(interpolateAtOffset(flat_one, vec2(0.25)), interpolateAtOffset(straight, vec2(-0.25, 0.125)))",
        "interpolateAtSample(v, gl_SampleID).xyz",
        "vec3(interpolateAtOffset(list[gl_PrimitiveID & 1], vec2(0.375, float(gl_PrimitiveID) * 0.01)))",
    ] {
        println!("{code}");
        let text = format!(
            "layout(location = 0) in vec4 v;
            layout(location = 1) flat in float flat_one;
            layout(location = 2) noperspective in vec2 straight;
            layout(location = 3) in float list[2];
            layout(location = 0) out uvec4 o;
            void main() {{ o = uvec4(floatBitsToUint({code}), 1u); }}"
        );
        judge_stage(&module(Stage::Fragment, &text), false);
    }
}

/// A plane in perspective, moved: the value where the plane has it.
#[test]
fn an_offset_moves_along_the_plane() {
    let m = module(
        Stage::Fragment,
        "layout(location = 0) in float v;
        layout(location = 0) out vec4 o;
        void main() { o = vec4(interpolateAtOffset(v, vec2(0.25, -0.375)), 0.0, 0.0, 1.0); }",
    );
    let usage = Usage::scan(&m);
    let mut inputs = None;
    search(&m, &usage, 1, |i| {
        inputs = Some(i.clone());
        Verdict::Fine
    })
    .expect("inputs");
    let mut inputs = inputs.expect("inputs");
    let stage = inputs.stage.as_mut().expect("fragments");
    stage.helpers.fill(false);
    // 1/w and v/w are linear in x and y.
    let w = |x: f64, y: f64| 0.5 + 0.03125 * x + 0.0625 * y;
    let v = |x: f64, y: f64| (2.0 + 0.5 * x - 0.25 * y) / w(x, y);
    let mut wanted = Vec::new();
    for n in 0..stage.invocations as usize {
        let (x, y) = ((2 * (n / 4 % 8) + n % 2) as f64 + 0.5, (2 * (n / 32) + n / 2 % 2) as f64 + 0.5);
        let bits = |v: f64| (v as f32).to_bits();
        for (k, b) in [x, y, 0.5, w(x, y)].into_iter().enumerate() {
            stage.builtins.get_mut(&kempe_ir::Builtin::FragCoord(k as u8)).expect("a built-in")[n] = bits(b);
        }
        stage.values.get_mut(&(Slot::Location(0), 0)).expect("the input")[n] = bits(v(x, y));
        wanted.push(v(x + 0.25, y - 0.375));
    }
    let run = run::interpret_stage(&m, &inputs, &RUN).expect("a run");
    let got = &run.outputs.values[&(Slot::Location(0), 0, 0)];
    for (got, wanted) in got.iter().zip(wanted) {
        let got = f32::from_bits(got.expect("an output")) as f64;
        assert!((got - wanted).abs() < 1e-4 * wanted.abs(), "{got} for {wanted}");
    }
}

#[test]
fn layers_and_viewports_are_inputs() {
    let m = module(
        Stage::Fragment,
        "layout(location = 0) out uvec4 o;
        void main() { o = uvec4(gl_Layer, gl_ViewportIndex, 7, 9); }",
    );
    judge_stage(&m, true);
}

/// A list in memory that is followed by addresses, which lie in push constants and in the list itself.
#[test]
fn physical_pointers() {
    let m = module(
        Stage::Compute,
        "#extension GL_EXT_buffer_reference : require
        #extension GL_EXT_buffer_reference_uvec2 : require
        #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
        layout(local_size_x = 16) in;
        layout(buffer_reference) buffer Node;
        layout(buffer_reference, std430, buffer_reference_align = 16) buffer Node {
            uvec4 data;
            Node next;
            uvec2 raw;
        };
        layout(buffer_reference, std430) buffer Words { uint w[]; };
        layout(push_constant) uniform P { Node first; uint64_t words; } p;
        layout(std430, binding = 0) buffer Nodes { uint unused[]; };
        layout(std430, binding = 1) buffer Out { uint o[]; };
        void main() {
            uint n = gl_LocalInvocationID.x;
            Node at = p.first;
            uint sum = 0u;
            for (uint i = 0u; i < (n & 3u); i++) {
                sum += at.data.x * 3u + at.data.w;
                at = (i & 1u) == 0u ? at.next : Node(at.raw);
            }
            Words words = Words(p.words);
            words.w[n] = sum;
            atomicAdd(words.w[16u + (n & 1u)], sum);
            o[n] = sum + uint(uint64_t(at) >> 32) + uvec2(at).y + unused[0] - 1u;
        }",
    );
    let node = |n: u32, base: u32| {
        let next = base + (n + 1) % 4 * 32;
        [n + 1, 0, 0, 10 * n, next, 0, next, 0]
    };
    let build = |nodes: u32, out: u32| {
        Inputs::new([1, 1, 1])
            .buffer(0, 0, words((0..4).flat_map(|n| node(n, nodes))))
            .buffer(0, 1, vec![0; 256])
            .push(words([nodes, 0, out + 128, 0]))
    };
    // Buffers get their places by their sizes, so addresses can be asked for before they are filled in.
    let placed = Environment::new(&m, &build(0, 0), Sizes::source()).expect("an environment");
    let inputs = build(placed.buffers[0].base, placed.buffers[1].base);
    let got = judge(&m, &inputs);
    let word = |at: usize| u32::from_le_bytes(got[1][at..at + 4].try_into().unwrap());
    let wanted = [0, 3, 3 + 16, 3 + 16 + 29];
    assert_eq!([word(0), word(4), word(8), word(12)], wanted);
    assert_eq!([word(128), word(132), word(128 + 64)], [0, 3, 4 * (wanted[0] + wanted[2])]);
}

#[test]
fn arrays_of_arrays_of_resources() {
    let m = module(
        Stage::Compute,
        "layout(local_size_x = 16) in;
        layout(std430, binding = 0) buffer B { uint v[]; } b[2][3];
        layout(binding = 1, r32ui) uniform uimage2D img[2][2];
        layout(std430, binding = 2) buffer O { uint o[]; };
        void main() {
            uint n = gl_LocalInvocationID.x, i = n & 1u, j = (n >> 1) % 3u;
            uint x = b[i][j].v[n] + b[1][2].v[0];
            imageStore(img[n & 1u][(n >> 1) & 1u], ivec2(n & 3u, n >> 2), uvec4(x));
            o[n] = x + uint(b[1][j].v.length());
        }",
    );
    let mut inputs = Inputs::new([1, 1, 1]);
    for element in 0..6 {
        let bytes = words((0..16 + element).map(|k| 100 * element + k));
        inputs.buffers.push(BufferInput { set: 0, binding: 0, element, bytes });
    }
    let info = m.resources.values().find(|r| r.binding == 1).and_then(|r| r.image).expect("images");
    for element in 0..4 {
        let desc = ImageDesc::new(&info, info.storage_format(), &[4, 4]);
        inputs.images.push(kempe::exec::ImageInput { set: 0, binding: 1, element, desc, bytes: vec![0; 64] });
    }
    let inputs = inputs.buffer(0, 2, vec![0; 64]);
    let got = judge(&m, &inputs);
    // Invocation 3 reads b[1][1], element 4.
    assert_eq!(got[6][12..16], (403 + 500 + 20u32).to_le_bytes());
}

#[test]
fn float_atomics() {
    let m = module(
        Stage::Compute,
        "#extension GL_EXT_shader_atomic_float : require
        #extension GL_EXT_shader_atomic_float2 : require
        layout(local_size_x = 16) in;
        layout(std430, binding = 0) buffer B { float v[]; };
        layout(std430, binding = 1) readonly buffer A { float a[]; };
        layout(binding = 2, r32f) uniform image2D img;
        shared float s;
        void main() {
            uint n = gl_LocalInvocationID.x;
            if (n == 0u) s = 0.0;
            barrier();
            atomicAdd(s, float(n));
            atomicMin(v[0], a[n]);
            atomicMax(v[1], a[n]);
            imageAtomicMin(img, ivec2(0), a[n]);
            imageAtomicAdd(img, ivec2(1, 0), float(n));
            barrier();
            if (n == 0u) v[2] = s;
        }",
    );
    let info = m.resources.values().find(|r| r.binding == 2).and_then(|r| r.image).expect("an image");
    let desc = ImageDesc::new(&info, info.storage_format(), &[2, 1]);
    let a = (0..16u32).map(|k| ((k * 7 % 16) as f32 - 5.5).to_bits());
    let inputs =
        Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 16]).buffer(0, 1, words(a)).image(0, 2, desc, vec![0; 8]);
    let got = judge(&m, &inputs);
    let float = |b: usize, at: usize| f32::from_le_bytes(got[b][at..at + 4].try_into().unwrap());
    assert_eq!([float(0, 0), float(0, 4), float(0, 8)], [-5.5, 9.5, 120.0]);
    assert_eq!([float(2, 0), float(2, 4)], [-5.5, 120.0]);
}

/// Fetches from each sample of a multisampled texture, which is one of twice the size; how many there are; how large it is.
#[test]
fn multisampled_textures() {
    let m = module(
        Stage::Compute,
        "#extension GL_EXT_samplerless_texture_functions : require
        layout(local_size_x = 16) in;
        layout(binding = 0) uniform texture2DMS t;
        layout(std430, binding = 1) buffer O { vec4 o[]; };
        void main() {
            uint n = gl_LocalInvocationID.x;
            ivec2 size = textureSize(t);
            vec4 s = texelFetch(t, ivec2(n & 1u, (n >> 1) & 1u), int(n >> 2));
            o[n] = vec4(s.x, float(size.x), float(size.y), float(textureSamples(t)));
        }",
    );
    let info = m.resources.values().find(|r| r.binding == 0).and_then(|r| r.image).expect("an image");
    // 2 x 2 pixels of four samples: texel (x, y) of the 4 x 4 holds 4 y + x.
    let desc = ImageDesc::new(&info, kempe_ir::image::Format::R32f, &[4, 4]);
    let texels = words((0..16).map(|k| (k as f32).to_bits()));
    let inputs = Inputs::new([1, 1, 1]).image(0, 0, desc, texels).buffer(0, 1, vec![0; 256]);
    let got = judge(&m, &inputs);
    for n in 0..16usize {
        let float = |k: usize| f32::from_le_bytes(got[0][16 * n + 4 * k..][..4].try_into().unwrap());
        let (x, y, sample) = (n & 1, n >> 1 & 1, n >> 2);
        let texel = (4 * (2 * y + sample / 2) + 2 * x + sample % 2) as f32;
        assert_eq!([float(0), float(1), float(2), float(3)], [texel, 2.0, 2.0, 4.0], "invocation {n}");
    }
}

/// An attachment is read where the fragment is.
#[test]
fn attachments() {
    let m = module(
        Stage::Fragment,
        "layout(input_attachment_index = 0, binding = 0) uniform usubpassInput a;
        layout(location = 0) out uvec4 o;
        void main() { o = subpassLoad(a); }",
    );
    judge_stage(&m, true);
}

/// Of a gather with four offsets each result has its own.
#[test]
fn gathers_with_several_offsets() {
    let m = module(
        Stage::Fragment,
        "layout(binding = 0) uniform usampler2D t;
        layout(location = 0) in vec2 uv;
        layout(location = 0) out uvec4 o;
        void main() {
            const ivec2 at[4] = ivec2[](ivec2(0, 1), ivec2(-2, 0), ivec2(3, 1), ivec2(0, 0));
            o = textureGatherOffsets(t, uv, at, 1);
        }",
    );
    judge_stage(&m, true);
}

/// Numbers of doubles over the lanes of a subgroup, of which some do not run.
#[test]
fn doubles_over_lanes() {
    for code in ["subgroupAdd(x)", "subgroupMin(x) + subgroupInclusiveMul(x)", "subgroupClusteredMax(x, 4u)"]
    {
        let text = format!(
            "#extension GL_KHR_shader_subgroup_arithmetic : require
            #extension GL_KHR_shader_subgroup_clustered : require
            layout(local_size_x = 16) in;
            layout(std430, binding = 0) readonly buffer A {{ double a[]; }};
            layout(std430, binding = 1) buffer B {{ double r[]; }};
            void main() {{
                uint n = gl_LocalInvocationID.x;
                double x = a[n + 10u];
                if ((n & 3u) != 2u) r[n] = {code};
            }}"
        );
        judge(
            &module(Stage::Compute, &text),
            &Inputs::new([1, 1, 1]).buffer(0, 0, doubles(64)).buffer(0, 1, vec![0; 128]),
        );
    }
}

/// The rest of a fragment shader's own knowledge: samples, distances, helpers that go on or stop.
#[test]
fn samples_distances_and_ends() {
    let fragment = module(
        Stage::Fragment,
        "#extension GL_EXT_demote_to_helper_invocation : require
        #extension GL_EXT_terminate_invocation : require
        in float gl_ClipDistance[2];
        in float gl_CullDistance[1];
        layout(location = 0) in float v;
        layout(location = 0) out uvec4 o;
        void main() {
            if (v > 2.0) demote;
            if (gl_ClipDistance[0] > 3.0) terminateInvocation;
            o = uvec4(gl_SampleID + gl_SampleMaskIn[0], floatBitsToUint(gl_SamplePosition.x + gl_CullDistance[0]),
                      floatBitsToUint(gl_ClipDistance[1]), helperInvocationEXT() ? 1u : 0u);
        }",
    );
    judge_stage(&fragment, true);
    let vertex = module(
        Stage::Vertex,
        "out float gl_ClipDistance[2];
        layout(location = 0) in vec4 a;
        void main() {
            gl_Position = a;
            gl_PointSize = 4.0;
            gl_ClipDistance[0] = a.x;
            gl_ClipDistance[1] = a.y - 1.0;
        }",
    );
    judge_stage(&vertex, true);
}
