use super::*;
use crate::compile::{CodeOptions, Keep};
use crate::limits::Limits;

fn options() -> Options {
    Options {
        targets: vec![crate::targets()[0]],
        front: kempe_front::Options::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: Limits::default(),
    }
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), contents: Ok(text.as_bytes().to_vec()), stage: None }
}

fn linked(vertex: &str, fragment: &str) -> [Linked; 2] {
    link([&source("a.vert", vertex), &source("b.frag", fragment)], [None; 2], &options())
        .unwrap_or_else(|e| panic!("{}", e.report))
}

fn located(module: &Module, op: Op) -> Vec<(u8, u8)> {
    let all = places(module, op).filter_map(|io| match io.slot {
        Slot::Location(n) => Some((n, io.component)),
        _ => None,
    });
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// In another order, with arrays, and with more on either side: names decide.
#[test]
fn locations_meet_by_name() {
    let [v, f] = linked(
        "#version 300 es\nin vec4 p; out vec2 a; out mat2 m; out float unread; out vec3 b; out float list[3];\n\
         void main() { a = p.xy; m = mat2(p); unread = p.w; b = p.xyz; list[0] = p.x; list[1] = p.y; list[2] = p.z; gl_Position = p; }",
        "#version 300 es\nprecision highp float; in float list[3]; in vec3 b; in float other; in mat2 m; in vec2 a; out vec4 o;\n\
         void main() { o = vec4(a, b.x, list[2]) + vec4(m[1], other, 0.0); }",
    );
    let of = |names: &[kempe_front::names::Located], name: &str| {
        names.iter().find(|n| n.name == name).map(|n| (n.location, n.count))
    };
    for name in ["a", "b", "m", "list"] {
        let (out, input) = (of(&v.names.outputs, name), of(&f.names.inputs, name));
        assert!(out.is_some() && out == input, "{name}: {out:?} {input:?}");
    }
    // What nobody writes does not land on what somebody writes.
    let other = of(&f.names.inputs, "other").unwrap().0;
    assert!(v.names.outputs.iter().all(|o| !(o.location..o.location + o.count).contains(&other)));
    let (written, read) = (located(&v.module, Op::Output), located(&f.module, Op::Input));
    assert_eq!(read.iter().filter(|place| written.contains(place)).count(), 2 + 3 + 4 + 3);
}

/// The old language has its own words, and its built-in varyings meet as well.
#[test]
fn old_varyings_meet() {
    let [v, f] = linked(
        "attribute vec4 p; varying vec2 uv; varying vec4 tone;\nvoid main() { tone = p; uv = p.xy; gl_Position = p; }",
        "precision mediump float; varying vec4 tone; varying vec2 uv; uniform sampler2D map;\n\
         void main() { gl_FragColor = texture2D(map, uv) * tone; }",
    );
    for name in ["uv", "tone"] {
        let at =
            |list: &[kempe_front::names::Located]| list.iter().find(|l| l.name == name).map(|l| l.location);
        assert!(at(&v.names.outputs).is_some() && at(&v.names.outputs) == at(&f.names.inputs), "{name}");
    }
}

/// Locations that the sources give are kept, whatever the names are.
#[test]
fn given_locations_count() {
    let [v, f] = linked(
        "#version 450\nlayout(location = 2) out vec4 x; layout(location = 5) out vec4 y;\n\
         void main() { x = vec4(1); y = vec4(2); gl_Position = vec4(0); }",
        "#version 450\nlayout(location = 5) in vec4 x; layout(location = 0) out vec4 o;\nvoid main() { o = x; }",
    );
    assert_eq!(located(&f.module, Op::Input), [(5, 0), (5, 1), (5, 2), (5, 3)]);
    assert_eq!(located(&v.module, Op::Output).len(), 8);
}

/// What is not read goes, component by component; the position stays, and what only it needed goes too.
#[test]
fn unread_outputs_are_removed() {
    let [v, f] = linked(
        "#version 450\nlayout(location = 0) in vec4 p; layout(location = 1) in vec4 q;\n\
         layout(location = 0) out vec4 x; layout(location = 1) out vec4 y;\n\
         void main() { x = sin(q); y = cos(q); gl_Position = p; }",
        "#version 450\nlayout(location = 0) in vec4 x; layout(location = 1) in vec4 y; layout(location = 0) out vec4 o;\n\
         void main() { o = vec4(y.w); }",
    );
    let target = crate::targets()[0];
    let read = reads(&f.module, target, &options());
    assert_eq!(read, Places::from([(Slot::Location(1), 3)]));
    let mut module = v.module.clone();
    assert!(remove_unread(&mut module, &read) && !remove_unread(&mut module, &read));
    pipeline::optimise(&mut module, pipeline::Level::O2);
    assert_eq!(located(&module, Op::Output), [(1, 3)]);
    assert_eq!(places(&module, Op::Output).filter(|io| io.slot == Slot::Position).count(), 4);
    // Of q one component is left.
    assert_eq!(located(&module, Op::Input), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)]);
    kempe_ir::verify::verify(&module).unwrap();
}

#[test]
fn one_file_with_both_stages_and_errors() {
    let both = source(
        "x.wgsl",
        "struct V { @builtin(position) p: vec4f, @location(3) c: vec2f }\n\
         @group(0) @binding(1) var<uniform> scale: vec4f;\n\
         @vertex fn vs(@location(0) p: vec4f) -> V { return V(p * scale, p.xy); }\n\
         @fragment fn fs(v: V) -> @location(0) vec4f { return vec4f(v.c, 0, 1); }",
    );
    let [v, f] = link([&both, &both], [None; 2], &options()).unwrap_or_else(|e| panic!("{}", e.report));
    assert_eq!((v.entry.as_str(), f.entry.as_str()), ("vs", "fs"));
    assert_eq!(located(&f.module, Op::Input), [(3, 0), (3, 1)]);
    assert!(
        v.names
            .fields
            .iter()
            .any(|f| f.name == "scale" && f.place == Some((0, 1)) && f.offsets == [0, 4, 8, 12])
    );
    let results = compile_linked([&both, &both], &options());
    assert_eq!(results.iter().map(|r| r.stage).collect::<Vec<_>>(), ["vertex", "vertex", "fragment"]);
    let bad = link([&source("a.vert", "void main() { x }"), &both], [None; 2], &options()).unwrap_err();
    assert!(bad.status == Status::Error && bad.report.contains("a.vert"), "{}", bad.report);
    let (vertex, fragment) = (source("a.vert", "void main() {}"), source("b.frag", "void main() {}"));
    for (pair, says) in [
        ([&fragment, &vertex], "b.frag: error: a vertex shader is wanted here, not a fragment shader"),
        ([&vertex, &vertex], "a.vert: error: a fragment shader is wanted here, not a vertex shader"),
    ] {
        let bad = link(pair, [None; 2], &options()).unwrap_err();
        assert!(bad.status == Status::Error && bad.report.contains(says), "{}", bad.report);
    }
    let bad = link([&both, &both], [Some("fs"), None], &options()).unwrap_err();
    assert_eq!(bad.status, Status::Error);
}

/// Matrices, arrays and structures: where each scalar lies.
#[test]
fn fields_have_names_and_places() {
    let [v, _] = linked(
        "#version 450\nstruct L { vec3 at; float power; };\n\
         layout(set = 1, binding = 2) uniform U { mat3 m; float list[2]; L lights[2]; } u;\n\
         layout(push_constant) uniform P { int n; } pc;\n\
         void main() { gl_Position = vec4(u.m * u.lights[1].at * u.lights[0].power, u.list[1] + pc.n); }",
        "#version 450\nlayout(location = 0) out vec4 o;\nvoid main() { o = vec4(1); }",
    );
    let field =
        |name: &str| v.names.fields.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(field("m").offsets, [0, 4, 8, 16, 20, 24, 32, 36, 40]);
    assert_eq!(field("list").offsets, [48, 64]);
    assert_eq!(field("lights[1].at").offsets, [96, 100, 104]);
    assert_eq!(field("lights[1].power").offsets, [108]);
    assert_eq!((field("m").place, field("n").place), (Some((1, 2)), None));
}
