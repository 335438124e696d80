//! Geometry and tessellation.

use super::*;
use crate::exec::{Inputs, Sizes};
use crate::io::{Slot, StageInputs, StageOutputs};
use crate::module::Builtin;

fn run_stage(text: &str, stage: StageInputs) -> StageOutputs {
    let m = crate::text::parse(text).unwrap();
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!(crate::text::print(&m), text, "the text form");
    let mut inputs = Inputs::new([0; 3]);
    inputs.stage = Some(stage);
    let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
    Program::new(&m).unwrap().run(&env, &Options::source()).unwrap().stage.unwrap()
}

/// Two lines with 20 invocations each. Every invocation gives as many vertices as its number says, but three at most; the second one
/// begins a line; what was not said again since the vertex before is undefined.
#[test]
fn vertices_are_given_one_by_one() {
    let text = "module \"g\" geometry\nworkgroup 1 1 1\n\
        primitive input lines output line_strip vertices 3 invocations 20 domain triangles spacing equal\nfunc\nb0:\n  \
        %0:i32 = builtin.i32 <invocation_id>\n  %1:i32 = const.i32 <0>\n  %2:i32 = const.i32 <1>\n  \
        jump b1(%1)\nb1(%3:i32):\n  %4:bool = ult.i32 %3, %0\n  branch %4, b2, b3\n\
        b2:\n  %5:i32 = input.i32 <location 0 component 2 vertex> %3\n  output.i32 <location 0 component 0> %5\n  \
        emit_vertex.bool <stream 0>\n  %6:bool = ieq.i32 %3, %1\n  branch %6, b4, b5\nb4:\n  end_primitive.bool <stream 0>\n  jump b5\n\
        b5:\n  %7:i32 = iadd.i32 %3, %2\n  jump b1(%7)\nb3:\n  return\n";
    let stage = StageInputs {
        invocations: 40,
        vertices: 2,
        primitives: (0..40).map(|n| n / 20).collect(),
        values: [((Slot::Location(0), 2), vec![10, 11, 20, 21])].into(),
        builtins: [(Builtin::InvocationId, (0..40).map(|n| n % 20).collect())].into(),
        ..StageInputs::default()
    };
    let out = run_stage(text, stage);
    let starts = [true, true, false];
    for n in 0..40usize {
        assert_eq!(out.emitted[n], starts[..(n % 20).min(3)]);
        let first = 10 * (1 + n as u32 / 20);
        // The third asks for a vertex that a line does not have.
        let want = [Some(first), Some(first + 1), None];
        for (k, want) in want.into_iter().enumerate() {
            let want = if k < n % 20 { want } else { None };
            assert_eq!(out.values[&(Slot::Location(0), 0, 0)][3 * n + k], want, "vertex {k} of {n}");
        }
    }
}

/// Patches of three that cross batches of sixteen; behind the barrier each invocation reads what its neighbour gave. All agree on the
/// outer level, not on the inner one, which is undefined.
#[test]
fn invocations_of_a_patch_see_each_other() {
    let text = "module \"c\" tess_control\nworkgroup 1 1 1\n\
        primitive input points output points vertices 3 invocations 1 domain triangles spacing equal\nfunc\nb0:\n  \
        %0:i32 = builtin.i32 <invocation_id>\n  %1:i32 = const.i32 <1>\n  %2:i32 = const.i32 <3>\n  \
        %3:f32 = input.f32 <position component 1 vertex> %0\n  output.f32 <position component 1 vertex> %3, %0\n  \
        output.i32 <location 2 component 0 patch locations 4> %0, %0\n  barrier.i32 <storage>\n  \
        %4:i32 = iadd.i32 %0, %1\n  %5:i32 = umod.i32 %4, %2\n  \
        %6:f32 = read_output.f32 <position component 1 vertex> %5\n  output.f32 <location 0 component 0 vertex> %6, %0\n  \
        %7:i32 = read_output.i32 <location 2 component 0 patch locations 4> %1\n  \
        output.i32 <tess_level_outer component 3 patch> %7\n  output.i32 <tess_level_inner component 0 patch> %0\n  return\n";
    let stage = StageInputs {
        invocations: 21,
        vertices: 4,
        primitives: (0..21).map(|n| n / 3).collect(),
        values: [((Slot::Position, 1), (0..28).collect())].into(),
        builtins: [(Builtin::InvocationId, (0..21).map(|n| n % 3).collect())].into(),
        ..StageInputs::default()
    };
    let out = run_stage(text, stage);
    let given = |n: u32| Some(n / 3 * 4 + n % 3);
    assert_eq!(out.values[&(Slot::Position, 1, 0)], (0..21).map(given).collect::<Vec<_>>());
    let neighbour = |n: u32| given(n / 3 * 3 + (n + 1) % 3);
    assert_eq!(out.values[&(Slot::Location(0), 0, 0)], (0..21).map(neighbour).collect::<Vec<_>>());
    for k in 0..3u8 {
        assert_eq!(out.patch_values[&(Slot::Location(2 + k), 0)], [Some(u32::from(k)); 7]);
    }
    assert_eq!(out.patch_values[&(Slot::TessLevelOuter, 3)], [Some(1); 7]);
    assert_eq!(out.patch_values[&(Slot::TessLevelInner, 0)], [None; 7]);
}

/// Points of a patch: its vertices, what it has itself, coordinates. A number beyond its range is the last one.
#[test]
fn points_of_a_patch() {
    let text = "module \"e\" tess_eval\nworkgroup 1 1 1\n\
        primitive input points output points vertices 0 invocations 1 domain quads spacing fractional_odd clockwise point_mode\nfunc\nb0:\n  \
        %0:f32 = builtin.f32 <tess_coord 1>\n  %1:i32 = const.i32 <5>\n  %2:i32 = const.i32 <1>\n  \
        %3:f32 = input.f32 <location 3 component 0 vertex locations 2> %2, %1\n  %4:f32 = input.f32 <location 7 component 1 patch>\n  \
        output.f32 <position component 0> %0\n  output.f32 <position component 1> %3\n  output.f32 <position component 2> %4\n  return\n";
    let stage = StageInputs {
        invocations: 3,
        vertices: 2,
        primitives: vec![1, 0, 1],
        values: [((Slot::Location(4), 0), vec![0, 1, 2, 3])].into(),
        patch_values: [((Slot::Location(7), 1), vec![70, 71])].into(),
        builtins: [(Builtin::TessCoord(1), vec![5, 6, 7])].into(),
        ..StageInputs::default()
    };
    let out = run_stage(text, stage);
    let some = |v: [u32; 3]| v.map(Some).to_vec();
    assert_eq!(out.values[&(Slot::Position, 0, 0)], some([5, 6, 7]));
    assert_eq!(out.values[&(Slot::Position, 1, 0)], some([3, 1, 3]));
    assert_eq!(out.values[&(Slot::Position, 2, 0)], some([71, 70, 71]));
}

/// What the verifier refuses.
#[test]
fn what_a_stage_has_not() {
    let module = |stage: &str, modes: &str, body: &str| {
        let text = format!("module \"m\" {stage}\nworkgroup 1 1 1\n{modes}func\nb0:\n{body}  return\n");
        crate::verify::verify(&crate::text::parse(&text).unwrap_or_else(|e| panic!("{e}"))).is_ok()
    };
    let modes =
        "primitive input points output points vertices 3 invocations 1 domain triangles spacing equal\n";
    let one = "  %0:i32 = const.i32 <1>\n";
    let give = "  output.i32 <location 0 component 0> %0\n";
    let emit = "  emit_vertex.bool <stream 0>\n";
    assert!(module("geometry", modes, &format!("{one}{give}{emit}")));
    assert!(!module("geometry", modes, &format!("{one}{emit}{give}")));
    assert!(!module("vertex", "", emit));
    assert!(!module("geometry", modes, &format!("{one}  %1:i32 = input.i32 <location 0 component 0>\n")));
    assert!(module(
        "geometry",
        modes,
        &format!("{one}  %1:i32 = input.i32 <location 0 component 0 vertex> %0\n")
    ));
    assert!(!module("geometry", modes, "  %1:i32 = input.i32 <location 0 component 0 vertex>\n"));
    assert!(!module("tess_eval", "", "  %1:i32 = read_output.i32 <location 0 component 0 patch>\n"));
    assert!(!module("tess_control", "", ""));
    assert!(module("tess_control", modes, ""));
    let beyond = "  %1:i32 = input.i32 <location 250 component 0 vertex locations 7> %0, %0\n";
    assert!(!module("tess_control", modes, &format!("{one}{beyond}")));
}
