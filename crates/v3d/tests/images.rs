//! Images through the whole road behind the front end: every format and dimension, compiled for both versions and every
//! number of threads, on the simulator against the interpreter of the source form, with checker B.

mod common;

use common::{numbered, simulate_in};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::image::{Component, Format, ImageDesc, put_texel};
use kempe_ir::inputs::Random;
use kempe_ir::{Module, Res, interp, text, verify::verify};
use kempe_mir::Artifact;
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;
use kempe_v3d::sim::Order;

/// Work-groups and invocations: batches hold items of several work-groups.
const GROUPS: [u32; 3] = [3, 2, 1];
const ITEMS: u32 = 10;
const WIDTH: u32 = 30;

/// Facts, coordinates out of x, y and both together, and size.
const SHAPES: [(&str, &str, &[u32]); 8] = [
    ("1d", "%flat", &[60]),
    ("1d array", "%x, %y", &[30, 2]),
    ("2d", "%x, %y", &[30, 2]),
    ("2d array", "%x, %y, %one", &[30, 2, 2]),
    ("3d", "%x, %y, %two", &[30, 2, 3]),
    ("cube", "%x, %y, %five", &[30, 30]),
    ("cube array", "%x, %y, %seven", &[30, 30, 2]),
    ("buffer", "%flat", &[60]),
];

/// A module from text in which values have names: `%name` is numbered where it is first seen.
fn module(resources: &[String], body: &str) -> Module {
    let mut t = format!("module \"main\" compute\nworkgroup {ITEMS} 1 1\n");
    for (n, r) in resources.iter().enumerate() {
        t.push_str(&format!("resource @{n} {r} \"r{n}\"\n"));
    }
    t.push_str("func\nb0:\n");
    let head = "  %zero:i32 = const.i32 <0>
  %one:i32 = const.i32 <1>
  %two:i32 = const.i32 <2>
  %three:i32 = const.i32 <3>
  %five:i32 = const.i32 <5>
  %seven:i32 = const.i32 <7>
  %ten:i32 = const.i32 <10>
  %thirty:i32 = const.i32 <30>
  %l:i32 = builtin.i32 <local_invocation_index>
  %g:i32 = builtin.i32 <workgroup_id 0>
  %y:i32 = builtin.i32 <workgroup_id 1>
  %g10:i32 = imul.i32 %g, %ten
  %x:i32 = iadd.i32 %g10, %l
  %y30:i32 = imul.i32 %y, %thirty
  %flat:i32 = iadd.i32 %x, %y30
  %odd:i32 = and.i32 %x, %one
  %is_odd:bool = ieq.i32 %odd, %one
";
    t.push_str(&format!("{head}{body}"));
    let t = numbered(&t);
    let m = text::parse(&t).unwrap_or_else(|e| panic!("{e}\n{t}"));
    verify(&m).unwrap_or_else(|e| panic!("{}\n{t}", e[0]));
    m
}

fn resource(kind: &str, binding: u32, elements: u32, facts: &str) -> String {
    format!("{kind} set 0 binding {binding} elements {elements} size 0 stride 0 {facts}")
}

fn desc(m: &Module, res: u32, format: Format, size: &[u32]) -> ImageDesc {
    ImageDesc::new(&m.resources[Res(res)].image.unwrap(), format, size)
}

/// Contents of all images after a run.
fn run(m: &Module, a: &Artifact, version: Version, inputs: &Inputs) -> Result<Vec<Vec<u8>>, String> {
    let ran = simulate_in(m, a, version, inputs, Order::default())?;
    assert_eq!((a.scratch_bytes, ran.warnings), (0, 0));
    Ok(ran.images)
}

/// Compiles and runs in every configuration; returns how many worked, and how many 4-thread ones were refused because
/// an access needs more register writes than a thread's share.
fn judge(m: &Module, inputs: &Inputs, what: &str) -> (u32, u32) {
    let env = Environment::new(m, inputs, Sizes::source()).unwrap();
    let outcome = interp::run(m, &env, &interp::Options::source()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(outcome.undefined, [], "{what}");
    let expected = env.image_contents(&outcome.memory);
    let before: Vec<&[u8]> = env.image_contents(&env.memory);
    assert!(expected != before, "{what}: nothing happens");
    let (mut worked, mut refused) = (0, 0);
    for level in [kempe_opt::Level::O0, kempe_opt::Level::O2] {
        let mut optimised = m.clone();
        kempe_opt::optimise(&mut optimised, level);
        for version in Version::ALL {
            for threads in [None, Some(2), Some(4)] {
                let options = Options { threads, verify: true, ..Options::default() };
                let what = format!("{what}, {}, {threads:?}", version.name());
                match compile(optimised.clone(), version, &options, &mut ()) {
                    Ok(a) => {
                        let got = run(m, &a, version, inputs)
                            .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(&optimised)));
                        assert!(got == expected, "{what}: the results differ\n{}", text::print(&optimised));
                        worked += 1;
                    }
                    Err(e) => {
                        assert!(threads == Some(4) && e.message.contains("needs 2 threads"), "{what}: {e}");
                        refused += 1;
                    }
                }
            }
        }
    }
    (worked, refused)
}

/// Colours that reach the corners of a format.
fn color(rng: &mut Random, f: Format) -> [u32; 4] {
    [(); 4].map(|()| match f.component() {
        Component::F32 => match rng.below(8) {
            0 => [0x7fc0_0000, 0x7f80_0000, 0xff80_0000, 0x8000_0000, 1][rng.below(5) as usize],
            1 => (rng.below(513) as f32 / 510.0).to_bits(),
            2 | 3 => (rng.float() / 4.0).to_bits(),
            4 => rng.bits() as u32 & 0x7fff_ffff,
            _ => rng.float().to_bits(),
        },
        _ => (rng.bits() as u32 as i32 >> rng.below(32)) as u32,
    })
}

fn texels(format: Format, count: u64, mut next: impl FnMut() -> [u32; 4]) -> Vec<u8> {
    let n = format.bytes() as usize;
    let mut out = vec![0; n * count as usize];
    for to in out.chunks_mut(n) {
        put_texel(to, &format.encode(next()));
    }
    out
}

/// Loads from a texture, stores to both sides of a branch, loads back what was stored, sizes.
#[test]
fn formats_and_dimensions() {
    let (mut worked, mut refused) = (0, 0);
    let mut rng = Random(11);
    for (n, &f) in Format::ALL.iter().enumerate() {
        let (facts, at, size) = SHAPES[n % SHAPES.len()];
        let (name, ty) = match f.component() {
            Component::F32 => ("float", "f32"),
            Component::I32 => ("int", "i32"),
            Component::U32 => ("uint", "i32"),
        };
        let wide = Format::default_of(f.component());
        let pair = match f.component() {
            Component::F32 => Format::Rg32f,
            Component::I32 => Format::Rg32i,
            Component::U32 => Format::Rg32ui,
        };
        let axes = match facts {
            "1d" | "buffer" => "%sx:i32",
            "1d array" | "2d" | "cube" => "%sx:i32, %sy:i32",
            _ => "%sx:i32, %sy:i32, %sz:i32",
        };
        let last = axes.rsplit("%s").next().unwrap_or("x:i32").replace(":i32", "");
        let body = format!(
            "  %a:{ty}, %b:{ty}, %c:{ty}, %d:{ty} = image_load.{ty} <@0 color mask 15> %x, %y
  branch %is_odd, b1, b2
b1:
  image_store.{ty} <@1 color> {at}, %a, %b, %c, %d
  jump b3
b2:
  image_store.{ty} <@1 color> {at}, %d, %c, %b, %a
  jump b3
b3:
  %e:{ty}, %h:{ty} = image_load.{ty} <@1 color mask 10> {at}
  {axes} = image_size.i32 <@1 color>
  image_store.{ty} <@2 color> %flat, %e, %h, %a, %b
  image_store.i32 <@3 color> %flat, %s{last}, %zero, %zero, %zero
  return
"
        );
        let m = module(
            &[
                resource("texture", 0, 1, &format!("{name} 2d")),
                resource("image", 1, 1, &format!("{name} {facts} format {}", f.name())),
                resource("image", 2, 1, &format!("{name} buffer format {}", pair.name())),
                resource("image", 3, 1, "int buffer format r16i"),
            ],
            &body,
        );
        let source = desc(&m, 0, wide, &[WIDTH, 2]);
        let bytes = texels(wide, 60, || color(&mut rng, f));
        let inputs = Inputs::new(GROUPS)
            .image(0, 0, source, bytes)
            .image(0, 1, desc(&m, 1, f, size), vec![0xa5; desc(&m, 1, f, size).bytes() as usize])
            .image(0, 2, desc(&m, 2, pair, &[60]), Vec::new())
            .image(0, 3, desc(&m, 3, Format::R16i, &[60]), Vec::new());
        let (w, r) = judge(&m, &inputs, &format!("{} {facts}", f.name()));
        worked += w;
        refused += r;
    }
    println!("{worked} worked, {refused} refused");
    assert!(worked > 2 * refused);
}

/// Textures of other formats, with levels of detail, arrays of images, in a loop.
#[test]
fn levels_arrays_and_loops() {
    let m = module(
        &[
            resource("texture", 0, 3, "float 2d array"),
            resource("image", 1, 2, "float 2d format rgba8"),
            resource("image", 2, 1, "uint 1d format r32ui"),
        ],
        "  %half:i32 = lshr.i32 %x, %two
  %f0:f32 = const.f32 <0>
  jump b1(%zero, %f0)
b1(%k:i32, %sum:f32):
  %a:f32, %d:f32 = image_load.f32 <@0 color mask 9 element lod> %two, %half, %zero, %k, %one
  %ad:f32 = fmul.f32 %a, %d
  %more:f32 = fadd.f32 %sum, %ad
  image_store.f32 <@1 color element> %one, %x, %y, %more, %a, %d, %sum
  %next:i32 = iadd.i32 %k, %one
  %limit:i32 = and.i32 %x, %three
  %again:bool = sle.i32 %next, %limit
  branch %again, b1(%next, %more), b2
b2:
  %w:i32, %h:i32, %n:i32 = image_size.i32 <@0 color element lod> %two, %one
  %levels:i32 = image_levels.i32 <@0 color element> %two
  %wn:i32 = imul.i32 %w, %n
  %all:i32 = iadd.i32 %wn, %levels
  image_store.i32 <@2 color> %flat, %all, %zero, %zero, %zero
  return
",
    );
    let mut rng = Random(4);
    for f in [Format::Rgba32f, Format::Rgba8, Format::Rg16f, Format::R8Snorm, Format::R11fG11fB10f] {
        let mut t = desc(&m, 0, f, &[16, 8, 4]);
        t.levels = 3;
        let texel_count = t.bytes() / f.bytes() as u64;
        let image = desc(&m, 1, Format::Rgba8, &[WIDTH, 2]);
        let mut inputs = Inputs::new(GROUPS);
        for element in 0..3 {
            let bytes = texels(f, texel_count, || [(); 4].map(|()| rng.float().to_bits()));
            inputs = inputs.image(0, 0, t, bytes);
            inputs.images.last_mut().unwrap().element = element;
        }
        for element in 0..2 {
            inputs = inputs.image(0, 1, image, Vec::new());
            inputs.images.last_mut().unwrap().element = element;
        }
        let inputs = inputs.image(0, 2, desc(&m, 2, Format::R32ui, &[60]), Vec::new());
        judge(&m, &inputs, f.name());
    }
}

/// Every atomic operation; lanes meet only where the order does not matter.
#[test]
fn atomics() {
    for (op, data, meets) in [
        ("add", "%x", true),
        ("sub", "%x", true),
        ("umin", "%x", true),
        ("umax", "%x", true),
        ("smin", "%x", true),
        ("smax", "%x", true),
        ("and", "%x", true),
        ("or", "%x", true),
        ("xor", "%x", true),
        ("exchange", "%x", false),
        ("compare_exchange", "%y, %x", false),
        ("store", "%x", false),
        ("load", "", false),
    ] {
        let at = if meets { "%cell, %y" } else { "%x, %y" };
        let data = if data.is_empty() { String::new() } else { format!(", {data}") };
        let keep = if meets { "%x" } else { "%old" };
        let m = module(
            &[
                resource("image", 0, 1, "uint 2d format r32ui"),
                resource("image", 1, 1, "uint buffer format r32ui"),
            ],
            &format!(
                "  %cell:i32 = and.i32 %x, %three
  branch %is_odd, b1, b2
b1:
  %old:i32 = image_atomic.i32 <@0 {op}> {at}{data}
  image_store.i32 <@1 color> %flat, {}, %zero, %zero, %zero
  jump b2
b2:
  return
",
                if op == "store" { "%x" } else { keep }
            ),
        );
        let mut n = 0;
        let bytes = texels(Format::R32ui, 60, || {
            n += 1;
            [n % 3, 0, 0, 0]
        });
        let inputs = Inputs::new(GROUPS).image(0, 0, desc(&m, 0, Format::R32ui, &[WIDTH, 2]), bytes).image(
            0,
            1,
            desc(&m, 1, Format::R32ui, &[60]),
            Vec::new(),
        );
        judge(&m, &inputs, op);
    }
    // Floats: exchange moves bits, addition is a loop.
    for op in ["exchange", "fadd"] {
        let body = format!(
            "  %fx:f32 = sitof.f32 %x\n  %old:f32 = image_atomic.f32 <@0 {op}> %x, %y, %fx\n  return\n"
        );
        let m = module(&[resource("image", 0, 1, "float 2d format r32f")], &body);
        let bytes = texels(Format::R32f, 60, || [1.5f32.to_bits(), 0, 0, 0]);
        let inputs = Inputs::new(GROUPS).image(0, 0, desc(&m, 0, Format::R32f, &[WIDTH, 2]), bytes);
        judge(&m, &inputs, op);
    }
}

/// A store outside of the image changes nothing; a load there stops the simulator as it stops the interpreter.
#[test]
fn outside() {
    let r = [resource("image", 0, 1, "uint 2d format r8ui")];
    let store = module(&r, "  image_store.i32 <@0 color> %x, %y, %seven, %one, %one, %one\n  return\n");
    let d = desc(&store, 0, Format::R8ui, &[7, 1]);
    let inputs = Inputs::new(GROUPS).image(0, 0, d, Vec::new());
    judge(&store, &inputs, "store");
    let load = module(
        &r,
        "  %a:i32 = image_load.i32 <@0 color mask 1> %x, %y\n  image_store.i32 <@0 color> %x, %y, %a, %a, %a, %a\n  return\n",
    );
    let a = compile(load.clone(), Version::V71, &Options::default(), &mut ()).unwrap();
    let e = run(&load, &a, Version::V71, &inputs).unwrap_err();
    assert!(e.starts_with("memory:") && e.contains("texel 7, 0 lies outside of the image `r0`"), "{e}");
}

/// Arrays of images indexed by a variable, in straight code and under a condition.
#[test]
fn variable_indices() {
    let m = module(
        &[
            resource("texture", 0, 3, "float 2d"),
            resource("image", 1, 2, "float 2d format rgba8"),
            resource("image", 2, 2, "uint 1d format r32ui"),
        ],
        "  %k:i32 = and.i32 %x, %three
  %big:bool = ieq.i32 %k, %three
  %e:i32 = select.i32 %big, %one, %k
  %a:f32, %d:f32 = image_load.f32 <@0 color mask 9 element> %e, %x, %y
  %w:i32, %h:i32 = image_size.i32 <@0 color element> %e
  branch %is_odd, b1, b2
b1:
  %half:i32 = lshr.i32 %k, %one
  image_store.f32 <@1 color element> %half, %x, %y, %d, %a, %d, %a
  %old:i32 = image_atomic.i32 <@2 add element> %half, %y, %w
  jump b2
b2:
  %more:i32 = imul.i32 %w, %h
  %g1:i32 = and.i32 %g, %one
  %old2:i32 = image_atomic.i32 <@2 add element> %g1, %flat, %more
  return
",
    );
    let mut rng = Random(9);
    let mut inputs = Inputs::new(GROUPS);
    for element in 0..3 {
        let d = desc(&m, 0, Format::Rgba32f, &[WIDTH + element, 2]);
        let bytes =
            texels(Format::Rgba32f, 2 * (30 + element as u64), || [(); 4].map(|()| rng.float().to_bits()));
        inputs = inputs.image(0, 0, d, bytes);
        inputs.images.last_mut().unwrap().element = element;
    }
    for element in 0..2 {
        inputs = inputs.image(0, 1, desc(&m, 1, Format::Rgba8, &[WIDTH, 2]), Vec::new());
        inputs.images.last_mut().unwrap().element = element;
    }
    for element in 0..2 {
        inputs = inputs.image(0, 2, desc(&m, 2, Format::R32ui, &[60]), Vec::new());
        inputs.images.last_mut().unwrap().element = element;
    }
    judge(&m, &inputs, "variable indices");
}
