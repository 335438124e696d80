//! Drawing small things: what a fragment is given, which fragments count, what is kept.

#![cfg(feature = "glsl")]

use kempe::compile::{CodeOptions, Keep, Options};
use kempe::draw::picture::Surface;
use kempe::draw::scene::{DrawForm, Pass, SCHEMA, Scene, SourceForm};
use kempe::limits::Limits;
use kempe::run::RunOptions;

const OBJ: &str =
    "v -1 -1 0.25 1 0 0\nv -1 1 0.25 0 1 0\nv 1 -1 0.25 0 0 1\nv 1 1 0.75 1 1 1\nf 1 2 3\nf 3 2 4\n";

const VERTEX: &str = "#version 450\nlayout(location = 0) in vec3 p; layout(location = 3) in vec4 c;\n\
    layout(location = 0) out vec4 smoothly; layout(location = 1) flat out vec4 flatly; layout(location = 2) noperspective out vec4 screen;\n\
    void main() { smoothly = c; flatly = c; screen = c; float w = 1.0 + 3.0 * step(0.5, p.z); gl_Position = vec4(p * w, w); }";

fn draw(size: [u32; 2], targets: &[&str], fragments: &[&str], change: impl Fn(&mut Scene)) -> Surface {
    let draws = (0..fragments.len()).map(|n| {
        let mut form = DrawForm::new("a.vert", Some(&format!("{n}.frag")));
        form.mesh = "m.obj".to_owned();
        form.attributes = [(3, "color".to_owned())].into();
        form
    });
    let targets = Some(targets.iter().map(|t| (*t).to_owned()).collect());
    let pass = Pass { name: "p".to_owned(), size: None, clear: [0.0; 4], targets, draws: draws.collect() };
    let mut scene = Scene { schema: SCHEMA.to_owned(), size, values: Default::default(), passes: vec![pass] };
    change(&mut scene);
    let head = "#version 450\nlayout(location = 0) in vec4 smoothly; layout(location = 1) flat in vec4 flatly;\n\
        layout(location = 2) noperspective in vec4 screen;\n";
    let read = |name: &str| match name {
        "a.vert" => Ok(VERTEX.as_bytes().to_vec()),
        "m.obj" => Ok(OBJ.as_bytes().to_vec()),
        other => {
            let n: usize = other.split('.').next().and_then(|n| n.parse().ok()).expect("a number");
            Ok(format!("{head}{}", fragments[n]).into_bytes())
        }
    };
    let options = Options {
        targets: vec![kempe::targets()[0]],
        front: kempe::FrontOptions::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: Limits::default(),
    };
    let linked = scene.link(&options, &read).unwrap_or_else(|e| panic!("{e}"));
    let maker = SourceForm { options: RunOptions::default() };
    scene.draw(&linked, &maker, &read).unwrap_or_else(|e| panic!("{e}")).remove(0).surface
}

fn at(s: &Surface, target: usize, x: u32, y: u32) -> [f32; 4] {
    s.colors[target][(y * s.width + x) as usize].map(f32::from_bits)
}

/// A square of two triangles, of which one corner is farther away.
#[test]
fn interpolation() {
    let s = draw(
        [8, 8],
        &["rgba32f", "rgba32f", "rgba32f"],
        &[
            "layout(location = 0) out vec4 a; layout(location = 1) out vec4 b; layout(location = 2) out vec4 c;\n\
           void main() { a = smoothly; b = flatly; c = screen; }",
        ],
        |_| {},
    );
    for y in 0..8 {
        for x in 0..8 {
            let (fx, fy) = ((f64::from(x) + 0.5) / 8.0, (f64::from(y) + 0.5) / 8.0);
            // The diagonal belongs to one of the two; leave it out. Weights of the corners on the screen and their w:
            let (weights, w, colors, first) = if x + y < 7 {
                ([1.0 - fx - fy, fy, fx], [1.0; 3], [[1., 0., 0.], [0., 1., 0.], [0., 0., 1.]], [1., 0., 0.])
            } else if x + y > 7 {
                (
                    [1.0 - fy, 1.0 - fx, fx + fy - 1.0],
                    [1., 1., 4.],
                    [[0., 0., 1.], [0., 1., 0.], [1., 1., 1.]],
                    [0., 0., 1.],
                )
            } else {
                continue;
            };
            let over: f64 = (0..3).map(|k| weights[k] / w[k]).sum();
            for c in 0..3 {
                let flat_on_screen: f64 = (0..3).map(|k| weights[k] * colors[k][c]).sum();
                let in_space: f64 = (0..3).map(|k| weights[k] / w[k] * colors[k][c]).sum::<f64>() / over;
                assert!((f64::from(at(&s, 0, x, y)[c]) - in_space).abs() < 1e-6, "{x} {y}");
                assert!((f64::from(at(&s, 2, x, y)[c]) - flat_on_screen).abs() < 1e-6, "{x} {y}");
                assert_eq!(f64::from(at(&s, 1, x, y)[c]), first[c], "{x} {y}");
            }
        }
    }
}

/// Place, facing, number of the primitive; differences to the neighbours, also across what is not covered.
#[test]
fn builtins_and_derivatives() {
    let s = draw(
        [6, 5],
        &["rgba32f", "rgba32f"],
        &["layout(location = 0) out vec4 a; layout(location = 1) out vec4 b;\n\
           void main() { a = gl_FragCoord; b = vec4(dFdx(gl_FragCoord.x), dFdy(gl_FragCoord.y), gl_FrontFacing, gl_PrimitiveID); }"],
        |_| {},
    );
    for y in 0..5 {
        for x in 0..6 {
            let [a, b] = [at(&s, 0, x, y), at(&s, 1, x, y)];
            assert_eq!(a[..2], [x as f32 + 0.5, y as f32 + 0.5]);
            assert_eq!(b[..2], [1.0, 1.0]);
            let second = f32::from(b[3] == 1.0);
            // Upper left, lower left, upper right: counter-clockwise to the eye, as the other one.
            assert_eq!(b[2..], [1.0, second]);
            assert!(a[2] >= 0.25 && a[2] < 0.75 && a[3] <= 1.0 && a[3] > 0.25);
        }
    }
    assert_eq!((at(&s, 1, 0, 0)[3], at(&s, 1, 5, 4)[3]), (0.0, 1.0));
    assert_eq!(at(&s, 0, 0, 0)[2..], [0.25, 1.0]);
}

/// Later fragments win only if they are not behind; what is discarded is neither seen nor in the way; depth can be given.
#[test]
fn depth_and_discard() {
    let color = |text: &str| format!("layout(location = 0) out vec4 o;\nvoid main() {{ {text} }}");
    let red = color("o = vec4(1, 0, 0, 1);");
    let left = color("if (gl_FragCoord.x > 4.0) discard; o = vec4(0, 1, 0, 1); gl_FragDepth = 0.1;");
    let blue = color("o = vec4(0, 0, 1, 1); gl_FragDepth = gl_FragCoord.y < 4.0 ? 0.2 : 0.9;");
    let s = draw([8, 8], &["rgba8"], &[&red, &left, &blue], |_| {});
    let name = |x, y| match at(&s, 0, x, y)[..3] {
        [1.0, 0.0, 0.0] => 'r',
        [0.0, 1.0, 0.0] => 'g',
        [0.0, 0.0, 1.0] => 'b',
        _ => '?',
    };
    let rows: Vec<String> = (0..8).map(|y| (0..8).map(|x| name(x, y)).collect()).collect();
    assert_eq!(
        rows,
        ["ggggbbbb", "ggggbbbb", "ggggbbbb", "ggggbbbb", "ggggrrrr", "ggggrrrr", "ggggrrrr", "ggggrrrr"]
    );
    let s = draw([8, 8], &["rgba8"], &[&left, &red], |scene| scene.passes[0].draws[1].depth_test = false);
    assert_eq!((at(&s, 0, 0, 0)[0], s.depth[0], s.depth[7]), (1.0, 0.1, 1.0));
    let s = draw([8, 8], &["rgba8"], &[&left, &red], |scene| scene.passes[0].draws[0].depth_write = false);
    assert_eq!((at(&s, 0, 0, 0)[0], s.depth[0]), (1.0, 0.25));
    let s = draw([8, 8], &["rgba8"], &[&red], |scene| {
        scene.passes[0].draws[0].cull = kempe::draw::scene::CullForm::Front;
    });
    assert_eq!(s.written, 0);
}
