//! Shaders for a target that has compute only: what it refuses, and what it says.

#![cfg(feature = "glsl")]

use kempe::compile::{CodeOptions, CompileResult, Keep, Options, Source, Status, compile};
use kempe::limits::Limits;
use kempe::{FrontOptions, Stage};

fn made(name: &str, text: &str, verify: bool) -> CompileResult {
    let source = Source { name: name.to_owned(), contents: Ok(text.as_bytes().to_vec()), stage: None };
    let options = Options {
        targets: vec![kempe::target("agx").expect("a target")],
        front: FrontOptions::default(),
        code: CodeOptions { verify, ..CodeOptions::default() },
        keep: Keep::default(),
        limits: Limits::default(),
    };
    let mut results = compile(&source, &options);
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn compute(head: &str, body: &str) -> String {
    format!(
        "#version 450\n{head}\nlayout(local_size_x = 32) in;\nlayout(binding = 0) buffer B {{ uint b[]; }};\nvoid main() {{ {body} }}\n"
    )
}

#[test]
fn what_is_not_there_is_refused() {
    assert!(!kempe::target("agx").expect("a target").supports(Stage::Vertex));
    let vertex = "#version 450\nvoid main() { gl_Position = vec4(1.0); }\n".to_owned();
    let image = "layout(binding = 1, r32ui) uniform uimage2D i;";
    let cases = [
        ("a.vert", vertex, "only compute shaders"),
        ("image.comp", compute(image, "b[0] = imageLoad(i, ivec2(0)).x;"), "image"),
        (
            "lanes.comp",
            compute("#extension GL_KHR_shader_subgroup_arithmetic : enable", "b[0] = subgroupAdd(b[1]);"),
            "",
        ),
    ];
    for (name, text, says) in cases {
        let result = made(name, &text, false);
        assert_eq!(result.status, Status::Error, "{name}: {}", result.report);
        assert!(result.artifact.is_none(), "{name}");
        assert!(result.message.contains(says), "{name}: {}", result.message);
    }
}

#[test]
fn asking_for_checker_b_is_answered() {
    let text = compute("", "b[gl_GlobalInvocationID.x] += 1u;");
    let result = made("plain.comp", &text, true);
    assert_eq!(result.status, Status::Ok, "{}", result.report);
    assert!(result.report.contains("checker B"), "{}", result.report);
    assert_eq!(made("plain.comp", &text, false).report, "");
}
