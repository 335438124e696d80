//! `kempe run` that draws, and `kempe compile --link`.

mod common;

use common::Folder;

const VERTEX: &str = "#version 300 es\nin vec3 position; uniform mat4 turn; out vec3 tone; out float unread;\n\
    void main() { tone = position; unread = position.x; gl_Position = turn * vec4(position, 1.0); }\n";
const FRAGMENT: &str = "#version 300 es\nprecision highp float; in vec3 tone; uniform sampler2D map; out vec4 color;\n\
    void main() { color = vec4(texture(map, tone.xy).rgb, 1.0); }\n";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("a.vert", VERTEX);
    folder.file("b.frag", FRAGMENT);
    folder
}

#[test]
fn two_files_give_a_picture() {
    let folder = folder("draw-two");
    let args = ["run", "a.vert", "b.frag", "-o", "out.png", "--size", "32x16", "--mesh", "quad"];
    let more = ["--set", "turn=rotate_z 45 * scale 0.5", "--texture", "map=white", "--clear", "0,0,0,1"];
    let text = folder.run(&[&args[..], &more].concat()).quiet().text();
    assert!(text.contains("picture: 4 vertices, 2 triangles") && text.contains("32 x 16, hash "), "{text}");
    let png = std::fs::read(folder.path("out.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    // What was drawn is a texture as well, and the same every time.
    let again = folder.run(&[&args[..], &more, &["--texture", "map=out.png"]].concat()).quiet().text();
    let once_more = folder.run(&[&args[..], &more].concat()).quiet().text();
    assert!(again != text && once_more != again, "{again}");
}

#[test]
fn a_scene_is_drawn() {
    let folder = folder("draw-scene");
    let scene = "{\"schema\": \"kempe-scene/1\", \"size\": [8, 8], \"passes\": [{\"name\": \"x\", \"draws\": [\
        {\"vertex\": \"a.vert\", \"fragment\": \"b.frag\", \"set\": {\"turn\": \"identity\"}}]}]}";
    folder.file("scene.json", scene);
    let text = folder.run(&["run", "scene.json", "-o", "s.png"]).quiet().text();
    assert!(text.starts_with("x: 3 vertices, 1 triangles, 64 fragments, 64 pixels"), "{text}");
    folder.run(&["run", "scene.json", "-o", "s.png", "--pass", "y"]).says(1, &["no such pass"]);
    folder.file("other.json", "{\"schema\": \"kempe-scene/9\"}");
    folder.run(&["run", "other.json", "-o", "s.png"]).says(1, &["kempe-scene/1"]);
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder("draw-wrong");
    folder.file("bad.frag", "#version 300 es\nvoid main() { nothing }\n");
    for (args, says) in [
        (&["--set", "torn=identity"][..], "torn"),
        (&["--set", "turn=spin 3"], "spin"),
        (&["--set", "turn=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"], "17 are given"),
        (&["--mesh", "ball"], "ball"),
        (&["--mesh", "none.obj"], "none.obj"),
        (&["--texture", "map=none.png"], "none.png"),
        (&["--sampler", "map=soft"], "soft"),
        (&["--attribute", "0=weight"], "weight"),
        (&["--size", "0x4"], "0x4"),
        (&["--instances", "0"], "0 instances"),
    ] {
        let all = [&["run", "a.vert", "b.frag", "-o", "x.png"][..], args].concat();
        folder.run(&all).says(1, &[says]);
    }
    folder.run(&["run", "a.vert", "bad.frag", "-o", "x.png"]).says(1, &["bad.frag", "error"]);
    folder.run(&["run", "a.vert", "-o", "x.png"]).says(1, &["error"]);
    folder.run(&["run", "a.vert", "b.frag", "--size", "4"]).says(2, &["WIDTHxHEIGHT"]);
}

/// Both stages give their results, in the order vertex, fragment, whatever the order of the files is.
#[test]
fn linked_stages_are_compiled_together() {
    let folder = folder("draw-link");
    for files in [["a.vert", "b.frag"], ["b.frag", "a.vert"]] {
        let ran = folder.run(&["compile", "--link", files[0], files[1], "-t", "v3d71", "--format", "json"]);
        let text = ran.text();
        let stages: Vec<&str> =
            text.split("\"stage\": \"").skip(1).filter_map(|t| t.split('"').next()).collect();
        assert!(stages.first() == Some(&"vertex") && stages.last() == Some(&"fragment"), "{text}");
        assert!(text.contains("\"variant\": \"render\""), "{text}");
    }
    folder.run(&["compile", "--link", "a.vert", "-t", "v3d71"]).says(1, &["a.vert"]);
    folder.run(&["compile", "--link", "a.vert", "b.frag", "b.frag", "-t", "v3d71"]).says(2, &["--link"]);
    folder.run(&["compile", "a.vert", "-t", "v3d71", "--samples", "2"]).says(2, &["1 or 4"]);
    folder.run(&["compile", "a.vert", "-t", "v3d71", "--target-format", "9=half"]).says(2, &["N=half"]);
}
