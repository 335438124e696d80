//! `.shader_test` files on the command line.

#![cfg(feature = "glsl")]

mod common;

use common::Folder;

const FILE: &str = "[require]\nGLSL >= 1.20\nSIZE 8 8\n[vertex shader]\nattribute vec4 piglit_vertex;\nvoid main() { gl_Position = piglit_vertex; }\n\
    [fragment shader]\nuniform vec4 c;\nvoid main() {\n    gl_FragColor = c;\n}\n[test]\nuniform vec4 c 0 1 0 1\ndraw rect -1 -1 2 2\nprobe all rgba 0 1 0 1\n";

#[test]
fn both_stages_compile() {
    let folder = Folder::new("shader-test-compile");
    folder.file("a.shader_test", FILE);
    let text = folder.run(&["compile", "a.shader_test", "-t", "v3d71", "--format", "json"]).quiet().text();
    let stages: Vec<&str> = text.split("\"stage\": \"").skip(1).filter_map(|t| t.split('"').next()).collect();
    assert!(stages.contains(&"vertex") && stages.contains(&"fragment"), "{text}");
    folder.file("bad.shader_test", FILE.replace("= c", "= d"));
    folder
        .run(&["compile", "bad.shader_test", "-t", "v3d71"])
        .says(1, &["bad.shader_test:10", "gl_FragColor = d"]);
    folder.file("none.shader_test", "nothing");
    folder.run(&["compile", "none.shader_test", "-t", "v3d71"]).says(1, &["error"]);
    folder.run(&["corpus", "run", ".", "-t", "v3d71", "-o", "run.jsonl"]);
    let run = std::fs::read_to_string(folder.path("run.jsonl")).unwrap();
    assert_eq!(
        run.lines().filter(|l| l.contains("a.shader_test") && l.contains("\"status\":\"ok\"")).count(),
        3,
        "{run}"
    );
}

#[test]
fn the_test_runs() {
    let folder = Folder::new("shader-test-run");
    folder.file("a.shader_test", FILE);
    folder.run(&["run", "a.shader_test", "-t", "v3d71"]).quiet();
    folder.run(&["run", "a.shader_test", "--interpret"]).quiet();
    folder.run(&["run", "a.shader_test"]).says(1, &["--interpret"]);
    folder.file("b.shader_test", FILE.replace("probe all rgba 0 1", "probe all rgba 0 0"));
    folder.run(&["run", "b.shader_test", "-t", "v3d42"]).says(5, &["line 15", "pixel 0, 0"]);
    folder.file("c.shader_test", format!("{FILE}enable GL_BLEND\n"));
    folder.run(&["run", "c.shader_test", "-t", "v3d42"]).says(1, &["enable GL_BLEND"]);
}
