//! `kempe run` with something to draw: a vertex and a fragment shader, or a scene.

use crate::args::{CullArg, On, Run};
use crate::compile::{self, code_options, front_options, limits};
use crate::run::{Failure, Res, contents, from_stopped, push, run_options, wrong};
use crate::{Exit, io};
use kempe::compile::{Keep, Options};
use kempe::draw::scene::{Coded, CullForm, DrawForm, Drawn, SCHEMA, Scene, SceneError, SourceForm};
use kempe::limits::guarded;
use std::path::{Path, PathBuf};

/// Whether something is to be drawn: there are two stages, or a picture is asked for.
pub fn is_wanted(args: &Run) -> bool {
    args.fragment.is_some() || args.draw.output.is_some() || args.draw.size.is_some()
}

fn failure(error: &SceneError) -> Failure {
    match error {
        SceneError::Shader(result) => {
            compile::complain(std::slice::from_ref(&**result));
            Failure(compile::exit_of(result.status), String::new())
        }
        other => Failure(Exit::Wrong, other.to_string()),
    }
}

pub fn run(args: &Run) -> Res<()> {
    let (scene, folder) = scene(args)?;
    let options = Options {
        targets: vec![args.target.unwrap_or(kempe::targets()[0])],
        front: front_options(&args.front),
        code: code_options(&args.code),
        keep: Keep::default(),
        limits: limits(&args.limits),
    };
    let run_options = run_options(args);
    let read = move |name: &str| {
        let path = folder.join(name);
        io::read(&path).map_err(|message| format!("{}: {message}", path.display()))
    };
    // Each shader is compiled under its own limits; the drawing has its own.
    let linked = scene.link(&options, &read).map_err(|e| failure(&e))?;
    let (on, target, code) = (args.draw.on, options.targets[0], options.code);
    let job = move || match on {
        On::Interpreter => scene.draw(&linked, &SourceForm { options: run_options }, &read),
        On::Simulator => {
            scene.draw(&linked, &Coded { target, code, lowered: false, options: run_options }, &read)
        }
    };
    let drawn = guarded(limits(&args.limits), job).map_err(from_stopped)?.map_err(|e| failure(&e))?;
    let mut out = String::new();
    for pass in &drawn {
        let c = pass.counts;
        let name = if pass.name.is_empty() { "picture" } else { &pass.name };
        out.push_str(&format!(
            "{name}: {} vertices, {} triangles, {} fragments, {} pixels written, {} instructions\n",
            c.vertices, c.triangles, c.fragments, pass.surface.written, c.instructions
        ));
    }
    let pass: Option<&Drawn> = match &args.draw.pass {
        Some(name) => drawn.iter().find(|d| d.name == *name),
        None => drawn.last(),
    };
    let Some(picture) = pass.and_then(|d| d.surface.picture(0)) else {
        return wrong("there is no such pass, or it has no colours");
    };
    out.push_str(&format!("{} x {}, hash {:016x}\n", picture.width, picture.height, picture.hash()));
    io::out(out.as_bytes()).or_else(wrong)?;
    if let Some(path) = &args.draw.output {
        let bytes = picture.to_png().or_else(wrong)?;
        io::write(path, &bytes)
            .map_err(|message| Failure(Exit::Wrong, format!("{}: {message}", path.display())))?;
    }
    Ok(())
}

/// The scene that is asked for, and the folder that its names are relative to.
fn scene(args: &Run) -> Res<(Scene, PathBuf)> {
    let d = &args.draw;
    let bytes = io::read(&args.file).or_else(wrong)?;
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') {
        if args.fragment.is_some() {
            return wrong("is a scene, which names its shaders itself");
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.contains(SCHEMA) {
            return wrong(format!("is no scene of the version `{SCHEMA}`"));
        }
        let mut scene = Scene::parse(&text).or_else(wrong)?;
        scene.size = d.size.unwrap_or(scene.size);
        return Ok((scene, args.file.parent().map_or_else(PathBuf::new, Path::to_path_buf)));
    }
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut form = DrawForm::new(&name(&args.file), args.fragment.as_ref().map(name).as_deref());
    form.mesh.clone_from(&d.mesh);
    form.instances = d.instances;
    form.depth_test = !args.code.state.no_depth;
    form.cull = match d.cull {
        None => CullForm::None,
        Some(CullArg::Back) => CullForm::Back,
        Some(CullArg::Front) => CullForm::Front,
    };
    form.textures = d.texture.iter().cloned().collect();
    form.samplers = d.sampler.iter().cloned().collect();
    for (key, text) in &d.set {
        let numbers: Option<Vec<f64>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
        let value = match numbers {
            Some(list) => serde_json::Value::from(list),
            None => serde_json::Value::from(text.as_str()),
        };
        form.set.insert(key.clone(), value);
    }
    for (location, attribute) in &d.attribute {
        let Ok(location) = location.parse() else { return wrong(format!("`{location}` is no location")) };
        form.attributes.insert(location, attribute.clone());
    }
    let mut random = kempe::inputs::Random(args.random.unwrap_or(0));
    for buffer in &args.buffer {
        let bytes = contents(&buffer.value, Some(&mut random))?;
        form.buffers.insert(format!("{}:{}", buffer.binding.set, buffer.binding.binding), bytes);
    }
    if let Some(text) = &args.push {
        form.push = Some(push(text, &mut random)?);
    }
    let mut scene = Scene::simple(d.size.unwrap_or([256, 256]), form);
    if let (Some(clear), Some(pass)) = (d.clear, scene.passes.first_mut()) {
        pass.clear = clear;
    }
    Ok((scene, PathBuf::new()))
}
