//! The list of limits, `docs/limits.md`, against the program: what it says is refused is refused, by a message that says what; and
//! every line of it names the test that holds it.

#![cfg(all(feature = "glsl", feature = "wgsl"))]

#[path = "../../front/tests/common/mod.rs"]
mod common;

use common::{body, bytes, shader};
use kempe::Engine;
use kempe::compile::{CodeOptions, CompileResult, Keep, Options, Source, Status, compile};
use kempe::exec::{Environment, Inputs, Sizes};
use kempe::ir::interp::{self, Form};
use kempe::limits::{Limits, Stopped};
use kempe::run::{RunOptions, run_artifact};
use kempe::{FrontOptions, Stage, Variant};
use kempe_mir::{Varying, VaryingSource, VertexRow};
use std::time::Duration;

fn options() -> Options {
    Options {
        targets: kempe::targets().iter().copied().filter(|t| t.supports(Stage::Fragment)).collect(),
        front: FrontOptions::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: Limits::default(),
    }
}

/// Compiles a file with these contents; GLSL without a version gets 4.60.
fn results(file: &str, contents: Vec<u8>, options: &Options) -> Vec<CompileResult> {
    let stage = match file.split_once('.').map(|f| f.1) {
        Some("comp") => Some(Stage::Compute),
        Some("vert") => Some(Stage::Vertex),
        Some("frag" | "frag.hlsl") => Some(Stage::Fragment),
        Some("geom") => Some(Stage::Geometry),
        Some("tesc") => Some(Stage::TessControl),
        _ => None,
    };
    compile(&Source { name: file.to_owned(), contents: Ok(contents), stage }, options)
}

fn text(file: &str, text: &str) -> Vec<u8> {
    let glsl = stage_of_glsl(file) && !text.starts_with("#version");
    let head = if glsl { "#version 460\n" } else { "" };
    format!("{head}{text}").into_bytes()
}

fn stage_of_glsl(file: &str) -> bool {
    [".comp", ".vert", ".frag", ".geom", ".tesc"].iter().any(|end| file.ends_with(end))
}

/// A file, what is in it, what the message says, and a part of the line in the list.
const REFUSED: &[[&str; 4]] = &[
    ["a.cl", "kernel void f(global int *p) { *p = 1; }", "OpenCL C sources are not read yet", "OpenCL C sources are not read yet"],
    [
        "stream.geom",
        "layout(points) in; layout(points, max_vertices = 2) out;
        layout(stream = 0, location = 0) out float a; layout(stream = 1, location = 1) out float b;
        void main() { gl_Position = vec4(0); a = 1; EmitStreamVertex(0); b = 1; EmitStreamVertex(1); }",
        "vertices of stream 1: only stream 0 is supported yet",
        "Geometry shaders: stream 0 only",
    ],
    [
        "double.tesc",
        "layout(vertices = 3) out; layout(location = 0) out dvec2 d[]; layout(location = 2) in int k[];
        void main() { d[gl_InvocationID][k[0]] = 1.0LF; }",
        "a 64-bit component that an index chooses is not supported yet",
        "64-bit components that are chosen by an index",
    ],
    [
        "view.vert",
        "#extension GL_EXT_multiview : require
        void main() { gl_Position = vec4(gl_ViewIndex); }",
        "the built-in variable ViewIndex is not supported in this stage yet",
        "view indices",
    ],
    [
        "layer.vert",
        "#extension GL_ARB_shader_viewport_layer_array : require
        void main() { gl_Position = vec4(0); gl_Layer = 1; }",
        "only geometry shaders choose a layer",
        "layers chosen by other than geometry shaders",
    ],
    [
        "viewport.geom",
        "layout(points) in; layout(points, max_vertices = 1) out;
        void main() { gl_Position = vec4(0); gl_ViewportIndex = 1; EmitVertex(); }",
        "a viewport cannot be chosen: the hardware has one",
        "viewports, of which the hardware has one",
    ],
    [
        "double.comp",
        "#extension GL_EXT_shader_atomic_float : require
        layout(local_size_x = 1) in; layout(binding = 0) buffer B { double d; };
        void main() { atomicAdd(d, 1.0LF); }",
        "`atomic` of 64-bit floats is not supported",
        "and no atomics",
    ],
    [
        "local.frag.hlsl",
        "Texture2D t : register(t0); SamplerState s : register(s0);
        float4 main(float2 u : U) : SV_Target { Texture2D l = t; return l.Sample(s, u); }",
        "an image where a number is expected",
        "resources in local variables or structures are refused",
    ],
    [
        "samplers.frag",
        "#version 130
        struct S { sampler2D s; }; uniform S a[2]; uniform int k; in vec2 u; out vec4 o;
        void main() { o = texture(a[k].s, u); }",
        "structures that hold samplers or images are indexed by something that is not constant",
        "structures with samplers that are indexed by a variable",
    ],
    [
        "samplers.frag",
        "#version 130
        uniform sampler2D a[2]; in vec2 u; out vec4 o;
        vec4 f(sampler2D s[2]) { return texture(s[1], u); }
        void main() { o = f(a); }",
        "an array of samplers or images is a parameter of a function",
        "arrays of samplers as parameters of functions",
    ],
    [
        "old.frag",
        "#version 110
        uniform sampler2DShadow s; varying vec3 u; void main() { gl_FragColor = shadow2D(s, u, 1.0); }",
        "Too many args in macro shadow2D",
        "`shadow2D` with a bias",
    ],
    [
        "old.frag",
        "#version 110
        void main() { gl_FragColor = gl_TexCoord[9]; }",
        "array index out of range '9'",
        "`gl_TexCoord` beyond 8",
    ],
    [
        "old.frag",
        "#version 110
        #define OLD(x) gl_ ## x
        void main() { gl_FragColor = OLD(Color); }",
        "gl_Color",
        "names that macros paste together",
    ],
    [
        "matrix.comp",
        "#extension GL_KHR_cooperative_matrix : require
        #extension GL_KHR_memory_scope_semantics : require
        layout(local_size_x = 16) in; layout(binding = 0) buffer B { float f[]; };
        void main() {
            coopmat<float, gl_ScopeSubgroup, 8, 8, gl_MatrixUseA> m;
            coopMatLoad(m, f, 0, 8, gl_CooperativeMatrixLayoutRowMajor);
            coopMatStore(m, f, 64, 8, gl_CooperativeMatrixLayoutRowMajor);
        }",
        "cooperative matrices are not supported: the hardware has none",
        "cooperative matrices",
    ],
    [
        "large.comp",
        "layout(local_size_x = 32, local_size_y = 32, local_size_z = 5) in; void main() {}",
        "a work-group of 32 x 32 x 5 invocations: there must be 1 to 4096",
        "Work-groups have at most 4,096 invocations",
    ],
    [
        "large.comp",
        "layout(local_size_x = 32, local_size_y = 32, local_size_z = 2) in; void main() {}",
        "a work-group of 32 x 32 x 2 invocations: 1 to 1024 are supported",
        "larger ones are refused",
    ],
    [
        "buffers.comp",
        "#extension GL_EXT_nonuniform_qualifier : require
        layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint w; } b[40];
        void main() { b[nonuniformEXT(gl_LocalInvocationIndex * 5)].w = 1; }",
        "an array of 40 resources is indexed with a variable",
        "Arrays of resources indexed by a variable: at most 32 elements",
    ],
    [
        "private.comp",
        "layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint w[]; };
        uint r[300000]; void main() { r[w[0]] = 1; w[1] = r[w[2]]; }",
        "variable `r` is too large: 1200000 bytes of private memory",
        "1 MB each in the front end",
    ],
    [
        "private.comp",
        "layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint w[]; };
        uint r[20000]; void main() { r[w[0]] = 1; w[1] = r[w[2]]; }",
        "the private variables take 80000 bytes; at most 65536 are supported",
        "64 KiB per invocation on V3D",
    ],
    [
        "shared.comp",
        "layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint w[]; };
        shared uint r[5000000]; void main() { r[w[0]] = 1; barrier(); w[1] = r[w[2]]; }",
        "variable `r` is too large: 20000000 bytes of shared memory",
        "Shared variables: 16 MB each",
    ],
    [
        "patch.tesc",
        "layout(vertices = 17) out; layout(location = 0) out float f[];
        void main() { f[gl_InvocationID] = 1; }",
        "a patch of 17 vertices",
        "have at most 16 vertices",
    ],
    [
        "patch.tesc",
        "layout(vertices = 3) out; layout(location = 0) out vec4 f[][33];
        void main() { for (int k = 0; k < 33; k++) f[gl_InvocationID][k] = vec4(k); }",
        "132 outputs of a vertex: there are 128 rows for them",
        "at most 128 scalars",
    ],
    [
        "wide.geom",
        "layout(points) in; layout(points, max_vertices = 1) out; layout(location = 0) in vec4 a[][17];
        layout(location = 0) out vec4 f;
        void main() { f = vec4(0); for (int k = 0; k < 17; k++) f += a[0][k]; EmitVertex(); }",
        "68 scalar inputs of a vertex: the hardware takes 64",
        "64 for a geometry shader",
    ],
    [
        "long.geom",
        "layout(points) in; layout(points, max_vertices = 256) out; layout(location = 0) out vec4 f[4];
        void main() { for (int k = 0; k < 256; k++) { f[k & 3] = vec4(k); EmitVertex(); } }",
        "256 vertices take 5377 rows: the hardware has room for 2048",
        "has 2048 rows",
    ],
    [
        "long.comp",
        "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
        #extension GL_EXT_shader_atomic_int64 : require
        layout(local_size_x = 1) in; layout(binding = 0) buffer B { uint64_t d; };
        void main() { atomicAdd(d, 1ul); }",
        "atomic operations on i64 are not supported",
        "Atomics on 64-bit or narrow types",
    ],
    [
        "images.comp",
        "#extension GL_EXT_nonuniform_qualifier : require
        layout(local_size_x = 8) in; layout(binding = 0, r32ui) uniform uimage2D i[40];
        void main() { imageStore(i[nonuniformEXT(gl_LocalInvocationIndex * 5)], ivec2(0), uvec4(1)); }",
        "a variable index that chooses from 40 images: at most 32 are supported",
        "has at most 32 elements (or pairs)",
    ],
    [
        "images.frag",
        "#extension GL_EXT_nonuniform_qualifier : require
        layout(binding = 0) uniform sampler2D s[]; layout(location = 0) flat in int k; layout(location = 0) out vec4 o;
        void main() { o = texture(s[nonuniformEXT(k)], vec2(0.5)); }",
        "a variable index into an array of images without a size is not supported",
        "and a size",
    ],
    [
        "texels.comp",
        "#extension GL_EXT_shader_image_int64 : require
        #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
        layout(local_size_x = 1) in; layout(binding = 0, r64ui) uniform u64image2D i;
        void main() { imageStore(i, ivec2(0), u64vec4(1)); }",
        "images of components that are not 32 bits wide are not supported yet",
        "64-bit texels",
    ],
    [
        "levels.comp",
        "#extension GL_AMD_shader_image_load_store_lod : require
        layout(local_size_x = 1) in; layout(binding = 0, r32ui) uniform uimage2D i;
        void main() { imageStoreLodAMD(i, ivec2(0), 1, uvec4(1)); }",
        "a store to a level of detail or with an offset is not supported",
        "stores to levels of detail other than the first",
    ],
];

#[test]
fn what_the_list_refuses_is_refused() {
    let list = list();
    for [file, contents, message, line] in REFUSED {
        let results = results(file, text(file, contents), &options());
        let refused: Vec<_> = results.iter().filter(|r| r.status == Status::Error).collect();
        // Of the two programs of a stage before the rasteriser one may have nothing to do with it.
        assert!(refused.len() >= options().targets.len(), "{file}: {} are refused", refused.len());
        for r in results {
            let fine = r.status == Status::Error && r.message.contains(message);
            let other = r.status == Status::Ok && r.variant == Variant::Binning;
            assert!(fine || other, "{file} for {}: {:?} {}", r.target, r.status, r.message);
        }
        assert!(list.contains(line), "docs/limits.md says nothing of `{line}`");
    }
}

/// The list with single spaces: its lines are broken anywhere.
fn list() -> String {
    let list = include_str!("../../../docs/limits.md");
    list.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Messages of a module for every target.
fn of_spirv(words: &[u32]) -> Vec<String> {
    let results = results("a.spv", bytes(words), &options());
    results.into_iter().map(|r| format!("{:?} {}", r.status, r.message)).collect()
}

#[test]
fn mesh_shaders_are_refused() {
    let mut mesh = shader("", &body("%r = OpCopyObject %uint %a"));
    let at = mesh.iter().position(|w| *w as u16 == spirv::Op::EntryPoint as u16).expect("an entry point");
    mesh[at + 1] = spirv::ExecutionModel::MeshEXT as u32;
    for e in of_spirv(&mesh) {
        assert!(e.starts_with("Error mesh shaders are not supported yet"), "{e}");
    }
}

#[test]
fn irreducible_control_flow_is_refused() {
    let code = "\
        %c = OpUGreaterThan %bool %a %u3
        OpBranchConditional %c %one %two
        %one = OpLabel
        %d = OpUGreaterThan %bool %x %u3
        OpBranchConditional %d %two %end
        %two = OpLabel
        OpBranch %one
        %end = OpLabel
        %r = OpCopyObject %uint %a";
    for e in of_spirv(&shader("", &body(code))) {
        assert!(e.starts_with("Error a loop that can be entered in several places"), "{e}");
    }
}

/// From inside an inner loop straight to the header of the outer one.
#[test]
fn a_jump_to_an_outer_header() {
    let code = "\
        OpBranch %outer
        %outer = OpLabel
        %i = OpPhi %uint %u0 %entry %i1 %work %i2 %next
        OpLoopMerge %end %next 0
        OpBranch %begin
        %begin = OpLabel
        %many = OpUGreaterThan %bool %i %u10
        OpBranchConditional %many %end %first
        %first = OpLabel
        OpBranch %inner
        %inner = OpLabel
        %k = OpPhi %uint %u0 %first %k1 %again
        OpLoopMerge %left %again 0
        OpBranch %work
        %work = OpLabel
        %i1 = OpIAdd %uint %i %u3
        %c = OpIEqual %bool %k %x
        OpBranchConditional %c %outer %again
        %again = OpLabel
        %k1 = OpIAdd %uint %k %u1
        %d = OpULessThan %bool %k1 %u4
        OpBranchConditional %d %inner %left
        %left = OpLabel
        OpBranch %next
        %next = OpLabel
        %i2 = OpIAdd %uint %i %u1
        OpBranch %outer
        %end = OpLabel
        %r = OpIAdd %uint %a %i";
    let value = |a: u32, x: u32| {
        let mut i = 0;
        'outer: while i <= 10 {
            for k in 0..4 {
                if k == x {
                    i += 3;
                    continue 'outer;
                }
            }
            i += 1;
        }
        a + i
    };
    let inputs = Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 32]).buffer(
        0,
        1,
        (10..18).flat_map(u32::to_le_bytes).collect::<Vec<_>>(),
    );
    let want: Vec<u8> = (0..8).flat_map(|x| value(10 + x, x).to_le_bytes()).collect();
    for r in results("a.spv", bytes(&shader("", &body(code))), &options()) {
        let artifact = r.artifact.unwrap_or_else(|| panic!("{}", r.message));
        let run = run_artifact(&artifact, &inputs, &RunOptions::default()).expect("a run");
        assert_eq!(run.buffers[0].bytes, want, "{}", r.target);
    }
}

#[test]
fn large_work_groups_are_warned_of() {
    let source = "layout(local_size_x = 512) in; void main() {}";
    for r in results("a.comp", text("a.comp", source), &options()) {
        assert_eq!(r.status, Status::Ok);
        assert!(r.report.contains("at most 256"), "{}", r.report);
    }
}

/// Shared blocks with offsets of their own are the same memory: what one writes the other reads.
#[test]
fn shared_blocks_are_overlaid() {
    let source = "#extension GL_EXT_shared_memory_block : require
        layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint w[]; };
        shared X { uint x[8]; }; shared Y { layout(offset = 4) float y[9]; };
        void main() {
            uint k = gl_LocalInvocationIndex;
            x[k] = floatBitsToUint(float(k)); barrier(); w[k] = floatBitsToUint(y[(k + 3) % 7] + 0.5);
        }";
    let inputs = Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 32]);
    let want: Vec<u8> = (0..8).flat_map(|k| (((k + 3) % 7 + 1) as f32 + 0.5).to_le_bytes()).collect();
    for r in results("a.comp", text("a.comp", source), &options()) {
        let artifact = r.artifact.unwrap_or_else(|| panic!("{}", r.message));
        let run = run_artifact(&artifact, &inputs, &RunOptions::default()).expect("a run");
        assert_eq!(run.buffers[0].bytes, want, "{}", r.target);
    }
}

/// SPIR-V of a text in GLSL.
fn spirv_of(file: &str, stage: Stage, source: &str) -> Vec<u32> {
    let front = FrontOptions { stage: Some(stage), ..FrontOptions::default() };
    kempe_front::to_spirv(file, &text(file, source), kempe_front::Language::Glsl, &front).expect("a shader")
}

/// Outputs of a control shader that start with a value: no text says that, so it is put into the words.
#[test]
fn initial_values_of_patches_are_refused() {
    let source = "layout(vertices = 3) out; layout(location = 0) patch out float f;
        void main() { f = 1; }";
    let mut words = spirv_of("a.tesc", Stage::TessControl, source);
    let next = |&at: &usize| words.get(at).map(|word| at + (word >> 16) as usize);
    let starts: Vec<usize> = std::iter::successors(Some(5), next).filter(|&at| at < words.len()).collect();
    let find = |op: spirv::Op, fits: &dyn Fn(&[u32]) -> bool| {
        let mut all = starts.iter().copied();
        all.find(|&at| words[at] & 0xffff == op as u32 && fits(&words[at..])).expect("an instruction")
    };
    let float = words[find(spirv::Op::TypeFloat, &|_| true) + 1];
    let pointer = words[find(spirv::Op::TypePointer, &|w| w[2] == 3 && w[3] == float) + 1];
    let variable = find(spirv::Op::Variable, &|w| w[1] == pointer);
    let null = words[3];
    words[3] += 1;
    words.insert(variable + 4, null);
    words[variable] += 1 << 16;
    words.splice(variable..variable, [3 << 16 | spirv::Op::ConstantNull as u32, float, null]);
    for e in of_spirv(&words) {
        assert!(e.starts_with("Error ") && e.contains("initial value"), "{e}");
    }
}

/// Nobody says what the next stage reads, so all of it is given.
#[test]
fn a_stage_alone_gives_everything() {
    let source = "layout(location = 0) out vec2 a; layout(location = 3) out float b;
        void main() { gl_Position = vec4(1); a = vec2(2); b = 3; }";
    for r in results("a.vert", text("a.vert", source), &options()) {
        let rows = r.artifact.expect("code").graphics.expect("facts").output_rows;
        let given = rows.iter().filter(|row| matches!(row, VertexRow::Varying(..))).count();
        assert_eq!(given, if r.variant == Variant::Binning { 0 } else { 3 }, "{rows:?}");
    }
}

/// The number of the primitive is given by no shader before.
#[test]
fn the_number_of_the_primitive_comes_from_the_hardware() {
    let source = "layout(location = 0) out uvec4 o; void main() { o = uvec4(gl_PrimitiveID); }";
    for r in results("a.frag", text("a.frag", source), &options()) {
        let varyings = r.artifact.expect("code").graphics.expect("facts").varyings;
        assert!(matches!(varyings[..], [Varying { source: VaryingSource::PrimitiveId, .. }]), "{varyings:?}");
    }
}

/// The numbers of registers are moved in the text, before macros are known.
#[test]
fn registers_that_macros_make_stay() {
    let binding = |register: &str| {
        let source = format!(
            "#define PLACE t3
            StructuredBuffer<uint> b : register({register}); RWStructuredBuffer<uint> o : register(u0);
            [numthreads(1, 1, 1)] void main() {{ o[0] = b[0]; }}"
        );
        let results = results("a.comp.hlsl", source.into_bytes(), &options());
        let resources = results[0].artifact.as_ref().unwrap_or_else(|| panic!("{}", results[0].report));
        resources.resources.iter().map(|r| r.binding).min()
    };
    assert_eq!((binding("t3"), binding("PLACE")), (Some(35), Some(3)));
}

/// Macros that expand without bound: the time limit ends it.
#[test]
fn the_time_limit_ends_macros() {
    let mut source = "#define A0 +1\n".to_owned();
    for k in 0..30 {
        source += &format!("#define A{} A{k} A{k}\n", k + 1);
    }
    source += "#if 0 A30\n#endif\nlayout(local_size_x = 1) in; void main() {}";
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    for r in results("a.comp", text("a.comp", &source), &Options { limits, ..options() }) {
        assert_eq!(r.status, Status::Limit, "{}", r.report);
    }
}

/// Memory that no allocator of ours gives, as glslang's.
#[cfg(target_os = "linux")]
#[test]
fn memory_of_others_is_noticed() {
    let limits = Limits { memory: 64 << 20, ..Limits::default() };
    let stopped = kempe::limits::guarded(limits, || {
        const SIZE: usize = 256 << 20;
        // SAFETY: the bytes are those of the block, which is given back.
        unsafe {
            let block = libc::malloc(SIZE).cast::<u8>();
            assert!(!block.is_null());
            block.write_bytes(1, SIZE);
            // Or the compiler sees that nobody reads it and leaves it out.
            std::hint::black_box(block);
            std::thread::sleep(Duration::from_secs(2));
            libc::free(block.cast());
        }
    });
    assert_eq!(stopped, Err(Stopped::Memory(64 << 20)));
}

/// The second colour of blending changes nothing.
#[test]
fn the_second_colour_is_ignored() {
    let both = "layout(location = 0, index = 0) out vec4 a; layout(location = 0, index = 1) out vec4 b;
        layout(location = 0) in vec4 v; void main() { a = v * 2; b = v * 3; }";
    let one = "layout(location = 0) out vec4 a; layout(location = 0) in vec4 v; void main() { a = v * 2; }";
    let code = |source: &str| -> Vec<_> {
        let results = results("a.frag", text("a.frag", source), &options());
        results.into_iter().map(|r| r.artifact.unwrap_or_else(|| panic!("{}", r.report)).code).collect()
    };
    assert_eq!(code(both), code(one));
}

#[test]
fn images_without_a_format_get_one() {
    let source = "layout(local_size_x = 1) in; layout(binding = 0) writeonly uniform image2D f;
        layout(binding = 1) writeonly uniform iimage2D i; layout(binding = 2) writeonly uniform uimage2D u;
        void main() { imageStore(f, ivec2(0), vec4(1)); imageStore(i, ivec2(0), ivec4(1)); imageStore(u, ivec2(0), uvec4(1)); }";
    for r in results("a.comp", text("a.comp", source), &options()) {
        let json = kempe::artifact::write(&r.artifact.expect("code"));
        for format in ["rgba32f", "rgba32i", "rgba32ui"] {
            assert!(json.contains(&format!("\"{format}\"")), "{format}: {json}");
        }
    }
}

#[test]
fn work_groups_stay_below_the_limit() {
    let source = "layout(local_size_x = 1) in; void main() {}";
    for r in results("a.comp", text("a.comp", source), &options()) {
        let inputs = Inputs::new([65536, 1, 1]);
        let e = run_artifact(&r.artifact.expect("code"), &inputs, &RunOptions::default()).unwrap_err();
        assert!(e.to_string().contains("65536 work-groups along one axis: at most 65535"), "{e}");
    }
}

/// Time before SPIR-V is time of texts alone.
#[test]
fn texts_pay_for_their_front_end() {
    let source = "layout(local_size_x = 1) in; void main() {}";
    let words = spirv_of("a.comp", Stage::Compute, source);
    assert!(results("a.comp", text("a.comp", source), &options()).iter().all(|r| r.front_us > 0));
    assert!(results("a.spv", bytes(&words), &options()).iter().all(|r| r.front_us == 0));
}

/// Subgroups as they are in the source, of which the interpreter has 16 lanes at most.
#[test]
fn wide_subgroups_are_not_interpreted() {
    let words = shader("", &body("%r = OpCopyObject %uint %a"));
    let module =
        kempe_front::from_spirv("a.spv", &words, &FrontOptions::default()).expect("a module").remove(0);
    let inputs = Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 32]).buffer(0, 1, vec![0; 32]);
    let env = Environment::new(&module, &inputs, Sizes::source()).expect("an environment");
    let run = |subgroup_size| {
        let form = Form::Source { subgroup_size };
        interp::run(&module, &env, &interp::Options { form, ..interp::Options::source() })
    };
    assert!(run(16).is_ok());
    let Err(stop) = run(32) else { panic!("32 lanes were run") };
    assert!(stop.to_string().contains("subgroups of 32 lanes"));
}

/// The graph engine has no splitting to leave out: its code is the same.
#[test]
fn leaving_out_splitting_is_for_one_engine() {
    let sum: String = (0..90).map(|k| format!("uint v{k} = w[{k}u + n];\n")).collect();
    // Each twice, one use soon after the other: splitting fills once.
    let back: String = (1..90).rev().map(|k| format!("w[{k}u * 64u + n] = v{k} * v{};\n", k - 1)).collect();
    let source = format!(
        "layout(local_size_x = 16) in; layout(binding = 0) buffer B {{ uint w[]; }};
        void main() {{ uint n = gl_LocalInvocationIndex; {sum} barrier(); {back} }}"
    );
    let code = |engine, splitting| -> Vec<_> {
        let mut options = options();
        options.code.engine = engine;
        options.code.without.splitting = splitting;
        let results = results("a.comp", text("a.comp", &source), &options);
        results.into_iter().map(|r| r.artifact.unwrap_or_else(|| panic!("{}", r.report)).code).collect()
    };
    assert_eq!(code(Engine::Graph, false), code(Engine::Graph, true));
    assert_ne!(code(Engine::Scan, false), code(Engine::Scan, true));
}
