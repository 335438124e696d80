//! Geometry and tessellation: a small shader for each thing that they can do, compiled for both versions in several configurations, judged
//! by checkers A and B and the validator on the way, run on the simulator. What it gives must be what the interpreter gives for the
//! lowered form and, since nothing here is rounded in another way, for the source form.

#![cfg(feature = "glsl")]

use kempe::exec::{Environment, Inputs, Sizes};
use kempe::inputs::{Usage, Verdict, search};
use kempe::run::{RunOptions, StageRun};
use kempe_front::{Language, Options as FrontOptions};
use kempe_ir::io::{Slot, StageOutputs};
use kempe_ir::{Module, Stage, interp};
use kempe_mir::{Artifact, Graphics, VertexRow};
use kempe_v3d::asm;
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::decode::decode;
use kempe_v3d::instr::{Op, Version};

fn module(stage: Stage, text: &str) -> Module {
    let text = format!("#version 450\n{text}");
    let options = FrontOptions { stage: Some(stage), ..FrontOptions::default() };
    let modules = kempe_front::compile("shader", text.as_bytes(), Language::Glsl, &options);
    let mut module = modules.unwrap_or_else(|e| panic!("{e}")).remove(0);
    kempe_opt::optimise(&mut module, kempe_opt::Level::O2);
    kempe_ir::verify::verify(&module).unwrap_or_else(|e| panic!("{e:#?}"));
    module
}

/// By the interpreter, in source form.
fn interpret(m: &Module, inputs: &Inputs) -> Result<StageOutputs, String> {
    let env = Environment::new(m, inputs, Sizes::source())?;
    let options = interp::Options { step_limit: 1_000_000, ..interp::Options::source() };
    let outcome = interp::run(m, &env, &options).map_err(|e| e.to_string())?;
    match outcome.undefined.is_empty() {
        true => Ok(outcome.stage.expect("a graphics stage")),
        false => Err("it depends on what is undefined".to_owned()),
    }
}

/// The first list's words, where they are, against the other's.
fn words(what: &str, want: &[Option<u32>], got: Option<&Vec<Option<u32>>>) -> usize {
    for (n, v) in want.iter().enumerate().filter(|v| v.1.is_some()) {
        let g = got.and_then(|l| l.get(n)).copied().flatten();
        assert_eq!(g, *v, "{what}, word {n}");
    }
    want.iter().flatten().count()
}

/// What the one side defines, the other side must give, of places that both have if `shared`. How many words were compared.
fn same(what: &str, want: &StageOutputs, got: &StageOutputs, shared: bool) -> usize {
    assert_eq!(want.emitted, got.emitted, "{what}: vertices");
    let mut compared = want.emitted.iter().flatten().count();
    for (place, list) in &want.values {
        let other = got.values.get(place);
        if !shared || other.is_some() {
            compared += words(&format!("{what}: {place:?}"), list, other);
        }
    }
    for (place, list) in &want.patch_values {
        compared += words(&format!("{what}: patch, {place:?}"), list, got.patch_values.get(place));
    }
    compared
}

#[derive(Default)]
struct Lowered(Option<Module>);

impl Observer for Lowered {
    fn lowered(&mut self, m: &Module) {
        self.0 = Some(m.clone());
    }
}

fn with_rows(run: StageRun) -> StageOutputs {
    let mut out = run.outputs;
    for (n, list) in run.rows.into_values().enumerate() {
        out.values.insert((Slot::Row(n as u16), 0, 0), list);
    }
    out
}

/// Compiles and runs in all configurations; gives the programs of the natural one: render of both versions, then binning.
fn judge(m: &Module) -> Vec<Artifact> {
    let usage = Usage::scan(m);
    let inputs: Vec<(Inputs, StageOutputs)> = (0..3)
        .map(|seed| {
            let mut found = None;
            let searched = search(m, &usage, seed, |inputs| match interpret(m, inputs) {
                Ok(given) => {
                    found = Some((inputs.clone(), given));
                    Verdict::Fine
                }
                Err(why) => Verdict::Useless(why),
            });
            searched.unwrap_or_else(|e| panic!("no inputs: {e}"));
            found.expect("inputs")
        })
        .collect();
    let variants: &[bool] = if m.stage == Stage::TessControl { &[false] } else { &[false, true] };
    let mut list = Vec::new();
    for &binning in variants {
        for version in Version::ALL {
            let mut natural = Options { verify: true, ..Options::default() };
            natural.shape.binning = binning;
            let configurations = [
                natural,
                Options { force_spill: true, ..natural },
                Options { threads: Some(2), max_registers: Some(24), ..natural },
                Options { threads: Some(4), no_order: true, ..natural },
            ];
            for (k, options) in configurations.into_iter().enumerate() {
                let what = format!("{}, binning {binning}, configuration {k}", version.name());
                let mut seen = Lowered::default();
                let artifact = compile(m.clone(), version, &options, &mut seen)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                let text = kempe::artifact::write(&artifact);
                let read = kempe::artifact::read(&text).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(read, artifact, "{what}: the artifact read back");
                run(&what, &artifact, &seen.0.expect("the lowered form"), &inputs);
                if k == 0 {
                    list.push(artifact);
                }
            }
        }
    }
    list
}

fn run(what: &str, artifact: &Artifact, lowered: &Module, inputs: &[(Inputs, StageOutputs)]) {
    let target = kempe::target(&artifact.target).expect("a target");
    let mut compared = [0; 2];
    for (n, (inputs, source)) in inputs.iter().enumerate() {
        let options = RunOptions { step_limit: 2_000_000, schedule: 7 * n as u64 };
        let want = target.interpret_stage(lowered, artifact, inputs, &options);
        let want = with_rows(want.unwrap_or_else(|e| panic!("{what}: interpreter: {e}")));
        let got = target.run_stage(artifact, inputs, &options);
        let got = with_rows(got.unwrap_or_else(|e| panic!("{what}: simulator: {e}")));
        compared[0] += same(what, &want, &got, false);
        compared[1] += same(&format!("{what}, source form"), source, &got, true);
    }
    assert!(compared.iter().all(|&n| n > 100), "{what}: {compared:?} words were compared");
}

fn facts(a: &Artifact) -> &Graphics {
    a.graphics.as_ref().expect("facts of a graphics program")
}

/// Operations of a program.
fn ops(a: &Artifact) -> Vec<Op> {
    let version = Version::ALL.into_iter().find(|v| v.name() == a.target).expect("a version");
    let words = kempe_mir::words_of_code(&a.code)
        .into_iter()
        .map(|w| decode(version, w).unwrap_or_else(|e| panic!("{}: {e:?}", a.target)));
    words.flat_map(|i| i.alu().map(|alu| [alu.add.op, alu.mul.op]).into_iter().flatten()).collect()
}

fn count(a: &Artifact, op: Op) -> usize {
    ops(a).iter().filter(|&&o| o == op).count()
}

#[test]
fn a_triangle_passes_through() {
    let m = module(
        Stage::Geometry,
        "layout(triangles) in; layout(triangle_strip, max_vertices = 3) out;
        layout(location = 1) in vec2 uv[]; layout(location = 0) out vec2 out_uv;
        void main() {
            for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position; out_uv = uv[i]; EmitVertex(); }
            EndPrimitive();
        }",
    );
    let made = judge(&m);
    let render = facts(&made[0]);
    use VertexRow::*;
    let uv = |l| [Varying(Slot::Location(l), 0), Varying(Slot::Location(l), 1)];
    let xyzw = [0, 1, 2, 3].map(|k| Varying(Slot::Position, k));
    assert_eq!(render.vertex_rows, [&uv(1)[..], &xyzw].concat());
    assert_eq!(render.output_rows, [&[Screen(0), Screen(1), Depth, ReciprocalW][..], &uv(0)].concat());
    let p = render.primitive.expect("facts of a geometry program");
    assert_eq!((p.header_rows, p.width, p.modes.vertices), (4, 16, 3));
    let binning = facts(&made[2]);
    assert_eq!(binning.output_rows, [Clip(0), Clip(1), Clip(2), Clip(3), Screen(0), Screen(1)]);
    assert_eq!(binning.vertex_rows, xyzw);
    for a in &made {
        // Where every vertex lies is known: nothing is scattered.
        assert_eq!(count(a, Op::Stvpmd), 0);
        assert_eq!(count(a, Op::Vpmwt), usize::from(a.target == Version::V42.name()));
    }
}

#[test]
fn vertices_that_depend_on_the_lane() {
    let m = module(
        Stage::Geometry,
        "layout(lines) in; layout(line_strip, max_vertices = 5) out;
        layout(location = 0) in ivec2 n[]; layout(location = 0) flat out int number; layout(location = 1) out float x;
        void main() {
            for (int i = 0; i < (n[0].x & 7); i++) {
                if ((n[1].y >> (i & 3) & 1) != 0) EndPrimitive();
                gl_Position = gl_in[i & 1].gl_Position; number = n[i & 1].x + i;
                if (i != 2) x = 3.0 * float(i);
                EmitVertex();
            }
        }",
    );
    for a in judge(&m) {
        assert!(count(&a, Op::Stvpmd) > 0 && count(&a, Op::LdvpmgIn) > 0);
    }
}

#[test]
fn invocations_primitives_and_layers() {
    let m = module(
        Stage::Geometry,
        "layout(points, invocations = 4) in; layout(points, max_vertices = 2) out;
        layout(location = 2) in int a[]; layout(location = 2) flat out int b;
        void main() {
            for (int i = 0; i < 2; i++) {
                gl_Position = gl_in[0].gl_Position; gl_PrimitiveID = gl_PrimitiveIDIn + 10 * i;
                gl_Layer = a[0] + gl_InvocationID; b = 100 * gl_InvocationID + gl_PrimitiveIDIn; EmitVertex();
            }
        }",
    );
    let made = judge(&m);
    for a in &made {
        assert_eq!(facts(a).input_rows.contains(&VertexRow::PrimitiveId), !facts(a).binning);
        assert_eq!(count(a, Op::Iid), 1);
        assert_eq!(facts(a).primitive.expect("facts").modes.invocations, 4);
    }
    let primitive = VertexRow::Varying(Slot::PrimitiveId, 0);
    assert!(facts(&made[0]).output_rows.contains(&primitive));
}

/// The rows of an array lie side by side, with all components that any of its elements has.
#[test]
fn any_element_of_any_vertex() {
    let m = module(
        Stage::Geometry,
        "layout(triangles_adjacency) in; layout(points, max_vertices = 1) out;
        layout(location = 0) in vec3 list[][4]; layout(location = 7) in ivec2 which[];
        layout(location = 0) out vec3 one; layout(location = 1) out float other;
        void main() {
            int v = which[5].x, k = which[0].y;
            one = list[v][k]; other = list[2][k & 3][v % 3]; gl_Position = gl_in[v].gl_Position; EmitVertex();
        }",
    );
    let made = judge(&m);
    let rows = &facts(&made[0]).vertex_rows;
    let list: Vec<VertexRow> =
        (0..4).flat_map(|l| [0, 1, 2].map(|k| VertexRow::Varying(Slot::Location(l), k))).collect();
    assert_eq!(rows[..12], list);
}

/// Fewer lanes where an invocation needs much room; beyond that there is a message.
#[test]
fn room_for_vertices() {
    let shader = |vertices: u32| {
        let text = format!(
            "layout(points) in; layout(points, max_vertices = {vertices}) out; layout(location = 0) in int n[];
            layout(location = 0) out vec4 a; layout(location = 1) flat out int b;
            void main() {{ for (int i = 0; i < n[0]; i++) {{ a = gl_in[0].gl_Position; b = i; EmitVertex(); }} }}"
        );
        module(Stage::Geometry, &text)
    };
    // 1 row, and for each vertex 1 + 4 + 5.
    for (vertices, width) in [(12, 16), (13, 8), (26, 4), (60, 1), (204, 1)] {
        let m = shader(vertices);
        let artifact =
            compile(m.clone(), Version::V71, &Options { verify: true, ..Options::default() }, &mut ());
        let artifact = artifact.unwrap_or_else(|e| panic!("{vertices}: {e}"));
        assert_eq!(facts(&artifact).primitive.expect("facts").width, width, "{vertices}");
        if vertices < 30 {
            judge(&m);
        }
    }
    let error = compile(shader(205), Version::V42, &Options::default(), &mut ()).expect_err("no room");
    assert_eq!(error.message, "205 vertices take 2051 rows: the hardware has room for 2048");
}

#[test]
fn a_patch_passes_through() {
    let m = module(
        Stage::TessControl,
        "layout(vertices = 3) out; layout(location = 0) in vec4 a[]; layout(location = 3) out vec4 b[];
        layout(location = 4) patch out int id;
        void main() {
            gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position;
            b[gl_InvocationID] = a[gl_InvocationID];
            gl_TessLevelOuter = float[4](1.0, 2.0, 3.0, 4.0); gl_TessLevelInner[0] = a[0].x; id = gl_PrimitiveID;
        }",
    );
    for a in judge(&m) {
        let f = facts(&a);
        assert_eq!(f.primitive.expect("facts").width, 15);
        assert_eq!(f.patch_output_rows.len(), 6);
        assert_eq!((count(&a, Op::Stvpmp), count(&a, Op::Stvpmd), count(&a, Op::Stvpmv)), (6, 0, 8));
        assert_eq!(f.input_rows, [VertexRow::PrimitiveId]);
    }
}

#[test]
fn neighbours_behind_a_barrier() {
    let m = module(
        Stage::TessControl,
        "layout(vertices = 4) out; layout(location = 0) in int a[]; layout(location = 0) out int b[][3];
        layout(location = 5) patch out ivec4 c; layout(location = 6) patch out int d[5]; layout(location = 12) out int e[];
        void main() {
            for (int i = 0; i < 3; i++) b[gl_InvocationID][(i + a[gl_InvocationID]) % 3] = a[gl_InvocationID] * 3 + i;
            c[gl_InvocationID] = 7 * a[gl_InvocationID];
            if (gl_InvocationID < 3) d[gl_InvocationID + 1] = gl_InvocationID;
            barrier();
            int other = (gl_InvocationID + 1) % 4;
            e[gl_InvocationID] = b[other][a[1] % 3] + c[other] + d[1 + other % 3] + gl_PatchVerticesIn;
            barrier();
            if (c[1] > 20) b[gl_InvocationID][0] = e[3 - gl_InvocationID];
        }",
    );
    for a in judge(&m) {
        assert!(count(&a, Op::LdvpmgOut) > 0 && count(&a, Op::Ldvpmp) > 0 && count(&a, Op::Stvpmd) > 0);
        assert!(count(&a, Op::Vpmwt) > 0 && !a.uses_barrier);
    }
}

#[test]
fn points_of_patches() {
    let m = module(
        Stage::TessEval,
        "layout(triangles, fractional_odd_spacing, cw, point_mode) in;
        layout(location = 0) in vec2 a[]; layout(location = 1) patch in vec3 b; layout(location = 2) patch in int c[4];
        layout(location = 0) out vec4 d; layout(location = 1) flat out ivec3 e;
        void main() {
            int k = c[0];
            gl_Position = vec4(gl_TessCoord, gl_in[k].gl_Position.x);
            d = vec4(a[2], b.z, gl_TessLevelOuter[2] + gl_TessLevelInner[1]);
            e = ivec3(c[k], gl_PrimitiveID, gl_PatchVerticesIn);
        }",
    );
    let made = judge(&m);
    let render = facts(&made[0]);
    use VertexRow::*;
    assert_eq!(render.input_rows, [PrimitiveId, TessCoord(0), TessCoord(1), TessCoord(2)]);
    assert_eq!(render.output_rows[..4], [Screen(0), Screen(1), Depth, ReciprocalW]);
    let patch = [
        Varying(Slot::Location(1), 2),
        Varying(Slot::Location(2), 0),
        Varying(Slot::Location(3), 0),
        Varying(Slot::Location(4), 0),
        Varying(Slot::Location(5), 0),
        Varying(Slot::TessLevelOuter, 2),
        Varying(Slot::TessLevelInner, 1),
    ];
    assert_eq!(render.patch_rows, patch);
    let modes = render.primitive.expect("facts").modes;
    assert!(modes.clockwise && modes.point_mode);
}

/// The words of a small program of each stage.
#[test]
fn text_of_small_programs() {
    let text = |m: Module, version: Version| -> Vec<String> {
        let artifact = compile(m, version, &Options { verify: true, ..Options::default() }, &mut ());
        let artifact = artifact.unwrap_or_else(|e| panic!("{e}"));
        let words =
            kempe_mir::words_of_code(&artifact.code).into_iter().map(|w| asm::disassemble(version, w, false));
        words.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let geometry = module(
        Stage::Geometry,
        "layout(points) in; layout(points, max_vertices = 1) out;
        layout(location = 0) in int a[]; layout(location = 0) flat out int b;
        void main() { b = a[0]; EmitVertex(); }",
    );
    let control = module(
        Stage::TessControl,
        "layout(vertices = 2) out; layout(location = 0) in int a[]; layout(location = 0) out int b[];
        layout(location = 1) patch out int c;
        void main() { b[gl_InvocationID] = a[gl_InvocationID]; c = a[1]; }",
    );
    assert_eq!(text(geometry, Version::V71), GEOMETRY);
    assert_eq!(text(control, Version::V71), CONTROL);
}

const GEOMETRY: &[&str] = &[
    "nop ; mov rf4, 0",
    "ldvpmg_in rf5, 0, rf4 ; nop",
    "stvpmv 6, rf5 ; nop",
    "nop ; nop ; ldunif",
    "stvpmv 1, rf0 ; nop",
    "nop ; nop ; thrsw; ldunifrf.rf6",
    "stvpmv 0, rf6 ; nop",
    "nop ; nop",
];
const CONTROL: &[&str] = &[
    "iid rf4 ; mov rf6, 1",
    "ldvpmg_in rf5, 0, rf4 ; nop",
    "stvpmv 0, rf5 ; nop",
    "nop ; nop ; thrsw",
    "ldvpmg_in rf7, 0, rf6 ; nop",
    "stvpmp 0, rf7 ; nop",
];

/// What cannot be done is said.
#[test]
fn messages() {
    let fails = |stage: Stage, text: &str| {
        let m = module(stage, text);
        compile(m, Version::V71, &Options::default(), &mut ()).expect_err("an error").message
    };
    let points = "layout(points) in; layout(points, max_vertices = 1) out;";
    let e =
        fails(Stage::Geometry, &format!("{points} void main() {{ gl_ViewportIndex = 1; EmitVertex(); }}"));
    assert_eq!(e, "a viewport cannot be chosen: the hardware has one");
    let e =
        fails(Stage::TessControl, "layout(vertices = 17) out; void main() { gl_TessLevelInner[0] = 1.0; }");
    let lanes = "a patch of 17 vertices: the invocations of a patch are lanes of one batch, which has 16";
    assert_eq!(e, lanes);
    let options = FrontOptions { stage: Some(Stage::Geometry), ..FrontOptions::default() };
    let text = format!(
        "#version 450\n{points} layout(stream = 1) out float a; void main() {{ a = 1.0; EmitStreamVertex(1); }}"
    );
    let e = kempe_front::compile("shader", text.as_bytes(), Language::Glsl, &options).expect_err("an error");
    assert!(e.to_string().contains("vertices of stream 1: only stream 0 is supported yet"), "{e}");
    let other = "module \"c\" tess_control\nworkgroup 1 1 1\n\
        primitive input points output points vertices 2 invocations 1 domain triangles spacing equal\nfunc\nb0:\n  \
        %0:i32 = const.i32 <0>\n  output.i32 <location 0 component 0 vertex> %0, %0\n  return\n";
    let m = kempe_ir::text::parse(other).unwrap_or_else(|e| panic!("{e}"));
    let e = compile(m, Version::V42, &Options::default(), &mut ()).expect_err("an error").message;
    assert_eq!(e, "an output of another vertex: an invocation gives its own vertex of the patch only");
}
