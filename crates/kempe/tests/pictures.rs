//! Every scene in `examples/graphics/`, drawn with the interpreter: the picture is the one of the gallery, to the last bit.
//!
//! `KEMPE_WRITE_PICTURES=1` writes list and gallery anew; look at the pictures before they are committed.

#![cfg(all(feature = "glsl", feature = "wgsl"))]

use kempe::compile::{CodeOptions, Keep, Options};
use kempe::draw::picture::Picture;
use kempe::draw::scene::{Coded, Drawn, Scene, SourceForm};
use kempe::limits::Limits;
use kempe::run::RunOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn folder() -> PathBuf {
    root().join("examples/graphics")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder").map(|e| e.expect("an entry").path());
    let scenes = entries.filter(|p| p.extension().is_some_and(|e| e == "json"));
    let mut names: Vec<String> =
        scenes.map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn options() -> Options {
    Options {
        targets: vec![kempe::targets()[0]],
        front: kempe::FrontOptions::default(),
        code: CodeOptions::default(),
        keep: Keep::default(),
        limits: Limits::default(),
    }
}

fn draw(name: &str, change: impl Fn(&mut Scene)) -> Vec<Drawn> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("the scene");
    let mut scene = Scene::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    change(&mut scene);
    let read = |file: &str| std::fs::read(folder().join(file)).map_err(|e| format!("{file}: {e}"));
    let linked = scene.link(&options(), &read).unwrap_or_else(|e| panic!("{name}: {e}"));
    let maker = SourceForm { options: RunOptions::default() };
    scene.draw(&linked, &maker, &read).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Name, hash of the picture, pixels written by the last pass.
fn list() -> BTreeMap<String, (String, u64)> {
    let text = std::fs::read_to_string(folder().join("pictures.tsv")).unwrap_or_default();
    let row = |line: &str| {
        let mut columns = line.split('\t').map(str::to_owned);
        let (name, hash) = (columns.next().expect("a name"), columns.next().expect("a hash"));
        (name, (hash, columns.next().expect("pixels").parse().expect("a number")))
    };
    text.lines().filter(|l| !l.starts_with('#')).map(row).collect()
}

#[test]
fn pictures_are_those_of_the_gallery() {
    let write = std::env::var_os("KEMPE_WRITE_PICTURES").is_some();
    let (names, list) = (names(), list());
    assert!(names.len() >= 12);
    let mut rows = String::from("# scene\thash of the picture\tpixels that the last pass writes\n");
    let mut wrong = Vec::new();
    for name in &names {
        let drawn = draw(name, |_| {});
        let last = drawn.last().expect("a pass");
        let picture = last.surface.picture(0).expect("colours");
        // Something is there, and it is no plain area.
        let first = &picture.rgba[..4];
        let others = picture.rgba.chunks(4).filter(|p| *p != first).count();
        assert!(last.surface.written > 2000 && others > 2000, "{name}: {} {others}", last.surface.written);
        let hash = format!("{:016x}", picture.hash());
        rows.push_str(&format!("{name}\t{hash}\t{}\n", last.surface.written));
        let file = root().join(format!("docs/gallery/{name}.png"));
        if write {
            std::fs::write(&file, picture.to_png().expect("a picture")).expect("written");
        } else if list.get(name) != Some(&(hash, last.surface.written)) {
            wrong.push(name.clone());
        } else {
            let bytes = std::fs::read(&file).expect("the picture of the gallery");
            assert!(Picture::from_png(&bytes) == Ok(picture), "{name}: not the picture of the gallery");
        }
    }
    if write {
        std::fs::write(folder().join("pictures.tsv"), rows).expect("written");
    } else {
        assert!(wrong.is_empty(), "other pictures than before: {wrong:?}\n{rows}");
        assert_eq!(list.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    }
}

/// Other sizes give other pictures of the same thing, down to a single pixel.
#[test]
fn odd_sizes() {
    for size in [[1, 1], [7, 3], [33, 65]] {
        for name in ["sparks", "text", "water"] {
            let drawn = draw(name, |scene| scene.size = size);
            let picture = drawn.last().and_then(|d| d.surface.picture(0)).expect("a picture");
            assert_eq!((picture.width, picture.height), (size[0], size[1]));
        }
    }
}

#[test]
fn wrong_scenes_say_what_is_wrong() {
    let text = std::fs::read_to_string(folder().join("text.json")).expect("the scene");
    let read = |file: &str| std::fs::read(folder().join(file)).map_err(|e| format!("{file}: {e}"));
    let outcome = |text: &str| -> Result<(), String> {
        let scene = Scene::parse(text)?;
        let linked = scene.link(&options(), &read).map_err(|e| e.to_string())?;
        let maker = SourceForm { options: RunOptions::default() };
        scene.draw(&linked, &maker, &read).map_err(|e| e.to_string()).map(drop)
    };
    for (from, to, says) in [
        ("kempe-scene/1", "kempe-scene/2", "version"),
        ("\"passes\"", "\"parses\"", "parses"),
        ("text.vert", "none.vert", "none.vert"),
        ("\"quad\"", "\"quart\"", "quart"),
        ("u_fill", "u_full", "u_full"),
        ("perspective 50", "perspective x 50", "perspective"),
        ("text KEMPE", "text #", "#"),
        ("text KEMPE 128", "pass before", "before"),
        ("linear clamp", "linear clump", "clump"),
        ("128,\n  128", "0,\n  128", "0x128"),
        ("128,\n  128", "99999,\n  128", "99999x128"),
    ] {
        assert!(text.contains(from), "{from}");
        let e = outcome(&text.replacen(from, to, 1)).expect_err(to);
        assert!(e.contains(says), "{from} -> {to}: {e}");
    }
}

/// Share of pixels that may differ from the picture of the source form, and by how much: division, square roots and the ends of
/// texture steps are rounded otherwise in code.
const NEAR: u8 = 2;
const FAR_PIXELS: f64 = 0.01;

/// Code on the simulator gives the picture that the interpreter gives for the programs that the code was made from, to the
/// last bit, and nearly that of the source.
#[test]
fn code_draws_the_same() {
    for target in kempe::targets().iter().filter(|t| t.supports(kempe::Stage::Fragment)) {
        for name in names() {
            let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("the scene");
            let scene = Scene::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let read = |file: &str| std::fs::read(folder().join(file)).map_err(|e| format!("{file}: {e}"));
            let linked = scene.link(&options(), &read).unwrap_or_else(|e| panic!("{name}: {e}"));
            let draw = |lowered: bool| {
                let code = CodeOptions::default();
                let maker = Coded { target: *target, code, lowered, options: RunOptions::default() };
                let drawn = scene.draw(&linked, &maker, &read);
                drawn.unwrap_or_else(|e| panic!("{name} on {}: {e}", target.name()))
            };
            let (simulated, interpreted) = (draw(false), draw(true));
            for (a, b) in simulated.iter().zip(&interpreted) {
                assert_eq!(a.surface, b.surface, "{name}, pass `{}`, on {}", a.name, target.name());
            }
            let picture = |list: &[Drawn]| list.last().and_then(|d| d.surface.picture(0)).expect("colours");
            let source = Picture::from_png(
                &std::fs::read(root().join(format!("docs/gallery/{name}.png"))).expect("the gallery"),
            )
            .expect("a picture");
            let code = picture(&simulated);
            let pixels = code.rgba.chunks(4).zip(source.rgba.chunks(4));
            let far =
                pixels.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > NEAR)).count() as f64;
            let share = far / (code.rgba.len() / 4) as f64;
            println!(
                "{name} on {}: {:.3} % of the pixels differ by more than {NEAR}",
                target.name(),
                100.0 * share
            );
            assert!(share <= FAR_PIXELS, "{name} on {}: {share}", target.name());
        }
    }
}
