//! GLSL and WGSL through the libraries: what converts, what it computes, and messages.
#![cfg(all(feature = "glsl", feature = "wgsl"))]

mod common;

use common::{bytes, run};
use kempe_front::{Diagnostics, Language, Options, Severity, compile, to_spirv};
use kempe_ir::{Module, Stage};

const HEAD: &str = "#version 450\nlayout(local_size_x = 8) in;\n\
    layout(set = 0, binding = 0) buffer O { uint o[]; };\nlayout(set = 0, binding = 1) buffer I { uint i[]; };\n";

fn glsl(text: &str, options: &Options) -> Result<Vec<Module>, Diagnostics> {
    compile("test.comp", text.as_bytes(), Language::Glsl, options)
}

fn wgsl(text: &str, options: &Options) -> Result<Vec<Module>, Diagnostics> {
    compile("test.wgsl", text.as_bytes(), Language::Wgsl, options)
}

#[test]
fn glsl_computes() {
    let text = format!(
        "{HEAD}const uint table[4] = uint[](7u, 5u, 3u, 1u);\n\
         uint f(uint n) {{ for (uint k = 0u; k < 9u; ++k) {{ if (k * k >= n) return k; }} return 99u; }}\n\
         void main() {{\n\
             uint x = gl_GlobalInvocationID.x;\n\
             mat2 m = mat2(1.0, 2.0, 3.0, float(x));\n\
             vec2 v = m * vec2(1.0, 2.0);\n\
             o[x] = f(i[x]) + table[x & 3u] + uint(v.y) + uint(dot(v, v.yx) > 50.0);\n\
         }}\n"
    );
    let module = glsl(&text, &Options::default()).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert_eq!(module.workgroup_size, [8, 1, 1]);
    let input = [0u32, 1, 4, 5, 9, 64, 65, 1000];
    let out = run(&module, &input);
    for x in 0..8u32 {
        let f = (0..9u32).find(|k| k * k >= input[x as usize]).unwrap_or(99);
        let v = [7.0f32, 2.0 + 2.0 * x as f32];
        let dot = 2.0 * v[0] * v[1];
        let want = f + [7, 5, 3, 1][x as usize & 3] + v[1] as u32 + (dot > 50.0) as u32;
        assert_eq!(out[x as usize], want, "{x}");
    }
    // Lines are known.
    assert!(module.locs.iter().any(|l| l.line == 12), "{:?}", module.locs);
    assert!(module.files.iter().any(|f| f == "test.comp"), "{:?}", module.files);
}

#[test]
fn glsl_defines_and_includes() {
    let dir = std::env::temp_dir().join(format!("kempe-front-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    std::fs::write(dir.join("a.glsl"), "#include \"sub/b.glsl\"\nuint a() { return b() + N; }\n").unwrap();
    std::fs::write(dir.join("sub/b.glsl"), "#include \"c.glsl\"\nuint b() { return c() * 10u; }\n").unwrap();
    std::fs::write(dir.join("sub/c.glsl"), "uint c() { return 4u; }\n").unwrap();
    std::fs::write(dir.join("loop.glsl"), "#include \"loop.glsl\"\n").unwrap();
    let text = format!("{}#include <a.glsl>\nvoid main() {{ o[gl_LocalInvocationIndex] = a(); }}\n", HEAD);
    let options = Options {
        defines: vec![("N".to_owned(), Some("3u".to_owned())), ("FLAG".to_owned(), None)],
        include_dirs: vec![dir.clone()],
        ..Options::default()
    };
    let module = glsl(&text, &options).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert_eq!(&run(&module, &[0; 8])[..8], &[43; 8]);
    // Missing, endless, and a mistake inside of an included file.
    let e = glsl(&text.replace("a.glsl", "nothing.glsl"), &options).unwrap_err();
    assert!(e.to_string().contains("cannot include `nothing.glsl`"), "{e}");
    let e = glsl(&text.replace("a.glsl", "loop.glsl"), &options).unwrap_err();
    assert!(e.to_string().contains("loop.glsl"), "{e}");
    std::fs::write(dir.join("sub/c.glsl"), "\n\nuint c() { return 4.0; }\n").unwrap();
    let e = glsl(&text, &options).unwrap_err();
    assert!(e.0[0].file.ends_with("c.glsl") && e.0[0].line == 3, "{e}");
    let bad = Options { defines: vec![("A B".to_owned(), None)], ..Options::default() };
    assert!(glsl(&text, &bad).unwrap_err().to_string().contains("cannot be defined"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn glsl_messages() {
    let text = format!("{HEAD}void main() {{\n    float x = vec2(1.0);\n}}\n");
    let e = glsl(&text, &Options::default()).unwrap_err();
    let d = &e.0[0];
    assert_eq!((d.severity, d.line, d.file.as_str()), (Severity::Error, 6, "test.comp"), "{e}");
    let shown = d.render(Some(&text));
    assert!(shown.contains("6 |     float x = vec2(1.0);"), "{shown}");
    for (text, part) in [
        ("", "empty"),
        ("  \n", "empty"),
        ("\0", "zero byte"),
        ("#version 450\n", "missing entry point"),
        ("this is no shader", "reserved word"),
        ("#version 450\nwhat is no shader", "syntax error"),
        (
            "#version 450\nlayout(local_size_x=1) in;\nvoid main() { undefined_function(); }\n",
            "undefined_function",
        ),
    ] {
        let e = glsl(text, &Options::default()).unwrap_err();
        assert!(e.to_string().to_lowercase().contains(part), "{text:?}: {e}");
        assert!(e.0.iter().all(|d| !d.message.is_empty()));
    }
    let deep = format!("{HEAD}void main() {{ o[0] = {}1u{}; }}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(glsl(&deep, &Options::default()).unwrap_err().to_string().contains("nests deeper"));
}

#[test]
fn glsl_specialisation() {
    let text = format!(
        "{HEAD}layout(constant_id = 3) const uint n = 5;\nlayout(local_size_x_id = 4) in;\n\
         void main() {{ uint a[n]; a[gl_LocalInvocationIndex % n] = n; o[gl_LocalInvocationIndex] = a[0] + a.length(); }}\n"
    );
    let module = glsl(&text, &Options::default()).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert_eq!(run(&module, &[0; 8])[0], 10);
    let options = Options { spec: vec![(3, 7), (4, 16)], ..Options::default() };
    let module = glsl(&text, &options).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert_eq!(module.workgroup_size[0], 16);
    assert_eq!(run(&module, &[0; 8])[0], 14);
}

/// Much that glslang accepts for compute shaders.
#[test]
fn glsl_features() {
    let head = "#version 450\n\
        #extension GL_EXT_shader_explicit_arithmetic_types : enable\n#extension GL_EXT_shader_16bit_storage : enable\n\
        #extension GL_EXT_shader_8bit_storage : enable\n#extension GL_KHR_shader_subgroup_basic : enable\n\
        #extension GL_KHR_shader_subgroup_arithmetic : enable\n#extension GL_KHR_shader_subgroup_ballot : enable\n\
        #extension GL_KHR_shader_subgroup_shuffle : enable\n#extension GL_EXT_scalar_block_layout : enable\n\
        #extension GL_EXT_shader_atomic_float : enable\n\
        layout(local_size_x = 16) in;\n\
        struct S { float a; f16vec3 b; u8vec4 c; mat3x2 d[2]; int64_t e; double f; };\n\
        layout(set = 0, binding = 0, scalar) buffer B { S s[]; } bufs[3];\n\
        layout(set = 0, binding = 1, std140) uniform U { S u[2]; layout(row_major) mat3 m; };\n\
        layout(push_constant) uniform P { uint k; float fs[4]; };\n\
        shared S sh[4];\nshared uint counter;\nshared float total;\n";
    let text = format!(
        "{head}void main() {{\n\
             uint x = gl_GlobalInvocationID.x;\n\
             S t = bufs[1].s[x];\n\
             t.d[k & 1u] = u[x & 1u].d[1];\n\
             t.a += fs[x & 3u] + (m * vec3(1.0)).x + subgroupAdd(float(x));\n\
             sh[x & 3u] = t;\n\
             atomicAdd(counter, 1u);\n\
             atomicAdd(total, 1.5);\n\
             barrier();\n\
             t = sh[(x + 1u) & 3u];\n\
             t.e = t.e * 3L + int64_t(counter) + int64_t(subgroupBallotBitCount(subgroupBallot(x > 3u)));\n\
             t.f = double(t.a) * 2.0;\n\
             t.b = t.b.zyx * float16_t(subgroupShuffleXor(x, 1u));\n\
             if (subgroupElect()) t.c += uint8_t(1);\n\
             bufs[2].s[x + bufs[0].s.length()] = t;\n\
         }}\n"
    );
    let module = glsl(&text, &Options::default()).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert!(module.uses_subgroups);
    assert_eq!(module.resources.values().next().map(|r| (r.elements, r.tail_stride)), Some((3, 80)));
}

#[test]
fn wgsl_computes() {
    let text = "\
@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@group(0) @binding(1) var<storage, read> i: array<u32>;
override n: u32 = 3u;
@id(7) override m: u32 = 4u;
var<workgroup> sh: array<u32, 8>;
@compute @workgroup_size(8)
fn sum(@builtin(local_invocation_index) x: u32) {
    sh[x] = i[x];
    workgroupBarrier();
    var s = 0u;
    for (var k = 0u; k < 8u; k++) {
        if (k == x) { continue; }
        s += sh[k];
    }
    let table = array<u32, 4>(1u, 2u, 3u, 5u);
    o[x] = s + table[x & 3u] + n * m;
}
@compute @workgroup_size(8)
fn other(@builtin(global_invocation_id) id: vec3<u32>) {
    o[id.x] = countOneBits(i[id.x]) + arrayLength(&o);
}
";
    let modules = wgsl(text, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(modules.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["sum", "other"]);
    let input = [3u32, 1, 4, 1, 5, 9, 2, 6];
    let total: u32 = input.iter().sum();
    let out = run(&modules[0], &input);
    for x in 0..8 {
        assert_eq!(out[x], total - input[x] + [1, 2, 3, 5][x & 3] + 12);
    }
    let options = Options { entry: Some("other".to_owned()), ..Options::default() };
    let modules = wgsl(text, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(modules.len(), 1);
    assert_eq!(run(&modules[0], &input)[5], 2 + 64);
    let options = Options { entry: Some("sum".to_owned()), spec: vec![(7, 10)], ..Options::default() };
    let modules = wgsl(text, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(run(&modules[0], &input)[0], total - 3 + 1 + 30);
}

#[test]
fn wgsl_messages() {
    let text = "@compute @workgroup_size(1)\nfn main() {\n    let x: u32 = 1.5;\n}\n";
    let e = wgsl(text, &Options::default()).unwrap_err();
    assert_eq!(e.0[0].line, 3, "{e}");
    assert!(e.0[0].render(Some(text)).contains("^"), "{e}");
    for (text, part) in [
        ("", "no entry point"),
        ("fn f() {}", "no entry point"),
        ("\u{1F980}", "expected"),
        ("@compute @workgroup_size(1) fn main() { return 1; }", "invalid"),
    ] {
        let e = wgsl(text, &Options::default()).unwrap_err();
        assert!(e.to_string().to_lowercase().contains(part), "{text:?}: {e}");
    }
    let e = compile("x.wgsl", &[0xff, 0xfe], Language::Wgsl, &Options::default()).unwrap_err();
    assert!(e.to_string().contains("UTF-8"), "{e}");
}

/// Random changes of a source never stop the process.
#[test]
fn mutated_sources() {
    let glsl =
        format!("{HEAD}void main() {{ uint x = gl_GlobalInvocationID.x; if (x > 3u) o[x] = i[x] * 2u; }}\n");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n\
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) x: u32) { if (x > 3u) { o[x] = x * 2u; } }";
    let mut seed = 88172645463325252u64;
    let mut rand = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 33) as usize % n
    };
    for (text, lang) in [(glsl.as_str(), Language::Glsl), (wgsl, Language::Wgsl)] {
        for _ in 0..300 {
            let mut b = text.as_bytes().to_vec();
            for _ in 0..1 + rand(3) {
                let k = rand(b.len());
                match rand(4) {
                    0 => b[k] = 32 + rand(95) as u8,
                    1 => drop(b.remove(k)),
                    2 => b.insert(k, b"(){}[];,.0+*"[rand(12)]),
                    _ => {
                        let j = rand(b.len());
                        b.swap(j, k);
                    }
                }
            }
            match compile("m", &b, lang, &Options::default()) {
                Ok(_) => {}
                Err(e) => assert!(!e.0.is_empty()),
            }
        }
    }
}

#[test]
fn spirv_words_are_given_out() {
    let text = format!("{HEAD}void main() {{ o[0] = 1u; }}\n");
    let words = to_spirv("a.comp", text.as_bytes(), Language::Glsl, &Options::default()).unwrap();
    assert_eq!(words[0], 0x0723_0203);
    let again = to_spirv("a.spv", &bytes(&words), Language::Spirv, &Options::default()).unwrap();
    assert_eq!(words, again);
}

/// Texts for OpenGL: loose uniforms, no bindings, old names; messages with the lines of the source.
#[test]
fn glsl_of_opengl() {
    let options = |stage| Options { stage: Some(stage), ..Options::default() };
    let words =
        |name: &str, text: &str, stage| to_spirv(name, text.as_bytes(), Language::Glsl, &options(stage));
    let es = "#version 100\nprecision highp float;\nvarying vec2 uv;\nuniform sampler2D t;\nuniform float gain;\n\
              void main() {\n  gl_FragColor = texture2D(t, uv) * gain;\n}\n";
    assert!(!words("a.frag", es, Stage::Fragment).unwrap_or_else(|e| panic!("{e}")).is_empty());
    let old = "attribute vec3 p;\nvarying vec4 c;\nvoid main() {\n  c = gl_Color;\n  gl_Position = ftransform() + vec4(p, 0.0);\n}\n";
    assert!(!words("a.vert", old, Stage::Vertex).unwrap_or_else(|e| panic!("{e}")).is_empty());
    let desktop = "#version 330\nuniform mat4 m = mat4(1.0);\nin vec4 p;\nout float x;\nvoid main() { gl_Position = m * p; x = p.x; }\n";
    assert!(!words("b.vert", desktop, Stage::Vertex).unwrap_or_else(|e| panic!("{e}")).is_empty());
    let error = words("c.frag", &es.replace("* gain", "* vec3(gain)"), Stage::Fragment).unwrap_err();
    assert_eq!(error.0[0].line, 7, "{error}");
    // A compute shader for OpenGL runs.
    let compute = "#version 430\nlayout(local_size_x = 4) in;\nuniform uint k;\nlayout(std430, binding = 0) buffer O { uint o[]; };\n\
                   void main() { o[gl_LocalInvocationIndex] = k; }\n";
    let modules = glsl(compute, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(modules[0].resources.iter().any(|(_, r)| r.kind == kempe_ir::ResKind::UniformBuffer));
}

/// The interface of graphics stages, scalar by scalar.
#[test]
fn stages_of_graphics() {
    let lower = |text: &str, stage| {
        let options = Options { stage: Some(stage), ..Options::default() };
        let mut m = glsl(text, &options).unwrap_or_else(|e| panic!("{e}")).remove(0);
        kempe_ir::verify::verify(&m).unwrap();
        let text = kempe_ir::text::print(&m);
        let again = kempe_ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(kempe_ir::text::print(&again), text);
        m.func.names.clear();
        kempe_ir::text::print(&m)
    };
    let count = |text: &str, part: &str| text.matches(part).count();
    let vertex = lower(
        "#version 450\nlayout(location = 2) in mat2x3 m;\nlayout(location = 1) out vec2 v;\n\
         void main() { gl_Position = vec4(m[1], float(gl_VertexIndex)); v = m[0].xy; if (v.x > 1.0) return; v.y = 0.0; }\n",
        Stage::Vertex,
    );
    for part in [
        "input.f32 <location 2 component 0>",
        "input.f32 <location 3 component 2>",
        "builtin.i32 <vertex_index>",
        "output.f32 <position component 3>",
        "output.f32 <location 1 component 1>",
    ] {
        assert_eq!(count(&vertex, part), 1, "{part}\n{vertex}");
    }
    let fragment = lower(
        "#version 450\nlayout(early_fragment_tests) in;\nlayout(location = 0) in vec3 a;\nlayout(location = 1) flat in ivec2 b;\n\
         layout(location = 2, component = 1) noperspective centroid in float c;\nlayout(location = 0) out vec4 o;\n\
         void f() { if (c < 0.0) discard; }\n\
         void main() { f(); o = vec4(dFdx(a.x), fwidth(a.y), gl_FragCoord.w, gl_FrontFacing ? float(b.y) : 0.0); gl_FragDepth = a.z; }\n",
        Stage::Fragment,
    );
    for part in [
        "fragment early_tests depth any",
        "input.f32 <location 0 component 2>",
        "input.i32 <location 1 component 1 flat>",
        "input.f32 <location 2 component 1 noperspective centroid>",
        "builtin.f32 <frag_coord 3>",
        "builtin.bool <front_facing>",
        "demote.bool",
        "output.f32 <frag_depth component 0>",
        "output.f32 <location 0 component 3>",
    ] {
        assert_eq!(count(&fragment, part), 1, "{part}\n{fragment}");
    }
    assert_eq!((count(&fragment, "ddx.f32"), count(&fragment, "ddy.f32")), (2, 1), "{fragment}");
}

/// Lookups through samplers: what stands among the operands, and where the level of detail comes from.
#[test]
fn lookups() {
    let lower = |text: &str, stage| {
        let options = Options { stage: Some(stage), ..Options::default() };
        let m = glsl(text, &options).unwrap_or_else(|e| panic!("{e}")).remove(0);
        let text = kempe_ir::text::print(&m);
        assert_eq!(kempe_ir::text::print(&kempe_ir::text::parse(&text).unwrap()), text);
        text
    };
    let text = lower(
        "#version 450\nlayout(binding = 0) uniform sampler2D a;\nlayout(binding = 1) uniform samplerCubeArrayShadow b;\n\
         layout(binding = 2) uniform isampler3D c;\nlayout(binding = 3) uniform texture2D t;\nlayout(binding = 4) uniform sampler s[2];\n\
         layout(location = 0) in vec4 v;\nlayout(location = 0) out vec4 o;\nlayout(location = 1) flat in int k;\n\
         void main() {\n  o = texture(a, v.xy) + texture(a, v.xy, v.z) + textureProj(a, v);\n  o.x += texture(b, v, 0.5);\n\
         o += vec4(textureLod(c, v.xyz, 2.0));\n  o += textureGradOffset(a, v.xy, v.zw, v.xz, ivec2(1, -2));\n\
         o += textureGather(a, v.xy, 2);\n  o.xy += textureQueryLod(a, v.xy);\n  o += texture(sampler2D(t, s[k]), v.xy);\n}\n",
        Stage::Fragment,
    );
    for part in [
        "sample_implicit.f32 <@0 color implicit mask 15> ",
        "sample_implicit.f32 <@0 color bias mask 15> ",
        "sample_implicit.f32 <@1 color implicit mask 1 dref> ",
        "sample.i32 <@2 color explicit mask 15> ",
        "sample.f32 <@0 color gradient mask 15 offset> ",
        "sample.f32 <@0 gather_z explicit mask 15> ",
        "sample_implicit.f32 <@0 level implicit mask 15> ",
        "sample_implicit.f32 <@3 sampler @4 color implicit mask 15 sampler_element> ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("<@0 color implicit mask 15>").count(), 2);
    assert_eq!(text.matches("fdiv.f32").count(), 2, "{text}");
    // No quads, no differences.
    let text = lower(
        "#version 450\nlayout(binding = 0) uniform sampler2D a;\nlayout(location = 0) in vec2 v;\n\
         void main() { gl_Position = texture(a, v); }\n",
        Stage::Vertex,
    );
    assert!(text.contains("sample.f32 <@0 color explicit mask 15> "), "{text}");
}

/// Modules of several files, as Bevy writes them.
#[test]
fn wgsl_imports() {
    let dir = std::env::temp_dir().join(format!("kempe-front-wgsl-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("deep")).unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    file(
        "deep/math.wgsl",
        "#define_import_path engine::math\n#import engine::types::Pair\nconst scale: u32 = #{SCALE}u;\n\
         fn helper(scale_by: u32) -> u32 { return scale_by * scale; }\n\
         fn sum(p: Pair) -> u32 { return helper(p.a) + p.scale; }\n",
    );
    file(
        "types.wgsl",
        "#define_import_path engine::types\nconst types = 1;\nstruct Pair { a: u32, scale: u32, }\n#ifdef NEVER\nbroken\n#else ifdef MODE\nconst mode = 7u;\n#else\nconst mode = 9u;\n#endif\n",
    );
    let main = "#import engine::{\n    math::sum,\n    types,\n}\n#import engine::math as m\n#import \"local.wgsl\" as local\n\
        @group(0) @binding(0) var<storage, read_write> o: array<u32>;\n\
        fn helper(x: u32) -> u32 { return x + 100u; }\n\
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {\n\
            var p: types::Pair;\n    p.a = i; p.scale = 1u;\n\
        #if MODE >= 2\n    o[i] = sum(p) + m::helper(2u) + helper(0u) + engine::types::mode + local::plus(i);\n#else\n    o[i] = 0u;\n#endif\n}\n";
    file("local.wgsl", "fn plus(i: u32) -> u32 { return i * 1000u; }\n");
    let path = dir.join("main.wgsl");
    let name = path.to_string_lossy().into_owned();
    let defines =
        |list: &[(&str, &str)]| list.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect();
    let options = Options { defines: defines(&[("SCALE", "3"), ("MODE", "2")]), ..Options::default() };
    let build = |text: &str, options: &Options| compile(&name, text.as_bytes(), Language::Wgsl, options);
    let module = build(main, &options).unwrap_or_else(|e| panic!("{e}")).remove(0);
    let out = run(&module, &[0; 8]);
    for i in 0..8u32 {
        assert_eq!(out[i as usize], i * 3 + 1 + 6 + 100 + 7 + i * 1000, "{i}");
    }
    let other = Options { defines: defines(&[("SCALE", "3"), ("MODE", "1")]), ..Options::default() };
    assert_eq!(run(&build(main, &other).unwrap_or_else(|e| panic!("{e}"))[0], &[5; 8])[..8], [0; 8]);
    // Messages name the file and the line of the mistake.
    let e = build(&main.replace("math::sum", "maths::sum"), &options).unwrap_err();
    assert!(e.to_string().contains("there is no module `engine::maths`") && e.0[0].line == 13, "{e}");
    file("local.wgsl", "\nfn plus(i: u32) -> u32 { return i * unknown; }\n");
    let e = build(main, &options).unwrap_err();
    assert!(e.0[0].file.ends_with("local.wgsl") && (e.0[0].line, e.0[0].column) == (2, 37), "{e}");
    let e = build(&main.replace("#endif", ""), &options).unwrap_err();
    assert!(e.to_string().contains("Not enough '# endif' lines"), "{e}");
    // What the text would be after an import that is wrong is named as the text names it.
    file("local.wgsl", "fn plus(i: u32) -> f32 { return f32(i); }\n");
    let e = build(main, &options).unwrap_err();
    assert!(e.0[0].file.ends_with("main.wgsl") && e.0[0].line == 13, "{e}");
    let text = Options { defines: defines(&[("SCALE", "many")]), ..Options::default() };
    let e = build(main, &text).unwrap_err();
    assert!(e.to_string().contains("`SCALE` cannot be `many`"), "{e}");
    file("local.wgsl", "#import \"round.wgsl\" as round\nfn plus(i: u32) -> u32 { return round::one(i); }\n");
    file("round.wgsl", "#import \"local.wgsl\" as local\nfn one(i: u32) -> u32 { return local::plus(i); }\n");
    let e = build(main, &options).unwrap_err();
    assert!(e.to_string().contains("imports itself"), "{e}");
    for text in [
        "#else",
        "#endif",
        "#if A ? B\n#endif",
        "#import a::{b",
        "#ifdef A",
        "#{",
        "#import \"../../none.wgsl\"",
        "#define",
    ] {
        assert!(build(text, &options).is_err(), "{text}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A function of a module that the source puts another in the place of, everywhere.
#[test]
fn wgsl_overrides() {
    let dir = std::env::temp_dir().join(format!("kempe-front-override-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let module = "#define_import_path light\n@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n\
        virtual fn shade(x: u32) -> u32 { return x + 1u; }\nfn twice(x: u32) -> u32 { return 2u * shade(x); }\n";
    std::fs::write(dir.join("light.wgsl"), module).unwrap();
    let main = "#import light\noverride fn light::shade(x: u32) -> u32 { return light::shade(x) * 10u; }\n\
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { light::o[i] = light::twice(i); }\n";
    let name = dir.join("main.wgsl").to_string_lossy().into_owned();
    let module = compile(&name, main.as_bytes(), Language::Wgsl, &Options::default())
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0);
    let out = run(&module, &[0; 8]);
    assert_eq!(out[..8], [20, 40, 60, 80, 100, 120, 140, 160]);
    // The interface has the names of the text.
    assert_eq!(module.resources[kempe_ir::Res(0)].name, "light::o");
    std::fs::remove_dir_all(&dir).unwrap();
}
