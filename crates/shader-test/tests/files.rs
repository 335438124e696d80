//! Small files of the format, run on the simulator of every target and on the interpreter.
#![cfg(feature = "glsl")]

use kempe::limits::Limits;
use kempe_shader_test::program::On;
use kempe_shader_test::run::{Options, Verdict, run};

/// The verdict of a file, which must be the same for everybody who runs it.
fn verdict(text: &str) -> Verdict {
    let on = |on| run("test.shader_test", text.as_bytes(), &Options { on, limits: Limits::default() });
    let first = on(On::Interpreter);
    for &target in kempe::targets().iter().filter(|t| t.supports(kempe::Stage::Fragment)) {
        assert_eq!(on(On::Target(target)), first, "{}", target.name());
    }
    first
}

fn passes(text: &str) {
    assert_eq!(verdict(text), Verdict::Pass, "{text}");
}

fn fails(text: &str, part: &str) {
    let Verdict::Fail(message) = verdict(text) else { panic!("does not fail: {text}") };
    assert!(message.contains(part), "{message}");
}

const FRAGMENT: &str =
    "[require]\nGLSL >= 1.10\nSIZE 16 16\n[vertex shader passthrough]\n[fragment shader]\n";

#[test]
fn rectangles_and_probes() {
    let head = format!(
        "{FRAGMENT}uniform vec4 c; uniform vec2 w[2];\nvoid main() {{ gl_FragColor = vec4(c.rgb * w[1].y, 1.0); }}\n[test]\n"
    );
    let common = "clear color 0.5 0 0 1\nclear\nuniform vec4 c 0 0.5 1 1\nuniform vec2 w[1] 0 0.5\ndraw rect ortho 4 0 8 8\n";
    passes(&format!(
        "{head}{common}probe rgba 4 0 0 0.25 0.5 1\nprobe rgb 3 0 0.5 0 0\nprobe rect rgb (4, 0, 8, 8) (0, 0.25, 0.5)\nrelative probe rgba (0.5, 0.25) (0, 0.25, 0.5, 1)\nprobe rgba 4 8 0.5 0 0 1\n"
    ));
    fails(&format!("{head}{common}probe all rgb 0 0.25 0.5\n"), "pixel 0, 0");
    fails(&format!("{head}{common}probe rgb 4 0 0 0.3 0.5\n"), "line 14");
    passes(&format!("{head}{common}tolerance 0.1 0.1 0.1 0.1\nprobe rgb 4 0 0 0.3 0.5\n"));
}

/// Rows count from the bottom, what turns counter-clockwise is front, depth goes from -1 to 1.
#[test]
fn conventions_are_those_of_opengl() {
    let body = "void main() { gl_FragColor = vec4(gl_FragCoord.y / 16.0, gl_FrontFacing ? 1.0 : 0.0, gl_FragCoord.z, dFdy(gl_FragCoord.y)); }\n[test]\ndraw rect -1 -1 2 2\n";
    passes(&format!(
        "{FRAGMENT}{body}tolerance 0.01 0.01 0.01 0.01\nprobe rgba 3 0 0.03125 1 0.5 1\nprobe rgba 3 15 0.96875 1 0.5 1\n"
    ));
}

#[test]
fn vertex_data_and_legacy_names() {
    let text = "[require]\nGLSL >= 1.20\nSIZE 8 8\n[vertex shader]\nattribute vec2 place; attribute mat2 m; varying vec2 v;\n\
        void main() { gl_Position = gl_ModelViewProjectionMatrix * vec4(place, 0.0, 1.0); v = m * vec2(1.0, 0.5); gl_FrontColor = gl_Color; }\n\
        [fragment shader]\nvarying vec2 v;\nvoid main() { gl_FragColor = vec4(v, gl_Color.z, 1.0); }\n\
        [vertex data]\nplace/float/vec2 m/float/mat2/0 m/float/mat2/1\n0 0 0.25 0 0 0.5\n8 0 0.25 0 0 0.5\n8 4 0.25 0 0 0.5\n0 4 0.25 0 0 0.5\n\
        [test]\northo\ndraw arrays GL_TRIANGLE_FAN 0 4\nprobe rect rgb (0, 0, 8, 4) (0.25, 0.25, 1.0)\nprobe rgb 0 4 0 0 0\n";
    passes(text);
}

#[test]
fn textures_are_drawn_to_and_read() {
    let text = format!(
        "{FRAGMENT}uniform sampler2D s;\nvoid main() {{ gl_FragColor = texture2D(s, gl_FragCoord.xy / 16.0); }}\n[test]\n\
        texture rgbw 1 (8, 8)\nuniform int s 1\ndraw rect -1 -1 2 2\nprobe rgb 0 0 1 0 0\nprobe rgb 15 0 0 1 0\nprobe rgb 0 15 0 0 1\nprobe rgb 15 15 1 1 1\n\
        texture checkerboard 1 0 (2, 2) (1, 0, 1, 1) (0, 1, 1, 1)\ndraw rect -1 -1 2 2\nprobe rgb 0 0 1 0 1\nprobe rgb 15 0 0 1 1\n"
    );
    passes(&text);
}

#[test]
fn compute_writes_buffers_counters_and_images() {
    let text = "[require]\nGLSL >= 4.30\n[compute shader]\nlayout(local_size_x = 8) in;\nwriteonly uniform image2D tex; uniform uint plus;\n\
        layout(binding = 2, std430) buffer B { uint b[]; }; layout(binding = 0, offset = 4) uniform atomic_uint n;\n\
        void main() { uint i = gl_GlobalInvocationID.x; b[i] += plus; if (i % 4u == 0u) atomicCounterIncrement(n); imageStore(tex, ivec2(i, 0), vec4(0, i == 3u, 1, 1)); }\n\
        [test]\ntexture rgbw 0 (16, 1) GL_RGBA8\nimage texture 0 GL_RGBA8\nfb tex 2d 0\nssbo 2 64\nssbo 2 subdata int 4 7\natomic counters 2\natomic counter 1 10\nuniform uint plus 5\n\
        compute 2 1 1\nprobe ssbo uint 2 0 == 5\nprobe ssbo uint 2 4 == 12\nprobe ssbo uint 2 60 >= 5\nprobe atomic counter 1 == 14\nprobe rgb 3 0 0 1 1\nprobe rgb 15 0 0 0 1\n";
    passes(text);
    fails(&text.replace("== 12", "== 13"), "buffer 2 has 12 at 4");
    fails(&text.replace("== 14", "< 14"), "counter 1 is 14");
}

#[test]
fn what_is_not_done_is_said() {
    let skip = |text: &str, part: &str| match verdict(text) {
        Verdict::Skip(what) => assert!(what.contains(part), "{what}"),
        other => panic!("{other:?}: {text}"),
    };
    let draw = format!(
        "{FRAGMENT}void main() {{ gl_FragColor = vec4(1.0); }}\n[test]\ndraw rect -1 -1 2 2\nprobe all rgb 1 1 1\n"
    );
    passes(&draw);
    skip(
        &draw.replace("[fragment shader]", "[geometry shader]\n[fragment shader]"),
        "vertex, geometry, fragment",
    );
    skip(&format!("{draw}enable GL_BLEND\n"), "enable GL_BLEND");
    skip(&format!("{draw}link error\n"), "expects an error");
    skip(&draw.replace("void main", "uniform float x = 1.0;\nvoid main"), "initial values");
    skip("[test]\nprobe all rgb 1 1 1\n", "stages");
    let Verdict::Refused(why) = verdict(&draw.replace("vec4(1.0)", "vec4(undeclared)")) else { panic!() };
    assert!(why.contains("undeclared"), "{why}");
}

/// A flat value comes from the last vertex; primitives are counted from 0 in each instance.
#[test]
fn flat_values_come_from_the_last_vertex() {
    passes(
        "[require]\nGLSL >= 1.50\nSIZE 4 4\n[vertex shader]\nin vec4 place; flat out int n;\nvoid main() { gl_Position = place; n = gl_VertexID; }\n\
        [fragment shader]\nflat in int n; out vec4 c;\nvoid main() { c = vec4(n == gl_PrimitiveID + 2, gl_PrimitiveID == 1, 0.0, 1.0); }\n\
        [vertex data]\nplace/float/2\n-1 -1\n1 -1\n1 1\n-1 1\n[test]\ndraw arrays instanced GL_TRIANGLE_FAN 0 4 2\nprobe rgb 3 0 1 0 0\nprobe rgb 0 3 1 1 0\n",
    );
}

/// Names of blocks, buffers without a number, samplers in structures, inputs that share a location.
#[test]
fn what_is_bound_by_name() {
    passes(&format!("{FRAGMENT}#extension GL_ARB_uniform_buffer_object : enable\nuniform B {{ vec4 a; }} b;\nvoid main() {{ gl_FragColor = b.a; }}\n[test]\nuniform vec4 B.a 1 0 1 1\ndraw rect -1 -1 2 2\nprobe all rgb 1 0 1\n").replace("1.10", "1.50"));
    passes(
        "[require]\nGLSL >= 4.30\n[compute shader]\nlayout(local_size_x = 1) in; uniform uint v; layout(std430) buffer B { uint b; };\nvoid main() { b = v; }\n[test]\nssbo 0 4\nuniform uint v 9\ncompute 1 1 1\nprobe ssbo uint 0 0 == 9\n",
    );
    let samplers = format!(
        "{FRAGMENT}#extension GL_ARB_gpu_shader5 : enable\nstruct S {{ sampler2D t; }}; uniform S s[2]; uniform int n;\nvoid main() {{ gl_FragColor = texture(s[1].t, vec2(0.75, 0.25)); }}\n[test]\n\
        uniform int s[0].t 1\nuniform int s[1].t 0\ntexture rgbw 0 (8, 8)\ntexture checkerboard 1 0 (8, 8) (0, 0, 1, 1) (0, 0, 1, 1)\ndraw rect -1 -1 2 2\nprobe all rgb 0 1 0\n"
    )
    .replace("1.10", "1.50");
    passes(&samplers);
    // The GLSL compiler makes wrong code of these two.
    let refused = |text: &str, part: &str| {
        let Verdict::Refused(why) = verdict(text) else { panic!("not refused: {text}") };
        assert!(why.contains(part), "{why}");
    };
    refused(&samplers.replace("s[1].t, vec2", "s[n].t, vec2"), "indexed by something");
    refused(
        &format!(
            "{FRAGMENT}uniform sampler2D t[2];\nvec4 f(in sampler2D u[2]) {{ return texture2D(u[1], vec2(0.5)); }}\nvoid main() {{ gl_FragColor = f(t); }}\n[test]\ndraw rect -1 -1 2 2\nprobe all rgb 1 1 1\n"
        ),
        "parameter of a function",
    );
    passes(
        "[require]\nGLSL >= 1.50\nSIZE 4 4\n[vertex shader]\n#extension GL_ARB_enhanced_layouts : require\n#extension GL_ARB_explicit_attrib_location : require\n\
        layout(location = 0) in vec3 vertex; layout(location = 1, component = 1) in vec3 gba; layout(location = 1) in float red; out vec4 v;\nvoid main() { gl_Position = vec4(vertex, 1.0); v = vec4(red, gba); }\n\
        [fragment shader]\nin vec4 v; out vec4 c;\nvoid main() { c = v; }\n[vertex data]\nvertex/float/3 gba/float/4\n-1 -1 0 0.25 0.5 0.75 1\n3 -1 0 0.25 0.5 0.75 1\n-1 3 0 0.25 0.5 0.75 1\n\
        [test]\ndraw arrays GL_TRIANGLES 0 3\nprobe all rgba 0.25 0.5 0.75 1\n",
    );
}

/// Where the stages say locations, these count, not names.
#[test]
fn stages_meet_by_location_where_they_say_it() {
    passes(&"[require]\nGLSL >= 1.50\nSIZE 4 4\n[vertex shader]\n#extension GL_ARB_separate_shader_objects : require\nin vec4 piglit_vertex;\n\
        layout(location = 0) out vec4 a; layout(location = 2) out B { vec4 x; } b; out float c;\n\
        void main() { gl_Position = piglit_vertex; a = vec4(1, 0, 0, 1); b.x = vec4(0, 1, 0, 1); c = 0.5; }\n\
        [fragment shader]\n#extension GL_ARB_separate_shader_objects : require\nin float c; layout(location = 2) in A { vec4 x; } a; layout(location = 0) in vec4 b; out vec4 o;\n\
        void main() { o = vec4(b.r, a.x.g, c, 1.0); }\n[test]\ndraw rect -1 -1 2 2\nprobe all rgb 1 1 0.5\n".replace("B {", "K {").replace("A {", "K {"));
}
